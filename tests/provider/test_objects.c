// SPDX-License-Identifier: GPL-2.0
/*
 * Objects that are made, changed and unmade: what the kernel is told, what it refuses,
 * and that nothing is left when any step of it fails.
 */
#include <rdma/ib_user_ioctl_cmds.h>

#include "fake.h"
#include "skua.h"

/* --- contexts -------------------------------------------------------------------- */

static int setup_closed(void **state)
{
	return fake_setup(state);
}

static void test_context_limits(void **state)
{
	static const size_t at[] = {
		offsetof(struct skua_alloc_ucontext_resp, uar_size),
		offsetof(struct skua_alloc_ucontext_resp, max_sq_blocks),
		offsetof(struct skua_alloc_ucontext_resp, max_rq_wqes),
		offsetof(struct skua_alloc_ucontext_resp, max_wqe_blocks),
		offsetof(struct skua_alloc_ucontext_resp, max_rq_sge),
		offsetof(struct skua_alloc_ucontext_resp, max_cqe),
	};
	struct skua_alloc_ucontext_resp good = fake.lim;
	unsigned int i;

	(void)state;
	/* Zero says that there is no such thing: the kernel is not believed */
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		fake.lim = good;
		*(uint32_t *)((uint8_t *)&fake.lim + at[i]) = 0;
		fake_open();
		assert_null(fake.ctx);
		assert_int_equal(errno, EPROTO);
		fake_close();
	}
	fake.lim = good;
	fake.lim.max_wqe_blocks = SKUA_WQE_MAX_BLOCKS + 1;
	fake_open();
	assert_null(fake.ctx);
	fake_close();
	fake.lim = good;
	fake.lim.uar_size += 64;
	fake_open();
	assert_null(fake.ctx);
	fake_close();
	fake.lim = good;
	fake_open();
	assert_non_null(fake.ctx);
}

static void test_context_fails(void **state)
{
	unsigned int n;

	(void)state;
	/* The first step is the test's, the second is a question whose answer does not count */
	for (n = 3; n <= 5; n++) {
		fake.failed = false;
		fake.fail_at = n;
		fake_open();
		assert_true(fake.failed);
		assert_null(fake.ctx);
		assert_int_equal(errno, ENOMEM);
		fake_close();
		fake_assert_clean();
	}
	fake_open();
	assert_non_null(fake.ctx);
}

/* A context of another process has the same pages */
static void test_context_import(void **state)
{
	struct ibv_context *ctx;
	unsigned int n;

	(void)state;
	fake_open();
	for (n = 1; n < 5; n++) {
		fake.failed = false;
		fake.fail_at = n;
		ctx = fake_import();
		if (!fake.failed)
			break;
		/* libibverbs asks once whether a command is known, and takes any answer */
		if (ctx)
			ibv_close_device(ctx);
	}
	fake.fail_at = 0;
	ctx = fake_import();
	assert_non_null(ctx);
	assert_memory_equal(&to_sctx(ctx)->lim, &to_sctx(fake.ctx)->lim, sizeof(fake.lim));
	assert_false(ibv_close_device(ctx));
}

/* --- QPs: sizes --------------------------------------------------------------------- */

static struct ibv_cq *cq;

static struct ibv_qp *make(enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = *cap,
	};
	struct ibv_qp *qp = ibv_create_qp(fake.pd, &attr);

	*cap = attr.cap;
	return qp;
}

/* Rings of at most half a page share pages, others do not. */
static uint64_t ring_align(uint64_t len)
{
	uint64_t size = 64;

	if (len > fake_page() / 2)
		return fake_page();
	while (size < len)
		size *= 2;
	return size;
}

