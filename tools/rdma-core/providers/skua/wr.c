// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: posting of sends by the ibv_wr_*() calls.
 *
 * A call that begins a WQE writes it whole, but for what the setters tell: they add it, and
 * correct the WQE's length. The next call that begins one, or ibv_wr_complete(), takes it as
 * it then is. The first error is kept for ibv_wr_complete(), which then posts none of the
 * WQEs.
 */
#include "send.h"

static inline struct skua_qp *from_ex(struct ibv_qp_ex *qpx)
{
	return container_of(qpx, struct skua_qp, vqp.qp_ex);
}

static void wr_fail(struct skua_batch *b, int err)
{
	if (!b->err)
		b->err = err;
	b->open = false;
}

/* Behind the WQE that is being built, if there is one. */
static inline void wr_next(struct skua_batch *b)
{
	b->enc.pi += b->blocks;
	b->enc.room -= b->blocks;
	b->blocks = 0;
	b->open = false;
	if (unlikely(b->need_addr)) {
		b->need_addr = false;
		wr_fail(b, EINVAL);
	}
}

/* Begin a WQE; NULL if the batch has an error. */
static __attribute__((noinline)) struct send_enc *wr_begin(struct ibv_qp_ex *qpx,
							    enum ibv_wr_opcode opcode)
{
	struct skua_batch *b = &from_ex(qpx)->batch;
	struct send_enc *e = &b->enc;
	int ret;

	wr_next(b);
	if (unlikely(b->err))
		return NULL;
	ret = enc_begin(e, opcode, b->ops);
	if (unlikely(ret)) {
		b->err = ret;
		return NULL;
	}
	b->open = true;
	b->payload = e->nseg;
	b->need_addr = enc_has_addr(e);
	b->blocks = skua_wqe_blocks(e->nseg);
	enc_write(e, e->nseg, b->blocks, qpx->wr_id, qpx->wr_flags & ~IBV_SEND_INLINE);
	return e;
}

/* wr_begin() for an operation of sq->plain_ops, of which one knows all but for the room. */
static ALWAYS_INLINE inline struct send_enc *wr_begin_plain(struct ibv_qp_ex *qpx,
							     enum ibv_wr_opcode opcode)
{
	struct skua_batch *b = &from_ex(qpx)->batch;
	struct skua_sq *sq = &from_ex(qpx)->sq;
	struct send_enc *e = &b->enc;
	uint32_t pi = e->pi + b->blocks, room = e->room - b->blocks;

	if (unlikely(b->err || !room))
		return wr_begin(qpx, opcode);
	e->pi = pi;
	e->room = room;
	e->op = &send_ops[opcode];
	e->block = skua_sq_seg(&sq->ring, pi, 0);
	b->open = true;
	b->payload = 1 + send_ops[opcode].head_segs;
	b->blocks = 1;
	enc_write(e, b->payload, 1, qpx->wr_id, qpx->wr_flags & ~IBV_SEND_INLINE);
	return e;
}

/* The WQE's segments have changed: its length, and whether its payload is in it. */
static inline void wr_resize(struct skua_batch *b, bool inl)
{
	struct send_enc *e = &b->enc;
	struct skua_wqe_ctrl *c = enc_head(e, 0);

	le32p_replace_bits(&c->op, e->nseg, SKUA_WQE_NSEG);
	le32p_replace_bits(&c->flags, inl, SKUA_WQE_F_INLINE);
	if (likely(e->nseg <= SKUA_WQE_SEGS_PER_BLOCK && b->blocks == 1))
		return;
	b->blocks = skua_wqe_blocks(e->nseg);
	e->sq->sent[e->pi & e->sq->mask].blocks = b->blocks;
}

/* The WQE that a setter is for; NULL and an error in the batch if there is none. */
static inline struct send_enc *wr_set(struct ibv_qp_ex *qpx)
{
	struct skua_batch *b = &from_ex(qpx)->batch;

	if (likely(b->open))
		return &b->enc;
	wr_fail(b, EINVAL);
	return NULL;
}

/* --- operations -------------------------------------------------------- */

static void wr_send(struct ibv_qp_ex *qpx)
{
	wr_begin(qpx, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qpx, __be32 imm)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_SEND_WITH_IMM);

	if (likely(e))
		skua_wqe_imm_set(enc_head(e, 0), imm);
}

