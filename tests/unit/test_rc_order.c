// SPDX-License-Identifier: GPL-2.0
/*
 * What a responder owes for packets by their PSNs. When they come out of order while
 * the device is busy, several of them are taken before its next word leaves: it speaks
 * for all that arrived in order, and asks for what is missing.
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

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define FIRST	0xfffffe
#define SEQ_NAK	(IB_AETH_NAK | IB_NAK_PSN_SEQUENCE)
#define ACK	0xfe	/* with whatever credits */
#define RNR	0xff		/* with whatever timer */

/**
 * struct order - packets of one turn, and what is said at its end
 * @psn: they come in this order, counted from FIRST
 * @n: how many
 * @asks: bit k: packet @psn[k] asks to be acknowledged
 * @send: bit k: it is a SEND, else a WRITE
 * @recvs: receive WQEs
 * @syndrome: of the one answer; 0: there is none
 * @says: its PSN, counted from FIRST
 * @next: PSN expected afterwards
 */
static const struct order {
	const char *name;
	uint8_t psn[8];
	unsigned int n;
	uint32_t asks, send, recvs;
	uint8_t syndrome;
	int says;
	uint32_t next;
} orders[] = {
	{ "in order, none asks", { 0, 1, 2 }, 3, 0, 0, 0, 0, 0, 3 },
	{ "in order, the first asks", { 0, 1, 2 }, 3, 1, 0, 0, ACK, 2, 3 },
	{ "a gap", { 0, 2, 3 }, 3, 7, 0, 0, SEQ_NAK, 1, 1 },
	{ "two change places: the one dropped is asked for", { 0, 2, 1 }, 3, 0, 0, 0,
	  SEQ_NAK, 2, 2 },
	{ "two change places, and both come again", { 0, 2, 1, 2 }, 4, 0, 0, 0, ACK, 2, 3 },
	{ "what a NAK acknowledged is acknowledged still", { 0, 2, 1, 2 }, 4, 1, 0, 0, ACK, 2,
	  3 },
	{ "one comes five too early", { 5, 0, 1, 2, 3, 4 }, 6, 0, 0, 0, SEQ_NAK, 5, 5 },
	{ "five too early, then again", { 5, 0, 1, 2, 3, 4, 5 }, 7, 0, 0, 0, ACK, 5, 6 },
	{ "the furthest that was dropped counts", { 1, 4, 2, 0, 1, 2 }, 6, 0, 0, 0, SEQ_NAK, 3,
	  3 },
	{ "a gap behind a gap", { 1, 0, 3 }, 3, 0, 0, 0, SEQ_NAK, 1, 1 },
	{ "no receive", { 0, 1 }, 2, 3, 2, 0, RNR, 1, 1 },
	{ "no receive, twice", { 0, 1, 1 }, 3, 3, 6, 0, RNR, 1, 1 },
	{ "an old one behind a gap", { 0, 2, 0 }, 3, 0, 0, 0, SEQ_NAK, 1, 1 },
};

static void forge_at(struct rc *rc, const struct order *o, unsigned int k, uint32_t psn)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 256];
	uint8_t op = o->send & 1u << k ? IB_OPCODE(RC, SEND_ONLY) : IB_OPCODE(RC, WRITE_ONLY);
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), op,
				  psn & IB_PSN_MASK), 0);
	b.bth->ack = o->asks & 1u << k ? b.bth->ack | IB_BTH_ACK_REQ :
					 b.bth->ack & ~IB_BTH_ACK_REQ;
	if (b.reth)
		ib_reth_put(b.reth, RC_VA, rc->s[1].key, 8);
	memset(b.payload, 0x77, 8);
	rc_inject(rc, 1, &b, 8);
}

