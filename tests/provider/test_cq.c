// SPDX-License-Identifier: GPL-2.0
/*
 * What changes a CQ beside polling: CQEs of queues that are reset or gone are taken out,
 * rings are replaced, the device is lost, queues are seen in error.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <semaphore.h>
#include <time.h>

#include "fake.h"
#include "skua.h"

static struct ibv_cq *cq;
static struct ibv_qp *a, *b;

static int setup(void **state)
{
	if (fake_setup_open(state))
		return -1;
	cq = fake_make_cq(16);
	a = fake_make_qp(cq, IBV_QPT_RC);
	b = fake_make_qp(cq, IBV_QPT_RC);
	fake_dbs_clear();
	return 0;
}

static int teardown(void **state)
{
	if (a)
		fake_destroy_qp(a);
	if (b)
		fake_destroy_qp(b);
	fake_destroy_cq(cq);
	return fake_teardown(state);
}

static void expect(uint64_t wr_id, const struct ibv_qp *qp)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp_num, qp->qp_num);
}

static void expect_none(void)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static uint32_t record(void)
{
	return le32_to_cpu(fake_cq_dbr(fake_cq(cq))->ci);
}

/* So many completions have been: the ring's phase is that of turn n / 16 */
static void turn_to(unsigned int n)
{
	struct fake_obj *qp = fake_qp(b);

	while (fake_cq(cq)->pi < n) {
		fake_post_writes(b, 1, 1);
		fake_sent(b, qp->wqe[0], SKUA_CQE_OK);
		expect(1, b);
	}
}

static void complete_send(struct ibv_qp *qp, uint64_t wr_id)
{
	fake_post_writes(qp, 1, wr_id);
	fake_sent(qp, fake_qp(qp)->wqe[0], SKUA_CQE_OK);
}

static void complete_recv(struct ibv_qp *qp, uint64_t wr_id)
{
	fake_post_recvs(qp, 1, wr_id);
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, 0);
}

/* --- clean ------------------------------------------------------------------------- */

/*
 * At each place of the ring, also where the phase changes: those of B stay, in their
 * order, and nothing is seen twice, then and in the next turns.
 */
static void clean_at(unsigned int start, bool destroy)
{
	unsigned int i;

	turn_to(start);
	for (i = 0; i < 4; i++) {
		complete_send(a, 1000 + i);
		complete_send(b, 2000 + i);
		complete_recv(i & 1 ? a : b, 3000 + i);
	}
	if (destroy) {
		fake_destroy_qp(a);
		a = NULL;
	} else {
		fake_modify(a, IBV_QPS_RESET);
	}
	/* The room of what was taken out is the device's again */
	assert_int_equal(record(), start + 6);
	expect(2000, b);
	expect(3000, b);
	expect(2001, b);
	expect(2002, b);
	expect(3002, b);
	expect(2003, b);
	expect_none();
	assert_int_equal(record(), start + 12);
	for (i = 0; i < 40; i++) {
		expect_none();
		complete_send(b, i);
		expect(i, b);
	}
	expect_none();
}

static void test_clean(void **state)
{
	unsigned int start;

	for (start = 0; start < 32; start++) {
		clean_at(start, false);
		assert_false(teardown(state));
		assert_false(setup(state));
	}
}

static void test_clean_destroyed(void **state)
{
	unsigned int start;

	for (start = 0; start < 32; start++) {
		clean_at(start, true);
		assert_false(teardown(state));
		assert_false(setup(state));
	}
}

/* Without anything to take out */
static void test_clean_nothing(void **state)
{
	(void)state;
	complete_send(b, 1);
	complete_send(b, 2);
	fake_modify(a, IBV_QPS_RESET);
	assert_int_equal(record(), 0);
	expect(1, b);
	expect(2, b);
}

/* A full ring, all of it */
static void test_clean_full(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 16, .max_send_sge = 1 };
	unsigned int i;

	(void)state;
	fake_destroy_qp(a);
	a = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(a, IBV_QPS_RTS);
	for (i = 0; i < 16; i++)
		complete_send(a, i);
	fake_modify(a, IBV_QPS_RESET);
	assert_int_equal(record(), 16);
	expect_none();
	complete_send(b, 5);
	expect(5, b);
}

