// SPDX-License-Identifier: GPL-2.0
/*
 * Responder: requests to memory and receives, and what is answered.
 *
 * A request is looked at in the order of the IBTA's figure: PSN, sequence of
 * opcodes, opcode, resources, length, keys; the first that fails decides. Nothing
 * is answered at once: what there is to say waits in the context for the QP's
 * turn, so that one acknowledgment speaks for all packets that came meanwhile, and
 * answers leave in the order of PSNs however long a READ takes:
 *
 *   responses of READs, atomics and the like by PSN (rres.c), then NAK or ACK
 *
 * An error that ends the QP is acted on when its NAK leaves; until then no request
 * is taken (SKUA_RQC_FAILED).
 */
#include <string.h>

#include "sr.h"

static void rqc_set(struct turn *t, uint32_t flag)
{
	t->rqc->flags |= cpu_to_le32(flag);
}

static void rqc_clear(struct turn *t, uint32_t flag)
{
	t->rqc->flags &= ~cpu_to_le32(flag);
}

void resp_start(struct turn *t)
{
	t->rqc->epsn = t->sqc->attr.rq_psn;
	t->rqc->ack_psn = cpu_to_le32(psn_add(le32_to_cpu(t->sqc->attr.rq_psn), IB_PSN_MASK));
}

/* --- what is to be said --- */

void resp_want_ack(struct turn *t)
{
	rqc_set(t, SKUA_RQC_ACK_PENDING);
	sched_kick_resp(t->dev, t->qp->qpn);
}

static void want_nak(struct turn *t, uint8_t syndrome, uint32_t psn)
{
	/* One before it: none. */
	t->rqc->dropped = cpu_to_le32(psn_add(psn, IB_PSN_MASK));
	/* What came before it is acknowledged by it. */
	rqc_clear(t, SKUA_RQC_ACK_PENDING);
	rqc_set(t, SKUA_RQC_NAK_PENDING);
	t->rqc->nak = cpu_to_le32(syndrome);
	t->rqc->nak_psn = cpu_to_le32(psn);
	sched_kick_resp(t->dev, t->qp->qpn);
}

void resp_fail_at(struct turn *t, uint32_t psn, enum ib_nak_code nak, enum skua_qp_event ev)
{
	if (!turn_need_rq_rest(t))
		return;
	rqc_set(t, SKUA_RQC_FAILED);
	t->rqc->fail_event = cpu_to_le32(ev);
	t->rqc->err_syndrome = cpu_to_le32(IB_AETH_NAK | nak);
	want_nak(t, IB_AETH_NAK | nak, psn);
}

static void fail(struct turn *t, enum ib_nak_code nak, enum skua_qp_event ev)
{
	resp_fail_at(t, le32_to_cpu(t->rqc->epsn), nak, ev);
}

void resp_fail_key(struct turn *t, uint32_t psn, enum skua_vendor err)
{
	if (err == SKUA_VENDOR_KEY_DMA) {
		resp_fail_at(t, psn, IB_NAK_REMOTE_OP, SKUA_QP_EV_FATAL);
		return;
	}
	turn_count(t, SKUA_CNT_RESP_REMOTE_ACCESS);
	resp_fail_at(t, psn, IB_NAK_REMOTE_ACCESS, SKUA_QP_EV_ACCESS_ERR);
}

/* --- receives --- */

void resp_recv_error(struct turn *t, enum skua_cqe_status status, enum skua_vendor vendor)
{
	struct skua_cqe cqe = {
		.what = le32_encode_bits(SKUA_CQE_RECV, SKUA_CQE_OPCODE) |
			le32_encode_bits(status, SKUA_CQE_STATUS),
		.own = le32_encode_bits(vendor, SKUA_CQE_VENDOR),
	};

	turn_count(t, SKUA_CNT_RESP_CQE_ERROR);
	recv_done(t, &cqe, false);
}

/* The receive WQE could not take the message: the peer gets a NAK. */
static void fail_recv(struct turn *t, enum skua_cqe_status status, enum skua_vendor vendor,
		      enum ib_nak_code nak)
{
	fail(t, nak, SKUA_QP_EV_COUNT);
	resp_recv_error(t, status, vendor);
	/* Those that were taken from the SRQ for later messages keep their numbers. */
	t->rqc->recv_seq = cpu_to_le32(le32_to_cpu(t->rqc->recv_seq) + 1);
}

