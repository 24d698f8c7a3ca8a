// SPDX-License-Identifier: GPL-2.0
/*
 * DCQCN: a rate limit for each QP that was notified of congestion.
 *
 * A CNP decreases the rate by a fraction that depends on the frequency of recent CNPs (alpha).
 * After that the rate rises in stages, counted by time and by bytes sent. Fast recovery: it goes
 * half of the way to the target, which is the rate before the decrease. Then the target rises,
 * too: by additive increase and, when both counts are past fast recovery, by hyper increase.
 * When the rate reaches that of the port, the limit and all of its state are removed.
 *
 * In addition to the published algorithm a QP does not begin at the port's rate. Its first
 * packets are limited by a window that grows with acknowledgments (slow start), until it is no
 * limit any more, round trips become longer, or a CNP arrives. The rate delivered up to then
 * becomes the rate limit. Without this, QPs that begin at the same time would lose most of what
 * they send before the first CNP can arrive.
 *
 * READ responses are not acknowledged: a QP whose first packets are responses begins with a rate
 * instead: that window in each period of increases by time. The rate is doubled as long as it is
 * used, until a CNP arrives or it reaches that of the port.
 */
#include "cc.h"

#define ALPHA_ONE	(1u << 20)	/* of struct skua_cc */
#define ALPHA_SHIFT	10		/* parameters have 1024ths */
#define KBPS		1000u		/* parameters have Mbit/s */
/* Maximum number of increases by time that are applied at once; more have no further effect. */
#define STAGES_AT_ONCE	1024

static uint32_t rate_of(const struct turn *t)
{
	return le32_to_cpu(t->sqc->cc.rate);
}

static uint32_t rate_max(const struct turn *t)
{
	uint32_t max = cc_param(t, SKUA_CC_RP_MAX_RATE) * KBPS;

	return max && max < MODEL_RATE_MAX ? max : MODEL_RATE_MAX;
}

static uint32_t rate_min(const struct turn *t)
{
	uint32_t min = cc_param(t, SKUA_CC_RP_MIN_RATE) * KBPS;

	return min < rate_max(t) ? min : rate_max(t);
}

static uint32_t bound(const struct turn *t, uint64_t kbps)
{
	if (kbps < rate_min(t))
		return rate_min(t);
	return kbps < rate_max(t) ? (uint32_t)kbps : rate_max(t);
}

/* --- alpha --- */

/* @alpha after @n periods without a CNP. */
static uint32_t decay(uint32_t alpha, uint32_t g, uint64_t n)
{
	uint64_t factor = ALPHA_ONE - (uint64_t)g * (ALPHA_ONE >> ALPHA_SHIFT);
	uint64_t a = alpha;

	for (; n && a; n >>= 1) {
		if (n & 1)
			a = a * factor >> 20;
		factor = factor * factor >> 20;
	}
	return (uint32_t)a;
}

/* Alpha as of @now, which is not later than the turn. */
static void alpha_at(struct turn *t, uint64_t now)
{
	uint64_t period = cc_param_ns(t, SKUA_CC_RP_DCE_TCP_RTT);
	uint32_t g = cc_param(t, SKUA_CC_RP_DCE_TCP_G);
	struct skua_cc *cc = &t->sqc->cc;
	uint64_t then = le64_to_cpu(cc->alpha_time), n;
	uint32_t alpha = le32_to_cpu(cc->alpha);

	if (then > now)
		then = now;
	n = (now - then) / period;
	if (!n)
		return;
	if (alpha > ALPHA_ONE)
		alpha = ALPHA_ONE;
	if (cc_is(t, SKUA_CC_CNP_SEEN)) {
		alpha = decay(alpha, g, 1) + g * (ALPHA_ONE >> ALPHA_SHIFT);
		n--;
		then += period;
		cc_set(t, SKUA_CC_CNP_SEEN, false);
	}
	cc->alpha = cpu_to_le32(decay(alpha < ALPHA_ONE ? alpha : ALPHA_ONE, g, n));
	cc->alpha_time = cpu_to_le64(then + n * period);
}

