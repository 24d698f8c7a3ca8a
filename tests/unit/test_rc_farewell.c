// SPDX-License-Identifier: GPL-2.0
/*
 * A responder's QP that software takes away as soon as it has seen a message
 * complete: the peer must hear of that message, and of nothing else.
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

enum end { DESTROY, RESET, ERROR };

static void take_away(struct rc *rc, enum end end)
{
	struct rc_side *s = &rc->s[1];

	if (end == DESTROY)
		assert_int_equal(mini_index(&s->m, SKUA_CMD_DESTROY_QP, s->qp.qpn, NULL, 0), 0);
	else
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, end == RESET ? SKUA_QP_RESET :
						SKUA_QP_ERR, 0, NULL), 0);
}

/* Side 0's packets arrive; side 1 takes them, but has had no turn to answer. */
static void arrive(struct rc *rc)
{
	struct fake_frame *frame;

	fake_run(&rc->s[0].f);
	while ((frame = fake_tx(&rc->s[0].f))) {
		fake_rx(&rc->s[1].f, frame->data, frame->len);
		free(frame);
	}
	assert_int_equal(rc->s[1].f.sent, 0);
}

static const struct {
	const char *name;
	enum skua_wqe_op op;
	enum skua_qp_state state;
	enum end end;
	bool recv, heard;
} cases[] = {
	{ "SEND, destroyed", SKUA_WQE_SEND, SKUA_QP_RTS, DESTROY, true, true },
	{ "SEND, reset", SKUA_WQE_SEND, SKUA_QP_RTS, RESET, true, true },
	{ "WRITE with immediate, destroyed", SKUA_WQE_WRITE_IMM, SKUA_QP_RTS, DESTROY, true,
	  true },
	{ "WRITE, reset", SKUA_WQE_WRITE, SKUA_QP_RTS, RESET, false, true },
	{ "SEND in SQD, destroyed", SKUA_WQE_SEND, SKUA_QP_SQD, DESTROY, true, true },
	{ "SEND that found no receive", SKUA_WQE_SEND, SKUA_QP_RTS, DESTROY, false, false },
	{ "READ that was not answered yet", SKUA_WQE_READ, SKUA_QP_RTS, RESET, false, false },
	{ "SEND, to ERR", SKUA_WQE_SEND, SKUA_QP_RTS, ERROR, true, true },
	{ "SEND in SQD, to ERR", SKUA_WQE_SEND, SKUA_QP_SQD, ERROR, true, true },
	{ "READ that was not answered yet, to ERR", SKUA_WQE_READ, SKUA_QP_RTS, ERROR, false,
	  false },
};

static void test_last_ack(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(cases); k++) {
		print_message("%s\n", cases[k].name);
		rc_open(&rc, &(struct rc_opt){ .retry_cnt = 2, .timeout = 8 });
		if (cases[k].state == SKUA_QP_SQD)
			assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_SQD, 0,
							NULL), 0);
		if (cases[k].recv)
			rc_recv(&rc, 1, 0, 10000);
		rc_post(&rc, 0, &(struct rc_wr){ .op = cases[k].op, .len = 10000 });
		arrive(&rc);
		if (cases[k].recv)
			rc_expect(&rc, 1, true, SKUA_CQE_OK);
		take_away(&rc, cases[k].end);
		assert_int_equal(rc.s[1].f.sent, cases[k].heard);
		rc_pump_for(&rc, SEC);
		rc_expect(&rc, 0, false, cases[k].heard ? SKUA_CQE_OK : SKUA_CQE_RETRY_EXC_ERR);
		assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR),
				 cases[k].heard ? 0 : 2);
		rc_close(&rc);
	}
}

/* A message that has not ended is acknowledged as far as it was asked for, no further. */
static void test_unfinished(void **state)
{
	struct fake_frame *frame;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .retry_cnt = 2, .timeout = 8 });
	rc_recv(&rc, 1, 0, 1000);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 1000 });
	fake_run(&rc.s[0].f);
	for (unsigned int n = 0; n < 4; n++) {
		frame = fake_tx(&rc.s[0].f);
		if (n < 3)
			fake_rx(&rc.s[1].f, frame->data, frame->len);
		free(frame);
	}
	take_away(&rc, DESTROY);
	assert_int_equal(rc.s[1].f.sent, 0);
	rc_pump_for(&rc, SEC);
	rc_expect(&rc, 0, false, SKUA_CQE_RETRY_EXC_ERR);
	rc_close(&rc);
}

/* What a NAK that waits would have acknowledged is acknowledged. */
static void test_before_a_nak(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .retry_cnt = 2, .timeout = 8 });
	rc_recv(&rc, 1, 0, 100);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 100 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 100 });
	arrive(&rc);
	rc_expect(&rc, 1, true, SKUA_CQE_OK);
	take_away(&rc, DESTROY);
	rc_pump_for(&rc, SEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, false, SKUA_CQE_RETRY_EXC_ERR);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_ack),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_before_a_nak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
