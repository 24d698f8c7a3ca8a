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
 * @recv: its post_recv
 * @poll: its poll_cq
 * @complete: write a CQE for each of the newest requests that were posted, sends or receives
 * @qp: a connected QP, ready to send
 * @cq: its CQ
 * @qpx: the QP by its ibv_wr_*() calls, NULL: it has none
 * @cqx: the CQ by its extended polling, NULL: it has none
 */
struct peer {
	int (*post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*poll)(struct ibv_cq *cq, int num, struct ibv_wc *wc);
	void (*complete)(unsigned int num, bool recv);
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_qp_ex *qpx;
	struct ibv_cq_ex *cqx;
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

/* A list of @num receives of one element. */
static inline void peer_recvs(struct ibv_recv_wr *wr, unsigned int num, struct ibv_sge *sge)
{
	unsigned int i;

	for (i = 0; i < num; i++) {
		wr[i].wr_id = i;
		wr[i].next = i + 1 < num ? &wr[i + 1] : NULL;
		wr[i].sg_list = sge;
		wr[i].num_sge = 1;
	}
}

/*
 * As peer_writes(), posted by the ibv_wr_*() calls. This and peer_poll_ex() are counted as a
 * whole: they are the same for each provider.
 */
static __attribute__((noinline, unused)) int peer_post_ex(struct ibv_qp_ex *qpx, unsigned int num,
							   struct ibv_sge *sge, bool in_wqe)
{
	unsigned int i;

	ibv_wr_start(qpx);
	for (i = 0; i < num; i++) {
		qpx->wr_id = i;
		qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(qpx, 9, 0x1000);
		if (in_wqe)
			ibv_wr_set_inline_data(qpx, (void *)(uintptr_t)sge->addr, sge->length);
		else
			ibv_wr_set_sge(qpx, sge->lkey, sge->addr, sge->length);
	}
	return ibv_wr_complete(qpx);
}

/* Poll up to @num completions and look at what a program looks at; returns their number. */
static __attribute__((noinline, unused)) unsigned int peer_poll_ex(struct ibv_cq_ex *cqx,
								    unsigned int num)
{
	struct ibv_poll_cq_attr attr = {};
	unsigned int n = 0;

	if (ibv_start_poll(cqx, &attr))
		return 0;
	do {
		if (cqx->status || cqx->wr_id >= num ||
		    ibv_wc_read_opcode(cqx) == IBV_WC_BIND_MW ||
		    ibv_wc_read_byte_len(cqx) > 4096)
			abort();
	} while (++n < num && !ibv_next_poll(cqx));
	ibv_end_poll(cqx);
	return n;
}

/*
 * WHAT BATCH ROUNDS, as for provider.c: inline, sge: RDMA WRITEs of 16 bytes, in the WQE or
 * by one element; recv: receives; empty: an empty CQ is polled. With "-ex" behind it, by the
 * extended calls.
 */
static inline int peer_run(const struct peer *p, int argc, char **argv)
{
	static char data[16];
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data), .lkey = 7 };
	const char *what = argc > 3 ? argv[1] : "";
	unsigned int batch = argc > 3 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 0;
	bool in_wqe = !strncmp(what, "inline", 6), recv = !strncmp(what, "recv", 4);
	bool empty = !strncmp(what, "empty", 5), ex = strstr(what, "-ex");
	struct ibv_send_wr wr[PEER_MAX_BATCH] = {}, *bad;
	struct ibv_recv_wr rwr[PEER_MAX_BATCH] = {}, *rbad;
	struct ibv_wc wc[PEER_MAX_BATCH];
	unsigned int want = empty ? 0 : batch;

	if (!batch || batch > PEER_MAX_BATCH || (ex && (!p->qpx || !p->cqx))) {
		fprintf(stderr, "usage: PROGRAM inline|sge|recv|empty[-ex] BATCH ROUNDS\n");
		return 2;
	}
	peer_writes(wr, batch, &sge, in_wqe);
	peer_recvs(rwr, batch, &sge);
	for (; rounds; rounds--) {
		if (recv && p->recv(p->qp, rwr, &rbad))
			abort();
		if (!recv && !empty && (ex ? peer_post_ex(p->qpx, batch, &sge, in_wqe) :
				       p->post(p->qp, wr, &bad)))
			abort();
		p->complete(want, recv);
		if ((ex ? peer_poll_ex(p->cqx, batch) :
			  (unsigned int)p->poll(p->cq, batch, wc)) != want)
			abort();
		if (want && !ex && wc[0].status)
			abort();
	}
	return 0;
}

#endif /* SKUA_BENCH_PEER_H */
