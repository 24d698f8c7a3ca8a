// SPDX-License-Identifier: GPL-2.0
/*
 * RC without faults: every opcode, sizes around every boundary, lists, inline,
 * completions, events, and the ends of the number spaces.
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
#include "roce/engine.h"

#define GUARD	64
#define IMM	0x8badf00d

static const enum skua_wqe_op ops[] = {
	SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE, SKUA_WQE_WRITE_IMM, SKUA_WQE_READ,
};

#define N(a)	(sizeof(a) / sizeof((a)[0]))

static bool takes_recv(enum skua_wqe_op op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM || op == SKUA_WQE_WRITE_IMM;
}

static bool is_send(enum skua_wqe_op op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM;
}

static void check_recv(struct rc *rc, enum skua_wqe_op op, uint32_t len)
{
	struct skua_cqe cqe = rc_expect(rc, 1, true, SKUA_CQE_OK);
	bool imm = op != SKUA_WQE_SEND;

	assert_int_equal(skua_cqe_opcode(&cqe),
			 op == SKUA_WQE_WRITE_IMM ? SKUA_CQE_RECV_WRITE_IMM : SKUA_CQE_RECV);
	assert_int_equal(le32_to_cpu(cqe.byte_len), len);
	assert_int_equal(le32_to_cpu(cqe.qpn), rc->s[1].qp.qpn);
	assert_int_equal(!!(skua_cqe_flags(&cqe) & SKUA_CQE_F_IMM), imm);
	if (imm)
		assert_int_equal(be32toh(cqe.imm), IMM);
}

/* One message of @len bytes, wholly verified: data, guards, completions. */
static void message(struct rc *rc, enum skua_wqe_op op, uint32_t len, uint32_t seed)
{
	struct rc_wr wr = { .op = op, .len = len, .off = GUARD, .roff = GUARD, .imm = IMM };
	int to = op == SKUA_WQE_READ ? 0 : 1;
	uint8_t *src = rc->s[1 - to].buf, *dst = rc->s[to].buf;
	struct skua_cqe cqe;
	uint32_t index = rc->s[0].qp.sq_pi;

	memset(dst, 0xee, len + 2 * GUARD);
	rc_fill(src + GUARD, len, seed);
	if (takes_recv(op))
		rc_recv(rc, 1, is_send(op) ? GUARD : RC_BUF - 4096, is_send(op) ? len : 0);
	rc_post(rc, 0, &wr);
	rc_pump(rc);
	cqe = rc_expect(rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(skua_cqe_wqe_index(&cqe), index & 0xffff);
	assert_int_equal(le32_to_cpu(cqe.byte_len), op == SKUA_WQE_READ ? len : 0);
	assert_int_equal(le32_to_cpu(cqe.qpn), rc->s[0].qp.qpn);
	if (takes_recv(op))
		check_recv(rc, op, len);
	rc_expect_none(rc, 0, false);
	rc_expect_none(rc, 1, true);
	rc_check(dst + GUARD, len, seed);
	for (uint32_t k = 0; k < GUARD; k++) {
		assert_int_equal(dst[k], 0xee);
		assert_int_equal(dst[GUARD + len + k], 0xee);
	}
}

static void no_trouble(struct rc *rc)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_TX_RETRANS_PKTS), 0);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_TX_NAK), 0);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_RX_BAD_RESP), 0);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_DUPLICATE_REQUEST), 0);
		assert_int_equal(rc_cnt(rc, i, SKUA_CNT_OUT_OF_SEQUENCE), 0);
		rc_expect_no_event(rc, i);
	}
}

static void test_every_opcode_size_mtu(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t code = 1; code <= 5; code++) {
		uint32_t mtu = 128u << code, seed = 0;
		const uint32_t len[] = { 0, 1, 2, 3, 4, 5, 63, mtu - 1, mtu, mtu + 1, 2 * mtu - 1,
					 2 * mtu, 2 * mtu + 1, 5 * mtu + 7, 16384, 16385 };

		rc_open(&rc, &(struct rc_opt){ .mtu_code = code });
		for (size_t o = 0; o < N(ops); o++) {
			for (size_t k = 0; k < N(len); k++)
				message(&rc, ops[o], len[k], seed++);
		}
		no_trouble(&rc);
		rc_close(&rc);
	}
}

