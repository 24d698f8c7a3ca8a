// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat of QPs that receive from SRQs, of RC and of XRC: what is sent again over
 * wires that lose and reorder; who gets which WQE of the SRQ, how many are taken before their
 * turn, and what becomes of them when a QP ends.
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

#include "onload.h"
#include "rc_srq.h"
#include "sr_forge.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SEC		1000000000ull
#define LEN		(64u << 10)
#define BATCH		64
/* Of long messages, on each wire. */
#define BATCHES		(getenv("SKUA_LONG") ? 12 : 4)
#define SRQN		5
/* WQEs that are posted besides those that are used. */
#define SPARE		512

enum kind { RC_SRQ, XRC_ONE, XRC_TWO, KINDS };

static const char *const kind_name[] = { "RC with an SRQ", "XRC", "XRC, two SRQs" };

/**
 * struct sh - a connection whose side 1 receives from SRQs
 * @net: the connection
 * @kind: what it is
 * @srq: SRQs of side 1; those of RC and of XRC_ONE have one
 * @pass: time for a batch, ns
 */
struct sh {
	struct net net;
	enum kind kind;
	struct rc_srq srq[2];
	uint64_t pass;
};

static const struct rc_opt opt = {
	.mtu_code = 3, .log_sq = 9, .log_rq = 8, .timeout = 14, .log_cq = 12, .down = true,
	.ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS }, .psn = { 0xfffa00, 0xffa000 },
};

static unsigned int srqs(const struct sh *s)
{
	return s->kind == XRC_TWO ? 2 : 1;
}

static void sh_open(struct sh *s, enum kind kind, const struct rc_opt *o, const char *faults)
{
	struct rc *rc = &s->net.rc;

	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->pass = 2 * SEC;
	net_open(&s->net, o, faults);
	for (unsigned int k = 0; k < srqs(s); k++)
		rc_srq_make(&s->srq[k], rc, 1, SRQN + k, 10, kind != RC_SRQ);
	if (kind != RC_SRQ) {
		rc_xrc_up(rc, o);
		return;
	}
	rc_qp(rc, 0, &rc->s[0].qp, o);
	rc_srq_qp(&s->srq[0], &rc->s[1].qp, o->log_sq);
	rc_srq_connect(rc, o, &rc->s[0].qp, &rc->s[1].qp);
}

/* --- what is sent again --- */

/* Which SRQ message @k goes to: some by turns, some in a row. */
static unsigned int srq_of(const struct sh *s, uint32_t k)
{
	return s->kind == XRC_TWO ? (k < BATCH / 2 ? k / 8 % 2 : k * 7 / 5 % 2) : 0;
}

static bool takes(enum skua_wqe_op op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_WRITE_IMM;
}

/*
 * The WQEs of an SRQ are used in their order, so that where a message arrives is known: number
 * @n of SRQ @k is for this message of a batch.
 */
static uint32_t message_of(const struct sh *s, unsigned int k, uint32_t n)
{
	uint32_t here[BATCH], num = 0;

	for (uint32_t m = 0; m < BATCH; m++) {
		if (srq_of(s, m) == k)
			here[num++] = m;
	}
	return here[n % num];
}

static void post_recv(struct sh *s, unsigned int k)
{
	rc_srq_post(&s->srq[k], (uint64_t)message_of(s, k, s->srq[k].pi) * LEN, LEN);
}

static void post_batch(struct sh *s, enum skua_wqe_op op, uint32_t len, uint32_t seed)
{
	int to = op == SKUA_WQE_READ ? 0 : 1;
	struct rc *rc = &s->net.rc;

	for (uint32_t k = 0; k < BATCH; k++) {
		uint64_t at = (uint64_t)k * LEN;

		memset(rc->s[to].buf + at, 0x5a, len);
		rc_fill(rc->s[1 - to].buf + at, len, seed + k);
		if (takes(op))
			post_recv(s, srq_of(s, k));
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = op, .len = len, .off = at, .roff = at,
			.srqn = SRQN + srq_of(s, k) });
	}
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
}

