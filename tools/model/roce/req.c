// SPDX-License-Identifier: GPL-2.0
/*
 * Requester: sending the WQEs of the send queue.
 *
 * Four block indices, in the order of the ring, describe the send queue:
 *
 *   ci    oldest WQE that is not completed; its first PSN is ci_psn
 *   cur   WQE being sent; its progress is in cur_psn, cur_sent and next_psn
 *   hi    first WQE that was not sent completely; equal to cur, except after going back
 *   pi    producer index
 *
 * The first PSN that is not acknowledged is always in the WQE at ci. So to go back means to make
 * ci the current WQE and una_psn the next PSN. A WQE is read again each time that it is sent, and
 * the guest may have changed it. For a message that was begun its length and opcode are pinned in
 * the context. For the others it is enough to check that ring and PSNs agree at hi: if they do
 * not, the QP goes to ERR.
 */
#include <string.h>

#include "cc.h"
#include "engine.h"
#include "sr.h"

/* Result of sending a message in this turn. */
enum outcome {
	SENT,		/* whole: go on with the next */
	WAIT,		/* for the other side */
	BUDGET,		/* for the next turn */
};

/* --- the current message --- */

static enum skua_cqe_status status_of(enum skua_wqe_op op, enum skua_vendor vendor)
{
	if (op_is_local(op) && vendor >= SKUA_VENDOR_KEY_INVALID && vendor <= SKUA_VENDOR_KEY_PAGES)
		return SKUA_CQE_MW_BIND_ERR;
	switch (vendor) {
	case SKUA_VENDOR_SGE_LEN:
		return SKUA_CQE_LOC_LEN_ERR;
	case SKUA_VENDOR_KEY_INVALID:
	case SKUA_VENDOR_KEY_PD:
	case SKUA_VENDOR_KEY_ACCESS:
	case SKUA_VENDOR_KEY_BOUNDS:
	case SKUA_VENDOR_KEY_DMA:
	case SKUA_VENDOR_KEY_FAULT:
		return SKUA_CQE_LOC_PROT_ERR;
	default:
		return SKUA_CQE_LOC_QP_OP_ERR;
	}
}

/* Are the indices consistent? The context may have been read from host memory. */
static bool sane(const struct turn *t)
{
	uint32_t ci = le32_to_cpu(t->sqc->ci);
	uint32_t cur = le32_to_cpu(t->sqc->cur) - ci;
	uint32_t hi = le32_to_cpu(t->sqc->hi) - ci;

	return cur <= hi && hi <= le32_to_cpu(t->sqc->pi) - ci;
}

static bool pin_matches(const struct turn *t, const struct wqe *w)
{
	const struct skua_sqc *s = t->sqc;

	return le32_to_cpu(s->cur_op) == (w->op | w->flags << 8) &&
	       le32_to_cpu(s->cur_len) == w->len && le64_to_cpu(s->cur_va) == w->va &&
	       le32_to_cpu(s->cur_rkey) == w->rkey;
}

/* Memory that responses are written to must be writable before the request is sent. */
static enum skua_vendor check_scatter(struct turn *t, const struct wqe *w)
{
	struct mr_who who = who_local(t, SKUA_ACCESS_LOCAL_WRITE);
	enum skua_vendor err = SKUA_VENDOR_NONE;

	for (uint32_t i = 0; i < w->nsge && !err; i++)
		err = mr_check(t->dev, &who, w->sge[i].lkey, w->sge[i].addr, w->sge[i].len);
	return err;
}

static void count_begun(struct turn *t, const struct wqe *w)
{
	switch (w->op) {
	case SKUA_WQE_SEND:
	case SKUA_WQE_SEND_IMM:
	case SKUA_WQE_SEND_INV:
		turn_count(t, SKUA_CNT_TX_SEND);
		break;
	case SKUA_WQE_WRITE:
	case SKUA_WQE_WRITE_IMM:
		turn_count(t, SKUA_CNT_TX_WRITE);
		break;
	default:
		break;
	}
}

