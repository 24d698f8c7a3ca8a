/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For tests on a live device: the first Skua function there is, found while a suite
 * runs. For one source file of a module.
 */
#ifndef SKUA_IB_TESTS_LIVE_H
#define SKUA_IB_TESTS_LIVE_H

#include <kunit/test.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static struct ib_device *live_dev;

static int live_add(struct ib_device *ibdev)
{
	if (live_dev || strncmp(dev_name(&ibdev->dev), "skua", 4))
		return -EOPNOTSUPP;
	live_dev = ibdev;
	return 0;
}

static void live_remove(struct ib_device *ibdev, void *data)
{
	live_dev = NULL;
}

static struct ib_client live_client = {
	.name = KBUILD_MODNAME,
	.add = live_add,
	.remove = live_remove,
};

/* What a suite begins and ends with. */
static int live_init(struct kunit_suite *suite)
{
	return ib_register_client(&live_client);
}

static void live_exit(struct kunit_suite *suite)
{
	ib_unregister_client(&live_client);
}

#endif /* SKUA_IB_TESTS_LIVE_H */
