// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and page lists that serve more than once: what the device is told, and when.
 */
#include "fake.h"

#define ENTRIES		24
#define PAGE(i)		(0x100000ULL + (i) * 0x1000ULL)

/**
 * struct mr_log - what the device was told
 * @fake: the function
 * @creates: CREATE_MPT
 * @destroys: DESTROY_MPT
 * @syncs: SYNC_MTT
 * @sync: the last of them
 * @key: of the last command
 * @refuse: status of the next CREATE_MPT or DESTROY_MPT
 */
struct mr_log {
	struct fake *fake;
	u32 creates;
	u32 destroys;
	u32 syncs;
	struct skua_cmd_sync_mtt_in sync;
	u32 key;
	u32 refuse;
};

static struct mr_log *mr_log(struct fake *fake)
{
	return fake->test->priv;
}

static u32 mr_serve(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	const struct skua_cmd_create_mpt_in *create = in;
	const struct skua_cmd_index_in *destroy = in;
	struct mr_log *log = mr_log(fake);
	u32 status = SKUA_CMD_ST_OK;

	switch (le16_to_cpu(slot->opcode)) {
	case SKUA_CMD_CREATE_MPT:
		swap(status, log->refuse);
		log->key = le32_to_cpu(create->mpt.key);
		log->creates++;
		return status;
	case SKUA_CMD_DESTROY_MPT:
		swap(status, log->refuse);
		log->key = le32_to_cpu(destroy->index);
		log->destroys++;
		return status;
	case SKUA_CMD_SYNC_MTT:
		memcpy(&log->sync, in, sizeof(log->sync));
		log->syncs++;
		return SKUA_CMD_ST_OK;
	default:
		return fake_serve_icm(fake, slot, in, out);
	}
}

static void mr_end(void *data)
{
	struct skua_dev *dev = data;

	skua_icm_table_exit(dev, &dev->icm[SKUA_ICM_MPT]);
	skua_icm_table_exit(dev, &dev->icm[SKUA_ICM_MTT]);
	mtree_destroy(&dev->mtt);
	xa_destroy(&dev->keys);
}

static int mr_init(struct kunit *test)
{
	struct mr_log *log = kunit_kzalloc(test, sizeof(*log), GFP_KERNEL);
	struct skua_dev *dev;

	KUNIT_ASSERT_NOT_NULL(test, log);
	log->fake = fake_create(test);
	log->fake->serve = mr_serve;
	dev = &log->fake->dev;
	skua_icm_table_init(&dev->icm[SKUA_ICM_MTT], 0, SKUA_ICM_MTT_SIZE, 16);
	skua_icm_table_init(&dev->icm[SKUA_ICM_MPT], BIT_ULL(40), SKUA_ICM_MPT_SIZE, 16);
	xa_init_flags(&dev->keys, XA_FLAGS_ALLOC);
	mt_init_flags(&dev->mtt, MT_FLAGS_ALLOC_RANGE);
	dev->limits.max_mr = 100;
	dev->limits.max_mtt = 1 << 16;
	dev->limits.page_sizes = 0x1000;
	test->priv = log;
	return kunit_add_action_or_reset(test, mr_end, dev);
}

/* A key that serves again is another one, and costs no memory to be mapped. */
static void test_key_again(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_dev *dev = &log->fake->dev;
	struct skua_mpt mpt = {};
	struct skua_mr mr;
	u32 last = 0, index;
	int i;

	KUNIT_ASSERT_EQ(test, skua_mr_reserve(dev, &mr), 0);
	KUNIT_EXPECT_EQ(test, log->creates, 0);
	index = mr.key >> 8;
	for (i = 0; i < 300; i++) {
		KUNIT_ASSERT_EQ(test, skua_mr_enable(dev, &mr, &mpt), 0);
		KUNIT_ASSERT_EQ(test, log->key, mr.key);
		KUNIT_ASSERT_NE(test, mr.key, last);
		KUNIT_ASSERT_EQ(test, mr.key >> 8, index);
		KUNIT_ASSERT_TRUE(test, xa_get_mark(&dev->keys, index, SKUA_KEY_LIVE));
		last = mr.key;
		KUNIT_ASSERT_EQ(test, skua_mr_disable(dev, &mr), 0);
		KUNIT_ASSERT_EQ(test, log->key, mr.key);
		KUNIT_ASSERT_FALSE(test, xa_get_mark(&dev->keys, index, SKUA_KEY_LIVE));
	}
	KUNIT_EXPECT_EQ(test, log->creates, 300);
	KUNIT_EXPECT_EQ(test, log->destroys, 300);
	KUNIT_EXPECT_EQ(test, atomic_read(&log->fake->maps), 1);
	skua_mr_unreserve(dev, &mr);
	KUNIT_EXPECT_EQ(test, atomic64_read(&log->fake->mapped), 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->keys));
}

