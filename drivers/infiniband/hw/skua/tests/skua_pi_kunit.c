// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of integrity regions: the attributes as the device reads them, the status as it writes
 * it, and, on a live device whose netdev is up and has an address, READ and WRITE with
 * protection information made, taken away, checked and passed on.
 */
#include <linux/t10-pi.h>

#include "../skua_ib.h"
#include "pair.h"

#define BLOCK	512
#define BLOCKS	8
#define DATA	(BLOCKS * BLOCK)
#define META	SZ_8K			/* offset of the tuples in side 1's buffer */
#define TUPLES	(BLOCKS * sizeof(struct t10_pi_tuple))
#define WIRE	(DATA + TUPLES)
#define APP	0x5ca0
#define REF	77

static struct ib_sig_domain dif(enum ib_t10_dif_bg_type type)
{
	return (struct ib_sig_domain) {
		.sig_type = IB_SIG_TYPE_T10_DIF,
		.sig.dif = {
			.bg_type = type, .pi_interval = BLOCK, .app_tag = APP, .ref_tag = REF,
			.ref_remap = true, .app_escape = true, .apptag_check_mask = 0xffff,
		},
	};
}

/* --- without a device --- */

static void test_describe(struct kunit *test)
{
	struct ib_sig_attrs sig = {
		.check_mask = IB_SIG_CHECK_GUARD | IB_SIG_CHECK_REFTAG,
		.mem = dif(IB_T10DIF_CRC), .wire = dif(IB_T10DIF_CSUM),
	};
	struct skua_pi_desc d;

	sig.mem.sig.dif.ref_escape = true;
	sig.mem.sig.dif.ref_remap = false;
	sig.wire.sig.dif.bg = 0xffff;
	sig.wire.sig.dif.app_escape = false;
	KUNIT_ASSERT_EQ(test, skua_ib_pi_describe(&sig, &d), 0);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(d.attr.interval), BLOCK);
	KUNIT_EXPECT_EQ(test, d.attr.check, SKUA_PI_GUARD | SKUA_PI_REF);
	KUNIT_EXPECT_EQ(test, d.attr.copy, SKUA_PI_APP);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(d.attr.mem.flags),
			SKUA_PI_F_T10 | SKUA_PI_F_APP_ESCAPE | SKUA_PI_F_REF_ESCAPE);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(d.attr.wire.flags),
			SKUA_PI_F_T10 | SKUA_PI_F_CSUM | SKUA_PI_F_REF_INC);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(d.attr.wire.seed), 0xffff);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(d.attr.mem.app_tag), APP);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(d.attr.mem.app_mask), 0xffff);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(d.attr.mem.ref_tag), REF);

	/* The same on both sides: all goes through. */
	sig.wire = sig.mem;
	KUNIT_ASSERT_EQ(test, skua_ib_pi_describe(&sig, &d), 0);
	KUNIT_EXPECT_EQ(test, d.attr.copy, 0xff);
	/* A side without is zero, and nothing is passed on. */
	sig.wire.sig_type = IB_SIG_TYPE_NONE;
	KUNIT_ASSERT_EQ(test, skua_ib_pi_describe(&sig, &d), 0);
	KUNIT_EXPECT_EQ(test, d.attr.copy, 0);
	KUNIT_EXPECT_EQ(test, d.attr.check, SKUA_PI_GUARD | SKUA_PI_REF);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(&d.attr.wire, 0, sizeof(d.attr.wire)), NULL);
	/* Neither. */
	sig.mem.sig_type = IB_SIG_TYPE_NONE;
	KUNIT_ASSERT_EQ(test, skua_ib_pi_describe(&sig, &d), 0);
	KUNIT_EXPECT_EQ(test, d.attr.check, 0);
}

