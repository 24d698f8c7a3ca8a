// SPDX-License-Identifier: GPL-2.0
/*
 * Guest memory: the one function that reads it, the one that writes it, and the
 * interrupt message. Each counts the transactions a PCIe analyser would see: no
 * request crosses a 4 KiB boundary, a write carries at most MPS bytes, a read
 * asks for at most MRRS, and each read's completions of at most MPS bytes are cut at the
 * read completion boundary.
 */
#include <errno.h>

#include "core.h"
#include "roce/pkt.h"

#define PCIE_MPS	256
#define PCIE_MRRS	512
#define PCIE_RCB	64
#define PCIE_PAGE	4096

static uint64_t div_up(uint64_t n, uint64_t by)
{
	return (n + by - 1) / by;
}

/* Number of requests of at most @max bytes for a range; none crosses a page. */
static uint64_t requests(uint64_t iova, size_t len, unsigned int max)
{
	uint64_t first = PCIE_PAGE - iova % PCIE_PAGE;

	if (len <= first)
		return div_up(len, max);
	len -= first;
	return div_up(first, max) + len / PCIE_PAGE * (PCIE_PAGE / max) +
	       div_up(len % PCIE_PAGE, max);
}

/*
 * Number of completions of such requests for a range within a page: each ends at a multiple of
 * RCB, except the last one of a request.
 */
static uint64_t answers(uint64_t iova, size_t len)
{
	unsigned int in = iova % PCIE_RCB;

	if (!in || len <= PCIE_MRRS)
		return div_up(len + in, PCIE_MPS);
	return len / PCIE_MRRS * (PCIE_MRRS / PCIE_MPS + 1) +
	       (len % PCIE_MRRS ? div_up(len % PCIE_MRRS + in, PCIE_MPS) : 0);
}

static uint64_t completions(uint64_t iova, size_t len)
{
	uint64_t first = PCIE_PAGE - iova % PCIE_PAGE;

	if (len <= first)
		return answers(iova, len);
	return answers(iova, first) + div_up(len - first, PCIE_MPS);
}

static void count_read(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, size_t len)
{
	tlp_count_read(&dev->tlp, purpose, requests(iova, len, PCIE_MRRS),
		       completions(iova, len), len);
}

static void count_write(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, size_t len)
{
	tlp_count(&dev->tlp, purpose, TLP_MWR_UP, requests(iova, len, PCIE_MPS), len);
}

void dma_count_peer_read(struct skua_dev *dev, uint64_t addr, size_t len)
{
	tlp_count(&dev->tlp, TLP_DM, TLP_MRD_DOWN, requests(addr, len, PCIE_MRRS), len);
	tlp_count(&dev->tlp, TLP_DM, TLP_CPLD_UP, completions(addr, len), len);
}

void dma_count_peer_write(struct skua_dev *dev, uint64_t addr, size_t len)
{
	tlp_count(&dev->tlp, TLP_DM, TLP_MWR_DOWN, requests(addr, len, PCIE_MPS), len);
}

/* May the function master the bus now, and does the range not wrap round? */
static bool allowed(struct skua_dev *dev, uint64_t iova, size_t len)
{
	return dev->state != DEV_FATAL && skua_pci_bus_master(&dev->pci) &&
	       (!len || iova + (len - 1) >= iova);
}

static int fail(struct skua_dev *dev)
{
	dev->cnt[SKUA_CNT_DMA_ERR]++;
	return -EFAULT;
}

int dma_read(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, void *buf, size_t len)
{
	if (!len)
		return 0;
	if (!allowed(dev, iova, len))
		return fail(dev);
	count_read(dev, purpose, iova, len);
	if (dev->host->dma_read(dev->host_priv, iova, buf, len))
		return fail(dev);
	return 0;
}

int dma_write(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, const void *buf,
	      size_t len)
{
	if (!len)
		return 0;
	if (!allowed(dev, iova, len))
		return fail(dev);
	count_write(dev, purpose, iova, len);
	if (dev->host->dma_write(dev->host_priv, iova, buf, len))
		return fail(dev);
	return 0;
}

const void *dma_map(struct skua_dev *dev, uint64_t iova, size_t len)
{
	if (!dev->host->dma_map || !allowed(dev, iova, len))
		return NULL;
	return dev->host->dma_map(dev->host_priv, iova, len);
}

/* The part of [@off, @off + @len) that is in one packet of the train. */
static uint32_t in_packet(const struct skua_train *t, uint32_t off, uint32_t len)
{
	uint32_t left = t->mtu - (off & (t->mtu - 1));

	return left < len ? left : len;
}

void dma_count_train(struct skua_dev *dev, const struct skua_train *t)
{
	uint32_t off = 0, n;

	for (uint32_t i = 0; i < t->num; i++) {
		const struct skua_piece *p = &t->piece[i];

		for (uint32_t at = 0; at < p->len; at += n, off += n) {
			n = in_packet(t, off, p->len - at);
			count_read(dev, TLP_PAYLOAD, p->bus + at, n);
		}
	}
}

int dma_write_train(struct skua_dev *dev, uint64_t iova, const struct skua_train *t, uint32_t off,
		    uint32_t len)
{
	const struct skua_piece *p = t->piece;
	uint64_t bus = iova;
	uint32_t in = off;

	if (!allowed(dev, iova, len))
		return fail(dev);
	for (uint32_t n, at = 0; at < len; at += n) {
		n = in_packet(t, off + at, len - at);
		count_write(dev, TLP_PAYLOAD, iova + at, n);
	}
	for (; in >= p->len; p++)
		in -= p->len;
	for (uint32_t n; len; p++, in = 0, bus += n, len -= n) {
		n = p->len - in < len ? p->len - in : len;
		if (dev->host->dma_write(dev->host_priv, bus, p->at + in, n))
			return fail(dev);
	}
	return 0;
}

int dma_write_elems(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, const void *buf,
		    size_t size, unsigned int num)
{
	const size_t len = size * num, head = size - sizeof(uint64_t);
	const char *src = buf;

	if (!allowed(dev, iova, len))
		return fail(dev);
	count_write(dev, purpose, iova, len);
	/* Software does not read the following entries before the first one is valid. */
	if ((num > 1 && dev->host->dma_write(dev->host_priv, iova + size, src + size, len - size)) ||
	    (head && dev->host->dma_write(dev->host_priv, iova, src, head)) ||
	    dev->host->dma_write(dev->host_priv, iova + head, src + head, sizeof(uint64_t)))
		return fail(dev);
	return 0;
}

int dma_write_elem(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, const void *buf,
		   size_t len)
{
	return dma_write_elems(dev, purpose, iova, buf, len, 1);
}

void dma_order(struct skua_dev *dev)
{
	dev->host->order(dev->host_priv);
}

void dma_msix(struct skua_dev *dev, unsigned int vector)
{
	if (!allowed(dev, 0, 0))
		return;
	dev->cnt[SKUA_CNT_TLP_MSIX]++;
	tlp_count(&dev->tlp, TLP_MSIX, TLP_MWR_UP, 1, 4);
	dev->host->msix(dev->host_priv, vector);
}
