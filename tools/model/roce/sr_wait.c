// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat: how long to wait for what has not arrived. Round trips are
 * measured; what reordering the path has is learned.
 *
 * A hole counts as lost when something has arrived far enough behind it, or a time after it
 * was seen. Both bounds are one part of their largest values, the patience. It begins with the
 * whole: nothing is known of the path. As long as the PSNs of a whole distance come in their
 * order it is halved each time, so that a path that keeps the order soon has a loss repaired one
 * round trip after it. A packet that turns out to have been late only, whether or not it was
 * sent again meanwhile, raises it to what would have been enough; from then on it takes far
 * more packets in order to lower it.
 */
#include "cc.h"
#include "sr.h"

/* Shortest times, in ns: until a packet counts as lost, a hole does, an answer is asked for. */
#define SR_WAIT_MIN	20000
#define SR_HOLE_MIN	2000
#define SR_PROBE_MIN	1000000
/* A READ is asked for after so many times as long as responses that were asked for again take. */
#define SR_REREADS	4
/* What comes last is waited for so many times as long: the driver may have a part in it. */
#define SR_LAST_PROBES	8
/* The round trip of one packet of so many is measured. */
#define SR_RTT_EVERY	32
/* While no round trip was measured. */
#define SR_RTT_DEFAULT	1000000

/* Patience: all of it; the least; smallest distance that it gives. */
#define SR_PATIENCE	SKUA_LRC_PATIENCE
#define SR_PATIENCE_MIN	16
#define SR_DISTANCE_MIN	3
/* Once packets were late, so many windows in order halve it. */
#define SR_CALM_WINDOWS	8

/* --- round trips --- */

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
	if (t->sqc->max_psn != cpu_to_le32(psn_add(psn, psns)) ||
	    (sr_in_loss(t) && sr_onload(t->sqc)))
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

static bool of_again(const struct skua_sqc *s)
{
	return le32_to_cpu(s->rtt_psn) & SKUA_SQC_RTT_AGAIN;
}

static uint32_t rtt_psn(const struct skua_sqc *s)
{
	return le32_to_cpu(s->rtt_psn) & IB_PSN_MASK;
}

/*
 * Responses to a READ that are asked for again overtake those of other READs, which the ones of the
 * first time wait for: kept is half as much again as they took lately.
 */
static void measure_reread(struct turn *t, uint32_t rtt)
{
	const uint32_t most = u32_get_bits(UINT32_MAX, SKUA_LRC_PATIENCE_REREAD);
	uint32_t was, now = (rtt + rtt / 2) / SKUA_LRC_REREAD_UNIT + 1;
	struct skua_lrc *lrc = sr_lrc(t);

	if (!lrc)
		return;
	was = le32_get_bits(lrc->patience, SKUA_LRC_PATIENCE_REREAD);
	if (now < was)
		now = was - (was - now + 7) / 8;
	lrc->patience &= ~cpu_to_le32(SKUA_LRC_PATIENCE_REREAD);
	lrc->patience |= le32_encode_bits(now < most ? now : most, SKUA_LRC_PATIENCE_REREAD);
	sr_lrc_put(t, lrc, true);
}

/* Jacobson's estimate. @sure: what came is the answer to what was sent at rtt_time. */
static void measure(struct turn *t, bool sure)
{
	struct skua_sqc *s = t->sqc;
	uint64_t took = t->now - le64_to_cpu(s->rtt_time);
	uint32_t rtt = took < UINT32_MAX / 8 ? (uint32_t)took + 1 : UINT32_MAX / 8;
	uint32_t srtt = le32_to_cpu(s->srtt), var = le32_to_cpu(s->rttvar);
	uint32_t off = rtt > srtt ? rtt - srtt : srtt - rtt;

	s->valid &= ~cpu_to_le32(SKUA_SQC_RTT);
	/* So soon what was sent again cannot have come: it was late. */
	if (!sure && of_again(s) && srtt && rtt < le32_to_cpu(s->rtt_min))
		return;
	/* The first one may contain a repair. */
	if (!of_again(s) && (!s->rtt_min || rtt < le32_to_cpu(s->rtt_min)))
		s->rtt_min = cpu_to_le32(rtt);
	if (le32_to_cpu(s->rtt_psn) & SKUA_SQC_RTT_REREAD) {
		measure_reread(t, rtt);
		return;
	}
	if (!srtt) {
		s->srtt = cpu_to_le32(rtt);
		s->rttvar = cpu_to_le32(rtt / 2);
		return;
	}
	s->rttvar = cpu_to_le32(var - var / 4 + off / 4);
	s->srtt = cpu_to_le32(srtt - srtt / 8 + rtt / 8);
}

void sr_measure(struct turn *t, bool (*came)(const void *priv, uint32_t psn), const void *priv)
{
	if (t->sqc->valid & cpu_to_le32(SKUA_SQC_RTT) && t->sqc->rtt_time &&
	    came(priv, rtt_psn(t->sqc)))
		measure(t, false);
}

