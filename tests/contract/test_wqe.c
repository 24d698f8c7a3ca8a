// SPDX-License-Identifier: GPL-2.0
/*
 * Round trips: what the shared encoder writes, the model's decoder must read,
 * for every opcode that both know, any number of elements and any place in the
 * ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <skua/wqe_build.h>

#include "core.h"

#define LOG_BLOCKS	5

static uint8_t ring_mem[SKUA_WQE_BLOCK << LOG_BLOCKS];
static struct skua_sq_ring ring;

static int setup(void **state)
{
	(void)state;
	memset(ring_mem, 0xee, sizeof(ring_mem));
	skua_sq_ring_init(&ring, ring_mem, LOG_BLOCKS);
	return 0;
}

static enum skua_vendor decode(uint32_t index, unsigned int nseg, enum skua_qp_type type,
			       struct wqe *out)
{
	uint8_t flat[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK];
	unsigned int i;

	for (i = 0; i < skua_wqe_blocks(nseg) * SKUA_WQE_SEGS_PER_BLOCK; i++)
		memcpy(flat + i * SKUA_WQE_SEG, skua_sq_seg(&ring, index, i), SKUA_WQE_SEG);
	memset(out, 0, sizeof(*out));
	return wqe_decode(flat, skua_wqe_blocks(nseg) * SKUA_WQE_BLOCK, index, type, out);
}

static unsigned int put_sges(uint32_t index, unsigned int seg, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		skua_wqe_data_set(skua_sq_seg(&ring, index, seg++),
				  0x123456789abc0000ULL + i, 0xaa00 + i, 100 + i);
	return seg;
}

static void check_sges(const struct wqe *w, unsigned int n)
{
	unsigned int i;

	assert_int_equal(w->nsge, n);
	for (i = 0; i < n; i++) {
		assert_int_equal(w->sge[i].addr, 0x123456789abc0000ULL + i);
		assert_int_equal(w->sge[i].lkey, 0xaa00 + i);
		assert_int_equal(w->sge[i].len, 100 + i);
	}
	assert_int_equal(w->len, n * 100 + n * (n - 1) / 2);
}

static void lists_round_trip(void **state)
{
	static const struct {
		enum skua_wqe_op op;
		bool raddr, imm;
	} ops[] = {
		{ SKUA_WQE_SEND }, { SKUA_WQE_SEND_IMM, .imm = true },
		{ SKUA_WQE_WRITE, .raddr = true }, { SKUA_WQE_WRITE_IMM, .raddr = true, .imm = true },
		{ SKUA_WQE_READ, .raddr = true },
	};
	unsigned int o, n;
	uint32_t index;
	struct wqe w;

	(void)state;
	for (o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
		for (n = 0; n <= 60; n++)
			for (index = 0xfffffffe; index != 40; index++) {
				struct skua_wqe_ctrl *c = skua_sq_seg(&ring, index, 0);
				unsigned int seg = 1;

				if (ops[o].raddr)
					skua_wqe_raddr_set(skua_sq_seg(&ring, index, seg++),
							   0xfedcba9876543210ULL, 0x55aa33cc, 0);
				seg = put_sges(index, seg, n);
				skua_wqe_ctrl_set(c, ops[o].op, seg, index,
						  SKUA_WQE_F_SIGNALED | SKUA_WQE_F_FENCE);
				if (ops[o].imm)
					skua_wqe_imm_set(c, htobe32(0x01020304));
				assert_int_equal(decode(index, seg, SKUA_QP_RC, &w),
						 SKUA_VENDOR_NONE);
				assert_int_equal(w.op, ops[o].op);
				assert_int_equal(w.blocks, skua_wqe_blocks(seg));
				assert_int_equal(w.flags, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_FENCE);
				if (ops[o].raddr) {
					assert_int_equal(w.va, 0xfedcba9876543210ULL);
					assert_int_equal(w.rkey, 0x55aa33cc);
				}
				if (ops[o].imm) {
					/* bits as they lie in memory */
					__be32 imm = htobe32(0x01020304);

					assert_memory_equal(&w.imm, &imm, 4);
				}
				check_sges(&w, n);
			}
}

