// SPDX-License-Identifier: GPL-2.0
/*
 * The QP state machine: every type, every pair of states, every attribute. What is
 * expected stands here a second time, type by type, the way the IBTA's table and
 * the verbs name it.
 */
#include <stdio.h>

#include "core_test.h"

#define A(name)	SKUA_QP_M_##name
#define TYPES	(SKUA_QP_RAW_ETH + 1)
#define STATES	(SKUA_QP_ERR + 1)

#define RC_ADDR	(A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN))

struct want {
	uint8_t from, to;
	uint32_t required, optional;
};

static const struct want rc[] = {
	{ SKUA_QP_RESET, SKUA_QP_INIT, A(PKEY) | A(PORT) | A(ACCESS), 0 },
	{ SKUA_QP_INIT, SKUA_QP_INIT, 0, A(PKEY) | A(PORT) | A(ACCESS) },
	{ SKUA_QP_INIT, SKUA_QP_RTR, RC_ADDR | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
	  A(PKEY) | A(ACCESS) | A(VENDOR_OFF) },
	{ SKUA_QP_RTR, SKUA_QP_RTS, A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) |
	  A(MAX_RD_ATOMIC), A(ACCESS) | A(MIN_RNR_TIMER) },
	{ SKUA_QP_RTS, SKUA_QP_RTS, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
	{ SKUA_QP_RTS, SKUA_QP_SQD, 0, A(SQD_NOTIFY) },
	{ SKUA_QP_SQD, SKUA_QP_SQD, 0, A(PORT) | A(AV) | A(ACK_TIMEOUT) | A(RETRY_CNT) |
	  A(RNR_RETRY) | A(MAX_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) | A(ACCESS) | A(PKEY) |
	  A(MIN_RNR_TIMER) },
	{ SKUA_QP_SQD, SKUA_QP_RTS, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
};

static const struct want uc[] = {
	{ SKUA_QP_RESET, SKUA_QP_INIT, A(PKEY) | A(PORT) | A(ACCESS), 0 },
	{ SKUA_QP_INIT, SKUA_QP_INIT, 0, A(PKEY) | A(PORT) | A(ACCESS) },
	{ SKUA_QP_INIT, SKUA_QP_RTR, RC_ADDR, A(PKEY) | A(ACCESS) },
	{ SKUA_QP_RTR, SKUA_QP_RTS, A(SQ_PSN), A(ACCESS) },
	{ SKUA_QP_RTS, SKUA_QP_RTS, 0, A(ACCESS) },
	{ SKUA_QP_RTS, SKUA_QP_SQD, 0, A(SQD_NOTIFY) },
	{ SKUA_QP_SQD, SKUA_QP_SQD, 0, A(AV) | A(ACCESS) | A(PKEY) },
	{ SKUA_QP_SQD, SKUA_QP_RTS, 0, A(ACCESS) },
	{ SKUA_QP_SQE, SKUA_QP_RTS, 0, A(ACCESS) },
};

static const struct want ud[] = {
	{ SKUA_QP_RESET, SKUA_QP_INIT, A(PKEY) | A(PORT) | A(QKEY), 0 },
	{ SKUA_QP_INIT, SKUA_QP_INIT, 0, A(PKEY) | A(PORT) | A(QKEY) },
	{ SKUA_QP_INIT, SKUA_QP_RTR, 0, A(PKEY) | A(QKEY) },
	{ SKUA_QP_RTR, SKUA_QP_RTS, A(SQ_PSN), A(QKEY) },
	{ SKUA_QP_RTS, SKUA_QP_RTS, 0, A(QKEY) },
	{ SKUA_QP_RTS, SKUA_QP_SQD, 0, A(SQD_NOTIFY) },
	{ SKUA_QP_SQD, SKUA_QP_SQD, 0, A(PKEY) | A(QKEY) },
	{ SKUA_QP_SQD, SKUA_QP_RTS, 0, A(QKEY) },
	{ SKUA_QP_SQE, SKUA_QP_RTS, 0, A(QKEY) },
};

static const struct want gsi[] = {
	{ SKUA_QP_RESET, SKUA_QP_INIT, A(PKEY) | A(QKEY), A(PORT) },
	{ SKUA_QP_INIT, SKUA_QP_INIT, 0, A(PKEY) | A(QKEY) },
	{ SKUA_QP_INIT, SKUA_QP_RTR, 0, A(PKEY) | A(QKEY) },
	{ SKUA_QP_RTR, SKUA_QP_RTS, A(SQ_PSN), A(QKEY) },
	{ SKUA_QP_RTS, SKUA_QP_RTS, 0, A(QKEY) },
	{ SKUA_QP_RTS, SKUA_QP_SQD, 0, A(SQD_NOTIFY) },
	{ SKUA_QP_SQD, SKUA_QP_SQD, 0, A(PKEY) | A(QKEY) },
	{ SKUA_QP_SQD, SKUA_QP_RTS, 0, A(QKEY) },
	{ SKUA_QP_SQE, SKUA_QP_RTS, 0, A(QKEY) },
};

static const struct want xrc_ini[] = {
	{ SKUA_QP_RESET, SKUA_QP_INIT, A(PKEY) | A(PORT) | A(ACCESS), 0 },
	{ SKUA_QP_INIT, SKUA_QP_INIT, 0, A(PKEY) | A(PORT) | A(ACCESS) },
	{ SKUA_QP_INIT, SKUA_QP_RTR, RC_ADDR, A(PKEY) | A(ACCESS) | A(VENDOR_OFF) },
	{ SKUA_QP_RTR, SKUA_QP_RTS, A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) |
	  A(MAX_RD_ATOMIC), A(ACCESS) },
	{ SKUA_QP_RTS, SKUA_QP_RTS, 0, A(ACCESS) },
	{ SKUA_QP_RTS, SKUA_QP_SQD, 0, A(SQD_NOTIFY) },
	{ SKUA_QP_SQD, SKUA_QP_SQD, 0, A(PORT) | A(AV) | A(ACK_TIMEOUT) | A(RETRY_CNT) |
	  A(RNR_RETRY) | A(MAX_RD_ATOMIC) | A(ACCESS) | A(PKEY) },
	{ SKUA_QP_SQD, SKUA_QP_RTS, 0, A(ACCESS) },
};

