/* SPDX-License-Identifier: GPL-2.0 */
/* What icm.c (address space, tables) and cache.c (contexts on the chip) share. */
#ifndef SKUA_MODEL_ICM_H
#define SKUA_MODEL_ICM_H

#include "core.h"

#define MTT_LINE	SKUA_MTT_GROUP	/* entries of a line of the MTT cache */

#define CTX_SECTOR	64u
/* On-chip bytes of a context besides its sectors: its tag, and its share of the index. */
#define CTX_TAG		20

/**
 * struct ctx_ent - a place of a context cache; the context's bytes follow it
 * @index: index of the entry in its table
 * @next: next in the hash chain or in the list of free places: place + 1, 0 ends it
 * @life: the cache's @life when the context was read; with another value the place is empty
 * @valid: sectors that are cached
 * @dirty: sectors that differ from ICM
 * @ref: sectors used since the clock hand last passed
 * @pins: number of present users
 * @asked: with a sanitizer: sectors that these users have asked for
 * @table: enum skua_icm_table
 */
struct ctx_ent {
	uint32_t index;
	uint32_t next;
	uint32_t life;
	uint32_t valid;
	uint32_t dirty;
	uint32_t ref;
	uint32_t pins;
	uint32_t asked;
	uint32_t table;
} __attribute__((aligned(CTX_SECTOR)));

/**
 * struct ctx_cache - the contexts of one table that are on the chip
 * @mem: @num places of @stride bytes
 * @bucket: heads of the hash chains, @mask + 1 of them; empty if not of this @life
 * @life: incremented by each reset, which so drops all contexts without touching them
 * @mask: see @bucket
 * @num: see @mem
 * @top: the first so many places were used in this life
 * @seen: the first so many places were used in any life
 * @free: first of the list of free places below @top, + 1; 0: none
 * @stride: see @mem
 * @all: sectors of a whole context
 * @used: number of places with a context
 * @sectors: number of sectors cached in all of them
 * @hits: lookups that found all sectors
 * @misses: lookups that read ICM
 * @writebacks: contexts of which something was written to ICM
 */
struct ctx_cache {
	uint8_t *mem;
	struct {
		uint32_t life;
		uint32_t place;
	} *bucket;
	uint32_t life;
	uint32_t mask;
	uint32_t num;
	uint32_t top, seen, free;
	uint32_t stride;
	uint32_t all;
	uint32_t used;
	uint32_t sectors;
	uint64_t hits, misses, writebacks;
};

/* Share of the on-chip memory, and the bytes that a line takes: its number and the entries. */
#define MTT_SHARE	16
#define MTT_LINE_BYTES	(8 + MTT_LINE * 8)
#define MTT_LINES_MIN	32

/**
 * struct mtt_cache - lines of the MTT on the chip, direct mapped
 * @line: number + 1 of the line that a place holds, 0: none
 * @life: as in struct ctx_cache; of a place: of its line
 */
struct mtt_cache {
	struct mtt_line {
		uint64_t line;
		uint32_t life;
		__le64 entry[MTT_LINE];
	} *place;
	uint32_t life;
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
 * @objects: how many do
 * @refs: how many others name each
 * @cache: contexts of it that are on the chip
 */
struct icm_table {
	uint64_t base;
	uint32_t size;
	uint8_t log_num;
	uint64_t mapped;
	uint64_t *valid;
	uint32_t objects;
	uint32_t *refs;
	struct ctx_cache cache;
};

#define ICM_NODE_BITS	9
#define ICM_NODE_SLOTS	(1u << ICM_NODE_BITS)
#define ICM_LEVELS	4

/*
 * Maximum number of nodes of the tree: three times what all tables can need. It keeps a guest
 * that maps single pages all over the address space from using up the memory of the process.
 */
#define ICM_NODES_MAX	4096u

/**
 * struct icm_node - 512 pages of ICM, or 512 nodes below
 * @used: slots in use; a node without any is freed
 * @child: nodes, above the lowest level
 * @addr: bus addresses of pages, in the lowest; bit 0: mapped
 */
struct icm_node {
	uint32_t used;
	union {
		struct icm_node *child[ICM_NODE_SLOTS];
		uint64_t addr[ICM_NODE_SLOTS];
	};
};

/**
 * struct icm - the ICM space
 * @root: radix tree of mapped pages: to map very many pages takes little more time than to
 *	store their addresses
 * @nodes: number of nodes in it
 * @mapped: number of mapped pages, at most @limit: what all tables together need
 * @laid_out: INIT_DEVICE has set the tables' ranges
 * @bytes: on-chip bytes of contexts
 * @pinned: with a sanitizer: maximum of the on-chip bytes of pinned contexts
 * @hand: the clock hand: place in a table's cache
 * @hand_table: this table
 */
struct icm {
	struct icm_node *root;
	uint32_t nodes;
	uint64_t mapped;
	uint64_t limit;
	bool laid_out;
	uint64_t bytes;
	uint64_t pinned;
	uint32_t hand, hand_table;
	struct icm_table table[SKUA_ICM_TABLES];
	struct mtt_cache mtt;
};

extern const struct icm_kind {
	uint32_t size;
	uint8_t log_max;
} icm_kind[SKUA_ICM_TABLES];

/* The largest table that the device offers, as the logarithm of its entries. */
static inline uint8_t icm_log_max(const struct skua_dev *dev, unsigned int table)
{
	uint8_t log = icm_kind[table].log_max, most = dev->cfg.log_objects;

	if (!most)
		return log;
	if (table == SKUA_ICM_MTT)
		most += MODEL_LOG_MTT_OBJECT;
	return most < log ? most : log;
}

/* Translate an ICM address to a bus address. False: not mapped. */
bool icm_translate(const struct icm *icm, uint64_t addr, uint64_t *bus);

int cache_init(struct skua_dev *dev);
void cache_reset(struct skua_dev *dev);
void cache_exit(struct skua_dev *dev);
/* Write back and drop all cached contexts in the ICM range [@addr, @addr + @len). */
void cache_evict_range(struct skua_dev *dev, uint64_t addr, uint64_t len);
/* Drop cached MTT entries. */
void mtt_forget(struct skua_dev *dev, uint64_t index, uint64_t count);

/*
 * Is a context that was read from ICM valid? For valid objects only; cache.c calls it. @have is
 * the set of sectors read so far; when more are read it is called again.
 */
bool sqc_check(struct skua_dev *dev, uint32_t index, const void *ctx, uint32_t have);
bool rqc_check(struct skua_dev *dev, uint32_t index, const void *ctx, uint32_t have);
bool srqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool cqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool eqc_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool mpt_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool rss_check(struct skua_dev *dev, uint32_t index, const void *ctx);
bool lrc_check(struct skua_dev *dev, uint32_t index, const void *ctx);

#endif /* SKUA_MODEL_ICM_H */