bool resp_recv_ok(struct turn *t, const struct skua_pkt *pkt, struct skua_cqe *cqe,
		  enum skua_cqe_op op, uint32_t byte_len)
{
	cqe->byte_len = cpu_to_le32(byte_len);
	cqe->what = le32_encode_bits(op, SKUA_CQE_OPCODE);
	cqe->own |= cpu_to_le32(pkt->se ? SKUA_CQE_F_SOLICITED : 0);
	if (pkt->immdt) {
		memcpy(&cqe->imm, pkt->immdt->data, sizeof(cqe->imm));
		cqe->own |= cpu_to_le32(SKUA_CQE_F_IMM);
	}
	if (pkt->ieth) {
		cqe->inv_key = cpu_to_le32(be32_get(pkt->ieth->rkey));
		cqe->own |= cpu_to_le32(SKUA_CQE_F_INV);
	}
	return recv_done(t, cqe, pkt->se);
}

bool resp_have_recv(struct turn *t)
{
	switch (recv_ready(t)) {
	case RECV_READY:
		return true;
	case RECV_NONE:
		turn_count(t, SKUA_CNT_OUT_OF_BUFFER);
		return false;
	default:
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
		return false;
	}
}

void resp_drop_recv(struct turn *t, enum skua_cqe_status status, enum skua_vendor vendor)
{
	if (rqc_is(t, SKUA_RQC_WQE_TAKEN))
		resp_recv_error(t, status, vendor);
}

static bool complete_recv(struct turn *t, const struct skua_pkt *pkt, enum skua_cqe_op op)
{
	struct skua_cqe cqe = { 0 };

	t->rqc->recv_seq = cpu_to_le32(le32_to_cpu(t->rqc->recv_seq) + 1);
	return resp_recv_ok(t, pkt, &cqe, op, le32_to_cpu(t->rqc->cur_got));
}

/* --- a request of the expected PSN --- */

#define KIND(flags)	((flags) & (IB_F_SEND | IB_F_WRITE))

bool resp_sequence_ok(const struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t under_way = le32_to_cpu(t->rqc->cur_op);

	if (pkt->op->flags & IB_F_FIRST)
		return !under_way;
	return under_way && under_way == KIND(pkt->op->flags);
}

bool resp_payload_ok(const struct turn *t, const struct skua_pkt *pkt)
{
	if (!(pkt->op->flags & IB_F_LAST))
		return pkt->payload_len == t->mtu;
	if (!(pkt->op->flags & IB_F_FIRST))
		return pkt->payload_len >= 1 && pkt->payload_len <= t->mtu;
	return pkt->payload_len <= t->mtu;
}

/* A FLUSH of kinds that there are, all of which the QP is set up for. */
static bool flush_supported(const struct skua_pkt *pkt, uint32_t access)
{
	uint32_t word = be32_get(pkt->feth->word);
	uint32_t place = u32_get_bits(word, IB_FETH_PLACEMENT_MASK);
	uint32_t need = 0;

	if (place & SKUA_WQE_FLUSH_GLOBAL)
		need |= SKUA_ACCESS_FLUSH_GLOBAL;
	if (place & SKUA_WQE_FLUSH_PERSISTENT)
		need |= SKUA_ACCESS_FLUSH_PERSISTENT;
	return need && !(need & ~access) &&
	       !(place & ~(uint32_t)(SKUA_WQE_FLUSH_GLOBAL | SKUA_WQE_FLUSH_PERSISTENT)) &&
	       u32_get_bits(word, IB_FETH_SELECT_MASK) <= SKUA_WQE_FLUSH_MR;
}

bool resp_supported(const struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t access = le32_get_bits(t->sqc->attr.rights, SKUA_ATTR_ACCESS);

	if (pkt->ieth)
		return dev_has(t->dev, SKUA_CAP_INVALIDATE);
	if (pkt->op->flags & IB_F_SEND)
		return true;
	if (pkt->op->flags & IB_F_WRITE)
		return access & SKUA_ACCESS_REMOTE_WRITE;
	if (pkt->op->flags & IB_F_READ)
		return access & SKUA_ACCESS_REMOTE_READ;
	if (pkt->maskedeth && qp_without(t->dev, t->sqc, SKUA_VENDOR_MASKED_ATOMIC))
		return false;
	if (pkt->op->flags & IB_F_ATOMIC)
		return dev_has(t->dev, pkt->maskedeth ? SKUA_CAP_MASKED_ATOMIC :
							SKUA_CAP_ATOMIC) &&
		       access & SKUA_ACCESS_REMOTE_ATOMIC;
	if (pkt->op->flags & IB_F_ATOMIC_WRITE)
		return dev_has(t->dev, SKUA_CAP_ATOMIC_WRITE) &&
		       access & SKUA_ACCESS_REMOTE_WRITE;
	return pkt->op->flags & IB_F_FLUSH && dev_has(t->dev, SKUA_CAP_FLUSH) &&
	       flush_supported(pkt, access);
}

