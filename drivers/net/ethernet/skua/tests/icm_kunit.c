// SPDX-License-Identifier: GPL-2.0
/*
 * ICM: what is mapped, what is given back, and what happens when it is refused.
 */
#include <linux/random.h>

#include "fake.h"

#define CHUNK_PAGES	(SKUA_ICM_CHUNK_SIZE / SKUA_ICM_PAGE_SIZE)
#define MTT_CHUNK	(SKUA_ICM_CHUNK_SIZE / SKUA_ICM_MTT_SIZE)
#define CQC_CHUNK	(SKUA_ICM_CHUNK_SIZE / SKUA_ICM_CQC_SIZE)

static void tables_exit(void *data)
{
	struct fake *fake = data;
	unsigned int i;

	for (i = 0; i < SKUA_ICM_TABLES; i++)
		skua_icm_table_exit(&fake->dev, &fake->dev.icm[i]);
}

static int icm_init(struct kunit *test)
{
	struct fake *fake = fake_create(test);

	fake->serve = fake_serve_icm;
	skua_icm_table_init(&fake->dev.icm[SKUA_ICM_MTT], 0, SKUA_ICM_MTT_SIZE, 20);
	skua_icm_table_init(&fake->dev.icm[SKUA_ICM_CQC], BIT_ULL(40), SKUA_ICM_CQC_SIZE, 12);
	skua_icm_table_init(&fake->dev.icm[SKUA_ICM_GID], BIT_ULL(41), SKUA_ICM_GID_SIZE, 4);
	test->priv = fake;
	return kunit_add_action_or_reset(test, tables_exit, fake);
}

static s64 mapped(struct fake *fake)
{
	return atomic64_read(&fake->mapped);
}

/* One chunk serves its entries, from the first to the last. */
static void test_refs(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;
	u64 i;

	for (i = 0; i < CQC_CHUNK; i++)
		KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, i), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->maps), 1);
	KUNIT_EXPECT_EQ(test, mapped(fake), CHUNK_PAGES);
	KUNIT_EXPECT_EQ(test, dev->icm[SKUA_ICM_CQC].pages, CHUNK_PAGES);
	KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, i), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->maps), 2);
	for (i = 0; i < CQC_CHUNK; i++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&fake->unmaps), 0);
		skua_icm_put(dev, SKUA_ICM_CQC, i);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->unmaps), 1);
	skua_icm_put(dev, SKUA_ICM_CQC, i);
	KUNIT_EXPECT_EQ(test, mapped(fake), 0);
	KUNIT_EXPECT_EQ(test, dev->icm[SKUA_ICM_CQC].pages, 0);
}

/* A small table is one page, not one chunk. */
static void test_small_table(struct kunit *test)
{
	struct fake *fake = test->priv;

	KUNIT_ASSERT_EQ(test, skua_icm_get_range(&fake->dev, SKUA_ICM_GID, 0, 16), 0);
	KUNIT_EXPECT_EQ(test, mapped(fake), 1);
	skua_icm_put_range(&fake->dev, SKUA_ICM_GID, 0, 16);
	KUNIT_EXPECT_EQ(test, mapped(fake), 0);
}

static void test_range(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;

	/* From the last entry of chunk 0 to the first one of chunk 3. */
	KUNIT_ASSERT_EQ(test, skua_icm_get_range(dev, SKUA_ICM_MTT, MTT_CHUNK - 1,
						 2 * MTT_CHUNK + 2), 0);
	KUNIT_EXPECT_EQ(test, mapped(fake), 4 * CHUNK_PAGES);
	KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_MTT, MTT_CHUNK), 0);
	skua_icm_put_range(dev, SKUA_ICM_MTT, MTT_CHUNK - 1, 2 * MTT_CHUNK + 2);
	KUNIT_EXPECT_EQ(test, mapped(fake), CHUNK_PAGES);
	skua_icm_put(dev, SKUA_ICM_MTT, MTT_CHUNK);
	KUNIT_EXPECT_EQ(test, mapped(fake), 0);
}

