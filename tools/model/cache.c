// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts on the chip: a bounded cache of each table, which writes back what it
 * evicts, and a cache of MTT lines. A context in use is pinned; the second chance
 * goes to those used since the hand last came by.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "icm.h"

#define CACHE_DEFAULT	1024
/* More than one code path ever pins at once. */
#define CACHE_MIN	8
#define CACHE_MAX	(1u << 20)
/* Lines of the MTT for each context. */
#define MTT_LINES_PER_CTX	4

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

static uint32_t hash(const struct ctx_cache *c, uint32_t index)
{
	return (index * 0x9e3779b1u >> 7 ^ index) & c->mask;
}

static int one_init(struct ctx_cache *c, uint32_t num, uint32_t size)
{
	uint32_t buckets = 8;

	while (buckets < num)
		buckets *= 2;
	c->num = num;
	c->life = 1;
	c->mask = buckets - 1;
	c->stride = sizeof(struct ctx_ent) + ((size + 63) & ~63u);
	c->mem = aligned_alloc(64, (size_t)num * c->stride);
	c->bucket = calloc(buckets, sizeof(*c->bucket));
	if (!c->mem || !c->bucket)
		return -ENOMEM;
	memset(c->mem, 0, (size_t)num * c->stride);
	return 0;
}

int cache_init(struct skua_dev *dev)
{
	struct icm *icm = dev->icm;
	uint32_t num = dev->cfg.cache ? dev->cfg.cache : CACHE_DEFAULT;

	if (num < CACHE_MIN)
		num = CACHE_MIN;
	if (num > CACHE_MAX)
		num = CACHE_MAX;
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		uint32_t most = 1u << icm_kind[i].log_max;

		if (i == SKUA_ICM_MTT)
			continue;
		if (one_init(&icm->table[i].cache, num < most ? num : most, icm_kind[i].size))
			return -ENOMEM;
	}
	icm->mtt.num = 1;
	icm->mtt.life = 1;
	while (icm->mtt.num < num * MTT_LINES_PER_CTX)
		icm->mtt.num *= 2;
	icm->mtt.place = calloc(icm->mtt.num, sizeof(*icm->mtt.place));
	return icm->mtt.place ? 0 : -ENOMEM;
}

/*
 * Forget everything, by beginning another life; only when their numbers begin anew, what
 * is left of an earlier life must really go.
 */
static void ctx_forget(struct ctx_cache *c)
{
	if (!++c->life && c->num) {
		for (uint32_t n = 0; n < c->num; n++)
			ent_at(c, n)->life = 0;
		memset(c->bucket, 0, (c->mask + 1) * sizeof(*c->bucket));
		c->life = 1;
	}
	c->used = 0;
}

static void mtt_forget_all(struct mtt_cache *m)
{
	if (!++m->life) {
		memset(m->place, 0, m->num * sizeof(*m->place));
		m->life = 1;
	}
	m->used = 0;
}

/* A reset must not take the longer, the larger the caches are. */
void cache_reset(struct skua_dev *dev)
{
	struct mtt_cache *m = &dev->icm->mtt;

	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct ctx_cache *c = &dev->icm->table[i].cache;

		ctx_forget(c);
		c->hand = 0;
		c->hits = 0;
		c->misses = 0;
		c->writebacks = 0;
	}
	mtt_forget_all(m);
	m->hits = 0;
	m->misses = 0;
}

void cache_exit(struct skua_dev *dev)
{
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		free(dev->icm->table[i].cache.mem);
		free(dev->icm->table[i].cache.bucket);
	}
	free(dev->icm->mtt.place);
}

/* First place in a hash chain, plus one; 0: it is empty. */
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

static enum tlp_purpose purpose_of(unsigned int table)
{
	return table == SKUA_ICM_MPT ? TLP_MPT : TLP_CTX;
}

static int write_back(struct skua_dev *dev, struct ctx_ent *ent)
{
	struct icm_table *t = &dev->icm->table[ent->table];
	uint64_t bus;

	if (!ent->dirty)
		return 0;
	if (!icm_translate(dev->icm, t->base + (uint64_t)ent->index * t->size, &bus) ||
	    dma_write(dev, purpose_of(ent->table), bus, ctx_of(ent), t->size)) {
		dev_fatal(dev, SKUA_FATAL_ICM_DMA);
		return -1;
	}
	ent->dirty = false;
	t->cache.writebacks++;
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
	c->used--;
}

