// SPDX-License-Identifier: GPL-2.0
/*
 * skua-queues: work queues behind a QP that spreads frames by a hash. Frames that a QP
 * for raw packets sends to the port's own address come back.
 */
#include <poll.h>
#include <string.h>

#include "queues.h"

#define FRAME	64
#define ETYPE	0x88b5		/* for local experiments */

struct spread {
	struct ibv_cq *cq, *scq;
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp, *sender;
	struct ibv_flow *flow;
};

static struct ibv_wq *make_wq(struct ibv_cq *cq, unsigned int n)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = n, .max_sge = 1, .pd = dev.pd, .cq = cq,
	};

	return ibv_create_wq(dev.ctx, &attr);
}

static struct ibv_qp *make_spreader(struct ibv_rwq_ind_table *table)
{
	static uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = dev.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = sizeof(key), .rx_hash_key = key,
				  .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 |
							 IBV_RX_HASH_DST_IPV4 },
	};

	return ibv_create_qp_ex(dev.ctx, &attr);
}

static struct ibv_flow *make_rule(struct ibv_qp *qp)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};

	memcpy(rule.eth.val.dst_mac, mac, sizeof(mac));
	memset(rule.eth.mask.dst_mac, 0xff, sizeof(mac));
	return ibv_create_flow(qp, &rule.attr);
}

static bool to_send(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	return true;
}

static bool spread_make(struct spread *s, int cqe, unsigned int wqes)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_send_wr = 16, .max_send_sge = 1 },
	};
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &s->wq };

	memset(s, 0, sizeof(*s));
	s->cq = make_cq(cqe);
	s->scq = make_cq(16);
	must(s->wq = make_wq(s->cq, wqes));
	must(!ibv_modify_wq(s->wq, &ready));
	must(s->table = ibv_create_rwq_ind_table(dev.ctx, &table));
	must(s->qp = make_spreader(s->table));
	must(s->flow = make_rule(s->qp));
	init.send_cq = init.recv_cq = s->scq;
	must(s->sender = ibv_create_qp(dev.pd, &init));
	return to_send(s->sender);
}

static bool spread_drop(struct spread *s)
{
	must(!ibv_destroy_flow(s->flow));
	must(!ibv_destroy_qp(s->sender) && !ibv_destroy_qp(s->qp));
	must(!ibv_destroy_rwq_ind_table(s->table));
	must(!ibv_destroy_wq(s->wq));
	must(!ibv_destroy_cq(s->cq) && !ibv_destroy_cq(s->scq));
	return true;
}

static int wq_post(struct ibv_wq *wq, uint64_t id, uint32_t lkey)
{
	struct ibv_sge sg = { (uintptr_t)buf, LEN / 2, lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 }, *bad;

	return ibv_post_wq_recv(wq, &wr, &bad);
}

/* A frame that the rule wants, gone out. */
static bool frame(struct spread *s, uint64_t id)
{
	uint8_t *f = buf + LEN / 2;

	memset(f, 0, FRAME);
	memcpy(f, mac, 6);
	memcpy(f + 6, mac, 6);
	f[12] = ETYPE >> 8;
	f[13] = ETYPE & 0xff;
	must(!send_from(s->sender, f, FRAME, id));
	return done(s->scq, id, IBV_WC_SUCCESS);
}

/* To this state, if it is in the other one. */
static int wq_from(struct ibv_wq *wq, enum ibv_wq_state cur, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = state, .curr_wq_state = cur,
	};

	return ibv_modify_wq(wq, &attr);
}

/* The state is that of the device, which nobody asked for an error. */
static bool wq_in_error(struct ibv_wq *wq)
{
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };

	must(ibv_modify_wq(wq, &ready) == EINVAL);
	must(wq_from(wq, IBV_WQS_ERR, IBV_WQS_RDY) == EINVAL);
	must(wq_from(wq, IBV_WQS_RDY, IBV_WQS_RESET) == EINVAL);
	must(!wq_from(wq, IBV_WQS_ERR, IBV_WQS_ERR));
	return true;
}

/* A WQE that cannot be written to is an error of its own queue, and flushes the rest. */
bool case_wq_error(void)
{
	struct spread s;

	must(spread_make(&s, 16, 8));
	must(!wq_post(s.wq, 1, mr->lkey) && !wq_post(s.wq, 2, mr->lkey ^ 0x55) &&
	     !wq_post(s.wq, 3, mr->lkey));
	must(frame(&s, 1) && done(s.cq, 1, IBV_WC_SUCCESS));
	must(frame(&s, 2) && done(s.cq, 2, IBV_WC_LOC_PROT_ERR));
	must(done(s.cq, 3, IBV_WC_WR_FLUSH_ERR));
	must(!wq_post(s.wq, 4, mr->lkey) && done(s.cq, 4, IBV_WC_WR_FLUSH_ERR));
	if (!quiet() || !wq_in_error(s.wq))
		return false;
	must(!wq_from(s.wq, IBV_WQS_ERR, IBV_WQS_RESET));
	must(!wq_from(s.wq, IBV_WQS_RESET, IBV_WQS_RDY));
	must(!wq_post(s.wq, 5, mr->lkey) && frame(&s, 5) && done(s.cq, 5, IBV_WC_SUCCESS));
	return spread_drop(&s);
}

/* No room for its completions: an event of the CQ, and one of the queue. */
bool case_wq_fatal(void)
{
	struct pollfd pfd = { .fd = dev.ctx->async_fd, .events = POLLIN };
	bool of_cq = false, of_wq = false;
	struct ibv_async_event ev;
	struct spread s;
	int i, n;

	must(spread_make(&s, 1, 64));
	n = s.cq->cqe + 1;
	must(n <= 64);
	for (i = 0; i < n; i++)
		must(!wq_post(s.wq, i, mr->lkey));
	for (i = 0; i < n; i++)
		must(frame(&s, i));
	for (i = 0; i < 2; i++) {
		must(poll(&pfd, 1, 10000) == 1 && !ibv_get_async_event(dev.ctx, &ev));
		of_cq |= ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == s.cq;
		of_wq |= ev.event_type == IBV_EVENT_WQ_FATAL && ev.element.wq == s.wq;
		ibv_ack_async_event(&ev);
	}
	must(of_cq && of_wq);
	must(quiet());
	return spread_drop(&s);
}
