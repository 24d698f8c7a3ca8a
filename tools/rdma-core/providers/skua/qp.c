// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: queue pairs, posting of work.
 *
 * post_send is a loop over one encoder, struct send_enc: start, remote address
 * or atomic operands, payload, finish; one doorbell for what was encoded.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"
#include "db.h"

/* What an opcode needs and allows. */
#define OP_RADDR	BIT(0)
#define OP_ATOMIC	BIT(1)
#define OP_INLINE	BIT(2)
#define OP_IMM		BIT(3)
#define OP_INV		BIT(4)
#define OP_NODATA	BIT(5)
#define OP_SOLICIT	BIT(6)

/**
 * struct send_op - a send opcode of the verbs
 * @op: enum skua_wqe_op
 * @wc: enum ibv_wc_opcode
 * @how: OP_*
 * @flags: SKUA_WQE_F_* that make sense with it
 */
struct send_op {
	uint8_t op;
	uint8_t wc;
	uint8_t how;
	uint16_t flags;
};

#define F_COMMON	(SKUA_WQE_F_SIGNALED | SKUA_WQE_F_FENCE)
#define F_SEND		(F_COMMON | SKUA_WQE_F_SOLICITED | SKUA_WQE_F_INLINE)

static const struct send_op send_ops[] = {
	[IBV_WR_RDMA_WRITE] = {
		SKUA_WQE_WRITE, IBV_WC_RDMA_WRITE, OP_RADDR | OP_INLINE,
		F_COMMON | SKUA_WQE_F_INLINE },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {
		SKUA_WQE_WRITE_IMM, IBV_WC_RDMA_WRITE, OP_RADDR | OP_INLINE | OP_IMM, F_SEND },
	[IBV_WR_SEND] = { SKUA_WQE_SEND, IBV_WC_SEND, OP_INLINE, F_SEND },
	[IBV_WR_SEND_WITH_IMM] = { SKUA_WQE_SEND_IMM, IBV_WC_SEND, OP_INLINE | OP_IMM, F_SEND },
	[IBV_WR_SEND_WITH_INV] = { SKUA_WQE_SEND_INV, IBV_WC_SEND, OP_INLINE | OP_INV, F_SEND },
	[IBV_WR_RDMA_READ] = { SKUA_WQE_READ, IBV_WC_RDMA_READ, OP_RADDR, F_COMMON },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {
		SKUA_WQE_CAS, IBV_WC_COMP_SWAP, OP_RADDR | OP_ATOMIC, F_COMMON },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {
		SKUA_WQE_FAA, IBV_WC_FETCH_ADD, OP_RADDR | OP_ATOMIC, F_COMMON },
	[IBV_WR_LOCAL_INV] = {
		SKUA_WQE_LOCAL_INV, IBV_WC_LOCAL_INV, OP_INV | OP_NODATA, F_COMMON },
};

#define ALL_SEND_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

/* IBV_SEND_* to SKUA_WQE_F_*: the flags of the verbs are the index. */
static const uint8_t send_flags[ALL_SEND_FLAGS + 1] = {
#define F(v)	(((v) & IBV_SEND_FENCE ? SKUA_WQE_F_FENCE : 0) |		\
		 ((v) & IBV_SEND_SIGNALED ? SKUA_WQE_F_SIGNALED : 0) |		\
		 ((v) & IBV_SEND_SOLICITED ? SKUA_WQE_F_SOLICITED : 0) |	\
		 ((v) & IBV_SEND_INLINE ? SKUA_WQE_F_INLINE : 0))
	F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7),
	F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15),
#undef F
};
_Static_assert(ALL_SEND_FLAGS == 15, "send_flags is indexed by the flags");

/* --- the encoder ------------------------------------------------------- */

/**
 * struct send_enc - a send WQE being written
 * @sq: its queue, locked
 * @pi: block at which it starts
 * @nseg: segments written or reserved so far
 * @room: free blocks of the ring
 */
struct send_enc {
	struct skua_sq *sq;
	uint32_t pi;
	unsigned int nseg;
	uint32_t room;
};

