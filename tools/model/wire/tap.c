// SPDX-License-Identifier: GPL-2.0
/*
 * A TAP interface: the host's network stack, a bridge, other machines.
 *
 * No offloads are requested, so the kernel delivers whole frames with their checksums. Its
 * owner has to bring the interface up.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "priv.h"

static void tap_send(struct wire_port *port)
{
	unsigned int budget = WIRE_BUDGET;

	while (wire_queue_len(&port->q) && budget--) {
		struct wire_buf *buf = wire_queue_peek(&port->q, 0);
		ssize_t n = write(port->fd, buf->data, buf->len);

		if (n >= 0) {
			wire_port_idle(port);
			wire_sent(port);
		} else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
			wire_port_busy(port);
			return;
		} else if (errno != EINTR) {
			/* The interface is down, or the frame invalid: drop it. */
			wire_drop_head(port);
		}
	}
}

static void tap_receive(struct wire_port *port)
{
	struct wire *w = port->w;
	unsigned int budget = WIRE_BUDGET;

	while (budget--) {
		/* Read one byte more than the limit, to detect longer frames. */
		ssize_t n = read(port->fd, w->scratch, WIRE_FRAME_MAX + 1);

		if (n < 0)
			return;
		wire_ingress(port, w->scratch, (size_t)n, false);
	}
}

int wire_add_tap(struct wire *w, const char *name, char *err, size_t errlen)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	struct wire_port *port;

	if (strlen(name) >= sizeof(ifr.ifr_name))
		return wire_err(err, errlen, "tap: name \"%s\" is too long", name);
	port = wire_port_add(w, name, err, errlen);
	if (!port)
		return -1;
	port->send = tap_send;
	port->receive = tap_receive;
	port->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (port->fd < 0) {
		wire_err(err, errlen, "tap: /dev/net/tun: %s", strerror(errno));
		goto err_del;
	}
	strcpy(ifr.ifr_name, name);
	if (ioctl(port->fd, TUNSETIFF, &ifr)) {
		wire_err(err, errlen, "tap: %s: %s", name, strerror(errno));
		goto err_del;
	}
	return port->fd;

err_del:
	wire_port_del(port);
	return -1;
}
