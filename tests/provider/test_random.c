// SPDX-License-Identifier: GPL-2.0
/*
 * Many operations by seed against a simple model: three QPs, one of them with an SRQ, on
 * two CQs that change their sizes. The model is lists of what was posted and of what the
 * device has completed, by CQ, in order.
 *
 * SKUA_SEED, SKUA_ROUNDS: another seed, more operations.
 */
#include "fake.h"

#define QPS		3
#define CQS		2
#define LIST		512

/* What must be polled next from a CQ */
struct expected {
	uint64_t wr_id;
	unsigned int qp;
	enum ibv_wc_opcode opcode;
	uint32_t end;		/* a send: the block after it */
	bool srq;
};

struct model_cq {
	struct ibv_cq *cq;
	struct ibv_cq_ex *cqx;
	struct expected list[LIST];
	unsigned int n;
};

struct posted {
	uint64_t wr_id;
	enum ibv_wc_opcode opcode;
	uint32_t index;
	unsigned int blocks;
};

struct model_qp {
	struct ibv_qp *qp;
	struct posted send[LIST];
	unsigned int nsend;
	uint32_t pi;
	uint64_t recv[LIST];
	unsigned int nrecv;
	unsigned int send_cq;
	unsigned int recv_cq;
};

static struct model_cq cqs[CQS];
static struct model_qp qps[QPS];
static struct ibv_srq *srq;
/* WQEs of the SRQ: posted in order, then taken by the device at a position */
static uint64_t srq_posted[LIST];
static unsigned int nsrq;
static unsigned int srq_unread;
static uint64_t next_id;
static uint64_t rnd;

static unsigned int roll(unsigned int n)
{
	rnd = rnd * 6364136223846793005ULL + 1442695040888963407ULL;
	return (rnd >> 33) % n;
}

static void drop(void *list, unsigned int *n, size_t size, unsigned int at)
{
	uint8_t *p = list;

	memmove(p + at * size, p + (at + 1) * size, (--*n - at) * size);
}

/* --- operations ------------------------------------------------------------------ */

/* The room of a send queue reaches up to the WQE that was polled last */
static uint32_t polled_to[QPS];

static void op_send(unsigned int q)
{
	static const struct {
		enum ibv_wr_opcode wr;
		enum ibv_wc_opcode wc;
		unsigned int head;
	} ops[] = {
		{ IBV_WR_SEND, IBV_WC_SEND, 1 },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 2 },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 2 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 3 },
		{ IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV, 1 },
	};
	struct model_qp *m = &qps[q];
	unsigned int op = roll(5), num = op == 4 ? 0 : roll(6);
	struct ibv_sge sge[6] = {};
	struct ibv_send_wr wr = {
		.wr_id = next_id++,
		.sg_list = sge,
		.num_sge = num,
		.opcode = ops[op].wr,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	unsigned int blocks = (ops[op].head + num + 3) / 4;
	uint32_t size = 1U << fake_qp(m->qp)->qp_req.log_sq;
	int ret = ibv_post_send(m->qp, &wr, &bad);

	if (m->pi + blocks - polled_to[q] > size) {
		assert_int_equal(ret, ENOMEM);
		return;
	}
	assert_int_equal(ret, 0);
	assert_in_range(m->nsend, 0, LIST - 1);
	m->send[m->nsend++] = (struct posted){ wr.wr_id, ops[op].wc, m->pi, blocks };
	m->pi += blocks;
}

static bool has_room(unsigned int c)
{
	struct fake_obj *o = fake_cq(cqs[c].cq);

	return o->pi - le32_to_cpu(fake_cq_dbr(o)->ci) < 1U << o->log;
}

static void will_come(unsigned int c, struct expected e)
{
	assert_in_range(cqs[c].n, 0, LIST - 1);
	cqs[c].list[cqs[c].n++] = e;
}

/* The device completes a send: those before it are done as well */
static void op_sent(unsigned int q)
{
	struct model_qp *m = &qps[q];
	unsigned int k;

	if (!m->nsend || !has_room(m->send_cq))
		return;
	k = roll(m->nsend < 3 ? m->nsend : 3);
	fake_sent(m->qp, m->send[k].index, SKUA_CQE_OK);
	will_come(m->send_cq, (struct expected){ m->send[k].wr_id, q, m->send[k].opcode,
						 m->send[k].index + m->send[k].blocks });
	for (; k != -1U; k--)
		drop(m->send, &m->nsend, sizeof(m->send[0]), 0);
}

static unsigned int recv_unread[QPS];

