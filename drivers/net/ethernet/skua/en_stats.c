// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics: of the netdev as a whole, of each queue, of the MAC, and what only
 * "ethtool -S" shows.
 */
#include <linux/ethtool.h>
#include <linux/slab.h>
#include <net/netdev_queues.h>

#include "en.h"

/**
 * skua_en_stats_sum() - add statistics to sums
 * @to: the sums
 * @from: what to add
 */
void skua_en_stats_sum(struct skua_en_stats *to, const struct skua_en_stats *from)
{
	const u64 *f = (const u64 *)from;
	u64 *t = (u64 *)to;
	unsigned int i;

	static_assert(sizeof(*to) % sizeof(u64) == 0);
	for (i = 0; i < sizeof(*to) / sizeof(u64); i++)
		t[i] += f[i];
}

static void skua_en_stats_read(const struct skua_en_channel *ch, struct skua_en_stats *s)
{
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&ch->rx_sync);
		s->rx = ch->rx_stats;
	} while (u64_stats_fetch_retry(&ch->rx_sync, start));
	do {
		start = u64_stats_fetch_begin(&ch->tx_sync);
		s->tx = ch->tx_stats;
	} while (u64_stats_fetch_retry(&ch->tx_sync, start));
	do {
		start = u64_stats_fetch_begin(&ch->xmit_sync);
		s->xmit = ch->xmit_stats;
	} while (u64_stats_fetch_retry(&ch->xmit_sync, start));
}

/**
 * skua_en_stats_add() - add a channel's statistics to sums
 * @to: the sums
 * @ch: the channel
 */
void skua_en_stats_add(struct skua_en_stats *to, const struct skua_en_channel *ch)
{
	struct skua_en_stats s;

	skua_en_stats_read(ch, &s);
	skua_en_stats_sum(to, &s);
}

/* Sums of destroyed channels of all queues. The caller holds en->stats_lock. */
static void skua_en_stats_destroyed(const struct skua_en *en, struct skua_en_stats *s)
{
	unsigned int i;

	*s = (struct skua_en_stats) {};
	for (i = 0; i < SKUA_EN_MAX_CHANNELS; i++)
		skua_en_stats_sum(s, &en->stats[i]);
}

/* --- Of the netdev --- */

/* Counters of the device that go into rtnl_link_stats64, by enum skua_en_hw_stat. */
static const u16 skua_en_hw_counter[SKUA_EN_HW_COUNT] = {
	[SKUA_EN_HW_NO_BUF] = SKUA_CNT_ETH_RX_NO_BUF,
	[SKUA_EN_HW_TOO_LONG] = SKUA_CNT_ETH_RX_TOO_LONG,
	[SKUA_EN_HW_TX_ERR] = SKUA_CNT_ETH_TX_ERR,
};

static u64 *skua_en_device_counters(struct skua_en *en)
{
	u64 *value = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);

	if (value && !skua_query_counters(en->dev, value))
		return value;
	kfree(value);
	return NULL;
}

/**
 * skua_en_hw_stats_start() - begin with the device's counters as they are
 * @en: a new netdev, not yet attached to its device, which is up
 *
 * The netdev's statistics are the increments from here on. If the counters cannot be read,
 * because the device is about to be reset, it is their values after the reset.
 */
void skua_en_hw_stats_start(struct skua_en *en)
{
	u64 *value = skua_en_device_counters(en);
	unsigned int i;

	if (!value)
		return;
	for (i = 0; i < SKUA_EN_HW_COUNT; i++)
		en->hw_seen[i] = value[skua_en_hw_counter[i]];
	kfree(value);
}

/**
 * skua_en_hw_stats_work() - query the device's counters
 * @work: of the netdev
 *
 * The device's counters restart at zero after a reset; the netdev's do not.
 */
void skua_en_hw_stats_work(struct work_struct *work)
{
	struct skua_en *en = container_of(work, struct skua_en, hw_stats_work);
	unsigned int i;
	u64 *value;

	value = READ_ONCE(en->dead) ? NULL : skua_en_device_counters(en);
	if (!value)
		return;
	spin_lock_bh(&en->stats_lock);
	for (i = 0; i < SKUA_EN_HW_COUNT; i++) {
		u64 now = value[skua_en_hw_counter[i]];

		en->hw_stats[i] += now - (now < en->hw_seen[i] ? 0 : en->hw_seen[i]);
		en->hw_seen[i] = now;
	}
	spin_unlock_bh(&en->stats_lock);
	kfree(value);
}

/**
 * skua_en_get_stats64() - statistics of the netdev
 * @ndev: the netdev
 * @stats: gets them
 *
 * Context: may not sleep. Counters of the device are those of the last query; each call
 * starts another one.
 */
