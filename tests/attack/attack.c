// SPDX-License-Identifier: GPL-2.0
/*
 * attack [-s] MODEL: one skua-model, two NICs. A client of the one does what it can to keep
 * the model busy or to block it; a client of the other asks for a register, again and again.
 * Each attack is a case: 99 of 100 answers come soon, and all of them come.
 *
 * What counts is the time from question to answer without the time that the model or the
 * victim waited for a processor (schedstat): other load on the machine makes no difference.
 * "Soon" is within 5 ms.
 *
 * -s is for a machine that does nothing else. Without it two things are forgiven: that it
 * takes four times as long as answers of a process that does nothing but answer, asked in
 * turn with the model (it meets what the machine itself does, such as a hypervisor that
 * takes processors away), and that a helper thread of the model waits for a processor, too:
 * it may hold the lock of the address space.
 *
 * And the model's table of file descriptors must not grow: the thread that needs a larger one
 * sleeps for as long as the kernel likes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>
#include <linux/pci_regs.h>
#include <linux/types.h>

#include <skua/bits.h>
#include <skua/hw/cmd.h>
#include <skua/hw/icm.h>
#include <skua/hw/pci.h>
#include <skua/hw/regs.h>
#include <skua/hw/steer.h>

#include "../unit/fds.h"
#include "host/proto.h"
#include "pci.h"

#define SAMPLES		300
#define SOON_US		5000
#define BLOCKED_S	10
#define PG		4096ull
#define MULTI		43000u
#define RW		(VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE)

struct conn {
	int fd;
	uint16_t id;
};

static char dir[] = "/tmp/skua-attack-XXXXXX";
static char nic[2][64], control[64], dgram[64], peer[64];
static pid_t model, echo;
static int echo_fd;
static atomic_bool stop, begun;
static atomic_ulong acts;

static void die(const char *fmt, ...)
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

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* --- messages --- */

static bool dial(struct conn *c, const char *path)
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

static bool put(struct conn *c, uint16_t cmd, uint32_t flags, const void *a, size_t alen,
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
		n = sendmsg(c->fd, &mh, MSG_NOSIGNAL);
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

/* The errno of the reply, 0, or -1 if there is none. */
static int get(struct conn *c, void *rep, size_t max)
{
	static _Thread_local uint8_t junk[1 << 16];
	struct vfu_hdr hdr;
	size_t left;
	ssize_t n;

	if (recv(c->fd, &hdr, sizeof(hdr), MSG_WAITALL) != sizeof(hdr))
		return -1;
	if (hdr.flags & VFU_F_ERROR)
		return hdr.error;
	for (left = hdr.size - sizeof(hdr); left; left -= n) {
		size_t want = left < sizeof(junk) ? left : sizeof(junk);

		n = recv(c->fd, junk, want, 0);
		if (n <= 0)
			return -1;
		if (rep && (size_t)n <= max)
			memcpy(rep, junk, n);
		rep = NULL;
	}
	return 0;
}

static int ask(struct conn *c, uint16_t cmd, const void *a, size_t alen, const void *b,
	       size_t blen, const int *fds, unsigned int nfds)
{
	return put(c, cmd, 0, a, alen, b, blen, fds, nfds) ? get(c, NULL, 0) : -1;
}

static bool hello(struct conn *c, const char *path)
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

static void hello_again(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	while (!stop && !hello(c, nic[0]))
		usleep(1000);
}

static int map(struct conn *c, uint64_t iova, uint64_t size, int fd)
{
	struct vfu_dma_map req = {
		.argsz = sizeof(req), .flags = RW, .iova = iova, .size = size,
	};

	return ask(c, VFU_DMA_MAP, &req, sizeof(req), NULL, 0, &fd, 1);
}

static int unmap(struct conn *c, uint64_t iova, uint64_t size, uint32_t flags)
{
	struct vfu_dma_unmap req = {
		.argsz = sizeof(req), .flags = flags, .iova = iova, .size = size,
	};

	return ask(c, VFU_DMA_UNMAP, &req, sizeof(req), NULL, 0, NULL, 0);
}

static int memory(uint64_t size)
{
	int fd = memfd_create("attack", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, size))
		die("no memory file of %llu bytes", (unsigned long long)size);
	return fd;
}

