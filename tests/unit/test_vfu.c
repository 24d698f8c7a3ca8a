// SPDX-License-Identifier: GPL-2.0
/*
 * The vfio-user server as a client sees it: a client of our own at the other
 * end of a socket pair, a core that can be seen through behind it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/pci_regs.h>

#include "fake_core.h"
#include "host/dma.h"
#include "host/event.h"
#include "host/proto.h"
#include "host/vfu.h"

#define PG		DMA_PAGE_SIZE
#define VECTORS		20
#define RAM_PAGES	256

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

static void on_log(void *priv, int level, const char *msg)
{
	(void)priv;
	(void)level;
	log_lines++;
	snprintf(last_log, sizeof(last_log), "%s", msg);
}

static unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void run(void)
{
	while (vfu_run(vfu))
		;
}

static void connect_client(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(vfu_attach(vfu, pair[0]), 0);
	sock = pair[1];
}

static void send_raw(const void *buf, size_t len, const int *fds, unsigned int nfds)
{
	char control[CMSG_SPACE(sizeof(int) * 64)] = { 0 };
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (nfds) {
		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * nfds);
	}
	/* Full: the server has to take some first. */
	while (sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len) {
		assert_int_equal(errno, EAGAIN);
		run();
	}
}

/* Header, fixed part and data as one message; the id it was given. */
static uint16_t post(uint16_t cmd, uint32_t flags, const void *a, size_t alen,
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
static int get_reply(uint16_t id, uint16_t cmd, void *rep, size_t max, size_t *len)
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

static int ask_fds(uint16_t cmd, const void *req, size_t len, const void *data, size_t dlen,
		   void *rep, size_t max, size_t *got, const int *fds, unsigned int nfds)
{
	uint16_t id = post(cmd, 0, req, len, data, dlen, fds, nfds);

	run();
	return get_reply(id, cmd, rep, max, got);
}

static int ask(uint16_t cmd, const void *req, size_t len, void *rep, size_t max)
{
	size_t got = 0;
	int err = ask_fds(cmd, req, len, NULL, 0, rep, max, &got, NULL, 0);

	if (!err)
		assert_int_equal(got, max);
	return err;
}

static bool no_reply(void)
{
	char c;

	return recv(sock, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static const char qemu_caps[] =
	"{\"capabilities\": {\"max_msg_fds\": 16, \"pgsizes\": 4096, \"max_dma_maps\": 65535, "
	"\"max_data_xfer_size\": 1048576, \"migration\": {\"pgsize\": 4096}, "
	"\"write_multiple\": true}}";

static int version(const char *caps, char *rep, size_t max, size_t *len)
{
	struct vfu_version v = { 0, 1 };

	return ask_fds(VFU_VERSION, &v, sizeof(v), caps, caps ? strlen(caps) + 1 : 0, rep, max,
		       len, NULL, 0);
}

static void negotiate(void)
{
	char rep[512];
	size_t len;

	assert_int_equal(version(qemu_caps, rep, sizeof(rep), &len), 0);
}

static int setup_raw(void **state)
{
	struct vfu_cfg cfg = { .epfd = -1, .bus = &bus, .log = on_log };
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

static int setup(void **state)
{
	setup_raw(state);
	negotiate();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	munmap(guest, RAM_PAGES * PG);
	close(ram);
	close(sock);
	vfu_shutdown(vfu);
	skua_dev_destroy(dev);
	vfu_destroy(vfu);
	assert_int_equal(dmatab_files(), 0);
	assert_null(bus.first);
	/* Whatever the client passed, good or bad: nothing of it stays open. */
	assert_int_equal(open_fds(), fds_before);
	return 0;
}

static void test_version(void **state)
{
	char rep[512];
	size_t len;
	struct vfu_version v;

	(void)state;
	/* Nothing else is served before. */
	assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), EINVAL);
	assert_int_equal(version(qemu_caps, rep, sizeof(rep), &len), 0);
	memcpy(&v, rep, sizeof(v));
	assert_int_equal(v.major, 0);
	assert_true(v.minor <= 1);
	assert_true(len > 4 && len <= 4 + sizeof(qemu_caps));
	assert_int_equal(rep[len - 1], '\0');
	assert_int_equal(strlen(rep + 4), len - 5);
	assert_non_null(strstr(rep + 4, "\"write_multiple\":true"));
	assert_non_null(strstr(rep + 4, "\"max_msg_fds\":16"));
	assert_int_equal(version(qemu_caps, rep, sizeof(rep), &len), EINVAL);
}

static void test_version_short(void **state)
{
	static const char small[] = "{\"capabilities\":{}}";
	char rep[512];
	size_t len;

	(void)state;
	/* Too little room for ours: then none, not more than the client can take. */
	assert_int_equal(version(small, rep, sizeof(rep), &len), 0);
	assert_int_equal(len, 4);
}

static void test_version_no_multi(void **state)
{
	char caps[256], rep[512];
	size_t len;

	(void)state;
	snprintf(caps, sizeof(caps), "%-200s", "{\"capabilities\":{\"write_multiple\" : false}}");
	assert_int_equal(version(caps, rep, sizeof(rep), &len), 0);
	assert_true(len > 4);
	assert_null(strstr(rep + 4, "write_multiple"));
}

static void test_version_bad(void **state)
{
	struct vfu_version v = { 1, 0 };
	uint16_t id;
	char c;

	(void)state;
	id = post(VFU_VERSION, 0, &v, sizeof(v), "{}", 2, NULL, 0);
	run();
	assert_int_equal(recv(sock, &c, 1, MSG_DONTWAIT), 0);
	assert_false(vfu_connected(vfu));
	close(sock);

	connect_client();
	v.major = 0;
	id = post(VFU_VERSION, 0, &v, sizeof(v), "{}", 2, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_VERSION, NULL, 0, NULL), EINVAL);
	id = post(VFU_VERSION, 0, &v, 2, NULL, 0, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_VERSION, NULL, 0, NULL), EINVAL);
	/* No text at all is allowed. */
	id = post(VFU_VERSION, 0, &v, sizeof(v), NULL, 0, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_VERSION, &v, sizeof(v), NULL), 0);
}