void skua_en_get_stats64(struct net_device *ndev, struct rtnl_link_stats64 *stats)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_stats s;
	unsigned int i;

	spin_lock_bh(&en->stats_lock);
	skua_en_stats_destroyed(en, &s);
	for (i = 0; i < SKUA_EN_MAX_CHANNELS; i++)
		if (en->channel[i])
			skua_en_stats_add(&s, en->channel[i]);
	stats->rx_missed_errors = en->hw_stats[SKUA_EN_HW_NO_BUF];
	stats->rx_length_errors = en->hw_stats[SKUA_EN_HW_TOO_LONG];
	stats->tx_errors = en->hw_stats[SKUA_EN_HW_TX_ERR];
	spin_unlock_bh(&en->stats_lock);
	if (!READ_ONCE(en->dead))
		schedule_work(&en->hw_stats_work);

	stats->rx_packets = s.rx.packets;
	stats->rx_bytes = s.rx.bytes;
	stats->multicast = s.rx.multicast;
	stats->rx_errors = s.rx.errors + stats->rx_length_errors;
	stats->rx_dropped = s.rx.dropped;
	stats->tx_packets = s.tx.packets;
	stats->tx_bytes = s.tx.bytes;
	stats->tx_errors += s.tx.errors;
	stats->tx_dropped = s.xmit.dropped;
}

/* --- Of each queue --- */

static void skua_en_qstats_rx(const struct skua_en_rx_stats *rx,
			      struct netdev_queue_stats_rx *stats)
{
	stats->packets = rx->packets;
	stats->bytes = rx->bytes;
	stats->alloc_fail = rx->alloc_fail;
	stats->csum_unnecessary = rx->csum_ok;
	stats->csum_none = rx->csum_none;
	stats->csum_bad = rx->csum_bad;
	stats->hw_gro_packets = rx->gro_packets;
	stats->hw_gro_bytes = rx->gro_bytes;
	stats->hw_gro_wire_packets = rx->gro_wire_packets;
	stats->hw_gro_wire_bytes = rx->gro_wire_bytes;
}

static void skua_en_qstats_tx(const struct skua_en_stats *s, struct netdev_queue_stats_tx *stats)
{
	stats->packets = s->tx.packets;
	stats->bytes = s->tx.bytes;
	stats->needs_csum = s->tx.needs_csum;
	stats->csum_none = s->tx.packets - s->tx.needs_csum;
	stats->hw_gso_packets = s->tx.gso_packets;
	stats->hw_gso_bytes = s->tx.gso_bytes;
	stats->hw_gso_wire_packets = s->tx.gso_wire_packets;
	stats->hw_gso_wire_bytes = s->tx.gso_wire_bytes;
	stats->stop = s->xmit.stopped;
	stats->wake = s->tx.woken;
}

static void skua_en_queue_stats_rx(struct net_device *ndev, int idx,
				   struct netdev_queue_stats_rx *stats)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_stats s;

	if (!en->channel[idx])
		return;
	skua_en_stats_read(en->channel[idx], &s);
	skua_en_qstats_rx(&s.rx, stats);
}

static void skua_en_queue_stats_tx(struct net_device *ndev, int idx,
				   struct netdev_queue_stats_tx *stats)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_stats s;

	if (!en->channel[idx])
		return;
	skua_en_stats_read(en->channel[idx], &s);
	skua_en_qstats_tx(&s, stats);
}

/* Sums of destroyed channels. */
static void skua_en_base_stats(struct net_device *ndev, struct netdev_queue_stats_rx *rx,
			       struct netdev_queue_stats_tx *tx)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_stats s;

	spin_lock_bh(&en->stats_lock);
	skua_en_stats_destroyed(en, &s);
	spin_unlock_bh(&en->stats_lock);
	skua_en_qstats_rx(&s.rx, rx);
	skua_en_qstats_tx(&s, tx);
}

/* Called under RTNL, which protects the array of channels. */
const struct netdev_stat_ops skua_en_stat_ops = {
	.get_queue_stats_rx	= skua_en_queue_stats_rx,
	.get_queue_stats_tx	= skua_en_queue_stats_tx,
	.get_base_stats		= skua_en_base_stats,
};

/* --- Of the MAC: Ethernet and RoCE frames --- */

/**
 * skua_en_get_eth_mac_stats() - counters of IEEE 802.3 that the device has
 * @ndev: the netdev
 * @mac: gets them
 *
 * Frames that the device loops back to itself count in both directions.
 */
