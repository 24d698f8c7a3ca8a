// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: direct verbs. Structures of the program have the size that it says; what it
 * does not know of is not filled in, and what it says of fields that are unknown here is
 * refused.
 */
#include <errno.h>
#include <string.h>

#include "skua.h"
#include "skuadv.h"

bool skuadv_is_supported(struct ibv_device *device)
{
	return skua_is_ours(device);
}

static bool ctx_ok(const struct ibv_context *ctx)
{
	return ctx && skua_is_ours(ctx->device);
}

int skuadv_query_device(struct ibv_context *ibctx, struct skuadv_device_attr *attr,
			uint32_t inlen)
{
	struct skuadv_device_attr full = {};
	const struct skua_context *ctx;

	if (!ctx_ok(ibctx))
		return EOPNOTSUPP;
	if (inlen < sizeof(full.comp_mask))
		return EINVAL;
	ctx = to_sctx(ibctx);
	if (skua_has(ctx, SKUA_CAP_PUSH))
		full.caps |= SKUADV_CAP_PUSH;
	if (skua_has(ctx, SKUA_CAP_DB_SUPPRESS))
		full.caps |= SKUADV_CAP_DB_SUPPRESS;
	if (skua_has(ctx, SKUA_CAP_SCATTER_CQE)) {
		full.caps |= SKUADV_CAP_SCATTER_CQE;
		full.max_scatter_cqe = sizeof(struct skua_cqe);
	}
	if (skua_has(ctx, SKUA_CAP_SR))
		full.caps |= SKUADV_CAP_SELECTIVE_REPEAT;
	if (ctx->push)
		full.push_wqe_size = ctx->lim.push_segs * SKUA_WQE_SEG;
	full.cqe_sizes = 1 << SKUA_LOG_CQE | 1 << SKUA_LOG_CQE_LARGE;
	full.max_send_blocks = ctx->lim.max_sq_blocks;
	full.max_wqe_blocks = ctx->lim.max_wqe_blocks;
	full.max_inline = ctx->lim.max_inline;
	memset(attr, 0, inlen);
	memcpy(attr, &full, min_t(size_t, inlen, sizeof(full)));
	return 0;
}

/*
 * The program's structure of @inlen bytes, which begins with comp_mask, into @full of @known
 * bytes. False: it is too short, or fields behind those that this version knows are not zero.
 */
static bool take_attr(void *full, size_t known, const void *attr, uint32_t inlen)
{
	const uint8_t *p = attr;
	size_t i;

	if (inlen < sizeof(uint64_t))
		return false;
	memcpy(full, attr, min_t(size_t, inlen, known));
	for (i = known; i < inlen; i++)
		if (p[i])
			return false;
	return true;
}

#define QP_FLAGS	(SKUADV_QP_CREATE_NO_SCATTER_CQE | SKUADV_QP_CREATE_SCATTER_CQE |	\
			 SKUADV_QP_CREATE_NO_PUSH | SKUADV_QP_CREATE_NO_DB_SUPPRESS)
#define QP_SCATTER	(SKUADV_QP_CREATE_NO_SCATTER_CQE | SKUADV_QP_CREATE_SCATTER_CQE)

