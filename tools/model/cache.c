// SPDX-License-Identifier: GPL-2.0
/*
 * The cache of contexts in on-chip memory. All tables share this memory: a cached context takes
 * a tag and those of its sectors (of 64 bytes) that are needed. Sectors that are missing are
 * read from ICM; changed sectors are written back when they are evicted. A context in use is
 * pinned. Eviction is by the clock algorithm: a sector that was used since the hand last passed
 * it gets a second chance.
 *
 * The cache of MTT lines is at the end of this file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "icm.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISON	1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON	1
#endif
#endif

/* With a sanitizer, sectors that the users of a context have not asked for are poisoned. */
#ifdef POISON
#include <stdio.h>
#include <sanitizer/asan_interface.h>
#define hide(at, len)	ASAN_POISON_MEMORY_REGION(at, len)
#define show(at, len)	ASAN_UNPOISON_MEMORY_REGION(at, len)
#else
#define hide(at, len)	((void)(at), (void)(len))
#define show(at, len)	((void)(at), (void)(len))
#endif

/*
 * The least memory that contexts have, whatever size is configured: more than the contexts that
 * are pinned at one time ever take, so that another one can always be made room for. With a
 * sanitizer pin() checks that.
 */
#define ROOM_MIN	4096

/* Of a context that is needed soon: its entry's header and the hot sectors of an SQC. */
#define PREFETCH_LINES	(1 + SKUA_SQC_HOT / CTX_SECTOR)

static struct ctx_ent *ent_at(const struct ctx_cache *c, uint32_t place)
{
	return (struct ctx_ent *)(c->mem + (size_t)place * c->stride);
}

static struct ctx_ent *ent_of(void *ctx)
{
	return (struct ctx_ent *)ctx - 1;
}

static void *ctx_of(struct ctx_ent *ent)
{
	return ent + 1;
}

/* Does a place hold a context? */
static bool in_use(const struct ctx_cache *c, const struct ctx_ent *ent)
{
	return ent->life == c->life;
}

/* Indices are mostly dense, and their buckets then as well: few cache lines of the host. */
static uint32_t hash(const struct ctx_cache *c, uint32_t index)
{
	return (index ^ index >> 16) & c->mask;
}

static void *memory(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static int one_init(struct ctx_cache *c, uint32_t num, uint32_t size)
{
	uint32_t buckets = 8;

	while (buckets < num)
		buckets *= 2;
	c->num = num;
	c->life = 1;
	c->mask = buckets - 1;
	c->all = GENMASK((size + CTX_SECTOR - 1) / CTX_SECTOR - 1, 0);
	c->stride = sizeof(struct ctx_ent) + ((size + CTX_SECTOR - 1) & ~(CTX_SECTOR - 1));
	/* Untouched pages of this allocation take no memory of the host. */
	c->mem = memory((size_t)num * c->stride);
	c->bucket = memory(buckets * sizeof(*c->bucket));
	return c->mem && c->bucket ? 0 : -ENOMEM;
}

int cache_init(struct skua_dev *dev)
{
	struct icm *icm = dev->icm;
	/* A context has one sector at least. */
	uint32_t num = (onchip_size(dev) + ROOM_MIN) / (CTX_TAG + CTX_SECTOR) + 1;

	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		uint32_t most = 1u << icm_log_max(dev, i);

		if (i == SKUA_ICM_MTT)
			continue;
		if (one_init(&icm->table[i].cache, num < most ? num : most, icm_kind[i].size))
			return -ENOMEM;
	}
	icm->mtt.num = MTT_LINES_MIN;
	icm->mtt.life = 1;
	while (2ull * icm->mtt.num * MTT_LINE_BYTES <= onchip_size(dev) / MTT_SHARE)
		icm->mtt.num *= 2;
	icm->mtt.place = calloc(icm->mtt.num, sizeof(*icm->mtt.place));
	return icm->mtt.place ? 0 : -ENOMEM;
}

/*
 * Drop all contexts by incrementing the life, of which each entry has a copy. When the number
 * wraps, entries must be cleared, since an old one could have the same number.
 */
