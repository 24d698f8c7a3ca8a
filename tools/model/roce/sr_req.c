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
#include "sr_lrc.h"

/* The time doubles so often at most while nothing arrives. */
#define SR_BACKOFF_MAX	6

/* Times are kept in these where half a round trip is what matters. */
static uint32_t units(uint64_t ns)
{
	return (uint32_t)(ns >> 10);
}

/* Was what was sent again from @fresh on sent less than half of the shortest round trip ago? */
static bool fresh(const struct turn *t, const struct skua_lrc *lrc)
{
	return units(t->now) - le32_to_cpu(lrc->fresh_time) < units(le32_to_cpu(t->sqc->rtt_min) / 2);
}

/* The hole at @psn is sent for the second time, and so are those behind it later. */
static void note_again(const struct turn *t, struct skua_lrc *lrc, uint32_t psn)
{
	if (fresh(t, lrc))
		return;
	lrc->fresh = cpu_to_le32(psn);
	lrc->fresh_time = cpu_to_le32(units(t->now));
}

/*
 * A PSN came that others went past. It was only late if it had not been sent again, or so soon
 * after that it cannot be the answer to that. Of responses to READs (@answer) it is not known when
 * each was asked for: the walk goes past those that are still to come, and comes back.
 */
static void note_filled(struct turn *t, struct skua_lrc *lrc, uint32_t psn, bool answer)
{
	uint32_t top = le32_to_cpu(lrc->top);
	uint64_t age = 0;

	if (ib_psn_diff(top, psn) <= 0)
		return;
	if (ib_psn_diff(psn, le32_to_cpu(lrc->order_end)) < 0)
		raise(&lrc->filled, psn_add(psn, 1));
	if (ib_psn_diff(psn, le32_to_cpu(lrc->next)) < 0 &&
	    (answer || ib_psn_diff(psn, le32_to_cpu(lrc->fresh)) < 0 || !fresh(t, lrc)))
		return;
	if (lrc->hole_time && ib_psn_diff(psn, le32_to_cpu(lrc->hole_top)) < 0)
		age = t->now - le64_to_cpu(lrc->hole_time);
	sr_late(t, lrc, psn_sub(top, psn), age);
}

static void mark(struct turn *t, struct skua_lrc *lrc, uint32_t psn, bool answer)
{
	note_filled(t, lrc, psn, answer);
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
	sr_calm(t, lrc);
	memset(lrc->arrived, 0, sizeof(lrc->arrived));
	lrc->cum = here;
	lrc->top = here;
	lrc->seen = here;
	lrc->lost = here;
	lrc->next = here;
	lrc->again = here;
	lrc->again_end = here;
	lrc->mark_end = here;
	lrc->order_end = here;
	lrc->filled = here;
	lrc->hole_time = 0;
	lrc->fresh_time = cpu_to_le32(units(t->now) + (1u << 31));
	lrc->probes = 0;
	lrc->rr_held = 0;
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_LOSS);
	if (cc_on(t))
		cc_note_again(t);
	return lrc;
}

/* --- time --- */

static uint64_t backed_off(const struct skua_lrc *lrc, uint64_t wait)
{
	uint32_t n = le32_get_bits(lrc->probes, SKUA_LRC_PROBES);

	return wait << (n < SR_BACKOFF_MAX ? n : SR_BACKOFF_MAX);
}

/* So old does what was sent again become until it counts as lost once more. */
static uint64_t again_time(struct turn *t, const struct skua_lrc *lrc)
{
	return req_first_is_read(t) ? sr_reread_time(t, lrc) : sr_again_time(t);
}

/* Did nothing come for so long? */
static bool quiet(struct turn *t, const struct skua_lrc *lrc)
{
	return t->now >= le64_to_cpu(lrc->mark_time) + again_time(t, lrc);
}

/* The same, and longer the more often nothing came for so long. */
static uint64_t again_wait(struct turn *t, const struct skua_lrc *lrc)
{
	return backed_off(lrc, again_time(t, lrc));
}

/* Are there holes that do not count as lost yet? */
static bool hole_waits(const struct skua_lrc *lrc)
{
	return lrc->hole_time &&
	       ib_psn_diff(le32_to_cpu(lrc->hole_top), le32_to_cpu(lrc->lost)) > 0;
}

