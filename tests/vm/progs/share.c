// SPDX-License-Identifier: GPL-2.0
/*
 * skua-share -d DEV -g GID [-f DIR | -e]; TAP, as root. Two users: one takes what can be had
 * without privilege until it is refused, and keeps it; the other makes its objects, moves
 * its data and ends as if it were alone. DIR is on a file system that may be frozen, so
 * that pages of its files do not come, as those of a file server that never answers. On
 * devices without on-demand paging the first user takes only contexts and device memory.
 * With -e it takes one kind of object after the other, of a device that has few (share_each.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/udmabuf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share.h"

#define GREEDY		2001
#define OTHER		2002
#define ODP		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |	\
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND)
#define LEN		(16 * PAGE)
#define BIG		(128UL << 20)
/* More contexts than any device has UAR pages, and the descriptors that each needs */
#define MAX_CONTEXTS	20000
#define MAX_FILES	(4 * MAX_CONTEXTS)

#define DMABUFS		500

static const char *name;
static int gid;
static bool odp;	/* the device has on-demand paging */

/* As a user without any privilege, who may pin what it likes. */
static void become(uid_t uid)
{
	struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit files = { MAX_FILES, MAX_FILES };

	if (setrlimit(RLIMIT_MEMLOCK, &any) || setrlimit(RLIMIT_NOFILE, &files) ||
	    setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		die("user %d: %m", uid);
}

uint8_t *share_map(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap: %m");
	return p;
}

/* --- what is taken -------------------------------------------------------------------- */

/* So many regions, or until there are no more. */
static int regions(struct dev *dev, void *p, size_t len, int most)
{
	int n = 0;

	while (n < most && ibv_reg_mr(dev->pd, p, len, ODP))
		n++;
	printf("# %d on-demand regions of %zu bytes: %s\n", n, len,
	       n < most ? strerror(errno) : "enough");
	return n;
}

/*
 * One dma-buf for each region: the debug kernel takes more than seven mappings of a page for
 * mappings that were not undone.
 */
static void dmabufs_make(int dmabufs[DMABUFS])
{
	struct udmabuf_create create = { .size = LEN };
	int fd = open("/dev/udmabuf", O_RDWR), i;

	create.memfd = memfd_create("skua-share", MFD_ALLOW_SEALING);
	if (ftruncate(create.memfd, DMABUFS * LEN) ||
	    fcntl(create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		die("memfd: %m");
	for (i = 0; i < DMABUFS; i++) {
		create.offset = i * LEN;
		dmabufs[i] = fd < 0 ? -1 : ioctl(fd, UDMABUF_CREATE, &create);
	}
	close(create.memfd);
	if (fd >= 0)
		close(fd);
}

static void take_memory(struct dev *dev, void *arg)
{
	struct ibv_counters_init_attr counters = { 0 };
	uint8_t *p = share_map(BIG);
	int *dmabufs = arg, n;
	size_t at;

	for (n = 0; n < DMABUFS && dmabufs[n] >= 0; n++)
		if (!ibv_reg_dmabuf_mr(dev->pd, 0, LEN, 0, dmabufs[n], ODP & ~IBV_ACCESS_ON_DEMAND))
			break;
	printf("# %d regions over dma-bufs\n", n);
	for (n = 0; n < 2000 && ibv_create_counters(dev->ctx, &counters); n++)
		;
	printf("# %d counters\n", n);
	for (n = 0; n < 500 && ibv_alloc_mw(dev->pd, IBV_MW_TYPE_2); n++)
		;
	printf("# %d windows\n", n);
	/* One page in each 2 MiB is there */
	for (at = 0; at < BIG; at += 2 << 20)
		p[at] = 1;
	regions(dev, p, BIG, 300);
	/* All of memory, until no more of it can be had */
	regions(dev, NULL, SIZE_MAX, 6000);
}

static uint64_t dm_size(struct dev *dev)
{
	struct ibv_device_attr_ex attr;

	if (ibv_query_device_ex(dev->ctx, NULL, &attr))
		die("query_device_ex: %m");
	return attr.max_dm_size;
}

/*
 * Contexts, of which each has a UAR page, and device memory: this user is refused both
 * before they are used up.
 */
static void take_device(struct dev *dev)
{
	struct ibv_alloc_dm_attr page = { .length = PAGE };
	uint64_t dm = 0, max = dm_size(dev);
	int n;

	while (ibv_alloc_dm(dev->ctx, &page))
		dm += PAGE;
	printf("# %llu bytes of device memory of %llu: %m\n", (unsigned long long)dm,
	       (unsigned long long)max);
	if (max && (errno != ENOSPC || dm != max / 4))
		die("device memory is not limited to a quarter of it, by ENOSPC");
	for (n = 0; n < MAX_CONTEXTS && ibv_open_device(dev->ctx->device); n++)
		;
	printf("# %d contexts: %m\n", n);
	if (errno != ENOSPC)
		die("contexts are not limited by ENOSPC");
}

/*
 * QPs that are connected to themselves; each READs into a page that does not come, until
 * more faults are outstanding than the kernel has workers for.
 */
static void take_faults(struct dev *dev, uint8_t *p, int num)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 2 * num, NULL, NULL, 0);
	uint8_t *from = share_map(PAGE);
	struct ibv_mr *src = ibv_reg_mr(dev->pd, from, PAGE, IBV_ACCESS_REMOTE_READ);
	struct ibv_mr *dst = ibv_reg_mr(dev->pd, p, LEN, ODP);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_qp **qp = calloc(num, sizeof(*qp));
	struct link_attr l = link_default;
	int i;

	if (!cq || !src || !dst || !qp)
		die("no CQ or region: %m");
	l.access = IBV_ACCESS_REMOTE_READ;
	for (i = 0; i < num; i++) {
		struct addr a;

		qp[i] = ibv_create_qp(dev->pd, &init);
		if (!qp[i])
			die("QP %d: %m", i);
		a = qp_addr(dev, qp[i], 100);
		qp_connect(dev, qp[i], 100, &a, &l);
	}
	/* From the first fault on the process cannot map memory any more. */
	for (i = 0; i < num; i++) {
		struct ibv_sge sg = { (uintptr_t)p, 8, dst->lkey };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_READ, .sg_list = &sg, .num_sge = 1,
			.wr.rdma = { (uintptr_t)from, src->rkey },
		}, *bad;

		if (ibv_post_send(qp[i], &wr, &bad))
			die("post_send: %m");
	}
	printf("# %d QPs wait for a page\n", num);
}

