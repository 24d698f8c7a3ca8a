// SPDX-License-Identifier: GPL-2.0
/*
 * What a QP loses by others that share its device: by a peer without receives, by one that does
 * not answer, by a QP in error, by floods of packets that are wrong in some way. Two NICs of
 * 100 Gbit/s, 2 us apart, under a virtual clock: the healthy QP sends all the time, both ways,
 * and is to get 95 % of what it gets alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rc.h"
#include "roce/pkt.h"
#include "wire/fabric.h"
#include "wire/wire.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define USEC		1000ull
#define LEN		(64u << 10)
#define BATCH		32
/* Time in which bytes are counted, and between two looks of the programs. */
#define SPAN		(4000 * USEC)
/* Time in which all retries of a QP are over, and the code of its timeout, 1 ms. */
#define SPAN_RETRIES	(12000 * USEC)
#define TIMEOUT		8
#define LOOK		(5 * USEC)
/* A flood: a packet in so many nanoseconds, which is more than 40 Gbit/s of short ones. */
#define FLOOD_NS	16

/**
 * struct iso - two NICs and their network
 * @rc: the healthy connection
 * @sick: the other one
 * @wire: the network
 * @port: its ports
 * @moved: bytes of the healthy one that arrived at each side
 * @heard: frames that side 1 sent besides those of the healthy one
 * @flood: packets that were given to side 1
 */
struct iso {
	struct rc rc;
	struct mini_qp sick[2];
	struct wire *wire;
	struct wire_port *port[2];
	uint64_t moved[2], heard, flood;
	struct iso_end {
		struct iso *iso;
		int i;
	} end[2];
};

/* --- the network --- */

static void note(struct iso *s, int from, const void *frame, size_t len)
{
	struct skua_pkt pkt;

	assert_int_equal(skua_pkt_parse_ip(frame, len, &pkt), SKUA_PKT_OK);
	assert_int_equal(skua_pkt_parse_ib_pending(&pkt), SKUA_PKT_OK);
	if (pkt.dqpn != s->rc.s[1 - from].qp.qpn)
		s->heard += from;
}

static void iso_send(void *priv, const void *frame, size_t len)
{
	struct iso_end *e = priv;

	note(e->iso, e->i, frame, len);
	wire_port_send(e->iso->port[e->i], frame, len);
}

static void iso_send_pending(void *priv, void *frame, size_t len)
{
	struct iso_end *e = priv;

	note(e->iso, e->i, frame, len);
	wire_port_send_pending(e->iso->port[e->i], frame, len);
}

static bool iso_full(void *priv, const uint8_t dmac[6])
{
	struct iso_end *e = priv;

	return wire_port_full(e->iso->port[e->i], dmac);
}

static void *iso_frame(void *priv, size_t size)
{
	(void)priv;
	(void)size;
	return NULL;
}

static const struct skua_wire_ops iso_ops = {
	.send = iso_send,
	.send_pending = iso_send_pending,
	.frame = iso_frame,
	.full = iso_full,
};

static void iso_rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct iso_end *e = priv;
	struct skua_pkt pkt;

	/* ICRCs that are written later are no matter here. */
	assert_int_equal(skua_pkt_parse_ip(frame, len, &pkt), SKUA_PKT_OK);
	assert_int_equal(skua_pkt_parse_ib_pending(&pkt), SKUA_PKT_OK);
	if (pkt.dqpn == e->iso->rc.s[e->i].qp.qpn)
		e->iso->moved[e->i] += pkt.payload_len;
	if (skua_dev_rx(e->iso->rc.s[e->i].f.dev, frame, len, icrc_pending))
		wire_port_again(e->iso->port[e->i]);
}

static void iso_room(void *priv)
{
	struct iso_end *e = priv;

	skua_dev_room(e->iso->rc.s[e->i].f.dev);
}

static uint64_t clock_of(void *priv)
{
	return ((struct fake *)priv)->now;
}

static void settle(struct iso *s)
{
	bool more = true;

	for (unsigned int round = 0; more; round++) {
		assert_true(round < 10000000);
		more = wire_poll(s->wire, s->rc.s[0].f.now);
		for (int i = 0; i < 2; i++)
			more |= skua_dev_run(s->rc.s[i].f.dev);
	}
}

static void pass(struct iso *s, uint64_t ns)
{
	struct fake *f[2] = { &s->rc.s[0].f, &s->rc.s[1].f };
	uint64_t end = f[0]->now + ns, next;

	for (settle(s);; settle(s)) {
		next = wire_deadline(s->wire);
		for (int i = 0; i < 2; i++)
			next = f[i]->deadline < next ? f[i]->deadline : next;
		if (next > end)
			break;
		for (int i = 0; i < 2; i++)
			f[i]->now = next > f[i]->now ? next : f[i]->now;
		for (int i = 0; i < 2; i++) {
			if (f[i]->deadline > f[i]->now)
				continue;
			f[i]->deadline = SKUA_TIME_NEVER;
			skua_dev_tick(f[i]->dev);
		}
	}
	f[0]->now = end;
	f[1]->now = end;
}

