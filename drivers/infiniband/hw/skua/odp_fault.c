// SPDX-License-Identifier: GPL-2.0
/*
 * Who has pages of on-demand regions brought in: the device, which waits for one, and
 * programs, which know that they will want some.
 */
#include <linux/mempool.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <rdma/restrack.h>
#include <net/netlink.h>
#include <uapi/rdma/rdma_netlink.h>

#include "odp.h"

/* Faults in the making for which there is memory in any case. */
#define SKUA_ODP_MIN_FAULTS	16
/* Prefetches at most that nobody waits for: programs may ask for any number. */
#define SKUA_ODP_MAX_ADVICES	64
/* Bytes at a time: others want the process' memory map, too. */
#define SKUA_ODP_FAULT_LEN	SZ_1M
#define SKUA_ODP_ADVICE_LEN	SZ_2M

/* --- page faults --- */

/**
 * struct skua_ib_fault - page fault being served
 * @work: serves it
 * @dev: the device
 * @what: what the device says of it
 */
struct skua_ib_fault {
	struct work_struct work;
	struct skua_ib_dev *dev;
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
	/* What comes later may be wanted in vain, but this need not be. */
	if (num < 0 && num != -EBUSY && len > 1)
		num = skua_ib_odp_page_in(odp, what->va, 1, how);
	/* Taken away again at once, time after time: the device may ask again. */
	if (num == -EBUSY)
		return 0;
	if (num < 0)
		return num;
	atomic64_add(num, &odp->faults);
	return 0;
}

static void skua_ib_fault_work(struct work_struct *work)
{
	struct skua_ib_fault *fault = container_of(work, struct skua_ib_fault, work);
	struct skua_ib_dev *dev = fault->dev;
	struct skua_ib_odp *odp = skua_ib_odp_get(dev, fault->what.key);
	int err = -ENOENT;

	if (odp) {
		err = skua_ib_fault_serve(odp, &fault->what);
		skua_ib_odp_put(odp);
	}
	if (err)
		ibdev_dbg(&dev->ibdev, "QP %#x: no page at %#llx for key %#x: %pe\n",
			  fault->what.qpn, fault->what.va, fault->what.key, ERR_PTR(err));
	skua_fault_resume(dev->core, fault->what.token, err);
	mempool_free(fault, dev->odp_pool);
}

/*
 * Faults are independent of each other, and one may take long. If there is no memory to
 * note it down, wait for one to end: meanwhile the device keeps the others.
 */
static void skua_ib_fault(struct skua_fault_handler *handler, const struct skua_page_fault *what)
{
	struct skua_ib_dev *dev = container_of(handler, struct skua_ib_dev, odp_handler);
	struct skua_ib_fault *fault = mempool_alloc(dev->odp_pool, GFP_KERNEL);

	INIT_WORK(&fault->work, skua_ib_fault_work);
	fault->dev = dev;
	fault->what = *what;
	queue_work(dev->odp_wq, &fault->work);
}

/* --- advice --- */

/**
 * struct skua_ib_advice_range - what to prefetch
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
 * struct skua_ib_advice - a prefetch
 * @work: does it, if nobody waits
 * @dev: the device
 * @how: how
 * @num: elements of @range
 * @range: what
 */