static void test_bounds(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;

	KUNIT_EXPECT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, 1 << 12), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, U64_MAX), -EINVAL);
	/* Who believes the former would take all memory for the latter. */
	KUNIT_ASSERT_EQ(test, skua_icm_get_range(dev, SKUA_ICM_CQC, 1, 1 << 12), -EINVAL);
	KUNIT_ASSERT_EQ(test, skua_icm_get_range(dev, SKUA_ICM_CQC, 1, U64_MAX), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_icm_get_range(dev, SKUA_ICM_CQC, 1, 0), -EINVAL);
	/* A table that the device does not have. */
	KUNIT_EXPECT_EQ(test, skua_icm_get(dev, SKUA_ICM_RSS, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->maps), 0);
	KUNIT_EXPECT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, (1 << 12) - 1), 0);
	skua_icm_put(dev, SKUA_ICM_CQC, (1 << 12) - 1);
}

/* MAP_ICM fails for each chunk of a range in turn: nothing is left over. */
static void test_map_refused(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;
	int n;

	for (n = 1; n <= 4; n++) {
		fake->refuse_map = n;
		KUNIT_EXPECT_EQ(test, skua_icm_get_range(dev, SKUA_ICM_MTT, 0, 4 * MTT_CHUNK),
				-ENOMEM);
		KUNIT_EXPECT_EQ(test, mapped(fake), 0);
		KUNIT_EXPECT_EQ(test, dev->icm[SKUA_ICM_MTT].pages, 0);
		KUNIT_EXPECT_TRUE(test, xa_empty(&dev->icm[SKUA_ICM_MTT].chunks));
	}
	KUNIT_EXPECT_FALSE(test, skua_dead(dev));
}

/* What cannot be unmapped is the device's: it stays, and serves again. */
static void test_unmap_refused(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;

	KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, 5), 0);
	fake->refuse_unmap = true;
	skua_icm_put(dev, SKUA_ICM_CQC, 5);
	KUNIT_EXPECT_EQ(test, mapped(fake), CHUNK_PAGES);
	KUNIT_EXPECT_EQ(test, dev->icm[SKUA_ICM_CQC].pages, CHUNK_PAGES);
	KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, 6), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->maps), 1);
	fake->refuse_unmap = false;
	skua_icm_put(dev, SKUA_ICM_CQC, 6);
	KUNIT_EXPECT_EQ(test, mapped(fake), 0);
	/* And once more, to be freed with the table. */
	KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, 5), 0);
	fake->refuse_unmap = true;
	skua_icm_put(dev, SKUA_ICM_CQC, 5);
}

/*
 * Of a table whose indices are drawn at random it might never serve again: it is unmapped
 * when the next one is.
 */
static void test_unmap_later(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, i * CQC_CHUNK), 0);
	fake->refuse_unmap = true;
	for (i = 0; i < 3; i++)
		skua_icm_put(dev, SKUA_ICM_CQC, i * CQC_CHUNK);
	KUNIT_EXPECT_EQ(test, mapped(fake), 4 * CHUNK_PAGES);
	/* One of the three is used again meanwhile. */
	KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, CQC_CHUNK), 0);
	fake->refuse_unmap = false;
	skua_icm_put(dev, SKUA_ICM_CQC, 3 * CQC_CHUNK);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->unmaps), 6);
	KUNIT_EXPECT_EQ(test, mapped(fake), CHUNK_PAGES);
	KUNIT_EXPECT_EQ(test, dev->icm[SKUA_ICM_CQC].pages, CHUNK_PAGES);
	skua_icm_put(dev, SKUA_ICM_CQC, CQC_CHUNK);
	KUNIT_EXPECT_EQ(test, mapped(fake), 0);
	KUNIT_EXPECT_EQ(test, dev->icm[SKUA_ICM_CQC].kept, 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->icm[SKUA_ICM_CQC].chunks));
}

