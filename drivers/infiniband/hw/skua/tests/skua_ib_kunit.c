// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of skua_ib that need no device: translation of attributes, choice of
 * page layouts, rules of mmap, kernel rings against a device that lies.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <net/ipv6.h>

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
		{ SKUA_IB_MMAP_STATUS, VM_SHARED | VM_READ | VM_EXEC, -EPERM },
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

/* --- kernel rings --- */

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

/* --- what was agreed on with the peer --- */

static void test_ece(struct kunit *test)
{
	struct skua_limits lim = { .caps = SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_VENDOR_OFF };
	struct skua_cmd_modify_qp_in in = {};

	KUNIT_EXPECT_EQ(test, skua_ib_ece_options(&lim), SKUA_ECE_MASKED_ATOMIC);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, SKUA_ECE_MASKED_ATOMIC, &in), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.mask), SKUA_QP_M_VENDOR_OFF);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.attr.vendor_off), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_XRC_TGT, 0, &in), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(in.attr.vendor_off), SKUA_VENDOR_MASKED_ATOMIC);
	/* Options of a newer peer are for the provider to drop. */
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, 3, &in), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_UD, 0, &in), -EINVAL);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_UC, 0, &in), -EINVAL);
	lim.caps = SKUA_CAP_MASKED_ATOMIC;
	KUNIT_EXPECT_EQ(test, skua_ib_ece_options(&lim), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_ece_build(&lim, IB_QPT_RC, 0, &in), -EOPNOTSUPP);
	lim.caps = SKUA_CAP_VENDOR_OFF;
	KUNIT_EXPECT_EQ(test, skua_ib_ece_options(&lim), 0);
}

/* --- pools of regions --- */

#ifndef SKUA_COMPAT_FRMR
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
#endif

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
	KUNIT_CASE(test_ece),
#ifndef SKUA_COMPAT_FRMR
	KUNIT_CASE(test_frmr_key),
#endif
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
