// SPDX-License-Identifier: GPL-2.0
/*
 * skua-nomem: verbs about memory that is not pinned, or not the system's: prefetch, dma-bufs,
 * device memory; null regions.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "nomem.h"

#define DM_LEN	4096
/* Each page that is prefetched is an allocation or two. */
#define FRESH	(8 * PAGE)
#define BUF_LEN	(64 * PAGE)

#define ODP	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)

/* --- prefetch --- */

/* Memory without a page, so that a prefetch has to find some; where it is stays the same. */
static uint8_t *fresh(void)
{
	static uint8_t *p;

	if (!p)
		p = mmap(NULL, FRESH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || madvise(p, FRESH, MADV_DONTNEED))
		die("memory without pages: %m");
	return p;
}

static bool odp_before(void)
{
	return kept(made(ibv_reg_mr(dev.pd, fresh(), FRESH, ODP)));
}

static bool implicit_before(void)
{
	fresh();
	return kept(made(ibv_reg_mr(dev.pd, NULL, SIZE_MAX, ODP)));
}

/* By this thread, not by a work item, whose allocations do not count. */
static bool prefetch(void)
{
	struct ibv_mr *odp = it.again;
	struct ibv_sge sge = { (uintptr_t)fresh(), FRESH, odp->lkey };

	return done(ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				  IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
}

static bool dereg_it(void)
{
	return done(ibv_dereg_mr(it.again));
}

/* --- dma-bufs --- */

static bool udmabuf_before(void)
{
	static int fd = -1;
	uint8_t *p;

	if (fd < 0)
		fd = dmabuf_memfd(&p, BUF_LEN);
	it.fd = fd;
	return fd >= 0;
}

static bool reg_dmabuf(void)
{
	return made(ibv_reg_dmabuf_mr(dev.pd, 0, BUF_LEN, 0, it.fd, IBV_ACCESS_LOCAL_WRITE));
}

/* --- device memory --- */

static bool alloc_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = DM_LEN };

	return made(ibv_alloc_dm(dev.ctx, &attr));
}

static bool free_dm(void)
{
	return done(ibv_free_dm(it.made));
}

static bool dm_before(void)
{
	return kept(alloc_dm());
}

static bool reg_dm(void)
{
	return made(ibv_reg_dm_mr(dev.pd, it.again, 0, DM_LEN,
				  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
}

static bool dm_after(void)
{
	return done(ibv_free_dm(it.again));
}

/* The driver's DM_QUERY */
static bool import_dm(void)
{
	struct ibv_dm *dm = it.again;

	return made(ibv_import_dm(dev.ctx, dm->handle));
}

static bool unimport_dm(void)
{
	ibv_unimport_dm(it.made);
	return true;
}

static uint64_t exported;

static bool offset_before(void)
{
	if (!dm_before())
		return false;
	exported = dm_offset(it.again);
	return true;
}

static bool export_dm(void)
{
	it.fd = dmabuf_export(dev.ctx, exported);
	return it.fd >= 0;
}

static bool close_it(void)
{
	return !close(it.fd);
}

static bool export_before(void)
{
	return offset_before() && export_dm();
}

static bool reg_export(void)
{
	return made(ibv_reg_dmabuf_mr(dev.pd, 0, DM_LEN, 0, it.fd, IBV_ACCESS_LOCAL_WRITE));
}

/* The dma-buf goes first: the kernel loses some of one that outlives what it is of. */
static bool export_after(void)
{
	return close_it() && dm_after();
}

/* --- null regions --- */

/* A domain without one: the first makes it. */
static bool pd_before(void)
{
	return kept(made(ibv_alloc_pd(dev.ctx)));
}

/* The driver's PD_NULL_MR */
static bool alloc_null(void)
{
	return made(ibv_alloc_null_mr(it.again));
}

static bool pd_after(void)
{
	return done(ibv_dealloc_pd(it.again));
}

const struct verb verbs_of_memory[] = {
	{ "advise_mr", odp_before, prefetch, nothing, dereg_it },
	{ "advise_mr, implicit", implicit_before, prefetch, nothing, dereg_it },
	{ "reg_dmabuf_mr", udmabuf_before, reg_dmabuf, dereg_mr },
	{ "dereg_mr, dma-buf", udmabuf_before, reg_dmabuf, dereg_mr, .undo_tried = true },
	/* rdma_user_mmap_io() */
	{ "alloc_dm", nothing, alloc_dm, free_dm, .other = EAGAIN },
	{ "import_dm", dm_before, import_dm, unimport_dm, dm_after, .other = EAGAIN },
	{ "reg_dm_mr", dm_before, reg_dm, dereg_mr, dm_after },
	{ "export of device memory", offset_before, export_dm, close_it, dm_after },
	{ "reg_dmabuf_mr, device memory", export_before, reg_export, dereg_mr, export_after },
	{ "free_dm, exported", export_before, nothing, dm_after, close_it, .undo_tried = true },
	{ "alloc_null_mr", pd_before, alloc_null, dereg_mr, pd_after },
	{}
};
