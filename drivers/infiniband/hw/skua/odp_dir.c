// SPDX-License-Identifier: GPL-2.0
/*
 * Directories of on-demand regions: a long region is divided into blocks, each with its
 * own page list and notifier. Blocks are created when a page in them is first accessed,
 * and freed when they are empty or when the region needs their MTT entries for others.
 *
 * The directory of many blocks has two levels. Directories of the second level are
 * created with their first block, so that MTT indices, which all regions share, are used
 * in proportion to the blocks and not to the size of the address space.
 */
#include <kunit/visibility.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "odp.h"

/* log2 of the largest number of blocks for which the directory has one level. */
#define SKUA_ODP_LOG_FLAT	10

/**
 * struct skua_ib_odp_mid - directory of the second level
 * @dir: its MTT entries
 * @blocks: number of blocks in it; it is freed with the last one
 */
struct skua_ib_odp_mid {
	struct skua_mtt dir;
	u32 blocks;
};

/* --- the second level --- */

static struct skua_ib_odp_mid *skua_ib_odp_mid_new(struct skua_ib_odp *odp, u32 top)
{
	struct skua_dev *core = odp->dev->core;
	struct skua_ib_odp_mid *mid;
	int err;

	mid = kzalloc_obj(*mid, GFP_KERNEL_ACCOUNT);
	if (!mid)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_user_charge(odp->user, SKUA_IB_RES_MTT, BIT(odp->log_mid));
	if (err)
		goto err_mid;
	err = skua_mtt_reserve(core, &mid->dir, BIT(odp->log_mid));
	if (err)
		goto err_user;
	err = xa_err(xa_store(&odp->mids, top, mid, GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_dir;
	err = skua_mtt_dir_set(core, &odp->dir, top, &mid->dir);
	if (err)
		goto err_erase;
	return mid;

err_erase:
	xa_erase(&odp->mids, top);
err_dir:
	skua_mtt_dir_free(core, &mid->dir);
err_user:
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, BIT(odp->log_mid));
err_mid:
	kfree(mid);
	return ERR_PTR(err);
}

static void skua_ib_odp_mid_free(struct skua_ib_odp *odp, u32 top, struct skua_ib_odp_mid *mid)
{
	struct skua_dev *core = odp->dev->core;

	skua_mtt_dir_clear(core, &odp->dir, top);
	xa_erase(&odp->mids, top);
	skua_mtt_dir_free(core, &mid->dir);
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, BIT(odp->log_mid));
	kfree(mid);
}

/* Add the page list of a block to the directory. */
static int skua_ib_odp_link(struct skua_ib_odp *odp, unsigned long index,
			    const struct skua_mtt *list)
{
	u32 top = index >> odp->log_mid, i = index & (BIT(odp->log_mid) - 1);
	struct skua_dev *core = odp->dev->core;
	struct skua_ib_odp_mid *mid;
	int err;

	if (!odp->log_mid)
		return skua_mtt_dir_set(core, &odp->dir, index, list);
	mid = xa_load(&odp->mids, top) ?: skua_ib_odp_mid_new(odp, top);
	if (IS_ERR(mid))
		return PTR_ERR(mid);
	err = skua_mtt_dir_set(core, &mid->dir, i, list);
	if (!err)
		mid->blocks++;
	else if (!mid->blocks)
		skua_ib_odp_mid_free(odp, top, mid);
	return err;
}

static void skua_ib_odp_unlink(struct skua_ib_odp *odp, unsigned long index)
{
	u32 top = index >> odp->log_mid, i = index & (BIT(odp->log_mid) - 1);
	struct skua_ib_odp_mid *mid;

	if (!odp->log_mid) {
		skua_mtt_dir_clear(odp->dev->core, &odp->dir, index);
		return;
	}
	mid = xa_load(&odp->mids, top);
	skua_mtt_dir_clear(odp->dev->core, &mid->dir, i);
	if (!--mid->blocks)
		skua_ib_odp_mid_free(odp, top, mid);
}

/* --- blocks --- */

static void skua_ib_odp_block_drop(struct skua_ib_odp *odp, unsigned long index)
{
	bool here = skua_ib_odp_enter(odp->dev);
	struct skua_ib_odp_block *block = xa_erase(&odp->blocks, index);

	odp->num_blocks--;
	if (here) {
		skua_ib_odp_unlink(odp, index);
		skua_ib_odp_leave(odp->dev);
	}
	skua_ib_odp_block_put(block);
}

/* Drop one block, in round robin order. Threads that page in have their own references. */
static void skua_ib_odp_evict(struct skua_ib_odp *odp)
{
	if (!xa_find_after(&odp->blocks, &odp->victim, ULONG_MAX, XA_PRESENT)) {
		odp->victim = 0;
		xa_find(&odp->blocks, &odp->victim, ULONG_MAX, XA_PRESENT);
	}
	skua_ib_odp_block_drop(odp, odp->victim);
}

