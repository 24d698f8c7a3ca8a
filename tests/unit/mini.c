// SPDX-License-Identifier: GPL-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/sq_event.h>

#include "mini.h"

#define PAGE	SKUA_ICM_PAGE_SIZE

static bool is_qp_table(unsigned int table)
{
	return table == SKUA_ICM_SQC || table == SKUA_ICM_RQC || table == SKUA_ICM_RRC ||
	       table == SKUA_ICM_LRC;
}

static uint32_t log_num(const struct mini *m, unsigned int table)
{
	uint32_t log = MINI_LOG_QP;

	switch (table) {
	case SKUA_ICM_SQC:
	case SKUA_ICM_RQC:
	case SKUA_ICM_RRC:
	case SKUA_ICM_LRC:
		if (table == SKUA_ICM_LRC && m->log_lrc)
			return m->log_lrc;
		/* What is mapped is rounded up, and must still lie in the table. */
		while (1u << log < 2 * m->qps)
			log++;
		return log;
	case SKUA_ICM_CQC:
	case SKUA_ICM_SRQC:
		return MINI_LOG_QP;
	case SKUA_ICM_MPT:
		return MINI_LOG_MPT;
	case SKUA_ICM_MTT:
		return MINI_LOG_MTT;
	case SKUA_ICM_EQC:
		return MODEL_LOG_EQ;
	case SKUA_ICM_GID:
		return MODEL_LOG_GID;
	case SKUA_ICM_RSS:
		return MODEL_LOG_RSS;
	}
	return 8;
}

static const uint32_t entry_size[SKUA_ICM_TABLES] = {
#define X(name, number, size, text) [SKUA_ICM_##name] = size,
	SKUA_ICM_TABLE(X)
#undef X
};

/* --- commands --- */

static void tell_address(struct mini *m, const struct skua_cmd_set_gid_in *in)
{
	struct judge_addr addr = { .vlan = le16_to_cpu(in->gid.vlan) };

	memcpy(addr.mac, in->gid.mac, sizeof(addr.mac));
	memcpy(addr.gid, in->gid.gid, sizeof(addr.gid));
	judge_address(&m->f->judge, le32_to_cpu(in->index), &addr);
}

static bool is_xrc(enum skua_qp_type type)
{
	return type == SKUA_QP_XRC_INI || type == SKUA_QP_XRC_TGT;
}

/*
 * The judge learns what the device is told of a connection: that it may send before it
 * does, the rest when it was done.
 */
static void tell_judge(struct mini *m, enum skua_cmd_op op, const void *in, bool done)
{
	const struct skua_cmd_modify_qp_in *mod = in;
	const struct skua_cmd_create_qp_in *make = in;
	const struct skua_cmd_index_in *index = in;
	const struct skua_qp_attr *a = &mod->attr;
	struct judge_path path;
	uint32_t state;

	if (op == SKUA_CMD_SET_GID && done)
		tell_address(m, in);
	if (op == SKUA_CMD_CREATE_QP && done && is_xrc(le32_get_bits(make->sq.flags, SKUA_QP_TYPE)))
		judge_makes_xrc(&m->f->judge, le32_to_cpu(make->sq.qpn));
	if (op == SKUA_CMD_DESTROY_QP && done)
		judge_destroys(&m->f->judge, le32_to_cpu(index->index));
	if (op != SKUA_CMD_MODIFY_QP || !(le32_to_cpu(mod->mask) & SKUA_QP_M_STATE))
		return;
	state = le32_get_bits(a->state, SKUA_ATTR_STATE);
	if (done == (state == SKUA_QP_RTS))
		return;
	path = (struct judge_path){
		.own = le32_to_cpu(mod->qpn),
		.peer = le32_to_cpu(a->dest_qpn),
		.mtu = 128u << le32_get_bits(a->retry, SKUA_ATTR_PATH_MTU),
		.depth = le32_get_bits(a->rights, SKUA_ATTR_MAX_RD_ATOMIC),
		.sq_psn = le32_to_cpu(a->sq_psn),
		.rq_psn = le32_to_cpu(a->rq_psn),
		.sgid_index = le16_to_cpu(a->av.sgid_index),
	};
	memcpy(path.sgid, a->av.dgid, sizeof(path.sgid));
	switch (state) {
	case SKUA_QP_RTR:
		/* Datagram queue pairs have no peer. */
		if (le32_to_cpu(mod->mask) & SKUA_QP_M_DEST_QPN)
			judge_hears(&m->f->judge, &path);
		break;
	case SKUA_QP_RTS:
		if (le32_to_cpu(mod->mask) & SKUA_QP_M_SQ_PSN)
			judge_sends(&m->f->judge, &path);
		break;
	case SKUA_QP_RESET:
		judge_stops(&m->f->judge, path.own);
		break;
	}
}

