// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: send queues with a rate. What was sent takes its time at the rate, and
 * rate_time is when all of that time is over; the queue may be ahead of the clock by
 * one burst. So the state is one time, nothing is to be added up while the queue
 * rests, and a new rate or burst is just another measure for it.
 *
 * A queue that is ahead by more waits in the timers' heap until a quantum may go: so
 * much that timers cost no more than turns do, and little enough that what is sent
 * together is short on the wire at that rate.
 */
#include "core.h"

/* kbit/s times ns are so many of a byte. */
#define BYTE	8000000ull

/* Bytes sent together after a wait, and how long they may take at the rate. */
#define QUANTUM_BYTES	(16u << 10)
#define QUANTUM_NS	100000u
/* A burst that software did not choose. */
#define BURST_BYTES	(16u << 10)
#define BURST_NS	1000000u
/* Of a queue that congestion control holds back. */
#define CC_BURST_BYTES	(8u << 10)
#define CC_BURST_NS	10000u
/* What one turn may send beyond its allowance, or before anybody looks. */
#define TURN_MAX	(1u << 20)

/* Time that @bytes take. The rate is not 0. */
static uint64_t time_of(const struct skua_sqc *sqc, uint64_t bytes)
{
	return bytes * BYTE / le32_to_cpu(sqc->rate);
}

/* Bytes that go in @ns. */
static uint64_t bytes_in(const struct skua_sqc *sqc, uint64_t ns)
{
	return ns * le32_to_cpu(sqc->rate) / BYTE;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The rate that congestion control imposes, 0: none. */
static uint32_t cc_rate(const struct skua_sqc *sqc)
{
	return le32_to_cpu(sqc->valid) & SKUA_SQC_CC ? le32_to_cpu(sqc->cc.rate) : 0;
}

/* What all who share a queue send at once is what that has to hold. */
static uint64_t burst_of(const struct skua_sqc *sqc)
{
	uint32_t burst = le32_to_cpu(sqc->attr.rate_burst);

	if (sqc->rate != sqc->attr.rate_kbps)
		return at_least(CC_BURST_BYTES, bytes_in(sqc, CC_BURST_NS));
	return burst ? burst : at_least(BURST_BYTES, bytes_in(sqc, BURST_NS));
}

/* At least some: a queue that may never be ahead of the clock would never send. */
static uint64_t burst_time(const struct skua_sqc *sqc)
{
	return at_least(time_of(sqc, burst_of(sqc)), 1);
}

/* How far the queue is ahead of the clock, and no further than it can have come. */
static uint64_t ahead(const struct skua_sqc *sqc, uint64_t now)
{
	uint64_t then = le64_to_cpu(sqc->rate_time);

	return then <= now ? 0 :
	       at_most(then - now, time_of(sqc, burst_of(sqc) + TURN_MAX));
}

uint64_t pace_room(const struct skua_sqc *sqc, uint64_t now)
{
	uint64_t burst = burst_time(sqc);
	uint64_t used = ahead(sqc, now);

	/* A packet goes whole, if there is room for its beginning. */
	return used < burst ? at_least(bytes_in(sqc, burst - used), 1) : 0;
}

void pace_charge(struct skua_sqc *sqc, uint64_t now, uint64_t bytes)
{
	uint32_t rate = le32_to_cpu(sqc->rate);
	uint64_t used = ahead(sqc, now);
	/* Of a time that is just over the fraction is left. */
	bool frac = le64_to_cpu(sqc->rate_time) >= now;
	uint64_t cost = bytes * BYTE + (frac ? le32_to_cpu(sqc->rate_frac) : 0);

	sqc->rate_time = cpu_to_le64(now + used + cost / rate);
	sqc->rate_frac = cpu_to_le32(cost % rate);
}

void pace_arm(struct skua_dev *dev, struct qp *qp)
{
	uint64_t want = le64_to_cpu(qp->sqc->rate_deadline);

	if (want)
		timer_at_latest(dev, qp->qpn, want);
}

void pace_wait(struct skua_dev *dev, struct qp *qp, uint64_t now)
{
	uint64_t burst = burst_of(qp->sqc);
	uint64_t quantum = at_most(at_most(QUANTUM_BYTES, bytes_in(qp->sqc, QUANTUM_NS)),
				   burst / 2);
	uint64_t used = ahead(qp->sqc, now) + at_least(time_of(qp->sqc, quantum), 1);
	uint64_t may = burst_time(qp->sqc);

	qp->sqc->rate_deadline = cpu_to_le64(now + (used > may ? used - may : 1));
	pace_arm(dev, qp);
}

/* A rate set again is no new one: rounding would give something each time. */
void pace_set(struct skua_dev *dev, struct qp *qp)
{
	struct skua_sqc *sqc = qp->sqc;
	uint32_t old = le32_to_cpu(sqc->rate);
	uint32_t rate = le32_to_cpu(sqc->attr.rate_kbps), cc = cc_rate(sqc);
	uint64_t now = dev_now(dev);
	/* Bounded by a burst: times the rate it fits. */
	uint64_t used = old ? bytes_in(sqc, ahead(sqc, now)) : 0;

	if (cc && (!rate || cc < rate))
		rate = cc;
	if (old == rate)
		return;
	sqc->rate = cpu_to_le32(rate);
	sqc->valid &= ~cpu_to_le32(SKUA_SQC_PACED);
	sqc->valid |= cpu_to_le32(rate ? SKUA_SQC_PACED : 0);
	/* Who goes slower now has not to wait for what was a burst then. */
	if (used && rate)
		used = now + time_of(sqc, at_most(used, burst_of(sqc) + MODEL_MAX_FRAME));
	sqc->rate_time = cpu_to_le64(rate ? used : 0);
	sqc->rate_frac = 0;
	/* Who waits has a turn, and finds out how long it has to wait now. */
	if (!sqc->rate_deadline)
		return;
	sqc->rate_deadline = 0;
	sched_kick(dev, qp->qpn);
}