/* The first CNP: nothing is known of congestion before. */
static void first_alpha(struct turn *t)
{
	uint32_t alpha = cc_param(t, SKUA_CC_RP_INITIAL_ALPHA_VALUE);

	t->sqc->cc.alpha = cpu_to_le32(alpha << ALPHA_SHIFT);
	t->sqc->cc.alpha_time = cpu_to_le64(t->now);
}

/* --- down --- */

static void no_stages(struct turn *t, uint64_t now)
{
	struct skua_cc *cc = &t->sqc->cc;

	cc->stages = 0;
	cc->bytes = 0;
	cc->inc_time = cpu_to_le64(now);
}

static void decrease(struct turn *t, uint64_t now)
{
	struct skua_cc *cc = &t->sqc->cc;
	uint64_t rate = rate_of(t), min = rate * cc_param(t, SKUA_CC_RP_MIN_DEC_FAC) / 100;
	uint64_t alpha = le32_to_cpu(cc->alpha) >> ALPHA_SHIFT;
	uint64_t by = rate * alpha >> cc_param(t, SKUA_CC_RP_GD);
	uint64_t to = by < rate ? rate - by : 0;

	if (cc_param(t, SKUA_CC_RP_CLAMP_TGT_RATE) ||
	    le32_get_bits(cc->stages, SKUA_CC_STAGE_BYTES) ||
	    (cc_param(t, SKUA_CC_RP_CLAMP_TGT_RATE_ATI) &&
	     le32_get_bits(cc->stages, SKUA_CC_STAGE_TIME)))
		cc->target = cpu_to_le32((uint32_t)rate);
	cc_set(t, SKUA_CC_CNP_WAITS | SKUA_CC_START, false);
	cc->dec_time = cpu_to_le64(now);
	no_stages(t, now);
	cc_set_rate(t, bound(t, to > min ? to : min));
}

/* Rate (kbit/s) delivered while the window has grown to its present size. */
static uint64_t delivered(const struct turn *t)
{
	const struct skua_cc *cc = &t->sqc->cc;
	uint64_t ns = cc->rtt ? le32_to_cpu(cc->rtt) : t->now - le64_to_cpu(cc->inc_time);

	/* The window has doubled in this round trip: half of it was outstanding at its begin. */
	return le32_to_cpu(cc->window) * 4000000ull / (ns ? ns : 1);
}

static bool limited(const struct turn *t)
{
	return cc_on(t) && t->sqc->cc.rate;
}

/* The first decrease: before, the QP was limited by a window, by a rate that opens, or not at all. */
static void first_rate(struct turn *t)
{
	uint32_t first = cc_param(t, SKUA_CC_RP_RATE_TO_SET_ON_FIRST_CNP) * KBPS;
	bool window = cc_on(t) && !limited(t);
	struct skua_cc *cc = &t->sqc->cc;
	uint64_t rate = window ? delivered(t) : limited(t) ? rate_of(t) : rate_max(t);

	if (!cc_on(t))
		cc_begin(t);
	cc_set(t, SKUA_CC_START, false);
	cc->window = 0;
	cc->rtt_time = 0;
	first_alpha(t);
	cc->target = cpu_to_le32(bound(t, first ? first : rate));
	cc->rate = cc->target;
	if (first || window) {
		cc->dec_time = cpu_to_le64(t->now);
		no_stages(t, t->now);
		cc_set_rate(t, rate_of(t));
	} else {
		decrease(t, t->now);
	}
}

static void slow_down(struct turn *t)
{
	uint64_t period = cc_param_ns(t, SKUA_CC_RP_RATE_REDUCE_MONITOR_PERIOD);
	uint64_t then = le64_to_cpu(t->sqc->cc.dec_time);

	if (then <= t->now && t->now - then < period)
		cc_set(t, SKUA_CC_CNP_WAITS, true);
	else
		decrease(t, t->now);
}

static bool dcqcn_cnp(struct turn *t)
{
	if (!limited(t) || cc_is(t, SKUA_CC_START)) {
		first_rate(t);
	} else {
		alpha_at(t, t->now);
		slow_down(t);
	}
	cc_set(t, SKUA_CC_CNP_SEEN, true);
	req_kick(t);
	return true;
}

