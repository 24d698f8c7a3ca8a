// SPDX-License-Identifier: GPL-2.0
/*
 * The netdev's queues, with rings in memory and a device that is a few lines of C:
 * what is published in which order, and a device that does not tell the truth.
 */
#include <kunit/static_stub.h>
#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/prandom.h>
#include <linux/tcp.h>
#include <net/page_pool/helpers.h>

#include "en_fake.h"

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
			ent_send(t, 0);
		ent_complete_sends(t, n);
		ent_receive(t, n);
		KUNIT_ASSERT_EQ(test, ent_poll(t, 2 * BIT(LOG_RQ)), n);
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

	ent_send(t, 0);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 1);
	ent_send(t, 0);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 2);
	t->ch->suppress = true;
	ent_send(t, 0);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->ch->dbr->sq_pi), 3);
	t->ch->dbr->sq_event = cpu_to_le32(3);
	ent_send(t, 0);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 4);
	ent_send(t, 0);
	KUNIT_EXPECT_EQ(test, send_doorbell(t), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(t->ch->dbr->sq_pi), 5);
}

/* Sends do not keep a poll for ever. */
static void test_tx_budget(struct kunit *test)
{
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < SKUA_EN_TX_BUDGET + 10; i++)
		ent_send(t, 0);
	ent_complete_sends(t, SKUA_EN_TX_BUDGET + 10);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 64);
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, SKUA_EN_TX_BUDGET);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, SKUA_EN_TX_BUDGET + 10);
}

/* Completed, but not polled any more: these were sent. */
static void test_flush(struct kunit *test)
{
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < 5; i++)
		ent_send(t, 0);
	ent_complete_sends(t, 3);
	skua_en_tx_flush(t->ch);
	KUNIT_EXPECT_EQ(test, t->en->stats[0].tx.packets, 3);
	KUNIT_EXPECT_EQ(test, t->en->stats[0].tx.bytes, 3 * FRAME_LEN);
	KUNIT_EXPECT_EQ(test, t->en->stats[0].xmit.dropped, 2);
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, t->ch->tx_pi);
}

/* Received, but not polled any more: dropped. A receive that was flushed was no frame. */
static void test_rx_flush(struct kunit *test)
{
	struct ent *t = ent_create(test);

	ent_receive(t, 2);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 2);
	ent_receive(t, 3);
	ent_cq_write(&t->ch->rxcq, t->rx_pi, t->rx_pi, SKUA_CQE_WR_FLUSH_ERR, 0);
	skua_en_rx_flush(t->ch);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 2);
	KUNIT_EXPECT_EQ(test, t->en->stats[0].rx.dropped, 3);
}

/* A packet that failed counts as that, not as dropped, too. */
static void test_flush_failed(struct kunit *test)
{
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < 3; i++)
		ent_send(t, 0);
	ent_cq_write(&t->ch->txcq, t->tx_pi++, 0, SKUA_CQE_LOC_PROT_ERR, 0);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	skua_en_tx_flush(t->ch);
	KUNIT_EXPECT_EQ(test, t->ch->tx_stats.errors, 1);
	KUNIT_EXPECT_EQ(test, t->en->stats[0].tx.packets, 0);
	KUNIT_EXPECT_EQ(test, t->en->stats[0].xmit.dropped, 2);
}

/* The whole tag, also its priority, and none for the next packet. */
static void test_tx_tag(struct kunit *test)
{
	struct ent *t = ent_create(test);
	const struct skua_wqe_ctrl *ctrl;

	ent_send(t, 0xa123);
	ent_send(t, 0);
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
		ent_receive(t, 1);
		KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 1);
		KUNIT_EXPECT_EQ(test, ch->rx_stats.csum_none, 1);
		KUNIT_EXPECT_EQ(test, ch->rx_stats.csum_ok, wanted);
	}
}