static void test_describe_refused(struct kunit *test)
{
	static const u16 intervals[] = { 0, 8, 504, 516, 4104, 8192 };
	struct ib_sig_attrs sig = { .mem = dif(IB_T10DIF_CRC), .wire = dif(IB_T10DIF_CRC) };
	struct skua_pi_desc d;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, skua_ib_pi_describe(&sig, &d), 0);
	sig.wire.sig.dif.pi_interval = 4096;
	KUNIT_EXPECT_EQ(test, skua_ib_pi_describe(&sig, &d), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(intervals); i++) {
		sig.mem.sig.dif.pi_interval = intervals[i];
		sig.wire.sig.dif.pi_interval = intervals[i];
		KUNIT_EXPECT_EQ(test, skua_ib_pi_describe(&sig, &d), -EINVAL);
	}
	sig = (struct ib_sig_attrs) { .mem = dif(2), .wire = dif(IB_T10DIF_CRC) };
	KUNIT_EXPECT_EQ(test, skua_ib_pi_describe(&sig, &d), -EINVAL);
	sig = (struct ib_sig_attrs) { .mem = dif(IB_T10DIF_CRC) };
	sig.wire.sig_type = 2;
	KUNIT_EXPECT_EQ(test, skua_ib_pi_describe(&sig, &d), -EINVAL);
}

static void test_status(struct kunit *test)
{
	static const struct {
		u32 what;
		enum ib_sig_err_type type;
	} types[] = {
		{ SKUA_PI_GUARD, IB_SIG_BAD_GUARD }, { SKUA_PI_APP, IB_SIG_BAD_APPTAG },
		{ SKUA_PI_REF, IB_SIG_BAD_REFTAG },
		/* What no device says. */
		{ 0, IB_SIG_BAD_GUARD },
	};
	struct skua_pi_area area = {};
	struct skua_ib_pi pi = { .area = &area };
	struct skua_ib_mr mr = { .pi = &pi };
	struct ib_mr_status status;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, skua_ib_check_mr_status(&mr.ibmr, 2, &status), -EINVAL);
	KUNIT_ASSERT_EQ(test, skua_ib_check_mr_status(&mr.ibmr, IB_MR_CHECK_SIG_STATUS, &status),
			0);
	KUNIT_EXPECT_EQ(test, status.fail_status, 0);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		area.status = (struct skua_pi_status) {
			.errors = cpu_to_le32(i + 1), .what = cpu_to_le32(types[i].what),
			.expected = cpu_to_le32(0x12345678), .actual = cpu_to_le32(0x9abcdef0),
			.offset = cpu_to_le64(5 * 520), .key = cpu_to_le32(0x4567aa),
		};
		KUNIT_ASSERT_EQ(test, skua_ib_check_mr_status(&mr.ibmr, IB_MR_CHECK_SIG_STATUS,
							      &status), 0);
		KUNIT_EXPECT_EQ(test, status.fail_status, IB_MR_CHECK_SIG_STATUS);
		KUNIT_EXPECT_EQ(test, status.sig_err.err_type, types[i].type);
		KUNIT_EXPECT_EQ(test, status.sig_err.expected, 0x12345678);
		KUNIT_EXPECT_EQ(test, status.sig_err.actual, 0x9abcdef0);
		KUNIT_EXPECT_EQ(test, status.sig_err.sig_err_offset, 5 * 520);
		KUNIT_EXPECT_EQ(test, status.sig_err.key, 0x4567aa);
	}
	KUNIT_ASSERT_EQ(test, skua_ib_check_mr_status(&mr.ibmr, 0, &status), 0);
	KUNIT_EXPECT_EQ(test, status.fail_status, 0);
	mr.pi = NULL;
	KUNIT_EXPECT_EQ(test, skua_ib_check_mr_status(&mr.ibmr, 0, &status), 0);
	KUNIT_EXPECT_EQ(test, skua_ib_check_mr_status(&mr.ibmr, IB_MR_CHECK_SIG_STATUS, &status),
			-EINVAL);
}

/* --- on a live device: the region is side 1's, side 0 has what the wire has --- */

struct integ {
	struct pair *p;
	struct ib_mr *mr;
	struct scatterlist data[2], meta[1];
};

static void integ_free(void *data)
{
	ib_dereg_mr(data);
}

static struct integ *integ_new(struct kunit *test)
{
	struct integ *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, g);
	if (live_dev && !(live_dev->attrs.kernel_cap_flags & IBK_INTEGRITY_HANDOVER))
		kunit_skip(test, "the device has no integrity regions");
	g->p = pair_with(test, IB_POLL_WORKQUEUE, IB_QP_CREATE_INTEGRITY_EN);
	connect(test, g->p);
	g->mr = ib_alloc_mr_integrity(g->p->pd, 4, 2);
	KUNIT_ASSERT_FALSE(test, IS_ERR(g->mr));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, integ_free, g->mr), 0);
	return g;
}

