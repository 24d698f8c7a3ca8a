// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, responder, rule by rule: what is taken before its turn and what is
 * dropped, what becomes of it when its turn has come, and what is answered.
 */
#include "odp.h"

#include <skua/wqe_build.h>

#include "sr_forge.h"

/* --- acknowledgments --- */

static void test_bitmap(void **state)
{
	struct sr_answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	/* Several packets of one turn are acknowledged together. */
	for (uint32_t n = 1; n < 60; n += 1 + n % 3)
		give(&rc, write_one(n));
	run(&rc);
	a = expect_ack(&rc, -1, 60);
	expect_silence(&rc);
	for (uint32_t n = 0, next = 1; n < 64; n++) {
		assert_int_equal(sr_bit(&a, n), n == next && n < 60);
		assert_int_equal(written(&rc, n), n == next && n < 60);
		next += n == next ? 1 + n % 3 : 0;
	}
	assert_true(sr_held(&rc));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_SACK), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_ACK), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY),
			 rc_cnt(&rc, 1, SKUA_CNT_OUT_OF_SEQUENCE));
	/* The holes, from the far end. */
	for (uint32_t n = 60; n-- > 0;)
		give(&rc, write_one(n));
	run(&rc);
	a = expect_ack(&rc, 59, 0);
	assert_int_equal(a.msn, 60);
	assert_false(sr_held(&rc));
	for (uint32_t n = 0; n < 60; n++)
		assert_true(written(&rc, n));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), 60);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_NAK), 0);
	rc_close(&rc);
}

/* Its last packet is taken, the one behind it is not. */
static void test_window(void **state)
{
	(void)state;
	for (uint32_t log = SKUA_EXT_LOG_WINDOW_MIN; log <= SKUA_EXT_LOG_WINDOW_MAX; log++) {
		struct rc_opt opt = small;
		uint32_t last = (1u << log) - 1;
		struct sr_answer a;
		struct rc rc;

		opt.log_window = log;
		rc_open(&rc, &opt);
		give(&rc, write_one(last + 1));
		run(&rc);
		expect_ack(&rc, -1, 0);
		assert_false(written(&rc, last + 1));
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
		give(&rc, write_one(last));
		run(&rc);
		a = expect_ack(&rc, -1, last + 1);
		assert_true(sr_bit(&a, last));
		assert_true(written(&rc, last));
		/* Twice round the table. */
		for (uint32_t n = 0; n < 2u << log; n++)
			give(&rc, write_one(n ^ 1));
		hush(&rc);
		assert_int_equal(epsn(&rc), 2u << log);
		assert_false(sr_held(&rc));
		rc_close(&rc);
	}
}

/* A WRITE that asks for no acknowledgment comes, and one is sent all the same, or not. */
static void quiet(struct rc *rc, uint32_t n, bool told)
{
	struct sr_pkt p = write_one(n);
	struct sr_answer a;

	p.quiet = true;
	give(rc, p);
	run(rc);
	assert_true(written(rc, n));
	if (told) {
		a = expect_ack(rc, -1, n + 1);
		assert_true(sr_bit(&a, n));
	}
	expect_silence(rc);
}

/*
 * Behind what is missing, packets that follow each other are told of by every 32nd PSN, and at
 * once where they do not: that opens a hole, or fills one. The 17th packet has PSN 0.
 */
static void test_in_a_row(void **state)
{
	struct sr_pkt p = write_one(49);
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	quiet(&rc, 2, true);
	quiet(&rc, 3, false);
	for (uint32_t n = 4; n < 49; n++)
		quiet(&rc, n, n % 32 == 16);
	/* 49 is missing. */
	quiet(&rc, 50, true);
	quiet(&rc, 51, false);
	/* It comes: all that is held is told of. */
	p.quiet = true;
	give(&rc, p);
	run(&rc);
	expect_ack(&rc, -1, 52);
	/* Once more, which says that the peer does not know. */
	give(&rc, p);
	run(&rc);
	expect_ack(&rc, -1, 52);
	/* The peer asks, with the last that it may send. */
	give(&rc, write_one(52));
	run(&rc);
	expect_ack(&rc, -1, 53);
	quiet(&rc, 53, false);
	give(&rc, write_one(54));
	run(&rc);
	expect_ack(&rc, -1, 55);
	/* What was missing first: as in the standard, but with what is held. */
	for (uint32_t n = 0; n < 2; n++) {
		p = write_one(n);
		p.quiet = true;
		give(&rc, p);
		run(&rc);
	}
	expect_ack(&rc, 0, 54);
	expect_ack(&rc, 54, 0);
	expect_silence(&rc);
	assert_false(sr_held(&rc));
	rc_close(&rc);
}

