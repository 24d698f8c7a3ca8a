// SPDX-License-Identifier: GPL-2.0
/*
 * The netdev's queues, with rings in memory and a device that is a few lines of C:
 * what is published in which order, and a device that does not tell the truth.
 */
#include <kunit/device.h>
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <net/gso.h>
#include <net/ip6_checksum.h>
#include <net/page_pool/helpers.h>

#include "en.h"
#include "skua.h"

#define LOG_RQ		6
#define LOG_SQ		9
#define FRAME_LEN	60

/**
 * struct ent - a channel, its device, and what was seen
 * @test: the test
 * @dev: as much of a function as queues need
 * @en: the netdev's private data
 * @ch: its channel
 * @rx_pi: CQEs that the device has written to the receive CQ
 * @rx_wqe: receive WQEs that it has used
 * @tx_pi: likewise, to the send CQ
 * @publishes: how often a consumer index was published
 * @room_early: how often room of a ring was given out before
 * @skb: what the stack was given
 */
struct ent {
	struct kunit *test;
	struct skua_dev dev;
	struct skua_en *en;
	struct skua_en_channel *ch;
	u32 rx_pi;
	u32 rx_wqe;
	u32 tx_pi;
	unsigned int publishes;
	unsigned int room_early;
	struct sk_buff *skb;
};

static void *zalloc(struct kunit *test, size_t size)
{
	void *p = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	return p;
}

static void cq_make(struct ent *t, struct skua_en_cq *cq, u8 log_size)
{
	cq->log_size = log_size;
	cq->buf.va = zalloc(t->test, sizeof(struct skua_cqe) << log_size);
	cq->dbr = zalloc(t->test, sizeof(*cq->dbr));
}

/* What the device writes, the phase last. */
static void cq_write(struct skua_en_cq *cq, u32 pi, u32 index, u32 status, u32 len)
{
	struct skua_cqe *cqe = (struct skua_cqe *)cq->buf.va + (pi & (BIT(cq->log_size) - 1));

	cqe->byte_len = cpu_to_le32(len);
	cqe->what = le32_encode_bits(index & 0xffff, SKUA_CQE_WQE_INDEX) |
		    le32_encode_bits(status, SKUA_CQE_STATUS);
	/* The rest of the entry is older than its phase. */
	dma_wmb();
	WRITE_ONCE(cqe->own, le32_encode_bits(!(pi >> cq->log_size & 1), SKUA_CQE_PHASE));
}

/* A frame for @dmac arrives in the next receive WQE. */
static void receive_one(struct ent *t, const u8 *dmac)
{
	struct skua_en_channel *ch = t->ch;
	u32 pos = t->rx_wqe & (BIT(LOG_RQ) - 1);
	const struct skua_en_rx_frag *frag = &ch->rx_info[pos].frag[0];
	struct ethhdr *eth = page_address(frag->page) + frag->offset + SKUA_EN_RX_HEADROOM;

	memset(eth, 0, FRAME_LEN);
	ether_addr_copy(eth->h_dest, dmac);
	/* IEEE 802 local experimental: nobody takes it */
	eth->h_proto = htons(0x88b5);
	cq_write(&ch->rxcq, t->rx_pi++, t->rx_wqe++, SKUA_CQE_OK, FRAME_LEN);
}

/* Frames arrive in the next @n receive WQEs. */
static void receive(struct ent *t, unsigned int n)
{
	static const u8 dmac[ETH_ALEN] __aligned(2);

	while (n--)
		receive_one(t, dmac);
}

/* As NAPI would: @budget, soft interrupts off. Return: what the poll says. */
static int poll(struct ent *t, int budget)
{
	int done;

	local_bh_disable();
	napi_schedule_prep(&t->ch->napi);
	done = skua_en_poll(&t->ch->napi, budget);
	/* More to do: not here. */
	if (done == budget)
		napi_complete_done(&t->ch->napi, done);
	local_bh_enable();
	return done;
}

/* Send a packet; @tci: with this VLAN tag, 0: without one. */
static void send_tagged(struct ent *t, u16 tci)
{
	struct net_device *ndev = t->en->ndev;
	struct sk_buff *skb = alloc_skb(FRAME_LEN, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(t->test, skb);
	skb_put_zero(skb, FRAME_LEN);
	skb->dev = ndev;
	if (tci)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), tci);
	local_bh_disable();
	KUNIT_EXPECT_EQ(t->test, (int)skua_en_xmit(skb, ndev), (int)NETDEV_TX_OK);
	local_bh_enable();
}

