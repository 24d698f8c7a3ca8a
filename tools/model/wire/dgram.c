// SPDX-License-Identifier: GPL-2.0
/*
 * A peer on a unix datagram socket, one datagram per frame: what QEMU's
 * `-netdev dgram,local.type=unix,remote.type=unix` speaks.
 *
 * Each datagram is sent with the peer's path as its address: a connected socket would not reach
 * a QEMU that was restarted. The kernel queues only a few datagrams at a receiver
 * (net.unix.max_dgram_qlen), so EAGAIN is normal: the frames then wait in the port's queue.
 */
#define _GNU_SOURCE	/* sendmmsg(), recvmmsg() */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../host/path.h"
#include "priv.h"

#define SEND_BUFFER	(4 << 20)

static void dgram_send(struct wire_port *port)
{
	struct mmsghdr msg[WIRE_BATCH];
	struct iovec iov[WIRE_BATCH];
	uint32_t n = wire_queue_len(&port->q), i;
	int sent;

	if (n > WIRE_BATCH)
		n = WIRE_BATCH;
	memset(msg, 0, n * sizeof(msg[0]));
	for (i = 0; i < n; i++) {
		struct wire_buf *buf = wire_queue_peek(&port->q, i);

		iov[i] = (struct iovec){ .iov_base = buf->data, .iov_len = buf->len };
		msg[i].msg_hdr.msg_name = &port->remote;
		msg[i].msg_hdr.msg_namelen = port->remote_len;
		msg[i].msg_hdr.msg_iov = &iov[i];
		msg[i].msg_hdr.msg_iovlen = 1;
	}
	sent = sendmmsg(port->fd, msg, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0) {
		wire_port_idle(port);
		while (sent--)
			wire_sent(port);
		return;
	}
	switch (errno) {
	case EINTR:
		return;
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		wire_port_busy(port);
		return;
	default:
		/* There is no peer, or it takes no frame of that length: drop the frame. */
		wire_drop_head(port);
		return;
	}
}

_Static_assert(1 + CLOSER_WAITING_MAX + WIRE_BATCH * CLOSER_MSG_FDS <= WIRE_LINK_FDS_MAX,
	       "a peer can have the port hold more file descriptors than were reserved");

/*
 * Datagrams should have no file descriptors attached. If one has, the descriptors are received
 * and closed by the port's helper thread: otherwise the kernel would close them in this thread,
 * which may take long. While too many of them wait to be closed, nothing is read; if closing
 * them does not end, nothing is read any more.
 */
static void dgram_receive(struct wire_port *port)
{
	struct wire *w = port->w;
	struct mmsghdr msg[WIRE_BATCH];
	struct iovec iov[WIRE_BATCH];
	unsigned int i;
	int n;

	switch (closer_state(port->closer)) {
	case CLOSER_ROOM:
		break;
	case CLOSER_BUSY:
		return;
	case CLOSER_STUCK:
		port->stopped = true;
		return;
	}
	memset(msg, 0, sizeof(msg));
	for (i = 0; i < WIRE_BATCH; i++) {
		iov[i].iov_base = w->scratch + (size_t)i * WIRE_FRAME_MAX;
		iov[i].iov_len = WIRE_FRAME_MAX;
		msg[i].msg_hdr.msg_iov = &iov[i];
		msg[i].msg_hdr.msg_iovlen = 1;
		msg[i].msg_hdr.msg_control = w->control[i].buf;
		msg[i].msg_hdr.msg_controllen = sizeof(w->control[i].buf);
	}
	n = recvmmsg(port->fd, msg, WIRE_BATCH, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
	for (i = 0; (int)i < n; i++) {
		port->stats.bad_fds += closer_msg(port->closer, &msg[i].msg_hdr);
		if (msg[i].msg_hdr.msg_flags & MSG_TRUNC)
			port->stats.drop_len++;
		else
			wire_ingress(port, iov[i].iov_base, msg[i].msg_len, false);
	}
}

static int set_address(struct sockaddr_un *sun, socklen_t *len, const char *path,
		       char *err, size_t errlen)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	if (!*path || strlen(path) >= sizeof(sun->sun_path))
		return wire_err(err, errlen, "dgram: path \"%s\" is empty or too long", path);
	strcpy(sun->sun_path, path);
	*len = sizeof(*sun);
	return 0;
}

int wire_add_dgram(struct wire *w, const char *local, const char *remote,
		   char *err, size_t errlen)
{
	struct wire_port *port;
	char name[WIRE_NAME_MAX];
	int buffer = SEND_BUFFER;

	snprintf(name, sizeof(name), "dgram%u", w->n_dgrams);
	port = wire_port_add(w, name, err, errlen);
	if (!port)
		return -1;
	port->send = dgram_send;
	port->receive = dgram_receive;
	if (set_address(&port->remote, &port->remote_len, remote, err, errlen))
		goto err_del;
	port->closer = closer_create();
	if (!port->closer) {
		wire_err(err, errlen, "dgram: helper thread: %s", strerror(errno));
		goto err_del;
	}
	port->fd = path_bind(local, SOCK_DGRAM);
	if (port->fd < 0) {
		wire_err(err, errlen, "dgram: %s: %s", local, strerror(-port->fd));
		goto err_del;
	}
	closer_refuse_fds(port->fd);
	/* Failure is harmless: with a smaller buffer sendmmsg() reports EAGAIN sooner. */
	if (setsockopt(port->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(port->fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	port->path = strdup(local);
	if (!port->path) {
		unlink(local);
		wire_err(err, errlen, "dgram: out of memory");
		goto err_del;
	}
	w->n_dgrams++;
	return port->fd;

err_del:
	wire_port_del(port);
	return -1;
}