/* What comes twice is acknowledged once more, and not done again. */
static void test_twice(void **state)
{
	struct sr_answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	give(&rc, write_one(2));
	run(&rc);
	expect_ack(&rc, -1, 3);
	memset(rc.s[1].buf + AREA, 0, 1024);
	give(&rc, write_one(2));
	run(&rc);
	a = expect_ack(&rc, -1, 3);
	assert_true(sr_bit(&a, 2));
	assert_false(written(&rc, 2));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_DUPLICATE_REQUEST), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY), 1);
	give(&rc, write_one(0));
	run(&rc);
	expect_ack(&rc, 0, 2);
	give(&rc, write_one(0));
	run(&rc);
	expect_ack(&rc, 0, 2);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), 1);
	rc_close(&rc);
}

/* A NAK of the standard that has not left is not sent any more when the peer says it knows. */
static void test_no_nak(void **state)
{
	struct sr_pkt p = write_one(3);
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	p.plain = true;
	give(&rc, p);
	give(&rc, write_one(2));
	run(&rc);
	expect_ack(&rc, -1, 3);
	expect_silence(&rc);
	give(&rc, p);
	run(&rc);
	expect_ack(&rc, -1, 3);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_NAK), 0);
	rc_close(&rc);
}

/* --- who speaks it --- */

/* A number of a PSN that the peer may have under way, or not. */
struct place {
	int32_t n;
	bool near;
};

/* A packet of side 0 with a window in it came: has side 1 learned of it? */
static void heard(struct rc *rc, struct place p)
{
	uint32_t log = u32_get_bits(rc_query(rc, 1).sqc.sr_window, SKUA_SQC_WINDOW);

	if (!!log != p.near)
		fail_msg("%d: window 2^%u", p.n, log);
	rc_close(rc);
}

/*
 * Only a packet whose PSN may be under way says that the peer sends packets of the extension. To
 * any other peer a gap is still told by a NAK.
 */
static void test_spoken(void **state)
{
	const struct place places[] = {
		{ -(1 << 23), false }, { -513, false }, { -512, true }, { -1, true },
		{ 31, true }, { 32, false }, { 512, false }, { (1 << 23) - 1, false },
	};
	struct rc_opt opt = small;

	(void)state;
	opt.log_window = 5;
	for (unsigned int k = 0; k < N(places); k++) {
		struct sr_pkt far = write_one((uint32_t)places[k].n), gap = write_one(3);
		struct rc rc;

		rc_open(&rc, &opt);
		far.roff = AREA;
		gap.plain = true;
		give(&rc, far);
		hush(&rc);
		give(&rc, gap);
		run(&rc);
		if (!places[k].near)
			expect_nak(&rc, 0, IB_AETH_NAK | IB_NAK_PSN_SEQUENCE, 0xff);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_NAK), !places[k].near);
		rc_close(&rc);
	}
}

/* So it is with the window that a request tells, in the standard's form too ... */
static void test_heard(void **state)
{
	const struct place places[] = {
		{ -(1 << 23), false }, { -513, false }, { -512, true }, { 0, true },
		{ 31, true }, { 32, false }, { (1 << 23) - 1, false },
	};
	struct rc_opt opt = small;

	(void)state;
	opt.log_window = 5;
	opt.ext[0] = SKUA_EXT_NEGOTIATE;
	opt.ext[1] = SKUA_EXT_NEGOTIATE;
	for (unsigned int k = 0; k < 2 * N(places); k++) {
		struct place at = places[k / 2];
		struct sr_pkt p = write_one((uint32_t)at.n);
		struct rc rc;

		rc_open(&rc, &opt);
		p.roff = AREA;
		p.plain = k % 2;
		give(&rc, p);
		heard(&rc, at);
	}
}

/* ... or an answer: side 1 has sent four packets. */
static void test_heard_answer(void **state)
{
	const struct place places[] = {
		{ -513, false }, { -512, true }, { -1, true }, { 3, true }, { 4, false },
		{ (1 << 23) - 1, false },
	};
	struct rc_opt opt = small;

	(void)state;
	opt.ext[0] = SKUA_EXT_NEGOTIATE;
	opt.ext[1] = SKUA_EXT_NEGOTIATE;
	for (unsigned int k = 0; k < N(places); k++) {
		uint8_t frame[SKUA_PKT_OVERHEAD + 64];
		struct skua_pkt_build b;
		struct rc rc;

		rc_open(&rc, &opt);
		rc_post(&rc, 1, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 4 * 256 });
		hush(&rc);
		assert_int_equal(rc_build(&rc, 0, &b, frame, sizeof(frame), IB_OPCODE(RC, ACK),
					  psn_add(opt.psn[1], (uint32_t)places[k].n)), 0);
		b.bth->ack |= SKUA_EXT_LOG_WINDOW_MAX;
		ib_aeth_put(b.aeth, IB_AETH_ACK | IB_AETH_CREDIT_INVALID, 0);
		rc_inject(&rc, 1, &b, 0);
		heard(&rc, places[k]);
	}
}

/* --- messages of all kinds, in any order --- */

