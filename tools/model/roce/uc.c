// SPDX-License-Identifier: GPL-2.0
/*
 * Responder of unreliable connections. It sends no responses. A message with an error is dropped,
 * and the QP waits for the first packet of another one, with any PSN; until then cur_op is 0. A
 * receive WQE that was partly filled by such a message is used for the next one, unless it is from
 * an SRQ.
 */
#include "engine.h"

#define KIND(flags)	((flags) & (IB_F_SEND | IB_F_WRITE))

/* Drop the present message. */
static void drop_message(struct turn *t)
{
	t->rqc->cur_op = 0;
	resp_drop_recv(t, SKUA_CQE_REM_INV_REQ_ERR, SKUA_VENDOR_REQ_BAD);
}

/* Is the packet the first of a message, or the next of the present one? */
static bool in_sequence(struct turn *t, const struct skua_pkt *pkt)
{
	int32_t d = ib_psn_diff(pkt->psn, le32_to_cpu(t->rqc->epsn));
	uint32_t under_way = le32_to_cpu(t->rqc->cur_op);

	if (d)
		turn_count(t, d > 0 ? SKUA_CNT_OUT_OF_SEQUENCE : SKUA_CNT_DUPLICATE_REQUEST);
	if (pkt->op->flags & IB_F_FIRST)
		return true;
	return !d && under_way && under_way == KIND(pkt->op->flags);
}

/* True: the payload was written. */
static bool do_send(struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t got = pkt->op->flags & IB_F_FIRST ? 0 : le32_to_cpu(t->rqc->cur_got);
	enum skua_cqe_status status = SKUA_CQE_LOC_QP_OP_ERR;
	enum skua_vendor err;
	struct rlist *l;

	if (!resp_have_recv(t))
		return false;
	err = recv_fetch(t, 0, &l);
	if (!err && (got + (uint64_t)pkt->payload_len > l->rwqe.len ||
		     got > 1u << MODEL_LOG_MSG)) {
		turn_count(t, SKUA_CNT_RESP_LOCAL_LEN);
		resp_drop_recv(t, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_MSG_LEN);
		return false;
	}
	if (!err) {
		status = SKUA_CQE_LOC_PROT_ERR;
		err = fault_resp(t, recv_place_pkt(t, l, got, pkt));
	}
	if (err == SKUA_VENDOR_MISS)
		return false;
	/* A local error: the QP goes to ERR. */
	if (err) {
		resp_recv_error(t, status, err);
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_COUNT);
		return false;
	}
	t->rqc->cur_got = cpu_to_le32(got + pkt->payload_len);
	if (pkt->op->flags & IB_F_LAST)
		turn_count(t, SKUA_CNT_RX_SEND);
	return true;
}

static bool do_write(struct turn *t, const struct skua_pkt *pkt)
{
	enum skua_vendor err;

	if (!(le32_get_bits(t->sqc->attr.rights, SKUA_ATTR_ACCESS) & SKUA_ACCESS_REMOTE_WRITE))
		return false;
	if (pkt->reth)
		resp_write_begin(t, pkt);
	if (!resp_write_len_ok(t, pkt))
		return false;
	if (pkt->op->flags & IB_F_RECV && !resp_have_recv(t))
		return false;
	err = fault_resp(t, resp_write(t, pkt));
	if (err == SKUA_VENDOR_KEY_DMA)
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
	else if (err && err != SKUA_VENDOR_MISS)
		turn_count(t, SKUA_CNT_RESP_REMOTE_ACCESS);
	return !err;
}

static bool complete(struct turn *t, const struct skua_pkt *pkt)
{
	bool write = pkt->op->flags & IB_F_WRITE;
	struct skua_cqe cqe = { 0 };

	return resp_recv_ok(t, pkt, &cqe, write ? SKUA_CQE_RECV_WRITE_IMM : SKUA_CQE_RECV,
			    le32_to_cpu(t->rqc->cur_got));
}

void uc_rx(struct turn *t, const struct skua_pkt *pkt)
{
	bool first = pkt->op->flags & IB_F_FIRST;
	bool taken;

	resp_comm_est(t);
	if (!in_sequence(t, pkt)) {
		drop_message(t);
		return;
	}
	/* The start of a message drops the one before that was not finished. */
	if (first && t->rqc->cur_op)
		drop_message(t);
	t->rqc->epsn = cpu_to_le32(psn_add(pkt->psn, 1));
	taken = resp_payload_ok(t, pkt) &&
		(pkt->op->flags & IB_F_SEND ? do_send(t, pkt) : do_write(t, pkt));
	if (!taken)
		drop_message(t);
	else if (pkt->op->flags & IB_F_LAST)
		t->rqc->cur_op = 0;
	else
		t->rqc->cur_op = cpu_to_le32(KIND(pkt->op->flags));
	if (taken && pkt->op->flags & IB_F_RECV)
		complete(t, pkt);
}
