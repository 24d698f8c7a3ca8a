// SPDX-License-Identifier: GPL-2.0
/*
 * An XRC initiator between a guest who posts what he likes, to whatever SRQ, and a wire that
 * loses packets and brings responses that nobody sent. The target behind it is honest; its
 * SRQs come and go, one is of another domain. All that is sent is well formed and names an
 * SRQ; completions come in order, each once; all comes to an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc_fuzz_wqe.h"
#include "rc_srq.h"

#define SRQS		4	/* the last one is of another domain */
#define SRQ_LOG		4
#define SRQN(k)		(30 + (k))

static struct rc_srq srq[SRQS];
static bool srq_made[SRQS];
static struct rc_opt opt;
static struct fuzz_race race;
/* Of the WQEs of the initiator's ring, those before were completed. */
static uint32_t done;
/* One of so many packets of either side is lost; 0: none. */
static uint32_t lose[2], sent[2];

/* --- the wire --- */

static bool filter(void *priv, struct fake_frame *frame)
{
	int from = priv != &rc.s[0];
	struct skua_pkt pkt;

	must(!skua_pkt_parse(frame->data, frame->len, &pkt), "malformed packet sent");
	must(pkt.dqpn == rc.s[1 - from].qp.qpn, "packet for a stranger");
	must(ib_opcode_transport(pkt.opcode) == IB_TRANSPORT_XRC, "packet of another transport");
	must(from ? pkt.op->flags & IB_F_RESPONSE : pkt.op->flags & IB_F_REQUEST,
	     "a request of the target, or a response");
	return !lose[from] || ++sent[from] % lose[from];
}

/* A response near one that is waited for. */
static void response(struct input *in)
{
	static const uint8_t ops[] = {
		IB_OP_ACK, IB_OP_ACK, IB_OP_READ_RESP_FIRST, IB_OP_READ_RESP_MIDDLE,
		IB_OP_READ_RESP_LAST, IB_OP_READ_RESP_ONLY, IB_OP_ATOMIC_ACK,
	};
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096], pick = (uint8_t)take(in, 1);
	uint8_t op = ops[(pick & 0x0f) % sizeof(ops)], psn = (uint8_t)take(in, 1);
	struct skua_cmd_query_qp_out q = rc_query(&rc, 0);
	uint32_t payload = pick & 0x10 ? rc.mtu : (uint32_t)take(in, 1);
	struct skua_pkt_build b;

	op |= pick & 0x80 ? IB_TRANSPORT_SKUA_XRC : pick & 0x40 ? IB_TRANSPORT_RC :
							       IB_TRANSPORT_XRC;
	if (!ib_opcode_info(op) ||
	    rc_build(&rc, 1, &b, frame, sizeof(frame), op,
		     (le32_to_cpu(q.sqc.una_psn) + (uint32_t)(psn < 200 ? psn % 32 :
							      (int8_t)psn)) & IB_PSN_MASK))
		return;
	if (b.seth)
		ib_seth_put(b.seth, (uint8_t)take(in, 1), (uint32_t)take(in, 1),
			    (uint32_t)take(in, 1) % 4);
	if (b.aeth)
		ib_aeth_put(b.aeth, (uint8_t)take(in, 1), (uint32_t)take(in, 1));
	if (b.atomicacketh)
		be64_put(b.atomicacketh->orig, take(in, 8));
	memset(b.payload, pick & 0x20 ? 0x55 : 0xaa, payload);
	rc_inject(&rc, 0, &b, ib_opcode_info(op)->flags & IB_F_PAYLOAD ? payload : 0);
}

/* --- completions --- */

static void take_completions(void)
{
	struct rc_side *s = &rc.s[0];
	struct skua_cqe cqe;

	while (mini_cq_next(&s->m, &s->scq, &cqe)) {
		uint32_t ahead = (uint16_t)(skua_cqe_wqe_index(&cqe) - done);

		must(le32_to_cpu(cqe.qpn) == s->qp.qpn, "completion of another QP");
		must(skua_cqe_opcode(&cqe) == SKUA_CQE_REQ, "a receive of the initiator");
		must(ahead < s->qp.sq_pi - done, "completion of what was not posted, or twice");
		done += ahead + 1;
	}
	while (mini_cq_next(&rc.s[1].m, &rc.s[1].rcq, &cqe)) {
		uint32_t k = le32_to_cpu(cqe.srqn) - SRQN(0);

		must(k < SRQS - 1, "receive of an SRQ of another domain");
		must(skua_cqe_wqe_index(&cqe) < 1u << SRQ_LOG, "receive of no WQE");
	}
}

/* --- the target's SRQs --- */

