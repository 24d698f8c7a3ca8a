/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua provider: the encoder of send WQEs.
 *
 * ibv_post_send() and the ibv_wr_*() calls share it. A WQE is written in four
 * steps: begin (may it be posted, is there room), the head (address vector,
 * remote address, operands), the payload, end (control segment, what software
 * remembers). What an opcode needs and allows is a row of send_ops.
 */
#ifndef SKUA_PROVIDER_SEND_H
#define SKUA_PROVIDER_SEND_H

#include <errno.h>

#include "skua.h"
#include "db.h"

/**
 * enum send_head - what lies between a WQE's control segment and its payload,
 *	beside the address vector or XRC segment that the QP's type asks for
 * @HEAD_NONE: nothing
 * @HEAD_RADDR: remote address
 * @HEAD_CAS: remote address, operands of a compare and swap
 * @HEAD_FAA: remote address, operand of a fetch and add
 * @HEAD_FLUSH: remote address with what is to be flushed
 * @HEAD_BIND: memory window and what to bind it to
 */
enum send_head {
	HEAD_NONE,
	HEAD_RADDR,
	HEAD_CAS,
	HEAD_FAA,
	HEAD_FLUSH,
	HEAD_BIND,
};

/* What a send opcode may carry. */
#define OP_INLINE	BIT(0)	/* its payload in the WQE */
#define OP_IMM		BIT(1)	/* immediate data */
#define OP_INV		BIT(2)	/* a key to invalidate */
#define OP_LEN		BIT(3)	/* the length of a flush */
#define OP_NODATA	BIT(4)	/* no payload at all */
#define OP_LOCAL	BIT(5)	/* goes nowhere: no address vector, no XRC segment */

/* What shares a word of the control segment. */
#define OP_WORD		(OP_IMM | OP_INV | OP_LEN)

/**
 * struct send_op - a send opcode of the verbs
 * @op: enum skua_wqe_op
 * @wc: enum ibv_wc_opcode
 * @head: enum send_head
 * @head_segs: segments that @head takes up
 * @how: OP_*
 * @flags: SKUA_WQE_F_* that make sense with it
 */
struct send_op {
	uint8_t op;
	uint8_t wc;
	uint8_t head;
	uint8_t head_segs;
	uint16_t how;
	uint16_t flags;
};

#define SEND_OPS	16
#define ALL_SEND_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |		\
			 IBV_SEND_INLINE | IBV_SEND_IP_CSUM)

/* Behind those of the verbs: what SEND is on a RAW_PACKET QP. */
#define SEND_OP_ETH	SEND_OPS

/* By enum ibv_wr_opcode; and IBV_SEND_* to SKUA_WQE_F_*. send.c */
extern const struct send_op send_ops[SEND_OPS + 1] __attribute__((visibility("hidden")));
extern const uint16_t send_flags[ALL_SEND_FLAGS + 1] __attribute__((visibility("hidden")));

/* An inline segment at segment @seg of the WQE at @index. send.c */
void send_inline_long(const struct skua_sq_ring *ring, uint32_t index, unsigned int seg,
		      const struct ibv_sge *sg, unsigned int num)
		      __attribute__((visibility("hidden")));

/* Start a list of WQEs at @pi, the producer index or behind it. The queue is locked. */
static inline void enc_start(struct send_enc *e, struct skua_sq *sq, uint32_t pi)
{
	e->sq = sq;
	e->pi = pi;
	e->room = sq->blocks -
		  (e->pi - atomic_load_explicit(&sq->ci, memory_order_acquire));
}

/* Is there room for @nseg segments? Loads the consumer index again if there seems to be none. */
static inline int enc_reserve(struct send_enc *e, unsigned int nseg)
{
	unsigned int blocks = skua_wqe_blocks(nseg);

	if (likely(blocks <= e->room))
		return 0;
	e->room = e->sq->blocks -
		  (e->pi - atomic_load_explicit(&e->sq->ci, memory_order_acquire));
	return blocks <= e->room ? 0 : ENOMEM;
}

