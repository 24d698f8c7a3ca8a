/* SPDX-License-Identifier: GPL-2.0 */
/*
 * skua-pattern: what it does is planned by both sides alike, from the options
 * and the seed; nothing but progress goes over the socket.
 */
#ifndef PROGS_PATTERN_H
#define PROGS_PATTERN_H

#include "common.h"

enum op { OP_SEND, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM, OP_READ, OPS };
extern const char *const op_name[OPS];

static inline bool op_takes_recv(enum op op)
{
	return op == OP_SEND || op == OP_SEND_IMM || op == OP_WRITE_IMM;
}

#define MAX_MTUS	5
#define MAX_MSGS	32
#define MAX_PIECES	32
/* Each side's buffers: one for what it gives, one for what it gets. */
#define AREA_SIZE	(20UL << 20)

/**
 * struct opts - what was asked for; the client's are used on both sides
 * @max_size: longest message
 * @sizes: sweep over sizes 0..@sizes, 0: no sweep
 * @step: of the sweep
 * @passes: sweeps; the opcodes move by one each time
 * @rows: covering array wanted
 * @mode: 'p' poll, 'e' events, 'm' either by chance
 * @only: this batch alone, or -1
 * @spoil: change a bit in this batch, or -1
 * @ack_timeout: of the QPs, as the verbs' attribute
 * @ece: options that both ends of the QPs are told to have agreed on, -1: nobody asked
 * @all: with soft-RoCE also what it cannot do a second time
 */
struct opts {
	uint64_t seed;
	uint32_t max_size;
	uint32_t sizes;
	uint32_t step;
	uint32_t passes;
	uint32_t rows;
	int32_t only;
	int32_t spoil;
	int32_t timeout;
	int32_t ece;
	uint8_t mode;
	uint8_t verbose;
	uint8_t ack_timeout;
	uint8_t all;
};

/* What both sides' devices can do: the smaller of each. */
struct caps {
	uint32_t mtu;		/* enum ibv_mtu */
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t min_read;	/* shortest READ */
};

/* A contiguous part of a buffer. */
struct piece {
	uint32_t off;
	uint32_t len;
};

/**
 * struct msg - one message
 * @mine: the requester's gather or scatter list, offsets in its area
 * @theirs: the responder's
 * @id: key of the payload's pattern, and immediate data
 */
struct msg {
	enum op op;
	uint32_t size;
	uint32_t id;
	bool signaled;
	bool use_inline;
	bool fence;
	unsigned int n_mine, n_theirs;
	struct piece mine[MAX_PIECES];
	struct piece theirs[MAX_PIECES];
};

/**
 * struct batch - messages that go in one direction over one QP
 * @from_client: the client is the requester
 * @events: the requester, and the responder, wait by events
 */
struct batch {
	uint32_t index;
	unsigned int mtu;	/* enum ibv_mtu */
	bool from_client;
	bool events;
	unsigned int n;
	uint32_t used_mine, used_theirs;
	struct msg msg[MAX_MSGS];
};

struct plan;
struct plan *plan_make(const struct opts *o, const struct caps *c);
unsigned int plan_batches(const struct plan *p);
void plan_batch(const struct plan *p, unsigned int index, struct batch *b);
void plan_free(struct plan *p);

#endif /* PROGS_PATTERN_H */
