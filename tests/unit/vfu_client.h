/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client of the vfio-user server: our own, at the other end of a socket pair, with
 * memory of a guest, and a device core that can be seen through behind the server.
 */
#ifndef SKUA_TEST_VFU_CLIENT_H
#define SKUA_TEST_VFU_CLIENT_H

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_core.h"
#include "fds.h"
#include "host/dma.h"
#include "host/proto.h"
#include "host/vfu.h"

#define PG		DMA_PAGE_SIZE
#define VECTORS		20
#define RAM_PAGES	256
/* Until the server's helper has closed what can be closed: far more than it takes. */
#define SETTLE_MS	20000

static struct vfu *vfu;
static struct vfu_bus bus;
static struct skua_dev *dev;
static int sock;
static int ram;
static uint8_t *guest;
static uint16_t next_id;
static unsigned int log_lines;
static char last_log[512];
static unsigned int fds_before;

static inline void on_log(void *priv, int level, const char *msg)
{
	(void)priv;
	(void)level;
	log_lines++;
	snprintf(last_log, sizeof(last_log), "%s", msg);
}

static inline unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline void run(void)
{
	while (vfu_run(vfu))
		;
}

static inline void connect_client(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vfu_attach(vfu, pair[0]), 0);
	sock = pair[1];
}

static inline void send_raw(const void *buf, size_t len, const int *fds, unsigned int nfds)
{
	union fds_control control;
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	fds_attach(&mh, &control, fds, nfds);
	/* Full: the server has to take some first. */
	while (sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len) {
		assert_int_equal(errno, EAGAIN);
		run();
	}
}

/* Header, fixed part and data as one message; the id it was given. */
static inline uint16_t post(uint16_t cmd, uint32_t flags, const void *a, size_t alen,
			    const void *b, size_t blen, const int *fds, unsigned int nfds)
{
	struct vfu_hdr hdr = {
		.id = next_id++,
		.cmd = cmd,
		.size = sizeof(hdr) + alen + blen,
		.flags = flags,
	};
	uint8_t *buf = malloc(hdr.size);

	memcpy(buf, &hdr, sizeof(hdr));
	if (alen)
		memcpy(buf + sizeof(hdr), a, alen);
	if (blen)
		memcpy(buf + sizeof(hdr) + alen, b, blen);
	send_raw(buf, hdr.size, fds, nfds);
	free(buf);
	return hdr.id;
}

/* The reply: 0 with at most @max bytes of payload in @rep, or the errno. */
static inline int get_reply(uint16_t id, uint16_t cmd, void *rep, size_t max, size_t *len)
{
	struct vfu_hdr hdr;
	size_t got = 0, want;
	ssize_t n;

	/* In one piece: QEMU takes a header that arrives in parts for the end. */
	assert_int_equal(recv(sock, &hdr, sizeof(hdr), MSG_DONTWAIT), sizeof(hdr));
	assert_int_equal(hdr.id, id);
	assert_int_equal(hdr.cmd, cmd);
	assert_int_equal(hdr.flags & VFU_F_TYPE_MASK, VFU_F_TYPE_REPLY);
	if (hdr.flags & VFU_F_ERROR) {
		assert_int_equal(hdr.size, sizeof(hdr));
		assert_true(hdr.error > 0);
		return hdr.error;
	}
	want = hdr.size - sizeof(hdr);
	assert_true(want <= max);
	while (got < want) {
		n = recv(sock, (uint8_t *)rep + got, want - got, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			run();
			continue;
		}
		assert_true(n > 0);
		got += n;
	}
	if (len)
		*len = want;
	return 0;
}

static inline int ask_fds(uint16_t cmd, const void *req, size_t len, const void *data, size_t dlen,
			  void *rep, size_t max, size_t *got, const int *fds, unsigned int nfds)
{
	uint16_t id = post(cmd, 0, req, len, data, dlen, fds, nfds);

	run();
	return get_reply(id, cmd, rep, max, got);
}

static inline int ask(uint16_t cmd, const void *req, size_t len, void *rep, size_t max)
{
	size_t got = 0;
	int err = ask_fds(cmd, req, len, NULL, 0, rep, max, &got, NULL, 0);

	if (!err)
		assert_int_equal(got, max);
	return err;
}