/* A window that the peer invalidates; its key. */
static uint32_t window(struct rc *rc)
{
	struct mini *m = &rc->s[1].m;
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x60),
		.flags = cpu_to_le32(SKUA_MPT_FREE | SKUA_MPT_MW2 << 4),
		.pd = cpu_to_le32(MINI_PD),
	};
	struct rc_wr wr = { .op = SKUA_WQE_BIND_MW };
	uint32_t key = le32_to_cpu(mpt.key) + 1;

	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	skua_wqe_bind_set(&wr.bind, le32_to_cpu(mpt.key), key, rc->s[1].key,
			  SKUA_ACCESS_REMOTE_WRITE, RC_VA, AREA);
	rc_post(rc, 1, &wr);
	run(rc);
	rc_expect(rc, 1, false, SKUA_CQE_OK);
	return key;
}

/*
 * All kinds of packets: PSN by PSN. A READ's responses take up two. Receives of 1,000
 * bytes at 0, 1000, 2000 ...
 */
static unsigned int all_kinds(struct sr_pkt *p, uint32_t key)
{
	const struct sr_pkt list[] = {
		{ .op = IB_OP_SEND_FIRST, .len = 256, .seed = 1 },
		{ .op = IB_OP_SEND_MIDDLE, .len = 256, .off = 1, .seed = 1 },
		{ .op = IB_OP_SEND_LAST, .len = 100, .off = 2, .seed = 1 },
		{ .op = IB_OP_WRITE_FIRST, .len = 256, .roff = AREA, .total = 700, .seed = 2 },
		{ .op = IB_OP_WRITE_MIDDLE, .len = 256, .roff = AREA, .total = 700, .off = 1,
		  .seed = 2 },
		{ .op = IB_OP_WRITE_LAST, .len = 188, .roff = AREA, .total = 700, .off = 2,
		  .seed = 2 },
		{ .op = IB_OP_SEND_ONLY, .seq = 1, .len = 5, .seed = 3, .se = true },
		{ .op = IB_OP_READ_REQUEST, .roff = AREA, .total = 500 },
		{ .op = IB_OP_SEND_ONLY_IMM, .psn = 1, .seq = 2, .len = 0, .imm = 0x1234 },
		{ .op = IB_OP_WRITE_ONLY_IMM, .psn = 1, .seq = 3, .len = 9, .total = 9,
		  .roff = AREA + 1000, .seed = 4, .imm = 0x5678, .se = true },
		{ .op = IB_OP_WRITE_FIRST, .psn = 1, .len = 256, .roff = AREA + 2000,
		  .total = 300, .seed = 5 },
		{ .op = IB_OP_WRITE_LAST_IMM, .psn = 1, .seq = 4, .off = 1, .len = 44,
		  .roff = AREA + 2000, .total = 300, .seed = 5, .imm = 0x9abc },
		{ .op = IB_OP_SEND_FIRST, .psn = 1, .seq = 5, .len = 256, .seed = 6 },
		{ .op = IB_OP_SEND_LAST_IMM, .psn = 1, .seq = 5, .off = 1, .len = 256, .seed = 6,
		  .imm = 0xdef0 },
		{ .op = IB_OP_SEND_FIRST, .psn = 1, .seq = 6, .len = 256, .seed = 7 },
		{ .op = IB_OP_SEND_LAST_INV, .psn = 1, .seq = 6, .off = 1, .len = 1, .seed = 7,
		  .imm = key },
		{ .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 33, .total = 33, .roff = AREA + 3000,
		  .seed = 8 },
		{ .op = IB_OP_READ_REQUEST, .psn = 1, .seq = 1, .roff = AREA + 3000, .total = 33 },
		{ .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 0, .total = 0, .roff = AREA + 4000 },
	};

	for (unsigned int k = 0; k < N(list); k++) {
		p[k] = list[k];
		p[k].psn += k;
	}
	return N(list);
}

#define ALL_PSNS	20

static void check_recv(struct rc *rc, uint32_t k, uint32_t len, uint32_t op, uint32_t imm,
		       uint32_t inv)
{
	struct skua_cqe cqe = rc_expect(rc, 1, true, SKUA_CQE_OK);

	assert_int_equal(skua_cqe_opcode(&cqe), op);
	assert_int_equal(skua_cqe_wqe_index(&cqe), k);
	assert_int_equal(le32_to_cpu(cqe.byte_len), len);
	assert_int_equal(!!(skua_cqe_flags(&cqe) & SKUA_CQE_F_IMM), !!imm);
	assert_int_equal(!!(skua_cqe_flags(&cqe) & SKUA_CQE_F_INV), !!inv);
	assert_int_equal(!!(skua_cqe_flags(&cqe) & SKUA_CQE_F_SOLICITED), k == 1 || k == 3);
	if (imm)
		assert_int_equal(be32_get((const uint8_t *)&cqe.imm), imm);
	if (inv)
		assert_int_equal(le32_to_cpu(cqe.inv_key), inv);
}

