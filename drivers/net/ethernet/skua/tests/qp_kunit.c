// SPDX-License-Identifier: GPL-2.0
/*
 * QPs: the memory that selective repeat needs, from when until when the device has it, and
 * what happens when it cannot be had.
 */
#include <kunit/test-bug.h>

#include "fake.h"

#define LOG_QPS		10
#define WINDOW		SKUA_EXT_LOG_WINDOW_MAX
#define TABLE		SKUA_EXT_TABLE_BYTES(WINDOW)
#define EXT(mode)	(u32_encode_bits(mode, SKUA_ATTR_EXT_MODE) |		\
			 u32_encode_bits(WINDOW, SKUA_ATTR_EXT_LOG_WINDOW))

static const enum skua_icm_table tables[] = {
	SKUA_ICM_SQC, SKUA_ICM_RQC, SKUA_ICM_RRC, SKUA_ICM_LRC,
};

/**
 * struct qt - a device with QPs
 * @fake: the function
 * @qp: the one that commands are about
 * @status: what becomes of MODIFY_QP
 * @modify: the last MODIFY_QP
 * @in_use: bus address of the table that the device was told of, 0: none
 */
struct qt {
	struct fake *fake;
	struct skua_qp qp;
	u32 status;
	struct skua_cmd_modify_qp_in modify;
	u64 in_use;
};

/* As long as the device has a table it may write there. */
static void qt_use(struct qt *q)
{
	if (!q->in_use)
		return;
	KUNIT_ASSERT_NOT_NULL(q->fake->test, q->qp.ext.va);
	KUNIT_EXPECT_EQ(q->fake->test, q->qp.ext.dma, q->in_use);
	memset(q->qp.ext.va, 0xff, TABLE);
	KUNIT_EXPECT_EQ(q->fake->test, q->fake->dev.icm[SKUA_ICM_LRC].pages,
			SKUA_ICM_CHUNK_SIZE / SKUA_ICM_PAGE_SIZE);
}

static u32 qt_modify(struct qt *q)
{
	u32 state = le32_get_bits(q->modify.attr.state, SKUA_ATTR_STATE);
	u64 table = le64_to_cpu(q->modify.ext_table);
	struct kunit *test = q->fake->test;

	KUNIT_EXPECT_EQ(test, le32_to_cpu(q->modify.qpn), q->qp.obj.num);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(q->modify.ext_len), table ? TABLE : 0);
	KUNIT_EXPECT_EQ(test, table & (TABLE - 1), 0);
	if (q->status)
		return q->status;
	if (table)
		q->in_use = table;
	if (le32_to_cpu(q->modify.mask) & SKUA_QP_M_STATE && state == SKUA_QP_RESET)
		q->in_use = 0;
	return SKUA_CMD_ST_OK;
}

static u32 qt_serve(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	struct qt *q = fake->test->priv;

	switch (le16_to_cpu(slot->opcode)) {
	case SKUA_CMD_CREATE_QP:
		return SKUA_CMD_ST_OK;
	case SKUA_CMD_MODIFY_QP:
		qt_use(q);
		memcpy(&q->modify, in, sizeof(q->modify));
		return qt_modify(q);
	case SKUA_CMD_DESTROY_QP:
		qt_use(q);
		q->in_use = 0;
		return SKUA_CMD_ST_OK;
	default:
		return fake_serve_icm(fake, slot, in, out);
	}
}

static void qt_exit(void *data)
{
	struct qt *q = data;
	struct skua_dev *dev = &q->fake->dev;
	unsigned int i;

	skua_obj_table_exit(&dev->qps);
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		skua_icm_table_exit(dev, &dev->icm[tables[i]]);
}

static void qt_no_events(struct work_struct *work)
{
}

static int qp_init(struct kunit *test)
{
	struct qt *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);
	struct skua_dev *dev;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, q);
	test->priv = q;
	q->fake = fake_create(test);
	q->fake->serve = qt_serve;
	dev = &q->fake->dev;
	INIT_WORK(&dev->async_eq.work, qt_no_events);
	dev->qpn_bits = LOG_QPS;
	skua_obj_table_init(&dev->qps, 2, BIT(LOG_QPS) - 1, LOG_QPS, 24);
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		skua_icm_table_init(&dev->icm[tables[i]], (u64)i << 40, 512, LOG_QPS);
	return kunit_add_action_or_reset(test, qt_exit, q);
}

static void create(struct kunit *test, struct qt *q)
{
	struct skua_cmd_create_qp_in in = {};

	KUNIT_ASSERT_EQ(test, skua_qp_create(&q->fake->dev, &q->qp, &in, false), 0);
	KUNIT_EXPECT_FALSE(test, skua_qp_has_ext(&q->qp));
	/* A QP that is not connected needs none of it. */
	KUNIT_EXPECT_EQ(test, q->fake->dev.icm[SKUA_ICM_LRC].pages, 0);
}

