// SPDX-License-Identifier: GPL-2.0
/*
 * Atomics over RC: what they compute, what both sides refuse, in which order, and
 * that each is executed once, whatever the wire does. The names follow what the
 * IBTA's chapters 9.4.5 (atomics), 9.7.4.1 (responder: order of checks), 9.7.5.1
 * (duplicates) and 10.7.6 (fences) demand.
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
#include "roce/engine.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull
#define O(op)	IB_OPCODE(RC, op)

static void put(struct rc *rc, int i, uint64_t off, uint64_t val)
{
	__le64 le = cpu_to_le64(val);

	memcpy(rc->s[i].buf + off, &le, sizeof(le));
}

static uint64_t get(struct rc *rc, int i, uint64_t off)
{
	__le64 le;

	memcpy(&le, rc->s[i].buf + off, sizeof(le));
	return le64_to_cpu(le);
}

/* --- what they compute --- */

static const struct {
	const char *name;
	enum skua_wqe_op op;
	uint64_t before, swap_add, compare, swap_add_mask, compare_mask;
	uint64_t after;
} sums[] = {
	{ "CAS of what is there", SKUA_WQE_CAS, 7, 0x1122334455667788, 7, 0, 0,
	  0x1122334455667788 },
	{ "CAS of what is not there", SKUA_WQE_CAS, 7, 9, 8, 0, 0, 7 },
	{ "CAS differs in the highest bit", SKUA_WQE_CAS, 1ull << 63, 9, 0, 0, 0, 1ull << 63 },
	{ "FAA", SKUA_WQE_FAA, 40, 2, 0, 0, 0, 42 },
	{ "FAA wraps round", SKUA_WQE_FAA, ~0ull, 2, 0, 0, 0, 1 },
	{ "FAA of nothing", SKUA_WQE_FAA, 5, 0, 0, 0, 0, 5 },
	{ "masked CAS of all bits", SKUA_WQE_MASKED_CAS, 7, 9, 7, ~0ull, ~0ull, 9 },
	{ "masked CAS compares some", SKUA_WQE_MASKED_CAS, 0xab12, 0xffff, 0x0012, ~0ull, 0xff,
	  0xffff },
	{ "masked CAS: one of them differs", SKUA_WQE_MASKED_CAS, 0xab12, 0xffff, 0x0013, ~0ull,
	  0xff, 0xab12 },
	{ "masked CAS swaps some", SKUA_WQE_MASKED_CAS, 0xab12, 0x5555, 0, 0x0ff0, 0, 0xa552 },
	{ "masked CAS swaps nothing", SKUA_WQE_MASKED_CAS, 0xab12, 0x5555, 0xab12, 0, ~0ull,
	  0xab12 },
	{ "masked FAA of one field", SKUA_WQE_MASKED_FAA, ~0ull, 2, 0, 0, 0, 1 },
	{ "masked FAA: no carry into the next field", SKUA_WQE_MASKED_FAA, 0x00ff00ff,
	  0x00010001, 0, 0x80808080, 0, 0 },
	{ "masked FAA: fields of one bit", SKUA_WQE_MASKED_FAA, 0xf0f0, 0xffff, 0, ~0ull, 0,
	  0x0f0f },
	{ "masked FAA: carry within a field", SKUA_WQE_MASKED_FAA, 0x000000ff00ff, 0x000000010001,
	  0, 0x800000008000, 0, 0x000001000100 },
};

static void test_values(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 0xfffffb, 0xfffffb } });
	for (size_t k = 0; k < N(sums); k++) {
		__typeof__(sums[0]) *c = &sums[k];
		struct skua_cqe cqe;

		print_message("%s\n", c->name);
		put(&rc, 1, 64, c->before);
		put(&rc, 0, 0, 0x5a5a5a5a5a5a5a5a);
		rc_post(&rc, 0, &(struct rc_wr){ .op = c->op, .len = 8, .roff = 64, .atomic = {
			{ c->swap_add, c->compare }, { c->swap_add_mask, c->compare_mask } } });
		rc_pump(&rc);
		cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(le32_to_cpu(cqe.byte_len), 8);
		assert_int_equal(get(&rc, 1, 64), c->after);
		assert_int_equal(get(&rc, 0, 0), c->before);
		assert_int_equal(get(&rc, 0, 8), 0);
		assert_int_equal(get(&rc, 1, 72), 0);
		assert_int_equal(get(&rc, 1, 56), 0);
	}
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_ATOMIC), N(sums));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_ATOMIC), N(sums));
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	rc_close(&rc);
}

