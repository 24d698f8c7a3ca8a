// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of skua_ib that need no device: translation of attributes, choice of
 * page layouts, rules of mmap. Rings are in skua_rings_kunit.c.
 */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <net/ipv6.h>

#include "../skua_ib.h"

#define QPN	0x345678

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

/* --- page layout --- */

static void test_layout_choice(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, skua_ib_umem_mode(1, false, true), SKUA_XLAT_CONTIG);
	KUNIT_EXPECT_EQ(test, skua_ib_umem_mode(1, false, false), SKUA_XLAT_CONTIG);
	KUNIT_EXPECT_EQ(test, skua_ib_umem_mode(100, true, true), SKUA_XLAT_CONTIG);
	KUNIT_EXPECT_EQ(test, skua_ib_umem_mode(2, false, true), SKUA_XLAT_INLINE);
	KUNIT_EXPECT_EQ(test, skua_ib_umem_mode(SKUA_MPT_INLINE_PAGES, false, true),
			SKUA_XLAT_INLINE);
	KUNIT_EXPECT_EQ(test, skua_ib_umem_mode(SKUA_MPT_INLINE_PAGES + 1, false, true),
			SKUA_XLAT_MTT);
	KUNIT_EXPECT_EQ(test, skua_ib_umem_mode(2, false, false), SKUA_XLAT_MTT);
}

static void test_xlat_contig(struct kunit *test)
{
	const struct skua_ib_umem m = {
		.mode = SKUA_XLAT_CONTIG, .base = 0x10000000, .offset = 0xfc0,
	};
	struct skua_xlat x = skua_ib_umem_xlat(&m, 0);

	KUNIT_EXPECT_EQ(test, le64_to_cpu(x.base), 0x10000000);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(x.offset), 0xfc0);
	KUNIT_EXPECT_EQ(test, le32_get_bits(x.mode, SKUA_XLAT_MODE), SKUA_XLAT_CONTIG);
	/* A ring that starts beyond the first page. */
	x = skua_ib_umem_xlat(&m, 0x1040);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(x.base), 0x10002000);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(x.offset), 0);
}

static void test_xlat_mtt(struct kunit *test)
{
	const struct skua_ib_umem m = {
		.mode = SKUA_XLAT_MTT, .log_page = 12, .npages = 10, .offset = 0x40,
		.mtt = { .first = 77 },
	};
	struct skua_xlat x = skua_ib_umem_xlat(&m, 0);

	KUNIT_EXPECT_EQ(test, le64_to_cpu(x.base), 77);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(x.offset), 0x40);
	KUNIT_EXPECT_EQ(test, le32_get_bits(x.mode, SKUA_XLAT_LOG_PAGE), 12);
	x = skua_ib_umem_xlat(&m, 3 * 4096 + 0xfc0);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(x.base), 81);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(x.offset), 0);
}

/* --- mmap --- */

