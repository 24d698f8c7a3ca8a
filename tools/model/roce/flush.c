// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of a QP in error: every WQE not yet reported is, send queue first, with
 * WR_FLUSH_ERR and in order. Also what is posted later. In SQE the send queue alone.
 */
#include "engine.h"

/* WQEs of a turn, and blocks of nonsense passed over in one. */
#define FLUSH_WQES	16
#define FLUSH_BLOCKS	256

/* False: there is no CQ to tell any more. */
static bool flush_cqe(struct turn *t, uint32_t cqn, enum skua_cqe_op op, uint32_t index,
		      enum skua_counter cnt)
{
	struct skua_cqe cqe = {
		.what = le32_encode_bits(index & 0xffff, SKUA_CQE_WQE_INDEX) |
			le32_encode_bits(op, SKUA_CQE_OPCODE) |
			le32_encode_bits(SKUA_CQE_WR_FLUSH_ERR, SKUA_CQE_STATUS),
	};

	turn_count(t, cnt);
	return post_cqe(t, cqn, &cqe, false);
}

/*
 * Where a WQE should begin but none does, because the ring was overwritten, block
 * after block is passed over until one does again.
 */
static bool flush_sq(struct turn *t, unsigned int *budget)
{
	struct wqe_win *win = &t->dev->engine->win;
	unsigned int blocks = FLUSH_BLOCKS;

	win->blocks = 0;
	while (t->sqc->ci != t->sqc->pi) {
		uint32_t ci = le32_to_cpu(t->sqc->ci);
		uint32_t n = wqe_blocks(t->dev, t->qp, win, ci);

		if (!*budget || !blocks--)
			return true;
		t->sqc->ci = cpu_to_le32(ci + (n ? n : 1));
		if (!n)
			continue;
		--*budget;
		if (!flush_cqe(t, le32_to_cpu(t->sqc->cfg.cqn), SKUA_CQE_REQ, ci,
			       SKUA_CNT_REQ_CQE_FLUSH))
			t->sqc->ci = t->sqc->pi;
	}
	t->sqc->cur = t->sqc->ci;
	t->sqc->hi = t->sqc->ci;
	return false;
}

static bool flush_rq(struct turn *t, unsigned int *budget)
{
	while (rq_avail(t->dev, t->qp)) {
		uint32_t ci = le32_to_cpu(t->rqc->ci);

		if (!*budget)
			return true;
		--*budget;
		t->rqc->ci = cpu_to_le32(ci + 1);
		if (!flush_cqe(t, le32_to_cpu(t->rqc->cfg.cqn), SKUA_CQE_RECV, ci,
			       SKUA_CNT_RESP_CQE_FLUSH))
			t->rqc->ci = t->rqc->pi;
	}
	return false;
}

/* What the QP took from SRQs, and that it takes nothing more. */
static bool flush_srq(struct turn *t, unsigned int *budget)
{
	if (!recv_is_shared(t->qp))
		return false;
	if (recv_give_up(t, budget))
		return true;
	if (le32_to_cpu(t->sqc->valid) & SKUA_SQC_LAST_WQE_SENT)
		return false;
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_LAST_WQE_SENT);
	qp_event(t->dev, t->sqc, SKUA_QP_EV_LAST_WQE);
	return false;
}

bool flush_run(struct turn *t)
{
	unsigned int budget = FLUSH_WQES;

	if (flush_sq(t, &budget))
		return true;
	if (qp_state(t->qp) != SKUA_QP_ERR)
		return false;
	return flush_rq(t, &budget) || flush_srq(t, &budget);
}

/* A ring's worth at most, for software that waits for its command. */
void flush_sq_all(struct turn *t)
{
	unsigned int budget;

	do {
		budget = FLUSH_WQES;
	} while (flush_sq(t, &budget));
}
