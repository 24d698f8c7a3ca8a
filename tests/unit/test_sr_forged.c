// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, the requester: what it makes of acknowledgments and responses that come in any
 * order a peer may send them in. All that it sends is lost, and the answers are made here.
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
#include "roce/engine.h"
#include "roce/sr_lrc.h"

/* PSNs are counted from here on, which is 6 before they begin anew. */
#define FIRST	0xfffffau
#define MTU	256u

/* A message of so many packets. */
struct msg {
	enum skua_wqe_op op;
	uint32_t psns;
};

static void connect(struct net *n, const struct msg *msg, unsigned int num, uint32_t log_window)
{
	net_open(n, &(struct rc_opt){ .mtu_code = 1, .log_sq = 9, .psn = { FIRST, 7 },
				      .log_window = log_window, .caps = SKUA_CAP_FLUSH,
				      .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } },
		 "port=nic0,loss=100%");
	for (unsigned int k = 0; k < num; k++)
		rc_post_quiet(&n->rc, 0, &n->rc.s[0].qp, &(struct rc_wr){
			.op = msg[k].op, .len = msg[k].psns * MTU,
			.flush = msg[k].op == SKUA_WQE_FLUSH ? SKUA_WQE_FLUSH_GLOBAL : 0 });
	mini_ring(&n->rc.s[0].m, &n->rc.s[0].qp);
	net_settle(n);
}

static uint32_t psn(uint32_t number)
{
	return (FIRST + number) & IB_PSN_MASK;
}

static uint32_t number(__le32 psn)
{
	return (le32_to_cpu(psn) - FIRST) & IB_PSN_MASK;
}

/* An answer of the peer. @syndrome: if it has an AETH. */
static void give(struct net *n, uint8_t opcode, uint32_t at, uint8_t syndrome,
		 const uint8_t *payload, size_t len)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + MTU];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(&n->rc, 1, &b, frame, sizeof(frame), opcode, psn(at)), 0);
	if (b.aeth)
		ib_aeth_put(b.aeth, syndrome, 0);
	if (len)
		memcpy(b.payload, payload, len);
	rc_inject(&n->rc, 0, &b, len);
}

#define GOOD	(IB_AETH_ACK | IB_AETH_CREDIT_INVALID)

/* The peer expects packet @expected, and has those whose numbers are at @has, up to a 0. */
static void give_bitmap(struct net *n, uint32_t expected, const uint32_t *has)
{
	uint8_t map[SKUA_LRC_PSNS / 8] = { 0 };

	for (; *has; has++)
		map[(*has - expected) / 8] |= (uint8_t)(1u << (*has - expected) % 8);
	give(n, IB_OPCODE(SKUA_RC, ACK), expected - 1, GOOD, map, sizeof(map));
}

/* Without a bitmap: of packet @at. */
static void give_aeth(struct net *n, uint32_t at, uint8_t syndrome)
{
	give(n, IB_OPCODE(RC, ACK), at, syndrome, NULL, 0);
}

/* A packet of a response to a READ. */
static void give_response(struct net *n, enum ib_operation op, uint32_t at)
{
	uint8_t payload[MTU];

	memset(payload, (int)at, sizeof(payload));
	give(n, (uint8_t)(IB_TRANSPORT_RC | op), at, GOOD, payload, sizeof(payload));
}

/* All of it, for a READ of four packets. */
static void give_four(struct net *n, uint32_t at)
{
	give_response(n, IB_OP_READ_RESP_FIRST, at);
	give_response(n, IB_OP_READ_RESP_MIDDLE, at + 1);
	give_response(n, IB_OP_READ_RESP_MIDDLE, at + 2);
	give_response(n, IB_OP_READ_RESP_LAST, at + 3);
}

/* Those that have arrived are of these numbers, up to a 0. */
static void expect_arrived(struct net *n, const uint32_t *want)
{
	for (uint32_t k = 0; k < SKUA_LRC_PSNS; k++) {
		bool is = *want && k == *want;

		if (arrived(rc_lrc(&n->rc), psn(k)) != is)
			fail_msg("packet %u %s arrived", k, is ? "has not" : "has");
		want += is;
	}
}

static uint32_t una_of(struct net *n)
{
	return number(rc_query(&n->rc, 0).sqc.una_psn);
}