/* --- attacks --- */

/* More than the model bears. */
#define ENOUGH	100

/* A socket whose last close() waits for an hour; its other end is not read. */
static int lingering(void)
{
	static int listener = -1;
	static struct sockaddr_in addr = { .sin_family = AF_INET };
	static char data[65536];
	struct linger hour = { .l_onoff = 1, .l_linger = 3600 };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 8192;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (listener < 0) {
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 4096) ||
		    getsockname(listener, (struct sockaddr *)&addr, &len))
			die("no TCP socket: %s", strerror(errno));
	}
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		die("connect: %s", strerror(errno));
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour));
	return fd;
}

static void descriptors(struct conn *c)
{
	struct linger none = { 0 };

	for (unsigned int n = 0; !stop && n < ENOUGH; n++) {
		int fd = lingering();

		if (!put(c, 99, VFU_F_NO_REPLY, NULL, 0, NULL, 0, &fd, 1)) {
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
			hello_again(c);
		}
		close(fd);
	}
	while (!stop)
		hello_again(c);
}

static void datagrams(const char *to)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 };
	char ctl[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = frame, .iov_len = sizeof(frame) };
	struct msghdr mh = {
		.msg_name = &addr, .msg_namelen = sizeof(addr), .msg_iov = &iov, .msg_iovlen = 1,
	};
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct linger none = { 0 };
	struct cmsghdr *cm = (struct cmsghdr *)ctl;

	strcpy(addr.sun_path, to);
	for (unsigned int n = 0; !stop && n < ENOUGH; n++) {
		int fd = lingering();

		mh.msg_control = ctl;
		mh.msg_controllen = sizeof(ctl);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
		/* Refused (by a kernel since 6.16): the last one is ours, and must not wait. */
		if (sendmsg(s, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		close(fd);
		acts++;
	}
	while (!stop) {
		mh.msg_control = NULL;
		mh.msg_controllen = 0;
		sendmsg(s, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
		acts++;
	}
	close(s);
}

static void frames(struct conn *c)
{
	(void)c;
	datagrams(dgram);
}

static void commands_to_control(struct conn *c)
{
	(void)c;
	datagrams(control);
}

static void *refill(void *arg)
{
	const uint64_t most = UINT64_MAX - 1;
	int fd = *(int *)arg;
	uint64_t was;

	/* Fills the counter in the moment after it was empty, and leaves it so for a while. */
	while (!stop) {
		if (read(fd, &was, sizeof(was)) < 0 || write(fd, &most, sizeof(most)) < 0)
			usleep(100);
	}
	return NULL;
}

static void event_descriptors(struct conn *c)
{
	struct {
		struct vfio_irq_set set;
		uint8_t ones[16];
	} raise = {
		.set = { .argsz = sizeof(raise), .index = VFIO_PCI_MSIX_IRQ_INDEX, .count = 8,
			 .flags = VFIO_IRQ_SET_DATA_BOOL | VFIO_IRQ_SET_ACTION_TRIGGER },
	};
	struct vfio_irq_set set = {
		.argsz = sizeof(set), .index = VFIO_PCI_MSIX_IRQ_INDEX, .count = 8,
		.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
	};
	int efd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), fds[8];
	pthread_t thread;

	memset(raise.ones, 1, sizeof(raise.ones));
	for (unsigned int i = 0; i < 8; i++)
		fds[i] = efd;
	ask(c, VFU_SET_IRQS, &set, sizeof(set), NULL, 0, fds, 8);
	fcntl(efd, F_SETFL, 0);
	pthread_create(&thread, NULL, refill, &efd);
	while (!stop)
		ask(c, VFU_SET_IRQS, &raise, sizeof(raise), NULL, 0, NULL, 0);
	/* It may wait for room, or for something to read. */
	fcntl(efd, F_SETFL, O_NONBLOCK);
	while (pthread_tryjoin_np(thread, NULL)) {
		uint64_t val = 1;

		if (read(efd, &val, sizeof(val)) < 0 || write(efd, &val, sizeof(val)) < 0)
			usleep(1000);
	}
	close(efd);
}

static void small_files(struct conn *c)
{
	while (!stop) {
		for (uint64_t n = 0; !stop && n < 70000; n++) {
			int fd = memory(PG), err = map(c, n * PG, PG, fd);

			close(fd);
			if (err)
				break;
		}
		if (unmap(c, 0, 0, VFIO_DMA_UNMAP_FLAG_ALL))
			hello_again(c);
	}
}

static void large_files(struct conn *c)
{
	while (!stop) {
		for (uint64_t n = 0, size = 1ull << 44; !stop && size >= 1 << 20; n++) {
			int fd = memory(size);

			if (map(c, n * PG, PG, fd))
				size /= 2;
			close(fd);
		}
		hello_again(c);
	}
}

static void many_ranges(struct conn *c)
{
	enum { RANGES = 30000, AHEAD = 32 };
	int fd = memory(PG);

	for (unsigned int round = 0; !stop; round++) {
		for (unsigned int i = 0; !stop && i < RANGES; i++) {
			struct vfu_dma_map req = {
				.argsz = sizeof(req), .flags = RW, .iova = i * PG, .size = PG,
			};

			put(c, VFU_DMA_MAP, i % AHEAD ? VFU_F_NO_REPLY : 0, &req, sizeof(req),
			    NULL, 0, &fd, 1);
			if (i % AHEAD == 0)
				get(c, NULL, 0);
		}
		if (round % 2 || unmap(c, 0, RANGES * PG, 0))
			hello_again(c);
	}
	close(fd);
}

/* The model has the last reference to much memory when it lets it go. */
static void last_reference(struct conn *c)
{
	const uint64_t size = 256 << 20;

	while (!stop) {
		int fd = memory(size);
		uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
				  0);

		if (map(c, 0, size, fd))
			hello_again(c);
		munmap(p, size);
		close(fd);
		if (unmap(c, 0, size, 0))
			hello_again(c);
	}
}

