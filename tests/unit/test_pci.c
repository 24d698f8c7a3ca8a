// SPDX-License-Identifier: GPL-2.0
/* Configuration space: who may write what, and what a write asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <linux/pci_regs.h>

#include "pci.h"

#define SERIAL	0x0253fffe4b554101ull

static struct skua_pci pci;

static uint32_t rd(unsigned int off, unsigned int len)
{
	uint8_t buf[4] = { 0 };

	skua_pci_read(&pci, off, buf, len);
	return buf[0] | buf[1] << 8 | buf[2] << 16 | (uint32_t)buf[3] << 24;
}

static unsigned int wr(unsigned int off, uint32_t val, unsigned int len)
{
	uint8_t buf[4] = { val, val >> 8, val >> 16, val >> 24 };

	return skua_pci_write(&pci, off, buf, len);
}

static int setup(void **state)
{
	struct skua_dev_cfg cfg = { .serial = SERIAL, .msix_vectors = 17 };

	(void)state;
	skua_pci_init(&pci, &cfg);
	return 0;
}

static void test_identity(void **state)
{
	(void)state;
	assert_int_equal(rd(PCI_VENDOR_ID, 2), SKUA_PCI_VENDOR_ID);
	assert_int_equal(rd(PCI_DEVICE_ID, 2), SKUA_PCI_DEVICE_ID);
	assert_int_equal(rd(PCI_CLASS_REVISION, 4), SKUA_PCI_CLASS << 8 | SKUA_PCI_REVISION);
	assert_int_equal(rd(PCI_HEADER_TYPE, 1), PCI_HEADER_TYPE_NORMAL);
	assert_int_equal(rd(PCI_SUBSYSTEM_VENDOR_ID, 2), SKUA_PCI_SUBVENDOR_ID);
	assert_int_equal(rd(PCI_SUBSYSTEM_ID, 2), SKUA_PCI_SUBDEVICE_ID);
	assert_int_equal(rd(PCI_INTERRUPT_PIN, 1), 0);
	assert_int_equal(wr(PCI_VENDOR_ID, 0xffffffff, 4), 0);
	assert_int_equal(rd(PCI_VENDOR_ID, 4), SKUA_PCI_DEVICE_ID << 16 | SKUA_PCI_VENDOR_ID);
}

/* All ones into each byte: what sticks is what is declared writable, nothing else. */
static void test_masks(void **state)
{
	uint8_t ones = 0xff, byte;

	(void)state;
	for (unsigned int i = 0; i < SKUA_PCI_CFG_SIZE; i++) {
		skua_pci_write(&pci, i, &ones, 1);
		skua_pci_read(&pci, i, &byte, 1);
		assert_int_equal(pci.rw[i] & pci.w1c[i], 0);
		assert_int_equal(byte, (pci.init[i] | pci.rw[i]) & ~pci.w1c[i]);
	}
	for (unsigned int i = 0; i < SKUA_PCI_CFG_SIZE; i++) {
		byte = 0;
		skua_pci_write(&pci, i, &byte, 1);
		skua_pci_read(&pci, i, &byte, 1);
		assert_int_equal(byte, pci.init[i] & ~pci.rw[i] & ~pci.w1c[i]);
	}
	skua_pci_reset(&pci, SKUA_RESET_POWER);
	assert_memory_equal(pci.cfg, pci.init, sizeof(pci.cfg));
}

static void test_command(void **state)
{
	const uint16_t all = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
			     PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE;

	(void)state;
	assert_false(skua_pci_bus_master(&pci));
	assert_false(skua_pci_mem_enabled(&pci));
	assert_int_equal(wr(PCI_COMMAND, PCI_COMMAND_MEMORY, 2), 0);
	assert_true(skua_pci_mem_enabled(&pci));
	assert_int_equal(wr(PCI_COMMAND, 0xffff, 2), SKUA_PCI_EV_MASTER);
	assert_int_equal(rd(PCI_COMMAND, 2), all);
	assert_true(skua_pci_bus_master(&pci));
	assert_int_equal(wr(PCI_COMMAND, 0xffff, 2), 0);
	assert_int_equal(wr(PCI_COMMAND, 0, 1), SKUA_PCI_EV_MASTER);
	assert_int_equal(rd(PCI_COMMAND, 2), PCI_COMMAND_INTX_DISABLE | PCI_COMMAND_SERR);
}

