// SPDX-License-Identifier: GPL-2.0
/*
 * Direct verbs: sizes of structures, flags, and that rings, records and doorbells are told of
 * as the kernel was.
 */
#include <unistd.h>

#include "look.h"
#include "skua.h"

static struct ibv_cq *cq;

static void open_with(uint32_t push_segs, uint64_t without)
{
	if (push_segs) {
		fake.lim.push_offset = 4 * sysconf(_SC_PAGESIZE);
		fake.lim.push_size = sysconf(_SC_PAGESIZE);
		fake.lim.push_segs = push_segs;
	}
	fake.lim.caps &= ~without;
	fake_open();
	assert_non_null(fake.ctx);
	cq = fake_make_cq(16);
}

static int setup(void **state)
{
	if (fake_setup(state))
		return -1;
	open_with(SKUA_PUSH_SEGS, 0);
	return 0;
}

static int teardown(void **state)
{
	fake_destroy_cq(cq);
	return fake_teardown(state);
}

static struct ibv_qp_init_attr_ex qp_attr(void)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = fake.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 8, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 2 },
	};
}

static struct ibv_qp *make(uint32_t flags)
{
	struct ibv_qp_init_attr_ex attr = qp_attr();
	struct skuadv_qp_init_attr sattr = { .create_flags = flags };

	return skuadv_create_qp(fake.ctx, &attr, &sattr, sizeof(sattr));
}

static void test_query(void **state)
{
	struct skuadv_device_attr attr;
	uint8_t more[sizeof(attr) + 8];
	uint32_t len;

	(void)state;
	assert_true(skuadv_is_supported(fake.ctx->device));
	for (len = 0; len <= sizeof(more); len++) {
		memset(more, 0xee, sizeof(more));
		assert_int_equal(skuadv_query_device(fake.ctx, (void *)more, len),
				 len < 8 ? EINVAL : 0);
		if (len < sizeof(more))
			assert_int_equal(more[len], 0xee);
	}
	memcpy(&attr, more, sizeof(attr));
	assert_int_equal(attr.caps, SKUADV_CAP_PUSH | SKUADV_CAP_SCATTER_CQE |
			 SKUADV_CAP_SELECTIVE_REPEAT);
	assert_int_equal(attr.push_wqe_size, 48);
	assert_int_equal(attr.cqe_sizes, 64 | 128);
	assert_int_equal(attr.max_scatter_cqe, 64);
	assert_int_equal(attr.max_send_blocks, fake.ctx ? 65536 : 0);
	assert_int_equal(attr.max_wqe_blocks, fake.lim.max_wqe_blocks);
	assert_int_equal(attr.max_inline, fake.lim.max_inline);
	/* What is behind the fields that are known is zero. */
	assert_int_equal(more[sizeof(attr)], 0);
}

static void test_query_without(void **state)
{
	struct skuadv_device_attr attr;
	struct ibv_qp *qp;

	fake_setup(state);
	open_with(0, SKUA_CAP_PUSH | SKUA_CAP_SCATTER_CQE | SKUA_CAP_SR);
	assert_int_equal(skuadv_query_device(fake.ctx, &attr, sizeof(attr)), 0);
	assert_int_equal(attr.caps, 0);
	assert_int_equal(attr.push_wqe_size | attr.max_scatter_cqe, 0);
	assert_null(make(SKUADV_QP_CREATE_SCATTER_CQE));
	assert_int_equal(errno, EOPNOTSUPP);
	qp = make(SKUADV_QP_CREATE_NO_SCATTER_CQE | SKUADV_QP_CREATE_NO_PUSH);
	assert_non_null(qp);
	fake_destroy_qp(qp);
}

