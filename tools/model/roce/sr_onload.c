// SPDX-License-Identifier: GPL-2.0
/*
 * Requester of selective repeat whose loss state the driver keeps (SKUA_ATTR_EXT_ONLOAD).
 *
 * The QP knows how far all has arrived and how far it has sent, no more: no PSN has a bit
 * here. When an acknowledgment or a response shows that something is missing, it begins to
 * report what arrives to the driver, and from then on does what the driver says: sends
 * again, and completes responses that came before their turn. When nothing is missing any
 * more it ends that by itself. What it cannot report it does not remember: then, and when
 * its ack timer expires, it goes back and sends everything again that is not acknowledged.
 *
 * Of an acknowledgment's bitmap only what is new is reported. Whether bits behind the
 * furthest one are new is told by how many are missing there.
 */
#include <string.h>

#include "cc.h"
#include "sr.h"

/* PSNs that arrived are reported when they are so many, and after so many ns. */
#define REPORT_PSNS	16
#define REPORT_NS	10000
/* A QP without an ack timer goes back after so many ns without a word from the driver. */
#define GUARD_NS	100000000
/* rec_holes when it is not known how many there are. */
#define HOLES_UNKNOWN	UINT32_MAX

/* PSNs of a bitmap relative to una_psn: those of the window and what una_psn is behind by. */
#define MAP_WORDS	(SKUA_LRC_PSNS / 64 + 1)

static uint32_t cum(const struct turn *t)
{
	return le32_to_cpu(t->sqc->rec_cum);
}

/* Does it send again all that was sent? It then takes responses only in their order. */
static bool goes_back(const struct turn *t)
{
	return t->sqc->next_psn != t->sqc->max_psn;
}

/* --- reports --- */

/* False: it could not be written. */
static bool report(struct turn *t, enum skua_recovery_kind kind, uint32_t word, uint64_t bits)
{
	int32_t ahead = ib_psn_diff(cum(t), una(t));
	const struct skua_eqe_recovery e = {
		.qpn = cpu_to_le32(t->qp->qpn |
				   u32_encode_bits(le32_to_cpu(t->sqc->rec_ci) & 0xff,
						   SKUA_RECOVERY_DONE)),
		.serial = t->sqc->rec_serial,
		.una = t->sqc->una_psn,
		.what = le32_encode_bits(kind, SKUA_RECOVERY_KIND) |
			le32_encode_bits(word, SKUA_RECOVERY_WORD) |
			le32_encode_bits(ahead > 0 ? (uint32_t)ahead : 0, SKUA_RECOVERY_CUM) |
			le32_encode_bits(psn_sub(max_psn(t), una(t)), SKUA_RECOVERY_MAX),
		.bits = cpu_to_le64(bits),
	};

	if (recovery_event(t->dev, &e))
		return false;
	turn_count(t, SKUA_CNT_RECOVERY_EVENT);
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_REC_NEWS);
	return true;
}

/* PSNs of a kind, relative to una_psn. */
static bool report_map(struct turn *t, enum skua_recovery_kind kind,
		       const uint64_t map[MAP_WORDS])
{
	for (uint32_t k = 0; k < MAP_WORDS; k++) {
		if (map[k] && !report(t, kind, k, map[k]))
			return false;
	}
	return true;
}

/* Note the PSNs from @psn up to @end, as far as they are outstanding. */
static void map_run(const struct turn *t, uint64_t map[MAP_WORDS], uint32_t psn, uint32_t end)
{
	if (ib_psn_diff(psn, una(t)) < 0)
		psn = una(t);
	for (; ib_psn_diff(end, psn) > 0; psn = psn_add(psn, 1)) {
		uint32_t n = psn_sub(psn, una(t));

		if (n >= 64 * MAP_WORDS)
			break;
		map[n / 64] |= 1ull << n % 64;
	}
}

static bool report_run(struct turn *t, enum skua_recovery_kind kind, uint32_t psn, uint32_t end)
{
	uint64_t map[MAP_WORDS] = { 0 };

	map_run(t, map, psn, end);
	return report_map(t, kind, map);
}

/* There is something to report before long. */
static void soon(struct turn *t)
{
	uint64_t at = t->now + REPORT_NS, set = sr_deadline(t);

	t->sqc->valid |= cpu_to_le32(SKUA_SQC_REC_NEWS);
	if (!set || at < set)
		sr_set_deadline(t, at);
}