/* Between skua_ib_odp_enter() and skua_ib_odp_leave(), as the memory uses the device. */
static struct skua_ib_odp_block *skua_ib_odp_block_alloc(struct skua_ib_odp *odp,
							 unsigned long index)
{
	struct skua_ib_odp_block *block;
	int err;

	block = kzalloc_obj(*block, GFP_KERNEL_ACCOUNT);
	if (!block)
		return ERR_PTR(-ENOMEM);
	/* Does not wait for the mmap lock, after skua_ib_odp_mm_prepare(). */
	err = skua_ib_odp_block_init(block, odp,
				     ib_umem_odp_alloc_child(odp->root, odp->base +
							     (u64)index * SKUA_ODP_BLOCK_SIZE,
							     SKUA_ODP_BLOCK_SIZE,
							     &skua_ib_odp_mmu_ops),
				     SKUA_ODP_BLOCK_PAGES);
	if (err) {
		kfree(block);
		return ERR_PTR(err);
	}
	return block;
}

/*
 * Add a block to the region. @odp->blocks has the blocks that are linked as long as the device
 * is not gone, for skua_ib_odp_dir_detach().
 */
static int skua_ib_odp_block_add(struct skua_ib_odp *odp, struct skua_ib_odp_block *block,
				 unsigned long index)
{
	int err;

	err = xa_err(xa_store(&odp->blocks, index, block, GFP_KERNEL_ACCOUNT));
	if (err)
		return err;
	err = skua_ib_odp_link(odp, index, &block->mtt);
	if (err)
		xa_erase(&odp->blocks, index);
	else
		odp->num_blocks++;
	return err;
}

static struct skua_ib_odp_block *skua_ib_odp_block_new(struct skua_ib_odp *odp,
						       unsigned long index)
{
	struct skua_ib_odp_block *block;
	int err = 0;

	if (!skua_ib_odp_enter(odp->dev))
		return ERR_PTR(-ENODEV);
	block = skua_ib_odp_block_alloc(odp, index);
	if (!IS_ERR(block))
		err = skua_ib_odp_block_add(odp, block, index);
	skua_ib_odp_leave(odp->dev);
	if (!err)
		return block;
	skua_ib_odp_block_put(block);
	return ERR_PTR(err);
}

/*
 * If there are no MTT entries for one more block, another block of the region is evicted.
 * Return -EBUSY if that one is still in use; it is freed by the time the device retries.
 */
static struct skua_ib_odp_block *skua_ib_odp_block_make(struct skua_ib_odp *odp,
							unsigned long index)
{
	struct skua_ib_odp_block *block = skua_ib_odp_block_new(odp, index);

	if (PTR_ERR_OR_ZERO(block) != -ENOSPC || !odp->num_blocks)
		return block;
	skua_ib_odp_evict(odp);
	block = skua_ib_odp_block_new(odp, index);
	return PTR_ERR_OR_ZERO(block) == -ENOSPC ? ERR_PTR(-EBUSY) : block;
}

static struct skua_ib_odp_block *skua_ib_odp_dir_find(struct skua_ib_odp *odp,
						      unsigned long index, bool *fresh)
{
	struct mem_cgroup *memcg, *old;
	struct skua_ib_odp_block *block;

	guard(mutex)(&odp->lock);
	block = xa_load(&odp->blocks, index);
	*fresh = !block;
	if (!block) {
		memcg = get_mem_cgroup_from_mm(odp->root->umem.owning_mm);
		old = set_active_memcg(memcg);
		block = skua_ib_odp_block_make(odp, index);
		set_active_memcg(old);
		mem_cgroup_put(memcg);
	}
	if (!IS_ERR(block))
		refcount_inc(&block->ref);
	return block;
}

/**
 * skua_ib_odp_dir_get() - get the block of an address, create it if needed
 * @odp: the region
 * @addr: the address
 * @fresh: filled in: the block was created by this call
 *
 * Allocations are charged to the memory control group of the process that registered the
 * region, whichever thread calls.
 *
 * Return: the block with a reference, -EBUSY if the caller should retry later, -EFAULT if the
 * process has ended, or another negative errno.
 */
struct skua_ib_odp_block *skua_ib_odp_dir_get(struct skua_ib_odp *odp, u64 addr, bool *fresh)
{
	unsigned long index = (addr - odp->base) >> SKUA_ODP_LOG_BLOCK;
	struct mm_struct *mm = odp->root->umem.owning_mm;
	struct skua_ib_odp_block *block;

	/*
	 * ib_umem_odp_alloc_child() ends with mmput(). If that were the last one, the address space
	 * would end there, with odp_sem held, for which a reset of the device waits; and user space
	 * can make that take arbitrarily long.
	 */
	*fresh = false;
	if (!mmget_not_zero(mm))
		return ERR_PTR(-EFAULT);
	block = skua_ib_odp_dir_find(odp, index, fresh);
	mmput_async(mm);
	return block;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_odp_dir_get);

