// SPDX-License-Identifier: GPL-2.0
/*
 * ICM: the device's address space in host memory. Which host page lies where
 * (MAP_ICM, UNMAP_ICM), where the tables lie (INIT_DEVICE), which of their
 * entries are objects.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "icm.h"

#define LOG_ROOM_MIN	8
#define PAGES_ALL	(1ull << (SKUA_ICM_ADDR_BITS - SKUA_ICM_PAGE_SHIFT))

const struct icm_kind icm_kind[SKUA_ICM_TABLES] = {
	[SKUA_ICM_SQC]	= { SKUA_ICM_SQC_SIZE, MODEL_LOG_QP },
	[SKUA_ICM_RQC]	= { SKUA_ICM_RQC_SIZE, MODEL_LOG_QP },
	[SKUA_ICM_SRQC]	= { SKUA_ICM_SRQC_SIZE, MODEL_LOG_SRQ },
	[SKUA_ICM_CQC]	= { SKUA_ICM_CQC_SIZE, MODEL_LOG_CQ },
	[SKUA_ICM_EQC]	= { SKUA_ICM_EQC_SIZE, MODEL_LOG_EQ },
	[SKUA_ICM_MPT]	= { SKUA_ICM_MPT_SIZE, MODEL_LOG_MPT },
	[SKUA_ICM_MTT]	= { SKUA_ICM_MTT_SIZE, MODEL_LOG_MTT },
	[SKUA_ICM_RRC]	= { SKUA_ICM_RRC_SIZE, MODEL_LOG_QP },
	[SKUA_ICM_GID]	= { SKUA_ICM_GID_SIZE, MODEL_LOG_GID },
	[SKUA_ICM_FLOW]	= { SKUA_ICM_FLOW_SIZE, MODEL_LOG_FLOW },
	[SKUA_ICM_MCG]	= { SKUA_ICM_MCG_SIZE, MODEL_LOG_MCG },
	[SKUA_ICM_RSS]	= { SKUA_ICM_RSS_SIZE, MODEL_LOG_RSS },
	[SKUA_ICM_CNT]	= { SKUA_ICM_CNT_SIZE, MODEL_LOG_CNT },
};

static uint64_t table_bytes(uint32_t size, uint8_t log_num)
{
	uint64_t bytes = (uint64_t)size << log_num;

	return (bytes + SKUA_ICM_PAGE_SIZE - 1) & ~(uint64_t)(SKUA_ICM_PAGE_SIZE - 1);
}

/* --- mapped pages --- */

static uint64_t home(const struct icm *icm, uint64_t page)
{
	return page * 0x9e3779b97f4a7c15ull >> (64 - icm->log_room);
}

/* The place that holds the page, or the free one where it would go. */
static struct icm_page *find_page(const struct icm *icm, uint64_t page)
{
	uint64_t mask = (1ull << icm->log_room) - 1;
	uint64_t at = home(icm, page);

	while (icm->page[at].page && icm->page[at].page != page + 1)
		at = (at + 1) & mask;
	return &icm->page[at];
}

static bool page_mapped(const struct icm *icm, uint64_t page)
{
	return find_page(icm, page)->page;
}

static struct icm_table *table_of(struct icm *icm, uint64_t page)
{
	uint64_t addr = page << SKUA_ICM_PAGE_SHIFT;

	for (unsigned int i = 0; icm->laid_out && i < SKUA_ICM_TABLES; i++) {
		struct icm_table *t = &icm->table[i];

		if (addr >= t->base && addr - t->base < table_bytes(t->size, t->log_num))
			return t;
	}
	return NULL;
}

static void put_page(struct icm *icm, uint64_t page, uint64_t addr)
{
	struct icm_page *place = find_page(icm, page);

	place->page = page + 1;
	place->addr = addr;
	icm->mapped++;
}

/* Room for @more pages at a load of at most one half. */
static bool reserve_pages(struct icm *icm, uint64_t more)
{
	struct icm_page *old = icm->page;
	uint64_t old_room = 1ull << icm->log_room;
	unsigned int log_room = icm->log_room;

	while ((icm->mapped + more) * 2 > 1ull << log_room)
		log_room++;
	if (log_room == icm->log_room)
		return true;
	icm->page = calloc(1ull << log_room, sizeof(*icm->page));
	if (!icm->page) {
		icm->page = old;
		return false;
	}
	icm->log_room = log_room;
	icm->mapped = 0;
	for (uint64_t i = 0; i < old_room; i++) {
		if (old[i].page)
			put_page(icm, old[i].page - 1, old[i].addr);
	}
	free(old);
	return true;
}

