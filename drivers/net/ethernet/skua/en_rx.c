// SPDX-License-Identifier: GPL-2.0
/*
 * Receive: buffers are parts of pages of a page pool, so that frames that are small against
 * a page, which may be of a higher order, share one. Each frame becomes an skb: its first
 * buffer is the linear part, the others are fragments.
 */
#include <kunit/visibility.h>
#include <linux/etherdevice.h>
#include <net/page_pool/helpers.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "en.h"

static u32 skua_en_rx_mask(const struct skua_en_channel *ch)
{
	return BIT(ch->log_rq) - 1;
}

/**
 * skua_en_rx_size() - bytes of a page that a scatter element takes
 * @ch: the channel
 * @i: the element
 *
 * Return: bytes, with what an skb needs around the first element.
 */
unsigned int skua_en_rx_size(const struct skua_en_channel *ch, unsigned int i)
{
	if (i)
		return ch->rx_room[i];
	return SKUA_EN_RX_HEADROOM + ch->rx_room[0] +
	       SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
}

/**
 * skua_en_rx_layout() - how the largest frame lies in receive buffers
 * @ch: the channel, which gets @nsge, @rx_room and @rx_order
 * @mtu: of the netdev
 *
 * Each room ends at a cache line, so that buffers that share a page share no line. A frame
 * in one buffer costs GRO, the pool and the copy to user space half of what it costs in two,
 * and GRO can merge twice as many before an skb has no room for another fragment.
 */
void skua_en_rx_layout(struct skua_en_channel *ch, unsigned int mtu)
{
	unsigned int len = mtu + VLAN_ETH_HLEN, part, i;

	ch->rx_order = 0;
	if (len > SKUA_EN_RX_FIRST) {
		ch->rx_room[0] = SKB_DATA_ALIGN(SKUA_EN_RX_HEADROOM + len) -
				 SKUA_EN_RX_HEADROOM;
		if (2 * skua_en_rx_size(ch, 0) <= PAGE_SIZE << SKUA_EN_RX_ORDER) {
			ch->rx_order = SKUA_EN_RX_ORDER;
			ch->nsge = 1;
			return;
		}
	}
	for (i = 0; i < SKUA_EN_RX_SGE && len; i++, len -= part) {
		if (!i) {
			part = min_t(unsigned int, len, SKUA_EN_RX_FIRST);
			ch->rx_room[i] = SKB_DATA_ALIGN(SKUA_EN_RX_HEADROOM + part) -
					 SKUA_EN_RX_HEADROOM;
		} else {
			part = min_t(unsigned int, len, PAGE_SIZE);
			ch->rx_room[i] = SKB_DATA_ALIGN(part);
		}
	}
	ch->nsge = i;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_layout);

static void skua_en_rx_put(struct skua_en_channel *ch, struct skua_en_rx_info *info,
			   unsigned int from, bool direct)
{
	unsigned int i;

	for (i = from; i < ch->nsge; i++) {
		if (info->frag[i].page)
			page_pool_put_full_page(ch->pool, info->frag[i].page, direct);
		info->frag[i].page = NULL;
	}
}

/* Put buffers behind the WQE at the producer index. */
static bool skua_en_rx_post(struct skua_en_channel *ch)
{
	u32 pos = ch->rx_pi & skua_en_rx_mask(ch);
	struct skua_wqe_data *seg = ch->rq + ((size_t)pos << SKUA_EN_RX_LOG_SGE);
	struct skua_en_rx_info *info = &ch->rx_info[pos];
	unsigned int i;
	dma_addr_t dma;

	for (i = 0; i < ch->nsge; i++) {
		struct skua_en_rx_frag *frag = &info->frag[i];

		frag->truesize = skua_en_rx_size(ch, i);
		frag->page = page_pool_dev_alloc(ch->pool, &frag->offset, &frag->truesize);
		if (unlikely(!frag->page)) {
			skua_en_rx_put(ch, info, 0, true);
			return false;
		}
		dma = page_pool_get_dma_addr(frag->page) + frag->offset;
		if (!i)
			dma += SKUA_EN_RX_HEADROOM;
		skua_wqe_data_set(&seg[i], dma, SKUA_RESERVED_LKEY, ch->rx_room[i]);
	}
	if (ch->nsge < SKUA_EN_RX_SGE)
		skua_wqe_data_set(&seg[ch->nsge], 0, SKUA_INVALID_LKEY, 0);
	ch->rx_pi++;
	return true;
}

/**
 * skua_en_rx_fill() - give the device every free receive WQE
 * @ch: the channel
 *
 * If no buffer can be allocated, the next poll goes on.
 */
