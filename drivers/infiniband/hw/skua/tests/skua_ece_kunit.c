// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what a QP may use that the standard does not know: what was agreed on with the
 * peer, and the attributes that follow from it.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../skua_ib.h"

#define BOTH	(SKUA_ECE_MASKED_ATOMIC | SKUA_ECE_SELECTIVE_REPEAT)

/* --- vendor features --- */

static void test_options(struct kunit *test)
{
	static const struct {
		u64 caps;
		u32 options;
	} cases[] = {
		{ 0, 0 },
		{ SKUA_CAP_MASKED_ATOMIC, 0 },
		{ SKUA_CAP_VENDOR_OFF, 0 },
		{ SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_VENDOR_OFF, SKUA_ECE_MASKED_ATOMIC },
		{ SKUA_CAP_SR, SKUA_ECE_SELECTIVE_REPEAT },
		{ SKUA_CAP_SR | SKUA_CAP_MASKED_ATOMIC, SKUA_ECE_SELECTIVE_REPEAT },
		{ SKUA_CAP_SR | SKUA_CAP_VENDOR_OFF, SKUA_ECE_SELECTIVE_REPEAT },
		{ SKUA_CAP_SR | SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_VENDOR_OFF, BOTH },
	};
	struct skua_limits lim = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		lim.caps = cases[i].caps;
		KUNIT_EXPECT_EQ_MSG(test, skua_ib_ece_options(&lim), cases[i].options,
				    "capabilities %#llx", lim.caps);
	}
}

static void test_vendor(struct kunit *test)
{
	struct skua_limits lim = {
		.caps = SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_VENDOR_OFF,
	};
	struct skua_cmd_modify_qp_in in = {};

	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, SKUA_ECE_MASKED_ATOMIC, &in), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.mask), SKUA_QP_M_VENDOR_OFF);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.attr.vendor_off), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_XRC_TGT, 0, &in), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.attr.vendor_off), SKUA_VENDOR_MASKED_ATOMIC);
	/* Options of a newer peer are for the provider to drop. */
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, BOTH, &in), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_UD, 0, &in), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_UC, 0, &in), -EINVAL);
	lim.caps = SKUA_CAP_MASKED_ATOMIC;
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, 0, &in), -EOPNOTSUPP);
}

/* Selective repeat is an option, but no operation that a QP could do without. */
static void test_vendor_with_sr(struct kunit *test)
{
	struct skua_limits lim = {
		.caps = SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_VENDOR_OFF | SKUA_CAP_SR,
	};
	const u32 sr = SKUA_ECE_SELECTIVE_REPEAT;
	struct skua_cmd_modify_qp_in in = {};

	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, BOTH, &in), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.attr.vendor_off), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, sr, &in), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.attr.vendor_off), SKUA_VENDOR_MASKED_ATOMIC);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, SKUA_ECE_MASKED_ATOMIC, &in), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.attr.vendor_off), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, 4, &in), -EOPNOTSUPP);
	/* The device does not know the attribute. */
	lim.caps = SKUA_CAP_SR;
	memset(&in, 0, sizeof(in));
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, sr, &in), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, 0, &in), 0);
	KUNIT_EXPECT_EQ(test, in.mask, 0);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, SKUA_ECE_MASKED_ATOMIC, &in),
			-EOPNOTSUPP);
}

/* --- selective repeat --- */

static void test_ext_modes(struct kunit *test)
{
	static const struct {
		bool agreed;
		u32 options;
		u32 mode;
	} cases[] = {
		{ false, 0, SKUA_EXT_NEGOTIATE },
		{ true, 0, SKUA_EXT_PLAIN },
		{ true, SKUA_ECE_MASKED_ATOMIC, SKUA_EXT_PLAIN },
		{ true, SKUA_ECE_SELECTIVE_REPEAT, SKUA_EXT_ALWAYS },
		{ true, BOTH, SKUA_EXT_ALWAYS },
	};
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_XRC_INI, IB_QPT_XRC_TGT };
	const struct skua_limits lim = { .caps = SKUA_CAP_SR };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(types); i++) {
		struct skua_cmd_modify_qp_in in = { .mask = cpu_to_le32(1) };
		u32 mode = cases[i / ARRAY_SIZE(types)].mode, window = 0;

		skua_ib_ext_build(&lim, types[i % ARRAY_SIZE(types)],
				  cases[i / ARRAY_SIZE(types)].agreed,
				  cases[i / ARRAY_SIZE(types)].options, &in);
		if (mode != SKUA_EXT_PLAIN)
			window = SKUA_EXT_LOG_WINDOW_MAX;
		KUNIT_EXPECT_EQ(test, le32_to_cpu(in.mask), 1 | SKUA_QP_M_EXT);
		KUNIT_EXPECT_EQ(test, le32_get_bits(in.attr.ext, SKUA_ATTR_EXT_MODE), mode);
		KUNIT_EXPECT_EQ(test, le32_get_bits(in.attr.ext, SKUA_ATTR_EXT_LOG_WINDOW),
				window);
		/* The rest is not for skua_ib to fill in. */
		KUNIT_EXPECT_EQ(test, in.ext_table, 0);
		KUNIT_EXPECT_EQ(test, in.ext_len, 0);
	}
}

static void test_ext_none(struct kunit *test)
{
	static const enum ib_qp_type types[] = {
		IB_QPT_UC, IB_QPT_UD, IB_QPT_GSI, IB_QPT_RAW_PACKET,
	};
	struct skua_limits lim = { .caps = ~SKUA_CAP_SR };
	struct skua_cmd_modify_qp_in in = {};
	unsigned int i;

	/* A device without it is never told of it. */
	skua_ib_ext_build(&lim, IB_QPT_RC, false, 0, &in);
	skua_ib_ext_build(&lim, IB_QPT_RC, true, BOTH, &in);
	lim.caps = ~0ULL;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		skua_ib_ext_build(&lim, types[i], false, 0, &in);
	KUNIT_EXPECT_EQ(test, in.mask, 0);
	KUNIT_EXPECT_EQ(test, in.attr.ext, 0);
}

static struct kunit_case skua_ece_cases[] = {
	KUNIT_CASE(test_options),
	KUNIT_CASE(test_vendor),
	KUNIT_CASE(test_vendor_with_sr),
	KUNIT_CASE(test_ext_modes),
	KUNIT_CASE(test_ext_none),
	{}
};

static struct kunit_suite skua_ece_suite = {
	.name = "skua_ece",
	.test_cases = skua_ece_cases,
};

kunit_test_suite(skua_ece_suite);

MODULE_DESCRIPTION("KUnit tests of agreements with the peer in skua_ib");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