static void check_batch(struct sh *s, enum skua_wqe_op op, uint32_t len, uint32_t pos[2],
			uint32_t seed)
{
	int to = op == SKUA_WQE_READ ? 0 : 1;
	struct rc *rc = &s->net.rc;

	for (uint32_t k = 0; k < BATCH; k++) {
		struct rc_srq *q = &s->srq[srq_of(s, k)];
		struct skua_cqe cqe;

		rc_expect(rc, 0, false, SKUA_CQE_OK);
		rc_check(rc->s[to].buf + (uint64_t)k * LEN, len, seed + k);
		if (!takes(op))
			continue;
		cqe = rc_expect(rc, 1, true, SKUA_CQE_OK);
		assert_int_equal(le32_to_cpu(cqe.srqn), q->srqn);
		assert_int_equal(le32_to_cpu(cqe.byte_len), len);
		assert_int_equal(skua_cqe_wqe_index(&cqe), pos[q - s->srq]++ % (1u << q->log));
	}
}

static void run_all(struct sh *s, enum skua_wqe_op op, uint32_t len, unsigned int batches)
{
	uint32_t pos[2] = { 0 };
	struct rc *rc = &s->net.rc;

	for (unsigned int n = 0; n < srqs(s) * SPARE; n++)
		post_recv(s, n / SPARE);
	for (unsigned int b = 0; b < batches; b++) {
		post_batch(s, op, len, b * BATCH);
		net_pass(&s->net, s->pass);
		check_batch(s, op, len, pos, b * BATCH);
	}
	rc_expect_none(rc, 0, false);
	rc_expect_none(rc, 1, true);
	/* What was taken before its turn was used. */
	for (unsigned int k = 0; k < srqs(s); k++)
		assert_int_equal(rc_srq_left(&s->srq[k]), SPARE);
}

static const struct {
	const char *name;
	enum skua_wqe_op op;
	uint32_t len;
} ops[] = {
	{ "WRITE 64 KiB", SKUA_WQE_WRITE, LEN }, { "READ 64 KiB", SKUA_WQE_READ, LEN },
	{ "SEND 64 KiB", SKUA_WQE_SEND, LEN }, { "SEND 2.5 KiB", SKUA_WQE_SEND, 2500 },
	{ "SEND 64 B", SKUA_WQE_SEND, 64 }, { "WRITE 64 B with immediate", SKUA_WQE_WRITE_IMM, 64 },
};

/* Without faults nothing is special; reordering has nothing sent again. */
static void test_reorder(void **state)
{
	static const char *const wires[] = {
		"delay=20us", "reorder=20%:64,hold=30us,delay=20us",
	};
	static struct sh s;

	(void)state;
	for (unsigned int w = 0; w < N(wires); w++) {
		for (unsigned int n = 0; n < KINDS * N(ops); n++) {
			unsigned int o = n / KINDS;

			/* Of a message of which nothing came, XRC knows where it goes by those behind it. */
			if (w && n % KINDS == XRC_TWO && takes(ops[o].op) && ops[o].len < LEN)
				continue;
			sh_open(&s, n % KINDS, &opt, wires[w]);
			run_all(&s, ops[o].op, ops[o].len, 4);
			print_message("%s, %s, %s: early %llu, dropped %llu, again %llu\n", wires[w],
				      kind_name[n % KINDS], ops[o].name,
				      (unsigned long long)rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY),
				      (unsigned long long)rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP),
				      (unsigned long long)rc_cnt(&s.net.rc, 0, SKUA_CNT_TX_RETRANS_PKTS));
			assert_int_equal(rc_cnt(&s.net.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
			assert_true(w || !rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY));
			assert_true(!w || ops[o].op == SKUA_WQE_READ ||
				    rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY));
			net_close(&s.net);
		}
	}
}

/*
 * What is sent again is what was lost, and what the ends of the batches cost. Of short SENDs to
 * several SRQs of XRC in turns, some of those behind a lost one come again, once.
 */