static void test_bars(void **state)
{
	static const struct {
		unsigned int bar;
		uint32_t size, type;
	} bars[] = {
		{ SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE, PCI_BASE_ADDRESS_MEM_TYPE_64 },
		{ SKUA_BAR_UAR, SKUA_BAR_UAR_SIZE,
		  PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH },
		{ SKUA_BAR_DM, SKUA_BAR_DM_SIZE,
		  PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH },
	};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int off = PCI_BASE_ADDRESS_0 + 4 * bars[i].bar;

		assert_int_equal(rd(off, 4), bars[i].type);
		assert_int_equal(rd(off + 4, 4), 0);
		wr(off, 0xffffffff, 4);
		wr(off + 4, 0xffffffff, 4);
		assert_int_equal(rd(off, 4), ~(bars[i].size - 1) | bars[i].type);
		assert_int_equal(rd(off + 4, 4), 0xffffffff);
	}
	wr(PCI_ROM_ADDRESS, 0xffffffff, 4);
	assert_int_equal(rd(PCI_ROM_ADDRESS, 4), 0);
}

/* Both lists end, and name what is promised, each with its version. */
static void test_capability_lists(void **state)
{
	uint8_t ids[8];
	uint32_t ext[8];
	unsigned int n = 0, off;

	(void)state;
	assert_true(rd(PCI_STATUS, 2) & PCI_STATUS_CAP_LIST);
	for (off = rd(PCI_CAPABILITY_LIST, 1); off; off = rd(off + PCI_CAP_LIST_NEXT, 1)) {
		assert_in_range(off, 0x40, 0xfc);
		assert_int_equal(off % 4, 0);
		assert_true(n < 8);
		ids[n++] = rd(off, 1);
	}
	assert_int_equal(n, 3);
	assert_memory_equal(ids, ((uint8_t[]){ PCI_CAP_ID_PM, PCI_CAP_ID_MSIX, PCI_CAP_ID_EXP }),
			    3);

	for (n = 0, off = 0x100; off; off = PCI_EXT_CAP_NEXT(rd(off, 4))) {
		assert_in_range(off, 0x100, 0xffc);
		assert_true(n < 8);
		ext[n++] = rd(off, 4);
	}
	assert_int_equal(n, 2);
	assert_int_equal(PCI_EXT_CAP_ID(ext[0]), PCI_EXT_CAP_ID_ERR);
	assert_int_equal(PCI_EXT_CAP_VER(ext[0]), 2);
	assert_int_equal(PCI_EXT_CAP_ID(ext[1]), PCI_EXT_CAP_ID_DSN);
	assert_int_equal(rd(SKUA_PCI_ECAP_DSN + 4, 4), (uint32_t)SERIAL);
	assert_int_equal(rd(SKUA_PCI_ECAP_DSN + 8, 4), SERIAL >> 32);
}

static void test_msix(void **state)
{
	struct skua_dev_cfg cfg = { 0 };

	(void)state;
	assert_int_equal(skua_pci_msix_vectors(&pci), 17);
	assert_int_equal(rd(SKUA_PCI_CAP_MSIX + PCI_MSIX_TABLE, 4),
			 SKUA_BAR_MSIX_TABLE | SKUA_BAR_REGS);
	assert_int_equal(rd(SKUA_PCI_CAP_MSIX + PCI_MSIX_PBA, 4),
			 SKUA_BAR_MSIX_PBA | SKUA_BAR_REGS);
	wr(SKUA_PCI_CAP_MSIX + PCI_MSIX_FLAGS, 0xffff, 2);
	assert_int_equal(rd(SKUA_PCI_CAP_MSIX + PCI_MSIX_FLAGS, 2),
			 PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL | 16);
	skua_pci_init(&pci, &cfg);
	assert_int_equal(skua_pci_msix_vectors(&pci), SKUA_MSIX_VECTORS_DEFAULT);
	cfg.msix_vectors = 1u << 31;
	skua_pci_init(&pci, &cfg);
	assert_int_equal(skua_pci_msix_vectors(&pci), SKUA_MSIX_VECTORS_MAX);
}

