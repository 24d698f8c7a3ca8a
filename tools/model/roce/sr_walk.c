// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: the walk from the message at ci on to the one that a PSN belongs
 * to. It reads the cache of messages in flight, or the ring, which the guest may have changed.
 */
#include "sr.h"

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

/*
 * On to the message that @psn belongs to. False: the ring does not say which that is. What was
 * sent ends at hi, or amid the message there.
 */
bool sr_walk_to(struct turn *t, struct sr_walk *w, uint32_t psn)
{
	uint32_t hi = le32_to_cpu(t->sqc->hi);

	while (w->index != hi || t->sqc->hi_psn != t->sqc->max_psn) {
		if (!w->ready && req_flight_at(t, w->index, &w->f))
			return false;
		w->ready = true;
		if (ib_psn_diff(psn, w->psn) < 0)
			return false;
		if (psn_sub(psn, w->psn) < w->f.psns)
			return true;
		if (w->f.blocks > hi - w->index || !w->f.blocks || ++w->wqes > SR_WQES)
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