static void test_loss(void **state)
{
	static const char *const wires[] = {
		"loss=0.1%,delay=20us", "loss=1%,delay=20us", "loss=5%,delay=20us",
	};
	static struct sh s;

	(void)state;
	for (unsigned int n = 0; n < N(wires) * KINDS * N(ops); n++) {
		unsigned int w = n / KINDS / N(ops), kind = n / N(ops) % KINDS, o = n % N(ops);
		int data = ops[o].op == SKUA_WQE_READ ? 1 : 0;
		bool mixed = kind == XRC_TWO && takes(ops[o].op) && ops[o].len < LEN;
		uint64_t lost, again, dropped;
		char spec[100];

		snprintf(spec, sizeof(spec), "port=nic%d,%s", data, wires[w]);
		sh_open(&s, kind, &opt, spec);
		run_all(&s, ops[o].op, ops[o].len, BATCHES);
		lost = wire_port_stats(s.net.port[data])->fault_loss;
		again = rc_cnt(&s.net.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
		print_message("%s, %s, %s: sent %llu lost %llu again %llu dropped %llu\n", spec,
			      kind_name[kind], ops[o].name,
			      (unsigned long long)s.net.rc.s[data].f.sent, (unsigned long long)lost,
			      (unsigned long long)again,
			      (unsigned long long)rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP));
		assert_int_equal(rc_cnt(&s.net.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		dropped = rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP);
		assert_true(mixed || !dropped);
		assert_true(100 * again <= 105 * (lost + dropped) + 100 * 3);
		assert_true(dropped <= 5 * lost + 20);
		net_close(&s.net);
	}
}

/*
 * The same if the driver keeps the loss state: it is told of what was dropped, so that it has all
 * of it sent again, and does not find out packet by packet, each after 2 ms without news.
 */
static void test_loss_driver(void **state)
{
	static struct onload o;
	static struct sh s;
	struct rc_opt onload = opt;

	(void)state;
	onload.onload = true;
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		uint64_t lost, dropped, again;

		sh_open(&s, kind, &onload, "port=nic0,loss=1%,delay=20us");
		onload_start(&s.net, &o);
		onload_side(&s.net, 0, SKUA_EXT_LOG_WINDOW_MAX, ONLOAD_LOG_EQ, 5000);
		s.pass = SEC / 50;
		run_all(&s, SKUA_WQE_SEND, 64, 12);
		lost = wire_port_stats(s.net.port[0])->fault_loss;
		dropped = rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP);
		again = rc_cnt(&s.net.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
		print_message("%s, SEND 64 B, driver: lost %llu again %llu dropped %llu\n",
			      kind_name[kind], (unsigned long long)lost, (unsigned long long)again,
			      (unsigned long long)dropped);
		assert_int_equal(o.side[0].r.bad, 0);
		assert_int_equal(rc_cnt(&s.net.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		assert_true(lost && (dropped || kind != XRC_TWO));
		assert_true(again <= 2 * (lost + dropped));
		net_close(&s.net);
	}
}

/* --- who gets which WQE, rule by rule --- */

static const struct rc_opt small_down = {
	.mtu_code = 1, .log_sq = 6, .down = true,
	.ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS }, .psn = { PSN0, 7 },
};

static void post_n(struct sh *s, unsigned int k, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		rc_srq_post(&s->srq[k], i * 1024, 1024);
}

#define TO(s, k, ...)	give(&(s)->net.rc, (struct sr_pkt){ .srqn = SRQN + (k), __VA_ARGS__ })

static void expect_wqe(struct sh *s, unsigned int k, uint32_t pos, enum skua_cqe_status status)
{
	struct skua_cqe cqe = rc_expect(&s->net.rc, 1, true, status);

	assert_int_equal(skua_cqe_wqe_index(&cqe), pos);
	assert_int_equal(le32_to_cpu(cqe.srqn), SRQN + k);
}

/* The last of eight SENDs comes first: all get their WQEs in their order. */
static void test_order(void **state)
{
	static struct sh s;

	(void)state;
	for (unsigned int kind = 0; kind < XRC_TWO; kind++) {
		sh_open(&s, kind, &small_down, NULL);
		post_n(&s, 0, 20);
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 7, .seq = 7, .run = 7, .len = 200, .seed = 7);
		assert_int_equal(rc_srq_left(&s.srq[0]), 12);
		for (uint32_t n = 7; n-- > 0;)
			TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = n, .seq = n, .len = 200, .seed = n);
		assert_int_equal(rc_srq_left(&s.srq[0]), 12);
		assert_int_equal(epsn(&s.net.rc), 8);
		assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY), 7);
		for (uint32_t n = 0; n < 8; n++) {
			expect_wqe(&s, 0, n, SKUA_CQE_OK);
			rc_check(s.net.rc.s[1].buf + n * 1024, 200, n);
		}
		/* Nothing is kept: the next one takes the next one. */
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 8, .seq = 8, .len = 200, .seed = 8);
		expect_wqe(&s, 0, 8, SKUA_CQE_OK);
		rc_expect_none(&s.net.rc, 1, true);
		net_close(&s.net);
	}
}

