// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows: those that work, binds that are refused, and regions that have some.
 * The tables follow the IBTA's chapter 10.6.7 (C10-72 to C10-75 and o10-37).
 */
#include "rc_keys.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))

/* --- windows that work --- */

static void test_type1(void **state)
{
	struct mini_qp qp[2];
	uint32_t mw;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	second(&rc, qp);
	mw = window(&rc, 1, SKUA_MPT_MW1, MINI_PD);
	post_bind(&rc, 1, &(struct bind){ mw, mw + 1, rc.s[1].key, RW, 4096, 4096 });
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	assert_int_equal(state_of(&rc, 1, mw), SKUA_MPT_VALID);
	rc_fill(rc.s[0].buf, 8, 1);
	expect_write(&rc, mw + 1, 4096, SKUA_CQE_OK);
	expect_write(&rc, mw + 1, 8184, SKUA_CQE_OK);
	rc_check(rc.s[1].buf + 4096, 8, 1);
	rc_check(rc.s[1].buf + 8184, 8, 1);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8, .off = 64, .roff = 8184,
					 .rkey = mw + 1 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[0].buf + 64, 8, 1);
	/* Any QP of the PD. */
	write_qp(&rc, &qp[0], mw + 1, 4104, SKUA_CQE_OK);
	/* Bound again, elsewhere: the old key is gone, the new one leads there. */
	post_bind(&rc, 1, &(struct bind){ mw + 1, mw + 2, rc.s[1].key, RW, 0, 8 });
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	expect_write(&rc, mw + 2, 0, SKUA_CQE_OK);
	write_qp(&rc, &qp[0], mw + 1, 4096, SKUA_CQE_REM_ACCESS_ERR);
	/* Unbound, with a region that does not matter. */
	post_bind(&rc, 1, &(struct bind){ mw + 2, mw + 3, 0, 0, 0, 0 });
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	assert_int_equal(state_of(&rc, 1, mw), SKUA_MPT_FREE);
	expect_write(&rc, mw + 3, 0, SKUA_CQE_REM_ACCESS_ERR);
	rc_close(&rc);
}

static void test_type2(void **state)
{
	struct mini_qp qp[2];
	uint32_t mw;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	second(&rc, qp);
	mw = window(&rc, 1, SKUA_MPT_MW2, MINI_PD);
	post_bind(&rc, 1, &(struct bind){ mw, mw + 1, rc.s[1].key, RIGHTS, 4096, 4096 });
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	expect_write(&rc, mw + 1, 4096, SKUA_CQE_OK);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FAA, .len = 8, .roff = 8184,
					 .rkey = mw + 1, .atomic = { { 5, 0 } } });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(rc.s[1].buf[8184], 5);
	/* Of the QP that bound it alone. */
	write_qp(&rc, &qp[0], mw + 1, 4096, SKUA_CQE_REM_ACCESS_ERR);
	/* Invalidated and bound anew by the same QP, with another key. */
	post_inv(&rc, 1, mw + 1, 0);
	rc_pump(&rc);
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	assert_int_equal(state_of(&rc, 1, mw), SKUA_MPT_FREE);
	post_bind(&rc, 1, &(struct bind){ mw + 1, mw + 9, rc.s[1].key, RW, 0, 64 });
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	expect_write(&rc, mw + 9, 56, SKUA_CQE_OK);
	expect_write(&rc, mw + 9, 57, SKUA_CQE_REM_ACCESS_ERR);
	rc_close(&rc);
}

