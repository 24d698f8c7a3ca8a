// SPDX-License-Identifier: GPL-2.0
/*
 * QPs that receive from an SRQ (IBTA chapters 10.2.9, 10.3.1, 11.6.3): who gets
 * which WQE, whose keys count, when the limit event comes, how errors and the end of
 * a QP leave the SRQ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "rc.h"

#define SEC		1000000000ull
#define SRQ_LOG		4
#define SRQ_SEGS	4
#define SRQN		5
#define SRQ_PD		(MINI_PD + 3)

/**
 * struct srq - an SRQ of side 1 and a region of its own PD
 * @rc: the connection; side 1's QP receives from the SRQ
 * @ring: bus address
 * @dbr: bus address of the record
 * @pi: WQEs posted
 * @key: region of the buffer in the SRQ's PD
 */
struct srq {
	struct rc rc;
	uint64_t ring;
	uint64_t dbr;
	uint32_t pi;
	uint32_t key;
};

static struct mini *srq_m(struct srq *s)
{
	return &s->rc.s[1].m;
}

static void *wqe_at(struct srq *s, uint32_t pos)
{
	return fake_ptr(&s->rc.s[1].f, s->ring + pos * SRQ_SEGS * SKUA_WQE_SEG);
}

/* Write a WQE at @pos without telling the device. */
static void wqe_put(struct srq *s, uint32_t pos, uint32_t next, uint64_t off, uint32_t len,
		    uint32_t key)
{
	uint8_t *wqe = wqe_at(s, pos);

	skua_srq_next_set((void *)wqe, next);
	skua_wqe_data_set((void *)(wqe + SKUA_WQE_SEG), RC_VA + off, key, len);
	skua_rq_wqe_end((void *)(wqe + SKUA_WQE_SEG), 1, SRQ_SEGS - 1);
}

static void record(struct srq *s, uint32_t pi)
{
	struct skua_srq_dbr *dbr = fake_ptr(&s->rc.s[1].f, s->dbr);

	s->pi = pi;
	dbr->pi = cpu_to_le32(pi);
}

/* One after the other round the ring. */
static void srq_post(struct srq *s, uint64_t off, uint32_t len)
{
	uint32_t mask = (1u << SRQ_LOG) - 1;

	wqe_put(s, s->pi & mask, (s->pi + 1) & mask, off, len, s->key);
	record(s, s->pi + 1);
}

static struct skua_srqc srqc_in(struct srq *s)
{
	return (struct skua_srqc){
		.flags = le32_encode_bits(SRQ_LOG, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(2, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(SRQ_PD),
		.srqn = cpu_to_le32(SRQN),
		.ring.base = cpu_to_le64(s->ring),
		.dbr = cpu_to_le64(s->dbr),
	};
}

static uint32_t srq_region(struct srq *s, uint32_t pd)
{
	struct mini *m = srq_m(s);
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x55),
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE),
		.pd = cpu_to_le32(pd),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(RC_BUF),
		.xlat.base = cpu_to_le64(s->rc.s[1].bus),
	};

	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

/* A QP of side 1 on the SRQ, in RESET. */
static void srq_qp(struct srq *s, struct mini_qp *qp)
{
	struct skua_cmd_create_qp_in in = mini_qp_in(srq_m(s), qp, s->rc.s[0].qp.type,
						     &s->rc.s[1].scq, &s->rc.s[1].rcq, 6, 0, 0);

	in.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ);
	memset(&in.rq.ring, 0, sizeof(in.rq.ring));
	in.rq.srqn = cpu_to_le32(SRQN);
	mini_ok(srq_m(s), SKUA_CMD_CREATE_QP, &in, sizeof(in));
}

static void connect(struct srq *s, const struct rc_opt *opt, struct mini_qp *a,
		    struct mini_qp *b)
{
	struct rc *rc = &s->rc;

	rc->s[0].attr = rc_attr(rc, 0, opt, b->qpn);
	rc->s[1].attr = rc_attr(rc, 1, opt, a->qpn);
	mini_rc_to_rts(&rc->s[0].m, a, &rc->s[0].attr);
	mini_rc_to_rts(&rc->s[1].m, b, &rc->s[1].attr);
}

