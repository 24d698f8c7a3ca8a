/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault clauses as fault_spec.c reads them and fault.c applies them.
 */
#ifndef SKUA_WIRE_FAULT_PRIV_H
#define SKUA_WIRE_FAULT_PRIV_H

#include "fault.h"

#define FAULT_NAME_MAX		32

/* Class of a flow's packets; a part of its key and of the hash for its faults. */
enum fault_class {
	FAULT_CLASS_REQ,
	FAULT_CLASS_RESP,
	FAULT_CLASS_CNP,
	FAULT_CLASS_OTHER,	/* opcodes that the table does not know */
	FAULT_CLASS_MAX,
	FAULT_CLASS_ANY = FAULT_CLASS_MAX,
};

/* A probability, in units of 2^-64; FAULT_ALWAYS: 1. */
#define FAULT_ALWAYS		UINT64_MAX

enum fault_kind {
	FAULT_LOSS,
	FAULT_DUP,
	FAULT_CORRUPT,
	FAULT_ECN,
	FAULT_DELAY,
	FAULT_REORDER,
	FAULT_KIND_MAX,
};

/**
 * struct fault_rates - a clause of rates
 * @rate: probability of each kind of fault
 * @delay_ns: minimum delay
 * @jitter_ns: maximum of what is added to it
 * @reorder_n: number of later frames of the flow that pass; 0: hold for @hold_ns
 * @hold_ns: maximum time to hold a frame back
 * @bps: bandwidth of the port, bits per second; 0: any. It is that of all frames, RoCE or not
 * @seed: of the hash, if @has_seed
 * @port: name of the port where the frames enter; empty: all ports
 * @has_seed: else the wire's
 * @key_qpn: the hash takes the QP number, not the flow's ordinal
 * @all: applies to other frames than RoCE, too
 * @corrupt_any: damage also bytes that the ICRC does not cover
 * @ecn_force: mark also packets that are not ECN-capable
 */
struct fault_rates {
	uint64_t rate[FAULT_KIND_MAX];
	uint64_t delay_ns;
	uint64_t jitter_ns;
	uint32_t reorder_n;
	uint64_t hold_ns;
	uint64_t bps;
	uint64_t seed;
	char port[FAULT_NAME_MAX];
	bool has_seed;
	bool key_qpn;
	bool all;
	bool corrupt_any;
	bool ecn_force;
};

/* Both ends are included. */
struct fault_range {
	uint64_t lo;
	uint64_t hi;
};

/**
 * struct fault_rule - a clause that is a rule
 * @kind: what to do
 * @delay_ns: for FAULT_DELAY
 * @reorder_n: for FAULT_REORDER; 0: @hold_ns
 * @hold_ns: likewise
 * @port: where the frame comes in; empty: anywhere
 * @class: of its flow
 * @opcode: BTH opcode; -1: any
 * @qpn: destination QP
 * @qp: ordinal of the flow on its port, within its class
 * @psn: counted from the flow's first; negative ones never match
 * @iter: number of earlier passages of this PSN
 * @frame: number of the frame on its port
 * @any_frame: the rule has only @frame and @port: it matches other frames than RoCE, too
 * @count: how many more times the rule is applied
 */
struct fault_rule {
	enum fault_kind kind;
	uint64_t delay_ns;
	uint32_t reorder_n;
	uint64_t hold_ns;
	char port[FAULT_NAME_MAX];
	enum fault_class class;
	int opcode;
	struct fault_range qpn;
	struct fault_range qp;
	struct fault_range psn;
	struct fault_range iter;
	struct fault_range frame;
	bool any_frame;
	uint64_t count;
};

struct fault_clause {
	bool is_rule;
	union {
		struct fault_rates rates;
		struct fault_rule rule;
	};
};

/*
 * Parse one clause; @text is modified. Returns 0, or -1 with a message.
 */
int fault_parse_clause(char *text, struct fault_clause *clause, char *err, size_t errlen);

#endif /* SKUA_WIRE_FAULT_PRIV_H */
