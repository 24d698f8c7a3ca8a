// SPDX-License-Identifier: GPL-2.0
/*
 * Turns, states and timers of a QP, and functions that requester and responder share.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cc.h"
#include "engine.h"
#include "sr.h"

int engine_init(struct skua_dev *dev)
{
	dev->engine = calloc(1, sizeof(*dev->engine));
	return dev->engine ? 0 : -ENOMEM;
}

void engine_reset(struct skua_dev *dev)
{
	struct engine *e = dev->engine;

	memset(e->flight, 0, sizeof(e->flight));
	memset(e->walks, 0, sizeof(e->walks));
	rlist_drop_all(&e->lists);
	e->incarnations = 0;
	e->faults = 0;
	e->recoveries = 0;
	e->group_head = e->group_tail;
}

void engine_exit(struct skua_dev *dev)
{
	free(dev->engine);
}

size_t engine_frame_bytes(void)
{
	const struct engine *e = NULL;

	return sizeof(e->frame) + sizeof(e->group) + sizeof(e->win) + sizeof(e->wqe);
}

/* --- turns --- */

int transport_of(enum skua_qp_type type)
{
	switch (type) {
	case SKUA_QP_RC:
		return IB_TRANSPORT_RC;
	case SKUA_QP_UC:
		return IB_TRANSPORT_UC;
	case SKUA_QP_UD:
	case SKUA_QP_GSI:
		return IB_TRANSPORT_UD;
	case SKUA_QP_XRC_INI:
	case SKUA_QP_XRC_TGT:
		return IB_TRANSPORT_XRC;
	default:
		return -1;
	}
}

void turn_begin(struct turn *t, struct skua_dev *dev, struct qp *qp)
{
	t->dev = dev;
	t->qp = qp;
	t->sqc = qp->sqc;
	t->rqc = qp->rqc;
	t->now = dev_now(dev);
	t->transport = (uint8_t)transport_of(qp_type(qp));
	t->reliable = t->transport == IB_TRANSPORT_RC || t->transport == IB_TRANSPORT_XRC;
	t->mtu = qp_mtu(dev, qp);
	t->budget = (int32_t)dev->turn_bytes;
	t->addr_state = 0;
	t->full = false;
	t->first_known = false;
	t->pd = le32_to_cpu(qp->sqc->cfg.pd);
	dev->engine->inl_len = 0;
}

/*
 * Only a deadline earlier than the present one is set in the timer: acknowledgments postpone the
 * deadline for each packet, which is found out when the timer expires.
 */
static void arm_timer(struct turn *t)
{
	uint64_t ack = le64_to_cpu(t->sqc->ack_deadline);
	uint64_t rnr = req_rnr_deadline(t);
	uint64_t sr = sr_deadline(t);
	uint64_t want = ack && (!rnr || ack < rnr) ? ack : rnr;

	if (sr && (!want || sr < want))
		want = sr;

	if (want)
		timer_at_latest(t->dev, t->qp->qpn, want);
}

void turn_end_req(struct turn *t)
{
	arm_timer(t);
	ctx_dirty(t->dev, t->sqc);
}

void turn_end_resp(struct turn *t)
{
	ctx_dirty(t->dev, t->rqc);
}

bool turn_need_rq(struct turn *t)
{
	if (!qp_need_rq(t->dev, t->qp))
		return false;
	t->rqc = t->qp->rqc;
	return true;
}

bool turn_need_sq_rest(struct turn *t)
{
	return ctx_need(t->dev, t->sqc);
}

bool turn_need_rq_rest(struct turn *t)
{
	return ctx_need(t->dev, t->rqc);
}

/* Is the QP's rate set by congestion control? */
static bool cc_limits(struct turn *t)
{
	cc_turn(t);
	return cc_on(t) && t->sqc->cc.rate && t->sqc->rate == t->sqc->cc.rate;
}

/*
 * READ responses are subject to the rate, acknowledgments are not. If the requester has packets to
 * send, too, both alternate, since the rate may allow only one packet at a time.
 */
