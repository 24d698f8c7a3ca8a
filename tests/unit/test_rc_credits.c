// SPDX-License-Identifier: GPL-2.0
/*
 * End-to-end flow control (9.7.7.2 of the IBTA's specification): what the responder says
 * of its receives, and what the requester makes of what it is told.
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
#include "roce/engine.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define O(op)	IB_OPCODE(RC, op)
#define MTU	256

/* The table of the specification. */
static const uint32_t table[] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

static void test_codes(void **state)
{
	(void)state;
	assert_int_equal(N(table), IB_AETH_CREDIT_INVALID);
	for (uint32_t code = 0; code < N(table); code++) {
		assert_int_equal(ib_credits(code), table[code]);
		assert_int_equal(ib_credit_code(table[code]), code);
		/* What has no code is rounded down. */
		if (code)
			assert_int_equal(ib_credit_code(table[code] - 1), code - 1);
	}
	assert_int_equal(ib_credit_code(1 << 16), 30);
	assert_int_equal(ib_credit_code(UINT32_MAX), 30);
}

/* --- the responder --- */

static void forge(struct rc *rc, uint8_t op, uint32_t psn, uint32_t len)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;
	size_t payload = 0;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), op, psn), 0);
	if (b.reth)
		ib_reth_put(b.reth, RC_VA, rc->s[1].key, len);
	else
		payload = len;
	rc_inject(rc, 1, &b, op == O(WRITE_ONLY) ? len : payload);
}

/* The next packet of side @i has an AETH: its credit code and MSN. */
static void next_aeth(struct rc *rc, int i, uint8_t op, uint32_t *code, uint32_t *msn)
{
	struct fake_frame *f;
	struct skua_pkt pkt;

	fake_run(&rc->s[i].f);
	f = fake_tx(&rc->s[i].f);
	assert_non_null(f);
	assert_int_equal(skua_pkt_parse(f->data, f->len, &pkt), SKUA_PKT_OK);
	assert_int_equal(pkt.opcode, op);
	assert_int_equal(pkt.aeth->syndrome & IB_AETH_TYPE_MASK, IB_AETH_ACK);
	*code = pkt.aeth->syndrome & IB_AETH_VALUE_MASK;
	*msn = be24_get(pkt.aeth->msn);
	free(f);
}

/* So many are posted, whether the message that is acknowledged took one or not. */
static void test_count(void **state)
{
	uint32_t code, msn;

	(void)state;
	for (uint32_t posted = 0; posted <= 64; posted++) {
		struct rc rc;

		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .log_rq = 6 });
		for (uint32_t k = 0; k < posted; k++)
			rc_recv(&rc, 1, 0, 64);
		forge(&rc, O(WRITE_ONLY), 0, 8);
		next_aeth(&rc, 1, O(ACK), &code, &msn);
		assert_int_equal(code, ib_credit_code(posted));
		assert_int_equal(msn, 1);
		for (uint32_t psn = 1; psn <= posted; psn++) {
			forge(&rc, O(SEND_ONLY), psn, 8);
			next_aeth(&rc, 1, O(ACK), &code, &msn);
			assert_int_equal(code, ib_credit_code(posted - psn));
			assert_int_equal(msn, 1 + psn);
		}
		rc_close(&rc);
	}
}

/* The one that a message is being written to counts until the message ends. */
static void test_count_of_unfinished(void **state)
{
	uint32_t code, msn;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	rc_recv(&rc, 1, 0, 4096);
	forge(&rc, O(SEND_FIRST), 0, MTU);
	next_aeth(&rc, 1, O(ACK), &code, &msn);
	assert_int_equal(code, 1);
	assert_int_equal(msn, 0);
	forge(&rc, O(SEND_LAST), 1, MTU);
	next_aeth(&rc, 1, O(ACK), &code, &msn);
	assert_int_equal(code, 0);
	assert_int_equal(msn, 1);
	rc_close(&rc);
}

