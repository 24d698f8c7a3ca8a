// SPDX-License-Identifier: GPL-2.0
/*
 * Every step of every creation fails once: the caller gets NULL and the errno of that
 * step, nothing is left of the attempt, and what was there before works on.
 */
#include <fcntl.h>

#include "fake.h"

static struct ibv_cq *cq, *other;
static struct ibv_xrcd *xrcd;
static struct ibv_srq *srq;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static struct ibv_dm *dm;
static struct ibv_td *td;
static struct ibv_pd *parent;
static struct ibv_qp *target;
static uint8_t key[FAKE_RSS_KEY];

static int setup(void **state)
{
	struct ibv_xrcd_init_attr xattr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_wq_init_attr wattr = { .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1 };
	struct ibv_rwq_ind_table_init_attr tattr = { .ind_tbl = &wq };
	struct ibv_td_init_attr dattr = {};
	struct ibv_parent_domain_init_attr pattr = {};
	struct ibv_qp_init_attr_ex qattr = { .qp_type = IBV_QPT_XRC_RECV,
					     .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	if (fake_setup(state))
		return -1;
	fake_open();
	cq = fake_make_cq(16);
	other = fake_make_cq(16);
	xrcd = ibv_open_xrcd(fake.ctx, &xattr);
	srq = ibv_create_srq(fake.pd, &sattr);
	wattr.pd = fake.pd;
	wattr.cq = cq;
	wq = ibv_create_wq(fake.ctx, &wattr);
	table = ibv_create_rwq_ind_table(fake.ctx, &tattr);
	dm = ibv_alloc_dm(fake.ctx, &(struct ibv_alloc_dm_attr){ .length = 64 });
	td = ibv_alloc_td(fake.ctx, &dattr);
	pattr.pd = fake.pd;
	pattr.td = td;
	parent = ibv_alloc_parent_domain(fake.ctx, &pattr);
	qattr.xrcd = xrcd;
	target = ibv_create_qp_ex(fake.ctx, &qattr);
	assert_non_null(xrcd);
	assert_non_null(srq);
	assert_non_null(table);
	assert_non_null(dm);
	assert_non_null(parent);
	assert_non_null(target);
	return 0;
}

static int teardown(void **state)
{
	fake_destroy_qp(target);
	assert_false(ibv_dealloc_pd(parent));
	assert_false(ibv_dealloc_td(td));
	assert_false(ibv_free_dm(dm));
	assert_false(ibv_destroy_rwq_ind_table(table));
	assert_false(ibv_destroy_wq(wq));
	assert_false(ibv_destroy_srq(srq));
	assert_false(ibv_close_xrcd(xrcd));
	fake_destroy_cq(other);
	fake_destroy_cq(cq);
	return fake_teardown(state);
}

/* --- each creation, and what undoes it ------------------------------------------ */

static void *make_pd(void)
{
	return ibv_alloc_pd(fake.ctx);
}

static int undo_pd(void *p)
{
	return ibv_dealloc_pd(p);
}

static void *make_import_pd(void)
{
	return ibv_import_pd(fake.ctx, fake.pd->handle);
}

static int undo_import_pd(void *p)
{
	ibv_unimport_pd(p);
	return 0;
}

static void *make_td(void)
{
	return ibv_alloc_td(fake.ctx, &(struct ibv_td_init_attr){});
}

static int undo_td(void *p)
{
	return ibv_dealloc_td(p);
}

static void *make_parent(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = fake.pd, .td = td };

	return ibv_alloc_parent_domain(fake.ctx, &attr);
}

static void *make_cq(void)
{
	return ibv_create_cq(fake.ctx, 200, NULL, NULL, 0);
}

static int undo_cq(void *p)
{
	return ibv_destroy_cq(p);
}

static void *make_cq_in(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};

	return ibv_create_cq_ex(fake.ctx, &attr);
}

static int undo_cq_ex(void *p)
{
	return ibv_destroy_cq(ibv_cq_ex_to_cq(p));
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = other,
		.qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 },
	};

	return ibv_create_qp(fake.pd, &attr);
}

static int undo_qp(void *p)
{
	return ibv_destroy_qp(p);
}

