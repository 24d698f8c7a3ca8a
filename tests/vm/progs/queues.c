// SPDX-License-Identifier: GPL-2.0
/*
 * skua-queues: SRQs, XRC, CQs that change their size, QP states, work queues; one process
 * on one device. "skua-queues [-d DEV] [-g GID] [-m MAC]"; TAP. MAC is the port's.
 */
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "queues.h"

struct dev dev;
struct ibv_mr *mr;
uint8_t buf[LEN];
uint8_t mac[6];

struct ibv_cq *make_cq(int n)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, n, NULL, NULL, 0);

	if (!cq)
		die("create_cq of %d: %m", n);
	return cq;
}

static struct ibv_srq *make_srq(uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wr, .max_sge = sge } };

	return ibv_create_srq(dev.pd, &attr);
}

struct ibv_qp *make_qp(struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 256, .max_recv_wr = srq ? 0 : 256, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &attr);

	if (!qp)
		die("create_qp: %m");
	return qp;
}

void join_qps(struct ibv_qp *a, struct ibv_qp *b)
{
	struct addr aa = qp_addr(&dev, a, 1), ba = qp_addr(&dev, b, 2);
	struct link_attr l = link_default;

	l.rd_atomic = 1;
	qp_connect(&dev, a, aa.psn, &ba, &l);
	qp_connect(&dev, b, ba.psn, &aa, &l);
}

