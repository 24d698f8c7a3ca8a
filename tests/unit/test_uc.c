// SPDX-License-Identifier: GPL-2.0
/*
 * Unreliable connections: chapter 9.8.2 of the IBTA's specification, rule by rule.
 * What is amiss is dropped with its message; the next first packet begins anew.
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
#define IMM	0x8badf00d
#define GUARD	64

static const enum skua_wqe_op ops[] = {
	SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE, SKUA_WQE_WRITE_IMM,
};

static bool is_send(enum skua_wqe_op op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM;
}

static bool takes_recv(enum skua_wqe_op op)
{
	return op != SKUA_WQE_WRITE;
}

static void open_uc(struct rc *rc, const struct rc_opt *opt)
{
	struct rc_opt o = opt ? *opt : (struct rc_opt){ 0 };

	o.type = SKUA_QP_UC;
	o.caps = SKUA_CAP_UC;
	rc_open(rc, &o);
}

static void check_recv(struct rc *rc, enum skua_wqe_op op, uint32_t len)
{
	struct skua_cqe cqe = rc_expect(rc, 1, true, SKUA_CQE_OK);

	assert_int_equal(skua_cqe_opcode(&cqe), is_send(op) ? SKUA_CQE_RECV :
							      SKUA_CQE_RECV_WRITE_IMM);
	assert_int_equal(le32_to_cpu(cqe.byte_len), len);
	assert_int_equal(skua_cqe_flags(&cqe), op == SKUA_WQE_SEND ? 0 : SKUA_CQE_F_IMM);
	if (op != SKUA_WQE_SEND)
		assert_int_equal(be32toh(cqe.imm), IMM);
}

/* One message, wholly verified. */
static void message(struct rc *rc, enum skua_wqe_op op, uint32_t len, uint32_t seed)
{
	struct rc_wr wr = { .op = op, .len = len, .off = GUARD, .roff = GUARD, .imm = IMM };
	uint8_t *dst = rc->s[1].buf;

	memset(dst, 0xee, len + 2 * GUARD);
	rc_fill(rc->s[0].buf + GUARD, len, seed);
	if (takes_recv(op))
		rc_recv(rc, 1, is_send(op) ? GUARD : RC_BUF - 4096, is_send(op) ? len : 0);
	rc_post(rc, 0, &wr);
	rc_pump(rc);
	rc_expect(rc, 0, false, SKUA_CQE_OK);
	if (takes_recv(op))
		check_recv(rc, op, len);
	rc_expect_none(rc, 0, false);
	rc_expect_none(rc, 1, true);
	rc_check(dst + GUARD, len, seed);
	assert_int_equal(dst[GUARD - 1], 0xee);
	assert_int_equal(dst[GUARD + len], 0xee);
}

static void test_every_opcode_size_mtu(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t code = 1; code <= 5; code++) {
		uint32_t mtu = 128u << code, seed = 0;
		const uint32_t len[] = { 0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1,
					 5 * mtu + 7, 100 * mtu + 1 };

		open_uc(&rc, &(struct rc_opt){ .mtu_code = code, .psn = { 0xfffff0 },
					       .ipv6 = code & 1, .vlan = code == 3 ? 9 : 0 });
		for (size_t o = 0; o < N(ops); o++) {
			for (size_t k = 0; k < N(len); k++)
				message(&rc, ops[o], len[k], seed++);
		}
		/* "The responder does not answer." */
		assert_int_equal(rc.s[1].f.sent, 0);
		assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_OUT_OF_SEQUENCE), 0);
		rc_expect_no_event(&rc, 0);
		rc_expect_no_event(&rc, 1);
		rc_close(&rc);
	}
}

/* --- a bad wire --- */

struct wire {
	unsigned int seen;
	uint32_t lose;		/* bits of frames that are lost */
	int swap;		/* frame that comes behind the next, -1 */
	int dup;		/* frame that comes twice, -1 */
	struct fake_frame held;
	struct fake *to;
};

