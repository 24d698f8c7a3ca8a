// SPDX-License-Identifier: GPL-2.0
/*
 * MODIFY_QP: the state machine of the IBTA's chapter 10, as a table of the
 * transitions with the attributes that each demands and allows for each type of
 * QP, and the ranges of the attributes.
 */
#include <string.h>

#include "cmd.h"
#include "roce/hdr.h"

#define T(type)		(1u << SKUA_QP_##type)
#define A(attr)		SKUA_QP_M_##attr

#define RC		T(RC)
#define UC		T(UC)
#define DGRAM		(T(UD) | T(GSI))
#define INI		T(XRC_INI)
#define TGT		T(XRC_TGT)
#define ETH		T(RAW_ETH)
/* Types with a connection, types with a responder, types with a requester. */
#define CONN		(RC | UC | INI | TGT)
#define RESP		(RC | TGT)
#define REQ		(RC | INI)

/**
 * struct row - a transition, for some types
 * @from: state before
 * @to: state after
 * @types: types of QP
 * @required: attributes that must be given
 * @optional: attributes that may be given
 *
 * A pair of states may have several rows; those of a type add up. A pair without
 * a row for the type is not a transition.
 */
struct row {
	uint8_t from, to;
	uint8_t types;
	uint32_t required, optional;
};

#define S(state)	SKUA_QP_##state

static const struct row table[] = {
	{ S(RESET), S(INIT), CONN,	A(PKEY) | A(PORT) | A(ACCESS), 0 },
	{ S(RESET), S(INIT), T(UD),	A(PKEY) | A(PORT) | A(QKEY), 0 },
	{ S(RESET), S(INIT), T(GSI),	A(PKEY) | A(QKEY), A(PORT) },
	{ S(RESET), S(INIT), ETH,	A(PORT), 0 },

	{ S(INIT), S(INIT), CONN,	0, A(PKEY) | A(PORT) | A(ACCESS) },
	{ S(INIT), S(INIT), T(UD),	0, A(PKEY) | A(PORT) | A(QKEY) },
	{ S(INIT), S(INIT), T(GSI),	0, A(PKEY) | A(QKEY) },
	{ S(INIT), S(INIT), ETH,	0, A(PORT) },

	{ S(INIT), S(RTR), CONN,	A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN),
					A(PKEY) | A(ACCESS) },
	{ S(INIT), S(RTR), RC | INI | TGT, 0, A(VENDOR_OFF) | A(EXT) },
	{ S(INIT), S(RTR), RESP,	A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER), 0 },
	{ S(INIT), S(RTR), DGRAM,	0, A(PKEY) | A(QKEY) },
	{ S(INIT), S(RTR), ETH,		0, 0 },

	{ S(RTR), S(RTS), CONN,		A(SQ_PSN), A(ACCESS) },
	{ S(RTR), S(RTS), RESP,		A(ACK_TIMEOUT), A(MIN_RNR_TIMER) },
	{ S(RTR), S(RTS), REQ,		A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) |
					A(MAX_RD_ATOMIC), 0 },
	{ S(RTR), S(RTS), DGRAM,	A(SQ_PSN), A(QKEY) },
	{ S(RTR), S(RTS), ETH,		0, 0 },

	{ S(RTS), S(RTS), CONN,		0, A(ACCESS) },
	{ S(RTS), S(RTS), RESP,		0, A(MIN_RNR_TIMER) },
	{ S(RTS), S(RTS), DGRAM,	0, A(QKEY) },
	{ S(RTS), S(RTS), ETH,		0, 0 },

	{ S(RTS), S(SQD), CONN | DGRAM,	0, A(SQD_NOTIFY) },

	{ S(SQD), S(SQD), CONN,		0, A(AV) | A(PKEY) | A(ACCESS) },
	{ S(SQD), S(SQD), RC | INI | TGT, 0, A(PORT) | A(ACK_TIMEOUT) },
	{ S(SQD), S(SQD), REQ,		0, A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC) },
	{ S(SQD), S(SQD), RESP,		0, A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER) },
	{ S(SQD), S(SQD), DGRAM,	0, A(PKEY) | A(QKEY) },

	{ S(SQD), S(RTS), CONN,		0, A(ACCESS) },
	{ S(SQD), S(RTS), RESP,		0, A(MIN_RNR_TIMER) },
	{ S(SQD), S(RTS), DGRAM,	0, A(QKEY) },

	{ S(SQE), S(RTS), UC,		0, A(ACCESS) },
	{ S(SQE), S(RTS), DGRAM,	0, A(QKEY) },
};

