// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand regions: regions over memory that is not pinned. A page is added to the MTT
 * when the device faults on it (or when it is prefetched), and removed by
 * skua_ib_odp_invalidate() before the kernel takes the page away from the process.
 *
 * A short region has one page list as long as it exists. A long one has a directory of
 * blocks, each with its own page list, which are created and freed on demand (odp_dir.c);
 * so does the implicit region, which covers the address space of the process.
 * odp_dmabuf.c has regions over dma-bufs.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/dma-mapping.h>
#include <linux/hmm.h>
#include <linux/module.h>
#include <linux/pci-p2pdma.h>
#include <linux/slab.h>

#include "odp.h"

/* --- removal of the device --- */

/*
 * Threads that page in may wait for a page of user space for ever, so the removal of the
 * device does not wait for them: skua_ib_odp_exit() takes from each region that is left what
 * it has of the device, its pages and MTT entries, and the thread finds it gone when the page
 * has come. A thread uses the device and allocates or frees MTT entries between
 * skua_ib_odp_enter() and skua_ib_odp_leave() only, or with the umem_mutex of a block that
 * is not gone; it waits for no page then, nor for the mmap lock, which a thread that waits for
 * a page may hold.
 */

/**
 * skua_ib_odp_enter() - begin to use the device
 * @dev: the device, which may be gone
 *
 * Return: false if it is gone; else skua_ib_odp_leave() is needed. May not be nested.
 */
bool skua_ib_odp_enter(struct skua_ib_dev *dev)
{
	down_read(&dev->odp_sem);
	if (!dev->odp_gone)
		return true;
	up_read(&dev->odp_sem);
	return false;
}

/**
 * skua_ib_odp_leave() - end to use the device
 * @dev: the device
 */
void skua_ib_odp_leave(struct skua_ib_dev *dev)
{
	up_read(&dev->odp_sem);
}

/* --- blocks --- */

/*
 * MMU notifier: pages of the process are about to change or go away. May be called in
 * memory reclaim, so nothing here may fail, allocate, or wait for an allocation. SYNC_MTT
 * is a reclaim-safe command and returns when the device dies.
 */
static bool skua_ib_odp_invalidate(struct mmu_interval_notifier *mni,
				   const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	struct skua_ib_odp_block *block;
	u64 start, end;
	u32 first, num;

	/* The OOM reaper must not block; it retries. */
	if (!mmu_notifier_range_blockable(range))
		return false;

	guard(mutex)(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	/*
	 * A block that is not initialized yet has no pages. Nothing else is taken for a sign
	 * that there are none: npages follows flags that hmm_range_fault() rewrites without
	 * umem_mutex, and @present what a faulty device may have written to the page list.
	 */
	block = umem->private;
	if (!block || block->gone)
		return true;
	start = max_t(u64, ib_umem_start(umem), range->start);
	end = min_t(u64, ib_umem_end(umem), range->end);
	first = (start - block->start) >> PAGE_SHIFT;
	num = skua_mtt_zap(block->odp->dev->core, &block->mtt, first,
			   DIV_ROUND_UP(end - block->start, PAGE_SIZE) - first);
	/* The device no longer accesses the pages. */
	ib_umem_odp_unmap_dma_pages(umem, ALIGN_DOWN(start, PAGE_SIZE), end);
	block->present -= num;
	atomic64_add(num, &block->odp->invalidations);
	if (!block->present && block->odp->root)
		skua_ib_odp_queue_reap(block->odp);
	return true;
}

const struct mmu_interval_notifier_ops skua_ib_odp_mmu_ops = {
	.invalidate = skua_ib_odp_invalidate,
};

/**
 * skua_ib_odp_block_init() - initialize a block and allocate its page list
 * @block: filled in
 * @odp: the region
 * @umem: the memory of the block, or an error pointer; released on failure
 * @npages: pages of the memory
 *
 * The caller excludes skua_ib_odp_exit() since before @umem was made, because that uses the
 * device, too; and so does its release.
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_odp_block_init(struct skua_ib_odp_block *block, struct skua_ib_odp *odp,
			   struct ib_umem_odp *umem, u64 npages)
{
	struct skua_ib_dev *dev = odp->dev;
	int err;

	KUNIT_STATIC_STUB_REDIRECT(skua_ib_odp_block_init, block, odp, umem, npages);

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = skua_ib_user_charge(odp->user, SKUA_IB_RES_MTT, npages);
	if (err)
		goto err_umem;
	err = skua_mtt_alloc(dev->core, &block->mtt, NULL, npages, PAGE_SHIFT, false);
	if (err)
		goto err_user;
	refcount_set(&block->ref, 1);
	block->odp = odp;
	block->umem = umem;
	block->start = ib_umem_start(umem);
	/* From here on invalidations use the block. */
	mutex_lock(&umem->umem_mutex);
	umem->private = block;
	mutex_unlock(&umem->umem_mutex);
	spin_lock(&dev->odp_lock);
	list_add(&block->link, &dev->odp_blocks);
	spin_unlock(&dev->odp_lock);
	return 0;

err_user:
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, npages);
err_umem:
	ib_umem_odp_release(umem);
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_odp_block_init);