static bool bad_wire(void *priv, struct fake_frame *frame)
{
	struct wire *w = priv;
	unsigned int n = w->seen++;

	if (w->swap >= 0 && n == (unsigned int)w->swap) {
		w->held = *frame;
		return false;
	}
	if (w->dup >= 0 && n == (unsigned int)w->dup)
		fake_rx(w->to, frame->data, frame->len);
	if (w->swap >= 0 && n == (unsigned int)w->swap + 1) {
		fake_rx(w->to, frame->data, frame->len);
		*frame = w->held;
	}
	return !(n < 32 && w->lose & 1u << n);
}

/*
 * Three messages of four packets. @whole: bits of those that arrive. Whatever
 * becomes of one does not touch the next, and no receive WQE is lost.
 */
static void three(enum skua_wqe_op op, struct wire w, unsigned int whole)
{
	const uint32_t mtu = 256, len = 4 * 256 - 3;
	unsigned int arrived = 0;
	struct rc rc;

	open_uc(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 0xfffffa } });
	w.to = &rc.s[1].f;
	rc.s[0].f.filter = bad_wire;
	rc.s[0].f.filter_priv = &w;
	for (unsigned int k = 0; k < 3; k++) {
		rc_recv(&rc, 1, is_send(op) ? k * 4 * mtu : 0, is_send(op) ? len : 0);
		rc_fill(rc.s[0].buf + k * 4 * mtu, len, k);
		rc_post(&rc, 0, &(struct rc_wr){ .op = op, .len = len, .off = k * 4 * mtu,
						 .roff = k * 4 * mtu, .imm = IMM });
	}
	rc_pump(&rc);
	for (unsigned int k = 0; k < 3; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	for (unsigned int k = 0; k < 3; k++) {
		if (!(whole & 1u << k))
			continue;
		if (takes_recv(op))
			check_recv(&rc, op, len);
		/* A broken message's WQE takes the next message. */
		rc_check(rc.s[1].buf + (is_send(op) ? arrived : k) * 4 * mtu, len, k);
		arrived++;
	}
	rc_expect_none(&rc, 1, true);
	rc_expect_no_event(&rc, 1);
	assert_int_equal(rc.s[1].f.sent, 0);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	/* And it goes on. */
	message(&rc, SKUA_WQE_WRITE, 700, 7);
	rc_close(&rc);
}

static void test_each_packet_lost(void **state)
{
	(void)state;
	for (size_t o = 0; o < N(ops); o++) {
		for (unsigned int n = 0; n < 12; n++)
			three(ops[o], (struct wire){ .lose = 1u << n, .swap = -1, .dup = -1 },
			      7 & ~(1u << n / 4));
		/* The end of one and the start of the next: what is between fits neither. */
		for (unsigned int n = 0; n < 11; n++)
			three(ops[o], (struct wire){ .lose = 3u << n, .swap = -1, .dup = -1 },
			      7 & ~(1u << n / 4 | 1u << (n + 1) / 4));
		/* From the last of one to the first of another: what is left does not join up. */
		three(ops[o], (struct wire){ .lose = 0x1f8, .swap = -1, .dup = -1 }, 0);
	}
}

static void test_order(void **state)
{
	(void)state;
	for (size_t o = 0; o < N(ops); o++) {
		for (int n = 0; n < 11; n++) {
			/* Two of one message: it is broken. Over the edge: both. */
			unsigned int broken = 1u << n / 4 | 1u << (n + 1) / 4;

			three(ops[o], (struct wire){ .swap = n, .dup = -1 }, 7 & ~broken);
		}
		for (int n = 0; n < 12; n++) {
			/*
			 * Twice the first: the message begins anew. Twice the last: it is
			 * over by then. One between does not fit.
			 */
			bool harmless = n % 4 == 3 || n % 4 == 0;

			three(ops[o], (struct wire){ .swap = -1, .dup = n },
			      harmless ? 7 : 7 & ~(1u << n / 4));
		}
	}
}

/* --- what the responder does not take --- */

static void inject(struct rc *rc, uint8_t op, uint32_t psn, uint64_t va, uint32_t rkey,
		   uint32_t dmalen, uint32_t len)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4200];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), op, psn), 0);
	if (b.reth)
		ib_reth_put(b.reth, va, rkey, dmalen);
	memset(b.payload, 0x66, len);
	rc_inject(rc, 1, &b, len);
	fake_run(&rc->s[1].f);
}