static void check_all(struct rc *rc, uint32_t key)
{
	const uint8_t *buf = rc->s[1].buf;

	check_recv(rc, 0, 612, SKUA_CQE_RECV, 0, 0);
	check_recv(rc, 1, 5, SKUA_CQE_RECV, 0, 0);
	check_recv(rc, 2, 0, SKUA_CQE_RECV, 0x1234, 0);
	check_recv(rc, 3, 9, SKUA_CQE_RECV_WRITE_IMM, 0x5678, 0);
	check_recv(rc, 4, 300, SKUA_CQE_RECV_WRITE_IMM, 0x9abc, 0);
	check_recv(rc, 5, 512, SKUA_CQE_RECV, 0xdef0, 0);
	check_recv(rc, 6, 257, SKUA_CQE_RECV, 0, key);
	rc_expect_none(rc, 1, true);
	rc_check(buf, 612, 1);
	rc_check(buf + 1000, 5, 3);
	rc_check(buf + 5000, 512, 6);
	rc_check(buf + 6000, 257, 7);
	rc_check(buf + AREA, 700, 2);
	rc_check(buf + AREA + 1000, 9, 4);
	rc_check(buf + AREA + 2000, 300, 5);
	rc_check(buf + AREA + 3000, 33, 8);
	assert_int_equal(le32_to_cpu(sr_rqc(rc)->recv_seq), 7);
	assert_int_equal(le32_to_cpu(sr_rqc(rc)->rr_tail), 2);
	assert_int_equal(le32_to_cpu(sr_rqc(rc)->msn), 12);
	assert_int_equal(rc_cnt(rc, 1, SKUA_CNT_RX_SEND), 5);
	assert_int_equal(rc_cnt(rc, 1, SKUA_CNT_RX_WRITE), 5);
	assert_int_equal(rc_cnt(rc, 1, SKUA_CNT_RX_READ), 2);
	assert_int_equal(rc_cnt(rc, 1, SKUA_CNT_RX_EARLY_DROP), 0);
	assert_int_equal(rc_state(rc, 1), SKUA_QP_RTS);
}

/* Responses of both READs, each of which was done when all before it was. */
static void check_reads(struct rc *rc)
{
	struct sr_answer a;
	uint8_t want[700];
	unsigned int k = 0;
	static const struct {
		uint32_t n, op, off, len, msn;
	} resp[] = {
		{ 7, IB_OP_READ_RESP_FIRST, 0, 256, 4 }, { 8, IB_OP_READ_RESP_LAST, 256, 244, 4 },
		{ 18, IB_OP_READ_RESP_ONLY, 0, 33, 11 },
	};

	while (sr_next(rc, &a)) {
		if ((a.opcode & 0x1f) == IB_OP_ACK)
			continue;
		assert_true(k < N(resp));
		assert_int_equal(a.opcode, IB_TRANSPORT_RC | resp[k].op);
		assert_int_equal(a.psn, (PSN0 + resp[k].n) & IB_PSN_MASK);
		assert_int_equal(a.len, resp[k].len);
		assert_int_equal(a.msn, resp[k].msn);
		rc_fill(want, sizeof(want), k == 2 ? 8 : 2);
		assert_memory_equal(a.payload, want + resp[k].off, a.len);
		k++;
	}
	assert_int_equal(k, N(resp));
}

/* Backwards, each other one first, by turns from both ends: @how. */
static unsigned int order(unsigned int how, unsigned int k, unsigned int n)
{
	switch (how) {
	case 0:
		return k;
	case 1:
		return n - 1 - k;
	case 2:
		return k < (n + 1) / 2 ? n - 1 - (n - 1) % 2 - 2 * k : 2 * (k - (n + 1) / 2) + 1;
	default:
		return (k * 7 + how) % n;
	}
}

static void test_all_kinds(void **state)
{
	struct sr_pkt p[32];
	struct rc rc;

	(void)state;
	for (unsigned int how = 0; how < 24; how++) {
		struct rc_opt opt = small;
		unsigned int n;
		uint32_t key;

		/* Some with CQEs that payload could come in, were it not before its turn. */
		opt.qp_flags = how % 3 == 1 ? SKUA_QP_F_SCATTER_RQ_CQE : 0;
		opt.caps = how % 3 == 1 ? SKUA_CAP_SCATTER_CQE : 0;
		rc_open(&rc, &opt);
		key = window(&rc);
		n = all_kinds(p, key);
		for (uint32_t k = 0; k < 7; k++)
			rc_recv(&rc, 1, k * 1000, 1000);
		for (unsigned int k = 0; k < n; k++) {
			give(&rc, p[order(how, k, n)]);
			if (how & 4)
				run(&rc);
		}
		run(&rc);
		assert_int_equal(epsn(&rc), ALL_PSNS);
		check_all(&rc, key);
		check_reads(&rc);
		assert_false(sr_held(&rc));
		assert_int_equal(sr_lrc_of(&rc)->held, 0);
		rc_expect_none(&rc, 1, true);
		rc_close(&rc);
	}
}

