// SPDX-License-Identifier: GPL-2.0
/* Congestion control: windows, and rates that open, of QPs that begin. */
#include "cc_test.h"

/* --- windows --- */

/* The other side does not answer: what goes out is the window. */
static void window_binds(enum skua_cc_algorithm alg, uint32_t ext)
{
	struct rc_opt opt = { .ext = { ext, ext }, .mtu_code = 3, .timeout = 20 };
	struct wire_look w[2];
	struct rc rc;

	open_cc(&rc, &opt, alg, 16384, w);
	/* Responses are lost: a window of 16 packets of 1024 bytes, and no more. */
	w[1].lose = UINT32_MAX;
	write_some(&rc, 0, 1 << 20);
	assert_int_equal(w[0].frames, 16);
	assert_true(held_back(&rc, 0));
	/* Of the side that answers nothing is held back. */
	assert_false(held_back(&rc, 1));
	w[1].lose = 0;
	rc_pump_for(&rc, 30 * 1000 * MSEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

static void windows_bind(void **rig)
{
	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		window_binds(SKUA_CC_DCQCN, ext);
		window_binds(SKUA_CC_DELAY, ext);
	}
}

/* What is acknowledged opens it, until it does not bind: then nothing is held back. */
static void window_opens(void **rig)
{
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		struct rc_opt opt = { .ext = { ext, ext } };

		open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
		assert_false(held_back(&rc, 0));
		write_done(&rc, 0, 40960);
		assert_true(held_back(&rc, 0));
		assert_int_equal(le32_to_cpu(state(&rc, 0).window), 16384 + 40960);
		for (unsigned int i = 0; i < 8; i++)
			write_done(&rc, 0, 300000);
		assert_false(held_back(&rc, 0));
		rc_close(&rc);
	}
}

/* A CNP or an ACK timer that expires ends it with a rate: what was delivered. */
static void window_ends(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	write_done(&rc, 0, 64);
	rc_pump_for(&rc, 100 * USEC);
	assert_true(held_back(&rc, 0));
	w[0].mark = 1;
	write_done(&rc, 0, 64);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), 0);
	assert_true(rate(&rc, 0) > 0);
	rc_close(&rc);

	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	write_done(&rc, 0, 64);
	w[0].lose = 4;
	write_some(&rc, 0, 16384);
	rc_pump_for(&rc, 1000 * MSEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), 0);
	rc_close(&rc);
}

/* Side 0 asks side 1 for @num READs of 64 KiB, which it answers for 16 KiB in 50 us at first. */
static void ask(struct rc *rc, unsigned int num)
{
	SET(rc, 1, RP_TIME_RESET, 50);
	SET(rc, 1, RP_RATE_REDUCE_MONITOR_PERIOD, 10);
	for (unsigned int i = 0; i < num; i++)
		rc_post_quiet(rc, 0, &rc->s[0].qp,
			      &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 65536,
					       .quiet = i + 1 != num });
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
}

#define FIRST_KBPS	(16384u * 8000 / 50)

/* READ responses begin with a rate, which doubles while it is used, until it does not bind. */
static void rate_opens(void **rig)
{
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		struct rc_opt opt = { .ext = { ext, ext }, .log_sq = 7, .timeout = 20 };
		uint64_t most = 0;

		open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
		assert_int_equal(rate(&rc, 1), 0);
		ask(&rc, 100);
		for (unsigned int k = 0; k < 4; k++) {
			rc_pump_for(&rc, 99 * USEC);
			assert_int_equal(rate(&rc, 1), FIRST_KBPS << k);
			/* The rate, and a burst and a packet beyond it. */
			most += 32768u << k;
			assert_in_range(w[1].bytes, most * 9 / 10, most + 12288 + (2100u << k));
			rc_pump_for(&rc, USEC);
		}
		rc_pump_for(&rc, 5 * MSEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_false(held_back(&rc, 1));
		assert_int_equal(rate(&rc, 1), 0);
		/* Once: what comes later finds no limit. */
		ask(&rc, 1);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_false(held_back(&rc, 1));
		rc_close(&rc);
	}
}

/* What is not used does not open: a rate that nobody has tried is not known to be good. */
static void rate_opens_by_use(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	SET(&rc, 1, RP_TIME_RESET, 50);
	for (unsigned int k = 0; k < 20; k++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 2048 });
		rc_pump_for(&rc, 100 * USEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(rate(&rc, 1), FIRST_KBPS);
	}
	rc_close(&rc);
}

