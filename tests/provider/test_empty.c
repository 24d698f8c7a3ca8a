// SPDX-License-Identifier: GPL-2.0
/*
 * Elements of no length in the lists of receives: they take nothing, whatever their key is, and
 * what is behind them is filled.
 */
#include "fake.h"
#include "skua.h"

#define ELEMENTS	3
#define LISTS		27	/* ELEMENTS of 3 kinds each */
#define LEN		8

static struct ibv_cq *cq;
static uint8_t payload[64], mem[ELEMENTS][LEN];

static int setup(void **state)
{
	unsigned int i;

	if (fake_setup(state))
		return -1;
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = 3 * i + 1;
	setenv("SKUA_SCATTER_TO_CQE", "1", 1);
	fake_open();
	unsetenv("SKUA_SCATTER_TO_CQE");
	assert_non_null(fake.ctx);
	fake.payload = payload;
	cq = fake_make_cq(16);
	return 0;
}

static int teardown(void **state)
{
	fake_destroy_cq(cq);
	return fake_teardown(state);
}

/* List @n of all: each element is full, or empty with the key that ends a list, or another. */
static unsigned int make_list(unsigned int n, struct ibv_sge sge[ELEMENTS])
{
	unsigned int i, full = 0;

	memset(mem, 0xee, sizeof(mem));
	for (i = 0; i < ELEMENTS; i++, n /= 3) {
		sge[i].addr = (uintptr_t)mem[i];
		sge[i].length = n % 3 ? 0 : LEN;
		sge[i].lkey = n % 3 == 1 ? SKUA_INVALID_LKEY : 5 + i;
		full += !(n % 3);
	}
	return full;
}

/* The first @num elements are the device's list, which has room for @max. */
static void check_wqe(const struct skua_wqe_data *d, unsigned int max, const struct ibv_sge *sge,
		      unsigned int num)
{
	unsigned int i, n = 0;

	for (i = 0; i < num; i++) {
		if (!sge[i].length)
			continue;
		assert_true(n < max);
		assert_int_equal(le64_to_cpu(d[n].addr), sge[i].addr);
		assert_int_equal(le32_to_cpu(d[n].lkey), sge[i].lkey);
		assert_int_equal(le32_to_cpu(d[n].len), sge[i].length);
		n++;
	}
	if (n < max)
		assert_int_equal(le32_to_cpu(d[n].lkey), SKUA_INVALID_LKEY);
}

/* The payload is in the full elements, one behind the other. */
static void check_mem(const struct ibv_sge *sge)
{
	static const uint8_t none[LEN] = { 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee };
	const uint8_t *p = payload;
	unsigned int i;

	for (i = 0; i < ELEMENTS; i++) {
		assert_memory_equal(mem[i], sge[i].length ? p : none, LEN);
		p += sge[i].length;
	}
}

static void poll_one(uint64_t wr_id, uint32_t len)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, len);
}

static void test_rq(void **state)
{
	static const struct ibv_qp_cap cap = {
		.max_send_wr = 1, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = ELEMENTS,
	};
	struct ibv_qp *qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	struct ibv_sge sge[ELEMENTS];
	struct ibv_recv_wr wr = { .sg_list = sge }, *bad;
	unsigned int n, i, num, at = 0, len;

	(void)state;
	fake_modify(qp, IBV_QPS_RTS);
	for (n = 0; n < LISTS; n++) {
		for (i = 0; i <= ELEMENTS; i++) {
			/* Shorter lists come where longer ones were: they must be ended. */
			num = (n + i) % (ELEMENTS + 1);
			len = LEN * make_list(n, sge);
			wr.wr_id = at;
			wr.num_sge = num;
			assert_false(ibv_post_recv(qp, &wr, &bad));
			check_wqe(fake_rq_wqe(fake_qp(qp), at), 4, sge, num);
			fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, num == ELEMENTS ? len : 0);
			poll_one(at++, num == ELEMENTS ? len : 0);
			if (num == ELEMENTS)
				check_mem(sge);
		}
	}
	fake_destroy_qp(qp);
}

static void test_srq(void **state)
{
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 3, .max_sge = ELEMENTS } };
	struct ibv_srq *srq = ibv_create_srq(fake.pd, &sattr);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(fake.pd, &attr);
	struct ibv_sge sge[ELEMENTS];
	struct ibv_recv_wr wr = { .sg_list = sge }, *bad;
	unsigned int n, num, len;
	int pos;

	(void)state;
	assert_non_null(qp);
	fake_modify(qp, IBV_QPS_RTS);
	for (n = 0; n < LISTS; n++) {
		len = LEN * make_list(n, sge);
		for (num = 0; num <= ELEMENTS; num++) {
			wr.wr_id = n;
			wr.num_sge = num;
			assert_false(ibv_post_srq_recv(srq, &wr, &bad));
			pos = fake_srq_take(fake_srq(srq));
			assert_int_not_equal(pos, -1);
			check_wqe(fake_srq_wqe(fake_srq(srq), pos), 3, sge, num);
			fake_rcvd_shared(qp, pos, num == ELEMENTS ? len : 0);
			poll_one(n, num == ELEMENTS ? len : 0);
		}
		check_mem(sge);
	}
	fake_destroy_qp(qp);
	assert_false(ibv_destroy_srq(srq));
}

static void test_wq(void **state)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = ELEMENTS, .pd = fake.pd, .cq = cq,
	};
	struct ibv_wq *wq = ibv_create_wq(fake.ctx, &attr);
	struct ibv_wq_attr rdy = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_sge sge[ELEMENTS];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = ELEMENTS }, *bad;
	unsigned int n;

	(void)state;
	assert_non_null(wq);
	for (n = 0; n < LISTS; n++) {
		if (n % 4 == 0) {
			struct ibv_wq_attr reset = {
				.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET,
			};

			assert_false(ibv_modify_wq(wq, &reset));
			assert_false(ibv_modify_wq(wq, &rdy));
		}
		make_list(n, sge);
		assert_false(ibv_post_wq_recv(wq, &wr, &bad));
		check_wqe(fake_rq_wqe(fake_wq(wq), n % 4), 4, sge, ELEMENTS);
	}
	assert_false(ibv_destroy_wq(wq));
}

#define CASE(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = { CASE(rq), CASE(srq), CASE(wq) };

	return cmocka_run_group_tests_name("provider empty elements", tests, NULL, NULL);
}
