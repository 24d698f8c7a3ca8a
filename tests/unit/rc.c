// SPDX-License-Identifier: GPL-2.0
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

static uint32_t or_default(uint32_t val, uint32_t dflt)
{
	return val ? val : dflt;
}

struct skua_qp_attr rc_attr(struct rc *rc, int i, const struct rc_opt *opt, uint32_t dest)
{
	struct skua_qp_attr a = mini_rc_attr(dest, 2 - i, rc->s[1 - i].mac, opt->ipv6,
					     opt->psn[i], opt->psn[1 - i],
					     or_default(opt->mtu_code, 5));
	uint32_t window = i && opt->peer_log_window ? opt->peer_log_window : opt->log_window;

	le32p_replace_bits(&a.retry, or_default(opt->retry_cnt, 8) - 1, SKUA_ATTR_RETRY_CNT);
	le32p_replace_bits(&a.retry, or_default(opt->rnr_retry, 8) - 1, SKUA_ATTR_RNR_RETRY);
	le32p_replace_bits(&a.retry, or_default(opt->timeout, 14), SKUA_ATTR_ACK_TIMEOUT);
	le32p_replace_bits(&a.rights, or_default(opt->rd_atomic, 17) - 1,
			   SKUA_ATTR_MAX_RD_ATOMIC);
	le32p_replace_bits(&a.rights, or_default(opt->rd_atomic, 17) - 1,
			   SKUA_ATTR_MAX_DEST_RD_ATOMIC);
	if (opt->access)
		le32p_replace_bits(&a.rights, opt->access, SKUA_ATTR_ACCESS);
	a.vendor_off = cpu_to_le32(opt->vendor_off[i]);
	if (opt->ext[i])
		a.ext = le32_encode_bits(opt->ext[i], SKUA_ATTR_EXT_MODE) |
			le32_encode_bits(or_default(window, SKUA_EXT_LOG_WINDOW_MAX),
					 SKUA_ATTR_EXT_LOG_WINDOW) |
			cpu_to_le32(opt->onload ? SKUA_ATTR_EXT_ONLOAD : 0);
	a.qkey = cpu_to_le32(opt->type == SKUA_QP_UD ? RC_QKEY : 0);
	return a;
}

void rc_qp(struct rc *rc, int i, struct mini_qp *qp, const struct rc_opt *opt)
{
	struct rc_side *s = &rc->s[i];

	mini_qp_create(&s->m, qp, opt->type, &s->scq, &s->rcq, or_default(opt->log_sq, 6),
		       or_default(opt->log_rq, 6), or_default(opt->log_stride, 2));
}

void rc_evict(struct rc *rc, int i, const struct rc_opt *opt)
{
	struct skua_cmd_query_qp_out out;
	struct mini_qp qp[20];

	for (unsigned int q = 0; q < 20; q++)
		rc_qp(rc, i, &qp[q], opt);
	for (unsigned int q = 0; q < 20; q++)
		mini_index(&rc->s[i].m, SKUA_CMD_QUERY_QP, qp[q].qpn, &out, sizeof(out));
}

static void open_side(struct rc *rc, int i, const struct rc_opt *opt)
{
	struct rc_side *s = &rc->s[i];
	struct skua_dev_cfg cfg = {
		.mac = { 0x02, 0, 0, 0, 0, (uint8_t)(i + 1) },
		.serial = 0x0200000000000001ull + i,
		.onchip = opt->onchip,
		.whole = opt->whole,
		.onload = opt->onload,
		.hot_looks = opt->hot_looks,
	};

	fake_init(&s->f, &cfg);
	memcpy(s->mac, cfg.mac, sizeof(s->mac));
	s->ipv6 = opt->ipv6;
	s->f.dev->caps |= opt->caps | (opt->ext[0] || opt->ext[1] ? SKUA_CAP_SR : 0);
	s->f.dev->caps &= ~opt->no_caps;
	mini_up_qps(&s->m, &s->f, opt->qps);
	s->m.qp_flags = opt->qp_flags;
	assert_int_equal(mini_gid(&s->m, 0, i + 1, opt->ipv6,
				  opt->vlan ? opt->vlan : SKUA_GID_NO_VLAN), 0);
	mini_cq_create(&s->m, &s->scq, or_default(opt->log_cq, 10));
	mini_cq_create(&s->m, &s->rcq, or_default(opt->log_cq, 10));
	s->bus = fake_alloc(&s->f, RC_BUF, 4096);
	s->buf = fake_ptr(&s->f, s->bus);
	s->key = mini_mr(&s->m, RC_VA, s->bus, RC_BUF, SKUA_ACCESS_LOCAL_WRITE |
			 SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
			 SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_MW_BIND |
			 SKUA_ACCESS_FLUSH_GLOBAL);
	rc_qp(rc, i, &s->qp, opt);
}

