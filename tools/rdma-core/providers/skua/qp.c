// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: queue pairs, posting of receives.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/array_size.h>

#include "skua.h"
#include "skuadv.h"
#include "db.h"
#include "send.h"

/*
 * Repeat the doorbell of a QP in error, so that the device flushes its receives. This
 * runs in pollers and event handlers, beside a thread that may post sends: if its
 * doorbell comes first, the device ignores ours as an index that goes back. So repeat
 * until the producer index has not changed in between.
 *
 * Other than a post, this may run beside a change to RESET. An index from before it must not
 * arrive after it: the device would execute what the ring had. In RESET it ignores doorbells.
 */
static void qp_kick(struct skua_qp *qp)
{
	pthread_mutex_t *lock = &to_sctx(qp->vqp.qp.context)->kick_lock;
	uint32_t pi, now;

	pthread_mutex_lock(lock);
	now = atomic_load_explicit(&qp->sq.pi, memory_order_relaxed);
	do {
		pi = now;
		skua_db_kick(qp->uar, qp->vqp.qp.qp_num, pi);
		/* Ring the doorbell before the producer index is loaded again. */
		atomic_thread_fence(memory_order_seq_cst);
		now = atomic_load_explicit(&qp->sq.pi, memory_order_relaxed);
	} while (now != pi);
	pthread_mutex_unlock(lock);
}

/* The end of a post to a QP that is in error, or has no lock. */
static __attribute__((noinline)) int rq_end_rarely(struct skua_qp *qp, int ret)
{
	struct skua_rq *rq = &qp->rq;

	/* Store the record before in_err is loaded; see skua_qp_in_error(). */
	if (rq->lock.off)
		atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&rq->in_err, memory_order_relaxed))
		qp_kick(qp);
	skua_unlock(&rq->lock);
	return ret;
}

/* Give the WQEs up to @pi to the device, and the lock. */
static ALWAYS_INLINE inline int rq_publish(struct skua_qp *qp, uint32_t pi, int ret)
{
	struct skua_rq *rq = &qp->rq;

	if (likely(pi != atomic_load_explicit(&rq->pi, memory_order_relaxed))) {
		/* After rq->wr_id[]: pollers read its entries below this index. */
		atomic_store_explicit(&rq->pi, pi, memory_order_release);
		skua_db_rq(qp->dbr, pi);
	}
	/* See skua_qp_in_error(). */
	if (unlikely(rq->lock.off || atomic_load_explicit(&rq->in_err, memory_order_relaxed)))
		return rq_end_rarely(qp, ret);
	skua_unlock_taken(&rq->lock);
	return ret;
}

/*
 * Goes on for rq_post() at @wr, which has not exactly one element, or one of no length, or for
 * which there is no room. Locked and unlocked as there.
 */
static __attribute__((noinline)) int rq_post_any(struct skua_qp *qp, struct ibv_recv_wr *wr,
						 struct ibv_recv_wr **bad, uint32_t pi)
{
	struct skua_rq *rq = &qp->rq;
	uint32_t end = atomic_load_explicit(&rq->ci, memory_order_acquire) + rq->size;
	int ret = 0;

	for (; wr; wr = wr->next, pi++) {
		struct skua_wqe_data *d = skua_rq_wqe(&rq->ring, pi);
		unsigned int num = wr->num_sge;

		if (unlikely(num > rq->max_sge))
			ret = EINVAL;
		else if (unlikely(pi == end))
			ret = ENOMEM;
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
		skua_rq_wqe_end(d, skua_rq_list(d, wr->sg_list, num), rq->segs);
		rq->wr_id[pi & rq->ring.mask] = wr->wr_id;
	}
	return rq_publish(qp, pi, ret);
}

/*
 * The queue is locked; it is not, afterwards. Functions are called as the last step only, so
 * that few registers must be saved.
 */
static ALWAYS_INLINE inline int rq_post(struct skua_qp *qp, struct ibv_recv_wr *wr,
					struct ibv_recv_wr **bad)
{
	struct skua_rq *rq = &qp->rq;
	uint32_t pi, end;

