/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What another provider's fast path costs, driven as tests/bench/provider.c drives Skua's:
 * its post and poll against rings in memory, which a peer_NAME.c sets up as the provider's
 * own create functions would.
 */
#ifndef SKUA_BENCH_PEER_H
#define SKUA_BENCH_PEER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#define PEER_QPN	0x1234
#define PEER_LOG_RING	10
#define PEER_RING	(1U << PEER_LOG_RING)
#define PEER_MAX_BATCH	64

/**
 * struct peer - a provider
 * @post: its post_send
 * @poll: its poll_cq
 * @complete: write a CQE for each of the newest requests that were posted
 * @qp: a connected QP, ready to send
 * @cq: its CQ
 */
struct peer {
	int (*post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*poll)(struct ibv_cq *cq, int num, struct ibv_wc *wc);
	void (*complete)(unsigned int num);
	struct ibv_qp *qp;
	struct ibv_cq *cq;
};

static inline void *peer_zalloc(size_t len)
{
	void *mem = aligned_alloc(4096, (len + 4095) / 4096 * 4096);

	if (!mem)
		abort();
	return memset(mem, 0, len);
}

/* What is posted: a list of @num WRITEs of one element. */
static inline void peer_writes(struct ibv_send_wr *wr, unsigned int num, struct ibv_sge *sge,
			       bool in_wqe)
{
	unsigned int i;

	for (i = 0; i < num; i++) {
		wr[i].wr_id = i;
		wr[i].next = i + 1 < num ? &wr[i + 1] : NULL;
		wr[i].sg_list = sge;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = IBV_SEND_SIGNALED | (in_wqe ? IBV_SEND_INLINE : 0);
		wr[i].wr.rdma.remote_addr = 0x1000;
		wr[i].wr.rdma.rkey = 9;
	}
}

/* WHAT BATCH ROUNDS, as for provider.c: inline, sge, empty */
static inline int peer_run(const struct peer *p, int argc, char **argv)
{
	static char data[16];
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data), .lkey = 7 };
	const char *what = argc > 3 ? argv[1] : "";
	unsigned int batch = argc > 3 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 0;
	struct ibv_send_wr wr[PEER_MAX_BATCH] = {}, *bad;
	struct ibv_wc wc[PEER_MAX_BATCH];

	if (!batch || batch > PEER_MAX_BATCH)
		return 2;
	peer_writes(wr, batch, &sge, !strcmp(what, "inline"));
	for (; rounds; rounds--) {
		if (!strcmp(what, "empty")) {
			if (p->poll(p->cq, batch, wc))
				abort();
			continue;
		}
		if (p->post(p->qp, wr, &bad))
			abort();
		p->complete(batch);
		if (p->poll(p->cq, batch, wc) != (int)batch || wc[0].status)
			abort();
	}
	return 0;
}

#endif /* SKUA_BENCH_PEER_H */
