// SPDX-License-Identifier: GPL-2.0
/*
 * A function without a device, for the tests of the core.
 */
#include <kunit/device.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "fake.h"

static struct fake *to_fake(struct skua_dev *dev)
{
	return container_of(dev, struct fake, dev);
}

/**
 * fake_finish() - complete a command as a device would
 * @fake: the function
 * @token: the command's
 * @event: tell by event too
 */
void fake_finish(struct fake *fake, u32 token, bool event)
{
	struct skua_cmd_ctx *ctx = &fake->dev.cmdq.ctx[token & (SKUA_CMDQ_SLOTS - 1)];
	struct skua_cmd_slot *slot = ctx->slot;
	u32 status = SKUA_CMD_ST_OK;

	if (fake->serve)
		status = fake->serve(fake, slot, ctx->mbox.va, ctx->mbox.va + SKUA_CMD_MBOX_SIZE);
	atomic_inc(&fake->served);
	slot->status = cpu_to_le32(status);
	/* Status and output before the token, as the interface has it. */
	dma_wmb();
	WRITE_ONCE(slot->done, slot->token);
	if (event && (le16_to_cpu(slot->flags) & SKUA_CMD_F_EVENT))
		skua_cmd_complete(&fake->dev, token);
}

/**
 * fake_finish_all() - complete every command that was left lying
 * @fake: the function
 */
void fake_finish_all(struct fake *fake)
{
	unsigned int i;

	for (i = 0; i < SKUA_CMDQ_SLOTS; i++) {
		struct skua_cmd_ctx *ctx = &fake->dev.cmdq.ctx[i];

		if (ctx->state == SKUA_CMD_BUSY && le32_to_cpu(ctx->slot->done) != ctx->token)
			fake_finish(fake, ctx->token, true);
	}
}

static void fake_cmd_db(struct skua_dev *dev, u32 token)
{
	struct fake *fake = to_fake(dev);
	struct skua_cmd_ctx *ctx = &dev->cmdq.ctx[token & (SKUA_CMDQ_SLOTS - 1)];

	WRITE_ONCE(fake->token, token);
	if (fake->mode == FAKE_HOLD || le16_to_cpu(ctx->slot->opcode) == fake->hold_op) {
		atomic_inc(&fake->held);
		return;
	}
	fake_finish(fake, token, fake->mode == FAKE_SERVE);
}

static void fake_quiesce(struct skua_dev *dev)
{
	struct fake *fake = to_fake(dev);

	/* DMA must be off before anybody can see that the device is dead. */
	if (!fake->quiesced)
		KUNIT_EXPECT_FALSE(fake->test, skua_dead(dev));
	fake->quiesced = true;
}

static const struct skua_hw_ops fake_hw_ops = {
	.cmd_db = fake_cmd_db,
	.quiesce = fake_quiesce,
};

static void fake_destroy(void *data)
{
	struct fake *fake = data;

	skua_cmdq_exit(&fake->dev);
	destroy_workqueue(fake->dev.wq);
}

/**
 * fake_create() - make a function whose command ring is on
 * @test: ends it when it ends
 *
 * Return: the function.
 */
struct fake *fake_create(struct kunit *test)
{
	struct fake *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);
	struct skua_dev *dev;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->test = test;
	fake->hold_op = -1;
	dev = &fake->dev;
	dev->dev = kunit_device_register(test, "skua_fake");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev->dev);
	dev->dev->dma_mask = &dev->dev->coherent_dma_mask;
	KUNIT_ASSERT_EQ(test, dma_set_mask_and_coherent(dev->dev, DMA_BIT_MASK(64)), 0);
	dev->hw = &fake_hw_ops;
	fake->uar = kunit_kzalloc(test, SKUA_UAR_USED, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fake->uar);
	dev->uar.map = (void __iomem __force *)fake->uar;
	/* A machine that is busy is no device that is dead. */
	dev->cmd_timeout_ms = 60 * MSEC_PER_SEC;
	skua_reset_init(dev);
	dev->state = SKUA_UP;
	dev->wq = skua_alloc_wq("fake");
	KUNIT_ASSERT_NOT_NULL(test, dev->wq);
	KUNIT_ASSERT_EQ(test, skua_cmdq_init(dev), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_destroy, fake), 0);
	return fake;
}

static u32 fake_map_icm(struct fake *fake, const struct skua_cmd_map_icm_in *in)
{
	u32 i, count = le32_to_cpu(in->count);
	u64 pages = 0;

	atomic_inc(&fake->maps);
	if (fake->refuse_map && !--fake->refuse_map)
		return SKUA_CMD_ST_LIMIT;
	KUNIT_EXPECT_EQ(fake->test, le64_to_cpu(in->addr) & (SKUA_ICM_PAGE_SIZE - 1), 0);
	for (i = 0; i < count; i++) {
		u32 log = le64_get_bits(in->page[i], SKUA_MAP_ICM_LOG_PAGES);
		u64 addr = le64_to_cpu(in->page[i]) & SKUA_MAP_ICM_ADDR;

		KUNIT_EXPECT_NE(fake->test, addr, 0);
		pages += BIT_ULL(log);
	}
	atomic64_add(pages, &fake->mapped);
	return SKUA_CMD_ST_OK;
}

/**
 * fake_serve_icm() - serve() that keeps count of ICM
 * @fake: the function
 * @slot: the command
 * @in: its input
 * @out: its output
 *
 * Return: status.
 */
u32 fake_serve_icm(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	const struct skua_cmd_unmap_icm_in *unmap = in;

	switch (le16_to_cpu(slot->opcode)) {
	case SKUA_CMD_MAP_ICM:
		return fake_map_icm(fake, in);
	case SKUA_CMD_UNMAP_ICM:
		atomic_inc(&fake->unmaps);
		if (fake->refuse_unmap)
			return SKUA_CMD_ST_BUSY;
		atomic64_sub(le32_to_cpu(unmap->npages), &fake->mapped);
		return SKUA_CMD_ST_OK;
	default:
		return SKUA_CMD_ST_BAD_OPCODE;
	}
}

kunit_test_suites(&skua_cc_suite, &skua_cmd_suite, &skua_core_srq_suite, &skua_counter_suite,
		  &skua_eq_suite, &skua_fault_suite, &skua_icm_suite, &skua_lifecycle_suite,
		  &skua_mr_suite, &skua_mtt_suite, &skua_obj_suite, &skua_profile_suite,
		  &skua_qp_suite, &skua_recovery_suite, &skua_reset_suite);

MODULE_DESCRIPTION("KUnit tests of skua_core");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