/* "Silently dropped": nothing is written, said or consumed, and the next is taken. */
static void test_dropped(void **state)
{
	const uint8_t only = IB_OPCODE(UC, WRITE_ONLY), send = IB_OPCODE(UC, SEND_ONLY);
	const struct {
		const char *name;
		uint8_t op;
		uint64_t off;
		bool bad_key;
		uint32_t dmalen, len, room, access;
		enum skua_counter cnt;
	} cases[] = {
		{ "nothing amiss", only, 0, false, 8, 8, 64, 0, SKUA_CNT_RX_WRITE },
		{ "a key that is not", only, 0, true, 8, 8, 64, 0, SKUA_CNT_RESP_REMOTE_ACCESS },
		{ "beyond the region", only, RC_BUF - 4, false, 8, 8, 64, 0,
		  SKUA_CNT_RESP_REMOTE_ACCESS },
		{ "not set up for writes", only, 0, false, 8, 8, 64,
		  SKUA_ACCESS_REMOTE_READ, SKUA_CNT_COUNT },
		{ "more than was announced", only, 0, false, 4, 8, 64, 0, SKUA_CNT_COUNT },
		{ "less than was announced", only, 0, false, 16, 8, 64, 0, SKUA_CNT_COUNT },
		{ "longer than any message", only, 0, false, 0x80000001, 8, 64, 0,
		  SKUA_CNT_COUNT },
		{ "longer than the path MTU", only, 0, false, 300, 300, 64, 0, SKUA_CNT_COUNT },
		{ "a first packet that is not full", IB_OPCODE(UC, SEND_FIRST), 0, false, 0, 255,
		  1024, 0, SKUA_CNT_COUNT },
		{ "a middle one without a first", IB_OPCODE(UC, SEND_MIDDLE), 0, false, 0, 256,
		  1024, 0, SKUA_CNT_COUNT },
		{ "a last one without a first", IB_OPCODE(UC, SEND_LAST), 0, false, 0, 9, 1024, 0,
		  SKUA_CNT_COUNT },
		{ "a receive that is too short", send, 0, false, 0, 65, 64, 0,
		  SKUA_CNT_RESP_LOCAL_LEN },
		{ "no receive", send, 0, false, 0, 8, 0, 0, SKUA_CNT_OUT_OF_BUFFER },
		{ "no receive for an immediate", IB_OPCODE(UC, WRITE_ONLY_IMM), 0, false, 8, 8, 0,
		  0, SKUA_CNT_OUT_OF_BUFFER },
		{ "another transport", IB_OPCODE(RC, WRITE_ONLY), 0, false, 8, 8, 64, 0,
		  SKUA_CNT_RX_MALFORMED },
	};
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(cases); k++) {
		bool good = cases[k].cnt == SKUA_CNT_RX_WRITE;

		print_message("%s\n", cases[k].name);
		open_uc(&rc, &(struct rc_opt){ .mtu_code = 1, .access = cases[k].access });
		if (cases[k].room)
			rc_recv(&rc, 1, 0, cases[k].room);
		inject(&rc, cases[k].op, 0, RC_VA + cases[k].off,
		       rc.s[1].key + (cases[k].bad_key ? 0x100 : 0), cases[k].dmalen,
		       cases[k].len);
		if (cases[k].cnt != SKUA_CNT_COUNT)
			assert_int_equal(rc_cnt(&rc, 1, cases[k].cnt), 1);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), good);
		assert_int_equal(rc.s[1].buf[cases[k].off ? RC_BUF - 4 : 0], good ? 0x66 : 0);
		rc_expect_none(&rc, 1, true);
		rc_expect_no_event(&rc, 1);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		assert_int_equal(rc.s[1].f.sent, 0);
		/* The receive is there for the next one, whatever its PSN. */
		if (!cases[k].room)
			rc_recv(&rc, 1, 0, 64);
		inject(&rc, send, 0x777, 0, 0, 0, 5);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
		rc_close(&rc);
	}
}