/* Types that may have a rate limit: those that send, except GSI. */
#define PACED		(RC | UC | T(UD) | INI | ETH)

/* False: no such transition. To RESET and ERR every QP may go, with nothing else. */
static bool find_transition(enum skua_qp_type type, enum skua_qp_state from,
			    enum skua_qp_state to, uint32_t *required, uint32_t *optional)
{
	bool found = to == SKUA_QP_RESET || to == SKUA_QP_ERR;

	*required = 0;
	*optional = 0;
	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (table[i].from != from || table[i].to != to ||
		    !(table[i].types & 1u << type))
			continue;
		found = true;
		*required |= table[i].required;
		*optional |= table[i].optional;
	}
	if (PACED & 1u << type && to != SKUA_QP_RESET && to != SKUA_QP_ERR)
		*optional |= A(RATE);
	return found;
}

/* --- values --- */

/* A word of attributes: its fields, and the attribute that each belongs to. */
struct field {
	uint32_t bits;
	uint32_t attr;
};

static const struct field retry_fields[] = {
	{ SKUA_ATTR_RETRY_CNT, A(RETRY_CNT) },
	{ SKUA_ATTR_RNR_RETRY, A(RNR_RETRY) },
	{ SKUA_ATTR_ACK_TIMEOUT, A(ACK_TIMEOUT) },
	{ SKUA_ATTR_MIN_RNR_TIMER, A(MIN_RNR_TIMER) },
	{ SKUA_ATTR_PATH_MTU, A(PATH_MTU) },
	{ 0, 0 },
};

static const struct field rights_fields[] = {
	{ SKUA_ATTR_MAX_RD_ATOMIC, A(MAX_RD_ATOMIC) },
	{ SKUA_ATTR_MAX_DEST_RD_ATOMIC, A(MAX_DEST_RD_ATOMIC) },
	{ SKUA_ATTR_ACCESS, A(ACCESS) },
	{ 0, 0 },
};

static const struct field state_fields[] = {
	{ SKUA_ATTR_STATE, A(STATE) },
	{ SKUA_ATTR_SQD_NOTIFY, A(SQD_NOTIFY) },
	{ 0, 0 },
};

/* The bits of a word that belong to the attributes in @mask. */
static uint32_t field_bits(const struct field *field, uint32_t mask)
{
	uint32_t bits = 0;

	for (; field->bits; field++)
		bits |= mask & field->attr ? field->bits : 0;
	return bits;
}

/* Fields of attributes that are not in the mask must be zero. */
static bool rest_zero(const struct skua_cmd_modify_qp_in *in, uint32_t mask)
{
	const struct skua_qp_attr *a = &in->attr;

	return (mask & A(AV) || all_zero(&a->av, sizeof(a->av))) &&
	       (mask & A(DEST_QPN) || !a->dest_qpn) && (mask & A(SQ_PSN) || !a->sq_psn) &&
	       (mask & A(RQ_PSN) || !a->rq_psn) && (mask & A(QKEY) || !a->qkey) &&
	       (mask & A(PKEY) || !a->pkey) &&
	       (mask & A(RATE) || (!a->rate_kbps && !a->rate_burst)) &&
	       (mask & A(EXT) || (!a->ext && !in->ext_table && !in->ext_len)) &&
	       !(le32_to_cpu(a->retry) & ~field_bits(retry_fields, mask)) &&
	       !(le32_to_cpu(a->rights) & ~field_bits(rights_fields, mask)) &&
	       !(le32_to_cpu(a->state) & ~field_bits(state_fields, mask)) &&
	       (mask & A(VENDOR_OFF) || !a->vendor_off) && !in->reserved &&
	       (mask & A(COUNTER) || !in->counter);
}

static bool dmac_ok(const struct skua_av *av, bool multicast)
{
	uint8_t group[ETH_ADDR_LEN];

	if (!ib_gid_is_multicast(av->dgid))
		return !(av->dmac[0] & 1) && !all_zero(av->dmac, sizeof(av->dmac));
	ib_gid_multicast_mac(av->dgid, group);
	return multicast && !memcmp(av->dmac, group, sizeof(group));
}

