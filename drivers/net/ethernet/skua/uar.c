// SPDX-License-Identifier: GPL-2.0
/*
 * UAR pages: doorbell pages of BAR 2. Each belongs to one context or to the kernel.
 */
#include <linux/io.h>

#include "skua.h"

/**
 * skua_uar_alloc() - allocate a UAR page
 * @dev: the function
 * @uar: filled in
 * @map: map it into the kernel too
 *
 * Return: 0, -ENOSPC or -ENOMEM.
 */
int skua_uar_alloc(struct skua_dev *dev, struct skua_uar *uar, bool map)
{
	phys_addr_t base = pci_resource_start(dev->pdev, SKUA_BAR_UAR);
	int index;

	index = ida_alloc_max(&dev->uars, dev->limits.max_uar - 1, GFP_KERNEL_ACCOUNT);
	if (index < 0)
		return index;
	uar->index = index;
	uar->pfn = PHYS_PFN(base) + index;
	uar->map = NULL;
	if (!map)
		return 0;
	/* Not write-combined: doorbell stores must reach the device immediately. */
	uar->map = ioremap(base + (phys_addr_t)index * PAGE_SIZE, PAGE_SIZE);
	if (!uar->map) {
		ida_free(&dev->uars, index);
		return -ENOMEM;
	}
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_uar_alloc, "SKUA");

/**
 * skua_uar_free() - free a UAR page
 * @dev: the function
 * @uar: the page, to which no context refers any more
 */
void skua_uar_free(struct skua_dev *dev, struct skua_uar *uar)
{
	if (uar->map)
		iounmap(uar->map);
	uar->map = NULL;
	ida_free(&dev->uars, uar->index);
}
EXPORT_SYMBOL_NS_GPL(skua_uar_free, "SKUA");

/**
 * skua_kernel_uar() - the kernel's own UAR page
 * @dev: the function
 *
 * Return: the page, mapped, for kernel queues that need no page to themselves.
 */
const struct skua_uar *skua_kernel_uar(const struct skua_dev *dev)
{
	return &dev->uar;
}
EXPORT_SYMBOL_NS_GPL(skua_kernel_uar, "SKUA");

#ifdef CONFIG_64BIT

void skua_ring_db(const struct skua_uar *uar, unsigned int reg, u32 lo, u32 hi)
{
	writeq((u64)hi << 32 | lo, uar->map + reg);
}

#else

/*
 * Keeps the two halves of a doorbell together, because the device has one latch per page.
 * One lock for all pages; taken in any context.
 */
static DEFINE_SPINLOCK(skua_db_lock);

void skua_ring_db(const struct skua_uar *uar, unsigned int reg, u32 lo, u32 hi)
{
	guard(spinlock_irqsave)(&skua_db_lock);
	writel(lo, uar->map + reg);
	writel(hi, uar->map + reg + 4);
}

#endif
EXPORT_SYMBOL_NS_GPL(skua_ring_db, "SKUA");

/**
 * skua_uars_init() - initialize the allocator of UAR pages, and allocate the kernel's page
 * @dev: the function, whose limits are known
 *
 * Return: 0 or a negative errno.
 */
int skua_uars_init(struct skua_dev *dev)
{
	u64 room = pci_resource_len(dev->pdev, SKUA_BAR_UAR) >> PAGE_SHIFT;
	int err;

	dev->limits.max_uar = min_t(u64, dev->limits.max_uar, room);
	if (!dev->limits.max_uar)
		return -ENXIO;
	ida_init(&dev->uars);
	err = skua_uar_alloc(dev, &dev->uar, true);
	if (err)
		ida_destroy(&dev->uars);
	return err;
}

/**
 * skua_uars_exit() - undo skua_uars_init()
 * @dev: the function
 */
void skua_uars_exit(struct skua_dev *dev)
{
	skua_uar_free(dev, &dev->uar);
	WARN_ON_ONCE(!ida_is_empty(&dev->uars));
	ida_destroy(&dev->uars);
}
