// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, responder: the order of WRITEs.
 *
 * Where WRITEs of a QP go to the same bytes, those of the last one stay (IBTA 9.5), in
 * whatever order their packets come. So the place of each WRITE of which packets came before
 * their turn goes into a table in host memory, struct skua_ext_write, and a packet of an earlier
 * WRITE leaves out those bytes of that place that have come. It writes the others: whoever reads
 * between the two, by a READ or after a completion, finds the bytes of one of them.
 *
 * Places are compared by their keys and addresses. Bytes that have two keys, or two addresses, are
 * not told to be the same.
 */
#include <string.h>

#include "sr.h"

/* Entries that are read at once. */
#define ENTRIES		32
/*
 * Pieces of a packet that are written before its turn. One that was dropped may come again, any
 * number of times; at its turn it comes once.
 */
#define EARLY_PIECES	32

static uint64_t entry_at(const struct skua_lrc *lrc, uint32_t index)
{
	return le64_to_cpu(lrc->table) + sr_lrc_window(lrc) * sizeof(struct skua_ext_slot) +
	       index * sizeof(struct skua_ext_write);
}

/* Is there an entry of the WRITE whose first packet has @psn, which is not before epsn? */
static bool has_entry(const struct skua_lrc *lrc, uint32_t psn)
{
	switch (sr_lrc_code(lrc, psn)) {
	case SKUA_LRC_WRITE_FIRST:
	case SKUA_LRC_WRITE_ONLY:
	case SKUA_LRC_WRITE_ONLY_IMM:
	case SKUA_LRC_WRITE_BEGUN:
		return true;
	default:
		return false;
	}
}

bool sr_order_note(struct turn *t, struct skua_lrc *lrc, const struct skua_pkt *pkt)
{
	uint32_t off = be24_get(pkt->seth->off), first = psn_sub(pkt->psn, off);
	struct skua_ext_write entry = {
		.va = cpu_to_le64(be64_get(pkt->reth->va)),
		.rkey = cpu_to_le32(be32_get(pkt->reth->rkey)),
		.len = cpu_to_le32(be32_get(pkt->reth->len)),
	};

	/* No packet before this one is missing but of the message itself. */
	if (off > psn_sub(pkt->psn, le32_to_cpu(t->rqc->epsn)))
		return true;
	if (rqc_is(t, SKUA_RQC_HELD) && sr_lrc_code(lrc, first))
		return true;
	if (!dma_write(t->dev, TLP_SLOT, entry_at(lrc, first % sr_lrc_window(lrc)), &entry,
		       sizeof(entry)))
		return true;
	resp_fail_at(t, le32_to_cpu(t->rqc->epsn), IB_NAK_REMOTE_OP, SKUA_QP_EV_FATAL);
	return false;
}

/**
 * struct later - bytes of a packet that belong to later WRITEs, too
 * @va: address of the first byte
 * @rkey: key
 * @bytes: how many the packet has
 * @any: there is one
 * @byte: for each whether it is one, if @any
 */
struct later {
	uint64_t va;
	uint32_t rkey;
	uint32_t bytes;
	bool any;
	uint8_t byte[ENGINE_MTU_MAX];
};

static bool is_there(const struct skua_lrc *lrc, uint32_t psn)
{
	uint32_t code = sr_lrc_code(lrc, psn);

	return ib_psn_diff(le32_to_cpu(lrc->held_top), psn) > 0 && code >= SKUA_LRC_WRITE_FIRST &&
	       code <= SKUA_LRC_WRITE_ONLY_IMM;
}

/* Bytes from @from up to @to of the WRITE @w, which are of one packet, are there. */
static void add_bytes(struct later *l, const struct skua_ext_write *w, uint64_t from, uint64_t to)
{
	uint64_t at = le64_to_cpu(w->va) + from - l->va;

	if (!l->any)
		memset(l->byte, 0, l->bytes);
	l->any = true;
	memset(l->byte + at, 1, to - from);
}

/* Those of the WRITE @w whose first packet has @psn. What of it is not there will overwrite. */
static void add(struct later *l, const struct turn *t, const struct skua_lrc *lrc, uint32_t psn,
		const struct skua_ext_write *w)
{
	uint64_t va = le64_to_cpu(w->va), len = le32_to_cpu(w->len), from = 0, to = 0, next;

	if (l->va >= va) {
		from = l->va - va;
		to = from < len ? from + l->bytes : 0;
	} else if (va - l->va < l->bytes) {
		to = l->bytes - (va - l->va);
	}
	if (to > len)
		to = len;
	if (le32_to_cpu(w->rkey) != l->rkey)
		return;
	/* At most two packets of it lie where one does. */
	for (; from < to; from = next) {
		next = from - from % t->mtu + t->mtu;
		if (next > to)
			next = to;
		if (is_there(lrc, psn_add(psn, (uint32_t)(from / t->mtu))))
			add_bytes(l, w, from, next);
	}
}

