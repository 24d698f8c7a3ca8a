// SPDX-License-Identifier: GPL-2.0
/*
 * skua-spread -d DEV -g GID -D DEV2 -G GID2 [-o write|send] [-q FEW,MANY] [-s SIZE] [-l LIST]
 * [-w WINDOW | -t DEPTH] [-n MESSAGES] [-r REPETITIONS]: messages from DEV to DEV2 by RC QPs that
 * take turns, LIST by each; WINDOW are under way at any time, or DEPTH for each QP. The rate with
 * FEW QPs and with MANY, one after the other, so often; all QPs are connected all the time. One
 * line each: "NUMBER RATE", in messages a second; then the median of the ratios of MANY to the
 * mean of its two neighbours, with their quartiles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common.h"

#define RECEIVES	16384
#define BATCH		64

struct end {
	struct dev dev;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp **qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

static struct end from, to;
static enum ibv_wr_opcode op = IBV_WR_RDMA_WRITE;
static unsigned int few = 16, many = 10000, size = 64, list = 1, window = 256, depth;
static unsigned int repetitions = 9;
static unsigned long messages = 100000;

/* --- both ends --------------------------------------------------------------- */

/* Messages of @num QPs. */
static unsigned int under_way(unsigned int num)
{
	return depth ? depth * num : window;
}

static void end_open(struct end *e, const char *name, int gid)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };
	unsigned int cqes = under_way(many) > RECEIVES ? under_way(many) : RECEIVES;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		/* Of a window for all, some QPs have more than others */
		.cap = { .max_send_wr = depth ? depth : 4 * (window / few + list),
			 .max_send_sge = 1 },
	};

	dev_open(&e->dev, name, gid);
	e->cq = ibv_create_cq(e->dev.ctx, cqes, NULL, NULL, 0);
	e->srq = ibv_create_srq(e->dev.pd, &srq);
	e->qp = calloc(many, sizeof(*e->qp));
	e->buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!e->cq || !e->srq || !e->qp || e->buf == MAP_FAILED)
		die("%s: CQ, SRQ or buffer: %m", name);
	e->mr = ibv_reg_mr(e->dev.pd, e->buf, size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!e->mr)
		die("reg_mr: %m");
	attr.send_cq = attr.recv_cq = e->cq;
	attr.srq = e->srq;
	for (unsigned int i = 0; i < many; i++) {
		e->qp[i] = ibv_create_qp(e->dev.pd, &attr);
		if (!e->qp[i])
			die("create_qp %u: %m", i);
	}
}

static void end_close(struct end *e)
{
	for (unsigned int i = 0; i < many; i++)
		if (ibv_destroy_qp(e->qp[i]))
			die("destroy_qp: %m");
	if (ibv_destroy_srq(e->srq) || ibv_destroy_cq(e->cq) || ibv_dereg_mr(e->mr))
		die("an object remains: %m");
	dev_close(&e->dev);
}

static void connect_all(void)
{
	for (unsigned int i = 0; i < many; i++) {
		struct addr a = qp_addr(&from.dev, from.qp[i], 1);
		struct addr b = qp_addr(&to.dev, to.qp[i], 2);

		qp_connect(&from.dev, from.qp[i], a.psn, &b, &link_default);
		qp_connect(&to.dev, to.qp[i], b.psn, &a, &link_default);
	}
}

/* --- messages ---------------------------------------------------------------- */

static void receive(unsigned int n)
{
	struct ibv_sge sg = { (uintptr_t)to.buf, size, to.mr->lkey };
	struct ibv_recv_wr wr[BATCH], *bad;

	while (n) {
		unsigned int some = n < BATCH ? n : BATCH;

		for (unsigned int i = 0; i < some; i++)
			wr[i] = (struct ibv_recv_wr){ .sg_list = &sg, .num_sge = 1,
						      .next = i + 1 < some ? &wr[i + 1] : NULL };
		if (ibv_post_srq_recv(to.srq, wr, &bad))
			die("post_srq_recv: %m");
		n -= some;
	}
}

/* What has completed at this end. */
static unsigned int completed(struct end *e)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(e->cq, BATCH, wc);

	if (n < 0)
		die("poll_cq failed");
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			die("completion of QP %06x: %s (vendor 0x%x)", wc[i].qp_num,
			    ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
	return n;
}