static const struct want xrc_tgt[] = {
	{ SKUA_QP_RESET, SKUA_QP_INIT, A(PKEY) | A(PORT) | A(ACCESS), 0 },
	{ SKUA_QP_INIT, SKUA_QP_INIT, 0, A(PKEY) | A(PORT) | A(ACCESS) },
	{ SKUA_QP_INIT, SKUA_QP_RTR, RC_ADDR | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
	  A(PKEY) | A(ACCESS) | A(VENDOR_OFF) },
	{ SKUA_QP_RTR, SKUA_QP_RTS, A(ACK_TIMEOUT) | A(SQ_PSN), A(ACCESS) | A(MIN_RNR_TIMER) },
	{ SKUA_QP_RTS, SKUA_QP_RTS, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
	{ SKUA_QP_RTS, SKUA_QP_SQD, 0, A(SQD_NOTIFY) },
	{ SKUA_QP_SQD, SKUA_QP_SQD, 0, A(PORT) | A(AV) | A(ACK_TIMEOUT) | A(MAX_DEST_RD_ATOMIC) |
	  A(ACCESS) | A(PKEY) | A(MIN_RNR_TIMER) },
	{ SKUA_QP_SQD, SKUA_QP_RTS, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
};

static const struct want raw_eth[] = {
	{ SKUA_QP_RESET, SKUA_QP_INIT, A(PORT), 0 },
	{ SKUA_QP_INIT, SKUA_QP_INIT, 0, A(PORT) },
	{ SKUA_QP_INIT, SKUA_QP_RTR, 0, 0 },
	{ SKUA_QP_RTR, SKUA_QP_RTS, 0, 0 },
	{ SKUA_QP_RTS, SKUA_QP_RTS, 0, 0 },
};

#define W(array) { array, sizeof(array) / sizeof(array[0]) }
static const struct {
	const struct want *want;
	unsigned int num;
} expected[TYPES] = {
	[SKUA_QP_RC] = W(rc),
	[SKUA_QP_UC] = W(uc),
	[SKUA_QP_UD] = W(ud),
	[SKUA_QP_GSI] = W(gsi),
	[SKUA_QP_XRC_INI] = W(xrc_ini),
	[SKUA_QP_XRC_TGT] = W(xrc_tgt),
	[SKUA_QP_RAW_ETH] = W(raw_eth),
};

static const struct want *find(unsigned int type, unsigned int from, unsigned int to)
{
	static const struct want nothing;

	for (unsigned int i = 0; i < expected[type].num; i++) {
		if (expected[type].want[i].from == from && expected[type].want[i].to == to)
			return &expected[type].want[i];
	}
	return to == SKUA_QP_RESET || to == SKUA_QP_ERR ? &nothing : NULL;
}

/* A rate may come with every transition of a queue that sends, but to its end. */
static uint32_t optional(unsigned int type, const struct want *want, unsigned int to)
{
	bool paced = type != SKUA_QP_GSI && type != SKUA_QP_XRC_TGT &&
		     to != SKUA_QP_RESET && to != SKUA_QP_ERR;

	return want->optional | (paced ? A(RATE) : 0);
}

struct bench {
	struct rig *r;
	struct mini_cq cq;
	struct mini_qp qp;
	struct skua_qp_attr attr;
};

static void prepare(struct bench *b, struct rig *r, enum skua_qp_type type)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0x42 };
	struct skua_cmd_create_qp_in in;

	b->r = r;
	r->f.dev->caps |= SKUA_CAP_UC | SKUA_CAP_UD | SKUA_CAP_XRC | SKUA_CAP_RATE_LIMIT;
	mini_cq_create(&r->m, &b->cq, 4);
	assert_status(mini_gid(&r->m, 0, 1, false, SKUA_GID_NO_VLAN), OK);
	in = mini_qp_in(&r->m, &b->qp, type, &b->cq, &b->cq, 3, 3, 0);
	if (type == SKUA_QP_GSI) {
		b->qp.qpn = 1;
		in.sq.qpn = cpu_to_le32(1);
	}
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), OK);
	b->attr = mini_rc_attr(5, 2, mac, false, 0x123456, 0xfedcba, 3);
	b->attr.qkey = cpu_to_le32(0x11111111);
	b->attr.rate_kbps = cpu_to_le32(1000);
	b->attr.vendor_off = cpu_to_le32(SKUA_VENDOR_MASKED_ATOMIC);
}

