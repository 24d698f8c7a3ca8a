// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of some QPs: which set a QP has, when a set comes and goes. On a live
 * device; without one they are skipped.
 */
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "../skua_ib.h"
#include "live.h"

#define QPS	3

/**
 * struct bound - QPs and counters as the RDMA core has them
 * @dev: the device
 * @ops: what the core would call
 * @pd: of the QPs
 * @cq: of the QPs
 * @qp: some
 * @counter: some
 */
struct bound {
	struct skua_ib_dev *dev;
	const struct ib_device_ops *ops;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[QPS];
	struct rdma_counter counter[2];
};

static void bound_free(void *data)
{
	struct bound *b = data;
	unsigned int i;

	for (i = 0; i < QPS; i++) {
		if (IS_ERR_OR_NULL(b->qp[i]))
			continue;
		/* What a test that failed has left: the core must not find it. */
		if (b->qp[i]->counter)
			b->ops->counter_unbind_qp(b->qp[i], 1);
		ib_destroy_qp(b->qp[i]);
	}
	for (i = 0; i < ARRAY_SIZE(b->counter); i++) {
		if (b->counter[i].id)
			b->ops->counter_dealloc(&b->counter[i]);
		rdma_free_hw_stats_struct(b->counter[i].stats);
	}
	if (!IS_ERR_OR_NULL(b->cq))
		ib_free_cq(b->cq);
	if (!IS_ERR_OR_NULL(b->pd))
		ib_dealloc_pd(b->pd);
}

static int bound_init(struct kunit *test)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct bound *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, b);
	if (!live_dev)
		kunit_skip(test, "no Skua device");
	if (!live_dev->ops.counter_bind_qp)
		kunit_skip(test, "it has no counter sets");
	test->priv = b;
	b->dev = to_skua_dev(live_dev);
	b->ops = &live_dev->ops;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, bound_free, b), 0);
	b->pd = ib_alloc_pd(live_dev, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(b->pd));
	b->cq = ib_alloc_cq(live_dev, b, 32, 0, IB_POLL_DIRECT);
	KUNIT_ASSERT_FALSE(test, IS_ERR(b->cq));
	init.send_cq = b->cq;
	init.recv_cq = b->cq;
	for (i = 0; i < QPS; i++) {
		b->qp[i] = ib_create_qp(b->pd, &init);
		KUNIT_ASSERT_FALSE(test, IS_ERR(b->qp[i]));
	}
	for (i = 0; i < ARRAY_SIZE(b->counter); i++) {
		b->counter[i].device = live_dev;
		b->counter[i].port = 1;
		b->counter[i].stats = b->ops->counter_alloc_stats(&b->counter[i]);
		KUNIT_ASSERT_NOT_NULL(test, b->counter[i].stats);
	}
	return 0;
}

/* The set that the device has the QP count in. */
static u32 set_of(struct kunit *test, struct bound *b, unsigned int i)
{
	struct skua_cmd_query_qp_out *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_EQ(test, skua_qp_query(b->dev->core, &to_skua_qp(b->qp[i])->core, out), 0);
	return le32_to_cpu(out->sqc.counter);
}

static bool is_set(struct bound *b, u32 set)
{
	return xa_load(&b->dev->sets, set);
}

static int bind(struct bound *b, unsigned int counter, unsigned int qp)
{
	return b->ops->counter_bind_qp(&b->counter[counter], b->qp[qp], 1);
}

