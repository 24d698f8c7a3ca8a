// SPDX-License-Identifier: GPL-2.0
/*
 * RC over a bad wire: whatever is lost, repeated, late or damaged, every message
 * arrives once, in order and intact, and is reported once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc_fault.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull

/* A message each of several packets, of each kind, and each kind behind each. */
static const struct {
	enum skua_wqe_op op;
	uint32_t len;
} seq[] = {
	{ SKUA_WQE_SEND, 1000 }, { SKUA_WQE_WRITE, 700 }, { SKUA_WQE_READ, 900 },
	{ SKUA_WQE_SEND_IMM, 0 }, { SKUA_WQE_READ, 64 * 256 + 300 }, { SKUA_WQE_READ, 100 },
	{ SKUA_WQE_WRITE_IMM, 300 }, { SKUA_WQE_NOP, 0 }, { SKUA_WQE_WRITE, 0 },
	{ SKUA_WQE_READ, 513 }, { SKUA_WQE_SEND, 257 }, { SKUA_WQE_WRITE, 2000 },
};

static bool takes_recv(enum skua_wqe_op op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM || op == SKUA_WQE_WRITE_IMM;
}

/* Where message @k comes from and goes to, in both buffers. */
static uint64_t place(unsigned int k)
{
	return 0x10000ull + k * 0x10000ull;
}

static void check_message(struct rc *rc, unsigned int k, unsigned int run)
{
	enum skua_wqe_op op = seq[k].op;
	struct skua_cqe cqe = rc_expect(rc, 0, false, SKUA_CQE_OK);
	uint8_t *dst = rc->s[op == SKUA_WQE_READ ? 0 : 1].buf + place(k);

	assert_int_equal(skua_cqe_wqe_index(&cqe), (rc->s[0].qp.sq_pi - N(seq) + k) & 0xffff);
	if (op == SKUA_WQE_NOP)
		return;
	if (takes_recv(op)) {
		cqe = rc_expect(rc, 1, true, SKUA_CQE_OK);
		assert_int_equal(le32_to_cpu(cqe.byte_len), seq[k].len);
		if (op != SKUA_WQE_SEND)
			assert_int_equal(be32toh(cqe.imm), 1000 * run + k);
	}
	rc_check(dst, seq[k].len, run + k);
	assert_int_equal(dst[seq[k].len], 0x5a);
}

static void run_sequence(struct rc *rc, unsigned int run)
{
	for (unsigned int k = 0; k < N(seq); k++) {
		enum skua_wqe_op op = seq[k].op;
		int to = op == SKUA_WQE_READ ? 0 : 1;

		rc_fill(rc->s[1 - to].buf + place(k), seq[k].len, run + k);
		memset(rc->s[to].buf + place(k), 0x5a, seq[k].len + 1);
		if (takes_recv(op))
			rc_recv(rc, 1, place(k), op == SKUA_WQE_WRITE_IMM ? 0 : seq[k].len);
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = op, .len = seq[k].len, .off = place(k), .roff = place(k),
			.imm = 1000 * run + k });
	}
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
	rc_pump_for(rc, 5 * SEC);
	for (unsigned int k = 0; k < N(seq); k++)
		check_message(rc, k, run);
	rc_expect_none(rc, 0, false);
	rc_expect_none(rc, 1, true);
}

/* One fault at each packet of each side. */
static void sweep(const struct rc_opt *opt)
{
	struct fault x[2] = { 0 };
	unsigned int frames[2], run = 0;
	struct rc rc;

	rc_open(&rc, opt);
	for (int i = 0; i < 2; i++) {
		x[i].kind = LOSS;
		x[i].at = ~0u;
		set_fault(&rc, i, &x[i]);
	}
	run_sequence(&rc, run++);
	for (int i = 0; i < 2; i++) {
		frames[i] = x[i].seen;
		assert_int_equal(rc_cnt(&rc, i, SKUA_CNT_TX_RETRANS_PKTS), 0);
	}
	assert_true(frames[0] > 20 && frames[1] > 70);
	for (int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < KINDS; k++) {
			for (unsigned int at = 0; at < frames[i]; at++) {
				x[i] = (struct fault){ .f = x[i].f, .kind = k, .at = at };
				run_sequence(&rc, run++);
				assert_int_equal(x[i].hits, 1);
				release(&x[i]);
				rc_pump(&rc);
			}
			x[i].at = ~0u;
		}
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(rc_state(&rc, i), SKUA_QP_RTS);
	rc_close(&rc);
}

static void test_each_packet(void **state)
{
	(void)state;
	sweep(&(struct rc_opt){ .mtu_code = 1, .psn = { 0xffffc0, 0x7fffc0 } });
}

/* READs one at a time, and a sequence that goes over the PSN's end again and again. */
static void test_each_packet_rd1(void **state)
{
	(void)state;
	sweep(&(struct rc_opt){ .mtu_code = 1, .rd_atomic = 2, .psn = { 0x7fff00, 0xfffff0 } });
}

/* --- by chance --- */

struct msg {
	enum skua_wqe_op op;
	uint32_t len;
	uint32_t seed;
};

#define DEPTH	12
#define MSGS	400

