// SPDX-License-Identifier: GPL-2.0
/*
 * The driver's recovery.c against a device and a path of a hundred lines, which know for each
 * PSN what became of it: random traces, PSNs that wrap, reports that make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../drivers/net/ethernet/skua/recovery.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define MASK		0xffffffu
#define RING		SKUA_RECOVERY_RING
#define RTT		40000u		/* ns */
#define WAIT		100000u		/* as the device tells it */
#define GAP		80u		/* from one packet to the next */
#define FLIGHTS		1024u

static uint64_t rnd;

static uint32_t draw(uint32_t below)
{
	rnd = rnd * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((rnd >> 33) * below >> 31);
}

/* PSNs here are numbers from 0 on, not cut to 24 bits; @psn0 is added where they are told. */
struct flight {
	uint32_t psn;
	uint64_t at;		/* arrives then, 0: not under way */
};

/**
 * struct path - a device, a path, and what it knows
 * @r: under test
 * @ring: commands
 * @ci: of them, dealt with
 * @psn0: PSN of number 0
 * @total: PSNs to be sent
 * @una: number of the first that is not complete
 * @max: first number never sent
 * @window: how many are outstanding at most
 * @told: it was reported that this one arrived
 * @came: it arrived
 * @sent: how often it was sent
 * @flight: packets under way
 * @loss: of 1000 packets
 * @late: of 1000 packets, so many are late by up to @hold ns
 * @hold: see @late
 * @open: the device reports
 * @serial: of it
 * @now: time
 * @again: packets sent again
 * @lost: packets lost
 * @far: packets that were later than a driver tolerates that has learned nothing
 */
struct path {
	struct skua_recovery r;
	struct skua_recovery_cmd ring[RING];
	uint32_t ci;
	uint32_t psn0, total, una, max, window;
	bool told[1 << 14], came[1 << 14];
	uint8_t sent[1 << 14];
	struct flight flight[FLIGHTS];
	uint32_t loss, late, hold;
	bool open;
	uint32_t serial;
	uint64_t now;
	uint32_t again, lost, far;
};

static uint32_t wire_psn(const struct path *p, uint32_t n)
{
	return (p->psn0 + n) & MASK;
}

static void put(struct path *p, uint32_t n)
{
	uint32_t k = 0, late;

	p->sent[n]++;
	if (draw(1000) < p->loss) {
		p->lost++;
		return;
	}
	while (p->flight[k].at)
		assert_true(++k < FLIGHTS);
	p->flight[k].psn = n;
	late = draw(1000) < p->late ? draw(p->hold) : 0;
	p->far += late > p->window / 4 * GAP;
	p->flight[k].at = p->now + RTT + late;
}

static void event(struct path *p, enum skua_recovery_kind kind, uint32_t word, uint64_t bits)
{
	uint32_t cum = p->una;
	struct skua_eqe_recovery e = {
		.qpn = le32_encode_bits(7, SKUA_RECOVERY_QPN) |
		       le32_encode_bits(p->ci & 0xff, SKUA_RECOVERY_DONE),
		.serial = cpu_to_le32(p->serial),
		.una = cpu_to_le32(wire_psn(p, p->una)),
		.bits = cpu_to_le64(bits),
	};

	while (cum < p->max && p->came[cum])
		cum++;
	e.what = le32_encode_bits(kind, SKUA_RECOVERY_KIND) |
		 le32_encode_bits(word, SKUA_RECOVERY_WORD) |
		 le32_encode_bits(cum - p->una, SKUA_RECOVERY_CUM) |
		 le32_encode_bits(p->max - p->una, SKUA_RECOVERY_MAX);
	skua_recovery_event(&p->r, &e, p->now);
	for (uint32_t i = 0; kind == SKUA_RECOVERY_ARRIVED && i < 64; i++) {
		if (bits >> i & 1)
			p->told[p->una + 64 * word + i] = true;
	}
}

/*
 * PSN @n arrived. Responses (odd messages of 16) are completed by the driver's word only; the
 * rest is as soon as all before it is.
 */
static bool by_driver(uint32_t n)
{
	return n / 16 % 2;
}

static void settle(struct path *p)
{
	while (p->una < p->max && p->came[p->una] && (!p->open || !by_driver(p->una)))
		p->una++;
}

