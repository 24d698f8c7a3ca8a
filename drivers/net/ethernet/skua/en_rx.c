// SPDX-License-Identifier: GPL-2.0
/*
 * Receive: buffers are parts of pages of a page pool, so that several frames can share a page
 * (of order 0 or more) that is larger than they are. Each frame becomes an skb: its first
 * buffer is the linear part, the others are fragments. Frames that the device has merged
 * (NETIF_F_GRO_HW) become one skb: the first frame has the headers, and each of the others is
 * a fragment.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
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
 * @small: only pages of order 0
 *
 * Each part ends at a cache line, so that buffers in one page share no cache line. A frame
 * in one buffer costs GRO, the pool and the copy to user space half of what it costs in two,
 * and GRO can merge twice as many before an skb has no room for another fragment.
 */
void skua_en_rx_layout(struct skua_en_channel *ch, unsigned int mtu, bool small)
{
	unsigned int len = mtu + VLAN_ETH_HLEN, part, i;

	ch->rx_order = 0;
	if (len > SKUA_EN_RX_FIRST && !small) {
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

/**
 * skua_en_rx_gro_init() - how many frames the device may merge
 * @ch: the channel, its layout made
 * @gro: whether it is to merge any
 *
 * An skb has room for MAX_SKB_FRAGS fragments, which limits the number of frames: all buffers
 * but the first frame's first one are fragments.
 */
void skua_en_rx_gro_init(struct skua_en_channel *ch, bool gro)
{
	unsigned int most = min_t(unsigned int, (1 + MAX_SKB_FRAGS) / ch->nsge,
				  FIELD_MAX(SKUA_RQ_GRO));

	ch->rx_gro = gro && most > 1 ? most : 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_gro_init);

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

/**
 * skua_en_rx_page() - allocate a receive buffer
 * @ch: the channel
 * @frag: the buffer, whose @truesize is what it takes at least
 * @gfp: how
 *
 * Return: false without memory.
 */
bool skua_en_rx_page(struct skua_en_channel *ch, struct skua_en_rx_frag *frag, gfp_t gfp)
{
	KUNIT_STATIC_STUB_REDIRECT(skua_en_rx_page, ch, frag, gfp);
	frag->page = page_pool_alloc(ch->pool, &frag->offset, &frag->truesize, gfp);
	return frag->page;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_page);

/* Allocate the buffers of the WQE at the producer index. */
static bool skua_en_rx_post(struct skua_en_channel *ch, gfp_t gfp)
{
	u32 pos = ch->rx_pi & skua_en_rx_mask(ch);
	struct skua_wqe_data *seg = ch->rq + ((size_t)pos << SKUA_EN_RX_LOG_SGE);
	struct skua_en_rx_info *info = &ch->rx_info[pos];
	unsigned int i;
	dma_addr_t dma;

	for (i = 0; i < ch->nsge; i++) {
		struct skua_en_rx_frag *frag = &info->frag[i];

		frag->truesize = skua_en_rx_size(ch, i);
		if (unlikely(!skua_en_rx_page(ch, frag, gfp))) {
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

/*
 * A buffer could not be allocated. Pages of a high order may not come for a long time, if memory
 * is fragmented: after a while with few buffers have the channel replaced by one that needs none.
 */
static void skua_en_rx_starving(struct skua_en_channel *ch)
{
	u64_stats_update_begin(&ch->rx_sync);
	ch->rx_stats.alloc_fail++;
	u64_stats_update_end(&ch->rx_sync);
	if (!ch->rx_order || ch->rx_pi - ch->rx_ci > BIT(ch->log_rq) / 8)
		return;
	if (!ch->rx_hungry)
		ch->rx_hungry = jiffies | 1;
	else if (time_after(jiffies, ch->rx_hungry + SKUA_EN_RX_PATIENCE))
		skua_en_channel_starved(ch);
}

/* All receive WQEs have buffers again. */
static void skua_en_rx_fed(struct skua_en_channel *ch)
{
	ch->rx_hungry = 0;
	clear_bit(SKUA_EN_CH_STARVED, &ch->flags);
}

/**
 * skua_en_rx_fill() - give the device every free receive WQE
 * @ch: the channel
 * @gfp: how buffers are allocated
 *
 * If a buffer cannot be allocated, the next poll tries again.
 */
void skua_en_rx_fill(struct skua_en_channel *ch, gfp_t gfp)
{
	u32 start = ch->rx_pi;

	while (ch->rx_pi - ch->rx_ci < BIT(ch->log_rq)) {
		if (unlikely(!skua_en_rx_post(ch, gfp))) {
			skua_en_rx_starving(ch);
			break;
		}
	}
	if (unlikely(ch->rx_hungry) && ch->rx_pi - ch->rx_ci == BIT(ch->log_rq))
		skua_en_rx_fed(ch);
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
	} else if (csum & (SKUA_CQE_CSUM_TCP | SKUA_CQE_CSUM_UDP) &&
		   !(csum & SKUA_CQE_CSUM_L4_NONE)) {
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

/**
 * struct skua_en_rx_frame - contents of a completion, read once
 * @len: bytes of the frame, or of the merged frames with the headers counted once
 * @segs: number of merged frames, each in a WQE of its own; 1: the frame was not merged
 * @size: bytes of payload of each merged frame but the last
 * @hdr: bytes of headers in front of the first payload
 * @merged: the completion has the flag of merged frames
 */
struct skua_en_rx_frame {
	u32 len;
	u32 segs;
	u32 size;
	u32 hdr;
	bool merged;
};

static struct skua_en_rx_info *skua_en_rx_info(const struct skua_en_channel *ch, u32 pos)
{
	return &ch->rx_info[pos & skua_en_rx_mask(ch)];
}

/* Add the buffers of @info from number @from on, with @len bytes, to @skb as fragments. */
static void skua_en_rx_frags(struct skua_en_channel *ch, struct sk_buff *skb,
			     struct skua_en_rx_info *info, unsigned int from, u32 len)
{
	unsigned int i, part, off;

	for (i = from; len; i++, len -= part) {
		struct skua_en_rx_frag *frag = &info->frag[i];

		part = min(len, ch->rx_room[i]);
		off = frag->offset + (i ? 0 : SKUA_EN_RX_HEADROOM);
		page_pool_dma_sync_for_cpu(ch->pool, frag->page, off, part);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, frag->page, off, part,
				frag->truesize);
		frag->page = NULL;
	}
	skua_en_rx_put(ch, info, i, true);
}

/* Make an skb of the buffers at @pos. NULL: no memory; the buffers were returned to the pool. */
static struct sk_buff *skua_en_rx_build(struct skua_en_channel *ch, u32 pos,
					const struct skua_en_rx_frame *f)
{
	struct skua_en_rx_info *info = skua_en_rx_info(ch, pos);
	u32 len = f->segs > 1 ? f->hdr + f->size : f->len, left = f->len - len, i;
	unsigned int part = min(len, ch->rx_room[0]);
	struct skua_en_rx_frag *frag = &info->frag[0];
	struct sk_buff *skb;

	page_pool_dma_sync_for_cpu(ch->pool, frag->page, frag->offset + SKUA_EN_RX_HEADROOM,
				   part);
	skb = napi_build_skb(page_address(frag->page) + frag->offset, frag->truesize);
	if (unlikely(!skb)) {
		for (i = 0; i < f->segs; i++)
			skua_en_rx_put(ch, skua_en_rx_info(ch, pos + i), 0, true);
		return NULL;
	}
	frag->page = NULL;
	skb_mark_for_recycle(skb);
	skb_reserve(skb, SKUA_EN_RX_HEADROOM);
	skb_put(skb, part);
	skua_en_rx_frags(ch, skb, info, 1, len - part);
	for (i = 1; i < f->segs; i++, left -= len) {
		len = min(left, f->size);
		skua_en_rx_frags(ch, skb, skua_en_rx_info(ch, pos + i), 0, len);
	}
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

/* Are the numbers of a merged frame consistent, and do they fit in the WQEs? */
static bool skua_en_rx_is_merged(const struct skua_en_channel *ch,
				 const struct skua_en_rx_frame *f)
{
	return f->segs > 1 && f->segs <= ch->rx_gro && f->hdr >= ETH_HLEN &&
	       f->hdr <= ch->rx_room[0] && f->hdr + f->size <= skua_en_rx_capacity(ch) &&
	       f->len > f->hdr + (f->segs - 1) * f->size &&
	       f->len <= f->hdr + f->segs * f->size;
}

/*
 * Read the fields of the completion once, since the device could change them at any time.
 * Return: whether it is the completion of the WQE at @pos, and of those that follow if frames
 * were merged.
 */
static bool skua_en_rx_parse(const struct skua_en_channel *ch, const struct skua_cqe *cqe,
			     u32 pos, struct skua_en_rx_frame *f)
{
	*f = (struct skua_en_rx_frame) {
		.len = le32_to_cpu(READ_ONCE(cqe->byte_len)),
		.segs = 1,
		.merged = skua_cqe_flags(cqe) & SKUA_CQE_F_GRO,
	};
	if (f->merged) {
		f->segs = le16_to_cpu(READ_ONCE(cqe->eth.gro_segs));
		f->size = le16_to_cpu(READ_ONCE(cqe->eth.gro_size));
		f->hdr = le16_to_cpu(READ_ONCE(cqe->eth.gro_hdr));
		/* Its checksums are computed anew, so those received must have been right. */
		if (!skua_en_rx_is_merged(ch, f) ||
		    !(le16_to_cpu(READ_ONCE(cqe->eth.csum)) & SKUA_CQE_CSUM_L4_OK))
			return false;
	} else if (f->len < ETH_HLEN || f->len > skua_en_rx_capacity(ch)) {
		return false;
	}
	return ch->rx_pi - pos >= f->segs && skua_cqe_wqe_index(cqe) == (pos & 0xffff) &&
	       skua_cqe_status(cqe) == SKUA_CQE_OK;
}

/* An error status or impossible values: the queue has failed. */
static void skua_en_rx_fail(struct skua_en_channel *ch, const struct skua_cqe *cqe,
			    const struct skua_en_rx_frame *f)
{
	u32 status = skua_cqe_status(cqe);

	if (status != SKUA_CQE_OK)
		skua_en_channel_fail(ch, "receive status %u, vendor error 0x%x", status,
				     le32_get_bits(cqe->own, SKUA_CQE_VENDOR));
	else if (f->merged)
		skua_en_channel_fail(ch,
				     "receive completion of %u WQEs from %u: %u bytes, headers of %u, segments of %u, checksums 0x%x; expected WQE %u of %u, <= %u WQEs",
				     f->segs, skua_cqe_wqe_index(cqe), f->len, f->hdr, f->size,
				     le16_to_cpu(cqe->eth.csum),
				     ch->rx_ci & 0xffff, ch->rx_pi - ch->rx_ci, ch->rx_gro);
	else
		skua_en_channel_fail(ch,
				     "receive completion of WQE %u, %u bytes; expected WQE %u of %u, <= %u bytes",
				     skua_cqe_wqe_index(cqe), f->len, ch->rx_ci & 0xffff,
				     ch->rx_pi - ch->rx_ci, skua_en_rx_capacity(ch));
}

/*
 * Set what the stack needs to segment a merged frame again (gso_size, gso_type).
 * Return: false if the headers are not those of a TCP segment of the length that the
 * completion has.
 */
static bool skua_en_rx_gro(struct sk_buff *skb, const struct skua_en_rx_frame *f)
{
	unsigned int l4;

	skb_reset_network_header(skb);
	if (skb->protocol == htons(ETH_P_IP)) {
		l4 = sizeof(struct iphdr);
		skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
		if (f->hdr < ETH_HLEN + l4 + sizeof(struct tcphdr) || ip_hdr(skb)->version != 4 ||
		    ip_hdr(skb)->ihl != 5 || ip_hdr(skb)->protocol != IPPROTO_TCP)
			return false;
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		l4 = sizeof(struct ipv6hdr);
		skb_shinfo(skb)->gso_type = SKB_GSO_TCPV6;
		if (f->hdr < ETH_HLEN + l4 + sizeof(struct tcphdr) ||
		    ipv6_hdr(skb)->version != 6 || ipv6_hdr(skb)->nexthdr != IPPROTO_TCP)
			return false;
	} else {
		return false;
	}
	/* TCP's checksum field has the sum of the pseudo header. Sets the transport header, too. */
	if (!skb_partial_csum_set(skb, l4, offsetof(struct tcphdr, check)) ||
	    ETH_HLEN + l4 + tcp_hdrlen(skb) != f->hdr)
		return false;
	skb_shinfo(skb)->gso_size = f->size;
	skb_shinfo(skb)->gso_segs = f->segs;
	return true;
}

static void skua_en_rx_count(struct skua_en_rx_stats *stats, const struct skua_en_rx_frame *f)
{
	u32 wire;

	if (f->segs == 1) {
		stats->packets++;
		stats->bytes += f->len;
		return;
	}
	wire = f->len + (f->segs - 1) * f->hdr;
	stats->packets += f->segs;
	stats->bytes += wire;
	stats->csum_ok += f->segs - 1;
	stats->gro_packets++;
	stats->gro_bytes += f->len;
	stats->gro_wire_packets += f->segs;
	stats->gro_wire_bytes += wire;
}

/* Return: false if the queue has failed. */
static bool skua_en_rx_one(struct skua_en_channel *ch, const struct skua_cqe *cqe,
			   struct skua_en_rx_stats *stats)
{
	struct net_device *ndev = ch->en->ndev;
	struct skua_en_rx_frame f;
	struct sk_buff *skb;

	if (unlikely(!skua_en_rx_parse(ch, cqe, ch->rx_ci, &f))) {
		skua_en_rx_fail(ch, cqe, &f);
		stats->errors++;
		return false;
	}
	skb = skua_en_rx_build(ch, ch->rx_ci, &f);
	ch->rx_ci += f.segs;
	if (unlikely(!skb)) {
		stats->alloc_fail++;
		stats->dropped += f.segs;
		return true;
	}
	skua_en_rx_offloads(skb, cqe, ndev->features, stats);
	skb_record_rx_queue(skb, ch->index);
	skb->protocol = eth_type_trans(skb, ndev);
	/* Without broadcast, as IEEE 802.3 counts */
	stats->multicast += skb->pkt_type == PACKET_MULTICAST;
	if (f.segs > 1 && unlikely(!skua_en_rx_gro(skb, &f))) {
		skua_en_channel_fail(ch,
				     "merged frame of protocol 0x%04x, headers of %u bytes: no TCP segment",
				     ntohs(skb->protocol), f.hdr);
		dev_kfree_skb_any(skb);
		stats->errors++;
		return false;
	}
	skua_en_rx_count(stats, &f);
	napi_gro_receive(&ch->napi, skb);
	return true;
}

/**
 * skua_en_rx_poll() - take received frames
 * @ch: the channel
 * @budget: maximum number of frames
 *
 * Return: number of frames taken, or @budget if there is more to do.
 */
int skua_en_rx_poll(struct skua_en_channel *ch, int budget)
{
	struct skua_en_rx_stats stats = {};
	const struct skua_cqe *cqe;
	bool ok = true;
	int done = 0;

	while (ok && done < budget) {
		cqe = skua_en_cq_next(&ch->rxcq);
		if (!cqe)
			break;
		ok = skua_en_rx_one(ch, cqe, &stats);
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
	ch->rx_stats.gro_packets += stats.gro_packets;
	ch->rx_stats.gro_bytes += stats.gro_bytes;
	ch->rx_stats.gro_wire_packets += stats.gro_wire_packets;
	ch->rx_stats.gro_wire_bytes += stats.gro_wire_bytes;
	u64_stats_update_end(&ch->rx_sync);

	if (unlikely(!ok))
		return done;
	/* Free CQ entries before receive WQEs, see skua_en_cq_publish(). */
	if (done)
		skua_en_cq_publish(&ch->rxcq);
	skua_en_rx_fill(ch, GFP_ATOMIC | __GFP_NOWARN);
	/* With an empty ring no completion schedules NAPI again: poll until there is memory. */
	return ch->rx_pi == ch->rx_ci ? budget : done;
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
	struct skua_en_rx_frame f;
	const struct skua_cqe *cqe;
	u32 i;

	for (i = ch->rx_ci; i != ch->rx_pi; i += f.segs) {
		cqe = skua_en_cq_next(&ch->rxcq);
		if (!cqe || !skua_en_rx_parse(ch, cqe, i, &f))
			break;
		stats.rx.dropped += f.segs;
	}
	spin_lock_bh(&ch->en->stats_lock);
	skua_en_stats_sum(&ch->en->stats[ch->index], &stats);
	spin_unlock_bh(&ch->en->stats_lock);

	for (i = 0; i < BIT(ch->log_rq); i++)
		skua_en_rx_put(ch, &ch->rx_info[i], 0, false);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_rx_flush);
