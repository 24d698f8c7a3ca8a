// SPDX-License-Identifier: GPL-2.0
/*
 * skua-multi: many of it at once, on one device (or two):
 *   qps      N QPs in traffic at a time
 *   threads  four threads post to one QP, four poll its CQ
 *   wrap     indices of CQ, send and receive ring wrap many times
 *   overflow a CQ too small: the async event, and nothing worse
 *   solicited messages of several packets, and who waits for those that ask for it;
 *            then the same by QPs that do without selective repeat
 * "skua-multi -d DEV -g GID [-D DEV2 -G GID2] [-n QPS] [-c CASE]"; TAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/skua-abi.h>

#include "common.h"

#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define SLOT	256
#define THREADS	4

struct end {
	struct dev dev;
	struct ibv_mr *mr;
	uint8_t *buf;
};

static struct end ends[2];
static size_t buf_len;
static unsigned int nqps = 512;

static void end_open(struct end *e, const char *name, int gid)
{
	dev_open(&e->dev, name, gid);
	e->buf = mmap(NULL, buf_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e->buf == MAP_FAILED)
		die("mmap: %m");
	e->mr = ibv_reg_mr(e->dev.pd, e->buf, buf_len, ALL_RIGHTS);
	if (!e->mr)
		die("reg_mr: %m");
}

static struct ibv_cq *make_cq(struct end *e, int n)
{
	struct ibv_cq *cq = ibv_create_cq(e->dev.ctx, n, NULL, NULL, 0);

	if (!cq)
		die("create_cq of %d: %m", n);
	return cq;
}

static struct ibv_qp *make_qp(struct end *e, struct ibv_cq *cq, unsigned int wr)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = wr, .max_recv_wr = wr, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(e->dev.pd, &attr);

	if (!qp)
		die("create_qp: %m");
	return qp;
}

static void join(struct ibv_qp *a, struct ibv_qp *b)
{
	struct link_attr l = link_default;
	struct addr aa = qp_addr(&ends[0].dev, a, 0xfffff0), ba = qp_addr(&ends[1].dev, b, 3);

	l.rd_atomic = 1;
	qp_connect(&ends[0].dev, a, aa.psn, &ba, &l);
	qp_connect(&ends[1].dev, b, ba.psn, &aa, &l);
}

static int post_recv(struct end *e, struct ibv_qp *qp, uint64_t id, size_t off)
{
	struct ibv_sge sg = { (uintptr_t)e->buf + off, SLOT, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static int post_one(struct end *e, struct ibv_qp *qp, enum ibv_wr_opcode op, uint64_t id,
		    size_t from, size_t to, uint32_t len)
{
	struct ibv_sge sg = { (uintptr_t)e->buf + from, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sg, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	wr.imm_data = htobe32(id);
	wr.wr.rdma.remote_addr = (uintptr_t)ends[e == &ends[0]].buf + to;
	wr.wr.rdma.rkey = ends[e == &ends[0]].mr->rkey;
	return ibv_post_send(qp, &wr, &bad);
}

static bool reap(struct ibv_cq *cq, struct ibv_wc *wc)
{
	if (!poll_one(cq, wc, 60))
		return fail("no completion");
	return wc->status == IBV_WC_SUCCESS ||
	       fail("completion of %llu on QP %06x: %s (vendor 0x%x)",
		    (unsigned long long)wc->wr_id, wc->qp_num, ibv_wc_status_str(wc->status),
		    wc->vendor_err);
}

/* --- many QPs ---------------------------------------------------------------- */

static uint8_t stamp(unsigned int q, unsigned int i)
{
	return mix((uint64_t)q << 32 | i);
}

/* Each QP sends and writes to its own slots; every byte is looked at. */
static bool many_traffic(struct ibv_qp **a, struct ibv_qp **b, struct ibv_cq **cq)
{
	unsigned int q, i, round;
	struct ibv_wc wc;

	for (round = 0; round < 3; round++) {
		memset(ends[1].buf, 0, buf_len);
		for (q = 0; q < nqps; q++) {
			for (i = 0; i < SLOT; i++)
				ends[0].buf[q * 2 * SLOT + i] =
					ends[0].buf[(q * 2 + 1) * SLOT + i] = stamp(q + round, i);
			if (post_recv(&ends[1], b[q], q, (size_t)q * 2 * SLOT))
				return fail("post_recv");
		}
		for (q = 0; q < nqps; q++)
			if (post_one(&ends[0], a[q], IBV_WR_SEND, q, (size_t)q * 2 * SLOT, 0, SLOT) ||
			    post_one(&ends[0], a[q], IBV_WR_RDMA_WRITE, q,
				     (size_t)(q * 2 + 1) * SLOT, (size_t)(q * 2 + 1) * SLOT, SLOT))
				return fail("post_send");
		for (i = 0; i < 2 * nqps; i++)
			if (!reap(cq[0], &wc))
				return false;
		for (i = 0; i < nqps; i++) {
			if (!reap(cq[1], &wc))
				return false;
			if (wc.wr_id >= nqps || b[wc.wr_id]->qp_num != wc.qp_num)
				return fail("receive completion of the wrong QP");
		}
		for (q = 0; q < nqps; q++)
			for (i = 0; i < 2 * SLOT; i++)
				if (ends[1].buf[(size_t)q * 2 * SLOT + i] !=
				    stamp(q + round, i % SLOT))
					return fail("data wrong");
	}
	return true;
}

