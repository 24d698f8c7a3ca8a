// SPDX-License-Identifier: GPL-2.0
/*
 * Responder resources: what the peer asked for that has a response of its own.
 *
 * The last SKUA_RR_PER_QP such requests lie in the order of their PSNs, each at its
 * number modulo that. rr_tail is the number of the next, rr_head that of the oldest
 * which may still have to be answered. One that was answered stays until its place
 * is needed: a peer has no more requests outstanding than places were agreed on, so
 * that whatever it may repeat is there.
 *
 * A repeated READ is executed again, from now valid keys and from the PSN that the
 * peer lacks. The others are not: an atomic's original value was kept, FLUSH and
 * ATOMIC_WRITE have nothing to say but that they were done.
 */
#include <string.h>

#include "engine.h"

static struct skua_rr *rr_at(struct skua_rr *rrc, uint32_t number)
{
	return &rrc[number % SKUA_RR_PER_QP];
}

static bool rr_is(const struct skua_rr *rr, uint32_t flags)
{
	return (le32_to_cpu(rr->op) & flags) == flags;
}

static enum skua_wqe_op rr_op(const struct skua_rr *rr)
{
	return le32_get_bits(rr->op, SKUA_RR_OP);
}

/* Requests from rr_head on; what memory of the host may say besides is bounded. */
static uint32_t rr_waiting(const struct turn *t)
{
	uint32_t n = le32_to_cpu(t->rqc->rr_tail) - le32_to_cpu(t->rqc->rr_head);

	return n > SKUA_RR_PER_QP ? 0 : n;
}

/* Requests that wait for their first answer. */
static uint32_t rr_fresh(const struct turn *t, struct skua_rr *rrc)
{
	uint32_t head = le32_to_cpu(t->rqc->rr_head);
	uint32_t fresh = 0;

	for (uint32_t i = 0; i < rr_waiting(t); i++) {
		const struct skua_rr *rr = rr_at(rrc, head + i);

		fresh += rr_is(rr, SKUA_RR_PENDING) && !rr_is(rr, SKUA_RR_DUP);
	}
	return fresh;
}

/* More than were agreed on? Not all peers count FLUSH among them: it is not held to it. */
static bool too_many(const struct turn *t, const struct skua_pkt *pkt, uint32_t fresh)
{
	return !(pkt->op->flags & IB_F_FLUSH) &&
	       fresh >= le32_get_bits(t->sqc->attr.rights, SKUA_ATTR_MAX_DEST_RD_ATOMIC);
}

/* There is a place, if need be that of one which is repeated. */
static void rr_add(struct turn *t, struct skua_rr *rrc, const struct skua_rr *rr)
{
	uint32_t tail = le32_to_cpu(t->rqc->rr_tail);

	if (rr_waiting(t) == SKUA_RR_PER_QP)
		t->rqc->rr_head = cpu_to_le32(le32_to_cpu(t->rqc->rr_head) + 1);
	*rr_at(rrc, tail) = *rr;
	t->rqc->rr_tail = cpu_to_le32(tail + 1);
}

/* --- a request of the expected PSN --- */

/* What a request says where, for all kinds alike. */
struct where {
	uint64_t va;
	uint32_t rkey;
	uint32_t len;
};

static struct where where_of(const struct skua_pkt *pkt)
{
	return (struct where){
		.va = be64_get(pkt->reth->va),
		.rkey = be32_get(pkt->reth->rkey),
		.len = be32_get(pkt->reth->len),
	};
}

static uint32_t srqn_of(const struct skua_pkt *pkt)
{
	return pkt->xrceth ? be24_get(pkt->xrceth->srqn) : 0;
}

static struct skua_rr rr_make(const struct skua_pkt *pkt, enum skua_wqe_op op, uint32_t psns)
{
	return (struct skua_rr){
		.psn = cpu_to_le32(pkt->psn),
		.op = cpu_to_le32(op | SKUA_RR_PENDING) |
		      le32_encode_bits(srqn_of(pkt), SKUA_RR_SRQN),
		.psns = cpu_to_le32(psns),
	};
}

static struct skua_rr rr_read(const struct skua_pkt *pkt, uint32_t psns)
{
	struct where w = where_of(pkt);
	struct skua_rr rr = rr_make(pkt, SKUA_WQE_READ, psns);

	rr.va = cpu_to_le64(w.va);
	rr.rkey = cpu_to_le32(w.rkey);
	rr.len = cpu_to_le32(w.len);
	return rr;
}