static void late_look(enum fake_barrier kind)
{
	assert_int_equal(kind, FAKE_FROM_DEVICE);
	fake.on_barrier = NULL;
	/* The number comes after the phase: before the barrier it was another one */
	fake_cq(cq)->ring[0].qpn = cpu_to_le32(a->qp_num);
}

static void test_clean_order(void **state)
{
	(void)state;
	complete_send(a, 1);
	fake_cq(cq)->ring[0].qpn = cpu_to_le32(b->qp_num);
	fake.on_barrier = late_look;
	skua_cq_clean(to_scq(cq), to_sqp(a));
	assert_null(fake.on_barrier);
	expect_none();
}

/* After RESET queues begin at index 0, and know nothing of what was posted before */
static void test_reset(void **state)
{
	struct skua_cqe cqe = { .qpn = cpu_to_le32(a->qp_num) };

	(void)state;
	fake_post_writes(a, 3, 10);
	fake_post_recvs(a, 2, 20);
	fake_modify(a, IBV_QPS_RESET);
	assert_int_equal(fake_qp_dbr(fake_qp(a))->sq_pi, 0);
	assert_int_equal(fake_qp_dbr(fake_qp(a))->rq_pi, 0);
	fake_modify(a, IBV_QPS_RTS);
	fake_post_writes(a, 1, 30);
	fake_post_recvs(a, 4, 40);
	assert_int_equal(le32_to_cpu(fake_qp_dbr(fake_qp(a))->sq_pi), 1);
	assert_int_equal(le32_to_cpu(fake_qp_dbr(fake_qp(a))->rq_pi), 4);
	fake_sent(a, 0, SKUA_CQE_OK);
	expect(30, a);
	fake_rcvd(a, SKUA_CQE_RECV, SKUA_CQE_OK, 0);
	expect(40, a);
	/* All of the room is there */
	fake_post_writes(a, 8, 50);
	cqe.what = fake_what(9, SKUA_CQE_REQ, 0);
	fake_cqe(fake_cq(cq), &cqe);
	expect_none();
	fake_sent(a, 8, SKUA_CQE_OK);
	expect(57, a);
}

/* A WQE of two blocks before RESET leaves no trace in the middle of those after it */
static void test_reset_forgets(void **state)
{
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 5 };
	struct skua_cqe cqe = {};
	struct ibv_sge sge[5] = {};
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = sge }, *bad;

	(void)state;
	fake_destroy_qp(a);
	a = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(a, IBV_QPS_RTS);
	fake_post_writes(a, 2, 1);
	fake_modify(a, IBV_QPS_RESET);
	fake_modify(a, IBV_QPS_RTS);
	wr.num_sge = 5;
	assert_false(ibv_post_send(a, &wr, &bad));
	cqe.qpn = cpu_to_le32(a->qp_num);
	cqe.what = fake_what(1, SKUA_CQE_REQ, 0);
	fake_cqe(fake_cq(cq), &cqe);
	expect_none();
}

/* Send and receive queue on two CQs: each is cleaned */
static void test_clean_two(void **state)
{
	struct ibv_cq *other = fake_make_cq(16);
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 4,
				  .max_recv_sge = 1 };
	struct ibv_wc wc;

	(void)state;
	fake_destroy_qp(a);
	a = fake_make_qp_cap(cq, other, IBV_QPT_RC, &cap);
	fake_modify(a, IBV_QPS_RTS);
	complete_send(a, 1);
	complete_recv(a, 2);
	fake_modify(a, IBV_QPS_RESET);
	expect_none();
	assert_int_equal(ibv_poll_cq(other, 1, &wc), 0);
	assert_int_equal(le32_to_cpu(fake_cq_dbr(fake_cq(other))->ci), 1);
	fake_modify(a, IBV_QPS_RTS);
	complete_send(a, 3);
	complete_recv(a, 4);
	fake_destroy_qp(a);
	a = NULL;
	expect_none();
	assert_int_equal(ibv_poll_cq(other, 1, &wc), 0);
	fake_destroy_cq(other);
}

/* The kernel may give the number of a QP anew before the provider has let go of it */
static struct ibv_qp *successor;

