// SPDX-License-Identifier: GPL-2.0
/*
 * Congestion control: who is told of marks and how often, rates and windows by the numbers,
 * and that a QP which nobody holds back does what it does without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core_test.h"
#include "rc.h"
#include "roce/engine.h"
#include "wire/fault.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define USEC	1000ull
#define MSEC	1000000ull
#define LINE	MODEL_RATE_MAX
#define BTH	(14 + 20 + 8)

/**
 * struct wire_look - what the wire between the sides does and sees
 * @rc: of
 * @from: the side whose frames these are
 * @mark: of its frames set CE on so many, the next ones
 * @pass: let so many go before any is dropped
 * @lose: drop so many, the next ones
 * @cnps: CNPs seen
 * @cnp: the last of them
 * @tos: TOS of the last frame
 * @bytes: of all frames but CNPs
 * @frames: how many
 */
struct wire_look {
	struct rc *rc;
	unsigned int mark, pass, lose;
	unsigned int cnps;
	struct fake_frame cnp;
	uint8_t tos;
	uint64_t bytes;
	unsigned int frames;
};

static bool look(void *priv, struct fake_frame *f)
{
	size_t tag = f->data[12] == 0x81 && !f->data[13] ? 4 : 0;
	struct wire_look *w = priv;

	if (f->data[BTH + tag] == IB_OPCODE_CNP) {
		w->cnps++;
		w->cnp = *f;
		return true;
	}
	w->tos = f->data[15 + tag];
	w->frames++;
	w->bytes += f->len;
	if (w->mark) {
		w->mark--;
		assert_true(wire_mark_ce(f->data, f->len, true));
	}
	if (w->pass) {
		w->pass--;
	} else if (w->lose) {
		w->lose--;
		return false;
	}
	return true;
}

static int set_param(struct mini *m, uint32_t param, uint32_t value)
{
	struct skua_cmd_modify_cc_in in = {
		.param = cpu_to_le32(param),
		.value = cpu_to_le32(value),
	};

	return mini_cmd(m, SKUA_CMD_MODIFY_CC, &in, sizeof(in), NULL, 0);
}

#define SET(rc, i, name, value)	assert_status(set_param(&(rc)->s[i].m, SKUA_CC_##name, value), OK)

static void to_rts(struct rc *rc, int i, struct mini_qp *qp, const struct rc_opt *opt,
		   uint32_t dest)
{
	struct skua_qp_attr a = rc_attr(rc, i, opt, dest);

	mini_rc_to_rts(&rc->s[i].m, qp, &a);
}

/* Both sides with the algorithm, the QPs in RTS; @w looks at frames of side 0 and 1. */
static void open_cc(struct rc *rc, struct rc_opt *opt, enum skua_cc_algorithm alg,
		    uint32_t window, struct wire_look w[2])
{
	opt->down = true;
	rc_open(rc, opt);
	memset(w, 0, 2 * sizeof(*w));
	for (int i = 0; i < 2; i++) {
		w[i].rc = rc;
		rc->s[i].f.filter = look;
		rc->s[i].f.filter_priv = &w[i];
		SET(rc, i, RP_ALGORITHM, alg);
		SET(rc, i, RP_INITIAL_WINDOW, window);
	}
	for (int i = 0; i < 2; i++)
		to_rts(rc, i, &rc->s[i].qp, opt, rc->s[1 - i].qp.qpn);
}

static struct skua_cc state(struct rc *rc, int i)
{
	return rc_query(rc, i).sqc.cc;
}

static uint32_t rate(struct rc *rc, int i)
{
	struct skua_sqc sqc = rc_query(rc, i).sqc;

	/* What is imposed is in force. */
	assert_int_equal(!!(le32_to_cpu(sqc.valid) & SKUA_SQC_PACED), !!sqc.rate);
	if (le32_to_cpu(sqc.valid) & SKUA_SQC_CC)
		assert_int_equal(sqc.rate, sqc.cc.rate);
	return le32_to_cpu(sqc.rate);
}

