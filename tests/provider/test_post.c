// SPDX-License-Identifier: GPL-2.0
/*
 * ibv_post_send(): what each opcode becomes in the ring, what is refused, and the order
 * of ring, record and doorbell.
 */
#include "look.h"

#define WRITE_RADDR	0x1122334455667788ULL
#define WRITE_RKEY	0x99aabbcc

static struct ibv_cq *cq;
static struct ibv_qp *qp;

static int setup(void **state)
{
	return fake_setup_rc(state, 64, &cq, &qp);
}

static int teardown(void **state)
{
	return fake_teardown_rc(state, cq, qp);
}

static void look(uint32_t index)
{
	look_at(qp, index);
}

static struct ibv_sge sge[4] = {
	{ .addr = 0x10000, .length = 100, .lkey = 0x101 },
	{ .addr = 0x20000, .length = 200, .lkey = 0x202 },
	{ .addr = 0x30000, .length = 300, .lkey = 0x303 },
	{ .addr = 0x40000, .length = 400, .lkey = 0x404 },
};

static struct ibv_send_wr make_wr(enum ibv_wr_opcode opcode)
{
	return (struct ibv_send_wr){
		.wr_id = 77,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = WRITE_RADDR, .rkey = WRITE_RKEY },
	};
}

static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
	assert_null(bad);
}

/* Refused, with nothing told to the device */
static void refused(struct ibv_send_wr *wr, int err)
{
	struct ibv_send_wr *bad = NULL;
	unsigned int dbs = fake.ndbs;

	assert_int_equal(ibv_post_send(qp, wr, &bad), err);
	assert_ptr_equal(bad, wr);
	assert_int_equal(fake.ndbs, dbs);
}

/* --- opcodes ----------------------------------------------------------------------- */

static void test_write(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_WRITE);

	(void)state;
	wr.num_sge = 2;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_WRITE, 4, SKUA_WQE_F_SIGNALED, 0);
	assert_raddr(1, WRITE_RADDR, WRITE_RKEY, 0);
	assert_data(2, 0x10000, 0x101, 100);
	assert_data(3, 0x20000, 0x202, 200);
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].reg, SKUA_UAR_SQ);
	assert_int_equal(fake.db[0].lo, 1);
	assert_int_equal(fake.db[0].hi, qp->qp_num);
}

static void test_write_imm(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_WRITE_WITH_IMM);

	(void)state;
	wr.imm_data = htobe32(0x01020304);
	wr.send_flags |= IBV_SEND_SOLICITED | IBV_SEND_FENCE;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_WRITE_IMM, 3, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_SOLICITED |
		    SKUA_WQE_F_FENCE, le32toh(htobe32(0x01020304)));
	assert_raddr(1, WRITE_RADDR, WRITE_RKEY, 0);
	assert_data(2, 0x10000, 0x101, 100);
}

static void test_send(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	uint8_t data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct ibv_sge part[] = { { (uintptr_t)data, 4 }, { (uintptr_t)data + 4, 4 } };

	(void)state;
	wr.send_flags = IBV_SEND_SOLICITED;
	wr.imm_data = 0x55;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_SEND, 2, SKUA_WQE_F_SOLICITED, 0);
	assert_data(1, 0x10000, 0x101, 100);

	wr = make_wr(IBV_WR_SEND_WITH_IMM);
	wr.imm_data = htobe32(0x0a0b0c0d);
	wr.num_sge = 0;
	post(&wr);
	look(1);
	assert_ctrl(SKUA_WQE_SEND_IMM, 1, SKUA_WQE_F_SIGNALED, le32toh(htobe32(0x0a0b0c0d)));

	/* Not by the shortest way, which takes one element of inline data. */
	wr = make_wr(IBV_WR_SEND_WITH_IMM);
	wr.imm_data = htobe32(0x0a0b0c0e);
	wr.send_flags |= IBV_SEND_INLINE;
	wr.sg_list = part;
	wr.num_sge = 2;
	post(&wr);
	look(2);
	assert_ctrl(SKUA_WQE_SEND_IMM, 2, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE,
		    le32toh(htobe32(0x0a0b0c0e)));
	assert_inline(1, data, sizeof(data));

	wr = make_wr(IBV_WR_SEND_WITH_INV);
	wr.invalidate_rkey = 0xdeadbeef;
	post(&wr);
	look(3);
	assert_ctrl(SKUA_WQE_SEND_INV, 2, SKUA_WQE_F_SIGNALED, 0xdeadbeef);
}