static void number_again(unsigned int object, unsigned int method)
{
	static const struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1 };

	(void)method;
	if (object != UVERBS_OBJECT_QP)
		return;
	fake.after_cmd = NULL;
	fake.next_num = a->qp_num;
	successor = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(successor, IBV_QPS_RTS);
	complete_send(successor, 3);
}

static void test_same_number(void **state)
{
	(void)state;
	complete_send(a, 1);
	complete_send(b, 2);
	fake.after_cmd = number_again;
	fake_destroy_qp(a);
	a = successor;
	assert_non_null(a);
	expect(2, b);
	expect(3, a);
	expect_none();
	complete_send(a, 4);
	expect(4, a);
}

/* --- one thread polls, others create ------------------------------------------------- */

/* A CQ without a lock, and @a and @b there. */
static void make_single(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *cqx = ibv_create_cq_ex(fake.ctx, &attr);

	assert_non_null(cqx);
	fake_destroy_qp(a);
	fake_destroy_qp(b);
	fake_destroy_cq(cq);
	cq = ibv_cq_ex_to_cq(cqx);
	assert_true(to_scq(cq)->lock.off);
	a = fake_make_qp(cq, IBV_QPT_RC);
	b = fake_make_qp(cq, IBV_QPT_RC);
}

/*
 * What the fake kernel makes is for one thread. So these have a number and CQs, which is
 * what the CQ looks at.
 */
#define CREATED	1000

static struct skua_qp created[CREATED];
static atomic_bool polling, all_created;

static void *create(void *arg)
{
	unsigned int i;

	(void)arg;
	while (!atomic_load(&polling))
		;
	for (i = 0; i < CREATED; i++) {
		created[i].vqp.qp.qp_num = 16 + i;
		created[i].vqp.qp.send_cq = cq;
		created[i].vqp.qp.recv_cq = cq;
		skua_cq_attach(to_scq(cq), &created[i]);
	}
	atomic_store(&all_created, true);
	return NULL;
}

static void destroy_created(void)
{
	unsigned int i;

	for (i = 0; i < CREATED; i++)
		skua_cq_detach(to_scq(cq), &created[i]);
}

/* No completion is lost while the table grows. */
static void test_create_while_polling(void **state)
{
	unsigned int round, n = 0;
	pthread_t creator;

	(void)state;
	for (round = 0; round < 50; round++) {
		make_single();
		memset(created, 0, sizeof(created));
		atomic_store(&polling, false);
		atomic_store(&all_created, false);
		assert_false(pthread_create(&creator, NULL, create, NULL));
		while (!atomic_load(&all_created)) {
			/* Of another QP than the one before, so that it is searched for. */
			complete_send(a, ++n);
			expect(n, a);
			complete_send(b, ++n);
			expect(n, b);
			fake_dbs_clear();
			atomic_store(&polling, true);
		}
		assert_false(pthread_join(creator, NULL));
		destroy_created();
		complete_send(a, ++n);
		expect(n, a);
	}
}

/* Tables that were replaced stay readable, and all QPs are in the new one. */
static void test_table_replaced(void **state)
{
	struct ibv_qp *qp[100];
	struct skua_cq_table *old;
	unsigned int i, used = 0;

	(void)state;
	old = atomic_load(&to_scq(cq)->table);
	for (i = 0; i < 100; i++)
		qp[i] = fake_make_qp(cq, IBV_QPT_RC);
	/* Of 102, as many buckets as keep chains short. */
	assert_int_equal(atomic_load(&to_scq(cq)->table)->mask, 127);
	for (i = 0; i <= old->mask; i++)
		used += !!atomic_load(&old->bucket[i]);
	assert_int_equal(used, old->mask + 1);
	for (i = 0; i < 100; i++) {
		complete_send(qp[i], i);
		expect(i, qp[i]);
	}
	for (i = 0; i < 100; i++)
		fake_destroy_qp(qp[i]);
}

/*
 * Another thread is in the middle of a change, which it makes under the lock, and what is
 * searched cannot be found: the poll waits for its end.
 */
static sem_t searching;
static atomic_bool polled;

