// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of regions over dma-bufs whose owner moves them, on a live device: the owner is
 * here, and no other kernel driver in reach of a VM moves what it has exported.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/fdtable.h>
#include <linux/hmm.h>
#include <linux/kthread.h>

#include "../odp.h"
#include "pair.h"

#define PAGES		8
#define POISON		0x5a

/**
 * struct mover - owner of a dma-buf that lies in one of two places
 * @buf: the dma-buf. Its reservation lock protects what follows.
 * @pages: both places
 * @where: the one it is in
 * @mapped: mappings there are
 * @err: why it cannot be mapped, or 0
 * @moves: so many so far
 * @mr: a region over all of it
 */
struct mover {
	struct dma_buf *buf;
	struct page *pages[2][PAGES];
	int where;
	int mapped;
	int err;
	unsigned int moves;
	struct ib_mr *mr;
};

static struct sg_table *mover_map(struct dma_buf_attachment *at, enum dma_data_direction dir)
{
	struct mover *m = at->dmabuf->priv;
	struct sg_table *sgt;
	int err = m->err;

	if (err)
		return ERR_PTR(err);
	sgt = kzalloc_obj(*sgt);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table_from_pages(sgt, m->pages[m->where], PAGES, 0, PAGES * PAGE_SIZE,
					GFP_KERNEL);
	if (err)
		goto err_sgt;
	err = dma_map_sgtable(at->dev, sgt, dir, 0);
	if (err)
		goto err_table;
	m->mapped++;
	return sgt;

err_table:
	sg_free_table(sgt);
err_sgt:
	kfree(sgt);
	return ERR_PTR(err);
}

static void mover_unmap(struct dma_buf_attachment *at, struct sg_table *sgt,
			enum dma_data_direction dir)
{
	struct mover *m = at->dmabuf->priv;

	m->mapped--;
	dma_unmap_sgtable(at->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static void mover_release(struct dma_buf *buf)
{
	struct mover *m = buf->priv;
	unsigned int i;

	for (i = 0; i < PAGES; i++) {
		if (m->pages[0][i])
			__free_page(m->pages[0][i]);
		if (m->pages[1][i])
			__free_page(m->pages[1][i]);
	}
	kfree(m);
}

static const struct dma_buf_ops mover_ops = {
	.map_dma_buf = mover_map,
	.unmap_dma_buf = mover_unmap,
	.release = mover_release,
};

/* Nobody who has it mapped keeps it there; what is left behind is poisoned. */
static int mover_move(struct mover *m)
{
	struct page **from, **to;
	int i, mapped;

	dma_resv_lock(m->buf->resv, NULL);
	dma_buf_invalidate_mappings(m->buf);
	mapped = m->mapped;
	from = m->pages[m->where];
	to = m->pages[!m->where];
	for (i = 0; i < PAGES; i++) {
		copy_page(page_address(to[i]), page_address(from[i]));
		memset(page_address(from[i]), POISON, PAGE_SIZE);
	}
	m->where = !m->where;
	m->moves++;
	dma_resv_unlock(m->buf->resv);
	return mapped;
}

/* From now on it cannot be mapped, or can again. */
static void mover_refuse(struct mover *m, int err)
{
	dma_resv_lock(m->buf->resv, NULL);
	m->err = err;
	dma_resv_unlock(m->buf->resv);
}

static u8 *mover_byte(const struct mover *m, size_t at)
{
	return (u8 *)page_address(m->pages[m->where][at / PAGE_SIZE]) + at % PAGE_SIZE;
}

/* What is in the buffer, and that nobody has written to where it was. */
static void expect_buf(struct kunit *test, const struct mover *m, size_t at, const u8 *want,
		       size_t len)
{
	size_t n;
	int i;

	for (; len; at += n, want += n, len -= n) {
		n = min(len, PAGE_SIZE - at % PAGE_SIZE);
		KUNIT_EXPECT_MEMEQ(test, mover_byte(m, at), want, n);
	}
	for (i = 0; m->moves && i < PAGES; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(page_address(m->pages[!m->where][i]), POISON,
						   PAGE_SIZE));
}

static void put_buf(void *data)
{
	struct dma_buf *buf = data;

	dma_buf_put(buf);
	/* A thread of the kernel leaves the last of it to others; the module is to go. */
	flush_delayed_fput();
}

static struct mover *mover_new(struct kunit *test)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct mover *m = kzalloc_obj(*m);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	info.ops = &mover_ops;
	info.size = PAGES * PAGE_SIZE;
	info.flags = O_RDWR;
	info.priv = m;
	m->buf = dma_buf_export(&info);
	if (IS_ERR(m->buf)) {
		kfree(m);
		KUNIT_FAIL_AND_ABORT(test, "no dma-buf");
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, put_buf, m->buf), 0);
	for (i = 0; i < 2 * PAGES; i++) {
		m->pages[i & 1][i / 2] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, m->pages[i & 1][i / 2]);
	}
	return m;
}