static void send_one(struct ent *t)
{
	send_tagged(t, 0);
}

/* The next @n packets, of one block each, are sent. */
static void complete_sends(struct ent *t, unsigned int n)
{
	for (; n--; t->tx_pi++)
		cq_write(&t->ch->txcq, t->tx_pi, t->tx_pi, SKUA_CQE_OK, 0);
}

static void ent_exit(void *data)
{
	struct ent *t = data;
	struct skua_en_channel *ch = t->ch;

	napi_disable(&ch->napi);
	skua_en_tx_flush(ch);
	skua_en_rx_flush(ch);
	page_pool_destroy(ch->pool);
	netif_napi_del(&ch->napi);
	free_netdev(t->en->ndev);
}

static void ent_rings(struct ent *t, struct skua_en_channel *ch)
{
	ch->log_rq = LOG_RQ;
	ch->log_sq = LOG_SQ;
	skua_en_rx_layout(ch, ETH_DATA_LEN);
	ch->rq = zalloc(t->test, (SKUA_WQE_SEG << SKUA_EN_RX_LOG_SGE) << LOG_RQ);
	ch->rx_info = zalloc(t->test, sizeof(*ch->rx_info) << LOG_RQ);
	ch->tx_info = zalloc(t->test, sizeof(*ch->tx_info) << LOG_SQ);
	ch->tx_dma = zalloc(t->test, (sizeof(*ch->tx_dma) * SKUA_WQE_SEGS_PER_BLOCK) << LOG_SQ);
	ch->dbr = zalloc(t->test, sizeof(*ch->dbr));
	skua_sq_ring_init(&ch->sq, zalloc(t->test, SKUA_WQE_BLOCK << LOG_SQ), LOG_SQ);
	cq_make(t, &ch->rxcq, LOG_RQ);
	cq_make(t, &ch->txcq, LOG_SQ);
	u64_stats_init(&ch->xmit_sync);
	u64_stats_init(&ch->tx_sync);
	u64_stats_init(&ch->rx_sync);
}

/* Nobody brings it up. */
static const struct net_device_ops ent_ops = {
	.ndo_start_xmit = skua_en_xmit,
};

/* Pages of the order that the layout of receive buffers asks for. */
static struct page_pool *ent_pool(struct skua_en_channel *ch)
{
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = ch->rx_order,
		.pool_size = BIT(LOG_RQ),
		.nid = NUMA_NO_NODE,
		.dev = ch->en->dma,
		.napi = &ch->napi,
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = PAGE_SIZE << ch->rx_order,
	};

	return page_pool_create(&params);
}

static struct ent *ent_create(struct kunit *test)
{
	struct ent *t = zalloc(test, sizeof(*t));
	struct skua_en_channel *ch = zalloc(test, sizeof(*ch));
	struct net_device *ndev;
	struct device *dev;

	t->test = test;
	t->ch = ch;
	dev = kunit_device_register(test, "skua_en_fake");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev);
	dev->dma_mask = &dev->coherent_dma_mask;
	KUNIT_ASSERT_EQ(test, dma_set_mask_and_coherent(dev, DMA_BIT_MASK(64)), 0);
	t->dev.dev = dev;
	/* Doorbells go where nobody looks. */
	t->dev.uar.map = (void __iomem __force *)zalloc(test, PAGE_SIZE);

	ndev = alloc_etherdev_mqs(sizeof(*t->en), SKUA_EN_MAX_CHANNELS, SKUA_EN_MAX_CHANNELS);
	KUNIT_ASSERT_NOT_NULL(test, ndev);
	t->en = netdev_priv(ndev);
	ndev->netdev_ops = &ent_ops;
	t->en->ndev = ndev;
	t->en->dev = &t->dev;
	t->en->dma = dev;
	t->en->conf.channels = 1;
	/* There is nothing that could be restarted. */
	t->en->dead = true;
	spin_lock_init(&t->en->stats_lock);
	ch->en = t->en;
	t->en->channel[0] = ch;
	ent_rings(t, ch);
	netif_napi_add(ndev, &ch->napi, skua_en_poll);
	ch->pool = ent_pool(ch);
	if (IS_ERR(ch->pool)) {
		free_netdev(ndev);
		KUNIT_FAIL_AND_ABORT(test, "no page pool: %ld", PTR_ERR(ch->pool));
	}
	napi_enable(&ch->napi);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, ent_exit, t), 0);
	netif_tx_start_all_queues(ndev);
	local_bh_disable();
	skua_en_rx_fill(ch);
	local_bh_enable();
	return t;
}