/* Values of the attributes in @mask, everything else zero. */
static int modify(struct bench *b, uint32_t cur, enum skua_qp_state to, uint32_t mask)
{
	struct skua_cmd_modify_qp_in in = {
		.qpn = cpu_to_le32(b->qp.qpn),
		.mask = cpu_to_le32(mask | SKUA_QP_M_STATE),
		.cur_state = cpu_to_le32(cur),
		.attr.state = le32_encode_bits(to, SKUA_ATTR_STATE) |
			      cpu_to_le32(mask & A(SQD_NOTIFY) ? SKUA_ATTR_SQD_NOTIFY : 0),
	};
	const struct {
		uint32_t attr, bits;
	} retry[] = {
		{ A(RETRY_CNT), SKUA_ATTR_RETRY_CNT }, { A(RNR_RETRY), SKUA_ATTR_RNR_RETRY },
		{ A(ACK_TIMEOUT), SKUA_ATTR_ACK_TIMEOUT }, { A(PATH_MTU), SKUA_ATTR_PATH_MTU },
		{ A(MIN_RNR_TIMER), SKUA_ATTR_MIN_RNR_TIMER },
	}, rights[] = {
		{ A(MAX_RD_ATOMIC), SKUA_ATTR_MAX_RD_ATOMIC },
		{ A(MAX_DEST_RD_ATOMIC), SKUA_ATTR_MAX_DEST_RD_ATOMIC },
		{ A(ACCESS), SKUA_ATTR_ACCESS },
	};

	for (unsigned int i = 0; i < 5; i++)
		in.attr.retry |= b->attr.retry & cpu_to_le32(mask & retry[i].attr ?
							      retry[i].bits : 0);
	for (unsigned int i = 0; i < 3; i++)
		in.attr.rights |= b->attr.rights & cpu_to_le32(mask & rights[i].attr ?
							       rights[i].bits : 0);
	if (mask & A(AV))
		in.attr.av = b->attr.av;
	in.attr.dest_qpn = mask & A(DEST_QPN) ? b->attr.dest_qpn : 0;
	in.attr.sq_psn = mask & A(SQ_PSN) ? b->attr.sq_psn : 0;
	in.attr.rq_psn = mask & A(RQ_PSN) ? b->attr.rq_psn : 0;
	in.attr.qkey = mask & A(QKEY) ? b->attr.qkey : 0;
	in.attr.rate_kbps = mask & A(RATE) ? b->attr.rate_kbps : 0;
	in.attr.vendor_off = mask & A(VENDOR_OFF) ? b->attr.vendor_off : 0;
	return mini_cmd(&b->r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0);
}