static bool held_back(struct rc *rc, int i)
{
	return le32_to_cpu(rc_query(rc, i).sqc.valid) & SKUA_SQC_CC;
}

static void write_some(struct rc *rc, int i, uint32_t len)
{
	rc_post(rc, i, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = len });
	rc_pump(rc);
}

static void write_done(struct rc *rc, int i, uint32_t len)
{
	write_some(rc, i, len);
	rc_expect(rc, i, false, SKUA_CQE_OK);
}

/* A CNP as side 1's device would send it. */
static void cnp(struct rc *rc)
{
	uint8_t frame[256];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), IB_OPCODE_CNP, 0), 0);
	memset(b.payload, 0, IB_CNP_PAYLOAD_LEN);
	rc_inject(rc, 0, &b, IB_CNP_PAYLOAD_LEN);
}

/* --- parameters --- */

static void parameters(void **rig)
{
	static const struct {
		uint32_t min, max, dflt;
	} all[] = {
#define X(name, user, min, max, dflt, text) { min, max, dflt },
		SKUA_CC_PARAM_TABLE(X)
#undef X
	};
	struct rig *r = *rig;
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
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_CC, NULL, 0, &out, sizeof(out)), OK);
	for (uint32_t i = 0; i < N(all); i++)
		assert_int_equal(le32_to_cpu(out.value[i]), all[i].dflt);
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

/* --- DCQCN by the numbers --- */

static void dcqcn_open(struct rc *rc, struct rc_opt *opt, struct wire_look w[2])
{
	open_cc(rc, opt, SKUA_CC_DCQCN, 0, w);
	write_done(rc, 0, 64);
	/* Alpha stays as it is, and increases come by time alone, unless a test says otherwise. */
	SET(rc, 0, RP_DCE_TCP_RTT, 131071);
	SET(rc, 0, RP_BYTE_RESET, 0);
	SET(rc, 0, RP_TIME_RESET, 1000);
	SET(rc, 0, RP_RATE_REDUCE_MONITOR_PERIOD, 10);
}

static uint32_t cut(uint64_t kbps, uint32_t alpha, uint32_t gd)
{
	return (uint32_t)(kbps - (kbps * alpha >> gd));
}

static void decreases(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint32_t want;
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	assert_int_equal(w[0].tos & 3, 2);
	cnp(&rc);
	/* Nothing is known: from the port's rate, by half. */
	want = cut(LINE, 1023, 11);
	assert_int_equal(rate(&rc, 0), want);
	assert_int_equal(le32_to_cpu(state(&rc, 0).target), LINE);
	/* One in the time, however many come; the next one at its end. */
	cnp(&rc);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), want);
	rc_pump_for(&rc, 9999);
	write_done(&rc, 0, 64);
	assert_int_equal(rate(&rc, 0), want);
	rc_pump_for(&rc, 1);
	write_done(&rc, 0, 64);
	want = cut(want, 1023, 11);
	assert_int_equal(rate(&rc, 0), want);
	assert_int_equal(le32_to_cpu(state(&rc, 0).target), cut(LINE, 1023, 11));
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RP_CNP_HANDLED), 3);
	/* Not by more than is allowed, nor below the least. */
	rc_pump_for(&rc, 10 * USEC);
	SET(&rc, 0, RP_MIN_DEC_FAC, 90);
	cnp(&rc);
	want = (uint32_t)((uint64_t)want * 90 / 100);
	assert_int_equal(rate(&rc, 0), want);
	rc_pump_for(&rc, 10 * USEC);
	SET(&rc, 0, RP_MIN_RATE, 30000);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), 30000000);
	SET(&rc, 0, RP_MIN_RATE, 1);
	SET(&rc, 0, RP_MIN_DEC_FAC, 1);
	SET(&rc, 0, RP_GD, 13);
	rc_pump_for(&rc, 10 * USEC);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), cut(30000000, 1023, 13));
	rc_close(&rc);
}

