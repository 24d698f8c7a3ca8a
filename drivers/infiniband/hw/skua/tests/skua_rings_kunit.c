// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of skua_ib's kernel rings that need no device: polling against a device that lies,
 * encoding of WQEs, and the room that is set aside for them.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "../skua_ib.h"

#define QPN	0x345678
#define LOG_CQ	3
#define LOG_SQ	3
#define LOG_RQ	2

static const struct skua_limits test_limits = {
	.caps = SKUA_CAP_RC,
	.max_gids = 16,
	.max_sq_blocks = 65536,
	.max_rq_wqes = 65536,
	.max_wqe_blocks = SKUA_WQE_MAX_BLOCKS,
	.max_rq_sge = 16,
	.max_inline = 512,
	.max_rd_atomic = 16,
	.path_mtu_max = IB_MTU_4096,
};

/* A kernel QP whose both queues complete on one CQ, and no device. */
struct rings {
	struct skua_ib_dev dev;
	struct skua_ib_cq cq;
	struct skua_ib_qp qp;
	struct skua_cq_dbr cq_dbr;
	struct skua_cqe cqe[1 << LOG_CQ];
	u8 sq[SKUA_WQE_BLOCK << LOG_SQ];
	struct skua_ib_swqe swqe[1 << LOG_SQ];
	u64 rwr[1 << LOG_RQ];
	u32 written;
};

static void rings_exit(void *data)
{
	xa_destroy(&((struct rings *)data)->cq.qps);
}

static struct rings *rings_new(struct kunit *test)
{
	struct rings *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->dev.lim = &test_limits;
	r->cq.ibcq.device = &r->dev.ibdev;
	spin_lock_init(&r->cq.lock);
	r->cq.ring = r->cqe;
	r->cq.dbr = &r->cq_dbr;
	r->cq.log_size = LOG_CQ;
	xa_init_flags(&r->cq.qps, XA_FLAGS_LOCK_IRQ);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, rings_exit, r), 0);

	r->qp.ibqp.device = &r->dev.ibdev;
	r->qp.ibqp.send_cq = &r->cq.ibcq;
	r->qp.ibqp.recv_cq = &r->cq.ibcq;
	r->qp.core.obj.num = QPN;
	/* Not the first error: no doorbell for a device that is not there. */
	set_bit(0, &r->qp.failed);
	spin_lock_init(&r->qp.sq.lock);
	spin_lock_init(&r->qp.rq.lock);
	r->qp.cap = (struct ib_qp_cap) {
		.max_send_sge = 8, .max_recv_sge = 1, .max_inline_data = 100,
	};
	skua_sq_ring_init(&r->qp.sq.ring, r->sq, LOG_SQ);
	r->qp.sq.wqe = r->swqe;
	r->qp.sq.size = 1 << LOG_SQ;
	r->qp.rq.wr_id = r->rwr;
	r->qp.rq.size = 1 << LOG_RQ;
	KUNIT_ASSERT_EQ(test, xa_insert_irq(&r->cq.qps, QPN, &r->qp, GFP_KERNEL), 0);
	return r;
}

/* Write a CQE as the device would. */
static void device_cqe(struct rings *r, u32 qpn, unsigned int op, u16 index, unsigned int status)
{
	u32 i = r->written++;
	struct skua_cqe *cqe = &r->cqe[i % ARRAY_SIZE(r->cqe)];

	cqe->qpn = cpu_to_le32(qpn);
	cqe->byte_len = cpu_to_le32(1000 + i);
	cqe->what = le32_encode_bits(index, SKUA_CQE_WQE_INDEX) |
		    le32_encode_bits(op, SKUA_CQE_OPCODE) |
		    le32_encode_bits(status, SKUA_CQE_STATUS);
	cqe->own = le32_encode_bits(!(i >> LOG_CQ & 1), SKUA_CQE_PHASE);
}

/* Put @n one-block WQEs into the send queue. */
static void post_sends(struct kunit *test, struct rings *r, unsigned int n, u64 wr_id)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	while (n--) {
		wr.wr_id = wr_id++;
		KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr, r->qp.sq.pi), 1);
		r->qp.sq.pi++;
	}
}

