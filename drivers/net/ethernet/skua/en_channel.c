// SPDX-License-Identifier: GPL-2.0
/*
 * Channels: rings, CQs and the RAW_ETH QP behind one queue of the netdev, and
 * the NAPI poll that serves them.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/numa.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "en.h"

/**
 * skua_en_cq_next() - take the next new CQE
 * @cq: the CQ
 *
 * Return: the entry, which stays valid until the consumer index is published,
 * or NULL.
 */
const struct skua_cqe *skua_en_cq_next(struct skua_en_cq *cq)
{
	const struct skua_cqe *cqe = cq->buf.va;

	cqe += cq->ci & (BIT(cq->log_size) - 1);
	if (!skua_cqe_is_new(cqe, cq->ci, cq->log_size))
		return NULL;
	/* Read the rest of the entry only after its phase. */
	dma_rmb();
	cq->ci++;
	return cqe;
}

/**
 * skua_en_cq_publish() - tell the device which entries are free
 * @cq: the CQ
 *
 * Writes the consumer index to the doorbell record, which the device reads when
 * the CQ looks full to it. A CQ has as many entries as its ring has WQEs: room in
 * the ring may be given out only after the entries that its completions used.
 */
void skua_en_cq_publish(struct skua_en_cq *cq)
{
	KUNIT_STATIC_STUB_REDIRECT(skua_en_cq_publish, cq);
	/* Finish reading the entries before the device may overwrite them. */
	dma_mb();
	WRITE_ONCE(cq->dbr->ci, cpu_to_le32(cq->ci));
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_cq_publish);

/**
 * skua_en_cq_arm() - ask for an interrupt at the next completion
 * @en: the netdev
 * @cq: the CQ
 */
void skua_en_cq_arm(struct skua_en *en, struct skua_en_cq *cq)
{
	skua_ring_db(skua_kernel_uar(en->dev), SKUA_UAR_CQ_ARM, cq->ci,
		     skua_db_cq_arm(cq->cq.obj.num, cq->serial++, false));
}

/**
 * skua_en_poll() - serve a channel's completions
 * @napi: the channel's NAPI context
 * @budget: receive packets to take at most
 *
 * Return: receive packets taken; @budget if there is more to do.
 */
int skua_en_poll(struct napi_struct *napi, int budget)
{
	struct skua_en_channel *ch = container_of(napi, struct skua_en_channel, napi);
	bool tx_more;
	int done;

	if (unlikely(test_bit(SKUA_EN_CH_FAILED, &ch->flags))) {
		if (budget)
			napi_complete_done(napi, 0);
		return 0;
	}
	tx_more = skua_en_tx_poll(ch, budget);
	if (!budget)
		return 0;

	done = skua_en_rx_poll(ch, budget);
	if (tx_more || done == budget)
		return budget;

	/* Before NAPI is given up: skua_en_dim_stop() follows napi_disable(). */
	if (READ_ONCE(ch->en->adaptive))
		skua_en_dim(ch);
	/*
	 * If the device has written a CQE at or past the index that is armed here, of which
	 * no event has told yet, it interrupts at once: a completion between the last look and
	 * the arm is not lost.
	 */
	if (napi_complete_done(napi, done)) {
		skua_en_cq_arm(ch->en, &ch->txcq);
		skua_en_cq_arm(ch->en, &ch->rxcq);
	}
	return done;
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_poll);

static void skua_en_tx_comp(struct skua_cq *cq)
{
	napi_schedule_irqoff(&container_of(cq, struct skua_en_channel, txcq.cq)->napi);
}

static void skua_en_rx_comp(struct skua_cq *cq)
{
	struct skua_en_channel *ch = container_of(cq, struct skua_en_channel, rxcq.cq);

	WRITE_ONCE(ch->rx_events, ch->rx_events + 1);
	napi_schedule_irqoff(&ch->napi);
}

static int skua_en_cq_create(struct skua_en_channel *ch, struct skua_en_cq *cq,
			     void (*comp)(struct skua_cq *cq), u32 entries, u32 moderation)
{
	struct skua_en *en = ch->en;
	struct skua_cqc cqc = {};
	size_t ring;
	int err;

	cq->log_size = ilog2(roundup_pow_of_two(entries));
	ring = sizeof(struct skua_cqe) << cq->log_size;
	err = skua_buf_alloc(en->dev, &cq->buf, ring + SKUA_DBR_ALIGN);
	if (err)
		return err;

	cq->dbr = cq->buf.va + ring;
	cq->cq.comp = comp;
	cq->cq.vector = ch->index % skua_num_comp_vectors(en->dev);
	cqc.flags = le32_encode_bits(cq->log_size, SKUA_CQC_LOG_SIZE);
	cqc.uar = cpu_to_le32(skua_kernel_uar(en->dev)->index);
	cqc.moderation = cpu_to_le32(moderation);
	cqc.ring = skua_buf_xlat(&cq->buf);
	cqc.dbr = cpu_to_le64(cq->buf.dma + ring);
	err = skua_cq_create(en->dev, &cq->cq, &cqc);
	if (err)
		skua_buf_free(en->dev, &cq->buf);
	return err;
}

