// SPDX-License-Identifier: GPL-2.0
/*
 * Regions over dma-bufs: of memory of the system's, and of device memory, which is a
 * dma-buf when it is exported.
 */
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem.h"

/* --- of the system's memory ----------------------------------------------------------- */

#define DMABUF_LEN	(256 * 1024)

static int udmabuf(uint8_t **p)
{
	return dmabuf_memfd(p, DMABUF_LEN);
}

static int heap_dmabuf(uint8_t **p)
{
	struct dma_heap_allocation_data alloc = { .len = DMABUF_LEN, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);

	if (heap < 0)
		return -1;
	if (ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &alloc))
		die("dma-buf heap: %m");
	close(heap);
	*p = mmap(NULL, DMABUF_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, alloc.fd, 0);
	if (*p == MAP_FAILED)
		die("mmap of a dma-buf: %m");
	return alloc.fd;
}

static bool over_dmabuf(struct mem *m, int fd, uint8_t *p)
{
	static const struct { uint64_t off, len, iova; } range[] = {
		{ 0, DMABUF_LEN, 0 }, { 4096 + 77, 100000, 0x700000000000 + 77 },
		{ DMABUF_LEN - 5000, 5000, 0x123456000 + (DMABUF_LEN - 5000) % 4096 },
		/* One page more than the length alone would have */
		{ 4095, 2, 0x7000 + 4095 }, { 8191, 4098, 0x10000 + 4095 },
		{ 3 * 4096 + 1, 4096, 0x20001 },
	};
	struct mem_end *e = &m->end[1];
	unsigned int i;
	bool ok = true;

	for (i = 0; ok && i < sizeof(range) / sizeof(range[0]); i++) {
		uint32_t len = range[i].len < 60000 ? range[i].len : 60000;
		uint64_t end = range[i].iova + range[i].len;
		struct ibv_mr *mr;

		mr = ibv_reg_dmabuf_mr(e->dev.pd, range[i].off, range[i].len, range[i].iova, fd,
				       MEM_ALL);
		if (!mr)
			return errno == EOPNOTSUPP ? skip("no dma-buf regions") :
						     fail("reg_dmabuf_mr: %m");
		ok = write_arrives(m, p + range[i].off, range[i].iova, mr->rkey, len) &&
		     write_arrives(m, p + range[i].off + range[i].len - len, end - len, mr->rkey,
				   len) &&
		     rdma(m, IBV_WR_RDMA_READ, end - 1, mr->rkey, 2, IBV_WC_REM_ACCESS_ERR);
		if (ibv_dereg_mr(mr))
			ok = fail("dereg_mr: %m");
	}
	return ok;
}

/* @none: why @make has none. */
static bool over(struct mem *m, int (*make)(uint8_t **p), const char *none)
{
	uint8_t *p;
	int fd = make(&p);
	bool ok;

	if (fd < 0)
		return skip(none);
	ok = over_dmabuf(m, fd, p);
	close(fd);
	munmap(p, DMABUF_LEN);
	return ok;
}

static bool over_udmabuf(struct mem *m)
{
	return over(m, udmabuf, "no udmabuf");
}

static bool over_heap(struct mem *m)
{
	return over(m, heap_dmabuf, "no dma-buf heap");
}

/* The region keeps the buffer, whoever lets go of it. */
static bool dmabuf_outlives_fd(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	uint8_t *p;
	int fd = udmabuf(&p);
	bool ok;

	if (fd < 0)
		return skip("no udmabuf");
	mr = ibv_reg_dmabuf_mr(e->dev.pd, 0, DMABUF_LEN, 0, fd, MEM_ALL);
	close(fd);
	if (!mr) {
		munmap(p, DMABUF_LEN);
		return errno == EOPNOTSUPP ? skip("no dma-buf regions") : fail("reg: %m");
	}
	ok = write_arrives(m, p + 100, 100, mr->rkey, 50000);
	munmap(p, DMABUF_LEN);
	ok = ok && rdma(m, IBV_WR_RDMA_WRITE, 100, mr->rkey, 50000, IBV_WC_SUCCESS);
	/* Such a region cannot be changed: libibverbs says so. */
	ok = ok && expect_err("new memory",
			      ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, e->dev.pd, e->buf,
					   8192, 0) ? errno : 0, EINVAL) &&
	     rdma(m, IBV_WR_RDMA_READ, 100, mr->rkey, 50000, IBV_WC_SUCCESS);
	ibv_dereg_mr(mr);
	return ok;
}

