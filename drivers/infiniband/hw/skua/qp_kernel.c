// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of kernel QPs: one buffer, of the kernel.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "qp.h"

/**
 * skua_ib_kernel_free() - free the rings of a kernel QP
 * @dev: the device
 * @qp: the QP, which the device no longer has
 */
void skua_ib_kernel_free(struct skua_ib_dev *dev, struct skua_ib_qp *qp)
{
	kvfree(qp->sq.wqe);
	kvfree(qp->rq.wr_id);
	skua_ib_kbuf_free(dev, &qp->buf);
}

/* One buffer has the receive ring, the send ring and the doorbell record. */
static int skua_ib_kernel_rings(struct skua_ib_dev *dev, struct skua_ib_qp *qp, u32 log_rq,
				u32 log_stride, u32 log_sq, struct skua_cmd_create_qp_in *in)
{
	bool has_rq = !qp->ibqp.srq;
	size_t sq_pos = has_rq ? ALIGN((size_t)SKUA_WQE_SEG << (log_rq + log_stride),
				       SKUA_WQE_BLOCK) : 0;
	size_t dbr_pos = sq_pos + ((size_t)SKUA_WQE_BLOCK << log_sq);
	int err = skua_ib_kbuf_alloc(dev, &qp->buf, dbr_pos + sizeof(struct skua_qp_dbr));

	if (err)
		return err;
	qp->sq.size = BIT(log_sq);
	qp->rq.size = has_rq ? BIT(log_rq) : 0;
	qp->sq.wqe = kvcalloc(qp->sq.size, sizeof(*qp->sq.wqe), GFP_KERNEL);
	if (has_rq)
		qp->rq.wr_id = kvcalloc(qp->rq.size, sizeof(*qp->rq.wr_id), GFP_KERNEL);
	if (!qp->sq.wqe || (has_rq && !qp->rq.wr_id)) {
		skua_ib_kernel_free(dev, qp);
		return -ENOMEM;
	}

	skua_rq_ring_init(&qp->rq.ring, qp->buf.va, log_rq, log_stride);
	skua_sq_ring_init(&qp->sq.ring, qp->buf.va + sq_pos, log_sq);
	qp->dbr = qp->buf.va + dbr_pos;
	if (has_rq)
		in->rq.ring = skua_ib_kbuf_xlat(&qp->buf, 0);
	in->sq.ring = skua_ib_kbuf_xlat(&qp->buf, sq_pos);
	in->sq.dbr = cpu_to_le64(skua_ib_kbuf_dma(&qp->buf, dbr_pos));
	return 0;
}

/**
 * skua_ib_kernel_qp() - make the rings of a kernel QP
 * @dev: the device
 * @qp: the QP
 * @cap: requested capabilities; filled in: those granted
 * @in: filled in: what the command says of the rings
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_kernel_qp(struct skua_ib_dev *dev, struct skua_ib_qp *qp, struct ib_qp_cap *cap,
		      struct skua_cmd_create_qp_in *in)
{
	u32 blocks = skua_ib_wqe_blocks(dev->lim, qp->ibqp.qp_type, cap);
	u32 log_stride = order_base_2(max(cap->max_recv_sge, 1U));
	u32 log_rq = order_base_2(max(cap->max_recv_wr, 1U));
	u32 log_sq = order_base_2(max(cap->max_send_wr, 1U) * blocks);
	int err;

	if (blocks > dev->lim->max_wqe_blocks ||
	    BIT(log_sq) > min_t(u32, dev->lim->max_sq_blocks, SKUA_IB_MAX_RING))
		return skua_ib_refuse(dev, -EINVAL,
				      "create_qp: WQE of %u blocks (max %u), send ring of %lu blocks (max %u)",
				      blocks, dev->lim->max_wqe_blocks, BIT(log_sq),
				      min_t(u32, dev->lim->max_sq_blocks, SKUA_IB_MAX_RING));
	err = skua_ib_kernel_rings(dev, qp, log_rq, log_stride, log_sq, in);
	if (err)
		return err;
	cap->max_send_wr = BIT(log_sq) / blocks;
	cap->max_recv_wr = qp->rq.size;

	in->sq.flags |= cpu_to_le32(SKUA_QP_F_RESERVED_LKEY) |
			le32_encode_bits(log_sq, SKUA_QP_LOG_SQ);
	in->sq.uar = cpu_to_le32(skua_kernel_uar(dev->core)->index);
	qp->sq.suppress = dev->lim->caps & SKUA_CAP_DB_SUPPRESS;
	if (qp->sq.suppress)
		in->sq.flags |= cpu_to_le32(SKUA_QP_F_DB_SUPPRESS);
	if (!qp->rq.size)
		in->sq.flags |= cpu_to_le32(SKUA_QP_F_NO_RQ);
	else
		in->rq.flags = le32_encode_bits(log_rq, SKUA_RQ_LOG_SIZE) |
			       le32_encode_bits(log_stride, SKUA_RQ_LOG_STRIDE);
	return 0;
}

/**
 * skua_ib_kernel_publish() - let polling find a kernel QP by the QPN in CQEs
 * @qp: the QP
 * @init: names its CQs
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_kernel_publish(struct skua_ib_qp *qp, const struct ib_qp_init_attr *init)
{
	struct skua_ib_cq *send = to_skua_cq(init->send_cq);
	struct skua_ib_cq *recv = to_skua_cq(init->recv_cq);
	int err;

	err = xa_insert_irq(&send->qps, qp->core.obj.num, qp, GFP_KERNEL);
	if (err || recv == send)
		return err;
	err = xa_insert_irq(&recv->qps, qp->core.obj.num, qp, GFP_KERNEL);
	if (err)
		xa_erase_irq(&send->qps, qp->core.obj.num);
	return err;
}

/* The CQ's lock protects consumer indices, the queue's lock producer indices. */
static void skua_ib_rq_restart(struct skua_ib_qp *qp)
{
	lockdep_assert_held(&to_skua_cq(qp->ibqp.recv_cq)->lock);
	lockdep_assert_held(&qp->rq.lock);
	qp->rq.pi = 0;
	qp->rq.ci = 0;
	WRITE_ONCE(qp->dbr->rq_pi, 0);
}

static void skua_ib_sq_restart(struct skua_ib_qp *qp)
{
	lockdep_assert_held(&to_skua_cq(qp->ibqp.send_cq)->lock);
	lockdep_assert_held(&qp->sq.lock);
	qp->sq.pi = 0;
	qp->sq.ci = 0;
	WRITE_ONCE(qp->dbr->sq_pi, 0);
}

/**
 * skua_ib_kernel_reset() - reset the rings of a kernel QP
 * @qp: the QP, which the device has taken to RESET
 */
void skua_ib_kernel_reset(struct skua_ib_qp *qp)
{
	skua_ib_cq_forget(qp, false);
	scoped_guard(spinlock_irqsave, &to_skua_cq(qp->ibqp.recv_cq)->lock) {
		guard(spinlock)(&qp->rq.lock);
		skua_ib_rq_restart(qp);
	}
	scoped_guard(spinlock_irqsave, &to_skua_cq(qp->ibqp.send_cq)->lock) {
		guard(spinlock)(&qp->sq.lock);
		skua_ib_sq_restart(qp);
	}
	clear_bit(0, &qp->failed);
}