/* Does the key allow it? The answer takes *@psns PSNs. */
static enum skua_vendor read_check(struct turn *t, const struct skua_pkt *pkt, uint32_t *psns)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_READ);
	struct where w = where_of(pkt);

	*psns = psns_of(w.len, t->mtu);
	return mr_check(t->dev, &who, w.rkey, w.va, w.len);
}

static enum skua_vendor do_read(struct turn *t, const struct skua_pkt *pkt, struct skua_rr *rr)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_READ);
	uint32_t soon = ENGINE_READ_PSNS * t->mtu;
	struct where w = where_of(pkt);
	uint32_t psns;
	enum skua_vendor err = read_check(t, pkt, &psns);

	*rr = rr_read(pkt, psns);
	who.want = w.len;
	/* Better to put the peer off than to stop amid the answer. */
	if (!err)
		err = mr_probe(t->dev, &who, w.rkey, w.va, w.len < soon ? w.len : soon);
	if (!err)
		turn_count(t, SKUA_CNT_RX_READ);
	return err;
}

static enum skua_vendor do_atomic(struct turn *t, const struct skua_pkt *pkt, struct skua_rr *rr)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_ATOMIC);
	enum skua_vendor err;
	uint64_t va, old = 0;
	struct atomic a;
	uint32_t rkey;

	atomic_parse(pkt, &a, &va, &rkey);
	err = mr_atomic(t->dev, &who, rkey, va, atomic_change, &a, &old);
	*rr = rr_make(pkt, a.op, 1);
	rr->va = cpu_to_le64(old);
	rr->len = cpu_to_le32(sizeof(old));
	if (!err)
		turn_count(t, SKUA_CNT_RX_ATOMIC);
	return err;
}

static enum skua_vendor do_atomic_write(struct turn *t, const struct skua_pkt *pkt,
					struct skua_rr *rr)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_WRITE);
	struct where w = where_of(pkt);
	enum skua_vendor err;

	*rr = rr_make(pkt, SKUA_WQE_ATOMIC_WRITE, 1);
	err = mr_write(t->dev, &who, w.rkey, w.va, pkt->payload, pkt->payload_len);
	if (!err)
		turn_count(t, SKUA_CNT_RX_ATOMIC_WRITE);
	return err;
}

static enum skua_vendor do_flush(struct turn *t, const struct skua_pkt *pkt, struct skua_rr *rr)
{
	uint32_t word = be32_get(pkt->feth->word);
	struct mr_who who = who_remote(t, 0);
	struct where w = where_of(pkt);
	enum skua_vendor err;

	if (word & SKUA_WQE_FLUSH_GLOBAL)
		who.access |= SKUA_ACCESS_FLUSH_GLOBAL;
	if (word & SKUA_WQE_FLUSH_PERSISTENT)
		who.access |= SKUA_ACCESS_FLUSH_PERSISTENT;
	*rr = rr_make(pkt, SKUA_WQE_FLUSH, 1);
	err = mr_flush(t->dev, &who, w.rkey, w.va, w.len,
		       u32_get_bits(word, IB_FETH_SELECT_MASK) == SKUA_WQE_FLUSH_MR);
	if (!err)
		turn_count(t, SKUA_CNT_RX_FLUSH);
	return err;
}

/* Length and alignment that the operation can have. */
static bool shape_ok(const struct skua_pkt *pkt)
{
	struct atomic a;
	uint32_t rkey;
	uint64_t va;

	if (pkt->op->flags & IB_F_READ)
		return be32_get(pkt->reth->len) <= 1u << MODEL_LOG_MSG;
	if (pkt->op->flags & IB_F_ATOMIC)
		return atomic_parse(pkt, &a, &va, &rkey) && va % sizeof(va) == 0;
	if (pkt->op->flags & IB_F_ATOMIC_WRITE)
		return be32_get(pkt->reth->len) == sizeof(va) &&
		       be64_get(pkt->reth->va) % sizeof(va) == 0;
	return true;
}

static enum skua_vendor execute(struct turn *t, const struct skua_pkt *pkt, struct skua_rr *rr)
{
	if (pkt->op->flags & IB_F_READ)
		return do_read(t, pkt, rr);
	if (pkt->op->flags & IB_F_ATOMIC)
		return do_atomic(t, pkt, rr);
	if (pkt->op->flags & IB_F_ATOMIC_WRITE)
		return do_atomic_write(t, pkt, rr);
	return do_flush(t, pkt, rr);
}