static void test_poll_in_order(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct ib_wc wc[2];
	unsigned int i;

	/* Three turns of both rings. */
	for (i = 0; i < 3 << LOG_CQ; i++) {
		post_sends(test, r, 1, 100 + i);
		device_cqe(r, QPN, SKUA_CQE_REQ, i, SKUA_CQE_OK);
		KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 1, wc), 1);
		KUNIT_EXPECT_EQ(test, wc[0].wr_id, 100 + i);
		KUNIT_EXPECT_EQ(test, wc[0].status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc[0].opcode, IB_WC_SEND);
		KUNIT_EXPECT_EQ(test, wc[0].byte_len, 1000 + i);
		KUNIT_EXPECT_PTR_EQ(test, wc[0].qp, &r->qp.ibqp);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(r->cq_dbr.ci), i + 1);
	}
}

/* One completion stands for the unsignaled ones before it. */
static void test_poll_unsignaled(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct ib_wc wc;

	post_sends(test, r, 5, 100);
	device_cqe(r, QPN, SKUA_CQE_REQ, 3, SKUA_CQE_OK);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 103);
	KUNIT_EXPECT_EQ(test, r->qp.sq.ci, 4);
}

/* A device that names what is not there gets nothing done. */
static void test_poll_hostile(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct ib_wc wc;

	post_sends(test, r, 2, 100);
	r->swqe[1].blocks = 0;
	r->rwr[0] = 500;
	r->qp.rq.pi = 1;
	device_cqe(r, QPN + 1, SKUA_CQE_REQ, 0, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_REQ, 2, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_REQ, 0xffff, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_REQ, 1, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_RECV, 1, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_RECV_ETH, 0, SKUA_CQE_OK);
	device_cqe(r, QPN, 0xff, 0, SKUA_CQE_OK);
	/* One that is right, so that poll ends there. */
	device_cqe(r, QPN, SKUA_CQE_RECV, 0, 0xee);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 500);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_GENERAL_ERR);
	KUNIT_EXPECT_EQ(test, r->qp.sq.ci, 0);
	KUNIT_EXPECT_EQ(test, r->qp.rq.ci, 1);
	KUNIT_EXPECT_EQ(test, r->cq.ci, 8);
}

/* A completion is believed in the CQ of its queue alone. */
static void test_poll_other_cq(struct kunit *test)
{
	struct skua_ib_cq *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct rings *r = rings_new(test);
	struct ib_wc wc;

	KUNIT_ASSERT_NOT_NULL(test, other);
	post_sends(test, r, 1, 100);
	r->rwr[0] = 500;
	r->qp.rq.pi = 2;
	r->qp.ibqp.send_cq = &other->ibcq;
	device_cqe(r, QPN, SKUA_CQE_REQ, 0, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_RECV, 0, SKUA_CQE_OK);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 500);
	KUNIT_EXPECT_EQ(test, r->qp.sq.ci, 0);
	r->qp.ibqp.send_cq = &r->cq.ibcq;
	r->qp.ibqp.recv_cq = &other->ibcq;
	device_cqe(r, QPN, SKUA_CQE_RECV, 1, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_RECV_WRITE_IMM, 1, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_REQ, 0, SKUA_CQE_OK);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 100);
	KUNIT_EXPECT_EQ(test, r->qp.rq.ci, 1);
}

static void test_poll_status(struct kunit *test)
{
#define X(name, value, verbs)	{ value, IB_WC_##verbs },
	static const struct {
		u8 hw;
		enum ib_wc_status ib;
	} cases[] = { SKUA_CQE_STATUS_TABLE(X) };
#undef X
	struct rings *r = rings_new(test);
	struct ib_wc wc;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		post_sends(test, r, 1, i);
		device_cqe(r, QPN, SKUA_CQE_REQ, i, cases[i].hw);
		KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 1, &wc), 1);
		KUNIT_EXPECT_EQ(test, wc.status, cases[i].ib);
	}
}

