// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: work queues and receive side scaling. To the device a work queue is a QP
 * without a send queue, and the CQ code here treats it as one too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "skua.h"
#include "db.h"

/**
 * struct skua_wq - work queue
 * @ibv_wq: libibverbs' part
 * @qp: the queue: its receive side, number and CQ are used
 */
struct skua_wq {
	struct ibv_wq ibv_wq;
	struct skua_qp qp;
};

static struct skua_wq *to_swq(struct ibv_wq *wq)
{
	return container_of(wq, struct skua_wq, ibv_wq);
}

static int wq_post_recv(struct ibv_wq *ibwq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return skua_rq_post(&to_swq(ibwq)->qp, wr, bad);
}

static void wq_free(struct skua_context *ctx, struct skua_wq *wq)
{
	struct skua_qp *qp = &wq->qp;

	if (qp->dbr)
		skua_dbr_free(ctx, qp->dbr);
	free(qp->rq.wr_id);
	if (qp->buf.len)
		skua_mem_free(&qp->buf);
	free(wq);
}

static int wq_alloc_ring(struct skua_context *ctx, struct skua_qp *qp,
			 struct skua_create_wq_req *req)
{
	struct skua_rq *rq = &qp->rq;
	size_t len = align((size_t)rq->size * rq->segs * SKUA_WQE_SEG, SKUA_WQE_BLOCK);

	if (skua_mem_alloc(ctx, &qp->buf, len))
		return errno;
	rq->wr_id = calloc(rq->size, sizeof(*rq->wr_id));
	qp->dbr = skua_dbr_alloc(ctx);
	if (!rq->wr_id || !qp->dbr)
		return ENOMEM;
	req->log_wqes = ilog32_nz(rq->size) - 1;
	req->log_stride = ilog32_nz(rq->segs) - 1;
	skua_rq_ring_init(&rq->ring, qp->buf.addr, req->log_wqes, req->log_stride);
	req->buf_addr = (uintptr_t)qp->buf.addr;
	req->buf_len = len;
	req->dbr_addr = (uintptr_t)qp->dbr;
	return 0;
}

static int wq_create_kernel(struct ibv_context *ibctx, struct skua_wq *wq,
			    struct ibv_wq_init_attr *attr)
{
	struct skua_create_wq_cmd_resp resp = {};
	struct skua_create_wq_cmd cmd = {};
	struct skua_qp *qp = &wq->qp;
	int ret;

	ret = wq_alloc_ring(to_sctx(ibctx), qp, &cmd.drv_payload);
	if (ret)
		return ret;
	ret = ibv_cmd_create_wq(ibctx, attr, &wq->ibv_wq, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	qp->vqp.qp.qp_num = resp.drv_payload.wqn;
	qp->vqp.qp.recv_cq = attr->cq;
	skua_cq_attach(to_scq(attr->cq), qp);
	return 0;
}

struct ibv_wq *skua_create_wq(struct ibv_context *ibctx, struct ibv_wq_init_attr *attr)
{
	struct skua_context *ctx = to_sctx(ibctx);
	struct ibv_qp_cap cap = {
		.max_recv_wr = attr->max_wr,
		.max_recv_sge = attr->max_sge,
	};
	struct skua_wq *wq;
	int ret;

	wq = skua_zalloc_lines(sizeof(*wq));
	if (!wq)
		return NULL;
	skua_lock_init(&wq->qp.sq.lock, false);
	skua_lock_init(&wq->qp.rq.lock, false);
	wq->qp.uar = ctx->uar;
	wq->qp.vqp.qp.context = ibctx;
	wq->ibv_wq.post_recv = wq_post_recv;

