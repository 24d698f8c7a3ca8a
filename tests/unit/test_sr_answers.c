// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, responder: READ responses that are asked for again, packets of the
 * standard between those of the extension, receives that are shared, what becomes of it
 * all when the QP ends, and contexts that say nonsense.
 */
#include "odp.h"

#include <skua/wqe_build.h>

#include "sr_forge.h"

/* --- responses once more --- */

/* Sequence of responses @first to @last, of a READ at @psn of bytes at @off of the buffer. */
static void expect_resp(struct rc *rc, uint32_t psn, uint64_t off, uint32_t total, uint32_t first,
			uint32_t last)
{
	static const uint8_t op[2][2] = {
		{ IB_OP_READ_RESP_MIDDLE, IB_OP_READ_RESP_LAST },
		{ IB_OP_READ_RESP_FIRST, IB_OP_READ_RESP_ONLY },
	};

	bool xrc = rc->s[1].qp.type == SKUA_QP_XRC_TGT;

	for (uint32_t k = first; k <= last; k++) {
		uint32_t at = k * rc->mtu, n = total - at < rc->mtu ? total - at : rc->mtu;
		struct sr_answer a;

		assert_true(sr_next(rc, &a));
		assert_int_equal(a.opcode, (xrc ? IB_TRANSPORT_XRC : IB_TRANSPORT_RC) |
				 op[k == first][k == last]);
		assert_int_equal(a.psn, (PSN0 + psn + k) & IB_PSN_MASK);
		assert_int_equal(a.len, n);
		assert_memory_equal(a.payload, rc->s[1].buf + off + at, n);
	}
}

static struct sr_pkt read_part(uint32_t psn, uint32_t first, uint32_t total)
{
	return (struct sr_pkt){ .op = IB_OP_READ_REQUEST, .psn = psn + first, .total = total,
				.roff = AREA + first * 256 };
}

/* A READ of 5 packets, the last one of 176 bytes, is answered. */
static void open_read(struct rc *rc, const struct rc_opt *opt)
{
	rc_open(rc, opt);
	rc_fill(rc->s[1].buf + AREA, 20000, 9);
	give(rc, read_part(0, 0, 1200));
	run(rc);
	expect_resp(rc, 0, AREA, 1200, 0, 4);
	expect_silence(rc);
}

static void test_reread(void **state)
{
	static const struct {
		uint32_t first, last, total;
	} part[] = {
		{ 1, 2, 512 }, { 0, 4, 1200 }, { 4, 4, 176 }, { 2, 4, 688 }, { 0, 0, 256 },
		{ 0, 4, 1200 }, { 1, 2, 512 },
	};
	struct rc rc;

	(void)state;
	open_read(&rc, &small);
	for (size_t k = 0; k < N(part); k++) {
		struct sr_pkt p = read_part(0, part[k].first, part[k].total);

		/* In either form, once the peer has used the other one. */
		p.plain = k & 1;
		give(&rc, p);
		run(&rc);
		expect_resp(&rc, 0, AREA, 1200, part[k].first, part[k].last);
		expect_silence(&rc);
	}
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 0);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_READ), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_DUPLICATE_REQUEST), N(part));
	assert_int_equal(le32_to_cpu(sr_rqc(&rc)->flags) & SKUA_RQC_REREAD, 0);
	assert_int_equal(le32_to_cpu(sr_rqc(&rc)->rr_tail), 1);
	rc_close(&rc);
}

/* In the order of requests; what waits already is not added. */
static void test_reread_list(void **state)
{
	struct rc rc;

	(void)state;
	open_read(&rc, &small);
	give(&rc, read_part(0, 3, 256));
	give(&rc, read_part(0, 0, 512));
	give(&rc, read_part(0, 3, 256));
	give(&rc, read_part(0, 1, 256));
	give(&rc, read_part(0, 1, 512));
	run(&rc);
	expect_resp(&rc, 0, AREA, 1200, 3, 3);
	expect_resp(&rc, 0, AREA, 1200, 0, 1);
	expect_resp(&rc, 0, AREA, 1200, 1, 2);
	expect_silence(&rc);
	/* Of a READ of 40, each other one: the list has room for 16. */
	give(&rc, (struct sr_pkt){ .op = IB_OP_READ_REQUEST, .psn = 5, .seq = 1, .total = 10240,
				   .roff = AREA });
	run(&rc);
	expect_resp(&rc, 5, AREA, 10240, 0, 39);
	for (uint32_t k = 0; k < 40; k += 2)
		give(&rc, read_part(5, k, 256));
	run(&rc);
	for (uint32_t k = 0; k < 2 * SKUA_LRC_REREADS; k += 2)
		expect_resp(&rc, 5, AREA, 10240, k, k);
	expect_silence(&rc);
	rc_close(&rc);
}

