/* SPDX-License-Identifier: GPL-2.0 */
/* A wire that takes a few frames at a time, in place of a device's own: fake's @net. */
#ifndef SKUA_TEST_NARROW_H
#define SKUA_TEST_NARROW_H

#include "core.h"
#include "roce/pkt.h"

/**
 * struct narrow - the wire
 * @room: frames that it takes now
 * @took: told of each frame that it takes
 * @priv: first argument of @took
 */
struct narrow {
	unsigned int room;
	void (*took)(void *priv, const struct skua_pkt *pkt, size_t len);
	void *priv;
};

static void narrow_send(void *priv, const void *frame, size_t len)
{
	struct narrow *n = priv;
	struct skua_pkt pkt;

	assert_int_equal(skua_pkt_parse(frame, len, &pkt), SKUA_PKT_OK);
	n->took(n->priv, &pkt, len);
	n->room -= n->room > 0;
}

static void narrow_send_pending(void *priv, void *frame, size_t len)
{
	skua_pkt_icrc_fill(frame, len);
	narrow_send(priv, frame, len);
}

static void *narrow_frame(void *priv, size_t size)
{
	(void)priv;
	(void)size;
	return NULL;
}

static bool narrow_full(void *priv, const uint8_t dmac[6])
{
	(void)dmac;
	return !((struct narrow *)priv)->room;
}

static const struct skua_wire_ops narrow_ops = {
	.send = narrow_send,
	.send_pending = narrow_send_pending,
	.frame = narrow_frame,
	.full = narrow_full,
};

#endif /* SKUA_TEST_NARROW_H */
