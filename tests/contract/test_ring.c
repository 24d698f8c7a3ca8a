// SPDX-License-Identifier: GPL-2.0
/*
 * The ring code that kernel and provider share, by itself: where segments lie,
 * what wraps, what a phase says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/sq_event.h>
#include <skua/sl.h>
#include <skua/wqe_build.h>

#define FREE 0xee

struct guarded {
	uint8_t before[64];
	uint8_t ring[16 * SKUA_WQE_BLOCK];
	uint8_t after[64];
};

static void guard_init(struct guarded *g)
{
	memset(g, FREE, sizeof(*g));
}

static void guard_check(const struct guarded *g)
{
	unsigned int i;

	for (i = 0; i < sizeof(g->before); i++) {
		assert_int_equal(g->before[i], FREE);
		assert_int_equal(g->after[i], FREE);
	}
}

static void segments_wrap(void **state)
{
	struct guarded g;
	struct skua_sq_ring ring;
	unsigned int seg;
	uint32_t index;

	(void)state;
	skua_sq_ring_init(&ring, g.ring, 2);
	for (index = 0xfffffff0; index != 16; index++)
		for (seg = 0; seg < 16; seg++) {
			uint32_t at = (index * 4u + seg) % 16;

			assert_ptr_equal(skua_sq_seg(&ring, index, seg), g.ring + at * 16);
		}
}

static void blocks_of_segments(void **state)
{
	unsigned int n, len;

	(void)state;
	for (n = 1; n <= SKUA_WQE_MAX_SEGS; n++) {
		assert_true(skua_wqe_blocks(n) * SKUA_WQE_BLOCK >= n * SKUA_WQE_SEG);
		assert_true((skua_wqe_blocks(n) - 1) * SKUA_WQE_BLOCK < n * SKUA_WQE_SEG);
	}
	for (len = 0; len < 1000; len++) {
		unsigned int room = skua_wqe_inline_segs(len) * SKUA_WQE_SEG - 4;

		assert_true(room >= len && room - len < SKUA_WQE_SEG);
	}
}

/* Every length, in up to five parts, at every place of the ring. */
static void inline_wraps(void **state)
{
	uint8_t src[300], *flat;
	struct skua_inline_cursor cur;
	struct skua_sq_ring ring;
	struct guarded g;
	unsigned int len, index, parts, i, at;

	(void)state;
	for (i = 0; i < sizeof(src); i++)
		src[i] = i * 7 + 1;
	flat = malloc(sizeof(g.ring));
	assert_non_null(flat);
	skua_sq_ring_init(&ring, g.ring, 4);
	for (len = 0; len <= 300; len++) {
		for (index = 0xfffffffa; index != 16; index++) {
			uint32_t start = (index * 64 + 2 * 16) % sizeof(g.ring);
			unsigned int segs;

			guard_init(&g);
			parts = (len + index) % 5 + 1;
			skua_inline_begin(&cur, &ring, index, 2);
			for (i = 0, at = 0; i < parts; i++) {
				unsigned int n = i + 1 == parts ? len - at : len / parts;

				skua_inline_put(&cur, src + at, n);
				at += n;
			}
			segs = skua_inline_end(&cur);
			assert_int_equal(segs, skua_wqe_inline_segs(len));
			guard_check(&g);

			for (i = 0; i < sizeof(g.ring); i++)
				flat[i] = g.ring[(start + i) % sizeof(g.ring)];
			assert_int_equal(flat[0] | flat[1] << 8 | flat[2] << 16, len);
			assert_int_equal(flat[3], 0);
			assert_memory_equal(flat + 4, src, len);
			for (i = 4 + len; i < sizeof(g.ring); i++)
				assert_int_equal(flat[i], FREE);
		}
	}
	free(flat);
}

static void control_segment(void **state)
{
	struct skua_wqe_ctrl c;

	(void)state;
	memset(&c, FREE, sizeof(c));
	skua_wqe_ctrl_set(&c, SKUA_WQE_WRITE_IMM, 17, 0x12345678,
			  SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE);
	assert_int_equal(le32_get_bits(c.op, SKUA_WQE_OPCODE), SKUA_WQE_WRITE_IMM);
	assert_int_equal(le32_get_bits(c.op, SKUA_WQE_NSEG), 17);
	assert_int_equal(le32_get_bits(c.op, SKUA_WQE_INDEX), 0x5678);
	assert_int_equal(le32_to_cpu(c.flags), SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE);
	assert_int_equal(c.imm, 0);
	assert_int_equal(c.eth, 0);
	skua_wqe_imm_set(&c, htobe32(0xa1b2c3d4));
	assert_memory_equal(&c.imm, "\xa1\xb2\xc3\xd4", 4);
	skua_wqe_inv_set(&c, 0xa1b2c3d4);
	assert_memory_equal(&c.imm, "\xd4\xc3\xb2\xa1", 4);
}

static void receive_list_ends(void **state)
{
	struct skua_wqe_data d[4];
	struct skua_rq_ring ring;
	uint8_t buf[8 * 64];
	uint32_t i;

	(void)state;
	skua_rq_ring_init(&ring, buf, 3, 2);
	for (i = 0xfffffff8; i != 8; i++)
		assert_ptr_equal(skua_rq_wqe(&ring, i), buf + i % 8 * 64);

	memset(d, FREE, sizeof(d));
	skua_rq_wqe_end(d, 4, 4);
	assert_int_equal(le32_to_cpu(d[3].lkey), 0xeeeeeeee);
	skua_rq_wqe_end(d, 3, 4);
	assert_int_equal(le32_to_cpu(d[3].lkey), SKUA_INVALID_LKEY);
	assert_int_equal(le32_to_cpu(d[2].lkey), 0xeeeeeeee);
}

