// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "irq.h"

_Static_assert(SKUA_MSIX_VECTORS_MAX <= 64, "pending bits are one 64-bit word");

void irq_init(struct irqs *irqs, unsigned int num)
{
	irqs->num = num < SKUA_MSIX_VECTORS_MAX ? num : SKUA_MSIX_VECTORS_MAX;
	irqs->pending = 0;
	for (unsigned int i = 0; i < SKUA_MSIX_VECTORS_MAX; i++)
		irqs->fd[i] = -1;
}

/*
 * Writing to a pipe, socket or terminal that the client passes instead could
 * block or do harm.
 */
static int is_eventfd(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], link[sizeof(want) + 1];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link));
	return n == sizeof(want) - 1 && !memcmp(link, want, n);
}

/*
 * A full counter is an interrupt already under way. The client shares the open file
 * and may have it block by now, whatever was set when it came: look first. That is
 * against mistakes only. A client that makes the file block and fills the counter
 * between the look and the write holds us up until somebody reads it.
 */
static void notify(int fd)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	uint64_t one = 1;

	while (poll(&room, 1, 0) < 0 && errno == EINTR)
		;
	if (room.revents & POLLOUT)
		while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
}

int irq_assign(struct irqs *irqs, unsigned int vector, int fd)
{
	int flags;

	if (vector >= irqs->num)
		return -EINVAL;
	if (fd >= 0) {
		if (!is_eventfd(fd))
			return -EINVAL;
		flags = fcntl(fd, F_GETFL);
		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
			return -errno;
	}
	if (irqs->fd[vector] >= 0)
		close(irqs->fd[vector]);
	irqs->fd[vector] = fd;
	if (fd >= 0 && (irqs->pending & 1ull << vector)) {
		irqs->pending &= ~(1ull << vector);
		notify(fd);
	}
	return 0;
}

void irq_raise(struct irqs *irqs, unsigned int vector)
{
	if (vector >= irqs->num)
		return;
	if (irqs->fd[vector] >= 0)
		notify(irqs->fd[vector]);
	else
		irqs->pending |= 1ull << vector;
}

void irq_disable(struct irqs *irqs)
{
	for (unsigned int i = 0; i < irqs->num; i++)
		irq_assign(irqs, i, -1);
}

void irq_reset(struct irqs *irqs)
{
	irqs->pending = 0;
}
