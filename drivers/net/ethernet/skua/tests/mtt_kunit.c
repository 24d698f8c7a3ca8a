// SPDX-License-Identifier: GPL-2.0
/*
 * MTT: entries as the device reads them, of pages of every size, across the ends of
 * groups and chunks; what the device is told when they change.
 */
#include "fake.h"

#define MTT_LOG		15
#define MTT_NUM		BIT(MTT_LOG)
#define MTT_CHUNK	(SKUA_ICM_CHUNK_SIZE / SKUA_ICM_MTT_SIZE)
#define LOG_MIN		12
#define LOG_MAX		31

/**
 * struct mttt - an MTT, and what its device was told
 * @fake: the function
 * @syncs: SYNC_MTT commands
 * @index: what the last one began with
 * @count: and how far it went
 * @refuse: SYNC_MTT is refused
 */
struct mttt {
	struct fake *fake;
	unsigned int syncs;
	u64 index;
	u32 count;
	bool refuse;
};

static struct mttt *mttt_of(struct fake *fake)
{
	return fake->test->priv;
}

static u32 mttt_serve(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	const struct skua_cmd_sync_mtt_in *sync = in;
	struct mttt *m = mttt_of(fake);

	if (le16_to_cpu(slot->opcode) != SKUA_CMD_SYNC_MTT)
		return fake_serve_icm(fake, slot, in, out);
	if (m->refuse)
		return SKUA_CMD_ST_INTERNAL;
	m->syncs++;
	m->index = le64_to_cpu(sync->index);
	m->count = le32_to_cpu(sync->count);
	return SKUA_CMD_ST_OK;
}

static void mttt_exit(void *data)
{
	struct mttt *m = data;
	struct skua_dev *dev = &m->fake->dev;

	KUNIT_EXPECT_TRUE(m->fake->test, mtree_empty(&dev->mtt));
	mtree_destroy(&dev->mtt);
	skua_icm_table_exit(dev, &dev->icm[SKUA_ICM_MTT]);
}

static int mtt_init(struct kunit *test)
{
	struct mttt *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct skua_dev *dev;

	KUNIT_ASSERT_NOT_NULL(test, m);
	test->priv = m;
	m->fake = fake_create(test);
	m->fake->serve = mttt_serve;
	dev = &m->fake->dev;
	skua_icm_table_init(&dev->icm[SKUA_ICM_MTT], 0, SKUA_ICM_MTT_SIZE, MTT_LOG);
	dev->limits.max_mtt = MTT_NUM;
	dev->limits.page_sizes = GENMASK_ULL(LOG_MAX, LOG_MIN);
	mt_init_flags(&dev->mtt, MT_FLAGS_ALLOC_RANGE);
	return kunit_add_action_or_reset(test, mttt_exit, m);
}

static u64 entry_at(struct mttt *m, u64 index)
{
	u32 run;
	__le64 *entry = skua_icm_entry(&m->fake->dev, SKUA_ICM_MTT, index, &run);

	KUNIT_ASSERT_NOT_NULL(m->fake->test, entry);
	return le64_to_cpu(*entry);
}

static s64 mapped(struct mttt *m)
{
	return atomic64_read(&m->fake->mapped);
}

