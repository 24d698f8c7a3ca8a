// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts: signalling of the event descriptors that clients pass.
 *
 * A client can make a write() to its event descriptor block: it shares the open file, and can
 * clear O_NONBLOCK and fill the counter at any time. So the descriptor is not written to.
 * Instead the kernel signals it at the completion of an asynchronous I/O request that names it
 * (io_submit(2), IOCB_FLAG_RESFD). That never blocks: a full counter stays full. The request is
 * a read of /dev/null, which completes before io_submit() returns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "closer.h"
#include "irq.h"

_Static_assert(SKUA_MSIX_VECTORS_MAX <= 64, "pending bits are one 64-bit word");

void irq_init(struct irqs *irqs, unsigned int num, struct closer *closer)
{
	irqs->closer = closer;
	irqs->num = num < SKUA_MSIX_VECTORS_MAX ? num : SKUA_MSIX_VECTORS_MAX;
	irqs->pending = 0;
	for (unsigned int i = 0; i < SKUA_MSIX_VECTORS_MAX; i++)
		irqs->fd[i] = -1;
}

/* A client can pass any file; signalling another one than an eventfd could block. */
static int is_eventfd(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], link[sizeof(want) + 1];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link));
	return n == sizeof(want) - 1 && !memcmp(link, want, n);
}

/* Number of requests after which their completions are discarded. */
#define AIO_BATCH	32

/* Shared by all functions of a thread. */
static _Thread_local struct {
	unsigned int users;
	aio_context_t ctx;
	int null;
	unsigned int done;
} aio;

int irq_open(void)
{
	int err;

	if (aio.users++)
		return aio.ctx ? 0 : -ENOSYS;
	aio.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (aio.null >= 0 && !syscall(SYS_io_setup, 2 * AIO_BATCH, &aio.ctx))
		return 0;
	err = -errno;
	if (aio.null >= 0)
		close(aio.null);
	aio.ctx = 0;
	return err;
}

void irq_close(void)
{
	if (--aio.users || !aio.ctx)
		return;
	syscall(SYS_io_destroy, aio.ctx);
	close(aio.null);
	aio.ctx = 0;
	aio.done = 0;
}

static void aio_reap(void)
{
	struct io_event events[AIO_BATCH];
	struct timespec now = { 0 };

	while (syscall(SYS_io_getevents, aio.ctx, 0, AIO_BATCH, events, &now) == AIO_BATCH)
		;
	aio.done = 0;
}

static bool aio_notify(int fd)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = aio.null,
		.aio_buf = (uintptr_t)&aio,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = fd,
	}, *list = &request;

	if (!aio.ctx)
		return false;
	if (aio.done++ == AIO_BATCH)
		aio_reap();
	return syscall(SYS_io_submit, aio.ctx, 1, &list) == 1;
}

/*
 * Without asynchronous I/O the descriptor is written to, if there is room in its counter.
 * If there is none, an interrupt is pending already. This does not help against a client
 * that fills the counter between poll() and write().
 */
static void notify(int fd)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	uint64_t one = 1;

	if (aio_notify(fd))
		return;
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
	/* The last close takes the locks of all epoll instances in which the client has it. */
	closer_fd(irqs->closer, irqs->fd[vector]);
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