/* A flag that means nothing for an opcode does not reach the device */
static void test_read(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_READ);

	(void)state;
	wr.send_flags |= IBV_SEND_SOLICITED | IBV_SEND_FENCE | IBV_SEND_IP_CSUM;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_READ, 3, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_FENCE, 0);
	assert_raddr(1, WRITE_RADDR, WRITE_RKEY, 0);
	assert_data(2, 0x10000, 0x101, 100);
	/* Not even if it would fit */
	wr.send_flags |= IBV_SEND_INLINE;
	wr.num_sge = 0;
	refused(&wr, EINVAL);
	wr.num_sge = 1;
	wr.sg_list = &(struct ibv_sge){ .addr = (uintptr_t)sge, .length = 8 };
	refused(&wr, EINVAL);
}

static void test_atomic(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_ATOMIC_CMP_AND_SWP);
	const struct skua_wqe_atomic *a = seg(2);

	(void)state;
	wr.wr.atomic.remote_addr = 0xa0;
	wr.wr.atomic.rkey = 0xb0;
	wr.wr.atomic.compare_add = 0xc0c0c0c0c0ULL;
	wr.wr.atomic.swap = 0xd0d0d0d0d0ULL;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_CAS, 4, SKUA_WQE_F_SIGNALED, 0);
	assert_raddr(1, 0xa0, 0xb0, 0);
	assert_int_equal(le64_to_cpu(a->swap_add), 0xd0d0d0d0d0ULL);
	assert_int_equal(le64_to_cpu(a->compare), 0xc0c0c0c0c0ULL);
	assert_data(3, 0x10000, 0x101, 100);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	post(&wr);
	look(1);
	assert_ctrl(SKUA_WQE_FAA, 4, SKUA_WQE_F_SIGNALED, 0);
	assert_raddr(1, 0xa0, 0xb0, 0);
	assert_int_equal(le64_to_cpu(a->swap_add), 0xc0c0c0c0c0ULL);
	assert_int_equal(le64_to_cpu(a->compare), 0);
	assert_data(3, 0x10000, 0x101, 100);
}

static void test_atomic_write(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_ATOMIC_WRITE);
	uint64_t value = 0x1234567812345678ULL;

	(void)state;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_ATOMIC_WRITE, 3, SKUA_WQE_F_SIGNALED, 0);
	assert_raddr(1, WRITE_RADDR, WRITE_RKEY, 0);

	sge[3] = (struct ibv_sge){ .addr = (uintptr_t)&value, .length = 8 };
	wr.sg_list = &sge[3];
	wr.send_flags |= IBV_SEND_INLINE;
	post(&wr);
	look(1);
	assert_ctrl(SKUA_WQE_ATOMIC_WRITE, 3, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE, 0);
	assert_inline(2, &value, 8);
}

static void test_local_inv(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_LOCAL_INV);

	(void)state;
	wr.invalidate_rkey = 0x12345;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_LOCAL_INV, 1, SKUA_WQE_F_SIGNALED, 0x12345);
	wr.send_flags |= IBV_SEND_FENCE;
	post(&wr);
	look(1);
	assert_ctrl(SKUA_WQE_LOCAL_INV, 1, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_FENCE |
		    SKUA_WQE_F_LOCAL_FENCE, 0x12345);
	wr.send_flags = IBV_SEND_INLINE;
	refused(&wr, EINVAL);
}

static void assert_bind(uint32_t key, uint32_t new_key, uint32_t mr_key, uint32_t access,
			uint64_t va, uint64_t len)
{
	const struct skua_wqe_bind *b = seg(1);

	assert_int_equal(le32_to_cpu(b->mw_key), key);
	assert_int_equal(le32_to_cpu(b->new_key), new_key);
	assert_int_equal(le32_to_cpu(b->mr_key), mr_key);
	assert_int_equal(le32_to_cpu(b->access), access);
	assert_int_equal(le64_to_cpu(b->va), va);
	assert_int_equal(le64_to_cpu(b->len), len);
}

