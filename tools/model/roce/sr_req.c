// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: what of that which was sent has arrived, what of the rest
 * counts as lost, and sending that again.
 *
 * The send queue's own position (cur, next_psn) never goes back for a loss. Beside it the
 * LRC knows, of the PSNs from una_psn on, which have arrived. The others below @seen are
 * holes. Marks divide them:
 *
 *   una ......... again ... again_end ......... next ......... lost ........ seen
 *                 sent again, lost again        to be sent     too young to
 *                 since: once more              again          be lost
 *
 * What was sent again and is lost once more is found by @mark_psn: packets which were sent
 * for the first time after it arrive, and holes before @mark_end are still there.
 */
#include <string.h>

#include "cc.h"
#include "sr.h"

/* A hole counts as lost when something has arrived this part of the window behind it. */
#define SR_REORDER(t)	(sr_window(t) / 4)
/* Shortest time, in ns, until a hole counts as lost; and until an answer is asked for. */
#define SR_WAIT_MIN	20000
#define SR_PROBE_MIN	1000000
/* The round trip of one packet of so many is measured. */
#define SR_RTT_EVERY	32
/* While no round trip was measured. */
#define SR_RTT_DEFAULT	1000000
/* The time doubles so often at most while nothing arrives. */
#define SR_BACKOFF_MAX	6

static uint32_t una(const struct turn *t)
{
	return le32_to_cpu(t->sqc->una_psn);
}

static uint32_t max_psn(const struct turn *t)
{
	return le32_to_cpu(t->sqc->max_psn);
}

/* --- PSNs that have arrived --- */

static bool arrived(const struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t bit = psn % SKUA_LRC_PSNS;

	return le64_to_cpu(lrc->arrived[bit / 64]) >> bit % 64 & 1;
}

static void set_arrived(struct skua_lrc *lrc, uint32_t psn, bool is)
{
	uint32_t bit = psn % SKUA_LRC_PSNS;
	const __le64 mask = cpu_to_le64(1ull << bit % 64);

	if (is)
		lrc->arrived[bit / 64] |= mask;
	else
		lrc->arrived[bit / 64] &= ~mask;
}

static void raise(__le32 *psn, uint32_t to)
{
	if (ib_psn_diff(to, le32_to_cpu(*psn)) > 0)
		*psn = cpu_to_le32(to);
}

static void mark(struct skua_lrc *lrc, uint32_t psn)
{
	set_arrived(lrc, psn, true);
	raise(&lrc->top, psn_add(psn, 1));
	raise(&lrc->seen, psn_add(psn, 1));
}

/* --- entering and leaving --- */

/* The LRC, with the requester's part in use from now on. */
static struct skua_lrc *enter(struct turn *t)
{
	const __le32 here = t->sqc->una_psn;
	struct skua_lrc *lrc;

	if (!turn_need_sq_rest(t) || !sr_know_ci(t))
		return NULL;
	lrc = sr_lrc(t);
	if (!lrc || sr_in_loss(t))
		return lrc;
	memset(lrc->arrived, 0, sizeof(lrc->arrived));
	lrc->cum = here;
	lrc->top = here;
	lrc->seen = here;
	lrc->lost = here;
	lrc->next = here;
	lrc->again = here;
	lrc->again_end = here;
	lrc->mark_end = here;
	lrc->hole_time = 0;
	lrc->probes = 0;
	lrc->rr_held = 0;
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_LOSS);
	/*
	 * What is sent again does not measure a round trip; but the first one is not given up,
	 * or a path that is longer than the guess would never be known.
	 */
	if (t->sqc->srtt)
		t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_RTT);
	if (cc_on(t))
		cc_note_again(t);
	return lrc;
}

/* --- time --- */

static bool timer_runs(const struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_SR_TIMER;
}

/*
 * Are these packets to be measured? The words for that are not among the hot ones, so that
 * not each of them is.
 */
