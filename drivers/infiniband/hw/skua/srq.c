// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues and XRC domains.
 *
 * The WQEs of an SRQ form a list, linked by their next segments: posted ones first, then
 * free ones. The device may read the link of the last posted WQE before the next one is
 * posted, so one WQE must always stay free: a ring of n WQEs takes n - 1 work requests.
 */
#include <kunit/visibility.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/**
 * skua_ib_max_srq_wr() - maximum number of work requests of an SRQ
 * @lim: limits of the device
 *
 * Return: the number.
 */
u32 skua_ib_max_srq_wr(const struct skua_limits *lim)
{
	return rounddown_pow_of_two(min_t(u32, lim->max_rq_wqes, SKUA_IB_MAX_RING)) - 1;
}

static void skua_ib_srq_event(struct skua_srq *core, enum skua_eqe_type type)
{
	struct ib_srq *ibsrq = &container_of(core, struct skua_ib_srq, core)->ibsrq;
	struct ib_event event = {
		.device = ibsrq->device,
		.element.srq = ibsrq,
		.event = type == SKUA_EQE_SRQ_LIMIT ? IB_EVENT_SRQ_LIMIT_REACHED :
						      IB_EVENT_SRQ_ERR,
	};

	if (ibsrq->event_handler)
		ibsrq->event_handler(&event, ibsrq->srq_context);
}

/* --- kernel SRQs --- */

static struct skua_wqe_next *skua_ib_srq_link(struct skua_ib_srq *srq, u32 pos)
{
	return skua_rq_wqe(&srq->ring, pos);
}

static void skua_ib_srq_chain(struct skua_ib_srq *srq)
{
	u32 i;

	for (i = 0; i < srq->wqes; i++) {
		skua_srq_next_set(skua_ib_srq_link(srq, i), (i + 1) & (srq->wqes - 1));
		srq->next[i] = (i + 1) & (srq->wqes - 1);
	}
	srq->head = 0;
	srq->tail = srq->wqes - 1;
}

static int skua_ib_kernel_srq(struct skua_ib_dev *dev, struct skua_ib_srq *srq, u32 log_wqes,
			      u32 log_segs, struct skua_srqc *srqc)
{
	size_t dbr_pos = (size_t)SKUA_WQE_SEG << (log_wqes + log_segs);
	int err;

	err = skua_ib_kbuf_alloc(dev, &srq->buf, dbr_pos + sizeof(struct skua_srq_dbr));
	if (err)
		return err;
	srq->wr_id = kvcalloc(srq->wqes, sizeof(*srq->wr_id), GFP_KERNEL);
	srq->next = kvcalloc(srq->wqes, sizeof(*srq->next), GFP_KERNEL);
	srq->posted = bitmap_zalloc(srq->wqes, GFP_KERNEL);
	if (!srq->wr_id || !srq->next || !srq->posted)
		return -ENOMEM;
	skua_rq_ring_init(&srq->ring, srq->buf.va, log_wqes, log_segs);
	srq->dbr = srq->buf.va + dbr_pos;
	skua_ib_srq_chain(srq);
	srqc->flags |= cpu_to_le32(SKUA_SRQC_RESERVED_LKEY);
	srqc->ring = skua_ib_kbuf_xlat(&srq->buf, 0);
	srqc->dbr = cpu_to_le64(skua_ib_kbuf_dma(&srq->buf, dbr_pos));
	return 0;
}

static void skua_ib_kernel_srq_free(struct skua_ib_dev *dev, struct skua_ib_srq *srq)
{
	bitmap_free(srq->posted);
	kvfree(srq->next);
	kvfree(srq->wr_id);
	skua_ib_kbuf_free(dev, &srq->buf);
}

/**
 * skua_ib_srq_take() - free a completed WQE
 * @srq: a kernel SRQ
 * @pos: its position from the CQE, not checked yet
 * @wr_id: filled in
 *
 * Return: false if no WQE is outstanding there.
 */
bool skua_ib_srq_take(struct skua_ib_srq *srq, u32 pos, u64 *wr_id)
{
	guard(spinlock_irqsave)(&srq->lock);
	if (pos >= srq->wqes || !__test_and_clear_bit(pos, srq->posted))
		return false;
	*wr_id = srq->wr_id[pos];
	/* Append it to the last free WQE, which the device does not read yet. */
	srq->next[srq->tail] = pos;
	skua_srq_next_set(skua_ib_srq_link(srq, srq->tail), pos);
	srq->tail = pos;
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_srq_take);

