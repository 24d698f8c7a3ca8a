// SPDX-License-Identifier: GPL-2.0
/*
 * The netdev's operations: up and down, addresses and modes, MTU, link.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>

#include "en.h"

/* The device lives, but does not tell the link's state; link_lock is held. */
static void skua_en_link_again(struct skua_en *en, int err)
{
	if (!en->link_failed)
		netdev_warn(en->ndev,
			    "the link's state is not known, and is queried until it is: %pe\n",
			    ERR_PTR(err));
	en->link_failed = true;
	schedule_delayed_work(&en->link_work, SKUA_EN_LINK_RETRY);
}

/**
 * skua_en_link() - set the carrier by the device's link state
 * @en: the netdev
 *
 * If the query fails the carrier remains as it is, and the query is repeated: the next event
 * comes with the next change only.
 *
 * Context: process.
 */
void skua_en_link(struct skua_en *en)
{
	struct skua_cmd_query_port_out port;
	int err = -ENODEV;

	guard(mutex)(&en->link_lock);
	if (en->link_watch && !READ_ONCE(en->dead)) {
		err = skua_query_port(en->dev, &port);
		if (err && !skua_dead(en->dev)) {
			skua_en_link_again(en, err);
			return;
		}
	}
	en->link_failed = false;
	if (!err && le32_to_cpu(port.state) & SKUA_PORT_LINK_UP)
		netif_carrier_on(en->ndev);
	else
		netif_carrier_off(en->ndev);
}

/**
 * skua_en_link_work() - query the link's state once more
 * @work: link_work of a netdev
 */
void skua_en_link_work(struct work_struct *work)
{
	skua_en_link(container_of(work, struct skua_en, link_work.work));
}

/**
 * skua_en_link_watch() - whether the carrier follows the device's link
 * @en: the netdev
 * @watch: true: it does; false: it is off
 */
void skua_en_link_watch(struct skua_en *en, bool watch)
{
	mutex_lock(&en->link_lock);
	en->link_watch = watch;
	mutex_unlock(&en->link_lock);
	/* It is not scheduled again while the carrier does not follow the link. */
	if (!watch)
		cancel_delayed_work_sync(&en->link_work);
	skua_en_link(en);
}

static void skua_en_rx_mode_add(struct skua_en_rx_mode *mode,
				const struct netdev_hw_addr_list *list)
{
	const struct netdev_hw_addr *ha;

	netdev_hw_addr_list_for_each(ha, list)
		ether_addr_copy(mode->mac[mode->num++], ha->addr);
}

/* Find out the receive mode from the netdev's flags and address lists. */
static void skua_en_rx_mode_get(const struct net_device *ndev, struct skua_en_rx_mode *mode,
				const struct netdev_hw_addr_list *uc,
				const struct netdev_hw_addr_list *mc)
{
	int nuc = netdev_hw_addr_list_count(uc), nmc = netdev_hw_addr_list_count(mc);

	mode->num = 0;
	mode->promisc = ndev->flags & IFF_PROMISC || nuc > SKUA_EN_MAX_FILTERS;
	mode->allmulti = ndev->flags & IFF_ALLMULTI || nuc + nmc > SKUA_EN_MAX_FILTERS;
	if (!mode->promisc)
		skua_en_rx_mode_add(mode, uc);
	if (!mode->allmulti)
		skua_en_rx_mode_add(mode, mc);
}

VISIBLE_IF_KUNIT void skua_en_rx_mode_again(struct skua_en *en)
{
	KUNIT_STATIC_STUB_REDIRECT(skua_en_rx_mode_again, en);
#ifndef SKUA_COMPAT_RX_MODE
	netif_rx_mode_schedule_retry(en->ndev);
#else
	/* As often, and after the same times, as a stack with ndo_set_rx_mode_async does it. */
	if (en->rx_mode_tries < 4 && schedule_delayed_work(&en->rx_mode, HZ << en->rx_mode_tries))
		en->rx_mode_tries++;
#endif
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_mode_again);

/**
 * skua_en_rx_mode_failed() - the device does not receive what the stack wants
 * @en: the netdev
 * @err: why
 *
 * The stack does not know, and would not try again by itself.
 *
 * Context: RTNL.
 */
void skua_en_rx_mode_failed(struct skua_en *en, int err)
{
	netdev_warn(en->ndev, "receive mode is not set: %pe\n", ERR_PTR(err));
	if (!READ_ONCE(en->dead))
		skua_en_rx_mode_again(en);
}

/**
 * skua_en_rx_mode_refresh() - have the device receive what the stack wants now
 * @en: the netdev, its channels there
 *
 * Context: RTNL.
 */
void skua_en_rx_mode_refresh(struct skua_en *en)
{
	struct net_device *ndev = en->ndev;
	struct skua_en_rx_mode mode;
	int err;

	netif_addr_lock_bh(ndev);
	skua_en_rx_mode_get(ndev, &mode, &ndev->uc, &ndev->mc);
	netif_addr_unlock_bh(ndev);
	err = skua_en_filters_set(en, &mode);
	if (err)
		skua_en_rx_mode_failed(en, err);
#ifdef SKUA_COMPAT_RX_MODE
	else
		en->rx_mode_tries = 0;
#endif
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_mode_refresh);