/* A region over @len bytes from @offset, by a descriptor as programs have it. */
static struct ib_mr *mover_reg_for(struct kunit *test, struct mover *m, struct ib_pd *pd,
				   u64 offset, u64 len, int access)
{
	struct uverbs_attr_bundle attrs = {};
	struct ib_mr *mr;
	int fd;

	get_dma_buf(m->buf);
	fd = dma_buf_fd(m->buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(m->buf);
	KUNIT_ASSERT_GE(test, fd, 0);
	mr = pd->device->ops.reg_user_mr_dmabuf(pd, offset, len, offset_in_page(offset), fd,
						access, NULL, &attrs);
	close_fd(fd);
	if (!IS_ERR(mr))
		mr->device = pd->device;
	return mr;
}

static struct ib_mr *mover_reg(struct kunit *test, struct mover *m, struct ib_pd *pd, u64 offset,
			       u64 len)
{
	return mover_reg_for(test, m, pd, offset, len, IB_ACCESS_LOCAL_WRITE |
			     IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ);
}

static void dereg(void *data)
{
	struct ib_mr *mr = data;

	mr->device->ops.dereg_mr(mr, NULL);
}

struct rig {
	struct pair *p;
	struct mover *m;
};

/* A pair of QPs, and a buffer that one of them has a region over. */
static struct rig rig_new(struct kunit *test)
{
	struct rig r;

	if (live_dev && !(live_dev->attrs.kernel_cap_flags & IBK_ON_DEMAND_PAGING))
		kunit_skip(test, "nothing that moves can be waited for");
	r.p = pair_new(test, IB_POLL_WORKQUEUE);
	connect(test, r.p);
	r.m = mover_new(test);
	r.m->mr = mover_reg(test, r.m, r.p->pd, 0, PAGES * PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(r.m->mr), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dereg, r.m->mr), 0);
	return r;
}

/* Side 0: WRITE or READ of @len bytes at @at. */
static void use(struct kunit *test, struct pair *p, enum ib_wr_opcode op, u64 at, u32 rkey,
		u32 len, enum ib_wc_status status)
{
	struct ib_sge sge = { p->side[0].dma, len, p->pd->local_dma_lkey };
	struct req r;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &r.cqe, .sg_list = &sge, .num_sge = 1, .opcode = op,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = at,
		.rkey = rkey,
	};

	req_init(&r);
	KUNIT_ASSERT_EQ(test, ib_post_send(p->side[0].qp, &wr.wr, NULL), 0);
	expect(test, &r, status, op == IB_WR_RDMA_READ ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE);
}