/* The message is not finished in this turn: pin its length and opcode in the context. */
static void pin_keep(struct turn *t, const struct wqe *w)
{
	if (!sqc_is(t, SKUA_SQC_PINNED) || !turn_need_sq_rest(t))
		return;
	t->sqc->cur_op = cpu_to_le32(w->op | w->flags << 8);
	t->sqc->cur_len = cpu_to_le32((uint32_t)w->len);
	t->sqc->cur_va = cpu_to_le64(w->va);
	t->sqc->cur_rkey = cpu_to_le32(w->rkey);
}

/* Begin a message: pin it as its WQE is now, and make it known to the completer. */
static enum skua_vendor pin(struct turn *t, const struct wqe *w)
{
	struct engine *e = t->dev->engine;
	struct flight f = req_flight_of(t, w), old;
	enum skua_vendor err = SKUA_VENDOR_NONE;

	if (t->sqc->cur != t->sqc->hi) {
		turn_count(t, SKUA_CNT_WQE_REFETCH);
		if (flight_get(e, f.qpn, f.incarnation, f.index, &old) &&
		    (old.blocks != f.blocks || old.len != f.len || old.op != f.op))
			return SKUA_VENDOR_WQE_CHANGED;
	}
	if (w->op == SKUA_WQE_READ || op_is_atomic(w->op))
		err = check_scatter(t, w);
	if (err)
		return err;
	if (t->sqc->cur == t->sqc->hi)
		count_begun(t, w);
	sqc_set(t, SKUA_SQC_PINNED, true);
	flight_put(e, &f, w);
	if (t->sqc->cur == t->sqc->ci && !f.kept)
		req_first_put(t, &f);
	return SKUA_VENDOR_NONE;
}

static enum skua_vendor load(struct turn *t, struct wqe *w)
{
	uint32_t cur = le32_to_cpu(t->sqc->cur);
	uint32_t sent = le32_to_cpu(t->sqc->cur_sent);
	enum skua_vendor err = wqe_fetch_win(t->dev, t->qp, &t->dev->engine->win, cur, w);

	if (sqc_is(t, SKUA_SQC_PINNED)) {
		turn_count(t, SKUA_CNT_WQE_REFETCH);
		if (err || !pin_matches(t, w))
			return SKUA_VENDOR_WQE_CHANGED;
	}
	if (err)
		return err;
	return sent && sent >= w->len ? SKUA_VENDOR_WQE_CHANGED : SKUA_VENDOR_NONE;
}

/* Must the message, or the next part of a READ, wait for an event of this QP? */
static bool must_wait(const struct turn *t, const struct wqe *w)
{
	uint32_t reads = t->sqc->rd_outstanding;

	if (w->flags & SKUA_WQE_F_FENCE && !sqc_is(t, SKUA_SQC_PINNED) && reads)
		return true;
	return op_is_answered(w->op) &&
	       reads >= le32_get_bits(t->sqc->attr.rights, SKUA_ATTR_MAX_RD_ATOMIC);
}

/* Must the WQE wait for the completion of all earlier ones? Only before it is begun. */
static bool fenced(struct turn *t, const struct wqe *w)
{
	if (!(w->flags & SKUA_WQE_F_LOCAL_FENCE) || t->sqc->cur != t->sqc->hi)
		return false;
	req_complete_local(t);
	return t->sqc->ci != t->sqc->cur || qp_state(t->qp) == SKUA_QP_ERR;
}

/* Number of PSNs that may be outstanding. */
static uint32_t window(const struct turn *t)
{
	uint32_t most = sr_on(t) ? sr_window(t) : ENGINE_WINDOW;

	return cc_has_window(t) ? cc_psns(t, most) : most;
}

static uint32_t outstanding(const struct turn *t)
{
	return psn_sub(le32_to_cpu(t->sqc->next_psn), le32_to_cpu(t->sqc->una_psn));
}

uint32_t req_room(const struct turn *t)
{
	uint32_t most = window(t), out = outstanding(t);

	return out < most ? most - out : 0;
}

static bool window_full(const struct turn *t)
{
	return !req_room(t);
}