static void test_info(void **state)
{
	uint32_t info[4] = { 16 };
	uint32_t irq[4] = { 16, 0, VFIO_PCI_MSIX_IRQ_INDEX };

	(void)state;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, info, 16), 0);
	assert_int_equal(info[1], VFIO_DEVICE_FLAGS_RESET | VFIO_DEVICE_FLAGS_PCI);
	assert_int_equal(info[2], VFIO_PCI_NUM_REGIONS);
	assert_int_equal(info[3], VFIO_PCI_NUM_IRQS);
	info[0] = 15;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, NULL, 0), EINVAL);
	assert_int_equal(ask(VFU_GET_INFO, info, 15, NULL, 0), EINVAL);

	assert_int_equal(ask(VFU_GET_IRQ_INFO, irq, 16, irq, 16), 0);
	assert_int_equal(irq[1], VFIO_IRQ_INFO_EVENTFD);
	assert_int_equal(irq[3], VECTORS);
	irq[2] = VFIO_PCI_INTX_IRQ_INDEX;
	assert_int_equal(ask(VFU_GET_IRQ_INFO, irq, 16, irq, 16), 0);
	assert_int_equal(irq[3], 0);
	irq[2] = VFIO_PCI_NUM_IRQS;
	assert_int_equal(ask(VFU_GET_IRQ_INFO, irq, 16, NULL, 0), EINVAL);
}

/*
 * First with room for the structure, then again with what the reply said: the
 * second time may bring more, but ours has no more to say.
 */