/* The definition, a bit at a time. */
static uint64_t add_bitwise(uint64_t a, uint64_t b, uint64_t top)
{
	uint64_t sum = 0;
	unsigned int carry = 0;

	for (unsigned int i = 0; i < 64; i++) {
		unsigned int s = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (uint64_t)(s & 1) << i;
		carry = top >> i & 1 ? 0 : s >> 1;
	}
	return sum;
}

static void test_field_sums(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (unsigned int k = 0; k < 100000; k++) {
		uint64_t v[4] = { 0 };
		struct atomic a = { .op = SKUA_WQE_MASKED_FAA };

		for (unsigned int i = 0; i < 4 * 8; i++)
			v[i / 8] = v[i / 8] << 8 | (rand_r(&seed) & 0xff);
		a.swap_add = v[1];
		a.swap_add_mask = k % 3 ? v[2] & v[3] : v[2];
		assert_int_equal(atomic_change(v[0], &a), add_bitwise(v[0], v[1], a.swap_add_mask));
	}
}

/* The result may go to several places; IPv6, a VLAN and every MTU make no difference. */
static void test_scatter(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t mtu = 1; mtu <= 5; mtu++) {
		struct rc_wr wr = { .op = SKUA_WQE_FAA, .nsge = 5, .roff = 8,
				    .atomic = { { 1, 0 } } };
		static const uint32_t len[] = { 1, 0, 3, 2, 2 };
		uint8_t got[8], *p = got;

		rc_open(&rc, &(struct rc_opt){ .mtu_code = mtu, .ipv6 = mtu & 1, .vlan = mtu & 2 });
		put(&rc, 1, 8, 0x8877665544332211);
		for (uint32_t k = 0; k < 5; k++)
			wr.sge[k] = (struct sge){ RC_VA + 100 * k, rc.s[0].key, len[k] };
		rc_post(&rc, 0, &wr);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		for (uint32_t k = 0; k < 5; k++) {
			memcpy(p, rc.s[0].buf + 100 * k, len[k]);
			p += len[k];
			assert_int_equal(rc.s[0].buf[100 * k + len[k]], 0);
		}
		for (uint32_t k = 0; k < 8; k++)
			assert_int_equal(got[k], 0x11 * (k + 1));
		assert_int_equal(get(&rc, 1, 8), 0x8877665544332212);
		rc_close(&rc);
	}
}

/* --- requester --- */

enum key { GOOD, NONE, OTHER_PD, NO_RIGHTS, PAGE };

#define RIGHTS	(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | \
		 SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC)

/* A page of the buffer of side @i. */
static uint32_t key_of(struct rc *rc, int i, enum key key, uint32_t access)
{
	struct mini *m = &rc->s[i].m;
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt << 8 | 0x77),
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(key == NO_RIGHTS ? RIGHTS & ~access : RIGHTS),
		.pd = cpu_to_le32(key == OTHER_PD ? MINI_PD + 1 : MINI_PD),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(4096),
		.xlat.base = cpu_to_le64(rc->s[i].bus),
	};

	if (key == GOOD)
		return rc->s[i].key;
	if (key == NONE)
		return 0x3ff00;
	m->next_mpt++;
	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

static const struct {
	const char *name;
	enum skua_wqe_op op;
	enum key key;
	uint32_t len, flags;
	uint64_t compare, no_caps;
	uint32_t rd_atomic;
	enum skua_cqe_status status;
	enum skua_vendor vendor;
} local[] = {
	{ "lkey names no region", SKUA_WQE_FAA, NONE, 8, 0, 0, 0, 0, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_VENDOR_KEY_INVALID },
	{ "lkey of another PD", SKUA_WQE_CAS, OTHER_PD, 8, 0, 0, 0, 0, SKUA_CQE_LOC_PROT_ERR,
	  SKUA_VENDOR_KEY_PD },
	{ "result without local write", SKUA_WQE_FAA, NO_RIGHTS, 8, 0, 0, 0, 0,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_VENDOR_KEY_ACCESS },
	{ "result of 4 bytes", SKUA_WQE_FAA, GOOD, 4, 0, 0, 0, 0, SKUA_CQE_LOC_LEN_ERR,
	  SKUA_VENDOR_SGE_LEN },
	{ "result of 16 bytes", SKUA_WQE_MASKED_CAS, GOOD, 16, 0, 0, 0, 0, SKUA_CQE_LOC_LEN_ERR,
	  SKUA_VENDOR_SGE_LEN },
	{ "inline", SKUA_WQE_FAA, GOOD, 8, SKUA_WQE_F_INLINE, 0, 0, 0, SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_VENDOR_WQE_FORMAT },
	{ "FAA with a compare operand", SKUA_WQE_FAA, GOOD, 8, 0, 1, 0, 0,
	  SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_FORMAT },
	{ "fence of key operations", SKUA_WQE_FAA, GOOD, 8, SKUA_WQE_F_LOCAL_FENCE, 0, 0, 0,
	  SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_FORMAT },
	{ "device without atomics", SKUA_WQE_FAA, GOOD, 8, 0, 0, SKUA_CAP_ATOMIC, 0,
	  SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_OPCODE },
	{ "device without masked ones", SKUA_WQE_MASKED_FAA, GOOD, 8, 0, 0,
	  SKUA_CAP_MASKED_ATOMIC, 0, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_OPCODE },
	{ "QP without depth", SKUA_WQE_FAA, GOOD, 8, 0, 0, 0, 1, SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_VENDOR_WQE_OPCODE },
};

