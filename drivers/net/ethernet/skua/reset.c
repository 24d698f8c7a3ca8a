// SPDX-License-Identifier: GPL-2.0
/*
 * Reset, health, and what is left to do when the device is beyond use.
 *
 * Death is declared from any context and never blocks: DMA is turned off, every
 * waiter is woken, clients are told from a work item. Recovery is devlink's, and
 * so is the lock that serializes it with everything else that brings the device
 * up or down.
 */
#include <kunit/visibility.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <net/devlink.h>

#include "skua.h"

#define SKUA_HEALTH_PERIOD	HZ
/* Periods without a heartbeat: a busy host may well stop a device for one. */
#define SKUA_HEALTH_STILL	5
/* The device promises 1 s. */
#define SKUA_RESET_MS		3000

/**
 * skua_hw_reset() - reset the device and wait until it is ready
 * @dev: the function
 *
 * On success it has forgotten everything it knew and does no DMA.
 *
 * Return: 0, -ENODEV if it is not there, or -ETIMEDOUT.
 */
int skua_hw_reset(struct skua_dev *dev)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(SKUA_RESET_MS);

	if (skua_gone(dev))
		return -ENODEV;
	skua_write32(dev, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	for (;;) {
		bool last = time_after(jiffies, deadline);
		u32 status = skua_read32(dev, SKUA_REG_STATUS);

		/* READY drops at once, so this is the new one; all-ones is FATAL. */
		if ((status & SKUA_STATUS_READY) && !(status & SKUA_STATUS_FATAL))
			return 0;
		if (last)
			return skua_gone(dev) ? -ENODEV : -ETIMEDOUT;
		usleep_range(500, 1000);
	}
}

/**
 * skua_declare_dead() - the device is beyond use
 * @dev: the function
 * @why: for the log
 *
 * Any context. From now on commands fail, destroying needs none, and memory that
 * the device owned is ours.
 */
void skua_declare_dead(struct skua_dev *dev, const char *why)
{
	/* First: whoever sees the flag may free what the device writes to. */
	dev->hw->quiesce(dev);
	if (test_and_set_bit(SKUA_DEV_DEAD, &dev->state))
		return;
	WRITE_ONCE(dev->why_dead, why);
	dev_err(dev->dev, "device is dead: %s\n", why);
	skua_cmd_abort(dev);
	queue_work(dev->wq, &dev->dead_work);
}
EXPORT_SYMBOL_IF_KUNIT(skua_declare_dead);

bool skua_dead(const struct skua_dev *dev)
{
	return test_bit(SKUA_DEV_DEAD, &dev->state);
}
EXPORT_SYMBOL_NS_GPL(skua_dead, "SKUA");

static void skua_dead_work(struct work_struct *work)
{
	struct skua_dev *dev = container_of(work, struct skua_dev, dead_work);

	blocking_notifier_call_chain(&dev->notifier, SKUA_EVENT_DEAD, dev);
	if (!test_bit(SKUA_DEV_RESETTING, &dev->state))
		queue_work(system_long_wq, &dev->report_work);
}

/*
 * A work of its own: recovery flushes the one above. And in another queue: it waits
 * for whatever the clients wait for, memory included.
 */
static void skua_report_work(struct work_struct *work)
{
	struct skua_dev *dev = container_of(work, struct skua_dev, report_work);

	if (!test_bit(SKUA_DEV_REMOVING, &dev->state))
		skua_devlink_report(dev);
}

static void skua_port_work(struct work_struct *work)
{
	struct skua_dev *dev = container_of(work, struct skua_dev, port_work);

	blocking_notifier_call_chain(&dev->notifier, SKUA_EVENT_PORT, dev);
}

