// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that are registered again: all flags, alone and together, and failures
 * that change nothing.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "mem.h"

#define LEN	20000

static bool rereg_ok(int ret)
{
	if (!ret)
		return true;
	return errno == EOPNOTSUPP ? skip("no rereg_mr of this kind") :
				     fail("rereg_mr: error %d, %m", ret);
}

/* The region is what it should be: this memory, these rights, this domain. */
static bool is(struct mem *m, struct ibv_mr *mr, uint8_t *p, bool writable, bool ours)
{
	uint64_t va = (uintptr_t)p;

	if (!ours)
		return rdma(m, IBV_WR_RDMA_READ, va, mr->rkey, 8, IBV_WC_REM_ACCESS_ERR);
	if (writable && !write_arrives(m, p + 4000, va + 4000, mr->rkey, LEN - 4000))
		return false;
	if (!writable &&
	    !rdma(m, IBV_WR_RDMA_WRITE, va, mr->rkey, 8, IBV_WC_REM_ACCESS_ERR))
		return false;
	fill(p, LEN, 99);
	return rdma(m, IBV_WR_RDMA_READ, va, mr->rkey, LEN, IBV_WC_SUCCESS) &&
	       (!memcmp(m->end[0].buf, p, LEN) || fail("READ of other memory")) &&
	       rdma(m, IBV_WR_RDMA_READ, va, mr->rkey, LEN + 1, IBV_WC_REM_ACCESS_ERR);
}

static bool all_flags(struct mem *m)
{
	const int ro = IBV_ACCESS_REMOTE_READ, rw = MEM_ALL;
	struct mem_end *e = &m->end[1];
	struct ibv_pd *pd2;
	struct ibv_mr *mr;
	int flags;
	bool ok = true;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	pd2 = ibv_alloc_pd(e->dev.ctx);
	if (!pd2)
		die("alloc_pd: %m");
	for (flags = 1; ok && flags < 8; flags++) {
		uint8_t *old = e->buf + 123, *new = e->buf + LEN + 777;
		bool trans = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		bool pd = flags & IBV_REREG_MR_CHANGE_PD;
		bool access = flags & IBV_REREG_MR_CHANGE_ACCESS;

		/* From less to more, so that memory must be had for writing. */
		mr = ibv_reg_mr(e->dev.pd, old, LEN, ro);
		if (!mr)
			return fail("reg_mr: %m");
		ok = is(m, mr, old, false, true) &&
		     rereg_ok(ibv_rereg_mr(mr, flags, pd ? pd2 : NULL, trans ? new : NULL,
					   trans ? LEN : 0, access ? rw : 0)) &&
		     is(m, mr, trans ? new : old, access, !pd);
		/* And back. */
		ok = ok && rereg_ok(ibv_rereg_mr(mr, flags, pd ? e->dev.pd : NULL,
						 trans ? old : NULL, trans ? LEN : 0,
						 access ? ro : 0)) &&
		     is(m, mr, old, false, true);
		if (ibv_dereg_mr(mr))
			ok = fail("dereg_mr: %m");
	}
	/* No region is left in it. */
	if (ok && ibv_dealloc_pd(pd2))
		ok = fail("dealloc_pd: %m");
	return ok;
}

/*
 * The same region again and again, each time with other flags: what a call does not name
 * is what it was made by an earlier one.
 */
static bool again_and_again(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	uint8_t *at[2] = { e->buf + 123, e->buf + LEN + 777 };
	const int rights[2] = { IBV_ACCESS_REMOTE_READ, MEM_ALL };
	bool other = false, more = false, away = false, ok = true;
	struct ibv_pd *pd[2] = { e->dev.pd };
	struct ibv_mr *mr;
	int i;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	pd[1] = ibv_alloc_pd(e->dev.ctx);
	if (!pd[1])
		die("alloc_pd: %m");
	mr = ibv_reg_mr(pd[0], at[0], LEN, rights[0]);
	if (!mr)
		return fail("reg_mr: %m");
	for (i = 0; ok && i < 40; i++) {
		/* Each of the seven after each other, in an order without end. */
		int flags = 1 + (int)(mix(i * 7919 + 1) % 7);
		bool trans = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		bool domain = flags & IBV_REREG_MR_CHANGE_PD;
		bool access = flags & IBV_REREG_MR_CHANGE_ACCESS;

		other ^= trans;
		away ^= domain;
		more ^= access;
		ok = rereg_ok(ibv_rereg_mr(mr, flags, domain ? pd[away] : NULL,
					   trans ? at[other] : NULL, trans ? LEN : 0,
					   access ? rights[more] : 0)) &&
		     is(m, mr, at[other], more, !away);
		if (!ok)
			printf("# call %d, flags %d: %s memory, %s rights, %s domain\n", i, flags,
			       other ? "other" : "first", more ? "more" : "first",
			       away ? "other" : "first");
	}
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	if (ok && ibv_dealloc_pd(pd[1]))
		ok = fail("dealloc_pd: %m");
	return ok;
}

/* A failure changes nothing, and tells why. */
static bool failed(struct mem *m)
{
	const int all = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	int ret;
	bool ok;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	mr = ibv_reg_mr(e->dev.pd, e->buf, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!mr)
		return fail("reg_mr: %m");
	ret = ibv_rereg_mr(mr, all, NULL, (void *)4096, 4096, MEM_ALL);
	ok = expect_err("no memory there", ret == IBV_REREG_MR_ERR_CMD ? errno : ret, EFAULT) &&
	     is(m, mr, e->buf, false, true);
	if (ok) {
		ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				   IBV_ACCESS_REMOTE_WRITE);
		ok = expect_err("rights that cannot be", ret == IBV_REREG_MR_ERR_CMD ? errno : ret,
				EINVAL) &&
		     is(m, mr, e->buf, false, true);
	}
	if (ok) {
		ret = ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0);
		ok = expect_err("nothing to change", ret == IBV_REREG_MR_ERR_CMD ? errno : ret,
				EINVAL) &&
		     is(m, mr, e->buf, false, true);
	}
	if (ok) {
		ret = ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0);
		ok = (ret == IBV_REREG_MR_ERR_INPUT || fail("flags that are none: %d", ret)) &&
		     is(m, mr, e->buf, false, true);
	}
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	return ok;
}

/* Memory that is only for reading does not become more by it. */
static bool readonly_memory(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	uint8_t *p;
	struct ibv_mr *mr;
	int fd, ret;
	bool ok;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	fd = memfd_create("skua-mem", 0);
	if (fd < 0 || ftruncate(fd, LEN))
		die("memfd: %m");
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die("mmap: %m");
	mr = ibv_reg_mr(e->dev.pd, p, LEN, IBV_ACCESS_REMOTE_READ);
	if (!mr)
		return fail("reg_mr: %m");
	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, MEM_ALL);
	ok = expect_err("for writing", ret == IBV_REREG_MR_ERR_CMD ? errno : ret, EFAULT) &&
	     rdma(m, IBV_WR_RDMA_READ, (uintptr_t)p, mr->rkey, LEN, IBV_WC_SUCCESS) &&
	     rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)p, mr->rkey, 8, IBV_WC_REM_ACCESS_ERR);
	ibv_dereg_mr(mr);
	munmap(p, LEN);
	close(fd);
	return ok;
}

const struct mem_case mem_cases_rereg[] = {
	{ "rereg with all flags", all_flags },
	{ "rereg with other flags each time", again_and_again },
	{ "rereg that fails", failed },
	{ "rereg of read-only memory", readonly_memory },
	{}
};