static void set_deadline(struct turn *t, const struct skua_lrc *lrc)
{
	uint64_t hole_time = sr_hole_time(t, lrc), hole = le64_to_cpu(lrc->hole_time) + hole_time;
	uint64_t at = UINT64_MAX;

	if (mark_waits(t, lrc))
		at = le64_to_cpu(lrc->mark_time) + again_wait(t, lrc);
	if (hole_waits(lrc) && hole < at)
		at = hole;
	/* An answer is asked for only if nothing is waited for. */
	if (at == UINT64_MAX)
		at = t->now + backed_off(lrc, sr_probe_time(t, lrc));
	/* One that is past already was looked at just now. */
	sr_set_deadline(t, at > t->now ? at : t->now + hole_time);
}

/* --- what is lost --- */

/* From now on it is waited for what was sent again. */
static void set_mark(const struct turn *t, struct skua_lrc *lrc)
{
	lrc->mark_end = lrc->next;
	raise(&lrc->mark_end, le32_to_cpu(lrc->again_end));
	lrc->mark_psn = t->sqc->max_psn;
	lrc->mark_time = cpu_to_le64(t->now);
}

/* What was sent again before @end, and is still missing, is to be sent once more. */
static void lost_again(struct turn *t, struct skua_lrc *lrc, __le32 end)
{
	if (walking(lrc))
		return;
	/* If a probe was due, the peer turned out to have its packet before it was sent. */
	lrc->probes &= ~cpu_to_le32(SKUA_LRC_PROBE_DUE);
	/*
	 * Behind that only the last packet was, as a probe, and nothing tells that others are missing.
	 * The peer does not answer each atomic that is not the next one, and READs wait for their turn.
	 */
	if (ib_psn_diff(le32_to_cpu(lrc->next), le32_to_cpu(end)) < 0 && !t->sqc->rd_outstanding)
		end = lrc->next;
	lrc->again = cpu_to_le32(una(t));
	lrc->again_end = end;
	lrc->mark_end = cpu_to_le32(una(t));
	lrc->order_end = end;
	lrc->filled = t->sqc->una_psn;
}

/* The holes that there are now grow old from now on. */
static void set_holes(const struct turn *t, struct skua_lrc *lrc)
{
	lrc->hole_time = cpu_to_le64(t->now);
	lrc->hole_top = lrc->seen;
}

static bool has_come(const void *lrc, uint32_t psn)
{
	return arrived(lrc, psn);
}

static void measure(struct turn *t, const struct skua_lrc *lrc)
{
	/* What the peer holds waits for what is missing. */
	if (rr_is(lrc, SKUA_LRC_RR_HELD))
		sr_measure_held(t);
	sr_measure(t, has_come, lrc);
}

/* Take a new look at the marks after something came, or after a time. They follow una_psn. */
static void judge(struct turn *t, struct skua_lrc *lrc)
{
	uint32_t top, distance;

	sr_calm(t, lrc);
	distance = sr_distance(t, lrc);
	top = le32_to_cpu(lrc->top);
	if (psn_sub(top, una(t)) > distance)
		raise(&lrc->lost, psn_sub(top, distance));
	sr_pass_arrived(t, lrc);
	if (mark_waits(t, lrc) &&
	    ib_psn_diff(top, psn_add(le32_to_cpu(lrc->mark_psn), distance)) > 0)
		lost_again(t, lrc, lrc->mark_end);
	/* What was sent again later has come, on a path that keeps the order. */
	if (ib_psn_diff(le32_to_cpu(lrc->filled), una(t)) > 0 && sr_keeps_order(lrc))
		lost_again(t, lrc, lrc->filled);
	/* Holes that were sent again while others were waited for. */
	if (!mark_waits(t, lrc) && !wants(lrc))
		set_mark(t, lrc);
	if (lrc->seen == t->sqc->una_psn) {
		lrc->hole_time = 0;
	} else if (!lrc->hole_time ||
		   ib_psn_diff(una(t), le32_to_cpu(lrc->hole_top)) >= 0 ||
		   (!hole_waits(lrc) && ib_psn_diff(le32_to_cpu(lrc->seen),
						    le32_to_cpu(lrc->hole_top)) > 0)) {
		set_holes(t, lrc);
	}
}

