// SPDX-License-Identifier: GPL-2.0
/*
 * What the provider's fast path costs: run under callgrind by tests/bench/provider, which
 * counts the instructions of one function.
 *
 *   bench WHAT BATCH ROUNDS
 *
 * WHAT and BATCH: see peer_run().
 */
#include <stdio.h>

#include "fake.h"
#include "peer.h"

static struct ibv_qp *qp;
static struct ibv_cq *cq;
static uint32_t posted;

/* Each request took one block, or one receive WQE */
static void complete(unsigned int n, bool recv)
{
	struct skua_cqe cqe = { .qpn = cpu_to_le32(qp->qp_num) };

	for (; n; n--) {
		cqe.what = fake_what(posted++, recv ? SKUA_CQE_RECV : SKUA_CQE_REQ, SKUA_CQE_OK);
		fake_cqe(fake_cq(cq), &cqe);
	}
}

static void make_qp(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { 512, 512, 2, 1, 16 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = fake.pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	qp = ibv_create_qp_ex(fake.ctx, &attr);
	if (!qp)
		abort();
	fake_modify(qp, IBV_QPS_RTS);
}

int main(int argc, char **argv)
{
	struct peer peer = { .complete = complete };
	int ret;

	if (fake_setup(NULL))
		return 1;
	fake_open();
	cq = fake_make_cq(1024);
	make_qp();
	peer.post = qp->context->ops.post_send;
	peer.recv = qp->context->ops.post_recv;
	peer.poll = qp->context->ops.poll_cq;
	peer.qp = qp;
	peer.cq = cq;
	peer.qpx = ibv_qp_to_qp_ex(qp);
	peer.cqx = (struct ibv_cq_ex *)cq;
	ret = peer_run(&peer, argc, argv);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
	return fake_teardown(NULL) || ret;
}
