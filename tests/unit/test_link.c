// SPDX-License-Identifier: GPL-2.0
/*
 * Two devices and the model's own switch, without faults: whatever they send each other,
 * nothing is lost, nothing is sent twice, and nobody waits for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc.h"
#include "wire/wire.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_QPS	2000

struct link {
	struct rc rc;
	struct mini_qp qp[2][MAX_QPS];
	unsigned int qps;
};

static const struct rc_opt base = { .log_sq = 3, .log_rq = 1, .log_cq = 14, .timeout = 14 };

/* Contexts for more QPs than the small driver has mapped. */
static void map_more(struct mini *m)
{
	static const struct { enum skua_icm_table table; uint32_t size; } tables[] = {
		{ SKUA_ICM_SQC, SKUA_ICM_SQC_SIZE }, { SKUA_ICM_RQC, SKUA_ICM_RQC_SIZE },
		{ SKUA_ICM_RRC, SKUA_ICM_RRC_SIZE },
	};

	for (size_t k = 0; k < N(tables); k++) {
		uint64_t chunk = MINI_MAPPED * tables[k].size;
		unsigned int log = 0;

		while (4096ull << log < chunk)
			log++;
		for (unsigned int i = 1; i < 1u << MINI_LOG_QP >> 8; i++)
			assert_int_equal(mini_map(m, m->base[tables[k].table] + i * chunk,
						  fake_alloc(m->f, chunk, 4096), log), 0);
	}
}

static struct link *link_open(unsigned int qps, uint32_t mtu_code)
{
	struct link *l = calloc(1, sizeof(*l));
	struct rc_opt opt = base;

	assert_non_null(l);
	opt.mtu_code = mtu_code;
	rc_open(&l->rc, &opt);
	l->qps = qps;
	for (int i = 0; i < 2 && qps > 200; i++)
		map_more(&l->rc.s[i].m);
	for (unsigned int q = 0; q < qps; q++) {
		for (int i = 0; i < 2; i++)
			rc_qp(&l->rc, i, &l->qp[i][q], &opt);
		for (int i = 0; i < 2; i++) {
			struct skua_qp_attr a = rc_attr(&l->rc, i, &opt, l->qp[1 - i][q].qpn);

			mini_rc_to_rts(&l->rc.s[i].m, &l->qp[i][q], &a);
		}
	}
	fake_switch(&l->rc.s[0].f, &l->rc.s[1].f);
	return l;
}

static void link_close(struct link *l)
{
	rc_close(&l->rc);
	free(l);
}

static const struct wire_stats *stats(struct link *l, int i)
{
	return wire_port_stats(l->rc.s[i].f.port);
}

/* No frame was dropped, and nobody had to notice that something was missing. */
static void nothing_lost(struct link *l)
{
	static const enum skua_counter none[] = {
		SKUA_CNT_TX_RETRANS_PKTS, SKUA_CNT_OUT_OF_SEQUENCE, SKUA_CNT_PACKET_SEQ_ERR,
		SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR, SKUA_CNT_DUPLICATE_REQUEST,
		SKUA_CNT_IMPLIED_NAK_SEQ_ERR, SKUA_CNT_RX_BAD_RESP,
	};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(stats(l, i)->drop_queue, 0);
		assert_int_equal(stats(l, i)->drop_memory, 0);
		assert_int_equal(stats(l, i)->drop_hold, 0);
		assert_int_equal(stats(l, i)->waits_ended, 0);
		assert_int_equal(stats(l, i)->tx_frames, l->rc.s[1 - i].f.sent);
		for (size_t k = 0; k < N(none); k++)
			assert_int_equal(rc_cnt(&l->rc, i, none[k]), 0);
	}
}

