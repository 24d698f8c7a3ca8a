/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the fuzzers of the RC engine share: a pair of devices, which are as just made for
 * each input, so that what it does never depends on others before it.
 */
#ifndef SKUA_TEST_RC_FUZZ_H
#define SKUA_TEST_RC_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skua/sq_event.h>

#include "fuzz_input.h"
#include "rc.h"

static struct rc rc;

/* Keys that work requests change; begun anew for each input. */
enum { FUZZ_MW1, FUZZ_MW2, FUZZ_MW2_OTHER, FUZZ_FAST, FUZZ_KEYS };
#define FUZZ_PAGES	12

/* Pages of an on-demand region, behind the list's one entry of a directory. */
#define FUZZ_ODP_PAGES	16

static struct {
	uint32_t key[FUZZ_KEYS];
	uint32_t mtt;
	uint64_t list;		/* of pages, for REG_MR */
	uint32_t odp[2];	/* keys of on-demand regions: by list, by directory */
	uint32_t odp_mtt;	/* their pages, then the directory */
	struct mini_eq faults;
	struct mini_eq losses;
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

/* Entries of the MTT, and what the device knows of them. */
static inline void rc_fuzz_mtt(int i, uint32_t index, uint64_t word, bool sync)
{
	struct skua_cmd_sync_mtt_in in = { .index = cpu_to_le64(index), .count = cpu_to_le32(1) };
	__le64 le = cpu_to_le64(word);

	memcpy(mini_icm(&rc.s[i].m, SKUA_ICM_MTT, index), &le, sizeof(le));
	if (sync)
		must(!mini_cmd(&rc.s[i].m, SKUA_CMD_SYNC_MTT, &in, sizeof(in), NULL, 0), "no SYNC");
}

static inline void rc_fuzz_no_pages(int i)
{
	for (unsigned int n = 0; n <= FUZZ_ODP_PAGES; n++)
		rc_fuzz_mtt(i, fuzz[i].odp_mtt + n, 0, true);
}

/* The next fault: its token, 0: there is none. */
static inline uint32_t rc_fuzz_fault(int i)
{
	struct skua_eqe_fault f;
	struct skua_eqe eqe;

	if (!mini_eq_next(&rc.s[i].m, &fuzz[i].faults, &eqe))
		return 0;
	mini_eq_db(&rc.s[i].m, &fuzz[i].faults, true);
	memcpy(&f, &eqe, sizeof(f));
	must(le32_to_cpu(f.key) == fuzz[i].odp[0] || le32_to_cpu(f.key) == fuzz[i].odp[1],
	     "fault of another region");
	must(le64_to_cpu(f.va) - RC_VA < FUZZ_ODP_PAGES * 4096 && le32_to_cpu(f.len) &&
	     le64_to_cpu(f.va) - RC_VA + le32_to_cpu(f.len) <= FUZZ_ODP_PAGES * 4096,
	     "fault outside of the region");
	return le32_get_bits(f.token, SKUA_EQE_FAULT_TOKEN);
}

/* Software and pages: they come, go, are nonsense; faults are settled, or others. */
static inline void rc_fuzz_odp(int i, struct input *in)
{
	struct skua_cmd_resume_fault_in resume = { 0 };
	uint8_t pick = (uint8_t)take(in, 1);
	uint32_t n = pick >> 3 & 15;

	switch (pick & 7) {
	case 0:
	case 1:
		rc_fuzz_mtt(i, fuzz[i].odp_mtt + n, (rc.s[i].bus + n * 4096) | SKUA_MTT_PRESENT |
			    (pick & 0x80 ? 0 : SKUA_MTT_WRITE), false);
		return;
	case 2:
		rc_fuzz_mtt(i, fuzz[i].odp_mtt + n, 0, true);
		return;
	case 3:
		rc_fuzz_mtt(i, fuzz[i].odp_mtt + FUZZ_ODP_PAGES, pick & 0x80 ? 0 :
			    (uint64_t)fuzz[i].odp_mtt << 12 | SKUA_MTT_PRESENT, pick & 0x80);
		return;
	case 4:
		rc_fuzz_mtt(i, fuzz[i].odp_mtt + pick / 8 % (FUZZ_ODP_PAGES + 1), take(in, 8),
			    take(in, 1) & 1);
		return;
	case 5:
		for (n = 0; n < FUZZ_ODP_PAGES; n++)
			rc_fuzz_mtt(i, fuzz[i].odp_mtt + n, (rc.s[i].bus + n * 4096) |
				    SKUA_MTT_PRESENT | SKUA_MTT_WRITE, false);
		break;
	}
	resume.token = cpu_to_le32(pick == 0xff ? (uint32_t)take(in, 4) : rc_fuzz_fault(i));
	resume.error = cpu_to_le32(pick & 0x40 ? 1 : 0);
	mini_cmd(&rc.s[i].m, SKUA_CMD_RESUME_PAGE_FAULT, &resume, sizeof(resume), NULL, 0);
}

/*
 * By push slot: the first block of what was posted last, and the doorbell. With an input a
 * word may be another one, or not come.
 */
static inline void rc_fuzz_push(int i, struct mini_qp *qp, unsigned int slot, struct input *in)
{
	const uint64_t at = ((uint64_t)MINI_UAR << rc.s[i].f.dev->uar_shift) + SKUA_UAR_PUSH +
			    slot % SKUA_UAR_PUSH_SLOTS * SKUA_UAR_PUSH_SLOT_SIZE;
	const uint32_t block = (qp->sq_pi - 1) & ((1u << qp->log_sq) - 1);
	uint8_t skip = in ? (uint8_t)take(in, 1) : 0;
	__le64 word[SKUA_UAR_PUSH_SLOT_SIZE / 8];

	memcpy(word, fake_ptr(&rc.s[i].f, qp->sq + (uint64_t)block * SKUA_WQE_BLOCK), 48);
	word[6] = 0;
	word[7] = cpu_to_le64(qp->sq_pi | (uint64_t)qp->qpn << 32);
	if (skip & 0x40)
		word[take(in, 1) % 8] ^= cpu_to_le64(take(in, 8));
	skua_sq_record(fake_ptr(&rc.s[i].f, qp->dbr), qp->sq_pi, qp->sq_told, false);
	qp->sq_told = qp->sq_pi;
	for (unsigned int k = 0; k < 8; k++) {
		if (!(skip & 0x80) || !(skip >> k % 6 & 1))
			skua_dev_bar_write(rc.s[i].f.dev, SKUA_BAR_UAR, at + 8 * k, &word[k], 8);
	}
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
	rc_fuzz_no_pages(i);
	while (rc_fuzz_fault(i))
		;
	for (unsigned int k = 0; k < MINI_EQS; k++) {
		while (mini_eq_next(&s->m, &s->m.eq[k], &eqe))
			;
		mini_eq_db(&s->m, &s->m.eq[k], false);
	}
}

/* On-demand regions, and an EQ of faults that is soon full. */
static inline void rc_fuzz_open_odp(int i)
{
	struct mini *m = &rc.s[i].m;
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_FAULT_EQ),
		.fault_eqn = cpu_to_le32(MINI_EQS),
	};
	struct skua_mpt mpt = {
		.flags = cpu_to_le32(SKUA_MPT_VALID | SKUA_MPT_ODP),
		.access = cpu_to_le32(SKUA_ACCESS_ALL & ~SKUA_ACCESS_ZERO_BASED),
		.pd = cpu_to_le32(MINI_PD),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(FUZZ_ODP_PAGES * 4096),
	};

	fuzz[i].odp_mtt = (m->next_mtt + SKUA_MTT_GROUP - 1) & ~(SKUA_MTT_GROUP - 1);
	m->next_mtt = fuzz[i].odp_mtt + FUZZ_ODP_PAGES + SKUA_MTT_GROUP;
	must(!mini_eq_create(m, &fuzz[i].faults, MINI_EQS, 0, 0, 0), "no EQ of faults");
	mini_ok(m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	for (unsigned int dir = 0; dir < 2; dir++) {
		fuzz[i].odp[dir] = m->next_mpt++ << 8 | 0x0d;
		mpt.key = cpu_to_le32(fuzz[i].odp[dir]);
		mpt.npages = cpu_to_le32(dir ? 1 : FUZZ_ODP_PAGES);
		mpt.xlat.base = cpu_to_le64(fuzz[i].odp_mtt + (dir ? FUZZ_ODP_PAGES : 0));
		mpt.xlat.mode = le32_encode_bits(dir ? SKUA_XLAT_DIR : SKUA_XLAT_MTT,
						 SKUA_XLAT_MODE) |
				le32_encode_bits(dir ? 16 : 12, SKUA_XLAT_LOG_PAGE) |
				le32_encode_bits(dir ? 12 : 0, SKUA_XLAT_LOG_SUB);
		mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	}
}

