/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Selective repeat, the responder of side 1: requests of side 0 that its device did not
 * make, and what is answered to them.
 */
#ifndef SKUA_TEST_SR_FORGE_H
#define SKUA_TEST_SR_FORGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc.h"
#include "roce/engine.h"

/**
 * struct sr_pkt - a request
 * @op: enum ib_operation
 * @psn: PSN
 * @seq: SETH
 * @off: SETH
 * @run: SETH
 * @len: payload
 * @seed: of the whole message's bytes, of which these are those from @off on
 * @data: the payload, NULL: by @seed
 * @roff: RETH: offset in side 1's buffer
 * @total: RETH: length
 * @key: RETH: 0: the buffer's
 * @imm: immediate data, or the key to invalidate
 * @se: solicited
 * @quiet: asks for no acknowledgment
 * @plain: the standard's packet, without SETH
 * @srqn: XRC
 */
struct sr_pkt {
	uint8_t op;
	uint32_t psn;
	uint32_t seq, off;
	uint8_t run;
	uint32_t len;
	uint32_t seed;
	const uint8_t *data;
	uint64_t roff;
	uint32_t total;
	uint32_t key;
	uint32_t imm;
	bool se, quiet, plain;
	uint32_t srqn;
};

static inline uint8_t sr_opcode(const struct rc *rc, const struct sr_pkt *p)
{
	bool xrc = rc->s[1].qp.type == SKUA_QP_XRC_TGT;

	if (p->plain)
		return (xrc ? IB_TRANSPORT_XRC : IB_TRANSPORT_RC) | p->op;
	return (xrc ? IB_TRANSPORT_SKUA_XRC : IB_TRANSPORT_SKUA_RC) | p->op;
}

/* Give it to side 1, which does nothing yet. */
static inline void sr_send(struct rc *rc, const struct sr_pkt *p)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096 + 64], all[1 << 16];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), sr_opcode(rc, p),
				  p->psn & IB_PSN_MASK), 0);
	b.bth->ack = (uint8_t)((p->quiet ? 0 : IB_BTH_ACK_REQ) | SKUA_EXT_LOG_WINDOW_MAX);
	b.bth->flags |= p->se ? IB_BTH_SE : 0;
	if (b.xrceth)
		ib_xrceth_put(b.xrceth, p->srqn);
	if (b.seth)
		ib_seth_put(b.seth, 0, p->seq & IB_PSN_MASK, p->off);
	if (b.seth)
		b.seth->run = p->run;
	if (b.reth)
		ib_reth_put(b.reth, RC_VA + p->roff, p->key ? p->key : rc->s[1].key, p->total);
	if (b.immdt)
		be32_put(b.immdt->data, p->imm);
	if (b.ieth)
		be32_put(b.ieth->rkey, p->imm);
	if (b.atomiceth)
		ib_atomiceth_put(b.atomiceth, RC_VA + p->roff,
				 p->key ? p->key : rc->s[1].key, p->imm, 0);
	if (b.feth)
		be32_put(b.feth->word, SKUA_WQE_FLUSH_GLOBAL);
	if (p->data) {
		memcpy(b.payload, p->data, p->len);
	} else if ((uint64_t)p->off * rc->mtu + p->len <= sizeof(all)) {
		rc_fill(all, p->off * rc->mtu + p->len, p->seed);
		memcpy(b.payload, all + p->off * rc->mtu, p->len);
	} else {
		memset(b.payload, 0x55, p->len);
	}
	rc_inject(rc, 1, &b, p->len);
}

/**
 * struct sr_answer - what side 1 said
 * @opcode: its
 * @psn: its
 * @syndrome: AETH, if @aeth
 * @msn: likewise
 * @aeth: it has one
 * @se: solicited event: the last bit of a bitmap is of a packet that was dropped
 * @len: payload
 * @payload: the bitmap of an acknowledgment, or a part of what was read
 */
struct sr_answer {
	uint8_t opcode;
	uint32_t psn;
	uint8_t syndrome;
	uint32_t msn;
	bool aeth, se;
	uint32_t len;
	uint8_t payload[4096];
};

/* The next one, which side 0 does not get. False: there is none. */
static inline bool sr_next(struct rc *rc, struct sr_answer *a)
{
	struct fake_frame *frame = fake_tx(&rc->s[1].f);
	struct skua_pkt pkt;

	if (!frame)
		return false;
	assert_int_equal(skua_pkt_parse(frame->data, frame->len, &pkt), SKUA_PKT_OK);
	a->opcode = pkt.opcode;
	a->psn = pkt.psn;
	a->aeth = pkt.aeth;
	a->se = pkt.se;
	a->syndrome = pkt.aeth ? pkt.aeth->syndrome : 0;
	a->msn = pkt.aeth ? be24_get(pkt.aeth->msn) : 0;
	a->len = pkt.payload_len;
	assert_true(a->len <= sizeof(a->payload));
	memcpy(a->payload, pkt.payload, a->len);
	free(frame);
	return true;
}

