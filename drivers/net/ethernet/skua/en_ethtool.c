// SPDX-License-Identifier: GPL-2.0
/*
 * ethtool: driver information, rings, channels, moderation and RSS.
 */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>

#include "en.h"

static void skua_en_get_drvinfo(struct net_device *ndev, struct ethtool_drvinfo *info)
{
	struct skua_en *en = netdev_priv(ndev);
	u64 fw = skua_limits(en->dev)->fw_version;

	strscpy(info->driver, "skua_en", sizeof(info->driver));
	strscpy(info->bus_info, pci_name(skua_pdev(en->dev)), sizeof(info->bus_info));
	snprintf(info->fw_version, sizeof(info->fw_version), "%u.%u.%u",
		 upper_32_bits(fw), (u32)fw >> 16, (u32)fw & 0xffff);
}

static int skua_en_get_link_ksettings(struct net_device *ndev,
				      struct ethtool_link_ksettings *cmd)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_cmd_query_port_out port;

	ethtool_link_ksettings_zero_link_mode(cmd, supported);
	ethtool_link_ksettings_zero_link_mode(cmd, advertising);
	cmd->base.port = PORT_OTHER;
	cmd->base.autoneg = AUTONEG_DISABLE;
	cmd->base.speed = SPEED_UNKNOWN;
	cmd->base.duplex = DUPLEX_UNKNOWN;
	if (netif_carrier_ok(ndev) && !skua_query_port(en->dev, &port)) {
		cmd->base.speed = le32_to_cpu(port.speed_mbps);
		cmd->base.duplex = DUPLEX_FULL;
	}
	return 0;
}

static void skua_en_get_ringparam(struct net_device *ndev, struct ethtool_ringparam *ring,
				  struct kernel_ethtool_ringparam *kring,
				  struct netlink_ext_ack *extack)
{
	struct skua_en *en = netdev_priv(ndev);
	const struct skua_limits *lim = skua_limits(en->dev);

	ring->rx_max_pending = min_t(u32, SKUA_EN_RING_MAX, lim->max_rq_wqes);
	ring->tx_max_pending = min_t(u32, SKUA_EN_RING_MAX,
				     lim->max_sq_blocks / SKUA_EN_TX_BLOCKS);
	ring->rx_pending = en->conf.ring_rx;
	ring->tx_pending = en->conf.ring_tx;
}

static int skua_en_set_ringparam(struct net_device *ndev, struct ethtool_ringparam *ring,
				 struct kernel_ethtool_ringparam *kring,
				 struct netlink_ext_ack *extack)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_conf conf = en->conf;

	if (ring->rx_pending < SKUA_EN_RING_MIN || ring->tx_pending < SKUA_EN_RING_MIN) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "a ring has at least %d entries", SKUA_EN_RING_MIN);
		return -EINVAL;
	}
	conf.ring_rx = roundup_pow_of_two(ring->rx_pending);
	conf.ring_tx = roundup_pow_of_two(ring->tx_pending);
	if (conf.ring_rx == en->conf.ring_rx && conf.ring_tx == en->conf.ring_tx)
		return 0;
	return skua_en_reconfigure(en, &conf);
}

static void skua_en_get_channels(struct net_device *ndev, struct ethtool_channels *chan)
{
	struct skua_en *en = netdev_priv(ndev);

	chan->max_combined = skua_en_max_channels(en);
	chan->combined_count = en->conf.channels;
}

static int skua_en_set_channels(struct net_device *ndev, struct ethtool_channels *chan)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_conf conf = en->conf;
	u32 i;

	/* The ethtool core has checked the number against get_channels(). */
	conf.channels = chan->combined_count;
	if (conf.channels == en->conf.channels)
		return 0;
	/* A table that the user has set is kept, with its entries reduced to the channels left. */
	if (!netif_is_rxfh_configured(ndev))
		skua_en_rss_default(&conf);
	for (i = 0; i < SKUA_RSS_MAX; i++)
		conf.rss_indir[i] %= conf.channels;
	return skua_en_reconfigure(en, &conf);
}