/* What is told is what can be posted */
static void test_qp_sizes(void **state)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET,
	};
	static const struct ibv_qp_cap caps[] = {
		{ 1, 1, 1, 1, 0 }, { 1, 0, 0, 0, 0 }, { 100, 100, 1, 1, 0 }, { 3, 5, 7, 9, 0 },
		{ 16, 1, 1, 1, 200 }, { 10, 3, 30, 30, 500 }, { 0, 8, 0, 2, 0 },
		{ 1, 1, 57, 30, 900 }, { 4096, 32768, 12, 2, 0 }, { 0, 0, 0, 0, 0 },
	};
	unsigned int t, i;

	(void)state;
	cq = fake_make_cq(64);
	for (t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
			struct ibv_qp_cap cap = caps[i];
			struct ibv_qp_init_attr init;
			struct ibv_qp_attr attr;
			struct ibv_qp *qp = make(types[t], &cap);
			const struct fake_obj *o;
			uint32_t blocks;

			assert_non_null(qp);
			o = fake_qp(qp);
			assert_true(cap.max_send_wr >= caps[i].max_send_wr);
			if (caps[i].max_send_wr) {
				assert_true(cap.max_send_sge >= caps[i].max_send_sge);
				assert_true(cap.max_inline_data >= caps[i].max_inline_data);
				assert_true(cap.max_inline_data <= fake.lim.max_inline);
			} else if (cap.max_recv_wr) {
				assert_int_equal(cap.max_send_sge, 0);
				assert_int_equal(cap.max_inline_data, 0);
			}
			/* Only one that nobody asked to have a queue has more than asked for */
			assert_int_equal(o->qp_req.has_sq, caps[i].max_send_wr || !cap.max_recv_wr);
			if (types[t] == IBV_QPT_XRC_SEND) {
				assert_int_equal(cap.max_recv_wr, 0);
				assert_int_equal(cap.max_recv_sge, 0);
			} else {
				assert_true(cap.max_recv_wr >= caps[i].max_recv_wr);
				if (caps[i].max_recv_wr)
					assert_true(cap.max_recv_sge >= caps[i].max_recv_sge);
			}
			assert_int_equal(o->qp_req.has_rq, !!cap.max_recv_wr);
			assert_int_equal(!!o->cap.max_recv_wr, !!cap.max_recv_wr);
			/* The kernel is told of the payload of ibv_wr_atomic_write() */
			if (types[t] == IBV_QPT_RC && o->qp_req.has_sq)
				assert_true(o->cap.max_inline_data >= 8);
			else
				assert_int_equal(o->cap.max_inline_data, cap.max_inline_data);
			blocks = o->qp_req.has_sq ? 1U << o->qp_req.log_sq : 0;
			assert_true(!blocks || blocks >= 8);
			assert_int_equal(o->qp_req.buf_len,
					 ((o->qp_req.has_rq ? 16ULL << (o->qp_req.log_rq +
						o->qp_req.log_rq_stride) : 0) + 63) / 64 * 64 +
					 64ULL * blocks);
			assert_int_equal(o->qp_req.buf_addr % ring_align(o->qp_req.buf_len), 0);
			assert_int_equal(o->qp_req.dbr_addr % SKUA_DBR_ALIGN, 0);

			assert_false(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
			assert_memory_equal(&attr.cap, &init.cap, sizeof(init.cap));
			assert_int_equal(init.cap.max_send_wr, cap.max_send_wr);
			assert_int_equal(init.cap.max_recv_wr, cap.max_recv_wr);
			assert_int_equal(init.cap.max_send_sge, cap.max_send_sge);
			assert_int_equal(init.cap.max_recv_sge, cap.max_recv_sge);
			assert_int_equal(init.cap.max_inline_data, cap.max_inline_data);
			fake_destroy_qp(qp);
		}
	}
	fake_destroy_cq(cq);
}

/* As many requests of the largest kind as were promised */
static void test_qp_promise(void **state)
{
	static const struct ibv_qp_cap caps[] = {
		{ 5, 5, 1, 1, 0 }, { 7, 3, 9, 9, 0 }, { 3, 2, 20, 20, 333 },
	};
	uint8_t bytes[1024] = {};
	struct ibv_sge sge[32], in = { .addr = (uintptr_t)bytes };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;
	struct ibv_recv_wr rwr = { .sg_list = sge }, *rbad;
	unsigned int i, n;

	(void)state;
	cq = fake_make_cq(64);
	memset(sge, 0, sizeof(sge));
	for (i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct ibv_qp_cap cap = caps[i];
		struct ibv_qp *qp = make(IBV_QPT_RC, &cap);

		fake_modify(qp, IBV_QPS_RTS);
		wr.sg_list = sge;
		wr.num_sge = cap.max_send_sge;
		for (n = 0; n < cap.max_send_wr; n++)
			assert_false(ibv_post_send(qp, &wr, &bad));
		assert_int_equal(ibv_post_send(qp, &wr, &bad), ENOMEM);
		fake_modify(qp, IBV_QPS_RESET);
		fake_modify(qp, IBV_QPS_RTS);
		in.length = cap.max_inline_data;
		wr.sg_list = &in;
		wr.num_sge = 1;
		wr.send_flags = IBV_SEND_INLINE;
		for (n = 0; n < cap.max_send_wr; n++)
			assert_false(ibv_post_send(qp, &wr, &bad));
		wr.send_flags = 0;
		rwr.num_sge = cap.max_recv_sge;
		for (n = 0; n < cap.max_recv_wr; n++)
			assert_false(ibv_post_recv(qp, &rwr, &rbad));
		assert_int_equal(ibv_post_recv(qp, &rwr, &rbad), ENOMEM);
		rwr.num_sge++;
		assert_int_equal(ibv_post_recv(qp, &rwr, &rbad), EINVAL);
		fake_destroy_qp(qp);
	}
	fake_destroy_cq(cq);
}

/*
 * What is told may be asked for again: it is not more than ibv_query_device() tells, which holds
 * for all types. With as many elements an atomic still is a WQE that the device takes.
 */
