// SPDX-License-Identifier: GPL-2.0
/*
 * Invalidation from here and from the peer, and the order of work requests on keys. The
 * tables follow the IBTA's chapters 10.6.7 (o10-37), 10.8.3 (ordering) and 9.4.1.1 (SEND
 * with invalidate).
 */
#include "rc_fault.h"
#include "rc_keys.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull

/* --- invalidation --- */

enum inv { INV_FAST, INV_FAST_LOCAL, INV_FAST_FREE, INV_FAST_BOUND, INV_FAST_PD, INV_MR, INV_MW1,
	   INV_MW2, INV_MW2_FREE, INV_MW2_OTHER, INV_NONE, INV_VARIANT };

/* A key of side 1 in that state. */
static uint32_t inv_key(struct rc *rc, enum inv inv)
{
	uint64_t list = page_list(rc, 1, 1, 12, 1);
	struct mini_qp qp[2];
	uint32_t key, mw;

	switch (inv) {
	case INV_NONE:
		return 0x3ff00;
	case INV_MR:
		return region(rc, 1, MINI_PD, RIGHTS);
	case INV_MW1:
	case INV_MW2:
		key = window(rc, 1, inv == INV_MW1 ? SKUA_MPT_MW1 : SKUA_MPT_MW2, MINI_PD);
		post_bind(rc, 1, &(struct bind){ key, key, rc->s[1].key, RW, 0, 64 });
		rc_expect(rc, 1, false, SKUA_CQE_OK);
		return key;
	case INV_MW2_FREE:
		return window(rc, 1, SKUA_MPT_MW2, MINI_PD);
	case INV_MW2_OTHER:
		second(rc, qp);
		key = window(rc, 1, SKUA_MPT_MW2, MINI_PD);
		post_bind_qp(rc, 1, &qp[1], &(struct bind){ key, key, rc->s[1].key, RW, 0, 64 });
		rc_pump(rc);
		rc_expect(rc, 1, false, SKUA_CQE_OK);
		return key;
	case INV_FAST_FREE:
		return fast(rc, 1, MINI_PD, 1);
	case INV_FAST_PD:
		return fast(rc, 1, MINI_PD + 1, 1);
	default:
		break;
	}
	key = fast(rc, 1, MINI_PD, 1);
	post_reg(rc, 1, &(struct reg){ key, (inv == INV_FAST_LOCAL ? SKUA_ACCESS_LOCAL_WRITE :
				       RIGHTS) | SKUA_ACCESS_MW_BIND, RC_VA, 4096, list, 1, 12,
				       0 });
	rc_pump(rc);
	rc_expect(rc, 1, false, SKUA_CQE_OK);
	if (inv == INV_FAST_BOUND) {
		mw = window(rc, 1, SKUA_MPT_MW1, MINI_PD);
		post_bind(rc, 1, &(struct bind){ mw, mw, key, RW, 0, 64 });
		rc_expect(rc, 1, false, SKUA_CQE_OK);
	}
	return inv == INV_VARIANT ? key ^ 1 : key;
}

#define NONE	SKUA_VENDOR_NONE

static const struct {
	const char *name;
	enum inv inv;
	enum skua_vendor local, remote;
} invs[] = {
	{ "registered region", INV_FAST, NONE, NONE },
	{ "region that the peer has no right to", INV_FAST_LOCAL, NONE, SKUA_VENDOR_KEY_ACCESS },
	{ "region that is free", INV_FAST_FREE, NONE, SKUA_VENDOR_KEY_INVALID },
	{ "region with a window", INV_FAST_BOUND, SKUA_VENDOR_KEY_BOUND, SKUA_VENDOR_KEY_BOUND },
	{ "region of another PD", INV_FAST_PD, SKUA_VENDOR_KEY_PD, SKUA_VENDOR_KEY_INVALID },
	{ "ordinary region", INV_MR, SKUA_VENDOR_KEY_STATE, SKUA_VENDOR_KEY_STATE },
	{ "type 1 window (o10-37.2.26)", INV_MW1, SKUA_VENDOR_KEY_STATE, SKUA_VENDOR_KEY_STATE },
	{ "type 2 window", INV_MW2, NONE, NONE },
	{ "type 2 window that is free", INV_MW2_FREE, NONE, SKUA_VENDOR_KEY_INVALID },
	{ "type 2 window of another QP", INV_MW2_OTHER, SKUA_VENDOR_KEY_QP, SKUA_VENDOR_KEY_QP },
	{ "key names nothing", INV_NONE, SKUA_VENDOR_KEY_INVALID, SKUA_VENDOR_KEY_INVALID },
	{ "key of an earlier life", INV_VARIANT, SKUA_VENDOR_KEY_INVALID,
	  SKUA_VENDOR_KEY_INVALID },
};

