// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon, as one thread and as several: clients that come, use their NIC and die, while
 * frames come in, commands are given and counters are read; and it ends well. Which sanitizer
 * looks at it is that which it was built with: what it finds makes the exit code.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/pci_regs.h>
#include <cmocka.h>

#include "fds.h"
#include "host/proto.h"
#include "loop.h"

#define NICS		4
#define LIVES		20
#define FRAMES		200
#define RAM		(2u << 20)
#define PATIENCE_MS	60000

static char dir[32], nic[NICS][64], control[64], dgram[64], peer[64], stats[64], pcap[64];
static pid_t model;
static int out;
static atomic_uint wrong;

static void start(const char *how)
{
	char arg[NICS + 1][160];
	const char *argv[32] = { MODEL, how };
	int pipes[2], n = how ? 2 : 1;

	strcpy(dir, "/tmp/skua-daemon-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(control, sizeof(control), "%s/control", dir);
	snprintf(dgram, sizeof(dgram), "%s/dgram", dir);
	snprintf(peer, sizeof(peer), "%s/peer", dir);
	snprintf(stats, sizeof(stats), "%s/stats", dir);
	snprintf(pcap, sizeof(pcap), "%s/pcap", dir);
	for (unsigned int i = 0; i < NICS; i++) {
		snprintf(nic[i], sizeof(nic[i]), "%s/nic%u", dir, i);
		/* The last two reach each other's memory. */
		snprintf(arg[i], sizeof(arg[i]), "socket=%s%s", nic[i],
			 i < NICS - 2 ? "" : ",bus=3");
		argv[n++] = "--nic";
		argv[n++] = arg[i];
	}
	snprintf(arg[NICS], sizeof(arg[NICS]), "local=%s,remote=%s", dgram, peer);
	argv[n++] = "--dgram";
	argv[n++] = arg[NICS];
	argv[n++] = "--control";
	argv[n++] = control;
	argv[n++] = "--stats";
	argv[n++] = stats;
	argv[n++] = "--pcap";
	argv[n++] = pcap;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	model = fork();
	assert_true(model >= 0);
	if (!model) {
		dup2(pipes[1], 1);
		execv(MODEL, (char *const *)argv);
		_exit(127);
	}
	close(pipes[1]);
	out = pipes[0];
}

static void wait_ready(void)
{
	struct pollfd p = { .fd = out, .events = POLLIN };
	char line[16] = "";

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	assert_int_equal(read(out, line, sizeof(line) - 1), 6);
	assert_string_equal(line, "ready\n");
}

/* Its exit code. */
static int wait_end(void)
{
	int status;

	close(out);
	assert_int_equal(waitpid(model, &status, 0), model);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* What it made, but for these, it has removed. */
static void clean(void)
{
	unlink(stats);
	unlink(pcap);
	assert_int_equal(rmdir(dir), 0);
}

/* --- a client --- */

static int dial(const char *path, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close(fd);
	return -1;
}

/* A message of up to two parts, and its reply. False: it is not answered, or by an error. */
static bool ask(int fd, uint16_t cmd, const void *a, size_t alen, const void *b, size_t blen,
		const int *pass)
{
	static _Atomic uint16_t id;
	uint8_t buf[256];
	struct vfu_hdr hdr = { .id = id++, .cmd = cmd, .size = sizeof(hdr) + alen + blen };
	union fds_control room;
	struct iovec iov = { .iov_base = buf, .iov_len = hdr.size };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t left;
	ssize_t n;

	memcpy(buf, &hdr, sizeof(hdr));
	if (alen)
		memcpy(buf + sizeof(hdr), a, alen);
	if (blen)
		memcpy(buf + sizeof(hdr) + alen, b, blen);
	fds_attach(&mh, &room, pass, pass ? 1 : 0);
	if (sendmsg(fd, &mh, MSG_NOSIGNAL) != (ssize_t)hdr.size ||
	    recv(fd, &hdr, sizeof(hdr), MSG_WAITALL) != sizeof(hdr) || hdr.flags & VFU_F_ERROR)
		return false;
	for (left = hdr.size - sizeof(hdr); left; left -= (size_t)n) {
		n = recv(fd, buf, left < sizeof(buf) ? left : sizeof(buf), 0);
		if (n <= 0)
			return false;
	}
	return true;
}

/* A life of a client: memory, registers, a reset, and an end without a word. */
static bool live(const char *path, int ram)
{
	struct vfu_version v = { 0, 1 };
	uint16_t command = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
	struct vfu_region_rw bus = { .offset = PCI_COMMAND, .count = sizeof(command),
				     .region = VFIO_PCI_CONFIG_REGION_INDEX };
	struct vfu_region_rw reg = { .count = 4, .region = VFIO_PCI_BAR0_REGION_INDEX };
	struct vfu_dma_map map = {
		.argsz = sizeof(map), .iova = 0x100000, .size = RAM,
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
	};
	int fd = dial(path, SOCK_STREAM);
	bool ok = fd >= 0 && ask(fd, VFU_VERSION, &v, sizeof(v), NULL, 0, NULL) &&
		  ask(fd, VFU_DMA_MAP, &map, sizeof(map), NULL, 0, &ram) &&
		  ask(fd, VFU_REGION_WRITE, &bus, sizeof(bus), &command, sizeof(command), NULL);

	for (unsigned int i = 0; i < 50 && ok; i++) {
		reg.offset = i % 8 * 4;
		ok = ask(fd, VFU_REGION_READ, &reg, sizeof(reg), NULL, 0, NULL);
	}
	ok = ok && ask(fd, VFU_DEVICE_RESET, NULL, 0, NULL, 0, NULL);
	close(fd);
	return ok;
}

/* The model may not have noticed yet that the client before has gone. */
static void *client(void *arg)
{
	const char *path = arg;
	int ram = memfd_create("ram", MFD_CLOEXEC);

	if (ftruncate(ram, RAM))
		atomic_fetch_add(&wrong, 1);
	for (unsigned int lived = 0, tries = 0; lived < LIVES; tries++) {
		lived += live(path, ram);
		if (tries == 100 * LIVES) {
			atomic_fetch_add(&wrong, 1);
			break;
		}
	}
	close(ram);
	return NULL;
}

/* --- others --- */

static void tell(int fd, const char *line, const char *answer)
{
	char got[9000] = "";

	assert_int_equal(send(fd, line, strlen(line), 0), strlen(line));
	assert_true(recv(fd, got, sizeof(got) - 1, 0) > 0);
	if (strncmp(got, answer, strlen(answer)))
		fail_msg("'%s' is answered '%s'", line, got);
}

static int control_socket(void)
{
	int fd = dial(control, SOCK_DGRAM);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	assert_true(fd >= 0);
	/* A name of its own, made up by the kernel. */
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(sa_family_t)), 0);
	return fd;
}

