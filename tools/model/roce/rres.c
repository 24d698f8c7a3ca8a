// SPDX-License-Identifier: GPL-2.0
/*
 * Responder resources: requests that have responses of their own.
 *
 * The last SKUA_RR_PER_QP such requests are kept in the order of their PSNs, each in the place of
 * its number modulo SKUA_RR_PER_QP. rr_tail is the number of the next one, rr_head that of the
 * oldest one that may still need a response. A request that was answered is kept until its place
 * is needed. The peer has no more requests outstanding than the agreed number of places, so that
 * all requests that it can repeat are there.
 *
 * A repeated READ is executed again from the PSN that the peer is missing, if it requests a part
 * of what the READ has requested, and key and QP still allow that. The other operations are not
 * executed again: the original value of an atomic was kept, and the responses of FLUSH and
 * ATOMIC_WRITE have no data.
 *
 * With selective repeat (SKUA_RQC_EXT) READ requests that arrive early take their places from
 * rr_tail on (SKUA_RR_EARLY). For repeated READ requests the LRC has the responses that are to be
 * sent again, and the requests do not change.
 *
 * FLUSH requests wait in a list of their own. Not all peers count them in the agreed number, so
 * that they could take the places of requests that can be repeated; and after a FLUSH was
 * answered nothing about it has to be kept.
 */
#include <string.h>

#include "cc.h"
#include "sr.h"

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

/* Number of requests from rr_head on, limited, since the context may come from host memory. */
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

/* Are there more than the agreed number? */
static bool too_many(const struct turn *t, uint32_t fresh)
{
	return fresh >= le32_get_bits(t->sqc->attr.rights, SKUA_ATTR_MAX_DEST_RD_ATOMIC);
}

/* Number of PSNs of the response. */
static uint32_t rr_psns(const struct turn *t, const struct skua_rr *rr)
{
	return rr_op(rr) == SKUA_WQE_READ ? psns_of(le32_to_cpu(rr->len), t->mtu) : 1;
}

/* The MSN that the answer to the request which is being taken will carry. */
static uint32_t next_msn(const struct turn *t)
{
	return msn_add(le32_to_cpu(t->rqc->msn), 1);
}

/* Take the next place, which may be that of a request being answered again. */
static void rr_add(struct turn *t, struct skua_rr *rrc, const struct skua_rr *rr)
{
	uint32_t tail = le32_to_cpu(t->rqc->rr_tail);

	if (rr_waiting(t) == SKUA_RR_PER_QP)
		t->rqc->rr_head = cpu_to_le32(le32_to_cpu(t->rqc->rr_head) + 1);
	*rr_at(rrc, tail) = *rr;
	t->rqc->rr_tail = cpu_to_le32(tail + 1);
}

/* The number of the request that a PSN is of. False: it is gone. */
static bool rr_find(const struct turn *t, struct skua_rr *rrc, uint32_t psn, uint32_t *number)
{
	uint32_t tail = le32_to_cpu(t->rqc->rr_tail);

	for (uint32_t i = 1; i <= SKUA_RR_PER_QP; i++) {
		const struct skua_rr *rr = rr_at(rrc, tail - i);

		*number = tail - i;
		if (rr_op(rr) && !rr_is(rr, SKUA_RR_EARLY) &&
		    psn_sub(psn, le32_to_cpu(rr->psn)) < rr_psns(t, rr))
			return true;
	}
	return false;
}

/* --- FLUSH requests that wait for their answer --- */

static uint32_t flush_waiting(const struct turn *t)
{
	uint32_t n = le32_to_cpu(t->rqc->flush_num);

	return n > SKUA_RQC_FLUSHES ? 0 : n;
}

static uint32_t flush_psn(const struct turn *t, uint32_t i)
{
	return le32_get_bits(t->rqc->flush[i], SKUA_RQC_FLUSH_PSN);
}

/* Only the low bits are kept: it is the latest MSN that has these. */
static uint32_t flush_msn(const struct turn *t, uint32_t i)
{
	uint32_t low = le32_get_bits(t->rqc->flush[i], SKUA_RQC_FLUSH_MSN);
	uint32_t now = le32_to_cpu(t->rqc->msn);

	return (now - ((now - low) & 0xff)) & IB_MSN_MASK;
}