/* What is asked for again before any of it was sent is still to be sent, and is sent once. */
static void test_reread_before(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	rc_fill(rc.s[1].buf + AREA, 20000, 9);
	give(&rc, read_part(0, 0, 1200));
	give(&rc, read_part(0, 0, 1200));
	give(&rc, read_part(0, 2, 512));
	run(&rc);
	expect_resp(&rc, 0, AREA, 1200, 0, 4);
	expect_silence(&rc);
	rc_close(&rc);
}

/* What is no part of it, or is not allowed, is dropped. */
static void test_reread_bad(void **state)
{
	static const struct sr_pkt bad[] = {
		{ .psn = 1, .roff = AREA + 256, .total = 100 },
		{ .psn = 1, .roff = AREA + 256, .total = 300 },
		{ .psn = 1, .roff = AREA + 256, .total = 0 },
		{ .psn = 1, .roff = AREA + 256, .total = 945 },
		{ .psn = 4, .roff = AREA + 1024, .total = 256 },
		{ .psn = 1, .roff = AREA + 257, .total = 256 },
		{ .psn = 1, .roff = AREA, .total = 256 },
		{ .psn = 1, .roff = AREA + 256, .total = 256, .key = 0x777777 },
		{ .psn = -1u, .roff = AREA, .total = 256 },
	};
	struct rc rc;

	(void)state;
	open_read(&rc, &small);
	for (size_t k = 0; k < N(bad); k++) {
		struct sr_pkt p = bad[k];

		p.op = IB_OP_READ_REQUEST;
		give(&rc, p);
		run(&rc);
		expect_silence(&rc);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), k + 1);
	}
	mini_index(&rc.s[1].m, SKUA_CMD_DESTROY_MPT, rc.s[1].key, NULL, 0);
	give(&rc, read_part(0, 0, 256));
	run(&rc);
	expect_silence(&rc);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	rc_close(&rc);
}

/* A key that goes when the request was taken and is not answered yet. */
static void test_reread_no_key(void **state)
{
	struct skua_mpt *mpt;
	struct rc rc;

	(void)state;
	open_read(&rc, &small);
	give(&rc, read_part(0, 0, 512));
	mpt = ctx_get(rc.s[1].f.dev, SKUA_ICM_MPT, rc.s[1].key >> 8);
	mpt->access = 0;
	ctx_put(rc.s[1].f.dev, mpt);
	run(&rc);
	expect_nak(&rc, 0, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS, 0xff);
	expect_silence(&rc);
	rc_expect_event(&rc, 1, SKUA_QP_EV_ACCESS_ERR);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
	rc_close(&rc);
}

/* Many turns of the QP, among which the first and the last packet are found. */
static void test_reread_long(void **state)
{
	struct rc_opt opt = small;
	struct rc rc;

	(void)state;
	opt.mtu_code = 5;
	rc_open(&rc, &opt);
	rc_fill(rc.s[1].buf, 64 * 4096, 3);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .total = 64 * 4096 - 100);
	run(&rc);
	expect_resp(&rc, 0, 0, 64 * 4096 - 100, 0, 63);
	for (int k = 0; k < 2; k++) {
		GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 1, .total = 63 * 4096 - 100,
		     .roff = 4096);
		/* While it is sent, the start of it is asked for again. */
		if (k) {
			skua_dev_run(rc.s[1].f.dev);
			assert_true(le32_to_cpu(sr_lrc_of(&rc)->reread_sent));
			GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 1, .total = 4096,
			     .roff = 4096);
			GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 60, .total = 4096,
			     .roff = 60 * 4096);
		}
		run(&rc);
		expect_resp(&rc, 0, 0, 64 * 4096 - 100, 1, 63);
		if (k)
			expect_resp(&rc, 0, 0, 64 * 4096 - 100, 1, 1);
		expect_silence(&rc);
	}
	rc_close(&rc);
}

/* Of a READ of whole packets, whatever else is answered before and behind. */
static void expect_run(struct rc *rc, uint32_t first, uint32_t last)
{
	struct sr_answer a;

	for (uint32_t k = first; k <= last; k++) {
		assert_true(sr_next(rc, &a));
		assert_int_equal(a.psn, (PSN0 + k) & IB_PSN_MASK);
		assert_int_equal(a.len, 4096);
		assert_memory_equal(a.payload, rc->s[1].buf + k * 4096, a.len);
	}
}