static void test_long_messages(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t code = 1; code <= 5; code += 2) {
		rc_open(&rc, &(struct rc_opt){ .mtu_code = code, .psn = { 0xffff00, 0xfff000 } });
		for (size_t o = 0; o < N(ops); o++)
			message(&rc, ops[o], (8u << 20) + 12345, o);
		no_trouble(&rc);
		rc_close(&rc);
	}
}

static void test_ipv6_vlan(void **state)
{
	const struct rc_opt opt[] = {
		{ .ipv6 = true }, { .vlan = 100 }, { .ipv6 = true, .vlan = 4094, .mtu_code = 3 },
	};
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(opt); k++) {
		rc_open(&rc, &opt[k]);
		for (size_t o = 0; o < N(ops); o++)
			message(&rc, ops[o], 10000, o);
		no_trouble(&rc);
		rc_close(&rc);
	}
}

/* Cut @len bytes from @off of a buffer into @n elements, some of them empty. */
static uint32_t cut(struct sge *sge, uint32_t n, uint64_t off, uint32_t len, uint32_t key,
		    unsigned int *seed)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? len : rand_r(seed) % 4 ? rand_r(seed) % (len + 1) : 0;

		sge[i] = (struct sge){ .addr = RC_VA + off, .lkey = key, .len = part };
		off += part;
		len -= part;
	}
	return n;
}

static void test_lists(void **state)
{
	unsigned int seed = 7;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 2, .log_stride = 4 });
	for (unsigned int k = 0; k < 300; k++) {
		enum skua_wqe_op op = ops[k % N(ops)];
		uint32_t len = rand_r(&seed) % 6000;
		struct rc_wr wr = { .op = op, .roff = 777, .imm = IMM };
		struct sge recv[16];
		int to = op == SKUA_WQE_READ ? 0 : 1;
		uint64_t off = is_send(op) ? 555 : op == SKUA_WQE_READ ? 333 : 777;

		wr.nsge = cut(wr.sge, 1 + rand_r(&seed) % 14, 333, len, rc.s[0].key, &seed);
		rc_fill(rc.s[1 - to].buf + (to ? 333 : 777), len, k);
		memset(rc.s[to].buf + off, 0, len);
		if (takes_recv(op))
			rc_recv_sge(&rc, 1, recv, cut(recv, 1 + rand_r(&seed) % 16, 555, len,
						      rc.s[1].key, &seed));
		rc_post(&rc, 0, &wr);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		if (takes_recv(op))
			check_recv(&rc, op, len);
		rc_check(rc.s[to].buf + off, len, k);
	}
	no_trouble(&rc);
	rc_close(&rc);
}

static void test_inline(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
	for (uint32_t len = 0; len <= MODEL_MAX_INLINE; len += len < 70 ? 1 : 13) {
		struct rc_wr wr = { .op = SKUA_WQE_SEND, .flags = SKUA_WQE_F_INLINE, .len = len };

		rc_fill(rc.s[0].buf, len, len);
		memset(rc.s[1].buf, 0, 2048);
		rc_recv(&rc, 1, 0, 1024);
		rc_post(&rc, 0, &wr);
		/* The buffer is free as soon as the request is posted. */
		memset(rc.s[0].buf, 0xcc, len);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		check_recv(&rc, SKUA_WQE_SEND, len);
		rc_check(rc.s[1].buf, len, len);
		rc_fill(rc.s[0].buf, len, len + 1);
		wr.op = SKUA_WQE_WRITE;
		wr.roff = 1024;
		rc_post(&rc, 0, &wr);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_check(rc.s[1].buf + 1024, len, len + 1);
	}
	no_trouble(&rc);
	rc_close(&rc);
}

/* Many requests behind one doorbell, WQEs of changing size round a small ring. */
static void test_ring_wrap(void **state)
{
	struct rc rc;
	unsigned int seed = 3;
	struct skua_cqe cqe;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .log_sq = 4, .log_rq = 3 });
	for (unsigned int round = 0; round < 9000; round++) {
		uint32_t free = 16, index[16], n = 0;

		while (free >= 4 && n < 8) {
			struct rc_wr wr = { .op = SKUA_WQE_SEND, .len = 8, .off = n * 8 };

			wr.nsge = rand_r(&seed) % 15;
			cut(wr.sge, wr.nsge, n * 8, 8, rc.s[0].key, &seed);
			rc_fill(rc.s[0].buf + n * 8, 8, round + n);
			rc_recv(&rc, 1, n * 8, 8);
			index[n++] = rc.s[0].qp.sq_pi;
			rc_post_quiet(&rc, 0, &rc.s[0].qp, &wr);
			free -= rc.s[0].qp.sq_pi - index[n - 1];
		}
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		for (uint32_t k = 0; k < n; k++) {
			cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
			assert_int_equal(skua_cqe_wqe_index(&cqe), index[k] & 0xffff);
			check_recv(&rc, SKUA_WQE_SEND, 8);
			rc_check(rc.s[1].buf + k * 8, 8, round + k);
		}
	}
	/* The block index passed 2^16. */
	assert_true(rc.s[0].qp.sq_pi > 1 << 16);
	no_trouble(&rc);
	rc_close(&rc);
}

