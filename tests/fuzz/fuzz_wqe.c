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

#include "rc_fuzz_wqe.h"

static struct fuzz_race race[2];

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
		rc_fuzz_post(i, 0, in);
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
		if ((act & 0x1f) == 0x1e)
			fuzz_race(&race[i], &rc.s[i].f, in);
		mini_ring(&rc.s[i].m, qp);
		rc_pump(&rc);
		break;
	}
}

static void open_all(void)
{
	rc_fuzz_open();
	/* Of contexts that change the device may die: fuzz_icm has those. */
	for (int i = 0; i < 2; i++) {
		const struct mini_qp *qp = &rc.s[i].qp;

		race[i] = (struct fuzz_race){ 0 };
		fuzz_race_at(&race[i], qp->sq, (uint64_t)SKUA_WQE_BLOCK << qp->log_sq);
		fuzz_race_at(&race[i], qp->rq, (uint64_t)SKUA_WQE_SEG << (qp->log_rq + qp->log_stride));
		fuzz_race_at(&race[i], qp->dbr, sizeof(struct skua_qp_dbr));
		fuzz_race_at(&race[i], fuzz[i].list, FUZZ_PAGES * sizeof(__le64));
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
	/* Whatever was posted comes to an end. */
	for (int i = 0; i < 2; i++)
		mini_ring(&rc.s[i].m, &rc.s[i].qp);
	rc_pump_for(&rc, 10000000);
	rc_fuzz_close();
	return 0;
}