/* What is written is there, and is read from there after a move, and again. */
static void test_moved(struct kunit *test)
{
	struct rig r = rig_new(test);
	struct skua_ib_odp *odp = to_skua_mr(r.m->mr)->odp;
	u8 *buf = r.p->side[0].buf, *was = kunit_kzalloc(test, BUF_SIZE, GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, was);
	KUNIT_ASSERT_NOT_NULL(test, odp);
	for (i = 0; i < 5; i++) {
		u64 at = i * 4000 + 100;

		pattern(buf, BUF_SIZE, i);
		memcpy(was, buf, BUF_SIZE);
		use(test, r.p, IB_WR_RDMA_WRITE, at, r.m->mr->rkey, 12000, IB_WC_SUCCESS);
		expect_buf(test, r.m, at, was, 12000);
		/* Let go of at once, also if it is moved twice. */
		KUNIT_EXPECT_EQ(test, mover_move(r.m), 0);
		if (i & 1)
			KUNIT_EXPECT_EQ(test, mover_move(r.m), 0);
		memset(buf, 0, BUF_SIZE);
		use(test, r.p, IB_WR_RDMA_READ, at, r.m->mr->rkey, 12000, IB_WC_SUCCESS);
		KUNIT_EXPECT_MEMEQ(test, buf, was, 12000);
		expect_buf(test, r.m, at, was, 12000);
	}
	/* Of two moves in a row the second had nothing to take away. */
	KUNIT_EXPECT_EQ(test, atomic64_read(&odp->invalidations), 5 * PAGES);
	KUNIT_EXPECT_EQ(test, atomic64_read(&odp->faults), 5 * PAGES);
}

static int mover_thread(void *data)
{
	struct mover *m = data;
	int mapped = 0;

	while (!kthread_should_stop()) {
		mapped += mover_move(m);
		usleep_range(200, 2000);
	}
	return mapped;
}

static void test_moved_under_traffic(struct kunit *test)
{
	struct rig r = rig_new(test);
	u8 *buf = r.p->side[0].buf, *was = kunit_kzalloc(test, BUF_SIZE, GFP_KERNEL);
	struct task_struct *task;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, was);
	task = kthread_run(mover_thread, r.m, "skua_mover");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < 100; i++) {
		u64 at = i * 37 % (PAGES * PAGE_SIZE - BUF_SIZE);

		pattern(buf, BUF_SIZE, i);
		memcpy(was, buf, BUF_SIZE);
		use(test, r.p, IB_WR_RDMA_WRITE, at, r.m->mr->rkey, BUF_SIZE, IB_WC_SUCCESS);
		memset(buf, 0, BUF_SIZE);
		use(test, r.p, IB_WR_RDMA_READ, at, r.m->mr->rkey, BUF_SIZE, IB_WC_SUCCESS);
		if (memcmp(buf, was, BUF_SIZE)) {
			KUNIT_FAIL(test, "round %u: wrong bytes", i);
			break;
		}
	}
	KUNIT_EXPECT_EQ(test, kthread_stop(task), 0);
	KUNIT_EXPECT_GT(test, r.m->moves, 10);
	kunit_info(test, "%u moves, %lld pages brought back\n", r.m->moves,
		   atomic64_read(&to_skua_mr(r.m->mr)->odp->faults));
}

/* A region over a part of it. */
static void test_part(struct kunit *test)
{
	struct rig r = rig_new(test);
	u64 offset = 3 * PAGE_SIZE + 123, len = PAGE_SIZE + 77;
	u8 *buf = r.p->side[0].buf;
	struct ib_mr *mr;

	mr = mover_reg(test, r.m, r.p->pd, offset, len);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(mr), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dereg, mr), 0);
	pattern(buf, BUF_SIZE, 9);
	use(test, r.p, IB_WR_RDMA_WRITE, 123, mr->rkey, len, IB_WC_SUCCESS);
	expect_buf(test, r.m, offset, buf, len);
	/* Both regions let go. */
	KUNIT_EXPECT_EQ(test, r.m->mapped, 2);
	KUNIT_EXPECT_EQ(test, mover_move(r.m), 0);
	use(test, r.p, IB_WR_RDMA_WRITE, 124, mr->rkey, len - 1, IB_WC_SUCCESS);
	expect_buf(test, r.m, offset + 1, buf, len - 1);
	KUNIT_EXPECT_EQ(test, *mover_byte(r.m, offset), buf[0]);
	KUNIT_EXPECT_EQ(test, *mover_byte(r.m, offset + len), 0);
	use(test, r.p, IB_WR_RDMA_WRITE, 124, mr->rkey, len, IB_WC_REM_ACCESS_ERR);
}