/* Numbers of receives and of requests with responses wrap, as do the contexts' counters. */
static void test_numbers_wrap(void **state)
{
	static const uint32_t at[] = { 0xfffffe, 0x1000000 - 1, 0xfffffffe };
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(at); k++) {
		rc_open(&rc, &small);
		sr_rqc(&rc)->recv_seq = cpu_to_le32(at[k]);
		sr_rqc(&rc)->rr_tail = cpu_to_le32(at[k]);
		sr_rqc(&rc)->rr_head = cpu_to_le32(at[k]);
		for (uint32_t i = 0; i < 4; i++)
			rc_recv(&rc, 1, i * 256, 256);
		for (uint32_t n = 8; n-- > 0;) {
			if (n & 1)
				GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = n, .total = 4,
				     .seq = at[k] + n / 2, .roff = AREA);
			else
				GIVE(&rc, .op = IB_OP_SEND_ONLY, .psn = n, .len = 256, .seed = n,
				     .seq = at[k] + n / 2);
		}
		run(&rc);
		assert_int_equal(epsn(&rc), 8);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY), 7);
		for (uint32_t i = 0; i < 4; i++) {
			rc_expect(&rc, 1, true, SKUA_CQE_OK);
			rc_check(rc.s[1].buf + i * 256, 256, 2 * i);
		}
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_READ), 4);
		rc_close(&rc);
	}
}

/* --- what is not taken before its turn --- */

static const struct {
	const char *why;
	struct sr_pkt p;
} refused[] = {
	{ "no such receive", { .op = IB_OP_SEND_ONLY, .seq = 2, .len = 4 } },
	{ "a receive long gone", { .op = IB_OP_SEND_ONLY, .seq = 0xffffff, .len = 4 } },
	{ "receive too short", { .op = IB_OP_SEND_LAST, .seq = 1, .off = 1, .len = 245 } },
	{ "receive far too short", { .op = IB_OP_SEND_LAST, .seq = 1, .off = 0xffffff,
				     .len = 256 } },
	{ "FIRST that is not", { .op = IB_OP_SEND_FIRST, .off = 1, .len = 256 } },
	{ "LAST that is the first", { .op = IB_OP_SEND_LAST, .len = 4 } },
	{ "MIDDLE too short", { .op = IB_OP_SEND_MIDDLE, .off = 1, .len = 255 } },
	{ "LAST of nothing", { .op = IB_OP_SEND_LAST, .off = 1 } },
	{ "longer than the MTU", { .op = IB_OP_SEND_ONLY, .len = 257 } },
	{ "no such key", { .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA,
			   .key = 0x123456 } },
	{ "more than the region has", { .op = IB_OP_WRITE_FIRST, .len = 256, .total = 257,
					.roff = RC_BUF - 256 } },
	{ "address before the region", { .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4,
					 .roff = -4ull } },
	{ "longer than it says", { .op = IB_OP_WRITE_ONLY, .len = 5, .total = 4, .roff = AREA } },
	{ "shorter than it says", { .op = IB_OP_WRITE_LAST, .off = 1, .len = 5, .total = 262,
				    .roff = AREA } },
	{ "MIDDLE at its end", { .op = IB_OP_WRITE_MIDDLE, .off = 1, .len = 256, .total = 512,
				 .roff = AREA } },
	{ "longest message", { .op = IB_OP_WRITE_FIRST, .len = 256, .total = 0x80000001,
			       .roff = AREA } },
	{ "WRITE's FIRST that is not", { .op = IB_OP_WRITE_FIRST, .off = 1, .len = 256,
					 .total = 600, .roff = AREA } },
	{ "WRITE's MIDDLE that is the first", { .op = IB_OP_WRITE_MIDDLE, .len = 256,
						.total = 600, .roff = AREA } },
	{ "READ of no such key", { .op = IB_OP_READ_REQUEST, .total = 4, .key = 0x123456 } },
	{ "READ of more than the region", { .op = IB_OP_READ_REQUEST, .total = RC_BUF + 1 } },
	{ "READ of more than there is", { .op = IB_OP_READ_REQUEST, .total = 0x80000001 } },
	{ "more READs than were agreed on", { .op = IB_OP_READ_REQUEST, .seq = 3, .total = 4 } },
	{ "a READ long answered", { .op = IB_OP_READ_REQUEST, .seq = 0xffffff, .total = 4 } },
	{ "the standard's SEND", { .op = IB_OP_SEND_ONLY, .len = 4, .plain = true } },
	{ "the standard's WRITE", { .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA,
				    .plain = true } },
	{ "the standard's READ", { .op = IB_OP_READ_REQUEST, .total = 4, .plain = true } },
	{ "atomic", { .op = IB_OP_FETCH_ADD, .imm = 1, .roff = AREA, .plain = true } },
	{ "FLUSH", { .op = IB_OP_FLUSH, .total = 4, .roff = AREA, .plain = true } },
	{ "ATOMIC WRITE", { .op = IB_OP_ATOMIC_WRITE, .len = 8, .total = 8, .roff = AREA,
			    .plain = true } },
};

/*
 * It is as if it had not come: nothing changes in memory, and what follows goes on. But the peer is
 * told, if it was in the form of the extension.
 */