static inline bool sr_bit(const struct sr_answer *a, uint32_t bit)
{
	return bit / 8 < a->len && a->payload[bit / 8] >> bit % 8 & 1;
}

/* The contexts, for those who look into them between two packets. */
static inline void *sr_ctx(struct rc *rc, enum skua_icm_table table)
{
	struct skua_dev *dev = rc->s[1].f.dev;
	void *ctx = ctx_get(dev, table, qp_index(rc->s[1].qp.qpn));

	assert_non_null(ctx);
	ctx_dirty(dev, ctx);
	ctx_put(dev, ctx);
	return ctx;
}

static inline struct skua_rqc *sr_rqc(struct rc *rc)
{
	return sr_ctx(rc, SKUA_ICM_RQC);
}

static inline struct skua_lrc *sr_lrc_of(struct rc *rc)
{
	return sr_ctx(rc, SKUA_ICM_LRC);
}

static inline bool sr_held(struct rc *rc)
{
	return le32_to_cpu(sr_rqc(rc)->flags) & SKUA_RQC_HELD;
}

/* --- by number from the first PSN on --- */

#define PSN0	0xfffff0u	/* wraps within each test of more than 16 packets */
#define AREA	(64u << 10)	/* offsets in the buffer that tests put things at */

static const struct rc_opt small __attribute__((unused)) = {
	.mtu_code = 1,
	.ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS },
	.psn = { PSN0, 7 },
};

static inline void run(struct rc *rc)
{
	fake_run(&rc->s[1].f);
}

static inline uint32_t epsn(struct rc *rc)
{
	return (le32_to_cpu(sr_rqc(rc)->epsn) - PSN0) & IB_PSN_MASK;
}

/* Requests by their number from the first PSN on. */
static inline void give(struct rc *rc, struct sr_pkt p)
{
	p.psn += PSN0;
	sr_send(rc, &p);
}

#define GIVE(rc, ...)	give(rc, (struct sr_pkt){ __VA_ARGS__ })

/* A WRITE of one packet to @n times 256. */
static inline struct sr_pkt write_one(uint32_t n)
{
	return (struct sr_pkt){ .op = IB_OP_WRITE_ONLY, .psn = n, .len = 256, .total = 256,
				.roff = AREA + n * 256, .seed = n };
}

static inline bool written(struct rc *rc, uint32_t n)
{
	uint8_t want[256];

	rc_fill(want, sizeof(want), n);
	return !memcmp(rc->s[1].buf + AREA + n * 256, want, sizeof(want));
}

/* The next answer is an acknowledgment up to and with @n, with a bitmap if @top is not 0. */
static inline struct sr_answer expect_ack(struct rc *rc, int32_t n, uint32_t top)
{
	bool xrc = rc->s[1].qp.type == SKUA_QP_XRC_TGT;
	struct sr_answer a;

	assert_true(sr_next(rc, &a));
	assert_int_equal(a.opcode, !top ? (xrc ? IB_OPCODE(XRC, ACK) : IB_OPCODE(RC, ACK)) :
			 xrc ? IB_OPCODE(SKUA_XRC, ACK) : IB_OPCODE(SKUA_RC, ACK));
	assert_int_equal(a.psn, (PSN0 + (uint32_t)n) & IB_PSN_MASK);
	assert_int_equal(a.syndrome & IB_AETH_TYPE_MASK, IB_AETH_ACK);
	assert_int_equal(a.len, top ? (top + 31) / 32 * 4 : 0);
	return a;
}

static inline void expect_nak(struct rc *rc, uint32_t n, uint8_t syndrome, uint8_t mask)
{
	struct sr_answer a = { 0 };

	assert_true(sr_next(rc, &a));
	assert_int_equal(a.psn, (PSN0 + n) & IB_PSN_MASK);
	assert_int_equal(a.syndrome & mask, syndrome & mask);
}

static inline void expect_invalid(struct rc *rc, uint32_t n)
{
	expect_nak(rc, n, IB_AETH_NAK | IB_NAK_INVALID_REQUEST, 0xff);
	assert_int_equal(rc_state(rc, 1), SKUA_QP_ERR);
	rc_expect_event(rc, 1, SKUA_QP_EV_REQ_ERR);
}

static inline void expect_silence(struct rc *rc)
{
	struct sr_answer a;

	assert_false(sr_next(rc, &a));
}

static inline void hush(struct rc *rc)
{
	struct sr_answer a;

	run(rc);
	while (sr_next(rc, &a))
		;
}

#endif /* SKUA_TEST_SR_FORGE_H */