/* A list of @n messages on a QP; as many as it has room for. */
static unsigned int post(struct ibv_qp *qp, unsigned int n)
{
	struct ibv_sge sg = { (uintptr_t)from.buf, size, from.mr->lkey };
	struct ibv_send_wr wr[BATCH], *bad;
	int err;

	for (unsigned int i = 0; i < n; i++) {
		wr[i] = (struct ibv_send_wr){ .sg_list = &sg, .num_sge = 1, .opcode = op,
					      .next = i + 1 < n ? &wr[i + 1] : NULL };
		wr[i].wr.rdma.remote_addr = (uintptr_t)to.buf;
		wr[i].wr.rdma.rkey = to.mr->rkey;
	}
	err = ibv_post_send(qp, wr, &bad);
	if (err && err != ENOMEM)
		die("post_send: %s", strerror(err));
	return err ? bad - wr : n;
}

/* Messages a second when @num QPs take turns. */
static double rate(unsigned int num)
{
	unsigned long posted = 0, sent = 0, received = 0, wanted = op == IBV_WR_SEND ? messages : 0;
	unsigned int next = 0, most = under_way(num), left = list, n;
	double began = now();

	while (sent < messages || received < wanted) {
		for (unsigned int i = 0;
		     i < BATCH && posted < messages && posted - sent < most; i += n) {
			n = post(from.qp[next], left);
			posted += n;
			left -= n;
			/* What has no room now is posted before the next QP's */
			if (left)
				break;
			left = list;
			next = next + 1 < num ? next + 1 : 0;
		}
		sent += completed(&from);
		if (wanted) {
			n = completed(&to);
			receive(n);
			received += n;
		}
	}
	return messages / (now() - began);
}

static double told(unsigned int num)
{
	double r = rate(num);

	printf("%u %.0f\n", num, r);
	fflush(stdout);
	return r;
}

static void measure(void)
{
	double ratio[repetitions], before, after, r;

	/* Once before it counts, so that all is in place */
	rate(few);
	rate(many);
	before = told(few);
	for (unsigned int i = 0; i < repetitions; i++) {
		r = told(many);
		after = told(few);
		ratio[i] = 2 * r / (before + after);
		before = after;
	}
	sort_values(ratio, repetitions);
	printf("%u of %u: %.1f %% (%.1f to %.1f)\n", many, few, 100 * ratio[repetitions / 2],
	       100 * ratio[repetitions / 4], 100 * ratio[repetitions * 3 / 4]);
}

static void option(int c, const char *arg)
{
	switch (c) {
	case 'o':
		if (strcmp(arg, "send") && strcmp(arg, "write"))
			die("-o write or send");
		op = *arg == 's' ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
		break;
	case 'q':
		if (sscanf(arg, "%u,%u", &few, &many) != 2 || !few || many < few)
			die("-q FEW,MANY");
		break;
	case 's': size = atoi(arg); break;
	case 'l': list = atoi(arg); break;
	case 't': depth = atoi(arg); break;
	case 'w': window = atoi(arg); break;
	case 'n': messages = atol(arg); break;
	case 'r': repetitions = atoi(arg); break;
	}
}

int main(int argc, char **argv)
{
	const struct rlimit locked = { RLIM_INFINITY, RLIM_INFINITY };
	const char *name[2] = { NULL };
	int gid[2] = { 0 }, c;

	while ((c = getopt(argc, argv, "d:g:D:G:o:q:s:l:w:t:n:r:")) != -1) {
		switch (c) {
		case 'd': name[0] = optarg; break;
		case 'g': gid[0] = atoi(optarg); break;
		case 'D': name[1] = optarg; break;
		case 'G': gid[1] = atoi(optarg); break;
		default: option(c, optarg); break;
		}
	}
	if (!name[0] || !name[1] || !size || !window || !messages || !repetitions)
		die("usage: -d DEV -g GID -D DEV2 -G GID2 [-o write|send] [-q FEW,MANY] ...");
	if (!list || list > BATCH || list > under_way(1) || messages % list)
		die("-l: a part of -n, and at most -w or -t, and %u", BATCH);
	setrlimit(RLIMIT_MEMLOCK, &locked);
	end_open(&from, name[0], gid[0]);
	end_open(&to, name[1], gid[1]);
	connect_all();
	receive(RECEIVES);
	measure();
	end_close(&from);
	end_close(&to);
	return 0;
}