struct skua_cmd_slot *mini_cmd_start(struct mini *m, enum skua_cmd_op op, const void *in,
				     size_t in_len, size_t out_len)
{
	struct skua_cmd_slot *slot = fake_ptr(m->f, m->cmdq);
	uint32_t token;

	slot += m->slot;
	if (!++m->gen)
		m->gen++;
	token = (uint32_t)m->gen << 16 | m->slot;
	m->slot = (m->slot + 1) % (1u << MINI_CMDQ_LOG);
	if (in_len && in)
		memcpy(fake_ptr(m->f, m->in), in, in_len);
	memset(fake_ptr(m->f, m->out), 0xa5, SKUA_CMD_MBOX_SIZE);
	memset(slot, 0, sizeof(*slot));
	slot->token = cpu_to_le32(token);
	slot->opcode = cpu_to_le16(op);
	slot->in = cpu_to_le64(m->in);
	slot->out = cpu_to_le64(m->out);
	slot->in_len = cpu_to_le32(in_len);
	slot->out_len = cpu_to_le32(out_len);
	if (in && in_len >= sizeof(struct skua_cmd_modify_qp_in))
		tell_judge(m, op, in, false);
	fake_wr32(m->f, SKUA_REG_CMDQ_DB, token);
	return slot;
}

int mini_cmd(struct mini *m, enum skua_cmd_op op, const void *in, size_t in_len, void *out,
	     size_t out_len)
{
	const struct skua_cmd_slot *slot = mini_cmd_start(m, op, in, in_len, out_len);
	__le32 token = slot->token;

	fake_run(m->f);
	if (slot->done != token)
		return -1;
	if (out)
		memcpy(out, fake_ptr(m->f, m->out), out_len);
	if (!slot->status && in)
		tell_judge(m, op, in, true);
	return le32_to_cpu(slot->status);
}

int mini_index(struct mini *m, enum skua_cmd_op op, uint32_t index, void *out, size_t out_len)
{
	struct skua_cmd_index_in in = { .index = cpu_to_le32(index) };

	return mini_cmd(m, op, &in, sizeof(in), out, out_len);
}

void mini_ok(struct mini *m, enum skua_cmd_op op, const void *in, size_t in_len)
{
	assert_int_equal(mini_cmd(m, op, in, in_len, NULL, 0), SKUA_CMD_ST_OK);
}

uint64_t mini_counter(struct mini *m, enum skua_counter cnt)
{
	tlp_counters(m->f->dev);
	return m->f->dev->cnt[cnt];
}

/* --- bring-up --- */

void mini_ring_up(struct mini *m, struct fake *f)
{
	memset(m, 0, sizeof(*m));
	m->ring_align = PAGE;
	judge_reset(&f->judge);
	m->f = f;
	m->next_qpn = 2;
	m->next_mpt = SKUA_RESERVED_KEYS;
	m->cmdq = fake_alloc(f, sizeof(struct skua_cmd_slot) << MINI_CMDQ_LOG, 64);
	m->in = fake_alloc(f, SKUA_CMD_MBOX_SIZE, PAGE);
	m->out = fake_alloc(f, SKUA_CMD_MBOX_SIZE, PAGE);
	assert_int_equal(fake_rd32(f, SKUA_REG_ID), SKUA_ID_MAGIC);
	assert_int_equal(fake_rd32(f, SKUA_REG_STATUS), SKUA_STATUS_READY);
	fake_wr32(f, SKUA_REG_UAR_PAGE_SHIFT, 12);
	fake_wr64(f, SKUA_REG_CMDQ_BASE, m->cmdq);
	fake_wr32(f, SKUA_REG_CMDQ_LOG_SIZE, MINI_CMDQ_LOG);
	fake_wr32(f, SKUA_REG_CMDQ_CTRL, SKUA_CMDQ_CTRL_ENABLE);
}