void rc_open(struct rc *rc, const struct rc_opt *opt)
{
	static const struct rc_opt plain;

	opt = opt ? opt : &plain;
	memset(rc, 0, sizeof(*rc));
	rc->mtu = 128u << or_default(opt->mtu_code, 5);
	rc->vlan = opt->vlan;
	for (int i = 0; i < 2; i++)
		open_side(rc, i, opt);
	fake_cable(&rc->s[0].f, &rc->s[1].f);
	for (int i = 0; i < 2; i++) {
		struct rc_side *s = &rc->s[i];

		s->attr = rc_attr(rc, i, opt, rc->s[1 - i].qp.qpn);
		if (!opt->down)
			mini_rc_to_rts(&s->m, &s->qp, &s->attr);
	}
}

void rc_close(struct rc *rc)
{
	fake_exit(&rc->s[0].f);
	fake_exit(&rc->s[1].f);
}

/* --- work requests --- */

static bool has_raddr(enum skua_wqe_op op)
{
	return op >= SKUA_WQE_WRITE && op <= SKUA_WQE_ATOMIC_WRITE;
}

/* Operands and masks; the segments they take up. */
static unsigned int put_atomic(const struct rc_wr *wr, void *seg)
{
	unsigned int n = wr->op == SKUA_WQE_CAS || wr->op == SKUA_WQE_FAA ? 1 : 2;

	if (wr->op < SKUA_WQE_CAS || wr->op > SKUA_WQE_MASKED_FAA)
		return 0;
	for (unsigned int i = 0; i < n; i++)
		skua_wqe_atomic_set((struct skua_wqe_atomic *)seg + i, wr->atomic[i].swap_add,
				    wr->atomic[i].compare);
	return n;
}

/* The segments of those that send nothing. */
static unsigned int put_local(const struct rc_wr *wr, void *seg)
{
	if (wr->op == SKUA_WQE_BIND_MW) {
		memcpy(seg, &wr->bind, sizeof(wr->bind));
		return sizeof(wr->bind) / SKUA_WQE_SEG;
	}
	if (wr->op == SKUA_WQE_REG_MR) {
		memcpy(seg, &wr->reg, sizeof(wr->reg));
		return sizeof(wr->reg) / SKUA_WQE_SEG;
	}
	return 0;
}

static bool has_data(enum skua_wqe_op op)
{
	return op != SKUA_WQE_NOP && op != SKUA_WQE_FLUSH && op != SKUA_WQE_BIND_MW &&
	       op != SKUA_WQE_LOCAL_INV && op != SKUA_WQE_REG_MR;
}

struct skua_wqe_av rc_av(struct rc *rc, int i)
{
	struct skua_qp_attr a = mini_rc_attr(0, 2 - i, rc->s[1 - i].mac, rc->s[i].ipv6, 0, 0, 1);

	return (struct skua_wqe_av){
		.av = a.av,
		.dest_qpn = cpu_to_le32(rc->s[1 - i].qp.qpn),
		.qkey = cpu_to_le32(RC_QKEY),
	};
}