static void test_dropped(void **state)
{
	struct rc_opt opt = small;
	struct rc rc;

	(void)state;
	opt.rd_atomic = 4;
	for (size_t k = 0; k < N(refused); k++) {
		struct sr_pkt p = refused[k].p;
		struct sr_answer a;

		rc_open(&rc, &opt);
		rc_recv(&rc, 1, 0, 500);
		rc_recv(&rc, 1, 500, 500);
		give(&rc, write_one(1));
		hush(&rc);
		p.psn = 2;
		p.seed = 1;
		give(&rc, p);
		run(&rc);
		a = expect_ack(&rc, -1, p.plain ? 2 : 3);
		if (a.se == p.plain || sr_bit(&a, 2) == p.plain ||
		    rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY_DROP) != 1)
			fail_msg("%s: taken, or not told", refused[k].why);
		expect_silence(&rc);
		for (uint32_t i = 0; i < 1000; i++)
			assert_int_equal(rc.s[1].buf[i], 0);
		for (uint32_t i = 0; i < 256; i++)
			assert_int_equal(rc.s[1].buf[AREA + i], 0);
		give(&rc, write_one(2));
		give(&rc, write_one(0));
		run(&rc);
		expect_ack(&rc, 2, 0);
		rc_expect_none(&rc, 1, true);
		rc_expect_no_event(&rc, 1);
		rc_close(&rc);
	}
}

/* Rights that the QP does not give, and a key whose region does not. */
static void test_rights(void **state)
{
	static const struct sr_pkt p[] = {
		{ .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 4, .total = 4, .roff = AREA },
		{ .op = IB_OP_READ_REQUEST, .psn = 1, .total = 4, .roff = AREA },
	};
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(p); k++) {
		struct rc_opt opt = small;

		opt.access = k ? SKUA_ACCESS_REMOTE_WRITE : SKUA_ACCESS_REMOTE_READ;
		rc_open(&rc, &opt);
		give(&rc, p[k]);
		run(&rc);
		assert_true(expect_ack(&rc, -1, 2).se);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
		assert_false(sr_held(&rc));
		rc_close(&rc);
	}
}

/* --- a SETH that says what cannot be: found when it is its turn --- */

static const struct {
	const char *why;
	struct sr_pkt p[4];	/* given from the last to the first */
	uint32_t nak;
} wrong[] = {
	{ "number of a SEND", { { .op = IB_OP_SEND_ONLY, .seq = 1, .len = 4 } }, 0 },
	{ "number of a WRITE with immediate",
	  { { .op = IB_OP_WRITE_ONLY_IMM, .seq = 1, .len = 4, .total = 4 } }, 0 },
	{ "number of a READ", { { .op = IB_OP_READ_REQUEST, .seq = 1, .total = 4 } }, 0 },
	{ "offset of a FIRST", { { .op = IB_OP_SEND_FIRST, .off = 1, .len = 256 } }, 0 },
	{ "offset of a LAST",
	  { { .op = IB_OP_SEND_FIRST, .len = 256 },
	    { .op = IB_OP_SEND_LAST, .psn = 1, .off = 2, .len = 4 } }, 1 },
	{ "offset of a MIDDLE",
	  { { .op = IB_OP_SEND_FIRST, .len = 256 },
	    { .op = IB_OP_SEND_MIDDLE, .psn = 1, .off = 2, .len = 256 },
	    { .op = IB_OP_SEND_LAST, .psn = 2, .off = 2, .len = 4 } }, 1 },
	{ "number of a MIDDLE",
	  { { .op = IB_OP_SEND_FIRST, .len = 256 },
	    { .op = IB_OP_SEND_MIDDLE, .psn = 1, .off = 1, .seq = 1, .len = 256 },
	    { .op = IB_OP_SEND_LAST, .psn = 2, .off = 2, .len = 4 } }, 1 },
	{ "number of an early SEND",
	  { { .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA },
	    { .op = IB_OP_SEND_ONLY, .psn = 1, .seq = 1, .len = 4 } }, 1 },
	{ "number of an early READ",
	  { { .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA },
	    { .op = IB_OP_READ_REQUEST, .psn = 1, .seq = 1, .total = 4 } }, 1 },
	{ "number of an early immediate",
	  { { .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA },
	    { .op = IB_OP_WRITE_ONLY_IMM, .psn = 1, .seq = 1, .len = 4, .total = 4 } }, 1 },
	{ "offset of an early WRITE's end with immediate",
	  { { .op = IB_OP_WRITE_FIRST, .len = 256, .total = 1000, .roff = AREA },
	    { .op = IB_OP_WRITE_LAST_IMM, .psn = 1, .off = 2, .len = 4, .total = 516,
	      .roff = AREA } }, 1 },
	{ "a FIRST amid a message",
	  { { .op = IB_OP_SEND_FIRST, .len = 256 },
	    { .op = IB_OP_SEND_FIRST, .psn = 1, .len = 256 } }, 1 },
	{ "a READ amid a message",
	  { { .op = IB_OP_SEND_FIRST, .len = 256 },
	    { .op = IB_OP_READ_REQUEST, .psn = 1, .total = 4 } }, 1 },
	{ "another kind amid a message",
	  { { .op = IB_OP_WRITE_FIRST, .len = 256, .total = 1000, .roff = AREA },
	    { .op = IB_OP_SEND_LAST, .psn = 1, .off = 1, .len = 4 } }, 1 },
	{ "a LAST of no message",
	  { { .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA },
	    { .op = IB_OP_WRITE_LAST, .psn = 1, .off = 1, .len = 4, .total = 260,
	      .roff = AREA } }, 1 },
	{ "a PSN of a READ's responses, and behind it a number that is taken",
	  { { .op = IB_OP_READ_REQUEST, .total = 600 },
	    { .op = IB_OP_WRITE_ONLY, .psn = 2, .len = 4, .total = 4, .roff = AREA },
	    { .op = IB_OP_READ_REQUEST, .psn = 3, .seq = 2, .total = 4 } }, 3 },
};

