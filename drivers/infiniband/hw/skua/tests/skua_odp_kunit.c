// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of on-demand regions that are divided into blocks, without a device: a block that is
 * wanted when the device is gone, or the process, or while it ends.
 */
#include <kunit/device.h>
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/sched/mm.h>

#include "../odp.h"

/**
 * struct region - a divided region of an address space of its own
 * @dev: a device that is not registered
 * @odp: the region
 */
struct region {
	struct skua_ib_dev *dev;
	struct skua_ib_odp odp;
};

static void region_exit(void *data)
{
	struct region *r = data;

	if (r->odp.root)
		ib_umem_odp_release(r->odp.root);
	xa_destroy(&r->odp.blocks);
	xa_destroy(&r->odp.mids);
	ib_dealloc_device(&r->dev->ibdev);
}

static int region_init(struct kunit *test)
{
	struct region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct ib_umem_odp *root;
	struct device *dma;

	KUNIT_ASSERT_NOT_NULL(test, r);
	test->priv = r;
	KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	/* Of no use for DMA: it has no mask. */
	dma = kunit_device_register(test, "skua_odp");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dma);
	r->dev = ib_alloc_device(skua_ib_dev, ibdev);
	KUNIT_ASSERT_NOT_NULL(test, r->dev);
	r->dev->ibdev.dma_device = dma;
	init_rwsem(&r->dev->odp_sem);
	spin_lock_init(&r->dev->odp_lock);
	INIT_LIST_HEAD(&r->dev->odp_blocks);
	r->odp.dev = r->dev;
	mutex_init(&r->odp.lock);
	xa_init(&r->odp.mids);
	xa_init(&r->odp.blocks);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, region_exit, r), 0);
	root = ib_umem_odp_alloc_implicit(&r->dev->ibdev, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(root), 0);
	r->odp.root = root;
	return 0;
}

/* The memory of a block uses the device: none is made for a device that is gone. */
static void test_gone(struct kunit *test)
{
	struct region *r = test->priv;
	struct skua_ib_odp_block *block;
	bool fresh;

	block = skua_ib_odp_dir_get(&r->odp, SKUA_ODP_BLOCK_SIZE, &fresh);
	/* As long as it is there, it is asked, and says that it cannot. */
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(block), -EOPNOTSUPP);
	r->dev->odp_gone = true;
	block = skua_ib_odp_dir_get(&r->odp, SKUA_ODP_BLOCK_SIZE, &fresh);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(block), -ENODEV);
}

/* What the first notifier of an address space waits for is waited for when a region is made. */
static void test_prepare(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, mm_has_notifiers(current->mm));
	KUNIT_EXPECT_EQ(test, skua_ib_odp_mm_prepare(current->mm), 0);
	KUNIT_EXPECT_TRUE(test, mm_has_notifiers(current->mm));
}

static int users_seen;

static int see_users(struct skua_ib_odp_block *block, struct skua_ib_odp *odp,
		     struct ib_umem_odp *umem, u64 npages)
{
	users_seen = atomic_read(&odp->root->umem.owning_mm->mm_users);
	return PTR_ERR_OR_ZERO(umem) ?: -ENOMEM;
}

/*
 * While a block is made the address space has one more user, so that the RDMA core's mmput() is not
 * the last one: its end may take arbitrarily long, and a reset of the device would wait for it.
 */
static void test_user_of_mm(struct kunit *test)
{
	struct region *r = test->priv;
	int users = atomic_read(&current->mm->mm_users);
	struct skua_ib_odp_block *block;
	bool fresh;

	kunit_activate_static_stub(test, skua_ib_odp_block_init, see_users);
	block = skua_ib_odp_dir_get(&r->odp, SKUA_ODP_BLOCK_SIZE, &fresh);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(block), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, users_seen, users + 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&current->mm->mm_users), users);
}

/* The process has ended, and only a device that has not noticed asks for its pages. */
static void test_mm_ended(struct kunit *test)
{
	struct region *r = test->priv;
	struct mm_struct *mm = r->odp.root->umem.owning_mm;
	struct mm_struct *ended = kunit_kzalloc(test, sizeof(*ended), GFP_KERNEL);
	struct skua_ib_odp_block *block;
	bool fresh = true;

	KUNIT_ASSERT_NOT_NULL(test, ended);
	r->odp.root->umem.owning_mm = ended;
	block = skua_ib_odp_dir_get(&r->odp, SKUA_ODP_BLOCK_SIZE, &fresh);
	r->odp.root->umem.owning_mm = mm;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(block), -EFAULT);
	KUNIT_EXPECT_FALSE(test, fresh);
	KUNIT_EXPECT_EQ(test, atomic_read(&ended->mm_users), 0);
}

static struct kunit_case skua_odp_cases[] = {
	KUNIT_CASE(test_gone),
	KUNIT_CASE(test_user_of_mm),
	KUNIT_CASE(test_mm_ended),
	KUNIT_CASE(test_prepare),
	{}
};

static struct kunit_suite skua_odp_suite = {
	.name = "skua_odp",
	.init = region_init,
	.test_cases = skua_odp_cases,
};

kunit_test_suite(skua_odp_suite);

MODULE_DESCRIPTION("KUnit tests of on-demand regions of a Skua device");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