/* The first QP brings the set, the others share it, and it stays until the counter goes. */
static void test_share(struct kunit *test)
{
	struct bound *b = test->priv;
	unsigned int i;
	u32 set;

	KUNIT_ASSERT_EQ(test, bind(b, 0, 0), 0);
	set = b->counter[0].id;
	KUNIT_EXPECT_NE(test, set, SKUA_NO_SET);
	KUNIT_EXPECT_TRUE(test, is_set(b, set));
	for (i = 1; i < QPS; i++) {
		KUNIT_EXPECT_EQ(test, set_of(test, b, i), SKUA_NO_SET);
		KUNIT_ASSERT_EQ(test, bind(b, 0, i), 0);
	}
	KUNIT_EXPECT_EQ(test, b->counter[0].id, set);
	for (i = 0; i < QPS; i++) {
		KUNIT_EXPECT_EQ(test, set_of(test, b, i), set);
		KUNIT_EXPECT_PTR_EQ(test, b->qp[i]->counter, &b->counter[0]);
		KUNIT_ASSERT_EQ(test, b->ops->counter_unbind_qp(b->qp[i], 1), 0);
		KUNIT_EXPECT_EQ(test, set_of(test, b, i), SKUA_NO_SET);
		KUNIT_EXPECT_NULL(test, b->qp[i]->counter);
		KUNIT_EXPECT_TRUE(test, is_set(b, set));
	}
	KUNIT_EXPECT_EQ(test, b->ops->counter_dealloc(&b->counter[0]), 0);
	KUNIT_EXPECT_FALSE(test, is_set(b, set));
	b->counter[0].id = 0;
}

/* Two counters have two sets; a QP moves from one to the other by way of none. */
static void test_two(struct kunit *test)
{
	struct bound *b = test->priv;

	KUNIT_ASSERT_EQ(test, bind(b, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, bind(b, 1, 1), 0);
	KUNIT_EXPECT_NE(test, b->counter[0].id, b->counter[1].id);
	KUNIT_ASSERT_EQ(test, b->ops->counter_unbind_qp(b->qp[0], 1), 0);
	KUNIT_ASSERT_EQ(test, bind(b, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, set_of(test, b, 0), b->counter[1].id);
	KUNIT_EXPECT_EQ(test, set_of(test, b, 1), b->counter[1].id);
	/* A counter that never had a QP has nothing to give back. */
	KUNIT_ASSERT_EQ(test, b->ops->counter_dealloc(&b->counter[0]), 0);
	b->counter[0].id = 0;
	KUNIT_EXPECT_EQ(test, b->ops->counter_dealloc(&b->counter[0]), 0);
	KUNIT_EXPECT_TRUE(test, is_set(b, b->counter[1].id));
}

/* No set is left: the QP stays without, and so does the counter. */
static void test_none_left(struct kunit *test)
{
	struct bound *b = test->priv;
	struct skua_dev *core = b->dev->core;
	u32 *set, n = 0;
	int err;

	set = kunit_kcalloc(test, skua_limits(core)->max_sets, sizeof(*set), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, set);
	while (n < skua_limits(core)->max_sets && !skua_set_create(core, &set[n]))
		n++;
	KUNIT_EXPECT_GT(test, n, 1);
	err = bind(b, 0, 0);
	KUNIT_EXPECT_EQ(test, err, -ENOSPC);
	KUNIT_EXPECT_EQ(test, b->counter[0].id, SKUA_NO_SET);
	KUNIT_EXPECT_NULL(test, b->qp[0]->counter);
	KUNIT_EXPECT_EQ(test, set_of(test, b, 0), SKUA_NO_SET);
	while (n--)
		skua_set_destroy(core, set[n]);
	KUNIT_EXPECT_EQ(test, bind(b, 0, 0), 0);
}

/* What a set keeps is shown, by the places that the port's counters have. */
static void test_stats(struct kunit *test)
{
	struct bound *b = test->priv;
	struct rdma_hw_stats *stats = b->counter[0].stats, *port;
	unsigned int shown = 0;
	int i;

	KUNIT_ASSERT_EQ(test, bind(b, 0, 0), 0);
	port = b->ops->alloc_hw_port_stats(live_dev, 1);
	KUNIT_ASSERT_NOT_NULL(test, port);
	KUNIT_EXPECT_EQ(test, stats->num_counters, port->num_counters);
	KUNIT_EXPECT_EQ(test, b->ops->counter_update_stats(&b->counter[0]), 0);
	for (i = 0; i < stats->num_counters; i++) {
		KUNIT_EXPECT_STREQ(test, stats->descs[i].name, port->descs[i].name);
		/* It is new, and its QP has done nothing. */
		KUNIT_EXPECT_EQ(test, stats->value[i], 0);
		shown += !test_bit(i, stats->is_disabled);
		KUNIT_EXPECT_TRUE(test, test_bit(i, stats->is_disabled) ||
				  !(stats->descs[i].flags & IB_STAT_FLAG_OPTIONAL));
	}
	KUNIT_EXPECT_GT(test, shown, 5);
	KUNIT_EXPECT_LT(test, shown, stats->num_counters);
	rdma_free_hw_stats_struct(port);
}

/* tx_atomic_reqs: nobody sends atomics here, so that nothing else changes it. */
static u64 *atomics(struct kunit *test, struct rdma_hw_stats *stats)
{
	int i;

	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, "tx_atomic_reqs"))
			return &stats->value[i];
	KUNIT_FAIL_AND_ABORT(test, "no tx_atomic_reqs");
	return NULL;
}

