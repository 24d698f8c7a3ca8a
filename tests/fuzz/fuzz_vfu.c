// SPDX-License-Identifier: GPL-2.0
/*
 * What a hostile client can send: any bytes, in any pieces, with any
 * descriptors. The input is a list of pieces; a piece is a control byte, two
 * bytes of length and the data:
 *
 *   bits 0-2	descriptors that go with it
 *   bits 3-4	what they are: memory, event, memory that is cut soon, a pipe
 *   bit 5	the server runs before the next piece
 *   bit 6	the client connects anew before this piece
 *   bit 7	the data is a message's body: a header with the right size is
 *		put before it, and its first byte is the command
 *
 * After each input everything must be let go: descriptors and memory files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "digest.h"
#include "fake_core.h"
#include "fds.h"
#include "host/dma.h"
#include "host/proto.h"
#include "host/vfu.h"

#define CHECK(cond) do {							\
	if (!(cond)) {								\
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);	\
		abort();							\
	}									\
} while (0)

static struct vfu *vfu;
static struct skua_dev *dev;
static int sock = -1;
static int ram, cut, event, pipes[2];

static void setup(void)
{
	struct vfu_cfg cfg = { .epfd = -1 };
	struct skua_dev_cfg dcfg = { .msix_vectors = 16 };

	vfu = vfu_create(&cfg);
	CHECK(vfu);
	dev = skua_dev_create(&dcfg, &vfu_host_ops, vfu, NULL, NULL);
	CHECK(dev);
	vfu_set_dev(vfu, dev);
	ram = memfd_create("ram", MFD_CLOEXEC);
	cut = memfd_create("cut", MFD_CLOEXEC);
	event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(ram >= 0 && cut >= 0 && event >= 0 && !pipe(pipes));
	CHECK(!fcntl(pipes[0], F_SETFL, O_NONBLOCK));
}

static void hang_up(void)
{
	if (sock >= 0)
		close(sock);
	sock = -1;
	while (vfu_run(vfu))
		;
	/* A client that goes is noticed at once, whatever is unread or unsent. */
	for (int i = 0; vfu_connected(vfu) && i < 1000; i++)
		vfu_run(vfu);
	CHECK(!vfu_connected(vfu));
	CHECK(vfu_settle(vfu, 10000));
	CHECK(dmatab_files() == 0);
}

/* What clients share, and the device, are as just made. */
static void begin_anew(void)
{
	uint8_t buf[4096];
	uint64_t count;

	CHECK(!ftruncate(ram, 0) && !ftruncate(ram, 1 << 20));
	CHECK(!ftruncate(cut, 0) && !ftruncate(cut, 1 << 16));
	CHECK(read(event, &count, sizeof(count)) == sizeof(count) || errno == EAGAIN);
	while (read(pipes[0], buf, sizeof(buf)) > 0)
		;
	hang_up();
	fake_core_clear(dev);
}

static void dial(void)
{
	static const struct {
		struct vfu_hdr hdr;
		struct vfu_version version;
	} hello = { .hdr = { .cmd = VFU_VERSION, .size = sizeof(hello) } };
	int pair[2];

	hang_up();
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
	CHECK(!vfu_attach(vfu, pair[0]));
	sock = pair[1];
	CHECK(send(sock, &hello, sizeof(hello), 0) == sizeof(hello));
	vfu_run(vfu);
}

/* Replies are read, so that the server goes on; each must be well formed. */
static void drain(void)
{
	static uint8_t buf[VFU_MAX_MSG];
	struct vfu_hdr hdr;
	size_t left;
	ssize_t n;

	while (recv(sock, &hdr, sizeof(hdr), MSG_DONTWAIT) == sizeof(hdr)) {
		CHECK(hdr.size >= sizeof(hdr) && hdr.size <= VFU_MAX_MSG);
		CHECK((hdr.flags & VFU_F_TYPE_MASK) == VFU_F_TYPE_REPLY);
		CHECK(!(hdr.flags & VFU_F_ERROR) || (hdr.size == sizeof(hdr) && hdr.error));
		digest(&hdr, sizeof(hdr));
		for (left = hdr.size - sizeof(hdr); left; left -= n) {
			n = recv(sock, buf, left, MSG_DONTWAIT);
			if (n < 0 && errno == EAGAIN && vfu_connected(vfu)) {
				vfu_run(vfu);
				n = 0;
				continue;
			}
			if (n <= 0)
				return;
			digest(buf, n);
		}
	}
}

static void run(void)
{
	for (int i = 0; i < 100; i++) {
		bool more = vfu_run(vfu);

		drain();
		if (!more)
			break;
	}
}

static void send_piece(const void *buf, size_t len, unsigned int nfds, int fd)
{
	union fds_control control;
	int fds[8];
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	for (unsigned int i = 0; i < nfds; i++)
		fds[i] = fd;
	fds_attach(&mh, &control, fds, nfds);
	for (int i = 0; i < 10 && sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0; i++) {
		if (errno != EAGAIN)
			return;
		run();
	}
}

static void one_piece(uint8_t ctl, const uint8_t *data, size_t len)
{
	const int kinds[] = { ram, event, cut, pipes[1] };
	struct vfu_hdr hdr = { .id = 1 };
	uint8_t msg[sizeof(hdr) + 65536];

	if (ctl & 0x40 || !vfu_connected(vfu))
		dial();
	if (ctl & 0x80 && len) {
		hdr.cmd = data[0] & 0x1f;
		hdr.flags = data[0] & 0x20 ? VFU_F_NO_REPLY : 0;
		hdr.size = sizeof(hdr) + len - 1;
		memcpy(msg, &hdr, sizeof(hdr));
		memcpy(msg + sizeof(hdr), data + 1, len - 1);
		data = msg;
		len = hdr.size;
	}
	if (len)
		send_piece(data, len, ctl & 7, kinds[ctl >> 3 & 3]);
	if (ctl & 0x20)
		run();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool cut_done = false;
	size_t len;
	int probe;

	if (!vfu)
		setup();
	begin_anew();
	probe = dup(ram);
	close(probe);
	dial();
	while (size >= 3) {
		uint8_t ctl = data[0];

		len = data[1] | data[2] << 8;
		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		one_piece(ctl, data, len);
		data += len;
		size -= len;
		/* Half way through, one of the memory files loses most of what it had. */
		if (!cut_done && (ctl >> 3 & 3) == 2 && (ctl & 0x20)) {
			CHECK(!ftruncate(cut, 4096));
			cut_done = true;
		}
	}
	run();
	digest_num(dev->writes + dev->resets + dev->flrs + dev->ticks);
	hang_up();
	digest_end();
	/* The lowest free descriptor is the same as before: none was kept. */
	CHECK(dup2(ram, probe) == probe);
	close(probe);
	CHECK(dup(ram) == probe);
	close(probe);
	return 0;
}