static void post(struct link *l, int i, unsigned int q, enum skua_wqe_op op, uint32_t len)
{
	const uint32_t half = RC_BUF / 2;
	struct rc_wr wr = { .op = op, .len = len };

	/* From one half of the buffer to the other half of the peer's. */
	wr.off = (uint64_t)q * 4096 % (half - len);
	wr.roff = half + wr.off;
	if (op == SKUA_WQE_READ) {
		wr.roff = wr.off;
		wr.off += half;
	}
	rc_post_quiet(&l->rc, i, &l->qp[i][q], &wr);
	mini_ring(&l->rc.s[i].m, &l->qp[i][q]);
}

/* Take all completions of side @i, all of them good. */
static unsigned int done(struct link *l, int i)
{
	struct skua_cqe cqe;
	unsigned int n = 0;

	while (mini_cq_next(&l->rc.s[i].m, &l->rc.s[i].scq, &cqe)) {
		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
		n++;
	}
	return n;
}

/* --- many QPs --- */

static const unsigned int many[] = { 1, 16, 200, 2000 };

/* All QPs of the sides in @sides at once, each @msgs messages of @len bytes. */
static void flood(unsigned int qps, uint32_t mtu_code, unsigned int sides, enum skua_wqe_op op,
		  uint32_t len, unsigned int msgs)
{
	struct link *l = link_open(qps, mtu_code);

	print_message("%u QPs, MTU %u, %u bytes\n", qps, 128u << mtu_code, len);
	for (unsigned int k = 0; k < msgs; k++) {
		for (unsigned int q = 0; q < qps; q++) {
			for (int i = 0; i < 2; i++) {
				if (sides & 1 << i)
					post(l, i, q, op, len);
			}
		}
	}
	rc_pump(&l->rc);
	for (int i = 0; i < 2; i++)
		assert_int_equal(done(l, i), sides & 1 << i ? qps * msgs : 0);
	nothing_lost(l);
	link_close(l);
}

/* Half a window or more of each QP is on its way, in both directions. */
static void test_writes(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(many); k++) {
		for (uint32_t mtu = 1; mtu <= 5; mtu++)
			flood(many[k], mtu, 3, SKUA_WQE_WRITE,
			      (many[k] > 200 ? 16 : 128) * (128 << mtu), 1);
	}
}

/* The responder has more to say than the requester. */
static void test_reads(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(many); k++) {
		for (uint32_t mtu = 1; mtu <= 5; mtu += 2)
			flood(many[k], mtu, 1, SKUA_WQE_READ,
			      (many[k] > 200 ? 16 : 128) * (128 << mtu), 1);
	}
}

/* As many acknowledgments as requests. */
static void test_small(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(many); k++)
		flood(many[k], 3, 3, SKUA_WQE_WRITE, 8, 4);
}

/* What arrives is what was sent. */
static void test_data(void **state)
{
	struct link *l = link_open(1, 3);
	const uint32_t half = RC_BUF / 2;

	(void)state;
	for (int i = 0; i < 2; i++) {
		rc_fill(l->rc.s[i].buf, half, i);
		rc_post_quiet(&l->rc, i, &l->qp[i][0],
			      &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = half, .roff = half });
		mini_ring(&l->rc.s[i].m, &l->qp[i][0]);
	}
	rc_pump(&l->rc);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(done(l, i), 1);
		rc_check(l->rc.s[i].buf + half, half, 1 - i);
	}
	nothing_lost(l);
	link_close(l);
}

/* Everybody has a turn: when the first QP is done with a long message, all have begun. */
static void test_fair(void **state)
{
	const unsigned int qps = 200, len = 64 * 1024;
	struct link *l = link_open(qps, 3);
	unsigned int begun = 0, first;

	(void)state;
	for (unsigned int q = 0; q < qps; q++)
		post(l, 0, q, SKUA_WQE_WRITE, len);
	while (!(first = done(l, 0))) {
		/* Faster than the other side, so that they have to wait. */
		for (unsigned int i = 0; i < 4; i++)
			skua_dev_run(l->rc.s[0].f.dev);
		skua_dev_run(l->rc.s[1].f.dev);
		wire_poll(l->rc.s[0].f.wire, l->rc.s[0].f.now);
	}
	assert_true(stats(l, 1)->waits > 0);
	for (unsigned int q = 0; q < qps; q++) {
		struct skua_cmd_query_qp_out out;

		mini_index(&l->rc.s[0].m, SKUA_CMD_QUERY_QP, l->qp[0][q].qpn, &out, sizeof(out));
		begun += out.sqc.next_psn != out.sqc.attr.sq_psn;
	}
	assert_int_equal(begun, qps);
	rc_pump(&l->rc);
	assert_int_equal(done(l, 0), qps - first);
	nothing_lost(l);
	link_close(l);
}