/* A message that grows beyond its receive, and one of another kind in its midst. */
static void test_broken_in_the_midst(void **state)
{
	struct rc rc;

	(void)state;
	open_uc(&rc, &(struct rc_opt){ .mtu_code = 1 });
	rc_recv(&rc, 1, 0, 300);
	inject(&rc, IB_OPCODE(UC, SEND_FIRST), 0, 0, 0, 0, 256);
	inject(&rc, IB_OPCODE(UC, SEND_MIDDLE), 1, 0, 0, 0, 256);
	inject(&rc, IB_OPCODE(UC, SEND_LAST), 2, 0, 0, 0, 1);
	rc_expect_none(&rc, 1, true);
	inject(&rc, IB_OPCODE(UC, SEND_FIRST), 3, 0, 0, 0, 256);
	inject(&rc, IB_OPCODE(UC, WRITE_LAST), 4, 0, 0, 0, 1);
	inject(&rc, IB_OPCODE(UC, SEND_LAST), 5, 0, 0, 0, 1);
	rc_expect_none(&rc, 1, true);
	inject(&rc, IB_OPCODE(UC, WRITE_FIRST), 6, RC_VA + 4096, rc.s[1].key, 257, 256);
	inject(&rc, IB_OPCODE(UC, WRITE_LAST), 7, 0, 0, 0, 2);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), 0);
	inject(&rc, IB_OPCODE(UC, SEND_FIRST), 8, 0, 0, 0, 256);
	inject(&rc, IB_OPCODE(UC, SEND_LAST), 9, 0, 0, 0, 44);
	assert_int_equal(le32_to_cpu(rc_expect(&rc, 1, true, SKUA_CQE_OK).byte_len), 300);
	rc_close(&rc);
}

/* What is at fault on this side ends the QP. */
static void test_own_faults(void **state)
{
	struct sge sge;
	struct rc rc;

	(void)state;
	open_uc(&rc, NULL);
	sge = (struct sge){ RC_VA, 0x1f00, 64 };
	rc_recv_sge(&rc, 1, &sge, 1);
	rc_recv(&rc, 1, 0, 64);
	inject(&rc, IB_OPCODE(UC, SEND_ONLY), 0, 0, 0, 0, 8);
	rc_expect(&rc, 1, true, SKUA_CQE_LOC_PROT_ERR);
	rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
	rc_close(&rc);

	open_uc(&rc, NULL);
	fake_hole(&rc.s[1].f, rc.s[1].bus, 4096);
	inject(&rc, IB_OPCODE(UC, WRITE_ONLY), 0, RC_VA, rc.s[1].key, 8, 8);
	rc_expect_event(&rc, 1, SKUA_QP_EV_FATAL);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
	rc_close(&rc);
}

/* "Communication established": the first packet finds the QP in RTR. */
static void test_comm_est(void **state)
{
	struct rc rc;
	struct skua_qp_attr a;

	(void)state;
	open_uc(&rc, &(struct rc_opt){ .down = true });
	a = rc.s[1].attr;
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_INIT, SKUA_QP_M_PKEY |
					SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &a), 0);
	rc_recv(&rc, 1, 0, 64);
	inject(&rc, IB_OPCODE(UC, SEND_ONLY), 0, 0, 0, 0, 8);
	rc_expect_no_event(&rc, 1);
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RTR, SKUA_QP_M_AV |
					SKUA_QP_M_PATH_MTU | SKUA_QP_M_DEST_QPN |
					SKUA_QP_M_RQ_PSN, &a), 0);
	inject(&rc, IB_OPCODE(UC, SEND_ONLY), 0, 0, 0, 0, 8);
	rc_expect_event(&rc, 1, SKUA_QP_EV_COMM_EST);
	rc_expect(&rc, 1, true, SKUA_CQE_OK);
	rc_close(&rc);
}

/* --- the requester --- */

