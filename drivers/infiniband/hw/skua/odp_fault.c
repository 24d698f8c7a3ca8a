// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of the device in on-demand regions, and prefetches by ibv_advise_mr().
 */
#include <kunit/visibility.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <rdma/restrack.h>
#include <net/netlink.h>
#include <uapi/rdma/rdma_netlink.h>

#include "odp.h"

/*
 * Limits of a user: page faults served at a time, and prefetches in the background. If
 * user space provides a page it may never come, and all users share the workqueue.
 */
#define SKUA_ODP_MAX_FAULTS	32
#define SKUA_ODP_MAX_ADVICES	16
/* Bytes paged in at a time, to limit how long the mmap lock is held. */
#define SKUA_ODP_FAULT_LEN	SZ_1M
#define SKUA_ODP_ADVICE_LEN	SZ_2M

/* Page faults, prefetches in the background and freeing of empty blocks. */
struct workqueue_struct *skua_ib_odp_wq;
EXPORT_SYMBOL_IF_KUNIT(skua_ib_odp_wq);

/**
 * skua_ib_odp_queue_reap() - free the empty blocks of a region after a while
 * @odp: the region, which is divided
 */
void skua_ib_odp_queue_reap(struct skua_ib_odp *odp)
{
	queue_delayed_work(skua_ib_odp_wq, &odp->reap, SKUA_ODP_REAP_DELAY);
}

/* --- page faults --- */

/**
 * struct skua_ib_fault - page fault to be served
 * @work: work item that serves it and then others of the same user
 * @link: entry in the user's list of waiting faults
 * @odp: the region, with a reference
 * @what: the fault as the device reported it
 */
struct skua_ib_fault {
	struct work_struct work;
	struct list_head link;
	struct skua_ib_odp *odp;
	struct skua_page_fault what;
};

static int skua_ib_fault_serve(struct skua_ib_odp *odp, const struct skua_page_fault *what)
{
	enum skua_ib_odp_how how = what->write ? SKUA_ODP_WRITE : SKUA_ODP_READ;
	u64 pos = what->va - odp->range.va;
	u64 len = clamp(what->len, 1, SKUA_ODP_FAULT_LEN);
	int num;

	if (what->va < odp->range.va || pos >= odp->range.len || (what->write && !odp->write))
		return -EFAULT;
	len = min(len, odp->range.len - pos);
	num = skua_ib_odp_page_in(odp, what->va, len, how);
	/* The message may be shorter than the device expects: try the first page alone. */
	if (num < 0 && num != -EBUSY && len > 1)
		num = skua_ib_odp_page_in(odp, what->va, 1, how);
	/* The page was invalidated repeatedly. The device retries and faults again. */
	if (num == -EBUSY)
		return 0;
	if (num < 0)
		return num;
	atomic64_add(num, &odp->faults);
	return 0;
}

static void skua_ib_fault_end(struct skua_ib_dev *dev, const struct skua_page_fault *what,
			      int err)
{
	/* If the device is gone, so are the queue and the PCI device that the message names. */
	if (!skua_ib_odp_enter(dev))
		return;
	if (err)
		ibdev_dbg(&dev->ibdev, "QP %#x: page fault at %#llx of key %#x failed: %pe\n",
			  what->qpn, what->va, what->key, ERR_PTR(err));
	skua_fault_resume(dev->core, what->token, err);
	skua_ib_odp_leave(dev);
}

/* A fault of the user was served: get the next one that waits, or NULL. */
static struct skua_ib_fault *skua_ib_fault_next(struct skua_ib_user *user)
{
	struct skua_ib_fault *fault;

	if (!user)
		return NULL;
	guard(spinlock)(&user->fault_lock);
	fault = list_first_entry_or_null(&user->faults, struct skua_ib_fault, link);
	if (fault)
		list_del(&fault->link);
	else
		user->serving--;
	return fault;
}

static void skua_ib_fault_work(struct work_struct *work)
{
	struct skua_ib_fault *fault = container_of(work, struct skua_ib_fault, work);
	struct skua_ib_user *user = skua_ib_user_hold(fault->odp->user);

	while (fault) {
		struct skua_ib_odp *odp = fault->odp;
		int err = -ENOENT;

		if (skua_ib_odp_known(odp))
			err = skua_ib_fault_serve(odp, &fault->what);
		skua_ib_fault_end(odp->dev, &fault->what, err);
		skua_ib_odp_put(odp);
		kfree(fault);
		fault = skua_ib_fault_next(user);
	}
	skua_ib_user_put(user);
}