static void op_recv(unsigned int q)
{
	struct model_qp *m = &qps[q];
	struct ibv_recv_wr wr = { .wr_id = next_id++ }, *bad;
	unsigned int total;
	int ret;

	if (m->qp->srq) {
		ret = ibv_post_srq_recv(srq, &wr, &bad);
		if (nsrq + srq_unread == 15) {
			assert_int_equal(ret, ENOMEM);
			return;
		}
		assert_int_equal(ret, 0);
		srq_posted[nsrq++] = wr.wr_id;
		return;
	}
	total = m->nrecv + recv_unread[q];
	ret = ibv_post_recv(m->qp, &wr, &bad);
	if (total == 1U << fake_qp(m->qp)->qp_req.log_rq) {
		assert_int_equal(ret, ENOMEM);
		return;
	}
	assert_int_equal(ret, 0);
	m->recv[m->nrecv++] = wr.wr_id;
}

static void op_rcvd(unsigned int q)
{
	struct model_qp *m = &qps[q];

	if (!has_room(m->recv_cq))
		return;
	if (m->qp->srq) {
		if (!nsrq)
			return;
		fake_rcvd_shared(m->qp, fake_srq_take(fake_srq(srq)), 1);
		will_come(m->recv_cq, (struct expected){ srq_posted[0], q, IBV_WC_RECV, 0, true });
		drop(srq_posted, &nsrq, sizeof(srq_posted[0]), 0);
		srq_unread++;
		return;
	}
	if (!m->nrecv)
		return;
	fake_rcvd(m->qp, SKUA_CQE_RECV, SKUA_CQE_OK, 1);
	will_come(m->recv_cq, (struct expected){ m->recv[0], q, IBV_WC_RECV });
	drop(m->recv, &m->nrecv, sizeof(m->recv[0]), 0);
	recv_unread[q]++;
}

static void came(unsigned int c, uint64_t wr_id, enum ibv_wc_opcode opcode, uint32_t qpn)
{
	struct model_cq *m = &cqs[c];
	struct expected e = m->list[0];

	assert_int_not_equal(m->n, 0);
	drop(m->list, &m->n, sizeof(m->list[0]), 0);
	assert_int_equal(wr_id, e.wr_id);
	assert_int_equal(opcode, e.opcode);
	assert_int_equal(qpn, qps[e.qp].qp->qp_num);
	if (e.srq)
		srq_unread--;
	else if (opcode == IBV_WC_RECV)
		recv_unread[e.qp]--;
	else
		polled_to[e.qp] = e.end;
}

static void op_poll(unsigned int c)
{
	struct ibv_poll_cq_attr none = {};
	struct model_cq *m = &cqs[c];
	unsigned int ask = 1 + roll(8), n = 0;
	struct ibv_wc wc[8];
	int got;

	if (m->cqx && roll(2)) {
		if (ibv_start_poll(m->cqx, &none)) {
			assert_int_equal(m->n, 0);
			return;
		}
		do {
			assert_int_equal(m->cqx->status, IBV_WC_SUCCESS);
			came(c, m->cqx->wr_id, ibv_wc_read_opcode(m->cqx),
			     ibv_wc_read_qp_num(m->cqx));
			/* Of a lost device more comes at once: lose() looks at that */
		} while (++n < ask && (m->n || fake.status->alive) && !ibv_next_poll(m->cqx));
		ibv_end_poll(m->cqx);
		return;
	}
	got = ibv_poll_cq(m->cq, ask, wc);
	assert_int_equal(got, m->n < ask ? m->n : ask);
	for (n = 0; n < (unsigned int)got; n++) {
		assert_int_equal(wc[n].status, IBV_WC_SUCCESS);
		came(c, wc[n].wr_id, wc[n].opcode, wc[n].qp_num);
	}
}

/* What was not polled is gone, and the queue begins anew */
static void op_reset(unsigned int q)
{
	struct model_qp *m = &qps[q];
	unsigned int c, i;

	fake_modify(m->qp, IBV_QPS_RESET);
	fake_modify(m->qp, IBV_QPS_RTS);
	for (c = 0; c < CQS; c++) {
		for (i = 0; i < cqs[c].n;) {
			if (cqs[c].list[i].qp != q) {
				i++;
				continue;
			}
			srq_unread -= cqs[c].list[i].srq;
			drop(cqs[c].list, &cqs[c].n, sizeof(cqs[c].list[0]), i);
		}
	}
	m->nsend = 0;
	m->nrecv = 0;
	m->pi = 0;
	polled_to[q] = 0;
	recv_unread[q] = 0;
}

static void op_resize(unsigned int c)
{
	int cqe = 16 << roll(3);
	int ret = ibv_resize_cq(cqs[c].cq, cqe);

	assert_int_equal(ret, cqs[c].n > (unsigned int)cqe ? EINVAL : 0);
}