static void test_one_turn(void **state)
{
	struct fake_frame *f;
	struct skua_pkt pkt;
	struct rc rc;

	(void)state;
	for (size_t i = 0; i < N(orders); i++) {
		const struct order *o = &orders[i];

		print_message("%s\n", o->name);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { FIRST } });
		for (uint32_t k = 0; k < o->recvs; k++)
			rc_recv(&rc, 1, 0, 8);
		for (unsigned int k = 0; k < o->n; k++)
			forge_at(&rc, o, k, FIRST + o->psn[k]);
		fake_run(&rc.s[1].f);
		assert_int_equal(le32_to_cpu(rc_query(&rc, 1).rqc.epsn),
				 (FIRST + o->next) & IB_PSN_MASK);
		f = fake_tx(&rc.s[1].f);
		if (!o->syndrome) {
			assert_null(f);
			rc_close(&rc);
			continue;
		}
		assert_non_null(f);
		assert_int_equal(skua_pkt_parse(f->data, f->len, &pkt), SKUA_PKT_OK);
		if (o->syndrome == RNR)
			assert_int_equal(pkt.aeth->syndrome & IB_AETH_TYPE_MASK, IB_AETH_RNR_NAK);
		else if (o->syndrome == ACK)
			assert_int_equal(pkt.aeth->syndrome & IB_AETH_TYPE_MASK, IB_AETH_ACK);
		else
			assert_int_equal(pkt.aeth->syndrome, o->syndrome);
		assert_int_equal(pkt.psn, (FIRST + o->says) & IB_PSN_MASK);
		free(f);
		assert_null(fake_tx(&rc.s[1].f));
		rc_close(&rc);
	}
}

/*
 * Which PSNs are which, seen from the expected one: the 2^23 before it are those of
 * requests that come again, all others are ahead.
 */
static const struct {
	const char *name;
	uint32_t at;		/* from the expected PSN on */
	enum skua_counter counts;
} regions[] = {
	{ "the expected", 0, SKUA_CNT_COUNT },
	{ "the next", 1, SKUA_CNT_OUT_OF_SEQUENCE },
	{ "the last ahead", 0x7fffff, SKUA_CNT_OUT_OF_SEQUENCE },
	{ "the first behind", 0x800000, SKUA_CNT_DUPLICATE_REQUEST },
	{ "the last behind", 0xffffff, SKUA_CNT_DUPLICATE_REQUEST },
};

static void test_psn_regions(void **state)
{
	static const uint32_t start[] = { 0, 1, 0x7fffff, 0x800000, 0xfffffe, 0xffffff };
	static const struct order one = { .n = 1, .asks = 1 };
	struct rc rc;

	(void)state;
	for (size_t i = 0; i < N(regions); i++) {
		print_message("%s\n", regions[i].name);
		for (size_t k = 0; k < N(start); k++) {
			uint32_t dup, oos;

			rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { start[k] } });
			forge_at(&rc, &one, 0, start[k] + regions[i].at);
			fake_run(&rc.s[1].f);
			dup = regions[i].counts == SKUA_CNT_DUPLICATE_REQUEST;
			oos = regions[i].counts == SKUA_CNT_OUT_OF_SEQUENCE;
			assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_DUPLICATE_REQUEST), dup);
			assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_OUT_OF_SEQUENCE), oos);
			assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), !dup && !oos);
			assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_NAK), oos);
			assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_ACK), !oos);
			assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
			rc_close(&rc);
		}
	}
}

/*
 * The IBTA's codes of the RNR NAK timer field: how long a requester waits at least, in
 * microseconds.
 */
static const uint32_t rnr_usec[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920,
	2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880,
	163840, 245760, 327680, 491520,
};

static void test_rnr_timer(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t code = 0; code < 32; code++) {
		uint64_t wait = rnr_usec[code] * 1000ull;

		rc_open(&rc, &(struct rc_opt){ .down = true });
		for (int i = 0; i < 2; i++) {
			struct rc_side *s = &rc.s[i];

			le32p_replace_bits(&s->attr.retry, code, SKUA_ATTR_MIN_RNR_TIMER);
			mini_rc_to_rts(&s->m, &s->qp, &s->attr);
		}
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 8 });
		rc_pump(&rc);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_RNR), 1);
		rc_recv(&rc, 1, 0, 8);
		rc_pump_for(&rc, wait - 1);
		rc_expect_none(&rc, 0, false);
		rc_pump_for(&rc, 1);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
		assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RNR_NAK_RETRY_ERR), 1);
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_turn),
		cmocka_unit_test(test_psn_regions),
		cmocka_unit_test(test_rnr_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
