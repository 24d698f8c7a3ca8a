// SPDX-License-Identifier: GPL-2.0
/*
 * skua-queues: QPs with rings that are shorter than a page. Many are in one page, which the
 * kernel pins once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queues.h"

#define QPS	64
#define RING	(8 * 64)

/* Pages that this process has pinned. */
static long pinned(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kb = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %ld kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb < 0 ? -1 : kb * 1024 / sysconf(_SC_PAGESIZE);
}

static struct ibv_qp *make_short(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = RING / 64, .max_send_sge = 1 },
	};

	return ibv_create_qp(dev.pd, &attr);
}

/* A WRITE of each QP to the one it is connected to. */
static bool all_write(struct ibv_cq *cq, struct ibv_qp **qp)
{
	for (unsigned int i = 0; i < QPS; i++) {
		struct ibv_sge sg = { (uintptr_t)buf, 64, mr->lkey };
		struct ibv_send_wr wr = {
			.wr_id = i, .sg_list = &sg, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)buf + 2048, mr->rkey },
		}, *bad;

		must(!ibv_post_send(qp[i], &wr, &bad));
		must(done(cq, i, IBV_WC_SUCCESS));
	}
	return true;
}

static bool make_pairs(struct ibv_cq *cq, struct ibv_qp **qp)
{
	for (unsigned int i = 0; i < QPS; i++) {
		qp[i] = make_short(cq);
		must(qp[i]);
		if (i & 1)
			join_qps(qp[i], qp[i - 1]);
	}
	return all_write(cq, qp);
}

/*
 * Of the context of a process and its child. Pages at the same address are not the same: the
 * child's ring is in its copy of a page in which QPs of the parent are.
 */
static bool child_uses(struct ibv_cq *cq)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		struct ibv_qp *qp = make_short(cq);
		long with = pinned();

		/* The ring's page and that of the record */
		if (!qp || with != 2 || ibv_destroy_qp(qp) || pinned())
			_exit(1);
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid);
	must(WIFEXITED(status) && !WEXITSTATUS(status));
	return true;
}

bool case_short_rings(void)
{
	struct ibv_cq *cq = make_cq(16);
	long before = pinned(), pages = (QPS * RING + LEN - 1) / LEN, with, n;
	struct ibv_qp *qp[QPS];

	must(before > 0);
	must(make_pairs(cq, qp));
	with = pinned();
	/* Rings, and records of 64 bytes, of which some have their page already */
	n = with - before - pages;
	must(n >= 0 && n <= QPS * 64 / LEN + 1);
	/* Of two less the rings' page remains, their records may have been alone in one */
	ibv_destroy_qp(qp[QPS - 1]);
	ibv_destroy_qp(qp[QPS - 2]);
	n = pinned();
	must(n == with || n == with - 1);
	must(child_uses(cq));
	must(pinned() == n);
	qp[QPS - 2] = make_short(cq);
	qp[QPS - 1] = make_short(cq);
	must(qp[QPS - 2] && qp[QPS - 1] && pinned() == with);
	join_qps(qp[QPS - 2], qp[QPS - 1]);
	/* They do not disturb each other */
	for (unsigned int i = 0; i < QPS; i += 2) {
		ibv_destroy_qp(qp[i]);
		ibv_destroy_qp(qp[i + 1]);
		qp[i] = make_short(cq);
		qp[i + 1] = make_short(cq);
		must(qp[i] && qp[i + 1]);
		join_qps(qp[i], qp[i + 1]);
		must(all_write(cq, qp));
	}
	for (unsigned int i = 0; i < QPS; i++)
		must(!ibv_destroy_qp(qp[i]));
	must(pinned() == before);
	ibv_destroy_cq(cq);
	return true;
}