/* --- a run ----------------------------------------------------------------------- */

static void make_all(void)
{
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 15, .max_sge = 1 } };
	struct ibv_cq_init_attr_ex cattr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_qp_init_attr qattr = {
		.qp_type = IBV_QPT_RC,
		.cap = { 4, 8, 5, 1, 0 },
	};
	unsigned int q;

	memset(cqs, 0, sizeof(cqs));
	memset(qps, 0, sizeof(qps));
	memset(polled_to, 0, sizeof(polled_to));
	memset(recv_unread, 0, sizeof(recv_unread));
	nsrq = 0;
	srq_unread = 0;
	next_id = 1;
	cqs[0].cq = fake_make_cq(16);
	cqs[1].cqx = ibv_create_cq_ex(fake.ctx, &cattr);
	assert_non_null(cqs[1].cqx);
	cqs[1].cq = ibv_cq_ex_to_cq(cqs[1].cqx);
	srq = ibv_create_srq(fake.pd, &sattr);
	assert_non_null(srq);
	for (q = 0; q < QPS; q++) {
		qps[q].send_cq = q & 1;
		qps[q].recv_cq = q > 1;
		qattr.send_cq = cqs[qps[q].send_cq].cq;
		qattr.recv_cq = cqs[qps[q].recv_cq].cq;
		qattr.srq = q == 1 ? srq : NULL;
		qps[q].qp = ibv_create_qp(fake.pd, &qattr);
		assert_non_null(qps[q].qp);
		qattr.cap = (struct ibv_qp_cap){ 4, 8, 5, 1, 0 };
		fake_modify(qps[q].qp, IBV_QPS_RTS);
	}
}

static void unmake_all(void)
{
	unsigned int i;

	for (i = 0; i < QPS; i++)
		fake_destroy_qp(qps[i].qp);
	assert_false(ibv_destroy_srq(srq));
	for (i = 0; i < CQS; i++)
		fake_destroy_cq(cqs[i].cq);
}

/* The device goes: what it said comes first, then all that is outstanding */
static void lose(void)
{
	unsigned int c, q, i, pos;
	struct ibv_wc wc[64];
	int got;

	fake.status->alive = 0;
	for (c = 0; c < CQS; c++) {
		while (cqs[c].n)
			op_poll(c);
		got = ibv_poll_cq(cqs[c].cq, 64, wc);
		pos = 0;
		for (q = 0; q < QPS; q++) {
			for (i = 0; qps[q].send_cq == c && i < qps[q].nsend; i++, pos++) {
				assert_int_equal(wc[pos].wr_id, qps[q].send[i].wr_id);
				assert_int_equal(wc[pos].opcode, qps[q].send[i].opcode);
				assert_int_equal(wc[pos].status, IBV_WC_WR_FLUSH_ERR);
			}
		}
		for (q = 0; q < QPS; q++) {
			for (i = 0; qps[q].recv_cq == c && i < qps[q].nrecv; i++, pos++) {
				assert_int_equal(wc[pos].wr_id, qps[q].recv[i]);
				assert_int_equal(wc[pos].opcode, IBV_WC_RECV);
			}
		}
		assert_int_equal(got, pos);
	}
}

static void run(uint64_t seed, unsigned int rounds)
{
	rnd = seed * 0x9e3779b97f4a7c15ULL + 1;
	roll(2);
	make_all();
	while (rounds--) {
		unsigned int what = roll(200), q = roll(QPS), c = roll(CQS);

		fake_dbs_clear();
		if (what < 60)
			op_send(q);
		else if (what < 95)
			op_sent(q);
		else if (what < 130)
			op_recv(q);
		else if (what < 160)
			op_rcvd(q);
		else if (what < 195)
			op_poll(c);
		else if (what < 198)
			op_resize(c);
		else if (!roll(4))
			op_reset(q);
	}
	lose();
	unmake_all();
}

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *v = getenv(name);

	return v ? strtoul(v, NULL, 0) : otherwise;
}

static void test_random(void **state)
{
	unsigned long first = number("SKUA_SEED", 1), n = getenv("SKUA_SEED") ? 1 : 40, seed;

	for (seed = first; seed < first + n; seed++) {
		print_message("# seed %lu\n", seed);
		run(seed, number("SKUA_ROUNDS", 3000));
		assert_false(fake_teardown(state));
		assert_false(fake_setup_open(state));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_random, fake_setup_open, fake_teardown),
	};

	return cmocka_run_group_tests_name("provider random", tests, NULL, NULL);
}
