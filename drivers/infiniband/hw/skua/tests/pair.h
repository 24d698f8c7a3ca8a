/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For tests on a live device: two connected QPs of it. For one source file of a module.
 */
#ifndef SKUA_IB_TESTS_PAIR_H
#define SKUA_IB_TESTS_PAIR_H

#include <kunit/test.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "live.h"

#define DEPTH		16
#define BUF_SIZE	16384
#define TIMEOUT		msecs_to_jiffies(20000)

/* A work request and how it ended. */
struct req {
	struct ib_cqe cqe;
	struct completion done;
	struct ib_wc wc;
	int seen;
};

struct side {
	struct ib_qp *qp;
	u8 *buf;
	dma_addr_t dma;
};

struct pair {
	struct kunit *test;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ib_cq *cq;
	const struct ib_gid_attr *gid;
	struct side side[2];
};

static void req_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct req *r = container_of(wc->wr_cqe, struct req, cqe);

	r->wc = *wc;
	r->seen++;
	complete(&r->done);
}

static void req_init(struct req *r)
{
	memset(r, 0, sizeof(*r));
	init_completion(&r->done);
	r->cqe.done = req_done;
}

static void __maybe_unused expect(struct kunit *test, struct req *r, enum ib_wc_status status,
				  enum ib_wc_opcode opcode)
{
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&r->done, TIMEOUT), 0);
	KUNIT_EXPECT_EQ(test, r->wc.status, status);
	if (status == IB_WC_SUCCESS)
		KUNIT_EXPECT_EQ(test, r->wc.opcode, opcode);
}

/* --- making a connected pair --- */

static const struct ib_gid_attr *any_gid(struct ib_device *ibdev)
{
	const struct ib_gid_attr *attr;
	int i;

	for (i = 0; i < 16; i++) {
		attr = rdma_get_gid_attr(ibdev, 1, i);
		if (!IS_ERR(attr))
			return attr;
	}
	return NULL;
}

static int modify_init(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_ATOMIC,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int modify_rtr(struct pair *p, struct ib_qp *qp, u32 peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = 0xfffff0,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE,
	};
	u8 mac[ETH_ALEN];
	int err;

	err = rdma_read_gid_l2_fields(p->gid, NULL, mac);
	if (err)
		return err;
	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, p->gid->index, 64, 0);
	rdma_ah_set_dgid_raw(&attr.ah_attr, (void *)p->gid->gid.raw);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	ether_addr_copy(attr.ah_attr.roce.dmac, mac);
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			    IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int modify_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = 0xfffff0,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

static void connect(struct kunit *test, struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ib_qp *qp = p->side[i].qp;

		KUNIT_ASSERT_EQ(test, modify_init(qp), 0);
		KUNIT_ASSERT_EQ(test, modify_rtr(p, qp, p->side[!i].qp->qp_num), 0);
		KUNIT_ASSERT_EQ(test, modify_rts(qp), 0);
	}
}

static void pair_free(void *data)
{
	struct pair *p = data;
	int i;

	for (i = 0; i < 2; i++) {
		struct side *s = &p->side[i];

		if (!IS_ERR_OR_NULL(s->qp))
			ib_destroy_qp(s->qp);
		if (s->buf)
			dma_free_coherent(p->pd->device->dma_device, BUF_SIZE, s->buf, s->dma);
	}
	if (!IS_ERR_OR_NULL(p->cq))
		ib_free_cq(p->cq);
	if (!IS_ERR_OR_NULL(p->mr))
		p->pd->device->ops.dereg_mr(p->mr, NULL);
	if (!IS_ERR_OR_NULL(p->pd))
		ib_dealloc_pd(p->pd);
	if (p->gid)
		rdma_put_gid_attr(p->gid);
}

static struct pair *pair_with(struct kunit *test, enum ib_poll_context ctx,
			      enum ib_qp_create_flags flags)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.create_flags = flags,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};
	struct pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	if (!live_dev)
		kunit_skip(test, "no Skua device");
	p->gid = any_gid(live_dev);
	if (!p->gid)
		kunit_skip(test, "its netdev has no address");
	p->pd = ib_alloc_pd(live_dev, 0);
	if (IS_ERR(p->pd)) {
		rdma_put_gid_attr(p->gid);
		KUNIT_FAIL_AND_ABORT(test, "PD: %pe", p->pd);
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, pair_free, p), 0);
	/* What IB_PD_UNSAFE_GLOBAL_RKEY does, without its warning. */
	p->mr = live_dev->ops.get_dma_mr(p->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
					 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->mr));
	p->mr->device = live_dev;
	p->cq = ib_alloc_cq(live_dev, p, 4 * DEPTH, 0, ctx);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->cq));
	init.send_cq = p->cq;
	init.recv_cq = p->cq;
	for (i = 0; i < 2; i++) {
		struct side *s = &p->side[i];

		s->buf = dma_alloc_coherent(live_dev->dma_device, BUF_SIZE, &s->dma,
					    GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, s->buf);
		s->qp = ib_create_qp(p->pd, &init);
		KUNIT_ASSERT_FALSE(test, IS_ERR(s->qp));
		KUNIT_EXPECT_GE(test, init.cap.max_send_wr, DEPTH);
		KUNIT_EXPECT_GE(test, init.cap.max_recv_wr, DEPTH);
		init.cap.max_send_wr = DEPTH;
		init.cap.max_recv_wr = DEPTH;
	}
	return p;
}

static __maybe_unused struct pair *pair_new(struct kunit *test, enum ib_poll_context ctx)
{
	return pair_with(test, ctx, 0);
}

static void __maybe_unused pattern(u8 *buf, size_t len, u8 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = seed + i * 7;
}

static void __maybe_unused reconnect(struct kunit *test, struct pair *p)
{
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET };
	int i;

	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_EQ(test, ib_modify_qp(p->side[i].qp, &reset, IB_QP_STATE), 0);
	connect(test, p);
}

/* From side 0 to side 1; inline payload is named by its kernel address. */
static int __maybe_unused post_send(struct pair *p, struct req *r, enum ib_wr_opcode op,
				    u32 len, int flags)
{
	struct ib_sge sge = {
		.addr = flags & IB_SEND_INLINE ? (uintptr_t)p->side[0].buf : p->side[0].dma,
		.length = len,
		.lkey = p->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1, .opcode = op,
			.send_flags = IB_SEND_SIGNALED | flags,
			.ex.imm_data = cpu_to_be32(0xdeadbeef),
		},
		.remote_addr = p->side[1].dma,
		.rkey = p->mr->rkey,
	};

	req_init(r);
	return ib_post_send(p->side[0].qp, &wr.wr, NULL);
}

#endif /* SKUA_IB_TESTS_PAIR_H */
