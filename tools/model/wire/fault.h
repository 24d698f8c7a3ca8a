/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults of the wire: which frames are lost, delayed, reordered, doubled,
 * damaged or marked.
 *
 * A specification is a list of clauses separated by ';'. A clause is either
 * rates or one rule, a list of items separated by ','.
 *
 *   rates:  [port=NAME,] loss=RATE, dup=RATE, corrupt=RATE, ecn=RATE,
 *           delay=TIME[+JITTER][@RATE], reorder=RATE:N or reorder=RATE:TIME,
 *           hold=TIME, bandwidth=BITS, seed=N, key=ordinal|qpn, all, corrupt-any,
 *           ecn-force
 *   rule:   rule=ACTION[:MATCH,...]
 *           ACTION  drop, dup, corrupt, ecn, delay/TIME, reorder/N, reorder/TIME
 *           MATCH   port=NAME, qpn=any|N, qp=N, class=req|resp|cnp|other,
 *                   op=NAME|N, psn=N[-M], iter=any|N[-M], frame=N[-M], count=N
 *
 * RATE is 1%, 0.01 or 1/100; TIME is a number with ns, us, ms or s, BITS one with kbit, Mbit
 * or Gbit; numbers may be hexadecimal. Documentation/wire/faults.rst says what each means.
 *
 * The fate of a RoCE packet is a function of the seed and of what the packet is:
 * {port, request or response, ordinal of its flow, PSN counted from the flow's
 * first, number of earlier passages of this PSN}. There is no sequential random generator,
 * so that it does not depend on other packets or their timing.
 */
#ifndef SKUA_WIRE_FAULT_H
#define SKUA_WIRE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_faults;
struct wire_flow;
struct wire_held;
struct wire_port;

/*
 * Number of flows that are remembered, enough for 10,000 connections between two NICs with
 * requests and responses in both directions; with more the least recently used one is dropped.
 * Number of PSNs of a flow whose passages are counted. Both are defaults, see wire_faults_room().
 */
#define WIRE_FLOWS_MAX		65536
#define WIRE_FLOW_PSNS		1024

/**
 * struct wire_fate - what happens to one frame
 * @drop: it is lost, whatever else is set
 * @dup: a copy is sent at once, ahead of it
 * @ecn: set CE if the frame is ECN-capable
 * @ecn_force: set CE even if it is not
 * @corrupt: flip bit @corrupt_bit of the frame
 * @reorder: hold it back until @reorder_n later frames of its flow have passed or
 *	@hold_ns have elapsed
 * @corrupt_bit: counted from the first byte's most significant bit
 * @reorder_n: 0: only @hold_ns counts
 * @hold_ns: maximum time to hold it back
 * @delay_ns: delay
 * @bps: bandwidth of its port, bits per second; 0: any
 * @flow: its flow; NULL if the frame is not RoCE
 * @flow_id: random number by seed and flow, for choices per flow
 * @packet_id: random number by seed, flow, PSN and iteration, for choices per packet
 * @turn: PSN counted from the flow's first one, and iteration
 */
struct wire_fate {
	bool drop;
	bool dup;
	bool ecn;
	bool ecn_force;
	bool corrupt;
	bool reorder;
	size_t corrupt_bit;
	uint32_t reorder_n;
	uint64_t hold_ns;
	uint64_t delay_ns;
	uint64_t bps;
	struct wire_flow *flow;
	uint64_t flow_id;
	uint64_t packet_id;
	uint64_t turn;
};

struct wire_faults *wire_faults_create(uint64_t seed);
void wire_faults_destroy(struct wire_faults *f);

/*
 * Set the number of flows and PSNs to remember, before the first frame; that of PSNs is rounded up
 * to a power of two. Returns 0 or -1.
 */
int wire_faults_room(struct wire_faults *f, uint32_t flows, uint32_t psns);

/* Add a specification, completely or not at all. Returns 0, or -1 with a message. */
int wire_faults_add(struct wire_faults *f, const char *spec, char *err, size_t errlen);

/*
 * Drop all clauses and all flows. For clauses that are added later all flows are new, so that
 * the same traffic gets the same faults again.
 */
void wire_faults_clear(struct wire_faults *f);

/* True once anything was added: else wire_faults_decide() may be left out. */
bool wire_faults_active(const struct wire_faults *f);

/**
 * wire_faults_decide() - the fate of a frame
 * @f: the faults
 * @port_index: where it came in
 * @port_name: name of that port
 * @frame: the frame
 * @len: its length
 * @fate: result
 *
 * Return: number of flows that had to be forgotten for this frame's (0 or 1).
 */
unsigned int wire_faults_decide(struct wire_faults *f, unsigned int port_index,
				const char *port_name, const uint8_t *frame, size_t len,
				struct wire_fate *fate);

/* Head of the list of a flow's frames that are held back; hold.c uses it. */
struct wire_held **wire_flow_held(struct wire_flow *flow);

/* Set the function that releases the held frames of a flow that is about to be dropped. */
void wire_faults_on_evict(struct wire_faults *f, void (*evict)(struct wire_flow *flow));

/* Set CE. True if the frame was changed: it is IP, and ECT or @force, and not yet CE. */
bool wire_mark_ce(uint8_t *frame, size_t len, bool force);

#endif /* SKUA_WIRE_FAULT_H */