static int skua_ib_srq_put(struct skua_ib_srq *srq, const struct ib_recv_wr *wr)
{
	struct skua_wqe_data *data;
	unsigned int n = 0;
	int i;

	lockdep_assert_held(&srq->lock);
	if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (srq->head == srq->tail)
		return -ENOMEM;
	data = (void *)(skua_ib_srq_link(srq, srq->head) + 1);
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length)
			skua_wqe_data_set(&data[n++], sge->addr, sge->lkey, sge->length);
	}
	skua_rq_wqe_end(data, n, BIT(srq->ring.log_stride) / SKUA_WQE_SEG - 1);
	srq->wr_id[srq->head] = wr->wr_id;
	__set_bit(srq->head, srq->posted);
	/* Follow the driver's copy of the list, not the link in the ring. */
	srq->head = srq->next[srq->head];
	srq->pi++;
	return 0;
}

/**
 * skua_ib_post_srq_recv() - post receive work requests
 * @ibsrq: a kernel SRQ
 * @wr: the list
 * @bad_wr: the first that was not posted
 *
 * Return: 0, -EINVAL for too many elements, or -ENOMEM if the SRQ is full.
 */
int skua_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr)
{
	struct skua_ib_srq *srq = to_skua_srq(ibsrq);
	int ret = 0;

	guard(spinlock_irqsave)(&srq->lock);
	for (; wr; wr = wr->next) {
		ret = skua_ib_srq_put(srq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	/* Order the WQEs before the doorbell record. */
	dma_wmb();
	WRITE_ONCE(srq->dbr->pi, cpu_to_le32(srq->pi));
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_post_srq_recv);

/* --- user SRQs --- */

/* Pin a ring of user space. */
static int skua_ib_srq_pin(struct skua_ib_dev *dev, struct skua_ib_umem *mem, u64 addr, u64 len,
			   u32 log_wqes, u32 log_segs)
{
	u64 size = (u64)SKUA_WQE_SEG << (log_wqes + log_segs);
	struct ib_umem *umem;
	int err;

	if (len < size || addr & (SKUA_WQE_BLOCK - 1) || addr > ULONG_MAX)
		return skua_ib_refuse(dev, -EINVAL,
				      "SRQ: ring of %llu bytes at %#llx, needs %llu and must be aligned to %d",
				      len, addr, size, SKUA_WQE_BLOCK);
	umem = ib_umem_get_va(&dev->ibdev, addr, size, 0);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = skua_ib_umem_map(dev, mem, umem, false, false);
	if (err)
		ib_umem_release(umem);
	return err;
}

static int skua_ib_user_srq(struct skua_ib_dev *dev, struct skua_ib_srq *srq,
			    const struct skua_create_srq_req *req, struct ib_udata *udata,
			    struct skua_srqc *srqc)
{
	struct skua_ib_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibuc);
	int err;

	err = skua_ib_srq_pin(dev, &srq->mem, req->buf_addr, req->buf_len, req->log_wqes,
			      req->log_stride);
	if (err)
		return err;
	err = skua_ib_db_map(uc, req->dbr_addr, &srq->db);
	if (err) {
		skua_ib_umem_unmap(dev, &srq->mem);
		return err;
	}
	srqc->ring = skua_ib_umem_xlat(&srq->mem, 0);
	srqc->dbr = cpu_to_le64(srq->db.dma);
	return 0;
}

/* One WQE more than can be posted: the last one of the list stays free. */
static int skua_ib_srq_check_req(struct skua_ib_dev *dev, const struct skua_create_srq_req *req,
				 const struct ib_srq_attr *attr)
{
	if (req->reserved)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_srq: reserved is %#x, must be 0",
				      req->reserved);
	return skua_ib_range(dev, "create_srq", "log_wqes", req->log_wqes,
			     order_base_2(attr->max_wr + 1),
			     ilog2(skua_ib_max_srq_wr(dev->lim) + 1)) ?:
	       skua_ib_range(dev, "create_srq", "log_stride", req->log_stride,
			     max(order_base_2(attr->max_sge + 1), 1),
			     order_base_2(dev->lim->max_rq_sge + 1));
}

/* --- both --- */

static void skua_ib_srq_free(struct skua_ib_dev *dev, struct skua_ib_srq *srq,
			     struct ib_udata *udata)
{
	if (!udata) {
		skua_ib_kernel_srq_free(dev, srq);
		return;
	}
	skua_ib_db_unmap(&srq->db);
	skua_ib_umem_unmap(dev, &srq->mem);
}