#define ACK(n, expected, ...)	give_bitmap(n, expected, (const uint32_t []){ __VA_ARGS__, 0 })
#define ARRIVED(n, ...)		expect_arrived(n, (const uint32_t []){ __VA_ARGS__, 0 })

/* A bitmap tells of several messages, of requests whose answers are still to come, and too much. */
static void test_bitmap(void **state)
{
	static const struct msg msg[] = {
		{ SKUA_WQE_WRITE, 1 },	/* 0 */
		{ SKUA_WQE_WRITE, 4 },	/* 1 */
		{ SKUA_WQE_READ, 4 },	/* 5 */
		{ SKUA_WQE_WRITE, 2 },	/* 9 */
		{ SKUA_WQE_READ, 4 },	/* 11 */
		{ SKUA_WQE_WRITE, 2 },	/* 15 */
	};
	static struct net n;

	(void)state;
	connect(&n, msg, 6, 0);
	ACK(&n, 0, 1, 2, 3, 4, 5, 9, 10, 15);
	ARRIVED(&n, 1, 2, 3, 4, 9, 10, 15);
	assert_int_equal(number(rc_lrc(&n.rc)->top), 16);
	assert_int_equal(number(rc_lrc(&n.rc)->seen), 16);
	/* Those from 17 on were never sent. */
	ACK(&n, 0, 1, 2, 3, 4, 5, 9, 10, 11, 15, 16, 17, 18);
	ARRIVED(&n, 1, 2, 3, 4, 9, 10, 15, 16);
	assert_int_equal(number(rc_lrc(&n.rc)->top), 17);
	assert_int_equal(number(rc_lrc(&n.rc)->seen), 17);
	assert_int_equal(una_of(&n), 0);
	net_close(&n);
}

/* Of the last message not all packets were sent. */
static void test_bitmap_sent(void **state)
{
	static const struct msg msg[] = { { SKUA_WQE_WRITE, 1 }, { SKUA_WQE_WRITE, 256 } };
	static struct net n;
	uint32_t sent, has[SKUA_LRC_PSNS] = { 0 };

	(void)state;
	connect(&n, msg, 2, 5);
	sent = number(rc_query(&n.rc, 0).sqc.max_psn);
	assert_in_range(sent, 16, 60);
	for (uint32_t k = 1; k < sent + 3; k++)
		has[k - 1] = k;
	give_bitmap(&n, 0, has);
	has[sent - 1] = 0;
	expect_arrived(&n, has);
	assert_int_equal(number(rc_lrc(&n.rc)->top), sent);
	net_close(&n);
}

/* Responses that come in their order, one of them missing. */
static void test_early(void **state)
{
	static const struct msg msg[] = {
		{ SKUA_WQE_WRITE, 1 },	/* 0 */
		{ SKUA_WQE_WRITE, 4 },	/* 1 */
		{ SKUA_WQE_READ, 4 },	/* 5 */
		{ SKUA_WQE_WRITE, 2 },	/* 9 */
		{ SKUA_WQE_READ, 4 },	/* 11 */
		{ SKUA_WQE_READ, 4 },	/* 15 */
		{ SKUA_WQE_WRITE, 1 },	/* 19 */
	};
	static struct net n;

	(void)state;
	connect(&n, msg, 7, 0);
	/* The acknowledgment of 0 is lost: the response implies it. */
	ACK(&n, 0, 1, 2, 3, 4);
	assert_int_equal(una_of(&n), 0);
	give_response(&n, IB_OP_READ_RESP_FIRST, 5);
	assert_int_equal(una_of(&n), 6);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);

	give_response(&n, IB_OP_READ_RESP_MIDDLE, 7);
	give_response(&n, IB_OP_READ_RESP_LAST, 8);
	ARRIVED(&n, 7, 8);
	give_aeth(&n, 10, GOOD);
	assert_int_equal(number(rc_lrc(&n.rc)->cum), 11);
	give_four(&n, 11);
	assert_int_equal(number(rc_lrc(&n.rc)->cum), 11);
	/* The next request was executed, and those before it. */
	give_response(&n, IB_OP_READ_RESP_FIRST, 15);
	assert_int_equal(number(rc_lrc(&n.rc)->cum), 15);

	/* It had been sent again: that is answered. */
	rc_lrc(&n.rc)->rr_held |= cpu_to_le32(rr_asked(2));
	give_response(&n, IB_OP_READ_RESP_MIDDLE, 16);
	assert_int_equal(rc_lrc(&n.rc)->rr_held, 0);
	give_response(&n, IB_OP_READ_RESP_MIDDLE, 17);
	give_response(&n, IB_OP_READ_RESP_LAST, 18);
	ARRIVED(&n, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18);
	assert_int_equal(number(rc_lrc(&n.rc)->top), 19);

	/* A WRITE has no response. */
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_RX_BAD_RESP), 0);
	give_response(&n, IB_OP_READ_RESP_MIDDLE, 19);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_RX_BAD_RESP), 1);
	assert_int_equal(number(rc_lrc(&n.rc)->cum), 15);
	assert_int_equal(number(rc_lrc(&n.rc)->top), 19);

	/* What was missing comes. */
	give_response(&n, IB_OP_READ_RESP_MIDDLE, 6);
	assert_int_equal(una_of(&n), 19);
	for (unsigned int k = 2; k < 6; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	give_aeth(&n, 19, GOOD);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	net_close(&n);
}