static void test_wrong_place(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(wrong); k++) {
		struct sr_answer a;

		rc_open(&rc, &small);
		rc_recv(&rc, 1, 0, 1024);
		rc_recv(&rc, 1, 1024, 1024);
		for (unsigned int i = N(wrong[k].p); i-- > 0;) {
			if (wrong[k].p[i].op || wrong[k].p[i].len)
				give(&rc, wrong[k].p[i]);
		}
		run(&rc);
		do {
			if (!sr_next(&rc, &a))
				fail_msg("%s: no NAK", wrong[k].why);
		} while ((a.opcode & 0x1f) != IB_OP_ACK ||
			 (a.syndrome & IB_AETH_TYPE_MASK) == IB_AETH_ACK);
		assert_int_equal(a.syndrome, IB_AETH_NAK | IB_NAK_INVALID_REQUEST);
		assert_int_equal(a.psn, (PSN0 + wrong[k].nak) & IB_PSN_MASK);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		rc_expect_event(&rc, 1, SKUA_QP_EV_REQ_ERR);
		/* No receive was reported but as flushed. */
		for (uint32_t i = 0; i < 2; i++)
			rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&rc, 1, true);
		rc_close(&rc);
	}
}

/* What came for a PSN that turns out to be one of a READ's responses is forgotten. */
static void test_amid_read(void **state)
{
	struct sr_answer a;
	struct rc rc;

	(void)state;
	for (int early = 0; early < 2; early++) {
		rc_open(&rc, &small);
		give(&rc, write_one(3));
		if (early)
			GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 1, .total = 600);
		hush(&rc);
		if (!early)
			GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 0, .total = 1000);
		else
			give(&rc, write_one(0));
		run(&rc);
		assert_int_equal(epsn(&rc), 4);
		assert_false(sr_held(&rc));
		for (uint32_t k = 0; k < (early ? 3 : 4); k++) {
			assert_true(sr_next(&rc, &a));
			assert_int_equal(a.psn, (PSN0 + early + k) & IB_PSN_MASK);
		}
		expect_ack(&rc, 3, 0);
		rc_close(&rc);
	}
}

/* --- what cannot go on when it is its turn --- */

static void test_rnr(void **state)
{
	struct sr_pkt imm = { .op = IB_OP_WRITE_ONLY_IMM, .psn = 1, .len = 4, .total = 4,
			      .roff = AREA, .imm = 9 };
	struct sr_answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	give(&rc, write_one(2));
	give(&rc, imm);
	run(&rc);
	a = expect_ack(&rc, -1, 3);
	assert_true(sr_bit(&a, 1));
	give(&rc, write_one(0));
	run(&rc);
	expect_nak(&rc, 1, IB_AETH_RNR_NAK, IB_AETH_TYPE_MASK);
	expect_silence(&rc);
	assert_int_equal(epsn(&rc), 1);
	/* Its bit is gone, the other one is not. */
	give(&rc, write_one(2));
	run(&rc);
	a = expect_ack(&rc, 0, 2);
	assert_true(sr_bit(&a, 1));
	rc_recv(&rc, 1, 0, 0);
	give(&rc, imm);
	run(&rc);
	expect_ack(&rc, 2, 0);
	check_recv(&rc, 0, 4, SKUA_CQE_RECV_WRITE_IMM, 9, 0);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), 3);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_OUT_OF_BUFFER), 1);
	assert_false(sr_held(&rc));
	rc_close(&rc);
}

/*
 * What is taken in the turn of an RNR NAK, behind its packet or before that came, is acknowledged:
 * the NAK says nothing of it, and the peer would send it again.
 */
