// SPDX-License-Identifier: GPL-2.0
/*
 * XRC (IBTA annex A14): an initiator on side 0, a target on side 1, SRQs with CQs and
 * PDs of their own; what the target checks of an XRCETH, and whose keys count.
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
#include "rc_srq.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SRQ_LOG		4
#define SRQ_SEGS	4
#define PD(k)		(MINI_PD + 1 + (k))

/**
 * struct xsrq - an XRC SRQ of side 1
 * @srqn: its number
 * @ring: bus address
 * @dbr: bus address of the record
 * @pi: WQEs posted
 * @key: region of the buffer in its PD, with all rights
 * @cq: its CQ
 */
struct xsrq {
	uint32_t srqn;
	uint64_t ring, dbr;
	uint32_t pi;
	uint32_t key;
	struct mini_cq cq;
};

/*
 * rc.s[0].qp is the initiator, rc.s[1].qp the target; @srq: two of the target's
 * domain, one of another, one that is not XRC's.
 */
struct xrc {
	struct rc rc;
	struct xsrq srq[4];
};

enum { OTHER_DOMAIN = 2, NOT_XRC = 3 };

static const struct rc_opt plain;

static uint32_t region(struct xrc *x, uint32_t pd)
{
	struct mini *m = &x->rc.s[1].m;
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x33),
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE |
				      SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC),
		.pd = cpu_to_le32(pd),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(RC_BUF),
		.xlat.base = cpu_to_le64(x->rc.s[1].bus),
	};

	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

/* An on-demand region of the PD that has no page; its key. */
static uint32_t odp_region(struct xrc *x, uint32_t pd)
{
	struct mini *m = &x->rc.s[1].m;
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x44),
		.flags = cpu_to_le32(SKUA_MPT_VALID | SKUA_MPT_ODP),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE),
		.pd = cpu_to_le32(pd),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(4096),
		.xlat.base = cpu_to_le64(m->next_mtt++),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
			     le32_encode_bits(12, SKUA_XLAT_LOG_PAGE),
		.npages = cpu_to_le32(1),
	};

	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

/* Somebody to hear of page faults. */
static void odp_eq(struct xrc *x, struct mini_eq *eq)
{
	struct mini *m = &x->rc.s[1].m;
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_FAULT_EQ),
		.fault_eqn = cpu_to_le32(MINI_EQS),
	};

	assert_int_equal(mini_eq_create(m, eq, MINI_EQS, 6, 0, 0), 0);
	mini_ok(m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
}