static void skua_ib_odp_reap(struct work_struct *work)
{
	struct skua_ib_odp *odp = container_of(to_delayed_work(work), struct skua_ib_odp, reap);
	struct skua_ib_odp_block *block;
	unsigned long index;

	guard(mutex)(&odp->lock);
	xa_for_each(&odp->blocks, index, block) {
		bool empty;

		scoped_guard(mutex, &block->umem->umem_mutex)
			empty = !block->present;
		/* If it gets pages meanwhile, the device faults on them once more. */
		if (empty && refcount_read(&block->ref) == 1)
			skua_ib_odp_block_drop(odp, index);
	}
}

/* --- creation and destruction --- */

/**
 * skua_ib_odp_dir_init() - divide a region into blocks
 * @odp: the region
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_odp_dir_init(struct skua_ib_odp *odp)
{
	u64 end = odp->start + odp->range.len, blocks, entries;
	struct ib_umem_odp *root;
	int err;

	mutex_init(&odp->lock);
	xa_init_flags(&odp->mids, XA_FLAGS_ACCOUNT);
	xa_init_flags(&odp->blocks, XA_FLAGS_ACCOUNT);
	INIT_DELAYED_WORK(&odp->reap, skua_ib_odp_reap);
	odp->base = ALIGN_DOWN(odp->start, SKUA_ODP_BLOCK_SIZE);
	blocks = (ALIGN(end, SKUA_ODP_BLOCK_SIZE) - odp->base) >> SKUA_ODP_LOG_BLOCK;
	if (blocks > BIT(SKUA_ODP_LOG_FLAT))
		odp->log_mid = fls64(blocks - 1) / 2;
	entries = (blocks + BIT(odp->log_mid) - 1) >> odp->log_mid;
	err = skua_ib_user_charge(odp->user, SKUA_IB_RES_MTT, entries);
	if (err)
		return err;
	err = skua_mtt_reserve(odp->dev->core, &odp->dir, entries);
	if (err)
		goto err_user;
	root = ib_umem_odp_alloc_implicit(&odp->dev->ibdev,
					  odp->range.access & ~IB_ACCESS_HUGETLB);
	if (IS_ERR(root)) {
		err = PTR_ERR(root);
		goto err_dir;
	}
	err = skua_ib_odp_mm_prepare(root->umem.owning_mm);
	if (err)
		goto err_root;
	/* The umem does not hold a reference to the mm_struct. */
	mmgrab(root->umem.owning_mm);
	odp->root = root;
	spin_lock(&odp->dev->odp_lock);
	list_add(&odp->link, &odp->dev->odp_dirs);
	spin_unlock(&odp->dev->odp_lock);
	return 0;

err_root:
	ib_umem_odp_release(root);
err_dir:
	skua_mtt_unreserve(odp->dev->core, &odp->dir);
err_user:
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, entries);
	return err;
}

/**
 * skua_ib_odp_dir_detach() - have the directories of a region not use the device any more
 * @odp: the region, of which the MPT entry is destroyed
 *
 * The caller excludes skua_ib_odp_exit(), or is it. That one does not take the region's lock,
 * with which a thread may be waiting for the mmap lock: who changes the directories excludes
 * it by skua_ib_odp_enter().
 */
void skua_ib_odp_dir_detach(struct skua_ib_odp *odp)
{
	struct skua_ib_odp_block *block;
	unsigned long index;

	xa_for_each(&odp->blocks, index, block)
		skua_ib_odp_unlink(odp, index);
	WARN_ON_ONCE(!xa_empty(&odp->mids));
	skua_mtt_dir_free(odp->dev->core, &odp->dir);
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, odp->dir.npages);
	scoped_guard(spinlock, &odp->dev->odp_lock)
		list_del(&odp->link);
}

/**
 * skua_ib_odp_dir_destroy() - free all blocks and undo skua_ib_odp_dir_init()
 * @odp: the region, of which the MPT entry is destroyed
 */
void skua_ib_odp_dir_destroy(struct skua_ib_odp *odp)
{
	struct skua_ib_odp_block *block;
	unsigned long index;

	disable_delayed_work_sync(&odp->reap);
	scoped_guard(mutex, &odp->lock)
		xa_for_each(&odp->blocks, index, block)
			skua_ib_odp_block_drop(odp, index);
	xa_destroy(&odp->blocks);
	if (skua_ib_odp_enter(odp->dev)) {
		skua_ib_odp_dir_detach(odp);
		skua_ib_odp_leave(odp->dev);
	}
	mmdrop(odp->root->umem.owning_mm);
	ib_umem_odp_release(odp->root);
}
