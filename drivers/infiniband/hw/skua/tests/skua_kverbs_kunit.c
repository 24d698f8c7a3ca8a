// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of kernel verbs on a live device: two QPs of one Skua function talk to
 * each other. They need a function whose netdev is up and has an address;
 * without one they are skipped.
 */
#include <kunit/static_stub.h>

#include "../skua_ib.h"
#include "pair.h"

static int post_recv(struct pair *p, int side, struct req *r, u32 len)
{
	struct ib_sge sge = { p->side[side].dma, len, p->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1 };

	req_init(r);
	return ib_post_recv(p->side[side].qp, &wr, NULL);
}

/* --- cases --- */

static void test_send(struct kunit *test)
{
	static const u32 sizes[] = { 0, 1, 64, 1024, 1025, BUF_SIZE };
	struct pair *p = pair_new(test, IB_POLL_WORKQUEUE);
	struct req send, recv;
	unsigned int i;

	connect(test, p);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		pattern(p->side[0].buf, BUF_SIZE, i);
		memset(p->side[1].buf, 0, BUF_SIZE);
		KUNIT_ASSERT_EQ(test, post_recv(p, 1, &recv, BUF_SIZE), 0);
		KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_SEND_WITH_IMM, sizes[i],
						sizes[i] <= 64 ? IB_SEND_INLINE : 0), 0);
		expect(test, &send, IB_WC_SUCCESS, IB_WC_SEND);
		expect(test, &recv, IB_WC_SUCCESS, IB_WC_RECV);
		KUNIT_EXPECT_EQ(test, recv.wc.byte_len, sizes[i]);
		KUNIT_EXPECT_EQ(test, recv.wc.wc_flags, IB_WC_WITH_IMM);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(recv.wc.ex.imm_data), 0xdeadbeef);
		KUNIT_EXPECT_PTR_EQ(test, recv.wc.qp, p->side[1].qp);
		KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, sizes[i]);
		if (sizes[i] < BUF_SIZE)
			KUNIT_EXPECT_EQ(test, p->side[1].buf[sizes[i]], 0);
	}
}

static void test_rdma(struct kunit *test)
{
	struct pair *p = pair_new(test, IB_POLL_SOFTIRQ);
	struct req send, recv;

	connect(test, p);
	pattern(p->side[0].buf, BUF_SIZE, 3);
	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE, 5000, 0), 0);
	expect(test, &send, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 5000);

	pattern(p->side[0].buf, BUF_SIZE, 4);
	KUNIT_ASSERT_EQ(test, post_recv(p, 1, &recv, 0), 0);
	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE_WITH_IMM, 5000, 0), 0);
	expect(test, &send, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
	expect(test, &recv, IB_WC_SUCCESS, IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 5000);

	pattern(p->side[1].buf, BUF_SIZE, 5);
	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_READ, BUF_SIZE, 0), 0);
	expect(test, &send, IB_WC_SUCCESS, IB_WC_RDMA_READ);
	KUNIT_EXPECT_MEMEQ(test, p->side[0].buf, p->side[1].buf, BUF_SIZE);
}

/*
 * Behind an IOMMU a piece can be of any size: there it takes this. Only what is charged, which is
 * memory of the device's tables, is there.
 */
static int no_piece(struct skua_dev *dev, struct skua_buf *buf, size_t size, gfp_t gfp)
{
	buf->va = NULL;
	if (gfp & __GFP_ACCOUNT)
		buf->va = dma_alloc_coherent(live_dev->dma_device, size, &buf->dma, gfp);
	buf->size = buf->va ? size : 0;
	return buf->va ? 0 : -ENOMEM;
}

struct large_queues {
	struct pair *p;
	struct ib_srq *srq;
};

/*
 * Rings as NVMe's target asks for with protection information: there is no single piece of memory
 * for them. Page after page of them is used. In the last one the device writes when it wants the
 * next doorbell, and once more when the QP is reset.
 */