static bool bad_dmabuf(struct mem *m)
{
	struct ibv_pd *pd = m->end[1].dev.pd;
	uint8_t *p;
	int file, fd;
	bool ok;

	if (!m->end[1].is_skua)
		return skip("not of soft-RoCE");
	if (ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, MEM_ALL))
		return fail("fd -1 is taken");
	if (!expect_err("fd -1", errno, EBADF))
		return false;
	file = open("/proc/self/exe", O_RDONLY);
	if (ibv_reg_dmabuf_mr(pd, 0, 4096, 0, file, MEM_ALL))
		return fail("any file is taken");
	if (!expect_err("no dma-buf", errno, EINVAL))
		return false;
	close(file);

	fd = udmabuf(&p);
	if (fd < 0)
		return skip("no udmabuf");
	ok = (!ibv_reg_dmabuf_mr(pd, 4096, DMABUF_LEN, 0, fd, MEM_ALL) &&
	      expect_err("beyond its end", errno, EINVAL)) &&
	     (!ibv_reg_dmabuf_mr(pd, 1, 4096, 0, fd, MEM_ALL) &&
	      expect_err("other place in the page", errno, EINVAL)) &&
	     (!ibv_reg_dmabuf_mr(pd, 0, 0, 0, fd, MEM_ALL) &&
	      expect_err("no bytes", errno, EINVAL)) &&
	     (!ibv_reg_dmabuf_mr(pd, -4096ULL, 8192, 0, fd, MEM_ALL) &&
	      expect_err("over the end", errno, EINVAL));
	close(fd);
	munmap(p, DMABUF_LEN);
	return ok;
}