/*
 * Who answers nothing is asked less and less often. In the end the count alternates between two
 * numbers that mean the same wait: by whether it is odd ask_again() chooses what it asks for.
 */
static void count_silence(struct skua_lrc *lrc)
{
	bool more = le32_get_bits(lrc->probes, SKUA_LRC_PROBES) <= SR_BACKOFF_MAX;

	lrc->probes = cpu_to_le32(le32_to_cpu(lrc->probes) + (more ? 1 : -1));
}

/*
 * Nothing came for long: ask with the last packet. Its READ may be under way, of which the
 * responses are still to come otherwise: that they did not for so long is known.
 */
static void probe(struct turn *t, struct skua_lrc *lrc)
{
	if (walking(lrc) || una(t) == max_psn(t))
		return;
	lrc->again_end = t->sqc->max_psn;
	lrc->again = cpu_to_le32(psn_sub(max_psn(t), 1));
	lrc->mark_time = 0;
	lrc->probes |= cpu_to_le32(SKUA_LRC_PROBE_DUE);
}

/*
 * There is something to send again, and no time runs for holes or for what was sent again: it waits
 * for credits, which only answers bring.
 */
static bool stuck(const struct turn *t, const struct skua_lrc *lrc)
{
	return wants(lrc) && !hole_waits(lrc) && !mark_waits(t, lrc);
}

/* What all of it waits behind needs no credits, and when it was sent again it may have been lost. */
static void probe_first(struct turn *t, struct skua_lrc *lrc)
{
	if (!walking(lrc))
		lrc->again_end = cpu_to_le32(psn_add(una(t), 1));
	lrc->again = t->sqc->una_psn;
	lrc->mark_time = 0;
	lrc->probes |= cpu_to_le32(SKUA_LRC_PROBE_DUE);
}

/*
 * What was sent again did not come in its time. If READs or atomics are outstanding it is all asked
 * for once more, but only once as long as nothing comes: a path that is only slow would have to carry
 * all responses many times. From then on the first packet that is missing and the last one are asked
 * for by turns.
 */
static void ask_again(struct turn *t, struct skua_lrc *lrc)
{
	uint32_t silent = le32_get_bits(lrc->probes, SKUA_LRC_PROBES);

	if (silent <= 1 || !t->sqc->rd_outstanding || walking(lrc)) {
		lost_again(t, lrc, lrc->mark_end);
		/* It was waited for the answer to a probe. */
		if (!walking(lrc))
			probe(t, lrc);
	} else {
		/* All of it stays asked for, and its time runs anew when this is sent. */
		raise(&lrc->next, le32_to_cpu(lrc->mark_end));
		lrc->mark_end = t->sqc->una_psn;
		if (silent % 2)
			probe_first(t, lrc);
		else
			probe(t, lrc);
	}
	count_silence(lrc);
}

/* What has grown too old. True: that was sent again before. */
static bool judge_times(struct turn *t, struct skua_lrc *lrc)
{
	if (hole_waits(lrc) && t->now >= le64_to_cpu(lrc->hole_time) + sr_hole_time(t, lrc)) {
		raise(&lrc->lost, le32_to_cpu(lrc->hole_top));
		set_holes(t, lrc);
	}
	if (!mark_waits(t, lrc) || t->now < le64_to_cpu(lrc->mark_time) + again_wait(t, lrc))
		return false;
	ask_again(t, lrc);
	return true;
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
	sr_follow_una(t, lrc);
	lrc->again = t->sqc->una_psn;
	lrc->again_end = t->sqc->max_psn;
	lrc->mark_end = t->sqc->una_psn;
	lrc->mark_time = 0;
	lrc->probes &= ~cpu_to_le32(SKUA_LRC_PROBE_DUE);
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_IN_RECOVERY);
	/* It runs again from when they are sent. */
	t->sqc->ack_deadline = 0;
	leave_or_wait(t, lrc);
}

