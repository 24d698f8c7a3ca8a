// SPDX-License-Identifier: GPL-2.0
/*
 * Two device cores and the real switch between them, both as they are in the daemon, under
 * one virtual clock: connections over a good wire and over a bad one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "net.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SEC		1000000000ull
#define MESSAGES	60
#define PLACE		(64u << 10)

struct message {
	enum skua_wqe_op op;
	uint32_t len;
};

/* Messages of all kinds by seed from side 0 to side 1, each to a place of its own. */
static void traffic(struct net *n, unsigned int seed)
{
	static const enum skua_wqe_op ops[] = {
		SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_SEND_IMM,
		SKUA_WQE_WRITE_IMM, SKUA_WQE_FAA,
	};
	struct message m[MESSAGES];
	struct rc *rc = &n->rc;
	struct skua_cqe cqe;

	for (uint32_t k = 0; k < MESSAGES; k++) {
		enum skua_wqe_op op = ops[rand_r(&seed) % N(ops)];
		uint32_t len = op == SKUA_WQE_FAA ? 8 : rand_r(&seed) % (PLACE / 2);
		uint64_t at = (uint64_t)k * PLACE;
		int to = op == SKUA_WQE_READ || op == SKUA_WQE_FAA ? 0 : 1;

		m[k] = (struct message){ op, len };
		memset(rc->s[to].buf + at, 0x5a, len + 1);
		rc_fill(rc->s[1 - to].buf + at, len, k);
		if (op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM || op == SKUA_WQE_WRITE_IMM)
			rc_recv(rc, 1, at, len);
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = op, .len = len, .off = at, .roff = at, .imm = k });
	}
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
	net_pass(n, 20 * SEC);
	for (uint32_t k = 0; k < MESSAGES; k++) {
		uint64_t at = (uint64_t)k * PLACE;
		int to = m[k].op == SKUA_WQE_READ || m[k].op == SKUA_WQE_FAA ? 0 : 1;

		rc_expect(rc, 0, false, SKUA_CQE_OK);
		if (m[k].op == SKUA_WQE_SEND || m[k].op == SKUA_WQE_SEND_IMM ||
		    m[k].op == SKUA_WQE_WRITE_IMM) {
			cqe = rc_expect(rc, 1, true, SKUA_CQE_OK);
			assert_int_equal(le32_to_cpu(cqe.byte_len), m[k].len);
			if (m[k].op != SKUA_WQE_SEND)
				assert_int_equal(be32toh(cqe.imm), k);
		}
		rc_check(rc->s[to].buf + at, m[k].len, k);
		assert_int_equal(rc->s[to].buf[at + m[k].len], 0x5a);
	}
	rc_expect_none(rc, 0, false);
	rc_expect_none(rc, 1, true);
}

static const struct {
	const char *spec;	/* NULL: a good wire */
	size_t stat;		/* which counter shows it, in struct wire_stats */
} wires[] = {
	{ NULL, 0 },
	{ "loss=3%", offsetof(struct wire_stats, fault_loss) },
	{ "loss=12%", offsetof(struct wire_stats, fault_loss) },
	{ "reorder=5%:3", offsetof(struct wire_stats, fault_reorder) },
	{ "dup=5%", offsetof(struct wire_stats, fault_dup) },
	{ "corrupt=3%", offsetof(struct wire_stats, fault_corrupt) },
	{ "delay=50us", offsetof(struct wire_stats, fault_delay) },
	{ "loss=1%,reorder=2%:4,dup=1%,corrupt=1%,delay=20us",
	  offsetof(struct wire_stats, fault_loss) },
};

/* Whatever the wire does, each message arrives once and whole; and it did do it. */
static void run_wires(const uint32_t ext[2], uint32_t log_window, uint32_t mtu_code)
{
	for (size_t k = 0; k < N(wires); k++) {
		static struct net n;
		uint64_t hits = 0, retries;

		print_message("%s\n", wires[k].spec ? wires[k].spec : "no faults");
		net_open(&n, &(struct rc_opt){ .mtu_code = mtu_code, .log_sq = 8,
					       .log_rq = 7, .timeout = 10, .ext = { ext[0], ext[1] },
					       .log_window = log_window,
					       .psn = { 0xfffff0, 0xffff00 } }, wires[k].spec);
		for (unsigned int seed = 1; seed < 4; seed++)
			traffic(&n, seed);
		for (int i = 0; i < 2; i++) {
			const struct wire_stats *s = wire_port_stats(n.port[i]);

			hits += *(const uint64_t *)((const char *)s + wires[k].stat);
			assert_int_equal(s->drop_queue + s->drop_len + s->drop_memory, 0);
			assert_true(ext[i] || n.rc.s[i].f.judge.num > 100);
		}
		retries = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
		if (wires[k].spec)
			assert_true(hits > 3);
		else
			assert_int_equal(retries, 0);
		net_close(&n);
	}
}

static void test_wires(void **state)
{
	(void)state;
	run_wires((uint32_t[2]){ SKUA_EXT_PLAIN, SKUA_EXT_PLAIN }, 0, 3);
}

/* The extension, agreed on by the way, from the beginning, by one end only. */
static void test_wires_ext(void **state)
{
	static const uint32_t ext[][2] = {
		{ SKUA_EXT_NEGOTIATE, SKUA_EXT_NEGOTIATE },
		{ SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS },
		{ SKUA_EXT_ALWAYS, SKUA_EXT_NEGOTIATE },
		{ SKUA_EXT_NEGOTIATE, SKUA_EXT_PLAIN },
		{ SKUA_EXT_PLAIN, SKUA_EXT_NEGOTIATE },
	};

	(void)state;
	for (size_t k = 0; k < N(ext); k++) {
		print_message("modes %u, %u\n", ext[k][0], ext[k][1]);
		run_wires(ext[k], 0, 3);
	}
	/* READs of several parts, and windows smaller than a part. */
	for (uint32_t log = SKUA_EXT_LOG_WINDOW_MIN; log <= SKUA_EXT_LOG_WINDOW_MAX; log++)
		run_wires(ext[log % 2], log, 1 + log % 3);
}

/* The same seed, the same frames: what happened can be had again. */
static void test_replay(void **state)
{
	uint64_t sent[2][2], retries[2];

	(void)state;
	for (unsigned int run = 0; run < 2; run++) {
		static struct net n;

		net_open(&n, &(struct rc_opt){ .mtu_code = 2, .log_sq = 8, .log_rq = 7,
					       .timeout = 10 },
			 "loss=2%,reorder=2%:4,dup=1%,corrupt=1%,seed=5");
		traffic(&n, 9);
		for (int i = 0; i < 2; i++)
			sent[run][i] = n.rc.s[i].f.sent;
		retries[run] = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
		net_close(&n);
	}
	assert_int_equal(sent[0][0], sent[1][0]);
	assert_int_equal(sent[0][1], sent[1][1]);
	assert_int_equal(retries[0], retries[1]);
	assert_true(retries[0] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wires),
		cmocka_unit_test(test_wires_ext),
		cmocka_unit_test(test_replay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
