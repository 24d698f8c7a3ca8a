// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of kernel SRQs that need no device: what is posted, what the ring then has, and what
 * becomes of completions of a device that lies.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/module.h>
#include <skua/wqe_build.h>

#include "../skua_ib.h"

#define LOG_WQES	2
#define WQES		BIT(LOG_WQES)
#define LOG_SEGS	2
#define MAX_SGE		(BIT(LOG_SEGS) - 1)

struct srqt {
	struct skua_ib_srq srq;
	struct skua_srq_dbr dbr;
	u8 ring[SKUA_WQE_SEG << (LOG_WQES + LOG_SEGS)];
	u64 wr_id[WQES];
	u16 next[WQES];
	unsigned long posted;
};

static int srq_init(struct kunit *test)
{
	struct srqt *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	spin_lock_init(&t->srq.lock);
	t->srq.wqes = WQES;
	t->srq.log_segs = LOG_SEGS;
	t->srq.max_sge = MAX_SGE;
	t->srq.wr_id = t->wr_id;
	t->srq.next = t->next;
	t->srq.posted = &t->posted;
	t->srq.dbr = &t->dbr;
	skua_rq_ring_init(&t->srq.ring, t->ring, LOG_WQES, LOG_SEGS);
	/* As it is made: a list of all, the last one stays free. */
	for (i = 0; i < WQES; i++) {
		t->next[i] = (i + 1) % WQES;
		skua_srq_next_set(skua_rq_wqe(&t->srq.ring, i), t->next[i]);
	}
	t->srq.tail = WQES - 1;
	return 0;
}

static struct skua_wqe_data *data_of(struct srqt *t, u32 pos)
{
	return (struct skua_wqe_data *)skua_rq_wqe(&t->srq.ring, pos) + 1;
}

static u32 next_of(struct srqt *t, u32 pos)
{
	const struct skua_wqe_next *link = skua_rq_wqe(&t->srq.ring, pos);

	return le32_to_cpu(link->next);
}

static int post(struct srqt *t, u64 wr_id, struct ib_sge *sge, int num_sge)
{
	struct ib_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = num_sge };
	const struct ib_recv_wr *bad = NULL;
	int err = skua_ib_post_srq_recv(&t->srq.ibsrq, &wr, &bad);

	if ((err && bad != &wr) || (!err && bad))
		return -EBADE;
	return err;
}

/* Elements without a byte are left out, and what is behind the last one is ended. */
static void test_wqe(struct kunit *test)
{
	struct ib_sge sge[MAX_SGE + 1] = {
		{ 0x1000, 100, 7 }, { 0x2000, 0, 8 }, { 0x3000, 300, 9 }, { 0x4000, 1, 1 },
	};
	struct srqt *t = test->priv;
	struct skua_wqe_data *data = data_of(t, 0);

	KUNIT_ASSERT_EQ(test, post(t, 5, sge, MAX_SGE), 0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(data[0].addr), 0x1000);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(data[0].len), 100);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(data[0].lkey), 7);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(data[1].addr), 0x3000);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(data[2].lkey), SKUA_INVALID_LKEY);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->dbr.pi), 1);
	KUNIT_EXPECT_EQ(test, next_of(t, 0), 1);

	KUNIT_EXPECT_EQ(test, post(t, 6, sge, MAX_SGE + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, post(t, 6, sge, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->dbr.pi), 1);
	KUNIT_EXPECT_EQ(test, post(t, 6, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(data_of(t, 1)[0].lkey), SKUA_INVALID_LKEY);
}

/* A list is posted up to the first that does not fit, and that much is told. */
static void test_full(struct kunit *test)
{
	struct ib_recv_wr wr[WQES] = {};
	const struct ib_recv_wr *bad = NULL;
	struct srqt *t = test->priv;
	u64 wr_id;
	u32 i;

	for (i = 0; i < WQES; i++) {
		wr[i].wr_id = 100 + i;
		wr[i].next = i < WQES - 1 ? &wr[i + 1] : NULL;
	}
	KUNIT_EXPECT_EQ(test, skua_ib_post_srq_recv(&t->srq.ibsrq, wr, &bad), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr[WQES - 1]);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->dbr.pi), WQES - 1);
	KUNIT_EXPECT_EQ(test, post(t, 1, NULL, 0), -ENOMEM);
	KUNIT_EXPECT_TRUE(test, skua_ib_srq_take(&t->srq, 0, &wr_id));
	KUNIT_EXPECT_EQ(test, wr_id, 100);
	KUNIT_EXPECT_EQ(test, post(t, 1, NULL, 0), 0);
}

/* Completed in any order, posted again: the links in the ring lead to each WQE once. */
static void test_order(struct kunit *test)
{
	static const u32 order[] = { 2, 0, 1 };
	struct srqt *t = test->priv;
	u32 round, i, pos = 0;
	u64 wr_id;

	for (round = 0; round < 10; round++) {
		u32 at[WQES - 1];

		for (i = 0; i < WQES - 1; i++) {
			at[i] = pos;
			KUNIT_ASSERT_EQ(test, post(t, 1000 * round + i, NULL, 0), 0);
			KUNIT_EXPECT_EQ(test, t->wr_id[pos], 1000 * round + i);
			/* As the device does. */
			pos = next_of(t, pos);
		}
		KUNIT_EXPECT_EQ(test, le32_to_cpu(t->dbr.pi), (round + 1) * (WQES - 1));
		for (i = 0; i < WQES - 1; i++) {
			KUNIT_ASSERT_TRUE(test, skua_ib_srq_take(&t->srq, at[order[i]], &wr_id));
			KUNIT_EXPECT_EQ(test, wr_id, 1000 * round + order[i]);
		}
	}
}

/* Completions of what is not posted free nothing. */
static void test_hostile(struct kunit *test)
{
	struct srqt *t = test->priv;
	u64 wr_id = 0xbad;

	KUNIT_EXPECT_FALSE(test, skua_ib_srq_take(&t->srq, 0, &wr_id));
	KUNIT_ASSERT_EQ(test, post(t, 5, NULL, 0), 0);
	KUNIT_EXPECT_FALSE(test, skua_ib_srq_take(&t->srq, 1, &wr_id));
	KUNIT_EXPECT_FALSE(test, skua_ib_srq_take(&t->srq, WQES, &wr_id));
	KUNIT_EXPECT_FALSE(test, skua_ib_srq_take(&t->srq, U32_MAX, &wr_id));
	KUNIT_EXPECT_EQ(test, wr_id, 0xbad);
	KUNIT_EXPECT_TRUE(test, skua_ib_srq_take(&t->srq, 0, &wr_id));
	KUNIT_EXPECT_FALSE(test, skua_ib_srq_take(&t->srq, 0, &wr_id));
	/* As many are free as before, each once. */
	KUNIT_EXPECT_EQ(test, post(t, 6, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, post(t, 7, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, post(t, 8, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, post(t, 9, NULL, 0), -ENOMEM);
}

static struct kunit_case skua_srq_cases[] = {
	KUNIT_CASE(test_wqe),
	KUNIT_CASE(test_full),
	KUNIT_CASE(test_order),
	KUNIT_CASE(test_hostile),
	{}
};

static struct kunit_suite skua_srq_suite = {
	.name = "skua_srq",
	.init = srq_init,
	.test_cases = skua_srq_cases,
};

kunit_test_suite(skua_srq_suite);

MODULE_DESCRIPTION("KUnit tests of skua_ib's kernel SRQs");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
