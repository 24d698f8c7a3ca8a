// SPDX-License-Identifier: GPL-2.0
/*
 * Address translation of pinned user memory, for regions and for rings of user queues.
 */
#include <kunit/visibility.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "skua_ib.h"

/**
 * skua_ib_umem_mode() - choose the cheapest translation mode
 * @npages: pages of the best page size
 * @contig: the bus addresses are contiguous
 * @may_inline: a short page list may be stored in the MPT entry
 *
 * Contiguous memory needs no page list; a list in the MPT entry needs no second read.
 *
 * Return: SKUA_XLAT_*.
 */
u8 skua_ib_umem_mode(size_t npages, bool contig, bool may_inline)
{
	if (contig || npages == 1)
		return SKUA_XLAT_CONTIG;
	if (may_inline && npages <= SKUA_MPT_INLINE_PAGES)
		return SKUA_XLAT_INLINE;
	return SKUA_XLAT_MTT;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_umem_mode);

static void skua_ib_umem_inline(struct skua_ib_umem *m, bool write)
{
	u64 bits = SKUA_MTT_PRESENT | (write ? SKUA_MTT_WRITE : 0);
	struct ib_block_iter biter;
	unsigned int i = 0;

	rdma_umem_for_each_dma_block(m->umem, &biter, BIT_ULL(m->log_page))
		m->page[i++] = cpu_to_le64(rdma_block_iter_dma_address(&biter) | bits);
}

static int skua_ib_umem_mtt(struct skua_ib_dev *dev, struct skua_ib_umem *m, bool write)
{
	struct ib_block_iter biter;
	size_t i = 0;
	int err;

	/* Checked first, to avoid a large allocation that is of no use. */
	if (m->npages > dev->lim->max_mtt)
		return skua_ib_refuse(dev, -ENOSPC,
				      "memory of %u pages exceeds the %llu entries of the MTT",
				      m->npages, dev->lim->max_mtt);

	dma_addr_t *pages __free(kvfree) = kvmalloc_array(m->npages, sizeof(*pages),
							  GFP_KERNEL | __GFP_NOWARN);

	if (!pages)
		return -ENOMEM;
	rdma_umem_for_each_dma_block(m->umem, &biter, BIT_ULL(m->log_page))
		pages[i++] = rdma_block_iter_dma_address(&biter);
	if (m->frmr) {
		skua_ib_frmr_fill(dev, m, pages, write);
		return 0;
	}
	err = skua_ib_user_charge(m->user, SKUA_IB_RES_MTT, m->npages);
	if (err)
		return err;
	err = skua_mtt_alloc(dev->core, &m->mtt, pages, m->npages, m->log_page, write);
	if (err)
		skua_ib_user_uncharge(m->user, SKUA_IB_RES_MTT, m->npages);
	return err;
}