static void test_requester_local(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(local); k++) {
		__typeof__(local[0]) *c = &local[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .no_caps = c->no_caps, .rd_atomic = c->rd_atomic });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE,
			      .len = 9000, .roff = 1000 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = c->op, .flags = c->flags, .len = c->len,
			.nsge = !(c->flags & SKUA_WQE_F_INLINE), .atomic = { { 1, c->compare } },
			.sge[0] = { RC_VA, key_of(&rc, 0, c->key, SKUA_ACCESS_LOCAL_WRITE),
				    c->len } });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		cqe = rc_expect(&rc, 0, false, c->status);
		assert_int_equal(skua_cqe_vendor(&cqe), c->vendor);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_ATOMIC), 0);
		assert_int_equal(get(&rc, 1, 0), 0);
		rc_expect_no_event(&rc, 0);
		rc_close(&rc);
	}
}

/* Requests that are on their way, at most. */
struct watch {
	unsigned int out, most;
};

static bool watch_requests(void *priv, struct fake_frame *frame)
{
	struct watch *w = priv;
	struct skua_pkt pkt;

	assert_int_equal(skua_pkt_parse(frame->data, frame->len, &pkt), SKUA_PKT_OK);
	w->out += !!(pkt.op->flags & IB_F_ANSWERED);
	w->most = w->out > w->most ? w->out : w->most;
	return true;
}

static bool watch_responses(void *priv, struct fake_frame *frame)
{
	struct watch *w = priv;
	struct skua_pkt pkt;

	assert_int_equal(skua_pkt_parse(frame->data, frame->len, &pkt), SKUA_PKT_OK);
	w->out -= pkt.op->flags & IB_F_ANSWERED && pkt.op->flags & IB_F_LAST;
	return true;
}

/* READs and atomics count together against the depth that was agreed on. */
static void test_requester_depth(void **state)
{
	struct rc rc;

	(void)state;
	for (uint32_t depth = 1; depth <= 16; depth++) {
		struct watch w = { 0 };

		rc_open(&rc, &(struct rc_opt){ .rd_atomic = 1 + depth });
		rc.s[0].f.filter = watch_requests;
		rc.s[1].f.filter = watch_responses;
		rc.s[0].f.filter_priv = &w;
		rc.s[1].f.filter_priv = &w;
		for (uint32_t k = 0; k < 60; k++)
			rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){
				.op = k % 3 ? SKUA_WQE_FAA : SKUA_WQE_READ, .len = 8,
				.atomic = { { 1, 0 } } });
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		for (uint32_t k = 0; k < 60; k++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(get(&rc, 1, 0), 40);
		assert_int_equal(w.out, 0);
		assert_int_equal(w.most, depth);
		rc_close(&rc);
	}
}

/* A fence waits for atomics: what is behind it reads what they brought. */
static void test_requester_fence(void **state)
{
	struct rc rc;

	(void)state;
	for (int fence = 0; fence < 2; fence++) {
		rc_open(&rc, NULL);
		put(&rc, 1, 0, 0x1234);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_FAA, .len = 8,
			      .atomic = { { 1, 0 } } });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE,
			      .len = 8, .roff = 64, .flags = fence ? SKUA_WQE_F_FENCE : 0 });
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(get(&rc, 1, 64), fence ? 0x1234 : 0);
		rc_close(&rc);
	}
}

/* --- responder --- */