static void multi(struct conn *c, uint32_t region, uint64_t off, uint32_t val, uint32_t len)
{
	struct vfu_write_one *wr = calloc(MULTI, sizeof(*wr));
	uint64_t count = MULTI;

	for (unsigned int i = 0; i < MULTI; i++) {
		wr[i].rw = (struct vfu_region_rw){ .offset = off, .region = region, .count = len };
		memcpy(wr[i].data, &val, len);
	}
	while (!stop) {
		if (!put(c, VFU_REGION_WRITE_MULTI, VFU_F_NO_REPLY, &count, sizeof(count), wr,
			 MULTI * sizeof(*wr), NULL, 0))
			hello_again(c);
	}
	free(wr);
}

static void resets(struct conn *c)
{
	multi(c, SKUA_BAR_REGS, SKUA_REG_CTRL, SKUA_CTRL_RESET, 4);
}

static void function_resets(struct conn *c)
{
	multi(c, VFIO_PCI_CONFIG_REGION_INDEX, SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL,
	      PCI_EXP_DEVCTL_BCR_FLR, 2);
}

static void doorbells(struct conn *c)
{
	multi(c, SKUA_BAR_UAR, 0, 0x1234, 8);
}

static void reg(struct conn *c, uint64_t off, uint64_t val, uint32_t len)
{
	struct vfu_region_rw rw = { .offset = off, .region = SKUA_BAR_REGS, .count = len };

	ask(c, VFU_REGION_WRITE, &rw, sizeof(rw), &val, len, NULL, 0);
}

