// SPDX-License-Identifier: GPL-2.0
/*
 * Reset, health, and what is done when the device fails or comes back.
 *
 * Death is declared from any context and never blocks: DMA is turned off, every
 * waiter is woken, clients are told from a work item. Recovery is devlink's, and
 * so is the lock that serializes it with everything else that brings the device
 * up or down. What may happen in which state is the business of lifecycle.c.
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
/* How often a device that fails while it is brought up is tried; pauses double. */
#define SKUA_START_TRIES	4
#define SKUA_START_PAUSE_MS	100
/*
 * A device that fails again before it has worked for so long is recovered after a
 * pause, which doubles with each failure up to a limit.
 */
#define SKUA_STABLE		(10 * HZ)
#define SKUA_PACE_MS		250
#define SKUA_PACE_MAX_MS	1000

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

/* Nothing is taken any more: end what is under way, and have the clients told. */
static void skua_kill(struct skua_dev *dev)
{
	skua_cmd_abort(dev);
	queue_work(dev->wq, &dev->dead_work);
}

/**
 * skua_declare_dead() - the device has failed
 * @dev: the function
 * @why: for the log and for devlink
 *
 * Any context. From now on commands fail, destroying needs none, and memory that
 * the device owned is ours.
 */
void skua_declare_dead(struct skua_dev *dev, const char *why)
{
	/* First: whoever sees the state may free what the device writes to. */
	dev->hw->quiesce(dev);
	if (skua_life(dev, SKUA_DIE) != SKUA_KILL)
		return;
	WRITE_ONCE(dev->why_dead, why);
	dev_err(dev->dev, "device failed: %s\n", why);
	skua_kill(dev);
}
EXPORT_SYMBOL_IF_KUNIT(skua_declare_dead);

static void skua_dead_work(struct work_struct *work)
{
	struct skua_dev *dev = container_of(work, struct skua_dev, dead_work);

	blocking_notifier_call_chain(&dev->notifier, SKUA_EVENT_DEAD, dev);
	/* What the PCI core or sleep took down they bring back. */
	if (READ_ONCE(dev->state) == SKUA_DEAD)
		queue_work(system_freezable_wq, &dev->report_work);
}

/*
 * A work of its own: recovery flushes the one above. And in another queue: it waits
 * for whatever the clients wait for, memory included; and it may not bring the device up
 * while the system goes to sleep, when no new devices can be added. Disabled while
 * devlink does not know the function.
 */
