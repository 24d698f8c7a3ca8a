// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: posting of sends.
 */
#include "skua.h"
#include "send.h"

#define F_COMMON	(SKUA_WQE_F_SIGNALED | SKUA_WQE_F_FENCE)
#define F_WRITE		(F_COMMON | SKUA_WQE_F_INLINE)
#define F_SEND		(F_WRITE | SKUA_WQE_F_SOLICITED)
#define F_LOCAL		(F_COMMON | SKUA_WQE_F_LOCAL_FENCE)

const struct send_op send_ops[SEND_OPS + 1] = {
#define OP(verbs, op, wc, head, how, flags)	\
	[IBV_WR_##verbs] = { SKUA_WQE_##op, IBV_WC_##wc, HEAD_##head,		\
			     SKUA_WQE_OP_SEGS(SKUA_WQE_##op), how, flags }
	OP(RDMA_WRITE, WRITE, RDMA_WRITE, RADDR, OP_INLINE, F_WRITE),
	OP(RDMA_WRITE_WITH_IMM, WRITE_IMM, RDMA_WRITE, RADDR, OP_INLINE | OP_IMM, F_SEND),
	OP(SEND, SEND, SEND, NONE, OP_INLINE, F_SEND),
	OP(SEND_WITH_IMM, SEND_IMM, SEND, NONE, OP_INLINE | OP_IMM, F_SEND),
	OP(SEND_WITH_INV, SEND_INV, SEND, NONE, OP_INLINE | OP_INV, F_SEND),
	OP(RDMA_READ, READ, RDMA_READ, RADDR, 0, F_COMMON),
	OP(ATOMIC_CMP_AND_SWP, CAS, COMP_SWAP, CAS, 0, F_COMMON),
	OP(ATOMIC_FETCH_AND_ADD, FAA, FETCH_ADD, FAA, 0, F_COMMON),
	OP(FLUSH, FLUSH, FLUSH, FLUSH, OP_LEN | OP_NODATA, F_COMMON),
	OP(ATOMIC_WRITE, ATOMIC_WRITE, ATOMIC_WRITE, RADDR, OP_INLINE, F_WRITE),
	OP(LOCAL_INV, LOCAL_INV, LOCAL_INV, NONE, OP_INV | OP_NODATA | OP_LOCAL, F_LOCAL),
	OP(BIND_MW, BIND_MW, BIND_MW, BIND, OP_NODATA | OP_LOCAL, F_LOCAL),
#undef OP
	[SEND_OP_ETH] = { SKUA_WQE_ETH, IBV_WC_SEND, HEAD_NONE, 0, OP_INLINE,
			  SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE | SKUA_WQE_F_L3_CSUM |
			  SKUA_WQE_F_L4_CSUM },
};

/* Indexed by IBV_SEND_*. A fenced local operation waits for all earlier WQEs (LOCAL_FENCE). */
const uint16_t send_flags[ALL_SEND_FLAGS + 1] = {
#define F(v)	(((v) & IBV_SEND_FENCE ? SKUA_WQE_F_FENCE | SKUA_WQE_F_LOCAL_FENCE : 0) | \
		 ((v) & IBV_SEND_SIGNALED ? SKUA_WQE_F_SIGNALED : 0) |		\
		 ((v) & IBV_SEND_SOLICITED ? SKUA_WQE_F_SOLICITED : 0) |	\
		 ((v) & IBV_SEND_INLINE ? SKUA_WQE_F_INLINE : 0) |		\
		 ((v) & IBV_SEND_IP_CSUM ? SKUA_WQE_F_L3_CSUM | SKUA_WQE_F_L4_CSUM : 0))
	F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7),
	F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15),
	F(16), F(17), F(18), F(19), F(20), F(21), F(22), F(23),
	F(24), F(25), F(26), F(27), F(28), F(29), F(30), F(31),
#undef F
};
_Static_assert(ALL_SEND_FLAGS == 31, "send_flags is indexed by the flags");

void send_inline_long(const struct skua_sq_ring *ring, uint32_t index, unsigned int seg,
		      const struct ibv_sge *sg, unsigned int num)
{
	struct skua_inline_cursor cur;
	unsigned int i;

	skua_inline_begin(&cur, ring, index, seg);
	for (i = 0; i < num; i++)
		skua_inline_put(&cur, (const void *)(uintptr_t)sg[i].addr, sg[i].length);
	skua_inline_end(&cur);
}

