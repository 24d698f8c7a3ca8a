// SPDX-License-Identifier: GPL-2.0
/* The provider of mlx5; see peer.h. BlueFlame is not used: an inline WQE takes a doorbell. */
#include <config.h>

#include "mlx5.h"
#include "wqe.h"
#include "peer.h"

static struct mlx5_context ctx;
static struct mlx5_bf bf;
static struct mlx5_qp qp;
static struct mlx5_cq cq;
static uint32_t done;

static void setup_qp(void)
{
	const struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *ibqp = &qp.verbs_qp.qp;

	bf.reg = peer_zalloc(4096);
	mlx5_spinlock_init(&bf.lock, 1);
	ibqp->context = &ctx.ibv_ctx.context;
	ibqp->qp_type = IBV_QPT_RC;
	ibqp->qp_num = PEER_QPN;
	ibqp->state = IBV_QPS_RTS;
	ibqp->send_cq = &cq.verbs_cq.cq;
	ibqp->recv_cq = &cq.verbs_cq.cq;
	qp.ibv_qp = ibqp;
	qp.bf = &bf;
	qp.db = peer_zalloc(64);
	qp.rsc.type = MLX5_RSC_TYPE_QP;
	qp.rsc.rsn = PEER_QPN;
	qp.max_inline_data = 200;
	qp.sq_start = peer_zalloc(PEER_RING * MLX5_SEND_WQE_BB);
	qp.sq.qend = (char *)qp.sq_start + PEER_RING * MLX5_SEND_WQE_BB;
	qp.sq.wqe_cnt = PEER_RING;
	qp.sq.max_post = PEER_RING;
	qp.sq.wqe_shift = 6;
	qp.sq.max_gs = 30;
	qp.sq.qp_state_max_gs = 30;
	qp.sq.wrid = peer_zalloc(PEER_RING * sizeof(*qp.sq.wrid));
	qp.sq.wqe_head = peer_zalloc(PEER_RING * sizeof(*qp.sq.wqe_head));
	qp.sq.wr_data = peer_zalloc(PEER_RING * sizeof(*qp.sq.wr_data));
	mlx5_spinlock_init(&qp.sq.lock, 1);
	qp.buf.buf = peer_zalloc(PEER_RING * sizeof(struct mlx5_wqe_data_seg));
	qp.rq.wqe_cnt = PEER_RING;
	qp.rq.max_post = PEER_RING;
	qp.rq.wqe_shift = 4;
	qp.rq.max_gs = 1;
	qp.rq.qp_state_max_gs = 1;
	qp.rq.wrid = peer_zalloc(PEER_RING * sizeof(*qp.rq.wrid));
	mlx5_spinlock_init(&qp.rq.lock, 1);
	if (mlx5_qp_fill_wr_pfns(&qp, &attr, NULL))
		abort();
	pthread_mutex_init(&ctx.qp_table_mutex, NULL);
	if (mlx5_store_qp(&ctx, PEER_QPN, &qp))
		abort();
}

static struct mlx5_cqe64 *cqe_at(uint32_t index)
{
	return (struct mlx5_cqe64 *)cq.buf_a.buf + index % PEER_RING;
}

static void setup_cq(void)
{
	const struct ibv_cq_init_attr_ex attr = { .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	uint32_t i;

	cq.verbs_cq.cq.context = &ctx.ibv_ctx.context;
	cq.verbs_cq.cq.cqe = PEER_RING - 1;
	cq.cqe_sz = sizeof(struct mlx5_cqe64);
	cq.buf_a.buf = peer_zalloc(PEER_RING * sizeof(struct mlx5_cqe64));
	cq.active_buf = &cq.buf_a;
	cq.dbrec = peer_zalloc(64);
	mlx5_spinlock_init(&cq.lock, 1);
	if (mlx5_cq_fill_pfns(&cq, &attr, &ctx))
		abort();
	for (i = 0; i < PEER_RING; i++)
		cqe_at(i)->op_own = MLX5_CQE_INVALID << 4;
}

/* A WRITE of 16 bytes, inline or not, is one block */
static void complete(unsigned int num, bool recv)
{
	for (; num; num--, done++) {
		struct mlx5_cqe64 *cqe = cqe_at(done);

		cqe->sop_drop_qpn = htobe32(MLX5_OPCODE_RDMA_WRITE << 24 | PEER_QPN);
		cqe->wqe_counter = htobe16(done);
		cqe->op_own = (recv ? MLX5_CQE_RESP_SEND : MLX5_CQE_REQ) << 4 | (done >> PEER_LOG_RING & 1);
	}
}

int main(int argc, char **argv)
{
	static const struct peer peer = {
		mlx5_post_send, mlx5_post_recv, mlx5_poll_cq, complete, &qp.verbs_qp.qp,
		&cq.verbs_cq.cq, &qp.verbs_qp.qp_ex, &cq.verbs_cq.cq_ex,
	};

	setup_cq();
	setup_qp();
	return peer_run(&peer, argc, argv);
}
