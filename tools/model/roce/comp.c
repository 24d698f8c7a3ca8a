// SPDX-License-Identifier: GPL-2.0
/*
 * Completer: handling of responses, which completes WQEs of the send queue.
 *
 * Responses are handled in the order of PSNs. An acknowledgment also covers all earlier requests,
 * except those with responses of their own (READs, atomics, FLUSH, ATOMIC_WRITE), which are
 * complete with the last of these. A response to a later request than one of them that is not
 * complete means that a response was lost: it is handled like a NAK of that request.
 */
#include <string.h>

#include "cc.h"
#include "engine.h"
#include "sr.h"

/* Result of acknowledging PSNs up to some point. */
enum reach {
	REACHED,
	RESP_LOST,	/* a request that is not answered lies before it */
	FAILED,		/* the QP is in error */
};

/* RNR NAK timer codes, in units of 10 us. */
static const uint32_t rnr_time[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

/* Complete the WQE at ci with an error. */
static void fail_ci(struct turn *t, enum skua_cqe_status status, enum skua_vendor vendor)
{
	enum skua_vendor err;
	struct flight f;

	err = req_flight(t, &f);
	if (err)
		req_fail(t, f.blocks, SKUA_CQE_LOC_QP_OP_ERR, err);
	else
		req_fail(t, f.blocks, status, vendor);
}

/* Go back and send again, if there are retries left. */
static void retry(struct turn *t, enum skua_vendor why)
{

	if (!t->sqc->retry_left) {
		turn_count(t, SKUA_CNT_RETRY_EXCEEDED);
		fail_ci(t, SKUA_CQE_RETRY_EXC_ERR, why);
		return;
	}
	t->sqc->retry_left--;
	if (sr_on(t))
		sr_lost_all(t);
	else
		req_go_back(t);
}

static bool in_recovery(const struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_IN_RECOVERY;
}

void comp_lost(struct turn *t)
{
	if (!in_recovery(t))
		retry(t, SKUA_VENDOR_NAK_SEQ);
}

/* Once for each loss: later NAKs of packets sent before that are ignored. */
static void implied_nak(struct turn *t, const struct skua_pkt *pkt)
{
	if (sr_on(t)) {
		sr_comp_rx(t, pkt);
		return;
	}
	if (in_recovery(t))
		return;
	turn_count(t, SKUA_CNT_IMPLIED_NAK_SEQ_ERR);
	retry(t, SKUA_VENDOR_NAK_SEQ);
}

/* NAKs that end the peer's QP: what the request that caused one completes with. */
static const struct {
	enum skua_counter cnt;
	enum skua_cqe_status status;
	enum skua_vendor vendor;
} naks[] = {
	[IB_NAK_INVALID_REQUEST] = { SKUA_CNT_REQ_REMOTE_INV, SKUA_CQE_REM_INV_REQ_ERR,
				     SKUA_VENDOR_NAK_INV },
	[IB_NAK_REMOTE_ACCESS] = { SKUA_CNT_REQ_REMOTE_ACCESS, SKUA_CQE_REM_ACCESS_ERR,
				   SKUA_VENDOR_NAK_ACC },
	[IB_NAK_REMOTE_OP] = { SKUA_CNT_REQ_REMOTE_OP, SKUA_CQE_REM_OP_ERR, SKUA_VENDOR_NAK_OP },
};

static bool is_end(uint32_t code)
{
	return code != IB_NAK_PSN_SEQUENCE && code < sizeof(naks) / sizeof(naks[0]);
}

void comp_nak_ahead(struct turn *t, uint32_t code)
{
	if (!is_end(code) || comp_peer_nak(t))
		return;
	t->sqc->valid |= le32_encode_bits(code, SKUA_SQC_PEER_NAK);
	if (turn_need_sq_rest(t))
		t->sqc->ack_deadline = cpu_to_le64(t->now + sr_last_time(t));
}

void comp_timeout(struct turn *t)
{
	uint32_t code = comp_peer_nak(t);

	if (t->sqc->una_psn == t->sqc->max_psn || qp_state(t->qp) == SKUA_QP_ERR)
		return;
	/* To ask again is in vain: as if all retries had been. */
	if (is_end(code)) {
		turn_count(t, naks[code].cnt);
		turn_count(t, SKUA_CNT_RETRY_EXCEEDED);
		fail_ci(t, SKUA_CQE_RETRY_EXC_ERR, naks[code].vendor);
		return;
	}
	turn_count(t, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR);
	cc_timeout(t);
	retry(t, SKUA_VENDOR_TIMEOUT);
}

/*
 * All PSNs before @psn are acknowledged; @psn is between una_psn and max_psn. Complete the WQEs
 * that are acknowledged completely.
 */
static enum reach ack_messages(struct turn *t, uint32_t psn)
{
	struct flight f;

	while (t->sqc->una_psn != cpu_to_le32(psn)) {
		uint32_t start = le32_to_cpu(t->sqc->ci_psn);
		enum skua_vendor err = req_flight(t, &f);

		if (err) {
			req_fail(t, f.blocks, SKUA_CQE_LOC_QP_OP_ERR, err);
			return FAILED;
		}
		if (op_is_answered(f.op))
			return RESP_LOST;
		if (psn_sub(psn, start) < f.psns) {
			t->sqc->una_psn = cpu_to_le32(psn);
			break;
		}
		t->sqc->una_psn = cpu_to_le32(psn_add(start, f.psns));
		if (!req_complete(t, &f))
			return FAILED;
	}
	return REACHED;
}

static enum reach ack_upto(struct turn *t, uint32_t psn)
{
	const __le32 before = t->sqc->una_psn;
	enum reach reach;

	/* Write their completions together. */
	cq_batch_begin(t->dev);
	reach = ack_messages(t, psn);
	if (!cq_batch_end(t->dev) && qp_state(t->qp) != SKUA_QP_ERR)
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
	if (reach == FAILED)
		return FAILED;
	if (t->sqc->una_psn != before)
		req_progress(t);
	return qp_state(t->qp) == SKUA_QP_ERR ? FAILED : reach;
}

bool comp_upto(struct turn *t, uint32_t psn)
{
	return ack_upto(t, psn) != FAILED;
}

/* --- credits --- */

/*
 * Update the limit of messages for which the peer has receives. The number of credits in an
 * acknowledgment is rounded down, so the limit computed from a later one can be lower. The
 * peer's receives do not go away, so the highest limit is used.
 */
void comp_credits(struct turn *t, const struct ib_aeth *aeth)
{
	struct skua_sqc *s = t->sqc;
	unsigned int code = aeth->syndrome & IB_AETH_VALUE_MASK;
	uint32_t limit = msn_add(be24_get(aeth->msn), ib_credits(code));

	if ((aeth->syndrome & IB_AETH_TYPE_MASK) != IB_AETH_ACK)
		return;
	if (code == IB_AETH_CREDIT_INVALID) {
		s->valid &= ~cpu_to_le32(SKUA_SQC_CREDIT_VALID);
	} else if (!(s->valid & cpu_to_le32(SKUA_SQC_CREDIT_VALID)) ||
		   ib_psn_diff(limit, le32_to_cpu(s->credit)) > 0) {
		s->credit = cpu_to_le32(limit);
		s->valid |= cpu_to_le32(SKUA_SQC_CREDIT_VALID);
	} else {
		return;
	}
	req_kick(t);
}

/* --- READ, atomic and empty responses --- */

/*
 * The scatter list of the WQE at ci: a list of one element is kept in the flight cache, a longer
 * one is in the cache of lists, or is read from the ring.
 */
static enum skua_vendor read_fetch(struct turn *t, const struct flight *f, struct rlist **out)
{
	struct rlist *l = rlist_get(&t->dev->engine->lists, f->qpn | LIST_READ, f->incarnation,
				    f->index);
	struct wqe *w = &t->dev->engine->wqe;
	enum skua_vendor err;
	struct flight now;

	*out = l;
	l->sge = l->rwqe.sge;
	if (l->valid)
		return SKUA_VENDOR_NONE;
	/* Since @f was looked up its place may have gone to another message of the QP. */
	if (f->kept && flight_get(t->dev->engine, f->qpn, f->incarnation, f->index, &now) &&
	    now.kept) {
		l->rwqe.sge[0] = *flight_sge(t->dev->engine, f);
		l->nsge = 1;
		l->valid = true;
		return SKUA_VENDOR_NONE;
	}
	err = wqe_fetch(t->dev, t->qp, f->index, w);
	turn_count(t, SKUA_CNT_WQE_REFETCH);
	if (err || w->op != f->op || w->len != f->len || w->blocks != f->blocks)
		return SKUA_VENDOR_WQE_CHANGED;
	l->nsge = w->nsge;
	l->valid = w->nsge <= sizeof(l->rwqe.sge) / sizeof(l->rwqe.sge[0]);
	if (l->valid)
		memcpy(l->rwqe.sge, w->sge, w->nsge * sizeof(w->sge[0]));
	else
		l->sge = w->sge;
	return SKUA_VENDOR_NONE;
}

/* Write payload for offset @off of a message to the list, or keep it for the CQE. */
static enum skua_vendor place(struct turn *t, const struct flight *f, struct rlist *l,
			      uint64_t off, const void *buf, uint32_t len)
{
	struct mr_who who = who_local(t, SKUA_ACCESS_LOCAL_WRITE);
	enum skua_vendor err;

	/* Early responses do not come here, so a READ's bytes are written in order. */
	who.in_order = f->op == SKUA_WQE_READ;
	if (le32_to_cpu(t->sqc->cfg.flags) & SKUA_QP_F_SCATTER_SQ_CQE && f->signaled &&
	    len == f->len && len <= SCATTER_MAX) {
		err = scatter_cqe(t, &who, l->sge, l->nsge, le32_to_cpu(t->sqc->cfg.cqn),
				  buf, len);
		if (err || t->dev->engine->inl_len)
			return err;
	}
	return sge_copy_as(t, &who, l->sge, l->nsge, &l->pos, off, (void *)(uintptr_t)buf, len,
			   true);
}

/*
 * Is a page for the response missing? Then this response and all later ones are dropped, and
 * requested again when the page is there.
 */
static bool no_page(struct turn *t, enum skua_vendor *err)
{
	*err = fault_req(t, *err);
	if (*err != SKUA_VENDOR_MISS)
		return false;
	if (!sr_on(t))
		req_go_back(t);
	return true;
}

/* The response at una_psn was the last of a request. */
void comp_answered(struct turn *t)
{
	if (t->sqc->rd_outstanding)
		t->sqc->rd_outstanding--;
}

/*
 * The last response of a part of a READ must have the opcode of a last one. With selective repeat
 * that may also be another one, which is the last of those requested again.
 */
static bool last_ok(const struct turn *t, const struct skua_pkt *pkt, bool part_end)
{
	return pkt->op->flags & IB_F_LAST ? part_end || sr_on(t) : !part_end;
}

/* The response at una_psn, of the READ at ci. */
static void take_read(struct turn *t, const struct skua_pkt *pkt, const struct flight *f)
{
	uint64_t off = (uint64_t)psn_sub(pkt->psn, le32_to_cpu(t->sqc->ci_psn)) * t->mtu;
	uint32_t n = f->len - off < t->mtu ? (uint32_t)(f->len - off) : t->mtu;
	bool part_end = req_read_part_ends(t, off + n, f->len);
	enum skua_vendor err;
	struct rlist *l;

	if (pkt->payload_len != n || !last_ok(t, pkt, part_end)) {
		req_fail(t, f->blocks, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_RESP_BAD);
		return;
	}
	err = read_fetch(t, f, &l);
	if (err) {
		req_fail(t, f->blocks, SKUA_CQE_LOC_QP_OP_ERR, err);
		return;
	}
	err = place(t, f, l, off, pkt->payload, n);
	if (no_page(t, &err))
		return;
	if (err) {
		req_fail(t, f->blocks, SKUA_CQE_LOC_PROT_ERR, err);
		return;
	}
	t->sqc->una_psn = cpu_to_le32(psn_add(pkt->psn, 1));
	if (part_end)
		comp_answered(t);
	if (off + n == f->len) {
		l->valid = false;
		if (!req_complete(t, f))
			return;
	}
	req_progress(t);
}

/* The original value for an atomic; nothing for FLUSH and ATOMIC_WRITE. */
static void take_one(struct turn *t, const struct skua_pkt *pkt, const struct flight *f)
{
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct rlist *l;
	__le64 orig;

	if (pkt->payload_len || (pkt->op->flags & IB_F_ONLY) != IB_F_ONLY) {
		req_fail(t, f->blocks, SKUA_CQE_BAD_RESP_ERR, SKUA_VENDOR_RESP_BAD);
		return;
	}
	if (pkt->atomicacketh) {
		err = read_fetch(t, f, &l);
		if (err) {
			req_fail(t, f->blocks, SKUA_CQE_LOC_QP_OP_ERR, err);
			return;
		}
		orig = cpu_to_le64(be64_get(pkt->atomicacketh->orig));
		err = place(t, f, l, 0, &orig, sizeof(orig));
		l->valid = false;
	}
	if (no_page(t, &err))
		return;
	if (err) {
		req_fail(t, f->blocks, SKUA_CQE_LOC_PROT_ERR, err);
		return;
	}
	t->sqc->una_psn = cpu_to_le32(psn_add(pkt->psn, 1));
	comp_answered(t);
	if (req_complete(t, f))
		req_progress(t);
}

/* Does the request at ci have responses of this kind? */
static bool answers(const struct skua_pkt *pkt, const struct flight *f)
{
	if (op_is_atomic(f->op))
		return pkt->op->flags & IB_F_ATOMIC;
	return op_is_answered(f->op) && pkt->op->flags & IB_F_READ;
}

void comp_expected(struct turn *t, const struct skua_pkt *pkt)
{
	struct flight f;
	enum skua_vendor err = req_flight(t, &f);

	if (!err && pkt->aeth && answers(pkt, &f))
		comp_credits(t, pkt->aeth);
	if (err)
		req_fail(t, f.blocks, SKUA_CQE_LOC_QP_OP_ERR, err);
	else if (!answers(pkt, &f))
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
	else if (f.op == SKUA_WQE_READ)
		take_read(t, pkt, &f);
	else
		take_one(t, pkt, &f);
}

bool comp_early(struct turn *t, const struct skua_pkt *pkt, const struct flight *f,
		uint32_t start)
{
	uint64_t off = (uint64_t)psn_sub(pkt->psn, start) * t->mtu;
	uint32_t n = f->len - off < t->mtu ? (uint32_t)(f->len - off) : t->mtu;
	const void *from = pkt->payload;
	enum skua_vendor err;
	struct rlist *l;
	__le64 orig;

	if (!answers(pkt, f) || !!pkt->atomicacketh != op_is_atomic(f->op))
		goto drop;
	if (f->op == SKUA_WQE_READ) {
		if (pkt->payload_len != n ||
		    !last_ok(t, pkt, req_read_part_ends(t, off + n, f->len)))
			goto drop;
	} else {
		if (pkt->payload_len || (pkt->op->flags & IB_F_ONLY) != IB_F_ONLY)
			goto drop;
		if (!pkt->atomicacketh)
			return true;
		orig = cpu_to_le64(be64_get(pkt->atomicacketh->orig));
		from = &orig;
		n = sizeof(orig);
	}
	err = read_fetch(t, f, &l);
	if (!err)
		err = sge_copy(t, l->sge, l->nsge, &l->pos, off, (void *)(uintptr_t)from,
			       n, true);
	if (!err)
		return true;
	/* Dropped: when it is received as the expected one it fails, or waits for its page. */
	return false;
drop:
	turn_count(t, SKUA_CNT_RX_BAD_RESP);
	return false;
}

static void own_response(struct turn *t, const struct skua_pkt *pkt)
{
	/* Before una_psn: a duplicate. */
	if (ib_psn_diff(pkt->psn, le32_to_cpu(t->sqc->una_psn)) < 0)
		return;
	switch (ack_upto(t, pkt->psn)) {
	case RESP_LOST:
		implied_nak(t, pkt);
		return;
	case FAILED:
		return;
	case REACHED:
		break;
	}
	comp_expected(t, pkt);
}

/* --- ACK and NAK --- */

/* At una_psn the responder found no receive WQE. */
void comp_rnr_nak(struct turn *t, uint32_t code, uint32_t msn)
{
	uint32_t left = t->sqc->rnr_left;

	/* A duplicate. */
	if (t->sqc->valid & cpu_to_le32(SKUA_SQC_RNR_WAIT) || !turn_need_sq_rest(t))
		return;
	turn_count(t, SKUA_CNT_RNR_NAK_RETRY_ERR);
	if (!left) {
		turn_count(t, SKUA_CNT_RNR_RETRY_EXCEEDED);
		fail_ci(t, SKUA_CQE_RNR_RETRY_EXC_ERR, SKUA_VENDOR_NAK_RNR);
		return;
	}
	if (left != 7)
		t->sqc->rnr_left = (uint8_t)(left - 1);
	/* The peer has no receives: probe with one packet, whose ACK has the present credits. */
	t->sqc->credit = cpu_to_le32(msn);
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_CREDIT_VALID);
	if (sr_on(t))
		sr_lost_all(t);
	else
		req_go_back(t);
	if (qp_state(t->qp) == SKUA_QP_ERR)
		return;
	t->sqc->rnr_deadline = cpu_to_le64(t->now + rnr_time[code] * 10000ull);
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_RNR_WAIT);
}

