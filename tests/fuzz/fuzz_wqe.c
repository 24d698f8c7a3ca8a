// SPDX-License-Identifier: GPL-2.0
/*
 * A guest that writes what it likes into its rings, when it likes: WQEs from
 * plausible to nonsense, doorbells, changes of what was posted, also between two reads of
 * it, and time. Two connected devices; the worst that may happen is a QP in error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skua/wqe_build.h>

#include "rc_fuzz.h"

/* An operand or a mask: small, all ones, or a single bit. */
static uint64_t operand(struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);

	return pick < 128 ? pick : pick < 192 ? ~0ull : 1ull << pick % 64;
}

/* What the WQEs have that work on keys. */
static void key_segments(int i, struct rc_wr *wr, struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);
	uint32_t key = fuzz[i].key[pick % FUZZ_KEYS];
	uint32_t access = (uint32_t)take(in, 2) & (pick & 0x80 ? 0xffff : 0x2e);

	if (wr->op == SKUA_WQE_BIND_MW)
		skua_wqe_bind_set(&wr->bind, key, key + (pick >> 2) % 4, rc_fuzz_key(i, in),
				  access, RC_VA + take(in, 2), take(in, 3));
	else
		skua_wqe_reg_set(&wr->reg, fuzz[i].key[FUZZ_FAST] + (pick >> 2) % 4,
				 access | SKUA_ACCESS_LOCAL_WRITE, RC_VA + take(in, 2),
				 take(in, 2));
	if (wr->op == SKUA_WQE_REG_MR)
		skua_wqe_reg_pages(&wr->reg, fuzz[i].list + (pick & 0x40 ? take(in, 1) * 64 : 0),
				   take(in, 1) % 16, 12 + take(in, 1) % 2, take(in, 2));
}

/* A WQE that is right but for what the input wants otherwise. */
static void post(int i, struct input *in)
{
	static const uint8_t ops[] = { SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE,
				       SKUA_WQE_WRITE_IMM, SKUA_WQE_READ, SKUA_WQE_NOP,
				       SKUA_WQE_CAS, SKUA_WQE_FAA, SKUA_WQE_MASKED_CAS,
				       SKUA_WQE_MASKED_FAA, SKUA_WQE_FLUSH,
				       SKUA_WQE_ATOMIC_WRITE, SKUA_WQE_SEND_INV,
				       SKUA_WQE_BIND_MW, SKUA_WQE_LOCAL_INV, SKUA_WQE_REG_MR };
	struct rc_wr wr = { 0 };
	uint8_t pick = (uint8_t)take(in, 1);

	if (rc.s[i].qp.sq_pi - le32_to_cpu(rc_query(&rc, i).sqc.ci) > 48)
		return;
	wr.op = pick < 240 ? ops[pick % sizeof(ops)] : (enum skua_wqe_op)take(in, 1);
	wr.flags = take(in, 1) & (pick & 0x40 ? 0x1ff : SKUA_WQE_F_FENCE | SKUA_WQE_F_SOLICITED);
	if (wr.op == SKUA_WQE_BIND_MW || wr.op == SKUA_WQE_REG_MR) {
		wr.flags |= pick & 0x80 ? SKUA_WQE_F_LOCAL_FENCE : 0;
		key_segments(i, &wr, in);
		rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
		return;
	}
	if (wr.op == SKUA_WQE_LOCAL_INV || wr.op == SKUA_WQE_SEND_INV)
		wr.imm = rc_fuzz_key(wr.op == SKUA_WQE_LOCAL_INV ? i : 1 - i, in);
	if (wr.op == SKUA_WQE_FLUSH)
		wr.flush = take(in, 1) & 0x33, wr.imm = (uint32_t)take(in, 2);
	if (wr.op >= SKUA_WQE_CAS && wr.op <= SKUA_WQE_MASKED_FAA) {
		bool add = wr.op == SKUA_WQE_FAA || wr.op == SKUA_WQE_MASKED_FAA;

		for (unsigned int k = 0; k < 2; k++) {
			wr.atomic[k].swap_add = operand(in);
			wr.atomic[k].compare = add ? 0 : operand(in);
		}
	}
	wr.quiet = pick & 2;
	wr.roff = take(in, 3) & (pick & 0x20 ? ~0ull : ~7ull);
	wr.rkey = rc_fuzz_key(1 - i, in);
	wr.len = (uint32_t)take(in, 2);
	/* What has one length only mostly has it. */
	if (wr.op >= SKUA_WQE_CAS && wr.op <= SKUA_WQE_ATOMIC_WRITE && pick & 0x10) {
		wr.len = 8;
		rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
		return;
	}
	if (wr.flags & SKUA_WQE_F_INLINE)
		wr.len %= 700;
	else
		wr.nsge = take(in, 1) % 10;
	for (uint32_t k = 0; k < wr.nsge; k++)
		wr.sge[k] = (struct sge){ RC_VA + take(in, 3), rc_fuzz_key(i, in),
					  (uint32_t)take(in, 2) };
	rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
}