/* --- how the other fares -------------------------------------------------------------- */

/* It may have its quarter of the device memory in one piece. */
static bool other_has_dm(struct dev *dev)
{
	struct ibv_alloc_dm_attr attr = { .length = dm_size(dev) / 4 };
	struct ibv_dm *dm;

	if (!attr.length)
		return true;
	dm = ibv_alloc_dm(dev->ctx, &attr);
	if (!dm)
		return fail("%zu bytes of device memory: %m", attr.length);
	return !ibv_free_dm(dm) || fail("free_dm: %m");
}

static bool other_has(struct dev *dev)
{
	struct ibv_mr *all = ibv_reg_mr(dev->pd, NULL, SIZE_MAX, ODP);
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 16, NULL, NULL, 0);
	struct ibv_mw *mw = ibv_alloc_mw(dev->pd, IBV_MW_TYPE_2);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 },
	};
	uint8_t *from = share_map(LEN), *to = share_map(BIG);
	struct ibv_mr *src, *dst;
	struct link_attr l = link_default;
	struct ibv_qp *qp;
	struct addr a;
	int i;

	src = ibv_reg_mr(dev->pd, from, LEN, IBV_ACCESS_LOCAL_WRITE);
	dst = ibv_reg_mr(dev->pd, to, BIG, ODP);
	qp = ibv_create_qp(dev->pd, &init);
	if (!all || !cq || !mw || !src || !dst || !qp)
		return fail("all of memory %d, CQ %d, window %d, pinned %d, on demand %d, QP %d", !!all,
			    !!cq, !!mw, !!src, !!dst, !!qp);
	l.access = IBV_ACCESS_REMOTE_WRITE;
	a = qp_addr(dev, qp, 7);
	qp_connect(dev, qp, 7, &a, &l);
	for (i = 0; i < 8; i++) {
		uint8_t *where = to + i * (BIG / 8) + 123;
		struct ibv_sge sg = { (uintptr_t)from, LEN, src->lkey };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sg, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)where, i & 1 ? all->rkey : dst->rkey },
		}, *bad;
		struct ibv_wc wc;

		memset(from, i + 1, LEN);
		if (ibv_post_send(qp, &wr, &bad) || !poll_one(cq, &wc, 20))
			return fail("WRITE %d does not end", i);
		if (wc.status || memcmp(where, from, LEN))
			return fail("WRITE %d: %s", i, ibv_wc_status_str(wc.status));
	}
	if (ibv_destroy_qp(qp) || ibv_dealloc_mw(mw) || ibv_dereg_mr(all) || ibv_dereg_mr(dst) ||
	    ibv_dereg_mr(src) || ibv_destroy_cq(cq))
		return fail("something does not go: %m");
	return true;
}