static void srq_open(struct srq *s, const struct rc_opt *opt)
{
	struct rc_opt down = *opt;
	struct skua_srqc in;

	memset(s, 0, sizeof(*s));
	down.down = true;
	rc_open(&s->rc, &down);
	s->ring = fake_alloc(&s->rc.s[1].f, SRQ_SEGS * SKUA_WQE_SEG << (SRQ_LOG + 1), 4096);
	s->dbr = fake_alloc(&s->rc.s[1].f, sizeof(struct skua_srq_dbr), SKUA_DBR_ALIGN);
	s->key = srq_region(s, SRQ_PD);
	in = srqc_in(s);
	mini_ok(srq_m(s), SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
	srq_qp(s, &s->rc.s[1].qp);
	connect(s, opt, &s->rc.s[0].qp, &s->rc.s[1].qp);
}

static const struct rc_opt plain;

static void send_some(struct srq *s, uint32_t len, uint32_t seed)
{
	rc_fill(s->rc.s[0].buf, len, seed);
	rc_post(&s->rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = len });
	rc_pump(&s->rc);
}

/* The completion of the SRQ's WQE at @pos. */
static struct skua_cqe expect_srq(struct srq *s, uint32_t pos, enum skua_cqe_status status)
{
	struct skua_cqe cqe = rc_expect(&s->rc, 1, true, status);

	assert_true(skua_cqe_flags(&cqe) & SKUA_CQE_F_SRQ);
	assert_int_equal(le32_to_cpu(cqe.srqn), SRQN);
	assert_int_equal(skua_cqe_wqe_index(&cqe), pos);
	return cqe;
}

static void expect_srq_event(struct srq *s, enum skua_eqe_type type)
{
	struct skua_eqe eqe;

	assert_true(mini_eq_next(srq_m(s), &srq_m(s)->eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), type);
	assert_int_equal(le32_to_cpu(eqe.num), SRQN);
}

static int arm(struct srq *s, uint32_t limit)
{
	struct skua_cmd_modify_srq_in in = {
		.srqn = cpu_to_le32(SRQN),
		.limit = cpu_to_le32(limit),
	};

	return mini_cmd(srq_m(s), SKUA_CMD_MODIFY_SRQ, &in, sizeof(in), NULL, 0);
}

static struct skua_srqc query(struct srq *s)
{
	struct skua_srqc out;

	assert_int_equal(mini_index(srq_m(s), SKUA_CMD_QUERY_SRQ, SRQN, &out, sizeof(out)), 0);
	return out;
}

/* --- WQEs are used in the order in which they were posted, round the ring --- */

static void test_order(void **state)
{
	struct skua_cqe cqe;
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t len = 1 + i * 700;

		srq_post(&s, i * 32768, 32768);
		send_some(&s, len, i);
		cqe = expect_srq(&s, i % 16, SKUA_CQE_OK);
		assert_int_equal(le32_to_cpu(cqe.byte_len), len);
		assert_int_equal(le32_to_cpu(cqe.qpn), s.rc.s[1].qp.qpn);
		rc_check(s.rc.s[1].buf + i * 32768, len, i);
		rc_expect(&s.rc, 0, false, SKUA_CQE_OK);
	}
	rc_close(&s.rc);
}

/* The order is that of the links, whatever the positions. */
static void test_links(void **state)
{
	static const uint32_t order[] = { 0, 9, 3, 15, 1 };
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	for (uint32_t i = 0; i < 5; i++)
		wqe_put(&s, order[i], order[(i + 1) % 5], i * 100, 100, s.key);
	record(&s, 5);
	for (uint32_t i = 0; i < 5; i++) {
		send_some(&s, 100, i);
		expect_srq(&s, order[i], SKUA_CQE_OK);
		rc_check(s.rc.s[1].buf + i * 100, 100, i);
	}
	rc_close(&s.rc);
}

/* --- A WQE belongs to the QP whose message took it, until the message ends --- */

static void inject(struct srq *s, const struct mini_qp *to, uint8_t opcode, uint32_t psn,
		   uint32_t len, uint32_t seed)
{
	uint8_t frame[5000];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(&s->rc, 0, &b, frame, sizeof(frame), opcode, psn), 0);
	be24_put(b.bth->dqpn, to->qpn);
	if (b.reth)
		ib_reth_put(b.reth, RC_VA + 1000000, s->rc.s[1].key, len);
	rc_fill(b.payload, len, seed);
	rc_inject(&s->rc, 1, &b, len);
	rc_pump(&s->rc);
}