static void says_searching(enum fake_barrier kind)
{
	if (kind == FAKE_FROM_DEVICE)
		sem_post(&searching);
}

static void *poll_one(void *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	atomic_store(&polled, true);
	return n == 1 ? wc : NULL;
}

static pthread_t poller;
static struct ibv_wc polled_wc;

static void start_poller(void)
{
	struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };

	assert_false(sem_init(&searching, 0, 0));
	atomic_store(&polled, false);
	fake.on_barrier = says_searching;
	assert_false(pthread_create(&poller, NULL, poll_one, &polled_wc));
	sem_wait(&searching);
	/* Who does not wait has given up by then. */
	nanosleep(&pause, NULL);
	assert_false(atomic_load(&polled));
}

static void end_poller(uint64_t wr_id)
{
	void *wc;

	skua_unlock(&to_scq(cq)->table_lock);
	assert_false(pthread_join(poller, &wc));
	fake.on_barrier = NULL;
	sem_destroy(&searching);
	assert_ptr_equal(wc, &polled_wc);
	assert_int_equal(polled_wc.wr_id, wr_id);
	expect_none();
}

static void test_search_again(void **state)
{
	_Atomic(struct skua_qp *) *head;
	struct skua_cq_table *t;
	struct skua_qp *first;

	(void)state;
	make_single();
	complete_send(a, 7);
	skua_lock(&to_scq(cq)->table_lock);
	t = atomic_load(&to_scq(cq)->table);
	head = &t->bucket[a->qp_num & t->mask];
	first = atomic_exchange(head, NULL);
	start_poller();
	atomic_store(head, first);
	end_poller(7);
}

/* The same of an SRQ's, of which the QP is looked for first. */
static void shared_again(struct ibv_srq *srq, uint32_t qpn, bool hide_qp)
{
	struct skua_cq *scq = to_scq(cq);
	struct skua_cq_table *t;
	struct ibv_recv_wr wr = { .wr_id = 8 }, *bad;
	_Atomic(struct skua_qp *) *head;
	struct skua_srq *first_srq;
	struct skua_qp *first_qp;
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(qpn),
		.srqn = cpu_to_le32(fake_srq(srq)->num),
		.own = cpu_to_le32(SKUA_CQE_F_SRQ),
	};

	assert_false(ibv_post_srq_recv(srq, &wr, &bad));
	cqe.what = fake_what(fake_srq_take(fake_srq(srq)), SKUA_CQE_RECV, SKUA_CQE_OK);
	fake_cqe(fake_cq(cq), &cqe);
	skua_lock(&scq->table_lock);
	t = atomic_load(&scq->table);
	head = &t->bucket[qpn & t->mask];
	first_qp = atomic_load(head);
	first_srq = atomic_load(&scq->xsrqs);
	if (hide_qp)
		atomic_store(head, NULL);
	else
		atomic_store(&scq->xsrqs, NULL);
	start_poller();
	atomic_store(head, first_qp);
	atomic_store(&scq->xsrqs, first_srq);
	end_poller(8);
	assert_int_equal(polled_wc.qp_num, qpn);
}

static void test_search_shared_again(void **state)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 3, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(fake.pd, &init);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .srq = srq };
	struct ibv_xrcd_init_attr xattr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex ex = {
		.attr = { .max_wr = 3, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = fake.pd,
	};
	struct ibv_qp *qp;

	(void)state;
	make_single();
	assert_non_null(srq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ibv_create_qp(fake.pd, &attr);
	assert_non_null(qp);
	fake_modify(qp, IBV_QPS_RTS);
	shared_again(srq, qp->qp_num, true);
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(srq));

	ex.cq = cq;
	ex.xrcd = ibv_open_xrcd(fake.ctx, &xattr);
	srq = ibv_create_srq_ex(fake.ctx, &ex);
	assert_non_null(srq);
	shared_again(srq, 0x777, false);
	assert_false(ibv_destroy_srq(srq));
	assert_false(ibv_close_xrcd(ex.xrcd));
}

/* --- resize -------------------------------------------------------------------------- */

