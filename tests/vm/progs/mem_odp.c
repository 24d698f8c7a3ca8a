// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand regions: their pages come when they are wanted, and go when the process
 * or the kernel pleases. Every byte is looked at after each.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem.h"

#define LEN	(16 * 4096)
#define BLOCK	(2ULL << 20)
#define ODP_ALL	(MEM_ALL | IBV_ACCESS_ON_DEMAND)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

/*
 * soft-RoCE of kernel 7.2 copies the same bytes again to each page that a packet reaches
 * (__rxe_odp_mr_copy() does not advance its buffer), and takes the IOVA for the address of
 * the memory, which ends in an oops where they differ.
 */
static bool has_odp(struct mem *m)
{
	return m->end[1].is_skua && m->end[1].attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

static bool skip_odp(struct mem *m)
{
	return skip(m->end[1].is_skua ? "no on-demand paging" :
		    "soft-RoCE of kernel 7.2 has faults in on-demand paging");
}

static uint8_t *map(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap: %m");
	return p;
}

static struct ibv_mr *reg(struct mem *m, void *p, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(m->end[1].dev.pd, p, len, ODP_ALL);

	if (!mr)
		fail("no on-demand region: %m");
	return mr;
}

/* A case on @LEN fresh bytes of a region of their own. */
static bool with_region(struct mem *m, bool (*run)(struct mem *m, uint8_t *p, struct ibv_mr *mr))
{
	struct ibv_mr *mr;
	uint8_t *p;
	bool ok;

	if (!has_odp(m))
		return skip_odp(m);
	p = map(LEN);
	mr = reg(m, p, LEN);
	if (!mr)
		return false;
	ok = run(m, p, mr);
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	munmap(p, LEN);
	return ok;
}

#define REGION_CASE(name)							\
static bool name##_case(struct mem *m, uint8_t *p, struct ibv_mr *mr);		\
static bool name(struct mem *m)							\
{										\
	return with_region(m, name##_case);					\
}										\
static bool name##_case(struct mem *m, uint8_t *p, struct ibv_mr *mr)

static bool arrives(struct mem *m, uint8_t *p, struct ibv_mr *mr, uint32_t len)
{
	return write_arrives(m, p, (uintptr_t)p, mr->rkey, len);
}

/* End 0 reads what there is. */
static bool reads(struct mem *m, uint8_t *p, struct ibv_mr *mr, const uint8_t *want, uint32_t len)
{
	memset(m->end[0].buf, 0xee, len);
	return rdma(m, IBV_WR_RDMA_READ, (uintptr_t)p, mr->rkey, len, IBV_WC_SUCCESS) &&
	       (!memcmp(m->end[0].buf, want, len) || fail("READ of other bytes"));
}

static bool refused(struct mem *m, enum ibv_wr_opcode op, uint8_t *p, struct ibv_mr *mr)
{
	bool ok = rdma(m, op, (uintptr_t)p, mr->rkey, PAGE, IBV_WC_REM_ACCESS_ERR);

	mem_connect(m);
	return ok;
}

static long long hw_counter(struct mem *m, int side, const char *name)
{
	char path[200];
	long long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(m->end[side].dev.ctx->device), name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lld", &v) != 1)
		v = -1;
	if (f)
		fclose(f);
	/* The kernel asks the device again after so long only. */
	return v;
}

/* --- pages come -------------------------------------------------------------- */

REGION_CASE(wanted)
{
	static uint8_t zero[LEN];

	if (!reads(m, p + PAGE, mr, zero, 2 * PAGE) || !arrives(m, p, mr, LEN))
		return false;
	fill(p, LEN, 5);
	return reads(m, p, mr, p, LEN);
}

/* The one who has the region asks: its pages are missed when answers come, too. */
REGION_CASE(as_requester)
{
	struct ibv_sge sg = { (uintptr_t)p + 100, LEN / 2, mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ, .sg_list = &sg, .num_sge = 1,
		.wr.rdma = { (uintptr_t)m->end[0].buf, m->end[0].mr->rkey },
	};

	fill(m->end[0].buf, LEN, 6);
	if (!post(m, 1, &wr, IBV_WC_SUCCESS))
		return false;
	if (memcmp(p + 100, m->end[0].buf, LEN / 2))
		return fail("READ brought other bytes");
	if (madvise(p, LEN, MADV_DONTNEED))
		die("madvise: %m");
	wr.opcode = IBV_WR_RDMA_WRITE;
	return post(m, 1, &wr, IBV_WC_SUCCESS) &&
	       (!m->end[0].buf[0] && !memcmp(m->end[0].buf, m->end[0].buf + 1, LEN / 2 - 1) ?
		true : fail("WRITE of a page that was dropped is not zero"));
}

REGION_CASE(receives)
{
	struct ibv_sge sg = { (uintptr_t)m->end[0].buf, 3 * PAGE, m->end[0].mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sg, .num_sge = 1 };
	struct ibv_wc wc;

	fill(m->end[0].buf, 3 * PAGE, 7);
	if (!recv_post(m, 1, p + 50, 3 * PAGE, mr->lkey) || !post(m, 0, &wr, IBV_WC_SUCCESS) ||
	    !completes(m, 1, &wc, IBV_WC_SUCCESS))
		return false;
	return !memcmp(p + 50, m->end[0].buf, 3 * PAGE) || fail("SEND of other bytes");
}

/* --- pages go ------------------------------------------------------------------ */

REGION_CASE(dropped)
{
	static const uint8_t zero[LEN];
	int i;

	for (i = 0; i < 20; i++)
		if (!arrives(m, p, mr, LEN) || madvise(p + PAGE, LEN - PAGE, MADV_DONTNEED) ||
		    !reads(m, p + PAGE, mr, zero, LEN - PAGE))
			return false;
	return true;
}

REGION_CASE(unmapped)
{
	if (!arrives(m, p, mr, LEN))
		return false;
	munmap(p + PAGE, PAGE);
	if (!refused(m, IBV_WR_RDMA_WRITE, p + PAGE, mr) ||
	    !refused(m, IBV_WR_RDMA_READ, p + PAGE, mr) || !arrives(m, p, mr, PAGE) ||
	    !arrives(m, p + 2 * PAGE, mr, LEN - 2 * PAGE))
		return false;
	if (mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		die("mmap: %m");
	return arrives(m, p, mr, LEN);
}

REGION_CASE(moved)
{
	uint8_t *q = map(LEN);

	if (!arrives(m, p, mr, LEN))
		return false;
	if (mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, q) != q)
		die("mremap: %m");
	if (memcmp(q, m->end[0].buf, LEN))
		return fail("what was moved is not what was sent");
	if (!refused(m, IBV_WR_RDMA_WRITE, p, mr))
		return false;
	if (mremap(q, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, p) != p)
		die("mremap: %m");
	return reads(m, p, mr, p, LEN) && arrives(m, p, mr, LEN);
}

REGION_CASE(write_protected)
{
	if (!arrives(m, p, mr, LEN) || mprotect(p, LEN, PROT_READ))
		return false;
	if (!refused(m, IBV_WR_RDMA_WRITE, p, mr) || !reads(m, p, mr, p, LEN) ||
	    mprotect(p, LEN, PROT_READ | PROT_WRITE))
		return false;
	return arrives(m, p, mr, LEN);
}

/* The child keeps what it had at its birth, the parent goes on with the device. */
REGION_CASE(forked)
{
	static uint8_t was[LEN];
	int go[2], status, i;
	pid_t pid;

	for (i = 0; i < 3; i++) {
		if (!arrives(m, p, mr, LEN))
			return false;
		memcpy(was, p, LEN);
		if (pipe(go))
			die("pipe: %m");
		pid = fork();
		if (!pid) {
			char c;

			close(go[1]);
			_exit(read(go[0], &c, 1) != 1 || memcmp(p, was, LEN));
		}
		close(go[0]);
		if (!arrives(m, p, mr, LEN) || !memcmp(p, was, LEN))
			return fail("nothing came after fork");
		if (write(go[1], "x", 1) != 1 || waitpid(pid, &status, 0) != pid || status)
			return fail("the child's memory has changed");
		close(go[1]);
	}
	return true;
}

static bool resident(uint8_t *p, size_t len)
{
	unsigned char vec[LEN / PAGE];
	size_t i;

	if (mincore(p, len, vec))
		die("mincore: %m");
	for (i = 0; i < len / PAGE; i++)
		if (vec[i] & 1)
			return true;
	return false;
}

/* Pages are moved; before that, all of them get to where reclaim finds them. */
static void compact(void)
{
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY);

	if (fd >= 0) {
		/* It is only to make pages move. */
		(void)!write(fd, "1", 1);
		close(fd);
	}
}

/* What went out comes back as it was, and for the device first. */
REGION_CASE(swapped)
{
	static uint8_t want[LEN];
	int i, went = 0;

	for (i = 0; i < 3; i++) {
		if (!arrives(m, p, mr, LEN))
			return false;
		compact();
		memcpy(want, m->end[0].buf, LEN);
		if (madvise(p, LEN, MADV_PAGEOUT))
			return skip("no MADV_PAGEOUT");
		went += !resident(p, LEN);
		if (!reads(m, p, mr, want, LEN))
			return false;
	}
	return went || skip("no swap");
}

REGION_CASE(of_a_file)
{
	int fd = memfd_create("odp", 0);
	static uint8_t got[LEN];
	bool ok;

	if (fd < 0 || ftruncate(fd, LEN) ||
	    mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		die("memfd: %m");
	ok = arrives(m, p, mr, LEN) && pread(fd, got, LEN, 0) == LEN &&
	     (!memcmp(got, p, LEN) || fail("the file has other bytes"));
	ok = ok && !ftruncate(fd, PAGE) && arrives(m, p, mr, PAGE) &&
	     refused(m, IBV_WR_RDMA_READ, p + PAGE, mr);
	close(fd);
	return ok;
}

/* --- long regions, and all of memory -------------------------------------------- */

static bool region_of_blocks(struct mem *m, uint64_t len)
{
	const uint64_t iova = 0x7000000000;
	struct ibv_mr *mr;
	uint8_t *p, *at;
	bool ok;

	p = map(len);
	mr = ibv_reg_mr_iova(m->end[1].dev.pd, p + PAGE, len - 2 * PAGE, iova + PAGE, ODP_ALL);
	if (!mr)
		return fail("no region of %ju bytes: %m", (uintmax_t)len);
	/* Across the end of a block, wherever they begin. */
	at = (uint8_t *)(((uintptr_t)p + len / 2) & ~(BLOCK - 1)) - LEN / 2;
	ok = write_arrives(m, at, iova + (at - p), mr->rkey, LEN) &&
	     write_arrives(m, p + PAGE, iova + PAGE, mr->rkey, LEN) &&
	     write_arrives(m, p + len - LEN - PAGE, iova + len - LEN - PAGE, mr->rkey, LEN) &&
	     rdma(m, IBV_WR_RDMA_WRITE, iova + len - PAGE - 10, mr->rkey, 11,
		  IBV_WC_REM_ACCESS_ERR);
	if (ok) {
		mem_connect(m);
		ok = !madvise(at, LEN, MADV_DONTNEED) &&
		     write_arrives(m, at, iova + (at - p), mr->rkey, LEN);
	}
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	munmap(p, len);
	return ok;
}

/* A directory of blocks, and one of directories. */
static bool long_region(struct mem *m)
{
	if (!has_odp(m))
		return skip_odp(m);
	return region_of_blocks(m, 4 * BLOCK) && region_of_blocks(m, 3000 * BLOCK);
}

/* Longer than there are addresses, or behind them; in 32 bits it would be short. */
static bool beyond(struct mem *m)
{
	static const struct { uint64_t start, len; } range[] = {
		{ 0, (1ULL << 59) + (1ULL << 28) }, { 1ULL << 62, 1ULL << 21 },
		{ 0x7fffffff0000, 1ULL << 21 }, { 1ULL << 63, 4096 },
	};
	unsigned int i;

	if (!has_odp(m))
		return skip_odp(m);
	for (i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(m->end[1].dev.pd, (void *)(uintptr_t)range[i].start,
					       range[i].len, ODP_ALL);

		if (mr) {
			ibv_dereg_mr(mr);
			return fail("%#jx bytes at %#jx are taken", (uintmax_t)range[i].len,
				    (uintmax_t)range[i].start);
		}
		if (!expect_err("beyond the address space", errno, EFAULT))
			return false;
	}
	return true;
}

static bool implicit(struct mem *m)
{
	static uint8_t data[2 * PAGE];
	uint8_t stack[2 * PAGE];
	uint8_t *p, *q;
	struct ibv_mr *mr;
	bool ok;

	if (!has_odp(m) || !(m->end[1].attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		return skip("no implicit on-demand paging");
	mr = ibv_reg_mr(m->end[1].dev.pd, NULL, SIZE_MAX, ODP_ALL);
	if (!mr)
		return fail("no implicit region: %m");
	p = map(LEN);
	q = mmap((void *)0x100000000000, LEN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ok = arrives(m, data, mr, sizeof(data)) && arrives(m, stack, mr, sizeof(stack)) &&
	     arrives(m, p, mr, LEN) && arrives(m, q, mr, LEN);
	munmap(p, LEN);
	ok = ok && refused(m, IBV_WR_RDMA_WRITE, p, mr) && refused(m, IBV_WR_RDMA_READ, NULL, mr) &&
	     refused(m, IBV_WR_RDMA_READ, (uint8_t *)0x7ffffffff000, mr) &&
	     refused(m, IBV_WR_RDMA_READ, (uint8_t *)0x800000000000, mr) &&
	     arrives(m, q, mr, LEN);
	munmap(q, LEN);
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	return ok;
}

/* --- advice ---------------------------------------------------------------------- */

static bool advice_is(struct mem *m, const char *what, struct ibv_mr *mr, uint8_t *p, uint32_t len,
		      int advice, uint32_t flags, int want)
{
	struct ibv_sge sg = { (uintptr_t)p, len, mr->lkey };

	return expect_err(what, ibv_advise_mr(m->end[1].dev.pd, advice, flags, &sg, 1), want);
}

REGION_CASE(advice)
{
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	long long before, after;

	if (!advice_is(m, "prefetch to write", mr, p, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		       flush, 0) || !resident(p, LEN))
		return fail("nothing was prefetched");
	/* Counters are as old as this at most. */
	usleep(20000);
	before = hw_counter(m, 1, "page_faults");
	if (!arrives(m, p, mr, LEN))
		return false;
	usleep(20000);
	after = hw_counter(m, 1, "page_faults");
	if (m->end[1].is_skua && (before < 0 || before != after))
		return fail("%lld faults before, %lld after", before, after);
	return !madvise(p, LEN, MADV_DONTNEED) &&
	       advice_is(m, "only what is present", mr, p, LEN,
			 IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, flush, 0) &&
	       (!resident(p, LEN) || fail("present though nobody wanted it")) &&
	       advice_is(m, "prefetch to read", mr, p, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH, flush,
			 0) &&
	       advice_is(m, "in its own time", mr, p, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0,
			 0) &&
	       arrives(m, p, mr, LEN);
}

static bool all_resident(uint8_t *p, size_t len)
{
	size_t at;

	for (at = 0; at < len; at += PAGE)
		if (!resident(p + at, PAGE))
			return fail("nothing was prefetched at %#zx of %#zx", at, len);
	return true;
}

/* A region whose blocks begin in the middle of a block of the device's addresses. */
static bool advice_of_blocks(struct mem *m)
{
	const int put = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	const size_t len = 4 * BLOCK;
	uint8_t *whole, *p, *iova;
	struct ibv_mr *mr;
	bool ok;

	if (!has_odp(m))
		return skip_odp(m);
	whole = map(len + BLOCK);
	p = (uint8_t *)(((uintptr_t)whole + BLOCK - 1) & ~(BLOCK - 1));
	iova = p + BLOCK / 2;
	mr = ibv_reg_mr_iova(m->end[1].dev.pd, p, len, (uintptr_t)iova, ODP_ALL);
	if (!mr)
		return fail("no on-demand region: %m");
	/* A huge page would bring what was left out. */
	ok = !madvise(p, len, MADV_NOHUGEPAGE) &&
	     advice_is(m, "prefetch of blocks", mr, iova, len, put, flush, 0) &&
	     all_resident(p, len) && !munmap(p + BLOCK + PAGE, PAGE) &&
	     advice_is(m, "prefetch of a hole", mr, iova, len, put, flush, EFAULT);
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	munmap(whole, len + BLOCK);
	return ok;
}

REGION_CASE(bad_advice)
{
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	const int get = IBV_ADVISE_MR_ADVICE_PREFETCH, put = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct mem_end *e = &m->end[1];
	struct ibv_mr *ro, other = { .lkey = mr->lkey ^ 1 };
	struct ibv_pd *pd2 = ibv_alloc_pd(e->dev.ctx), *pd = e->dev.pd;
	bool ok;

	if (!e->is_skua)
		return skip("others have other errors");
	ro = ibv_reg_mr(pd, p, LEN, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_READ);
	if (!ro || !pd2)
		return fail("region or domain: %m");
	ok = advice_is(m, "another key", &other, p, LEN, get, flush, ENOENT) &&
	     advice_is(m, "a pinned region", e->mr, e->buf, 8, get, flush, ENOENT) &&
	     advice_is(m, "one byte more", mr, p, LEN + 1, get, 0, EFAULT) &&
	     advice_is(m, "one byte less", mr, p - 1, LEN, get, 0, EFAULT) &&
	     advice_is(m, "to write what is read only", ro, p, LEN, put, flush, EPERM) &&
	     advice_is(m, "to read it", ro, p, LEN, get, flush, 0) &&
	     advice_is(m, "unknown flag", mr, p, LEN, get, 2, EINVAL) &&
	     advice_is(m, "unknown advice", mr, p, LEN, 77, flush, EOPNOTSUPP) &&
	     advice_is(m, "nothing", mr, p, 0, get, flush, 0);
	e->dev.pd = pd2;
	ok = ok && advice_is(m, "another domain", mr, p, LEN, get, flush, EPERM);
	e->dev.pd = pd;
	munmap(p, LEN);
	ok = ok && advice_is(m, "no memory there", mr, p, LEN, get, flush, EFAULT) &&
	     advice_is(m, "no memory, no fault", mr, p, LEN,
		       IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, flush, 0);
	ibv_dereg_mr(ro);
	ibv_dealloc_pd(pd2);
	return ok;
}

static bool not_offered(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	uint8_t *p;
	struct ibv_mr *mr;
	bool ok;

	if (!has_odp(m) || !e->is_skua)
		return skip("not of this device");
	p = map(LEN);
	mr = reg(m, p, LEN);
	ok = mr && expect_err("window", !ibv_reg_mr(e->dev.pd, p, LEN, ODP_ALL | IBV_ACCESS_MW_BIND) ?
			      errno : 0, EOPNOTSUPP) &&
	     expect_err("implicit of huge pages",
			!ibv_reg_mr(e->dev.pd, NULL, SIZE_MAX, ODP_ALL | IBV_ACCESS_HUGETLB) ?
			errno : 0, EINVAL) &&
	     expect_err("rereg", ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					      MEM_ALL) ? errno : 0, EOPNOTSUPP);
	if (mr)
		ibv_dereg_mr(mr);
	munmap(p, LEN);
	return ok;
}

/* --- pages that do not come -------------------------------------------------------- */

/*
 * A file of a file system that is frozen: its pages cannot be written to until it is
 * thawed, and who tries waits, in the kernel too.
 */
struct frozen {
	uint8_t *p;
	int fd;
	bool thawed;
	struct ibv_mr *mr;	/* of all of it, or NULL */
};

static bool freeze(struct mem *m, struct frozen *f)
{
	char path[200];

	if (!m->dir)
		return skip("no file system to freeze");
	snprintf(path, sizeof(path), "%s/page", m->dir);
	f->fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (f->fd < 0 || ftruncate(f->fd, LEN))
		die("%s: %m", path);
	f->p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (f->p == MAP_FAILED || ioctl(f->fd, FIFREEZE, 0))
		die("freeze: %m");
	f->thawed = false;
	return true;
}

static void thaw(struct frozen *f)
{
	if (ioctl(f->fd, FITHAW, 0))
		die("thaw: %m");
	f->thawed = true;
}

/* Have end 0 WRITE there, and wait in vain. */
static bool write_hangs(struct mem *m, uint8_t *p, struct ibv_mr *mr)
{
	struct mem_end *e = &m->end[0];
	struct ibv_sge sg = { (uintptr_t)e->buf, 100, e->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sg, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p, mr->rkey },
	}, *bad;
	struct ibv_wc wc;

	fill(e->buf, 100, 8);
	mem_connect(m);
	if (ibv_post_send(e->qp, &wr, &bad))
		return fail("post_send: %m");
	return !poll_one(e->cq, &wc, 0.3) ||
	       fail("did not wait: %s", ibv_wc_status_str(wc.status));
}

/* End 0 wants a page of a region that is frozen. */
static bool wanted_in_vain(struct mem *m, struct frozen *f)
{
	f->mr = reg(m, f->p, LEN);
	return f->mr && write_hangs(m, f->p, f->mr);
}

static bool with_frozen(struct mem *m, bool (*then)(struct mem *m, struct frozen *f))
{
	struct frozen f;
	bool ok;

	if (!has_odp(m))
		return skip_odp(m);
	if (!freeze(m, &f))
		return false;
	ok = wanted_in_vain(m, &f) && then(m, &f);
	if (!f.thawed)
		thaw(&f);
	if (f.mr && ibv_dereg_mr(f.mr))
		ok = fail("dereg_mr: %m");
	munmap(f.p, LEN);
	close(f.fd);
	return ok;
}

/* The page comes late: nothing is lost. */
static bool comes_late(struct mem *m, struct frozen *f)
{
	struct ibv_wc wc;

	thaw(f);
	return completes(m, 0, &wc, IBV_WC_SUCCESS) &&
	       (!memcmp(f->p, m->end[0].buf, 100) || fail("other bytes"));
}

static bool page_held(struct mem *m)
{
	return with_frozen(m, comes_late);
}

/* The region goes meanwhile: nobody waits for the page. */
static bool region_goes(struct mem *m, struct frozen *f)
{
	double start = now();
	struct ibv_wc wc;

	mem_spoilt(m);
	if (ibv_dereg_mr(f->mr))
		return fail("dereg_mr: %m");
	f->mr = NULL;
	if (now() - start > 5)
		return fail("dereg_mr waits for the page");
	thaw(f);
	return completes(m, 0, &wc, IBV_WC_REM_ACCESS_ERR);
}

static bool dereg_meanwhile(struct mem *m)
{
	return with_frozen(m, region_goes);
}

/* --- pages that the program provides ------------------------------------------------- */

/* A userfaultfd for these bytes, or -1. */
static int provide(uint8_t *p, size_t len)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)p, len }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg)))
		die("userfaultfd: %m");
	return fd;
}