static void target_may_stay(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint32_t before;
	struct rc rc;

	(void)rig;
	for (uint32_t ati = 0; ati < 2; ati++) {
		dcqcn_open(&rc, &opt, w);
		SET(&rc, 0, RP_CLAMP_TGT_RATE, 0);
		SET(&rc, 0, RP_CLAMP_TGT_RATE_ATI, ati);
		cnp(&rc);
		rc_pump_for(&rc, 10 * USEC);
		cnp(&rc);
		assert_int_equal(le32_to_cpu(state(&rc, 0).target), LINE);
		rc_pump_for(&rc, MSEC);
		write_done(&rc, 0, 64);
		before = rate(&rc, 0);
		cnp(&rc);
		assert_int_equal(le32_to_cpu(state(&rc, 0).target), ati ? before : LINE);
		rc_close(&rc);
	}
}

static void first_rate_is_given(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_RATE_TO_SET_ON_FIRST_CNP, 7000);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), 7000000);
	rc_pump_for(&rc, 10 * USEC);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), cut(7000000, 1023, 11));
	rc_close(&rc);
}

/* Alpha: a period with a CNP takes it up, each one without, down. */
static void alpha(void **rig)
{
	const uint32_t one = 1 << 20, g = 256, part = g << 10;
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint64_t want;
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_DCE_TCP_RTT, 100);
	SET(&rc, 0, RP_DCE_TCP_G, g);
	SET(&rc, 0, RP_INITIAL_ALPHA_VALUE, 512);
	cnp(&rc);
	assert_int_equal(rate(&rc, 0), cut(LINE, 512, 11));
	assert_int_equal(le32_to_cpu(state(&rc, 0).alpha), one / 2);
	rc_pump_for(&rc, 100 * USEC);
	write_done(&rc, 0, 64);
	want = (uint64_t)one / 2 * (one - part) / one + part;
	assert_int_equal(le32_to_cpu(state(&rc, 0).alpha), want);
	rc_pump_for(&rc, 200 * USEC);
	write_done(&rc, 0, 64);
	want = want * (one - part) / one * (one - part) / one;
	assert_in_range(le32_to_cpu(state(&rc, 0).alpha), want - 2, want);
	/* Of CNPs it never becomes more than all. */
	for (unsigned int i = 0; i < 100; i++) {
		cnp(&rc);
		rc_pump_for(&rc, 100 * USEC);
	}
	assert_in_range(le32_to_cpu(state(&rc, 0).alpha), one - one / 50, one);
	rc_close(&rc);
}

static uint32_t middle(uint64_t a, uint64_t b)
{
	return (uint32_t)((a + b + 1) / 2);
}

/* Fast recovery, additive and hyper increase by time and bytes, and the end of it. */
static void increases(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	uint32_t want, target;
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_RATE_TO_SET_ON_FIRST_CNP, 8000);
	SET(&rc, 0, RP_THRESHOLD, 2);
	SET(&rc, 0, RP_AI_RATE, 100);
	SET(&rc, 0, RP_HAI_RATE, 1000);
	cnp(&rc);
	rc_pump_for(&rc, 10 * USEC);
	cnp(&rc);
	want = cut(8000000, 1023, 11);
	target = 8000000;
	assert_int_equal(rate(&rc, 0), want);
	for (unsigned int stage = 1; stage <= 4; stage++) {
		rc_pump_for(&rc, MSEC);
		write_done(&rc, 0, 64);
		/* The last two have no fast recovery left. */
		target += stage > 2 ? 100000 : 0;
		want = middle(want, target);
		assert_int_equal(rate(&rc, 0), want);
		assert_int_equal(le32_to_cpu(state(&rc, 0).target), target);
	}
	/* Bytes have come less far: as long, it is additive; then hyper, more each time. */
	SET(&rc, 0, RP_BYTE_RESET, 3000);
	for (unsigned int stage = 1; stage <= 4; stage++) {
		write_done(&rc, 0, 3000);
		target += stage > 2 ? 1000000 * (stage - 2) : 100000;
		if (stage == 4)
			target = 8000000 + 2 * 100000 + 2 * 100000 + 1000000 + 2000000;
		want = middle(want, target);
		assert_int_equal(rate(&rc, 0), want);
	}
	/* The port's rate is none. */
	rc_pump_for(&rc, 1000 * MSEC);
	write_done(&rc, 0, 64);
	assert_int_equal(rate(&rc, 0), 0);
	assert_false(held_back(&rc, 0));
	assert_int_equal(rc_query(&rc, 0).sqc.rate_deadline, 0);
	rc_close(&rc);
}

