// SPDX-License-Identifier: GPL-2.0
/*
 * Frames that the device has merged: the skb that the stack gets can be cut into the frames
 * again, and a device that does not tell the truth makes none.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <net/gso.h>
#include <net/ip6_checksum.h>

#include "en_fake.h"

#define GRO_SIZE	1000
#define GRO_SEGS	4
#define GRO_LAST	300

static u8 gro_byte(u32 i)
{
	return i * 7 + i / 251;
}

static void *rx_data(struct ent *t, u32 pos)
{
	const struct skua_en_rx_frag *frag = &t->ch->rx_info[pos & (BIT(LOG_RQ) - 1)].frag[0];

	return page_address(frag->page) + frag->offset + SKUA_EN_RX_HEADROOM;
}

/* Headers of a TCP segment with @payload bytes. Return: their length. */
static unsigned int gro_headers(void *data, bool v6, u32 payload)
{
	struct ethhdr *eth = data;
	void *ip = eth + 1;
	struct tcphdr *tcp = ip + (v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	unsigned int len = sizeof(*tcp) + payload;

	memset(eth, 0, (void *)(tcp + 1) - data);
	if (v6) {
		struct ipv6hdr *h = ip;

		eth->h_proto = htons(ETH_P_IPV6);
		*h = (struct ipv6hdr) { .version = 6, .payload_len = htons(len),
					.nexthdr = IPPROTO_TCP, .hop_limit = 64 };
		h->saddr.s6_addr[0] = 0xfd;
		h->daddr.s6_addr[0] = 0xfd;
		tcp->check = ~csum_ipv6_magic(&h->saddr, &h->daddr, len, IPPROTO_TCP, 0);
	} else {
		struct iphdr *h = ip;

		eth->h_proto = htons(ETH_P_IP);
		*h = (struct iphdr) { .version = 4, .ihl = 5, .id = htons(0xfffe),
				      .tot_len = htons(sizeof(*h) + len), .ttl = 64,
				      .protocol = IPPROTO_TCP, .saddr = htonl(0x0a000001),
				      .daddr = htonl(0x0a000002) };
		h->check = ip_fast_csum(h, h->ihl);
		tcp->check = ~csum_tcpudp_magic(h->saddr, h->daddr, len, IPPROTO_TCP, 0);
	}
	tcp->seq = htonl(0xfffffe00);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->ack = 1;
	tcp->psh = 1;
	return (void *)(tcp + 1) - data;
}

/* GRO_SEGS frames in as many WQEs, and the completion, not yet with its phase. */
static unsigned int gro_receive(struct ent *t, bool v6, struct skua_cqe_eth *eth)
{
	u32 payload = (GRO_SEGS - 1) * GRO_SIZE + GRO_LAST, i;
	unsigned int hdr = gro_headers(rx_data(t, t->rx_wqe), v6, payload);
	struct skua_cqe *cqe = t->ch->rxcq.buf.va;

	for (i = 0; i < payload; i++) {
		u8 *to = rx_data(t, t->rx_wqe + i / GRO_SIZE) + (i < GRO_SIZE ? hdr : 0);

		to[i % GRO_SIZE] = gro_byte(i);
	}
	*eth = (struct skua_cqe_eth) {
		.csum = cpu_to_le16(SKUA_CQE_CSUM_TCP | SKUA_CQE_CSUM_L4_OK),
		.gro_segs = cpu_to_le16(GRO_SEGS),
		.gro_size = cpu_to_le16(GRO_SIZE),
		.gro_hdr = cpu_to_le16(hdr),
	};
	cqe[t->rx_pi & (BIT(LOG_RQ) - 1)].eth = *eth;
	return hdr + payload;
}

static void gro_write(struct ent *t, u32 index, u32 len)
{
	struct skua_cqe *cqe = t->ch->rxcq.buf.va;
	u32 pi = t->rx_pi++;

	cqe += pi & (BIT(LOG_RQ) - 1);
	cqe->byte_len = cpu_to_le32(len);
	cqe->what = le32_encode_bits(index & 0xffff, SKUA_CQE_WQE_INDEX) |
		    le32_encode_bits(SKUA_CQE_OK, SKUA_CQE_STATUS);
	/* The rest of the entry is older than its phase. */
	dma_wmb();
	WRITE_ONCE(cqe->own, le32_encode_bits(!(pi >> LOG_RQ & 1), SKUA_CQE_PHASE) |
			     cpu_to_le32(SKUA_CQE_F_GRO));
}

static rx_handler_result_t gro_take(struct sk_buff **pskb)
{
	struct ent *t = rcu_dereference((*pskb)->dev->rx_handler_data);

	kfree_skb(t->skb);
	t->skb = *pskb;
	return RX_HANDLER_CONSUMED;
}

static void gro_untake(void *data)
{
	struct ent *t = data;

	rtnl_lock();
	netdev_rx_handler_unregister(t->en->ndev);
	rtnl_unlock();
	kfree_skb(t->skb);
}

/* A channel whose frames come to @skb of what is returned, and whose device merges. */
static struct ent *gro_create(struct kunit *test)
{
	struct ent *t = ent_create(test);
	int err;

	t->en->ndev->features |= NETIF_F_RXCSUM;
	skua_en_rx_gro_init(t->ch, true);
	rtnl_lock();
	err = netdev_rx_handler_register(t->en->ndev, gro_take, t);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, gro_untake, t), 0);
	return t;
}