/* From one size to another at each place of the ring, with some unread */
static void resize_at(unsigned int start, unsigned int unread, int cqe)
{
	unsigned int i;

	turn_to(start);
	for (i = 0; i < unread; i++)
		complete_send(a, 100 + i);
	assert_false(ibv_resize_cq(cq, cqe));
	assert_int_equal(cq->cqe, 1 << fake_cq(cq)->log);
	assert_true(cq->cqe >= cqe);
	for (i = 0; i < unread; i++)
		expect(100 + i, a);
	expect_none();
	for (i = 0; i < 150; i++) {
		complete_send(a, i);
		complete_send(a, 1000 + i);
		expect(i, a);
		expect(1000 + i, a);
		expect_none();
	}
}

static void resize_all(void **state, int cqe)
{
	unsigned int start;

	for (start = 0; start < 70; start += 3) {
		resize_at(start, start % 9, cqe);
		assert_false(teardown(state));
		assert_false(setup(state));
	}
}

static void test_resize_larger(void **state)
{
	resize_all(state, 64);
}

static void test_resize_same(void **state)
{
	resize_all(state, 16);
}

static void test_resize_smaller(void **state)
{
	unsigned int start;

	for (start = 0; start < 140; start += 5) {
		assert_false(ibv_resize_cq(cq, 64));
		resize_at(start, start % 9, 3);
		assert_int_equal(cq->cqe, 16);
		assert_false(teardown(state));
		assert_false(setup(state));
	}
}

/* What comes while the kernel changes over lies in the old ring */
static int complete_meanwhile(unsigned int object, unsigned int method)
{
	(void)object;
	if (method == FAKE_WRITE + IB_USER_VERBS_CMD_RESIZE_CQ) {
		fake.on_cmd = NULL;
		fake_sent(a, 0, SKUA_CQE_OK);
	}
	return 0;
}

static void test_resize_meanwhile(void **state)
{
	(void)state;
	turn_to(15);
	fake_post_writes(a, 1, 5);
	fake.on_cmd = complete_meanwhile;
	assert_false(ibv_resize_cq(cq, 32));
	expect(5, a);
	complete_send(a, 6);
	expect(6, a);
	expect_none();
}

static int refuse_resize(unsigned int object, unsigned int method)
{
	(void)object;
	return method == FAKE_WRITE + IB_USER_VERBS_CMD_RESIZE_CQ ? EBUSY : 0;
}

static void test_resize_refused(void **state)
{
	long maps = fake.maps;

	(void)state;
	complete_send(a, 5);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, -5), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 65537), EINVAL);
	fake.on_cmd = refuse_resize;
	assert_int_equal(ibv_resize_cq(cq, 64), EBUSY);
	fake.on_cmd = NULL;
	fake.fail_at = 1;
	assert_int_equal(ibv_resize_cq(cq, 64), ENOMEM);
	assert_int_equal(fake.maps, maps);
	expect(5, a);
	complete_send(a, 6);
	expect(6, a);
	/* As large as can be */
	assert_false(ibv_resize_cq(cq, 65536));
	complete_send(a, 7);
	expect(7, a);
}

/* --- a lost device ------------------------------------------------------------------------ */