/* A greatest rate stays in force, and a limit that the user has set besides. */
static void other_limits(void **rig)
{
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_RATE),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
		.attr.rate_kbps = cpu_to_le32(1000000),
	};
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	dcqcn_open(&rc, &opt, w);
	SET(&rc, 0, RP_MAX_RATE, 2000);
	cnp(&rc);
	rc_pump_for(&rc, 100 * MSEC);
	write_done(&rc, 0, 64);
	assert_int_equal(rate(&rc, 0), 2000000);
	in.qpn = cpu_to_le32(rc.s[0].qp.qpn);
	mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
	assert_int_equal(rc_query(&rc, 0).sqc.rate, cpu_to_le32(1000000));
	in.attr.rate_kbps = cpu_to_le32(50000000);
	mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
	assert_int_equal(rc_query(&rc, 0).sqc.rate, cpu_to_le32(2000000));
	in.attr.rate_kbps = 0;
	mini_ok(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
	assert_int_equal(rc_query(&rc, 0).sqc.rate, cpu_to_le32(2000000));
	/* RESET forgets it. */
	assert_status(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RESET, 0, NULL), OK);
	assert_int_equal(rc_query(&rc, 0).sqc.rate, 0);
	rc_close(&rc);
}

/* --- the rate is kept, of requests and of READ responses --- */

static void keeps(enum skua_wqe_op op, uint32_t ext)
{
	const uint32_t kbps = 1000000;
	struct rc_opt opt = { .ext = { ext, ext }, .log_sq = 7 };
	int from = op == SKUA_WQE_READ;
	struct wire_look w[2];
	uint64_t bytes;
	struct rc rc;

	open_cc(&rc, &opt, SKUA_CC_DCQCN, 0, w);
	write_done(&rc, 0, 64);
	SET(&rc, from, RP_RATE_TO_SET_ON_FIRST_CNP, kbps / 1000);
	SET(&rc, from, RP_TIME_RESET, 131071);
	SET(&rc, from, RP_BYTE_RESET, 0);
	for (unsigned int i = 0; i < 60; i++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp,
			      &(struct rc_wr){ .op = op, .len = 65536, .quiet = true });
	w[1 - from].mark = 1;
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump_for(&rc, USEC);
	if (!w[1 - from].cnps)
		cnp(&rc);
	rc_pump_for(&rc, USEC);
	rc_close(&rc);

	/* Marked from the first packet on: the first one, and nothing else, goes before. */
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 0, w);
	SET(&rc, from, RP_RATE_TO_SET_ON_FIRST_CNP, kbps / 1000);
	SET(&rc, from, RP_TIME_RESET, 131071);
	SET(&rc, from, RP_BYTE_RESET, 0);
	w[from].mark = UINT32_MAX;
	rc_post(&rc, 0, &(struct rc_wr){ .op = op, .len = 64 });
	rc_pump(&rc);
	assert_int_equal(rate(&rc, from), kbps);
	w[from].mark = 0;
	bytes = w[from].bytes;
	for (unsigned int i = 0; i < 60; i++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp,
			      &(struct rc_wr){ .op = op, .len = 65536, .quiet = true });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump_for(&rc, 20 * MSEC);
	bytes = w[from].bytes - bytes;
	/* 20 ms at 1 Gbit/s; a burst and a packet more or less. */
	assert_in_range(bytes, 2500000 - 16384, 2500000 + 16384);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	rc_close(&rc);
}

static void rate_is_kept(void **rig)
{
	(void)rig;
	keeps(SKUA_WQE_WRITE, 0);
	keeps(SKUA_WQE_WRITE, SKUA_EXT_ALWAYS);
	keeps(SKUA_WQE_READ, 0);
	keeps(SKUA_WQE_READ, SKUA_EXT_ALWAYS);
}

