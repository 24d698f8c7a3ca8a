// SPDX-License-Identifier: GPL-2.0
/*
 * Coherent memory for rings, records and ICM.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/dma-mapping.h>

#include "skua.h"

/**
 * skua_buf_try() - allocate zeroed coherent memory
 * @dev: the function
 * @buf: filled in; empty on failure
 * @size: bytes
 * @gfp: how
 *
 * Return: 0 or -ENOMEM.
 */
int skua_buf_try(struct skua_dev *dev, struct skua_buf *buf, size_t size, gfp_t gfp)
{
	KUNIT_STATIC_STUB_REDIRECT(skua_buf_try, dev, buf, size, gfp);
	buf->size = 0;
	buf->va = dma_alloc_coherent(dev->dev, size, &buf->dma, gfp);
	if (!buf->va)
		return -ENOMEM;
	buf->size = size;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_buf_try, "SKUA");

/**
 * skua_buf_alloc() - allocate zeroed coherent memory
 * @dev: the function
 * @buf: filled in; empty on failure
 * @size: bytes
 *
 * Users and peers say how large rings are: that one is too large is told to them, and nothing that
 * the kernel should warn of.
 *
 * Return: 0 or -ENOMEM.
 */
int skua_buf_alloc(struct skua_dev *dev, struct skua_buf *buf, size_t size)
{
	return skua_buf_try(dev, buf, size, GFP_KERNEL | __GFP_NOWARN);
}
EXPORT_SYMBOL_NS_GPL(skua_buf_alloc, "SKUA");

/**
 * skua_buf_free() - free what skua_buf_alloc() allocated
 * @dev: the function
 * @buf: may be empty
 */
void skua_buf_free(struct skua_dev *dev, struct skua_buf *buf)
{
	if (buf->va)
		dma_free_coherent(dev->dev, buf->size, buf->va, buf->dma);
	buf->va = NULL;
}
EXPORT_SYMBOL_NS_GPL(skua_buf_free, "SKUA");
