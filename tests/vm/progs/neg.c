// SPDX-License-Identifier: GPL-2.0
/*
 * skua-neg: frame of the cases, and what they share. Prints TAP.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "neg.h"

/* --- pairs ----------------------------------------------------------------- */

void pair_connect(struct pair *p, unsigned int access, enum ibv_mtu mtu0, enum ibv_mtu mtu1)
{
	struct link_attr l = link_default;
	struct addr a[2];
	int i;

	l.access = access;
	l.rnr_retry = 0;
	l.retry_cnt = 1;
	l.timeout = 12;
	l.rd_atomic = 1;
	for (i = 0; i < 2; i++)
		a[i] = qp_addr(p->dev, p->qp[i], 100 * i + 1);
	for (i = 0; i < 2; i++) {
		l.mtu = i ? mtu1 : mtu0;
		qp_connect(p->dev, p->qp[i], a[i].psn, &a[!i], &l);
	}
}

void pair_make(struct pair *p, struct neg *n, unsigned int access, bool connect)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->dev = &n->dev;
	for (i = 0; i < 2; i++) {
		struct ibv_qp_init_attr attr = {
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2,
				 .max_recv_sge = 2, .max_inline_data = 32 },
		};

		p->cq[i] = ibv_create_cq(n->dev.ctx, 64, NULL, NULL, 0);
		if (!p->cq[i])
			die("create_cq: %m");
		attr.send_cq = attr.recv_cq = p->cq[i];
		p->qp[i] = ibv_create_qp(n->dev.pd, &attr);
		if (!p->qp[i])
			die("create_qp: %m");
		p->cap = attr.cap;
	}
	if (connect)
		pair_connect(p, access, IBV_MTU_1024, IBV_MTU_1024);
}

void pair_free(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		if ((p->qp[i] && ibv_destroy_qp(p->qp[i])) || ibv_destroy_cq(p->cq[i]))
			die("cannot destroy a pair: %m");
}

int post_recv(struct pair *p, int side, uint64_t id, void *addr, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sg = { .addr = (uintptr_t)addr, .length = len, .lkey = lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 }, *bad;

	return ibv_post_recv(p->qp[side], &wr, &bad);
}

int post_send(struct pair *p, int side, struct ibv_send_wr *wr, void *addr, uint32_t len,
	      uint32_t lkey)
{
	struct ibv_sge sg = { .addr = (uintptr_t)addr, .length = len, .lkey = lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sg;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(p->qp[side], wr, &bad);
}

bool expect_wc(struct pair *p, int side, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!poll_one(p->cq[side], &wc, 20))
		return fail("no completion of %llu, should be %s", (unsigned long long)id,
			    ibv_wc_status_str(status));
	if (wc.wr_id != id || wc.status != status)
		return fail("completion of %llu: %s (vendor 0x%x), should be of %llu: %s",
			    (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
			    wc.vendor_err, (unsigned long long)id, ibv_wc_status_str(status));
	return true;
}

long long counter(struct neg *n, const char *name)
{
	/* A network namespace has a sysfs of its own, without the device: see init's too. */
	static const char *const dir[] = {
		"/sys/class/infiniband/%s/hw_counters/%s",
		"/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		"/proc/1/root/sys/class/infiniband/%s/hw_counters/%s",
	};
	char path[256];
	long long v;
	unsigned int i;
	FILE *f;

	for (i = 0; i < sizeof(dir) / sizeof(dir[0]); i++) {
		snprintf(path, sizeof(path), dir[i], n->name, name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%lld", &v) != 1)
			v = -1;
		fclose(f);
		return v;
	}
	return -1;
}

/* --- frame ------------------------------------------------------------------- */

static void neg_open(struct neg *n, const char *dev, int gid)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	dev_open(&n->dev, dev, gid);
	n->name = ibv_get_device_name(n->dev.ctx->device);
	n->is_skua = !strncmp(n->name, "skua", 4) || counter(n, "bad_doorbells") >= 0;
	n->buf = mmap(NULL, BUF_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	n->pd2 = ibv_alloc_pd(n->dev.ctx);
	if (n->buf == MAP_FAILED || !n->pd2)
		die("cannot set up: %m");
	n->mr = ibv_reg_mr(n->dev.pd, n->buf, BUF_SIZE, all);
	n->mr2 = ibv_reg_mr(n->pd2, n->buf, BUF_SIZE, all);
	if (!n->mr || !n->mr2)
		die("reg_mr: %m");
}

static void neg_close(struct neg *n)
{
	ibv_dereg_mr(n->mr);
	ibv_dereg_mr(n->mr2);
	ibv_dealloc_pd(n->pd2);
	dev_close(&n->dev);
}

int main(int argc, char **argv)
{
	static const struct neg_case *const sets[] = {
		cases_wr, cases_size, cases_raw, cases_ring, cases_busy,
	};
	const struct neg_case *c;
	const char *dev = NULL, *only = NULL;
	unsigned int i;
	struct neg n = {};
	int gid = 0, opt, ret;

	while ((opt = getopt(argc, argv, "d:g:c:")) != -1) {
		switch (opt) {
		case 'd': dev = optarg; break;
		case 'g': gid = atoi(optarg); break;
		case 'c': only = optarg; break;
		default: die("usage: skua-neg [-d DEV] [-g GID] [-c CASE]");
		}
	}
	setlinebuf(stdout);
	/* The doorbells are what is tried here: no page of pushes beside theirs. */
	setenv("SKUA_SHUT_UP_BF", "1", 1);
	neg_open(&n, dev, gid);
	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		for (c = sets[i]; c->name; c++) {
			if (only && !strstr(c->name, only))
				continue;
			tap_case(c->name, c->skua_only && !n.is_skua ? skip("not a Skua") :
						  c->run(&n));
		}
	}
	ret = tap_end();
	neg_close(&n);
	return ret;
}