static void test_interleaved(void **state)
{
	struct mini_qp a2, b2;
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	rc_qp(&s.rc, 0, &a2, &plain);
	srq_qp(&s, &b2);
	connect(&s, &plain, &a2, &b2);
	srq_post(&s, 0, 10000);
	srq_post(&s, 10000, 10000);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(RC, SEND_FIRST), 0, 4096, 1);
	inject(&s, &b2, IB_OPCODE(RC, SEND_FIRST), 0, 4096, 2);
	inject(&s, &b2, IB_OPCODE(RC, SEND_LAST), 1, 50, 4);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(RC, SEND_LAST), 1, 60, 3);
	expect_srq(&s, 1, SKUA_CQE_OK);
	expect_srq(&s, 0, SKUA_CQE_OK);
	rc_check(s.rc.s[1].buf, 4096, 1);
	rc_check(s.rc.s[1].buf + 4096, 60, 3);
	rc_check(s.rc.s[1].buf + 10000, 4096, 2);
	rc_check(s.rc.s[1].buf + 14096, 50, 4);
	rc_close(&s.rc);
}

/* WRITE with immediate takes one with its last packet only. */
static void test_write_imm(void **state)
{
	struct skua_cqe cqe;
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	srq_post(&s, 0, 0);
	rc_fill(s.rc.s[0].buf, 9000, 7);
	rc_post(&s.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE_IMM, .len = 9000, .imm = 0x1234,
			.roff = 500000 });
	rc_pump(&s.rc);
	cqe = expect_srq(&s, 0, SKUA_CQE_OK);
	assert_int_equal(skua_cqe_opcode(&cqe), SKUA_CQE_RECV_WRITE_IMM);
	assert_int_equal(be32toh(cqe.imm), 0x1234);
	assert_int_equal(le32_to_cpu(cqe.byte_len), 9000);
	rc_check(s.rc.s[1].buf + 500000, 9000, 7);
	rc_close(&s.rc);
}

/* --- An empty SRQ is a receiver not ready --- */

static void test_rnr(void **state)
{
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	send_some(&s, 100, 1);
	rc_expect_none(&s.rc, 0, false);
	srq_post(&s, 0, 100);
	rc_pump_for(&s.rc, SEC);
	rc_expect(&s.rc, 0, false, SKUA_CQE_OK);
	expect_srq(&s, 0, SKUA_CQE_OK);
	rc_close(&s.rc);

	srq_open(&s, &(struct rc_opt){ .rnr_retry = 1 });
	send_some(&s, 100, 1);
	rc_pump_for(&s.rc, SEC);
	rc_expect(&s.rc, 0, false, SKUA_CQE_RNR_RETRY_EXC_ERR);
	assert_int_equal(rc_state(&s.rc, 1), SKUA_QP_RTS);
	rc_close(&s.rc);
}

/* A record that claims more WQEs than the ring has is not believed. */
static void test_record_too_large(void **state)
{
	struct srq s;

	(void)state;
	srq_open(&s, &(struct rc_opt){ .rnr_retry = 1 });
	srq_post(&s, 0, 100);
	record(&s, 17);
	send_some(&s, 100, 1);
	rc_pump_for(&s.rc, SEC);
	rc_expect(&s.rc, 0, false, SKUA_CQE_RNR_RETRY_EXC_ERR);
	rc_expect_none(&s.rc, 1, true);
	rc_close(&s.rc);
}

/* --- Errors of the WQE: the QP ends, the SRQ goes on --- */