static u64 port_atomics(struct kunit *test, struct bound *b)
{
	struct rdma_hw_stats *stats = b->ops->alloc_hw_port_stats(live_dev, 1);
	u64 value;

	KUNIT_ASSERT_NOT_NULL(test, stats);
	KUNIT_EXPECT_EQ(test, b->ops->get_hw_stats(live_dev, stats, 1, 0), stats->num_counters);
	value = *atomics(test, stats);
	rdma_free_hw_stats_struct(stats);
	return value;
}

/* The RDMA core adds what sets have counted to what the port tells, which is without it. */
static void test_port_without_sets(struct kunit *test)
{
	struct bound *b = test->priv;
	u64 *retired = b->dev->retired;
	u64 before = port_atomics(test, b);

	scoped_guard(mutex, &b->dev->cnt_lock)
		retired[SKUA_CNT_TX_ATOMIC] += 5;
	KUNIT_EXPECT_EQ(test, before - port_atomics(test, b), 5);
	scoped_guard(mutex, &b->dev->cnt_lock)
		retired[SKUA_CNT_TX_ATOMIC] -= 5;
	KUNIT_EXPECT_EQ(test, port_atomics(test, b), before);
}

/*
 * When a set goes the port is without what the RDMA core has read of it, and adds itself: no more
 * if the set has counted more since, as when the core's last read failed.
 */
static void test_retired(struct kunit *test)
{
	struct bound *b = test->priv;
	u64 before = port_atomics(test, b);

	KUNIT_ASSERT_EQ(test, bind(b, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, b->ops->counter_unbind_qp(b->qp[0], 1), 0);
	*atomics(test, b->counter[0].stats) = 5;
	KUNIT_ASSERT_EQ(test, b->ops->counter_dealloc(&b->counter[0]), 0);
	b->counter[0].id = 0;
	KUNIT_EXPECT_EQ(test, before - port_atomics(test, b), 5);
	scoped_guard(mutex, &b->dev->cnt_lock)
		b->dev->retired[SKUA_CNT_TX_ATOMIC] -= 5;
}

static struct kunit_case skua_counters_cases[] = {
	KUNIT_CASE(test_share),
	KUNIT_CASE(test_two),
	KUNIT_CASE_SLOW(test_none_left),
	KUNIT_CASE(test_stats),
	KUNIT_CASE(test_port_without_sets),
	KUNIT_CASE(test_retired),
	{}
};

static struct kunit_suite skua_counters_suite = {
	.name = "skua_counters",
	.suite_init = live_init,
	.suite_exit = live_exit,
	.init = bound_init,
	.test_cases = skua_counters_cases,
};

kunit_test_suite(skua_counters_suite);

MODULE_DESCRIPTION("KUnit tests of counter sets on a Skua device");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
