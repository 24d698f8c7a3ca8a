// SPDX-License-Identifier: GPL-2.0
/*
 * skua-frmr: the RDMA core's pools of memory regions, as netlink shows and sets them,
 * for want of a tool that does; and programs' part, regions that come and go.
 *
 *   skua-frmr [-d DEVICE] show
 *   skua-frmr [-d DEVICE] drain		nothing waits in a pool any more
 *   skua-frmr -d DEVICE age SECONDS
 *   skua-frmr -d DEVICE pin BLOCKS HANDLES
 *   skua-frmr -d DEVICE regions PAGES TIMES same|other|many
 */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

#define MANY	16

/* Newer than the headers of many a distribution. */
enum {
	CMD_POOLS_GET = 29,
	CMD_POOLS_SET = 30,
	ATTR_POOLS = 105,
	ATTR_ENTRY = 106,
	ATTR_KEY = 107,
	ATTR_KEY_BLOCKS = 111,
	ATTR_HANDLES = 112,
	ATTR_MAX_IN_USE = 113,
	ATTR_IN_USE = 114,
	ATTR_AGING = 115,
	ATTR_PINNED = 116,
};

/* --- messages ------------------------------------------------------------------- */

struct msg {
	struct nlmsghdr h;
	char data[512];
};

static int sock;

static void msg_begin(struct msg *m, int cmd, int flags)
{
	memset(m, 0, sizeof(*m));
	m->h.nlmsg_len = NLMSG_HDRLEN;
	m->h.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd);
	m->h.nlmsg_flags = NLM_F_REQUEST | flags;
}

static struct nlattr *put(struct msg *m, int type, const void *data, size_t len)
{
	struct nlattr *a = (void *)((char *)m + m->h.nlmsg_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	if (len)
		memcpy((char *)a + NLA_HDRLEN, data, len);
	m->h.nlmsg_len += NLMSG_ALIGN(a->nla_len);
	return a;
}

static void put_u32(struct msg *m, int type, uint32_t val)
{
	put(m, type, &val, sizeof(val));
}

/* The attribute of this type among those in [@p, @p + @len). */
static const struct nlattr *find(const void *p, size_t len, int type)
{
	while (len >= NLA_HDRLEN) {
		const struct nlattr *a = p;
		size_t step = NLA_ALIGN(a->nla_len);

		if (a->nla_len < NLA_HDRLEN || step > len)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		p = (const char *)p + step;
		len -= step;
	}
	return NULL;
}

static const void *payload(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static const struct nlattr *find_in(const struct nlattr *a, int type)
{
	return a ? find(payload(a), a->nla_len - NLA_HDRLEN, type) : NULL;
}

static uint64_t number(const struct nlattr *a)
{
	uint64_t val = 0;

	if (a)
		memcpy(&val, payload(a), a->nla_len - NLA_HDRLEN < 8 ? a->nla_len - NLA_HDRLEN : 8);
	return val;
}

/* Send, and hand each message of the answer to @each. Return: 0 or an errno. */
static int talk(struct msg *m, void (*each)(const struct nlmsghdr *h, void *arg), void *arg)
{
	static char buf[65536];
	ssize_t len;

	if (send(sock, m, m->h.nlmsg_len, 0) < 0)
		die("netlink: %m");
	for (;;) {
		struct nlmsghdr *h = (void *)buf;

		len = recv(sock, buf, sizeof(buf), 0);
		if (len < 0)
			die("netlink: %m");
		for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return -((struct nlmsgerr *)NLMSG_DATA(h))->error;
			each(h, arg);
		}
	}
}

static void ignore(const struct nlmsghdr *h, void *arg)
{
	(void)h;
	(void)arg;
}

/* --- devices and their pools ------------------------------------------------------ */

struct device {
	uint32_t index;
	char name[64];
};

struct devices {
	const char *only;
	unsigned int num;
	struct device dev[16];
};

static void add_device(const struct nlmsghdr *h, void *arg)
{
	struct devices *all = arg;
	const struct nlattr *name = find(NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0),
					 RDMA_NLDEV_ATTR_DEV_NAME);
	const struct nlattr *index = find(NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0),
					  RDMA_NLDEV_ATTR_DEV_INDEX);
	struct device *dev = &all->dev[all->num];

	if (!name || !index || all->num == 16 ||
	    (all->only && strcmp(payload(name), all->only)))
		return;
	dev->index = number(index);
	snprintf(dev->name, sizeof(dev->name), "%s", (const char *)payload(name));
	all->num++;
}

struct pool {
	uint64_t blocks, handles, in_use, max_in_use, pinned;
};

struct pools {
	unsigned int num;
	struct pool pool[64];
};

static void add_pools(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *table = find(NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0), ATTR_POOLS);
	struct pools *all = arg;
	const char *p;
	size_t left;

	if (!table)
		return;
	p = payload(table);
	left = table->nla_len - NLA_HDRLEN;
	while (all->num < 64) {
		const struct nlattr *entry = find(p, left, ATTR_ENTRY);

		if (!entry)
			return;
		all->pool[all->num++] = (struct pool) {
			.blocks = number(find_in(find_in(entry, ATTR_KEY), ATTR_KEY_BLOCKS)),
			.handles = number(find_in(entry, ATTR_HANDLES)),
			.in_use = number(find_in(entry, ATTR_IN_USE)),
			.max_in_use = number(find_in(entry, ATTR_MAX_IN_USE)),
			.pinned = number(find_in(entry, ATTR_PINNED)),
		};
		left -= (const char *)entry + NLA_ALIGN(entry->nla_len) - p;
		p = (const char *)entry + NLA_ALIGN(entry->nla_len);
	}
}