static void arrive(struct path *p, uint32_t n)
{
	bool expected = n == p->una;

	if (p->came[n])
		return;
	p->came[n] = true;
	if (expected && by_driver(n))
		p->una++;
	settle(p);
	if (!p->open && !expected) {
		p->open = true;
		p->serial++;
		event(p, SKUA_RECOVERY_OPEN, 0, WAIT | (uint64_t)RTT << 32);
	}
	if (!p->open)
		return;
	event(p, SKUA_RECOVERY_ARRIVED, n >= p->una ? (n - p->una) / 64 : 0,
	      n >= p->una ? 1ull << (n - p->una) % 64 : 0);
}

/* Nothing may be asked for that cannot be, or that is known to have arrived. */
static void send_again(struct path *p, uint32_t first, uint32_t end, bool alone)
{
	assert_true(first < end && end <= p->max);
	for (uint32_t n = first; n < end; n++) {
		/* The last one may be sent to learn what arrived. */
		assert_true(!p->told[n] || (alone && n + 1 == p->max));
		if (n < p->una || p->came[n])
			continue;
		p->again++;
		put(p, n);
	}
}

static void execute(struct path *p)
{
	uint32_t ci = p->ci;

	assert_true(p->r.pi - p->ci <= RING);
	for (; p->ci != p->r.pi; p->ci++) {
		const struct skua_recovery_cmd *c = &p->ring[p->ci % RING];
		uint32_t first = ((le32_to_cpu(c->first) - p->psn0 - p->una) << 8);
		uint32_t end = ((le32_to_cpu(c->end) - p->psn0 - p->una) << 8);
		uint32_t from = p->una + (uint32_t)((int32_t)first >> 8);
		uint32_t to = p->una + (uint32_t)((int32_t)end >> 8);

		if (le32_to_cpu(c->serial) != p->serial || !p->open)
			continue;
		if (le32_to_cpu(c->op) == SKUA_RECOVERY_SEND) {
			send_again(p, from, to, to - from == 1);
			continue;
		}
		assert_int_equal(le32_to_cpu(c->op), SKUA_RECOVERY_ADVANCE);
		for (; (int32_t)(to - p->una) > 0; p->una++)
			assert_true(p->came[p->una]);
		settle(p);
	}
	/* Of what was executed some tell, and some only with what comes next. */
	if (p->open && p->ci != ci && draw(4))
		event(p, SKUA_RECOVERY_ARRIVED, 0, 0);
}

static void check_close(struct path *p)
{
	uint32_t top = p->max;

	while (top > p->una && !p->came[top - 1])
		top--;
	if (!p->open || top > p->una)
		return;
	event(p, SKUA_RECOVERY_CLOSE, 0, 0);
	p->open = false;
	assert_false(p->r.open);
	assert_int_equal(p->r.deadline, 0);
}

/* Run until all has arrived. @slow: steps of time from one look of the driver to the next. */
static void run(struct path *p, uint32_t slow)
{
	uint64_t quiet = 0;

	for (uint64_t step = 0; p->una < p->total; step++) {
		uint32_t before = p->una;

		assert_true(step < 2000000);
		p->now += GAP;
		if (p->max < p->total && p->max - p->una < p->window)
			put(p, p->max++);
		for (uint32_t k = 0; k < FLIGHTS; k++) {
			if (!p->flight[k].at || p->flight[k].at > p->now)
				continue;
			p->flight[k].at = 0;
			arrive(p, p->flight[k].psn);
		}
		if (step % slow == 0) {
			if (p->r.deadline && p->now >= p->r.deadline)
				skua_recovery_timer(&p->r, p->now);
			skua_recovery_judge(&p->r, p->now);
			execute(p);
		}
		check_close(p);
		/* What a device does when nothing comes for long. */
		quiet = before == p->una ? quiet + 1 : 0;
		if (!p->open && quiet > 20 * WAIT / GAP && p->max > p->una) {
			p->open = true;
			p->serial++;
			event(p, SKUA_RECOVERY_PROBE, 0, WAIT | (uint64_t)RTT << 32);
			quiet = 0;
		}
	}
	assert_int_equal(p->r.bad, 0);
}

