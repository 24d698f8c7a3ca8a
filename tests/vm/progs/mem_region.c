// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of all kinds: where they begin and end, how their pages lie, null regions.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem.h"

/* --- bounds and addresses ---------------------------------------------------------- */

/* Any byte is in it or not. */
static bool odd_bounds(struct mem *m)
{
	static const struct { uint32_t off, len; } range[] = {
		{ 1, 1 }, { 4095, 2 }, { 4095, 1 }, { 123, 4567 }, { 8191, 8194 }, { 0, 4096 },
		{ 63, 33000 },
	};
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	unsigned int i;
	bool ok = true;

	for (i = 0; ok && i < sizeof(range) / sizeof(range[0]); i++) {
		uint8_t *p = e->buf + range[i].off;

		memset(e->buf, 0, MEM_SIZE);
		mr = ibv_reg_mr(e->dev.pd, p, range[i].len, MEM_ALL);
		if (!mr)
			return fail("reg_mr of %u at %u: %m", range[i].len, range[i].off);
		ok = write_arrives(m, p, (uintptr_t)p, mr->rkey, range[i].len);
		if (ok && (p[range[i].len] || (range[i].off && p[-1])))
			ok = fail("a byte beside %u at %u was written", range[i].len, range[i].off);
		ok = ok && rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)p + 1, mr->rkey, range[i].len,
				IBV_WC_REM_ACCESS_ERR) &&
		     rdma(m, IBV_WR_RDMA_READ, (uintptr_t)p - 1, mr->rkey, range[i].len,
			  IBV_WC_REM_ACCESS_ERR);
		ibv_dereg_mr(mr);
	}
	return ok;
}

static bool other_iova(struct mem *m)
{
	static const uint64_t iova[] = { 0x1000, 0x123456789000, 0xfffffffffffe0000 };
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	unsigned int i;
	bool ok = true;

	for (i = 0; ok && i < sizeof(iova) / sizeof(iova[0]); i++) {
		mr = ibv_reg_mr_iova(e->dev.pd, e->buf + 77, 20000, iova[i] + 77, MEM_ALL);
		if (!mr)
			return fail("reg_mr_iova %#llx: %m", (unsigned long long)iova[i]);
		ok = write_arrives(m, e->buf + 77, iova[i] + 77, mr->rkey, 20000) &&
		     write_arrives(m, e->buf + 5000, iova[i] + 5000, mr->rkey, 3000) &&
		     rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)e->buf + 77, mr->rkey, 8,
			  IBV_WC_REM_ACCESS_ERR);
		ibv_dereg_mr(mr);
	}
	/* One that runs over the end of the address space: soft-RoCE makes it. */
	if (!ok || !e->is_skua)
		return ok;
	mr = ibv_reg_mr_iova(e->dev.pd, e->buf, MEM_SIZE, -4096ULL, MEM_ALL);
	if (mr) {
		ibv_dereg_mr(mr);
		return fail("a region over the end of addresses");
	}
	return ok;
}

static bool zero_based(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	bool ok;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	mr = ibv_reg_mr_iova(e->dev.pd, e->buf, 9000, 0, MEM_ALL | IBV_ACCESS_ZERO_BASED);
	if (!mr)
		return fail("reg_mr: %m");
	ok = write_arrives(m, e->buf, 0, mr->rkey, 9000) &&
	     write_arrives(m, e->buf + 4097, 4097, mr->rkey, 100) &&
	     rdma(m, IBV_WR_RDMA_WRITE, 1, mr->rkey, 9000, IBV_WC_REM_ACCESS_ERR);
	ibv_dereg_mr(mr);
	return ok;
}

/* Optional rights are taken, whatever the device makes of them. */
static bool relaxed(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr = ibv_reg_mr(e->dev.pd, e->buf, MEM_SIZE,
				       MEM_ALL | IBV_ACCESS_RELAXED_ORDERING | (1 << 29));
	bool ok;

	if (!mr)
		return fail("reg_mr: %m");
	ok = write_arrives(m, e->buf, (uintptr_t)e->buf, mr->rkey, 5000);
	ibv_dereg_mr(mr);
	return ok;
}