void rres_request(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_rr *rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	uint32_t epsn = le32_to_cpu(t->rqc->epsn);
	enum skua_vendor err;
	struct skua_rr rr;
	uint32_t fresh;

	if (!rrc)
		return;
	fresh = rr_fresh(t, rrc);
	if (too_many(t, pkt, fresh) || !shape_ok(pkt)) {
		resp_fail_at(t, epsn, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR);
	} else if (fresh < SKUA_RR_PER_QP) {
		/* Without a place the packet is as good as lost. */
		err = fault_resp(t, execute(t, pkt, &rr));
		if (err == SKUA_VENDOR_MISS) {
			resp_wait_page(t);
		} else if (err) {
			resp_fail_key(t, epsn, err);
		} else {
			rr_add(t, rrc, &rr);
			ctx_dirty(t->dev, rrc);
			resp_advance(t, pkt, le32_to_cpu(rr.psns));
			/* The response is the acknowledgment. */
			t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_ACK_PENDING);
			sched_kick(t->dev, t->qp->qpn);
		}
	}
	ctx_put(t->dev, rrc);
}

/* --- a request of an earlier PSN --- */

/* The number of the request that a packet repeats, or a part of. False: it is gone. */
static bool rr_find(const struct turn *t, struct skua_rr *rrc, const struct skua_pkt *pkt,
		    uint32_t *number)
{
	uint32_t tail = le32_to_cpu(t->rqc->rr_tail);

	for (uint32_t i = 1; i <= SKUA_RR_PER_QP; i++) {
		const struct skua_rr *rr = rr_at(rrc, tail - i);

		*number = tail - i;
		if (rr_op(rr) && psn_sub(pkt->psn, le32_to_cpu(rr->psn)) < le32_to_cpu(rr->psns))
			return true;
	}
	return false;
}

/* Is it the same kind of request? */
static bool same_kind(const struct skua_rr *rr, const struct skua_pkt *pkt)
{
	struct atomic a;
	uint32_t rkey;
	uint64_t va;

	if (pkt->op->flags & IB_F_ATOMIC)
		return atomic_parse(pkt, &a, &va, &rkey) && rr_op(rr) == a.op;
	if (pkt->op->flags & IB_F_ATOMIC_WRITE)
		return rr_op(rr) == SKUA_WQE_ATOMIC_WRITE;
	return rr_op(rr) == (pkt->op->flags & IB_F_FLUSH ? SKUA_WQE_FLUSH : SKUA_WQE_READ);
}

/*
 * A READ, asked for again from its start or from within: the peer has what is
 * before, and the answer starts anew there. False: it asks for more than it did.
 */
static bool read_again(struct turn *t, struct skua_rr *rr, const struct skua_pkt *pkt)
{
	uint32_t in = psn_sub(pkt->psn, le32_to_cpu(rr->psn));
	__le32 flags = rr->op;
	uint32_t psns;

	if (!shape_ok(pkt) || read_check(t, pkt, &psns) || psns > le32_to_cpu(rr->psns) - in)
		return false;
	*rr = rr_read(pkt, psns);
	rr->op |= flags & cpu_to_le32(SKUA_RR_DUP);
	return true;
}

void rres_duplicate(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_rr *rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	struct skua_rr *rr;
	uint32_t number;
	bool pending;

	if (!rrc)
		return;
	if (!rr_find(t, rrc, pkt, &number) || !same_kind(rr_at(rrc, number), pkt) ||
	    (pkt->xrceth && !recv_use_srq(t, srqn_of(pkt)))) {
		turn_count(t, SKUA_CNT_RX_MALFORMED);
		ctx_put(t->dev, rrc);
		return;
	}
	rr = rr_at(rrc, number);
	pending = rr_is(rr, SKUA_RR_PENDING);
	if (rr_op(rr) == SKUA_WQE_READ && !read_again(t, rr, pkt)) {
		turn_count(t, SKUA_CNT_RX_MALFORMED);
	} else if (!pending) {
		rr->op |= cpu_to_le32(SKUA_RR_PENDING | SKUA_RR_DUP);
		if ((int32_t)(number - le32_to_cpu(t->rqc->rr_head)) < 0)
			t->rqc->rr_head = cpu_to_le32(number);
	}
	ctx_dirty(t->dev, rrc);
	ctx_put(t->dev, rrc);
	sched_kick(t->dev, t->qp->qpn);
}

/* --- answers --- */

