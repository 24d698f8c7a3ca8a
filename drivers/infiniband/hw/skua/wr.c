// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests of kernel consumers. The ring code is shared with the provider.
 */
#include <kunit/visibility.h>

#include "skua_ib.h"

/**
 * struct skua_ib_op - properties of a work request opcode
 * @op: opcode of the device
 * @wc: opcode of the completion
 * @flags: SKUA_IB_OP_*
 * @cap: capability that it needs
 */
struct skua_ib_op {
	u8 op;
	u8 wc;
	u16 flags;
	u64 cap;
};

#define SKUA_IB_OP_VALID	BIT(0)
#define SKUA_IB_OP_RDMA		BIT(1)	/* remote address of struct ib_rdma_wr */
#define SKUA_IB_OP_ATOMIC	BIT(2)	/* remote address and operands of struct ib_atomic_wr */
#define SKUA_IB_OP_IMM		BIT(3)
#define SKUA_IB_OP_INLINE	BIT(4)	/* payload may be inline */
#define SKUA_IB_OP_MASKED	BIT(5)	/* with ATOMIC: and masks */
#define SKUA_IB_OP_INV		BIT(6)	/* key to invalidate */
#define SKUA_IB_OP_REG		BIT(7)	/* region of struct ib_reg_wr */
#define SKUA_IB_OP_LOCAL	BIT(8)	/* local operation without payload */
#define SKUA_IB_OP_UD		BIT(9)	/* supported by UD */
#define SKUA_IB_OP_RC		BIT(10)	/* only supported by RC */

static const struct skua_ib_op skua_ib_ops[] = {
	[IB_WR_SEND] = {
		SKUA_WQE_SEND, IB_WC_SEND,
		SKUA_IB_OP_VALID | SKUA_IB_OP_INLINE | SKUA_IB_OP_UD,
	},
	[IB_WR_SEND_WITH_IMM] = {
		SKUA_WQE_SEND_IMM, IB_WC_SEND,
		SKUA_IB_OP_VALID | SKUA_IB_OP_INLINE | SKUA_IB_OP_IMM | SKUA_IB_OP_UD,
	},
	[IB_WR_RDMA_WRITE] = {
		SKUA_WQE_WRITE, IB_WC_RDMA_WRITE,
		SKUA_IB_OP_VALID | SKUA_IB_OP_INLINE | SKUA_IB_OP_RDMA,
	},
	[IB_WR_RDMA_WRITE_WITH_IMM] = {
		SKUA_WQE_WRITE_IMM, IB_WC_RDMA_WRITE,
		SKUA_IB_OP_VALID | SKUA_IB_OP_INLINE | SKUA_IB_OP_RDMA | SKUA_IB_OP_IMM,
	},
	[IB_WR_RDMA_READ] = {
		SKUA_WQE_READ, IB_WC_RDMA_READ,
		SKUA_IB_OP_VALID | SKUA_IB_OP_RDMA | SKUA_IB_OP_RC,
	},
	[IB_WR_ATOMIC_CMP_AND_SWP] = {
		SKUA_WQE_CAS, IB_WC_COMP_SWAP,
		SKUA_IB_OP_VALID | SKUA_IB_OP_ATOMIC | SKUA_IB_OP_RC,
		SKUA_CAP_ATOMIC,
	},
	[IB_WR_ATOMIC_FETCH_AND_ADD] = {
		SKUA_WQE_FAA, IB_WC_FETCH_ADD,
		SKUA_IB_OP_VALID | SKUA_IB_OP_ATOMIC | SKUA_IB_OP_RC,
		SKUA_CAP_ATOMIC,
	},
	[IB_WR_MASKED_ATOMIC_CMP_AND_SWP] = {
		SKUA_WQE_MASKED_CAS, IB_WC_MASKED_COMP_SWAP,
		SKUA_IB_OP_VALID | SKUA_IB_OP_ATOMIC | SKUA_IB_OP_MASKED | SKUA_IB_OP_RC,
		SKUA_CAP_MASKED_ATOMIC,
	},
	[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD] = {
		SKUA_WQE_MASKED_FAA, IB_WC_MASKED_FETCH_ADD,
		SKUA_IB_OP_VALID | SKUA_IB_OP_ATOMIC | SKUA_IB_OP_MASKED | SKUA_IB_OP_RC,
		SKUA_CAP_MASKED_ATOMIC,
	},
	/* No FLUSH: kernel work requests have no field for its type. */
	[IB_WR_ATOMIC_WRITE] = {
		SKUA_WQE_ATOMIC_WRITE, IB_WC_ATOMIC_WRITE,
		SKUA_IB_OP_VALID | SKUA_IB_OP_INLINE | SKUA_IB_OP_RDMA | SKUA_IB_OP_RC,
		SKUA_CAP_ATOMIC_WRITE,
	},
	[IB_WR_SEND_WITH_INV] = {
		SKUA_WQE_SEND_INV, IB_WC_SEND,
		SKUA_IB_OP_VALID | SKUA_IB_OP_INLINE | SKUA_IB_OP_INV | SKUA_IB_OP_RC,
		SKUA_CAP_INVALIDATE,
	},
	[IB_WR_LOCAL_INV] = {
		SKUA_WQE_LOCAL_INV, IB_WC_LOCAL_INV,
		SKUA_IB_OP_VALID | SKUA_IB_OP_LOCAL | SKUA_IB_OP_INV,
		SKUA_CAP_INVALIDATE,
	},
	[IB_WR_REG_MR] = {
		SKUA_WQE_REG_MR, IB_WC_REG_MR,
		SKUA_IB_OP_VALID | SKUA_IB_OP_LOCAL | SKUA_IB_OP_REG,
		SKUA_CAP_FAST_REG,
	},
	[IB_WR_REG_MR_INTEGRITY] = {
		SKUA_WQE_REG_MR, IB_WC_REG_MR,
		SKUA_IB_OP_VALID | SKUA_IB_OP_LOCAL | SKUA_IB_OP_REG,
		SKUA_CAP_FAST_REG | SKUA_CAP_PI,
	},
};

