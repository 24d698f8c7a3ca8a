// SPDX-License-Identifier: GPL-2.0
/* Selective repeat: the loss recovery context, and who speaks the extension. */
#include <string.h>

#include "../icm.h"
#include "sr.h"

_Static_assert(SKUA_LRC_PSNS == 1 << SKUA_EXT_LOG_WINDOW_MAX, "largest window");

/* --- attributes --- */

static uint32_t log_window(const struct skua_qp_attr *a)
{
	return le32_get_bits(a->ext, SKUA_ATTR_EXT_LOG_WINDOW);
}

#define RING_BYTES	(SKUA_RECOVERY_RING * sizeof(struct skua_recovery_cmd))

/* Of struct skua_ext_slot and struct skua_ext_write. */
static uint64_t table_bytes(const struct skua_qp_attr *a)
{
	return SKUA_EXT_TABLE_BYTES(log_window(a));
}

/* Of struct skua_ext_recv. */
static uint64_t recvs_bytes(const struct skua_qp_attr *a)
{
	return sizeof(struct skua_ext_recv) << log_window(a);
}

bool sr_attr_ok(const struct skua_qp_attr *a)
{
	uint32_t mode = le32_get_bits(a->ext, SKUA_ATTR_EXT_MODE);

	if (le32_to_cpu(a->ext) & ~(SKUA_ATTR_EXT_MODE | SKUA_ATTR_EXT_LOG_WINDOW |
				    SKUA_ATTR_EXT_ONLOAD))
		return false;
	if (mode == SKUA_EXT_PLAIN)
		return !a->ext;
	return mode <= SKUA_EXT_ALWAYS && log_window(a) >= SKUA_EXT_LOG_WINDOW_MIN &&
	       log_window(a) <= SKUA_EXT_LOG_WINDOW_MAX;
}

/* The tables, the recovery ring if the driver keeps the loss state, and receives. */
static uint64_t ext_bytes(const struct skua_qp_attr *a, const struct qp *qp)
{
	uint64_t bytes = table_bytes(a);

	if (le32_to_cpu(a->ext) & SKUA_ATTR_EXT_ONLOAD)
		bytes += RING_BYTES;
	return recv_is_shared(qp) ? bytes + recvs_bytes(a) : bytes;
}

int sr_check(struct skua_dev *dev, const struct skua_cmd_modify_qp_in *in, const struct qp *qp)
{
	uint64_t table = le64_to_cpu(in->ext_table);
	bool onload = le32_to_cpu(in->attr.ext) & SKUA_ATTR_EXT_ONLOAD;

	if (!in->attr.ext)
		return table || in->ext_len ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK;
	if (onload && !dev_has(dev, SKUA_CAP_RECOVERY))
		return SKUA_CMD_ST_BAD_PARAM;
	if (!table || table % table_bytes(&in->attr) ||
	    le32_to_cpu(in->ext_len) != ext_bytes(&in->attr, qp))
		return SKUA_CMD_ST_BAD_PARAM;
	if (qp_index(qp->qpn) >= icm_num(dev, SKUA_ICM_LRC) ||
	    !icm_mapped(dev, SKUA_ICM_LRC, qp_index(qp->qpn)))
		return SKUA_CMD_ST_NO_ICM;
	return SKUA_CMD_ST_OK;
}

/* --- the context --- */

bool sr_open(struct skua_dev *dev, struct qp *qp, const struct skua_cmd_modify_qp_in *in)
{
	uint32_t index = qp_index(qp->qpn);
	struct skua_lrc *lrc;

	if (!in->attr.ext)
		return true;
	lrc = ctx_new(dev, SKUA_ICM_LRC, index);
	if (!lrc)
		return false;
	lrc->table = in->ext_table;
	if (recv_is_shared(qp))
		lrc->recvs = cpu_to_le64(le64_to_cpu(in->ext_table) + le32_to_cpu(in->ext_len) -
					 recvs_bytes(&in->attr));
	lrc->log_window = cpu_to_le32(log_window(&in->attr));
	qp->sqc->rec_ring = cpu_to_le64(le64_to_cpu(in->ext_table) + table_bytes(&in->attr));
	obj_set(dev, SKUA_ICM_LRC, index, true);
	ctx_put(dev, lrc);
	return true;
}

void sr_close(struct skua_dev *dev, struct qp *qp)
{
	uint32_t index = qp_index(qp->qpn);
	struct skua_lrc *lrc;

	/* Not by the attributes: they may be other ones when the context was read again. */
	if (!obj_valid(dev, SKUA_ICM_LRC, index))
		return;
	obj_set(dev, SKUA_ICM_LRC, index, false);
	lrc = ctx_new(dev, SKUA_ICM_LRC, index);
	if (lrc)
		ctx_put(dev, lrc);
}

bool lrc_check(struct skua_dev *dev, uint32_t index, const void *ctx)
{
	const struct skua_lrc *lrc = ctx;
	uint32_t log = le32_to_cpu(lrc->log_window);

	(void)dev;
	(void)index;
	return log >= SKUA_EXT_LOG_WINDOW_MIN && log <= SKUA_EXT_LOG_WINDOW_MAX;
}

struct skua_lrc *sr_lrc(struct turn *t)
{
	struct skua_lrc *lrc = ctx_get(t->dev, SKUA_ICM_LRC, qp_index(t->qp->qpn));

	if (!lrc && qp_state(t->qp) != SKUA_QP_ERR)
		qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
	return lrc;
}

