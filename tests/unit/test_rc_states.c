// SPDX-License-Identifier: GPL-2.0
/*
 * RC and the states of its QPs: what each hears, how the send queue drains, what ERR
 * flushes, and that RESET forgets.
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
#define SEC	1000000000ull
#define O(op)	IB_OPCODE(RC, op)

static const struct {
	enum skua_qp_state state;
	bool request, response;		/* taken */
} hearing[] = {
	{ SKUA_QP_RESET, false, false },
	{ SKUA_QP_INIT, false, false },
	{ SKUA_QP_RTR, true, false },
	{ SKUA_QP_RTS, true, true },
	{ SKUA_QP_SQD, true, true },
	{ SKUA_QP_ERR, false, false },
};

static void to_state(struct rc *rc, int i, enum skua_qp_state state)
{
	struct rc_side *s = &rc->s[i];

	if (state == SKUA_QP_RESET)
		return;
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_INIT, SKUA_QP_M_PKEY |
					SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &s->attr), 0);
	if (state == SKUA_QP_INIT)
		return;
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RTR, SKUA_QP_M_AV |
					SKUA_QP_M_PATH_MTU | SKUA_QP_M_DEST_QPN |
					SKUA_QP_M_RQ_PSN | SKUA_QP_M_MAX_DEST_RD_ATOMIC |
					SKUA_QP_M_MIN_RNR_TIMER, &s->attr), 0);
	if (state == SKUA_QP_RTR)
		return;
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RTS, SKUA_QP_M_ACK_TIMEOUT |
					SKUA_QP_M_RETRY_CNT | SKUA_QP_M_RNR_RETRY |
					SKUA_QP_M_SQ_PSN | SKUA_QP_M_MAX_RD_ATOMIC, &s->attr), 0);
	if (state != SKUA_QP_RTS)
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, state, 0, NULL), 0);
}

static void test_states_hear(void **state)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(hearing); k++) {
		rc_open(&rc, &(struct rc_opt){ .down = true });
		to_state(&rc, 1, hearing[k].state);
		rc_forge(&rc, &(struct rc_forged){ O(WRITE_ONLY), 8, 8 }, 0);
		fake_run(&rc.s[1].f);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), hearing[k].request);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_STATE), !hearing[k].request);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_ACK), hearing[k].request);
		assert_int_equal(rc.s[1].buf[0], hearing[k].request ? 0x77 : 0);
		rc_build(&rc, 0, &b, frame, sizeof(frame), O(ACK), 3);
		rc_inject(&rc, 1, &b, 0);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_STATE),
				 !hearing[k].request + !hearing[k].response);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_RESP), hearing[k].response);
		rc_close(&rc);
	}
}

/* Requests posted in INIT and RTR wait for RTS. */
static void test_states_post_early(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .down = true });
	to_state(&rc, 1, SKUA_QP_RTS);
	to_state(&rc, 0, SKUA_QP_RTR);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	rc_pump(&rc);
	rc_expect_none(&rc, 0, false);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS,
					SKUA_QP_M_ACK_TIMEOUT | SKUA_QP_M_RETRY_CNT |
					SKUA_QP_M_RNR_RETRY | SKUA_QP_M_SQ_PSN |
					SKUA_QP_M_MAX_RD_ATOMIC, &rc.s[0].attr), 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

static void test_sqd(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_fill(rc.s[0].buf, 1 << 20, 1);
	/* So much that it is not sent at once. */
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 100, .roff = 2 << 20 });
	skua_dev_run(rc.s[0].f.dev);
	rc_drain(&rc, 0);
	rc_expect_no_event(&rc, 0);
	rc_pump(&rc);
	/* What was begun is finished, the second one is not begun. */
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	rc_check(rc.s[1].buf, 1 << 20, 1);
	assert_int_equal(rc.s[1].buf[2 << 20], 0);
	rc_expect_event(&rc, 0, SKUA_QP_EV_SQ_DRAINED);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_SQD);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[1].buf + (2 << 20), 100, 1);
	rc_expect_no_event(&rc, 0);
	/* An idle queue is drained at once. */
	rc_drain(&rc, 0);
	rc_pump(&rc);
	rc_expect_event(&rc, 0, SKUA_QP_EV_SQ_DRAINED);
	rc_close(&rc);
}