static bool run_resp_paced(struct turn *t)
{
	const uint64_t *bytes = &t->dev->cnt[SKUA_CNT_RDMA_TX_BYTES];
	uint64_t room = pace_room(t->sqc, t->now), before = *bytes, sent;
	bool more;

	if (le32_to_cpu(t->sqc->valid) & SKUA_SQC_RESP_SENT && req_wants(t)) {
		t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_RESP_SENT);
		return true;
	}
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_RESP_SENT);
	if (t->budget > 0 && room < (uint32_t)t->budget)
		t->budget = (int32_t)room;
	t->ack_bytes = 0;
	more = resp_run(t);
	if (!more)
		sched_resp_done(t->dev, t->qp->qpn);
	turn_end_resp(t);
	sent = *bytes - before - t->ack_bytes;
	pace_charge(t->sqc, t->now, sent);
	ctx_dirty(t->dev, t->sqc);
	cc_sent(t, sent);
	if (!more || t->full || !cc_on(t) || !le32_to_cpu(t->sqc->rate) ||
	    pace_room(t->sqc, t->now))
		return more;
	pace_wait(t->dev, t->qp, t->now);
	cc_wait(t);
	return false;
}

/* Run the responder, if it has packets to send. True: the budget was used up. */
static bool run_resp(struct turn *t)
{
	bool more;

	if (!sched_resp(t->dev, t->qp->qpn) || !turn_need_rq(t))
		return false;
	if (cc_on(t) && cc_limits(t))
		return run_resp_paced(t);
	more = resp_run(t);
	if (!more)
		sched_resp_done(t->dev, t->qp->qpn);
	turn_end_resp(t);
	return more;
}

/* Neither side of the QP starves the other. */
static bool run_both(struct turn *t)
{
	bool more;

	if (req_wants(t))
		t->budget /= 2;
	more = run_resp(t);
	t->budget += req_wants(t) ? (int32_t)t->dev->turn_bytes / 2 : 0;
	if (qp_state(t->qp) == SKUA_QP_ERR || !req_has_work(t))
		return more;
	more |= req_run(t);
	turn_end_req(t);
	return more;
}

static bool run_flush(struct turn *t)
{
	bool more = turn_need_rq(t) && flush_run(t);

	qp_dirty(t->dev, t->qp);
	return more;
}

bool engine_run(struct skua_dev *dev, struct qp *qp)
{
	bool more = false;
	struct turn t;

	turn_begin(&t, dev, qp);
	switch (qp_state(qp)) {
	case SKUA_QP_ERR:
	case SKUA_QP_SQE:
		more = run_flush(&t);
		break;
	case SKUA_QP_RTR:
		more = run_resp(&t);
		break;
	case SKUA_QP_RTS:
	case SKUA_QP_SQD:
		more = run_both(&t);
		break;
	default:
		break;
	}
	/* A QP in error has to be flushed, which needs no room in the wire. */
	if (!t.full || qp_flushes(qp))
		return more;
	sched_park(dev, qp->qpn, t.full_dmac);
	return false;
}

static bool paced(const struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_PACED;
}

void engine_timer(struct skua_dev *dev, struct qp *qp)
{
	uint64_t ack, rnr, rate, sr;
	struct turn t;

	turn_begin(&t, dev, qp);
	ack = le64_to_cpu(t.sqc->ack_deadline);
	rnr = req_rnr_deadline(&t);
	rate = paced(&t) ? le64_to_cpu(t.sqc->rate_deadline) : 0;
	sr = sr_deadline(&t);
	if (rate && rate <= t.now) {
		t.sqc->rate_deadline = 0;
		sched_kick(dev, qp->qpn);
	}
	if (paced(&t))
		pace_arm(dev, qp);
	if (rnr && rnr <= t.now) {
		t.sqc->valid &= ~cpu_to_le32(SKUA_SQC_RNR_WAIT);
		sched_kick(dev, qp->qpn);
	}
	if (ack && ack <= t.now) {
		t.sqc->ack_deadline = 0;
		comp_timeout(&t);
	} else if (sr && sr <= t.now) {
		t.sqc->valid &= ~cpu_to_le32(SKUA_SQC_SR_TIMER);
		sr_req_timer(&t);
	}
	turn_end_req(&t);
}