static const char *skua_health_check(struct skua_dev *dev)
{
	u32 status = skua_read32(dev, SKUA_REG_STATUS);
	u32 heartbeat = skua_read32(dev, SKUA_REG_HEARTBEAT);

	if (status == ~0U && skua_gone(dev))
		return "it left the bus";
	if (status & SKUA_STATUS_FATAL) {
		dev_err(dev->dev, "fatal error %u\n", u32_get_bits(status, SKUA_STATUS_CODE));
		return "fatal error";
	}
	if (!(status & SKUA_STATUS_OPERATIONAL))
		return "it was reset by somebody else";
	if (heartbeat != dev->heartbeat)
		dev->still = 0;
	else if (++dev->still >= SKUA_HEALTH_STILL)
		return "no heartbeat";
	dev->heartbeat = heartbeat;
	return NULL;
}

static void skua_health_work(struct work_struct *work)
{
	struct skua_dev *dev = container_of(to_delayed_work(work), struct skua_dev, health_work);
	const char *why;

	if (skua_dead(dev))
		return;
	why = skua_health_check(dev);
	if (why) {
		skua_declare_dead(dev, why);
		return;
	}
	/* Should an interrupt ever be lost, events are late and no more. */
	skua_eq_kick(dev);
	queue_delayed_work(dev->wq, &dev->health_work, SKUA_HEALTH_PERIOD);
}

/**
 * skua_health_start() - begin to look after the device
 * @dev: the function
 */
void skua_health_start(struct skua_dev *dev)
{
	dev->heartbeat = skua_read32(dev, SKUA_REG_HEARTBEAT);
	dev->still = 0;
	queue_delayed_work(dev->wq, &dev->health_work, SKUA_HEALTH_PERIOD);
}

/**
 * skua_health_stop() - stop looking after the device
 * @dev: the function
 */
void skua_health_stop(struct skua_dev *dev)
{
	cancel_delayed_work_sync(&dev->health_work);
}

/**
 * skua_alloc_wq() - make a function's workqueue
 * @name: of the function
 *
 * Destroying a queue waits for works of its, and storage drivers destroy queues in
 * workers that others wait for to get memory.
 *
 * Return: the workqueue or NULL.
 */
struct workqueue_struct *skua_alloc_wq(const char *name)
{
	return alloc_workqueue("skua-%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
}
EXPORT_SYMBOL_IF_KUNIT(skua_alloc_wq);

/**
 * skua_reset_init() - set up what is needed to die
 * @dev: the function
 */
void skua_reset_init(struct skua_dev *dev)
{
	BLOCKING_INIT_NOTIFIER_HEAD(&dev->notifier);
	INIT_WORK(&dev->port_work, skua_port_work);
	INIT_WORK(&dev->dead_work, skua_dead_work);
	INIT_WORK(&dev->report_work, skua_report_work);
	INIT_DELAYED_WORK(&dev->health_work, skua_health_work);
}
EXPORT_SYMBOL_IF_KUNIT(skua_reset_init);

/**
 * skua_register_notifier() - be told of events of the function
 * @dev: the function
 * @nb: called in process context with enum skua_event and the function
 *
 * Return: 0.
 */
int skua_register_notifier(struct skua_dev *dev, struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&dev->notifier, nb);
}
EXPORT_SYMBOL_NS_GPL(skua_register_notifier, "SKUA");

/**
 * skua_unregister_notifier() - undo skua_register_notifier()
 * @dev: the function
 * @nb: not called any more on return
 */
void skua_unregister_notifier(struct skua_dev *dev, struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&dev->notifier, nb);
}
EXPORT_SYMBOL_NS_GPL(skua_unregister_notifier, "SKUA");

/**
 * skua_take_down() - unplug the clients, and bring the device down
 * @dev: the function, up or not
 */
void skua_take_down(struct skua_dev *dev)
{
	devl_assert_locked(priv_to_devlink(dev));
	if (!test_bit(SKUA_DEV_UP, &dev->state))
		return;
	/* If it is dead, clients hear of that before they are unplugged. */
	flush_work(&dev->dead_work);
	skua_aux_unplug(dev);
	skua_down(dev);
}

/**
 * skua_bring_back() - bring the device up, and plug the clients in
 * @dev: the function, up or not
 *
 * Return: 0 or a negative errno; then it is down.
 */