/* --- Receive buffers --- */

/* Of the last one no more than the netdev has */
static const unsigned int rx_mtus[] = { ETH_MIN_MTU, ETH_DATA_LEN, 2000, 4200, 9000, 65535 };

static void rx_mtu_name(const unsigned int *mtu, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "MTU %u", *mtu);
}

KUNIT_ARRAY_PARAM(rx_mtu, rx_mtus, rx_mtu_name);

/* Buffer @i of the WQE at @pos: in its page, with what the skb needs around it, and alone. */
static void rx_frag_check(struct ent *t, u32 pos, unsigned int i)
{
	const struct skua_en_channel *ch = t->ch;
	const struct skua_en_rx_frag *frag = &ch->rx_info[pos].frag[i];
	const struct skua_wqe_data *seg = (const struct skua_wqe_data *)ch->rq +
					  (pos << SKUA_EN_RX_LOG_SGE) + i;
	u32 before = i ? 0 : SKUA_EN_RX_HEADROOM, other, j;
	u32 behind = i ? 0 : SKB_DATA_ALIGN(sizeof(struct skb_shared_info));

	KUNIT_ASSERT_NOT_NULL(t->test, frag->page);
	KUNIT_EXPECT_LE(t->test, frag->offset + frag->truesize, PAGE_SIZE << ch->rx_order);
	KUNIT_EXPECT_GE(t->test, frag->truesize, before + ch->rx_room[i] + behind);
	KUNIT_EXPECT_EQ(t->test, le64_to_cpu(seg->addr),
			page_pool_get_dma_addr(frag->page) + frag->offset + before);
	KUNIT_EXPECT_EQ(t->test, le32_to_cpu(seg->len), ch->rx_room[i]);
	for (other = 0; other < BIT(LOG_RQ); other++) {
		for (j = 0; j < ch->nsge; j++) {
			const struct skua_en_rx_frag *o = &ch->rx_info[other].frag[j];

			if (o != frag && o->page == frag->page)
				KUNIT_EXPECT_TRUE(t->test,
						  o->offset + o->truesize <= frag->offset ||
						  frag->offset + frag->truesize <= o->offset);
		}
	}
}

/* The largest frame has room, and buffers that share a page do not overlap. */
static void test_rx_buffers(struct kunit *test)
{
	unsigned int mtu = min_t(u32, *(const unsigned int *)test->param_value, SKUA_EN_MAX_MTU), i;
	struct ent *t = ent_create(test);
	struct skua_en_channel *ch = t->ch;
	u32 pos, room = 0, shared = 0;

	local_bh_disable();
	skua_en_rx_flush(ch);
	local_bh_enable();
	napi_disable(&ch->napi);
	page_pool_destroy(ch->pool);
	ch->rx_pi = 0;
	ch->rx_ci = 0;
	skua_en_rx_layout(ch, mtu);
	ch->pool = ent_pool(ch);
	napi_enable(&ch->napi);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ch->pool));
	local_bh_disable();
	skua_en_rx_fill(ch);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, ch->rx_pi, BIT(LOG_RQ));
	for (i = 0; i < ch->nsge; i++)
		room += ch->rx_room[i];
	KUNIT_EXPECT_GE(test, room, mtu + VLAN_ETH_HLEN);
	for (pos = 0; pos < BIT(LOG_RQ); pos++) {
		for (i = 0; i < ch->nsge; i++)
			rx_frag_check(t, pos, i);
		shared += pos && ch->rx_info[pos].frag[0].page == ch->rx_info[pos - 1].frag[0].page;
	}
	/* With pages of 4 KiB two frames of an Ethernet share one, jumbo frames a larger one. */
	if (mtu <= ETH_DATA_LEN || ch->rx_order)
		KUNIT_EXPECT_GE(test, shared, BIT(LOG_RQ) / 2);
	if (mtu <= 9000)
		KUNIT_EXPECT_EQ(test, ch->nsge, 1);
}