static void test_lost(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .wr_id = 12 }, *bad;
	struct ibv_wc wc[64];
	unsigned int i;

	(void)state;
	fake_post_writes(a, 2, 10);
	assert_false(ibv_post_send(a, &wr, &bad));
	fake_post_recvs(a, 3, 20);
	fake_post_writes(b, 1, 30);
	fake_post_recvs(b, 1, 40);
	fake_sent(a, 0, SKUA_CQE_OK);
	fake_rcvd(a, SKUA_CQE_RECV, SKUA_CQE_OK, 0);
	fake.status->alive = 0;

	/* First what the device has said */
	assert_int_equal(ibv_poll_cq(cq, 64, wc), 2);
	assert_int_equal(wc[0].wr_id, 10);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[1].wr_id, 20);
	/* Then all the rest, also in pieces */
	assert_int_equal(ibv_poll_cq(cq, 1, wc), 1);
	assert_int_equal(ibv_poll_cq(cq, 1, wc + 1), 1);
	assert_int_equal(ibv_poll_cq(cq, 2, wc + 2), 2);
	assert_int_equal(ibv_poll_cq(cq, 64, wc + 4), 2);
	assert_int_equal(ibv_poll_cq(cq, 64, wc), 0);
	for (i = 0; i < 6; i++) {
		static const uint64_t wr_id[] = { 11, 12, 30, 21, 22, 40 };
		static const enum ibv_wc_opcode op[] = {
			IBV_WC_RDMA_WRITE, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RECV,
			IBV_WC_RECV, IBV_WC_RECV,
		};
		static const int of_b[] = { 0, 0, 1, 0, 0, 1 };

		assert_int_equal(wc[i].wr_id, wr_id[i]);
		assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(wc[i].opcode, op[i]);
		assert_int_equal(wc[i].qp_num, of_b[i] ? b->qp_num : a->qp_num);
		assert_int_equal(wc[i].wc_flags, 0);
		assert_int_equal(wc[i].vendor_err, 0);
	}
	/* What is posted later ends too: the rings never fill */
	for (i = 0; i < 30; i++) {
		fake_qp(a)->sq_head = fake_qp(a)->sq_tail;
		fake_qp(a)->nwqes = 0;
		fake_post_writes(a, 1, 100 + i);
		assert_int_equal(ibv_poll_cq(cq, 64, wc), 1);
		assert_int_equal(wc[0].wr_id, 100 + i);
		fake_post_recvs(a, 1, 200 + i);
		assert_int_equal(ibv_poll_cq(cq, 64, wc), 1);
		assert_int_equal(wc[0].wr_id, 200 + i);
	}
}

/* Each CQ has its side of a QP alone */
static void test_lost_two(void **state)
{
	struct ibv_cq *other = fake_make_cq(16);
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 4,
				  .max_recv_sge = 1 };
	struct ibv_wc wc[8];

	(void)state;
	fake_destroy_qp(a);
	a = fake_make_qp_cap(cq, other, IBV_QPT_RC, &cap);
	fake_modify(a, IBV_QPS_RTS);
	fake_post_writes(a, 1, 1);
	fake_post_recvs(a, 1, 2);
	fake.status->alive = 0;
	assert_int_equal(ibv_poll_cq(cq, 8, wc), 1);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(ibv_poll_cq(other, 8, wc), 1);
	assert_int_equal(wc[0].wr_id, 2);
	fake_destroy_qp(a);
	a = NULL;
	fake_destroy_cq(other);
}

static void test_lost_ex(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK |
			    IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG,
	};
	struct ibv_poll_cq_attr none = {};
	struct ibv_cq_ex *cqx;
	unsigned int i;

	(void)state;
	fake_destroy_qp(a);
	cqx = ibv_create_cq_ex(fake.ctx, &attr);
	assert_non_null(cqx);
	a = fake_make_qp(ibv_cq_ex_to_cq(cqx), IBV_QPT_RC);
	/* The ring is full of old CQEs with their stamps */
	for (i = 0; i < 20; i++) {
		complete_send(a, i);
		assert_int_equal(ibv_start_poll(cqx, &none), 0);
		assert_int_not_equal(ibv_wc_read_completion_ts(cqx), 0);
		ibv_end_poll(cqx);
	}
	fake_post_writes(a, 2, 10);
	fake_post_recvs(a, 1, 20);
	fake.status->alive = 0;
	assert_int_equal(ibv_start_poll(cqx, &none), 0);
	assert_int_equal(cqx->wr_id, 10);
	assert_int_equal(cqx->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_wc_read_opcode(cqx), IBV_WC_RDMA_WRITE);
	/* There is no CQE behind it, whatever the ring holds */
	assert_int_equal(ibv_wc_read_completion_ts(cqx), 0);
	assert_int_equal(ibv_wc_read_completion_wallclock_ns(cqx), 0);
	assert_int_equal(ibv_wc_read_cvlan(cqx), 0);
	assert_int_equal(ibv_wc_read_flow_tag(cqx), 0);
	assert_int_equal(ibv_next_poll(cqx), 0);
	assert_int_equal(cqx->wr_id, 11);
	assert_int_equal(ibv_next_poll(cqx), 0);
	assert_int_equal(cqx->wr_id, 20);
	assert_int_equal(ibv_wc_read_opcode(cqx), IBV_WC_RECV);
	assert_int_equal(ibv_next_poll(cqx), ENOENT);
	ibv_end_poll(cqx);
	assert_int_equal(ibv_start_poll(cqx, &none), ENOENT);
	fake_destroy_qp(a);
	a = NULL;
	fake_destroy_cq(ibv_cq_ex_to_cq(cqx));
}