static void test_large_rings(struct kunit *test)
{
	struct pair *p = pair_new(test, IB_POLL_WORKQUEUE);
	struct req send, recv;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct ib_qp_init_attr init = {
			.qp_type = IB_QPT_RC, .send_cq = p->cq, .recv_cq = p->cq,
			.cap = { .max_send_wr = 2049, .max_recv_wr = 129, .max_recv_sge = 5,
				 .max_send_sge = live_dev->attrs.max_send_sge },
		};

		ib_destroy_qp(p->side[i].qp);
		kunit_activate_static_stub(test, skua_buf_try, no_piece);
		p->side[i].qp = ib_create_qp(p->pd, &init);
		kunit_deactivate_static_stub(test, skua_buf_try);
		KUNIT_ASSERT_FALSE(test, IS_ERR(p->side[i].qp));
		KUNIT_EXPECT_NULL(test, to_skua_qp(p->side[i].qp)->buf.piece.va);
	}
	connect(test, p);
	for (i = 0; i < 300; i++) {
		pattern(p->side[0].buf, 64, i);
		KUNIT_ASSERT_EQ(test, post_recv(p, 1, &recv, 64), 0);
		KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_SEND, 64, 0), 0);
		expect(test, &send, IB_WC_SUCCESS, IB_WC_SEND);
		expect(test, &recv, IB_WC_SUCCESS, IB_WC_RECV);
		KUNIT_ASSERT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 64);
	}
	reconnect(test, p);
}

static void large_queues_free(void *data)
{
	struct large_queues *l = data;
	int i;

	for (i = 0; i < 2; i++) {
		if (!IS_ERR_OR_NULL(l->p->side[i].qp))
			ib_destroy_qp(l->p->side[i].qp);
		l->p->side[i].qp = NULL;
	}
	if (!IS_ERR_OR_NULL(l->srq))
		ib_destroy_srq(l->srq);
}

/* A CQ and an SRQ for which there is no single piece of memory, and QPs of them. */
static void large_queues_make(struct kunit *test, struct large_queues *l)
{
	struct ib_srq_init_attr srq = { .attr = { .max_wr = 200, .max_sge = 3 } };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .cap = { .max_send_wr = 16, .max_send_sge = 1 },
	};
	int i;

	/* Without its QPs the CQ can go. */
	large_queues_free(l);
	ib_free_cq(l->p->cq);
	kunit_activate_static_stub(test, skua_buf_try, no_piece);
	l->p->cq = ib_alloc_cq(live_dev, l->p, 200, 0, IB_POLL_WORKQUEUE);
	l->srq = ib_create_srq(l->p->pd, &srq);
	kunit_deactivate_static_stub(test, skua_buf_try);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l->p->cq));
	KUNIT_ASSERT_FALSE(test, IS_ERR(l->srq));
	KUNIT_EXPECT_NULL(test, to_skua_cq(l->p->cq)->buf.piece.va);
	KUNIT_EXPECT_NULL(test, to_skua_srq(l->srq)->buf.piece.va);
	init.send_cq = l->p->cq;
	init.recv_cq = l->p->cq;
	init.srq = l->srq;
	for (i = 0; i < 2; i++) {
		l->p->side[i].qp = ib_create_qp(l->p->pd, &init);
		KUNIT_ASSERT_FALSE(test, IS_ERR(l->p->side[i].qp));
	}
}

/* Several times around in the pages of both: in the last one the device reads the records. */
static void test_large_queues(struct kunit *test)
{
	struct large_queues *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	struct req send, recv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->p = pair_new(test, IB_POLL_WORKQUEUE);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, large_queues_free, l), 0);
	large_queues_make(test, l);
	connect(test, l->p);
	for (i = 0; i < 600; i++) {
		struct ib_sge sge = {
			.addr = l->p->side[1].dma, .length = 64, .lkey = l->p->pd->local_dma_lkey,
		};
		struct ib_recv_wr wr = { .wr_cqe = &recv.cqe, .sg_list = &sge, .num_sge = 1 };

		req_init(&recv);
		pattern(l->p->side[0].buf, 64, i);
		KUNIT_ASSERT_EQ(test, ib_post_srq_recv(l->srq, &wr, NULL), 0);
		KUNIT_ASSERT_EQ(test, post_send(l->p, &send, IB_WR_SEND, 64, 0), 0);
		expect(test, &send, IB_WC_SUCCESS, IB_WC_SEND);
		expect(test, &recv, IB_WC_SUCCESS, IB_WC_RECV);
		KUNIT_ASSERT_MEMEQ(test, l->p->side[1].buf, l->p->side[0].buf, 64);
	}
}