/* Advice is for what is not pinned: so the device can do without the buffer for a while. */
static bool advice_taken(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	bool odp = e->is_skua && e->attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
	struct ibv_sge sge = { .addr = 100, .length = 50000 };
	struct ibv_mr *mr;
	uint8_t *p;
	int fd = udmabuf(&p), err;
	bool ok;

	if (fd < 0)
		return skip("no udmabuf");
	mr = ibv_reg_dmabuf_mr(e->dev.pd, 0, DMABUF_LEN, 0, fd, MEM_ALL);
	close(fd);
	if (!mr) {
		munmap(p, DMABUF_LEN);
		return errno == EOPNOTSUPP ? skip("no dma-buf regions") : fail("reg: %m");
	}
	sge.lkey = mr->lkey;
	err = ibv_advise_mr(e->dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			    IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	ok = expect_err("advice", err, odp ? 0 : EOPNOTSUPP) &&
	     write_arrives(m, p + 100, 100, mr->rkey, 50000);
	if (ok && odp) {
		sge.length = DMABUF_LEN;
		ok = expect_err("advice beyond the end",
				ibv_advise_mr(e->dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
					      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), EFAULT);
	}
	ibv_dereg_mr(mr);
	munmap(p, DMABUF_LEN);
	return ok;
}

/* --- of device memory ------------------------------------------------------------------ */

#define DM_LEN	(32 * 1024)

/*
 * Device memory of one end, and the region over it that another has; the same device's,
 * or another's to which there is a way on the bus.
 */
struct exported {
	struct ibv_dm *dm;
	int fd;
	struct ibv_mr *mr;
};

static bool dm_export(struct exported *x, struct ibv_context *ctx, size_t len)
{
	struct ibv_alloc_dm_attr attr = { .length = len };

	*x = (struct exported) { .fd = -1 };
	x->dm = ibv_alloc_dm(ctx, &attr);
	if (!x->dm)
		return errno == EOPNOTSUPP ? skip("no device memory") : fail("alloc_dm: %m");
	x->fd = dmabuf_export(ctx, dm_offset(x->dm));
	if (x->fd >= 0)
		return true;
	/* The kernel does not know the object, or not the way between devices. */
	if (errno == EPROTONOSUPPORT || errno == EOPNOTSUPP)
		return skip("no export of device memory");
	return fail("export: %m");
}

/* End 1 has the region. */
static bool dm_import(struct mem *m, struct exported *x)
{
	x->mr = ibv_reg_dmabuf_mr(m->end[1].dev.pd, 0, DM_LEN, 0, x->fd, MEM_ALL);
	if (x->mr)
		return true;
	if (errno == EINVAL && x->dm && m->end[1].dev.ctx->device != x->dm->context->device)
		return skip("no way between the devices");
	/* Without page faults it would have to be pinned, which the export is not. */
	if (errno == EOPNOTSUPP && !(m->end[1].attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		return skip("nothing that moves");
	return fail("reg_dmabuf_mr: %m");
}

static bool exported_end(struct exported *x)
{
	bool ok = true;

	if (x->mr && ibv_dereg_mr(x->mr))
		ok = fail("dereg_mr: %m");
	if (x->fd >= 0)
		close(x->fd);
	if (x->dm && ibv_free_dm(x->dm))
		ok = fail("free_dm: %m");
	return ok;
}

/*
 * Fill device memory from the processor. The doorbell that comes next may be of another
 * device, which stores to this one do not go before: but a read does not overtake them.
 */
static void dm_put(struct ibv_dm *dm, uint64_t at, const void *from, size_t len)
{
	uint64_t last;

	if (ibv_memcpy_to_dm(dm, at, from, len) ||
	    ibv_memcpy_from_dm(&last, dm, at + len - sizeof(last), sizeof(last)))
		die("memcpy of device memory: %m");
}

/* What is written by the key is there, and what is there is read by it. */
static bool dm_holds(struct mem *m, struct exported *x)
{
	static const struct { uint32_t at, len; } part[] = {
		{ 0, DM_LEN }, { 100, 5 }, { 4095, 8194 }, { DM_LEN - 7, 7 },
	};
	uint8_t *got = malloc(DM_LEN);
	unsigned int i;
	bool ok = true;

	for (i = 0; ok && i < sizeof(part) / sizeof(part[0]); i++) {
		uint8_t *buf = m->end[0].buf;
		uint32_t len = part[i].len;

		fill(buf, len, 1000 + i);
		ok = rdma(m, IBV_WR_RDMA_WRITE, part[i].at, x->mr->rkey, len, IBV_WC_SUCCESS);
		if (!ok)
			break;
		if (ibv_memcpy_from_dm(got, x->dm, 0, DM_LEN) ||
		    memcmp(got + part[i].at, buf, len)) {
			ok = fail("%u bytes at %u are not what was written", len, part[i].at);
			break;
		}
		fill(got, DM_LEN, 2000 + i);
		dm_put(x->dm, 0, got, DM_LEN);
		memset(buf, 0, len);
		ok = rdma(m, IBV_WR_RDMA_READ, part[i].at, x->mr->rkey, len, IBV_WC_SUCCESS) &&
		     (!memcmp(got + part[i].at, buf, len) ||
		      fail("%u bytes at %u are not what was read", len, part[i].at));
	}
	free(got);
	return ok && rdma(m, IBV_WR_RDMA_READ, DM_LEN - 7, x->mr->rkey, 8, IBV_WC_REM_ACCESS_ERR);
}

/* A send from there, and a receive to there: by the local key. */
static bool dm_local(struct mem *m, struct exported *x, enum ibv_wc_status status)
{
	struct ibv_sge sg = { .addr = 8, .length = 3000, .lkey = x->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sg, .num_sge = 1,
		.wr.rdma = { (uintptr_t)m->end[0].buf, m->end[0].mr->rkey },
	};
	uint8_t what[3000];

	fill(what, sizeof(what), 77);
	if (!status)
		dm_put(x->dm, 8, what, sizeof(what));
	return post(m, 1, &wr, status) &&
	       (status || !memcmp(what, m->end[0].buf, sizeof(what)) ||
		fail("what is sent is not what was there"));
}

static bool dm_of(struct mem *m, struct ibv_context *ctx)
{
	struct exported x;
	bool ok;

	if (!m->end[1].is_skua)
		return skip("not of soft-RoCE");
	ok = dm_export(&x, ctx, DM_LEN) && dm_import(m, &x) && dm_holds(m, &x) &&
	     dm_local(m, &x, IBV_WC_SUCCESS);
	return exported_end(&x) && ok;
}

static bool dm_same(struct mem *m)
{
	return dm_of(m, m->end[1].dev.ctx);
}

static bool dm_other(struct mem *m)
{
	if (m->end[0].dev.ctx->device == m->end[1].dev.ctx->device || !m->end[0].is_skua)
		return skip("no other device");
	return dm_of(m, m->end[0].dev.ctx);
}

/* The memory is gone: by no key, nor by the dma-buf, is there anything of it. */
static bool revoked(struct mem *m, struct exported *x)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *again;

	if (!rdma(m, IBV_WR_RDMA_WRITE, 0, x->mr->rkey, 64, IBV_WC_REM_ACCESS_ERR) ||
	    !rdma(m, IBV_WR_RDMA_READ, 0, x->mr->rkey, DM_LEN, IBV_WC_REM_ACCESS_ERR) ||
	    !dm_local(m, x, IBV_WC_LOC_PROT_ERR) ||
	    /* Nobody else minds. */
	    !write_arrives(m, e->buf, (uintptr_t)e->buf, e->mr->rkey, 20000))
		return false;
	again = ibv_reg_dmabuf_mr(e->dev.pd, 0, DM_LEN, 0, x->fd, MEM_ALL);
	if (again) {
		ibv_dereg_mr(again);
		return fail("registered again");
	}
	return expect_err("registered again", errno, ENODEV);
}

/* All of device memory may be had: nothing of it is lost. */
static bool dm_all(struct ibv_context *ctx, const struct ibv_device_attr_ex *attr)
{
	struct ibv_alloc_dm_attr all = { .length = attr->max_dm_size };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &all);

	if (!dm)
		return fail("some of the device memory is lost: %m");
	return !ibv_free_dm(dm) || fail("free_dm: %m");
}

/* The dma-buf and the region outlive the memory, which they do not keep. */
static bool dm_freed(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct exported x;
	bool ok;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	ok = dm_export(&x, e->dev.ctx, DM_LEN) && dm_import(m, &x) &&
	     rdma(m, IBV_WR_RDMA_WRITE, 0, x.mr->rkey, DM_LEN, IBV_WC_SUCCESS);
	if (ok && ibv_free_dm(x.dm))
		ok = fail("free_dm: %m");
	else if (ok)
		x.dm = NULL;
	ok = ok && revoked(m, &x);
	return exported_end(&x) && ok && dm_all(e->dev.ctx, &e->attr);
}

/* A process that exports, says by which descriptor, and waits for its end. */
static void owner(const char *dev, int say)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	struct exported x;
	int fd = -1;

	for (; list && *list && !ctx; list++)
		if (!strcmp(ibv_get_device_name(*list), dev))
			ctx = ibv_open_device(*list);
	if (ctx && dm_export(&x, ctx, DM_LEN))
		fd = x.fd;
	if (write(say, &fd, sizeof(fd)) == sizeof(fd))
		pause();
	_exit(1);
}