static void test_qp_promise_max_sge(void **state)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET,
	};
	const uint32_t max = skua_wqe_max_sge(SKUA_WQE_MAX_SEGS / SKUA_WQE_SEGS_PER_BLOCK);
	struct ibv_sge sge[SKUA_WQE_MAX_SEGS] = { { .length = 8 } };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.sg_list = sge,
	}, *bad;
	unsigned int t, asked;

	(void)state;
	assert_int_equal(max, 60);
	cq = fake_make_cq(64);
	for (t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		struct ibv_qp_cap cap, told;
		struct ibv_qp *qp;

		for (asked = max - 3; asked <= max; asked++) {
			cap = (struct ibv_qp_cap){ 5, 0, asked, 0, 900 };
			qp = make(types[t], &cap);
			assert_non_null(qp);
			assert_in_range(cap.max_send_sge, asked, max);
			assert_true(cap.max_inline_data >= 900);
			assert_true(fake_qp(qp)->cap.max_send_sge <= max);
			told = cap;
			if (types[t] == IBV_QPT_RC || types[t] == IBV_QPT_XRC_SEND) {
				fake_modify(qp, IBV_QPS_RTS);
				wr.num_sge = cap.max_send_sge;
				assert_false(ibv_post_send(qp, &wr, &bad));
				wr.num_sge++;
				assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
			}
			fake_destroy_qp(qp);
			qp = make(types[t], &cap);
			assert_non_null(qp);
			assert_memory_equal(&cap, &told, sizeof(cap));
			fake_destroy_qp(qp);
		}
		cap = (struct ibv_qp_cap){ 5, 0, max + 1, 0, 0 };
		assert_null(make(types[t], &cap));
		assert_int_equal(errno, EINVAL);
	}
	fake_destroy_cq(cq);
}

/* Atomics have operands besides: their number is promised too */
static void test_qp_promise_atomics(void **state)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_XRC_SEND };
	struct ibv_sge sge = { .length = 8 };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.sg_list = &sge,
		.num_sge = 1,
	}, *bad;
	unsigned int t, n;

	(void)state;
	cq = fake_make_cq(64);
	for (t = 0; t < 2; t++) {
		struct ibv_qp_cap cap = { 5, 0, 1, 0, 0 };
		struct ibv_qp *qp = make(types[t], &cap);

		fake_modify(qp, IBV_QPS_RTS);
		assert_true(cap.max_send_wr >= 5);
		for (n = 0; n < cap.max_send_wr; n++)
			assert_false(ibv_post_send(qp, &wr, &bad));
		fake_destroy_qp(qp);
	}
	fake_destroy_cq(cq);
}

/* Programs ask for the next queue with what they were told of the last one */
static void test_qp_sizes_again(void **state)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND };
	unsigned int t, i;

	(void)state;
	cq = fake_make_cq(64);
	for (t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 }, first;

		for (i = 0; i < 8; i++) {
			struct ibv_qp *qp = make(types[t], &cap);

			assert_non_null(qp);
			if (!i)
				first = cap;
			assert_memory_equal(&cap, &first, sizeof(cap));
			fake_destroy_qp(qp);
		}
	}
	fake_destroy_cq(cq);
}

/* A device that has no inline data for programs has it for ibv_wr_atomic_write() */
static void test_qp_no_inline(void **state)
{
	struct ibv_qp_cap cap = { 1, 0, 1, 0, 0 };
	struct ibv_qp *qp;

	(void)state;
	fake_close();
	fake.lim.max_inline = 0;
	fake_open();
	cq = fake_make_cq(16);
	qp = make(IBV_QPT_RC, &cap);
	assert_non_null(qp);
	assert_int_equal(cap.max_inline_data, 0);
	assert_int_equal(fake_qp(qp)->cap.max_inline_data, 8);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
}

/* A device that has less inline data than a block has room for */
static void test_qp_little_inline(void **state)
{
	struct ibv_qp_cap cap = { 1, 0, 1, 0, 12 };
	uint8_t bytes[32] = {};
	struct ibv_sge sge = { .addr = (uintptr_t)bytes, .length = 12 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
	};
	struct ibv_qp *qp;

	(void)state;
	fake_close();
	fake.lim.max_inline = 12;
	fake_open();
	cq = fake_make_cq(16);
	qp = make(IBV_QPT_RC, &cap);
	assert_non_null(qp);
	assert_int_equal(cap.max_inline_data, 12);
	fake_modify(qp, IBV_QPS_RTS);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	sge.length = 13;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
}

