// SPDX-License-Identifier: GPL-2.0
/* A channel of a netdev without a device, see en_fake.h. */
#include <kunit/device.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <net/page_pool/helpers.h>

#include "en_fake.h"

void *ent_zalloc(struct kunit *test, size_t size)
{
	void *p = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	return p;
}

static void cq_make(struct ent *t, struct skua_en_cq *cq, u8 log_size)
{
	cq->log_size = log_size;
	cq->buf.va = ent_zalloc(t->test, sizeof(struct skua_cqe) << log_size);
	cq->dbr = ent_zalloc(t->test, sizeof(*cq->dbr));
}

void ent_cq_write(struct skua_en_cq *cq, u32 pi, u32 index, u32 status, u32 len)
{
	struct skua_cqe *cqe = (struct skua_cqe *)cq->buf.va + (pi & (BIT(cq->log_size) - 1));

	cqe->byte_len = cpu_to_le32(len);
	cqe->what = le32_encode_bits(index & 0xffff, SKUA_CQE_WQE_INDEX) |
		    le32_encode_bits(status, SKUA_CQE_STATUS);
	/* The rest of the entry is older than its phase. */
	dma_wmb();
	WRITE_ONCE(cqe->own, le32_encode_bits(!(pi >> cq->log_size & 1), SKUA_CQE_PHASE));
}

void ent_receive_one(struct ent *t, const u8 *dmac)
{
	struct skua_en_channel *ch = t->ch;
	u32 pos = t->rx_wqe & (BIT(LOG_RQ) - 1);
	const struct skua_en_rx_frag *frag = &ch->rx_info[pos].frag[0];
	struct ethhdr *eth = page_address(frag->page) + frag->offset + SKUA_EN_RX_HEADROOM;

	memset(eth, 0, FRAME_LEN);
	ether_addr_copy(eth->h_dest, dmac);
	/* IEEE 802 local experimental: nobody takes it */
	eth->h_proto = htons(0x88b5);
	ent_cq_write(&ch->rxcq, t->rx_pi++, t->rx_wqe++, SKUA_CQE_OK, FRAME_LEN);
}

void ent_receive(struct ent *t, unsigned int n)
{
	static const u8 dmac[ETH_ALEN] __aligned(2);

	while (n--)
		ent_receive_one(t, dmac);
}

int ent_poll(struct ent *t, int budget)
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

void ent_send(struct ent *t, u16 tci)
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

void ent_complete_sends(struct ent *t, unsigned int n)
{
	for (; n--; t->tx_pi++)
		ent_cq_write(&t->ch->txcq, t->tx_pi, t->tx_pi, SKUA_CQE_OK, 0);
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

void ent_rings(struct ent *t, struct skua_en_channel *ch)
{
	ch->log_rq = LOG_RQ;
	ch->log_sq = LOG_SQ;
	skua_en_rx_layout(ch, ETH_DATA_LEN, false);
	ch->rq = ent_zalloc(t->test, (SKUA_WQE_SEG << SKUA_EN_RX_LOG_SGE) << LOG_RQ);
	ch->rx_info = ent_zalloc(t->test, sizeof(*ch->rx_info) << LOG_RQ);
	ch->tx_info = ent_zalloc(t->test, sizeof(*ch->tx_info) << LOG_SQ);
	ch->tx_dma = ent_zalloc(t->test, (sizeof(*ch->tx_dma) * SKUA_WQE_SEGS_PER_BLOCK) << LOG_SQ);
	ch->dbr = ent_zalloc(t->test, sizeof(*ch->dbr));
	skua_sq_ring_init(&ch->sq, ent_zalloc(t->test, SKUA_WQE_BLOCK << LOG_SQ), LOG_SQ);
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
struct page_pool *ent_pool(struct skua_en_channel *ch)
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

struct ent *ent_create(struct kunit *test)
{
	struct ent *t = ent_zalloc(test, sizeof(*t));
	struct skua_en_channel *ch = ent_zalloc(test, sizeof(*ch));
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
	t->dev.uar.map = (void __iomem __force *)ent_zalloc(test, PAGE_SIZE);

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
	skua_en_rx_fill(ch, GFP_ATOMIC);
	local_bh_enable();
	return t;
}

static void count_restart(struct work_struct *work)
{
	container_of(to_delayed_work(work), struct skua_en, restart)->restarts[0]++;
}

void ent_count_restarts(struct ent *t)
{
	INIT_DELAYED_WORK(&t->en->restart, count_restart);
	t->en->dead = false;
}