/* Something was sent that may have been so before: is it a probe? */
static void count_probe(struct turn *t, struct skua_lrc *lrc)
{
	if (!(lrc->probes & cpu_to_le32(SKUA_LRC_PROBE_DUE)))
		return;
	lrc->probes &= ~cpu_to_le32(SKUA_LRC_PROBE_DUE);
	turn_count(t, SKUA_CNT_TX_PROBE);
}

void sr_req_timer(struct turn *t)
{
	struct skua_lrc *lrc;

	if (una(t) == max_psn(t) && !sr_in_loss(t))
		return;
	if (sr_probe_is_early(t))
		return;
	if (sr_onload(t->sqc)) {
		sr_onload_timer(t);
		return;
	}
	lrc = enter(t);
	if (!lrc)
		return;
	sr_follow_una(t, lrc);
	measure(t, lrc);
	judge(t, lrc);
	if (stuck(t, lrc)) {
		probe_first(t, lrc);
		count_silence(lrc);
	/* What was sent again has a time of its own. */
	} else if (!judge_times(t, lrc) && !lrc->hole_time && !mark_waits(t, lrc)) {
		probe(t, lrc);
		count_silence(lrc);
	}
	leave_or_wait(t, lrc);
}

/* --- what the peer says --- */

/* Was response number @n of a message the last of a request? */
static bool request_ends(const struct flight *f, uint32_t n)
{
	return (n + 1) % ENGINE_READ_PSNS == 0 || n + 1 == f->psns;
}

/* The request number @rr is answered. Its place is for another one from now on. */
static void forget_request(struct skua_lrc *lrc, const struct flight *f, uint32_t rr)
{
	/* A FLUSH has no number: this is that of the next one. */
	if (rrs_of(f->op, f->psns))
		lrc->rr_held &= ~cpu_to_le32(rr_held(rr) | rr_asked(rr));
}