static bool wants_rtt(struct turn *t, uint32_t psn, uint32_t psns)
{
	if (sr_in_loss(t) || t->sqc->max_psn != cpu_to_le32(psn_add(psn, psns)))
		return false;
	if (t->sqc->valid & cpu_to_le32(SKUA_SQC_RTT))
		return turn_need_sq_rest(t) && !t->sqc->rtt_time;
	return (psn + psns - 1) / SR_RTT_EVERY != (psn - 1) / SR_RTT_EVERY;
}

void sr_note_sent(struct turn *t, uint32_t psn, uint32_t psns)
{
	struct skua_sqc *s = t->sqc;

	/* The last packet before an answer is asked for would do better; it is not known here. */
	if (wants_rtt(t, psn, psns) && turn_need_sq_rest(t)) {
		s->rtt_psn = cpu_to_le32(psn);
		s->rtt_time = cpu_to_le64(t->now);
		s->valid |= cpu_to_le32(SKUA_SQC_RTT);
	}
	if (!timer_runs(t))
		sr_progress(t);
}

/* Jacobson's estimate. */
static void measure(struct skua_sqc *s, uint64_t took)
{
	uint32_t rtt = took < UINT32_MAX / 8 ? (uint32_t)took + 1 : UINT32_MAX / 8;
	uint32_t srtt = le32_to_cpu(s->srtt), var = le32_to_cpu(s->rttvar);
	uint32_t off = rtt > srtt ? rtt - srtt : srtt - rtt;

	if (!srtt) {
		s->srtt = cpu_to_le32(rtt);
		s->rttvar = cpu_to_le32(rtt / 2);
		return;
	}
	s->rttvar = cpu_to_le32(var - var / 4 + off / 4);
	s->srtt = cpu_to_le32(srtt - srtt / 8 + rtt / 8);
}

/* After so long what has not arrived is lost. */
uint64_t sr_wait_time(const struct turn *t)
{
	uint64_t srtt = le32_to_cpu(t->sqc->srtt);
	uint64_t wait = srtt ? 2 * srtt + 4ull * le32_to_cpu(t->sqc->rttvar) : SR_RTT_DEFAULT;

	return wait > SR_WAIT_MIN ? wait : SR_WAIT_MIN;
}

static uint64_t probe_time(const struct turn *t)
{
	uint64_t wait = 2 * sr_wait_time(t);

	return wait > SR_PROBE_MIN ? wait : SR_PROBE_MIN;
}

void sr_progress(struct turn *t)
{
	struct skua_sqc *s = t->sqc;

	if (s->valid & cpu_to_le32(SKUA_SQC_RTT) && turn_need_sq_rest(t) && s->rtt_time &&
	    ib_psn_diff(una(t), le32_to_cpu(s->rtt_psn)) > 0) {
		measure(s, t->now - le64_to_cpu(s->rtt_time));
		s->valid &= ~cpu_to_le32(SKUA_SQC_RTT);
	}
	if (sr_in_loss(t))
		return;
	s->valid &= ~cpu_to_le32(SKUA_SQC_SR_TIMER | SKUA_SQC_SR_LATE);
	/* How long to wait longer is looked up when that is over. */
	if (una(t) != max_psn(t))
		sr_set_deadline(t, t->now + SR_PROBE_MIN);
}

static uint64_t backed_off(const struct turn *t, const struct skua_lrc *lrc)
{
	uint32_t n = le32_to_cpu(lrc->probes);

	return sr_wait_time(t) << (n < SR_BACKOFF_MAX ? n : SR_BACKOFF_MAX);
}

/* Are packets that were sent again waited for? */
static bool mark_waits(const struct turn *t, const struct skua_lrc *lrc)
{
	return ib_psn_diff(le32_to_cpu(lrc->mark_end), una(t)) > 0;
}

static bool walking(const struct skua_lrc *lrc)
{
	return lrc->again != lrc->again_end;
}

