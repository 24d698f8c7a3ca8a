// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: shared receive queues.
 *
 * The WQEs of an SRQ form a linked list through their first segments: posted WQEs, then
 * free ones. The device reads the link of the last posted WQE before the next one is
 * posted, so the link must be set by then: one WQE always stays free, and a ring of n
 * entries holds n - 1 requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "skua.h"
#include "db.h"

static unsigned int log2_up(uint64_t n)
{
	return n > 1 ? ilog64_nz(n - 1) : 0;
}

static void *srq_wqe(const struct skua_srq *srq, uint32_t pos)
{
	return skua_rq_wqe(&srq->ring, pos);
}

/* Make @pos the successor of @prev. */
static void srq_link(struct skua_srq *srq, uint32_t prev, uint32_t pos)
{
	srq->slot[prev].next = pos;
	skua_srq_next_set(srq_wqe(srq, prev), pos);
}

static int srq_put(struct skua_srq *srq, const struct ibv_recv_wr *wr)
{
	struct skua_srq_slot *slot = &srq->slot[srq->head];
	struct skua_wqe_data *d;
	unsigned int num;

	if (unlikely((unsigned int)wr->num_sge > srq->max_sge))
		return EINVAL;
	if (unlikely(srq->head == srq->tail))
		return ENOMEM;
	d = (struct skua_wqe_data *)((uint8_t *)srq_wqe(srq, srq->head) + SKUA_WQE_SEG);
	num = skua_rq_list(d, wr->sg_list, wr->num_sge);
	skua_rq_wqe_end(d, num, srq->segs - 1);
	slot->wr_id = wr->wr_id;
	slot->posted = true;
	srq->posted++;
	srq->pi++;
	srq->head = slot->next;
	return 0;
}

