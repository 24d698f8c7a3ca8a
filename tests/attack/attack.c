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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <skua/hw/pci.h>
#include <skua/hw/regs.h>

#include "attack.h"

#define SAMPLES		300
#define SOON_US		5000

char dir[] = "/tmp/skua-attack-XXXXXX";
char nic[2][64], control[64], dgram[64], peer[64];
pid_t model, echo;
atomic_bool stop, begun;
atomic_ulong acts;
static int echo_fd;

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
	const struct attack *attack = arg;
	struct conn c = { .fd = -1 };

	hello_again(&c);
	if (c.fd >= 0 && !stop)
		attack->fn(&c);
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
	begun = !attacks[i].begins;
	pthread_create(&thread, NULL, attacker, (void *)&attacks[i]);
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
	for (unsigned int i = 0; i < num_attacks; i++) {
		if (!only || strstr(attacks[i].name, only))
			ok &= one(argv[1 + strict], i, strict);
	}
	close(echo_fd);
	waitpid(echo, NULL, 0);
	unlink(peer);
	rmdir(dir);
	return ok ? 0 : 1;
}
