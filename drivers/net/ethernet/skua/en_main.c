// SPDX-License-Identifier: GPL-2.0
/*
 * Auxiliary driver of "skua_core.eth": makes and removes the netdev.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>

#include "en.h"

/*
 * Detach the netdev from the stack when the device may not be used any more. Its
 * configuration is kept; ethtool and MTU changes fail with -ENODEV until it is attached again.
 */
static void skua_en_dead(struct skua_en *en)
{
	WRITE_ONCE(en->dead, true);
	skua_en_link(en);
	netif_device_detach(en->ndev);
}

static int skua_en_notify(struct notifier_block *nb, unsigned long event, void *data)
{
	struct skua_en *en = container_of(nb, struct skua_en, nb);

	switch (event) {
	case SKUA_EVENT_PORT:
		/* Called without RTNL: the netdev may go down at this time, see skua_en_link(). */
		if (netif_running(en->ndev) && !READ_ONCE(en->dead))
			skua_en_link(en);
		return NOTIFY_OK;
	case SKUA_EVENT_DEAD:
		skua_en_dead(en);
		return NOTIFY_OK;
	default:
		return NOTIFY_DONE;
	}
}

static void skua_en_set_features(struct net_device *ndev, const struct skua_limits *lim)
{
	netdev_features_t f = NETIF_F_SG | NETIF_F_HIGHDMA;

	if (lim->caps & SKUA_CAP_CSUM)
		f |= NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM | NETIF_F_RXCSUM;
	if (lim->caps & SKUA_CAP_LSO)
		f |= NETIF_F_TSO | NETIF_F_TSO6;
	if (lim->caps & SKUA_CAP_RSS)
		f |= NETIF_F_RXHASH;
	ndev->vlan_features = f & ~NETIF_F_RXHASH;
	if (lim->caps & SKUA_CAP_VLAN)
		f |= NETIF_F_HW_VLAN_CTAG_TX;
	/* A merged frame counts as one whose checksums were verified. */
	if (lim->caps & SKUA_CAP_GRO && lim->caps & SKUA_CAP_CSUM)
		f |= NETIF_F_GRO_HW;
	ndev->hw_features = f & ~NETIF_F_HIGHDMA;
	/* The device always takes the tag out of the frame: not to be switched off. */
	if (lim->caps & SKUA_CAP_VLAN)
		f |= NETIF_F_HW_VLAN_CTAG_RX;
	ndev->features = f;
}

/* The device must allow the smallest rings, and WQEs that can carry any packet of the stack. */
static int skua_en_check_limits(struct device *dev, const struct skua_limits *lim)
{
	const struct {
		const char *name;
		u32 has, needs;
	} limits[] = {
		{ "max_mtu", lim->max_mtu, ETH_MIN_MTU },
		{ "max_rq_sge", lim->max_rq_sge, SKUA_EN_RX_SGE },
		{ "max_rq_wqes", lim->max_rq_wqes, SKUA_EN_RING_MIN },
		{ "max_sq_blocks", lim->max_sq_blocks, SKUA_EN_RING_MIN * SKUA_EN_TX_BLOCKS },
		{ "max_wqe_blocks", lim->max_wqe_blocks, SKUA_EN_TX_MAX_BLOCKS },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++)
		if (limits[i].has < limits[i].needs)
			return dev_err_probe(dev, -EOPNOTSUPP,
					     "no netdev: %s of the device is %u, at least %u is needed\n",
					     limits[i].name, limits[i].has, limits[i].needs);
	return 0;
}

