// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion control: who is told of marks and how often, that a QP which nobody holds back does
 * what it does without, and what becomes of queues that are held back and lose much.
 */
#include "cc_test.h"

/* --- parameters --- */

static const struct {
	uint32_t min, max, dflt;
} all[] = {
#define X(name, user, min, max, dflt, text) { min, max, dflt },
	SKUA_CC_PARAM_TABLE(X)
#undef X
};

static void are_default(struct rig *r)
{
	struct skua_cmd_query_cc_out out;

	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_CC, NULL, 0, &out, sizeof(out)), OK);
	for (uint32_t i = 0; i < N(all); i++)
		assert_int_equal(le32_to_cpu(out.value[i]), all[i].dflt);
}

static void parameters(void **rig)
{
	struct rig *r = *rig;
	struct skua_cmd_init_device_in init;
	struct skua_cmd_query_cc_out out;

	for (uint32_t i = 0; i < N(all); i++) {
		assert_true(all[i].min <= all[i].dflt && all[i].dflt <= all[i].max);
		assert_status(set_param(&r->m, i, all[i].max), OK);
		if (all[i].min)
			assert_status(set_param(&r->m, i, all[i].min - 1), BAD_PARAM);
		assert_status(set_param(&r->m, i, all[i].max + 1), BAD_PARAM);
		assert_status(set_param(&r->m, i, UINT32_MAX), BAD_PARAM);
	}
	assert_status(set_param(&r->m, SKUA_CC_PARAMS, 0), BAD_PARAM);
	assert_status(set_param(&r->m, UINT32_MAX, 0), BAD_PARAM);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_CC, NULL, 0, &out, sizeof(out)), OK);
	assert_int_equal(le32_to_cpu(out.count), SKUA_CC_PARAMS);
	for (uint32_t i = 0; i < SKUA_CC_PARAMS_MAX; i++)
		assert_int_equal(le32_to_cpu(out.value[i]), i < N(all) ? all[i].max : 0);

	/* A device without the window has one algorithm less; one without CNPs, none. */
	r->f.dev->caps &= ~SKUA_CAP_CC_DELAY;
	assert_status(set_param(&r->m, SKUA_CC_RP_ALGORITHM, SKUA_CC_DELAY), BAD_PARAM);
	assert_status(set_param(&r->m, SKUA_CC_RP_ALGORITHM, SKUA_CC_DCQCN), OK);
	r->f.dev->caps &= ~SKUA_CAP_DCQCN;
	assert_status(set_param(&r->m, SKUA_CC_RP_ALGORITHM, SKUA_CC_NONE), BAD_OPCODE);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_CC, NULL, 0, &out, sizeof(out)), BAD_OPCODE);
	r->f.dev->caps |= SKUA_CAP_CC_DELAY | SKUA_CAP_DCQCN;

	dev_hw_reset(r->f.dev);
	mini_up(&r->m, &r->f);
	are_default(r);
	assert_status(set_param(&r->m, 0, all[0].max), OK);
	mini_ok(&r->m, SKUA_CMD_TEARDOWN_DEVICE, NULL, 0);
	mini_init_in(&r->m, &init);
	mini_ok(&r->m, SKUA_CMD_INIT_DEVICE, &init, sizeof(init));
	are_default(r);
}

/* --- notification point --- */

static void a_mark_is_answered(void **rig)
{
	struct rc_opt opt = { .vlan = 7 };
	struct wire_look w[2];
	struct skua_pkt pkt;
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_NONE, 0, w);
	SET(&rc, 1, NP_CNP_DSCP, 33);
	SET(&rc, 1, NP_CNP_PRIO, 5);
	write_done(&rc, 0, 5000);
	assert_int_equal(w[1].cnps, 0);
	w[0].mark = 1;
	write_done(&rc, 0, 64);
	assert_int_equal(w[1].cnps, 1);
	assert_int_equal(skua_pkt_parse_ip(w[1].cnp.data, w[1].cnp.len, &pkt), SKUA_PKT_OK);
	assert_int_equal(skua_pkt_parse_ib_pending(&pkt), SKUA_PKT_OK);
	assert_int_equal(pkt.opcode, IB_OPCODE_CNP);
	assert_int_equal(pkt.dqpn, rc.s[0].qp.qpn);
	assert_true(pkt.becn && !pkt.fecn && !pkt.ackreq);
	assert_int_equal(pkt.payload_len, IB_CNP_PAYLOAD_LEN);
	for (unsigned int i = 0; i < IB_CNP_PAYLOAD_LEN; i++)
		assert_int_equal(pkt.payload[i], 0);
	assert_int_equal(pkt.tclass, 33 << 2);
	assert_true(pkt.vlan);
	assert_int_equal(pkt.tci, 5 << 13 | 7);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_NP_ECN_MARKED), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_NP_CNP_SENT), 1);
	/* Nobody reacts. */
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RP_CNP_HANDLED), 0);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RP_CNP_IGNORED), 1);
	assert_false(held_back(&rc, 0));

	/* With the priority of the others. */
	SET(&rc, 1, NP_CNP_PRIO_MODE, 0);
	SET(&rc, 1, NP_MIN_TIME_BETWEEN_CNPS, 0);
	w[0].mark = 1;
	write_done(&rc, 0, 64);
	assert_int_equal(skua_pkt_parse_ip(w[1].cnp.data, w[1].cnp.len, &pkt), SKUA_PKT_OK);
	assert_int_equal(pkt.tci, 7);
	rc_close(&rc);
}

