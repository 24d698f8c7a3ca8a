// SPDX-License-Identifier: GPL-2.0
/*
 * skua-rate -d DEV -g GID [-s]; TAP. QPs with a rate limit, on one device with itself:
 * what may be set and when, that the rate is kept, that it can be changed under way,
 * and that nobody else is slower for it. With -s: set one, say so, and stay.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

#define BUF		(2u << 20)
#define BURST		20000u

static struct dev dev;
static struct ibv_device_attr_ex caps;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t *buf;

/* --- QPs ---------------------------------------------------------------------- */

static struct ibv_qp *make(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { 16, 16, 1, 1, 0 },
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &attr);

	if (!qp)
		die("create_qp: %m");
	return qp;
}

static int state(struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = to, .port_num = 1, .qkey = 0x1234 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

static int limit(struct ibv_qp *qp, uint32_t kbps)
{
	struct ibv_qp_attr attr = { .rate_limit = kbps };

	return ibv_modify_qp(qp, &attr, IBV_QP_RATE_LIMIT);
}

static int shape(struct ibv_qp *qp, uint32_t kbps, uint32_t burst, uint16_t typical)
{
	struct ibv_qp_rate_limit_attr attr = {
		.rate_limit = kbps, .max_burst_sz = burst, .typical_pkt_sz = typical,
	};

	return ibv_modify_qp_rate_limit(qp, &attr);
}

static int64_t told(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init) ? -1 : (int64_t)attr.rate_limit;
}

struct pair {
	struct ibv_qp *qp[2];
};

static struct pair connected(void)
{
	struct addr a[2];
	struct pair p;
	int i;

	for (i = 0; i < 2; i++) {
		p.qp[i] = make(IBV_QPT_RC);
		a[i] = qp_addr(&dev, p.qp[i], 100 + i);
	}
	for (i = 0; i < 2; i++)
		qp_connect(&dev, p.qp[i], a[i].psn, &a[!i], &link_default);
	return p;
}

static bool drop(struct pair *p, bool ok)
{
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		if (ibv_destroy_qp(p->qp[i]))
			return fail("destroy_qp: %m");
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
	return ok;
}

static bool write_post(struct ibv_qp *qp, uint32_t len)
{
	struct ibv_sge sg = { (uintptr_t)buf, len, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sg, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)buf + BUF, mr->rkey },
	}, *bad;

	return expect_err("post_send", ibv_post_send(qp, &wr, &bad), 0);
}

static bool done(double seconds)
{
	struct ibv_wc wc;

	if (!poll_one(cq, &wc, seconds))
		return fail("no completion in %.0f s", seconds);
	return wc.status == IBV_WC_SUCCESS || fail("status %s", ibv_wc_status_str(wc.status));
}

/* --- cases --------------------------------------------------------------------- */

static bool capabilities(void)
{
	const struct ibv_packet_pacing_caps *c = &caps.packet_pacing_caps;
	uint32_t all = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD |
		       1 << IBV_QPT_XRC_SEND | 1 << IBV_QPT_RAW_PACKET;

	return (c->qp_rate_limit_min && c->qp_rate_limit_min < c->qp_rate_limit_max &&
		c->supported_qpts == all) ||
	       fail("%u to %u kbit/s, types %#x", c->qp_rate_limit_min, c->qp_rate_limit_max,
		    c->supported_qpts);
}

/* In which states, and that it comes back. */
static bool set_and_told(void)
{
	struct ibv_qp *qp = make(IBV_QPT_UD);
	int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	bool ok;

	ok = expect_err("in RESET", limit(qp, 1000), EINVAL) &&
	     expect_err("INIT", state(qp, IBV_QPS_INIT, init), 0) &&
	     expect_err("in INIT", limit(qp, 1000), 0) && (told(qp) == 1000 || fail("in INIT?")) &&
	     expect_err("RTR", state(qp, IBV_QPS_RTR, 0), 0) &&
	     expect_err("RTS", state(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN), 0) &&
	     expect_err("in RTS", shape(qp, 2000, BURST, 1000), 0) &&
	     (told(qp) == 2000 || fail("in RTS?")) &&
	     expect_err("SQD", state(qp, IBV_QPS_SQD, 0), 0) &&
	     expect_err("in SQD", limit(qp, 3000), 0) &&
	     expect_err("RTS again", state(qp, IBV_QPS_RTS, 0), 0) &&
	     (told(qp) == 3000 || fail("in RTS again?")) &&
	     expect_err("none", limit(qp, 0), 0) && (told(qp) == 0 || fail("none?")) &&
	     expect_err("with a state", limit(qp, 4000), 0) &&
	     expect_err("ERR", state(qp, IBV_QPS_ERR, 0), 0) &&
	     expect_err("in ERR", limit(qp, 1000), EINVAL) &&
	     (told(qp) == 4000 || fail("in ERR?")) &&
	     expect_err("RESET", state(qp, IBV_QPS_RESET, 0), 0) &&
	     (told(qp) == 0 || fail("RESET keeps it"));
	return expect_err("destroy_qp", ibv_destroy_qp(qp), 0) && ok;
}