static struct skua_srqc srqc_in(struct xsrq *s, uint32_t pd, uint32_t xrcd)
{
	return (struct skua_srqc){
		.flags = le32_encode_bits(SRQ_LOG, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(2, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(pd),
		.xrcd = cpu_to_le32(xrcd),
		.cqn = cpu_to_le32(xrcd ? s->cq.cqn : 0),
		.srqn = cpu_to_le32(s->srqn),
		.ring.base = cpu_to_le64(s->ring),
		.dbr = cpu_to_le64(s->dbr),
	};
}

static void make_srq(struct xrc *x, int k)
{
	static const uint32_t domain[] = { MINI_XRCD, MINI_XRCD, MINI_XRCD + 1, 0 };
	struct mini *m = &x->rc.s[1].m;
	struct xsrq *s = &x->srq[k];
	struct skua_srqc in;

	s->srqn = 10 + k;
	s->ring = fake_alloc(m->f, SRQ_SEGS * SKUA_WQE_SEG << SRQ_LOG, 4096);
	s->dbr = fake_alloc(m->f, sizeof(struct skua_srq_dbr), SKUA_DBR_ALIGN);
	mini_cq_create(m, &s->cq, 6);
	s->key = region(x, PD(k));
	in = srqc_in(s, PD(k), domain[k]);
	mini_ok(m, SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
}

static void xrc_open(struct xrc *x, const struct rc_opt *opt)
{
	struct rc_opt down = *opt;
	struct rc *rc = &x->rc;

	memset(x, 0, sizeof(*x));
	down.down = true;
	down.log_sq = 6;
	rc_open(rc, &down);
	for (int k = 0; k < 4; k++)
		make_srq(x, k);
	rc_xrc_up(rc, &down);
}

static void srq_post(struct xrc *x, int k, uint64_t off, uint32_t len)
{
	struct mini *m = &x->rc.s[1].m;
	struct xsrq *s = &x->srq[k];
	uint32_t mask = (1u << SRQ_LOG) - 1;
	uint8_t *wqe = fake_ptr(m->f, s->ring + (s->pi & mask) * SRQ_SEGS * SKUA_WQE_SEG);
	struct skua_srq_dbr *dbr = fake_ptr(m->f, s->dbr);

	skua_srq_next_set((void *)wqe, (s->pi + 1) & mask);
	skua_wqe_data_set((void *)(wqe + SKUA_WQE_SEG), RC_VA + off, s->key, len);
	skua_rq_wqe_end((void *)(wqe + SKUA_WQE_SEG), 1, SRQ_SEGS - 1);
	dbr->pi = cpu_to_le32(++s->pi);
}

/* A work request of the initiator to SRQ number @srqn. */
static void xrc_post(struct xrc *x, enum skua_wqe_op op, uint32_t srqn, uint32_t len,
		     uint64_t roff, uint32_t rkey)
{
	struct rc_side *s = &x->rc.s[0];
	uint8_t wqe[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK] = { 0 };
	unsigned int nseg = 1;

	skua_wqe_ctrl_set((void *)wqe, op, 0, 0, SKUA_WQE_F_SIGNALED);
	if (op == SKUA_WQE_WRITE_IMM)
		skua_wqe_imm_set((void *)wqe, htobe32(0x5678));
	skua_wqe_xrc_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), srqn);
	if (op != SKUA_WQE_SEND)
		skua_wqe_raddr_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), RC_VA + roff, rkey, 0);
	if (op == SKUA_WQE_FAA)
		skua_wqe_atomic_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), 5, 0);
	skua_wqe_data_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), RC_VA, s->key, len);
	mini_post(&s->m, &s->qp, wqe, nseg);
	mini_ring(&s->m, &s->qp);
	rc_pump(&x->rc);
}

static struct skua_cqe srq_expect(struct xrc *x, int k, enum skua_cqe_status status)
{
	struct skua_cqe cqe;

	assert_true(mini_cq_next(&x->rc.s[1].m, &x->srq[k].cq, &cqe));
	assert_int_equal(skua_cqe_status(&cqe), status);
	assert_true(skua_cqe_flags(&cqe) & SKUA_CQE_F_SRQ);
	assert_int_equal(le32_to_cpu(cqe.srqn), x->srq[k].srqn);
	assert_int_equal(le32_to_cpu(cqe.qpn), x->rc.s[1].qp.qpn);
	return cqe;
}

/* --- One target serves all SRQs of its domain, each with its CQ and its PD --- */

static void test_operations(void **state)
{
	struct skua_cqe cqe;
	struct xrc x;
	uint64_t val;

	(void)state;
	xrc_open(&x, &plain);
	for (int k = 0; k < 2; k++) {
		struct xsrq *s = &x.srq[k];

		srq_post(&x, k, 0, 20000);
		rc_fill(x.rc.s[0].buf, 10000, k);
		xrc_post(&x, SKUA_WQE_SEND, s->srqn, 10000, 0, 0);
		cqe = srq_expect(&x, k, SKUA_CQE_OK);
		assert_int_equal(le32_to_cpu(cqe.byte_len), 10000);
		rc_check(x.rc.s[1].buf, 10000, k);
		rc_expect(&x.rc, 0, false, SKUA_CQE_OK);

		rc_fill(x.rc.s[0].buf, 9000, k + 7);
		xrc_post(&x, SKUA_WQE_WRITE, s->srqn, 9000, 50000, s->key);
		rc_expect(&x.rc, 0, false, SKUA_CQE_OK);
		rc_check(x.rc.s[1].buf + 50000, 9000, k + 7);

		srq_post(&x, k, 0, 0);
		xrc_post(&x, SKUA_WQE_WRITE_IMM, s->srqn, 9000, 70000, s->key);
		rc_expect(&x.rc, 0, false, SKUA_CQE_OK);
		cqe = srq_expect(&x, k, SKUA_CQE_OK);
		assert_int_equal(skua_cqe_opcode(&cqe), SKUA_CQE_RECV_WRITE_IMM);
		rc_check(x.rc.s[1].buf + 70000, 9000, k + 7);

		rc_fill(x.rc.s[1].buf + 90000, 30000, k + 9);
		xrc_post(&x, SKUA_WQE_READ, s->srqn, 30000, 90000, s->key);
		rc_expect(&x.rc, 0, false, SKUA_CQE_OK);
		rc_check(x.rc.s[0].buf, 30000, k + 9);

		memset(x.rc.s[1].buf + 200000, 0, 8);
		xrc_post(&x, SKUA_WQE_FAA, s->srqn, 8, 200000, s->key);
		rc_expect(&x.rc, 0, false, SKUA_CQE_OK);
		memcpy(&val, x.rc.s[1].buf + 200000, sizeof(val));
		assert_int_equal(le64toh(val), 5);
	}
	rc_expect_none(&x.rc, 1, true);
	rc_expect_no_event(&x.rc, 1);
	rc_close(&x.rc);
}