/* --- Order --- */

static void publish_rx(struct skua_en_cq *cq)
{
	struct ent *t = kunit_get_current_test()->priv;

	t->publishes++;
	if (cq == &t->ch->rxcq) {
		/* Receives that the device may complete, and room for them that it knows of */
		if (le32_to_cpu(t->ch->dbr->rq_pi) - le32_to_cpu(cq->dbr->ci) > BIT(LOG_RQ))
			t->room_early++;
	} else if (t->ch->tx_ci != le32_to_cpu(cq->dbr->ci)) {
		/* One block a packet: the ring's index is the CQ's */
		t->room_early++;
	}
	cq->dbr->ci = cpu_to_le32(cq->ci);
}

/* A CQ has as many entries as its ring: its index first, then the ring's room. */
static void test_order(struct kunit *test)
{
	struct ent *t = ent_create(test);
	unsigned int i, n;

	test->priv = t;
	kunit_activate_static_stub(test, skua_en_cq_publish, publish_rx);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->ch->dbr->rq_pi), BIT(LOG_RQ));
	for (n = 1; n <= BIT(LOG_RQ); n++) {
		for (i = 0; i < n; i++)
			send_one(t);
		complete_sends(t, n);
		receive(t, n);
		KUNIT_ASSERT_EQ(test, poll(t, 2 * BIT(LOG_RQ)), n);
		KUNIT_ASSERT_EQ(test, le32_to_cpu(t->ch->rxcq.dbr->ci), t->rx_pi);
		KUNIT_ASSERT_EQ(test, le32_to_cpu(t->ch->txcq.dbr->ci), t->tx_pi);
		KUNIT_ASSERT_EQ(test, le32_to_cpu(t->ch->dbr->rq_pi), t->rx_pi + BIT(LOG_RQ));
		KUNIT_ASSERT_EQ(test, t->ch->tx_ci, t->tx_pi);
	}
	KUNIT_EXPECT_GE(test, t->publishes, 2 * BIT(LOG_RQ));
	KUNIT_EXPECT_EQ(test, t->room_early, 0);
	KUNIT_EXPECT_FALSE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
}

/* The send doorbell rung since this was asked last, or 0. */
static u64 send_doorbell(struct ent *t)
{
	__le64 *reg = (__force void *)t->dev.uar.map + SKUA_UAR_SQ;
	u64 word = le64_to_cpu(*reg);

	*reg = 0;
	return word;
}

/* Each packet has a doorbell, or with suppression only one that passes the event index. */
static void test_tx_suppress(struct kunit *test)
{
	struct ent *t = ent_create(test);

	send_one(t);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 1);
	send_one(t);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 2);
	t->ch->suppress = true;
	send_one(t);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->ch->dbr->sq_pi), 3);
	t->ch->dbr->sq_event = cpu_to_le32(3);
	send_one(t);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 4);
	send_one(t);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->ch->dbr->sq_pi), 5);
}

/* Sends do not keep a poll for ever. */
static void test_tx_budget(struct kunit *test)
{
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < SKUA_EN_TX_BUDGET + 10; i++)
		send_one(t);
	complete_sends(t, SKUA_EN_TX_BUDGET + 10);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 64);
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, SKUA_EN_TX_BUDGET);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 0);
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, SKUA_EN_TX_BUDGET + 10);
}

/* Completed, but not polled any more: these were sent. */
static void test_flush(struct kunit *test)
{
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < 5; i++)
		send_one(t);
	complete_sends(t, 3);
	skua_en_tx_flush(t->ch);
	KUNIT_EXPECT_EQ(test, t->en->stats.tx.packets, 3);
	KUNIT_EXPECT_EQ(test, t->en->stats.tx.bytes, 3 * FRAME_LEN);
	KUNIT_EXPECT_EQ(test, t->en->stats.xmit.dropped, 2);
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, t->ch->tx_pi);
}

/* Received, but not polled any more: dropped. A receive that was flushed was no frame. */
static void test_rx_flush(struct kunit *test)
{
	struct ent *t = ent_create(test);

	receive(t, 2);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 2);
	receive(t, 3);
	cq_write(&t->ch->rxcq, t->rx_pi, t->rx_pi, SKUA_CQE_WR_FLUSH_ERR, 0);
	skua_en_rx_flush(t->ch);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 2);
	KUNIT_EXPECT_EQ(test, t->en->stats.rx.dropped, 3);
}