static bool skua_ib_op_of_type(const struct skua_ib_op *op, enum ib_qp_type type)
{
	if (skua_ib_is_dgram(type))
		return op->flags & SKUA_IB_OP_UD;
	return type != IB_QPT_UC || !(op->flags & SKUA_IB_OP_RC);
}

static const struct skua_ib_op *skua_ib_op(struct skua_ib_qp *qp, const struct ib_send_wr *wr)
{
	const struct skua_ib_op *op;

	if ((unsigned int)wr->opcode >= ARRAY_SIZE(skua_ib_ops))
		return NULL;
	op = &skua_ib_ops[wr->opcode];
	if (!(op->flags & SKUA_IB_OP_VALID) || op->cap & ~skua_ib_qp_dev(qp)->lim->caps ||
	    !skua_ib_op_of_type(op, qp->ibqp.qp_type))
		return NULL;
	if (wr->send_flags & IB_SEND_INLINE && !(op->flags & SKUA_IB_OP_INLINE))
		return NULL;
	return op;
}

static u64 skua_ib_wr_len(const struct ib_send_wr *wr)
{
	u64 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

static u32 skua_ib_wqe_flags(const struct skua_ib_qp *qp, const struct ib_send_wr *wr,
			     const struct skua_ib_op *op)
{
	u32 flags = 0;

	if (qp->sig_all || wr->send_flags & IB_SEND_SIGNALED)
		flags |= SKUA_WQE_F_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED)
		flags |= SKUA_WQE_F_SOLICITED;
	if (wr->send_flags & IB_SEND_FENCE)
		flags |= SKUA_WQE_F_FENCE;
	/*
	 * Invalidate the key only after all earlier requests are complete, because they
	 * may have to be retransmitted from memory of this key.
	 */
	if (op->op == SKUA_WQE_LOCAL_INV)
		flags |= SKUA_WQE_F_LOCAL_FENCE;
	return flags;
}

/* Write the address vector of a datagram. */
static void skua_ib_put_av(struct skua_ib_qp *qp, u32 index, const struct ib_ud_wr *ud)
{
	struct skua_wqe_av *av = skua_sq_seg(&qp->sq.ring, index, 1);

	skua_wqe_av_set(av, &to_skua_ah(ud->ah)->av, ud->remote_qpn, ud->remote_qkey);
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		av->pkey_index = cpu_to_le16(ud->pkey_index);
}