static void skua_report_work(struct work_struct *work)
{
	struct skua_dev *dev = container_of(work, struct skua_dev, report_work);

	/* Also if somebody else has brought it back since: it did fail. */
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
		return "its registers read all ones: it left the bus";
	if (status & SKUA_STATUS_FATAL) {
		dev_err(dev->dev, "the device reports fatal error code %u\n",
			u32_get_bits(status, SKUA_STATUS_CODE));
		return "it reports a fatal error";
	}
	if (!(status & SKUA_STATUS_OPERATIONAL))
		return "it was reset, not by this driver";
	if (heartbeat != dev->heartbeat)
		dev->still = 0;
	else if (++dev->still >= SKUA_HEALTH_STILL)
		return "its heartbeat register does not change any more";
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
	spin_lock_init(&dev->state_lock);
	BLOCKING_INIT_NOTIFIER_HEAD(&dev->notifier);
	INIT_WORK(&dev->port_work, skua_port_work);
	INIT_WORK(&dev->dead_work, skua_dead_work);
	INIT_WORK(&dev->report_work, skua_report_work);
	disable_work(&dev->report_work);
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

/* --- Up and down, as the table of states has it --- */

static void skua_stop(struct skua_dev *dev, enum skua_down_reason reason)
{
	/* If it is dead, clients hear of that before they are taken down. */
	flush_work(&dev->dead_work);
	skua_aux_down(dev, reason);
	skua_down(dev);
	skua_life(dev, SKUA_STOPPED);
}

/* Once. On an error nothing is left behind. */
static int skua_start_once(struct skua_dev *dev, bool *died)
{
	int err;

	err = skua_up(dev);
	if (err) {
		*died = READ_ONCE(dev->state) == SKUA_DEAD;
		skua_life(dev, SKUA_STOPPED);
		return err;
	}
	if (skua_life(dev, SKUA_STARTED) == SKUA_REFUSE)
		err = -EIO;
	else
		err = skua_aux_up(dev);
	*died = skua_dead(dev);
	if (!err && !*died)
		return 0;
	skua_life(dev, SKUA_STOP);
	skua_stop(dev, SKUA_DOWN_FAILURE);
	return err ?: -EIO;
}

/*
 * May a later try succeed? The device may have been slow to return, and memory may be there
 * again; but whoever binds the driver is told of a lack of memory at once.
 */
static bool skua_may_pass(const struct skua_dev *dev, int err)
{
	return err == -ENODEV || err == -ETIMEDOUT || (err == -ENOMEM && dev->registered);
}

/*
 * A device that fails while it is brought up gets further chances: what made it fail
 * may have been the very event that it recovers from.
 */
static int skua_start(struct skua_dev *dev)
{
	unsigned int try;
	bool died;
	int err;

	for (try = 1; ; try++) {
		err = skua_start_once(dev, &died);
		if (!err) {
			dev->started = jiffies;
			break;
		}
		if ((!died && !skua_may_pass(dev, err)) || try == SKUA_START_TRIES)
			break;
		dev_warn(dev->dev, "the device failed while it was brought up (%pe): once more\n",
			 ERR_PTR(err));
		msleep(SKUA_START_PAUSE_MS << try);
		skua_life(dev, SKUA_START);
	}
	skua_devlink_health(dev);
	return err;
}

static enum skua_down_reason skua_down_reason(const struct skua_dev *dev, enum skua_life event)
{
	switch (event) {
	case SKUA_RESET_BEGIN:
		return SKUA_DOWN_RESET;
	case SKUA_ERROR_BEGIN:
	case SKUA_ERROR_RESET:
	case SKUA_ERROR_FAIL:
		return SKUA_DOWN_PCI_ERROR;
	case SKUA_SLEEP:
		return SKUA_DOWN_SLEEP;
	default:
		return skua_dead(dev) ? SKUA_DOWN_FAILURE : SKUA_DOWN_RELOAD;
	}
}

/* Something happens; do what the table says. @why is for the log. */
static int skua_event(struct skua_dev *dev, enum skua_life event, const char *why)
{
	devl_assert_locked(priv_to_devlink(dev));
	switch (skua_life(dev, event)) {
	case SKUA_BRING_UP:
		return skua_start(dev);
	case SKUA_KILL_AND_TAKE_DOWN:
		dev_info(dev->dev, "taken down: %s\n", why);
		skua_kill(dev);
		fallthrough;
	case SKUA_TAKE_DOWN:
		skua_stop(dev, skua_down_reason(dev, event));
		return 0;
	case SKUA_KILL:
		skua_kill(dev);
		return 0;
	case SKUA_REFUSE:
		return -EBUSY;
	default:
		return 0;
	}
}

/**
 * skua_take_down() - take the clients down, then the device
 * @dev: the function, in any state
 *
 * Return: 0, or -EBUSY: see skua_state_why().
 */
int skua_take_down(struct skua_dev *dev)
{
	return skua_event(dev, SKUA_STOP, NULL);
}

/**
 * skua_bring_back() - bring the device up, then the clients
 * @dev: the function, up or off
 *
 * Return: 0, -EBUSY: see skua_state_why(), or another negative errno; then it is off.
 */
int skua_bring_back(struct skua_dev *dev)
{
	return skua_event(dev, SKUA_START, NULL);
}

/**
 * skua_recover() - bring a device back that failed, or could not be brought up
 * @dev: the function, in any state
 * @pace: hold back a device that fails again and again
 *
 * Return: as skua_bring_back().
 */
int skua_recover(struct skua_dev *dev, bool pace)
{
	unsigned long since = jiffies - dev->started;
	int err;

	/* Whoever came first may have done it already. */
	if (dev->state == SKUA_UP)
		return 0;
	err = skua_take_down(dev);
	if (err)
		return err;
	if (since > SKUA_STABLE)
		dev->failures = 0;
	else if (pace && dev->failures)
		msleep(min(SKUA_PACE_MS << min(dev->failures, 8), SKUA_PACE_MAX_MS));
	dev->failures++;
	return skua_bring_back(dev);
}

/**
 * skua_end() - the function will not be brought up any more
 * @dev: the function
 */
void skua_end(struct skua_dev *dev)
{
	/* First: see skua_declare_dead(). */
	dev->hw->quiesce(dev);
	skua_event(dev, SKUA_END, NULL);
}

/* --- Resets that the PCI core makes, and sleep --- */

/*
 * Take it down until skua_resume_from(). There is no time to be orderly, and no need:
 * the device will forget everything.
 */
static void skua_hold(struct skua_dev *dev, enum skua_life event, const char *why)
{
	struct devlink *devlink = priv_to_devlink(dev);

	devl_lock(devlink);
	/* First: see skua_declare_dead(). */
	dev->hw->quiesce(dev);
	skua_event(dev, event, why);
	devl_unlock(devlink);
}

static void skua_resume_from(struct skua_dev *dev, enum skua_life event, const char *what)
{
	struct devlink *devlink = priv_to_devlink(dev);
	int err;

	devl_lock(devlink);
	err = skua_event(dev, event, NULL);
	devl_unlock(devlink);
	if (err)
		dev_err(dev->dev, "cannot be brought up after %s: %pe\n", what, ERR_PTR(err));
}

static void skua_reset_prepare(struct pci_dev *pdev)
{
	skua_hold(pci_get_drvdata(pdev), SKUA_RESET_BEGIN, "reset of the PCI function");
}

/*
 * For a slot reset: older kernels restore what was saved only once, and have done so
 * after a reset of theirs and after sleep. With bus mastering off, as in probe.
 */
static void skua_save_state(struct pci_dev *pdev)
{
	/* What a function that did not come back reads as must not be restored. */
	if (pci_device_is_present(pdev))
		pci_save_state(pdev);
}

static void skua_reset_done(struct pci_dev *pdev)
{
	skua_save_state(pdev);
	skua_resume_from(pci_get_drvdata(pdev), SKUA_RESET_END, "a reset of the PCI function");
}

static pci_ers_result_t skua_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct skua_dev *dev = pci_get_drvdata(pdev);

	if (state == pci_channel_io_perm_failure) {
		skua_hold(dev, SKUA_ERROR_FAIL, "permanent PCI error");
		return PCI_ERS_RESULT_DISCONNECT;
	}
	skua_hold(dev, SKUA_ERROR_BEGIN, "PCI error");
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t skua_slot_reset(struct pci_dev *pdev)
{
	struct skua_dev *dev = pci_get_drvdata(pdev);

	/* As it was saved by probe: memory on, bus mastering off. */
	pci_restore_state(pdev);
	/* What is restored was good for once on older kernels. */
	pci_save_state(pdev);
	if (skua_gone(dev)) {
		skua_hold(dev, SKUA_ERROR_FAIL, "not there after a slot reset");
		return PCI_ERS_RESULT_DISCONNECT;
	}
	skua_hold(dev, SKUA_ERROR_RESET, "slot reset");
	return PCI_ERS_RESULT_RECOVERED;
}

static void skua_error_resume(struct pci_dev *pdev)
{
	skua_resume_from(pci_get_drvdata(pdev), SKUA_ERROR_END, "a PCI error");
}

/*
 * Sleep takes the function's power and with it all that it knew, so that it is left
 * like one that is reset. It is brought back when all devices are awake, since only
 * then may new ones, such as the ib_device, be added.
 */
static int skua_suspend(struct device *device)
{
	skua_hold(dev_get_drvdata(device), SKUA_SLEEP, "system sleep");
	return 0;
}

/* Also if another device refused to sleep before it was our turn. */
static void skua_sleep_complete(struct device *device)
{
	struct skua_dev *dev = dev_get_drvdata(device);

	/* In no other state is bus mastering sure to be off; the device lock keeps it. */
	if (READ_ONCE(dev->state) == SKUA_ASLEEP)
		skua_save_state(dev->pdev);
	skua_resume_from(dev, SKUA_WAKE, "system sleep");
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
	.resume = skua_error_resume,
	.reset_prepare = skua_reset_prepare,
	.reset_done = skua_reset_done,
};
