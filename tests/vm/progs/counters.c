// SPDX-License-Identifier: GPL-2.0
/*
 * skua-counters -d DEV -g GID; TAP. Verbs counters of steering rules: a RAW_PACKET QP
 * sends frames to its own address, rules that count take them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define FRAMES	5
#define LEN	200
/* More counters than the device has sets */
#define MANY	5000
#define TYPE	0x88b5	/* for experiments, by the IEEE */

static struct dev dev;
static uint8_t buf[2][4096] __attribute__((aligned(4096)));
static struct ibv_mr *mr[2];
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *qp;
static uint8_t mac[6];

static struct ibv_flow *rule(struct ibv_counters *counters, bool drop)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
		struct ibv_flow_spec_action_drop drop;
	} __attribute__((packed, aligned(8))) r = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(r),
			  .num_of_specs = drop ? 3 : 2, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(r.eth),
			 .val.ether_type = htons(TYPE), .mask.ether_type = 0xffff },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(r.count),
			   .counters = counters },
		.drop = { .type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(r.drop) },
	};

	return ibv_create_flow(qp, (void *)&r);
}

static bool complete(struct ibv_cq *cq, int n)
{
	double end = now() + 10;
	struct ibv_wc wc;
	int got;

	while (n) {
		got = ibv_poll_cq(cq, 1, &wc);
		if (got < 0 || now() > end)
			return fail("%d completions are missing", n);
		if (got && wc.status)
			return fail("completion: %s", ibv_wc_status_str(wc.status));
		n -= got;
	}
	return true;
}

static bool recv_post(int n)
{
	struct ibv_sge sg = { (uintptr_t)buf[1], sizeof(buf[1]), mr[1]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sg, .num_sge = 1 }, *bad;

	while (n--)
		if (!expect_err("post_recv", ibv_post_recv(qp, &wr, &bad), 0))
			return false;
	return true;
}