/* A datagram whose sender made no checksum is not one with a wrong checksum. */
static void test_rx_no_csum(struct kunit *test)
{
	static const struct {
		u16 csum;
		u8 ok, none, bad;
	} frames[] = {
		{ SKUA_CQE_CSUM_UDP | SKUA_CQE_CSUM_L4_NONE, 0, 1, 0 },
		{ SKUA_CQE_CSUM_UDP, 0, 0, 1 },
		{ SKUA_CQE_CSUM_TCP, 0, 0, 1 },
		{ SKUA_CQE_CSUM_UDP | SKUA_CQE_CSUM_L4_OK, 1, 0, 0 },
		{ SKUA_CQE_CSUM_IPV4, 0, 1, 0 },
		{ 0, 0, 1, 0 },
	};
	struct ent *t = ent_create(test);
	struct skua_en_rx_stats *stats = &t->ch->rx_stats;
	struct skua_cqe *cqe = t->ch->rxcq.buf.va;
	unsigned int i, ok = 0, none = 0, bad = 0;

	t->en->ndev->features |= NETIF_F_RXCSUM;
	for (i = 0; i < ARRAY_SIZE(frames); i++) {
		cqe[i].eth.csum = cpu_to_le16(frames[i].csum);
		ent_receive(t, 1);
		KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 1);
		KUNIT_EXPECT_EQ_MSG(test, stats->csum_ok, ok += frames[i].ok, "frame %u", i);
		KUNIT_EXPECT_EQ_MSG(test, stats->csum_none, none += frames[i].none, "frame %u", i);
		KUNIT_EXPECT_EQ_MSG(test, stats->csum_bad, bad += frames[i].bad, "frame %u", i);
	}
}

/* Frames for a group among others. One for all is none: IEEE 802.3, aMulticastFramesReceivedOK. */
static void test_rx_multicast(struct kunit *test)
{
	static const u8 group[ETH_ALEN] __aligned(2) = { 0x33, 0x33, 0, 0, 0, 1 };
	static const u8 own[ETH_ALEN] __aligned(2) = { 2, 0, 0, 0, 0, 1 };
	struct ent *t = ent_create(test);
	u8 all[ETH_ALEN] __aligned(2);

	eth_broadcast_addr(all);
	ent_receive_one(t, group);
	ent_receive_one(t, own);
	ent_receive_one(t, all);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 3);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 3);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.multicast, 1);
}

/* A TCP segment that the device cuts: its head, @payload bytes, and @mss for each frame. */
static void send_gso(struct ent *t, u32 payload, u16 mss)
{
	const u32 hdr = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct tcphdr) + 12;
	struct net_device *ndev = t->en->ndev;
	struct sk_buff *skb = alloc_skb(hdr + payload, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(t->test, skb);
	skb_put_zero(skb, hdr + payload);
	skb->dev = ndev;
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(struct iphdr));
	tcp_hdr(skb)->doff = (sizeof(struct tcphdr) + 12) / 4;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
	skb_shinfo(skb)->gso_size = mss;
	local_bh_disable();
	KUNIT_EXPECT_EQ(t->test, (int)skua_en_xmit(skb, ndev), (int)NETDEV_TX_OK);
	local_bh_enable();
}

/* netdev.yaml counts what is on the wire: each frame of a segment, with its headers. */
static void test_tx_wire(struct kunit *test)
{
	struct ent *t = ent_create(test);
	const struct skua_en_tx_stats *stats = &t->ch->tx_stats;

	ent_send(t, 0);
	send_gso(t, 3001, 1000);
	send_gso(t, 2000, 1000);
	ent_complete_sends(t, 3);
	ent_poll(t, 64);
	KUNIT_EXPECT_EQ(test, stats->packets, 1 + 4 + 2);
	KUNIT_EXPECT_EQ(test, stats->bytes, FRAME_LEN + 4 * 66 + 3001 + 2 * 66 + 2000);
	KUNIT_EXPECT_EQ(test, stats->needs_csum, 4 + 2);
	KUNIT_EXPECT_EQ(test, stats->gso_packets, 2);
	KUNIT_EXPECT_EQ(test, stats->gso_bytes, 2 * 66 + 3001 + 2000);
	KUNIT_EXPECT_EQ(test, stats->gso_wire_packets, 4 + 2);
	KUNIT_EXPECT_EQ(test, stats->gso_wire_bytes, 4 * 66 + 3001 + 2 * 66 + 2000);
}

/* --- Offloads by headers --- */

struct tags {
	const char *name;
	u16 band[2];	/* tags in the frame, the outer one first; 0: none */
	u16 apart;	/* tag in the skb */
	bool insert;	/* by the device */
	bool offload;	/* the device finds the headers */
};

