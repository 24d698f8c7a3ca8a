// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic classes: which are refused and with which error, what is written to the device, and
 * what is kept while it is down or refuses them.
 */
#include <kunit/static_stub.h>
#include <linux/rtnetlink.h>

#include "en_fake.h"

#define ETS	IEEE_8021QAZ_TSA_ETS

struct ets_case {
	const char *name;
	struct ieee_ets ets;
	int err;
};

static const struct ets_case ets_cases[] = {
	{ "one class", {} },
	{ "each strict", { .prio_tc = { 0, 1, 2, 3, 4, 5, 6, 7 } } },
	{ "two shares", { .prio_tc = { [3] = 1 }, .tc_tsa = { ETS, ETS },
			  .tc_tx_bw = { 30, 70 } } },
	{ "strict above a share", { .prio_tc = { [5] = 2 }, .tc_tsa = { ETS },
				    .tc_tx_bw = { 100 } } },
	{ "eight shares", { .tc_tsa = { ETS, ETS, ETS, ETS, ETS, ETS, ETS, ETS },
			    .tc_tx_bw = { 1, 1, 1, 1, 1, 1, 1, 93 } } },
	{ "bandwidth of a strict class", { .tc_tx_bw = { 200 } } },
	{ "no such class", { .prio_tc = { [7] = 8 } }, -EINVAL },
	{ "99 percent", { .tc_tsa = { ETS, ETS }, .tc_tx_bw = { 49, 50 } }, -EINVAL },
	{ "101 percent", { .tc_tsa = { ETS, ETS }, .tc_tx_bw = { 51, 50 } }, -EINVAL },
	/* In eight bits these are 100. */
	{ "356 percent", { .tc_tsa = { ETS, ETS }, .tc_tx_bw = { 178, 178 } }, -EINVAL },
	{ "no bandwidth", { .tc_tsa = { ETS, ETS }, .tc_tx_bw = { 0, 100 } }, -EINVAL },
	{ "credit-based shaper", { .tc_tsa = { [4] = IEEE_8021QAZ_TSA_CB_SHAPER } }, -EOPNOTSUPP },
	{ "shapers supported", { .cbs = 1 }, -EOPNOTSUPP },
	{ "of a vendor", { .tc_tsa = { [7] = IEEE_8021QAZ_TSA_VENDOR } }, -EOPNOTSUPP },
};

static void ets_case_name(const struct ets_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(ets, ets_cases, ets_case_name);

static void test_ets(struct kunit *test)
{
	const struct ets_case *c = test->param_value;
	struct ent *t = ent_create(test);

	KUNIT_EXPECT_EQ(test, skua_en_ets_check(t->en->ndev, &c->ets), c->err);
}

/* Without a device the classes are kept, and all that is for LLDP agents alone. */
static void test_ets_kept(struct kunit *test)
{
	struct ieee_ets set = { .willing = 1, .tc_tsa = { ETS }, .tc_tx_bw = { 100 },
				.prio_tc = { [4] = 6 }, .tc_rx_bw = { 7 }, .tc_reco_bw = { 5 },
				.tc_reco_tsa = { ETS }, .reco_prio_tc = { [2] = 1 } };
	struct ieee_ets bad = { .prio_tc = { [4] = 8 } }, got = {};
	struct ent *t = ent_create(test);
	struct net_device *ndev = t->en->ndev;

	t->en->caps = SKUA_CAP_ETS;
	skua_en_dcb_init(t->en);
	KUNIT_ASSERT_NOT_NULL(test, ndev->dcbnl_ops);
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, ndev->dcbnl_ops->ieee_setets(ndev, &set), 0);
	KUNIT_EXPECT_EQ(test, ndev->dcbnl_ops->ieee_setets(ndev, &bad), -EINVAL);
	KUNIT_EXPECT_EQ(test, ndev->dcbnl_ops->ieee_getets(ndev, &got), 0);
	rtnl_unlock();
	set.ets_cap = 8;
	KUNIT_EXPECT_MEMEQ(test, &got, &set, sizeof(got));
}