/* A CNP ends it: from the rate that it has come to. */
static void rate_ends(void **rig)
{
	struct rc_opt opt = { .log_sq = 7, .timeout = 20 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	ask(&rc, 100);
	rc_pump_for(&rc, 150 * USEC);
	assert_int_equal(rate(&rc, 1), 2 * FIRST_KBPS);
	w[1].mark = 1;
	rc_pump_for(&rc, 30 * USEC);
	assert_int_equal(w[0].cnps, 1);
	assert_int_equal(rate(&rc, 1), cut(2 * FIRST_KBPS, 1023, 11));
	assert_int_equal(le32_to_cpu(state(&rc, 1).target), 2 * FIRST_KBPS);
	/* And rises as any other. */
	rc_pump_for(&rc, 100 * USEC);
	assert_in_range(rate(&rc, 1), 2 * FIRST_KBPS * 7 / 10, 2 * FIRST_KBPS);
	rc_close(&rc);

	/* Nor if the rate has reached the largest one that is allowed, below the port's. */
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	SET(&rc, 1, RP_MAX_RATE, 4000);
	ask(&rc, 100);
	rc_pump_for(&rc, 250 * USEC);
	assert_int_equal(rate(&rc, 1), 4000000);
	w[1].mark = 1;
	rc_pump_for(&rc, 30 * USEC);
	assert_int_equal(w[0].cnps, 1);
	assert_int_equal(rate(&rc, 1), cut(4000000, 1023, 11));
	rc_close(&rc);

	/* A rate that was chosen for this moment. */
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	SET(&rc, 1, RP_RATE_TO_SET_ON_FIRST_CNP, 1000);
	ask(&rc, 100);
	rc_pump_for(&rc, 150 * USEC);
	w[1].mark = 1;
	rc_pump_for(&rc, 30 * USEC);
	assert_int_equal(rate(&rc, 1), 1000000);
	rc_close(&rc);
}

/* A QP whose window still opens goes on with the rate that this is; one that is free stays so. */
static void rate_after_window(void **rig)
{
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (unsigned int opened = 0; opened < 2; opened++) {
		struct rc_opt opt = { .log_sq = 7, .timeout = 20 };

		open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
		for (unsigned int i = 0; i < (opened ? 4 : 1); i++)
			write_done(&rc, 1, opened ? 300000 : 16384);
		assert_int_equal(held_back(&rc, 1), !opened);
		ask(&rc, 10);
		rc_pump_for(&rc, USEC);
		assert_int_equal(rate(&rc, 1), opened ? 0 : 2 * FIRST_KBPS);
		assert_int_equal(le32_to_cpu(state(&rc, 1).window), 0);
		rc_pump_for(&rc, 5 * MSEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_close(&rc);
	}
}

/* By delay: it grows by a packet each short round trip, shrinks with long ones. */
static void window_by_delay(void **rig)
{
	struct rc_opt opt = { .timeout = 20 };
	struct wire_look w[2];
	uint32_t before, after;
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DELAY, 16384, w);
	assert_int_equal(w[0].tos & 3, 0);
	for (unsigned int i = 0; i < 20; i++)
		write_done(&rc, 0, 100000);
	before = le32_to_cpu(state(&rc, 0).window);
	assert_int_equal(before, ENGINE_WINDOW * 4096);
	/* The answer comes late: side 1's clock is side 0's, so that is the wire's doing. */
	w[1].lose = 1;
	write_some(&rc, 0, 64);
	rc_pump_for(&rc, 100 * USEC);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), before);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
	rc_pump(&rc);
	/* 100 us; the target is 60 and 40 divided by the root of 128. */
	after = le32_to_cpu(state(&rc, 0).window);
	assert_in_range(after, before - before / 100 * 35, before - before / 100 * 25);
	write_some(&rc, 0, 64);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), after + 4096);
	/* All is lost until the timer expires: one packet. */
	w[0].lose = UINT32_MAX;
	write_some(&rc, 0, 64);
	rc_pump_for(&rc, 5000 * MSEC);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), 4096);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_bind),
		cmocka_unit_test(window_opens),
		cmocka_unit_test(window_ends),
		cmocka_unit_test(rate_opens),
		cmocka_unit_test(rate_opens_by_use),
		cmocka_unit_test(rate_ends),
		cmocka_unit_test(rate_after_window),
		cmocka_unit_test(window_by_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