/* --- states --- */

static void forget(struct skua_dev *dev, const struct qp *qp)
{
	rlist_drop(&dev->engine->lists, qp->qpn);
	rlist_drop(&dev->engine->lists, qp->qpn | LIST_READ);
}

/* In ERR nothing is sent or received, and no timer runs. */
static void stop(struct turn *t)
{
	if (sr_onload(t->sqc))
		sr_onload_end(t);
	t->sqc->ack_deadline = 0;
	t->sqc->rate_deadline = 0;
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_LOSS | SKUA_SQC_IN_RECOVERY | SKUA_SQC_DRAINING |
				      SKUA_SQC_PINNED | SKUA_SQC_HI_PINNED |
				      SKUA_SQC_RNR_WAIT | SKUA_SQC_SR_TIMER | SKUA_SQC_RTT);
	t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_ACK_PENDING | SKUA_RQC_NAK_PENDING |
				      SKUA_RQC_HELD | SKUA_RQC_DROPPED);
	rres_forget(t);
	fault_forget_req(t);
}

/* Flush all WQEs taken from SRQs (at most a window): the QP will have no further turn. */
static void give_up_all(struct turn *t)
{
	unsigned int budget = UINT_MAX;

	recv_give_up(t, &budget);
}

void engine_state(struct skua_dev *dev, struct qp *qp, enum skua_qp_state from,
		  enum skua_qp_state to)
{
	struct turn t;

	turn_begin(&t, dev, qp);
	switch (to) {
	case SKUA_QP_RESET:
		resp_farewell(&t, from);
		give_up_all(&t);
		forget(dev, qp);
		break;
	case SKUA_QP_INIT:
		if (from == SKUA_QP_RESET)
			qp->sqc->incarnation = cpu_to_le32(++dev->engine->incarnations);
		break;
	case SKUA_QP_RTR:
		resp_start(&t);
		break;
	case SKUA_QP_RTS:
		if (from == SKUA_QP_RTR)
			req_start(&t);
		if (from == SKUA_QP_SQE)
			req_resume(&t);
		qp->sqc->valid &= ~cpu_to_le32(SKUA_SQC_DRAINING);
		break;
	case SKUA_QP_SQD:
		if (from == SKUA_QP_RTS)
			qp->sqc->valid |= cpu_to_le32(SKUA_SQC_DRAINING);
		break;
	case SKUA_QP_ERR:
		resp_farewell(&t, from);
		fault_forget_resp(&t);
		stop(&t);
		break;
	case SKUA_QP_SQE:
		stop(&t);
		break;
	}
	qp_dirty(dev, qp);
}

void engine_destroy(struct skua_dev *dev, struct qp *qp)
{
	struct turn t;

	turn_begin(&t, dev, qp);
	resp_farewell(&t, qp_state(qp));
	give_up_all(&t);
	forget(dev, qp);
}

/* --- sending --- */

/*
 * The UDP source port distinguishes the flows of QPs: it is computed from the flow label if there
 * is one, else from both QPNs.
 */
static uint16_t source_port(const struct turn *t, const struct skua_av *av, uint32_t dest)
{
	uint32_t label = le32_get_bits(av->flow, SKUA_AV_FLOW_LABEL);
	uint64_t mix;

	if (av->udp_sport)
		return le16_to_cpu(av->udp_sport);
	if (!label) {
		mix = (uint64_t)t->qp->qpn * dest;
		mix ^= mix >> 20;
		mix ^= mix >> 40;
		label = mix & SKUA_AV_FLOW_LABEL;
	}
	return (uint16_t)(((label & 0x3fff) ^ label >> 14) | ROCE_UDP_SPORT_MIN);
}

bool tx_path(const struct turn *t, const struct skua_av *av, uint32_t dest,
	     struct skua_pkt_addr *a)
{
	const struct skua_gid *gid = port_gid(t->dev, le16_to_cpu(av->sgid_index));

