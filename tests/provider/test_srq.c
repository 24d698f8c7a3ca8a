// SPDX-License-Identifier: GPL-2.0
/*
 * Receives: the rings of QPs, shared receive queues, XRC's, and work queues.
 */
#include <fcntl.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "fake.h"
#include "skua.h"

static struct ibv_cq *cq;

static int setup(void **state)
{
	if (fake_setup_open(state))
		return -1;
	cq = fake_make_cq(64);
	return 0;
}

static int teardown(void **state)
{
	fake_destroy_cq(cq);
	return fake_teardown(state);
}

static void expect(uint64_t wr_id, uint32_t qpn)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp_num, qpn);
}

static void expect_none(void)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static void assert_data(const struct skua_wqe_data *d, uint64_t addr, uint32_t lkey, uint32_t len)
{
	assert_int_equal(le64_to_cpu(d->addr), addr);
	assert_int_equal(le32_to_cpu(d->lkey), lkey);
	assert_int_equal(le32_to_cpu(d->len), len);
}

static struct ibv_sge sge[32];

static void fill_sges(void)
{
	unsigned int i;

	for (i = 0; i < 32; i++)
		sge[i] = (struct ibv_sge){ 0x1000 + i, 0x2000 + i, 0x3000 + i };
}

/* --- receive queues of QPs ------------------------------------------------------ */

static uint32_t pi_at_barrier;
static struct skua_wqe_data wqe_at_barrier;
static const struct skua_wqe_data *watched;
static __le32 *watched_pi;
static unsigned int barriers;

static void note_barrier(enum fake_barrier kind)
{
	assert_int_equal(kind, FAKE_TO_DEVICE);
	pi_at_barrier = le32_to_cpu(*watched_pi);
	wqe_at_barrier = *watched;
	barriers++;
}

static void test_rq_post(void **state)
{
	struct ibv_qp *qp = fake_make_qp(cq, IBV_QPT_RC);
	struct ibv_recv_wr wr[6] = {}, *bad;
	struct fake_obj *o = fake_qp(qp);
	unsigned int i;

	(void)state;
	fill_sges();
	for (i = 0; i < 6; i++) {
		wr[i].wr_id = 100 + i;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].next = i < 5 ? &wr[i + 1] : NULL;
	}
	/* Four fit, the WQEs before the record, and no doorbell */
	watched = fake_rq_wqe(o, 0);
	watched_pi = &fake_qp_dbr(o)->rq_pi;
	barriers = 0;
	fake.on_barrier = note_barrier;
	assert_int_equal(ibv_post_recv(qp, wr, &bad), ENOMEM);
	fake.on_barrier = NULL;
	assert_ptr_equal(bad, &wr[4]);
	assert_int_equal(barriers, 1);
	assert_int_equal(pi_at_barrier, 0);
	assert_data(&wqe_at_barrier, 0x1000, 0x3000, 0x2000);
	assert_int_equal(le32_to_cpu(fake_qp_dbr(o)->rq_pi), 4);
	assert_int_equal(fake.ndbs, 0);
	for (i = 0; i < 4; i++) {
		assert_data(&fake_rq_wqe(o, i)[0], 0x1000 + i, 0x3000 + i, 0x2000 + i);
		assert_data(&fake_rq_wqe(o, i)[1], 0, SKUA_INVALID_LKEY, 0);
	}
	assert_int_equal(ibv_post_recv(qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[0]);

	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, 0);
	assert_int_equal(ibv_post_recv(qp, &wr[5], &bad), ENOMEM);
	expect(100, qp->qp_num);
	/* All of the elements: no end of the list */
	wr[5].num_sge = 2;
	assert_int_equal(ibv_post_recv(qp, &wr[5], &bad), 0);
	assert_data(&fake_rq_wqe(o, 4)[0], 0x1005, 0x3005, 0x2005);
	assert_data(&fake_rq_wqe(o, 4)[1], 0x1006, 0x3006, 0x2006);
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, 0);
	expect(101, qp->qp_num);
	wr[5].num_sge = 3;
	assert_int_equal(ibv_post_recv(qp, &wr[5], &bad), EINVAL);
	assert_ptr_equal(bad, &wr[5]);
	wr[5].num_sge = -1;
	assert_int_equal(ibv_post_recv(qp, &wr[5], &bad), EINVAL);
	/* None at all */
	wr[5].num_sge = 0;
	assert_int_equal(ibv_post_recv(qp, &wr[5], &bad), 0);
	assert_data(&fake_rq_wqe(o, 5)[0], 0, SKUA_INVALID_LKEY, 0);
	fake_modify(qp, IBV_QPS_RESET);
	assert_int_equal(ibv_post_recv(qp, &wr[5], &bad), EINVAL);
	assert_ptr_equal(bad, &wr[5]);
	fake_modify(qp, IBV_QPS_INIT);
	assert_int_equal(ibv_post_recv(qp, &wr[5], &bad), 0);
	fake_destroy_qp(qp);
}