/* The response number @n to the message at ci is there, and all before it. */
static void note_answer(struct turn *t, struct skua_lrc *lrc, const struct flight *f, uint32_t n)
{
	if (!request_ends(f, n))
		return;
	forget_request(lrc, f, le32_to_cpu(t->sqc->ci_rr_seq) + n / ENGINE_READ_PSNS);
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

	/* What comes early completes nothing. */
	if (!arrived(lrc, una(t)) &&
	    (ib_psn_diff(le32_to_cpu(lrc->cum), una(t)) <= 0 || req_first_is_read(t)))
		return qp_state(t->qp) != SKUA_QP_ERR;
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
			if (!arrived(lrc, psn))
				note_filled(t, lrc, psn, false);
			set_arrived(lrc, psn, false);
			if (op_is_answered(f.op))
				note_answer(t, lrc, &f, psn_sub(psn, start));
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

/*
 * The peer expects @psn by now. If it held requests behind the one that it expected before, and
 * that was not sent again, it was late.
 */
static void take_cum(struct turn *t, struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t cum = le32_to_cpu(lrc->cum);

	if (ib_psn_diff(psn, cum) <= 0)
		return;
	heard(lrc);
	if (lrc->hole_time && ib_psn_diff(cum, le32_to_cpu(lrc->top)) >= 0 &&
	    ib_psn_diff(le32_to_cpu(lrc->hole_top), cum) > 0 &&
	    ib_psn_diff(cum, le32_to_cpu(lrc->next)) >= 0 && !rr_is(lrc, SKUA_LRC_RR_ASKED))
		sr_late(t, lrc, 0, t->now - le64_to_cpu(lrc->hole_time));
	lrc->cum = cpu_to_le32(psn);
	raise(&lrc->seen, psn);
}

/* The bits of a bitmap from @i on, a multiple of 64, up to @end. */
static uint64_t bitmap_word(const struct skua_pkt *pkt, uint32_t i, uint32_t end)
{
	uint32_t n = pkt->payload_len - i / 8;
	__le64 word = 0;

	memcpy(&word, pkt->payload + i / 8, n < sizeof(word) ? n : sizeof(word));
	return le64_to_cpu(word) & (end - i < 64 ? (1ull << (end - i)) - 1 : UINT64_MAX);
}

/*
 * Of @bits, those of PSNs from @from on, take the ones of the message @w, and return them. They are
 * behind @psn, which was taken just now.
 */
static uint64_t take_same(const struct turn *t, struct skua_lrc *lrc, const struct sr_walk *w,
			  uint32_t psn, uint32_t from, uint64_t bits)
{
	uint32_t end = psn_add(w->at.psn, w->f.psns), n;

	/* Behind the last one that has come no hole is filled. */
	if (psn_add(psn, 1) != le32_to_cpu(lrc->top))
		return 0;
	if (ib_psn_diff(end, max_psn(t)) > 0)
		end = max_psn(t);
	n = psn_sub(end, from);
	if (n < 64)
		bits &= (1ull << n) - 1;
	if (!bits)
		return 0;
	set_arrived_word(lrc, from, bits);
	raise(&lrc->top, psn_add(from, 64 - (uint32_t)__builtin_clzll(bits)));
	raise(&lrc->seen, le32_to_cpu(lrc->top));
	return bits;
}

/*
 * Take the lowest of @bits, those of PSNs from @from on which the bitmap has, and those of the same
 * message if that is simple. False: the bitmap has it so that the rest makes no sense.
 */
static bool take_bits(struct turn *t, struct skua_lrc *lrc, struct sr_walk *w, uint32_t from,
		      uint64_t *bits)
{
	uint32_t psn = psn_add(from, (uint32_t)__builtin_ctzll(*bits));

	*bits &= *bits - 1;
	if (ib_psn_diff(psn, una(t)) < 0)
		return true;
	if (ib_psn_diff(psn, max_psn(t)) >= 0 || !sr_walk_to(t, w, psn))
		return false;
	if (!op_is_answered(w->f.op)) {
		heard(lrc);
		mark(t, lrc, psn, false);
		*bits &= ~take_same(t, lrc, w, psn, from, *bits);
		return true;
	}
	/* The request is there, its responses are not. */
	if (w->f.op == SKUA_WQE_READ) {
		lrc->rr_held |= cpu_to_le32(rr_held(rr_number(&w->at, psn)));
		lrc->rr_held &= ~cpu_to_le32(rr_asked(rr_number(&w->at, psn)));
	}
	raise(&lrc->seen, psn_add(psn, 1));
	return true;
}

static void take_bitmap(struct turn *t, struct skua_lrc *lrc, uint32_t epsn,
			const struct skua_pkt *pkt)
{
	struct sr_walk w = sr_walk_start(t);
	uint32_t end = sr_bitmap_end(pkt);
	uint64_t bits;

	turn_count(t, SKUA_CNT_RX_SACK);
	/* The last one came, and was dropped: it is missing as all before it. */
	if (pkt->se && end) {
		if (ib_psn_diff(psn_add(epsn, end), max_psn(t)) <= 0)
			raise(&lrc->seen, psn_add(epsn, end));
		end--;
	}
	for (uint32_t i = 0; i < end; i += 64) {
		bits = bitmap_word(pkt, i, end) & ~arrived_word(lrc, psn_add(epsn, i));
		/* Bit 0 is never set, or else it means nothing. */
		bits &= i ? UINT64_MAX : ~1ull;
		while (bits) {
			if (!take_bits(t, lrc, &w, psn_add(epsn, i), &bits))
				return;
		}
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
	take_cum(t, lrc, epsn);
	/* Before the bitmap: what filled a hole came before what that tells besides. */
	if (!advance(t, lrc))
		return;
	if (pkt->payload_len)
		take_bitmap(t, lrc, epsn, pkt);
	/*
	 * A READ that it has executed before, and refuses when responses are asked for again, is not
	 * kept in mind: @cum is beyond it, so that it would not be known which request failed. Unless
	 * that is the first that is missing, the NAK is what it is to the standard: it implies that
	 * responses before it are lost. These are asked for, and if the peer's QP has ended that
	 * is in vain until all retries are used.
	 */
	if (type == IB_AETH_NAK && epsn != una(t) && epsn == le32_to_cpu(lrc->cum))
		comp_nak_ahead(t, value);
	if (type == IB_AETH_ACK || epsn != una(t))
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
	take_cum(t, lrc, w.f.op == SKUA_WQE_READ ? sr_part_start(&w.at, pkt->psn) : w.at.psn);
	rr_answered(lrc, &w.at, &w.f, pkt->psn);
	if (!advance(t, lrc))
		return;
	if (w.f.op == SKUA_WQE_READ)
		sr_read_gap(t, lrc, pkt->psn);
	/* Amid a READ only what is asked for again begins with a first packet. */
	if (pkt->op->flags & IB_F_FIRST && pkt->psn != sr_part_start(&w.at, pkt->psn))
		sr_measure_answer(t, pkt->psn);
	if (pkt->psn == una(t)) {
		heard(lrc);
		note_filled(t, lrc, pkt->psn, true);
		comp_expected(t, pkt);
		if (una(t) != pkt->psn && request_ends(&w.f, psn_sub(pkt->psn, w.at.psn)))
			forget_request(lrc, &w.f, rr_number(&w.at, pkt->psn));
		if (qp_state(t->qp) != SKUA_QP_ERR)
			advance(t, lrc);
	} else if (!arrived(lrc, pkt->psn) && comp_early(t, pkt, &w.f, w.at.psn)) {
		heard(lrc);
		mark(t, lrc, pkt->psn, true);
	}
}

/* True: something is complete. */
static bool take(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	const __le32 before = t->sqc->una_psn;

	if (pkt->op->flags & IB_F_ANSWERED)
		take_response(t, lrc, pkt);
	else
		take_ack(t, lrc, pkt);
	/* As long as one comes after the other, those that are still to come are not late. */
	if (t->sqc->una_psn != before && ib_psn_diff(le32_to_cpu(lrc->top), una(t)) <= 0)
		lrc->mark_time = cpu_to_le64(t->now);
	comp_nak_kept(t, le32_to_cpu(lrc->cum));
	return t->sqc->una_psn != before;
}

void sr_comp_rx(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_lrc *lrc;
	bool moved;

	if (sr_onload(t->sqc)) {
		sr_onload_rx(t, pkt);
		return;
	}
	lrc = enter(t);
	if (!lrc)
		return;
	if (pkt->op->flags & IB_F_ANSWERED && sr_early_rx(t, lrc, pkt)) {
		sr_lrc_put(t, lrc, true);
		return;
	}
	sr_follow_una(t, lrc);
	moved = take(t, lrc, pkt);
	if (qp_state(t->qp) != SKUA_QP_ERR) {
		measure(t, lrc);
		if (moved)
			sr_follow_una(t, lrc);
		judge(t, lrc);
		judge_times(t, lrc);
	}
	leave_or_wait(t, lrc);
}

/* --- sending again --- */

enum sr_hole sr_send_again(struct turn *t, struct sr_walk *w, uint32_t psn, uint32_t n)
{
	struct wqe *wqe = &t->dev->engine->wqe;
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct sge_pos pos = { 0 };
	struct piece p = { .psn = psn, .again = true, .ackreq = true };
	uint32_t left;

	if (wqe_fetch_win(t->dev, t->qp, &t->dev->engine->win, w->at.index, wqe) ||
	    wqe->op != w->f.op || wqe->len != w->f.len || wqe->blocks != w->f.blocks) {
		if (w->at.index == le32_to_cpu(t->sqc->ci))
			req_fail(t, w->f.blocks, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_CHANGED);
		return SR_HOLE_WAITS;
	}
	turn_count(t, SKUA_CNT_WQE_REFETCH);
	p.off = (uint64_t)psn_sub(psn, w->at.psn) * t->mtu;
	left = (uint32_t)(wqe->len - p.off);
	p.len = left < n * t->mtu ? left : n * t->mtu;
	if (w->f.op == SKUA_WQE_READ) {
		p.seq = msn_add(w->at.rr_seq, psn_sub(psn, w->at.psn) / ENGINE_READ_PSNS);
		req_put_read(t, wqe, &p);
	} else if (op_is_answered(w->f.op)) {
		err = atomic_put(t, wqe, psn);
	} else {
		p.seq = w->at.recv_seq;
		err = req_put_data(t, wqe, &pos, &p);
	}
	if (err) {
		err = fault_req(t, err);
		if (err != SKUA_VENDOR_MISS && w->at.index == le32_to_cpu(t->sqc->ci))
			req_fail(t, w->f.blocks, SKUA_CQE_LOC_PROT_ERR, err);
		return SR_HOLE_WAITS;
	}
	turn_count(t, SKUA_CNT_TX_RETRANS_PKTS);
	sr_measure_again(t, psn, n, w->f.op == SKUA_WQE_READ);
	req_arm_ack(t);
	t->budget -= (w->f.op == SKUA_WQE_READ ? 0 : p.len) + SKUA_PKT_OVERHEAD;
	return SR_HOLE_SENT;
}

enum sr_hole sr_may_send_again(struct turn *t, const struct sr_walk *w, uint32_t psn)
{
	if (t->budget <= 0 || tx_peer_waits(t))
		return SR_HOLE_BUDGET;
	if (req_limited(t, w->f.op, w->at.ssn) && psn != una(t))
		return SR_HOLE_WAITS;
	return SR_HOLE_SENT;
}

/*
 * Send what is missing at @psn, and set *@psn behind it. @end: where the holes end. @again: it
 * may have been sent again before.
 */
static enum sr_hole send_hole(struct turn *t, struct skua_lrc *lrc, struct sr_walk *w,
			      uint32_t *psn, uint32_t end, bool again)
{
	bool read = w->f.op == SKUA_WQE_READ, once;
	enum sr_hole h;
	uint32_t n = 1;

	if (read && sr_read_to_come(t, lrc, w, *psn, again, quiet(t, lrc))) {
		*psn = psn_add(w->at.psn, sr_part_end(w, *psn));
		return SR_HOLE_SENT;
	}
	h = sr_may_send_again(t, w, *psn);
	if (h != SR_HOLE_SENT)
		return h;
	if (read)
		n = sr_read_run(t, lrc, w, psn, end);
	once = ib_psn_diff(*psn, le32_to_cpu(lrc->next)) >= 0;
	if (once)
		note_again(t, lrc, *psn);
	h = sr_send_again(t, w, *psn, n);
	if (h != SR_HOLE_SENT)
		return h;
	if (once && read)
		sr_measure_once(t, *psn);
	if (again)
		count_probe(t, lrc);
	if (read && *psn == sr_part_start(&w->at, *psn) && !sr_read_begun(t, lrc, w, *psn))
		lrc->rr_held |= cpu_to_le32(rr_asked(rr_number(&w->at, *psn)));
	*psn = psn_add(*psn, n);
	return h;
}

/* The holes from *@from up to *@end. *@from follows. */
static enum sr_hole send_holes(struct turn *t, struct skua_lrc *lrc, __le32 *from,
			       uint32_t end)
{
	bool again = from == &lrc->again;
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
		h = send_hole(t, lrc, &w, &psn, end, again);
	}
	*from = cpu_to_le32(psn);
	return h;
}

/* Those that were not sent again yet: behind all others, as long as these were sent in order. */
static enum sr_hole send_holes_first(struct turn *t, struct skua_lrc *lrc)
{
	const bool order = sr_in_order(t, lrc);
	enum sr_hole h = send_holes(t, lrc, &lrc->next, le32_to_cpu(lrc->lost));

	if (order)
		lrc->order_end = lrc->next;
	return h;
}

/* From una_psn on, or only the last packet to learn what came. */
static enum sr_hole send_holes_again(struct turn *t, struct skua_lrc *lrc)
{
	bool all = ib_psn_diff(le32_to_cpu(lrc->again), le32_to_cpu(lrc->next)) <= 0;
	enum sr_hole h = send_holes(t, lrc, &lrc->again, le32_to_cpu(lrc->again_end));

	/* Not twice, and what fills one of these holes was not late. */
	if (all)
		raise(&lrc->next, le32_to_cpu(lrc->again));
	return h;
}

/* Is there nothing to be sent again, and a time for what is waited for? */
static bool only_waits(const struct turn *t, const struct skua_lrc *lrc)
{
	return !wants(lrc) && (mark_waits(t, lrc) || hole_waits(lrc));
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
	if (only_waits(t, lrc)) {
		sr_lrc_put(t, lrc, false);
		return false;
	}
	sr_follow_una(t, lrc);
	h = send_holes_again(t, lrc);
	if (h == SR_HOLE_SENT)
		h = send_holes_first(t, lrc);
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