/* Addressed from 0; the bounds are the window's. */
static void test_zero_based(void **state)
{
	static const struct {
		uint64_t va;
		enum skua_cqe_status status;
	} at[] = { { 0, SKUA_CQE_OK }, { 4088, SKUA_CQE_OK }, { 4089, SKUA_CQE_REM_ACCESS_ERR },
		   { RC_VA + 4096, SKUA_CQE_REM_ACCESS_ERR }, { ~0ull - 7, SKUA_CQE_REM_ACCESS_ERR } };
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(at); k++) {
		uint32_t mw;

		rc_open(&rc, NULL);
		mw = window(&rc, 1, SKUA_MPT_MW2, MINI_PD);
		post_bind(&rc, 1, &(struct bind){ mw, mw + 1, rc.s[1].key,
						  RW | SKUA_ACCESS_ZERO_BASED, 4096, 4096 });
		rc_expect(&rc, 1, false, SKUA_CQE_OK);
		rc_fill(rc.s[0].buf, 8, k);
		expect_write(&rc, mw + 1, at[k].va - RC_VA, at[k].status);
		if (at[k].status == SKUA_CQE_OK)
			rc_check(rc.s[1].buf + 4096 + at[k].va, 8, k);
		else
			rc_check(rc.s[1].buf + 9000, 0, 0);
		rc_close(&rc);
	}
}

/* The window's rights count, not the region's, and a window has no L_Key. */
static void test_window_rights(void **state)
{
	struct rc rc;
	uint32_t mr, mw;

	(void)state;
	for (unsigned int k = 0; k < 4; k++) {
		rc_open(&rc, NULL);
		mr = region(&rc, 1, MINI_PD, SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_MW_BIND);
		mw = window(&rc, 1, SKUA_MPT_MW2, MINI_PD);
		post_bind(&rc, 1, &(struct bind){ mw, mw + 1, mr, k & 1 ?
			  SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_LOCAL_WRITE :
			  SKUA_ACCESS_REMOTE_READ, 0, 64 });
		rc_expect(&rc, 1, false, SKUA_CQE_OK);
		rc_post(&rc, 0, &(struct rc_wr){ .op = k & 2 ? SKUA_WQE_READ : SKUA_WQE_WRITE,
						 .len = 8, .rkey = mw + 1 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, !(k & 1) == !!(k & 2) ? SKUA_CQE_OK :
								 SKUA_CQE_REM_ACCESS_ERR);
		rc_close(&rc);
	}
	rc_open(&rc, NULL);
	mw = window(&rc, 1, SKUA_MPT_MW1, MINI_PD);
	post_bind(&rc, 1, &(struct bind){ mw, mw + 1, rc.s[1].key, RW, 0, 64 });
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	rc_post(&rc, 1, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .nsge = 1,
					 .sge[0] = { RC_VA, mw + 1, 8 } });
	rc_pump(&rc);
	rc_expect(&rc, 1, false, SKUA_CQE_LOC_PROT_ERR);
	rc_close(&rc);
}

/* --- binds that are refused --- */

enum mr { MR_GOOD, MR_NONE, MR_VARIANT, MR_PD, MR_NO_BIND, MR_NO_WRITE, MR_ZERO, MR_FREE,
	  MR_WINDOW, MR_NO_FLUSH };
enum mw { MW_1, MW_2, MW_NONE, MW_PD, MW_BOUND_2, MW_MR };

