// SPDX-License-Identifier: GPL-2.0
/*
 * A stranger on the wire who knows addresses, QP numbers and PSNs: packets from
 * plausible to nonsense, with a right ICRC so that they get past the parser, for a
 * device with work under way and queue pairs in several states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skua/wqe_build.h>

#include "rc_fuzz.h"
#include "roce/icrc.h"

static struct mini_qp other[3];	/* in INIT, RTR, ERR */

/* A PSN near one that means something to the QP. */
static uint32_t some_psn(struct input *in, bool request)
{
	struct skua_cmd_query_qp_out q = rc_query(&rc, 0);
	uint8_t pick = (uint8_t)take(in, 1);
	uint32_t psn = request ? le32_to_cpu(q.rqc.epsn) : le32_to_cpu(q.sqc.una_psn);

	if (pick < 160)
		return psn;
	if (pick < 230)
		return psn + (uint32_t)(int8_t)take(in, 1);
	if (pick < 245)
		return le32_to_cpu(q.sqc.max_psn) - 1;
	return (uint32_t)take(in, 3);
}

static uint32_t some_dqpn(struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);

	if (pick < 230)
		return rc.s[0].qp.qpn;
	return pick < 250 ? other[pick % 3].qpn : (uint32_t)take(in, 3);
}

static void fill_headers(struct skua_pkt_build *b, struct input *in, uint32_t *payload)
{
	uint8_t pick = (uint8_t)take(in, 1);
	uint32_t len = pick & 1 ? *payload : (uint32_t)take(in, pick & 2 ? 2 : 4);
	struct ib_atomiceth *atomic = b->maskedeth ? &b->maskedeth->atomic : b->atomiceth;

	/* Selective repeat: a number and a place near those that are expected, or far off. */
	if (b->seth) {
		struct skua_cmd_query_qp_out q = rc_query(&rc, 0);
		bool read = (b->bth->opcode & 0x1f) == IB_OP_READ_REQUEST;
		uint32_t seq = le32_to_cpu(read ? q.rqc.rr_tail : q.rqc.recv_seq);
		uint8_t at = (uint8_t)take(in, 1);

		ib_seth_put(b->seth, at, at & 0x80 ? seq : (uint32_t)(seq + at % 5 - 1),
			    at == 0x40 ? (uint32_t)take(in, 3) : (at >> 3) % 4);
	}
	if (b->reth)
		ib_reth_put(b->reth, RC_VA + (take(in, 3) & (pick & 4 ? ~0ull : ~7ull)),
			    pick & 0x30 ? rc_fuzz_key(0, in) : (uint32_t)take(in, 4), len);
	if (b->feth)
		be32_put(b->feth->word, pick & 8 ? SKUA_WQE_FLUSH_GLOBAL : (uint32_t)take(in, 1));
	if (b->ieth)
		be32_put(b->ieth->rkey, rc_fuzz_key(0, in));
	if (b->maskedeth)
		ib_maskedeth_put(b->maskedeth, pick & 8 ? ~0ull : take(in, 8), take(in, 2));
	if (b->atomicacketh)
		be64_put(b->atomicacketh->orig, take(in, 8));
	if (b->aeth)
		ib_aeth_put(b->aeth, pick & 0x40 ? IB_AETH_CREDIT_INVALID : (uint8_t)take(in, 1),
			    (uint32_t)take(in, 1));
	if (atomic)
		ib_atomiceth_put(atomic, RC_VA + take(in, 1), rc_fuzz_key(0, in), take(in, 1),
				 take(in, 1));
	if (b->immdt)
		take_bytes(in, b->immdt->data, 4);
}