struct skua_ib_advice {
	struct work_struct work;
	struct skua_ib_dev *dev;
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

/* Look a range up, and see whether it may be prefetched so. */
static int skua_ib_advice_check(struct skua_ib_advice_range *range, struct skua_ib_dev *dev,
				u32 pdn, const struct ib_sge *sge, enum skua_ib_odp_how how)
{
	struct skua_ib_odp *odp = skua_ib_odp_get(dev, sge->lkey);

	if (!odp)
		return -ENOENT;
	/* With a reference from here on, whatever comes. */
	*range = (struct skua_ib_advice_range) { odp, sge->addr, sge->length };
	if (odp->range.pdn != pdn || (how == SKUA_ODP_WRITE && !odp->write))
		return -EPERM;
	if (sge->addr < odp->range.va || sge->addr - odp->range.va > odp->range.len ||
	    sge->length > odp->range.len - (sge->addr - odp->range.va))
		return -EFAULT;
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
	advice->dev = dev;
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

/* Nobody has use for the rest of it. */
static int skua_ib_advice_interrupted(const struct skua_ib_advice_range *range)
{
	const struct skua_ib_odp *odp = range->odp;

	if (skua_dead(odp->dev->core))
		return -EIO;
	if (fatal_signal_pending(current))
		return -EINTR;
	return skua_ib_odp_known(odp) ? 0 : -ENOENT;
}

static int skua_ib_advice_do_range(const struct skua_ib_advice_range *range,
				   enum skua_ib_odp_how how)
{
	u64 va = range->va, end = va + range->len;
	int num, err;

	while (va < end) {
		u64 next = min(ALIGN_DOWN(va, SKUA_ODP_ADVICE_LEN) + SKUA_ODP_ADVICE_LEN, end);

		err = skua_ib_advice_interrupted(range);
		if (err)
			return err;
		num = skua_ib_odp_page_in(range->odp, va, next - va, how);
		if (num == -EBUSY)
			continue;
		if (num < 0)
			return num == -ENOMEM || num == -ENOSPC ? -ENOMEM : -EFAULT;
		atomic64_add(num, &range->odp->prefetched);
		va = next;
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
	struct skua_ib_dev *dev = advice->dev;

	/* It was advice: what cannot be had is not missed until it is used. */
	skua_ib_advice_do(advice);
	skua_ib_advice_free(advice);
	atomic_dec(&dev->odp_advices);
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
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	enum skua_ib_odp_how how;
	int err;

	err = skua_ib_advice_how(what, &how);
	if (err)
		return err;
	if (flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;

	struct skua_ib_advice *advice __free(skua_ib_advice_free) =
		skua_ib_advice_new(ibpd, how, sge, num);

	if (IS_ERR(advice))
		return PTR_ERR(advice);
	/* With so many under way the program may as well do its own work. */
	if (flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH ||
	    !atomic_add_unless(&dev->odp_advices, 1, SKUA_ODP_MAX_ADVICES))
		return skua_ib_advice_do(advice);
	INIT_WORK(&advice->work, skua_ib_advice_work);
	queue_work(dev->odp_wq, &no_free_ptr(advice)->work);
	return 0;
}

/* --- what there is to see --- */

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
 * skua_ib_odp_fill_res() - the driver's view of an on-demand region
 * @msg: where to
 * @mr: the region
 *
 * Return: not 0 if there is no room.
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
		       rdma_nl_put_driver_u32(msg, "present",
					      READ_ONCE(odp->whole->umem->npages));
	return rdma_nl_put_driver_string(msg, "translation", odp->implicit ?
					 "on demand, implicit" : "on demand, in blocks") ||
	       rdma_nl_put_driver_u32(msg, "blocks", READ_ONCE(odp->num_blocks));
}

const struct ib_device_ops skua_ib_odp_ops = {
	.advise_mr = skua_ib_advise_mr,
	.fill_stat_mr_entry = skua_ib_fill_stat_mr,
};

/* --- coming and going --- */

/**
 * skua_ib_odp_init() - be there for page faults
 * @dev: the device, not yet registered
 *
 * Return: 0 or -ENOMEM.
 */
int skua_ib_odp_init(struct skua_ib_dev *dev)
{
	if (!skua_ib_has_odp(dev->lim))
		return 0;
	xa_init(&dev->odps);
	dev->odp_pool = mempool_create_kmalloc_pool(SKUA_ODP_MIN_FAULTS,
						    sizeof(struct skua_ib_fault));
	if (!dev->odp_pool)
		return -ENOMEM;
	dev->odp_wq = alloc_workqueue("skua_ib_odp", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!dev->odp_wq) {
		mempool_destroy(dev->odp_pool);
		return -ENOMEM;
	}
	dev->odp_handler.fault = skua_ib_fault;
	skua_fault_set_handler(dev->core, &dev->odp_handler);
	return 0;
}

/**
 * skua_ib_odp_exit() - undo skua_ib_odp_init()
 * @dev: the device, whose regions are gone; who pages in may still be at it
 */
void skua_ib_odp_exit(struct skua_ib_dev *dev)
{
	if (!skua_ib_has_odp(dev->lim))
		return;
	skua_fault_set_handler(dev->core, NULL);
	/* With them go the last references to regions, and what regions have queued. */
	flush_workqueue(dev->odp_wq);
	destroy_workqueue(dev->odp_wq);
	mempool_destroy(dev->odp_pool);
	WARN_ON_ONCE(!xa_empty(&dev->odps));
	xa_destroy(&dev->odps);
}