static void *make_qp_in(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = { 4, 0, 1, 0, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = parent,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return ibv_create_qp_ex(fake.ctx, &attr);
}

static void *make_target(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(fake.ctx, &attr);
}

static void *make_open_qp(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
		.xrcd = xrcd,
		.qp_num = target->qp_num,
	};

	return ibv_open_qp(fake.ctx, &attr);
}

static void *make_rss(void)
{
	struct ibv_qp_init_attr_ex attr = fake_rss_attr(table, key);

	return ibv_create_qp_ex(fake.ctx, &attr);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 10, .max_sge = 2 } };

	return ibv_create_srq(fake.pd, &attr);
}

static void *make_xsrq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 7, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = fake.pd,
		.xrcd = xrcd,
		.cq = cq,
	};

	return ibv_create_srq_ex(fake.ctx, &attr);
}

static int undo_srq(void *p)
{
	return ibv_destroy_srq(p);
}

static void *make_wq(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 4,
		.max_sge = 1,
		.pd = fake.pd,
		.cq = cq,
	};

	return ibv_create_wq(fake.ctx, &attr);
}

static int undo_wq(void *p)
{
	return ibv_destroy_wq(p);
}

static void *make_table(void)
{
	struct ibv_rwq_ind_table_init_attr attr = { .ind_tbl = &wq };

	return ibv_create_rwq_ind_table(fake.ctx, &attr);
}

static int undo_table(void *p)
{
	return ibv_destroy_rwq_ind_table(p);
}

static void *make_mr(void)
{
	return ibv_reg_mr(fake.pd, key, sizeof(key), 0);
}

static int undo_mr(void *p)
{
	return ibv_dereg_mr(p);
}

static void *make_dmabuf_mr(void)
{
	return ibv_reg_dmabuf_mr(fake.pd, 0, 4096, 0, 3, 0);
}

static void *make_null_mr(void)
{
	return ibv_alloc_null_mr(fake.pd);
}

static void *make_dm_mr(void)
{
	return ibv_reg_dm_mr(fake.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);
}

static void *make_dm(void)
{
	return ibv_alloc_dm(fake.ctx, &(struct ibv_alloc_dm_attr){ .length = 64 });
}

static int undo_dm(void *p)
{
	return ibv_free_dm(p);
}

static void *make_import_dm(void)
{
	return ibv_import_dm(fake.ctx, dm->handle);
}

static int undo_import_dm(void *p)
{
	ibv_unimport_dm(p);
	return 0;
}

static void *make_mw(void)
{
	return ibv_alloc_mw(fake.pd, IBV_MW_TYPE_2);
}

static int undo_mw(void *p)
{
	return ibv_dealloc_mw(p);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = FAKE_PORT };

	return ibv_create_ah(fake.pd, &attr);
}

static int undo_ah(void *p)
{
	return ibv_destroy_ah(p);
}

static void *make_counters(void)
{
	return ibv_create_counters(fake.ctx, &(struct ibv_counters_init_attr){});
}

static int undo_counters(void *p)
{
	return ibv_destroy_counters(p);
}

static void *make_flow(void)
{
	struct ibv_flow_attr attr = { .size = sizeof(attr), .port = FAKE_PORT };

	return ibv_create_flow(target, &attr);
}

static int undo_flow(void *p)
{
	return ibv_destroy_flow(p);
}

static void *make_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(fake.ctx, &attr);
}

static int undo_xrcd(void *p)
{
	return ibv_close_xrcd(p);
}

/**
 * struct creation - how an object is made
 * @name: for messages
 * @make: makes it, or returns NULL with errno set
 * @undo: unmakes it
 * @steps: steps of @make that can fail
 * @asks: the kernel is asked when it goes, and may refuse
 */
struct creation {
	const char *name;
	void *(*make)(void);
	int (*undo)(void *p);
	unsigned int steps;
	bool asks;
};