/* What was not reported yet of what arrived. */
static bool flush(struct turn *t)
{
	uint32_t from = le32_to_cpu(t->sqc->rec_told);

	t->sqc->rec_told = t->sqc->rec_end;
	if (!report_run(t, SKUA_RECOVERY_ARRIVED, from, le32_to_cpu(t->sqc->rec_end)))
		return false;
	if (le32_to_cpu(t->sqc->valid) & SKUA_SQC_REC_NEWS)
		return report(t, SKUA_RECOVERY_ARRIVED, 0, 0);
	return true;
}

/* The PSNs from @first up to @end arrived. */
static bool arrived(struct turn *t, uint32_t first, uint32_t end)
{
	struct skua_sqc *s = t->sqc;

	if (s->rec_first == s->rec_end || le32_to_cpu(s->rec_end) != first) {
		if (s->rec_told != s->rec_end && !flush(t))
			return false;
		s->rec_first = cpu_to_le32(first);
		s->rec_told = cpu_to_le32(first);
	}
	s->rec_end = cpu_to_le32(end);
	raise(&s->rec_top, end);
	soon(t);
	return psn_sub(end, le32_to_cpu(s->rec_told)) < REPORT_PSNS || flush(t);
}

/* --- times of loss --- */

static bool has_ack_timer(const struct turn *t)
{
	return le32_get_bits(t->sqc->attr.retry, SKUA_ATTR_ACK_TIMEOUT);
}

/* From now on commands of this time have no effect. */
static void leave(struct turn *t)
{
	if (!sr_in_loss(t))
		return;
	report(t, SKUA_RECOVERY_CLOSE, 0, 0);
	/* With rec_cum goes what request a kept NAK was of. */
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_LOSS | SKUA_SQC_REC_NEWS | SKUA_SQC_PEER_NAK);
	t->sqc->rec_ci = t->sqc->rec_pi;
	t->sqc->rec_next = 0;
	sr_progress(t);
}

void sr_onload_end(struct turn *t)
{
	leave(t);
}

static bool enter(struct turn *t, enum skua_recovery_kind kind)
{
	uint64_t wait = sr_wait_time(t);
	struct skua_sqc *s = t->sqc;

	/* Zero is none. */
	if (!++t->dev->engine->recoveries)
		t->dev->engine->recoveries++;
	s->rec_serial = cpu_to_le32(t->dev->engine->recoveries);
	s->rec_cum = s->una_psn;
	s->rec_top = cpu_to_le32(psn_add(una(t), 1));
	s->rec_sack = s->una_psn;
	s->rec_holes = 0;
	s->rec_first = s->una_psn;
	s->rec_told = s->una_psn;
	s->rec_end = s->una_psn;
	s->rec_ci = s->rec_pi;
	s->rec_next = 0;
	/* What is sent again does not measure a round trip, but the first time. */
	if (s->srtt)
		s->valid &= ~cpu_to_le32(SKUA_SQC_RTT);
	if (cc_on(t))
		cc_note_again(t);
	if (!report(t, kind, u32_get_bits(s->sr_window, SKUA_SQC_WINDOW),
		    (wait < UINT32_MAX ? wait : UINT32_MAX) |
		    (uint64_t)le32_to_cpu(s->srtt) << 32))
		return false;
	s->valid |= cpu_to_le32(SKUA_SQC_LOSS);
	s->valid &= ~cpu_to_le32(SKUA_SQC_SR_TIMER);
	if (!has_ack_timer(t))
		sr_set_deadline(t, t->now + GUARD_NS);
	return true;
}

/* Something is missing. False: there is nobody to tell, or no need to. */
static bool in_loss(struct turn *t)
{
	if (sr_in_loss(t))
		return true;
	if (goes_back(t))
		return false;
	if (enter(t, SKUA_RECOVERY_OPEN))
		return true;
	comp_lost(t);
	return false;
}

/* Something could not be reported. */
static void give_up(struct turn *t)
{
	leave(t);
	if (le32_to_cpu(t->sqc->valid) & SKUA_SQC_IN_RECOVERY)
		sr_onload_back(t);
	else
		comp_lost(t);
}

void sr_onload_back(struct turn *t)
{
	leave(t);
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_RTT);
	turn_count(t, SKUA_CNT_RECOVERY_FALLBACK);
	req_go_back(t);
}