/* The address of the page that is wanted, or 0 if there is none within 20 s. */
static uintptr_t wanted_page(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct uffd_msg msg;

	if (poll(&pfd, 1, 20000) != 1 || read(fd, &msg, sizeof(msg)) != sizeof(msg) ||
	    msg.event != UFFD_EVENT_PAGEFAULT)
		return 0;
	return msg.arg.pagefault.address & ~(uintptr_t)(PAGE - 1);
}

static bool give_page(int fd, uintptr_t addr, const uint8_t *bytes)
{
	struct uffdio_copy copy = { .dst = addr, .src = (uintptr_t)bytes, .len = PAGE };

	return !ioctl(fd, UFFDIO_COPY, &copy);
}

struct provider {
	int fd;
	uint8_t *p, *bytes;
	unsigned int pages, given;
};

/* Gives each page what belongs there, once. */
static void *provide_all(void *arg)
{
	struct provider *pr = arg;
	uintptr_t addr;

	while (pr->given < pr->pages) {
		addr = wanted_page(pr->fd);
		if (!addr || !give_page(pr->fd, addr, pr->bytes + (addr - (uintptr_t)pr->p)))
			break;
		pr->given++;
	}
	return NULL;
}

/* As after the migration of a virtual machine, whose memory comes when it is wanted. */
REGION_CASE(provided)
{
	static uint8_t bytes[LEN];
	struct provider pr = { .p = p, .bytes = bytes, .pages = LEN / PAGE };
	pthread_t thread;
	bool ok;

	pr.fd = provide(p, LEN);
	if (pr.fd < 0)
		return skip("no userfaultfd");
	fill(bytes, LEN, 11);
	pthread_create(&thread, NULL, provide_all, &pr);
	ok = reads(m, p, mr, bytes, LEN / 2) && arrives(m, p + LEN / 2, mr, LEN / 2);
	pthread_join(thread, NULL);
	close(pr.fd);
	return ok && (pr.given == pr.pages || fail("%u pages of %u", pr.given, pr.pages));
}

