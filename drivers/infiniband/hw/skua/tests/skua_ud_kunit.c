// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of datagrams in skua_ib that need no device: address vectors, work
 * requests and completions of UD and GSI QPs, what UC may send.
 */
#include <kunit/test.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <net/ipv6.h>

#include "../skua_ib.h"

#define QPN	0x345678
#define LOG_CQ	3
#define LOG_SQ	3
#define LOG_RQ	2

static const struct skua_limits ud_limits = {
	.caps = SKUA_CAP_UC | SKUA_CAP_UD | SKUA_CAP_ATOMIC | SKUA_CAP_INVALIDATE |
		SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_ATOMIC_WRITE,
	.max_gids = 16,
	.max_wqe_blocks = SKUA_WQE_MAX_BLOCKS,
};

/* --- address vectors --- */

static const union ib_gid v4 = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
static const union ib_gid v4_mc = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } };
static const union ib_gid v6 = { .raw = { 0xfd, 0x77, [15] = 1 } };
static const union ib_gid v6_mc = { .raw = { 0xff, 0x0e, [15] = 1 } };
static const union ib_gid none;

static const u8 mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };
static const u8 mac_v4_mc[ETH_ALEN] = { 1, 0, 0x5e, 1, 2, 3 };
static const u8 mac_v6_mc[ETH_ALEN] = { 0x33, 0x33, 0, 0, 0, 1 };
static const u8 mac_none[ETH_ALEN];

static void test_av_paths(struct kunit *test)
{
	static const struct {
		const union ib_gid *sgid, *dgid;
		const u8 *dmac;
		int err;
	} cases[] = {
		{ &v4, &v4, mac, 0 },
		{ &v6, &v6, mac, 0 },
		{ &v4, &v4_mc, mac_v4_mc, 0 },
		{ &v6, &v6_mc, mac_v6_mc, 0 },
		{ &v4, &v6, mac, -EINVAL },
		{ &v6, &v4, mac, -EINVAL },
		{ &v4, &v6_mc, mac_v6_mc, -EINVAL },
		{ &v6, &v4_mc, mac_v4_mc, -EINVAL },
		{ &v6, &none, mac, -EINVAL },
		{ &v4, &v4, mac_none, -EINVAL },
		{ &v4, &v4, mac_v4_mc, -EINVAL },
		{ &v4, &v4_mc, mac, -EINVAL },
	};
	struct ib_gid_attr gid = { .gid_type = IB_GID_TYPE_ROCE_UDP_ENCAP, .index = 3 };
	struct rdma_ah_attr ah = {
		.type = RDMA_AH_ATTR_TYPE_ROCE, .ah_flags = IB_AH_GRH, .port_num = 1,
		.grh.sgid_attr = &gid,
	};
	struct skua_av av;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		gid.gid = *cases[i].sgid;
		ah.grh.dgid = *cases[i].dgid;
		memcpy(ah.roce.dmac, cases[i].dmac, ETH_ALEN);
		KUNIT_EXPECT_EQ_MSG(test, skua_ib_av_build(&ud_limits, &ah, 0, 0, &av),
				    cases[i].err, "case %u", i);
	}
	ah.grh.dgid = v4;
	gid.gid = v4;
	memcpy(ah.roce.dmac, mac, ETH_ALEN);
	ah.port_num = 2;
	KUNIT_EXPECT_EQ(test, skua_ib_av_build(&ud_limits, &ah, 0, 0, &av), -EINVAL);
	ah.port_num = 1;
	gid.index = ud_limits.max_gids;
	KUNIT_EXPECT_EQ(test, skua_ib_av_build(&ud_limits, &ah, 0, 0, &av), -EINVAL);
	ah.grh.sgid_attr = NULL;
	KUNIT_EXPECT_EQ(test, skua_ib_av_build(&ud_limits, &ah, 0, 0, &av), -EINVAL);
}