static bool in_loss(struct net *n)
{
	return le32_to_cpu(rc_query(&n->rc, 0).sqc.valid) & SKUA_SQC_LOSS;
}

/* A bitmap, and the peer has not said that it knows the extension: it is not from the peer. */
static void test_not_spoken(void **state)
{
	static struct net n;

	(void)state;
	net_open(&n, &(struct rc_opt){ .mtu_code = 1, .psn = { FIRST, 7 },
				       .ext = { SKUA_EXT_NEGOTIATE, SKUA_EXT_NEGOTIATE } },
		 "port=nic0,loss=100%");
	rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 4 * MTU });
	net_settle(&n);
	/* An old one does not have it ask the peer whether packets have come. */
	ACK(&n, (uint32_t)-1000, (uint32_t)-999);
	net_pass(&n, 20000000);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	ACK(&n, 1, 2);
	assert_int_equal(una_of(&n), 0);
	assert_false(in_loss(&n));
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_RX_BAD_RESP), 2);
	net_close(&n);
}

/* Responses that are expected, while a request behind them is known to wait for another one. */
static void test_next(void **state)
{
	static const struct msg msg[] = {
		{ SKUA_WQE_READ, 4 },	/* 0 */
		{ SKUA_WQE_READ, 4 },	/* 4 */
	};
	static struct net n;

	(void)state;
	connect(&n, msg, 2, 0);
	ACK(&n, 0, 4);
	assert_true(in_loss(&n));
	assert_int_equal(rc_lrc(&n.rc)->rr_held, cpu_to_le32(rr_held(1)));
	for (uint32_t k = 0; k < 3; k++) {
		rc_lrc(&n.rc)->mark_time = 0;
		give_response(&n, k ? IB_OP_READ_RESP_MIDDLE : IB_OP_READ_RESP_FIRST, k);
		assert_int_equal(una_of(&n), k + 1);
		assert_int_equal(number(rc_lrc(&n.rc)->top), k + 1);
		assert_int_not_equal(rc_lrc(&n.rc)->mark_time, 0);
	}
	give_response(&n, IB_OP_READ_RESP_LAST, 3);
	assert_int_equal(una_of(&n), 4);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	assert_true(in_loss(&n));
	/* It goes as far as is known: nothing is missing any more. */
	give_response(&n, IB_OP_READ_RESP_FIRST, 4);
	assert_int_equal(una_of(&n), 5);
	assert_false(in_loss(&n));
	net_close(&n);

	/* The last response of a request frees its place. */
	connect(&n, msg, 2, 0);
	ACK(&n, 0, 4);
	rc_lrc(&n.rc)->rr_held |= cpu_to_le32(rr_held(0));
	give_four(&n, 0);
	assert_int_equal(rc_lrc(&n.rc)->rr_held, cpu_to_le32(rr_held(1)));
	net_close(&n);

	/* The peer refused amid the first one, and its NAK overtook the responses before that. */
	connect(&n, msg, 2, 0);
	ACK(&n, 0, 4);
	give_aeth(&n, 2, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS);
	give_response(&n, IB_OP_READ_RESP_FIRST, 0);
	assert_int_equal(una_of(&n), 1);
	give_response(&n, IB_OP_READ_RESP_MIDDLE, 1);
	rc_expect(&n.rc, 0, false, SKUA_CQE_REM_ACCESS_ERR);
	net_settle(&n);
	rc_expect(&n.rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	net_close(&n);
}

/* Of the second READ below, requests that side 0 has sent. */
static void count_asked(void *priv, int i, bool sent, const uint8_t *frame, size_t len)
{
	unsigned int *num = priv;
	struct skua_pkt pkt;

	if (i || !sent)
		return;
	assert_int_equal(skua_pkt_parse(frame, len, &pkt), SKUA_PKT_OK);
	*num += pkt.opcode == IB_OPCODE(SKUA_RC, READ_REQUEST) && pkt.psn == psn(5);
}

static bool is_asked(struct net *n)
{
	return rr_is(rc_lrc(&n->rc), rr_asked(1));
}

/* A READ, a FLUSH and a READ: this one, the last, is asked for again to learn what has come. */
static void ask_last(struct net *n, unsigned int *asked)
{
	static const struct msg msg[] = {
		{ SKUA_WQE_READ, 4 },	/* 0 */
		{ SKUA_WQE_FLUSH, 1 },	/* 4 */
		{ SKUA_WQE_READ, 4 },	/* 5 */
	};

	connect(n, msg, 3, 5);
	*asked = 0;
	n->seen = count_asked;
	n->seen_priv = asked;
	for (unsigned int k = 0; k < 100 && !is_asked(n); k++)
		net_pass(n, 100000);
	assert_true(is_asked(n));
	assert_int_equal(*asked, 1);
}

/* The first READ is answered from packet @from on. */
static void answer_first(struct net *n, uint32_t from)
{
	for (uint32_t at = from; at < 4; at++)
		give_response(n, !at ? IB_OP_READ_RESP_FIRST : at == 3 ? IB_OP_READ_RESP_LAST :
					 IB_OP_READ_RESP_MIDDLE, at);
}

/*
 * A FLUSH has no number among READs: its response says nothing of the READ behind it, which was
 * asked for again. That is not done once more when packets behind it have come.
 */
static void test_flush_answered(void **state)
{
	/* The response comes before its turn; likewise behind others, in a row; in its turn. */
	enum { EARLY, ROW, TURN };
	static struct net n;
	unsigned int asked;

	(void)state;
	for (int k = EARLY; k <= TURN; k++) {
		ask_last(&n, &asked);
		rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 * MTU });
		net_settle(&n);
		if (k == TURN)
			ACK(&n, 4, 9);
		if (k == ROW)
			give_aeth(&n, 3, GOOD);
		if (k != EARLY)
			answer_first(&n, k == ROW);
		assert_int_equal(una_of(&n), k == TURN ? 4 : 0);
		give(&n, IB_OPCODE(RC, READ_RESP_ONLY), 4, GOOD, NULL, 0);
		assert_int_equal(una_of(&n), k == TURN ? 5 : 0);
		assert_true(in_loss(&n));
		ACK(&n, 5, 9, 10, 11, 12, 13, 14, 15, 16);
		net_settle(&n);
		assert_int_equal(asked, 1);
		net_close(&n);
	}
}

/*
 * A WRITE has come, and waits for the READ before it. When that is answered only the READ is
 * complete: the WRITE may fail yet when its turn comes.
 */
static void test_held_fails(void **state)
{
	static const struct msg msg[] = {
		{ SKUA_WQE_READ, 4 },	/* 0 */
		{ SKUA_WQE_WRITE, 1 },	/* 4 */
	};
	static struct net n;

	(void)state;
	connect(&n, msg, 2, 0);
	ACK(&n, 0, 4);
	ARRIVED(&n, 4);
	give_four(&n, 0);
	assert_int_equal(una_of(&n), 4);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&n.rc, 0, false);
	give_aeth(&n, 4, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS);
	rc_expect(&n.rc, 0, false, SKUA_CQE_REM_ACCESS_ERR);
	net_close(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bitmap),
		cmocka_unit_test(test_bitmap_sent),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_not_spoken),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_flush_answered),
		cmocka_unit_test(test_held_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
