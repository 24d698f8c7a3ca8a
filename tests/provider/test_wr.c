// SPDX-License-Identifier: GPL-2.0
/*
 * The ibv_wr_*() calls: what each becomes in the ring, and which batches are refused.
 */
#include "look.h"

#define VA	0x1122334455667788ULL
#define RKEY	0x99aabbcc

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_qp_ex *qpx;

#define ALL_OPS	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |	\
		 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |			\
		 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |		\
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |		\
		 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |			\
		 IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)

static struct ibv_qp *make(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { .max_send_wr = 8, .max_send_sge = 2, .max_inline_data = 40 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = fake.pd,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(fake.ctx, &attr);
}

static void use(enum ibv_qp_type type, uint64_t ops)
{
	if (qp)
		fake_destroy_qp(qp);
	qp = make(type, ops);
	assert_non_null(qp);
	qpx = ibv_qp_to_qp_ex(qp);
	assert_non_null(qpx);
	fake_modify(qp, IBV_QPS_RTS);
	fake_dbs_clear();
}

static int setup(void **state)
{
	if (fake_setup_open(state))
		return -1;
	cq = fake_make_cq(64);
	qp = NULL;
	use(IBV_QPT_RC, ALL_OPS);
	return 0;
}

static int teardown(void **state)
{
	return fake_teardown_rc(state, cq, qp);
}

static void start(uint64_t wr_id, unsigned int flags)
{
	ibv_wr_start(qpx);
	qpx->wr_id = wr_id;
	qpx->wr_flags = flags;
}

static void look(uint32_t index)
{
	look_at(qp, index);
}

/* --- operations ------------------------------------------------------------------ */

static void test_sends(void **state)
{
	(void)state;
	start(1, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 0x11, 0x2000, 33);
	ibv_wr_send_imm(qpx, htobe32(0xabcdef));
	ibv_wr_set_sge(qpx, 0x12, 0x3000, 34);
	qpx->wr_flags = IBV_SEND_FENCE;
	ibv_wr_send_inv(qpx, 0x4711);
	assert_int_equal(fake.ndbs, 0);
	assert_false(ibv_wr_complete(qpx));
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].lo, 3);

	look(0);
	assert_ctrl(SKUA_WQE_SEND, 2, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_SOLICITED, 0);
	assert_data(1, 0x2000, 0x11, 33);
	look(1);
	assert_ctrl(SKUA_WQE_SEND_IMM, 2, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_SOLICITED,
		    le32toh(htobe32(0xabcdef)));
	assert_data(1, 0x3000, 0x12, 34);
	look(2);
	assert_ctrl(SKUA_WQE_SEND_INV, 1, SKUA_WQE_F_FENCE, 0x4711);
}

