// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit: an skb becomes one WQE that gathers head and fragments; its
 * completion unmaps and frees it.
 */
#include <kunit/visibility.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/netdev_queues.h>

#include <skua/cqe_parse.h>
#include <skua/sq_event.h>
#include <skua/wqe_build.h>

#include "en.h"

/* Number of free blocks in the send ring. */
static u32 skua_en_tx_free(const struct skua_en_channel *ch)
{
	/* Pairs with the release in skua_en_tx_poll(). */
	return BIT(ch->log_sq) - (READ_ONCE(ch->tx_pi) - smp_load_acquire(&ch->tx_ci));
}

/* DMA mapping of segment @seg of the WQE at @index. */
static struct skua_en_tx_dma *skua_en_tx_dma(const struct skua_en_channel *ch, u32 index,
					     unsigned int seg)
{
	u32 mask = SKUA_WQE_SEGS_PER_BLOCK * BIT(ch->log_sq) - 1;

	return &ch->tx_dma[(index * SKUA_WQE_SEGS_PER_BLOCK + seg) & mask];
}

/*
 * Has the packet an 802.1ad tag? The stack writes it into the frame, and the device parses behind
 * an 802.1Q tag only.
 */
static bool skua_en_provider_tagged(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_8021AD) ||
	       (skb_vlan_tag_present(skb) && skb->vlan_proto == htons(ETH_P_8021AD));
}

/* Can the device compute this packet's checksum: TCP or UDP directly behind the IP header? */
static bool skua_en_csum_fits(const struct sk_buff *skb)
{
	int off = skb_network_offset(skb);

	switch (vlan_get_protocol(skb)) {
	case htons(ETH_P_IP):
		if (ip_hdr(skb)->protocol != IPPROTO_TCP && ip_hdr(skb)->protocol != IPPROTO_UDP)
			return false;
		off += ip_hdrlen(skb);
		break;
	case htons(ETH_P_IPV6):
		/* The device does not parse extension headers. */
		if (ipv6_hdr(skb)->nexthdr != IPPROTO_TCP &&
		    ipv6_hdr(skb)->nexthdr != IPPROTO_UDP)
			return false;
		off += sizeof(struct ipv6hdr);
		break;
	default:
		return false;
	}
	return skb_checksum_start_offset(skb) == off;
}

/* Segments of TCP's own are far larger; those from outside may have any size. */
static bool skua_en_mss_fits(const struct sk_buff *skb)
{
	u32 mss = skb_shinfo(skb)->gso_size;

	return mss <= FIELD_MAX(SKUA_WQE_ETH_MSS) && skb->len <= mss * SKUA_WQE_ETH_LSO_FRAMES;
}

/**
 * skua_en_features_check() - which offloads this packet may use
 * @skb: the packet
 * @ndev: the netdev
 * @features: what the netdev offers
 *
 * Return: @features without what the device cannot do for @skb.
 */
netdev_features_t skua_en_features_check(struct sk_buff *skb, struct net_device *ndev,
					 netdev_features_t features)
{
	/* Removes these offloads from packets with two tags. */
	features = vlan_features_check(skb, features);
	if (skb_is_gso(skb) && !skua_en_mss_fits(skb))
		features &= ~NETIF_F_GSO_MASK;
	if (skb->encapsulation || skua_en_provider_tagged(skb))
		return features & ~(NETIF_F_CSUM_MASK | NETIF_F_GSO_MASK);
	if (skb->ip_summed == CHECKSUM_PARTIAL && !skb_csum_is_sctp(skb) &&
	    !skua_en_csum_fits(skb))
		return features & ~(NETIF_F_CSUM_MASK | NETIF_F_GSO_MASK);
	return features;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_features_check);

static void skua_en_tx_unmap(struct skua_en_channel *ch, u32 index)
{
	struct skua_en_tx_info *info = &ch->tx_info[index & (BIT(ch->log_sq) - 1)];
	struct device *dma = ch->en->dma;
	const struct skua_en_tx_dma *map;
	u16 i;

	for (i = 0; i < info->nsegs; i++) {
		map = skua_en_tx_dma(ch, index, 1 + i);
		if (i == 0)
			dma_unmap_single(dma, map->addr, map->len, DMA_TO_DEVICE);
		else
			dma_unmap_page(dma, map->addr, map->len, DMA_TO_DEVICE);
	}
	info->nsegs = 0;
}

static void skua_en_tx_seg(struct skua_en_channel *ch, u32 index, dma_addr_t addr, u32 len)
{
	struct skua_en_tx_info *info = &ch->tx_info[index & (BIT(ch->log_sq) - 1)];
	unsigned int seg = 1 + info->nsegs++;

	*skua_en_tx_dma(ch, index, seg) = (struct skua_en_tx_dma) { .addr = addr, .len = len };
	skua_wqe_data_set(skua_sq_seg(&ch->sq, index, seg), addr, SKUA_RESERVED_LKEY, len);
}