/* A READ's part takes many PSNs at once: of selective repeat each must have its bit. */
static bool no_room(const struct turn *t, const struct wqe *w)
{
	return window_full(t) || (w->op == SKUA_WQE_READ && sr_on(t) &&
				  outstanding(t) + ENGINE_READ_PSNS > SKUA_LRC_PSNS);
}

bool req_limited(const struct turn *t, enum skua_wqe_op op, uint32_t ssn)
{
	return op_takes_recv(op) && sqc_is(t, SKUA_SQC_CREDIT_VALID) &&
	       ib_psn_diff(ssn, le32_to_cpu(t->sqc->credit)) > 0;
}

static bool limited(const struct turn *t, const struct wqe *w)
{
	return req_limited(t, w->op, le32_to_cpu(t->sqc->ssn));
}

/*
 * Of a message without credit one packet is sent at a time, to find out whether the peer has a
 * receive now: the peer need not report new credits by itself.
 */
static bool credit_waits(const struct turn *t, const struct wqe *w)
{
	return limited(t, w) && t->sqc->next_psn != t->sqc->una_psn;
}

void req_note_sent(struct turn *t, uint32_t psns, uint32_t bytes)
{
	struct skua_sqc *s = t->sqc;
	uint32_t psn = le32_to_cpu(s->next_psn);
	uint32_t next = psn_add(psn, psns);

	if (ib_psn_diff(psn, le32_to_cpu(s->max_psn)) < 0)
		turn_count(t, SKUA_CNT_TX_RETRANS_PKTS);
	if (ib_psn_diff(next, le32_to_cpu(s->max_psn)) > 0)
		s->max_psn = cpu_to_le32(next);
	s->next_psn = cpu_to_le32(next);
	s->cur_sent = cpu_to_le32(le32_to_cpu(s->cur_sent) + bytes);
	if (sr_on(t))
		sr_note_sent(t, psn, psns);
	if (cc_on(t) && s->max_psn == cpu_to_le32(next))
		cc_note_sent(t, psn);
	if (!t->reliable)
		s->una_psn = s->next_psn;
	else
		req_arm_ack(t);
}

/* By opcode, first packet, last packet. */
static const uint8_t data_op[][2][2] = {
	[SKUA_WQE_SEND] = {
		{ IB_OP_SEND_MIDDLE, IB_OP_SEND_LAST },
		{ IB_OP_SEND_FIRST, IB_OP_SEND_ONLY } },
	[SKUA_WQE_SEND_IMM] = {
		{ IB_OP_SEND_MIDDLE, IB_OP_SEND_LAST_IMM },
		{ IB_OP_SEND_FIRST, IB_OP_SEND_ONLY_IMM } },
	[SKUA_WQE_SEND_INV] = {
		{ IB_OP_SEND_MIDDLE, IB_OP_SEND_LAST_INV },
		{ IB_OP_SEND_FIRST, IB_OP_SEND_ONLY_INV } },
	[SKUA_WQE_WRITE] = {
		{ IB_OP_WRITE_MIDDLE, IB_OP_WRITE_LAST },
		{ IB_OP_WRITE_FIRST, IB_OP_WRITE_ONLY } },
	[SKUA_WQE_WRITE_IMM] = {
		{ IB_OP_WRITE_MIDDLE, IB_OP_WRITE_LAST_IMM },
		{ IB_OP_WRITE_FIRST, IB_OP_WRITE_ONLY_IMM } },
};

static bool wants_event(const struct wqe *w)
{
	return w->flags & SKUA_WQE_F_SOLICITED && w->op != SKUA_WQE_WRITE;
}