int skua_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct skua_srq *srq = to_ssrq(ibsrq);
	int ret = 0;

	pthread_spin_lock(&srq->lock);
	for (; wr; wr = wr->next) {
		ret = srq_put(srq, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	skua_db_srq(srq->dbr, srq->pi);
	pthread_spin_unlock(&srq->lock);
	return ret;
}

/* Is a WQE posted at @pos? */
static bool srq_is_posted(const struct skua_srq *srq, uint32_t pos)
{
	return likely(pos < srq->wqes && srq->slot[pos].posted);
}

static void srq_free_wqe(struct skua_srq *srq, uint32_t pos)
{
	srq->slot[pos].posted = false;
	srq->posted--;
	srq_link(srq, srq->tail, pos);
	srq->tail = pos;
}

/**
 * skua_srq_take() - a WQE has completed
 * @srq: the queue
 * @wr_id: filled in
 * @cq: where it completed
 * @cqe: its CQE, of which all but the WQE index and the payload has been read
 * @ci: the index of that in @cq, which becomes the device's before the WQE is free
 *
 * Return: false if no such WQE was posted.
 */
bool skua_srq_take(struct skua_srq *srq, uint64_t *wr_id, const struct skua_cq *cq,
		   const struct skua_cqe *cqe, uint32_t ci)
{
	uint32_t pos = skua_cqe_wqe_index(cqe);
	bool ok;

	pthread_spin_lock(&srq->lock);
	ok = srq_is_posted(srq, pos);
	if (likely(ok)) {
		*wr_id = srq->slot[pos].wr_id;
		if (unlikely(cqe_has_payload(cqe)))
			skua_scatter_srq(cq, cqe, srq, pos);
		skua_db_cq_ci(cq->dbr, ci + 1);
		srq_free_wqe(srq, pos);
	}
	pthread_spin_unlock(&srq->lock);
	return ok;
}

/* Free the WQE at @pos, of which nobody will be told; @srq is locked. */
void skua_srq_drop(struct skua_srq *srq, uint32_t pos)
{
	if (srq_is_posted(srq, pos))
		srq_free_wqe(srq, pos);
}

/* --- life -------------------------------------------------------------- */

static uint32_t srq_max_wr(const struct skua_context *ctx)
{
	return (1U << (ilog32_nz(ctx->lim.max_rq_wqes) - 1)) - 1;
}

/* Append the positions from @first on to the free list. */
static void srq_extend(struct skua_srq *srq, uint32_t first)
{
	uint32_t i;

	for (i = first; i < srq->wqes; i++) {
		srq_link(srq, srq->tail, i);
		srq->tail = i;
	}
}

static int srq_alloc(struct skua_context *ctx, struct skua_srq *srq,
		     const struct ibv_srq_attr *attr)
{
	int ret;

	if (!attr->max_wr || attr->max_wr > srq_max_wr(ctx) ||
	    attr->max_sge > ctx->lim.max_rq_sge)
		return EINVAL;
	srq->wqes = 1U << log2_up(attr->max_wr + 1);
	srq->segs = 1U << log2_up((attr->max_sge ? attr->max_sge : 1) + 1);
	srq->max_sge = min_t(uint32_t, srq->segs - 1, ctx->lim.max_rq_sge);
	ret = skua_mem_alloc(ctx, &srq->buf, (size_t)srq->wqes * srq->segs * SKUA_WQE_SEG);
	if (ret)
		return errno;
	srq->slot = calloc(srq->wqes, sizeof(*srq->slot));
	srq->dbr = skua_dbr_alloc(ctx);
	if (!srq->slot || !srq->dbr)
		return ENOMEM;
	skua_rq_ring_init(&srq->ring, srq->buf.addr, log2_up(srq->wqes), log2_up(srq->segs));
	srq_extend(srq, 1);
	return 0;
}

static void srq_free(struct skua_context *ctx, struct skua_srq *srq)
{
	if (srq->dbr)
		skua_dbr_free(ctx, srq->dbr);
	free(srq->slot);
	if (srq->buf.len)
		skua_mem_free(&srq->buf);
	pthread_spin_destroy(&srq->lock);
	free(srq);
}

static void srq_req(const struct skua_srq *srq, struct skua_create_srq_req *req)
{
	req->buf_addr = (uintptr_t)srq->buf.addr;
	req->buf_len = (uint64_t)srq->wqes * srq->segs * SKUA_WQE_SEG;
	req->dbr_addr = (uintptr_t)srq->dbr;
	req->log_wqes = log2_up(srq->wqes);
	req->log_stride = log2_up(srq->segs);
}

static int srq_create_basic(struct skua_srq *srq, struct ibv_pd *pd,
			    struct ibv_srq_init_attr *attr)
{
	struct skua_create_srq_cmd_resp resp = {};
	struct skua_create_srq_cmd cmd = {};
	int ret;

	srq_req(srq, &cmd.drv_payload);
	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	srq->srqn = resp.drv_payload.srqn;
	return ret;
}

/* The CQ finds an XRC SRQ by its number, as there is no QP in this process. */
static int srq_create_xrc(struct skua_context *ctx, struct skua_srq *srq,
			  struct ibv_srq_init_attr_ex *attr)
{
	struct skua_create_srq_ex_cmd_resp resp = {};
	struct skua_create_srq_ex_cmd cmd = {};
	int ret;

	srq_req(srq, &cmd.drv_payload);
	ret = ibv_cmd_create_srq_ex(&ctx->ibv_ctx.context, &srq->vsrq, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	srq->srqn = resp.drv_payload.srqn;
	skua_cq_attach_srq(to_scq(attr->cq), srq);
	return 0;
}

#define SRQ_KNOWN	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |	\
			 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)

static int srq_setup(struct skua_context *ctx, struct skua_srq *srq,
		     struct ibv_srq_init_attr_ex *attr, bool xrc)
{
	struct ibv_srq_init_attr basic = { .srq_context = attr->srq_context, .attr = attr->attr };
	int ret;

	if (!skua_has(ctx, xrc ? SKUA_CAP_XRC : SKUA_CAP_SRQ))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) ||
	    (xrc && (~attr->comp_mask & (IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ))))
		return EINVAL;
	ret = srq_alloc(ctx, srq, &attr->attr);
	if (ret)
		return ret;
	ret = xrc ? srq_create_xrc(ctx, srq, attr) : srq_create_basic(srq, attr->pd, &basic);
	if (ret)
		return ret;
	attr->attr.max_wr = srq->wqes - 1;
	attr->attr.max_sge = srq->max_sge;
	return 0;
}

struct ibv_srq *skua_create_srq_ex(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr)
{
	struct skua_context *ctx = to_sctx(ibctx);
	enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type :
									   IBV_SRQT_BASIC;
	struct skua_srq *srq;
	int ret;