/* Commands that map as much ICM as there can be, and unmap it, 256 at a time. */
static void icm_maps(struct conn *c)
{
	enum { SLOTS = 1 << SKUA_CMDQ_LOG_SIZE_MAX };
	const uint64_t size = 1 << 20;
	int fd = memory(size);
	uint8_t *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct skua_cmd_slot *slot = (void *)mem;
	struct skua_cmd_map_icm_in *in = (void *)(mem + (64 << 10));
	struct skua_cmd_unmap_icm_in *un = (void *)(mem + (68 << 10));

	map(c, 0, size, fd);
	reg(c, SKUA_REG_CMDQ_BASE, 0, 8);
	reg(c, SKUA_REG_CMDQ_LOG_SIZE, SKUA_CMDQ_LOG_SIZE_MAX, 4);
	reg(c, SKUA_REG_CMDQ_CTRL, SKUA_CMDQ_CTRL_ENABLE, 4);
	in->count = cpu_to_le32(1);
	in->page[0] = cpu_to_le64(PG << 8 | 18);
	un->npages = cpu_to_le32(1 << 18);
	for (uint32_t round = 1; !stop; round++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			uint32_t token = (round & 0xff) << 16 | i;

			memset(&slot[i], 0, sizeof(slot[i]));
			slot[i].opcode = cpu_to_le16(i % 2 ? SKUA_CMD_UNMAP_ICM : SKUA_CMD_MAP_ICM);
			slot[i].in = cpu_to_le64(i % 2 ? 68 << 10 : 64 << 10);
			slot[i].in_len = cpu_to_le32(i % 2 ? sizeof(*un) : sizeof(*in) + 8);
			slot[i].token = cpu_to_le32(token);
			reg(c, SKUA_REG_CMDQ_DB, token, 4);
		}
		while (!stop && *(volatile __le32 *)&slot[SLOTS - 1].done !=
				slot[SLOTS - 1].token)
			usleep(100);
	}
	munmap(mem, size);
	close(fd);
}

/* Command number @n of this device, one after the other; false: it failed, or never ended. */
static bool command(struct conn *c, uint8_t *mem, uint32_t n, uint16_t op, const void *in,
		    size_t len)
{
	struct skua_cmd_slot *slot = (void *)mem;
	uint32_t token = (n + 1) << 16;

	memcpy(mem + (64 << 10), in, len);
	memset(slot, 0, sizeof(*slot));
	slot->opcode = cpu_to_le16(op);
	slot->in = cpu_to_le64(64 << 10);
	slot->in_len = cpu_to_le32(len);
	slot->token = cpu_to_le32(token);
	reg(c, SKUA_REG_CMDQ_DB, token, 4);
	while (!stop && *(volatile __le32 *)&slot->done != slot->token)
		usleep(10);
	return slot->done == slot->token && !slot->status;
}

/* As many steering rules as there can be, none of which matches. */
static uint32_t rules(struct conn *c, uint8_t *mem, uint64_t icm)
{
	struct skua_cmd_init_device_in init = { 0 };
	struct {
		struct skua_cmd_map_icm_in in;
		__le64 page;
	} map = { .in.count = cpu_to_le32(1), .page = cpu_to_le64(icm | 7) };
	struct skua_cmd_modify_port_in port = {
		.mask = cpu_to_le32(SKUA_PORT_M_ENABLE), .enable = cpu_to_le32(1),
	};
	struct skua_cmd_create_flow_in in = { .flow.flags = cpu_to_le32(SKUA_FLOW_DROP) };
	uint32_t n = 0, i = 0;

	for (i = 0; i < SKUA_ICM_TABLES; i++) {
		init.icm[i].base = cpu_to_le64((i + 1ull) << 32);
		init.icm[i].log_num = cpu_to_le32(i == SKUA_ICM_FLOW ? 12 : 2);
	}
	map.in.addr = init.icm[SKUA_ICM_FLOW].base;
	if (!command(c, mem, n++, SKUA_CMD_MAP_ICM, &map, sizeof(map)) ||
	    !command(c, mem, n++, SKUA_CMD_INIT_DEVICE, &init, sizeof(init)) ||
	    !command(c, mem, n++, SKUA_CMD_MODIFY_PORT, &port, sizeof(port)))
		return 0;
	memset(in.flow.mask.smac, 0xff, sizeof(in.flow.mask.smac));
	for (i = 0; i < 1 << 12; i++) {
		in.index = cpu_to_le32(i);
		in.flow.value.smac[1] = 1 + i / 256;
		in.flow.value.smac[2] = i % 256;
		if (!command(c, mem, n++, SKUA_CMD_CREATE_FLOW, &in, sizeof(in)))
			break;
	}
	return i;
}