/* TCP's checksum over all: 0 where it is right. */
static u16 gro_sum(const struct sk_buff *skb, bool v6, unsigned int l4, unsigned int len)
{
	__wsum sum = skb_checksum(skb, l4, len, 0);
	const struct ipv6hdr *ip6 = ipv6_hdr(skb);
	const struct iphdr *ip = ip_hdr(skb);

	if (v6)
		return (__force u16)csum_ipv6_magic(&ip6->saddr, &ip6->daddr, len, IPPROTO_TCP,
						    sum);
	return (__force u16)csum_tcpudp_magic(ip->saddr, ip->daddr, len, IPPROTO_TCP, sum);
}

/* What the stack makes of it when it cuts it: @n segments, with right checksums. */
static void gro_cut(struct ent *t, struct sk_buff *skb, bool v6, unsigned int hdr)
{
	struct sk_buff *list, *seg, *tmp;
	u32 at = 0, n = 0, i, part;
	u8 byte;

	skb_push(skb, ETH_HLEN);
	skb_reset_mac_header(skb);
	list = __skb_gso_segment(skb, NETIF_F_SG, false);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(t->test, list);
	skb_list_walk_safe(list, seg, tmp) {
		unsigned int l4 = skb_transport_offset(seg), len = seg->len - l4;

		part = n == GRO_SEGS - 1 ? GRO_LAST : GRO_SIZE;
		KUNIT_EXPECT_EQ(t->test, seg->len, hdr + part);
		KUNIT_EXPECT_EQ(t->test, ntohl(tcp_hdr(seg)->seq), 0xfffffe00 + at);
		KUNIT_EXPECT_EQ(t->test, !!tcp_hdr(seg)->psh, n == GRO_SEGS - 1);
		KUNIT_EXPECT_EQ(t->test, gro_sum(seg, v6, l4, len), 0);
		if (!v6)
			KUNIT_EXPECT_EQ(t->test, ntohs(ip_hdr(seg)->id), (u16)(0xfffe + n));
		for (i = 0; i < part; i++, at++) {
			if (skb_copy_bits(seg, hdr + i, &byte, 1) || byte != gro_byte(at))
				break;
		}
		KUNIT_EXPECT_EQ(t->test, i, part);
		n++;
		kfree_skb(seg);
	}
	KUNIT_EXPECT_EQ(t->test, n, GRO_SEGS);
}

static void test_gro(struct kunit *test)
{
	struct ent *t = gro_create(test);
	struct skua_cqe_eth eth;
	unsigned int v6, i;

	for (i = 0; i < 2 * BIT(LOG_RQ); i++) {
		unsigned int len, hdr;

		v6 = i & 1;
		len = gro_receive(t, v6, &eth);
		hdr = le16_to_cpu(eth.gro_hdr);
		gro_write(t, t->rx_wqe, len);
		t->rx_wqe += GRO_SEGS;
		/* One of those that are not merged behind it. */
		if (i % 3 == 0)
			ent_receive(t, 1);
		KUNIT_ASSERT_EQ(test, ent_poll(t, 64), i % 3 ? 1 : 2);
		KUNIT_ASSERT_EQ(test, t->ch->rx_ci, t->rx_wqe);
		KUNIT_ASSERT_EQ(test, le32_to_cpu(t->ch->dbr->rq_pi), t->rx_wqe + BIT(LOG_RQ));
		KUNIT_ASSERT_NOT_NULL(test, t->skb);
		if (i % 3 == 0)
			continue;
		KUNIT_EXPECT_EQ(test, t->skb->len, len - ETH_HLEN);
		KUNIT_EXPECT_EQ(test, skb_shinfo(t->skb)->gso_size, GRO_SIZE);
		KUNIT_EXPECT_EQ(test, skb_shinfo(t->skb)->gso_segs, GRO_SEGS);
		KUNIT_EXPECT_EQ(test, skb_shinfo(t->skb)->nr_frags, GRO_SEGS - 1);
		KUNIT_EXPECT_EQ(test, (int)t->skb->ip_summed, CHECKSUM_PARTIAL);
		gro_cut(t, t->skb, v6, hdr);
	}
	KUNIT_EXPECT_FALSE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.gro_packets, i);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.gro_wire_packets, i * GRO_SEGS);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.csum_ok, i * GRO_SEGS);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, i * GRO_SEGS + DIV_ROUND_UP(i, 3));
	/* Received, but not polled any more */
	gro_receive(t, false, &eth);
	gro_write(t, t->rx_wqe, 54 + (GRO_SEGS - 1) * GRO_SIZE + GRO_LAST);
	skua_en_rx_flush(t->ch);
	KUNIT_EXPECT_EQ(test, t->en->stats[0].rx.dropped, GRO_SEGS);
}