static int skua_en_get_coalesce(struct net_device *ndev, struct ethtool_coalesce *coal,
				struct kernel_ethtool_coalesce *kcoal,
				struct netlink_ext_ack *extack)
{
	struct skua_en *en = netdev_priv(ndev);

	coal->use_adaptive_rx_coalesce = en->adaptive;
	coal->rx_coalesce_usecs = en->mod_usec;
	coal->rx_max_coalesced_frames = en->mod_count;
	return 0;
}

/* Interrupt moderation of all channels, or of none if one fails. */
static int skua_en_moderate(struct skua_en *en, u32 count, u32 usec,
			    struct netlink_ext_ack *extack)
{
	unsigned int i;
	int err;

	for (i = 0; i < en->conf.channels && en->channel[i]; i++) {
		err = skua_cq_modify(en->dev, &en->channel[i]->rxcq.cq, count, usec);
		if (err)
			goto err_restore;
	}
	return 0;

err_restore:
	NL_SET_ERR_MSG_FMT_MOD(extack, "the device refuses the moderation of channel %u", i);
	while (i--)
		if (skua_cq_modify(en->dev, &en->channel[i]->rxcq.cq, en->mod_count,
				   en->mod_usec))
			netdev_err(en->ndev,
				   "channel %u keeps rx-usecs %u, rx-frames %u: the device refuses the old values\n",
				   i, usec, count);
	return err;
}

/* Turn adaptive moderation on or off. */
static void skua_en_set_adaptive(struct skua_en *en, bool adaptive)
{
	unsigned int i;

	WRITE_ONCE(en->adaptive, adaptive);
	if (adaptive)
		return;
	/* A poll that read @adaptive before it was cleared may queue the work item once more. */
	synchronize_net();
	for (i = 0; i < en->conf.channels && en->channel[i]; i++)
		skua_en_dim_stop(en->channel[i]);
}

static int skua_en_set_coalesce(struct net_device *ndev, struct ethtool_coalesce *coal,
				struct kernel_ethtool_coalesce *kcoal,
				struct netlink_ext_ack *extack)
{
	struct skua_en *en = netdev_priv(ndev);
	bool adaptive = en->adaptive;
	int err;

	if (!(skua_limits(en->dev)->caps & SKUA_CAP_MODERATION)) {
		NL_SET_ERR_MSG_MOD(extack, "the device has no interrupt moderation");
		return -EOPNOTSUPP;
	}
	if (coal->rx_coalesce_usecs > FIELD_MAX(SKUA_MOD_USEC)) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "rx-usecs is at most %lu",
				       FIELD_MAX(SKUA_MOD_USEC));
		return -EINVAL;
	}
	if (coal->rx_max_coalesced_frames > FIELD_MAX(SKUA_MOD_COUNT)) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "rx-frames is at most %lu",
				       FIELD_MAX(SKUA_MOD_COUNT));
		return -EINVAL;
	}
	/* In the device rx-frames can only end the delay of rx-usecs early. */
	if (coal->rx_max_coalesced_frames > 1 && !coal->rx_coalesce_usecs) {
		NL_SET_ERR_MSG_MOD(extack, "rx-frames above 1 needs rx-usecs above 0");
		return -EINVAL;
	}
	/* Stop adaptive moderation first, so that it does not overwrite what is set here. */
	skua_en_set_adaptive(en, false);
	err = skua_en_moderate(en, coal->rx_max_coalesced_frames, coal->rx_coalesce_usecs,
			       extack);
	if (err) {
		skua_en_set_adaptive(en, adaptive);
		return err;
	}
	skua_en_set_adaptive(en, coal->use_adaptive_rx_coalesce);
	en->mod_usec = coal->rx_coalesce_usecs;
	en->mod_count = coal->rx_max_coalesced_frames;
	return 0;
}

/* --- Hash --- */

static u32 skua_en_get_rxfh_key_size(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	return en->rss ? SKUA_RSS_KEY_SIZE : 0;
}

