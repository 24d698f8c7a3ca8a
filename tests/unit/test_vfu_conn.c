// SPDX-License-Identifier: GPL-2.0
/*
 * Connections to the vfio-user server: messages in whatever pieces they arrive, clients
 * that go, break the rules, do not read or flood, and the socket that they come by.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "vfu_client.h"
#include "host/event.h"

static unsigned int reads;

/* Libc's, counted. */
ssize_t recvmsg(int fd, struct msghdr *mh, int flags)
{
	reads++;
	return syscall(SYS_recvmsg, fd, mh, flags);
}

/* Doorbells come by one read, whether one or several: none looks for more in vain. */
static void test_one_read(void **state)
{
	(void)state;
	for (unsigned int num = 1; num <= 5; num++) {
		uint64_t before = vfu_messages(vfu);

		for (unsigned int i = 0; i < num; i++)
			post_write(SKUA_BAR_UAR, 0, i);
		reads = 0;
		run();
		assert_int_equal(vfu_messages(vfu) - before, num);
		assert_int_equal(reads, 1);
	}
	/* And what comes later is found. */
	reads = 0;
	run();
	assert_int_equal(reads, 1);
}

/* Several messages in one piece, each with its descriptor or none. */
static void test_fd_attribution(void **state)
{
	struct vfu_dma_map req = { .argsz = sizeof(req), .flags = RW, .size = PG };
	uint16_t ids[6];

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		req.iova = i * PG;
		req.offset = i % 2 ? i * PG : 0;
		req.flags = i % 2 ? RW : VFIO_DMA_MAP_FLAG_READ;
		ids[i] = post(VFU_DMA_MAP, 0, &req, sizeof(req), NULL, 0, &ram, i % 2);
	}
	run();
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(get_reply(ids[i], VFU_DMA_MAP, NULL, 0, NULL), 0);
	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(core_write(i * PG, i + 100), i % 2 ? 0 : -EFAULT);
		if (i % 2)
			assert_int_equal(guest64(i * PG), i + 100);
	}
}

/* The same stream, byte by byte: a message is whatever the header says it is. */
static void test_fragments(void **state)
{
	struct {
		struct vfu_hdr hdr;
		struct vfu_dma_map req;
	} msg = {
		.hdr = { .id = 7, .cmd = VFU_DMA_MAP, .size = sizeof(msg) },
		.req = { .argsz = sizeof(msg.req), .flags = RW, .size = PG },
	};
	const uint8_t *bytes = (const uint8_t *)&msg;

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		msg.req.iova = round * PG;
		msg.req.offset = round * PG;
		for (unsigned int i = 0; i < sizeof(msg); i++) {
			/* The descriptor comes with the first, a middle or the last byte. */
			send_raw(bytes + i, 1, &ram, i == round * (sizeof(msg) - 1) / 2);
			assert_true(no_reply());
			run();
		}
		assert_int_equal(get_reply(7, VFU_DMA_MAP, NULL, 0, NULL), 0);
		assert_int_equal(core_write(round * PG, round + 50), 0);
		assert_int_equal(guest64(round * PG), round + 50);
	}
}

/* The rest of a message that has a descriptor, and one more message that has one. */
static void test_fragment_and_next(void **state)
{
	struct {
		struct vfu_hdr hdr;
		struct vfu_dma_map req;
	} msg[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		msg[i].hdr = (struct vfu_hdr){
			.id = i, .cmd = VFU_DMA_MAP, .size = sizeof(msg[0]),
		};
		msg[i].req = (struct vfu_dma_map){
			.argsz = sizeof(msg[i].req), .flags = RW, .size = PG,
			.iova = i * PG, .offset = (i + 5) * PG,
		};
	}
	send_raw(msg, 30, &ram, 1);
	run();
	send_raw((uint8_t *)msg + 30, sizeof(msg[0]) - 30, NULL, 0);
	send_raw(&msg[1], sizeof(msg[1]), &ram, 1);
	run();
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(get_reply(i, VFU_DMA_MAP, NULL, 0, NULL), 0);
		assert_int_equal(core_write(i * PG, i + 70), 0);
		assert_int_equal(guest64((i + 5) * PG), i + 70);
	}
}

/* The client goes: memory and interrupts are let go, and the next finds a new device. */
static void test_reconnect(void **state)
{
	uint64_t val = 5;
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	(void)state;
	assert_int_equal(dma_map_msg(0, 16 * PG, 0, RW, ram), 0);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, &efd, 1), 0);
	assert_int_equal(reg_write(SKUA_BAR_UAR, 0, &val, 8), 0);
	assert_int_equal(vfu_attach(vfu, 0), -EBUSY);
	close(sock);
	run();
	assert_false(vfu_connected(vfu));
	assert_int_equal(dev->resets, 1);
	assert_int_equal(dmatab_files(), 0);

	connect_client();
	assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), EINVAL);
	negotiate();
	assert_int_equal(reg_read(SKUA_BAR_UAR, 0, &val, 8), 0);
	assert_int_equal(val, 0);
	assert_int_equal(core_write(0, 1), -EFAULT);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 0);
	run();
	assert_int_equal(fired(efd), 0);
	close(efd);
}

