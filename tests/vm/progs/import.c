// SPDX-License-Identifier: GPL-2.0
/*
 * skua-import -d DEV -g GID [-n MESSAGES] [-r] PROGRAM: a context shared with another process.
 * This one opens the device, and PROGRAM, which is this program for the same or the other width
 * of addresses, imports the context, the domain and a region of it. Both then write and read by
 * QPs and CQs of their own, at the same time, with the doorbells of one UAR page. With -r the
 * import has to be refused: EOPNOTSUPP.
 *
 * PROGRAM is started with -i FD,PD,MR,RKEY,ADDRESS besides.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define LEN	3000

static const char *name;
static int gid, messages = 2000;
static bool refused;

/*
 * Writes to a place, reads it again, and asks for an event of each second message, so that both
 * kinds of doorbells are rung. @off: where this process's part of the region is.
 */
static void move(struct dev *dev, struct ibv_pd *pd, uint64_t addr, uint32_t rkey, unsigned int off)
{
	static uint8_t buf[2][LEN] __attribute__((aligned(64)));
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq *cq = ch ? ibv_create_cq(dev->ctx, 16, NULL, ch, 0) : NULL;
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp *qp = cq && mr ? ibv_create_qp(pd, &init) : NULL;
	struct link_attr l = link_default;
	struct addr a;
	int i;

	if (!qp)
		die("channel %d, CQ %d, region %d, QP %d: %m", !!ch, !!cq, !!mr, !!qp);
	l.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	l.rd_atomic = 1;
	a = qp_addr(dev, qp, 100 + off);
	qp_connect(dev, qp, 100 + off, &a, &l);
	for (i = 0; i < messages; i++) {
		bool read = i & 1;
		struct ibv_sge sg = { (uintptr_t)buf[read], LEN, mr->lkey };
		struct ibv_send_wr wr = {
			.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			.sg_list = &sg, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { addr + off, rkey },
		}, *bad;
		struct ibv_wc wc;

		if (!read)
			memset(buf[0], i + off, LEN);
		if (read && ibv_req_notify_cq(cq, 0))
			die("req_notify_cq: %m");
		if (ibv_post_send(qp, &wr, &bad))
			die("post_send %d: %m", i);
		if (!(read ? wait_one(ch, cq, &wc, 20) : poll_one(cq, &wc, 20)))
			die("message %d does not end", i);
		if (wc.status || (read && memcmp(buf[0], buf[1], LEN)))
			die("message %d: %s", i, ibv_wc_status_str(wc.status));
	}
	if (ibv_destroy_qp(qp) || ibv_dereg_mr(mr) || ibv_destroy_cq(cq) ||
	    ibv_destroy_comp_channel(ch))
		die("something does not go: %m");
}

static int importer(const char *what)
{
	unsigned int fd, pd_handle, mr_handle, rkey;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct dev dev = { .gid_index = gid };
	uint64_t addr;

	if (sscanf(what, "%u,%u,%u,%u,%" SCNu64, &fd, &pd_handle, &mr_handle, &rkey, &addr) != 5)
		die("-i FD,PD,MR,RKEY,ADDRESS");
	dev.ctx = ibv_import_device(fd);
	if (refused) {
		if (dev.ctx || errno != EOPNOTSUPP)
			die("a process of %zu bits may import: %m", 8 * sizeof(long));
		return 0;
	}
	if (!dev.ctx)
		die("import_device: %m");
	if (ibv_query_port(dev.ctx, 1, &dev.port) || ibv_query_gid(dev.ctx, 1, gid, &dev.gid))
		die("query of the port or the GID: %m");
	pd = ibv_import_pd(dev.ctx, pd_handle);
	mr = pd ? ibv_import_mr(pd, mr_handle) : NULL;
	if (!mr || mr->rkey != rkey)
		die("domain %d, region %d: %m", !!pd, !!mr);
	move(&dev, pd, addr, rkey, LEN);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	return ibv_close_device(dev.ctx);
}

static int exporter(const char *program)
{
	static uint8_t shared[2 * LEN] __attribute__((aligned(64)));
	char what[100], num[12], index[12];
	struct ibv_mr *mr;
	struct dev dev;
	int status, fd;
	pid_t pid;

	dev_open(&dev, name, gid);
	mr = ibv_reg_mr(dev.pd, shared, sizeof(shared), IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	/* Unlike the context's own, a copy stays open in PROGRAM. */
	fd = dup(dev.ctx->cmd_fd);
	if (!mr || fd < 0)
		die("region %d, file %d: %m", !!mr, fd);
	snprintf(what, sizeof(what), "%d,%u,%u,%u,%" PRIuPTR, fd, dev.pd->handle, mr->handle,
		 mr->rkey, (uintptr_t)shared);
	snprintf(num, sizeof(num), "%d", messages);
	snprintf(index, sizeof(index), "%d", gid);
	pid = fork();
	if (!pid) {
		execl(program, program, "-g", index, "-n", num, "-i", what, refused ? "-r" : NULL,
		      NULL);
		die("%s: %m", program);
	}
	if (pid < 0)
		die("fork: %m");
	move(&dev, dev.pd, (uintptr_t)shared, mr->rkey, 0);
	if (waitpid(pid, &status, 0) != pid || status)
		die("%s: status %#x", program, status);
	printf("%zu bits, and %s: %d messages each\n", 8 * sizeof(long), program, messages);
	close(fd);
	if (ibv_dereg_mr(mr))
		die("dereg_mr: %m");
	dev_close(&dev);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "d:g:n:i:r")) != -1) {
		if (opt == 'd')
			name = optarg;
		else if (opt == 'g')
			gid = atoi(optarg);
		else if (opt == 'n')
			messages = atoi(optarg);
		else if (opt == 'i')
			what = optarg;
		else if (opt == 'r')
			refused = true;
		else
			die("usage: skua-import -d DEV -g GID [-n MESSAGES] [-r] PROGRAM");
	}
	alarm(120);
	if (what)
		return importer(what);
	if (!argv[optind])
		die("usage: skua-import -d DEV -g GID [-n MESSAGES] [-r] PROGRAM");
	return exporter(argv[optind]);
}