/* In the order of PSNs, each once. False: there is no room. */
static bool flush_add(struct turn *t, uint32_t psn, uint32_t msn)
{
	uint32_t n = flush_waiting(t), i = n;

	while (i && ib_psn_diff(psn, flush_psn(t, i - 1)) < 0)
		i--;
	if (i && flush_psn(t, i - 1) == psn)
		return true;
	if (n == SKUA_RQC_FLUSHES)
		return false;
	memmove(&t->rqc->flush[i + 1], &t->rqc->flush[i], (n - i) * sizeof(__le32));
	t->rqc->flush[i] = le32_encode_bits(psn, SKUA_RQC_FLUSH_PSN) |
			   le32_encode_bits(msn & 0xff, SKUA_RQC_FLUSH_MSN);
	t->rqc->flush_num = cpu_to_le32(n + 1);
	return true;
}

static void flush_del_first(struct turn *t)
{
	uint32_t n = flush_waiting(t) - 1;

	memmove(&t->rqc->flush[0], &t->rqc->flush[1], n * sizeof(__le32));
	t->rqc->flush_num = cpu_to_le32(n);
}

void rres_forget(struct turn *t)
{
	t->rqc->rr_head = t->rqc->rr_tail;
	t->rqc->flush_num = 0;
	t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_REREAD);
}

/* --- a request of the expected PSN --- */

/* Fields of a request, in the same form for all kinds. */
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

static struct skua_rr rr_make(const struct turn *t, const struct skua_pkt *pkt,
			      enum skua_wqe_op op)
{
	return (struct skua_rr){
		.psn = cpu_to_le32(pkt->psn),
		.op = cpu_to_le32(op | SKUA_RR_PENDING) |
		      le32_encode_bits(srqn_of(pkt), SKUA_RR_SRQN),
		.msn = cpu_to_le32(next_msn(t)),
	};
}

/* Does the key allow it? */
static enum skua_vendor read_check(struct turn *t, struct where w)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_READ);

	return mr_check(t->dev, &who, w.rkey, w.va, w.len);
}

static struct skua_rr rr_read(const struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_rr rr = rr_make(t, pkt, SKUA_WQE_READ);
	struct where w = where_of(pkt);

	rr.va = cpu_to_le64(w.va);
	rr.rkey = cpu_to_le32(w.rkey);
	rr.len = cpu_to_le32(w.len);
	return rr;
}

/* May the memory be read, and are the pages of the first response present? */
static enum skua_vendor read_begin(struct turn *t, struct where w)
{
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_READ);
	uint32_t soon = ENGINE_READ_PSNS * t->mtu;
	const struct mr_part part = {
		.key = w.rkey, .va = w.va, .len = w.len, .bytes = w.len < soon ? w.len : soon,
	};
	enum skua_vendor err = read_check(t, w);

	who.want = w.len;
	/* An RNR NAK now is better than a stop in the middle of the response. */
	if (!err)
		err = mr_probe(t->dev, &who, &part);
	if (err)
		return err;
	turn_count(t, SKUA_CNT_RX_READ);
	if (le32_to_cpu(t->sqc->valid) & SKUA_SQC_CC_READ)
		cc_first_read(t);
	return SKUA_VENDOR_NONE;
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
	*rr = rr_make(t, pkt, a.op);
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
	const struct mr_part all = {
		.key = w.rkey, .va = w.va, .len = pkt->payload_len, .bytes = pkt->payload_len,
	};
	enum skua_vendor err;

	*rr = rr_make(t, pkt, SKUA_WQE_ATOMIC_WRITE);
	err = sr_order_write(t, NULL, &who, &all, pkt);
	if (!err)
		turn_count(t, SKUA_CNT_RX_ATOMIC_WRITE);
	return err;
}

static enum skua_vendor do_flush(struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t word = be32_get(pkt->feth->word);
	struct mr_who who = who_remote(t, 0);
	struct where w = where_of(pkt);
	enum skua_vendor err;

	if (word & SKUA_WQE_FLUSH_GLOBAL)
		who.access |= SKUA_ACCESS_FLUSH_GLOBAL;
	if (word & SKUA_WQE_FLUSH_PERSISTENT)
		who.access |= SKUA_ACCESS_FLUSH_PERSISTENT;
	err = mr_flush(t->dev, &who, w.rkey, w.va, w.len,
		       u32_get_bits(word, IB_FETH_SELECT_MASK) == SKUA_WQE_FLUSH_MR);
	if (!err)
		turn_count(t, SKUA_CNT_RX_FLUSH);
	return err;
}

