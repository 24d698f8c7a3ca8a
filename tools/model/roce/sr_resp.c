// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, responder: packets that come before their turn.
 *
 * Payload goes to its place in memory at once, a READ request into its place among the
 * responder resources. Of each PSN that is held the LRC has a code, which says what kind of
 * packet it was; what a completion needs besides lies in the table of struct
 * skua_ext_slot. When epsn comes to a PSN that is held, the packet is passed: all is done
 * that is done of a packet of the expected PSN, but that its payload is there.
 *
 * That the packets of a message belong together can be told only then, as each names its
 * own place: their kinds must follow each other, and of a SEND, offset and number of the
 * receive must be those of the message under way. Otherwise a peer could have a receive
 * reported whose bytes were never written.
 *
 * What cannot be taken is dropped. It comes again, and is taken or refused when it is its turn.
 */
#include <string.h>

#include "sr.h"

/* Slots that are read at once. */
#define SLOTS		16

/* Of early packets in a row, those whose PSN is a multiple of this are told of. */
#define EARLY_ACK_EVERY	32

/* What each code stands for. */
static const uint8_t code_op[] = {
	[SKUA_LRC_SEND_FIRST]	  = IB_OPCODE(SKUA_RC, SEND_FIRST),
	[SKUA_LRC_SEND_MIDDLE]	  = IB_OPCODE(SKUA_RC, SEND_MIDDLE),
	[SKUA_LRC_SEND_LAST]	  = IB_OPCODE(SKUA_RC, SEND_LAST),
	[SKUA_LRC_SEND_ONLY]	  = IB_OPCODE(SKUA_RC, SEND_ONLY),
	[SKUA_LRC_WRITE_FIRST]	  = IB_OPCODE(SKUA_RC, WRITE_FIRST),
	[SKUA_LRC_WRITE_MIDDLE]	  = IB_OPCODE(SKUA_RC, WRITE_MIDDLE),
	[SKUA_LRC_WRITE_LAST]	  = IB_OPCODE(SKUA_RC, WRITE_LAST),
	[SKUA_LRC_WRITE_ONLY]	  = IB_OPCODE(SKUA_RC, WRITE_ONLY),
	[SKUA_LRC_WRITE_LAST_IMM] = IB_OPCODE(SKUA_RC, WRITE_LAST_IMM),
	[SKUA_LRC_WRITE_ONLY_IMM] = IB_OPCODE(SKUA_RC, WRITE_ONLY_IMM),
	[SKUA_LRC_READ]		  = IB_OPCODE(SKUA_RC, READ_REQUEST),
};

/* --- the LRC --- */

static void code_set(struct skua_lrc *lrc, uint32_t psn, uint32_t code)
{
	uint32_t at = psn % SKUA_LRC_PSNS, shift = at % 8 * 4;
	uint32_t word = le32_to_cpu(lrc->code[at / 8]) & ~(0xfu << shift);

	lrc->code[at / 8] = cpu_to_le32(word | code << shift);
}

_Static_assert(SKUA_LRC_SEND_ONLY == SKUA_LRC_SEND_FIRST + 3 &&
	       SKUA_LRC_WRITE_ONLY == SKUA_LRC_WRITE_FIRST + 3 &&
	       SKUA_LRC_WRITE_ONLY_IMM == SKUA_LRC_WRITE_LAST_IMM + 1,
	       "FIRST, MIDDLE, LAST and ONLY of a kind follow each other");

static uint32_t code_of(const struct ib_opcode_info *op)
{
	/* In the order of their codes. */
	uint32_t part = op->flags & IB_F_LAST ? 2 + !!(op->flags & IB_F_FIRST) :
						!(op->flags & IB_F_FIRST);

	if (op->flags & IB_F_READ)
		return SKUA_LRC_READ;
	if (op->flags & IB_F_SEND)
		return SKUA_LRC_SEND_FIRST + part;
	return op->flags & IB_F_RECV ? SKUA_LRC_WRITE_LAST_IMM - 2 + part :
				       SKUA_LRC_WRITE_FIRST + part;
}