static struct path *path(uint32_t seed, uint32_t log_window)
{
	static const uint32_t psn0[] = { 0, 0xfffff0, 0xfff000, 0x7ffff0, 0x800000, 0xffffff };
	struct path *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	rnd = seed;
	p->psn0 = psn0[seed % N(psn0)];
	p->total = 6000;
	p->window = 1u << log_window;
	p->serial = 41 + seed;
	p->now = 1 + (uint64_t)seed * 1000000007;
	skua_recovery_init(&p->r, p->ring, log_window);
	return p;
}

/* All arrives, and hardly more is sent again than was lost. */
static void test_loss(void **state)
{
	static const uint32_t loss[] = { 1, 10, 50, 200 };

	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		uint32_t log = SKUA_EXT_LOG_WINDOW_MIN + seed % 5;
		struct path *p = path(seed, log);

		p->loss = loss[seed % N(loss)];
		p->late = seed % 3 ? 0 : 100;
		p->hold = 10 * GAP;
		run(p, 1 + seed % 7);
		if (log >= 8 && p->loss <= 50 && p->again * 100 > p->lost * 105 + 500)
			fail_msg("seed %u: loss %u, lost %u, sent again %u", seed, p->loss,
				 p->lost, p->again);
		free(p);
	}
}

/* Reordering within a quarter of the window, and a round trip, has nothing sent again. */
static void test_reorder(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct path *p = path(seed, SKUA_EXT_LOG_WINDOW_MAX);

		p->late = 200;
		p->hold = 64 * GAP;
		run(p, 1 + seed % 5);
		assert_int_equal(p->again, 0);
		free(p);
	}
}

/* A path that reorders farther than the bound makes it wider: few packets are sent again. */
static void test_adapt(void **state)
{
	struct path *p = path(3, 8);

	(void)state;
	p->late = 100;
	p->hold = 150 * GAP;
	run(p, 1);
	assert_true(p->again);
	assert_true(p->far > 100 && p->again * 10 < p->far);
	assert_true(p->r.distance > 64 && p->r.distance <= 192);
	free(p);
}

/* Whatever a device reports, memory and ring keep their bounds. */
static void test_garbage(void **state)
{
	struct skua_recovery_cmd *ring = calloc(RING, sizeof(*ring));
	struct skua_recovery *r = calloc(1, sizeof(*r));
	uint64_t now = 1;

	(void)state;
	assert_non_null(ring);
	assert_non_null(r);
	rnd = 99;
	skua_recovery_init(r, ring, 9);
	for (uint32_t i = 0; i < 200000; i++) {
		bool near = draw(4);
		struct skua_eqe_recovery e = {
			.qpn = cpu_to_le32(draw(1u << 31)),
			.serial = cpu_to_le32(near ? r->serial : draw(4)),
			.una = cpu_to_le32(near ? r->una + draw(20) : draw(1u << 31)),
			.what = cpu_to_le32(draw(1u << 31)),
			.bits = cpu_to_le64((uint64_t)draw(1u << 31) << 33 | draw(1u << 31)),
		};
		uint32_t pi = r->pi;

		if (near)
			le32p_replace_bits(&e.what, 1 + draw(6), SKUA_RECOVERY_KIND);
		if (near && draw(2))
			le32p_replace_bits(&e.qpn, r->pi & 0xff, SKUA_RECOVERY_DONE);
		now += draw(100000);
		skua_recovery_event(r, &e, now);
		skua_recovery_judge(r, now);
		skua_recovery_timer(r, now);
		assert_true(r->pi - r->done <= RING && r->pi - pi <= RING);
		assert_true(!r->open || r->deadline > now);
		assert_true(r->distance <= r->window);
		for (; pi != r->pi; pi++)
			assert_true(le32_to_cpu(ring[pi % RING].end) <= MASK);
	}
	assert_true(r->bad && r->stale && r->pi);
	free(ring);
	free(r);
}

/* Nobody answers: it ends. */
static void test_silence(void **state)
{
	struct path *p = path(1, 9);
	uint32_t looks = 0;

	(void)state;
	p->open = true;
	p->max = 100;
	event(p, SKUA_RECOVERY_OPEN, 0, WAIT);
	event(p, SKUA_RECOVERY_ARRIVED, 0, 2);
	skua_recovery_judge(&p->r, p->now);
	while (p->r.deadline) {
		assert_true(++looks < 100);
		assert_true(p->r.deadline > p->now);
		p->now = p->r.deadline;
		skua_recovery_timer(&p->r, p->now);
	}
	assert_false(p->r.open);
	assert_true(p->r.pi);
	free(p);
}

