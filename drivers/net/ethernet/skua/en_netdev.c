// SPDX-License-Identifier: GPL-2.0
/*
 * The netdev's operations: up and down, addresses and filters, MTU, link,
 * statistics.
 */
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <net/netdev_queues.h>

#include "en.h"

static void skua_en_stats_add(struct rtnl_link_stats64 *to, struct skua_en_channel *ch)
{
	struct skua_en_xmit_stats xmit;
	struct skua_en_rx_stats rx;
	struct skua_en_tx_stats tx;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&ch->rx_sync);
		rx = ch->rx_stats;
	} while (u64_stats_fetch_retry(&ch->rx_sync, start));
	do {
		start = u64_stats_fetch_begin(&ch->tx_sync);
		tx = ch->tx_stats;
	} while (u64_stats_fetch_retry(&ch->tx_sync, start));
	do {
		start = u64_stats_fetch_begin(&ch->xmit_sync);
		xmit = ch->xmit_stats;
	} while (u64_stats_fetch_retry(&ch->xmit_sync, start));

	to->rx_packets += rx.packets;
	to->rx_bytes += rx.bytes;
	to->multicast += rx.multicast;
	to->rx_errors += rx.errors;
	to->rx_dropped += rx.alloc_fail;
	to->tx_packets += tx.packets;
	to->tx_bytes += tx.bytes;
	to->tx_dropped += xmit.dropped;
	to->tx_errors += tx.errors;
}

static int skua_en_modify_port(struct skua_en *en, struct skua_cmd_modify_port_in *in)
{
	if (READ_ONCE(en->dead))
		return -EIO;
	return skua_modify_port(en->dev, in);
}

/**
 * skua_en_link() - carry the device's link state to the netdev
 * @en: the netdev
 *
 * Context: process.
 */
void skua_en_link(struct skua_en *en)
{
	struct skua_cmd_query_port_out port;

	mutex_lock(&en->link_lock);
	if (en->link_watch && !READ_ONCE(en->dead) && !skua_query_port(en->dev, &port) &&
	    (le32_to_cpu(port.state) & SKUA_PORT_LINK_UP))
		netif_carrier_on(en->ndev);
	else
		netif_carrier_off(en->ndev);
	mutex_unlock(&en->link_lock);
}

/* Have the carrier follow the link, or stay off. */
static void skua_en_link_watch(struct skua_en *en, bool watch)
{
	mutex_lock(&en->link_lock);
	en->link_watch = watch;
	mutex_unlock(&en->link_lock);
	skua_en_link(en);
}

static void skua_en_filters_clear(struct skua_en *en)
{
	while (en->filters)
		skua_flow_destroy(en->dev, en->filter[--en->filters]);
}

static int skua_en_filter_add(struct skua_en *en, const u8 *mac)
{
	struct skua_flow flow = {};
	int err;

	flow.flags = cpu_to_le32(SKUA_FLOW_RSS) |
		     le32_encode_bits(SKUA_FLOW_PRIO_NETDEV, SKUA_FLOW_PRIO);
	flow.dest = cpu_to_le32(en->rss_index);
	ether_addr_copy(flow.value.dmac, mac);
	eth_broadcast_addr(flow.mask.dmac);
	err = skua_flow_create(en->dev, &en->filter[en->filters], &flow);
	if (err)
		return err;
	ether_addr_copy(en->filter_mac[en->filters++], mac);
	return 0;
}

/* Is the list of filters in force just this one? */
static bool skua_en_filters_same(const struct skua_en *en, const u8 (*mac)[ETH_ALEN],
				 unsigned int n)
{
	return n == en->filters && !memcmp(mac, en->filter_mac, n * ETH_ALEN);
}

/**
 * skua_en_rx_mode_work() - bring filters and modes of the device up to date
 * @work: of the netdev
 *
 * The address lists are copied under the address lock, which may not sleep;
 * commands do.
 */
