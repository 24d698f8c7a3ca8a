// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of a QP in error: all WQEs are completed with WR_FLUSH_ERR, in order and the send queue
 * first, including WQEs that are posted later. In SQE this is done for the send queue only.
 */
#include "engine.h"

/* Maximum number of WQEs flushed in a turn, and of invalid blocks passed over. */
#define FLUSH_WQES	16
#define FLUSH_BLOCKS	256

/* False: the CQ does not exist any more, or is in error. */
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

/* The last WQE may reach beyond @end, and the queue's own turns may have flushed more than that. */
static bool sq_flushed(const struct turn *t, uint32_t end)
{
	return t->sqc->ci == t->sqc->pi || (int32_t)(end - le32_to_cpu(t->sqc->ci)) <= 0;
}

/*
 * Flush the WQEs before the block @end. If no WQE begins where one should, because software has
 * overwritten the ring, blocks are passed over until one does.
 */
static bool flush_sq(struct turn *t, uint32_t end, unsigned int *budget)
{
	struct wqe_win *win = &t->dev->engine->win;
	unsigned int blocks = FLUSH_BLOCKS;

	win->blocks = 0;
	while (!sq_flushed(t, end)) {
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

/* Flush the WQEs that the QP has taken from SRQs; it will not take more. */
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

	if (flush_sq(t, le32_to_cpu(t->sqc->pi), &budget))
		return true;
	if (qp_state(t->qp) != SKUA_QP_ERR)
		return false;
	return flush_rq(t, &budget) || flush_srq(t, &budget);
}

bool engine_flushed(struct skua_dev *dev, struct qp *qp, uint32_t end)
{
	unsigned int budget = FLUSH_WQES;
	struct turn t;

	turn_begin(&t, dev, qp);
	return !flush_sq(&t, end, &budget);
}
