// SPDX-License-Identifier: GPL-2.0
/*
 * ICM: the device's address space in host memory: the mapping of its pages (MAP_ICM,
 * UNMAP_ICM), the position of the tables (INIT_DEVICE), and which entries are objects.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "icm.h"

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
	[SKUA_ICM_LRC]	= { SKUA_ICM_LRC_SIZE, MODEL_LOG_QP },
};

static uint64_t table_bytes(uint32_t size, uint8_t log_num)
{
	uint64_t bytes = (uint64_t)size << log_num;

	return (bytes + SKUA_ICM_PAGE_SIZE - 1) & ~(uint64_t)(SKUA_ICM_PAGE_SIZE - 1);
}

/* --- mapped pages --- */

static unsigned int slot_of(uint64_t page, unsigned int level)
{
	return page >> ICM_NODE_BITS * level & (ICM_NODE_SLOTS - 1);
}

/* The node of the lowest level that a page belongs to, or NULL. */
static struct icm_node *leaf_of(const struct icm *icm, uint64_t page)
{
	struct icm_node *node = icm->root;

	for (unsigned int level = ICM_LEVELS - 1; node && level; level--)
		node = node->child[slot_of(page, level)];
	return node;
}

static uint64_t page_addr(const struct icm *icm, uint64_t page)
{
	const struct icm_node *leaf = leaf_of(icm, page);

	return leaf ? leaf->addr[slot_of(page, 0)] : 0;
}

static struct icm_node *node_new(struct icm *icm)
{
	struct icm_node *node = NULL;

	if (icm->nodes < ICM_NODES_MAX)
		node = calloc(1, sizeof(*node));
	if (node)
		icm->nodes++;
	return node;
}

static struct icm_node *leaf_make(struct icm *icm, uint64_t page)
{
	struct icm_node **link = &icm->root, *up = NULL;

	for (unsigned int level = ICM_LEVELS; ; ) {
		if (!*link) {
			*link = node_new(icm);
			if (!*link)
				return NULL;
			if (up)
				up->used++;
		}
		if (!--level)
			return *link;
		up = *link;
		link = &up->child[slot_of(page, level)];
	}
}

/* Free the empty nodes on the path to a page. */
static void prune(struct icm *icm, uint64_t page)
{
	struct icm_node **way[ICM_LEVELS];
	unsigned int n = 0;

	way[0] = &icm->root;
	while (*way[n] && n + 1 < ICM_LEVELS) {
		way[n + 1] = &(*way[n])->child[slot_of(page, ICM_LEVELS - 1 - n)];
		n++;
	}
	for (n++; n--; ) {
		if (!*way[n])
			continue;
		if ((*way[n])->used)
			return;
		free(*way[n]);
		*way[n] = NULL;
		icm->nodes--;
		if (n)
			(*way[n - 1])->used--;
	}
}

static void free_tree(struct icm *icm, struct icm_node *node, unsigned int level)
{
	if (!node)
		return;
	for (unsigned int i = 0; level && i < ICM_NODE_SLOTS; i++)
		free_tree(icm, node->child[i], level - 1);
	free(node);
	icm->nodes--;
}

/* Number of pages, at most @left, from @page on that are in one leaf. */
static uint64_t leaf_piece(uint64_t page, uint64_t left)
{
	uint64_t n = ICM_NODE_SLOTS - slot_of(page, 0);

	return n < left ? n : left;
}

/* Call @fn for each leaf of a range (NULL: no leaf) until it returns false. */
static bool each_leaf(struct icm *icm, uint64_t page, uint64_t num,
		      bool (*fn)(struct icm *icm, struct icm_node *leaf, uint64_t page,
				 uint64_t num))
{
	for (uint64_t n; num; page += n, num -= n) {
		n = leaf_piece(page, num);
		if (!fn(icm, leaf_of(icm, page), page, n))
			return false;
	}
	return true;
}

static bool none_mapped(struct icm *icm, struct icm_node *leaf, uint64_t page, uint64_t num)
{
	uint64_t any = 0;

	(void)icm;
	for (uint64_t i = 0; leaf && i < num; i++)
		any |= leaf->addr[slot_of(page, 0) + i];
	return !any;
}