/* Return: true if the fault is to be served now; else it waits in the user's list. */
static bool skua_ib_fault_admit(struct skua_ib_fault *fault, struct skua_ib_user *user)
{
	if (!user)
		return true;
	guard(spinlock)(&user->fault_lock);
	if (user->serving == SKUA_ODP_MAX_FAULTS) {
		list_add_tail(&fault->link, &user->faults);
		return false;
	}
	user->serving++;
	return true;
}

/* Each fault gets a work item of its own, because serving it may take long. */
static void skua_ib_fault(struct skua_fault_handler *handler, const struct skua_page_fault *what)
{
	struct skua_ib_dev *dev = container_of(handler, struct skua_ib_dev, odp_handler);
	struct skua_ib_odp *odp = skua_ib_odp_get(dev, what->key);
	struct skua_ib_fault *fault;

	if (!odp) {
		skua_ib_fault_end(dev, what, -ENOENT);
		return;
	}
	/*
	 * This runs on the workqueue that the end of QPs waits for, also in memory reclaim: it
	 * must not wait for memory.
	 */
	fault = kmalloc_obj(*fault, GFP_NOWAIT);
	if (!fault) {
		/* Have the device retry; there may be memory then. */
		skua_ib_odp_put(odp);
		skua_ib_fault_end(dev, what, 0);
		return;
	}
	INIT_WORK(&fault->work, skua_ib_fault_work);
	fault->odp = odp;
	fault->what = *what;
	if (skua_ib_fault_admit(fault, odp->user))
		queue_work(skua_ib_odp_wq, &fault->work);
}

/* --- ibv_advise_mr() --- */

/**
 * struct skua_ib_advice_range - a range to prefetch
 * @odp: region, with a reference
 * @va: first byte
 * @len: bytes
 */
struct skua_ib_advice_range {
	struct skua_ib_odp *odp;
	u64 va;
	u32 len;
};

/**
 * struct skua_ib_advice - a prefetch request
 * @work: executes it in the background
 * @user: account of the user; with a reference if in the background
 * @how: how to page in
 * @num: elements of @range
 * @range: what to page in
 */
struct skua_ib_advice {
	struct work_struct work;
	struct skua_ib_user *user;
	enum skua_ib_odp_how how;
	u32 num;
	struct skua_ib_advice_range range[] __counted_by(num);
};

static void skua_ib_advice_free(struct skua_ib_advice *advice)
{
	u32 i;

	if (IS_ERR_OR_NULL(advice))
		return;
	for (i = 0; i < advice->num; i++)
		if (advice->range[i].odp)
			skua_ib_odp_put(advice->range[i].odp);
	kvfree(advice);
}

DEFINE_FREE(skua_ib_advice_free, struct skua_ib_advice *, skua_ib_advice_free(_T))

/* Look up the region of an element and check domain, access and range. */
static int skua_ib_advice_check(struct skua_ib_advice_range *range, struct skua_ib_dev *dev,
				u32 pdn, const struct ib_sge *sge, enum skua_ib_odp_how how)
{
	struct skua_ib_odp *odp = skua_ib_odp_get(dev, sge->lkey);

	if (!odp)
		return skua_ib_refuse(dev, -ENOENT,
				      "advise_mr: key %#x does not belong to an on-demand region",
				      sge->lkey);
	/* The reference is dropped with @range, also on failure. */
	*range = (struct skua_ib_advice_range) { odp, sge->addr, sge->length };
	if (odp->range.pdn != pdn || (how == SKUA_ODP_WRITE && !odp->write))
		return skua_ib_refuse(dev, -EPERM, "advise_mr: key %#x: %s", sge->lkey,
				      odp->range.pdn != pdn ? "another protection domain" :
							      "the region is read-only");
	if (sge->addr < odp->range.va || sge->addr - odp->range.va > odp->range.len ||
	    sge->length > odp->range.len - (sge->addr - odp->range.va))
		return skua_ib_refuse(dev, -EFAULT,
				      "advise_mr: key %#x: %u bytes at %#llx exceed the region of %llu bytes at %#llx",
				      sge->lkey, sge->length, sge->addr, odp->range.len,
				      odp->range.va);
	return 0;
}

static struct skua_ib_advice *skua_ib_advice_new(struct ib_pd *ibpd, enum skua_ib_odp_how how,
						 const struct ib_sge *sge, u32 num)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	u32 i;
	int err;

	struct skua_ib_advice *advice __free(skua_ib_advice_free) =
		kvzalloc(struct_size(advice, range, num), GFP_KERNEL_ACCOUNT);

	if (!advice)
		return ERR_PTR(-ENOMEM);
	advice->user = skua_ib_pd_user(ibpd);
	advice->how = how;
	advice->num = num;
	for (i = 0; i < num; i++) {
		err = skua_ib_advice_check(&advice->range[i], dev, skua_ib_pdn(ibpd), &sge[i],
					   how);
		if (err)
			return ERR_PTR(err);
	}
	return no_free_ptr(advice);
}