void sr_lrc_put(struct turn *t, struct skua_lrc *lrc, bool dirty)
{
	if (dirty)
		ctx_dirty(t->dev, lrc);
	ctx_put(t->dev, lrc);
}

/* --- who speaks it --- */

void sr_apply(struct skua_sqc *sqc)
{
	uint32_t own = le32_get_bits(sqc->attr.ext, SKUA_ATTR_EXT_LOG_WINDOW);

	if (!sqc->attr.ext)
		return;
	sqc->valid |= cpu_to_le32(SKUA_SQC_EXT);
	/* Of these all words are used at any time. */
	if (le32_to_cpu(sqc->attr.ext) & SKUA_ATTR_EXT_ONLOAD)
		sqc->valid |= cpu_to_le32(SKUA_SQC_ONLOAD | SKUA_SQC_CI_SEQ);
	sqc->sr_window = (uint8_t)u32_encode_bits(own, SKUA_SQC_WINDOW_OWN);
}

void sr_use_window(struct turn *t, uint32_t log)
{
	struct skua_sqc *s = t->sqc;

	s->sr_window = (uint8_t)((s->sr_window & ~SKUA_SQC_WINDOW) | log);
	if (s->valid & cpu_to_le32(SKUA_SQC_RTT) || !turn_need_sq_rest(t))
		return;
	/* Until a round trip was measured, times are guesses. */
	s->rtt_time = 0;
	s->valid |= cpu_to_le32(SKUA_SQC_RTT);
}

/* Is it a PSN that the peer may have under way, or answer? */
static bool is_near(const struct turn *t, const struct skua_pkt *pkt)
{
	if (pkt->op->flags & IB_F_REQUEST)
		return sr_resp_is_near(t, ib_psn_diff(pkt->psn, le32_to_cpu(t->rqc->epsn)));
	return ib_psn_diff(pkt->psn, max_psn(t)) < 0 &&
	       ib_psn_diff(pkt->psn, una(t)) >= -SKUA_LRC_PSNS;
}

/*
 * Once heard it holds until RESET: a packet without it is a late one of the time before. The
 * window is the smaller of both ends'. As nothing takes it back, it is not heard from a stray
 * packet: a peer that does not know the extension drops all requests in its form.
 */
void sr_hear(struct turn *t, const struct skua_pkt *pkt)
{
	uint32_t log = pkt->resv7 & IB_RESV7_LOG_WINDOW;

	if (log > sr_log_window(t))
		log = sr_log_window(t);
	if (!t->reliable || log < SKUA_EXT_LOG_WINDOW_MIN)
		return;
	if (sr_on(t) && log >= u32_get_bits(t->sqc->sr_window, SKUA_SQC_WINDOW))
		return;
	if (!is_near(t, pkt))
		return;
	sr_use_window(t, log);
	ctx_dirty(t->dev, t->sqc);
}

uint32_t sr_bitmap_end(const struct skua_pkt *pkt)
{
	uint32_t n = pkt->payload_len, end;

	while (n && !pkt->payload[n - 1])
		n--;
	if (!n)
		return 0;
	end = 8 * n - (uint32_t)__builtin_clz(pkt->payload[n - 1]) + 24;
	return end < SKUA_LRC_PSNS ? end : SKUA_LRC_PSNS;
}

/* --- numbers of the message at ci --- */

void sr_follow_ci(struct turn *t, const struct flight *f)
{
	struct skua_sqc *s = t->sqc;

	s->ci_recv_seq = cpu_to_le32(recv_seq_after(le32_to_cpu(s->ci_recv_seq), f->op));
	s->ci_rr_seq = cpu_to_le32(rr_seq_after(le32_to_cpu(s->ci_rr_seq), f->op, f->psns));
	if (s->cur == s->hi && !sr_in_loss(t) && !sr_onload(s))
		s->valid &= ~cpu_to_le32(SKUA_SQC_CI_SEQ);
}

bool sr_count_ci(struct turn *t)
{
	struct skua_sqc *s = t->sqc;
	uint32_t index = le32_to_cpu(s->ci), end = le32_to_cpu(s->cur);
	uint32_t first = 0, recv = 0, rr = 0, wqes = 0;
	enum skua_vendor err;
	struct flight f;

	if (!turn_need_sq_rest(t))
		return false;
	/* While cur is behind ci they are known. */
	err = end - index > le32_to_cpu(s->pi) - index ? SKUA_VENDOR_WQE_CHANGED :
							 SKUA_VENDOR_NONE;
	while (!err && index != end) {
		err = req_flight_at(t, index, &f);
		if (index == le32_to_cpu(s->ci))
			first = f.blocks;
		if (err || !f.blocks || f.blocks > end - index || ++wqes > SR_WQES) {
			err = SKUA_VENDOR_WQE_CHANGED;
			break;
		}
		recv = recv_seq_after(recv, f.op);
		rr = rr_seq_after(rr, f.op, f.psns);
		index += f.blocks;
	}
	if (err) {
		req_fail(t, first, SKUA_CQE_LOC_QP_OP_ERR, err);
		return false;
	}
	s->ci_recv_seq = cpu_to_le32(psn_sub(le32_to_cpu(s->recv_seq), recv));
	s->ci_rr_seq = cpu_to_le32(psn_sub(le32_to_cpu(s->rr_seq), rr));
	s->valid |= cpu_to_le32(SKUA_SQC_CI_SEQ);
	return true;
}
