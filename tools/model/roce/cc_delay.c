// SPDX-License-Identifier: GPL-2.0
/*
 * A window by the round trip time, after Swift: it grows by a constant each round trip as
 * long as that is shorter than a target, and shrinks in proportion to the excess otherwise.
 * The target is higher for small windows: that leaves room in the queue for many connections
 * with small windows, and lets connections with small windows gain on the others.
 *
 * No ECN is needed. Loss is not taken as congestion, since selective repeat is for networks that
 * also lose packets for other reasons; only the expiry of an ACK timer closes the window.
 */
#include "cc.h"

/* Fraction bits of the square root of a number of packets. */
#define ROOT_SHIFT	8

static uint32_t root(uint64_t v)
{
	uint64_t r = 0;

	for (uint64_t bit = 1ull << 31; bit; bit >>= 1) {
		if ((r | bit) * (r | bit) <= v)
			r |= bit;
	}
	return (uint32_t)r;
}

static uint32_t window_of(const struct turn *t)
{
	uint32_t window = le32_to_cpu(t->sqc->cc.window), max = cc_window_max(t);

	return window > max ? max : window < t->mtu ? t->mtu : window;
}

static void set_window(struct turn *t, uint64_t bytes)
{
	uint32_t max = cc_window_max(t);

	t->sqc->cc.window = cpu_to_le32(bytes > max ? max : bytes < t->mtu ? t->mtu :
					(uint32_t)bytes);
}

/* Target: the longest round trip (ns) that is not taken as congestion. */
static uint64_t target(const struct turn *t)
{
	uint64_t packets = ((uint64_t)window_of(t) << 2 * ROOT_SHIFT) / t->mtu;

	return cc_param_ns(t, SKUA_CC_RP_DELAY_TARGET) +
	       (cc_param_ns(t, SKUA_CC_RP_DELAY_RANGE) << ROOT_SHIFT) / root(packets);
}

static void shrink(struct turn *t, uint64_t rtt, uint64_t want)
{
	uint64_t window = window_of(t), by, most;

	by = window * cc_param(t, SKUA_CC_RP_DELAY_BETA) / 100 * (rtt - want) / rtt;
	most = window * cc_param(t, SKUA_CC_RP_DELAY_MAX_DEC) / 100;
	set_window(t, window - (by < most ? by : most));
}

/* There is one measurement in a round trip, and one decrease for it. */
static void delay_acked(struct turn *t, uint32_t bytes, bool measured)
{
	uint64_t rtt = le32_to_cpu(t->sqc->cc.rtt), want = target(t);

	if (cc_is(t, SKUA_CC_START) && cc_open(t, bytes, measured))
		cc_set(t, SKUA_CC_START, false);
	if (measured && rtt > want) {
		cc_set(t, SKUA_CC_START, false);
		shrink(t, rtt, want);
	} else if (measured && !cc_is(t, SKUA_CC_START)) {
		set_window(t, (uint64_t)window_of(t) + cc_param(t, SKUA_CC_RP_DELAY_AI));
	}
}

static void delay_timeout(struct turn *t)
{
	cc_set(t, SKUA_CC_START, false);
	set_window(t, 0);
}

static void delay_start(struct turn *t)
{
	uint32_t window = cc_param(t, SKUA_CC_RP_INITIAL_WINDOW);

	cc_begin(t);
	cc_set(t, SKUA_CC_START, true);
	set_window(t, window ? window : UINT32_MAX);
}

const struct cc_ops cc_delay = {
	.start = delay_start,
	.acked = delay_acked,
	.timeout = delay_timeout,
};
