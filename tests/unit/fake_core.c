// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_core.h"

struct skua_dev *skua_dev_create(const struct skua_dev_cfg *cfg,
				 const struct skua_host_ops *host, void *host_priv,
				 const struct skua_wire_ops *wire, void *wire_priv)
{
	struct skua_dev *dev = calloc(1, sizeof(*dev));

	(void)wire;
	(void)wire_priv;
	if (!dev)
		return NULL;
	dev->cfg = *cfg;
	dev->host = host;
	dev->host_priv = host_priv;
	skua_pci_init(&dev->pci, cfg);
	return dev;
}

void skua_dev_destroy(struct skua_dev *dev)
{
	free(dev);
}

void fake_core_clear(struct skua_dev *dev)
{
	const struct skua_dev made = {
		.cfg = dev->cfg,
		.host = dev->host,
		.host_priv = dev->host_priv,
	};

	*dev = made;
	skua_pci_init(&dev->pci, &dev->cfg);
}

void skua_dev_reset(struct skua_dev *dev, enum skua_reset_kind kind)
{
	skua_pci_reset(&dev->pci, kind);
	memset(dev->bar, 0, sizeof(dev->bar));
	if (kind == SKUA_RESET_FLR)
		dev->flrs++;
	else
		dev->resets++;
}

void skua_dev_cfg_read(struct skua_dev *dev, unsigned int off, void *buf, size_t len)
{
	skua_pci_read(&dev->pci, off, buf, len);
}

bool skua_dev_cfg_write(struct skua_dev *dev, unsigned int off, const void *buf, size_t len)
{
	if (!(skua_pci_write(&dev->pci, off, buf, len) & SKUA_PCI_EV_FLR))
		return false;
	skua_dev_reset(dev, SKUA_RESET_FLR);
	return true;
}

uint64_t skua_dev_bar_size(const struct skua_dev *dev, unsigned int bar)
{
	(void)dev;
	switch (bar) {
	case SKUA_BAR_REGS:
		return SKUA_BAR_REGS_SIZE;
	case SKUA_BAR_UAR:
		return SKUA_BAR_UAR_SIZE;
	case SKUA_BAR_DM:
		return SKUA_BAR_DM_SIZE;
	}
	return 0;
}

/* Beyond the few bytes that it has the BAR reads as the low byte of the offset. */
void skua_dev_bar_read(struct skua_dev *dev, unsigned int bar, uint64_t off, void *buf, size_t len)
{
	uint8_t *dst = buf;

	for (size_t i = 0; i < len; i++)
		dst[i] = off + i < FAKE_BAR_BYTES ? dev->bar[bar][off + i] : (uint8_t)(off + i);
}

static void act(struct skua_dev *dev, uint64_t off, uint64_t val)
{
	static uint8_t big[1 << 16];

	switch (off) {
	case FAKE_MSIX:
		dev->host->msix(dev->host_priv, val);
		break;
	case FAKE_IOVA:
		dev->iova = val;
		break;
	case FAKE_DMA_WRITE:
		dev->err = dev->host->dma_write(dev->host_priv, dev->iova, &val, sizeof(val));
		break;
	case FAKE_DMA_READ:
		dev->err = dev->host->dma_read(dev->host_priv, dev->iova, &dev->word,
					       sizeof(dev->word));
		break;
	case FAKE_TIMER:
		dev->host->timer(dev->host_priv, dev->host->now(dev->host_priv) + val);
		break;
	case FAKE_LEN:
		dev->err = dev->host->dma_read(dev->host_priv, dev->iova, big, val % sizeof(big));
		break;
	}
}

void skua_dev_bar_write(struct skua_dev *dev, unsigned int bar, uint64_t off, const void *buf,
			size_t len)
{
	const uint8_t *src = buf;
	uint64_t val;

	dev->writes++;
	for (size_t i = 0; i < len && off + i < FAKE_BAR_BYTES; i++)
		dev->bar[bar][off + i] = src[i];
	if (bar == SKUA_BAR_DM && len == sizeof(val)) {
		memcpy(&val, buf, sizeof(val));
		act(dev, off, val);
	}
}

int skua_dev_peer_read(struct skua_dev *dev, uint64_t addr, void *buf, size_t len)
{
	if (!addr || addr != dev->peer_at || len != sizeof(dev->peer))
		return -EFAULT;
	memcpy(buf, &dev->peer, len);
	return 0;
}

int skua_dev_peer_write(struct skua_dev *dev, uint64_t addr, const void *buf, size_t len)
{
	if (!addr || addr != dev->peer_at || len != sizeof(dev->peer))
		return -EFAULT;
	memcpy(&dev->peer, buf, len);
	return 0;
}

unsigned int skua_dev_msix_vectors(const struct skua_dev *dev)
{
	return skua_pci_msix_vectors(&dev->pci);
}

bool skua_dev_rx(struct skua_dev *dev, void *frame, size_t len, bool icrc_pending)
{
	(void)dev;
	(void)frame;
	(void)len;
	(void)icrc_pending;
	return false;
}

void skua_dev_tick(struct skua_dev *dev)
{
	dev->ticks++;
}

void skua_dev_link(struct skua_dev *dev, bool up)
{
	(void)dev;
	(void)up;
}

bool skua_dev_run(struct skua_dev *dev)
{
	(void)dev;
	return false;
}