/* A chain longer than the ring stops at the first that does not fit. */
static void test_full(struct kunit *test)
{
	struct pair *p = pair_new(test, IB_POLL_WORKQUEUE);
	struct ib_recv_wr *rwr = kunit_kcalloc(test, 256, sizeof(*rwr), GFP_KERNEL);
	struct ib_send_wr *swr = kunit_kcalloc(test, 256, sizeof(*swr), GFP_KERNEL);
	struct req *r = kunit_kcalloc(test, 512, sizeof(*r), GFP_KERNEL);
	const struct ib_recv_wr *bad_recv = NULL;
	const struct ib_send_wr *bad_send = NULL;
	unsigned int i, posted;

	KUNIT_ASSERT_NOT_NULL(test, rwr);
	KUNIT_ASSERT_NOT_NULL(test, swr);
	KUNIT_ASSERT_NOT_NULL(test, r);
	for (i = 0; i < 256; i++) {
		req_init(&r[i]);
		req_init(&r[256 + i]);
		rwr[i].wr_cqe = &r[i].cqe;
		rwr[i].next = i < 255 ? &rwr[i + 1] : NULL;
		swr[i].wr_cqe = &r[256 + i].cqe;
		swr[i].opcode = IB_WR_SEND;
		swr[i].send_flags = IB_SEND_SIGNALED;
		swr[i].next = i < 255 ? &swr[i + 1] : NULL;
	}
	/* Not in RESET; not to send in INIT. */
	KUNIT_ASSERT_EQ(test, ib_post_recv(p->side[1].qp, rwr, &bad_recv), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad_recv, rwr);
	KUNIT_ASSERT_EQ(test, modify_init(p->side[0].qp), 0);
	KUNIT_EXPECT_EQ(test, ib_post_send(p->side[0].qp, swr, &bad_send), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad_send, swr);

	connect(test, p);
	KUNIT_ASSERT_EQ(test, ib_post_recv(p->side[1].qp, rwr, &bad_recv), -ENOMEM);
	posted = bad_recv - rwr;
	KUNIT_EXPECT_EQ(test, posted, to_skua_qp(p->side[1].qp)->rq.size);
	KUNIT_EXPECT_GE(test, posted, DEPTH);
	KUNIT_ASSERT_LT(test, posted, 256);
	/* As many sends as there are receives, of which the last is none. */
	swr[posted - 1].next = NULL;
	swr[DEPTH / 2].opcode = IB_WR_RDMA_READ_WITH_INV;
	KUNIT_EXPECT_EQ(test, ib_post_send(p->side[0].qp, swr, &bad_send), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad_send, &swr[DEPTH / 2]);
	for (i = 0; i < DEPTH / 2; i++) {
		expect(test, &r[i], IB_WC_SUCCESS, IB_WC_RECV);
		expect(test, &r[256 + i], IB_WC_SUCCESS, IB_WC_SEND);
	}
}