static void test_unsignaled(void **state)
{
	struct rc rc;
	struct skua_cqe cqe;

	(void)state;
	rc_open(&rc, NULL);
	for (unsigned int k = 0; k < 10; k++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp,
			      &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .quiet = k < 9 });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(skua_cqe_wqe_index(&cqe), 9);
	rc_expect_none(&rc, 0, false);
	/* One acknowledgment for all of them. */
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_TX_ACK), 1);
	no_trouble(&rc);
	rc_close(&rc);
}

/* NOPs complete in order with the others, and cost no packet. */
static void test_nop(void **state)
{
	static const enum skua_wqe_op seq[] = {
		SKUA_WQE_NOP, SKUA_WQE_WRITE, SKUA_WQE_NOP, SKUA_WQE_NOP, SKUA_WQE_READ,
		SKUA_WQE_NOP,
	};
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	for (unsigned int k = 0; k < N(seq); k++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = seq[k], .len = 99 });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	for (unsigned int k = 0; k < N(seq); k++) {
		struct skua_cqe cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);

		assert_int_equal(skua_cqe_wqe_index(&cqe), k);
	}
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RDMA_TX_PKTS), 2);
	no_trouble(&rc);
	rc_close(&rc);
}

/* Side 0 alone: one WRITE that is not answered, @num of @len bytes inline, and @nops NOPs. */
static void open_alone(struct rc *rc, unsigned int num, uint32_t len, unsigned int nops)
{
	rc_open(rc, &(struct rc_opt){ .log_sq = 12, .log_cq = 12, .psn = { 100, 7 } });
	rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
	for (unsigned int k = 0; k < num; k++)
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .flags = SKUA_WQE_F_INLINE, .len = len });
	for (unsigned int k = 0; k < nops; k++)
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
	fake_run(&rc->s[0].f);
}

/* The peer's acknowledgment of so many packets; nothing is done but what that one frame does. */
static void acknowledge(struct rc *rc, uint32_t num)
{
	uint8_t frame[SKUA_PKT_OVERHEAD];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), IB_OPCODE(RC, ACK),
				  99 + num), 0);
	ib_aeth_put(b.aeth, IB_AETH_ACK | IB_AETH_CREDIT_INVALID, num);
	rc_inject(rc, 0, &b, 0);
}

static unsigned int completed(struct rc *rc)
{
	struct skua_cqe cqe;
	unsigned int n = 0;

	while (mini_cq_next(&rc->s[0].m, &rc->s[0].scq, &cqe)) {
		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
		n++;
	}
	return n;
}

/* However many NOPs wait for a message, its acknowledgment does not complete all at once. */
static void test_many_nops(void **state)
{
	unsigned int n;
	struct rc rc;

	(void)state;
	open_alone(&rc, 0, 0, 4000);
	acknowledge(&rc, 1);
	n = completed(&rc);
	assert_in_range(n, 100, 513);
	fake_run(&rc.s[0].f);
	assert_int_equal(n + completed(&rc), 4001);
	rc_close(&rc);
}