bool qp_av_ok(struct skua_dev *dev, const struct skua_av *av, bool multicast)
{
	const struct skua_gid *gid = port_gid(dev, le16_to_cpu(av->sgid_index));
	uint32_t flow = SKUA_AV_FLOW_LABEL | SKUA_AV_PCP;

	return gid && !(le32_to_cpu(av->flow) & ~flow) &&
	       ib_gid_is_v4(av->dgid) == !!(le32_to_cpu(gid->flags) & SKUA_GID_IPV4) &&
	       !all_zero(av->dgid, sizeof(av->dgid)) && dmac_ok(av, multicast);
}

static bool mtu_ok(const struct skua_dev *dev, uint32_t code)
{
	return code >= 1 && code <= qp_mtu_max(dev);
}

static bool rate_ok(const struct skua_qp_attr *a)
{
	uint32_t rate = le32_to_cpu(a->rate_kbps);
	uint32_t burst = le32_to_cpu(a->rate_burst);

	return rate ? rate >= MODEL_RATE_MIN && rate <= MODEL_RATE_MAX &&
		      burst <= MODEL_RATE_BURST_MAX : !burst;
}

static bool access_ok(const struct skua_dev *dev, uint32_t access)
{
	uint32_t known = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
			 SKUA_ACCESS_REMOTE_ATOMIC;

	if (dev_has(dev, SKUA_CAP_FLUSH))
		known |= SKUA_ACCESS_FLUSH_GLOBAL | SKUA_ACCESS_FLUSH_PERSISTENT;
	return !(access & ~known);
}

/* Fields of attributes not given are zero, and zero is in every range but the MTU's. */
static bool values_ok(struct skua_dev *dev, const struct skua_qp_attr *a, uint32_t mask)
{
	return (!(mask & A(AV)) || qp_av_ok(dev, &a->av, false)) &&
	       (!(mask & A(PATH_MTU)) ||
		mtu_ok(dev, le32_get_bits(a->retry, SKUA_ATTR_PATH_MTU))) &&
	       (!(mask & A(PKEY)) || le32_to_cpu(a->pkey) < MODEL_PKEYS) && rate_ok(a) &&
	       le32_to_cpu(a->sq_psn) <= IB_PSN_MASK && le32_to_cpu(a->rq_psn) <= IB_PSN_MASK &&
	       le32_to_cpu(a->dest_qpn) <= IB_QPN_MASK &&
	       le32_get_bits(a->rights, SKUA_ATTR_MAX_RD_ATOMIC) <= MODEL_MAX_RD_ATOMIC &&
	       le32_get_bits(a->rights, SKUA_ATTR_MAX_DEST_RD_ATOMIC) <= SKUA_RR_PER_QP &&
	       !(le32_to_cpu(a->vendor_off) & ~SKUA_VENDOR_ALL) && sr_attr_ok(a) &&
	       access_ok(dev, le32_get_bits(a->rights, SKUA_ATTR_ACCESS));
}

/* --- the command --- */

/* Attributes that exist only with a capability. */
static uint32_t known_attrs(const struct skua_dev *dev)
{
	uint32_t known = 0;

#define X(name, bit, text) known |= SKUA_QP_M_##name;
	SKUA_QP_ATTR_TABLE(X)
#undef X
	if (!dev_has(dev, SKUA_CAP_RATE_LIMIT))
		known &= ~A(RATE);
	if (!dev_has(dev, SKUA_CAP_SR))
		known &= ~A(EXT);
	if (!dev_has(dev, SKUA_CAP_COUNTER_SET))
		known &= ~A(COUNTER);
	if (!dev_has(dev, SKUA_CAP_VENDOR_OFF))
		known &= ~A(VENDOR_OFF);
	return known;
}

