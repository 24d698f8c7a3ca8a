// SPDX-License-Identifier: GPL-2.0
/*
 * Payload in CQEs: it is where the WQE says when the completion has been polled, for each
 * kind of queue and size of entry; who asks for it, and who does not.
 */
#include "look.h"
#include "skua.h"

static struct ibv_cq *cq;
static struct ibv_qp *qp;
static uint8_t payload[64], mem[256];

static const struct ibv_qp_cap cap = {
	.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 8, .max_recv_sge = 4,
};

static void open_as(const char *scatter, const char *size)
{
	unsigned int i;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = 3 * i + 1;
	if (scatter)
		setenv("SKUA_SCATTER_TO_CQE", scatter, 1);
	if (size)
		setenv("SKUA_CQE_SIZE", size, 1);
	fake_open();
	unsetenv("SKUA_SCATTER_TO_CQE");
	unsetenv("SKUA_CQE_SIZE");
	assert_non_null(fake.ctx);
	cq = fake_make_cq(16);
	qp = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	fake_modify(qp, IBV_QPS_RTS);
	fake.payload = payload;
}

static int setup(void **state)
{
	if (fake_setup(state))
		return -1;
	open_as("1", NULL);
	return 0;
}

static int setup_large(void **state)
{
	if (fake_setup(state))
		return -1;
	open_as("1", "128");
	return 0;
}

static int teardown(void **state)
{
	if (qp)
		fake_destroy_qp(qp);
	qp = NULL;
	fake_destroy_cq(cq);
	return fake_teardown(state);
}

static uint32_t room(void)
{
	return fake_cq(cq)->cq_req.cqe_size == 128 ? 64 : 32;
}

/* Three elements of which the second is empty, 10 bytes apart. */
static void make_list(struct ibv_sge sge[3], uint32_t first, uint32_t last)
{
	memset(mem, 0xee, sizeof(mem));
	sge[0] = (struct ibv_sge){ (uintptr_t)mem, first, 5 };
	sge[1] = (struct ibv_sge){ (uintptr_t)mem + first + 5, 0, 5 };
	sge[2] = (struct ibv_sge){ (uintptr_t)mem + first + 10, last, 5 };
}

static void check_list(uint32_t first, uint32_t len)
{
	uint32_t a = len < first ? len : first, i;

	assert_memory_equal(mem, payload, a);
	if (len > a)
		assert_memory_equal(mem + first + 10, payload + a, len - a);
	for (i = a; i < first + 10; i++)
		assert_int_equal(mem[i], 0xee);
	for (i = first + 10 + (len - a); i < sizeof(mem); i++)
		assert_int_equal(mem[i], 0xee);
}

static struct ibv_wc expect(uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	return wc;
}

static void test_recv(void **state)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;
	uint32_t len;

	(void)state;
	assert_true(fake_qp(qp)->qp_req.flags & SKUA_CREATE_QP_SCATTER_RQ);
	for (len = 0; len <= room(); len++) {
		make_list(sge, len / 2 + 1, 64);
		wr.wr_id = len;
		assert_false(ibv_post_recv(qp, &wr, &bad));
		fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, len);
		assert_int_equal(expect(len).byte_len, len);
		check_list(len / 2 + 1, len);
	}
}

/* A list that is shorter than the message, which the device does not let pass. */
static void test_recv_short(void **state)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad;

	(void)state;
	make_list(sge, 4, 64);
	assert_false(ibv_post_recv(qp, &wr, &bad));
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, 20);
	expect(0);
	check_list(4, 4);
	/* More than an entry has room for: nothing is copied. */
	make_list(sge, 64, 64);
	assert_false(ibv_post_recv(qp, &wr, &bad));
	fake.payload = NULL;
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, room() + 1);
	((struct skua_cqe *)((uint8_t *)fake_cq(cq)->ring + fake_cq(cq)->pi *
			     fake_cq(cq)->cq_req.cqe_size))[-1].own |=
		cpu_to_le32(SKUA_CQE_F_INLINE);
	expect(0);
	check_list(64, 0);
}

