// SPDX-License-Identifier: GPL-2.0
/*
 * MTT: allocation of ranges of translation entries, in multiples of SKUA_MTT_GROUP.
 */
#include "skua.h"

/* The maple tree stores ranges only; the value must not be NULL. */
#define SKUA_MTT_TAKEN		xa_mk_value(1)

/*
 * The device may read an entry at any time and must not see half of an address. On 32-bit
 * kernels, which need two stores, the half with SKUA_MTT_PRESENT is written last when an
 * entry is set, and first when it is cleared. An entry is cleared before it is set again.
 */
static void skua_mtt_store(__le64 *entry, __le64 val)
{
	__le32 *half = (__le32 *)entry;
	__le32 part[2];

	if (IS_ENABLED(CONFIG_64BIT)) {
		WRITE_ONCE(*entry, val);
		return;
	}
	memcpy(part, &val, sizeof(part));
	if (!val)
		WRITE_ONCE(half[0], part[0]);
	/* Order the clearing of SKUA_MTT_PRESENT before the change of the address. */
	dma_wmb();
	WRITE_ONCE(half[1], part[1]);
	/* Order the address before the setting of SKUA_MTT_PRESENT. */
	dma_wmb();
	WRITE_ONCE(half[0], part[0]);
}

/* Write entries; clear them if @pages is NULL. */
static void skua_mtt_fill(struct skua_dev *dev, u64 index, const dma_addr_t *pages, u32 npages,
			  u64 flags)
{
	u32 i, run;

	while (npages) {
		__le64 *entry = skua_icm_entry(dev, SKUA_ICM_MTT, index, &run);

		run = min(run, npages);
		for (i = 0; i < run; i++)
			skua_mtt_store(&entry[i], pages ? cpu_to_le64(pages[i] | flags) : 0);
		index += run;
		pages = pages ? pages + run : NULL;
		npages -= run;
	}
	/*
	 * The doorbell of the command that makes the entries valid is an MMIO write,
	 * which orders these stores to coherent memory before it.
	 */
}