void skua_en_rx_fill(struct skua_en_channel *ch)
{
	u32 start = ch->rx_pi;

	while (ch->rx_pi - ch->rxcq.ci < BIT(ch->log_rq)) {
		if (unlikely(!skua_en_rx_post(ch))) {
			u64_stats_update_begin(&ch->rx_sync);
			ch->rx_stats.alloc_fail++;
			u64_stats_update_end(&ch->rx_sync);
			break;
		}
	}
	if (ch->rx_pi == start)
		return;
	/* Write the WQEs before the producer index that hands them over. */
	dma_wmb();
	WRITE_ONCE(ch->dbr->rq_pi, cpu_to_le32(ch->rx_pi));
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_fill);

static void skua_en_rx_offloads(struct sk_buff *skb, const struct skua_cqe *cqe,
				netdev_features_t features, struct skua_en_rx_stats *stats)
{
	u16 csum = le16_to_cpu(cqe->eth.csum);

	skb_checksum_none_assert(skb);
	if (!(features & NETIF_F_RXCSUM)) {
		stats->csum_none++;
	} else if (csum & SKUA_CQE_CSUM_L4_OK) {
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		stats->csum_ok++;
	} else if (csum & (SKUA_CQE_CSUM_TCP | SKUA_CQE_CSUM_UDP)) {
		/* CHECKSUM_NONE: the stack verifies it and counts the error. */
		stats->csum_bad++;
	} else {
		stats->csum_none++;
	}
	if ((features & NETIF_F_RXHASH) && (csum & (SKUA_CQE_CSUM_HASH_L3 | SKUA_CQE_CSUM_HASH_L4)))
		skb_set_hash(skb, le32_to_cpu(cqe->eth.rss_hash),
			     csum & SKUA_CQE_CSUM_HASH_L4 ? PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
	if (skua_cqe_flags(cqe) & SKUA_CQE_F_VLAN)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), le16_to_cpu(cqe->eth.vlan_tci));
}

/* Make an skb of the buffers of @info. NULL: no memory, the buffers are back in the pool. */
static struct sk_buff *skua_en_rx_build(struct skua_en_channel *ch,
					struct skua_en_rx_info *info, u32 len)
{
	unsigned int i, part = min(len, ch->rx_room[0]);
	struct skua_en_rx_frag *frag = &info->frag[0];
	struct sk_buff *skb;

	page_pool_dma_sync_for_cpu(ch->pool, frag->page, frag->offset + SKUA_EN_RX_HEADROOM,
				   part);
	skb = napi_build_skb(page_address(frag->page) + frag->offset, frag->truesize);
	if (unlikely(!skb)) {
		skua_en_rx_put(ch, info, 0, true);
		return NULL;
	}
	frag->page = NULL;
	skb_mark_for_recycle(skb);
	skb_reserve(skb, SKUA_EN_RX_HEADROOM);
	skb_put(skb, part);
	for (i = 1, len -= part; len; i++, len -= part) {
		frag = &info->frag[i];
		part = min(len, ch->rx_room[i]);
		page_pool_dma_sync_for_cpu(ch->pool, frag->page, frag->offset, part);
		skb_add_rx_frag(skb, i - 1, frag->page, frag->offset, part, frag->truesize);
		frag->page = NULL;
	}
	skua_en_rx_put(ch, info, i, true);
	return skb;
}

static u32 skua_en_rx_capacity(const struct skua_en_channel *ch)
{
	u32 room = 0;
	unsigned int i;

	for (i = 0; i < ch->nsge; i++)
		room += ch->rx_room[i];
	return room;
}

/* Is it the completion of the WQE at @pos, with a frame of @len bytes? */
static bool skua_en_rx_is_frame(const struct skua_en_channel *ch, const struct skua_cqe *cqe,
				u32 pos, u32 len)
{
	return (s32)(ch->rx_pi - pos) > 0 && skua_cqe_wqe_index(cqe) == (pos & 0xffff) &&
	       skua_cqe_status(cqe) == SKUA_CQE_OK && len >= ETH_HLEN &&
	       len <= skua_en_rx_capacity(ch);
}

/*
 * Check a completion against the WQE it must be for. On an error status or impossible
 * values the queue has failed.
 */