static void skua_en_cq_destroy(struct skua_en *en, struct skua_en_cq *cq)
{
	skua_cq_destroy(en->dev, &cq->cq);
	skua_buf_free(en->dev, &cq->buf);
}

/* Pages whose parts fill the ring. */
static unsigned int skua_en_rx_pages(const struct skua_en_channel *ch)
{
	unsigned int frames;

	if (!ch->rx_order)
		return ch->nsge << ch->log_rq;
	frames = (PAGE_SIZE << ch->rx_order) / skua_en_rx_size(ch, 0);
	return DIV_ROUND_UP(BIT(ch->log_rq), frames);
}

static int skua_en_pool_create(struct skua_en_channel *ch)
{
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = ch->rx_order,
		.pool_size = skua_en_rx_pages(ch),
		.nid = NUMA_NO_NODE,
		.dev = ch->en->dma,
		.napi = &ch->napi,
		.netdev = ch->en->ndev,
		.queue_idx = ch->index,
		.dma_dir = DMA_FROM_DEVICE,
		.max_len = PAGE_SIZE << ch->rx_order,
	};

	ch->pool = page_pool_create(&params);
	return PTR_ERR_OR_ZERO(ch->pool);
}

/* Receive ring, send ring and record in one piece of coherent memory. */
static int skua_en_rings_alloc(struct skua_en_channel *ch)
{
	size_t rq = ((size_t)SKUA_WQE_SEG << SKUA_EN_RX_LOG_SGE) << ch->log_rq;
	size_t sq = (size_t)SKUA_WQE_BLOCK << ch->log_sq;
	int err;

	ch->tx_info = kvcalloc(BIT(ch->log_sq), sizeof(*ch->tx_info), GFP_KERNEL);
	ch->tx_dma = kvcalloc(SKUA_WQE_SEGS_PER_BLOCK << ch->log_sq, sizeof(*ch->tx_dma),
			      GFP_KERNEL);
	ch->rx_info = kvcalloc(BIT(ch->log_rq), sizeof(*ch->rx_info), GFP_KERNEL);
	if (!ch->tx_info || !ch->tx_dma || !ch->rx_info) {
		err = -ENOMEM;
		goto err_free;
	}
	err = skua_buf_alloc(ch->en->dev, &ch->buf, rq + sq + SKUA_DBR_ALIGN);
	if (err)
		goto err_free;
	ch->rq = ch->buf.va;
	skua_sq_ring_init(&ch->sq, ch->buf.va + rq, ch->log_sq);
	ch->dbr = ch->buf.va + rq + sq;
	return 0;

err_free:
	kvfree(ch->rx_info);
	kvfree(ch->tx_dma);
	kvfree(ch->tx_info);
	return err;
}

static void skua_en_rings_free(struct skua_en_channel *ch)
{
	skua_buf_free(ch->en->dev, &ch->buf);
	kvfree(ch->rx_info);
	kvfree(ch->tx_dma);
	kvfree(ch->tx_info);
}

static int skua_en_qp_state(struct skua_en_channel *ch, enum skua_qp_state state, u32 mask)
{
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_STATE | mask),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
		.attr.state = le32_encode_bits(state, SKUA_ATTR_STATE),
	};

	return skua_qp_modify(ch->en->dev, &ch->qp, &in);
}

/**
 * skua_en_channel_fail() - have a channel in error replaced
 * @ch: the channel, in use or not
 * @fmt: the error, for the log
 *
 * NAPI stops serving the channel at once; skua_en_restart_work() replaces it if it is in
 * use by then. A channel that has been replaced already does not count against its
 * successor.
 *
 * Context: any.
 */
void skua_en_channel_fail(struct skua_en_channel *ch, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	struct skua_en *en = ch->en;
	va_list args;

	if (test_and_set_bit(SKUA_EN_CH_FAILED, &ch->flags))
		return;
	va_start(args, fmt);
	vaf.va = &args;
	if (net_ratelimit())
		netdev_err(en->ndev, "queue %u: %pV, restarting it\n", ch->index, &vaf);
	va_end(args);
	if (!READ_ONCE(en->dead))
		mod_delayed_work(system_percpu_wq, &en->restart, 0);
}

/**
 * skua_en_channel_starved() - have a channel replaced by one with small receive pages
 * @ch: the channel
 *
 * It goes on until skua_en_restart_work() has one to take its place, or there is memory.
 *
 * Context: any.
 */