/* Nor do they keep the process that the memory was of. */
static bool dm_owner_killed(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct exported x = { .fd = -1 };
	int says[2], fd = -1, pidfd;
	pid_t pid;
	bool ok;

	/* Whether there is any export at all. */
	ok = e->is_skua ? dm_export(&x, e->dev.ctx, DM_LEN) : skip("not of soft-RoCE");
	if (!exported_end(&x) || !ok)
		return false;
	if (pipe(says))
		die("pipe: %m");
	pid = fork();
	if (!pid)
		owner(ibv_get_device_name(e->dev.ctx->device), says[1]);
	close(says[1]);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	x = (struct exported) { .fd = -1 };
	if (read(says[0], &fd, sizeof(fd)) == sizeof(fd) && fd >= 0)
		x.fd = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	ok = x.fd >= 0 ? dm_import(m, &x) : fail("the other process has no export");
	ok = ok && rdma(m, IBV_WR_RDMA_WRITE, 0, x.mr->rkey, DM_LEN, IBV_WC_SUCCESS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ok = ok && revoked(m, &x);
	close(pidfd);
	close(says[0]);
	return exported_end(&x) && ok && dm_all(e->dev.ctx, &e->attr);
}

static bool export_refused(struct mem *m, struct ibv_context *ctx, uint64_t offset, int err)
{
	int fd = dmabuf_export(ctx, offset);

	(void)m;
	if (fd >= 0) {
		close(fd);
		return fail("offset %#llx is exported", (unsigned long long)offset);
	}
	return expect_err("export", errno, err);
}

static bool bad_export(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr = NULL;
	struct exported x;
	uint64_t at;
	bool ok;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	ok = dm_export(&x, e->dev.ctx, DM_LEN);
	if (!ok)
		return exported_end(&x) && ok;
	at = dm_offset(x.dm);
	/* Neither a part of it, nor what is not there, nor the pages that come first. */
	ok = export_refused(m, e->dev.ctx, at + 4096, EINVAL) &&
	     export_refused(m, e->dev.ctx, at + 1, EINVAL) &&
	     export_refused(m, e->dev.ctx, 1ULL << 40, EINVAL) &&
	     export_refused(m, e->dev.ctx, 1ULL << 63, EINVAL) &&
	     export_refused(m, e->dev.ctx, 0, EOPNOTSUPP) &&
	     export_refused(m, e->dev.ctx, 4096, EOPNOTSUPP);
	if (ok && mmap(NULL, DM_LEN, PROT_READ, MAP_SHARED, x.fd, 0) != MAP_FAILED)
		ok = fail("it can be mapped");
	if (ok) {
		mr = ibv_reg_dmabuf_mr(e->dev.pd, 4096, DM_LEN, 0, x.fd, MEM_ALL);
		ok = !mr ? expect_err("beyond its end", errno, EINVAL) : fail("beyond its end");
	}
	if (mr)
		ibv_dereg_mr(mr);
	return exported_end(&x) && ok;
}

const struct mem_case mem_cases_dmabuf[] = {
	{ "region over udmabuf", over_udmabuf },
	{ "region over a dma-buf heap", over_heap },
	{ "dma-buf outlives its descriptor", dmabuf_outlives_fd },
	{ "no dma-buf", bad_dmabuf },
	{ "advice for a dma-buf", advice_taken },
	{ "device memory as a dma-buf", dm_same },
	{ "device memory of the other device", dm_other },
	{ "exported device memory is freed", dm_freed },
	{ "exported device memory's owner is killed", dm_owner_killed },
	{ "what cannot be exported", bad_export },
	{}
};

/* --- not a case: it stays, until the device memory is taken away ------------------------ */

/*
 * The first other device exports device memory, and goes, or is reset. This one has a
 * region over it, and traffic there.
 */
static bool stay_imported(struct mem *m)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	struct exported x = { .fd = -1 };
	unsigned int i, n;
	struct ibv_wc wc;

	for (i = 0; list && list[i] && !ctx; i++)
		if (list[i] != m->end[1].dev.ctx->device &&
		    strcmp(ibv_get_device_name(list[i]),
			   ibv_get_device_name(m->end[1].dev.ctx->device)))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		return fail("no other device");
	if (!dm_export(&x, ctx, DM_LEN) || !dm_import(m, &x))
		return false;
	for (n = 0; ; n++) {
		struct ibv_sge sg = { (uintptr_t)m->end[0].buf, DM_LEN, m->end[0].mr->lkey };
		struct ibv_send_wr wr = {
			.opcode = n & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED, .sg_list = &sg, .num_sge = 1,
			.wr.rdma = { 0, x.mr->rkey },
		}, *bad;

		mem_connect(m);
		if (ibv_post_send(m->end[0].qp, &wr, &bad) ||
		    !poll_one(m->end[0].cq, &wc, 30))
			return fail("no completion");
		if (wc.status)
			break;
		if (n == 2)
			printf("here\n");
	}
	mem_spoilt(m);
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		return fail("it ends by '%s'", ibv_wc_status_str(wc.status));
	printf("revoked after %u\n", n);
	if (ibv_dereg_mr(x.mr))
		return fail("dereg_mr: %m");
	/* The rest goes with the process, after the device. */
	return write_arrives(m, m->end[1].buf, (uintptr_t)m->end[1].buf, m->end[1].mr->rkey, 9000);
}

const struct mem_case mem_stay_dmabuf[] = {
	{ "stay, device memory of another", stay_imported },
	{}
};