static int check_modify(struct skua_dev *dev, const struct skua_cmd_modify_qp_in *in,
			const struct qp *qp, enum skua_qp_state *to)
{
	uint32_t mask = le32_to_cpu(in->mask);
	uint32_t cur = le32_to_cpu(in->cur_state);
	enum skua_qp_state from = qp_state(qp);
	uint32_t new = le32_get_bits(in->attr.state, SKUA_ATTR_STATE);
	uint32_t required, optional;

	if (mask & ~known_attrs(dev) || !rest_zero(in, mask) ||
	    (cur > SKUA_QP_ERR && cur != SKUA_QP_ANY_STATE) || new > SKUA_QP_ERR)
		return SKUA_CMD_ST_BAD_PARAM;
	if (cur != SKUA_QP_ANY_STATE && cur != from)
		return SKUA_CMD_ST_BAD_STATE;
	*to = mask & A(STATE) ? new : from;
	if (!find_transition(qp_type(qp), from, *to, &required, &optional))
		return SKUA_CMD_ST_BAD_STATE;
	mask &= ~A(STATE);
	if ((mask & required) != required || mask & ~(required | optional))
		return SKUA_CMD_ST_BAD_PARAM;
	/* Path and depth can be changed in SQD only after the send queue has drained. */
	if (from == SKUA_QP_SQD && *to == SKUA_QP_SQD && mask != A(RATE) &&
	    le32_to_cpu(qp->sqc->valid) & SKUA_SQC_DRAINING)
		return SKUA_CMD_ST_BAD_STATE;
	if (!values_ok(dev, &in->attr, mask))
		return SKUA_CMD_ST_BAD_PARAM;
	return mask & A(EXT) ? sr_check(dev, in, qp) : SKUA_CMD_ST_OK;
}

static void merge(__le32 *word, __le32 from, const struct field *field, uint32_t mask)
{
	uint32_t bits = field_bits(field, mask);

	*word = cpu_to_le32((le32_to_cpu(*word) & ~bits) | (le32_to_cpu(from) & bits));
}

static void apply(struct skua_qp_attr *a, const struct skua_qp_attr *in, uint32_t mask)
{
	if (mask & A(AV))
		a->av = in->av;
	if (mask & A(DEST_QPN))
		a->dest_qpn = in->dest_qpn;
	if (mask & A(SQ_PSN))
		a->sq_psn = in->sq_psn;
	if (mask & A(RQ_PSN))
		a->rq_psn = in->rq_psn;
	if (mask & A(QKEY))
		a->qkey = in->qkey;
	if (mask & A(PKEY))
		a->pkey = in->pkey;
	if (mask & A(RATE)) {
		a->rate_kbps = in->rate_kbps;
		a->rate_burst = in->rate_burst;
	}
	if (mask & A(EXT))
		a->ext = in->ext;
	if (mask & A(VENDOR_OFF))
		a->vendor_off = in->vendor_off;
	merge(&a->retry, in->retry, retry_fields, mask);
	merge(&a->rights, in->rights, rights_fields, mask);
	/* SQD_NOTIFY is cleared when the QP leaves SQD. */
	merge(&a->state, in->state, state_fields, mask & A(STATE) ? mask | A(SQD_NOTIFY) : mask);
}

/* A QP in RESET is in the state after its creation. */
static int enter_reset(struct skua_dev *dev, struct qp *qp)
{
	struct skua_sqc sqc = {
		.valid = qp->sqc->valid & cpu_to_le32(SKUA_SQC_VALID | SKUA_SQC_COUNTED),
		.cfg = qp->sqc->cfg,
		.counter = qp->sqc->counter,
	};
	struct skua_rqc rqc = { .cfg = qp->rqc->cfg };
	const __le32 zero = 0;
	void *rrc;

	sched_forget(dev, qp->qpn);
	push_forget(dev, qp->qpn);
	hot_forget(dev, qp->qpn);
	timer_set(dev, qp->qpn, SKUA_TIME_NEVER);
	qp_event_forget(dev, qp->qpn);
	sr_close(dev, qp);
	*qp->sqc = sqc;
	*qp->rqc = rqc;
	rrc = ctx_new(dev, SKUA_ICM_RRC, qp_index(qp->qpn));
	if (!rrc)
		return SKUA_CMD_ST_INTERNAL;
	ctx_put(dev, rrc);
	if (!(le32_to_cpu(sqc.cfg.flags) & SKUA_QP_F_DB_SUPPRESS))
		return SKUA_CMD_ST_OK;
	return dma_write(dev, TLP_RECORD,
			 le64_to_cpu(sqc.cfg.dbr) + offsetof(struct skua_qp_dbr, sq_event),
			 &zero, sizeof(zero)) ? SKUA_CMD_ST_DMA : SKUA_CMD_ST_OK;
}