static const struct {
	const char *name;
	enum mw mw;
	enum mr mr;
	uint32_t access;
	uint64_t off, len;
	bool other_index;
	enum skua_vendor vendor;
} binds[] = {
	{ "window names nothing", MW_NONE, MR_GOOD, RW, 0, 8, false, SKUA_VENDOR_KEY_INVALID },
	{ "window is a region", MW_MR, MR_GOOD, RW, 0, 8, false, SKUA_VENDOR_KEY_STATE },
	{ "window of another PD (C10-72)", MW_PD, MR_GOOD, RW, 0, 8, false, SKUA_VENDOR_KEY_PD },
	{ "type 2 is bound (o10-37.2.30)", MW_BOUND_2, MR_GOOD, RW, 0, 8, false,
	  SKUA_VENDOR_KEY_STATE },
	{ "type 2 of no length (o10-37.2.40)", MW_2, MR_GOOD, RW, 0, 0, false,
	  SKUA_VENDOR_KEY_BOUNDS },
	{ "new key of another index", MW_2, MR_GOOD, RW, 0, 8, true, SKUA_VENDOR_KEY_INVALID },
	{ "right that no window has", MW_1, MR_GOOD, SKUA_ACCESS_MW_BIND, 0, 8, false,
	  SKUA_VENDOR_KEY_ACCESS },
	{ "region names nothing", MW_2, MR_NONE, RW, 0, 8, false, SKUA_VENDOR_KEY_INVALID },
	{ "region of an earlier life", MW_2, MR_VARIANT, RW, 0, 8, false,
	  SKUA_VENDOR_KEY_INVALID },
	{ "region of another PD (C10-72)", MW_2, MR_PD, RW, 0, 8, false, SKUA_VENDOR_KEY_PD },
	{ "type 1 too", MW_1, MR_PD, RW, 0, 8, false, SKUA_VENDOR_KEY_PD },
	{ "region is a window", MW_2, MR_WINDOW, RW, 0, 8, false, SKUA_VENDOR_KEY_STATE },
	{ "region is free", MW_2, MR_FREE, RW, 0, 8, false, SKUA_VENDOR_KEY_STATE },
	{ "region is zero based (C10-73)", MW_2, MR_ZERO, RW, 0, 8, false,
	  SKUA_VENDOR_KEY_STATE },
	{ "region without bind right (C10-73)", MW_2, MR_NO_BIND, RW, 0, 8, false,
	  SKUA_VENDOR_KEY_ACCESS },
	{ "write without local write (C10-74)", MW_2, MR_NO_WRITE, SKUA_ACCESS_REMOTE_WRITE, 0, 8,
	  false, SKUA_VENDOR_KEY_ACCESS },
	{ "atomic without local write (C10-74)", MW_1, MR_NO_WRITE, SKUA_ACCESS_REMOTE_ATOMIC, 0,
	  8, false, SKUA_VENDOR_KEY_ACCESS },
	{ "flush without the region's right", MW_1, MR_NO_FLUSH, SKUA_ACCESS_FLUSH_GLOBAL, 0, 8,
	  false, SKUA_VENDOR_KEY_ACCESS },
	{ "one byte too far (C10-75)", MW_2, MR_GOOD, RW, 1, 65536, false,
	  SKUA_VENDOR_KEY_BOUNDS },
	{ "before the region (C10-75)", MW_2, MR_GOOD, RW, ~0ull, 8, false,
	  SKUA_VENDOR_KEY_BOUNDS },
	{ "of all addresses (C10-75)", MW_2, MR_GOOD, RW | SKUA_ACCESS_ZERO_BASED, 0, ~0ull,
	  false, SKUA_VENDOR_KEY_BOUNDS },
};

static uint32_t bind_mw(struct rc *rc, enum mw mw, uint32_t mr)
{
	uint32_t key;

	switch (mw) {
	case MW_1:
		return window(rc, 1, SKUA_MPT_MW1, MINI_PD);
	case MW_NONE:
		return 0x3ff00;
	case MW_PD:
		return window(rc, 1, SKUA_MPT_MW2, MINI_PD + 1);
	case MW_MR:
		return region(rc, 1, MINI_PD, RIGHTS);
	case MW_BOUND_2:
		key = window(rc, 1, SKUA_MPT_MW2, MINI_PD);
		post_bind(rc, 1, &(struct bind){ key, key, mr, RW, 0, 8 });
		rc_expect(rc, 1, false, SKUA_CQE_OK);
		return key;
	default:
		return window(rc, 1, SKUA_MPT_MW2, MINI_PD);
	}
}

static uint32_t bind_mr(struct rc *rc, enum mr mr)
{
	const uint32_t all = RIGHTS | SKUA_ACCESS_MW_BIND;

	switch (mr) {
	case MR_NONE:
		return 0x3fe00;
	case MR_VARIANT:
		return region(rc, 1, MINI_PD, all) ^ 1;
	case MR_PD:
		return region(rc, 1, MINI_PD + 1, all);
	case MR_NO_BIND:
		return region(rc, 1, MINI_PD, RIGHTS);
	case MR_NO_WRITE:
		return region(rc, 1, MINI_PD, SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_MW_BIND);
	case MR_ZERO:
		return region(rc, 1, MINI_PD, all | SKUA_ACCESS_ZERO_BASED);
	case MR_FREE:
		return fast(rc, 1, MINI_PD, 8);
	case MR_WINDOW:
		return window(rc, 1, SKUA_MPT_MW1, MINI_PD);
	default:
		return region(rc, 1, MINI_PD, all);
	}
}