static inline bool no_reply(void)
{
	char c;

	return recv(sock, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static const char qemu_caps[] =
	"{\"capabilities\": {\"max_msg_fds\": 16, \"pgsizes\": 4096, \"max_dma_maps\": 65535, "
	"\"max_data_xfer_size\": 1048576, \"migration\": {\"pgsize\": 4096}, "
	"\"write_multiple\": true}}";

static inline int version(const char *caps, char *rep, size_t max, size_t *len)
{
	struct vfu_version v = { 0, 1 };

	return ask_fds(VFU_VERSION, &v, sizeof(v), caps, caps ? strlen(caps) + 1 : 0, rep, max,
		       len, NULL, 0);
}

static inline void negotiate(void)
{
	char rep[512];
	size_t len;

	assert_int_equal(version(qemu_caps, rep, sizeof(rep), &len), 0);
}

/* Times that guest memory might have moved. */
static unsigned int settled;

static inline void on_settle(void *priv)
{
	(void)priv;
	settled++;
}

static inline int setup_raw(void **state)
{
	struct vfu_cfg cfg = { .epfd = -1, .bus = &bus, .settle = on_settle,
			       .log = on_log };
	struct skua_dev_cfg dcfg = { .msix_vectors = VECTORS, .serial = 1 };

	(void)state;
	fds_before = open_fds();
	log_lines = 0;
	vfu = vfu_create(&cfg);
	assert_non_null(vfu);
	dev = skua_dev_create(&dcfg, &vfu_host_ops, vfu, NULL, NULL);
	vfu_set_dev(vfu, dev);
	ram = memfd_create("ram", MFD_CLOEXEC);
	assert_int_equal(ftruncate(ram, RAM_PAGES * PG), 0);
	guest = mmap(NULL, RAM_PAGES * PG, PROT_READ | PROT_WRITE, MAP_SHARED, ram, 0);
	connect_client();
	return 0;
}

static inline int setup(void **state)
{
	setup_raw(state);
	negotiate();
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	munmap(guest, RAM_PAGES * PG);
	close(ram);
	close(sock);
	vfu_shutdown(vfu);
	assert_true(vfu_settle(vfu, SETTLE_MS));
	skua_dev_destroy(dev);
	vfu_destroy(vfu);
	assert_int_equal(dmatab_files(), 0);
	assert_null(bus.first);
	/* Whatever the client passed, good or bad: nothing of it stays open. */
	assert_int_equal(open_fds(), fds_before);
	return 0;
}

static inline int reg_read(uint32_t region, uint64_t off, void *buf, uint32_t len)
{
	struct vfu_region_rw rw = { .offset = off, .region = region, .count = len };
	uint8_t *rep = malloc(sizeof(rw) + len);
	size_t got;
	int err = ask_fds(VFU_REGION_READ, &rw, sizeof(rw), NULL, 0, rep, sizeof(rw) + len, &got,
			  NULL, 0);

	if (!err) {
		assert_int_equal(got, sizeof(rw) + len);
		assert_memory_equal(rep, &rw, sizeof(rw));
		memcpy(buf, rep + sizeof(rw), len);
	}
	free(rep);
	return err;
}

static inline int reg_write(uint32_t region, uint64_t off, const void *buf, uint32_t len)
{
	struct vfu_region_rw rw = { .offset = off, .region = region, .count = len };
	struct vfu_region_rw rep;
	int err = ask_fds(VFU_REGION_WRITE, &rw, sizeof(rw), buf, len, &rep, sizeof(rep), NULL,
			  NULL, 0);

	if (!err)
		assert_memory_equal(&rep, &rw, sizeof(rw));
	return err;
}

static inline void post_write(uint32_t region, uint64_t off, uint64_t val)
{
	struct vfu_region_rw rw = { .offset = off, .region = region, .count = sizeof(val) };

	post(VFU_REGION_WRITE, VFU_F_NO_REPLY, &rw, sizeof(rw), &val, sizeof(val), NULL, 0);
}

static inline int dma_map_msg(uint64_t iova, uint64_t size, uint64_t off, uint32_t flags, int fd)
{
	struct vfu_dma_map req = {
		.argsz = sizeof(req), .flags = flags, .offset = off, .iova = iova, .size = size
	};

	return ask_fds(VFU_DMA_MAP, &req, sizeof(req), NULL, 0, NULL, 0, NULL, &fd, fd >= 0);
}

#define RW (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

static inline int core_write(uint64_t iova, uint64_t val)
{
	post_write(SKUA_BAR_DM, FAKE_IOVA, iova);
	post_write(SKUA_BAR_DM, FAKE_DMA_WRITE, val);
	run();
	return dev->err;
}

static inline uint64_t guest64(uint64_t off)
{
	uint64_t val;

	memcpy(&val, guest + off, 8);
	return val;
}

static inline int set_irqs(uint32_t flags, uint32_t start, uint32_t count, const void *data,
			   size_t len, const int *fds, unsigned int nfds)
{
	struct vfio_irq_set set = {
		.argsz = sizeof(set) + len, .flags = flags, .index = VFIO_PCI_MSIX_IRQ_INDEX,
		.start = start, .count = count,
	};

	return ask_fds(VFU_SET_IRQS, &set, sizeof(set), data, len, NULL, 0, NULL, fds, nfds);
}

static inline uint64_t fired(int efd)
{
	uint64_t n = 0;

	return read(efd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

#define EVENTFD_TRIGGER (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER)
#define NONE_TRIGGER (VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER)
#define BOOL_TRIGGER (VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER)

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_RAW(name) cmocka_unit_test_setup_teardown(name, setup_raw, teardown)

#endif /* SKUA_TEST_VFU_CLIENT_H */