/*
 * Nobody is there to wake up a queue that waits for its rate but the rate's own deadline, as no
 * ack timer runs. It is kept when CNPs come meanwhile (@cnps), when bytes raise the rate, and
 * when the other half of the QP has a turn (@both: requests in both directions).
 */
static void goes_on(enum skua_wqe_op op, uint32_t ext, bool cnps, bool both)
{
	const uint32_t kbps = 1000000;
	struct rc_opt opt = { .ext = { ext, ext }, .log_sq = 8, .timeout = 32 };
	int from = op == SKUA_WQE_READ;
	struct wire_look w[2];
	struct rc rc;

	open_cc(&rc, &opt, SKUA_CC_DCQCN, 0, w);
	for (int i = 0; i < 2; i++) {
		SET(&rc, i, RP_RATE_TO_SET_ON_FIRST_CNP, kbps / 1000);
		SET(&rc, i, RP_MIN_RATE, kbps / 1000);
		SET(&rc, i, RP_MAX_RATE, kbps / 1000 + 1);
		SET(&rc, i, RP_TIME_RESET, 131071);
		SET(&rc, i, RP_BYTE_RESET, cnps ? 0 : 50000);
		SET(&rc, i, NP_MIN_TIME_BETWEEN_CNPS, 0);
		SET(&rc, i, RP_RATE_REDUCE_MONITOR_PERIOD, 0);
		w[i].mark = UINT32_MAX;
	}
	rc_post(&rc, 0, &(struct rc_wr){ .op = op, .len = 64 });
	rc_post(&rc, 1, &(struct rc_wr){ .op = op, .len = 64 });
	rc_pump(&rc);
	for (int i = 0; i < 2; i++)
		w[i].mark = 0;
	for (unsigned int k = 0; k < 120; k++) {
		for (int i = 0; i <= both; i++)
			rc_post_quiet(&rc, i, &rc.s[i].qp,
				      &(struct rc_wr){ .op = op, .len = 65536, .quiet = true });
	}
	for (int i = 0; i <= both; i++)
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
	for (unsigned int k = 0; k < 20; k++) {
		uint64_t before[2] = { w[0].bytes, w[1].bytes };

		if (cnps)
			w[from].mark = 1;
		rc_pump_for(&rc, 2 * MSEC);
		/* 2 ms at 1 Gbit/s are 250000 bytes. */
		assert_true(w[from].bytes - before[from] > 200000);
		assert_true(!both || w[1 - from].bytes - before[1 - from] > 200000);
	}
	rc_close(&rc);
}

static void nobody_waits_for_ever(void **rig)
{
	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		for (unsigned int k = 0; k < 4; k++) {
			goes_on(SKUA_WQE_WRITE, ext, k & 1, k & 2);
			goes_on(SKUA_WQE_READ, ext, k & 1, k & 2);
		}
	}
}

/* --- windows --- */

/* The other side does not answer: what goes out is the window. */
static void window_binds(enum skua_cc_algorithm alg, uint32_t ext)
{
	struct rc_opt opt = { .ext = { ext, ext }, .mtu_code = 3, .timeout = 20 };
	struct wire_look w[2];
	struct rc rc;

	open_cc(&rc, &opt, alg, 16384, w);
	/* Responses are lost: a window of 16 packets of 1024 bytes, and no more. */
	w[1].lose = UINT32_MAX;
	write_some(&rc, 0, 1 << 20);
	assert_int_equal(w[0].frames, 16);
	assert_true(held_back(&rc, 0));
	/* Of the side that answers nothing is held back. */
	assert_false(held_back(&rc, 1));
	w[1].lose = 0;
	rc_pump_for(&rc, 30 * 1000 * MSEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

static void windows_bind(void **rig)
{
	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		window_binds(SKUA_CC_DCQCN, ext);
		window_binds(SKUA_CC_DELAY, ext);
	}
}

/* What is acknowledged opens it, until it does not bind: then nothing is held back. */
static void window_opens(void **rig)
{
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		struct rc_opt opt = { .ext = { ext, ext } };

		open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
		assert_false(held_back(&rc, 0));
		write_done(&rc, 0, 40960);
		assert_true(held_back(&rc, 0));
		assert_int_equal(le32_to_cpu(state(&rc, 0).window), 16384 + 40960);
		for (unsigned int i = 0; i < 8; i++)
			write_done(&rc, 0, 300000);
		assert_false(held_back(&rc, 0));
		rc_close(&rc);
	}
}

