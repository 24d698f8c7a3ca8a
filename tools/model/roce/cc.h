/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control: what its files offer each other and the engine.
 *
 *   cc.c        parameters, both ends of CNPs, the algorithms' table
 *   cc_dcqcn.c  a rate, by CNPs
 *   cc_delay.c  a window, by the round trip time
 *
 * A QP that nothing holds back has SKUA_SQC_CC clear, and pays for a look at a word that it
 * looks at in any case. With the bit set the contexts' cold words are looked at: a rate goes
 * to pace.c, a window is one more limit of what may be outstanding. There are no timers: what
 * time has brought is found when the QP has a turn, and a QP that waits under a rate gets
 * one when its rate is to rise.
 */
#ifndef SKUA_ROCE_CC_H
#define SKUA_ROCE_CC_H

#include "engine.h"

/**
 * struct cc_ops - an algorithm
 * @ect: it lives on marks: packets are to be ECN-capable
 * @start: the QP sends its first request
 * @acked: @bytes more are acknowledged; cc.rtt was measured just now if @measured
 * @cnp: a CNP came. False: it says nothing new
 * @timeout: an ACK timer expired
 * @turn: before anything is sent: what has time brought?
 * @sent: so many bytes were
 * @next: device time (ns) at which @turn may raise the rate, 0: it will not
 *
 * None but @start may be NULL for those that have a use for it. @start and @cnp are called
 * whether SKUA_SQC_CC is set or not, the others with it only; all words of @t's context are
 * there.
 */
struct cc_ops {
	bool ect;
	void (*start)(struct turn *t);
	void (*acked)(struct turn *t, uint32_t bytes, bool measured);
	bool (*cnp)(struct turn *t);
	void (*timeout)(struct turn *t);
	void (*turn)(struct turn *t);
	void (*sent)(struct turn *t, uint64_t bytes);
	uint64_t (*next)(const struct turn *t);
};

extern const struct cc_ops cc_dcqcn, cc_delay;

/* --- for algorithms --- */
uint32_t cc_param(const struct turn *t, enum skua_cc_param param);
static inline uint64_t cc_param_ns(const struct turn *t, enum skua_cc_param param)
{
	return cc_param(t, param) * 1000ull;
}

static inline bool cc_is(const struct turn *t, uint32_t flag)
{
	return le32_to_cpu(t->sqc->cc.flags) & flag;
}

static inline void cc_set(struct turn *t, uint32_t flag, bool on)
{
	if (on)
		t->sqc->cc.flags |= cpu_to_le32(flag);
	else
		t->sqc->cc.flags &= ~cpu_to_le32(flag);
}

/* It holds the QP back from now on, with all of its state zero, or no longer. */
void cc_begin(struct turn *t);
void cc_end(struct turn *t);
/*
 * The window opens for the first time: twice as wide in each round trip. True: no further, as
 * round trips become longer; @bytes were acknowledged.
 */
bool cc_open(struct turn *t, uint32_t bytes, bool measured);
/* A rate in kbit/s, 0: none. */
void cc_set_rate(struct turn *t, uint32_t kbps);
/* Bytes of all packets that the QP may have outstanding without congestion control. */
uint32_t cc_window_max(const struct turn *t);

/* --- for the engine --- */
static inline bool cc_on(const struct turn *t)
{
	return le32_to_cpu(t->sqc->valid) & SKUA_SQC_CC;
}

static inline bool cc_has_window(const struct turn *t)
{
	return cc_on(t) && t->sqc->cc.window;
}

/* PSNs that may be outstanding, if otherwise @most may. */
static inline uint32_t cc_psns(const struct turn *t, uint32_t most)
{
	uint32_t psns = le32_to_cpu(t->sqc->cc.window) / t->mtu;

	return psns > most ? most : psns ? psns : 1;
}

/* RTR to RTS. */
void cc_start(struct turn *t);
/* With SKUA_SQC_CC_NEW: the requester has its first turn. */
void cc_first_request(struct turn *t);
/* With cc_on(): una_psn moved; new packets from @psn on go; requests go once more. */
void cc_progress(struct turn *t);
void cc_note_sent(struct turn *t, uint32_t psn);
void cc_note_again(struct turn *t);
/* An ACK timer expired. */
void cc_timeout(struct turn *t);
/* With cc_on(): a turn begins; it has sent so many bytes. */
void cc_turn(struct turn *t);
void cc_sent(struct turn *t, uint64_t bytes);
/* With a rate: the QP waits; not longer than until its rate may rise. */
void cc_wait(struct turn *t);
/* A CNP came for the QP. */
void cc_rx_cnp(struct turn *t);
/* A packet with a CE mark came for it. */
void cc_rx_ce(struct turn *t, const struct skua_pkt *pkt);

#endif /* SKUA_ROCE_CC_H */