/* Its ring takes none, and nobody else's memory is touched */
static void test_rq_none(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 1, .max_send_sge = 1 };
	struct ibv_qp *qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	struct ibv_recv_wr wr = {}, *bad;

	(void)state;
	fake_modify(qp, IBV_QPS_RTS);
	assert_false(fake_qp(qp)->qp_req.has_rq);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), ENOMEM);
	wr.num_sge = 1;
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	fake_destroy_qp(qp);
}

/* --- shared receive queues -------------------------------------------------------- */

static struct ibv_srq *make_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct ibv_srq *srq = ibv_create_srq(fake.pd, &attr);

	assert_non_null(srq);
	assert_true(attr.attr.max_wr >= max_wr);
	assert_true(attr.attr.max_sge >= max_sge);
	return srq;
}

static struct ibv_qp *make_sharing(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 99 },
	};
	struct ibv_qp *qp = ibv_create_qp(fake.pd, &attr);

	assert_non_null(qp);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_false(fake_qp(qp)->qp_req.has_rq);
	fake_modify(qp, IBV_QPS_RTS);
	return qp;
}

static int post_srq(struct ibv_srq *srq, uint64_t wr_id, int num_sge)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sge, .num_sge = num_sge }, *bad = NULL;
	int ret = ibv_post_srq_recv(srq, &wr, &bad);

	assert_ptr_equal(bad, ret ? &wr : NULL);
	return ret;
}

static void test_srq_post(void **state)
{
	struct ibv_srq *srq = make_srq(6, 3);
	struct ibv_qp *qp = make_sharing(srq);
	struct fake_obj *o = fake_srq(srq);
	struct ibv_recv_wr wr, *bad;
	unsigned int i;
	int pos[7];

	(void)state;
	fill_sges();
	assert_int_equal(o->srq_req.log_wqes, 3);
	assert_int_equal(o->srq_req.log_stride, 2);
	assert_int_equal(fake_srq_take(o), -1);
	/* Not to a QP that shares */
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);

	watched = fake_srq_wqe(o, 0);
	watched_pi = &fake_srq_dbr(o)->pi;
	barriers = 0;
	fake.on_barrier = note_barrier;
	assert_false(post_srq(srq, 200, 3));
	fake.on_barrier = NULL;
	assert_int_equal(barriers, 1);
	assert_int_equal(pi_at_barrier, 0);
	assert_data(&wqe_at_barrier, 0x1000, 0x3000, 0x2000);
	for (i = 1; i < 7; i++)
		assert_false(post_srq(srq, 200 + i, i % 4));
	/* One stays free, for its link */
	assert_int_equal(post_srq(srq, 999, 1), ENOMEM);
	assert_int_equal(le32_to_cpu(fake_srq_dbr(o)->pi), 7);
	for (i = 0; i < 7; i++) {
		unsigned int n = i ? i % 4 : 3, s;

		pos[i] = fake_srq_take(o);
		assert_in_range(pos[i], 0, 7);
		for (s = 0; s < n; s++)
			assert_data(&fake_srq_wqe(o, pos[i])[s], 0x1000 + s, 0x3000 + s,
				    0x2000 + s);
		if (n < 3)
			assert_data(&fake_srq_wqe(o, pos[i])[n], 0, SKUA_INVALID_LKEY, 0);
	}
	assert_int_equal(fake_srq_take(o), -1);

	/* They complete in another order than they were taken in */
	for (i = 0; i < 7; i++) {
		fake_rcvd_shared(qp, pos[(i * 3) % 7], 5);
		expect(200 + (i * 3) % 7, qp->qp_num);
		assert_false(post_srq(srq, 300 + i, 1));
		/* A place that was freed is not believed to be taken */
		if (i < 6)
			assert_int_equal(post_srq(srq, 999, 1), ENOMEM);
	}
	for (i = 0; i < 7; i++) {
		int at = fake_srq_take(o);

		/* Its end, though the list before was longer */
		assert_data(&fake_srq_wqe(o, at)[1], 0, SKUA_INVALID_LKEY, 0);
		fake_rcvd_shared(qp, at, 5);
		expect(300 + i, qp->qp_num);
		fake_rcvd_shared(qp, at, 5);
		expect_none();
	}
	assert_int_equal(post_srq(srq, 1, 4), EINVAL);
	assert_int_equal(post_srq(srq, 1, -1), EINVAL);
	fake_rcvd_shared(qp, 8, 5);
	expect_none();
	fake_rcvd_shared(qp, 65535, 5);
	expect_none();
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(srq));
}