/*
 * Indices come at random: no key follows from the one before. They come from a range
 * that grows with their number, so that their contexts do not take all the memory.
 */
static void test_key_random(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_dev *dev = &log->fake->dev;
	const int num = 2000, max = 1 << 16;
	u32 last = 0, next = 0, low = max, high = 0;
	struct skua_mr *mr;
	int i;

	mr = kunit_kcalloc(test, num, sizeof(*mr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	dev->limits.max_mr = max - 1;
	dev->key_base = 1000;
	for (i = 0; i < num; i++) {
		u32 index;

		KUNIT_ASSERT_EQ(test, skua_mr_reserve(dev, &mr[i]), 0);
		index = mr[i].key >> 8;
		next += index == last + 1;
		last = index;
		low = min(low, index);
		high = max(high, index);
	}
	/* By chance it is one in 4096 at the most. */
	KUNIT_EXPECT_LE(test, next, 20);
	KUNIT_EXPECT_GT(test, low, 1000);
	KUNIT_EXPECT_LE(test, high, 1000 + 4 * num);
	KUNIT_EXPECT_GT(test, high - low, 3 * num);
	while (i--)
		skua_mr_unreserve(dev, &mr[i]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->keys));
	KUNIT_EXPECT_EQ(test, atomic_read(&dev->num_keys), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&log->fake->mapped), 0);
}

/* Each key that there is can be had, wherever the range begins. */
static void test_key_all(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_dev *dev = &log->fake->dev;
	struct skua_mr *mr, more;
	int i, round;

	mr = kunit_kcalloc(test, dev->limits.max_mr, sizeof(*mr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	for (round = 0; round < 20; round++) {
		dev->key_base = round * 5;
		for (i = 0; i < dev->limits.max_mr; i++) {
			KUNIT_ASSERT_EQ(test, skua_mr_reserve(dev, &mr[i]), 0);
			KUNIT_ASSERT_GE(test, mr[i].key >> 8, 1);
			KUNIT_ASSERT_LE(test, mr[i].key >> 8, dev->limits.max_mr);
		}
		KUNIT_EXPECT_EQ(test, skua_mr_reserve(dev, &more), -ENOSPC);
		while (i--)
			skua_mr_unreserve(dev, &mr[i]);
		KUNIT_EXPECT_EQ(test, atomic_read(&dev->num_keys), 0);
	}
}

/* Who fails has the key as before: to try again, or to give it back. */
static void test_key_refused(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_dev *dev = &log->fake->dev;
	struct skua_mpt mpt = {};
	struct skua_mr mr;

	KUNIT_ASSERT_EQ(test, skua_mr_reserve(dev, &mr), 0);
	log->refuse = SKUA_CMD_ST_LIMIT;
	KUNIT_EXPECT_EQ(test, skua_mr_enable(dev, &mr, &mpt), -ENOMEM);
	KUNIT_EXPECT_EQ(test, skua_mr_enable(dev, &mr, &mpt), 0);
	/* A window is bound to it: all is as it was. */
	log->refuse = SKUA_CMD_ST_BUSY;
	KUNIT_EXPECT_EQ(test, skua_mr_disable(dev, &mr), -EBUSY);
	KUNIT_EXPECT_FALSE(test, skua_dead(dev));
	/* What cannot be ended ends with the device. */
	log->refuse = SKUA_CMD_ST_INTERNAL;
	KUNIT_EXPECT_EQ(test, skua_mr_disable(dev, &mr), 0);
	KUNIT_EXPECT_TRUE(test, skua_dead(dev));
	skua_mr_unreserve(dev, &mr);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->keys));
}

/* A region that could not be made has taken nothing. */
static void test_create_refused(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_dev *dev = &log->fake->dev;
	struct skua_mpt mpt = {};
	struct skua_mr mr;

	log->refuse = SKUA_CMD_ST_LIMIT;
	KUNIT_EXPECT_EQ(test, skua_mr_create(dev, &mr, &mpt), -ENOMEM);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->keys));
	KUNIT_EXPECT_EQ(test, atomic_read(&dev->num_keys), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&log->fake->mapped), 0);
	KUNIT_ASSERT_EQ(test, skua_mr_create(dev, &mr, &mpt), 0);
	KUNIT_EXPECT_EQ(test, log->key, mr.key);
	KUNIT_EXPECT_EQ(test, skua_mr_destroy(dev, &mr), 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->keys));
}

