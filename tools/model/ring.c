// SPDX-License-Identifier: GPL-2.0
/* Rings in host memory, as contexts describe them: one run of pages or a list. */
#include <errno.h>
#include <string.h>

#include "core.h"

bool ring_ok(const struct skua_dev *dev, const struct skua_xlat *x, uint64_t size)
{
	uint32_t mode = le32_to_cpu(x->mode);
	uint32_t log = u32_get_bits(mode, SKUA_XLAT_LOG_PAGE);
	uint64_t base = le64_to_cpu(x->base);
	uint64_t bytes = le32_to_cpu(x->offset) + size;
	uint64_t pages, num = icm_num(dev, SKUA_ICM_MTT);

	if (mode & ~(SKUA_XLAT_MODE | SKUA_XLAT_LOG_PAGE) || le32_to_cpu(x->offset) % 64)
		return false;
	switch (u32_get_bits(mode, SKUA_XLAT_MODE)) {
	case SKUA_XLAT_CONTIG:
		return base % 64 == 0 && base + (bytes - 1) >= base;
	case SKUA_XLAT_MTT:
		if (log < MODEL_LOG_PAGE_MIN || log > MODEL_LOG_PAGE_MAX ||
		    le32_to_cpu(x->offset) >> log)
			return false;
		pages = (bytes + (1ull << log) - 1) >> log;
		return base <= num && pages <= num - base;
	}
	return false;
}

/*
 * Bus address of the byte at @pos from the start of the ring's first page, and the number of
 * bytes that follow it in the same run. 0 or -EFAULT.
 */
static int translate(struct skua_dev *dev, const struct skua_xlat *x, uint64_t pos, bool write,
		     uint64_t *bus, uint64_t *room)
{
	uint64_t base = le64_to_cpu(x->base);
	uint64_t page, entry;
	uint32_t log;

	if (le32_get_bits(x->mode, SKUA_XLAT_MODE) == SKUA_XLAT_CONTIG) {
		*bus = base + pos;
		*room = UINT64_MAX;
		return 0;
	}
	log = le32_get_bits(x->mode, SKUA_XLAT_LOG_PAGE);
	page = 1ull << log;
	if (mtt_get(dev, base + (pos >> log), &entry) || !(entry & SKUA_MTT_PRESENT) ||
	    (write && !(entry & SKUA_MTT_WRITE)) || (entry & SKUA_MTT_ADDR) % page)
		return -EFAULT;
	*bus = (entry & SKUA_MTT_ADDR) + pos % page;
	*room = page - pos % page;
	return 0;
}

int ring_read(struct skua_dev *dev, enum tlp_purpose purpose, const struct skua_xlat *x,
	      uint64_t size, uint64_t off, void *buf, size_t len)
{
	char *dst = buf;
	uint64_t bus, n;

	while (len) {
		off %= size;
		if (translate(dev, x, le32_to_cpu(x->offset) + off, false, &bus, &n))
			return -EFAULT;
		if (n > size - off)
			n = size - off;
		if (n > len)
			n = len;
		if (dma_read(dev, purpose, bus, dst, n))
			return -EFAULT;
		dst += n;
		off += n;
		len -= n;
	}
	return 0;
}

int ring_write_elems(struct skua_dev *dev, enum tlp_purpose purpose, const struct skua_xlat *x,
		     uint64_t size, uint64_t off, const void *buf, size_t each, unsigned int num)
{
	uint64_t bus, room;

	if (translate(dev, x, le32_to_cpu(x->offset) + off % size, true, &bus, &room) ||
	    room < each * num)
		return -EFAULT;
	return dma_write_elems(dev, purpose, bus, buf, each, num);
}

int ring_write_elem(struct skua_dev *dev, enum tlp_purpose purpose, const struct skua_xlat *x,
		    uint64_t size, uint64_t off, const void *buf, size_t len)
{
	return ring_write_elems(dev, purpose, x, size, off, buf, len, 1);
}