static void test_qp_flags(void **state)
{
	static const struct {
		uint32_t flags, req;
	} row[] = {
		{ 0, SKUA_CREATE_QP_PUSH | SKUA_CREATE_QP_DB_SUPPRESS },
		{ SKUADV_QP_CREATE_NO_SCATTER_CQE,
		  SKUA_CREATE_QP_PUSH | SKUA_CREATE_QP_DB_SUPPRESS },
		{ SKUADV_QP_CREATE_SCATTER_CQE, SKUA_CREATE_QP_SCATTER_RQ |
		  SKUA_CREATE_QP_SCATTER_SQ | SKUA_CREATE_QP_PUSH | SKUA_CREATE_QP_DB_SUPPRESS },
		{ SKUADV_QP_CREATE_NO_PUSH, SKUA_CREATE_QP_DB_SUPPRESS },
		{ SKUADV_QP_CREATE_NO_DB_SUPPRESS, SKUA_CREATE_QP_PUSH },
	};
	struct skuadv_qp_init_attr sattr[2] = {};
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;
	unsigned int i;

	fake_setup(state);
	fake.lim.caps |= SKUA_CAP_DB_SUPPRESS;
	open_with(SKUA_PUSH_SEGS, 0);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		qp = make(row[i].flags);
		assert_non_null(qp);
		assert_int_equal(fake_qp(qp)->qp_req.flags, row[i].req);
		fake_destroy_qp(qp);
	}
	assert_null(make(1 << 4));
	assert_int_equal(errno, EINVAL);
	assert_null(make(SKUADV_QP_CREATE_NO_SCATTER_CQE | SKUADV_QP_CREATE_SCATTER_CQE));
	assert_int_equal(errno, EINVAL);
	/* Sizes: too short, a field that is not known set, or zero */
	attr = qp_attr();
	assert_null(skuadv_create_qp(fake.ctx, &attr, sattr, 4));
	assert_int_equal(errno, EINVAL);
	sattr[1].create_flags = 1;
	assert_null(skuadv_create_qp(fake.ctx, &attr, sattr, sizeof(sattr)));
	assert_int_equal(errno, EINVAL);
	sattr[1].create_flags = 0;
	qp = skuadv_create_qp(fake.ctx, &attr, sattr, sizeof(sattr));
	assert_non_null(qp);
	fake_destroy_qp(qp);
	sattr[0].comp_mask = 1;
	assert_null(skuadv_create_qp(fake.ctx, &attr, sattr, sizeof(sattr)));
	assert_int_equal(errno, EINVAL);
}

static void test_cq_size(void **state)
{
	static const struct {
		uint32_t size, got;
	} row[] = { { 0, 64 }, { 64, 64 }, { 128, 128 }, { 32, 0 }, { 96, 0 }, { 256, 0 } };
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct skuadv_cq_init_attr sattr = { .cqe_size = row[i].size };
		struct ibv_cq_ex *x = skuadv_create_cq(fake.ctx, &attr, &sattr, sizeof(sattr));
		struct skuadv_obj obj = {};
		struct skuadv_cq out;
		struct ibv_cq *c;

		assert_int_equal(!!x, !!row[i].got);
		if (!x) {
			assert_int_equal(errno, EINVAL);
			continue;
		}
		c = ibv_cq_ex_to_cq(x);
		assert_int_equal(fake_cq(c)->cq_req.cqe_size, row[i].got);
		obj.cq.in = c;
		obj.cq.out = &out;
		assert_int_equal(skuadv_init_obj(&obj, SKUADV_OBJ_CQ), 0);
		assert_int_equal((uintptr_t)out.buf, fake_cq(c)->cq_req.buf_addr);
		assert_int_equal(out.cqes, 16);
		assert_int_equal(out.cqe_size, row[i].got);
		assert_int_equal(out.cqn, fake_cq(c)->num);
		assert_ptr_equal(out.record, fake_cq_dbr(fake_cq(c)));
		assert_int_equal(out.ci, 0);
		fake_destroy_cq(c);
	}
}

/* It belongs to its channel and has the program's context, as one of ibv_create_cq_ex(). */
static void test_cq_channel(void **state)
{
	struct ibv_comp_channel channel = { .context = fake.ctx, .fd = -1 };
	struct skuadv_cq_init_attr sattr = {};
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16, .cq_context = &sattr, .channel = &channel,
	};
	struct ibv_cq_ex *x;
	struct ibv_cq *c;

	(void)state;
	x = skuadv_create_cq(fake.ctx, &attr, &sattr, sizeof(sattr));
	assert_non_null(x);
	c = ibv_cq_ex_to_cq(x);
	assert_ptr_equal(c->context, fake.ctx);
	assert_ptr_equal(c->channel, &channel);
	assert_ptr_equal(c->cq_context, &sattr);
	assert_int_equal(channel.refcnt, 1);
	/* What events are acknowledged with: usable, and none came yet. */
	ibv_ack_cq_events(c, 1);
	assert_int_equal(c->comp_events_completed, 1);
	assert_int_equal(c->async_events_completed, 0);
	c->comp_events_completed = 0;
	fake_destroy_cq(c);
	assert_int_equal(channel.refcnt, 0);
}