	if (!gid)
		return false;
	memcpy(a->dmac, av->dmac, sizeof(a->dmac));
	memcpy(a->smac, gid->mac, sizeof(a->smac));
	a->vlan = le16_to_cpu(gid->vlan) != SKUA_GID_NO_VLAN;
	a->tci = a->vlan ? le16_to_cpu(gid->vlan) | le32_get_bits(av->flow, SKUA_AV_PCP) << 13 : 0;
	a->tclass = av->tclass;
	if (!(a->tclass & IP_ECN_MASK) && le32_to_cpu(t->sqc->valid) & SKUA_SQC_ECT)
		a->tclass |= IP_ECN_ECT0;
	a->sport = source_port(t, av, dest);
	memcpy(a->sgid, gid->gid, sizeof(a->sgid));
	memcpy(a->dgid, av->dgid, sizeof(a->dgid));
	a->flow_label = le32_get_bits(av->flow, SKUA_AV_FLOW_LABEL);
	a->hop_limit = av->hop_limit;
	return true;
}

/* XRC has the operations of RC, with other opcodes. */
static uint8_t opcode_of(const struct turn *t, uint8_t opcode)
{
	bool xrc = qp_type(t->qp) == SKUA_QP_XRC_INI || qp_type(t->qp) == SKUA_QP_XRC_TGT;
	uint8_t transport = opcode & IB_TRANSPORT_MASK;

	if (!xrc || (transport != IB_TRANSPORT_RC && transport != IB_TRANSPORT_SKUA_RC))
		return opcode;
	return opcode | (transport ? IB_TRANSPORT_SKUA_XRC : IB_TRANSPORT_XRC);
}

uint8_t *tx_frame(const struct turn *t)
{
	struct engine *e = t->dev->engine;
	uint8_t *frame = port_frame(t->dev, sizeof(e->frame));

	return frame ? frame : e->frame;
}

bool tx_start(struct turn *t, struct skua_pkt_build *b, uint8_t opcode, uint32_t psn,
	      bool ackreq, bool se)
{
	struct engine *e = t->dev->engine;
	struct skua_pkt_bth bth = {
		.opcode = opcode_of(t, opcode),
		.resv7 = sr_log_window(t),
		.pkey = IB_PKEY_DEFAULT,
		.dqpn = le32_to_cpu(t->sqc->attr.dest_qpn),
		.psn = psn,
		.se = se,
		.ackreq = ackreq,
		.migreq = true,
	};

	if (!t->addr_state)
		t->addr_state = tx_path(t, &t->sqc->attr.av, bth.dqpn, &t->addr) ? 1 : -1;
	if (t->addr_state < 0 ||
	    skua_pkt_build_start(b, tx_frame(t), sizeof(e->frame), &t->addr, &bth))
		return false;
	/* Only requests have it: each names the SRQ of the WQE being sent. */
	if (b->xrceth)
		ib_xrceth_put(b->xrceth, e->wqe.dest_qpn);
	return true;
}

bool tx_waits(struct turn *t, const struct skua_av *av)
{
	if (port_tx_full(t->dev, av->dmac)) {
		t->full = true;
		memcpy(t->full_dmac, av->dmac, sizeof(t->full_dmac));
	}
	return t->full || port_tx_busy(t->dev);
}

void tx_finish(struct turn *t, struct skua_pkt_build *b, uint32_t payload)
{
	size_t len = skua_pkt_build_close(b, payload);

	if (!len)
		return;
	turn_count(t, SKUA_CNT_RDMA_TX_PKTS);
	qp_count(t->dev, t->sqc, SKUA_CNT_RDMA_TX_BYTES, len);
	sched_sent(t->dev, t->qp->qpn, len);
	port_tx(t->dev, b->frame, len);
}

/* --- memory --- */

struct mr_who who_local(const struct turn *t, uint32_t access)
{
	return (struct mr_who){
		.pd = le32_to_cpu(t->sqc->cfg.pd),
		.qpn = t->qp->qpn,
		.reserved_lkey = le32_to_cpu(t->sqc->cfg.flags) & SKUA_QP_F_RESERVED_LKEY,
		.access = access,
		.may_wait = t->dev->fault_eqn != SKUA_NO_EQ,
	};
}