/* It is over as soon as all arrived of which something was reported. */
static void look(struct turn *t)
{
	if (!sr_in_loss(t) || qp_state(t->qp) == SKUA_QP_ERR)
		return;
	if (comp_nak_kept(t, cum(t)))
		return;
	if (ib_psn_diff(una(t), le32_to_cpu(t->sqc->rec_top)) >= 0)
		leave(t);
	else if (sr_req_wants(t))
		sched_kick(t->dev, t->qp->qpn);
}

void sr_onload_timer(struct turn *t)
{
	bool guard = !has_ack_timer(t);

	if (sr_in_loss(t)) {
		bool news = le32_to_cpu(t->sqc->valid) & SKUA_SQC_REC_NEWS;

		if (news && !flush(t))
			give_up(t);
		else if (!news && guard)
			sr_onload_back(t);
		else if (guard)
			sr_set_deadline(t, t->now + GUARD_NS);
		return;
	}
	/* Nothing came for long; or nothing was sent, as the peer has no receive. */
	if (!req_rnr_deadline(t) && !goes_back(t) && enter(t, SKUA_RECOVERY_PROBE))
		return;
	if (!guard || req_rnr_deadline(t) || fault_req_waits(t))
		sr_progress(t);
	else
		sr_onload_back(t);
}

/* --- what the peer says --- */

/*
 * The peer has executed requests up to @to. Those without a response that una_psn has not
 * come past, as a READ before them is not complete, have arrived.
 */
static bool take_cum(struct turn *t, uint32_t to)
{
	uint32_t psn = ib_psn_diff(cum(t), una(t)) > 0 ? cum(t) : una(t);
	struct sr_walk w = sr_walk_start(t);

	if (ib_psn_diff(to, cum(t)) <= 0)
		return true;
	t->sqc->rec_cum = cpu_to_le32(to);
	raise(&t->sqc->rec_top, to);
	soon(t);
	while (ib_psn_diff(to, psn) > 0 && sr_walk_to(t, &w, psn)) {
		uint32_t end = psn_add(w.at.psn, w.f.psns);

		if (ib_psn_diff(end, to) > 0)
			end = to;
		if (!op_is_answered(w.f.op) && !arrived(t, psn, end))
			return false;
		psn = end;
	}
	return true;
}

static bool bit(const struct skua_pkt *pkt, uint32_t i)
{
	return i < 8 * pkt->payload_len && pkt->payload[i / 8] >> i % 8 & 1;
}

/* Bits that are not set, from ePSN up to but not with bit @end. */
static uint32_t holes(const struct skua_pkt *pkt, uint32_t end)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < end; i++)
		n += !bit(pkt, i);
	return n;
}

/* The bits of a bitmap from @i up to @end: PSNs that arrived, and READ requests. */
static bool take_bits(struct turn *t, uint32_t epsn, const struct skua_pkt *pkt, uint32_t i,
		      uint32_t end, bool all)
{
	uint64_t came[MAP_WORDS] = { 0 }, held[MAP_WORDS] = { 0 };
	struct sr_walk w = sr_walk_start(t);
	bool any = false;

	for (; i < end; i++) {
		uint32_t psn = psn_add(epsn, i);

		if (!bit(pkt, i) || ib_psn_diff(psn, una(t)) < 0)
			continue;
		if (ib_psn_diff(psn, max_psn(t)) >= 0 || !sr_walk_to(t, &w, psn))
			break;
		if (w.f.op == SKUA_WQE_READ) {
			map_run(t, held, psn, psn_add(w.at.psn, sr_part_end(&w, psn)));
			raise(&t->sqc->rec_top, psn_add(psn, 1));
			any = true;
		} else if (!op_is_answered(w.f.op)) {
			raise(&t->sqc->rec_top, psn_add(psn, 1));
			if (all)
				map_run(t, came, psn, psn_add(psn, 1));
			else if (!arrived(t, psn, psn_add(psn, 1)))
				return false;
		}
	}
	return report_map(t, SKUA_RECOVERY_ARRIVED, came) &&
	       (!any || report_map(t, SKUA_RECOVERY_HELD, held));
}

