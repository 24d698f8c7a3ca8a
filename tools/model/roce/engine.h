/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside of the RoCEv2 engine: what its files offer each other.
 *
 *   engine.c    turns, states, timers, building packets; the rest's glue
 *   rx.c        from a frame to a QP
 *   req.c       requester: send queue to packets; going back
 *   resp.c      responder: requests to memory, receives and answers
 *   comp.c      completer: responses to completions
 *   flush.c     queues of a QP in error
 *   inflight.c  shared cache of messages under way
 *
 * All state of a QP is in its contexts. PSNs are compared by ib_psn_diff() and
 * counted by psn_add(), psn_sub(); nothing outstanding is ever further than
 * ENGINE_WINDOW + ENGINE_READ_PSNS apart, so their order is never in doubt.
 */
#ifndef SKUA_ROCE_ENGINE_H
#define SKUA_ROCE_ENGINE_H

#include "../core.h"
#include "hdr.h"
#include "opcode.h"
#include "pkt.h"

/* Bytes that a QP sends in a turn, and WQEs that it begins. */
#define ENGINE_TURN_BYTES	(16 << 10)
#define ENGINE_TURN_WQES	8
/* A QP begins no packet when so many PSNs are not acknowledged. */
#define ENGINE_WINDOW		128
/* An acknowledgment is asked for at the latest after so many packets. */
#define ENGINE_ACK_EVERY	16
/*
 * A READ is asked for in parts of so many packets of the response, so that its
 * responses are bound by a window too, and PSN arithmetic holds for the longest
 * READ of the smallest MTU.
 */
#define ENGINE_READ_PSNS	64

#define ENGINE_MTU_MAX		4096

/* Scatter lists kept over the packets of a message. */
#define ENGINE_LISTS		16

/* Where in a gather or scatter list the last access was. */
struct sge_pos {
	uint64_t base;		/* offset in the message of the element's first byte */
	uint32_t i;
};

/**
 * struct rlist - a receive WQE, or the scatter list of a READ, in use
 * @qpn: QP, with @valid
 * @incarnation: its life
 * @index: position in the receive queue, block index in the send queue
 * @valid: holds something
 * @pos: where the last packet went
 */
struct rlist {
	uint32_t qpn;
	uint32_t incarnation;
	uint32_t index;
	bool valid;
	struct sge_pos pos;
	union {
		struct rwqe rwqe;
		struct wqe wqe;
	};
};

/* What completing a message needs to know. */
struct flight {
	uint32_t qpn;
	uint32_t incarnation;
	uint32_t index;
	uint32_t blocks;
	uint32_t psns;
	uint32_t len;
	uint32_t op;
	bool signaled;
};

/* At most 2^31 bytes in PSNs of 256, 24 bits of them: 2 MiB of cache lines at most. */
#define ENGINE_LOG_FLIGHTS	13

/**
 * struct engine - the engine's memory besides the contexts
 * @incarnations: last number given
 * @flight: messages under way, direct mapped
 * @recv: receive WQEs under way, by QP index
 * @read: READs whose responses come in, by QP index
 * @win: part of a send ring
 * @wqe: the WQE that is being sent
 * @frame: the packet being built
 */
struct engine {
	uint32_t incarnations;
	struct flight flight[1 << ENGINE_LOG_FLIGHTS];
	struct rlist recv[ENGINE_LISTS];
	struct rlist read[ENGINE_LISTS];
	struct wqe_win win;
	struct wqe wqe;
	uint8_t frame[SKUA_PKT_OVERHEAD + ENGINE_MTU_MAX] __attribute__((aligned(64)));
};

/**
 * struct turn - the engine's look at one QP
 * @dev: device
 * @qp: both halves, pinned
 * @sqc: the QP's
 * @rqc: the QP's
 * @now: device time
 * @mtu: path MTU
 * @budget: bytes that may still be sent
 * @addr_state: 0: @addr was not looked up, 1: it is good, -1: there is no path
 * @addr: path to the peer
 */