static int enter(struct qt *q, enum skua_qp_state state, u32 ext)
{
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_STATE | (ext ? SKUA_QP_M_EXT : 0)),
		.attr.state = le32_encode_bits(state, SKUA_ATTR_STATE),
		.attr.ext = cpu_to_le32(ext),
	};

	return skua_qp_modify(&q->fake->dev, &q->qp, &in);
}

static void expect_none(struct kunit *test, struct qt *q)
{
	KUNIT_EXPECT_FALSE(test, skua_qp_has_ext(&q->qp));
	KUNIT_EXPECT_EQ(test, q->fake->dev.icm[SKUA_ICM_LRC].pages, 0);
}

static void destroy(struct kunit *test, struct qt *q)
{
	skua_qp_destroy(&q->fake->dev, &q->qp);
	expect_none(test, q);
	KUNIT_EXPECT_EQ(test, atomic64_read(&q->fake->mapped), 0);
}

/* From the transition to RTR until RESET, and again. */
static void test_ext_life(struct kunit *test)
{
	static const enum skua_qp_state later[] = { SKUA_QP_RTS, SKUA_QP_SQD, SKUA_QP_ERR };
	struct qt *q = test->priv;
	unsigned int round, i;

	create(test, q);
	for (round = 0; round < 2; round++) {
		KUNIT_ASSERT_EQ(test, enter(q, SKUA_QP_INIT, 0), 0);
		expect_none(test, q);
		KUNIT_ASSERT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), 0);
		KUNIT_EXPECT_NE(test, q->in_use, 0);
		KUNIT_ASSERT_TRUE(test, skua_qp_has_ext(&q->qp));
		KUNIT_EXPECT_NULL(test, memchr_inv(q->qp.ext.va, 0, TABLE));
		for (i = 0; i < ARRAY_SIZE(later); i++) {
			KUNIT_ASSERT_EQ(test, enter(q, later[i], 0), 0);
			KUNIT_EXPECT_EQ(test, q->modify.ext_table, 0);
			KUNIT_EXPECT_TRUE(test, skua_qp_has_ext(&q->qp));
		}
		KUNIT_ASSERT_EQ(test, enter(q, SKUA_QP_RESET, 0), 0);
		expect_none(test, q);
	}
	destroy(test, q);
}

/* Without RESET before, as processes end. */
static void test_ext_destroy(struct kunit *test)
{
	struct qt *q = test->priv;

	create(test, q);
	KUNIT_ASSERT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_ALWAYS)), 0);
	KUNIT_EXPECT_TRUE(test, skua_qp_has_ext(&q->qp));
	destroy(test, q);
}

/* A plain QP costs nothing. */
static void test_ext_plain(struct kunit *test)
{
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_STATE | SKUA_QP_M_EXT),
		.attr.state = le32_encode_bits(SKUA_QP_RTR, SKUA_ATTR_STATE),
	};
	struct qt *q = test->priv;

	create(test, q);
	KUNIT_ASSERT_EQ(test, skua_qp_modify(&q->fake->dev, &q->qp, &in), 0);
	KUNIT_EXPECT_EQ(test, q->modify.ext_table, 0);
	expect_none(test, q);
	/* The value alone says nothing. */
	in.mask = cpu_to_le32(SKUA_QP_M_STATE);
	in.attr.ext = cpu_to_le32(EXT(SKUA_EXT_ALWAYS));
	KUNIT_ASSERT_EQ(test, skua_qp_modify(&q->fake->dev, &q->qp, &in), 0);
	KUNIT_EXPECT_EQ(test, q->modify.ext_table, 0);
	expect_none(test, q);
	destroy(test, q);
}

/* The device refuses the transition: it has not begun to use the table. */
static void test_ext_refused(struct kunit *test)
{
	struct qt *q = test->priv;

	create(test, q);
	q->status = SKUA_CMD_ST_BAD_STATE;
	KUNIT_EXPECT_NE(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), 0);
	KUNIT_EXPECT_NE(test, q->modify.ext_table, 0);
	expect_none(test, q);
	q->status = SKUA_CMD_ST_OK;
	KUNIT_EXPECT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), 0);
	destroy(test, q);
}

/*
 * A refused command leaves alone what the device uses: a RESET, and a second transition to
 * RTR, to which a process can get by a wrong current state.
 */
static void test_ext_stays(struct kunit *test)
{
	struct qt *q = test->priv;
	u64 table;

	create(test, q);
	KUNIT_ASSERT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), 0);
	table = q->in_use;
	q->status = SKUA_CMD_ST_BAD_STATE;
	KUNIT_EXPECT_NE(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_ALWAYS)), 0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(q->modify.ext_table), table);
	KUNIT_EXPECT_NE(test, enter(q, SKUA_QP_RESET, 0), 0);
	qt_use(q);
	KUNIT_EXPECT_NE(test, q->in_use, 0);
	q->status = SKUA_CMD_ST_OK;
	KUNIT_EXPECT_EQ(test, enter(q, SKUA_QP_RESET, 0), 0);
	expect_none(test, q);
	destroy(test, q);
}