static void set_deadline(struct turn *t, const struct skua_lrc *lrc)
{
	uint64_t wait = backed_off(t, lrc), hole = le64_to_cpu(lrc->hole_time);
	uint64_t at = t->now + (wait > probe_time(t) ? wait : probe_time(t));

	if (hole && hole + wait < at)
		at = hole + wait;
	if (mark_waits(t, lrc) && le64_to_cpu(lrc->mark_time) + wait < at)
		at = le64_to_cpu(lrc->mark_time) + wait;
	/* One that is past already was looked at just now. */
	sr_set_deadline(t, at > t->now ? at : t->now + wait);
}

/* --- what is lost --- */

static void lower(__le32 *psn, uint32_t to)
{
	if (ib_psn_diff(le32_to_cpu(*psn), to) > 0)
		*psn = cpu_to_le32(to);
}

/*
 * No mark is beyond what was sent, which is no more than there are bits for, unless the host
 * has changed it: to walk up to there would hold up all others.
 */
static void bound_marks(struct turn *t, struct skua_lrc *lrc)
{
	uint32_t end = max_psn(t);

	if (psn_sub(end, una(t)) > SKUA_LRC_PSNS)
		end = psn_add(una(t), SKUA_LRC_PSNS);
	lower(&lrc->cum, end);
	lower(&lrc->top, end);
	lower(&lrc->seen, end);
	lower(&lrc->lost, end);
	lower(&lrc->next, end);
	lower(&lrc->again, end);
	lower(&lrc->again_end, end);
	lower(&lrc->mark_end, end);
	lower(&lrc->hole_top, end);
}

static void follow_una(struct turn *t, struct skua_lrc *lrc)
{
	raise(&lrc->cum, una(t));
	raise(&lrc->top, una(t));
	raise(&lrc->seen, le32_to_cpu(lrc->cum));
	raise(&lrc->lost, una(t));
	raise(&lrc->next, una(t));
	raise(&lrc->again, una(t));
	if (ib_psn_diff(le32_to_cpu(lrc->again), le32_to_cpu(lrc->again_end)) > 0)
		lrc->again_end = lrc->again;
	raise(&lrc->mark_end, una(t));
	bound_marks(t, lrc);
}

/* From now on it is waited for what was sent again. */
static void set_mark(const struct turn *t, struct skua_lrc *lrc)
{
	lrc->mark_end = lrc->next;
	raise(&lrc->mark_end, le32_to_cpu(lrc->again_end));
	lrc->mark_psn = t->sqc->max_psn;
	lrc->mark_time = cpu_to_le64(t->now);
}

/* Is there anything to send? */
static bool wants(const struct skua_lrc *lrc)
{
	return walking(lrc) || ib_psn_diff(le32_to_cpu(lrc->lost), le32_to_cpu(lrc->next)) > 0;
}

/* What was sent again, and is still missing, is to be sent once more. */
static void lost_again(struct turn *t, struct skua_lrc *lrc)
{
	if (walking(lrc))
		return;
	lrc->again = cpu_to_le32(una(t));
	lrc->again_end = lrc->mark_end;
	lrc->mark_end = cpu_to_le32(una(t));
}

/* The holes that there are now grow old from now on. */
static void set_holes(const struct turn *t, struct skua_lrc *lrc)
{
	lrc->hole_time = cpu_to_le64(t->now);
	lrc->hole_top = lrc->seen;
}

/* Take a new look at the marks after something came, or after a time. */
static void judge(struct turn *t, struct skua_lrc *lrc)
{
	uint32_t top, far;

	follow_una(t, lrc);
	top = le32_to_cpu(lrc->top);
	far = psn_sub(top, una(t));
	if (far > SR_REORDER(t))
		raise(&lrc->lost, psn_sub(top, SR_REORDER(t)));
	if (mark_waits(t, lrc) &&
	    ib_psn_diff(top, psn_add(le32_to_cpu(lrc->mark_psn), SR_REORDER(t))) > 0)
		lost_again(t, lrc);
	/* Holes that were sent again while others were waited for. */
	if (!mark_waits(t, lrc) && !wants(lrc))
		set_mark(t, lrc);
	if (lrc->seen == t->sqc->una_psn) {
		lrc->hole_time = 0;
	} else if (!lrc->hole_time ||
		   ib_psn_diff(una(t), le32_to_cpu(lrc->hole_top)) >= 0) {
		set_holes(t, lrc);
	}
}