/* An address handle serves all QPs: only a label can say what port it is. */
static void test_av_sport(struct kunit *test)
{
	struct ib_gid_attr gid = {
		.gid_type = IB_GID_TYPE_ROCE_UDP_ENCAP, .index = 3, .gid = v6,
	};
	struct rdma_ah_attr ah = {
		.type = RDMA_AH_ATTR_TYPE_ROCE, .ah_flags = IB_AH_GRH, .port_num = 1, .sl = 4,
		.grh = { .sgid_attr = &gid, .dgid = v6, .traffic_class = 0x20, .hop_limit = 9 },
		.roce.dmac = { 2, 0, 0, 0, 0, 1 },
	};
	struct rdma_ah_attr back = {};
	struct skua_av av;

	KUNIT_ASSERT_EQ(test, skua_ib_av_build(&ud_limits, &ah, 0, 0, &av), 0);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(av.udp_sport), 0);
	ah.grh.flow_label = 0x12345;
	KUNIT_ASSERT_EQ(test, skua_ib_av_build(&ud_limits, &ah, 0, 0, &av), 0);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(av.udp_sport), rdma_flow_label_to_udp_sport(0x12345));

	/* What a query tells is what was asked for. */
	skua_ib_av_parse(&av, &back);
	KUNIT_EXPECT_EQ(test, back.type, RDMA_AH_ATTR_TYPE_ROCE);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&back), 4);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_port_num(&back), 1);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_ah_flags(&back), IB_AH_GRH);
	KUNIT_EXPECT_EQ(test, back.grh.flow_label, 0x12345);
	KUNIT_EXPECT_EQ(test, back.grh.sgid_index, 3);
	KUNIT_EXPECT_EQ(test, back.grh.traffic_class, 0x20);
	KUNIT_EXPECT_EQ(test, back.grh.hop_limit, 9);
	KUNIT_EXPECT_MEMEQ(test, &back.grh.dgid, &v6, sizeof(v6));
	KUNIT_EXPECT_MEMEQ(test, back.roce.dmac, mac, ETH_ALEN);
}

/* --- rings --- */

/* A kernel QP whose both queues complete on one CQ, and no device. */
struct ud {
	struct skua_ib_dev dev;
	struct skua_ib_cq cq;
	struct skua_ib_qp qp;
	struct skua_ib_ah ah;
	struct skua_cq_dbr cq_dbr;
	struct skua_cqe cqe[1 << LOG_CQ];
	u8 sq[SKUA_WQE_BLOCK << LOG_SQ];
	struct skua_ib_swqe swqe[1 << LOG_SQ];
	u64 rwr[1 << LOG_RQ];
};

static void ud_exit(void *data)
{
	xa_destroy(&((struct ud *)data)->cq.qps);
}

static struct ud *ud_new(struct kunit *test, enum ib_qp_type type)
{
	struct ud *u = kunit_kzalloc(test, sizeof(*u), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, u);
	u->dev.lim = &ud_limits;
	u->cq.ibcq.device = &u->dev.ibdev;
	spin_lock_init(&u->cq.lock);
	u->cq.ring = u->cqe;
	u->cq.dbr = &u->cq_dbr;
	u->cq.log_size = LOG_CQ;
	xa_init_flags(&u->cq.qps, XA_FLAGS_LOCK_IRQ);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, ud_exit, u), 0);

	memset(&u->ah.av, 0x5a, sizeof(u->ah.av));
	u->qp.ibqp.device = &u->dev.ibdev;
	u->qp.ibqp.qp_type = type;
	u->qp.ibqp.send_cq = &u->cq.ibcq;
	u->qp.ibqp.recv_cq = &u->cq.ibcq;
	u->qp.core.obj.num = QPN;
	spin_lock_init(&u->qp.sq.lock);
	spin_lock_init(&u->qp.rq.lock);
	u->qp.cap = (struct ib_qp_cap) {
		.max_send_sge = 4, .max_recv_sge = 1, .max_inline_data = 100,
	};
	skua_sq_ring_init(&u->qp.sq.ring, u->sq, LOG_SQ);
	u->qp.sq.wqe = u->swqe;
	u->qp.sq.size = 1 << LOG_SQ;
	u->qp.rq.wr_id = u->rwr;
	u->qp.rq.size = 1 << LOG_RQ;
	KUNIT_ASSERT_EQ(test, xa_insert_irq(&u->cq.qps, QPN, &u->qp, GFP_KERNEL), 0);
	return u;
}

