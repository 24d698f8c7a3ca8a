// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the kernel's queues: rings and doorbell records.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "skua_ib.h"

/**
 * skua_ib_kbuf_free() - free what skua_ib_kbuf_alloc() allocated
 * @dev: the device
 * @b: may be empty; is empty afterwards
 */
void skua_ib_kbuf_free(struct skua_ib_dev *dev, struct skua_ib_kbuf *b)
{
	if (b->mtt.npages)
		skua_mtt_free(dev->core, &b->mtt);
	while (b->num)
		dma_unmap_page_attrs(dev->ibdev.dma_device, b->dma[--b->num], PAGE_SIZE,
				     DMA_BIDIRECTIONAL, DMA_ATTR_REQUIRE_COHERENT);
	kvfree(b->dma);
	if (b->piece.va)
		skua_buf_free(dev->core, &b->piece);
	else
		vfree(b->va);
	memset(b, 0, sizeof(*b));
}

/*
 * The device writes to CQEs and to doorbell records. Nobody synchronises: memory of which the
 * device has a copy, or that the processor's caches hide from it, is refused.
 */
static int skua_ib_kbuf_map(struct device *dma_dev, struct skua_ib_kbuf *b, u32 npages)
{
	while (b->num < npages) {
		struct page *page = vmalloc_to_page(b->va + b->num * PAGE_SIZE);
		dma_addr_t dma = dma_map_page_attrs(dma_dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL,
						    DMA_ATTR_REQUIRE_COHERENT);

		if (dma_mapping_error(dma_dev, dma))
			return -ENOMEM;
		b->dma[b->num++] = dma;
	}
	return 0;
}

static int skua_ib_kbuf_alloc_pages(struct skua_ib_dev *dev, struct skua_ib_kbuf *b, size_t size)
{
	u32 npages = DIV_ROUND_UP(size, PAGE_SIZE);
	int err;

	b->va = vzalloc(size);
	b->dma = kvcalloc(npages, sizeof(*b->dma), GFP_KERNEL);
	err = b->va && b->dma ? skua_ib_kbuf_map(dev->ibdev.dma_device, b, npages) : -ENOMEM;
	if (!err)
		err = skua_mtt_alloc(dev->core, &b->mtt, b->dma, npages, PAGE_SHIFT, true);
	if (err) {
		b->mtt.npages = 0;
		skua_ib_kbuf_free(dev, b);
	}
	return err;
}

/**
 * skua_ib_kbuf_alloc() - allocate zeroed memory of a kernel queue
 * @dev: the device
 * @b: filled in; empty on failure
 * @size: bytes
 *
 * One piece, or pages: NVMe's target wants QPs with rings of 1 MiB, with protection information of
 * more than 4 MiB, and there is no such large piece for long after the boot, or at all.
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_kbuf_alloc(struct skua_ib_dev *dev, struct skua_ib_kbuf *b, size_t size)
{
	memset(b, 0, sizeof(*b));
	if (skua_buf_try(dev->core, &b->piece, size, GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY))
		return skua_ib_kbuf_alloc_pages(dev, b, size);
	b->va = b->piece.va;
	return 0;
}

/**
 * skua_ib_kbuf_dma() - where the device finds a part that crosses no page
 * @b: the memory
 * @pos: byte in it
 *
 * Return: the bus address.
 */
dma_addr_t skua_ib_kbuf_dma(const struct skua_ib_kbuf *b, size_t pos)
{
	return b->piece.va ? b->piece.dma + pos :
			     b->dma[pos >> PAGE_SHIFT] + offset_in_page(pos);
}

/**
 * skua_ib_kbuf_xlat() - how the device finds a ring
 * @b: the memory
 * @pos: byte in it where the ring begins
 *
 * Return: the translation.
 */
struct skua_xlat skua_ib_kbuf_xlat(const struct skua_ib_kbuf *b, size_t pos)
{
	struct skua_buf part = b->piece;

	if (!part.va)
		return (struct skua_xlat) {
			.base = cpu_to_le64(b->mtt.first + (pos >> PAGE_SHIFT)),
			.offset = cpu_to_le32(offset_in_page(pos)),
			.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
				le32_encode_bits(PAGE_SHIFT, SKUA_XLAT_LOG_PAGE),
		};
	part.dma += pos;
	return skua_buf_xlat(&part);
}