/* Has the operation a valid length and alignment? */
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
	if (pkt->op->flags & IB_F_READ) {
		*rr = rr_read(t, pkt);
		return read_begin(t, where_of(pkt));
	}
	if (pkt->op->flags & IB_F_ATOMIC)
		return do_atomic(t, pkt, rr);
	return do_atomic_write(t, pkt, rr);
}

/* Execute the request. False: the peer gets a NAK with the reason. */
static bool executed(struct turn *t, enum skua_vendor err)
{
	err = fault_resp(t, err);
	if (err == SKUA_VENDOR_MISS)
		resp_wait_page(t);
	else if (err)
		resp_fail_key(t, le32_to_cpu(t->rqc->epsn), err);
	return !err;
}

/* The request was executed: record it for its response. */
static void taken(struct turn *t, const struct skua_pkt *pkt, uint32_t psns)
{
	uint32_t ext = le32_to_cpu(t->rqc->flags) & SKUA_RQC_EXT;
	__le32 flags = t->rqc->flags;

	resp_advance(t, pkt, psns);
	/* The response is the acknowledgment; with the extension one that was due is sent, too. */
	t->rqc->flags = flags & ~cpu_to_le32(ext ? 0 : SKUA_RQC_ACK_PENDING);
	sched_kick_resp(t->dev, t->qp->qpn);
}

/*
 * What is kept of requests with this PSN, which is taken for the first time, is 2^24 PSNs old or
 * older. A repeated FLUSH would be refused for it. False: the context cannot be had.
 */
static bool rr_outdated(struct turn *t, uint32_t psn)
{
	struct skua_rr *rrc;
	uint32_t number;

	/* There was none. */
	if (!t->rqc->rr_tail)
		return true;
	rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	if (!rrc)
		return false;
	while (rr_find(t, rrc, psn, &number) && !rr_is(rr_at(rrc, number), SKUA_RR_PENDING)) {
		rr_at(rrc, number)->op = 0;
		ctx_dirty(t->dev, rrc);
	}
	ctx_put(t->dev, rrc);
	return true;
}

/* Without a place the request is dropped. */
static void flush_request(struct turn *t, const struct skua_pkt *pkt)
{
	if (!turn_need_rq_rest(t) || flush_waiting(t) == SKUA_RQC_FLUSHES ||
	    !rr_outdated(t, pkt->psn) || !executed(t, do_flush(t, pkt)))
		return;
	flush_add(t, pkt->psn, next_msn(t));
	taken(t, pkt, 1);
}

void rres_request(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_rr *rrc;
	struct skua_rr rr;
	uint32_t fresh;

	if (pkt->op->flags & IB_F_FLUSH) {
		flush_request(t, pkt);
		return;
	}
	rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	if (!rrc)
		return;
	fresh = rr_fresh(t, rrc);
	if (too_many(t, fresh) || !shape_ok(pkt)) {
		resp_fail_at(t, le32_to_cpu(t->rqc->epsn), IB_NAK_INVALID_REQUEST,
			     SKUA_QP_EV_REQ_ERR);
	} else if (fresh < SKUA_RR_PER_QP && executed(t, execute(t, pkt, &rr))) {
		rr_add(t, rrc, &rr);
		ctx_dirty(t->dev, rrc);
		taken(t, pkt, rr_psns(t, &rr));
	}
	ctx_put(t->dev, rrc);
}

/* --- a READ request before its turn --- */

bool rres_early(struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t tail = le32_to_cpu(t->rqc->rr_tail);
	uint32_t ahead = psn_sub(be24_get(pkt->seth->seq), tail);
	struct skua_rr *rrc, *rr;
	bool ok;

	/* A place that nobody waits for the answer of. */
	if (tail + ahead - le32_to_cpu(t->rqc->rr_head) >= SKUA_RR_PER_QP || !shape_ok(pkt))
		return false;
	rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	if (!rrc)
		return false;
	rr = rr_at(rrc, tail + ahead);
	ok = !rr_is(rr, SKUA_RR_EARLY) && !too_many(t, rr_fresh(t, rrc) + ahead) &&
	     !read_check(t, where_of(pkt));
	if (ok) {
		*rr = rr_read(t, pkt);
		rr->op ^= cpu_to_le32(SKUA_RR_PENDING | SKUA_RR_EARLY);
		ctx_dirty(t->dev, rrc);
	}
	ctx_put(t->dev, rrc);
	return ok;
}