/* False: this kernel has no pools. */
static bool get_pools(const struct device *dev, struct pools *all)
{
	struct msg m;

	all->num = 0;
	msg_begin(&m, CMD_POOLS_GET, NLM_F_DUMP);
	put_u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, dev->index);
	return !talk(&m, add_pools, all);
}

static int set_pinned(const struct device *dev, uint64_t blocks, uint32_t handles)
{
	struct nlattr *key;
	struct msg m;

	msg_begin(&m, CMD_POOLS_SET, NLM_F_ACK);
	put_u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, dev->index);
	put_u32(&m, ATTR_PINNED, handles);
	key = put(&m, ATTR_KEY | NLA_F_NESTED, NULL, 0);
	put(&m, ATTR_KEY_BLOCKS, &blocks, sizeof(blocks));
	key->nla_len = (char *)&m + m.h.nlmsg_len - (char *)key;
	return talk(&m, ignore, NULL);
}

static int set_aging(const struct device *dev, uint32_t seconds)
{
	struct msg m;

	msg_begin(&m, CMD_POOLS_SET, NLM_F_ACK);
	put_u32(&m, RDMA_NLDEV_ATTR_DEV_INDEX, dev->index);
	put_u32(&m, ATTR_AGING, seconds);
	return talk(&m, ignore, NULL);
}

static void show(const struct device *dev)
{
	struct pools all;
	unsigned int i;

	if (!get_pools(dev, &all))
		die("%s: no pools", dev->name);
	for (i = 0; i < all.num; i++)
		printf("dev %s blocks %llu waiting %llu in_use %llu max_in_use %llu pinned %llu\n",
		       dev->name, (unsigned long long)all.pool[i].blocks,
		       (unsigned long long)all.pool[i].handles,
		       (unsigned long long)all.pool[i].in_use,
		       (unsigned long long)all.pool[i].max_in_use,
		       (unsigned long long)all.pool[i].pinned);
}

/* Each change of what is pinned ages a pool at once, and twice is old enough. */
static void drain(const struct device *dev)
{
	double end = now() + 5;
	struct pools all;
	unsigned int i;
	bool waiting;

	do {
		waiting = false;
		if (!get_pools(dev, &all))
			return;
		for (i = 0; i < all.num; i++) {
			if (!all.pool[i].handles && !all.pool[i].pinned)
				continue;
			waiting = true;
			if (set_pinned(dev, all.pool[i].blocks, 0))
				die("%s: cannot drain", dev->name);
		}
		if (waiting)
			usleep(1000);
	} while (waiting && now() < end);
	if (waiting)
		die("%s: handles stay", dev->name);
}

/* --- regions ------------------------------------------------------------------------ */

static void regions(const char *name, size_t pages, unsigned int times, const char *how)
{
	unsigned int i, k, live = strcmp(how, "many") ? 1 : MANY;
	struct ibv_mr *mr[MANY];
	struct dev dev;
	uint8_t *buf[2];

	dev_open(&dev, name, 0);
	buf[0] = scattered(pages);
	buf[1] = scattered(pages);
	for (i = 0; i < times; i++) {
		for (k = 0; k < live; k++) {
			mr[k] = ibv_reg_mr(dev.pd, buf[!strcmp(how, "other") && i % 2], pages * PAGE,
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
			if (!mr[k])
				die("reg_mr: %m");
		}
		for (k = 0; k < live; k++)
			if (ibv_dereg_mr(mr[k]))
				die("dereg_mr: %m");
	}
	dev_close(&dev);
}

int main(int argc, char **argv)
{
	struct devices all = {};
	struct msg m;
	unsigned int i;
	int opt, err = 0;
	const char *what;

	while ((opt = getopt(argc, argv, "d:")) != -1) {
		if (opt != 'd')
			die("usage: see the source");
		all.only = optarg;
	}
	what = optind < argc ? argv[optind] : "show";
	if (!strcmp(what, "regions") && argc - optind == 4) {
		regions(all.only, atoi(argv[optind + 1]), atoi(argv[optind + 2]), argv[optind + 3]);
		return 0;
	}

	sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	/* Without the RDMA core nothing waits. */
	if (sock < 0 && !strcmp(what, "drain"))
		return 0;
	if (sock < 0)
		die("netlink: %m");
	msg_begin(&m, RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	if (talk(&m, add_device, &all) || (all.only && !all.num))
		die("no device");
	for (i = 0; i < all.num && !err; i++) {
		if (!strcmp(what, "show"))
			show(&all.dev[i]);
		else if (!strcmp(what, "drain"))
			drain(&all.dev[i]);
		else if (!strcmp(what, "age") && argc - optind == 2)
			err = set_aging(&all.dev[i], atoi(argv[optind + 1]));
		else if (!strcmp(what, "pin") && argc - optind == 3)
			err = set_pinned(&all.dev[i], strtoull(argv[optind + 1], NULL, 0),
					 atoi(argv[optind + 2]));
		else
			die("usage: see the source");
	}
	if (err)
		die("%s: %s", what, strerror(err));
	return 0;
}