static void test_rdma(void **state)
{
	struct ibv_sge sge[2] = { { 0x5000, 55, 0x15 }, { 0x6000, 66, 0x16 } };

	(void)state;
	start(1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(qpx, RKEY, VA);
	ibv_wr_set_sge_list(qpx, 2, sge);
	ibv_wr_rdma_write_imm(qpx, RKEY + 1, VA + 1, htobe32(7));
	ibv_wr_set_sge_list(qpx, 0, NULL);
	ibv_wr_rdma_read(qpx, RKEY + 2, VA + 2);
	ibv_wr_set_sge(qpx, 0x17, 0x7000, 77);
	assert_false(ibv_wr_complete(qpx));

	look(0);
	assert_ctrl(SKUA_WQE_WRITE, 4, SKUA_WQE_F_SIGNALED, 0);
	assert_raddr(1, VA, RKEY, 0);
	assert_data(2, 0x5000, 0x15, 55);
	assert_data(3, 0x6000, 0x16, 66);
	look(1);
	assert_ctrl(SKUA_WQE_WRITE_IMM, 2, SKUA_WQE_F_SIGNALED, le32toh(htobe32(7)));
	assert_raddr(1, VA + 1, RKEY + 1, 0);
	look(2);
	assert_ctrl(SKUA_WQE_READ, 3, SKUA_WQE_F_SIGNALED, 0);
	assert_raddr(1, VA + 2, RKEY + 2, 0);
	assert_data(2, 0x7000, 0x17, 77);
}

static void test_atomics(void **state)
{
	const struct skua_wqe_atomic *a = seg(2);
	uint64_t value = 0x0102030405060708ULL;

	(void)state;
	start(1, 0);
	ibv_wr_atomic_cmp_swp(qpx, RKEY, VA, 0xc0, 0xd0);
	ibv_wr_set_sge(qpx, 0x11, 0x1000, 8);
	ibv_wr_atomic_fetch_add(qpx, RKEY, VA, 0xe0);
	ibv_wr_set_sge(qpx, 0x12, 0x2000, 8);
	ibv_wr_atomic_write(qpx, RKEY, VA, &value);
	value = 0;
	assert_false(ibv_wr_complete(qpx));

	look(0);
	assert_ctrl(SKUA_WQE_CAS, 4, 0, 0);
	assert_raddr(1, VA, RKEY, 0);
	assert_int_equal(le64_to_cpu(a->compare), 0xc0);
	assert_int_equal(le64_to_cpu(a->swap_add), 0xd0);
	assert_data(3, 0x1000, 0x11, 8);
	look(1);
	assert_ctrl(SKUA_WQE_FAA, 4, 0, 0);
	assert_int_equal(le64_to_cpu(a->compare), 0);
	assert_int_equal(le64_to_cpu(a->swap_add), 0xe0);
	assert_data(3, 0x2000, 0x12, 8);
	/* The value was read when the call was made */
	look(2);
	assert_ctrl(SKUA_WQE_ATOMIC_WRITE, 3, SKUA_WQE_F_INLINE, 0);
	assert_raddr(1, VA, RKEY, 0);
	assert_inline(2, &(uint64_t){ 0x0102030405060708ULL }, 8);
}

static void flush_refused(size_t len, uint8_t type, uint8_t level)
{
	uint32_t pi = le32_to_cpu(fake_qp_dbr(fake_qp(qp))->sq_pi);

	start(1, 0);
	ibv_wr_flush(qpx, RKEY, VA, len, type, level);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	assert_int_equal(le32_to_cpu(fake_qp_dbr(fake_qp(qp))->sq_pi), pi);
}

static void test_flush(void **state)
{
	(void)state;
	start(1, IBV_SEND_SIGNALED);
	ibv_wr_flush(qpx, RKEY, VA, 0xffffffff, IBV_FLUSH_PERSISTENT | IBV_FLUSH_GLOBAL,
		     IBV_FLUSH_RANGE);
	ibv_wr_flush(qpx, RKEY, VA, 4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	assert_false(ibv_wr_complete(qpx));
	look(0);
	assert_ctrl(SKUA_WQE_FLUSH, 2, SKUA_WQE_F_SIGNALED, 0xffffffff);
	assert_raddr(1, VA, RKEY, SKUA_WQE_FLUSH_GLOBAL | SKUA_WQE_FLUSH_PERSISTENT);
	/* Of a whole region: the length counts for nothing */
	look(1);
	assert_ctrl(SKUA_WQE_FLUSH, 2, SKUA_WQE_F_SIGNALED, 0);
	assert_raddr(1, VA, RKEY, SKUA_WQE_FLUSH_GLOBAL |
		     u32_encode_bits(SKUA_WQE_FLUSH_MR, SKUA_WQE_FLUSH_SEL));

	flush_refused(0x100000000ULL, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	flush_refused(4096, 4, IBV_FLUSH_RANGE);
	flush_refused(4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR + 1);
}

static void test_keys(void **state)
{
	struct ibv_mw *mw2 = ibv_alloc_mw(fake.pd, IBV_MW_TYPE_2);
	struct ibv_mw *mw1 = ibv_alloc_mw(fake.pd, IBV_MW_TYPE_1);
	struct ibv_mr mr = { .lkey = 0x321 };
	struct ibv_mw_bind_info info = {
		.mr = &mr,
		.addr = 0x1000,
		.length = 0x100,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED,
	};
	const struct skua_wqe_bind *b = seg(1);

	(void)state;
	start(1, IBV_SEND_FENCE);
	ibv_wr_local_inv(qpx, 0xabc);
	ibv_wr_bind_mw(qpx, mw2, mw2->rkey | 9, &info);
	assert_false(ibv_wr_complete(qpx));
	look(0);
	assert_ctrl(SKUA_WQE_LOCAL_INV, 1, SKUA_WQE_F_FENCE | SKUA_WQE_F_LOCAL_FENCE, 0xabc);
	look(1);
	assert_ctrl(SKUA_WQE_BIND_MW, 3, SKUA_WQE_F_FENCE | SKUA_WQE_F_LOCAL_FENCE, 0);
	assert_int_equal(le32_to_cpu(b->mw_key), mw2->rkey);
	assert_int_equal(le32_to_cpu(b->new_key), mw2->rkey | 9);
	assert_int_equal(le32_to_cpu(b->mr_key), 0x321);
	assert_int_equal(le32_to_cpu(b->access),
			 SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_ZERO_BASED);

	start(1, 0);
	ibv_wr_bind_mw(qpx, mw1, mw1->rkey | 9, &info);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	start(1, 0);
	ibv_wr_bind_mw(qpx, mw2, mw2->rkey ^ 0x100, &info);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	/* No payload for these */
	start(1, 0);
	ibv_wr_local_inv(qpx, 1);
	ibv_wr_set_sge(qpx, 1, 1, 1);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	assert_int_equal(fake.ndbs, 1);
	assert_false(ibv_dealloc_mw(mw1));
	assert_false(ibv_dealloc_mw(mw2));
}

/* --- inline ------------------------------------------------------------------------ */

static void test_inline(void **state)
{
	char data[128] = "These bytes are read when the call is made, not when it completes.";
	struct ibv_data_buf buf[3] = {
		{ data, 10 }, { data + 10, 0 }, { data + 10, 25 },
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t max;

	(void)state;
	assert_false(ibv_query_qp(qp, &attr, 0, &init));
	max = init.cap.max_inline_data;
	assert_in_range(max, 40, sizeof(data));
	start(1, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, data, max);
	ibv_wr_rdma_write(qpx, RKEY, VA);
	ibv_wr_set_inline_data_list(qpx, 3, buf);
	/* Of the caller's flags that one does not count */
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_send(qpx);
	/* The last setter counts */
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_set_inline_data(qpx, data, 5);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, data, 20);
	ibv_wr_set_sge(qpx, 4, 5, 6);
	assert_false(ibv_wr_complete(qpx));

	look(0);
	assert_ctrl(SKUA_WQE_SEND, nseg, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE, 0);
	assert_inline(1, data, max);
	look(fake_qp(qp)->wqe[1]);
	assert_ctrl(SKUA_WQE_WRITE, nseg, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE, 0);
	assert_raddr(1, VA, RKEY, 0);
	assert_inline(2, data, 35);
	look(fake_qp(qp)->wqe[2]);
	assert_ctrl(SKUA_WQE_SEND, 2, SKUA_WQE_F_SIGNALED, 0);
	look(fake_qp(qp)->wqe[3]);
	assert_ctrl(SKUA_WQE_SEND, 1, SKUA_WQE_F_SIGNALED, 0);
	look(fake_qp(qp)->wqe[4]);
	assert_ctrl(SKUA_WQE_SEND, 2, SKUA_WQE_F_SIGNALED | SKUA_WQE_F_INLINE, 0);
	assert_inline(1, data, 5);
	look(fake_qp(qp)->wqe[5]);
	assert_ctrl(SKUA_WQE_SEND, 2, SKUA_WQE_F_SIGNALED, 0);
	assert_data(1, 5, 4, 6);
}

static void test_inline_limits(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	char data[256] = {};
	struct ibv_data_buf buf[2] = { { data, 30 }, { data, 0 } };

	(void)state;
	assert_false(ibv_query_qp(qp, &attr, 0, &init));
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, data, init.cap.max_inline_data + 1);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	buf[1].length = init.cap.max_inline_data - 29;
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data_list(qpx, 2, buf);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	/* A sum that passes the largest number */
	buf[1].length = SIZE_MAX - 10;
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data_list(qpx, 2, buf);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	start(1, 0);
	ibv_wr_rdma_read(qpx, 1, 2);
	ibv_wr_set_inline_data(qpx, data, 8);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	assert_int_equal(fake.ndbs, 0);
}

static void test_sge_limits(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge[64] = {};

	(void)state;
	assert_false(ibv_query_qp(qp, &attr, 0, &init));
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, init.cap.max_send_sge, sge);
	assert_false(ibv_wr_complete(qpx));
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, init.cap.max_send_sge + 1, sge);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, (1ULL << 32) + 1, sge);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	assert_int_equal(fake.ndbs, 1);
}

