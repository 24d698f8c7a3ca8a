// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: which responses to READs are missing, and which are still to
 * come.
 *
 * The peer answers READs in their order, and holds those that come early. So of the PSNs
 * of responses behind the furthest one that came none is a hole, as long as the peer has the
 * request: it did not have its turn, or is being answered. It is asked for again only if it is its
 * turn and nothing came for as long as an answer takes. A request that is lost itself is sent
 * again as soon as that is known, and then not before that is lost in turn.
 *
 * So the walks past holes go past responses that are still to come, as if they had asked for them.
 * When one comes and others before it do not, these are holes, which the marks are moved back for.
 */
#include "sr_lrc.h"

/*
 * A response came, and responses before it did not, which were not asked for again while they
 * were still to come.
 */
void sr_read_gap(struct turn *t, struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t top = le32_to_cpu(lrc->top);

	if (ib_psn_diff(psn, top) <= 0 || ib_psn_diff(le32_to_cpu(lrc->next), top) <= 0)
		return;
	lower(&lrc->next, top);
	lower(&lrc->lost, top);
	lower(&lrc->order_end, top);
	lower(&lrc->mark_end, top);
	lower(&lrc->again, top);
	lower(&lrc->again_end, top);
	lrc->hole_time = cpu_to_le64(t->now);
	lrc->hole_top = cpu_to_le32(psn);
}

bool sr_read_begun(const struct turn *t, const struct skua_lrc *lrc, const struct sr_walk *w,
		   uint32_t psn)
{
	uint32_t start = sr_part_start(&w->at, psn), stop = psn_add(w->at.psn, sr_part_end(w, psn));

	if (ib_psn_diff(una(t), start) > 0)
		return true;
	while (start != stop && !arrived(lrc, start))
		start = psn_add(start, 1);
	return start != stop;
}

uint32_t sr_read_run(const struct turn *t, const struct skua_lrc *lrc, const struct sr_walk *w,
		     uint32_t *psn, uint32_t end)
{
	uint32_t start = sr_part_start(&w->at, *psn), stop = sr_part_end(w, *psn), n = 0;

	if (ib_psn_diff(le32_to_cpu(lrc->cum), start) <= 0 && !sr_read_begun(t, lrc, w, start)) {
		*psn = start;
		return stop - psn_sub(start, w->at.psn);
	}
	stop -= psn_sub(*psn, w->at.psn);
	while (n < stop && psn_add(*psn, n) != end && !arrived(lrc, psn_add(*psn, n)))
		n++;
	return n;
}

bool sr_read_to_come(const struct turn *t, const struct skua_lrc *lrc, const struct sr_walk *w,
		     uint32_t psn, bool again, bool quiet)
{
	uint32_t start = sr_part_start(&w->at, psn), top = le32_to_cpu(lrc->top);
	bool turn = ib_psn_diff(start, una(t)) <= 0;
	bool begun = ib_psn_diff(le32_to_cpu(lrc->cum), start) > 0 || sr_read_begun(t, lrc, w, psn);

	if (!begun && !rr_is(lrc, rr_held(rr_number(&w->at, psn))))
		return !again && rr_is(lrc, rr_asked(rr_number(&w->at, psn)));
	if (ib_psn_diff(psn, top) < 0)
		return !begun && !turn;
	return !turn || !again || !quiet || ib_psn_diff(top, una(t)) > 0;
}