int skua_bring_back(struct skua_dev *dev)
{
	int err;

	devl_assert_locked(priv_to_devlink(dev));
	if (test_bit(SKUA_DEV_UP, &dev->state))
		return 0;
	err = skua_up(dev);
	if (err)
		return err;
	err = skua_aux_plug(dev);
	if (err)
		skua_down(dev);
	return err;
}

/* --- Resets that the PCI core makes, and sleep --- */

/* Down, with all that there was forgotten, until skua_restart(). */
static void skua_abandon(struct skua_dev *dev, const char *why)
{
	struct devlink *devlink = priv_to_devlink(dev);

	set_bit(SKUA_DEV_RESETTING, &dev->state);
	devl_lock(devlink);
	/* There is no time to be orderly, and no need: all will be forgotten. */
	if (test_bit(SKUA_DEV_UP, &dev->state))
		skua_declare_dead(dev, why);
	skua_take_down(dev);
	devl_unlock(devlink);
}

static void skua_restart(struct skua_dev *dev, const char *after)
{
	struct devlink *devlink = priv_to_devlink(dev);
	int err;

	devl_lock(devlink);
	clear_bit(SKUA_DEV_RESETTING, &dev->state);
	err = skua_bring_back(dev);
	devl_unlock(devlink);
	if (err)
		dev_err(dev->dev, "cannot be brought up after %s: %pe\n", after, ERR_PTR(err));
}

static void skua_reset_prepare(struct pci_dev *pdev)
{
	skua_abandon(pci_get_drvdata(pdev), "reset of the PCI function");
}

static void skua_reset_done(struct pci_dev *pdev)
{
	skua_restart(pci_get_drvdata(pdev), "a reset");
}

static pci_ers_result_t skua_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct skua_dev *dev = pci_get_drvdata(pdev);

	skua_abandon(dev, "PCI error");
	if (state != pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_NEED_RESET;
	/* Nobody will say that it is over. What is tried now fails by itself. */
	clear_bit(SKUA_DEV_RESETTING, &dev->state);
	return PCI_ERS_RESULT_DISCONNECT;
}

static pci_ers_result_t skua_slot_reset(struct pci_dev *pdev)
{
	struct skua_dev *dev = pci_get_drvdata(pdev);

	/* As it was saved by probe: memory on, bus mastering off. */
	pci_restore_state(pdev);
	/* What is restored was good for once on older kernels. */
	pci_save_state(pdev);
	if (!skua_gone(dev))
		return PCI_ERS_RESULT_RECOVERED;
	/* As above. */
	clear_bit(SKUA_DEV_RESETTING, &dev->state);
	return PCI_ERS_RESULT_DISCONNECT;
}

/*
 * Sleep takes the function's power and with it all that it knew, so that it is left
 * like one that is reset. It is brought back when all devices are awake, since only
 * then may new ones, the auxiliary devices, be added.
 */
static int skua_suspend(struct device *device)
{
	struct skua_dev *dev = dev_get_drvdata(device);

	set_bit(SKUA_DEV_ASLEEP, &dev->state);
	skua_abandon(dev, "system sleep");
	return 0;
}

static void skua_sleep_complete(struct device *device)
{
	struct skua_dev *dev = dev_get_drvdata(device);

	/* Another device may have refused before it was our turn. */
	if (test_and_clear_bit(SKUA_DEV_ASLEEP, &dev->state))
		skua_restart(dev, "sleep");
}

const struct dev_pm_ops skua_pm_ops = {
	.suspend = pm_sleep_ptr(skua_suspend),
	.freeze = pm_sleep_ptr(skua_suspend),
	.poweroff = pm_sleep_ptr(skua_suspend),
	.complete = pm_sleep_ptr(skua_sleep_complete),
};

const struct pci_error_handlers skua_err_handlers = {
	.error_detected = skua_error_detected,
	.slot_reset = skua_slot_reset,
	.resume = skua_reset_done,
	.reset_prepare = skua_reset_prepare,
	.reset_done = skua_reset_done,
};