	pi = atomic_load_explicit(&rq->pi, memory_order_relaxed);
	end = atomic_load_explicit(&rq->ci, memory_order_acquire) + rq->size;
	for (; wr; wr = wr->next, pi++) {
		const struct ibv_sge *sg = wr->sg_list;
		struct skua_wqe_data *d;

		if (unlikely(pi == end || wr->num_sge != 1 || !sg->length))
			return rq_post_any(qp, wr, bad, pi);
		d = skua_rq_wqe(&rq->ring, pi);
		skua_wqe_data_set(d, sg->addr, sg->lkey, sg->length);
		skua_rq_wqe_end(d, 1, rq->segs);
		rq->wr_id[pi & rq->ring.mask] = wr->wr_id;
	}
	return rq_publish(qp, pi, 0);
}

static __attribute__((noinline)) int rq_wait_and_post(struct skua_qp *qp, struct ibv_recv_wr *wr,
						      struct ibv_recv_wr **bad)
{
	skua_lock_wait(&qp->rq.lock);
	return rq_post(qp, wr, bad);
}

static ALWAYS_INLINE inline int rq_lock_and_post(struct skua_qp *qp, struct ibv_recv_wr *wr,
						 struct ibv_recv_wr **bad)
{
	if (unlikely(!skua_trylock(&qp->rq.lock)))
		return rq_wait_and_post(qp, wr, bad);
	return rq_post(qp, wr, bad);
}

int skua_rq_post(struct skua_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return rq_lock_and_post(qp, wr, bad);
}

int skua_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (unlikely(ibqp->state == IBV_QPS_RESET || ibqp->srq)) {
		*bad = wr;
		return EINVAL;
	}
	return rq_lock_and_post(to_sqp(ibqp), wr, bad);
}

/*
 * A completion or event says that the QP is in error. The doorbell here makes the device
 * flush the receives that are posted already; with in_err set, skua_rq_post() rings for
 * each that follows. None is missed in between: a poster stores its record and then loads
 * in_err, we store in_err and then ring; the lock, or a fence where there is none, keeps
 * both orders.
 */
void skua_qp_in_error(struct skua_qp *qp)
{
	skua_lock(&qp->rq.lock);
	if (!atomic_exchange_explicit(&qp->rq.in_err, true, memory_order_seq_cst))
		qp_kick(qp);
	skua_unlock(&qp->rq.lock);
}

/* An XRC target has no rings, whether this process created or only opened it. */
static bool qp_is_bare(const struct skua_qp *qp)
{
	return !qp->buf.len;
}

void skua_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		if (!qp_is_bare(to_sqp(event->element.qp)))
			skua_qp_in_error(to_sqp(event->element.qp));
		break;
	case IBV_EVENT_WQ_FATAL:
		skua_wq_in_error(event->element.wq);
		break;
	default:
		break;
	}
}

/* --- life -------------------------------------------------------------- */

/* Operations that depend on a capability; SEND and WRITE depend on the QP type alone. */
static const struct {
	uint64_t cap;
	uint32_t ops;
} cap_ops[] = {
	{ SKUA_CAP_RC, BIT(IBV_WR_RDMA_READ) },
	{ SKUA_CAP_ATOMIC, BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD) },
	{ SKUA_CAP_INVALIDATE, BIT(IBV_WR_LOCAL_INV) | BIT(IBV_WR_SEND_WITH_INV) },
	{ SKUA_CAP_MW, BIT(IBV_WR_BIND_MW) },
	{ SKUA_CAP_FLUSH, BIT(IBV_WR_FLUSH) },
	{ SKUA_CAP_ATOMIC_WRITE, BIT(IBV_WR_ATOMIC_WRITE) },
};

#define OPS_SEND	(BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM))
#define OPS_WRITE	(BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
#define OPS_KEY		(BIT(IBV_WR_LOCAL_INV) | BIT(IBV_WR_BIND_MW))
#define OPS_RC_ONLY	(BIT(IBV_WR_FLUSH) | BIT(IBV_WR_ATOMIC_WRITE))

