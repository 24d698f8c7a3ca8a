// SPDX-License-Identifier: GPL-2.0
/*
 * mpi ROUNDS [two-sided]: ranks of MPI send each other, by collectives and by one-sided operations,
 * what only source, destination, size and round make, and look at every byte that they get. What is
 * wrong is counted, and rank 0 says so.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE 300000
#define MAX_RANKS 64

static const int sizes[] = { 1, 64, 5000, MAX_SIZE };
static int me, ranks, turn;
static unsigned char *out, *got;
static int bad;

static void fill(unsigned char *p, int src, int dst, int size)
{
	unsigned int v = (unsigned int)((src * 61 + dst) * 61 + turn) * 61 + size;

	for (int i = 0; i < size; i++) {
		v = v * 1664525 + 1013904223;
		p[i] = v >> 24;
	}
}

/* check P: is it what SRC has for DST? It is cleared, so that nothing old is found there */
static void check(const char *what, unsigned char *p, int src, int dst, int size)
{
	static unsigned char want[MAX_SIZE];

	fill(want, src, dst, size);
	if (memcmp(p, want, size)) {
		fprintf(stderr, "rank %d, round %d: %s of %d bytes from %d is wrong\n",
			me, turn, what, size, src);
		bad++;
	}
	memset(p, 0, size);
}

static void ring(int size)
{
	int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;

	fill(out, me, right, size);
	MPI_Sendrecv(out, size, MPI_BYTE, right, size, got, size, MPI_BYTE, left, size,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check("ring", got, left, me, size);
}

static void alltoall(int size)
{
	for (int i = 0; i < ranks; i++)
		fill(out + (size_t)i * size, me, i, size);
	MPI_Alltoall(out, size, MPI_BYTE, got, size, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		check("alltoall", got + (size_t)i * size, i, me, size);
}

static void broadcast(int size)
{
	for (int root = 0; root < ranks; root++) {
		if (me == root)
			fill(got, root, root, size);
		MPI_Bcast(got, size, MPI_BYTE, root, MPI_COMM_WORLD);
		check("broadcast", got, root, root, size);
	}
}

static void allreduce(int size)
{
	int n = (size + 3) / 4, *in = (int *)out, *sum = (int *)got;

	for (int i = 0; i < n; i++)
		in[i] = (me + 1) * (i + turn + 1);
	MPI_Allreduce(in, sum, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		bad += sum[i] != ranks * (ranks + 1) / 2 * (i + turn + 1);
}

/* Each rank has added 1 and found @before: each of 0 ... ranks - 1 was found once */
static void each_found_another(long long before)
{
	long long all[MAX_RANKS];
	int found[MAX_RANKS] = { 0 };

	MPI_Allgather(&before, 1, MPI_LONG_LONG, all, 1, MPI_LONG_LONG, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		if (all[i] >= 0 && all[i] < ranks && !found[all[i]]++)
			continue;
		fprintf(stderr, "rank %d, round %d: rank %d found %lld\n", me, turn, i, all[i]);
		bad++;
	}
}

/* Each rank puts to its right neighbour, gets from its left one, and adds to a counter of rank 0 */
static void one_sided(int size)
{
	int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
	long long one = 1, before = -1, *counter;
	unsigned char *base;
	MPI_Win win;

	MPI_Win_allocate(2 * MAX_SIZE + 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	counter = (long long *)(base + 2 * MAX_SIZE);
	memset(base, 0, MAX_SIZE);
	*counter = 0;
	fill(base + MAX_SIZE, me, me, size);	/* to be got */
	fill(out, me, right, size);
	MPI_Win_fence(0, win);
	MPI_Put(out, size, MPI_BYTE, right, 0, size, MPI_BYTE, win);
	MPI_Get(got, size, MPI_BYTE, left, MAX_SIZE, size, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	check("put", base, left, me, size);
	check("get", got, left, left, size);
	MPI_Win_fence(0, win);
	MPI_Win_lock_all(0, win);
	MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 2 * MAX_SIZE, MPI_SUM, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	each_found_another(before);
	if (!me) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		bad += *counter != ranks;
		MPI_Win_unlock(0, win);
	}
	MPI_Win_free(&win);
}

static int hosts(void)
{
	char name[MPI_MAX_PROCESSOR_NAME] = "", all[MAX_RANKS][MPI_MAX_PROCESSOR_NAME];
	int len, n = 0;

	MPI_Get_processor_name(name, &len);
	MPI_Allgather(name, sizeof(name), MPI_CHAR, all, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		int j = 0;

		while (strcmp(all[j], all[i]))
			j++;
		n += j == i;
	}
	return n;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1, sum, n;
	int two_sided = argc > 2 && !strcmp(argv[2], "two-sided");

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks > MAX_RANKS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	out = calloc(ranks, MAX_SIZE);
	got = calloc(ranks, MAX_SIZE);
	if (!out || !got)
		MPI_Abort(MPI_COMM_WORLD, 2);
	n = hosts();
	for (turn = 0; turn < rounds; turn++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			ring(sizes[i]);
			alltoall(sizes[i]);
			broadcast(sizes[i]);
			allreduce(sizes[i]);
			if (!two_sided)
				one_sided(sizes[i]);
		}
	}
	MPI_Allreduce(&bad, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!me)
		printf("mpi: %d ranks on %d hosts, %d rounds, %d wrong\n", ranks, n, rounds, sum);
	MPI_Finalize();
	return sum != 0;
}