static inline void *enc_seg(struct send_enc *e)
{
	return skua_sq_seg(&e->sq->ring, e->pi, e->nseg++);
}

/* Is there room for so many segments beside those written? Looks twice. */
static inline int enc_reserve(struct send_enc *e, unsigned int segs)
{
	unsigned int blocks = skua_wqe_blocks(e->nseg + segs);

	if (likely(blocks <= e->room))
		return 0;
	e->room = e->sq->blocks -
		  (e->pi - atomic_load_explicit(&e->sq->ci, memory_order_acquire));
	return blocks <= e->room ? 0 : ENOMEM;
}

static inline int enc_sges(struct send_enc *e, const struct ibv_sge *sg, int num)
{
	int i;

	if (unlikely((unsigned int)num > e->sq->max_sge))
		return EINVAL;
	if (unlikely(enc_reserve(e, num)))
		return ENOMEM;
	for (i = 0; i < num; i++)
		skua_wqe_data_set(enc_seg(e), sg[i].addr, sg[i].lkey, sg[i].length);
	return 0;
}

static inline int enc_inline(struct send_enc *e, const struct ibv_sge *sg, int num)
{
	struct skua_inline_cursor cur;
	uint64_t len = 0;
	int i;

	if (unlikely((unsigned int)num > e->sq->max_sge))
		return EINVAL;
	for (i = 0; i < num; i++)
		len += sg[i].length;
	if (unlikely(len > e->sq->max_inline))
		return EINVAL;
	if (unlikely(enc_reserve(e, skua_wqe_inline_segs(len))))
		return ENOMEM;

	skua_inline_begin(&cur, &e->sq->ring, e->pi, e->nseg);
	for (i = 0; i < num; i++)
		skua_inline_put(&cur, (const void *)(uintptr_t)sg[i].addr, sg[i].length);
	e->nseg += skua_inline_end(&cur);
	return 0;
}

static inline void enc_finish(struct send_enc *e, const struct send_op *op, uint64_t wr_id,
			      uint32_t flags)
{
	unsigned int blocks = skua_wqe_blocks(e->nseg);
	struct skua_sq *sq = e->sq;
	struct skua_sent *sent = &sq->sent[e->pi & (sq->blocks - 1)];

	skua_wqe_ctrl_set(skua_sq_seg(&sq->ring, e->pi, 0), op->op, e->nseg, e->pi, flags);
	sent->wr_id = wr_id;
	sent->opcode = op->wc;
	sent->blocks = blocks;
	e->pi += blocks;
	e->room -= blocks;
}

static inline int encode_send(struct send_enc *e, const struct ibv_send_wr *wr)
{
	const struct send_op *op;
	struct skua_wqe_ctrl *c;
	uint32_t flags;
	int ret;

	if (unlikely((unsigned int)wr->opcode >= 32 || !(e->sq->ops >> wr->opcode & 1)))
		return EINVAL;
	op = &send_ops[wr->opcode];
	flags = (send_flags[wr->send_flags & ALL_SEND_FLAGS] & op->flags) | e->sq->sig;

	c = skua_sq_seg(&e->sq->ring, e->pi, 0);
	e->nseg = 1;
	/* Control, remote address and operands all lie in the first block. */
	if (unlikely(enc_reserve(e, 0)))
		return ENOMEM;
	if (op->how & OP_RADDR) {
		if (op->how & OP_ATOMIC) {
			skua_wqe_raddr_set(enc_seg(e), wr->wr.atomic.remote_addr,
					   wr->wr.atomic.rkey, 0);
			if (op->op == SKUA_WQE_CAS)
				skua_wqe_atomic_set(enc_seg(e), wr->wr.atomic.swap,
						    wr->wr.atomic.compare_add);
			else
				skua_wqe_atomic_set(enc_seg(e), wr->wr.atomic.compare_add, 0);
		} else {
			skua_wqe_raddr_set(enc_seg(e), wr->wr.rdma.remote_addr,
					   wr->wr.rdma.rkey, 0);
		}
	}

	if (wr->send_flags & IBV_SEND_INLINE)
		ret = op->how & OP_INLINE ? enc_inline(e, wr->sg_list, wr->num_sge) : EINVAL;
	else if (op->how & OP_NODATA)
		ret = 0;
	else
		ret = enc_sges(e, wr->sg_list, wr->num_sge);
	if (unlikely(ret))
		return ret;

	enc_finish(e, op, wr->wr_id, flags);
	if (op->how & OP_IMM)
		skua_wqe_imm_set(c, wr->imm_data);
	else if (op->how & OP_INV)
		skua_wqe_inv_set(c, wr->invalidate_rkey);
	return 0;
}