/*
 * The umem is released later, when no thread uses it any more. Until then the DMA addresses
 * that are reserved for it must not remain with a device that has no driver.
 */
static void skua_ib_odp_unmap(struct ib_umem_odp *umem)
{
	lockdep_assert_held(&umem->umem_mutex);
	ib_umem_odp_unmap_dma_pages(umem, ib_umem_start(umem), ib_umem_end(umem));
#ifndef SKUA_COMPAT_ODP
	if (dma_use_iova(&umem->map.state))
		dma_iova_free(umem->umem.ibdev->dma_device, &umem->map.state);
	memset(&umem->map.state, 0, sizeof(umem->map.state));
#endif
}

/**
 * skua_ib_odp_block_detach() - have a block not use the device any more
 * @block: the block; no entry of the device refers to it
 *
 * The caller excludes skua_ib_odp_exit(), or is it.
 */
void skua_ib_odp_block_detach(struct skua_ib_odp_block *block)
{
	struct skua_ib_odp *odp = block->odp;

	scoped_guard(mutex, &block->umem->umem_mutex) {
		block->gone = true;
		skua_mtt_zap(odp->dev->core, &block->mtt, 0, block->mtt.npages);
		/* The device no longer accesses the pages. */
		skua_ib_odp_unmap(block->umem);
	}
	skua_mtt_free(odp->dev->core, &block->mtt);
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, block->mtt.npages);
	scoped_guard(spinlock, &odp->dev->odp_lock)
		list_del(&block->link);
}

/**
 * skua_ib_odp_block_put() - drop a reference to a block
 * @block: the block; no entry of the device refers to it when the last one is dropped
 */
void skua_ib_odp_block_put(struct skua_ib_odp_block *block)
{
	if (!refcount_dec_and_test(&block->ref))
		return;
	if (skua_ib_odp_enter(block->odp->dev)) {
		skua_ib_odp_block_detach(block);
		skua_ib_odp_leave(block->odp->dev);
	}
	/* No invalidation runs after this. */
	ib_umem_odp_release(block->umem);
	kfree(block);
}

/* --- paging in --- */

#ifndef SKUA_COMPAT_ODP
/**
 * skua_ib_odp_map() - map a page for DMA, unless it is mapped already
 * @umem: the memory; umem_mutex is held
 * @i: index of the page
 * @pfn: the page, as of hmm_range_fault(), without flags of a mapping
 * @addr: filled in: its bus address
 *
 * Return: 0 or -EFAULT.
 */
VISIBLE_IF_KUNIT int skua_ib_odp_map(struct ib_umem_odp *umem, u32 i, unsigned long pfn,
				     dma_addr_t *addr)
{
	unsigned long *known = &umem->map.pfn_list[i];
	struct pci_p2pdma_map_state p2pdma = {};
	bool mapped;

	/* Only threads with umem_mutex change the list, so the flags of a mapping are right. */
	*known = pfn | (*known & (HMM_PFN_DMA_MAPPED | HMM_PFN_P2PDMA | HMM_PFN_P2PDMA_BUS));
	mapped = *known & HMM_PFN_DMA_MAPPED;
	*addr = hmm_dma_map_pfn(umem->umem.ibdev->dma_device, &umem->map, i, &p2pdma);
	if (ib_dma_mapping_error(umem->umem.ibdev, *addr))
		return -EFAULT;
	if (!mapped)
		umem->npages++;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_odp_map);
#endif

/*
 * Add pages to the MTT. @pfns: those of the process, from skua_ib_odp_lock_pages(). Return:
 * the number of pages added, or an errno if there are none.
 */
