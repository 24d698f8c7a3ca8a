// SPDX-License-Identifier: GPL-2.0
/*
 * PCI function: probe and remove, bringing the device up and down.
 *
 * A device is "up" from its initialization to the next reset: it has the command ring, ICM
 * and EQs, and the auxiliary drivers can use it. This changes many times between probe and
 * remove (reload, recovery, resets of the function).
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <net/devlink.h>

#include "skua.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* --- Access to the device --- */

static void skua_hw_cmd_db(struct skua_dev *dev, u32 token)
{
	skua_write32(dev, SKUA_REG_CMDQ_DB, token);
}

static void skua_hw_quiesce(struct skua_dev *dev)
{
	u16 cmd;

	pci_clear_master(dev->pdev);
	/* The completion of a read pushes earlier writes of the device to memory. */
	pci_read_config_word(dev->pdev, PCI_COMMAND, &cmd);
}

static const struct skua_hw_ops skua_pci_hw_ops = {
	.cmd_db = skua_hw_cmd_db,
	.quiesce = skua_hw_quiesce,
};

/**
 * skua_pdev() - the PCI device of a function
 * @dev: the function
 *
 * Return: the PCI device.
 */
struct pci_dev *skua_pdev(const struct skua_dev *dev)
{
	return dev->pdev;
}
EXPORT_SYMBOL_NS_GPL(skua_pdev, "SKUA");

/**
 * skua_limits() - what a function can do
 * @dev: the function
 *
 * Return: the limits, constant while clients are plugged in.
 */
const struct skua_limits *skua_limits(const struct skua_dev *dev)
{
	return &dev->limits;
}
EXPORT_SYMBOL_NS_GPL(skua_limits, "SKUA");

/**
 * skua_clock() - read the device's clock
 * @dev: the function
 *
 * Return: ticks of skua_limits' clock_khz; all-ones if the device is gone.
 */
u64 skua_clock(const struct skua_dev *dev)
{
	u32 before = skua_read32(dev, SKUA_REG_CLOCK + 4);
	u32 low = skua_read32(dev, SKUA_REG_CLOCK);
	u32 high = skua_read32(dev, SKUA_REG_CLOCK + 4);

	/* The low half has wrapped in between; it cannot wrap again soon. */
	if (high != before)
		low = skua_read32(dev, SKUA_REG_CLOCK);
	return (u64)high << 32 | low;
}
EXPORT_SYMBOL_NS_GPL(skua_clock, "SKUA");

/* --- Up and down --- */

static int skua_check_version(struct skua_dev *dev)
{
	u32 version = skua_read32(dev, SKUA_REG_VERSION);

	if (u32_get_bits(version, SKUA_VERSION_MAJOR) == SKUA_HW_MAJOR)
		return 0;
	dev_err(dev->dev, "the device has interface version %u.%u, the driver needs %u\n",
		u32_get_bits(version, SKUA_VERSION_MAJOR),
		u32_get_bits(version, SKUA_VERSION_MINOR), SKUA_HW_MAJOR);
	return -EPROTONOSUPPORT;
}

/* Pass the command ring to a device that has just been reset. */
static int skua_ring_on(struct skua_dev *dev)
{
	int err;

	err = skua_cmdq_init(dev);
	if (err)
		return err;
	pci_set_master(dev->pdev);
	skua_write32(dev, SKUA_REG_UAR_PAGE_SHIFT, PAGE_SHIFT);
	skua_write32(dev, SKUA_REG_CMDQ_BASE, lower_32_bits(dev->cmdq.ring.dma));
	skua_write32(dev, SKUA_REG_CMDQ_BASE + 4, upper_32_bits(dev->cmdq.ring.dma));
	skua_write32(dev, SKUA_REG_CMDQ_LOG_SIZE, SKUA_CMDQ_LOG_SLOTS);
	skua_write32(dev, SKUA_REG_CMDQ_CTRL, SKUA_CMDQ_CTRL_ENABLE);
	return 0;
}

/* Reset the device, or at least stop its DMA. */
static void skua_ring_off(struct skua_dev *dev)
{
	int err;

	if (skua_dead(dev))
		err = -EIO;
	else
		err = skua_hw_reset(dev);
	/* A dead device may not react to a reset. */
	dev->hw->quiesce(dev);
	if (err && !skua_dead(dev))
		dev_err(dev->dev, "the device cannot be reset: %pe\n", ERR_PTR(err));
}

static int skua_set_roce(struct skua_dev *dev)
{
	struct skua_cmd_modify_device_in in = {
		.mask = cpu_to_le32(SKUA_DEV_M_ROCE),
	};

	dev->roce = (dev->limits.caps & SKUA_CAP_ROCE) && skua_devlink_want_roce(dev);
	in.roce = cpu_to_le32(dev->roce);
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_DEVICE, &in);
}

