// SPDX-License-Identifier: GPL-2.0
/* Fast registration; the table follows the IBTA's chapter 10.6.5. */
#include "rc_keys.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_register),
		cmocka_unit_test(test_register_again),
		cmocka_unit_test(test_register_refused),
		cmocka_unit_test(test_register_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