static void test_region_info(void **state)
{
	static const uint64_t size[VFIO_PCI_NUM_REGIONS] = {
		[SKUA_BAR_REGS] = SKUA_BAR_REGS_SIZE,
		[SKUA_BAR_UAR] = SKUA_BAR_UAR_SIZE,
		[SKUA_BAR_DM] = SKUA_BAR_DM_SIZE,
		[VFIO_PCI_CONFIG_REGION_INDEX] = SKUA_PCI_CFG_SIZE,
	};
	struct vfio_region_info info, again;

	(void)state;
	for (uint32_t i = 0; i < VFIO_PCI_NUM_REGIONS; i++) {
		info = (struct vfio_region_info){ .argsz = sizeof(info), .index = i };
		assert_int_equal(ask(VFU_GET_REGION_INFO, &info, sizeof(info), &info,
				     sizeof(info)), 0);
		assert_int_equal(info.size, size[i]);
		assert_int_equal(info.index, i);
		/* A single mmappable region would end posted writes for all. */
		assert_int_equal(info.flags, size[i] ? VFIO_REGION_INFO_FLAG_READ |
				 VFIO_REGION_INFO_FLAG_WRITE : 0);
		assert_true(info.argsz >= sizeof(info));
		again = (struct vfio_region_info){ .argsz = info.argsz, .index = i };
		assert_int_equal(ask(VFU_GET_REGION_INFO, &again, sizeof(again), &again,
				     sizeof(again)), 0);
		assert_memory_equal(&again, &info, sizeof(info));
	}
	info.index = VFIO_PCI_NUM_REGIONS;
	assert_int_equal(ask(VFU_GET_REGION_INFO, &info, sizeof(info), NULL, 0), EINVAL);
	info.index = 0;
	info.argsz = 31;
	assert_int_equal(ask(VFU_GET_REGION_INFO, &info, sizeof(info), NULL, 0), EINVAL);
}

static int reg_read(uint32_t region, uint64_t off, void *buf, uint32_t len)
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

static int reg_write(uint32_t region, uint64_t off, const void *buf, uint32_t len)
{
	struct vfu_region_rw rw = { .offset = off, .region = region, .count = len };
	struct vfu_region_rw rep;
	int err = ask_fds(VFU_REGION_WRITE, &rw, sizeof(rw), buf, len, &rep, sizeof(rep), NULL,
			  NULL, 0);

	if (!err)
		assert_memory_equal(&rep, &rw, sizeof(rw));
	return err;
}

static void post_write(uint32_t region, uint64_t off, uint64_t val)
{
	struct vfu_region_rw rw = { .offset = off, .region = region, .count = sizeof(val) };

	post(VFU_REGION_WRITE, VFU_F_NO_REPLY, &rw, sizeof(rw), &val, sizeof(val), NULL, 0);
}

