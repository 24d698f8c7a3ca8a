/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Selective repeat: what its files offer each other and the engine. The protocol is in
 * Documentation/wire/selective-repeat.rst.
 *
 *   sr.c        the loss recovery context; who speaks the extension
 *   sr_req.c    requester: what arrived, what is lost, sending it again
 *   sr_early.c  requester: responses in order behind a loss
 *   sr_read.c   requester: responses to READs, and which of them are still to come
 *   sr_wait.c   requester: round trips, and how long to wait for a hole
 *   sr_onload.c requester whose loss state the driver keeps: reports and commands
 *   sr_resp.c   responder: taking packets before their turn
 *   sr_recv.c   responder: receives of SRQs for these
 *   sr_order.c  responder: WRITEs to the same bytes
 *
 * While nothing is missing all of a QP's state is in the hot words of SQC and RQC, and packets
 * take the same way as without the extension; the loss recovery context (LRC) is touched only
 * while SKUA_SQC_LOSS or SKUA_RQC_HELD says that it holds something, and the rest of the SQC
 * only then and for the packets whose round trip is measured.
 */
#ifndef SKUA_ROCE_SR_H
#define SKUA_ROCE_SR_H

#include "engine.h"

/* --- PSNs of the requester --- */
static inline uint32_t una(const struct turn *t)
{
	return le32_to_cpu(t->sqc->una_psn);
}

static inline uint32_t max_psn(const struct turn *t)
{
	return le32_to_cpu(t->sqc->max_psn);
}

static inline void raise(__le32 *psn, uint32_t to)
{
	if (ib_psn_diff(to, le32_to_cpu(*psn)) > 0)
		*psn = cpu_to_le32(to);
}

/* --- sr.c --- */
/* The QP's LRC, pinned; NULL: it cannot be had, and the QP is in error. To be put. */
struct skua_lrc *sr_lrc(struct turn *t);
void sr_lrc_put(struct turn *t, struct skua_lrc *lrc, bool dirty);

static inline uint32_t sr_lrc_window(const struct skua_lrc *lrc)
{
	uint32_t log = le32_to_cpu(lrc->log_window);

	return 1u << (log < SKUA_EXT_LOG_WINDOW_MAX ? log : SKUA_EXT_LOG_WINDOW_MAX);
}

/* With SKUA_RQC_HELD: SKUA_LRC_*, what is held of @psn. */
static inline uint32_t sr_lrc_code(const struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t at = psn % SKUA_LRC_PSNS;

	return le32_to_cpu(lrc->code[at / 8]) >> at % 8 * 4 & 0xf;
}

/* Was it set up for the extension? Only then its state is looked at. */
static inline bool sr_set_up(const struct skua_sqc *sqc)
{
	return le32_to_cpu(sqc->valid) & SKUA_SQC_EXT;
}

/* Log2 of the QP's own window, which each packet tells the peer; 0: it has none. */
static inline uint8_t sr_log_window(const struct turn *t)
{
	return (uint8_t)u32_get_bits(t->sqc->sr_window, SKUA_SQC_WINDOW_OWN);
}

/* Does the QP send packets of the extension? */
static inline bool sr_on(const struct turn *t)
{
	return sr_set_up(t->sqc) && u32_get_bits(t->sqc->sr_window, SKUA_SQC_WINDOW);
}

/* With sr_on(): packets that may be outstanding. */
static inline uint32_t sr_window(const struct turn *t)
{
	return 1u << u32_get_bits(t->sqc->sr_window, SKUA_SQC_WINDOW);
}

static inline void sr_set_deadline(struct turn *t, uint64_t at)
{
	t->sqc->sr_deadline = cpu_to_le32((uint32_t)((at + 1023) >> 10));
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_SR_TIMER);
}

/* When to look after what may be lost; 0: never. */
static inline uint64_t sr_deadline(const struct turn *t)
{
	int32_t ahead = (int32_t)(le32_to_cpu(t->sqc->sr_deadline) - (uint32_t)(t->now >> 10));

	if (!(le32_to_cpu(t->sqc->valid) & SKUA_SQC_SR_TIMER))
		return 0;
	return ahead <= 0 ? t->now : ((t->now >> 10) + (uint32_t)ahead) << 10;
}

/* From now on the QP sends packets of the extension, with the window 2^@log. */
void sr_use_window(struct turn *t, uint32_t log);
/* The numbers of the message at ci: those of the one that is sent next, less all between. */
bool sr_count_ci(struct turn *t);

/*
 * SKUA_SQC_CI_SEQ: the numbers of the message at ci are known from now on, as long as they are
 * needed. False: the ring does not tell them, and the QP is in error.
 */
static inline bool sr_know_ci(struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_CI_SEQ || sr_count_ci(t);
}

/* With SKUA_SQC_CI_SEQ: the message @f at ci is complete. */
void sr_follow_ci(struct turn *t, const struct flight *f);
/* A packet of the peer's came: does it speak the extension too? Of a request, @t has the RQC. */
void sr_hear(struct turn *t, const struct skua_pkt *pkt);