static void test_qp_refused(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		struct ibv_qp_cap cap;
		int err;
	} t[] = {
		{ IBV_QPT_RC, { 65537, 1, 1, 1, 0 }, EINVAL },
		{ IBV_QPT_RC, { 65536, 1, 3, 1, 0 }, EINVAL },
		{ IBV_QPT_RC, { 1, 32769, 1, 1, 0 }, EINVAL },
		{ IBV_QPT_RC, { 1, 0xffffffff, 1, 1, 0 }, EINVAL },
		{ IBV_QPT_RC, { 0xffffffff, 1, 1, 1, 0 }, EINVAL },
		{ IBV_QPT_RC, { 1, 1, 63, 1, 0 }, EINVAL },
		{ IBV_QPT_RC, { 1, 1, 0xffffffff, 1, 0 }, EINVAL },
		{ IBV_QPT_RC, { 1, 1, 1, 31, 0 }, EINVAL },
		{ IBV_QPT_RC, { 1, 1, 1, 1, 901 }, EINVAL },
		{ IBV_QPT_UD, { 1, 1, 61, 1, 0 }, EINVAL },
		{ IBV_QPT_DRIVER, { 1, 1, 1, 1, 0 }, EOPNOTSUPP },
		{ 1, { 1, 1, 1, 1, 0 }, EOPNOTSUPP },
	};
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_init_attr_ex ex = {
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		.pd = fake.pd,
	};
	struct ibv_qp_cap cap;
	unsigned int i;

	(void)state;
	cq = fake_make_cq(64);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		cap = t[i].cap;
		assert_null(make(t[i].type, &cap));
		assert_int_equal(errno, t[i].err);
		assert_memory_equal(&cap, &t[i].cap, sizeof(cap));
	}
	attr.recv_cq = cq;
	assert_null(ibv_create_qp(fake.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.send_cq = cq;
	attr.recv_cq = NULL;
	assert_null(ibv_create_qp(fake.pd, &attr));
	assert_int_equal(errno, EINVAL);
	ex.send_cq = cq;
	ex.recv_cq = cq;
	assert_null(ibv_create_qp_ex(fake.ctx, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
	fake_destroy_cq(cq);
}

/* An XRC initiator receives nothing: a receive CQ that it was given may go before it */
static void test_qp_xrc_recv_cq(void **state)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_XRC_SEND, .cap = { 1, 0, 1, 0, 0 } };
	struct ibv_qp *qp;

	(void)state;
	attr.send_cq = fake_make_cq(4);
	attr.recv_cq = fake_make_cq(4);
	qp = ibv_create_qp(fake.pd, &attr);
	assert_non_null(qp);
	fake_destroy_cq(attr.recv_cq);
	fake_destroy_qp(qp);
	fake_destroy_cq(attr.send_cq);
}

/* Completions name WQEs by 16 bits, however long the device's rings may be */
static void test_qp_ring_limit(void **state)
{
	struct ibv_qp_cap cap = { 65537, 1, 1, 1, 0 };
	struct ibv_qp *qp;

	(void)state;
	fake_close();
	fake.lim.max_sq_blocks = 1 << 20;
	fake.lim.max_rq_wqes = 1 << 20;
	fake_open();
	cq = fake_make_cq(64);
	assert_null(make(IBV_QPT_RC, &cap));
	assert_int_equal(errno, EINVAL);
	cap = (struct ibv_qp_cap){ 1, 65537, 1, 1, 0 };
	assert_null(make(IBV_QPT_RC, &cap));
	assert_int_equal(errno, EINVAL);
	cap = (struct ibv_qp_cap){ 65536, 65536, 1, 1, 0 };
	qp = make(IBV_QPT_RC, &cap);
	assert_non_null(qp);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
}

/* Each type, and each operation, hangs on a capability */
static void test_qp_caps(void **state)
{
	static const struct {
		uint64_t cap;
		enum ibv_qp_type type;
	} types[] = {
		{ SKUA_CAP_RC, IBV_QPT_RC }, { SKUA_CAP_UC, IBV_QPT_UC },
		{ SKUA_CAP_UD, IBV_QPT_UD }, { SKUA_CAP_XRC, IBV_QPT_XRC_SEND },
		{ SKUA_CAP_ETH, IBV_QPT_RAW_PACKET },
	};
	static const struct {
		uint64_t cap;
		enum ibv_wr_opcode op;
	} ops[] = {
		{ SKUA_CAP_ATOMIC, IBV_WR_ATOMIC_CMP_AND_SWP },
		{ SKUA_CAP_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD },
		{ SKUA_CAP_INVALIDATE, IBV_WR_LOCAL_INV },
		{ SKUA_CAP_INVALIDATE, IBV_WR_SEND_WITH_INV },
		{ SKUA_CAP_ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE },
	};
	uint64_t all = fake.lim.caps;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };

		fake_close();
		fake.lim.caps = all & ~types[i].cap;
		fake_open();
		cq = fake_make_cq(64);
		assert_null(make(types[i].type, &cap));
		assert_int_equal(errno, EOPNOTSUPP);
		fake_destroy_cq(cq);
	}
	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct ibv_send_wr wr = { .opcode = ops[i].op }, *bad;
		struct ibv_qp *qp;
		unsigned int has;

		for (has = 0; has < 2; has++) {
			fake_close();
			fake.lim.caps = has ? all : all & ~ops[i].cap;
			fake_open();
			cq = fake_make_cq(64);
			qp = fake_make_qp(cq, IBV_QPT_RC);
			assert_int_equal(ibv_post_send(qp, &wr, &bad), has ? 0 : EINVAL);
			fake_destroy_qp(qp);
			fake_destroy_cq(cq);
		}
	}
	fake_close();
	fake.lim.caps = all & ~(SKUA_CAP_SRQ | SKUA_CAP_CQ_RESIZE | SKUA_CAP_RATE_LIMIT |
				SKUA_CAP_TIMESTAMP);
	fake_open();
	assert_null(ibv_create_srq(fake.pd, &(struct ibv_srq_init_attr){
					.attr = { .max_wr = 1, .max_sge = 1 } }));
	assert_int_equal(errno, EOPNOTSUPP);
	cq = fake_make_cq(16);
	assert_int_equal(ibv_resize_cq(cq, 64), EOPNOTSUPP);
	fake_destroy_cq(cq);
}