/* Everything that was posted comes back flushed, once, also what comes late. */
static void drain(struct kunit *test, enum ib_poll_context ctx)
{
	struct pair *p = pair_new(test, ctx);
	struct req *r = kunit_kcalloc(test, DEPTH, sizeof(*r), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	connect(test, p);
	for (i = 0; i < DEPTH - 2; i++)
		KUNIT_ASSERT_EQ(test, post_recv(p, 1, &r[i], 64), 0);
	ib_drain_qp(p->side[1].qp);
	for (i = 0; i < DEPTH - 2; i++) {
		KUNIT_EXPECT_EQ(test, r[i].seen, 1);
		KUNIT_EXPECT_EQ(test, r[i].wc.status, IB_WC_WR_FLUSH_ERR);
	}
	/* Its end is told to the other side by silence: retries run out there. */
	ib_drain_qp(p->side[0].qp);
}

static void test_drain_softirq(struct kunit *test)
{
	drain(test, IB_POLL_SOFTIRQ);
}

static void test_drain_workqueue(struct kunit *test)
{
	drain(test, IB_POLL_WORKQUEUE);
}

static void test_drain_direct(struct kunit *test)
{
	drain(test, IB_POLL_DIRECT);
}

/* A QP that failed works again after RESET. */
static void test_error_reset(struct kunit *test)
{
	struct pair *p = pair_new(test, IB_POLL_WORKQUEUE);
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET };
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	struct req send, recv, late;
	u32 rkey = p->mr->rkey;
	int i;

	connect(test, p);
	KUNIT_ASSERT_EQ(test, post_recv(p, 0, &recv, 64), 0);
	p->mr->rkey ^= 1;
	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE, 100, 0), 0);
	p->mr->rkey = rkey;
	expect(test, &send, IB_WC_REM_ACCESS_ERR, 0);
	expect(test, &recv, IB_WC_WR_FLUSH_ERR, 0);
	/* The device went to ERR by itself; a receive posted now is flushed too. */
	KUNIT_ASSERT_EQ(test, post_recv(p, 0, &late, 64), 0);
	expect(test, &late, IB_WC_WR_FLUSH_ERR, 0);
	KUNIT_ASSERT_EQ(test, ib_query_qp(p->side[0].qp, &attr, IB_QP_STATE, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.qp_state, IB_QPS_ERR);

	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, ib_modify_qp(p->side[i].qp, &reset, IB_QP_STATE), 0);
	connect(test, p);
	pattern(p->side[0].buf, BUF_SIZE, 9);
	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE, 100, 0), 0);
	expect(test, &send, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 100);
}

static void test_refused(struct kunit *test)
{
	struct pair *p = pair_new(test, IB_POLL_WORKQUEUE);
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .send_cq = p->cq, .recv_cq = p->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	struct ib_qp *qp;

	init.cap.max_send_wr = live_dev->attrs.max_qp_wr + 1;
	qp = ib_create_qp(p->pd, &init);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(qp), -EINVAL);
	init.cap.max_send_wr = U32_MAX;
	qp = ib_create_qp(p->pd, &init);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(qp), -EINVAL);
	init.cap.max_send_wr = 1;
	init.cap.max_send_sge = live_dev->attrs.max_send_sge + 1;
	qp = ib_create_qp(p->pd, &init);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(qp), -EINVAL);
	init.cap.max_send_sge = 1;
	init.qp_type = IB_QPT_RAW_PACKET;
	qp = ib_create_qp(p->pd, &init);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(qp), -EOPNOTSUPP);
	/* RESET to RTS, and a mask without what INIT needs. */
	KUNIT_EXPECT_EQ(test, ib_modify_qp(p->side[0].qp, &attr, IB_QP_STATE), -EINVAL);
	attr.qp_state = IB_QPS_INIT;
	KUNIT_EXPECT_EQ(test, ib_modify_qp(p->side[0].qp, &attr, IB_QP_STATE), -EINVAL);
}

/* --- atomics --- */

/* One atomic on the first word of side 1; its old value goes to side 0's. */
static u64 atomic_op(struct kunit *test, struct pair *p, const struct ib_atomic_wr *how,
		     enum ib_wc_opcode opcode)
{
	struct ib_sge sge = { p->side[0].dma, sizeof(u64), p->pd->local_dma_lkey };
	struct ib_atomic_wr wr = *how;
	struct req r;

	req_init(&r);
	wr.wr.wr_cqe = &r.cqe;
	wr.wr.sg_list = &sge;
	wr.wr.num_sge = 1;
	wr.wr.send_flags = IB_SEND_SIGNALED;
	wr.remote_addr = p->side[1].dma;
	wr.rkey = p->mr->rkey;
	KUNIT_ASSERT_EQ(test, ib_post_send(p->side[0].qp, &wr.wr, NULL), 0);
	expect(test, &r, IB_WC_SUCCESS, opcode);
	return *(u64 *)p->side[0].buf;
}

