// SPDX-License-Identifier: GPL-2.0
/*
 * Messages under way, of all QPs: what their completion needs, so that a WQE that
 * was sent is not read again when its acknowledgment comes. A cache of bounded
 * size: what it lost is read from the ring once more, and validated once more.
 */
#include "engine.h"

static uint32_t place(uint32_t qpn, uint32_t index)
{
	/* Neighbours in a ring are neighbours here; QPs start at scattered places. */
	return (qpn * 0x9e3779b1u + index) & ((1u << ENGINE_LOG_FLIGHTS) - 1);
}

void flight_put(struct engine *e, const struct flight *f)
{
	e->flight[place(f->qpn, f->index)] = *f;
}

bool flight_get(const struct engine *e, uint32_t qpn, uint32_t incarnation, uint32_t index,
		struct flight *f)
{
	const struct flight *at = &e->flight[place(qpn, index)];

	if (at->qpn != qpn || at->incarnation != incarnation || at->index != index || !at->blocks)
		return false;
	*f = *at;
	return true;
}