/* Linear probing without tombstones: move up what the gap would cut off. */
static void drop_page(struct icm *icm, uint64_t page)
{
	uint64_t mask = (1ull << icm->log_room) - 1;
	uint64_t gap = find_page(icm, page) - icm->page;
	uint64_t at = gap;

	for (;;) {
		uint64_t want;

		at = (at + 1) & mask;
		if (!icm->page[at].page)
			break;
		want = home(icm, icm->page[at].page - 1);
		if (((at - want) & mask) >= ((at - gap) & mask)) {
			icm->page[gap] = icm->page[at];
			gap = at;
		}
	}
	icm->page[gap].page = 0;
	icm->mapped--;
}

bool icm_translate(const struct icm *icm, uint64_t addr, uint64_t *bus)
{
	const struct icm_page *place = find_page(icm, addr >> SKUA_ICM_PAGE_SHIFT);

	if (!place->page)
		return false;
	*bus = place->addr + (addr & (SKUA_ICM_PAGE_SIZE - 1));
	return true;
}

/* --- life --- */

int icm_init(struct skua_dev *dev)
{
	struct icm *icm = calloc(1, sizeof(*icm));

	if (!icm)
		return -ENOMEM;
	dev->icm = icm;
	icm->log_room = LOG_ROOM_MIN;
	icm->page = calloc(1u << LOG_ROOM_MIN, sizeof(*icm->page));
	if (!icm->page)
		return -ENOMEM;
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		icm->table[i].size = icm_kind[i].size;
		icm->limit += table_bytes(icm_kind[i].size, icm_kind[i].log_max) >>
			      SKUA_ICM_PAGE_SHIFT;
	}
	return cache_init(dev);
}

/* Tables and objects go, mapped pages stay: TEARDOWN_DEVICE. */
static void forget_layout(struct skua_dev *dev)
{
	struct icm *icm = dev->icm;

	cache_reset(dev);
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct icm_table *t = &icm->table[i];

		free(t->valid);
		free(t->refs);
		t->valid = NULL;
		t->refs = NULL;
		t->base = 0;
		t->log_num = 0;
		t->mapped = 0;
	}
	icm->laid_out = false;
}

void icm_reset(struct skua_dev *dev)
{
	struct icm *icm = dev->icm;

	forget_layout(dev);
	memset(icm->page, 0, sizeof(*icm->page) << icm->log_room);
	icm->mapped = 0;
}

void icm_exit(struct skua_dev *dev)
{
	if (!dev->icm)
		return;
	cache_exit(dev);
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		free(dev->icm->table[i].valid);
		free(dev->icm->table[i].refs);
	}
	free(dev->icm->page);
	free(dev->icm);
}

/* --- objects --- */

uint64_t icm_num(const struct skua_dev *dev, enum skua_icm_table table)
{
	return dev->icm->laid_out ? 1ull << dev->icm->table[table].log_num : 0;
}

bool icm_mapped(const struct skua_dev *dev, enum skua_icm_table table, uint64_t index)
{
	const struct icm_table *t = &dev->icm->table[table];
	uint64_t bus;

	return index < icm_num(dev, table) &&
	       icm_translate(dev->icm, t->base + index * t->size, &bus);
}

bool obj_valid(const struct skua_dev *dev, enum skua_icm_table table, uint64_t index)
{
	const struct icm_table *t = &dev->icm->table[table];

	return index < icm_num(dev, table) && t->valid && (t->valid[index / 64] >> index % 64 & 1);
}

void obj_set(struct skua_dev *dev, enum skua_icm_table table, uint32_t index, bool valid)
{
	uint64_t *word = &dev->icm->table[table].valid[index / 64];
	uint64_t bit = 1ull << index % 64;

	*word = valid ? *word | bit : *word & ~bit;
	dev->icm->table[table].refs[index] = 0;
}

void obj_ref(struct skua_dev *dev, enum skua_icm_table table, uint32_t index, int by)
{
	if (obj_valid(dev, table, index))
		dev->icm->table[table].refs[index] += by;
}

uint32_t obj_refs(const struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	return obj_valid(dev, table, index) ? dev->icm->table[table].refs[index] : 0;
}

/* Does an object lie in [@addr, @addr + @len)? */
static bool objects_in(const struct skua_dev *dev, uint64_t addr, uint64_t len)
{
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		const struct icm_table *t = &dev->icm->table[i];
		uint64_t end = t->base + ((uint64_t)t->size << t->log_num);
		uint64_t from = addr > t->base ? addr : t->base;
		uint64_t to = addr + len < end ? addr + len : end;

		if (!t->valid || from >= to)
			continue;
		for (uint64_t n = (from - t->base) / t->size; n * t->size < to - t->base; n++) {
			if (t->valid[n / 64] >> n % 64 & 1)
				return true;
		}
	}
	return false;
}