static void ctx_forget(struct ctx_cache *c)
{
	if (!++c->life && c->num) {
		for (uint32_t n = 0; n < c->seen || n < c->top; n++)
			ent_at(c, n)->life = 0;
		memset(c->bucket, 0, (c->mask + 1) * sizeof(*c->bucket));
		c->life = 1;
	}
	if (c->seen < c->top)
		c->seen = c->top;
	c->used = 0;
	c->sectors = 0;
	c->top = 0;
	c->free = 0;
}

static void mtt_forget_all(struct mtt_cache *m)
{
	if (!++m->life) {
		memset(m->place, 0, m->num * sizeof(*m->place));
		m->life = 1;
	}
	m->used = 0;
}

/* The time that a reset takes must not depend on the size of the caches. */
void cache_reset(struct skua_dev *dev)
{
	struct mtt_cache *m = &dev->icm->mtt;

	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct ctx_cache *c = &dev->icm->table[i].cache;

		ctx_forget(c);
		c->hits = 0;
		c->misses = 0;
		c->writebacks = 0;
	}
	dev->icm->bytes = 0;
	dev->icm->pinned = 0;
	dev->icm->hand = 0;
	dev->icm->hand_table = 0;
	mtt_forget_all(m);
	m->hits = 0;
	m->misses = 0;
}

void cache_exit(struct skua_dev *dev)
{
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct ctx_cache *c = &dev->icm->table[i].cache;
		uint32_t seen = c->seen > c->top ? c->seen : c->top;

		if (c->mem) {
			show(c->mem, (size_t)seen * c->stride);
			munmap(c->mem, (size_t)c->num * c->stride);
		}
		if (c->bucket)
			munmap(c->bucket, (c->mask + 1) * sizeof(*c->bucket));
	}
	free(dev->icm->mtt.place);
}

/* First entry of a hash chain, plus one; 0: the chain is empty. */
static uint32_t chain(const struct ctx_cache *c, uint32_t hash)
{
	return c->bucket[hash].life == c->life ? c->bucket[hash].place : 0;
}

static void chain_set(struct ctx_cache *c, uint32_t hash, uint32_t place)
{
	c->bucket[hash].place = place;
	c->bucket[hash].life = c->life;
}

static struct ctx_ent *lookup(const struct ctx_cache *c, uint32_t index)
{
	for (uint32_t n = chain(c, hash(c, index)); n; ) {
		struct ctx_ent *ent = ent_at(c, n - 1);

		if (ent->index == index)
			return ent;
		n = ent->next;
	}
	return NULL;
}

/* --- users --- */

#ifdef POISON
static void must(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "contexts: %s\n", what);
	abort();
}

static uint32_t most_of(const struct ctx_cache *c)
{
	return CTX_TAG + c->stride - sizeof(struct ctx_ent);
}
#endif

static void pin(struct skua_dev *dev, struct ctx_ent *ent)
{
#ifdef POISON
	if (!ent->pins)
		dev->icm->pinned += most_of(&dev->icm->table[ent->table].cache);
	must(dev->icm->pinned <= ROOM_MIN, "more are in use at once than there is room for");
#else
	(void)dev;
#endif
	ent->pins++;
}

static void unpin(struct skua_dev *dev, struct ctx_ent *ent)
{
	ent->pins--;
#ifdef POISON
	if (!ent->pins)
		dev->icm->pinned -= most_of(&dev->icm->table[ent->table].cache);
#else
	(void)dev;
#endif
}

static enum tlp_purpose purpose_of(unsigned int table)
{
	return table == SKUA_ICM_MPT ? TLP_MPT : TLP_CTX;
}

/* --- sectors --- */

/* Allow access to the sectors that the users of a context have asked for, or, with @all, to all. */
static void reveal(struct ctx_ent *ent, bool all)
{
#ifdef POISON
	uint32_t ok = all ? ent->valid : ent->valid & ent->asked;

	for (uint32_t left = ent->valid; left; left &= left - 1) {
		unsigned int s = __builtin_ctz(left);
		uint8_t *at = (uint8_t *)ctx_of(ent) + s * CTX_SECTOR;

		if (ok >> s & 1)
			show(at, CTX_SECTOR);
		else
			hide(at, CTX_SECTOR);
	}
#else
	(void)ent;
	(void)all;
#endif
}