/* The CRC of T10, bit by bit. */
static u16 block_crc(const u8 *p, unsigned int len)
{
	u16 crc = 0;
	unsigned int i;

	for (i = 0; i < 8 * len; i++) {
		bool bit = p[i / 8] & 0x80 >> i % 8;

		crc = crc << 1 ^ ((crc >> 15) != bit ? 0x8bb7 : 0);
	}
	return crc;
}

static void put_tuple(struct t10_pi_tuple *t, const u8 *data, unsigned int block)
{
	*t = (struct t10_pi_tuple) {
		.guard_tag = cpu_to_be16(block_crc(data, BLOCK)),
		.app_tag = cpu_to_be16(APP),
		.ref_tag = cpu_to_be32(REF + block),
	};
}

/* Data of one page's second half and the next one's first: two elements. */
static u8 *block_of(struct integ *g, unsigned int block)
{
	return g->p->side[1].buf + SZ_2K + block * BLOCK;
}

static struct t10_pi_tuple *tuple_of(struct integ *g, unsigned int block)
{
	return (struct t10_pi_tuple *)(g->p->side[1].buf + META + 24) + block;
}

static u8 *wire_of(struct integ *g, unsigned int block)
{
	return g->p->side[0].buf + block * (BLOCK + sizeof(struct t10_pi_tuple));
}

static int integ_post(struct integ *g, struct req *r, struct ib_send_wr *wr)
{
	req_init(r);
	wr->wr_cqe = &r->cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	return ib_post_send(g->p->side[1].qp, wr, NULL);
}

static void integ_map(struct kunit *test, struct integ *g, const struct ib_sig_attrs *sig)
{
	dma_addr_t dma = g->p->side[1].dma;
	bool mem = sig->mem.sig_type != IB_SIG_TYPE_NONE;
	/* Whatever it is. */
	struct ib_sig_attrs before = { .mem = dif(2), .wire = dif(3) };

	sg_init_table(g->data, 2);
	sg_dma_address(&g->data[0]) = dma + SZ_2K;
	sg_dma_len(&g->data[0]) = SZ_2K;
	sg_dma_address(&g->data[1]) = dma + SZ_4K;
	sg_dma_len(&g->data[1]) = DATA - SZ_2K;
	sg_init_table(g->meta, 1);
	sg_dma_address(&g->meta[0]) = dma + META + 24;
	sg_dma_len(&g->meta[0]) = TUPLES;
	/* They count when the region is registered: NVMe over Fabrics sets them after this. */
	*g->mr->sig_attrs = before;
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg_pi(g->mr, g->data, 2, NULL, g->meta, mem, NULL, SZ_4K),
			0);
	KUNIT_EXPECT_EQ(test, g->mr->length, DATA + (mem ? TUPLES : 0));
	KUNIT_EXPECT_EQ(test, g->mr->sig_attrs->meta_length, mem ? TUPLES : 0);
	before.meta_length = g->mr->sig_attrs->meta_length;
	*g->mr->sig_attrs = *sig;
	g->mr->sig_attrs->meta_length = before.meta_length;
}

static void integ_register(struct kunit *test, struct integ *g, const struct ib_sig_attrs *sig)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR_INTEGRITY, .mr = g->mr, .key = g->mr->lkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};
	struct req r;

	integ_map(test, g, sig);
	KUNIT_ASSERT_EQ(test, integ_post(g, &r, &wr.wr), 0);
	expect(test, &r, IB_WC_SUCCESS, IB_WC_REG_MR);
}

static void integ_invalidate(struct kunit *test, struct integ *g)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = g->mr->lkey,
	};
	struct req r;

	KUNIT_ASSERT_EQ(test, integ_post(g, &r, &wr), 0);
	expect(test, &r, IB_WC_SUCCESS, IB_WC_LOCAL_INV);
}