int skua_mtt_reserve(struct skua_dev *dev, struct skua_mtt *mtt, u64 npages)
{
	u64 groups = dev->limits.max_mtt / SKUA_MTT_GROUP;
	unsigned long group;
	int err;

	/* Commands and MPT entries count pages in 32 bits. */
	if (!npages || npages > min_t(u64, dev->limits.max_mtt, U32_MAX))
		return -EINVAL;
	err = mtree_alloc_range(&dev->mtt, &group, SKUA_MTT_TAKEN,
				DIV_ROUND_UP_ULL(npages, SKUA_MTT_GROUP), 0,
				min_t(u64, groups - 1, ULONG_MAX), GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	mtt->first = (u64)group * SKUA_MTT_GROUP;
	mtt->npages = npages;
	mtt->log_page = 0;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_reserve, "SKUA");

/**
 * skua_mtt_unreserve() - undo skua_mtt_reserve()
 * @dev: the function
 * @mtt: entries that no context has used, none of them backed by memory
 */
void skua_mtt_unreserve(struct skua_dev *dev, const struct skua_mtt *mtt)
{
	mtree_erase(&dev->mtt, mtt->first / SKUA_MTT_GROUP);
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_unreserve, "SKUA");

int skua_mtt_alloc(struct skua_dev *dev, struct skua_mtt *mtt, const dma_addr_t *pages,
		   u64 npages, u8 log_page, bool write)
{
	int err;

	if (log_page >= BITS_PER_LONG_LONG || !(dev->limits.page_sizes & BIT_ULL(log_page)))
		return -EINVAL;
	err = skua_mtt_reserve(dev, mtt, npages);
	if (err)
		return err;
	err = skua_icm_get_range(dev, SKUA_ICM_MTT, mtt->first, npages);
	if (err) {
		skua_mtt_unreserve(dev, mtt);
		return err;
	}
	skua_mtt_fill(dev, mtt->first, pages, npages,
		      SKUA_MTT_PRESENT | (write ? SKUA_MTT_WRITE : 0));
	mtt->log_page = log_page;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_alloc, "SKUA");

/*
 * Invalidate cached translations. On return no access by the previous contents of the
 * entries is in progress. Cannot fail and allocates nothing, so that memory reclaim may
 * wait for it.
 */
static void skua_mtt_sync(struct skua_dev *dev, const struct skua_mtt *mtt, u32 first, u32 count)
{
	struct skua_cmd_sync_mtt_in in = {
		.index = cpu_to_le64(mtt->first + first),
		.count = cpu_to_le32(count),
	};

	if (!skua_dead(dev) && skua_cmd_in(dev, SKUA_CMD_SYNC_MTT, &in) && !skua_dead(dev))
		skua_declare_dead(dev, "SYNC_MTT failed");
}

/**
 * skua_mtt_clear() - clear MTT entries that are in use
 * @dev: the function
 * @mtt: entries that contexts may use
 *
 * On return no access to the pages is in progress, and later ones fail. Cannot fail and
 * allocates nothing, so that memory reclaim may wait for it.
 */
void skua_mtt_clear(struct skua_dev *dev, const struct skua_mtt *mtt)
{
	skua_mtt_fill(dev, mtt->first, NULL, mtt->npages, 0);
	skua_mtt_sync(dev, mtt, 0, mtt->npages);
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_clear, "SKUA");

/**
 * skua_mtt_refill() - write a new page list to entries that no context uses
 * @dev: the function
 * @mtt: the entries
 * @pages: bus addresses, multiples of the page size
 * @npages: number of pages, at most that of the entries. Further entries keep their
 *	contents; the next region must not extend to them.
 * @write: the device may write to the pages
 * @known: the entries were used by a context, so that the device may cache them
 *
 * Only entries that differ are written and invalidated.
 *
 * Return: the number of entries that changed.
 */
u32 skua_mtt_refill(struct skua_dev *dev, const struct skua_mtt *mtt, const dma_addr_t *pages,
		    u32 npages, bool write, bool known)
{
	u64 flags = SKUA_MTT_PRESENT | (write ? SKUA_MTT_WRITE : 0);
	u32 i = 0, run, end, low = 0, high = 0, num = 0;

	while (i < npages) {
		__le64 *entry = skua_icm_entry(dev, SKUA_ICM_MTT, mtt->first + i, &run);

		for (end = i + min(run, npages - i); i < end; i++, entry++) {
			__le64 val = cpu_to_le64(pages[i] | flags);

			if (*entry == val)
				continue;
			*entry = val;
			if (!num++)
				low = i;
			high = i;
		}
	}
	if (num && known)
		skua_mtt_sync(dev, mtt, low, high - low + 1);
	return num;
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_refill, "SKUA");

/**
 * skua_mtt_free() - free MTT entries
 * @dev: the function
 * @mtt: entries that no context uses any more
 *
 * On return the device has no cached copies of the entries, so that both entries and pages
 * can be reused.
 */
void skua_mtt_free(struct skua_dev *dev, struct skua_mtt *mtt)
{
	skua_mtt_sync(dev, mtt, 0, mtt->npages);
	/* Free entries are zero: reserved directories rely on it. */
	skua_mtt_fill(dev, mtt->first, NULL, mtt->npages, 0);
	skua_icm_put_range(dev, SKUA_ICM_MTT, mtt->first, mtt->npages);
	skua_mtt_unreserve(dev, mtt);
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_free, "SKUA");

/* --- entries that change while contexts use them --- */

/**
 * skua_mtt_set() - set an entry to a page
 * @dev: the function
 * @mtt: entries that contexts may use
 * @i: index in @mtt
 * @addr: bus address, a multiple of the page size
 * @write: the device may write to the page
 *
 * No invalidation is needed, because the device reads an entry again before it reports a
 * page fault. Clearing an entry needs one (skua_mtt_zap()).
 *
 * Return: true if the entry had no page before.
 */
bool skua_mtt_set(struct skua_dev *dev, const struct skua_mtt *mtt, u32 i, dma_addr_t addr,
		  bool write)
{
	u64 val = addr | SKUA_MTT_PRESENT | (write ? SKUA_MTT_WRITE : 0);
	u32 run;
	__le64 *entry = skua_icm_entry(dev, SKUA_ICM_MTT, mtt->first + i, &run);
	bool fresh = !*entry;

	skua_mtt_store(entry, cpu_to_le64(val));
	return fresh;
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_set, "SKUA");

/**
 * skua_mtt_zap() - clear those of a range of entries that have a page
 * @dev: the function
 * @mtt: entries that contexts may use
 * @first: first index in @mtt
 * @count: number of entries
 *
 * On return no access to the pages is in progress, and later ones fault. Cannot fail and
 * allocates nothing, so that memory reclaim may wait for it. Issues no command if no entry
 * had a page.
 *
 * Return: the number of pages removed.
 */
u32 skua_mtt_zap(struct skua_dev *dev, const struct skua_mtt *mtt, u32 first, u32 count)
{
	u32 i, run, low = 0, high = 0, num = 0, end = first + count;

	while (first < end) {
		__le64 *entry = skua_icm_entry(dev, SKUA_ICM_MTT, mtt->first + first, &run);

		run = min(run, end - first);
		for (i = 0; i < run; i++) {
			if (!entry[i])
				continue;
			skua_mtt_store(&entry[i], 0);
			if (!num++)
				low = first + i;
			high = first + i;
		}
		first += run;
	}
	if (num)
		skua_mtt_sync(dev, mtt, low, high - low + 1);
	return num;
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_zap, "SKUA");

/**
 * skua_mtt_dir_set() - add the page list of a block to a directory
 * @dev: the function
 * @dir: the directory, from skua_mtt_reserve()
 * @i: index of the block
 * @block: its page list
 *
 * Return: 0 or a negative errno.
 */
int skua_mtt_dir_set(struct skua_dev *dev, const struct skua_mtt *dir, u32 i,
		     const struct skua_mtt *block)
{
	__le64 *entry;
	u32 run;
	int err;

	/* A part of the directory is backed with memory while it has a block. */
	err = skua_icm_get(dev, SKUA_ICM_MTT, dir->first + i);
	if (err)
		return err;
	entry = skua_icm_entry(dev, SKUA_ICM_MTT, dir->first + i, &run);
	/* Order the initialization of the page list before the entry that refers to it. */
	dma_wmb();
	skua_mtt_store(entry, le64_encode_bits(block->first, SKUA_MTT_LIST) |
			      cpu_to_le64(SKUA_MTT_PRESENT));
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_dir_set, "SKUA");

/**
 * skua_mtt_dir_clear() - remove the page list of a block from a directory
 * @dev: the function
 * @dir: the directory
 * @i: index of the block
 *
 * On return no access by the list is in progress, and it may be freed.
 */
void skua_mtt_dir_clear(struct skua_dev *dev, const struct skua_mtt *dir, u32 i)
{
	skua_mtt_zap(dev, dir, i, 1);
	skua_icm_put(dev, SKUA_ICM_MTT, dir->first + i);
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_dir_clear, "SKUA");

/**
 * skua_mtt_dir_free() - free a directory
 * @dev: the function
 * @dir: the directory, without blocks, which no context uses any more
 *
 * Also invalidates cached copies of its empty entries.
 */
void skua_mtt_dir_free(struct skua_dev *dev, const struct skua_mtt *dir)
{
	skua_mtt_sync(dev, dir, 0, dir->npages);
	skua_mtt_unreserve(dev, dir);
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_dir_free, "SKUA");