/* Past packets the last of which has an opcode with @flags. */
static void advance(struct turn *t, uint32_t flags, uint32_t psns)
{
	t->rqc->epsn = cpu_to_le32(psn_add(le32_to_cpu(t->rqc->epsn), psns));
	if (flags & IB_F_LAST) {
		t->rqc->msn = cpu_to_le32((le32_to_cpu(t->rqc->msn) + 1) & IB_MSN_MASK);
		t->rqc->cur_op = 0;
	} else {
		t->rqc->cur_op = cpu_to_le32(KIND(flags));
	}
}

void resp_advance(struct turn *t, const struct skua_pkt *pkt, uint32_t psns)
{
	advance(t, pkt->op->flags, psns);
	if (pkt->ackreq)
		resp_want_ack(t);
}

/* No receive WQE: the peer shall come again. */
static void not_ready(struct turn *t)
{
	uint32_t timer = le32_get_bits(t->sqc->attr.retry, SKUA_ATTR_MIN_RNR_TIMER);

	turn_count(t, SKUA_CNT_OUT_OF_BUFFER);
	rqc_set(t, SKUA_RQC_RNR_SENT);
	want_nak(t, IB_AETH_RNR_NAK | timer, le32_to_cpu(t->rqc->epsn));
}

void resp_wait_page(struct turn *t)
{
	t->dev->cnt[SKUA_CNT_PAGE_FAULT_RNR]++;
	rqc_set(t, SKUA_RQC_RNR_SENT);
	want_nak(t, IB_AETH_RNR_NAK | fault_rnr_code(t), le32_to_cpu(t->rqc->epsn));
}

bool resp_take_recv(struct turn *t)
{
	switch (recv_ready(t)) {
	case RECV_READY:
		return true;
	case RECV_NONE:
		not_ready(t);
		return false;
	default:
		fail(t, IB_NAK_REMOTE_OP, SKUA_QP_EV_FATAL);
		return false;
	}
}

uint32_t resp_got(const struct turn *t, const struct skua_pkt *pkt)
{
	return pkt->op->flags & IB_F_FIRST ? 0 : le32_to_cpu(t->rqc->cur_got);
}

void resp_send_done(struct turn *t, const struct skua_pkt *pkt)
{
	const struct mr_who peer = who_remote(t, 0);
	enum skua_vendor err;

	t->rqc->cur_got = cpu_to_le32(resp_got(t, pkt) + pkt->payload_len);
	if (pkt->ieth) {
		err = key_invalidate(t->dev, &peer, be32_get(pkt->ieth->rkey));
		if (err) {
			turn_count(t, SKUA_CNT_RESP_REMOTE_ACCESS);
			fail_recv(t, SKUA_CQE_REM_INV_REQ_ERR, err, IB_NAK_REMOTE_ACCESS);
			return;
		}
	}
	if (pkt->op->flags & IB_F_LAST) {
		turn_count(t, SKUA_CNT_RX_SEND);
		if (!complete_recv(t, pkt, SKUA_CQE_RECV))
			return;
	}
	resp_advance(t, pkt, 1);
}

static void do_send(struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t got = resp_got(t, pkt);
	enum skua_vendor err;
	struct rlist *l;

	if (!resp_take_recv(t))
		return;
	err = recv_fetch(t, 0, &l);
	if (err) {
		fail_recv(t, SKUA_CQE_LOC_QP_OP_ERR, err, IB_NAK_REMOTE_OP);
		return;
	}
	if (got + (uint64_t)pkt->payload_len > l->rwqe.len || got > 1u << MODEL_LOG_MSG) {
		turn_count(t, SKUA_CNT_RESP_LOCAL_LEN);
		fail_recv(t, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_MSG_LEN, IB_NAK_INVALID_REQUEST);
		return;
	}
	err = fault_resp(t, recv_place_pkt(t, l, got, pkt));
	if (err == SKUA_VENDOR_MISS) {
		resp_wait_page(t);
		return;
	}
	if (err) {
		fail_recv(t, SKUA_CQE_LOC_PROT_ERR, err, IB_NAK_REMOTE_OP);
		return;
	}
	resp_send_done(t, pkt);
}