static void step(struct bench *b, enum skua_qp_state to)
{
	struct skua_cmd_query_qp_out out;
	const struct want *want;

	assert_status(mini_index(&b->r->m, SKUA_CMD_QUERY_QP, b->qp.qpn, &out, sizeof(out)), OK);
	want = find(b->qp.type, le32_get_bits(out.sqc.attr.state, SKUA_ATTR_STATE), to);
	assert_non_null(want);
	assert_status(modify(b, SKUA_QP_ANY_STATE, to, want->required), OK);
}

/* From anywhere to @state. False: QPs of this type never are there. */
static bool go(struct bench *b, enum skua_qp_state state)
{
	struct qp qp;

	if (b->qp.type == SKUA_QP_RAW_ETH && (state == SKUA_QP_SQD || state == SKUA_QP_SQE))
		return false;
	step(b, SKUA_QP_RESET);
	for (unsigned int s = SKUA_QP_INIT; s <= SKUA_QP_RTS && s <= state; s++)
		step(b, s);
	if (state == SKUA_QP_SQD)
		step(b, SKUA_QP_SQD);
	if (state == SKUA_QP_ERR)
		step(b, SKUA_QP_ERR);
	if (state == SKUA_QP_SQE) {
		for (unsigned int s = SKUA_QP_RTR; s <= SKUA_QP_RTS; s++)
			step(b, s == SKUA_QP_RTR ? SKUA_QP_RTS : s);
		assert_int_equal(qp_get(b->r->f.dev, b->qp.qpn, &qp), 0);
		qp_error(b->r->f.dev, &qp, SKUA_QP_SQE, SKUA_QP_EV_COUNT);
		qp_put(b->r->f.dev, &qp);
	}
	return true;
}

static enum skua_qp_state where(struct bench *b)
{
	struct skua_cmd_query_qp_out out;

	assert_status(mini_index(&b->r->m, SKUA_CMD_QUERY_QP, b->qp.qpn, &out, sizeof(out)), OK);
	/* Both halves agree. */
	assert_int_equal(le32_get_bits(out.sqc.attr.state, SKUA_ATTR_STATE),
			 le32_to_cpu(out.rqc.state));
	return le32_to_cpu(out.rqc.state);
}