/* Each page size: the lowest page, the one beside it, and the very highest. */
static void test_page_sizes(struct kunit *test)
{
	struct mttt *m = test->priv;
	struct skua_dev *dev = &m->fake->dev;
	struct skua_mtt mtt;
	unsigned int log, i;

	for (log = 0; log <= 255; log++) {
		u64 size = log < 64 ? BIT_ULL(log) : 0;
		dma_addr_t pages[] = { 0, size, -size };
		bool write = log & 1;

		if (log < LOG_MIN || log > LOG_MAX) {
			KUNIT_EXPECT_EQ(test, skua_mtt_alloc(dev, &mtt, pages, 3, log, write),
					-EINVAL);
			continue;
		}
		KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &mtt, pages, 3, log, write), 0);
		KUNIT_EXPECT_EQ(test, mtt.log_page, log);
		KUNIT_EXPECT_EQ(test, mtt.npages, 3);
		KUNIT_EXPECT_EQ(test, mtt.first % SKUA_MTT_GROUP, 0);
		for (i = 0; i < 3; i++) {
			u64 val = entry_at(m, mtt.first + i);

			KUNIT_EXPECT_EQ(test, val & SKUA_MTT_ADDR, pages[i]);
			KUNIT_EXPECT_EQ(test, val & ~SKUA_MTT_ADDR,
					SKUA_MTT_PRESENT | (write ? SKUA_MTT_WRITE : 0));
		}
		/* The rest of the group is nobody's, and empty. */
		for (; i < SKUA_MTT_GROUP; i++)
			KUNIT_EXPECT_EQ(test, entry_at(m, mtt.first + i), 0);
		skua_mtt_free(dev, &mtt);
	}
	KUNIT_EXPECT_EQ(test, mapped(m), 0);
}

/* Lists that end beside the ends of groups and chunks: each entry its own page. */
static void test_lengths(struct kunit *test)
{
	static const u32 lengths[] = {
		1, SKUA_MTT_GROUP - 1, SKUA_MTT_GROUP, SKUA_MTT_GROUP + 1, MTT_CHUNK - 1,
		MTT_CHUNK, MTT_CHUNK + 1, 2 * MTT_CHUNK + 1,
	};
	struct mttt *m = test->priv;
	struct skua_dev *dev = &m->fake->dev;
	struct skua_mtt before, mtt;
	dma_addr_t *pages;
	unsigned int n;
	u32 i;

	pages = kunit_kcalloc(test, 2 * MTT_CHUNK + 1, sizeof(*pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < 2 * MTT_CHUNK + 1; i++)
		pages[i] = (u64)(i + 1) << LOG_MIN;
	/* So that none begins with a chunk. */
	KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &before, pages, 1, LOG_MIN, true), 0);
	for (n = 0; n < ARRAY_SIZE(lengths); n++) {
		KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &mtt, pages, lengths[n], LOG_MIN, true),
				0);
		KUNIT_EXPECT_GE(test, mtt.first, before.first + SKUA_MTT_GROUP);
		for (i = 0; i < lengths[n]; i++)
			KUNIT_ASSERT_EQ(test, entry_at(m, mtt.first + i),
					pages[i] | SKUA_MTT_PRESENT | SKUA_MTT_WRITE);
		KUNIT_ASSERT_EQ(test, entry_at(m, before.first),
				pages[0] | SKUA_MTT_PRESENT | SKUA_MTT_WRITE);
		skua_mtt_free(dev, &mtt);
		/* The device forgot all of it, and nothing beside it. */
		KUNIT_EXPECT_EQ(test, m->index, mtt.first);
		KUNIT_EXPECT_EQ(test, m->count, lengths[n]);
		/* What memory keeps of it is empty, for whoever has it next. */
		for (i = 0; i < min(lengths[n], MTT_CHUNK - SKUA_MTT_GROUP); i++)
			KUNIT_ASSERT_EQ(test, entry_at(m, mtt.first + i), 0);
	}
	skua_mtt_free(dev, &before);
	KUNIT_EXPECT_EQ(test, m->syncs, ARRAY_SIZE(lengths) + 1);
	KUNIT_EXPECT_EQ(test, mapped(m), 0);
}

