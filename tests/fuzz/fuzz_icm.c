// SPDX-License-Identifier: GPL-2.0
/*
 * A host that changes what the device keeps in its memory: contexts of all tables and the
 * MTT, while they are not cached; and any memory between two reads of one turn. One
 * device suffers so, with an RC connection, another that receives from an SRQ, a
 * RAW_ETH queue behind RSS, windows and regions. It may stop, saying why; its neighbour on the
 * wire stays whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skua/wqe_build.h>

#include "rc_fuzz.h"
#include "icm.h"

#define SRQN	5
#define RSS	1

static struct mini_qp shared[2], eth;
static uint64_t srq_ring, srq_dbr;

static struct fuzz_race race;

static void make_srq(struct mini *m)
{
	struct skua_srqc in = {
		.flags = le32_encode_bits(4, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(2, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(MINI_PD),
		.srqn = cpu_to_le32(SRQN),
	};

	srq_ring = fake_alloc(m->f, 16 * 64, 4096);
	srq_dbr = fake_alloc(m->f, sizeof(struct skua_srq_dbr), SKUA_DBR_ALIGN);
	in.ring.base = cpu_to_le64(srq_ring);
	in.dbr = cpu_to_le64(srq_dbr);
	mini_ok(m, SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
	for (uint32_t k = 0; k < 16; k++) {
		uint8_t *w = fake_ptr(m->f, srq_ring + k * 64);

		skua_srq_next_set((void *)w, (k + 1) % 16);
		skua_wqe_data_set((void *)(w + SKUA_WQE_SEG), RC_VA + k * 4096, rc.s[0].key, 4096);
		skua_wqe_data_set((void *)(w + 2 * SKUA_WQE_SEG), 0, SKUA_INVALID_LKEY, 0);
	}
	((struct skua_srq_dbr *)fake_ptr(m->f, srq_dbr))->pi = cpu_to_le32(15);
}

static void make_rss(struct mini *m)
{
	struct skua_cmd_modify_port_in port = { .mask = cpu_to_le32(SKUA_PORT_M_DFLT) };
	struct skua_cmd_create_rss_in in = {
		.index = cpu_to_le32(RSS),
		.rss.flags = le32_encode_bits(2, SKUA_RSS_LOG_SIZE) |
			     cpu_to_le32(SKUA_RSS_IPV4 | SKUA_RSS_UDP_IPV4),
	};

	mini_qp_create(m, &eth, SKUA_QP_RAW_ETH, &rc.s[0].scq, &rc.s[0].rcq, 4, 4, 1);
	mini_eth_to_rts(m, &eth);
	for (unsigned int k = 0; k < 4; k++)
		in.rss.qpn[k] = cpu_to_le32(eth.qpn);
	mini_ok(m, SKUA_CMD_CREATE_RSS, &in, sizeof(in));
	port.dflt = cpu_to_le32(RSS | SKUA_PORT_DFLT_RSS);
	mini_ok(m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
}

static void open_all(struct input *in)
{
	const struct rc_opt opt = { .mtu_code = 1, .timeout = 5, .log_sq = 4, .log_rq = 4 };
	struct skua_cmd_create_qp_in srq_qp;

	rc_fuzz_open();
	rc_fuzz_start(in);
	make_srq(&rc.s[0].m);
	make_rss(&rc.s[0].m);
	srq_qp = mini_qp_in(&rc.s[0].m, &shared[0], SKUA_QP_RC, &rc.s[0].scq, &rc.s[0].rcq, 4, 0,
			    0);
	srq_qp.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ);
	srq_qp.rq.srqn = cpu_to_le32(SRQN);
	memset(&srq_qp.rq.ring, 0, sizeof(srq_qp.rq.ring));
	mini_ok(&rc.s[0].m, SKUA_CMD_CREATE_QP, &srq_qp, sizeof(srq_qp));
	rc_qp(&rc, 1, &shared[1], &opt);
	for (int i = 0; i < 2; i++) {
		struct skua_qp_attr a = rc_attr(&rc, i, &opt, shared[1 - i].qpn);

		mini_rc_to_rts(&rc.s[i].m, &shared[i], &a);
	}
	rc.s[0].f.unjudged = true;
	memset(&race, 0, sizeof(race));
}

static bool dead(void)
{
	return rc.s[0].f.dev->state == DEV_FATAL;
}

/* A byte or a word of a context of an object that there is, or nearly. */
static void scribble(struct input *in)
{
	static const enum skua_icm_table tables[] = {
		SKUA_ICM_SQC, SKUA_ICM_RQC, SKUA_ICM_RRC, SKUA_ICM_CQC, SKUA_ICM_EQC,
		SKUA_ICM_SRQC, SKUA_ICM_MPT, SKUA_ICM_MTT, SKUA_ICM_RSS, SKUA_ICM_GID,
		SKUA_ICM_LRC,
	};
	enum skua_icm_table table = tables[take(in, 1) % (sizeof(tables) / sizeof(tables[0]))];
	uint32_t pick = (uint32_t)take(in, 1), index = pick % 8, n = 1 + (pick >> 5) % 4;
	struct icm_table *t = &rc.s[0].f.dev->icm->table[table];
	uint32_t at = (uint32_t)take(in, 2) % t->size;
	uint8_t bytes[4];

	if (table == SKUA_ICM_LRC)
		index = qp_index(rc.s[0].qp.qpn);
	if (table == SKUA_ICM_SQC || table == SKUA_ICM_RQC || table == SKUA_ICM_RRC)
		index = qp_index(pick & 1 ? rc.s[0].qp.qpn : pick & 2 ? shared[0].qpn : eth.qpn);
	if (table == SKUA_ICM_MPT)
		index = pick & 8 ? rc.s[0].key >> 8 : fuzz[0].key[pick % FUZZ_KEYS] >> 8;
	if (table == SKUA_ICM_SRQC)
		index = SRQN;
	if (table == SKUA_ICM_RSS)
		index = RSS;
	if (table == SKUA_ICM_MTT)
		index = fuzz[0].odp_mtt + pick % 20;
	take_bytes(in, bytes, n);
	if (n > t->size - at)
		n = t->size - at;
	/* What is cached is written back first, and read again when it is used. */
	cache_evict_range(rc.s[0].f.dev, 0, UINT64_MAX);
	memcpy((uint8_t *)mini_icm(&rc.s[0].m, table, index) + at, bytes, n);
}

