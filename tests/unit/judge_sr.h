/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A judge of RC traces with selective repeat: of one QP's connection, which both its requester
 * and its responder are automata for, as Documentation/wire/selective-repeat.rst has them. Like
 * the judge of go-back-N (judge.h) it sees frames, over IPv4 and without VLAN, and knows
 * nothing of the device; it also counts what the device is to have counted.
 */
#ifndef SKUA_TEST_JUDGE_SR_H
#define SKUA_TEST_JUDGE_SR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JUDGE_SR_PSNS	2048	/* that are remembered; a power of two */

/* What is known of a PSN that was sent. */
struct judge_sr_psn {
	uint8_t kind, times;
	bool arrived, ends;
	uint32_t off, seq, len, key;
	uint64_t va, at;
};

/**
 * struct judge_sr_count - what the capture says of one side
 * @again: requests sent again
 * @tx_sack: acknowledgments with a bitmap sent
 * @rx_sack: those received
 * @ahead: requests received that were not due yet
 * @twice: requests received that had come before
 * @marked: packets received with a congestion mark
 * @damaged: packets received whose ICRC is wrong
 * @naks: NAKs of a sequence error received
 */
struct judge_sr_count {
	uint64_t again, tx_sack, rx_sack, ahead, twice, marked, damaged, naks;
};

/**
 * struct judge_sr - one side of a connection
 * @own: number of its QP
 * @peer: that of the peer's
 * @mtu: of the path
 * @log: log2 of its own window, 0: it does not speak the extension
 * @always: it speaks it from the first packet on
 * @sq: requester: what was sent
 * @rq: responder: what came
 * @cnt: what there was to be counted
 */
struct judge_sr {
	uint32_t own, peer, mtu, log;
	bool always;
	struct {
		uint32_t log;		/* of the window in force, 0: none yet */
		uint32_t una, top;	/* all before arrived; the next new one */
		uint32_t far;		/* one after the furthest that arrived */
		uint32_t recvs, rrs;	/* messages before top that take a receive, resources */
		uint32_t begin;		/* first PSN of the message under way */
		bool open;		/* one is under way */
		bool asked;		/* RNR NAK or NAK: what is missing may be sent at once */
		uint64_t rtt;		/* shortest round trip, 0: none was seen */
		struct judge_sr_psn psn[JUDGE_SR_PSNS];
	} sq;
	struct {
		uint32_t cont;		/* all before came */
		bool spoken;		/* the peer has sent packets of the extension */
		struct judge_sr_psn psn[JUDGE_SR_PSNS];
	} rq;
	struct judge_sr_count cnt;
};

/* @sq_psn, @rq_psn: the first that it sends and receives. */
void judge_sr_start(struct judge_sr *j, uint32_t own, uint32_t peer, uint32_t mtu, uint32_t sq_psn,
		    uint32_t rq_psn, uint32_t log, bool always);
/* NULL, or the rule that was broken. */
const char *judge_sr_sent(struct judge_sr *j, const uint8_t *frame, size_t len, uint64_t now);
void judge_sr_received(struct judge_sr *j, const uint8_t *frame, size_t len, uint64_t now);

#endif /* SKUA_TEST_JUDGE_SR_H */