/* By side 1 with the region as lkey, or by side 0 with it as rkey. */
static void integ_use(struct kunit *test, struct integ *g, enum ib_wr_opcode op, bool remote,
		      u32 len)
{
	struct pair *p = g->p;
	struct ib_sge sge = { g->mr->iova, len, g->mr->lkey };
	struct req r;
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &r.cqe, .sg_list = &sge, .num_sge = 1, .opcode = op,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = p->side[0].dma,
		.rkey = p->mr->rkey,
	};

	if (remote) {
		sge = (struct ib_sge) { p->side[0].dma, len, p->pd->local_dma_lkey };
		wr.remote_addr = g->mr->iova;
		wr.rkey = g->mr->rkey;
	}
	req_init(&r);
	KUNIT_ASSERT_EQ(test, ib_post_send(p->side[!remote].qp, &wr.wr, NULL), 0);
	expect(test, &r, IB_WC_SUCCESS, op == IB_WR_RDMA_READ ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE);
}

static struct ib_mr_status integ_status(struct kunit *test, struct integ *g)
{
	struct ib_mr_status status;

	KUNIT_ASSERT_EQ(test, ib_check_mr_status(g->mr, IB_MR_CHECK_SIG_STATUS, &status), 0);
	return status;
}

/* The wire has blocks with tuples, or without. */
static void fill_wire(struct integ *g, bool tuples)
{
	unsigned int b;

	for (b = 0; b < BLOCKS; b++) {
		u8 *at = tuples ? wire_of(g, b) : g->p->side[0].buf + b * BLOCK;

		pattern(at, BLOCK, 3 + b);
		if (tuples)
			put_tuple((struct t10_pi_tuple *)(at + BLOCK), at, b);
	}
}

static void fill_mem(struct integ *g)
{
	unsigned int b;

	for (b = 0; b < BLOCKS; b++) {
		pattern(block_of(g, b), BLOCK, 9 + b);
		put_tuple(tuple_of(g, b), block_of(g, b), b);
	}
}

static void expect_same(struct kunit *test, struct integ *g, bool mem, bool wire)
{
	struct t10_pi_tuple t;
	unsigned int b;

	for (b = 0; b < BLOCKS; b++) {
		const u8 *at = wire ? wire_of(g, b) : g->p->side[0].buf + b * BLOCK;

		KUNIT_EXPECT_MEMEQ(test, block_of(g, b), at, BLOCK);
		put_tuple(&t, at, b);
		if (mem)
			KUNIT_EXPECT_MEMEQ(test, tuple_of(g, b), &t, sizeof(t));
		if (wire)
			KUNIT_EXPECT_MEMEQ(test, at + BLOCK, &t, sizeof(t));
	}
}

/* Every kind, by every way. */
static void test_uses(struct kunit *test)
{
	struct integ *g = integ_new(test);
	unsigned int k;

	for (k = 0; k < 16; k++) {
		bool mem = k & 1, wire = k & 2, remote = k & 4, place = k & 8;
		struct ib_sig_attrs sig = { .check_mask = 0xff };

		if (mem)
			sig.mem = dif(IB_T10DIF_CRC);
		if (wire)
			sig.wire = dif(IB_T10DIF_CRC);
		integ_register(test, g, &sig);
		memset(g->p->side[0].buf, 0, BUF_SIZE);
		memset(g->p->side[1].buf, 0, BUF_SIZE);
		if (place)
			fill_wire(g, wire);
		else
			fill_mem(g);
		integ_use(test, g, remote == place ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ, remote,
			  wire ? WIRE : DATA);
		expect_same(test, g, mem, wire);
		KUNIT_EXPECT_EQ(test, integ_status(test, g).fail_status, 0);
		integ_invalidate(test, g);
		ib_update_fast_reg_key(g->mr, ib_inc_rkey(g->mr->rkey));
	}
}

/* Make a tuple wrong. */
static void damage(struct t10_pi_tuple *t, enum ib_sig_err_type type, u32 *expected, u32 *actual)
{
	switch (type) {
	case IB_SIG_BAD_GUARD:
		*expected = be16_to_cpu(t->guard_tag);
		*actual = *expected ^ 0x8001;
		t->guard_tag = cpu_to_be16(*actual);
		break;
	case IB_SIG_BAD_APPTAG:
		*expected = be16_to_cpu(t->app_tag);
		*actual = *expected ^ 0x0180;
		t->app_tag = cpu_to_be16(*actual);
		break;
	case IB_SIG_BAD_REFTAG:
		*expected = be32_to_cpu(t->ref_tag);
		*actual = 0x87654321;
		t->ref_tag = cpu_to_be32(*actual);
		break;
	}
}