static void test_bind_type_2(void **state)
{
	struct ibv_mw *mw = ibv_alloc_mw(fake.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = make_wr(IBV_WR_BIND_MW);
	struct ibv_mr mr = { .lkey = 0x777 };

	(void)state;
	assert_non_null(mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey | 0x5a;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = &mr,
		.addr = 0x4444000,
		.length = 0x1000,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_BIND_MW, 3, SKUA_WQE_F_SIGNALED, 0);
	assert_bind(mw->rkey, mw->rkey | 0x5a, 0x777,
		    SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_ATOMIC, 0x4444000, 0x1000);

	/* Only the low byte is the consumer's */
	wr.bind_mw.rkey = mw->rkey + 0x100;
	refused(&wr, EINVAL);
	wr.bind_mw.rkey = mw->rkey;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	refused(&wr, EINVAL);
	/* Without a region: the device says what is wrong */
	wr.bind_mw.bind_info.mw_access_flags = 0;
	wr.bind_mw.bind_info.mr = NULL;
	post(&wr);
	look(1);
	assert_bind(mw->rkey, mw->rkey, 0, 0, 0x4444000, 0x1000);
	assert_false(ibv_dealloc_mw(mw));

	mw = ibv_alloc_mw(fake.pd, IBV_MW_TYPE_1);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey;
	refused(&wr, EINVAL);
	assert_false(ibv_dealloc_mw(mw));
}

static void test_bind_type_1(void **state)
{
	struct ibv_mw *mw = ibv_alloc_mw(fake.pd, IBV_MW_TYPE_1);
	struct ibv_mr mr = { .context = fake.ctx, .pd = fake.pd, .lkey = 0x888 };
	struct ibv_mw_bind bind = {
		.wr_id = 5,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = &mr,
			.addr = 0x5555000,
			.length = 0x2000,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ,
		},
	};
	uint32_t rkey = mw->rkey;
	unsigned int i;

	(void)state;
	assert_false(ibv_bind_mw(qp, mw, &bind));
	look(0);
	assert_ctrl(SKUA_WQE_BIND_MW, 3, SKUA_WQE_F_SIGNALED, 0);
	assert_bind(rkey, ibv_inc_rkey(rkey), 0x888, SKUA_ACCESS_REMOTE_READ, 0x5555000, 0x2000);
	assert_int_equal(mw->rkey, ibv_inc_rkey(rkey));
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].lo, 1);

	/* One that fails leaves the key as it is */
	rkey = mw->rkey;
	bind.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), EINVAL);
	assert_int_equal(mw->rkey, rkey);
	bind.bind_info.mw_access_flags = 0;
	for (i = 1; i < 8; i++)
		assert_false(ibv_bind_mw(qp, mw, &bind));
	rkey = mw->rkey;
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), ENOMEM);
	assert_int_equal(mw->rkey, rkey);
	fake_modify(qp, IBV_QPS_RESET);
	assert_int_equal(ibv_bind_mw(qp, mw, &bind), EINVAL);
	assert_false(ibv_dealloc_mw(mw));
}

static void test_windows_rights(void **state)
{
	static const struct {
		unsigned int ibv;
		uint32_t hw;
	} t[] = {
		{ IBV_ACCESS_REMOTE_WRITE, SKUA_ACCESS_REMOTE_WRITE },
		{ IBV_ACCESS_REMOTE_READ, SKUA_ACCESS_REMOTE_READ },
		{ IBV_ACCESS_REMOTE_ATOMIC, SKUA_ACCESS_REMOTE_ATOMIC },
		{ IBV_ACCESS_FLUSH_GLOBAL, SKUA_ACCESS_FLUSH_GLOBAL },
		{ IBV_ACCESS_FLUSH_PERSISTENT, SKUA_ACCESS_FLUSH_PERSISTENT },
		{ IBV_ACCESS_ZERO_BASED, SKUA_ACCESS_ZERO_BASED },
		{ IBV_ACCESS_LOCAL_WRITE, 0 },
		{ IBV_ACCESS_RELAXED_ORDERING, 0 },
	};
	struct ibv_mw *mw = ibv_alloc_mw(fake.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = make_wr(IBV_WR_BIND_MW);
	unsigned int i;

	(void)state;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		wr.bind_mw.bind_info.mw_access_flags = t[i].ibv;
		post(&wr);
		look(i);
		assert_bind(mw->rkey, mw->rkey, 0, t[i].hw, 0, 0);
	}
	assert_false(ibv_dealloc_mw(mw));
}