enum skua_vendor req_put_data(struct turn *t, const struct wqe *w, struct sge_pos *pos,
			      const struct piece *p)
{
	bool last = p->off + p->len == w->len;
	uint8_t transport = sr_on(t) ? IB_TRANSPORT_SKUA_RC : t->transport;
	__le32 imm = cpu_to_le32(w->imm);
	struct skua_pkt_build b;
	enum skua_vendor err;

	if (!tx_start(t, &b, transport | data_op[w->op][!p->off][last], p->psn, p->ackreq,
		      last && wants_event(w)))
		return SKUA_VENDOR_NONE;
	if (b.seth)
		ib_seth_put(b.seth, p->again ? IB_SETH_RTX : 0, op_takes_recv(w->op) ? p->seq : 0,
			    (uint32_t)p->off / t->mtu);
	if (b.seth && b.xrceth)
		b.seth->run = p->run;
	if (b.reth)
		ib_reth_put(b.reth, w->va, w->rkey, (uint32_t)w->len);
	if (b.immdt)
		memcpy(b.immdt->data, &imm, sizeof(imm));
	if (b.ieth)
		be32_put(b.ieth->rkey, w->imm);
	err = tx_payload(t, w, pos, p->off, b.payload, p->len);
	if (!err)
		tx_finish(t, &b, p->len);
	return err;
}

/* XRC: messages directly before the current one that take a receive of the SRQ that it does. */
static uint8_t run_before(struct turn *t, const struct wqe *w)
{
	if (t->transport != IB_TRANSPORT_XRC || !sr_on(t) || !op_takes_recv(w->op) ||
	    !turn_need_sq_rest(t) ||
	    le32_get_bits(t->sqc->run, SKUA_SQC_RUN_SRQN) != w->dest_qpn)
		return 0;
	return (uint8_t)le32_get_bits(t->sqc->run, SKUA_SQC_RUN_NUM);
}

/* Count the present message, for the messages after it. */
static void run_on(struct turn *t, const struct wqe *w)
{
	uint32_t n = run_before(t, w);

	if (t->transport == IB_TRANSPORT_XRC && op_takes_recv(w->op) && turn_need_sq_rest(t))
		t->sqc->run = le32_encode_bits(w->dest_qpn, SKUA_SQC_RUN_SRQN) |
			      le32_encode_bits(n < UINT8_MAX ? n + 1 : n, SKUA_SQC_RUN_NUM);
}

/* Send the next packet of a SEND or WRITE. */
static enum skua_vendor send_data(struct turn *t, const struct wqe *w, struct sge_pos *pos)
{
	uint32_t off = le32_to_cpu(t->sqc->cur_sent);
	uint32_t psn = le32_to_cpu(t->sqc->next_psn);
	uint32_t n = w->len - off < t->mtu ? (uint32_t)(w->len - off) : t->mtu;
	struct piece p = {
		.psn = psn,
		.off = off,
		.len = n,
		.seq = sr_set_up(t->sqc) ? le32_to_cpu(t->sqc->recv_seq) : 0,
		.run = run_before(t, w),
		.ackreq = t->reliable &&
			  (off + n == w->len || (psn & t->ack_mask) == t->ack_mask ||
			   limited(t, w) || req_room(t) == 1),
	};
	enum skua_vendor err = req_put_data(t, w, pos, &p);

	if (err)
		return err;
	req_note_sent(t, 1, n);
	t->budget -= n + SKUA_PKT_OVERHEAD;
	return SKUA_VENDOR_NONE;
}

/* Bytes of a READ's part. */
static uint32_t part_bytes(const struct turn *t)
{
	return ENGINE_READ_PSNS * t->mtu;
}

bool req_read_part_ends(const struct turn *t, uint64_t end, uint64_t len)
{
	return end == len || end % part_bytes(t) == 0;
}

void req_put_read(struct turn *t, const struct wqe *w, const struct piece *p)
{
	uint8_t op = sr_on(t) ? IB_OPCODE(SKUA_RC, READ_REQUEST) : IB_OPCODE(RC, READ_REQUEST);
	struct skua_pkt_build b;

	if (!tx_start(t, &b, op, p->psn, true, false))
		return;
	if (b.seth)
		ib_seth_put(b.seth, p->again ? IB_SETH_RTX : 0, p->seq, 0);
	ib_reth_put(b.reth, w->va + p->off, w->rkey, p->len);
	tx_finish(t, &b, 0);
}

