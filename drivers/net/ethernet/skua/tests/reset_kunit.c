// SPDX-License-Identifier: GPL-2.0
/*
 * Health and reset, over registers in memory: what counts as a failure, and what does not; who
 * is told.
 */
#include <linux/pci.h>
#include <net/devlink.h>

#include "fake.h"

/* Looks in a row at a heartbeat that does not change, after which the device has failed. */
#define STILL	5

struct rt {
	struct fake *fake;
	void *regs;
	u32 heartbeat;
	struct notifier_block nb;
	int told;
};

static void set_reg(struct rt *t, unsigned int reg, u32 val)
{
	WRITE_ONCE(*(__le32 *)(t->regs + reg), cpu_to_le32(val));
}

static int on_event(struct notifier_block *nb, unsigned long event, void *data)
{
	container_of(nb, struct rt, nb)->told += event == SKUA_EVENT_DEAD;
	return NOTIFY_DONE;
}

static void reset_exit(void *data)
{
	struct rt *t = data;

	cancel_delayed_work_sync(&t->fake->dev.health_work);
	skua_unregister_notifier(&t->fake->dev, &t->nb);
}

static int reset_init(struct kunit *test)
{
	struct rt *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	t->fake = fake_create(test);
	t->regs = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->regs);
	t->fake->dev.regs = (void __iomem __force *)t->regs;
	set_reg(t, SKUA_REG_ID, SKUA_ID_MAGIC);
	set_reg(t, SKUA_REG_STATUS, SKUA_STATUS_READY | SKUA_STATUS_OPERATIONAL);
	t->nb.notifier_call = on_event;
	skua_register_notifier(&t->fake->dev, &t->nb);
	return kunit_add_action_or_reset(test, reset_exit, t);
}

/* The work looks once; the next look, which it has asked for, is ours, too. */
static void look(struct rt *t, bool beats)
{
	struct delayed_work *work = &t->fake->dev.health_work;

	if (beats)
		set_reg(t, SKUA_REG_HEARTBEAT, ++t->heartbeat);
	cancel_delayed_work_sync(work);
	work->work.func(&work->work);
}

static void expect_alive(struct kunit *test)
{
	struct rt *t = test->priv;

	KUNIT_EXPECT_FALSE(test, skua_dead(&t->fake->dev));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&t->fake->dev.health_work));
}

static void expect_dead(struct kunit *test, const char *why)
{
	struct rt *t = test->priv;
	struct skua_dev *dev = &t->fake->dev;

	KUNIT_EXPECT_TRUE(test, skua_dead(dev));
	KUNIT_ASSERT_NOT_NULL(test, dev->why_dead);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(dev->why_dead, why), "%s", dev->why_dead);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&dev->health_work));
	flush_work(&dev->dead_work);
	KUNIT_EXPECT_EQ(test, t->told, 1);
	/* Nobody looks after it any more. */
	look(t, true);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&dev->health_work));
}

static void test_heartbeat(struct kunit *test)
{
	struct rt *t = test->priv;
	unsigned int round, i;

	for (round = 0; round < 3; round++) {
		look(t, true);
		expect_alive(test);
		/* A busy host stops a device for a while. */
		for (i = 1; i < STILL; i++) {
			look(t, false);
			expect_alive(test);
		}
	}
	look(t, true);
	for (i = 1; i < STILL; i++)
		look(t, false);
	expect_alive(test);
	look(t, false);
	expect_dead(test, "heartbeat");
}

static void test_fatal(struct kunit *test)
{
	struct rt *t = test->priv;

	look(t, true);
	expect_alive(test);
	set_reg(t, SKUA_REG_STATUS, SKUA_STATUS_READY | SKUA_STATUS_OPERATIONAL |
		SKUA_STATUS_FATAL | u32_encode_bits(3, SKUA_STATUS_CODE));
	look(t, true);
	expect_dead(test, "fatal error");
}

static void test_foreign_reset(struct kunit *test)
{
	struct rt *t = test->priv;

	set_reg(t, SKUA_REG_STATUS, SKUA_STATUS_READY);
	look(t, true);
	expect_dead(test, "reset");
}

static void test_gone(struct kunit *test)
{
	struct rt *t = test->priv;

	memset(t->regs, 0xff, PAGE_SIZE);
	look(t, false);
	expect_dead(test, "left the bus");
}

static void test_reset(struct kunit *test)
{
	struct rt *t = test->priv;
	struct skua_dev *dev = &t->fake->dev;

	KUNIT_EXPECT_EQ(test, skua_hw_reset(dev), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(*(__le32 *)(t->regs + SKUA_REG_CTRL)),
			SKUA_CTRL_RESET);
	/* It has to be ready without being in a fatal error. */
	set_reg(t, SKUA_REG_STATUS, SKUA_STATUS_READY | SKUA_STATUS_FATAL);
	KUNIT_EXPECT_EQ(test, skua_hw_reset(dev), -ETIMEDOUT);
	memset(t->regs, 0xff, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, skua_hw_reset(dev), -ENODEV);
	/* A function that is not there is not written to. */
	KUNIT_EXPECT_EQ(test, le32_to_cpu(*(__le32 *)(t->regs + SKUA_REG_CTRL)), U32_MAX);
}