static void pair(struct bench *b, enum skua_qp_state from, enum skua_qp_state to)
{
	const struct want *want = find(b->qp.type, from, to);
	uint32_t attrs = A(ACCESS) | A(PKEY) | A(PORT) | A(QKEY) | A(AV) | A(PATH_MTU) |
			 A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(RQ_PSN) |
			 A(MAX_RD_ATOMIC) | A(MIN_RNR_TIMER) | A(SQ_PSN) |
			 A(MAX_DEST_RD_ATOMIC) | A(DEST_QPN) | A(SQD_NOTIFY) | A(RATE) |
			 A(VENDOR_OFF);

	if (!go(b, from))
		return;
	if (!want) {
		assert_status(modify(b, SKUA_QP_ANY_STATE, to, 0), BAD_STATE);
		assert_int_equal(where(b), from);
		return;
	}
	/* Another state than the software believes. */
	assert_status(modify(b, (from + 1) % STATES, to, want->required), BAD_STATE);
	for (uint32_t bit = 2; bit < 1u << 21; bit <<= 1) {
		if (!(attrs & bit))
			continue;
		if (want->required & bit) {
			assert_status(modify(b, from, to, want->required & ~bit), BAD_PARAM);
			assert_int_equal(where(b), from);
		} else if (optional(b->qp.type, want, to) & bit) {
			assert_status(modify(b, from, to, want->required | bit), OK);
			assert_int_equal(where(b), to);
			go(b, from);
		} else {
			assert_status(modify(b, from, to, want->required | bit), BAD_PARAM);
			assert_int_equal(where(b), from);
		}
	}
	assert_status(modify(b, from, to, want->required | optional(b->qp.type, want, to)), OK);
	assert_int_equal(where(b), to);
}

static void whole_table(void **state)
{
	for (unsigned int type = 0; type < TYPES; type++) {
		struct bench b;

		prepare(&b, *state, type);
		for (unsigned int from = 0; from < STATES; from++) {
			for (unsigned int to = 0; to < STATES; to++) {
				/* Only a datagram or UC queue stops by itself in SQE. */
				if (from == SKUA_QP_SQE && !find(type, from, SKUA_QP_RTS))
					continue;
				pair(&b, from, to);
			}
		}
		assert_status(mini_index(&b.r->m, SKUA_CMD_DESTROY_QP, b.qp.qpn, NULL, 0), OK);
	}
}

/* Without STATE in the mask the state stays, and the same rules hold. */
static void no_state(void **state)
{
	struct skua_cmd_modify_qp_in in = { .cur_state = cpu_to_le32(SKUA_QP_ANY_STATE) };
	struct rig *r = *state;
	struct bench b;

	prepare(&b, r, SKUA_QP_RC);
	go(&b, SKUA_QP_RTS);
	in.qpn = cpu_to_le32(b.qp.qpn);
	in.mask = cpu_to_le32(A(ACCESS));
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0), OK);
	in.mask = cpu_to_le32(A(SQ_PSN));
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0), BAD_PARAM);
	go(&b, SKUA_QP_RTR);
	in.mask = cpu_to_le32(A(ACCESS));
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0), BAD_STATE);
}

/* A QP on its way to RTR, with one value changed. */
#define RTR_MASK (RC_ADDR | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER))

static int to_rtr(struct bench *b, const struct skua_qp_attr *attr)
{
	const struct skua_qp_attr old = b->attr;
	int status;

	go(b, SKUA_QP_INIT);
	b->attr = *attr;
	status = modify(b, SKUA_QP_INIT, SKUA_QP_RTR, RTR_MASK);
	b->attr = old;
	return status;
}

static void values(void **state)
{
	struct rig *r = *state;
	struct skua_qp_attr a;
	struct bench b;

	prepare(&b, r, SKUA_QP_RC);
#define refuse(status, change) do { a = b.attr; change; assert_status(to_rtr(&b, &a), status); } while (0)
	refuse(OK, );
	for (uint32_t mtu = 0; mtu < 8; mtu++) {
		a = b.attr;
		le32p_replace_bits(&a.retry, mtu, SKUA_ATTR_PATH_MTU);
		assert_int_equal(to_rtr(&b, &a),
				 mtu >= 1 && mtu <= 5 ? SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_PARAM);
	}
	refuse(BAD_PARAM, a.rq_psn = cpu_to_le32(0x1000000));
	refuse(OK, a.rq_psn = cpu_to_le32(0xffffff));
	refuse(BAD_PARAM, a.dest_qpn = cpu_to_le32(0x1000000));
	refuse(BAD_PARAM, le32p_replace_bits(&a.rights, 17, SKUA_ATTR_MAX_DEST_RD_ATOMIC));
	refuse(OK, le32p_replace_bits(&a.rights, 16, SKUA_ATTR_MAX_DEST_RD_ATOMIC));
	refuse(OK, le32p_replace_bits(&a.retry, 31, SKUA_ATTR_MIN_RNR_TIMER));
	refuse(BAD_PARAM, a.av.sgid_index = cpu_to_le16(1));
	refuse(BAD_PARAM, a.av.sgid_index = cpu_to_le16(0xffff));
	refuse(BAD_PARAM, a.av.dmac[0] |= 1);
	refuse(BAD_PARAM, memset(a.av.dmac, 0, 6));
	refuse(BAD_PARAM, memset(a.av.dgid, 0, 16));
	refuse(BAD_PARAM, a.av.dgid[0] = 0xfd);
	refuse(BAD_PARAM, a.av.flow = cpu_to_le32(1u << 23));
	refuse(OK, a.av.flow = cpu_to_le32(0x7fffff));
#undef refuse
}