static void test_region_rw(void **state)
{
	uint8_t buf[64], back[64];
	uint16_t id;
	uint32_t word;

	(void)state;
	for (unsigned int i = 0; i < 64; i++)
		buf[i] = i * 3 + 1;
	for (unsigned int len = 1; len <= 64; len *= 2) {
		assert_int_equal(reg_write(SKUA_BAR_UAR, 0x100, buf, len), 0);
		assert_int_equal(reg_read(SKUA_BAR_UAR, 0x100, back, len), 0);
		assert_memory_equal(buf, back, len);
	}
	assert_int_equal(reg_read(VFIO_PCI_CONFIG_REGION_INDEX, 0, &word, 4), 0);
	assert_int_equal(word, SKUA_PCI_DEVICE_ID << 16 | SKUA_PCI_VENDOR_ID);
	id = PCI_COMMAND_MASTER;
	assert_int_equal(reg_write(VFIO_PCI_CONFIG_REGION_INDEX, PCI_COMMAND, &id, 2), 0);
	assert_true(skua_pci_bus_master(&dev->pci));
	/* Last bytes, and one too many. */
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE - 8, buf, 8), 0);
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE - 7, buf, 8), EINVAL);
	assert_int_equal(reg_write(SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE, buf, 1), EINVAL);
	assert_int_equal(reg_read(SKUA_BAR_REGS, UINT64_MAX, buf, 2), EINVAL);
	assert_int_equal(reg_read(1, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(6, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(9, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(UINT32_MAX, 0, buf, 4), EINVAL);
	assert_int_equal(reg_read(VFIO_PCI_CONFIG_REGION_INDEX, SKUA_PCI_CFG_SIZE - 2, buf, 4),
			 EINVAL);
	assert_int_equal(reg_read(SKUA_BAR_REGS, 0, buf, 0), EINVAL);
}

/* Posted writes get no reply and are done before whatever comes after them. */
static void test_posted(void **state)
{
	uint64_t val;

	(void)state;
	for (uint64_t i = 0; i < 500; i++)
		post_write(SKUA_BAR_UAR, 8 * (i % 16), i);
	run();
	assert_true(no_reply());
	assert_int_equal(dev->writes, 500);
	post_write(SKUA_BAR_UAR, 0x10, 0x123456789abcdef0);
	assert_int_equal(reg_read(SKUA_BAR_UAR, 0x10, &val, 8), 0);
	assert_int_equal(val, 0x123456789abcdef0);
	/* A wrong one is refused in silence. */
	post_write(SKUA_BAR_UAR, SKUA_BAR_UAR_SIZE, 0);
	run();
	assert_true(no_reply());
	assert_int_equal(dev->writes, 501);
	assert_true(vfu_connected(vfu));
}

static void test_write_multi(void **state)
{
	struct vfu_write_one wr[200];
	uint64_t count = 200, rep, val;
	uint16_t id;

	(void)state;
	for (unsigned int i = 0; i < count; i++) {
		wr[i] = (struct vfu_write_one){
			.rw = { .offset = 8 * i, .region = SKUA_BAR_UAR, .count = 8 }
		};
		val = i * 0x0101010101010101ull;
		memcpy(wr[i].data, &val, 8);
	}
	post(VFU_REGION_WRITE_MULTI, VFU_F_NO_REPLY, &count, 8, wr, sizeof(wr), NULL, 0);
	run();
	assert_true(no_reply());
	assert_int_equal(dev->writes, 200);
	assert_int_equal(reg_read(SKUA_BAR_UAR, 8 * 199, &val, 8), 0);
	assert_int_equal(val, 199 * 0x0101010101010101ull);

	wr[1].rw.count = 4;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), 0);
	assert_int_equal(rep, 200);
	assert_int_equal(dev->writes, 400);

	/* One wrong entry: none is done. */
	wr[199].rw.count = 9;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), EINVAL);
	wr[199].rw.count = 8;
	count = 201;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), EINVAL);
	/* A count whose product overflows. */
	count = 0x0aaaaaaaaaaaaaabull;
	assert_int_equal(ask_fds(VFU_REGION_WRITE_MULTI, &count, 8, wr, sizeof(wr), &rep, 8, NULL,
				 NULL, 0), EINVAL);
	id = post(VFU_REGION_WRITE_MULTI, 0, &count, 7, NULL, 0, NULL, 0);
	run();
	assert_int_equal(get_reply(id, VFU_REGION_WRITE_MULTI, NULL, 0, NULL), EINVAL);
	assert_int_equal(dev->writes, 400);
}

static int dma_map_msg(uint64_t iova, uint64_t size, uint64_t off, uint32_t flags, int fd)
{
	struct vfu_dma_map req = {
		.argsz = sizeof(req), .flags = flags, .offset = off, .iova = iova, .size = size
	};

	return ask_fds(VFU_DMA_MAP, &req, sizeof(req), NULL, 0, NULL, 0, NULL, &fd, fd >= 0);
}

static int dma_unmap_msg(uint64_t iova, uint64_t size, uint32_t flags)
{
	struct vfu_dma_unmap req = {
		.argsz = sizeof(req), .flags = flags, .iova = iova, .size = size
	};
	struct vfu_dma_unmap rep;
	int err = ask(VFU_DMA_UNMAP, &req, sizeof(req), &rep, sizeof(rep));

	if (!err)
		assert_memory_equal(&req, &rep, sizeof(req));
	return err;
}