int skua_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct skua_qp *qp = to_sqp(ibqp);
	struct skua_sq *sq = &qp->sq;
	struct send_enc e = { .sq = sq };
	uint32_t old;
	int ret = 0;

	if (unlikely(ibqp->state < IBV_QPS_RTS)) {
		*bad = wr;
		return EINVAL;
	}

	pthread_spin_lock(&sq->lock);
	old = atomic_load_explicit(&sq->pi, memory_order_relaxed);
	e.pi = old;
	e.room = sq->blocks - (old - atomic_load_explicit(&sq->ci, memory_order_acquire));
	for (; wr; wr = wr->next) {
		ret = encode_send(&e, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	if (likely(e.pi != old)) {
		/* Pollers look up what was sent up to here. */
		atomic_store_explicit(&sq->pi, e.pi, memory_order_release);
		skua_db_sq(qp->uar, qp->dbr, ibqp->qp_num, e.pi, old, sq->suppress);
	}
	pthread_spin_unlock(&sq->lock);
	return ret;
}

/*
 * Make the device look at a QP in error. The lock keeps an older index from
 * overtaking a newer one.
 */
static void qp_kick(struct skua_qp *qp)
{
	pthread_spin_lock(&qp->sq.lock);
	skua_db_kick(qp->uar, qp->vqp.qp.qp_num,
		     atomic_load_explicit(&qp->sq.pi, memory_order_relaxed));
	pthread_spin_unlock(&qp->sq.lock);
}

int skua_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct skua_qp *qp = to_sqp(ibqp);
	struct skua_rq *rq = &qp->rq;
	uint32_t pi, old;
	int ret = 0;

	if (unlikely(ibqp->state == IBV_QPS_RESET || ibqp->srq)) {
		*bad = wr;
		return EINVAL;
	}

	pthread_spin_lock(&rq->lock);
	old = atomic_load_explicit(&rq->pi, memory_order_relaxed);
	for (pi = old; wr; wr = wr->next, pi++) {
		struct skua_wqe_data *d = skua_rq_wqe(&rq->ring, pi);
		int i;

		if (unlikely((unsigned int)wr->num_sge > rq->max_sge))
			ret = EINVAL;
		else if (unlikely(pi - atomic_load_explicit(&rq->ci, memory_order_acquire) >=
				  rq->size))
			ret = ENOMEM;
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
		for (i = 0; i < wr->num_sge; i++)
			skua_wqe_data_set(&d[i], wr->sg_list[i].addr, wr->sg_list[i].lkey,
					  wr->sg_list[i].length);
		skua_rq_wqe_end(d, wr->num_sge, rq->segs);
		rq->wr_id[pi & rq->ring.mask] = wr->wr_id;
	}
	if (likely(pi != old)) {
		/* Pollers look up what was posted up to here. */
		atomic_store_explicit(&rq->pi, pi, memory_order_release);
		skua_db_rq(qp->dbr, pi);
		if (unlikely(rq->in_err))
			qp_kick(qp);
	}
	pthread_spin_unlock(&rq->lock);
	return ret;
}

/*
 * The QP was seen to be in error. From now on a posted receive is told to the
 * device at once; those that came between its error and now, here.
 */
void skua_qp_in_error(struct skua_qp *qp)
{
	pthread_spin_lock(&qp->rq.lock);
	if (!qp->rq.in_err) {
		qp->rq.in_err = true;
		qp_kick(qp);
	}
	pthread_spin_unlock(&qp->rq.lock);
}