/* One after the last bit that is set in an acknowledgment's bitmap; 0: there is none. */
uint32_t sr_bitmap_end(const struct skua_pkt *pkt);

/* --- sr_req.c --- */
/* RTR to RTS. */
void sr_req_start(struct turn *t);
/* Is anything missing of what was sent? */
static inline bool sr_in_loss(const struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_LOSS;
}

/* Of an acknowledgment or response. */
static inline bool sr_has_bitmap(const struct skua_pkt *pkt)
{
	return pkt->op->flags & IB_F_PAYLOAD && pkt->opcode >= IB_OPCODE_VENDOR_MIN;
}

/* Is the acknowledgment or response one that only sr_comp_rx() understands? */
static inline bool sr_deals_with(const struct turn *t, const struct skua_pkt *pkt)
{
	return sr_in_loss(t) || sr_has_bitmap(pkt);
}

void sr_comp_rx(struct turn *t, const struct skua_pkt *pkt);
/* Send again what is lost. True: the budget ended first. */
bool sr_req_run(struct turn *t);

/* Does the driver keep what has arrived of what the QP sent? */
static inline bool sr_onload(const struct skua_sqc *sqc)
{
	return le32_to_cpu(sqc->valid) & SKUA_SQC_ONLOAD;
}

/* Might there be anything to be sent again? */
static inline bool sr_req_wants(const struct turn *t)
{
	return sr_in_loss(t) && (!sr_onload(t->sqc) || t->sqc->rec_pi != t->sqc->rec_ci) &&
	       !req_rnr_deadline(t) && !fault_req_waits(t) &&
	       (qp_state(t->qp) == SKUA_QP_RTS || qp_state(t->qp) == SKUA_QP_SQD);
}

/* What has not arrived by now is to be sent again. */
void sr_lost_all(struct turn *t);
/* sr_deadline has come. */
void sr_req_timer(struct turn *t);

/**
 * struct sr_walk - a message between ci and what was sent last
 * @at: index of its WQE; first PSN; its number; messages before it that take a receive; requests
 *	before it that take a responder resource
 * @wqes: WQEs that were passed
 * @f: the rest
 * @ready: @f is that of @at
 */
struct sr_walk {
	struct walk_place at;
	uint32_t wqes;
	struct flight f;
	bool ready;
};

/*
 * What was sent is no more WQEs than these from ci on, with packets and without. Software can
 * change those that are in the ring into more, and smaller ones.
 */
#define SR_WQES		(SKUA_LRC_PSNS + MODEL_LOCALS)

struct sr_walk sr_walk_start(const struct turn *t);
/* On to the message that @psn belongs to. False: the ring does not say which that is. */
bool sr_walk_to(struct turn *t, struct sr_walk *w, uint32_t psn);
/* The message that @psn belongs to, if one of the last walks ended there. */
const struct walk_end *sr_walk_ended(const struct turn *t, uint32_t psn);

/* First PSN of the part that @psn is of, of the READ at @at. */
static inline uint32_t sr_part_start(const struct walk_place *at, uint32_t psn)
{
	return psn_sub(psn, psn_sub(psn, at->psn) % ENGINE_READ_PSNS);
}

/* PSNs of a READ up to the end of the part that @psn is of. */
uint32_t sr_part_end(const struct sr_walk *w, uint32_t psn);

/* What became of a hole. */
enum sr_hole {
	SR_HOLE_SENT,
	SR_HOLE_WAITS,	/* for credits, or for what cannot be sent now */
	SR_HOLE_BUDGET,	/* for the next turn */
};

/* May something of the message @w be sent now? */
enum sr_hole sr_may_send_again(struct turn *t, const struct sr_walk *w, uint32_t psn);
/* Send the packet of @psn again, of a READ the request for @n responses from there on. */
enum sr_hole sr_send_again(struct turn *t, struct sr_walk *w, uint32_t psn, uint32_t n);

/* The message at ci, which una_psn is in. False: the QP is in error. */
bool sr_first(struct turn *t, struct flight *f);
/* All of it is there. False: likewise. */
bool sr_first_done(struct turn *t, const struct flight *f);

/* --- sr_wait.c --- */
/* A packet of @psns PSNs from @psn on went out. */
void sr_note_sent(struct turn *t, uint32_t psn, uint32_t psns);
/* una_psn moved. */
void sr_progress(struct turn *t);
/* While packets are missing: has the one come whose round trip is measured? */
void sr_measure(struct turn *t, bool (*came)(const void *priv, uint32_t psn), const void *priv);
/* These were sent again: only the last time does measure a round trip. */
void sr_measure_again(struct turn *t, uint32_t psn, uint32_t psns, bool read);
/*
 * Does a round trip that is measured end with @psn, or end without a result? @held: the peer holds
 * what was sent once until what is missing has come.
 */