/* What is held of it: SKUA_LRC_NONE if nothing, though others of its message are. */
static uint32_t held_code(const struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t code = sr_lrc_code(lrc, psn);

	return code == SKUA_LRC_WRITE_BEGUN ? SKUA_LRC_NONE : code;
}

/* Without the flag nothing is held, whatever the LRC says. */
static bool is_held(const struct turn *t, const struct skua_lrc *lrc, uint32_t psn)
{
	return rqc_is(t, SKUA_RQC_HELD) && held_code(lrc, psn);
}

/* A packet of a WRITE is held; the first one's PSN has the place of all, sr_order_note(). */
static void note_begun(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	uint32_t off = be24_get(pkt->seth->off), first = psn_sub(pkt->psn, off);

	if (pkt->op->flags & IB_F_WRITE && off <= psn_sub(pkt->psn, le32_to_cpu(t->rqc->epsn)) &&
	    !sr_lrc_code(lrc, first))
		code_set(lrc, first, SKUA_LRC_WRITE_BEGUN);
}

static void hold(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	uint32_t next = psn_add(pkt->psn, 1);

	if (!rqc_is(t, SKUA_RQC_HELD)) {
		memset(lrc->code, 0, sizeof(lrc->code));
		lrc->held = 0;
		lrc->held_top = cpu_to_le32(next);
		t->rqc->flags |= cpu_to_le32(SKUA_RQC_HELD);
	}
	code_set(lrc, pkt->psn, code_of(pkt->op));
	note_begun(t, lrc, pkt);
	lrc->held = cpu_to_le32(le32_to_cpu(lrc->held) + 1);
	if (ib_psn_diff(next, le32_to_cpu(lrc->held_top)) > 0)
		lrc->held_top = cpu_to_le32(next);
}

static void let_go(struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t held = le32_to_cpu(lrc->held);

	if (held_code(lrc, psn))
		lrc->held = cpu_to_le32(held ? held - 1 : 0);
	code_set(lrc, psn, SKUA_LRC_NONE);
}

_Static_assert(SKUA_LRC_WRITE_BEGUN == 0xf, "the code that has all bits");

/*
 * Which of 16 PSNs are held: a bit for each of the codes of two words that has a bit, but not all.
 */
static uint32_t held_of(const struct skua_lrc *lrc, uint32_t word)
{
	uint64_t codes = (uint64_t)le32_to_cpu(lrc->code[word + 1]) << 32 |
			 le32_to_cpu(lrc->code[word]);
	uint64_t all = codes & codes >> 1;

	all &= all >> 2;
	codes |= codes >> 1;
	codes |= codes >> 2;
	codes &= ~all & 0x1111111111111111;
	codes |= codes >> 3;
	codes &= 0x0303030303030303;
	codes |= codes >> 6;
	codes &= 0x000f000f000f000f;
	codes |= codes >> 12;
	return (codes & 0xff) | (codes >> 24 & 0xff00);
}

/* A bit for each of @n PSNs from @psn on; @to is zero. */
static void held_bits(const struct skua_lrc *lrc, uint32_t psn, uint32_t n,
		      uint8_t to[SKUA_LRC_PSNS / 8])
{
	const uint32_t words = SKUA_LRC_PSNS / 8;
	uint32_t at = psn % SKUA_LRC_PSNS, shift = at % 16, word = at / 16 * 2;
	uint32_t held = held_of(lrc, word);

	for (uint32_t i = 0; i < n; i += 16) {
		word = (word + 2) % words;
		held |= held_of(lrc, word) << 16;
		to[i / 8] = (uint8_t)(held >> shift);
		to[i / 8 + 1] = (uint8_t)(held >> shift >> 8);
		held >>= 16;
	}
	if (n % 16)
		to[n / 8] &= (uint8_t)((1u << n % 8) - 1);
	if (n % 16 && n % 16 < 8)
		to[n / 8 + 1] = 0;
}

