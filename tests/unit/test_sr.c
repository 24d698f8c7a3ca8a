// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat between two devices and a wire that loses and reorders: what is sent
 * again is what was lost, and hardly more; nothing is for reordering alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "net.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SEC		1000000000ull
#define BATCHES		12

static void connect(struct net *n, uint32_t mode, const char *faults)
{
	net_open(n, &(struct rc_opt){ .mtu_code = 3, .log_sq = 9, .log_rq = 8, .timeout = 14,
				      .ext = { mode, mode }, .psn = { 0xfffa00, 0xffa000 } },
		 faults);
}

/* Without faults nothing is sent twice, and what is said of selective repeat is nothing. */
static void test_clean(void **state)
{
	static struct net n;

	(void)state;
	for (size_t k = 0; k < N(net_kinds); k++) {
		connect(&n, SKUA_EXT_NEGOTIATE, "delay=20us");
		net_run(&n, &net_kinds[k], 2, 2 * SEC);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_TX_RETRANS_PKTS), 0);
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_TX_SACK), 0);
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_RX_EARLY), 0);
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_TX_PROBE), 0);
		}
		net_close(&n);
	}
}

/* Packets that wait until up to 64 later ones went past them, or for less than a round trip. */
static void test_reorder(void **state)
{
	static struct net n;

	(void)state;
	for (size_t k = 0; k < N(net_kinds); k++) {
		connect(&n, SKUA_EXT_ALWAYS, "reorder=20%:64,hold=30us,delay=20us");
		net_run(&n, &net_kinds[k], 4, 2 * SEC);
		print_message("%s: early %llu, again %llu\n", net_kinds[k].name,
			      (unsigned long long)rc_cnt(&n.rc, 1, SKUA_CNT_RX_EARLY),
			      (unsigned long long)rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS));
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		net_close(&n);
	}
}

/*
 * Requests that are lost, or responses: the packets sent again, READ responses asked for
 * again among them, are as many as were lost but for what the tail costs.
 */
static void test_loss(void **state)
{
	static const char *const wires[] = {
		"loss=0.1%,delay=20us", "loss=1%,delay=20us", "loss=5%,delay=20us",
	};
	static struct net n;

	(void)state;
	for (size_t w = 0; w < N(wires); w++) {
		for (size_t k = 0; k < N(net_kinds); k++) {
			uint64_t lost, again, sent;
			int data = net_kinds[k].op == SKUA_WQE_READ ? 1 : 0;
			char spec[100];

			snprintf(spec, sizeof(spec), "port=nic%d,%s", data, wires[w]);
			connect(&n, SKUA_EXT_ALWAYS, spec);
			net_run(&n, &net_kinds[k], BATCHES, 2 * SEC);
			lost = wire_port_stats(n.port[data])->fault_loss;
			sent = n.rc.s[data].f.sent;
			again = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
			print_message("%s %s: sent %llu lost %llu again %llu, probes %llu, timeouts %llu\n",
				      spec, net_kinds[k].name, (unsigned long long)sent,
				      (unsigned long long)lost, (unsigned long long)again,
				      (unsigned long long)rc_cnt(&n.rc, 0, SKUA_CNT_TX_PROBE),
				      (unsigned long long)rc_cnt(&n.rc, 0,
								 SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR));
			assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
			/* What the ends of the batches cost besides. */
			assert_true(100 * again <= 105 * lost + 100 * 3);
			net_close(&n);
		}
	}
}

/*
 * A path that is longer than what is waited for while no round trip was measured: it is known
 * after the first message, and nothing is sent twice from then on.
 */
static void test_far(void **state)
{
	static struct net n;
	uint64_t again = 0;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=5ms");
	for (unsigned int k = 0; k < 64; k++) {
		rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
		net_pass(&n, SEC);
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
		if (!k)
			again = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
	}
	assert_in_range(again, 1, 4);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), again);
	net_close(&n);
}

/*
 * WQEs without packets behind one that is lost: no more of them are executed than may be looked
 * through at each time of loss; and all are in the end.
 */
static void test_locals(void **state)
{
	struct rc_opt opt = { .log_sq = 12, .log_cq = 12, .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } };
	static struct net n;
	struct skua_sqc sqc;
	uint64_t before;

	(void)state;
	net_open(&n, &opt, "port=nic0,loss=100%");
	rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
	for (unsigned int k = 0; k < 3000; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_settle(&n);
	sqc = rc_query(&n.rc, 0).sqc;
	assert_in_range(le32_to_cpu(sqc.cur) - le32_to_cpu(sqc.ci), 500, 530);
	before = n.rc.s[0].f.reads;
	net_pass(&n, 5000000);
	assert_true(rc_cnt(&n.rc, 0, SKUA_CNT_TX_PROBE) > 0);
	assert_true(n.rc.s[0].f.reads - before < 1000);
	wire_fault_clear(n.wire);
	net_pass(&n, 2 * SEC);
	for (unsigned int k = 0; k < 3001; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&n.rc, 0, false);
	net_close(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_locals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