/* Without the capability nothing of selective repeat is used, offered or answered. */
static void skua_set_sr(struct skua_dev *dev)
{
	if (!skua_devlink_want_sr(dev))
		dev->limits.caps &= ~SKUA_CAP_SR;
}

/* The GID table is small and changes with each IP address: map all of it. */
static int skua_pin_gids(struct skua_dev *dev)
{
	if (!dev->limits.max_gids)
		return 0;
	return skua_icm_get_range(dev, SKUA_ICM_GID, 0, dev->limits.max_gids);
}

static void skua_unpin_gids(struct skua_dev *dev)
{
	if (dev->limits.max_gids)
		skua_icm_put_range(dev, SKUA_ICM_GID, 0, dev->limits.max_gids);
}

/* Check that command interrupts arrive; if not, commands are polled. */
static int skua_test_irq(struct skua_dev *dev)
{
	int err = skua_cmd_exec(dev, SKUA_CMD_NOP, NULL, 0, NULL, 0);

	if (!err && dev->cmdq.late) {
		dev_warn(dev->dev, "command interrupts do not arrive: commands will be polled\n");
		skua_cmdq_use_events(dev, false);
	}
	return err;
}

/**
 * skua_up() - bring the device up
 * @dev: the function, starting; the devlink instance lock is held
 *
 * Return: 0 or a negative errno; then it is down.
 */
int skua_up(struct skua_dev *dev)
{
	int err;

	err = skua_hw_reset(dev);
	if (err) {
		dev_err(dev->dev, "the device does not get ready after a reset: %pe\n",
			ERR_PTR(err));
		return err;
	}
	err = skua_check_version(dev);
	if (err)
		return err;
	err = skua_ring_on(dev);
	if (err)
		return err;
	err = skua_profile_init(dev);
	if (err)
		goto err_ring;
	skua_set_sr(dev);
	err = skua_uars_init(dev);
	if (err)
		goto err_profile;
	err = skua_dm_init(dev);
	if (err)
		goto err_uars;
	err = skua_irqs_init(dev);
	if (err)
		goto err_dm;
	err = skua_eqs_init(dev);
	if (err)
		goto err_irqs;
	err = skua_test_irq(dev);
	if (err)
		goto err_eqs;
	err = skua_set_roce(dev);
	if (err)
		goto err_eqs;
	err = skua_cc_up(dev);
	if (err)
		goto err_eqs;
	err = skua_devlink_turn_up(dev);
	if (err)
		goto err_eqs;
	err = skua_pin_gids(dev);
	if (err)
		goto err_eqs;
	skua_debugfs_up(dev);
	skua_health_start(dev);
	return 0;

err_eqs:
	skua_eqs_exit(dev);
err_irqs:
	skua_irqs_exit(dev);
err_dm:
	skua_dm_exit(dev);
err_uars:
	skua_uars_exit(dev);
err_profile:
	skua_ring_off(dev);
	skua_profile_exit(dev);
	skua_cmdq_exit(dev);
	goto err;
err_ring:
	skua_ring_off(dev);
	skua_cmdq_exit(dev);
err:
	flush_work(&dev->dead_work);
	dev_err(dev->dev, "the device cannot be brought up: %pe\n", ERR_PTR(err));
	return err;
}

/**
 * skua_down() - bring the device down
 * @dev: the function, brought up and without clients; the instance lock is held
 */
void skua_down(struct skua_dev *dev)
{
	skua_health_stop(dev);
	skua_debugfs_down(dev);
	skua_unpin_gids(dev);
	skua_eqs_exit(dev);
	skua_irqs_exit(dev);
	flush_work(&dev->port_work);
	skua_dm_exit(dev);
	skua_uars_exit(dev);
	if (!skua_dead(dev))
		skua_cmd_exec(dev, SKUA_CMD_TEARDOWN_DEVICE, NULL, 0, NULL, 0);
	/* Before memory that the device might still access is freed. */
	skua_ring_off(dev);
	skua_profile_exit(dev);
	skua_cmdq_exit(dev);
	flush_work(&dev->dead_work);
}

/* --- PCI --- */

static int skua_pci_enable(struct skua_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	if (pci_resource_len(pdev, SKUA_BAR_REGS) < SKUA_REG_END ||
	    pci_resource_len(pdev, SKUA_BAR_UAR) < PAGE_SIZE) {
		err = -ENXIO;
		goto err_disable;
	}
	err = pci_request_mem_regions(pdev, "skua_core");
	if (err)
		goto err_disable;
	/* An earlier driver may have left bus mastering enabled. */
	pci_clear_master(pdev);
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_regions;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dev->regs = pci_iomap(pdev, SKUA_BAR_REGS, SKUA_REG_END);
	if (!dev->regs) {
		err = -ENOMEM;
		goto err_regions;
	}
	pci_save_state(pdev);
	return 0;

err_regions:
	pci_release_mem_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return err;
}