/**
 * struct qp_kind - properties of a QP type
 * @cap: capability it needs
 * @ops: BIT(enum ibv_wr_opcode) of what it may send, if the device can
 * @addr: how its WQEs name their destination
 * @head_segs: segments of that and of the control segment
 * @raddr_segs: segments of a remote address
 * @first_op: what to add to an opcode to find it in the encoder's table
 */
struct qp_kind {
	uint64_t cap;
	uint32_t ops;
	uint8_t addr;
	uint8_t head_segs;
	uint8_t raddr_segs;
	uint8_t first_op;
};

static const struct qp_kind qp_kinds[] = {
	[IBV_QPT_RC] = { SKUA_CAP_RC, ~0U, SKUA_ADDR_PEER, 1, 1 },
	[IBV_QPT_UC] = { SKUA_CAP_UC, OPS_SEND | OPS_WRITE | OPS_KEY, SKUA_ADDR_PEER, 1, 1 },
	[IBV_QPT_UD] = { SKUA_CAP_UD, OPS_SEND, SKUA_ADDR_AV,
			 1 + sizeof(struct skua_wqe_av) / SKUA_WQE_SEG, 0 },
	[IBV_QPT_XRC_SEND] = { SKUA_CAP_XRC, (uint32_t)~OPS_RC_ONLY, SKUA_ADDR_XRC,
			       1 + sizeof(struct skua_wqe_xrc) / SKUA_WQE_SEG, 1 },
	[IBV_QPT_RAW_PACKET] = { SKUA_CAP_ETH, BIT(IBV_WR_SEND), SKUA_ADDR_PEER, 1, 0,
				 SEND_OP_ETH - IBV_WR_SEND },
};

/* Operations of which the device has the capability. */
static uint32_t device_ops(const struct skua_context *ctx)
{
	uint32_t ops = OPS_SEND | OPS_WRITE;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cap_ops); i++)
		if (skua_has(ctx, cap_ops[i].cap))
			ops |= cap_ops[i].ops;
	return ops;
}

static int qp_init_kind(const struct skua_context *ctx, struct skua_qp *qp,
			const struct ibv_qp_init_attr_ex *attr)
{
	const struct qp_kind *kind;
	uint32_t ops;

	if (attr->qp_type >= ARRAY_SIZE(qp_kinds))
		return EOPNOTSUPP;
	kind = &qp_kinds[attr->qp_type];
	if (!kind->cap || !skua_has(ctx, kind->cap))
		return EOPNOTSUPP;

	ops = kind->ops & device_ops(ctx);
	qp->sq.addr = kind->addr;
	qp->sq.head_segs = kind->head_segs;
	qp->sq.raddr_segs = kind->raddr_segs;
	qp->sq.first_op = kind->first_op;
	/* struct ibv_send_wr has no fields for a FLUSH. */
	qp->sq.ops = ops & ~BIT(IBV_WR_FLUSH);
	qp->sq.sig = attr->sq_sig_all ? SKUA_WQE_F_SIGNALED : 0;
	qp->sq.tell = skua_has(ctx, SKUA_CAP_DB_SUPPRESS) ? SKUA_TELL_IF_ASKED : 0;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return skua_wr_init(qp, ops, attr->send_ops_flags);
	return 0;
}

static unsigned int log2_up(uint64_t n)
{
	return n > 1 ? ilog64_nz(n - 1) : 0;
}

/*
 * Some programs ask for one send request and post the next before they have polled the
 * completion of the last: other providers round up, and they rely on it.
 */
#define SQ_MIN_BLOCKS	8

/* Segments before the payload, except for the operands of an atomic; see ATOMIC_SEGS. */
static uint32_t sq_head(const struct skua_sq *sq)
{
	return sq->head_segs + sq->raddr_segs;
}

/* Segments of an atomic: head, operands, one element for the result. */
#define ATOMIC_SEGS(sq)	(sq_head(sq) + 2)

