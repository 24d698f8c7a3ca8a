// SPDX-License-Identifier: GPL-2.0
/*
 * UAR pages of BAR 2: which stores are a doorbell, by width and offset, and the latch that joins
 * the two halves that 32-bit software writes. The queues handle the doorbells.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* The low half of a doorbell, kept until the high half is written to the same page. */
struct latch {
	uint32_t low;
	uint8_t reg;		/* which register */
	bool full;
};

struct uar_latches {
	struct latch page[SKUA_BAR_UAR_SIZE >> MODEL_LOG_PAGE_MIN];
};

int db_init(struct skua_dev *dev)
{
	dev->latches = calloc(1, sizeof(*dev->latches));
	return dev->latches ? 0 : -ENOMEM;
}

void db_reset(struct skua_dev *dev)
{
	memset(dev->latches, 0, sizeof(*dev->latches));
}

void db_exit(struct skua_dev *dev)
{
	free(dev->latches);
}

/* What a store into a UAR page is for. */
static enum tlp_purpose purpose(uint32_t in)
{
	if (in < SKUA_UAR_CQ_ARM)
		return TLP_DOORBELL;
	if (in < SKUA_UAR_EQ + 8)
		return TLP_ARM;
	if (in < SKUA_UAR_RECOVERY + 8)
		return TLP_DOORBELL;
	if (in - SKUA_UAR_PUSH < SKUA_UAR_PUSH_SLOTS * SKUA_UAR_PUSH_SLOT_SIZE)
		return TLP_PUSH;
	return TLP_OTHER;
}

/* Of one store, or of @stores. */
static void doorbell(struct skua_dev *dev, uint32_t page, unsigned int reg, uint32_t lo,
		     uint32_t hi, unsigned int stores)
{
	switch (reg) {
	case SKUA_UAR_SQ:
		tlp_mmio_qp(dev, hi, TLP_DOORBELL, stores, 8);
		sq_doorbell(dev, page, lo, hi, NULL);
		break;
	case SKUA_UAR_CQ_ARM:
		cq_doorbell(dev, page, lo, hi);
		break;
	case SKUA_UAR_EQ:
		eq_doorbell(dev, page, lo, hi);
		break;
	case SKUA_UAR_RECOVERY:
		recovery_doorbell(dev, page, lo, hi);
		break;
	}
}

/* A 32-bit store. False: it is not a half of a doorbell. */
static bool half(struct skua_dev *dev, uint32_t page, unsigned int in, uint32_t val)
{
	struct latch *latch = &dev->latches->page[page];
	unsigned int reg = in & ~7u;

	if (!(in & 4)) {
		latch->low = val;
		latch->reg = reg;
		latch->full = true;
		return true;
	}
	if (!latch->full || latch->reg != reg)
		return false;
	latch->full = false;
	doorbell(dev, page, reg, latch->low, val, 2);
	return true;
}

void db_write(struct skua_dev *dev, uint64_t off, const void *buf, size_t len)
{
	uint32_t page = off >> dev->uar_shift;
	uint32_t in = off & ((1u << dev->uar_shift) - 1);
	uint32_t end = (dev_has(dev, SKUA_CAP_RECOVERY) ? SKUA_UAR_RECOVERY : SKUA_UAR_EQ) + 8;
	__le32 val[2] = { 0 };
	bool ok = false;

	tlp_mmio(dev, purpose(in), len);
	if (in < end && (len == 4 || len == 8) && in % len == 0 &&
	    dev->state == DEV_OPERATIONAL) {
		memcpy(val, buf, len);
		if (len == 8) {
			doorbell(dev, page, in, le32_to_cpu(val[0]), le32_to_cpu(val[1]), 1);
			ok = true;
		} else {
			ok = half(dev, page, in, le32_to_cpu(val[0]));
		}
	}
	if (!ok)
		dev->cnt[SKUA_CNT_BAD_DB]++;
}