static uint32_t num_of(uint32_t sectors)
{
	return __builtin_popcount(sectors);
}

/* The first run of adjacent sectors. */
static uint32_t run_of(uint32_t sectors)
{
	return sectors & ~(sectors + (sectors & -sectors));
}

/* Read or write @sectors, each run of adjacent ones by one DMA request. */
static int transfer(struct skua_dev *dev, struct ctx_ent *ent, uint32_t sectors, bool write)
{
	struct icm_table *t = &dev->icm->table[ent->table];
	uint8_t *ctx = ctx_of(ent);
	uint64_t bus;

	if (!icm_translate(dev->icm, t->base + (uint64_t)ent->index * t->size, &bus))
		return -1;
	for (uint32_t run; sectors; sectors &= ~run) {
		uint32_t at = __builtin_ctz(sectors) * CTX_SECTOR, len;
		int err;

		run = run_of(sectors);
		len = num_of(run) * CTX_SECTOR;
		/* Entries of some tables are shorter than a sector. */
		len = len < t->size - at ? len : t->size - at;
		err = write ? dma_write(dev, purpose_of(ent->table), bus + at, ctx + at, len) :
			      dma_read(dev, purpose_of(ent->table), bus + at, ctx + at, len);
		if (err)
			return -1;
	}
	return 0;
}

static int write_back(struct skua_dev *dev, struct ctx_ent *ent, uint32_t sectors)
{
	sectors &= ent->dirty;
	if (!sectors)
		return 0;
	reveal(ent, true);
	if (transfer(dev, ent, sectors, true)) {
		dev_fatal(dev, SKUA_FATAL_ICM_DMA);
		return -1;
	}
	reveal(ent, false);
	ent->dirty &= ~sectors;
	dev->icm->table[ent->table].cache.writebacks++;
	return 0;
}

static void unhash(struct ctx_cache *c, struct ctx_ent *ent)
{
	uint32_t head = chain(c, hash(c, ent->index));
	uint32_t *link = &head;

	while (ent_at(c, *link - 1) != ent)
		link = &ent_at(c, *link - 1)->next;
	*link = ent->next;
	chain_set(c, hash(c, ent->index), head);
	ent->life = 0;
	ent->next = c->free;
	c->free = ((uint8_t *)ent - c->mem) / c->stride + 1;
	c->used--;
}

/* Remove sectors from the cache, and the context with the last of them. */
static void forget(struct skua_dev *dev, struct ctx_ent *ent, uint32_t sectors)
{
	struct ctx_cache *c = &dev->icm->table[ent->table].cache;

	ent->valid &= ~sectors;
	ent->dirty &= ~sectors;
	c->sectors -= num_of(sectors);
	dev->icm->bytes -= num_of(sectors) * CTX_SECTOR;
	for (uint32_t left = sectors; left; left &= left - 1)
		hide((uint8_t *)ctx_of(ent) + __builtin_ctz(left) * CTX_SECTOR, CTX_SECTOR);
	if (ent->valid)
		return;
#ifdef POISON
	must(!ent->pins, "one in use goes");
#endif
	unhash(c, ent);
	dev->icm->bytes -= CTX_TAG;
}

/* --- room --- */

/* The context at the clock hand, which advances; NULL: the hand has changed to another table. */
static struct ctx_ent *hand_moves(struct icm *icm)
{
	struct ctx_cache *c = &icm->table[icm->hand_table].cache;

	if (icm->hand < c->top)
		return ent_at(c, icm->hand++);
	icm->hand = 0;
	icm->hand_table = icm->hand_table + 1 == SKUA_ICM_TABLES ? 0 : icm->hand_table + 1;
	return NULL;
}

