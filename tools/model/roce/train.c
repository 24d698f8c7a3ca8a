// SPDX-License-Identifier: GPL-2.0
/*
 * Trains: packets of a SEND or WRITE to a device of this process, sent as one unit. Contexts and
 * headers are handled once for all of them, and the payload is copied once, from the sender's
 * memory to the receiver's. Counters, acknowledgments and completions are the same as for single
 * packets.
 *
 * The payload is read at the delivery of the train and not when it is sent. This makes no
 * difference as long as the buffer belongs to the work request, that is until its completion. A
 * work request is completed after its packets were acknowledged, that is after their delivery.
 * Before a buffer goes back to software for another reason, or is unmapped (an error of the QP, a
 * command, an invalidated key, a reset), the payload of all trains of the device is copied:
 * engine_settle(). Packets that are sent again are not sent as trains, since an earlier copy of
 * them may have been acknowledged.
 */
#include <string.h>

#include "cc.h"
#include "engine.h"
#include "sr.h"

static struct train_qp *place_of(struct engine *e, uint32_t qpn)
{
	return &e->train_qp[qpn % ENGINE_TRAIN_QPS];
}

void engine_settle(struct skua_dev *dev)
{
	if (dev->engine->trains)
		dev->wire->settle(dev->wire_priv);
}

void skua_dev_train_done(struct skua_dev *dev, const struct skua_train *train)
{
	struct train_qp *q = place_of(dev->engine, train->qpn);

	q->psn = train->end;
	q->num--;
	dev->engine->trains--;
}

void train_completed(struct turn *t, uint32_t psn)
{
	const struct train_qp *q = place_of(t->dev->engine, t->qp->qpn);

	if (q->num && q->qpn == t->qp->qpn && ib_psn_diff(psn, q->psn) > 0)
		engine_settle(t->dev);
}

static uint64_t broken(const struct skua_dev *dev)
{
	return dev->host->dma_broken ? dev->host->dma_broken(dev->host_priv) : 0;
}

bool train_intact(const struct skua_train *train)
{
	return !train->sender || broken(train->sender) == train->broken;
}

/* --- sending --- */

/* Find the pieces of [@off, @off + @len) of the message. Returns fewer bytes if some fail. */
static uint32_t gather(struct turn *t, const struct wqe *w, struct sge_pos *pos, uint64_t off,
		       uint32_t len, struct skua_train *train)
{
	struct mr_who who = who_local(t, 0);
	uint32_t got = 0;

	if (off < pos->base)
		*pos = (struct sge_pos){ 0 };
	train->num = 0;
	while (got < len && pos->i < w->nsge) {
		const struct sge *s = &w->sge[pos->i];
		uint64_t in = off + got - pos->base;
		uint32_t n, there;

		if (in >= s->len) {
			pos->base += s->len;
			pos->i++;
			continue;
		}
		n = s->len - in < len - got ? (uint32_t)(s->len - in) : len - got;
		there = mr_pieces(t->dev, &who, s->lkey, s->addr + in, n, train);
		got += there;
		if (there < n)
			break;
	}
	return got;
}

/* Shorten the train to @len bytes. */
static void cut(struct skua_train *train, uint32_t len)
{
	uint32_t n = 0;

	for (; len > train->piece[n].len; n++)
		len -= train->piece[n].len;
	train->piece[n].len = len;
	train->num = n + 1;
}

/* Number of bytes that may be sent as a train now: at least two packets, or 0. */
static uint32_t train_bytes(const struct turn *t, const struct wqe *w)
{
	const struct skua_sqc *s = t->sqc;
	uint32_t off = le32_to_cpu(s->cur_sent), left = (uint32_t)(w->len - off);
	uint32_t budget = ((uint32_t)t->budget + t->mtu + SKUA_PKT_OVERHEAD - 1) /
			  (t->mtu + SKUA_PKT_OVERHEAD);
	uint32_t room = req_room(t);
	uint32_t most = (budget < room ? budget : room) * t->mtu;

	if (w->len - off > most)
		return most > t->mtu ? most : 0;
	/* The last packet of all but a plain WRITE brings more than payload. */
	if (w->op != SKUA_WQE_WRITE)
		left = (left - 1) / t->mtu * t->mtu;
	return left > t->mtu ? left : 0;
}

