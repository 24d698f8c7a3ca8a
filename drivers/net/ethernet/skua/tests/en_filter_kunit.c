// SPDX-License-Identifier: GPL-2.0
/*
 * Filters of the netdev: which are made and removed, and that what is received before and after
 * a change is received meanwhile.
 */
#include <kunit/static_stub.h>
#include <linux/etherdevice.h>

#include "en_fake.h"

#define RULES	(SKUA_EN_MAX_FILTERS + 1)

/**
 * struct filters - the rules and modes that the device has
 * @t: the netdev
 * @mac: address of each rule, zero: there is no such rule
 * @made: rules made so far
 * @removed: likewise, removed
 * @promisc: all frames are received
 * @allmulti: all multicast frames
 * @full: no more rules can be made
 * @err: what a change of the modes answers
 * @again: how often the stack was asked to try again
 * @watched: an address whose frames are to be received all the time, if not NULL
 */
struct filters {
	struct ent *t;
	u8 mac[RULES][ETH_ALEN] __aligned(2);
	unsigned int made;
	unsigned int removed;
	bool promisc;
	bool allmulti;
	bool full;
	int err;
	unsigned int again;
	const u8 *watched;
};

static bool has_rule(const struct filters *f, const u8 *mac)
{
	unsigned int i;

	for (i = 0; i < RULES; i++)
		if (ether_addr_equal(f->mac[i], mac))
			return true;
	return false;
}

static bool receives(const struct filters *f, const u8 *mac)
{
	return f->promisc || (f->allmulti && is_multicast_ether_addr(mac)) || has_rule(f, mac);
}

static void watch(const struct filters *f)
{
	if (f->watched)
		KUNIT_EXPECT_TRUE(f->t->test, receives(f, f->watched));
}

static int flow_create(struct skua_dev *dev, u32 *index, const struct skua_flow *flow)
{
	struct filters *f = kunit_get_current_test()->priv;
	u32 i = 0;

	if (f->full)
		return -ENOSPC;
	while (i < RULES && !is_zero_ether_addr(f->mac[i]))
		i++;
	KUNIT_ASSERT_LT(f->t->test, i, RULES);
	KUNIT_EXPECT_FALSE(f->t->test, has_rule(f, flow->value.dmac));
	ether_addr_copy(f->mac[i], flow->value.dmac);
	*index = i;
	f->made++;
	watch(f);
	return 0;
}

static void flow_destroy(struct skua_dev *dev, u32 index)
{
	struct filters *f = kunit_get_current_test()->priv;

	KUNIT_ASSERT_LT(f->t->test, index, RULES);
	KUNIT_EXPECT_FALSE(f->t->test, is_zero_ether_addr(f->mac[index]));
	eth_zero_addr(f->mac[index]);
	f->removed++;
	watch(f);
}

static int modify_port(struct skua_dev *dev, const struct skua_cmd_modify_port_in *in)
{
	struct filters *f = kunit_get_current_test()->priv;

	if (f->err)
		return f->err;
	f->promisc = le32_to_cpu(in->promisc);
	f->allmulti = le32_to_cpu(in->allmulti);
	watch(f);
	return 0;
}

static struct filters *filters_create(struct kunit *test)
{
	struct filters *f = ent_zalloc(test, sizeof(*f));

	f->t = ent_create(test);
	f->t->en->dead = false;
	test->priv = f;
	kunit_activate_static_stub(test, skua_flow_create, flow_create);
	kunit_activate_static_stub(test, skua_flow_destroy, flow_destroy);
	kunit_activate_static_stub(test, skua_modify_port, modify_port);
	return f;
}

/* The n-th address: of a group, or of a station. */
static void address(u8 *mac, bool group, unsigned int n)
{
	eth_zero_addr(mac);
	mac[0] = group ? 0x01 : 0x02;
	mac[4] = n >> 8;
	mac[5] = n;
}

/* The groups from @first on; those that are made and removed for that. */
static void want_groups(struct filters *f, unsigned int first, unsigned int num,
			unsigned int made, unsigned int removed)
{
	struct skua_en_rx_mode *mode = ent_zalloc(f->t->test, sizeof(*mode));
	struct kunit *test = f->t->test;
	unsigned int i;

	mode->num = num;
	for (i = 0; i < num; i++)
		address(mode->mac[i], true, first + i);
	f->made = 0;
	f->removed = 0;
	KUNIT_EXPECT_EQ(test, skua_en_filters_set(f->t->en, mode), 0);
	KUNIT_EXPECT_EQ(test, f->made, made);
	KUNIT_EXPECT_EQ(test, f->removed, removed);
	KUNIT_EXPECT_FALSE(test, f->promisc);
	for (i = 0; i < num && !f->allmulti; i++)
		KUNIT_EXPECT_TRUE(test, has_rule(f, mode->mac[i]));
}

static void want_all(struct filters *f, bool promisc, bool allmulti)
{
	struct skua_en_rx_mode *mode = ent_zalloc(f->t->test, sizeof(*mode));

	mode->promisc = promisc;
	mode->allmulti = allmulti;
	KUNIT_EXPECT_EQ(f->t->test, skua_en_filters_set(f->t->en, mode), 0);
	KUNIT_EXPECT_EQ(f->t->test, f->promisc, promisc);
	KUNIT_EXPECT_EQ(f->t->test, f->allmulti, allmulti || promisc);
}

