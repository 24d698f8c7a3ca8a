// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: creation, changes and destruction. Kernel CQs are polled in poll.c.
 */
#include <kunit/visibility.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/*
 * Call the completion handler, but not that of a kernel CQ that was never armed: the RDMA
 * core sets the handler only after create_cq() has returned, and the handler of a CQ that
 * is only polled must not be called.
 */
static void skua_ib_cq_call(struct skua_ib_cq *cq)
{
	struct ib_cq *ibcq = &cq->ibcq;
	bool idle = cq->ring && !READ_ONCE(cq->arm_serial);

	if (!idle && ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

/* Called in hard interrupt context. */
static void skua_ib_cq_comp(struct skua_cq *core)
{
	skua_ib_cq_call(container_of(core, struct skua_ib_cq, core));
}

static void skua_ib_cq_event(struct skua_cq *core, enum skua_cq_err err)
{
	struct ib_cq *ibcq = &container_of(core, struct skua_ib_cq, core)->ibcq;
	struct ib_event event = {
		.device = ibcq->device,
		.element.cq = ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	ibdev_dbg(ibcq->device, "CQ %u: %s\n", core->obj.num,
		  err == SKUA_CQ_ERR_OVERRUN ? "overrun" : "ring not accessible");
	if (ibcq->event_handler)
		ibcq->event_handler(&event, ibcq->cq_context);
}

static void skua_ib_cq_wake(struct work_struct *work)
{
	struct skua_ib_cq *cq = container_of(work, struct skua_ib_cq, wake);

	guard(spinlock_irqsave)(&to_skua_dev(cq->ibcq.device)->cq_lock);
	skua_ib_cq_call(cq);
}

/**
 * skua_ib_wake_all() - call the completion handlers of CQs in use
 * @dev: the device, just declared dead
 *
 * Consumers that wait for an event poll again: kernel CQs then return flushed
 * completions, user space reads its status page.
 */
void skua_ib_wake_all(struct skua_ib_dev *dev)
{
	struct skua_ib_cq *cq;

	guard(spinlock_irqsave)(&dev->cq_lock);
	list_for_each_entry(cq, &dev->cqs, link) {
		/*
		 * ib_alloc_cq() may still be at work on a kernel CQ without QPs: it arms the CQ
		 * before it sets the workqueue that the handler uses. Nobody waits for a
		 * completion there. skua_ib_wake_if_dead() wakes it if a QP comes and posts.
		 */
		if (!cq->ring || !xa_empty(&cq->qps))
			skua_ib_cq_call(cq);
	}
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_wake_all);

/* Check and fill in what user and kernel CQs have in common. */
static int skua_ib_cq_init(struct skua_ib_cq *cq, const struct ib_cq_init_attr *attr,
			   struct skua_cqc *cqc)
{
	struct skua_ib_dev *dev = to_skua_dev(cq->ibcq.device);
	u64 caps = dev->lim->caps;
	u32 known = IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;

	if (caps & SKUA_CAP_TIMESTAMP)
		known |= IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	if (attr->flags & ~known)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_cq: flags %#x, supported %#x",
				      attr->flags, known);
	if (!attr->cqe || attr->cqe > dev->lim->max_cqe)
		return skua_ib_refuse(dev, -EINVAL, "create_cq: %u entries, must be 1 to %u",
				      attr->cqe, dev->lim->max_cqe);
	if (attr->comp_vector >= cq->ibcq.device->num_comp_vectors)
		return skua_ib_refuse(dev, -EINVAL, "create_cq: vector %u, must be below %d",
				      attr->comp_vector, cq->ibcq.device->num_comp_vectors);
	if (skua_ib_dead(dev))
		return -EIO;

	cq->log_size = order_base_2(attr->cqe);
	cq->core.comp = skua_ib_cq_comp;
	cq->core.event = skua_ib_cq_event;
	cq->core.vector = attr->comp_vector;
	INIT_WORK(&cq->wake, skua_ib_cq_wake);
	mutex_init(&cq->resize_lock);
	cqc->flags = le32_encode_bits(cq->log_size, SKUA_CQC_LOG_SIZE);
	if (attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
		cqc->flags |= cpu_to_le32(SKUA_CQC_IGNORE_OVERRUN);
	return 0;
}

static void skua_ib_cq_publish(struct skua_ib_dev *dev, struct skua_ib_cq *cq)
{
	cq->ibcq.cqe = BIT(cq->log_size);
	scoped_guard(spinlock_irqsave, &dev->cq_lock)
		list_add(&cq->link, &dev->cqs);
}

static void skua_ib_cq_withdraw(struct skua_ib_dev *dev, struct skua_ib_cq *cq)
{
	scoped_guard(spinlock_irqsave, &dev->cq_lock)
		list_del(&cq->link);
	skua_cq_destroy(dev->core, &cq->core);
	cancel_work_sync(&cq->wake);
}

static int skua_ib_create_kernel_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr)
{
	struct skua_ib_dev *dev = to_skua_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_cq(ibcq);
	struct skua_cqc cqc = {};
	size_t size;
	int err;

	err = skua_ib_cq_init(cq, attr, &cqc);
	if (err)
		return err;

	spin_lock_init(&cq->lock);
	xa_init_flags(&cq->qps, XA_FLAGS_LOCK_IRQ);
	size = sizeof(struct skua_cqe) << cq->log_size;
	err = skua_ib_kbuf_alloc(dev, &cq->buf, size + sizeof(struct skua_cq_dbr));
	if (err)
		return err;
	cq->ring = cq->buf.va;
	cq->dbr = cq->buf.va + size;
	cqc.uar = cpu_to_le32(skua_kernel_uar(dev->core)->index);
	cqc.ring = skua_ib_kbuf_xlat(&cq->buf, 0);
	cqc.dbr = cpu_to_le64(skua_ib_kbuf_dma(&cq->buf, size));
	err = skua_cq_create(dev->core, &cq->core, &cqc);
	if (err) {
		skua_ib_kbuf_free(dev, &cq->buf);
		return err;
	}
	skua_ib_cq_publish(dev, cq);
	return 0;
}

/* Pin the ring and the doorbell record of a user CQ. */
static int skua_ib_user_cq_pin(struct skua_ib_dev *dev, struct skua_ib_ucontext *uc,
			       struct skua_ib_cq *cq, const struct skua_create_cq_req *req,
			       struct uverbs_attr_bundle *attrs)
{
	u64 size = (u64)req->cqe_size << cq->log_size;
	struct ib_umem *umem;
	int err;

	if (req->buf_len < size || size > SIZE_MAX)
		return skua_ib_refuse(dev, -EINVAL, "create_cq: buffer of %llu bytes, needs %llu",
				      req->buf_len, size);
	umem = ib_umem_get_cq_buf_or_va(&dev->ibdev, attrs, req->buf_addr, size,
					IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	/* Each CQE is within a page, of which the device knows where it is. */
	if (ib_umem_offset(umem) & (req->cqe_size - 1)) {
		err = skua_ib_refuse(dev, -EINVAL,
				     "create_cq: buffer at offset %d of a page, must be aligned to %u",
				     ib_umem_offset(umem), req->cqe_size);
		goto err_umem;
	}
	err = skua_ib_umem_map(dev, &cq->mem, umem, false, true);
	if (err)
		goto err_umem;
	err = skua_ib_db_map(uc, req->dbr_addr, &cq->db);
	if (err)
		goto err_map;
	return 0;

err_map:
	skua_ib_umem_unmap(dev, &cq->mem);
	return err;
err_umem:
	ib_umem_release(umem);
	return err;
}

static int skua_ib_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				  struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = &attrs->driver_udata;
	struct skua_ib_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibuc);
	struct skua_ib_dev *dev = to_skua_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_cq(ibcq);
	struct skua_create_cq_resp resp = {};
	struct skua_create_cq_req req;
	struct skua_cqc cqc = {};
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	if (req.cqe_size != sizeof(struct skua_cqe) &&
	    req.cqe_size != 2 * sizeof(struct skua_cqe))
		return skua_ib_refuse(dev, -EINVAL, "create_cq: CQE size %u, must be 64 or 128",
				      req.cqe_size);
	err = skua_ib_cq_init(cq, attr, &cqc);
	if (err)
		return err;
	err = skua_ib_user_own(&cq->user, dev, udata, false, SKUA_IB_RES_CQ);
	if (err)
		return err;
	cq->mem.user = cq->user;
	err = skua_ib_user_cq_pin(dev, uc, cq, &req, attrs);
	if (err)
		goto err_user;

	cq->cqe_size = req.cqe_size;
	if (req.cqe_size != sizeof(struct skua_cqe))
		cqc.flags |= cpu_to_le32(SKUA_CQC_CQE128);
	cqc.uar = cpu_to_le32(uc->uar);
	cqc.ring = skua_ib_umem_xlat(&cq->mem, 0);
	cqc.dbr = cpu_to_le64(cq->db.dma);
	err = skua_cq_create(dev->core, &cq->core, &cqc);
	if (err)
		goto err_pin;
	skua_ib_cq_publish(dev, cq);

	resp.cqn = cq->core.obj.num;
	resp.entries = ibcq->cqe;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_cq;
	return 0;

err_cq:
	skua_ib_cq_withdraw(dev, cq);
err_pin:
	skua_ib_db_unmap(&cq->db);
	skua_ib_umem_unmap(dev, &cq->mem);
err_user:
	skua_ib_user_disown(cq->user, SKUA_IB_RES_CQ);
	return err;
}

static int skua_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	return attrs ? skua_ib_create_user_cq(ibcq, attr, attrs) :
		       skua_ib_create_kernel_cq(ibcq, attr);
}