static u32 skua_en_get_rxfh_indir_size(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	return en->rss ? SKUA_RSS_MAX : 0;
}

static int skua_en_get_rxfh(struct net_device *ndev, struct ethtool_rxfh_param *rxfh)
{
	struct skua_en *en = netdev_priv(ndev);

	if (!en->rss)
		return -EOPNOTSUPP;
	rxfh->hfunc = ETH_RSS_HASH_TOP;
	if (rxfh->key)
		memcpy(rxfh->key, en->conf.rss_key, sizeof(en->conf.rss_key));
	if (rxfh->indir)
		memcpy(rxfh->indir, en->conf.rss_indir, sizeof(en->conf.rss_indir));
	return 0;
}

static int skua_en_set_rxfh(struct net_device *ndev, struct ethtool_rxfh_param *rxfh,
			    struct netlink_ext_ack *extack)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_conf conf = en->conf;
	int err;

	if (!en->rss) {
		NL_SET_ERR_MSG_MOD(extack, "the device has no receive side scaling");
		return -EOPNOTSUPP;
	}
	if (rxfh->hfunc != ETH_RSS_HASH_NO_CHANGE && rxfh->hfunc != ETH_RSS_HASH_TOP) {
		NL_SET_ERR_MSG_MOD(extack, "the hash function is Toeplitz");
		return -EOPNOTSUPP;
	}
	if (rxfh->key)
		memcpy(conf.rss_key, rxfh->key, sizeof(conf.rss_key));
	if (rxfh->indir)
		memcpy(conf.rss_indir, rxfh->indir, sizeof(conf.rss_indir));
	if (en->channel[0]) {
		err = skua_en_rss_apply(en, &conf, en->channel, false);
		if (err) {
			NL_SET_ERR_MSG_MOD(extack, "the device refuses the hash key or table");
			return err;
		}
	}
	en->conf = conf;
	return 0;
}

static int skua_en_get_rxfh_fields(struct net_device *ndev, struct ethtool_rxfh_fields *fields)
{
	struct skua_en *en = netdev_priv(ndev);

	if (!en->rss)
		return -EOPNOTSUPP;
	switch (fields->flow_type) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
		fields->data = RXH_IP_SRC | RXH_IP_DST | RXH_L4_B_0_1 | RXH_L4_B_2_3;
		return 0;
	case IPV4_FLOW:
	case IPV6_FLOW:
		fields->data = RXH_IP_SRC | RXH_IP_DST;
		return 0;
	default:
		fields->data = 0;
		return 0;
	}
}

static u32 skua_en_get_rx_ring_count(struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);

	return en->conf.channels;
}

const struct ethtool_ops skua_en_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USE_ADAPTIVE_RX |
				     ETHTOOL_COALESCE_RX_USECS |
				     ETHTOOL_COALESCE_RX_MAX_FRAMES,
	.get_drvinfo		= skua_en_get_drvinfo,
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= skua_en_get_link_ksettings,
	.get_ringparam		= skua_en_get_ringparam,
	.set_ringparam		= skua_en_set_ringparam,
	.get_channels		= skua_en_get_channels,
	.set_channels		= skua_en_set_channels,
	.get_coalesce		= skua_en_get_coalesce,
	.set_coalesce		= skua_en_set_coalesce,
	.get_rxfh_key_size	= skua_en_get_rxfh_key_size,
	.get_rxfh_indir_size	= skua_en_get_rxfh_indir_size,
	.get_rxfh		= skua_en_get_rxfh,
	.set_rxfh		= skua_en_set_rxfh,
	.get_rxfh_fields	= skua_en_get_rxfh_fields,
	.get_rx_ring_count	= skua_en_get_rx_ring_count,
	.get_sset_count		= skua_en_get_sset_count,
	.get_strings		= skua_en_get_strings,
	.get_ethtool_stats	= skua_en_get_ethtool_stats,
	.get_eth_mac_stats	= skua_en_get_eth_mac_stats,
	.get_rmon_stats		= skua_en_get_rmon_stats,
	.get_ts_info		= ethtool_op_get_ts_info,
};