static void test_ud(void **state)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = FAKE_PORT,
		.sl = 5,
		.grh = {
			.dgid.raw = { 0xfe, 0x80, [15] = 7 },
			.sgid_index = 3,
			.flow_label = 0xabcde,
			.traffic_class = 0x68,
			.hop_limit = 1,
		},
	};
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	struct ibv_ah *ah = ibv_create_ah(fake.pd, &attr);
	static const uint8_t dmac[] = { 2, 0, 0, 0, 0, 9 };
	const struct skua_wqe_av *w = seg(1);

	(void)state;
	assert_non_null(ah);
	fake_destroy_qp(qp);
	qp = fake_make_qp(cq, IBV_QPT_UD);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x4321;
	wr.wr.ud.remote_qkey = 0x11111111;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_SEND, 5, SKUA_WQE_F_SIGNALED, 0);
	assert_memory_equal(w->av.dgid, attr.grh.dgid.raw, 16);
	assert_memory_equal(w->av.dmac, dmac, 6);
	assert_int_equal(le16_to_cpu(w->av.sgid_index), 3);
	assert_int_equal(le32_get_bits(w->av.flow, SKUA_AV_FLOW_LABEL), 0xabcde);
	assert_int_equal(le32_get_bits(w->av.flow, SKUA_AV_PCP), 5);
	assert_int_equal(w->av.tclass, 0x68);
	/* The kernel's, which knows the route */
	assert_int_equal(w->av.hop_limit, 63);
	assert_int_equal(le16_to_cpu(w->av.udp_sport), 0xc123);
	assert_int_equal(le32_to_cpu(w->dest_qpn), 0x4321);
	assert_int_equal(le32_to_cpu(w->qkey), 0x11111111);
	assert_int_equal(w->pkey_index | w->reserved | w->reserved2, 0);
	assert_data(4, 0x10000, 0x101, 100);

	wr.opcode = IBV_WR_SEND_WITH_INV;
	refused(&wr, EINVAL);
	wr.opcode = IBV_WR_RDMA_WRITE;
	refused(&wr, EINVAL);
	assert_false(ibv_destroy_ah(ah));

	/* The service level of a received datagram leads back with its priority */
	attr.sl = 0x6a;
	ah = ibv_create_ah(fake.pd, &attr);
	assert_non_null(ah);
	wr = make_wr(IBV_WR_SEND);
	wr.wr.ud.ah = ah;
	post(&wr);
	look(2);
	assert_int_equal(le32_get_bits(w->av.flow, SKUA_AV_PCP), 6);
	assert_false(ibv_destroy_ah(ah));
}

static void test_raw_packet(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp(cq, IBV_QPT_RAW_PACKET);
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_ETH, 2, SKUA_WQE_F_SIGNALED, 0);
	assert_data(1, 0x10000, 0x101, 100);
	wr.send_flags = IBV_SEND_IP_CSUM | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
	post(&wr);
	look(1);
	assert_ctrl(SKUA_WQE_ETH, 2, SKUA_WQE_F_L3_CSUM | SKUA_WQE_F_L4_CSUM, 0);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	refused(&wr, EINVAL);
}

static void test_xrc(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_ATOMIC_FETCH_AND_ADD);
	const struct skua_wqe_xrc *x = seg(1);

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp(cq, IBV_QPT_XRC_SEND);
	wr.qp_type.xrc.remote_srqn = 0x31313;
	wr.wr.atomic.remote_addr = WRITE_RADDR;
	wr.wr.atomic.rkey = WRITE_RKEY;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_FAA, 5, SKUA_WQE_F_SIGNALED, 0);
	assert_int_equal(le32_to_cpu(x->srqn), 0x31313);
	assert_false(x->reserved[0] | x->reserved[1] | x->reserved[2]);
	assert_raddr(2, WRITE_RADDR, WRITE_RKEY, 0);
	assert_data(4, 0x10000, 0x101, 100);

	/* What stays here names nobody */
	wr = make_wr(IBV_WR_LOCAL_INV);
	wr.invalidate_rkey = 1;
	post(&wr);
	look(2);
	assert_ctrl(SKUA_WQE_LOCAL_INV, 1, SKUA_WQE_F_SIGNALED, 1);
	wr = make_wr(IBV_WR_ATOMIC_WRITE);
	refused(&wr, EINVAL);
}

/* --- what is refused ----------------------------------------------------------------- */

