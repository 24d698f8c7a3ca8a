// SPDX-License-Identifier: GPL-2.0
/*
 * Auxiliary devices for the netdev and the ib_device, and the netdev pointer they share.
 */
#include <linux/netdevice.h>

#include "skua.h"

/* Instance numbers of the auxiliary devices of all functions. */
static DEFINE_IDA(skua_adev_ids);

static void skua_adev_release(struct device *device)
{
	struct auxiliary_device *adev = to_auxiliary_dev(device);

	kfree(container_of(adev, struct skua_adev, adev));
}

static struct skua_adev *skua_adev_add(struct skua_dev *dev, const char *name)
{
	struct skua_adev *sadev = kzalloc(sizeof(*sadev), GFP_KERNEL);
	int err;

	if (!sadev)
		return ERR_PTR(-ENOMEM);
	sadev->dev = dev;
	sadev->adev.name = name;
	sadev->adev.id = dev->adev_id;
	sadev->adev.dev.parent = dev->dev;
	sadev->adev.dev.release = skua_adev_release;
	err = auxiliary_device_init(&sadev->adev);
	if (err) {
		kfree(sadev);
		return ERR_PTR(err);
	}
	err = auxiliary_device_add(&sadev->adev);
	if (err) {
		/* Frees it by the release function. */
		auxiliary_device_uninit(&sadev->adev);
		return ERR_PTR(err);
	}
	return sadev;
}

static void skua_adev_del(struct skua_adev **sadev)
{
	if (!*sadev)
		return;
	auxiliary_device_delete(&(*sadev)->adev);
	auxiliary_device_uninit(&(*sadev)->adev);
	*sadev = NULL;
}

/* Return: false if a driver without skua_client_ops is bound, so the device must go. */
static bool skua_adev_down(struct skua_adev *sadev, enum skua_down_reason reason)
{
	bool stays = true;

	device_lock(&sadev->adev.dev);
	if (sadev->ops)
		sadev->ops->down(&sadev->adev, reason);
	else
		stays = !sadev->adev.dev.driver;
	device_unlock(&sadev->adev.dev);
	return stays;
}

static int skua_adev_up(struct skua_adev *sadev)
{
	int err = 0;

	device_lock(&sadev->adev.dev);
	if (sadev->ops)
		err = sadev->ops->up(&sadev->adev);
	device_unlock(&sadev->adev.dev);
	return err;
}

/**
 * skua_aux_up() - let the auxiliary drivers use the device
 * @dev: the function, which is up
 *
 * Adds auxiliary devices that do not exist yet, according to the device's capabilities.
 * The netdev's comes first, because the ib_device is bound to the netdev.
 *
 * Return: 0 or a negative errno; skua_aux_down() is needed in either case.
 */
int skua_aux_up(struct skua_dev *dev)
{
	struct skua_adev *sadev;
	int err;

	if (dev->adev_eth) {
		err = skua_adev_up(dev->adev_eth);
		if (err)
			return err;
	} else if (dev->limits.caps & SKUA_CAP_ETH) {
		sadev = skua_adev_add(dev, "eth");
		if (IS_ERR(sadev))
			return PTR_ERR(sadev);
		dev->adev_eth = sadev;
	}
	if (dev->roce) {
		sadev = skua_adev_add(dev, "rdma");
		if (IS_ERR(sadev))
			return PTR_ERR(sadev);
		dev->adev_rdma = sadev;
	}
	return 0;
}

/**
 * skua_aux_down() - make the auxiliary drivers stop using the device
 * @dev: the function
 * @reason: passed to the drivers
 *
 * On return they have destroyed all their objects. The netdev stays registered; the
 * ib_device is unregistered, because the RDMA core cannot keep one across a reset.
 */
void skua_aux_down(struct skua_dev *dev, enum skua_down_reason reason)
{
	skua_adev_del(&dev->adev_rdma);
	if (dev->adev_eth && !skua_adev_down(dev->adev_eth, reason))
		skua_adev_del(&dev->adev_eth);
}

/**
 * skua_aux_unplug() - delete the auxiliary devices
 * @dev: the function, in any state
 *
 * On return the clients have destroyed all their objects.
 */
void skua_aux_unplug(struct skua_dev *dev)
{
	/* If the device is dead, the drivers get SKUA_EVENT_DEAD before they are removed. */
	flush_work(&dev->dead_work);
	skua_adev_del(&dev->adev_rdma);
	skua_adev_del(&dev->adev_eth);
}

/**
 * skua_aux_init() - get ready to publish auxiliary devices
 * @dev: the function
 *
 * Return: 0 or a negative errno.
 */
int skua_aux_init(struct skua_dev *dev)
{
	spin_lock_init(&dev->netdev_lock);
	dev->adev_id = ida_alloc(&skua_adev_ids, GFP_KERNEL);
	return min(dev->adev_id, 0);
}

/**
 * skua_aux_exit() - undo skua_aux_init()
 * @dev: the function
 */
void skua_aux_exit(struct skua_dev *dev)
{
	ida_free(&skua_adev_ids, dev->adev_id);
}

/**
 * skua_set_netdev() - set the netdev of the function
 * @dev: the function
 * @ndev: the netdev when its registration begins, NULL when it ends; RTNL is held
 */
void skua_set_netdev(struct skua_dev *dev, struct net_device *ndev)
{
	guard(spinlock)(&dev->netdev_lock);
	dev->netdev = ndev;
}
EXPORT_SYMBOL_NS_GPL(skua_set_netdev, "SKUA");

/**
 * skua_get_netdev() - the netdev of the function
 * @dev: the function
 *
 * Return: the netdev, to be dropped with dev_put(), or NULL.
 */
struct net_device *skua_get_netdev(struct skua_dev *dev)
{
	guard(spinlock)(&dev->netdev_lock);
	dev_hold(dev->netdev);
	return dev->netdev;
}
EXPORT_SYMBOL_NS_GPL(skua_get_netdev, "SKUA");