uint32_t sr_resp_bitmap(struct turn *t, uint8_t to[SKUA_LRC_PSNS / 8], bool *only_came)
{
	uint32_t epsn = le32_to_cpu(t->rqc->epsn);
	struct skua_lrc *lrc = sr_lrc(t);
	int32_t bits = 0, came = 0;

	if (!lrc)
		return 0;
	memset(to, 0, SKUA_LRC_PSNS / 8);
	if (rqc_is(t, SKUA_RQC_HELD))
		bits = ib_psn_diff(le32_to_cpu(lrc->held_top), epsn);
	if (bits < 0)
		bits = 0;
	if (rqc_is(t, SKUA_RQC_DROPPED))
		came = ib_psn_diff(le32_to_cpu(t->rqc->dropped), epsn) + 1;
	t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_DROPPED);
	if (bits > (int32_t)sr_lrc_window(lrc))
		bits = (int32_t)sr_lrc_window(lrc);
	held_bits(lrc, epsn, bits > 1 ? (uint32_t)bits : 0, to);
	/* It is not held; a context from memory of the host may say so. */
	to[0] &= (uint8_t)~1u;
	*only_came = came > 1 && came > bits && came <= (int32_t)sr_lrc_window(lrc);
	if (*only_came) {
		bits = came;
		to[(bits - 1) / 8] |= (uint8_t)(1u << (bits - 1) % 8);
	}
	sr_lrc_put(t, lrc, false);
	return bits > 1 ? ((uint32_t)bits + 31) / 32 * 4 : 0;
}

/* --- slots --- */

static uint64_t slot_at(const struct skua_lrc *lrc, uint32_t index)
{
	return le64_to_cpu(lrc->table) + (uint64_t)index * sizeof(struct skua_ext_slot);
}

static bool has_slot(const struct ib_opcode_info *op)
{
	return op->flags & (IB_F_SEND | IB_F_RECV);
}

/* False: it could not be written, and the QP fails. */
static bool slot_put(struct turn *t, const struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	uint32_t what = u32_encode_bits(pkt->payload_len, SKUA_EXT_SLOT_LEN);
	struct skua_ext_slot slot = {
		.off = cpu_to_le32(be24_get(pkt->seth->off)),
		.seq = cpu_to_le32(be24_get(pkt->seth->seq)),
	};

	if (pkt->immdt) {
		memcpy(&slot.imm, pkt->immdt->data, sizeof(slot.imm));
		what |= SKUA_EXT_SLOT_IMM;
	}
	if (pkt->ieth) {
		slot.imm = cpu_to_le32(be32_get(pkt->ieth->rkey));
		what |= SKUA_EXT_SLOT_INV;
	}
	slot.what = cpu_to_le32(what | (pkt->se ? SKUA_EXT_SLOT_SE : 0));
	if (!dma_write(t->dev, TLP_SLOT, slot_at(lrc, pkt->psn % sr_lrc_window(lrc)), &slot,
		       sizeof(slot)))
		return true;
	resp_fail_at(t, le32_to_cpu(t->rqc->epsn), IB_NAK_REMOTE_OP, SKUA_QP_EV_FATAL);
	return false;
}

/**
 * struct slots - a part of the table, as read while PSNs are passed
 * @slot: slots
 * @first: index of the first
 * @valid: they were read
 */
struct slots {
	struct skua_ext_slot slot[SLOTS];
	uint32_t first;
	bool valid;
};

/* NULL: it could not be read, and the QP fails. */
static const struct skua_ext_slot *slot_get(struct turn *t, const struct skua_lrc *lrc,
					    struct slots *s, uint32_t psn)
{
	uint32_t index = psn % sr_lrc_window(lrc);

	if (!s->valid || index / SLOTS * SLOTS != s->first) {
		s->first = index / SLOTS * SLOTS;
		s->valid = !dma_read(t->dev, TLP_SLOT, slot_at(lrc, s->first), s->slot,
				     sizeof(s->slot));
	}
	if (s->valid)
		return &s->slot[index % SLOTS];
	resp_fail_at(t, psn, IB_NAK_REMOTE_OP, SKUA_QP_EV_FATAL);
	return NULL;
}

/* --- when its turn has come --- */

/* Headers of a packet that was held. */
struct held {
	struct skua_pkt pkt;
	struct ib_immdt imm;
	struct ib_ieth inv;
};