/* Return: 0, or an errno if the rest of a prefetch is of no use. */
static int skua_ib_advice_interrupted(const struct skua_ib_advice_range *range)
{
	const struct skua_ib_odp *odp = range->odp;
	bool dead;

	if (!skua_ib_odp_enter(odp->dev))
		return -ENODEV;
	dead = skua_dead(odp->dev->core);
	skua_ib_odp_leave(odp->dev);
	if (dead)
		return -EIO;
	if (fatal_signal_pending(current))
		return -EINTR;
	return skua_ib_odp_known(odp) ? 0 : -ENOENT;
}

/*
 * How many of @left bytes at @va to page in at a time? skua_ib_odp_page_in() stops at the end
 * of a block. Blocks are aligned by address, and @va may have another offset.
 */
static u64 skua_ib_advice_len(const struct skua_ib_odp *odp, u64 va, u64 left)
{
	u64 addr = va - odp->range.va + odp->start;

	static_assert(!(SKUA_ODP_BLOCK_SIZE % SKUA_ODP_ADVICE_LEN));
	return min(SKUA_ODP_ADVICE_LEN - (addr & (SKUA_ODP_ADVICE_LEN - 1)), left);
}

static int skua_ib_advice_do_range(const struct skua_ib_advice_range *range,
				   enum skua_ib_odp_how how)
{
	u64 va = range->va, end = va + range->len, len;
	int num, err;

	while (va < end) {
		err = skua_ib_advice_interrupted(range);
		if (err)
			return err;
		len = skua_ib_advice_len(range->odp, va, end - va);
		num = skua_ib_odp_page_in(range->odp, va, len, how);
		if (num == -EBUSY)
			continue;
		if (num < 0)
			return num == -ENOMEM || num == -ENOSPC ? -ENOMEM : -EFAULT;
		atomic64_add(num, &range->odp->prefetched);
		va += len;
		cond_resched();
	}
	return 0;
}

static int skua_ib_advice_do(const struct skua_ib_advice *advice)
{
	int err = 0;
	u32 i;

	for (i = 0; !err && i < advice->num; i++)
		err = skua_ib_advice_do_range(&advice->range[i], advice->how);
	return err;
}

static void skua_ib_advice_work(struct work_struct *work)
{
	struct skua_ib_advice *advice = container_of(work, struct skua_ib_advice, work);
	struct skua_ib_user *user = advice->user;

	/* An error has no one to be reported to; the device faults on access. */
	skua_ib_advice_do(advice);
	skua_ib_advice_free(advice);
	atomic_dec(&user->advices);
	skua_ib_user_put(user);
}

static int skua_ib_advice_how(enum ib_uverbs_advise_mr_advice advice, enum skua_ib_odp_how *how)
{
	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		*how = SKUA_ODP_READ;
		return 0;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		*how = SKUA_ODP_WRITE;
		return 0;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		*how = SKUA_ODP_PRESENT;
		return 0;
	}
	return -EOPNOTSUPP;
}

static int skua_ib_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice what, u32 flags,
			     struct ib_sge *sge, u32 num, struct uverbs_attr_bundle *attrs)
{
	enum skua_ib_odp_how how;
	int err;

	err = skua_ib_advice_how(what, &how);
	if (err)
		return skua_ib_refuse(to_skua_dev(ibpd->device), err,
				      "advise_mr: advice %d is not supported", what);
	if (flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return skua_ib_refuse(to_skua_dev(ibpd->device), -EINVAL,
				      "advise_mr: flags %#x, only FLUSH is supported", flags);

	struct skua_ib_advice *advice __free(skua_ib_advice_free) =
		skua_ib_advice_new(ibpd, how, sge, num);

	if (IS_ERR(advice))
		return PTR_ERR(advice);
	/*
	 * At the limit of background prefetches the caller does the work itself. So does
	 * a kernel consumer, which has no account.
	 */
	if (flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH || !advice->user ||
	    !atomic_add_unless(&advice->user->advices, 1, SKUA_ODP_MAX_ADVICES))
		return skua_ib_advice_do(advice);
	skua_ib_user_hold(advice->user);
	INIT_WORK(&advice->work, skua_ib_advice_work);
	queue_work(skua_ib_odp_wq, &no_free_ptr(advice)->work);
	return 0;
}

/* --- resource tracking --- */

static int skua_ib_fill_stat_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct skua_ib_odp *odp = to_skua_mr(ibmr)->odp;
	struct nlattr *nest;