static void test_space(struct kunit *test)
{
	struct mttt *m = test->priv;
	struct skua_dev *dev = &m->fake->dev;
	struct skua_mtt all, one;

	KUNIT_EXPECT_EQ(test, skua_mtt_reserve(dev, &one, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_mtt_reserve(dev, &one, MTT_NUM + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_mtt_reserve(dev, &one, U32_MAX), -EINVAL);
	/* Counts that are small in their low 32 bits only. */
	KUNIT_EXPECT_EQ(test, skua_mtt_reserve(dev, &one, BIT_ULL(32) + 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_mtt_reserve(dev, &one, BIT_ULL(63) + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_mtt_alloc(dev, &one, NULL, BIT_ULL(32) + 2, LOG_MIN, false),
			-EINVAL);
	KUNIT_ASSERT_EQ(test, skua_mtt_reserve(dev, &all, MTT_NUM - SKUA_MTT_GROUP), 0);
	KUNIT_EXPECT_EQ(test, skua_mtt_reserve(dev, &one, SKUA_MTT_GROUP + 1), -ENOSPC);
	KUNIT_ASSERT_EQ(test, skua_mtt_reserve(dev, &one, 1), 0);
	KUNIT_EXPECT_EQ(test, one.first, MTT_NUM - SKUA_MTT_GROUP);
	skua_mtt_unreserve(dev, &one);
	skua_mtt_unreserve(dev, &all);
	/* A table of nothing. */
	dev->limits.max_mtt = 0;
	KUNIT_EXPECT_EQ(test, skua_mtt_reserve(dev, &one, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, atomic_read(&m->fake->maps), 0);
}

static void test_no_memory(struct kunit *test)
{
	struct mttt *m = test->priv;
	struct skua_mtt mtt;
	int n;

	for (n = 1; n <= 2; n++) {
		m->fake->refuse_map = n;
		KUNIT_EXPECT_EQ(test, skua_mtt_alloc(&m->fake->dev, &mtt, NULL, MTT_CHUNK + 1,
						     LOG_MIN, false), -ENOMEM);
		KUNIT_EXPECT_EQ(test, mapped(m), 0);
		KUNIT_EXPECT_TRUE(test, mtree_empty(&m->fake->dev.mtt));
	}
}

/* Pages come without a word; when they go, the device is told once, of no more than those. */
static void test_zap(struct kunit *test)
{
	const u32 num = MTT_CHUNK + 100;
	struct mttt *m = test->priv;
	struct skua_dev *dev = &m->fake->dev;
	struct skua_mtt mtt;
	u32 i;

	KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &mtt, NULL, num, LOG_MIN, false), 0);
	for (i = 0; i < num; i++)
		KUNIT_ASSERT_EQ(test, entry_at(m, mtt.first + i) & SKUA_MTT_PRESENT, 0);
	KUNIT_EXPECT_EQ(test, skua_mtt_zap(dev, &mtt, 0, num), 0);
	KUNIT_EXPECT_TRUE(test, skua_mtt_set(dev, &mtt, 10, 9 << LOG_MIN, true));
	KUNIT_EXPECT_FALSE(test, skua_mtt_set(dev, &mtt, 10, 10 << LOG_MIN, false));
	skua_mtt_set(dev, &mtt, MTT_CHUNK - 1, 11 << LOG_MIN, true);
	skua_mtt_set(dev, &mtt, MTT_CHUNK, 12 << LOG_MIN, true);
	skua_mtt_set(dev, &mtt, num - 1, 13 << LOG_MIN, false);
	KUNIT_EXPECT_EQ(test, m->syncs, 0);
	KUNIT_EXPECT_EQ(test, entry_at(m, mtt.first + 10), 10 << LOG_MIN | SKUA_MTT_PRESENT);
	KUNIT_EXPECT_FALSE(test, entry_at(m, mtt.first + 10) & SKUA_MTT_WRITE);
	KUNIT_EXPECT_TRUE(test, entry_at(m, mtt.first + MTT_CHUNK) & SKUA_MTT_WRITE);
	KUNIT_EXPECT_FALSE(test, entry_at(m, mtt.first + 11) & SKUA_MTT_WRITE);

	KUNIT_EXPECT_EQ(test, skua_mtt_zap(dev, &mtt, 11, num - 12), 2);
	KUNIT_EXPECT_EQ(test, m->syncs, 1);
	KUNIT_EXPECT_EQ(test, m->index, mtt.first + MTT_CHUNK - 1);
	KUNIT_EXPECT_EQ(test, m->count, 2);
	KUNIT_EXPECT_EQ(test, skua_mtt_zap(dev, &mtt, 0, num), 2);
	KUNIT_EXPECT_EQ(test, m->syncs, 2);
	KUNIT_EXPECT_EQ(test, m->index, mtt.first + 10);
	KUNIT_EXPECT_EQ(test, m->count, num - 10);
	for (i = 0; i < num; i++)
		KUNIT_ASSERT_EQ(test, entry_at(m, mtt.first + i), 0);
	skua_mtt_free(dev, &mtt);
}

/* A directory has memory only while a block is in it. */
static void test_directory(struct kunit *test)
{
	struct mttt *m = test->priv;
	struct skua_dev *dev = &m->fake->dev;
	struct skua_mtt dir, block;

	KUNIT_ASSERT_EQ(test, skua_mtt_reserve(dev, &dir, MTT_CHUNK), 0);
	KUNIT_EXPECT_EQ(test, mapped(m), 0);
	KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &block, NULL, MTT_CHUNK + 1, LOG_MIN, false), 0);
	m->fake->refuse_map = 1;
	if (dir.first / MTT_CHUNK != block.first / MTT_CHUNK)
		KUNIT_EXPECT_EQ(test, skua_mtt_dir_set(dev, &dir, 0, &block), -ENOMEM);
	m->fake->refuse_map = 0;
	KUNIT_ASSERT_EQ(test, skua_mtt_dir_set(dev, &dir, 0, &block), 0);
	KUNIT_ASSERT_EQ(test, skua_mtt_dir_set(dev, &dir, MTT_CHUNK - 1, &block), 0);
	KUNIT_EXPECT_EQ(test, entry_at(m, dir.first) & ~SKUA_MTT_LIST, SKUA_MTT_PRESENT);
	KUNIT_EXPECT_EQ(test, u64_get_bits(entry_at(m, dir.first), SKUA_MTT_LIST), block.first);
	KUNIT_EXPECT_EQ(test, entry_at(m, dir.first + 1), 0);
	skua_mtt_dir_clear(dev, &dir, MTT_CHUNK - 1);
	KUNIT_EXPECT_EQ(test, m->index, dir.first + MTT_CHUNK - 1);
	KUNIT_EXPECT_EQ(test, m->count, 1);
	skua_mtt_dir_clear(dev, &dir, 0);
	skua_mtt_free(dev, &block);
	KUNIT_EXPECT_EQ(test, mapped(m), 0);
	/* What the device knows of it is that it is empty, which will not be true for long. */
	skua_mtt_dir_free(dev, &dir);
	KUNIT_EXPECT_EQ(test, m->index, dir.first);
	KUNIT_EXPECT_EQ(test, m->count, MTT_CHUNK);
}

/* A device that keeps translations must not go on; one that is dead is not asked. */
static void test_sync_refused(struct kunit *test)
{
	dma_addr_t page = 1 << LOG_MIN;
	struct mttt *m = test->priv;
	struct skua_dev *dev = &m->fake->dev;
	struct skua_mtt mtt;

	KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &mtt, &page, 1, LOG_MIN, false), 0);
	m->refuse = true;
	KUNIT_EXPECT_EQ(test, skua_mtt_zap(dev, &mtt, 0, 1), 1);
	KUNIT_EXPECT_TRUE(test, skua_dead(dev));
	KUNIT_EXPECT_TRUE(test, m->fake->quiesced);
	m->refuse = false;
	skua_mtt_set(dev, &mtt, 0, page, true);
	KUNIT_EXPECT_EQ(test, skua_mtt_zap(dev, &mtt, 0, 1), 1);
	skua_mtt_clear(dev, &mtt);
	skua_mtt_free(dev, &mtt);
	KUNIT_EXPECT_EQ(test, m->syncs, 0);
}

static struct kunit_case skua_mtt_cases[] = {
	KUNIT_CASE(test_page_sizes),
	KUNIT_CASE(test_lengths),
	KUNIT_CASE(test_space),
	KUNIT_CASE(test_no_memory),
	KUNIT_CASE(test_zap),
	KUNIT_CASE(test_directory),
	KUNIT_CASE(test_sync_refused),
	{}
};

struct kunit_suite skua_mtt_suite = {
	.name = "skua_mtt",
	.init = mtt_init,
	.test_cases = skua_mtt_cases,
};