static void test_local_invalidate(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(invs); k++) {
		__typeof__(invs[0]) *c = &invs[k];
		struct skua_cqe cqe;
		uint32_t key, before = 0;

		print_message("%s\n", c->name);
		rc_open(&rc, NULL);
		key = inv_key(&rc, c->inv);
		if (c->inv != INV_NONE)
			before = state_of(&rc, 1, key);
		post_inv(&rc, 1, key, 0);
		rc_pump(&rc);
		cqe = rc_expect(&rc, 1, false, c->local ? SKUA_CQE_MW_BIND_ERR : SKUA_CQE_OK);
		assert_int_equal(skua_cqe_vendor(&cqe), c->local);
		assert_int_equal(rc_state(&rc, 1), c->local ? SKUA_QP_ERR : SKUA_QP_RTS);
		if (c->inv != INV_NONE)
			assert_int_equal(state_of(&rc, 1, key), c->local ? before : SKUA_MPT_FREE);
		rc_close(&rc);
	}
}

/*
 * By the peer. The data have arrived by then; a key that cannot be invalidated ends
 * the receive and the QP, and the peer hears of a remote access error.
 */
static void test_remote_invalidate(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < 2 * N(invs); k++) {
		__typeof__(invs[0]) *c = &invs[k / 2];
		uint32_t len = k & 1 ? 600 : 10, key, before = 0;
		struct skua_cqe cqe;

		print_message("%s, %u bytes\n", c->name, len);
		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
		key = inv_key(&rc, c->inv);
		if (c->inv != INV_NONE)
			before = state_of(&rc, 1, key);
		rc_fill(rc.s[0].buf, len, k);
		rc_recv(&rc, 1, 1000, 600);
		rc_recv(&rc, 1, 1000, 600);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND_INV, .len = len, .imm = key });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, c->remote ? SKUA_CQE_REM_ACCESS_ERR : SKUA_CQE_OK);
		cqe = rc_expect(&rc, 1, true, c->remote ? SKUA_CQE_REM_INV_REQ_ERR : SKUA_CQE_OK);
		assert_int_equal(skua_cqe_vendor(&cqe), c->remote);
		rc_check(rc.s[1].buf + 1000, len, k);
		if (!c->remote) {
			assert_int_equal(le32_to_cpu(cqe.byte_len), len);
			assert_true(le32_to_cpu(cqe.own) & SKUA_CQE_F_INV);
			assert_int_equal(le32_to_cpu(cqe.inv_key), key);
		} else {
			assert_false(le32_to_cpu(cqe.own) & SKUA_CQE_F_INV);
			rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
			assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RESP_REMOTE_ACCESS), 1);
		}
		rc_expect_no_event(&rc, 1);
		assert_int_equal(rc_state(&rc, 1), c->remote ? SKUA_QP_ERR : SKUA_QP_RTS);
		if (c->inv != INV_NONE)
			assert_int_equal(state_of(&rc, 1, key), c->remote ? before : SKUA_MPT_FREE);
		rc_close(&rc);
	}
}

/* --- order --- */

/*
 * A WRITE from a region that is then invalidated. Its first packet is lost: with the
 * fence it is sent again in time, without it the key is gone.
 */
static void test_local_fence(void **state)
{
	struct fault x = { .kind = LOSS };
	uint64_t list;
	uint32_t key;
	struct rc rc;

	(void)state;
	for (int fence = 0; fence < 2; fence++) {
		rc_open(&rc, NULL);
		key = fast(&rc, 0, MINI_PD, 1);
		list = page_list(&rc, 0, 1, 12, 1);
		post_reg(&rc, 0, &(struct reg){ key, RIGHTS, RC_VA, 4096, list, 1, 12, 0 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		x.at = x.seen;
		set_fault(&rc, 0, &x);
		rc_fill(page(&rc, 0, 1, 12, 1, 0), 100, 7);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE,
			      .nsge = 1, .sge[0] = { RC_VA, key, 100 } });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
		post_inv(&rc, 0, key, fence ? SKUA_WQE_F_LOCAL_FENCE : 0);
		rc_pump(&rc);
		assert_int_equal(state_of(&rc, 0, key), fence ? SKUA_MPT_VALID : SKUA_MPT_FREE);
		rc_pump_for(&rc, SEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, fence ? SKUA_CQE_OK : SKUA_CQE_LOC_PROT_ERR);
		rc_expect(&rc, 0, false, fence ? SKUA_CQE_OK : SKUA_CQE_WR_FLUSH_ERR);
		rc_expect(&rc, 0, false, fence ? SKUA_CQE_OK : SKUA_CQE_WR_FLUSH_ERR);
		if (fence)
			rc_check(rc.s[1].buf, 100, 7);
		assert_int_equal(state_of(&rc, 0, key), SKUA_MPT_FREE);
		rc_close(&rc);
	}
}

/* A fence with nothing before it but what sends nothing, and long runs of that. */
static void test_local_only(void **state)
{
	uint32_t mw;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	mw = window(&rc, 0, SKUA_MPT_MW2, MINI_PD);
	for (unsigned int k = 0; k < 20; k++) {
		struct rc_wr wr = { .op = SKUA_WQE_BIND_MW, .flags = SKUA_WQE_F_LOCAL_FENCE };

		skua_wqe_bind_set(&wr.bind, mw, mw, rc.s[0].key, RW, RC_VA, 64);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP,
								     .quiet = k & 1 });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &wr);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_LOCAL_INV,
			      .imm = mw, .flags = k & 2 ? SKUA_WQE_F_LOCAL_FENCE : 0 });
	}
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	for (unsigned int k = 0; k < 50; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	assert_int_equal(state_of(&rc, 0, mw), SKUA_MPT_FREE);
	rc_close(&rc);
}

