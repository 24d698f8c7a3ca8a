// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of user memory that hold many small things: doorbell records, and rings that are
 * shorter than a page. Each page is pinned and mapped for DMA once per process, not once for
 * each of them.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/**
 * struct skua_ib_page - a pinned page of user memory
 * @uc: the user context
 * @next: page of the same user address in another address space
 * @umem: the page
 * @va: its user address
 * @mm: the address space of @va; after fork() two processes may use one context
 * @users: records and rings in use
 */
struct skua_ib_page {
	struct skua_ib_ucontext *uc;
	struct skua_ib_page *next;
	struct ib_umem *umem;
	unsigned long va;
	const struct mm_struct *mm;
	unsigned int users;
};

/* Pin a page, behind which stand those at its address in other address spaces. */
static struct skua_ib_page *skua_ib_page_pin(struct skua_ib_ucontext *uc, unsigned long va,
					     struct skua_ib_page *next)
{
	struct skua_ib_page *page;
	int err;

	lockdep_assert_held(&uc->page_lock);
	page = kzalloc_obj(*page, GFP_KERNEL_ACCOUNT);
	if (!page)
		return ERR_PTR(-ENOMEM);
	page->umem = ib_umem_get_va(uc->ibuc.device, va, PAGE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(page->umem)) {
		err = PTR_ERR(page->umem);
		goto err_page;
	}
	page->uc = uc;
	page->next = next;
	page->va = va;
	/* Only compared. The umem holds a reference, so the pointer is not reused. */
	page->mm = page->umem->owning_mm;
	page->users = 1;
	err = xa_err(xa_store(&uc->pages, va >> PAGE_SHIFT, page, GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_umem;
	return page;

err_umem:
	ib_umem_release(page->umem);
err_page:
	kfree(page);
	return ERR_PTR(err);
}

static struct skua_ib_page *skua_ib_page_get(struct skua_ib_ucontext *uc, unsigned long va)
{
	struct skua_ib_page *first, *page;

	guard(mutex)(&uc->page_lock);
	first = xa_load(&uc->pages, va >> PAGE_SHIFT);
	for (page = first; page; page = page->next) {
		if (page->mm == current->mm) {
			page->users++;
			return page;
		}
	}
	return skua_ib_page_pin(uc, va & PAGE_MASK, first);
}

static dma_addr_t skua_ib_page_dma(const struct skua_ib_page *page, u64 va)
{
	return ib_umem_start_dma_addr(page->umem) + offset_in_page(va);
}

/**
 * skua_ib_page_put() - one user of a page less
 * @page: the page
 */
void skua_ib_page_put(struct skua_ib_page *page)
{
	struct skua_ib_ucontext *uc = page->uc;
	unsigned long index = page->va >> PAGE_SHIFT;
	struct skua_ib_page *at;

	guard(mutex)(&uc->page_lock);
	if (--page->users)
		return;
	at = xa_load(&uc->pages, index);
	if (at != page) {
		while (at->next != page)
			at = at->next;
		at->next = page->next;
	} else if (page->next) {
		/* Cannot fail: the place of an entry is there. */
		xa_store(&uc->pages, index, page->next, GFP_KERNEL_ACCOUNT);
	} else {
		xa_erase(&uc->pages, index);
	}
	ib_umem_release(page->umem);
	kfree(page);
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
	struct skua_ib_page *page;

	if (va & (SKUA_DBR_ALIGN - 1) || va > ULONG_MAX - PAGE_SIZE)
		return skua_ib_refuse(to_skua_dev(uc->ibuc.device), -EINVAL,
				      "doorbell record at %#llx, must be a user address aligned to %u",
				      va, (unsigned int)SKUA_DBR_ALIGN);

	page = skua_ib_page_get(uc, va);
	if (IS_ERR(page))
		return PTR_ERR(page);
	db->page = page;
	db->dma = skua_ib_page_dma(page, va);
	return 0;
}

/**
 * skua_ib_db_unmap() - unpin a doorbell record
 * @db: the record, to which no queue of the device refers any more
 */
void skua_ib_db_unmap(struct skua_ib_db *db)
{
	skua_ib_page_put(db->page);
}

/**
 * skua_ib_ring_shares() - may a ring share the pin of a page with others?
 * @va: user address of the ring
 * @size: its bytes
 *
 * Return: it is shorter than a page, and within one.
 */
bool skua_ib_ring_shares(u64 va, u64 size)
{
	return size < PAGE_SIZE && offset_in_page(va) + size <= PAGE_SIZE &&
	       va <= ULONG_MAX - PAGE_SIZE;
}

/**
 * skua_ib_ring_map() - pin a ring for which skua_ib_ring_shares() is true
 * @uc: the user context
 * @va: user address of the ring
 * @m: filled in; skua_ib_umem_unmap() undoes it
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_ring_map(struct skua_ib_ucontext *uc, u64 va, struct skua_ib_umem *m)
{
	struct skua_ib_page *page = skua_ib_page_get(uc, va);

	if (IS_ERR(page))
		return PTR_ERR(page);
	*m = (struct skua_ib_umem) { .shared = page, .mode = SKUA_XLAT_CONTIG };
	skua_ib_umem_contig(m, skua_ib_page_dma(page, va));
	return 0;
}