void skua_en_channel_starved(struct skua_en_channel *ch)
{
	struct skua_en *en = ch->en;

	if (test_and_set_bit(SKUA_EN_CH_STARVED, &ch->flags))
		return;
	if (net_ratelimit())
		netdev_warn(en->ndev, "queue %u: no memory for receive buffers in pages of order %u, replacing it by one with smaller pages\n",
			    ch->index, ch->rx_order);
	if (!READ_ONCE(en->dead))
		mod_delayed_work(system_percpu_wq, &en->restart, 0);
}

/* A QP in ERR stays there until software resets or destroys it. */
static void skua_en_qp_event(struct skua_qp *qp, enum skua_qp_event event)
{
	struct skua_en_channel *ch = container_of(qp, struct skua_en_channel, qp);

	if (event == SKUA_QP_EV_FATAL || event == SKUA_QP_EV_REQ_ERR ||
	    event == SKUA_QP_EV_ACCESS_ERR)
		skua_en_channel_fail(ch, "QP 0x%x: error event %d", qp->obj.num, event);
}

static int skua_en_qp_create(struct skua_en_channel *ch)
{
	struct skua_en *en = ch->en;
	struct skua_cmd_create_qp_in in = {};
	size_t rq = ch->sq.buf - ch->buf.va;
	int err;

	in.sq.flags = le32_encode_bits(SKUA_QP_RAW_ETH, SKUA_QP_TYPE) |
		      cpu_to_le32(SKUA_QP_F_RESERVED_LKEY | SKUA_QP_F_NO_LOOPBACK) |
		      le32_encode_bits(ch->log_sq, SKUA_QP_LOG_SQ);
	ch->suppress = skua_limits(en->dev)->caps & SKUA_CAP_DB_SUPPRESS;
	if (ch->suppress)
		in.sq.flags |= cpu_to_le32(SKUA_QP_F_DB_SUPPRESS);
	in.sq.pd = cpu_to_le32(en->pdn);
	in.sq.cqn = cpu_to_le32(ch->txcq.cq.obj.num);
	in.sq.uar = cpu_to_le32(skua_kernel_uar(en->dev)->index);
	in.sq.ring = skua_buf_xlat(&ch->buf);
	in.sq.ring.base = cpu_to_le64(ch->buf.dma + rq);
	in.sq.dbr = cpu_to_le64(ch->buf.dma + ((void *)ch->dbr - ch->buf.va));
	in.rq.flags = le32_encode_bits(ch->log_rq, SKUA_RQ_LOG_SIZE) |
		      le32_encode_bits(SKUA_EN_RX_LOG_SGE, SKUA_RQ_LOG_STRIDE) |
		      le32_encode_bits(ch->rx_gro, SKUA_RQ_GRO);
	in.rq.cqn = cpu_to_le32(ch->rxcq.cq.obj.num);
	in.rq.ring = skua_buf_xlat(&ch->buf);

	ch->qp.event = skua_en_qp_event;
	err = skua_qp_create(en->dev, &ch->qp, &in, false);
	if (err)
		return err;
	err = skua_en_qp_state(ch, SKUA_QP_INIT, SKUA_QP_M_PORT);
	if (err)
		goto err_destroy;
	/* What is missing now is left to the first poll: no OOM killer for it. */
	skua_en_rx_fill(ch, GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	err = skua_en_qp_state(ch, SKUA_QP_RTR, 0);
	if (err)
		goto err_flush;
	err = skua_en_qp_state(ch, SKUA_QP_RTS, 0);
	if (err)
		goto err_flush;
	return 0;

err_flush:
	skua_qp_destroy(en->dev, &ch->qp);
	skua_en_rx_flush(ch);
	return err;
err_destroy:
	skua_qp_destroy(en->dev, &ch->qp);
	return err;
}

/**
 * skua_en_channel_create() - make a channel, ready to send and receive
 * @en: the netdev
 * @conf: ring sizes and MTU
 * @index: queue number
 *
 * Context: RTNL. NAPI is not enabled yet.
 * Return: the channel or an error pointer.
 */
struct skua_en_channel *skua_en_channel_create(struct skua_en *en,
					       const struct skua_en_conf *conf, u32 index)
{
	struct skua_en_channel *ch;
	int err;

	ch = kvzalloc_obj(*ch);
	if (!ch)
		return ERR_PTR(-ENOMEM);
	ch->en = en;
	ch->index = index;
	ch->log_rq = ilog2(conf->ring_rx);
	ch->log_sq = ilog2(conf->ring_tx * SKUA_EN_TX_BLOCKS);
	skua_en_rx_layout(ch, conf->mtu, en->rx_small[index]);
	skua_en_rx_gro_init(ch, conf->gro);
	skua_en_dim_init(ch);
	u64_stats_init(&ch->xmit_sync);
	u64_stats_init(&ch->tx_sync);
	u64_stats_init(&ch->rx_sync);

	netif_napi_add(en->ndev, &ch->napi, skua_en_poll);
	err = skua_en_rings_alloc(ch);
	if (err)
		goto err_napi;
	err = skua_en_pool_create(ch);
	if (err)
		goto err_rings;
	err = skua_en_cq_create(ch, &ch->txcq, skua_en_tx_comp, BIT(ch->log_sq), 0);
	if (err)
		goto err_pool;
	err = skua_en_cq_create(ch, &ch->rxcq, skua_en_rx_comp, BIT(ch->log_rq),
				u32_encode_bits(en->mod_usec, SKUA_MOD_USEC) |
				u32_encode_bits(en->mod_count, SKUA_MOD_COUNT));
	if (err)
		goto err_txcq;
	err = skua_en_qp_create(ch);
	if (err)
		goto err_rxcq;
	return ch;

err_rxcq:
	skua_en_cq_destroy(en, &ch->rxcq);
err_txcq:
	skua_en_cq_destroy(en, &ch->txcq);
err_pool:
	page_pool_destroy(ch->pool);
err_rings:
	skua_en_rings_free(ch);
err_napi:
	netif_napi_del(&ch->napi);
	kvfree(ch);
	return ERR_PTR(err);
}

/**
 * skua_en_channel_start() - enable NAPI
 * @ch: the channel
 */
void skua_en_channel_start(struct skua_en_channel *ch)
{
	struct net_device *ndev = ch->en->ndev;

	napi_enable(&ch->napi);
	netif_napi_set_irq(&ch->napi, ch->rxcq.cq.irq);
	netif_queue_set_napi(ndev, ch->index, NETDEV_QUEUE_TYPE_RX, &ch->napi);
	netif_queue_set_napi(ndev, ch->index, NETDEV_QUEUE_TYPE_TX, &ch->napi);
	/*
	 * The first poll arms the CQs, and tries to fill the receive ring if memory was short
	 * when the channel was made.
	 */
	local_bh_disable();
	napi_schedule(&ch->napi);
	local_bh_enable();
}

static void skua_en_channel_disable(struct skua_en_channel *ch)
{
	struct net_device *ndev = ch->en->ndev;

	netif_queue_set_napi(ndev, ch->index, NETDEV_QUEUE_TYPE_RX, NULL);
	netif_queue_set_napi(ndev, ch->index, NETDEV_QUEUE_TYPE_TX, NULL);
	napi_disable(&ch->napi);
}

/**
 * skua_en_channels_stop() - disable NAPI
 * @ch: the channels
 * @n: number of channels
 *
 * On return skua_en_poll() does not run, and will not.
 */
void skua_en_channels_stop(struct skua_en_channel *const *ch, unsigned int n)
{
	unsigned int i;

	for (i = n; i--;)
		skua_en_channel_disable(ch[i]);
	/*
	 * The end of a poll that has given NAPI up arms the CQs. Wait for it, or it would do so
	 * when these are destroyed and their numbers may belong to other CQs. One grace period
	 * is enough for all channels.
	 */
	synchronize_net();
	for (i = n; i--;)
		skua_en_dim_stop(ch[i]);
}
EXPORT_SYMBOL_IF_KUNIT(skua_en_channels_stop);

/*
 * All but the memory of the channel itself. The QP goes first: from then on the device touches
 * neither rings nor pages.
 */
static void skua_en_channel_release(struct skua_en_channel *ch)
{
	struct skua_en *en = ch->en;

	skua_qp_destroy(en->dev, &ch->qp);
	/* These look at the CQs once more. */
	skua_en_tx_flush(ch);
	skua_en_rx_flush(ch);
	skua_en_cq_destroy(en, &ch->rxcq);
	skua_en_cq_destroy(en, &ch->txcq);
	page_pool_destroy(ch->pool);
	skua_en_rings_free(ch);
	__netif_napi_del(&ch->napi);
}

/**
 * skua_en_channels_destroy() - undo skua_en_channel_create()
 * @ch: the channels, stopped
 * @n: number of channels
 */
void skua_en_channels_destroy(struct skua_en_channel *const *ch, unsigned int n)
{
	unsigned int i;

	for (i = n; i--;)
		skua_en_channel_release(ch[i]);
	/*
	 * Readers under RCU may still have the channels: those of the stack's list of NAPI
	 * contexts, skua_en_tx_timeout() and skua_en_watch_work().
	 */
	synchronize_net();
	for (i = n; i--;)
		kvfree(ch[i]);
}