static void post(struct kunit *test, enum ib_qp_type type, u16 pkey_index)
{
	struct ud *u = ud_new(test, type);
	struct ib_sge sge[2] = {
		{ .addr = 0x1000, .lkey = 0x77, .length = 8 },
		{ .addr = 0x2000, .lkey = 0x88, .length = 16 },
	};
	struct ib_ud_wr wr = {
		.wr = { .opcode = IB_WR_SEND_WITH_IMM, .sg_list = sge, .num_sge = 2,
			.ex.imm_data = cpu_to_be32(0x12345678) },
		.ah = &u->ah.ibah, .remote_qpn = 0x112233, .remote_qkey = 0x11111111,
		.pkey_index = 5, .port_num = 1,
	};
	const struct skua_wqe_ctrl *ctrl = (void *)u->sq;
	const struct skua_wqe_av *av = (void *)(u->sq + SKUA_WQE_SEG);
	const struct skua_wqe_data *data = (void *)(u->sq + SKUA_WQE_BLOCK);

	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&u->qp, &wr.wr, 0), 2);
	KUNIT_EXPECT_EQ(test, le32_get_bits(ctrl->op, SKUA_WQE_OPCODE), SKUA_WQE_SEND_IMM);
	KUNIT_EXPECT_EQ(test, le32_get_bits(ctrl->op, SKUA_WQE_NSEG), 6);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(ctrl->imm), 0x12345678);
	KUNIT_EXPECT_MEMEQ(test, &av->av, &u->ah.av, sizeof(av->av));
	KUNIT_EXPECT_EQ(test, le32_to_cpu(av->dest_qpn), 0x112233);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(av->qkey), 0x11111111);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(av->pkey_index), pkey_index);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(data[0].addr), 0x1000);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(data[1].addr), 0x2000);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(data[1].len), 16);

	/* Inline, too. */
	sge[0].addr = (uintptr_t)"datagram";
	wr.wr.num_sge = 1;
	wr.wr.send_flags = IB_SEND_INLINE;
	KUNIT_ASSERT_EQ(test, skua_ib_put_wqe(&u->qp, &wr.wr, 0), 2);
	KUNIT_EXPECT_MEMEQ(test, u->sq + SKUA_WQE_BLOCK + sizeof(struct skua_wqe_inline),
			   "datagram", 8);
	/* Without payload the address fills its block. */
	wr.wr.num_sge = 0;
	wr.wr.send_flags = 0;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&u->qp, &wr.wr, 0), 1);
	wr.ah = NULL;
	KUNIT_EXPECT_EQ(test, skua_ib_put_wqe(&u->qp, &wr.wr, 0), -EINVAL);
}

static void test_post_ud(struct kunit *test)
{
	post(test, IB_QPT_UD, 0);
}

static void test_post_gsi(struct kunit *test)
{
	post(test, IB_QPT_GSI, 5);
}

/* What needs an answer, or a connection, is refused where there is none. */
static void test_post_types(struct kunit *test)
{
	static const struct {
		enum ib_wr_opcode op;
		bool ud, uc;
	} cases[] = {
		{ IB_WR_SEND, true, true },
		{ IB_WR_SEND_WITH_IMM, true, true },
		{ IB_WR_RDMA_WRITE, false, true },
		{ IB_WR_RDMA_WRITE_WITH_IMM, false, true },
		{ IB_WR_LOCAL_INV, false, true },
		{ IB_WR_SEND_WITH_INV, false, false },
		{ IB_WR_RDMA_READ, false, false },
		{ IB_WR_ATOMIC_CMP_AND_SWP, false, false },
		{ IB_WR_ATOMIC_FETCH_AND_ADD, false, false },
		{ IB_WR_MASKED_ATOMIC_CMP_AND_SWP, false, false },
		{ IB_WR_MASKED_ATOMIC_FETCH_AND_ADD, false, false },
		{ IB_WR_ATOMIC_WRITE, false, false },
	};
	struct ud *ud = ud_new(test, IB_QPT_UD), *uc = ud_new(test, IB_QPT_UC);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		union {
			struct ib_ud_wr ud;
			struct ib_rdma_wr rdma;
			struct ib_atomic_wr atomic;
		} wr = {};

		/* The request is at the start of each. */
		wr.ud.wr.opcode = cases[i].op;
		KUNIT_EXPECT_EQ_MSG(test, skua_ib_put_wqe(&uc->qp, &wr.ud.wr, 0) > 0,
				    cases[i].uc, "case %u", i);
		wr.ud.ah = &ud->ah.ibah;
		KUNIT_EXPECT_EQ_MSG(test, skua_ib_put_wqe(&ud->qp, &wr.ud.wr, 0) > 0,
				    cases[i].ud, "case %u", i);
	}
}

static void test_wqe_blocks(struct kunit *test)
{
	struct ib_qp_cap cap = { .max_send_sge = 1 };

	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&ud_limits, IB_QPT_UD, &cap), 2);
	cap.max_send_sge = 4;
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&ud_limits, IB_QPT_GSI, &cap), 2);
	cap.max_send_sge = 5;
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&ud_limits, IB_QPT_UD, &cap), 3);
	cap.max_send_sge = skua_ib_max_send_sge(&ud_limits);
	KUNIT_EXPECT_EQ(test, skua_ib_wqe_blocks(&ud_limits, IB_QPT_UD, &cap),
			SKUA_WQE_MAX_BLOCKS);
}

/* --- completions --- */