void skua_en_rx_mode_work(struct work_struct *work)
{
	struct skua_en *en = container_of(work, struct skua_en, rx_mode);
	u8 (*mac)[ETH_ALEN] __free(kfree) = kcalloc(SKUA_EN_MAX_FILTERS, ETH_ALEN, GFP_KERNEL);
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI),
	};
	struct net_device *ndev = en->ndev;
	struct netdev_hw_addr *ha;
	bool promisc, allmulti;
	unsigned int n = 0, i;

	if (!mac)
		return;
	rtnl_lock();
	if (!netif_running(ndev) || !en->channel[0] || READ_ONCE(en->dead))
		goto out;

	netif_addr_lock_bh(ndev);
	promisc = ndev->flags & IFF_PROMISC || netdev_uc_count(ndev) > SKUA_EN_MAX_FILTERS;
	allmulti = ndev->flags & IFF_ALLMULTI ||
		   netdev_uc_count(ndev) + netdev_mc_count(ndev) > SKUA_EN_MAX_FILTERS;
	if (!promisc)
		netdev_for_each_uc_addr(ha, ndev)
			ether_addr_copy(mac[n++], ha->addr);
	if (!allmulti)
		netdev_for_each_mc_addr(ha, ndev)
			ether_addr_copy(mac[n++], ha->addr);
	netif_addr_unlock_bh(ndev);

	if (!skua_en_filters_same(en, mac, n)) {
		skua_en_filters_clear(en);
		for (i = 0; i < n; i++) {
			if (skua_en_filter_add(en, mac[i])) {
				promisc |= !is_multicast_ether_addr(mac[i]);
				allmulti = true;
			}
		}
	}
	in.promisc = cpu_to_le32(promisc);
	in.allmulti = cpu_to_le32(allmulti || promisc);
	if (skua_en_modify_port(en, &in))
		netdev_warn(ndev, "cannot set receive mode\n");
out:
	rtnl_unlock();
}

static int skua_en_port_up(struct skua_en *en)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_ENABLE | SKUA_PORT_M_MTU |
				    SKUA_PORT_M_MAC | SKUA_PORT_M_DFLT),
		.enable = cpu_to_le32(1),
		.mtu = cpu_to_le16(en->ndev->mtu),
		.dflt = cpu_to_le32(en->rss_index | SKUA_PORT_DFLT_RSS),
	};

	ether_addr_copy(in.mac, en->ndev->dev_addr);
	return skua_en_modify_port(en, &in);
}

static void skua_en_port_down(struct skua_en *en)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(SKUA_PORT_M_ENABLE | SKUA_PORT_M_DFLT |
				    SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI),
		.dflt = cpu_to_le32(SKUA_PORT_NO_DFLT),
	};

	skua_en_modify_port(en, &in);
}

static void skua_en_channels_destroy(struct skua_en *en, unsigned int n)
{
	struct skua_en_channel *ch;

	while (n--) {
		ch = en->channel[n];
		spin_lock_bh(&en->stats_lock);
		skua_en_stats_add(&en->stats, ch);
		en->channel[n] = NULL;
		spin_unlock_bh(&en->stats_lock);
		skua_en_channel_destroy(ch);
	}
}

/**
 * skua_en_up() - make the channels and open the port
 * @en: the netdev
 *
 * Context: RTNL.
 * Return: 0 or a negative errno, with nothing left behind.
 */
int skua_en_up(struct skua_en *en)
{
	struct skua_en_channel *ch;
	unsigned int i;
	int err;

	if (READ_ONCE(en->dead))
		return -EIO;
	for (i = 0; i < en->channels; i++) {
		ch = skua_en_channel_create(en, i);
		if (IS_ERR(ch)) {
			err = PTR_ERR(ch);
			goto err_channels;
		}
		spin_lock_bh(&en->stats_lock);
		en->channel[i] = ch;
		spin_unlock_bh(&en->stats_lock);
	}
	err = netif_set_real_num_queues(en->ndev, en->channels, en->channels);
	if (err)
		goto err_channels;
	err = skua_en_rss_apply(en, true);
	if (err)
		goto err_channels;
	for (i = 0; i < en->channels; i++)
		skua_en_channel_start(en->channel[i]);
	err = skua_en_port_up(en);
	if (err)
		goto err_stop;
	/* Not only start: packets may have been waiting during a restart. */
	netif_tx_wake_all_queues(en->ndev);
	skua_en_link_watch(en, true);
	schedule_work(&en->rx_mode);
	return 0;

err_stop:
	for (i = en->channels; i--;)
		skua_en_channel_stop(en->channel[i]);
	skua_rss_destroy(en->dev, en->rss_index);
	i = en->channels;
err_channels:
	skua_en_channels_destroy(en, i);
	return err;
}