void mini_init_in(struct mini *m, struct skua_cmd_init_device_in *in)
{
	uint64_t at = 0x10000;

	memset(in, 0, sizeof(*in));
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		uint64_t bytes = (uint64_t)entry_size[i] << log_num(m, i);

		m->base[i] = at;
		in->icm[i].base = cpu_to_le64(at);
		in->icm[i].log_num = cpu_to_le32(log_num(m, i));
		at += (bytes + PAGE - 1) & ~(PAGE - 1);
	}
}

int mini_map(struct mini *m, uint64_t addr, uint64_t bus, unsigned int log_pages)
{
	_Alignas(8) uint8_t body[sizeof(struct skua_cmd_map_icm_in) + 8] = { 0 };
	struct skua_cmd_map_icm_in *in = (void *)body;

	in->addr = cpu_to_le64(addr);
	in->count = cpu_to_le32(1);
	in->page[0] = cpu_to_le64(bus | log_pages);
	return mini_cmd(m, SKUA_CMD_MAP_ICM, body, sizeof(body), NULL, 0);
}

void mini_map_all(struct mini *m)
{
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		uint64_t num = 1ull << log_num(m, i);
		uint64_t most = is_qp_table(i) && m->qps > MINI_MAPPED ? m->qps : MINI_MAPPED;
		unsigned int log = 0;
		uint64_t bytes;

		if (i == SKUA_ICM_MTT && num > 8 * MINI_MAPPED)
			num = 8 * MINI_MAPPED;
		else if (i != SKUA_ICM_MTT && num > most)
			num = most;
		bytes = num * entry_size[i];
		while (PAGE << log < bytes)
			log++;
		m->icm[i] = fake_alloc(m->f, PAGE << log, PAGE);
		assert_int_equal(mini_map(m, m->base[i], m->icm[i], log), 0);
	}
}

void *mini_icm(struct mini *m, enum skua_icm_table table, uint64_t index)
{
	return fake_ptr(m->f, m->icm[table] + index * entry_size[table]);
}

void mini_up(struct mini *m, struct fake *f)
{
	mini_up_tables(m, f, 0, 0);
}

void mini_up_qps(struct mini *m, struct fake *f, uint32_t qps)
{
	mini_up_tables(m, f, qps, 0);
}

