// SPDX-License-Identifier: GPL-2.0
/*
 * vfio-user server: sockets, the life of a connection, and the device core's
 * host operations. What the messages mean is in vfu_cmd.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "path.h"
#include "vfu_priv.h"

#define WARNINGS_MAX	32
/*
 * Number of descriptors waiting to be closed, refused connections included, from which on the
 * server does not accept connections.
 */
#define LISTEN_WAITING_MAX	1024

/*
 * The limit is the sum of: descriptors that wait to be closed, those of the last message before
 * that limit, connection and listener, those of the message being read and of the one being
 * handled, and event descriptors, of this client and of the one before.
 */
_Static_assert(LISTEN_WAITING_MAX + 1 + CLOSER_WAITING_MAX + CLOSER_MSG_FDS + 2 +
	       2 * TRAN_MAX_FDS + 2 * SKUA_MSIX_VECTORS_MAX <= VFU_FDS_MAX,
	       "a client can have the server hold more file descriptors than were reserved");

static void vlog(struct vfu *vfu, int level, const char *fmt, va_list ap)
{
	char msg[512];

	if (!vfu->cfg.log)
		return;
	vsnprintf(msg, sizeof(msg), fmt, ap);
	vfu->cfg.log(vfu->cfg.log_priv, level, msg);
}

void vfu_log(struct vfu *vfu, int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vlog(vfu, level, fmt, ap);
	va_end(ap);
}

void vfu_warn(struct vfu *vfu, const char *fmt, ...)
{
	va_list ap;

	if (vfu->warnings > WARNINGS_MAX)
		return;
	if (vfu->warnings++ == WARNINGS_MAX) {
		vfu_log(vfu, LOG_WARN, "%u warnings were logged for this client, no more will be", WARNINGS_MAX);
		return;
	}
	va_start(ap, fmt);
	vlog(vfu, LOG_WARN, fmt, ap);
	va_end(ap);
}

/* --- the bus --- */

static void bus_add(struct vfu *vfu)
{
	struct vfu_bus *bus = vfu->cfg.bus;

	if (!bus)
		return;
	vfu->next = bus->first;
	bus->first = vfu;
}

static void bus_remove(struct vfu *vfu)
{
	struct vfu **link = vfu->cfg.bus ? &vfu->cfg.bus->first : NULL;

	while (link && *link) {
		if (*link == vfu)
			*link = vfu->next;
		else
			link = &(*link)->next;
	}
}

/*
 * An address that the client has not mapped may be in the device memory of a function on the bus,
 * including the one that accesses it. A client with an IOMMU does not map the addresses of BARs
 * to anything else.
 */
static int bus_read(const struct vfu_bus *bus, uint64_t addr, void *buf, size_t len)
{
	for (struct vfu *v = bus ? bus->first : NULL; v; v = v->next)
		if (!skua_dev_peer_read(v->dev, addr, buf, len))
			return 0;
	return -EFAULT;
}

static int bus_write(const struct vfu_bus *bus, uint64_t addr, const void *buf, size_t len)
{
	for (struct vfu *v = bus ? bus->first : NULL; v; v = v->next)
		if (!skua_dev_peer_write(v->dev, addr, buf, len))
			return 0;
	return -EFAULT;
}

/* --- what the device core asks for --- */

static int op_dma_read(void *host, uint64_t iova, void *buf, size_t len)
{
	struct vfu *vfu = host;
	int err = dmatab_read(&vfu->dma, iova, buf, len);

	if (err)
		err = bus_read(vfu->cfg.bus, iova, buf, len);
	if (err)
		vfu_warn(vfu, "DMA read of %zu bytes at 0x%" PRIx64 ": not mapped", len, iova);
	return err;
}

static int op_dma_write(void *host, uint64_t iova, const void *buf, size_t len)
{
	struct vfu *vfu = host;
	int err = dmatab_write(&vfu->dma, iova, buf, len);

	if (err)
		err = bus_write(vfu->cfg.bus, iova, buf, len);
	if (err)
		vfu_warn(vfu, "DMA write of %zu bytes at 0x%" PRIx64 ": not mapped", len, iova);
	return err;
}