struct ibv_qp *skuadv_create_qp(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr,
				const struct skuadv_qp_init_attr *skua_attr, uint32_t inlen)
{
	struct skuadv_qp_init_attr full = {};

	if (!ctx_ok(ibctx)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!take_attr(&full, sizeof(full), skua_attr, inlen) || full.comp_mask ||
	    full.reserved || full.create_flags & ~QP_FLAGS ||
	    (full.create_flags & QP_SCATTER) == QP_SCATTER) {
		errno = EINVAL;
		return NULL;
	}
	if (full.create_flags & SKUADV_QP_CREATE_SCATTER_CQE &&
	    !skua_has(to_sctx(ibctx), SKUA_CAP_SCATTER_CQE)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return skua_create_qp_dv(ibctx, attr, full.create_flags);
}

struct ibv_cq_ex *skuadv_create_cq(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr,
				   const struct skuadv_cq_init_attr *skua_attr, uint32_t inlen)
{
	struct skuadv_cq_init_attr full = {};
	struct ibv_cq_ex *cq;

	if (!ctx_ok(ibctx)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!take_attr(&full, sizeof(full), skua_attr, inlen) || full.comp_mask ||
	    full.reserved ||
	    (full.cqe_size && full.cqe_size != 1 << SKUA_LOG_CQE &&
	     full.cqe_size != 1 << SKUA_LOG_CQE_LARGE)) {
		errno = EINVAL;
		return NULL;
	}
	cq = skua_create_cq_dv(ibctx, attr, full.cqe_size);
	/* ibv_create_cq_ex() does this behind the provider's function. */
	if (cq)
		verbs_init_cq(ibv_cq_ex_to_cq(cq), ibctx, attr->channel, attr->cq_context);
	return cq;
}

/* --- rings ------------------------------------------------------------------------- */

static int tell_qp(struct ibv_qp *ibqp, struct skuadv_qp *out)
{
	const struct skua_context *ctx;
	const struct skua_qp *qp;

	if (!ctx_ok(ibqp->context))
		return EOPNOTSUPP;
	qp = to_sqp(ibqp);
	ctx = to_sctx(ibqp->context);
	/* One without rings: an XRC target, or one with an indirection table. */
	if (!qp->buf.len)
		return EINVAL;
	*out = (struct skuadv_qp){
		.sq_blocks = qp->sq.blocks,
		.rq_wqes = qp->rq.size,
		.rq_stride = qp->rq.segs * SKUA_WQE_SEG,
		.qpn = ibqp->qp_num,
		.record = qp->dbr,
		.doorbell = (uint8_t *)qp->uar + SKUA_UAR_SQ,
		.alive = &ctx->status->alive,
	};
	if (qp->sq.blocks)
		out->sq_buf = skua_sq_seg(&qp->sq.ring, 0, 0);
	if (qp->rq.size)
		out->rq_buf = skua_rq_wqe(&qp->rq.ring, 0);
	if (qp->sq.tell & SKUA_TELL_IF_ASKED)
		out->flags |= SKUADV_QP_DB_SUPPRESS;
	if (qp->push.slot)
		out->flags |= SKUADV_QP_WRITE_COMBINING;
	/* Slots that QPs share have a lock, which the program could not take. */
	if (qp->push.slot && !qp->push.lock) {
		out->push = qp->push.slot;
		out->push_wqe_size = qp->push.max_segs * SKUA_WQE_SEG;
	}
	return 0;
}

static int tell_cq(struct ibv_cq *ibcq, struct skuadv_cq *out)
{
	const struct skua_cq *cq;

	if (!ctx_ok(ibcq->context))
		return EOPNOTSUPP;
	cq = to_scq(ibcq);
	*out = (struct skuadv_cq){
		.buf = cq->buf.addr,
		.cqes = cq->ring_mask + 1,
		.cqe_size = 1 << cq->log_cqe,
		.cqn = cq->cqn,
		.ci = atomic_load_explicit(&cq->ci, memory_order_relaxed),
		.record = cq->dbr,
		.arm = (uint8_t *)cq->uar + SKUA_UAR_CQ_ARM,
	};
	return 0;
}

static int tell_srq(struct ibv_srq *ibsrq, struct skuadv_srq *out)
{
	const struct skua_srq *srq;

	if (!ctx_ok(ibsrq->context))
		return EOPNOTSUPP;
	srq = to_ssrq(ibsrq);
	*out = (struct skuadv_srq){
		.buf = skua_rq_wqe(&srq->ring, 0),
		.wqes = srq->wqes,
		.stride = srq->segs * SKUA_WQE_SEG,
		.head = srq->head,
		.tail = srq->tail,
		.srqn = srq->srqn,
		.pi = srq->pi,
		.record = srq->dbr,
	};
	return 0;
}

static int tell_ah(struct ibv_ah *ah, struct skuadv_ah *out)
{
	if (!ctx_ok(ah->context))
		return EOPNOTSUPP;
	*out = (struct skuadv_ah){ .av = &to_sah(ah)->av };
	return 0;
}

int skuadv_init_obj(struct skuadv_obj *obj, uint64_t obj_type)
{
	int ret = 0;

	if (!obj_type || obj_type & ~(uint64_t)(SKUADV_OBJ_QP | SKUADV_OBJ_CQ | SKUADV_OBJ_SRQ |
						SKUADV_OBJ_AH))
		return EINVAL;
	if (obj_type & SKUADV_OBJ_QP)
		ret = tell_qp(obj->qp.in, obj->qp.out);
	if (!ret && obj_type & SKUADV_OBJ_CQ)
		ret = tell_cq(obj->cq.in, obj->cq.out);
	if (!ret && obj_type & SKUADV_OBJ_SRQ)
		ret = tell_srq(obj->srq.in, obj->srq.out);
	if (!ret && obj_type & SKUADV_OBJ_AH)
		ret = tell_ah(obj->ah.in, obj->ah.out);
	return ret;
}