/* A segment before the payload: they are all in the first block. */
static inline void *enc_head(const struct send_enc *e, unsigned int seg)
{
	return e->block + seg * SKUA_WQE_SEG;
}

/* Begin a WQE of an enum ibv_wr_opcode, if that is in @ops. */
static inline int enc_begin(struct send_enc *e, unsigned int opcode, uint32_t ops)
{
	struct skua_sq *sq = e->sq;

	if (unlikely(opcode >= SEND_OPS))
		return EINVAL;
	if (unlikely(!(ops & BIT(opcode))))
		return EINVAL;
	if (unlikely(enc_reserve(e, 1)))
		return ENOMEM;
	e->op = &send_ops[opcode + sq->first_op];
	e->block = skua_sq_seg(&sq->ring, e->pi, 0);
	e->head = unlikely(e->op->how & OP_LOCAL) ? 1 : sq->head_segs;
	e->nseg = e->head + e->op->head_segs;
	return 0;
}

/* Does the WQE have an address vector or XRC segment? */
static inline bool enc_has_addr(const struct send_enc *e)
{
	return e->head > 1;
}

static inline void enc_av(struct send_enc *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	skua_wqe_av_set(enc_head(e, 1), &to_sah(ah)->av, qpn, qkey);
}

static inline void enc_xrc(struct send_enc *e, uint32_t srqn)
{
	skua_wqe_xrc_set(enc_head(e, 1), srqn);
}

static inline void enc_raddr(struct send_enc *e, uint64_t va, uint32_t rkey)
{
	skua_wqe_raddr_set(enc_head(e, e->head), va, rkey, 0);
}

static inline void enc_atomic(struct send_enc *e, uint64_t swap_add, uint64_t compare)
{
	skua_wqe_atomic_set(enc_head(e, e->head + 1), swap_add, compare);
}

/* Placement: IBV_FLUSH_* of type; extent: enum ibv_selectivity_level. */
static inline int enc_flush(struct send_enc *e, uint64_t va, uint32_t rkey, uint64_t len,
			    uint8_t type, uint8_t level)
{
	if (unlikely(len > UINT32_MAX || level > IBV_FLUSH_MR ||
		     type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)))
		return EINVAL;
	skua_wqe_raddr_set(enc_head(e, e->head), va, rkey,
			   u32_encode_bits(type, SKUA_WQE_FLUSH_PLT) |
			   u32_encode_bits(level, SKUA_WQE_FLUSH_SEL));
	e->flush_len = level == IBV_FLUSH_MR ? 0 : len;
	return 0;
}

/* Does not check the type of the window, which the caller does. */
static inline int enc_bind(struct send_enc *e, const struct ibv_mw *mw, uint32_t rkey,
			   const struct ibv_mw_bind_info *info)
{
	uint32_t access;

	/* A consumer may change the low byte of a key only. */
	if (unlikely((rkey ^ mw->rkey) & ~0xffU ||
		     skua_mw_access(info->mw_access_flags, &access)))
		return EINVAL;
	skua_wqe_bind_set(enc_head(e, 1), mw->rkey, rkey,
			  info->mr ? info->mr->lkey : 0, access, info->addr, info->length);
	return 0;
}

static inline int enc_sges(struct send_enc *e, const struct ibv_sge *sg, unsigned int num)
{
	struct skua_sq_ring ring = e->sq->ring;
	unsigned int nseg = e->nseg, end;

	if (unlikely(num > e->sq->max_sge))
		return EINVAL;
	end = nseg + num;
	if (unlikely(enc_reserve(e, end)))
		return ENOMEM;
	for (; nseg != end; nseg++, sg++)
		skua_wqe_data_set(skua_sq_seg(&ring, e->pi, nseg), sg->addr, sg->lkey,
				  sg->length);
	e->nseg = end;
	return 0;
}