static void test_bind_refused(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(binds); k++) {
		__typeof__(binds[0]) *c = &binds[k];
		struct skua_mpt before, after;
		struct skua_cqe cqe;
		uint32_t mr, mw;

		print_message("%s\n", c->name);
		rc_open(&rc, NULL);
		mr = bind_mr(&rc, c->mr);
		mw = bind_mw(&rc, c->mw, mr);
		if (c->mw != MW_NONE)
			before = query(&rc, 1, mw);
		post_bind(&rc, 1, &(struct bind){ mw, (mw + 1) ^ (c->other_index ? 0x100 : 0), mr,
						  c->access, c->off, c->len });
		cqe = rc_expect(&rc, 1, false, SKUA_CQE_MW_BIND_ERR);
		assert_int_equal(skua_cqe_vendor(&cqe), c->vendor);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		rc_expect_no_event(&rc, 1);
		if (c->mw != MW_NONE) {
			after = query(&rc, 1, mw);
			assert_memory_equal(&before, &after, sizeof(after));
		}
		if (c->mr == MR_GOOD)
			assert_int_equal(le32_to_cpu(query(&rc, 1, mr).windows),
					 c->mw == MW_BOUND_2);
		rc_close(&rc);
	}
}

/* --- regions with windows --- */

static void test_counting(void **state)
{
	uint32_t mw[3], mr, free_mr;
	struct skua_mpt mpt;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	mr = region(&rc, 1, MINI_PD, RIGHTS | SKUA_ACCESS_MW_BIND);
	for (unsigned int k = 0; k < 3; k++) {
		mw[k] = window(&rc, 1, k ? SKUA_MPT_MW2 : SKUA_MPT_MW1, MINI_PD);
		post_bind(&rc, 1, &(struct bind){ mw[k], mw[k] + 1, mr, RW, k * 64, 64 });
		rc_expect(&rc, 1, false, SKUA_CQE_OK);
		mpt = query(&rc, 1, mr);
		assert_int_equal(le32_to_cpu(mpt.windows), k + 1);
	}
	mpt.windows = 0;
	for (unsigned int k = 0; k < 3; k++) {
		assert_int_equal(destroy(&rc, 1, mr), SKUA_CMD_ST_BUSY);
		assert_int_equal(mini_cmd(&rc.s[1].m, SKUA_CMD_MODIFY_MPT, &mpt, sizeof(mpt), NULL,
					  0), SKUA_CMD_ST_BUSY);
		/* A window is neither modified, nor is it in the way of its own end. */
		assert_int_equal(mini_cmd(&rc.s[1].m, SKUA_CMD_MODIFY_MPT,
					  &(struct skua_mpt){ .key = cpu_to_le32(mw[k]),
						.flags = mpt.flags }, sizeof(mpt), NULL, 0),
				 SKUA_CMD_ST_BAD_STATE);
		if (k == 0) {
			post_bind(&rc, 1, &(struct bind){ mw[0], mw[0] + 2, 0, 0, 0, 0 });
			rc_expect(&rc, 1, false, SKUA_CQE_OK);
		} else if (k == 1) {
			post_inv(&rc, 1, mw[1] + 1, 0);
			rc_pump(&rc);
			rc_expect(&rc, 1, false, SKUA_CQE_OK);
		} else {
			assert_int_equal(destroy(&rc, 1, mw[2]), SKUA_CMD_ST_OK);
		}
	}
	assert_int_equal(le32_to_cpu(query(&rc, 1, mr).windows), 0);
	assert_int_equal(mini_cmd(&rc.s[1].m, SKUA_CMD_MODIFY_MPT, &mpt, sizeof(mpt), NULL, 0), 0);
	/* From one region to another: type 1 moves its count. */
	free_mr = region(&rc, 1, MINI_PD, RIGHTS | SKUA_ACCESS_MW_BIND);
	post_bind(&rc, 1, &(struct bind){ mw[0], mw[0] + 3, mr, RW, 0, 64 });
	post_bind(&rc, 1, &(struct bind){ mw[0], mw[0] + 4, free_mr, RW, 0, 64 });
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	rc_expect(&rc, 1, false, SKUA_CQE_OK);
	assert_int_equal(destroy(&rc, 1, mr), SKUA_CMD_ST_OK);
	assert_int_equal(destroy(&rc, 1, free_mr), SKUA_CMD_ST_BUSY);
	assert_int_equal(destroy(&rc, 1, mw[0]), SKUA_CMD_ST_OK);
	assert_int_equal(destroy(&rc, 1, free_mr), SKUA_CMD_ST_OK);
	rc_close(&rc);
}

