// SPDX-License-Identifier: GPL-2.0
/*
 * Requester: messages that were sent. What completes them, what of them is kept until then,
 * going back to them, and the timer that does so. req.c tells of the send queue's indices.
 */
#include "cc.h"
#include "sr.h"

/* --- completions --- */

static void req_cqe(struct turn *t, uint32_t index, enum skua_cqe_status status,
		    enum skua_vendor vendor, uint32_t len)
{
	struct skua_cqe cqe = {
		.byte_len = cpu_to_le32(len),
		.what = le32_encode_bits(index & 0xffff, SKUA_CQE_WQE_INDEX) |
			le32_encode_bits(SKUA_CQE_REQ, SKUA_CQE_OPCODE) |
			le32_encode_bits(status, SKUA_CQE_STATUS),
		.own = le32_encode_bits(vendor, SKUA_CQE_VENDOR),
	};

	post_cqe(t, le32_to_cpu(t->sqc->cfg.cqn), &cqe, false);
}

void req_fail(struct turn *t, uint32_t blocks, enum skua_cqe_status status,
	      enum skua_vendor vendor)
{
	uint32_t ci = le32_to_cpu(t->sqc->ci);
	uint32_t there = le32_to_cpu(t->sqc->pi) - ci;

	engine_settle(t->dev);
	if (!turn_need_sq_rest(t))
		return;
	turn_count(t, SKUA_CNT_REQ_CQE_ERROR);
	dev_log(t->dev, 2, "QP %#x: WQE %u: status %#x, vendor %#x", t->qp->qpn, ci & 0xffff,
		status, vendor);
	t->sqc->first = 0;
	t->sqc->err_status = cpu_to_le32(status | vendor << 8);
	t->sqc->ci = cpu_to_le32(ci + (blocks < there ? blocks : there));
	req_cqe(t, ci, status, vendor, 0);
	qp_error(t->dev, t->qp, t->reliable ? SKUA_QP_ERR : SKUA_QP_SQE, SKUA_QP_EV_COUNT);
}

/* --- messages under way --- */

struct flight req_flight_of(const struct turn *t, const struct wqe *w)
{
	return (struct flight){
		.qpn = t->qp->qpn,
		.incarnation = le32_to_cpu(t->sqc->incarnation),
		.index = w->index,
		.blocks = w->blocks,
		.psns = req_psns(t, w),
		.len = (uint32_t)w->len,
		.op = w->op,
		.signaled = w->flags & SKUA_WQE_F_SIGNALED ||
			    le32_to_cpu(t->sqc->cfg.flags) & SKUA_QP_F_SIG_ALL,
		.kept = op_is_answered(w->op) && w->nsge == 1,
	};
}

void req_first_put(struct turn *t, const struct flight *f)
{
	t->sqc->first_len = cpu_to_le32(f->len);
	t->sqc->first = cpu_to_le16(u32_encode_bits(f->op, SKUA_SQC_FIRST_OP) |
				    u32_encode_bits(f->blocks, SKUA_SQC_FIRST_BLOCKS) |
				    (f->signaled ? SKUA_SQC_FIRST_SIGNALED : 0) |
				    SKUA_SQC_FIRST_KNOWN);
}

/* The context may come from memory of the host: it is believed if it makes sense. */
static bool first_get(const struct turn *t, uint32_t index, struct flight *f)
{
	uint32_t what = le16_to_cpu(t->sqc->first);
	uint32_t blocks = u32_get_bits(what, SKUA_SQC_FIRST_BLOCKS);
	enum skua_wqe_op op = u32_get_bits(what, SKUA_SQC_FIRST_OP);
	uint32_t len = le32_to_cpu(t->sqc->first_len);

	if (!(what & SKUA_SQC_FIRST_KNOWN) || index != le32_to_cpu(t->sqc->ci) || !blocks ||
	    blocks > SKUA_WQE_MAX_BLOCKS || len > 1u << MODEL_LOG_MSG)
		return false;
	*f = (struct flight){
		.qpn = t->qp->qpn,
		.incarnation = le32_to_cpu(t->sqc->incarnation),
		.index = index,
		.blocks = blocks,
		.psns = op_is_local(op) ? 0 : psns_of(len, t->mtu),
		.len = len,
		.op = op,
		.signaled = what & SKUA_SQC_FIRST_SIGNALED,
	};
	return true;
}

enum skua_vendor req_flight_at(struct turn *t, uint32_t index, struct flight *f)
{
	struct engine *e = t->dev->engine;
	enum skua_vendor err;

