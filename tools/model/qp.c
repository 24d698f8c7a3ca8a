// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: lookup, creation and destruction, and the send doorbell. */
#include <string.h>

#include "cmd.h"
#include "icm.h"
#include "roce/hdr.h"

static uint32_t sq_flags(const struct skua_sq_cfg *cfg)
{
	return le32_to_cpu(cfg->flags);
}

static uint32_t sq_blocks(const struct skua_sq_cfg *cfg)
{
	return 1u << le32_get_bits(cfg->flags, SKUA_QP_LOG_SQ);
}

static uint64_t rq_bytes(const struct skua_rq_cfg *cfg)
{
	return (uint64_t)SKUA_WQE_SEG << (le32_get_bits(cfg->flags, SKUA_RQ_LOG_SIZE) +
					  le32_get_bits(cfg->flags, SKUA_RQ_LOG_STRIDE));
}

/* --- validity of a context --- */

static bool sqn_ok(const struct skua_sq_cfg *cfg)
{
	return !(le32_to_cpu(cfg->qpn) & ~IB_QPN_MASK);
}

static bool sq_ok(struct skua_dev *dev, const struct skua_sq_cfg *cfg)
{
	if (le32_get_bits(cfg->flags, SKUA_QP_TYPE) > SKUA_QP_RAW_ETH ||
	    le32_get_bits(cfg->flags, SKUA_QP_LOG_SQ) > MODEL_LOG_SQ_MAX ||
	    le32_to_cpu(cfg->uar) >= dev_uars(dev))
		return false;
	if (sq_flags(cfg) & SKUA_QP_F_NO_SQ)
		return all_zero(&cfg->ring, sizeof(cfg->ring)) && sq_blocks(cfg) == 1;
	return ring_ok(dev, &cfg->ring, (uint64_t)sq_blocks(cfg) * SKUA_WQE_BLOCK);
}

static bool rq_ok(struct skua_dev *dev, const struct skua_rq_cfg *cfg)
{
	return !(le32_to_cpu(cfg->flags) & ~(SKUA_RQ_LOG_SIZE | SKUA_RQ_LOG_STRIDE | SKUA_RQ_GRO)) &&
	       le32_get_bits(cfg->flags, SKUA_RQ_LOG_SIZE) <= MODEL_LOG_RQ_MAX &&
	       le32_get_bits(cfg->flags, SKUA_RQ_LOG_STRIDE) <= MODEL_LOG_RQ_STRIDE_MAX &&
	       ring_ok(dev, &cfg->ring, rq_bytes(cfg));
}

/* Is the sector of this word among those read? */
#define HAS(have, type, word)	((have) >> offsetof(type, word) / CTX_SECTOR & 1)

/* Check each sector by itself, then what depends on two of them. */
_Static_assert(offsetof(struct skua_sqc, cfg.flags) / CTX_SECTOR ==
	       (offsetof(struct skua_sqc, cfg.dbr) - 1) / CTX_SECTOR, "flags to ring");
_Static_assert(offsetof(struct skua_sqc, cfg.qpn) / CTX_SECTOR ==
	       offsetof(struct skua_sqc, attr.state) / CTX_SECTOR, "number and state");
_Static_assert(offsetof(struct skua_sqc, rec_pi) / CTX_SECTOR ==
	       offsetof(struct skua_sqc, rec_ci) / CTX_SECTOR, "both ends of the recovery ring");