static void op_order(void *host)
{
	(void)host;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void op_msix(void *host, unsigned int vector)
{
	struct vfu *vfu = host;

	irq_raise(&vfu->irqs, vector);
}

static uint64_t op_now(void *host)
{
	struct timespec ts;

	(void)host;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void op_timer(void *host, uint64_t deadline)
{
	struct vfu *vfu = host;

	vfu->deadline = deadline;
}

static const void *op_dma_map(void *host, uint64_t iova, size_t len)
{
	return dmatab_ptr(&((struct vfu *)host)->dma, iova, len);
}

static uint64_t op_dma_broken(void *host)
{
	return dmatab_broken(&((struct vfu *)host)->dma);
}

void vfu_memory_moves(struct vfu *vfu)
{
	if (vfu->cfg.settle)
		vfu->cfg.settle(vfu->cfg.settle_priv);
}

const struct skua_host_ops vfu_host_ops = {
	.dma_read = op_dma_read,
	.dma_write = op_dma_write,
	.order = op_order,
	.msix = op_msix,
	.now = op_now,
	.timer = op_timer,
	.dma_map = op_dma_map,
	.dma_broken = op_dma_broken,
};

uint64_t vfu_deadline(const struct vfu *vfu)
{
	return vfu->deadline;
}

void vfu_tick(struct vfu *vfu, uint64_t now)
{
	if (now < vfu->deadline)
		return;
	vfu->deadline = SKUA_TIME_NEVER;
	skua_dev_tick(vfu->dev);
}

uint64_t vfu_messages(const struct vfu *vfu)
{
	return vfu->messages;
}

bool vfu_pending(const struct vfu *vfu)
{
	return vfu->pending;
}

bool vfu_connected(const struct vfu *vfu)
{
	return vfu->tran.fd >= 0;
}

/*
 * While a reply waits for room in the socket no further message is read, so that a client that
 * does not read its replies makes the server keep only one.
 */
static void poll_conn(struct vfu *vfu)
{
	struct epoll_event ev = {
		.events = tran_sending(&vfu->tran) ? EPOLLOUT : EPOLLIN,
		.data.ptr = &vfu->conn,
	};

	if (vfu->cfg.epfd < 0 || vfu->polled == ev.events)
		return;
	if (epoll_ctl(vfu->cfg.epfd, vfu->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, vfu->tran.fd,
		      &ev))
		vfu_log(vfu, LOG_ERROR, "epoll: %s", strerror(errno));
	else
		vfu->polled = ev.events;
}

/*
 * The client has disconnected, or is disconnected here. Its memory and event descriptors are
 * released first, so that the device cannot access them; then the device is reset.
 */
static void disconnect(struct vfu *vfu)
{
	if (vfu->polled)
		epoll_ctl(vfu->cfg.epfd, EPOLL_CTL_DEL, vfu->tran.fd, NULL);
	vfu->polled = 0;
	vfu->pending = false;
	if (vfu->unfinished)
		tran_msg_done(&vfu->tran, &vfu->msg);
	vfu->unfinished = false;
	tran_close(&vfu->tran);
	vfu_memory_moves(vfu);
	dmatab_unmap_all(&vfu->dma);
	irq_disable(&vfu->irqs);
	skua_dev_reset(vfu->dev, SKUA_RESET_POWER);
	irq_reset(&vfu->irqs);
}

int vfu_attach(struct vfu *vfu, int fd)
{
	int err;

	if (vfu_connected(vfu))
		return -EBUSY;
	if (closer_state(vfu->closer) == CLOSER_STUCK)
		return -EMFILE;
	err = tran_open(&vfu->tran, fd, vfu->closer);
	if (err)
		return err;
	vfu->negotiated = false;
	vfu->shared_maps = 0;
	vfu->private_maps = 0;
	vfu->warnings = 0;
	poll_conn(vfu);
	vfu_log(vfu, LOG_INFO, "client connected");
	return 0;
}

bool vfu_turn_over(const struct vfu *vfu)
{
	return vfu->turn_end && op_now(NULL) >= vfu->turn_end;
}

/*
 * Handle one message, or go on with an unfinished one. 1: done. 0: no message is there, or
 * its reply is not sent yet. Above 1: call again in the next turn. Negative errno: the
 * connection is over.
 */
static int handle_one(struct vfu *vfu)
{
	int ret;

	if (tran_sending(&vfu->tran)) {
		ret = tran_flush(&vfu->tran);
		if (ret <= 0)
			return ret;
	}
	if (!vfu->unfinished) {
		ret = tran_recv(&vfu->tran, &vfu->msg);
		if (ret != 1)
			return ret;
		vfu->messages++;
		vfu->done = 0;
	}
	ret = vfu_dispatch(vfu, &vfu->msg);
	vfu->unfinished = ret == VFU_UNFINISHED;
	if (vfu->unfinished)
		return ret;
	tran_msg_done(&vfu->tran, &vfu->msg);
	return ret < 0 ? ret : tran_flush(&vfu->tran);
}

bool vfu_run(struct vfu *vfu)
{
	int ret = 1;

	if (!vfu_connected(vfu))
		return false;
	vfu->turn_end = vfu->cfg.turn_ns ? op_now(NULL) + vfu->cfg.turn_ns : 0;
	for (unsigned int i = 0; i < VFU_TURN_MESSAGES && ret == 1; i++) {
		if (i && vfu_turn_over(vfu))
			break;
		ret = handle_one(vfu);
	}
	if (ret < 0) {
		if (ret == -EMFILE)
			vfu_log(vfu, LOG_WARN, "client disconnected: closing one of its file descriptors has not returned, and %u are waiting",
				closer_waiting(vfu->closer));
		else if (ret == -EPIPE || ret == -ECONNRESET)
			vfu_log(vfu, LOG_INFO, "client disconnected");
		else
			vfu_log(vfu, LOG_WARN, "client disconnected after an error: %s", strerror(-ret));
		disconnect(vfu);
		return false;
	}
	poll_conn(vfu);
	vfu->pending = ret > 0;
	return vfu->pending;
}

static void conn_ready(struct event_source *src, uint32_t events)
{
	struct vfu *vfu = (void *)((char *)src - offsetof(struct vfu, conn));

	(void)events;
	vfu_run(vfu);
}

static void listener_ready(struct event_source *src, uint32_t events)
{
	struct vfu *vfu = (void *)((char *)src - offsetof(struct vfu, listener));
	int fd = accept4(vfu->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int err;

	(void)events;
	if (fd < 0)
		return;
	err = vfu_attach(vfu, fd);
	if (err) {
		/* The client gets an error now. In the backlog it would wait for ever. */
		vfu_log(vfu, LOG_WARN, "client refused: %s",
			err == -EMFILE ? "file descriptors of the last client are still being closed" :
			strerror(-err));
		shutdown(fd, SHUT_RDWR);
		closer_fd(vfu->closer, fd);
		/* Each refused connection is another descriptor to be closed. */
		if (closer_waiting(vfu->closer) > LISTEN_WAITING_MAX) {
			vfu_log(vfu, LOG_ERROR, "no more connections are accepted: %u file descriptors of clients are waiting to be closed",
				closer_waiting(vfu->closer));
			epoll_ctl(vfu->cfg.epfd, EPOLL_CTL_DEL, vfu->listen_fd, NULL);
		}
	}
}

/* The socket has mode 0600: whoever can connect controls the device. */
static int listen_at(struct vfu *vfu, const char *path)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &vfu->listener };

	vfu->listen_fd = path_bind(path, SOCK_STREAM);
	if (vfu->listen_fd < 0)
		return vfu->listen_fd;
	vfu->cfg.path = strdup(path);
	if (!vfu->cfg.path) {
		unlink(path);
		return -ENOMEM;
	}
	if (listen(vfu->listen_fd, 1))
		return -errno;
	if (vfu->cfg.epfd >= 0 && epoll_ctl(vfu->cfg.epfd, EPOLL_CTL_ADD, vfu->listen_fd, &ev))
		return -errno;
	return 0;
}

struct vfu *vfu_create(const struct vfu_cfg *cfg)
{
	struct vfu *vfu = calloc(1, sizeof(*vfu));
	int err;

	if (!vfu)
		return NULL;
	vfu->cfg = *cfg;
	vfu->cfg.path = NULL;
	vfu->listener.ready = listener_ready;
	vfu->conn.ready = conn_ready;
	vfu->listen_fd = -1;
	vfu->tran.fd = -1;
	vfu->deadline = SKUA_TIME_NEVER;
	if (irq_open())
		vfu_log(vfu, LOG_WARN, "io_setup() failed: a malicious client can block the model through its event descriptors");
	vfu->closer = closer_create();
	irq_init(&vfu->irqs, 0, vfu->closer);
	err = vfu->closer ? 0 : -errno;
	dmatab_init(&vfu->dma, vfu->closer);
	if (!err && cfg->path)
		err = listen_at(vfu, cfg->path);
	if (!err)
		return vfu;
	vfu_destroy(vfu);
	errno = -err;
	return NULL;
}

bool vfu_settle(struct vfu *vfu, unsigned int ms)
{
	return closer_settle(vfu->closer, ms);
}

void vfu_set_dev(struct vfu *vfu, struct skua_dev *dev)
{
	vfu->dev = dev;
	irq_init(&vfu->irqs, skua_dev_msix_vectors(dev), vfu->closer);
	bus_add(vfu);
}

void vfu_shutdown(struct vfu *vfu)
{
	bus_remove(vfu);
	if (vfu_connected(vfu))
		disconnect(vfu);
	/* Closing it also closes connections not accepted yet, and descriptors sent over them. */
	closer_fd(vfu->closer, vfu->listen_fd);
	vfu->listen_fd = -1;
	if (vfu->cfg.path)
		unlink(vfu->cfg.path);
	free((char *)vfu->cfg.path);
	vfu->cfg.path = NULL;
}

void vfu_destroy(struct vfu *vfu)
{
	if (!vfu)
		return;
	vfu_shutdown(vfu);
	closer_destroy(vfu->closer);
	irq_close();
	free(vfu);
}