/* What the fence waited for ends the QP: then nothing is done any more. */
static void test_fence_in_error(void **state)
{
	uint32_t mw;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .log_cq = 1 });
	mw = window(&rc, 0, SKUA_MPT_MW2, MINI_PD);
	post_bind(&rc, 0, &(struct bind){ mw, mw, rc.s[0].key, RW, 0, 8 });
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	for (unsigned int k = 0; k < 3; k++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	post_inv(&rc, 0, mw, SKUA_WQE_F_LOCAL_FENCE);
	rc_pump(&rc);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
	assert_int_equal(state_of(&rc, 0, mw), SKUA_MPT_VALID);
	rc_close(&rc);
}

/* What fails does so when all before it is complete; what is behind it is flushed. */
static void test_error_order(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_fill(rc.s[0].buf, 9000, 1);
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 9000 });
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_LOCAL_INV,
							     .imm = 0x3ff00, .quiet = true });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .roff = 100000 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[1].buf, 9000, 1);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_MW_BIND_ERR);
	assert_int_equal(skua_cqe_wqe_index(&cqe), 1);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(rc.s[1].buf[100000], 0);
	rc_close(&rc);
}

/*
 * As storage does it: register, tell the peer, who writes and invalidates or not,
 * invalidate; all of it over a bad wire, the key another one each time.
 */
static void churn(unsigned int percent, unsigned int seed)
{
	struct fault x[2] = { 0 };
	uint32_t base, key;
	struct rc rc;

	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 + seed % 3, .timeout = 8 });
	base = fast(&rc, 0, MINI_PD, 4);
	for (int i = 0; i < 2; i++) {
		x[i].kind = KINDS;
		x[i].seed = seed * 2 + i;
		for (unsigned int k = 0; k < KINDS; k++)
			x[i].rate[k] = percent * 5 / (k == LOSS ? 1 : 4);
		set_fault(&rc, i, &x[i]);
	}
	for (unsigned int n = 0; n < 80; n++) {
		uint64_t list = page_list(&rc, 0, 4, 12, 1 + n % 3);
		bool remote = n % 3 == 0;

		key = (base & ~0xffu) | (n & 0xff);
		rc_recv(&rc, 1, 0, 8);
		rc_recv(&rc, 0, 1 << 20, 8);
		post_reg(&rc, 0, &(struct reg){ key, RIGHTS, RC_VA, 4 << 12, list, 4, 12, 0 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 8, .off = 1 << 20,
						 .quiet = true });
		rc_pump_for(&rc, SEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
		rc_fill(rc.s[1].buf + (1 << 20), 3000, n);
		rc_post(&rc, 1, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 3000,
						 .off = 1 << 20, .rkey = key, .quiet = true });
		rc_post(&rc, 1, &(struct rc_wr){ .imm = key, .quiet = n % 5,
				.op = remote ? SKUA_WQE_SEND_INV : SKUA_WQE_SEND });
		rc_pump_for(&rc, SEC);
		if (n % 5 == 0)
			rc_expect(&rc, 1, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, true, SKUA_CQE_OK);
		rc_check(page(&rc, 0, 4, 12, 1 + n % 3, 0), 3000, n);
		assert_int_equal(state_of(&rc, 0, key), remote ? SKUA_MPT_FREE : SKUA_MPT_VALID);
		/* From the region itself, then it goes; the fence makes that right. */
		if (!remote) {
			rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .roff = 2 << 20,
				.nsge = 1, .sge[0] = { RC_VA, key, 3000 }, .quiet = true });
			post_inv(&rc, 0, key, SKUA_WQE_F_LOCAL_FENCE);
			rc_pump_for(&rc, SEC);
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
			rc_check(rc.s[1].buf + (2 << 20), 3000, n);
		}
		assert_int_equal(state_of(&rc, 0, key), SKUA_MPT_FREE);
	}
	for (int i = 0; i < 2; i++) {
		free(x[i].hold);
		rc_expect_none(&rc, i, false);
		rc_expect_none(&rc, i, true);
		assert_int_equal(rc_state(&rc, i), SKUA_QP_RTS);
	}
	rc_close(&rc);
}

static void test_churn(void **state)
{
	static const unsigned int percent[] = { 0, 3, 10 };

	(void)state;
	for (unsigned int k = 0; k < N(percent); k++) {
		for (unsigned int seed = 1; seed <= 3; seed++)
			churn(percent[k], seed * 7 + k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_local_invalidate),
		cmocka_unit_test(test_remote_invalidate),
		cmocka_unit_test(test_local_fence),
		cmocka_unit_test(test_local_only),
		cmocka_unit_test(test_fence_in_error),
		cmocka_unit_test(test_error_order),
		cmocka_unit_test(test_churn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