static int sq_size(const struct skua_context *ctx, struct skua_sq *sq, struct ibv_qp_cap *cap)
{
	const struct skua_alloc_ucontext_resp *lim = &ctx->lim;
	bool atomics = sq->ops & BIT(IBV_WR_ATOMIC_CMP_AND_SWP);
	/* What ibv_query_device() tells; that leaves room for the operands of an atomic, too. */
	uint32_t max_sge = skua_wqe_max_sge(lim->max_wqe_blocks);
	uint64_t blocks;
	uint32_t per_wr;

	if (cap->max_send_wr > lim->max_sq_blocks || cap->max_send_sge > max_sge ||
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
	per_wr += sq_head(sq);
	/* Not more: what is told here may be asked for the next time, and must not grow then. */
	if (atomics && per_wr < ATOMIC_SEGS(sq))
		per_wr = ATOMIC_SEGS(sq);
	per_wr = skua_wqe_blocks(per_wr);
	if (per_wr > lim->max_wqe_blocks)
		return EINVAL;
	blocks = roundup_pow_of_two((uint64_t)cap->max_send_wr * per_wr);
	if (blocks < SQ_MIN_BLOCKS)
		blocks = SQ_MIN_BLOCKS;
	if (blocks > lim->max_sq_blocks)
		return EINVAL;

	/* WQEs take whole blocks: report all that fits. */
	sq->blocks = blocks;
	sq->mask = blocks - 1;
	per_wr = per_wr * SKUA_WQE_SEGS_PER_BLOCK - sq_head(sq);
	sq->max_sge = min_t(uint32_t, per_wr, max_sge);
	sq->max_inline = min_t(uint32_t, per_wr * SKUA_WQE_SEG - sizeof(struct skua_wqe_inline),
			       lim->max_inline);
	cap->max_send_sge = sq->max_sge;
	cap->max_inline_data = sq->max_inline;
	return 0;
}

int skua_rq_size(const struct skua_context *ctx, struct skua_rq *rq, struct ibv_qp_cap *cap)
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

/* One buffer: the receive ring, then the send ring, aligned to SKUA_WQE_BLOCK. */
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
	if (skua_mem_alloc_in(ctx, qp->pd, &qp->buf, rq_len + sq_len, SKUADV_RES_QP))
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

/* A QP without rings. @parent: parent domain or NULL; its reference goes to the QP. */
struct skua_qp *skua_qp_alloc(struct skua_context *ctx, struct skua_pd *parent)
{
	struct skua_qp *qp = skua_zalloc_lines(sizeof(*qp));

	if (!qp)
		return NULL;
	qp->pd = parent;
	skua_lock_init(&qp->sq.lock, parent && parent->td);
	skua_lock_init(&qp->rq.lock, parent && parent->td);
	qp->uar = ctx->uar;
	return qp;
}

void skua_qp_free(struct skua_context *ctx, struct skua_qp *qp)
{
	skua_push_put(ctx, qp);
	if (qp->dbr)
		skua_dbr_free(ctx, qp->dbr);
	free(qp->rq.wr_id);
	free(qp->sq.sent);
	if (qp->buf.len)
		skua_mem_free(&qp->buf);
	skua_parent_put(qp->pd);
	free(qp);
}

static void qp_attach(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ibqp->send_cq)
		skua_cq_attach(to_scq(ibqp->send_cq), qp);
	if (ibqp->recv_cq && ibqp->send_cq != ibqp->recv_cq)
		skua_cq_attach(to_scq(ibqp->recv_cq), qp);
	if (ibqp->srq)
		skua_srq_attach(to_ssrq(ibqp->srq));
}

static void qp_detach(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ibqp->send_cq)
		skua_cq_detach(to_scq(ibqp->send_cq), qp);
	if (ibqp->recv_cq && ibqp->send_cq != ibqp->recv_cq)
		skua_cq_detach(to_scq(ibqp->recv_cq), qp);
	/* The WQEs of CQEs that were dropped above went back to it. */
	if (ibqp->srq)
		skua_srq_detach(to_ssrq(ibqp->srq));
}

/* ibv_wr_atomic_write() has 8 inline bytes, even if the program asked for no inline data. */
static uint32_t told_inline(const struct skua_qp *qp, const struct ibv_qp_cap *cap)
{
	if (!qp->sq.blocks || !(qp->sq.ops & BIT(IBV_WR_ATOMIC_WRITE)))
		return cap->max_inline_data;
	return max_t(uint32_t, cap->max_inline_data, sizeof(uint64_t));
}