/* All responses to a READ are asked for again when some were sent: only these are sent twice. */
static void test_reread_begun(void **state)
{
	const uint32_t total = 64 * 4096;
	struct rc_opt opt = small;
	uint32_t sent;
	struct rc rc;

	(void)state;
	opt.mtu_code = 5;
	rc_open(&rc, &opt);
	rc_fill(rc.s[1].buf, 64 * 4096, 3);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .total = total);
	skua_dev_run(rc.s[1].f.dev);
	sent = le32_to_cpu(((struct skua_rr *)sr_ctx(&rc, SKUA_ICM_RRC))->sent) / 4096;
	assert_in_range(sent, 2, 62);
	expect_run(&rc, 0, sent - 1);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .total = total);
	run(&rc);
	expect_run(&rc, 0, sent - 1);
	expect_run(&rc, sent, 63);
	expect_silence(&rc);
	rc_close(&rc);
}

/*
 * The peer has as many READs under way as was agreed. It gets all responses to the first one by
 * asking for them again, and has another one then.
 */
static void test_reread_most(void **state)
{
	const uint32_t total = 64 * 4096;
	struct rc_opt opt = small;
	struct sr_answer a;
	uint32_t got = 0;
	struct rc rc;

	(void)state;
	opt.mtu_code = 5;
	rc_open(&rc, &opt);
	for (uint32_t n = 0; n < 16; n++)
		GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = n * 64, .seq = n, .total = total);
	skua_dev_run(rc.s[1].f.dev);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .total = total);
	while (got != 64) {
		if (!sr_next(&rc, &a)) {
			skua_dev_run(rc.s[1].f.dev);
			continue;
		}
		if (a.psn == ((PSN0 + got) & IB_PSN_MASK))
			got++;
	}
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 16 * 64, .seq = 16, .total = total);
	hush(&rc);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	assert_int_equal(epsn(&rc), 17 * 64);
	rc_close(&rc);
}

/*
 * All of the READ's responses were lost. Who asks for some of them speaks the extension, however
 * far behind they are, and may ask for others later.
 */
static void test_reread_far(void **state)
{
	const uint32_t far = 600;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	rc_fill(rc.s[1].buf + AREA, 20000, 9);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .total = 1200, .roff = AREA, .plain = true);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 5, .total = far * 256, .plain = true);
	hush(&rc);
	assert_int_equal(epsn(&rc), 5 + far);
	for (uint32_t k = 1; k <= 3; k += 2) {
		give(&rc, read_part(0, k, 256));
		run(&rc);
		expect_resp(&rc, 0, AREA, 1200, k, k);
		expect_silence(&rc);
	}
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 0);
	rc_close(&rc);
}

/* Before new answers, and these before an acknowledgment. */
static void test_reread_order(void **state)
{
	struct rc rc;

	(void)state;
	open_read(&rc, &small);
	give(&rc, write_one(5));
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 6, .seq = 1, .total = 512, .roff = AREA);
	/* The one that waits for its first answer is not answered twice. */
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 6, .seq = 1, .total = 512, .roff = AREA);
	give(&rc, read_part(0, 1, 256));
	run(&rc);
	expect_resp(&rc, 0, AREA, 1200, 1, 1);
	expect_resp(&rc, 6, AREA, 512, 0, 1);
	/* Of the WRITE: a response says nothing of other requests. */
	expect_ack(&rc, 7, 0);
	expect_silence(&rc);
	rc_close(&rc);
}

/* What a peer still sends to a QP that takes nothing is no fault of the peer. */
static void test_not_set_up(void **state)
{
	struct rc rc;

	(void)state;
	open_read(&rc, &small);
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RESET, 0, NULL), 0);
	give(&rc, read_part(0, 0, 256));
	run(&rc);
	expect_silence(&rc);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_STATE), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 0);
	rc_close(&rc);
}