/* Is it of the message under way? Then what its last packet said goes to @h. */
static bool slot_take(struct turn *t, const struct skua_ext_slot *slot, struct held *h)
{
	uint32_t seq = le32_to_cpu(t->rqc->recv_seq) & IB_MSN_MASK;
	uint32_t what = le32_to_cpu(slot->what);

	if ((uint64_t)le32_to_cpu(slot->off) * t->mtu != resp_got(t, &h->pkt) ||
	    le32_to_cpu(slot->seq) != seq)
		return false;
	h->pkt.payload_len = u32_get_bits(what, SKUA_EXT_SLOT_LEN);
	if (h->pkt.payload_len > t->mtu)
		return false;
	if (!(h->pkt.op->flags & IB_F_LAST))
		return true;
	h->pkt.se = what & SKUA_EXT_SLOT_SE;
	memcpy(h->imm.data, &slot->imm, sizeof(h->imm.data));
	be32_put(h->inv.rkey, le32_to_cpu(slot->imm));
	h->pkt.immdt = what & SKUA_EXT_SLOT_IMM ? &h->imm : NULL;
	h->pkt.ieth = what & SKUA_EXT_SLOT_INV ? &h->inv : NULL;
	return true;
}

/* Fails if not, as a request of another SRQ does. */
static bool has_recv(struct turn *t, const struct skua_pkt *pkt)
{
	bool xrc = qp_type(t->qp) == SKUA_QP_XRC_TGT;

	/* The PD of the SRQ is that of the peer's keys. */
	if (recv_is_taken(t) && recv_ready(t) == RECV_READY &&
	    (!xrc || recv_use_srq(t, le32_to_cpu(t->rqc->cur_srqn))))
		return true;
	resp_fail_at(t, pkt->psn, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR);
	return false;
}

static void pass_send(struct turn *t, const struct skua_pkt *pkt)
{
	/* An SRQ's was taken when the packet came. */
	if (!recv_is_shared(t->qp) || has_recv(t, pkt))
		resp_send_done(t, pkt);
}

static void pass_write(struct turn *t, struct skua_pkt *pkt)
{
	bool xrc = qp_type(t->qp) == SKUA_QP_XRC_TGT;

	if (pkt->op->flags & IB_F_RECV && !(xrc ? has_recv(t, pkt) : resp_take_recv(t)))
		return;
	/* Where the message goes is not known to packets that do not say it themselves. */
	if (pkt->op->flags & IB_F_FIRST)
		t->rqc->cur_len = 0;
	t->rqc->cur_got = cpu_to_le32(resp_got(t, pkt) + pkt->payload_len);
	if (pkt->op->flags & IB_F_LAST)
		turn_count(t, SKUA_CNT_RX_WRITE);
	resp_write_done(t, pkt);
}

/*
 * What is held of the PSN expected. @h is used for one packet after the other: what the last one
 * may have left there is set anew.
 */
static void pass(struct turn *t, const struct skua_lrc *lrc, struct slots *slots, struct held *h,
		 uint32_t code)
{
	uint32_t psn = le32_to_cpu(t->rqc->epsn);
	const struct skua_ext_slot *slot;

	h->pkt.psn = psn;
	h->pkt.payload_len = t->mtu;
	h->pkt.se = false;
	h->pkt.immdt = NULL;
	h->pkt.ieth = NULL;
	h->pkt.op = code < sizeof(code_op) ? ib_opcode_info(code_op[code]) : NULL;
	if (!h->pkt.op || !resp_sequence_ok(t, &h->pkt))
		goto invalid;
	if (has_slot(h->pkt.op)) {
		slot = slot_get(t, lrc, slots, psn);
		if (!slot)
			return;
		if (!slot_take(t, slot, h))
			goto invalid;
	}
	if (h->pkt.op->flags & IB_F_READ)
		rres_turn(t, psn);
	else if (h->pkt.op->flags & IB_F_SEND)
		pass_send(t, &h->pkt);
	else
		pass_write(t, &h->pkt);
	return;
invalid:
	resp_fail_at(t, psn, IB_NAK_INVALID_REQUEST, SKUA_QP_EV_REQ_ERR);
}