static void post_random(struct rc *rc, int i, struct msg *msg, unsigned int n, unsigned int *seed)
{
	static const enum skua_wqe_op ops[] = { SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE,
						SKUA_WQE_WRITE_IMM, SKUA_WQE_READ };
	uint64_t at = (i ? 8u << 20 : 0) + place(n % DEPTH);
	int src, dst;

	*msg = (struct msg){ .op = ops[rand_r(seed) % N(ops)], .seed = rand_r(seed) };
	msg->len = rand_r(seed) % 3 ? rand_r(seed) % 3000 : rand_r(seed) % 40000;
	dst = msg->op == SKUA_WQE_READ ? i : 1 - i;
	src = 1 - dst;
	rc_fill(rc->s[src].buf + at, msg->len, msg->seed);
	memset(rc->s[dst].buf + at, 0, msg->len);
	if (takes_recv(msg->op))
		rc_recv(rc, 1 - i, at, msg->op == SKUA_WQE_WRITE_IMM ? 0 : msg->len);
	rc_post(rc, i, &(struct rc_wr){ .op = msg->op, .len = msg->len, .off = at, .roff = at,
					.imm = msg->seed });
}

static unsigned int check_random(struct rc *rc, int i, const struct msg *msg, unsigned int done)
{
	struct skua_cqe cqe;

	while (mini_cq_next(&rc->s[i].m, &rc->s[i].scq, &cqe)) {
		const struct msg *m = &msg[done % DEPTH];
		uint64_t at = (i ? 8u << 20 : 0) + place(done % DEPTH);

		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
		assert_int_equal(skua_cqe_wqe_index(&cqe), done & 0xffff);
		if (takes_recv(m->op)) {
			cqe = rc_expect(rc, 1 - i, true, SKUA_CQE_OK);
			assert_int_equal(le32_to_cpu(cqe.byte_len), m->len);
			if (m->op != SKUA_WQE_SEND)
				assert_int_equal(be32toh(cqe.imm), m->seed);
		}
		rc_check(rc->s[m->op == SKUA_WQE_READ ? i : 1 - i].buf + at, m->len, m->seed);
		done++;
	}
	return done;
}

/*
 * Of 100 frames @percent meet a fault, half of these are lost. With many more a
 * retry count of 7 is not enough, for anybody.
 */
static void chance(unsigned int percent, unsigned int seed)
{
	struct fault x[2] = { 0 };
	struct msg msg[2][DEPTH];
	unsigned int posted[2] = { 0 }, done[2] = { 0 };
	struct rc rc;

	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 + seed % 5, .log_stride = 1, .timeout = 10,
				       .rd_atomic = 1 + 1 + seed % 16,
				       .psn = { 0xffff00 + seed, seed } });
	for (int i = 0; i < 2; i++) {
		x[i].kind = KINDS;
		x[i].seed = seed * 2 + i;
		for (unsigned int k = 0; k < KINDS; k++)
			x[i].rate[k] = percent * 5 / (k == LOSS ? 1 : 4);
		set_fault(&rc, i, &x[i]);
	}
	while (done[0] < MSGS || done[1] < MSGS) {
		unsigned int before = done[0] + done[1];

		for (int i = 0; i < 2; i++) {
			while (posted[i] < MSGS && posted[i] - done[i] < DEPTH) {
				post_random(&rc, i, &msg[i][posted[i] % DEPTH], posted[i], &seed);
				posted[i]++;
			}
		}
		/* Without credit a long message goes a packet at a time, and each may be lost. */
		rc_pump_for(&rc, 1000000000);
		for (int i = 0; i < 2; i++)
			done[i] = check_random(&rc, i, msg[i], done[i]);
		assert_true(done[0] + done[1] > before);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(x[i].hits);
		free(x[i].hold);
		rc_expect_none(&rc, i, false);
		rc_expect_none(&rc, i, true);
		assert_int_equal(rc_state(&rc, i), SKUA_QP_RTS);
	}
	rc_close(&rc);
}

static void test_chance(void **state)
{
	static const unsigned int percent[] = { 1, 3, 5, 10, 20 };
	unsigned int seeds = getenv("SKUA_LONG") ? 6 : 2;

	(void)state;
	for (unsigned int k = 0; k < N(percent); k++) {
		for (unsigned int seed = 1; seed <= seeds; seed++)
			chance(percent[k], seed * 7 + k);
	}
}

/* Nothing arrives any more: the retry count decides how often it is tried. */
static void test_dead_wire(void **state)
{
	struct fault x = { .kind = KINDS, .rate = { [LOSS] = 1000 } };
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	for (uint32_t count = 0; count <= 7; count++) {
		rc_open(&rc, &(struct rc_opt){ .retry_cnt = 1 + count, .timeout = 8 });
		x.seen = 0;
		set_fault(&rc, 0, &x);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		/* The IBTA wants each timeout between once and four times 4.096 us << 8. */
		rc_pump_for(&rc, (4096ull << 8) * (count + 1) - 1);
		rc_expect_none(&rc, 0, false);
		rc_pump_for(&rc, (4096ull << 8) * 3 * (count + 1));
		cqe = rc_expect(&rc, 0, false, SKUA_CQE_RETRY_EXC_ERR);
		assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_TIMEOUT);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(x.seen, 2 * (count + 1));
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		rc_close(&rc);
	}
}

/* Timeout code 0: for ever. */
static void test_no_timeout_c9_140(void **state)
{
	struct fault x = { .kind = LOSS, .at = 0 };
	struct skua_qp_attr attr;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .down = true });
	attr = rc.s[0].attr;
	le32p_replace_bits(&attr.retry, 0, SKUA_ATTR_ACK_TIMEOUT);
	mini_rc_to_rts(&rc.s[0].m, &rc.s[0].qp, &attr);
	mini_rc_to_rts(&rc.s[1].m, &rc.s[1].qp, &rc.s[1].attr);
	set_fault(&rc, 0, &x);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	rc_pump_for(&rc, 10000 * SEC);
	rc_expect_none(&rc, 0, false);
	assert_int_equal(x.seen, 1);
	/* The next one makes the gap known. */
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet),
		cmocka_unit_test(test_each_packet_rd1),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_dead_wire),
		cmocka_unit_test(test_no_timeout_c9_140),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