/* Nothing is missing that is known of: all is as without a loss. Gives the LRC back. */
static void leave_or_wait(struct turn *t, struct skua_lrc *lrc)
{
	if (qp_state(t->qp) == SKUA_QP_ERR) {
		sr_lrc_put(t, lrc, true);
		return;
	}
	if (lrc->seen == t->sqc->una_psn && !walking(lrc)) {
		t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_LOSS);
		if (t->sqc->cur == t->sqc->hi)
			t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_CI_SEQ);
		sr_progress(t);
	} else {
		set_deadline(t, lrc);
		if (wants(lrc))
			sched_kick(t->dev, t->qp->qpn);
	}
	sr_lrc_put(t, lrc, true);
}

void sr_lost_all(struct turn *t)
{
	struct skua_lrc *lrc;

	if (sr_onload(t->sqc)) {
		sr_onload_back(t);
		return;
	}
	lrc = enter(t);
	if (!lrc)
		return;
	follow_una(t, lrc);
	lrc->again = t->sqc->una_psn;
	lrc->again_end = t->sqc->max_psn;
	lrc->mark_end = t->sqc->una_psn;
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_IN_RECOVERY);
	/* It runs again from when they are sent. */
	t->sqc->ack_deadline = 0;
	leave_or_wait(t, lrc);
}

/* Nothing came for long: ask with the last packet. */
static void probe(struct turn *t, struct skua_lrc *lrc)
{
	if (walking(lrc) || una(t) == max_psn(t))
		return;
	turn_count(t, SKUA_CNT_TX_PROBE);
	lrc->again_end = t->sqc->max_psn;
	lrc->again = cpu_to_le32(psn_sub(max_psn(t), 1));
}

/* Nothing was known to be missing, and it was waited for the shortest time only? */
static bool probe_is_early(struct turn *t)
{
	if (sr_in_loss(t))
		return false;
	if (!turn_need_sq_rest(t))
		return true;
	if (t->sqc->valid & cpu_to_le32(SKUA_SQC_SR_LATE) || probe_time(t) <= SR_PROBE_MIN)
		return false;
	sr_set_deadline(t, t->now + probe_time(t) - SR_PROBE_MIN);
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_SR_LATE);
	return true;
}

void sr_req_timer(struct turn *t)
{
	struct skua_lrc *lrc;
	uint64_t wait, hole;
	bool late = false;

	if (una(t) == max_psn(t) && !sr_in_loss(t))
		return;
	if (probe_is_early(t))
		return;
	if (sr_onload(t->sqc)) {
		sr_onload_timer(t);
		return;
	}
	lrc = enter(t);
	if (!lrc)
		return;
	judge(t, lrc);
	wait = backed_off(t, lrc);
	hole = le64_to_cpu(lrc->hole_time);
	if (hole && t->now >= hole + wait) {
		raise(&lrc->lost, le32_to_cpu(lrc->hole_top));
		set_holes(t, lrc);
		late = true;
	}
	if (mark_waits(t, lrc) && t->now >= le64_to_cpu(lrc->mark_time) + wait) {
		lost_again(t, lrc);
		late = true;
	}
	if (!hole && !late)
		probe(t, lrc);
	lrc->probes = cpu_to_le32(le32_to_cpu(lrc->probes) + 1);
	leave_or_wait(t, lrc);
}

/* --- messages by PSN --- */

struct sr_walk sr_walk_start(const struct turn *t)
{
	return (struct sr_walk){
		.index = le32_to_cpu(t->sqc->ci),
		.psn = le32_to_cpu(t->sqc->ci_psn),
		.ssn = le32_to_cpu(t->sqc->ci_ssn),
		.recv_seq = le32_to_cpu(t->sqc->ci_recv_seq),
		.rr_seq = le32_to_cpu(t->sqc->ci_rr_seq),
	};
}