/**
 * struct written - what the device was told, and what becomes of that
 * @t: the netdev
 * @prio_tc: class of each priority
 * @share: share of each class
 * @count: how often
 * @err: what it answers
 * @dies: it is dead from then on
 */
struct written {
	struct ent *t;
	u8 prio_tc[SKUA_PRIO_NUM];
	u8 share[SKUA_TC_NUM];
	unsigned int count;
	int err;
	bool dies;
};

static int set_classes(struct skua_dev *dev, const u8 prio_tc[SKUA_PRIO_NUM],
		       const u8 tc_share[SKUA_TC_NUM])
{
	struct written *w = kunit_get_current_test()->priv;

	KUNIT_EXPECT_PTR_EQ(w->t->test, dev, &w->t->dev);
	memcpy(w->prio_tc, prio_tc, sizeof(w->prio_tc));
	memcpy(w->share, tc_share, sizeof(w->share));
	w->count++;
	if (w->dies)
		dev->state = SKUA_DEAD;
	return w->err;
}

/* A netdev with classes whose device is up. */
static struct written *written_create(struct kunit *test)
{
	struct written *w = ent_zalloc(test, sizeof(*w));

	w->t = ent_create(test);
	w->t->dev.state = SKUA_UP;
	w->t->en->caps = SKUA_CAP_ETS;
	w->t->en->attached = true;
	w->t->en->dead = false;
	skua_en_dcb_init(w->t->en);
	test->priv = w;
	kunit_activate_static_stub(test, skua_set_classes, set_classes);
	return w;
}

static int ets_set(struct written *w, struct ieee_ets *ets)
{
	struct net_device *ndev = w->t->en->ndev;
	int err;

	rtnl_lock();
	err = ndev->dcbnl_ops->ieee_setets(ndev, ets);
	rtnl_unlock();
	return err;
}

static void come_up(struct written *w)
{
	rtnl_lock();
	skua_en_dcb_up(w->t->en);
	rtnl_unlock();
}

/* @ets, which has what the device does and something for agents, is what the user sees. */
static void expect_shown(struct written *w, struct ieee_ets ets)
{
	struct net_device *ndev = w->t->en->ndev;
	struct ieee_ets got = {};

	rtnl_lock();
	KUNIT_EXPECT_EQ(w->t->test, ndev->dcbnl_ops->ieee_getets(ndev, &got), 0);
	rtnl_unlock();
	ets.ets_cap = SKUA_TC_NUM;
	KUNIT_EXPECT_MEMEQ(w->t->test, &got, &ets, sizeof(got));
}

static const struct ieee_ets three_classes = {
	.willing = 1,
	.prio_tc = { [3] = 1, [7] = 5 },
	.tc_tsa = { ETS, ETS },
	.tc_tx_bw = { 30, 70, 40 },
	.tc_rx_bw = { 50, 50 },
	.tc_reco_bw = { 100 },
};

static void expect_three(struct written *w)
{
	static const u8 share[SKUA_TC_NUM] = {
		30, 70, SKUA_TC_STRICT, SKUA_TC_STRICT, SKUA_TC_STRICT, SKUA_TC_STRICT,
		SKUA_TC_STRICT, SKUA_TC_STRICT,
	};

	KUNIT_EXPECT_MEMEQ(w->t->test, w->prio_tc, three_classes.prio_tc, sizeof(w->prio_tc));
	KUNIT_EXPECT_MEMEQ(w->t->test, w->share, share, sizeof(share));
}

/* A device that is up is told at once, and again when it comes up; only what it can do. */
static void test_ets_written(struct kunit *test)
{
	struct written *w = written_create(test);
	struct ieee_ets set = three_classes, bad = { .cbs = 1 };

	KUNIT_EXPECT_EQ(test, ets_set(w, &set), 0);
	KUNIT_EXPECT_EQ(test, w->count, 1);
	expect_three(w);
	KUNIT_EXPECT_EQ(test, ets_set(w, &bad), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, w->count, 1);
	memset(w->share, 0, sizeof(w->share));
	memset(w->prio_tc, 0, sizeof(w->prio_tc));
	come_up(w);
	KUNIT_EXPECT_EQ(test, w->count, 2);
	expect_three(w);
	expect_shown(w, three_classes);
}