static void test_srq_list(void **state)
{
	struct ibv_srq *srq = make_srq(7, 1);
	struct ibv_recv_wr wr[8] = {}, *bad;
	unsigned int i;

	(void)state;
	for (i = 0; i < 8; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 7 ? &wr[i + 1] : NULL;
	}
	wr[3].num_sge = 2;
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[3]);
	assert_int_equal(le32_to_cpu(fake_srq_dbr(fake_srq(srq))->pi), 3);
	assert_int_equal(ibv_post_srq_recv(srq, &wr[4], &bad), 0);
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[0]);
	assert_false(ibv_destroy_srq(srq));
}

/* A QP goes with its completions unread: the SRQ has their WQEs back */
static void test_srq_qp_gone(void **state)
{
	struct ibv_srq *srq = make_srq(7, 1);
	struct ibv_qp *a = make_sharing(srq), *b = make_sharing(srq);
	struct fake_obj *o = fake_srq(srq);
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 7; i++)
			assert_false(post_srq(srq, 10 * round + i, 1));
		assert_int_equal(post_srq(srq, 0, 1), ENOMEM);
		for (i = 0; i < 7; i++)
			fake_rcvd_shared(i % 2 ? a : b, fake_srq_take(o), 1);
		if (round & 1)
			fake_modify(a, IBV_QPS_RESET);
		else
			fake_destroy_qp(a);
		for (i = 0; i < 7; i += 2)
			expect(10 * round + i, b->qp_num);
		expect_none();
		if (!(round & 1))
			a = make_sharing(srq);
	}
	fake_destroy_qp(a);
	fake_destroy_qp(b);
	assert_false(ibv_destroy_srq(srq));
}

/* CQEs that nobody polled are not believed either when their QP goes */
static void test_srq_qp_gone_not_believed(void **state)
{
	struct ibv_srq *srq = make_srq(7, 1);
	struct ibv_qp *qp = make_sharing(srq);
	unsigned int i;
	int at;

	(void)state;
	assert_false(post_srq(srq, 1, 1));
	at = fake_srq_take(fake_srq(srq));
	for (i = 0; i < 3; i++)
		fake_rcvd_shared(qp, at, 5);
	fake_rcvd_shared(qp, 8, 5);
	fake_destroy_qp(qp);
	for (i = 0; i < 7; i++)
		assert_false(post_srq(srq, i, 1));
	assert_int_equal(post_srq(srq, 7, 1), ENOMEM);
	for (i = 0; i < 7; i++)
		assert_true(fake_srq_take(fake_srq(srq)) >= 0);
	assert_int_equal(fake_srq_take(fake_srq(srq)), -1);
	assert_false(ibv_destroy_srq(srq));
}