static const struct tags tagged[] = {
	{ "untagged", { }, 0, true, true },
	{ "802.1Q", { }, ETH_P_8021Q, true, true },
	{ "802.1Q, by software", { }, ETH_P_8021Q, false, true },
	{ "802.1Q in the frame", { ETH_P_8021Q }, 0, true, true },
	{ "two, one in the frame", { ETH_P_8021Q }, ETH_P_8021Q, true, false },
	{ "two, by software", { ETH_P_8021Q }, ETH_P_8021Q, false, false },
	{ "two in the frame", { ETH_P_8021Q, ETH_P_8021Q }, 0, true, false },
	{ "802.1ad", { }, ETH_P_8021AD, true, false },
	{ "802.1ad, by software", { }, ETH_P_8021AD, false, false },
	{ "802.1ad in the frame", { ETH_P_8021AD }, 0, true, false },
	{ "802.1Q in 802.1ad", { ETH_P_8021Q }, ETH_P_8021AD, true, false },
	{ "both in the frame", { ETH_P_8021AD, ETH_P_8021Q }, 0, true, false },
	{ "802.1ad in 802.1Q", { ETH_P_8021AD }, ETH_P_8021Q, true, false },
};

static void tags_name(const struct tags *tags, char *name)
{
	strscpy(name, tags->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(tags, tagged, tags_name);

/* TCP whose checksum is left to the device, behind the tags. */
static struct sk_buff *tagged_skb(struct kunit *test, const struct tags *tags, bool v6)
{
	unsigned int ip = v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr), i;
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	__be16 proto = htons(v6 ? ETH_P_IPV6 : ETH_P_IP);
	__be16 *type;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reset_mac_header(skb);
	skb_put_zero(skb, ETH_HLEN);
	type = (__be16 *)(skb->data + 2 * ETH_ALEN);
	for (i = 0; i < ARRAY_SIZE(tags->band) && tags->band[i]; i++) {
		*type = htons(tags->band[i]);
		type = skb_put_zero(skb, VLAN_HLEN) + 2;
	}
	*type = proto;
	skb->protocol = tags->band[0] ? htons(tags->band[0]) : proto;
	skb_set_network_header(skb, skb->len);
	skb_put_zero(skb, ip + sizeof(struct tcphdr) + 50);
	if (v6) {
		ipv6_hdr(skb)->version = 6;
		ipv6_hdr(skb)->nexthdr = IPPROTO_TCP;
	} else {
		ip_hdr(skb)->version = 4;
		ip_hdr(skb)->ihl = 5;
		ip_hdr(skb)->protocol = IPPROTO_TCP;
	}
	skb_set_transport_header(skb, skb_network_offset(skb) + ip);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	if (tags->apart)
		__vlan_hwaccel_put_tag(skb, htons(tags->apart), 7);
	return skb;
}

/* Checksum and segmentation are left to the device only where it finds the headers. */
static void test_features_tags(struct kunit *test)
{
	const struct tags *tags = test->param_value;
	netdev_features_t offloads = NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM | NETIF_F_TSO |
				     NETIF_F_TSO6;
	netdev_features_t all = offloads | NETIF_F_SG | NETIF_F_HIGHDMA, got;
	struct ent *t = ent_create(test);
	unsigned int v6, gso;

	if (tags->insert)
		all |= NETIF_F_HW_VLAN_CTAG_TX;
	for (v6 = 0; v6 < 2; v6++) {
		for (gso = 0; gso < 2; gso++) {
			struct sk_buff *skb = tagged_skb(test, tags, v6);

			if (gso) {
				skb_shinfo(skb)->gso_size = 10;
				skb_shinfo(skb)->gso_segs = 5;
				skb_shinfo(skb)->gso_type = v6 ? SKB_GSO_TCPV6 : SKB_GSO_TCPV4;
			}
			got = skua_en_features_check(skb, t->en->ndev, all) & offloads;
			if (!tags->offload)
				KUNIT_EXPECT_EQ(test, got, 0);
			else
				KUNIT_EXPECT_EQ(test, got & NETIF_F_CSUM_MASK,
						offloads & NETIF_F_CSUM_MASK);
			kfree_skb(skb);
		}
	}
}

/* Of how many frames a large segment may be, and how long these may be. */
static void test_features_mss(struct kunit *test)
{
	const struct {
		u32 len;
		u16 mss;
		bool fits;
	} sizes[] = {
		{ 60000, 1448, true },
		{ 60000, 15, true },
		{ 60000, 14, false },
		{ SKUA_WQE_ETH_LSO_FRAMES, 1, true },
		{ SKUA_WQE_ETH_LSO_FRAMES + 1, 1, false },
		{ 60000, FIELD_MAX(SKUA_WQE_ETH_MSS), true },
		{ 60000, FIELD_MAX(SKUA_WQE_ETH_MSS) + 1, false },
	};
	struct ent *t = ent_create(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct sk_buff *skb = alloc_skb(sizes[i].len, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, skb);
		skb_put_zero(skb, sizes[i].len);
		skb->protocol = htons(ETH_P_IP);
		skb_shinfo(skb)->gso_size = sizes[i].mss;
		skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
		KUNIT_EXPECT_EQ(test, skua_en_features_check(skb, t->en->ndev, NETIF_F_TSO),
				sizes[i].fits ? NETIF_F_TSO : 0);
		kfree_skb(skb);
	}
}

/* --- Adaptive moderation --- */

static void dim_owned(struct skua_en_channel *ch)
{
	struct ent *t = kunit_get_current_test()->priv;

	t->publishes++;
	/* napi_disable() waits for this bit, and then the work is cancelled for the last time. */
	if (!test_bit(NAPI_STATE_SCHED, &ch->napi.state))
		t->room_early++;
}

/* Nothing queues the work item of a channel after NAPI was disabled. */
static void test_dim_in_poll(struct kunit *test)
{
	struct ent *t = ent_create(test);

	test->priv = t;
	kunit_activate_static_stub(test, skua_en_dim, dim_owned);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_EQ(test, t->publishes, 0);
	t->en->adaptive = true;
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_EQ(test, t->publishes, 1);
	KUNIT_EXPECT_EQ(test, t->room_early, 0);
}

static void no_work(struct work_struct *work)
{
}

#define STOPPED		3	/* channels that are stopped together */

/**
 * struct poll_end - a poll of one of several channels that are stopped
 * @napi: the channel's
 * @late: its end takes longer
 * @stopped: all are stopped
 * @outlived: then it had not ended
 * @done: it has ended
 */
struct poll_end {
	struct napi_struct *napi;
	bool late, outlived;
	const bool *stopped;
	struct completion done;
};

/* The end of a poll, when its channel is to be stopped: NAPI is given up, CQs are not armed yet. */
static int poll_end(void *data)
{
	struct poll_end *p = data;
	ktime_t end;

	while (!test_bit(NAPI_STATE_DISABLE, &p->napi->state))
		usleep_range(100, 200);
	local_bh_disable();
	napi_complete_done(p->napi, 0);
	end = ktime_add_ms(ktime_get(), p->late ? 100 : 0);
	while (!READ_ONCE(*p->stopped) && ktime_before(ktime_get(), end))
		cpu_relax();
	p->outlived = READ_ONCE(*p->stopped);
	local_bh_enable();
	kthread_complete_and_exit(&p->done, 0);
}

static void napi_del(void *napi)
{
	netif_napi_del(napi);
}

/* Another channel without rings, which is polled by nobody. */
static struct skua_en_channel *channel_add(struct ent *t, unsigned int index)
{
	struct skua_en_channel *ch = ent_zalloc(t->test, sizeof(*ch));

	ch->en = t->en;
	ch->index = index;
	netif_napi_add(t->en->ndev, &ch->napi, skua_en_poll);
	KUNIT_ASSERT_EQ(t->test, kunit_add_action_or_reset(t->test, napi_del, &ch->napi), 0);
	napi_enable(&ch->napi);
	return ch;
}

/* Channels that are stopped arm no CQ any more, whichever of them is the last to end its poll. */
static void test_stop_waits(struct kunit *test)
{
	struct skua_en_channel *ch[STOPPED];
	struct poll_end poll[STOPPED];
	struct ent *t = ent_create(test);
	unsigned int late, i;
	bool stopped;

	ch[0] = t->ch;
	for (i = 1; i < STOPPED; i++)
		ch[i] = channel_add(t, i);
	for (i = 0; i < STOPPED; i++)
		INIT_WORK(&ch[i]->dim.work, no_work);
	for (late = 0; late < STOPPED; late++) {
		stopped = false;
		for (i = 0; i < STOPPED; i++) {
			struct task_struct *task;

			poll[i] = (struct poll_end){ .napi = &ch[i]->napi, .late = i == late,
						     .stopped = &stopped };
			init_completion(&poll[i].done);
			/* Its poll is under way. */
			KUNIT_EXPECT_TRUE(test, napi_schedule_prep(poll[i].napi));
			task = kthread_run(poll_end, &poll[i], "skua_en_poll_end%u", i);
			KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(task), 0);
			if (IS_ERR(task)) {
				napi_complete_done(poll[i].napi, 0);
				complete(&poll[i].done);
			}
		}
		skua_en_channels_stop(ch, STOPPED);
		WRITE_ONCE(stopped, true);
		for (i = 0; i < STOPPED; i++) {
			wait_for_completion(&poll[i].done);
			KUNIT_EXPECT_FALSE_MSG(test, poll[i].outlived, "channel %u", i);
			napi_enable(&ch[i]->napi);
		}
	}
	for (i = 1; i < STOPPED; i++)
		napi_disable(&ch[i]->napi);
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
		ent_send(t, 0);
	ent_receive(t, 3);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 3);
	KUNIT_EXPECT_FALSE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	if (lie->tx)
		ent_cq_write(&t->ch->txcq, t->tx_pi++, t->ch->tx_ci + lie->index, lie->status, 0);
	else
		ent_cq_write(&t->ch->rxcq, t->rx_pi++, t->ch->rx_ci + lie->index, lie->status,
			     lie->len);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_TRUE(test, test_bit(SKUA_EN_CH_FAILED, &t->ch->flags));
	KUNIT_EXPECT_EQ(test, t->ch->tx_ci, 0);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 3);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.errors, lie->tx ? 0 : 1);
	KUNIT_EXPECT_EQ(test, t->ch->tx_stats.errors, lie->tx ? 1 : 0);
	/* Even if it is right afterwards. */
	ent_complete_sends(t, 1);
	ent_cq_write(&t->ch->rxcq, t->rx_pi, t->rx_pi, SKUA_CQE_OK, FRAME_LEN);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	KUNIT_EXPECT_EQ(test, t->ch->rx_stats.packets, 3);
}

