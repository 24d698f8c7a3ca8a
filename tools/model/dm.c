// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: what BAR 4 shows, and regions that lie there. The processor's
 * accesses, the engine's and those of other functions are each in order, as a doorbell
 * comes after the stores before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

int dm_init(struct skua_dev *dev)
{
	if (!dev_has(dev, SKUA_CAP_DM))
		return 0;
	dev->dm = malloc(SKUA_BAR_DM_SIZE);
	return dev->dm ? 0 : -ENOMEM;
}

/* Cleared by a reset, so that its next owner cannot read what the last one has written. */
void dm_reset(struct skua_dev *dev)
{
	if (dev->dm)
		memset(dev->dm, 0, SKUA_BAR_DM_SIZE);
}

void dm_exit(struct skua_dev *dev)
{
	free(dev->dm);
	dev->dm = NULL;
}

bool dm_ok(const struct skua_dev *dev, uint64_t off, uint64_t len)
{
	return dev->dm && off <= SKUA_BAR_DM_SIZE && len <= SKUA_BAR_DM_SIZE - off;
}

void dm_read(struct skua_dev *dev, uint64_t off, void *buf, size_t len)
{
	if (dm_ok(dev, off, len))
		memcpy(buf, dev->dm + off, len);
	else
		memset(buf, 0, len);
}

void dm_write(struct skua_dev *dev, uint64_t off, const void *buf, size_t len)
{
	if (dm_ok(dev, off, len))
		memcpy(dev->dm + off, buf, len);
}

/* Offset in device memory of a bus address, if the function decodes that. */
static bool peer_finds(const struct skua_dev *dev, uint64_t addr, uint64_t len, uint64_t *off)
{
	uint64_t base = skua_pci_bar(&dev->pci, SKUA_BAR_DM);

	*off = addr - base;
	return base && addr >= base && skua_pci_mem_enabled(&dev->pci) && dm_ok(dev, *off, len);
}

int skua_dev_peer_read(struct skua_dev *dev, uint64_t addr, void *buf, size_t len)
{
	uint64_t off;

	if (!peer_finds(dev, addr, len, &off))
		return -EFAULT;
	dma_count_peer_read(dev, addr, len);
	dm_read(dev, off, buf, len);
	return 0;
}

int skua_dev_peer_write(struct skua_dev *dev, uint64_t addr, const void *buf, size_t len)
{
	uint64_t off;

	if (!peer_finds(dev, addr, len, &off))
		return -EFAULT;
	dma_count_peer_write(dev, addr, len);
	dm_write(dev, off, buf, len);
	return 0;
}
