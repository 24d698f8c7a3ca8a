// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: XRC domains and targets.
 *
 * A target has no queues and no CQ. This process has only a handle to it, and others may
 * have handles to the same target. Its messages go to the SRQs of its domain.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"

struct ibv_xrcd *skua_open_xrcd(struct ibv_context *ibctx, struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ibv_open_xrcd cmd = {};
	struct verbs_xrcd *xrcd;
	int ret;

	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	ret = ibv_cmd_open_xrcd(ibctx, xrcd, sizeof(*xrcd), attr, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
	if (ret) {
		free(xrcd);
		errno = ret;
		return NULL;
	}
	return &xrcd->xrcd;
}

int skua_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	int ret;

	ret = ibv_cmd_close_xrcd(xrcd);
	if (!ret)
		free(xrcd);
	return ret;
}

/* A PD is not given to the kernel, where the PD of the SRQ counts; the handle keeps it. */
#define TGT_KNOWN	(IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD |		\
			 IBV_QP_INIT_ATTR_CREATE_FLAGS)

static int tgt_create(struct skua_context *ctx, struct skua_qp *qp,
		      const struct ibv_qp_init_attr_ex *attr)
{
	/* The kernel gets no sizes, CQs and SRQ: they have no meaning for a target. */
	struct ibv_qp_init_attr_ex init = {
		.qp_context = attr->qp_context,
		.qp_type = attr->qp_type,
		.comp_mask = attr->comp_mask & ~IBV_QP_INIT_ATTR_PD,
		.xrcd = attr->xrcd,
	};
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct ibv_create_qp_ex cmd = {};
	int ret;

	if (!skua_has(ctx, SKUA_CAP_XRC) || !check_comp_mask(attr->comp_mask, TGT_KNOWN))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		init.create_flags = attr->create_flags;
	ret = ibv_cmd_create_qp_ex2(&ctx->ibv_ctx.context, &qp->vqp, &init, &cmd, sizeof(cmd),
				    &resp, sizeof(resp));
	/* librdmacm makes the SRQ in the PD that it finds here. */
	if (!ret && attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		qp->vqp.qp.pd = attr->pd;
	return ret;
}

struct ibv_qp *skua_create_tgt(struct skua_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	struct skua_qp *qp = skua_qp_alloc(ctx, NULL);
	int ret;

	if (!qp)
		return NULL;
	ret = tgt_create(ctx, qp, attr);
	if (ret) {
		skua_qp_free(ctx, qp);
		errno = ret;
		return NULL;
	}
	attr->cap = (struct ibv_qp_cap){};
	return &qp->vqp.qp;
}

/* Open a target that this or another process has created. */
struct ibv_qp *skua_open_qp(struct ibv_context *ibctx, struct ibv_qp_open_attr *attr)
{
	struct skua_context *ctx = to_sctx(ibctx);
	struct ib_uverbs_create_qp_resp resp = {};
	struct skua_qp *qp = skua_qp_alloc(ctx, NULL);
	struct ibv_open_qp cmd = {};
	int ret;

	if (!qp)
		return NULL;
	ret = ibv_cmd_open_qp(ibctx, &qp->vqp, sizeof(qp->vqp), attr, &cmd, sizeof(cmd), &resp,
			      sizeof(resp));
	if (ret) {
		skua_qp_free(ctx, qp);
		errno = ret;
		return NULL;
	}
	return &qp->vqp.qp;
}