static void test_mmap_rules(struct kunit *test)
{
	static const struct {
		enum skua_ib_mmap_kind kind;
		vm_flags_t flags;
		int err;
	} cases[] = {
		{ SKUA_IB_MMAP_UAR, VM_SHARED | VM_WRITE, 0 },
		{ SKUA_IB_MMAP_UAR, VM_SHARED, -EINVAL },
		{ SKUA_IB_MMAP_UAR, VM_WRITE, -EINVAL },
		{ SKUA_IB_MMAP_UAR, VM_SHARED | VM_READ | VM_WRITE, -EPERM },
		{ SKUA_IB_MMAP_UAR, VM_SHARED | VM_WRITE | VM_EXEC, -EPERM },
		{ SKUA_IB_MMAP_PUSH, VM_SHARED | VM_WRITE, 0 },
		{ SKUA_IB_MMAP_PUSH, VM_SHARED, -EINVAL },
		{ SKUA_IB_MMAP_PUSH, VM_SHARED | VM_READ | VM_WRITE, -EPERM },
		{ SKUA_IB_MMAP_PUSH, VM_SHARED | VM_WRITE | VM_EXEC, -EPERM },
		{ SKUA_IB_MMAP_STATUS, VM_SHARED | VM_READ, 0 },
		{ SKUA_IB_MMAP_STATUS, VM_READ, -EINVAL },
		{ SKUA_IB_MMAP_STATUS, VM_SHARED | VM_READ | VM_WRITE, -EPERM },
		{ SKUA_IB_MMAP_STATUS, VM_SHARED | VM_WRITE, -EPERM },
		{ SKUA_IB_MMAP_STATUS, VM_SHARED | VM_READ | VM_EXEC, 0 },
		{ SKUA_IB_MMAP_STATUS, VM_SHARED | VM_WRITE | VM_EXEC, -EPERM },
		{ SKUA_IB_MMAP_STATUS, VM_SHARED | VM_EXEC, -EPERM },
		{ SKUA_IB_MMAP_DM, VM_SHARED | VM_READ | VM_WRITE | VM_EXEC, 0 },
		{ SKUA_IB_MMAP_DM, VM_SHARED | VM_WRITE | VM_EXEC, -EPERM },
		{ SKUA_IB_MMAP_DM, VM_READ | VM_EXEC, -EINVAL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, skua_ib_mmap_check(cases[i].kind, cases[i].flags),
				    cases[i].err, "case %u", i);
}

/* --- rights and attributes --- */

static void test_access(struct kunit *test)
{
	struct skua_limits lim = test_limits;
	u32 hw;

	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, 0, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, 0);
	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, IB_ACCESS_LOCAL_WRITE |
					     IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
					     IB_ACCESS_REMOTE_ATOMIC, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE |
			SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC);
	/* What needs a capability, without and with it. */
	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, IB_ACCESS_MW_BIND, &hw), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, IB_ACCESS_FLUSH_GLOBAL, &hw), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, IB_ACCESS_ON_DEMAND, &hw), -EOPNOTSUPP);
	/* Where a region begins is not the device's business. */
	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, IB_ZERO_BASED, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, 0);
	lim.caps |= SKUA_CAP_MW | SKUA_CAP_FLUSH;
	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, IB_ACCESS_MW_BIND, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, SKUA_ACCESS_MW_BIND);
	/* Optional rights are granted if known and ignored if not. */
	KUNIT_EXPECT_EQ(test, skua_ib_access(&lim, IB_ACCESS_OPTIONAL, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, SKUA_ACCESS_RELAXED_ORDERING);
}