/* READs of nothing, and 16 that come in reverse. */
static void test_reads(void **state)
{
	struct sr_answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	rc_fill(rc.s[1].buf + AREA, 20000, 9);
	for (uint32_t n = 17; n-- > 0;)
		GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = n, .seq = n, .total = n * 8,
		     .roff = AREA + n);
	/* Number 16 would have been the 17th to wait. */
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
	run(&rc);
	for (uint32_t n = 0; n < 16; n++) {
		expect_resp(&rc, n, AREA + n, n * 8, 0, 0);
	}
	expect_ack(&rc, 15, 0);
	for (int k = 0; k < 2; k++) {
		GIVE(&rc, .op = IB_OP_READ_REQUEST, .roff = AREA);
		run(&rc);
		expect_resp(&rc, 0, AREA, 0, 0, 0);
	}
	/* Number 17 takes the place of 1, which the peer has done with. */
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 17, .seq = 17, .total = 8, .roff = AREA);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 1, .total = 8, .roff = AREA + 1);
	run(&rc);
	expect_ack(&rc, 15, 2);
	expect_silence(&rc);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 1);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 16, .seq = 16, .total = 8, .roff = AREA + 8);
	run(&rc);
	expect_resp(&rc, 16, AREA + 8, 8, 0, 0);
	expect_resp(&rc, 17, AREA, 8, 0, 0);
	while (sr_next(&rc, &a))
		assert_int_equal(a.opcode, IB_OPCODE(RC, ACK));
	rc_close(&rc);
}

/* A page goes: the answer waits for it, and goes on where it was. */
static void test_reread_page(void **state)
{
	struct sr_pkt p = { .op = IB_OP_READ_REQUEST, .total = 1024 };
	struct skua_eqe_fault f;
	struct sr_answer a;
	struct odp o;

	(void)state;
	odp_open(&o, &small, 4);
	p.key = o.s[1].key;
	odp_give_all(&o, 1);
	for (int k = 0; k < 2; k++) {
		give(&o.rc, p);
		run(&o.rc);
		for (unsigned int i = 0; i < 4; i++)
			assert_true(sr_next(&o.rc, &a));
	}
	odp_take_all(&o, 1);
	give(&o.rc, p);
	run(&o.rc);
	expect_silence(&o.rc);
	assert_true(odp_fault(&o, 1, &f));
	odp_serve(&o, 1, &f, ODP_PAGES);
	run(&o.rc);
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(sr_next(&o.rc, &a));
		assert_int_equal(a.psn, (PSN0 + i) & IB_PSN_MASK);
	}
	expect_silence(&o.rc);
	odp_close(&o);
}

/* --- the standard's packets --- */

static void test_mixed(void **state)
{
	struct skua_cqe cqe;
	struct sr_answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	for (uint32_t k = 0; k < 3; k++)
		rc_recv(&rc, 1, k * 1024, 1024);
	/* A SEND of the standard counts; messages begin in one form and go on in the other. */
	GIVE(&rc, .op = IB_OP_SEND_ONLY, .len = 9, .seed = 1, .plain = true);
	GIVE(&rc, .op = IB_OP_SEND_FIRST, .psn = 1, .len = 256, .seed = 2, .plain = true);
	GIVE(&rc, .op = IB_OP_SEND_LAST, .psn = 3, .seq = 1, .off = 2, .len = 7, .seed = 2);
	GIVE(&rc, .op = IB_OP_WRITE_FIRST, .psn = 4, .len = 256, .seed = 3, .roff = AREA,
	     .total = 900);
	GIVE(&rc, .op = IB_OP_SEND_MIDDLE, .psn = 2, .len = 256, .off = 1, .seed = 2,
	     .plain = true);
	/* The WRITE's FIRST was held: who does not say where he belongs comes again. */
	GIVE(&rc, .op = IB_OP_WRITE_MIDDLE, .psn = 5, .len = 256, .off = 1, .seed = 3,
	     .plain = true);
	assert_int_equal(epsn(&rc), 5);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
	GIVE(&rc, .op = IB_OP_WRITE_MIDDLE, .psn = 5, .len = 256, .off = 1, .seed = 3,
	     .roff = AREA, .total = 900);
	/* Now it is known. */
	GIVE(&rc, .op = IB_OP_WRITE_MIDDLE, .psn = 6, .len = 256, .off = 2, .seed = 3,
	     .plain = true);
	GIVE(&rc, .op = IB_OP_SEND_ONLY, .psn = 9, .seq = 2, .len = 3, .seed = 4);
	GIVE(&rc, .op = IB_OP_WRITE_LAST, .psn = 7, .len = 132, .off = 3, .seed = 3,
	     .plain = true);
	hush(&rc);
	GIVE(&rc, .op = IB_OP_FETCH_ADD, .psn = 8, .imm = 3, .roff = AREA + 2048, .plain = true);
	run(&rc);
	assert_true(sr_next(&rc, &a));
	assert_int_equal(a.opcode, IB_OPCODE(RC, ATOMIC_ACK));
	expect_ack(&rc, 9, 0);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
	assert_int_equal(le32_to_cpu(cqe.byte_len), 9);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
	assert_int_equal(le32_to_cpu(cqe.byte_len), 519);
	rc_check(rc.s[1].buf + 1024, 519, 2);
	rc_check(rc.s[1].buf + AREA, 900, 3);
	rc_expect(&rc, 1, true, SKUA_CQE_OK);
	assert_int_equal(rc.s[1].buf[AREA + 2048], 3);
	/* The atomic counts among those that have responses. */
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 10, .seq = 1, .total = 8, .roff = AREA);
	run(&rc);
	expect_resp(&rc, 10, AREA, 8, 0, 0);
	rc_close(&rc);
}