/* D3hot takes the bus away, D1 and D2 do not exist, and COMMAND survives. */
static void test_power(void **state)
{
	const unsigned int ctrl = SKUA_PCI_CAP_PM + PCI_PM_CTRL;

	(void)state;
	wr(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
	assert_int_equal(wr(ctrl, 1, 2), 0);
	assert_int_equal(rd(ctrl, 2), PCI_PM_CTRL_NO_SOFT_RESET);
	assert_int_equal(wr(ctrl, 3, 2), SKUA_PCI_EV_POWER | SKUA_PCI_EV_MASTER);
	assert_int_equal(rd(ctrl, 2), PCI_PM_CTRL_NO_SOFT_RESET | 3);
	assert_false(skua_pci_bus_master(&pci));
	assert_false(skua_pci_mem_enabled(&pci));
	assert_int_equal(wr(ctrl, 2, 2), 0);
	assert_int_equal(rd(ctrl, 2) & PCI_PM_CTRL_STATE_MASK, 3);
	assert_int_equal(wr(ctrl, 0, 2), SKUA_PCI_EV_POWER | SKUA_PCI_EV_MASTER);
	assert_true(skua_pci_bus_master(&pci));
}

static void test_flr(void **state)
{
	const unsigned int ctl = SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL;
	const unsigned int aer = SKUA_PCI_ECAP_AER;

	(void)state;
	assert_true(rd(SKUA_PCI_CAP_EXP + PCI_EXP_DEVCAP, 4) & PCI_EXP_DEVCAP_FLR);
	wr(ctl, rd(ctl, 2) | 0x40, 2);
	wr(aer + PCI_ERR_UNCOR_MASK, PCI_ERR_UNC_POISON_TLP, 4);
	wr(PCI_COMMAND, PCI_COMMAND_MASTER, 2);
	assert_int_equal(wr(ctl, rd(ctl, 2) | PCI_EXP_DEVCTL_BCR_FLR, 2), SKUA_PCI_EV_FLR);
	assert_int_equal(rd(ctl, 2) & PCI_EXP_DEVCTL_BCR_FLR, 0);
	/* The write asks; the reset is another call. */
	assert_true(skua_pci_bus_master(&pci));
	assert_int_equal(wr(ctl + 1, 0x80, 1), SKUA_PCI_EV_FLR);
	assert_int_equal(wr(ctl, 0xff, 1), 0);
	wr(ctl, 0x40, 1);

	skua_pci_reset(&pci, SKUA_RESET_FLR);
	assert_false(skua_pci_bus_master(&pci));
	assert_int_equal(rd(ctl, 2) & PCI_EXP_DEVCTL_PAYLOAD, 0x40);
	assert_int_equal(rd(aer + PCI_ERR_UNCOR_MASK, 4), PCI_ERR_UNC_POISON_TLP);
	skua_pci_reset(&pci, SKUA_RESET_POWER);
	assert_int_equal(rd(ctl, 2) & PCI_EXP_DEVCTL_PAYLOAD, 0);
	assert_int_equal(rd(aer + PCI_ERR_UNCOR_MASK, 4), 0);
}

static void test_w1c(void **state)
{
	(void)state;
	pci.cfg[PCI_STATUS + 1] |= PCI_STATUS_DETECTED_PARITY >> 8;
	wr(PCI_STATUS, 0, 2);
	assert_int_equal(rd(PCI_STATUS, 2), PCI_STATUS_CAP_LIST | PCI_STATUS_DETECTED_PARITY);
	wr(PCI_STATUS, PCI_STATUS_DETECTED_PARITY, 2);
	assert_int_equal(rd(PCI_STATUS, 2), PCI_STATUS_CAP_LIST);
}

static void test_bounds(void **state)
{
	uint8_t buf[16], zero[16] = { 0 };
	struct skua_pci before;

	(void)state;
	memset(buf, 0xee, sizeof(buf));
	skua_pci_read(&pci, SKUA_PCI_CFG_SIZE - 4, buf, sizeof(buf));
	assert_memory_equal(buf, zero, sizeof(buf));
	memset(buf, 0xee, sizeof(buf));
	skua_pci_read(&pci, UINT32_MAX, buf, sizeof(buf));
	assert_memory_equal(buf, zero, sizeof(buf));
	before = pci;
	memset(buf, 0xff, sizeof(buf));
	assert_int_equal(skua_pci_write(&pci, SKUA_PCI_CFG_SIZE - 4, buf, sizeof(buf)), 0);
	assert_int_equal(skua_pci_write(&pci, UINT32_MAX - 2, buf, sizeof(buf)), 0);
	assert_memory_equal(&before, &pci, sizeof(pci));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_identity, setup),
		cmocka_unit_test_setup(test_masks, setup),
		cmocka_unit_test_setup(test_command, setup),
		cmocka_unit_test_setup(test_bars, setup),
		cmocka_unit_test_setup(test_capability_lists, setup),
		cmocka_unit_test_setup(test_msix, setup),
		cmocka_unit_test_setup(test_power, setup),
		cmocka_unit_test_setup(test_flr, setup),
		cmocka_unit_test_setup(test_w1c, setup),
		cmocka_unit_test_setup(test_bounds, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
