/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: registers of BAR 0.
 *
 * All registers are little-endian and 32 bits wide at 4-byte aligned offsets;
 * a 64-bit register is a pair, low word first, and may also be accessed by one
 * aligned 8-byte access. Accesses of another width or alignment: reads return
 * all-ones, writes are dropped and counted (SKUA_CNT_BAD_MMIO). Reserved
 * offsets read as zero, writes to them and to read-only registers are dropped
 * and counted likewise.
 *
 * A read of all-ones from any register that cannot hold that value (SKUA_REG_ID)
 * means that the function has left the bus.
 *
 * Bring-up: poll SKUA_REG_STATUS for READY; check ID and VERSION; write
 * UAR_PAGE_SHIFT, CMDQ_BASE and CMDQ_LOG_SIZE; set SKUA_CMDQ_CTRL_ENABLE; then
 * QUERY_DEVICE, MAP_ICM, INIT_DEVICE.
 */
#ifndef SKUA_HW_REGS_H
#define SKUA_HW_REGS_H

/* RO. "SKUA" in memory order. */
#define SKUA_REG_ID			0x000
#define SKUA_ID_MAGIC			0x41554b53

/* RO. Version of this interface: a driver takes any minor of its major. */
#define SKUA_REG_VERSION		0x004
#define SKUA_VERSION_MAJOR		GENMASK(31, 16)
#define SKUA_VERSION_MINOR		GENMASK(15, 0)
#define SKUA_HW_MAJOR			1
#define SKUA_HW_MINOR			0

/*
 * RO. READY: reset is over, the command ring may be set up. OPERATIONAL:
 * INIT_DEVICE succeeded. FATAL: the device has stopped for good and does no
 * further DMA but for the fatal EQE; only a reset helps. CODE says why (enum
 * skua_fatal), valid while FATAL is set.
 */
#define SKUA_REG_STATUS			0x008
#define SKUA_STATUS_READY		BIT(0)
#define SKUA_STATUS_OPERATIONAL		BIT(1)
#define SKUA_STATUS_FATAL		BIT(2)
#define SKUA_STATUS_CODE		GENMASK(15, 8)

/**
 * enum skua_fatal - why a device stopped (SKUA_STATUS_CODE)
 * @SKUA_FATAL_NONE: it has not
 * @SKUA_FATAL_ICM_DMA: a context or translation in ICM could not be read or
 *	written over PCIe
 * @SKUA_FATAL_EQ_DMA: an event queue could not be written
 * @SKUA_FATAL_CMD_DMA: the command ring or a mailbox could not be accessed
 * @SKUA_FATAL_ICM_CORRUPT: a context read back from ICM contradicts itself
 * @SKUA_FATAL_INJECTED: INJECT_FATAL was issued
 */
enum skua_fatal {
	SKUA_FATAL_NONE			= 0,
	SKUA_FATAL_ICM_DMA		= 1,
	SKUA_FATAL_EQ_DMA		= 2,
	SKUA_FATAL_CMD_DMA		= 3,
	SKUA_FATAL_ICM_CORRUPT		= 4,
	SKUA_FATAL_INJECTED		= 5,
};

/* WO. Writing RESET starts a device reset: READY drops at once and comes back
 * when every queue has stopped and no DMA is under way (at most 1 s). Where that
 * takes no longer than the write, the first read already finds READY set.
 */
#define SKUA_REG_CTRL			0x00c
#define SKUA_CTRL_RESET			BIT(0)

/*
 * RO. Incremented at least once a millisecond while the device works, not incremented
 * any more once it is FATAL. Wraps.
 */
#define SKUA_REG_HEARTBEAT		0x010

/*
 * RW, while the command ring is off. log2 of the size of a UAR page: the
 * system page size, so that a page never holds two owners' doorbells. 12..16.
 */
#define SKUA_REG_UAR_PAGE_SHIFT		0x014

/* RO, 64 bits. Free-running device clock, see clock_khz in QUERY_DEVICE. */
#define SKUA_REG_CLOCK			0x018

/*
 * RW, while the command ring is off. Bus address of the command ring (64-byte
 * aligned) and log2 of its slots (0..SKUA_CMDQ_LOG_SIZE_MAX). See cmd.h.
 */
#define SKUA_REG_CMDQ_BASE		0x040
#define SKUA_REG_CMDQ_LOG_SIZE		0x048
#define SKUA_CMDQ_LOG_SIZE_MAX		8

/*
 * RW. ENABLE turns the ring on; the device then remembers the ring's place.
 * Clearing it is a device reset of the queues' state as well: use CTRL_RESET.
 * A write that clears ENABLE is dropped and counted.
 */
#define SKUA_REG_CMDQ_CTRL		0x04c
#define SKUA_CMDQ_CTRL_ENABLE		BIT(0)

/* WO. The token of a filled slot: the device fetches and executes it. */
#define SKUA_REG_CMDQ_DB		0x050

/* First offset after the registers. */
#define SKUA_REG_END			0x1000

#endif /* SKUA_HW_REGS_H */