/* "Complete when sent": nobody need be there. */
static void test_nobody_there(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	open_uc(&rc, &(struct rc_opt){ .mtu_code = 1 });
	skua_dev_link(rc.s[0].f.dev, false);
	for (unsigned int k = 0; k < 4; k++)
		rc_post(&rc, 0, &(struct rc_wr){ .op = ops[k], .len = 100000, .quiet = k == 1 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	fake_run(&rc.s[0].f);
	for (unsigned int k = 0; k < 5; k++) {
		if (k == 1)
			continue;
		cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(skua_cqe_wqe_index(&cqe), k);
	}
	rc_expect_none(&rc, 0, false);
	fake_advance(&rc.s[0].f, 10000000000ull);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
	rc_close(&rc);
}

/* Requests that need an answer are none of this service. */
static void test_refused(void **state)
{
	static const enum skua_wqe_op bad[] = {
		SKUA_WQE_READ, SKUA_WQE_CAS, SKUA_WQE_FAA, SKUA_WQE_SEND_INV, SKUA_WQE_FLUSH,
		SKUA_WQE_ATOMIC_WRITE,
	};
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	open_uc(&rc, NULL);
	for (size_t k = 0; k < N(bad); k++) {
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = bad[k], .len = 8 });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE });
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
		assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_OPCODE);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_SQE);
		/* The receive side goes on. */
		rc_post(&rc, 1, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		rc_pump(&rc);
		rc_expect(&rc, 1, false, SKUA_CQE_OK);
		assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
		message(&rc, SKUA_WQE_SEND, 9000, k);
	}
	rc_close(&rc);
}

/* A message that fails in its midst is never ended; after SQE the next begins. */
static void test_fails_in_the_midst(void **state)
{
	struct rc_wr wr = { .op = SKUA_WQE_SEND, .nsge = 2 };
	struct rc rc;

	(void)state;
	open_uc(&rc, &(struct rc_opt){ .mtu_code = 1 });
	wr.sge[0] = (struct sge){ RC_VA, rc.s[0].key, 1000 };
	wr.sge[1] = (struct sge){ RC_VA, 0x1f00, 1000 };
	rc_recv(&rc, 1, 0, 4096);
	rc_post(&rc, 0, &wr);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_SQE);
	assert_int_equal(rc.s[0].f.sent, 3);
	rc_expect_none(&rc, 1, true);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
	rc_fill(rc.s[0].buf, 3000, 4);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 3000 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	check_recv(&rc, SKUA_WQE_SEND, 3000);
	rc_check(rc.s[1].buf, 3000, 4);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_OUT_OF_SEQUENCE), 0);
	rc_close(&rc);
}

/*
 * Very many requests are posted in SQE, and the queue is to go on at once: they are flushed before
 * it does, and it takes as many turns as for any queue in error.
 */
static void test_resume_many(void **state)
{
	struct skua_cmd_modify_qp_in in = { .mask = cpu_to_le32(SKUA_QP_M_STATE),
					    .cur_state = cpu_to_le32(SKUA_QP_ANY_STATE) };
	const struct skua_cmd_slot *slot;
	struct skua_dev *dev;
	char err[128] = "";
	struct rc rc;

	(void)state;
	open_uc(&rc, &(struct rc_opt){ .log_sq = 10, .log_cq = 11 });
	dev = rc.s[0].f.dev;
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	for (unsigned int k = 0; k < 1000; k++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	in.qpn = cpu_to_le32(rc.s[0].qp.qpn);
	in.attr.state = le32_encode_bits(SKUA_QP_RTS, SKUA_ATTR_STATE);
	/* A rule for the second such command does not take this one for two. */
	assert_int_equal(skua_dev_cmd_fault(dev, "MODIFY_QP@2:fail=BUSY", err, sizeof(err)), 0);
	slot = mini_cmd_start(&rc.s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), 0);
	for (unsigned int k = 1; k < 6; k++) {
		assert_true(skua_dev_run(dev));
		assert_in_range(dev->cnt[SKUA_CNT_REQ_CQE_FLUSH], 16 * k, 160 * k);
	}
	assert_int_not_equal(slot->done, slot->token);
	/* It is the oldest one still. */
	fake_wr32(&rc.s[0].f, SKUA_REG_CMDQ_DB, le32_to_cpu(slot->token));
	assert_int_equal(dev->cnt[SKUA_CNT_BAD_CMD_DB], 1);
	fake_run(&rc.s[0].f);
	assert_int_equal(slot->done, slot->token);
	assert_int_equal(slot->status, SKUA_CMD_ST_OK);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_RTS);
	for (unsigned int k = 0; k < 1000; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	message(&rc, SKUA_WQE_SEND, 9000, 1);
	rc_close(&rc);
}