/* After RESET nothing of before is seen, and others' completions stay. */
static void test_forget(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct skua_ib_qp *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct ib_wc wc;
	u64 wr_id = 900;

	KUNIT_ASSERT_NOT_NULL(test, other);
	*other = r->qp;
	other->core.obj.num = QPN + 1;
	other->rq.wr_id = &wr_id;
	other->rq.size = 1;
	other->rq.pi = 1;
	KUNIT_ASSERT_EQ(test, xa_insert_irq(&r->cq.qps, QPN + 1, other, GFP_KERNEL), 0);

	post_sends(test, r, 3, 100);
	device_cqe(r, QPN, SKUA_CQE_REQ, 0, SKUA_CQE_OK);
	device_cqe(r, QPN, SKUA_CQE_REQ, 1, SKUA_CQE_OK);
	device_cqe(r, QPN + 1, SKUA_CQE_RECV, 0, SKUA_CQE_OK);
	skua_ib_cq_forget(&r->qp, false);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 900);
	KUNIT_EXPECT_EQ(test, r->qp.sq.ci, 0);
	KUNIT_EXPECT_PTR_EQ(test, xa_load(&r->cq.qps, QPN), &r->qp);
	skua_ib_cq_forget(&r->qp, true);
	KUNIT_EXPECT_NULL(test, xa_load(&r->cq.qps, QPN));
}

/* A dead device: first what it completed, then the rest flushed, each once. */
static void test_dead_flush(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct ib_wc wc[8];

	post_sends(test, r, 3, 100);
	r->rwr[0] = 500;
	r->rwr[1] = 501;
	r->qp.rq.pi = 2;
	device_cqe(r, QPN, SKUA_CQE_REQ, 0, SKUA_CQE_OK);
	r->dev.dead = true;
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 2, wc), 2);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 100);
	KUNIT_EXPECT_EQ(test, wc[0].status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc[1].wr_id, 101);
	KUNIT_EXPECT_EQ(test, wc[1].status, IB_WC_WR_FLUSH_ERR);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 8, wc), 3);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 102);
	KUNIT_EXPECT_EQ(test, wc[1].wr_id, 500);
	KUNIT_EXPECT_EQ(test, wc[2].wr_id, 501);
	KUNIT_EXPECT_EQ(test, wc[2].status, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_PTR_EQ(test, wc[2].qp, &r->qp.ibqp);
	KUNIT_EXPECT_EQ(test, skua_ib_poll_cq(&r->cq.ibcq, 8, wc), 0);
}

static void test_post_limits(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct ib_sge sge[9] = { { .length = 100 }, };
	struct ib_rdma_wr rdma = { .wr = { .opcode = IB_WR_RDMA_READ, .sg_list = sge } };
	static const u8 data[100];
	struct ib_send_wr *wr = &rdma.wr;
	unsigned int i;

	for (i = 1; i < ARRAY_SIZE(sge); i++)
		sge[i].length = 1;
	wr->num_sge = 9;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), -EINVAL);
	wr->num_sge = -1;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), -EINVAL);
	/* Control, remote address, 8 elements: three blocks; then what is left. */
	wr->num_sge = 8;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), 3);
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 5), 3);
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 6), -ENOMEM);
	KUNIT_EXPECT_EQ(test, r->swqe[5].blocks, 3);
	KUNIT_EXPECT_EQ(test, r->swqe[6].blocks, 0);
	KUNIT_EXPECT_EQ(test, r->swqe[7].blocks, 0);
	/* READ has no inline payload, and inline has a limit: 107 bytes, 101, 100. */
	wr->send_flags = IB_SEND_INLINE;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), -EINVAL);
	wr->opcode = IB_WR_RDMA_WRITE;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(sge); i++)
		sge[i].addr = (uintptr_t)data;
	wr->num_sge = 2;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), -EINVAL);
	wr->num_sge = 1;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), 3);
	/* Not without the capability; not at all. */
	wr->send_flags = 0;
	wr->opcode = IB_WR_ATOMIC_CMP_AND_SWP;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), -EINVAL);
	wr->opcode = IB_WR_REG_MR;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, wr, 0), -EINVAL);
}