static inline void encode_addr(struct send_enc *e, const struct ibv_send_wr *wr)
{
	if (e->sq->addr == SKUA_ADDR_AV)
		enc_av(e, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	else
		enc_xrc(e, wr->qp_type.xrc.remote_srqn);
}

static inline int encode_head(struct send_enc *e, const struct ibv_send_wr *wr)
{
	/* The common ones by branches that are predicted, not by a jump table. */
	if (likely(e->op->head == HEAD_NONE))
		return 0;
	if (likely(e->op->head == HEAD_RADDR)) {
		enc_raddr(e, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		return 0;
	}
	switch (e->op->head) {
	case HEAD_CAS:
		enc_raddr(e, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		enc_atomic(e, wr->wr.atomic.swap, wr->wr.atomic.compare_add);
		break;
	case HEAD_FAA:
		enc_raddr(e, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
		enc_atomic(e, wr->wr.atomic.compare_add, 0);
		break;
	case HEAD_FLUSH:
		/* struct ibv_send_wr has no fields for a FLUSH, ibv_wr_flush() has arguments. */
		return EINVAL;
	case HEAD_BIND:
		if (wr->bind_mw.mw->type != IBV_MW_TYPE_2)
			return EINVAL;
		return enc_bind(e, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	}
	return 0;
}

static inline int encode_payload(struct send_enc *e, const struct ibv_send_wr *wr)
{
	if (unlikely(e->op->how & OP_NODATA))
		return wr->send_flags & IBV_SEND_INLINE ? EINVAL : 0;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return enc_sges(e, wr->sg_list, wr->num_sge);
	return e->op->how & OP_INLINE ? enc_inline(e, wr->sg_list, wr->num_sge) : EINVAL;
}

static inline int encode_send(struct send_enc *e, const struct ibv_send_wr *wr)
{
	int ret;

	ret = enc_begin(e, wr->opcode, e->sq->ops);
	if (unlikely(ret))
		return ret;
	if (unlikely(enc_has_addr(e)))
		encode_addr(e, wr);
	ret = encode_head(e, wr);
	if (unlikely(ret))
		return ret;
	ret = encode_payload(e, wr);
	if (unlikely(ret))
		return ret;
	enc_end(e, wr->wr_id, wr->send_flags, wr->imm_data, wr->invalidate_rkey);
	return 0;
}

/* The rest of a list, from @wr on, and the end of the call; the queue is locked. */
static __attribute__((noinline)) int post_any(struct skua_qp *qp, uint32_t old, uint32_t pi,
					      struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct skua_sq *sq = &qp->sq;
	struct send_enc e;
	int ret = 0;

	enc_start(&e, sq, pi);
	for (; wr; wr = wr->next) {
		ret = encode_send(&e, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	if (likely(e.pi != old))
		skua_sq_publish(qp, e.pi, old);
	skua_unlock(&sq->lock);
	return ret;
}

#define PLAIN_OPS	(BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM) |	\
			 BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM) |		\
			 BIT(IBV_WR_RDMA_READ))

/* What is left of a block behind control, remote address, and the length of inline data. */
#define PLAIN_SGE	2
#define PLAIN_INLINE	(PLAIN_SGE * SKUA_WQE_SEG - sizeof(struct skua_wqe_inline))

/* Which requests encode_plain() may encode. The queue's limits are set. */
void skua_sq_init_plain(struct skua_sq *sq)
{
	sq->plain_inline = min_t(uint32_t, sq->max_inline, PLAIN_INLINE);
	if (sq->head_segs == 1 && !sq->first_op && sq->max_sge >= PLAIN_SGE)
		sq->plain_ops = sq->ops & PLAIN_OPS;
}

/*
 * The most frequent requests, with few instructions: SEND, WRITE and READ of a connected QP
 * in one block. Returns false, with nothing done, for any other, and if anything is wrong:
 * encode_send() finds out.
 */
static ALWAYS_INLINE inline bool encode_plain(struct send_enc *e, const struct ibv_send_wr *wr)
{
	unsigned int opcode = wr->opcode, flags = wr->send_flags, num = wr->num_sge, i;
	const struct ibv_sge *sg = wr->sg_list;
	struct skua_sq *sq = e->sq;

	if (unlikely(opcode >= SEND_OPS))
		return false;
	if (unlikely(!(sq->plain_ops & BIT(opcode)) || !e->room))
		return false;
	e->op = &send_ops[opcode];
	e->block = skua_sq_seg(&sq->ring, e->pi, 0);
	e->head = 1;
	e->nseg = 1;
	if (e->op->head_segs) {
		enc_raddr(e, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
		e->nseg = 2;
	}
	if (!(flags & IBV_SEND_INLINE)) {
		if (unlikely(num > PLAIN_SGE))
			return false;
		for (i = 0; i < num; i++)
			skua_wqe_data_set(enc_head(e, e->nseg++), sg[i].addr, sg[i].lkey,
					  sg[i].length);
	} else {
		if (unlikely(num != 1 || sg->length > sq->plain_inline ||
			     !(e->op->how & OP_INLINE)))
			return false;
		enc_inline_short(e, sg);
	}
	enc_close(e, 1, wr->wr_id, flags);
	if (unlikely(e->op->how & OP_IMM))
		skua_wqe_imm_set(enc_head(e, 0), wr->imm_data);
	return true;
}

int skua_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct skua_qp *qp = to_sqp(ibqp);
	struct skua_sq *sq = &qp->sq;
	struct send_enc e;
	uint32_t old;

	if (unlikely(ibqp->state < IBV_QPS_RTS)) {
		*bad = wr;
		return EINVAL;
	}

	skua_lock(&sq->lock);
	old = atomic_load_explicit(&sq->pi, memory_order_relaxed);
	enc_start(&e, sq, old);
	for (; wr; wr = wr->next)
		if (unlikely(!encode_plain(&e, wr)))
			return post_any(qp, old, e.pi, wr, bad);
	if (likely(e.pi != old))
		skua_sq_publish(qp, e.pi, old);
	skua_unlock(&sq->lock);
	return 0;
}

/* libibverbs has checked that the window is of type 1 and that PDs match. */
int skua_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	uint32_t rkey = ibv_inc_rkey(mw->rkey), old;
	struct skua_qp *qp = to_sqp(ibqp);
	struct skua_sq *sq = &qp->sq;
	struct send_enc e = { .flush_len = 0 };
	int ret;

	if (ibqp->state < IBV_QPS_RTS)
		return EINVAL;
	skua_lock(&sq->lock);
	old = atomic_load_explicit(&sq->pi, memory_order_relaxed);
	enc_start(&e, sq, old);
	ret = enc_begin(&e, IBV_WR_BIND_MW, sq->ops);
	if (!ret)
		ret = enc_bind(&e, mw, rkey, &bind->bind_info);
	if (!ret) {
		enc_end(&e, bind->wr_id, bind->send_flags, 0, 0);
		skua_sq_publish(qp, e.pi, old);
		mw->rkey = rkey;
	}
	skua_unlock(&sq->lock);
	return ret;
}
