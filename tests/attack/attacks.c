// SPDX-License-Identifier: GPL-2.0
/*
 * The attacks, by clients of the one NIC or by senders of datagrams.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <arpa/inet.h>
#include <netinet/in.h>
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
#include "attack.h"
#include "pci.h"

#define PG		4096ull
#define MULTI		43000u

/* More than the model bears. */
#define ENOUGH	100

static struct sockaddr_in listener = { .sin_family = AF_INET };

static void begin_listening(void)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 8192;
	socklen_t len = sizeof(listener);

	listener.sin_port = 0;
	listener.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(s, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(s, (struct sockaddr *)&listener, len) || listen(s, 4096) ||
	    getsockname(s, (struct sockaddr *)&listener, &len))
		die("no TCP socket: %s", strerror(errno));
	/* Nobody accepts, and it stays until the end: what is sent here is not read. */
}

/* A socket whose last close() waits for an hour. */
static int lingering(void)
{
	static char data[65536];
	struct linger hour = { .l_onoff = 1, .l_linger = 3600 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 8192;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (connect(fd, (struct sockaddr *)&listener, sizeof(listener)))
		die("connect: %s", strerror(errno));
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour));
	return fd;
}

/* Sends the descriptor to the model; false: it is not sent. */
typedef bool send_fd_fn(void *arg, int fd);

/*
 * Sends one from a process of its own. If the model has closed its reference already, or the
 * kernel refuses to pass it, the sender's is the last: close() would wait for the hour here,
 * and the attack and its test with it. The end of a process does not wait.
 */
static bool send_lingering(send_fd_fn *send_fd, void *arg)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(!send_fd(arg, lingering()));
	if (child > 0)
		waitpid(child, &status, 0);
	acts++;
	return !status;
}

static bool send_request(void *arg, int fd)
{
	return put(arg, 99, VFU_F_NO_REPLY, NULL, 0, NULL, 0, &fd, 1);
}

static void descriptors(struct conn *c)
{
	begin_listening();
	for (unsigned int n = 0; !stop && n < ENOUGH; n++) {
		if (!send_lingering(send_request, c))
			hello_again(c);
	}
	while (!stop)
		hello_again(c);
}

/* A frame, or a command to the control socket, with a descriptor (-1: without). */
static bool send_datagram(void *arg, int fd)
{
	uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 };
	struct iovec iov = { .iov_base = frame, .iov_len = sizeof(frame) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union fds_control control;

	fds_attach(&mh, &control, &fd, fd >= 0);
	return sendmsg(*(int *)arg, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

static void datagrams(const char *to)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, to);
	if (connect(s, (struct sockaddr *)&addr, sizeof(addr)))
		die("connect to %s: %s", to, strerror(errno));
	begin_listening();
	for (unsigned int n = 0; !stop && n < ENOUGH; n++)
		send_lingering(send_datagram, &s);
	while (!stop) {
		send_datagram(&s, -1);
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
				get(c);
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
			get(c);
	}
}

static void nonsense(struct conn *c)
{
	while (!stop) {
		if (!put(c, 99, VFU_F_NO_REPLY, NULL, 0, NULL, 0, NULL, 0))
			hello_again(c);
	}
}

const struct attack attacks[] = {
	{ "nonsense", nonsense },
	{ "doorbells", doorbells },
	{ "large reads", large_reads },
	{ "reconnects", reconnects },
	{ "resets", resets },
	{ "function level resets", function_resets },
	{ "maps of ICM", icm_maps },
	{ "frames for many rules", steering, true },
	{ "many ranges", many_ranges },
	{ "small files", small_files },
	{ "large files", large_files },
	{ "last references", last_reference },
	{ "event descriptors", event_descriptors },
	{ "descriptors that do not close", descriptors },
	{ "the same, with frames", frames },
	{ "the same, to the control socket", commands_to_control },
};

const unsigned int num_attacks = sizeof(attacks) / sizeof(attacks[0]);
