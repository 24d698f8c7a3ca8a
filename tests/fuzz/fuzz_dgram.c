// SPDX-License-Identifier: GPL-2.0
/*
 * Unreliable services between a stranger on the wire and a guest who posts what he
 * likes: UC, UD and GSI queues that get packets from plausible to nonsense, to
 * groups too, and send by address vectors that are right but for what the input
 * wants otherwise. Nothing that they send may be malformed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "rc_fuzz.h"

enum { UC, UD, GSI, QPS };

static struct mini_cq cq;
static struct mini_qp qps[QPS];
static struct skua_qp_attr attrs[QPS];
static uint8_t group[16] = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 };

static struct mini *m(void)
{
	return &rc.s[0].m;
}

static void restart(struct mini_qp *qp, const struct skua_qp_attr *attr)
{
	must(!mini_qp_modify(m(), qp, SKUA_QP_RESET, 0, NULL), "no RESET");
	memset(fake_ptr(&rc.s[0].f, qp->dbr), 0, sizeof(struct skua_qp_dbr));
	qp->sq_pi = 0;
	qp->rq_pi = 0;
	mini_rc_to_rts(m(), qp, attr);
}

static void drain(void)
{
	struct skua_cqe cqe;

	while (mini_cq_next(m(), &cq, &cqe)) {
		uint32_t qpn = le32_to_cpu(cqe.qpn);

		must(qpn == qps[UC].qpn || qpn == qps[UD].qpn || qpn == qps[GSI].qpn,
		     "completion of another QP");
	}
}

static void check_frames(void)
{
	struct fake_frame *frame;
	struct skua_pkt pkt;

	while ((frame = fake_tx(&rc.s[0].f))) {
		must(!skua_pkt_parse(frame->data, frame->len, &pkt), "malformed packet sent");
		must(!pkt.deth || be24_get(pkt.deth->sqpn) == qps[UD].qpn ||
		     be24_get(pkt.deth->sqpn) == IB_QPN_GSI, "sent under another's name");
		must(!memcmp(pkt.smac, rc.s[0].mac, 6), "sent from another's address");
		free(frame);
	}
}

static uint8_t some_opcode(struct input *in, uint8_t pick)
{
	if (pick < 120)
		return IB_TRANSPORT_UC | take(in, 1) % 12;
	if (pick < 240)
		return IB_TRANSPORT_UD | (IB_OP_SEND_ONLY + (pick & 1));
	return (uint8_t)take(in, 1);
}

static void packet(struct input *in)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 5000];
	struct skua_pkt_addr addr = rc_addr(&rc, 1);
	struct skua_pkt_bth bth = { .pkey = IB_PKEY_DEFAULT };
	uint8_t pick = (uint8_t)take(in, 1), how = (uint8_t)take(in, 1);
	struct skua_cmd_query_qp_out q;
	struct skua_pkt_build b;
	uint32_t payload;

	bth.opcode = some_opcode(in, pick);
	if (!ib_opcode_info(bth.opcode))
		return;
	must(!mini_index(m(), SKUA_CMD_QUERY_QP, qps[UC].qpn, &q, sizeof(q)), "no query");
	bth.dqpn = how < 250 ? qps[pick < 120 ? UC : UD + (how & 1)].qpn : (uint32_t)take(in, 3);
	bth.psn = le32_to_cpu(q.rqc.epsn) + (how & 0x70 ? 0 : (int8_t)take(in, 1));
	bth.se = how & 2;
	if (how & 4) {
		memcpy(addr.dgid, group, 16);
		ib_gid_multicast_mac(group, addr.dmac);
		bth.dqpn = how & 8 ? bth.dqpn : SKUA_QPN_MULTICAST;
	}
	payload = how & 8 ? rc.mtu : (uint32_t)take(in, how & 0x10 ? 2 : 1) % 4200;
	if (!(ib_opcode_info(bth.opcode)->flags & IB_F_PAYLOAD))
		payload = 0;
	if (skua_pkt_build_start(&b, frame, sizeof(frame), &addr, &bth))
		return;
	if (b.deth)
		ib_deth_put(b.deth, how & 0x80 ? (uint32_t)take(in, 4) :
			    bth.dqpn == IB_QPN_GSI ? SKUA_QKEY_GSI : RC_QKEY, 5);
	if (b.reth)
		ib_reth_put(b.reth, RC_VA + take(in, 3), rc.s[0].key,
			    how & 0x20 ? payload : (uint32_t)take(in, 3));
	memset(b.payload, 0x55, payload);
	rc_inject(&rc, 0, &b, payload);
}

static void post(struct input *in)
{
	static const uint8_t ops[] = { SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE,
				       SKUA_WQE_NOP, SKUA_WQE_SEND, SKUA_WQE_READ };
	uint8_t pick = (uint8_t)take(in, 1);
	struct mini_qp *qp = &qps[pick % QPS];
	struct skua_wqe_av av = rc_av(&rc, 0);
	struct skua_cmd_query_qp_out q;
	struct rc_wr wr = { .av = &av };

	must(!mini_index(m(), SKUA_CMD_QUERY_QP, qp->qpn, &q, sizeof(q)), "no query");
	if (qp->sq_pi - le32_to_cpu(q.sqc.ci) > 48)
		return;
	wr.op = ops[take(in, 1) % sizeof(ops)];
	wr.len = (uint32_t)take(in, 2) % 6000;
	wr.quiet = pick & 0x10;
	if (pick & 0x20) {
		wr.flags = SKUA_WQE_F_INLINE;
		wr.len %= 300;
	}
	if (pick & 0x40) {
		memcpy(av.av.dgid, group, 16);
		ib_gid_multicast_mac(group, av.av.dmac);
		av.dest_qpn = cpu_to_le32(SKUA_QPN_MULTICAST);
	}
	/* To ourselves. */
	if (take(in, 1) & 1) {
		mini_gid_addr(av.av.dgid, 1, false);
		memcpy(av.av.dmac, rc.s[0].mac, 6);
		av.dest_qpn = cpu_to_le32(qps[UD].qpn);
	}
	if (pick & 0x80)
		((uint8_t *)&av)[take(in, 1) % sizeof(av)] ^= (uint8_t)take(in, 1);
	rc_post_quiet(&rc, 0, qp, &wr);
	mini_ring(m(), qp);
}