/* --- A slot reset --- */

#define SLOT_ID		0x12345678
#define SLOT_SAVED	0x5a5a5a5a

/**
 * struct slot - a function in an error, and the bus that it is on
 * @pdev: the function
 * @bus: its bus
 * @there: the function answers; else all that is read of it is ones
 * @written: to the first word of its configuration space
 * @devlink: its devlink instance
 * @dev: the driver's
 */
struct slot {
	struct pci_dev pdev;
	struct pci_bus bus;
	bool there;
	u32 written;
	struct devlink *devlink;
	struct skua_dev *dev;
};

static int slot_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *val)
{
	const struct slot *s = container_of(bus, struct slot, bus);

	*val = s->there ? (where == PCI_VENDOR_ID ? SLOT_ID : 0) : GENMASK(size * 8 - 1, 0);
	return PCIBIOS_SUCCESSFUL;
}

static int slot_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 val)
{
	struct slot *s = container_of(bus, struct slot, bus);

	if (where == PCI_VENDOR_ID)
		s->written = val;
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops slot_ops = {
	.read = slot_read,
	.write = slot_write,
};

static void slot_quiesce(struct skua_dev *dev)
{
}

static const struct skua_hw_ops slot_hw_ops = {
	.quiesce = slot_quiesce,
};

static const struct devlink_ops slot_devlink_ops = {};

static void slot_exit(void *data)
{
	devlink_free(data);
}

static struct slot *slot_new(struct kunit *test, bool there)
{
	struct slot *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct rt *t = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->there = there;
	s->bus.ops = &slot_ops;
	s->pdev.bus = &s->bus;
	memset(s->pdev.saved_config_space, SLOT_SAVED & 0xff, sizeof(s->pdev.saved_config_space));
	s->pdev.state_saved = true;
	s->devlink = devlink_alloc(&slot_devlink_ops, sizeof(*s->dev), t->fake->dev.dev);
	KUNIT_ASSERT_NOT_NULL(test, s->devlink);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, slot_exit, s->devlink), 0);
	s->dev = devlink_priv(s->devlink);
	s->dev->dev = t->fake->dev.dev;
	s->dev->pdev = &s->pdev;
	s->dev->hw = &slot_hw_ops;
	s->dev->regs = t->fake->dev.regs;
	skua_reset_init(s->dev);
	s->dev->state = SKUA_ERROR;
	pci_set_drvdata(&s->pdev, s->dev);
	if (!there)
		memset(t->regs, 0xff, PAGE_SIZE);
	return s;
}

/* It is back: the PCI core may go on, and what it has restored is saved for the next time. */
static void test_slot_back(struct kunit *test)
{
	struct slot *s = slot_new(test, true);

	KUNIT_EXPECT_TRUE(test, skua_err_handlers.slot_reset(&s->pdev) ==
			  PCI_ERS_RESULT_RECOVERED);
	KUNIT_EXPECT_EQ(test, s->dev->state, SKUA_ERROR);
	KUNIT_EXPECT_TRUE(test, s->pdev.state_saved);
	KUNIT_EXPECT_EQ(test, s->pdev.saved_config_space[0], SLOT_ID);
}

/* It has not come back: nobody waits for it, and the ones that it reads as are not saved. */
static void test_slot_gone(struct kunit *test)
{
	struct slot *s = slot_new(test, false);

	KUNIT_EXPECT_TRUE(test, skua_err_handlers.slot_reset(&s->pdev) ==
			  PCI_ERS_RESULT_DISCONNECT);
	KUNIT_EXPECT_EQ(test, s->dev->state, SKUA_OFF);
	KUNIT_EXPECT_EQ(test, s->pdev.saved_config_space[0], SLOT_SAVED);
	/* The PCI core tells once more, and nothing is done twice. */
	KUNIT_EXPECT_TRUE(test, skua_err_handlers.error_detected(&s->pdev,
								 pci_channel_io_perm_failure) ==
			  PCI_ERS_RESULT_DISCONNECT);
	KUNIT_EXPECT_EQ(test, s->dev->state, SKUA_OFF);
	/* Should it come back with the next reset, its state is restored. */
	s->there = true;
	s->written = 0;
	s->dev->state = SKUA_ERROR;
	KUNIT_EXPECT_TRUE(test, skua_err_handlers.slot_reset(&s->pdev) ==
			  PCI_ERS_RESULT_DISCONNECT);
	KUNIT_EXPECT_EQ(test, s->written, SLOT_SAVED);
}

static struct kunit_case skua_reset_cases[] = {
	KUNIT_CASE(test_heartbeat),
	KUNIT_CASE(test_fatal),
	KUNIT_CASE(test_foreign_reset),
	KUNIT_CASE(test_gone),
	KUNIT_CASE_SLOW(test_reset),
	KUNIT_CASE(test_slot_back),
	KUNIT_CASE(test_slot_gone),
	{}
};

struct kunit_suite skua_reset_suite = {
	.name = "skua_reset",
	.init = reset_init,
	.test_cases = skua_reset_cases,
};