static void test_srq_grow(void **state)
{
	struct ibv_srq *srq = make_srq(7, 1);
	struct ibv_qp *qp = make_sharing(srq);
	struct ibv_srq_attr attr = { .max_wr = 20, .srq_limit = 5 };
	struct fake_obj *o = fake_srq(srq);
	unsigned int i;
	int first;

	(void)state;
	fill_sges();
	for (i = 0; i < 6; i++)
		assert_false(post_srq(srq, i, 1));
	first = fake_srq_take(o);
	fake_rcvd_shared(qp, first, 0);
	expect(0, qp->qp_num);
	assert_false(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	assert_int_equal(o->srq_req.log_wqes, 5);
	/* What was posted goes on in the new ring, in its order */
	for (i = 6; i < 32; i++)
		assert_false(post_srq(srq, i, 1));
	assert_int_equal(post_srq(srq, 99, 1), ENOMEM);
	for (i = 1; i < 32; i++) {
		int pos = fake_srq_take(o);

		assert_data(fake_srq_wqe(o, pos), 0x1000, 0x3000, 0x2000);
		fake_rcvd_shared(qp, pos, 0);
		expect(i, qp->qp_num);
	}
	/* Smaller: what there is stays */
	for (i = 0; i < 10; i++)
		assert_false(post_srq(srq, i, 1));
	attr.max_wr = 9;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 10;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(o->srq_req.log_wqes, 5);
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(srq));
}

/* The device has the new ring when it refuses the limit: what is posted then is in that. */
static void test_srq_grow_no_limit(void **state)
{
	struct ibv_srq *srq = make_srq(7, 1);
	struct ibv_qp *qp = make_sharing(srq);
	struct ibv_srq_attr attr = { .max_wr = 20, .srq_limit = 5 };
	struct fake_obj *o = fake_srq(srq);
	unsigned int i;

	(void)state;
	fill_sges();
	fake.limit_err = EIO;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EIO);
	fake.limit_err = 0;
	assert_int_equal(o->srq_req.log_wqes, 5);
	for (i = 0; i < 31; i++)
		assert_false(post_srq(srq, i, 1));
	for (i = 0; i < 31; i++) {
		int pos = fake_srq_take(o);

		assert_data(fake_srq_wqe(o, pos), 0x1000, 0x3000, 0x2000);
		fake_rcvd_shared(qp, pos, 0);
		expect(i, qp->qp_num);
	}
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(srq));
}

static void test_srq_grow_refused(void **state)
{
	struct ibv_srq *srq = make_srq(7, 1);
	struct ibv_srq_attr attr = { .max_wr = 20, .srq_limit = 21 };
	struct fake_obj *o = fake_srq(srq);
	long maps = fake.maps, allocs = fake.allocs;
	unsigned int n;

	(void)state;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &attr, 4), EINVAL);
	attr.max_wr = 0;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 32768;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 20;
	for (n = 1;; n++) {
		fake.failed = false;
		fake.fail_at = n;
		if (!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR))
			break;
		assert_true(fake.failed);
		assert_int_equal(errno, ENOMEM);
		assert_int_equal(fake.maps, maps);
		assert_int_equal(fake.allocs, allocs);
		assert_int_equal(o->srq_req.log_wqes, 3);
		assert_in_range(n, 1, 20);
	}
	fake.fail_at = 0;
	/* Memory, no fork, slots, command */
	assert_int_equal(n, 5);
	for (n = 0; n < 31; n++)
		assert_false(post_srq(srq, n, 1));
	assert_false(ibv_destroy_srq(srq));
}