static int skua_ib_srq_check(struct skua_ib_dev *dev, const struct ib_srq_init_attr *init,
			     const struct ib_udata *udata)
{
	u64 need = init->srq_type == IB_SRQT_XRC ? SKUA_CAP_SRQ | SKUA_CAP_XRC : SKUA_CAP_SRQ;

	if ((init->srq_type != IB_SRQT_BASIC && init->srq_type != IB_SRQT_XRC) ||
	    (dev->lim->caps & need) != need)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "create_srq: type %d is not supported by the device",
				      init->srq_type);
	if (init->srq_type == IB_SRQT_XRC && !udata)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "create_srq: type %d is not supported for kernel consumers",
				      init->srq_type);
	return skua_ib_range(dev, "create_srq", "max_wr", init->attr.max_wr, 1,
			     skua_ib_max_srq_wr(dev->lim)) ?:
	       skua_ib_range(dev, "create_srq", "max_sge", init->attr.max_sge, 0,
			     dev->lim->max_rq_sge);
}

static int skua_ib_srq_hw(struct skua_ib_dev *dev, struct skua_ib_srq *srq,
			  const struct ib_srq_init_attr *init, u32 log_wqes, u32 log_segs,
			  struct skua_srqc *srqc)
{
	srqc->flags |= le32_encode_bits(log_wqes, SKUA_SRQC_LOG_SIZE) |
		       le32_encode_bits(log_segs, SKUA_SRQC_LOG_STRIDE);
	srqc->pd = cpu_to_le32(skua_ib_pdn(srq->ibsrq.pd));
	if (init->srq_type == IB_SRQT_XRC) {
		srqc->xrcd = cpu_to_le32(to_skua_xrcd(init->ext.xrc.xrcd)->num);
		srqc->cqn = cpu_to_le32(to_skua_cq(init->ext.cq)->core.obj.num);
	}
	return skua_srq_create(dev->core, &srq->core, srqc);
}

static int skua_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			      struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibsrq->device);
	struct skua_ib_srq *srq = to_skua_srq(ibsrq);
	struct skua_create_srq_req req = {};
	struct skua_srqc srqc = {};
	int err;

	err = skua_ib_srq_check(dev, init, udata);
	if (err)
		return err;
	if (skua_ib_dead(dev))
		return -EIO;
	if (udata) {
		err = ib_copy_validate_udata_in_cm(udata, req, reserved, 0);
		if (err)
			return err;
		err = skua_ib_srq_check_req(dev, &req, &init->attr);
		if (err)
			return err;
	} else {
		req.log_wqes = order_base_2(init->attr.max_wr + 1);
		req.log_stride = order_base_2(max(init->attr.max_sge, 1U) + 1);
	}

	mutex_init(&srq->mutex);
	spin_lock_init(&srq->lock);
	srq->wqes = BIT(req.log_wqes);
	srq->log_segs = req.log_stride;
	srq->max_sge = min_t(u32, BIT(req.log_stride) - 1, dev->lim->max_rq_sge);
	srq->core.event = skua_ib_srq_event;
	err = skua_ib_user_own(&srq->user, dev, udata, false, SKUA_IB_RES_SRQ);
	if (err)
		return err;
	if (udata)
		err = skua_ib_user_srq(dev, srq, &req, udata, &srqc);
	else
		err = skua_ib_kernel_srq(dev, srq, req.log_wqes, req.log_stride, &srqc);
	if (err) {
		if (!udata)
			skua_ib_kernel_srq_free(dev, srq);
		goto err_user;
	}
	err = skua_ib_srq_hw(dev, srq, init, req.log_wqes, req.log_stride, &srqc);
	if (err)
		goto err_free;

	init->attr.max_wr = srq->wqes - 1;
	init->attr.max_sge = srq->max_sge;
	ibsrq->ext.xrc.srq_num = srq->core.obj.num;
	if (udata) {
		struct skua_create_srq_resp resp = { .srqn = srq->core.obj.num };

		err = ib_respond_udata(udata, resp);
		if (err)
			goto err_srq;
	}
	return 0;

err_srq:
	skua_srq_destroy(dev->core, &srq->core);
err_free:
	skua_ib_srq_free(dev, srq, udata);
err_user:
	skua_ib_user_disown(srq->user, SKUA_IB_RES_SRQ);
	return err;
}

static int skua_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibsrq->device);
	struct skua_ib_srq *srq = to_skua_srq(ibsrq);

	skua_srq_destroy(dev->core, &srq->core);
	skua_ib_srq_free(dev, srq, udata);
	skua_ib_user_disown(srq->user, SKUA_IB_RES_SRQ);
	return 0;
}