/* Only what differs is made and removed: at the end, in front, all, and in a table that is full. */
static void test_differences(struct kunit *test)
{
	struct filters *f = filters_create(test);

	want_groups(f, 1, 5, 5, 0);
	want_groups(f, 1, 5, 0, 0);
	want_groups(f, 1, 6, 1, 0);
	want_groups(f, 2, 5, 0, 1);
	want_groups(f, 10, 3, 3, 5);
	want_groups(f, 10, SKUA_EN_MAX_FILTERS, SKUA_EN_MAX_FILTERS - 3, 0);
	want_groups(f, 11, SKUA_EN_MAX_FILTERS, 1, 1);
	want_groups(f, 11, 0, 0, SKUA_EN_MAX_FILTERS);
}

/* Frames to an address that is wanted all the time are received all the time. */
static void test_no_gap(struct kunit *test)
{
	struct filters *f = filters_create(test);
	u8 mac[ETH_ALEN] __aligned(2);

	address(mac, true, 7);
	want_groups(f, 1, 10, 10, 0);
	f->watched = mac;
	want_groups(f, 7, 3, 0, 7);
	want_groups(f, 1, 8, 6, 1);
	want_all(f, false, true);
	want_groups(f, 7, 1, 1, 0);
	want_all(f, true, false);
	want_groups(f, 1, 10, 10, 0);
}

/* A rule that cannot be made: more is received, until it can. */
static void test_no_room(struct kunit *test)
{
	struct filters *f = filters_create(test);
	struct skua_en_rx_mode *mode = ent_zalloc(test, sizeof(*mode));

	want_groups(f, 1, 2, 2, 0);
	f->full = true;
	want_groups(f, 1, 3, 0, 0);
	KUNIT_EXPECT_TRUE(test, f->allmulti);
	f->full = false;
	want_groups(f, 1, 3, 1, 0);
	KUNIT_EXPECT_FALSE(test, f->allmulti);
	f->full = true;
	mode->num = 1;
	address(mode->mac[0], false, 1);
	KUNIT_EXPECT_EQ(test, skua_en_filters_set(f->t->en, mode), 0);
	KUNIT_EXPECT_TRUE(test, f->promisc);
}

/* Modes and the address of a station, which is received all the time. */
static void test_station(struct kunit *test)
{
	struct filters *f = filters_create(test);
	struct skua_en_rx_mode *mode = ent_zalloc(test, sizeof(*mode));
	u8 mac[ETH_ALEN] __aligned(2);

	address(mac, false, 1);
	want_all(f, true, false);
	f->watched = mac;
	mode->allmulti = true;
	mode->num = 1;
	ether_addr_copy(mode->mac[0], mac);
	KUNIT_EXPECT_EQ(test, skua_en_filters_set(f->t->en, mode), 0);
	KUNIT_EXPECT_FALSE(test, f->promisc);
	want_all(f, true, false);
	KUNIT_EXPECT_EQ(test, f->t->en->filters, 0);
	/* No rule can be made: everything is received as before. */
	f->full = true;
	KUNIT_EXPECT_EQ(test, skua_en_filters_set(f->t->en, mode), 0);
	KUNIT_EXPECT_TRUE(test, f->promisc);
	mode->allmulti = false;
	KUNIT_EXPECT_EQ(test, skua_en_filters_set(f->t->en, mode), 0);
	KUNIT_EXPECT_TRUE(test, f->promisc);
}

/* The modes cannot be set: rules are made, none goes, and the next change does the rest. */
static void test_modes_fail(struct kunit *test)
{
	struct filters *f = filters_create(test);
	struct skua_en_rx_mode *mode = ent_zalloc(test, sizeof(*mode));

	want_groups(f, 1, 2, 2, 0);
	f->err = -EIO;
	mode->num = 1;
	address(mode->mac[0], true, 3);
	KUNIT_EXPECT_EQ(test, skua_en_filters_set(f->t->en, mode), -EIO);
	KUNIT_EXPECT_EQ(test, f->t->en->filters, 3);
	f->err = 0;
	want_groups(f, 3, 1, 0, 2);
}

static void rx_mode_again(struct skua_en *en)
{
	struct filters *f = kunit_get_current_test()->priv;

	f->again++;
}

/* Likewise after a reset, when the stack has asked for nothing: it is told to ask. */
static void test_modes_fail_in_reset(struct kunit *test)
{
	struct filters *f = filters_create(test);
	struct skua_en *en = f->t->en;

	kunit_activate_static_stub(test, skua_en_rx_mode_again, rx_mode_again);
	en->ndev->flags |= IFF_PROMISC;
	f->err = -EIO;
	skua_en_rx_mode_refresh(en);
	KUNIT_EXPECT_EQ(test, f->again, 1);
	f->err = 0;
	skua_en_rx_mode_refresh(en);
	KUNIT_EXPECT_EQ(test, f->again, 1);
	KUNIT_EXPECT_TRUE(test, f->promisc);
	en->ndev->flags &= ~IFF_PROMISC;
}

static struct kunit_case filter_cases[] = {
	KUNIT_CASE(test_differences),
	KUNIT_CASE(test_no_gap),
	KUNIT_CASE(test_no_room),
	KUNIT_CASE(test_station),
	KUNIT_CASE(test_modes_fail),
	KUNIT_CASE(test_modes_fail_in_reset),
	{}
};

static struct kunit_suite filter_suite = {
	.name = "skua_en_filter",
	.test_cases = filter_cases,
};

kunit_test_suite(filter_suite);
