// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: BAR 4, allocated in pages, because it is mapped to user space.
 */
#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/pci-p2pdma.h>

#include "skua.h"

/**
 * skua_dm_alloc() - allocate device memory
 * @dev: the function
 * @dm: filled in
 * @size: bytes, not zero; rounded up to pages
 * @log_align: log2 of the alignment of its offset
 *
 * The memory reads as zero.
 *
 * Return: 0, -EOPNOTSUPP without device memory, -ENOMEM or -EIO.
 */
int skua_dm_alloc(struct skua_dev *dev, struct skua_dm *dm, u64 size, u32 log_align)
{
	phys_addr_t base = pci_resource_start(dev->pdev, SKUA_BAR_DM);
	unsigned long pages, align, first;

	if (!dev->dm_pages)
		return -EOPNOTSUPP;
	if (skua_dead(dev))
		return -EIO;
	if (size > dev->limits.dm_size || log_align >= BITS_PER_TYPE(dev->limits.dm_size))
		return -ENOMEM;
	pages = DIV_ROUND_UP(size, PAGE_SIZE);
	align = max(BIT(log_align) >> PAGE_SHIFT, 1UL);

	scoped_guard(mutex, &dev->dm_lock) {
		first = bitmap_find_next_zero_area(dev->dm_used, dev->dm_pages, 0, pages,
						   align - 1);
		if (first >= dev->dm_pages)
			return -ENOMEM;
		bitmap_set(dev->dm_used, first, pages);
	}
	dm->offset = first << PAGE_SHIFT;
	dm->size = pages << PAGE_SHIFT;
	dm->pfn = PHYS_PFN(base) + first;
	/* Do not leak the data of the previous owner. */
	memset_io(dev->dm_map + dm->offset, 0, dm->size);
	/* Flush the write-combining buffers before the owner writes by another mapping. */
	wmb();
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_dm_alloc, "SKUA");

/**
 * skua_dm_free() - free device memory
 * @dev: the function
 * @dm: memory from skua_dm_alloc(), neither mapped nor used by a region
 */
void skua_dm_free(struct skua_dev *dev, const struct skua_dm *dm)
{
	guard(mutex)(&dev->dm_lock);
	bitmap_clear(dev->dm_used, dm->offset >> PAGE_SHIFT, dm->size >> PAGE_SHIFT);
}
EXPORT_SYMBOL_NS_GPL(skua_dm_free, "SKUA");

#ifndef SKUA_COMPAT_MMAP_PFNS
/* Peer-to-peer DMA is optional: kernels without support return -EOPNOTSUPP. */
static int skua_dm_init_p2p(struct skua_dev *dev)
{
	int err = pcim_p2pdma_init(dev->pdev);

	if (err)
		return err == -EOPNOTSUPP ? 0 : err;
	dev->dm_provider = pcim_p2pdma_provider(dev->pdev, SKUA_BAR_DM);
	return 0;
}

/**
 * skua_dm_provider() - get the peer-to-peer DMA provider of the device memory
 * @dev: the function
 *
 * It is valid until the driver is unbound. Exported dma-bufs are revoked before that.
 *
 * Return: the provider, or NULL without support for peer-to-peer DMA.
 */
struct p2pdma_provider *skua_dm_provider(const struct skua_dev *dev)
{
	return dev->dm_provider;
}
EXPORT_SYMBOL_NS_GPL(skua_dm_provider, "SKUA");
#else
static int skua_dm_init_p2p(struct skua_dev *dev)
{
	return 0;
}
#endif

/**
 * skua_dm_init() - initialize the allocator of device memory
 * @dev: the function, whose limits are known
 *
 * Return: 0, also if there is none, or a negative errno.
 */
int skua_dm_init(struct skua_dev *dev)
{
	u64 size = min_t(u64, dev->limits.dm_size, pci_resource_len(dev->pdev, SKUA_BAR_DM));
	unsigned long pages = size >> PAGE_SHIFT;
	int err;

	dev->limits.dm_size = pages << PAGE_SHIFT;
	if (!pages)
		return 0;
	dev->dm_used = bitmap_zalloc(pages, GFP_KERNEL);
	if (!dev->dm_used)
		return -ENOMEM;
	dev->dm_map = ioremap_wc(pci_resource_start(dev->pdev, SKUA_BAR_DM), size);
	if (!dev->dm_map) {
		err = -ENOMEM;
		goto err_used;
	}
	err = skua_dm_init_p2p(dev);
	if (err)
		goto err_map;
	dev->dm_pages = pages;
	return 0;

err_map:
	iounmap(dev->dm_map);
err_used:
	bitmap_free(dev->dm_used);
	return err;
}

/**
 * skua_dm_exit() - undo skua_dm_init()
 * @dev: the function
 */
void skua_dm_exit(struct skua_dev *dev)
{
	if (!dev->dm_pages)
		return;
	WARN_ON_ONCE(!bitmap_empty(dev->dm_used, dev->dm_pages));
	iounmap(dev->dm_map);
	bitmap_free(dev->dm_used);
	dev->dm_pages = 0;
}