static void test_atomics(struct kunit *test)
{
	struct ib_atomic_wr cas = { .wr.opcode = IB_WR_ATOMIC_CMP_AND_SWP, .swap = 77 };
	struct ib_atomic_wr faa = { .wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD };
	struct pair *p;
	u64 *word;

	if (live_dev && live_dev->attrs.atomic_cap == IB_ATOMIC_NONE)
		kunit_skip(test, "no atomics");
	p = pair_new(test, IB_POLL_SOFTIRQ);
	word = (u64 *)p->side[1].buf;
	connect(test, p);
	*word = 0x1122334455667788;
	faa.compare_add = 0xffffffffffffffff;
	KUNIT_EXPECT_EQ(test, atomic_op(test, p, &faa, IB_WC_FETCH_ADD), 0x1122334455667788);
	KUNIT_EXPECT_EQ(test, *word, 0x1122334455667787);
	cas.compare_add = 5;
	KUNIT_EXPECT_EQ(test, atomic_op(test, p, &cas, IB_WC_COMP_SWAP), 0x1122334455667787);
	KUNIT_EXPECT_EQ(test, *word, 0x1122334455667787);
	cas.compare_add = *word;
	KUNIT_EXPECT_EQ(test, atomic_op(test, p, &cas, IB_WC_COMP_SWAP), 0x1122334455667787);
	KUNIT_EXPECT_EQ(test, *word, 77);
}

static void test_masked_atomics(struct kunit *test)
{
	struct ib_atomic_wr cas = {
		.wr.opcode = IB_WR_MASKED_ATOMIC_CMP_AND_SWP,
		.compare_add = 0x55, .compare_add_mask = 0xff,
		.swap = 0xabcd000000000000, .swap_mask = 0xffff000000000000,
	};
	struct ib_atomic_wr faa = {
		.wr.opcode = IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
		.compare_add = 0x0000000100000001, .compare_add_mask = 0x8000000080000000,
	};
	struct pair *p;
	u64 *word;

	if (live_dev && live_dev->attrs.masked_atomic_cap == IB_ATOMIC_NONE)
		kunit_skip(test, "no masked atomics");
	p = pair_new(test, IB_POLL_SOFTIRQ);
	word = (u64 *)p->side[1].buf;
	connect(test, p);
	/* Two fields of 32 bits: no carry between them, and none out. */
	*word = 0xffffffffffffffff;
	KUNIT_EXPECT_EQ(test, atomic_op(test, p, &faa, IB_WC_MASKED_FETCH_ADD), U64_MAX);
	KUNIT_EXPECT_EQ(test, *word, 0);
	/* Compares the low byte, swaps the high ones. */
	*word = 0x1111222233334455;
	KUNIT_EXPECT_EQ(test, atomic_op(test, p, &cas, IB_WC_MASKED_COMP_SWAP),
			0x1111222233334455);
	KUNIT_EXPECT_EQ(test, *word, 0xabcd222233334455);
	*word = 0x1111222233334456;
	KUNIT_EXPECT_EQ(test, atomic_op(test, p, &cas, IB_WC_MASKED_COMP_SWAP),
			0x1111222233334456);
	KUNIT_EXPECT_EQ(test, *word, 0x1111222233334456);
}

static void test_atomic_write(struct kunit *test)
{
	struct pair *p;
	struct req r;

	if (live_dev && !(live_dev->attrs.device_cap_flags & IB_DEVICE_ATOMIC_WRITE))
		kunit_skip(test, "no ATOMIC WRITE");
	p = pair_new(test, IB_POLL_WORKQUEUE);
	connect(test, p);
	pattern(p->side[0].buf, 16, 7);
	KUNIT_ASSERT_EQ(test, post_send(p, &r, IB_WR_ATOMIC_WRITE, 8, 0), 0);
	expect(test, &r, IB_WC_SUCCESS, IB_WC_ATOMIC_WRITE);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 8);
	KUNIT_EXPECT_EQ(test, p->side[1].buf[8], 0);
	pattern(p->side[0].buf, 16, 8);
	KUNIT_ASSERT_EQ(test, post_send(p, &r, IB_WR_ATOMIC_WRITE, 8, IB_SEND_INLINE), 0);
	expect(test, &r, IB_WC_SUCCESS, IB_WC_ATOMIC_WRITE);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 8);
}