static void device_recv(struct ud *u, u32 i, unsigned int status, u32 flags)
{
	struct skua_cqe *cqe = &u->cqe[i];

	cqe->ud = (struct skua_cqe_ud) {
		.src_qpn = cpu_to_le32(0xabcdef),
		.smac = { 2, 0, 0, 0, 0, 1 },
		.vlan_tci = cpu_to_le16(5 << VLAN_PRIO_SHIFT | 77),
		.pkey_index = cpu_to_le16(1),
		.ipv4 = !(i & 1),
	};
	cqe->qpn = cpu_to_le32(QPN);
	cqe->byte_len = cpu_to_le32(SKUA_GRH_SIZE + 100);
	cqe->what = le32_encode_bits(i, SKUA_CQE_WQE_INDEX) |
		    le32_encode_bits(SKUA_CQE_RECV, SKUA_CQE_OPCODE) |
		    le32_encode_bits(status, SKUA_CQE_STATUS);
	cqe->own = cpu_to_le32(SKUA_CQE_PHASE | SKUA_CQE_F_GRH | flags);
}

static void test_poll(struct kunit *test)
{
	struct ud *u = ud_new(test, IB_QPT_GSI);
	const int always = IB_WC_GRH | IB_WC_WITH_SMAC | IB_WC_WITH_NETWORK_HDR_TYPE;
	struct ib_wc wc[2];

	u->rwr[0] = 500;
	u->rwr[1] = 501;
	u->qp.rq.pi = 2;
	device_recv(u, 0, SKUA_CQE_OK, 0);
	device_recv(u, 1, SKUA_CQE_OK, SKUA_CQE_F_VLAN | SKUA_CQE_F_IMM);
	u->cqe[1].imm = cpu_to_be32(0x12345678);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&u->cq.ibcq, 2, wc), 2);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 500);
	KUNIT_EXPECT_EQ(test, wc[0].status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc[0].opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, wc[0].byte_len, SKUA_GRH_SIZE + 100);
	KUNIT_EXPECT_EQ(test, wc[0].wc_flags, always);
	KUNIT_EXPECT_EQ(test, wc[0].src_qp, 0xabcdef);
	KUNIT_EXPECT_EQ(test, wc[0].port_num, 1);
	KUNIT_EXPECT_EQ(test, wc[0].pkey_index, 1);
	KUNIT_EXPECT_EQ(test, wc[0].slid, 0);
	KUNIT_EXPECT_EQ(test, wc[0].sl, 0);
	KUNIT_EXPECT_EQ(test, wc[0].network_hdr_type, RDMA_NETWORK_IPV4);
	KUNIT_EXPECT_MEMEQ(test, wc[0].smac, mac, ETH_ALEN);

	KUNIT_EXPECT_EQ(test, wc[1].wc_flags, always | IB_WC_WITH_VLAN | IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, wc[1].vlan_id, 77);
	KUNIT_EXPECT_EQ(test, wc[1].sl, 5);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wc[1].ex.imm_data), 0x12345678);
	KUNIT_EXPECT_EQ(test, wc[1].network_hdr_type, RDMA_NETWORK_IPV6);
}

/* A send that failed takes the QP to SQE: receives go on, and need no doorbell. */
static void test_poll_sqe(struct kunit *test)
{
	struct ud *u = ud_new(test, IB_QPT_UD);
	struct ib_wc wc;

	u->swqe[0] = (struct skua_ib_swqe) { .wr_id = 9, .opcode = IB_WC_SEND, .blocks = 1 };
	u->qp.sq.pi = 1;
	u->cqe[0].qpn = cpu_to_le32(QPN);
	u->cqe[0].what = le32_encode_bits(SKUA_CQE_REQ, SKUA_CQE_OPCODE) |
			 le32_encode_bits(SKUA_CQE_LOC_LEN_ERR, SKUA_CQE_STATUS);
	u->cqe[0].own = cpu_to_le32(SKUA_CQE_PHASE);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&u->cq.ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 9);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_LOC_LEN_ERR);
	KUNIT_EXPECT_FALSE(test, test_bit(0, &u->qp.failed));
}

static struct kunit_case skua_ud_cases[] = {
	KUNIT_CASE(test_av_paths),
	KUNIT_CASE(test_av_sport),
	KUNIT_CASE(test_post_ud),
	KUNIT_CASE(test_post_gsi),
	KUNIT_CASE(test_post_types),
	KUNIT_CASE(test_wqe_blocks),
	KUNIT_CASE(test_poll),
	KUNIT_CASE(test_poll_sqe),
	{}
};

static struct kunit_suite skua_ud_suite = {
	.name = "skua_ud",
	.test_cases = skua_ud_cases,
};

kunit_test_suite(skua_ud_suite);

MODULE_DESCRIPTION("KUnit tests of datagrams in skua_ib");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
