// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters of congestion control: what is asked of the device, what is refused before,
 * and what is written again after a reset.
 */
#include "fake.h"

/**
 * struct cc - a device with parameters
 * @fake: the function
 * @count: how many it has
 * @value: of each
 * @status: what becomes of MODIFY_CC
 * @queries: QUERY_CC commands
 * @writes: MODIFY_CC commands
 */
struct cc {
	struct fake *fake;
	u32 count;
	u32 value[SKUA_CC_PARAMS_MAX];
	u32 status;
	unsigned int queries;
	unsigned int writes;
};

static const u32 cc_default[] = {
#define X(id, user, min, max, dflt, text) dflt,
	SKUA_CC_PARAM_TABLE(X)
#undef X
};

static void cc_reset(struct cc *c)
{
	memset(c->value, 0, sizeof(c->value));
	memcpy(c->value, cc_default, sizeof(cc_default));
	c->queries = 0;
	c->writes = 0;
}

static u32 cc_serve(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	const struct skua_cmd_modify_cc_in *modify = in;
	struct skua_cmd_query_cc_out *query = out;
	struct cc *c = fake->test->priv;
	u32 i;

	switch (le16_to_cpu(slot->opcode)) {
	case SKUA_CMD_QUERY_CC:
		c->queries++;
		query->count = cpu_to_le32(c->count);
		for (i = 0; i < SKUA_CC_PARAMS_MAX; i++)
			query->value[i] = cpu_to_le32(c->value[i]);
		return SKUA_CMD_ST_OK;
	case SKUA_CMD_MODIFY_CC:
		c->writes++;
		if (!c->status)
			c->value[le32_to_cpu(modify->param)] = le32_to_cpu(modify->value);
		return c->status;
	default:
		return SKUA_CMD_ST_BAD_OPCODE;
	}
}

static int cc_init(struct kunit *test)
{
	struct cc *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	test->priv = c;
	c->fake = fake_create(test);
	c->fake->serve = cc_serve;
	c->count = SKUA_CC_PARAMS;
	c->fake->dev.limits.caps = SKUA_CAP_DCQCN | SKUA_CAP_CC_DELAY;
	skua_cc_init(&c->fake->dev);
	cc_reset(c);
	return 0;
}

static void test_ranges(struct kunit *test)
{
	static const struct {
		u32 min, max;
	} range[] = {
#define X(id, user, min, max, dflt, text) { min, max },
		SKUA_CC_PARAM_TABLE(X)
#undef X
	};
	struct cc *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;
	u32 i;

	for (i = 0; i < SKUA_CC_PARAMS; i++) {
		c->writes = 0;
		if (range[i].min)
			KUNIT_EXPECT_EQ(test, skua_cc_set(dev, i, range[i].min - 1), -ERANGE);
		KUNIT_EXPECT_EQ(test, skua_cc_set(dev, i, range[i].max + 1ULL), -ERANGE);
		KUNIT_EXPECT_EQ(test, skua_cc_set(dev, i, U64_MAX), -ERANGE);
		/* 2^32 more than a good value is not that value. */
		KUNIT_EXPECT_EQ(test, skua_cc_set(dev, i, BIT_ULL(32) + range[i].min), -ERANGE);
		KUNIT_EXPECT_EQ(test, c->writes, 0);
		KUNIT_EXPECT_EQ(test, skua_cc_set(dev, i, range[i].min), 0);
		KUNIT_EXPECT_EQ(test, c->value[i], range[i].min);
		KUNIT_EXPECT_EQ(test, skua_cc_set(dev, i, range[i].max), 0);
		KUNIT_EXPECT_EQ(test, c->value[i], range[i].max);
		KUNIT_EXPECT_EQ(test, c->writes, 2);
	}
}

