// SPDX-License-Identifier: GPL-2.0
/*
 * Pushes: which WQEs go into a slot, which slots a QP has, barriers, and when there are
 * none. That a slot holds what the ring does, and comes through the page that the kernel
 * was told of, is for the fake to say.
 */
#include <unistd.h>

#include "look.h"
#include "skua.h"

#define SLOT	SKUA_UAR_PUSH_SLOT_SIZE
#define QPS	10

static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void open_with(uint32_t segs)
{
	fake.lim.push_offset = 4 * sysconf(_SC_PAGESIZE);
	fake.lim.push_size = sysconf(_SC_PAGESIZE);
	fake.lim.push_segs = segs;
	fake_open();
	assert_non_null(fake.ctx);
	cq = fake_make_cq(256);
}

static struct ibv_qp *make(enum ibv_qp_type type)
{
	struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
				  .max_recv_sge = 1, .max_inline_data = 64 };
	struct ibv_qp *q = fake_make_qp_cap(cq, cq, type, &cap);

	fake_modify(q, IBV_QPS_INIT);
	fake_modify(q, IBV_QPS_RTR);
	fake_modify(q, IBV_QPS_RTS);
	return q;
}

static int setup(void **state)
{
	if (fake_setup(state))
		return -1;
	open_with(SKUA_PUSH_SEGS);
	qp = make(IBV_QPT_RC);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (qp)
		fake_destroy_qp(qp);
	qp = NULL;
	if (cq)
		fake_destroy_cq(cq);
	cq = NULL;
	return fake_teardown(state);
}

static uint8_t data[64] = "what is pushed";

/* Post @n inline requests of @len bytes in one list. */
static void post(struct ibv_qp *q, enum ibv_wr_opcode op, unsigned int n, uint32_t len,
		 unsigned int flags)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = len, .lkey = 5 };
	struct ibv_send_wr wr[4] = {}, *bad;
	unsigned int i;

	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
			.send_flags = IBV_SEND_SIGNALED | flags,
			.wr.rdma = { .remote_addr = 0x1000, .rkey = 7 },
		};
	fake_dbs_clear();
	assert_int_equal(ibv_post_send(q, wr, &bad), 0);
	assert_int_equal(fake.ndbs, 1);
	while (n--)
		fake_sent(q, fake_qp(q)->wqe[0], SKUA_CQE_OK);
	while (ibv_poll_cq(cq, 1, &(struct ibv_wc){}) == 1)
		;
}

static bool pushed(void)
{
	return fake.db[0].reg >= SKUA_UAR_PUSH;
}

static void test_which(void **state)
{
	(void)state;
	/* Control segment, remote address, 4 bytes of length and 12 of data; 28 of a SEND */
	post(qp, IBV_WR_RDMA_WRITE, 1, 12, IBV_SEND_INLINE);
	assert_true(pushed());
	post(qp, IBV_WR_RDMA_WRITE, 1, 13, IBV_SEND_INLINE);
	assert_false(pushed());
	post(qp, IBV_WR_SEND, 1, 28, IBV_SEND_INLINE);
	assert_true(pushed());
	post(qp, IBV_WR_SEND, 1, 29, IBV_SEND_INLINE);
	assert_false(pushed());
	/* One element */
	post(qp, IBV_WR_RDMA_WRITE, 1, 4096, 0);
	assert_true(pushed());
	post(qp, IBV_WR_RDMA_READ, 1, 4096, 0);
	assert_true(pushed());
	/* More than one block, or one WQE */
	post(qp, IBV_WR_SEND, 1, 60, IBV_SEND_INLINE);
	assert_false(pushed());
	post(qp, IBV_WR_SEND, 2, 8, IBV_SEND_INLINE);
	assert_false(pushed());
}

/* A device that says that only the shortest pay. */
static void test_segs(void **state)
{
	fake_setup(state);
	open_with(2);
	qp = make(IBV_QPT_RC);
	post(qp, IBV_WR_SEND, 1, 12, IBV_SEND_INLINE);
	assert_true(pushed());
	post(qp, IBV_WR_SEND, 1, 13, IBV_SEND_INLINE);
	assert_false(pushed());
}