/* --- fast registration --- */

#define FR_PAGES	(BUF_SIZE / SZ_4K)

/* A pair, of which side 1 has a region that is registered by work requests. */
struct fast {
	struct pair *p;
	struct ib_mr *mr;
	struct scatterlist sg[FR_PAGES];
};

static void fast_free(void *data)
{
	ib_dereg_mr(data);
}

static struct fast *fast_new(struct kunit *test)
{
	struct fast *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	if (live_dev &&
	    !(live_dev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		kunit_skip(test, "no fast registration");
	f->p = pair_new(test, IB_POLL_WORKQUEUE);
	connect(test, f->p);
	f->mr = ib_alloc_mr(f->p->pd, IB_MR_TYPE_MEM_REG, FR_PAGES);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->mr));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fast_free, f->mr), 0);
	return f;
}

/* Map pages of side 1's buffer in this order; @first and @last cut the ends. */
static void fast_map(struct kunit *test, struct fast *f, const u8 *order, unsigned int n,
		     u32 first, u32 last)
{
	unsigned int i;

	sg_init_table(f->sg, n);
	for (i = 0; i < n; i++) {
		sg_dma_address(&f->sg[i]) = f->p->side[1].dma + order[i] * SZ_4K;
		sg_dma_len(&f->sg[i]) = SZ_4K;
	}
	sg_dma_address(&f->sg[0]) += first;
	sg_dma_len(&f->sg[0]) -= first;
	sg_dma_len(&f->sg[n - 1]) -= last;
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(f->mr, f->sg, n, NULL, SZ_4K), n);
	KUNIT_ASSERT_EQ(test, f->mr->length, n * SZ_4K - first - last);
}

static int fast_post(struct fast *f, struct req *r, struct ib_send_wr *wr)
{
	req_init(r);
	wr->wr_cqe = &r->cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	return ib_post_send(f->p->side[1].qp, wr, NULL);
}

static void fast_register(struct kunit *test, struct fast *f, enum ib_wc_status status)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .mr = f->mr, .key = f->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};
	struct req r;

	KUNIT_ASSERT_EQ(test, fast_post(f, &r, &wr.wr), 0);
	expect(test, &r, status, IB_WC_REG_MR);
}

static void fast_invalidate(struct kunit *test, struct fast *f)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = f->mr->rkey,
	};
	struct req r;

	KUNIT_ASSERT_EQ(test, fast_post(f, &r, &wr), 0);
	expect(test, &r, IB_WC_SUCCESS, IB_WC_LOCAL_INV);
}

/* Side 0 uses the region: WRITE or READ of @len bytes at @at. */
static void fast_use(struct kunit *test, struct fast *f, enum ib_wr_opcode op, u32 rkey, u32 at,
		     u32 len, enum ib_wc_status status)
{
	struct pair *p = f->p;
	struct ib_sge sge = { p->side[0].dma, len, p->pd->local_dma_lkey };
	struct req r;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &r.cqe, .sg_list = &sge, .num_sge = 1, .opcode = op,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = f->mr->iova + at,
		.rkey = rkey,
	};

	req_init(&r);
	KUNIT_ASSERT_EQ(test, ib_post_send(p->side[0].qp, &wr.wr, NULL), 0);
	expect(test, &r, status, op == IB_WR_RDMA_READ ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE);
}

/* Pages in any order, over and over, each time under another key. */
static void test_fast_reg(struct kunit *test)
{
	static const u8 orders[][FR_PAGES] = { { 0, 1, 2, 3 }, { 3, 1, 0, 2 }, { 2, 0, 3, 1 } };
	struct fast *f = fast_new(test);
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		struct side *s = f->p->side;

		fast_map(test, f, orders[i], FR_PAGES, 0, 0);
		fast_register(test, f, IB_WC_SUCCESS);
		pattern(s[0].buf, BUF_SIZE, 40 + i);
		for (j = 0; j < FR_PAGES; j++)
			s[0].buf[j * SZ_4K] = j;
		fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, BUF_SIZE, IB_WC_SUCCESS);
		for (j = 0; j < FR_PAGES; j++)
			KUNIT_EXPECT_MEMEQ(test, s[1].buf + orders[i][j] * SZ_4K,
					   s[0].buf + j * SZ_4K, SZ_4K);
		memset(s[0].buf, 0, BUF_SIZE);
		fast_use(test, f, IB_WR_RDMA_READ, f->mr->rkey, SZ_4K + 100, SZ_4K,
			 IB_WC_SUCCESS);
		KUNIT_EXPECT_MEMEQ(test, s[0].buf, s[1].buf + orders[i][1] * SZ_4K + 100,
				   SZ_4K - 100);
		fast_invalidate(test, f);
		ib_update_fast_reg_key(f->mr, ib_inc_rkey(f->mr->rkey));
	}
}