/* Those of all WRITEs from @psn on. False: the table cannot be read. */
static bool add_all(struct turn *t, const struct skua_lrc *lrc, uint32_t psn, struct later *l)
{
	int32_t n = ib_psn_diff(le32_to_cpu(lrc->held_top), psn);
	uint32_t have = UINT32_MAX, index;
	struct skua_ext_write entry[ENTRIES];

	/* The context may come from memory of the host. */
	if (n > (int32_t)sr_lrc_window(lrc))
		n = (int32_t)sr_lrc_window(lrc);
	for (; n > 0; n--, psn = psn_add(psn, 1)) {
		if (!has_entry(lrc, psn))
			continue;
		index = psn % sr_lrc_window(lrc);
		if (index / ENTRIES != have &&
		    dma_read(t->dev, TLP_SLOT, entry_at(lrc, index / ENTRIES * ENTRIES), entry,
			     sizeof(entry)))
			return false;
		have = index / ENTRIES;
		add(l, t, lrc, psn, &entry[index % ENTRIES]);
	}
	return true;
}

/* @lrc: NULL: not pinned yet. */
static bool find_later(struct turn *t, const struct skua_lrc *lrc, const struct skua_pkt *pkt,
		       struct later *l)
{
	struct skua_lrc *own = lrc ? NULL : sr_lrc(t);
	bool ok;

	if (!lrc && !own)
		return false;
	ok = add_all(t, lrc ? lrc : own, psn_add(pkt->psn, 1), l);
	if (own)
		sr_lrc_put(t, own, false);
	return ok;
}

/* Has an early packet too many pieces left, with bytes of later WRITEs between them? */
static bool too_many_pieces(const struct turn *t, const struct skua_pkt *pkt,
			    const struct later *l)
{
	uint32_t pieces = 0;

	if (pkt->psn == le32_to_cpu(t->rqc->epsn))
		return false;
	for (uint32_t at = 0; at < l->bytes; at++)
		pieces += !l->byte[at] && (!at || l->byte[at - 1]);
	return pieces > EARLY_PIECES;
}

static enum skua_vendor write_pieces(struct turn *t, const struct mr_who *who,
				     const struct skua_pkt *pkt, const struct later *l)
{
	enum skua_vendor err = SKUA_VENDOR_NONE;
	uint32_t end;

	for (uint32_t at = 0; !err && at < l->bytes; at = end) {
		for (end = at + 1; end < l->bytes && l->byte[end] == l->byte[at];)
			end++;
		if (!l->byte[at])
			err = mr_write(t->dev, who, l->rkey, l->va + at, pkt->payload + at,
				       end - at);
	}
	return err;
}

/* Might packets behind this one be held? With @lrc, and then it is early, that is known. */
static bool has_later(const struct turn *t, const struct skua_lrc *lrc,
		      const struct skua_pkt *pkt)
{
	return rqc_is(t, SKUA_RQC_HELD) &&
	       (!lrc || ib_psn_diff(le32_to_cpu(lrc->held_top), pkt->psn) > 1);
}

enum skua_vendor sr_order_write(struct turn *t, const struct skua_lrc *lrc,
				const struct mr_who *who, const struct mr_part *part,
				const struct skua_pkt *pkt)
{
	enum skua_vendor err;
	struct later l;

	if (!has_later(t, lrc, pkt))
		return mr_write_part(t->dev, who, part, pkt->payload);
	/* All of it, before the first piece is written; and first, as it costs the least. */
	err = mr_probe(t->dev, who, part);
	if (err)
		return err;
	l.va = part->va + part->off;
	l.rkey = part->key;
	l.bytes = part->bytes;
	l.any = false;
	if (!find_later(t, lrc, pkt, &l))
		return SKUA_VENDOR_KEY_DMA;
	if (!l.any)
		return mr_write_part(t->dev, who, part, pkt->payload);
	if (too_many_pieces(t, pkt, &l))
		return SKUA_VENDOR_MISS;
	return write_pieces(t, who, pkt, &l);
}