	ret = EINVAL;
	if (!attr->max_wr)
		goto err;
	ret = EOPNOTSUPP;
	if (attr->wq_type != IBV_WQT_RQ || attr->comp_mask & ~IBV_WQ_INIT_ATTR_FLAGS)
		goto err;
	ret = skua_rq_size(ctx, &wq->qp.rq, &cap);
	if (ret)
		goto err;
	ret = wq_create_kernel(ibctx, wq, attr);
	if (ret)
		goto err;
	attr->max_wr = cap.max_recv_wr;
	attr->max_sge = cap.max_recv_sge;
	return &wq->ibv_wq;

err:
	wq_free(ctx, wq);
	errno = ret;
	return NULL;
}

void skua_wq_in_error(struct ibv_wq *ibwq)
{
	skua_qp_in_error(&to_swq(ibwq)->qp);
}

int skua_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	struct skua_qp *qp = &to_swq(ibwq)->qp;
	struct ibv_modify_wq cmd = {};
	int ret;

	ret = ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));
	if (ret || !(attr->attr_mask & IBV_WQ_ATTR_STATE))
		return ret;
	if (attr->wq_state == IBV_WQS_RESET) {
		skua_cq_clean(to_scq(ibwq->cq), qp);
		atomic_store_explicit(&qp->rq.pi, 0, memory_order_relaxed);
		atomic_store_explicit(&qp->rq.ci, 0, memory_order_relaxed);
		qp->rq.in_err = false;
		skua_record(&qp->dbr->rq_pi, 0);
	} else if (attr->wq_state == IBV_WQS_ERR) {
		skua_qp_in_error(qp);
	}
	return 0;
}

int skua_destroy_wq(struct ibv_wq *ibwq)
{
	struct skua_context *ctx = to_sctx(ibwq->context);
	struct skua_wq *wq = to_swq(ibwq);
	int ret;

	ret = ibv_cmd_destroy_wq(ibwq);
	if (ret)
		return ret;
	skua_cq_detach(to_scq(ibwq->cq), &wq->qp);
	wq_free(ctx, wq);
	return 0;
}

struct ibv_rwq_ind_table *skua_create_rwq_ind_table(struct ibv_context *ctx,
						    struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int ret;

	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	ret = ibv_cmd_create_rwq_ind_table(ctx, attr, table, &resp, sizeof(resp));
	if (ret) {
		free(table);
		errno = ret;
		return NULL;
	}
	return table;
}

int skua_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int ret;

	ret = ibv_cmd_destroy_rwq_ind_table(table);
	if (ret)
		return ret;
	free(table);
	return 0;
}

/* The values of the verbs are passed to the kernel unchanged. */
_Static_assert(SKUA_RX_HASH_IPV4 == (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4), "IPv4");
_Static_assert(SKUA_RX_HASH_IPV6 == (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6), "IPv6");
_Static_assert(SKUA_RX_HASH_TCP == (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP), "TCP");
_Static_assert(SKUA_RX_HASH_UDP == (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP), "UDP");
_Static_assert(SKUA_RX_HASH_TOEPLITZ == IBV_RX_HASH_FUNC_TOEPLITZ, "function");

#define RSS_QP_ATTRS	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |		\
			 IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH)

/* A QP without queues: frames that flow rules steer to it are spread over work queues. */
struct ibv_qp *skua_create_rss_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	struct skua_create_rss_qp_cmd_resp resp = {};
	struct skua_create_rss_qp_cmd cmd = {};
	struct skua_qp *qp;
	int ret;

	if (attr->comp_mask & ~RSS_QP_ATTRS || attr->qp_type != IBV_QPT_RAW_PACKET ||
	    hash->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
	    hash->rx_hash_key_len != sizeof(cmd.key)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = skua_zalloc_lines(sizeof(*qp));
	if (!qp)
		return NULL;
	qp->is_rss = true;
	cmd.fields = hash->rx_hash_fields_mask;
	cmd.function = hash->rx_hash_function;
	cmd.key_len = hash->rx_hash_key_len;
	memcpy(cmd.key, hash->rx_hash_key, sizeof(cmd.key));
	ret = ibv_cmd_create_qp_ex2(ctx, &qp->vqp, attr, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	return &qp->vqp.qp;
}

int skua_destroy_rss_qp(struct skua_qp *qp)
{
	int ret;

	ret = ibv_cmd_destroy_qp(&qp->vqp.qp);
	if (ret)
		return ret;
	free(qp);
	return 0;
}