static void wr_send_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_SEND_WITH_INV);

	if (likely(e))
		skua_wqe_inv_set(enc_head(e, 0), rkey);
}

static ALWAYS_INLINE inline struct send_enc *wr_rdma(struct ibv_qp_ex *qpx,
						     enum ibv_wr_opcode opcode, uint32_t rkey,
						     uint64_t va)
{
	struct send_enc *e = wr_begin(qpx, opcode);

	if (likely(e))
		enc_raddr(e, va, rkey);
	return e;
}

static void wr_rdma_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va)
{
	wr_rdma(qpx, IBV_WR_RDMA_WRITE, rkey, va);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va, __be32 imm)
{
	struct send_enc *e = wr_rdma(qpx, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, va);

	if (likely(e))
		skua_wqe_imm_set(enc_head(e, 0), imm);
}

static void wr_rdma_read(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va)
{
	wr_rdma(qpx, IBV_WR_RDMA_READ, rkey, va);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va, uint64_t compare,
			      uint64_t swap)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_ATOMIC_CMP_AND_SWP);

	if (likely(e)) {
		enc_raddr(e, va, rkey);
		enc_atomic(e, swap, compare);
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va, uint64_t add)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_ATOMIC_FETCH_AND_ADD);

	if (likely(e)) {
		enc_raddr(e, va, rkey);
		enc_atomic(e, add, 0);
	}
}

/* The value is copied into the WQE now: the program may change it after the call. */
static void wr_atomic_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va, const void *value)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_ATOMIC_WRITE);
	struct skua_inline_cursor cur;

	if (unlikely(!e))
		return;
	enc_raddr(e, va, rkey);
	/* Remote address and eight bytes are in the first block of any WQE. */
	skua_inline_begin(&cur, &e->sq->ring, e->pi, e->nseg);
	skua_inline_put(&cur, value, sizeof(uint64_t));
	e->nseg += skua_inline_end(&cur);
	wr_resize(&from_ex(qpx)->batch, true);
}

static void wr_flush(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va, size_t len, uint8_t type,
		     uint8_t level)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_FLUSH);
	int ret;

	if (unlikely(!e))
		return;
	ret = enc_flush(e, va, rkey, len, type, level);
	if (unlikely(ret))
		wr_fail(&from_ex(qpx)->batch, ret);
	else
		skua_wqe_flush_len_set(enc_head(e, 0), e->flush_len);
}

static void wr_local_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_LOCAL_INV);

	if (likely(e))
		skua_wqe_inv_set(enc_head(e, 0), rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *qpx, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct send_enc *e = wr_begin(qpx, IBV_WR_BIND_MW);
	int ret;

	if (unlikely(!e))
		return;
	ret = mw->type == IBV_MW_TYPE_2 ? enc_bind(e, mw, rkey, info) : EINVAL;
	if (unlikely(ret))
		wr_fail(&from_ex(qpx)->batch, ret);
}

/* --- the most frequent operations of connected QPs ----------------------- */

static void wr_plain_send(struct ibv_qp_ex *qpx)
{
	wr_begin_plain(qpx, IBV_WR_SEND);
}

static void wr_plain_send_imm(struct ibv_qp_ex *qpx, __be32 imm)
{
	struct send_enc *e = wr_begin_plain(qpx, IBV_WR_SEND_WITH_IMM);

	if (likely(e))
		skua_wqe_imm_set(enc_head(e, 0), imm);
}

static void wr_plain_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va)
{
	struct send_enc *e = wr_begin_plain(qpx, IBV_WR_RDMA_WRITE);

	if (likely(e))
		skua_wqe_raddr_set(enc_head(e, 1), va, rkey, 0);
}

static void wr_plain_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va, __be32 imm)
{
	struct send_enc *e = wr_begin_plain(qpx, IBV_WR_RDMA_WRITE_WITH_IMM);

	if (likely(e)) {
		skua_wqe_raddr_set(enc_head(e, 1), va, rkey, 0);
		skua_wqe_imm_set(enc_head(e, 0), imm);
	}
}

static void wr_plain_read(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t va)
{
	struct send_enc *e = wr_begin_plain(qpx, IBV_WR_RDMA_READ);

	if (likely(e))
		skua_wqe_raddr_set(enc_head(e, 1), va, rkey, 0);
}

/* --- setters ----------------------------------------------------------- */