/*
 * Whose payload may come in CQEs: of the types that the device does it for, and not if CQEs
 * may be overwritten before they are polled.
 */
static uint32_t qp_scatter(const struct skua_context *ctx, const struct ibv_qp_init_attr_ex *attr,
			   uint32_t dv_flags)
{
	uint32_t flags = 0, wish = ctx->scatter;

	if (dv_flags & SKUADV_QP_CREATE_SCATTER_CQE)
		wish |= SKUA_CREATE_QP_SCATTER_RQ | SKUA_CREATE_QP_SCATTER_SQ;
	if (dv_flags & SKUADV_QP_CREATE_NO_SCATTER_CQE)
		wish = 0;

	if ((attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_UC) &&
	    !to_scq(attr->recv_cq)->overwritten)
		flags |= SKUA_CREATE_QP_SCATTER_RQ;
	if ((attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_XRC_SEND) &&
	    !to_scq(attr->send_cq)->overwritten)
		flags |= SKUA_CREATE_QP_SCATTER_SQ;
	return flags & wish;
}

static int qp_create_kernel(struct skua_context *ctx, struct skua_qp *qp,
			    const struct ibv_qp_init_attr_ex *attr, const struct ibv_qp_cap *cap,
			    uint32_t dv_flags)
{
	struct skua_create_qp_cmd_resp resp = {};
	struct skua_create_qp_cmd cmd = {};
	struct ibv_qp_init_attr_ex init = *attr;
	int ret;

	ret = qp_alloc_rings(ctx, qp, &cmd.drv_payload);
	if (ret)
		return ret;
	if (qp->sq.tell & SKUA_TELL_IF_ASKED)
		cmd.flags |= SKUA_CREATE_QP_DB_SUPPRESS;
	if (!(dv_flags & SKUADV_QP_CREATE_NO_PUSH))
		skua_push_get(ctx, qp);
	if (qp->push.slot)
		cmd.flags |= SKUA_CREATE_QP_PUSH;
	cmd.flags |= qp_scatter(ctx, attr, dv_flags);

	/* The kernel checks these against the rings. */
	init.cap.max_inline_data = told_inline(qp, cap);
	init.cap.max_recv_wr = cap->max_recv_wr;
	init.cap.max_recv_sge = cap->max_recv_sge;
	/* The kernel takes no reference on it, so that it may be destroyed before the QP. */
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		init.recv_cq = NULL;
	ret = ibv_cmd_create_qp_ex2(&ctx->ibv_ctx.context, &qp->vqp, &init, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	qp_attach(qp);
	return 0;
}

static int qp_setup(struct skua_context *ctx, struct skua_qp *qp,
		    const struct ibv_qp_init_attr_ex *attr, struct ibv_qp_cap *cap,
		    uint32_t dv_flags)
{
	int ret;

	ret = qp_init_kind(ctx, qp, attr);
	if (ret)
		return ret;
	if (dv_flags & SKUADV_QP_CREATE_NO_DB_SUPPRESS)
		qp->sq.tell = 0;
	/* An XRC initiator has no receive queue. */
	if (!attr->send_cq || (!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND))
		return EINVAL;
	if (attr->srq || attr->qp_type == IBV_QPT_XRC_SEND) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
	/* The kernel pins at least one ring: who asks for no queue at all gets a send queue. */
	if (!cap->max_send_wr && !cap->max_recv_wr)
		cap->max_send_wr = 1;
	ret = sq_size(ctx, &qp->sq, cap);
	if (ret)
		return ret;
	skua_sq_init_plain(&qp->sq);
	skua_wr_init_plain(qp);
	ret = skua_rq_size(ctx, &qp->rq, cap);
	if (ret)
		return ret;
	ret = qp_create_kernel(ctx, qp, attr, cap, dv_flags);
	if (ret)
		return ret;

	/* How many WQEs of the largest size fit in the rings. */
	if (qp->sq.blocks)
		cap->max_send_wr = qp->sq.blocks /
				   skua_wqe_blocks(sq_head(&qp->sq) + qp->sq.max_sge);
	cap->max_recv_wr = qp->rq.size;
	return 0;
}

#define CREATE_KNOWN	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |	\
			 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* @dv_flags: SKUADV_QP_CREATE_*, which QPs without rings have no use for. */
struct ibv_qp *skua_create_qp_dv(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr,
				 uint32_t dv_flags)
{
	struct skua_context *ctx = to_sctx(ibctx);
	struct ibv_qp_cap cap = attr->cap;
	struct skua_pd *parent;
	struct skua_qp *qp;
	int ret;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return skua_create_tgt(ctx, attr);
	if (attr->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
		return skua_create_rss_qp(ibctx, attr);
	if (!check_comp_mask(attr->comp_mask, CREATE_KNOWN)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	parent = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? skua_parent_get(attr->pd) : NULL;
	qp = skua_qp_alloc(ctx, parent);
	if (!qp) {
		skua_parent_put(parent);
		return NULL;
	}
	ret = qp_setup(ctx, qp, attr, &cap, dv_flags);
	if (ret) {
		skua_qp_free(ctx, qp);
		errno = ret;
		return NULL;
	}
	attr->cap = cap;
	return &qp->vqp.qp;
}

struct ibv_qp *skua_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	return skua_create_qp_dv(ibctx, attr, 0);
}

struct ibv_qp *skua_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = skua_create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* In RESET the queues are empty and start at index 0 again. */
static void qp_reset(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct skua_context *ctx = to_sctx(ibqp->context);

	if (ibqp->send_cq)
		skua_cq_clean(to_scq(ibqp->send_cq), qp);
	if (ibqp->recv_cq && ibqp->send_cq != ibqp->recv_cq)
		skua_cq_clean(to_scq(ibqp->recv_cq), qp);

	pthread_mutex_lock(&ctx->kick_lock);
	atomic_store_explicit(&qp->sq.pi, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sq.ci, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rq.pi, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rq.ci, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->rq.in_err, false, memory_order_relaxed);
	/* Indices start at 0 again: an old entry of sent[] must not match a new index. */
	memset(qp->sq.sent, 0, qp->sq.blocks * sizeof(*qp->sq.sent));
	/* sq_event is the device's; it is zero by now. */
	skua_record(&qp->dbr->sq_pi, 0);
	skua_record(&qp->dbr->rq_pi, 0);
	pthread_mutex_unlock(&ctx->kick_lock);
}

/* --- ECE: options that both ends of a connection have ------------------------------ */

/* Options that a QP of this type has. */
static uint32_t ece_options(const struct skua_qp *qp)
{
	switch (qp->vqp.qp.qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return to_sctx(qp->vqp.qp.context)->lim.ece_options;
	default:
		return 0;
	}
}

int skua_query_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	struct skua_qp *qp = to_sqp(ibqp);

	if (!to_sctx(ibqp->context)->lim.ece_options) {
		errno = EOPNOTSUPP;
		return errno;
	}
	ece->vendor_id = SKUA_PCI_VENDOR_ID;
	ece->options = qp->ece_set ? qp->ece : ece_options(qp);
	ece->comp_mask = 0;
	return 0;
}

/*
 * Options take effect with the change to RTR. Those of a newer peer that this device
 * does not know are dropped.
 */
int skua_set_ece(struct ibv_qp *ibqp, struct ibv_ece *ece)
{
	struct skua_qp *qp = to_sqp(ibqp);

	if (!to_sctx(ibqp->context)->lim.ece_options) {
		errno = EOPNOTSUPP;
		return errno;
	}
	if (ece->comp_mask || ece->vendor_id != SKUA_PCI_VENDOR_ID ||
	    (ibqp->state != IBV_QPS_RESET && ibqp->state != IBV_QPS_INIT)) {
		errno = EINVAL;
		return errno;
	}
	qp->ece = ece->options & ece_options(qp);
	qp->ece_set = true;
	ece->options = qp->ece;
	return 0;
}

/* Are the agreed options sent with this change? With that to RTR. */
static bool tell_ece(const struct skua_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	return qp->ece_set && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTR &&
	       ece_options(qp);
}

/*
 * The rate limit is in the extended modify command only, and in no query: the last one set
 * is remembered.
 */
static int modify_ex(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, uint32_t max_burst)
{
	struct skua_modify_qp_ex_cmd cmd = { .max_burst = max_burst };
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	int ret;

	if (tell_ece(to_sqp(qp), attr, mask)) {
		cmd.comp_mask = SKUA_MODIFY_QP_ECE;
		cmd.ece_options = to_sqp(qp)->ece;
	}
	ret = ibv_cmd_modify_qp_ex(qp, attr, mask, &cmd.ibv_cmd, sizeof(cmd), &resp,
				   sizeof(resp));
	if (!ret)
		to_sqp(qp)->rate_limit = attr->rate_limit;
	return ret;
}

int skua_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct skua_qp *qp = to_sqp(ibqp);
	struct skua_modify_qp_cmd cmd = {};
	size_t len = sizeof(cmd.ibv_cmd);
	int ret;

	if (tell_ece(qp, attr, mask)) {
		cmd.comp_mask = SKUA_MODIFY_QP_ECE;
		cmd.ece_options = qp->ece;
		len = sizeof(cmd);
	}
	if (mask & IBV_QP_RATE_LIMIT)
		ret = modify_ex(ibqp, attr, mask, 0);
	else
		ret = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd.ibv_cmd, len);
	if (ret || !(mask & IBV_QP_STATE))
		return ret;
	if (attr->qp_state == IBV_QPS_RESET) {
		qp->rate_limit = 0;
		qp->ece_set = false;
	}
	if (qp_is_bare(qp))
		return 0;
	if (attr->qp_state == IBV_QPS_RESET)
		qp_reset(qp);
	else if (attr->qp_state == IBV_QPS_ERR)
		skua_qp_in_error(qp);
	return 0;
}