/* The next packet of a READ response. */
static enum skua_vendor answer_read(struct turn *t, struct skua_rr *rr)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_READ);
	uint32_t sent = le32_to_cpu(rr->sent);
	uint32_t left = le32_to_cpu(rr->len) - sent;
	uint32_t n = left < t->mtu ? left : t->mtu;
	uint32_t psn = psn_add(le32_to_cpu(rr->psn), sent / t->mtu);
	bool first = !sent, last = n == left;
	static const uint8_t op[2][2] = {
		{ IB_OPCODE(RC, READ_RESP_MIDDLE), IB_OPCODE(RC, READ_RESP_LAST) },
		{ IB_OPCODE(RC, READ_RESP_FIRST), IB_OPCODE(RC, READ_RESP_ONLY) },
	};
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct skua_pkt_build b;

	/* The key is of the PD of the SRQ that the request named, if it still is there. */
	if (qp_type(t->qp) == SKUA_QP_XRC_TGT) {
		if (!recv_use_srq(t, le32_get_bits(rr->op, SKUA_RR_SRQN)))
			err = SKUA_VENDOR_KEY_PD;
		who.pd = t->pd;
	}
	if (!err && tx_start(t, &b, op[first][last], psn, false, false)) {
		resp_put_aeth(t, &b, IB_AETH_ACK | IB_AETH_CREDIT_INVALID);
		who.want = left;
		err = fault_resp(t, mr_read(t->dev, &who, le32_to_cpu(rr->rkey),
					    le64_to_cpu(rr->va) + sent, b.payload, n));
		if (!err)
			tx_finish(t, &b, n);
	}
	if (err == SKUA_VENDOR_MISS)
		return err;
	if (err) {
		t->rqc->rr_head = t->rqc->rr_tail;
		resp_fail_key(t, psn, err);
		return err;
	}
	rr->sent = cpu_to_le32(sent + n);
	t->budget -= n + SKUA_PKT_OVERHEAD;
	return SKUA_VENDOR_NONE;
}

/* Of all others. FLUSH and ATOMIC_WRITE are answered as a READ of nothing is. */
static void answer_one(struct turn *t, struct skua_rr *rr)
{
	uint8_t op = op_is_atomic(rr_op(rr)) ? IB_OPCODE(RC, ATOMIC_ACK) :
					       IB_OPCODE(RC, READ_RESP_ONLY);
	struct skua_pkt_build b;

	if (tx_start(t, &b, op, le32_to_cpu(rr->psn), false, false)) {
		resp_put_aeth(t, &b, IB_AETH_ACK | IB_AETH_CREDIT_INVALID);
		if (b.atomicacketh)
			be64_put(b.atomicacketh->orig, le64_to_cpu(rr->va));
		tx_finish(t, &b, 0);
	}
	rr->sent = rr->len;
	t->budget -= SKUA_PKT_OVERHEAD;
}

/* May an entry be answered? It may come from memory of the host. */
static bool rr_sane(const struct skua_rr *rr)
{
	return rr_is(rr, SKUA_RR_PENDING) && op_is_answered(rr_op(rr)) &&
	       le32_to_cpu(rr->sent) <= le32_to_cpu(rr->len);
}

/*
 * One packet of the oldest request, if it waits for its answer. False: the QP failed,
 * or has to wait for a page.
 */
static bool answer(struct turn *t, struct skua_rr *rr)
{
	if (rr_sane(rr)) {
		if (rr_op(rr) != SKUA_WQE_READ)
			answer_one(t, rr);
		else if (answer_read(t, rr))
			return false;
		if (rr->sent != rr->len)
			return true;
	}
	rr->op &= ~cpu_to_le32(SKUA_RR_PENDING | SKUA_RR_DUP);
	t->rqc->rr_head = cpu_to_le32(le32_to_cpu(t->rqc->rr_head) + 1);
	return true;
}

enum rres rres_run(struct turn *t)
{
	enum rres state = RRES_DONE;
	struct skua_rr *rrc;

	if (!rr_waiting(t))
		return RRES_DONE;
	rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	if (!rrc)
		return RRES_DONE;
	while (state == RRES_DONE && rr_waiting(t)) {
		if (t->budget <= 0 || port_tx_busy(t->dev))
			state = RRES_BUDGET;
		else if (!answer(t, rr_at(rrc, le32_to_cpu(t->rqc->rr_head))) && rr_waiting(t))
			state = RRES_STALLED;
	}
	ctx_dirty(t->dev, rrc);
	ctx_put(t->dev, rrc);
	return state;
}
