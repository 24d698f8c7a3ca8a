// SPDX-License-Identifier: GPL-2.0
/*
 * MTT: runs of translation entries, given out in whole groups.
 */
#include "skua.h"

/* Any value that is not NULL: the tree keeps the ranges. */
#define SKUA_MTT_TAKEN		xa_mk_value(1)

/* Without @pages the entries become empty. */
static void skua_mtt_fill(struct skua_dev *dev, u64 index, const dma_addr_t *pages, u32 npages,
			  u64 flags)
{
	u32 i, run;

	while (npages) {
		__le64 *entry = skua_icm_entry(dev, SKUA_ICM_MTT, index, &run);

		run = min(run, npages);
		for (i = 0; i < run; i++)
			entry[i] = pages ? cpu_to_le64(pages[i] | flags) : 0;
		index += run;
		pages = pages ? pages + run : NULL;
		npages -= run;
	}
	/*
	 * The command that makes the entries known to the device is rung by an
	 * MMIO write, which orders these stores to coherent memory before it.
	 */
}

int skua_mtt_alloc(struct skua_dev *dev, struct skua_mtt *mtt, const dma_addr_t *pages,
		   u32 npages, u8 log_page, bool write)
{
	u64 groups = dev->limits.max_mtt / SKUA_MTT_GROUP;
	unsigned long group;
	u64 first;
	int err;

	if (!npages || npages > dev->limits.max_mtt || log_page >= BITS_PER_LONG_LONG ||
	    !(dev->limits.page_sizes & BIT_ULL(log_page)))
		return -EINVAL;
	err = mtree_alloc_range(&dev->mtt, &group, SKUA_MTT_TAKEN,
				DIV_ROUND_UP(npages, SKUA_MTT_GROUP), 0,
				min_t(u64, groups - 1, ULONG_MAX), GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	first = (u64)group * SKUA_MTT_GROUP;
	err = skua_icm_get_range(dev, SKUA_ICM_MTT, first, npages);
	if (err) {
		mtree_erase(&dev->mtt, group);
		return err;
	}
	skua_mtt_fill(dev, first, pages, npages,
		      SKUA_MTT_PRESENT | (write ? SKUA_MTT_WRITE : 0));
	mtt->first = first;
	mtt->npages = npages;
	mtt->log_page = log_page;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_alloc, "SKUA");

static void skua_mtt_sync(struct skua_dev *dev, const struct skua_mtt *mtt)
{
	struct skua_cmd_sync_mtt_in in = {
		.index = cpu_to_le64(mtt->first),
		.count = cpu_to_le32(mtt->npages),
	};

	if (!skua_dead(dev) && skua_cmd_in(dev, SKUA_CMD_SYNC_MTT, &in) && !skua_dead(dev))
		skua_declare_dead(dev, "cached translations could not be dropped");
}

/**
 * skua_mtt_clear() - take the pages out of MTT entries
 * @dev: the function
 * @mtt: entries that contexts may use
 *
 * On return no access to the pages is under way, and those to come fail. Does not
 * fail and allocates nothing, so that memory reclaim may wait for it.
 */
void skua_mtt_clear(struct skua_dev *dev, const struct skua_mtt *mtt)
{
	skua_mtt_fill(dev, mtt->first, NULL, mtt->npages, 0);
	skua_mtt_sync(dev, mtt);
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_clear, "SKUA");

/**
 * skua_mtt_free() - free MTT entries
 * @dev: the function
 * @mtt: entries that no context uses any more
 *
 * On return the device has forgotten the translations: neither the entries' next
 * owner nor that of the pages need fear an access through a cached one.
 */
void skua_mtt_free(struct skua_dev *dev, struct skua_mtt *mtt)
{
	skua_mtt_sync(dev, mtt);
	skua_icm_put_range(dev, SKUA_ICM_MTT, mtt->first, mtt->npages);
	mtree_erase(&dev->mtt, mtt->first / SKUA_MTT_GROUP);
}
EXPORT_SYMBOL_NS_GPL(skua_mtt_free, "SKUA");
