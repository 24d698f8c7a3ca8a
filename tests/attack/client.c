// SPDX-License-Identifier: GPL-2.0
/*
 * A client of a NIC of the model, by hand: messages of vfio-user.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <linux/pci_regs.h>

#include "../unit/fds.h"
#include "attack.h"

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (model > 0)
		kill(model, SIGKILL);
	if (echo > 0)
		kill(echo, SIGKILL);
	exit(2);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

bool dial(struct conn *c, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = BLOCKED_S };

	strcpy(addr.sun_path, path);
	c->id = 0;
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)))
		return true;
	close(c->fd);
	c->fd = -1;
	return false;
}

bool put(struct conn *c, uint16_t cmd, uint32_t flags, const void *a, size_t alen,
		const void *b, size_t blen, const int *fds, unsigned int nfds)
{
	struct vfu_hdr hdr = {
		.id = c->id++, .cmd = cmd, .size = sizeof(hdr) + alen + blen, .flags = flags,
	};
	union fds_control control;
	size_t len = hdr.size, done = 0;
	uint8_t *buf = malloc(len);
	struct iovec iov;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = 0;

	memcpy(buf, &hdr, sizeof(hdr));
	if (alen)
		memcpy(buf + sizeof(hdr), a, alen);
	if (blen)
		memcpy(buf + sizeof(hdr) + alen, b, blen);
	fds_attach(&mh, &control, fds, nfds);
	while (done < len) {
		iov = (struct iovec){ .iov_base = buf + done, .iov_len = len - done };
		n = TEMP_FAILURE_RETRY(sendmsg(c->fd, &mh, MSG_NOSIGNAL));
		if (n <= 0)
			break;
		done += n;
		mh.msg_control = NULL;
		mh.msg_controllen = 0;
	}
	free(buf);
	acts++;
	return done == len;
}

/* All @len bytes. The kernel may end a call with a timeout early, with EINTR or some bytes. */
static bool receive(int fd, void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = TEMP_FAILURE_RETRY(recv(fd, buf + done, len - done, 0));

		if (n <= 0)
			return false;
		done += n;
	}
	return true;
}

/* The errno of the reply, 0, or -1 if there is none. */
int get(struct conn *c)
{
	static _Thread_local uint8_t junk[1 << 16];
	struct vfu_hdr hdr;

	if (!receive(c->fd, &hdr, sizeof(hdr)))
		return -1;
	if (hdr.flags & VFU_F_ERROR)
		return hdr.error;
	for (size_t left = hdr.size - sizeof(hdr), want; left; left -= want) {
		want = left < sizeof(junk) ? left : sizeof(junk);
		if (!receive(c->fd, junk, want))
			return -1;
	}
	return 0;
}

int ask(struct conn *c, uint16_t cmd, const void *a, size_t alen, const void *b,
	       size_t blen, const int *fds, unsigned int nfds)
{
	return put(c, cmd, 0, a, alen, b, blen, fds, nfds) ? get(c) : -1;
}

bool hello(struct conn *c, const char *path)
{
	struct vfu_version v = { 0, 1 };
	uint16_t command = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	struct vfu_region_rw rw = { .offset = PCI_COMMAND, .count = sizeof(command),
				    .region = VFIO_PCI_CONFIG_REGION_INDEX };

	if (!dial(c, path))
		return false;
	if (!ask(c, VFU_VERSION, &v, sizeof(v), NULL, 0, NULL, 0) &&
	    !ask(c, VFU_REGION_WRITE, &rw, sizeof(rw), &command, sizeof(command), NULL, 0))
		return true;
	close(c->fd);
	return false;
}

void hello_again(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	while (!stop && !hello(c, nic[0]))
		usleep(1000);
}

int map(struct conn *c, uint64_t iova, uint64_t size, int fd)
{
	struct vfu_dma_map req = {
		.argsz = sizeof(req), .flags = RW, .iova = iova, .size = size,
	};

	return ask(c, VFU_DMA_MAP, &req, sizeof(req), NULL, 0, &fd, 1);
}

int unmap(struct conn *c, uint64_t iova, uint64_t size, uint32_t flags)
{
	struct vfu_dma_unmap req = {
		.argsz = sizeof(req), .flags = flags, .iova = iova, .size = size,
	};

	return ask(c, VFU_DMA_UNMAP, &req, sizeof(req), NULL, 0, NULL, 0);
}

int memory(uint64_t size)
{
	int fd = memfd_create("attack", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, size))
		die("no memory file of %llu bytes", (unsigned long long)size);
	return fd;
}
