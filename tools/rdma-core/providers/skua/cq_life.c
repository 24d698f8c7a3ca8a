// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: completion queues are created, destroyed and get rings of another size.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"
#include "skuadv.h"
#include "db.h"

static void cq_set_ring(struct skua_cq *cq, void *ring, uint32_t log_size)
{
	cq->ring = (uint8_t *)ring + cqe_before(cq);
	cq->log_size = log_size;
	cq->ring_mask = (1U << log_size) - 1;
}

static int cq_create_kernel(struct skua_context *ctx, struct skua_cq *cq,
			    const struct ibv_cq_init_attr_ex *attr)
{
	struct skua_create_cq_cmd_resp resp = {};
	struct ibv_cq_init_attr_ex init = *attr;
	struct skua_create_cq_cmd cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)cq->buf.addr;
	cmd.buf_len = (size_t)1 << (cq->log_cqe + cq->log_size);
	cmd.dbr_addr = (uintptr_t)cq->dbr;
	cmd.cqe_size = 1 << cq->log_cqe;
	init.cqe = 1 << cq->log_size;
	ret = ibv_cmd_create_cq_ex(&ctx->ibv_ctx.context, &init, &cq->vcq, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp), 0);
	if (ret)
		return ret;
	cq->cqn = resp.drv_payload.cqn;
	return 0;
}

static void cq_free(struct skua_context *ctx, struct skua_cq *cq)
{
	if (cq->dbr)
		skua_dbr_free(ctx, cq->dbr);
	if (cq->buf.len)
		skua_mem_free(&cq->buf);
	skua_cq_table_free(cq);
	skua_parent_put(cq->pd);
	free(cq);
}

static int cq_setup(struct skua_context *ctx, struct skua_cq *cq,
		    const struct ibv_cq_init_attr_ex *attr)
{
	cq->uar = ctx->uar;
	cq->status = ctx->status;
	cq->last = &skua_no_qp;
	list_head_init(&cq->sides[SKUA_SEND]);
	list_head_init(&cq->sides[SKUA_RECV]);
	if (skua_cq_table_init(cq))
		return ENOMEM;
	if (skua_mem_alloc_in(ctx, cq->pd, &cq->buf, (size_t)1 << (cq->log_cqe + cq->log_size),
			      SKUADV_RES_CQ))
		return errno;
	cq_set_ring(cq, cq->buf.addr, cq->log_size);
	cq->dbr = skua_dbr_alloc(ctx);
	if (!cq->dbr)
		return ENOMEM;
	return cq_create_kernel(ctx, cq, attr);
}

/* As SQ_MIN_BLOCKS: what a queue of the least size holds must have room to complete. */
#define CQ_MIN_ENTRIES	16

#define CQ_KNOWN	(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define CQ_FLAGS	(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
#define CQ_WC_FLAGS	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG)

static int cq_check(const struct skua_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
	uint64_t wc_flags = CQ_WC_FLAGS;

	if (skua_has(ctx, SKUA_CAP_TIMESTAMP) && ctx->lim.clock_khz)
		wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	if (!check_comp_mask(attr->comp_mask, CQ_KNOWN) || attr->wc_flags & ~wc_flags)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~CQ_FLAGS)
		return EOPNOTSUPP;
	/* A plain PD is refused. */
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain || !to_spd(attr->parent_domain)->domain))
		return EINVAL;
	return attr->cqe < 1 || attr->cqe > ctx->lim.max_cqe ? EINVAL : 0;
}