/*
 * First step of the destruction of a kernel CQ: on return no completion handler runs or
 * will run. A work item that a handler has queued may still poll and arm the CQ until the
 * RDMA core has cancelled it.
 */
static int skua_ib_pre_destroy_cq(struct ib_cq *ibcq)
{
	struct skua_ib_cq *cq = to_skua_cq(ibcq);

	/* The number may be reused by another CQ from now on. */
	scoped_guard(mutex, &cq->resize_lock) {
		guard(spinlock_irqsave)(&cq->lock);
		cq->closed = true;
	}
	skua_ib_cq_withdraw(to_skua_dev(ibcq->device), cq);
	return 0;
}

static void skua_ib_post_destroy_cq(struct ib_cq *ibcq)
{
	struct skua_ib_cq *cq = to_skua_cq(ibcq);

	WARN_ON_ONCE(!xa_empty(&cq->qps));
	skua_ib_kbuf_free(to_skua_dev(ibcq->device), &cq->buf);
}

static int skua_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_cq(ibcq);

	if (!udata) {
		skua_ib_pre_destroy_cq(ibcq);
#ifdef SKUA_COMPAT_PRE_DESTROY_CQ
		skua_compat_cancel_cq_work(ibcq);
#endif
		skua_ib_post_destroy_cq(ibcq);
		return 0;
	}
	skua_ib_cq_withdraw(dev, cq);
	skua_ib_db_unmap(&cq->db);
	skua_ib_umem_unmap(dev, &cq->mem);
	skua_ib_user_disown(cq->user, SKUA_IB_RES_CQ);
	return 0;
}