/* On to the message that @psn belongs to. False: the ring does not say which that is. */
bool sr_walk_to(struct turn *t, struct sr_walk *w, uint32_t psn)
{
	uint32_t end = le32_to_cpu(t->sqc->pi);

	while (w->index != end) {
		if (!w->ready && req_flight_at(t, w->index, &w->f))
			return false;
		w->ready = true;
		if (ib_psn_diff(psn, w->psn) < 0)
			return false;
		if (psn_sub(psn, w->psn) < w->f.psns)
			return true;
		if (w->f.blocks > end - w->index || !w->f.blocks)
			return false;
		w->ready = false;
		w->index += w->f.blocks;
		w->psn = psn_add(w->psn, w->f.psns);
		if (!w->f.psns)
			continue;
		w->ssn = msn_add(w->ssn, 1);
		w->recv_seq = recv_seq_after(w->recv_seq, w->f.op);
		w->rr_seq = rr_seq_after(w->rr_seq, w->f.op, w->f.psns);
	}
	return false;
}

/* First PSN of the part of a READ that @psn is of. */
uint32_t sr_part_start(const struct sr_walk *w, uint32_t psn)
{
	return psn_sub(psn, psn_sub(psn, w->psn) % ENGINE_READ_PSNS);
}

/* PSNs of a READ up to the end of the part that @psn is of. */
uint32_t sr_part_end(const struct sr_walk *w, uint32_t psn)
{
	uint32_t end = psn_sub(sr_part_start(w, psn), w->psn) + ENGINE_READ_PSNS;

	return end < w->f.psns ? end : w->f.psns;
}

/* The READ request, atomic ... that @psn belongs to, as a bit of rr_held. */
static uint32_t rr_bit(const struct sr_walk *w, uint32_t psn)
{
	return 1u << (w->rr_seq + psn_sub(psn, w->psn) / ENGINE_READ_PSNS) % 32;
}

/* --- what the peer says --- */

/* The response number @n of @num to the message at ci is there, and all before it. */
static void note_answer(struct turn *t, struct skua_lrc *lrc, uint32_t n, uint32_t num)
{
	uint32_t rr = le32_to_cpu(t->sqc->ci_rr_seq) + n / ENGINE_READ_PSNS;

	if ((n + 1) % ENGINE_READ_PSNS && n + 1 != num)
		return;
	lrc->rr_held &= ~cpu_to_le32(1u << rr % 32);
	comp_answered(t);
}

bool sr_first(struct turn *t, struct flight *f)
{
	enum skua_vendor err = req_flight(t, f);

	/* PSNs and the message at ci are of two minds: what is complete is not known. */
	if (!err && psn_sub(una(t), le32_to_cpu(t->sqc->ci_psn)) > f->psns)
		err = SKUA_VENDOR_WQE_CHANGED;
	if (err)
		req_fail(t, f->blocks, SKUA_CQE_LOC_QP_OP_ERR, err);
	return !err;
}

bool sr_first_done(struct turn *t, const struct flight *f)
{
	if (f->op == SKUA_WQE_READ || op_is_atomic(f->op))
		rlist_drop(&t->dev->engine->lists, t->qp->qpn | LIST_READ);
	return req_complete(t, f);
}