void skua_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		skua_qp_in_error(to_sqp(event->element.qp));
		break;
	default:
		break;
	}
}

/* --- life -------------------------------------------------------------- */

/* What a QP of this type may send; 0: no such type. */
static uint32_t qp_ops(const struct skua_context *ctx, enum ibv_qp_type type)
{
	uint32_t ops = BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM) | BIT(IBV_WR_RDMA_WRITE) |
		       BIT(IBV_WR_RDMA_WRITE_WITH_IMM);

	if (skua_has(ctx, SKUA_CAP_INVALIDATE))
		ops |= BIT(IBV_WR_LOCAL_INV);
	switch (type) {
	case IBV_QPT_RC:
		if (!skua_has(ctx, SKUA_CAP_RC))
			return 0;
		ops |= BIT(IBV_WR_RDMA_READ);
		if (skua_has(ctx, SKUA_CAP_INVALIDATE))
			ops |= BIT(IBV_WR_SEND_WITH_INV);
		if (skua_has(ctx, SKUA_CAP_ATOMIC))
			ops |= BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD);
		return ops;
	case IBV_QPT_UC:
		return skua_has(ctx, SKUA_CAP_UC) ? ops : 0;
	default:
		return 0;
	}
}

static unsigned int log2_up(uint64_t n)
{
	return n > 1 ? ilog64_nz(n - 1) : 0;
}

/*
 * Segments before the payload: control and remote address. An atomic needs one
 * more, and one data segment: they fit in the first block of any WQE.
 */
#define SQ_HEAD_SEGS	2

/*
 * Programs that wait for events may post before they have polled: an arm finds the
 * completion that the last event told of, and its event leads to an empty poll.
 * Some ask for a queue of one and live by the slack that others give.
 */
#define SQ_MIN_BLOCKS	8

static int sq_size(const struct skua_context *ctx, struct skua_sq *sq, struct ibv_qp_cap *cap)
{
	const struct skua_alloc_ucontext_resp *lim = &ctx->lim;
	uint32_t max_segs = lim->max_wqe_blocks * SKUA_WQE_SEGS_PER_BLOCK;
	uint64_t blocks;
	uint32_t per_wr;

	if (cap->max_send_wr > lim->max_sq_blocks || cap->max_send_sge > max_segs - SQ_HEAD_SEGS ||
	    cap->max_inline_data > lim->max_inline)
		return EINVAL;
	if (!cap->max_send_wr) {
		sq->max_sge = 0;
		sq->max_inline = 0;
		cap->max_send_sge = 0;
		cap->max_inline_data = 0;
		return 0;
	}

	per_wr = skua_wqe_inline_segs(cap->max_inline_data);
	if (!cap->max_inline_data || per_wr < cap->max_send_sge)
		per_wr = cap->max_send_sge;
	per_wr = skua_wqe_blocks(SQ_HEAD_SEGS + per_wr);
	if (per_wr > lim->max_wqe_blocks)
		return EINVAL;
	blocks = roundup_pow_of_two((uint64_t)cap->max_send_wr * per_wr);
	if (blocks < SQ_MIN_BLOCKS)
		blocks = SQ_MIN_BLOCKS;
	if (blocks > lim->max_sq_blocks)
		return EINVAL;

	/* Whole blocks are taken: tell what they hold. */
	sq->blocks = blocks;
	sq->max_sge = per_wr * SKUA_WQE_SEGS_PER_BLOCK - SQ_HEAD_SEGS;
	sq->max_inline = min_t(uint32_t, sq->max_sge * SKUA_WQE_SEG -
			       sizeof(struct skua_wqe_inline), lim->max_inline);
	cap->max_send_sge = sq->max_sge;
	cap->max_inline_data = sq->max_inline;
	return 0;
}