/* --- commands --- */

/* Check a MAP_ICM's runs and add up their pages. */
static int map_pages(const struct skua_cmd_map_icm_in *in, uint32_t count, uint64_t limit,
		     uint64_t *pages)
{
	*pages = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t word = le64_to_cpu(in->page[i]);
		uint64_t log = word & SKUA_MAP_ICM_LOG_PAGES;
		uint64_t addr = word & SKUA_MAP_ICM_ADDR;

		if (word & ~(SKUA_MAP_ICM_LOG_PAGES | SKUA_MAP_ICM_ADDR))
			return SKUA_CMD_ST_BAD_PARAM;
		if (log > 63 - SKUA_ICM_PAGE_SHIFT ||
		    addr + ((SKUA_ICM_PAGE_SIZE << log) - 1) < addr)
			return SKUA_CMD_ST_BAD_PARAM;
		if (1ull << log > limit - *pages)
			return SKUA_CMD_ST_LIMIT;
		*pages += 1ull << log;
	}
	return SKUA_CMD_ST_OK;
}

int cmd_map_icm(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_map_icm_in *in = cmd->in;
	struct icm *icm = dev->icm;
	uint64_t addr = le64_to_cpu(in->addr);
	uint32_t count = le32_to_cpu(in->count);
	uint64_t page = addr >> SKUA_ICM_PAGE_SHIFT;
	uint64_t pages;
	int err;

	if (cmd->in_len != sizeof(*in) + count * sizeof(in->page[0]))
		return SKUA_CMD_ST_BAD_LEN;
	if (in->reserved || !count || addr % SKUA_ICM_PAGE_SIZE || page >= PAGES_ALL)
		return SKUA_CMD_ST_BAD_PARAM;
	err = map_pages(in, count, icm->limit - icm->mapped, &pages);
	if (err)
		return err;
	if (pages > PAGES_ALL - page)
		return SKUA_CMD_ST_BAD_PARAM;
	for (uint64_t i = 0; i < pages; i++) {
		if (page_mapped(icm, page + i))
			return SKUA_CMD_ST_BUSY;
	}
	if (!reserve_pages(icm, pages))
		return SKUA_CMD_ST_LIMIT;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t word = le64_to_cpu(in->page[i]);
		uint64_t bus = word & SKUA_MAP_ICM_ADDR;

		for (uint64_t n = 1ull << (word & SKUA_MAP_ICM_LOG_PAGES); n; n--) {
			struct icm_table *t = table_of(icm, page);

			put_page(icm, page++, bus);
			bus += SKUA_ICM_PAGE_SIZE;
			if (t)
				t->mapped++;
		}
	}
	return SKUA_CMD_ST_OK;
}

int cmd_unmap_icm(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_unmap_icm_in *in = cmd->in;
	struct icm *icm = dev->icm;
	uint64_t addr = le64_to_cpu(in->addr);
	uint32_t npages = le32_to_cpu(in->npages);
	uint64_t page = addr >> SKUA_ICM_PAGE_SHIFT;

	if (in->reserved || !npages || addr % SKUA_ICM_PAGE_SIZE || page >= PAGES_ALL)
		return SKUA_CMD_ST_BAD_PARAM;
	if (npages > icm->mapped || npages > PAGES_ALL - page)
		return SKUA_CMD_ST_BAD_INDEX;
	for (uint32_t i = 0; i < npages; i++) {
		if (!page_mapped(icm, page + i))
			return SKUA_CMD_ST_BAD_INDEX;
	}
	if (objects_in(dev, addr, (uint64_t)npages << SKUA_ICM_PAGE_SHIFT))
		return SKUA_CMD_ST_BUSY;
	cache_evict_range(dev, addr, (uint64_t)npages << SKUA_ICM_PAGE_SHIFT);
	for (uint32_t i = 0; i < npages; i++) {
		struct icm_table *t = table_of(icm, page + i);

		drop_page(icm, page + i);
		if (t)
			t->mapped--;
	}
	return SKUA_CMD_ST_OK;
}

static bool overlap(const struct icm_table *a, const struct icm_table *b)
{
	return a->base < b->base + table_bytes(b->size, b->log_num) &&
	       b->base < a->base + table_bytes(a->size, a->log_num);
}