/* --- receivers ----------------------------------------------------------------------- */

static void test_ud(void **state)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = FAKE_PORT,
				    .grh.dgid.raw = { 0xfe, 0x80, [15] = 8 } };
	struct ibv_ah *ah = ibv_create_ah(fake.pd, &attr);
	const struct skua_wqe_av *w = seg(1);

	(void)state;
	use(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	/* Which setter is called decides, not the flag */
	start(1, IBV_SEND_INLINE);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah, 0x777, 0x888);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	assert_false(ibv_wr_complete(qpx));
	look(0);
	assert_ctrl(SKUA_WQE_SEND, 5, 0, 0);
	assert_memory_equal(w->av.dgid, attr.grh.dgid.raw, 16);
	assert_int_equal(le32_to_cpu(w->dest_qpn), 0x777);
	assert_int_equal(le32_to_cpu(w->qkey), 0x888);
	assert_data(4, 2, 1, 3);

	start(1, IBV_SEND_INLINE);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah, 0x777, 0x888);
	assert_false(ibv_wr_complete(qpx));
	look(2);
	assert_ctrl(SKUA_WQE_SEND, 4, 0, 0);

	/* Each needs its own */
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah, 0x777, 0x888);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah, 0x777, 0x888);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	assert_int_equal(fake.ndbs, 2);
	assert_false(ibv_destroy_ah(ah));
}