/* An inline payload that runs over the ring's end. */
static void test_post_inline_wrap(struct kunit *test)
{
	struct rings *r = rings_new(test);
	u8 data[90];
	struct ib_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data) };
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_IMM, .sg_list = &sge, .num_sge = 1,
		.send_flags = IB_SEND_INLINE | IB_SEND_SIGNALED,
		.ex.imm_data = cpu_to_be32(0x12345678),
	};
	const struct skua_wqe_ctrl *ctrl = (void *)&r->sq[7 * SKUA_WQE_BLOCK];
	unsigned int i, head = SKUA_WQE_BLOCK - SKUA_WQE_SEG - sizeof(struct skua_wqe_inline);

	for (i = 0; i < sizeof(data); i++)
		data[i] = i;
	r->qp.sq.pi = 7;
	r->qp.sq.ci = 7;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr, 7), 2);
	KUNIT_EXPECT_EQ(test, le32_get_bits(ctrl->op, SKUA_WQE_OPCODE), SKUA_WQE_SEND_IMM);
	KUNIT_EXPECT_EQ(test, le32_get_bits(ctrl->op, SKUA_WQE_INDEX), 7);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->flags), SKUA_WQE_F_INLINE | SKUA_WQE_F_SIGNALED);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(ctrl->imm), 0x12345678);
	KUNIT_EXPECT_MEMEQ(test, (u8 *)(ctrl + 1) + sizeof(struct skua_wqe_inline), data, head);
	KUNIT_EXPECT_MEMEQ(test, r->sq, data + head, sizeof(data) - head);
}

/* --- work requests about memory --- */

static const struct skua_limits mem_limits = {
	.caps = SKUA_CAP_RC | SKUA_CAP_ATOMIC | SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_ATOMIC_WRITE |
		SKUA_CAP_INVALIDATE | SKUA_CAP_FAST_REG,
};

static unsigned int wqe_op(const struct skua_wqe_ctrl *ctrl)
{
	return le32_get_bits(ctrl->op, SKUA_WQE_OPCODE);
}

static unsigned int wqe_nseg(const struct skua_wqe_ctrl *ctrl)
{
	return le32_get_bits(ctrl->op, SKUA_WQE_NSEG);
}

static void test_post_masked(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct ib_sge sge = { .addr = 0x1000, .lkey = 0x77, .length = 8 };
	struct ib_atomic_wr wr = {
		.wr = { .sg_list = &sge, .num_sge = 1 },
		.remote_addr = 0x123456789a, .rkey = 0xabcd,
		.compare_add = 11, .swap = 22, .compare_add_mask = 33, .swap_mask = 44,
	};
	const struct skua_wqe_ctrl *ctrl = (void *)r->sq;
	const struct skua_wqe_atomic *op = (void *)(r->sq + 2 * SKUA_WQE_SEG);

	r->dev.lim = &mem_limits;
	wr.wr.opcode = IB_WR_MASKED_ATOMIC_CMP_AND_SWP;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), 2);
	KUNIT_EXPECT_EQ(test, wqe_op(ctrl), SKUA_WQE_MASKED_CAS);
	KUNIT_EXPECT_EQ(test, wqe_nseg(ctrl), 5);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[0].swap_add), 22);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[0].compare), 11);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[1].swap_add), 44);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[1].compare), 33);
	KUNIT_EXPECT_EQ(test, r->swqe[0].opcode, IB_WC_MASKED_COMP_SWAP);

	/* The mask of an add marks the boundaries of its fields. */
	wr.wr.opcode = IB_WR_MASKED_ATOMIC_FETCH_AND_ADD;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), 2);
	KUNIT_EXPECT_EQ(test, wqe_op(ctrl), SKUA_WQE_MASKED_FAA);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[0].swap_add), 11);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[0].compare), 0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[1].swap_add), 33);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(op[1].compare), 0);

	wr.wr.opcode = IB_WR_ATOMIC_CMP_AND_SWP;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), 1);
	KUNIT_EXPECT_EQ(test, wqe_nseg(ctrl), 4);
}

static void test_post_invalidate(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct ib_sge sge = { .length = 4 };
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1,
		.ex.invalidate_rkey = 0x12345678,
	};
	const struct skua_wqe_ctrl *ctrl = (void *)r->sq;

	r->dev.lim = &mem_limits;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr, 0), 1);
	KUNIT_EXPECT_EQ(test, wqe_op(ctrl), SKUA_WQE_SEND_INV);
	KUNIT_EXPECT_EQ(test, wqe_nseg(ctrl), 2);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->inv_key), 0x12345678);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->flags), 0);

	/* What is there of a payload does not matter. */
	wr.opcode = IB_WR_LOCAL_INV;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr, 0), 1);
	KUNIT_EXPECT_EQ(test, wqe_op(ctrl), SKUA_WQE_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, wqe_nseg(ctrl), 1);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->inv_key), 0x12345678);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ctrl->flags), SKUA_WQE_F_LOCAL_FENCE);
	wr.send_flags = IB_SEND_INLINE;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, &wr, 0), -EINVAL);
}

