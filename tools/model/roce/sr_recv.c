// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, responder: receives of SRQs for messages before their turn.
 *
 * Whose WQE the next one of an SRQ is, is decided when it is taken, and the messages of a QP
 * get theirs in their order, as without selective repeat. So a packet that comes before its
 * turn has all messages before its own that have none yet take theirs first, packets of which
 * are known or not: they will need them. It is as if all of these messages had come at once.
 * What was taken so waits in a table in host memory, by the number of the message, until the
 * message's turn has come, or the QP ends and flushes it.
 *
 * Of XRC each message names its SRQ, so those before it must be known: they have taken theirs,
 * or the packet says that they go to the same SRQ as its own.
 *
 * A QP whose peer has gone must not keep from others what it will never use: as many WQEs are
 * left in the SRQ as all QPs together have taken for later messages, so that half of them are
 * for messages whose turn has come, however many peers are silent. The packets for which a QP may
 * take none are dropped; they come again.
 */
#include <errno.h>

#include "sr.h"

/* Number of the first message whose receive would be in the table. */
static uint32_t first(const struct turn *t)
{
	return psn_add(le32_to_cpu(t->rqc->recv_seq), !!rqc_is(t, SKUA_RQC_WQE_TAKEN));
}

/* How many there are. The context may come from memory of the host. */
static uint32_t num(const struct turn *t, const struct skua_lrc *lrc)
{
	uint32_t n = psn_sub(le32_to_cpu(lrc->recv_end), first(t));

	return rqc_is(t, SKUA_RQC_RECVS) && n <= sr_lrc_window(lrc) ? n : 0;
}

static uint64_t recv_at(const struct skua_lrc *lrc, uint32_t seq)
{
	return le64_to_cpu(lrc->recvs) +
	       (uint64_t)(seq % sr_lrc_window(lrc)) * sizeof(struct skua_ext_recv);
}

static bool get(struct turn *t, const struct skua_lrc *lrc, uint32_t ahead,
		struct skua_ext_recv *r)
{
	uint32_t seq = psn_add(le32_to_cpu(t->rqc->recv_seq), ahead);

	return psn_sub(seq, first(t)) < num(t, lrc) &&
	       !dma_read(t->dev, TLP_SLOT, recv_at(lrc, seq), r, sizeof(*r));
}

bool sr_recv_get(struct turn *t, uint32_t ahead, struct skua_ext_recv *r)
{
	struct skua_lrc *lrc = sr_lrc(t);
	bool there;

	if (!lrc)
		return false;
	there = get(t, lrc, ahead, r);
	sr_lrc_put(t, lrc, false);
	return there;
}

/* The SRQ need not keep a WQE more for it, unless it has gone. */
static void turn_has_come(struct turn *t, const struct skua_ext_recv *r)
{
	struct skua_srqc *srqc = srq_get(t->dev, le32_to_cpu(r->srqn));

	if (!srqc)
		return;
	if (srqc->life == r->life)
		srq_early_done(t->dev, srqc);
	ctx_put(t->dev, srqc);
}

bool sr_recv_next(struct turn *t)
{
	struct skua_lrc *lrc = sr_lrc(t);
	struct skua_ext_recv r;
	uint32_t n;
	bool there;

	if (!lrc) {
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_RECVS);
		return false;
	}
	n = num(t, lrc);
	there = get(t, lrc, 0, &r);
	if (!n || (there && n == 1))
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_RECVS);
	if (there) {
		t->rqc->cur_wqe = r.pos;
		t->rqc->cur_srqn = r.srqn;
		t->rqc->cur_srq_life = r.life;
		t->rqc->flags |= cpu_to_le32(SKUA_RQC_WQE_TAKEN);
		turn_has_come(t, &r);
	}
	sr_lrc_put(t, lrc, false);
	return there;
}

void sr_recv_lost(struct turn *t)
{
	struct skua_lrc *lrc = sr_lrc(t);
	uint32_t n = lrc ? num(t, lrc) : 0;
	struct skua_srqc *srqc;

	if (n <= 1)
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_RECVS);
	if (lrc)
		sr_lrc_put(t, lrc, false);
	/*
	 * If it is not known how many there are, what the SRQ keeps may be for other QPs. Of XRC
	 * nothing but the entry says which SRQ's it is.
	 */
	if (!n || qp_type(t->qp) == SKUA_QP_XRC_TGT)
		return;
	srqc = srq_get(t->dev, le32_to_cpu(t->rqc->cfg.srqn));
	if (!srqc)
		return;
	srq_early_done(t->dev, srqc);
	ctx_put(t->dev, srqc);
}

/* One more, of the SRQ @srqn. */
static bool take(struct turn *t, struct skua_lrc *lrc, uint32_t srqn)
{
	uint32_t n = num(t, lrc), seq = psn_add(first(t), n), pos = 0;
	struct skua_srqc *srqc = srq_get(t->dev, srqn);
	struct skua_ext_recv r = { .srqn = cpu_to_le32(srqn) };
	int err;

	if (!srqc)
		return false;
	err = srq_take_early(t->dev, srqc, !!rqc_is(t, SKUA_RQC_WQE_TAKEN), &pos);
	r.life = srqc->life;
	r.pos = cpu_to_le32(pos);
	if (!err && dma_write(t->dev, TLP_SLOT, recv_at(lrc, seq), &r, sizeof(r))) {
		srq_early_undo(t->dev, srqc, pos);
		resp_fail_at(t, le32_to_cpu(t->rqc->epsn), IB_NAK_REMOTE_OP, SKUA_QP_EV_FATAL);
		err = -EIO;
	}
	ctx_put(t->dev, srqc);
	if (err)
		return false;
	lrc->recv_end = cpu_to_le32(psn_add(seq, 1));
	t->rqc->flags |= cpu_to_le32(SKUA_RQC_RECVS);
	return true;
}

bool sr_recv_take(struct turn *t, const struct skua_pkt *pkt, uint32_t ahead)
{
	bool xrc = qp_type(t->qp) == SKUA_QP_XRC_TGT, under_way = rqc_is(t, SKUA_RQC_WQE_TAKEN);
	uint32_t srqn = xrc ? be24_get(pkt->xrceth->srqn) : le32_to_cpu(t->rqc->cfg.srqn);
	uint32_t n, need = ahead + !under_way;
	struct skua_ext_recv r;
	struct skua_lrc *lrc;
	bool ok = true;

	if (!need)
		return !xrc || srqn == le32_to_cpu(t->rqc->cur_srqn);
	/* Each message has a PSN of its own at least. */
	if (ahead > psn_sub(pkt->psn, le32_to_cpu(t->rqc->epsn)))
		return false;
	lrc = sr_lrc(t);
	if (!lrc)
		return false;
	n = num(t, lrc);
	if (need > n && xrc && need - n - 1 > pkt->seth->run)
		ok = false;
	for (; ok && n < need; n++)
		ok = take(t, lrc, srqn);
	if (ok && xrc)
		ok = get(t, lrc, ahead, &r) && le32_to_cpu(r.srqn) == srqn;
	sr_lrc_put(t, lrc, true);
	return ok;
}