static bool case_qps(void)
{
	struct ibv_qp **a = calloc(nqps, sizeof(*a)), **b = calloc(nqps, sizeof(*b));
	struct ibv_cq *cq[2];
	unsigned int q;
	bool ok;

	cq[0] = make_cq(&ends[0], 2 * nqps);
	cq[1] = make_cq(&ends[1], 2 * nqps);
	for (q = 0; q < nqps; q++) {
		a[q] = make_qp(&ends[0], cq[0], 4);
		b[q] = make_qp(&ends[1], cq[1], 4);
		join(a[q], b[q]);
	}
	ok = many_traffic(a, b, cq);
	for (q = 0; q < nqps; q++)
		if (ibv_destroy_qp(a[q]) || ibv_destroy_qp(b[q]))
			die("destroy_qp: %m");
	if (ibv_destroy_cq(cq[0]) || ibv_destroy_cq(cq[1]))
		die("destroy_cq: %m");
	free(a);
	free(b);
	return ok;
}

/* --- threads -------------------------------------------------------------------- */

#define PER_THREAD	2000
#define DEPTH		64

static struct {
	struct ibv_qp *qp;
	struct ibv_cq *cq, *rcq;
	atomic_uint sent[THREADS], acked[THREADS], received[THREADS];
	atomic_uint done, rdone;
	atomic_bool bad;
} th;

static void *poster(void *arg)
{
	unsigned int me = (uintptr_t)arg, i;

	for (i = 0; i < PER_THREAD && !atomic_load(&th.bad); ) {
		int err = post_one(&ends[0], th.qp, IBV_WR_SEND_WITH_IMM,
				   (uint64_t)me << 24 | i, (size_t)me * SLOT, 0, 8 + me);

		if (!err) {
			atomic_fetch_add(&th.sent[me], 1);
			i++;
		} else if (err == ENOMEM) {
			sched_yield();
		} else {
			atomic_store(&th.bad, true);
			fail("post_send");
		}
	}
	return NULL;
}

/* Of each poster's requests, each is completed once. */
static void *poller(void *arg)
{
	double end = now() + 120;

	(void)arg;
	while (atomic_load(&th.done) < THREADS * PER_THREAD && !atomic_load(&th.bad)) {
		struct ibv_wc wc[8];
		int n = ibv_poll_cq(th.cq, 8, wc), i;

		for (i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id >> 24 >= THREADS) {
				fail("send completion: %s", ibv_wc_status_str(wc[i].status));
				atomic_store(&th.bad, true);
				return NULL;
			}
			atomic_fetch_add(&th.acked[wc[i].wr_id >> 24], 1);
			atomic_fetch_add(&th.done, 1);
		}
		if (!n)
			sched_yield();
		if (now() > end) {
			fail("too few completions");
			atomic_store(&th.bad, true);
		}
	}
	return NULL;
}

/* Receives come in the order sent, each poster's in its own. */
static void *receiver(void *arg)
{
	unsigned int next[THREADS] = {}, got = 0;
	struct ibv_qp *qp = arg;

	while (got < THREADS * PER_THREAD && !atomic_load(&th.bad)) {
		struct ibv_wc wc;
		uint32_t imm, from;

		if (!reap(th.rcq, &wc)) {
			atomic_store(&th.bad, true);
			break;
		}
		imm = be32toh(wc.imm_data);
		from = imm >> 24;
		if (from >= THREADS || (imm & 0xffffff) != next[from] || wc.byte_len != 8 + from) {
			fail("a message is lost, doubled or of another length");
			atomic_store(&th.bad, true);
			break;
		}
		next[from]++;
		got++;
		if (post_recv(&ends[1], qp, 0, 0)) {
			fail("post_recv");
			atomic_store(&th.bad, true);
		}
	}
	return NULL;
}