void resp_write_begin(struct turn *t, const struct skua_pkt *pkt)
{
	t->rqc->cur_va = cpu_to_le64(be64_get(pkt->reth->va));
	t->rqc->cur_rkey = cpu_to_le32(be32_get(pkt->reth->rkey));
	t->rqc->cur_len = cpu_to_le32(be32_get(pkt->reth->len));
	t->rqc->cur_got = cpu_to_le32(resp_got(t, pkt));
}

bool resp_write_len_ok(const struct turn *t, const struct skua_pkt *pkt)
{
	uint64_t end = (uint64_t)le32_to_cpu(t->rqc->cur_got) + pkt->payload_len;
	uint32_t len = le32_to_cpu(t->rqc->cur_len);

	if (len > 1u << MODEL_LOG_MSG)
		return false;
	return pkt->op->flags & IB_F_LAST ? end == len : end < len;
}

enum skua_vendor resp_write(struct turn *t, const struct skua_pkt *pkt)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_WRITE);
	uint32_t len = le32_to_cpu(t->rqc->cur_len), got = le32_to_cpu(t->rqc->cur_got);
	uint32_t rkey = le32_to_cpu(t->rqc->cur_rkey);
	uint64_t va = le64_to_cpu(t->rqc->cur_va);
	const struct mr_part all = {
		.key = rkey, .va = va + got, .len = pkt->payload_len, .bytes = pkt->payload_len,
	};
	enum skua_vendor err = SKUA_VENDOR_NONE;

	who.want = len - got;
	who.in_order = true;
	/* Of all that the message is to write, before the first packet of several is written. */
	if ((pkt->op->flags & IB_F_ONLY) == IB_F_FIRST)
		err = mr_check(t->dev, &who, rkey, va, len);
	if (!err)
		err = sr_order_write(t, NULL, &who, &all, pkt);
	if (err)
		return err;
	t->rqc->cur_got = cpu_to_le32(got + pkt->payload_len);
	if (pkt->op->flags & IB_F_LAST)
		turn_count(t, SKUA_CNT_RX_WRITE);
	return SKUA_VENDOR_NONE;
}

void resp_write_done(struct turn *t, const struct skua_pkt *pkt)
{
	if (pkt->op->flags & IB_F_RECV && !complete_recv(t, pkt, SKUA_CQE_RECV_WRITE_IMM))
		return;
	resp_advance(t, pkt, 1);
}

static void do_write(struct turn *t, const struct skua_pkt *pkt)
{
	enum skua_vendor err;

	if (pkt->reth)
		resp_write_begin(t, pkt);
	if (!resp_write_len_ok(t, pkt)) {
		fail(t, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR);
		return;
	}
	if (pkt->op->flags & IB_F_RECV && !resp_take_recv(t))
		return;
	err = fault_resp(t, resp_write(t, pkt));
	if (err == SKUA_VENDOR_MISS) {
		resp_wait_page(t);
		return;
	}
	if (err) {
		resp_fail_key(t, le32_to_cpu(t->rqc->epsn), err);
		return;
	}
	resp_write_done(t, pkt);
}

/* --- a request of an earlier PSN --- */

void resp_duplicate(struct turn *t, const struct skua_pkt *pkt)
{
	turn_count(t, SKUA_CNT_DUPLICATE_REQUEST);
	if (pkt->op->flags & IB_F_ANSWERED)
		rres_duplicate(t, pkt);
	else if (pkt->op->flags & (IB_F_SEND | IB_F_WRITE) && !rqc_is(t, SKUA_RQC_NAK_PENDING))
		resp_want_ack(t);
}

/* One NAK for each gap; after an RNR NAK the peer knows already. */
static void out_of_sequence(struct turn *t, uint32_t psn)
{
	if (rqc_is(t, SKUA_RQC_EXT)) {
		sr_resp_gap(t);
		return;
	}
	turn_count(t, SKUA_CNT_OUT_OF_SEQUENCE);
	if (!rqc_is(t, SKUA_RQC_NAK_SENT | SKUA_RQC_RNR_SENT)) {
		rqc_set(t, SKUA_RQC_NAK_SENT);
		want_nak(t, IB_AETH_NAK | IB_NAK_PSN_SEQUENCE, le32_to_cpu(t->rqc->epsn));
	}
	if (ib_psn_diff(psn, le32_to_cpu(t->rqc->dropped)) > 0)
		t->rqc->dropped = cpu_to_le32(psn);
}