void skua_en_get_eth_mac_stats(struct net_device *ndev, struct ethtool_eth_mac_stats *mac)
{
	struct skua_en *en = netdev_priv(ndev);
	u64 *value = skua_en_device_counters(en);

	if (!value)
		return;
	mac->FramesTransmittedOK = value[SKUA_CNT_ETH_TX_PKTS] + value[SKUA_CNT_RDMA_TX_PKTS];
	mac->FramesReceivedOK = value[SKUA_CNT_ETH_RX_PKTS] + value[SKUA_CNT_RDMA_RX_PKTS];
	/* IEEE 802.3 counts data and padding, without addresses and type. */
	mac->OctetsTransmittedOK = value[SKUA_CNT_ETH_TX_BYTES] + value[SKUA_CNT_RDMA_TX_BYTES] -
				   ETH_HLEN * mac->FramesTransmittedOK;
	mac->OctetsReceivedOK = value[SKUA_CNT_ETH_RX_BYTES] + value[SKUA_CNT_RDMA_RX_BYTES] -
				ETH_HLEN * mac->FramesReceivedOK;
	mac->FramesLostDueToIntMACXmitError = value[SKUA_CNT_ETH_TX_ERR];
	mac->FramesLostDueToIntMACRcvError = value[SKUA_CNT_ETH_RX_NO_BUF];
	mac->FrameTooLongErrors = value[SKUA_CNT_ETH_RX_TOO_LONG];
	kfree(value);
}

/**
 * skua_en_get_rmon_stats() - counters of RFC 2819 that the device has
 * @ndev: the netdev
 * @rmon: gets them
 * @ranges: of a histogram, which the device does not have
 */
void skua_en_get_rmon_stats(struct net_device *ndev, struct ethtool_rmon_stats *rmon,
			    const struct ethtool_rmon_hist_range **ranges)
{
	struct skua_en *en = netdev_priv(ndev);
	u64 *value = skua_en_device_counters(en);

	if (!value)
		return;
	rmon->oversize_pkts = value[SKUA_CNT_ETH_RX_TOO_LONG];
	kfree(value);
}

/* --- ethtool -S: per queue what qstats do not have, then the device's counters --- */

static const char skua_en_channel_names[][ETH_GSTRING_LEN] = {
	"tx%u_dropped", "tx%u_errors", "rx%u_dropped", "rx%u_errors", "q%u_restarts",
};

#define SKUA_EN_CHANNEL_STATS	ARRAY_SIZE(skua_en_channel_names)

/* All of the device's counters except the RDMA group, which "rdma statistic" shows. */
static const struct {
	const char *name;
	u16 index;
	u16 group;
} skua_en_device_stats[] = {
#define X(id, grp, user, text) { #user, SKUA_CNT_##id, SKUA_CNT_GROUP_##grp },
	SKUA_COUNTER_TABLE(X)
#undef X
};

static unsigned int skua_en_device_count(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(skua_en_device_stats); i++)
		n += skua_en_device_stats[i].group != SKUA_CNT_GROUP_RDMA;
	return n;
}

int skua_en_get_sset_count(struct net_device *ndev, int set)
{
	struct skua_en *en = netdev_priv(ndev);

	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return en->conf.channels * SKUA_EN_CHANNEL_STATS + skua_en_device_count();
}

void skua_en_get_strings(struct net_device *ndev, u32 set, u8 *p)
{
	struct skua_en *en = netdev_priv(ndev);
	unsigned int i, j;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < en->conf.channels; i++)
		for (j = 0; j < SKUA_EN_CHANNEL_STATS; j++)
			ethtool_sprintf(&p, skua_en_channel_names[j], i);
	for (i = 0; i < ARRAY_SIZE(skua_en_device_stats); i++)
		if (skua_en_device_stats[i].group != SKUA_CNT_GROUP_RDMA)
			ethtool_puts(&p, skua_en_device_stats[i].name);
}

/* Of the queue's channels up to now, in the order of skua_en_channel_names. */
static void skua_en_channel_stats(struct skua_en *en, unsigned int i, u64 *data)
{
	struct skua_en_stats s;

	spin_lock_bh(&en->stats_lock);
	s = en->stats[i];
	if (en->channel[i])
		skua_en_stats_add(&s, en->channel[i]);
	spin_unlock_bh(&en->stats_lock);
	*data++ = s.xmit.dropped;
	*data++ = s.tx.errors;
	*data++ = s.rx.dropped;
	*data++ = s.rx.errors;
	*data++ = en->restarts[i];
}

void skua_en_get_ethtool_stats(struct net_device *ndev, struct ethtool_stats *stats, u64 *data)
{
	struct skua_en *en = netdev_priv(ndev);
	u64 *value = skua_en_device_counters(en);
	unsigned int i;

	for (i = 0; i < en->conf.channels; i++, data += SKUA_EN_CHANNEL_STATS)
		skua_en_channel_stats(en, i, data);
	if (!value)
		return;
	for (i = 0; i < ARRAY_SIZE(skua_en_device_stats); i++)
		if (skua_en_device_stats[i].group != SKUA_CNT_GROUP_RDMA)
			*data++ = value[skua_en_device_stats[i].index];
	kfree(value);
}