/* --- What the target finds wrong; what the peer is told; where both end --- */

static void test_errors(void **state)
{
	static const struct {
		const char *name;
		enum skua_wqe_op op;
		int srq, key;		/* -1: no such SRQ */
		enum skua_cqe_status status;
		enum skua_qp_event event;
	} cases[] = {
		{ "no such SRQ", SKUA_WQE_SEND, -1, 0, SKUA_CQE_REM_INV_REQ_ERR,
		  SKUA_QP_EV_REQ_ERR },
		{ "SRQ that is not XRC's", SKUA_WQE_SEND, NOT_XRC, 0, SKUA_CQE_REM_INV_REQ_ERR,
		  SKUA_QP_EV_REQ_ERR },
		{ "SRQ of another domain", SKUA_WQE_SEND, OTHER_DOMAIN, 0,
		  SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
		{ "WRITE: SRQ of another domain, with its own key", SKUA_WQE_WRITE, OTHER_DOMAIN,
		  OTHER_DOMAIN, SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
		{ "READ: no such SRQ", SKUA_WQE_READ, -1, 0, SKUA_CQE_REM_INV_REQ_ERR,
		  SKUA_QP_EV_REQ_ERR },
		{ "WRITE: key of another SRQ's PD", SKUA_WQE_WRITE, 0, 1,
		  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
		{ "READ: key of another SRQ's PD", SKUA_WQE_READ, 0, 1,
		  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
		{ "atomic: key of another SRQ's PD", SKUA_WQE_FAA, 1, 0,
		  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	};
	struct xrc x;

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		print_message("%s\n", cases[i].name);
		xrc_open(&x, &plain);
		for (int k = 0; k < 4; k++)
			srq_post(&x, k, 0, 100);
		xrc_post(&x, cases[i].op, cases[i].srq < 0 ? 99 : x.srq[cases[i].srq].srqn, 8, 0,
			 x.srq[cases[i].key].key);
		rc_expect(&x.rc, 0, false, cases[i].status);
		rc_expect_event(&x.rc, 1, cases[i].event);
		rc_expect_event(&x.rc, 1, SKUA_QP_EV_LAST_WQE);
		rc_expect_no_event(&x.rc, 1);
		assert_int_equal(rc_state(&x.rc, 0), SKUA_QP_ERR);
		assert_int_equal(rc_state(&x.rc, 1), SKUA_QP_ERR);
		/* No SRQ has lost a WQE. */
		for (int k = 0; k < 4; k++) {
			struct skua_srqc out;

			assert_int_equal(mini_index(&x.rc.s[1].m, SKUA_CMD_QUERY_SRQ,
						    x.srq[k].srqn, &out, sizeof(out)), 0);
			assert_int_equal(le32_to_cpu(out.ci), 0);
		}
		rc_close(&x.rc);
	}
}

static void inject(struct xrc *x, uint8_t opcode, uint32_t psn, int k, uint32_t len)
{
	uint8_t frame[5000];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(&x->rc, 0, &b, frame, sizeof(frame), opcode, psn), 0);
	if (b.xrceth)
		ib_xrceth_put(b.xrceth, x->srq[k].srqn);
	rc_fill(b.payload, len, psn);
	rc_inject(&x->rc, 1, &b, len);
	rc_pump(&x->rc);
}

/* The packets of a message name one SRQ. */
static void test_srq_changes(void **state)
{
	struct xrc x;

	(void)state;
	xrc_open(&x, &plain);
	srq_post(&x, 0, 0, 10000);
	srq_post(&x, 1, 0, 10000);
	inject(&x, IB_OPCODE(XRC, SEND_FIRST), 0, 0, 4096);
	inject(&x, IB_OPCODE(XRC, SEND_LAST), 1, 1, 10);
	rc_expect_event(&x.rc, 1, SKUA_QP_EV_REQ_ERR);
	/* The WQE that was taken comes back. */
	srq_expect(&x, 0, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect_event(&x.rc, 1, SKUA_QP_EV_LAST_WQE);
	rc_close(&x.rc);
}

/* Also those of a WRITE, which takes no WQE. */
static void test_srq_changes_in_write(void **state)
{
	uint8_t frame[5000];
	struct skua_pkt_build b;
	struct xrc x;

	(void)state;
	xrc_open(&x, &plain);
	assert_int_equal(rc_build(&x.rc, 0, &b, frame, sizeof(frame),
				  IB_OPCODE(XRC, WRITE_FIRST), 0), 0);
	ib_xrceth_put(b.xrceth, x.srq[0].srqn);
	ib_reth_put(b.reth, RC_VA, x.srq[0].key, 4106);
	rc_inject(&x.rc, 1, &b, 4096);
	inject(&x, IB_OPCODE(XRC, WRITE_LAST), 1, 1, 10);
	rc_expect_event(&x.rc, 1, SKUA_QP_EV_REQ_ERR);
	rc_close(&x.rc);
}

/* Packets of RC, and requests to an initiator, mean nothing. */
static void test_direction(void **state)
{
	struct skua_pkt_build b;
	uint8_t frame[5000];
	uint64_t before;
	struct xrc x;

	(void)state;
	xrc_open(&x, &plain);
	srq_post(&x, 0, 0, 10000);
	before = rc_cnt(&x.rc, 1, SKUA_CNT_RX_MALFORMED);
	inject(&x, IB_OPCODE(RC, SEND_ONLY), 0, 0, 100);
	inject(&x, IB_OPCODE(XRC, ACK), 0, 0, 0);
	assert_int_equal(rc_cnt(&x.rc, 1, SKUA_CNT_RX_MALFORMED), before + 2);
	assert_int_equal(rc_build(&x.rc, 1, &b, frame, sizeof(frame),
				  IB_OPCODE(XRC, SEND_ONLY), 0), 0);
	before = rc_cnt(&x.rc, 0, SKUA_CNT_RX_MALFORMED);
	rc_inject(&x.rc, 0, &b, 4);
	assert_int_equal(rc_cnt(&x.rc, 0, SKUA_CNT_RX_MALFORMED), before + 1);
	assert_int_equal(rc_state(&x.rc, 1), SKUA_QP_RTS);
	rc_close(&x.rc);
}

/* --- Objects: what CREATE_SRQ and CREATE_QP ask of XRC --- */

static void test_objects(void **state)
{
	struct skua_cmd_create_qp_in qp;
	struct skua_srqc srq;
	struct mini_qp dummy;
	struct mini *m;
	struct xrc x;

	(void)state;
	xrc_open(&x, &plain);
	m = &x.rc.s[1].m;
#define refuse_srq(status, change) do { x.srq[0].srqn = 20;				\
		srq = srqc_in(&x.srq[0], PD(0), MINI_XRCD); change;			\
		assert_int_equal(mini_cmd(m, SKUA_CMD_CREATE_SRQ, &srq, sizeof(srq), NULL, 0),	\
				 SKUA_CMD_ST_##status); } while (0)
	refuse_srq(BAD_PARAM, srq.xrcd = 0);
	refuse_srq(BAD_INDEX, srq.cqn = cpu_to_le32(77));
	m->f->dev->caps &= ~SKUA_CAP_XRC;
	refuse_srq(BAD_PARAM, );
	m->f->dev->caps |= SKUA_CAP_XRC;
	refuse_srq(OK, );
	x.srq[0].srqn = 10;
	/* Its CQ stays as long as it does. */
	assert_int_equal(mini_index(m, SKUA_CMD_DESTROY_CQ, x.srq[1].cq.cqn, NULL, 0),
			 SKUA_CMD_ST_BUSY);
	assert_int_equal(mini_index(m, SKUA_CMD_DESTROY_SRQ, x.srq[1].srqn, NULL, 0), 0);
	assert_int_equal(mini_index(m, SKUA_CMD_DESTROY_CQ, x.srq[1].cq.cqn, NULL, 0), 0);
#define refuse_qp(type, change) do { qp = mini_qp_in(m, &dummy, type, &x.rc.s[1].scq,		\
		&x.rc.s[1].rcq, 3, 3, 0); change;						\
		assert_int_equal(mini_cmd(m, SKUA_CMD_CREATE_QP, &qp, sizeof(qp), NULL, 0),	\
				 SKUA_CMD_ST_BAD_PARAM); } while (0)
	refuse_qp(SKUA_QP_RC, qp.rq.xrcd = cpu_to_le32(MINI_XRCD));
	refuse_qp(SKUA_QP_XRC_INI, qp.rq.xrcd = cpu_to_le32(MINI_XRCD));
	refuse_qp(SKUA_QP_XRC_INI, qp.sq.flags &= ~cpu_to_le32(SKUA_QP_F_NO_RQ));
	refuse_qp(SKUA_QP_XRC_INI, qp.rq.cqn = cpu_to_le32(x.rc.s[1].rcq.cqn));
	refuse_qp(SKUA_QP_XRC_TGT, qp.rq.xrcd = 0);
	refuse_qp(SKUA_QP_XRC_TGT, qp.sq.pd = cpu_to_le32(MINI_PD));
	refuse_qp(SKUA_QP_XRC_TGT, qp.sq.flags &= ~cpu_to_le32(SKUA_QP_F_NO_SQ));
	refuse_qp(SKUA_QP_XRC_TGT, qp.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ));
	/* An XRC SRQ is none that a QP of another kind receives from. */
	refuse_qp(SKUA_QP_RC, {
		qp.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ);
		memset(&qp.rq, 0, sizeof(qp.rq));
		qp.rq.cqn = cpu_to_le32(x.rc.s[1].rcq.cqn);
		qp.rq.srqn = cpu_to_le32(x.srq[0].srqn);
	});
	rc_close(&x.rc);
}

/* An SRQ that goes before a READ of it was answered. */
static void test_srq_gone(void **state)
{
	struct rc_side *s;
	struct xrc x;

	(void)state;
	xrc_open(&x, &(struct rc_opt){ .mtu_code = 1 });
	s = &x.rc.s[1];
	xrc_post(&x, SKUA_WQE_READ, x.srq[0].srqn, 1000, 0, x.srq[0].key);
	rc_expect(&x.rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(mini_index(&s->m, SKUA_CMD_DESTROY_SRQ, x.srq[0].srqn, NULL, 0), 0);
	xrc_post(&x, SKUA_WQE_READ, x.srq[0].srqn, 1000, 0, x.srq[0].key);
	rc_expect(&x.rc, 0, false, SKUA_CQE_REM_INV_REQ_ERR);
	rc_close(&x.rc);
}

/* An SRQ of domain @xrcd in place of the one with number @k, a WQE in it. */
static void replace_srq(struct xrc *x, int k, uint32_t xrcd)
{
	struct mini *m = &x->rc.s[1].m;
	struct skua_srqc in;

	assert_int_equal(mini_index(m, SKUA_CMD_DESTROY_SRQ, x->srq[k].srqn, NULL, 0), 0);
	x->srq[k].pi = 0;
	mini_cq_create(m, &x->srq[k].cq, 6);
	in = srqc_in(&x->srq[k], PD(k), xrcd);
	mini_ok(m, SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
	srq_post(x, k, 50000, 10000);
}

/*
 * An SRQ goes amid a message, and another one gets its number: that one's WQEs and
 * CQ have nothing to do with the message.
 */
static void test_srq_replaced(void **state)
{
	static const struct {
		const char *name;
		uint32_t xrcd;
		enum skua_qp_state to;	/* RTS: the message goes on */
	} cases[] = {
		{ "same domain, message goes on", MINI_XRCD, SKUA_QP_RTS },
		{ "other domain, message goes on", MINI_XRCD + 1, SKUA_QP_RTS },
		{ "same domain, QP to ERR", MINI_XRCD, SKUA_QP_ERR },
		{ "other domain, QP to ERR", MINI_XRCD + 1, SKUA_QP_ERR },
		{ "same domain, QP to RESET", MINI_XRCD, SKUA_QP_RESET },
		{ "other domain, QP to RESET", MINI_XRCD + 1, SKUA_QP_RESET },
	};
	struct skua_cqe cqe;
	struct xrc x;

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct rc_side *s = &x.rc.s[1];

		print_message("%s\n", cases[i].name);
		xrc_open(&x, &plain);
		srq_post(&x, 0, 0, 10000);
		inject(&x, IB_OPCODE(XRC, SEND_FIRST), 0, 0, 4096);
		replace_srq(&x, 0, cases[i].xrcd);
		if (cases[i].to == SKUA_QP_RTS) {
			inject(&x, IB_OPCODE(XRC, SEND_LAST), 1, 0, 10);
			rc_expect_event(&x.rc, 1, SKUA_QP_EV_REQ_ERR);
			rc_expect_event(&x.rc, 1, SKUA_QP_EV_LAST_WQE);
			assert_int_equal(rc_state(&x.rc, 1), SKUA_QP_ERR);
		} else {
			assert_int_equal(mini_qp_modify(&s->m, &s->qp, cases[i].to, 0, NULL), 0);
			rc_pump(&x.rc);
			if (cases[i].to == SKUA_QP_ERR)
				rc_expect_event(&x.rc, 1, SKUA_QP_EV_LAST_WQE);
		}
		rc_expect_no_event(&x.rc, 1);
		assert_false(mini_cq_next(&s->m, &x.srq[0].cq, &cqe));
		for (uint32_t k = 0; k < 10000; k++)
			assert_int_equal(s->buf[50000 + k], 0);
		rc_close(&x.rc);
	}
}

/*
 * A WQE stays taken while its message waits for a page: nobody may make it that of
 * another SRQ by naming one.
 */
static void test_srq_changes_while_waiting(void **state)
{
	uint8_t frame[5000];
	struct skua_pkt_build b;
	struct skua_cqe cqe;
	struct mini_eq eq;
	struct xrc x;

	(void)state;
	xrc_open(&x, &(struct rc_opt){ .caps = SKUA_CAP_ODP });
	odp_eq(&x, &eq);
	srq_post(&x, 0, 0, 10000);
	srq_post(&x, 1, 0, 10000);
	srq_post(&x, 1, 0, 10000);
	/* A WRITE with immediate data takes the WQE, then misses its page. */
	for (int k = 0; k < 2; k++) {
		assert_int_equal(rc_build(&x.rc, 0, &b, frame, sizeof(frame),
					  IB_OPCODE(XRC, WRITE_ONLY_IMM), 0), 0);
		ib_xrceth_put(b.xrceth, x.srq[k].srqn);
		ib_reth_put(b.reth, RC_VA, k ? x.srq[1].key : odp_region(&x, PD(0)), 8);
		rc_inject(&x.rc, 1, &b, 8);
		rc_pump(&x.rc);
	}
	rc_expect_event(&x.rc, 1, SKUA_QP_EV_REQ_ERR);
	srq_expect(&x, 0, SKUA_CQE_WR_FLUSH_ERR);
	assert_false(mini_cq_next(&x.rc.s[1].m, &x.srq[1].cq, &cqe));
	rc_close(&x.rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_srq_changes),
		cmocka_unit_test(test_srq_changes_in_write),
		cmocka_unit_test(test_direction),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_srq_gone),
		cmocka_unit_test(test_srq_replaced),
		cmocka_unit_test(test_srq_changes_while_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
