// SPDX-License-Identifier: GPL-2.0
/*
 * ICM: the device's contexts and translation tables in host memory.
 *
 * Memory is mapped in chunks: when the first entry of a chunk is used, until the last one
 * is freed. Mapped memory belongs to the device; the driver writes MTT entries only.
 */
#include <kunit/visibility.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "skua.h"

static const char * const skua_icm_names[] = {
#define X(_name, _number, _size, _text)					\
	[SKUA_ICM_##_name] = #_name,
	SKUA_ICM_TABLE(X)
#undef X
};

/**
 * skua_icm_name() - name of a table
 * @id: its number
 *
 * Return: the name, or NULL for a table that is not known here.
 */
const char *skua_icm_name(unsigned int id)
{
	return id < ARRAY_SIZE(skua_icm_names) ? skua_icm_names[id] : NULL;
}

static void skua_icm_chunk_free(struct skua_dev *dev, struct skua_icm_chunk *chunk)
{
	u32 i;

	for (i = 0; i < chunk->num_runs; i++)
		skua_buf_free(dev, &chunk->run[i]);
	kfree(chunk);
}

/*
 * One contiguous piece if possible, else smaller ones. Charged to the process that uses the
 * first entry of the chunk.
 */
static struct skua_icm_chunk *skua_icm_chunk_alloc(struct skua_dev *dev, u32 size)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT;
	struct skua_icm_chunk *chunk;
	u32 run = size, left = size;

	chunk = kzalloc(struct_size(chunk, run, SKUA_ICM_CHUNK_RUNS), gfp);
	if (!chunk)
		return NULL;
	while (left) {
		struct skua_buf buf;

		if (!skua_buf_try(dev, &buf, run, run > SKUA_ICM_PAGE_SIZE ?
						  gfp | __GFP_NOWARN | __GFP_NORETRY : gfp)) {
			chunk->num_runs++;
			chunk->run[chunk->num_runs - 1] = buf;
			left -= run;
		} else if (run > SKUA_ICM_PAGE_SIZE) {
			run /= 2;
		} else {
			skua_icm_chunk_free(dev, chunk);
			return NULL;
		}
	}
	return chunk;
}

static int skua_icm_chunk_map(struct skua_dev *dev, const struct skua_icm_tbl *t,
			      const struct skua_icm_chunk *chunk, u64 index)
{
	DEFINE_RAW_FLEX(struct skua_cmd_map_icm_in, in, page, SKUA_ICM_CHUNK_RUNS);
	u32 i;

	in->addr = cpu_to_le64(t->base + index * t->chunk_size);
	in->count = cpu_to_le32(chunk->num_runs);
	for (i = 0; i < chunk->num_runs; i++)
		in->page[i] = cpu_to_le64(chunk->run[i].dma) |
			      le64_encode_bits(ilog2(chunk->run[i].size) - SKUA_ICM_PAGE_SHIFT,
					       SKUA_MAP_ICM_LOG_PAGES);
	return skua_cmd_exec(dev, SKUA_CMD_MAP_ICM, in,
			     struct_size(in, page, chunk->num_runs), NULL, 0);
}

static int skua_icm_chunk_unmap(struct skua_dev *dev, const struct skua_icm_tbl *t, u64 index)
{
	struct skua_cmd_unmap_icm_in in = {
		.addr = cpu_to_le64(t->base + index * t->chunk_size),
		.npages = cpu_to_le32(t->chunk_size >> SKUA_ICM_PAGE_SHIFT),
	};

	return skua_cmd_in(dev, SKUA_CMD_UNMAP_ICM, &in);
}