static bool case_threads(void)
{
	pthread_t t[2 * THREADS + 1];
	struct ibv_qp *b;
	unsigned int i;
	bool ok;

	memset(&th, 0, sizeof(th));
	th.cq = make_cq(&ends[0], DEPTH * 4);
	th.rcq = make_cq(&ends[1], DEPTH * 4);
	th.qp = make_qp(&ends[0], th.cq, DEPTH);
	b = make_qp(&ends[1], th.rcq, DEPTH);
	join(th.qp, b);
	for (i = 0; i < DEPTH; i++)
		if (post_recv(&ends[1], b, 0, 0))
			die("post_recv: %m");
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, poster, (void *)(uintptr_t)i) ||
		    pthread_create(&t[THREADS + i], NULL, poller, NULL))
			die("no thread");
	if (pthread_create(&t[2 * THREADS], NULL, receiver, b))
		die("no thread");
	for (i = 0; i <= 2 * THREADS; i++)
		pthread_join(t[i], NULL);
	ok = !atomic_load(&th.bad);
	for (i = 0; ok && i < THREADS; i++)
		if (atomic_load(&th.acked[i]) != PER_THREAD)
			ok = fail("completions went to the wrong requests");
	ibv_destroy_qp(th.qp);
	ibv_destroy_qp(b);
	ibv_destroy_cq(th.cq);
	ibv_destroy_cq(th.rcq);
	return ok;
}

/* --- wrap ----------------------------------------------------------------------------- */

/* Rings of few entries, thousands of requests: each index wraps hundreds of times. */
static bool case_wrap(void)
{
	struct ibv_cq *cq[2] = { make_cq(&ends[0], 3), make_cq(&ends[1], 3) };
	struct ibv_qp *a = make_qp(&ends[0], cq[0], 3), *b = make_qp(&ends[1], cq[1], 3);
	unsigned int i, k, n;
	struct ibv_wc wc;
	bool ok = true;

	join(a, b);
	for (i = 0; ok && i < 3000; i += n) {
		n = 1 + i % 3;
		for (k = 0; ok && k < n; k++)
			if (post_recv(&ends[1], b, i + k, (size_t)k * SLOT))
				ok = fail("post_recv");
		for (k = 0; ok && k < n; k++)
			if (post_one(&ends[0], a, IBV_WR_SEND_WITH_IMM, i + k, 0, 0, (i + k) % SLOT))
				ok = fail("post_send");
		for (k = 0; ok && k < n; k++) {
			ok = reap(cq[0], &wc);
			if (ok && wc.wr_id != i + k)
				ok = fail("send completions out of order");
			ok = ok && reap(cq[1], &wc);
			if (ok && (wc.wr_id != i + k || wc.byte_len != (i + k) % SLOT ||
				   be32toh(wc.imm_data) != i + k))
				ok = fail("receive completion is another's");
		}
	}
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq[0]);
	ibv_destroy_cq(cq[1]);
	return ok;
}

/* --- overflow --------------------------------------------------------------------------- */

/* Wait for an async event of this type; others that belong to it may come as well. */
static bool async_event(struct ibv_context *ctx, enum ibv_event_type type, double seconds)
{
	struct pollfd pfd = { .fd = ctx->async_fd, .events = POLLIN };
	double end = now() + seconds;
	struct ibv_async_event ev;
	bool got = false;

	while (now() < end && !got) {
		if (poll(&pfd, 1, 200) <= 0)
			continue;
		if (ibv_get_async_event(ctx, &ev))
			break;
		got = ev.event_type == type;
		ibv_ack_async_event(&ev);
	}
	return got;
}

static void drain_async(struct ibv_context *ctx)
{
	struct pollfd pfd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	while (poll(&pfd, 1, 100) > 0 && !ibv_get_async_event(ctx, &ev))
		ibv_ack_async_event(&ev);
}

static bool case_overflow(void)
{
	struct ibv_cq *small = make_cq(&ends[0], 4), *rcq = make_cq(&ends[1], 64);
	struct ibv_qp *a = make_qp(&ends[0], small, 32), *b = make_qp(&ends[1], rcq, 32);
	unsigned int i;
	bool ok = true;

	join(a, b);
	for (i = 0; i < (unsigned int)small->cqe + 8; i++)
		if (post_one(&ends[0], a, IBV_WR_RDMA_WRITE, i, 0, 0, 8)) {
			ok = fail("post_send");
			break;
		}
	if (ok && !async_event(ends[0].dev.ctx, IBV_EVENT_CQ_ERR, 20))
		ok = fail("no CQ error event");
	drain_async(ends[0].dev.ctx);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(small);
	ibv_destroy_cq(rcq);
	/* and others go on */
	return ok && case_wrap();
}

/* --- solicited events --------------------------------------------------------- */

#define LONG_MSG	10000