	if (first_get(t, index, f))
		return SKUA_VENDOR_NONE;
	if (flight_get(e, t->qp->qpn, le32_to_cpu(t->sqc->incarnation), index, f))
		return SKUA_VENDOR_NONE;
	turn_count(t, SKUA_CNT_INFLIGHT_MISS);
	turn_count(t, SKUA_CNT_WQE_REFETCH);
	err = wqe_fetch(t->dev, t->qp, index, &e->wqe);
	f->blocks = e->wqe.blocks;
	if (err)
		return SKUA_VENDOR_WQE_CHANGED;
	*f = req_flight_of(t, &e->wqe);
	flight_put(e, f, &e->wqe);
	return SKUA_VENDOR_NONE;
}

enum skua_vendor req_flight(struct turn *t, struct flight *f)
{
	return req_flight_at(t, le32_to_cpu(t->sqc->ci), f);
}

/* Times are compared several times for each packet that comes, with one answer for all. */
bool req_first_is_read(struct turn *t)
{
	uint32_t ci = le32_to_cpu(t->sqc->ci);
	struct flight f;

	if (!t->first_known || t->first_index != ci) {
		if (req_flight(t, &f))
			return false;
		t->first_known = true;
		t->first_index = ci;
		t->first_op = f.op;
	}
	return t->first_op == SKUA_WQE_READ;
}

bool req_complete(struct turn *t, const struct flight *f)
{
	uint32_t ci = le32_to_cpu(t->sqc->ci);
	uint32_t hi = le32_to_cpu(t->sqc->hi);
	uint32_t end = psn_add(le32_to_cpu(t->sqc->ci_psn), f->psns);

	/* No message became one without packets, and many of them. */
	if (f->blocks > hi - ci || (!f->psns && !t->sqc->local) ||
	    (f->blocks == hi - ci && end != le32_to_cpu(t->sqc->hi_psn))) {
		req_fail(t, f->blocks, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_CHANGED);
		return false;
	}
	train_completed(t, end);
	t->sqc->ci = cpu_to_le32(ci + f->blocks);
	t->sqc->ci_psn = cpu_to_le32(end);
	if (f->psns)
		t->sqc->ci_ssn = cpu_to_le32(ssn_after(le32_to_cpu(t->sqc->ci_ssn), f->op, f->psns));
	if (sqc_is(t, SKUA_SQC_CI_SEQ))
		sr_follow_ci(t, f);
	t->sqc->first = 0;
	if (!f->psns)
		t->sqc->local = cpu_to_le16(le16_to_cpu(t->sqc->local) - 1);
	if (f->signaled)
		req_cqe(t, ci, SKUA_CQE_OK, SKUA_VENDOR_NONE,
			f->op == SKUA_WQE_READ || op_is_atomic(f->op) ? f->len : 0);
	return qp_state(t->qp) != SKUA_QP_ERR;
}

/* --- going back --- */

void req_restore_pin(struct turn *t)
{
	struct skua_sqc *s = t->sqc;

	if (!sqc_is(t, SKUA_SQC_HI_PINNED))
		return;
	s->cur_op = s->hi_op;
	s->cur_len = s->hi_len;
	s->cur_va = s->hi_va;
	s->cur_rkey = s->hi_rkey;
	sqc_set(t, SKUA_SQC_PINNED, true);
	sqc_set(t, SKUA_SQC_HI_PINNED, false);
}

/* Continue at una_psn, which is in the WQE at ci, whether that is back or ahead. */
static void reposition(struct turn *t)
{
	struct skua_sqc *s = t->sqc;
	uint64_t sent;

	if (sr_set_up(s) && !sr_know_ci(t))
		return;
	if (s->cur == s->hi && sqc_is(t, SKUA_SQC_PINNED)) {
		s->hi_op = s->cur_op;
		s->hi_len = s->cur_len;
		s->hi_va = s->cur_va;
		s->hi_rkey = s->cur_rkey;
		sqc_set(t, SKUA_SQC_HI_PINNED, true);
	}
	sqc_set(t, SKUA_SQC_PINNED, false);
	s->cur = s->ci;
	s->cur_psn = s->ci_psn;
	s->ssn = s->ci_ssn;
	if (sr_set_up(s)) {
		s->recv_seq = s->ci_recv_seq;
		s->rr_seq = s->ci_rr_seq;
		/* What was sent before that is not looked up. */
		if (t->transport == IB_TRANSPORT_XRC && turn_need_sq_rest(t))
			s->run = 0;
	}
	s->next_psn = s->una_psn;
	sent = (uint64_t)psn_sub(le32_to_cpu(s->una_psn), le32_to_cpu(s->ci_psn)) * t->mtu;
	s->cur_sent = cpu_to_le32(sent > UINT32_MAX ? UINT32_MAX : (uint32_t)sent);
	s->rd_outstanding = 0;
	if (s->cur == s->hi)
		req_restore_pin(t);
}