/*
 * What a NAK asked for came before that had left. What the NAK would have acknowledged
 * is acknowledged in another way; and packets that were dropped behind it are still
 * missing: without a word the peer would find that out by its timer only.
 */
static void renew_nak(struct turn *t)
{
	uint32_t epsn = le32_to_cpu(t->rqc->epsn);
	__le32 furthest = t->rqc->dropped;

	if (ib_psn_diff(le32_to_cpu(furthest), epsn) < 0 || rqc_is(t, SKUA_RQC_EXT)) {
		resp_want_ack(t);
		return;
	}
	rqc_set(t, SKUA_RQC_NAK_SENT);
	want_nak(t, IB_AETH_NAK | IB_NAK_PSN_SEQUENCE, epsn);
	t->rqc->dropped = furthest;
}

static void execute(struct turn *t, const struct skua_pkt *pkt)
{
	if (!resp_sequence_ok(t, pkt) || !resp_supported(t, pkt) || !resp_payload_ok(t, pkt) ||
	    (pkt->seth && !sr_resp_place_ok(t, pkt)) || (pkt->xrceth && !recv_xrc_ok(t, pkt)))
		fail(t, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR);
	else if (pkt->op->flags & IB_F_SEND)
		do_send(t, pkt);
	else if (pkt->op->flags & IB_F_WRITE)
		do_write(t, pkt);
	else
		rres_request(t, pkt);
}

void resp_expected(struct turn *t, const struct skua_pkt *pkt)
{
	bool overtaken = rqc_is(t, SKUA_RQC_NAK_PENDING);
	uint32_t epsn = le32_to_cpu(t->rqc->epsn);
	bool unsaid = rqc_is(t, SKUA_RQC_HELD) && rqc_is(t, SKUA_RQC_ACK_PENDING);

	rqc_clear(t, SKUA_RQC_NAK_SENT | SKUA_RQC_RNR_SENT | SKUA_RQC_NAK_PENDING);
	execute(t, pkt);
	if (rqc_is(t, SKUA_RQC_HELD) && le32_to_cpu(t->rqc->epsn) != epsn)
		sr_resp_advance(t, epsn);
	if (overtaken && !rqc_is(t, SKUA_RQC_NAK_PENDING) && qp_state(t->qp) != SKUA_QP_ERR)
		renew_nak(t);
	/* A NAK does not tell what is held: an acknowledgment that is due follows it. */
	if (unsaid && rqc_is(t, SKUA_RQC_HELD) && rqc_is(t, SKUA_RQC_NAK_PENDING))
		rqc_set(t, SKUA_RQC_ACK_PENDING);
}

void resp_comm_est(struct turn *t)
{
	if (qp_state(t->qp) != SKUA_QP_RTR || rqc_is(t, SKUA_RQC_COMM_EST))
		return;
	rqc_set(t, SKUA_RQC_COMM_EST);
	qp_event(t->dev, t->sqc, SKUA_QP_EV_COMM_EST);
}

void resp_rx(struct turn *t, const struct skua_pkt *pkt)
{
	int32_t d = ib_psn_diff(pkt->psn, le32_to_cpu(t->rqc->epsn));

	resp_comm_est(t);
	if (rqc_is(t, SKUA_RQC_FAILED))
		turn_count(t, SKUA_CNT_RX_BAD_STATE);
	else if (pkt->seth)
		sr_resp_rx(t, pkt, d);
	else if (d < 0)
		resp_duplicate(t, pkt);
	else if (d > 0)
		out_of_sequence(t, pkt->psn);
	else if (sr_resp_is_stray(t, pkt))
		sr_resp_gap(t);
	else
		resp_expected(t, pkt);
}

/* --- trains --- */

/* Is a packet of it, not the first, one that asks for an acknowledgment? */
static bool asks(const struct skua_train *train, uint32_t psn)
{
	uint32_t next = psn_add(psn, 1) | train->ack_mask;

	return train->ack_last || psn_sub(next, psn) < train->packets;
}

static enum skua_vendor send_train(struct turn *t, const struct skua_train *train, uint32_t got)
{
	enum skua_vendor err;
	struct rlist *l;