static void wr_set_ud_addr(struct ibv_qp_ex *qpx, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct send_enc *e = wr_set(qpx);

	if (unlikely(!e))
		return;
	enc_av(e, ah, qpn, qkey);
	from_ex(qpx)->batch.need_addr = false;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qpx, uint32_t srqn)
{
	struct send_enc *e = wr_set(qpx);

	if (unlikely(!e))
		return;
	enc_xrc(e, srqn);
	from_ex(qpx)->batch.need_addr = false;
}

/* Drop the payload of an earlier setter: the last one counts. */
static inline struct send_enc *wr_payload(struct ibv_qp_ex *qpx, bool inl)
{
	struct skua_batch *b = &from_ex(qpx)->batch;
	struct send_enc *e = wr_set(qpx);

	if (unlikely(!e))
		return NULL;
	if (unlikely(e->op->how & OP_NODATA || (inl && !(e->op->how & OP_INLINE)))) {
		wr_fail(b, EINVAL);
		return NULL;
	}
	e->nseg = b->payload;
	return e;
}

static ALWAYS_INLINE inline void wr_sges(struct ibv_qp_ex *qpx, size_t num,
					 const struct ibv_sge *sg)
{
	struct send_enc *e = wr_payload(qpx, false);
	int ret;

	if (unlikely(!e))
		return;
	ret = num <= e->sq->max_sge ? enc_sges(e, sg, num) : EINVAL;
	if (unlikely(ret))
		wr_fail(&from_ex(qpx)->batch, ret);
	else
		wr_resize(&from_ex(qpx)->batch, false);
}

static void wr_set_sge_list(struct ibv_qp_ex *qpx, size_t num, const struct ibv_sge *sg)
{
	wr_sges(qpx, num, sg);
}

static void wr_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sg = { .addr = addr, .length = length, .lkey = lkey };

	wr_sges(qpx, 1, &sg);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t num,
				    const struct ibv_data_buf *buf)
{
	struct send_enc *e = wr_payload(qpx, true);
	struct skua_inline_cursor cur;
	size_t left, i;
	int ret = 0;

	if (unlikely(!e))
		return;
	left = e->sq->max_inline;
	for (i = 0; i < num && !ret; i++) {
		if (unlikely(buf[i].length > left))
			ret = EINVAL;
		left -= buf[i].length;
	}
	if (!ret)
		ret = enc_reserve(e, e->nseg + skua_wqe_inline_segs(e->sq->max_inline - left));
	if (unlikely(ret)) {
		wr_fail(&from_ex(qpx)->batch, ret);
		return;
	}
	skua_inline_begin(&cur, &e->sq->ring, e->pi, e->nseg);
	for (i = 0; i < num; i++)
		skua_inline_put(&cur, buf[i].addr, buf[i].length);
	e->nseg += skua_inline_end(&cur);
	wr_resize(&from_ex(qpx)->batch, true);
}

static void wr_set_inline_data(struct ibv_qp_ex *qpx, void *addr, size_t length)
{
	struct ibv_sge sg = { .addr = (uintptr_t)addr, .length = length };
	struct send_enc *e = wr_payload(qpx, true);
	int ret;

	if (unlikely(!e))
		return;
	/* A length that does not fit in an element is longer than any queue takes. */
	ret = length <= e->sq->max_inline ? enc_inline(e, &sg, 1) : EINVAL;
	if (unlikely(ret))
		wr_fail(&from_ex(qpx)->batch, ret);
	else
		wr_resize(&from_ex(qpx)->batch, true);
}

/* --- the batch --------------------------------------------------------- */

static void wr_start(struct ibv_qp_ex *qpx)
{
	struct skua_qp *qp = from_ex(qpx);
	struct skua_batch *b = &qp->batch;

	skua_lock(&qp->sq.lock);
	b->start = atomic_load_explicit(&qp->sq.pi, memory_order_relaxed);
	enc_start(&b->enc, &qp->sq, b->start);
	b->blocks = 0;
	b->open = false;
	b->need_addr = false;
	b->err = unlikely(qpx->qp_base.state < IBV_QPS_RTS) ? EINVAL : 0;
}

static int wr_complete(struct ibv_qp_ex *qpx)
{
	struct skua_qp *qp = from_ex(qpx);
	struct skua_batch *b = &qp->batch;
	struct skua_sq *sq = &qp->sq;
	int ret;

	wr_next(b);
	ret = b->err;
	if (likely(!ret && b->enc.pi != b->start))
		skua_sq_publish(qp, b->enc.pi, b->start);
	skua_unlock(&sq->lock);
	return ret;
}

