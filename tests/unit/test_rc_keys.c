// SPDX-License-Identifier: GPL-2.0
/*
 * Work requests on keys: memory windows, fast registration, invalidation from here
 * and from the peer. The tables follow the IBTA's chapters 10.6.7 (memory windows,
 * C10-72 to C10-75 and o10-37), 10.6.5 (fast registration), 10.8.3 (ordering) and
 * 9.4.1.1 (SEND with invalidate).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "rc_fault.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull

#define RIGHTS	(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | \
		 SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC)
#define RW	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ)

/* --- entries --- */

static uint32_t create(struct rc *rc, int i, struct skua_mpt *mpt)
{
	struct mini *m = &rc->s[i].m;

	mpt->key = cpu_to_le32(m->next_mpt++ << 8 | 0x77);
	mini_ok(m, SKUA_CMD_CREATE_MPT, mpt, sizeof(*mpt));
	return le32_to_cpu(mpt->key);
}

static uint32_t window(struct rc *rc, int i, uint32_t type, uint32_t pd)
{
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
			 le32_encode_bits(type, SKUA_MPT_TYPE),
		.pd = cpu_to_le32(pd),
	};

	return create(rc, i, &mpt);
}

/* A region of the first 64 KiB of the buffer. */
static uint32_t region(struct rc *rc, int i, uint32_t pd, uint32_t access)
{
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(access),
		.pd = cpu_to_le32(pd),
		.va = cpu_to_le64(access & SKUA_ACCESS_ZERO_BASED ? 0 : RC_VA),
		.len = cpu_to_le64(65536),
		.xlat.base = cpu_to_le64(rc->s[i].bus),
	};

	return create(rc, i, &mpt);
}

/* One for fast registration. */
static uint32_t fast(struct rc *rc, int i, uint32_t pd, uint32_t npages)
{
	struct mini *m = &rc->s[i].m;
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
			 cpu_to_le32(SKUA_MPT_FAST_REG),
		.pd = cpu_to_le32(pd),
		.xlat.base = cpu_to_le64(m->next_mtt),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE),
		.npages = cpu_to_le32(npages),
	};

	m->next_mtt += (npages + SKUA_MTT_GROUP - 1) / SKUA_MTT_GROUP * SKUA_MTT_GROUP;
	return create(rc, i, &mpt);
}

static struct skua_mpt query(struct rc *rc, int i, uint32_t key)
{
	struct skua_mpt mpt;

	assert_int_equal(mini_index(&rc->s[i].m, SKUA_CMD_QUERY_MPT, key, &mpt, sizeof(mpt)), 0);
	return mpt;
}

static uint32_t state_of(struct rc *rc, int i, uint32_t key)
{
	struct skua_mpt mpt = query(rc, i, key);

	return le32_get_bits(mpt.flags, SKUA_MPT_STATE);
}

static int destroy(struct rc *rc, int i, uint32_t key)
{
	return mini_index(&rc->s[i].m, SKUA_CMD_DESTROY_MPT, key, NULL, 0);
}

/* --- work requests --- */

struct bind {
	uint32_t mw, new_key, mr, access;
	uint64_t off;
	uint64_t len;
};

static void post_bind_qp(struct rc *rc, int i, struct mini_qp *qp, const struct bind *b)
{
	struct rc_wr wr = { .op = SKUA_WQE_BIND_MW };

	skua_wqe_bind_set(&wr.bind, b->mw, b->new_key, b->mr, b->access, RC_VA + b->off, b->len);
	rc_post_quiet(rc, i, qp, &wr);
	mini_ring(&rc->s[i].m, qp);
}

static void post_bind(struct rc *rc, int i, const struct bind *b)
{
	post_bind_qp(rc, i, &rc->s[i].qp, b);
	rc_pump(rc);
}

static void post_inv(struct rc *rc, int i, uint32_t key, uint32_t flags)
{
	rc_post(rc, i, &(struct rc_wr){ .op = SKUA_WQE_LOCAL_INV, .imm = key, .flags = flags });
}

/* What the peer of @qp sees: a WRITE of 8 bytes at offset @off of the address space. */
static void write_qp(struct rc *rc, struct mini_qp *qp, uint32_t rkey, uint64_t off,
		     enum skua_cqe_status status)
{
	struct skua_cqe cqe;