/*
 * What is posted behind the device's back is told of when the ring runs low, before it
 * has run out.
 */
static void test_count_is_renewed(void **state)
{
	uint32_t code, msn, least = 31;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .log_rq = 6 });
	for (uint32_t k = 0; k < 64; k++)
		rc_recv(&rc, 1, 0, 64);
	for (uint32_t psn = 0; psn < 1000; psn++) {
		forge(&rc, O(SEND_ONLY), psn, 8);
		next_aeth(&rc, 1, O(ACK), &code, &msn);
		least = code < least ? code : least;
		rc_recv(&rc, 1, 0, 64);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
	}
	assert_int_equal(least, ib_credit_code(16));
	rc_close(&rc);
}

/* A response that speaks for fewer messages gives as many credits more. */
static void test_count_in_response(void **state)
{
	uint32_t code, msn;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	for (uint32_t k = 0; k < 12; k++)
		rc_recv(&rc, 1, 0, 64);
	forge(&rc, O(READ_REQUEST), 0, 8);
	for (uint32_t psn = 1; psn <= 4; psn++)
		forge(&rc, O(SEND_ONLY), psn, 8);
	next_aeth(&rc, 1, O(READ_RESP_ONLY), &code, &msn);
	assert_int_equal(msn, 1);
	assert_int_equal(code, ib_credit_code(8 + 4));
	next_aeth(&rc, 1, O(ACK), &code, &msn);
	assert_int_equal(msn, 5);
	assert_int_equal(code, ib_credit_code(8));
	rc_close(&rc);
}

/* --- the requester --- */

/* An ACK that side 1 did not send. */
static void ack(struct rc *rc, uint32_t psn, uint32_t msn, uint8_t code)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), O(ACK), psn & IB_PSN_MASK), 0);
	ib_aeth_put(b.aeth, IB_AETH_ACK | code, msn & IB_MSN_MASK);
	rc_inject(rc, 0, &b, 0);
	fake_run(&rc->s[0].f);
}

/* Packets that side 0 has sent; the last one's PSN, and whether it asks for an ACK. */
static unsigned int sent(struct rc *rc, uint32_t *psn, bool *ackreq)
{
	struct fake_frame *f;
	struct skua_pkt pkt;
	unsigned int n = 0;

	fake_run(&rc->s[0].f);
	while ((f = fake_tx(&rc->s[0].f))) {
		assert_int_equal(skua_pkt_parse(f->data, f->len, &pkt), SKUA_PKT_OK);
		*psn = pkt.psn;
		*ackreq = pkt.ackreq;
		free(f);
		n++;
	}
	return n;
}

static void post(struct rc *rc, enum skua_wqe_op op, uint32_t len)
{
	rc_post(rc, 0, &(struct rc_wr){ .op = op, .len = len });
}

/* The first message is sent and acknowledged with this. */
static void begin(struct rc *rc, uint8_t code)
{
	uint32_t psn;
	bool ackreq;

	rc_open(rc, &(struct rc_opt){ .mtu_code = 1, .timeout = 20 });
	post(rc, SKUA_WQE_SEND, 8);
	assert_int_equal(sent(rc, &psn, &ackreq), 1);
	ack(rc, 0, 1, code);
}