static void command_all(int fd)
{
	tell(fd, "fault loss=1%,seed=4", "ok");
	tell(fd, "fault nonsense", "fault");
	tell(fd, "cmd-fault CREATE_CQ@7:fail=LIMIT", "ok");
	tell(fd, "cmd-fault nic3/CREATE_QP@9:ignore", "ok");
	tell(fd, "cmd-fault show", "nic0:");
	tell(fd, "cmd-fault nic1/any:off", "");
	tell(fd, "onchip nic2/show", "");
	tell(fd, "tlp nic0/show", "");
	tell(fd, "tlp nic9/show", "no NIC is called 'nic9'");
	tell(fd, "fault off", "ok");
	assert_int_equal(kill(model, SIGUSR1), 0);
}

/* A counter of the file, or -1. */
static long long counter(const char *name)
{
	FILE *f = fopen(stats, "r");
	long long val = -1;
	char line[128];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ' ')
			val = atoll(line + strlen(name));
	fclose(f);
	return val;
}

static void play(const char *how)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 9, 9, 9, 9, 9, 0x88, 0xb5 };
	pthread_t thread[NICS];
	char name[64];
	int fd, ctl;

	alarm(240);
	signal(SIGPIPE, SIG_IGN);
	start(how);
	wait_ready();
	ctl = control_socket();
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strcpy(addr.sun_path, dgram);
	for (unsigned int i = 0; i < NICS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, client, nic[i]), 0);
	for (unsigned int i = 0; i < FRAMES; i++) {
		assert_int_equal(sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&addr,
					sizeof(addr)), sizeof(frame));
		if (i % 20 == 0)
			command_all(ctl);
	}
	for (unsigned int i = 0; i < NICS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	/* All of them have come to each NIC: who has answered this has taken them before. */
	for (unsigned int i = 0, n = 0; n < NICS && i < PATIENCE_MS; i++) {
		remove(stats);
		kill(model, SIGUSR1);
		tell(ctl, "fault off", "ok");
		while (access(stats, R_OK))
			usleep(1000);
		tell(ctl, "fault off", "ok");
		for (n = 0; n < NICS; n++) {
			snprintf(name, sizeof(name), "wire.nic%u.tx_frames", n);
			if (counter(name) != FRAMES)
				break;
		}
	}
	kill(model, SIGTERM);
	close(fd);
	close(ctl);
	/* What is in the file now is the end. */
	assert_int_equal(wait_end(), 0);
	for (unsigned int i = 0; i < NICS; i++) {
		snprintf(name, sizeof(name), "wire.nic%u.tx_frames", i);
		assert_int_equal(counter(name), FRAMES);
		snprintf(name, sizeof(name), "wire.nic%u.drop_queue", i);
		assert_int_equal(counter(name), 0);
		snprintf(name, sizeof(name), "host.nic%u.messages", i);
		assert_true(counter(name) >= LIVES * 50);
	}
	assert_int_equal(counter("wire.dgram0.rx_frames"), FRAMES);
	assert_int_equal(counter("wire.dgram0.fault_loss"), 0);
	clean();
	alarm(0);
}