bool sqc_check(struct skua_dev *dev, uint32_t index, const void *ctx, uint32_t have)
{
	const bool pi = HAS(have, struct skua_sqc, pi), cfg = HAS(have, struct skua_sqc, cfg.flags);
	const struct skua_sqc *sqc = ctx;

	if (pi && !(le32_to_cpu(sqc->valid) & SKUA_SQC_VALID))
		return false;
	if (HAS(have, struct skua_sqc, counter) && !set_ok(dev, le32_to_cpu(sqc->counter)))
		return false;
	if (HAS(have, struct skua_sqc, sr_window) &&
	    (u32_get_bits(sqc->sr_window, SKUA_SQC_WINDOW) > SKUA_EXT_LOG_WINDOW_MAX ||
	     u32_get_bits(sqc->sr_window, SKUA_SQC_WINDOW_OWN) > SKUA_EXT_LOG_WINDOW_MAX))
		return false;
	if (HAS(have, struct skua_sqc, local) && le16_to_cpu(sqc->local) > MODEL_LOCALS)
		return false;
	if (HAS(have, struct skua_sqc, rec_pi) &&
	    le32_to_cpu(sqc->rec_pi) - le32_to_cpu(sqc->rec_ci) > SKUA_RECOVERY_RING)
		return false;
	if (cfg && !sq_ok(dev, &sqc->cfg))
		return false;
	if (HAS(have, struct skua_sqc, attr.state) &&
	    (!sqn_ok(&sqc->cfg) || qp_index(le32_to_cpu(sqc->cfg.qpn)) != index ||
	     le32_get_bits(sqc->attr.state, SKUA_ATTR_STATE) > SKUA_QP_ERR))
		return false;
	if (pi && HAS(have, struct skua_sqc, rate) && !sqc->rate &&
	    le32_to_cpu(sqc->valid) & SKUA_SQC_PACED)
		return false;
	return !pi || !cfg ||
	       le32_to_cpu(sqc->pi) - le32_to_cpu(sqc->ci) <= sq_blocks(&sqc->cfg);
}

_Static_assert(offsetof(struct skua_rqc, state) < CTX_SECTOR, "what is checked of it");

bool rqc_check(struct skua_dev *dev, uint32_t index, const void *ctx, uint32_t have)
{
	const struct skua_rqc *rqc = ctx;

	(void)index;
	if (!HAS(have, struct skua_rqc, cfg))
		return true;
	return rq_ok(dev, &rqc->cfg) && le32_to_cpu(rqc->state) <= SKUA_QP_ERR;
}

/* --- access --- */

#define SQC_HOT		GENMASK(SKUA_SQC_HOT / CTX_SECTOR - 1, 0)
#define RQC_HOT		GENMASK(SKUA_RQC_HOT / CTX_SECTOR - 1, 0)

/* Does the QP need its cold words now? */
static bool needs_rest(const struct qp *qp)
{
	const uint32_t flags = SKUA_SQC_PINNED | SKUA_SQC_HI_PINNED | SKUA_SQC_LOSS |
			       SKUA_SQC_PACED | SKUA_SQC_FAULT | SKUA_SQC_COUNTED |
			       SKUA_SQC_RNR_WAIT | SKUA_SQC_CI_SEQ | SKUA_SQC_ONLOAD |
			       SKUA_SQC_CC;
	const struct skua_sqc *s = qp->sqc;

	/* Without outstanding packets no round trip is being measured. */
	return le32_to_cpu(s->valid) & flags ||
	       (le32_to_cpu(s->valid) & SKUA_SQC_RTT && s->una_psn != s->max_psn) ||
	       qp_is_datagram(qp) ||
	       qp_type(qp) == SKUA_QP_RAW_ETH;
}

int qp_get_sq_index(struct skua_dev *dev, uint32_t index, struct qp *qp)
{
	if (!obj_valid(dev, SKUA_ICM_SQC, index))
		return -1;
	if (dev->tlp.qps)
		tlp_qp_begin(dev, index);
	qp->rqc = NULL;
	qp->sqc = ctx_get_part(dev, SKUA_ICM_SQC, index, SQC_HOT);
	if (!qp->sqc)
		goto gone;
	if (needs_rest(qp) && !ctx_need(dev, qp->sqc)) {
		ctx_put(dev, qp->sqc);
		goto gone;
	}
	qp->qpn = le32_to_cpu(qp->sqc->cfg.qpn);
	if (dev->tlp.qps)
		tlp_qp_name(dev, qp->qpn);
	return 0;
gone:
	dev->tlp.qp = NULL;
	return -1;
}