static void receive(int i, struct input *in)
{
	struct sge sge[4];
	uint32_t n = take(in, 1) % 5;

	for (uint32_t k = 0; k < n; k++)
		sge[k] = (struct sge){ RC_VA + take(in, 3), rc_fuzz_key(i, in),
				       (uint32_t)take(in, 2) };
	rc_recv_sge(&rc, i, sge, n);
}

/* Anything anywhere in the rings, the records too. */
static void scribble(int i, struct input *in)
{
	struct mini_qp *qp = &rc.s[i].qp;
	uint8_t where = (uint8_t)take(in, 1);
	uint64_t off = take(in, 2);
	uint32_t n = 1 + take(in, 1) % 64;

	if (where < 180)
		off = qp->sq + off % ((64u << qp->log_sq) - 64);
	else if (where < 240)
		off = qp->rq + off % ((16u << (qp->log_rq + qp->log_stride)) - 64);
	else
		off = qp->dbr + off % 12, n = 4;
	take_bytes(in, fake_ptr(&rc.s[i].f, off), n);
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);
	int i = act >> 7;
	struct mini_qp *qp = &rc.s[i].qp;

	switch (act & 0x0f) {
	case 0 ... 3:
		post(i, in);
		break;
	case 4 ... 5:
		if (act & 0x10)
			rc_fuzz_push(i, qp, act >> 5 & 3, in);
		else
			mini_ring(&rc.s[i].m, qp);
		break;
	case 6:
		receive(i, in);
		break;
	case 7:
		scribble(i, in);
		break;
	case 8:
		fake_db(&rc.s[i].f, MINI_UAR, SKUA_UAR_SQ, qp->sq_pi + take(in, 1) % 70,
			qp->qpn);
		break;
	case 9:
		if (act & 0x10)
			rc_fuzz_odp(i, in);
		else
			skua_dev_run(rc.s[i].f.dev);
		break;
	case 10:
		rc_pump(&rc);
		break;
	case 11:
		rc_pump_for(&rc, 1 + take(in, 3));
		break;
	case 13:
		rc_fuzz_recovery(i, in);
		break;
	case 12:
		if (act & 0x10)
			mini_qp_modify(&rc.s[i].m, qp, act & 0x20 ? SKUA_QP_SQD : SKUA_QP_RTS, 0,
				       NULL);
		else if (act & 0x20)
			mini_qp_modify(&rc.s[i].m, qp, SKUA_QP_ERR, 0, NULL);
		break;
	default:
		mini_ring(&rc.s[i].m, qp);
		rc_pump(&rc);
		break;
	}
}

static void open_all(void)
{
	rc_fuzz_open();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	open_all();
	rc_fuzz_start(&in);
	while (in.left)
		step(&in);
	/* Whatever was posted comes to an end. */
	for (int i = 0; i < 2; i++)
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
	rc_pump_for(&rc, 10000000);
	rc_fuzz_close();
	return 0;
}