/* A WRITE that began in the standard's packets goes on in either. */
static void test_mixed_write(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t at = k * 4;

		GIVE(&rc, .op = IB_OP_WRITE_FIRST, .psn = at, .len = 256, .seed = 3 + k,
		     .roff = AREA, .total = 900, .plain = true);
		GIVE(&rc, .op = IB_OP_WRITE_MIDDLE, .psn = at + 2, .len = 256, .off = 2,
		     .seed = 3 + k, .roff = AREA, .total = 900);
		GIVE(&rc, .op = IB_OP_WRITE_MIDDLE, .psn = at + 1, .len = 256, .off = 1,
		     .seed = 3 + k, .roff = AREA, .total = 900, .plain = k);
		GIVE(&rc, .op = IB_OP_WRITE_LAST, .psn = at + 3, .len = 132, .off = 3,
		     .seed = 3 + k, .roff = AREA, .total = 900, .plain = k);
		run(&rc);
		assert_int_equal(epsn(&rc), at + 4);
		rc_check(rc.s[1].buf + AREA, 900, 3 + k);
	}
	rc_close(&rc);
}

/* --- shared receives --- */

#define SRQN		5
#define SRQ_PD		(MINI_PD + 3)

/**
 * struct shared - side 1 receives from an SRQ, which is XRC's if its QP is
 * @rc: the connection
 * @ring: the SRQ's
 * @dbr: the SRQ's
 * @pi: the SRQ's
 * @key: region of the buffer in the SRQ's PD
 * @peer: likewise for the peer: XRC's keys are of the SRQ's PD, others of the QP's
 */
struct shared {
	struct rc rc;
	uint64_t ring, dbr;
	uint32_t pi;
	uint32_t key, peer;
};

static void make_srq(struct shared *s, uint32_t srqn, bool xrc)
{
	struct mini *m = &s->rc.s[1].m;
	struct skua_srqc in = {
		.flags = le32_encode_bits(4, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(2, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(SRQ_PD),
		.xrcd = cpu_to_le32(xrc ? MINI_XRCD : 0),
		.cqn = cpu_to_le32(xrc ? s->rc.s[1].rcq.cqn : 0),
		.srqn = cpu_to_le32(srqn),
	};
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x55),
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE |
				      SKUA_ACCESS_REMOTE_READ),
		.pd = cpu_to_le32(SRQ_PD),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(RC_BUF),
		.xlat.base = cpu_to_le64(s->rc.s[1].bus),
	};

	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	s->key = le32_to_cpu(mpt.key);
	s->peer = xrc ? s->key : s->rc.s[1].key;
	s->ring = fake_alloc(m->f, 16 * 64, 4096);
	s->dbr = fake_alloc(m->f, sizeof(struct skua_srq_dbr), SKUA_DBR_ALIGN);
	in.ring.base = cpu_to_le64(s->ring);
	in.dbr = cpu_to_le64(s->dbr);
	mini_ok(m, SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
}

static void srq_post(struct shared *s, uint64_t off, uint32_t len)
{
	struct mini *m = &s->rc.s[1].m;
	uint8_t *w = fake_ptr(m->f, s->ring + s->pi % 16 * 64);

	skua_srq_next_set((void *)w, (s->pi + 1) % 16);
	skua_wqe_data_set((void *)(w + SKUA_WQE_SEG), RC_VA + off, s->key, len);
	skua_wqe_data_set((void *)(w + 2 * SKUA_WQE_SEG), 0, SKUA_INVALID_LKEY, 0);
	((struct skua_srq_dbr *)fake_ptr(m->f, s->dbr))->pi = cpu_to_le32(++s->pi);
}