static void test_post_reg(struct kunit *test)
{
	struct rings *r = rings_new(test);
	struct skua_ib_mr mr = {
		.ibmr = { .iova = 0x10000123, .length = 0x2345, .page_size = SZ_8K },
		.core = { .key = 0x4567aa },
		.fr = { .max_pages = 4, .npages = 2, .offset = 0x123, .list.dma = 0x7000 },
	};
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = &mr.ibmr, .key = 0x4567bb,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
	};
	const struct skua_wqe_ctrl *ctrl = (void *)r->sq;
	const struct skua_wqe_reg *reg = (void *)(r->sq + SKUA_WQE_SEG);

	r->dev.lim = &mem_limits;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), 1);
	KUNIT_EXPECT_EQ(test, wqe_op(ctrl), SKUA_WQE_REG_MR);
	KUNIT_EXPECT_EQ(test, wqe_nseg(ctrl), 4);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reg->key), 0x4567bb);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reg->access),
			SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reg->va), 0x10000123);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reg->len), 0x2345);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reg->page_list), 0x7000);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reg->npages), 2);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reg->log_page), 13);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reg->offset), 0x123);
	KUNIT_EXPECT_EQ(test, r->swqe[0].opcode, IB_WC_REG_MR);

	/* Another region's key, rights that are none, a region of another kind. */
	wr.key = 0x4568aa;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), -EINVAL);
	wr.key = 0x4567aa;
	wr.access = IB_ACCESS_ON_DEMAND;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), -EINVAL);
	wr.access = 0;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), 1);
	mr.fr.max_pages = 0;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&r->qp, &wr.wr, 0), -EINVAL);
}

/* Every WQE that a kernel QP may post fits into what was set aside for it. */
static void test_wqe_blocks(struct kunit *test)
{
	struct ib_qp_cap cap = { .max_send_sge = 1 };

	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&test_limits, IB_QPT_RC, &cap), 1);
	cap.max_send_sge = 2;
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&test_limits, IB_QPT_RC, &cap), 1);
	cap.max_send_sge = 3;
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&test_limits, IB_QPT_RC, &cap), 2);
	cap.max_inline_data = 28;
	cap.max_send_sge = 1;
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&test_limits, IB_QPT_RC, &cap), 1);
	cap.max_inline_data = 29;
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&test_limits, IB_QPT_RC, &cap), 2);
	cap.max_inline_data = 0;
	cap.max_send_sge = skua_ib_max_send_sge(&test_limits);
	KUNIT_EXPECT_LE(test, skua_ib_wqe_blocks(&test_limits, IB_QPT_RC, &cap),
			SKUA_WQE_MAX_BLOCKS);
	KUNIT_EXPECT_LE(test, skua_ib_wqe_blocks(&test_limits, IB_QPT_UD, &cap),
			SKUA_WQE_MAX_BLOCKS);
	/* With everything there is the longest is not longer than the device takes. */
	KUNIT_EXPECT_LE(test, skua_ib_wqe_blocks(&mem_limits, IB_QPT_RC, &cap),
			SKUA_WQE_MAX_BLOCKS);
	cap.max_send_sge = 1;
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&mem_limits, IB_QPT_RC, &cap), 2);
}

static struct kunit_case skua_rings_cases[] = {
	KUNIT_CASE(test_poll_in_order),
	KUNIT_CASE(test_poll_unsignaled),
	KUNIT_CASE(test_poll_hostile),
	KUNIT_CASE(test_poll_other_cq),
	KUNIT_CASE(test_poll_status),
	KUNIT_CASE(test_forget),
	KUNIT_CASE(test_dead_flush),
	KUNIT_CASE(test_post_limits),
	KUNIT_CASE(test_post_inline_wrap),
	KUNIT_CASE(test_post_masked),
	KUNIT_CASE(test_post_invalidate),
	KUNIT_CASE(test_post_reg),
	KUNIT_CASE(test_wqe_blocks),
	{}
};

static struct kunit_suite skua_rings_suite = {
	.name = "skua_rings",
	.test_cases = skua_rings_cases,
};

kunit_test_suite(skua_rings_suite);

MODULE_DESCRIPTION("KUnit tests of skua_ib's rings");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
