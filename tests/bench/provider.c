// SPDX-License-Identifier: GPL-2.0
/*
 * What the provider's fast path costs: run under callgrind by tests/bench/provider, which
 * counts the instructions of one function.
 *
 *   bench WHAT BATCH ROUNDS
 *
 * WHAT: inline (RDMA WRITE of 16 bytes in the WQE), sge (one element), recv, poll, empty.
 * BATCH: requests of a list, or completions of a poll.
 */
#include <stdio.h>

#include "fake.h"
#include "peer.h"

#define MAX_BATCH	PEER_MAX_BATCH

static struct ibv_qp *qp;
static struct ibv_cq *cq;
static uint32_t posted;

static void post_sends(unsigned int n, bool in_wqe)
{
	static char data[16];
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data), .lkey = 7 };
	struct ibv_send_wr wr[MAX_BATCH] = {}, *bad;

	peer_writes(wr, n, &sge, in_wqe);
	if (ibv_post_send(qp, wr, &bad))
		abort();
}

static void post_recvs(unsigned int n)
{
	struct ibv_sge sge = { .addr = 0x2000, .length = 64, .lkey = 6 };
	struct ibv_recv_wr wr[MAX_BATCH] = {}, *bad;
	unsigned int i;

	for (i = 0; i < n; i++) {
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
	}
	if (ibv_post_recv(qp, wr, &bad))
		abort();
}

/* Each request took one block, or one receive WQE */
static void complete(unsigned int n, enum skua_cqe_op op)
{
	struct skua_cqe cqe = { .qpn = cpu_to_le32(qp->qp_num) };

	for (; n; n--) {
		cqe.what = fake_what(posted++, op, SKUA_CQE_OK);
		fake_cqe(fake_cq(cq), &cqe);
	}
}

int main(int argc, char **argv)
{
	static const struct ibv_qp_cap cap = { 512, 512, 2, 1, 16 };
	const char *what = argc > 3 ? argv[1] : "";
	bool recv = !strcmp(what, "recv"), empty = !strcmp(what, "empty");
	unsigned int batch = argc > 3 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 0;
	struct ibv_wc wc[MAX_BATCH];

	if (!batch || batch > MAX_BATCH) {
		fprintf(stderr, "usage: bench WHAT BATCH ROUNDS\n");
		return 2;
	}
	if (fake_setup(NULL))
		return 1;
	fake_open();
	cq = fake_make_cq(1024);
	qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	for (; rounds; rounds--) {
		if (empty) {
			if (ibv_poll_cq(cq, batch, wc))
				abort();
			continue;
		}
		if (recv)
			post_recvs(batch);
		else
			post_sends(batch, !strcmp(what, "inline"));
		complete(batch, recv ? SKUA_CQE_RECV : SKUA_CQE_REQ);
		if (ibv_poll_cq(cq, batch, wc) != (int)batch)
			abort();
	}
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
	return fake_teardown(NULL);
}