static void skua_en_setup(struct skua_en *en, struct net_device *ndev, struct skua_dev *dev)
{
	const struct skua_limits *lim = skua_limits(dev);

	en->dev = dev;
	en->dma = &skua_pdev(dev)->dev;
	en->ndev = ndev;
	en->dead = true;
	en->caps = lim->caps;
	en->rss = lim->caps & SKUA_CAP_RSS;
	en->conf.channels = min(skua_en_max_channels(en), num_online_cpus());
	en->conf.ring_rx = min(SKUA_EN_RX_RING_DEFAULT, lim->max_rq_wqes);
	en->conf.ring_tx = min(SKUA_EN_RING_DEFAULT, lim->max_sq_blocks / SKUA_EN_TX_BLOCKS);
	spin_lock_init(&en->stats_lock);
	mutex_init(&en->link_lock);
	netdev_rss_key_fill(en->conf.rss_key, sizeof(en->conf.rss_key));
	skua_en_rss_default(&en->conf);
#ifdef SKUA_COMPAT_RX_MODE
	INIT_DELAYED_WORK(&en->rx_mode, skua_en_rx_mode_work);
#endif
	INIT_DELAYED_WORK(&en->restart, skua_en_restart_work);
	INIT_DELAYED_WORK(&en->watch, skua_en_watch_work);
	INIT_DELAYED_WORK(&en->link_work, skua_en_link_work);
	INIT_WORK(&en->hw_stats_work, skua_en_hw_stats_work);

	SET_NETDEV_DEV(ndev, en->dma);
	if (is_valid_ether_addr(lim->mac))
		eth_hw_addr_set(ndev, lim->mac);
	else
		eth_hw_addr_random(ndev);
	ndev->netdev_ops = &skua_en_netdev_ops;
	ndev->ethtool_ops = &skua_en_ethtool_ops;
	ndev->stat_ops = &skua_en_stat_ops;
	skua_en_dcb_init(en);
	ndev->watchdog_timeo = 15 * HZ;
	ndev->min_mtu = ETH_MIN_MTU;
	ndev->max_mtu = min_t(u32, lim->max_mtu, SKUA_EN_MAX_MTU);
	ndev->mtu = min(ndev->mtu, ndev->max_mtu);
	en->conf.mtu = ndev->mtu;
	ndev->priv_flags |= IFF_UNICAST_FLT | IFF_LIVE_ADDR_CHANGE;
	skua_en_set_features(ndev, lim);
	en->conf.gro = ndev->features & NETIF_F_GRO_HW;
}

/* --- Attach to the device and detach from it --- */

/*
 * Does the device, which a reset may have changed, still have the capabilities and limits that
 * the netdev's features and the users' settings need?
 */