/* User space has copied the ring to a larger one, which the device switches to. */
static int skua_ib_resize_srq(struct skua_ib_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(srq->ibsrq.device);
	struct skua_modify_srq_req req;
	struct skua_srqc srqc = {};
	struct skua_ib_umem mem = {};
	int err;

	if (!udata || !(dev->lim->caps & SKUA_CAP_SRQ_RESIZE))
		return skua_ib_refuse(dev, -EOPNOTSUPP, "modify_srq: no resize of %s",
				      udata ? "SRQs of this device" : "kernel SRQs");
	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	if (req.log_wqes > ilog2(skua_ib_max_srq_wr(dev->lim) + 1) ||
	    BIT(req.log_wqes) < srq->wqes || BIT(req.log_wqes) <= max_wr)
		return skua_ib_refuse(dev, -EINVAL,
				      "modify_srq: ring of 2^%u WQEs must be more than max_wr %u, at least the present %u and at most %u",
				      req.log_wqes, max_wr, srq->wqes,
				      skua_ib_max_srq_wr(dev->lim) + 1);
	err = skua_ib_srq_pin(dev, &mem, req.buf_addr, req.buf_len, req.log_wqes, srq->log_segs);
	if (err)
		return err;
	srqc.flags = le32_encode_bits(req.log_wqes, SKUA_SRQC_LOG_SIZE) |
		     le32_encode_bits(srq->log_segs, SKUA_SRQC_LOG_STRIDE);
	srqc.ring = skua_ib_umem_xlat(&mem, 0);
	err = skua_srq_resize(dev->core, &srq->core, &srqc);
	if (err) {
		skua_ib_umem_unmap(dev, &mem);
		return err;
	}
	skua_ib_umem_unmap(dev, &srq->mem);
	srq->mem = mem;
	srq->wqes = BIT(req.log_wqes);
	return 0;
}

static int skua_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			      enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibsrq->device);
	struct skua_ib_srq *srq = to_skua_srq(ibsrq);
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return skua_ib_refuse(dev, -EINVAL, "modify_srq: attributes %#x, supported %#x",
				      mask, IB_SRQ_MAX_WR | IB_SRQ_LIMIT);
	if (!(mask & IB_SRQ_MAX_WR)) {
		err = ib_is_udata_in_empty(udata);
		if (err)
			return err;
	}

	guard(mutex)(&srq->mutex);
	if (mask & IB_SRQ_LIMIT && !(mask & IB_SRQ_MAX_WR) && attr->srq_limit >= srq->wqes)
		return skua_ib_refuse(dev, -EINVAL, "modify_srq: limit %u, at most max_wr %u",
				      attr->srq_limit, srq->wqes - 1);
	if (mask & IB_SRQ_MAX_WR) {
		if (mask & IB_SRQ_LIMIT && attr->srq_limit > attr->max_wr)
			return skua_ib_refuse(dev, -EINVAL,
					      "modify_srq: limit %u, at most the new max_wr %u",
					      attr->srq_limit, attr->max_wr);
		err = skua_ib_resize_srq(srq, attr->max_wr, udata);
		if (err)
			return err;
	}
	return mask & IB_SRQ_LIMIT ? skua_srq_modify(dev->core, &srq->core, attr->srq_limit) : 0;
}

static int skua_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct skua_ib_srq *srq = to_skua_srq(ibsrq);
	struct skua_srqc srqc;
	int err;

	guard(mutex)(&srq->mutex);
	err = skua_srq_query(to_skua_dev(ibsrq->device)->core, &srq->core, &srqc);
	if (err)
		return err;
	attr->max_wr = srq->wqes - 1;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = le32_to_cpu(srqc.limit);
	return 0;
}

/* --- XRC domains --- */

static int skua_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibxrcd->device);
	struct skua_ib_xrcd *xrcd = to_skua_xrcd(ibxrcd);
	int err;

	if (!(dev->lim->caps & SKUA_CAP_XRC))
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "alloc_xrcd: the device does not support XRC");
	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (skua_ib_dead(dev))
		return -EIO;
	err = skua_ib_user_own(&xrcd->user, dev, udata, udata, SKUA_IB_RES_XRCD);
	if (err)
		return err;
	err = skua_xrcd_alloc(dev->core, &xrcd->num);
	if (err)
		skua_ib_user_disown(xrcd->user, SKUA_IB_RES_XRCD);
	return err;
}

static int skua_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	struct skua_ib_xrcd *xrcd = to_skua_xrcd(ibxrcd);

	skua_xrcd_free(to_skua_dev(ibxrcd->device)->core, xrcd->num);
	skua_ib_user_disown(xrcd->user, SKUA_IB_RES_XRCD);
	return 0;
}

const struct ib_device_ops skua_ib_srq_ops = {
	.create_srq = skua_ib_create_srq,
	.destroy_srq = skua_ib_destroy_srq,
	.modify_srq = skua_ib_modify_srq,
	.query_srq = skua_ib_query_srq,
	.post_srq_recv = skua_ib_post_srq_recv,
	.alloc_xrcd = skua_ib_alloc_xrcd,
	.dealloc_xrcd = skua_ib_dealloc_xrcd,
	INIT_RDMA_OBJ_SIZE(ib_srq, skua_ib_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, skua_ib_xrcd, ibxrcd),
};