/* A report as the device makes it, of @ahead PSNs that are outstanding from @una on. */
static void tell(struct skua_recovery *r, enum skua_recovery_kind kind, uint32_t una,
		 uint32_t ahead, uint32_t word, uint64_t bits, uint64_t now)
{
	const struct skua_eqe_recovery e = {
		.qpn = le32_encode_bits(7, SKUA_RECOVERY_QPN) |
		       le32_encode_bits(r->pi & 0xff, SKUA_RECOVERY_DONE),
		.serial = cpu_to_le32(1),
		.una = cpu_to_le32(una & MASK),
		.what = le32_encode_bits(kind, SKUA_RECOVERY_KIND) |
			le32_encode_bits(word, SKUA_RECOVERY_WORD) |
			le32_encode_bits(ahead, SKUA_RECOVERY_MAX),
		.bits = cpu_to_le64(bits),
	};

	skua_recovery_event(r, &e, now);
	skua_recovery_judge(r, now);
	assert_int_equal(r->bad, 0);
}

/* The peer's window is the smaller one: a quarter of that one tells of a loss. */
static void test_window(void **state)
{
	struct skua_recovery_cmd *ring = calloc(RING, sizeof(*ring));
	struct skua_recovery *r = calloc(1, sizeof(*r));

	(void)state;
	assert_non_null(ring);
	assert_non_null(r);
	for (uint32_t log = SKUA_EXT_LOG_WINDOW_MIN; log <= SKUA_EXT_LOG_WINDOW_MAX; log++) {
		uint32_t una = 0xfffff0, far = (1u << log) / 4;

		memset(r, 0, sizeof(*r));
		skua_recovery_init(r, ring, SKUA_EXT_LOG_WINDOW_MAX);
		tell(r, SKUA_RECOVERY_OPEN, una, 1u << log, log, WAIT, 1);
		tell(r, SKUA_RECOVERY_ARRIVED, una, 1u << log, (far - 1) / 64,
		     1ull << (far - 1) % 64, 2);
		assert_int_equal(r->pi, 0);
		tell(r, SKUA_RECOVERY_ARRIVED, una, 1u << log, far / 64, 1ull << far % 64, 3);
		assert_int_equal(r->pi, 1);
		assert_int_equal(le32_to_cpu(ring[0].op), SKUA_RECOVERY_SEND);
		assert_int_equal(le32_to_cpu(ring[0].first), una);
		assert_int_equal(le32_to_cpu(ring[0].end), una + 1);
	}
	free(ring);
	free(r);
}

/* More is lost than there are commands: the rest waits until the device has dealt with some. */
static void test_full(void **state)
{
	struct skua_recovery_cmd *ring = calloc(RING, sizeof(*ring));
	struct skua_recovery *r = calloc(1, sizeof(*r));
	struct skua_eqe_recovery e = {
		.serial = cpu_to_le32(1),
		.what = le32_encode_bits(SKUA_RECOVERY_ARRIVED, SKUA_RECOVERY_KIND) |
			le32_encode_bits(512, SKUA_RECOVERY_MAX),
	};

	(void)state;
	assert_non_null(ring);
	assert_non_null(r);
	skua_recovery_init(r, ring, SKUA_EXT_LOG_WINDOW_MAX);
	tell(r, SKUA_RECOVERY_OPEN, 0, 512, SKUA_EXT_LOG_WINDOW_MAX, WAIT, 1);
	for (uint32_t word = 0; word < 8; word++) {
		e.what &= ~cpu_to_le32(SKUA_RECOVERY_WORD);
		e.what |= le32_encode_bits(word, SKUA_RECOVERY_WORD);
		e.bits = cpu_to_le64(0xaaaaaaaaaaaaaaaa);
		e.qpn = cpu_to_le32(7);
		skua_recovery_event(r, &e, 2);
	}
	skua_recovery_judge(r, 2);
	assert_int_equal(r->pi, RING);
	assert_int_equal(le32_to_cpu(ring[RING - 1].first), 2 * RING - 2);
	e.bits = 0;
	e.qpn |= le32_encode_bits(RING / 2, SKUA_RECOVERY_DONE);
	skua_recovery_event(r, &e, 3);
	skua_recovery_judge(r, 3);
	assert_int_equal(r->pi, RING + RING / 2);
	assert_int_equal(le32_to_cpu(ring[0].first), 2 * RING);
	assert_int_equal(r->bad, 0);
	free(ring);
	free(r);
}