/* A CNP or an ACK timer that expires ends it with a rate: what was delivered. */
static void window_ends(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	write_done(&rc, 0, 64);
	rc_pump_for(&rc, 100 * USEC);
	assert_true(held_back(&rc, 0));
	w[0].mark = 1;
	write_done(&rc, 0, 64);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), 0);
	assert_true(rate(&rc, 0) > 0);
	rc_close(&rc);

	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	write_done(&rc, 0, 64);
	w[0].lose = 4;
	write_some(&rc, 0, 16384);
	rc_pump_for(&rc, 1000 * MSEC);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), 0);
	rc_close(&rc);
}

/* Side 0 asks side 1 for @num READs of 64 KiB, which it answers for 16 KiB in 50 us at first. */
static void ask(struct rc *rc, unsigned int num)
{
	SET(rc, 1, RP_TIME_RESET, 50);
	SET(rc, 1, RP_RATE_REDUCE_MONITOR_PERIOD, 10);
	for (unsigned int i = 0; i < num; i++)
		rc_post_quiet(rc, 0, &rc->s[0].qp,
			      &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 65536,
					       .quiet = i + 1 != num });
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
}

#define FIRST_KBPS	(16384u * 8000 / 50)

/* READ responses begin with a rate, which doubles while it is used, until it does not bind. */
static void rate_opens(void **rig)
{
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (uint32_t ext = 0; ext <= SKUA_EXT_ALWAYS; ext += SKUA_EXT_ALWAYS) {
		struct rc_opt opt = { .ext = { ext, ext }, .log_sq = 7, .timeout = 20 };
		uint64_t most = 0;

		open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
		assert_int_equal(rate(&rc, 1), 0);
		ask(&rc, 100);
		for (unsigned int k = 0; k < 4; k++) {
			rc_pump_for(&rc, 99 * USEC);
			assert_int_equal(rate(&rc, 1), FIRST_KBPS << k);
			/* The rate, and a burst and a packet beyond it. */
			most += 32768u << k;
			assert_in_range(w[1].bytes, most * 9 / 10, most + 12288 + (2100u << k));
			rc_pump_for(&rc, USEC);
		}
		rc_pump_for(&rc, 5 * MSEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_false(held_back(&rc, 1));
		assert_int_equal(rate(&rc, 1), 0);
		/* Once: what comes later finds no limit. */
		ask(&rc, 1);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_false(held_back(&rc, 1));
		rc_close(&rc);
	}
}

/* What is not used does not open: a rate that nobody has tried is not known to be good. */
static void rate_opens_by_use(void **rig)
{
	struct rc_opt opt = { 0 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	SET(&rc, 1, RP_TIME_RESET, 50);
	for (unsigned int k = 0; k < 20; k++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 2048 });
		rc_pump_for(&rc, 100 * USEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(rate(&rc, 1), FIRST_KBPS);
	}
	rc_close(&rc);
}

/* A CNP ends it: from the rate that it has come to. */
static void rate_ends(void **rig)
{
	struct rc_opt opt = { .log_sq = 7, .timeout = 20 };
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	ask(&rc, 100);
	rc_pump_for(&rc, 150 * USEC);
	assert_int_equal(rate(&rc, 1), 2 * FIRST_KBPS);
	w[1].mark = 1;
	rc_pump_for(&rc, 30 * USEC);
	assert_int_equal(w[0].cnps, 1);
	assert_int_equal(rate(&rc, 1), cut(2 * FIRST_KBPS, 1023, 11));
	assert_int_equal(le32_to_cpu(state(&rc, 1).target), 2 * FIRST_KBPS);
	/* And rises as any other. */
	rc_pump_for(&rc, 100 * USEC);
	assert_in_range(rate(&rc, 1), 2 * FIRST_KBPS * 7 / 10, 2 * FIRST_KBPS);
	rc_close(&rc);

	/* A rate that was chosen for this moment. */
	open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
	SET(&rc, 1, RP_RATE_TO_SET_ON_FIRST_CNP, 1000);
	ask(&rc, 100);
	rc_pump_for(&rc, 150 * USEC);
	w[1].mark = 1;
	rc_pump_for(&rc, 30 * USEC);
	assert_int_equal(rate(&rc, 1), 1000000);
	rc_close(&rc);
}

/* A QP whose window still opens goes on with the rate that this is; one that is free stays so. */
static void rate_after_window(void **rig)
{
	struct wire_look w[2];
	struct rc rc;

	(void)rig;
	for (unsigned int opened = 0; opened < 2; opened++) {
		struct rc_opt opt = { .log_sq = 7, .timeout = 20 };

		open_cc(&rc, &opt, SKUA_CC_DCQCN, 16384, w);
		for (unsigned int i = 0; i < (opened ? 4 : 1); i++)
			write_done(&rc, 1, opened ? 300000 : 16384);
		assert_int_equal(held_back(&rc, 1), !opened);
		ask(&rc, 10);
		rc_pump_for(&rc, USEC);
		assert_int_equal(rate(&rc, 1), opened ? 0 : 2 * FIRST_KBPS);
		assert_int_equal(le32_to_cpu(state(&rc, 1).window), 0);
		rc_pump_for(&rc, 5 * MSEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_close(&rc);
	}
}

/* By delay: it grows by a packet each short round trip, shrinks with long ones. */
static void window_by_delay(void **rig)
{
	struct rc_opt opt = { .timeout = 20 };
	struct wire_look w[2];
	uint32_t before, after;
	struct rc rc;

	(void)rig;
	open_cc(&rc, &opt, SKUA_CC_DELAY, 16384, w);
	assert_int_equal(w[0].tos & 3, 0);
	for (unsigned int i = 0; i < 20; i++)
		write_done(&rc, 0, 100000);
	before = le32_to_cpu(state(&rc, 0).window);
	assert_int_equal(before, ENGINE_WINDOW * 4096);
	/* The answer comes late: side 1's clock is side 0's, so that is the wire's doing. */
	w[1].lose = 1;
	write_some(&rc, 0, 64);
	rc_pump_for(&rc, 100 * USEC);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), before);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
	rc_pump(&rc);
	/* 100 us; the target is 60 and 40 divided by the root of 128. */
	after = le32_to_cpu(state(&rc, 0).window);
	assert_in_range(after, before - before / 100 * 35, before - before / 100 * 25);
	write_some(&rc, 0, 64);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), after + 4096);
	/* All is lost until the timer expires: one packet. */
	w[0].lose = UINT32_MAX;
	write_some(&rc, 0, 64);
	rc_pump_for(&rc, 5000 * MSEC);
	assert_int_equal(le32_to_cpu(state(&rc, 0).window), 4096);
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
		cmocka_unit_test(decreases),
		cmocka_unit_test(target_may_stay),
		cmocka_unit_test(first_rate_is_given),
		cmocka_unit_test(alpha),
		cmocka_unit_test(increases),
		cmocka_unit_test(other_limits),
		cmocka_unit_test(rate_is_kept),
		cmocka_unit_test(nobody_waits_for_ever),
		cmocka_unit_test(windows_bind),
		cmocka_unit_test(window_opens),
		cmocka_unit_test(window_ends),
		cmocka_unit_test(rate_opens),
		cmocka_unit_test(rate_opens_by_use),
		cmocka_unit_test(rate_ends),
		cmocka_unit_test(rate_after_window),
		cmocka_unit_test(window_by_delay),
		cmocka_unit_test(costs_nothing),
		cmocka_unit_test(waits_with_holes),
		cmocka_unit_test(spoilt_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
