// SPDX-License-Identifier: GPL-2.0
/*
 * An XRC target between a stranger on the wire, who names whatever SRQ he likes, and
 * processes that make SRQs, post to them, and take them away amid messages. Regions
 * are on demand too, so that messages stop where a page is missing. Every completion
 * must be of a WQE that was posted to the very SRQ of that CQ, and once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "rc_fuzz.h"

#define SRQS		3
#define SRQ_LOG		3
#define WQES		(1u << SRQ_LOG)
#define SEGS		4
#define SRQN(k)		(20 + (k))
#define PD(k)		(MINI_PD + (k) % 2)

/**
 * struct xsrq - an SRQ, or the place of one
 * @made: it is there
 * @xrcd: its domain
 * @owed: WQEs posted, by position, that were not reported
 * @pi: WQEs posted
 */
static struct xsrq {
	bool made;
	uint32_t xrcd;
	uint64_t ring, dbr;
	uint32_t pi;
	bool owed[WQES];
	struct mini_cq cq;
} srq[SRQS];

static struct mini_qp tgt;
static uint32_t key[2], odp_key[2], mtt;
static struct mini_eq fault_eq;

static struct mini *drv(void)
{
	return &rc.s[0].m;
}

static uint32_t region(uint32_t pd, bool odp)
{
	struct mini *m = drv();
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x44),
		.flags = cpu_to_le32(SKUA_MPT_VALID | (odp ? SKUA_MPT_ODP : 0)),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE | SKUA_ACCESS_REMOTE_WRITE |
				      SKUA_ACCESS_REMOTE_READ | SKUA_ACCESS_REMOTE_ATOMIC),
		.pd = cpu_to_le32(pd),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(odp ? 16 * 4096 : RC_BUF),
		.xlat.base = cpu_to_le64(odp ? mtt : rc.s[0].bus),
	};

	if (odp) {
		mpt.xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
				le32_encode_bits(12, SKUA_XLAT_LOG_PAGE);
		mpt.npages = cpu_to_le32(16);
	}
	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

/* --- SRQs --- */

static void check_cqes(void)
{
	struct skua_cqe cqe;

	for (unsigned int k = 0; k < SRQS; k++) {
		while (mini_cq_next(drv(), &srq[k].cq, &cqe)) {
			uint32_t pos = skua_cqe_wqe_index(&cqe);

			must(srq[k].made && le32_to_cpu(cqe.srqn) == SRQN(k), "another's CQE");
			must(pos < WQES && srq[k].owed[pos], "CQE of what was not posted");
			srq[k].owed[pos] = false;
		}
	}
}

static void drop_srq(unsigned int k)
{
	if (!srq[k].made)
		return;
	must(!mini_index(drv(), SKUA_CMD_DESTROY_SRQ, SRQN(k), NULL, 0), "SRQ stays");
	check_cqes();
	srq[k].made = false;
}

