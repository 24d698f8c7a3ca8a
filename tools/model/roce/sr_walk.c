// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: the walk to the message that a PSN belongs to, from the one at ci
 * on, or from one where a walk ended before. It reads the cache of messages in flight, or the ring,
 * which the guest may have changed.
 */
#include "sr.h"

struct onchip walk_onchip(const struct skua_dev *dev)
{
	const struct engine *e = dev->engine;

	return (struct onchip){
		.num = sizeof(e->walks) / sizeof(e->walks[0]),
		.bytes = sizeof(e->walks),
	};
}

struct sr_walk sr_walk_start(const struct turn *t)
{
	return (struct sr_walk){
		.at = {
			.index = le32_to_cpu(t->sqc->ci),
			.psn = le32_to_cpu(t->sqc->ci_psn),
			.ssn = le32_to_cpu(t->sqc->ci_ssn),
			.recv_seq = le32_to_cpu(t->sqc->ci_recv_seq),
			.rr_seq = le32_to_cpu(t->sqc->ci_rr_seq),
		},
	};
}

/* --- where walks ended --- */

static struct walks *walks_of(const struct turn *t)
{
	return &t->dev->engine->walks[qp_place(t->qp->qpn, ENGINE_LOG_WALKS)];
}

static bool is_own(const struct turn *t, const struct walks *m)
{
	return m->qpn == t->qp->qpn && m->incarnation == le32_to_cpu(t->sqc->incarnation);
}

/* Is the message one between ci and what was sent last, and @psn not before it? */
static bool leads_to(const struct turn *t, const struct walk_place *at, uint32_t psn)
{
	uint32_t ci = le32_to_cpu(t->sqc->ci), ci_psn = le32_to_cpu(t->sqc->ci_psn);

	return at->index - ci <= le32_to_cpu(t->sqc->hi) - ci &&
	       psn_sub(at->psn, ci_psn) <= psn_sub(psn, ci_psn);
}

static bool is_there(const struct turn *t, const struct walk_end *end, uint32_t psn)
{
	return leads_to(t, &end->at, psn) && psn_sub(psn, end->at.psn) < end->f.psns;
}

const struct walk_end *sr_walk_ended(const struct turn *t, uint32_t psn)
{
	const struct walks *m = walks_of(t);

	if (!is_own(t, m))
		return NULL;
	if (is_there(t, &m->far, psn))
		return &m->far;
	return is_there(t, &m->near, psn) ? &m->near : NULL;
}

/* A walk that begins at ci: go on where one ended before @psn. */
static void jump(const struct turn *t, struct sr_walk *w, uint32_t psn)
{
	const struct walks *m = walks_of(t);
	const struct walk_end *end;

	if (!is_own(t, m))
		return;
	if (leads_to(t, &m->far.at, psn))
		end = &m->far;
	else if (leads_to(t, &m->near.at, psn))
		end = &m->near;
	else
		return;
	w->at = end->at;
	w->f = end->f;
	w->ready = true;
}

static void remember(const struct turn *t, const struct sr_walk *w)
{
	const struct walk_end end = { .at = w->at, .f = w->f };
	struct walks *m = walks_of(t);

	if (!is_own(t, m)) {
		m->qpn = t->qp->qpn;
		m->incarnation = le32_to_cpu(t->sqc->incarnation);
		m->far = end;
		m->near = end;
	} else if (end.at.index - m->far.at.index - 1 < UINT32_MAX / 2) {
		m->near = m->far;
		m->far = end;
	} else if (end.at.index != m->far.at.index) {
		m->near = end;
	}
}

/* --- walking --- */

/*
 * On to the message that @psn belongs to. False: the ring does not say which that is. What was
 * sent ends at hi, or amid the message there.
 */
bool sr_walk_to(struct turn *t, struct sr_walk *w, uint32_t psn)
{
	uint32_t hi = le32_to_cpu(t->sqc->hi);

	if (!w->wqes && !w->ready)
		jump(t, w, psn);
	while (w->at.index != hi || t->sqc->hi_psn != t->sqc->max_psn) {
		if (!w->ready && req_flight_at(t, w->at.index, &w->f))
			return false;
		w->ready = true;
		if (ib_psn_diff(psn, w->at.psn) < 0)
			return false;
		if (psn_sub(psn, w->at.psn) < w->f.psns) {
			remember(t, w);
			return true;
		}
		if (w->f.blocks > hi - w->at.index || !w->f.blocks || ++w->wqes > SR_WQES)
			return false;
		w->ready = false;
		w->at.index += w->f.blocks;
		w->at.psn = psn_add(w->at.psn, w->f.psns);
		if (!w->f.psns)
			continue;
		w->at.ssn = ssn_after(w->at.ssn, w->f.op, w->f.psns);
		w->at.recv_seq = recv_seq_after(w->at.recv_seq, w->f.op);
		w->at.rr_seq = rr_seq_after(w->at.rr_seq, w->f.op, w->f.psns);
	}
	return false;
}

/* PSNs of a READ up to the end of the part that @psn is of. */
uint32_t sr_part_end(const struct sr_walk *w, uint32_t psn)
{
	uint32_t end = psn_sub(sr_part_start(&w->at, psn), w->at.psn) + ENGINE_READ_PSNS;

	return end < w->f.psns ? end : w->f.psns;
}