/* A dead device is asked nothing. */
static void test_dead(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;

	KUNIT_ASSERT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, 5), 0);
	skua_declare_dead(dev, "test");
	KUNIT_EXPECT_EQ(test, skua_icm_get(dev, SKUA_ICM_CQC, CQC_CHUNK), -EIO);
	skua_icm_put(dev, SKUA_ICM_CQC, 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->unmaps), 0);
	KUNIT_EXPECT_EQ(test, dev->icm[SKUA_ICM_CQC].pages, 0);
	KUNIT_EXPECT_TRUE(test, xa_empty(&dev->icm[SKUA_ICM_CQC].chunks));
}

/* Every entry has an address of its own, and it holds. */
static void test_entry(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct skua_dev *dev = &fake->dev;
	const u64 first = MTT_CHUNK - 7, count = MTT_CHUNK + 20;
	__le64 *entry = NULL;
	u32 run = 0;
	u64 i;

	KUNIT_ASSERT_EQ(test, skua_icm_get_range(dev, SKUA_ICM_MTT, first, count), 0);
	for (i = 0; i < count; i++, run--, entry++) {
		if (!run)
			entry = skua_icm_entry(dev, SKUA_ICM_MTT, first + i, &run);
		KUNIT_ASSERT_NOT_NULL(test, entry);
		KUNIT_ASSERT_GT(test, run, 0);
		KUNIT_ASSERT_EQ(test, le64_to_cpu(*entry), 0);
		*entry = cpu_to_le64(first + i);
	}
	for (i = 0; i < count; i++) {
		entry = skua_icm_entry(dev, SKUA_ICM_MTT, first + i, &run);
		KUNIT_ASSERT_EQ(test, le64_to_cpu(*entry), first + i);
	}
	skua_icm_put_range(dev, SKUA_ICM_MTT, first, count);
}

struct churn {
	struct work_struct work;
	struct fake *fake;
};

static void churn_work(struct work_struct *work)
{
	struct fake *fake = container_of(work, struct churn, work)->fake;
	unsigned int i;

	for (i = 0; i < 200; i++) {
		u32 first = get_random_u32_below(8 * MTT_CHUNK);
		u32 count = get_random_u32_inclusive(1, 2 * MTT_CHUNK);

		if (!skua_icm_get_range(&fake->dev, SKUA_ICM_MTT, first, count))
			skua_icm_put_range(&fake->dev, SKUA_ICM_MTT, first, count);
	}
}

static void test_churn(struct kunit *test)
{
	struct fake *fake = test->priv;
	struct churn churn[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(churn); i++) {
		churn[i].fake = fake;
		INIT_WORK_ONSTACK(&churn[i].work, churn_work);
		queue_work(fake->dev.wq, &churn[i].work);
	}
	flush_workqueue(fake->dev.wq);
	for (i = 0; i < ARRAY_SIZE(churn); i++)
		destroy_work_on_stack(&churn[i].work);
	KUNIT_EXPECT_GT(test, atomic_read(&fake->maps), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->maps), atomic_read(&fake->unmaps));
	KUNIT_EXPECT_EQ(test, mapped(fake), 0);
}

static struct kunit_case skua_icm_cases[] = {
	KUNIT_CASE(test_refs),
	KUNIT_CASE(test_small_table),
	KUNIT_CASE(test_range),
	KUNIT_CASE(test_bounds),
	KUNIT_CASE(test_map_refused),
	KUNIT_CASE(test_unmap_refused),
	KUNIT_CASE(test_unmap_later),
	KUNIT_CASE(test_dead),
	KUNIT_CASE(test_entry),
	KUNIT_CASE(test_churn),
	{}
};

struct kunit_suite skua_icm_suite = {
	.name = "skua_icm",
	.init = icm_init,
	.test_cases = skua_icm_cases,
};