static bool refused(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	static const struct { int access, err; } bad[] = {
		{ IBV_ACCESS_REMOTE_WRITE, EINVAL }, { IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ 1 << 15, EINVAL },
	};
	struct ibv_mr *mr;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		mr = ibv_reg_mr(e->dev.pd, e->buf, 64, bad[i].access);
		if (mr)
			return fail("rights %#x are taken", bad[i].access);
		if (!expect_err("bad rights", errno, bad[i].err))
			return false;
	}
	if (!e->is_skua)
		return true;
	if (ibv_reg_mr(e->dev.pd, e->buf, 0, MEM_ALL) || !expect_err("no bytes", errno, EINVAL))
		return fail("a region of no bytes");
	if (!(e->attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
	    (ibv_reg_mr(e->dev.pd, e->buf, 64, MEM_ALL | IBV_ACCESS_ON_DEMAND) ||
	     !expect_err("on demand", errno, EOPNOTSUPP)))
		return fail("paging on demand that there is not");
	/* Not mapped. */
	if (ibv_reg_mr(e->dev.pd, (void *)4096, 4096, MEM_ALL) ||
	    !expect_err("no memory there", errno, EFAULT))
		return fail("memory that is not there");
	return true;
}

/* --- many pages --------------------------------------------------------------------- */

#define ALIAS_FILE	(4UL << 20)
#define ALIAS_LEN	(1UL << 30)

/* As much address space as this, and no more memory than the file's. */
static uint8_t *alias_map(size_t len, int *fd)
{
	uint8_t *p;
	size_t i;

	*fd = memfd_create("skua-mem", 0);
	if (*fd < 0 || ftruncate(*fd, ALIAS_FILE))
		die("memfd: %m");
	p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		die("mmap: %m");
	for (i = 0; i < len; i += ALIAS_FILE)
		if (mmap(p + i, ALIAS_FILE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, *fd,
			 0) == MAP_FAILED)
			die("mmap: %m");
	return p;
}

/* A gigabyte of pages that lie anyhow. */
static bool gigabyte(struct mem *m)
{
	static const size_t at[] = { 0, 4096 * 513 + 11, ALIAS_LEN / 2 - 3, ALIAS_LEN - 10000 };
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	unsigned int i;
	bool ok = true;
	uint8_t *p;
	int fd;

	p = alias_map(ALIAS_LEN, &fd);
	mr = ibv_reg_mr(e->dev.pd, p, ALIAS_LEN, MEM_ALL);
	if (!mr)
		ok = fail("reg_mr of 1 GiB: %m");
	for (i = 0; ok && i < sizeof(at) / sizeof(at[0]); i++)
		ok = write_arrives(m, p + at[i], (uintptr_t)p + at[i], mr->rkey, 10000);
	ok = ok && rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)p + ALIAS_LEN - 7, mr->rkey, 8,
			IBV_WC_REM_ACCESS_ERR);
	if (mr && ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	munmap(p, ALIAS_LEN);
	close(fd);
	return ok;
}

/* What "rdma" tells of the only region of this length: a driver attribute's value. */
static long mr_attr(size_t len, const char *name)
{
	char line[4096], want[32], *attr;
	bool ours = false;
	long v = -1;
	FILE *f;

	snprintf(want, sizeof(want), "mrlen %zu ", len);
	f = popen("rdma resource show mr -dd", "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		/* The driver's attributes are on a line of their own. */
		if (!strncmp(line, "dev ", 4))
			ours = strstr(line, want);
		attr = ours ? strstr(line, name) : NULL;
		if (attr)
			v = strtol(attr + strlen(name), NULL, 10);
	}
	pclose(f);
	return v;
}

#define HUGE_PAGE	(2UL << 20)
#define HUGE_NUM	4

/* Huge pages that do not lie behind each other, however they are given out. */
static uint8_t *huge_map(void)
{
	static const int order[HUGE_NUM] = { 0, 2, 1, 3 };
	int i, fd = memfd_create("skua-mem", MFD_HUGETLB);
	uint8_t *area, *p;

	if (fd < 0 || ftruncate(fd, HUGE_NUM * HUGE_PAGE))
		return NULL;
	area = mmap(NULL, HUGE_NUM * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	memset(area, 0, HUGE_NUM * HUGE_PAGE);
	for (i = 0; i < HUGE_NUM; i++) {
		p = mmap(area + i * HUGE_PAGE, HUGE_PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, order[i] * HUGE_PAGE);
		if (p == MAP_FAILED)
			die("mmap: %m");
	}
	close(fd);
	return area;
}

/* An IOMMU makes one range of a region, which needs no entries. */
static bool behind_iommu(struct mem_end *e)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/device/iommu_group", e->dev.ctx->device->ibdev_path);
	return !access(path, F_OK);
}