/* Of messages at ci, what is complete. False: the QP is in error. */
static bool advance(struct turn *t, struct skua_lrc *lrc)
{
	const __le32 before = t->sqc->una_psn;
	struct flight f;

	while (una(t) != max_psn(t)) {
		uint32_t start = le32_to_cpu(t->sqc->ci_psn), psn = una(t), end;
		uint32_t cum = le32_to_cpu(lrc->cum);

		if (!sr_first(t, &f))
			return false;
		end = psn_add(start, f.psns);
		for (; psn != end; psn = psn_add(psn, 1)) {
			if (op_is_answered(f.op) ? !arrived(lrc, psn) :
						   ib_psn_diff(cum, psn) <= 0)
				break;
			set_arrived(lrc, psn, false);
			if (op_is_answered(f.op))
				note_answer(t, lrc, psn_sub(psn, start), f.psns);
		}
		t->sqc->una_psn = cpu_to_le32(psn);
		if (psn != end)
			break;
		if (!sr_first_done(t, &f))
			return false;
	}
	if (t->sqc->una_psn != before)
		req_progress(t);
	return qp_state(t->qp) != SKUA_QP_ERR;
}

/* Something new came. */
static void heard(struct skua_lrc *lrc)
{
	lrc->probes = 0;
}

static void take_bitmap(struct turn *t, struct skua_lrc *lrc, uint32_t epsn,
			const struct skua_pkt *pkt)
{
	struct sr_walk w = sr_walk_start(t);
	uint32_t end = sr_bitmap_end(pkt);

	turn_count(t, SKUA_CNT_RX_SACK);
	/* The last one came, and was dropped: it is missing as all before it. */
	if (pkt->se && end) {
		if (ib_psn_diff(psn_add(epsn, end), max_psn(t)) <= 0)
			raise(&lrc->seen, psn_add(epsn, end));
		end--;
	}
	for (uint32_t i = 1; i < end; i++) {
		uint32_t psn = psn_add(epsn, i);

		if (!(pkt->payload[i / 8] >> i % 8 & 1) || ib_psn_diff(psn, una(t)) < 0)
			continue;
		if (ib_psn_diff(psn, max_psn(t)) >= 0 || !sr_walk_to(t, &w, psn))
			break;
		if (!op_is_answered(w.f.op)) {
			if (!arrived(lrc, psn))
				heard(lrc);
			mark(lrc, psn);
			continue;
		}
		/* The request is there, its responses are not. */
		if (w.f.op == SKUA_WQE_READ)
			lrc->rr_held |= cpu_to_le32(rr_bit(&w, psn));
		raise(&lrc->seen, psn_add(psn, 1));
	}
}

static void take_ack(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	uint8_t type = pkt->aeth->syndrome & IB_AETH_TYPE_MASK;
	uint8_t value = pkt->aeth->syndrome & IB_AETH_VALUE_MASK;
	uint32_t epsn = type == IB_AETH_ACK ? psn_add(pkt->psn, 1) : pkt->psn;

	if (ib_psn_diff(epsn, una(t)) < 0)
		return;
	comp_credits(t, pkt->aeth);
	if (ib_psn_diff(epsn, le32_to_cpu(lrc->cum)) > 0) {
		heard(lrc);
		raise(&lrc->cum, epsn);
		raise(&lrc->seen, epsn);
	}
	if (pkt->payload_len)
		take_bitmap(t, lrc, epsn, pkt);
	if (!advance(t, lrc) || type == IB_AETH_ACK || epsn != una(t))
		return;
	if (type == IB_AETH_RNR_NAK)
		comp_rnr_nak(t, value, be24_get(pkt->aeth->msn));
	else if (type == IB_AETH_NAK)
		comp_nak(t, value);
	else
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
}

/* It says that all requests before it were executed. */
static void take_response(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	struct sr_walk w;

	if (ib_psn_diff(pkt->psn, una(t)) < 0)
		return;
	w = sr_walk_start(t);
	if (!sr_walk_to(t, &w, pkt->psn) || !op_is_answered(w.f.op)) {
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
		return;
	}
	raise(&lrc->cum, w.f.op == SKUA_WQE_READ ? sr_part_start(&w, pkt->psn) : w.psn);
	lrc->rr_held &= ~cpu_to_le32(rr_bit(&w, pkt->psn));
	if (!advance(t, lrc))
		return;
	if (pkt->psn == una(t)) {
		heard(lrc);
		comp_expected(t, pkt);
		if (qp_state(t->qp) != SKUA_QP_ERR)
			advance(t, lrc);
	} else if (!arrived(lrc, pkt->psn) && comp_early(t, pkt, &w.f, w.psn)) {
		heard(lrc);
		mark(lrc, pkt->psn);
	}
}