#ifndef SKUA_COMPAT_RX_MODE
static int skua_en_set_rx_mode(struct net_device *ndev, struct netdev_hw_addr_list *uc,
			       struct netdev_hw_addr_list *mc)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_rx_mode mode;

	if (!en->channel[0] || READ_ONCE(en->dead))
		return 0;
	skua_en_rx_mode_get(ndev, &mode, uc, mc);
	return skua_en_filters_set(en, &mode);
}
#else
/* The lists are read under the address lock, a spin lock; commands sleep. */
void skua_en_rx_mode_work(struct work_struct *work)
{
	struct skua_en *en = container_of(work, struct skua_en, rx_mode.work);

	rtnl_lock();
	if (netif_running(en->ndev) && en->channel[0] && !READ_ONCE(en->dead))
		skua_en_rx_mode_refresh(en);
	rtnl_unlock();
}

static void skua_en_set_rx_mode(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	mod_delayed_work(system_percpu_wq, &en->rx_mode, 0);
}
#endif

static int skua_en_open(struct net_device *ndev)
{
	return skua_en_up(netdev_priv(ndev));
}

static int skua_en_stop(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	if (en->channel[0])
		skua_en_down(en);
	return 0;
}

static int skua_en_set_mac(struct net_device *ndev, void *p)
{
	struct skua_cmd_modify_port_in in = { .mask = cpu_to_le32(SKUA_PORT_M_MAC) };
	struct skua_en *en = netdev_priv(ndev);
	struct sockaddr *sa = p;
	int err;

	err = eth_prepare_mac_addr_change(ndev, p);
	if (err)
		return err;
	if (netif_running(ndev)) {
		ether_addr_copy(in.mac, sa->sa_data);
		err = skua_en_modify_port(en, &in);
		if (err) {
			netdev_err(ndev, "the device refuses the address %pM: %pe\n", sa->sa_data,
				   ERR_PTR(err));
			return err;
		}
	}
	eth_commit_mac_addr_change(ndev, p);
	return 0;
}

static int skua_en_change_mtu(struct net_device *ndev, int mtu)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_conf conf = en->conf;
	int err;

	conf.mtu = mtu;
	err = skua_en_reconfigure(en, &conf);
	if (!err)
		WRITE_ONCE(ndev->mtu, mtu);
	return err;
}

static netdev_features_t skua_en_fix_features(struct net_device *ndev, netdev_features_t features)
{
	/* Without GRO in the stack the device must not merge frames either. */
	if (!(features & NETIF_F_GRO))
		features &= ~NETIF_F_GRO_HW;
	return features;
}

static int skua_en_set_features(struct net_device *ndev, netdev_features_t features)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_conf conf = en->conf;

	conf.gro = features & NETIF_F_GRO_HW;
	return conf.gro == en->conf.gro ? 0 : skua_en_reconfigure(en, &conf);
}

static void skua_en_tx_timeout(struct net_device *ndev, unsigned int queue)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_channel *ch;

	/*
	 * The channel may be replaced at this moment. Its memory stays until
	 * skua_en_channels_destroy() has waited for RCU readers.
	 */
	rcu_read_lock();
	ch = READ_ONCE(en->channel[queue]);
	if (ch)
		skua_en_channel_fail(ch, "packets are not completed for %u s",
				     ndev->watchdog_timeo / HZ);
	rcu_read_unlock();
}

/*
 * skua_ib finds the netdev from before its NETDEV_REGISTER event until its
 * NETDEV_UNREGISTER event has been handled: ndo_init and ndo_uninit run under RTNL with
 * these events.
 */
static int skua_en_init(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	skua_set_netdev(en->dev, ndev);
	return 0;
}

static void skua_en_uninit(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	skua_set_netdev(en->dev, NULL);
}

const struct net_device_ops skua_en_netdev_ops = {
	.ndo_init		= skua_en_init,
	.ndo_uninit		= skua_en_uninit,
	.ndo_open		= skua_en_open,
	.ndo_stop		= skua_en_stop,
	.ndo_start_xmit		= skua_en_xmit,
	.ndo_features_check	= skua_en_features_check,
#ifndef SKUA_COMPAT_RX_MODE
	.ndo_set_rx_mode_async	= skua_en_set_rx_mode,
#else
	.ndo_set_rx_mode	= skua_en_set_rx_mode,
#endif
	.ndo_set_mac_address	= skua_en_set_mac,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_change_mtu		= skua_en_change_mtu,
	.ndo_fix_features	= skua_en_fix_features,
	.ndo_set_features	= skua_en_set_features,
	.ndo_get_stats64	= skua_en_get_stats64,
	.ndo_tx_timeout		= skua_en_tx_timeout,
};
