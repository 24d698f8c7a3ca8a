// SPDX-License-Identifier: GPL-2.0
/* When the model's loop looks for more work, and when it sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "spin.h"

#define STEP	1000u		/* between looks */

static struct spin s;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	spin_init(&s);
	now = 1000000000;
	return 0;
}

/*
 * One round: @source's work, then looks, and the next work after @gap: if @blocked only once
 * the loop sleeps, so long afterwards. Returns the nanoseconds spent looking.
 */
static uint64_t round_of(unsigned int source, uint64_t gap, bool blocked)
{
	uint64_t start, spent;

	spin_work(&s, source, now);
	start = now;
	while (spin_looks(&s, now)) {
		if (!blocked && now - start >= gap)
			return now - start;
		now += STEP;
	}
	spent = now - start;
	now = blocked ? now + gap : start + (gap > spent ? gap : spent);
	return spent;
}

/* What comes soon is waited for each time; what comes late is not, but now and then. */
static void test_learns(void **state)
{
	unsigned int looks = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++)
		assert_in_range(round_of(0, 5000, false), 5000, 5000 + STEP);
	assert_false(spin_moves(&s, now));
	for (unsigned int i = 0; i < 1000; i++)
		looks += round_of(0, 1000000, false) > 0;
	assert_in_range(looks, 1000 / SPIN_EVERY_MAX, 40);
	/* Slow traffic is no reason to go. */
	assert_false(spin_moves(&s, now));
	/* It comes soon again: found out within so many rounds. */
	for (unsigned int i = 0; i < SPIN_EVERY_MAX; i++)
		round_of(0, 5000, false);
	for (unsigned int i = 0; i < 100; i++)
		assert_in_range(round_of(0, 5000, false), 5000, 5000 + STEP);
}

/* Two programs that answer each other, one of which needs the loop's processor. */
static void test_answers(void **state)
{
	unsigned int vain = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) {
		vain += round_of(0, 3000, true) > 0;
		assert_false(spin_moves(&s, now));
		assert_in_range(round_of(1, 5000, false), 5000, 5000 + STEP);
		assert_false(spin_moves(&s, now));
	}
	assert_in_range(vain, 1, 40);
}

/*
 * A stream whose sender needs the loop's processor: it wants another one soon, seldom if
 * that does not help, and soon again after it has helped.
 */
static void test_moves(void **state)
{
	unsigned int moves = 0;
	uint64_t first = now;

	(void)state;
	for (unsigned int i = 0; i < SPIN_LOST + 1; i++)
		round_of(0, 3000, true);
	spin_work(&s, 0, now);
	assert_false(spin_looks(&s, now));
	assert_true(spin_moves(&s, now));
	assert_in_range(now - first, 1, 200000);
	/* It looks there first. */
	assert_true(spin_looks(&s, now));
	while (now - first < 1000000000) {
		round_of(0, 3000, true);
		moves += spin_moves(&s, now);
	}
	assert_in_range(moves, 5, 12);
	for (unsigned int i = 0; i < 2 * SPIN_GOOD + SPIN_EVERY_MAX; i++)
		round_of(0, 3000, false);
	first = now;
	while (!spin_moves(&s, now))
		round_of(0, 3000, true);
	assert_in_range(now - first, 1, 2 * SPIN_MOVE_MIN);
}

/* The loop had no processor while it looked: what has come meanwhile was not missed. */
static void test_preempted(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		spin_work(&s, 0, now);
		assert_true(spin_looks(&s, now));
		now += 4000000;
		assert_true(spin_looks(&s, now));
		now += STEP;
	}
	spin_work(&s, 0, now);
	assert_int_equal(s.by[0].misses, 0);
	assert_true(spin_looks(&s, now));
	assert_true(spin_looks(&s, now + SPIN_LOOK));
	assert_false(spin_looks(&s, now + SPIN_LOOK + STEP));
	assert_int_equal(s.by[0].misses, 1);
}

/* Work that goes on without a look says nothing of looks. */
static void test_goes_on(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		spin_work(&s, 0, now);
		now += 50000;
	}
	assert_true(spin_looks(&s, now));
	assert_int_equal(s.paid, 0);
	assert_int_equal(s.lost, 0);
	/* More sources than it knows are one. */
	spin_work(&s, SPIN_SOURCES + 5, now);
	assert_int_equal(s.source, SPIN_SOURCES - 1);
}

#define T(test)	cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_learns), T(test_answers), T(test_moves), T(test_preempted),
		T(test_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
