// SPDX-License-Identifier: GPL-2.0
/*
 * Receive WQEs of a QP: those of its own queue, used in order, or those of an SRQ, which the first
 * QP that needs one takes. A WQE of an SRQ belongs to the QP from the first packet of its message
 * (SKUA_RQC_WQE_TAKEN) until its completion, like the WQE at ci of the QP's own queue. With
 * selective repeat the QP may have taken more WQEs of the SRQ, for later messages
 * (SKUA_RQC_RECVS, sr_recv.c).
 */
#include <errno.h>

#include "sr.h"

bool recv_is_shared(const struct qp *qp)
{
	return le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_SRQ || qp_type(qp) == SKUA_QP_XRC_TGT;
}

static bool taken(const struct turn *t)
{
	return le32_to_cpu(t->rqc->flags) & SKUA_RQC_WQE_TAKEN;
}

static enum recv take(struct turn *t)
{
	uint32_t srqn = le32_to_cpu(qp_type(t->qp) == SKUA_QP_XRC_TGT ? t->rqc->cur_srqn :
									t->rqc->cfg.srqn);
	struct skua_srqc *srqc;
	uint32_t pos;
	int err;

	if (rqc_is(t, SKUA_RQC_RECVS))
		return sr_recv_next(t) ? RECV_READY : RECV_DEAD;
	srqc = srq_get(t->dev, srqn);
	if (!srqc)
		return RECV_DEAD;
	err = srq_take(t->dev, srqc, &pos);
	t->rqc->cur_srq_life = srqc->life;
	ctx_put(t->dev, srqc);
	if (err)
		return err == -EAGAIN ? RECV_NONE : RECV_DEAD;
	t->rqc->cur_srqn = cpu_to_le32(srqn);
	t->rqc->cur_wqe = cpu_to_le32(pos);
	t->rqc->flags |= cpu_to_le32(SKUA_RQC_WQE_TAKEN);
	return RECV_READY;
}

enum recv recv_ready(struct turn *t)
{
	if (!recv_is_shared(t->qp))
		return rq_avail(t->dev, t->qp) ? RECV_READY : RECV_NONE;
	return taken(t) ? RECV_READY : take(t);
}

/* WQE index for the CQE: position in the SRQ, or free-running index in the QP's own queue. */
static uint32_t recv_index(const struct turn *t)
{
	return le32_to_cpu(taken(t) ? t->rqc->cur_wqe : t->rqc->ci);
}

/* The WQE that was taken for the present message. */
static struct skua_ext_recv current(const struct turn *t)
{
	return (struct skua_ext_recv){
		.pos = t->rqc->cur_wqe,
		.srqn = t->rqc->cur_srqn,
		.life = t->rqc->cur_srq_life,
	};
}

/*
 * The SRQ of a WQE that was taken; NULL: it was destroyed. That of an XRC target can be destroyed
 * at any time, and its number can be in use by another one.
 */
static struct skua_srqc *srq_of(struct turn *t, const struct skua_ext_recv *r)
{
	struct skua_srqc *srqc = srq_get(t->dev, le32_to_cpu(r->srqn));

	if (srqc && srqc->life != r->life) {
		ctx_put(t->dev, srqc);
		return NULL;
	}
	return srqc;
}

static struct skua_srqc *taken_from(struct turn *t)
{
	const struct skua_ext_recv r = current(t);

	return srq_of(t, &r);
}

/* Keys in WQEs of an SRQ belong to the PD of the SRQ. */
static enum skua_vendor fetch_shared(struct turn *t, struct rlist *l,
				     const struct skua_ext_recv *r)
{
	struct skua_srqc *srqc = srq_of(t, r);
	enum skua_vendor err;

	if (!srqc)
		return SKUA_VENDOR_WQE_DMA;
	err = srq_fetch(t->dev, srqc, le32_to_cpu(r->pos), &l->rwqe);
	l->who.pd = le32_to_cpu(srqc->pd);
	l->who.reserved_lkey = le32_to_cpu(srqc->flags) & SKUA_SRQC_RESERVED_LKEY;
	ctx_put(t->dev, srqc);
	return err;
}

/* The WQE of an SRQ for the message which takes a receive after @ahead others. */
static bool shared_at(struct turn *t, uint32_t ahead, struct skua_ext_recv *r)
{
	if (ahead || !taken(t))
		return sr_recv_get(t, ahead, r);
	*r = current(t);
	return true;
}