static void make_srq(unsigned int k, uint32_t xrcd)
{
	struct skua_srqc in = {
		.flags = le32_encode_bits(SRQ_LOG, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(2, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(PD(k)),
		.xrcd = cpu_to_le32(xrcd),
		.cqn = cpu_to_le32(srq[k].cq.cqn),
		.srqn = cpu_to_le32(SRQN(k)),
		.ring.base = cpu_to_le64(srq[k].ring),
		.dbr = cpu_to_le64(srq[k].dbr),
	};

	drop_srq(k);
	memset(fake_ptr(&rc.s[0].f, srq[k].dbr), 0, sizeof(struct skua_srq_dbr));
	memset(srq[k].owed, 0, sizeof(srq[k].owed));
	srq[k].pi = 0;
	srq[k].xrcd = xrcd;
	mini_ok(drv(), SKUA_CMD_CREATE_SRQ, &in, sizeof(in));
	srq[k].made = true;
}

static void post(unsigned int k, struct input *in)
{
	uint32_t pos = srq[k].pi % WQES, len = (uint32_t)take(in, 2);
	struct skua_srq_dbr *dbr = fake_ptr(&rc.s[0].f, srq[k].dbr);
	uint8_t *wqe = fake_ptr(&rc.s[0].f, srq[k].ring + pos * SEGS * SKUA_WQE_SEG);
	bool odp = len & 1;

	if (!srq[k].made || srq[k].owed[pos])
		return;
	skua_srq_next_set((void *)wqe, (pos + 1) % WQES);
	skua_wqe_data_set((void *)(wqe + SKUA_WQE_SEG), RC_VA, odp ? odp_key[k % 2] : key[k % 2],
			  len);
	skua_rq_wqe_end((void *)(wqe + SKUA_WQE_SEG), 1, SEGS - 1);
	srq[k].owed[pos] = true;
	dbr->pi = cpu_to_le32(++srq[k].pi);
}

/* --- the target --- */

static void up(uint32_t psn)
{
	const struct rc_opt opt = { .mtu_code = 1, .psn = { 0, psn }, .rd_atomic = 5 };
	struct skua_qp_attr a = rc_attr(&rc, 0, &opt, rc.s[1].qp.qpn);
	struct mini *m = drv();

	must(!mini_qp_modify(m, &tgt, SKUA_QP_RESET, 0, NULL), "no RESET");
	must(!mini_qp_modify(m, &tgt, SKUA_QP_INIT, SKUA_QP_M_PKEY | SKUA_QP_M_PORT |
			     SKUA_QP_M_ACCESS, &a), "no INIT");
	must(!mini_qp_modify(m, &tgt, SKUA_QP_RTR, SKUA_QP_M_AV | SKUA_QP_M_PATH_MTU |
			     SKUA_QP_M_DEST_QPN | SKUA_QP_M_RQ_PSN |
			     SKUA_QP_M_MAX_DEST_RD_ATOMIC | SKUA_QP_M_MIN_RNR_TIMER, &a),
	     "no RTR");
}

static uint32_t epsn(void)
{
	struct skua_cmd_query_qp_out out;

	must(!mini_index(drv(), SKUA_CMD_QUERY_QP, tgt.qpn, &out, sizeof(out)), "no QP");
	return le32_to_cpu(out.rqc.epsn);
}

static void packet(struct input *in)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 600], pick = (uint8_t)take(in, 1);
	uint8_t op = (uint8_t)take(in, 1), which = (uint8_t)take(in, 1);
	struct skua_pkt_addr addr = rc_addr(&rc, 1);
	struct skua_pkt_bth bth = {
		.opcode = (op & 0x1f) | ((op & 0x1e) == 0x18 ? IB_TRANSPORT_SKUA_XRC :
							       IB_TRANSPORT_XRC),
		.pkey = IB_PKEY_DEFAULT,
		.dqpn = tgt.qpn,
		.psn = epsn() + (pick & 0x70 ? 0 : (uint32_t)(int8_t)take(in, 1)),
		.ackreq = pick & 1,
		.se = pick & 2,
	};
	const struct ib_opcode_info *info = ib_opcode_info(bth.opcode);
	uint32_t n = pick & 4 ? 256 : (uint32_t)take(in, 1), k = which % SRQS;
	uint32_t rkey = which & 0x40 ? odp_key[which >> 7] : key[which >> 7];
	struct ib_atomiceth *atomic;
	struct skua_pkt_build b;

	if (!info || skua_pkt_build_start(&b, frame, sizeof(frame), &addr, &bth))
		return;
	atomic = b.maskedeth ? &b.maskedeth->atomic : b.atomiceth;
	if (b.xrceth)
		ib_xrceth_put(b.xrceth, SRQN(k));
	if (b.reth)
		ib_reth_put(b.reth, RC_VA + take(in, 2), rkey,
			    pick & 8 ? n : (uint32_t)take(in, 2));
	if (atomic)
		ib_atomiceth_put(atomic, RC_VA + (take(in, 2) & ~7ull), rkey, 1, 0);
	if (b.ieth)
		be32_put(b.ieth->rkey, rkey);
	memset(b.payload, 0x55, n);
	rc_inject(&rc, 0, &b, info->flags & IB_F_PAYLOAD ? n : 0);
}