static bool has_all(struct dev *dev)
{
	if (!other_has_dm(dev) || (odp && !other_has(dev)))
		return false;
	dev_close(dev);
	return true;
}

static bool other_fares(bool (*fare)(struct dev *dev))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct dev dev;

		become(OTHER);
		alarm(120);
		dev_open(&dev, name, gid);
		if (!fare(&dev)) {
			printf("# the other user: %s\n", why);
			exit(1);
		}
		exit(0);
	}
	return waitpid(pid, &status, 0) == pid &&
	       (!status || fail("the other user: status %#x", status));
}

/* --- both ----------------------------------------------------------------------------- */

/* Its file system is frozen; -1: none is. */
static int frozen_fd = -1;

static void thaw(void)
{
	if (frozen_fd >= 0 && ioctl(frozen_fd, FITHAW, 0))
		die("thaw: %m");
	frozen_fd = -1;
}

bool share_beside(void (*take)(struct dev *dev, void *arg), void *arg,
		  bool (*fare)(struct dev *dev))
{
	struct beside b;
	int status, i;
	bool ok;

	if (beside_start(&b)) {
		struct dev dev;

		become(GREEDY);
		dev_open(&dev, name, gid);
		take(&dev, arg);
		if (!beside_stay(&b))
			_exit(1);
		fflush(stdout);
		_exit(0);
	}
	ok = beside_ready(&b) ? other_fares(fare) : fail("the first user has failed");
	thaw();
	beside_end(&b);
	for (i = 0; i < 1500; i++) {
		if (waitpid(b.pid, &status, WNOHANG) == b.pid)
			return ok && (!status || fail("the first user: status %#x", status));
		usleep(100000);
	}
	kill(b.pid, SIGKILL);
	return fail("the first user does not end");
}

static bool beside(void (*take)(struct dev *dev, void *arg), void *arg)
{
	return share_beside(take, arg, has_all);
}

static void device(struct dev *dev, void *arg)
{
	(void)arg;
	take_device(dev);
}

static void faults(struct dev *dev, void *arg)
{
	uint8_t *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, *(int *)arg, 0);

	if (p == MAP_FAILED)
		die("mmap: %m");
	take_faults(dev, p, 1100);
}

/* Nobody can write to pages of the file: who tries waits, in the kernel too. */
static bool frozen(const char *dir)
{
	char path[200];
	int fd;
	bool ok;

	if (!dir)
		return skip("no file system to freeze");
	snprintf(path, sizeof(path), "%s/never", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, LEN) || ioctl(fd, FIFREEZE, 0))
		die("%s: %m", path);
	frozen_fd = fd;
	ok = beside(faults, &fd);
	close(fd);
	return ok;
}

static bool has_odp(void)
{
	struct ibv_device_attr_ex attr;
	struct dev dev;

	dev_open(&dev, name, gid);
	if (ibv_query_device_ex(dev.ctx, NULL, &attr))
		die("query_device_ex: %m");
	dev_close(&dev);
	return attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

int main(int argc, char **argv)
{
	const char *dir = NULL;
	bool each = false;
	int dmabufs[DMABUFS];
	int opt;

	while ((opt = getopt(argc, argv, "d:g:f:e")) != -1) {
		if (opt == 'd')
			name = optarg;
		else if (opt == 'g')
			gid = atoi(optarg);
		else if (opt == 'f')
			dir = optarg;
		else if (opt == 'e')
			each = true;
		else
			die("usage: skua-share -d DEV -g GID [-f DIR | -e]");
	}
	setlinebuf(stdout);
	if (each) {
		share_each(name, gid);
		return tap_end();
	}
	odp = has_odp();
	tap_case("contexts and device memory are taken until there is no more",
		 beside(device, NULL));
	if (!odp)
		return tap_end();
	dmabufs_make(dmabufs);
	tap_case("memory is taken until there is no more", beside(take_memory, dmabufs));
	tap_case("page faults that nobody serves", frozen(dir));
	return tap_end();
}