/* The device forgets what changed, and only that. */
static void test_refill(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_dev *dev = &log->fake->dev;
	dma_addr_t pages[ENTRIES];
	struct skua_mtt mtt;
	__le64 *entry;
	u32 run;
	int i;

	for (i = 0; i < ENTRIES; i++)
		pages[i] = PAGE(i);
	KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &mtt, NULL, ENTRIES, 12, false), 0);
	entry = skua_icm_entry(dev, SKUA_ICM_MTT, mtt.first, &run);
	/* Nobody has used them yet. */
	KUNIT_EXPECT_EQ(test, skua_mtt_refill(dev, &mtt, pages, 20, true, false), 20);
	KUNIT_EXPECT_EQ(test, log->syncs, 0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(entry[19]),
			PAGE(19) | SKUA_MTT_PRESENT | SKUA_MTT_WRITE);
	KUNIT_EXPECT_EQ(test, entry[20], 0);
	/* The same, and fewer of the same. */
	KUNIT_EXPECT_EQ(test, skua_mtt_refill(dev, &mtt, pages, 20, true, true), 0);
	KUNIT_EXPECT_EQ(test, skua_mtt_refill(dev, &mtt, pages, 3, true, true), 0);
	KUNIT_EXPECT_EQ(test, log->syncs, 0);
	/* More: those that were not there may be remembered as such. */
	KUNIT_EXPECT_EQ(test, skua_mtt_refill(dev, &mtt, pages, 22, true, true), 2);
	KUNIT_EXPECT_EQ(test, log->syncs, 1);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(log->sync.index), mtt.first + 20);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(log->sync.count), 2);
	/* Some others. */
	pages[5] = PAGE(100);
	pages[9] = PAGE(200);
	KUNIT_EXPECT_EQ(test, skua_mtt_refill(dev, &mtt, pages, 22, true, true), 2);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(log->sync.index), mtt.first + 5);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(log->sync.count), 5);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(entry[9]) & SKUA_MTT_ADDR, PAGE(200));
	/* Other rights are other entries. */
	KUNIT_EXPECT_EQ(test, skua_mtt_refill(dev, &mtt, pages, 22, false, true), 22);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(log->sync.count), 22);
	KUNIT_EXPECT_EQ(test, log->syncs, 3);
	skua_mtt_free(dev, &mtt);
	KUNIT_EXPECT_EQ(test, log->syncs, 4);
	KUNIT_EXPECT_EQ(test, atomic64_read(&log->fake->mapped), 0);
}

/* Entries that lie in more than one piece of memory. */
static void test_refill_far(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_dev *dev = &log->fake->dev;
	u32 i, run, num = 3 * SKUA_ICM_CHUNK_SIZE / SKUA_ICM_MTT_SIZE;
	dma_addr_t *pages = kunit_kcalloc(test, num, sizeof(*pages), GFP_KERNEL);
	struct skua_mtt mtt;
	__le64 *entry;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < num; i++)
		pages[i] = PAGE(2 * i);
	KUNIT_ASSERT_EQ(test, skua_mtt_alloc(dev, &mtt, NULL, num, 12, false), 0);
	KUNIT_EXPECT_EQ(test, skua_mtt_refill(dev, &mtt, pages, num, true, false), num);
	for (i = 0; i < num; i++) {
		entry = skua_icm_entry(dev, SKUA_ICM_MTT, mtt.first + i, &run);
		KUNIT_ASSERT_EQ(test, le64_to_cpu(*entry) & SKUA_MTT_ADDR, PAGE(2 * i));
	}
	skua_mtt_free(dev, &mtt);
}

/* A device whose table has no entry for software: no key, rather than a division by zero. */
static void test_no_keys(struct kunit *test)
{
	struct mr_log *log = test->priv;
	struct skua_mr mr = {};

	log->fake->dev.limits.max_mr = 0;
	KUNIT_EXPECT_EQ(test, skua_mr_reserve(&log->fake->dev, &mr), -ENOSPC);
	KUNIT_EXPECT_EQ(test, atomic_read(&log->fake->dev.num_keys), 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&log->fake->dev.keys));
}

static struct kunit_case skua_mr_cases[] = {
	KUNIT_CASE(test_key_again),
	KUNIT_CASE(test_key_random),
	KUNIT_CASE(test_key_all),
	KUNIT_CASE(test_key_refused),
	KUNIT_CASE(test_create_refused),
	KUNIT_CASE(test_refill),
	KUNIT_CASE(test_refill_far),
	KUNIT_CASE(test_no_keys),
	{}
};

struct kunit_suite skua_mr_suite = {
	.name = "skua_mr",
	.init = mr_init,
	.test_cases = skua_mr_cases,
};
