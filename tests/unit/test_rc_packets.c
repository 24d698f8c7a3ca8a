// SPDX-License-Identifier: GPL-2.0
/*
 * RC, packet by packet: what the requester puts into the packets of a message and how far
 * it goes ahead, what late and repeated answers cost it, and what one queue pair may take
 * from others in a turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc_keys.h"
#include "roce/engine.h"

#define SEC	1000000000ull
#define O(op)	IB_OPCODE(RC, op)

/* --- what leaves --- */

/* Frames of one side, not carried to the other while @stop. */
struct tap {
	bool stop;
	unsigned int num;
	struct {
		uint32_t psn, dqpn;
		uint8_t opcode, syndrome;
		bool se, ackreq;
	} at[512];
};

static bool tap(void *priv, struct fake_frame *frame)
{
	struct tap *x = priv;
	struct skua_pkt pkt;

	assert_int_equal(skua_pkt_parse(frame->data, frame->len, &pkt), SKUA_PKT_OK);
	assert_true(x->num < 512);
	x->at[x->num].psn = pkt.psn;
	x->at[x->num].dqpn = pkt.dqpn;
	x->at[x->num].opcode = pkt.opcode;
	x->at[x->num].syndrome = pkt.aeth ? pkt.aeth->syndrome : 0xff;
	x->at[x->num].se = pkt.se;
	x->at[x->num++].ackreq = pkt.ackreq;
	return !x->stop;
}

static void set_tap(struct rc *rc, int i, struct tap *x)
{
	rc->s[i].f.filter = tap;
	rc->s[i].f.filter_priv = x;
}

/* C9-9: SE in the last packet only, and only if the request wants an event. */
static void test_solicited_last(void **state)
{
	static const struct {
		enum skua_wqe_op op;
		uint32_t flags;
		bool se;
	} kinds[] = {
		{ SKUA_WQE_SEND, SKUA_WQE_F_SOLICITED, true },
		{ SKUA_WQE_SEND, 0, false },
		{ SKUA_WQE_SEND_IMM, SKUA_WQE_F_SOLICITED, true },
		{ SKUA_WQE_WRITE_IMM, SKUA_WQE_F_SOLICITED, true },
		{ SKUA_WQE_WRITE, SKUA_WQE_F_SOLICITED, false },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		struct skua_cqe cqe;
		struct tap x = { 0 };
		struct rc rc;

		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
		set_tap(&rc, 0, &x);
		rc_recv(&rc, 1, 0, 4096);
		rc_post(&rc, 0, &(struct rc_wr){ .op = kinds[k].op, .flags = kinds[k].flags,
						 .len = 1000 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(x.num, 4);
		for (unsigned int n = 0; n < 4; n++) {
			assert_int_equal(x.at[n].se, n == 3 && kinds[k].se);
			assert_int_equal(x.at[n].ackreq, n == 3);
		}
		if (kinds[k].op != SKUA_WQE_WRITE) {
			cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
			assert_int_equal(!!(le32_to_cpu(cqe.own) & SKUA_CQE_F_SOLICITED),
					 kinds[k].se);
		}
		rc_close(&rc);
	}
}

/* Nothing acknowledged: the window's packets and no more, and an ACK is asked for. */
static void test_window(void **state)
{
	struct tap x = { .stop = true };
	bool asked = false;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	set_tap(&rc, 0, &x);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
	rc_pump(&rc);
	assert_int_equal(x.num, ENGINE_WINDOW);
	for (unsigned int n = 0; n < x.num; n++) {
		assert_int_equal(x.at[n].psn, n);
		asked |= x.at[n].ackreq;
	}
	assert_true(asked && x.at[x.num - 1].ackreq);
	rc_close(&rc);
}

/* WQEs of @len bytes of two QPs: the first sends @wqes of them, then the other one. */
static void take_turns(const struct skua_cmd_modify_device_in *set, uint32_t len,
		       unsigned int wqes)
{
	struct tap x = { .stop = true };
	struct mini_qp qp[2];
	unsigned int n = 0;
	struct rc rc;

	rc_open(&rc, NULL);
	if (set->mask)
		mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_DEVICE, set, sizeof(*set));
	second(&rc, qp);
	set_tap(&rc, 0, &x);
	for (unsigned int k = 0; k < 32; k++) {
		const struct rc_wr wr = { .op = SKUA_WQE_WRITE, .len = len };

		rc_post_quiet(&rc, 0, &rc.s[0].qp, &wr);
		rc_post_quiet(&rc, 0, &qp[0], &wr);
	}
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	mini_ring(&rc.s[0].m, &qp[0]);
	rc_pump(&rc);
	assert_int_equal(x.num, 64);
	while (n < 64 && x.at[n].dqpn == rc.s[1].qp.qpn)
		n++;
	assert_int_equal(n, wqes);
	while (n < 64 && x.at[n].dqpn == qp[1].qpn)
		n++;
	assert_int_equal(n, 2 * wqes);
	rc_close(&rc);
}

/* A queue pair with many WQEs gives way to another after some of them, or some bytes. */
static void test_turns(void **state)
{
	(void)state;
	take_turns(&(struct skua_cmd_modify_device_in){ 0 }, 8, MODEL_TURN_WQES);
	take_turns(&(struct skua_cmd_modify_device_in){
		.mask = cpu_to_le32(SKUA_DEV_M_TURN_WQES), .turn_wqes = cpu_to_le32(1) }, 8, 1);
	take_turns(&(struct skua_cmd_modify_device_in){
		.mask = cpu_to_le32(SKUA_DEV_M_TURN_WQES), .turn_wqes = cpu_to_le32(13) }, 8, 13);
	/* The packet that reaches the limit is the last one. */
	take_turns(&(struct skua_cmd_modify_device_in){
		.mask = cpu_to_le32(SKUA_DEV_M_TURN_BYTES), .turn_bytes = cpu_to_le32(3000) },
		   1000, 3);
}

/* --- answers --- */

static void forge_aeth(struct rc *rc, uint32_t psn, uint8_t syndrome)
{
	uint8_t frame[SKUA_PKT_OVERHEAD];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), O(ACK), psn), 0);
	ib_aeth_put(b.aeth, syndrome, 0);
	rc_inject(rc, 0, &b, 0);
}