static bool send_long(struct ibv_qp *qp, enum ibv_wr_opcode op, unsigned int flags,
		      struct ibv_cq *cq)
{
	struct ibv_sge sg = { (uintptr_t)ends[0].buf, LONG_MSG, ends[0].mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sg, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED | flags,
		.wr.rdma = { (uintptr_t)ends[1].buf, ends[1].mr->rkey },
	}, *bad;
	struct ibv_wc wc;

	return (!ibv_post_send(qp, &wr, &bad) || fail("post_send")) && reap(cq, &wc);
}

/* Nothing comes of the channel, or one event does, which is acknowledged. */
static bool notified(struct ibv_comp_channel *ch, bool yes)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *arg;

	if (poll(&pfd, 1, yes ? 10000 : 200) != yes)
		return fail(yes ? "no event" : "an event that nobody asked for");
	if (!yes)
		return true;
	if (ibv_get_cq_event(ch, &cq, &arg))
		return fail("get_cq_event: %m");
	ibv_ack_cq_events(cq, 1);
	return true;
}

static bool solicited(struct ibv_qp *a, struct ibv_qp *b, struct ibv_cq *cq, struct ibv_cq *rcq,
		      struct ibv_comp_channel *ch)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_sge sg = { (uintptr_t)ends[1].buf, LONG_MSG, ends[1].mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sg, .num_sge = 1 }, *bad;
	unsigned int i, k;
	struct ibv_wc wc;

	for (i = 0; i < 2; i++) {
		for (k = 0; k < 2; k++)
			if (ibv_post_recv(b, &wr, &bad))
				return fail("post_recv");
		if (ibv_req_notify_cq(rcq, 1))
			return fail("req_notify_cq");
		if (!send_long(a, ops[i], 0, cq) || !notified(ch, false) ||
		    !send_long(a, ops[i], IBV_SEND_SOLICITED, cq) || !notified(ch, true) ||
		    !reap(rcq, &wc) || !reap(rcq, &wc))
			return false;
	}
	return true;
}

/* The QP is told that the peer has agreed on all options but selective repeat. */
static void go_back(struct ibv_qp *qp)
{
	struct ibv_ece ece = {};

	if (ibv_query_ece(qp, &ece))
		die("query_ece: %m");
	if (!(ece.options & SKUA_ECE_SELECTIVE_REPEAT))
		return;
	ece.options &= ~SKUA_ECE_SELECTIVE_REPEAT;
	if (ibv_set_ece(qp, &ece))
		die("set_ece: %m");
}

static bool solicited_by(bool selective)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ends[1].dev.ctx);
	struct ibv_cq *cq = make_cq(&ends[0], 16), *rcq;
	struct ibv_qp *a, *b;
	bool ok;

	if (!ch)
		die("create_comp_channel: %m");
	rcq = ibv_create_cq(ends[1].dev.ctx, 16, NULL, ch, 0);
	if (!rcq)
		die("create_cq: %m");
	a = make_qp(&ends[0], cq, 8);
	b = make_qp(&ends[1], rcq, 8);
	if (!selective) {
		go_back(a);
		go_back(b);
	}
	join(a, b);
	ok = solicited(a, b, cq, rcq, ch);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	ibv_destroy_cq(rcq);
	ibv_destroy_comp_channel(ch);
	return ok;
}

static bool case_solicited(void)
{
	return solicited_by(true) && solicited_by(false);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} cases[] = {
		{ "qps", case_qps }, { "threads", case_threads }, { "wrap", case_wrap },
		{ "overflow", case_overflow }, { "solicited", case_solicited },
	};
	const char *dev = NULL, *dev2 = NULL, *only = NULL;
	unsigned int i;
	int gid = 0, gid2 = 0, opt, ret;

	while ((opt = getopt(argc, argv, "d:g:D:G:n:c:")) != -1) {
		switch (opt) {
		case 'd': dev = optarg; break;
		case 'g': gid = atoi(optarg); break;
		case 'D': dev2 = optarg; break;
		case 'G': gid2 = atoi(optarg); break;
		case 'n': nqps = atoi(optarg); break;
		case 'c': only = optarg; break;
		default: die("usage: skua-multi [-d DEV] [-g GID] [-D DEV2 -G GID2] [-n QPS] [-c CASE]");
		}
	}
	setlinebuf(stdout);
	buf_len = (size_t)nqps * 2 * SLOT + THREADS * SLOT + 4096 + LONG_MSG;
	end_open(&ends[0], dev, gid);
	end_open(&ends[1], dev2 ? dev2 : dev, dev2 ? gid2 : gid);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (only && strcmp(only, cases[i].name))
			continue;
		tap_case(cases[i].name, cases[i].run());
	}
	ret = tap_end();
	for (i = 0; i < 2; i++) {
		ibv_dereg_mr(ends[i].mr);
		dev_close(&ends[i].dev);
	}
	return ret;
}