struct turn {
	struct skua_dev *dev;
	struct qp *qp;
	struct skua_sqc *sqc;
	struct skua_rqc *rqc;
	uint64_t now;
	uint32_t mtu;
	int32_t budget;
	int addr_state;
	struct skua_pkt_addr addr;
};

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & IB_PSN_MASK;
}

/* How far @a is ahead of @b, known not to be behind it. */
static inline uint32_t psn_sub(uint32_t a, uint32_t b)
{
	return (a - b) & IB_PSN_MASK;
}

/* Packets that a message of @len bytes takes. */
static inline uint32_t psns_of(uint64_t len, uint32_t mtu)
{
	return len ? (uint32_t)((len + mtu - 1) / mtu) : 1;
}

/* --- engine.c --- */
void turn_begin(struct turn *t, struct skua_dev *dev, struct qp *qp);
/* Arm the timer, mark the contexts changed. */
void turn_end(struct turn *t);

/*
 * Start a packet to the QP's peer in the engine's frame buffer. False: there is no
 * path (its GID entry is gone): the packet counts as sent and lost.
 */
bool tx_start(struct turn *t, struct skua_pkt_build *b, uint8_t opcode, uint32_t psn,
	      bool ackreq, bool se);
void tx_finish(struct turn *t, struct skua_pkt_build *b, uint32_t payload);

/* Who the QP is for its own keys, and for those that its peer names. */
struct mr_who who_local(const struct turn *t, uint32_t access);
struct mr_who who_remote(const struct turn *t, uint32_t access);
/*
 * Copy @len bytes at offset @off of a message from or to the list; the caller
 * knows that the list is long enough. SKUA_VENDOR_NONE or SKUA_VENDOR_KEY_*.
 */
enum skua_vendor sge_copy(struct turn *t, const struct sge *sge, uint32_t nsge,
			  struct sge_pos *pos, uint64_t off, void *buf, uint32_t len, bool write);
/* Write a completion; failing that the QP goes to ERR, and false is returned. */
bool post_cqe(struct turn *t, uint32_t cqn, struct skua_cqe *cqe, bool solicited);

/* --- req.c --- */
/* Send what may be sent now; true: the budget ended first. */
bool req_run(struct turn *t);
/* Is there anything that it could send, were there budget? A guess. */
bool req_wants(const struct turn *t);
/*
 * Report the WQE at ci with an error, and take the QP to ERR. @blocks: of that WQE.
 */
void req_fail(struct turn *t, uint32_t blocks, enum skua_cqe_status status,
	      enum skua_vendor vendor);
/* The message at ci, from the cache or from the ring; or SKUA_VENDOR_*. */
enum skua_vendor req_flight(struct turn *t, struct flight *f);
/* Its last packet is acknowledged: report it if that is wanted. False: QP in error. */
bool req_complete(struct turn *t, const struct flight *f);
/* WQEs without packets at ci that wait for nobody any more. */
void req_complete_local(struct turn *t);
/* una_psn moved: give back what it held. */
void req_progress(struct turn *t);
/* Send again from una_psn on. */
void req_go_back(struct turn *t);
/* Did the READ part that ends at byte @end, of a message of @len bytes, end there? */
bool req_read_part_ends(const struct turn *t, uint64_t end, uint64_t len);
/* RTR to RTS. */
void req_start(struct turn *t);

/* --- resp.c --- */
void resp_rx(struct turn *t, const struct skua_pkt *pkt);
/* Send READ responses, ACK, NAK; true: the budget ended first. */
bool resp_run(struct turn *t);
void resp_farewell(struct turn *t);
/* INIT to RTR. */
void resp_start(struct turn *t);

/* --- comp.c --- */
void comp_rx(struct turn *t, const struct skua_pkt *pkt);
/* The ack timer expired. */
void comp_timeout(struct turn *t);

/* --- flush.c --- */
/* True: there is more to flush. */
bool flush_run(struct turn *t);

/* --- inflight.c --- */
void flight_put(struct engine *e, const struct flight *f);
/* False: it was overwritten. */
bool flight_get(const struct engine *e, uint32_t qpn, uint32_t incarnation, uint32_t index,
		struct flight *f);

#endif /* SKUA_ROCE_ENGINE_H */