static int rq_size(const struct skua_context *ctx, struct skua_rq *rq, struct ibv_qp_cap *cap)
{
	const struct skua_alloc_ucontext_resp *lim = &ctx->lim;

	if (cap->max_recv_wr > lim->max_rq_wqes || cap->max_recv_sge > lim->max_rq_sge)
		return EINVAL;
	if (!cap->max_recv_wr) {
		rq->max_sge = 0;
		cap->max_recv_sge = 0;
		return 0;
	}
	rq->size = roundup_pow_of_two(cap->max_recv_wr);
	if (rq->size > lim->max_rq_wqes)
		return EINVAL;
	rq->segs = 1U << log2_up(cap->max_recv_sge);
	rq->max_sge = min_t(uint32_t, rq->segs, lim->max_rq_sge);
	cap->max_recv_sge = rq->max_sge;
	return 0;
}

/* One buffer: the receive ring, then the send ring at a multiple of its block. */
static int qp_alloc_rings(struct skua_context *ctx, struct skua_qp *qp,
			  struct skua_create_qp_req *req)
{
	struct skua_sq *sq = &qp->sq;
	struct skua_rq *rq = &qp->rq;
	size_t rq_len, sq_len;

	req->has_sq = !!sq->blocks;
	req->has_rq = !!rq->size;
	req->log_sq = log2_up(sq->blocks);
	req->log_rq = log2_up(rq->size);
	req->log_rq_stride = log2_up(rq->segs);

	rq_len = align((size_t)rq->size * rq->segs * SKUA_WQE_SEG, SKUA_WQE_BLOCK);
	sq_len = (size_t)sq->blocks * SKUA_WQE_BLOCK;
	if (skua_buf_alloc(ctx, &qp->buf, rq_len + sq_len))
		return errno;
	sq->sent = calloc(sq->blocks + 1, sizeof(*sq->sent));
	rq->wr_id = calloc(rq->size + 1, sizeof(*rq->wr_id));
	qp->dbr = skua_dbr_alloc(ctx);
	if (!sq->sent || !rq->wr_id || !qp->dbr)
		return ENOMEM;

	skua_rq_ring_init(&rq->ring, qp->buf.addr, req->log_rq, req->log_rq_stride);
	skua_sq_ring_init(&sq->ring, (uint8_t *)qp->buf.addr + rq_len, req->log_sq);
	req->buf_addr = (uintptr_t)qp->buf.addr;
	req->buf_len = rq_len + sq_len;
	req->dbr_addr = (uintptr_t)qp->dbr;
	return 0;
}

static void qp_free(struct skua_context *ctx, struct skua_qp *qp)
{
	if (qp->dbr)
		skua_dbr_free(ctx, qp->dbr);
	free(qp->rq.wr_id);
	free(qp->sq.sent);
	if (qp->buf.len)
		skua_buf_free(&qp->buf);
	pthread_spin_destroy(&qp->rq.lock);
	pthread_spin_destroy(&qp->sq.lock);
	free(qp);
}

static void qp_attach(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	skua_cq_attach(to_scq(ibqp->send_cq), qp);
	if (ibqp->send_cq != ibqp->recv_cq)
		skua_cq_attach(to_scq(ibqp->recv_cq), qp);
}

static void qp_detach(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	skua_cq_detach(to_scq(ibqp->send_cq), qp);
	if (ibqp->send_cq != ibqp->recv_cq)
		skua_cq_detach(to_scq(ibqp->recv_cq), qp);
}

static int qp_create_kernel(struct skua_context *ctx, struct skua_qp *qp, struct ibv_pd *pd,
			    struct ibv_qp_init_attr *attr, struct ibv_qp_cap *cap)
{
	struct skua_create_qp_cmd_resp resp = {};
	struct skua_create_qp_cmd cmd = {};
	struct ibv_qp_init_attr init = *attr;
	int ret;

	ret = qp_alloc_rings(ctx, qp, &cmd.drv_payload);
	if (ret)
		return ret;
	if (qp->sq.suppress)
		cmd.flags |= SKUA_CREATE_QP_DB_SUPPRESS;