/* Only what was there at the last look, and is still there, is late. */
static void test_stuck(struct kunit *test)
{
	struct ent *t = ent_create(test);

	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	ent_send(t, 0);
	ent_send(t, 0);
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	ent_complete_sends(t, 1);
	ent_poll(t, 64);
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	ent_send(t, 0);
	KUNIT_EXPECT_TRUE(test, skua_en_tx_stuck(t->ch));
	ent_complete_sends(t, 2);
	ent_poll(t, 64);
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
	KUNIT_EXPECT_FALSE(test, skua_en_tx_stuck(t->ch));
}

/* The next send of a channel fails. Return: how often restarts were asked for so far. */
static u64 fail_send(struct ent *t, struct skua_en_channel *ch)
{
	ent_cq_write(&ch->txcq, ch->txcq.ci, ch->tx_ci, SKUA_CQE_LOC_PROT_ERR, 0);
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
	struct skua_en_channel *old = ent_zalloc(test, sizeof(*old));

	old->en = t->en;
	ent_rings(t, old);
	ent_count_restarts(t);
	/* Late, of the channel that was replaced: the one in use goes on. */
	KUNIT_EXPECT_EQ(test, fail_send(t, old), 1);
	ent_receive(t, 3);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 3);
	/* The one in use, before the failure of the other one is dealt with */
	KUNIT_EXPECT_EQ(test, fail_send(t, t->ch), 2);
	ent_receive(t, 3);
	KUNIT_EXPECT_EQ(test, ent_poll(t, 64), 0);
	/* Once is enough. */
	KUNIT_EXPECT_EQ(test, fail_send(t, t->ch), 2);
	t->en->dead = true;
}