/* As many are left as are held for later messages; the next message may have the last one. */
static void test_share(void **state)
{
	static struct sh s;

	(void)state;
	sh_open(&s, RC_SRQ, &small_down, NULL);
	post_n(&s, 0, 1);
	TO(&s, 0, .op = IB_OP_SEND_LAST, .psn = 1, .off = 1, .len = 4, .seed = 1);
	assert_int_equal(rc_srq_left(&s.srq[0]), 0);
	assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY), 1);
	post_n(&s, 0, 10);
	for (uint32_t n = 1; n < 12; n++)
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 1 + n, .seq = n, .len = 4, .seed = n);
	assert_int_equal(rc_srq_left(&s.srq[0]), 5);
	assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY), 6);
	assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP), 6);
	/* In their turn they get what there is, and then RNR NAK. */
	hush(&s.net.rc);
	TO(&s, 0, .op = IB_OP_SEND_FIRST, .psn = 0, .len = 256, .seed = 1);
	assert_int_equal(epsn(&s.net.rc), 7);
	for (uint32_t n = 6; n < 12; n++)
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 1 + n, .seq = n, .len = 4, .seed = n);
	assert_int_equal(rc_srq_left(&s.srq[0]), 0);
	run(&s.net.rc);
	expect_nak(&s.net.rc, 12, IB_AETH_RNR_NAK, IB_AETH_TYPE_MASK);
	for (uint32_t n = 0; n < 11; n++)
		expect_wqe(&s, 0, n, SKUA_CQE_OK);
	rc_expect_none(&s.net.rc, 1, true);
	net_close(&s.net);
}

#define PEERS	10

/* A peer's connection, of which TO() then is. */
static void use(struct sh *s, const struct mini_qp pair[2])
{
	s->net.rc.s[0].qp = pair[0];
	s->net.rc.s[1].qp = pair[1];
}

/* Messages 1 to @n of the connection in use come before the first. */
static void send_early(struct sh *s, uint32_t n)
{
	for (uint32_t k = 1; k <= n; k++)
		TO(s, 0, .op = IB_OP_SEND_ONLY, .psn = k, .seq = k, .len = 4, .seed = k);
}

static uint32_t held(struct sh *s)
{
	struct skua_srqc c;

	assert_int_equal(mini_index(&s->net.rc.s[1].m, SKUA_CMD_QUERY_SRQ, SRQN, &c, sizeof(c)), 0);
	return le32_to_cpu(c.early);
}

/*
 * However many peers fall silent before their first message, half of the WQEs are left; what one
 * of them has is another's as soon as it comes to its turn, or its QP ends.
 */
