/* SPDX-License-Identifier: GPL-2.0 */
/* What all fuzzers of the device share: the input, and memory that changes under the device. */
#ifndef SKUA_TEST_FUZZ_INPUT_H
#define SKUA_TEST_FUZZ_INPUT_H

#include <stdio.h>
#include <stdlib.h>

#include "fake.h"

/* The input, taken byte by byte; zero behind its end. */
struct input {
	const uint8_t *p;
	size_t left;
};

static inline uint64_t take(struct input *in, size_t bytes)
{
	uint64_t val = 0;

	while (bytes-- && in->left) {
		val = val << 8 | *in->p++;
		in->left--;
	}
	return val;
}

static inline void take_bytes(struct input *in, void *to, size_t bytes)
{
	uint8_t *p = to;

	while (bytes--)
		*p++ = (uint8_t)take(in, 1);
}

/* Its last byte, for what the input is about as a whole: others keep their places so. */
static inline uint8_t take_last(struct input *in)
{
	return in->left ? in->p[--in->left] : 0;
}

static inline void must(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* --- memory that changes while the device works --- */

#define FUZZ_RACE_RANGES	8

/**
 * struct fuzz_race - a guest that changes its memory meanwhile
 * @f: whose
 * @range: memory that changes; none: all
 * @ranges: how many
 * @every: of so many reads one finds a byte changed, which is not changed back; 0: none does
 * @count: reads so far
 * @with: bits that change
 */
struct fuzz_race {
	struct fake *f;
	struct {
		uint64_t from, to;
	} range[FUZZ_RACE_RANGES];
	unsigned int ranges;
	uint32_t every, count;
	uint8_t with;
};

static inline void fuzz_race_at(struct fuzz_race *r, uint64_t iova, uint64_t len)
{
	must(r->ranges < FUZZ_RACE_RANGES, "too many ranges");
	r->range[r->ranges].from = iova;
	r->range[r->ranges++].to = iova + len;
}

static inline void fuzz_race_read(void *priv, uint64_t iova, size_t len)
{
	struct fuzz_race *r = priv;
	bool in = !r->ranges;

	for (unsigned int i = 0; i < r->ranges; i++)
		in |= iova >= r->range[i].from && iova + len <= r->range[i].to;
	if (!in || !len || ++r->count % r->every)
		return;
	*((uint8_t *)fake_ptr(r->f, iova) + r->count / r->every * 7 % len) ^= r->with;
}

/* From now on, or not any more, as the input says. */
static inline void fuzz_race(struct fuzz_race *r, struct fake *f, struct input *in)
{
	r->f = f;
	r->every = (uint32_t)take(in, 1);
	r->with = (uint8_t)take(in, 1);
	f->on_read = r->every ? fuzz_race_read : NULL;
	f->on_priv = r;
}

#endif /* SKUA_TEST_FUZZ_INPUT_H */