/* The NAKs of one loss, however many, cost one retry. */
static void test_one_loss_one_retry(void **state)
{
	struct tap x = { .stop = true };
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .retry_cnt = 4 });
	set_tap(&rc, 0, &x);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1000 });
	rc_pump(&rc);
	assert_int_equal(x.num, 4);
	for (unsigned int n = 0; n < 6; n++) {
		struct skua_cmd_query_qp_out q;

		forge_aeth(&rc, 1, IB_AETH_NAK | IB_NAK_PSN_SEQUENCE);
		rc_pump(&rc);
		q = rc_query(&rc, 0);
		assert_int_equal(q.sqc.retry_left, 2);
		assert_int_equal(le32_to_cpu(q.sqc.una_psn), 1);
	}
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_PACKET_SEQ_ERR), 6);
	assert_int_equal(x.num, 4 + 3);
	/* It got through, what follows is another loss. */
	forge_aeth(&rc, 1, IB_AETH_ACK | IB_AETH_CREDIT_INVALID);
	forge_aeth(&rc, 2, IB_AETH_NAK | IB_NAK_PSN_SEQUENCE);
	assert_int_equal(rc_query(&rc, 0).sqc.retry_left, 2);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_RTS);
	rc_close(&rc);
}

/* An RNR NAK that comes again while its time runs is the same one. */
static void test_one_rnr_nak(void **state)
{
	struct tap x = { .stop = true };
	struct skua_cmd_query_qp_out q;
	uint64_t until;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .rnr_retry = 4, .timeout = 31 });
	set_tap(&rc, 0, &x);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 8 });
	rc_pump(&rc);
	forge_aeth(&rc, 0, IB_AETH_RNR_NAK | 20);
	q = rc_query(&rc, 0);
	assert_int_equal(q.sqc.rnr_left, 2);
	until = le64_to_cpu(q.sqc.rnr_deadline);
	assert_int_equal(until, rc.s[0].f.now + 10240000);
	for (unsigned int n = 0; n < 5; n++) {
		rc_pump_for(&rc, 1000000);
		forge_aeth(&rc, 0, IB_AETH_RNR_NAK | 20);
	}
	q = rc_query(&rc, 0);
	assert_int_equal(q.sqc.rnr_left, 2);
	assert_int_equal(le64_to_cpu(q.sqc.rnr_deadline), until);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RNR_NAK_RETRY_ERR), 1);
	/* At its end the message goes again. */
	assert_int_equal(x.num, 1);
	rc_pump_for(&rc, 5240000 + 1);
	assert_int_equal(x.num, 2);
	rc_close(&rc);
}

/* --- SQD --- */

/* The queue is drained when the last message is acknowledged, not when it is sent. */
static void test_drained_when_acknowledged(void **state)
{
	struct tap x = { .stop = true };
	struct rc_side *s;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	s = &rc.s[0];
	set_tap(&rc, 1, &x);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	rc_pump(&rc);
	assert_int_equal(x.num, 1);
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_SQD, SKUA_QP_M_SQD_NOTIFY, NULL),
			 0);
	rc_pump(&rc);
	rc_expect_no_event(&rc, 0);
	/* Until then the path is in use. */
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_SQD, SKUA_QP_M_AV, &s->attr),
			 SKUA_CMD_ST_BAD_STATE);
	x.stop = false;
	rc_pump_for(&rc, SEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_event(&rc, 0, SKUA_QP_EV_SQ_DRAINED);
	rc_expect_no_event(&rc, 0);
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_SQD, SKUA_QP_M_AV, &s->attr), 0);
	rc_close(&rc);
}

/* --- whose packets are taken --- */