static void test_share_all(void **state)
{
	struct mini_qp pair[PEERS][2];
	static struct sh s;
	struct rc *rc = &s.net.rc;

	(void)state;
	sh_open(&s, RC_SRQ, &small_down, NULL);
	for (unsigned int p = 0; p < PEERS; p++) {
		if (p) {
			rc_qp(rc, 0, &rc->s[0].qp, &small_down);
			rc_srq_qp(&s.srq[0], &rc->s[1].qp, small_down.log_sq);
			rc_srq_connect(rc, &small_down, &rc->s[0].qp, &rc->s[1].qp);
		}
		memcpy(pair[p], (struct mini_qp[]){ rc->s[0].qp, rc->s[1].qp }, sizeof(pair[p]));
	}
	post_n(&s, 0, 64);
	for (unsigned int p = 0; p < PEERS; p++) {
		use(&s, pair[p]);
		send_early(&s, p ? 40 : 20);
	}
	assert_int_equal(rc_srq_left(&s.srq[0]), 32);
	assert_int_equal(held(&s), 32);
	/* The first one goes on: it has 21 messages complete, and others can have as many. */
	use(&s, pair[0]);
	hush(rc);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .len = 4);
	assert_int_equal(epsn(rc), 21);
	for (uint32_t n = 0; n < 21; n++)
		expect_wqe(&s, 0, n, SKUA_CQE_OK);
	assert_int_equal(held(&s), 11);
	use(&s, pair[2]);
	send_early(&s, 40);
	assert_int_equal(rc_srq_left(&s.srq[0]), 21);
	assert_int_equal(held(&s), 22);
	/* The second one ends: what it held is flushed. */
	assert_int_equal(mini_qp_modify(&rc->s[1].m, &pair[1][1], SKUA_QP_ERR, 0, NULL), 0);
	run(rc);
	for (uint32_t n = 21; n < 32; n++)
		expect_wqe(&s, 0, n, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(held(&s), 11);
	net_close(&s.net);
}

/* A number that leaves more messages out than there can be PSNs takes nothing. */
static void test_far_number(void **state)
{
	static struct sh s;

	(void)state;
	for (unsigned int kind = 0; kind < XRC_TWO; kind++) {
		sh_open(&s, kind, &small_down, NULL);
		post_n(&s, 0, 100);
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 3, .seq = 4, .run = 255, .len = 4);
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 3, .seq = 0xffffff, .run = 255, .len = 4);
		assert_int_equal(rc_srq_left(&s.srq[0]), 100);
		assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP), 2);
		net_close(&s.net);
	}
}

/* XRC: only if it is known where the messages before go to. */
static void test_xrc_run(void **state)
{
	static struct sh s;

	(void)state;
	sh_open(&s, XRC_TWO, &small_down, NULL);
	post_n(&s, 0, 10);
	post_n(&s, 1, 10);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 2, .seq = 2, .run = 1, .len = 4, .seed = 2);
	assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
	TO(&s, 1, .op = IB_OP_SEND_LAST, .psn = 1, .off = 1, .len = 4, .seed = 1);
	assert_int_equal(rc_srq_left(&s.srq[0]), 10);
	assert_int_equal(rc_srq_left(&s.srq[1]), 9);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 3, .seq = 2, .run = 1, .len = 4, .seed = 2);
	assert_int_equal(rc_srq_left(&s.srq[0]), 8);
	TO(&s, 1, .op = IB_OP_WRITE_ONLY_IMM, .psn = 4, .seq = 3, .len = 4, .total = 4, .seed = 3,
	   .roff = AREA);
	assert_int_equal(rc_srq_left(&s.srq[1]), 8);
	assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY), 3);
	/* One that names another SRQ than its receive came from. */
	TO(&s, 1, .op = IB_OP_SEND_ONLY, .psn = 2, .seq = 1, .len = 4, .seed = 9);
	assert_int_equal(rc_cnt(&s.net.rc, 1, SKUA_CNT_RX_EARLY_DROP), 2);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 2, .seq = 1, .len = 4, .seed = 9);
	TO(&s, 1, .op = IB_OP_SEND_FIRST, .len = 256, .seed = 1);
	assert_int_equal(epsn(&s.net.rc), 5);
	expect_wqe(&s, 1, 0, SKUA_CQE_OK);
	expect_wqe(&s, 0, 0, SKUA_CQE_OK);
	expect_wqe(&s, 0, 1, SKUA_CQE_OK);
	expect_wqe(&s, 1, 1, SKUA_CQE_OK);
	rc_check(s.net.rc.s[1].buf + AREA, 4, 3);
	/* In its turn that is an invalid request, and what was taken is flushed. */
	TO(&s, 0, .op = IB_OP_SEND_LAST, .psn = 6, .off = 1, .seq = 4, .len = 4);
	hush(&s.net.rc);
	TO(&s, 1, .op = IB_OP_SEND_FIRST, .psn = 5, .seq = 4, .len = 256);
	run(&s.net.rc);
	expect_invalid(&s.net.rc, 5);
	expect_wqe(&s, 0, 2, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect_none(&s.net.rc, 1, true);
	net_close(&s.net);
}

