// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: queue pairs, posting of receives.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"
#include "db.h"
#include "send.h"

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

int skua_rq_post(struct skua_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct skua_rq *rq = &qp->rq;
	uint32_t pi, old;
	int ret = 0;

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

int skua_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (unlikely(ibqp->state == IBV_QPS_RESET || ibqp->srq)) {
		*bad = wr;
		return EINVAL;
	}
	return skua_rq_post(to_sqp(ibqp), wr, bad);
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
	if (skua_has(ctx, SKUA_CAP_MW))
		ops |= BIT(IBV_WR_BIND_MW);
	switch (type) {
	case IBV_QPT_RC:
		if (!skua_has(ctx, SKUA_CAP_RC))
			return 0;
		ops |= BIT(IBV_WR_RDMA_READ);
		if (skua_has(ctx, SKUA_CAP_INVALIDATE))
			ops |= BIT(IBV_WR_SEND_WITH_INV);
		if (skua_has(ctx, SKUA_CAP_ATOMIC))
			ops |= BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD);
		if (skua_has(ctx, SKUA_CAP_FLUSH))
			ops |= BIT(IBV_WR_FLUSH);
		if (skua_has(ctx, SKUA_CAP_ATOMIC_WRITE))
			ops |= BIT(IBV_WR_ATOMIC_WRITE);
		return ops;
	case IBV_QPT_UC:
		return skua_has(ctx, SKUA_CAP_UC) ? ops : 0;
	case IBV_QPT_RAW_PACKET:
		return skua_has(ctx, SKUA_CAP_ETH) ? BIT(IBV_WR_SEND) : 0;
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

/* An XRC target has no queue; the process that opened it may not have made it. */
static bool qp_is_bare(const struct skua_qp *qp)
{
	return !qp->buf.len;
}

static void qp_attach(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ibqp->send_cq)
		skua_cq_attach(to_scq(ibqp->send_cq), qp);
	if (ibqp->recv_cq && ibqp->send_cq != ibqp->recv_cq)
		skua_cq_attach(to_scq(ibqp->recv_cq), qp);
}

static void qp_detach(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ibqp->send_cq)
		skua_cq_detach(to_scq(ibqp->send_cq), qp);
	if (ibqp->recv_cq && ibqp->send_cq != ibqp->recv_cq)
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
	init.cap.max_recv_wr = cap->max_recv_wr;
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
	qp->sq.head_segs = 1;
	qp->sq.sig = attr->sq_sig_all ? SKUA_WQE_F_SIGNALED : 0;

	qp->sq.ops = qp_ops(ctx, attr->qp_type);
	qp->sq.first_op = attr->qp_type == IBV_QPT_RAW_PACKET ? SEND_OP_ETH - IBV_WR_SEND : 0;
	ret = EOPNOTSUPP;
	if (!qp->sq.ops)
		goto err;
	ret = EINVAL;
	if (!attr->send_cq || !attr->recv_cq)
		goto err;
	ret = sq_size(ctx, &qp->sq, &cap);
	if (ret)
		goto err;
	if (attr->srq)
		cap.max_recv_wr = 0;
	ret = skua_rq_size(ctx, &qp->rq, &cap);
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

struct ibv_qp *skua_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
		return skua_create_rss_qp(ctx, attr);
	errno = EOPNOTSUPP;
	return NULL;
}

/* In RESET the queues are empty and start at index 0 again. */
static void qp_reset(struct skua_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;

	if (ibqp->send_cq)
		skua_cq_clean(to_scq(ibqp->send_cq), qp);
	if (ibqp->recv_cq && ibqp->send_cq != ibqp->recv_cq)
		skua_cq_clean(to_scq(ibqp->recv_cq), qp);

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
	if (ret || !(mask & IBV_QP_STATE) || qp_is_bare(qp))
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

	if (qp->is_rss)
		return skua_destroy_rss_qp(qp);
	if (qp_is_bare(qp)) {
		ret = ibv_cmd_destroy_qp(ibqp);
		if (!ret)
			qp_free(ctx, qp);
		return ret;
	}
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