static bool all_mapped(struct icm *icm, struct icm_node *leaf, uint64_t page, uint64_t num)
{
	uint64_t all = 1;

	(void)icm;
	for (uint64_t i = 0; leaf && i < num; i++)
		all &= leaf->addr[slot_of(page, 0) + i];
	return leaf && all;
}

static bool make_leaf(struct icm *icm, struct icm_node *leaf, uint64_t page, uint64_t num)
{
	(void)num;
	return leaf || leaf_make(icm, page);
}

static bool prune_leaf(struct icm *icm, struct icm_node *leaf, uint64_t page, uint64_t num)
{
	(void)leaf;
	(void)num;
	prune(icm, page);
	return true;
}

static bool drop_leaf(struct icm *icm, struct icm_node *leaf, uint64_t page, uint64_t num)
{
	memset(&leaf->addr[slot_of(page, 0)], 0, num * sizeof(leaf->addr[0]));
	leaf->used -= num;
	icm->mapped -= num;
	if (!leaf->used)
		prune(icm, page);
	return true;
}

/* Map a run of pages; none of them is mapped, and their leaves exist. */
static void put_pages(struct icm *icm, uint64_t page, uint64_t num, uint64_t bus)
{
	for (uint64_t n; num; page += n, num -= n) {
		struct icm_node *leaf = leaf_of(icm, page);

		n = leaf_piece(page, num);
		for (uint64_t i = 0; i < n; i++, bus += SKUA_ICM_PAGE_SIZE)
			leaf->addr[slot_of(page, 0) + i] = bus | 1;
		leaf->used += n;
		icm->mapped += n;
	}
}

/* The part of a range of pages that is in a table. False: no part of it. */
static bool in_table(const struct icm_table *t, uint64_t page, uint64_t num, uint64_t *from,
		     uint64_t *to)
{
	uint64_t first = t->base >> SKUA_ICM_PAGE_SHIFT;
	uint64_t end = first + (table_bytes(t->size, t->log_num) >> SKUA_ICM_PAGE_SHIFT);

	*from = page > first ? page : first;
	*to = page + num < end ? page + num : end;
	return *from < *to;
}

/* After pages were mapped or unmapped: update the number of mapped pages of each table. */
static void count_mapped(struct icm *icm, uint64_t page, uint64_t num, int sign)
{
	uint64_t from, to;

	for (unsigned int i = 0; icm->laid_out && i < SKUA_ICM_TABLES; i++) {
		if (in_table(&icm->table[i], page, num, &from, &to))
			icm->table[i].mapped += sign * (int64_t)(to - from);
	}
}

/* INIT_DEVICE has set the tables' ranges: count the pages mapped before. */
static void count_all(struct icm *icm, const struct icm_node *node, unsigned int level,
		      uint64_t page)
{
	uint64_t from, to;

	for (unsigned int i = 0; node && level && i < ICM_NODE_SLOTS; i++)
		count_all(icm, node->child[i], level - 1,
			  page + ((uint64_t)i << ICM_NODE_BITS * level));
	if (!node || level)
		return;
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		if (!in_table(&icm->table[i], page, ICM_NODE_SLOTS, &from, &to))
			continue;
		for (; from < to; from++)
			icm->table[i].mapped += node->addr[slot_of(from, 0)] & 1;
	}
}

bool icm_translate(const struct icm *icm, uint64_t addr, uint64_t *bus)
{
	uint64_t page = page_addr(icm, addr >> SKUA_ICM_PAGE_SHIFT);

	if (!page)
		return false;
	*bus = (page & ~1ull) + (addr & (SKUA_ICM_PAGE_SIZE - 1));
	return true;
}

/* --- life --- */

int icm_init(struct skua_dev *dev)
{
	struct icm *icm = calloc(1, sizeof(*icm));

	if (!icm)
		return -ENOMEM;
	dev->icm = icm;
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		icm->table[i].size = icm_kind[i].size;
		icm->limit += table_bytes(icm_kind[i].size, icm_log_max(dev, i)) >>
			      SKUA_ICM_PAGE_SHIFT;
	}
	return cache_init(dev);
}