/* Write the segments before the payload. Return: index of the next segment. */
static unsigned int skua_ib_put_remote(struct skua_ib_sq *sq, u32 index, unsigned int seg,
				       const struct skua_ib_op *op, const struct ib_send_wr *wr)
{
	if (op->flags & SKUA_IB_OP_RDMA) {
		const struct ib_rdma_wr *rdma = rdma_wr(wr);

		skua_wqe_raddr_set(skua_sq_seg(&sq->ring, index, seg++), rdma->remote_addr,
				   rdma->rkey, 0);
	} else if (op->flags & SKUA_IB_OP_ATOMIC) {
		const struct ib_atomic_wr *atomic = atomic_wr(wr);
		bool cas = op->op == SKUA_WQE_CAS || op->op == SKUA_WQE_MASKED_CAS;

		skua_wqe_raddr_set(skua_sq_seg(&sq->ring, index, seg++), atomic->remote_addr,
				   atomic->rkey, 0);
		skua_wqe_atomic_set(skua_sq_seg(&sq->ring, index, seg++),
				    cas ? atomic->swap : atomic->compare_add,
				    cas ? atomic->compare_add : 0);
		if (op->flags & SKUA_IB_OP_MASKED)
			skua_wqe_atomic_set(skua_sq_seg(&sq->ring, index, seg++),
					    cas ? atomic->swap_mask : atomic->compare_add_mask,
					    cas ? atomic->compare_add_mask : 0);
	}
	return seg;
}

/* Return: the number of segments before the payload. */
static unsigned int skua_ib_head_segs(const struct skua_ib_qp *qp, const struct skua_ib_op *op)
{
	unsigned int segs = 1;

	if (skua_ib_is_dgram(qp->ibqp.qp_type))
		segs += SKUA_WQE_AV_SEGS;
	if (op->flags & SKUA_IB_OP_RDMA)
		segs++;
	if (op->flags & SKUA_IB_OP_ATOMIC)
		segs += op->flags & SKUA_IB_OP_MASKED ? 3 : 2;
	if (op->flags & SKUA_IB_OP_REG)
		segs += sizeof(struct skua_wqe_reg) / SKUA_WQE_SEG;
	return segs;
}

static unsigned int skua_ib_put_inline(struct skua_ib_sq *sq, u32 index, unsigned int seg,
				       const struct ib_send_wr *wr)
{
	struct skua_inline_cursor cur;
	int i;

	skua_inline_begin(&cur, &sq->ring, index, seg);
	for (i = 0; i < wr->num_sge; i++)
		skua_inline_put(&cur, (void *)(uintptr_t)wr->sg_list[i].addr,
				wr->sg_list[i].length);
	return seg + skua_inline_end(&cur);
}

static unsigned int skua_ib_put_sges(struct skua_ib_sq *sq, u32 index, unsigned int seg,
				     const struct ib_send_wr *wr)
{
	const struct ib_sge *sge = wr->sg_list;
	int i;

	for (i = 0; i < wr->num_sge; i++, sge++) {
		/* The key of an empty element is not checked. */
		if (sge->length)
			skua_wqe_data_set(skua_sq_seg(&sq->ring, index, seg++), sge->addr,
					  sge->lkey, sge->length);
	}
	return seg;
}

/* Return: the number of segments of the payload; sets SKUA_WQE_F_INLINE in @flags. */
static int skua_ib_payload_segs(const struct skua_ib_qp *qp, const struct skua_ib_op *op,
				const struct ib_send_wr *wr, u32 *flags)
{
	u64 len;

	if (op->flags & SKUA_IB_OP_LOCAL)
		return 0;
	len = skua_ib_wr_len(wr);
	if (!(wr->send_flags & IB_SEND_INLINE) || !len)
		return wr->num_sge;
	if (len > qp->cap.max_inline_data)
		return -EINVAL;
	*flags |= SKUA_WQE_F_INLINE;
	return skua_wqe_inline_segs(len);
}