/* Taken away for good: the access fails, and nothing else. */
static void test_taken(struct kunit *test)
{
	struct rig r = rig_new(test);
	struct ib_mr *mr;

	use(test, r.p, IB_WR_RDMA_WRITE, 0, r.m->mr->rkey, BUF_SIZE, IB_WC_SUCCESS);
	mover_refuse(r.m, -ENODEV);
	KUNIT_EXPECT_EQ(test, mover_move(r.m), 0);
	use(test, r.p, IB_WR_RDMA_WRITE, 0, r.m->mr->rkey, 8, IB_WC_REM_ACCESS_ERR);
	reconnect(test, r.p);
	use(test, r.p, IB_WR_RDMA_READ, 0, r.m->mr->rkey, BUF_SIZE, IB_WC_REM_ACCESS_ERR);
	reconnect(test, r.p);
	use(test, r.p, IB_WR_RDMA_WRITE, r.p->side[1].dma, r.p->mr->rkey, BUF_SIZE,
	    IB_WC_SUCCESS);
	mr = mover_reg(test, r.m, r.p->pd, 0, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mr), -ENODEV);
	/* Whoever gets -EBUSY tries again, for as long as the owner likes. */
	mover_refuse(r.m, -EBUSY);
	mr = mover_reg(test, r.m, r.p->pd, 0, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mr), -EIO);
	/* It was not for good after all. */
	mover_refuse(r.m, 0);
	use(test, r.p, IB_WR_RDMA_WRITE, 0, r.m->mr->rkey, 8, IB_WC_SUCCESS);
}

/* What a device that lies, or is late, says of a page that it wants. */
static void fault(struct skua_ib_dev *dev, u32 key, u64 va, u32 len, bool write)
{
	/* Of no queue that waits. */
	struct skua_page_fault what = { 1, key, va, len, U32_MAX, write };

	dev->odp_handler.fault(&dev->odp_handler, &what);
	flush_workqueue(skua_ib_odp_wq);
}

/* A page that may only be read is not had for writing, nor one outside of the region. */
static void test_faults_refused(struct kunit *test)
{
	struct rig r = rig_new(test);
	struct skua_ib_dev *dev = to_skua_dev(live_dev);
	struct skua_ib_odp *odp;
	struct ib_mr *mr;

	mr = mover_reg_for(test, r.m, r.p->pd, PAGE_SIZE, 2 * PAGE_SIZE, IB_ACCESS_REMOTE_READ);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(mr), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dereg, mr), 0);
	odp = to_skua_mr(mr)->odp;
	KUNIT_EXPECT_EQ(test, mover_move(r.m), 0);
	fault(dev, mr->rkey, 0, 8, true);
	KUNIT_EXPECT_EQ(test, atomic64_read(&odp->faults), 0);
	fault(dev, mr->rkey, 2 * PAGE_SIZE, 8, false);
	fault(dev, mr->rkey, U64_MAX, 8, false);
	fault(dev, mr->rkey ^ 1, 0, 8, false);
	KUNIT_EXPECT_EQ(test, atomic64_read(&odp->faults), 0);
	KUNIT_EXPECT_EQ(test, r.m->mapped, 0);
	/* More than there is of it: as far as it goes. */
	fault(dev, mr->rkey, PAGE_SIZE, U32_MAX, false);
	KUNIT_EXPECT_EQ(test, atomic64_read(&odp->faults), 2);
	KUNIT_EXPECT_EQ(test, r.m->mapped, 1);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(dev->dead));
}