/* Operations of Skua's own: which there are, and only with the capability. */
static void vendor_bits(void **state)
{
	struct rig *r = *state;
	struct bench b;

	prepare(&b, r, SKUA_QP_RC);
	for (unsigned int bit = 0; bit < 32; bit++) {
		go(&b, SKUA_QP_INIT);
		b.attr.vendor_off = cpu_to_le32(1u << bit);
		assert_int_equal(modify(&b, SKUA_QP_INIT, SKUA_QP_RTR, RTR_MASK | A(VENDOR_OFF)),
				 1u << bit & SKUA_VENDOR_ALL ? SKUA_CMD_ST_OK :
							       SKUA_CMD_ST_BAD_PARAM);
	}
	r->f.dev->caps &= ~SKUA_CAP_VENDOR_OFF;
	go(&b, SKUA_QP_INIT);
	b.attr.vendor_off = 0;
	assert_status(modify(&b, SKUA_QP_INIT, SKUA_QP_RTR, RTR_MASK | A(VENDOR_OFF)), BAD_PARAM);
	assert_status(modify(&b, SKUA_QP_INIT, SKUA_QP_RTR, RTR_MASK), OK);
}

static void access_bits(void **state)
{
	struct rig *r = *state;
	struct bench b;

	prepare(&b, r, SKUA_QP_RC);
	for (unsigned int bit = 0; bit < 16; bit++) {
		uint32_t right = 1u << bit;
		bool ok = right & (SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_WRITE |
				   SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL |
				   SKUA_ACCESS_FLUSH_PERSISTENT);

		assert_status(modify(&b, SKUA_QP_ANY_STATE, SKUA_QP_RESET, 0), OK);
		le32p_replace_bits(&b.attr.rights, right, SKUA_ATTR_ACCESS);
		assert_int_equal(modify(&b, SKUA_QP_ANY_STATE, SKUA_QP_INIT,
					A(PKEY) | A(PORT) | A(ACCESS)),
				 ok ? SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_PARAM);
	}
}

/* The path MTU follows the port's. */
static void port_mtu_limits(void **state)
{
	static const struct {
		uint16_t port;
		uint32_t code;
	} cases[] = { { 352, 1 }, { 608, 2 }, { 1500, 3 }, { 1120, 3 }, { 2144, 4 }, { 4192, 5 },
		      { 9000, 5 } };
	struct rig *r = *state;
	struct bench b;

	prepare(&b, r, SKUA_QP_RC);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int below = 0; below < 2; below++) {
			struct skua_cmd_modify_port_in port = {
				.mask = cpu_to_le32(SKUA_PORT_M_MTU),
				.mtu = cpu_to_le16(cases[i].port - (below ? 1 : 0)),
			};
			bool edge = cases[i].port != 1500 && cases[i].port != 9000;
			struct skua_qp_attr a = b.attr;

			mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
			le32p_replace_bits(&a.retry, cases[i].code, SKUA_ATTR_PATH_MTU);
			assert_int_equal(to_rtr(&b, &a), edge && below ? SKUA_CMD_ST_BAD_PARAM :
									 SKUA_CMD_ST_OK);
		}
	}
}