/* A free place: the hand gives every context that was used a second chance. */
static struct ctx_ent *make_room(struct skua_dev *dev, struct ctx_cache *c)
{
	for (uint32_t n = 0; n < 2 * c->num + 1; n++) {
		struct ctx_ent *ent = ent_at(c, c->hand);

		c->hand = c->hand + 1 == c->num ? 0 : c->hand + 1;
		if (!in_use(c, ent))
			return ent;
		if (ent->pins)
			continue;
		if (ent->ref) {
			ent->ref = false;
			continue;
		}
		if (write_back(dev, ent))
			return NULL;
		unhash(c, ent);
		return ent;
	}
	dev_log(dev, 0, "every context of a cache is in use");
	return NULL;
}

static struct ctx_ent *insert(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct ctx_cache *c = &dev->icm->table[table].cache;
	struct ctx_ent *ent = make_room(dev, c);

	if (!ent)
		return NULL;
	*ent = (struct ctx_ent){
		.index = index, .table = table, .next = chain(c, hash(c, index)), .life = c->life,
	};
	chain_set(c, hash(c, index), ((uint8_t *)ent - c->mem) / c->stride + 1);
	c->used++;
	return ent;
}

static bool sane(struct skua_dev *dev, enum skua_icm_table table, uint32_t index, const void *ctx)
{
	static bool (*const check[SKUA_ICM_TABLES])(struct skua_dev *, uint32_t, const void *) = {
		[SKUA_ICM_SQC] = sqc_check,
		[SKUA_ICM_RQC] = rqc_check,
		[SKUA_ICM_SRQC] = srqc_check,
		[SKUA_ICM_CQC] = cqc_check,
		[SKUA_ICM_EQC] = eqc_check,
		[SKUA_ICM_MPT] = mpt_check,
		[SKUA_ICM_RSS] = rss_check,
		[SKUA_ICM_LRC] = lrc_check,
	};

	return !check[table] || !obj_valid(dev, table, index) || check[table](dev, index, ctx);
}

/* Read a context from ICM into the cache. */
static struct ctx_ent *fetch(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct icm_table *t = &dev->icm->table[table];
	struct ctx_ent *ent;
	uint64_t bus;

	if (dev->state == DEV_FATAL || index >= icm_num(dev, table) ||
	    !icm_translate(dev->icm, t->base + (uint64_t)index * t->size, &bus))
		return NULL;
	ent = insert(dev, table, index);
	if (!ent)
		return NULL;
	t->cache.misses++;
	if (dma_read(dev, purpose_of(table), bus, ctx_of(ent), t->size)) {
		unhash(&t->cache, ent);
		dev_fatal(dev, SKUA_FATAL_ICM_DMA);
		return NULL;
	}
	if (!sane(dev, table, index, ctx_of(ent))) {
		unhash(&t->cache, ent);
		dev_fatal(dev, SKUA_FATAL_ICM_CORRUPT);
		return NULL;
	}
	return ent;
}

void *ctx_get(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct ctx_cache *c = &dev->icm->table[table].cache;
	struct ctx_ent *ent = lookup(c, index);

	if (ent)
		c->hits++;
	else
		ent = fetch(dev, table, index);
	if (!ent)
		return NULL;
	ent->pins++;
	ent->ref = true;
	return ctx_of(ent);
}

void *ctx_new(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct icm_table *t = &dev->icm->table[table];
	struct ctx_ent *ent = lookup(&t->cache, index);

	if (!ent && icm_mapped(dev, table, index))
		ent = insert(dev, table, index);
	if (!ent)
		return NULL;
	memset(ctx_of(ent), 0, t->size);
	ent->dirty = true;
	ent->ref = true;
	ent->pins++;
	return ctx_of(ent);
}

void ctx_put(struct skua_dev *dev, void *ctx)
{
	(void)dev;
	ent_of(ctx)->pins--;
}

void ctx_dirty(struct skua_dev *dev, void *ctx)
{
	(void)dev;
	ent_of(ctx)->dirty = true;
}

void ctx_flush(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	struct ctx_ent *ent = lookup(&dev->icm->table[table].cache, index);

	if (ent)
		write_back(dev, ent);
}

void cache_evict_range(struct skua_dev *dev, uint64_t addr, uint64_t len)
{
	struct icm_table *mtt = &dev->icm->table[SKUA_ICM_MTT];

	if (!dev->icm->laid_out)
		return;
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct icm_table *t = &dev->icm->table[i];
		struct ctx_cache *c = &t->cache;

		for (uint32_t n = 0; n < c->num; n++) {
			struct ctx_ent *ent = ent_at(c, n);
			uint64_t at = t->base + (uint64_t)ent->index * t->size;

			if (!in_use(c, ent) || at < addr || at - addr >= len)
				continue;
			if (write_back(dev, ent))
				return;
			unhash(c, ent);
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