/* Make room for @need bytes. Sectors used since the hand last passed get a second chance. */
static bool make_room(struct skua_dev *dev, uint32_t need)
{
	struct icm *icm = dev->icm;
	uint64_t others = onchip_others(dev);
	uint64_t room = others + ROOM_MIN < onchip_size(dev) ? onchip_size(dev) - others : ROOM_MIN;
	unsigned int rounds = 0;

	while (icm->bytes + need > room) {
		struct ctx_ent *ent = hand_moves(icm);
		uint32_t victims;

		if (!ent) {
			if (!icm->hand_table && ++rounds > 3)
				break;
			continue;
		}
		if (!in_use(&icm->table[icm->hand_table].cache, ent) || ent->pins)
			continue;
		victims = ent->valid & ~ent->ref;
		ent->ref = 0;
		if (!victims)
			continue;
		if (write_back(dev, ent, victims))
			return false;
		forget(dev, ent, victims);
	}
	if (icm->bytes + need <= room)
		return true;
	dev_log(dev, 0, "every context on the chip is in use");
	return false;
}

static struct ctx_ent *insert(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct ctx_cache *c = &dev->icm->table[table].cache;
	uint32_t place = c->free;
	struct ctx_ent *ent;

	if (place)
		c->free = ent_at(c, place - 1)->next;
	else if (c->top < c->num)
		place = ++c->top;
	else
		return NULL;
	ent = ent_at(c, place - 1);
	hide(ctx_of(ent), c->stride - sizeof(*ent));
	*ent = (struct ctx_ent){
		.index = index, .table = table, .next = chain(c, hash(c, index)), .life = c->life,
	};
	chain_set(c, hash(c, index), place);
	c->used++;
	dev->icm->bytes += CTX_TAG;
	return ent;
}

/* Add the sectors to the context; there is room for them. */
static void add(struct skua_dev *dev, struct ctx_ent *ent, uint32_t sectors)
{
	ent->valid |= sectors;
	dev->icm->table[ent->table].cache.sectors += num_of(sectors);
	dev->icm->bytes += num_of(sectors) * CTX_SECTOR;
}

/*
 * Return the context, pinned, with at least @sectors. *@missing is the set of those that were
 * not cached: the caller has to fill them.
 */
static struct ctx_ent *hold(struct skua_dev *dev, enum skua_icm_table table, uint32_t index,
			    uint32_t sectors, uint32_t *missing)
{
	struct ctx_ent *ent = lookup(&dev->icm->table[table].cache, index);

	*missing = ent ? sectors & ~ent->valid : sectors;
	/* Pinned before room is made, so that this context is not evicted. */
	if (ent)
		pin(dev, ent);
	if (*missing && !make_room(dev, num_of(*missing) * CTX_SECTOR + (ent ? 0 : CTX_TAG))) {
		if (ent)
			unpin(dev, ent);
		return NULL;
	}
	if (!ent) {
		ent = insert(dev, table, index);
		if (!ent)
			return NULL;
		pin(dev, ent);
	}
	if (*missing)
		add(dev, ent, *missing);
	ent->ref |= sectors;
	ent->asked = sectors | (ent->pins > 1 ? ent->asked : 0);
	return ent;
}

/* --- for users --- */

static bool sane(struct skua_dev *dev, struct ctx_ent *ent)
{
	static bool (*const check[SKUA_ICM_TABLES])(struct skua_dev *, uint32_t, const void *) = {
		[SKUA_ICM_SRQC] = srqc_check,
		[SKUA_ICM_CQC] = cqc_check,
		[SKUA_ICM_EQC] = eqc_check,
		[SKUA_ICM_MPT] = mpt_check,
		[SKUA_ICM_RSS] = rss_check,
		[SKUA_ICM_LRC] = lrc_check,
	};

	if (ent->table == SKUA_ICM_SQC || ent->table == SKUA_ICM_RQC)
		return !obj_valid(dev, ent->table, ent->index) ||
		       (ent->table == SKUA_ICM_SQC ? sqc_check : rqc_check)
				(dev, ent->index, ctx_of(ent), ent->valid);
	return !check[ent->table] || !obj_valid(dev, ent->table, ent->index) ||
	       check[ent->table](dev, ent->index, ctx_of(ent));
}