int qp_get_index(struct skua_dev *dev, uint32_t index, struct qp *qp)
{
	if (qp_get_sq_index(dev, index, qp))
		return -1;
	if (qp_need_all(dev, qp))
		return 0;
	qp_put(dev, qp);
	return -1;
}

int qp_get_sq(struct skua_dev *dev, uint32_t qpn, struct qp *qp)
{
	if (qp_get_sq_index(dev, qp_index(qpn), qp))
		return -1;
	if (qp->qpn == qpn)
		return 0;
	qp_put(dev, qp);
	return -1;
}

int qp_get(struct skua_dev *dev, uint32_t qpn, struct qp *qp)
{
	if (qp_get_sq(dev, qpn, qp))
		return -1;
	if (qp_need_all(dev, qp))
		return 0;
	qp_put(dev, qp);
	return -1;
}

bool qp_need_rq(struct skua_dev *dev, struct qp *qp)
{
	if (qp->rqc)
		return true;
	qp->rqc = ctx_get_part(dev, SKUA_ICM_RQC, qp_index(qp->qpn), RQC_HOT);
	if (!qp->rqc)
		return false;
	return !(le32_to_cpu(qp->rqc->flags) & SKUA_RQC_FAULT) || ctx_need(dev, qp->rqc);
}

bool qp_need_all(struct skua_dev *dev, struct qp *qp)
{
	return qp_need_rq(dev, qp) && ctx_need(dev, qp->sqc) && ctx_need(dev, qp->rqc);
}

bool qp_without(struct skua_dev *dev, struct skua_sqc *sqc, uint32_t ops)
{
	return ctx_need(dev, sqc) && le32_to_cpu(sqc->attr.vendor_off) & ops;
}

void qp_put(struct skua_dev *dev, struct qp *qp)
{
	if (qp->rqc)
		ctx_put(dev, qp->rqc);
	ctx_put(dev, qp->sqc);
	dev->tlp.qp = NULL;
}

void qp_dirty(struct skua_dev *dev, struct qp *qp)
{
	ctx_dirty(dev, qp->sqc);
	if (qp->rqc)
		ctx_dirty(dev, qp->rqc);
}

enum skua_qp_type qp_type(const struct qp *qp)
{
	return le32_get_bits(qp->sqc->cfg.flags, SKUA_QP_TYPE);
}

enum skua_qp_state qp_state(const struct qp *qp)
{
	return le32_get_bits(qp->sqc->attr.state, SKUA_ATTR_STATE);
}

bool qp_flushes(const struct qp *qp)
{
	return qp_state(qp) == SKUA_QP_ERR || qp_state(qp) == SKUA_QP_SQE;
}

bool qp_is_datagram(const struct qp *qp)
{
	return qp_type(qp) == SKUA_QP_UD || qp_type(qp) == SKUA_QP_GSI;
}

/* IP, UDP, BTH, the longest extension headers and the ICRC must fit beside the payload. */
uint32_t qp_mtu_max(const struct skua_dev *dev)
{
	const uint32_t headers = sizeof(struct ipv6_hdr) + sizeof(struct udp_hdr) +
				 sizeof(struct ib_bth) + sizeof(struct ib_xrceth) +
				 sizeof(struct ib_atomiceth) + IB_ICRC_LEN;
	uint32_t code = 5;

	while (code && (128u << code) + headers > port_mtu(dev))
		code--;
	return code;
}

/* The context may come from ICM with any code: an invalid one counts as the smallest MTU. */
uint32_t qp_mtu(const struct skua_dev *dev, const struct qp *qp)
{
	uint32_t code = qp_is_datagram(qp) ? qp_mtu_max(dev) :
			le32_get_bits(qp->sqc->attr.retry, SKUA_ATTR_PATH_MTU);

	return 128u << (code < 1 || code > 5 ? 1 : code);
}

void qp_error(struct skua_dev *dev, struct qp *qp, enum skua_qp_state state,
	      enum skua_qp_event ev)
{
	enum skua_qp_state from = qp_state(qp);

