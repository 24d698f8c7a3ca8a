// SPDX-License-Identifier: GPL-2.0
/*
 * The k-th packet of each operation is lost, damaged or marked, on the way there or back, with
 * go-back-N and with selective repeat: an automaton of either looks at each packet, every byte
 * arrives, what is sent again is what was lost, and the devices have counted what the capture
 * shows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge_sr.h"
#include "net.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SEC		1000000000ull
#define MESSAGES	3
#define LEN		1000	/* four packets */
#define MTU_CODE	1
#define PSN		0xfffffb	/* the sixth packet has PSN 0 */
#define PLACE		4096

/* A connection, and who looks at it. */
struct kth {
	struct net net;
	struct judge_sr judge[2];
};

static const struct op {
	enum skua_wqe_op op;
	const char *name;
	uint32_t len;
} ops[] = {
	{ SKUA_WQE_SEND, "SEND", LEN }, { SKUA_WQE_SEND_IMM, "SEND_IMM", LEN },
	{ SKUA_WQE_WRITE, "WRITE", LEN }, { SKUA_WQE_WRITE_IMM, "WRITE_IMM", LEN },
	{ SKUA_WQE_READ, "READ", LEN }, { SKUA_WQE_FAA, "FAA", 8 },
	{ SKUA_WQE_ATOMIC_WRITE, "ATOMIC_WRITE", 8 }, { SKUA_WQE_FLUSH, "FLUSH", 0 },
};

static void seen(void *priv, int i, bool sent, const uint8_t *frame, size_t len)
{
	struct kth *k = priv;
	const char *why = NULL;

	if (sent)
		why = judge_sr_sent(&k->judge[i], frame, len, k->net.rc.s[i].f.now);
	else
		judge_sr_received(&k->judge[i], frame, len, k->net.rc.s[i].f.now);
	if (why)
		fail_msg("side %d: %s", i, why);
}

static void post(struct rc *rc, const struct op *o)
{
	const bool back = o->op == SKUA_WQE_READ;

	for (uint32_t m = 0; m < MESSAGES; m++) {
		uint64_t at = m * PLACE;

		memset(rc->s[!back].buf + at, 0x5a, o->len + 1);
		rc_fill(rc->s[back].buf + at, o->len, m);
		if (o->op == SKUA_WQE_SEND || o->op == SKUA_WQE_SEND_IMM ||
		    o->op == SKUA_WQE_WRITE_IMM)
			rc_recv(rc, 1, at, LEN);
		if (o->op == SKUA_WQE_FAA)
			memset(rc->s[1].buf, 0, 8);
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = o->op, .len = o->len, .off = at,
			.roff = o->op == SKUA_WQE_FAA ? 0 : at,
			.imm = o->op == SKUA_WQE_FLUSH ? 8 : m, .atomic[0].swap_add = 1,
			.flush = o->op == SKUA_WQE_FLUSH ? SKUA_WQE_FLUSH_GLOBAL : 0 });
	}
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
}

static void check(struct rc *rc, const struct op *o)
{
	const bool back = o->op == SKUA_WQE_READ;

	for (uint32_t m = 0; m < MESSAGES; m++) {
		uint64_t was;

		rc_expect(rc, 0, false, SKUA_CQE_OK);
		if (o->op == SKUA_WQE_SEND || o->op == SKUA_WQE_SEND_IMM ||
		    o->op == SKUA_WQE_WRITE_IMM)
			rc_expect(rc, 1, true, SKUA_CQE_OK);
		if (o->op == SKUA_WQE_FAA) {
			memcpy(&was, rc->s[0].buf + m * PLACE, sizeof(was));
			assert_int_equal(was, m);
			continue;
		}
		rc_check(rc->s[!back].buf + m * PLACE, o->len, m);
		assert_int_equal(rc->s[!back].buf[m * PLACE + o->len], 0x5a);
	}
	rc_expect_none(rc, 0, false);
	rc_expect_none(rc, 1, true);
}