static void test_attr_mask(struct kunit *test)
{
	u32 hw;

	KUNIT_EXPECT_EQ(test, skua_ib_attr_mask(0, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, 0);
	KUNIT_EXPECT_EQ(test, skua_ib_attr_mask(IB_QP_STATE | IB_QP_CUR_STATE, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, SKUA_QP_M_STATE);
	KUNIT_EXPECT_EQ(test, skua_ib_attr_mask(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
						IB_QP_DEST_QPN | IB_QP_RQ_PSN |
						IB_QP_MAX_DEST_RD_ATOMIC |
						IB_QP_MIN_RNR_TIMER, &hw), 0);
	KUNIT_EXPECT_EQ(test, hw, SKUA_QP_M_STATE | SKUA_QP_M_AV | SKUA_QP_M_PATH_MTU |
			SKUA_QP_M_DEST_QPN | SKUA_QP_M_RQ_PSN | SKUA_QP_M_MAX_DEST_RD_ATOMIC |
			SKUA_QP_M_MIN_RNR_TIMER);
	KUNIT_EXPECT_EQ(test, skua_ib_attr_mask(IB_QP_ALT_PATH, &hw), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_attr_mask(IB_QP_PATH_MIG_STATE, &hw), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_attr_mask(IB_QP_CAP, &hw), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_attr_mask(IB_QP_RESERVED1, &hw), -EOPNOTSUPP);
}

/* Each field at its last good and first bad value. */
static void test_attr_limits(struct kunit *test)
{
#define CASE(bit, field, value, err)	{ bit, { .field = value }, err }
	static const struct {
		int mask;
		struct ib_qp_attr attr;
		int err;
	} cases[] = {
		CASE(IB_QP_PORT, port_num, 1, 0),
		CASE(IB_QP_PORT, port_num, 0, -EINVAL),
		CASE(IB_QP_PORT, port_num, 2, -EINVAL),
		CASE(IB_QP_PKEY_INDEX, pkey_index, 0, 0),
		CASE(IB_QP_PKEY_INDEX, pkey_index, 1, -EINVAL),
		CASE(IB_QP_PATH_MTU, path_mtu, 0, -EINVAL),
		CASE(IB_QP_PATH_MTU, path_mtu, IB_MTU_256, 0),
		CASE(IB_QP_PATH_MTU, path_mtu, IB_MTU_1024, 0),
		CASE(IB_QP_PATH_MTU, path_mtu, IB_MTU_2048, -EINVAL),
		CASE(IB_QP_PATH_MTU, path_mtu, 6, -EINVAL),
		CASE(IB_QP_TIMEOUT, timeout, 31, 0),
		CASE(IB_QP_TIMEOUT, timeout, 32, -EINVAL),
		CASE(IB_QP_RETRY_CNT, retry_cnt, 7, 0),
		CASE(IB_QP_RETRY_CNT, retry_cnt, 8, -EINVAL),
		CASE(IB_QP_RNR_RETRY, rnr_retry, 7, 0),
		CASE(IB_QP_RNR_RETRY, rnr_retry, 8, -EINVAL),
		CASE(IB_QP_MIN_RNR_TIMER, min_rnr_timer, 31, 0),
		CASE(IB_QP_MIN_RNR_TIMER, min_rnr_timer, 32, -EINVAL),
		CASE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 16, 0),
		CASE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 17, -EINVAL),
		CASE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 16, 0),
		CASE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 17, -EINVAL),
		CASE(IB_QP_DEST_QPN, dest_qp_num, 0xffffff, 0),
		CASE(IB_QP_DEST_QPN, dest_qp_num, 0x1000000, -EINVAL),
		CASE(IB_QP_RQ_PSN, rq_psn, 0xffffff, 0),
		CASE(IB_QP_RQ_PSN, rq_psn, 0x1000000, -EINVAL),
		CASE(IB_QP_SQ_PSN, sq_psn, 0x1000000, -EINVAL),
		CASE(IB_QP_ACCESS_FLAGS, qp_access_flags, IB_ACCESS_REMOTE_READ, 0),
		CASE(IB_QP_ACCESS_FLAGS, qp_access_flags, 1 << 30, -EINVAL),
	};
#undef CASE
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_EXPECT_EQ_MSG(test,
				    skua_ib_attr_check(NULL, &test_limits, &cases[i].attr,
						       cases[i].mask, IB_MTU_1024),
				    cases[i].err, "case %u", i);
		/* A value that the mask does not name is not looked at. */
		KUNIT_EXPECT_EQ_MSG(test,
				    skua_ib_attr_check(NULL, &test_limits, &cases[i].attr, 0,
						       IB_MTU_1024), 0, "case %u", i);
	}
}