static const struct {
	const char *name;
	enum skua_wqe_op op;
	enum key key;
	uint64_t roff;
	uint32_t access;	/* of the QP, 0: all */
	uint64_t no_caps;	/* of the responder */
	enum skua_cqe_status status;
	enum skua_qp_event event;
} remote[] = {
	{ "R_Key names no region", SKUA_WQE_FAA, NONE, 0, 0, 0, SKUA_CQE_REM_ACCESS_ERR,
	  SKUA_QP_EV_ACCESS_ERR },
	{ "R_Key of another PD", SKUA_WQE_CAS, OTHER_PD, 0, 0, 0, SKUA_CQE_REM_ACCESS_ERR,
	  SKUA_QP_EV_ACCESS_ERR },
	{ "region without remote atomic", SKUA_WQE_FAA, NO_RIGHTS, 0, 0, 0,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "beyond the region", SKUA_WQE_MASKED_FAA, PAGE, 4096, 0, 0, SKUA_CQE_REM_ACCESS_ERR,
	  SKUA_QP_EV_ACCESS_ERR },
	{ "QP not enabled", SKUA_WQE_FAA, GOOD, 0, SKUA_ACCESS_REMOTE_WRITE, 0,
	  SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
	{ "not a multiple of 8", SKUA_WQE_CAS, GOOD, 4, 0, 0, SKUA_CQE_REM_INV_REQ_ERR,
	  SKUA_QP_EV_REQ_ERR },
	{ "masked, not a multiple of 8", SKUA_WQE_MASKED_CAS, GOOD, 1, 0, 0,
	  SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
	{ "alignment before key", SKUA_WQE_FAA, NONE, 2, 0, 0, SKUA_CQE_REM_INV_REQ_ERR,
	  SKUA_QP_EV_REQ_ERR },
	{ "QP not enabled before key", SKUA_WQE_FAA, NONE, 0, SKUA_ACCESS_REMOTE_READ, 0,
	  SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
	{ "responder without atomics", SKUA_WQE_FAA, GOOD, 0, 0, SKUA_CAP_ATOMIC,
	  SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
	{ "responder without masked ones", SKUA_WQE_MASKED_FAA, GOOD, 0, 0,
	  SKUA_CAP_MASKED_ATOMIC, SKUA_CQE_REM_INV_REQ_ERR, SKUA_QP_EV_REQ_ERR },
};

static void test_responder_refuses(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(remote); k++) {
		__typeof__(remote[0]) *c = &remote[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .access = c->access });
		rc.s[1].f.dev->caps &= ~c->no_caps;
		rc_recv(&rc, 1, 0, 100);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = c->op, .len = 8,
			      .roff = c->roff, .atomic = { { ~0ull, 0 }, { ~0ull, 0 } },
			      .rkey = key_of(&rc, 1, c->key, SKUA_ACCESS_REMOTE_ATOMIC) });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, c->status);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_event(&rc, 1, c->event);
		rc_expect_no_event(&rc, 1);
		rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		for (uint32_t b = 0; b < 8192; b++)
			assert_int_equal(rc.s[1].buf[b], 0);
		rc_close(&rc);
	}
}

/*
 * A QP that does without masked atomics sends none and takes none, whatever the other
 * side does; all else goes on. RESET gives them back.
 */
static void test_without_masked(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	for (unsigned int off = 0; off < 4; off++) {
		struct rc_opt opt = { .vendor_off = { off & 1 ? SKUA_VENDOR_MASKED_ATOMIC : 0,
						      off & 2 ? SKUA_VENDOR_MASKED_ATOMIC : 0 } };
		struct rc_wr wr = { .op = SKUA_WQE_MASKED_FAA, .len = 8, .atomic = { { 5, 0 } } };

		rc_open(&rc, &opt);
		assert_int_equal(le32_to_cpu(rc_query(&rc, 1).sqc.attr.vendor_off),
				 opt.vendor_off[1]);
		put(&rc, 1, 0, 1);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FAA, .len = 8,
						 .atomic = { { 1, 0 } } });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(get(&rc, 1, 0), 2);
		rc_post(&rc, 0, &wr);
		rc_pump(&rc);
		cqe = rc_expect(&rc, 0, false, off & 1 ? SKUA_CQE_LOC_QP_OP_ERR :
					       off & 2 ? SKUA_CQE_REM_INV_REQ_ERR : SKUA_CQE_OK);
		if (off & 1)
			assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_OPCODE);
		if (off == 2)
			rc_expect_event(&rc, 1, SKUA_QP_EV_REQ_ERR);
		rc_expect_no_event(&rc, 1);
		assert_int_equal(get(&rc, 1, 0), off ? 2 : 7);
		assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RESET, 0, NULL), 0);
		assert_int_equal(rc_query(&rc, 1).sqc.attr.vendor_off, 0);
		rc_close(&rc);
	}
}