	/* The work requests will be flushed, after which their buffers belong to software. */
	engine_settle(dev);
	/* All words of both halves change. If they cannot be read the device is FATAL. */
	if (!qp_need_all(dev, qp))
		return;
	if (from != state && from != SKUA_QP_ERR && from != SKUA_QP_RESET) {
		le32p_replace_bits(&qp->sqc->attr.state, state, SKUA_ATTR_STATE);
		qp->rqc->state = cpu_to_le32(state);
		qp_dirty(dev, qp);
		if (qp_type(qp) != SKUA_QP_RAW_ETH)
			engine_state(dev, qp, from, state);
	}
	if (ev != SKUA_QP_EV_COUNT)
		qp_event(dev, qp->sqc, ev);
	/* The flush needs no room in the wire. */
	sched_state(dev, qp->qpn, qp_flushes(qp));
}

/* --- doorbell --- */

bool sq_index_ok(const struct skua_sqc *sqc, uint32_t index)
{
	uint32_t ci = le32_to_cpu(sqc->ci);
	uint32_t pi = le32_to_cpu(sqc->pi);
	uint32_t blocks = sq_flags(&sqc->cfg) & SKUA_QP_F_NO_SQ ? 0 : sq_blocks(&sqc->cfg);

	return index - ci <= blocks && index - ci >= pi - ci;
}

/* Index of the block of the next WQE. */
static uint32_t next_read(const struct qp *qp)
{
	return le32_to_cpu(qp_type(qp) == SKUA_QP_RAW_ETH ? qp->sqc->ci : qp->sqc->cur);
}

/*
 * Keep a WQE that was pushed with the doorbell for @pi, if it is the next one of the queue. It is
 * checked when it is used, like one from the ring.
 */
static void take_pushed(struct skua_dev *dev, const struct qp *qp, uint32_t pi, const void *raw)
{
	if (le32_to_cpu(qp->sqc->pi) == pi - 1 && next_read(qp) == pi - 1)
		push_put(dev, qp->qpn, pi - 1, raw);
}

/*
 * With doorbell suppression a doorbell may have an older index than the one known, which was
 * read from the record. That is no error: the QP is put into the ready queue, as after a
 * repeated doorbell.
 */
static bool late(const struct skua_sqc *sqc, uint32_t index)
{
	return sq_flags(&sqc->cfg) & SKUA_QP_F_DB_SUPPRESS &&
	       (int32_t)(index - le32_to_cpu(sqc->pi)) < 0;
}

bool qp_get_db(struct skua_dev *dev, uint32_t hi, struct qp *qp)
{
	if (hi & ~IB_QPN_MASK) {
		dev->cnt[SKUA_CNT_BAD_DB]++;
		return false;
	}
	if (qp_get_sq(dev, hi, qp)) {
		dev->cnt[SKUA_CNT_BAD_DB_QP]++;
		return false;
	}
	return true;
}

void sq_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi,
		 const void *pushed)
{
	struct qp qp;

	if (!qp_get_db(dev, hi, &qp))
		return;
	if (le32_to_cpu(qp.sqc->cfg.uar) != page) {
		dev->cnt[SKUA_CNT_BAD_DB_UAR]++;
	} else if (qp_state(&qp) == SKUA_QP_RESET) {
		dev->cnt[SKUA_CNT_BAD_DB_QP]++;
	} else if (late(qp.sqc, lo)) {
		sched_kick(dev, qp.qpn);
	} else if (!sq_index_ok(qp.sqc, lo)) {
		dev->cnt[SKUA_CNT_BAD_DB_INDEX]++;
	} else {
		if (lo != le32_to_cpu(qp.sqc->pi)) {
			dev->cnt[SKUA_CNT_SQ_DB]++;
			if (pushed)
				take_pushed(dev, &qp, lo, pushed);
			qp.sqc->pi = cpu_to_le32(lo);
			ctx_dirty(dev, qp.sqc);
			hot_doorbell(dev, &qp);
		}
		sched_kick(dev, qp.qpn);
	}
	qp_put(dev, &qp);
}

