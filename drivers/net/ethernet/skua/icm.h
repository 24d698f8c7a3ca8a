/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ICM tables, internal to skua_core.
 */
#ifndef SKUA_CORE_ICM_H
#define SKUA_CORE_ICM_H

#include <linux/mutex.h>
#include <linux/xarray.h>

#include <linux/skua/core.h>

/* Host memory is mapped in chunks of this size, or of the size of a smaller table. */
#define SKUA_ICM_CHUNK_SIZE	0x10000
#define SKUA_ICM_CHUNK_RUNS	(SKUA_ICM_CHUNK_SIZE / SKUA_ICM_PAGE_SIZE)

/**
 * struct skua_icm_chunk - host memory mapped into ICM
 * @refs: entries in use; 0 only while it could not be unmapped
 * @num_runs: elements of @run
 * @run: pieces, contiguous on the bus, in ICM order
 */
struct skua_icm_chunk {
	u32 refs;
	u32 num_runs;
	struct skua_buf run[] __counted_by(num_runs);
};

/**
 * struct skua_icm_tbl - one ICM table
 * @base: its first ICM address
 * @entry_size: bytes of an entry, a power of two
 * @log_num: log2 of its entries
 * @chunk_size: bytes of a chunk, a power of two
 * @lock: protects @chunks, the chunks' @refs, @pages and @kept, over the commands
 *	that map and unmap. Never taken by reclaim-safe paths.
 * @chunks: struct skua_icm_chunk by offset / @chunk_size
 * @pages: ICM pages mapped
 * @kept: chunks without references, which could not be unmapped
 */
struct skua_icm_tbl {
	u64 base;
	u32 entry_size;
	u8 log_num;
	u32 chunk_size;
	struct mutex lock;		/* see above */
	struct xarray chunks;
	u64 pages;
	u32 kept;
};

void skua_icm_table_init(struct skua_icm_tbl *t, u64 base, u32 entry_size, u8 log_num);
void skua_icm_table_exit(struct skua_dev *dev, struct skua_icm_tbl *t);
int skua_icm_get(struct skua_dev *dev, enum skua_icm_table id, u64 index);
void skua_icm_put(struct skua_dev *dev, enum skua_icm_table id, u64 index);
int skua_icm_get_range(struct skua_dev *dev, enum skua_icm_table id, u64 first, u64 count);
void skua_icm_put_range(struct skua_dev *dev, enum skua_icm_table id, u64 first, u64 count);
void *skua_icm_entry(struct skua_dev *dev, enum skua_icm_table id, u64 index, u32 *run);
const char *skua_icm_name(unsigned int id);

#endif /* SKUA_CORE_ICM_H */