	if (!odp)
		return 0;
	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!nest)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults", atomic64_read(&odp->faults)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					 atomic64_read(&odp->invalidations)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					 atomic64_read(&odp->prefetched))) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}

/**
 * skua_ib_odp_fill_res() - add the driver's details of an on-demand region
 * @msg: netlink message
 * @mr: the region
 *
 * Return: nonzero if the message is full.
 */
int skua_ib_odp_fill_res(struct sk_buff *msg, const struct skua_ib_mr *mr)
{
	const struct skua_ib_odp *odp = mr->odp;

	if (odp->dmabuf)
		return rdma_nl_put_driver_string(msg, "translation", "dma-buf") ||
		       rdma_nl_put_driver_u32(msg, "pages", odp->dmabuf->mtt.npages) ||
		       rdma_nl_put_driver_u32(msg, "present", READ_ONCE(odp->dmabuf->present) ?
					      odp->dmabuf->mtt.npages : 0);
	if (odp->whole)
		return rdma_nl_put_driver_string(msg, "translation", "on demand") ||
		       rdma_nl_put_driver_u32(msg, "pages", odp->whole->mtt.npages) ||
		       rdma_nl_put_driver_u32(msg, "present", READ_ONCE(odp->whole->present));
	return rdma_nl_put_driver_string(msg, "translation", odp->implicit ?
					 "on demand, implicit" : "on demand, in blocks") ||
	       rdma_nl_put_driver_u32(msg, "blocks", READ_ONCE(odp->num_blocks));
}

const struct ib_device_ops skua_ib_odp_ops = {
	.advise_mr = skua_ib_advise_mr,
	.fill_stat_mr_entry = skua_ib_fill_stat_mr,
};

/* --- setup --- */

/**
 * skua_ib_odp_init() - start to serve page faults
 * @dev: the device, not yet registered
 *
 * Return: 0 or -ENOMEM.
 */
int skua_ib_odp_init(struct skua_ib_dev *dev)
{
	if (!skua_ib_has_odp(dev->lim))
		return 0;
	xa_init_flags(&dev->odps, XA_FLAGS_ACCOUNT);
	init_rwsem(&dev->odp_sem);
	spin_lock_init(&dev->odp_lock);
	INIT_LIST_HEAD(&dev->odp_blocks);
	INIT_LIST_HEAD(&dev->odp_dirs);
	INIT_LIST_HEAD(&dev->odp_dmabufs);
	dev->odp_handler.fault = skua_ib_fault;
	skua_fault_set_handler(dev->core, &dev->odp_handler);
	return 0;
}

/**
 * skua_ib_odp_exit() - undo skua_ib_odp_init()
 * @dev: the device without memory regions; work items may still be waiting for pages of
 *	on-demand regions, and have references to these and to @dev
 *
 * On return nothing of on-demand regions uses the device.
 */
void skua_ib_odp_exit(struct skua_ib_dev *dev)
{
	struct skua_ib_odp_dmabuf *mem, *next_mem;
	struct skua_ib_odp_block *block, *next;
	struct skua_ib_odp *odp, *next_odp;

	if (!skua_ib_has_odp(dev->lim))
		return;
	skua_fault_set_handler(dev->core, NULL);
	WARN_ON_ONCE(!xa_empty(&dev->odps));
	guard(rwsem_write)(&dev->odp_sem);
	dev->odp_gone = true;
	/* The lists do not change, because that takes skua_ib_odp_enter(). */
	list_for_each_entry_safe(odp, next_odp, &dev->odp_dirs, link)
		skua_ib_odp_dir_detach(odp);
	list_for_each_entry_safe(block, next, &dev->odp_blocks, link)
		skua_ib_odp_block_detach(block);
	list_for_each_entry_safe(mem, next_mem, &dev->odp_dmabufs, link)
		skua_ib_odp_dmabuf_detach(mem);
}

/**
 * skua_ib_odp_module_init() - allocate the workqueue of all devices
 *
 * It does not belong to a device, because work items that wait for pages may outlive that.
 *
 * Return: 0 or -ENOMEM.
 */
int __init skua_ib_odp_module_init(void)
{
	skua_ib_odp_wq = alloc_workqueue("skua_ib_odp", WQ_UNBOUND | WQ_MEM_RECLAIM,
					 WQ_MAX_ACTIVE);
	return skua_ib_odp_wq ? 0 : -ENOMEM;
}

/**
 * skua_ib_odp_module_exit() - undo skua_ib_odp_module_init()
 *
 * Waits for work items. Regions have references to the module, so none of these waits for a
 * page.
 */
void skua_ib_odp_module_exit(void)
{
	destroy_workqueue(skua_ib_odp_wq);
}