/* --- all at once -------------------------------------------------------------------- */

struct churn {
	uint8_t *p;
	size_t len;
	int stop;
};

/* Whatever moves pages and leaves their bytes alone. */
static void *churn(void *arg)
{
	struct churn *c = arg;
	struct rng r = rng_make(4, 4);
	pid_t pid;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		size_t at = rng_below(&r, c->len / PAGE) * PAGE;
		size_t len = (1 + rng_below(&r, (c->len - at) / PAGE)) * PAGE;

		switch (rng_below(&r, 8)) {
		case 0:
			madvise(c->p, c->len, MADV_COLLAPSE);
			break;
		case 1:
			madvise(c->p + at, len, MADV_COLD);
			break;
		case 2:
			pid = fork();
			if (!pid) {
				usleep(1000);
				_exit(0);
			}
			waitpid(pid, NULL, 0);
			break;
		case 3:
			compact();
			break;
		default:
			madvise(c->p + at, len, MADV_PAGEOUT);
			break;
		}
		usleep(500);
	}
	return NULL;
}

/* WRITE, READ, and READ into it, at random places, while pages go and come. */
static bool churn_round(struct mem *m, uint8_t *p, size_t len, struct ibv_mr *mr, struct rng *r,
			uint8_t *mirror)
{
	uint32_t n = 1 + rng_below(r, 3 * PAGE), at = rng_below(r, len - n);
	struct mem_end *e = &m->end[0];
	struct ibv_sge sg = { (uintptr_t)p + at, n, mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_READ, .sg_list = &sg, .num_sge = 1,
		.wr.rdma = { (uintptr_t)e->buf, e->mr->rkey },
	};

	fill(e->buf, n, rng_next(r));
	memcpy(mirror + at, e->buf, n);
	if (rng_below(r, 2) ? !post(m, 1, &wr, IBV_WC_SUCCESS) :
			      !rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)p + at, mr->rkey, n,
				    IBV_WC_SUCCESS))
		return false;
	n = 1 + rng_below(r, 3 * PAGE);
	at = rng_below(r, len - n);
	return reads(m, p + at, mr, mirror + at, n) &&
	       (!memcmp(p + at, mirror + at, n) || fail("wrong bytes at %#x", at));
}