/* Write all segments but the control segment. Return: their number with the latter. */
static int skua_ib_put_segs(struct skua_ib_qp *qp, const struct skua_ib_op *op,
			    const struct ib_send_wr *wr, u32 pi, u32 flags)
{
	struct skua_ib_sq *sq = &qp->sq;
	unsigned int seg;
	int err;

	if (op->flags & SKUA_IB_OP_REG) {
		err = skua_ib_put_reg(qp, skua_sq_seg(&sq->ring, pi, 1), reg_wr(wr));
		if (err)
			return err;
	}
	if (op->flags & SKUA_IB_OP_LOCAL)
		return skua_ib_head_segs(qp, op);
	if (skua_ib_is_dgram(qp->ibqp.qp_type)) {
		skua_ib_put_av(qp, pi, ud_wr(wr));
		seg = skua_ib_head_segs(qp, op);
	} else {
		seg = skua_ib_put_remote(sq, pi, 1, op, wr);
	}
	if (flags & SKUA_WQE_F_INLINE)
		return skua_ib_put_inline(sq, pi, seg, wr);
	return skua_ib_put_sges(sq, pi, seg, wr);
}

/*
 * Write one WQE at block @pi. Return: its number of blocks, -ENOMEM if the queue is full,
 * or -EINVAL for an invalid or unsupported work request.
 */
VISIBLE_IF_KUNIT int skua_ib_put_wqe(struct skua_ib_qp *qp, const struct ib_send_wr *wr, u32 pi)
{
	const struct skua_ib_op *op = skua_ib_op(qp, wr);
	struct skua_ib_sq *sq = &qp->sq;
	struct skua_wqe_ctrl *ctrl;
	unsigned int blocks, i;
	u32 flags;
	int segs;

	if (!op || wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	if (skua_ib_is_dgram(qp->ibqp.qp_type) && !ud_wr(wr)->ah)
		return -EINVAL;
	flags = skua_ib_wqe_flags(qp, wr, op);
	segs = skua_ib_payload_segs(qp, op, wr, &flags);
	if (segs < 0)
		return segs;
	blocks = skua_wqe_blocks(skua_ib_head_segs(qp, op) + segs);
	/* Pairs with the release in skua_ib_take_send(): the blocks are free. */
	if (pi - smp_load_acquire(&sq->ci) + blocks > sq->size)
		return -ENOMEM;

	segs = skua_ib_put_segs(qp, op, wr, pi, flags);
	if (segs < 0)
		return segs;
	/* Fewer than computed above if there were empty elements. */
	blocks = skua_wqe_blocks(segs);
	ctrl = skua_sq_seg(&sq->ring, pi, 0);
	skua_wqe_ctrl_set(ctrl, op->op, segs, pi, flags);
	if (op->flags & SKUA_IB_OP_IMM)
		skua_wqe_imm_set(ctrl, wr->ex.imm_data);
	if (op->flags & SKUA_IB_OP_INV)
		skua_wqe_inv_set(ctrl, wr->ex.invalidate_rkey);

	for (i = 1; i < blocks; i++)
		sq->wqe[(pi + i) & (sq->size - 1)].blocks = 0;
	sq->wqe[pi & (sq->size - 1)] = (struct skua_ib_swqe) {
		.wr_id = wr->wr_id,
		.opcode = op->wc,
		.blocks = blocks,
	};
	return blocks;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_put_wqe);

/*
 * A dead device completes nothing: have the consumer poll, which flushes the WQEs. The caller holds
 * the queue's lock; skua_ib_die() waits for it.
 */
static void skua_ib_wake_if_dead(struct skua_ib_qp *qp, struct ib_cq *ibcq)
{
	if (unlikely(skua_ib_dead(skua_ib_qp_dev(qp))))
		schedule_work(&to_skua_cq(ibcq)->wake);
}

static void skua_ib_ring_sq(struct skua_ib_qp *qp)
{
	const struct skua_uar *uar = skua_kernel_uar(skua_ib_qp_dev(qp)->core);

	lockdep_assert_held(&qp->sq.lock);
	skua_ring_db(uar, SKUA_UAR_SQ, qp->sq.pi, qp->core.obj.num);
}

/**
 * skua_ib_qp_kick() - have the device flush newly posted receives of a QP in ERR
 * @qp: a kernel QP
 *
 * The receive queue has no doorbell. The device reads its doorbell record when the send
 * queue's doorbell is rung again.
 */
void skua_ib_qp_kick(struct skua_ib_qp *qp)
{
	guard(spinlock_irqsave)(&qp->sq.lock);
	skua_ib_ring_sq(qp);
}

/**
 * skua_ib_post_send() - post send work requests
 * @ibqp: a kernel QP
 * @wr: the list
 * @bad_wr: the first that was not posted
 *
 * Return: 0, -EINVAL for an invalid work request or state, or -ENOMEM if the queue is full.
 */
int skua_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr)
{
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct skua_ib_sq *sq = &qp->sq;
	int ret = 0;
	u32 pi, old;

	guard(spinlock_irqsave)(&sq->lock);
	if (READ_ONCE(qp->state) < IB_QPS_RTS) {
		*bad_wr = wr;
		return -EINVAL;
	}
	old = sq->pi;
	for (pi = old; wr; wr = wr->next) {
		ret = skua_ib_put_wqe(qp, wr, pi);
		if (ret < 0) {
			*bad_wr = wr;
			break;
		}
		pi += ret;
	}
	if (pi != old) {
		/* Pairs with the acquire in skua_ib_take_send(). */
		smp_store_release(&sq->pi, pi);
		/* Order the WQEs before the doorbell record. */
		dma_wmb();
		if (skua_sq_record(qp->dbr, pi, old, sq->suppress))
			skua_ib_ring_sq(qp);
		skua_ib_wake_if_dead(qp, ibqp->send_cq);
	}
	return ret < 0 ? ret : 0;
}

