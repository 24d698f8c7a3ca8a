// SPDX-License-Identifier: GPL-2.0
/*
 * Cache of the messages in flight of all QPs: it has what their completion needs, so that a WQE is
 * not read again when its acknowledgment arrives. An entry that was replaced is read from the
 * ring again, and validated again.
 */
#include "engine.h"

static uint32_t place(uint32_t qpn, uint32_t index)
{
	/* Adjacent WQEs have adjacent entries; different QPs start at scattered ones. */
	return (qpn * 0x9e3779b1u + index) & ((1u << ENGINE_LOG_FLIGHTS) - 1);
}

void flight_put(struct engine *e, const struct flight *f, const struct wqe *w)
{
	uint32_t at = place(f->qpn, f->index);

	e->flight[at] = (struct flight_place){
		.qpn = f->qpn | u32_encode_bits(f->op, FLIGHT_OP),
		.incarnation = f->incarnation,
		.index = f->index,
		.len = f->len,
		.what = u32_encode_bits(f->psns, FLIGHT_PSNS) |
			u32_encode_bits(f->blocks, FLIGHT_BLOCKS) |
			(f->signaled ? FLIGHT_SIGNALED : 0) | (f->kept ? FLIGHT_KEPT : 0),
	};
	if (f->kept)
		e->scatter[at] = w->sge[0];
}

const struct sge *flight_sge(const struct engine *e, const struct flight *f)
{
	return &e->scatter[place(f->qpn, f->index)];
}

bool flight_get(const struct engine *e, uint32_t qpn, uint32_t incarnation, uint32_t index,
		struct flight *f)
{
	const struct flight_place *at = &e->flight[place(qpn, index)];

	if ((at->qpn & ~FLIGHT_OP) != qpn || at->incarnation != incarnation ||
	    at->index != index || !(at->what & FLIGHT_BLOCKS))
		return false;
	*f = (struct flight){
		.qpn = qpn,
		.incarnation = incarnation,
		.index = index,
		.blocks = u32_get_bits(at->what, FLIGHT_BLOCKS),
		.psns = u32_get_bits(at->what, FLIGHT_PSNS),
		.len = at->len,
		.op = u32_get_bits(at->qpn, FLIGHT_OP),
		.signaled = at->what & FLIGHT_SIGNALED,
		.kept = at->what & FLIGHT_KEPT,
	};
	return true;
}

struct onchip flight_onchip(const struct skua_dev *dev)
{
	const struct engine *e = dev->engine;

	return (struct onchip){
		.num = sizeof(e->flight) / sizeof(e->flight[0]),
		.bytes = sizeof(e->flight) + sizeof(e->scatter),
	};
}

/* --- scatter lists --- */

struct onchip rlist_onchip(const struct skua_dev *dev)
{
	const struct engine *e = dev->engine;

	return (struct onchip){
		.num = sizeof(e->lists) / sizeof(struct rlist),
		.bytes = sizeof(e->lists),
	};
}

static struct rlist *rlist_set(struct rlists *all, uint32_t qpn)
{
	return all->list[qp_place(qpn, ENGINE_LOG_LIST_SETS)];
}

struct rlist *rlist_get(struct rlists *all, uint32_t qpn, uint32_t incarnation, uint32_t index)
{
	struct rlist *set = rlist_set(all, qpn), *l = set;

	for (unsigned int i = 0; i < ENGINE_LIST_WAYS; i++) {
		if (set[i].valid && set[i].qpn == qpn) {
			l = &set[i];
			break;
		}
		if (!set[i].valid ? l->valid : l->valid && set[i].used < l->used)
			l = &set[i];
	}
	l->used = ++all->uses;
	if (l->valid && l->qpn == qpn && l->incarnation == incarnation && l->index == index)
		return l;
	l->valid = false;
	l->qpn = qpn;
	l->incarnation = incarnation;
	l->index = index;
	l->pos = (struct sge_pos){ 0 };
	return l;
}

void rlist_drop(struct rlists *all, uint32_t qpn)
{
	struct rlist *set = rlist_set(all, qpn);

	for (unsigned int i = 0; i < ENGINE_LIST_WAYS; i++) {
		if (set[i].qpn == qpn)
			set[i].valid = false;
	}
}

void rlist_drop_all(struct rlists *all)
{
	for (unsigned int s = 0; s < 1u << ENGINE_LOG_LIST_SETS; s++) {
		for (unsigned int i = 0; i < ENGINE_LIST_WAYS; i++)
			all->list[s][i].valid = false;
	}
}
