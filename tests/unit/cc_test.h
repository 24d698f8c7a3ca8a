/* SPDX-License-Identifier: GPL-2.0 */
/* A connection with congestion control, and a wire that marks, drops and looks. */
#ifndef SKUA_TEST_CC_TEST_H
#define SKUA_TEST_CC_TEST_H

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

static inline bool look(void *priv, struct fake_frame *f)
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

static inline int set_param(struct mini *m, uint32_t param, uint32_t value)
{
	struct skua_cmd_modify_cc_in in = {
		.param = cpu_to_le32(param),
		.value = cpu_to_le32(value),
	};

	return mini_cmd(m, SKUA_CMD_MODIFY_CC, &in, sizeof(in), NULL, 0);
}

#define SET(rc, i, name, value)	assert_status(set_param(&(rc)->s[i].m, SKUA_CC_##name, value), OK)

static inline void to_rts(struct rc *rc, int i, struct mini_qp *qp, const struct rc_opt *opt,
			  uint32_t dest)
{
	struct skua_qp_attr a = rc_attr(rc, i, opt, dest);

	mini_rc_to_rts(&rc->s[i].m, qp, &a);
}

/* Both sides with the algorithm, the QPs in RTS; @w looks at frames of side 0 and 1. */
static inline void open_cc(struct rc *rc, struct rc_opt *opt, enum skua_cc_algorithm alg,
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

static inline struct skua_cc state(struct rc *rc, int i)
{
	return rc_query(rc, i).sqc.cc;
}

static inline uint32_t rate(struct rc *rc, int i)
{
	struct skua_sqc sqc = rc_query(rc, i).sqc;

	/* What is imposed is in force. */
	assert_int_equal(!!(le32_to_cpu(sqc.valid) & SKUA_SQC_PACED), !!sqc.rate);
	if (le32_to_cpu(sqc.valid) & SKUA_SQC_CC)
		assert_int_equal(sqc.rate, sqc.cc.rate);
	return le32_to_cpu(sqc.rate);
}

static inline bool held_back(struct rc *rc, int i)
{
	return le32_to_cpu(rc_query(rc, i).sqc.valid) & SKUA_SQC_CC;
}

static inline void write_some(struct rc *rc, int i, uint32_t len)
{
	rc_post(rc, i, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = len });
	rc_pump(rc);
}

static inline void write_done(struct rc *rc, int i, uint32_t len)
{
	write_some(rc, i, len);
	rc_expect(rc, i, false, SKUA_CQE_OK);
}

/* A CNP as side 1's device would send it. */
static inline void cnp(struct rc *rc)
{
	uint8_t frame[256];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), IB_OPCODE_CNP, 0), 0);
	memset(b.payload, 0, IB_CNP_PAYLOAD_LEN);
	rc_inject(rc, 0, &b, IB_CNP_PAYLOAD_LEN);
}

static inline void dcqcn_open(struct rc *rc, struct rc_opt *opt, struct wire_look w[2])
{
	open_cc(rc, opt, SKUA_CC_DCQCN, 0, w);
	write_done(rc, 0, 64);
	/* Alpha stays as it is, and increases come by time alone, unless a test says otherwise. */
	SET(rc, 0, RP_DCE_TCP_RTT, 131071);
	SET(rc, 0, RP_BYTE_RESET, 0);
	SET(rc, 0, RP_TIME_RESET, 1000);
	SET(rc, 0, RP_RATE_REDUCE_MONITOR_PERIOD, 10);
}

static inline uint32_t cut(uint64_t kbps, uint32_t alpha, uint32_t gd)
{
	return (uint32_t)(kbps - (kbps * alpha >> gd));
}

#endif /* SKUA_TEST_CC_TEST_H */