/* --- commands --- */

static const uint64_t type_cap[] = {
	[SKUA_QP_RC] = SKUA_CAP_RC,
	[SKUA_QP_UC] = SKUA_CAP_UC,
	[SKUA_QP_UD] = SKUA_CAP_UD,
	[SKUA_QP_GSI] = SKUA_CAP_UD,
	[SKUA_QP_XRC_INI] = SKUA_CAP_XRC,
	[SKUA_QP_XRC_TGT] = SKUA_CAP_XRC,
	[SKUA_QP_RAW_ETH] = SKUA_CAP_ETH,
};

static int check_flags(const struct skua_dev *dev, const struct skua_cmd_create_qp_in *in)
{
	uint32_t type = le32_get_bits(in->sq.flags, SKUA_QP_TYPE);
	uint32_t qpn = le32_to_cpu(in->sq.qpn);
	uint32_t known = SKUA_QP_TYPE | SKUA_QP_F_SIG_ALL | SKUA_QP_F_RESERVED_LKEY |
			 SKUA_QP_F_NO_LOOPBACK | SKUA_QP_F_NO_SQ | SKUA_QP_F_NO_RQ |
			 SKUA_QP_LOG_SQ;

	if (type == SKUA_QP_RAW_ETH)
		known |= SKUA_QP_F_KEEP_VLAN;

	if (dev_has(dev, SKUA_CAP_SCATTER_CQE) && (type == SKUA_QP_RC || type == SKUA_QP_UC))
		known |= SKUA_QP_F_SCATTER_RQ_CQE;
	if (dev_has(dev, SKUA_CAP_SCATTER_CQE) && (type == SKUA_QP_RC || type == SKUA_QP_XRC_INI))
		known |= SKUA_QP_F_SCATTER_SQ_CQE;
	if (dev_has(dev, SKUA_CAP_DB_SUPPRESS))
		known |= SKUA_QP_F_DB_SUPPRESS;
	if (dev_has(dev, SKUA_CAP_SRQ))
		known |= SKUA_QP_F_SRQ;
	if (sq_flags(&in->sq) & ~known || type > SKUA_QP_RAW_ETH ||
	    !dev_has(dev, type_cap[type]))
		return SKUA_CMD_ST_BAD_PARAM;
	if (le32_to_cpu(in->rq.flags) & SKUA_RQ_GRO &&
	    (type != SKUA_QP_RAW_ETH || !dev_has(dev, SKUA_CAP_GRO)))
		return SKUA_CMD_ST_BAD_PARAM;
	/* QP 0 is that of subnet management, QP 1 that of general services. */
	if (!qpn || qpn >= SKUA_QPN_MULTICAST || (qpn == IB_QPN_GSI) != (type == SKUA_QP_GSI))
		return SKUA_CMD_ST_BAD_INDEX;
	return SKUA_CMD_ST_OK;
}

static uint32_t cfg_type(const struct skua_sq_cfg *sq)
{
	return le32_get_bits(sq->flags, SKUA_QP_TYPE);
}

/* An XRC initiator receives nothing, an XRC target sends nothing, and XRC SRQs have CQs. */
static bool has_send_cq(const struct skua_sq_cfg *sq)
{
	return cfg_type(sq) != SKUA_QP_XRC_TGT;
}

static bool has_recv_cq(const struct skua_sq_cfg *sq)
{
	return cfg_type(sq) != SKUA_QP_XRC_TGT && cfg_type(sq) != SKUA_QP_XRC_INI;
}

/* Check the fields of XRC QPs; other QPs have no XRC domain. */
static bool xrc_ok(const struct skua_cmd_create_qp_in *in)
{
	const uint32_t none = SKUA_QP_F_NO_SQ | SKUA_QP_F_NO_RQ;
	uint32_t flags = sq_flags(&in->sq) & (none | SKUA_QP_F_SRQ);

	switch (cfg_type(&in->sq)) {
	case SKUA_QP_XRC_INI:
		return flags == SKUA_QP_F_NO_RQ && !in->rq.cqn && !in->rq.xrcd;
	case SKUA_QP_XRC_TGT:
		return flags == none && !in->sq.cqn && !in->rq.cqn && !in->sq.pd &&
		       in->rq.xrcd;
	default:
		return !in->rq.xrcd;
	}
}