static int skua_ib_put_rwqe(struct skua_ib_qp *qp, const struct ib_recv_wr *wr, u32 pi)
{
	struct skua_ib_rq *rq = &qp->rq;
	struct skua_wqe_data *data;
	unsigned int n = 0;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	/* Pairs with the release in skua_ib_take_recv(): the entry is free. */
	if (pi - smp_load_acquire(&rq->ci) >= rq->size)
		return -ENOMEM;

	data = skua_rq_wqe(&rq->ring, pi);
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length)
			skua_wqe_data_set(&data[n++], sge->addr, sge->lkey, sge->length);
	}
	skua_rq_wqe_end(data, n, BIT(rq->ring.log_stride) / SKUA_WQE_SEG);
	rq->wr_id[pi & (rq->size - 1)] = wr->wr_id;
	return 0;
}

/**
 * skua_ib_post_recv() - post receive work requests
 * @ibqp: a kernel QP
 * @wr: the list
 * @bad_wr: the first that was not posted
 *
 * Return: 0, -EINVAL for an invalid work request or state, or -ENOMEM if the queue is full.
 */
int skua_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct skua_ib_rq *rq = &qp->rq;
	int ret = 0;
	u32 pi;

	guard(spinlock_irqsave)(&rq->lock);
	if (READ_ONCE(qp->state) == IB_QPS_RESET || !rq->size) {
		*bad_wr = wr;
		return -EINVAL;
	}
	for (pi = rq->pi; wr; wr = wr->next, pi++) {
		ret = skua_ib_put_rwqe(qp, wr, pi);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (pi != rq->pi) {
		/* Pairs with the acquire in skua_ib_take_recv(). */
		smp_store_release(&rq->pi, pi);
		/* Order the WQEs before the doorbell record. */
		dma_wmb();
		WRITE_ONCE(qp->dbr->rq_pi, cpu_to_le32(pi));
		/*
		 * Order the record before the flags. Whoever sets a flag rings the
		 * doorbell afterwards: either the flag is seen here, or the device sees
		 * the record.
		 */
		smp_mb();
		if (READ_ONCE(qp->state) == IB_QPS_ERR || test_bit(0, &qp->failed))
			skua_ib_qp_kick(qp);
		skua_ib_wake_if_dead(qp, ibqp->recv_cq);
	}
	return ret;
}
