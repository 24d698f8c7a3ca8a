/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of the kernel's queues.
 */
#ifndef SKUA_IB_KBUF_H
#define SKUA_IB_KBUF_H

#include <linux/skua/core.h>

struct skua_ib_dev;

/**
 * struct skua_ib_kbuf - memory of a kernel queue, in a row for the kernel: for the device one
 *	piece, or pages that are anywhere, by a page list
 * @va: address; NULL: none
 * @piece: the one piece; empty if it is in pages
 * @dma: bus address of each page
 * @num: pages that are mapped
 * @mtt: the page list
 */
struct skua_ib_kbuf {
	void *va;
	struct skua_buf piece;
	dma_addr_t *dma;
	u32 num;
	struct skua_mtt mtt;
};

int skua_ib_kbuf_alloc(struct skua_ib_dev *dev, struct skua_ib_kbuf *b, size_t size);
void skua_ib_kbuf_free(struct skua_ib_dev *dev, struct skua_ib_kbuf *b);
dma_addr_t skua_ib_kbuf_dma(const struct skua_ib_kbuf *b, size_t pos);
struct skua_xlat skua_ib_kbuf_xlat(const struct skua_ib_kbuf *b, size_t pos);

#endif /* SKUA_IB_KBUF_H */