/* @cqe_size: 64, 128, or 0: as the context has it. */
struct ibv_cq_ex *skua_create_cq_dv(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr,
				    uint32_t cqe_size)
{
	struct skua_context *ctx = to_sctx(ibctx);
	struct skua_cq *cq;
	bool single;
	int ret;

	ret = cq_check(ctx, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		cq->pd = skua_parent_get(attr->parent_domain);
	single = (cq->pd && cq->pd->td) ||
		 (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
		  attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	skua_lock_init(&cq->lock, single);
	cq->overwritten = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
			  attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq->log_cqe = cqe_size ? ilog32_nz(cqe_size) - 1 : ctx->log_cqe;
	cq->log_size = ilog32_nz(roundup_pow_of_two(max_t(uint32_t, attr->cqe,
							  CQ_MIN_ENTRIES))) - 1;
	ret = cq_setup(ctx, cq, attr);
	if (ret) {
		cq_free(ctx, cq);
		errno = ret;
		return NULL;
	}
	skua_cq_ex_init(cq);
	return &cq->vcq.cq_ex;
}

struct ibv_cq_ex *skua_create_cq_ex(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr)
{
	return skua_create_cq_dv(ibctx, attr, 0);
}

struct ibv_cq *skua_create_cq(struct ibv_context *ibctx, int cqe, struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct ibv_cq_ex *cqx;

	if (cqe < 1) {
		errno = EINVAL;
		return NULL;
	}
	cqx = skua_create_cq_ex(ibctx, &attr);
	return cqx ? ibv_cq_ex_to_cq(cqx) : NULL;
}

int skua_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

/*
 * The kernel's count of the CQ's queues is not enough: a thread that destroys a queue may
 * still wait for its events to be acknowledged, and uses the CQ after that to detach it.
 */
int skua_destroy_cq(struct ibv_cq *ibcq)
{
	struct skua_cq *cq = to_scq(ibcq);
	bool busy;
	int ret;

	skua_lock(&cq->table_lock);
	busy = cq->users;
	skua_unlock(&cq->table_lock);
	if (busy)
		return EBUSY;
	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;
	cq_free(to_sctx(ibcq->context), cq);
	return 0;
}

/* --- resize ------------------------------------------------------------ */

/*
 * Give each entry of a new ring the phase that does not mark it as new, counted from the
 * consumer index.
 */
static void cq_prepare(const struct skua_cq *new, uint32_t ci)
{
	uint32_t i;

	for (i = ci; i - ci <= new->ring_mask; i++)
		cqe_at(new, i)->own = le32_encode_bits(i >> new->log_size & 1, SKUA_CQE_PHASE);
}

/* Copy the CQEs that were not polled to the new ring, with the phase of their place there. */
static void cq_move(const struct skua_cq *cq, const struct skua_cq *new, uint32_t ci, uint32_t pi)
{
	uint32_t i;

	for (i = ci; i != pi && i - ci <= new->ring_mask; i++)
		cqe_copy(new, cqe_at(new, i), cqe_at(cq, i),
			 le32_encode_bits(!(i >> new->log_size & 1), SKUA_CQE_PHASE));
}

/* The CQ is locked, so that nobody polls while the device changes to the new ring. */
static int cq_switch(struct skua_cq *cq, const struct skua_mem *buf, uint32_t log_size)
{
	uint32_t ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	struct skua_resize_cq_cmd_resp resp = {};
	struct skua_resize_cq_cmd cmd = {};
	struct skua_cq new = { .log_cqe = cq->log_cqe };
	int ret;

	cq_set_ring(&new, buf->addr, log_size);
	cq_prepare(&new, ci);
	cmd.drv_payload.buf_addr = (uintptr_t)buf->addr;
	cmd.drv_payload.buf_len = (size_t)1 << (cq->log_cqe + log_size);
	ret = ibv_cmd_resize_cq(&cq->vcq.cq, 1 << log_size, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	udma_from_device_barrier();
	cq_move(cq, &new, ci, resp.drv_payload.pi);
	cq_set_ring(cq, buf->addr, log_size);
	return 0;
}

int skua_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct skua_context *ctx = to_sctx(ibcq->context);
	struct skua_cq *cq = to_scq(ibcq);
	struct skua_mem buf, old;
	uint32_t log_size;
	int ret;

	if (!skua_has(ctx, SKUA_CAP_CQ_RESIZE))
		return EOPNOTSUPP;
	if (cqe < 1 || (uint32_t)cqe > ctx->lim.max_cqe)
		return EINVAL;
	if (cqe < CQ_MIN_ENTRIES)
		cqe = CQ_MIN_ENTRIES;
	log_size = ilog32_nz(roundup_pow_of_two(cqe)) - 1;
	if (skua_mem_alloc_in(ctx, cq->pd, &buf, (size_t)1 << (cq->log_cqe + log_size),
			      SKUADV_RES_CQ))
		return errno;

	skua_lock(&cq->lock);
	ret = cq_switch(cq, &buf, log_size);
	if (!ret) {
		old = cq->buf;
		cq->buf = buf;
		buf = old;
	}
	skua_unlock(&cq->lock);
	skua_mem_free(&buf);
	return ret;
}