static void test_wqe_errors(void **state)
{
	static const struct {
		const char *name;
		uint32_t len, send;
		int pd;		/* of the key, 0: no such key */
		enum skua_cqe_status recv, requester;
		enum skua_vendor vendor;
	} cases[] = {
		{ "the SRQ's PD counts, the QP's does not", 100, 100, MINI_PD,
		  SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_REM_OP_ERR, SKUA_VENDOR_KEY_PD },
		{ "no such key", 100, 100, 0, SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_REM_OP_ERR,
		  SKUA_VENDOR_KEY_INVALID },
		{ "message longer than the list", 100, 101, SRQ_PD, SKUA_CQE_LOC_LEN_ERR,
		  SKUA_CQE_REM_INV_REQ_ERR, SKUA_VENDOR_MSG_LEN },
		{ "element longer than any message", 0x80000001, 1, SRQ_PD,
		  SKUA_CQE_LOC_QP_OP_ERR, SKUA_CQE_REM_OP_ERR, SKUA_VENDOR_SGE_LEN },
	};
	struct mini_qp a2, b2;
	struct skua_cqe cqe;
	struct srq s;

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		print_message("%s\n", cases[k].name);
		srq_open(&s, &plain);
		rc_qp(&s.rc, 0, &a2, &plain);
		srq_qp(&s, &b2);
		wqe_put(&s, 0, 1, 0, cases[k].len,
			cases[k].pd ? srq_region(&s, cases[k].pd) : 0x3ff00);
		record(&s, 1);
		srq_post(&s, 0, 100);
		send_some(&s, cases[k].send, 1);
		cqe = expect_srq(&s, 0, cases[k].recv);
		assert_int_equal(skua_cqe_vendor(&cqe), cases[k].vendor);
		rc_expect(&s.rc, 0, false, cases[k].requester);
		assert_int_equal(rc_state(&s.rc, 1), SKUA_QP_ERR);
		/* Nothing of the SRQ is flushed. */
		rc_expect_event(&s.rc, 1, SKUA_QP_EV_LAST_WQE);
		rc_expect_no_event(&s.rc, 1);
		rc_expect_none(&s.rc, 1, true);
		connect(&s, &plain, &a2, &b2);
		inject(&s, &b2, IB_OPCODE(RC, SEND_ONLY), 0, 64, 1);
		expect_srq(&s, 1, SKUA_CQE_OK);
		rc_close(&s.rc);
	}
}

/* --- Errors of the SRQ itself --- */

static void test_srq_error(void **state)
{
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	wqe_put(&s, 0, 16, 0, 100, s.key);
	record(&s, 1);
	send_some(&s, 100, 1);
	expect_srq_event(&s, SKUA_EQE_SRQ_ERR);
	rc_expect_event(&s.rc, 1, SKUA_QP_EV_FATAL);
	rc_expect_event(&s.rc, 1, SKUA_QP_EV_LAST_WQE);
	rc_expect_no_event(&s.rc, 1);
	rc_expect_none(&s.rc, 1, true);
	rc_expect(&s.rc, 0, false, SKUA_CQE_REM_OP_ERR);
	assert_int_equal(rc_state(&s.rc, 1), SKUA_QP_ERR);
	assert_true(le32_to_cpu(query(&s).flags) & SKUA_SRQC_ERROR);
	assert_int_equal(arm(&s, 1), SKUA_CMD_ST_BAD_STATE);
	rc_close(&s.rc);
}

/* --- The limit event, once for each time that it is armed --- */

static void test_limit(void **state)
{
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	for (uint32_t i = 0; i < 8; i++)
		srq_post(&s, 0, 100);
	assert_int_equal(arm(&s, 17), SKUA_CMD_ST_BAD_PARAM);
	assert_int_equal(arm(&s, 7), 0);
	rc_expect_no_event(&s.rc, 1);
	send_some(&s, 10, 1);
	/* Seven are left: not fewer. */
	rc_expect_no_event(&s.rc, 1);
	assert_int_equal(le32_to_cpu(query(&s).limit), 7);
	/* One posted that the device has not seen counts. */
	srq_post(&s, 0, 100);
	send_some(&s, 10, 1);
	rc_expect_no_event(&s.rc, 1);
	send_some(&s, 10, 1);
	expect_srq_event(&s, SKUA_EQE_SRQ_LIMIT);
	assert_int_equal(le32_to_cpu(query(&s).limit), 0);
	send_some(&s, 10, 1);
	rc_expect_no_event(&s.rc, 1);
	/* Armed when it is passed already: at once, so that it is never missed. */
	assert_int_equal(arm(&s, 5), 0);
	rc_expect_no_event(&s.rc, 1);
	assert_int_equal(arm(&s, 6), 0);
	expect_srq_event(&s, SKUA_EQE_SRQ_LIMIT);
	/* Off again. */
	assert_int_equal(arm(&s, 5), 0);
	assert_int_equal(arm(&s, 0), 0);
	send_some(&s, 10, 1);
	rc_expect_no_event(&s.rc, 1);
	rc_close(&s.rc);
}

/* --- Last WQE reached, in each way into the error state, once --- */

static void to_state(struct srq *s, enum skua_qp_state state)
{
	assert_int_equal(mini_qp_modify(srq_m(s), &s->rc.s[1].qp, state, 0, NULL), 0);
	rc_pump(&s->rc);
}