/* A device that writes, software that reads, over many turns and the index wrap. */
static void phase_over_turns(void **state)
{
	struct skua_cqe ring[8];
	unsigned int log, step;
	uint32_t pi, ci;

	(void)state;
	for (log = 0; log <= 3; log++) {
		memset(ring, 0, sizeof(ring));
		for (pi = ci = 0, step = 0; step < 1000; step++) {
			uint32_t mask = (1u << log) - 1;

			if (pi - ci <= mask && step * 2654435761u >> 31) {
				le32p_replace_bits(&ring[pi & mask].own, !(pi >> log & 1),
						   SKUA_CQE_PHASE);
				pi++;
			} else if (ci != pi) {
				assert_true(skua_cqe_is_new(&ring[ci & mask], ci, log));
				ci++;
			}
			if (ci == pi)
				assert_false(skua_cqe_is_new(&ring[ci & mask], ci, log));
		}
		assert_true(pi > 100);
	}
	/* The free-running index passes 2^32 without a change of phase in between. */
	assert_true(skua_phase_is_new(0, 0xffffffff, 3));
	assert_true(skua_phase_is_new(1u << 31, 0, 3));
}

static void cqe_fields(void **state)
{
	struct skua_cqe c = {};

	(void)state;
	c.what = cpu_to_le32(u32_encode_bits(0xbeef, SKUA_CQE_WQE_INDEX) |
			     u32_encode_bits(SKUA_CQE_RECV, SKUA_CQE_OPCODE) |
			     u32_encode_bits(SKUA_CQE_LOC_LEN_ERR, SKUA_CQE_STATUS));
	c.own = cpu_to_le32(SKUA_CQE_F_IMM | SKUA_CQE_F_SOLICITED | SKUA_CQE_PHASE | 0x27);
	assert_int_equal(skua_cqe_wqe_index(&c), 0xbeef);
	assert_int_equal(skua_cqe_opcode(&c), SKUA_CQE_RECV);
	assert_int_equal(skua_cqe_status(&c), SKUA_CQE_LOC_LEN_ERR);
	assert_int_equal(skua_cqe_flags(&c), SKUA_CQE_F_IMM | SKUA_CQE_F_SOLICITED);
	assert_int_equal(skua_cqe_vendor(&c), 0x27);
}

/* Against the plain meaning: is event in [old, new)? */
static void event_index(void **state)
{
	static const uint32_t base[] = { 0, 1, 0x7fffffff, 0xfffffff0 };
	unsigned int b, n, e;

	(void)state;
	for (b = 0; b < 4; b++)
		for (n = 0; n < 20; n++)
			for (e = 0; e < 40; e++) {
				uint32_t old = base[b] + 10;
				uint32_t event = base[b] + e;

				assert_int_equal(skua_need_event(event, old + n, old),
						 e >= 10 && e < 10 + n);
			}
}

static void doorbell_words(void **state)
{
	(void)state;
	assert_int_equal(skua_db_word(0x11223344, 0x55667788), 0x5566778811223344);
	assert_int_equal(skua_db_cq_arm(0xabcdef, 2, 0), 0x02abcdef);
	assert_int_equal(skua_db_cq_arm(0xabcdef, 7, 1), 0x07abcdef);
	assert_int_equal(skua_db_eq(5, 0), 5);
	assert_int_equal(skua_db_eq(5, 1), 0x80000005);
}

/* What a completion tells programs, and what becomes of it in an address handle. */
static void service_levels(void **state)
{
	unsigned int sl, pcp, ipv4, good = 0;

	(void)state;
	for (ipv4 = 0; ipv4 < 2; ipv4++)
		for (pcp = 0; pcp < 8; pcp++) {
			struct skua_cqe cqe = {
				.ud = { .ipv4 = ipv4, .vlan_tci = cpu_to_le16(pcp << 13 | 0xfff) },
				.own = cpu_to_le32(SKUA_CQE_F_VLAN),
			};

			sl = skua_sl_received(&cqe);
			assert_int_equal(sl & 15, ipv4 ? 10 : 9);
			assert_int_equal(skua_sl_priority(sl), pcp);
			/* Without a tag there is no priority. */
			cqe.own = 0;
			assert_int_equal(skua_sl_received(&cqe), ipv4 ? 10 : 9);
		}
	for (sl = 0; sl < 256; sl++)
		good += skua_sl_priority(sl) <= SKUA_SL_PRIORITY_MAX;
	assert_int_equal(good, 8 + 16);
	for (sl = 0; sl < 8; sl++)
		assert_int_equal(skua_sl_priority(sl), sl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_wrap),
		cmocka_unit_test(blocks_of_segments),
		cmocka_unit_test(inline_wraps),
		cmocka_unit_test(control_segment),
		cmocka_unit_test(receive_list_ends),
		cmocka_unit_test(phase_over_turns),
		cmocka_unit_test(cqe_fields),
		cmocka_unit_test(event_index),
		cmocka_unit_test(doorbell_words),
		cmocka_unit_test(service_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