bool sr_measures(const struct turn *t, uint32_t psn, bool held)
{
	return t->sqc->valid & cpu_to_le32(SKUA_SQC_RTT) &&
	       (rtt_psn(t->sqc) == psn || (held && !of_again(t->sqc)));
}

void sr_measure_once(struct turn *t, uint32_t psn)
{
	struct skua_sqc *s = t->sqc;

	if (s->valid & cpu_to_le32(SKUA_SQC_RTT) &&
	    s->rtt_psn == cpu_to_le32(psn | SKUA_SQC_RTT_AGAIN | SKUA_SQC_RTT_REREAD))
		s->rtt_psn |= cpu_to_le32(SKUA_SQC_RTT_ONCE);
}

void sr_measure_answer(struct turn *t, uint32_t psn)
{
	struct skua_sqc *s = t->sqc;

	if (s->valid & cpu_to_le32(SKUA_SQC_RTT) && s->rtt_time && rtt_psn(s) == psn &&
	    s->rtt_psn & cpu_to_le32(SKUA_SQC_RTT_ONCE))
		measure(t, true);
}

/*
 * What is measured waits for a repair now. The first one is not given up, or a path that is longer
 * than the guess would never be known; the shortest round trip is not learned from it.
 */
static void measure_less(struct skua_sqc *s)
{
	if (s->srtt)
		s->valid &= ~cpu_to_le32(SKUA_SQC_RTT);
	else
		s->rtt_psn = (s->rtt_psn & ~cpu_to_le32(SKUA_SQC_RTT_ONCE)) |
			     cpu_to_le32(SKUA_SQC_RTT_AGAIN);
}

void sr_measure_held(struct turn *t)
{
	if (!of_again(t->sqc))
		measure_less(t->sqc);
}

void sr_measure_again(struct turn *t, uint32_t psn, uint32_t psns, bool read)
{
	struct skua_sqc *s = t->sqc;

	if (s->valid & cpu_to_le32(SKUA_SQC_RTT) && psn_sub(rtt_psn(s), psn) < psns)
		measure_less(s);
	/* What is missing first holds up the QP: its round trip tells how long that is now. */
	if (s->valid & cpu_to_le32(SKUA_SQC_RTT) || psn != una(t) || sr_onload(s))
		return;
	s->rtt_psn = cpu_to_le32(psn | SKUA_SQC_RTT_AGAIN | (read ? SKUA_SQC_RTT_REREAD : 0));
	s->rtt_time = cpu_to_le64(t->now);
	s->valid |= cpu_to_le32(SKUA_SQC_RTT);
}

void sr_progress(struct turn *t)
{
	struct skua_sqc *s = t->sqc;

	if (s->valid & cpu_to_le32(SKUA_SQC_RTT) && turn_need_sq_rest(t) && s->rtt_time &&
	    ib_psn_diff(una(t), rtt_psn(s)) > 0)
		measure(t, false);
	if (sr_in_loss(t))
		return;
	s->valid &= ~cpu_to_le32(SKUA_SQC_SR_TIMER | SKUA_SQC_SR_LATE);
	/* How long to wait longer is looked up when that is over. */
	if (s->una_psn != s->max_psn)
		sr_set_deadline(t, t->now + SR_PROBE_MIN);
}

/* --- times --- */

static uint64_t at_least(uint64_t time, uint64_t least)
{
	return time > least ? time : least;
}

uint64_t sr_wait_time(const struct turn *t)
{
	uint64_t srtt = le32_to_cpu(t->sqc->srtt);

	return at_least(srtt ? 2 * srtt + 4ull * le32_to_cpu(t->sqc->rttvar) : SR_RTT_DEFAULT,
			SR_WAIT_MIN);
}

uint64_t sr_again_time(const struct turn *t)
{
	uint64_t srtt = le32_to_cpu(t->sqc->srtt);

	return at_least(srtt ? srtt + srtt / 4 + 4ull * le32_to_cpu(t->sqc->rttvar) :
			       SR_RTT_DEFAULT, SR_WAIT_MIN);
}

uint64_t sr_reread_time(const struct turn *t, const struct skua_lrc *lrc)
{
	uint64_t time = le32_get_bits(lrc->patience, SKUA_LRC_PATIENCE_REREAD);

	return time ? at_least(time * SKUA_LRC_REREAD_UNIT, SR_WAIT_MIN) : sr_again_time(t);
}

/*
 * A round trip of READs contains the time until the peer has answered all that were asked for before.
 * What comes next when nothing came for long does not wait for these: a response to the first
 * request takes no longer than one that is asked for again.
 */
uint64_t sr_probe_time(struct turn *t, const struct skua_lrc *lrc)
{
	uint64_t time = 2 * sr_wait_time(t), reread;

	if (lrc) {
		reread = (uint64_t)le32_get_bits(lrc->patience, SKUA_LRC_PATIENCE_REREAD) *
			 SKUA_LRC_REREAD_UNIT;
		/* None was asked for again so far: the path alone, with others in front. */
		if (!reread)
			reread = 2ull * le32_to_cpu(t->sqc->rtt_min);
		reread *= SR_REREADS;
		if (reread && reread < time && req_first_is_read(t))
			time = reread;
	}
	return at_least(time, SR_PROBE_MIN);
}

