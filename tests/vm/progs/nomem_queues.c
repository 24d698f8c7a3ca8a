// SPDX-License-Identifier: GPL-2.0
/*
 * skua-nomem: verbs about work queues, and about extended reliable connections.
 */
#include <fcntl.h>

#include "nomem.h"

/* --- work queues --- */

static bool create_wq(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 100, .max_sge = 2, .pd = dev.pd, .cq = cq,
	};

	return made(ibv_create_wq(dev.ctx, &attr));
}

static bool destroy_wq(void)
{
	return done(ibv_destroy_wq(it.made));
}

static bool wq_before(void)
{
	return kept(create_wq());
}

static bool wq_after(void)
{
	return done(ibv_destroy_wq(it.again));
}

static bool wq_to(enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return done(ibv_modify_wq(it.again, &attr));
}

static bool wq_ready(void)
{
	return wq_to(IBV_WQS_RDY);
}

static bool wq_reset(void)
{
	return wq_to(IBV_WQS_RESET);
}

static bool ready_before(void)
{
	return wq_before() && wq_ready();
}

/* Whatever it has come to, it can be used. */
static bool ready_after(void)
{
	return wq_reset() && wq_ready() && wq_after();
}

static bool create_table(void)
{
	struct ibv_wq *wq = it.again;
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = 0, .ind_tbl = &wq };

	return made(ibv_create_rwq_ind_table(dev.ctx, &attr));
}

static bool destroy_table(void)
{
	return done(ibv_destroy_rwq_ind_table(it.made));
}

/* --- extended reliable connections --- */

static struct ibv_xrcd *xrcd;

static bool open_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	return made(ibv_open_xrcd(dev.ctx, &attr));
}

static bool close_xrcd(void)
{
	return done(ibv_close_xrcd(it.made));
}

static bool xrcd_before(void)
{
	if (!open_xrcd())
		return false;
	xrcd = it.made;
	return true;
}

static bool xrcd_after(void)
{
	return done(ibv_close_xrcd(xrcd));
}

static bool create_initiator(void)
{
	return made(new_qp(IBV_QPT_XRC_SEND));
}

static bool create_target(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};

	return made(ibv_create_qp_ex(dev.ctx, &attr));
}

static bool target_before(void)
{
	return xrcd_before() && kept(create_target());
}

static bool open_target(void)
{
	struct ibv_qp *target = it.again;
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = target->qp_num, .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};

	return made(ibv_open_qp(dev.ctx, &attr));
}

static bool target_after(void)
{
	return destroy_it() && xrcd_after();
}

static bool create_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 100, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = dev.pd, .xrcd = xrcd, .cq = cq,
	};

	return made(ibv_create_srq_ex(dev.ctx, &attr));
}

const struct verb verbs_of_queues[] = {
	{ "create_wq", nothing, create_wq, destroy_wq },
	{ "modify_wq to RDY", wq_before, wq_ready, nothing, ready_after },
	{ "modify_wq to RESET", ready_before, wq_reset, nothing, ready_after },
	/* Input that cannot be read is taken for input of a newer library */
	{ "create_rwq_ind_table", wq_before, create_table, destroy_table, wq_after,
	  .other = EOPNOTSUPP },
	{ "open_xrcd", nothing, open_xrcd, close_xrcd },
	{ "create_qp, XRC_SEND", nothing, create_initiator, destroy_qp },
	/* create_xrc_qp_user() of kernel 7.2: the domain can never be closed again */
	{ "create_qp, XRC_RECV", .skip = "kernel 7.2 loses a reference to the domain" },
	{ "destroy_qp, XRC_RECV", xrcd_before, create_target, destroy_qp, xrcd_after,
	  .undo_tried = true },
	{ "open_qp", target_before, open_target, destroy_qp, target_after },
	{ "create_srq_ex, XRC", xrcd_before, create_xrc_srq, destroy_srq, xrcd_after },
	{}
};