#define RW (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

static int core_write(uint64_t iova, uint64_t val)
{
	post_write(SKUA_BAR_DM, FAKE_IOVA, iova);
	post_write(SKUA_BAR_DM, FAKE_DMA_WRITE, val);
	run();
	return dev->err;
}

static uint64_t guest64(uint64_t off)
{
	uint64_t val;

	memcpy(&val, guest + off, 8);
	return val;
}

static void test_dma(void **state)
{
	(void)state;
	assert_int_equal(dma_map_msg(0x100000, 16 * PG, 4 * PG, RW, ram), 0);
	assert_int_equal(dma_map_msg(0, 2 * PG, 0, RW, ram), 0);
	assert_int_equal(dmatab_files(), 1);
	assert_int_equal(core_write(0x100008, 0x1111222233334444), 0);
	assert_int_equal(guest64(4 * PG + 8), 0x1111222233334444);
	assert_int_equal(core_write(0x100000 + 16 * PG - 4, 1), -EFAULT);
	assert_int_equal(dma_map_msg(PG, PG, 0, RW, ram), EEXIST);
	assert_int_equal(dma_map_msg(0x500000, 16 * PG, RAM_PAGES * PG, RW, ram), ERANGE);
	assert_int_equal(dma_map_msg(0x500000, 16 * PG, 0, RW | 4, ram), EINVAL);
	/* Part of a map, then all. */
	assert_int_equal(dma_unmap_msg(0x100000, PG, 0), 0);
	assert_int_equal(core_write(0x100008, 1), -EFAULT);
	assert_int_equal(core_write(0x100008 + PG, 2), 0);
	assert_int_equal(guest64(5 * PG + 8), 2);
	assert_int_equal(dma_unmap_msg(0x100000, 16 * PG, 0), 0);
	assert_int_equal(core_write(0x100008 + PG, 1), -EFAULT);
	assert_int_equal(core_write(8, 1), 0);
	assert_int_equal(dma_unmap_msg(0, 0, 0), EINVAL);
	assert_int_equal(dma_unmap_msg(0, PG, VFIO_DMA_UNMAP_FLAG_ALL), EINVAL);
	assert_int_equal(dma_unmap_msg(0, 0, 1), EINVAL);
	assert_int_equal(dma_unmap_msg(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(core_write(8, 1), -EFAULT);
	assert_int_equal(dmatab_files(), 0);
}

/* What is no memory of the client's is a function's, while there is one. */
static void test_peers(void **state)
{
	struct vfu_cfg cfg = { .epfd = -1, .bus = &bus };
	struct skua_dev_cfg dcfg = { .msix_vectors = VECTORS };
	struct vfu *alone, *other = vfu_create(&cfg);
	struct skua_dev *peer = skua_dev_create(&dcfg, &vfu_host_ops, other, NULL, NULL), *far;

	(void)state;
	vfu_set_dev(other, peer);
	cfg.bus = NULL;
	alone = vfu_create(&cfg);
	far = skua_dev_create(&dcfg, &vfu_host_ops, alone, NULL, NULL);
	vfu_set_dev(alone, far);
	dev->peer_at = 0x200000;
	peer->peer_at = 0x300000;
	far->peer_at = 0x400000;
	assert_int_equal(core_write(0x300000, 3), 0);
	assert_int_equal(peer->peer, 3);
	assert_int_equal(core_write(0x200000, 2), 0);
	assert_int_equal(dev->peer, 2);
	assert_int_equal(core_write(0x400000, 4), -EFAULT);
	peer->peer = 0x55;
	post_write(SKUA_BAR_DM, FAKE_IOVA, 0x300000);
	post_write(SKUA_BAR_DM, FAKE_DMA_READ, 0);
	run();
	assert_int_equal(dev->err, 0);
	assert_int_equal(dev->word, 0x55);
	/* Memory first. */
	assert_int_equal(dma_map_msg(0x300000, PG, 0, RW, ram), 0);
	assert_int_equal(core_write(0x300000, 6), 0);
	assert_int_equal(guest64(0), 6);
	assert_int_equal(peer->peer, 0x55);
	assert_int_equal(dma_unmap_msg(0, 0, VFIO_DMA_UNMAP_FLAG_ALL), 0);
	assert_int_equal(core_write(0x300000, 7), 0);
	vfu_shutdown(other);
	assert_int_equal(core_write(0x300000, 8), -EFAULT);
	assert_int_equal(core_write(0x200000, 9), 0);
	skua_dev_destroy(peer);
	vfu_destroy(other);
	vfu_shutdown(alone);
	skua_dev_destroy(far);
	vfu_destroy(alone);
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

/* An emulated IOMMU's traffic: a map for each page, unmapped in one go or singly. */
static void test_viommu(void **state)
{
	enum { MAPS = 60000, BATCH = 200 };
	uint16_t ids[BATCH];

	(void)state;
	for (unsigned int i = 0; i < MAPS; i += BATCH) {
		for (unsigned int j = 0; j < BATCH; j++) {
			struct vfu_dma_map req = {
				.argsz = sizeof(req), .flags = RW, .size = PG,
				.iova = 0x100000000ull + (uint64_t)(i + j) * PG,
				.offset = (i + j) % RAM_PAGES * PG,
			};

			ids[j] = post(VFU_DMA_MAP, 0, &req, sizeof(req), NULL, 0, &ram, 1);
			/* Descriptors in flight are limited: let them arrive. */
			if (j % 64 == 63)
				run();
		}
		run();
		for (unsigned int j = 0; j < BATCH; j++)
			assert_int_equal(get_reply(ids[j], VFU_DMA_MAP, NULL, 0, NULL), 0);
	}
	assert_int_equal(dmatab_files(), 1);
	for (uint64_t i = 0; i < MAPS; i += 997) {
		assert_int_equal(core_write(0x100000000ull + i * PG + 16, i), 0);
		assert_int_equal(guest64(i % RAM_PAGES * PG + 16), i);
	}
	assert_int_equal(dma_unmap_msg(0x100000000ull, PG, 0), 0);
	assert_int_equal(core_write(0x100000000ull, 1), -EFAULT);
	/* The whole address space at once, as when a domain goes. */
	assert_int_equal(dma_unmap_msg(0, 1ull << 48, 0), 0);
	assert_int_equal(core_write(0x100000000ull + PG, 1), -EFAULT);
	assert_int_equal(dmatab_files(), 0);
}

/* Guest RAM without descriptors: a client that asks on is told, and the log says how. */
static void test_refuse_private_ram(void **state)
{
	uint32_t info[4] = { 16 };

	(void)state;
	assert_int_equal(dma_map_msg(0xc0000, 16 * PG, 0, VFIO_DMA_MAP_FLAG_READ, -1), 0);
	assert_int_equal(ask(VFU_GET_INFO, info, 16, info, 16), 0);
	assert_int_equal(dma_map_msg(0, 16 * PG, 0, RW, -1), 0);
	info[0] = 16;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, NULL, 0), EINVAL);
	assert_int_equal(core_write(0, 1), -EFAULT);
	log_lines = 0;
	assert_int_equal(ask(VFU_GET_INFO, info, 16, NULL, 0), EINVAL);
	assert_int_equal(log_lines, 2);
	/* With RAM that can be shared, other memory without is no harm. */
	assert_int_equal(dma_map_msg(0x100000, PG, 0, RW, ram), 0);
	assert_int_equal(ask(VFU_GET_INFO, info, 16, info, 16), 0);
}

static int set_irqs(uint32_t flags, uint32_t start, uint32_t count, const void *data, size_t len,
		    const int *fds, unsigned int nfds)
{
	struct vfio_irq_set set = {
		.argsz = sizeof(set) + len, .flags = flags, .index = VFIO_PCI_MSIX_IRQ_INDEX,
		.start = start, .count = count,
	};

	return ask_fds(VFU_SET_IRQS, &set, sizeof(set), data, len, NULL, 0, NULL, fds, nfds);
}

static uint64_t fired(int efd)
{
	uint64_t n = 0;

	return read(efd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

#define EVENTFD_TRIGGER (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER)
#define NONE_TRIGGER (VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER)
#define BOOL_TRIGGER (VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER)

static void test_irqs(void **state)
{
	uint8_t bools[3] = { 1, 0, 1 };
	uint64_t pba;
	int efd[8];

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		efd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 8, NULL, 0, efd, 8), 0);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 3);
	run();
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(fired(efd[i]), i == 3);

	/* Raised while there is nobody: pending, shown in the PBA, sent when there is. */
	post_write(SKUA_BAR_DM, FAKE_MSIX, 12);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 12);
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA, &pba, 8), 0);
	assert_int_equal(pba, 1u << 12);
	pba = 0;
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA + 1, &pba, 1), 0);
	assert_int_equal(pba, 1u << 4);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 12, 1, NULL, 0, &efd[0], 1), 0);
	assert_int_equal(fired(efd[0]), 1);
	assert_int_equal(reg_read(SKUA_BAR_REGS, SKUA_BAR_MSIX_PBA, &pba, 8), 0);
	assert_int_equal(pba, 0);

	/* Taken away and given back, as when vectors are set up anew. */
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 3, 1, NULL, 0, NULL, 0), 0);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 3);
	run();
	assert_int_equal(fired(efd[3]), 0);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 3, 1, NULL, 0, &efd[4], 1), 0);
	assert_int_equal(fired(efd[4]), 1);

	assert_int_equal(set_irqs(BOOL_TRIGGER, 0, 3, bools, 3, NULL, 0), 0);
	assert_int_equal(fired(efd[0]), 1);
	assert_int_equal(fired(efd[1]), 0);
	assert_int_equal(fired(efd[2]), 1);
	assert_int_equal(set_irqs(NONE_TRIGGER, 5, 2, NULL, 0, NULL, 0), 0);
	assert_int_equal(fired(efd[5]) + fired(efd[6]), 2);

	/* Count 0 is all off. */
	assert_int_equal(set_irqs(NONE_TRIGGER, 0, 0, NULL, 0, NULL, 0), 0);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 5);
	run();
	assert_int_equal(fired(efd[5]), 0);
	/* A reset forgets. */
	assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 5, 1, NULL, 0, &efd[5], 1), 0);
	assert_int_equal(fired(efd[5]), 0);
	/* No such vector: the core's mistake must not be ours. */
	post_write(SKUA_BAR_DM, FAKE_MSIX, 63);
	post_write(SKUA_BAR_DM, FAKE_MSIX, UINT64_MAX);
	run();
	for (unsigned int i = 0; i < 8; i++)
		close(efd[i]);
}

