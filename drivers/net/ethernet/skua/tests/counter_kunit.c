// SPDX-License-Identifier: GPL-2.0
/*
 * Counter sets: their numbers, what QPs are told of them, and counts of a device that
 * has more or fewer than the driver knows.
 */
#include "fake.h"

#define SETS_LOG	3
#define MAX_SETS	(BIT(SETS_LOG) - 1)

/**
 * struct ct - a device with counter sets
 * @fake: the function
 * @sets: those that the device has
 * @status: what becomes of CREATE_COUNTER and MODIFY_QP
 * @refuse_destroy: DESTROY_COUNTER is refused
 * @count: what QUERY_COUNTERS says it gives
 * @modify: the last MODIFY_QP
 */
struct ct {
	struct fake *fake;
	unsigned long sets;
	u32 status;
	bool refuse_destroy;
	u32 count;
	struct skua_cmd_modify_qp_in modify;
};

static u32 ct_query(struct ct *c, u32 set, struct skua_cmd_query_counters_out *out, u32 len)
{
	u32 room = (len - sizeof(*out)) / sizeof(out->value[0]);
	u32 i;

	if (set && !test_bit(set, &c->sets))
		return SKUA_CMD_ST_BAD_INDEX;
	out->count = cpu_to_le32(c->count);
	/* Whatever it says, it fills what room there is. */
	for (i = 0; i < room; i++)
		out->value[i] = cpu_to_le64((u64)set << 32 | i);
	return SKUA_CMD_ST_OK;
}

static u32 ct_serve(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	u32 set = le32_to_cpu(((const struct skua_cmd_index_in *)in)->index);
	struct ct *c = fake->test->priv;

	switch (le16_to_cpu(slot->opcode)) {
	case SKUA_CMD_CREATE_COUNTER:
		KUNIT_EXPECT_GE(fake->test, set, 1);
		KUNIT_EXPECT_LE(fake->test, set, MAX_SETS);
		KUNIT_EXPECT_FALSE(fake->test, test_bit(set, &c->sets));
		if (!c->status)
			__set_bit(set, &c->sets);
		return c->status;
	case SKUA_CMD_DESTROY_COUNTER:
		KUNIT_EXPECT_TRUE(fake->test, test_bit(set, &c->sets));
		if (c->refuse_destroy)
			return SKUA_CMD_ST_BUSY;
		__clear_bit(set, &c->sets);
		return SKUA_CMD_ST_OK;
	case SKUA_CMD_QUERY_COUNTERS:
		return ct_query(c, set, out, le32_to_cpu(slot->out_len));
	case SKUA_CMD_MODIFY_QP:
		memcpy(&c->modify, in, sizeof(c->modify));
		return c->status;
	default:
		return fake_serve_icm(fake, slot, in, out);
	}
}

static void ct_exit(void *data)
{
	struct ct *c = data;
	struct skua_dev *dev = &c->fake->dev;

	KUNIT_EXPECT_TRUE(c->fake->test, ida_is_empty(&dev->sets));
	ida_destroy(&dev->sets);
	skua_icm_table_exit(dev, &dev->icm[SKUA_ICM_CNT]);
}

static int counter_init(struct kunit *test)
{
	struct ct *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct skua_dev *dev;

	KUNIT_ASSERT_NOT_NULL(test, c);
	test->priv = c;
	c->fake = fake_create(test);
	c->fake->serve = ct_serve;
	c->count = SKUA_CNT_COUNT;
	dev = &c->fake->dev;
	dev->limits.caps = SKUA_CAP_COUNTER_SET;
	dev->limits.max_sets = MAX_SETS;
	ida_init(&dev->sets);
	skua_icm_table_init(&dev->icm[SKUA_ICM_CNT], 0, SKUA_ICM_CNT_SIZE, SETS_LOG);
	return kunit_add_action_or_reset(test, ct_exit, c);
}

static void test_numbers(struct kunit *test)
{
	struct ct *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;
	u32 set[MAX_SETS], one;
	unsigned int i;

	for (i = 0; i < MAX_SETS; i++)
		KUNIT_ASSERT_EQ(test, skua_set_create(dev, &set[i]), 0);
	KUNIT_EXPECT_EQ(test, hweight_long(c->sets), MAX_SETS);
	KUNIT_EXPECT_EQ(test, skua_set_create(dev, &one), -ENOSPC);
	skua_set_destroy(dev, set[3]);
	KUNIT_ASSERT_EQ(test, skua_set_create(dev, &one), 0);
	KUNIT_EXPECT_EQ(test, one, set[3]);
	for (i = 0; i < MAX_SETS; i++)
		skua_set_destroy(dev, set[i]);
	KUNIT_EXPECT_EQ(test, c->sets, 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&c->fake->mapped), 0);
}