static const struct creation creations[] = {
	{ "PD", make_pd, undo_pd, 2, true },
	{ "imported PD", make_import_pd, undo_import_pd, 1 },
	{ "TD", make_td, undo_td, 1 },
	{ "parent domain", make_parent, undo_pd, 1 },
	/* Itself, buckets, ring, no fork; records of a page that is there; command */
	{ "CQ", make_cq, undo_cq, 5, true },
	{ "CQ of a domain", make_cq_in, undo_cq_ex, 5, true },
	/* Itself, a page for rings, no fork, requests of either side, command */
	{ "QP", make_qp, undo_qp, 7, true },
	{ "QP of a domain", make_qp_in, undo_qp, 7, true },
	{ "XRC target", make_target, undo_qp, 2, true },
	{ "opened XRC target", make_open_qp, undo_qp, 2, true },
	{ "RSS QP", make_rss, undo_qp, 2, true },
	{ "SRQ", make_srq, undo_srq, 5, true },
	{ "XRC SRQ", make_xsrq, undo_srq, 5, true },
	{ "WQ", make_wq, undo_wq, 5, true },
	{ "indirection table", make_table, undo_table, 2, true },
	{ "MR", make_mr, undo_mr, 2, true },
	{ "dma-buf MR", make_dmabuf_mr, undo_mr, 2, true },
	{ "null MR", make_null_mr, undo_mr, 2 },
	{ "MR of device memory", make_dm_mr, undo_mr, 2, true },
	{ "device memory", make_dm, undo_dm, 4, true },
	{ "imported device memory", make_import_dm, undo_import_dm, 4 },
	{ "MW", make_mw, undo_mw, 2, true },
	{ "AH", make_ah, undo_ah, 2, true },
	{ "counters", make_counters, undo_counters, 2, true },
	{ "flow", make_flow, undo_flow, 2, true },
	{ "XRC domain", make_xrcd, undo_xrcd, 2, true },
};

static unsigned int live(void)
{
	unsigned int object, n = 0;

	for (object = 0; object < 20; object++)
		n += fake_live(object);
	return n;
}

static void try_all(const struct creation *c)
{
	long allocs = fake.allocs, maps = fake.maps;
	unsigned int objs = live(), n;
	void *p;

	for (n = 1;; n++) {
		fake.failed = false;
		fake.fail_at = n;
		errno = 0;
		p = c->make();
		if (!fake.failed)
			break;
		if (p)
			fail_msg("%s: made, though step %u failed", c->name, n);
		if (errno != ENOMEM)
			fail_msg("%s: step %u failed with errno %d", c->name, n, errno);
		if (fake.allocs != allocs || fake.maps != maps || live() != objs)
			fail_msg("%s: step %u failed, and %ld allocations, %ld mappings, %d objects are left",
				 c->name, n, fake.allocs - allocs, fake.maps - maps,
				 (int)(live() - objs));
	}
	fake.fail_at = 0;
	if (!p)
		fail_msg("%s: not made, though nothing failed: errno %d", c->name, errno);
	if (n - 1 != c->steps)
		fail_msg("%s: %u steps can fail, not %u", c->name, n - 1, c->steps);
	/* One that the kernel keeps is there as before */
	if (c->asks) {
		fake.fail_at = 1;
		if (c->undo(p) != ENOMEM)
			fail_msg("%s: unmade against the kernel's will", c->name);
	}
	if (c->undo(p))
		fail_msg("%s: cannot be unmade", c->name);
	assert_int_equal(fake.allocs, allocs);
	assert_int_equal(fake.maps, maps);
	assert_int_equal(live(), objs);
}

static void test_all(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(creations) / sizeof(creations[0]); i++)
		try_all(&creations[i]);
}

/* The page of records is a step, and its bookkeeping, when it is the first record */
static void test_record_page(void **state)
{
	static const struct creation first = { "first CQ", make_cq, undo_cq, 8, true };

	(void)state;
	try_all(&first);
}

/* CQs are as they were: queues that were refused left no trace in them */
static void test_cq_survives(void **state)
{
	struct ibv_qp *qp;
	struct ibv_wc wc;

	test_all(state);
	qp = fake_make_qp(cq, IBV_QPT_RC);
	fake_post_writes(qp, 1, 5);
	fake_post_recvs(qp, 1, 6);
	fake_sent(qp, 0, SKUA_CQE_OK);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
	fake.status->alive = 0;
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 6);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	fake_destroy_qp(qp);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cq_survives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_record_page, fake_setup_open, fake_teardown),
	};

	return cmocka_run_group_tests_name("provider unwind", tests, NULL, NULL);
}