/* A packet that failed counts as that, not as dropped, too. */
static void test_flush_failed(struct kunit *test)
{
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < 3; i++)
		send_one(t);
	cq_write(&t->ch->txcq, t->tx_pi++, 0, SKUA_CQE_LOC_PROT_ERR, 0);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 0);
	skua_en_tx_flush(t->ch);
	KUNIT_EXPECT_EQ(test, t->ch->tx_stats.errors, 1);
	KUNIT_EXPECT_EQ(test, t->en->stats.tx.packets, 0);
	KUNIT_EXPECT_EQ(test, t->en->stats.xmit.dropped, 2);
}

/* The whole tag, also its priority, and none for the next packet. */
static void test_tx_tag(struct kunit *test)
{
	struct ent *t = ent_create(test);
	const struct skua_wqe_ctrl *ctrl;

	send_tagged(t, 0xa123);
	send_one(t);
	ctrl = skua_sq_seg(&t->ch->sq, 0, 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->flags), SKUA_WQE_F_SIGNALED | SKUA_WQE_F_VLAN);
	KUNIT_EXPECT_EQ(test, le32_get_bits(ctrl->eth, SKUA_WQE_ETH_VLAN_TCI), 0xa123);
	ctrl = skua_sq_seg(&t->ch->sq, 1, 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->flags), SKUA_WQE_F_SIGNALED);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->eth), 0);
}

/* What the device says of checksums is believed only while that is wanted. */
static void test_rx_csum(struct kunit *test)
{
	struct ent *t = ent_create(test);
	struct skua_en_channel *ch = t->ch;
	struct skua_cqe *cqe = ch->rxcq.buf.va;
	unsigned int wanted;

	for (wanted = 0; wanted < 2; wanted++) {
		if (wanted)
			t->en->ndev->features |= NETIF_F_RXCSUM;
		cqe[wanted].eth.csum = cpu_to_le16(SKUA_CQE_CSUM_TCP | SKUA_CQE_CSUM_L4_OK);
		receive(t, 1);
		KUNIT_EXPECT_EQ(test, poll(t, 64), 1);
		KUNIT_EXPECT_EQ(test, ch->rx_stats.csum_none, 1);
		KUNIT_EXPECT_EQ(test, ch->rx_stats.csum_ok, wanted);
	}
}

/* Frames for a group, and for all, among others. */
static void test_rx_multicast(struct kunit *test)
{
	static const u8 group[ETH_ALEN] __aligned(2) = { 0x33, 0x33, 0, 0, 0, 1 };
	static const u8 own[ETH_ALEN] __aligned(2) = { 2, 0, 0, 0, 0, 1 };
	struct ent *t = ent_create(test);
	u8 all[ETH_ALEN] __aligned(2);

	eth_broadcast_addr(all);
	receive_one(t, group);
	receive_one(t, own);
	receive_one(t, all);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 3);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 3);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.multicast, 2);
}

/* A queue that has no channel: the packet is dropped, and counted. */
static void test_no_channel(struct kunit *test)
{
	struct ent *t = ent_create(test);
	struct rtnl_link_stats64 stats = {};
	struct sk_buff *skb = alloc_skb(FRAME_LEN, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_zero(skb, FRAME_LEN);
	skb_set_queue_mapping(skb, 3);
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, (int)skua_en_xmit(skb, t->en->ndev), (int)NETDEV_TX_OK);
	local_bh_enable();
	dev_get_stats(t->en->ndev, &stats);
	KUNIT_EXPECT_EQ(test, stats.tx_dropped, 1);
}

/* --- Frames that the device has merged --- */

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
			receive(t, 1);
		KUNIT_ASSERT_EQ(test, poll(t, 64), i % 3 ? 1 : 2);
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
	KUNIT_EXPECT_EQ(test, t->en->stats.rx.dropped, GRO_SEGS);
}