/* The SRQ must exist and not be an XRC SRQ. */
static int check_srq(struct skua_dev *dev, const struct skua_cmd_create_qp_in *in)
{
	struct skua_srqc *srqc;
	bool xrc;

	if (!(sq_flags(&in->sq) & SKUA_QP_F_SRQ))
		return in->rq.srqn ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK;
	if (cfg_type(&in->sq) == SKUA_QP_RAW_ETH)
		return SKUA_CMD_ST_BAD_PARAM;
	srqc = srq_get(dev, le32_to_cpu(in->rq.srqn));
	if (!srqc)
		return SKUA_CMD_ST_BAD_INDEX;
	xrc = srqc->xrcd;
	ctx_put(dev, srqc);
	return xrc ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK;
}

static int check_create(struct skua_dev *dev, const struct skua_cmd_create_qp_in *in)
{
	bool own_rq = !(sq_flags(&in->sq) & (SKUA_QP_F_NO_RQ | SKUA_QP_F_SRQ));
	int err = check_flags(dev, in);

	if (err)
		return err;
	if (!sq_ok(dev, &in->sq) || !sqn_ok(&in->sq) || le64_to_cpu(in->sq.dbr) % SKUA_DBR_ALIGN ||
	    le32_to_cpu(in->sq.max_inline) > MODEL_MAX_INLINE || !rq_ok(dev, &in->rq) ||
	    (!own_rq && (in->rq.flags || !all_zero(&in->rq.ring, sizeof(in->rq.ring)))) ||
	    !xrc_ok(in) || in->reserved)
		return SKUA_CMD_ST_BAD_PARAM;
	if ((has_send_cq(&in->sq) &&
	     !obj_valid(dev, SKUA_ICM_CQC, le32_to_cpu(in->sq.cqn))) ||
	    !set_ok(dev, le32_to_cpu(in->counter)) ||
	    (has_recv_cq(&in->sq) && !obj_valid(dev, SKUA_ICM_CQC, le32_to_cpu(in->rq.cqn))))
		return SKUA_CMD_ST_BAD_INDEX;
	return check_srq(dev, in);
}

/* Change the reference counts of the objects that a QP names. */
static void count_refs(struct skua_dev *dev, const struct skua_sq_cfg *sq,
		       const struct skua_rq_cfg *rq, int by)
{
	if (has_send_cq(sq))
		obj_ref(dev, SKUA_ICM_CQC, le32_to_cpu(sq->cqn), by);
	if (has_recv_cq(sq))
		obj_ref(dev, SKUA_ICM_CQC, le32_to_cpu(rq->cqn), by);
	if (sq_flags(sq) & SKUA_QP_F_SRQ)
		obj_ref(dev, SKUA_ICM_SRQC, le32_to_cpu(rq->srqn), by);
}

