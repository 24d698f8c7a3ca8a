// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: polling of extended completion queues.
 *
 * The CQ is locked from start to end. What the readers tell is of a copy of the entry, so that
 * the device can have its place: a program may post again before it goes on to the next one.
 */
#include <errno.h>

#include "skua.h"

static inline struct skua_cq *from_ex(struct ibv_cq_ex *cqx)
{
	return container_of(cqx, struct skua_cq, vcq.cq_ex);
}

static int ex_next(struct ibv_cq_ex *cqx)
{
	struct skua_cq *cq = from_ex(cqx);

	if (!skua_cq_next(cq, &cq->wc))
		return ENOENT;
	cqx->status = cq->wc.status;
	cqx->wr_id = cq->wc.wr_id;
	return 0;
}

static void ex_end(struct ibv_cq_ex *cqx)
{
	skua_unlock(&from_ex(cqx)->lock);
}

static int ex_start(struct ibv_cq_ex *cqx, struct ibv_poll_cq_attr *attr)
{
	struct skua_cq *cq = from_ex(cqx);
	uint32_t ci;
	int ret;

	if (unlikely(attr->comp_mask))
		return EINVAL;
	skua_lock(&cq->lock);
	ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	/* The most frequent case, with few instructions. */
	if (!skua_cqe_is_new(cqe_at(cq, ci), ci, cq->log_size) &&
	    likely(READ_ONCE(cq->status->alive))) {
		skua_unlock(&cq->lock);
		return ENOENT;
	}
	ret = ex_next(cqx);
	if (ret)
		ex_end(cqx);
	return ret;
}

static enum ibv_wc_opcode ex_opcode(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.opcode;
}

static uint32_t ex_vendor_err(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.vendor_err;
}

static uint32_t ex_byte_len(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.byte_len;
}

/* The member invalidated_rkey shares its place. */
static __be32 ex_imm_data(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.imm_data;
}

static uint32_t ex_qp_num(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.qp_num;
}

static uint32_t ex_src_qp(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.src_qp;
}

static unsigned int ex_wc_flags(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.wc_flags;
}

static uint32_t ex_slid(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.slid;
}

static uint8_t ex_sl(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.sl;
}

static uint8_t ex_dlid_path_bits(struct ibv_cq_ex *cqx)
{
	return from_ex(cqx)->wc.dlid_path_bits;
}

/* The device's clock when it wrote the entry; 0 for work that cq_flush_lost() reports. */
static uint64_t ex_completion_ts(struct ibv_cq_ex *cqx)
{
	return le64_to_cpu(from_ex(cqx)->cqe.timestamp);
}

/* Convert ticks, which may be negative, to nanoseconds without overflow. */
static int64_t ticks_to_ns(int64_t ticks, int64_t khz)
{
	return ticks / khz * 1000000 + ticks % khz * 1000000 / khz;
}

/*
 * The pair of clocks is read again when it is a second old: the drift in that time is below
 * the time that reading them takes.
 */
static uint64_t ex_wallclock_ns(struct ibv_cq_ex *cqx)
{
	struct skua_cq *cq = from_ex(cqx);
	uint32_t khz = to_sctx(cqx->context)->lim.clock_khz;
	uint64_t ts = ex_completion_ts(cqx);

	if (!ts)
		return 0;
	if (!cq->clock.clock || (int64_t)(ts - cq->clock.clock) > khz * 1000LL)
		if (skua_clock(cqx->context, &cq->clock))
			return 0;
	return cq->clock.real_ns + ticks_to_ns(ts - cq->clock.clock, khz);
}

static uint16_t ex_cvlan(struct ibv_cq_ex *cqx)
{
	const struct skua_cqe *cqe = &from_ex(cqx)->cqe;

	if (!(skua_cqe_flags(cqe) & SKUA_CQE_F_VLAN))
		return 0;
	return le16_to_cpu(skua_cqe_opcode(cqe) == SKUA_CQE_RECV_ETH ? cqe->eth.vlan_tci :
								     cqe->ud.vlan_tci);
}

static uint32_t ex_flow_tag(struct ibv_cq_ex *cqx)
{
	const struct skua_cqe *cqe = &from_ex(cqx)->cqe;

	return skua_cqe_opcode(cqe) == SKUA_CQE_RECV_ETH ? le32_to_cpu(cqe->eth.flow_tag) : 0;
}

/* All readers are set, whatever wc_flags asked for: an unused one has no cost. */
void skua_cq_ex_init(struct skua_cq *cq)
{
	struct ibv_cq_ex *cqx = &cq->vcq.cq_ex;

	cqx->start_poll = ex_start;
	cqx->next_poll = ex_next;
	cqx->end_poll = ex_end;
	cqx->read_opcode = ex_opcode;
	cqx->read_vendor_err = ex_vendor_err;
	cqx->read_byte_len = ex_byte_len;
	cqx->read_imm_data = ex_imm_data;
	cqx->read_qp_num = ex_qp_num;
	cqx->read_src_qp = ex_src_qp;
	cqx->read_wc_flags = ex_wc_flags;
	cqx->read_slid = ex_slid;
	cqx->read_sl = ex_sl;
	cqx->read_dlid_path_bits = ex_dlid_path_bits;
	cqx->read_completion_ts = ex_completion_ts;
	cqx->read_completion_wallclock_ns = ex_wallclock_ns;
	cqx->read_cvlan = ex_cvlan;
	cqx->read_flow_tag = ex_flow_tag;
}