/* A timeout in slow start is a sign of congestion, even without marks. */
static void dcqcn_timeout(struct turn *t)
{
	if (!limited(t))
		first_rate(t);
}

/* --- up --- */

/* Another stage of increase. False: the rate has reached that of the port. */
static bool increase(struct turn *t)
{
	struct skua_cc *cc = &t->sqc->cc;
	uint32_t by_time = le32_get_bits(cc->stages, SKUA_CC_STAGE_TIME);
	uint32_t by_bytes = le32_get_bits(cc->stages, SKUA_CC_STAGE_BYTES);
	uint32_t threshold = cc_param(t, SKUA_CC_RP_THRESHOLD);
	uint32_t most = by_time > by_bytes ? by_time : by_bytes;
	uint32_t least = by_time > by_bytes ? by_bytes : by_time;
	uint64_t target = le32_to_cpu(cc->target), rate = rate_of(t);

	if (least > threshold)
		target += (uint64_t)cc_param(t, SKUA_CC_RP_HAI_RATE) * KBPS * (least - threshold);
	else if (most > threshold)
		target += (uint64_t)cc_param(t, SKUA_CC_RP_AI_RATE) * KBPS;
	target = bound(t, target);
	rate = target > rate ? (rate + target + 1) / 2 : target;
	cc->target = cpu_to_le32((uint32_t)target);
	/* Halving the distance would never reach the target: take the last bit at once. */
	if (rate >= rate_max(t) - rate_max(t) / 128 && rate_max(t) == MODEL_RATE_MAX) {
		cc_end(t);
		return false;
	}
	cc->rate = cpu_to_le32((uint32_t)rate);
	return true;
}

static uint32_t one_more(uint32_t stage)
{
	return stage < 0xffff ? stage + 1 : stage;
}

static void time_stages(struct turn *t)
{
	uint64_t reset = cc_param_ns(t, SKUA_CC_RP_TIME_RESET);
	struct skua_cc *cc = &t->sqc->cc;
	uint64_t then = le64_to_cpu(cc->inc_time);
	const __le32 before = cc->rate;

	if (then > t->now)
		then = t->now;
	for (unsigned int n = 0; t->now - then >= reset; n++) {
		uint32_t stage = le32_get_bits(cc->stages, SKUA_CC_STAGE_TIME);

		then += reset;
		if (n == STAGES_AT_ONCE)
			then = t->now;
		le32p_replace_bits(&cc->stages, one_more(stage), SKUA_CC_STAGE_TIME);
		if (!increase(t))
			return;
	}
	cc->inc_time = cpu_to_le64(then);
	if (cc->rate != before)
		cc_set_rate(t, rate_of(t));
}

/*
 * Twice the rate after each two periods in which at least half of it was used: a mark passes the
 * queue that caused it, so that its CNP takes more than the round trip of an empty network. At a
 * maximum below that of the port it stays, until a CNP arrives, which is the first.
 */
static void open_rate(struct turn *t)
{
	struct skua_cc *cc = &t->sqc->cc;
	uint64_t then = le64_to_cpu(cc->inc_time), took, rate = rate_of(t);

	took = then < t->now ? t->now - then : 0;
	if (took < 2 * cc_param_ns(t, SKUA_CC_RP_TIME_RESET))
		return;
	if (le32_to_cpu(cc->bytes) * 8000000ull / took >= rate / 2)
		rate *= 2;
	no_stages(t, t->now);
	cc->target = cpu_to_le32(bound(t, rate));
	if (rate >= MODEL_RATE_MAX && rate_max(t) == MODEL_RATE_MAX)
		cc_end(t);
	else
		cc_set_rate(t, le32_to_cpu(cc->target));
}

/*
 * A CNP that came too early takes effect at the end of the period, though the QP may have had
 * nothing to send then, and has the stages since.
 */
