// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell records in user memory. Many records share a page; each page is pinned only
 * once per process.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/**
 * struct skua_ib_db_page - a pinned page of doorbell records
 * @link: entry in the context's list
 * @umem: the page
 * @va: its user address
 * @mm: the address space of @va; after fork() two processes may use one context
 * @users: records in use
 */
struct skua_ib_db_page {
	struct list_head link;
	struct ib_umem *umem;
	unsigned long va;
	const struct mm_struct *mm;
	unsigned int users;
};

static struct skua_ib_db_page *skua_ib_db_page_get(struct skua_ib_ucontext *uc, unsigned long va)
{
	struct skua_ib_db_page *page;

	lockdep_assert_held(&uc->db_lock);
	list_for_each_entry(page, &uc->db_pages, link) {
		if (page->va == va && page->mm == current->mm) {
			page->users++;
			return page;
		}
	}

	page = kzalloc_obj(*page, GFP_KERNEL_ACCOUNT);
	if (!page)
		return ERR_PTR(-ENOMEM);
	page->umem = ib_umem_get_va(uc->ibuc.device, va, PAGE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(page->umem)) {
		int err = PTR_ERR(page->umem);

		kfree(page);
		return ERR_PTR(err);
	}
	page->va = va;
	/* Only compared. The umem holds a reference, so the pointer is not reused. */
	page->mm = page->umem->owning_mm;
	page->users = 1;
	list_add(&page->link, &uc->db_pages);
	return page;
}

/**
 * skua_ib_db_map() - pin a doorbell record
 * @uc: the user context
 * @va: user address of the record
 * @db: filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_db_map(struct skua_ib_ucontext *uc, u64 va, struct skua_ib_db *db)
{
	struct skua_ib_db_page *page;

	if (va & (SKUA_DBR_ALIGN - 1) || va > ULONG_MAX - PAGE_SIZE)
		return skua_ib_refuse(to_skua_dev(uc->ibuc.device), -EINVAL,
				      "doorbell record at %#llx, must be a user address aligned to %u",
				      va, (unsigned int)SKUA_DBR_ALIGN);

	guard(mutex)(&uc->db_lock);
	page = skua_ib_db_page_get(uc, va & PAGE_MASK);
	if (IS_ERR(page))
		return PTR_ERR(page);
	db->page = page;
	db->dma = ib_umem_start_dma_addr(page->umem) + offset_in_page(va);
	return 0;
}

/**
 * skua_ib_db_unmap() - unpin a doorbell record
 * @uc: the user context
 * @db: the record, to which no queue of the device refers any more
 */
void skua_ib_db_unmap(struct skua_ib_ucontext *uc, struct skua_ib_db *db)
{
	struct skua_ib_db_page *page = db->page;

	guard(mutex)(&uc->db_lock);
	if (--page->users)
		return;
	list_del(&page->link);
	ib_umem_release(page->umem);
	kfree(page);
}
