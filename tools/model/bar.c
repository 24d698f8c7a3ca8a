// SPDX-License-Identifier: GPL-2.0
/*
 * The BARs: registers (0), UAR pages (2, see db.c), device memory (4, see dm.c).
 * The host may use any width, offset and value.
 */
#include <string.h>

#include "cmd_fault.h"
#include "core.h"

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

static bool in_bar(const struct skua_dev *dev, unsigned int bar, uint64_t off, size_t len)
{
	uint64_t size = skua_dev_bar_size(dev, bar);

	return len && off < size && len <= size - off;
}

static uint32_t status(const struct skua_dev *dev)
{
	switch (dev->state) {
	case DEV_READY:
	case DEV_RING:
		return SKUA_STATUS_READY;
	case DEV_OPERATIONAL:
		return SKUA_STATUS_READY | SKUA_STATUS_OPERATIONAL;
	case DEV_FATAL:
		break;
	}
	return SKUA_STATUS_FATAL | u32_encode_bits(dev->fatal, SKUA_STATUS_CODE);
}

static uint32_t heartbeat(struct skua_dev *dev)
{
	if (cmd_fault_next(dev, HEARTBEAT_FAULT).kind == CMD_FAULT_NONE)
		dev->heartbeat = dev_heartbeat(dev);
	return dev->heartbeat;
}

static uint32_t reg_read(struct skua_dev *dev, uint64_t off)
{
	switch (off) {
	case SKUA_REG_ID:
		return SKUA_ID_MAGIC;
	case SKUA_REG_VERSION:
		return u32_encode_bits(SKUA_HW_MAJOR, SKUA_VERSION_MAJOR) |
		       u32_encode_bits(SKUA_HW_MINOR, SKUA_VERSION_MINOR);
	case SKUA_REG_STATUS:
		return status(dev);
	case SKUA_REG_HEARTBEAT:
		return heartbeat(dev);
	case SKUA_REG_UAR_PAGE_SHIFT:
		return dev->uar_shift;
	case SKUA_REG_CLOCK:
		return (uint32_t)dev_now(dev);
	case SKUA_REG_CLOCK + 4:
		return (uint32_t)(dev_now(dev) >> 32);
	case SKUA_REG_CMDQ_BASE:
		return (uint32_t)dev->regs.cmdq_base;
	case SKUA_REG_CMDQ_BASE + 4:
		return (uint32_t)(dev->regs.cmdq_base >> 32);
	case SKUA_REG_CMDQ_LOG_SIZE:
		return dev->regs.cmdq_log_size;
	case SKUA_REG_CMDQ_CTRL:
		return dev->regs.cmdq_ctrl;
	}
	return 0;
}

static bool reg_is_64(uint64_t off)
{
	return off == SKUA_REG_CLOCK || off == SKUA_REG_CMDQ_BASE;
}

/* Registers that may be written only while the command ring is off. */
static bool setup_write(struct skua_dev *dev, uint64_t off, uint32_t val)
{
	uint64_t *base = &dev->regs.cmdq_base;

	if (dev->state != DEV_READY)
		return false;
	switch (off) {
	case SKUA_REG_UAR_PAGE_SHIFT:
		if (val < 12 || val > 16)
			return false;
		dev->uar_shift = val;
		return true;
	case SKUA_REG_CMDQ_BASE:
		if (val % sizeof(struct skua_cmd_slot))
			return false;
		*base = (*base >> 32 << 32) | val;
		return true;
	case SKUA_REG_CMDQ_BASE + 4:
		*base = (uint64_t)val << 32 | (uint32_t)*base;
		return true;
	case SKUA_REG_CMDQ_LOG_SIZE:
		if (val > SKUA_CMDQ_LOG_SIZE_MAX)
			return false;
		dev->regs.cmdq_log_size = val;
		return true;
	}
	return false;
}

static bool ctrl_write(struct skua_dev *dev, uint32_t val)
{
	if (val & ~SKUA_CTRL_RESET)
		return false;
	if (val)
		dev_hw_reset(dev);
	return true;
}