struct mr_who who_remote(const struct turn *t, uint32_t access)
{
	return (struct mr_who){
		.pd = t->pd,
		.qpn = t->qp->qpn,
		.access = access,
		.remote = true,
		.may_wait = t->dev->fault_eqn != SKUA_NO_EQ,
	};
}

enum skua_vendor sge_copy(struct turn *t, const struct sge *sge, uint32_t nsge,
			  struct sge_pos *pos, uint64_t off, void *buf, uint32_t len, bool write)
{
	const struct mr_who who = who_local(t, write ? SKUA_ACCESS_LOCAL_WRITE : 0);

	return sge_copy_as(t, &who, sge, nsge, pos, off, buf, len, write);
}

enum skua_vendor sge_copy_as(struct turn *t, const struct mr_who *who, const struct sge *sge,
			     uint32_t nsge, struct sge_pos *pos, uint64_t off, void *buf,
			     uint32_t len, bool write)
{
	struct mr_who me = *who;
	uint8_t *p = buf;

	if (off < pos->base)
		*pos = (struct sge_pos){ 0 };
	while (len && pos->i < nsge) {
		const struct sge *s = &sge[pos->i];
		uint64_t in = off - pos->base;
		enum skua_vendor err;
		uint32_t n;

		if (in >= s->len) {
			pos->base += s->len;
			pos->i++;
			continue;
		}
		n = s->len - in < len ? s->len - in : len;
		me.want = s->len - in;
		err = write ? mr_write(t->dev, &me, s->lkey, s->addr + in, p, n) :
			      mr_read(t->dev, &me, s->lkey, s->addr + in, p, n);
		if (err)
			return err;
		p += n;
		off += n;
		len -= n;
	}
	return len ? SKUA_VENDOR_SGE_LEN : SKUA_VENDOR_NONE;
}

enum skua_vendor tx_payload(struct turn *t, const struct wqe *w, struct sge_pos *pos,
			    uint64_t off, uint8_t *to, uint32_t n)
{
	if (!(w->flags & SKUA_WQE_F_INLINE))
		return sge_copy(t, w->sge, w->nsge, pos, off, to, n, false);
	memcpy(to, w->inl + off, n);
	return SKUA_VENDOR_NONE;
}

enum skua_vendor scatter_cqe(struct turn *t, const struct mr_who *who, const struct sge *sge,
			     uint32_t nsge, uint32_t cqn, const void *buf, uint32_t len)
{
	struct engine *e = t->dev->engine;
	uint32_t left = len, n;
	bool own = true;

	_Static_assert(SCATTER_MAX == sizeof(e->inl), "data of a CQE");
	/* Any CQE has room for 32 bytes. */
	if (!len || (len > sizeof(((struct skua_cqe *)0)->data) && len > cq_room(t->dev, cqn)))
		return SKUA_VENDOR_NONE;
	for (uint32_t i = 0; left && own && i < nsge; i++, left -= n) {
		enum skua_vendor err;

		n = sge[i].len < left ? sge[i].len : left;
		err = mr_check_own(t->dev, who, sge[i].lkey, sge[i].addr, n, &own);
		if (err)
			return err;
	}
	if (left || !own)
		return SKUA_VENDOR_NONE;
	memcpy(e->inl, buf, len);
	e->inl_len = len;
	return SKUA_VENDOR_NONE;
}

bool post_cqe(struct turn *t, uint32_t cqn, struct skua_cqe *cqe, bool solicited)
{
	struct engine *e = t->dev->engine;
	const void *data = NULL;

	cqe->qpn = cpu_to_le32(t->qp->qpn);
	if (e->inl_len && le32_get_bits(cqe->what, SKUA_CQE_STATUS) == SKUA_CQE_OK) {
		cqe->own |= cpu_to_le32(SKUA_CQE_F_INLINE);
		data = e->inl;
		turn_count(t, SKUA_CNT_CQE_SCATTER);
	}
	e->inl_len = 0;
	if (!cq_post_data(t->dev, cqn, cqe, solicited, data))
		return true;
	if (qp_state(t->qp) != SKUA_QP_ERR)
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
	return false;
}
