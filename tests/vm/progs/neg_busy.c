// SPDX-License-Identifier: GPL-2.0
/*
 * skua-neg: an object that others need is not destroyed, and goes on as before.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "neg.h"

#define QKEY	0x11111111

static struct ibv_qp *ud_qp(struct neg *n, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *qp = ibv_create_qp(n->dev.pd, &init);
	int err;

	if (!qp)
		die("create_qp: %m");
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			    IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		die("modify_qp: %s", strerror(err));
	return qp;
}

/* A datagram to itself. */
static int send_to_self(struct neg *n, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)n->buf, 8, n->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 2,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = QKEY },
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static bool mcast_qp_with(struct neg *n, struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge sge = { (uintptr_t)n->buf + 64, 64, n->mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	union ibv_gid group;
	struct ibv_wc wc;

	inet_pton(AF_INET6, "ff1e::77", group.raw);
	if (!expect_err("attach", ibv_attach_mcast(qp, &group, 0), 0) ||
	    !expect_err("post_recv", ibv_post_recv(qp, &recv, &bad), 0) ||
	    !expect_err("destroy", ibv_destroy_qp(qp), EBUSY) ||
	    !expect_err("query", ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0))
		return false;
	if (attr.qp_state != IBV_QPS_RTS || qp->state != IBV_QPS_RTS)
		return fail("state %d, %d in libibverbs", attr.qp_state, qp->state);
	if (!expect_err("post_send", send_to_self(n, qp, ah), 0))
		return false;
	if (!poll_one(qp->recv_cq, &wc, 5) || wc.wr_id != 1 || wc.status != IBV_WC_SUCCESS)
		return fail("the receive that was posted before is lost");
	return expect_err("detach", ibv_detach_mcast(qp, &group, 0), 0);
}

static bool mcast_qp(struct neg *n)
{
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = n->dev.gid, .sgid_index = n->dev.gid_index, .hop_limit = 64 },
	};
	struct ibv_cq *cq = ibv_create_cq(n->dev.ctx, 16, NULL, NULL, 0);
	struct ibv_ah *ah = ibv_create_ah(n->dev.pd, &path);
	struct ibv_qp *qp;
	bool ok;

	if (!cq || !ah)
		die("create_cq, create_ah: %m");
	qp = ud_qp(n, cq);
	ok = mcast_qp_with(n, qp, ah);
	if (ok)
		ok = expect_err("destroy in the end", ibv_destroy_qp(qp), 0) &&
		     expect_err("destroy_cq", ibv_destroy_cq(cq), 0);
	ibv_destroy_ah(ah);
	return ok;
}

/* A work queue that a table names. */
static bool wq_in_table(struct neg *n)
{
	struct ibv_cq *cq = ibv_create_cq(n->dev.ctx, 16, NULL, NULL, 0);
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 8,
		.max_sge = 1,
		.pd = n->dev.pd,
		.cq = cq,
	};
	struct ibv_rwq_ind_table_init_attr tinit = {};
	struct ibv_wq_attr to = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table *table;
	struct ibv_wq *wq;

	wq = cq ? ibv_create_wq(n->dev.ctx, &init) : NULL;
	if (!wq)
		die("create_wq: %m");
	tinit.ind_tbl = &wq;
	table = ibv_create_rwq_ind_table(n->dev.ctx, &tinit);
	if (!table)
		die("create_rwq_ind_table: %m");
	if (!expect_err("ready", ibv_modify_wq(wq, &to), 0) ||
	    !expect_err("destroy", ibv_destroy_wq(wq), EBUSY))
		return false;
	to.attr_mask |= IBV_WQ_ATTR_CURR_STATE;
	to.curr_wq_state = IBV_WQS_RDY;
	return expect_err("still ready", ibv_modify_wq(wq, &to), 0) &&
	       expect_err("destroy_rwq_ind_table", ibv_destroy_rwq_ind_table(table), 0) &&
	       expect_err("destroy in the end", ibv_destroy_wq(wq), 0) &&
	       expect_err("destroy_cq", ibv_destroy_cq(cq), 0);
}

const struct neg_case cases_busy[] = {
	{ "destroy of a QP in a multicast group", mcast_qp },
	{ "destroy of a work queue in a table", wq_in_table },
	{}
};
