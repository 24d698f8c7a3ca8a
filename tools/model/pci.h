/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Configuration space of one function: its registers, which bits software may write, and what a
 * write requests of the device. A write returns these requests as flags, and the device core
 * carries them out.
 */
#ifndef SKUA_MODEL_PCI_H
#define SKUA_MODEL_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/pci_regs.h>

#include "model.h"
#include <skua/hw/pci.h>

/* MSI-X table size when the user names none. */
#define SKUA_MSIX_VECTORS_DEFAULT	32

/* Capability layout. Drivers walk the list; the tests check these places. */
#define SKUA_PCI_CAP_PM		0x40
#define SKUA_PCI_CAP_MSIX	0x50
#define SKUA_PCI_CAP_EXP	0x60
#define SKUA_PCI_ECAP_AER	0x100
#define SKUA_PCI_ECAP_DSN	0x150

/* Requests of a configuration write. */
#define SKUA_PCI_EV_FLR		(1u << 0)	/* Initiate Function Level Reset was written */
#define SKUA_PCI_EV_MASTER	(1u << 1)	/* skua_pci_bus_master() changed */
#define SKUA_PCI_EV_POWER	(1u << 2)	/* power state changed */

/**
 * struct skua_pci - configuration space of one function
 * @cfg: what a read returns
 * @init: value after power on
 * @rw: bits that software writes
 * @w1c: bits that software clears by writing one
 * @sticky: bits that survive a function level reset
 */
struct skua_pci {
	uint8_t cfg[SKUA_PCI_CFG_SIZE];
	uint8_t init[SKUA_PCI_CFG_SIZE];
	uint8_t rw[SKUA_PCI_CFG_SIZE];
	uint8_t w1c[SKUA_PCI_CFG_SIZE];
	uint8_t sticky[SKUA_PCI_CFG_SIZE];
};

void skua_pci_init(struct skua_pci *pci, const struct skua_dev_cfg *cfg);
void skua_pci_reset(struct skua_pci *pci, enum skua_reset_kind kind);

/* Any offset and length: bytes beyond the space read as zero and drop writes. */
void skua_pci_read(const struct skua_pci *pci, unsigned int off, void *buf, size_t len);
unsigned int skua_pci_write(struct skua_pci *pci, unsigned int off, const void *buf, size_t len);

/* D0 is 0. */
static inline unsigned int skua_pci_power_state(const struct skua_pci *pci)
{
	return pci->cfg[SKUA_PCI_CAP_PM + PCI_PM_CTRL] & PCI_PM_CTRL_STATE_MASK;
}

/* The function may send requests and messages: Bus Master Enable, and in D0. */
static inline bool skua_pci_bus_master(const struct skua_pci *pci)
{
	return !skua_pci_power_state(pci) && pci->cfg[PCI_COMMAND] & PCI_COMMAND_MASTER;
}

/* The function answers at its BARs: Memory Space Enable, and in D0. */
static inline bool skua_pci_mem_enabled(const struct skua_pci *pci)
{
	return !skua_pci_power_state(pci) && pci->cfg[PCI_COMMAND] & PCI_COMMAND_MEMORY;
}

/* Bus address of a 64-bit BAR; 0: it has none yet. */
uint64_t skua_pci_bar(const struct skua_pci *pci, unsigned int bar);
/* Size of the MSI-X table as told to the host. */
unsigned int skua_pci_msix_vectors(const struct skua_pci *pci);

#endif /* SKUA_MODEL_PCI_H */