void rc_post_quiet(struct rc *rc, int i, struct mini_qp *qp, const struct rc_wr *wr)
{
	uint8_t wqe[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK] = { 0 };
	struct skua_wqe_ctrl *ctrl = (void *)wqe;
	struct rc_side *s = &rc->s[i];
	unsigned int nseg = 1;

	skua_wqe_ctrl_set(ctrl, wr->op, 0, 0, wr->flags | (wr->quiet ? 0 : SKUA_WQE_F_SIGNALED));
	if (wr->op == SKUA_WQE_SEND_IMM || wr->op == SKUA_WQE_WRITE_IMM)
		skua_wqe_imm_set(ctrl, htobe32(wr->imm));
	if (wr->op == SKUA_WQE_SEND_INV || wr->op == SKUA_WQE_LOCAL_INV ||
	    wr->op == SKUA_WQE_FLUSH)
		skua_wqe_inv_set(ctrl, wr->imm);
	if (qp->type == SKUA_QP_UD || qp->type == SKUA_QP_GSI) {
		struct skua_wqe_av av = wr->av ? *wr->av : rc_av(rc, i);

		if (wr->op != SKUA_WQE_NOP)
			memcpy(wqe + nseg * SKUA_WQE_SEG, &av, sizeof(av));
		nseg += wr->op != SKUA_WQE_NOP ? sizeof(av) / SKUA_WQE_SEG : 0;
	}
	if (qp->type == SKUA_QP_XRC_INI && (has_data(wr->op) || wr->op == SKUA_WQE_FLUSH))
		skua_wqe_xrc_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), wr->srqn);
	nseg += put_local(wr, wqe + nseg * SKUA_WQE_SEG);
	if (has_raddr(wr->op))
		skua_wqe_raddr_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), RC_VA + wr->roff,
				   wr->rkey ? wr->rkey : rc->s[1 - i].key, wr->flush);
	nseg += put_atomic(wr, wqe + nseg * SKUA_WQE_SEG);
	if (wr->flags & SKUA_WQE_F_INLINE) {
		__le32 len = cpu_to_le32(wr->len);

		memcpy(wqe + nseg * SKUA_WQE_SEG, &len, 4);
		memcpy(wqe + nseg * SKUA_WQE_SEG + 4, s->buf + wr->off, wr->len);
		nseg += skua_wqe_inline_segs(wr->len);
	} else if (wr->nsge) {
		for (uint32_t k = 0; k < wr->nsge; k++)
			skua_wqe_data_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), wr->sge[k].addr,
					  wr->sge[k].lkey, wr->sge[k].len);
	} else if (has_data(wr->op)) {
		skua_wqe_data_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), RC_VA + wr->off, s->key,
				  wr->len);
	}
	mini_post(&s->m, qp, wqe, nseg);
}

void rc_post(struct rc *rc, int i, const struct rc_wr *wr)
{
	rc_post_quiet(rc, i, &rc->s[i].qp, wr);
	mini_ring(&rc->s[i].m, &rc->s[i].qp);
}

void rc_recv_sge(struct rc *rc, int i, const struct sge *sge, uint32_t nsge)
{
	struct skua_wqe_data d[32];

	for (uint32_t k = 0; k < nsge; k++)
		skua_wqe_data_set(&d[k], sge[k].addr, sge[k].lkey, sge[k].len);
	mini_recv(&rc->s[i].m, &rc->s[i].qp, d, nsge);
}

void rc_recv(struct rc *rc, int i, uint64_t off, uint32_t len)
{
	struct sge sge = { .addr = RC_VA + off, .lkey = rc->s[i].key, .len = len };

	rc_recv_sge(rc, i, &sge, 1);
}

void rc_pump(struct rc *rc)
{
	fake_pump(&rc->s[0].f, &rc->s[1].f);
}

void rc_pump_for(struct rc *rc, uint64_t ns)
{
	fake_pump_for(&rc->s[0].f, &rc->s[1].f, ns);
}

/* --- results --- */

void rc_reset(struct rc *rc)
{
	for (int i = 0; i < 2; i++) {
		struct rc_side *s = &rc->s[i];

		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RESET, 0, NULL), 0);
		memset(fake_ptr(&s->f, s->qp.dbr), 0, sizeof(struct skua_qp_dbr));
		s->qp.sq_pi = 0;
		s->qp.rq_pi = 0;
	}
}

struct skua_lrc *rc_lrc(struct rc *rc)
{
	struct skua_dev *dev = rc->s[0].f.dev;
	struct skua_lrc *lrc = ctx_get(dev, SKUA_ICM_LRC, qp_index(rc->s[0].qp.qpn));

	assert_non_null(lrc);
	ctx_put(dev, lrc);
	return lrc;
}

struct skua_cqe rc_expect(struct rc *rc, int i, bool recv, enum skua_cqe_status status)
{
	struct rc_side *s = &rc->s[i];
	struct skua_cqe cqe;

	assert_true(mini_cq_next(&s->m, recv ? &s->rcq : &s->scq, &cqe));
	assert_int_equal(skua_cqe_status(&cqe), status);
	assert_int_equal(skua_cqe_opcode(&cqe) != SKUA_CQE_REQ, recv);
	return cqe;
}

void rc_expect_none(struct rc *rc, int i, bool recv)
{
	struct skua_cqe cqe;

	assert_false(mini_cq_next(&rc->s[i].m, recv ? &rc->s[i].rcq : &rc->s[i].scq, &cqe));
}