/* Memory behind the key that does not answer: remote operational error. */
static void test_responder_memory(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	fake_hole(&rc.s[1].f, rc.s[1].bus + 4096, 4096);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FAA, .len = 8, .roff = 4096 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_REM_OP_ERR);
	rc_expect_event(&rc, 1, SKUA_QP_EV_FATAL);
	rc_close(&rc);
}

/* An FAA of 1 at offset 0, as a peer that does not mind its PSNs would send it. */
static void forge(struct rc *rc, uint8_t op, uint32_t psn)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), op, psn), 0);
	if (b.atomiceth)
		ib_atomiceth_put(b.atomiceth, RC_VA, rc->s[1].key, 1, 0);
	if (b.reth)
		ib_reth_put(b.reth, RC_VA, rc->s[1].key, 8);
	rc_inject(rc, 1, &b, 0);
	fake_run(&rc->s[1].f);
}

/* Take the frames that side 1 sent; the last one's syndrome and PSN, and its value. */
static unsigned int drain(struct rc *rc, uint8_t *opcode, uint8_t *syndrome, uint32_t *psn,
			  uint64_t *val)
{
	struct fake_frame *f;
	struct skua_pkt pkt;
	unsigned int n = 0;

	while ((f = fake_tx(&rc->s[1].f))) {
		assert_int_equal(skua_pkt_parse(f->data, f->len, &pkt), SKUA_PKT_OK);
		*opcode = pkt.opcode;
		*syndrome = pkt.aeth ? pkt.aeth->syndrome : 0xff;
		*psn = pkt.psn;
		*val = pkt.atomicacketh ? be64_get(pkt.atomicacketh->orig) : 0;
		free(f);
		n++;
	}
	return n;
}

/* As many as were agreed on are served, one more is an invalid request. */
static void test_responder_depth(void **state)
{
	uint8_t op, syndrome, frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;
	uint32_t psn;
	uint64_t val;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .rd_atomic = 1 + 4 });
	for (uint32_t k = 0; k < 5; k++) {
		rc_build(&rc, 0, &b, frame, sizeof(frame), O(FETCH_ADD), k);
		ib_atomiceth_put(b.atomiceth, RC_VA, rc.s[1].key, 1, 0);
		rc_inject(&rc, 1, &b, 0);
	}
	fake_run(&rc.s[1].f);
	assert_int_equal(drain(&rc, &op, &syndrome, &psn, &val), 5);
	assert_int_equal(syndrome, IB_AETH_NAK | IB_NAK_INVALID_REQUEST);
	assert_int_equal(psn, 4);
	assert_int_equal(get(&rc, 1, 0), 4);
	rc_expect_event(&rc, 1, SKUA_QP_EV_REQ_ERR);
	rc_close(&rc);
}

/* The original value is kept for as many requests as can be outstanding. */
static void test_responder_duplicates(void **state)
{
	const uint32_t first = 0xfffff8;
	uint8_t op, syndrome;
	uint32_t psn, n = 0;
	uint64_t val;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .psn = { first } });
	for (uint32_t k = 0; k < 40; k++) {
		forge(&rc, O(FETCH_ADD), psn_add(first, k));
		assert_int_equal(drain(&rc, &op, &syndrome, &psn, &val), 1);
		assert_int_equal(op, O(ATOMIC_ACK));
		assert_int_equal(psn, psn_add(first, k));
		assert_int_equal(val, k);
		for (uint32_t back = 0; back <= k && back < 20; back++) {
			forge(&rc, O(FETCH_ADD), psn_add(first, k - back));
			assert_int_equal(drain(&rc, &op, &syndrome, &psn, &val), back < 16);
			n++;
			if (back >= 16)
				continue;
			assert_int_equal(psn, psn_add(first, k - back));
			assert_int_equal(val, k - back);
		}
	}
	assert_int_equal(get(&rc, 1, 0), 40);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_ATOMIC), 40);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_DUPLICATE_REQUEST), n);
	/* What is repeated must be what was there. */
	forge(&rc, O(CMP_SWAP), psn_add(first, 39));
	forge(&rc, O(READ_REQUEST), psn_add(first, 39));
	forge(&rc, IB_OPCODE(RC, FLUSH), psn_add(first, 39));
	assert_int_equal(drain(&rc, &op, &syndrome, &psn, &val), 0);
	assert_int_equal(get(&rc, 1, 0), 40);
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	rc_close(&rc);
}