/* The time is virtual. A queue fails whenever it works. Return: restarts in @secs seconds. */
static unsigned int restarts_in(struct skua_en_pace *pace, u64 *now, unsigned int secs)
{
	u64 end = *now + secs * HZ;
	unsigned int n = 0;
	unsigned long wait;

	while (*now < end) {
		wait = skua_en_restart_wait(pace, *now);
		n += !wait;
		/* As much as the failure takes; or sooner, for another queue's. */
		*now += wait > HZ ? wait / 2 : wait ?: 1;
	}
	return n;
}

/* Restarts of a queue that fails again and again become rare; one that had worked is restarted. */
static void test_restart_pace(struct kunit *test)
{
	struct skua_en_pace pace = {};
	/* As early as a netdev can be there */
	u64 now = INITIAL_JIFFIES, before;
	unsigned int n, row;

	KUNIT_EXPECT_EQ(test, skua_en_restart_wait(&pace, now), 0);
	KUNIT_EXPECT_EQ(test, skua_en_restart_wait(&pace, now), SKUA_EN_RESTART_FIRST);
	n = restarts_in(&pace, &now, 60);
	KUNIT_EXPECT_GE(test, n, 60 / 3);
	KUNIT_EXPECT_LE(test, n, 60 / 2 + 6);
	n = restarts_in(&pace, &now, 3600);
	KUNIT_EXPECT_LE(test, n, 3600 / 2 + 1);
	/* Each wait is shorter than what makes the queue one that had worked. */
	before = now;
	while (skua_en_restart_wait(&pace, now))
		now++;
	KUNIT_EXPECT_LE(test, now - before, SKUA_EN_RESTART_LONGEST);

	/* That one begins anew: if it fails again, the next wait is the shortest. */
	now += SKUA_EN_RESTART_CALM;
	for (row = 0; row < 2; row++, now += SKUA_EN_RESTART_CALM) {
		KUNIT_EXPECT_EQ(test, skua_en_restart_wait(&pace, now), 0);
		KUNIT_EXPECT_EQ(test, skua_en_restart_wait(&pace, now), SKUA_EN_RESTART_FIRST);
	}
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
			ent_send(t, 0);
		for (j = prandom_u32_state(&rnd) % 3; j--; t->tx_pi++)
			ent_cq_write(&t->ch->txcq, t->tx_pi,
				     t->tx_pi + !(prandom_u32_state(&rnd) % 50),
				     prandom_u32_state(&rnd) % 100 ? SKUA_CQE_OK :
				     prandom_u32_state(&rnd), prandom_u32_state(&rnd));
		if (prandom_u32_state(&rnd) % 50)
			ent_receive(t, 1);
		else
			ent_cq_write(&t->ch->rxcq, t->rx_pi++, prandom_u32_state(&rnd),
				     prandom_u32_state(&rnd) % 3, prandom_u32_state(&rnd));
		ent_poll(t, 16);
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
		skua_en_rx_fill(t->ch, GFP_ATOMIC);
		local_bh_enable();
		t->publishes++;
	}
	KUNIT_EXPECT_GE(test, t->publishes, 10);
}

static struct kunit_case skua_en_cases[] = {
	KUNIT_CASE(test_order),
	KUNIT_CASE(test_tx_suppress),
	KUNIT_CASE(test_tx_budget),
	KUNIT_CASE(test_flush),
	KUNIT_CASE(test_rx_flush),
	KUNIT_CASE(test_flush_failed),
	KUNIT_CASE(test_tx_tag),
	KUNIT_CASE(test_tx_wire),
	KUNIT_CASE(test_rx_csum),
	KUNIT_CASE(test_rx_no_csum),
	KUNIT_CASE(test_rx_multicast),
	KUNIT_CASE_PARAM(test_features_tags, tags_gen_params),
	KUNIT_CASE(test_features_mss),
	KUNIT_CASE(test_dim_in_poll),
	KUNIT_CASE_SLOW(test_stop_waits),
	KUNIT_CASE(test_no_channel),
	KUNIT_CASE_PARAM(test_lie, lie_gen_params),
	KUNIT_CASE(test_stuck),
	KUNIT_CASE(test_replaced),
	KUNIT_CASE(test_restart_pace),
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