static void test_xrc(void **state)
{
	const struct skua_wqe_xrc *x = seg(1);

	(void)state;
	use(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
	    IBV_QP_EX_WITH_LOCAL_INV);
	start(1, 0);
	ibv_wr_rdma_write(qpx, RKEY, VA);
	ibv_wr_set_xrc_srqn(qpx, 0x2222);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_local_inv(qpx, 3);
	assert_false(ibv_wr_complete(qpx));
	look(0);
	assert_ctrl(SKUA_WQE_WRITE, 4, 0, 0);
	assert_int_equal(le32_to_cpu(x->srqn), 0x2222);
	assert_raddr(2, VA, RKEY, 0);
	assert_data(3, 2, 1, 3);
	look(1);
	assert_ctrl(SKUA_WQE_LOCAL_INV, 1, 0, 3);
	start(1, 0);
	ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
}

/* --- batches --------------------------------------------------------------------------- */

static void test_room(void **state)
{
	struct ibv_data_buf buf = { .addr = wqe, .length = 40 };
	unsigned int blocks, i;
	struct ibv_wc wc;

	(void)state;
	blocks = 1U << fake_qp(qp)->qp_req.log_sq;
	start(1, IBV_SEND_SIGNALED);
	for (i = 0; i <= blocks; i++)
		ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), ENOMEM);
	start(1, IBV_SEND_SIGNALED);
	for (i = 0; i <= blocks; i++)
		ibv_wr_send(qpx);
	/* Another error after it is not told */
	ibv_wr_set_sge(qpx, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qpx), ENOMEM);
	assert_int_equal(fake.ndbs, 0);
	start(1, IBV_SEND_SIGNALED);
	for (i = 0; i < blocks; i++)
		ibv_wr_send(qpx);
	assert_false(ibv_wr_complete(qpx));

	/* What completes after the start makes room for the batch */
	start(2, IBV_SEND_SIGNALED);
	fake_sent(qp, 1, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 4, &wc), 1);
	ibv_wr_send(qpx);
	ibv_wr_send(qpx);
	assert_false(ibv_wr_complete(qpx));
	/* A payload of several blocks does not fit in one */
	fake_sent(qp, 2, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 4, &wc), 1);
	start(3, 0);
	ibv_wr_rdma_write(qpx, 1, 2);
	ibv_wr_set_inline_data(qpx, wqe, 40);
	assert_int_equal(ibv_wr_complete(qpx), ENOMEM);
	start(3, 0);
	ibv_wr_rdma_write(qpx, 1, 2);
	ibv_wr_set_inline_data_list(qpx, 1, &buf);
	assert_int_equal(ibv_wr_complete(qpx), ENOMEM);
	start(3, 0);
	ibv_wr_send(qpx);
	assert_false(ibv_wr_complete(qpx));
}