static void test_srq(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 3 } };
	struct ibv_srq *srq = ibv_create_srq(fake.pd, &attr);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .srq = srq,
					 .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1 } };
	struct ibv_qp *q = ibv_create_qp(fake.pd, &init);
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;
	uint32_t len;

	(void)state;
	fake_modify(q, IBV_QPS_RTS);
	for (len = 0; len <= room(); len++) {
		int pos;

		make_list(sge, 3, 64);
		wr.wr_id = len;
		assert_false(ibv_post_srq_recv(srq, &wr, &bad));
		pos = fake_srq_take(fake_srq(srq));
		fake_rcvd_shared(q, pos, len);
		/* Before the place may be posted again */
		expect(len);
		check_list(3, len);
	}
	fake_destroy_qp(q);
	assert_false(ibv_destroy_srq(srq));
}

/* Of completions that nobody polled, as the program may have freed the memory by then. */
static void test_srq_dropped(void **state)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 3, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1 } };
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad;
	unsigned int i, reset;
	struct ibv_qp *q;

	(void)state;
	for (reset = 0; reset < 2; reset++) {
		init.srq = ibv_create_srq(fake.pd, &attr);
		q = ibv_create_qp(fake.pd, &init);
		fake_modify(q, IBV_QPS_RTS);
		for (i = 0; i < 3; i++) {
			make_list(sge, 64, 0);
			assert_false(ibv_post_srq_recv(init.srq, &wr, &bad));
			fake_rcvd_shared(q, fake_srq_take(fake_srq(init.srq)), 8);
		}
		assert_int_equal(ibv_post_srq_recv(init.srq, &wr, &bad), ENOMEM);
		if (reset)
			fake_modify(q, IBV_QPS_RESET);
		else
			fake_destroy_qp(q);
		check_list(64, 0);
		/* The WQEs are free again */
		for (i = 0; i < 3; i++)
			assert_false(ibv_post_srq_recv(init.srq, &wr, &bad));
		assert_int_equal(ibv_post_srq_recv(init.srq, &wr, &bad), ENOMEM);
		if (reset)
			fake_destroy_qp(q);
		assert_false(ibv_destroy_srq(init.srq));
	}
}