static int skua_icm_chunk_new(struct skua_dev *dev, struct skua_icm_tbl *t, u64 index)
{
	struct skua_icm_chunk *chunk;
	int err;

	lockdep_assert_held(&t->lock);
	chunk = skua_icm_chunk_alloc(dev, t->chunk_size);
	if (!chunk)
		return -ENOMEM;
	chunk->refs = 1;
	err = xa_insert(&t->chunks, index, chunk, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_free;
	err = skua_icm_chunk_map(dev, t, chunk, index);
	if (err)
		goto err_erase;
	t->pages += t->chunk_size >> SKUA_ICM_PAGE_SHIFT;
	return 0;

err_erase:
	/*
	 * Either the device has failed the command without effect, or it was declared
	 * dead and does no DMA: the memory can be freed.
	 */
	xa_erase(&t->chunks, index);
err_free:
	skua_icm_chunk_free(dev, chunk);
	return err;
}

static int skua_icm_chunk_get(struct skua_dev *dev, struct skua_icm_tbl *t, u64 index)
{
	struct skua_icm_chunk *chunk;

	guard(mutex)(&t->lock);
	chunk = xa_load(&t->chunks, index);
	if (!chunk)
		return skua_icm_chunk_new(dev, t, index);
	if (!chunk->refs)
		t->kept--;
	chunk->refs++;
	return 0;
}

/* Unmap a chunk and free it. What cannot be unmapped is still owned by the device, and stays. */
static int skua_icm_chunk_drop(struct skua_dev *dev, struct skua_icm_tbl *t,
			       struct skua_icm_chunk *chunk, u64 index)
{
	int err;

	lockdep_assert_held(&t->lock);
	err = skua_icm_chunk_unmap(dev, t, index);
	if (err && !skua_dead(dev))
		return err;
	xa_erase(&t->chunks, index);
	t->pages -= t->chunk_size >> SKUA_ICM_PAGE_SHIFT;
	skua_icm_chunk_free(dev, chunk);
	return 0;
}

/* Once more for those that could not be unmapped: some tables' indices are random. */
static void skua_icm_drop_kept(struct skua_dev *dev, struct skua_icm_tbl *t)
{
	struct skua_icm_chunk *chunk;
	unsigned long index;

	xa_for_each(&t->chunks, index, chunk) {
		if (chunk->refs)
			continue;
		if (skua_icm_chunk_drop(dev, t, chunk, index))
			return;
		if (!--t->kept)
			return;
	}
}

static void skua_icm_chunk_put(struct skua_dev *dev, struct skua_icm_tbl *t, u64 index)
{
	struct skua_icm_chunk *chunk;
	int err;

	guard(mutex)(&t->lock);
	chunk = xa_load(&t->chunks, index);
	if (WARN_ON_ONCE(!chunk || !chunk->refs) || --chunk->refs)
		return;

	err = skua_icm_chunk_drop(dev, t, chunk, index);
	if (err) {
		/* Used again, unmapped when the next one is, or freed with the table. */
		t->kept++;
		dev_err_ratelimited(dev->dev, "UNMAP_ICM of %u bytes at %#llx failed: %pe\n",
				    t->chunk_size, t->base + index * t->chunk_size, ERR_PTR(err));
	} else if (t->kept) {
		skua_icm_drop_kept(dev, t);
	}
}

static u64 skua_icm_chunk_of(const struct skua_icm_tbl *t, u64 index)
{
	return index * t->entry_size >> ilog2(t->chunk_size);
}

/**
 * skua_icm_get_range() - back entries with memory
 * @dev: the function
 * @id: table
 * @first: first entry
 * @count: entries, at least one
 *
 * Return: 0, -EINVAL if the entries are not in the table, -ENOMEM, or as
 * skua_cmd_exec().
 */
int skua_icm_get_range(struct skua_dev *dev, enum skua_icm_table id, u64 first, u64 count)
{
	struct skua_icm_tbl *t = &dev->icm[id];
	u64 i, begin, end, num = 1ULL << t->log_num;
	int err;

	if (!t->entry_size || !count || first >= num || count > num - first)
		return -EINVAL;
	begin = skua_icm_chunk_of(t, first);
	end = skua_icm_chunk_of(t, first + count - 1);
	for (i = begin; i <= end; i++) {
		err = skua_icm_chunk_get(dev, t, i);
		if (err) {
			while (i-- > begin)
				skua_icm_chunk_put(dev, t, i);
			return err;
		}
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_icm_get_range);

/**
 * skua_icm_put_range() - release entries
 * @dev: the function
 * @id: table
 * @first: first entry
 * @count: entries, the same as for skua_icm_get_range()
 */
void skua_icm_put_range(struct skua_dev *dev, enum skua_icm_table id, u64 first, u64 count)
{
	struct skua_icm_tbl *t = &dev->icm[id];
	u64 i, end = skua_icm_chunk_of(t, first + count - 1);

	for (i = skua_icm_chunk_of(t, first); i <= end; i++)
		skua_icm_chunk_put(dev, t, i);
}
EXPORT_SYMBOL_IF_KUNIT(skua_icm_put_range);

/**
 * skua_icm_get() - back an entry with memory
 * @dev: the function
 * @id: table
 * @index: entry
 *
 * Return: as skua_icm_get_range().
 */
int skua_icm_get(struct skua_dev *dev, enum skua_icm_table id, u64 index)
{
	return skua_icm_get_range(dev, id, index, 1);
}
EXPORT_SYMBOL_IF_KUNIT(skua_icm_get);

/**
 * skua_icm_put() - release an entry
 * @dev: the function
 * @id: table
 * @index: entry
 */
void skua_icm_put(struct skua_dev *dev, enum skua_icm_table id, u64 index)
{
	skua_icm_put_range(dev, id, index, 1);
}
EXPORT_SYMBOL_IF_KUNIT(skua_icm_put);

/**
 * skua_icm_entry() - CPU address of an MTT entry
 * @dev: the function
 * @id: table
 * @index: entry, on which the caller holds a reference, so that the chunk stays
 * @run: entries from there on that follow each other in memory
 *
 * Return: the address.
 */
void *skua_icm_entry(struct skua_dev *dev, enum skua_icm_table id, u64 index, u32 *run)
{
	struct skua_icm_tbl *t = &dev->icm[id];
	struct skua_icm_chunk *chunk = xa_load(&t->chunks, skua_icm_chunk_of(t, index));
	u32 i, offset = index * t->entry_size & (t->chunk_size - 1);

	if (WARN_ON_ONCE(!chunk))
		return NULL;
	for (i = 0; i < chunk->num_runs; i++) {
		if (offset < chunk->run[i].size) {
			*run = (chunk->run[i].size - offset) / t->entry_size;
			return chunk->run[i].va + offset;
		}
		offset -= chunk->run[i].size;
	}
	return NULL;
}
EXPORT_SYMBOL_IF_KUNIT(skua_icm_entry);

/**
 * skua_icm_table_init() - initialize an empty table
 * @t: the table
 * @base: its first ICM address
 * @entry_size: bytes of an entry, a power of two
 * @log_num: log2 of its entries
 */
void skua_icm_table_init(struct skua_icm_tbl *t, u64 base, u32 entry_size, u8 log_num)
{
	t->base = base;
	t->entry_size = entry_size;
	t->log_num = log_num;
	t->chunk_size = clamp((u64)entry_size << log_num, (u64)SKUA_ICM_PAGE_SIZE,
			      (u64)SKUA_ICM_CHUNK_SIZE);
	t->pages = 0;
	t->kept = 0;
	mutex_init(&t->lock);
	xa_init_flags(&t->chunks, XA_FLAGS_ACCOUNT);
}
EXPORT_SYMBOL_IF_KUNIT(skua_icm_table_init);

/**
 * skua_icm_table_exit() - free the chunks of a table
 * @dev: the function, which has been reset or does no more DMA
 * @t: the table
 */
void skua_icm_table_exit(struct skua_dev *dev, struct skua_icm_tbl *t)
{
	struct skua_icm_chunk *chunk;
	unsigned long index;

	if (!t->entry_size)
		return;
	xa_for_each(&t->chunks, index, chunk) {
		/* Chunks that could not be unmapped have no references left. */
		WARN_ON_ONCE(chunk->refs);
		skua_icm_chunk_free(dev, chunk);
	}
	xa_destroy(&t->chunks);
	mutex_destroy(&t->lock);
	t->entry_size = 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_icm_table_exit);
