// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: the marks that divide the holes (sr_req.c) follow una_psn, and
 * stay within what was sent.
 */
#include "sr_lrc.h"

/*
 * No mark is beyond what was sent, which is no more than there are bits for, unless the host
 * has changed it: to walk up to there would hold up all others.
 */
static uint32_t marks_end(const struct turn *t)
{
	uint32_t end = max_psn(t);

	return psn_sub(end, una(t)) > SKUA_LRC_PSNS ? psn_add(una(t), SKUA_LRC_PSNS) : end;
}

/*
 * Are the marks between una_psn and @end? For most packets they are, and this takes no branch. That
 * @seen is not before @cum is not looked at: who raises @cum raises both.
 */
static bool marks_fit(const struct turn *t, const struct skua_lrc *lrc, uint32_t end)
{
	const uint32_t from = una(t), most = psn_sub(end, from);
	const uint32_t again = psn_sub(le32_to_cpu(lrc->again), from);
	const uint32_t again_end = psn_sub(le32_to_cpu(lrc->again_end), from);
	const __le32 marks[] = {
		lrc->cum, lrc->top, lrc->seen, lrc->lost, lrc->next, lrc->mark_end, lrc->order_end,
		lrc->filled,
	};
	/* The top bit tells of a difference below 0. */
	uint32_t out = (again_end - again) | (most - again_end);

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		out |= most - psn_sub(le32_to_cpu(marks[i]), from);
	return !(out >> 31) && ib_psn_diff(le32_to_cpu(lrc->hole_top), end) <= 0;
}

static void bound_marks(struct skua_lrc *lrc, uint32_t end)
{
	lower(&lrc->cum, end);
	lower(&lrc->top, end);
	lower(&lrc->seen, end);
	lower(&lrc->lost, end);
	lower(&lrc->next, end);
	lower(&lrc->again, end);
	lower(&lrc->again_end, end);
	lower(&lrc->mark_end, end);
	lower(&lrc->hole_top, end);
	lower(&lrc->order_end, end);
	lower(&lrc->filled, end);
}

void sr_follow_una(struct turn *t, struct skua_lrc *lrc)
{
	const uint32_t end = marks_end(t);

	if (marks_fit(t, lrc, end))
		return;
	raise(&lrc->cum, una(t));
	raise(&lrc->top, una(t));
	raise(&lrc->seen, le32_to_cpu(lrc->cum));
	raise(&lrc->lost, una(t));
	raise(&lrc->next, una(t));
	raise(&lrc->again, una(t));
	if (ib_psn_diff(le32_to_cpu(lrc->again), le32_to_cpu(lrc->again_end)) > 0)
		lrc->again_end = lrc->again;
	raise(&lrc->mark_end, una(t));
	raise(&lrc->order_end, una(t));
	raise(&lrc->filled, una(t));
	bound_marks(lrc, end);
}

bool sr_in_order(const struct turn *t, const struct skua_lrc *lrc)
{
	return lrc->order_end == lrc->next || lrc->order_end == t->sqc->una_psn;
}

void sr_pass_arrived(const struct turn *t, struct skua_lrc *lrc)
{
	uint32_t psn = le32_to_cpu(lrc->next), lost = le32_to_cpu(lrc->lost);
	const bool order = sr_in_order(t, lrc);

	while (ib_psn_diff(lost, psn) > 0 && arrived(lrc, psn) && psn != le32_to_cpu(lrc->cum))
		psn = psn_add(psn, 1);
	lrc->next = cpu_to_le32(psn);
	if (order)
		lrc->order_end = lrc->next;
}
