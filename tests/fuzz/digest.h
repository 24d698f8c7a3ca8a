/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an input made happen, as a number, for targets without a device core (fake.c does it
 * for the others): tests/fuzz/run compares the numbers of two runs.
 */
#ifndef SKUA_FUZZ_DIGEST_H
#define SKUA_FUZZ_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST_EMPTY	0xcbf29ce484222325ull

static uint64_t digest_sum = DIGEST_EMPTY;

static inline void digest(const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		digest_sum = (digest_sum ^ p[i]) * 0x100000001b3ull;
}

static inline void digest_num(uint64_t val)
{
	digest(&val, sizeof(val));
}

static inline void digest_text(const char *text)
{
	digest(text, strlen(text) + 1);
}

/* The input's end. */
static inline void digest_end(void)
{
	if (getenv("FUZZ_DIGEST"))
		fprintf(stderr, "digest %016llx\n", (unsigned long long)digest_sum);
	digest_sum = DIGEST_EMPTY;
}

#endif /* SKUA_FUZZ_DIGEST_H */