void sr_comp_rx(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_lrc *lrc;

	if (sr_onload(t->sqc)) {
		sr_onload_rx(t, pkt);
		return;
	}
	lrc = enter(t);
	if (!lrc)
		return;
	follow_una(t, lrc);
	if (pkt->op->flags & IB_F_ANSWERED)
		take_response(t, lrc, pkt);
	else
		take_ack(t, lrc, pkt);
	if (qp_state(t->qp) != SKUA_QP_ERR)
		judge(t, lrc);
	leave_or_wait(t, lrc);
}

/* --- sending again --- */

/* Has a response to this part of a READ come? Then the peer has the request. */
static bool read_begun(const struct turn *t, const struct skua_lrc *lrc, const struct sr_walk *w,
		       uint32_t psn)
{
	uint32_t start = sr_part_start(w, psn), stop = psn_add(w->psn, sr_part_end(w, psn));

	if (ib_psn_diff(una(t), start) > 0)
		return true;
	while (start != stop && !arrived(lrc, start))
		start = psn_add(start, 1);
	return start != stop;
}

/* Missing responses from @psn on, up to @end; all of a request that may be lost itself. */
static uint32_t read_run(const struct turn *t, const struct skua_lrc *lrc,
			 const struct sr_walk *w, uint32_t *psn, uint32_t end)
{
	uint32_t start = sr_part_start(w, *psn), stop = sr_part_end(w, *psn), n = 0;

	if (ib_psn_diff(le32_to_cpu(lrc->cum), start) <= 0 && !read_begun(t, lrc, w, start)) {
		*psn = start;
		return stop - psn_sub(start, w->psn);
	}
	stop -= psn_sub(*psn, w->psn);
	while (n < stop && psn_add(*psn, n) != end && !arrived(lrc, psn_add(*psn, n)))
		n++;
	return n;
}

enum sr_hole sr_send_again(struct turn *t, struct sr_walk *w, uint32_t psn, uint32_t n)
{
	struct wqe *wqe = &t->dev->engine->wqe;
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct sge_pos pos = { 0 };
	struct piece p = { .psn = psn, .again = true, .ackreq = true };
	uint32_t left;

	if (wqe_fetch_win(t->dev, t->qp, &t->dev->engine->win, w->index, wqe) ||
	    wqe->op != w->f.op || wqe->len != w->f.len || wqe->blocks != w->f.blocks) {
		if (w->index == le32_to_cpu(t->sqc->ci))
			req_fail(t, w->f.blocks, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_CHANGED);
		return SR_HOLE_WAITS;
	}
	turn_count(t, SKUA_CNT_WQE_REFETCH);
	p.off = (uint64_t)psn_sub(psn, w->psn) * t->mtu;
	left = (uint32_t)(wqe->len - p.off);
	p.len = left < n * t->mtu ? left : n * t->mtu;
	if (w->f.op == SKUA_WQE_READ) {
		p.seq = msn_add(w->rr_seq, psn_sub(psn, w->psn) / ENGINE_READ_PSNS);
		req_put_read(t, wqe, &p);
	} else if (op_is_answered(w->f.op)) {
		err = atomic_put(t, wqe, psn);
	} else {
		p.seq = w->recv_seq;
		err = req_put_data(t, wqe, &pos, &p);
	}
	if (err) {
		err = fault_req(t, err);
		if (err != SKUA_VENDOR_MISS && w->index == le32_to_cpu(t->sqc->ci))
			req_fail(t, w->f.blocks, SKUA_CQE_LOC_PROT_ERR, err);
		return SR_HOLE_WAITS;
	}
	turn_count(t, SKUA_CNT_TX_RETRANS_PKTS);
	req_arm_ack(t);
	t->budget -= (w->f.op == SKUA_WQE_READ ? 0 : p.len) + SKUA_PKT_OVERHEAD;
	return SR_HOLE_SENT;
}

