// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: behind a loss most responses come in their order. Each is the one
 * after the last, its payload goes to its place, and nothing follows from it for what is missing.
 * It is taken here, without what sr_req.c does of any packet: marks that would only move past what
 * has come, and a deadline that would move on, can wait until there is more to be seen. So is a
 * response that is expected, while only something behind it is missing.
 */
#include "sr_lrc.h"

/* Is there something to send, or a time over? */
static bool is_due(const struct turn *t, const struct skua_lrc *lrc)
{
	return wants(lrc) || lrc->probes || !lrc->hole_time || sr_deadline(t) <= t->now;
}

/*
 * Does nothing count as lost once @psn, the last so far, has come? The PSN that others are too far
 * behind from now on has come; that at cum may have to again, unless it is @start, the first
 * response to the same request.
 */
static bool none_lost(const struct turn *t, const struct skua_lrc *lrc, uint32_t psn,
		      uint32_t start)
{
	uint32_t distance = sr_distance(t, lrc), far = psn_sub(psn, distance);

	if (psn_sub(psn, una(t)) >= distance &&
	    (!arrived(lrc, far) || (far == le32_to_cpu(lrc->cum) && far != start)))
		return false;
	/* Nothing that was sent again is too far behind. */
	if (ib_psn_diff(le32_to_cpu(lrc->filled), una(t)) > 0)
		return false;
	if (mark_waits(t, lrc))
		return ib_psn_diff(psn, psn_add(le32_to_cpu(lrc->mark_psn), distance)) < 0;
	/* Else it is to be waited for what was sent again while others were waited for. */
	return lrc->next == t->sqc->una_psn;
}

/* The requests before that of the response were executed. True: that completes nothing. */
static bool take_cum(const struct turn *t, struct skua_lrc *lrc, uint32_t psn)
{
	if (ib_psn_diff(psn, le32_to_cpu(lrc->cum)) <= 0)
		return true;
	/* If all before una_psn were, too, the message there waits for a response of its own. */
	if (ib_psn_diff(le32_to_cpu(lrc->cum), una(t)) <= 0)
		return false;
	lrc->cum = cpu_to_le32(psn);
	return true;
}

/* The message of @psn, where a walk ended now if none did before. */
static const struct walk_end *message(struct turn *t, uint32_t psn)
{
	const struct walk_end *m = sr_walk_ended(t, psn);
	struct sr_walk w;

	if (m)
		return m;
	w = sr_walk_start(t);
	return sr_walk_to(t, &w, psn) ? sr_walk_ended(t, psn) : NULL;
}

/*
 * The response that is expected, amid a request, while something behind all that has come is
 * missing. False: nothing was done.
 */
static bool take_next(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt,
		      const struct walk_end *m)
{
	uint32_t next = psn_add(pkt->psn, 1), n = psn_sub(next, m->at.psn);

	/* With a NAK that was kept the QP may end here. */
	if (n % ENGINE_READ_PSNS == 0 || n == m->f.psns || comp_peer_nak(t))
		return false;
	/* Does it reach what is missing, or the end of what was sent again? */
	if (ib_psn_diff(le32_to_cpu(lrc->seen), next) <= 0 ||
	    ib_psn_diff(le32_to_cpu(lrc->hole_top), next) <= 0 ||
	    lrc->mark_end == cpu_to_le32(next))
		return false;
	comp_expected(t, pkt);
	if (una(t) != next)
		return true;
	sr_follow_una(t, lrc);
	/* As long as one comes after the other, those that are still to come are not late. */
	lrc->mark_time = cpu_to_le64(t->now);
	return true;
}

bool sr_early_rx(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	uint32_t psn = pkt->psn, start;
	const struct walk_end *m;

	if (psn != le32_to_cpu(lrc->top) || ib_psn_diff(psn, una(t)) < 0 || is_due(t, lrc) ||
	    sr_measures(t, psn, rr_is(lrc, SKUA_LRC_RR_HELD)))
		return false;
	m = message(t, psn);
	if (!m || !op_is_answered(m->f.op))
		return false;
	start = m->f.op == SKUA_WQE_READ ? sr_part_start(&m->at, psn) : m->at.psn;
	if (!none_lost(t, lrc, psn, start) || !take_cum(t, lrc, start))
		return false;
	if (rr_is(lrc, SKUA_LRC_RR_ASKED))
		rr_answered(lrc, &m->at, &m->f, psn);
	if (psn == una(t))
		return take_next(t, lrc, pkt, m);
	if (!comp_early(t, pkt, &m->f, m->at.psn))
		return true;
	set_arrived(lrc, psn, true);
	lrc->top = cpu_to_le32(psn_add(psn, 1));
	raise(&lrc->seen, psn_add(psn, 1));
	return true;
}
