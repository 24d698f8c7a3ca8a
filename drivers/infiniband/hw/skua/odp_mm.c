// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand regions: pages of the process. Nothing here uses the device, since it may be
 * removed while a thread waits for a page.
 *
 * ib_umem_odp_map_dma_and_lock() is not used for two reasons. It has hmm_range_fault() write
 * to the array of pages of the umem without a lock, so that of two threads that page in the
 * same page one can clear HMM_PFN_DMA_MAPPED again after the other has mapped the page for
 * DMA. And hmm_range_fault() waits for a page with mmap_lock held, so that everything else
 * that needs the lock waits too, and cannot fault pages that a userfaultfd provides.
 */
#include <kunit/visibility.h>
#include <linux/hmm.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "odp.h"

/* How often pages that are taken away again meanwhile are faulted in. */
#define SKUA_ODP_TRIES	16

/* Nobody looks at pages by the notifier of skua_ib_odp_mm_prepare(). */
static bool skua_ib_odp_ignore(struct mmu_interval_notifier *mni,
			       const struct mmu_notifier_range *range, unsigned long seq)
{
	return true;
}

/**
 * skua_ib_odp_mm_prepare() - have later notifiers not wait for the mmap lock
 * @mm: the address space of the calling process
 *
 * The first notifier of an address space takes its mmap lock, to allocate what all of them
 * need until the address space ends. The notifiers of blocks are inserted in page faults of the
 * device, whose removal must not wait for the mmap lock.
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_odp_mm_prepare(struct mm_struct *mm)
{
	static const struct mmu_interval_notifier_ops ops = { .invalidate = skua_ib_odp_ignore };
	struct mmu_interval_notifier first;
	int err;

	err = mmu_interval_notifier_insert(&first, mm, 0, PAGE_SIZE, &ops);
	if (!err)
		mmu_interval_notifier_remove(&first);
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_odp_mm_prepare);

/* The address of the first page that is not there as it is needed; or the end. */
static unsigned long skua_ib_odp_missing(const struct hmm_range *range, unsigned long need,
					 unsigned long addr)
{
	for (; addr < range->end; addr += PAGE_SIZE) {
		if ((range->hmm_pfns[(addr - range->start) >> PAGE_SHIFT] & need) != need)
			break;
	}
	return addr;
}

/*
 * Fault in what is missing, as the CPU would. mmap_lock is released while this waits, where
 * the fault handler of the memory supports that.
 */
static int skua_ib_odp_fault_in(struct mm_struct *mm, const struct hmm_range *range,
				unsigned long need)
{
	unsigned int flags = FAULT_FLAG_REMOTE | (need & HMM_PFN_WRITE ? FAULT_FLAG_WRITE : 0);
	unsigned long addr = range->start;
	bool unlocked = false;
	int err = 0;

	mmap_read_lock(mm);
	for (;;) {
		addr = skua_ib_odp_missing(range, need, addr);
		if (addr == range->end)
			break;
		/* Not mapped, or not memory. */
		err = -EFAULT;
		if (range->hmm_pfns[(addr - range->start) >> PAGE_SHIFT] & HMM_PFN_ERROR)
			break;
		err = fixup_user_fault(mm, addr, flags, &unlocked);
		if (err)
			break;
		addr += PAGE_SIZE;
	}
	mmap_read_unlock(mm);
	return err;
}

/*
 * Look at the pages in the process. Return 0 with umem_mutex held: the pages do not change
 * until it is released. -EBUSY: they changed meanwhile.
 */
static int skua_ib_odp_look(struct ib_umem_odp *umem, struct mm_struct *mm,
			    struct hmm_range *range, unsigned long need, bool *missing)
{
	int err;

	*missing = false;
	range->notifier_seq = mmu_interval_read_begin(&umem->notifier);
	mmap_read_lock(mm);
	/* Without flags it faults nothing in. */
	err = hmm_range_fault(range);
	mmap_read_unlock(mm);
	if (err)
		return err;
	*missing = skua_ib_odp_missing(range, need, range->start) != range->end;
	if (*missing)
		return 0;
	mutex_lock(&umem->umem_mutex);
	if (!mmu_interval_read_retry(&umem->notifier, range->notifier_seq))
		return 0;
	mutex_unlock(&umem->umem_mutex);
	return -EBUSY;
}

/**
 * skua_ib_odp_lock_pages() - get pages of the process and lock them
 * @umem: the memory
 * @start: address of the first page
 * @num: number of pages
 * @need: HMM_PFN_VALID, with HMM_PFN_WRITE if the pages are to be written to: fault in what
 *	is not there like that; 0: take what is there
 * @pfns: filled in: what there is of each page, as of hmm_range_fault()
 *
 * May wait for ever if user space provides the pages.
 *
 * Return: 0 with umem_mutex held, which keeps the pages as they are; -EFAULT if one is not
 * mapped or not with that access, -EBUSY if they were taken away again repeatedly, or another
 * negative errno.
 */
int skua_ib_odp_lock_pages(struct ib_umem_odp *umem, u64 start, u32 num, unsigned long need,
			   unsigned long *pfns)
{
	struct mm_struct *mm = umem->umem.owning_mm;
	struct hmm_range range = {
		.notifier = &umem->notifier,
		.start = start,
		.end = start + (u64)num * PAGE_SIZE,
		.hmm_pfns = pfns,
	};
	unsigned int tries = SKUA_ODP_TRIES;
	bool missing;
	int err;

	/* The notifier keeps the mm_struct; the process may have ended. */
	if (!mmget_not_zero(mm))
		return -EFAULT;
	do {
		err = skua_ib_odp_look(umem, mm, &range, need, &missing);
		if (!err && missing) {
			err = skua_ib_odp_fault_in(mm, &range, need);
			if (!err)
				err = -EBUSY;
		}
	} while (err == -EBUSY && --tries);
	/* Not mmput(): the end of the address space calls notifiers, which take umem_mutex. */
	mmput_async(mm);
	return err;
}