int cmd_create_qp(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_create_qp_in *in = cmd->in;
	uint32_t index = qp_index(le32_to_cpu(in->sq.qpn));
	struct skua_sqc *sqc;
	struct skua_rqc *rqc;
	void *rrc;
	int err = cmd_vacant(dev, SKUA_ICM_SQC, index);

	if (err)
		return err;
	if (index >= icm_num(dev, SKUA_ICM_RQC) || index >= icm_num(dev, SKUA_ICM_RRC))
		return SKUA_CMD_ST_BAD_INDEX;
	err = check_create(dev, in);
	if (err)
		return err;
	if (!icm_mapped(dev, SKUA_ICM_RQC, index) || !icm_mapped(dev, SKUA_ICM_RRC, index))
		return SKUA_CMD_ST_NO_ICM;
	sqc = ctx_new(dev, SKUA_ICM_SQC, index);
	rqc = ctx_new(dev, SKUA_ICM_RQC, index);
	rrc = ctx_new(dev, SKUA_ICM_RRC, index);
	if (sqc && rqc && rrc) {
		tlp_qp_new(dev, index);
		sqc->cfg = in->sq;
		sqc->valid = cpu_to_le32(SKUA_SQC_VALID);
		sqc_count_in(sqc, in->counter);
		set_ref(dev, le32_to_cpu(in->counter), 1);
		rqc->cfg = in->rq;
		obj_set(dev, SKUA_ICM_SQC, index, true);
		obj_set(dev, SKUA_ICM_RQC, index, true);
		obj_set(dev, SKUA_ICM_RRC, index, true);
		count_refs(dev, &in->sq, &in->rq, 1);
	} else {
		err = SKUA_CMD_ST_INTERNAL;
	}
	if (rrc)
		ctx_put(dev, rrc);
	if (rqc)
		ctx_put(dev, rqc);
	if (sqc)
		ctx_put(dev, sqc);
	return err;
}

/* By number: 0, BAD_INDEX, or INTERNAL when the contexts cannot be had. */
static int find_qp(struct skua_dev *dev, const struct cmd *cmd, struct qp *qp)
{
	uint32_t qpn;
	int err = cmd_index(cmd, &qpn);

	if (err)
		return err;
	if (qpn & ~IB_QPN_MASK || !obj_valid(dev, SKUA_ICM_SQC, qp_index(qpn)))
		return SKUA_CMD_ST_BAD_INDEX;
	if (qp_get(dev, qpn, qp))
		return dev->state == DEV_FATAL ? SKUA_CMD_ST_INTERNAL : SKUA_CMD_ST_BAD_INDEX;
	return SKUA_CMD_ST_OK;
}

int cmd_destroy_qp(struct skua_dev *dev, struct cmd *cmd)
{
	struct qp qp;
	uint32_t index;
	void *rrc;
	int err = find_qp(dev, cmd, &qp);

	if (err)
		return err;
	index = qp_index(qp.qpn);
	if (obj_refs(dev, SKUA_ICM_SQC, index)) {
		qp_put(dev, &qp);
		return SKUA_CMD_ST_BUSY;
	}
	if (qp_type(&qp) != SKUA_QP_RAW_ETH)
		engine_destroy(dev, &qp);
	sched_forget(dev, qp.qpn);
	push_forget(dev, qp.qpn);
	hot_forget(dev, qp.qpn);
	timer_set(dev, qp.qpn, SKUA_TIME_NEVER);
	qp_event_forget(dev, qp.qpn);
	count_refs(dev, &qp.sqc->cfg, &qp.rqc->cfg, -1);
	set_ref(dev, le32_to_cpu(qp.sqc->counter), -1);
	obj_set(dev, SKUA_ICM_SQC, index, false);
	obj_set(dev, SKUA_ICM_RQC, index, false);
	obj_set(dev, SKUA_ICM_RRC, index, false);
	sr_close(dev, &qp);
	memset(qp.sqc, 0, sizeof(*qp.sqc));
	memset(qp.rqc, 0, sizeof(*qp.rqc));
	qp_dirty(dev, &qp);
	qp_put(dev, &qp);
	rrc = ctx_new(dev, SKUA_ICM_RRC, index);
	if (rrc)
		ctx_put(dev, rrc);
	return SKUA_CMD_ST_OK;
}

int cmd_query_qp(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_qp_out *out = cmd->out;
	struct qp qp;
	int err = find_qp(dev, cmd, &qp);

	if (err)
		return err;
	qp_put(dev, &qp);
	err = cmd_query_ctx(dev, SKUA_ICM_SQC, qp_index(qp.qpn), &out->sqc, sizeof(out->sqc));
	if (!err)
		err = cmd_query_ctx(dev, SKUA_ICM_RQC, qp_index(qp.qpn), &out->rqc,
				    sizeof(out->rqc));
	return err;
}