static bool take_bitmap(struct turn *t, uint32_t epsn, const struct skua_pkt *pkt)
{
	uint32_t known = le32_to_cpu(t->sqc->rec_holes), top = sr_bitmap_end(pkt), old = 0, now;
	bool moved = epsn != cum(t);

	/* An older one says nothing new. */
	if (ib_psn_diff(epsn, cum(t)) < 0)
		return true;
	if (ib_psn_diff(le32_to_cpu(t->sqc->rec_sack), epsn) > 0)
		old = psn_sub(le32_to_cpu(t->sqc->rec_sack), epsn);
	/* In memory of the host it may have become anything. */
	if (old > SKUA_LRC_PSNS)
		old = SKUA_LRC_PSNS;
	now = holes(pkt, old);
	if (!moved && (top < old || now > known) && known != HOLES_UNKNOWN)
		return true;
	if (!take_cum(t, epsn))
		return false;
	t->sqc->rec_holes = cpu_to_le32(holes(pkt, top));
	t->sqc->rec_sack = cpu_to_le32(psn_add(epsn, top));
	/* The hole that the peer's ePSN was at is filled, and no other but for what is new. */
	if (old && now + moved < known)
		return take_bits(t, epsn, pkt, 1, top, true);
	return take_bits(t, epsn, pkt, old ? old : 1, top, false);
}

/*
 * @psn came and was dropped: it is missing, as all before it are that did not arrive. Once for
 * each, and not for those before one that arrived: the driver takes these for missing anyway.
 */
static bool take_dropped(struct turn *t, uint32_t psn)
{
	uint32_t behind = psn_add(psn, 1);

	if (ib_psn_diff(behind, le32_to_cpu(t->sqc->rec_top)) <= 0 ||
	    ib_psn_diff(behind, max_psn(t)) > 0)
		return true;
	raise(&t->sqc->rec_top, behind);
	return report_run(t, SKUA_RECOVERY_DROPPED, psn, behind);
}

/* The bit of a packet that came and was dropped is not one of those that arrived. */
static bool take_arrived(struct turn *t, uint32_t epsn, const struct skua_pkt *pkt)
{
	uint32_t end = sr_bitmap_end(pkt);
	uint8_t map[SKUA_LRC_PSNS / 8];
	struct skua_pkt arrived = *pkt;

	if (!pkt->se || !end || pkt->payload_len > sizeof(map))
		return take_bitmap(t, epsn, pkt);
	memcpy(map, pkt->payload, pkt->payload_len);
	map[(end - 1) / 8] &= (uint8_t)~(1u << (end - 1) % 8);
	arrived.payload = map;
	return take_bitmap(t, epsn, &arrived) && take_dropped(t, psn_add(epsn, end - 1));
}

static void take_ack(struct turn *t, const struct skua_pkt *pkt)
{
	uint8_t type = pkt->aeth->syndrome & IB_AETH_TYPE_MASK;
	uint8_t value = pkt->aeth->syndrome & IB_AETH_VALUE_MASK;
	uint32_t epsn = type == IB_AETH_ACK ? psn_add(pkt->psn, 1) : pkt->psn;

	if (ib_psn_diff(epsn, una(t)) < 0)
		return;
	comp_credits(t, pkt->aeth);
	if (pkt->payload_len)
		turn_count(t, SKUA_CNT_RX_SACK);
	if (!comp_upto(t, epsn))
		return;
	if ((pkt->payload_len || epsn != una(t)) && in_loss(t)) {
		if (pkt->payload_len ? !take_arrived(t, epsn, pkt) : !take_cum(t, epsn))
			give_up(t);
	} else if (sr_in_loss(t)) {
		raise(&t->sqc->rec_cum, epsn);
		soon(t);
	}
	/* Of a READ that was executed before it is not kept, as in sr_req.c. */
	if (type == IB_AETH_NAK && epsn != una(t) && sr_in_loss(t) && epsn == cum(t) &&
	    qp_state(t->qp) != SKUA_QP_ERR)
		comp_nak_ahead(t, value);
	if (type == IB_AETH_ACK || epsn != una(t) || qp_state(t->qp) == SKUA_QP_ERR)
		return;
	if (type == IB_AETH_RNR_NAK)
		comp_rnr_nak(t, value, be24_get(pkt->aeth->msn));
	else if (type == IB_AETH_NAK)
		comp_nak(t, value);
	else
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
}