/*
 * What was sent again arrives: sooner than within half a round trip of the command it cannot be
 * the answer to it, and the path reorders farther than was thought. A driver that looks late, and
 * hears at once that it was sent and that it came, has learned nothing.
 */
static void test_too_soon(void **state)
{
	struct skua_recovery_cmd *ring = calloc(RING, sizeof(*ring));
	struct skua_recovery *r = calloc(1, sizeof(*r));
	static const struct {
		uint64_t told, came;
		bool soon;
	} cases[] = {
		{ 2000, 5000, true }, { 5000, 5000, true }, { 2000, 2000 + RTT, false },
		{ 2000 + RTT, 2000 + RTT, false }, { 300000, 300000, false },
		{ 300000, 301000, false }, { 70000000, 70000000, false },
	};

	(void)state;
	assert_non_null(ring);
	assert_non_null(r);
	for (size_t k = 0; k < N(cases); k++) {
		uint32_t una = 0xffffff;
		uint64_t at = 1000000;

		memset(r, 0, sizeof(*r));
		skua_recovery_init(r, ring, SKUA_EXT_LOG_WINDOW_MAX);
		tell(r, SKUA_RECOVERY_OPEN, una, 512, SKUA_EXT_LOG_WINDOW_MAX,
		     WAIT | (uint64_t)RTT << 32, at);
		tell(r, SKUA_RECOVERY_ARRIVED, una, 512, 2, 1, at);
		assert_int_equal(r->pi, 1);
		if (cases[k].told != cases[k].came)
			tell(r, SKUA_RECOVERY_ARRIVED, una, 512, 0, 0, at + cases[k].told);
		tell(r, SKUA_RECOVERY_ARRIVED, una + 1, 511, 0, 0, at + cases[k].came);
		assert_int_equal(r->distance > 128, cases[k].soon);
		assert_int_equal(r->extra > 0, cases[k].soon);
	}
	free(ring);
	free(r);
}

/* From one report to the next more is acknowledged than there is room for. */
static void test_jump(void **state)
{
	static const uint32_t jumps[] = { 500, 512, 513, 1000, 5000, 1u << 20, 1u << 22 };
	struct skua_recovery_cmd *ring = calloc(RING, sizeof(*ring));
	struct skua_recovery *r = calloc(1, sizeof(*r));

	(void)state;
	assert_non_null(ring);
	assert_non_null(r);
	for (size_t k = 0; k < N(jumps); k++) {
		uint32_t una = 0xfffff0, next = (una + jumps[k]) & MASK;
		/* How late the first one was is known only if there is room for it. */
		uint32_t distance = jumps[k] > 512 ? 128 : 160;

		memset(r, 0, sizeof(*r));
		skua_recovery_init(r, ring, SKUA_EXT_LOG_WINDOW_MAX);
		tell(r, SKUA_RECOVERY_OPEN, una, 512, SKUA_EXT_LOG_WINDOW_MAX, WAIT, 1);
		/* The first one is missing, and others that have not been sent again. */
		tell(r, SKUA_RECOVERY_ARRIVED, una, 512, 1, 0x8000000000000001, 2);
		assert_int_equal(r->pi, 0);
		tell(r, SKUA_RECOVERY_ARRIVED, next, 300, 3, 1ull << 8, 3);
		assert_int_equal(r->una, next);
		assert_int_equal(r->max, (next + 300) & MASK);
		assert_int_equal(r->pi, 1);
		assert_int_equal(le32_to_cpu(ring[0].first), next);
		assert_int_equal(r->distance, distance);
		assert_int_equal(le32_to_cpu(ring[0].end), (next + 201 - distance) & MASK);
		tell(r, SKUA_RECOVERY_CLOSE, (next + jumps[k]) & MASK, 0, 0, 0, 4);
		assert_false(r->open);
	}
	free(ring);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_adapt),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_too_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