static void expect_error(struct kunit *test, struct integ *g, enum ib_sig_err_type type,
			 u32 expected, u32 actual)
{
	struct ib_mr_status s = integ_status(test, g);

	KUNIT_EXPECT_EQ(test, s.fail_status, IB_MR_CHECK_SIG_STATUS);
	KUNIT_EXPECT_EQ(test, s.sig_err.err_type, type);
	KUNIT_EXPECT_EQ(test, s.sig_err.expected, expected);
	KUNIT_EXPECT_EQ(test, s.sig_err.actual, actual);
	KUNIT_EXPECT_EQ(test, s.sig_err.sig_err_offset, 5 * (BLOCK + 8));
	KUNIT_EXPECT_EQ(test, s.sig_err.key, g->mr->lkey);
}

/* A wrong tuple at the source is found by either side, told of at once, and passed on. */
static void test_damage(struct kunit *test)
{
	static const enum ib_sig_err_type types[] = {
		IB_SIG_BAD_GUARD, IB_SIG_BAD_APPTAG, IB_SIG_BAD_REFTAG,
	};
	const struct ib_sig_attrs sig = {
		.check_mask = 0xff, .mem = dif(IB_T10DIF_CRC), .wire = dif(IB_T10DIF_CRC),
	};
	struct integ *g = integ_new(test);
	unsigned int k;

	for (k = 0; k < 4 * ARRAY_SIZE(types); k++) {
		bool remote = k & 1, place = k & 2;
		enum ib_sig_err_type type = types[k / 4], next = types[(k / 4 + 1) % 3];
		u32 expected, actual, unused;

		integ_register(test, g, &sig);
		if (place) {
			fill_wire(g, true);
			damage((void *)wire_of(g, 6) + BLOCK, next, &unused, &unused);
			damage((void *)wire_of(g, 5) + BLOCK, type, &expected, &actual);
		} else {
			fill_mem(g);
			damage(tuple_of(g, 6), next, &unused, &unused);
			damage(tuple_of(g, 5), type, &expected, &actual);
		}
		integ_use(test, g, remote == place ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ, remote,
			  WIRE);
		/* Of two, the first. */
		expect_error(test, g, type, expected, actual);
		KUNIT_EXPECT_MEMEQ(test, tuple_of(g, 5), wire_of(g, 5) + BLOCK, 8);
		integ_invalidate(test, g);
	}
}

/* So is wrong data. Registered again, the region has no error. */
static void test_damaged_data(struct kunit *test)
{
	struct ib_sig_attrs sig = { .check_mask = IB_SIG_CHECK_GUARD };
	struct integ *g = integ_new(test);
	u16 guard;

	sig.mem = dif(IB_T10DIF_CRC);
	integ_register(test, g, &sig);
	fill_mem(g);
	guard = be16_to_cpu(tuple_of(g, 5)->guard_tag);
	block_of(g, 5)[100] ^= 1;
	integ_use(test, g, IB_WR_RDMA_WRITE, false, DATA);
	expect_error(test, g, IB_SIG_BAD_GUARD, block_crc(block_of(g, 5), BLOCK), guard);
	integ_invalidate(test, g);

	/* What is not asked for is not checked. */
	sig.check_mask = IB_SIG_CHECK_APPTAG | IB_SIG_CHECK_REFTAG;
	integ_register(test, g, &sig);
	KUNIT_EXPECT_EQ(test, integ_status(test, g).fail_status, 0);
	integ_use(test, g, IB_WR_RDMA_WRITE, false, DATA);
	KUNIT_EXPECT_EQ(test, integ_status(test, g).fail_status, 0);
	integ_invalidate(test, g);
}

static int integ_map_again(struct integ *g, int meta_nents)
{
	return ib_map_mr_sg_pi(g->mr, g->data, 2, NULL, g->meta, meta_nents, NULL, SZ_4K);
}