struct gro_lie {
	const char *name;
	u16 segs;
	u16 size;
	u16 hdr;
	u32 len;
	bool off;		/* nothing is to be merged */
	bool unchecked;		/* without a word on the checksums */
	unsigned int byte;	/* of the headers: changed by @by */
	u8 by;
};

#define GRO_HDR		(ETH_HLEN + 20 + 20)
#define GRO_LEN		(GRO_HDR + (GRO_SEGS - 1) * GRO_SIZE + GRO_LAST)
#define GRO_TRUE	.segs = GRO_SEGS, .size = GRO_SIZE, .hdr = GRO_HDR, .len = GRO_LEN

static const struct gro_lie gro_lies[] = {
	{ "not asked for", GRO_TRUE, .off = true },
	{ "checksums not looked at", GRO_TRUE, .unchecked = true },
	{ "no frame", 0, GRO_SIZE, GRO_HDR, GRO_LEN },
	{ "one frame", 1, GRO_SIZE, GRO_HDR, GRO_HDR + GRO_SIZE },
	{ "a frame less", GRO_SEGS - 1, GRO_SIZE, GRO_HDR, GRO_LEN },
	{ "a frame more", GRO_SEGS + 1, GRO_SIZE, GRO_HDR, GRO_LEN },
	{ "too many frames", MAX_SKB_FRAGS + 2, 100, GRO_HDR, GRO_HDR + (MAX_SKB_FRAGS + 2) * 100 },
	{ "65,535 frames", U16_MAX, 1, GRO_HDR, GRO_HDR + U16_MAX },
	{ "payload of nothing", GRO_SEGS, 0, GRO_HDR, GRO_HDR },
	{ "payload beyond a buffer", 2, 1600, GRO_HDR, GRO_HDR + 3000 },
	{ "payload of 65,535 bytes", 2, U16_MAX, GRO_HDR, GRO_HDR + 2 * U16_MAX },
	{ "headers beyond a buffer", 2, 100, 1700, 1900 },
	{ "headers of 65,535 bytes", 2, 100, U16_MAX, U16_MAX + 200 },
	{ "headers of nothing", GRO_SEGS, GRO_SIZE, 0, GRO_LEN - GRO_HDR },
	{ "headers without TCP", GRO_SEGS, GRO_SIZE, ETH_HLEN + 20, GRO_LEN - 20 },
	{ "longer headers than TCP's", GRO_SEGS, GRO_SIZE, GRO_HDR + 4, GRO_LEN + 4 },
	{ "4 GiB", GRO_SEGS, GRO_SIZE, GRO_HDR, U32_MAX },
	{ "no IP", GRO_TRUE, .byte = 12, .by = 0x80 },
	{ "IP version", GRO_TRUE, .byte = ETH_HLEN, .by = 0x20 },
	{ "IP options", GRO_TRUE, .byte = ETH_HLEN, .by = 0x03 },
	{ "UDP", GRO_TRUE, .byte = ETH_HLEN + 9, .by = IPPROTO_TCP ^ IPPROTO_UDP },
	{ "TCP's length", GRO_TRUE, .byte = ETH_HLEN + 32, .by = 0xa0 },
};

static void gro_lie_name(const struct gro_lie *lie, char *name)
{
	strscpy(name, lie->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(gro_lie, gro_lies, gro_lie_name);

/* Of a merged frame, too: the queue fails, and the stack gets nothing. */
static void test_gro_lie(struct kunit *test)
{
	const struct gro_lie *lie = test->param_value;
	struct ent *t = gro_create(test);
	struct skua_cqe *cqe = t->ch->rxcq.buf.va;
	struct skua_cqe_eth eth;

	if (lie->off)
		skua_en_rx_gro_init(t->ch, false);
	gro_receive(t, false, &eth);
	cqe->eth.gro_segs = cpu_to_le16(lie->segs);
	cqe->eth.gro_size = cpu_to_le16(lie->size);
	cqe->eth.gro_hdr = cpu_to_le16(lie->hdr);
	if (lie->unchecked)
		cqe->eth.csum &= ~cpu_to_le16(SKUA_CQE_CSUM_L4_OK);
	((u8 *)rx_data(t, 0))[lie->byte] ^= lie->by;
	gro_write(t, 0, lie->len);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_TRUE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	KUNIT_EXPECT_NULL(test, t->skb);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.errors, 1);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 0);
}

/* More WQEs than there are, though not more than may be merged. */
static void test_gro_beyond(struct kunit *test)
{
	struct ent *t = gro_create(test);
	struct skua_cqe_eth eth;
	u32 len;

	len = gro_receive(t, false, &eth);
	t->ch->rx_pi = GRO_SEGS - 1;
	gro_write(t, 0, len);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_TRUE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	t->ch->rx_pi = BIT(LOG_RQ);
}

static struct kunit_case gro_cases[] = {
	KUNIT_CASE(test_gro),
	KUNIT_CASE_PARAM(test_gro_lie, gro_lie_gen_params),
	KUNIT_CASE(test_gro_beyond),
	{}
};

static struct kunit_suite gro_suite = {
	.name = "skua_en_gro",
	.test_cases = gro_cases,
};

kunit_test_suite(gro_suite);
