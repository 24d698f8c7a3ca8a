/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An RC connection with an on-demand region on each side, at the address of the
 * buffer's, and software that brings its pages.
 */
#ifndef SKUA_TEST_ODP_H
#define SKUA_TEST_ODP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc.h"
#include "roce/hdr.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define MS		1000000ull
#define SEC		1000000000ull
#define ODP_PAGES	16
#define PAGE		4096u
#define ODP_LEN		(ODP_PAGES * PAGE)
#define ODP_ACCESS	(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE |		\
			 SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC |		\
			 SKUA_ACCESS_MW_BIND | SKUA_ACCESS_FLUSH_GLOBAL)
#define RW		(SKUA_MTT_PRESENT | SKUA_MTT_WRITE)

/**
 * struct odp_side - one side's region
 * @eq: page faults
 * @key: of the region
 * @mtt: first entry of its list
 * @page: bus address of each page; they lie in no order
 * @faults: taken so far
 */
struct odp_side {
	struct mini_eq eq;
	uint32_t key;
	uint32_t mtt;
	uint64_t page[ODP_PAGES];
	unsigned int faults;
};

struct odp {
	struct rc rc;
	struct odp_side s[2];
};

static inline struct mini *odp_m(struct odp *o, int i)
{
	return &o->rc.s[i].m;
}

/* Write an entry of the MTT, as software does. */
static inline void mtt_set(struct odp *o, int i, uint32_t index, uint64_t word)
{
	__le64 le = cpu_to_le64(word);

	memcpy(mini_icm(odp_m(o, i), SKUA_ICM_MTT, index), &le, sizeof(le));
}

static inline void mtt_sync(struct odp *o, int i, uint32_t index, uint32_t count)
{
	struct skua_cmd_sync_mtt_in in = {
		.index = cpu_to_le64(index),
		.count = cpu_to_le32(count),
	};

	mini_ok(odp_m(o, i), SKUA_CMD_SYNC_MTT, &in, sizeof(in));
}

/* Page @n is there with these rights: nobody is told. */
static inline void odp_give(struct odp *o, int i, unsigned int n, uint64_t rights)
{
	mtt_set(o, i, o->s[i].mtt + n, o->s[i].page[n] | rights);
}

static inline void odp_give_all(struct odp *o, int i)
{
	for (unsigned int n = 0; n < ODP_PAGES; n++)
		odp_give(o, i, n, RW);
}

/*
 * All pages go, and come back elsewhere later with what they held: who still used
 * the old ones would be seen.
 */
static inline void odp_take_all(struct odp *o, int i)
{
	struct fake *f = &o->rc.s[i].f;
	uint64_t first = o->s[i].page[0];
	uint8_t save[PAGE];

	for (unsigned int n = 0; n < ODP_PAGES; n++)
		mtt_set(o, i, o->s[i].mtt + n, 0);
	mtt_sync(o, i, o->s[i].mtt, ODP_PAGES);
	memcpy(save, fake_ptr(f, first), PAGE);
	for (unsigned int n = 0; n + 1 < ODP_PAGES; n++) {
		memcpy(fake_ptr(f, o->s[i].page[n]), fake_ptr(f, o->s[i].page[n + 1]), PAGE);
	}
	memcpy(fake_ptr(f, o->s[i].page[ODP_PAGES - 1]), save, PAGE);
	/* Page n's bytes lie where page n - 1's were. */
	first = o->s[i].page[ODP_PAGES - 1];
	for (unsigned int n = ODP_PAGES - 1; n; n--)
		o->s[i].page[n] = o->s[i].page[n - 1];
	o->s[i].page[0] = first;
}

/* Bytes of the region, wherever they are. */
static inline void odp_put(struct odp *o, int i, uint64_t off, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	for (size_t k = 0; k < len; k++, off++)
		((uint8_t *)fake_ptr(&o->rc.s[i].f, o->s[i].page[off / PAGE]))[off % PAGE] = p[k];
}

static inline void odp_get(struct odp *o, int i, uint64_t off, void *buf, size_t len)
{
	uint8_t *p = buf;

	for (size_t k = 0; k < len; k++, off++)
		p[k] = ((uint8_t *)fake_ptr(&o->rc.s[i].f, o->s[i].page[off / PAGE]))[off % PAGE];
}

/* An on-demand region; its list begins at @base. */
static inline struct skua_mpt odp_mpt(struct odp *o, int i, uint32_t base, uint32_t npages)
{
	return (struct skua_mpt){
		.key = cpu_to_le32(odp_m(o, i)->next_mpt++ << 8 | 0x66),
		.flags = cpu_to_le32(SKUA_MPT_VALID | SKUA_MPT_ODP),
		.access = cpu_to_le32(ODP_ACCESS),
		.pd = cpu_to_le32(MINI_PD),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64((uint64_t)npages * PAGE),
		.xlat.base = cpu_to_le64(base),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
			     le32_encode_bits(12, SKUA_XLAT_LOG_PAGE),
		.npages = cpu_to_le32(npages),
	};
}