static int skua_ib_odp_fill(struct skua_ib_odp_block *block, u32 first, u32 num,
			    const unsigned long *pfns)
{
	struct skua_dev *core = block->odp->dev->core;
	dma_addr_t addr;
	int n = 0, err;
	u32 i;

	lockdep_assert_held(&block->umem->umem_mutex);
	if (block->gone)
		return -ENODEV;
	for (i = 0; i < num; i++) {
		if (!(pfns[i] & HMM_PFN_VALID))
			continue;
		err = skua_ib_odp_map(block->umem, first + i, pfns[i], &addr);
		if (err)
			return n ? n : err;
		if (skua_mtt_set(core, &block->mtt, first + i, addr,
				 pfns[i] & HMM_PFN_WRITE && block->odp->write))
			block->present++;
		n++;
	}
	return n;
}

static int skua_ib_odp_block_page_in(struct skua_ib_odp_block *block, u64 addr, u64 len,
				     enum skua_ib_odp_how how)
{
	u64 start = ALIGN_DOWN(addr, PAGE_SIZE);
	u32 num = (PAGE_ALIGN(addr + len) - start) >> PAGE_SHIFT;
	unsigned long need = 0;
	int ret;

	/* Of its own, because other threads may page in the same pages. */
	unsigned long *pfns __free(kvfree) = kvcalloc(num, sizeof(*pfns), GFP_KERNEL);

	if (!pfns)
		return -ENOMEM;
	if (how != SKUA_ODP_PRESENT)
		need = HMM_PFN_VALID;
	if (how == SKUA_ODP_WRITE)
		need |= HMM_PFN_WRITE;
	ret = skua_ib_odp_lock_pages(block->umem, start, num, need, pfns);
	if (ret)
		return ret;
	ret = skua_ib_odp_fill(block, (start - block->start) >> PAGE_SHIFT, num, pfns);
	mutex_unlock(&block->umem->umem_mutex);
	return !ret && how != SKUA_ODP_PRESENT ? -EFAULT : ret;
}

/* Get the block of an address, with a reference. @fresh: it was created by this call. */
static struct skua_ib_odp_block *skua_ib_odp_block_get(struct skua_ib_odp *odp, u64 addr,
						       bool *fresh)
{
	*fresh = false;
	if (odp->root)
		return skua_ib_odp_dir_get(odp, addr, fresh);
	refcount_inc(&odp->whole->ref);
	return odp->whole;
}

/* Add the pages of a new block that are present, so that the device does not fault on each. */
static void skua_ib_odp_block_around(struct skua_ib_odp_block *block)
{
	const struct skua_ib_odp *odp = block->odp;
	u64 start = max(block->start, odp->start);
	u64 end = min_t(u64, ib_umem_end(block->umem), odp->start + odp->range.len);

	skua_ib_odp_block_page_in(block, start, end - start, SKUA_ODP_PRESENT);
}

/**
 * skua_ib_odp_page_in() - make pages of a region accessible to the device
 * @odp: the region
 * @va: first byte, as an iova of the region
 * @len: bytes, at least one; within the region
 * @how: which pages, and for which access
 *
 * Pages in up to the end of the block in which @va is; a dma-buf is mapped as a whole.
 *
 * Return: the number of pages; -EFAULT if a part is not mapped in the process or not with
 * that access, -EBUSY if the pages were invalidated again repeatedly, or another negative
 * errno.
 */
int skua_ib_odp_page_in(struct skua_ib_odp *odp, u64 va, u64 len, enum skua_ib_odp_how how)
{
	u64 addr = va - odp->range.va + odp->start;
	struct skua_ib_odp_block *block;
	bool fresh;
	int num;

	if (odp->dmabuf)
		return skua_ib_odp_dmabuf_page_in(odp->dmabuf, how);
	block = skua_ib_odp_block_get(odp, addr, &fresh);
	if (IS_ERR(block))
		return PTR_ERR(block);
	len = min(len, ib_umem_end(block->umem) - addr);
	num = skua_ib_odp_block_page_in(block, addr, len, how);
	if (fresh && num >= 0)
		skua_ib_odp_block_around(block);
	skua_ib_odp_block_put(block);
	/* A block that got no pages is freed after a while. */
	if (num <= 0 && odp->root)
		skua_ib_odp_queue_reap(odp);
	return num;
}

/* --- regions --- */