/* The devices have counted what went over the wire. */
static void check_counters(struct kth *k)
{
	for (int i = 0; i < 2; i++) {
		const struct judge_sr_count *c = &k->judge[i].cnt;
		struct rc *rc = &k->net.rc;

		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_TX_RETRANS_PKTS), c->again);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_TX_SACK), c->tx_sack);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_RX_SACK), c->rx_sack);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_OUT_OF_SEQUENCE), c->ahead);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_DUPLICATE_REQUEST), c->twice);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_PACKET_SEQ_ERR), c->naks);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_NP_ECN_MARKED), c->marked);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_RX_ICRC), c->damaged);
	}
}

/* So many frames met the fault. */
static uint64_t hits(const struct kth *k)
{
	uint64_t n = 0;

	for (int i = 0; i < 2; i++) {
		const struct wire_stats *s = wire_port_stats(k->net.port[i]);

		n += s->fault_loss + s->fault_corrupt + s->fault_ecn;
	}
	return n;
}

/* False: there was no such frame. */
static bool one(const struct op *o, uint32_t mode, const char *action, int port, unsigned int num)
{
	static struct kth k;
	const struct rc_opt opt = {
		.down = true, .mtu_code = MTU_CODE, .timeout = 14, .psn = { PSN, PSN }, .ext = { mode, mode },
		.caps = SKUA_CAP_FLUSH | SKUA_CAP_ATOMIC_WRITE | SKUA_CAP_ATOMIC,
		.access = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
			  SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL,
	};
	const bool lost = strcmp(action, "ecn");
	/* Those are taken when it is their turn only. */
	const bool in_order = o->op == SKUA_WQE_FAA || o->op == SKUA_WQE_ATOMIC_WRITE ||
			      o->op == SKUA_WQE_FLUSH;
	struct rc *rc = &k.net.rc;
	char spec[80];
	bool hit;

	snprintf(spec, sizeof(spec), "rule=%s:port=nic%d,frame=%u", action, port, num);
	net_open(&k.net, &opt, spec);
	k.net.seen = seen;
	k.net.seen_priv = &k;
	for (int i = 0; i < 2; i++) {
		/* ECN-capable */
		rc->s[i].attr.av.tclass = 2;
		mini_rc_to_rts(&rc->s[i].m, &rc->s[i].qp, &rc->s[i].attr);
		judge_sr_start(&k.judge[i], rc->s[i].qp.qpn, rc->s[1 - i].qp.qpn, 128 << MTU_CODE, PSN,
			       PSN, mode ? SKUA_EXT_LOG_WINDOW_MAX : 0, mode == SKUA_EXT_ALWAYS);
	}
	post(rc, o);
	net_pass(&k.net, 5 * SEC);
	check(rc, o);
	check_counters(&k);
	hit = hits(&k);
	assert_true(hits(&k) <= 1);
	/* What was not lost is not sent again; nor more than once what was, but by going back. */
	if (!hit || !lost)
		assert_int_equal(k.judge[0].cnt.again, 0);
	else if (!port && mode && !in_order)
		assert_int_equal(k.judge[0].cnt.again, 1);
	else if (!port)
		assert_true(k.judge[0].cnt.again >= 1);
	else
		assert_true(k.judge[0].cnt.again <= (mode && !in_order ? 1 : MESSAGES * 4));
	net_close(&k.net);
	return hit;
}

static void every(uint32_t mode)
{
	static const char *const actions[] = { "drop", "corrupt", "ecn" };

	for (size_t o = 0; o < N(ops); o++) {
		for (size_t a = 0; a < N(actions); a++) {
			for (int port = 0; port < 2; port++) {
				unsigned int k = 0;

				/* Until the fault meets nothing any more. */
				do {
					print_message("%s: %s frame %u of nic%d\n", ops[o].name,
						      actions[a], k, port);
				} while (one(&ops[o], mode, actions[a], port, k) && ++k < 100);
				assert_true(k >= 1 && k < 100);
			}
		}
	}
}

static void test_go_back(void **state)
{
	(void)state;
	every(SKUA_EXT_PLAIN);
}

static void test_selective(void **state)
{
	(void)state;
	every(SKUA_EXT_ALWAYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_go_back),
		cmocka_unit_test(test_selective),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
