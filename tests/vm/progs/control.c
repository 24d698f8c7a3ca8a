// SPDX-License-Identifier: GPL-2.0
/*
 * skua-control -d DEV -g GID [-q QPS] [-n TIMES]: what calls of the control path take, in
 * microseconds: registering memory, making QPs and connecting them, the end of a process
 * that has many. One line "NAME VALUE" each, medians of TIMES; with 0 only the last of these.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

static struct dev dev;
static unsigned int times = 21;

static void tell(const char *name, double *seconds, unsigned int n)
{
	sort_values(seconds, n);
	printf("%s %.1f\n", name, seconds[n / 2] * 1e6);
	fflush(stdout);
}

static void registering(const char *name, size_t len, unsigned int n)
{
	double reg[n], dereg[n], t;
	char what[64];
	struct ibv_mr *mr;
	void *buf = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (buf == MAP_FAILED)
		die("%zu bytes: %m", len);
	for (unsigned int i = 0; i < n; i++) {
		t = now();
		mr = ibv_reg_mr(dev.pd, buf, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		reg[i] = now() - t;
		if (!mr)
			die("reg_mr of %zu bytes: %m", len);
		t = now();
		if (ibv_dereg_mr(mr))
			die("dereg_mr of %zu bytes: %m", len);
		dereg[i] = now() - t;
	}
	munmap(buf, len);
	snprintf(what, sizeof(what), "reg_mr %s", name);
	tell(what, reg, n);
	snprintf(what, sizeof(what), "dereg_mr %s", name);
	tell(what, dereg, n);
}

static struct ibv_qp *make(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { 16, 16, 1, 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &attr);

	if (!qp)
		die("create_qp: %m");
	return qp;
}

/* Connected to itself, which takes the same commands as any other peer */
static void ready(struct ibv_qp *qp)
{
	struct addr self = qp_addr(&dev, qp, 1);

	qp_connect(&dev, qp, 1, &self, &link_default);
}

static void queue_pairs(void)
{
	double create[times], connect[times], destroy[times], t;
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0);
	struct ibv_qp *qp;

	if (!cq)
		die("create_cq: %m");
	for (unsigned int i = 0; i < times; i++) {
		t = now();
		qp = make(cq);
		create[i] = now() - t;
		t = now();
		ready(qp);
		connect[i] = now() - t;
		t = now();
		if (ibv_destroy_qp(qp))
			die("destroy_qp: %m");
		destroy[i] = now() - t;
	}
	ibv_destroy_cq(cq);
	tell("create_qp", create, times);
	tell("modify_qp to RTS", connect, times);
	tell("destroy_qp", destroy, times);
}

static void holder(const char *name, int gid, unsigned int qps, int fd)
{
	struct ibv_cq *cq;

	dev_open(&dev, name, gid);
	cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0);
	if (!cq)
		die("create_cq: %m");
	for (unsigned int i = 0; i < qps; i++)
		ready(make(cq));
	if (write(fd, "", 1) != 1)
		die("pipe: %m");
	pause();
}

/* A process with so many QPs is killed: until the kernel has taken them down */
static void ending(const char *name, int gid, unsigned int qps)
{
	double began, made;
	int fd[2], status;
	pid_t pid;
	char c;

	if (pipe(fd))
		die("pipe: %m");
	began = now();
	pid = fork();
	if (pid < 0)
		die("fork: %m");
	if (!pid) {
		close(fd[0]);
		holder(name, gid, qps, fd[1]);
		_exit(1);
	}
	close(fd[1]);
	if (read(fd[0], &c, 1) != 1)
		die("no %u QPs", qps);
	close(fd[0]);
	made = now();
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	printf("%u QPs made %.1f\n%u QPs closed %.1f\n", qps, (made - began) * 1e6, qps,
	       (now() - made) * 1e6);
}

int main(int argc, char **argv)
{
	const struct rlimit locked = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned int qps = 10000;
	const char *name = NULL;
	int gid = 0, c;

	while ((c = getopt(argc, argv, "d:g:q:n:")) != -1) {
		switch (c) {
		case 'd': name = optarg; break;
		case 'g': gid = atoi(optarg); break;
		case 'q': qps = atoi(optarg); break;
		case 'n': times = atoi(optarg); break;
		default: die("usage: -d DEV -g GID [-q QPS] [-n TIMES]");
		}
	}
	if (!name)
		die("usage: -d DEV -g GID [-q QPS] [-n TIMES]");
	setrlimit(RLIMIT_MEMLOCK, &locked);
	/* Before this process has a context: a child shares none */
	if (qps)
		ending(name, gid, qps);
	if (!times)
		return 0;
	dev_open(&dev, name, gid);
	registering("4 KiB", 4096, times);
	registering("1 MiB", 1 << 20, times);
	registering("1 GiB", 1 << 30, 3);
	if (qps)
		queue_pairs();
	dev_close(&dev);
	return 0;
}