/* Read sectors from ICM, and check them together with the sectors that were cached. */
static enum skua_fatal fetch(struct skua_dev *dev, struct ctx_ent *ent, uint32_t sectors)
{
	dev->icm->table[ent->table].cache.misses++;
	reveal(ent, true);
	if (transfer(dev, ent, sectors, false))
		return SKUA_FATAL_ICM_DMA;
	if (!sane(dev, ent))
		return SKUA_FATAL_ICM_CORRUPT;
	reveal(ent, false);
	return SKUA_FATAL_NONE;
}

void *ctx_get_part(struct skua_dev *dev, enum skua_icm_table table, uint32_t index,
		   uint32_t sectors)
{
	struct icm_table *t = &dev->icm->table[table];
	struct ctx_ent *ent = lookup(&t->cache, index);
	enum skua_fatal why;
	uint32_t missing;

	if (dev->cfg.whole)
		sectors = t->cache.all;
	if (ent && !(sectors & ~ent->valid)) {
		t->cache.hits++;
		ent->ref |= sectors;
		ent->asked = sectors | (ent->pins ? ent->asked : 0);
		pin(dev, ent);
		reveal(ent, false);
		return ctx_of(ent);
	}
	if (dev->state == DEV_FATAL || !icm_mapped(dev, table, index))
		return NULL;
	ent = hold(dev, table, index, sectors, &missing);
	if (!ent)
		return NULL;
	why = fetch(dev, ent, missing);
	if (why == SKUA_FATAL_NONE)
		return ctx_of(ent);
	/* Drop the context first: it may be that of the EQ that the fatal event goes to. */
	unpin(dev, ent);
	forget(dev, ent, missing);
	dev_fatal(dev, why);
	return NULL;
}

/* The first context of the chain is the one, or nothing is lost but this. */
void ctx_prefetch(const struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	const struct ctx_cache *c = &dev->icm->table[table].cache;
	uint32_t place = chain(c, hash(c, index));
	const uint8_t *ent;

	if (!place)
		return;
	ent = (const uint8_t *)ent_at(c, place - 1);
	for (unsigned int i = 0; i < PREFETCH_LINES; i++)
		__builtin_prefetch(ent + i * CTX_SECTOR, 1);
}

void *ctx_get(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	return ctx_get_part(dev, table, index, dev->icm->table[table].cache.all);
}

bool ctx_need(struct skua_dev *dev, void *ctx)
{
	struct ctx_ent *ent = ent_of(ctx);
	uint32_t all = dev->icm->table[ent->table].cache.all;

#ifndef POISON
	if (ent->valid == all)
		return true;
#endif
	if (!ctx_get_part(dev, ent->table, ent->index, all))
		return false;
	unpin(dev, ent);
	return true;
}

void *ctx_new(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct icm_table *t = &dev->icm->table[table];
	struct ctx_ent *ent;
	uint32_t missing;

	if (!lookup(&t->cache, index) && !icm_mapped(dev, table, index))
		return NULL;
	ent = hold(dev, table, index, t->cache.all, &missing);
	if (!ent)
		return NULL;
	reveal(ent, true);
	memset(ctx_of(ent), 0, t->size);
	ent->dirty = t->cache.all;
	return ctx_of(ent);
}

void ctx_put(struct skua_dev *dev, void *ctx)
{
	unpin(dev, ent_of(ctx));
}

void ctx_dirty_part(struct skua_dev *dev, void *ctx, uint32_t sectors)
{
	(void)dev;
	ent_of(ctx)->dirty |= sectors & ent_of(ctx)->valid;
}

void ctx_dirty(struct skua_dev *dev, void *ctx)
{
	(void)dev;
	ent_of(ctx)->dirty = ent_of(ctx)->valid;
}

void ctx_flush(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct ctx_ent *ent = lookup(&dev->icm->table[table].cache, index);

	if (ent)
		write_back(dev, ent, ent->dirty);
}