enum skua_vendor recv_fetch(struct turn *t, uint32_t ahead, struct rlist **out)
{
	uint32_t incarnation = le32_to_cpu(t->sqc->incarnation);
	bool shared = recv_is_shared(t->qp);
	struct skua_ext_recv r = { 0 };
	enum skua_vendor err;
	struct rlist *l;

	if (shared && !shared_at(t, ahead, &r))
		return SKUA_VENDOR_WQE_DMA;
	if (!shared)
		r.pos = cpu_to_le32(le32_to_cpu(t->rqc->ci) + ahead);
	l = rlist_get(&t->dev->engine->lists, t->qp->qpn, incarnation, le32_to_cpu(r.pos));
	*out = l;
	/* Places in the SRQs of XRC are the same numbers, and an SRQ's number is used again. */
	if (l->valid && l->srqn == le32_to_cpu(r.srqn) && l->srq_life == r.life)
		return SKUA_VENDOR_NONE;
	l->srqn = le32_to_cpu(r.srqn);
	l->srq_life = r.life;
	l->pos = (struct sge_pos){ 0 };
	l->who = who_local(t, SKUA_ACCESS_LOCAL_WRITE);
	err = shared ? fetch_shared(t, l, &r) :
		       rq_fetch(t->dev, t->qp, le32_to_cpu(r.pos), &l->rwqe);
	l->valid = !err;
	return err;
}

bool recv_have(struct turn *t, const struct skua_pkt *pkt, uint32_t ahead)
{
	return recv_is_shared(t->qp) ? sr_recv_take(t, pkt, ahead) :
				       rq_has(t->dev, t->qp, ahead);
}

enum skua_vendor recv_place(struct turn *t, struct rlist *l, uint64_t off, const void *buf,
			    uint32_t len)
{
	return sge_copy_as(t, &l->who, l->rwqe.sge, l->rwqe.nsge, &l->pos, off,
			   (void *)(uintptr_t)buf, len, true);
}

enum skua_vendor recv_place_train(struct turn *t, struct rlist *l, uint64_t off,
				  const struct skua_train *train)
{
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct sge_pos *pos = &l->pos;
	uint32_t put = 0, n;

	if (off < pos->base)
		*pos = (struct sge_pos){ 0 };
	for (; put < train->bytes && !err; put += n) {
		const struct sge *s = &l->rwqe.sge[pos->i];
		uint64_t in = off + put - pos->base;

		n = 0;
		if (in >= s->len) {
			if (++pos->i >= l->rwqe.nsge)
				return SKUA_VENDOR_SGE_LEN;
			pos->base += s->len;
			continue;
		}
		n = s->len - in < train->bytes - put ? (uint32_t)(s->len - in) :
						       train->bytes - put;
		err = mr_write_train(t->dev, &l->who, s->lkey, s->addr + in, train, put, n);
	}
	return err;
}

enum skua_vendor recv_place_pkt(struct turn *t, struct rlist *l, uint64_t off,
				const struct skua_pkt *pkt)
{
	enum skua_vendor err;

	if (le32_to_cpu(t->sqc->cfg.flags) & SKUA_QP_F_SCATTER_RQ_CQE &&
	    (pkt->op->flags & IB_F_ONLY) == IB_F_ONLY && pkt->payload_len <= SCATTER_MAX) {
		err = scatter_cqe(t, &l->who, l->rwqe.sge, l->rwqe.nsge,
				  le32_to_cpu(t->rqc->cfg.cqn), pkt->payload, pkt->payload_len);
		if (err || t->dev->engine->inl_len)
			return err;
	}
	return recv_place(t, l, off, pkt->payload, pkt->payload_len);
}

/* The CQ for the completion of the WQE: an XRC SRQ has a CQ of its own. */
static uint32_t recv_cqn(struct turn *t)
{
	struct skua_srqc *srqc;
	uint32_t cqn;

	if (qp_type(t->qp) != SKUA_QP_XRC_TGT)
		return le32_to_cpu(t->rqc->cfg.cqn);
	srqc = taken_from(t);
	if (!srqc)
		return UINT32_MAX;
	cqn = le32_to_cpu(srqc->cqn);
	ctx_put(t->dev, srqc);
	return cqn;
}