void mini_up_tables(struct mini *m, struct fake *f, uint32_t qps, uint32_t log_lrc)
{
	struct skua_cmd_query_device_out dev;
	struct skua_cmd_init_device_in init;
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_ASYNC_EQ | SKUA_DEV_M_ROCE),
		.async_eqn = cpu_to_le32(MINI_EQ_ASYNC),
		.roce = cpu_to_le32(1),
	};
	struct skua_cmd_modify_port_in port = {
		.mask = cpu_to_le32(SKUA_PORT_M_ENABLE | SKUA_PORT_M_MTU),
		.enable = cpu_to_le32(1),
		.mtu = cpu_to_le16(MINI_MTU),
	};
	struct skua_eqe eqe = { 0 };

	mini_ring_up(m, f);
	m->qps = qps;
	m->log_lrc = log_lrc;
	if (qps)
		m->ring_align = SKUA_WQE_BLOCK;
	assert_int_equal(mini_cmd(m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &dev, sizeof(dev)), 0);
	m->caps = le64_to_cpu(dev.caps);
	mini_init_in(m, &init);
	mini_map_all(m);
	mini_ok(m, SKUA_CMD_INIT_DEVICE, &init, sizeof(init));
	assert_int_equal(fake_rd32(f, SKUA_REG_STATUS),
			 SKUA_STATUS_READY | SKUA_STATUS_OPERATIONAL);
	for (uint32_t i = 0; i < MINI_EQS; i++) {
		assert_int_equal(mini_eq_create(m, &m->eq[i], i, MINI_EQ_LOG, 0, i), 0);
		mini_eq_db(m, &m->eq[i], true);
	}
	mini_ok(m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	mini_ok(m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
	/* The link came up. */
	assert_true(mini_eq_next(m, &m->eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_PORT);
	mini_eq_db(m, &m->eq[MINI_EQ_ASYNC], true);
}

/* --- EQ --- */

struct skua_eqc mini_eqc(struct mini *m, struct mini_eq *eq, uint32_t eqn, uint32_t log,
			 uint32_t uar, uint32_t vector)
{
	*eq = (struct mini_eq){
		.eqn = eqn,
		.log = log,
		.uar = uar,
		.ring = fake_alloc(m->f, sizeof(struct skua_eqe) << log, 64),
	};
	return (struct skua_eqc){
		.flags = le32_encode_bits(log, SKUA_EQC_LOG_SIZE) |
			 le32_encode_bits(vector, SKUA_EQC_VECTOR),
		.uar = cpu_to_le32(uar),
		.base = cpu_to_le64(eq->ring),
		.eqn = cpu_to_le32(eqn),
	};
}

int mini_eq_create(struct mini *m, struct mini_eq *eq, uint32_t eqn, uint32_t log, uint32_t uar,
		   uint32_t vector)
{
	struct skua_eqc eqc = mini_eqc(m, eq, eqn, log, uar, vector);

	return mini_cmd(m, SKUA_CMD_CREATE_EQ, &eqc, sizeof(eqc), NULL, 0);
}

bool mini_eq_next(struct mini *m, struct mini_eq *eq, struct skua_eqe *eqe)
{
	const struct skua_eqe *at = fake_ptr(m->f, eq->ring);

	at += eq->ci & ((1u << eq->log) - 1);
	if (!skua_eqe_is_new(at, eq->ci, eq->log))
		return false;
	*eqe = *at;
	eq->ci++;
	return true;
}

void mini_eq_db(struct mini *m, struct mini_eq *eq, bool arm)
{
	fake_db(m->f, eq->uar, SKUA_UAR_EQ, eq->ci, eq->eqn | (arm ? SKUA_UAR_EQ_ARM : 0));
	fake_run(m->f);
}

/* --- CQ --- */

struct skua_cqc mini_cqc(struct mini *m, struct mini_cq *cq, uint32_t log, uint32_t cqe_size)
{
	*cq = (struct mini_cq){
		.cqn = m->next_cqn++,
		.log = log,
		.size = cqe_size,
		.ring = fake_alloc(m->f, (size_t)cqe_size << log, PAGE),
		.dbr = fake_alloc(m->f, sizeof(struct skua_cq_dbr), SKUA_DBR_ALIGN),
	};
	return (struct skua_cqc){
		.flags = le32_encode_bits(log, SKUA_CQC_LOG_SIZE) |
			 cpu_to_le32(cqe_size == 128 ? SKUA_CQC_CQE128 : 0),
		.eqn = cpu_to_le32(MINI_EQ_COMP),
		.uar = cpu_to_le32(MINI_UAR),
		.ring.base = cpu_to_le64(cq->ring),
		.dbr = cpu_to_le64(cq->dbr),
		.cqn = cpu_to_le32(cq->cqn),
	};
}

void mini_cq_create(struct mini *m, struct mini_cq *cq, uint32_t log)
{
	struct skua_cqc cqc = mini_cqc(m, cq, log, 64);

	mini_ok(m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
}

static const struct skua_cqe *cqe_at(struct mini *m, const struct mini_cq *cq)
{
	uint64_t off = (uint64_t)(cq->ci & ((1u << cq->log) - 1)) * cq->size;

	return fake_ptr(m->f, cq->ring + off + cq->size - sizeof(struct skua_cqe));
}

bool mini_cq_peek(struct mini *m, const struct mini_cq *cq)
{
	return skua_cqe_is_new(cqe_at(m, cq), cq->ci, cq->log);
}

bool mini_cq_next(struct mini *m, struct mini_cq *cq, struct skua_cqe *cqe)
{
	struct skua_cq_dbr *dbr = fake_ptr(m->f, cq->dbr);
	const struct skua_cqe *at = cqe_at(m, cq);

	if (!mini_cq_peek(m, cq))
		return false;
	*cqe = *at;
	dbr->ci = cpu_to_le32(++cq->ci);
	return true;
}

void mini_cq_arm(struct mini *m, struct mini_cq *cq, bool solicited)
{
	fake_db(m->f, MINI_UAR, SKUA_UAR_CQ_ARM, cq->ci,
		cq->cqn | u32_encode_bits(cq->serial++ & 3, SKUA_UAR_CQ_ARM_SERIAL) |
		(solicited ? SKUA_UAR_CQ_ARM_SOLICITED : 0));
	fake_run(m->f);
}

/* --- MR --- */

static struct skua_mpt mpt_make(struct mini *m, uint64_t va, uint64_t len, uint32_t access)
{
	uint32_t index = m->next_mpt++;

	return (struct skua_mpt){
		/* Any variant but zero, so that a test that drops it fails. */
		.key = cpu_to_le32(index << 8 | (0x40 + index % 0x80)),
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(access),
		.pd = cpu_to_le32(MINI_PD),
		.va = cpu_to_le64(va),
		.len = cpu_to_le64(len),
	};
}

uint32_t mini_mr(struct mini *m, uint64_t va, uint64_t bus, uint64_t len, uint32_t access)
{
	struct skua_mpt mpt = mpt_make(m, va, len, access);

	mpt.xlat.base = cpu_to_le64(bus);
	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

uint32_t mini_mr_mtt(struct mini *m, uint64_t va, const uint64_t *page, uint32_t npages,
		     uint32_t log_page, uint32_t offset, uint64_t len, uint32_t access)
{
	struct skua_mpt mpt = mpt_make(m, va, len, access);

	/* The device caches whole groups: they are not shared. */
	m->next_mtt = (m->next_mtt + SKUA_MTT_GROUP - 1) / SKUA_MTT_GROUP * SKUA_MTT_GROUP;
	mpt.xlat.base = cpu_to_le64(m->next_mtt);
	mpt.xlat.offset = cpu_to_le32(offset);
	mpt.xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
			le32_encode_bits(log_page, SKUA_XLAT_LOG_PAGE);
	mpt.npages = cpu_to_le32(npages);
	for (uint32_t i = 0; i < npages; i++) {
		__le64 word = cpu_to_le64(page[i] | SKUA_MTT_PRESENT | SKUA_MTT_WRITE);

		memcpy(mini_icm(m, SKUA_ICM_MTT, m->next_mtt++), &word, sizeof(word));
	}
	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

/* --- GID --- */

void mini_gid_addr(uint8_t gid[16], uint16_t host, bool ipv6)
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 0 };
	static const uint8_t v6[16] = { 0xfd };

	memcpy(gid, ipv6 ? v6 : v4, 16);
	gid[14] = (uint8_t)(host >> 8);
	gid[15] = (uint8_t)host;
}

int mini_gid(struct mini *m, uint32_t index, uint16_t host, bool ipv6, uint16_t vlan)
{
	struct skua_cmd_set_gid_in in = {
		.index = cpu_to_le32(index),
		.gid.vlan = cpu_to_le16(vlan),
		.gid.flags = cpu_to_le32(SKUA_GID_VALID | (ipv6 ? 0 : SKUA_GID_IPV4)),
	};

	mini_gid_addr(in.gid.gid, host, ipv6);
	memcpy(in.gid.mac, m->f->dev->cfg.mac, sizeof(in.gid.mac));
	return mini_cmd(m, SKUA_CMD_SET_GID, &in, sizeof(in), NULL, 0);
}

/* --- QP --- */

struct skua_cmd_create_qp_in mini_qp_in(struct mini *m, struct mini_qp *qp,
					enum skua_qp_type type, struct mini_cq *scq,
					struct mini_cq *rcq, uint32_t log_sq, uint32_t log_rq,
					uint32_t log_stride)
{
	uint32_t index = m->next_qpn++;
	struct skua_cmd_create_qp_in in;

	*qp = (struct mini_qp){
		/* Variant bits above the index, so that a test that drops them fails. */
		.qpn = index | (index % 60 + 1) << MODEL_LOG_QP,
		.type = type,
		.log_sq = log_sq,
		.log_rq = log_rq,
		.log_stride = log_stride,
		.sq = fake_alloc(m->f, (size_t)SKUA_WQE_BLOCK << log_sq, m->ring_align),
		.rq = fake_alloc(m->f, (size_t)SKUA_WQE_SEG << (log_rq + log_stride),
				 m->ring_align),
		.dbr = fake_alloc(m->f, sizeof(struct skua_qp_dbr), SKUA_DBR_ALIGN),
		.suppress = m->qp_flags & SKUA_QP_F_DB_SUPPRESS,
		.scq = scq,
		.rcq = rcq,
	};
	in = (struct skua_cmd_create_qp_in){
		.sq.flags = le32_encode_bits(type, SKUA_QP_TYPE) |
			    le32_encode_bits(log_sq, SKUA_QP_LOG_SQ) |
			    cpu_to_le32(SKUA_QP_F_RESERVED_LKEY | m->qp_flags),
		.sq.pd = cpu_to_le32(MINI_PD),
		.sq.cqn = cpu_to_le32(scq->cqn),
		.sq.uar = cpu_to_le32(MINI_UAR),
		.sq.ring.base = cpu_to_le64(qp->sq),
		.sq.dbr = cpu_to_le64(qp->dbr),
		.sq.max_inline = cpu_to_le32(MODEL_MAX_INLINE),
		.sq.qpn = cpu_to_le32(qp->qpn),
		.rq.flags = le32_encode_bits(log_rq, SKUA_RQ_LOG_SIZE) |
			    le32_encode_bits(log_stride, SKUA_RQ_LOG_STRIDE),
		.rq.cqn = cpu_to_le32(rcq->cqn),
		.rq.ring.base = cpu_to_le64(qp->rq),
	};
	/* XRC receives from SRQs, which have PDs and CQs of their own. */
	if (is_xrc(type)) {
		memset(&in.rq, 0, sizeof(in.rq));
		in.sq.flags |= cpu_to_le32(SKUA_QP_F_NO_RQ);
	}
	if (type == SKUA_QP_XRC_TGT) {
		in.sq.flags = le32_encode_bits(type, SKUA_QP_TYPE) |
			      cpu_to_le32(SKUA_QP_F_NO_SQ | SKUA_QP_F_NO_RQ);
		in.sq.pd = 0;
		in.sq.cqn = 0;
		memset(&in.sq.ring, 0, sizeof(in.sq.ring));
		in.rq.xrcd = cpu_to_le32(MINI_XRCD);
	}
	return in;
}

void mini_qp_create(struct mini *m, struct mini_qp *qp, enum skua_qp_type type,
		    struct mini_cq *scq, struct mini_cq *rcq, uint32_t log_sq, uint32_t log_rq,
		    uint32_t log_stride)
{
	struct skua_cmd_create_qp_in in = mini_qp_in(m, qp, type, scq, rcq, log_sq, log_rq,
						     log_stride);

	mini_ok(m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
}

int mini_qp_modify(struct mini *m, const struct mini_qp *qp, enum skua_qp_state state,
		   uint32_t mask, const struct skua_qp_attr *attr)
{
	struct skua_cmd_modify_qp_in in = {
		.qpn = cpu_to_le32(qp->qpn),
		.mask = cpu_to_le32(mask | SKUA_QP_M_STATE),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
	};
	uint32_t retry = 0, rights = 0;

	if (attr)
		in.attr = *attr;
	retry |= mask & SKUA_QP_M_RETRY_CNT ? SKUA_ATTR_RETRY_CNT : 0;
	retry |= mask & SKUA_QP_M_RNR_RETRY ? SKUA_ATTR_RNR_RETRY : 0;
	retry |= mask & SKUA_QP_M_ACK_TIMEOUT ? SKUA_ATTR_ACK_TIMEOUT : 0;
	retry |= mask & SKUA_QP_M_MIN_RNR_TIMER ? SKUA_ATTR_MIN_RNR_TIMER : 0;
	retry |= mask & SKUA_QP_M_PATH_MTU ? SKUA_ATTR_PATH_MTU : 0;
	rights |= mask & SKUA_QP_M_MAX_RD_ATOMIC ? SKUA_ATTR_MAX_RD_ATOMIC : 0;
	rights |= mask & SKUA_QP_M_MAX_DEST_RD_ATOMIC ? SKUA_ATTR_MAX_DEST_RD_ATOMIC : 0;
	rights |= mask & SKUA_QP_M_ACCESS ? SKUA_ATTR_ACCESS : 0;
	in.attr.retry &= cpu_to_le32(retry);
	in.attr.rights &= cpu_to_le32(rights);
	in.attr.state = le32_encode_bits(state, SKUA_ATTR_STATE) |
			cpu_to_le32(mask & SKUA_QP_M_SQD_NOTIFY ? SKUA_ATTR_SQD_NOTIFY : 0);
	if (!(mask & SKUA_QP_M_AV))
		memset(&in.attr.av, 0, sizeof(in.attr.av));
	if (!(mask & SKUA_QP_M_DEST_QPN))
		in.attr.dest_qpn = 0;
	if (!(mask & SKUA_QP_M_QKEY))
		in.attr.qkey = 0;
	if (!(mask & SKUA_QP_M_VENDOR_OFF))
		in.attr.vendor_off = 0;
	if (!(mask & SKUA_QP_M_EXT))
		in.attr.ext = 0;
	if (in.attr.ext) {
		uint32_t log = le32_get_bits(in.attr.ext, SKUA_ATTR_EXT_LOG_WINDOW);
		uint32_t table = (uint32_t)SKUA_EXT_TABLE_BYTES(log);
		uint32_t ring = le32_to_cpu(in.attr.ext) & SKUA_ATTR_EXT_ONLOAD ?
				SKUA_RECOVERY_RING * sizeof(struct skua_recovery_cmd) : 0;
		uint32_t recvs = qp->shared || qp->type == SKUA_QP_XRC_TGT ?
				 (uint32_t)sizeof(struct skua_ext_recv) << log : 0;

		in.ext_len = cpu_to_le32(table + ring + recvs);
		in.ext_table = cpu_to_le64(fake_alloc(m->f, table + ring + recvs, table));
		m->rec_ring = le64_to_cpu(in.ext_table) + table;
		/* It knows the standard only. */
		m->f->unjudged = true;
	}
	if (!(mask & SKUA_QP_M_SQ_PSN))
		in.attr.sq_psn = 0;
	if (!(mask & SKUA_QP_M_RQ_PSN))
		in.attr.rq_psn = 0;
	return mini_cmd(m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0);
}

struct skua_qp_attr mini_rc_attr(uint32_t dest, uint16_t host, const uint8_t dmac[6], bool ipv6,
				 uint32_t sq_psn, uint32_t rq_psn, uint32_t mtu_code)
{
	struct skua_qp_attr attr = {
		.av.hop_limit = 64,
		.dest_qpn = cpu_to_le32(dest),
		.sq_psn = cpu_to_le32(sq_psn),
		.rq_psn = cpu_to_le32(rq_psn),
		.retry = le32_encode_bits(7, SKUA_ATTR_RETRY_CNT) |
			 le32_encode_bits(7, SKUA_ATTR_RNR_RETRY) |
			 le32_encode_bits(14, SKUA_ATTR_ACK_TIMEOUT) |
			 le32_encode_bits(12, SKUA_ATTR_MIN_RNR_TIMER) |
			 le32_encode_bits(mtu_code, SKUA_ATTR_PATH_MTU),
		.rights = le32_encode_bits(MODEL_MAX_RD_ATOMIC, SKUA_ATTR_MAX_RD_ATOMIC) |
			  le32_encode_bits(MODEL_MAX_RD_ATOMIC, SKUA_ATTR_MAX_DEST_RD_ATOMIC) |
			  le32_encode_bits(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
					   SKUA_ACCESS_REMOTE_ATOMIC, SKUA_ATTR_ACCESS),
	};

	mini_gid_addr(attr.av.dgid, host, ipv6);
	memcpy(attr.av.dmac, dmac, sizeof(attr.av.dmac));
	return attr;
}

void mini_rc_to_rts(struct mini *m, const struct mini_qp *qp, const struct skua_qp_attr *attr)
{
	bool ud = qp->type == SKUA_QP_UD || qp->type == SKUA_QP_GSI;
	bool rc = qp->type == SKUA_QP_RC;
	uint32_t init = SKUA_QP_M_PKEY | SKUA_QP_M_PORT |
			(ud ? SKUA_QP_M_QKEY : SKUA_QP_M_ACCESS);
	uint32_t rtr = ud ? 0 : SKUA_QP_M_AV | SKUA_QP_M_PATH_MTU | SKUA_QP_M_DEST_QPN |
				SKUA_QP_M_RQ_PSN;
	uint32_t rts = SKUA_QP_M_SQ_PSN;

	if (rc) {
		rtr |= SKUA_QP_M_MAX_DEST_RD_ATOMIC | SKUA_QP_M_MIN_RNR_TIMER;
		rts |= SKUA_QP_M_ACK_TIMEOUT | SKUA_QP_M_RETRY_CNT | SKUA_QP_M_RNR_RETRY |
		       SKUA_QP_M_MAX_RD_ATOMIC;
	}
	if (attr->vendor_off)
		rtr |= SKUA_QP_M_VENDOR_OFF;
	if (attr->ext)
		rtr |= SKUA_QP_M_EXT;
	assert_int_equal(mini_qp_modify(m, qp, SKUA_QP_INIT, init, attr), 0);
	assert_int_equal(mini_qp_modify(m, qp, SKUA_QP_RTR, rtr, attr), 0);
	assert_int_equal(mini_qp_modify(m, qp, SKUA_QP_RTS, rts, attr), 0);
}

void mini_eth_to_rts(struct mini *m, const struct mini_qp *qp)
{
	assert_int_equal(mini_qp_modify(m, qp, SKUA_QP_INIT, SKUA_QP_M_PORT, NULL), 0);
	assert_int_equal(mini_qp_modify(m, qp, SKUA_QP_RTR, 0, NULL), 0);
	assert_int_equal(mini_qp_modify(m, qp, SKUA_QP_RTS, 0, NULL), 0);
}

void mini_post(struct mini *m, struct mini_qp *qp, const void *wqe, unsigned int nseg)
{
	const uint8_t *src = wqe;
	unsigned int blocks = (nseg * SKUA_WQE_SEG + SKUA_WQE_BLOCK - 1) / SKUA_WQE_BLOCK;

	for (unsigned int i = 0; i < nseg; i++) {
		uint64_t seg = ((uint64_t)qp->sq_pi * 4 + i) % (4u << qp->log_sq);
		void *dst = fake_ptr(m->f, qp->sq + seg * SKUA_WQE_SEG);

		memcpy(dst, src + i * SKUA_WQE_SEG, SKUA_WQE_SEG);
		if (!i) {
			struct skua_wqe_ctrl *ctrl = dst;

			le32p_replace_bits(&ctrl->op, nseg, SKUA_WQE_NSEG);
			le32p_replace_bits(&ctrl->op, qp->sq_pi & 0xffff, SKUA_WQE_INDEX);
		}
	}
	qp->sq_pi += blocks;
}

bool mini_ring(struct mini *m, struct mini_qp *qp)
{
	uint32_t old = qp->sq_told;

	qp->sq_told = qp->sq_pi;
	if (!skua_sq_record(fake_ptr(m->f, qp->dbr), qp->sq_pi, old, qp->suppress))
		return false;
	fake_db(m->f, MINI_UAR, SKUA_UAR_SQ, qp->sq_pi, qp->qpn);
	return true;
}

void mini_recv(struct mini *m, struct mini_qp *qp, const struct skua_wqe_data *sge,
	       unsigned int nsge)
{
	struct skua_qp_dbr *dbr = fake_ptr(m->f, qp->dbr);
	uint64_t stride = (uint64_t)SKUA_WQE_SEG << qp->log_stride;
	struct skua_wqe_data *dst = fake_ptr(m->f, qp->rq +
					     (qp->rq_pi & ((1u << qp->log_rq) - 1)) * stride);

	/* What is behind the end mark stays: it is of an earlier use. */
	memcpy(dst, sge, nsge * sizeof(*sge));
	if (nsge < 1u << qp->log_stride)
		dst[nsge] = (struct skua_wqe_data){ .lkey = cpu_to_le32(SKUA_INVALID_LKEY) };
	dbr->rq_pi = cpu_to_le32(++qp->rq_pi);
}
