/* SPDX-License-Identifier: GPL-2.0 */
/* A bad wire between the two sides of a test: what happens to frames of one side. */
#ifndef SKUA_TEST_RC_FAULT_H
#define SKUA_TEST_RC_FAULT_H

#include <stdlib.h>

#include "rc.h"

enum fault_kind { LOSS, DUP, DUP_LATE, LATE, CORRUPT, KINDS };

/**
 * struct fault - what happens to frames of one side
 * @f: that side
 * @kind: what, to frame number @at
 * @at: counted from 0
 * @seen: frames so far
 * @hold: a copy of a frame that comes later, after @hold_for more
 * @rate: instead of @at: of 1000 frames, of each kind
 * @seed: of the generator
 */
struct fault {
	struct fake *f;
	enum fault_kind kind;
	unsigned int at, seen;
	struct fake_frame *hold;
	unsigned int hold_for;
	unsigned int rate[KINDS];
	unsigned int seed;
	unsigned int hits;
};

static inline void release(struct fault *x)
{
	if (!x->hold)
		return;
	fake_rx(x->f->peer, x->hold->data, x->hold->len);
	free(x->hold);
	x->hold = NULL;
}

static inline void hold(struct fault *x, const struct fake_frame *frame, unsigned int n)
{
	release(x);
	x->hold = malloc(sizeof(*x->hold));
	*x->hold = *frame;
	x->hold_for = n;
}

/* False: the frame does not arrive now. */
static inline bool apply(struct fault *x, struct fake_frame *frame, enum fault_kind kind)
{
	x->hits++;
	switch (kind) {
	case LOSS:
		return false;
	case DUP:
		fake_rx(x->f->peer, frame->data, frame->len);
		return true;
	case DUP_LATE:
		hold(x, frame, 5);
		return true;
	case LATE:
		hold(x, frame, 3);
		return false;
	case CORRUPT:
		frame->data[ETH_HDR_LEN + 20 + (frame->len - ETH_HDR_LEN - 20) / 2] ^= 0x10;
		return true;
	default:
		return true;
	}
}

static inline bool filter(void *priv, struct fake_frame *frame)
{
	struct fault *x = priv;
	unsigned int n = x->seen++;
	bool pass = true, chance = false;

	if (x->hold && !x->hold_for--)
		release(x);
	if (x->kind < KINDS)
		return n == x->at ? apply(x, frame, x->kind) : true;
	for (unsigned int k = 0; k < KINDS && !chance; k++) {
		chance = (unsigned int)rand_r(&x->seed) % 1000 < x->rate[k];
		if (chance)
			pass = apply(x, frame, k);
	}
	return pass;
}

static inline void set_fault(struct rc *rc, int i, struct fault *x)
{
	x->f = &rc->s[i].f;
	rc->s[i].f.filter = filter;
	rc->s[i].f.filter_priv = x;
}

#endif /* SKUA_TEST_RC_FAULT_H */