static void iso_open(struct iso *s, const struct rc_opt *opt)
{
	static const struct fabric_cfg fabric = {
		.nics = 2, .rate_mbps = 100000, .nic_ns = 500, .queue_bytes = 4 << 20,
		.nic_bytes = 16 << 10,
	};
	char err[200] = "";

	memset(s, 0, sizeof(*s));
	rc_open(&s->rc, opt);
	s->wire = wire_create(1);
	assert_non_null(s->wire);
	if (wire_use_fabric(s->wire, &fabric, err, sizeof(err)))
		fail_msg("%s", err);
	wire_set_clock(s->wire, clock_of, &s->rc.s[0].f);
	for (int i = 0; i < 2; i++) {
		struct fake *f = &s->rc.s[i].f;

		s->end[i] = (struct iso_end){ s, i };
		s->port[i] = wire_add_dev(s->wire, i ? "nic1" : "nic0", iso_rx, &s->end[i]);
		assert_non_null(s->port[i]);
		wire_port_only_mac(s->port[i], s->rc.s[i].mac);
		wire_port_on_room(s->port[i], iso_room);
		f->net = &iso_ops;
		f->net_priv = &s->end[i];
		rc_qp(&s->rc, i, &s->sick[i], opt);
	}
}

static void iso_close(struct iso *s)
{
	wire_destroy(s->wire);
	rc_close(&s->rc);
}

/* --- programs --- */

/* Keep a queue full: completions make room. */
static void feed(struct iso *s, int i, struct mini_qp *qp, uint32_t *outstanding, uint32_t most,
		 enum skua_wqe_op op)
{
	bool posted = false;

	for (; *outstanding < most; ++*outstanding, posted = true)
		rc_post_quiet(&s->rc, i, qp, &(struct rc_wr){ .op = op, .len = LEN,
				.off = i * (8 << 20), .roff = i * (8 << 20) });
	if (posted)
		mini_ring(&s->rc.s[i].m, qp);
}

static uint32_t drain(struct iso *s, int i, struct mini_qp *qp, uint32_t *flushed)
{
	struct skua_cqe cqe;
	uint32_t n = 0;

	while (mini_cq_next(&s->rc.s[i].m, &s->rc.s[i].scq, &cqe)) {
		if (le32_to_cpu(cqe.qpn) == qp->qpn)
			n++;
		else
			++*flushed;
	}
	return n;
}

/* --- who is sick, and how --- */

enum sick { ALONE, RNR, NO_ANSWER, IN_ERROR, FLOOD_NO_QP, FLOOD_PEER, FLOOD_FAR, FLOOD_OLD,
	    FLOOD_KEY, FLOOD_STATE, KINDS };

static const char *const name[] = {
	"alone", "a peer without receives", "a peer that does not answer", "a QP in error",
	"packets for no QP", "packets from another address", "PSNs far ahead", "PSNs of the past",
	"bad keys", "packets for a QP in error",
};

static void connect(struct iso *s, enum sick kind, const struct rc_opt *opt)
{
	for (int i = 0; i < 2; i++) {
		struct skua_qp_attr a = rc_attr(&s->rc, i, opt, s->sick[1 - i].qpn);

		/* The shortest RNR timer. */
		le32p_replace_bits(&a.retry, 1, SKUA_ATTR_MIN_RNR_TIMER);
		le32p_replace_bits(&a.retry, TIMEOUT, SKUA_ATTR_ACK_TIMEOUT);
		if (kind == NO_ANSWER && i)
			continue;
		mini_rc_to_rts(&s->rc.s[i].m, &s->sick[i], &a);
	}
	if (kind == IN_ERROR)
		assert_int_equal(mini_qp_modify(&s->rc.s[0].m, &s->sick[0], SKUA_QP_ERR, 0, NULL), 0);
	if (kind == FLOOD_STATE)
		assert_int_equal(mini_qp_modify(&s->rc.s[1].m, &s->sick[1], SKUA_QP_ERR, 0, NULL), 0);
}

/* One packet of a flood. */
static void flood(struct iso *s, enum sick kind)
{
	static const uint8_t stranger[4] = { 192, 0, 2, 99 };
	struct skua_pkt_addr a = rc_addr(&s->rc, 0);
	struct skua_pkt_bth bth = {
		.opcode = IB_OPCODE(RC, WRITE_ONLY), .pkey = 0xffff, .dqpn = s->sick[1].qpn,
		.psn = le32_to_cpu(s->rc.s[0].attr.sq_psn), .ackreq = true, .migreq = true,
	};
	struct skua_pkt_build b;
	uint8_t frame[256];
	size_t len;

	if (kind == FLOOD_NO_QP)
		bth.dqpn = 0xabcdef;
	if (kind == FLOOD_PEER) {
		bth.dqpn = s->rc.s[1].qp.qpn;
		ib_gid_from_v4(a.sgid, stranger);
	}
	if (kind == FLOOD_FAR)
		bth.psn += 0x100000 + (uint32_t)s->flood % 1000;
	if (kind == FLOOD_OLD)
		bth.psn -= 1 + (uint32_t)s->flood % 1000;
	bth.psn &= IB_PSN_MASK;
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
	ib_reth_put(b.reth, RC_VA, kind == FLOOD_KEY ? 0x123456 : s->rc.s[1].key, 8);
	memset(b.payload, 0x66, 8);
	len = skua_pkt_build_finish(&b, 8);
	assert_true(len);
	skua_dev_rx(s->rc.s[1].f.dev, frame, len, false);
	s->flood++;
}