	if (attr->comp_mask & ~SRQ_KNOWN || (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	pthread_spin_init(&srq->lock, PTHREAD_PROCESS_PRIVATE);
	ret = srq_setup(ctx, srq, attr, type == IBV_SRQT_XRC);
	if (ret) {
		srq_free(ctx, srq);
		errno = ret;
		return NULL;
	}
	/* Only ibv_create_srq() does this by itself. */
	srq->vsrq.srq.srq_context = attr->srq_context;
	srq->vsrq.srq.pd = attr->pd;
	return &srq->vsrq.srq;
}

struct ibv_srq *skua_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq;

	srq = skua_create_srq_ex(pd->context, &ex);
	if (srq)
		attr->attr = ex.attr;
	return srq;
}

void skua_srq_attach(struct skua_srq *srq)
{
	pthread_spin_lock(&srq->lock);
	srq->users++;
	pthread_spin_unlock(&srq->lock);
}

void skua_srq_detach(struct skua_srq *srq)
{
	pthread_spin_lock(&srq->lock);
	srq->users--;
	pthread_spin_unlock(&srq->lock);
}

/*
 * First in the kernel, as skua_destroy_qp(). No lock is held, because
 * ibv_cmd_destroy_srq() waits until the program has acknowledged the SRQ's events.
 *
 * The kernel's count of the SRQ's QPs is not enough: a thread that destroys a QP may still
 * wait for its events to be acknowledged, and gives WQEs back to the SRQ after that.
 */
int skua_destroy_srq(struct ibv_srq *ibsrq)
{
	struct skua_context *ctx = to_sctx(ibsrq->context);
	struct skua_srq *srq = to_ssrq(ibsrq);
	struct ibv_cq *cq = srq->vsrq.cq;
	bool busy;
	int ret;

	pthread_spin_lock(&srq->lock);
	busy = srq->users;
	pthread_spin_unlock(&srq->lock);
	if (busy)
		return EBUSY;
	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;
	if (cq)
		skua_cq_detach_srq(to_scq(cq), srq);
	srq_free(ctx, srq);
	return 0;
}

/* --- resize ------------------------------------------------------------ */

static int srq_grow_kernel(struct skua_srq *srq, struct ibv_srq_attr *attr,
			   const struct skua_mem *buf, uint32_t wqes)
{
	struct skua_modify_srq_cmd cmd = {};

	cmd.drv_payload.buf_addr = (uintptr_t)buf->addr;
	cmd.drv_payload.buf_len = (uint64_t)wqes * srq->segs * SKUA_WQE_SEG;
	cmd.drv_payload.log_wqes = log2_up(wqes);
	return ibv_cmd_modify_srq(&srq->vsrq.srq, attr, IBV_SRQ_MAX_WR, &cmd.ibv_cmd,
				  sizeof(cmd));
}

/* Not an errno. */
#define SRQ_IS_LARGE	(-1)

/*
 * WQEs keep their positions in the larger ring. The lock is held while the device changes
 * to it: what is posted or freed in between would be in the old ring only.
 */
static int srq_grow(struct skua_context *ctx, struct skua_srq *srq, struct ibv_srq_attr *attr)
{
	uint32_t wqes = 1U << log2_up((uint64_t)attr->max_wr + 1), old;
	struct skua_srq_slot *slot;
	struct skua_mem buf;
	int ret;

	if (skua_mem_alloc(ctx, &buf, (size_t)wqes * srq->segs * SKUA_WQE_SEG))
		return errno;
	slot = calloc(wqes, sizeof(*slot));
	if (!slot) {
		skua_mem_free(&buf);
		return ENOMEM;
	}

	pthread_spin_lock(&srq->lock);
	old = srq->wqes;
	/* Another thread may have grown it in between. */
	ret = old >= wqes ? SRQ_IS_LARGE : 0;
	if (!ret) {
		memcpy(buf.addr, srq->buf.addr, (size_t)old * srq->segs * SKUA_WQE_SEG);
		memcpy(slot, srq->slot, old * sizeof(*slot));
		ret = srq_grow_kernel(srq, attr, &buf, wqes);
	}
	if (!ret) {
		struct skua_srq_slot *old_slot = srq->slot;
		struct skua_mem old_buf = srq->buf;

		srq->slot = slot;
		srq->buf = buf;
		srq->wqes = wqes;
		skua_rq_ring_init(&srq->ring, buf.addr, log2_up(wqes), log2_up(srq->segs));
		srq_extend(srq, old);
		slot = old_slot;
		buf = old_buf;
	}
	pthread_spin_unlock(&srq->lock);
	free(slot);
	skua_mem_free(&buf);
	return ret;
}

/* The ring stays as it is; only a size below the number of posted WQEs is refused. */
static int srq_shrink(struct skua_srq *srq, uint32_t max_wr)
{
	int ret;

	pthread_spin_lock(&srq->lock);
	ret = max_wr < srq->posted ? EINVAL : 0;
	pthread_spin_unlock(&srq->lock);
	return ret;
}

int skua_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct skua_context *ctx = to_sctx(ibsrq->context);
	struct skua_srq *srq = to_ssrq(ibsrq);
	struct ibv_modify_srq cmd = {};
	int ret;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		if (!skua_has(ctx, SKUA_CAP_SRQ_RESIZE))
			return EOPNOTSUPP;
		if (!attr->max_wr || attr->max_wr > srq_max_wr(ctx) ||
		    (mask & IBV_SRQ_LIMIT && attr->srq_limit > attr->max_wr))
			return EINVAL;
		ret = attr->max_wr >= srq->wqes ? srq_grow(ctx, srq, attr) : SRQ_IS_LARGE;
		if (ret == SRQ_IS_LARGE)
			ret = srq_shrink(srq, attr->max_wr);
		if (ret)
			return ret;
		/* By itself: where it fails, the device has the new ring all the same. */
		mask &= ~IBV_SRQ_MAX_WR;
	}
	return mask ? ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd)) : 0;
}

int skua_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int skua_get_srq_num(struct ibv_srq *ibsrq, uint32_t *num)
{
	struct skua_srq *srq = to_ssrq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EINVAL;
	*num = srq->srqn;
	return 0;
}