/* attr->typical_pkt_sz is not used: the device paces by the size of each packet. */
int skua_modify_qp_rate_limit(struct ibv_qp *ibqp, struct ibv_qp_rate_limit_attr *attr)
{
	struct ibv_qp_attr qp_attr = { .rate_limit = attr->rate_limit };

	if (!skua_has(to_sctx(ibqp->context), SKUA_CAP_RATE_LIMIT))
		return EOPNOTSUPP;
	if (attr->comp_mask || (!attr->rate_limit && (attr->max_burst_sz || attr->typical_pkt_sz)))
		return EINVAL;
	return modify_ex(ibqp, &qp_attr, IBV_QP_RATE_LIMIT, attr->max_burst_sz);
}

int skua_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct skua_qp *qp = to_sqp(ibqp);
	struct ibv_query_qp cmd;
	int ret;

	ret = ibv_cmd_query_qp(ibqp, attr, mask & ~IBV_QP_RATE_LIMIT, init_attr, &cmd,
			       sizeof(cmd));
	if (ret)
		return ret;

	/* The kernel does not know the largest WQE of the rings. */
	init_attr->cap = (struct ibv_qp_cap){
		.max_recv_wr = qp->rq.size,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->sq.max_inline,
	};
	if (qp->sq.blocks)
		init_attr->cap.max_send_wr = qp->sq.blocks /
					     skua_wqe_blocks(sq_head(&qp->sq) + qp->sq.max_sge);
	attr->cap = init_attr->cap;
	attr->rate_limit = qp->rate_limit;
	return 0;
}

/*
 * First in the kernel, which may refuse: the QP stays usable then. As soon as the kernel
 * has destroyed it, another thread may get a QP of the same number; see skua_cq_attach().
 */
int skua_destroy_qp(struct ibv_qp *ibqp)
{
	struct skua_context *ctx = to_sctx(ibqp->context);
	struct skua_qp *qp = to_sqp(ibqp);
	int ret;

	if (qp->is_rss)
		return skua_destroy_rss_qp(qp);
	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;
	if (!qp_is_bare(qp))
		qp_detach(qp);
	skua_qp_free(ctx, qp);
	return 0;
}
