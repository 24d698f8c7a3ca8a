/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections of rc.h that receive from SRQs: of RC on both sides, or of XRC from side 0 to
 * side 1.
 */
#ifndef SKUA_TEST_RC_SRQ_H
#define SKUA_TEST_RC_SRQ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <skua/wqe_build.h>

#include "rc.h"

#define RC_SRQ_SEGS	2

/**
 * struct rc_srq - an SRQ of the PD of all
 * @rc: the connection
 * @i: its side
 * @srqn: its number
 * @log: log2 of its WQEs
 * @ring: bus address
 * @dbr: bus address of the record
 * @pi: WQEs posted
 */
struct rc_srq {
	struct rc *rc;
	int i;
	uint32_t srqn;
	uint32_t log;
	uint64_t ring, dbr;
	uint32_t pi;
};

/* Completions of XRC's go to the side's CQ of receives. */
static inline void rc_srq_make(struct rc_srq *q, struct rc *rc, int i, uint32_t srqn,
			       uint32_t log, bool xrc)
{
	struct mini *m = &rc->s[i].m;
	struct skua_srqc in;

	*q = (struct rc_srq){ .rc = rc, .i = i, .srqn = srqn, .log = log };
	q->ring = fake_alloc(m->f, RC_SRQ_SEGS * SKUA_WQE_SEG << log, 4096);
	q->dbr = fake_alloc(m->f, sizeof(struct skua_srq_dbr), SKUA_DBR_ALIGN);
	in = (struct skua_srqc){
		.flags = le32_encode_bits(log, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(1, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(MINI_PD),
		.xrcd = cpu_to_le32(xrc ? MINI_XRCD : 0),
		.cqn = cpu_to_le32(xrc ? rc->s[i].rcq.cqn : 0),
		.srqn = cpu_to_le32(srqn),
		.ring.base = cpu_to_le64(q->ring),
		.dbr = cpu_to_le64(q->dbr),
	};
	mini_ok(m, SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
}

/* One after the other round the ring. */
static inline void rc_srq_post(struct rc_srq *q, uint64_t off, uint32_t len)
{
	struct rc_side *s = &q->rc->s[q->i];
	uint32_t mask = (1u << q->log) - 1;
	uint8_t *wqe = fake_ptr(&s->f, q->ring + (q->pi & mask) * RC_SRQ_SEGS * SKUA_WQE_SEG);
	struct skua_srq_dbr *dbr = fake_ptr(&s->f, q->dbr);

	skua_srq_next_set((void *)wqe, (q->pi + 1) & mask);
	skua_wqe_data_set((void *)(wqe + SKUA_WQE_SEG), RC_VA + off, s->key, len);
	dbr->pi = cpu_to_le32(++q->pi);
}

/* WQEs that the device has not taken. */
static inline uint32_t rc_srq_left(struct rc_srq *q)
{
	struct skua_srqc c;

	assert_int_equal(mini_index(&q->rc->s[q->i].m, SKUA_CMD_QUERY_SRQ, q->srqn, &c,
				    sizeof(c)), 0);
	return q->pi - le32_to_cpu(c.ci);
}

/* Side @i's QP, in RESET, receives from it. */
static inline void rc_srq_qp(struct rc_srq *q, struct mini_qp *qp, uint32_t log_sq)
{
	struct rc_side *s = &q->rc->s[q->i];
	struct skua_cmd_create_qp_in in = mini_qp_in(&s->m, qp, SKUA_QP_RC, &s->scq, &s->rcq,
						     log_sq, 0, 0);

	in.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ);
	memset(&in.rq.ring, 0, sizeof(in.rq.ring));
	in.rq.srqn = cpu_to_le32(q->srqn);
	qp->shared = true;
	mini_ok(&s->m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
}

static inline void rc_srq_connect(struct rc *rc, const struct rc_opt *opt, struct mini_qp *a,
				  struct mini_qp *b)
{
	rc->s[0].attr = rc_attr(rc, 0, opt, b->qpn);
	rc->s[1].attr = rc_attr(rc, 1, opt, a->qpn);
	mini_rc_to_rts(&rc->s[0].m, a, &rc->s[0].attr);
	mini_rc_to_rts(&rc->s[1].m, b, &rc->s[1].attr);
}

/* Both of an XRC pair from RESET to RTS. */
static inline void rc_xrc_rts(struct rc *rc, const struct rc_opt *opt)
{
	for (int i = 0; i < 2; i++) {
		struct rc_side *s = &rc->s[i];
		uint32_t rtr = SKUA_QP_M_AV | SKUA_QP_M_PATH_MTU | SKUA_QP_M_DEST_QPN |
			       SKUA_QP_M_RQ_PSN;
		uint32_t rts = SKUA_QP_M_ACK_TIMEOUT | SKUA_QP_M_SQ_PSN;

		if (i)
			rtr |= SKUA_QP_M_MAX_DEST_RD_ATOMIC | SKUA_QP_M_MIN_RNR_TIMER;
		else
			rts |= SKUA_QP_M_RETRY_CNT | SKUA_QP_M_RNR_RETRY | SKUA_QP_M_MAX_RD_ATOMIC;
		s->attr = rc_attr(rc, i, opt, rc->s[1 - i].qp.qpn);
		if (s->attr.ext)
			rtr |= SKUA_QP_M_EXT;
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_INIT, SKUA_QP_M_PKEY |
						SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &s->attr), 0);
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RTR, rtr, &s->attr), 0);
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RTS, rts, &s->attr), 0);
	}
}

/* An initiator on side 0, a target on side 1, in RTS. */
static inline void rc_xrc_up(struct rc *rc, const struct rc_opt *opt)
{
	mini_qp_create(&rc->s[0].m, &rc->s[0].qp, SKUA_QP_XRC_INI, &rc->s[0].scq,
		       &rc->s[0].rcq, opt->log_sq, 0, 0);
	mini_qp_create(&rc->s[1].m, &rc->s[1].qp, SKUA_QP_XRC_TGT, &rc->s[1].scq,
		       &rc->s[1].rcq, 0, 0, 0);
	rc_xrc_rts(rc, opt);
}

#endif /* SKUA_TEST_RC_SRQ_H */