	rc_post_quiet(rc, 0, qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .rkey = rkey,
						  .roff = off });
	mini_ring(&rc->s[0].m, qp);
	rc_pump(rc);
	cqe = rc_expect(rc, 0, false, status);
	assert_int_equal(le32_to_cpu(cqe.qpn), qp->qpn);
}

static void expect_write(struct rc *rc, uint32_t rkey, uint64_t off, enum skua_cqe_status status)
{
	write_qp(rc, &rc->s[0].qp, rkey, off, status);
}

/* A second connection. */
static void second(struct rc *rc, struct mini_qp qp[2])
{
	const struct rc_opt opt = { 0 };

	for (int i = 0; i < 2; i++)
		rc_qp(rc, i, &qp[i], &opt);
	for (int i = 0; i < 2; i++) {
		struct skua_qp_attr a = rc_attr(rc, i, &opt, qp[1 - i].qpn);

		mini_rc_to_rts(&rc->s[i].m, &qp[i], &a);
	}
}

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

/* --- fast registration --- */

struct reg {
	uint32_t key, access;
	uint64_t va, len, list;
	uint32_t npages, log;
	uint64_t offset;
};

static void post_reg(struct rc *rc, int i, const struct reg *r)
{
	struct rc_wr wr = { .op = SKUA_WQE_REG_MR };

	skua_wqe_reg_set(&wr.reg, r->key, r->access, r->va, r->len);
	skua_wqe_reg_pages(&wr.reg, r->list, r->npages, r->log, r->offset);
	rc_post(rc, i, &wr);
}

/* Offset of the first page of the buffer of side @i. */
static uint64_t first_page(struct rc *rc, int i, uint32_t log)
{
	return -rc->s[i].bus & ((1ull << log) - 1);
}

/* A list of pages of the buffer of side @i, @step pages apart, backwards. */
static uint64_t page_list(struct rc *rc, int i, uint32_t n, uint32_t log, uint32_t step)
{
	uint64_t list = fake_alloc(&rc->s[i].f, n * 8 + 8, 64);
	__le64 *p = fake_ptr(&rc->s[i].f, list);

	for (uint32_t k = 0; k < n; k++)
		p[k] = cpu_to_le64(rc->s[i].bus + first_page(rc, i, log) +
				   ((uint64_t)(n - k) * step << log));
	return list;
}

/* The n-th page of that list, as the test sees it. */
static uint8_t *page(struct rc *rc, int i, uint32_t n, uint32_t log, uint32_t step, uint32_t k)
{
	return rc->s[i].buf + first_page(rc, i, log) + ((uint64_t)(n - k) * step << log);
}

static void test_register(void **state)
{
	static const struct {
		uint32_t cap, n, log, offset;
	} shapes[] = { { 1, 1, 12, 0 }, { 9, 9, 12, 100 }, { 600, 530, 12, 4095 },
		       { 8, 3, 16, 5000 }, { 64, 2, 20, 0 } };
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(shapes); k++) {
		__typeof__(shapes[0]) *c = &shapes[k];
		uint32_t len = (c->n << c->log) - c->offset;
		const uint64_t va = 0x1234567 + RC_VA;
		uint64_t list;
		uint32_t key;

		rc_open(&rc, NULL);
		/* MTT entries that were used before, and are cached. */
		rc.s[1].m.next_mtt = 0;
		key = fast(&rc, 1, MINI_PD, c->cap);
		list = page_list(&rc, 1, c->n, c->log, 1);
		post_reg(&rc, 1, &(struct reg){ key + 1, RIGHTS, va, len, list, c->n, c->log,
						c->offset });
		rc_pump(&rc);
		rc_expect(&rc, 1, false, SKUA_CQE_OK);
		/* The list is the software's again. */
		memset(fake_ptr(&rc.s[1].f, list), 0xff, c->n * 8);
		rc_fill(rc.s[0].buf, len, k);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = len,
						 .rkey = key + 1, .roff = 0x1234567 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		for (uint32_t p = 0, at = 0; p < c->n; p++) {
			uint32_t from = p ? 0 : c->offset;
			uint32_t bytes = (1u << c->log) - from;

			assert_memory_equal(page(&rc, 1, c->n, c->log, 1, p) + from,
					    rc.s[0].buf + at, bytes);
			at += bytes;
		}
		expect_write(&rc, key + 1, 0x1234567 + len - 7, SKUA_CQE_REM_ACCESS_ERR);
		rc_close(&rc);
	}
}