	/* The device is told what may be posted at most. */
	init.cap.max_inline_data = cap->max_inline_data;
	ret = ibv_cmd_create_qp(pd, &qp->vqp.qp, &init, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	qp_attach(qp);
	return 0;
}

struct ibv_qp *skua_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct skua_context *ctx = to_sctx(pd->context);
	struct ibv_qp_cap cap = attr->cap;
	struct skua_qp *qp;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	pthread_spin_init(&qp->sq.lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->rq.lock, PTHREAD_PROCESS_PRIVATE);
	qp->uar = ctx->uar;
	qp->sq.suppress = skua_has(ctx, SKUA_CAP_DB_SUPPRESS);
	qp->sq.sig = attr->sq_sig_all ? SKUA_WQE_F_SIGNALED : 0;

	qp->sq.ops = qp_ops(ctx, attr->qp_type);
	ret = EOPNOTSUPP;
	if (!qp->sq.ops || attr->srq)
		goto err;
	ret = EINVAL;
	if (!attr->send_cq || !attr->recv_cq)
		goto err;
	ret = sq_size(ctx, &qp->sq, &cap);
	if (ret)
		goto err;
	ret = rq_size(ctx, &qp->rq, &cap);
	if (ret)
		goto err;
	ret = qp_create_kernel(ctx, qp, pd, attr, &cap);
	if (ret)
		goto err;

	/* As many of the largest WQEs as the rings hold. */
	if (qp->sq.blocks)
		cap.max_send_wr = qp->sq.blocks /
				  skua_wqe_blocks(SQ_HEAD_SEGS + qp->sq.max_sge);
	cap.max_recv_wr = qp->rq.size;
	attr->cap = cap;
	return &qp->vqp.qp;

err:
	qp_free(ctx, qp);
	errno = ret;
	return NULL;
}

/* In RESET the queues are empty and start at index 0 again. */
static void qp_reset(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	skua_cq_clean(to_scq(ibqp->send_cq), ibqp->qp_num);
	if (ibqp->send_cq != ibqp->recv_cq)
		skua_cq_clean(to_scq(ibqp->recv_cq), ibqp->qp_num);

	atomic_store_explicit(&qp->sq.pi, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sq.ci, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rq.pi, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rq.ci, 0, memory_order_relaxed);
	qp->rq.in_err = false;
	/* sq_event is the device's; it is zero by now. */
	skua_record(&qp->dbr->sq_pi, 0);
	skua_record(&qp->dbr->rq_pi, 0);
}

int skua_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct skua_qp *qp = to_sqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int ret;

	ret = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (ret || !(mask & IBV_QP_STATE))
		return ret;
	if (attr->qp_state == IBV_QPS_RESET)
		qp_reset(qp);
	else if (attr->qp_state == IBV_QPS_ERR)
		skua_qp_in_error(qp);
	return 0;
}

int skua_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct skua_qp *qp = to_sqp(ibqp);
	struct ibv_query_qp cmd;
	int ret;

	ret = ibv_cmd_query_qp(ibqp, attr, mask, init_attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	/* The rings' shape is known here alone. */
	init_attr->cap = (struct ibv_qp_cap){
		.max_recv_wr = qp->rq.size,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->sq.max_inline,
	};
	if (qp->sq.blocks)
		init_attr->cap.max_send_wr = qp->sq.blocks /
					     skua_wqe_blocks(SQ_HEAD_SEGS + qp->sq.max_sge);
	attr->cap = init_attr->cap;
	return 0;
}

/*
 * The number is another QP's as soon as the kernel has destroyed this one. So
 * the QP is reset first, and its completions go while the number still is ours.
 */
int skua_destroy_qp(struct ibv_qp *ibqp)
{
	struct skua_context *ctx = to_sctx(ibqp->context);
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct skua_qp *qp = to_sqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int ret;

	/* Only a lost device refuses, and that one completes nothing more. */
	ibv_cmd_modify_qp(ibqp, &reset, IBV_QP_STATE, &cmd, sizeof(cmd));
	ibqp->state = IBV_QPS_RESET;
	qp_detach(qp);
	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret) {
		qp_reset(qp);
		qp_attach(qp);
		return ret;
	}
	qp_free(ctx, qp);
	return 0;
}