static void test_one_thread(void **state)
{
	(void)state;
	play(NULL);
}

static void test_threads(void **state)
{
	(void)state;
	play("--threads");
}

/* File descriptors of the model. */
static unsigned int descriptors(void)
{
	struct dirent *entry;
	char path[32];
	unsigned int n = 0;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", model);
	fds = opendir(path);
	assert_non_null(fds);
	while ((entry = readdir(fds)))
		n += entry->d_name[0] != '.';
	closedir(fds);
	return n;
}

/* A thread has no more file descriptors of its own than the limit is raised for. */
static void test_descriptors(void **state)
{
	/* The last two NICs have one thread. */
	unsigned int n[2], threads = NICS - 1;

	(void)state;
	alarm(60);
	for (unsigned int i = 0; i < 2; i++) {
		start(i ? "--threads" : NULL);
		wait_ready();
		n[i] = descriptors();
		kill(model, SIGTERM);
		assert_int_equal(wait_end(), 0);
		clean();
	}
	/* With threads the main thread has its end of the trunk, and no interrupts. */
	assert_in_range(n[1] - n[0], 1, threads * LOOP_FDS);
	alarm(0);
}

/* What cannot be set up ends it, with all that was: paths in use, and one that cannot be made. */
static void test_refused(void **state)
{
	(void)state;
	alarm(60);
	start("--threads");
	wait_ready();
	for (unsigned int i = 0; i < 2; i++) {
		char arg[2][160];
		int status;
		pid_t other;

		snprintf(arg[0], sizeof(arg[0]), "socket=%s/other", dir);
		snprintf(arg[1], sizeof(arg[1]), "socket=%s", i ? nic[1] : "/nonexistent/nic");
		other = fork();
		assert_true(other >= 0);
		if (!other) {
			execl(MODEL, MODEL, "--threads", "--nic", arg[0], "--nic", arg[1], NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(other, &status, 0), other);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 1);
	}
	kill(model, SIGTERM);
	assert_int_equal(wait_end(), 0);
	clean();
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
