/* SPDX-License-Identifier: GPL-2.0 */
/* What icm.c (address space, tables) and cache.c (contexts on the chip) share. */
#ifndef SKUA_MODEL_ICM_H
#define SKUA_MODEL_ICM_H

#include "core.h"

#define MTT_LINE	SKUA_MTT_GROUP	/* entries of a line of the MTT cache */

/**
 * struct ctx_ent - a place of a context cache; the context's bytes follow it
 * @index: of the entry in its table
 * @next: in the hash chain: place + 1, 0 ends it
 * @table: enum skua_icm_table
 * @pins: users at this moment
 * @used: holds a context
 * @dirty: differs from ICM
 * @ref: used since the hand last came by
 */
struct ctx_ent {
	uint32_t index;
	uint32_t next;
	uint32_t table;
	uint32_t pins;
	bool used;
	bool dirty;
	bool ref;
} __attribute__((aligned(64)));

/**
 * struct ctx_cache - the contexts of one table that are on the chip
 * @mem: @num places of @stride bytes
 * @bucket: heads of the hash chains, @mask + 1 of them
 * @hand: where the search for a victim goes on
 */
struct ctx_cache {
	uint8_t *mem;
	uint32_t *bucket;
	uint32_t mask;
	uint32_t num;
	uint32_t used;
	uint32_t hand;
	uint32_t stride;
	uint64_t hits, misses, writebacks;
};

/**
 * struct mtt_cache - lines of the MTT on the chip, direct mapped
 * @line: number + 1 of the line that a place holds, 0: none
 */
struct mtt_cache {
	struct mtt_line {
		uint64_t line;
		__le64 entry[MTT_LINE];
	} *place;
	uint32_t num;
	uint32_t used;
	uint64_t hits, misses;
};

/**
 * struct icm_table - one table
 * @base: in ICM space
 * @size: bytes of an entry
 * @log_num: entries
 * @mapped: pages mapped in its range
 * @valid: which objects exist, a bit each
 * @refs: how many others name each
 */
struct icm_table {
	uint64_t base;
	uint32_t size;
	uint8_t log_num;
	uint64_t mapped;
	uint64_t *valid;
	uint32_t *refs;
	struct ctx_cache cache;
};

/* A mapped page: its number in ICM + 1 (0: free place), its bus address. */
struct icm_page {
	uint64_t page;
	uint64_t addr;
};

/**
 * struct icm - the ICM space
 * @page: hash of mapped pages, linear probing, 1 << @log_room places
 * @mapped: how many there are, bounded by @limit: what all tables together need
 * @laid_out: INIT_DEVICE gave the tables their places
 */
struct icm {
	struct icm_page *page;
	unsigned int log_room;
	uint64_t mapped;
	uint64_t limit;
	bool laid_out;
	struct icm_table table[SKUA_ICM_TABLES];
	struct mtt_cache mtt;
};

extern const struct icm_kind {
	uint32_t size;
	uint8_t log_max;
} icm_kind[SKUA_ICM_TABLES];

/* Bus address of a mapped ICM address. False: not mapped. */
bool icm_translate(const struct icm *icm, uint64_t addr, uint64_t *bus);

int cache_init(struct skua_dev *dev);
void cache_reset(struct skua_dev *dev);
void cache_exit(struct skua_dev *dev);
/* Write back, then forget, whatever of [@addr, @addr + @len) in ICM is cached. */
void cache_evict_range(struct skua_dev *dev, uint64_t addr, uint64_t len);
/* Forget MTT entries. */
void mtt_forget(struct skua_dev *dev, uint64_t index, uint64_t count);

/*
 * Does a context of a valid object that comes from ICM make sense? Each table's
 * owner knows (cache.c asks).
 */
bool sqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool rqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool srqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool cqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool eqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool mpt_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool rss_check(struct skua_dev *dev, uint32_t index, const void *ctx);

#endif /* SKUA_MODEL_ICM_H */