/* Loss reports go to an EQ that is soon full. */
static inline void rc_fuzz_open_recovery(int i)
{
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_RECOVERY_EQ),
		.recovery_eqn = cpu_to_le32(MINI_EQS + 1),
	};

	must(!mini_eq_create(&rc.s[i].m, &fuzz[i].losses, MINI_EQS + 1, 2, 0, 1), "no EQ of losses");
	mini_ok(&rc.s[i].m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
}

/*
 * A driver that keeps the loss state of its QP, and says what it likes about it: a command
 * that is nearly right, reports that are taken or not.
 */
static inline void rc_fuzz_recovery(int i, struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);
	struct skua_cmd_query_qp_out q;
	struct skua_recovery_cmd *cmd;
	struct skua_eqe eqe;
	uint32_t pi, una;

	if (!rc.s[i].m.rec_ring ||
	    mini_index(&rc.s[i].m, SKUA_CMD_QUERY_QP, rc.s[i].qp.qpn, &q, sizeof(q)))
		return;
	pi = le32_to_cpu(q.sqc.rec_pi);
	una = le32_to_cpu(q.sqc.una_psn);
	while (pick & 0x40 && mini_eq_next(&rc.s[i].m, &fuzz[i].losses, &eqe))
		must(le32_get_bits(eqe.what, SKUA_EQE_TYPE) == SKUA_EQE_RECOVERY, "another event");
	if (pick & 0x40)
		mini_eq_db(&rc.s[i].m, &fuzz[i].losses, true);
	cmd = fake_ptr(&rc.s[i].f, rc.s[i].m.rec_ring + pi % SKUA_RECOVERY_RING * sizeof(*cmd));
	*cmd = (struct skua_recovery_cmd){
		.serial = q.sqc.rec_serial,
		.op = cpu_to_le32(pick & 7),
		.first = cpu_to_le32((una + (uint32_t)take(in, 1)) & IB_PSN_MASK),
		.end = cpu_to_le32((una + (uint32_t)take(in, 1)) & IB_PSN_MASK),
	};
	if (pick & 0x80)
		((uint8_t *)cmd)[take(in, 1) % sizeof(*cmd)] ^= (uint8_t)take(in, 1);
	fake_db(&rc.s[i].f, 0, SKUA_UAR_RECOVERY, pi + 1 + (pick >> 3 & 3), rc.s[i].qp.qpn);
}