/* A page comes or goes; who waits for one is told. */
static void page(struct input *in)
{
	uint32_t n = (uint32_t)take(in, 1);
	uint64_t word = rc.s[0].bus + (n % 16) * 4096ull;
	__le64 entry = cpu_to_le64(n & 0x80 ? 0 : word | SKUA_MTT_PRESENT | SKUA_MTT_WRITE);
	struct skua_cmd_sync_mtt_in sync = {
		.index = cpu_to_le64(mtt + n % 16),
		.count = cpu_to_le32(1),
	};
	struct skua_cmd_resume_fault_in resume = { .error = cpu_to_le32(n >> 6 & 1) };
	struct skua_eqe_fault body;
	struct skua_eqe eqe;

	memcpy(mini_icm(drv(), SKUA_ICM_MTT, mtt + n % 16), &entry, sizeof(entry));
	mini_ok(drv(), SKUA_CMD_SYNC_MTT, &sync, sizeof(sync));
	while (mini_eq_next(drv(), &fault_eq, &eqe)) {
		memcpy(&body, &eqe, sizeof(body));
		resume.token = body.token & cpu_to_le32(SKUA_EQE_FAULT_TOKEN);
		/* Of a QP that was reset meanwhile it means nothing any more. */
		mini_cmd(drv(), SKUA_CMD_RESUME_PAGE_FAULT, &resume, sizeof(resume), NULL, 0);
	}
	mini_eq_db(drv(), &fault_eq, false);
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);
	unsigned int k = (act >> 4) % SRQS;

	switch (act & 0x0f) {
	case 0:
		make_srq(k, act & 0x80 ? MINI_XRCD + 1 : MINI_XRCD);
		break;
	case 1:
		drop_srq(k);
		break;
	case 2 ... 4:
		post(k, in);
		break;
	case 5:
		if (act & 0x40)
			mini_qp_modify(drv(), &tgt, SKUA_QP_ERR, 0, NULL);
		else
			up((uint32_t)take(in, 3));
		break;
	case 6:
		page(in);
		break;
	case 7:
		fake_advance(&rc.s[0].f, take(in, 3));
		break;
	case 8:
		fake_run(&rc.s[0].f);
		break;
	default:
		packet(in);
		break;
	}
	check_cqes();
	rc_fuzz_check_frames(0);
}

static void open_all(void)
{
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_FAULT_EQ),
		.fault_eqn = cpu_to_le32(MINI_EQS),
	};
	struct mini *m = drv();

	memset(srq, 0, sizeof(srq));
	fake_pool();
	rc_open(&rc, &(struct rc_opt){ .down = true, .onchip = 8,
				       .caps = SKUA_CAP_XRC | SKUA_CAP_ODP });
	mtt = (m->next_mtt + SKUA_MTT_GROUP - 1) & ~(SKUA_MTT_GROUP - 1);
	m->next_mtt = mtt + 16;
	for (unsigned int k = 0; k < 2; k++) {
		key[k] = region(PD(k), false);
		odp_key[k] = region(PD(k), true);
	}
	must(!mini_eq_create(m, &fault_eq, MINI_EQS, 6, 0, 0), "no EQ");
	mini_ok(m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	for (unsigned int k = 0; k < SRQS; k++) {
		srq[k].ring = fake_alloc(&rc.s[0].f, WQES * SEGS * SKUA_WQE_SEG, 4096);
		srq[k].dbr = fake_alloc(&rc.s[0].f, sizeof(struct skua_srq_dbr), SKUA_DBR_ALIGN);
		mini_cq_create(m, &srq[k].cq, 6);
	}
	mini_qp_create(m, &tgt, SKUA_QP_XRC_TGT, &rc.s[0].scq, &rc.s[0].rcq, 0, 0, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct skua_eqe eqe;

	open_all();
	up((uint32_t)take(&in, 1) << 16 | 0xfff0);
	for (unsigned int k = 0; k < SRQS; k++)
		make_srq(k, k == 2 ? MINI_XRCD + 1 : MINI_XRCD);
	while (in.left)
		step(&in);
	fake_advance(&rc.s[0].f, 10000000);
	/* What it had taken comes back; whatever is owed was never taken. */
	must(!mini_qp_modify(drv(), &tgt, SKUA_QP_ERR, 0, NULL), "no ERR");
	fake_run(&rc.s[0].f);
	check_cqes();
	rc_fuzz_check_frames(0);
	while (mini_eq_next(drv(), &drv()->eq[MINI_EQ_ASYNC], &eqe))
		;
	mini_eq_db(drv(), &drv()->eq[MINI_EQ_ASYNC], false);
	rc_fuzz_close();
	return 0;
}