static int skua_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct skua_ib_dev *dev = to_skua_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_cq(ibcq);

	if (!(dev->lim->caps & SKUA_CAP_MODERATION))
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "modify_cq: the device does not support moderation");
	guard(mutex)(&cq->resize_lock);
	/* The RDMA core's moderation work may still run after pre_destroy_cq(). */
	if (cq->closed)
		return skua_ib_refuse(dev, -EINVAL, "modify_cq: the CQ is being destroyed");
	return skua_cq_modify(dev->core, &cq->core, count, period);
}

/* Pin the new ring and give it to the device. */
static int skua_ib_cq_switch(struct skua_ib_cq *cq, const struct skua_resize_cq_req *req,
			     u32 log_size, u32 *pi)
{
	struct skua_ib_dev *dev = to_skua_dev(cq->ibcq.device);
	u64 size = (u64)cq->cqe_size << log_size;
	struct skua_ib_umem mem = {};
	struct skua_cqc cqc = {};
	struct ib_umem *umem;
	int err;

	if (req->buf_len < size || size > SIZE_MAX || req->buf_addr > ULONG_MAX ||
	    req->buf_addr & (cq->cqe_size - 1))
		return skua_ib_refuse(dev, -EINVAL,
				      "resize_cq: buffer at %#llx of %llu bytes, needs %llu, aligned to %u",
				      req->buf_addr, req->buf_len, size, cq->cqe_size);
	umem = ib_umem_get_va(&dev->ibdev, req->buf_addr, size, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = skua_ib_umem_map(dev, &mem, umem, false, true);
	if (err) {
		ib_umem_release(umem);
		return err;
	}
	cqc.flags = le32_encode_bits(log_size, SKUA_CQC_LOG_SIZE);
	if (cq->cqe_size != sizeof(struct skua_cqe))
		cqc.flags |= cpu_to_le32(SKUA_CQC_CQE128);
	cqc.ring = skua_ib_umem_xlat(&mem, 0);
	err = skua_cq_resize(dev->core, &cq->core, &cqc, pi);
	if (err) {
		skua_ib_umem_unmap(dev, &mem);
		return err;
	}
	skua_ib_umem_unmap(dev, &cq->mem);
	cq->mem = mem;
	return 0;
}

static int skua_ib_resize_user_cq(struct ib_cq *ibcq, unsigned int entries,
				  struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_cq(ibcq);
	struct skua_resize_cq_resp resp = {};
	struct skua_resize_cq_req req;
	u8 log_size;
	int err;

	if (!(dev->lim->caps & SKUA_CAP_CQ_RESIZE) || !udata)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "resize_cq: not supported by %s",
				      udata ? "the device" : "kernel CQs");
	err = ib_copy_validate_udata_in_cm(udata, req, reserved, 0);
	if (err)
		return err;
	if (req.reserved)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "resize_cq: reserved field %#x, must be 0",
				      req.reserved);
	if (!entries || entries > dev->lim->max_cqe)
		return skua_ib_refuse(dev, -EINVAL, "resize_cq: %u entries, must be 1 to %u",
				      entries, dev->lim->max_cqe);

	guard(mutex)(&cq->resize_lock);
	log_size = order_base_2(entries);
	err = skua_ib_cq_switch(cq, &req, log_size, &resp.pi);
	if (err)
		return err;
	cq->log_size = log_size;
	ibcq->cqe = BIT(log_size);
	return ib_respond_udata(udata, resp);
}

#ifdef SKUA_COMPAT_CREATE_USER_CQ
static int skua_ib_resize_cq(struct ib_cq *ibcq, int entries, struct ib_udata *udata)
{
	return skua_ib_resize_user_cq(ibcq, max(entries, 0), udata);
}
#endif

const struct ib_device_ops skua_ib_cq_ops = {
	.create_cq = skua_ib_create_cq,
#ifndef SKUA_COMPAT_CREATE_USER_CQ
	.create_user_cq = skua_ib_create_user_cq,
	.resize_user_cq = skua_ib_resize_user_cq,
#else
	.resize_cq = skua_ib_resize_cq,
#endif
	.destroy_cq = skua_ib_destroy_cq,
#ifndef SKUA_COMPAT_PRE_DESTROY_CQ
	.pre_destroy_cq = skua_ib_pre_destroy_cq,
	.post_destroy_cq = skua_ib_post_destroy_cq,
#endif
	.modify_cq = skua_ib_modify_cq,
	.poll_cq = skua_ib_poll_cq,
	.req_notify_cq = skua_ib_req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_cq, skua_ib_cq, ibcq),
};