/* --- QPs: changes ---------------------------------------------------------------------- */

static void test_qp_modify(void **state)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 5000, .max_burst_sz = 9000 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};
	struct ibv_qp *qp;

	(void)state;
	cq = fake_make_cq(16);
	qp = fake_make_qp(cq, IBV_QPT_RC);
	assert_int_equal(fake_qp(qp)->mod_req_len, 0);
	assert_false(ibv_modify_qp_rate_limit(qp, &rate));
	assert_int_equal(fake_qp(qp)->rate_limit, 5000);
	assert_int_equal(fake_qp(qp)->mod_req.max_burst, 9000);
	assert_int_equal(fake_qp(qp)->mod.attr_mask, IBV_QP_RATE_LIMIT);
	assert_false(ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init));
	assert_int_equal(attr.rate_limit, 5000);
	attr.rate_limit = 6000;
	attr.qp_state = IBV_QPS_RTS;
	assert_false(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
	assert_int_equal(fake_qp(qp)->rate_limit, 6000);
	assert_int_equal(fake_qp(qp)->mod_req.max_burst, 0);
	fake_modify(qp, IBV_QPS_RESET);
	assert_false(ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init));
	assert_int_equal(attr.rate_limit, 0);

	rate.rate_limit = 0;
	assert_int_equal(ibv_modify_qp_rate_limit(qp, &rate), EINVAL);
	rate.max_burst_sz = 0;
	assert_false(ibv_modify_qp_rate_limit(qp, &rate));
	rate.comp_mask = 1;
	assert_int_equal(ibv_modify_qp_rate_limit(qp, &rate), EINVAL);

	/* What the kernel refuses changes nothing */
	fake_modify(qp, IBV_QPS_RTS);
	fake_post_writes(qp, 3, 1);
	attr.qp_state = IBV_QPS_RESET;
	fake.fail_at = 1;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), ENOMEM);
	fake_post_writes(qp, 1, 4);
	assert_int_equal(fake.db[fake.ndbs - 1].lo, 4);
	fake.fail_at = 1;
	assert_int_equal(ibv_destroy_qp(qp), ENOMEM);
	fake_post_writes(qp, 1, 5);
	fake_sent(qp, 4, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc){}), 1);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
}

static void test_qp_ece(void **state)
{
	struct ibv_ece ece = {};
	struct ibv_qp *qp, *ud;

	(void)state;
	cq = fake_make_cq(16);
	qp = fake_make_qp(cq, IBV_QPT_RC);
	ud = fake_make_qp(cq, IBV_QPT_UD);
	assert_false(ibv_query_ece(qp, &ece));
	assert_int_equal(ece.vendor_id, 0x1234);
	assert_int_equal(ece.options, SKUA_ECE_MASKED_ATOMIC);
	assert_int_equal(ibv_set_ece(qp, &ece), EINVAL);
	fake_modify(qp, IBV_QPS_RESET);
	ece.options = ~0U;
	assert_false(ibv_set_ece(qp, &ece));
	assert_int_equal(ece.options, SKUA_ECE_MASKED_ATOMIC);
	ece.options = 0;
	fake_modify(qp, IBV_QPS_INIT);
	assert_false(ibv_set_ece(qp, &ece));
	assert_false(ibv_query_ece(qp, &ece));
	assert_int_equal(ece.options, 0);
	assert_int_equal(fake_qp(qp)->mod_req_len, 0);
	fake_modify(qp, IBV_QPS_RTR);
	assert_int_equal(fake_qp(qp)->mod_req_len, sizeof(struct skua_modify_qp_req));
	assert_int_equal(fake_qp(qp)->mod_req.comp_mask, SKUA_MODIFY_QP_ECE);
	assert_int_equal(fake_qp(qp)->mod_req.ece_options, 0);
	fake_modify(qp, IBV_QPS_RTS);
	assert_int_equal(fake_qp(qp)->mod_req_len, 0);
	fake_modify(qp, IBV_QPS_RESET);
	assert_false(ibv_query_ece(qp, &ece));
	assert_int_equal(ece.options, SKUA_ECE_MASKED_ATOMIC);
	ece.vendor_id++;
	assert_int_equal(ibv_set_ece(qp, &ece), EINVAL);
	assert_false(ibv_query_ece(ud, &ece));
	assert_int_equal(ece.options, 0);
	fake_destroy_qp(qp);
	fake_destroy_qp(ud);
	fake_destroy_cq(cq);
	fake_close();
	fake.lim.ece_options = 0;
	fake_open();
	cq = fake_make_cq(16);
	qp = fake_make_qp(cq, IBV_QPT_RC);
	assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
}