static void test_rate(struct kunit *test)
{
	const struct skua_limits lim = {
		.caps = SKUA_CAP_RATE_LIMIT | SKUA_CAP_RC | SKUA_CAP_UC | SKUA_CAP_UD |
			SKUA_CAP_XRC | SKUA_CAP_ETH,
		.rate_min = 10, .rate_max = 1000, .rate_burst_max = 5000,
	};
	static const struct {
		enum ib_qp_type type;
		enum ib_qp_state new;
		u32 rate, burst;
		int err;
	} cases[] = {
		{ IB_QPT_RC, IB_QPS_RTS, 10, 0, 0 },
		{ IB_QPT_RC, IB_QPS_INIT, 1000, 5000, 0 },
		{ IB_QPT_RC, IB_QPS_SQD, 0, 0, 0 },
		{ IB_QPT_RC, IB_QPS_RTS, 9, 0, -EINVAL },
		{ IB_QPT_RC, IB_QPS_RTS, 1001, 0, -EINVAL },
		{ IB_QPT_RC, IB_QPS_RTS, U32_MAX, 0, -EINVAL },
		{ IB_QPT_RC, IB_QPS_RTS, 10, 5001, -EINVAL },
		{ IB_QPT_RC, IB_QPS_RTS, 0, 1, -EINVAL },
		{ IB_QPT_RC, IB_QPS_RESET, 10, 0, -EINVAL },
		{ IB_QPT_RC, IB_QPS_ERR, 10, 0, -EINVAL },
		{ IB_QPT_UC, IB_QPS_RTS, 10, 0, 0 },
		{ IB_QPT_UD, IB_QPS_RTS, 10, 0, 0 },
		{ IB_QPT_XRC_INI, IB_QPS_RTS, 10, 0, 0 },
		{ IB_QPT_RAW_PACKET, IB_QPS_RTS, 10, 0, 0 },
		{ IB_QPT_XRC_TGT, IB_QPS_RTS, 10, 0, -EOPNOTSUPP },
		{ IB_QPT_GSI, IB_QPS_RTS, 10, 0, -EOPNOTSUPP },
		{ IB_QPT_DRIVER, IB_QPS_RTS, 10, 0, -EOPNOTSUPP },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, skua_ib_rate_check(&lim, cases[i].type, cases[i].new,
							     cases[i].rate, cases[i].burst),
				    cases[i].err, "case %u", i);
	/* A device without pacing has it for no type. */
	KUNIT_EXPECT_EQ(test, skua_ib_rate_types(&test_limits), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_rate_check(&test_limits, IB_QPT_RC, IB_QPS_RTS, 10, 0),
			-EOPNOTSUPP);
}

static void test_av(struct kunit *test)
{
	struct ib_gid_attr gid = { .gid_type = IB_GID_TYPE_ROCE_UDP_ENCAP, .index = 3 };
	struct rdma_ah_attr ah = {
		.type = RDMA_AH_ATTR_TYPE_ROCE,
		.ah_flags = IB_AH_GRH,
		.port_num = 1,
		.sl = 5,
		.grh = { .sgid_attr = &gid, .flow_label = 0xfffff, .hop_limit = 7,
			 .traffic_class = 0x6a },
		.roce.dmac = { 2, 0, 0, 0, 0, 1 },
	};
	struct skua_av av;

	memset(ah.grh.dgid.raw, 0xab, sizeof(ah.grh.dgid.raw));
	KUNIT_ASSERT_EQ(test, skua_ib_av_build(&test_limits, &ah, QPN, 0x77, &av), 0);
	KUNIT_EXPECT_MEMEQ(test, av.dgid, ah.grh.dgid.raw, sizeof(av.dgid));
	KUNIT_EXPECT_MEMEQ(test, av.dmac, ah.roce.dmac, sizeof(av.dmac));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(av.sgid_index), 3);
	KUNIT_EXPECT_EQ(test, le32_get_bits(av.flow, SKUA_AV_FLOW_LABEL), 0xfffff);
	KUNIT_EXPECT_EQ(test, le32_get_bits(av.flow, SKUA_AV_PCP), 5);
	KUNIT_EXPECT_EQ(test, av.tclass, 0x6a);
	KUNIT_EXPECT_EQ(test, av.hop_limit, 7);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(av.udp_sport), rdma_flow_label_to_udp_sport(0xfffff));

	ah.grh.hop_limit = 0;
	ah.grh.flow_label = 0;
	KUNIT_ASSERT_EQ(test, skua_ib_av_build(&test_limits, &ah, QPN, 0x77, &av), 0);
	KUNIT_EXPECT_EQ(test, av.hop_limit, IPV6_DEFAULT_HOPLIMIT);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(av.udp_sport), rdma_get_udp_sport(0, QPN, 0x77));

	/* Of a completion in user space: kind of packet and priority. */
	ah.sl = 0x6a;
	KUNIT_ASSERT_EQ(test, skua_ib_av_build(&test_limits, &ah, QPN, 0x77, &av), 0);
	KUNIT_EXPECT_EQ(test, le32_get_bits(av.flow, SKUA_AV_PCP), 6);

	ah.sl = 8;
	KUNIT_EXPECT_EQ(test, skua_ib_av_build(&test_limits, &ah, QPN, 0x77, &av), -EINVAL);
	ah.sl = 0xea;
	KUNIT_EXPECT_EQ(test, skua_ib_av_build(&test_limits, &ah, QPN, 0x77, &av), -EINVAL);
	ah.sl = 0;
	ah.ah_flags = 0;
	KUNIT_EXPECT_EQ(test, skua_ib_av_build(&test_limits, &ah, QPN, 0x77, &av), -EINVAL);
	ah.ah_flags = IB_AH_GRH;
	gid.gid_type = IB_GID_TYPE_ROCE;
	KUNIT_EXPECT_EQ(test, skua_ib_av_build(&test_limits, &ah, QPN, 0x77, &av), -EINVAL);
}

