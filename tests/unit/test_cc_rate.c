// SPDX-License-Identifier: GPL-2.0
/* Congestion control: rates by the numbers, of requests and of READ responses. */
#include "cc_test.h"

/* --- DCQCN by the numbers --- */

static void decreases(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint32_t want;
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	assert_int_equal(w[0].tos & 3, 2);
	cnp(&rc);
	/* Nothing is known: from the port's rate, by half. */
	want = cut(LINE, 1023, 11);
	assert_int_equal(rate(&rc, 0), want);
	assert_int_equal(le32_to_cpu(state(&rc, 0).target), LINE);
	/* One in the time, however many come; the next one at its end. */
	cnp(&rc);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), want);
	rc_pump_for(&rc, 9999);
	write_done(&rc, 0, 64);
	assert_int_equal(rate(&rc, 0), want);
	rc_pump_for(&rc, 1);
	write_done(&rc, 0, 64);
	want = cut(want, 1023, 11);
	assert_int_equal(rate(&rc, 0), want);
	assert_int_equal(le32_to_cpu(state(&rc, 0).target), cut(LINE, 1023, 11));
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RP_CNP_HANDLED), 3);
	/* Not by more than is allowed, nor below the least. */
	rc_pump_for(&rc, 10 * USEC);
	SET(&rc, 0, RP_MIN_DEC_FAC, 90);
	cnp(&rc);
	want = (uint32_t)((uint64_t)want * 90 / 100);
	assert_int_equal(rate(&rc, 0), want);
	rc_pump_for(&rc, 10 * USEC);
	SET(&rc, 0, RP_MIN_RATE, 30000);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), 30000000);
	SET(&rc, 0, RP_MIN_RATE, 1);
	SET(&rc, 0, RP_MIN_DEC_FAC, 1);
	SET(&rc, 0, RP_GD, 13);
	rc_pump_for(&rc, 10 * USEC);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), cut(30000000, 1023, 13));
	rc_close(&rc);
}

static uint32_t middle(uint64_t a, uint64_t b)
{
	return (uint32_t)((a + b + 1) / 2);
}

/*
 * A CNP that comes too early, of a QP that has nothing to send at the end of the period: the decrease
 * is as of then, and the rate rises since.
 */
static void decrease_is_not_late(void **rig)
{
	struct rc_opt opt = { 0 };
	uint32_t want, target = 8000000;
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_TIME_RESET, 1000);
	SET(&rc, 0, RP_THRESHOLD, 1);
	SET(&rc, 0, RP_AI_RATE, 5);
	SET(&rc, 0, RP_RATE_TO_SET_ON_FIRST_CNP, target / 1000);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), target);
	rc_pump_for(&rc, 5 * USEC);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), target);
	rc_pump_for(&rc, 3100 * USEC);
	write_done(&rc, 0, 64);
	want = middle(cut(target, 1023, 11), target);
	for (unsigned int i = 0; i < 2; i++) {
		target += 5000;
		want = middle(want, target);
	}
	assert_int_equal(le32_to_cpu(state(&rc, 0).target), target);
	assert_int_equal(rate(&rc, 0), want);
	rc_close(&rc);
}

/* Acknowledgments are not subject to the rate, so they do not use it up either. */
static void acks_are_free(void **rig)
{
	struct rc_opt opt = { 0 };
	struct skua_cmd_query_qp_out before, after;
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	cnp(&rc);
	write_done(&rc, 0, 64);
	before = rc_query(&rc, 0);
	assert_true(le64_to_cpu(before.sqc.rate_time));
	for (unsigned int i = 0; i < 100; i++)
		write_done(&rc, 1, 64);
	after = rc_query(&rc, 0);
	assert_in_range(rc_cnt(&rc, 0, SKUA_CNT_TX_ACK), 100, 200);
	assert_int_equal(after.sqc.rate_time, before.sqc.rate_time);
	assert_int_equal(after.sqc.cc.bytes, before.sqc.cc.bytes);
	rc_close(&rc);
}

static void target_may_stay(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint32_t before;
	struct rc rc;

	(void)rig;
	for (uint32_t ati = 0; ati < 2; ati++) {
		dcqcn_open(&rc, &opt, w);
		SET(&rc, 0, RP_CLAMP_TGT_RATE, 0);
		SET(&rc, 0, RP_CLAMP_TGT_RATE_ATI, ati);
		cnp(&rc);
		rc_pump_for(&rc, 10 * USEC);
		cnp(&rc);
		assert_int_equal(le32_to_cpu(state(&rc, 0).target), LINE);
		rc_pump_for(&rc, MSEC);
		write_done(&rc, 0, 64);
		before = rate(&rc, 0);
		cnp(&rc);
		assert_int_equal(le32_to_cpu(state(&rc, 0).target), ati ? before : LINE);
		rc_close(&rc);
	}
}

static void first_rate_is_given(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_RATE_TO_SET_ON_FIRST_CNP, 7000);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), 7000000);
	rc_pump_for(&rc, 10 * USEC);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), cut(7000000, 1023, 11));
	rc_close(&rc);
}