/* Whatever is not in the mask is zero, and so is what has no meaning. */
static void stray_values(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_qp_in in;
	struct bench b;

	prepare(&b, r, SKUA_QP_RC);
	for (unsigned int off = offsetof(struct skua_cmd_modify_qp_in, reserved); off < sizeof(in);
	     off++) {
		memset(&in, 0, sizeof(in));
		in.qpn = cpu_to_le32(b.qp.qpn);
		in.mask = cpu_to_le32(SKUA_QP_M_STATE);
		in.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE);
		in.attr.state = le32_encode_bits(SKUA_QP_ERR, SKUA_ATTR_STATE);
		((uint8_t *)&in)[off] |= 0x80;
		assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0),
			      BAD_PARAM);
	}
	memset(&in, 0, sizeof(in));
	in.qpn = cpu_to_le32(b.qp.qpn);
	in.mask = cpu_to_le32(SKUA_QP_M_STATE);
	for (uint32_t s = STATES; s < 16; s++) {
		in.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE);
		in.attr.state = cpu_to_le32(s);
		assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0),
			      BAD_PARAM);
		in.cur_state = cpu_to_le32(s);
		in.attr.state = 0;
		assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0),
			      BAD_PARAM);
	}
	in.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE);
	for (uint32_t bit = 18; bit < 32; bit++) {
		/* It is not of the state machine: test_counter.c. */
		if (1u << bit == SKUA_QP_M_COUNTER)
			continue;
		in.mask = cpu_to_le32(1u << bit);
		assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0),
			      BAD_PARAM);
	}
	in.mask = cpu_to_le32(SKUA_QP_M_STATE);
	in.qpn = cpu_to_le32(b.qp.qpn ^ 1u << MODEL_LOG_QP);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0), BAD_INDEX);
	in.qpn = cpu_to_le32(b.qp.qpn | 1u << 24);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0), BAD_INDEX);
}

static void create_checks(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_qp_in good, in;
	struct mini_cq cq;
	struct mini_qp qp;

	mini_cq_create(&r->m, &cq, 4);
	good = mini_qp_in(&r->m, &qp, SKUA_QP_RC, &cq, &cq, 3, 3, 1);
#define refuse(status, change) do {								\
		in = good;									\
		change;										\
		assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0),	\
			      status);								\
	} while (0)
	/* Types need their capabilities. */
	r->f.dev->caps &= ~(SKUA_CAP_UC | SKUA_CAP_UD | SKUA_CAP_DB_SUPPRESS |
			    SKUA_CAP_SCATTER_CQE);
	for (unsigned int type = 1; type < 16; type++) {
		if (type != SKUA_QP_RAW_ETH)
			refuse(BAD_PARAM, le32p_replace_bits(&in.sq.flags, type, SKUA_QP_TYPE));
	}
	refuse(BAD_PARAM, in.sq.flags |= cpu_to_le32(SKUA_QP_F_SCATTER_RQ_CQE));
	refuse(BAD_PARAM, in.sq.flags |= cpu_to_le32(SKUA_QP_F_DB_SUPPRESS));
	refuse(BAD_PARAM, in.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ));
	refuse(BAD_PARAM, in.sq.flags |= cpu_to_le32(1u << 13));
	refuse(BAD_PARAM, in.sq.flags |= cpu_to_le32(1u << 21));
	refuse(BAD_PARAM, in.sq.flags |= cpu_to_le32(SKUA_QP_F_NO_SQ));
	refuse(BAD_PARAM, in.sq.flags |= cpu_to_le32(SKUA_QP_F_NO_RQ));
	refuse(BAD_PARAM, le32p_replace_bits(&in.sq.flags, MODEL_LOG_SQ_MAX + 1, SKUA_QP_LOG_SQ));
	refuse(BAD_PARAM, le32p_replace_bits(&in.rq.flags, MODEL_LOG_RQ_MAX + 1, SKUA_RQ_LOG_SIZE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.rq.flags, MODEL_LOG_RQ_STRIDE_MAX + 1,
					     SKUA_RQ_LOG_STRIDE));
	refuse(BAD_PARAM, in.rq.flags |= cpu_to_le32(1u << 5));
	refuse(BAD_PARAM, in.sq.uar = cpu_to_le32(0xffffffff));
	refuse(BAD_PARAM, in.sq.dbr = cpu_to_le64(qp.dbr + 8));
	refuse(BAD_PARAM, in.sq.max_inline = cpu_to_le32(MODEL_MAX_INLINE + 1));
	refuse(BAD_PARAM, in.sq.ring.offset = cpu_to_le32(8));
	refuse(BAD_PARAM, in.rq.ring.base = cpu_to_le64(qp.rq + 16));
	refuse(BAD_PARAM, in.rq.xrcd = cpu_to_le32(1));
	refuse(BAD_PARAM, in.rq.srqn = cpu_to_le32(1));
	refuse(BAD_INDEX, in.counter = cpu_to_le32(1));
	refuse(BAD_PARAM, in.reserved = cpu_to_le32(1));
	refuse(BAD_INDEX, in.sq.cqn = cpu_to_le32(99));
	refuse(BAD_INDEX, in.rq.cqn = cpu_to_le32(0xffffffff));
	refuse(BAD_INDEX, in.sq.qpn = 0);
	refuse(BAD_INDEX, in.sq.qpn = cpu_to_le32(1));
	refuse(BAD_INDEX, in.sq.qpn = cpu_to_le32(0xffffff));
	refuse(BAD_INDEX, in.sq.qpn |= cpu_to_le32(1u << 24));
	refuse(NO_ICM, in.sq.qpn = cpu_to_le32(MINI_MAPPED));
	refuse(BAD_INDEX, in.sq.qpn = cpu_to_le32(1u << MINI_LOG_QP));
	refuse(OK, );
	refuse(EXISTS, );
	refuse(EXISTS, in.sq.qpn ^= cpu_to_le32(1u << MODEL_LOG_QP));
