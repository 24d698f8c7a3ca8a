/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the fuzzers of the RC engine share: one pair of devices for all inputs,
 * whose QPs begin a new life for each.
 */
#ifndef SKUA_TEST_RC_FUZZ_H
#define SKUA_TEST_RC_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

/* The input, taken byte by byte; zero behind its end. */
struct input {
	const uint8_t *p;
	size_t left;
};

static inline uint64_t take(struct input *in, size_t bytes)
{
	uint64_t val = 0;

	while (bytes-- && in->left) {
		val = val << 8 | *in->p++;
		in->left--;
	}
	return val;
}

static inline void take_bytes(struct input *in, void *to, size_t bytes)
{
	uint8_t *p = to;

	while (bytes--)
		*p++ = (uint8_t)take(in, 1);
}

static inline void must(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static struct rc rc;

/* Keys that work requests change; begun anew for each input. */
enum { FUZZ_MW1, FUZZ_MW2, FUZZ_MW2_OTHER, FUZZ_FAST, FUZZ_KEYS };
#define FUZZ_PAGES	12

static struct {
	uint32_t key[FUZZ_KEYS];
	uint32_t mtt;
	uint64_t list;		/* of pages, for REG_MR */
} fuzz[2];

static inline void rc_fuzz_keys(int i)
{
	static const uint32_t flags[] = {
		SKUA_MPT_FREE | SKUA_MPT_MW1 << 4, SKUA_MPT_FREE | SKUA_MPT_MW2 << 4,
		SKUA_MPT_FREE | SKUA_MPT_MW2 << 4, SKUA_MPT_FREE | SKUA_MPT_FAST_REG,
	};
	struct mini *m = &rc.s[i].m;
	__le64 *page = fake_ptr(&rc.s[i].f, fuzz[i].list);

	for (unsigned int k = 0; k < FUZZ_KEYS; k++) {
		struct skua_mpt mpt = {
			.key = cpu_to_le32(fuzz[i].key[k]),
			.flags = cpu_to_le32(flags[k]),
			.pd = cpu_to_le32(MINI_PD + (k == FUZZ_MW2_OTHER)),
		};

		if (k == FUZZ_FAST) {
			mpt.xlat.base = cpu_to_le64(fuzz[i].mtt);
			mpt.xlat.mode = cpu_to_le32(SKUA_XLAT_MTT);
			mpt.npages = cpu_to_le32(FUZZ_PAGES);
		}
		mini_index(m, SKUA_CMD_DESTROY_MPT, fuzz[i].key[k], NULL, 0);
		must(!mini_cmd(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt), NULL, 0), "no key");
	}
	for (unsigned int k = 0; k < FUZZ_PAGES; k++)
		page[k] = cpu_to_le64(rc.s[i].bus + k * 3 * 4096);
}

/* Nothing but a reset of the queue pair is left of the input before. */
static inline void rc_fuzz_reset(int i)
{
	struct rc_side *s = &rc.s[i];
	struct mini_cq *cq[2] = { &s->scq, &s->rcq };
	struct fake_frame *frame;
	struct skua_cqe cqe;
	struct skua_eqe eqe;

	must(s->f.dev->state == DEV_OPERATIONAL, "the device died");
	must(!mini_qp_modify(&s->m, &s->qp, SKUA_QP_RESET, 0, NULL), "no RESET");
	memset(fake_ptr(&s->f, s->qp.dbr), 0, sizeof(struct skua_qp_dbr));
	s->qp.sq_pi = 0;
	s->qp.rq_pi = 0;
	while ((frame = fake_tx(&s->f)))
		free(frame);
	for (unsigned int k = 0; k < 2; k++) {
		while (mini_cq_next(&s->m, cq[k], &cqe))
			must(le32_to_cpu(cqe.qpn) == s->qp.qpn, "completion of another QP");
	}
	rc_fuzz_keys(i);
	for (unsigned int k = 0; k < MINI_EQS; k++) {
		while (mini_eq_next(&s->m, &s->m.eq[k], &eqe))
			;
		mini_eq_db(&s->m, &s->m.eq[k], false);
	}
}

static inline void rc_fuzz_open(void)
{
	rc_open(&rc, &(struct rc_opt){ .down = true, .log_cq = 13 });
	for (int i = 0; i < 2; i++) {
		struct mini *m = &rc.s[i].m;

		for (unsigned int k = 0; k < FUZZ_KEYS; k++)
			fuzz[i].key[k] = m->next_mpt++ << 8 | 0x60;
		m->next_mtt = (m->next_mtt + SKUA_MTT_GROUP - 1) & ~(SKUA_MTT_GROUP - 1);
		fuzz[i].mtt = m->next_mtt;
		m->next_mtt += 2 * SKUA_MTT_GROUP;
		fuzz[i].list = fake_alloc(&rc.s[i].f, FUZZ_PAGES * 8, 64);
	}
}

/* A key of side @i: a region, or one that work requests change, variants and all. */
static inline uint32_t rc_fuzz_key(int i, struct input *in)
{
	static const uint32_t other[] = { 0, SKUA_RESERVED_LKEY, 0x100, 0xffffffff };
	uint8_t pick = (uint8_t)take(in, 1);

	if (pick < 140)
		return rc.s[i].key;
	if (pick < 240)
		return fuzz[i].key[pick % FUZZ_KEYS] + (pick >> 2) % 4;
	return other[pick % 4];
}

/* Both QPs to RTS, their attributes from the input. */
static inline void rc_fuzz_start(struct input *in)
{
	uint8_t cfg = (uint8_t)take(in, 1);
	struct rc_opt opt = {
		.mtu_code = 1 + cfg % 5,
		.psn = { cfg & 0x40 ? 0xfffff8 : 0, cfg & 0x80 ? 0xfffff8 : 0x7ffffc },
		.timeout = 5,
		.retry_cnt = 1 + cfg % 3,
		.rnr_retry = 1 + cfg % 4,
		.rd_atomic = 1 + cfg % 17,
		.access = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
			  SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL,
	};

	rc.mtu = 128u << opt.mtu_code;
	for (int i = 0; i < 2; i++)
		rc_fuzz_reset(i);
	for (int i = 0; i < 2; i++) {
		rc.s[i].attr = rc_attr(&rc, i, &opt, rc.s[1 - i].qp.qpn);
		mini_rc_to_rts(&rc.s[i].m, &rc.s[i].qp, &rc.s[i].attr);
	}
}

/* Frames that arrive are all well formed: no side sends nonsense to the other. */
static inline void rc_fuzz_check_frames(int i)
{
	struct fake_frame *frame;
	struct skua_pkt pkt;

	while ((frame = fake_tx(&rc.s[i].f))) {
		must(!skua_pkt_parse(frame->data, frame->len, &pkt), "malformed packet sent");
		must(pkt.dqpn == rc.s[1 - i].qp.qpn, "packet for a stranger");
		free(frame);
	}
}

#endif /* SKUA_TEST_RC_FUZZ_H */