/* What is set comes back when the device is asked. */
static void test_attr_round_trip(struct kunit *test)
{
	struct skua_cmd_query_qp_out *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	struct skua_ib_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct skua_ib_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	const struct ib_qp_attr in = {
		.qp_state = IB_QPS_INIT, .path_mtu = IB_MTU_1024, .qkey = 0x11111111,
		.rq_psn = 0xabcdef, .sq_psn = 0x123456, .dest_qp_num = 0x765432,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		.max_rd_atomic = 3, .max_dest_rd_atomic = 9, .min_rnr_timer = 17,
		.timeout = 14, .retry_cnt = 6, .rnr_retry = 5, .en_sqd_async_notify = 1,
	};
	int mask = IB_QP_STATE | IB_QP_PATH_MTU | IB_QP_QKEY | IB_QP_RQ_PSN | IB_QP_SQ_PSN |
		   IB_QP_DEST_QPN | IB_QP_ACCESS_FLAGS | IB_QP_MAX_QP_RD_ATOMIC |
		   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER | IB_QP_TIMEOUT |
		   IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_EN_SQD_ASYNC_NOTIFY;
	struct ib_qp_attr back = {};

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->lim = &test_limits;
	qp->ibqp.device = &dev->ibdev;
	KUNIT_ASSERT_EQ(test, skua_ib_attr_build(qp, &in, mask, &out->sqc.attr), 0);
	skua_ib_attr_parse(qp, out, &back);
	KUNIT_EXPECT_EQ(test, back.qp_state, in.qp_state);
	KUNIT_EXPECT_EQ(test, back.path_mtu, in.path_mtu);
	KUNIT_EXPECT_EQ(test, back.qkey, in.qkey);
	KUNIT_EXPECT_EQ(test, back.rq_psn, in.rq_psn);
	KUNIT_EXPECT_EQ(test, back.sq_psn, in.sq_psn);
	KUNIT_EXPECT_EQ(test, back.dest_qp_num, in.dest_qp_num);
	KUNIT_EXPECT_EQ(test, back.qp_access_flags, in.qp_access_flags);
	KUNIT_EXPECT_EQ(test, back.max_rd_atomic, in.max_rd_atomic);
	KUNIT_EXPECT_EQ(test, back.max_dest_rd_atomic, in.max_dest_rd_atomic);
	KUNIT_EXPECT_EQ(test, back.min_rnr_timer, in.min_rnr_timer);
	KUNIT_EXPECT_EQ(test, back.timeout, in.timeout);
	KUNIT_EXPECT_EQ(test, back.retry_cnt, in.retry_cnt);
	KUNIT_EXPECT_EQ(test, back.rnr_retry, in.rnr_retry);
	KUNIT_EXPECT_EQ(test, back.en_sqd_async_notify, 1);

	/* What the mask does not name stays zero. */
	KUNIT_ASSERT_EQ(test, skua_ib_attr_build(qp, &in, 0, &out->sqc.attr), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(&out->sqc.attr, 0, sizeof(out->sqc.attr)));
}