static void skua_pci_disable(struct skua_dev *dev)
{
	pci_iounmap(dev->pdev, dev->regs);
	pci_release_mem_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

static int skua_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct skua_dev *dev = skua_devlink_alloc(pdev);
	struct devlink *devlink;
	int err;

	if (!dev)
		return -ENOMEM;
	devlink = priv_to_devlink(dev);
	dev->dev = &pdev->dev;
	mutex_init(&dev->dm_lock);
	skua_cc_init(dev);
	dev->pdev = pdev;
	dev->hw = &skua_pci_hw_ops;
	skua_reset_init(dev);
	pci_set_drvdata(pdev, dev);

	dev->wq = skua_alloc_wq(pci_name(pdev));
	if (!dev->wq) {
		err = -ENOMEM;
		goto err_free;
	}
	err = skua_aux_init(dev);
	if (err)
		goto err_wq;
	err = skua_pci_enable(dev);
	if (err)
		goto err_aux;
	skua_debugfs_init(dev);
	devl_lock(devlink);
	err = skua_devlink_init(dev);
	if (err)
		goto err_debugfs;
	err = skua_bring_back(dev);
	if (err)
		goto err_devlink;
	devl_register(devlink);
	dev->registered = true;
	/* From now on failures are reported to devlink; one may have happened already. */
	enable_work(&dev->report_work);
	if (skua_dead(dev))
		queue_work(system_freezable_wq, &dev->report_work);
	devl_unlock(devlink);
	return 0;

err_devlink:
	skua_aux_unplug(dev);
	skua_devlink_exit(dev);
err_debugfs:
	devl_unlock(devlink);
	skua_debugfs_exit(dev);
	skua_pci_disable(dev);
err_aux:
	skua_aux_exit(dev);
err_wq:
	/* Also flushes queued work. */
	destroy_workqueue(dev->wq);
err_free:
	devlink_free(devlink);
	return dev_err_probe(&pdev->dev, err, "probe failed\n");
}

static void skua_remove(struct pci_dev *pdev)
{
	struct skua_dev *dev = pci_get_drvdata(pdev);
	struct devlink *devlink = priv_to_devlink(dev);

	/* Reports take the instance lock, so wait for them before it is taken here. */
	disable_work_sync(&dev->report_work);

	devl_lock(devlink);
	dev->registered = false;
	devl_unregister(devlink);
	/* Surprise removal: do not wait for the health check to detect it. */
	if (dev->state == SKUA_UP && skua_gone(dev))
		skua_declare_dead(dev, "its registers read all ones: it left the bus");
	skua_aux_unplug(dev);
	/* Refused only where it is down already, for a reset or sleep. */
	skua_take_down(dev);
	skua_end(dev);
	skua_devlink_exit(dev);
	devl_unlock(devlink);

	skua_debugfs_exit(dev);
	skua_pci_disable(dev);
	skua_aux_exit(dev);
	destroy_workqueue(dev->wq);
	devlink_free(devlink);
}

/* Reboot or kexec: stop the device's DMA. */
static void skua_shutdown(struct pci_dev *pdev)
{
	struct skua_dev *dev = pci_get_drvdata(pdev);
	struct devlink *devlink = priv_to_devlink(dev);

	devl_lock(devlink);
	if (dev->state == SKUA_UP) {
		skua_health_stop(dev);
		skua_end(dev);
		skua_hw_reset(dev);
	} else {
		skua_end(dev);
	}
	devl_unlock(devlink);
}

static const struct pci_device_id skua_pci_ids[] = {
	{ PCI_DEVICE(SKUA_PCI_VENDOR_ID, SKUA_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, skua_pci_ids);

static struct pci_driver skua_pci_driver = {
	.name = "skua_core",
	.id_table = skua_pci_ids,
	.probe = skua_probe,
	.remove = skua_remove,
	.shutdown = skua_shutdown,
	.err_handler = &skua_err_handlers,
	.driver.pm = pm_sleep_ptr(&skua_pm_ops),
};

static int __init skua_init(void)
{
	int err;

	skua_debugfs_root_init();
	err = pci_register_driver(&skua_pci_driver);
	if (err)
		skua_debugfs_root_exit();
	return err;
}
module_init(skua_init);

static void __exit skua_exit(void)
{
	pci_unregister_driver(&skua_pci_driver);
	skua_debugfs_root_exit();
}
module_exit(skua_exit);

MODULE_DESCRIPTION("Skua PCI function core");
MODULE_LICENSE("GPL");