static int skua_en_check(const struct skua_en *en)
{
	const struct skua_limits *lim = skua_limits(en->dev);
	int err;

	err = skua_en_check_limits(en->dma, lim);
	if (err)
		return err;
	if (en->caps & SKUA_EN_CAPS & ~lim->caps) {
		netdev_err(en->ndev, "the device has lost capabilities 0x%llx\n",
			   en->caps & SKUA_EN_CAPS & ~lim->caps);
		return -EOPNOTSUPP;
	}
	if (en->ndev->max_mtu > lim->max_mtu || en->conf.ring_rx > lim->max_rq_wqes ||
	    en->conf.ring_tx > lim->max_sq_blocks / SKUA_EN_TX_BLOCKS) {
		netdev_err(en->ndev, "the device's limits (MTU %u, ring %u, %u) are below those in use (%u, %u, %u)\n",
			   lim->max_mtu, lim->max_rq_wqes,
			   lim->max_sq_blocks / SKUA_EN_TX_BLOCKS, en->ndev->max_mtu,
			   en->conf.ring_rx, en->conf.ring_tx);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* The device is about to be taken down. It may still take commands. */
static void skua_en_leave(struct skua_en *en)
{
	WRITE_ONCE(en->dead, true);
	/* This work sends commands, and no lock excludes it while the device goes down. */
	cancel_work_sync(&en->hw_stats_work);
	/* The device's counters restart at zero. */
	memset(en->hw_seen, 0, sizeof(en->hw_seen));
}

/* The device is up (again): attach the netdev, and open it if it was open. */
static int skua_en_attach(struct skua_en *en)
{
	int err;

	ASSERT_RTNL();
	if (en->attached)
		return 0;
	err = skua_en_check(en);
	if (err)
		return err;
	err = skua_pd_alloc(en->dev, &en->pdn);
	if (err)
		return err;
	skua_en_dcb_up(en);
	WRITE_ONCE(en->dead, false);
	if (netif_running(en->ndev)) {
		err = skua_en_up(en);
		if (err)
			goto err_pd;
	}
	en->attached = true;
	netif_device_attach(en->ndev);
	/* Catch up on changes of addresses; from here on ndo_set_rx_mode reports them. */
	if (en->channel[0])
		skua_en_rx_mode_refresh(en);
	/* The device may have failed before SKUA_EVENT_DEAD could be seen here. */
	if (skua_dead(en->dev))
		skua_en_dead(en);
	return 0;

err_pd:
	skua_en_leave(en);
	skua_pd_free(en->dev, en->pdn);
	netdev_err(en->ndev, "the queues cannot be made: %pe\n", ERR_PTR(err));
	return err;
}

/* The device is about to be taken down: release its objects, and keep all that is not in it. */
static void skua_en_detach(struct skua_en *en)
{
	ASSERT_RTNL();
	if (!en->attached)
		return;
	en->attached = false;
	netif_device_detach(en->ndev);
	if (en->channel[0])
		skua_en_down(en);
	skua_pd_free(en->dev, en->pdn);
	/* What it has counted since the last query would be lost, if it still takes commands. */
	schedule_work(&en->hw_stats_work);
	flush_work(&en->hw_stats_work);
	skua_en_leave(en);
}

static void skua_en_client_down(struct auxiliary_device *adev, enum skua_down_reason reason)
{
	static const char * const text[] = {
		[SKUA_DOWN_RELOAD] = "the device is reloaded",
		[SKUA_DOWN_FAILURE] = "the device has failed",
		[SKUA_DOWN_RESET] = "the PCI function is reset",
		[SKUA_DOWN_PCI_ERROR] = "PCI error",
		[SKUA_DOWN_SLEEP] = "system sleep",
	};
	struct skua_en *en = auxiliary_get_drvdata(adev);

	rtnl_lock();
	if (en->attached)
		netdev_info(en->ndev, "detached: %s\n", text[reason]);
	skua_en_detach(en);
	rtnl_unlock();
}

static int skua_en_client_up(struct auxiliary_device *adev)
{
	struct skua_en *en = auxiliary_get_drvdata(adev);
	int err;

	rtnl_lock();
	err = skua_en_attach(en);
	rtnl_unlock();
	if (!err)
		netdev_info(en->ndev, "attached again\n");
	return err;
}

static const struct skua_client_ops skua_en_client_ops = {
	.down = skua_en_client_down,
	.up = skua_en_client_up,
};

/* --- Probe and remove --- */

/*
 * Register and attach under one hold of RTNL: after the registration another RTNL holder may
 * open the netdev.
 */
static int skua_en_register(struct skua_en *en)
{
	int err;

	rtnl_lock();
	err = register_netdevice(en->ndev);
	if (err)
		goto out;
	/* register_netdevice() has marked it present. */
	if (skua_is_up(en->dev)) {
		skua_en_hw_stats_start(en);
		err = skua_en_attach(en);
		if (err)
			unregister_netdevice(en->ndev);
	} else {
		/* The device is being reset: .up will be called after that. */
		netif_device_detach(en->ndev);
	}
out:
	rtnl_unlock();
	return err;
}

/* The netdev is not registered (any more), so nothing queues these work items again. */
static void skua_en_disable_work(struct skua_en *en)
{
	disable_delayed_work_sync(&en->restart);
	disable_work_sync(&en->hw_stats_work);
#ifdef SKUA_COMPAT_RX_MODE
	disable_delayed_work_sync(&en->rx_mode);
#endif
}

static int skua_en_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct skua_dev *dev = skua_adev_dev(adev);
	struct net_device *ndev;
	struct skua_en *en;
	int err;

	err = skua_en_check_limits(&adev->dev, skua_limits(dev));
	if (err)
		return err;
	ndev = alloc_etherdev_mqs(sizeof(*en), SKUA_EN_MAX_CHANNELS, SKUA_EN_MAX_CHANNELS);
	if (!ndev)
		return -ENOMEM;
	en = netdev_priv(ndev);
	skua_en_setup(en, ndev, dev);

	err = netif_set_real_num_queues(ndev, en->conf.channels, en->conf.channels);
	if (err)
		goto err_netdev;
	netif_carrier_off(ndev);
	en->nb.notifier_call = skua_en_notify;
	/* Before the registration, since the netdev may be opened before that returns. */
	err = skua_register_notifier(dev, &en->nb);
	if (err)
		goto err_netdev;
	err = skua_en_register(en);
	if (err)
		goto err_notifier;
	auxiliary_set_drvdata(adev, en);
	skua_adev_set_ops(adev, &skua_en_client_ops);
	return 0;

err_notifier:
	skua_unregister_notifier(dev, &en->nb);
	/* If a notifier refused it, the netdev was visible for a while and may have been used. */
	skua_en_disable_work(en);
err_netdev:
	free_netdev(ndev);
	return dev_err_probe(&adev->dev, err, "netdev cannot be made\n");
}

static void skua_en_remove(struct auxiliary_device *adev)
{
	struct skua_en *en = auxiliary_get_drvdata(adev);
	struct skua_dev *dev = en->dev;

	skua_adev_set_ops(adev, NULL);
	unregister_netdev(en->ndev);
	skua_unregister_notifier(dev, &en->nb);
	skua_en_disable_work(en);
	if (en->attached) {
		skua_en_dcb_exit(en);
		skua_pd_free(dev, en->pdn);
	}
	free_netdev(en->ndev);
}

static const struct auxiliary_device_id skua_en_id_table[] = {
	{ .name = "skua_core.eth" },
	{}
};
MODULE_DEVICE_TABLE(auxiliary, skua_en_id_table);

static struct auxiliary_driver skua_en_driver = {
	.name = "eth",
	.probe = skua_en_probe,
	.remove = skua_en_remove,
	.id_table = skua_en_id_table,
};
module_auxiliary_driver(skua_en_driver);

MODULE_DESCRIPTION("Skua Ethernet driver");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