	if (recv_ready(t) != RECV_READY)
		return SKUA_VENDOR_MISS;
	err = recv_fetch(t, 0, &l);
	if (err)
		return err;
	if (got + (uint64_t)train->bytes > l->rwqe.len || got > 1u << MODEL_LOG_MSG)
		return SKUA_VENDOR_MSG_LEN;
	return recv_place_train(t, l, got, train);
}

static enum skua_vendor write_train(struct turn *t, const struct skua_pkt *pkt,
				    const struct skua_train *train, uint32_t got)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_WRITE);
	uint32_t rkey = le32_to_cpu(t->rqc->cur_rkey), len = le32_to_cpu(t->rqc->cur_len);
	uint64_t va = le64_to_cpu(t->rqc->cur_va), end = (uint64_t)got + train->bytes;
	enum skua_vendor err = SKUA_VENDOR_NONE;

	if (pkt->reth) {
		va = be64_get(pkt->reth->va);
		rkey = be32_get(pkt->reth->rkey);
		len = be32_get(pkt->reth->len);
		err = mr_check(t->dev, &who, rkey, va, len);
	}
	if (len > 1u << MODEL_LOG_MSG || (train->last == IB_OPCODE(RC, WRITE_LAST) ? end != len :
										     end >= len))
		return SKUA_VENDOR_MSG_LEN;
	return err ? err : mr_write_train(t->dev, &who, rkey, va + got, train, 0, train->bytes);
}

/*
 * Only what is as expected in every regard. All else, failures too, is for the packets one by
 * one: what was written then is written once more.
 */
bool resp_rx_train(struct turn *t, const struct skua_pkt *pkt, const struct skua_train *train)
{
	const uint32_t busy = SKUA_RQC_FAILED | SKUA_RQC_NAK_PENDING | SKUA_RQC_NAK_SENT |
			      SKUA_RQC_RNR_SENT | SKUA_RQC_HELD;
	uint32_t got = resp_got(t, pkt);
	bool write = pkt->op->flags & IB_F_WRITE;

	if (pkt->psn != le32_to_cpu(t->rqc->epsn) || rqc_is(t, busy) || pkt->seth ||
	    train->mtu != t->mtu || fault_resp_waits(t) || !resp_sequence_ok(t, pkt) ||
	    !resp_supported(t, pkt) ||
	    (write ? write_train(t, pkt, train, got) : send_train(t, train, got)))
		return false;
	/* The sender's memory has gone meanwhile: what came is lost. */
	if (!train_intact(train))
		return true;
	resp_comm_est(t);
	if (pkt->reth)
		resp_write_begin(t, pkt);
	t->rqc->cur_got = cpu_to_le32(got + train->bytes);
	advance(t, ib_opcode_info(train->last)->flags, train->packets);
	if (train->last == IB_OPCODE(RC, WRITE_LAST))
		turn_count(t, SKUA_CNT_RX_WRITE);
	if (pkt->ackreq || asks(train, pkt->psn))
		resp_want_ack(t);
	return true;
}

/* --- answers --- */

/*
 * End-to-end credits: for how many messages after @msn there are receives. Of an SRQ the
 * QP has none of its own: it says that nothing limits the peer.
 */
static uint8_t credit_code(struct turn *t, uint32_t msn)
{
	if (recv_is_shared(t->qp))
		return IB_AETH_CREDIT_INVALID;
	return ib_credit_code(rq_count(t->dev, t->qp) +
			      ((le32_to_cpu(t->rqc->msn) - msn) & IB_MSN_MASK));
}

void resp_put_ack(struct turn *t, struct skua_pkt_build *b, uint32_t msn)
{
	if (b->aeth)
		ib_aeth_put(b->aeth, IB_AETH_ACK | credit_code(t, msn), msn);
}

/* The event of the failure, as noted in the context, which may come from memory of the host. */
static enum skua_qp_event fail_event(const struct turn *t)
{
	uint32_t ev = le32_to_cpu(t->rqc->fail_event);

	return ev < SKUA_QP_EV_COUNT ? ev : SKUA_QP_EV_COUNT;
}