static void test_last_wqe(void **state)
{
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	srq_post(&s, 0, 100);
	to_state(&s, SKUA_QP_ERR);
	rc_expect_event(&s.rc, 1, SKUA_QP_EV_LAST_WQE);
	rc_expect_no_event(&s.rc, 1);
	rc_expect_none(&s.rc, 1, true);
	mini_ring(srq_m(&s), &s.rc.s[1].qp);
	to_state(&s, SKUA_QP_ERR);
	rc_expect_no_event(&s.rc, 1);
	/* Another life, another event. */
	to_state(&s, SKUA_QP_RESET);
	mini_rc_to_rts(srq_m(&s), &s.rc.s[1].qp, &s.rc.s[1].attr);
	to_state(&s, SKUA_QP_ERR);
	rc_expect_event(&s.rc, 1, SKUA_QP_EV_LAST_WQE);
	rc_close(&s.rc);

	/* A WQE under way is flushed before. */
	srq_open(&s, &plain);
	srq_post(&s, 0, 10000);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(RC, SEND_FIRST), 0, 4096, 1);
	to_state(&s, SKUA_QP_ERR);
	expect_srq(&s, 0, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect_none(&s.rc, 1, true);
	rc_expect_event(&s.rc, 1, SKUA_QP_EV_LAST_WQE);
	rc_close(&s.rc);
}

/* A WQE under way is reported when its QP is reset or destroyed, not lost. */
static void test_not_lost(void **state)
{
	struct srq s;

	(void)state;
	for (int destroy = 0; destroy < 2; destroy++) {
		srq_open(&s, &plain);
		srq_post(&s, 0, 10000);
		inject(&s, &s.rc.s[1].qp, IB_OPCODE(RC, SEND_FIRST), 0, 4096, 1);
		if (destroy)
			assert_int_equal(mini_index(srq_m(&s), SKUA_CMD_DESTROY_QP,
						    s.rc.s[1].qp.qpn, NULL, 0), 0);
		else
			to_state(&s, SKUA_QP_RESET);
		expect_srq(&s, 0, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&s.rc, 1, true);
		rc_expect_no_event(&s.rc, 1);
		rc_close(&s.rc);
	}
}

/* --- RESIZE_SRQ --- */

static void test_resize(void **state)
{
	struct skua_srqc in;
	uint64_t old;
	struct srq s;

	(void)state;
	srq_open(&s, &plain);
	for (uint32_t i = 0; i < 16; i++)
		srq_post(&s, i * 100, 100);
	for (uint32_t i = 0; i < 3; i++) {
		send_some(&s, 100, i);
		expect_srq(&s, i, SKUA_CQE_OK);
	}
#define refuse(status, change) do { in = srqc_in(&s); in.pd = 0; in.dbr = 0; change;	\
		assert_int_equal(mini_cmd(srq_m(&s), SKUA_CMD_RESIZE_SRQ, &in, sizeof(in),	\
					  NULL, 0), SKUA_CMD_ST_##status); } while (0)
	refuse(BAD_INDEX, in.srqn = cpu_to_le32(SRQN + 1));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, SRQ_LOG - 1, SKUA_SRQC_LOG_SIZE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, MODEL_LOG_RQ_MAX + 1, SKUA_SRQC_LOG_SIZE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, 3, SKUA_SRQC_LOG_STRIDE));
	refuse(BAD_PARAM, in.pd = cpu_to_le32(SRQ_PD));
	refuse(BAD_PARAM, in.limit = cpu_to_le32(1));
	refuse(BAD_PARAM, in.ring.base = cpu_to_le64(8));
	/* Half as many again, the first of them behind the last of the old ones. */
	old = s.ring;
	s.ring = fake_alloc(&s.rc.s[1].f, SRQ_SEGS * SKUA_WQE_SEG << (SRQ_LOG + 1), 4096);
	memcpy(wqe_at(&s, 0), fake_ptr(&s.rc.s[1].f, old), SRQ_SEGS * SKUA_WQE_SEG << SRQ_LOG);
	refuse(OK, le32p_replace_bits(&in.flags, SRQ_LOG + 1, SKUA_SRQC_LOG_SIZE));
#undef refuse
	memset(fake_ptr(&s.rc.s[1].f, old), 0xff, SRQ_SEGS * SKUA_WQE_SEG << SRQ_LOG);
	wqe_put(&s, 15, 16, 1500, 100, s.key);
	wqe_put(&s, 16, 31, 1600, 100, s.key);
	wqe_put(&s, 31, 0, 1700, 100, s.key);
	record(&s, 18);
	for (uint32_t i = 3; i < 18; i++) {
		send_some(&s, 100, i);
		expect_srq(&s, i == 17 ? 31 : i, SKUA_CQE_OK);
		rc_check(s.rc.s[1].buf + i * 100, 100, i);
	}
	rc_close(&s.rc);
}