/* --- QPs that wait for room --- */

/* Run the senders alone until they rest; the queue is at its mark then. */
static void fill(struct link *l)
{
	for (unsigned int q = 0; q < l->qps; q++)
		post(l, 0, q, SKUA_WQE_WRITE, 64 * 1024);
	fake_run(&l->rc.s[0].f);
	assert_int_equal(stats(l, 1)->waits, 1);
	assert_int_equal(stats(l, 1)->drop_queue, 0);
	/* It costs nothing to wait. */
	assert_false(skua_dev_run(l->rc.s[0].f.dev));
}

/* They are taken to ERR, RESET, away: the others go on. */
static void test_ends_while_waiting(void **state)
{
	struct link *l = link_open(200, 3);
	struct mini *m = &l->rc.s[0].m;
	unsigned int flushed = 0;
	struct skua_cqe cqe;

	(void)state;
	fill(l);
	for (unsigned int q = 0; q < 50; q++)
		assert_int_equal(mini_qp_modify(m, &l->qp[0][150 + q], SKUA_QP_ERR, 0, NULL), 0);
	/* To flush them no room is needed. */
	fake_run(&l->rc.s[0].f);
	while (mini_cq_next(m, &l->rc.s[0].scq, &cqe)) {
		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_WR_FLUSH_ERR);
		flushed++;
	}
	assert_int_equal(flushed, 50);
	for (unsigned int q = 0; q < 50; q++)
		assert_int_equal(mini_qp_modify(m, &l->qp[0][100 + q], SKUA_QP_RESET, 0, NULL), 0);
	for (unsigned int q = 0; q < 50; q++)
		assert_int_equal(mini_index(m, SKUA_CMD_DESTROY_QP, l->qp[0][50 + q].qpn, NULL, 0),
				 0);
	rc_pump(&l->rc);
	assert_int_equal(done(l, 0), 50);
	link_close(l);
}

/* A reset of the sender forgets that they wait. */
static void test_reset_while_waiting(void **state)
{
	struct link *l = link_open(200, 3);

	(void)state;
	fill(l);
	skua_dev_reset(l->rc.s[0].f.dev, SKUA_RESET_POWER);
	rc_pump(&l->rc);
	assert_int_equal(wire_deadline(l->rc.s[0].f.wire), UINT64_MAX);
	link_close(l);
}

/*
 * The link delays all frames, of which the switch keeps a bounded number: that too the
 * senders wait for.
 */
static void test_delay(void **state)
{
	struct link *l = link_open(200, 3);
	char err[100] = "";

	(void)state;
	assert_int_equal(wire_fault(l->rc.s[0].f.wire, "delay=1ms", err, sizeof(err)), 0);
	for (unsigned int q = 0; q < l->qps; q++)
		post(l, 0, q, SKUA_WQE_WRITE, 128 * 1024);
	rc_pump_for(&l->rc, 60000000000ull);
	assert_int_equal(done(l, 0), l->qps);
	assert_int_equal(stats(l, 0)->drop_hold, 0);
	assert_int_equal(stats(l, 1)->drop_hold, 0);
	assert_int_equal(stats(l, 0)->drop_queue, 0);
	assert_int_equal(stats(l, 1)->drop_queue, 0);
	link_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_ends_while_waiting),
		cmocka_unit_test(test_reset_while_waiting),
		cmocka_unit_test(test_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