static bool skua_en_rx_check(struct skua_en_channel *ch, const struct skua_cqe *cqe, u32 pos,
			     u32 len)
{
	u32 status = skua_cqe_status(cqe);

	if (likely(skua_en_rx_is_frame(ch, cqe, pos, len)))
		return true;
	if (status != SKUA_CQE_OK)
		skua_en_channel_fail(ch, "receive status %u, vendor error 0x%x", status,
				     le32_get_bits(cqe->own, SKUA_CQE_VENDOR));
	else
		skua_en_channel_fail(ch,
				     "receive completion of WQE %u, %u bytes; expected WQE %u of %u, <= %u bytes",
				     skua_cqe_wqe_index(cqe), len, pos & 0xffff, ch->rx_pi - pos,
				     skua_en_rx_capacity(ch));
	return false;
}

/* Return: false if the queue has failed. */
static bool skua_en_rx_one(struct skua_en_channel *ch, const struct skua_cqe *cqe, u32 pos,
			   struct skua_en_rx_stats *stats)
{
	struct skua_en_rx_info *info = &ch->rx_info[pos & skua_en_rx_mask(ch)];
	struct net_device *ndev = ch->en->ndev;
	/* The device could change it: read once, check and use that value. */
	u32 len = le32_to_cpu(READ_ONCE(cqe->byte_len));
	struct sk_buff *skb;

	if (unlikely(!skua_en_rx_check(ch, cqe, pos, len))) {
		stats->errors++;
		return false;
	}
	skb = skua_en_rx_build(ch, info, len);
	if (unlikely(!skb)) {
		stats->alloc_fail++;
		stats->dropped++;
		return true;
	}
	skua_en_rx_offloads(skb, cqe, ndev->features, stats);
	skb_record_rx_queue(skb, ch->index);
	stats->packets++;
	stats->bytes += len;
	if (is_multicast_ether_addr(skb->data))
		stats->multicast++;
	skb->protocol = eth_type_trans(skb, ndev);
	napi_gro_receive(&ch->napi, skb);
	return true;
}

/**
 * skua_en_rx_poll() - take received frames
 * @ch: the channel
 * @budget: at most so many
 *
 * Return: frames taken, or @budget if there is more to do.
 */
int skua_en_rx_poll(struct skua_en_channel *ch, int budget)
{
	struct skua_en_rx_stats stats = {};
	const struct skua_cqe *cqe;
	bool ok = true;
	int done = 0;
	u32 pos;

	while (ok && done < budget) {
		pos = ch->rxcq.ci;
		cqe = skua_en_cq_next(&ch->rxcq);
		if (!cqe)
			break;
		ok = skua_en_rx_one(ch, cqe, pos, &stats);
		done += ok;
	}

	u64_stats_update_begin(&ch->rx_sync);
	ch->rx_stats.packets += stats.packets;
	ch->rx_stats.bytes += stats.bytes;
	ch->rx_stats.multicast += stats.multicast;
	ch->rx_stats.csum_ok += stats.csum_ok;
	ch->rx_stats.csum_none += stats.csum_none;
	ch->rx_stats.csum_bad += stats.csum_bad;
	ch->rx_stats.alloc_fail += stats.alloc_fail;
	ch->rx_stats.dropped += stats.dropped;
	ch->rx_stats.errors += stats.errors;
	u64_stats_update_end(&ch->rx_sync);

	if (unlikely(!ok))
		return done;
	/* Free CQ entries before receive WQEs, see skua_en_cq_publish(). */
	if (done)
		skua_en_cq_publish(&ch->rxcq);
	skua_en_rx_fill(ch);
	/* With an empty ring no completion will schedule NAPI again: poll on for memory. */
	return ch->rx_pi == ch->rxcq.ci ? budget : done;
}

/**
 * skua_en_rx_flush() - return all buffers of the ring to the pool
 * @ch: the channel, stopped, its QP destroyed, its receive CQ still there
 *
 * What was received since the last poll counts as dropped. The channel's own statistics
 * have been added to the netdev's before.
 */
void skua_en_rx_flush(struct skua_en_channel *ch)
{
	struct skua_en_stats stats = {};
	const struct skua_cqe *cqe;
	u32 i;

	for (i = ch->rxcq.ci; i != ch->rx_pi; i++) {
		cqe = skua_en_cq_next(&ch->rxcq);
		if (!cqe || !skua_en_rx_is_frame(ch, cqe, i, le32_to_cpu(cqe->byte_len)))
			break;
		stats.rx.dropped++;
	}
	spin_lock_bh(&ch->en->stats_lock);
	skua_en_stats_sum(&ch->en->stats, &stats);
	spin_unlock_bh(&ch->en->stats_lock);

	for (i = 0; i < BIT(ch->log_rq); i++)
		skua_en_rx_put(ch, &ch->rx_info[i], 0, false);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_flush);