/* A doorbell only: with a device that stops no state can be asked for. */
static void post(int i, struct mini_qp *qp, bool push, struct input *in)
{
	static const uint8_t ops[] = {
		SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_FAA, SKUA_WQE_WRITE_IMM,
		SKUA_WQE_FLUSH, SKUA_WQE_ATOMIC_WRITE, SKUA_WQE_NOP,
	};
	struct rc_wr wr = { .op = ops[take(in, 1) % sizeof(ops)] };

	wr.len = wr.op == SKUA_WQE_FAA || wr.op == SKUA_WQE_ATOMIC_WRITE ? 8 :
							(uint32_t)take(in, 2) % 5000;
	wr.flush = 1;
	wr.roff = (take(in, 2) & ~7ull);
	wr.rkey = rc_fuzz_key(1 - i, in);
	rc_post_quiet(&rc, i, qp, &wr);
	if (push)
		rc_fuzz_push(i, qp, 0, NULL);
	else
		mini_ring(&rc.s[i].m, qp);
}

/* Selective repeat: a packet before its turn, or what was missing. */
static void early(struct input *in)
{
	static const uint8_t ops[] = {
		IB_OP_SEND_FIRST, IB_OP_SEND_MIDDLE, IB_OP_SEND_LAST_IMM, IB_OP_SEND_ONLY,
		IB_OP_WRITE_FIRST, IB_OP_WRITE_MIDDLE, IB_OP_WRITE_LAST, IB_OP_WRITE_ONLY_IMM,
		IB_OP_READ_REQUEST, IB_OP_WRITE_ONLY,
	};
	uint8_t op = IB_TRANSPORT_SKUA_RC | ops[take(in, 1) % sizeof(ops)];
	uint32_t at = (uint32_t)take(in, 1), len = op == (IB_TRANSPORT_SKUA_RC |
							 IB_OP_READ_REQUEST) ? 0 : rc.mtu;
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;

	must(!rc_build(&rc, 1, &b, frame, sizeof(frame), op,
		       (le32_to_cpu(rc.s[0].attr.rq_psn) + at % 16) & IB_PSN_MASK), "no packet");
	ib_seth_put(b.seth, 0, (uint32_t)take(in, 1) % 4, at >> 4 & 3);
	if (b.reth)
		ib_reth_put(b.reth, RC_VA + take(in, 2), rc_fuzz_key(0, in),
			    len * (1 + (at >> 6)));
	memset(b.payload, 0x33, len);
	rc_inject(&rc, 0, &b, len);
}

static void ethernet(struct input *in)
{
	uint8_t frame[128] = { 0 };

	memcpy(frame, rc.s[0].mac, 6);
	frame[12] = 0x08;
	frame[14] = 0x45;
	frame[17] = 100;
	frame[23] = 17;
	take_bytes(in, frame + 26, 12);
	fake_rx(&rc.s[0].f, frame, sizeof(frame));
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);
	int i = act >> 7;

	switch (act & 0x0f) {
	case 0 ... 3:
		scribble(in);
		break;
	case 4 ... 6:
		post(i, act & 0x10 ? &shared[i] : &rc.s[i].qp, act & 0x20, in);
		break;
	case 7:
		rc_recv(&rc, i, (uint64_t)take(in, 2), (uint32_t)take(in, 2));
		break;
	case 8:
		ethernet(in);
		break;
	case 9:
		fuzz_race(&race, &rc.s[0].f, in);
		break;
	case 10:
		mini_cq_arm(&rc.s[0].m, act & 0x10 ? &rc.s[0].scq : &rc.s[0].rcq, act & 0x20);
		mini_eq_db(&rc.s[0].m, &rc.s[0].m.eq[MINI_EQ_COMP], true);
		break;
	case 11:
		rc_pump_for(&rc, 1 + take(in, 3));
		break;
	case 13:
		early(in);
		break;
	case 14:
		rc_fuzz_recovery(0, in);
		break;
	case 12:
		if (act & 0x10)
			mini_index(&rc.s[0].m, SKUA_CMD_DESTROY_QP, shared[0].qpn, NULL, 0);
		else if (act & 0x20)
			mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL);
		else
			mini_index(&rc.s[0].m, SKUA_CMD_DESTROY_RSS, RSS, NULL, 0);
		break;
	default:
		rc_pump(&rc);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	open_all(&in);
	while (in.left && !dead())
		step(&in);
	if (!dead())
		rc_pump_for(&rc, 10000000);
	must(rc.s[1].f.dev->state == DEV_OPERATIONAL, "the neighbour died");
	rc_close(&rc);
	return 0;
}