static void test_srq_sizes(void **state)
{
	static const struct {
		uint32_t wr, sge, wr_got, sge_got, log_stride;
	} t[] = {
		{ 1, 0, 1, 1, 1 }, { 1, 1, 1, 1, 1 }, { 2, 2, 3, 3, 2 }, { 7, 3, 7, 3, 2 },
		{ 8, 4, 15, 7, 3 }, { 32767, 30, 32767, 30, 5 },
	};
	struct ibv_srq_init_attr attr;
	struct ibv_srq_attr now;
	struct ibv_srq *srq;
	unsigned int i;
	uint32_t num;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		attr.attr = (struct ibv_srq_attr){ .max_wr = t[i].wr, .max_sge = t[i].sge };
		srq = ibv_create_srq(fake.pd, &attr);
		assert_non_null(srq);
		assert_int_equal(attr.attr.max_wr, t[i].wr_got);
		assert_int_equal(attr.attr.max_sge, t[i].sge_got);
		assert_int_equal(fake_srq(srq)->srq_req.log_stride, t[i].log_stride);
		assert_int_equal(1U << fake_srq(srq)->srq_req.log_wqes, t[i].wr_got + 1);
		assert_int_equal(fake_srq(srq)->srq_req.buf_len,
				 (t[i].wr_got + 1ULL) * 16 << t[i].log_stride);
		assert_false(ibv_query_srq(srq, &now));
		assert_int_equal(now.srq_limit, 33);
		assert_int_equal(ibv_get_srq_num(srq, &num), EINVAL);
		assert_false(ibv_destroy_srq(srq));
	}
	attr.attr = (struct ibv_srq_attr){ .max_wr = 0, .max_sge = 1 };
	assert_null(ibv_create_srq(fake.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.attr = (struct ibv_srq_attr){ .max_wr = 32768, .max_sge = 1 };
	assert_null(ibv_create_srq(fake.pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.attr = (struct ibv_srq_attr){ .max_wr = 1, .max_sge = 31 };
	assert_null(ibv_create_srq(fake.pd, &attr));
	assert_int_equal(errno, EINVAL);
}

/* --- XRC ------------------------------------------------------------------------------ */

static struct ibv_xrcd *make_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(fake.ctx, &attr);

	assert_non_null(xrcd);
	return xrcd;
}

static struct ibv_srq *make_xsrq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 7, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.srq_context = xrcd,
		.pd = fake.pd,
		.xrcd = xrcd,
		.cq = cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(fake.ctx, &attr);
	uint32_t num;

	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, xrcd);
	assert_ptr_equal(srq->pd, fake.pd);
	assert_false(ibv_get_srq_num(srq, &num));
	assert_int_equal(num, fake_srq(srq)->num);
	return srq;
}

/* A receive of an XRC target: its number is of no QP here, the SRQ's is told */
static void xrc_rcvd(uint32_t qpn, struct ibv_srq *srq)
{
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(qpn),
		.srqn = cpu_to_le32(fake_srq(srq)->num),
		.what = fake_what(fake_srq_take(fake_srq(srq)), SKUA_CQE_RECV, SKUA_CQE_OK),
		.own = cpu_to_le32(SKUA_CQE_F_SRQ),
	};

	fake_cqe(fake_cq(cq), &cqe);
}

static void test_xrc(void **state)
{
	struct ibv_xrcd *xrcd = make_xrcd();
	struct ibv_srq *a = make_xsrq(xrcd), *b = make_xsrq(xrcd);
	struct ibv_qp *qp = fake_make_qp(cq, IBV_QPT_RC);
	uint32_t qpn = qp->qp_num;
	unsigned int i;

	(void)state;
	for (i = 0; i < 7; i++) {
		assert_false(post_srq(a, 100 + i, 1));
		assert_false(post_srq(b, 200 + i, 1));
	}
	xrc_rcvd(0x777, a);
	xrc_rcvd(0x777, b);
	/* A target may have the number that a QP here has */
	xrc_rcvd(qp->qp_num, a);
	expect(100, 0x777);
	expect(200, 0x777);
	expect(101, qp->qp_num);

	/* Those of an SRQ that goes are taken out, no other's */
	fake_post_recvs(qp, 1, 5);
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, 0);
	xrc_rcvd(0x777, a);
	xrc_rcvd(0x777, b);
	xrc_rcvd(qp->qp_num, a);
	assert_false(ibv_destroy_srq(a));
	expect(5, qp->qp_num);
	expect(201, 0x777);
	expect_none();
	/* Nor does a QP take one of an SRQ with it */
	xrc_rcvd(qp->qp_num, b);
	fake_destroy_qp(qp);
	expect(202, qpn);
	/* Its CQ is in use */
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_false(ibv_destroy_srq(b));
	assert_false(ibv_close_xrcd(xrcd));
}

/* The kernel gives the number of an SRQ anew before the provider has let go of it */
static struct ibv_srq *successor;
static struct ibv_xrcd *its_domain;
static uint32_t its_number;