/* The PD of its key is that of the SRQ that it named, if that still is there. */
static bool rr_use_srq(struct turn *t, const struct skua_rr *rr)
{
	return qp_type(t->qp) != SKUA_QP_XRC_TGT ||
	       recv_use_srq(t, le32_get_bits(rr->op, SKUA_RR_SRQN));
}

/* Is it the request of this PSN, whose turn it is, and as it was when it came? */
static bool rr_turn_ok(struct turn *t, const struct skua_rr *rr, uint32_t psn)
{
	return rr_is(rr, SKUA_RR_EARLY) && rr_op(rr) == SKUA_WQE_READ &&
	       le32_to_cpu(rr->psn) == psn && le32_to_cpu(rr->len) <= 1u << MODEL_LOG_MSG &&
	       rr_use_srq(t, rr);
}

void rres_turn(struct turn *t, uint32_t psn)
{
	const struct skua_pkt pkt = { .psn = psn,
				      .op = ib_opcode_info(IB_OPCODE(SKUA_RC, READ_REQUEST)) };
	struct skua_rr *rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	struct skua_rr rr;

	if (!rrc)
		return;
	rr = *rr_at(rrc, le32_to_cpu(t->rqc->rr_tail));
	if (!rr_turn_ok(t, &rr, psn) || too_many(t, rr_fresh(t, rrc))) {
		resp_fail_at(t, psn, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR);
	} else {
		struct where w = { le64_to_cpu(rr.va), le32_to_cpu(rr.rkey),
				   le32_to_cpu(rr.len) };

		rr_at(rrc, le32_to_cpu(t->rqc->rr_tail))->op = 0;
		rr.op &= ~cpu_to_le32(SKUA_RR_EARLY | SKUA_RR_DUP);
		rr.op |= cpu_to_le32(SKUA_RR_PENDING);
		rr.msn = cpu_to_le32(next_msn(t));
		rr.sent = 0;
		if (executed(t, read_begin(t, w))) {
			rr_add(t, rrc, &rr);
			taken(t, &pkt, rr_psns(t, &rr));
		}
		ctx_dirty(t->dev, rrc);
	}
	ctx_put(t->dev, rrc);
}

/* --- a request of an earlier PSN --- */

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
	return pkt->op->flags & IB_F_READ && rr_op(rr) == SKUA_WQE_READ;
}

/* Offset in the READ of the response with this PSN, which is one of its responses. */
static uint64_t bytes_before(const struct turn *t, const struct skua_rr *rr, uint32_t psn)
{
	return (uint64_t)psn_sub(psn, le32_to_cpu(rr->psn)) * t->mtu;
}

/* Is it a part of what was asked for, and may it still be read? */
static bool is_part(struct turn *t, const struct skua_rr *rr, const struct skua_pkt *pkt)
{
	uint64_t in = bytes_before(t, rr, pkt->psn);
	struct where w = where_of(pkt);

	return w.rkey == le32_to_cpu(rr->rkey) && w.va == le64_to_cpu(rr->va) + in &&
	       w.len <= le32_to_cpu(rr->len) - in &&
	       srqn_of(pkt) == le32_get_bits(rr->op, SKUA_RR_SRQN) && resp_supported(t, pkt) &&
	       !read_check(t, w);
}

static uint32_t reread_num(const struct skua_lrc *lrc)
{
	uint32_t n = le32_to_cpu(lrc->reread_num);

	return n > SKUA_LRC_REREADS ? 0 : n;
}

/* Does the list have all of these responses already, still to be sent? */
static bool reread_waits(const struct skua_lrc *lrc, uint32_t psn, uint32_t num)
{
	uint32_t sent = le32_to_cpu(lrc->reread_sent);

	for (uint32_t i = 0; i < reread_num(lrc); i++, sent = 0) {
		uint32_t from = le32_get_bits(lrc->reread[i], SKUA_LRC_REREAD_PSN);
		uint32_t in = psn_sub(psn, from);

		if (in >= sent && in + num <= le32_get_bits(lrc->reread[i], SKUA_LRC_REREAD_NUM))
			return true;
	}
	return false;
}

