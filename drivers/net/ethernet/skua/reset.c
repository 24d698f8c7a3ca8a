// SPDX-License-Identifier: GPL-2.0
/*
 * Reset, health check, and recovery of a device that failed.
 *
 * skua_declare_dead() may be called in any context and does not block: it turns bus
 * mastering off and wakes all waiters; a work item tells the clients. devlink's health
 * reporter starts the recovery, and the devlink instance lock serializes it with everything
 * else that brings the device up or down. lifecycle.c has the table of states and events.
 */
#include <kunit/visibility.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <net/devlink.h>

#include "skua.h"

#define SKUA_HEALTH_PERIOD	HZ
/*
 * The device has failed if its heartbeat is the same after so many periods. One would not do:
 * a software device may get no processor for a second on a busy host.
 */
#define SKUA_HEALTH_STILL	5
/* The interface (SKUA_CTRL_RESET) allows the device 1 s. */
#define SKUA_RESET_MS		3000
/* Attempts to bring the device up, and the pause after the first one, which then doubles. */
#define SKUA_START_TRIES	4
#define SKUA_START_PAUSE_MS	100
/*
 * If the device fails again less than SKUA_STABLE jiffies after it was brought up, the next
 * recovery is delayed by SKUA_PACE_MS, doubled for each failure in a row, up to
 * SKUA_PACE_MAX_MS.
 */
#define SKUA_STABLE		(10 * HZ)
#define SKUA_PACE_MS		250
#define SKUA_PACE_MAX_MS	1000

/**
 * skua_hw_reset() - reset the device and wait until it is ready
 * @dev: the function
 *
 * On success the device has lost all of its state and does no DMA.
 *
 * Return: 0, -ENODEV if the device does not respond, or -ETIMEDOUT.
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

		/*
		 * The device clears READY when it gets the write, which is before it answers this
		 * read, so READY means that the reset is over. A device that left the bus reads as
		 * all ones, which includes FATAL.
		 */
		if ((status & SKUA_STATUS_READY) && !(status & SKUA_STATUS_FATAL))
			return 0;
		if (last)
			return skua_gone(dev) ? -ENODEV : -ETIMEDOUT;
		usleep_range(500, 1000);
	}
}
EXPORT_SYMBOL_IF_KUNIT(skua_hw_reset);

/* The device takes no commands any more: fail those in flight, and queue the clients' event. */
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
 * After this all commands fail with -EIO, objects are destroyed without a command, and the
 * driver may free memory that the device owned.
 *
 * Context: any.
 */
void skua_declare_dead(struct skua_dev *dev, const char *why)
{
	/*
	 * DMA is turned off before the state changes: whoever sees the new state may free
	 * memory that the device writes to.
	 */
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
	/* After a PCI reset, a PCI error or sleep the callbacks for these bring the device up. */
	if (READ_ONCE(dev->state) == SKUA_DEAD)
		queue_work(system_freezable_wq, &dev->report_work);
}

/*
 * Reports the failure to devlink, which recovers the device. This is not part of dead_work,
 * since recovery flushes dead_work. It is not in dev->wq, since it may allocate memory and
 * wait for the clients, which a WQ_MEM_RECLAIM queue must not; and the queue is freezable,
 * since no devices can be added while the system goes to sleep. The work is disabled while
 * the function is not registered with devlink.
 */
static void skua_report_work(struct work_struct *work)
{
	struct skua_dev *dev = container_of(work, struct skua_dev, report_work);

	/* The failure is reported even if the device was brought up again in the meantime. */
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
	/* If an interrupt was lost, its events are handled now, at most one period late. */
	skua_eq_kick(dev);
	queue_delayed_work(dev->wq, &dev->health_work, SKUA_HEALTH_PERIOD);
}

/**
 * skua_health_start() - start the periodic health check
 * @dev: the function
 */
void skua_health_start(struct skua_dev *dev)
{
	dev->heartbeat = skua_read32(dev, SKUA_REG_HEARTBEAT);
	dev->still = 0;
	queue_delayed_work(dev->wq, &dev->health_work, SKUA_HEALTH_PERIOD);
}