/* Send the request for the next part of a READ. */
static enum skua_vendor send_read(struct turn *t, const struct wqe *w)
{
	uint32_t off = le32_to_cpu(t->sqc->cur_sent);
	uint32_t part = part_bytes(t) - off % part_bytes(t);
	uint32_t n = w->len - off < part ? (uint32_t)(w->len - off) : part;
	const struct piece p = {
		.psn = le32_to_cpu(t->sqc->next_psn),
		.off = off,
		.len = n,
		.seq = sr_set_up(t->sqc) ? msn_add(le32_to_cpu(t->sqc->rr_seq),
						   off / part_bytes(t)) : 0,
	};

	req_put_read(t, w, &p);
	turn_count(t, SKUA_CNT_TX_READ);
	req_note_sent(t, psns_of(n, t->mtu), n);
	t->sqc->rd_outstanding++;
	t->budget -= SKUA_PKT_OVERHEAD;
	return SKUA_VENDOR_NONE;
}

/* Advance to the next message. False: ring and PSNs do not agree at hi. */
static bool next_wqe(struct turn *t, const struct wqe *w)
{
	struct skua_sqc *s = t->sqc;
	uint32_t hi = le32_to_cpu(s->hi);
	uint32_t old = le32_to_cpu(s->cur);
	uint32_t cur = old + w->blocks;

	s->cur = cpu_to_le32(cur);
	s->cur_psn = s->next_psn;
	s->cur_sent = 0;
	if (!op_is_local(w->op)) {
		s->ssn = cpu_to_le32(ssn_after(le32_to_cpu(s->ssn), w->op, req_psns(t, w)));
		if (sr_set_up(s)) {
			run_on(t, w);
			s->recv_seq = cpu_to_le32(recv_seq_after(le32_to_cpu(s->recv_seq), w->op));
			s->rr_seq = cpu_to_le32(rr_seq_after(le32_to_cpu(s->rr_seq), w->op,
							     req_psns(t, w)));
		}
	}
	sqc_set(t, SKUA_SQC_PINNED, false);
	if (old == hi) {
		if (op_is_local(w->op))
			s->local = cpu_to_le16(le16_to_cpu(s->local) + 1);
		s->hi = s->cur;
		s->hi_psn = s->cur_psn;
		return true;
	}
	if (cur == hi) {
		req_restore_pin(t);
		return s->cur_psn == s->hi_psn;
	}
	return hi - old > w->blocks;
}

/*
 * The WQE at cur cannot be executed, or has to wait for a page. Earlier ones complete first, since
 * their data may have arrived: until then the queue sends nothing and tries again.
 */
static enum outcome fail_cur(struct turn *t, const struct wqe *w, enum skua_vendor err)
{
	err = fault_req(t, err);
	if (err != SKUA_VENDOR_MISS && t->sqc->ci == t->sqc->cur)
		req_fail(t, w->blocks, status_of(w->op, err), err);
	return WAIT;
}

/* For messages without acknowledgment: complete when sent. */
static enum outcome complete_sent(struct turn *t, const struct wqe *w)
{
	struct flight f = req_flight_of(t, w);

	return req_complete(t, &f) ? SENT : WAIT;
}

/* As much of the current message as may go. */
static enum outcome send_message(struct turn *t, struct wqe *w)
{
	struct sge_pos pos = { 0 };
	bool done = op_is_local(w->op);
	enum skua_vendor err = SKUA_VENDOR_NONE;

	/* Once: what is behind hi was executed when it was first come to. */
	if (done && t->sqc->cur == t->sqc->hi)
		err = local_run(t, w);
	if (err)
		return fail_cur(t, w, err);
	while (!done) {
		if (no_room(t, w) || must_wait(t, w) || credit_waits(t, w))
			return WAIT;
		if (t->transport == IB_TRANSPORT_UD && !ud_has_turn(t, w))
			return BUDGET;
		if (t->budget <= 0 ||
		    tx_waits(t, t->transport == IB_TRANSPORT_UD ? &w->av : &t->sqc->attr.av))
			return BUDGET;
		if (w->op == SKUA_WQE_READ)
			err = send_read(t, w);
		else if (op_is_answered(w->op))
			err = atomic_send(t, w);
		else if (t->transport == IB_TRANSPORT_UD)
			err = ud_send(t, w, wants_event(w));
		else if (limited(t, w) || !train_send(t, w, &pos, data_op[w->op]))
			err = send_data(t, w, &pos);
		if (err)
			return fail_cur(t, w, err);
		done = le32_to_cpu(t->sqc->cur_sent) == w->len;
	}
	if (next_wqe(t, w))
		return t->reliable ? SENT : complete_sent(t, w);
	req_fail(t, w->blocks, SKUA_CQE_LOC_QP_OP_ERR, SKUA_VENDOR_WQE_CHANGED);
	return WAIT;
}