/* Alpha: a period with a CNP takes it up, each one without, down. */
static void alpha(void **rig)
{
	const uint32_t one = 1 << 20, g = 256, part = g << 10;
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint64_t want;
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_DCE_TCP_RTT, 100);
	SET(&rc, 0, RP_DCE_TCP_G, g);
	SET(&rc, 0, RP_INITIAL_ALPHA_VALUE, 512);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), cut(LINE, 512, 11));
	assert_int_equal(le32_to_cpu(state(&rc, 0).alpha), one / 2);
	rc_pump_for(&rc, 100 * USEC);
	write_done(&rc, 0, 64);
	want = (uint64_t)one / 2 * (one - part) / one + part;
	assert_int_equal(le32_to_cpu(state(&rc, 0).alpha), want);
	rc_pump_for(&rc, 200 * USEC);
	write_done(&rc, 0, 64);
	want = want * (one - part) / one * (one - part) / one;
	assert_in_range(le32_to_cpu(state(&rc, 0).alpha), want - 2, want);
	/* Of CNPs it never becomes more than all. */
	for (unsigned int i = 0; i < 100; i++) {
		cnp(&rc);
		rc_pump_for(&rc, 100 * USEC);
	}
	assert_in_range(le32_to_cpu(state(&rc, 0).alpha), one - one / 50, one);
	rc_close(&rc);
}

/* Fast recovery, additive and hyper increase by time and bytes, and the end of it. */
static void increases(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint32_t want, target;
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_RATE_TO_SET_ON_FIRST_CNP, 8000);
	SET(&rc, 0, RP_THRESHOLD, 2);
	SET(&rc, 0, RP_AI_RATE, 100);
	SET(&rc, 0, RP_HAI_RATE, 1000);
	cnp(&rc);
	rc_pump_for(&rc, 10 * USEC);
	cnp(&rc);
	want = cut(8000000, 1023, 11);
	target = 8000000;
	assert_int_equal(rate(&rc, 0), want);
	for (unsigned int stage = 1; stage <= 4; stage++) {
		rc_pump_for(&rc, MSEC);
		write_done(&rc, 0, 64);
		/* The last two have no fast recovery left. */
		target += stage > 2 ? 100000 : 0;
		want = middle(want, target);
		assert_int_equal(rate(&rc, 0), want);
		assert_int_equal(le32_to_cpu(state(&rc, 0).target), target);
	}
	/* Bytes have come less far: as long, it is additive; then hyper, more each time. */
	SET(&rc, 0, RP_BYTE_RESET, 3000);
	for (unsigned int stage = 1; stage <= 4; stage++) {
		write_done(&rc, 0, 3000);
		target += stage > 2 ? 1000000 * (stage - 2) : 100000;
		if (stage == 4)
			target = 8000000 + 2 * 100000 + 2 * 100000 + 1000000 + 2000000;
		want = middle(want, target);
		assert_int_equal(rate(&rc, 0), want);
	}
	/* The port's rate is none. */
	rc_pump_for(&rc, 1000 * MSEC);
	write_done(&rc, 0, 64);
	assert_int_equal(rate(&rc, 0), 0);
	assert_false(held_back(&rc, 0));
	assert_int_equal(rc_query(&rc, 0).sqc.rate_deadline, 0);
	rc_close(&rc);
}

/* A greatest rate stays in force, and a limit that the user has set besides. */
static void other_limits(void **rig)
{
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_RATE),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
		.attr.rate_kbps = cpu_to_le32(1000000),
	};
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_MAX_RATE, 2000);
	cnp(&rc);
	rc_pump_for(&rc, 100 * MSEC);
	write_done(&rc, 0, 64);
	assert_int_equal(rate(&rc, 0), 2000000);
	in.qpn = cpu_to_le32(rc.s[0].qp.qpn);
	mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
	assert_int_equal(rc_query(&rc, 0).sqc.rate, cpu_to_le32(1000000));
	in.attr.rate_kbps = cpu_to_le32(50000000);
	mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
	assert_int_equal(rc_query(&rc, 0).sqc.rate, cpu_to_le32(2000000));
	in.attr.rate_kbps = 0;
	mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
	assert_int_equal(rc_query(&rc, 0).sqc.rate, cpu_to_le32(2000000));
	/* RESET forgets it. */
	assert_status(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RESET, 0, NULL), OK);
	assert_int_equal(rc_query(&rc, 0).sqc.rate, 0);
	rc_close(&rc);
}

/* --- the rate is kept, of requests and of READ responses --- */

