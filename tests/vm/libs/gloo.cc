// SPDX-License-Identifier: GPL-2.0
/*
 * gloo RANK RANKS DEVICE GID DIRECTORY: an all-reduce and a broadcast of gloo over ibverbs, with
 * several sizes; every number is looked at. The ranks find each other by files in DIRECTORY.
 *
 * No algorithm is destroyed before all ranks are done, nor at the end: gloo's algorithms do not wait
 * for the completion of their last sends (BroadcastOneToAll's clearToSendBuffer), and its buffers
 * abort the program if they go before it.
 */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unistd.h>
#include <vector>

#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

static const int sizes[] = { 1, 100, 5000, 100000 };
static int rank, ranks, bad;
static std::vector<std::unique_ptr<gloo::Algorithm>> algorithms;
static std::vector<std::unique_ptr<std::vector<int>>> memory;

static int *numbers(int count)
{
	memory.push_back(std::make_unique<std::vector<int>>(count));
	return memory.back()->data();
}

/* check WHAT: is each number FACTOR times its position? */
static void check(const char *what, const int *p, int count, int factor)
{
	for (int i = 0; i < count; i++) {
		if (p[i] == factor * (i + 1))
			continue;
		fprintf(stderr, "rank %d: %s of %d: number %d is %d, not %d\n", rank, what, count,
			i, p[i], factor * (i + 1));
		bad++;
		return;
	}
}

/* Twice, since the second time meets what the first has left */
template <class A> static void allreduce(const char *what,
					 const std::shared_ptr<gloo::Context> &context, int count)
{
	int *p = numbers(count);

	algorithms.push_back(std::make_unique<A>(context, std::vector<int *>{ p }, count));
	for (int turn = 1; turn <= 2; turn++) {
		for (int i = 0; i < count; i++)
			p[i] = turn * (rank + 1) * (i + 1);
		algorithms.back()->run();
		check(what, p, count, turn * ranks * (ranks + 1) / 2);
	}
}

static void broadcast(const std::shared_ptr<gloo::Context> &context, int count)
{
	for (int root = 0; root < ranks; root++) {
		int *p = numbers(count);

		for (int i = 0; i < count; i++)
			p[i] = rank == root ? (root + 7) * (i + 1) : 0;
		algorithms.push_back(std::make_unique<gloo::BroadcastOneToAll<int>>(
			context, std::vector<int *>{ p }, count, root));
		algorithms.back()->run();
		check("broadcast", p, count, root + 7);
	}
}

static void all_done(gloo::rendezvous::Store &store)
{
	std::vector<std::string> keys;

	for (int i = 0; i < ranks; i++)
		keys.push_back("done" + std::to_string(i));
	store.set(keys[rank], std::vector<char>{ 'x' });
	store.wait(keys, std::chrono::seconds(100));
}

int main(int argc, char **argv)
{
	if (argc != 6)
		return 2;
	rank = atoi(argv[1]);
	ranks = atoi(argv[2]);
	gloo::transport::ibverbs::attr attr = { argv[3], 1, atoi(argv[4]) };
	gloo::rendezvous::FileStore store(argv[5]);
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);

	context->setTimeout(std::chrono::seconds(100));
	context->connectFullMesh(store, device);
	for (int count : sizes) {
		allreduce<gloo::AllreduceRingChunked<int>>("ring", context, count);
		allreduce<gloo::AllreduceHalvingDoubling<int>>("halving", context, count);
		broadcast(context, count);
	}
	all_done(store);
	printf("gloo: rank %d of %d, %zu algorithms, %d wrong\n", rank, ranks, algorithms.size(), bad);
	fflush(stdout);
	_exit(bad != 0);
}