/* What the device has refused is not shown: it goes on with what it has. */
static void test_ets_refused(struct kunit *test)
{
	struct written *w = written_create(test);
	struct ieee_ets set = three_classes, other = { .prio_tc = { [1] = 2 } };
	struct ieee_ets none = { .willing = 1, .tc_rx_bw = { 50, 50 }, .tc_reco_bw = { 100 } };

	KUNIT_EXPECT_EQ(test, ets_set(w, &set), 0);
	w->err = -EINVAL;
	KUNIT_EXPECT_EQ(test, ets_set(w, &other), -EINVAL);
	expect_shown(w, three_classes);
	/* After a reset that is one class. What is for agents was not refused. */
	come_up(w);
	KUNIT_EXPECT_EQ(test, w->count, 3);
	expect_shown(w, none);
	/* It is told again each time, until there are other classes. */
	w->err = 0;
	come_up(w);
	expect_three(w);
	expect_shown(w, three_classes);
	w->err = -EINVAL;
	come_up(w);
	w->err = 0;
	KUNIT_EXPECT_EQ(test, ets_set(w, &other), 0);
	expect_shown(w, other);
}

/* A device that fails has refused nothing: it is told again when it is recovered. */
static void test_ets_dead(struct kunit *test)
{
	struct written *w = written_create(test);
	struct ieee_ets set = three_classes;

	w->err = -EIO;
	w->dies = true;
	KUNIT_EXPECT_EQ(test, ets_set(w, &set), 0);
	KUNIT_EXPECT_EQ(test, w->count, 1);
	come_up(w);
	expect_shown(w, three_classes);
}

/* A device that is down is told when it comes up, one that has failed too. */
static void test_ets_down(struct kunit *test)
{
	struct written *w = written_create(test);
	struct ieee_ets set = three_classes, other = { .prio_tc = { [1] = 2 } };

	w->t->en->dead = true;
	KUNIT_EXPECT_EQ(test, ets_set(w, &other), 0);
	w->t->en->attached = false;
	KUNIT_EXPECT_EQ(test, ets_set(w, &set), 0);
	KUNIT_EXPECT_EQ(test, w->count, 0);
	expect_shown(w, three_classes);
	come_up(w);
	KUNIT_EXPECT_EQ(test, w->count, 1);
	expect_three(w);
}

/* Who comes after the netdev finds one class. */
static void test_ets_exit(struct kunit *test)
{
	struct written *w = written_create(test);
	struct ieee_ets set = three_classes;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, ets_set(w, &set), 0);
	skua_en_dcb_exit(w->t->en);
	KUNIT_EXPECT_EQ(test, w->count, 2);
	for (i = 0; i < SKUA_PRIO_NUM; i++)
		KUNIT_EXPECT_EQ(test, w->prio_tc[i], 0);
	for (i = 0; i < SKUA_TC_NUM; i++)
		KUNIT_EXPECT_EQ(test, w->share[i], SKUA_TC_STRICT);
}

/* A device without the capability has no DCB. */
static void test_no_ets(struct kunit *test)
{
	struct written *w = written_create(test);

	w->t->en->caps = 0;
	w->t->en->ndev->dcbnl_ops = NULL;
	skua_en_dcb_init(w->t->en);
	KUNIT_EXPECT_NULL(test, w->t->en->ndev->dcbnl_ops);
	come_up(w);
	skua_en_dcb_exit(w->t->en);
	KUNIT_EXPECT_EQ(test, w->count, 0);
}

static struct kunit_case dcb_cases[] = {
	KUNIT_CASE_PARAM(test_ets, ets_gen_params),
	KUNIT_CASE(test_ets_kept),
	KUNIT_CASE(test_ets_written),
	KUNIT_CASE(test_ets_refused),
	KUNIT_CASE(test_ets_dead),
	KUNIT_CASE(test_ets_down),
	KUNIT_CASE(test_ets_exit),
	KUNIT_CASE(test_no_ets),
	{}
};

static struct kunit_suite dcb_suite = {
	.name = "skua_en_dcb",
	.test_cases = dcb_cases,
};

kunit_test_suite(dcb_suite);