static int skua_ib_odp_init_whole(struct skua_ib_odp *odp)
{
	struct skua_ib_odp_block *block __free(kfree) = kzalloc_obj(*block, GFP_KERNEL_ACCOUNT);
	u64 npages = (PAGE_ALIGN(odp->start + odp->range.len) -
		      ALIGN_DOWN(odp->start, PAGE_SIZE)) >> PAGE_SHIFT;
	/*
	 * Always with the system's page size: the memory need not stay in huge pages all
	 * the time, even if the caller has set HUGETLB.
	 */
	int access = (odp->range.access & ~IB_ACCESS_HUGETLB) | IB_ACCESS_ON_DEMAND;
	int err;

	if (!block)
		return -ENOMEM;
	/* The device is not removed while a verb runs, even if that waits for the mmap lock. */
	err = skua_ib_odp_block_init(block, odp,
				     ib_umem_odp_get(&odp->dev->ibdev, odp->start,
						     odp->range.len, access,
						     &skua_ib_odp_mmu_ops),
				     npages);
	if (err)
		return err;
	odp->whole = no_free_ptr(block);
	return 0;
}

static void skua_ib_odp_destroy(struct skua_ib_odp *odp)
{
	if (odp->dmabuf)
		skua_ib_odp_dmabuf_free(odp->dmabuf);
	if (odp->whole)
		skua_ib_odp_block_put(odp->whole);
	if (odp->root)
		skua_ib_odp_dir_destroy(odp);
	skua_ib_user_put(odp->user);
	put_device(&odp->dev->ibdev.dev);
}

void skua_ib_odp_put(struct skua_ib_odp *odp)
{
	if (!refcount_dec_and_test(&odp->ref))
		return;
	skua_ib_odp_destroy(odp);
	kfree(odp);
	/*
	 * If this is a work item, skua_ib_odp_module_exit() waits for its end. It is not left to
	 * that alone, so that rmmod fails with EBUSY instead of waiting for a page.
	 */
	module_put(THIS_MODULE);
}

/**
 * skua_ib_odp_alloc() - allocate an on-demand region without memory
 * @ibpd: its protection domain
 * @range: iova, length and access
 * @start: address of its first byte in the process, or offset in the dma-buf
 *
 * Return: the region, to be released with skua_ib_odp_put(), or NULL if there is no memory or
 * the module goes.
 */
struct skua_ib_odp *skua_ib_odp_alloc(struct ib_pd *ibpd, const struct skua_ib_range *range,
				      u64 start)
{
	struct skua_ib_odp *odp = kzalloc_obj(*odp, GFP_KERNEL_ACCOUNT);

	if (!odp)
		return NULL;
	/* A context has no reference: the module may be on its way out. */
	if (!try_module_get(THIS_MODULE)) {
		kfree(odp);
		return NULL;
	}
	refcount_set(&odp->ref, 1);
	odp->dev = to_skua_dev(ibpd->device);
	get_device(&odp->dev->ibdev.dev);
	odp->user = skua_ib_user_hold(skua_ib_pd_user(ibpd));
	odp->range = *range;
	odp->start = start;
	odp->write = ib_access_writable(range->access);
	return odp;
}

static struct skua_ib_odp *skua_ib_odp_new(struct ib_pd *ibpd, const struct skua_ib_range *range,
					   u64 start, bool implicit)
{
	struct skua_ib_odp *odp = skua_ib_odp_alloc(ibpd, range, start);
	int err;

	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->implicit = implicit;
	err = range->len > SKUA_ODP_BLOCK_SIZE ? skua_ib_odp_dir_init(odp) :
						 skua_ib_odp_init_whole(odp);
	if (err) {
		skua_ib_odp_put(odp);
		return ERR_PTR(err);
	}
	return odp;
}

/* Regions are found by the index of the key; callers compare the whole key. */
static u32 skua_ib_odp_index(u32 key)
{
	return key >> 8;
}

/**
 * skua_ib_odp_get() - look up an on-demand region
 * @dev: the device
 * @key: its key
 *
 * Return: the region, with a reference, or NULL.
 */
struct skua_ib_odp *skua_ib_odp_get(struct skua_ib_dev *dev, u32 key)
{
	struct skua_ib_odp *odp;

	xa_lock(&dev->odps);
	odp = xa_load(&dev->odps, skua_ib_odp_index(key));
	if (odp && odp->key == key)
		refcount_inc(&odp->ref);
	else
		odp = NULL;
	xa_unlock(&dev->odps);
	return odp;
}

/**
 * skua_ib_odp_known() - check whether a region is still registered
 * @odp: the region
 *
 * Return: true if it is.
 */