/* A device without the capability says nothing. */
static void without_capability(void **rig)
{
	struct wire_look w[2] = { 0 };
	struct rc rc;

	(void)rig;
	rc_open(&rc, &(struct rc_opt){ .no_caps = SKUA_CAP_DCQCN });
	rc.s[0].f.filter = look;
	rc.s[0].f.filter_priv = &w[0];
	w[0].mark = 3;
	write_done(&rc, 0, 10000);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_NP_ECN_MARKED), 3);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_NP_CNP_SENT), 0);
	cnp(&rc);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RP_CNP_IGNORED), 1);
	rc_close(&rc);
}

/* Two QPs: each has its CNP, or both together one, in the time. */
static void paced_by(enum skua_cnp_scope scope, unsigned int want)
{
	struct rc_opt opt = { 0 };
	struct mini_qp more[2];
	struct wire_look w[2];
	struct rc rc;

	open_cc(&rc, &opt, SKUA_CC_NONE, 0, w);
	for (int i = 0; i < 2; i++)
		rc_qp(&rc, i, &more[i], &opt);
	for (int i = 0; i < 2; i++)
		to_rts(&rc, i, &more[i], &opt, more[1 - i].qpn);
	SET(&rc, 1, NP_CNP_SCOPE, scope);
	SET(&rc, 1, NP_MIN_TIME_BETWEEN_CNPS, 20);
	for (unsigned int k = 1; k <= 4; k++) {
		w[0].mark = UINT32_MAX;
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 20000 });
		rc_post_quiet(&rc, 0, &more[0],
			      &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 20000 });
		mini_ring(&rc.s[0].m, &more[0]);
		rc_pump(&rc);
		assert_int_equal(w[1].cnps, k * want);
		/* Not yet, and then. */
		rc_pump_for(&rc, 20 * USEC - 1);
		write_some(&rc, 0, 64);
		assert_int_equal(w[1].cnps, k * want);
		rc_pump_for(&rc, 1);
	}
	rc_close(&rc);
}

static void paced(void **rig)
{
	(void)rig;
	paced_by(SKUA_CNP_PER_QP, 2);
	paced_by(SKUA_CNP_PER_IP, 1);
	paced_by(SKUA_CNP_PER_PORT, 1);
}

/* --- CNPs that are for nobody --- */

static void cnps_not_taken(void **rig)
{
	struct rc_opt opt = { 0 };
	uint8_t frame[256];
	struct skua_pkt_addr addr;
	struct skua_pkt_build b;
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 0, w);
	/* From a stranger. */
	addr = rc_addr(&rc, 1);
	addr.sgid[15] ^= 0x40;
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &addr,
					      &(struct skua_pkt_bth){ .opcode = IB_OPCODE_CNP,
								      .pkey = IB_PKEY_DEFAULT,
								      .dqpn = rc.s[0].qp.qpn,
								      .becn = true }), 0);
	memset(b.payload, 0, IB_CNP_PAYLOAD_LEN);
	rc_inject(&rc, 0, &b, IB_CNP_PAYLOAD_LEN);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RX_BAD_PEER), 1);
	assert_false(held_back(&rc, 0));
	/* For no QP. */
	addr = rc_addr(&rc, 1);
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &addr,
					      &(struct skua_pkt_bth){ .opcode = IB_OPCODE_CNP,
								      .pkey = IB_PKEY_DEFAULT,
								      .dqpn = 0x7777 }), 0);
	memset(b.payload, 0, IB_CNP_PAYLOAD_LEN);
	rc_inject(&rc, 0, &b, IB_CNP_PAYLOAD_LEN);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RX_NO_QP), 1);
	/* For one that is not in RTS. */
	assert_status(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), OK);
	cnp(&rc);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RP_CNP_IGNORED), 1);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RP_CNP_HANDLED), 0);
	rc_close(&rc);
}