static void number_again(unsigned int object, unsigned int method)
{
	(void)method;
	if (object != UVERBS_OBJECT_SRQ)
		return;
	fake.after_cmd = NULL;
	fake.next_num = its_number;
	successor = make_xsrq(its_domain);
	assert_false(post_srq(successor, 2, 1));
	xrc_rcvd(0x777, successor);
}

static void test_xrc_same_number(void **state)
{
	struct ibv_srq *a;

	(void)state;
	its_domain = make_xrcd();
	a = make_xsrq(its_domain);
	its_number = fake_srq(a)->num;
	assert_false(post_srq(a, 1, 1));
	xrc_rcvd(0x777, a);
	fake.after_cmd = number_again;
	assert_false(ibv_destroy_srq(a));
	expect(2, 0x777);
	expect_none();
	assert_false(post_srq(successor, 3, 1));
	xrc_rcvd(0x777, successor);
	expect(3, 0x777);
	assert_false(ibv_destroy_srq(successor));
	assert_false(ibv_close_xrcd(its_domain));
}

/* The same, and the number is a plain SRQ's then: its QP's completions stay */
static struct ibv_qp *its_qp;

static void plain_again(unsigned int object, unsigned int method)
{
	(void)method;
	if (object != UVERBS_OBJECT_SRQ)
		return;
	fake.after_cmd = NULL;
	fake.next_num = its_number;
	successor = make_srq(7, 1);
	its_qp = make_sharing(successor);
	assert_false(post_srq(successor, 2, 1));
	fake_rcvd_shared(its_qp, fake_srq_take(fake_srq(successor)), 1);
}

static void test_xrc_plain_number(void **state)
{
	struct ibv_srq *a;

	(void)state;
	its_domain = make_xrcd();
	a = make_xsrq(its_domain);
	its_number = fake_srq(a)->num;
	fake.after_cmd = plain_again;
	assert_false(ibv_destroy_srq(a));
	expect(2, its_qp->qp_num);
	fake_destroy_qp(its_qp);
	assert_false(ibv_destroy_srq(successor));
	assert_false(ibv_close_xrcd(its_domain));
}

/* A target with the number of a QP here that has another SRQ */
static void test_xrc_number_of_qp(void **state)
{
	struct ibv_xrcd *xrcd = make_xrcd();
	struct ibv_srq *plain = make_srq(7, 1), *xsrq = make_xsrq(xrcd);
	struct ibv_qp *qp = make_sharing(plain);

	(void)state;
	assert_false(post_srq(plain, 1, 1));
	assert_false(post_srq(xsrq, 2, 1));
	xrc_rcvd(qp->qp_num, xsrq);
	fake_rcvd_shared(qp, fake_srq_take(fake_srq(plain)), 1);
	expect(2, qp->qp_num);
	expect(1, qp->qp_num);
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(plain));
	assert_false(ibv_destroy_srq(xsrq));
	assert_false(ibv_close_xrcd(xrcd));
}

static void test_xrc_target(void **state)
{
	struct ibv_xrcd *xrcd = make_xrcd();
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD,
		.xrcd = xrcd,
		.pd = fake.pd,
		.cap = { .max_recv_wr = 7 },
	};
	struct ibv_qp *tgt = ibv_create_qp_ex(fake.ctx, &attr), *again;
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
		.xrcd = xrcd,
	};
	struct ibv_async_event event = { .event_type = IBV_EVENT_QP_FATAL };
	struct ibv_send_wr swr = {}, *sbad;
	struct ibv_recv_wr rwr = {}, *rbad;

	(void)state;
	assert_non_null(tgt);
	assert_ptr_equal(tgt->pd, fake.pd);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(fake_qp(tgt)->cap.max_recv_wr, 0);
	open.qp_num = tgt->qp_num;
	again = ibv_open_qp(fake.ctx, &open);
	assert_non_null(again);
	assert_int_equal(again->qp_num, tgt->qp_num);
	/* Neither has queues */
	fake_modify(tgt, IBV_QPS_RTS);
	assert_int_equal(ibv_post_send(tgt, &swr, &sbad), EINVAL);
	assert_int_equal(ibv_post_recv(tgt, &rwr, &rbad), ENOMEM);
	fake_modify(tgt, IBV_QPS_ERR);
	fake_modify(tgt, IBV_QPS_RESET);
	event.element.qp = tgt;
	skua_async_event(fake.ctx, &event);
	assert_int_equal(fake.ndbs, 0);
	fake_destroy_qp(again);
	fake_destroy_qp(tgt);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	assert_null(ibv_create_qp_ex(fake.ctx, &attr));
	assert_false(ibv_close_xrcd(xrcd));
}