static void test_rnr_turn(void **state)
{
	struct sr_pkt imm = { .op = IB_OP_WRITE_ONLY_IMM, .len = 4, .total = 4, .roff = AREA,
			      .imm = 9 };
	struct sr_answer a;
	struct rc rc;

	(void)state;
	for (int behind = 0; behind < 2; behind++) {
		rc_open(&rc, &small);
		if (!behind)
			give(&rc, write_one(2));
		give(&rc, imm);
		if (behind)
			give(&rc, write_one(2));
		run(&rc);
		expect_nak(&rc, 0, IB_AETH_RNR_NAK, IB_AETH_TYPE_MASK);
		a = expect_ack(&rc, -1, 3);
		assert_true(sr_bit(&a, 2));
		expect_silence(&rc);
		/* A NAK by itself is followed by nothing. */
		give(&rc, imm);
		run(&rc);
		expect_nak(&rc, 0, IB_AETH_RNR_NAK, IB_AETH_TYPE_MASK);
		expect_silence(&rc);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_ACK), 1);
		rc_close(&rc);
	}
	/* Behind a NAK that ends the QP nothing is said. */
	rc_open(&rc, &small);
	give(&rc, write_one(2));
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .len = 5, .total = 4, .roff = AREA);
	give(&rc, write_one(3));
	run(&rc);
	expect_nak(&rc, 0, IB_AETH_NAK | IB_NAK_INVALID_REQUEST, 0xff);
	expect_silence(&rc);
	rc_close(&rc);
}

/* Pages that are missing: payload is not taken, a READ waits when it is its turn. */
static void test_pages(void **state)
{
	struct sr_pkt write = { .op = IB_OP_WRITE_ONLY, .psn = 2, .len = 8, .total = 8 };
	struct sr_pkt read = { .op = IB_OP_READ_REQUEST, .psn = 1, .total = 8 };
	struct skua_eqe_fault f;
	struct sr_answer a;
	struct odp o;

	(void)state;
	odp_open(&o, &small, 4);
	write.key = o.s[1].key;
	read.key = o.s[1].key;
	give(&o.rc, write);
	give(&o.rc, read);
	run(&o.rc);
	a = expect_ack(&o.rc, -1, 3);
	assert_true(sr_bit(&a, 1));
	/* Of the one whose page is missing it says that it came. */
	assert_true(a.se && sr_bit(&a, 2));
	assert_int_equal(rc_cnt(&o.rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
	assert_false(odp_fault(&o, 1, &f));
	give(&o.rc, write_one(0));
	run(&o.rc);
	expect_nak(&o.rc, 1, IB_AETH_RNR_NAK, IB_AETH_TYPE_MASK);
	assert_true(odp_fault(&o, 1, &f));
	odp_give_all(&o, 1);
	odp_serve(&o, 1, &f, 0);
	assert_false(sr_held(&o.rc));
	give(&o.rc, write);
	give(&o.rc, read);
	run(&o.rc);
	assert_true(sr_next(&o.rc, &a));
	assert_int_equal(a.opcode, IB_OPCODE(RC, READ_RESP_ONLY));
	expect_ack(&o.rc, 2, 0);
	assert_int_equal(le32_to_cpu(sr_rqc(&o.rc)->rr_tail), 1);
	odp_close(&o);
}

/* A key that is gone when the READ's turn has come; one that cannot be invalidated. */
static void test_late_errors(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 1, .total = 4);
	hush(&rc);
	mini_index(&rc.s[1].m, SKUA_CMD_DESTROY_MPT, rc.s[1].key, NULL, 0);
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .total = 0);
	run(&rc);
	expect_nak(&rc, 1, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS, 0xff);
	rc_expect_event(&rc, 1, SKUA_QP_EV_ACCESS_ERR);
	rc_close(&rc);

	rc_open(&rc, &small);
	rc_recv(&rc, 1, 0, 256);
	GIVE(&rc, .op = IB_OP_SEND_ONLY_INV, .psn = 1, .len = 4, .imm = 0x654321);
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .total = 0);
	run(&rc);
	expect_nak(&rc, 1, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS, 0xff);
	rc_expect(&rc, 1, true, SKUA_CQE_REM_INV_REQ_ERR);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
	rc_close(&rc);
}

/* The table cannot be written, or read. */
static void test_no_table(void **state)
{
	struct rc rc;

	(void)state;
	for (int late = 0; late < 2; late++) {
		uint64_t table;

		rc_open(&rc, &small);
		rc_recv(&rc, 1, 0, 256);
		table = le64_to_cpu(sr_lrc_of(&rc)->table);
		if (!late)
			fake_hole(&rc.s[1].f, table, sizeof(struct skua_ext_slot) * SKUA_LRC_PSNS);
		GIVE(&rc, .op = IB_OP_SEND_ONLY, .psn = 1, .len = 4);
		if (late) {
			hush(&rc);
			fake_hole(&rc.s[1].f, table, sizeof(struct skua_ext_slot) * SKUA_LRC_PSNS);
			give(&rc, write_one(0));
		}
		run(&rc);
		expect_nak(&rc, late, IB_AETH_NAK | IB_NAK_REMOTE_OP, 0xff);
		expect_silence(&rc);
		rc_expect_event(&rc, 1, SKUA_QP_EV_FATAL);
		rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY), late);
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bitmap),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_in_a_row),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_no_nak),
		cmocka_unit_test(test_spoken),
		cmocka_unit_test(test_heard),
		cmocka_unit_test(test_heard_answer),
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_numbers_wrap),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_wrong_place),
		cmocka_unit_test(test_amid_read),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_turn),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_late_errors),
		cmocka_unit_test(test_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