static void take_response(struct turn *t, const struct skua_pkt *pkt)
{
	struct sr_walk w = sr_walk_start(t);
	uint32_t start, end;

	if (ib_psn_diff(pkt->psn, una(t)) < 0)
		return;
	if (!sr_walk_to(t, &w, pkt->psn) || !op_is_answered(w.f.op)) {
		turn_count(t, SKUA_CNT_RX_BAD_RESP);
		return;
	}
	/* It says that all requests before its own were executed, and that one. */
	start = w.f.op == SKUA_WQE_READ ? sr_part_start(&w.at, pkt->psn) : w.at.psn;
	end = psn_add(w.at.psn, w.f.op == SKUA_WQE_READ ? sr_part_end(&w, pkt->psn) : 1);
	if (ib_psn_diff(start, una(t)) > 0 && !comp_upto(t, start))
		return;
	if (pkt->psn == una(t)) {
		comp_expected(t, pkt);
		if (!sr_in_loss(t) || qp_state(t->qp) == SKUA_QP_ERR)
			return;
	} else if (!in_loss(t)) {
		return;
	}
	if (ib_psn_diff(end, cum(t)) > 0)
		t->sqc->rec_holes = cpu_to_le32(HOLES_UNKNOWN);
	if (!take_cum(t, end) ||
	    (ib_psn_diff(pkt->psn, una(t)) > 0 && comp_early(t, pkt, &w.f, w.at.psn) &&
	     !arrived(t, pkt->psn, psn_add(pkt->psn, 1)))) {
		give_up(t);
		return;
	}
	soon(t);
}

void sr_onload_rx(struct turn *t, const struct skua_pkt *pkt)
{
	if (pkt->op->flags & IB_F_ANSWERED)
		take_response(t, pkt);
	else
		take_ack(t, pkt);
	look(t);
}

/* --- commands --- */

/* Of a message at ci, or a part of it, all is there up to @end. False: the QP is in error. */
static bool advance_one(struct turn *t, uint32_t end)
{
	uint32_t start = le32_to_cpu(t->sqc->ci_psn), psn = una(t), stop;
	struct flight f;

	if (!sr_first(t, &f))
		return false;
	stop = psn_add(start, f.psns);
	if (ib_psn_diff(stop, end) > 0)
		stop = end;
	for (; op_is_answered(f.op) && psn != stop; psn = psn_add(psn, 1)) {
		uint32_t n = psn_sub(psn, start) + 1;

		if (n % ENGINE_READ_PSNS == 0 || n == f.psns)
			comp_answered(t);
	}
	t->sqc->una_psn = cpu_to_le32(stop);
	if (psn_sub(stop, start) != f.psns)
		return true;
	return sr_first_done(t, &f);
}

static enum sr_hole advance(struct turn *t, uint32_t end)
{
	/* Behind it came what the driver had not heard of when it said so. */
	if (ib_psn_diff(end, le32_to_cpu(t->sqc->rec_first)) >= 0 &&
	    ib_psn_diff(le32_to_cpu(t->sqc->rec_end), end) > 0)
		end = le32_to_cpu(t->sqc->rec_end);
	if (ib_psn_diff(end, cum(t)) > 0)
		end = cum(t);
	if (ib_psn_diff(end, una(t)) <= 0)
		return SR_HOLE_SENT;
	while (una(t) != end) {
		if (!advance_one(t, end))
			return SR_HOLE_WAITS;
	}
	req_progress(t);
	return SR_HOLE_SENT;
}

/* PSNs of the part of a READ that are to be asked for, from @*psn on; 0: none. */
static uint32_t read_run(const struct turn *t, const struct sr_walk *w, uint32_t psn,
			 uint32_t end)
{
	uint32_t start = sr_part_start(&w->at, psn), stop = psn_add(w->at.psn, sr_part_end(w, psn));

	/* The peer has not executed the request: it needs the whole, and once. */
	if (ib_psn_diff(cum(t), start) <= 0)
		return psn == start ? psn_sub(stop, psn) : 0;
	return psn_sub(ib_psn_diff(stop, end) < 0 ? stop : end, psn);
}

/* Send at @*psn what the range up to @end demands, and set it behind. */
static enum sr_hole send_one(struct turn *t, struct sr_walk *w, uint32_t *psn, uint32_t end)
{
	enum sr_hole h = sr_may_send_again(t, w, *psn);
	uint32_t n = 1, behind;

	if (h != SR_HOLE_SENT)
		return h;
	if (w->f.op == SKUA_WQE_READ)
		n = read_run(t, w, *psn, end);
	if (!n) {
		*psn = psn_add(w->at.psn, sr_part_end(w, *psn));
		return SR_HOLE_SENT;
	}
	h = sr_send_again(t, w, *psn, n);
	if (h != SR_HOLE_SENT)
		return h;
	*psn = psn_add(*psn, n);
	behind = *psn;
	if (ib_psn_diff(behind, end) > 0 && !report_run(t, SKUA_RECOVERY_ASKED, end, behind)) {
		give_up(t);
		return SR_HOLE_WAITS;
	}
	return SR_HOLE_SENT;
}