static void reread_add(struct turn *t, uint32_t psn, uint32_t num)
{
	struct skua_lrc *lrc = sr_lrc(t);
	uint32_t n;

	if (!lrc)
		return;
	/* What the LRC says without the flag is of earlier times. */
	if (!(le32_to_cpu(t->rqc->flags) & SKUA_RQC_REREAD)) {
		lrc->reread_num = 0;
		lrc->reread_sent = 0;
	}
	n = reread_num(lrc);
	/* Without room the request is dropped. */
	if (n < SKUA_LRC_REREADS && !reread_waits(lrc, psn, num)) {
		lrc->reread[n] = le32_encode_bits(psn, SKUA_LRC_REREAD_PSN) |
				 le32_encode_bits(num, SKUA_LRC_REREAD_NUM);
		lrc->reread_num = cpu_to_le32(n + 1);
		t->rqc->flags |= cpu_to_le32(SKUA_RQC_REREAD);
		sched_kick_resp(t->dev, t->qp->qpn);
	}
	sr_lrc_put(t, lrc, true);
}

/*
 * With the extension: some of a READ's responses once more, whole packets, so that they are
 * those of the first time.
 */
static void reread(struct turn *t, const struct skua_rr *rr, const struct skua_pkt *pkt)
{
	uint32_t most = u32_get_bits(UINT32_MAX, SKUA_LRC_REREAD_NUM);
	uint64_t in = bytes_before(t, rr, pkt->psn), sent = le32_to_cpu(rr->sent);
	uint32_t len = be32_get(pkt->reth->len);
	uint32_t num = psns_of(len, t->mtu);

	if (!is_part(t, rr, pkt) ||
	    (len != le32_to_cpu(rr->len) - in && (!len || len % t->mtu))) {
		turn_count(t, SKUA_CNT_RX_MALFORMED);
		return;
	}
	/*
	 * The rest is still to be sent for the first time. Sent now, it would come twice, and the
	 * peer, which has it all then, would make more requests than wait here by its count.
	 */
	if (rr_is(rr, SKUA_RR_PENDING)) {
		if (in >= sent)
			return;
		if (num > (sent - in) / t->mtu)
			num = (uint32_t)((sent - in) / t->mtu);
	}
	reread_add(t, pkt->psn, num < most ? num : most);
}

/*
 * A READ, asked for again from its start or from within: the peer has what is
 * before, and the answer starts anew there. False: it is not a part of what was asked
 * for, or may not be read any more.
 */
static bool read_again(struct turn *t, struct skua_rr *rr, const struct skua_pkt *pkt)
{
	struct where w = where_of(pkt);

	if (!is_part(t, rr, pkt))
		return false;
	rr->psn = cpu_to_le32(pkt->psn);
	rr->va = cpu_to_le64(w.va);
	rr->len = cpu_to_le32(w.len);
	rr->sent = 0;
	rr->op |= cpu_to_le32(SKUA_RR_PENDING);
	return true;
}

/* Nothing is known of it but that its PSN is not that of another kind of request. */
static void flush_again(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_rr *rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	uint32_t number;

	if (!rrc)
		return;
	if (!turn_need_rq_rest(t))
		turn_count(t, SKUA_CNT_RX_BAD_STATE);
	else if (rr_find(t, rrc, pkt->psn, &number) || !resp_supported(t, pkt))
		turn_count(t, SKUA_CNT_RX_MALFORMED);
	else if (flush_add(t, pkt->psn, le32_to_cpu(t->rqc->msn)))
		sched_kick_resp(t->dev, t->qp->qpn);
	ctx_put(t->dev, rrc);
}