static void steering(struct conn *c)
{
	const uint64_t size = 2 << 20, icm = 1 << 20;
	int fd = memory(size), s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x12, 0x34 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	map(c, 0, size, fd);
	reg(c, SKUA_REG_CMDQ_BASE, 0, 8);
	reg(c, SKUA_REG_CMDQ_LOG_SIZE, 0, 4);
	reg(c, SKUA_REG_CMDQ_CTRL, SKUA_CMDQ_CTRL_ENABLE, 4);
	if (rules(c, mem, icm) != 1 << 12 && !stop)
		die("the steering rules are refused: status %u",
		    le32_to_cpu(((struct skua_cmd_slot *)mem)->status));
	strcpy(addr.sun_path, dgram);
	begun = true;
	while (!stop) {
		acts += sendto(s, frame, sizeof(frame), MSG_DONTWAIT, (struct sockaddr *)&addr,
			       sizeof(addr)) == sizeof(frame);
	}
	munmap(mem, size);
	close(fd);
	close(s);
}

static void reconnects(struct conn *c)
{
	while (!stop) {
		hello_again(c);
		acts++;
	}
}

static void large_reads(struct conn *c)
{
	struct vfu_region_rw rw = { .region = SKUA_BAR_DM, .count = 1 << 20 };

	while (!stop) {
		for (unsigned int i = 0; i < 8; i++)
			put(c, VFU_REGION_READ, 0, &rw, sizeof(rw), NULL, 0, NULL, 0);
		for (unsigned int i = 0; i < 8; i++)
			get(c, NULL, 0);
	}
}

static void nonsense(struct conn *c)
{
	while (!stop) {
		if (!put(c, 99, VFU_F_NO_REPLY, NULL, 0, NULL, 0, NULL, 0))
			hello_again(c);
	}
}

static const struct {
	const char *name;
	void (*fn)(struct conn *c);
} attacks[] = {
	{ "nonsense", nonsense },
	{ "doorbells", doorbells },
	{ "large reads", large_reads },
	{ "reconnects", reconnects },
	{ "resets", resets },
	{ "function level resets", function_resets },
	{ "maps of ICM", icm_maps },
	{ "frames for many rules", steering },
	{ "many ranges", many_ranges },
	{ "small files", small_files },
	{ "large files", large_files },
	{ "last references", last_reference },
	{ "event descriptors", event_descriptors },
	{ "descriptors that do not close", descriptors },
	{ "the same, with frames", frames },
	{ "the same, to the control socket", commands_to_control },
};

/* --- the victim --- */

/* Nanoseconds that a thread has waited for a processor. */
static uint64_t waited(const char *path)
{
	unsigned long long run, wait = 0;
	FILE *f = fopen(path, "re");

	if (!f || fscanf(f, "%llu %llu", &run, &wait) != 2)
		die("%s: no scheduler statistics", path);
	fclose(f);
	return wait;
}