/**
 * skua_en_down() - undo skua_en_up()
 * @en: the netdev
 *
 * Context: RTNL. Works with a dead device too.
 */
void skua_en_down(struct skua_en *en)
{
	unsigned int i;

	skua_en_link_watch(en, false);
	skua_en_port_down(en);
	skua_en_filters_clear(en);
	for (i = en->channels; i--;)
		skua_en_channel_stop(en->channel[i]);
	/* Only now: NAPI wakes queues that have room again. */
	netif_tx_disable(en->ndev);
	skua_rss_destroy(en->dev, en->rss_index);
	skua_en_channels_destroy(en, en->channels);
}

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

static void skua_en_set_rx_mode(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	schedule_work(&en->rx_mode);
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
		if (err)
			return err;
	}
	eth_commit_mac_addr_change(ndev, p);
	return 0;
}

static int skua_en_change_mtu(struct net_device *ndev, int mtu)
{
	struct skua_en *en = netdev_priv(ndev);
	int old = ndev->mtu;
	int err;

	if (!netif_running(ndev)) {
		WRITE_ONCE(ndev->mtu, mtu);
		return 0;
	}
	skua_en_down(en);
	WRITE_ONCE(ndev->mtu, mtu);
	err = skua_en_up(en);
	if (!err)
		return 0;
	netdev_err(ndev, "no memory for MTU %d: going back to %d\n", mtu, old);
	WRITE_ONCE(ndev->mtu, old);
	if (skua_en_up(en))
		netdev_err(ndev, "cannot start the queues again: set the interface down and up\n");
	return err;
}

static void skua_en_get_stats64(struct net_device *ndev, struct rtnl_link_stats64 *stats)
{
	struct skua_en *en = netdev_priv(ndev);
	unsigned int i;

	spin_lock_bh(&en->stats_lock);
	*stats = en->stats;
	for (i = 0; i < SKUA_EN_MAX_CHANNELS; i++)
		if (en->channel[i])
			skua_en_stats_add(stats, en->channel[i]);
	spin_unlock_bh(&en->stats_lock);
}

static void skua_en_tx_timeout(struct net_device *ndev, unsigned int queue)
{
	struct skua_en *en = netdev_priv(ndev);

	netdev_err(ndev, "transmit queue %u stands still\n", queue);
	if (!READ_ONCE(en->dead))
		schedule_work(&en->reset);
}

/**
 * skua_en_reset_work() - make all queues anew
 * @work: of the netdev
 */
void skua_en_reset_work(struct work_struct *work)
{
	struct skua_en *en = container_of(work, struct skua_en, reset);
	int err;

	rtnl_lock();
	if (netif_running(en->ndev) && en->channel[0] && !READ_ONCE(en->dead)) {
		skua_en_down(en);
		err = skua_en_up(en);
		if (err)
			netdev_err(en->ndev, "cannot start the queues again: %pe\n",
				   ERR_PTR(err));
	}
	rtnl_unlock();
}

/*
 * The RDMA driver finds the netdev from the moment it is announced until its end
 * was: both are under RTNL, so that no event of it can come in between.
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
	.ndo_set_rx_mode	= skua_en_set_rx_mode,
	.ndo_set_mac_address	= skua_en_set_mac,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_change_mtu		= skua_en_change_mtu,
	.ndo_get_stats64	= skua_en_get_stats64,
	.ndo_tx_timeout		= skua_en_tx_timeout,
};