/* Room for @n entries that nobody else has a group with. */
static inline uint32_t odp_mtts(struct odp *o, int i, uint32_t n)
{
	struct mini *m = odp_m(o, i);
	uint32_t base = (m->next_mtt + SKUA_MTT_GROUP - 1) / SKUA_MTT_GROUP * SKUA_MTT_GROUP;

	m->next_mtt = base + n;
	return base;
}

static inline void odp_fault_eq(struct odp *o, int i, uint32_t eqn)
{
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_FAULT_EQ),
		.fault_eqn = cpu_to_le32(eqn),
	};

	mini_ok(odp_m(o, i), SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
}

static inline void odp_region(struct odp *o, int i)
{
	struct odp_side *s = &o->s[i];
	struct mini *m = odp_m(o, i);
	uint64_t bus = fake_alloc(m->f, ODP_LEN, PAGE);
	struct skua_mpt mpt;

	for (unsigned int n = 0; n < ODP_PAGES; n++)
		s->page[n] = bus + (n * 7 % ODP_PAGES) * PAGE;
	s->mtt = odp_mtts(o, i, ODP_PAGES);
	mpt = odp_mpt(o, i, s->mtt, ODP_PAGES);
	s->key = le32_to_cpu(mpt.key);
	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
}

/* @eq_log: of the fault EQs. */
static inline void odp_open(struct odp *o, const struct rc_opt *opt, uint32_t eq_log)
{
	struct rc_opt with = opt ? *opt : (struct rc_opt){ 0 };

	memset(o, 0, sizeof(*o));
	with.caps |= SKUA_CAP_ODP;
	rc_open(&o->rc, &with);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mini_eq_create(odp_m(o, i), &o->s[i].eq, MINI_EQS, eq_log, 0, 0),
				 0);
		odp_fault_eq(o, i, MINI_EQS);
		odp_region(o, i);
	}
}

static inline void odp_close(struct odp *o)
{
	rc_close(&o->rc);
}

/* The next fault of a side; all zero if there is none. */
static inline bool odp_fault(struct odp *o, int i, struct skua_eqe_fault *f)
{
	struct skua_eqe eqe;

	memset(f, 0, sizeof(*f));
	if (!mini_eq_next(odp_m(o, i), &o->s[i].eq, &eqe))
		return false;
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_PAGE_FAULT);
	memcpy(f, &eqe, sizeof(*f));
	mini_eq_db(odp_m(o, i), &o->s[i].eq, true);
	o->s[i].faults++;
	return true;
}

static inline int odp_resume(struct odp *o, int i, const struct skua_eqe_fault *f, uint32_t error)
{
	struct skua_cmd_resume_fault_in in = {
		.token = f->token & cpu_to_le32(SKUA_EQE_FAULT_TOKEN),
		.error = cpu_to_le32(error),
	};

	return mini_cmd(odp_m(o, i), SKUA_CMD_RESUME_PAGE_FAULT, &in, sizeof(in), NULL, 0);
}

/* It is one of this region, and tells of bytes within it that are not there. */
static inline void odp_fault_ok(struct odp *o, int i, const struct skua_eqe_fault *f)
{
	uint64_t off = le64_to_cpu(f->va) - RC_VA;

	assert_int_equal(le32_to_cpu(f->qpn), o->rc.s[i].qp.qpn);
	assert_int_equal(le32_to_cpu(f->key), o->s[i].key);
	assert_true(off < ODP_LEN);
	assert_true(le32_to_cpu(f->len) && le32_to_cpu(f->len) <= ODP_LEN - off);
	assert_true(le32_get_bits(f->token, SKUA_EQE_FAULT_TOKEN));
}

/* Bring the pages of a fault, @most at most, and say so. */
static inline void odp_serve(struct odp *o, int i, const struct skua_eqe_fault *f,
			     unsigned int most)
{
	uint64_t off = le64_to_cpu(f->va) - RC_VA;
	uint64_t end = off + le32_to_cpu(f->len);
	bool write = le32_to_cpu(f->token) & SKUA_EQE_FAULT_WRITE;

	odp_fault_ok(o, i, f);
	for (uint64_t n = off / PAGE; n * PAGE < end && most--; n++)
		odp_give(o, i, (unsigned int)n, write ? RW : SKUA_MTT_PRESENT);
	assert_int_equal(odp_resume(o, i, f, 0), 0);
}

/* Let time pass, and serve what comes. */
static inline void odp_run(struct odp *o, unsigned int most, uint64_t ms)
{
	struct skua_eqe_fault f;

	rc_pump(&o->rc);
	for (uint64_t t = 0; t < 2 * ms; t++) {
		for (int i = 0; i < 2; i++) {
			while (odp_fault(o, i, &f)) {
				odp_serve(o, i, &f, most);
				rc_pump(&o->rc);
			}
		}
		rc_pump_for(&o->rc, MS / 2);
	}
}

#endif /* SKUA_TEST_ODP_H */