/* Messages up to the limit go at once, then a packet at a time, until there are more. */
static void test_limit(void **state)
{
	static const enum skua_wqe_op ops[] = {
		SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE_IMM,
	};
	uint32_t psn;
	bool ackreq;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(ops); k++) {
		begin(&rc, ib_credit_code(3));
		for (unsigned int n = 0; n < 10; n++)
			post(&rc, ops[k], 2 * MTU);
		assert_int_equal(sent(&rc, &psn, &ackreq), 6);
		ack(&rc, 2, 2, ib_credit_code(2));
		assert_int_equal(sent(&rc, &psn, &ackreq), 0);
		ack(&rc, 6, 4, 0);
		/* The fifth: its first packet, then its second, each acknowledged alone. */
		assert_int_equal(sent(&rc, &psn, &ackreq), 1);
		assert_int_equal(psn, 7);
		assert_true(ackreq);
		ack(&rc, 7, 4, 0);
		assert_int_equal(sent(&rc, &psn, &ackreq), 1);
		assert_int_equal(psn, 8);
		/* Of its own accord, for the same PSN: this one and two more. */
		ack(&rc, 7, 4, ib_credit_code(3));
		assert_int_equal(sent(&rc, &psn, &ackreq), 4);
		assert_int_equal(psn, 12);
		ack(&rc, 12, 7, IB_AETH_CREDIT_INVALID);
		assert_int_equal(sent(&rc, &psn, &ackreq), 8);
		ack(&rc, 20, 11, IB_AETH_CREDIT_INVALID);
		for (unsigned int n = 0; n < 11; n++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_close(&rc);
	}
}

/* What needs no receive is not limited, but counts as a message. */
static void test_not_limited(void **state)
{
	uint32_t psn;
	bool ackreq;
	struct rc rc;

	(void)state;
	begin(&rc, 0);
	for (unsigned int n = 0; n < 3; n++)
		post(&rc, SKUA_WQE_WRITE, 2 * MTU);
	post(&rc, SKUA_WQE_NOP, 0);
	post(&rc, SKUA_WQE_SEND, 2 * MTU);
	assert_int_equal(sent(&rc, &psn, &ackreq), 6);
	/* Of five messages four were executed, and there is one receive. */
	ack(&rc, 6, 4, 1);
	assert_int_equal(sent(&rc, &psn, &ackreq), 2);
	rc_close(&rc);
}

/* A long READ is several requests, each of which the peer counts as a message. */
static void test_parts_count(void **state)
{
	uint32_t psn;
	bool ackreq;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .timeout = 20 });
	rc_recv(&rc, 1, 0, 64);
	rc_recv(&rc, 1, 0, 64);
	post(&rc, SKUA_WQE_READ, 3 * ENGINE_READ_PSNS * MTU);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	/* There are two receives for these. */
	for (unsigned int n = 0; n < 4; n++)
		post(&rc, SKUA_WQE_SEND, 8);
	assert_int_equal(sent(&rc, &psn, &ackreq), 2);
	/* From the first one on again: as many as before. */
	fake_advance(&rc.s[0].f, 5000000000);
	assert_int_equal(sent(&rc, &psn, &ackreq), 2);
	rc_close(&rc);
}

/* Rounding down takes nothing back. */
static void test_rounding(void **state)
{
	uint32_t psn;
	bool ackreq;
	struct rc rc;

	(void)state;
	begin(&rc, ib_credit_code(24));
	for (unsigned int n = 0; n < 23; n++)
		post(&rc, SKUA_WQE_SEND, 8);
	assert_int_equal(sent(&rc, &psn, &ackreq), 23);
	/* 23 are left, which says 16. */
	ack(&rc, 1, 2, ib_credit_code(23));
	post(&rc, SKUA_WQE_SEND, 8);
	assert_int_equal(sent(&rc, &psn, &ackreq), 1);
	/* One of an earlier PSN says nothing at all. */
	ack(&rc, 5, 6, ib_credit_code(19));
	ack(&rc, 3, 4, ib_credit_code(1000));
	post(&rc, SKUA_WQE_SEND, 8);
	assert_int_equal(sent(&rc, &psn, &ackreq), 0);
	rc_close(&rc);
}