/* --- events ------------------------------------------------------------------------------- */

/* Each event takes an arm: the next one has another serial, and one that is repeated the same */
static void test_arm_serial(void **state)
{
	uint32_t serial[3];
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		fake_dbs_clear();
		if (i == 2)
			skua_cq_event(cq);
		assert_false(ibv_req_notify_cq(cq, 0));
		serial[i] = u32_get_bits(fake.db[0].hi, SKUA_UAR_CQ_ARM_SERIAL);
	}
	assert_int_equal(serial[0], serial[1]);
	assert_int_equal(serial[2], (serial[1] + 1) % 4);
}

/* --- queues in error ------------------------------------------------------------------------ */

static unsigned int kicks(const struct ibv_qp *qp)
{
	unsigned int i, n = 0;

	for (i = 0; i < fake.ndbs; i++)
		n += fake.db[i].reg == SKUA_UAR_SQ && fake.db[i].hi == qp->qp_num;
	fake_dbs_clear();
	return n;
}

/* Receives are told to the device by a doorbell, from the moment that it is known on */
static void assert_in_error(struct ibv_qp *qp, bool in_error)
{
	assert_int_equal(kicks(qp), in_error);
	fake_post_recvs(qp, 1, 1);
	assert_int_equal(kicks(qp), in_error);
}

static void test_error_seen(void **state)
{
	(void)state;
	fake_post_recvs(a, 1, 1);
	fake_post_writes(a, 2, 1);
	assert_int_equal(kicks(a), 2);
	fake_sent(a, 0, SKUA_CQE_RETRY_EXC_ERR);
	expect(1, a);
	assert_in_error(a, true);
	/* Told once */
	fake_sent(a, 1, SKUA_CQE_WR_FLUSH_ERR);
	expect(2, a);
	assert_int_equal(kicks(a), 0);
	assert_in_error(b, false);
	/* After RESET all is as in the beginning */
	fake_modify(a, IBV_QPS_RESET);
	fake_modify(a, IBV_QPS_RTS);
	assert_in_error(a, false);
}

static void test_error_recv(void **state)
{
	(void)state;
	fake_post_recvs(a, 1, 7);
	fake_rcvd(a, SKUA_CQE_RECV, SKUA_CQE_LOC_PROT_ERR, 0);
	expect(7, a);
	assert_in_error(a, true);
}

/* A datagram or write that failed takes such a QP to SQE, where it receives */
static void test_error_unacknowledged(void **state)
{
	static const enum ibv_qp_type type[] = { IBV_QPT_UD, IBV_QPT_UC };
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = FAKE_PORT };
	struct ibv_ah *ah = ibv_create_ah(fake.pd, &attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .wr.ud.ah = ah }, *bad;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		fake_destroy_qp(a);
		a = fake_make_qp(cq, type[i]);
		assert_false(ibv_post_send(a, &wr, &bad));
		fake_sent(a, 0, SKUA_CQE_LOC_PROT_ERR);
		expect(0, a);
		fake_dbs_clear();
		assert_in_error(a, false);
		fake_rcvd(a, SKUA_CQE_RECV, SKUA_CQE_WR_FLUSH_ERR, 0);
		expect(1, a);
		assert_in_error(a, true);
	}
	assert_false(ibv_destroy_ah(ah));
}

static void test_error_modify(void **state)
{
	(void)state;
	fake_modify(a, IBV_QPS_ERR);
	assert_in_error(a, true);
}