static void xrc_up(struct rc *rc)
{
	for (int i = 0; i < 2; i++) {
		struct rc_side *s = &rc->s[i];
		uint32_t rtr = SKUA_QP_M_AV | SKUA_QP_M_PATH_MTU | SKUA_QP_M_DEST_QPN |
			       SKUA_QP_M_RQ_PSN | SKUA_QP_M_EXT;
		uint32_t rts = SKUA_QP_M_ACK_TIMEOUT | SKUA_QP_M_SQ_PSN;

		if (i)
			rtr |= SKUA_QP_M_MAX_DEST_RD_ATOMIC | SKUA_QP_M_MIN_RNR_TIMER;
		else
			rts |= SKUA_QP_M_RETRY_CNT | SKUA_QP_M_RNR_RETRY | SKUA_QP_M_MAX_RD_ATOMIC;
		s->attr = rc_attr(rc, i, &small, rc->s[1 - i].qp.qpn);
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_INIT, SKUA_QP_M_PKEY |
						SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &s->attr), 0);
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RTR, rtr, &s->attr), 0);
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RTS, rts, &s->attr), 0);
	}
}

static void shared_open(struct shared *s, bool xrc)
{
	struct rc *rc = &s->rc;
	struct rc_opt opt = small;
	struct skua_cmd_create_qp_in in;

	memset(s, 0, sizeof(*s));
	opt.down = true;
	rc_open(rc, &opt);
	/* The second one is of the same domain, and nobody's QP has it. */
	make_srq(s, SRQN + 1, xrc);
	make_srq(s, SRQN, xrc);
	if (xrc) {
		mini_qp_create(&rc->s[0].m, &rc->s[0].qp, SKUA_QP_XRC_INI, &rc->s[0].scq,
			       &rc->s[0].rcq, 6, 0, 0);
		mini_qp_create(&rc->s[1].m, &rc->s[1].qp, SKUA_QP_XRC_TGT, &rc->s[1].scq,
			       &rc->s[1].rcq, 0, 0, 0);
		xrc_up(rc);
		return;
	}
	in = mini_qp_in(&rc->s[1].m, &rc->s[1].qp, SKUA_QP_RC, &rc->s[1].scq, &rc->s[1].rcq, 6,
			0, 0);
	in.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ);
	memset(&in.rq.ring, 0, sizeof(in.rq.ring));
	in.rq.srqn = cpu_to_le32(SRQN);
	rc->s[1].qp.shared = true;
	mini_ok(&rc->s[1].m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	for (int i = 0; i < 2; i++) {
		rc->s[i].attr = rc_attr(rc, i, &opt, rc->s[1 - i].qp.qpn);
		mini_rc_to_rts(&rc->s[i].m, &rc->s[i].qp, &rc->s[i].attr);
	}
}

#define TO(s, ...)	give(&(s)->rc, (struct sr_pkt){ .srqn = SRQN, .key = (s)->peer,	\
						       __VA_ARGS__ })

/*
 * All kinds before their turn: a SEND takes a receive of the SRQ, and an immediate of XRC, which
 * would not be known to be of this SRQ later.
 */
static void test_shared(void **state)
{
	struct skua_cqe cqe;
	struct sr_answer a;
	struct shared s;

	(void)state;
	for (int xrc = 0; xrc < 2; xrc++) {
		shared_open(&s, xrc);
		for (uint32_t k = 0; k < 4; k++)
			srq_post(&s, k * 1024, 1024);
		TO(&s, .op = IB_OP_SEND_MIDDLE, .psn = 1, .off = 1, .len = 256, .seed = 1);
		run(&s.rc);
		a = expect_ack(&s.rc, -1, 2);
		assert_true(sr_bit(&a, 1));
		TO(&s, .op = IB_OP_SEND_LAST, .psn = 2, .off = 2, .len = 100, .seed = 1);
		TO(&s, .op = IB_OP_WRITE_FIRST, .psn = 3, .len = 256, .seed = 2, .roff = AREA,
		   .total = 516);
		TO(&s, .op = IB_OP_WRITE_MIDDLE, .psn = 4, .off = 1, .len = 256, .seed = 2,
		   .roff = AREA, .total = 516);
		TO(&s, .op = IB_OP_WRITE_LAST_IMM, .psn = 5, .seq = 1, .off = 2, .len = 4,
		   .seed = 2, .roff = AREA, .total = 516, .imm = 5);
		TO(&s, .op = IB_OP_READ_REQUEST, .psn = 6, .total = 256, .roff = AREA);
		run(&s.rc);
		a = expect_ack(&s.rc, -1, 7);
		for (uint32_t n = 1; n < 7; n++)
			assert_true(sr_bit(&a, n));
		assert_int_equal(rc_cnt(&s.rc, 1, SKUA_CNT_RX_EARLY), 6);
		TO(&s, .op = IB_OP_SEND_FIRST, .len = 256, .seed = 1);
		assert_int_equal(epsn(&s.rc), 7);
		run(&s.rc);
		expect_resp(&s.rc, 6, AREA, 256, 0, 0);
		expect_ack(&s.rc, 6, 0);
	for (uint32_t k = 0; k < 2; k++) {
			cqe = rc_expect(&s.rc, 1, true, SKUA_CQE_OK);
			assert_int_equal(skua_cqe_wqe_index(&cqe), k);
			assert_int_equal(le32_to_cpu(cqe.srqn), SRQN);
			assert_int_equal(le32_to_cpu(cqe.byte_len), k ? 516 : 612);
		}
		rc_check(s.rc.s[1].buf, 612, 1);
		rc_check(s.rc.s[1].buf + AREA, 516, 2);
		rc_close(&s.rc);
	}
}

