// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes of tables that a device offers, and the reporter of its health.
 */
#include <linux/delay.h>
#include <net/devlink.h>

#include "fake.h"

#define LOG_ENTRIES	10

/* What QUERY_DEVICE says of table @table; -1: of none anything but LOG_ENTRIES. */
struct offer {
	int table;
	u32 log_max;
};

static u32 serve_offer(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *data)
{
	struct skua_cmd_query_device_out *out = data;
	const struct offer *offer = fake->test->priv;
	unsigned int i;

	if (le16_to_cpu(slot->opcode) != SKUA_CMD_QUERY_DEVICE)
		return SKUA_CMD_ST_OK;
	*out = (struct skua_cmd_query_device_out) {
		.size = cpu_to_le32(sizeof(*out)),
		.ports = 1,
		.msix_vectors = cpu_to_le16(4),
		.max_wqe_blocks = SKUA_WQE_MAX_BLOCKS,
		.log_min_page = SKUA_ICM_PAGE_SHIFT,
		.log_max_page = 30,
		.qpn_bits = 12,
		.max_gids = cpu_to_le16(16),
	};
	for (i = 0; i < SKUA_ICM_TABLES; i++) {
		out->icm[i].entry_size = cpu_to_le32(i == SKUA_ICM_MTT ? SKUA_ICM_MTT_SIZE : 64);
		out->icm[i].log_max = cpu_to_le32(i == offer->table ? offer->log_max :
						  LOG_ENTRIES);
	}
	return SKUA_CMD_ST_OK;
}

static int offer(struct kunit *test, int table, u32 log_max)
{
	struct offer offer = { .table = table, .log_max = log_max };
	struct fake *fake = fake_create(test);
	int err;

	test->priv = &offer;
	fake->serve = serve_offer;
	err = skua_profile_init(&fake->dev);
	if (!err) {
		KUNIT_EXPECT_GT(test, fake->dev.limits.max_mr, 0);
		KUNIT_EXPECT_GT(test, fake->dev.limits.max_cq, 0);
		KUNIT_EXPECT_GT(test, fake->dev.max_vectors, 0);
		KUNIT_EXPECT_LE(test, fake->dev.max_vectors, 4);
		skua_profile_exit(&fake->dev);
	}
	fake->serve = NULL;
	return err;
}

/* Without a key, a CQ or an EQ for completions there is nothing that software can do. */
static void test_small_mpt(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test, SKUA_ICM_MPT, 0), -EPROTO);
}

static void test_least_mpt(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test, SKUA_ICM_MPT, 1), 0);
}

static void test_small_cqc(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test, SKUA_ICM_CQC, 0), -EPROTO);
}

static void test_least_cqc(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test, SKUA_ICM_CQC, 1), 0);
}

static void test_small_eqc(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test, SKUA_ICM_EQC, ilog2(SKUA_EQN_COMP)), -EPROTO);
}

static void test_least_eqc(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test, SKUA_ICM_EQC, ilog2(SKUA_EQN_COMP) + 1), 0);
}

static void test_all_tables(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test, -1, 0), 0);
}

/* --- Health --- */

struct health {
	struct devlink *devlink;
	struct devlink_health_reporter *reporter;
	unsigned int recoveries;
};

static int health_recover(struct devlink_health_reporter *reporter, void *ctx,
			  struct netlink_ext_ack *extack)
{
	struct health *h = devlink_health_reporter_priv(reporter);

	h->recoveries++;
	return 0;
}

static const struct devlink_health_reporter_ops health_ops = {
	.name = "fw_fatal",
	.recover = health_recover,
};

static const struct devlink_ops devlink_ops = {};

static void health_end(void *data)
{
	struct health *h = data;

	devl_lock(h->devlink);
	devl_unregister(h->devlink);
	if (!IS_ERR_OR_NULL(h->reporter))
		devl_health_reporter_destroy(h->reporter);
	devl_unlock(h->devlink);
	devlink_free(h->devlink);
}

/*
 * devlink recovers nothing that was in error before. A device that was brought up, and failed
 * before devlink was told that it is up, must be recovered.
 */
static void test_health(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	struct skua_dev *dev = &fake->dev;
	struct devlink *devlink = devlink_alloc(&devlink_ops, sizeof(struct health), dev->dev);
	struct health *h;

	KUNIT_ASSERT_NOT_NULL(test, devlink);
	h = devlink_priv(devlink);
	h->devlink = devlink;
	devl_lock(devlink);
	h->reporter = devl_health_reporter_create(devlink, &health_ops, h);
	devl_register(devlink);
	devl_unlock(devlink);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, health_end, h), 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(h->reporter));
	dev->reporter = h->reporter;
	dev->registered = true;
	dev->state = SKUA_DEAD;

	devl_lock(devlink);
	skua_devlink_health(dev, false);
	devl_unlock(devlink);
	KUNIT_EXPECT_EQ(test, devlink_health_report(h->reporter, "test", NULL), -ECANCELED);
	KUNIT_EXPECT_EQ(test, h->recoveries, 0);
	devl_lock(devlink);
	skua_devlink_health(dev, true);
	devl_unlock(devlink);
	KUNIT_EXPECT_EQ(test, devlink_health_report(h->reporter, "test", NULL), 0);
	KUNIT_EXPECT_EQ(test, h->recoveries, 1);
	dev->state = SKUA_UP;
}