/* XRC: a WRITE or READ to one SRQ while the receive of a later SEND is another's. */
static void test_xrc_between(void **state)
{
	static struct sh s;

	(void)state;
	sh_open(&s, XRC_TWO, &small_down, NULL);
	post_n(&s, 0, 10);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 3, .len = 4, .seed = 1);
	TO(&s, 1, .op = IB_OP_WRITE_FIRST, .len = 256, .total = 300, .roff = AREA, .seed = 2);
	TO(&s, 1, .op = IB_OP_WRITE_LAST, .psn = 1, .off = 1, .len = 44, .total = 300,
	   .roff = AREA, .seed = 2);
	TO(&s, 1, .op = IB_OP_READ_REQUEST, .psn = 2, .total = 4, .roff = AREA);
	assert_int_equal(epsn(&s.net.rc), 4);
	rc_check(s.net.rc.s[1].buf + AREA, 300, 2);
	expect_wqe(&s, 0, 0, SKUA_CQE_OK);
	net_close(&s.net);
}

/* The limit event comes when the WQE is taken, not when the message's turn has come. */
static void test_limit(void **state)
{
	struct skua_cmd_modify_srq_in in = { .srqn = cpu_to_le32(SRQN), .limit = cpu_to_le32(8) };
	static struct sh s;
	struct skua_eqe eqe;
	struct mini *m;

	(void)state;
	sh_open(&s, RC_SRQ, &small_down, NULL);
	m = &s.net.rc.s[1].m;
	post_n(&s, 0, 10);
	mini_ok(m, SKUA_CMD_MODIFY_SRQ, &in, sizeof(in));
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 1, .seq = 1, .len = 4);
	rc_expect_no_event(&s.net.rc, 1);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 2, .seq = 2, .len = 4);
	run(&s.net.rc);
	assert_true(mini_eq_next(m, &m->eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_SRQ_LIMIT);
	net_close(&s.net);
}

/* --- ends --- */

enum end { END_ERR, END_RESET, END_DESTROY, ENDS };

/* What was taken is reported, once; the SRQ goes on with another QP. */
static void test_ends(void **state)
{
	static struct sh s;

	(void)state;
	for (unsigned int n = 0; n < ENDS * XRC_TWO; n++) {
		enum end end = n % ENDS;
		struct rc *rc = &s.net.rc;

		sh_open(&s, n / ENDS, &small_down, NULL);
		post_n(&s, 0, 100);
		TO(&s, 0, .op = IB_OP_SEND_FIRST, .len = 256, .seed = 1);
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 42, .seq = 40, .run = 255, .len = 4, .seed = 2);
		assert_int_equal(rc_srq_left(&s.srq[0]), 59);
		hush(rc);
		if (end == END_DESTROY)
			assert_int_equal(mini_index(&rc->s[1].m, SKUA_CMD_DESTROY_QP,
						    rc->s[1].qp.qpn, NULL, 0), 0);
		else
			assert_int_equal(mini_qp_modify(&rc->s[1].m, &rc->s[1].qp,
							end == END_ERR ? SKUA_QP_ERR : SKUA_QP_RESET,
							0, NULL), 0);
		run(rc);
		for (uint32_t k = 0; k < 41; k++)
			expect_wqe(&s, 0, k, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(rc, 1, true);
		if (end == END_ERR)
			rc_expect_event(rc, 1, SKUA_QP_EV_LAST_WQE);
		rc_expect_no_event(rc, 1);
		assert_int_equal(rc_srq_left(&s.srq[0]), 59);
		net_close(&s.net);
	}
}

/*
 * A message fails whose WQE was taken when one behind it came, or when it came itself: each WQE
 * is reported once.
 */