static void test_refused(struct kunit *test)
{
	struct ct *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;
	u32 set = 99;

	dev->limits.caps = 0;
	KUNIT_EXPECT_EQ(test, skua_set_create(dev, &set), -EOPNOTSUPP);
	dev->limits.caps = SKUA_CAP_COUNTER_SET;
	dev->limits.max_sets = 0;
	KUNIT_EXPECT_EQ(test, skua_set_create(dev, &set), -EOPNOTSUPP);
	dev->limits.max_sets = MAX_SETS;
	c->fake->refuse_map = 1;
	KUNIT_EXPECT_EQ(test, skua_set_create(dev, &set), -ENOMEM);
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&dev->sets));
	c->status = SKUA_CMD_ST_EXISTS;
	KUNIT_EXPECT_EQ(test, skua_set_create(dev, &set), -EEXIST);
	KUNIT_EXPECT_TRUE(test, ida_is_empty(&dev->sets));
	KUNIT_EXPECT_EQ(test, atomic64_read(&c->fake->mapped), 0);
	KUNIT_EXPECT_EQ(test, set, 99);
	KUNIT_EXPECT_FALSE(test, skua_dead(dev));
}

/* The memory of a set that stays with the device is not given to another. */
static void test_destroy_refused(struct kunit *test)
{
	struct ct *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;
	u32 set;

	KUNIT_ASSERT_EQ(test, skua_set_create(dev, &set), 0);
	c->refuse_destroy = true;
	skua_set_destroy(dev, set);
	KUNIT_EXPECT_TRUE(test, skua_dead(dev));
	KUNIT_EXPECT_TRUE(test, c->fake->quiesced);
}

/* A device of an earlier or a later version, or one that says just anything. */
static void test_query(struct kunit *test)
{
	static const u32 counts[] = {
		SKUA_CNT_COUNT, 0, 1, SKUA_CNT_COUNT - 1, SKUA_CNT_COUNT + 1, U32_MAX,
	};
	struct ct *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;
	unsigned int n, i;
	u64 *value;
	u32 set;

	/* Exactly as large as it must be: KASAN looks at its end. */
	value = kunit_kmalloc(test, SKUA_CNT_COUNT * sizeof(*value), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, value);
	KUNIT_EXPECT_EQ(test, skua_query_set(dev, 2, value), -EINVAL);
	KUNIT_ASSERT_EQ(test, skua_set_create(dev, &set), 0);
	for (n = 0; n < ARRAY_SIZE(counts); n++) {
		c->count = counts[n];
		memset(value, 0xff, SKUA_CNT_COUNT * sizeof(*value));
		KUNIT_ASSERT_EQ(test, skua_query_set(dev, set, value), 0);
		for (i = 0; i < SKUA_CNT_COUNT; i++)
			KUNIT_ASSERT_EQ(test, value[i], i < counts[n] ? (u64)set << 32 | i : 0);
	}
	c->count = SKUA_CNT_COUNT;
	KUNIT_ASSERT_EQ(test, skua_query_counters(dev, value), 0);
	KUNIT_EXPECT_EQ(test, value[1], 1);
	skua_set_destroy(dev, set);
}

/* Binding is a change of the QP in whatever state it is, and of nothing else. */
static void test_bind(struct kunit *test)
{
	struct ct *c = test->priv;
	struct skua_dev *dev = &c->fake->dev;
	struct skua_qp qp = { .obj.num = 0x321 };

	KUNIT_ASSERT_EQ(test, skua_qp_count(dev, &qp, 5), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(c->modify.qpn), 0x321);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(c->modify.mask), SKUA_QP_M_COUNTER);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(c->modify.cur_state), SKUA_QP_ANY_STATE);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(c->modify.counter), 5);
	KUNIT_ASSERT_EQ(test, skua_qp_count(dev, &qp, SKUA_NO_SET), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(c->modify.counter), 0);
	c->status = SKUA_CMD_ST_BAD_INDEX;
	KUNIT_EXPECT_EQ(test, skua_qp_count(dev, &qp, 6), -EINVAL);
	KUNIT_EXPECT_FALSE(test, skua_dead(dev));
}

static struct kunit_case skua_counter_cases[] = {
	KUNIT_CASE(test_numbers),
	KUNIT_CASE(test_refused),
	KUNIT_CASE(test_destroy_refused),
	KUNIT_CASE(test_query),
	KUNIT_CASE(test_bind),
	{}
};

struct kunit_suite skua_counter_suite = {
	.name = "skua_counter",
	.init = counter_init,
	.test_cases = skua_counter_cases,
};