/**
 * skua_health_stop() - stop the periodic health check
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
 * The workqueue has WQ_MEM_RECLAIM: to destroy a QP or CQ waits for its work items, and
 * storage drivers (nvme-rdma) do so in work items that memory reclaim depends on.
 *
 * Return: the workqueue or NULL.
 */
struct workqueue_struct *skua_alloc_wq(const char *name)
{
	return alloc_workqueue("skua-%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, name);
}
EXPORT_SYMBOL_IF_KUNIT(skua_alloc_wq);

/**
 * skua_reset_init() - set up what skua_declare_dead() needs
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
 * skua_register_notifier() - register for events of the function
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

/* --- Up and down, by the table of states in lifecycle.c --- */

static void skua_stop(struct skua_dev *dev, enum skua_down_reason reason)
{
	/* Clients get SKUA_EVENT_DEAD, if the device is dead, before they are taken down. */
	flush_work(&dev->dead_work);
	skua_aux_down(dev, reason);
	skua_down(dev);
	skua_life(dev, SKUA_STOPPED);
}

/* One attempt to bring the device and its clients up. On an error all of it is undone. */
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
 * Can another attempt succeed? The device may take longer to return from a reset, and memory
 * may become available. During probe -ENOMEM is returned at once.
 */
static bool skua_may_pass(const struct skua_dev *dev, int err)
{
	return err == -ENODEV || err == -ETIMEDOUT || (err == -ENOMEM && dev->registered);
}

/*
 * Bring the device up, with several attempts: the event that it recovers from, such as a PCI
 * error, may still be going on in the first one.
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
	skua_devlink_health(dev, !err);
	/*
	 * A failure since then may have been reported before the line above, and refused or
	 * taken for over.
	 */
	if (!err && skua_dead(dev))
		queue_work(system_freezable_wq, &dev->report_work);
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

/* Look up @event in the table of states and do what it says. @why is for the log. */
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
 * @pace: delay the recovery of a device that has failed several times in a row
 *
 * Return: as skua_bring_back().
 */
int skua_recover(struct skua_dev *dev, bool pace)
{
	unsigned long since = jiffies - dev->started;
	int err;

	/* Another recovery, or a reload, may have brought the device up already. */
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
	/* DMA is turned off before the state changes, see skua_declare_dead(). */
	dev->hw->quiesce(dev);
	skua_event(dev, SKUA_END, NULL);
}

/* --- Resets that the PCI core makes, and sleep --- */

/*
 * Take the function down until skua_resume_from(). Objects are not destroyed by commands: the
 * device will lose its state anyway.
 */
static void skua_hold(struct skua_dev *dev, enum skua_life event, const char *why)
{
	struct devlink *devlink = priv_to_devlink(dev);

	devl_lock(devlink);
	/* DMA is turned off before the state changes, see skua_declare_dead(). */
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
 * Save the configuration space for skua_slot_reset(). Linux 6.12 restores a saved state only
 * once, and the PCI core has restored it after its own reset and after sleep, so it is saved
 * again. Bus mastering is off here, as it is when probe saves the state. After a slot reset
 * that failed the state of the time before stays; on 6.12 compat.h sees to that.
 */
static void skua_save_state(struct pci_dev *pdev)
{
	/* A function that is gone reads as all ones: do not save that. */
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

	/* The state was saved with memory decoding on and bus mastering off. */
	pci_restore_state(pdev);
	skua_save_state(pdev);
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
 * The function loses its power, and so its state, while the system sleeps. It is taken down
 * here, and brought up by .complete, when all devices are awake: before that no devices, such
 * as the ib_device, can be added.
 */
static int skua_suspend(struct device *device)
{
	skua_hold(dev_get_drvdata(device), SKUA_SLEEP, "system sleep");
	return 0;
}

/* Called also if suspend was aborted before skua_suspend() was called. */
static void skua_sleep_complete(struct device *device)
{
	struct skua_dev *dev = dev_get_drvdata(device);

	/*
	 * Only in state ASLEEP is bus mastering known to be off. The device lock, held by the
	 * PM core, keeps the state.
	 */
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
EXPORT_SYMBOL_IF_KUNIT(skua_err_handlers);