/* --- what it costs where there is no congestion --- */

static void traffic(struct rc *rc, uint64_t *reads, uint64_t *writes, uint64_t *sent)
{
	*reads = rc->s[0].f.reads + rc->s[1].f.reads;
	*writes = rc->s[0].f.writes + rc->s[1].f.writes;
	*sent = rc->s[0].f.sent + rc->s[1].f.sent;
	for (unsigned int i = 0; i < 200; i++)
		write_done(rc, 0, i * 331);
	*reads = rc->s[0].f.reads + rc->s[1].f.reads - *reads;
	*writes = rc->s[0].f.writes + rc->s[1].f.writes - *writes;
	*sent = rc->s[0].f.sent + rc->s[1].f.sent - *sent;
}

static void costs_nothing(void **rig)
{
	uint64_t reads[2], writes[2], sent[2];
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (unsigned int on = 0; on < 2; on++) {
		/* Little memory on the chip: each look at cold words would show. */
		struct rc_opt opt = { .onchip = 4096 };

		open_cc(&rc, &opt, on ? SKUA_CC_DCQCN : SKUA_CC_NONE, 4096, w);
		for (unsigned int i = 0; i < 10; i++)
			write_done(&rc, 0, 300000);
		traffic(&rc, &reads[on], &writes[on], &sent[on]);
		rc_close(&rc);
	}
	assert_int_equal(reads[0], reads[1]);
	assert_int_equal(writes[0], writes[1]);
	assert_int_equal(sent[0], sent[1]);
}

/* --- and where much is lost --- */

/*
 * Under a rate, all that was posted has been sent once, and some of it is to be sent again: the
 * queue waits for its rate, and does not have turn after turn meanwhile.
 */
static void waits_with_holes(void **rig)
{
	struct rc_opt opt = { .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } };
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_RATE),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
		.attr.rate_kbps = cpu_to_le32(100000),
		.attr.rate_burst = cpu_to_le32(70000),
	};
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_NONE, 0, w);
	write_done(&rc, 0, 64);
	in.qpn = cpu_to_le32(rc.s[0].qp.qpn);
	mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
	w[0].pass = 8;
	w[0].lose = 8;
	write_some(&rc, 0, 65536);
	rc_pump_for(&rc, 1000 * MSEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_in_range(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 8, 12);
	rc_close(&rc);
}

/* State that memory of the host has spoilt delays its own queue at most. */
static void spoilt_context(void **rig)
{
	unsigned int seed = 1;
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (unsigned int k = 0; k < 200; k++) {
		struct rc_opt opt = { 0 };
		struct qp qp;

		open_cc(&rc, &opt, k % 2 ? SKUA_CC_DCQCN : SKUA_CC_DELAY, 16384, w);
		write_done(&rc, 0, 64);
		assert_int_equal(qp_get(rc.s[0].f.dev, rc.s[0].qp.qpn, &qp), 0);
		for (size_t i = 0; i < sizeof(qp.sqc->cc); i++)
			((uint8_t *)&qp.sqc->cc)[i] = (uint8_t)(k < 4 ? 0xff : rand_r(&seed) >> 8);
		qp_put(rc.s[0].f.dev, &qp);
		for (unsigned int i = 0; i < 5; i++) {
			cnp(&rc);
			write_some(&rc, 0, 20000);
			rc_pump_for(&rc, 100 * MSEC);
		}
		/* At the least rate there is. */
		rc_pump_for(&rc, 100000 * MSEC);
		for (unsigned int i = 0; i < 5; i++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(parameters),
		cmocka_unit_test(a_mark_is_answered),
		cmocka_unit_test(without_capability),
		cmocka_unit_test(paced),
		cmocka_unit_test(cnps_not_taken),
		cmocka_unit_test(costs_nothing),
		cmocka_unit_test(waits_with_holes),
		cmocka_unit_test(spoilt_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