/* Again and again, elsewhere each time, under another key each time. */
static void test_register_again(void **state)
{
	uint32_t key;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	key = fast(&rc, 1, MINI_PD, 20);
	for (uint32_t k = 0; k < 40; k++) {
		uint32_t now = (key & ~0xffu) | ((key + k) & 0xff), step = 1 + k % 5;
		uint64_t list = page_list(&rc, 1, 20, 12, step);

		post_reg(&rc, 1, &(struct reg){ now, RIGHTS, RC_VA, 20 << 12, list, 20, 12, 0 });
		rc_pump(&rc);
		rc_expect(&rc, 1, false, SKUA_CQE_OK);
		rc_fill(rc.s[0].buf, 8, k);
		expect_write(&rc, now, 13 << 12, SKUA_CQE_OK);
		rc_check(page(&rc, 1, 20, 12, step, 13), 8, k);
		post_inv(&rc, 1, now, k & 1 ? SKUA_WQE_F_LOCAL_FENCE : SKUA_WQE_F_FENCE);
		rc_pump(&rc);
		rc_expect(&rc, 1, false, SKUA_CQE_OK);
		assert_int_equal(state_of(&rc, 1, key), SKUA_MPT_FREE);
	}
	expect_write(&rc, key, 0, SKUA_CQE_REM_ACCESS_ERR);
	assert_int_equal(destroy(&rc, 1, key), SKUA_CMD_ST_OK);
	rc_close(&rc);
}

enum fr { FR_GOOD, FR_NONE, FR_PD, FR_MR, FR_MW, FR_VALID };

static const struct {
	const char *name;
	enum fr fr;
	uint32_t access;
	uint64_t va, len;
	int64_t list;		/* from where it is */
	uint32_t npages, log;
	uint64_t offset;
	uint64_t dirt;		/* in a page's address */
	enum skua_cqe_status status;
	enum skua_vendor vendor;
} regs[] = {
	{ "key names nothing", FR_NONE, RIGHTS, RC_VA, 4096, 0, 1, 12, 0, 0, SKUA_CQE_MW_BIND_ERR,
	  SKUA_VENDOR_KEY_INVALID },
	{ "another PD", FR_PD, RIGHTS, RC_VA, 4096, 0, 1, 12, 0, 0, SKUA_CQE_MW_BIND_ERR,
	  SKUA_VENDOR_KEY_PD },
	{ "an ordinary region", FR_MR, RIGHTS, RC_VA, 4096, 0, 1, 12, 0, 0, SKUA_CQE_MW_BIND_ERR,
	  SKUA_VENDOR_KEY_STATE },
	{ "a window", FR_MW, RIGHTS, RC_VA, 4096, 0, 1, 12, 0, 0, SKUA_CQE_MW_BIND_ERR,
	  SKUA_VENDOR_KEY_STATE },
	{ "it is valid", FR_VALID, RIGHTS, RC_VA, 4096, 0, 1, 12, 0, 0, SKUA_CQE_MW_BIND_ERR,
	  SKUA_VENDOR_KEY_STATE },
	{ "right that nobody defines", FR_GOOD, 1 << 20, RC_VA, 4096, 0, 1, 12, 0, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_ACCESS },
	{ "more pages than the region has", FR_GOOD, RIGHTS, RC_VA, 4096, 0, 9, 12, 0, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "length beyond the pages", FR_GOOD, RIGHTS, RC_VA, 4097, 0, 1, 12, 0, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "length and offset beyond them", FR_GOOD, RIGHTS, RC_VA, 4096, 0, 1, 12, 1, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "offset beyond the first page", FR_GOOD, RIGHTS, RC_VA, 8, 0, 2, 12, 4096, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "length of all addresses", FR_GOOD, RIGHTS, RC_VA, ~0ull, 0, 1, 12, 1, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "addresses wrap round", FR_GOOD, RIGHTS, ~0ull - 8, 4096, 0, 1, 12, 0, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "pages too small", FR_GOOD, RIGHTS, RC_VA, 8, 0, 1, 11, 0, 0, SKUA_CQE_MW_BIND_ERR,
	  SKUA_VENDOR_KEY_PAGES },
	{ "pages too large", FR_GOOD, RIGHTS, RC_VA, 8, 0, 1, 64, 0, 0, SKUA_CQE_MW_BIND_ERR,
	  SKUA_VENDOR_KEY_PAGES },
	{ "page address not of the page size", FR_GOOD, RIGHTS, RC_VA, 8, 0, 1, 13, 0, 4096,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "flags in a page address", FR_GOOD, RIGHTS, RC_VA, 8, 0, 1, 12, 0, 1,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_PAGES },
	{ "list not reachable", FR_GOOD, RIGHTS, RC_VA, 8, 1ll << 40, 1, 12, 0, 0,
	  SKUA_CQE_MW_BIND_ERR, SKUA_VENDOR_KEY_DMA },
	{ "list not aligned", FR_GOOD, RIGHTS, RC_VA, 8, 8, 1, 12, 0, 0, SKUA_CQE_LOC_QP_OP_ERR,
	  SKUA_VENDOR_WQE_FORMAT },
};