/* For another address of the device, or from another VLAN: not from the QP's peer. */
static void test_other_path(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		uint8_t frame[SKUA_PKT_OVERHEAD + 64];
		struct skua_pkt_build b;
		struct skua_pkt_addr a;
		struct skua_pkt_bth bth;
		struct rc rc;

		rc_open(&rc, NULL);
		assert_int_equal(mini_gid(&rc.s[1].m, 1, 3, false, SKUA_GID_NO_VLAN), 0);
		assert_int_equal(mini_gid(&rc.s[1].m, 2, 2, false, 5), 0);
		a = rc_addr(&rc, 0);
		if (k == 1)
			a.dgid[15] = 3;
		if (k == 2) {
			a.vlan = true;
			a.tci = 5;
		}
		bth = (struct skua_pkt_bth){ .opcode = O(WRITE_ONLY), .pkey = IB_PKEY_DEFAULT,
					     .dqpn = rc.s[1].qp.qpn };
		assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
		ib_reth_put(b.reth, RC_VA, rc.s[1].key, 8);
		memset(b.payload, 0x66, 8);
		rc_inject(&rc, 1, &b, 8);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_PEER), !!k);
		assert_int_equal(rc.s[1].buf[0], k ? 0 : 0x66);
		rc_close(&rc);
	}
}

/* --- the last bytes of a region --- */

/* An atomic reaches over eight bytes, and all of them are the region's. */
static void test_atomic_at_end(void **state)
{
	for (unsigned int len = 8; len <= 16; len++) {
		struct rc_wr wr = { .op = SKUA_WQE_FAA, .len = 8, .roff = 8,
				    .atomic[0].swap_add = 0x0101010101010101 };
		struct rc rc;

		(void)state;
		rc_open(&rc, NULL);
		wr.rkey = mini_mr(&rc.s[1].m, RC_VA, rc.s[1].bus, len,
				  SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_ATOMIC);
		rc_post(&rc, 0, &wr);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, len == 16 ? SKUA_CQE_OK : SKUA_CQE_REM_ACCESS_ERR);
		assert_int_equal(rc.s[1].buf[8], len == 16);
		rc_close(&rc);
	}
}

/* A window over a region that ICM says is shorter now: the region's bounds hold too. */
static void test_window_over_short_region(void **state)
{
	struct skua_mpt *mpt;
	struct bind b = { .access = SKUA_ACCESS_REMOTE_WRITE, .len = 65536 };
	struct skua_dev *dev;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	dev = rc.s[1].f.dev;
	b.mr = region(&rc, 1, MINI_PD, RIGHTS | SKUA_ACCESS_MW_BIND);
	b.mw = window(&rc, 1, SKUA_MPT_MW1, MINI_PD);
	b.new_key = b.mw + 1;
	post_bind(&rc, 1, &b);
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	expect_write(&rc, b.new_key, 8192, SKUA_CQE_OK);
	mpt = ctx_get(dev, SKUA_ICM_MPT, b.mr >> 8);
	mpt->len = cpu_to_le64(8192);
	ctx_put(dev, mpt);
	expect_write(&rc, b.new_key, 8184, SKUA_CQE_OK);
	memset(rc.s[1].buf + 8192, 0x5a, 8);
	expect_write(&rc, b.new_key, 8192, SKUA_CQE_REM_ACCESS_ERR);
	assert_int_equal(rc.s[1].buf[8192], 0x5a);
	rc_close(&rc);
}

/* --- flushing --- */

/*
 * A ring full of nonsense: passed over in turns, and no receive is reported before all
 * that was sent is.
 */
static void test_flush_in_turns(void **state)
{
	const struct rc_opt opt = { .log_sq = 13 };
	struct skua_sqc *sqc;
	struct rc_side *s;
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	s = &rc.s[0];
	rc_recv(&rc, 0, 0, 64);
	assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_ERR, 0, NULL), 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, true, SKUA_CQE_WR_FLUSH_ERR);
	s->qp.sq_pi = 8191;
	rc_post_quiet(&rc, 0, &s->qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	rc_recv(&rc, 0, 0, 64);
	mini_ring(&s->m, &s->qp);
	assert_true(skua_dev_run(s->f.dev));
	rc_expect_none(&rc, 0, true);
	rc_expect_none(&rc, 0, false);
	sqc = ctx_get(s->f.dev, SKUA_ICM_SQC, qp_index(s->qp.qpn));
	assert_in_range(le32_to_cpu(sqc->ci), 1, 4096);
	ctx_put(s->f.dev, sqc);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect(&rc, 0, true, SKUA_CQE_WR_FLUSH_ERR);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_solicited_last),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_one_loss_one_retry),
		cmocka_unit_test(test_one_rnr_nak),
		cmocka_unit_test(test_drained_when_acknowledged),
		cmocka_unit_test(test_other_path),
		cmocka_unit_test(test_atomic_at_end),
		cmocka_unit_test(test_window_over_short_region),
		cmocka_unit_test(test_flush_in_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