/* What CREATE_MPT takes of windows and of regions to be registered later. */
static void test_create(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	for (unsigned int k = 0; k < 12; k++) {
		struct skua_mpt mw = {
			.key = cpu_to_le32(rc.s[0].m.next_mpt << 8),
			.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
				 le32_encode_bits(SKUA_MPT_MW2, SKUA_MPT_TYPE),
		}, mr = mw;

		mr.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
			   cpu_to_le32(SKUA_MPT_FAST_REG);
		mr.xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE);
		mr.npages = cpu_to_le32(8);
		switch (k) {
		case 0:
			mw.flags ^= le32_encode_bits(SKUA_MPT_FREE ^ SKUA_MPT_VALID,
						     SKUA_MPT_STATE);
			mr.flags ^= mw.flags ^ le32_encode_bits(SKUA_MPT_MW2, SKUA_MPT_TYPE) ^
				    le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE);
			break;
		case 1:
			mw.va = cpu_to_le64(1), mr.va = cpu_to_le64(1);
			break;
		case 2:
			mw.len = cpu_to_le64(1), mr.len = cpu_to_le64(1);
			break;
		case 3:
			mw.access = cpu_to_le32(1), mr.access = cpu_to_le32(1);
			break;
		case 4:
			mw.parent = cpu_to_le32(1), mr.parent = cpu_to_le32(1);
			break;
		case 5:
			mw.qpn = cpu_to_le32(1), mr.qpn = cpu_to_le32(1);
			break;
		case 6:
			mw.npages = cpu_to_le32(1), mr.npages = cpu_to_le32(1 << 17);
			break;
		case 7:
			mw.page[7] = cpu_to_le64(1), mr.page[0] = cpu_to_le64(1);
			break;
		case 8:
			mw.flags |= cpu_to_le32(SKUA_MPT_NULL), mr.flags |= cpu_to_le32(SKUA_MPT_NULL);
			break;
		case 9:
			mw.xlat.base = cpu_to_le64(8), mr.xlat.base = cpu_to_le64(4);
			break;
		case 10:
			mw.flags |= cpu_to_le32(SKUA_MPT_FAST_REG), mr.xlat.mode = 0;
			break;
		case 11:
			mw.windows = cpu_to_le32(1), mr.xlat.base = cpu_to_le64(1 << MINI_LOG_MTT);
			break;
		}
		assert_int_equal(mini_cmd(&rc.s[0].m, SKUA_CMD_CREATE_MPT, &mw, sizeof(mw), NULL, 0),
				 SKUA_CMD_ST_BAD_PARAM);
		assert_int_equal(mini_cmd(&rc.s[0].m, SKUA_CMD_CREATE_MPT, &mr, sizeof(mr), NULL, 0),
				 SKUA_CMD_ST_BAD_PARAM);
	}
	/* A FREE region gives no access. */
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .nsge = 1,
					 .sge[0] = { 0, fast(&rc, 0, MINI_PD, 8), 8 } });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_type1),
		cmocka_unit_test(test_type2),
		cmocka_unit_test(test_zero_based),
		cmocka_unit_test(test_window_rights),
		cmocka_unit_test(test_bind_refused),
		cmocka_unit_test(test_counting),
		cmocka_unit_test(test_create),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
