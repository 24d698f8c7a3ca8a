// SPDX-License-Identifier: GPL-2.0
/*
 * Atomics, FLUSH and ATOMIC_WRITE, which are requests of one packet with a response of their
 * own: building and parsing of the requests, and the computation of atomics.
 */
#include <string.h>

#include "engine.h"

/* --- computation --- */

/*
 * A carry must not leave its field: the highest bits of the fields are added separately from the
 * other bits, so that there is no carry out of them.
 */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t top)
{
	return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
}

uint64_t atomic_change(uint64_t val, const void *atomic)
{
	const struct atomic *a = atomic;

	switch (a->op) {
	case SKUA_WQE_CAS:
		return val == a->compare ? a->swap_add : val;
	case SKUA_WQE_FAA:
		return val + a->swap_add;
	case SKUA_WQE_MASKED_CAS:
		if ((val ^ a->compare) & a->compare_mask)
			return val;
		return (val & ~a->swap_add_mask) | (a->swap_add & a->swap_add_mask);
	case SKUA_WQE_MASKED_FAA:
		return add_fields(val, a->swap_add, a->swap_add_mask);
	default:
		return val;
	}
}

/* --- requests --- */

static const struct {
	enum skua_wqe_op op;
	uint8_t rc, xrc;
} atomics[] = {
	{ SKUA_WQE_CAS, IB_OPCODE(RC, CMP_SWAP), IB_OPCODE(XRC, CMP_SWAP) },
	{ SKUA_WQE_FAA, IB_OPCODE(RC, FETCH_ADD), IB_OPCODE(XRC, FETCH_ADD) },
	{ SKUA_WQE_MASKED_CAS, IB_OPCODE(SKUA_RC, MASKED_CMP_SWAP),
	  IB_OPCODE(SKUA_XRC, MASKED_CMP_SWAP) },
	{ SKUA_WQE_MASKED_FAA, IB_OPCODE(SKUA_RC, MASKED_FETCH_ADD),
	  IB_OPCODE(SKUA_XRC, MASKED_FETCH_ADD) },
};

#define ATOMICS		(sizeof(atomics) / sizeof(atomics[0]))

bool atomic_parse(const struct skua_pkt *pkt, struct atomic *a, uint64_t *va, uint32_t *rkey)
{
	const struct ib_atomiceth *h = pkt->maskedeth ? &pkt->maskedeth->atomic : pkt->atomiceth;

	*a = (struct atomic){ .op = SKUA_WQE_NOP };
	for (unsigned int i = 0; i < ATOMICS; i++) {
		if (pkt->opcode == atomics[i].rc || pkt->opcode == atomics[i].xrc)
			a->op = atomics[i].op;
	}
	if (!h || a->op == SKUA_WQE_NOP)
		return false;
	*va = be64_get(h->va);
	*rkey = be32_get(h->rkey);
	a->swap_add = be64_get(h->swap_add);
	a->compare = be64_get(h->compare);
	if (pkt->maskedeth) {
		a->swap_add_mask = be64_get(pkt->maskedeth->swap_add_mask);
		a->compare_mask = be64_get(pkt->maskedeth->compare_mask);
	}
	return true;
}

static uint8_t opcode_of(const struct turn *t, const struct wqe *w)
{
	bool xrc = qp_type(t->qp) == SKUA_QP_XRC_INI;

	if (w->op == SKUA_WQE_FLUSH)
		return IB_OPCODE(RC, FLUSH);
	for (unsigned int i = 0; i < ATOMICS; i++) {
		if (w->op == atomics[i].op)
			return xrc ? atomics[i].xrc : atomics[i].rc;
	}
	return IB_OPCODE(RC, ATOMIC_WRITE);
}

static void put_headers(struct skua_pkt_build *b, const struct wqe *w)
{
	struct ib_atomiceth *h = b->maskedeth ? &b->maskedeth->atomic : b->atomiceth;

	if (h)
		ib_atomiceth_put(h, w->va, w->rkey, w->swap_add, w->compare);
	if (b->maskedeth)
		ib_maskedeth_put(b->maskedeth, w->swap_add_mask, w->compare_mask);
	if (b->feth)
		be32_put(b->feth->word, w->flush);
	if (b->reth)
		ib_reth_put(b->reth, w->va, w->rkey,
			    w->op == SKUA_WQE_FLUSH ? w->imm : (uint32_t)w->len);
}

enum skua_vendor atomic_put(struct turn *t, const struct wqe *w, uint32_t psn)
{
	uint32_t n = w->op == SKUA_WQE_ATOMIC_WRITE ? (uint32_t)w->len : 0;
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct sge_pos pos = { 0 };
	struct skua_pkt_build b;

	if (!tx_start(t, &b, opcode_of(t, w), psn, true, false))
		return SKUA_VENDOR_NONE;
	put_headers(&b, w);
	if (n && w->flags & SKUA_WQE_F_INLINE)
		memcpy(b.payload, w->inl, n);
	else if (n)
		err = sge_copy(t, w->sge, w->nsge, &pos, 0, b.payload, n, false);
	if (!err)
		tx_finish(t, &b, n);
	return err;
}

enum skua_vendor atomic_send(struct turn *t, const struct wqe *w)
{
	uint32_t n = w->op == SKUA_WQE_ATOMIC_WRITE ? (uint32_t)w->len : 0;
	enum skua_vendor err = atomic_put(t, w, le32_to_cpu(t->sqc->next_psn));

	if (err)
		return err;
	turn_count(t, op_is_atomic(w->op)	 ? SKUA_CNT_TX_ATOMIC :
		      w->op == SKUA_WQE_FLUSH ? SKUA_CNT_TX_FLUSH :
						SKUA_CNT_TX_ATOMIC_WRITE);
	req_note_sent(t, 1, (uint32_t)w->len);
	t->sqc->rd_outstanding++;
	t->budget -= n + SKUA_PKT_OVERHEAD;
	return SKUA_VENDOR_NONE;
}