static enum sr_hole send_range(struct turn *t, uint32_t first, uint32_t end)
{
	uint32_t next = le32_to_cpu(t->sqc->rec_next);
	uint32_t psn = next & SKUA_SQC_REC_BEGUN ? next & IB_PSN_MASK : first;
	struct sr_walk w = sr_walk_start(t);
	enum sr_hole h = SR_HOLE_SENT;

	/* In memory of the host it may have become anything. */
	if (ib_psn_diff(psn, first) < 0 || ib_psn_diff(psn, end) > 0)
		psn = first;
	if (ib_psn_diff(psn, una(t)) < 0)
		psn = una(t);
	while (h == SR_HOLE_SENT && ib_psn_diff(end, psn) > 0 && sr_walk_to(t, &w, psn)) {
		if (!op_is_answered(w.f.op) && ib_psn_diff(psn, cum(t)) < 0)
			psn = psn_add(psn, 1);
		else
			h = send_one(t, &w, &psn, end);
	}
	t->sqc->rec_next = cpu_to_le32(psn | SKUA_SQC_REC_BEGUN);
	return h;
}

static enum sr_hole execute(struct turn *t, const struct skua_recovery_cmd *c)
{
	uint32_t first = le32_to_cpu(c->first), end = le32_to_cpu(c->end);
	uint32_t op = le32_to_cpu(c->op);
	bool range = op == SKUA_RECOVERY_SEND || op == SKUA_RECOVERY_ADVANCE;

	if (c->serial != t->sqc->rec_serial || first > IB_PSN_MASK || end > IB_PSN_MASK ||
	    (range && ib_psn_diff(end, max_psn(t)) > 0) ||
	    (op == SKUA_RECOVERY_SEND && psn_sub(end, first) - 1 >= SKUA_LRC_PSNS))
		op = 0;
	switch (op) {
	case SKUA_RECOVERY_SEND:
		return send_range(t, first, end);
	case SKUA_RECOVERY_ADVANCE:
		return advance(t, end);
	case SKUA_RECOVERY_GO_BACK:
		sr_onload_back(t);
		return SR_HOLE_SENT;
	case SKUA_RECOVERY_FAIL:
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
		return SR_HOLE_WAITS;
	default:
		turn_count(t, SKUA_CNT_RECOVERY_STALE);
		return SR_HOLE_SENT;
	}
}

bool sr_onload_run(struct turn *t)
{
	struct skua_sqc *s = t->sqc;
	enum sr_hole h = SR_HOLE_SENT;

	while (sr_in_loss(t) && s->rec_ci != s->rec_pi) {
		uint32_t ci = le32_to_cpu(s->rec_ci);
		struct skua_recovery_cmd c;

		if (dma_read(t->dev, TLP_RECORD, le64_to_cpu(s->rec_ring) +
			     ci % SKUA_RECOVERY_RING * sizeof(c), &c, sizeof(c))) {
			qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
			return false;
		}
		h = execute(t, &c);
		if (!sr_in_loss(t))
			break;
		if (h != SR_HOLE_SENT)
			return h == SR_HOLE_BUDGET;
		turn_count(t, SKUA_CNT_RECOVERY_CMD);
		s->rec_ci = cpu_to_le32(ci + 1);
		s->rec_next = 0;
		/* So that the driver knows when it was sent. */
		soon(t);
	}
	look(t);
	return false;
}

void recovery_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi)
{
	struct qp qp;

	if (!qp_get_db(dev, hi, &qp))
		return;
	if (!sr_onload(qp.sqc)) {
		dev->cnt[SKUA_CNT_BAD_DB_QP]++;
	} else if (page != recovery_uar(dev)) {
		dev->cnt[SKUA_CNT_BAD_DB_UAR]++;
	} else if (lo - le32_to_cpu(qp.sqc->rec_ci) > SKUA_RECOVERY_RING) {
		dev->cnt[SKUA_CNT_BAD_DB_INDEX]++;
	} else {
		qp.sqc->rec_pi = cpu_to_le32(lo);
		if (!(le32_to_cpu(qp.sqc->valid) & SKUA_SQC_LOSS)) {
			qp_count(dev, qp.sqc, SKUA_CNT_RECOVERY_STALE,
				 lo - le32_to_cpu(qp.sqc->rec_ci));
			qp.sqc->rec_ci = qp.sqc->rec_pi;
		} else {
			sched_kick(dev, hi);
		}
		ctx_dirty(dev, qp.sqc);
	}
	qp_put(dev, &qp);
}
