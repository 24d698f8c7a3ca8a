// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/skua-abi.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

void die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* --- cases ---------------------------------------------------------------- */

char why[512];

static bool skipped;
static unsigned int num_cases, num_failed;

bool fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return false;
}

bool skip(const char *text)
{
	skipped = true;
	return fail("%s", text);
}

static const char *err_name(int err)
{
	return err ? strerrorname_np(err) : "success";
}

bool expect_err(const char *what, int got, int want)
{
	if (got == want)
		return true;
	return fail("%s: %s (%d), should be %s", what, err_name(got), got, err_name(want));
}

void tap_case(const char *name, bool ok)
{
	num_cases++;
	if (ok) {
		printf("ok %u - %s\n", num_cases, name);
	} else if (skipped) {
		printf("ok %u - %s # SKIP %s\n", num_cases, name, why);
	} else {
		num_failed++;
		printf("not ok %u - %s\n# %s\n", num_cases, name, why);
	}
	fflush(stdout);
	why[0] = 0;
	skipped = false;
}

unsigned int tap_cases(void)
{
	return num_cases;
}

int tap_end(void)
{
	printf("1..%u\n", num_cases);
	return num_failed > 0;
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void sort_values(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), by_value);
}

/* --- devices and QPs ------------------------------------------------------ */

const struct link_attr link_default = {
	.mtu = IBV_MTU_1024,
	.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	.rnr_retry = 7,
	.retry_cnt = 7,
	.timeout = 14,
	.rd_atomic = 4,
};

void dev_open(struct dev *dev, const char *name, int gid_index)
{
	struct ibv_device **list;
	int n, i;

	memset(dev, 0, sizeof(*dev));
	list = ibv_get_device_list(&n);
	if (!list)
		die("no list of devices: %m");
	for (i = 0; i < n; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (i == n)
		die("no device %s", name ? name : "at all");
	dev->ctx = ibv_open_device(list[i]);
	if (!dev->ctx)
		die("%s: cannot open: %m", ibv_get_device_name(list[i]));
	ibv_free_device_list(list);

	if (ibv_query_device(dev->ctx, &dev->attr) || ibv_query_port(dev->ctx, 1, &dev->port))
		die("cannot query the device: %m");
	dev->gid_index = gid_index;
	if (ibv_query_gid(dev->ctx, 1, gid_index, &dev->gid))
		die("no GID %d: %m", gid_index);
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd)
		die("alloc_pd: %m");
}

void dev_close(struct dev *dev)
{
	if (ibv_dealloc_pd(dev->pd))
		die("dealloc_pd: objects left");
	if (ibv_close_device(dev->ctx))
		die("close_device: %m");
}

struct addr qp_addr(const struct dev *dev, const struct ibv_qp *qp, uint32_t psn)
{
	struct addr a = { .qpn = qp->qp_num, .psn = psn };

	memcpy(a.gid, dev->gid.raw, sizeof(a.gid));
	return a;
}

int qp_to_init(struct ibv_qp *qp, const struct link_attr *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = l->access,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS);
}

int qp_to_rtr(const struct dev *dev, struct ibv_qp *qp, const struct addr *peer,
	      const struct link_attr *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = l->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = l->rd_atomic,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.grh = { .sgid_index = dev->gid_index, .hop_limit = 64 },
			.port_num = 1,
		},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int qp_to_rts(struct ibv_qp *qp, uint32_t psn, const struct link_attr *l)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = l->timeout,
		.retry_cnt = l->retry_cnt,
		.rnr_retry = l->rnr_retry,
		.max_rd_atomic = l->rd_atomic,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					IBV_QP_MAX_QP_RD_ATOMIC);
}

void qp_connect(const struct dev *dev, struct ibv_qp *qp, uint32_t psn, const struct addr *peer,
		const struct link_attr *l)
{
	int err;

	err = qp_to_init(qp, l);
	if (err)
		die("QP to INIT: %s", strerror(err));
	err = qp_to_rtr(dev, qp, peer, l);
	if (err)
		die("QP to RTR (mtu %u): %s", mtu_bytes(l->mtu), strerror(err));
	err = qp_to_rts(qp, psn, l);
	if (err)
		die("QP to RTS: %s", strerror(err));
}

unsigned int mtu_bytes(enum ibv_mtu mtu)
{
	return 128U << mtu;
}

