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
 *           hold=TIME, seed=N, key=ordinal|qpn, all, corrupt-any, ecn-force
 *   rule:   rule=ACTION[:MATCH,...]
 *           ACTION  drop, dup, corrupt, ecn, delay/TIME, reorder/N, reorder/TIME
 *           MATCH   port=NAME, qpn=any|N, qp=N, class=req|resp|cnp|other,
 *                   op=NAME|N, psn=N[-M], iter=any|N[-M], frame=N[-M], count=N
 *
 * RATE is 1%, 0.01 or 1/100; TIME is a number with ns, us, ms or s; numbers may
 * be hexadecimal. Documentation/wire/faults.rst says what each means.
 *
 * The fate of a RoCE packet is a function of the seed and of what the packet is:
 * {port, request or response, ordinal of its flow, PSN counted from the flow's
 * first, how often this PSN came by before}. No generator runs along, so what
 * other packets do, and when, changes nothing.
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
 * More flows than this, and the longest unused is forgotten; PSNs of a flow whose passages
 * are counted one by one. Both unless wire_faults_room() says otherwise.
 */
#define WIRE_FLOWS_MAX		8192
#define WIRE_FLOW_PSNS		1024

/**
 * struct wire_fate - what happens to one frame
 * @drop: it is lost; nothing else matters then
 * @dup: a copy goes ahead at once
 * @ecn: set CE where ECN allows it
 * @ecn_force: and where it does not
 * @corrupt: flip bit @corrupt_bit of the frame
 * @reorder: hold it back until @reorder_n others of its flow went past or
 *	@hold_ns are over
 * @corrupt_bit: counted from the first byte's most significant bit
 * @reorder_n: 0: time alone counts
 * @hold_ns: longest time to hold
 * @delay_ns: time on the way
 * @flow: its flow; NULL if the frame is not RoCE
 * @flow_id: a number by seed and flow, for those who choose for a flow
 * @packet_id: a number by seed, flow, PSN and iteration, for those who choose for a packet
 * @turn: of the flow's packets: PSN from the flow's first, and iteration
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
	struct wire_flow *flow;
	uint64_t flow_id;
	uint64_t packet_id;
	uint64_t turn;
};

struct wire_faults *wire_faults_create(uint64_t seed);
void wire_faults_destroy(struct wire_faults *f);

/* Remember so many flows, and so many PSNs of each; before the first frame. 0 or -1. */
int wire_faults_room(struct wire_faults *f, uint32_t flows, uint32_t psns);

/* Add a specification, whole or not at all. 0, or -1 with a message. */
int wire_faults_add(struct wire_faults *f, const char *spec, char *err, size_t errlen);

/*
 * Forget all clauses and all flows: what is added next meets flows that begin
 * anew, so that the same traffic has the same fate again.
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

/* Frames held back in favour of a flow's next ones: the head is the switch's. */
struct wire_held **wire_flow_held(struct wire_flow *flow);

/* What to do with held frames of a flow which is about to be forgotten. */
void wire_faults_on_evict(struct wire_faults *f, void (*evict)(struct wire_flow *flow));

/* Set CE. True if the frame was changed: it is IP, and ECT or @force, and not yet CE. */
bool wire_mark_ce(uint8_t *frame, size_t len, bool force);

#endif /* SKUA_WIRE_FAULT_H */