/* Nor does one that became many NOPs, which were never executed. */
static void test_became_nops(void **state)
{
	struct mini_qp qp;
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	open_alone(&rc, 100, 512, 1);
	qp = rc.s[0].qp;
	for (qp.sq_pi = 1; qp.sq_pi != 1 + 100 * 9;)
		rc_post_quiet(&rc, 0, &qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	memset(rc.s[0].f.dev->engine->flight, 0, sizeof(rc.s[0].f.dev->engine->flight));
	acknowledge(&rc, 101);
	/* The first message, and as many NOPs as were posted. */
	for (unsigned int k = 0; k < 2; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_CHANGED);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
	rc_close(&rc);
}

static unsigned int comp_events(struct rc *rc, int i)
{
	struct mini *m = &rc->s[i].m;
	struct skua_eqe eqe;
	unsigned int n = 0;

	while (mini_eq_next(m, &m->eq[MINI_EQ_COMP], &eqe))
		n++;
	mini_eq_db(m, &m->eq[MINI_EQ_COMP], true);
	return n;
}

static void test_solicited(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	for (unsigned int k = 0; k < 4; k++)
		rc_recv(&rc, 1, 0, 100);
	mini_cq_arm(&rc.s[1].m, &rc.s[1].rcq, true);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 10 });
	rc_pump(&rc);
	assert_int_equal(comp_events(&rc, 1), 0);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 10,
					 .flags = SKUA_WQE_F_SOLICITED });
	rc_pump(&rc);
	assert_int_equal(comp_events(&rc, 1), 1);
	for (unsigned int k = 0; k < 2; k++) {
		struct skua_cqe cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);

		assert_int_equal(!!(skua_cqe_flags(&cqe) & SKUA_CQE_F_SOLICITED), k);
	}
	mini_cq_arm(&rc.s[1].m, &rc.s[1].rcq, true);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE_IMM, .len = 10,
					 .flags = SKUA_WQE_F_SOLICITED });
	rc_pump(&rc);
	assert_int_equal(comp_events(&rc, 1), 1);
	/* A WRITE has nobody to tell. */
	rc_expect(&rc, 1, true, SKUA_CQE_OK);
	mini_cq_arm(&rc.s[1].m, &rc.s[1].rcq, true);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 10,
					 .flags = SKUA_WQE_F_SOLICITED });
	rc_pump(&rc);
	assert_int_equal(comp_events(&rc, 1), 0);
	rc_close(&rc);
}

/* Both directions at once, all opcodes, deep queues. */
static void test_both_ways(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 3, .rd_atomic = 3 });
	for (int i = 0; i < 2; i++) {
		rc_fill(rc.s[i].buf, 1 << 20, 40 + i);
		for (unsigned int k = 0; k < 20; k++) {
			enum skua_wqe_op op = ops[k % N(ops)];

			rc_recv(&rc, i, (10 << 20) + k * 100000, 100000);
			rc_post_quiet(&rc, i, &rc.s[i].qp, &(struct rc_wr){
				.op = op, .off = op == SKUA_WQE_READ ? (6 << 20) + k * 100000 : 0,
				.len = 99999, .roff = op == SKUA_WQE_READ ? 0 :
				(3 << 20) + k * 100000, .imm = IMM });
		}
	}
	for (int i = 0; i < 2; i++)
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
	rc_pump(&rc);
	for (int i = 0; i < 2; i++) {
		unsigned int recv = 0;

		for (unsigned int k = 0; k < 20; k++) {
			enum skua_wqe_op op = ops[k % N(ops)];
			uint8_t *other = rc.s[1 - i].buf;

			rc_expect(&rc, i, false, SKUA_CQE_OK);
			if (takes_recv(op))
				rc_expect(&rc, 1 - i, true, SKUA_CQE_OK);
			if (is_send(op))
				rc_check(other + (10 << 20) + recv * 100000, 99999, 40 + i);
			else if (op == SKUA_WQE_READ)
				rc_check(rc.s[i].buf + (6 << 20) + k * 100000, 99999, 41 - i);
			else
				rc_check(other + (3 << 20) + k * 100000, 99999, 40 + i);
			recv += takes_recv(op);
		}
	}
	no_trouble(&rc);
	rc_close(&rc);
}

/* A fenced request waits for earlier READs, so it may use their data. */
static void test_fence(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_fill(rc.s[1].buf, 50000, 1);
	rc_post_quiet(&rc, 0, &rc.s[0].qp,
		      &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 50000, .off = 0, .roff = 0 });
	rc_post_quiet(&rc, 0, &rc.s[0].qp,
		      &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 50000, .off = 0,
				       .roff = 60000, .flags = SKUA_WQE_F_FENCE });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[1].buf + 60000, 50000, 1);
	no_trouble(&rc);
	rc_close(&rc);
}