static struct skua_cmd_slot *start_resume(struct rc *rc)
{
	struct skua_cmd_modify_qp_in in = { .qpn = cpu_to_le32(rc->s[0].qp.qpn),
					    .mask = cpu_to_le32(SKUA_QP_M_STATE),
					    .cur_state = cpu_to_le32(SKUA_QP_ANY_STATE) };

	in.attr.state = le32_encode_bits(SKUA_QP_RTS, SKUA_ATTR_STATE);
	return mini_cmd_start(&rc->s[0].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), 0);
}

static void post_many(struct rc *rc, enum skua_wqe_op op, unsigned int num)
{
	while (num--)
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){ .op = op, .len = 8 });
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
}

/* Take all completions, in the order of the ring from *@next on; returns those in error. */
static unsigned int take_all(struct rc *rc, uint32_t *next, bool *resumed)
{
	unsigned int flushed = 0;
	struct skua_cqe cqe;

	while (mini_cq_next(&rc->s[0].m, &rc->s[0].scq, &cqe)) {
		assert_int_equal(skua_cqe_wqe_index(&cqe), (*next)++ & 0xffff);
		*resumed |= skua_cqe_status(&cqe) == SKUA_CQE_OK;
		assert_int_equal(skua_cqe_status(&cqe), *resumed ? SKUA_CQE_OK :
								   SKUA_CQE_WR_FLUSH_ERR);
		flushed += !*resumed;
	}
	return flushed;
}

/*
 * Requests are posted faster than they are flushed, and without end: the queue goes on all the
 * same, or the commands after this one would wait for as long as its software likes.
 */
static void resume_while_posting(uint32_t qp_flags)
{
	unsigned int early = 1000, posted = early, flushed = 0;
	const struct skua_cmd_slot *slot;
	bool resumed = false;
	uint32_t next = 1;
	struct rc rc;

	open_uc(&rc, &(struct rc_opt){ .log_sq = 11, .log_cq = 12, .qp_flags = qp_flags });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	post_many(&rc, SKUA_WQE_NOP, early);
	slot = start_resume(&rc);
	for (unsigned int k = 0; slot->done != slot->token; k++) {
		assert_in_range(k, 0, 100);
		if (posted - (next - 1) + 200 <= 2048) {
			post_many(&rc, SKUA_WQE_WRITE, 200);
			posted += 200;
		}
		flushed += take_all(&rc, &next, &resumed);
		skua_dev_run(rc.s[0].f.dev);
	}
	assert_int_equal(slot->status, SKUA_CMD_ST_OK);
	rc_pump(&rc);
	flushed += take_all(&rc, &next, &resumed);
	/* All have completed, and those of before the command were not sent. */
	assert_int_equal(next - 1, posted);
	assert_in_range(flushed, early, posted - 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_WRITE), posted - flushed);
	message(&rc, SKUA_WQE_SEND, 9000, 1);
	rc_close(&rc);
}

static void test_resume_while_posting(void **state)
{
	(void)state;
	resume_while_posting(0);
	resume_while_posting(SKUA_QP_F_DB_SUPPRESS);
}

/* What was posted before the command without a doorbell is flushed too. */
static void test_resume_suppressed(void **state)
{
	bool resumed = false;
	uint32_t next = 1;
	struct rc rc;

	(void)state;
	open_uc(&rc, &(struct rc_opt){ .qp_flags = SKUA_QP_F_DB_SUPPRESS, .hot_looks = 8 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8 });
	skua_dev_run(rc.s[0].f.dev);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	assert_false(mini_ring(&rc.s[0].m, &rc.s[0].qp));
	start_resume(&rc);
	rc_pump(&rc);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_RTS);
	assert_int_equal(take_all(&rc, &next, &resumed), 1);
	/* It was taken from the record once. */
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_SQ_RECORD), 1);
	message(&rc, SKUA_WQE_SEND, 9000, 1);
	rc_close(&rc);
}