static void test_error_events(void **state)
{
	static const struct {
		enum ibv_event_type event;
		bool error;
	} t[] = {
		{ IBV_EVENT_QP_FATAL, true }, { IBV_EVENT_QP_REQ_ERR, true },
		{ IBV_EVENT_QP_ACCESS_ERR, true }, { IBV_EVENT_COMM_EST, false },
		{ IBV_EVENT_SQ_DRAINED, false }, { IBV_EVENT_QP_LAST_WQE_REACHED, false },
	};
	struct ibv_async_event event;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		event.event_type = t[i].event;
		event.element.qp = a;
		skua_async_event(fake.ctx, &event);
		assert_in_error(a, t[i].error);
		fake_modify(a, IBV_QPS_RESET);
		fake_modify(a, IBV_QPS_RTS);
	}
	event.event_type = IBV_EVENT_PORT_ERR;
	event.element.port_num = 1;
	skua_async_event(fake.ctx, &event);
}

/* A poster was faster than the kick: the device drops an index that goes back */
static void post_beside(const struct fake_db *db)
{
	(void)db;
	fake.on_doorbell = NULL;
	fake_post_writes(a, 2, 50);
}

static void test_error_kick_again(void **state)
{
	(void)state;
	fake_post_writes(a, 1, 1);
	fake_dbs_clear();
	fake.on_doorbell = post_beside;
	fake_modify(a, IBV_QPS_ERR);
	/* The kick, two posts, and the kick again with the index of the last */
	assert_int_equal(fake.ndbs, 4);
	assert_int_equal(fake.db[0].lo, 1);
	assert_int_equal(fake.db[3].lo, 3);
}

static pthread_t resetter;

static void *reset_a(void *arg)
{
	(void)arg;
	fake_modify(a, IBV_QPS_RESET);
	return NULL;
}

/* Another thread resets the QP: it must wait, or the index would arrive after that. */
static void reset_beside(const struct fake_db *db)
{
	struct timespec end;

	(void)db;
	fake.on_doorbell = NULL;
	assert_false(pthread_create(&resetter, NULL, reset_a, NULL));
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += 200000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	assert_int_equal(pthread_timedjoin_np(resetter, NULL, &end), ETIMEDOUT);
}

static void test_error_kick_reset(void **state)
{
	(void)state;
	fake_post_writes(a, 1, 1);
	fake_dbs_clear();
	fake.on_doorbell = reset_beside;
	fake_modify(a, IBV_QPS_ERR);
	assert_false(pthread_join(resetter, NULL));
	assert_int_equal(fake.ndbs, 1);
	assert_int_equal(fake.db[0].lo, 1);
	assert_int_equal(to_sqp(a)->sq.pi, 0);
}

static uint32_t rq_pi_at_barrier;

static void note_rq_pi(enum fake_barrier kind)
{
	if (kind == FAKE_TO_DEVICE)
		rq_pi_at_barrier = le32_to_cpu(fake_qp_dbr(fake_qp(a))->rq_pi);
}

static void check_rq_pi(const struct fake_db *db)
{
	(void)db;
	assert_int_equal(rq_pi_at_barrier, 1);
}

/* Receive record, barrier, doorbell */
static void test_error_kick_order(void **state)
{
	(void)state;
	fake_modify(a, IBV_QPS_ERR);
	fake_dbs_clear();
	fake.on_barrier = note_rq_pi;
	fake.on_doorbell = check_rq_pi;
	fake_post_recvs(a, 1, 1);
	fake.on_barrier = NULL;
	fake.on_doorbell = NULL;
	assert_int_equal(fake.ndbs, 1);
}

#define CASE(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(clean), CASE(clean_destroyed), CASE(clean_nothing), CASE(clean_full),
		CASE(clean_order), CASE(reset), CASE(reset_forgets), CASE(clean_two),
		CASE(same_number), CASE(resize_larger), CASE(resize_same),
		CASE(resize_smaller), CASE(resize_meanwhile), CASE(resize_refused), CASE(lost),
		CASE(lost_two), CASE(lost_ex), CASE(arm_serial), CASE(error_seen), CASE(error_recv),
		CASE(error_unacknowledged), CASE(error_modify), CASE(error_events),
		CASE(error_kick_again), CASE(error_kick_reset), CASE(error_kick_order),
		CASE(create_while_polling), CASE(table_replaced), CASE(search_again),
		CASE(search_shared_again),
	};

	return cmocka_run_group_tests_name("provider cq", tests, NULL, NULL);
}