/* More fragments than an skb has room for are not asked for. */
static void test_gro_layout(struct kunit *test)
{
	unsigned int mtu = min_t(u32, *(const unsigned int *)test->param_value, SKUA_EN_MAX_MTU);
	struct skua_en_channel *ch = zalloc(test, sizeof(*ch));

	skua_en_rx_layout(ch, mtu);
	skua_en_rx_gro_init(ch, true);
	KUNIT_EXPECT_LE(test, ch->rx_gro * ch->nsge - 1, MAX_SKB_FRAGS);
	KUNIT_EXPECT_GT(test, ch->rx_gro, 1);
	skua_en_rx_gro_init(ch, false);
	KUNIT_EXPECT_EQ(test, ch->rx_gro, 0);
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
	KUNIT_EXPECT_EQ(test, poll(t, 64), 0);
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
	KUNIT_EXPECT_EQ(test, poll(t, 64), 0);
	KUNIT_EXPECT_TRUE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	t->ch->rx_pi = BIT(LOG_RQ);
}

/* --- A device that does not tell the truth --- */

struct lie {
	const char *name;
	bool tx;
	int index;	/* more than the right one */
	u32 status;
	u32 len;
	unsigned int posted;
};

static const struct lie lies[] = {
	{ "a send WQE of later", true, 1, SKUA_CQE_OK, 0, 2 },
	{ "a send WQE of before", true, -1, SKUA_CQE_OK, 0, 2 },
	{ "a send that was not posted", true, 0, SKUA_CQE_OK, 0, 0 },
	{ "a send that failed", true, 0, SKUA_CQE_LOC_PROT_ERR, 0, 2 },
	{ "a receive WQE of later", false, 1, SKUA_CQE_OK, FRAME_LEN, 0 },
	{ "a receive WQE of before", false, -1, SKUA_CQE_OK, FRAME_LEN, 0 },
	{ "no byte", false, 0, SKUA_CQE_OK, 0, 0 },
	{ "a byte too many", false, 0, SKUA_CQE_OK, PAGE_SIZE, 0 },
	{ "4 GiB", false, 0, SKUA_CQE_OK, U32_MAX, 0 },
	{ "a receive that failed", false, 0, SKUA_CQE_LOC_PROT_ERR, 0, 0 },
	{ "a receive that was flushed", false, 0, SKUA_CQE_WR_FLUSH_ERR, FRAME_LEN, 0 },
};

static void lie_name(const struct lie *lie, char *name)
{
	strscpy(name, lie->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lie, lies, lie_name);

/* The queue fails, and nothing more is taken from it or given to it. */
static void test_lie(struct kunit *test)
{
	const struct lie *lie = test->param_value;
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < lie->posted; i++)
		send_one(t);
	receive(t, 3);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 3);
	KUNIT_EXPECT_FALSE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	if (lie->tx)
		cq_write(&t->ch->txcq, t->tx_pi++, t->ch->tx_ci + lie->index, lie->status, 0);
	else
		cq_write(&t->ch->rxcq, t->rx_pi++, t->ch->rx_ci + lie->index, lie->status,
			 lie->len);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 0);
	KUNIT_EXPECT_TRUE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, 0);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 3);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.errors, lie->tx ? 0 : 1);
	KUNIT_EXPECT_EQ(test, t->ch->tx_stats.errors, lie->tx ? 1 : 0);
	/* Even if it is right afterwards. */
	complete_sends(t, 1);
	cq_write(&t->ch->rxcq, t->rx_pi, t->rx_pi, SKUA_CQE_OK, FRAME_LEN);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 0);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 3);
}

/* Only what was there at the last look, and is still there, is late. */
static void test_stuck(struct kunit *test)
{
	struct ent *t = ent_create(test);

	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	send_one(t);
	send_one(t);
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	complete_sends(t, 1);
	poll(t, 64);
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	send_one(t);
	KUNIT_EXPECT_TRUE(test, skua_en_tx_stuck(t->ch));
	complete_sends(t, 2);
	poll(t, 64);
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
}

static void count_restart(struct work_struct *work)
{
	container_of(to_delayed_work(work), struct skua_en, restart)->restarts[0]++;
}

/* The next send of a channel fails. Return: how often restarts were asked for so far. */
static u64 fail_send(struct ent *t, struct skua_en_channel *ch)
{
	cq_write(&ch->txcq, ch->txcq.ci, ch->tx_ci, SKUA_CQE_LOC_PROT_ERR, 0);
	local_bh_disable();
	skua_en_tx_poll(ch, 64);
	local_bh_enable();
	flush_delayed_work(&t->en->restart);
	return t->en->restarts[0];
}