/*
 * Options are agreed on one by one: what the program leaves out, what the kernel does not have
 * and what a newer peer has is left out, and nothing is said of them if nobody asked.
 */
static void test_qp_ece_some(void **state)
{
	static const struct {
		uint32_t have, set, agreed;
	} row[] = {
		{ SKUA_ECE_MASKED_ATOMIC | SKUA_ECE_SELECTIVE_REPEAT, ~0U,
		  SKUA_ECE_MASKED_ATOMIC | SKUA_ECE_SELECTIVE_REPEAT },
		{ SKUA_ECE_MASKED_ATOMIC | SKUA_ECE_SELECTIVE_REPEAT,
		  SKUA_ECE_MASKED_ATOMIC, SKUA_ECE_MASKED_ATOMIC },
		{ SKUA_ECE_MASKED_ATOMIC | SKUA_ECE_SELECTIVE_REPEAT,
		  SKUA_ECE_SELECTIVE_REPEAT, SKUA_ECE_SELECTIVE_REPEAT },
		{ SKUA_ECE_SELECTIVE_REPEAT, ~0U, SKUA_ECE_SELECTIVE_REPEAT },
		{ SKUA_ECE_MASKED_ATOMIC, ~0U, SKUA_ECE_MASKED_ATOMIC },
		{ SKUA_ECE_SELECTIVE_REPEAT, 0, 0 },
	};
	struct ibv_ece ece;
	struct ibv_qp *qp;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fake_close();
		fake.lim.ece_options = row[i].have;
		fake_open();
		cq = fake_make_cq(16);
		qp = fake_make_qp(cq, IBV_QPT_RC);
		fake_modify(qp, IBV_QPS_RESET);
		assert_false(ibv_query_ece(qp, &ece));
		assert_int_equal(ece.options, row[i].have);
		fake_modify(qp, IBV_QPS_INIT);
		fake_modify(qp, IBV_QPS_RTR);
		assert_int_equal(fake_qp(qp)->mod_req_len, 0);

		fake_modify(qp, IBV_QPS_RESET);
		fake_modify(qp, IBV_QPS_INIT);
		ece.options = row[i].set;
		assert_false(ibv_set_ece(qp, &ece));
		assert_int_equal(ece.options, row[i].agreed);
		fake_modify(qp, IBV_QPS_RTR);
		assert_int_equal(fake_qp(qp)->mod_req.comp_mask, SKUA_MODIFY_QP_ECE);
		assert_int_equal(fake_qp(qp)->mod_req.ece_options, row[i].agreed);
		fake_destroy_qp(qp);
		fake_destroy_cq(cq);
	}
}

/* --- CQs -------------------------------------------------------------------------------- */

static void test_cq_sizes(void **state)
{
	static const int sizes[][2] = {
		{ 1, 16 }, { 16, 16 }, { 17, 32 }, { 1000, 1024 }, { 65536, 65536 },
	};
	struct ibv_modify_cq_attr mod = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 5, .cq_period = 6 },
	};
	const struct ib_uverbs_ex_modify_cq *told = (void *)fake.last_core;
	unsigned int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		cq = fake_make_cq(sizes[i][0]);
		assert_int_equal(cq->cqe, sizes[i][1]);
		assert_int_equal(fake_cq(cq)->entries, sizes[i][1]);
		assert_false(ibv_modify_cq(cq, &mod));
		assert_int_equal(told->attr.cq_count, 5);
		assert_int_equal(told->attr.cq_period, 6);
		fake_destroy_cq(cq);
	}
	for (i = 0; i < 3; i++) {
		static const int bad[] = { 0, -1, 65537 };

		assert_null(ibv_create_cq(fake.ctx, bad[i], NULL, NULL, 0));
		assert_int_equal(errno, EINVAL);
	}
}