static void test_refused_opcodes(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_TSO);

	(void)state;
	refused(&wr, EINVAL);
	wr.opcode = IBV_WR_DRIVER1;
	refused(&wr, EINVAL);
	wr.opcode = IBV_WR_FLUSH;
	refused(&wr, EINVAL);
	wr.opcode = 16;
	refused(&wr, EINVAL);
	wr.opcode = 0xffffffff;
	refused(&wr, EINVAL);
	wr.opcode = 32 + IBV_WR_SEND;
	refused(&wr, EINVAL);
}

static void test_refused_uc(void **state)
{
	static const enum ibv_wr_opcode no[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV, IBV_WR_ATOMIC_WRITE,
	};
	struct ibv_send_wr wr;
	unsigned int i;

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp(cq, IBV_QPT_UC);
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		wr = make_wr(no[i]);
		refused(&wr, EINVAL);
	}
	wr = make_wr(IBV_WR_RDMA_WRITE);
	post(&wr);
}

static void test_refused_states(void **state)
{
	static const struct {
		enum ibv_qp_state state;
		int err;
	} t[] = {
		{ IBV_QPS_RESET, EINVAL }, { IBV_QPS_INIT, EINVAL }, { IBV_QPS_RTR, EINVAL },
		{ IBV_QPS_RTS, 0 }, { IBV_QPS_SQD, 0 }, { IBV_QPS_SQE, 0 }, { IBV_QPS_ERR, 0 },
	};
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		fake_modify(qp, t[i].state);
		if (t[i].err)
			refused(&wr, t[i].err);
		else
			post(&wr);
	}
}

static void test_refused_sizes(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge many[64];
	unsigned int i;

	(void)state;
	assert_false(ibv_query_qp(qp, &attr, 0, &init));
	assert_in_range(init.cap.max_send_sge, 1, 60);
	for (i = 0; i < 64; i++)
		many[i] = sge[0];
	wr.sg_list = many;
	wr.num_sge = init.cap.max_send_sge;
	post(&wr);
	wr.num_sge++;
	refused(&wr, EINVAL);
	wr.num_sge = -1;
	refused(&wr, EINVAL);
}

/* Of a list, what stands before the bad one is posted, with one doorbell */
static void test_list(void **state)
{
	struct ibv_send_wr wr[6], *bad = NULL;
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++) {
		wr[i] = make_wr(IBV_WR_SEND);
		wr[i].wr_id = i;
		wr[i].next = i < 5 ? &wr[i + 1] : NULL;
	}
	post(wr);
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].lo, 6);
	assert_int_equal(fake_qp(qp)->nwqes, 6);

	/* Two more have room in the eight blocks */
	assert_int_equal(ibv_post_send(qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(fake.ndbs, 2);
	assert_int_equal(fake.db[1].lo, 8);
	refused(wr, ENOMEM);

	fake_sent(qp, 7, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc){}), 1);
	wr[3].opcode = IBV_WR_TSO;
	assert_int_equal(ibv_post_send(qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[3]);
	assert_int_equal(fake.ndbs, 3);
	assert_int_equal(fake.db[2].lo, 11);
}

/* A WQE of several blocks needs room for all of them, and may wrap */
static void test_wrap(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 3, .max_send_sge = 9 };
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_WRITE);
	struct ibv_sge many[9];
	struct ibv_wc wc;
	unsigned int i;

	(void)state;
	fake_destroy_qp(qp);
	qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	assert_int_equal(fake_qp(qp)->qp_req.log_sq, 4);
	for (i = 0; i < 9; i++)
		many[i] = (struct ibv_sge){ .addr = 0x100 + i, .lkey = 0x200 + i, .length = i };
	wr.sg_list = many;
	wr.num_sge = 9;
	wr.num_sge = 2;
	post(&wr);
	post(&wr);
	wr.num_sge = 9;
	for (i = 0; i < 4; i++)
		post(&wr);
	/* Two blocks are left, and three are needed */
	refused(&wr, ENOMEM);
	fake_sent(qp, 1, SKUA_CQE_OK);
	refused(&wr, ENOMEM);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	post(&wr);
	look(14);
	assert_ctrl(SKUA_WQE_WRITE, 11, SKUA_WQE_F_SIGNALED, 0);
	for (i = 0; i < 9; i++)
		assert_data(2 + i, 0x100 + i, 0x200 + i, i);
	refused(&wr, ENOMEM);
}

/* --- inline ------------------------------------------------------------------------------ */