static void test_fails(void **state)
{
	static struct sh s;

	(void)state;
	for (unsigned int n = 0; n < 2 * XRC_TWO; n++) {
		bool began = n % 2;

		sh_open(&s, n / 2, &small_down, NULL);
		/* The window's places are used once, so that nothing in them is new. */
		post_n(&s, 0, 20);
		for (uint32_t k = 0; k < 8; k++)
			rc_srq_post(&s.srq[0], k * 1024, k ? 1024 : began ? 300 : 100);
		hush(&s.net.rc);
		for (uint32_t k = 0; k < 20; k++)
			TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = k, .seq = k, .len = 4);
		for (uint32_t k = 0; k < 20; k++)
			expect_wqe(&s, 0, k, SKUA_CQE_OK);
		/* Too long by its second packet, or by its first. */
		if (began)
			TO(&s, 0, .op = IB_OP_SEND_FIRST, .psn = 20, .seq = 20, .len = 256);
		TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 22, .seq = 21, .run = 1, .len = 4);
		if (began)
			TO(&s, 0, .op = IB_OP_SEND_LAST, .psn = 21, .seq = 20, .off = 1, .len = 256);
		else
			TO(&s, 0, .op = IB_OP_SEND_FIRST, .psn = 20, .seq = 20, .len = 256);
		run(&s.net.rc);
		expect_wqe(&s, 0, 20, SKUA_CQE_LOC_LEN_ERR);
		expect_wqe(&s, 0, 21, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&s.net.rc, 1, true);
		assert_int_equal(rc_state(&s.net.rc, 1), SKUA_QP_ERR);
		net_close(&s.net);
	}
}

/* The same with the list of a WQE that was read: nothing is written into the old SRQ's. */
static void test_srq_renewed(void **state)
{
	static struct sh s;

	(void)state;
	sh_open(&s, XRC_ONE, &small_down, NULL);
	post_n(&s, 0, 10);
	TO(&s, 0, .op = IB_OP_SEND_LAST, .psn = 1, .seq = 0, .off = 1, .len = 4, .seed = 1);
	memset(s.net.rc.s[1].buf, 0, 1024);
	assert_int_equal(mini_index(&s.net.rc.s[1].m, SKUA_CMD_DESTROY_SRQ, SRQN, NULL, 0), 0);
	rc_srq_make(&s.srq[0], &s.net.rc, 1, SRQN, 10, true);
	post_n(&s, 0, 10);
	hush(&s.net.rc);
	TO(&s, 0, .op = IB_OP_SEND_FIRST, .psn = 0, .len = 256, .seed = 9);
	run(&s.net.rc);
	assert_int_equal(rc_state(&s.net.rc, 1), SKUA_QP_ERR);
	rc_expect_none(&s.net.rc, 1, true);
	assert_int_equal(rc_srq_left(&s.srq[0]), 10);
	for (uint32_t k = 0; k < 1024; k++)
		assert_int_equal(s.net.rc.s[1].buf[k], 0);
	net_close(&s.net);
}

/* The SRQ of a WQE that was taken is gone, and another has its number: it is not touched. */
static void test_srq_gone(void **state)
{
	static struct sh s;

	(void)state;
	sh_open(&s, XRC_ONE, &small_down, NULL);
	post_n(&s, 0, 10);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 1, .seq = 1, .run = 1, .len = 4, .seed = 1);
	assert_int_equal(mini_index(&s.net.rc.s[1].m, SKUA_CMD_DESTROY_SRQ, SRQN, NULL, 0), 0);
	rc_srq_make(&s.srq[0], &s.net.rc, 1, SRQN, 10, true);
	post_n(&s, 0, 10);
	hush(&s.net.rc);
	TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 0, .len = 4, .seed = 9);
	run(&s.net.rc);
	/* It was reported nowhere: nobody's CQ is known. */
	assert_int_equal(rc_state(&s.net.rc, 1), SKUA_QP_ERR);
	rc_expect_none(&s.net.rc, 1, true);
	assert_int_equal(rc_srq_left(&s.srq[0]), 10);
	for (uint32_t k = 0; k < 4; k++)
		assert_int_equal(s.net.rc.s[1].buf[k], 0);
	net_close(&s.net);
}

/*
 * The table of receives that were taken early cannot be written, or not be read any more: the
 * QP fails. The SRQ has back what could not be noted, and keeps nothing for the QP.
 */