/* The queue drains with its last acknowledgment, behind which there is nothing to send. */
static void test_sqd_last(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
	skua_dev_run(rc.s[0].f.dev);
	rc_drain(&rc, 0);
	rc_expect_no_event(&rc, 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_event(&rc, 0, SKUA_QP_EV_SQ_DRAINED);
	rc_close(&rc);
}

/* By command: send queue first, then receives, all in order, also what comes later. */
static void test_flush(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	for (unsigned int k = 0; k < 30; k++) {
		rc_recv(&rc, 0, 0, 100);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_SEND,
			      .len = 100, .quiet = k & 1, .nsge = k % 10,
			      .sge[0] = { RC_VA, rc.s[0].key, 100 } });
	}
	/* Nobody is there to receive: RNR. */
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
	rc_pump_for(&rc, SEC);
	for (unsigned int k = 0, index = 0; k < 30; k++) {
		cqe = rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(skua_cqe_wqe_index(&cqe), index);
		index += (2 * 16 + (k % 10 ? k % 10 - 1 : 0) * 16 + 63) / 64;
	}
	for (unsigned int k = 0; k < 30; k++) {
		cqe = rc_expect(&rc, 0, true, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(skua_cqe_wqe_index(&cqe), k);
	}
	rc_expect_none(&rc, 0, false);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 100 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	/* A receive has no doorbell: the send queue's is repeated. */
	rc_recv(&rc, 0, 0, 100);
	rc_pump(&rc);
	rc_expect_none(&rc, 0, true);
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	rc_expect(&rc, 0, true, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect_none(&rc, 0, true);
	rc_close(&rc);
}

/* A WQE is flushed once, though its data, in the ring, may look like more WQEs. */
static void test_flush_data(void **state)
{
	struct skua_wqe_ctrl ctrl = {
		.op = le32_encode_bits(SKUA_WQE_SEND, SKUA_WQE_OPCODE) |
		      le32_encode_bits(1, SKUA_WQE_INDEX) | le32_encode_bits(2, SKUA_WQE_NSEG),
		.flags = cpu_to_le32(SKUA_WQE_F_SIGNALED),
	};
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_SEND, .nsge = 8 });
	memcpy((uint8_t *)fake_ptr(&rc.s[0].f, rc.s[0].qp.sq) + SKUA_WQE_BLOCK, &ctrl, sizeof(ctrl));
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(skua_cqe_wqe_index(&cqe), 0);
	rc_expect_none(&rc, 0, false);
	rc_close(&rc);
}

/* Receives are flushed by parts, so that one QP does not stop the others. */
static void test_flush_parts(void **state)
{
	const unsigned int num = 1024;
	unsigned int done = 0;
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .log_rq = 10, .log_cq = 11 });
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
	for (unsigned int k = 0; k < num; k++)
		rc_recv(&rc, 0, 0, 100);
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	for (unsigned int before = done; done < num; before = done) {
		skua_dev_run(rc.s[0].f.dev);
		while (mini_cq_next(&rc.s[0].m, &rc.s[0].rcq, &cqe))
			done++;
		assert_in_range(done - before, 1, num / 4);
	}
	rc_close(&rc);
}

/* From RESET the QP lives again, and its former life is forgotten. */
static void test_reset(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	for (unsigned int life = 0; life < 5; life++) {
		rc_recv(&rc, 1, 0, 5000);
		rc_fill(rc.s[0].buf, 5000, life);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 5000 - life });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 5000, .off = 10000 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
		rc_check(rc.s[1].buf, 5000 - life, life);
		rc_check(rc.s[0].buf + 10000, 5000 - life, life);
		/* It ends in the midst of things. */
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
		skua_dev_run(rc.s[0].f.dev);
		rc_reset(&rc);
		rc_pump_for(&rc, SEC);
		rc_expect_none(&rc, 0, false);
		for (int i = 0; i < 2; i++)
			mini_rc_to_rts(&rc.s[i].m, &rc.s[i].qp, &rc.s[i].attr);
	}
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states_hear),
		cmocka_unit_test(test_states_post_early),
		cmocka_unit_test(test_sqd), cmocka_unit_test(test_sqd_last),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_flush_data),
		cmocka_unit_test(test_flush_parts),
		cmocka_unit_test(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
