// SPDX-License-Identifier: GPL-2.0
/* The provider of erdma; see peer.h. */
#include <config.h>

#include <util/mmio.h>
#include <util/udma_barrier.h>
#include <util/util.h>

#include "erdma.h"
#include "erdma_db.h"
#include "erdma_hw.h"
#include "erdma_verbs.h"
#include "peer.h"

static struct erdma_context ctx;
static struct erdma_qp qp;
static struct erdma_cq cq;
static uint32_t done;
static uint16_t first;

static void setup(void)
{
	struct erdma_qp **table = peer_zalloc((ERDMA_QP_TABLE_MASK + 1) * sizeof(*table));

	table[PEER_QPN & ERDMA_QP_TABLE_MASK] = &qp;
	ctx.qp_table[PEER_QPN >> ERDMA_QP_TABLE_SHIFT].table = table;
	qp.base_qp.context = &ctx.ibv_ctx.context;
	qp.base_qp.state = IBV_QPS_RTS;
	qp.id = PEER_QPN;
	qp.sq.depth = PEER_RING;
	qp.sq.qbuf = peer_zalloc(PEER_RING * SQEBB_SIZE);
	qp.sq.wr_tbl = peer_zalloc(PEER_RING * sizeof(*qp.sq.wr_tbl));
	qp.sq.db = peer_zalloc(4096);
	qp.sq.db_record = peer_zalloc(64);
	pthread_spin_init(&qp.sq_lock, PTHREAD_PROCESS_PRIVATE);
	qp.rq.depth = PEER_RING;
	qp.rq.qbuf = peer_zalloc(PEER_RING * sizeof(struct erdma_rqe));
	qp.rq.wr_tbl = peer_zalloc(PEER_RING * sizeof(*qp.rq.wr_tbl));
	qp.rq.db = peer_zalloc(4096);
	qp.rq.db_record = peer_zalloc(64);
	pthread_spin_init(&qp.rq_lock, PTHREAD_PROCESS_PRIVATE);

	cq.base_cq.context = &ctx.ibv_ctx.context;
	cq.depth = PEER_RING;
	cq.queue = peer_zalloc(PEER_RING * sizeof(*cq.queue));
	pthread_spin_init(&cq.lock, PTHREAD_PROCESS_PRIVATE);
}

/* A WRITE takes as many blocks as its header says. */
static uint16_t blocks_of(uint16_t index)
{
	const char *ring = qp.sq.qbuf;
	uint64_t hdr;

	memcpy(&hdr, ring + index % PEER_RING * SQEBB_SIZE, sizeof(hdr));
	return FIELD_GET(ERDMA_SQE_HDR_WQEBB_CNT_MASK, le64toh(hdr)) + 1;
}

static void complete(unsigned int num, bool recv)
{
	for (; num; num--, done++) {
		struct erdma_cqe *cqe = &cq.queue[done % PEER_RING];

		cqe->qpn = htobe32(PEER_QPN);
		cqe->qe_idx = htobe32(recv ? done + 1 : first);
		cqe->hdr = htobe32(FIELD_PREP(ERDMA_CQE_HDR_OWNER_MASK,
					      !(done >> PEER_LOG_RING & 1)) |
				   FIELD_PREP(ERDMA_CQE_HDR_OPCODE_MASK,
					      recv ? ERDMA_OP_RECEIVE : ERDMA_OP_WRITE) |
				   FIELD_PREP(ERDMA_CQE_HDR_QTYPE_MASK,
					      recv ? ERDMA_CQE_QTYPE_RQ : ERDMA_CQE_QTYPE_SQ));
		if (!recv)
			first += blocks_of(first);
	}
}

int main(int argc, char **argv)
{
	static const struct peer peer = {
		erdma_post_send, erdma_post_recv, erdma_poll_cq, complete, &qp.base_qp,
		&cq.base_cq,
	};

	setup();
	return peer_run(&peer, argc, argv);
}