/* The same of the model: of its main thread, or of all. */
static uint64_t model_waited(bool all)
{
	char path[300];
	uint64_t sum = 0;
	struct dirent *ent;
	DIR *tasks;

	if (!all) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", model, model);
		return waited(path);
	}
	snprintf(path, sizeof(path), "/proc/%d/task", model);
	tasks = opendir(path);
	if (!tasks)
		die("%s: %s", path, strerror(errno));
	while ((ent = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", model, ent->d_name);
		if (*ent->d_name != '.')
			sum += waited(path);
	}
	closedir(tasks);
	return sum;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t echo_waited(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", echo);
	return waited(path);
}

static bool ask_model(struct conn *c)
{
	struct vfu_region_rw rw = { .offset = SKUA_REG_ID, .region = SKUA_BAR_REGS, .count = 4 };

	return !ask(c, VFU_REGION_READ, &rw, sizeof(rw), NULL, 0, NULL, 0);
}

static bool ask_echo(void)
{
	struct vfu_hdr hdr = { 0 };

	return send(echo_fd, &hdr, sizeof(hdr), 0) == sizeof(hdr) &&
	       recv(echo_fd, &hdr, sizeof(hdr), 0) == sizeof(hdr);
}

/* Nanoseconds until the model answers (@c NULL: until the echo does); UINT64_MAX: it does not. */
static uint64_t question(struct conn *c, bool strict)
{
	uint64_t other = c ? model_waited(!strict) : echo_waited();
	uint64_t own = waited("/proc/thread-self/schedstat");
	uint64_t t = now_ns();

	if (!(c ? ask_model(c) : ask_echo()))
		return UINT64_MAX;
	t = now_ns() - t;
	own = waited("/proc/thread-self/schedstat") - own;
	other = (c ? model_waited(!strict) : echo_waited()) - other;
	return t > own + other ? t - own - other : 0;
}

struct result {
	uint64_t p99, max;	/* microseconds */
	uint64_t machine;	/* likewise, 99 of 100 answers of the echo */
	bool blocked;
};

static struct result measure(struct conn *c, bool strict)
{
	uint64_t took[SAMPLES], machine[SAMPLES];
	struct result r = { 0 };

	for (unsigned int i = 0; i < SAMPLES; i++) {
		took[i] = question(c, strict);
		r.blocked = took[i] == UINT64_MAX;
		if (r.blocked)
			return r;
		usleep(500 + 37 * (i % 31));
		machine[i] = question(NULL, strict);
		if (machine[i] == UINT64_MAX)
			die("the process that answers does not");
		usleep(500);
	}
	qsort(took, SAMPLES, sizeof(took[0]), by_size);
	qsort(machine, SAMPLES, sizeof(machine[0]), by_size);
	r.p99 = took[SAMPLES * 99 / 100] / 1000;
	r.max = took[SAMPLES - 1] / 1000;
	r.machine = machine[SAMPLES * 99 / 100] / 1000;
	return r;
}

/* Places in the model's table of file descriptors. */
static unsigned int table_size(void)
{
	unsigned int size = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", model);
	f = fopen(path, "re");
	while (f && !size && fgets(line, sizeof(line), f))
		sscanf(line, "FDSize: %u", &size);
	if (!size)
		die("%s: no FDSize", path);
	fclose(f);
	return size;
}

/* There is room for the memory of a guest, whatever others have mapped. */
static bool map_some(struct conn *c)
{
	const uint64_t size = 1ull << 30;
	bool ok = true;

	for (unsigned int i = 0; i < 50 && ok; i++) {
		int fd = memory(size);

		ok = !map(c, 0, size, fd) && !unmap(c, 0, size, 0);
		close(fd);
		usleep(2000);
	}
	return ok;
}

static void *attacker(void *arg)
{
	void (*const *fn)(struct conn *c) = arg;
	struct conn c = { .fd = -1 };

	hello_again(&c);
	if (c.fd >= 0 && !stop)
		(*fn)(&c);
	if (c.fd >= 0)
		close(c.fd);
	return NULL;
}

static void start_model(const char *path)
{
	char arg[4][160], line[16];
	int out[2];

	if (pipe(out))
		die("pipe");
	snprintf(nic[0], sizeof(nic[0]), "%s/nic0", dir);
	snprintf(nic[1], sizeof(nic[1]), "%s/nic1", dir);
	snprintf(control, sizeof(control), "%s/control", dir);
	snprintf(dgram, sizeof(dgram), "%s/dgram", dir);
	snprintf(peer, sizeof(peer), "%s/peer", dir);
	snprintf(arg[0], sizeof(arg[0]), "socket=%s", nic[0]);
	snprintf(arg[1], sizeof(arg[1]), "socket=%s", nic[1]);
	snprintf(arg[2], sizeof(arg[2]), "local=%s,remote=%s", dgram, peer);
	model = fork();
	if (!model) {
		dup2(out[1], 1);
		dup2(open("/dev/null", O_WRONLY), 2);
		execl(path, path, "--nic", arg[0], "--nic", arg[1], "--dgram", arg[2], "--control",
		      control, NULL);
		_exit(127);
	}
	close(out[1]);
	if (read(out[0], line, sizeof(line)) < 5)
		die("%s does not start", path);
	close(out[0]);
}

static void stop_model(void)
{
	int status;

	kill(model, SIGTERM);
	for (unsigned int i = 0; i < BLOCKED_S * 100; i++) {
		if (waitpid(model, &status, WNOHANG) == model) {
			if (!WIFEXITED(status) || WEXITSTATUS(status))
				printf("not ok the model ends: status 0x%x\n", status);
			return;
		}
		usleep(10000);
	}
	printf("not ok the model ends: blocked\n");
	kill(model, SIGKILL);
	waitpid(model, &status, 0);
}

static void start_echo(void)
{
	int pair[2];
	char buf[64];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		die("socketpair: %s", strerror(errno));
	echo = fork();
	if (!echo) {
		close(pair[0]);
		while ((n = recv(pair[1], buf, sizeof(buf), 0)) > 0 && send(pair[1], buf, n, 0) == n)
			;
		_exit(0);
	}
	close(pair[1]);
	echo_fd = pair[0];
}

/* A new model for each: what one attack leaves behind is not the next one's. */
static bool one(const char *path, unsigned int i, bool strict)
{
	unsigned int table, grown = 0;
	struct conn victim;
	struct result res;
	uint64_t soon = SOON_US;
	pthread_t thread;
	bool ok, mapped;

	start_model(path);
	if (!hello(&victim, nic[1]))
		die("the victim is not served");
	table = table_size();
	stop = false;
	acts = 0;
	/* The others begin at once. */
	begun = attacks[i].fn != steering;
	pthread_create(&thread, NULL, attacker, (void *)&attacks[i].fn);
	for (unsigned int n = 0; !begun && n < BLOCKED_S * 1000; n++)
		usleep(1000);
	usleep(50000);
	res = measure(&victim, strict);
	mapped = res.blocked || map_some(&victim);
	grown = table_size() - table;
	stop = true;
	if (!strict && soon < 4 * res.machine)
		soon = 4 * res.machine;
	ok = !res.blocked && res.p99 <= soon && begun && acts && mapped && !grown;
	if (res.blocked)
		printf("not ok %s: no answer\n", attacks[i].name);
	else if (!mapped)
		printf("not ok %s: the victim's memory is refused\n", attacks[i].name);
	else if (grown)
		printf("not ok %s: the table of file descriptors grew from %u places to %u\n",
		       attacks[i].name, table, table + grown);
	else
		printf("%s %s: %llu us, at most %llu, the machine %llu (%lu acts)\n",
		       ok ? "ok" : "not ok", attacks[i].name, (unsigned long long)res.p99,
		       (unsigned long long)res.max, (unsigned long long)res.machine,
		       (unsigned long)acts);
	fflush(stdout);
	stop_model();
	close(victim.fd);
	pthread_join(thread, NULL);
	return ok;
}

int main(int argc, char **argv)
{
	bool strict = argc > 1 && !strcmp(argv[1], "-s"), ok = true;
	const char *only = getenv("SKUA_ONLY");

	if (argc != 2 + strict)
		die("usage: attack [-s] MODEL");
	signal(SIGPIPE, SIG_IGN);
	if (!mkdtemp(dir))
		die("mkdtemp: %s", strerror(errno));
	start_echo();
	for (unsigned int i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (!only || strstr(attacks[i].name, only))
			ok &= one(argv[1 + strict], i, strict);
	}
	close(echo_fd);
	waitpid(echo, NULL, 0);
	unlink(peer);
	rmdir(dir);
	return ok ? 0 : 1;
}
