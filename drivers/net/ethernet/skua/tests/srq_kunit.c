// SPDX-License-Identifier: GPL-2.0
/*
 * SRQs of the core: number and context from creation to destruction, and after a refusal.
 */
#include "fake.h"

#define LOG_SRQS	10
#define NUMBERS		32

struct st {
	struct fake *fake;
	struct skua_srq srq;
	u32 status;
	u16 opcode;
	struct skua_srqc srqc;
	struct skua_cmd_modify_srq_in modify;
};

static u32 srq_serve(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	struct st *t = fake->test->priv;
	u16 opcode = le16_to_cpu(slot->opcode);

	switch (opcode) {
	case SKUA_CMD_CREATE_SRQ:
	case SKUA_CMD_RESIZE_SRQ:
		t->srqc = ((const struct skua_cmd_create_srq_in *)in)->srqc;
		break;
	case SKUA_CMD_MODIFY_SRQ:
		memcpy(&t->modify, in, sizeof(t->modify));
		break;
	case SKUA_CMD_DESTROY_SRQ:
		/* Until then the device may read and write the context. */
		KUNIT_EXPECT_NE(fake->test, fake->dev.icm[SKUA_ICM_SRQC].pages, 0);
		break;
	default:
		return fake_serve_icm(fake, slot, in, out);
	}
	t->opcode = opcode;
	return t->status;
}

static void srq_no_events(struct work_struct *work)
{
}

static void srq_exit(void *data)
{
	struct st *t = data;
	struct skua_dev *dev = &t->fake->dev;

	skua_obj_table_exit(&dev->srqs);
	skua_icm_table_exit(dev, &dev->icm[SKUA_ICM_SRQC]);
}

static int srq_init(struct kunit *test)
{
	struct st *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct skua_dev *dev;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	t->fake = fake_create(test);
	t->fake->serve = srq_serve;
	dev = &t->fake->dev;
	INIT_WORK(&dev->async_eq.work, srq_no_events);
	skua_obj_table_init(&dev->srqs, 1, NUMBERS, LOG_SRQS, LOG_SRQS);
	skua_icm_table_init(&dev->icm[SKUA_ICM_SRQC], 0, sizeof(struct skua_srqc), LOG_SRQS);
	return kunit_add_action_or_reset(test, srq_exit, t);
}

static int create(struct st *t)
{
	struct skua_srqc srqc = { .pd = cpu_to_le32(7) };

	return skua_srq_create(&t->fake->dev, &t->srq, &srqc);
}

static void expect_nothing_left(struct kunit *test)
{
	struct st *t = test->priv;

	KUNIT_EXPECT_EQ(test, t->fake->dev.icm[SKUA_ICM_SRQC].pages, 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->fake->mapped), 0);
}

static void test_life(struct kunit *test)
{
	struct st *t = test->priv;
	struct skua_dev *dev = &t->fake->dev;
	struct skua_srqc larger = { .pd = cpu_to_le32(8) };
	u32 num;

	KUNIT_ASSERT_EQ(test, create(t), 0);
	num = t->srq.obj.num;
	KUNIT_EXPECT_NE(test, num, 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->srqc.srqn), num);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->srqc.pd), 7);
	KUNIT_EXPECT_EQ(test, skua_srq_modify(dev, &t->srq, 12), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->modify.srqn), num);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->modify.limit), 12);
	KUNIT_EXPECT_EQ(test, skua_srq_resize(dev, &t->srq, &larger), 0);
	KUNIT_EXPECT_EQ(test, t->opcode, SKUA_CMD_RESIZE_SRQ);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->srqc.srqn), num);
	skua_srq_destroy(dev, &t->srq);
	KUNIT_EXPECT_EQ(test, t->opcode, SKUA_CMD_DESTROY_SRQ);
	expect_nothing_left(test);
}

/* No ICM, then a device that refuses: nothing is left over, and numbers do not run out. */
static void test_refused(struct kunit *test)
{
	struct st *t = test->priv;
	unsigned int i;

	t->fake->refuse_map = 1;
	KUNIT_EXPECT_EQ(test, create(t), -ENOMEM);
	expect_nothing_left(test);
	t->status = SKUA_CMD_ST_LIMIT;
	for (i = 0; i < 2 * NUMBERS; i++)
		KUNIT_ASSERT_EQ(test, create(t), -ENOMEM);
	expect_nothing_left(test);
	t->status = SKUA_CMD_ST_OK;
	KUNIT_ASSERT_EQ(test, create(t), 0);
	skua_srq_destroy(&t->fake->dev, &t->srq);
	expect_nothing_left(test);
}

/* A device that keeps what it is to destroy has failed: only then is its memory ours. */
static void test_stays(struct kunit *test)
{
	struct st *t = test->priv;

	KUNIT_ASSERT_EQ(test, create(t), 0);
	t->status = SKUA_CMD_ST_BUSY;
	skua_srq_destroy(&t->fake->dev, &t->srq);
	KUNIT_EXPECT_TRUE(test, t->fake->quiesced);
	KUNIT_EXPECT_EQ(test, t->fake->dev.icm[SKUA_ICM_SRQC].pages, 0);
}

static struct kunit_case skua_core_srq_cases[] = {
	KUNIT_CASE(test_life),
	KUNIT_CASE(test_refused),
	KUNIT_CASE(test_stays),
	{}
};

struct kunit_suite skua_core_srq_suite = {
	.name = "skua_core_srq",
	.init = srq_init,
	.test_cases = skua_core_srq_cases,
};