static void make_inline_qp(enum ibv_qp_type type, uint32_t bytes)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = 4,
		.max_send_sge = 4,
		.max_inline_data = bytes,
	};

	fake_destroy_qp(qp);
	qp = fake_make_qp_cap(cq, cq, type, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	fake_dbs_clear();
}

static uint32_t max_inline(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_false(ibv_query_qp(qp, &attr, 0, &init));
	return init.cap.max_inline_data;
}

static void test_inline(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_RDMA_WRITE);
	uint8_t bytes[1024];
	struct ibv_wc wc;
	uint32_t len, at = 0, max;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = i * 7 + 1;
	make_inline_qp(IBV_QPT_RC, 100);
	max = max_inline();
	assert_true(max >= 100);
	wr.send_flags |= IBV_SEND_INLINE;
	wr.sg_list = sge;
	/* Each length, at all places of the ring, also over its end */
	for (len = 0; len <= max; len++) {
		sge[0] = (struct ibv_sge){ .addr = (uintptr_t)bytes, .length = len / 3 };
		sge[1] = (struct ibv_sge){ .addr = (uintptr_t)bytes + len / 3,
					   .length = len / 3 };
		sge[2] = (struct ibv_sge){ .addr = (uintptr_t)bytes + 2 * (len / 3),
					   .length = len - 2 * (len / 3) };
		wr.num_sge = 3;
		post(&wr);
		look(at);
		assert_int_equal(le32_to_cpu(ctrl()->flags),
				 SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE);
		assert_raddr(1, WRITE_RADDR, WRITE_RKEY, 0);
		assert_inline(2, bytes, len);
		fake_sent(qp, at, SKUA_CQE_OK);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		at += (nseg + 3) / 4;
	}
	assert_true(at > 3U << fake_qp(qp)->qp_req.log_sq);

	sge[0] = (struct ibv_sge){ .addr = (uintptr_t)bytes, .length = max + 1 };
	refused(&wr, EINVAL);
	/* 2^32 bytes and one, in sum */
	sge[0].length = 0x80000001;
	sge[1].length = 0x80000000;
	wr.num_sge = 2;
	refused(&wr, EINVAL);
	wr.num_sge = -1;
	refused(&wr, EINVAL);
}

/* Each length in one element, which no byte is read beyond; short ones have a path of their own */
static void test_inline_one(void **state)
{
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	uint32_t len, at = 0, i;
	bool write;
	uint8_t *bytes;

	(void)state;
	make_inline_qp(IBV_QPT_RC, 100);
	for (i = 0; i < 2 * (max_inline() + 1); i++) {
		len = i / 2;
		write = i % 2;
		wr = make_wr(write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND);
		wr.send_flags |= IBV_SEND_INLINE;
		bytes = malloc(len);
		for (uint32_t k = 0; k < len; k++)
			bytes[k] = k * 11 + len;
		sge[0] = (struct ibv_sge){ .addr = (uintptr_t)bytes, .length = len };
		post(&wr);
		look(at);
		assert_inline(write ? 2 : 1, bytes, len);
		free(bytes);
		fake_sent(qp, at, SKUA_CQE_OK);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		at += (nseg + 3) / 4;
	}
}

static void test_inline_room(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);
	uint8_t bytes[128] = {};
	unsigned int i;

	(void)state;
	make_inline_qp(IBV_QPT_RC, 100);
	assert_int_equal(fake_qp(qp)->qp_req.log_sq, 4);
	sge[0] = (struct ibv_sge){ .addr = (uintptr_t)bytes, .length = 100 };
	wr.send_flags |= IBV_SEND_INLINE;
	for (i = 0; i < 8; i++)
		post(&wr);
	refused(&wr, ENOMEM);
	wr.num_sge = 0;
	refused(&wr, ENOMEM);

	/* One block is free, and two are needed */
	fake_sent(qp, 0, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc){}), 1);
	post(&wr);
	wr.num_sge = 1;
	refused(&wr, ENOMEM);
	sge[0].length = 44;
	post(&wr);
}

/* --- what every request of a QP gets ---------------------------------------------------- */

static void test_sig_all(void **state)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	(void)state;
	fake_destroy_qp(qp);
	qp = ibv_create_qp(fake.pd, &attr);
	fake_modify(qp, IBV_QPS_RTS);
	wr.send_flags = 0;
	post(&wr);
	look(0);
	assert_ctrl(SKUA_WQE_SEND, 2, SKUA_WQE_F_SIGNALED, 0);
}