/* READs and atomics, at each place of the ring. */
static void test_fetched(void **state)
{
	struct ibv_sge sge[8];
	struct ibv_send_wr wr = { .sg_list = sge, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct skua_cqe cqe = { .qpn = cpu_to_le32(qp->qp_num) };
	uint32_t len, at = 0, i;

	(void)state;
	assert_true(fake_qp(qp)->qp_req.flags & SKUA_CREATE_QP_SCATTER_SQ);
	for (len = 1; len <= room(); len++) {
		bool atomic = len == 8;

		wr.wr_id = len;
		wr.opcode = atomic ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_RDMA_READ;
		if (atomic) {
			/* Operands that would do as an element */
			wr.wr.atomic.swap = (uintptr_t)mem + 100;
			wr.wr.atomic.compare_add = 8ULL << 32 | 5;
		}
		/* One, two or three blocks, which wrap */
		wr.num_sge = atomic ? 1 : 1 + len % 8;
		memset(mem, 0xee, sizeof(mem));
		for (i = 0; i < 8; i++)
			sge[i] = (struct ibv_sge){ (uintptr_t)mem + i, 1, 5 };
		sge[wr.num_sge - 1].length = 70;
		assert_false(ibv_post_send(qp, &wr, &bad));
		cqe.what = fake_what(at, SKUA_CQE_REQ, SKUA_CQE_OK);
		cqe.byte_len = cpu_to_le32(len);
		fake_cqe(fake_cq(cq), &cqe);
		fake_qp(qp)->nwqes = 0;
		at = fake_qp(qp)->sq_tail;
		fake_qp(qp)->sq_head = at;
		assert_int_equal(expect(len).byte_len, len);
		assert_memory_equal(mem, payload, len);
		for (i = len; i < sizeof(mem); i++)
			assert_int_equal(mem[i], 0xee);
	}
}

/* A device that says of a WRITE that its payload is in the CQE: the program's data stay. */
static void test_not_fetched(void **state)
{
	struct ibv_sge sge = { (uintptr_t)mem, 8, 5 };
	struct ibv_send_wr wr = {
		.wr_id = 8,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	struct skua_cqe cqe = { .qpn = cpu_to_le32(qp->qp_num), .byte_len = cpu_to_le32(8) };
	unsigned int i;

	(void)state;
	memset(mem, 0xee, sizeof(mem));
	assert_false(ibv_post_send(qp, &wr, &bad));
	cqe.what = fake_what(0, SKUA_CQE_REQ, SKUA_CQE_OK);
	fake_cqe(fake_cq(cq), &cqe);
	expect(8);
	for (i = 0; i < sizeof(mem); i++)
		assert_int_equal(mem[i], 0xee);
}

/* Entries that move, by a resize or as others are removed, keep their payload. */
static void test_moved(void **state)
{
	struct ibv_qp *other = fake_make_qp_cap(cq, cq, IBV_QPT_RC, &cap);
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;
	uint32_t len = room();

	(void)state;
	fake_modify(other, IBV_QPS_RTS);
	make_list(sge, 9, 64);
	assert_false(ibv_post_recv(qp, &wr, &bad));
	assert_false(ibv_post_recv(other, &wr, &bad));
	fake_rcvd(qp, SKUA_CQE_RECV, SKUA_CQE_OK, len);
	fake_rcvd(other, SKUA_CQE_RECV, SKUA_CQE_OK, 1);
	assert_false(ibv_resize_cq(cq, 100));
	fake_destroy_qp(other);
	expect(0);
	check_list(9, len);
}

/* Who asks the kernel for it. */
static void test_who(void **state)
{
	static const struct {
		const char *env;
		uint32_t want;
	} row[] = {
		{ NULL, 0 },
		{ "", 0 },
		{ "0", 0 },
		{ "1", SKUA_CREATE_QP_SCATTER_RQ | SKUA_CREATE_QP_SCATTER_SQ },
	};
	const uint32_t all = SKUA_CREATE_QP_SCATTER_RQ | SKUA_CREATE_QP_SCATTER_SQ;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq *lossy;
	struct ibv_qp *q;
	unsigned int i;

	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		fake_setup(state);
		open_as(row[i].env, NULL);
		assert_int_equal(fake_qp(qp)->qp_req.flags & all, row[i].want);
		q = fake_make_qp_cap(cq, cq, IBV_QPT_UC, &cap);
		assert_int_equal(fake_qp(q)->qp_req.flags & all,
				 row[i].want & SKUA_CREATE_QP_SCATTER_RQ);
		fake_destroy_qp(q);
		q = fake_make_qp_cap(cq, cq, IBV_QPT_UD, &cap);
		assert_int_equal(fake_qp(q)->qp_req.flags & all, 0);
		fake_destroy_qp(q);
		/* What is overwritten before it is polled would be lost */
		lossy = ibv_cq_ex_to_cq(ibv_create_cq_ex(fake.ctx, &attr));
		q = fake_make_qp_cap(cq, lossy, IBV_QPT_RC, &cap);
		assert_int_equal(fake_qp(q)->qp_req.flags & all,
				 row[i].want & SKUA_CREATE_QP_SCATTER_SQ);
		fake_destroy_qp(q);
		q = fake_make_qp_cap(lossy, cq, IBV_QPT_RC, &cap);
		assert_int_equal(fake_qp(q)->qp_req.flags & all,
				 row[i].want & SKUA_CREATE_QP_SCATTER_RQ);
		fake_destroy_qp(q);
		fake_destroy_cq(lossy);
		teardown(state);
	}
	fake_setup(state);
	fake.lim.caps &= ~SKUA_CAP_SCATTER_CQE;
	open_as("1", NULL);
	assert_int_equal(fake_qp(qp)->qp_req.flags & all, 0);
	teardown(state);
}

#define both(test)								\
	cmocka_unit_test_setup_teardown(test, setup, teardown),			\
	cmocka_unit_test_setup_teardown(test, setup_large, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		both(test_recv),
		both(test_recv_short),
		both(test_srq),
		both(test_srq_dropped),
		both(test_fetched),
		both(test_not_fetched),
		both(test_moved),
		cmocka_unit_test(test_who),
	};

	return cmocka_run_group_tests_name("provider scatter", tests, NULL, NULL);
}