/* XRC: SRQs that are not the target's, keys of another PD, a SEND to another SRQ. */
static void test_xrc_refused(void **state)
{
	static const struct sr_pkt p[] = {
		{ .op = IB_OP_SEND_LAST, .off = 1, .len = 4, .srqn = SRQN + 1 },
		{ .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA, .srqn = SRQN + 2 },
		{ .op = IB_OP_WRITE_ONLY, .len = 4, .total = 4, .roff = AREA, .srqn = SRQN,
		  .key = 1 },
		{ .op = IB_OP_READ_REQUEST, .total = 4, .roff = AREA, .srqn = SRQN, .key = 1 },
	};
	struct shared s;

	(void)state;
	for (size_t k = 0; k < N(p); k++) {
		struct sr_pkt bad = p[k];

		shared_open(&s, true);
		srq_post(&s, 0, 1024);
		TO(&s, .op = IB_OP_SEND_FIRST, .len = 256, .seed = 1);
		bad.psn = 2;
		bad.key = bad.key ? s.rc.s[1].key : s.key;
		give(&s.rc, bad);
		assert_int_equal(rc_cnt(&s.rc, 1, SKUA_CNT_RX_EARLY_DROP), 1);
		assert_false(sr_held(&s.rc));
		rc_close(&s.rc);
	}
}

/* --- ends --- */

static bool all_zero_bytes(const void *p, size_t len)
{
	for (size_t k = 0; k < len; k++) {
		if (((const uint8_t *)p)[k])
			return false;
	}
	return true;
}

/* Packets held, a READ held, responses to be sent again, an acknowledgment due. */
static void open_busy(struct rc *rc)
{
	open_read(rc, &small);
	rc_recv(rc, 1, 0, 256);
	rc_recv(rc, 1, 256, 256);
	give(rc, write_one(5));
	give(rc, write_one(7));
	GIVE(rc, .op = IB_OP_SEND_ONLY, .psn = 8, .len = 256, .seed = 2);
	GIVE(rc, .op = IB_OP_READ_REQUEST, .psn = 9, .seq = 1, .total = 8, .roff = AREA);
	assert_true(sr_held(rc));
	give(rc, read_part(0, 0, 512));
	assert_true(le32_to_cpu(sr_rqc(rc)->flags) & SKUA_RQC_REREAD);
}

static void test_ends(void **state)
{
	struct rc rc;

	(void)state;
	/* ERR: what was done is acknowledged, receives are flushed. */
	open_busy(&rc);
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_ERR, 0, NULL), 0);
	expect_ack(&rc, 5, 0);
	run(&rc);
	expect_silence(&rc);
	assert_int_equal(le32_to_cpu(sr_rqc(&rc)->flags) & (SKUA_RQC_HELD | SKUA_RQC_REREAD), 0);
	for (int k = 0; k < 2; k++)
		rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect_none(&rc, 1, true);
	rc_close(&rc);

	/* RESET: what was done is acknowledged, of the rest nothing is said or left. */
	open_busy(&rc);
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RESET, 0, NULL), 0);
	expect_ack(&rc, 5, 0);
	run(&rc);
	expect_silence(&rc);
	rc_expect_none(&rc, 1, true);
	assert_true(all_zero_bytes(sr_lrc_of(&rc), sizeof(struct skua_lrc)));
	assert_int_equal(sr_rqc(&rc)->flags, 0);
	/* A new life begins with nothing held. */
	memset(fake_ptr(&rc.s[1].f, rc.s[1].qp.dbr), 0, sizeof(struct skua_qp_dbr));
	mini_rc_to_rts(&rc.s[1].m, &rc.s[1].qp, &rc.s[1].attr);
	give(&rc, write_one(0));
	run(&rc);
	expect_ack(&rc, 0, 0);
	rc_close(&rc);

	open_busy(&rc);
	assert_int_equal(mini_index(&rc.s[1].m, SKUA_CMD_DESTROY_QP, rc.s[1].qp.qpn, NULL, 0), 0);
	expect_ack(&rc, 5, 0);
	expect_silence(&rc);
	assert_true(all_zero_bytes(sr_lrc_of(&rc), sizeof(struct skua_lrc)));
	rc_close(&rc);
}