static bool may_train(const struct turn *t, const struct wqe *w)
{
	const struct train_qp *q = place_of(t->dev->engine, t->qp->qpn);

	/* While packets are missing, or have a window, each is looked at by itself. */
	return t->transport == IB_TRANSPORT_RC && !sr_in_loss(t) && !cc_on(t) &&
	       !(w->flags & SKUA_WQE_F_INLINE) &&
	       w->len > t->mtu && t->sqc->next_psn == t->sqc->max_psn &&
	       (!q->num || q->qpn == t->qp->qpn) && port_direct(t->dev, t->sqc->attr.av.dmac);
}

/* Make the headers of the first packet. 0: that is not possible. */
static size_t build_head(struct turn *t, struct skua_pkt_build *b, const struct wqe *w,
			 uint8_t opcode, uint32_t psn)
{
	if (!tx_start(t, b, opcode, psn, (psn & t->ack_mask) == t->ack_mask, false))
		return 0;
	if (b->reth)
		ib_reth_put(b->reth, w->va, w->rkey, (uint32_t)w->len);
	return skua_pkt_build_close(b, t->mtu);
}

static void under_way(struct turn *t, uint32_t psn)
{
	struct engine *e = t->dev->engine;
	struct train_qp *q = place_of(e, t->qp->qpn);

	if (!q->num++) {
		q->qpn = t->qp->qpn;
		q->psn = psn;
	}
	e->trains++;
}

bool train_send(struct turn *t, const struct wqe *w, struct sge_pos *pos,
		const uint8_t op[2][2])
{
	struct skua_train *train = &t->dev->engine->train;
	uint32_t psn = le32_to_cpu(t->sqc->next_psn);
	uint32_t off = le32_to_cpu(t->sqc->cur_sent);
	struct skua_pkt_build b;
	uint32_t bytes, got;
	size_t len, total;
	bool last;

	bytes = may_train(t, w) ? train_bytes(t, w) : 0;
	if (!bytes)
		return false;
	got = gather(t, w, pos, off, bytes, train);
	if (got < bytes) {
		bytes = got & ~(t->mtu - 1);
		if (bytes <= t->mtu)
			return false;
		cut(train, bytes);
	}
	len = build_head(t, &b, w, t->transport | op[!off][0], psn);
	if (!len)
		return false;
	last = off + bytes == w->len;
	train->packets = (bytes + t->mtu - 1) / t->mtu;
	train->mtu = t->mtu;
	train->bytes = bytes;
	train->ack_mask = t->ack_mask;
	train->end = psn_add(psn, train->packets);
	train->ack_last = last || req_room(t) == train->packets;
	train->middle = t->transport | op[0][0];
	train->last = t->transport | op[0][last];
	train->qpn = t->qp->qpn;
	train->sender = t->dev;
	train->broken = broken(t->dev);
	dma_count_train(t->dev, train);
	total = skua_train_bytes(b.frame, len, train);
	qp_count(t->dev, t->sqc, SKUA_CNT_RDMA_TX_PKTS, train->packets);
	qp_count(t->dev, t->sqc, SKUA_CNT_RDMA_TX_BYTES, total);
	sched_sent(t->dev, t->qp->qpn, total);
	under_way(t, psn);
	req_note_sent(t, train->packets, bytes);
	t->budget -= (int32_t)(bytes + train->packets * SKUA_PKT_OVERHEAD);
	port_tx_train(t->dev, b.frame, len, train);
	return true;
}