static void packet(struct input *in)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 5000];
	struct skua_pkt_addr addr = rc_addr(&rc, 1);
	uint8_t pick = (uint8_t)take(in, 1);
	struct skua_pkt_bth bth = { .opcode = (uint8_t)take(in, 1), .pkey = IB_PKEY_DEFAULT };
	const struct ib_opcode_info *op;
	struct skua_pkt_build b;
	uint32_t payload;

	/* All that RC has, of the standard and of ours. */
	if (pick < 230)
		bth.opcode = (bth.opcode & 0x1f) |
			     ((bth.opcode & 0x1e) == 0x18 || (bth.opcode & 0x60) == 0x60 ?
			      IB_TRANSPORT_SKUA_RC : 0);
	op = ib_opcode_info(bth.opcode);
	if (!op)
		return;
	bth.dqpn = some_dqpn(in);
	bth.psn = some_psn(in, op->flags & IB_F_REQUEST);
	bth.ackreq = pick & 1;
	bth.se = pick & 2;
	/* The offer of selective repeat. */
	bth.resv7 = pick & 0x10 ? SKUA_EXT_LOG_WINDOW_MIN + (pick >> 5) : 0;
	if (pick == 255)
		addr.sgid[15] ^= (uint8_t)take(in, 1);
	if (pick == 254)
		bth.pkey = (uint16_t)take(in, 2);
	payload = op->flags & IB_F_PAYLOAD ?
		  (pick & 4 ? (uint32_t)take(in, 2) % 4200 : pick & 8 ? rc.mtu : take(in, 1)) : 0;
	if (skua_pkt_build_start(&b, frame, sizeof(frame), &addr, &bth))
		return;
	fill_headers(&b, in, &payload);
	/* As a bitmap of what arrived: the PSN expected is never in it, or is. */
	memset(b.payload, pick & 2 ? 0x55 : 0xaa, payload);
	if (pick == 253)
		b.bth->flags ^= (uint8_t)take(in, 1);
	rc_inject(&rc, 0, &b, payload);
}

/* Work of its own, so that responses may fit something. */
static void post(struct input *in)
{
	static const uint8_t ops[] = { SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ,
				       SKUA_WQE_NOP, SKUA_WQE_WRITE_IMM, SKUA_WQE_FAA,
				       SKUA_WQE_MASKED_CAS, SKUA_WQE_FLUSH,
				       SKUA_WQE_ATOMIC_WRITE, SKUA_WQE_BIND_MW };
	uint8_t pick = (uint8_t)take(in, 1);
	struct rc_wr wr = { .op = ops[pick % sizeof(ops)], .quiet = pick & 0x40,
			    .flush = SKUA_WQE_FLUSH_GLOBAL, .len = (uint32_t)take(in, 2) };

	/* A window, bound for the stranger to use, or a registered region. */
	if (wr.op == SKUA_WQE_BIND_MW && pick & 0x80) {
		wr.op = SKUA_WQE_REG_MR;
		skua_wqe_reg_set(&wr.reg, fuzz[0].key[FUZZ_FAST], 0xf, RC_VA, 4096);
		skua_wqe_reg_pages(&wr.reg, fuzz[0].list, 3, 12, 0);
	} else if (wr.op == SKUA_WQE_BIND_MW) {
		uint32_t key = fuzz[0].key[pick & 1 ? FUZZ_MW1 : FUZZ_MW2];

		skua_wqe_bind_set(&wr.bind, key, key, rc.s[0].key, 0xe, RC_VA, 4096);
	} else if (wr.op >= SKUA_WQE_CAS) {
		wr.len = 8;
	}
	if (rc.s[0].qp.sq_pi - le32_to_cpu(rc_query(&rc, 0).sqc.ci) < 60)
		rc_post(&rc, 0, &wr);
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);

	switch (act & 0x0f) {
	case 0:
		post(in);
		break;
	case 1:
		rc_recv(&rc, 0, take(in, 2), (uint32_t)take(in, 2));
		break;
	case 2:
		fake_run(&rc.s[0].f);
		break;
	case 3:
		fake_advance(&rc.s[0].f, take(in, 3));
		break;
	case 4:
		mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, act & 0x10 ? SKUA_QP_SQD : SKUA_QP_RTS, 0,
			       NULL);
		break;
	case 5:
		if (act & 0x10)
			rc_fuzz_odp(0, in);
		else if (act & 0x20)
			rc_fuzz_recovery(0, in);
		else
			skua_dev_run(rc.s[0].f.dev);
		break;
	default:
		packet(in);
		break;
	}
	rc_fuzz_check_frames(0);
}

static void open_all(void)
{
	struct mini *m = &rc.s[0].m;
	const struct rc_opt opt = { 0 };

	rc_fuzz_open();
	for (unsigned int k = 0; k < 3; k++) {
		struct skua_qp_attr a = rc_attr(&rc, 0, &opt, rc.s[1].qp.qpn);

		rc_qp(&rc, 0, &other[k], &opt);
		if (k)
			mini_rc_to_rts(m, &other[k], &a);
		else
			mini_qp_modify(m, &other[k], SKUA_QP_INIT, SKUA_QP_M_PKEY |
				       SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &a);
		if (k == 2)
			mini_qp_modify(m, &other[k], SKUA_QP_ERR, 0, NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	open_all();
	rc_fuzz_start(&in);
	while (in.left)
		step(&in);
	fake_advance(&rc.s[0].f, 10000000);
	rc_fuzz_check_frames(0);
	rc_fuzz_close();
	return 0;
}