void rres_duplicate(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_rr *rrc, *rr;
	uint32_t number;
	bool pending;

	if (pkt->op->flags & IB_F_FLUSH) {
		flush_again(t, pkt);
		return;
	}
	rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	if (!rrc)
		return;
	if (!rr_find(t, rrc, pkt->psn, &number) || !same_kind(rr_at(rrc, number), pkt) ||
	    (pkt->xrceth && !recv_use_srq(t, srqn_of(pkt)))) {
		turn_count(t, SKUA_CNT_RX_MALFORMED);
		ctx_put(t->dev, rrc);
		return;
	}
	rr = rr_at(rrc, number);
	pending = rr_is(rr, SKUA_RR_PENDING);
	if (rr_op(rr) == SKUA_WQE_READ &&
	    (pkt->seth || le32_to_cpu(t->rqc->flags) & SKUA_RQC_EXT)) {
		reread(t, rr, pkt);
	} else if (rr_op(rr) == SKUA_WQE_READ && !read_again(t, rr, pkt)) {
		turn_count(t, SKUA_CNT_RX_MALFORMED);
	} else if (!pending) {
		rr->op |= cpu_to_le32(SKUA_RR_PENDING | SKUA_RR_DUP);
		if ((int32_t)(number - le32_to_cpu(t->rqc->rr_head)) < 0)
			t->rqc->rr_head = cpu_to_le32(number);
	}
	ctx_dirty(t->dev, rrc);
	ctx_put(t->dev, rrc);
	sched_kick_resp(t->dev, t->qp->qpn);
}

/* --- answers --- */

/* Send the next packet of a READ response. */
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

	/* The QP may not allow READs any more. */
	if (!(le32_get_bits(t->sqc->attr.rights, SKUA_ATTR_ACCESS) & SKUA_ACCESS_REMOTE_READ))
		err = SKUA_VENDOR_KEY_ACCESS;
	if (!rr_use_srq(t, rr))
		err = SKUA_VENDOR_KEY_PD;
	who.pd = t->pd;
	if (!err && tx_start(t, &b, op[first][last], psn, false, false)) {
		resp_put_ack(t, &b, le32_to_cpu(rr->msn));
		who.want = left;
		err = fault_resp(t, mr_read(t->dev, &who, le32_to_cpu(rr->rkey),
					    le64_to_cpu(rr->va) + sent, b.payload, n));
		if (!err)
			tx_finish(t, &b, n);
	}
	if (err == SKUA_VENDOR_MISS)
		return err;
	if (err) {
		rres_forget(t);
		resp_fail_key(t, psn, err);
		return err;
	}
	rr->sent = cpu_to_le32(sent + n);
	t->budget -= n + SKUA_PKT_OVERHEAD;
	return SKUA_VENDOR_NONE;
}

/* Send another response. Those of FLUSH and ATOMIC_WRITE are READ responses without data. */
static void answer_one(struct turn *t, uint8_t op, uint32_t psn, uint32_t msn, uint64_t orig)
{
	struct skua_pkt_build b;

	if (tx_start(t, &b, op, psn, false, false)) {
		resp_put_ack(t, &b, msn);
		if (b.atomicacketh)
			be64_put(b.atomicacketh->orig, orig);
		tx_finish(t, &b, 0);
	}
	t->budget -= SKUA_PKT_OVERHEAD;
}

static void answer_rr(struct turn *t, struct skua_rr *rr)
{
	answer_one(t, op_is_atomic(rr_op(rr)) ? IB_OPCODE(RC, ATOMIC_ACK) :
						IB_OPCODE(RC, READ_RESP_ONLY),
		   le32_to_cpu(rr->psn), le32_to_cpu(rr->msn), le64_to_cpu(rr->va));
	rr->sent = rr->len;
}

static void answer_flush(struct turn *t)
{
	answer_one(t, IB_OPCODE(RC, READ_RESP_ONLY), flush_psn(t, 0), flush_msn(t, 0), 0);
	flush_del_first(t);
}

/* Is the entry valid? It may have been read from host memory. */
static bool rr_sane(const struct skua_rr *rr)
{
	return rr_is(rr, SKUA_RR_PENDING) && !rr_is(rr, SKUA_RR_EARLY) &&
	       op_is_answered(rr_op(rr)) && le32_to_cpu(rr->sent) <= le32_to_cpu(rr->len);
}

/*
 * One packet of the oldest request, if it waits for its answer. False: the QP failed,
 * or has to wait for a page.
 */
static bool answer(struct turn *t, struct skua_rr *rr)
{
	if (rr_sane(rr)) {
		if (rr_op(rr) != SKUA_WQE_READ)
			answer_rr(t, rr);
		else if (answer_read(t, rr))
			return false;
		if (rr->sent != rr->len)
			return true;
	}
	rr->op &= ~cpu_to_le32(SKUA_RR_PENDING | SKUA_RR_DUP);
	t->rqc->rr_head = cpu_to_le32(le32_to_cpu(t->rqc->rr_head) + 1);
	return true;
}