static void test_algorithm(struct kunit *test)
{
	struct cc *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;

	dev->limits.caps = SKUA_CAP_DCQCN;
	KUNIT_EXPECT_EQ(test, skua_cc_set(dev, SKUA_CC_RP_ALGORITHM, SKUA_CC_DELAY), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, c->writes, 0);
	KUNIT_EXPECT_EQ(test, skua_cc_set(dev, SKUA_CC_RP_ALGORITHM, SKUA_CC_DCQCN), 0);
}

/* A reset of the device: what was written comes again, and nothing else. */
static void test_again(struct kunit *test)
{
	struct cc *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;

	KUNIT_ASSERT_EQ(test, skua_cc_up(dev), 0);
	KUNIT_EXPECT_EQ(test, c->writes, 0);
	KUNIT_EXPECT_EQ(test, dev->cc.count, SKUA_CC_PARAMS);
	KUNIT_ASSERT_EQ(test, skua_cc_set(dev, SKUA_CC_RP_ALGORITHM, SKUA_CC_DCQCN), 0);
	KUNIT_ASSERT_EQ(test, skua_cc_set(dev, SKUA_CC_NP_CNP_PRIO, 3), 0);
	c->status = SKUA_CMD_ST_BAD_PARAM;
	KUNIT_EXPECT_EQ(test, skua_cc_set(dev, SKUA_CC_RP_AI_RATE, 7), -EINVAL);
	c->status = SKUA_CMD_ST_OK;
	cc_reset(c);
	KUNIT_ASSERT_EQ(test, skua_cc_up(dev), 0);
	KUNIT_EXPECT_EQ(test, c->writes, 2);
	KUNIT_EXPECT_EQ(test, c->value[SKUA_CC_RP_ALGORITHM], SKUA_CC_DCQCN);
	KUNIT_EXPECT_EQ(test, c->value[SKUA_CC_NP_CNP_PRIO], 3);
	KUNIT_EXPECT_EQ(test, c->value[SKUA_CC_RP_AI_RATE], cc_default[SKUA_CC_RP_AI_RATE]);
	/* One that is not taken does not keep the device down. */
	cc_reset(c);
	c->status = SKUA_CMD_ST_BAD_PARAM;
	KUNIT_EXPECT_EQ(test, skua_cc_up(dev), 0);
	KUNIT_EXPECT_EQ(test, c->writes, 2);
	KUNIT_EXPECT_FALSE(test, skua_dead(dev));
}

/* A device of another version, or without any of it. */
static void test_other_devices(struct kunit *test)
{
	struct cc *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;
	u32 value[SKUA_CC_PARAMS];

	KUNIT_ASSERT_EQ(test, skua_cc_set(dev, SKUA_CC_NP_CNP_PRIO, 3), 0);
	c->count = U32_MAX;
	KUNIT_EXPECT_EQ(test, skua_cc_query(dev, value), SKUA_CC_PARAMS);
	KUNIT_EXPECT_EQ(test, skua_cc_up(dev), 0);
	KUNIT_EXPECT_EQ(test, dev->cc.count, SKUA_CC_PARAMS);
	cc_reset(c);
	c->count = 2;
	KUNIT_EXPECT_EQ(test, skua_cc_query(dev, value), 2);
	KUNIT_EXPECT_EQ(test, skua_cc_up(dev), 0);
	KUNIT_EXPECT_EQ(test, dev->cc.count, 2);
	KUNIT_EXPECT_EQ(test, c->writes, 0);
	cc_reset(c);
	dev->limits.caps = 0;
	KUNIT_EXPECT_EQ(test, skua_cc_up(dev), 0);
	KUNIT_EXPECT_EQ(test, c->queries + c->writes, 0);
	KUNIT_EXPECT_EQ(test, dev->cc.count, 0);
}

static struct kunit_case skua_cc_cases[] = {
	KUNIT_CASE(test_ranges),
	KUNIT_CASE(test_algorithm),
	KUNIT_CASE(test_again),
	KUNIT_CASE(test_other_devices),
	{}
};

struct kunit_suite skua_cc_suite = {
	.name = "skua_cc",
	.init = cc_init,
	.test_cases = skua_cc_cases,
};