static void late_decrease(struct turn *t)
{
	uint64_t period = cc_param_ns(t, SKUA_CC_RP_RATE_REDUCE_MONITOR_PERIOD);
	uint64_t then = le64_to_cpu(t->sqc->cc.dec_time), now;

	if (then <= t->now && t->now - then < period)
		return;
	now = then <= t->now ? then + period : t->now;
	alpha_at(t, now);
	decrease(t, now);
}

static void dcqcn_turn(struct turn *t)
{
	if (!limited(t))
		return;
	if (cc_is(t, SKUA_CC_START)) {
		open_rate(t);
		return;
	}
	if (cc_is(t, SKUA_CC_CNP_WAITS))
		late_decrease(t);
	alpha_at(t, t->now);
	time_stages(t);
}

static void dcqcn_sent(struct turn *t, uint64_t bytes)
{
	uint64_t reset = cc_param(t, SKUA_CC_RP_BYTE_RESET);
	struct skua_cc *cc = &t->sqc->cc;
	const __le32 before = cc->rate;
	uint64_t sum;

	if (!limited(t))
		return;
	sum = le32_to_cpu(cc->bytes) + bytes;
	if (cc_is(t, SKUA_CC_START))
		cc->bytes = cpu_to_le32(sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX);
	if (cc_is(t, SKUA_CC_START) || !reset)
		return;
	for (unsigned int n = 0; sum >= reset && n < STAGES_AT_ONCE; n++) {
		uint32_t stage = le32_get_bits(cc->stages, SKUA_CC_STAGE_BYTES);

		sum -= reset;
		le32p_replace_bits(&cc->stages, one_more(stage), SKUA_CC_STAGE_BYTES);
		if (!increase(t))
			return;
	}
	cc->bytes = cpu_to_le32((uint32_t)(sum % reset));
	if (cc->rate != before)
		cc_set_rate(t, rate_of(t));
}

static uint64_t dcqcn_next(const struct turn *t)
{
	return le64_to_cpu(t->sqc->cc.inc_time) + cc_param_ns(t, SKUA_CC_RP_TIME_RESET);
}

/* --- slow start --- */

static void dcqcn_start(struct turn *t)
{
	uint32_t window = cc_param(t, SKUA_CC_RP_INITIAL_WINDOW);

	if (!window || window >= cc_window_max(t))
		return;
	cc_begin(t);
	cc_set(t, SKUA_CC_START, true);
	t->sqc->cc.window = cpu_to_le32(window);
	t->sqc->cc.inc_time = cpu_to_le64(t->now);
}

/* Responses are not acknowledged: in place of a window it is a rate that opens. */
static void dcqcn_read(struct turn *t)
{
	bool fresh = le32_to_cpu(t->sqc->valid) & SKUA_SQC_CC_NEW;
	uint32_t window = cc_param(t, SKUA_CC_RP_INITIAL_WINDOW);
	struct skua_cc *cc = &t->sqc->cc;

	/* What has opened is open; what still opens for requests goes on as a rate. */
	if (!window || (!fresh && (!cc_on(t) || !cc_is(t, SKUA_CC_START))))
		return;
	if (!fresh)
		window = le32_to_cpu(cc->window);
	if (window >= cc_window_max(t))
		return;
	cc_begin(t);
	cc_set(t, SKUA_CC_START, true);
	cc->inc_time = cpu_to_le64(t->now);
	cc->target = cpu_to_le32(bound(t, window * 8000ull / cc_param(t, SKUA_CC_RP_TIME_RESET)));
	cc_set_rate(t, le32_to_cpu(cc->target));
}

static void dcqcn_acked(struct turn *t, uint32_t bytes, bool measured)
{
	if (!cc_is(t, SKUA_CC_START) || limited(t))
		return;
	if (cc_open(t, bytes, measured))
		first_rate(t);
	else if (le32_to_cpu(t->sqc->cc.window) >= cc_window_max(t))
		cc_end(t);
}

const struct cc_ops cc_dcqcn = {
	.ect = true,
	.start = dcqcn_start,
	.read = dcqcn_read,
	.acked = dcqcn_acked,
	.cnp = dcqcn_cnp,
	.timeout = dcqcn_timeout,
	.turn = dcqcn_turn,
	.sent = dcqcn_sent,
	.next = dcqcn_next,
};
