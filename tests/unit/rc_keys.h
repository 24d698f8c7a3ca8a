/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Windows and regions of either side of an RC connection, and the work requests on
 * their keys: bind, fast registration, invalidation.
 */
#ifndef SKUA_TEST_RC_KEYS_H
#define SKUA_TEST_RC_KEYS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "rc.h"

#define RIGHTS	(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE | \
		 SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC)
#define RW	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ)

/* --- entries --- */

static inline uint32_t create(struct rc *rc, int i, struct skua_mpt *mpt)
{
	struct mini *m = &rc->s[i].m;

	mpt->key = cpu_to_le32(m->next_mpt++ << 8 | 0x77);
	mini_ok(m, SKUA_CMD_CREATE_MPT, mpt, sizeof(*mpt));
	return le32_to_cpu(mpt->key);
}

static inline uint32_t window(struct rc *rc, int i, uint32_t type, uint32_t pd)
{
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
			 le32_encode_bits(type, SKUA_MPT_TYPE),
		.pd = cpu_to_le32(pd),
	};

	return create(rc, i, &mpt);
}

/* A region of the first 64 KiB of the buffer. */
static inline uint32_t region(struct rc *rc, int i, uint32_t pd, uint32_t access)
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
static inline uint32_t fast(struct rc *rc, int i, uint32_t pd, uint32_t npages)
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

static inline struct skua_mpt query(struct rc *rc, int i, uint32_t key)
{
	struct skua_mpt mpt;

	assert_int_equal(mini_index(&rc->s[i].m, SKUA_CMD_QUERY_MPT, key, &mpt, sizeof(mpt)), 0);
	return mpt;
}

static inline uint32_t state_of(struct rc *rc, int i, uint32_t key)
{
	struct skua_mpt mpt = query(rc, i, key);

	return le32_get_bits(mpt.flags, SKUA_MPT_STATE);
}

static inline int destroy(struct rc *rc, int i, uint32_t key)
{
	return mini_index(&rc->s[i].m, SKUA_CMD_DESTROY_MPT, key, NULL, 0);
}

/* --- work requests --- */

struct bind {
	uint32_t mw, new_key, mr, access;
	uint64_t off;
	uint64_t len;
};

static inline void post_bind_qp(struct rc *rc, int i, struct mini_qp *qp, const struct bind *b)
{
	struct rc_wr wr = { .op = SKUA_WQE_BIND_MW };

	skua_wqe_bind_set(&wr.bind, b->mw, b->new_key, b->mr, b->access, RC_VA + b->off, b->len);
	rc_post_quiet(rc, i, qp, &wr);
	mini_ring(&rc->s[i].m, qp);
}

static inline void post_bind(struct rc *rc, int i, const struct bind *b)
{
	post_bind_qp(rc, i, &rc->s[i].qp, b);
	rc_pump(rc);
}

static inline void post_inv(struct rc *rc, int i, uint32_t key, uint32_t flags)
{
	rc_post(rc, i, &(struct rc_wr){ .op = SKUA_WQE_LOCAL_INV, .imm = key, .flags = flags });
}

/* What the peer of @qp sees: a WRITE of 8 bytes at offset @off of the address space. */
static inline void write_qp(struct rc *rc, struct mini_qp *qp, uint32_t rkey, uint64_t off,
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

static inline void expect_write(struct rc *rc, uint32_t rkey, uint64_t off,
				enum skua_cqe_status status)
{
	write_qp(rc, &rc->s[0].qp, rkey, off, status);
}

/* A second connection. */
static inline void second(struct rc *rc, struct mini_qp qp[2])
{
	const struct rc_opt opt = { 0 };

	for (int i = 0; i < 2; i++)
		rc_qp(rc, i, &qp[i], &opt);
	for (int i = 0; i < 2; i++) {
		struct skua_qp_attr a = rc_attr(rc, i, &opt, qp[1 - i].qpn);

		mini_rc_to_rts(&rc->s[i].m, &qp[i], &a);
	}
}

/* --- fast registration --- */

struct reg {
	uint32_t key, access;
	uint64_t va, len, list;
	uint32_t npages, log;
	uint64_t offset;
};

static inline void post_reg(struct rc *rc, int i, const struct reg *r)
{
	struct rc_wr wr = { .op = SKUA_WQE_REG_MR };

	skua_wqe_reg_set(&wr.reg, r->key, r->access, r->va, r->len);
	skua_wqe_reg_pages(&wr.reg, r->list, r->npages, r->log, r->offset);
	rc_post(rc, i, &wr);
}

/* Offset of the first page of the buffer of side @i. */
static inline uint64_t first_page(struct rc *rc, int i, uint32_t log)
{
	return -rc->s[i].bus & ((1ull << log) - 1);
}

/* A list of pages of the buffer of side @i, @step pages apart, backwards. */
static inline uint64_t page_list(struct rc *rc, int i, uint32_t n, uint32_t log, uint32_t step)
{
	uint64_t list = fake_alloc(&rc->s[i].f, n * 8 + 8, 64);
	__le64 *p = fake_ptr(&rc->s[i].f, list);

	for (uint32_t k = 0; k < n; k++)
		p[k] = cpu_to_le64(rc->s[i].bus + first_page(rc, i, log) +
				   ((uint64_t)(n - k) * step << log));
	return list;
}

/* The n-th page of that list, as the test sees it. */
static inline uint8_t *page(struct rc *rc, int i, uint32_t n, uint32_t log, uint32_t step,
			    uint32_t k)
{
	return rc->s[i].buf + first_page(rc, i, log) + ((uint64_t)(n - k) * step << log);
}

#endif /* SKUA_TEST_RC_KEYS_H */