static void keeps(enum skua_wqe_op op, uint32_t ext)
{
	const uint32_t kbps = 1000000;
	struct rc_opt opt = { .ext = { ext, ext }, .log_sq = 7 };
	int from = op == SKUA_WQE_READ;
	struct wire_look w[2];
	uint64_t bytes;
	struct rc rc;

	open_cc(&rc, &opt, SKUA_CC_DCQCN, 0, w);
	write_done(&rc, 0, 64);
	SET(&rc, from, RP_RATE_TO_SET_ON_FIRST_CNP, kbps / 1000);
	SET(&rc, from, RP_TIME_RESET, 131071);
	SET(&rc, from, RP_BYTE_RESET, 0);
	for (unsigned int i = 0; i < 60; i++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp,
			      &(struct rc_wr){ .op = op, .len = 65536, .quiet = true });
	w[1 - from].mark = 1;
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump_for(&rc, USEC);
	if (!w[1 - from].cnps)
		cnp(&rc);
	rc_pump_for(&rc, USEC);
	rc_close(&rc);

	/* Marked from the first packet on: the first one, and nothing else, goes before. */
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 0, w);
	SET(&rc, from, RP_RATE_TO_SET_ON_FIRST_CNP, kbps / 1000);
	SET(&rc, from, RP_TIME_RESET, 131071);
	SET(&rc, from, RP_BYTE_RESET, 0);
	w[from].mark = UINT32_MAX;
	rc_post(&rc, 0, &(struct rc_wr){ .op = op, .len = 64 });
	rc_pump(&rc);
	assert_int_equal(rate(&rc, from), kbps);
	w[from].mark = 0;
	bytes = w[from].bytes;
	for (unsigned int i = 0; i < 60; i++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp,
			      &(struct rc_wr){ .op = op, .len = 65536, .quiet = true });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump_for(&rc, 20 * MSEC);
	bytes = w[from].bytes - bytes;
	/* 20 ms at 1 Gbit/s; a burst and a packet more or less. */
	assert_in_range(bytes, 2500000 - 16384, 2500000 + 16384);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	rc_close(&rc);
}

static void rate_is_kept(void **rig)
{
	(void)rig;
	keeps(SKUA_WQE_WRITE, 0);
	keeps(SKUA_WQE_WRITE, SKUA_EXT_ALWAYS);
	keeps(SKUA_WQE_READ, 0);
	keeps(SKUA_WQE_READ, SKUA_EXT_ALWAYS);
}

/*
 * Nobody is there to wake up a queue that waits for its rate but the rate's own deadline, as no
 * ack timer runs. It is kept when CNPs come meanwhile (@cnps), when bytes raise the rate, and
 * when the other half of the QP has a turn (@both: requests in both directions).
 */
static void goes_on(enum skua_wqe_op op, uint32_t ext, bool cnps, bool both)
{
	const uint32_t kbps = 1000000;
	struct rc_opt opt = { .ext = { ext, ext }, .log_sq = 8, .timeout = 32 };
	int from = op == SKUA_WQE_READ;
	struct wire_look w[2];
	struct rc rc;

	open_cc(&rc, &opt, SKUA_CC_DCQCN, 0, w);
	for (int i = 0; i < 2; i++) {
		SET(&rc, i, RP_RATE_TO_SET_ON_FIRST_CNP, kbps / 1000);
		SET(&rc, i, RP_MIN_RATE, kbps / 1000);
		SET(&rc, i, RP_MAX_RATE, kbps / 1000 + 1);
		SET(&rc, i, RP_TIME_RESET, 131071);
		SET(&rc, i, RP_BYTE_RESET, cnps ? 0 : 50000);
		SET(&rc, i, NP_MIN_TIME_BETWEEN_CNPS, 0);
		SET(&rc, i, RP_RATE_REDUCE_MONITOR_PERIOD, 0);
		w[i].mark = UINT32_MAX;
	}
	rc_post(&rc, 0, &(struct rc_wr){ .op = op, .len = 64 });
	rc_post(&rc, 1, &(struct rc_wr){ .op = op, .len = 64 });
	rc_pump(&rc);
	for (int i = 0; i < 2; i++)
		w[i].mark = 0;
	for (unsigned int k = 0; k < 120; k++) {
		for (int i = 0; i <= both; i++)
			rc_post_quiet(&rc, i, &rc.s[i].qp,
				      &(struct rc_wr){ .op = op, .len = 65536, .quiet = true });
	}
	for (int i = 0; i <= both; i++)
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
	for (unsigned int k = 0; k < 20; k++) {
		uint64_t before[2] = { w[0].bytes, w[1].bytes };

		if (cnps)
			w[from].mark = 1;
		rc_pump_for(&rc, 2 * MSEC);
		/* 2 ms at 1 Gbit/s are 250000 bytes. */
		assert_true(w[from].bytes - before[from] > 200000);
		assert_true(!both || w[1 - from].bytes - before[1 - from] > 200000);
	}
	rc_close(&rc);
}

static void nobody_waits_for_ever(void **rig)
{
	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		for (unsigned int k = 0; k < 4; k++) {
			goes_on(SKUA_WQE_WRITE, ext, k & 1, k & 2);
			goes_on(SKUA_WQE_READ, ext, k & 1, k & 2);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decreases),
		cmocka_unit_test(decrease_is_not_late),
		cmocka_unit_test(acks_are_free),
		cmocka_unit_test(target_may_stay),
		cmocka_unit_test(first_rate_is_given),
		cmocka_unit_test(alpha),
		cmocka_unit_test(increases),
		cmocka_unit_test(other_limits),
		cmocka_unit_test(rate_is_kept),
		cmocka_unit_test(nobody_waits_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