/* Begins and ends within pages; also at address 0. */
static void test_fast_reg_offset(struct kunit *test)
{
	static const u8 order[] = { 2, 1 };
	struct fast *f = fast_new(test);
	struct side *s = f->p->side;
	unsigned int zero;

	for (zero = 0; zero < 2; zero++) {
		fast_map(test, f, order, 2, 123, 456);
		if (zero)
			f->mr->iova = 0;
		fast_register(test, f, IB_WC_SUCCESS);
		pattern(s[0].buf, BUF_SIZE, 60 + zero);
		memset(s[1].buf, 0, BUF_SIZE);
		fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, f->mr->length,
			 IB_WC_SUCCESS);
		KUNIT_EXPECT_MEMEQ(test, s[1].buf + 2 * SZ_4K + 123, s[0].buf, SZ_4K - 123);
		KUNIT_EXPECT_MEMEQ(test, s[1].buf + SZ_4K, s[0].buf + SZ_4K - 123, SZ_4K - 456);
		KUNIT_EXPECT_EQ(test, s[1].buf[2 * SZ_4K + 122], 0);
		KUNIT_EXPECT_EQ(test, s[1].buf[2 * SZ_4K - 456], 0);
		fast_invalidate(test, f);
		ib_update_fast_reg_key(f->mr, ib_inc_rkey(f->mr->rkey));
	}
	/* One byte beyond. */
	fast_map(test, f, order, 2, 123, 456);
	fast_register(test, f, IB_WC_SUCCESS);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 1, f->mr->length,
		 IB_WC_REM_ACCESS_ERR);
}

/* A key is good from its registration to its invalidation, and only itself. */
static void test_fast_reg_keys(struct kunit *test)
{
	static const u8 order[] = { 0 };
	struct fast *f = fast_new(test);
	u32 old = f->mr->rkey;

	fast_map(test, f, order, 1, 0, 0);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, 8, IB_WC_REM_ACCESS_ERR);
	reconnect(test, f->p);
	fast_register(test, f, IB_WC_SUCCESS);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, 8, IB_WC_SUCCESS);
	fast_invalidate(test, f);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, 8, IB_WC_REM_ACCESS_ERR);
	reconnect(test, f->p);
	ib_update_fast_reg_key(f->mr, ib_inc_rkey(f->mr->rkey));
	fast_register(test, f, IB_WC_SUCCESS);
	fast_use(test, f, IB_WR_RDMA_WRITE, old, 0, 8, IB_WC_REM_ACCESS_ERR);
	reconnect(test, f->p);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, 8, IB_WC_SUCCESS);
}

/* The other side takes the key away by its answer. */
static void test_remote_invalidate(struct kunit *test)
{
	static const u8 order[] = { 1, 0 };
	struct fast *f = fast_new(test);
	struct ib_send_wr inv = { .opcode = IB_WR_SEND_WITH_INV };
	struct req recv, send;

	fast_map(test, f, order, 2, 0, 0);
	fast_register(test, f, IB_WC_SUCCESS);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, 8, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, post_recv(f->p, 1, &recv, 64), 0);
	req_init(&send);
	inv.wr_cqe = &send.cqe;
	inv.send_flags = IB_SEND_SIGNALED;
	inv.ex.invalidate_rkey = f->mr->rkey;
	KUNIT_ASSERT_EQ(test, ib_post_send(f->p->side[0].qp, &inv, NULL), 0);
	expect(test, &send, IB_WC_SUCCESS, IB_WC_SEND);
	expect(test, &recv, IB_WC_SUCCESS, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, recv.wc.wc_flags, IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, recv.wc.ex.invalidate_rkey, f->mr->rkey);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, 8, IB_WC_REM_ACCESS_ERR);
	reconnect(test, f->p);
	/* It is free to be registered again. */
	ib_update_fast_reg_key(f->mr, ib_inc_rkey(f->mr->rkey));
	fast_register(test, f, IB_WC_SUCCESS);
	fast_use(test, f, IB_WR_RDMA_WRITE, f->mr->rkey, 0, 8, IB_WC_SUCCESS);
}