/* The same with contexts that leave the chip all the time. */
static void test_tiny_cache(void **state)
{
	struct mini_qp a2, b2;
	struct srq s;

	(void)state;
	srq_open(&s, &(struct rc_opt){ .onchip = 16 });
	rc_qp(&s.rc, 0, &a2, &plain);
	srq_qp(&s, &b2);
	connect(&s, &plain, &a2, &b2);
	for (uint32_t i = 0; i < 30; i++) {
		srq_post(&s, 0, 9000);
		srq_post(&s, 10000, 9000);
		inject(&s, &b2, IB_OPCODE(RC, SEND_FIRST), 2 * i, 4096, i);
		send_some(&s, 9000, i + 1);
		expect_srq(&s, (2 * i + 1) % 16, SKUA_CQE_OK);
		inject(&s, &b2, IB_OPCODE(RC, SEND_LAST), 2 * i + 1, 100, i);
		expect_srq(&s, 2 * i % 16, SKUA_CQE_OK);
		rc_check(s.rc.s[1].buf + 10000, 9000, i + 1);
		rc_check(s.rc.s[1].buf, 4096, i);
	}
	rc_close(&s.rc);
}

/* --- Unreliable services: nobody repeats what a WQE was taken for, so it is reported --- */

static void test_uc(void **state)
{
	struct srq s;

	(void)state;
	srq_open(&s, &(struct rc_opt){ .type = SKUA_QP_UC, .mtu_code = 1 });
	for (uint32_t i = 0; i < 4; i++)
		srq_post(&s, i * 300, 300);
	/* One that another message breaks off, one too long, one that is whole. */
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(UC, SEND_FIRST), 0, 256, 1);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(UC, SEND_FIRST), 7, 256, 2);
	expect_srq(&s, 0, SKUA_CQE_REM_INV_REQ_ERR);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(UC, SEND_MIDDLE), 8, 256, 3);
	expect_srq(&s, 1, SKUA_CQE_LOC_LEN_ERR);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(UC, SEND_LAST), 9, 1, 4);
	rc_expect_none(&s.rc, 1, true);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(UC, SEND_FIRST), 10, 256, 5);
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(UC, SEND_LAST), 11, 44, 6);
	expect_srq(&s, 2, SKUA_CQE_OK);
	rc_check(s.rc.s[1].buf + 600, 256, 5);
	/* One of which the end is lost, and nothing follows: the QP's end gives it up. */
	inject(&s, &s.rc.s[1].qp, IB_OPCODE(UC, SEND_FIRST), 12, 256, 7);
	rc_expect_none(&s.rc, 1, true);
	assert_int_equal(rc_state(&s.rc, 1), SKUA_QP_RTS);
	to_state(&s, SKUA_QP_ERR);
	rc_pump(&s.rc);
	expect_srq(&s, 3, SKUA_CQE_WR_FLUSH_ERR);
	rc_close(&s.rc);
}

static void test_ud(void **state)
{
	struct skua_cqe cqe;
	struct srq s;

	(void)state;
	srq_open(&s, &(struct rc_opt){ .type = SKUA_QP_UD });
	srq_post(&s, 0, 139);
	srq_post(&s, 1000, 140);
	send_some(&s, 100, 1);
	expect_srq(&s, 0, SKUA_CQE_LOC_LEN_ERR);
	send_some(&s, 100, 2);
	cqe = expect_srq(&s, 1, SKUA_CQE_OK);
	assert_int_equal(le32_to_cpu(cqe.byte_len), 140);
	assert_int_equal(le32_to_cpu(cqe.ud.src_qpn), s.rc.s[0].qp.qpn);
	rc_check(s.rc.s[1].buf + 1040, 100, 2);
	send_some(&s, 100, 3);
	assert_int_equal(rc_cnt(&s.rc, 1, SKUA_CNT_OUT_OF_BUFFER), 1);
	assert_int_equal(rc_state(&s.rc, 1), SKUA_QP_RTS);
	rc_close(&s.rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_interleaved),
		cmocka_unit_test(test_write_imm),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_record_too_large),
		cmocka_unit_test(test_wqe_errors),
		cmocka_unit_test(test_srq_error),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_last_wqe),
		cmocka_unit_test(test_not_lost),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_tiny_cache),
		cmocka_unit_test(test_uc),
		cmocka_unit_test(test_ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