/* TEARDOWN_DEVICE: remove tables and objects; the pages remain mapped. */
static void forget_layout(struct skua_dev *dev)
{
	struct icm *icm = dev->icm;

	cache_reset(dev);
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		struct icm_table *t = &icm->table[i];

		free(t->valid);
		free(t->refs);
		t->valid = NULL;
		t->objects = 0;
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
	free_tree(icm, icm->root, ICM_LEVELS - 1);
	icm->root = NULL;
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
	free_tree(dev->icm, dev->icm->root, ICM_LEVELS - 1);
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

	if (valid != !!(*word & bit))
		dev->icm->table[table].objects += valid ? 1 : -1;
	*word = valid ? *word | bit : *word & ~bit;
	dev->icm->table[table].refs[index] = 0;
}

/* Allocate a bit for each entry, and a reference count in tables whose entries others name. */
struct onchip obj_onchip(const struct skua_dev *dev)
{
	static const uint8_t named[SKUA_ICM_TABLES] = {
		[SKUA_ICM_SQC] = 1, [SKUA_ICM_SRQC] = 1, [SKUA_ICM_CQC] = 1,
		[SKUA_ICM_EQC] = 1, [SKUA_ICM_RSS] = 1, [SKUA_ICM_CNT] = 1,
	};
	struct onchip use = { 0 };

	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		uint64_t num = dev->icm->table[i].objects;

		use.num += num;
		use.bytes += (num + 7) / 8 + named[i] * num * sizeof(uint32_t);
	}
	return use;
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
			/* Scan the bitmap by words: a table may be large and have few objects. */
			if (n % 64 == 0 && !t->valid[n / 64])
				n += 63;
			else if (t->valid[n / 64] >> n % 64 & 1)
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
	if (!each_leaf(icm, page, pages, none_mapped))
		return SKUA_CMD_ST_BUSY;
	if (!each_leaf(icm, page, pages, make_leaf)) {
		each_leaf(icm, page, pages, prune_leaf);
		return SKUA_CMD_ST_LIMIT;
	}
	count_mapped(icm, page, pages, 1);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t word = le64_to_cpu(in->page[i]);
		uint64_t num = 1ull << (word & SKUA_MAP_ICM_LOG_PAGES);

		put_pages(icm, page, num, word & SKUA_MAP_ICM_ADDR);
		page += num;
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
	if (!each_leaf(icm, page, npages, all_mapped))
		return SKUA_CMD_ST_BAD_INDEX;
	if (objects_in(dev, addr, (uint64_t)npages << SKUA_ICM_PAGE_SHIFT))
		return SKUA_CMD_ST_BUSY;
	cache_evict_range(dev, addr, (uint64_t)npages << SKUA_ICM_PAGE_SHIFT);
	each_leaf(icm, page, npages, drop_leaf);
	count_mapped(icm, page, npages, -1);
	return SKUA_CMD_ST_OK;
}

static bool overlap(const struct icm_table *a, const struct icm_table *b)
{
	return a->base < b->base + table_bytes(b->size, b->log_num) &&
	       b->base < a->base + table_bytes(a->size, a->log_num);
}

static int check_layout(const struct skua_dev *dev, const struct skua_cmd_init_device_in *in,
			struct icm_table *layout)
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
		if (log > icm_log_max(dev, i) || base % SKUA_ICM_PAGE_SIZE ||
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
	int err = check_layout(dev, cmd->in, layout);

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
	count_all(icm, icm->root, ICM_LEVELS - 1, 0);
	dev->state = DEV_OPERATIONAL;
	return SKUA_CMD_ST_OK;
}

int cmd_teardown_device(struct skua_dev *dev, struct cmd *cmd)
{
	(void)cmd;
	dev->state = DEV_RING;
	forget_layout(dev);
#define X(part) part##_reset(dev);
	MODEL_PARTS_OPERATIONAL(X)
#undef X
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
		out->used = cpu_to_le32(mtt->used);
		out->sectors = cpu_to_le32(mtt->used);
		out->hits = cpu_to_le64(mtt->hits);
		out->misses = cpu_to_le64(mtt->misses);
		return SKUA_CMD_ST_OK;
	}
	out->used = cpu_to_le32(t->cache.used);
	out->sectors = cpu_to_le32(t->cache.sectors);
	out->hits = cpu_to_le64(t->cache.hits);
	out->misses = cpu_to_le64(t->cache.misses);
	out->writebacks = cpu_to_le64(t->cache.writebacks);
	return SKUA_CMD_ST_OK;
}
