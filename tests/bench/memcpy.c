// SPDX-License-Identifier: GPL-2.0
/*
 * memcpy CHUNK SET: MiB/s of one thread that copies pieces of CHUNK bytes between two
 * sets of SET bytes, for half a second: what a model that copies once cannot exceed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	size_t chunk = argc == 3 ? strtoul(argv[1], NULL, 0) : 0;
	size_t set = argc == 3 ? strtoul(argv[2], NULL, 0) : 0;
	char *from, *to;
	double began, t;
	size_t at = 0, bytes = 0;

	if (!chunk || set < chunk) {
		fprintf(stderr, "usage: memcpy CHUNK SET\n");
		return 1;
	}
	from = malloc(set);
	to = malloc(set);
	if (!from || !to)
		return 1;
	memset(from, 1, set);
	memset(to, 2, set);
	began = now();
	do {
		memcpy(to + at, from + at, chunk);
		__asm__ volatile("" : : "r"(to + at) : "memory");
		bytes += chunk;
		at = at + 2 * chunk <= set ? at + chunk : 0;
		t = now() - began;
	} while (t < 0.5);
	printf("%.0f\n", bytes / t / (1 << 20));
	return 0;
}
