/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Guest memory as the device sees it: ranges of bus addresses, each backed by a
 * part of a shared memory file.
 */
#ifndef SKUA_HOST_DMA_H
#define SKUA_HOST_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "closer.h"

/*
 * Maximum number of ranges in a table: 1 GiB of maps of 4 KiB, which an emulated IOMMU sends
 * one by one.
 */
#define DMA_MAX_RANGES	(1u << 18)

/*
 * Maximum number of files in a table, and of bytes of address space that they take together,
 * including files that are still to be unmapped. For all functions of a process together both
 * are below the limits of the kernel (65,530 mappings, 128 TiB), so that no client can use up
 * what others need.
 */
#define DMA_MAX_FILES	512
#define DMA_MAX_BYTES	(1ull << 40)

/* Granularity of maps; keeps natural alignment the same on both sides. */
#define DMA_PAGE_SIZE	4096u

#define DMA_PROT_READ	(1u << 0)
#define DMA_PROT_WRITE	(1u << 1)

struct dma_range;
struct dma_use;

/* Buckets of a table's hash of files. */
#define DMA_USE_HASH	64

/**
 * struct dma_table - the bus address space of one function
 * @closer: helper that releases mappings and large trees; NULL: they are released at once
 * @root: search tree of ranges that do not overlap
 * @count: ranges in it
 * @last: the range found last; most accesses hit it again
 * @use: hash of the files that its ranges use
 * @num_files: number of these
 * @cuts_seen: cuts of files of this thread when @broken was counted
 * @broken: files of the table that were cut
 */
struct dma_table {
	struct closer *closer;
	void *root;
	unsigned int count;
	struct dma_range *last;
	struct dma_use *use[DMA_USE_HASH];
	unsigned int num_files;
	unsigned int cuts_seen;
	unsigned int broken;
};

/*
 * @closer must outlive the table; it may be NULL. All other functions for a table must be called
 * by one thread.
 */
void dmatab_init(struct dma_table *tab, struct closer *closer);

/*
 * Map @size bytes at bus address @iova to offset @offset of file @fd, or to
 * nothing accessible if @fd is -1. The table keeps no reference to @fd.
 * -EEXIST: overlaps a range that is mapped. -EMEDIUMTYPE: not memory that can
 * be shared safely (neither memfd, tmpfs nor hugetlbfs). -EACCES: write access
 * wanted through a read-only descriptor. -ERANGE: beyond the end of the file.
 * -EFBIG: the file is larger than a table may map. -ENOSPC: the table has as many ranges,
 * files or bytes as it may have. -EAGAIN: likewise, but some of them are being released: try
 * again.
 */
int dmatab_map(struct dma_table *tab, uint64_t iova, uint64_t size, unsigned int prot, int fd,
	       uint64_t offset);

/*
 * Unmap everything in the range; ranges that are partly inside keep the rest. On return the
 * unmapped part cannot be accessed any more. -EAGAIN: there are many ranges, and only a part of
 * them was unmapped: call again.
 */
int dmatab_unmap(struct dma_table *tab, uint64_t iova, uint64_t size);
void dmatab_unmap_all(struct dma_table *tab);

/* The contract of struct skua_host_ops. */
int dmatab_read(struct dma_table *tab, uint64_t iova, void *buf, size_t len);
int dmatab_write(struct dma_table *tab, uint64_t iova, const void *buf, size_t len);

/* Pointer to @len bytes, valid until the next change of any table; NULL: not in one piece. */
const void *dmatab_ptr(struct dma_table *tab, uint64_t iova, size_t len);
/*
 * Number of the table's files that were truncated while in use: their contents are lost. It can
 * decrease only by a change of the table.
 */
unsigned int dmatab_broken(struct dma_table *tab);

/* Number of files mapped by all tables of the calling thread. */
unsigned int dmatab_files(void);

#endif /* SKUA_HOST_DMA_H */