/* How far the first one flushes says nothing about the next one. */
static void test_resume_again(void **state)
{
	bool resumed = false;
	uint32_t next = 0;
	struct rc rc;

	(void)state;
	open_uc(&rc, NULL);
	for (unsigned int k = 0; k < 3; k++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
		next++;
		post_many(&rc, SKUA_WQE_NOP, 40);
		start_resume(&rc);
		rc_pump(&rc);
		assert_int_equal(take_all(&rc, &next, &resumed), 40);
		assert_false(resumed);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_RTS);
	}
	rc_close(&rc);
}

/* Nor does one that the device's reset has ended, of a QP with the same number. */
static void test_resume_reset(void **state)
{
	const struct rc_opt opt = { .type = SKUA_QP_UC, .log_sq = 10 };
	const struct skua_cmd_slot *slot;
	struct rc_side *s;
	struct rc rc;

	(void)state;
	open_uc(&rc, &opt);
	s = &rc.s[0];
	for (unsigned int k = 0; k < 2; k++) {
		uint32_t next = 1, qpn = s->qp.qpn;
		bool resumed = false;

		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
		post_many(&rc, SKUA_WQE_NOP, 300 + k * 300);
		slot = start_resume(&rc);
		assert_true(skua_dev_run(s->f.dev));
		assert_int_not_equal(slot->done, slot->token);
		if (k) {
			rc_pump(&rc);
			assert_int_equal(take_all(&rc, &next, &resumed), 600);
			continue;
		}
		skua_dev_reset(s->f.dev, SKUA_RESET_FLR);
		fake_bus(&s->f, true, true);
		mini_up(&s->m, &s->f);
		assert_int_equal(mini_gid(&s->m, 0, 1, false, SKUA_GID_NO_VLAN), 0);
		mini_cq_create(&s->m, &s->scq, 10);
		mini_cq_create(&s->m, &s->rcq, 10);
		rc_qp(&rc, 0, &s->qp, &opt);
		assert_int_equal(s->qp.qpn, qpn);
		mini_rc_to_rts(&s->m, &s->qp, &s->attr);
	}
	rc_close(&rc);
}

/* What is flushed then does not fit in the CQ: the queue is in ERR, and does not leave that so. */
static void test_resume_full(void **state)
{
	struct rc rc;

	(void)state;
	open_uc(&rc, &(struct rc_opt){ .log_cq = 3 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8 });
	rc_pump(&rc);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_SQE);
	for (unsigned int k = 0; k < 12; k++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL),
			 SKUA_CMD_ST_BAD_STATE);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
	rc_close(&rc);
}

/* The guest changes what is being sent: an error of its own queue. */
static void test_changed_while_sent(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	open_uc(&rc, NULL);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
	skua_dev_run(rc.s[0].f.dev);
	memset(fake_ptr(&rc.s[0].f, rc.s[0].qp.sq), 0xff, 64);
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_CHANGED);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_SQE);
	rc_close(&rc);
}

/* SQD: what was begun is finished, then the queue is drained. */
static void test_sqd(void **state)
{
	struct rc rc;

	(void)state;
	open_uc(&rc, NULL);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	skua_dev_run(rc.s[0].f.dev);
	rc_drain(&rc, 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	rc_expect_event(&rc, 0, SKUA_QP_EV_SQ_DRAINED);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_opcode_size_mtu),
		cmocka_unit_test(test_each_packet_lost),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_broken_in_the_midst),
		cmocka_unit_test(test_own_faults),
		cmocka_unit_test(test_comm_est),
		cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fails_in_the_midst),
		cmocka_unit_test(test_resume_many),
		cmocka_unit_test(test_resume_while_posting),
		cmocka_unit_test(test_resume_suppressed),
		cmocka_unit_test(test_resume_again),
		cmocka_unit_test(test_resume_reset),
		cmocka_unit_test(test_resume_full),
		cmocka_unit_test(test_changed_while_sent),
		cmocka_unit_test(test_sqd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
