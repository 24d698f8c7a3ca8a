// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: behind a loss most responses come in their order. Each is the one
 * after the last, and nothing follows from it for what is missing. judge() of sr_req.c would move
 * marks past what has come, and the deadline on; both can wait until there is more to be seen.
 */
#include "sr_lrc.h"

struct sr_before sr_before(const struct turn *t, const struct skua_lrc *lrc)
{
	return (struct sr_before){
		.una = t->sqc->una_psn,
		.top = lrc->top,
		.srtt = t->sqc->srtt,
		.rttvar = t->sqc->rttvar,
		.patience = lrc->patience,
		.silent = lrc->probes,
	};
}

/* Do all times that were computed before hold, and is none of them over? */
static bool same_times(const struct turn *t, const struct skua_lrc *lrc,
		       const struct sr_before *was)
{
	return !was->silent && was->srtt == t->sqc->srtt && was->rttvar == t->sqc->rttvar &&
	       was->patience == lrc->patience && lrc->hole_time && sr_deadline(t) > t->now;
}

/* The PSN that others are too far behind from now on has come; that at cum may have to again. */
static bool has_passed(const struct turn *t, const struct skua_lrc *lrc, uint32_t distance)
{
	uint32_t psn = psn_sub(le32_to_cpu(lrc->top), distance + 1);

	return psn_sub(le32_to_cpu(lrc->top), una(t)) <= distance ||
	       (arrived(lrc, psn) && psn != le32_to_cpu(lrc->cum));
}

bool sr_goes_on(const struct turn *t, const struct skua_lrc *lrc, const struct sr_before *was)
{
	uint32_t top = le32_to_cpu(lrc->top), distance = sr_distance(t, lrc);

	if (was->una != t->sqc->una_psn || top != psn_add(le32_to_cpu(was->top), 1) ||
	    !same_times(t, lrc, was) || !has_passed(t, lrc, distance))
		return false;
	/* There is nothing to send, and nothing that was sent again is too far behind. */
	if (wants(lrc) || ib_psn_diff(le32_to_cpu(lrc->filled), una(t)) > 0)
		return false;
	if (mark_waits(t, lrc))
		return ib_psn_diff(top, psn_add(le32_to_cpu(lrc->mark_psn), distance)) <= 0;
	/* Else it is to be waited for what was sent again while others were waited for. */
	return lrc->next == t->sqc->una_psn;
}