static void make_srq(unsigned int k)
{
	struct rc_srq *q = &srq[k];
	struct skua_srqc in = {
		.flags = le32_encode_bits(SRQ_LOG, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(1, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(MINI_PD),
		.xrcd = cpu_to_le32(MINI_XRCD + (k == SRQS - 1)),
		.cqn = cpu_to_le32(rc.s[1].rcq.cqn),
		.srqn = cpu_to_le32(SRQN(k)),
		.ring.base = cpu_to_le64(q->ring),
		.dbr = cpu_to_le64(q->dbr),
	};

	memset(fake_ptr(&rc.s[1].f, q->dbr), 0, sizeof(struct skua_srq_dbr));
	q->pi = 0;
	mini_ok(&rc.s[1].m, SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
	srq_made[k] = true;
}

static void change_srq(unsigned int k, struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);

	if (pick >= 0xf0 && srq_made[k]) {
		must(!mini_index(&rc.s[1].m, SKUA_CMD_DESTROY_SRQ, SRQN(k), NULL, 0), "SRQ stays");
		srq_made[k] = false;
	} else if (!srq_made[k]) {
		make_srq(k);
	} else {
		/* Room is not looked for: what is posted too often is posted no more. */
		for (unsigned int n = pick % 8; n && rc_srq_left(&srq[k]) < (1u << SRQ_LOG) - 1; n--)
			rc_srq_post(&srq[k], take(in, 2), (uint32_t)take(in, 2));
	}
}

/* --- the initiator --- */

static void restart(void)
{
	struct rc_side *s = &rc.s[0];

	take_completions();
	for (int i = 0; i < 2; i++)
		must(!mini_qp_modify(&rc.s[i].m, &rc.s[i].qp, SKUA_QP_RESET, 0, NULL), "no RESET");
	take_completions();
	memset(fake_ptr(&s->f, s->qp.dbr), 0, sizeof(struct skua_qp_dbr));
	s->qp.sq_pi = 0;
	s->qp.sq_told = 0;
	done = 0;
	rc_xrc_rts(&rc, &opt);
}

static void scribble(struct input *in)
{
	const struct mini_qp *qp = &rc.s[0].qp;
	uint64_t off = take(in, 2) % ((64u << qp->log_sq) - 64);

	take_bytes(in, fake_ptr(&rc.s[0].f, qp->sq + off), 1 + take(in, 1) % 64);
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);
	struct mini_qp *qp = &rc.s[0].qp;

	switch (act & 0x0f) {
	case 0 ... 3:
		rc_fuzz_post(0, SRQN(act >> 4 & 7), in);
		break;
	case 4:
		if (act & 0x10)
			rc_fuzz_push(0, qp, act >> 5 & 3, NULL);
		else
			mini_ring(&rc.s[0].m, qp);
		break;
	case 5 ... 6:
		change_srq(act >> 4 & 3, in);
		break;
	case 7:
		response(in);
		break;
	case 8:
		if (act & 0x80)
			fuzz_race(&race, &rc.s[0].f, in);
		else
			scribble(in);
		break;
	case 9:
		if (act & 0x10)
			rc_fuzz_odp(act >> 7, in);
		else
			skua_dev_run(rc.s[0].f.dev);
		break;
	case 10:
		lose[act >> 7] = (uint32_t)take(in, 1) % 32;
		break;
	case 11:
		rc_pump_for(&rc, 1 + take(in, 3));
		break;
	case 12:
		if (act & 0x80)
			restart();
		else if (act & 0x10)
			mini_qp_modify(&rc.s[0].m, qp, act & 0x20 ? SKUA_QP_SQD : SKUA_QP_RTS, 0,
				       NULL);
		else if (act & 0x20)
			mini_qp_modify(&rc.s[act >> 6 & 1].m, &rc.s[act >> 6 & 1].qp, SKUA_QP_ERR,
				       0, NULL);
		break;
	case 13:
		rc_fuzz_recovery(act >> 7, in);
		break;
	default:
		mini_ring(&rc.s[0].m, qp);
		rc_pump(&rc);
		break;
	}
	take_completions();
}

static void open_all(struct input *in)
{
	uint8_t cfg = (uint8_t)take(in, 1), last = take_last(in);

	rc_fuzz_open();
	for (int i = 0; i < 2; i++)
		rc_fuzz_reset(i);
	opt = rc_fuzz_opt(cfg, last);
	opt.log_sq = 6;
	rc.mtu = 128u << opt.mtu_code;
	for (unsigned int k = 0; k < SRQS; k++) {
		srq[k] = (struct rc_srq){ .rc = &rc, .i = 1, .srqn = SRQN(k), .log = SRQ_LOG };
		srq[k].ring = fake_alloc(&rc.s[1].f, RC_SRQ_SEGS * SKUA_WQE_SEG << SRQ_LOG, 4096);
		srq[k].dbr = fake_alloc(&rc.s[1].f, sizeof(struct skua_srq_dbr), SKUA_DBR_ALIGN);
		make_srq(k);
		for (unsigned int n = 0; n < 8; n++)
			rc_srq_post(&srq[k], n * 8192, 8192);
	}
	rc_xrc_up(&rc, &opt);
	done = 0;
	race = (struct fuzz_race){ 0 };
	fuzz_race_at(&race, rc.s[0].qp.sq, (uint64_t)SKUA_WQE_BLOCK << opt.log_sq);
	memset(lose, 0, sizeof(lose));
	memset(sent, 0, sizeof(sent));
	for (int i = 0; i < 2; i++) {
		rc.s[i].f.filter = filter;
		rc.s[i].f.filter_priv = &rc.s[i];
	}
	/* There payload goes in trains, and nothing is lost. */
	if (last & 0x01)
		fake_switch(&rc.s[0].f, &rc.s[1].f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	open_all(&in);
	while (in.left)
		step(&in);
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump_for(&rc, 10000000);
	take_completions();
	/* What is left is flushed. */
	must(!mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), "no ERR");
	rc_pump(&rc);
	take_completions();
	must(le32_to_cpu(rc_query(&rc, 0).sqc.ci) == rc.s[0].qp.sq_pi, "work is left");
	rc_fuzz_close();
	return 0;
}