/* A repeated atomic needs no key any more: it was executed when it had one. */
static void test_responder_duplicate_of_gone_key(void **state)
{
	uint8_t op, syndrome;
	uint32_t psn;
	uint64_t val;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	forge(&rc, O(FETCH_ADD), 0);
	assert_int_equal(mini_index(&rc.s[1].m, SKUA_CMD_DESTROY_MPT, rc.s[1].key, NULL, 0), 0);
	forge(&rc, O(FETCH_ADD), 0);
	assert_int_equal(drain(&rc, &op, &syndrome, &psn, &val), 2);
	assert_int_equal(op, O(ATOMIC_ACK));
	assert_int_equal(val, 0);
	rc_close(&rc);
}

/* Originals of an earlier life of the QP are not given away. */
static void test_responder_forgets_at_reset(void **state)
{
	struct skua_qp_dbr *dbr;
	uint8_t op, syndrome;
	uint32_t psn;
	uint64_t val;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	forge(&rc, O(FETCH_ADD), 0);
	assert_int_equal(drain(&rc, &op, &syndrome, &psn, &val), 1);
	assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RESET, 0, NULL), 0);
	dbr = fake_ptr(&rc.s[1].f, rc.s[1].qp.dbr);
	memset(dbr, 0, sizeof(*dbr));
	rc.s[1].attr.rq_psn = cpu_to_le32(1);
	mini_rc_to_rts(&rc.s[1].m, &rc.s[1].qp, &rc.s[1].attr);
	forge(&rc, O(FETCH_ADD), 0);
	assert_int_equal(drain(&rc, &op, &syndrome, &psn, &val), 0);
	assert_int_equal(get(&rc, 1, 0), 1);
	rc_close(&rc);
}

/* --- completer --- */

static void answer(struct rc *rc, uint8_t op, uint32_t psn, uint32_t payload)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), op, psn), 0);
	if (b.aeth)
		ib_aeth_put(b.aeth, IB_AETH_CREDIT_INVALID, 1);
	if (b.atomicacketh)
		be64_put(b.atomicacketh->orig, 0x7777);
	rc_inject(rc, 0, &b, payload);
	fake_run(&rc->s[0].f);
}

/* PSN 10 is a WRITE, 11 an FAA, 12 a WRITE, 13 an FAA. */
static const struct {
	const char *name;
	uint8_t op;
	uint32_t psn, payload;
	unsigned int done;
	enum skua_counter cnt;	/* COUNT: none */
} responses[] = {
	{ "the response", O(ATOMIC_ACK), 11, 0, 2, SKUA_CNT_COUNT },
	{ "an ACK up to the atomic", O(ACK), 10, 0, 1, SKUA_CNT_COUNT },
	{ "an ACK of an atomic says that its response is lost", O(ACK), 11, 0, 1,
	  SKUA_CNT_IMPLIED_NAK_SEQ_ERR },
	{ "so does an ACK behind it", O(ACK), 12, 0, 1, SKUA_CNT_IMPLIED_NAK_SEQ_ERR },
	{ "and the response of a later one", O(ATOMIC_ACK), 13, 0, 1,
	  SKUA_CNT_IMPLIED_NAK_SEQ_ERR },
	{ "a READ response for it", O(READ_RESP_ONLY), 11, 8, 1, SKUA_CNT_RX_BAD_RESP },
	{ "a response for a WRITE", O(ATOMIC_ACK), 10, 0, 0, SKUA_CNT_RX_BAD_RESP },
	{ "a response of a PSN not sent", O(ATOMIC_ACK), 14, 0, 0, SKUA_CNT_RX_BAD_RESP },
	{ "a response of a PSN long ago", O(ATOMIC_ACK), 9, 0, 0, SKUA_CNT_COUNT },
};

static void test_completer(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(responses); k++) {
		__typeof__(responses[0]) *c = &responses[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .psn = { 10 } });
		for (unsigned int i = 0; i < 4; i++)
			rc_post(&rc, 0, &(struct rc_wr){ .len = 8, .off = 8 * i,
				.op = i & 1 ? SKUA_WQE_FAA : SKUA_WQE_WRITE });
		fake_run(&rc.s[0].f);
		answer(&rc, c->op, c->psn, c->payload);
		for (unsigned int i = 0; i < c->done; i++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect_none(&rc, 0, false);
		assert_int_equal(get(&rc, 0, 8), c->done == 2 ? 0x7777 : 0);
		assert_int_equal(get(&rc, 0, 24), 0);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_RTS);
		if (c->cnt != SKUA_CNT_COUNT)
			assert_int_equal(rc_cnt(&rc, 0, c->cnt), 1);
		rc_close(&rc);
	}
}