/* --- order ------------------------------------------------------------------------------- */

static unsigned int barriers;
static uint32_t rec_at_barrier[8];
static uint32_t op_at_barrier[8];

static void note_barrier(enum fake_barrier kind)
{
	const struct fake_obj *o = fake_qp(qp);
	struct skua_wqe_ctrl *c = (void *)(uintptr_t)(o->qp_req.buf_addr + o->qp_req.buf_len -
						      (64UL << o->qp_req.log_sq));

	assert_in_range(barriers, 0, 7);
	assert_int_equal(kind, FAKE_TO_DEVICE);
	rec_at_barrier[barriers] = le32_to_cpu(fake_qp_dbr(o)->sq_pi);
	op_at_barrier[barriers++] = le32_to_cpu(c->op);
}

static void note_doorbell(const struct fake_db *db)
{
	(void)db;
	/* Since the record was written */
	assert_int_equal(barriers, 2);
	assert_int_equal(rec_at_barrier[1], 1);
}

/* Ring, barrier, record, barrier, doorbell */
static void test_order(void **state)
{
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND);

	(void)state;
	barriers = 0;
	fake.on_barrier = note_barrier;
	fake.on_doorbell = note_doorbell;
	post(&wr);
	fake.on_barrier = NULL;
	fake.on_doorbell = NULL;
	assert_int_equal(barriers, 2);
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(rec_at_barrier[0], 0);
	look(0);
	assert_int_equal(op_at_barrier[0], le32_to_cpu(ctrl()->op));
}

/* --- a device that says when it wants a doorbell ------------------------------------------ */

static uint32_t event_at_fence;

/* The device publishes its event index just before our fence */
static void publish_event(enum fake_barrier kind)
{
	if (kind != FAKE_FENCE)
		return;
	fake_qp_dbr(fake_qp(qp))->sq_event = cpu_to_le32(event_at_fence);
	/* And what it looks at then is there */
	fake_look(fake_qp(qp));
	assert_int_equal(fake_qp(qp)->nwqes, 1);
}

static void test_suppress(void **state)
{
	struct skua_qp_dbr *dbr;

	(void)state;
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
	fake_close();
	fake.lim.caps |= SKUA_CAP_DB_SUPPRESS;
	fake_open();
	cq = fake_make_cq(64);
	qp = fake_make_qp(cq, IBV_QPT_RC);
	assert_true(fake_qp(qp)->qp_req.flags & SKUA_CREATE_QP_DB_SUPPRESS);
	dbr = fake_qp_dbr(fake_qp(qp));
	fake_dbs_clear();

	/* Wanted: the index passes 0 */
	fake_post_writes(qp, 1, 0);
	assert_int_equal(fake.ndbs, 1);
	/* The device works, and wants none before it comes to 4 */
	dbr->sq_event = cpu_to_le32(4);
	fake_post_writes(qp, 3, 0);
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(le32_to_cpu(dbr->sq_pi), 4);
	fake_post_writes(qp, 1, 0);
	assert_int_equal(fake.ndbs, 2);
	assert_int_equal(fake.db[1].lo, 5);
	fake_post_writes(qp, 1, 0);
	assert_int_equal(fake.ndbs, 2);

	/* It goes to sleep while we post: it sees the record, or we see its index */
	fake_modify(qp, IBV_QPS_RESET);
	dbr->sq_event = cpu_to_le32(7);
	fake_modify(qp, IBV_QPS_RTS);
	fake_dbs_clear();
	event_at_fence = 0;
	fake.on_barrier = publish_event;
	fake_post_writes(qp, 1, 0);
	fake.on_barrier = NULL;
	assert_int_equal(fake.ndbs, 1);
}

#define CASE(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(write), CASE(write_imm), CASE(send), CASE(read), CASE(atomic),
		CASE(atomic_write), CASE(local_inv), CASE(bind_type_2), CASE(bind_type_1),
		CASE(windows_rights), CASE(ud), CASE(raw_packet), CASE(xrc),
		CASE(refused_opcodes), CASE(refused_uc), CASE(refused_states),
		CASE(refused_sizes), CASE(list), CASE(wrap), CASE(inline), CASE(inline_one),
		CASE(inline_room), CASE(sig_all), CASE(order), CASE(suppress),
	};

	return cmocka_run_group_tests_name("provider post", tests, NULL, NULL);
}