/**
 * struct late - a function that devlink knows, and nothing else of it
 * @dev: the function
 * @devlink: its instance
 * @recoveries: how often devlink recovered it
 */
struct late {
	struct skua_dev *dev;
	struct devlink *devlink;
	unsigned int recoveries;
};

static int late_recover(struct devlink_health_reporter *reporter, void *ctx,
			struct netlink_ext_ack *extack)
{
	struct late *late = devlink_health_reporter_priv(reporter);

	late->recoveries++;
	late->dev->state = SKUA_UP;
	return 0;
}

static const struct devlink_health_reporter_ops late_ops = {
	.name = "fw_fatal",
	.recover = late_recover,
};

static void late_work(struct work_struct *work)
{
	skua_devlink_report(container_of(work, struct skua_dev, report_work));
}

static void late_end(void *data)
{
	struct late *late = data;

	disable_work_sync(&late->dev->report_work);
	devl_lock(late->devlink);
	devl_unregister(late->devlink);
	devl_health_reporter_destroy(late->dev->reporter);
	devl_unlock(late->devlink);
	devlink_free(late->devlink);
}

/* A function that has failed. */
static struct late *late_new(struct kunit *test)
{
	struct late *late = kunit_kzalloc(test, sizeof(*late), GFP_KERNEL);
	struct fake *fake = fake_create(test);

	KUNIT_ASSERT_NOT_NULL(test, late);
	late->devlink = devlink_alloc(&devlink_ops, sizeof(struct skua_dev), fake->dev.dev);
	KUNIT_ASSERT_NOT_NULL(test, late->devlink);
	late->dev = devlink_priv(late->devlink);
	late->dev->dev = fake->dev.dev;
	late->dev->state = SKUA_DEAD;
	late->dev->registered = true;
	INIT_WORK(&late->dev->report_work, late_work);
	devl_lock(late->devlink);
	late->dev->reporter = devl_health_reporter_create(late->devlink, &late_ops, late);
	devl_register(late->devlink);
	devl_unlock(late->devlink);
	KUNIT_ASSERT_FALSE(test, IS_ERR(late->dev->reporter));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, late_end, late), 0);
	return late;
}

/* The report of an earlier failure has left the reporter in error. */
static void test_report_in_error(struct kunit *test)
{
	struct late *late = late_new(test);

	devl_lock(late->devlink);
	skua_devlink_health(late->dev, false);
	devl_unlock(late->devlink);
	skua_devlink_report(late->dev);
	flush_work(&late->dev->report_work);
	KUNIT_EXPECT_EQ(test, late->recoveries, 1);
	KUNIT_EXPECT_EQ(test, late->dev->state, SKUA_UP);
	/* Nothing is left to be done, and the next failure is recovered as well. */
	KUNIT_EXPECT_FALSE(test, work_pending(&late->dev->report_work));
	late->dev->state = SKUA_DEAD;
	skua_devlink_report(late->dev);
	KUNIT_EXPECT_EQ(test, late->recoveries, 2);
}

/* The device fails again when a recovery by hand has brought it up, but has not ended. */
static void test_report_by_hand(struct kunit *test)
{
	struct late *late = late_new(test);

	devl_lock(late->devlink);
	queue_work(system_freezable_wq, &late->dev->report_work);
	/* Long enough for a report that does not wait for the lock. */
	msleep(100);
	/* devlink does so at the end of a recovery. */
	skua_devlink_health(late->dev, true);
	devl_unlock(late->devlink);
	flush_work(&late->dev->report_work);
	KUNIT_EXPECT_EQ(test, late->recoveries, 1);
	KUNIT_EXPECT_EQ(test, late->dev->state, SKUA_UP);
}

static struct kunit_case skua_profile_cases[] = {
	KUNIT_CASE(test_all_tables),
	KUNIT_CASE(test_small_mpt),
	KUNIT_CASE(test_least_mpt),
	KUNIT_CASE(test_small_cqc),
	KUNIT_CASE(test_least_cqc),
	KUNIT_CASE(test_small_eqc),
	KUNIT_CASE(test_least_eqc),
	KUNIT_CASE(test_health),
	KUNIT_CASE(test_report_in_error),
	KUNIT_CASE(test_report_by_hand),
	{}
};

struct kunit_suite skua_profile_suite = {
	.name = "skua_profile",
	.test_cases = skua_profile_cases,
};
