// SPDX-License-Identifier: GPL-2.0
/*
 * Pacing: send queues with a rate limit. The state of a queue is one time, rate_time: the end of
 * the transmission of all that was sent, at the rate of the queue. rate_time may be ahead of the
 * clock by one burst. There are no tokens to be added while the queue is idle, and after a
 * change of rate or burst the state remains valid.
 *
 * A queue that is ahead by more than a burst waits in the heap of timers until it may send a
 * quantum. The quantum is large enough that a timer costs no more than a turn, and small enough
 * that it is a short burst on the wire at that rate.
 */
#include "core.h"

/* Number of (kbit/s * ns) in a byte. */
#define BYTE	8000000ull

/* Limits of the quantum: bytes, and their time at the rate. */
#define QUANTUM_BYTES	(16u << 10)
#define QUANTUM_NS	100000u
/* Burst if software has not set one. */
#define BURST_BYTES	(16u << 10)
#define BURST_NS	1000000u
/* Burst of a queue whose rate is set by congestion control. */
#define CC_BURST_BYTES	(8u << 10)
#define CC_BURST_NS	10000u
/* Bytes that a turn may send beyond the limit, since it is checked per packet. */
#define TURN_MAX	(1u << 20)

/* Time of @bytes at the rate, which is not 0. */
static uint64_t time_of(const struct skua_sqc *sqc, uint64_t bytes)
{
	return bytes * BYTE / le32_to_cpu(sqc->rate);
}

/* Number of bytes that the rate allows in @ns. */
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

/* The rate set by congestion control; 0: none. */
static uint32_t cc_rate(const struct skua_sqc *sqc)
{
	return le32_to_cpu(sqc->valid) & SKUA_SQC_CC ? le32_to_cpu(sqc->cc.rate) : 0;
}

/* A small burst: a switch must buffer the sum of the bursts of all senders. */
static uint64_t burst_of(const struct skua_sqc *sqc)
{
	uint32_t burst = le32_to_cpu(sqc->attr.rate_burst);

	if (sqc->rate != sqc->attr.rate_kbps)
		return at_least(CC_BURST_BYTES, bytes_in(sqc, CC_BURST_NS));
	return burst ? burst : at_least(BURST_BYTES, bytes_in(sqc, BURST_NS));
}

/* At least 1 ns: a queue that may never be ahead of the clock would never send. */
static uint64_t burst_time(const struct skua_sqc *sqc)
{
	return at_least(time_of(sqc, burst_of(sqc)), 1);
}

/* Time by which the queue is ahead of the clock, at most what it can have reached. */
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

	/* A packet may be sent if the limit allows its first byte. */
	return used < burst ? at_least(bytes_in(sqc, burst - used), 1) : 0;
}

void pace_charge(struct skua_sqc *sqc, uint64_t now, uint64_t bytes)
{
	uint32_t rate = le32_to_cpu(sqc->rate);
	uint64_t used = ahead(sqc, now);
	/* rate_frac, a fraction of 1 ns, belongs to a rate_time that is not in the past. */
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

/* Ignore a rate equal to the present one: repeated rounding would add up. */
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
	/* After a decrease the queue need not wait for a burst that was allowed by the old rate. */
	if (used && rate)
		used = now + time_of(sqc, at_most(used, burst_of(sqc) + MODEL_MAX_FRAME));
	sqc->rate_time = cpu_to_le64(rate ? used : 0);
	sqc->rate_frac = 0;
	/* A waiting queue gets a turn, in which it computes its new time. */
	if (!sqc->rate_deadline)
		return;
	sqc->rate_deadline = 0;
	sched_kick(dev, qp->qpn);
}