static void expect_closed(const void *buf, size_t len, const int *fds, unsigned int nfds)
{
	char c;

	send_raw(buf, len, fds, nfds);
	run();
	assert_false(vfu_connected(vfu));
	assert_true(recv(sock, &c, 1, MSG_DONTWAIT) <= 0);
	close(sock);
	connect_client();
	negotiate();
}

static void test_malformed(void **state)
{
	struct vfu_hdr hdr = { .id = 1, .cmd = VFU_GET_INFO, .size = sizeof(hdr) };
	int fds[40];

	(void)state;
	for (unsigned int i = 0; i < 40; i++)
		fds[i] = ram;
	/* A size that is too small, or too large to be true: no way to find the next message. */
	hdr.size = 15;
	expect_closed(&hdr, sizeof(hdr), NULL, 0);
	hdr.size = 0;
	expect_closed(&hdr, sizeof(hdr), fds, 3);
	hdr.size = VFU_MAX_MSG + 1;
	expect_closed(&hdr, sizeof(hdr), NULL, 0);
	hdr.size = UINT32_MAX;
	expect_closed(&hdr, sizeof(hdr), NULL, 0);
	/* A reply to a question that was never asked. */
	hdr.size = sizeof(hdr);
	hdr.flags = VFU_F_TYPE_REPLY;
	expect_closed(&hdr, sizeof(hdr), NULL, 0);
	hdr.flags = 7;
	expect_closed(&hdr, sizeof(hdr), NULL, 0);
	hdr.flags = 0;
	/* More descriptors than announced, in one message or in the pieces of one. */
	expect_closed(&hdr, sizeof(hdr), fds, 17);
	expect_closed(&hdr, sizeof(hdr), fds, 40);
	send_raw(&hdr, 8, fds, 10);
	run();
	expect_closed((uint8_t *)&hdr + 8, 7, fds, 10);
	/* The end in the middle of a message that has descriptors. */
	send_raw(&hdr, 8, fds, 10);
	run();
	close(sock);
	run();
	assert_false(vfu_connected(vfu));
	connect_client();
	negotiate();
}

static void test_refused(void **state)
{
	static const uint16_t unknown[] = { 0, VFU_GET_REGION_IO_FDS, VFU_DMA_READ, VFU_DMA_WRITE,
					    14, VFU_DEVICE_FEATURE, VFU_MIG_DATA_READ,
					    VFU_MIG_DATA_WRITE, 19, 0x16, 0xffff };
	static const struct {
		uint16_t cmd;
		uint16_t fixed;
	} sized[] = {
		{ VFU_DMA_MAP, 32 }, { VFU_DMA_UNMAP, 24 }, { VFU_GET_INFO, 16 },
		{ VFU_GET_REGION_INFO, 32 }, { VFU_GET_IRQ_INFO, 16 }, { VFU_SET_IRQS, 20 },
		{ VFU_REGION_READ, 16 }, { VFU_REGION_WRITE, 16 }, { VFU_REGION_WRITE_MULTI, 8 },
	};
	uint8_t buf[64];
	int fds[16];

	(void)state;
	memset(buf, 0xff, sizeof(buf));
	for (unsigned int i = 0; i < 16; i++)
		fds[i] = ram;
	for (unsigned int i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(ask_fds(unknown[i], buf, 32, NULL, 0, NULL, 0, NULL, fds, i),
				 EOPNOTSUPP);
	/* Every length below the fixed part, and garbage in all of it. */
	for (unsigned int i = 0; i < sizeof(sized) / sizeof(sized[0]); i++) {
		/* Garbage behind the size is no error where nothing else is asked. */
		unsigned int end = sized[i].fixed + (sized[i].cmd != VFU_GET_INFO);

		for (unsigned int len = 0; len < end; len++)
			assert_int_equal(ask_fds(sized[i].cmd, buf, len, NULL, 0, NULL, 0, NULL,
						 fds, len % 17), EINVAL);
	}
	/* A write that claims more data than it has. */
	{
		struct vfu_region_rw rw = { .region = SKUA_BAR_UAR, .count = 48 };

		assert_int_equal(ask_fds(VFU_REGION_WRITE, &rw, sizeof(rw), buf, 47, NULL, 0,
					 NULL, NULL, 0), EINVAL);
		assert_int_equal(dev->writes, 0);
	}
	/* All that did not fill the log. */
	assert_true(log_lines < 50);
	assert_true(vfu_connected(vfu));
}

/* A client that does not read its replies is no longer read from; nothing is lost. */
static void test_backpressure(void **state)
{
	struct vfu_region_rw rw = { .region = SKUA_BAR_UAR, .count = 1 << 20 };
	uint8_t *big = malloc(sizeof(rw) + rw.count);
	uint16_t ids[8];
	size_t len;
	int sent;

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		ids[i] = post(VFU_REGION_READ, 0, &rw, sizeof(rw), NULL, 0, NULL, 0);
	run();
	/* The socket has room for more: a client that always reads must not make a turn long. */
	assert_int_equal(ioctl(sock, FIONREAD, &sent), 0);
	assert_int_equal(sent, 64 << 10);
	assert_int_equal(vfu_messages(vfu), 2);
	for (unsigned int i = 0; i < 8; i++) {
		run();
		assert_int_equal(get_reply(ids[i], VFU_REGION_READ, big, sizeof(rw) + rw.count,
					   &len), 0);
		assert_int_equal(len, sizeof(rw) + rw.count);
		assert_int_equal(big[sizeof(rw) + 0x1234], 0x34);
		assert_int_equal(big[sizeof(rw) + rw.count - 1], 0xff);
	}
	rw.count++;
	assert_int_equal(ask(VFU_REGION_READ, &rw, sizeof(rw), NULL, 0), EINVAL);
	free(big);
}

/* A flood: one turn handles a bounded number, and says that there is more. */
static void test_fair(void **state)
{
	uint64_t before = vfu_messages(vfu), per_turn;

	(void)state;
	for (unsigned int i = 0; i < 200; i++)
		post_write(SKUA_BAR_UAR, 0, i);
	assert_true(vfu_run(vfu));
	assert_true(vfu_pending(vfu));
	per_turn = vfu_messages(vfu) - before;
	assert_in_range(per_turn, 1, 128);
	run();
	assert_false(vfu_pending(vfu));
	assert_int_equal(dev->writes, 200);
}

static void pump(int epfd)
{
	struct epoll_event ev[8];
	int n;

	while ((n = epoll_wait(epfd, ev, 8, 0)) > 0) {
		for (int i = 0; i < n; i++) {
			struct event_source *src = ev[i].data.ptr;

			src->ready(src, ev[i].events);
		}
	}
	assert_int_equal(n, 0);
}

static int client(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -errno;
	}
	return fd;
}