static bool refused(void)
{
	struct ibv_qp_rate_limit_attr unknown = { .rate_limit = 1000, .comp_mask = 1 };
	uint32_t min = caps.packet_pacing_caps.qp_rate_limit_min;
	uint32_t max = caps.packet_pacing_caps.qp_rate_limit_max;
	struct pair p = connected();
	struct ibv_qp *qp = p.qp[0];

	return drop(&p,
		expect_err("least", limit(qp, min), 0) && expect_err("greatest", limit(qp, max), 0) &&
		expect_err("less", limit(qp, min - 1), min > 1 ? EINVAL : 0) &&
		expect_err("more", limit(qp, max + 1), EINVAL) &&
		expect_err("2^31", limit(qp, 1u << 31), EINVAL) &&
		expect_err("2^32 - 1", limit(qp, UINT32_MAX), EINVAL) &&
		(told(qp) == max || fail("a refusal changed it")) &&
		expect_err("burst without rate", shape(qp, 0, 1, 0), EINVAL) &&
		expect_err("packet without rate", shape(qp, 0, 0, 1), EINVAL) &&
		expect_err("long burst", shape(qp, max, UINT32_MAX, 0), EINVAL) &&
		expect_err("comp_mask", ibv_modify_qp_rate_limit(qp, &unknown), EINVAL));
}

/* Never faster; how much slower is the machine's business. */
static bool kept(void)
{
	const uint32_t kbps = 80000;
	struct pair p = connected();
	double start, least, took;
	bool ok;

	memset(buf, 0x5a, BUF);
	memset(buf + BUF, 0, BUF);
	ok = expect_err("limit", shape(p.qp[0], kbps, BURST, 0), 0);
	start = now();
	ok = ok && write_post(p.qp[0], BUF) && done(60);
	took = now() - start;
	least = (BUF - BURST - 2048) * 8.0 / (kbps * 1000.0);
	if (ok && took < least)
		ok = fail("%.3f s, not %.3f", took, least);
	if (ok && memcmp(buf, buf + BUF, BUF))
		ok = fail("wrong data");
	return drop(&p, ok);
}

static bool changed(void)
{
	struct pair p = connected();
	double start = now();
	bool ok;

	/* Hours at that rate */
	ok = expect_err("limit", limit(p.qp[0], caps.packet_pacing_caps.qp_rate_limit_min), 0) &&
	     write_post(p.qp[0], BUF) && write_post(p.qp[0], BUF);
	usleep(100000);
	ok = ok && expect_err("faster", limit(p.qp[0], 50000), 0) && done(60) &&
	     expect_err("without limit", limit(p.qp[0], 0), 0) && done(60);
	if (ok && now() - start < (BUF - 20000) * 8.0 / 5e7)
		ok = fail("too fast");
	return drop(&p, ok);
}

static bool alone(void)
{
	struct pair slow = connected(), fast = connected();
	bool ok;

	ok = expect_err("limit", shape(slow.qp[0], caps.packet_pacing_caps.qp_rate_limit_min, 1, 0),
		    0) && write_post(slow.qp[0], BUF);
	for (int i = 0; i < 20 && ok; i++)
		ok = write_post(fast.qp[0], BUF) && done(60);
	/* One that waits ends at once. */
	return drop(&fast, drop(&slow, ok));
}

/* Flushed in error, not at the rate. */
static bool ended(void)
{
	struct pair p = connected();
	struct ibv_wc wc;
	bool ok;

	ok = expect_err("limit", shape(p.qp[0], caps.packet_pacing_caps.qp_rate_limit_min, 1, 0), 0);
	for (int i = 0; i < 8 && ok; i++)
		ok = write_post(p.qp[0], BUF);
	ok = ok && expect_err("ERR", state(p.qp[0], IBV_QPS_ERR, 0), 0);
	for (int i = 0; i < 8 && ok; i++)
		ok = (poll_one(cq, &wc, 20) && wc.status == IBV_WC_WR_FLUSH_ERR) ||
		     fail("request %d is not flushed", i);
	return drop(&p, ok);
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "capabilities", capabilities },
	{ "set and told in each state", set_and_told },
	{ "refused", refused },
	{ "kept", kept },
	{ "changed under way", changed },
	{ "no other QP waits", alone },
	{ "flushed at once", ended },
};

static void stay(void)
{
	struct pair p = connected();

	if (shape(p.qp[0], 12345, 6789, 0))
		die("limit: %m");
	printf("here\n");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	int c, n = sizeof(cases) / sizeof(cases[0]), gid = 0, ret;
	const char *name = NULL;
	bool stays = false;

	while ((c = getopt(argc, argv, "d:g:s")) != -1) {
		if (c == 'd')
			name = optarg;
		else if (c == 'g')
			gid = atoi(optarg);
		else if (c == 's')
			stays = true;
		else
			return 2;
	}
	dev_open(&dev, name, gid);
	if (ibv_query_device_ex(dev.ctx, NULL, &caps))
		die("query_device_ex: %m");
	buf = aligned_alloc(4096, 2 * BUF);
	cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0);
	mr = buf ? ibv_reg_mr(dev.pd, buf, 2 * BUF,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
	if (!cq || !mr)
		die("no CQ or region: %m");
	if (stays)
		stay();
	for (int i = 0; i < n; i++)
		tap_case(cases[i].name, cases[i].run());
	ret = tap_end();
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	free(buf);
	dev_close(&dev);
	return ret;
}
