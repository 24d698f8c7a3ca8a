/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requester of selective repeat: the words of its loss recovery context, for the files that
 * keep them.
 */
#ifndef SKUA_ROCE_SR_LRC_H
#define SKUA_ROCE_SR_LRC_H

#include "sr.h"

/* --- PSNs that have arrived --- */

static inline bool arrived(const struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t bit = psn % SKUA_LRC_PSNS;

	return le64_to_cpu(lrc->arrived[bit / 64]) >> bit % 64 & 1;
}

/* Those of the 64 PSNs from @psn on, that in the lowest bit. */
static inline uint64_t arrived_word(const struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t bit = psn % SKUA_LRC_PSNS, i = bit / 64;
	uint64_t low = le64_to_cpu(lrc->arrived[i]) >> bit % 64;

	if (!(bit % 64))
		return low;
	return low | le64_to_cpu(lrc->arrived[(i + 1) % (SKUA_LRC_PSNS / 64)]) << (64 - bit % 64);
}

static inline void set_arrived(struct skua_lrc *lrc, uint32_t psn, bool is)
{
	uint32_t bit = psn % SKUA_LRC_PSNS;
	const __le64 mask = cpu_to_le64(1ull << bit % 64);

	if (is)
		lrc->arrived[bit / 64] |= mask;
	else
		lrc->arrived[bit / 64] &= ~mask;
}

/* Of the 64 PSNs from @psn on, those with a bit in @bits have arrived. */
static inline void set_arrived_word(struct skua_lrc *lrc, uint32_t psn, uint64_t bits)
{
	uint32_t bit = psn % SKUA_LRC_PSNS, i = bit / 64;

	lrc->arrived[i] |= cpu_to_le64(bits << bit % 64);
	if (bit % 64)
		lrc->arrived[(i + 1) % (SKUA_LRC_PSNS / 64)] |= cpu_to_le64(bits >> (64 - bit % 64));
}

/* --- marks --- */

static inline void lower(__le32 *psn, uint32_t to)
{
	if (ib_psn_diff(le32_to_cpu(*psn), to) > 0)
		*psn = cpu_to_le32(to);
}

/* --- what is waited for --- */

/* Are packets that were sent again waited for? */
static inline bool mark_waits(const struct turn *t, const struct skua_lrc *lrc)
{
	return ib_psn_diff(le32_to_cpu(lrc->mark_end), una(t)) > 0;
}

/* Are those from una_psn on being sent once more? */
static inline bool walking(const struct skua_lrc *lrc)
{
	return lrc->again != lrc->again_end;
}

/* Is there anything to send again? */
static inline bool wants(const struct skua_lrc *lrc)
{
	return walking(lrc) || ib_psn_diff(le32_to_cpu(lrc->lost), le32_to_cpu(lrc->next)) > 0;
}

/* --- sr_marks.c --- */
/* No mark is in front of una_psn, or behind what was sent. */
void sr_follow_una(struct turn *t, struct skua_lrc *lrc);
/* Were all packets before @next that were sent again sent in the order of their PSNs? */
bool sr_in_order(const struct turn *t, const struct skua_lrc *lrc);
/* Behind a loss most packets come: nothing has to be sent again for them, and no turn is taken. */
void sr_pass_arrived(const struct turn *t, struct skua_lrc *lrc);

/* --- READ requests and others that have answers --- */

static inline bool rr_is(const struct skua_lrc *lrc, uint32_t bits)
{
	return le32_to_cpu(lrc->rr_held) & bits;
}

/*
 * READ requests, atomics ... by their number modulo those that may be under way: the peer holds
 * it; it was sent again, and nothing is known of that yet.
 */
static inline uint32_t rr_held(uint32_t number)
{
	return u32_encode_bits(1u << number % SKUA_RR_PER_QP, SKUA_LRC_RR_HELD);
}

static inline uint32_t rr_asked(uint32_t number)
{
	return u32_encode_bits(1u << number % SKUA_RR_PER_QP, SKUA_LRC_RR_ASKED);
}

/* The number of the one that @psn belongs to. */
static inline uint32_t rr_number(const struct walk_place *at, uint32_t psn)
{
	return at->rr_seq + psn_sub(psn, at->psn) / ENGINE_READ_PSNS;
}

/*
 * A response came: the request that @psn belongs to, of the message @f at @at, need not be asked
 * for any more. A FLUSH has no number: this is that of the request behind it.
 */
static inline void rr_answered(struct skua_lrc *lrc, const struct walk_place *at,
			       const struct flight *f, uint32_t psn)
{
	if (rrs_of(f->op, f->psns))
		lrc->rr_held &= ~cpu_to_le32(rr_asked(rr_number(at, psn)));
}

/* --- sr_read.c --- */
/* The response @psn came: those before it that did not are holes. */
void sr_read_gap(struct turn *t, struct skua_lrc *lrc, uint32_t psn);
/* Has a response to this part of a READ come? Then the peer has the request. */
bool sr_read_begun(const struct turn *t, const struct skua_lrc *lrc, const struct sr_walk *w,
		   uint32_t psn);
/* Missing responses from @psn on, up to @end; all of a request that may be lost itself. */
uint32_t sr_read_run(const struct turn *t, const struct skua_lrc *lrc, const struct sr_walk *w,
		     uint32_t *psn, uint32_t end);
/*
 * Are responses to this READ still to come, from @psn on? Then they are not asked for. @again: the
 * hole may have been asked for before; @quiet: for long nothing came.
 */
bool sr_read_to_come(const struct turn *t, const struct skua_lrc *lrc, const struct sr_walk *w,
		     uint32_t psn, bool again, bool quiet);

/* --- sr_early.c --- */

/*
 * The response, if it is the one after the last that came, and nothing else follows from it. True:
 * it was taken, or dropped. False: nothing was done.
 */
bool sr_early_rx(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt);

#endif /* SKUA_ROCE_SR_LRC_H */