/* Copy at most 48 bytes, with few instructions and without a call. */
static inline void copy_short(uint8_t *to, const uint8_t *from, unsigned int len)
{
	if (len >= 16) {
		memcpy(to, from, 16);
		if (len > 32)
			memcpy(to + 16, from + 16, 16);
		memcpy(to + len - 16, from + len - 16, 16);
	} else if (len >= 8) {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, from, 4);
		memcpy(to + len - 4, from + len - 4, 4);
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

/* A short inline payload, which the caller knows to end in the first block. */
static inline void enc_inline_short(struct send_enc *e, const struct ibv_sge *sg)
{
	uint8_t *seg = enc_head(e, e->nseg);

	/* No block is split by the ring's end. */
	copy_short(seg + sizeof(struct skua_wqe_inline), (const void *)(uintptr_t)sg->addr,
		   sg->length);
	skua_wqe_inline_set((void *)seg, sg->length);
	e->nseg += skua_wqe_inline_segs(sg->length);
}

static inline int enc_inline(struct send_enc *e, const struct ibv_sge *sg, unsigned int num)
{
	unsigned int nseg = e->nseg, i;
	uint64_t len = 0;

	if (unlikely(num > e->sq->max_sge))
		return EINVAL;
	for (i = 0; i < num; i++)
		len += sg[i].length;
	if (unlikely(len > e->sq->max_inline))
		return EINVAL;
	nseg += skua_wqe_inline_segs(len);
	if (unlikely(enc_reserve(e, nseg)))
		return ENOMEM;
	if (num == 1 && nseg <= SKUA_WQE_SEGS_PER_BLOCK)
		enc_inline_short(e, sg);
	else
		send_inline_long(&e->sq->ring, e->pi, e->nseg, sg, num);
	e->nseg = nseg;
	return 0;
}

/* The control segment of a WQE of @nseg segments and @blocks, and what to report on completion. */
static inline void enc_write(const struct send_enc *e, unsigned int nseg, unsigned int blocks,
			     uint64_t wr_id, unsigned int flags)
{
	const struct send_op *op = e->op;
	struct skua_sq *sq = e->sq;
	struct skua_sent *sent = &sq->sent[e->pi & sq->mask];

	skua_wqe_ctrl_set(enc_head(e, 0), op->op, nseg, e->pi,
			  (send_flags[flags & ALL_SEND_FLAGS] & op->flags) | sq->sig);
	sent->wr_id = wr_id;
	sent->at = e->pi;
	sent->opcode = op->wc;
	sent->blocks = blocks;
}

/* Finish a WQE of @blocks. */
static inline void enc_close(struct send_enc *e, unsigned int blocks, uint64_t wr_id,
			     unsigned int flags)
{
	enc_write(e, e->nseg, blocks, wr_id, flags);
	e->pi += blocks;
	e->room -= blocks;
}

static inline void enc_end(struct send_enc *e, uint64_t wr_id, unsigned int flags, __be32 imm,
			   uint32_t inv_key)
{
	struct skua_wqe_ctrl *c = enc_head(e, 0);
	const struct send_op *op = e->op;

	enc_close(e, skua_wqe_blocks(e->nseg), wr_id, flags);
	if (unlikely(op->how & OP_WORD)) {
		if (op->how & OP_IMM)
			skua_wqe_imm_set(c, imm);
		else if (op->how & OP_INV)
			skua_wqe_inv_set(c, inv_key);
		else if (op->head == HEAD_FLUSH)
			skua_wqe_flush_len_set(c, e->flush_len);
	}
}

/* Give the WQEs from @old to @pi to the device. The queue is locked. */
static inline void skua_sq_publish(struct skua_qp *qp, uint32_t pi, uint32_t old)
{
	/* After sq->sent[]: pollers read its entries below this index. */
	atomic_store_explicit(&qp->sq.pi, pi, memory_order_release);
	if (likely(!qp->sq.tell))
		skua_db_sq(qp->uar, qp->dbr, qp->vqp.qp.qp_num, pi, old, false);
	else if (unlikely(qp->sq.tell & SKUA_TELL_BY_PUSH))
		skua_push_sq(qp, pi, old);
	else
		skua_db_sq(qp->uar, qp->dbr, qp->vqp.qp.qp_num, pi, old, true);
}

#endif /* SKUA_PROVIDER_SEND_H */