/*
 * A page that two threads bring in is mapped once, and unmapped once: what the second one was
 * told of the page has no flag of the mapping by the first.
 */
static void test_mapped_once(struct kunit *test)
{
	struct device *dma = live_dev->dma_device;
	struct ib_umem_odp *umem = kunit_kzalloc(test, sizeof(*umem), GFP_KERNEL);
	struct page *page = alloc_page(GFP_KERNEL);
	dma_addr_t addr[2] = {};
	unsigned long pfn;

	KUNIT_ASSERT_NOT_NULL(test, umem);
	KUNIT_ASSERT_NOT_NULL(test, page);
	umem->umem.ibdev = live_dev;
	KUNIT_ASSERT_EQ(test, hmm_dma_map_alloc(dma, &umem->map, 4, PAGE_SIZE), 0);
	pfn = page_to_pfn(page) | HMM_PFN_VALID;
	KUNIT_EXPECT_EQ(test, skua_ib_odp_map(umem, 2, pfn, &addr[0]), 0);
	KUNIT_EXPECT_EQ(test, umem->npages, 1);
	KUNIT_EXPECT_EQ(test, skua_ib_odp_map(umem, 2, pfn | HMM_PFN_WRITE, &addr[1]), 0);
	KUNIT_EXPECT_EQ(test, umem->npages, 1);
	KUNIT_EXPECT_EQ(test, addr[0], addr[1]);
	KUNIT_EXPECT_EQ(test, umem->map.pfn_list[2], pfn | HMM_PFN_WRITE | HMM_PFN_DMA_MAPPED);
	KUNIT_EXPECT_TRUE(test, hmm_dma_unmap_pfn(dma, &umem->map, 2));
	KUNIT_EXPECT_FALSE(test, hmm_dma_unmap_pfn(dma, &umem->map, 2));
	hmm_dma_map_free(dma, &umem->map);
	__free_page(page);
}

static void test_ranges(struct kunit *test)
{
	static const struct { u64 offset, len; int err; } range[] = {
		{ 0, PAGES * PAGE_SIZE + 1, -EINVAL }, { PAGES * PAGE_SIZE, 1, -EINVAL },
		{ 0, 0, -EINVAL }, { U64_MAX, 2, -EINVAL }, { PAGE_SIZE, U64_MAX, -EINVAL },
		{ PAGES * PAGE_SIZE - 1, 1, 0 }, { PAGE_SIZE - 1, 2, 0 },
		{ PAGE_SIZE - 1, PAGE_SIZE + 2, 0 }, { 1, PAGE_SIZE, 0 },
	};
	struct rig r = rig_new(test);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(range); i++) {
		struct ib_mr *mr = mover_reg(test, r.m, r.p->pd, range[i].offset, range[i].len);

		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(mr), range[i].err, "range %u", i);
		if (!IS_ERR(mr))
			dereg(mr);
	}
	KUNIT_EXPECT_EQ(test, r.m->mapped, 1);
}

static struct kunit_case skua_dmabuf_cases[] = {
	KUNIT_CASE_SLOW(test_moved),
	KUNIT_CASE_SLOW(test_moved_under_traffic),
	KUNIT_CASE_SLOW(test_part),
	KUNIT_CASE_SLOW(test_taken),
	KUNIT_CASE_SLOW(test_faults_refused),
	KUNIT_CASE(test_mapped_once),
	KUNIT_CASE_SLOW(test_ranges),
	{}
};

static struct kunit_suite skua_dmabuf_suite = {
	.name = "skua_dmabuf",
	.suite_init = live_init,
	.suite_exit = live_exit,
	.test_cases = skua_dmabuf_cases,
};

kunit_test_suite(skua_dmabuf_suite);

MODULE_DESCRIPTION("KUnit tests of dma-bufs that move under a Skua device");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("DMA_BUF");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