/* A WQE of several blocks gives them all back, whichever setter made it so long */
static void test_room_blocks(void **state)
{
	struct ibv_data_buf buf = { .addr = wqe, .length = 40 };
	struct ibv_sge sge[6] = {};
	unsigned int blocks, at = 0, how, i;
	struct ibv_wc wc;

	(void)state;
	use(IBV_QPT_RC, ALL_OPS);
	blocks = 1U << fake_qp(qp)->qp_req.log_sq;
	for (how = 0; how < 3; how++) {
		start(1, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(qpx, 1, 2);
		if (how == 0)
			ibv_wr_set_inline_data(qpx, wqe, 40);
		else if (how == 1)
			ibv_wr_set_inline_data_list(qpx, 1, &buf);
		else
			ibv_wr_set_sge_list(qpx, 3, sge);
		assert_false(ibv_wr_complete(qpx));
		fake_sent(qp, at, SKUA_CQE_OK);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		at += 2;
		start(1, IBV_SEND_SIGNALED);
		for (i = 0; i < blocks; i++)
			ibv_wr_send(qpx);
		assert_false(ibv_wr_complete(qpx));
		at += blocks;
		fake_sent(qp, at - 1, SKUA_CQE_OK);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	}
}

static void test_abort(void **state)
{
	(void)state;
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_abort(qpx);
	assert_int_equal(fake.ndbs, 0);
	start(2, 0);
	assert_false(ibv_wr_complete(qpx));
	assert_int_equal(fake.ndbs, 0);
	start(3, 0);
	ibv_wr_rdma_read(qpx, RKEY, VA);
	assert_false(ibv_wr_complete(qpx));
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].lo, 1);
	look(0);
	assert_ctrl(SKUA_WQE_READ, 2, 0, 0);
}

/* The first error stays, and nothing of the batch is posted */
static void test_errors(void **state)
{
	(void)state;
	start(1, 0);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);

	use(IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	start(1, 0);
	ibv_wr_send(qpx);
	ibv_wr_rdma_read(qpx, RKEY, VA);
	ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	assert_int_equal(fake.ndbs, 0);
	/* The next batch knows nothing of it */
	start(1, 0);
	ibv_wr_send(qpx);
	assert_false(ibv_wr_complete(qpx));
	assert_int_equal(fake.db[0].lo, 1);

	fake_modify(qp, IBV_QPS_RESET);
	fake_modify(qp, IBV_QPS_RTR);
	start(1, 0);
	ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
}

/* wr_id and opcode of each are those of its call */
static void test_completions(void **state)
{
	struct ibv_wc wc[2];

	(void)state;
	start(100, IBV_SEND_SIGNALED);
	ibv_wr_send(qpx);
	qpx->wr_id = 200;
	ibv_wr_atomic_fetch_add(qpx, RKEY, VA, 1);
	assert_false(ibv_wr_complete(qpx));
	fake_sent(qp, 0, SKUA_CQE_OK);
	fake_sent(qp, 1, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 2, wc), 2);
	assert_int_equal(wc[0].wr_id, 100);
	assert_int_equal(wc[0].opcode, IBV_WC_SEND);
	assert_int_equal(wc[1].wr_id, 200);
	assert_int_equal(wc[1].opcode, IBV_WC_FETCH_ADD);
}

static void test_offered(void **state)
{
	(void)state;
	assert_null(make(IBV_QPT_RC, IBV_QP_EX_WITH_TSO));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_FLUSH));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_ATOMIC_WRITE));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(make(IBV_QPT_RC, 1ULL << 40));
	assert_int_equal(errno, EOPNOTSUPP);
}

/*
 * Programs find out by the pointers whether a QP has the operations that came late to verbs:
 * librpma flushes by a READ if there is no wr_flush.
 */
static void test_offered_by_pointer(void **state)
{
	(void)state;
	assert_non_null(qpx->wr_flush);
	assert_non_null(qpx->wr_atomic_write);
	use(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE);
	assert_null(qpx->wr_flush);
	assert_non_null(qpx->wr_atomic_write);
	use(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH);
	assert_non_null(qpx->wr_flush);
	assert_null(qpx->wr_atomic_write);
	use(IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	assert_null(qpx->wr_flush);
	assert_null(qpx->wr_atomic_write);
}

#define CASE(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(sends), CASE(rdma), CASE(atomics), CASE(flush), CASE(keys), CASE(inline),
		CASE(inline_limits), CASE(sge_limits), CASE(ud), CASE(xrc), CASE(room), CASE(room_blocks),
		CASE(abort), CASE(errors), CASE(completions), CASE(offered),
		CASE(offered_by_pointer),
	};

	return cmocka_run_group_tests_name("provider wr", tests, NULL, NULL);
}