uint64_t sr_last_time(const struct turn *t)
{
	return SR_LAST_PROBES * at_least(2 * sr_wait_time(t), SR_PROBE_MIN);
}

bool sr_probe_is_early(struct turn *t)
{
	struct skua_lrc *lrc;
	uint64_t time;

	if (sr_in_loss(t))
		return false;
	if (!turn_need_sq_rest(t))
		return true;
	if (t->sqc->valid & cpu_to_le32(SKUA_SQC_SR_LATE))
		return false;
	lrc = sr_onload(t->sqc) ? NULL : sr_lrc(t);
	if (!lrc && qp_state(t->qp) == SKUA_QP_ERR)
		return true;
	time = sr_probe_time(t, lrc);
	if (lrc)
		sr_lrc_put(t, lrc, false);
	if (time <= SR_PROBE_MIN)
		return false;
	sr_set_deadline(t, t->now + time - SR_PROBE_MIN);
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_SR_LATE);
	return true;
}

/* --- patience --- */

static uint32_t widest(const struct turn *t)
{
	return sr_window(t) / 4;
}

static uint32_t patience(const struct skua_lrc *lrc)
{
	uint32_t p = le32_get_bits(lrc->patience, SKUA_LRC_PATIENCE_NOW);

	/* It may come from memory of the host. */
	return p < SR_PATIENCE_MIN || p > SR_PATIENCE ? SR_PATIENCE : p;
}

static bool knows_late(const struct skua_lrc *lrc)
{
	return le32_to_cpu(lrc->patience) & SKUA_LRC_PATIENCE_LATE;
}

static void set_patience(struct skua_lrc *lrc, uint32_t p, bool late)
{
	if (p > SR_PATIENCE)
		p = SR_PATIENCE;
	if (p < SR_PATIENCE_MIN)
		p = SR_PATIENCE_MIN;
	lrc->patience &= cpu_to_le32(SKUA_LRC_PATIENCE_REREAD);
	lrc->patience |= le32_encode_bits(p, SKUA_LRC_PATIENCE_NOW) |
			 cpu_to_le32(late ? SKUA_LRC_PATIENCE_LATE : 0);
}

bool sr_keeps_order(const struct skua_lrc *lrc)
{
	return patience(lrc) == SR_PATIENCE_MIN;
}

uint32_t sr_distance(const struct turn *t, const struct skua_lrc *lrc)
{
	uint32_t d = widest(t) * patience(lrc) / SR_PATIENCE;

	return d > SR_DISTANCE_MIN ? d : SR_DISTANCE_MIN;
}

uint64_t sr_hole_time(const struct turn *t, const struct skua_lrc *lrc)
{
	return at_least(sr_wait_time(t) * patience(lrc) / SR_PATIENCE, SR_HOLE_MIN);
}

/* So many PSNs in order halve the patience. */
static uint32_t calm_need(const struct turn *t, const struct skua_lrc *lrc)
{
	return knows_late(lrc) ? SR_CALM_WINDOWS * sr_window(t) : sr_distance(t, lrc);
}

void sr_calm(struct turn *t, struct skua_lrc *lrc)
{
	if (!le32_get_bits(lrc->patience, SKUA_LRC_PATIENCE_NOW)) {
		lrc->calm = t->sqc->attr.sq_psn;
		set_patience(lrc, SR_PATIENCE, false);
	}
	while (patience(lrc) > SR_PATIENCE_MIN) {
		uint32_t need = calm_need(t, lrc), calm = le32_to_cpu(lrc->calm);

		/*
		 * It is ahead by no more than what may be outstanding. Behind it may be by any
		 * distance, since it is looked at only while something is missing.
		 */
		if (psn_sub(calm, una(t)) - 1 < SKUA_LRC_PSNS || psn_sub(una(t), calm) < need)
			return;
		lrc->calm = cpu_to_le32(psn_add(le32_to_cpu(lrc->calm), need));
		set_patience(lrc, patience(lrc) / 2, knows_late(lrc));
	}
	lrc->calm = t->sqc->una_psn;
}

void sr_late(struct turn *t, struct skua_lrc *lrc, uint32_t far, uint64_t age)
{
	uint32_t most = widest(t), p = patience(lrc), need = SR_PATIENCE;
	uint64_t wait = sr_wait_time(t);

	/* A quarter more than would have been enough. */
	far += far / 4 + 1;
	age += age / 4;
	if (far < most && age < wait)
		need = (uint32_t)at_least((far * SR_PATIENCE + most - 1) / most,
					  (age * SR_PATIENCE + wait - 1) / wait);
	set_patience(lrc, need > p ? need : p, true);
	lrc->calm = t->sqc->max_psn;
}
