/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Congestion control: functions for the engine, and for the algorithms.
 *
 *   cc.c        parameters, sending and receiving CNPs, table of algorithms
 *   cc_dcqcn.c  DCQCN: a rate, controlled by CNPs
 *   cc_delay.c  a window, controlled by the round trip time
 *
 * A QP without a limit has SKUA_SQC_CC clear, which costs it only the test of a bit in a hot word.
 * If the bit is set the cold words of the contexts are used: a rate is applied by pace.c, and a
 * window is another limit of the outstanding packets. There are no timers: changes by time are
 * made when the QP has a turn, and a QP that waits for its rate gets a turn when the rate can
 * rise.
 */
#ifndef SKUA_ROCE_CC_H
#define SKUA_ROCE_CC_H

#include "engine.h"

/**
 * struct cc_ops - an algorithm
 * @ect: it needs ECN: packets are sent as ECN-capable
 * @start: the QP sends its first request
 * @read: the peer requests its first READ; SKUA_SQC_CC_NEW is set if the QP has sent no request
 *	before
 * @acked: @bytes more are acknowledged; @measured: cc.rtt is a new measurement
 * @cnp: a CNP was received. False: it was ignored
 * @timeout: an ACK timer expired
 * @turn: called before anything is sent: apply changes by time
 * @sent: @bytes were sent
 * @next: device time (ns) at which @turn may raise the rate, 0: it will not
 *
 * All but @start may be NULL. @start, @read and @cnp are called whether SKUA_SQC_CC is set or not,
 * the others only if it is; all words of @t's context are available.
 */
struct cc_ops {
	bool ect;
	void (*start)(struct turn *t);
	void (*read)(struct turn *t);
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

/* Set SKUA_SQC_CC, with all state of the algorithm zero; or clear it. */
void cc_begin(struct turn *t);
void cc_end(struct turn *t);
/*
 * Slow start: double the window in each round trip; @bytes were acknowledged. True: it ends,
 * since round trips become longer.
 */
bool cc_open(struct turn *t, uint32_t bytes, bool measured);
/* A rate in kbit/s, 0: none. */
void cc_set_rate(struct turn *t, uint32_t kbps);
/* Window of the QP without congestion control, in bytes. */
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

/* Number of PSNs that may be outstanding, at most @most. */
static inline uint32_t cc_psns(const struct turn *t, uint32_t most)
{
	uint32_t psns = le32_to_cpu(t->sqc->cc.window) / t->mtu;

	return psns > most ? most : psns ? psns : 1;
}

/* RTR to RTS. */
void cc_start(struct turn *t);
/* With SKUA_SQC_CC_NEW: the first turn of the requester. */
void cc_first_request(struct turn *t);
/* With SKUA_SQC_CC_READ: the responder has taken its first READ. */
void cc_first_read(struct turn *t);
/* With cc_on(): una_psn moved; new packets from @psn on go; requests go once more. */
void cc_progress(struct turn *t);
void cc_note_sent(struct turn *t, uint32_t psn);
void cc_note_again(struct turn *t);
/* An ACK timer expired. */
void cc_timeout(struct turn *t);
/* With cc_on(): a turn begins; it has sent so many bytes. */
void cc_turn(struct turn *t);
void cc_sent(struct turn *t, uint64_t bytes);
/* The QP waits for its rate: limit the wait to the time at which the rate can rise. */
void cc_wait(struct turn *t);
/* The QP received a CNP. */
void cc_rx_cnp(struct turn *t);
/* The QP received a packet with a CE mark. */
void cc_rx_ce(struct turn *t, const struct skua_pkt *pkt);

#endif /* SKUA_ROCE_CC_H */