/* Huge pages take up as many entries as there are of them. */
static bool huge_pages(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	size_t len = HUGE_NUM * HUGE_PAGE - 4321;
	uint8_t *p = huge_map();
	struct ibv_mr *mr;
	unsigned int i;
	bool ok = true;

	if (!p)
		return skip("no huge pages set aside");
	mr = ibv_reg_mr(e->dev.pd, p + 1234, len, MEM_ALL | IBV_ACCESS_HUGETLB);
	if (!mr) {
		munmap(p, HUGE_NUM * HUGE_PAGE);
		return errno == EOPNOTSUPP && !e->is_skua ? skip("no regions of huge pages") :
							    fail("reg_mr: %m");
	}
	for (i = 0; ok && i < HUGE_NUM; i++) {
		uint8_t *at = p + (i + 1) * HUGE_PAGE - 9000;

		ok = write_arrives(m, at, (uintptr_t)at, mr->rkey, i < HUGE_NUM - 1 ? 20000 : 5000);
	}
	if (ok && e->is_skua && mr_attr(len, "drv_pages ") != (behind_iommu(e) ? -1 : HUGE_NUM))
		ok = fail("%ld entries for %u pages", mr_attr(len, "drv_pages "), HUGE_NUM);
	ibv_dereg_mr(mr);
	munmap(p, HUGE_NUM * HUGE_PAGE);
	return ok;
}

/* --- null region ---------------------------------------------------------------------- */

/* What comes is gone, what goes is zeros. */
static bool null_region(struct mem *m)
{
	struct mem_end *e = &m->end[0], *peer = &m->end[1];
	struct ibv_sge sg = { .addr = 0x123456789, .length = 9000 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sg, .num_sge = 1,
		.wr.rdma = { (uintptr_t)peer->buf, peer->mr->rkey },
	};
	struct ibv_mr *mr = ibv_alloc_null_mr(e->dev.pd);
	unsigned int i;
	bool ok;

	if (!mr)
		return errno == EOPNOTSUPP ? skip("no null regions") : fail("alloc_null_mr: %m");
	sg.lkey = mr->lkey;
	memset(peer->buf, 0xaa, MEM_SIZE);
	ok = post(m, 0, &wr, IBV_WC_SUCCESS);
	for (i = 0; ok && i < 9000; i++)
		if (peer->buf[i])
			ok = fail("byte %u is not zero", i);
	if (ok && peer->buf[9000] != 0xaa)
		ok = fail("a byte too many");
	wr.opcode = IBV_WR_RDMA_READ;
	ok = ok && post(m, 0, &wr, IBV_WC_SUCCESS);
	/* Nobody else may use it. */
	ok = ok && recv_post(m, 0, (void *)(uintptr_t)0x777, 100, mr->lkey) &&
	     (fill(peer->buf, 100, 1), true);
	if (ok) {
		struct ibv_sge psg = { (uintptr_t)peer->buf, 100, peer->mr->lkey };
		struct ibv_send_wr pwr = { .opcode = IBV_WR_SEND, .sg_list = &psg, .num_sge = 1 };
		struct ibv_wc wc;

		ok = post(m, 1, &pwr, IBV_WC_SUCCESS) && completes(m, 0, &wc, IBV_WC_SUCCESS) &&
		     (wc.byte_len == 100 || fail("%u bytes received", wc.byte_len));
	}
	if (ok && e == peer)
		ok = true;
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	return ok;
}

const struct mem_case mem_cases_region[] = {
	{ "region of odd bounds", odd_bounds },
	{ "region at another address", other_iova },
	{ "zero-based region", zero_based },
	{ "relaxed ordering", relaxed },
	{ "region that cannot be", refused },
	{ "region of a gigabyte", gigabyte },
	{ "region of huge pages", huge_pages },
	{ "null region", null_region },
	{}
};