static void send_nak(struct turn *t)
{
	uint8_t syndrome = (uint8_t)le32_to_cpu(t->rqc->nak);
	struct skua_pkt_build b;

	rqc_clear(t, SKUA_RQC_NAK_PENDING);
	/* Of what is held, or was dropped behind it, the NAK says nothing. */
	if (!rqc_is(t, SKUA_RQC_HELD | SKUA_RQC_DROPPED))
		rqc_clear(t, SKUA_RQC_ACK_PENDING);
	turn_count(t, SKUA_CNT_TX_NAK);
	if ((syndrome & IB_AETH_TYPE_MASK) == IB_AETH_RNR_NAK)
		turn_count(t, SKUA_CNT_TX_RNR);
	if (tx_start(t, &b, IB_OPCODE(RC, ACK), le32_to_cpu(t->rqc->nak_psn), false, false)) {
		ib_aeth_put(b.aeth, syndrome, le32_to_cpu(t->rqc->msn));
		tx_finish(t, &b, 0);
	}
	if (rqc_is(t, SKUA_RQC_FAILED) && turn_need_rq_rest(t))
		qp_error(t->dev, t->qp, SKUA_QP_ERR, fail_event(t));
}

static void send_ack(struct turn *t)
{
	uint32_t psn = psn_add(le32_to_cpu(t->rqc->epsn), IB_PSN_MASK);
	uint8_t opcode = IB_OPCODE(RC, ACK);
	uint8_t map[SKUA_LRC_PSNS / 8];
	struct skua_pkt_build b;
	bool only_came = false;
	uint32_t bytes = 0;

	rqc_clear(t, SKUA_RQC_ACK_PENDING);
	turn_count(t, SKUA_CNT_TX_ACK);
	if (rqc_is(t, SKUA_RQC_HELD | SKUA_RQC_DROPPED))
		bytes = sr_resp_bitmap(t, map, &only_came);
	if (bytes) {
		opcode = t->transport == IB_TRANSPORT_XRC ? IB_OPCODE(SKUA_XRC, ACK) :
							    IB_OPCODE(SKUA_RC, ACK);
		turn_count(t, SKUA_CNT_TX_SACK);
	}
	if (tx_start(t, &b, opcode, psn, false, only_came)) {
		resp_put_ack(t, &b, le32_to_cpu(t->rqc->msn));
		memcpy(b.payload, map, bytes);
		tx_finish(t, &b, bytes);
	}
	t->rqc->ack_psn = cpu_to_le32(psn);
}

bool resp_run(struct turn *t)
{
	const uint64_t *bytes = &t->dev->cnt[SKUA_CNT_RDMA_TX_BYTES];
	uint64_t before;

	switch (rres_run(t)) {
	case RRES_BUDGET:
		return true;
	case RRES_STALLED:
		return false;
	case RRES_DONE:
		break;
	}
	if (!rqc_is(t, SKUA_RQC_NAK_PENDING | SKUA_RQC_ACK_PENDING))
		return false;
	if (tx_peer_waits(t))
		return true;
	before = *bytes;
	if (rqc_is(t, SKUA_RQC_NAK_PENDING))
		send_nak(t);
	else
		send_ack(t);
	t->ack_bytes = *bytes - before;
	return rqc_is(t, SKUA_RQC_ACK_PENDING);
}

/*
 * The QP leaves the state @from and will not answer any more: a message that software has
 * seen complete must not stay without its acknowledgment, or the peer's request would be
 * flushed or retried until it fails. Programs end a connection as soon as they have the last
 * message, and the peer takes the flush for a lost one.
 */
void resp_farewell(struct turn *t, enum skua_qp_state from)
{
	uint32_t last = psn_add(le32_to_cpu(t->rqc->epsn), IB_PSN_MASK);

	if (from != SKUA_QP_RTR && from != SKUA_QP_RTS && from != SKUA_QP_SQD)
		return;
	if (rqc_is(t, SKUA_RQC_FAILED))
		return;
	/* With the extension, an acknowledgment says nothing of responses that it overtakes. */
	if (!rqc_is(t, SKUA_RQC_EXT) &&
	    (t->rqc->rr_head != t->rqc->rr_tail || t->rqc->flush_num))
		return;
	/* What waits for its turn will not have it. */
	rqc_clear(t, SKUA_RQC_HELD | SKUA_RQC_DROPPED);
	/* A pending NAK is dropped, but packets before it are acknowledged. */
	if (rqc_is(t, SKUA_RQC_ACK_PENDING) ||
	    (rqc_is(t, SKUA_RQC_NAK_PENDING) && le32_to_cpu(t->rqc->ack_psn) != last))
		send_ack(t);
}