/* No PSN from @from to epsn is held any longer: a READ takes up many. */
static void forget_before(const struct turn *t, struct skua_lrc *lrc, uint32_t from)
{
	uint32_t n = psn_sub(le32_to_cpu(t->rqc->epsn), from);

	for (uint32_t i = 0; i < n && i < SKUA_LRC_PSNS; i++)
		let_go(lrc, psn_add(from, i));
}

void sr_resp_advance(struct turn *t, uint32_t from)
{
	struct skua_lrc *lrc = sr_lrc(t);
	struct slots slots = { .valid = false };
	struct held h = { 0 };
	uint32_t code;

	if (!lrc)
		return;
	forget_before(t, lrc, from);
	/* Each turn of the loop lets go of one PSN at least. */
	while (rqc_is(t, SKUA_RQC_HELD) && !rqc_is(t, SKUA_RQC_FAILED)) {
		from = le32_to_cpu(t->rqc->epsn);
		code = held_code(lrc, from);
		if (!code)
			break;
		let_go(lrc, from);
		pass(t, lrc, &slots, &h, code);
		if (le32_to_cpu(t->rqc->epsn) == from)
			break;
		forget_before(t, lrc, psn_add(from, 1));
	}
	if (!lrc->held)
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_HELD);
	if (!rqc_is(t, SKUA_RQC_NAK_PENDING) && qp_state(t->qp) != SKUA_QP_ERR)
		resp_want_ack(t);
	sr_lrc_put(t, lrc, true);
}

/* --- a packet before its turn --- */

void sr_resp_gap(struct turn *t)
{
	turn_count(t, SKUA_CNT_OUT_OF_SEQUENCE);
	turn_count(t, SKUA_CNT_RX_EARLY_DROP);
	resp_want_ack(t);
}

/* Does the packet's place in its message go with its opcode? */
static bool offset_ok(const struct skua_pkt *pkt)
{
	return pkt->op->flags & IB_F_READ ||
	       !(pkt->op->flags & IB_F_FIRST) == !!be24_get(pkt->seth->off);
}

static bool take_send(struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t ahead = psn_sub(be24_get(pkt->seth->seq), le32_to_cpu(t->rqc->recv_seq));
	uint64_t got = (uint64_t)be24_get(pkt->seth->off) * t->mtu;
	struct rlist *l;

	if (!recv_have(t, pkt, ahead) || recv_fetch(t, ahead, &l))
		return false;
	return got + pkt->payload_len <= l->rwqe.len && got <= 1u << MODEL_LOG_MSG &&
	       !recv_place(t, l, got, pkt->payload, pkt->payload_len);
}

static bool take_write(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	uint32_t ahead = psn_sub(be24_get(pkt->seth->seq), le32_to_cpu(t->rqc->recv_seq));
	struct mr_who who = who_remote(t, SKUA_ACCESS_REMOTE_WRITE);
	uint32_t len = be32_get(pkt->reth->len);
	const struct mr_part part = {
		.key = be32_get(pkt->reth->rkey),
		.va = be64_get(pkt->reth->va),
		.len = len,
		.off = (uint64_t)be24_get(pkt->seth->off) * t->mtu,
		.bytes = pkt->payload_len,
	};
	uint64_t end = part.off + part.bytes;

	if (len > 1u << MODEL_LOG_MSG || (pkt->op->flags & IB_F_LAST ? end != len : end >= len))
		return false;
	/* Which SRQ of XRC its receive is to come from would not be known any more. */
	if (pkt->op->flags & IB_F_RECV && pkt->xrceth && !recv_have(t, pkt, ahead))
		return false;
	who.want = len - part.off;
	return !sr_order_write(t, lrc, &who, &part, pkt) && sr_order_note(t, lrc, pkt);
}

static bool take(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	if (!resp_supported(t, pkt) || !resp_payload_ok(t, pkt) || !offset_ok(pkt) ||
	    (pkt->xrceth && !recv_xrc_early_ok(t, pkt)))
		return false;
	if (pkt->op->flags & IB_F_READ)
		return rres_early(t, pkt);
	if (!(pkt->op->flags & IB_F_SEND ? take_send(t, pkt) : take_write(t, lrc, pkt)))
		return false;
	return !has_slot(pkt->op) || slot_put(t, lrc, pkt);
}