/* The two slots of a QP by turns; the first seven QPs have their own, others share. */
static void test_slots(void **state)
{
	struct ibv_qp *q[QPS];
	unsigned int i, k;

	(void)state;
	q[0] = qp;
	for (i = 1; i < QPS; i++)
		q[i] = make(IBV_QPT_RC);
	for (i = 0; i < QPS; i++) {
		unsigned int pair = i < 7 ? i : 7;

		assert_int_equal(!!to_sqp(q[i])->push.lock, i >= 7);
		for (k = 0; k < 4; k++) {
			post(q[i], IBV_WR_SEND, 1, 8, IBV_SEND_INLINE);
			assert_int_equal(fake.db[0].reg,
					 SKUA_UAR_PUSH + (2 * pair + k % 2) * SLOT);
		}
	}
	/* A pair that is free again is the next QP's. */
	fake_destroy_qp(q[3]);
	fake_destroy_qp(q[9]);
	q[3] = make(IBV_QPT_RC);
	q[9] = make(IBV_QPT_RC);
	assert_int_equal(to_sqp(q[3])->push.pair, 3);
	assert_null(to_sqp(q[3])->push.lock);
	assert_non_null(to_sqp(q[9])->push.lock);
	for (i = 1; i < QPS; i++)
		fake_destroy_qp(q[i]);
}

/* Types of which some WQE is short enough. */
static void test_types(void **state)
{
	struct ibv_qp *ud = make(IBV_QPT_UD), *uc = make(IBV_QPT_UC);

	(void)state;
	assert_null(to_sqp(ud)->push.slot);
	assert_false(fake_qp(ud)->qp_req.flags & SKUA_CREATE_QP_PUSH);
	assert_non_null(to_sqp(uc)->push.slot);
	post(uc, IBV_WR_SEND, 1, 8, IBV_SEND_INLINE);
	assert_true(pushed());
	fake_destroy_qp(uc);
	fake_destroy_qp(ud);
}

/* ibv_wr_*(), and a queue whose ring wraps. */
static void test_wr(void **state)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = fake.pd,
		.cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 16 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *q = ibv_create_qp_ex(fake.ctx, &attr);
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(q);
	unsigned int i;

	(void)state;
	fake_modify(q, IBV_QPS_INIT);
	fake_modify(q, IBV_QPS_RTR);
	fake_modify(q, IBV_QPS_RTS);
	for (i = 0; i < 40; i++) {
		fake_dbs_clear();
		ibv_wr_start(x);
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(x, 1, 0x1000);
		ibv_wr_set_inline_data(x, data, 8);
		assert_int_equal(ibv_wr_complete(x), 0);
		assert_int_equal(fake.ndbs, 1);
		assert_true(pushed());
		fake_sent(q, fake_qp(q)->wqe[0], SKUA_CQE_OK);
		assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc){}), 1);
	}
	fake_destroy_qp(q);
}

/* Memory, barrier, slot, barrier; a doorbell through that page is flushed as well. */
static unsigned int flushes, flushes_before;

static void on_barrier(enum fake_barrier kind)
{
	flushes += kind == FAKE_FLUSH_WRITES;
}

static void on_doorbell(const struct fake_db *db)
{
	(void)db;
	flushes_before = flushes;
}

static void test_barriers(void **state)
{
	static const uint32_t lens[] = { 8, 60 };
	unsigned int i;

	(void)state;
	fake.on_barrier = on_barrier;
	fake.on_doorbell = on_doorbell;
	for (i = 0; i < 2; i++) {
		flushes = 0;
		post(qp, IBV_WR_SEND, 1, lens[i], IBV_SEND_INLINE);
		assert_int_equal(flushes_before, 1);
		assert_int_equal(flushes, 2);
	}
	/* And the one that is for receives of a QP in error */
	flushes = 0;
	fake_modify(qp, IBV_QPS_ERR);
	assert_int_equal(flushes_before, 1);
	assert_int_equal(flushes, 2);
	fake.on_barrier = NULL;
	fake.on_doorbell = NULL;
}

/* A doorbell that the device does not want is no push either. */
static void test_suppress(void **state)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 8 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE }, *bad;

	(void)state;
	fake_setup(state);
	fake.lim.caps |= SKUA_CAP_DB_SUPPRESS;
	open_with(SKUA_PUSH_SEGS);
	qp = make(IBV_QPT_RC);
	fake_dbs_clear();
	fake_qp_dbr(fake_qp(qp))->sq_event = cpu_to_le32(1);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(fake.ndbs, 0);
	fake_look(fake_qp(qp));
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(fake.ndbs, 1);
	assert_true(pushed());
}