int srq_post(struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sg = { (uintptr_t)buf, LEN, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int recv_post(struct ibv_qp *qp, uint64_t id)
{
	struct ibv_sge sg = { (uintptr_t)buf, LEN, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sg, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static int send_any(struct ibv_qp *qp, void *p, uint32_t len, uint64_t id, unsigned int flags)
{
	struct ibv_sge sg = { (uintptr_t)p, len, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sg, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = flags,
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

int send_post(struct ibv_qp *qp, uint64_t id, bool signaled)
{
	return send_any(qp, buf, 64, id, signaled ? IBV_SEND_SIGNALED : 0);
}

int send_from(struct ibv_qp *qp, void *p, uint32_t len, uint64_t id)
{
	return send_any(qp, p, len, id, IBV_SEND_SIGNALED);
}

bool event(enum ibv_event_type type)
{
	struct pollfd pfd = { .fd = dev.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	if (poll(&pfd, 1, 10000) != 1)
		return fail("no event %s", ibv_event_type_str(type));
	if (ibv_get_async_event(dev.ctx, &ev))
		return fail("get_async_event: %m");
	ibv_ack_async_event(&ev);
	return ev.event_type == type ||
	       fail("event %s, not %s", ibv_event_type_str(ev.event_type),
		    ibv_event_type_str(type));
}

bool quiet(void)
{
	struct pollfd pfd = { .fd = dev.ctx->async_fd, .events = POLLIN };

	return poll(&pfd, 1, 200) == 0 || fail("an event that nobody expects");
}

bool done(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!poll_one(cq, &wc, 20))
		return fail("no completion of %llu", (unsigned long long)id);
	return (wc.wr_id == id && wc.status == status) ||
	       fail("completion of %llu: %s; not of %llu", (unsigned long long)wc.wr_id,
		    ibv_wc_status_str(wc.status), (unsigned long long)id);
}

/* --- SRQs ------------------------------------------------------------------ */

static bool case_srq_sizes(void)
{
	struct ibv_srq *srq;

	must(!make_srq(0, 1) && errno == EINVAL);
	must(!make_srq(dev.attr.max_srq_wr + 1, 1) && errno == EINVAL);
	must(!make_srq(1, dev.attr.max_srq_sge + 1) && errno == EINVAL);
	must(srq = make_srq(dev.attr.max_srq_wr, dev.attr.max_srq_sge));
	must(!ibv_destroy_srq(srq));
	must(srq = make_srq(1, 0));
	must(!ibv_destroy_srq(srq));
	return true;
}

static bool case_srq_full(void)
{
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;
	unsigned int i;

	must(srq = make_srq(10, 2));
	must(!ibv_query_srq(srq, &attr));
	must(attr.max_wr >= 10 && attr.max_sge >= 2 && !attr.srq_limit);
	for (i = 0; i < attr.max_wr; i++)
		must(!srq_post(srq, i));
	must(srq_post(srq, i) == ENOMEM);
	must(!ibv_destroy_srq(srq));
	return true;
}

/* Two QPs on one SRQ: order, limit event, a size that changes, the end of a QP. */
static bool case_srq_life(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 5 };
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_cq *scq = make_cq(64), *rcq = make_cq(256);
	struct ibv_qp *a[2], *b[2];
	struct ibv_srq *srq;
	uint64_t posted = 0, got = 0;
	unsigned int i;

	must(srq = make_srq(15, 1));
	for (i = 0; i < 2; i++) {
		a[i] = make_qp(scq, NULL);
		b[i] = make_qp(rcq, srq);
		join_qps(a[i], b[i]);
	}
	must(ibv_destroy_srq(srq) == EBUSY);
	must(recv_post(b[0], 0) == EINVAL);
	while (posted < 8)
		must(!srq_post(srq, posted++));
	must(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	must(!ibv_query_srq(srq, &attr) && attr.srq_limit == 5);
	for (i = 0; i < 4; i++) {
		must(!send_post(a[i & 1], i, true));
		must(done(scq, i, IBV_WC_SUCCESS) && done(rcq, got++, IBV_WC_SUCCESS));
	}
	must(event(IBV_EVENT_SRQ_LIMIT_REACHED) && quiet());
	must(!ibv_query_srq(srq, &attr) && !attr.srq_limit);

	/* Larger while some are posted, smaller than what is posted, again and again. */
	attr.max_wr = 3;
	must(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	attr.max_wr = dev.attr.max_srq_wr + 1;
	must(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	attr.max_wr = 100;
	must(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	must(!ibv_query_srq(srq, &attr) && attr.max_wr >= 100);
	while (posted - got < 100)
		must(!srq_post(srq, posted++));
	for (i = 0; i < 300; i++) {
		must(!send_post(a[i & 1], i, true));
		must(done(scq, i, IBV_WC_SUCCESS) && done(rcq, got++, IBV_WC_SUCCESS));
		must(!srq_post(srq, posted++));
	}

	/* Nothing of the SRQ is flushed when a QP ends. */
	must(!ibv_modify_qp(b[0], &err, IBV_QP_STATE));
	must(event(IBV_EVENT_QP_LAST_WQE_REACHED) && quiet());
	must(!send_post(a[1], 7, true));
	must(done(scq, 7, IBV_WC_SUCCESS) && done(rcq, got++, IBV_WC_SUCCESS));
	for (i = 0; i < 2; i++) {
		ibv_destroy_qp(a[i]);
		ibv_destroy_qp(b[i]);
	}
	must(!ibv_destroy_srq(srq));
	ibv_destroy_cq(scq);
	ibv_destroy_cq(rcq);
	return true;
}

/* --- CQs ------------------------------------------------------------------- */

static bool case_cq_resize_errors(void)
{
	struct ibv_cq *cq = make_cq(200), *scq = make_cq(10);
	struct ibv_qp *a = make_qp(cq, NULL), *b = make_qp(scq, NULL);
	unsigned int i;

	join_qps(a, b);
	must(ibv_resize_cq(cq, 0) == EINVAL);
	must(ibv_resize_cq(cq, dev.attr.max_cqe + 1) == EINVAL);
	for (i = 0; i < 100; i++)
		must(!recv_post(a, i));
	for (i = 0; i < 100; i++)
		must(!send_post(b, i, i == 99));
	must(done(scq, 99, IBV_WC_SUCCESS));
	/* A hundred are in it. */
	must(ibv_resize_cq(cq, 20) == EINVAL);
	must(!ibv_resize_cq(cq, 100) && cq->cqe >= 100);
	for (i = 0; i < 100; i++)
		must(done(cq, i, IBV_WC_SUCCESS));
	must(!ibv_resize_cq(cq, 1));
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	ibv_destroy_cq(scq);
	return true;
}

static atomic_bool stop;
static atomic_int resized;

/* NULL, or it failed. */
static void *resizer(void *arg)
{
	static const int sizes[] = { 300, 1000, 260, 5000, 257, 700 };

	while (!stop) {
		if (ibv_resize_cq(arg, sizes[resized % 6]))
			return arg;
		resized++;
	}
	return NULL;
}

/* Each completion comes once and in order, while another thread changes the size. */
static bool case_cq_resize_traffic(void)
{
	struct ibv_cq *cq = make_cq(300), *scq = make_cq(300);
	struct ibv_qp *a = make_qp(scq, NULL), *b = make_qp(cq, NULL);
	uint64_t sent = 0, got = 0, posted = 0;
	pthread_t thread;
	void *failed;
	bool ok = true;

	join_qps(a, b);
	stop = false;
	resized = 0;
	if (pthread_create(&thread, NULL, resizer, cq))
		die("pthread_create");
	while (ok && (got < 5000 || (resized < 6 && got < 500000))) {
		while (posted - got < 200)
			ok = ok && !recv_post(b, posted++);
		while (ok && sent - got < 150)
			ok = !send_post(a, sent++, true);
		ok = ok && done(cq, got, IBV_WC_SUCCESS) && done(scq, got, IBV_WC_SUCCESS);
		got++;
	}
	stop = true;
	pthread_join(thread, &failed);
	must(ok);
	must(!failed && resized >= 6);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	ibv_destroy_cq(scq);
	return true;
}

/* --- QP states -------------------------------------------------------------- */

static bool case_sqd(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_cq *cq = make_cq(600), *rcq = make_cq(300);
	struct ibv_qp *a = make_qp(cq, NULL), *b = make_qp(rcq, NULL);
	struct ibv_qp_init_attr init;
	unsigned int i;

	join_qps(a, b);
	for (i = 0; i < 200; i++)
		must(!recv_post(b, i));
	for (i = 0; i < 100; i++)
		must(!send_post(a, i, true));
	must(!ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	must(event(IBV_EVENT_SQ_DRAINED));
	must(!ibv_query_qp(a, &attr, IBV_QP_STATE, &init));
	must(attr.qp_state == IBV_QPS_SQD && !attr.sq_draining);
	/* Posted now, sent later. What may change in SQD and what may not. */
	must(!send_post(a, 100, true));
	attr.min_rnr_timer = 5;
	must(!ibv_modify_qp(a, &attr, IBV_QP_MIN_RNR_TIMER));
	attr.sq_psn = 5;
	must(ibv_modify_qp(a, &attr, IBV_QP_SQ_PSN) == EINVAL);
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(a, &attr, IBV_QP_STATE));
	for (i = 0; i <= 100; i++)
		must(done(cq, i, IBV_WC_SUCCESS));
	must(quiet());
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	ibv_destroy_cq(rcq);
	return true;
}

/* A counter of the port, or -1 */
static long long counter(const char *name)
{
	char path[200];
	long long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(dev.ctx->device), name);
	f = fopen(path, "r");
	if (f && fscanf(f, "%lld", &v) != 1)
		v = -1;
	if (f)
		fclose(f);
	return v;
}

/* What was sent and is not acknowledged keeps the queue from being drained. */
static bool case_sqd_waits(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_cq *cq = make_cq(16), *rcq = make_cq(16);
	struct ibv_qp *a = make_qp(cq, NULL), *b = make_qp(rcq, NULL);
	struct addr aa = qp_addr(&dev, a, 1), ba = qp_addr(&dev, b, 2);
	struct link_attr l = link_default;
	struct ibv_qp_init_attr init;
	double end = now() + 10;
	long long before;

	l.rnr_retry = 7;
	qp_connect(&dev, a, aa.psn, &ba, &l);
	qp_connect(&dev, b, ba.psn, &aa, &l);
	before = counter("rnr_nak_retry_err");
	must(before >= 0);
	/* The peer has no receive: it asks to wait, for as long as we please */
	must(!send_post(a, 0, true));
	while (counter("rnr_nak_retry_err") == before)
		must(now() < end);
	must(!ibv_modify_qp(a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	must(quiet());
	must(!ibv_query_qp(a, &attr, IBV_QP_STATE, &init));
	must(attr.qp_state == IBV_QPS_SQD && attr.sq_draining);
	must(!recv_post(b, 0));
	must(done(cq, 0, IBV_WC_SUCCESS));
	must(event(IBV_EVENT_SQ_DRAINED));
	must(!ibv_query_qp(a, &attr, IBV_QP_STATE, &init));
	must(!attr.sq_draining);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	ibv_destroy_cq(rcq);
	return true;
}

/* The first packet for a QP that is not in RTS yet. */
static bool case_comm_est(void)
{
	struct ibv_cq *cq = make_cq(64);
	struct ibv_qp *a = make_qp(cq, NULL), *b = make_qp(cq, NULL);
	struct addr aa = qp_addr(&dev, a, 1), ba = qp_addr(&dev, b, 2);
	struct link_attr l = link_default;

	qp_connect(&dev, a, aa.psn, &ba, &l);
	must(!qp_to_init(b, &l));
	must(!recv_post(b, 1));
	must(!qp_to_rtr(&dev, b, &aa, &l));
	must(!send_post(a, 2, false));
	must(event(IBV_EVENT_COMM_EST));
	must(done(cq, 1, IBV_WC_SUCCESS));
	must(!send_post(a, 2, false) && quiet());
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	return true;
}

/* What a RoCE device has not: a path to migrate to, and rates without the capability. */
static bool case_not_offered(void)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };
	struct ibv_cq *cq = make_cq(64);
	struct ibv_qp *a = make_qp(cq, NULL), *b = make_qp(cq, NULL);
	struct ibv_qp_attr attr = { .path_mig_state = IBV_MIG_REARM };
	struct ibv_device_attr_ex ex;
	int ret;

	join_qps(a, b);
	ret = ibv_modify_qp(a, &attr, IBV_QP_PATH_MIG_STATE);
	must(ret == EOPNOTSUPP || ret == EINVAL);
	ret = ibv_modify_qp(a, &attr, IBV_QP_ALT_PATH);
	must(ret == EOPNOTSUPP || ret == EINVAL);
	must(!ibv_query_device_ex(dev.ctx, NULL, &ex));
	rate.rate_limit = ex.packet_pacing_caps.qp_rate_limit_min;
	must(ibv_modify_qp_rate_limit(a, &rate) ==
	     (ex.packet_pacing_caps.qp_rate_limit_max ? 0 : EOPNOTSUPP));
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	return true;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} cases[] = {
		{ "SRQ sizes: none, most, one more", case_srq_sizes },
		{ "SRQ that is full", case_srq_full },
		{ "SRQ of two QPs: limit, resize, last WQE", case_srq_life },
		{ "XRC: objects that hold each other, and bad ones", case_xrc_objects },
		{ "XRC: one target, two SRQs", case_xrc_traffic },
		{ "XRC: a target that two have open", case_xrc_shared },
		{ "XRC: what the target refuses", case_xrc_errors },
		{ "XRC: an SRQ that waits for its event", case_xrc_event },
		{ "XRC: a plain SRQ with the number of one that waits", case_xrc_basic },
		{ "CQ resize: what cannot be", case_cq_resize_errors },
		{ "CQ resize under traffic", case_cq_resize_traffic },
		{ "send queue drained", case_sqd },
		{ "send queue drained, not before all is acknowledged", case_sqd_waits },
		{ "communication established", case_comm_est },
		{ "short rings share pages", case_short_rings },
		{ "a CQ has room for what is posted during an extended poll", case_room_extended },
		{ "a CQ has room for what another thread posts", case_room_threads },
		{ "work queue with a bad WQE", case_wq_error },
		{ "work queue whose CQ has no room", case_wq_fatal },
		{ "what is not offered", case_not_offered },
	};
	unsigned int i;
	const char *name = NULL;
	int gid = 0, opt, ret;

	while ((opt = getopt(argc, argv, "d:g:m:")) != -1) {
		switch (opt) {
		case 'd': name = optarg; break;
		case 'g': gid = atoi(optarg); break;
		case 'm':
			if (sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1],
				   &mac[2], &mac[3], &mac[4], &mac[5]) == 6)
				break;
			/* fall through */
		default: die("usage: skua-queues [-d DEV] [-g GID] [-m MAC]");
		}
	}
	setlinebuf(stdout);
	dev_open(&dev, name, gid);
	mr = ibv_reg_mr(dev.pd, buf, LEN, ALL_RIGHTS);
	if (!mr)
		die("reg_mr: %m");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_case(cases[i].name, cases[i].run());
	ret = tap_end();
	ibv_dereg_mr(mr);
	dev_close(&dev);
	return ret;
}