/*
 * It came, but could not be taken before its turn (no receive, a page that is missing): the peer is
 * to know that packets before it are missing, and that it is. Otherwise it would learn nothing
 * until it asks with its last packet, which meets with the same.
 */
static void note_dropped(struct turn *t, uint32_t psn)
{
	if (rqc_is(t, SKUA_RQC_DROPPED) && ib_psn_diff(psn, le32_to_cpu(t->rqc->dropped)) <= 0)
		return;
	t->rqc->dropped = cpu_to_le32(psn);
	t->rqc->flags |= cpu_to_le32(SKUA_RQC_DROPPED);
}

/*
 * Is the peer to know at once that the packet was taken? While something is missing an
 * acknowledgment for each of those behind it would double the number of packets. The peer asks for
 * one with the last packet of a message, and with the last that it may send.
 */
static bool tell_of(const struct turn *t, const struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	return pkt->ackreq || pkt->op->flags & IB_F_READ || pkt->psn % EARLY_ACK_EVERY == 0 ||
	       !rqc_is(t, SKUA_RQC_HELD) || pkt->psn != le32_to_cpu(lrc->held_top);
}

static void early(struct turn *t, const struct skua_pkt *pkt, uint32_t d)
{
	struct skua_lrc *lrc = sr_lrc(t);
	bool taken = false, tell;

	if (!lrc)
		return;
	tell = tell_of(t, lrc, pkt);
	turn_count(t, SKUA_CNT_OUT_OF_SEQUENCE);
	if (d < sr_lrc_window(lrc) && is_held(t, lrc, pkt->psn)) {
		turn_count(t, SKUA_CNT_DUPLICATE_REQUEST);
	} else {
		taken = d < sr_lrc_window(lrc) && take(t, lrc, pkt);
		turn_count(t, taken ? SKUA_CNT_RX_EARLY : SKUA_CNT_RX_EARLY_DROP);
	}
	if (taken)
		hold(t, lrc, pkt);
	else if (d < sr_lrc_window(lrc) && !is_held(t, lrc, pkt->psn))
		note_dropped(t, pkt->psn);
	if (!rqc_is(t, SKUA_RQC_FAILED) && (tell || !taken))
		resp_want_ack(t);
	sr_lrc_put(t, lrc, taken);
}

/* --- all that have a SETH --- */

/* The peer knows of selective repeat, and asks for nothing that it does not need. */
static void begin(struct turn *t)
{
	if (rqc_is(t, SKUA_RQC_EXT))
		return;
	t->rqc->flags |= cpu_to_le32(SKUA_RQC_EXT);
	if (rqc_is(t, SKUA_RQC_NAK_PENDING) &&
	    le32_to_cpu(t->rqc->nak) == (IB_AETH_NAK | IB_NAK_PSN_SEQUENCE)) {
		t->rqc->flags &= ~cpu_to_le32(SKUA_RQC_NAK_PENDING);
		resp_want_ack(t);
	}
}

bool sr_resp_place_ok(const struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t seq = be24_get(pkt->seth->seq);

	if (pkt->op->flags & IB_F_READ)
		return seq == (le32_to_cpu(t->rqc->rr_tail) & IB_MSN_MASK);
	if ((uint64_t)be24_get(pkt->seth->off) * t->mtu != resp_got(t, pkt))
		return false;
	return !has_slot(pkt->op) || seq == (le32_to_cpu(t->rqc->recv_seq) & IB_MSN_MASK);
}

bool sr_resp_is_stray(const struct turn *t, const struct skua_pkt *pkt)
{
	return rqc_is(t, SKUA_RQC_EXT) && pkt->op->flags & IB_F_WRITE && !pkt->reth &&
	       le32_to_cpu(t->rqc->cur_op) == IB_F_WRITE && !t->rqc->cur_len;
}

void sr_resp_rx(struct turn *t, const struct skua_pkt *pkt, int32_t d)
{
	if (sr_resp_is_near(t, d))
		begin(t);
	if (d < 0)
		resp_duplicate(t, pkt);
	else if (d > 0)
		early(t, pkt, (uint32_t)d);
	else
		resp_expected(t, pkt);
}