void rc_expect_event(struct rc *rc, int i, enum skua_qp_event ev)
{
	struct mini *m = &rc->s[i].m;
	struct skua_eqe eqe;

	assert_true(mini_eq_next(m, &m->eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_QP);
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_SUBTYPE), ev);
	assert_int_equal(le32_to_cpu(eqe.num), rc->s[i].qp.qpn);
}

void rc_expect_no_event(struct rc *rc, int i)
{
	struct mini *m = &rc->s[i].m;
	struct skua_eqe eqe;

	assert_false(mini_eq_next(m, &m->eq[MINI_EQ_ASYNC], &eqe));
}

struct skua_cmd_query_qp_out rc_query(struct rc *rc, int i)
{
	struct skua_cmd_query_qp_out out;

	assert_int_equal(mini_index(&rc->s[i].m, SKUA_CMD_QUERY_QP, rc->s[i].qp.qpn, &out,
				    sizeof(out)), 0);
	return out;
}

enum skua_qp_state rc_state(struct rc *rc, int i)
{
	struct skua_cmd_query_qp_out out = rc_query(rc, i);

	assert_int_equal(le32_to_cpu(out.rqc.state),
			 le32_get_bits(out.sqc.attr.state, SKUA_ATTR_STATE));
	return le32_to_cpu(out.rqc.state);
}

void rc_drain(struct rc *rc, int i)
{
	struct skua_cmd_modify_qp_in in = {
		.qpn = cpu_to_le32(rc->s[i].qp.qpn),
		.mask = cpu_to_le32(SKUA_QP_M_STATE | SKUA_QP_M_SQD_NOTIFY),
		.cur_state = cpu_to_le32(SKUA_QP_RTS),
		.attr.state = le32_encode_bits(SKUA_QP_SQD, SKUA_ATTR_STATE) |
			      cpu_to_le32(SKUA_ATTR_SQD_NOTIFY),
	};

	mini_ok(&rc->s[i].m, SKUA_CMD_MODIFY_QP, &in, sizeof(in));
}

uint64_t rc_cnt(struct rc *rc, int i, enum skua_counter cnt)
{
	return mini_counter(&rc->s[i].m, cnt);
}

static uint8_t pattern(size_t at, uint32_t seed)
{
	return (uint8_t)(at * 131 + (at >> 8) * 29 + (at >> 16) * 7 + seed * 59 + 1);
}

void rc_fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t k = 0; k < len; k++)
		p[k] = pattern(k, seed);
}

void rc_check(const uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t k = 0; k < len; k++) {
		if (p[k] != pattern(k, seed))
			fail_msg("byte %zu of %zu is wrong", k, len);
	}
}

/* --- forged packets --- */

struct skua_pkt_addr rc_addr(struct rc *rc, int from)
{
	struct skua_pkt_addr a = {
		.vlan = rc->vlan,
		.tci = rc->vlan,
		.sport = 0xc123,
		.hop_limit = 64,
	};

	memcpy(a.smac, rc->s[from].mac, sizeof(a.smac));
	memcpy(a.dmac, rc->s[1 - from].mac, sizeof(a.dmac));
	mini_gid_addr(a.sgid, from + 1, rc->s[0].ipv6);
	mini_gid_addr(a.dgid, 2 - from, rc->s[0].ipv6);
	return a;
}

int rc_build(struct rc *rc, int from, struct skua_pkt_build *b, uint8_t *frame, size_t size,
	     uint8_t opcode, uint32_t psn)
{
	struct skua_pkt_addr a = rc_addr(rc, from);
	struct skua_pkt_bth bth = {
		.opcode = opcode,
		.pkey = IB_PKEY_DEFAULT,
		.dqpn = rc->s[1 - from].qp.qpn,
		.psn = psn,
		.ackreq = true,
	};

	return skua_pkt_build_start(b, frame, size, &a, &bth);
}

void rc_inject(struct rc *rc, int to, struct skua_pkt_build *b, size_t payload)
{
	size_t len = skua_pkt_build_finish(b, payload);

	assert_true(len);
	fake_rx(&rc->s[to].f, b->frame, len);
}

void rc_forge(struct rc *rc, const struct rc_forged *p, uint32_t psn)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), p->op, psn), 0);
	if (b.reth)
		ib_reth_put(b.reth, RC_VA, rc->s[1].key, p->reth_len);
	memset(b.payload, 0x77, p->payload);
	rc_inject(rc, 1, &b, p->payload);
}
