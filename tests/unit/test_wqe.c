// SPDX-License-Identifier: GPL-2.0
/* Send WQEs taken apart: the limits of what each part may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/wqe_build.h>

#include "core.h"

static uint8_t raw[2 * SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK];

static enum skua_vendor decode(uint32_t op, uint32_t flags, uint32_t nseg, enum skua_qp_type type)
{
	struct skua_wqe_ctrl ctrl;
	struct wqe *w = malloc(sizeof(*w));
	enum skua_vendor err;

	skua_wqe_ctrl_set(&ctrl, op, nseg, 5, flags);
	memcpy(raw, &ctrl, sizeof(ctrl));
	err = wqe_decode(raw, sizeof(raw), 5, type, w);
	free(w);
	return err;
}

/* Inline payload: up to the limit, and not one byte more. */
static void inline_limit(void **state)
{
	(void)state;
	for (uint32_t len = MODEL_MAX_INLINE - 20; len <= MODEL_MAX_INLINE + 20; len++) {
		__le32 le = cpu_to_le32(len);

		memset(raw, 0, sizeof(raw));
		memcpy(raw + SKUA_WQE_SEG, &le, sizeof(le));
		assert_int_equal(decode(SKUA_WQE_SEND, SKUA_WQE_F_INLINE,
					1 + skua_wqe_inline_segs(len), SKUA_QP_RC),
				 len <= MODEL_MAX_INLINE ? SKUA_VENDOR_NONE : SKUA_VENDOR_SGE_LEN);
	}
}

/* An inline length that says other than the number of segments. */
static void inline_segments(void **state)
{
	__le32 le = cpu_to_le32(100);

	(void)state;
	memset(raw, 0, sizeof(raw));
	memcpy(raw + SKUA_WQE_SEG, &le, sizeof(le));
	for (uint32_t nseg = 1; nseg < 12; nseg++)
		assert_int_equal(decode(SKUA_WQE_SEND, SKUA_WQE_F_INLINE, nseg, SKUA_QP_RC),
				 nseg == 1 + skua_wqe_inline_segs(100) ? SKUA_VENDOR_NONE :
									 SKUA_VENDOR_WQE_FORMAT);
}

/* Elements, and their sum, up to the longest message. */
static void message_limit(void **state)
{
	static const struct {
		uint32_t len[2];
		enum skua_vendor err;
	} rows[] = {
		{ { 1u << MODEL_LOG_MSG, 0 }, SKUA_VENDOR_NONE },
		{ { (1u << MODEL_LOG_MSG) + 1, 0 }, SKUA_VENDOR_SGE_LEN },
		{ { (1u << MODEL_LOG_MSG) - 1, 1 }, SKUA_VENDOR_NONE },
		{ { 1u << MODEL_LOG_MSG, 1 }, SKUA_VENDOR_SGE_LEN },
		{ { 1u << MODEL_LOG_MSG, 1u << MODEL_LOG_MSG }, SKUA_VENDOR_SGE_LEN },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		for (unsigned int i = 0; i < 2; i++)
			skua_wqe_data_set((void *)(raw + (1 + i) * SKUA_WQE_SEG), 0, 7,
					  rows[k].len[i]);
		assert_int_equal(decode(SKUA_WQE_SEND, 0, 3, SKUA_QP_RC), rows[k].err);
	}
}

/* Atomics have 8 bytes, LOCAL_FENCE is for what works on keys. */
static void operands(void **state)
{
	(void)state;
	memset(raw, 0, sizeof(raw));
	for (uint32_t len = 0; len <= 16; len++) {
		skua_wqe_data_set((void *)(raw + 3 * SKUA_WQE_SEG), 0, 7, len);
		assert_int_equal(decode(SKUA_WQE_FAA, 0, 4, SKUA_QP_RC),
				 len == 8 ? SKUA_VENDOR_NONE : SKUA_VENDOR_SGE_LEN);
	}
	assert_int_equal(decode(SKUA_WQE_LOCAL_INV, SKUA_WQE_F_LOCAL_FENCE, 1, SKUA_QP_RC),
			 SKUA_VENDOR_NONE);
	assert_int_equal(decode(SKUA_WQE_NOP, SKUA_WQE_F_LOCAL_FENCE, 1, SKUA_QP_RC),
			 SKUA_VENDOR_WQE_FORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inline_limit),
		cmocka_unit_test(inline_segments),
		cmocka_unit_test(message_limit),
		cmocka_unit_test(operands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