static void test_cq_refused(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };
	uint64_t all = fake.lim.caps;
	struct ibv_cq_ex *cqx;

	(void)state;
	attr.comp_mask = 1 << 2;
	assert_null(ibv_create_cq_ex(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	attr.flags = 1 << 5;
	assert_null(ibv_create_cq_ex(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cqx = ibv_create_cq_ex(fake.ctx, &attr);
	assert_non_null(cqx);
	fake_destroy_cq(ibv_cq_ex_to_cq(cqx));
	attr.comp_mask = 0;
	attr.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	assert_null(ibv_create_cq_ex(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.wc_flags = 0;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	assert_null(ibv_create_cq_ex(fake.ctx, &attr));
	assert_int_equal(errno, EINVAL);
	/* It is to be a parent domain */
	attr.parent_domain = fake.pd;
	assert_null(ibv_create_cq_ex(fake.ctx, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 0;
	attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	fake_close();
	fake.lim.caps = all & ~SKUA_CAP_TIMESTAMP;
	fake_open();
	assert_null(ibv_create_cq_ex(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	fake_close();
	fake.lim.caps = all;
	fake.lim.clock_khz = 0;
	fake_open();
	assert_null(ibv_create_cq_ex(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

/* While queues complete on it, it stays; so it does if the kernel says no */
static void test_cq_busy(void **state)
{
	struct ibv_cq *other = fake_make_cq(16);
	struct ibv_qp_cap cap = { 1, 1, 1, 1, 0 };
	struct ibv_qp *qp;

	(void)state;
	cq = fake_make_cq(16);
	qp = fake_make_qp_cap(cq, other, IBV_QPT_RC, &cap);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_destroy_cq(other), EBUSY);
	fake_destroy_qp(qp);
	fake.fail_at = 1;
	assert_int_equal(ibv_destroy_cq(cq), ENOMEM);
	qp = fake_make_qp(cq, IBV_QPT_RC);
	fake_post_writes(qp, 1, 3);
	fake_sent(qp, 0, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc){}), 1);
	fake_destroy_qp(qp);
	fake_destroy_cq(cq);
	fake_destroy_cq(other);
}

/* --- SRQs: while QPs receive from one, it stays --------------------------------------- */

static struct ibv_srq *srq;
static int srq_answer;

static struct ibv_qp *make_sharing(enum ibv_qp_type type, uint32_t max_recv_sge)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = type == IBV_QPT_XRC_SEND ? NULL : srq,
		.qp_type = type,
		.cap = { 1, 0xffffffff, 1, max_recv_sge, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(fake.pd, &attr);

	if (qp) {
		assert_int_equal(attr.cap.max_recv_wr, 0);
		assert_int_equal(attr.cap.max_recv_sge, 0);
	}
	return qp;
}

/* Another thread, while the kernel has destroyed the QP and its CQEs are not yet removed */
static void destroy_srq_between(unsigned int object, unsigned int method)
{
	if (object != UVERBS_OBJECT_QP || method != UVERBS_METHOD_QP_DESTROY)
		return;
	fake.after_cmd = NULL;
	srq_answer = ibv_destroy_srq(srq);
}

static void test_srq_busy(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_qp *qp[2];
	unsigned int n;

	(void)state;
	cq = fake_make_cq(16);
	srq = ibv_create_srq(fake.pd, &attr);
	assert_non_null(srq);
	qp[0] = make_sharing(IBV_QPT_RC, 1);
	qp[1] = make_sharing(IBV_QPT_UD, 1);
	assert_non_null(qp[0]);
	assert_non_null(qp[1]);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	fake_destroy_qp(qp[1]);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	/* A QP that the kernel keeps */
	fake.fail_at = 1;
	assert_int_equal(ibv_destroy_qp(qp[0]), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	/* One whose completion is in the CQ: it gives its WQE back */
	fake_modify(qp[0], IBV_QPS_RTS);
	assert_false(ibv_post_srq_recv(srq, &wr, &bad));
	fake_rcvd_shared(qp[0], fake_srq_take(fake_srq(srq)), 0);
	fake.after_cmd = destroy_srq_between;
	fake_destroy_qp(qp[0]);
	assert_null(fake.after_cmd);
	assert_int_equal(srq_answer, EBUSY);
	/* One that was never made, whatever failed, does not count */
	for (n = 1;; n++) {
		fake.failed = false;
		fake.fail_at = n;
		qp[0] = make_sharing(IBV_QPT_RC, 1);
		if (qp[0])
			break;
		assert_true(fake.failed);
		assert_in_range(n, 1, 20);
	}
	fake.fail_at = 0;
	fake_destroy_qp(qp[0]);
	fake.fail_at = 1;
	assert_int_equal(ibv_destroy_srq(srq), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake_destroy_cq(cq);
}

/* Sizes of a receive queue mean nothing where there is none */
static void test_srq_recv_sge(void **state)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
	};
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp *qp;
	unsigned int i;

	(void)state;
	cq = fake_make_cq(16);
	srq = ibv_create_srq(fake.pd, &attr);
	assert_non_null(srq);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		qp = make_sharing(types[i], fake.lim.max_rq_sge + 1);
		assert_non_null(qp);
		/* Nor does the kernel see them, which would refuse */
		assert_int_equal(fake_qp(qp)->cap.max_recv_wr, 0);
		assert_int_equal(fake_qp(qp)->cap.max_recv_sge, 0);
		assert_false(fake_qp(qp)->qp_req.has_rq);
		fake_destroy_qp(qp);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
	fake_destroy_cq(cq);
}

/* Doorbell records share pages, and stay apart */
static void test_records(void **state)
{
	enum { N = 200 };
	struct ibv_cq *cqs[N];
	unsigned int i, j;
	long maps = fake.maps;

	(void)state;
	for (i = 0; i < N; i++)
		cqs[i] = fake_make_cq(1);
	/* 64 bytes for each, and a ring */
	assert_int_equal(fake.maps - maps, N + (N * 64 + 4095) / 4096);
	for (i = 0; i < N; i++) {
		assert_int_equal(fake_cq(cqs[i])->cq_req.dbr_addr % 64, 0);
		for (j = 0; j < i; j++)
			assert_int_not_equal(fake_cq(cqs[i])->cq_req.dbr_addr,
					     fake_cq(cqs[j])->cq_req.dbr_addr);
	}
	/* A hole is filled again, with a record of zero */
	for (j = 3; j < N; j += 50) {
		uint64_t addr = fake_cq(cqs[j])->cq_req.dbr_addr;

		fake_cq_dbr(fake_cq(cqs[j]))->ci = 0x55;
		fake_destroy_cq(cqs[j]);
		cqs[j] = fake_make_cq(1);
		assert_int_equal(fake_cq(cqs[j])->cq_req.dbr_addr, addr);
		assert_int_equal(fake_cq_dbr(fake_cq(cqs[j]))->ci, 0);
	}
	/* So are two holes in two pages */
	fake_destroy_cq(cqs[5]);
	fake_destroy_cq(cqs[N / 2]);
	cqs[5] = fake_make_cq(1);
	cqs[N / 2] = fake_make_cq(1);
	assert_int_equal(fake.maps - maps, N + (N * 64 + 4095) / 4096);
	for (i = 0; i < N; i++)
		fake_destroy_cq(cqs[i]);
	assert_int_equal(fake.maps, maps);
}

static bool same_page(uint64_t a, uint64_t b)
{
	return a / fake_page() == b / fake_page();
}

/* So do short rings, those of each size among themselves; larger ones have pages of their own */
static void test_short_rings(void **state)
{
	static const struct ibv_qp_cap small = { 8, 0, 1, 0, 0 }, medium = { 16, 0, 1, 0, 0 },
				       half = { 16, 20, 1, 1, 0 }, large = { 64, 0, 1, 0, 0 };
	static const struct ibv_qp_cap *cap[] = { &small, &medium, &half, &large };
	enum { N = 40 };
	struct ibv_qp *qp[4][N];
	const struct skua_create_qp_req *a, *b;
	unsigned int i, j, k;
	long maps, first = fake.maps;

	(void)state;
	cq = fake_make_cq(1);
	maps = fake.maps;
	for (i = 0; i < N; i++)
		for (k = 0; k < 4; k++)
			qp[k][i] = fake_make_qp_cap(cq, cq, IBV_QPT_RC, cap[k]);
	/* Of 512, 1,024 and 1,536 bytes; their records, of which the CQ has one, are in 3 pages */
	assert_int_equal(fake_qp(qp[2][0])->qp_req.buf_len, 1536);
	assert_int_equal(fake.maps - maps, N / 8 + N / 4 + N / 2 + N + 2);
	for (i = 0; i < 4 * N; i++) {
		a = &fake_qp(qp[i / N][i % N])->qp_req;
		memset((void *)(uintptr_t)a->buf_addr, 0x55, a->buf_len);
		for (j = 0; j < i; j++) {
			b = &fake_qp(qp[j / N][j % N])->qp_req;
			assert_true(a->buf_addr + a->buf_len <= b->buf_addr ||
				    b->buf_addr + b->buf_len <= a->buf_addr);
			if (same_page(a->buf_addr, b->buf_addr))
				assert_int_equal(i / N, j / N);
		}
	}
	/* A hole is filled again, with zeroes, and nothing else is written */
	for (k = 0; k < 3; k++) {
		uint64_t at = fake_qp(qp[k][7])->qp_req.buf_addr;

		fake_destroy_qp(qp[k][7]);
		qp[k][7] = fake_make_qp_cap(cq, cq, IBV_QPT_RC, cap[k]);
		a = &fake_qp(qp[k][7])->qp_req;
		assert_int_equal(a->buf_addr, at);
		for (i = 0; i < a->buf_len; i++)
			assert_int_equal(((uint8_t *)(uintptr_t)at)[i], 0);
	}
	for (i = 0; i < 4 * N; i++) {
		a = &fake_qp(qp[i / N][i % N])->qp_req;
		for (j = 0; j < a->buf_len && i % N != 7; j++)
			assert_int_equal(((uint8_t *)(uintptr_t)a->buf_addr)[j], 0x55);
	}
	for (i = 0; i < 4 * N; i++)
		fake_destroy_qp(qp[i / N][i % N]);
	fake_destroy_cq(cq);
	assert_int_equal(fake.maps, first);
}

#define CASE(f)		cmocka_unit_test_setup_teardown(test_##f, fake_setup_open, fake_teardown)
#define CLOSED(f)	cmocka_unit_test_setup_teardown(test_##f, setup_closed, fake_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CLOSED(context_limits), CLOSED(context_fails), CLOSED(context_import),
		CASE(qp_sizes), CASE(qp_sizes_again), CASE(qp_promise), CASE(qp_promise_atomics),
		CASE(qp_promise_max_sge),
		CASE(qp_no_inline), CASE(qp_little_inline), CASE(qp_refused),
		CASE(qp_ring_limit), CASE(qp_xrc_recv_cq),
		CASE(qp_caps),
		CASE(qp_modify), CASE(qp_ece), CASE(qp_ece_some), CASE(cq_sizes), CASE(cq_refused),
		CASE(cq_busy), CASE(srq_busy), CASE(srq_recv_sge), CASE(records), CASE(short_rings),
	};

	return cmocka_run_group_tests_name("provider objects", tests, NULL, NULL);
}