enum sr_hole sr_may_send_again(struct turn *t, const struct sr_walk *w, uint32_t psn)
{
	if (t->budget <= 0 || tx_peer_waits(t))
		return SR_HOLE_BUDGET;
	if (req_limited(t, w->f.op, w->ssn) && psn != una(t))
		return SR_HOLE_WAITS;
	return SR_HOLE_SENT;
}

/*
 * Send what is missing at @psn, and set *@psn behind it. @end: where the holes end. @again: it
 * may have been sent again before.
 */
static enum sr_hole send_hole(struct turn *t, struct skua_lrc *lrc, struct sr_walk *w,
			      uint32_t *psn, uint32_t end)
{
	enum sr_hole h;
	uint32_t n = 1;

	if (w->f.op == SKUA_WQE_READ && le32_to_cpu(lrc->rr_held) & rr_bit(w, *psn) &&
	    ib_psn_diff(le32_to_cpu(lrc->cum), sr_part_start(w, *psn)) <= 0) {
		/* The peer has the request; it is its turn when what is before has come. */
		*psn = psn_add(w->psn, sr_part_end(w, *psn));
		return SR_HOLE_SENT;
	}
	h = sr_may_send_again(t, w, *psn);
	if (h != SR_HOLE_SENT)
		return h;
	if (w->f.op == SKUA_WQE_READ)
		n = read_run(t, lrc, w, psn, end);
	h = sr_send_again(t, w, *psn, n);
	if (h == SR_HOLE_SENT)
		*psn = psn_add(*psn, n);
	return h;
}

/* The holes from *@from up to *@end. *@from follows. */
static enum sr_hole send_holes(struct turn *t, struct skua_lrc *lrc, __le32 *from,
			       uint32_t end)
{
	uint32_t psn = le32_to_cpu(*from);
	struct sr_walk w = sr_walk_start(t);
	enum sr_hole h = SR_HOLE_SENT;

	while (h == SR_HOLE_SENT && ib_psn_diff(end, psn) > 0) {
		if (arrived(lrc, psn) && psn != le32_to_cpu(lrc->cum)) {
			psn = psn_add(psn, 1);
			continue;
		}
		if (!sr_walk_to(t, &w, psn))
			break;
		/* Of what has a response, that came; of the rest, the peer has it. */
		if (op_is_answered(w.f.op) ? arrived(lrc, psn) :
					     ib_psn_diff(psn, le32_to_cpu(lrc->cum)) < 0) {
			psn = psn_add(psn, 1);
			continue;
		}
		h = send_hole(t, lrc, &w, &psn, end);
	}
	*from = cpu_to_le32(psn);
	return h;
}

bool sr_req_run(struct turn *t)
{
	struct skua_lrc *lrc;
	enum sr_hole h;

	if (sr_onload(t->sqc))
		return sr_onload_run(t);
	lrc = enter(t);
	if (!lrc)
		return false;
	follow_una(t, lrc);
	h = send_holes(t, lrc, &lrc->again, le32_to_cpu(lrc->again_end));
	if (h == SR_HOLE_SENT)
		h = send_holes(t, lrc, &lrc->next, le32_to_cpu(lrc->lost));
	if (h == SR_HOLE_SENT && !mark_waits(t, lrc)) {
		set_mark(t, lrc);
		lrc->again_end = lrc->again;
	}
	if (qp_state(t->qp) != SKUA_QP_ERR)
		set_deadline(t, lrc);
	sr_lrc_put(t, lrc, true);
	return h == SR_HOLE_BUDGET;
}

void sr_req_start(struct turn *t)
{
	if (t->reliable && sr_set_up(t->sqc) && !sr_on(t) &&
	    le32_get_bits(t->sqc->attr.ext, SKUA_ATTR_EXT_MODE) == SKUA_EXT_ALWAYS)
		sr_use_window(t, sr_log_window(t));
}