bool skua_ib_odp_known(const struct skua_ib_odp *odp)
{
	return xa_load(&odp->dev->odps, skua_ib_odp_index(odp->key)) == odp;
}

static void skua_ib_odp_mpt(const struct skua_ib_odp *odp, u32 access, struct skua_mpt *mpt)
{
	__le32 mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
		      le32_encode_bits(PAGE_SHIFT, SKUA_XLAT_LOG_PAGE);
	u64 base = ALIGN_DOWN(odp->start, PAGE_SIZE);
	const struct skua_mtt *list;

	if (odp->dmabuf) {
		list = &odp->dmabuf->mtt;
	} else if (odp->whole) {
		list = &odp->whole->mtt;
		base = odp->whole->start;
	} else {
		mode = le32_encode_bits(SKUA_XLAT_DIR, SKUA_XLAT_MODE) |
		       le32_encode_bits(SKUA_ODP_LOG_BLOCK + odp->log_mid,
					SKUA_XLAT_LOG_PAGE) |
		       le32_encode_bits(PAGE_SHIFT, SKUA_XLAT_LOG_SUB);
		if (odp->log_mid)
			mode |= le32_encode_bits(SKUA_ODP_LOG_BLOCK, SKUA_XLAT_LOG_MID);
		base = odp->base;
		list = &odp->dir;
	}
	*mpt = (struct skua_mpt) {
		.flags = cpu_to_le32(SKUA_MPT_ODP),
		.access = cpu_to_le32(access),
		.va = cpu_to_le64(odp->range.va),
		.len = cpu_to_le64(odp->range.len),
		.xlat.base = cpu_to_le64(list->first),
		.xlat.offset = cpu_to_le32(odp->start - base),
		.xlat.mode = mode,
		.npages = cpu_to_le32(list->npages),
	};
}

/**
 * skua_ib_odp_publish() - create the MPT entry of an on-demand region
 * @odp: the region with its memory; owned by @mr on success, released on failure
 * @mr: the memory region
 * @ibpd: its protection domain
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_odp_publish(struct skua_ib_odp *odp, struct skua_ib_mr *mr, struct ib_pd *ibpd)
{
	struct skua_ib_dev *dev = odp->dev;
	struct skua_mpt mpt;
	u32 access;
	int err;

	err = skua_ib_access(dev->lim, odp->range.access, &access);
	if (err)
		goto err_put;
	skua_ib_odp_mpt(odp, access, &mpt);
	err = skua_ib_mr_create(mr, ibpd, &mpt);
	if (err)
		goto err_put;
	odp->key = mr->core.key;
	/* May replace a region with the same index that is being freed. */
	err = xa_err(xa_store(&dev->odps, skua_ib_odp_index(odp->key), odp,
			      GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_mr;
	mr->odp = odp;
	return 0;

err_mr:
	/* Cannot fail with -EBUSY: without MW_BIND there are no windows. */
	skua_mr_destroy(dev->core, &mr->core);
	skua_ib_user_uncharge(mr->user, SKUA_IB_RES_KEY, 1);
err_put:
	skua_ib_odp_put(odp);
	return err;
}

/**
 * skua_ib_odp_reg() - register an on-demand region
 * @mr: the memory region; @mr->range is set and checked, without ON_DEMAND
 * @ibpd: its protection domain
 * @start: user address of its first byte
 * @implicit: it is the implicit region
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_odp_reg(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start, bool implicit)
{
	struct skua_ib_odp *odp;
	int err;

	odp = skua_ib_odp_new(ibpd, &mr->range, start, implicit);
	if (IS_ERR(odp))
		return PTR_ERR(odp);
	err = skua_ib_odp_publish(odp, mr, ibpd);
	if (err)
		return err;
	/* Add the pages that are present, so that the device does not fault on them. */
	if (odp->whole)
		skua_ib_odp_page_in(odp, mr->range.va, mr->range.len, SKUA_ODP_PRESENT);
	return 0;
}

/**
 * skua_ib_odp_free() - free an on-demand region
 * @mr: the memory region, of which the MPT entry is destroyed
 */
void skua_ib_odp_free(struct skua_ib_mr *mr)
{
	struct skua_ib_odp *odp = mr->odp;

	if (!odp)
		return;
	xa_cmpxchg(&odp->dev->odps, skua_ib_odp_index(odp->key), odp, NULL, 0);
	skua_ib_odp_put(odp);
}