static void test_fast_reg_refused(struct kunit *test)
{
	struct fast *f = fast_new(test);
	struct ib_pd *pd = f->p->pd;
	struct ib_mr *mr;
	unsigned int i;

	mr = ib_alloc_mr(pd, IB_MR_TYPE_SG_GAPS, 4);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mr), -EOPNOTSUPP);
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mr), -EINVAL);
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG,
			 live_dev->attrs.max_fast_reg_page_list_len + 1);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(mr), -EINVAL);
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, live_dev->attrs.max_fast_reg_page_list_len);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(mr), 0);
	ib_dereg_mr(mr);

	/* More pages than it was made for: only those are mapped. */
	mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, FR_PAGES - 1);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(mr), 0);
	sg_init_table(f->sg, FR_PAGES);
	for (i = 0; i < FR_PAGES; i++) {
		sg_dma_address(&f->sg[i]) = f->p->side[1].dma + i * SZ_4K;
		sg_dma_len(&f->sg[i]) = SZ_4K;
	}
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(mr, f->sg, FR_PAGES, NULL, SZ_4K), FR_PAGES - 1);
	KUNIT_EXPECT_EQ(test, mr->length, (FR_PAGES - 1) * SZ_4K);
	ib_dereg_mr(mr);

	/* Pages of no size that there is; a gap ends the mapping. */
	sg_init_table(f->sg, 2);
	for (i = 0; i < 2; i++) {
		sg_dma_address(&f->sg[i]) = f->p->side[1].dma + 2 * i * SZ_4K;
		sg_dma_len(&f->sg[i]) = 100;
	}
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(f->mr, f->sg, 2, NULL, SZ_2K), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(f->mr, f->sg, 2, NULL, 3 * SZ_4K), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(f->mr, f->sg, 2, NULL, SZ_4K), 1);
	KUNIT_EXPECT_EQ(test, f->mr->length, 100);
}

static struct kunit_case skua_kverbs_cases[] = {
	KUNIT_CASE_SLOW(test_send),
	KUNIT_CASE_SLOW(test_rdma),
	KUNIT_CASE_SLOW(test_large_rings),
	KUNIT_CASE_SLOW(test_large_queues),
	KUNIT_CASE_SLOW(test_full),
	KUNIT_CASE_SLOW(test_drain_softirq),
	KUNIT_CASE_SLOW(test_drain_workqueue),
	KUNIT_CASE_SLOW(test_drain_direct),
	KUNIT_CASE_SLOW(test_error_reset),
	KUNIT_CASE_SLOW(test_refused),
	KUNIT_CASE_SLOW(test_atomics),
	KUNIT_CASE_SLOW(test_masked_atomics),
	KUNIT_CASE_SLOW(test_atomic_write),
	KUNIT_CASE_SLOW(test_fast_reg),
	KUNIT_CASE_SLOW(test_fast_reg_offset),
	KUNIT_CASE_SLOW(test_fast_reg_keys),
	KUNIT_CASE_SLOW(test_remote_invalidate),
	KUNIT_CASE_SLOW(test_fast_reg_refused),
	{}
};

static struct kunit_suite skua_kverbs_suite = {
	.name = "skua_kverbs",
	.suite_init = live_init,
	.suite_exit = live_exit,
	.test_cases = skua_kverbs_cases,
};

kunit_test_suite(skua_kverbs_suite);

MODULE_DESCRIPTION("KUnit tests of kernel verbs on a Skua device");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