bool sr_measures(const struct turn *t, uint32_t psn, bool held);
/* The part of a READ at @psn was asked for again for the first time. */
void sr_measure_once(struct turn *t, uint32_t psn);
/* A response came that only such a request has at @psn. */
void sr_measure_answer(struct turn *t, uint32_t psn);
/* The peer holds what was sent once until what is missing has come. */
void sr_measure_held(struct turn *t);
/* After so many ns what has not arrived is lost, whatever is known of the path. */
uint64_t sr_wait_time(const struct turn *t);
/* After so many what was sent again is. */
uint64_t sr_again_time(const struct turn *t);
/* Likewise, where that is missing first which is a response to a READ. */
uint64_t sr_reread_time(const struct turn *t, const struct skua_lrc *lrc);
/* After so many without a sign of the peer it is asked. @lrc: NULL: the driver keeps that. */
uint64_t sr_probe_time(struct turn *t, const struct skua_lrc *lrc);
/* After so many nothing comes any more of a peer whose QP has ended. */
uint64_t sr_last_time(const struct turn *t);
/* Nothing was known to be missing, and it was waited for the shortest time only? */
bool sr_probe_is_early(struct turn *t);
/* A hole is lost when something has arrived so many PSNs behind it; or so many ns later. */
uint32_t sr_distance(const struct turn *t, const struct skua_lrc *lrc);
uint64_t sr_hole_time(const struct turn *t, const struct skua_lrc *lrc);
/* Is the path one on which nothing was late for long? */
bool sr_keeps_order(const struct skua_lrc *lrc);
/* Packets have come in order since the last look: be less patient. */
void sr_calm(struct turn *t, struct skua_lrc *lrc);
/* A packet was only late, by so many PSNs, and so many ns after that was seen. */
void sr_late(struct turn *t, struct skua_lrc *lrc, uint32_t far, uint64_t age);

/* --- sr_onload.c --- */
/* With sr_onload(): sr_comp_rx(), sr_req_run(), sr_req_timer(), sr_lost_all(). */
void sr_onload_rx(struct turn *t, const struct skua_pkt *pkt);
bool sr_onload_run(struct turn *t);
void sr_onload_timer(struct turn *t);
void sr_onload_back(struct turn *t);
/* The QP ends: with sr_in_loss(), tell the driver that it is over. */
void sr_onload_end(struct turn *t);

/* --- sr_resp.c --- */
/*
 * May the peer have a request under way that is @d PSNs ahead of the one expected? Any other is of
 * an earlier connection, or forged, and is not to decide what the QP speaks.
 */
static inline bool sr_resp_is_near(const struct turn *t, int32_t d)
{
	return d >= -SKUA_LRC_PSNS && d < 1 << sr_log_window(t);
}

/* A request that has a SETH, @d PSNs ahead of the one expected. */
void sr_resp_rx(struct turn *t, const struct skua_pkt *pkt, int32_t d);
/* Of one that is expected: does its SETH say what the QP knows? */
bool sr_resp_place_ok(const struct turn *t, const struct skua_pkt *pkt);
/*
 * A standard packet of a WRITE is expected, but the packets before it were the extension's
 * and were held: where it belongs is not known. It comes again.
 */
bool sr_resp_is_stray(const struct turn *t, const struct skua_pkt *pkt);
/* With SKUA_RQC_HELD: epsn has moved on from @from: what is held there takes its turn. */
void sr_resp_advance(struct turn *t, uint32_t from);
/* With SKUA_RQC_EXT: a packet is dropped that cannot be taken before its turn. */
void sr_resp_gap(struct turn *t);
/*
 * With SKUA_RQC_HELD or _DROPPED, the bitmap of an acknowledgment: its bytes, a multiple of 4; 0:
 * there is nothing to tell. @only_came: its last bit stands for a packet that was dropped.
 */
uint32_t sr_resp_bitmap(struct turn *t, uint8_t to[SKUA_LRC_PSNS / 8], bool *only_came);

/* --- sr_order.c --- */
/*
 * A packet of a WRITE is to be held: keep where the message goes, unless that is known. False: that
 * cannot be written, and the QP fails.
 */
bool sr_order_note(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt);
/*
 * Check the access and write the payload to its part, but for the bytes of held packets of WRITEs
 * behind it. @lrc: the packet is early; NULL: it is the one that is expected.
 */
enum skua_vendor sr_order_write(struct turn *t, const struct skua_lrc *lrc,
				const struct mr_who *who, const struct mr_part *part,
				const struct skua_pkt *pkt);

/* --- sr_recv.c --- */
/*
 * Receives come from SRQs: the one of the message that takes a receive after @ahead others is
 * taken, and before it those of all others up to there that have none yet. False: it cannot be.
 */
bool sr_recv_take(struct turn *t, const struct skua_pkt *pkt, uint32_t ahead);
/* That of the message which takes a receive after @ahead others, if it was taken so. */
bool sr_recv_get(struct turn *t, uint32_t ahead, struct skua_ext_recv *r);
/* With SKUA_RQC_RECVS: the first of them is that of the message under way from now on. */
bool sr_recv_next(struct turn *t);
/*
 * The QP ends and sr_recv_next() has failed: the entry cannot be read, so it is not known which WQE
 * that was. If it is known that there was one, the SRQ keeps none more for it.
 */
void sr_recv_lost(struct turn *t);

#endif /* SKUA_ROCE_SR_H */