static void test_rings(void **state)
{
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(fake.pd, &sattr);
	struct ibv_qp *qp = make(0), *many[8];
	const struct skua_create_qp_req *req = &fake_qp(qp)->qp_req;
	struct skuadv_srq dsrq;
	struct skuadv_qp dqp;
	struct skuadv_obj obj = { .qp = { qp, &dqp }, .srq = { srq, &dsrq } };
	unsigned int i;

	(void)state;
	assert_int_equal(skuadv_init_obj(&obj, SKUADV_OBJ_QP | SKUADV_OBJ_SRQ), 0);
	assert_int_equal((uintptr_t)dqp.rq_buf, req->buf_addr);
	assert_int_equal((uintptr_t)dqp.sq_buf, req->buf_addr + 4 * 32);
	assert_int_equal(dqp.sq_blocks, 1 << req->log_sq);
	assert_int_equal(dqp.rq_wqes, 1 << req->log_rq);
	assert_int_equal(dqp.rq_stride, 16 << req->log_rq_stride);
	assert_int_equal(dqp.qpn, qp->qp_num);
	assert_int_equal((uintptr_t)dqp.record, req->dbr_addr);
	assert_int_equal(dqp.flags, SKUADV_QP_WRITE_COMBINING);
	assert_int_equal(dqp.push_wqe_size, 48);
	assert_ptr_equal(dqp.push, (uint8_t *)dqp.doorbell + SKUA_UAR_PUSH);
	assert_int_equal(*dqp.alive, 1);
	fake.status->alive = 0;
	assert_int_equal(*dqp.alive, 0);
	fake.status->alive = 1;
	assert_int_equal((uintptr_t)dsrq.buf, fake_srq(srq)->srq_req.buf_addr);
	assert_int_equal(dsrq.stride, 16 << fake_srq(srq)->srq_req.log_stride);
	assert_int_equal(dsrq.srqn, fake_srq(srq)->num);
	assert_int_equal(dsrq.pi, 0);
	assert_int_not_equal(dsrq.head, dsrq.tail);
	/* Slots that others use too are not told of. */
	for (i = 0; i < 8; i++) {
		many[i] = make(0);
		obj.qp.in = many[i];
		assert_int_equal(skuadv_init_obj(&obj, SKUADV_OBJ_QP), 0);
		assert_int_equal(!!dqp.push, i < 6);
		assert_int_equal(dqp.flags, SKUADV_QP_WRITE_COMBINING);
	}
	for (i = 0; i < 8; i++)
		fake_destroy_qp(many[i]);
	assert_int_equal(skuadv_init_obj(&obj, 0), EINVAL);
	assert_int_equal(skuadv_init_obj(&obj, 1 << 4), EINVAL);
	fake_destroy_qp(qp);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Objects of another provider's devices. */
static void test_foreign(void **state)
{
	struct verbs_device other = {};
	struct ibv_context ctx = { .device = &other.device };
	struct ibv_qp qp = { .context = &ctx };
	struct ibv_cq c = { .context = &ctx };
	struct skuadv_device_attr attr;
	struct skuadv_qp dqp;
	struct skuadv_cq dcq;
	struct skuadv_obj obj = { .qp = { &qp, &dqp }, .cq = { &c, &dcq } };

	(void)state;
	assert_false(skuadv_is_supported(&other.device));
	assert_int_equal(skuadv_query_device(&ctx, &attr, sizeof(attr)), EOPNOTSUPP);
	assert_int_equal(skuadv_init_obj(&obj, SKUADV_OBJ_QP), EOPNOTSUPP);
	assert_int_equal(skuadv_init_obj(&obj, SKUADV_OBJ_CQ), EOPNOTSUPP);
	assert_null(skuadv_create_qp(&ctx, NULL, NULL, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(skuadv_create_cq(&ctx, NULL, NULL, 0));
	assert_int_equal(errno, EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_query, setup, teardown),
		cmocka_unit_test_setup_teardown(test_query_without, NULL, teardown),
		cmocka_unit_test_setup_teardown(test_qp_flags, NULL, teardown),
		cmocka_unit_test_setup_teardown(test_cq_size, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cq_channel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
	};

	return cmocka_run_group_tests_name("provider direct verbs", tests, NULL, NULL);
}