/* --- work queues ------------------------------------------------------------------------ */

static struct ibv_wq *make_wq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = max_wr,
		.max_sge = max_sge,
		.pd = fake.pd,
		.cq = cq,
	};

	return ibv_create_wq(fake.ctx, &attr);
}

static void frame(struct ibv_wq *wq, unsigned int index)
{
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(fake_wq(wq)->num),
		.what = fake_what(index, SKUA_CQE_RECV_ETH, SKUA_CQE_OK),
	};

	fake_wq(wq)->rq_head++;
	fake_cqe(fake_cq(cq), &cqe);
}

static void post_wq(struct ibv_wq *wq, unsigned int n, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad;

	for (; n; n--) {
		wr.wr_id = wr_id++;
		assert_false(ibv_post_wq_recv(wq, &wr, &bad));
	}
}

static void modify_wq(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	assert_false(ibv_modify_wq(wq, &attr));
}

static void test_wq(void **state)
{
	struct ibv_wq *wq = make_wq(3, 3);
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad;
	struct fake_obj *o;
	uint32_t num;

	(void)state;
	fill_sges();
	assert_non_null(wq);
	o = fake_wq(wq);
	num = o->num;
	assert_int_equal(o->wq_req.log_wqes, 2);
	assert_int_equal(o->wq_req.log_stride, 2);
	assert_int_equal(o->wq_req.buf_len, 4 * 64);
	post_wq(wq, 4, 10);
	assert_int_equal(ibv_post_wq_recv(wq, &wr, &bad), ENOMEM);
	assert_data(&fake_rq_wqe(o, 1)[0], 0x1000, 0x3000, 0x2000);
	assert_data(&fake_rq_wqe(o, 1)[1], 0, SKUA_INVALID_LKEY, 0);
	assert_int_equal(le32_to_cpu(fake_qp_dbr(o)->rq_pi), 4);
	assert_int_equal(fake.ndbs, 0);
	frame(wq, 0);
	frame(wq, 1);
	expect(10, num);
	/* Unread ones go when it is reset */
	modify_wq(wq, IBV_WQS_RESET);
	assert_int_equal(fake_qp_dbr(o)->rq_pi, 0);
	modify_wq(wq, IBV_WQS_RDY);
	post_wq(wq, 4, 20);
	/* Not even as completions of what is posted now */
	expect_none();
	frame(wq, 0);
	expect(20, num);
	/* And when it is destroyed */
	frame(wq, 1);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_false(ibv_destroy_wq(wq));
	expect_none();
}

static void test_wq_error(void **state)
{
	struct ibv_wq *wq = make_wq(4, 1);
	struct ibv_async_event event = { .event_type = IBV_EVENT_WQ_FATAL };
	struct skua_cqe cqe = {};

	(void)state;
	modify_wq(wq, IBV_WQS_RDY);
	modify_wq(wq, IBV_WQS_ERR);
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].hi, fake_wq(wq)->num);
	post_wq(wq, 1, 1);
	assert_int_equal(fake.ndbs, 2);
	modify_wq(wq, IBV_WQS_RESET);
	modify_wq(wq, IBV_WQS_RDY);
	post_wq(wq, 1, 1);
	assert_int_equal(fake.ndbs, 2);
	event.element.wq = wq;
	skua_async_event(fake.ctx, &event);
	assert_int_equal(fake.ndbs, 3);
	modify_wq(wq, IBV_WQS_RESET);
	modify_wq(wq, IBV_WQS_RDY);
	post_wq(wq, 1, 1);
	cqe.qpn = cpu_to_le32(fake_wq(wq)->num);
	cqe.what = fake_what(0, SKUA_CQE_RECV_ETH, SKUA_CQE_WR_FLUSH_ERR);
	fake_cqe(fake_cq(cq), &cqe);
	expect(1, fake_wq(wq)->num);
	assert_int_equal(fake.ndbs, 4);
	assert_false(ibv_destroy_wq(wq));
}