/* What an error finds held is not held any more. */
static void test_fails_holding(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	give(&rc, write_one(1));
	assert_true(sr_held(&rc));
	GIVE(&rc, .op = IB_OP_WRITE_LAST, .off = 1, .len = 4, .total = 260, .roff = AREA);
	run(&rc);
	expect_invalid(&rc, 0);
	assert_false(sr_held(&rc));
	rc_close(&rc);
}

/* After an error nothing is taken any more. */
static void test_failed(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	GIVE(&rc, .op = IB_OP_WRITE_LAST, .off = 1, .len = 4, .total = 260, .roff = AREA);
	give(&rc, write_one(1));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_STATE), 1);
	assert_false(written(&rc, 1));
	run(&rc);
	expect_invalid(&rc, 0);
	expect_silence(&rc);
	rc_close(&rc);
}

/* --- contexts that come back otherwise --- */

static uint64_t rnd;

static uint32_t draw(uint32_t below)
{
	rnd = rnd * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rnd >> 33) % below;
}

static void spoil(void *p, size_t len, uint32_t words)
{
	while (words--)
		((uint32_t *)p)[draw((uint32_t)(len / 4))] = draw(4) ? draw(1u << 24) : draw(~0u);
}

/* Whatever they say, the device lives, and does not go astray in its own memory. */
static void test_hostile(void **state)
{
	static const uint8_t ops[] = {
		IB_OP_SEND_FIRST, IB_OP_SEND_LAST, IB_OP_SEND_ONLY, IB_OP_WRITE_FIRST,
		IB_OP_WRITE_MIDDLE, IB_OP_WRITE_ONLY_IMM, IB_OP_READ_REQUEST, IB_OP_WRITE_ONLY,
	};
	struct rc rc;

	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		__le64 table;

		rnd = seed;
		open_busy(&rc);
		table = sr_lrc_of(&rc)->table;
		for (unsigned int k = 0; k < 40; k++) {
			struct skua_lrc *lrc = sr_lrc_of(&rc);
			uint32_t n = draw(12);

			if (draw(2))
				spoil(lrc, sizeof(*lrc), 1 + draw(100));
			if (draw(8))
				lrc->table = table;
			if (draw(4) == 0)
				spoil(sr_ctx(&rc, SKUA_ICM_RRC), SKUA_ICM_RRC_SIZE, 1 + draw(20));
			if (draw(4) == 0)
				spoil(fake_ptr(&rc.s[1].f, le64_to_cpu(table)), 8192, draw(200));
			if (draw(4) == 0) {
				struct skua_rqc *rqc = sr_rqc(&rc);
				__le32 *word[] = { &rqc->rr_head, &rqc->rr_tail, &rqc->recv_seq,
						   &rqc->cur_op, &rqc->cur_got, &rqc->cur_len };

				*word[draw(N(word))] = cpu_to_le32(draw(4) ? draw(64) : draw(~0u));
				rqc->flags ^= cpu_to_le32(draw(2) * SKUA_RQC_HELD |
							  draw(2) * SKUA_RQC_REREAD);
			}
			n += draw(4) ? epsn(&rc) : 0;
			GIVE(&rc, .op = ops[draw(sizeof(ops))], .psn = n - draw(3), .seq = draw(3),
			     .off = draw(3), .len = draw(4) ? 256 : draw(257),
			     .total = draw(2) ? 256 : draw(2000), .roff = AREA,
			     .seed = 1, .plain = !draw(8));
			if (draw(2))
				hush(&rc);
		}
		hush(&rc);
		mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RESET, 0, NULL);
		assert_int_equal(rc.s[1].f.dev->state, DEV_OPERATIONAL);
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_set_up),
		cmocka_unit_test(test_reread),
		cmocka_unit_test(test_reread_list),
		cmocka_unit_test(test_reread_before),
		cmocka_unit_test(test_reread_bad),
		cmocka_unit_test(test_reread_no_key),
		cmocka_unit_test(test_reread_long),
		cmocka_unit_test(test_reread_begun),
		cmocka_unit_test(test_reread_most),
		cmocka_unit_test(test_reread_far),
		cmocka_unit_test(test_reread_order),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_reread_page),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_mixed_write),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_xrc_refused),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_fails_holding),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