/*
 * The counter is full and the client has made it one that blocks, by the description
 * that it shares with us: nobody waits for it to be read.
 */
static void test_irqs_blocking(void **state)
{
	const uint64_t full = UINT64_MAX - 1;
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	(void)state;
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, &efd, 1), 0);
	assert_int_equal(fcntl(efd, F_SETFL, 0), 0);
	assert_int_equal(write(efd, &full, sizeof(full)), sizeof(full));
	alarm(10);
	post_write(SKUA_BAR_DM, FAKE_MSIX, 0);
	run();
	assert_int_equal(set_irqs(NONE_TRIGGER, 0, 1, NULL, 0, NULL, 0), 0);
	alarm(0);
	assert_true(fired(efd) == full);
	/* As soon as there is room it is told again. */
	post_write(SKUA_BAR_DM, FAKE_MSIX, 0);
	run();
	assert_int_equal(fcntl(efd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fired(efd), 1);
	close(efd);
}

static void test_irqs_bad(void **state)
{
	struct vfio_irq_set set = { .argsz = sizeof(set), .flags = NONE_TRIGGER };
	uint8_t bools[2] = { 1, 1 };
	int fds[2];

	(void)state;
	fds[0] = eventfd(0, EFD_CLOEXEC);
	fds[1] = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, VECTORS - 1, 2, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, UINT32_MAX, 2, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 2, UINT32_MAX, NULL, 0, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 3, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 0, NULL, 0, fds, 2), EINVAL);
	assert_int_equal(set_irqs(NONE_TRIGGER, 0, 1, NULL, 0, fds, 1), EINVAL);
	assert_int_equal(set_irqs(BOOL_TRIGGER, 0, 3, bools, 2, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_MASK, 0, 1, NULL,
				  0, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(0, 0, 1, NULL, 0, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(UINT32_MAX, 0, 1, NULL, 0, NULL, 0), EINVAL);
	/* Something that is no event descriptor. */
	assert_int_equal(set_irqs(EVENTFD_TRIGGER, 0, 1, NULL, 0, &ram, 1), EINVAL);
	/* Other kinds of interrupt have no vectors: nothing to disable is fine. */
	for (set.index = 0; set.index < VFIO_PCI_NUM_IRQS; set.index++)
		assert_int_equal(ask(VFU_SET_IRQS, &set, sizeof(set), NULL, 0), 0);
	assert_int_equal(ask(VFU_SET_IRQS, &set, sizeof(set), NULL, 0), EINVAL);
	set.index = VFIO_PCI_INTX_IRQ_INDEX;
	set.count = 1;
	assert_int_equal(ask(VFU_SET_IRQS, &set, sizeof(set), NULL, 0), EINVAL);
	close(fds[0]);
	close(fds[1]);
}

static void test_reset(void **state)
{
	uint16_t ctl;

	(void)state;
	assert_int_equal(ask(VFU_DEVICE_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(dev->resets, 1);
	assert_int_equal(reg_read(VFIO_PCI_CONFIG_REGION_INDEX,
				  SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL, &ctl, 2), 0);
	ctl |= PCI_EXP_DEVCTL_BCR_FLR;
	assert_int_equal(reg_write(VFIO_PCI_CONFIG_REGION_INDEX,
				   SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL, &ctl, 2), 0);
	assert_int_equal(dev->flrs, 1);
	assert_int_equal(dev->resets, 1);
}

static void test_timer(void **state)
{
	(void)state;
	assert_int_equal(vfu_deadline(vfu), SKUA_TIME_NEVER);
	post_write(SKUA_BAR_DM, FAKE_TIMER, 1000000);
	run();
	assert_true(vfu_deadline(vfu) != SKUA_TIME_NEVER);
	vfu_tick(vfu, vfu_deadline(vfu) - 1);
	assert_int_equal(dev->ticks, 0);
	vfu_tick(vfu, vfu_deadline(vfu));
	assert_int_equal(dev->ticks, 1);
	assert_int_equal(vfu_deadline(vfu), SKUA_TIME_NEVER);
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

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		ids[i] = post(VFU_REGION_READ, 0, &rw, sizeof(rw), NULL, 0, NULL, 0);
	run();
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define T_RAW(name) cmocka_unit_test_setup_teardown(name, setup_raw, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T_RAW(test_version), T_RAW(test_version_short), T_RAW(test_version_no_multi),
		T_RAW(test_version_bad), T(test_info), T(test_region_info), T(test_region_rw),
		T(test_posted), T(test_write_multi), T(test_dma), T(test_peers),
		T(test_fd_attribution),
		T(test_fragments), T(test_fragment_and_next), T(test_viommu),
		T(test_refuse_private_ram), T(test_irqs), T(test_irqs_blocking),
		T(test_irqs_bad), T(test_reset), T(test_timer), T(test_reconnect),
		T(test_malformed), T(test_refused), T(test_backpressure), T(test_fair),
		cmocka_unit_test(test_socket), cmocka_unit_test(test_stale_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