static void receive(struct input *in)
{
	struct mini_qp *qp = &qps[take(in, 1) % QPS];
	struct skua_wqe_data d = {
		.addr = cpu_to_le64(RC_VA + take(in, 2)),
		.lkey = cpu_to_le32(rc_fuzz_key(0, in)),
		.len = cpu_to_le32((uint32_t)take(in, 2)),
	};

	mini_recv(m(), qp, &d, 1);
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);

	switch (act & 0x0f) {
	case 0 ... 2:
		post(in);
		break;
	case 3 ... 5:
		receive(in);
		break;
	case 6:
		fake_run(&rc.s[0].f);
		break;
	case 7:
		mini_qp_modify(m(), &qps[(act >> 4) % QPS], act & 0x80 ? SKUA_QP_SQD :
			       SKUA_QP_RTS, 0, NULL);
		break;
	case 8:
		skua_dev_run(rc.s[0].f.dev);
		break;
	default:
		packet(in);
		break;
	}
	check_frames();
	drain();
}

static void open_all(void)
{
	static const enum skua_qp_type types[QPS] = { SKUA_QP_UC, SKUA_QP_UD, SKUA_QP_GSI };
	struct skua_cmd_mcg_in mcg = { 0 };

	rc_fuzz_open();
	mini_cq_create(m(), &cq, 13);
	for (unsigned int k = 0; k < QPS; k++) {
		const struct rc_opt opt = { .type = types[k], .mtu_code = 1 };
		struct skua_cmd_create_qp_in in;

		in = mini_qp_in(m(), &qps[k], types[k], &cq, &cq, 6, 6, 2);
		if (types[k] == SKUA_QP_GSI) {
			qps[k].qpn = IB_QPN_GSI;
			in.sq.qpn = cpu_to_le32(IB_QPN_GSI);
		}
		mini_ok(m(), SKUA_CMD_CREATE_QP, &in, sizeof(in));
		attrs[k] = rc_attr(&rc, 0, &opt, rc.s[1].qp.qpn);
	}
	memcpy(mcg.mcg.gid, group, 16);
	mcg.mcg.qpn = cpu_to_le32(qps[UD].qpn);
	mini_ok(m(), SKUA_CMD_ATTACH_MCG, &mcg, sizeof(mcg));
	rc.mtu = 256;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	open_all();
	for (unsigned int k = 0; k < QPS; k++)
		restart(&qps[k], &attrs[k]);
	drain();
	while (in.left)
		step(&in);
	fake_run(&rc.s[0].f);
	check_frames();
	drain();
	rc_fuzz_close();
	return 0;
}