static void test_socket(void **state)
{
	char dir[] = "/tmp/test_vfu.XXXXXX", path[64], c;
	struct vfu_cfg cfg = { .path = path, .log = on_log };
	struct skua_dev_cfg dcfg = { 0 };
	struct vfu *srv, *second;
	struct skua_dev *core;
	struct vfu_hdr hdr = { .id = 3, .cmd = 99, .size = sizeof(hdr) };
	struct stat st;
	unsigned int before = open_fds();
	int fd, other;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/nic", dir);
	cfg.epfd = epoll_create1(EPOLL_CLOEXEC);
	srv = vfu_create(&cfg);
	assert_non_null(srv);
	core = skua_dev_create(&dcfg, &vfu_host_ops, srv, NULL, NULL);
	vfu_set_dev(srv, core);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);

	/* In use: a second server fails and does the first no harm. */
	second = vfu_create(&cfg);
	assert_null(second);
	assert_int_equal(errno, EADDRINUSE);
	pump(cfg.epfd);

	fd = client(path);
	assert_true(fd >= 0);
	pump(cfg.epfd);
	assert_true(vfu_connected(srv));
	other = client(path);
	pump(cfg.epfd);
	assert_int_equal(recv(other, &c, 1, MSG_DONTWAIT), 0);
	close(other);
	assert_int_equal(write(fd, &hdr, sizeof(hdr)), sizeof(hdr));
	pump(cfg.epfd);
	assert_int_equal(recv(fd, &hdr, sizeof(hdr), MSG_DONTWAIT), sizeof(hdr));
	assert_int_equal(hdr.error, EOPNOTSUPP);
	close(fd);
	pump(cfg.epfd);
	assert_false(vfu_connected(srv));
	assert_true(core->resets >= 1);
	fd = client(path);
	pump(cfg.epfd);
	assert_true(vfu_connected(srv));

	vfu_shutdown(srv);
	assert_true(vfu_settle(srv, SETTLE_MS));
	skua_dev_destroy(core);
	vfu_destroy(srv);
	close(fd);
	assert_int_equal(lstat(path, &st), -1);

	/* A file that is no socket is not ours to remove. */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_null(vfu_create(&cfg));
	assert_int_equal(errno, EEXIST);
	close(fd);
	unlink(path);
	rmdir(dir);
	close(cfg.epfd);
	assert_int_equal(open_fds(), before);
}

/* What a server that was killed leaves behind does not stop the next. */
static void test_stale_socket(void **state)
{
	char dir[] = "/tmp/test_vfu.XXXXXX", path[64];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct vfu_cfg cfg = { .path = path, .epfd = -1 };
	struct vfu *srv;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/nic", dir);
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	srv = vfu_create(&cfg);
	assert_non_null(srv);
	vfu_destroy(srv);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_one_read), T(test_fd_attribution), T(test_fragments),
		T(test_fragment_and_next), T(test_reconnect), T(test_malformed), T(test_refused),
		T(test_backpressure), T(test_fair), cmocka_unit_test(test_socket),
		cmocka_unit_test(test_stale_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