static uint32_t reg_key(struct rc *rc, enum fr fr, uint64_t list)
{
	uint32_t key;

	switch (fr) {
	case FR_NONE:
		return 0x3ff00;
	case FR_PD:
		return fast(rc, 0, MINI_PD + 1, 8);
	case FR_MR:
		return region(rc, 0, MINI_PD, RIGHTS);
	case FR_MW:
		return window(rc, 0, SKUA_MPT_MW2, MINI_PD);
	case FR_VALID:
		key = fast(rc, 0, MINI_PD, 8);
		post_reg(rc, 0, &(struct reg){ key, RIGHTS, 0, 4096, list, 1, 12, 0 });
		rc_pump(rc);
		rc_expect(rc, 0, false, SKUA_CQE_OK);
		return key;
	default:
		return fast(rc, 0, MINI_PD, 8);
	}
}

static void test_register_refused(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(regs); k++) {
		__typeof__(regs[0]) *c = &regs[k];
		struct skua_mpt before, after;
		struct skua_cqe cqe;
		uint64_t list;
		uint32_t key;

		print_message("%s\n", c->name);
		rc_open(&rc, NULL);
		list = page_list(&rc, 0, 9, 12, 1);
		key = reg_key(&rc, c->fr, list);
		((__le64 *)fake_ptr(&rc.s[0].f, list))[0] = cpu_to_le64((rc.s[0].bus & ~0xffffull) |
									c->dirt);
		if (c->fr != FR_NONE)
			before = query(&rc, 0, key);
		post_reg(&rc, 0, &(struct reg){ key + 1, c->access, c->va, c->len, list + c->list,
						c->npages, c->log, c->offset });
		rc_pump(&rc);
		cqe = rc_expect(&rc, 0, false, c->status);
		assert_int_equal(skua_cqe_vendor(&cqe), c->vendor);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		if (c->fr != FR_NONE) {
			after = query(&rc, 0, key);
			assert_memory_equal(&before, &after, sizeof(after));
		}
		rc_close(&rc);
	}
}

/* Who may not name bus addresses may not register them. */
static void test_register_user(void **state)
{
	struct skua_cmd_create_qp_in in;
	struct skua_qp_attr a;
	struct skua_cqe cqe;
	struct mini_qp qp;
	uint64_t list;
	uint32_t key;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	in = mini_qp_in(&rc.s[0].m, &qp, SKUA_QP_RC, &rc.s[0].scq, &rc.s[0].rcq, 6, 6, 2);
	in.sq.flags &= ~cpu_to_le32(SKUA_QP_F_RESERVED_LKEY);
	mini_ok(&rc.s[0].m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	a = rc_attr(&rc, 0, &(struct rc_opt){ 0 }, rc.s[1].qp.qpn);
	mini_rc_to_rts(&rc.s[0].m, &qp, &a);
	rc.s[0].qp = qp;
	list = page_list(&rc, 0, 1, 12, 1);
	key = fast(&rc, 0, MINI_PD, 1);
	post_reg(&rc, 0, &(struct reg){ key, RIGHTS, RC_VA, 4096, list, 1, 12, 0 });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_OPCODE);
	assert_int_equal(state_of(&rc, 0, key), SKUA_MPT_FREE);
	rc_close(&rc);
}

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
		cmocka_unit_test(test_type1),
		cmocka_unit_test(test_type2),
		cmocka_unit_test(test_zero_based),
		cmocka_unit_test(test_window_rights),
		cmocka_unit_test(test_bind_refused),
		cmocka_unit_test(test_counting),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_register),
		cmocka_unit_test(test_register_again),
		cmocka_unit_test(test_register_refused),
		cmocka_unit_test(test_register_user),
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
