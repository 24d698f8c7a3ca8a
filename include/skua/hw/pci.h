/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: PCI identity and BAR map.
 *
 * The only place that knows these numbers. Driver, provider, device model and
 * tests include this file unchanged.
 */
#ifndef SKUA_HW_PCI_H
#define SKUA_HW_PCI_H

/* Provisional identifiers: not assigned by the PCI-SIG. */
#define SKUA_PCI_VENDOR_ID	0x1234
#define SKUA_PCI_DEVICE_ID	0x5ca0
#define SKUA_PCI_SUBVENDOR_ID	SKUA_PCI_VENDOR_ID
#define SKUA_PCI_SUBDEVICE_ID	0x0001
#define SKUA_PCI_REVISION	0x01
/* Base class network controller, sub-class Ethernet. */
#define SKUA_PCI_CLASS		0x020000

#define SKUA_PCI_CFG_SIZE	4096

/*
 * BAR 0 (32-bit register half 0/1, 64-bit, not prefetchable): registers, then
 * the MSI-X table and the pending bits, each in a page of its own so that a
 * system of 64 KiB pages may still map the registers apart.
 */
#define SKUA_BAR_REGS		0
#define SKUA_BAR_REGS_SIZE	0x40000
#define SKUA_BAR_MSIX_TABLE	0x10000
#define SKUA_BAR_MSIX_PBA	0x20000
#define SKUA_MSIX_VECTORS_MAX	64

/*
 * BAR 2 (64-bit, prefetchable): array of UAR pages, see doorbell.h. The page
 * unit is what the driver wrote to SKUA_REG_UAR_PAGE_SHIFT.
 */
#define SKUA_BAR_UAR		2
#define SKUA_BAR_UAR_SIZE	0x1000000

/* BAR 4 (64-bit, prefetchable): device memory. */
#define SKUA_BAR_DM		4
#define SKUA_BAR_DM_SIZE	0x100000

#endif /* SKUA_HW_PCI_H */