/* No ICM, then no memory for the table: nothing is left over, and the QP is usable. */
static void test_ext_nomem(struct kunit *test)
{
	struct qt *q = test->priv;
	struct device *dma = q->fake->dev.dev;
	int maps;

	create(test, q);
	maps = atomic_read(&q->fake->maps);
	q->fake->refuse_map = 1;
	KUNIT_EXPECT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, atomic_read(&q->fake->maps), maps + 1);
	expect_none(test, q);
	KUNIT_EXPECT_EQ(test, q->modify.mask, 0);

	/* Another QP has the context's chunk, so that the table alone needs memory. */
	KUNIT_ASSERT_EQ(test, skua_icm_get(&q->fake->dev, SKUA_ICM_LRC, 0), 0);
	dma->coherent_dma_mask = DMA_BIT_MASK(12);
	KUNIT_EXPECT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), -ENOMEM);
	dma->coherent_dma_mask = DMA_BIT_MASK(64);
	KUNIT_EXPECT_FALSE(test, skua_qp_has_ext(&q->qp));
	KUNIT_EXPECT_EQ(test, q->modify.mask, 0);
	skua_icm_put(&q->fake->dev, SKUA_ICM_LRC, 0);
	expect_none(test, q);

	KUNIT_EXPECT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), 0);
	destroy(test, q);
}

/* A dead device does no DMA: all comes back, whatever commands say. */
static void test_ext_dead(struct kunit *test)
{
	struct qt *q = test->priv;
	struct skua_dev *dev = &q->fake->dev;

	create(test, q);
	KUNIT_ASSERT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), 0);
	skua_declare_dead(dev, "test");
	KUNIT_EXPECT_TRUE(test, q->fake->quiesced);
	q->in_use = 0;
	KUNIT_EXPECT_EQ(test, enter(q, SKUA_QP_RESET, 0), -EIO);
	KUNIT_EXPECT_EQ(test, enter(q, SKUA_QP_RTR, EXT(SKUA_EXT_NEGOTIATE)), -EIO);
	skua_qp_destroy(dev, &q->qp);
	expect_none(test, q);
}

static void on_one(struct skua_qp *qp, enum skua_qp_event event)
{
}

static void on_other(struct skua_qp *qp, enum skua_qp_event event)
{
}

/* Meanwhile it cannot be destroyed. */
static void note_qp(struct skua_qp *qp)
{
	struct kunit *test = kunit_get_current_test();

	KUNIT_EXPECT_EQ(test, refcount_read(&qp->obj.ref), 2);
	qp->ext.size++;
}

static void test_for_each(struct kunit *test)
{
	struct qt *q = test->priv;
	struct skua_dev *dev = &q->fake->dev;

	q->qp.event = on_one;
	create(test, q);
	skua_qp_for_each(dev, on_other, note_qp);
	KUNIT_EXPECT_EQ(test, q->qp.ext.size, 0);
	skua_qp_for_each(dev, on_one, note_qp);
	KUNIT_EXPECT_EQ(test, q->qp.ext.size, 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&q->qp.obj.ref), 1);
	q->qp.ext.size = 0;
	skua_qp_destroy(dev, &q->qp);
}

static void test_recovery(struct kunit *test)
{
	struct skua_cmd_query_qp_out *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_EXPECT_STREQ(test, skua_qp_recovery(out), "none");
	out->sqc.valid = cpu_to_le32(SKUA_SQC_VALID | SKUA_SQC_LOSS);
	KUNIT_EXPECT_STREQ(test, skua_qp_recovery(out), "send");
	out->rqc.flags = cpu_to_le32(SKUA_RQC_HELD);
	KUNIT_EXPECT_STREQ(test, skua_qp_recovery(out), "both");
	out->sqc.valid = cpu_to_le32(SKUA_SQC_VALID);
	KUNIT_EXPECT_STREQ(test, skua_qp_recovery(out), "receive");
}

static struct kunit_case skua_qp_cases[] = {
	KUNIT_CASE(test_ext_life),
	KUNIT_CASE(test_ext_destroy),
	KUNIT_CASE(test_ext_plain),
	KUNIT_CASE(test_ext_refused),
	KUNIT_CASE(test_ext_stays),
	KUNIT_CASE(test_ext_nomem),
	KUNIT_CASE(test_ext_dead),
	KUNIT_CASE(test_for_each),
	KUNIT_CASE(test_recovery),
	{}
};

struct kunit_suite skua_qp_suite = {
	.name = "skua_qp",
	.init = qp_init,
	.test_cases = skua_qp_cases,
};