/* The counter set may be changed in any state. */
static int modify_counter(struct skua_dev *dev, const struct skua_cmd_modify_qp_in *in,
			  struct qp *qp)
{
	uint32_t cur = le32_to_cpu(in->cur_state);

	if (le32_to_cpu(in->mask) & ~known_attrs(dev) || le32_to_cpu(in->mask) != A(COUNTER) ||
	    !rest_zero(in, A(COUNTER)) || (cur > SKUA_QP_ERR && cur != SKUA_QP_ANY_STATE))
		return SKUA_CMD_ST_BAD_PARAM;
	if (cur != SKUA_QP_ANY_STATE && cur != qp_state(qp))
		return SKUA_CMD_ST_BAD_STATE;
	if (!set_ok(dev, le32_to_cpu(in->counter)))
		return SKUA_CMD_ST_BAD_INDEX;
	set_ref(dev, le32_to_cpu(in->counter), 1);
	set_ref(dev, le32_to_cpu(qp->sqc->counter), -1);
	sqc_count_in(qp->sqc, in->counter);
	ctx_dirty(dev, qp->sqc);
	return SKUA_CMD_ST_OK;
}

/*
 * Before SQE to RTS. What is posted after the command's first call is not waited for: software
 * that posts without end would keep all commands behind this one waiting.
 */
static int flush_posted(struct skua_dev *dev, struct cmd_note *note, struct qp *qp)
{
	bool flushed;

	if (!note->taken || note->qpn != qp->qpn) {
		hot_look(dev, qp);
		*note = (struct cmd_note){
			.taken = true,
			.qpn = qp->qpn,
			.sq_pi = le32_to_cpu(qp->sqc->pi),
		};
	}
	flushed = engine_flushed(dev, qp, note->sq_pi);
	qp_dirty(dev, qp);
	/* Its CQ has overflowed, or its doorbell record cannot be read. */
	if (qp_state(qp) != SKUA_QP_SQE)
		return SKUA_CMD_ST_BAD_STATE;
	return flushed ? SKUA_CMD_ST_OK : CMD_AGAIN;
}

static int modify(struct skua_dev *dev, const struct cmd *cmd, struct qp *qp)
{
	const struct skua_cmd_modify_qp_in *in = cmd->in;
	enum skua_qp_state from = qp_state(qp);
	bool engine = qp_type(qp) != SKUA_QP_RAW_ETH;
	enum skua_qp_state to;
	int err = check_modify(dev, in, qp, &to);

	if (!err && engine && from == SKUA_QP_SQE && to == SKUA_QP_RTS)
		err = flush_posted(dev, cmd->note, qp);
	if (err)
		return err;
	if (to == SKUA_QP_RESET) {
		/* Before the contexts are cleared, which the engine needs for its cleanup. */
		if (engine)
			engine_state(dev, qp, from, to);
		err = enter_reset(dev, qp);
	} else if (le32_to_cpu(in->mask) & A(EXT) && !sr_open(dev, qp, in)) {
		err = SKUA_CMD_ST_INTERNAL;
	} else {
		apply(&qp->sqc->attr, &in->attr, le32_to_cpu(in->mask));
		if (le32_to_cpu(in->mask) & A(EXT))
			sr_apply(qp->sqc);
		if (le32_to_cpu(in->mask) & A(RATE))
			pace_set(dev, qp);
		if (le32_to_cpu(in->mask) & A(AV))
			sched_set_prio(dev, qp->qpn, le32_get_bits(in->attr.av.flow, SKUA_AV_PCP));
		qp->rqc->state = cpu_to_le32(to);
		if (engine)
			engine_state(dev, qp, from, to);
		if (qp_is_datagram(qp))
			sched_next_unknown(dev, qp->qpn);
		sched_state(dev, qp->qpn, qp_flushes(qp));
	}
	qp_dirty(dev, qp);
	return err;
}

int cmd_modify_qp(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_qp_in *in = cmd->in;
	uint32_t qpn = le32_to_cpu(in->qpn);
	struct qp qp;
	int err;

	if (qpn & ~IB_QPN_MASK || qp_get(dev, qpn, &qp))
		return SKUA_CMD_ST_BAD_INDEX;
	err = le32_to_cpu(in->mask) & A(COUNTER) ? modify_counter(dev, in, &qp) :
						   modify(dev, cmd, &qp);
	qp_put(dev, &qp);
	return err;
}