/*
 * One acknowledgment may complete all that was sent, and with selective repeat it is walked through
 * from ci on when something is lost. The window bounds messages with packets, this the WQEs without.
 */
static bool too_far(const struct turn *t, const struct wqe *w)
{
	return op_is_local(w->op) && le16_to_cpu(t->sqc->local) >= MODEL_LOCALS;
}

static enum outcome send_cur(struct turn *t)
{
	struct wqe *w = &t->dev->engine->wqe;
	enum skua_vendor err = load(t, w);
	enum outcome o;

	if (!err && op_is_answered(w->op) && !le32_get_bits(t->sqc->attr.rights,
							      SKUA_ATTR_MAX_RD_ATOMIC))
		err = SKUA_VENDOR_WQE_OPCODE;
	if (!err && t->transport == IB_TRANSPORT_UD && !op_is_local(w->op))
		err = ud_check(t, w);
	if (err)
		return fail_cur(t, w, err);
	if (!sqc_is(t, SKUA_SQC_PINNED)) {
		if (no_room(t, w) || must_wait(t, w) || credit_waits(t, w) || too_far(t, w) ||
		    fenced(t, w))
			return WAIT;
		err = pin(t, w);
		if (err)
			return fail_cur(t, w, err);
	}
	o = send_message(t, w);
	if (o != SENT)
		pin_keep(t, w);
	return o;
}

/* --- turns --- */

/* In SQD what was begun is finished, and nothing new is. */
static bool may_send(const struct turn *t)
{
	const struct skua_sqc *s = t->sqc;

	if (s->cur == s->pi || sqc_is(t, SKUA_SQC_RNR_WAIT) || fault_req_waits(t))
		return false;
	switch (qp_state(t->qp)) {
	case SKUA_QP_RTS:
		return true;
	case SKUA_QP_SQD:
		return s->cur != s->hi || sqc_is(t, SKUA_SQC_PINNED);
	default:
		return false;
	}
}

bool req_wants(const struct turn *t)
{
	return (may_send(t) && !window_full(t)) || sr_req_wants(t);
}

bool req_has_work(const struct turn *t)
{
	return may_send(t) || t->sqc->cur != t->sqc->hi || t->sqc->local || sr_req_wants(t) ||
	       qp_state(t->qp) == SKUA_QP_SQD;
}

static void check_drained(struct turn *t)
{
	if (qp_state(t->qp) != SKUA_QP_SQD || !sqc_is(t, SKUA_SQC_DRAINING) ||
	    t->sqc->ci != t->sqc->hi || sqc_is(t, SKUA_SQC_PINNED | SKUA_SQC_HI_PINNED))
		return;
	sqc_set(t, SKUA_SQC_DRAINING, false);
	if (le32_to_cpu(t->sqc->attr.state) & SKUA_ATTR_SQD_NOTIFY)
		qp_event(t->dev, t->sqc, SKUA_QP_EV_SQ_DRAINED);
}

/*
 * Blocks that the turn reads of the ring at most: those of the message under way alone, if it
 * does not come to the end of that. 0: as usual.
 */
static uint32_t turn_blocks(const struct turn *t)
{
	const struct skua_sqc *s = t->sqc;
	struct flight f;
	uint64_t left;

	if (!sqc_is(t, SKUA_SQC_PINNED))
		return 0;
	left = (uint64_t)le32_to_cpu(s->cur_len) - le32_to_cpu(s->cur_sent);
	if (t->budget <= 0 || left < (uint32_t)t->budget ||
	    le32_to_cpu(s->cur_sent) > le32_to_cpu(s->cur_len) ||
	    !flight_get(t->dev->engine, t->qp->qpn, le32_to_cpu(s->incarnation),
			le32_to_cpu(s->cur), &f) ||
	    op_is_answered(f.op))
		return 0;
	return f.blocks;
}