/* The region of the result went away after the request did. */
static void test_completer_lost_key(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FAA, .len = 8 });
	fake_run(&rc.s[0].f);
	assert_int_equal(mini_index(&rc.s[0].m, SKUA_CMD_DESTROY_MPT, rc.s[0].key, NULL, 0), 0);
	answer(&rc, O(ATOMIC_ACK), 0, 0);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(get(&rc, 0, 0), 0);
	rc_close(&rc);
}

/* --- once --- */

/*
 * Each FAA returns another value, none is missing, and the sum is right. Between
 * them are messages of other kinds. By turns, both sides add to a counter of side 1
 * of the other QP, so that the QPs of a device meet there too.
 */
#define DEPTH	12
#define TOTAL	300

struct once {
	struct mini_qp qp[2][2];
	struct fault x[2];
	unsigned int posted[2], done[2], faa;
	uint8_t seen[2 * TOTAL];
};

static uint64_t slot(unsigned int q, unsigned int n)
{
	return 4096 + (q * DEPTH + n % DEPTH) * 4096;
}

static void post_next(struct rc *rc, struct once *o, unsigned int q, unsigned int *seed)
{
	static const enum skua_wqe_op other[] = { SKUA_WQE_READ, SKUA_WQE_WRITE, SKUA_WQE_CAS,
						  SKUA_WQE_NOP };
	unsigned int n = o->posted[q]++;
	struct rc_wr wr = { .op = SKUA_WQE_FAA, .len = 8, .off = slot(q, n),
			    .atomic = { { 1, 0 } } };

	put(rc, 0, slot(q, n), ~0ull);
	if (n & 1) {
		wr.op = other[rand_r(seed) % N(other)];
		wr.roff = slot(q, n);
		if (wr.op != SKUA_WQE_CAS)
			wr.len = rand_r(seed) % 3000;
		/* Would change the counter if it were executed twice. */
		if (wr.op == SKUA_WQE_CAS)
			wr.atomic[0].swap_add = n, wr.atomic[0].compare = n ^ 1;
	}
	rc_post_quiet(rc, 0, &o->qp[0][q], &wr);
	mini_ring(&rc->s[0].m, &o->qp[0][q]);
}

static void take_done(struct rc *rc, struct once *o)
{
	struct skua_cqe cqe;

	while (mini_cq_next(&rc->s[0].m, &rc->s[0].scq, &cqe)) {
		unsigned int q = le32_to_cpu(cqe.qpn) == o->qp[0][1].qpn;
		unsigned int n = o->done[q]++;
		uint64_t val = get(rc, 0, slot(q, n));

		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
		if (n & 1)
			continue;
		assert_int_equal(le32_to_cpu(cqe.byte_len), 8);
		assert_true(val < sizeof(o->seen));
		assert_false(o->seen[val]++);
		o->faa++;
	}
}

static void once(unsigned int percent, unsigned int seed)
{
	struct rc_opt opt = { .mtu_code = 1 + seed % 5, .timeout = 10, .log_sq = 6,
			      .rd_atomic = 1 + 1 + seed % 16, .psn = { 0xffff80 + seed, seed } };
	struct once o = { .x[0].seed = seed, .x[1].seed = seed + 1 };
	struct rc rc;

	rc_open(&rc, &opt);
	for (unsigned int q = 0; q < 2; q++) {
		for (int i = 0; i < 2; i++)
			rc_qp(&rc, i, &o.qp[i][q], &opt);
		for (int i = 0; i < 2; i++) {
			struct skua_qp_attr a = rc_attr(&rc, i, &opt, o.qp[1 - i][q].qpn);

			mini_rc_to_rts(&rc.s[i].m, &o.qp[i][q], &a);
		}
	}
	for (int i = 0; i < 2; i++) {
		o.x[i].kind = KINDS;
		for (unsigned int k = 0; k < KINDS; k++)
			o.x[i].rate[k] = percent * 5 / (k == LOSS ? 1 : 2);
		set_fault(&rc, i, &o.x[i]);
	}
	while (o.done[0] < TOTAL || o.done[1] < TOTAL) {
		unsigned int before = o.done[0] + o.done[1];

		for (unsigned int q = 0; q < 2; q++) {
			while (o.posted[q] < TOTAL && o.posted[q] - o.done[q] < DEPTH)
				post_next(&rc, &o, q, &seed);
		}
		rc_pump_for(&rc, 100000000);
		take_done(&rc, &o);
		assert_true(o.done[0] + o.done[1] > before);
	}
	assert_int_equal(o.faa, TOTAL);
	assert_int_equal(get(&rc, 1, 0), TOTAL);
	for (unsigned int k = 0; k < TOTAL; k++)
		assert_int_equal(o.seen[k], 1);
	for (int i = 0; i < 2; i++) {
		assert_true(o.x[i].hits || !percent);
		free(o.x[i].hold);
	}
	rc_close(&rc);
}