/* An RNR NAK says that there is none: a packet asks, and its ACK says what holds. */
static void test_rnr(void **state)
{
	static const uint8_t says[] = { 0, 2, IB_AETH_CREDIT_INVALID };
	static const unsigned int next[] = { 1, 2, 5 };
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_build b;
	uint32_t psn;
	bool ackreq;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(says); k++) {
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .timeout = 20 });
		for (unsigned int n = 0; n < 6; n++)
			post(&rc, SKUA_WQE_SEND, 8);
		assert_int_equal(sent(&rc, &psn, &ackreq), 6);
		rc_build(&rc, 1, &b, frame, sizeof(frame), O(ACK), 0);
		ib_aeth_put(b.aeth, IB_AETH_RNR_NAK | 1, 0);
		rc_inject(&rc, 0, &b, 0);
		fake_advance(&rc.s[0].f, 20000);
		assert_int_equal(sent(&rc, &psn, &ackreq), 1);
		assert_int_equal(psn, 0);
		ack(&rc, 0, 1, says[k]);
		assert_int_equal(sent(&rc, &psn, &ackreq), next[k]);
		rc_close(&rc);
	}
}

/* Nothing was said yet: nothing is limited. */
static void test_before_the_first(void **state)
{
	uint32_t psn;
	bool ackreq;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	for (unsigned int n = 0; n < 20; n++)
		post(&rc, SKUA_WQE_SEND, 8);
	assert_int_equal(sent(&rc, &psn, &ackreq), 20);
	rc_close(&rc);
}

/* --- both --- */

static bool lose(void *priv, struct fake_frame *frame)
{
	unsigned int *n = priv;

	(void)frame;
	return ++*n % 13;
}

/*
 * A receiver that posts few at a time, and late: but for the first burst and the packets
 * that ask, nothing is sent for which there is no receive; all arrives in the end, and
 * both sides have counted alike, with lost packets too.
 */
static void slow_receiver(bool lossy)
{
	unsigned int got = 0, done = 0, posted = 0, lost = 0, num = 300;
	struct skua_sqc sqc;
	struct skua_cqe cqe;
	struct rc rc;

	/* Numbers of messages and PSNs wrap in between. */
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 0xffffe0 }, .log_rq = 3,
				       .timeout = 5 });
	if (lossy) {
		rc.s[0].f.filter = lose;
		rc.s[0].f.filter_priv = &lost;
		rc.s[1].f.filter = lose;
		rc.s[1].f.filter_priv = &lost;
	}
	for (unsigned int sends = 0, round = 0; done < num; round++) {
		assert_true(round < 100000);
		for (; sends < num && sends - done < 8; sends++) {
			if (sends % 7 == 6)
				rc_post_quiet(&rc, 0, &rc.s[0].qp,
					      &(struct rc_wr){ .op = SKUA_WQE_NOP, .quiet = true });
			post(&rc, sends % 5 == 4 ? SKUA_WQE_WRITE : SKUA_WQE_SEND,
			     sends % 3 * MTU);
		}
		rc_pump_for(&rc, 20000);
		while (posted - got < 2) {
			rc_recv(&rc, 1, 0, 4 * MTU);
			posted++;
		}
		rc_pump_for(&rc, 20000);
		while (mini_cq_next(&rc.s[1].m, &rc.s[1].rcq, &cqe)) {
			assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
			got++;
		}
		while (mini_cq_next(&rc.s[0].m, &rc.s[0].scq, &cqe)) {
			assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
			done++;
		}
	}
	assert_int_equal(got, num - num / 5);
	sqc = rc_query(&rc, 0).sqc;
	assert_int_equal(le32_to_cpu(sqc.ssn), num + 1);
	assert_int_equal(le32_to_cpu(sqc.ci_ssn), num + 1);
	assert_int_equal(le32_to_cpu(rc_query(&rc, 1).rqc.msn), num);
	if (!lossy) {
		/* A packet for each pair of receives, where it would be bursts of eight messages. */
		assert_true(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS) <= num / 2);
	}
	rc_close(&rc);
}

static void test_slow_receiver(void **state)
{
	(void)state;
	slow_receiver(false);
	slow_receiver(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_count_of_unfinished),
		cmocka_unit_test(test_count_is_renewed),
		cmocka_unit_test(test_count_in_response),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_not_limited),
		cmocka_unit_test(test_parts_count),
		cmocka_unit_test(test_rounding),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_before_the_first),
		cmocka_unit_test(test_slow_receiver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