/**
 * skua_ib_umem_layout() - choose the translation mode and page size of a pinned buffer
 * @dev: the device
 * @m: filled in, except for @m->revocable, @m->user (cleared for memory that is no dma-buf)
 *	and the page list
 * @umem: the buffer
 * @may_inline: a short page list may be stored in the MPT entry
 *
 * The device adds an offset to the address within the region, so the page size does not
 * depend on the iova, only on the bus addresses.
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_umem_layout(struct skua_ib_dev *dev, struct skua_ib_umem *m, struct ib_umem *umem,
			bool may_inline)
{
	dma_addr_t start = ib_umem_start_dma_addr(umem);
	bool contig = ib_umem_is_contiguous(umem);
	unsigned long pgsz;
	size_t npages;

	pgsz = ib_umem_find_best_pgsz(umem, dev->lim->page_sizes, start);
	if (!pgsz)
		return skua_ib_refuse(dev, -EINVAL,
				      "memory has none of the page sizes %#llx of the device",
				      dev->lim->page_sizes);
	npages = ib_umem_num_dma_blocks(umem, pgsz);
	if (npages > U32_MAX)
		return skua_ib_refuse(dev, -EINVAL, "memory of %zu pages, at most %u", npages,
				      U32_MAX);

	m->umem = umem;
	if (!umem->is_dmabuf)
		m->user = NULL;
	m->mode = m->revocable ? SKUA_XLAT_MTT :
				 skua_ib_umem_mode(npages, contig, may_inline);
	if (m->mode == SKUA_XLAT_CONTIG) {
		skua_ib_umem_contig(m, start);
		return 0;
	}
	m->log_page = __ffs(pgsz);
	m->npages = npages;
	m->offset = start & (pgsz - 1);
	return 0;
}

/**
 * skua_ib_umem_fill() - write the page list of a buffer
 * @dev: the device
 * @m: filled in by skua_ib_umem_layout(); owns the buffer on success
 * @write: the device may write to the buffer
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_umem_fill(struct skua_ib_dev *dev, struct skua_ib_umem *m, bool write)
{
	if (m->mode == SKUA_XLAT_MTT)
		return skua_ib_umem_mtt(dev, m, write);
	if (m->mode == SKUA_XLAT_INLINE)
		skua_ib_umem_inline(m, write);
	return 0;
}

/**
 * skua_ib_umem_map() - set up the translation of a pinned buffer
 * @dev: the device
 * @m: filled in, except for @m->revocable and @m->user; owns @umem on success
 * @umem: the buffer
 * @may_inline: a short page list may be stored in the MPT entry
 * @write: the device may write to the buffer
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_umem_map(struct skua_ib_dev *dev, struct skua_ib_umem *m, struct ib_umem *umem,
		     bool may_inline, bool write)
{
	int err;

	err = skua_ib_umem_layout(dev, m, umem, may_inline);
	return err ? err : skua_ib_umem_fill(dev, m, write);
}

/**
 * skua_ib_umem_mtt_free() - free the page list of a buffer
 * @dev: the device
 * @m: the buffer, to which no context of the device refers any more
 */
void skua_ib_umem_mtt_free(struct skua_ib_dev *dev, struct skua_ib_umem *m)
{
	/* The entries of a pool handle stay with the handle. */
	if (m->mode == SKUA_XLAT_MTT && !m->frmr) {
		skua_mtt_free(dev->core, &m->mtt);
		skua_ib_user_uncharge(m->user, SKUA_IB_RES_MTT, m->npages);
	}
}

/**
 * skua_ib_umem_xlat() - describe a buffer for a context
 * @m: the buffer
 * @pos: offset of the first byte; must be 0 if it was mapped with @may_inline
 *
 * Return: the translation from that byte on.
 */
struct skua_xlat skua_ib_umem_xlat(const struct skua_ib_umem *m, u64 pos)
{
	struct skua_xlat x = {};

	pos += m->offset;
	switch (m->mode) {
	case SKUA_XLAT_CONTIG:
		x.base = cpu_to_le64(m->base + (pos & SKUA_MTT_ADDR));
		x.offset = cpu_to_le32(pos & ~SKUA_MTT_ADDR);
		x.mode = le32_encode_bits(SKUA_XLAT_CONTIG, SKUA_XLAT_MODE);
		return x;
	case SKUA_XLAT_MTT:
		x.base = cpu_to_le64(m->mtt.first + (pos >> m->log_page));
		break;
	case SKUA_XLAT_INLINE:
		break;
	}
	x.offset = cpu_to_le32(pos & (BIT_ULL(m->log_page) - 1));
	x.mode = le32_encode_bits(m->mode, SKUA_XLAT_MODE) |
		 le32_encode_bits(m->log_page, SKUA_XLAT_LOG_PAGE);
	return x;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_umem_xlat);

/**
 * skua_ib_umem_unmap() - undo skua_ib_umem_map() and unpin the buffer
 * @dev: the device
 * @m: the buffer, to which no context of the device refers any more
 */
void skua_ib_umem_unmap(struct skua_ib_dev *dev, struct skua_ib_umem *m)
{
	if (m->shared) {
		skua_ib_page_put(m->shared);
		m->shared = NULL;
	}
	if (!m->umem)
		return;
	/* Releasing a revocable buffer calls its revoke callback, which needs the entries. */
	if (m->revocable)
		ib_umem_release(m->umem);
	skua_ib_umem_mtt_free(dev, m);
	if (!m->revocable)
		ib_umem_release(m->umem);
	m->umem = NULL;
}