static void test_no_table(void **state)
{
	static struct sh s;

	(void)state;
	for (unsigned int n = 0; n < 3; n++) {
		struct rc *rc = &s.net.rc;
		bool late = n, one = n == 2;
		uint64_t table;

		sh_open(&s, RC_SRQ, &small_down, NULL);
		post_n(&s, 0, 100);
		table = le64_to_cpu(sr_lrc_of(rc)->recvs);
		if (late)
			TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 8, .seq = 7, .len = 4, .seed = 7);
		assert_int_equal(held(&s), late ? 8 : 0);
		hush(rc);
		fake_hole(&rc->s[1].f, table + (one ? 3 * sizeof(struct skua_ext_recv) : 0),
			  sizeof(struct skua_ext_recv) * (one ? 1 : SKUA_LRC_PSNS));
		if (late)
			TO(&s, 0, .op = IB_OP_SEND_FIRST, .psn = 0, .len = 256, .seed = 0);
		else
			TO(&s, 0, .op = IB_OP_SEND_ONLY, .psn = 7, .seq = 7, .len = 4, .seed = 7);
		if (one)
			assert_int_equal(mini_qp_modify(&rc->s[1].m, &rc->s[1].qp, SKUA_QP_ERR, 0,
							NULL), 0);
		run(rc);
		assert_int_equal(rc_state(rc, 1), SKUA_QP_ERR);
		/* What is known is reported. */
		for (uint32_t k = 0; one && k < 8; k++) {
			if (k != 3)
				expect_wqe(&s, 0, k, SKUA_CQE_WR_FLUSH_ERR);
		}
		rc_expect_none(rc, 1, true);
		assert_int_equal(held(&s), 0);
		assert_int_equal(rc_srq_left(&s.srq[0]), late ? 92 : 100);
		fake_no_holes(&rc->s[1].f);
		net_close(&s.net);
	}
}

/*
 * The context of a QP says that receives were taken early, and not how many: the QP fails when one
 * of them has its turn. What the SRQ keeps for others stays.
 */
static void test_no_number(void **state)
{
	struct mini_qp pair[2][2];
	static struct sh s;
	struct rc *rc = &s.net.rc;

	(void)state;
	sh_open(&s, RC_SRQ, &small_down, NULL);
	memcpy(pair[0], (struct mini_qp[]){ rc->s[0].qp, rc->s[1].qp }, sizeof(pair[0]));
	rc_qp(rc, 0, &rc->s[0].qp, &small_down);
	rc_srq_qp(&s.srq[0], &rc->s[1].qp, small_down.log_sq);
	rc_srq_connect(rc, &small_down, &rc->s[0].qp, &rc->s[1].qp);
	memcpy(pair[1], (struct mini_qp[]){ rc->s[0].qp, rc->s[1].qp }, sizeof(pair[1]));
	post_n(&s, 0, 64);
	for (unsigned int p = 0; p < 2; p++) {
		use(&s, pair[p]);
		send_early(&s, 4);
	}
	assert_int_equal(held(&s), 10);
	sr_lrc_of(rc)->recv_end = sr_rqc(rc)->recv_seq;
	assert_int_equal(mini_qp_modify(&rc->s[1].m, &rc->s[1].qp, SKUA_QP_ERR, 0, NULL), 0);
	run(rc);
	assert_int_equal(rc_state(rc, 1), SKUA_QP_ERR);
	assert_int_equal(held(&s), 10);
	/* Its number is known. */
	use(&s, pair[0]);
	assert_int_equal(mini_qp_modify(&rc->s[1].m, &rc->s[1].qp, SKUA_QP_ERR, 0, NULL), 0);
	run(rc);
	assert_int_equal(held(&s), 5);
	net_close(&s.net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_loss_driver),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_share_all),
		cmocka_unit_test(test_far_number),
		cmocka_unit_test(test_xrc_run),
		cmocka_unit_test(test_xrc_between),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_srq_gone),
		cmocka_unit_test(test_no_table),
		cmocka_unit_test(test_no_number),
		cmocka_unit_test(test_fails),
		cmocka_unit_test(test_srq_renewed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