/* A right that the device has no capability for is left out, the others stay. */
static void test_attr_rights(struct kunit *test)
{
	static const struct {
		u64 caps;
		int set, back;
	} cases[] = {
		{ SKUA_CAP_FLUSH, IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_REMOTE_READ,
		  IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_REMOTE_READ },
		{ SKUA_CAP_FLUSH, IB_ACCESS_FLUSH_PERSISTENT, IB_ACCESS_FLUSH_PERSISTENT },
		{ 0, IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT | IB_ACCESS_REMOTE_READ,
		  IB_ACCESS_REMOTE_READ },
		/* rdma_cm requests it of every device. */
		{ 0, IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_REMOTE_WRITE,
		  IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_REMOTE_WRITE },
	};
	struct skua_cmd_query_qp_out *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	struct skua_ib_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct skua_ib_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct skua_limits lim = test_limits;
	struct ib_qp_attr attr, back = {};
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->lim = &lim;
	qp->ibqp.device = &dev->ibdev;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		lim.caps = cases[i].caps;
		attr = (struct ib_qp_attr){ .qp_access_flags = cases[i].set };
		KUNIT_ASSERT_EQ(test, skua_ib_attr_build(qp, &attr, IB_QP_ACCESS_FLAGS,
							 &out->sqc.attr), 0);
		skua_ib_attr_parse(qp, out, &back);
		KUNIT_EXPECT_EQ(test, back.qp_access_flags, cases[i].back);
	}
}

/* --- accounts of users --- */

/**
 * struct putter - a thread that drops a reference to an account
 * @user: the account
 * @began: it is about to
 * @done: it has
 */
struct putter {
	struct skua_ib_user *user;
	struct completion began, done;
};

static int putter_run(void *data)
{
	struct putter *p = data;

	complete(&p->began);
	skua_ib_user_put(p->user);
	kthread_complete_and_exit(&p->done, 0);
}

static void dealloc_device(void *data)
{
	struct skua_ib_dev *dev = data;

	ib_dealloc_device(&dev->ibdev);
}

/* Until it has given the mutex back, a thread keeps the device that the mutex is in. */
static void test_user_put(struct kunit *test)
{
	struct putter p = {
		.began = COMPLETION_INITIALIZER_ONSTACK(p.began),
		.done = COMPLETION_INITIALIZER_ONSTACK(p.done),
	};
	struct skua_ib_dev *dev = ib_alloc_device(skua_ib_dev, ibdev);
	struct task_struct *task;
	const struct kref *refs;
	unsigned int before, n;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dealloc_device, dev), 0);
	mutex_init(&dev->user_lock);
	INIT_LIST_HEAD(&dev->users);
	refs = &dev->ibdev.dev.kobj.kref;
	before = kref_read(refs);
	p.user = skua_ib_user_get(dev);
	KUNIT_ASSERT_NOT_NULL(test, p.user);
	KUNIT_EXPECT_EQ(test, kref_read(refs), before + 1);
	mutex_lock(&dev->user_lock);
	task = kthread_run(putter_run, &p, "skua_user_put");
	if (!IS_ERR(task)) {
		wait_for_completion(&p.began);
		/* Until it waits for the mutex. */
		for (n = 0; n < 5000 && !(READ_ONCE(task->__state) & TASK_UNINTERRUPTIBLE); n++)
			usleep_range(500, 1000);
		KUNIT_EXPECT_EQ(test, kref_read(refs), before + 2);
	}
	mutex_unlock(&dev->user_lock);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(task), 0);
	wait_for_completion(&p.done);
	KUNIT_EXPECT_EQ(test, kref_read(refs), before);
	KUNIT_EXPECT_TRUE(test, list_empty(&dev->users));
	mutex_destroy(&dev->user_lock);
}

/* MTT entries are charged by groups, as they are handed out: a user has no more than its share. */
static void test_user_mtt(struct kunit *test)
{
	struct skua_ib_dev *dev = ib_alloc_device(skua_ib_dev, ibdev);
	struct skua_limits *lim = kunit_kzalloc(test, sizeof(*lim), GFP_KERNEL);
	struct skua_ib_user *user;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, dealloc_device, dev), 0);
	KUNIT_ASSERT_NOT_NULL(test, lim);
	lim->max_mtt = 4 * 4 * SKUA_MTT_GROUP;
	dev->lim = lim;
	mutex_init(&dev->user_lock);
	INIT_LIST_HEAD(&dev->users);
	user = skua_ib_user_get(dev);
	KUNIT_ASSERT_NOT_NULL(test, user);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, skua_ib_user_charge(user, SKUA_IB_RES_MTT, 1 + i), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_user_charge(user, SKUA_IB_RES_MTT, 1), -ENOSPC);
	for (i = 0; i < 4; i++)
		skua_ib_user_uncharge(user, SKUA_IB_RES_MTT, 1 + i);
	KUNIT_EXPECT_EQ(test, atomic64_read(&user->used[SKUA_IB_RES_MTT]), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_user_charge(user, SKUA_IB_RES_MTT, U64_MAX), -ENOSPC);
	KUNIT_EXPECT_EQ(test, skua_ib_user_charge(user, SKUA_IB_RES_MTT, 4 * SKUA_MTT_GROUP), 0);
	skua_ib_user_uncharge(user, SKUA_IB_RES_MTT, 4 * SKUA_MTT_GROUP);
	skua_ib_user_put(user);
	mutex_destroy(&dev->user_lock);
}