static void inline_round_trip(void **state)
{
	uint8_t src[512];
	struct skua_inline_cursor cur;
	unsigned int len, i, seg;
	uint32_t index;
	struct wqe w;

	(void)state;
	for (i = 0; i < sizeof(src); i++)
		src[i] = i * 13 + 5;
	for (len = 0; len <= sizeof(src); len++)
		for (index = 20; index < 34; index++) {
			skua_wqe_raddr_set(skua_sq_seg(&ring, index, 1), 7, 8, 0);
			skua_inline_begin(&cur, &ring, index, 2);
			skua_inline_put(&cur, src, len / 2);
			skua_inline_put(&cur, src + len / 2, len - len / 2);
			seg = 2 + skua_inline_end(&cur);
			skua_wqe_ctrl_set(skua_sq_seg(&ring, index, 0), SKUA_WQE_WRITE, seg, index,
					  SKUA_WQE_F_INLINE);
			assert_int_equal(decode(index, seg, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
			assert_int_equal(w.len, len);
			assert_int_equal(w.inl_len, len);
			assert_memory_equal(w.inl, src, len);
		}
}

/* Operands are told apart by their values. */
static void atomics_round_trip(void **state)
{
	static const struct {
		enum skua_wqe_op op;
		unsigned int nseg;	/* atomic segments */
		uint64_t compare, mask;
	} ops[] = {
		{ SKUA_WQE_CAS, 1, 22, 0 }, { SKUA_WQE_FAA, 1, 0, 0 },
		{ SKUA_WQE_MASKED_CAS, 2, 22, 44 }, { SKUA_WQE_MASKED_FAA, 2, 0, 0 },
	};
	uint32_t index;
	unsigned int o;
	struct wqe w;

	(void)state;
	for (o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
		for (index = 20; index < 34; index++) {
			unsigned int seg = 1;

			skua_wqe_raddr_set(skua_sq_seg(&ring, index, seg++), 0x1000, 0x1234, 0);
			skua_wqe_atomic_set(skua_sq_seg(&ring, index, seg++), 11,
					    ops[o].compare);
			if (ops[o].nseg == 2)
				skua_wqe_atomic_set(skua_sq_seg(&ring, index, seg++), 33,
						    ops[o].mask);
			skua_wqe_data_set(skua_sq_seg(&ring, index, seg++), 0x2000, 0x77, 8);
			skua_wqe_ctrl_set(skua_sq_seg(&ring, index, 0), ops[o].op, seg, index, 0);
			assert_int_equal(decode(index, seg, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
			assert_int_equal(w.swap_add, 11);
			assert_int_equal(w.compare, ops[o].compare);
			assert_int_equal(w.swap_add_mask, ops[o].nseg == 2 ? 33 : 0);
			assert_int_equal(w.compare_mask, ops[o].mask);
			assert_int_equal(w.nsge, 1);
			assert_int_equal(w.sge[0].addr, 0x2000);
		}
}

static void flush_round_trips(void **state)
{
	uint32_t how = u32_encode_bits(2, SKUA_WQE_FLUSH_PLT) |
		       u32_encode_bits(1, SKUA_WQE_FLUSH_SEL);
	struct wqe w;

	(void)state;
	skua_wqe_raddr_set(skua_sq_seg(&ring, 31, 1), 0x1000, 0x1234, how);
	skua_wqe_ctrl_set(skua_sq_seg(&ring, 31, 0), SKUA_WQE_FLUSH, 2, 31, 0);
	skua_wqe_flush_len_set(skua_sq_seg(&ring, 31, 0), 0x12345);
	assert_int_equal(decode(31, 2, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
	assert_int_equal(w.va, 0x1000);
	assert_int_equal(w.rkey, 0x1234);
	assert_int_equal(w.flush, how);
	assert_int_equal(w.imm, 0x12345);
}

/* What works on keys; the device keeps the segments as they are. */
static void keys_round_trip(void **state)
{
	struct skua_wqe_bind bind;
	struct skua_wqe_reg reg;
	uint32_t index;
	struct wqe w;

	(void)state;
	for (index = 20; index < 34; index++) {
		struct skua_wqe_ctrl *c = skua_sq_seg(&ring, index, 0);

		memset(&bind, 0xff, sizeof(bind));
		skua_wqe_bind_set(&bind, 0x101, 0x102, 0x203, 0xe, 0x1234, 77);
		memcpy(skua_sq_seg(&ring, index, 1), &bind, sizeof(bind));
		skua_wqe_ctrl_set(c, SKUA_WQE_BIND_MW, 3, index, SKUA_WQE_F_LOCAL_FENCE);
		assert_int_equal(decode(index, 3, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
		assert_memory_equal(&w.bind, &bind, sizeof(bind));
		assert_int_equal(decode(index, 3, SKUA_QP_UD, &w), SKUA_VENDOR_WQE_OPCODE);

		memset(&reg, 0xff, sizeof(reg));
		skua_wqe_reg_set(&reg, 0x101, 0xf, 0x1234, 77);
		skua_wqe_reg_pages(&reg, 0x4000, 5, 12, 99);
		memcpy(skua_sq_seg(&ring, index, 1), &reg, sizeof(reg));
		skua_wqe_ctrl_set(c, SKUA_WQE_REG_MR, 4, index, 0);
		assert_int_equal(decode(index, 4, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
		assert_memory_equal(&w.reg, &reg, sizeof(reg));
		assert_int_equal(w.blocks, 1);

		skua_wqe_ctrl_set(c, SKUA_WQE_LOCAL_INV, 1, index, SKUA_WQE_F_LOCAL_FENCE);
		skua_wqe_inv_set(c, 0x55667788);
		assert_int_equal(decode(index, 1, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
		assert_int_equal(w.imm, 0x55667788);
		/* A segment too many, or a fence of key operations elsewhere. */
		skua_wqe_ctrl_set(c, SKUA_WQE_LOCAL_INV, 2, index, 0);
		assert_int_equal(decode(index, 2, SKUA_QP_RC, &w), SKUA_VENDOR_WQE_FORMAT);
		skua_wqe_ctrl_set(c, SKUA_WQE_SEND_INV, 1, index, SKUA_WQE_F_LOCAL_FENCE);
		assert_int_equal(decode(index, 1, SKUA_QP_RC, &w), SKUA_VENDOR_WQE_FORMAT);
		skua_wqe_ctrl_set(c, SKUA_WQE_SEND_INV, 1, index, 0);
		skua_wqe_inv_set(c, 0x55667788);
		assert_int_equal(decode(index, 1, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
		assert_int_equal(w.imm, 0x55667788);
	}
}

static void bad_wqes_are_refused(void **state)
{
	struct wqe w;

	(void)state;
	put_sges(3, 1, 2);
	skua_wqe_ctrl_set(skua_sq_seg(&ring, 3, 0), SKUA_WQE_SEND, 3, 4, 0);
	assert_int_equal(decode(3, 3, SKUA_QP_RC, &w), SKUA_VENDOR_WQE_INDEX);
	skua_wqe_ctrl_set(skua_sq_seg(&ring, 3, 0), SKUA_WQE_SEND, 3, 3, 1U << 31);
	assert_int_equal(decode(3, 3, SKUA_QP_RC, &w), SKUA_VENDOR_WQE_FORMAT);
	skua_wqe_ctrl_set(skua_sq_seg(&ring, 3, 0), (enum skua_wqe_op)0x7f, 3, 3, 0);
	assert_int_not_equal(decode(3, 3, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
	skua_wqe_ctrl_set(skua_sq_seg(&ring, 3, 0), SKUA_WQE_SEND, 3, 3, 0);
	assert_int_equal(decode(3, 3, SKUA_QP_RC, &w), SKUA_VENDOR_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lists_round_trip, setup),
		cmocka_unit_test_setup(inline_round_trip, setup),
		cmocka_unit_test_setup(atomics_round_trip, setup),
		cmocka_unit_test_setup(flush_round_trips, setup),
		cmocka_unit_test_setup(keys_round_trip, setup),
		cmocka_unit_test_setup(bad_wqes_are_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