static inline void rc_fuzz_open(void)
{
	fake_pool();
	rc_open(&rc, &(struct rc_opt){ .down = true, .log_cq = 13, .onchip = 8,
				       .caps = SKUA_CAP_SR | SKUA_CAP_RECOVERY });
	for (int i = 0; i < 2; i++) {
		struct mini *m = &rc.s[i].m;

		for (unsigned int k = 0; k < FUZZ_KEYS; k++)
			fuzz[i].key[k] = m->next_mpt++ << 8 | 0x60;
		m->next_mtt = (m->next_mtt + SKUA_MTT_GROUP - 1) & ~(SKUA_MTT_GROUP - 1);
		fuzz[i].mtt = m->next_mtt;
		m->next_mtt += 2 * SKUA_MTT_GROUP;
		fuzz[i].list = fake_alloc(&rc.s[i].f, FUZZ_PAGES * 8, 64);
		rc_fuzz_open_odp(i);
		rc_fuzz_open_recovery(i);
	}
}

/* A key of side @i: a region, or one that work requests change, variants and all. */
static inline uint32_t rc_fuzz_key(int i, struct input *in)
{
	static const uint32_t other[] = { 0, SKUA_RESERVED_LKEY, 0x100, 0xffffffff };
	uint8_t pick = (uint8_t)take(in, 1);

	if (pick < 100)
		return rc.s[i].key;
	if (pick < 140)
		return fuzz[i].odp[pick & 1];
	if (pick < 240)
		return fuzz[i].key[pick % FUZZ_KEYS] + (pick >> 2) % 4;
	return other[pick % 4];
}

/* Attributes of both QPs; @last has the rest of what they are like. */
static inline struct rc_opt rc_fuzz_opt(uint8_t cfg, uint8_t last)
{
	uint32_t ext = cfg & 0x20 ? SKUA_EXT_ALWAYS :
		       last & 0x02 ? SKUA_EXT_NEGOTIATE : SKUA_EXT_PLAIN;

	return (struct rc_opt){
		.mtu_code = 1 + cfg % 5,
		.psn = { cfg & 0x40 ? 0xfffff8 : 0, cfg & 0x80 ? 0xfffff8 : 0x7ffffc },
		.timeout = 5,
		.retry_cnt = 1 + cfg % 3,
		.rnr_retry = 1 + cfg % 4,
		.rd_atomic = 1 + cfg % 17,
		.access = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
			  SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL,
		.ext = { ext, ext },
		.onload = last & 0x04,
		.log_window = SKUA_EXT_LOG_WINDOW_MIN + cfg % 5,
	};
}

/* Both QPs to RTS, their attributes and what lies between them from the input. */
static inline void rc_fuzz_start(struct input *in)
{
	uint8_t cfg = (uint8_t)take(in, 1), last = take_last(in);
	struct rc_opt opt = rc_fuzz_opt(cfg, last);

	rc.mtu = 128u << opt.mtu_code;
	for (int i = 0; i < 2; i++)
		rc_fuzz_reset(i);
	for (int i = 0; i < 2; i++) {
		rc.s[i].attr = rc_attr(&rc, i, &opt, rc.s[1 - i].qp.qpn);
		mini_rc_to_rts(&rc.s[i].m, &rc.s[i].qp, &rc.s[i].attr);
	}
	/* There payload goes in trains. */
	if (last & 0x01)
		fake_switch(&rc.s[0].f, &rc.s[1].f);
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

/* The input's end: whatever it was, the devices live. */
static inline void rc_fuzz_close(void)
{
	for (int i = 0; i < 2; i++)
		must(rc.s[i].f.dev->state == DEV_OPERATIONAL, "the device died");
	rc_close(&rc);
}

#endif /* SKUA_TEST_RC_FUZZ_H */
