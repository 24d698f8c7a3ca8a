// SPDX-License-Identifier: GPL-2.0
/*
 * A guest that writes what it likes into its rings, when it likes: WQEs from
 * plausible to nonsense, doorbells, changes of what was posted, and time. Two
 * connected devices; the worst that may happen is a QP in error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "rc_fuzz.h"

static uint32_t some_key(int i, struct input *in)
{
	static const uint32_t other[] = { 0, SKUA_RESERVED_LKEY, 0x100, 0xffffffff };
	uint8_t pick = (uint8_t)take(in, 1);

	return pick < 200 ? rc.s[i].key : other[pick % 4];
}

/* A WQE that is right but for what the input wants otherwise. */
static void post(int i, struct input *in)
{
	static const uint8_t ops[] = { SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE,
				       SKUA_WQE_WRITE_IMM, SKUA_WQE_READ, SKUA_WQE_NOP };
	struct rc_wr wr = { 0 };
	uint8_t pick = (uint8_t)take(in, 1);

	if (rc.s[i].qp.sq_pi - le32_to_cpu(rc_query(&rc, i).sqc.ci) > 48)
		return;
	wr.op = pick < 240 ? ops[pick % sizeof(ops)] : (enum skua_wqe_op)take(in, 1);
	wr.flags = take(in, 1) & (pick & 1 ? 0x1ff : SKUA_WQE_F_FENCE | SKUA_WQE_F_SOLICITED);
	wr.quiet = pick & 2;
	wr.roff = take(in, 3);
	wr.rkey = some_key(1 - i, in);
	wr.len = (uint32_t)take(in, 2);
	if (wr.flags & SKUA_WQE_F_INLINE)
		wr.len %= 700;
	else
		wr.nsge = take(in, 1) % 10;
	for (uint32_t k = 0; k < wr.nsge; k++)
		wr.sge[k] = (struct sge){ RC_VA + take(in, 3), some_key(i, in),
					  (uint32_t)take(in, 2) };
	rc_post_quiet(&rc, i, &rc.s[i].qp, &wr);
}

static void receive(int i, struct input *in)
{
	struct sge sge[4];
	uint32_t n = take(in, 1) % 5;

	for (uint32_t k = 0; k < n; k++)
		sge[k] = (struct sge){ RC_VA + take(in, 3), some_key(i, in),
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
		skua_dev_run(rc.s[i].f.dev);
		break;
	case 10:
		rc_pump(&rc);
		break;
	case 11:
		rc_pump_for(&rc, 1 + take(in, 3));
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

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	rc_fuzz_open();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	rc_fuzz_start(&in);
	while (in.left)
		step(&in);
	/* Whatever was posted comes to an end. */
	for (int i = 0; i < 2; i++)
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
	rc_pump_for(&rc, 10000000);
	return 0;
}