void cache_evict_range(struct skua_dev *dev, uint64_t addr, uint64_t len)
{
	struct icm_table *mtt = &dev->icm->table[SKUA_ICM_MTT];

	if (!dev->icm->laid_out)
		return;
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct icm_table *t = &dev->icm->table[i];
		struct ctx_cache *c = &t->cache;

		for (uint32_t n = 0; n < c->top; n++) {
			struct ctx_ent *ent = ent_at(c, n);
			uint64_t at = t->base + (uint64_t)ent->index * t->size;

			if (!in_use(c, ent) || at < addr || at - addr >= len)
				continue;
			if (write_back(dev, ent, ent->dirty))
				return;
			forget(dev, ent, ent->valid);
		}
	}
	if (addr < mtt->base + ((uint64_t)mtt->size << mtt->log_num) && addr + len > mtt->base)
		mtt_forget(dev, 0, icm_num(dev, SKUA_ICM_MTT));
}

/* --- MTT lines --- */

static struct mtt_line *mtt_place(const struct mtt_cache *m, uint64_t line)
{
	return &m->place[(line ^ line >> 13) & (m->num - 1)];
}

static bool holds(const struct mtt_cache *m, const struct mtt_line *place, uint64_t line)
{
	return place->life == m->life && place->line == line + 1;
}

struct onchip mtt_onchip(const struct skua_dev *dev)
{
	uint64_t num = dev->icm->mtt.num;

	return (struct onchip){ .num = num, .bytes = num * MTT_LINE_BYTES };
}

void mtt_forget(struct skua_dev *dev, uint64_t index, uint64_t count)
{
	struct mtt_cache *m = &dev->icm->mtt;

	if (!count)
		return;
	if (count / MTT_LINE >= m->num) {
		mtt_forget_all(m);
		return;
	}
	for (uint64_t line = index / MTT_LINE; line <= (index + count - 1) / MTT_LINE; line++) {
		struct mtt_line *place = mtt_place(m, line);

		if (!holds(m, place, line))
			continue;
		place->line = 0;
		m->used--;
	}
}

static int mtt_fetch(struct skua_dev *dev, struct mtt_line *place, uint64_t line)
{
	const struct icm_table *t = &dev->icm->table[SKUA_ICM_MTT];
	struct mtt_cache *m = &dev->icm->mtt;
	uint64_t bus;

	if (!icm_translate(dev->icm, t->base + line * sizeof(place->entry), &bus))
		return -1;
	if (place->line && place->life == m->life)
		m->used--;
	place->line = 0;
	m->misses++;
	if (dma_read(dev, TLP_MTT, bus, place->entry, sizeof(place->entry))) {
		dev_fatal(dev, SKUA_FATAL_ICM_DMA);
		return -1;
	}
	place->line = line + 1;
	place->life = m->life;
	m->used++;
	return 0;
}

int mtt_put(struct skua_dev *dev, uint64_t index, const __le64 *entry, uint32_t count)
{
	const struct icm_table *t = &dev->icm->table[SKUA_ICM_MTT];
	const uint32_t per_page = SKUA_ICM_PAGE_SIZE / sizeof(*entry);
	uint64_t num = icm_num(dev, SKUA_ICM_MTT);

	if (index > num || count > num - index)
		return -1;
	mtt_forget(dev, index, count);
	while (count) {
		uint32_t n = per_page - index % per_page;
		uint64_t bus;

		n = n < count ? n : count;
		if (!icm_translate(dev->icm, t->base + index * sizeof(*entry), &bus))
			return -1;
		if (dma_write(dev, TLP_MTT, bus, entry, n * sizeof(*entry))) {
			dev_fatal(dev, SKUA_FATAL_ICM_DMA);
			return -1;
		}
		index += n;
		entry += n;
		count -= n;
	}
	return 0;
}

int mtt_get(struct skua_dev *dev, uint64_t index, uint64_t *entry)
{
	struct mtt_cache *m = &dev->icm->mtt;
	uint64_t line = index / MTT_LINE;
	struct mtt_line *place = mtt_place(m, line);

	if (index >= icm_num(dev, SKUA_ICM_MTT))
		return -1;
	if (holds(m, place, line))
		m->hits++;
	else if (mtt_fetch(dev, place, line))
		return -1;
	*entry = le64_to_cpu(place->entry[index % MTT_LINE]);
	return 0;
}