static bool pressure(struct mem *m)
{
	const size_t len = 2 << 20;
	struct churn c = { .len = len };
	struct rng r = rng_make(5, 5);
	uint8_t *mirror, *whole;
	struct ibv_mr *mr;
	pthread_t thread;
	double start;
	bool ok;
	int i;

	if (!has_odp(m))
		return skip_odp(m);
	whole = map(2 * len);
	c.p = (uint8_t *)(((uintptr_t)whole + len - 1) & ~(len - 1));
	mirror = calloc(1, len);
	mr = reg(m, c.p, len);
	ok = mr;
	mem_connect(m);
	if (!ok || !mirror || pthread_create(&thread, NULL, churn, &c))
		die("no thread: %m");
	start = now();
	/* For two seconds, or longer where that is not enough to see much. */
	for (i = 0; ok && (now() < start + 2 || (i < 20 && now() < start + 30)); i++)
		ok = churn_round(m, c.p, len, mr, &r, mirror);
	__atomic_store_n(&c.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	if (ok && memcmp(c.p, mirror, len))
		ok = fail("wrong bytes in the end");
	if (ok && i < 20)
		ok = fail("%d rounds in 30 s", i);
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	munmap(whole, 2 * len);
	free(mirror);
	return ok;
}

const struct mem_case mem_cases_odp[] = {
	{ "on demand: pages come when they are wanted", wanted },
	{ "on demand: pages of the requester", as_requester },
	{ "on demand: pages of receives", receives },
	{ "on demand: pages that were dropped", dropped },
	{ "on demand: unmapped, and mapped again", unmapped },
	{ "on demand: moved by mremap", moved },
	{ "on demand: write-protected for a while", write_protected },
	{ "on demand: fork", forked },
	{ "on demand: swapped out", swapped },
	{ "on demand: of a file, which is cut", of_a_file },
	{ "on demand: a long region", long_region },
	{ "on demand: beyond the address space", beyond },
	{ "on demand: all of memory", implicit },
	{ "on demand: advice", advice },
	{ "on demand: advice about a region of blocks", advice_of_blocks },
	{ "on demand: bad advice", bad_advice },
	{ "on demand: what is not offered", not_offered },
	{ "on demand: a page that is long in coming", page_held },
	{ "on demand: deregistered while a page is wanted", dereg_meanwhile },
	{ "on demand: pages that the program provides", provided },
	{ "on demand: traffic while pages go and come", pressure },
	{}
};

/* --- not cases: they stay, for others to look at and to kill ------------------------- */

static bool stay(void)
{
	printf("here\n");
	pause();
	return false;
}

static bool stay_pending(struct mem *m)
{
	struct frozen f;

	return freeze(m, &f) && wanted_in_vain(m, &f) && stay();
}

/* A page that this program is to provide, of all of memory; it does when it gets SIGTERM. */
static bool stay_unanswered(struct mem *m)
{
	struct ibv_mr *all = ibv_reg_mr(m->end[1].dev.pd, NULL, SIZE_MAX, ODP_ALL);
	struct mem_end *e = &m->end[0];
	struct ibv_sge sg = { (uintptr_t)e->buf, 100, e->mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sg, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	static uint8_t bytes[PAGE];
	uint8_t *p = map(LEN);
	int fd = provide(p, LEN), sig;
	uintptr_t addr;
	sigset_t set;

	if (fd < 0 || !all)
		return fail("no userfaultfd or no region: %m");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	wr.wr.rdma.remote_addr = (uintptr_t)p;
	wr.wr.rdma.rkey = all->rkey;
	mem_connect(m);
	if (ibv_post_send(e->qp, &wr, &bad))
		return fail("post_send: %m");
	addr = wanted_page(fd);
	if (addr != (uintptr_t)p)
		return fail("page %#lx is wanted", (unsigned long)addr);
	printf("here\n");
	sigwait(&set, &sig);
	if (!give_page(fd, addr, bytes))
		return fail("UFFDIO_COPY: %m");
	printf("answered\n");
	return stay();
}

static bool stay_used(struct mem *m)
{
	struct ibv_mr *all = ibv_reg_mr(m->end[1].dev.pd, NULL, SIZE_MAX, ODP_ALL);
	/* In one block. */
	uint8_t *p = (uint8_t *)(((uintptr_t)map(2 * BLOCK) + BLOCK - 1) & ~(BLOCK - 1));
	struct ibv_mr *mr = reg(m, p, LEN);

	/* To split a huge page takes all of its pages away, not only the one that is dropped. */
	return mr && all && !madvise(p, BLOCK, MADV_NOHUGEPAGE) &&
	       arrives(m, p, mr, LEN) && arrives(m, p, all, LEN) &&
	       !madvise(p, PAGE, MADV_DONTNEED) &&
	       advice_is(m, "prefetch", mr, p, LEN, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			 IBV_ADVISE_MR_FLAG_FLUSH, 0) && stay();
}

const struct mem_case mem_stay[] = {
	{ "stay, a page is wanted", stay_pending },
	{ "stay, a page is wanted of the program", stay_unanswered },
	{ "stay, pages in use", stay_used },
	{}
};