static void one_look(struct iso *s, enum sick kind, uint32_t out[2], uint32_t *out_sick)
{
	uint32_t done = 0, none = 0;

	for (int i = 0; i < 2; i++) {
		out[i] -= drain(s, i, &s->rc.s[i].qp, i ? &none : &done);
		feed(s, i, &s->rc.s[i].qp, &out[i], BATCH, SKUA_WQE_WRITE);
	}
	*out_sick -= done;
	if (kind == RNR || kind == NO_ANSWER || kind == IN_ERROR)
		feed(s, 0, &s->sick[0], out_sick, 8,
		     kind == NO_ANSWER ? SKUA_WQE_WRITE : SKUA_WQE_SEND);
	if (kind < FLOOD_NO_QP) {
		pass(s, LOOK);
		return;
	}
	for (uint64_t ns = 0; ns < LOOK; ns += 10 * FLOOD_NS) {
		for (unsigned int n = 0; n < 10; n++)
			flood(s, kind);
		pass(s, 10 * FLOOD_NS);
	}
}

/* Bytes of the healthy one both ways; DMA accesses of both devices. */
static uint64_t run(enum sick kind, const struct rc_opt *opt, uint64_t span, uint64_t *dma,
		    uint64_t *heard)
{
	static struct iso s;
	uint32_t out[2] = { 0 }, out_sick = 0;
	uint64_t before;

	iso_open(&s, opt);
	if (kind)
		connect(&s, kind, opt);
	before = s.rc.s[1].f.reads + s.rc.s[1].f.writes;
	for (uint64_t ns = 0; ns < span; ns += LOOK)
		one_look(&s, kind, out, &out_sick);
	*dma = s.rc.s[1].f.reads + s.rc.s[1].f.writes - before;
	*heard = s.heard;
	before = s.moved[0] < s.moved[1] ? s.moved[0] : s.moved[1];
	print_message("%s: %llu and %llu bytes, DMA %llu, others' frames %llu, flood %llu\n",
		      name[kind], (unsigned long long)s.moved[0], (unsigned long long)s.moved[1],
		      (unsigned long long)*dma, (unsigned long long)*heard,
		      (unsigned long long)s.flood);
	assert_int_equal(rc_state(&s.rc, 0), SKUA_QP_RTS);
	assert_int_equal(rc_state(&s.rc, 1), SKUA_QP_RTS);
	assert_int_equal(rc_cnt(&s.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR) +
			 rc_cnt(&s.rc, 1, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR),
			 kind == NO_ANSWER ? rc_cnt(&s.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR) : 0);
	/* It went through all of its retries: each of them sends again what waits. */
	if (kind == NO_ANSWER) {
		struct skua_cmd_query_qp_out out_qp;

		assert_int_equal(mini_index(&s.rc.s[0].m, SKUA_CMD_QUERY_QP, s.sick[0].qpn, &out_qp,
					    sizeof(out_qp)), 0);
		assert_int_equal(le32_get_bits(out_qp.sqc.attr.state, SKUA_ATTR_STATE), SKUA_QP_ERR);
		assert_int_equal(rc_cnt(&s.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 8);
	}
	iso_close(&s);
	return before;
}

static void isolation(const struct rc_opt *opt)
{
	uint64_t alone, dma_alone, dma, heard, flood = SPAN / FLOOD_NS;

	alone = run(ALONE, opt, SPAN_RETRIES, &dma, &heard);
	assert_true(run(NO_ANSWER, opt, SPAN_RETRIES, &dma, &heard) * 100 >= 95 * alone);
	alone = run(ALONE, opt, SPAN, &dma_alone, &heard);
	/* 90 % of the wire's rate at least: it is the wire that limits. */
	assert_true(alone * 8 > 90 * SPAN);
	for (enum sick kind = RNR; kind < KINDS; kind++) {
		if (kind == NO_ANSWER)
			continue;
		assert_true(run(kind, opt, SPAN, &dma, &heard) * 100 >= 95 * alone);
		if (kind < FLOOD_NO_QP)
			continue;
		/* What is wrong costs the device no access to memory, and no answer for each. */
		assert_true(dma <= dma_alone + flood / 20);
		assert_true(heard <= flood / 20);
	}
}

static const struct rc_opt back = {
	.mtu_code = 5, .log_sq = 8, .log_rq = 6, .log_cq = 12, .timeout = 10,
};

static void test_back(void **state)
{
	(void)state;
	isolation(&back);
}

static void test_selective(void **state)
{
	struct rc_opt opt = back;

	(void)state;
	opt.ext[0] = SKUA_EXT_ALWAYS;
	opt.ext[1] = SKUA_EXT_ALWAYS;
	isolation(&opt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_back),
		cmocka_unit_test(test_selective),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