uint8_t *scattered(size_t pages)
{
	uint8_t *p = mmap(NULL, 2 * pages * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	if (p == MAP_FAILED)
		die("mmap: %m");
	madvise(p, 2 * pages * PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < pages; i++) {
		p[i * PAGE] = 1;
		p[(2 * pages - 1 - i) * PAGE] = 1;
	}
	return p;
}

int uverbs_call(struct ibv_context *ctx, struct uverbs_call *c, uint16_t object, uint16_t method)
{
	unsigned int num = c->num ? c->num : 2;

	c->hdr = (struct ib_uverbs_ioctl_hdr) {
		.length = sizeof(c->hdr) + num * sizeof(c->attr[0]),
		.object_id = object, .method_id = method, .num_attrs = num,
	};
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, c) ? errno : 0;
}

int qp_by_desc(const struct dev *dev, uint32_t cq, const struct ib_uverbs_qp_cap *cap,
	       const struct skua_create_qp_req *req, uint16_t attr, const struct buffer_desc *desc,
	       uint32_t *handle)
{
	static uint8_t dbr[64] __attribute__((aligned(64)));
	struct skua_create_qp_req in = *req;
	struct skua_create_qp_resp resp;
	struct ib_uverbs_qp_cap got;
	uint32_t num;
	struct uverbs_call c = { .num = 12, .attr = {
		ATTR(UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0),
		ATTR(UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, dev->pd->handle),
		ATTR(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, cq),
		ATTR(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, cq),
		ATTR(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 4711),
		ATTR(UVERBS_ATTR_CREATE_QP_CAP, sizeof(*cap), cap),
		ATTR(UVERBS_ATTR_CREATE_QP_TYPE, 8, IBV_QPT_RC),
		ATTR(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(got), &got),
		ATTR(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, &num),
		ATTR(UVERBS_ATTR_UHW_IN, sizeof(in), &in),
		ATTR(UVERBS_ATTR_UHW_OUT, sizeof(resp), &resp),
		ATTR(attr, sizeof(*desc), desc),
	} };
	int err;

	in.dbr_addr = (uintptr_t)dbr;
	err = uverbs_call(dev->ctx, &c, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	*handle = c.attr[0].data;
	return err;
}

/* --- dma-bufs ----------------------------------------------------------------- */

int dmabuf_memfd(uint8_t **p, size_t len)
{
	struct udmabuf_create create = { .size = len };
	int dev = open("/dev/udmabuf", O_RDWR), fd;

	if (dev < 0)
		return -1;
	create.memfd = memfd_create("skua", MFD_ALLOW_SEALING);
	if (create.memfd == (__u32)-1 || ftruncate(create.memfd, len) ||
	    fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd: %m");
	*p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, create.memfd, 0);
	if (*p == MAP_FAILED)
		die("mmap: %m");
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	if (fd < 0)
		die("udmabuf: %m");
	close(create.memfd);
	close(dev);
	return fd;
}

uint64_t dm_offset(struct ibv_dm *dm)
{
	struct skua_dm_resp resp;
	struct uverbs_call c = { .attr = {
		{ .attr_id = SKUA_ATTR_DM_QUERY_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY,
		  .data = dm->handle },
		{ .attr_id = SKUA_ATTR_DM_QUERY_RESP, .flags = UVERBS_ATTR_F_MANDATORY,
		  .len = sizeof(resp), .data = (uintptr_t)&resp },
	} };
	int err = uverbs_call(dm->context, &c, UVERBS_OBJECT_DM, SKUA_METHOD_DM_QUERY);

	if (err)
		die("DM_QUERY: %s", strerror(err));
	return resp.offset;
}

/* Of kernel 7.2: newer than the headers of libibverbs here. */
enum { OBJECT_DMABUF = UVERBS_OBJECT_ASYNC_EVENT + 2 };
enum { METHOD_DMABUF_ALLOC };
enum { ATTR_ALLOC_DMABUF_HANDLE, ATTR_ALLOC_DMABUF_PGOFF };

int dmabuf_export(struct ibv_context *ctx, uint64_t offset)
{
	struct uverbs_call c = { .attr = {
		{ .attr_id = ATTR_ALLOC_DMABUF_HANDLE, .flags = UVERBS_ATTR_F_MANDATORY },
		{ .attr_id = ATTR_ALLOC_DMABUF_PGOFF, .flags = UVERBS_ATTR_F_MANDATORY,
		  .len = sizeof(offset), .data = offset },
	} };

	errno = uverbs_call(ctx, &c, OBJECT_DMABUF, METHOD_DMABUF_ALLOC);
	return errno ? -1 : (int)c.attr[0].data;
}

/* --- waiting ---------------------------------------------------------------- */

bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	double end = 0;
	unsigned int spins = 0;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc))) {
		/* Processors are few and emulated: let others run. */
		if (++spins % 64 == 0)
			usleep(spins < 6400 ? 1 : 100);
		if (spins % 1024)
			continue;
		if (!end)
			end = now() + seconds;
		else if (now() > end)
			return false;
	}
	if (n < 0)
		die("poll_cq: error %d", n);
	return true;
}