/* Two QPs of one device talk through it, without the wire. */
static void test_loopback(void **state)
{
	const struct rc_opt opt = { .psn = { 5, 9 } };
	struct mini_qp other;
	struct skua_qp_attr attr;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .down = true });
	rc_qp(&rc, 0, &other, &opt);
	attr = rc_attr(&rc, 0, &opt, other.qpn);
	mini_gid_addr(attr.av.dgid, 1, false);
	memcpy(attr.av.dmac, rc.s[0].mac, 6);
	mini_rc_to_rts(&rc.s[0].m, &rc.s[0].qp, &attr);
	attr = rc_attr(&rc, 1, &opt, rc.s[0].qp.qpn);
	mini_gid_addr(attr.av.dgid, 1, false);
	memcpy(attr.av.dmac, rc.s[0].mac, 6);
	mini_rc_to_rts(&rc.s[0].m, &other, &attr);
	rc_fill(rc.s[0].buf, 2 << 20, 3);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 2 << 20, .roff = 4 << 20,
					 .rkey = rc.s[0].key });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[0].buf + (4 << 20), 2 << 20, 3);
	assert_int_equal(rc.s[0].f.sent, 0);
	assert_true(rc_cnt(&rc, 0, SKUA_CNT_LOOPBACK_PKTS) > 512);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	rc_close(&rc);
}

/* Data that comes before the receiver is in RTS: it is told, once. */
static void test_comm_est(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .down = true });
	mini_rc_to_rts(&rc.s[0].m, &rc.s[0].qp, &rc.s[0].attr);
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_INIT, SKUA_QP_M_PKEY |
					SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &rc.s[1].attr), 0);
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RTR, SKUA_QP_M_AV |
					SKUA_QP_M_PATH_MTU | SKUA_QP_M_DEST_QPN |
					SKUA_QP_M_RQ_PSN | SKUA_QP_M_MAX_DEST_RD_ATOMIC |
					SKUA_QP_M_MIN_RNR_TIMER, &rc.s[1].attr), 0);
	rc_expect_no_event(&rc, 1);
	message(&rc, SKUA_WQE_SEND, 100, 1);
	message(&rc, SKUA_WQE_READ, 100, 2);
	rc_expect_event(&rc, 1, SKUA_QP_EV_COMM_EST);
	rc_expect_no_event(&rc, 1);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTR);
	rc_close(&rc);
}

/* Context caches of the smallest size: contexts go out and come back all the time. */
static void test_small_caches(void **state)
{
	const struct rc_opt opt = { .onchip = 1, .log_sq = 4, .log_rq = 4 };
	struct mini_qp qp[2][24];
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	for (unsigned int q = 0; q < 24; q++) {
		for (int i = 0; i < 2; i++)
			rc_qp(&rc, i, &qp[i][q], &opt);
		for (int i = 0; i < 2; i++) {
			struct skua_qp_attr a = rc_attr(&rc, i, &opt, qp[1 - i][q].qpn);

			mini_rc_to_rts(&rc.s[i].m, &qp[i][q], &a);
		}
	}
	for (unsigned int q = 0; q < 24; q++) {
		rc_fill(rc.s[0].buf + q * 40000, 40000, q);
		rc_fill(rc.s[1].buf + (1 << 20) + q * 40000, 40000, 100 + q);
		rc_post_quiet(&rc, 0, &qp[0][q], &(struct rc_wr){ .op = SKUA_WQE_WRITE,
			.off = q * 40000, .len = 40000, .roff = q * 40000 });
		rc_post_quiet(&rc, 0, &qp[0][q], &(struct rc_wr){ .op = SKUA_WQE_READ,
			.off = (1 << 20) + q * 40000, .len = 40000,
			.roff = (1 << 20) + q * 40000 });
	}
	for (unsigned int q = 0; q < 24; q++)
		mini_ring(&rc.s[0].m, &qp[0][q]);
	rc_pump(&rc);
	for (unsigned int q = 0; q < 24; q++) {
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_check(rc.s[1].buf + q * 40000, 40000, q);
		rc_check(rc.s[0].buf + (1 << 20) + q * 40000, 40000, 100 + q);
	}
	no_trouble(&rc);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_opcode_size_mtu),
		cmocka_unit_test(test_long_messages),
		cmocka_unit_test(test_ipv6_vlan),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_ring_wrap),
		cmocka_unit_test(test_unsignaled),
		cmocka_unit_test(test_nop),
		cmocka_unit_test(test_many_nops),
		cmocka_unit_test(test_became_nops),
		cmocka_unit_test(test_solicited),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_comm_est),
		cmocka_unit_test(test_small_caches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