static bool run(struct turn *t, uint32_t ack_mask)
{
	enum outcome o = SENT;

	if (!sane(t)) {
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
		return true;
	}
	t->dev->engine->win.blocks = 0;
	t->dev->engine->win.most = turn_blocks(t);
	t->ack_mask = ack_mask;
	if (sr_req_wants(t) && sr_req_run(t))
		return true;
	for (unsigned int n = 0; o == SENT && may_send(t); n++) {
		o = n < t->dev->turn_wqes && t->budget > 0 ? send_cur(t) : BUDGET;
		/* To register very many pages sends nothing, and takes long. */
		if (o == SENT && op_is_local(t->dev->engine->wqe.op) && dev_turn_over(t->dev))
			o = BUDGET;
	}
	if (t->sqc->local && qp_state(t->qp) != SKUA_QP_ERR)
		req_complete_local(t);
	check_drained(t);
	return o == BUDGET;
}

#define ACK_MASK	(ENGINE_ACK_EVERY - 1)

/*
 * Under a rate, packets may be so far apart that the ack timer would not wait for the
 * one that asks: then each does.
 */
static uint32_t paced_ack_mask(const struct turn *t)
{
	uint32_t code = le32_get_bits(t->sqc->attr.retry, SKUA_ATTR_ACK_TIMEOUT);
	uint64_t bits = 8ull * ENGINE_ACK_EVERY * (t->mtu + SKUA_PKT_OVERHEAD);

	/* There is no timer; who goes back without one asks with each packet. */
	if (!code)
		return sr_onload(t->sqc) && t->sqc->next_psn != t->sqc->max_psn ? 0 : ACK_MASK;
	return bits * 1000000 / le32_to_cpu(t->sqc->rate) > (4096ull << code) / 2 ? 0 : ACK_MASK;
}

static bool run_paced(struct turn *t, uint32_t ack_mask)
{
	const uint64_t *bytes = &t->dev->cnt[SKUA_CNT_RDMA_TX_BYTES];
	uint64_t room = pace_room(t->sqc, t->now), before = *bytes;
	bool more;

	/* One that is to come may be the responder's. */
	if (le64_to_cpu(t->sqc->rate_deadline) <= t->now)
		t->sqc->rate_deadline = 0;
	if (t->budget > 0 && room < (uint32_t)t->budget)
		t->budget = (int32_t)room;
	more = run(t, ack_mask & paced_ack_mask(t));
	/* The limit may have ended meanwhile. */
	if (!sqc_is(t, SKUA_SQC_PACED))
		return more;
	pace_charge(t->sqc, t->now, *bytes - before);
	if (!more || (!may_send(t) && !sr_req_wants(t)) || pace_room(t->sqc, t->now))
		return more;
	pace_wait(t->dev, t->qp, t->now);
	return false;
}

/* Apart, so that those without a limit pay for one look only. */
static __attribute__((noinline)) bool run_limited(struct turn *t)
{
	const uint64_t *bytes = &t->dev->cnt[SKUA_CNT_RDMA_TX_BYTES];
	uint64_t before = *bytes;
	bool more, waits;

	if (sqc_is(t, SKUA_SQC_CC_NEW) && may_send(t))
		cc_first_request(t);
	if (cc_on(t))
		cc_turn(t);
	/* A window is measured by what is acknowledged. */
	t->ack_mask = cc_has_window(t) ? 0 : ACK_MASK;
	more = sqc_is(t, SKUA_SQC_PACED) ? run_paced(t, t->ack_mask) : run(t, t->ack_mask);
	waits = sqc_is(t, SKUA_SQC_PACED) && t->sqc->rate_deadline;
	cc_sent(t, *bytes - before);
	if (waits)
		cc_wait(t);
	return more;
}

bool req_run(struct turn *t)
{
	return sqc_is(t, SKUA_SQC_PACED | SKUA_SQC_CC | SKUA_SQC_CC_NEW) ? run_limited(t) :
								     run(t, ACK_MASK);
}