void comp_nak(struct turn *t, uint32_t code)
{
	if (is_end(code)) {
		turn_count(t, naks[code].cnt);
		fail_ci(t, naks[code].status, naks[code].vendor);
	} else if (code == IB_NAK_PSN_SEQUENCE) {
		turn_count(t, SKUA_CNT_PACKET_SEQ_ERR);
		if (!in_recovery(t))
			retry(t, SKUA_VENDOR_NAK_SEQ);
	} else {
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
	}
}

bool comp_nak_kept(struct turn *t, uint32_t expected)
{
	uint32_t code = comp_peer_nak(t);

	if (!code || qp_state(t->qp) == SKUA_QP_ERR || t->sqc->una_psn == t->sqc->max_psn ||
	    le32_to_cpu(t->sqc->una_psn) != expected)
		return false;
	comp_nak(t, code);
	return true;
}

static void ack_response(struct turn *t, const struct skua_pkt *pkt)
{
	uint8_t type = pkt->aeth->syndrome & IB_AETH_TYPE_MASK;
	uint8_t value = pkt->aeth->syndrome & IB_AETH_VALUE_MASK;
	int32_t ahead = ib_psn_diff(pkt->psn, le32_to_cpu(t->sqc->una_psn));
	enum reach reach;

	/* Repeat the last acknowledgment, with the present credits. */
	if (ahead >= -1)
		comp_credits(t, pkt->aeth);
	if (ahead < 0)
		return;
	/* A NAK acknowledges the PSNs before its own, an ACK also its own. */
	reach = ack_upto(t, type == IB_AETH_ACK ? psn_add(pkt->psn, 1) : pkt->psn);
	if (reach == FAILED)
		return;
	if (reach == RESP_LOST)
		implied_nak(t, pkt);
	else if (type == IB_AETH_RNR_NAK)
		comp_rnr_nak(t, value, be24_get(pkt->aeth->msn));
	else if (type == IB_AETH_NAK)
		comp_nak(t, value);
	else if (type != IB_AETH_ACK)
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
}

void comp_rx(struct turn *t, const struct skua_pkt *pkt)
{
	/*
	 * Of something never sent; the queue cannot be empty then. Or with a bitmap, which no peer
	 * sends that has not said that it knows selective repeat.
	 */
	if (ib_psn_diff(pkt->psn, le32_to_cpu(t->sqc->max_psn)) >= 0 ||
	    (sr_has_bitmap(pkt) && !sr_on(t))) {
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
		return;
	}
	if (sr_deals_with(t, pkt))
		sr_comp_rx(t, pkt);
	else if (pkt->op->flags & IB_F_ANSWERED)
		own_response(t, pkt);
	else
		ack_response(t, pkt);
}