/* Frames of LEN bytes, and as many of another type, which no rule of ours takes. */
static bool frames(int n)
{
	struct ibv_sge sg = { (uintptr_t)buf[0], LEN, mr[0]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sg, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	int i;

	memcpy(buf[0], mac, 6);
	memcpy(buf[0] + 6, mac, 6);
	for (i = 0; i < 2 * n; i++) {
		buf[0][12] = TYPE >> 8;
		buf[0][13] = (TYPE + i % 2) & 0xff;
		if (!expect_err("post_send", ibv_post_send(qp, &wr, &bad), 0) || !complete(send_cq, 1))
			return false;
	}
	return true;
}

static bool reads(struct ibv_counters *c, uint64_t packets, uint64_t bytes)
{
	double end = now() + 5;
	uint64_t v[3];

	/* Frames turn round in the device a little later. */
	do {
		if (!expect_err("read_counters", ibv_read_counters(c, v, 3, 0), 0))
			return false;
	} while ((v[2] != packets || v[0] != bytes) && now() < end);
	return (v[0] == bytes && v[1] == 0 && v[2] == packets) ||
	       fail("%lu bytes, %lu, %lu packets, not %lu and %lu", v[0], v[1], v[2], bytes,
		    packets);
}

static struct ibv_counters *counters(void)
{
	struct ibv_counters_init_attr attr = { 0 };
	struct ibv_counters *c = ibv_create_counters(dev.ctx, &attr);
	struct ibv_counter_attach_attr at[] = {
		{ .counter_desc = IBV_COUNTER_BYTES, .index = 0 },
		{ .counter_desc = IBV_COUNTER_PACKETS, .index = 2 },
	};

	if (!c) {
		fail("create_counters: %m");
		return NULL;
	}
	if (!expect_err("attach", ibv_attach_counters_point_flow(c, &at[0], NULL), 0) ||
	    !expect_err("attach", ibv_attach_counters_point_flow(c, &at[1], NULL), 0))
		return NULL;
	return c;
}

/* --- cases ------------------------------------------------------------------------ */

static bool a_rule_counts(void)
{
	struct ibv_counter_attach_attr at = { .counter_desc = IBV_COUNTER_BYTES, .index = 1 };
	struct ibv_counters *c = counters();
	struct ibv_flow *f;

	if (!c)
		return false;
	f = rule(c, false);
	if (!f)
		return fail("create_flow: %m");
	return reads(c, 0, 0) && recv_post(FRAMES) && frames(FRAMES) && complete(recv_cq, FRAMES) &&
	       reads(c, FRAMES, FRAMES * LEN) &&
	       expect_err("attach in use", ibv_attach_counters_point_flow(c, &at, NULL), EBUSY) &&
	       expect_err("destroy counters in use", ibv_destroy_counters(c), EBUSY) &&
	       expect_err("destroy flow", ibv_destroy_flow(f), 0) &&
	       expect_err("destroy counters", ibv_destroy_counters(c), 0);
}

static bool a_rule_that_drops_counts(void)
{
	struct ibv_counters *c = counters();
	struct ibv_flow *f;

	if (!c)
		return false;
	f = rule(c, true);
	if (!f)
		return fail("create_flow: %m");
	return frames(FRAMES) && reads(c, FRAMES, FRAMES * LEN) &&
	       expect_err("destroy flow", ibv_destroy_flow(f), 0) &&
	       expect_err("destroy counters", ibv_destroy_counters(c), 0);
}

static bool two_rules_share(void)
{
	struct ibv_counters *c = counters();
	struct ibv_flow *f[2];

	if (!c)
		return false;
	f[0] = rule(c, false);
	f[1] = rule(c, true);
	if (!f[0] || !f[1])
		return fail("create_flow: %m");
	/* The first takes all. */
	if (!recv_post(2 * FRAMES) || !frames(FRAMES) || !complete(recv_cq, FRAMES) ||
	    !reads(c, FRAMES, FRAMES * LEN) ||
	    !expect_err("destroy flow", ibv_destroy_flow(f[0]), 0))
		return false;
	return frames(FRAMES) && reads(c, 2 * FRAMES, 2 * FRAMES * LEN) &&
	       expect_err("destroy flow", ibv_destroy_flow(f[1]), 0) &&
	       expect_err("destroy counters", ibv_destroy_counters(c), 0);
}

static bool errors(void)
{
	struct ibv_counter_attach_attr at = { .counter_desc = 7, .index = 1 };
	struct ibv_counters_init_attr strange = { .comp_mask = 1 };
	struct ibv_counters *c = counters();
	uint64_t v[3];

	if (!c)
		return false;
	if (!expect_err("read without a rule", ibv_read_counters(c, v, 3, 0), EINVAL) ||
	    !expect_err("attach what is none", ibv_attach_counters_point_flow(c, &at, NULL), ENOTSUP))
		return false;
	at.counter_desc = IBV_COUNTER_PACKETS;
	at.index = 64;
	if (!expect_err("a place too far", ibv_attach_counters_point_flow(c, &at, NULL), EINVAL))
		return false;
	at.index = 1;
	at.comp_mask = 1;
	if (!expect_err("unknown bits", ibv_attach_counters_point_flow(c, &at, NULL), EOPNOTSUPP))
		return false;
	if (ibv_create_counters(dev.ctx, &strange) || errno != EOPNOTSUPP)
		return fail("create_counters with unknown bits: %m");
	return expect_err("destroy counters", ibv_destroy_counters(c), 0);
}

/*
 * Who may not steer has counters as well, but none of the device's, of which there are
 * not many: others find theirs.
 */
static bool many_without_rights(void)
{
	struct ibv_counters_init_attr attr = { 0 };
	struct ibv_counters *c;
	struct beside b;
	int i, status;
	bool ok;

	if (beside_start(&b)) {
		struct ibv_context *ctx;

		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(1);
		ctx = ibv_open_device(dev.ctx->device);
		if (!ctx)
			_exit(2);
		for (i = 0; i < MANY && ibv_create_counters(ctx, &attr); i++)
			;
		if (!beside_stay(&b))
			_exit(3);
		_exit(i == MANY ? 0 : 4);
	}
	if (!beside_ready(&b))
		die("no word from the other process");
	c = counters();
	ok = c && a_rule_counts();
	beside_end(&b);
	if (waitpid(b.pid, &status, 0) != b.pid || !WIFEXITED(status) || WEXITSTATUS(status))
		ok = fail("the other process: status %#x", status);
	return ok && expect_err("destroy counters", ibv_destroy_counters(c), 0);
}

static const struct {
	const char *name;
	bool (*fn)(void);
} cases[] = {
	{ "a rule counts what it takes", a_rule_counts },
	{ "a rule that drops counts", a_rule_that_drops_counts },
	{ "two rules share counters", two_rules_share },
	{ "errors", errors },
	{ "many objects of one without rights", many_without_rights },
};

static void setup(void)
{
	struct ibv_qp_init_attr init = { .cap = { 16, 16, 1, 1, 0 }, .qp_type = IBV_QPT_RAW_PACKET,
					 .sq_sig_all = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int i;

	send_cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0);
	recv_cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0);
	init.send_cq = send_cq;
	init.recv_cq = recv_cq;
	qp = send_cq && recv_cq ? ibv_create_qp(dev.pd, &init) : NULL;
	if (!qp)
		die("queues: %m");
	for (i = 0; i < 2; i++) {
		mr[i] = ibv_reg_mr(dev.pd, buf[i], sizeof(buf[i]), IBV_ACCESS_LOCAL_WRITE);
		if (!mr[i])
			die("reg_mr: %m");
	}
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		die("INIT: %m");
	for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= IBV_QPS_RTS; attr.qp_state++)
		if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
			die("RTR, RTS: %m");
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	unsigned int i;
	int opt, gid = -1;

	while ((opt = getopt(argc, argv, "d:g:m:")) != -1) {
		if (opt == 'd')
			name = optarg;
		else if (opt == 'g')
			gid = atoi(optarg);
		else if (opt != 'm' || sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0],
					      &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
			die("usage: -d DEV -g GID -m MAC");
	}
	dev_open(&dev, name, gid);
	setup();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_case(cases[i].name, cases[i].fn());
	return tap_end();
}