/* Map head and fragments into the WQE at @index. */
static int skua_en_tx_map(struct skua_en_channel *ch, struct sk_buff *skb, u32 index)
{
	struct skua_en_tx_info *info = &ch->tx_info[index & (BIT(ch->log_sq) - 1)];
	struct device *dma = ch->en->dma;
	dma_addr_t addr;
	u32 len;
	int i;

	info->nsegs = 0;
	len = skb_headlen(skb);
	addr = dma_map_single(dma, skb->data, len, DMA_TO_DEVICE);
	if (dma_mapping_error(dma, addr))
		return -ENOMEM;
	skua_en_tx_seg(ch, index, addr, len);

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		len = skb_frag_size(frag);
		addr = skb_frag_dma_map(dma, frag, 0, len, DMA_TO_DEVICE);
		if (dma_mapping_error(dma, addr)) {
			skua_en_tx_unmap(ch, index);
			return -ENOMEM;
		}
		skua_en_tx_seg(ch, index, addr, len);
	}
	return 0;
}

/* Flags of the WQE for @skb; VLAN tag and segment size for its Ethernet word. */
static u32 skua_en_tx_flags(const struct sk_buff *skb, u32 *tci, u32 *mss)
{
	u32 flags = SKUA_WQE_F_SIGNALED;

	*tci = 0;
	*mss = 0;
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		flags |= SKUA_WQE_F_L4_CSUM;
	if (skb_vlan_tag_present(skb)) {
		flags |= SKUA_WQE_F_VLAN;
		*tci = skb_vlan_tag_get(skb);
	}
	if (skb_is_gso(skb)) {
		flags |= SKUA_WQE_F_LSO | SKUA_WQE_F_L3_CSUM | SKUA_WQE_F_L4_CSUM;
		*mss = skb_shinfo(skb)->gso_size;
	}
	return flags;
}

/* What the device makes of a packet. It cuts TCP segments only. */
static void skua_en_tx_wire(struct skua_en_tx_info *info, const struct sk_buff *skb, u32 mss)
{
	info->frames = 1;
	info->hdr = 0;
	if (mss) {
		info->hdr = skb_tcp_all_headers(skb);
		info->frames = DIV_ROUND_UP(skb->len - info->hdr, mss);
	}
}

static void skua_en_tx_doorbell(struct skua_en_channel *ch)
{
	u32 old = le32_to_cpu(ch->dbr->sq_pi);

	/* WQEs before the record; the doorbell (writeq) orders the record before itself. */
	dma_wmb();
	if (skua_sq_record(ch->dbr, ch->tx_pi, old, ch->suppress))
		skua_ring_db(skua_kernel_uar(ch->en->dev), SKUA_UAR_SQ, ch->tx_pi,
			     ch->qp.obj.num);
}

static void skua_en_tx_count_drop(struct skua_en_channel *ch)
{
	u64_stats_update_begin(&ch->xmit_sync);
	ch->xmit_stats.dropped++;
	u64_stats_update_end(&ch->xmit_sync);
}

static void skua_en_tx_count_stop(struct skua_en_channel *ch)
{
	u64_stats_update_begin(&ch->xmit_sync);
	ch->xmit_stats.stopped++;
	u64_stats_update_end(&ch->xmit_sync);
}

/**
 * skua_en_xmit() - send a packet
 * @skb: the packet
 * @ndev: the netdev
 *
 * Context: the queue's transmit lock, soft interrupts off.
 * Return: NETDEV_TX_OK (the packet is taken, or dropped and counted), or
 * NETDEV_TX_BUSY, which a correctly stopped queue never meets.
 */