/* --- pools of regions --- */

/* Pools differ in the room for pages alone, and there are few of them. */
static void test_frmr_key(struct kunit *test)
{
	static const struct {
		size_t in, out;
	} size[] = {
		{ 0, 0 }, { 1, SKUA_MTT_GROUP }, { SKUA_MTT_GROUP, SKUA_MTT_GROUP },
		{ SKUA_MTT_GROUP + 1, 2 * SKUA_MTT_GROUP }, { 1000, 1024 }, { 1024, 1024 },
		{ 65535, 65536 }, { 65536, 65536 },
	};
	struct skua_limits lim = { .max_mtt = BIT_ULL(27) };
	struct skua_ib_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct ib_frmr_key in = { .access_flags = IB_ACCESS_LOCAL_WRITE }, out;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->lim = &lim;
	for (i = 0; i < ARRAY_SIZE(size); i++) {
		in.num_dma_blocks = size[i].in;
		KUNIT_EXPECT_EQ(test, skua_ib_frmr_key(&dev->ibdev, &in, &out), 0);
		KUNIT_EXPECT_EQ(test, out.num_dma_blocks, size[i].out);
		KUNIT_EXPECT_EQ(test, out.access_flags, 0);
	}
	in.num_dma_blocks = 65537;
	KUNIT_EXPECT_EQ(test, skua_ib_frmr_key(&dev->ibdev, &in, &out), -EINVAL);
	in.num_dma_blocks = SIZE_MAX;
	KUNIT_EXPECT_EQ(test, skua_ib_frmr_key(&dev->ibdev, &in, &out), -EINVAL);
	/* No more than a part of a small table. */
	lim.max_mtt = 1000;
	in.num_dma_blocks = 125;
	KUNIT_EXPECT_EQ(test, skua_ib_frmr_key(&dev->ibdev, &in, &out), 0);
	KUNIT_EXPECT_EQ(test, out.num_dma_blocks, 125);
	in.num_dma_blocks = 1;
	in.vendor_key = 1;
	KUNIT_EXPECT_EQ(test, skua_ib_frmr_key(&dev->ibdev, &in, &out), -EINVAL);
	in.vendor_key = 0;
	in.ats = 1;
	KUNIT_EXPECT_EQ(test, skua_ib_frmr_key(&dev->ibdev, &in, &out), -EINVAL);
}

static struct kunit_case skua_ib_cases[] = {
	KUNIT_CASE(test_layout_choice),
	KUNIT_CASE(test_xlat_contig),
	KUNIT_CASE(test_xlat_mtt),
	KUNIT_CASE(test_mmap_rules),
	KUNIT_CASE(test_access),
	KUNIT_CASE(test_attr_mask),
	KUNIT_CASE(test_attr_limits),
	KUNIT_CASE(test_rate),
	KUNIT_CASE(test_av),
	KUNIT_CASE(test_attr_round_trip),
	KUNIT_CASE(test_attr_rights),
	KUNIT_CASE(test_user_mtt),
	KUNIT_CASE(test_user_put),
	KUNIT_CASE(test_frmr_key),
	{}
};

static struct kunit_suite skua_ib_suite = {
	.name = "skua_ib",
	.test_cases = skua_ib_cases,
};

kunit_test_suite(skua_ib_suite);

MODULE_DESCRIPTION("KUnit tests of skua_ib");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