bool wait_one(struct ibv_comp_channel *ch, struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };
	struct ibv_cq *ev_cq;
	void *ev_ctx;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			break;
		if (ibv_req_notify_cq(cq, 0))
			die("req_notify_cq: %m");
		/* What came before the arm has no event of its own. */
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			break;
		if (poll(&pfd, 1, seconds * 1000) <= 0)
			return false;
		if (ibv_get_cq_event(ch, &ev_cq, &ev_ctx))
			die("get_cq_event: %m");
		/* Of an earlier arm, maybe on another CQ of the channel. */
		ibv_ack_cq_events(ev_cq, 1);
	}
	if (n < 0)
		die("poll_cq: error %d", n);
	return true;
}

/* --- another process beside this one ------------------------------------------ */

bool beside_start(struct beside *b)
{
	if (pipe(b->ready) || pipe(b->hold))
		die("pipe: %m");
	b->pid = fork();
	if (b->pid < 0)
		die("fork: %m");
	/* Each keeps its own ends: the other sees it when this one ends. */
	close(b->pid ? b->ready[1] : b->ready[0]);
	close(b->pid ? b->hold[0] : b->hold[1]);
	return !b->pid;
}

bool beside_stay(struct beside *b)
{
	char byte = 0;

	return write(b->ready[1], &byte, 1) == 1 && !read(b->hold[0], &byte, 1);
}

bool beside_ready(struct beside *b)
{
	char byte;

	return read(b->ready[0], &byte, 1) == 1;
}

void beside_end(struct beside *b)
{
	close(b->ready[0]);
	close(b->hold[1]);
}

/* --- beside: TCP ------------------------------------------------------------ */

int tcp_listen(int port)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd, on = 1, off = 0;

	fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd < 0)
		die("socket: %m");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 8))
		die("listen on port %d: %m", port);
	return fd;
}

int tcp_accept(int fd)
{
	int c = accept(fd, NULL, NULL), on = 1;

	if (c < 0)
		die("accept: %m");
	setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return c;
}

int tcp_connect(const char *host, int port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *res, *ai;
	char service[16];
	int fd = -1, on = 1, tries, err;

	snprintf(service, sizeof(service), "%d", port);
	err = getaddrinfo(host, service, &hints, &res);
	if (err)
		die("%s: %s", host, gai_strerror(err));
	/* The server may still be starting. */
	for (tries = 0; tries < 100 && fd < 0; tries++) {
		for (ai = res; ai; ai = ai->ai_next) {
			fd = socket(ai->ai_family, ai->ai_socktype, ai->ai_protocol);
			if (fd >= 0 && !connect(fd, ai->ai_addr, ai->ai_addrlen))
				break;
			if (fd >= 0)
				close(fd);
			fd = -1;
		}
		if (fd < 0)
			usleep(100000);
	}
	freeaddrinfo(res);
	if (fd < 0)
		die("cannot connect to %s port %d: %m", host, port);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

void tcp_send(int fd, const void *buf, size_t len)
{
	while (len) {
		ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

		if (n <= 0)
			die("the other side is gone (sending): %m");
		buf = (const char *)buf + n;
		len -= n;
	}
}

void tcp_recv(int fd, void *buf, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, buf, len, 0);

		if (n < 0)
			die("the other side is gone: %m");
		if (!n)
			die("the other side ended");
		buf = (char *)buf + n;
		len -= n;
	}
}

char tcp_meet(int fd, char say)
{
	tcp_send(fd, &say, 1);
	tcp_recv(fd, &say, 1);
	return say;
}

char tcp_peek(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1 ? c : 0;
}

void tcp_sync(int fd)
{
	if (tcp_meet(fd, 's') != 's')
		die("out of step with the other side");
}