/*
 * WQEs without packets at ci. Those that going back has not come past again are not
 * gone through twice.
 */
void req_complete_local(struct turn *t)
{
	struct flight f;

	while (t->sqc->local && t->sqc->ci != t->sqc->hi) {
		enum skua_vendor err = req_flight(t, &f);

		if (err)
			req_fail(t, f.blocks, SKUA_CQE_LOC_QP_OP_ERR, err);
		if (err || f.psns || !req_complete(t, &f))
			break;
	}
	if ((int32_t)(le32_to_cpu(t->sqc->ci) - le32_to_cpu(t->sqc->cur)) > 0 &&
	    qp_state(t->qp) != SKUA_QP_ERR)
		reposition(t);
}

void req_go_back(struct turn *t)
{
	reposition(t);
	if (qp_state(t->qp) == SKUA_QP_ERR)
		return;
	if (cc_on(t))
		cc_note_again(t);
	t->sqc->ack_deadline = 0;
	sqc_set(t, SKUA_SQC_IN_RECOVERY, true);
	sched_kick(t->dev, t->qp->qpn);
}

/*
 * While the queue waits for a page there is no hurry. When the peer's QP has ended, only what is
 * on its way is waited for.
 */
static uint64_t ack_timeout(struct turn *t)
{
	uint32_t code = le32_get_bits(t->sqc->attr.retry, SKUA_ATTR_ACK_TIMEOUT);

	if (comp_peer_nak(t) && turn_need_sq_rest(t))
		return t->now + sr_last_time(t);
	return code && !fault_req_waits(t) ? t->now + (4096ull << code) : 0;
}

void req_arm_ack(struct turn *t)
{
	if (!t->sqc->ack_deadline)
		t->sqc->ack_deadline = cpu_to_le64(ack_timeout(t));
}

void req_unblock(struct turn *t)
{
	struct skua_sqc *s = t->sqc;

	s->ack_deadline = cpu_to_le64(s->next_psn == s->una_psn ? 0 : ack_timeout(t));
	if (sr_on(t))
		sr_lost_all(t);
}

void req_kick(struct turn *t)
{
	/* In SQD it tells that it is drained. */
	if (t->sqc->cur != t->sqc->pi || sqc_is(t, SKUA_SQC_LOSS) ||
	    qp_state(t->qp) == SKUA_QP_SQD)
		sched_kick(t->dev, t->qp->qpn);
}

void req_progress(struct turn *t)
{
	struct skua_sqc *s = t->sqc;

	s->retry_left = (uint8_t)le32_get_bits(s->attr.retry, SKUA_ATTR_RETRY_CNT);
	s->rnr_left = (uint8_t)le32_get_bits(s->attr.retry, SKUA_ATTR_RNR_RETRY);
	sqc_set(t, SKUA_SQC_IN_RECOVERY, false);
	if (ib_psn_diff(le32_to_cpu(s->una_psn), le32_to_cpu(s->next_psn)) > 0 ||
	    (int32_t)(le32_to_cpu(s->ci) - le32_to_cpu(s->cur)) > 0)
		reposition(t);
	if (qp_state(t->qp) == SKUA_QP_ERR)
		return;
	s->ack_deadline = cpu_to_le64(s->next_psn == s->una_psn ? 0 : ack_timeout(t));
	if (sr_on(t))
		sr_progress(t);
	if (cc_on(t))
		cc_progress(t);
	if (s->local)
		req_complete_local(t);
	req_kick(t);
}

void req_start(struct turn *t)
{
	struct skua_sqc *s = t->sqc;

	s->next_psn = s->attr.sq_psn;
	s->max_psn = s->attr.sq_psn;
	s->una_psn = s->attr.sq_psn;
	s->cur_psn = s->attr.sq_psn;
	s->ci_psn = s->attr.sq_psn;
	s->hi_psn = s->attr.sq_psn;
	s->cur = s->ci;
	s->hi = s->ci;
	/* The first message makes the peer's MSN 1. */
	s->ssn = cpu_to_le32(1);
	s->ci_ssn = s->ssn;
	s->retry_left = (uint8_t)le32_get_bits(s->attr.retry, SKUA_ATTR_RETRY_CNT);
	s->rnr_left = (uint8_t)le32_get_bits(s->attr.retry, SKUA_ATTR_RNR_RETRY);
	sr_req_start(t);
	cc_start(t);
}

void req_resume(struct turn *t)
{
	struct skua_sqc *s = t->sqc;

	s->max_psn = s->next_psn;
	s->una_psn = s->next_psn;
	s->cur_psn = s->next_psn;
	s->ci_psn = s->next_psn;
	s->hi_psn = s->next_psn;
	s->cur_sent = 0;
	s->first = 0;
	s->local = 0;
}