static void test_refused(struct kunit *test)
{
	struct integ *g = integ_new(test);
	struct ib_sig_attrs sig = { .mem = dif(IB_T10DIF_CRC) };
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR, .mr = g->mr, .key = g->mr->lkey,
	};
	struct req r;

	integ_map(test, g, &sig);
	/* Not by the request for other regions, nor on a QP for others. */
	KUNIT_EXPECT_EQ(test, integ_post(g, &r, &wr.wr), -EINVAL);
	wr.wr.opcode = IB_WR_REG_MR_INTEGRITY;
	g->p->side[1].qp->integrity_en = false;
	KUNIT_EXPECT_EQ(test, integ_post(g, &r, &wr.wr), -EINVAL);

	g->p->side[1].qp->integrity_en = true;
	wr.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC;
	KUNIT_EXPECT_EQ(test, integ_post(g, &r, &wr.wr), -EINVAL);
	wr.access = IB_ACCESS_LOCAL_WRITE;

	/* Attributes that are not supported. */
	g->mr->sig_attrs->mem.sig.dif.pi_interval = 516;
	KUNIT_EXPECT_EQ(test, integ_post(g, &r, &wr.wr), -EINVAL);
	g->mr->sig_attrs->mem.sig.dif.pi_interval = BLOCK;
	/* Part of a block; too few tuples, or none. */
	sg_dma_len(&g->data[1]) -= 8;
	KUNIT_ASSERT_EQ(test, integ_map_again(g, 1), 0);
	KUNIT_EXPECT_EQ(test, integ_post(g, &r, &wr.wr), -EINVAL);
	sg_dma_len(&g->data[1]) += 8;
	sg_dma_len(&g->meta[0]) -= 1;
	KUNIT_ASSERT_EQ(test, integ_map_again(g, 1), 0);
	KUNIT_EXPECT_EQ(test, integ_post(g, &r, &wr.wr), -EINVAL);
	KUNIT_ASSERT_EQ(test, integ_map_again(g, 0), 0);
	KUNIT_EXPECT_EQ(test, integ_post(g, &r, &wr.wr), -EINVAL);
	/* More pages than there is room for: of tuples, of data. */
	sg_dma_len(&g->meta[0]) = 3 * SZ_4K;
	KUNIT_EXPECT_EQ(test, integ_map_again(g, 1), -ENOMEM);
	sg_dma_len(&g->meta[0]) = TUPLES;
	sg_dma_len(&g->data[1]) = 5 * SZ_4K;
	KUNIT_EXPECT_EQ(test, integ_map_again(g, 1), -ENOMEM);
	/* A gap. */
	sg_dma_len(&g->data[1]) = DATA - SZ_2K;
	sg_dma_len(&g->data[0]) -= BLOCK;
	KUNIT_EXPECT_EQ(test, integ_map_again(g, 1), -ENOMEM);
	sg_dma_len(&g->data[0]) += BLOCK;
	KUNIT_EXPECT_EQ(test, integ_map_again(g, 1), 0);
	KUNIT_ASSERT_EQ(test, integ_post(g, &r, &wr.wr), 0);
	expect(test, &r, IB_WC_SUCCESS, IB_WC_REG_MR);
	integ_invalidate(test, g);

	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr_integrity(g->p->pd, 0, 1)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr_integrity(g->p->pd, SKUA_IB_MAX_PI_PAGES + 1,
							    1)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_alloc_mr_integrity(g->p->pd, 1,
							    SKUA_IB_MAX_PI_PAGES + 1)), -EINVAL);
}

static struct kunit_case skua_pi_cases[] = {
	KUNIT_CASE(test_describe),
	KUNIT_CASE(test_describe_refused),
	KUNIT_CASE(test_status),
	KUNIT_CASE_SLOW(test_uses),
	KUNIT_CASE_SLOW(test_damage),
	KUNIT_CASE_SLOW(test_damaged_data),
	KUNIT_CASE_SLOW(test_refused),
	{}
};

static struct kunit_suite skua_pi_suite = {
	.name = "skua_pi",
	.suite_init = live_init,
	.suite_exit = live_exit,
	.test_cases = skua_pi_cases,
};

kunit_test_suite(skua_pi_suite);

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
MODULE_DESCRIPTION("KUnit tests of integrity regions on a Skua device");
MODULE_LICENSE("GPL");
