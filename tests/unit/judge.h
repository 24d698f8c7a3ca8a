/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A judge of RC traces. It sees the frames that one device sends and receives, is told
 * what software did to the queue pairs, and knows the rules of the IBTA (volume 1,
 * chapter 9) and nothing of the device: requester and responder are automata of its own,
 * which say of each packet sent whether it may be sent now.
 *
 * What it cannot know (why a packet was not taken, what the guest's memory says) it
 * leaves open: it never blames a device that keeps the rules, and may miss one that
 * breaks them.
 */
#ifndef SKUA_TEST_JUDGE_H
#define SKUA_TEST_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JUDGE_QPS	64
#define JUDGE_GIDS	16
#define JUDGE_NO_VLAN	0xffff
#define JUDGE_PSNS	8192	/* that are remembered; a power of two */

/* What is known of a PSN: of requests sent, of requests received. */
enum {
	JUDGE_READ	= 1 << 0,	/* of a READ */
	JUDGE_BEGIN	= 1 << 1,	/* the first of a READ or the like */
	JUDGE_ATOMIC	= 1 << 2,
	JUDGE_OTHER	= 1 << 3,	/* FLUSH, ATOMIC_WRITE: answered as a READ of nothing */
	JUDGE_END	= 1 << 4,	/* a message ends here */
	JUDGE_ANSWERED	= 1 << 5,
	JUDGE_SEND	= 1 << 6,
	JUDGE_WRITE	= 1 << 7,
};

/**
 * struct judge_qp - both automata of one queue pair
 * @own: its number; 0: the place is free
 * @peer: that of the other end
 * @mtu: of the path
 * @depth: READs and atomics it may have outstanding
 * @xrc: it speaks XRC, else RC
 * @sgid: whom it hears
 * @sgid_index: at which of its device's addresses
 * @sends: software has let it send requests
 * @hears: software has let it take requests
 * @lax: what came was out of proportion: the responder is not judged any more
 * @sq: requester
 * @rq: responder
 */
struct judge_qp {
	uint32_t own, peer;
	uint32_t mtu, depth;
	uint8_t sgid[16];
	uint32_t sgid_index;
	bool sends, hears, lax, xrc;
	struct {
		uint32_t una;		/* all before it is acknowledged */
		uint32_t got;		/* all answers before it came, in order */
		uint32_t may;		/* all before it is acknowledged if answers were placed */
		uint32_t next;		/* after the last packet sent */
		uint32_t top;		/* the highest never sent */
		bool dead;		/* a NAK ended it */
		bool cause;		/* something came, or time went by, since it went back */
		uint64_t now;		/* of the last packet */
		uint64_t rnr_until;
		uint8_t psn[JUDGE_PSNS];
	} sq;
	struct {
		uint32_t cont;		/* all before it came, in order */
		uint32_t answered;	/* all before it were answered, if they are to be */
		uint32_t acked;		/* of the last ACK */
		uint32_t msn;		/* likewise */
		uint32_t ends;		/* messages that came whole */
		uint32_t far;		/* the furthest that came */
		bool nak;		/* for the gap at @nak_psn, which has not come since */
		uint32_t nak_psn;
		bool dead;		/* it has sent a NAK that ends it */
		uint8_t psn[JUDGE_PSNS];
	} rq;
};

/**
 * struct judge_addr - where the device hears
 * @known: software has set it; else any address is believed to be the device's
 * @mac: destination MAC
 * @gid: destination GID
 * @vlan: JUDGE_NO_VLAN: untagged, or tagged with a priority only
 */
struct judge_addr {
	bool known;
	uint8_t mac[6], gid[16];
	uint16_t vlan;
};

/**
 * struct judge - of one device
 * @num: packets judged
 * @fickle: the guest changes requests that it has posted: what comes again may be another
 * @addr: its addresses
 * @xrc: numbers of its XRC queue pairs; 0: the place is free
 * @num_xrc: places there
 * @qp: what is known of its queue pairs
 */
struct judge {
	uint64_t num;
	bool fickle;
	struct judge_addr addr[JUDGE_GIDS];
	uint32_t *xrc;
	unsigned int num_xrc;
	struct judge_qp *qp[JUDGE_QPS];
};

void judge_reset(struct judge *j);

/* What software tells the device of a QP's path. */
struct judge_path {
	uint32_t own, peer, mtu, depth, sq_psn, rq_psn, sgid_index;
	uint8_t sgid[16];
};

/* One of the device's addresses is set. */
void judge_address(struct judge *j, uint32_t index, const struct judge_addr *addr);

/* A QP of XRC is made: however many there are, none of them is taken for one of RC. */
void judge_makes_xrc(struct judge *j, uint32_t own);
/* A QP is destroyed. */
void judge_destroys(struct judge *j, uint32_t own);

/* The QP takes requests from now on (RTR); it may send them (RTS); it does neither. */
void judge_hears(struct judge *j, const struct judge_path *path);
void judge_sends(struct judge *j, const struct judge_path *path);
void judge_stops(struct judge *j, uint32_t own);

/* Is the ICRC of a frame right? IPv4 without VLAN. */
bool judge_intact(const uint8_t *frame, size_t len);
/* A frame at time @now (ns). NULL, or the rule that the device broke. */
const char *judge_sent(struct judge *j, const uint8_t *frame, size_t len, uint64_t now);
void judge_received(struct judge *j, const uint8_t *frame, size_t len, uint64_t now);

#endif /* SKUA_TEST_JUDGE_H */