netdev_tx_t skua_en_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	struct skua_en *en = netdev_priv(ndev);
	struct skua_en_channel *ch = en->channel[skb_get_queue_mapping(skb)];
	u32 nseg, blocks, flags, tci, mss, index;
	struct skua_en_tx_info *info;
	struct skua_wqe_ctrl *ctrl;
	struct netdev_queue *txq;
	bool more;

	/*
	 * Queues without a channel are not stopped, since the watchdog would report a
	 * timeout of a stopped queue. pktgen and PACKET_QDISC_BYPASS can send to such a
	 * queue after ethtool has lowered the number of channels.
	 */
	if (unlikely(!ch)) {
		dev_core_stats_tx_dropped_inc(ndev);
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	txq = netdev_get_tx_queue(ndev, ch->index);
	index = ch->tx_pi;
	if (unlikely(!netif_txq_maybe_stop(txq, skua_en_tx_free(ch), SKUA_EN_TX_MAX_BLOCKS,
					   2 * SKUA_EN_TX_MAX_BLOCKS)))
		return NETDEV_TX_BUSY;
	more = netdev_xmit_more();
	if (unlikely(skb_put_padto(skb, ETH_ZLEN)))
		goto drop;
	if (unlikely(skua_en_tx_map(ch, skb, index))) {
		dev_kfree_skb_any(skb);
		goto drop;
	}

	info = &ch->tx_info[index & (BIT(ch->log_sq) - 1)];
	nseg = 1 + info->nsegs;
	blocks = skua_wqe_blocks(nseg);
	info->skb = skb;
	info->blocks = blocks;
	flags = skua_en_tx_flags(skb, &tci, &mss);
	skua_en_tx_wire(info, skb, mss);
	ctrl = skua_sq_seg(&ch->sq, index, 0);
	skua_wqe_ctrl_set(ctrl, SKUA_WQE_ETH, nseg, index, flags);
	skua_wqe_eth_set(ctrl, tci, mss);

	skb_tx_timestamp(skb);
	if (__netdev_tx_sent_queue(txq, skb->len, more))
		more = false;
	/*
	 * Pairs with the acquire in skua_en_tx_check(): @info is complete. A device that
	 * misbehaves may complete the WQE before its doorbell: do not touch @skb any more.
	 */
	smp_store_release(&ch->tx_pi, index + blocks);
	if (netif_txq_maybe_stop(txq, skua_en_tx_free(ch), SKUA_EN_TX_MAX_BLOCKS,
				 2 * SKUA_EN_TX_MAX_BLOCKS) <= 0) {
		skua_en_tx_count_stop(ch);
		more = false;
	}
	if (!more)
		skua_en_tx_doorbell(ch);
	return NETDEV_TX_OK;

drop:
	skua_en_tx_count_drop(ch);
	/* Ring for earlier packets of this burst, which left the doorbell to this one. */
	if (!more && ch->tx_pi != le32_to_cpu(ch->dbr->sq_pi))
		skua_en_tx_doorbell(ch);
	return NETDEV_TX_OK;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_xmit);

/* Packets that are freed, as the stack counts them. */
struct skua_en_tx_freed {
	unsigned int packets;
	unsigned int bytes;
};

static void skua_en_tx_count(struct skua_en_tx_stats *stats, const struct skua_en_tx_info *info)
{
	const struct sk_buff *skb = info->skb;
	u32 wire = skb->len + (info->frames - 1) * info->hdr;

	stats->packets += info->frames;
	stats->bytes += wire;
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		stats->needs_csum += info->frames;
	if (info->hdr) {
		stats->gso_packets++;
		stats->gso_bytes += skb->len;
		stats->gso_wire_packets += info->frames;
		stats->gso_wire_bytes += wire;
	}
}

/* Unmap and free the packet of the WQE at @index. Return: the WQE's blocks. */
static u32 skua_en_tx_retire(struct skua_en_channel *ch, u32 index, int budget,
			     struct skua_en_tx_freed *freed)
{
	struct skua_en_tx_info *info = &ch->tx_info[index & (BIT(ch->log_sq) - 1)];

	skua_en_tx_unmap(ch, index);
	freed->packets++;
	freed->bytes += info->skb->len;
	napi_consume_skb(info->skb, budget);
	info->skb = NULL;
	return info->blocks;
}

/* Does the completion say that the WQE at @ci, of those up to @pi, was sent? */
static bool skua_en_tx_sent(const struct skua_cqe *cqe, u32 ci, u32 pi)
{
	return ci != pi && skua_cqe_wqe_index(cqe) == (ci & 0xffff) &&
	       skua_cqe_status(cqe) == SKUA_CQE_OK;
}

/*
 * Check a completion against the WQE it must be for: every WQE reports, in order. On an
 * error status or an impossible index the queue has failed.
 */
static bool skua_en_tx_check(struct skua_en_channel *ch, const struct skua_cqe *cqe, u32 ci)
{
	/* Pairs with the release in skua_en_xmit(). */
	u32 pi = smp_load_acquire(&ch->tx_pi);
	u32 status;

	if (likely(skua_en_tx_sent(cqe, ci, pi)))
		return true;
	status = skua_cqe_status(cqe);
	if (status != SKUA_CQE_OK)
		skua_en_channel_fail(ch, "send status %u, vendor error 0x%x", status,
				     le32_get_bits(cqe->own, SKUA_CQE_VENDOR));
	else
		skua_en_channel_fail(ch, "send completion of block %u, expected block %u of %u",
				     skua_cqe_wqe_index(cqe), ci & 0xffff, pi - ci);
	return false;
}

