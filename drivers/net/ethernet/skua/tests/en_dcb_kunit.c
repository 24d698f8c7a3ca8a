// SPDX-License-Identifier: GPL-2.0
/*
 * Traffic classes: which are refused and with which error, and what is kept while the device is
 * down.
 */
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

/* A device without the capability has no DCB. */
static void test_no_ets(struct kunit *test)
{
	struct ent *t = ent_create(test);

	t->en->caps = 0;
	skua_en_dcb_init(t->en);
	KUNIT_EXPECT_NULL(test, t->en->ndev->dcbnl_ops);
}

static struct kunit_case dcb_cases[] = {
	KUNIT_CASE_PARAM(test_ets, ets_gen_params),
	KUNIT_CASE(test_ets_kept),
	KUNIT_CASE(test_no_ets),
	{}
};

static struct kunit_suite dcb_suite = {
	.name = "skua_en_dcb",
	.test_cases = dcb_cases,
};

kunit_test_suite(dcb_suite);