static bool cmdq_ctrl_write(struct skua_dev *dev, uint32_t val)
{
	if (val != SKUA_CMDQ_CTRL_ENABLE || dev->state == DEV_FATAL)
		return !val && !dev->regs.cmdq_ctrl;
	if (dev->state != DEV_READY)
		return true;
	dev->regs.cmdq_ctrl = val;
	cmdq_enable(dev, dev->regs.cmdq_base, dev->regs.cmdq_log_size);
	dev->state = DEV_RING;
	return true;
}

/* False: the write is dropped and counted. */
static bool reg_write(struct skua_dev *dev, uint64_t off, uint32_t val)
{
	switch (off) {
	case SKUA_REG_CTRL:
		return ctrl_write(dev, val);
	case SKUA_REG_CMDQ_CTRL:
		return cmdq_ctrl_write(dev, val);
	case SKUA_REG_CMDQ_DB:
		cmdq_doorbell(dev, val);
		return true;
	}
	return setup_write(dev, off, val);
}

static void regs_read(struct skua_dev *dev, uint64_t off, void *buf, size_t len)
{
	__le32 val;
	__le64 val64;

	memset(buf, 0xff, len);
	if (len == 4 && off % 4 == 0) {
		val = cpu_to_le32(reg_read(dev, off));
		memcpy(buf, &val, sizeof(val));
	} else if (len == 8 && reg_is_64(off)) {
		/* Of a clock that ticks between two reads the halves would not fit. */
		val64 = off == SKUA_REG_CLOCK ? cpu_to_le64(dev_now(dev)) :
						cpu_to_le64(dev->regs.cmdq_base);
		memcpy(buf, &val64, sizeof(val64));
	}
}

static void regs_write(struct skua_dev *dev, uint64_t off, const void *buf, size_t len)
{
	__le32 val[2] = { 0 };
	bool ok = false;

	if ((len == 4 && off % 4 == 0) || (len == 8 && reg_is_64(off))) {
		memcpy(val, buf, len);
		ok = reg_write(dev, off, le32_to_cpu(val[0]));
		if (ok && len == 8)
			ok = reg_write(dev, off + 4, le32_to_cpu(val[1]));
	}
	if (!ok)
		dev->cnt[SKUA_CNT_BAD_MMIO]++;
}

void skua_dev_bar_read(struct skua_dev *dev, unsigned int bar, uint64_t off, void *buf, size_t len)
{
	if (!in_bar(dev, bar, off, len) || !skua_pci_mem_enabled(&dev->pci)) {
		memset(buf, 0xff, len);
		return;
	}
	tlp_mmio_read(dev, bar == SKUA_BAR_REGS ? TLP_REG :
			   bar == SKUA_BAR_DM	? TLP_DM :
						  TLP_OTHER, len);
	if (bar == SKUA_BAR_REGS)
		regs_read(dev, off, buf, len);
	else if (bar == SKUA_BAR_DM)
		dm_read(dev, off, buf, len);
	else
		memset(buf, 0, len);
}

void skua_dev_bar_write(struct skua_dev *dev, unsigned int bar, uint64_t off, const void *buf,
			size_t len)
{
	if (!in_bar(dev, bar, off, len) || !skua_pci_mem_enabled(&dev->pci))
		return;
	if (bar == SKUA_BAR_UAR && push_write(dev, off, buf, len)) {
		timer_sync(dev);
		return;
	}
	if (bar == SKUA_BAR_REGS) {
		tlp_mmio(dev, off == SKUA_REG_CMDQ_DB ? TLP_CMD : TLP_REG, len);
		regs_write(dev, off, buf, len);
	} else if (bar == SKUA_BAR_UAR) {
		db_write(dev, off, buf, len);
	} else if (bar == SKUA_BAR_DM) {
		tlp_mmio(dev, TLP_DM, len);
		dm_write(dev, off, buf, len);
	}
	timer_sync(dev);
}