static int check_layout(const struct skua_cmd_init_device_in *in, struct icm_table *layout)
{
	for (unsigned int i = 0; i < SKUA_ICM_TABLES_MAX; i++) {
		uint64_t base = le64_to_cpu(in->icm[i].base);
		uint32_t log = le32_to_cpu(in->icm[i].log_num);

		if (in->icm[i].reserved)
			return SKUA_CMD_ST_BAD_PARAM;
		if (i >= SKUA_ICM_TABLES) {
			if (base || log)
				return SKUA_CMD_ST_BAD_PARAM;
			continue;
		}
		if (log > icm_kind[i].log_max || base % SKUA_ICM_PAGE_SIZE ||
		    base >> SKUA_ICM_ADDR_BITS ||
		    (base + table_bytes(icm_kind[i].size, log) - 1) >> SKUA_ICM_ADDR_BITS)
			return SKUA_CMD_ST_BAD_PARAM;
		layout[i].base = base;
		layout[i].log_num = log;
		layout[i].size = icm_kind[i].size;
		for (unsigned int k = 0; k < i; k++) {
			if (overlap(&layout[i], &layout[k]))
				return SKUA_CMD_ST_BAD_PARAM;
		}
	}
	return in->reserved ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK;
}

int cmd_init_device(struct skua_dev *dev, struct cmd *cmd)
{
	struct icm_table layout[SKUA_ICM_TABLES];
	struct icm *icm = dev->icm;
	int err = check_layout(cmd->in, layout);

	if (err)
		return err;
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct icm_table *t = &icm->table[i];
		uint64_t num = 1ull << layout[i].log_num;

		t->base = layout[i].base;
		t->log_num = layout[i].log_num;
		/* The MTT holds no objects of its own. */
		if (i == SKUA_ICM_MTT)
			continue;
		t->valid = calloc((num + 63) / 64, sizeof(*t->valid));
		t->refs = calloc(num, sizeof(*t->refs));
		if (!t->valid || !t->refs) {
			forget_layout(dev);
			return SKUA_CMD_ST_INTERNAL;
		}
	}
	icm->laid_out = true;
	for (uint64_t i = 0; i < 1ull << icm->log_room; i++) {
		struct icm_table *t;

		if (!icm->page[i].page)
			continue;
		t = table_of(icm, icm->page[i].page - 1);
		if (t)
			t->mapped++;
	}
	dev->state = DEV_OPERATIONAL;
	return SKUA_CMD_ST_OK;
}

int cmd_teardown_device(struct skua_dev *dev, struct cmd *cmd)
{
	(void)cmd;
	dev->state = DEV_RING;
	forget_layout(dev);
	db_reset(dev);
	timer_reset(dev);
	eq_reset(dev);
	port_reset(dev);
	sched_reset(dev);
	engine_reset(dev);
	dev_quiesce(dev);
	return SKUA_CMD_ST_OK;
}

int cmd_sync_mtt(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_sync_mtt_in *in = cmd->in;
	uint64_t index = le64_to_cpu(in->index);
	uint32_t count = le32_to_cpu(in->count);
	uint64_t num = icm_num(dev, SKUA_ICM_MTT);

	if (in->reserved)
		return SKUA_CMD_ST_BAD_PARAM;
	if (index > num || count > num - index)
		return SKUA_CMD_ST_BAD_INDEX;
	mtt_forget(dev, index, count);
	return SKUA_CMD_ST_OK;
}

int cmd_query_icm_cache(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_icm_cache_out *out = cmd->out;
	const struct mtt_cache *mtt = &dev->icm->mtt;
	const struct icm_table *t;
	uint32_t index;
	int err = cmd_index(cmd, &index);

	if (err)
		return err;
	if (index >= SKUA_ICM_TABLES)
		return SKUA_CMD_ST_BAD_INDEX;
	t = &dev->icm->table[index];
	out->mapped_pages = cpu_to_le64(t->mapped);
	if (index == SKUA_ICM_MTT) {
		out->entries = cpu_to_le32(mtt->num);
		out->used = cpu_to_le32(mtt->used);
		out->hits = cpu_to_le64(mtt->hits);
		out->misses = cpu_to_le64(mtt->misses);
		return SKUA_CMD_ST_OK;
	}
	out->entries = cpu_to_le32(t->cache.num);
	out->used = cpu_to_le32(t->cache.used);
	out->hits = cpu_to_le64(t->cache.hits);
	out->misses = cpu_to_le64(t->cache.misses);
	out->writebacks = cpu_to_le64(t->cache.writebacks);
	return SKUA_CMD_ST_OK;
}
