// SPDX-License-Identifier: GPL-2.0
/*
 * skua-nomem: counters. Verbs counters of steering rules; counter sets of QPs, which "rdma
 * statistic qp" binds and unbinds: here by the same messages, sent by the thread whose
 * allocations fail.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "nomem.h"

/* --- counters of rules --- */

#define TYPE	0x88b5	/* for experiments, by the IEEE */

static struct ibv_counters *counters;

static bool create_counters(void)
{
	struct ibv_counters_init_attr attr = {};

	return made(ibv_create_counters(dev.ctx, &attr));
}

static bool destroy_counters(void)
{
	return done(ibv_destroy_counters(it.made));
}

/* What is attached libibverbs alone knows. */
static bool counters_before(void)
{
	struct ibv_counter_attach_attr bytes = { .counter_desc = IBV_COUNTER_BYTES };
	struct ibv_counter_attach_attr packets = {
		.counter_desc = IBV_COUNTER_PACKETS, .index = 1,
	};

	if (!create_counters())
		return false;
	counters = it.made;
	return done(ibv_attach_counters_point_flow(counters, &bytes, NULL)) &&
	       done(ibv_attach_counters_point_flow(counters, &packets, NULL));
}

static bool counted_before(void)
{
	return counters_before() && create_raw_init();
}

static bool create_counted(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 2,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			 .val.ether_type = htons(TYPE), .mask.ether_type = 0xffff },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(rule.count),
			   .counters = counters },
	};

	return made(ibv_create_flow(it.again, (void *)&rule));
}

static bool counted_after(void)
{
	return done(ibv_destroy_counters(counters)) && destroy_it();
}

static bool rule_before(void)
{
	return counted_before() && create_counted();
}

static bool read_counters(void)
{
	uint64_t value[2];

	return done(ibv_read_counters(counters, value, 2, 0));
}

static bool rule_after(void)
{
	return destroy_flow() && counted_after();
}

/* --- messages to the RDMA core --- */

struct message {
	struct nlmsghdr h;
	union {
		char attr[4096];
		struct nlmsgerr err;
	};
};

static void put(struct message *m, uint16_t type, uint32_t value)
{
	struct nlattr a = { .nla_type = type, .nla_len = NLA_HDRLEN + sizeof(value) };
	char *p = m->attr + m->h.nlmsg_len - NLMSG_HDRLEN;

	memcpy(p, &a, sizeof(a));
	memcpy(p + NLA_HDRLEN, &value, sizeof(value));
	m->h.nlmsg_len += a.nla_len;
}

/* The payload of an attribute, or NULL */
static const void *get(const struct message *m, uint16_t type)
{
	const char *p = m->attr, *end = m->attr + m->h.nlmsg_len - NLMSG_HDRLEN;
	struct nlattr a;

	for (; p + NLA_HDRLEN <= end; p += NLA_ALIGN(a.nla_len)) {
		memcpy(&a, p, sizeof(a));
		if ((a.nla_type & NLA_TYPE_MASK) == type)
			return p + NLA_HDRLEN;
		if (a.nla_len < NLA_HDRLEN)
			break;
	}
	return NULL;
}

static struct message message(unsigned int op, uint32_t index)
{
	struct message m = { .h = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op),
		.nlmsg_flags = NLM_F_REQUEST,
	} };

	put(&m, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	return m;
}