/* The READ that the first entry of the list asks for again. False: it cannot be answered. */
static bool reread_first(const struct turn *t, const struct skua_lrc *lrc, struct skua_rr *rrc,
			 struct skua_rr *out)
{
	uint32_t psn = le32_get_bits(lrc->reread[0], SKUA_LRC_REREAD_PSN);
	uint32_t num = le32_get_bits(lrc->reread[0], SKUA_LRC_REREAD_NUM);
	uint64_t in, len, sent = le32_to_cpu(lrc->reread_sent);
	uint32_t number;

	if (!rr_find(t, rrc, psn, &number) || rr_op(rr_at(rrc, number)) != SKUA_WQE_READ)
		return false;
	*out = *rr_at(rrc, number);
	in = bytes_before(t, out, psn);
	len = le32_to_cpu(out->len) - in;
	if (len > (uint64_t)num * t->mtu)
		len = (uint64_t)num * t->mtu;
	out->psn = cpu_to_le32(psn);
	out->va = cpu_to_le64(le64_to_cpu(out->va) + in);
	out->len = cpu_to_le32((uint32_t)len);
	out->sent = cpu_to_le32((uint32_t)(sent * t->mtu));
	return num && (!sent || sent * t->mtu < len);
}

static void reread_del_first(struct turn *t, struct skua_lrc *lrc)
{
	uint32_t n = reread_num(lrc);

	lrc->reread_sent = 0;
	if (n)
		memmove(&lrc->reread[0], &lrc->reread[1], --n * sizeof(__le32));
	lrc->reread_num = cpu_to_le32(n);
	if (!n)
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_REREAD);
}

/* One response of those that are sent again. As answer(). */
static bool answer_again(struct turn *t, struct skua_rr *rrc)
{
	struct skua_lrc *lrc = sr_lrc(t);
	struct skua_rr rr;
	bool ok = true;

	if (!lrc)
		return false;
	if (!reread_num(lrc) || !reread_first(t, lrc, rrc, &rr)) {
		reread_del_first(t, lrc);
	} else {
		ok = !answer_read(t, &rr);
		lrc->reread_sent = cpu_to_le32(le32_to_cpu(lrc->reread_sent) + ok);
		if (ok && rr.sent == rr.len)
			reread_del_first(t, lrc);
	}
	sr_lrc_put(t, lrc, true);
	return ok;
}

static bool again_is_next(const struct turn *t)
{
	return le32_to_cpu(t->rqc->flags) & SKUA_RQC_REREAD;
}

static bool anything_waits(const struct turn *t)
{
	return again_is_next(t) || rr_waiting(t) || flush_waiting(t);
}

/* Is a FLUSH the next to be answered? */
static bool flush_is_next(const struct turn *t, struct skua_rr *rrc)
{
	if (!flush_waiting(t))
		return false;
	if (!rr_waiting(t))
		return true;
	return ib_psn_diff(flush_psn(t, 0),
			   le32_to_cpu(rr_at(rrc, le32_to_cpu(t->rqc->rr_head))->psn)) < 0;
}

enum rres rres_run(struct turn *t)
{
	enum rres state = RRES_DONE;
	struct skua_rr *rrc;

	if (!anything_waits(t))
		return RRES_DONE;
	if (flush_waiting(t) && !turn_need_rq_rest(t))
		return RRES_DONE;
	rrc = ctx_get(t->dev, SKUA_ICM_RRC, qp_index(t->qp->qpn));
	if (!rrc)
		return RRES_DONE;
	while (state == RRES_DONE && anything_waits(t)) {
		if (t->budget <= 0 || tx_peer_waits(t))
			state = RRES_BUDGET;
		else if (again_is_next(t))
			state = answer_again(t, rrc) || !again_is_next(t) ? RRES_DONE :
									    RRES_STALLED;
		else if (flush_is_next(t, rrc))
			answer_flush(t);
		else if (!answer(t, rr_at(rrc, le32_to_cpu(t->rqc->rr_head))) && rr_waiting(t))
			state = RRES_STALLED;
	}
	ctx_dirty(t->dev, rrc);
	ctx_put(t->dev, rrc);
	return state;
}