#undef refuse
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp.qpn ^ 1u << MODEL_LOG_QP, NULL, 0),
		      BAD_INDEX);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp.qpn | 1u << 24, NULL, 0), BAD_INDEX);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp.qpn, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp.qpn, NULL, 0), BAD_INDEX);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_QP, qp.qpn, NULL, 768), BAD_INDEX);
}

/* What MODIFY set, QUERY tells; RESET forgets it. */
static void query(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_query_qp_out out;
	struct skua_qp_attr zero = { 0 };
	struct bench b;

	prepare(&b, r, SKUA_QP_RC);
	go(&b, SKUA_QP_RTS);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_QP, b.qp.qpn, &out, sizeof(out)), OK);
	assert_memory_equal(&out.sqc.attr.av, &b.attr.av, sizeof(b.attr.av));
	assert_int_equal(out.sqc.attr.retry, b.attr.retry);
	assert_int_equal(out.sqc.attr.rights, b.attr.rights);
	assert_int_equal(out.sqc.attr.sq_psn, b.attr.sq_psn);
	assert_int_equal(out.sqc.attr.rq_psn, b.attr.rq_psn);
	assert_int_equal(out.sqc.attr.dest_qpn, b.attr.dest_qpn);
	assert_int_equal(le32_to_cpu(out.sqc.cfg.qpn), b.qp.qpn);
	assert_int_equal(le64_to_cpu(out.rqc.cfg.ring.base), b.qp.rq);
	assert_memory_equal(mini_icm(&r->m, SKUA_ICM_SQC, qp_index(b.qp.qpn)), &out.sqc,
			    sizeof(out.sqc));
	assert_status(modify(&b, SKUA_QP_RTS, SKUA_QP_RESET, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_QP, b.qp.qpn, &out, sizeof(out)), OK);
	assert_memory_equal(&out.sqc.attr, &zero, sizeof(zero));
	assert_int_equal(le32_to_cpu(out.sqc.cfg.qpn), b.qp.qpn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(whole_table),
		rig_test(no_state),
		rig_test(values),
		rig_test(vendor_bits),
		rig_test(access_bits),
		rig_test(port_mtu_limits),
		rig_test(stray_values),
		rig_test(create_checks),
		rig_test(query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