/* What a channel did is not held against the other one of its queue. */
static void test_replaced(struct kunit *test)
{
	struct ent *t = ent_create(test);
	struct skua_en_channel *old = zalloc(test, sizeof(*old));

	old->en = t->en;
	ent_rings(t, old);
	INIT_DELAYED_WORK(&t->en->restart, count_restart);
	t->en->dead = false;
	/* Late, of the channel that was replaced: the one in use goes on. */
	KUNIT_EXPECT_EQ(test, fail_send(t, old), 1);
	receive(t, 3);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 3);
	/* The one in use, before the failure of the other one is dealt with */
	KUNIT_EXPECT_EQ(test, fail_send(t, t->ch), 2);
	receive(t, 3);
	KUNIT_EXPECT_EQ(test, poll(t, 64), 0);
	/* Once is enough. */
	KUNIT_EXPECT_EQ(test, fail_send(t, t->ch), 2);
	t->en->dead = true;
}

/* Completions by chance, most of them wrong: nothing is freed twice or left. */
static void test_noise(struct kunit *test)
{
	struct ent *t = ent_create(test);
	struct rnd_state rnd;
	unsigned int i, j;

	prandom_seed_state(&rnd, 1);
	for (i = 0; i < 2000; i++) {
		for (j = prandom_u32_state(&rnd) % 4; j--;)
			send_one(t);
		for (j = prandom_u32_state(&rnd) % 3; j--; t->tx_pi++)
			cq_write(&t->ch->txcq, t->tx_pi, t->tx_pi + !(prandom_u32_state(&rnd) % 50),
				 prandom_u32_state(&rnd) % 100 ? SKUA_CQE_OK :
				 prandom_u32_state(&rnd), prandom_u32_state(&rnd));
		if (prandom_u32_state(&rnd) % 50)
			receive(t, 1);
		else
			cq_write(&t->ch->rxcq, t->rx_pi++, prandom_u32_state(&rnd),
				 prandom_u32_state(&rnd) % 3, prandom_u32_state(&rnd));
		poll(t, 16);
		if (!test_bit(SKUA_EN_CH_FAILED, &t->ch->flags))
			continue;
		/* What a restart does, as far as the rings are concerned */
		local_bh_disable();
		skua_en_tx_flush(t->ch);
		skua_en_rx_flush(t->ch);
		t->ch->rxcq.ci = t->rx_pi;
		t->ch->rx_pi = t->rx_pi;
		t->ch->rx_ci = t->rx_pi;
		t->rx_wqe = t->rx_pi;
		t->ch->txcq.ci = t->tx_pi;
		t->ch->tx_ci = t->tx_pi;
		t->ch->tx_pi = t->tx_pi;
		netdev_tx_reset_queue(netdev_get_tx_queue(t->en->ndev, 0));
		clear_bit(SKUA_EN_CH_FAILED, &t->ch->flags);
		skua_en_rx_fill(t->ch);
		local_bh_enable();
		t->publishes++;
	}
	KUNIT_EXPECT_GE(test, t->publishes, 10);
}

static struct kunit_case skua_en_cases[] = {
	KUNIT_CASE_PARAM(test_rx_buffers, rx_mtu_gen_params),
	KUNIT_CASE(test_order),
	KUNIT_CASE(test_tx_suppress),
	KUNIT_CASE(test_tx_budget),
	KUNIT_CASE(test_flush),
	KUNIT_CASE(test_rx_flush),
	KUNIT_CASE(test_flush_failed),
	KUNIT_CASE(test_tx_tag),
	KUNIT_CASE(test_rx_csum),
	KUNIT_CASE(test_rx_multicast),
	KUNIT_CASE(test_no_channel),
	KUNIT_CASE(test_gro),
	KUNIT_CASE_PARAM(test_gro_layout, rx_mtu_gen_params),
	KUNIT_CASE_PARAM(test_gro_lie, gro_lie_gen_params),
	KUNIT_CASE(test_gro_beyond),
	KUNIT_CASE_PARAM(test_lie, lie_gen_params),
	KUNIT_CASE(test_stuck),
	KUNIT_CASE(test_replaced),
	KUNIT_CASE(test_noise),
	{}
};

static struct kunit_suite skua_en_suite = {
	.name = "skua_en",
	.test_cases = skua_en_cases,
};

kunit_test_suite(skua_en_suite);

MODULE_DESCRIPTION("KUnit tests of skua_en");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