static int nl_open(void)
{
	struct timeval patience = { .tv_sec = 10 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		die("netlink: %m");
	return fd;
}

/*
 * Ask, and have the answer in its place; 0 or errno. What is asked for is done before the answer
 * is fetched: with EFAULT it may be.
 */
static int ask(struct message *m)
{
	static int fd = -1;
	ssize_t len;

	if (fd < 0)
		fd = nl_open();
	if (send(fd, m, m->h.nlmsg_len, 0) < 0)
		return errno;
	len = recv(fd, m, sizeof(*m), 0);
	if (len < 0)
		return errno;
	return m->h.nlmsg_type == NLMSG_ERROR ? -m->err.error : 0;
}

/* The device's number there, which libibverbs keeps to itself */
static uint32_t dev_index(void)
{
	const char *name = ibv_get_device_name(dev.ctx->device);
	static int known = -1;
	int i;

	for (i = 0; known < 0 && i < 100; i++) {
		struct message m = message(RDMA_NLDEV_CMD_GET, i);
		const char *is;

		if (ask(&m))
			continue;
		is = get(&m, RDMA_NLDEV_ATTR_DEV_NAME);
		if (is && !strcmp(is, name))
			known = i;
	}
	if (known < 0)
		die("%s: netlink does not know it", name);
	return known;
}

static struct message about_qps(unsigned int op)
{
	struct message m = message(op, dev_index());

	put(&m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	put(&m, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
	return m;
}

/* --- counter sets of QPs --- */

static uint32_t set;

/* A QP that is its own peer */
static bool peer_before(void)
{
	struct addr peer;

	dev_index();
	it.again = new_qp(IBV_QPT_RC);
	if (!it.again)
		return false;
	peer = qp_addr(&dev, it.again, 1);
	return done(qp_to_init(it.again, &link_default)) &&
	       done(qp_to_rtr(&dev, it.again, &peer, &link_default)) &&
	       done(qp_to_rts(it.again, 1, &link_default));
}

static bool bind_set(void)
{
	struct message m = about_qps(RDMA_NLDEV_CMD_STAT_SET);
	struct ibv_qp *qp = it.again;
	const void *num;
	int err;

	put(&m, RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_MANUAL);
	put(&m, RDMA_NLDEV_ATTR_RES_LQPN, qp->qp_num);
	err = ask(&m);
	if (err)
		return done(err);
	num = get(&m, RDMA_NLDEV_ATTR_STAT_COUNTER_ID);
	if (!num)
		return done(EPROTO);
	memcpy(&set, num, sizeof(set));
	return true;
}

/* ENOENT, as of objects of uverbs, if the QP has no set any more */
static bool unbind_set(void)
{
	struct message m = about_qps(RDMA_NLDEV_CMD_STAT_DEL);
	struct ibv_qp *qp = it.again;
	int err;

	put(&m, RDMA_NLDEV_ATTR_STAT_COUNTER_ID, set);
	put(&m, RDMA_NLDEV_ATTR_RES_LQPN, qp->qp_num);
	err = ask(&m);
	return done(err == EINVAL ? ENOENT : err);
}

/* Something to be counted: a WRITE of no bytes */
static bool write_one(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (!done(ibv_post_send(it.again, &wr, &bad)))
		return false;
	return done(!poll_one(cq, &wc, 20) ? ETIMEDOUT : wc.status ? EIO : 0);
}

static bool bind_and_write(void)
{
	return bind_set() && write_one();
}

static bool by_type(uint32_t mask)
{
	struct message m = about_qps(RDMA_NLDEV_CMD_STAT_SET);

	put(&m, RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_AUTO);
	put(&m, RDMA_NLDEV_ATTR_STAT_AUTO_MODE_MASK, mask);
	return done(ask(&m));
}

static bool by_type_before(void)
{
	it.again = new_qp(IBV_QPT_RC);
	return it.again && by_type(RDMA_COUNTER_MASK_QP_TYPE);
}

/* A QP for which no set can be had does without. */
static bool counted_init(void)
{
	return done(qp_to_init(it.again, &link_default));
}

static bool by_type_after(void)
{
	return destroy_it() && by_type(0);
}

const struct verb verbs_of_counters[] = {
	{ "create_counters", nothing, create_counters, destroy_counters },
	{ "create_flow that counts", counted_before, create_counted, destroy_flow, counted_after },
	{ "read_counters", rule_before, read_counters, nothing, rule_after },
	/* Of the socket */
	{ "bind a QP to a counter set", peer_before, bind_set, unbind_set, destroy_it,
	  .other = ENOBUFS },
	{ "unbind a QP from a counter set", peer_before, bind_and_write, unbind_set, destroy_it,
	  .undo_tried = true, .other = ENOBUFS },
	{ "destroy_qp, counted", peer_before, bind_and_write, destroy_it, nothing,
	  .undo_tried = true },
	{ "modify_qp to INIT, counted by type", by_type_before, counted_init, nothing,
	  by_type_after },
	{}
};