/* Blocks that were written are beyond the producer index: the device does not read them. */
static void wr_abort(struct ibv_qp_ex *qpx)
{
	struct skua_qp *qp = from_ex(qpx);

	qp->batch.open = false;
	skua_unlock(&qp->sq.lock);
}

/* IBV_QP_EX_WITH_* is BIT(IBV_WR_*), except for FLUSH and ATOMIC_WRITE. */
#define SAME_OPS	GENMASK(10, 0)
#define X(name) _Static_assert((int)IBV_QP_EX_WITH_##name == 1 << IBV_WR_##name, #name);
X(RDMA_WRITE) X(RDMA_WRITE_WITH_IMM) X(SEND) X(SEND_WITH_IMM) X(RDMA_READ)
X(ATOMIC_CMP_AND_SWP) X(ATOMIC_FETCH_AND_ADD) X(LOCAL_INV) X(BIND_MW) X(SEND_WITH_INV) X(TSO)
#undef X

/* Shorter functions for what sq->plain_ops has of the operations that were asked for. */
void skua_wr_init_plain(struct skua_qp *qp)
{
	struct ibv_qp_ex *qpx = &qp->vqp.qp_ex;
	uint32_t ops = qp->sq.plain_ops & qp->batch.ops;

	if (ops & BIT(IBV_WR_SEND))
		qpx->wr_send = wr_plain_send;
	if (ops & BIT(IBV_WR_SEND_WITH_IMM))
		qpx->wr_send_imm = wr_plain_send_imm;
	if (ops & BIT(IBV_WR_RDMA_WRITE))
		qpx->wr_rdma_write = wr_plain_write;
	if (ops & BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
		qpx->wr_rdma_write_imm = wr_plain_write_imm;
	if (ops & BIT(IBV_WR_RDMA_READ))
		qpx->wr_rdma_read = wr_plain_read;
}

/**
 * skua_wr_init() - offer the ibv_wr_*() calls
 * @qp: new
 * @can: BIT(enum ibv_wr_opcode) of what its type allows
 * @flags: IBV_QP_EX_WITH_*: what is to be posted by them
 *
 * Return: 0, or EOPNOTSUPP if the QP cannot do one of them.
 */
int skua_wr_init(struct skua_qp *qp, uint32_t can, uint64_t flags)
{
	uint64_t known = SAME_OPS | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
	struct ibv_qp_ex *qpx = &qp->vqp.qp_ex;
	uint32_t ops = flags & SAME_OPS;

	if (flags & IBV_QP_EX_WITH_FLUSH)
		ops |= BIT(IBV_WR_FLUSH);
	if (flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ops |= BIT(IBV_WR_ATOMIC_WRITE);
	if (flags & ~known || ops & ~can)
		return EOPNOTSUPP;

	qp->batch.ops = ops;
	qpx->wr_start = wr_start;
	qpx->wr_complete = wr_complete;
	qpx->wr_abort = wr_abort;
	/* Those that every RNIC has: enc_begin() refuses one that is not in batch.ops. */
	qpx->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qpx->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qpx->wr_bind_mw = wr_bind_mw;
	qpx->wr_local_inv = wr_local_inv;
	qpx->wr_rdma_read = wr_rdma_read;
	qpx->wr_rdma_write = wr_rdma_write;
	qpx->wr_rdma_write_imm = wr_rdma_write_imm;
	qpx->wr_send = wr_send;
	qpx->wr_send_imm = wr_send_imm;
	qpx->wr_send_inv = wr_send_inv;
	qpx->wr_set_inline_data = wr_set_inline_data;
	qpx->wr_set_inline_data_list = wr_set_inline_data_list;
	qpx->wr_set_sge = wr_set_sge;
	qpx->wr_set_sge_list = wr_set_sge_list;
	qpx->wr_set_ud_addr = wr_set_ud_addr;
	qpx->wr_set_xrc_srqn = wr_set_xrc_srqn;
	/* Programs look at the pointer to find out whether there is one of these. */
	if (flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		qpx->wr_atomic_write = wr_atomic_write;
	if (flags & IBV_QP_EX_WITH_FLUSH)
		qpx->wr_flush = wr_flush;
	return 0;
}