/* What the kernel is asked for, by the environment, and what is used of its answer. */
static void test_wish(void **state)
{
	static const struct {
		const char *env;
		uint32_t wish;
	} row[] = {
		{ NULL, SKUA_ALLOC_UCONTEXT_PUSH },
		{ "", SKUA_ALLOC_UCONTEXT_PUSH },
		{ "0", SKUA_ALLOC_UCONTEXT_PUSH_ALWAYS },
		{ "1", 0 },
		{ "yes", 0 },
	};
	struct skua_alloc_ucontext_resp good;
	struct ibv_context *other;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fake_setup(state);
		if (row[i].env)
			setenv("SKUA_SHUT_UP_BF", row[i].env, 1);
		fake_open();
		unsetenv("SKUA_SHUT_UP_BF");
		assert_non_null(fake.ctx);
		assert_int_equal(fake.wish, row[i].wish);
		cq = fake_make_cq(16);
		qp = make(IBV_QPT_RC);
		/* No page, no push */
		post(qp, IBV_WR_SEND, 1, 8, IBV_SEND_INLINE);
		assert_false(pushed());
		teardown(state);
	}
	/* A kernel that does not know the wish */
	fake_setup(state);
	fake.old_kernel = true;
	fake_open();
	assert_non_null(fake.ctx);
	assert_int_equal(fake.wish, 0);
	fake_teardown(state);
	/* Answers that cannot be */
	fake_setup(state);
	good = fake.lim;
	for (i = 0; i < 4; i++) {
		fake.lim = good;
		fake.lim.push_offset = 4 * sysconf(_SC_PAGESIZE);
		fake.lim.push_size = sysconf(_SC_PAGESIZE) + (i == 0) * 64;
		fake.lim.push_segs = i == 1 ? 0 : i == 2 ? SKUA_PUSH_SEGS + 1 : SKUA_PUSH_SEGS;
		fake_open();
		assert_int_equal(!fake.ctx, i < 3);
		if (i < 3)
			assert_int_equal(errno, EPROTO);
		else
			/* One that shares the page with another does not use it. */
			other = fake_import();
		if (i < 3)
			fake_close();
	}
	assert_non_null(other);
	assert_null(to_sctx(other)->push);
	ibv_close_device(other);
	fake_close();
	fake_teardown(state);
}

/* Memory or a mapping fails at any step: no context, or no QP, and nothing is left. */
static void test_fails(void **state)
{
	unsigned int n;

	/* The first step is the test's */
	for (n = 2; n <= 6; n++) {
		fake_setup(state);
		fake.lim.push_offset = 4 * sysconf(_SC_PAGESIZE);
		fake.lim.push_size = sysconf(_SC_PAGESIZE);
		fake.lim.push_segs = SKUA_PUSH_SEGS;
		fake.fail_at = n;
		fake_open();
		fake.fail_at = 0;
		fake_close();
		assert_int_equal(fake.maps, 0);
		fake_teardown(state);
	}
	fake_setup(state);
	open_with(SKUA_PUSH_SEGS);
	for (n = 1; n < 12; n++) {
		fake.fail_at = n;
		qp = ibv_create_qp(fake.pd, &(struct ibv_qp_init_attr){
			.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 4, .max_send_sge = 1 } });
		fake.fail_at = 0;
		if (qp)
			break;
		assert_int_equal(to_sctx(fake.ctx)->push_pairs, 0);
	}
	assert_non_null(qp);
	assert_int_equal(to_sctx(fake.ctx)->push_pairs, 1);
	fake_destroy_qp(qp);
	qp = NULL;
	assert_int_equal(to_sctx(fake.ctx)->push_pairs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_which, setup, teardown),
		cmocka_unit_test_setup_teardown(test_segs, NULL, teardown),
		cmocka_unit_test_setup_teardown(test_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_types, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wr, setup, teardown),
		cmocka_unit_test_setup_teardown(test_barriers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_suppress, NULL, teardown),
		cmocka_unit_test(test_wish),
		cmocka_unit_test_setup_teardown(test_fails, NULL, teardown),
	};

	return cmocka_run_group_tests_name("push", tests, NULL, NULL);
}