/**
 * skua_en_tx_poll() - free the packets that the device has sent
 * @ch: the channel
 * @budget: NAPI budget; 0: called by netpoll
 *
 * Return: true if there may be more.
 */
bool skua_en_tx_poll(struct skua_en_channel *ch, int budget)
{
	struct netdev_queue *txq = netdev_get_tx_queue(ch->en->ndev, ch->index);
	struct skua_en_tx_freed freed = {};
	struct skua_en_tx_stats stats = {};
	const struct skua_cqe *cqe;
	u32 ci = ch->tx_ci;

	while (freed.packets < SKUA_EN_TX_BUDGET) {
		cqe = skua_en_cq_next(&ch->txcq);
		if (!cqe)
			break;
		if (unlikely(!skua_en_tx_check(ch, cqe, ci))) {
			stats.errors++;
			break;
		}
		skua_en_tx_count(&stats, &ch->tx_info[ci & (BIT(ch->log_sq) - 1)]);
		ci += skua_en_tx_retire(ch, ci, budget, &freed);
	}
	if (!freed.packets && !stats.errors)
		return false;
	/* Free CQ entries before WQEs, see skua_en_cq_publish(). */
	skua_en_cq_publish(&ch->txcq);
	/* Pairs with the acquire in skua_en_tx_free(): xmit may reuse the entries. */
	smp_store_release(&ch->tx_ci, ci);

	/* It returns 0 if it has woken the queue. */
	stats.woken = !__netif_txq_completed_wake(txq, freed.packets, freed.bytes,
						  skua_en_tx_free(ch), 2 * SKUA_EN_TX_MAX_BLOCKS,
						  READ_ONCE(ch->en->dead));

	u64_stats_update_begin(&ch->tx_sync);
	ch->tx_stats.packets += stats.packets;
	ch->tx_stats.bytes += stats.bytes;
	ch->tx_stats.needs_csum += stats.needs_csum;
	ch->tx_stats.gso_packets += stats.gso_packets;
	ch->tx_stats.gso_bytes += stats.gso_bytes;
	ch->tx_stats.gso_wire_packets += stats.gso_wire_packets;
	ch->tx_stats.gso_wire_bytes += stats.gso_wire_bytes;
	ch->tx_stats.woken += stats.woken;
	ch->tx_stats.errors += stats.errors;
	u64_stats_update_end(&ch->tx_sync);
	return freed.packets == SKUA_EN_TX_BUDGET;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_tx_poll);

/**
 * skua_en_tx_stuck() - has the device stopped completing packets?
 * @ch: the channel; calls for one channel are not concurrent
 *
 * Return: true if packets were under way at the last call, and none was completed since.
 */
bool skua_en_tx_stuck(struct skua_en_channel *ch)
{
	u32 ci = READ_ONCE(ch->tx_ci);
	bool stuck = ch->watch_pi != ch->watch_ci && ch->watch_ci == ci;

	ch->watch_ci = ci;
	ch->watch_pi = READ_ONCE(ch->tx_pi);
	return stuck;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_tx_stuck);

/**
 * skua_en_tx_flush() - free what is left in the send ring
 * @ch: the channel, stopped, its QP destroyed, its send CQ still there
 *
 * What was sent since the last poll counts as sent, the rest as dropped. The channel's own
 * statistics have been added to the netdev's before.
 */
void skua_en_tx_flush(struct skua_en_channel *ch)
{
	struct skua_en_tx_freed sent = {}, lost = {};
	struct skua_en_stats stats = {};
	const struct skua_cqe *cqe;

	while (ch->tx_ci != ch->tx_pi) {
		cqe = skua_en_cq_next(&ch->txcq);
		if (!cqe || !skua_en_tx_sent(cqe, ch->tx_ci, ch->tx_pi))
			break;
		skua_en_tx_count(&stats.tx, &ch->tx_info[ch->tx_ci & (BIT(ch->log_sq) - 1)]);
		ch->tx_ci += skua_en_tx_retire(ch, ch->tx_ci, 0, &sent);
	}
	while (ch->tx_ci != ch->tx_pi)
		ch->tx_ci += skua_en_tx_retire(ch, ch->tx_ci, 0, &lost);
	/* One of them was counted as an error, if the channel's last completion failed. */
	if (ch->tx_stats.errors && lost.packets)
		lost.packets--;
	stats.xmit.dropped = lost.packets;
	spin_lock_bh(&ch->en->stats_lock);
	skua_en_stats_sum(&ch->en->stats[ch->index], &stats);
	spin_unlock_bh(&ch->en->stats_lock);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_tx_flush);