static void test_exactly_once(void **state)
{
	static const unsigned int percent[] = { 0, 1, 3, 8, 15 };

	(void)state;
	for (unsigned int k = 0; k < N(percent); k++) {
		for (unsigned int seed = 1; seed <= 6; seed++)
			once(percent[k], seed * 11 + k);
	}
}

/* One fault at each packet of a short sequence, of each kind, on each side. */
static void test_exactly_once_each_packet(void **state)
{
	static const enum skua_wqe_op seq[] = {
		SKUA_WQE_FAA, SKUA_WQE_FAA, SKUA_WQE_READ, SKUA_WQE_CAS, SKUA_WQE_WRITE,
		SKUA_WQE_MASKED_FAA, SKUA_WQE_READ, SKUA_WQE_MASKED_CAS, SKUA_WQE_FAA,
	};
	struct fault x[2] = { 0 };
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { 0xfffff0, 0x7ffff0 } });
	for (int i = 0; i < 2; i++)
		set_fault(&rc, i, &x[i]);
	for (unsigned int run = 0; run < 2 * KINDS * 16; run++) {
		int i = run & 1;

		x[i].kind = (run >> 1) % KINDS;
		x[i].at = x[i].seen + run / (2 * KINDS);
		x[1 - i].kind = LOSS;
		x[1 - i].at = ~0u;
		put(&rc, 1, 0, 100);
		for (unsigned int k = 0; k < N(seq); k++) {
			struct rc_wr wr = { .op = seq[k], .len = 8, .off = 64 + 1024 * k,
					    .atomic = { { 1, 0 }, { 0, 0 } } };

			if (seq[k] == SKUA_WQE_READ || seq[k] == SKUA_WQE_WRITE)
				wr.roff = 4096, wr.len = 600;
			if (seq[k] == SKUA_WQE_CAS)
				wr.atomic[0].swap_add = 1000, wr.atomic[0].compare = 102;
			if (seq[k] == SKUA_WQE_MASKED_CAS)
				wr.atomic[0].swap_add = 2000, wr.atomic[1].swap_add = ~0ull;
			put(&rc, 0, wr.off, ~0ull);
			rc_post_quiet(&rc, 0, &rc.s[0].qp, &wr);
		}
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump_for(&rc, 5 * SEC);
		for (unsigned int k = 0; k < N(seq); k++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		release(&x[i]);
		rc_pump(&rc);
		rc_expect_none(&rc, 0, false);
		assert_int_equal(get(&rc, 1, 0), 2001);
		assert_int_equal(get(&rc, 0, 64), 100);
		assert_int_equal(get(&rc, 0, 64 + 1024), 101);
		assert_int_equal(get(&rc, 0, 64 + 1024 * 3), 102);
		assert_int_equal(get(&rc, 0, 64 + 1024 * 5), 1000);
		assert_int_equal(get(&rc, 0, 64 + 1024 * 7), 1001);
		assert_int_equal(get(&rc, 0, 64 + 1024 * 8), 2000);
	}
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_field_sums),
		cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_requester_local),
		cmocka_unit_test(test_requester_depth),
		cmocka_unit_test(test_requester_fence),
		cmocka_unit_test(test_responder_refuses),
		cmocka_unit_test(test_without_masked),
		cmocka_unit_test(test_responder_memory),
		cmocka_unit_test(test_responder_depth),
		cmocka_unit_test(test_responder_duplicates),
		cmocka_unit_test(test_responder_duplicate_of_gone_key),
		cmocka_unit_test(test_responder_forgets_at_reset),
		cmocka_unit_test(test_completer),
		cmocka_unit_test(test_completer_lost_key),
		cmocka_unit_test(test_exactly_once),
		cmocka_unit_test(test_exactly_once_each_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