bool recv_done(struct turn *t, struct skua_cqe *cqe, bool solicited)
{
	le32p_replace_bits(&cqe->what, recv_index(t) & 0xffff, SKUA_CQE_WQE_INDEX);
	if (taken(t)) {
		cqe->srqn = t->rqc->cur_srqn;
		cqe->own |= cpu_to_le32(SKUA_CQE_F_SRQ);
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_WQE_TAKEN);
	} else {
		t->rqc->ci = cpu_to_le32(le32_to_cpu(t->rqc->ci) + 1);
	}
	rlist_drop(&t->dev->engine->lists, t->qp->qpn);
	return post_cqe(t, recv_cqn(t), cqe, solicited);
}

/* A WQE whose SRQ was destroyed does not complete. */
static void flush_taken(struct turn *t)
{
	struct skua_cqe cqe = {
		.what = le32_encode_bits(SKUA_CQE_RECV, SKUA_CQE_OPCODE) |
			le32_encode_bits(SKUA_CQE_WR_FLUSH_ERR, SKUA_CQE_STATUS),
	};
	struct skua_srqc *srqc = taken_from(t);

	if (!srqc) {
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_WQE_TAKEN);
		return;
	}
	ctx_put(t->dev, srqc);
	turn_count(t, SKUA_CNT_RESP_CQE_FLUSH);
	recv_done(t, &cqe, false);
}

bool recv_give_up(struct turn *t, unsigned int *budget)
{
	while (taken(t) || rqc_is(t, SKUA_RQC_RECVS)) {
		if (!*budget)
			return true;
		--*budget;
		if (taken(t) || sr_recv_next(t))
			flush_taken(t);
		else
			sr_recv_lost(t);
		t->rqc->recv_seq = cpu_to_le32(le32_to_cpu(t->rqc->recv_seq) + 1);
	}
	return false;
}

bool recv_use_srq(struct turn *t, uint32_t srqn)
{
	struct skua_srqc *srqc = srq_get(t->dev, srqn);
	bool ok;

	if (!srqc)
		return false;
	ok = srqc->xrcd && srqc->xrcd == t->rqc->cfg.xrcd;
	t->pd = le32_to_cpu(srqc->pd);
	ctx_put(t->dev, srqc);
	return ok;
}

/* Was the WQE taken from this SRQ? */
static bool taken_of(struct turn *t, uint32_t srqn)
{
	struct skua_srqc *srqc = srqn == le32_to_cpu(t->rqc->cur_srqn) ? taken_from(t) : NULL;

	if (srqc)
		ctx_put(t->dev, srqc);
	return srqc;
}

/*
 * All packets of a message name the same one. Of a WRITE whose first packet came before its
 * turn that is not known any more, and each of its packets says where it goes.
 */
static bool may_change_srq(const struct skua_pkt *pkt)
{
	return pkt->op->flags & IB_F_FIRST || (pkt->seth && pkt->op->flags & IB_F_WRITE);
}

bool recv_xrc_early_ok(struct turn *t, const struct skua_pkt *pkt)
{
	return recv_use_srq(t, be24_get(pkt->xrceth->srqn));
}

/* The receive that was taken for its message before its turn is one of this SRQ, which is there. */
static bool early_of(struct turn *t, const struct skua_pkt *pkt, uint32_t srqn)
{
	bool takes = pkt->op->flags & (IB_F_SEND | IB_F_RECV);
	struct skua_srqc *srqc;
	struct skua_ext_recv r;

	if (!takes || taken(t) || !rqc_is(t, SKUA_RQC_RECVS))
		return true;
	if (!sr_recv_get(t, 0, &r) || le32_to_cpu(r.srqn) != srqn)
		return false;
	srqc = srq_of(t, &r);
	if (srqc)
		ctx_put(t->dev, srqc);
	return srqc;
}

bool recv_xrc_ok(struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t srqn = be24_get(pkt->xrceth->srqn);

	if (!may_change_srq(pkt) && srqn != le32_to_cpu(t->rqc->cur_srqn))
		return false;
	/* So do all tries: the first packet too comes again when it missed a page. */
	if (taken(t) && !taken_of(t, srqn))
		return false;
	if (!early_of(t, pkt, srqn) || !recv_use_srq(t, srqn))
		return false;
	t->rqc->cur_srqn = cpu_to_le32(srqn);
	return true;
}