/* Of a lost device: its receives are flushed, those of an SRQ are nobody's yet */
static void test_wq_lost(void **state)
{
	struct ibv_wq *wq = make_wq(4, 1);
	struct ibv_srq *srq = make_srq(7, 1);
	struct ibv_qp *qp = make_sharing(srq);
	struct ibv_wc wc;

	(void)state;
	post_wq(wq, 2, 30);
	assert_false(post_srq(srq, 40, 1));
	fake.status->alive = 0;
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 30);
	assert_int_equal(wc.qp_num, fake_wq(wq)->num);
	expect(31, fake_wq(wq)->num);
	expect_none();
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(srq));
	assert_false(ibv_destroy_wq(wq));
}

static void test_wq_refused(void **state)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 4,
		.max_sge = 1,
		.pd = fake.pd,
		.cq = cq,
	};

	(void)state;
	attr.wq_type = IBV_WQT_RQ + 1;
	assert_null(ibv_create_wq(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.wq_type = IBV_WQT_RQ;
	attr.comp_mask = IBV_WQ_INIT_ATTR_RESERVED;
	assert_null(ibv_create_wq(fake.ctx, &attr));
	attr.comp_mask = 0;
	assert_null(make_wq(0, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(make_wq(32769, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(make_wq(1, 31));
	assert_int_equal(errno, EINVAL);
}

static void test_rss(void **state)
{
	struct ibv_wq *wq[2] = { make_wq(4, 1), make_wq(4, 1) };
	struct ibv_rwq_ind_table_init_attr tattr = { .log_ind_tbl_size = 1, .ind_tbl = wq };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(fake.ctx, &tattr);
	uint8_t key[FAKE_RSS_KEY];
	struct ibv_qp_init_attr_ex attr = fake_rss_attr(table, key);
	struct ibv_qp *qp;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(key); i++)
		key[i] = i + 1;
	assert_non_null(table);
	qp = ibv_create_qp_ex(fake.ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(fake_qp(qp)->rss_req.fields, attr.rx_hash_conf.rx_hash_fields_mask);
	assert_int_equal(fake_qp(qp)->rss_req.function, SKUA_RX_HASH_TOEPLITZ);
	assert_int_equal(fake_qp(qp)->rss_req.key_len, 40);
	assert_memory_equal(fake_qp(qp)->rss_req.key, key, 40);
	fake_destroy_qp(qp);

	attr.rx_hash_conf.rx_hash_key_len = 39;
	assert_null(ibv_create_qp_ex(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.rx_hash_conf.rx_hash_key_len = 40;
	attr.rx_hash_conf.rx_hash_function = 0;
	assert_null(ibv_create_qp_ex(fake.ctx, &attr));
	attr.rx_hash_conf.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	attr.qp_type = IBV_QPT_UD;
	assert_null(ibv_create_qp_ex(fake.ctx, &attr));
	attr.qp_type = IBV_QPT_RAW_PACKET;
	attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	assert_null(ibv_create_qp_ex(fake.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_false(ibv_destroy_rwq_ind_table(table));
	assert_false(ibv_destroy_wq(wq[0]));
	assert_false(ibv_destroy_wq(wq[1]));
}

#define CASE(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(rq_post), CASE(rq_none), CASE(srq_post), CASE(srq_list),
		CASE(srq_qp_gone), CASE(srq_qp_gone_not_believed),
		CASE(srq_grow), CASE(srq_grow_no_limit), CASE(srq_grow_refused), CASE(srq_sizes),
		CASE(xrc),
		CASE(xrc_same_number), CASE(xrc_plain_number), CASE(xrc_number_of_qp),
		CASE(xrc_target), CASE(wq), CASE(wq_error), CASE(wq_lost),
		CASE(wq_refused), CASE(rss),
	};

	return cmocka_run_group_tests_name("provider srq", tests, NULL, NULL);
}
