// SPDX-License-Identifier: GPL-2.0
/*
 * Configuration space: a type 0 header, PM, MSI-X and PCI Express capabilities,
 * and AER and the serial number in the extended space. Register numbers and
 * bits come from the UAPI header, so that both sides of the bus read one list.
 */
#include <string.h>

#include "pci.h"

/* The link we claim: 16 GT/s (speed code 4), 16 lanes, 2.5 to 16 GT/s supported. */
#define LINK_SPEED		4
#define LINK_WIDTH		16
#define LINK_SPEEDS_SUPPORTED	0x1e

/* Codes of the maximum payload (128 << n) and read request sizes. */
#define PAYLOAD_512		2
#define READRQ_512		(2 << 12)

/* Error bits of an endpoint without ECRC generation, and their severities. */
#define AER_UNCOR	(PCI_ERR_UNC_DLP | PCI_ERR_UNC_POISON_TLP | PCI_ERR_UNC_FCP | \
			 PCI_ERR_UNC_COMP_TIME | PCI_ERR_UNC_COMP_ABORT | PCI_ERR_UNC_UNX_COMP | \
			 PCI_ERR_UNC_RX_OVER | PCI_ERR_UNC_MALF_TLP | PCI_ERR_UNC_UNSUP | \
			 PCI_ERR_UNC_INTN)
#define AER_FATAL	(PCI_ERR_UNC_DLP | PCI_ERR_UNC_FCP | PCI_ERR_UNC_RX_OVER | \
			 PCI_ERR_UNC_MALF_TLP | PCI_ERR_UNC_INTN)
#define AER_COR		(PCI_ERR_COR_RCVR | PCI_ERR_COR_BAD_TLP | PCI_ERR_COR_BAD_DLLP | \
			 PCI_ERR_COR_REP_ROLL | PCI_ERR_COR_REP_TIMER | PCI_ERR_COR_ADV_NFAT | \
			 PCI_ERR_COR_INTERNAL)
#define AER_COR_MASKED	(PCI_ERR_COR_ADV_NFAT | PCI_ERR_COR_INTERNAL)

static void put(uint8_t *space, unsigned int off, unsigned int bytes, uint64_t val)
{
	while (bytes--) {
		space[off++] = (uint8_t)val;
		val >>= 8;
	}
}

static uint32_t get(const uint8_t *space, unsigned int off, unsigned int bytes)
{
	uint32_t val = 0;

	while (bytes--)
		val = val << 8 | space[off + bytes];
	return val;
}

/* One register: its value after power on, and the bits software may write. */
static void reg(struct skua_pci *pci, unsigned int off, unsigned int bytes, uint64_t init,
		uint64_t rw)
{
	put(pci->init, off, bytes, init);
	put(pci->rw, off, bytes, rw);
}

static void reg_w1c(struct skua_pci *pci, unsigned int off, unsigned int bytes, uint64_t init,
		    uint64_t w1c)
{
	put(pci->init, off, bytes, init);
	put(pci->w1c, off, bytes, w1c);
}

static void sticky(struct skua_pci *pci, unsigned int off, unsigned int bytes, uint64_t bits)
{
	put(pci->sticky, off, bytes, bits);
}

/*
 * A 64-bit memory BAR: the address bits above its size are writable. The host bridge
 * has the register that counts, and knows of no function level reset: software reads
 * from there the address that it wrote, and does not write it again.
 */
static void bar64(struct skua_pci *pci, unsigned int bar, uint64_t size, uint32_t type)
{
	reg(pci, PCI_BASE_ADDRESS_0 + 4 * bar, 8, type | PCI_BASE_ADDRESS_MEM_TYPE_64,
	    ~(size - 1));
	sticky(pci, PCI_BASE_ADDRESS_0 + 4 * bar, 8, ~(size - 1));
}

static void init_header(struct skua_pci *pci)
{
	reg(pci, PCI_VENDOR_ID, 2, SKUA_PCI_VENDOR_ID, 0);
	reg(pci, PCI_DEVICE_ID, 2, SKUA_PCI_DEVICE_ID, 0);
	reg(pci, PCI_COMMAND, 2, 0,
	    PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY | PCI_COMMAND_SERR |
	    PCI_COMMAND_INTX_DISABLE);
	reg_w1c(pci, PCI_STATUS, 2, PCI_STATUS_CAP_LIST,
		PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT | PCI_STATUS_REC_TARGET_ABORT |
		PCI_STATUS_REC_MASTER_ABORT | PCI_STATUS_SIG_SYSTEM_ERROR |
		PCI_STATUS_DETECTED_PARITY);
	reg(pci, PCI_REVISION_ID, 1, SKUA_PCI_REVISION, 0);
	reg(pci, PCI_CLASS_PROG, 3, SKUA_PCI_CLASS, 0);
	reg(pci, PCI_CACHE_LINE_SIZE, 1, 0, 0xff);
	bar64(pci, SKUA_BAR_REGS, SKUA_BAR_REGS_SIZE, 0);
	bar64(pci, SKUA_BAR_UAR, SKUA_BAR_UAR_SIZE, PCI_BASE_ADDRESS_MEM_PREFETCH);
	bar64(pci, SKUA_BAR_DM, SKUA_BAR_DM_SIZE, PCI_BASE_ADDRESS_MEM_PREFETCH);
	reg(pci, PCI_SUBSYSTEM_VENDOR_ID, 2, SKUA_PCI_SUBVENDOR_ID, 0);
	reg(pci, PCI_SUBSYSTEM_ID, 2, SKUA_PCI_SUBDEVICE_ID, 0);
	reg(pci, PCI_CAPABILITY_LIST, 1, SKUA_PCI_CAP_PM, 0);
	reg(pci, PCI_INTERRUPT_LINE, 1, 0, 0xff);
}

/* D0 and D3hot only; state is kept across D3hot, hence No_Soft_Reset. */
static void init_pm(struct skua_pci *pci)
{
	const unsigned int cap = SKUA_PCI_CAP_PM;

	reg(pci, cap + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_PM, 0);
	reg(pci, cap + PCI_CAP_LIST_NEXT, 1, SKUA_PCI_CAP_MSIX, 0);
	reg(pci, cap + PCI_PM_PMC, 2, 3, 0);
	reg(pci, cap + PCI_PM_CTRL, 2, PCI_PM_CTRL_NO_SOFT_RESET, PCI_PM_CTRL_STATE_MASK);
}

static void init_msix(struct skua_pci *pci, unsigned int vectors)
{
	const unsigned int cap = SKUA_PCI_CAP_MSIX;

	reg(pci, cap + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_MSIX, 0);
	reg(pci, cap + PCI_CAP_LIST_NEXT, 1, SKUA_PCI_CAP_EXP, 0);
	reg(pci, cap + PCI_MSIX_FLAGS, 2, vectors - 1,
	    PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	reg(pci, cap + PCI_MSIX_TABLE, 4, SKUA_BAR_MSIX_TABLE | SKUA_BAR_REGS, 0);
	reg(pci, cap + PCI_MSIX_PBA, 4, SKUA_BAR_MSIX_PBA | SKUA_BAR_REGS, 0);
}

static void init_exp_device(struct skua_pci *pci)
{
	const unsigned int cap = SKUA_PCI_CAP_EXP;

	reg(pci, cap + PCI_CAP_LIST_ID, 1, PCI_CAP_ID_EXP, 0);
	reg(pci, cap + PCI_CAP_LIST_NEXT, 1, 0, 0);
	reg(pci, cap + PCI_EXP_FLAGS, 2, 2 | PCI_EXP_TYPE_ENDPOINT << 4, 0);
	reg(pci, cap + PCI_EXP_DEVCAP, 4,
	    PAYLOAD_512 | PCI_EXP_DEVCAP_EXT_TAG | PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_FLR, 0);
	/* Initiate FLR is write-only: not stored, see skua_pci_write(). */
	reg(pci, cap + PCI_EXP_DEVCTL, 2,
	    PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | READRQ_512,
	    PCI_EXP_DEVCTL_CERE | PCI_EXP_DEVCTL_NFERE | PCI_EXP_DEVCTL_FERE |
	    PCI_EXP_DEVCTL_URRE | PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_PAYLOAD |
	    PCI_EXP_DEVCTL_EXT_TAG | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ);
	sticky(pci, cap + PCI_EXP_DEVCTL, 2, PCI_EXP_DEVCTL_PAYLOAD);
	reg_w1c(pci, cap + PCI_EXP_DEVSTA, 2, 0,
		PCI_EXP_DEVSTA_CED | PCI_EXP_DEVSTA_NFED | PCI_EXP_DEVSTA_FED |
		PCI_EXP_DEVSTA_URD);
	reg(pci, cap + PCI_EXP_DEVCAP2, 4, PCI_EXP_DEVCAP2_COMP_TMOUT_DIS, 0);
	reg(pci, cap + PCI_EXP_DEVCTL2, 2, 0, PCI_EXP_DEVCTL2_COMP_TMOUT_DIS);
}

static void init_exp_link(struct skua_pci *pci)
{
	const unsigned int cap = SKUA_PCI_CAP_EXP;
	const unsigned int lnkctl = PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC | PCI_EXP_LNKCTL_ES;

	reg(pci, cap + PCI_EXP_LNKCAP, 4, LINK_SPEED | LINK_WIDTH << 4, 0);
	reg(pci, cap + PCI_EXP_LNKCTL, 2, 0, lnkctl);
	reg(pci, cap + PCI_EXP_LNKSTA, 2, LINK_SPEED | LINK_WIDTH << 4 | PCI_EXP_LNKSTA_SLC, 0);
	reg(pci, cap + PCI_EXP_LNKCAP2, 4, LINK_SPEEDS_SUPPORTED, 0);
	reg(pci, cap + PCI_EXP_LNKCTL2, 2, LINK_SPEED, PCI_EXP_LNKCTL2_TLS);
	/* A function level reset leaves the link alone. */
	sticky(pci, cap + PCI_EXP_LNKCTL, 2, lnkctl);
	sticky(pci, cap + PCI_EXP_LNKCTL2, 2, PCI_EXP_LNKCTL2_TLS);
}

static void init_extended(struct skua_pci *pci, uint64_t serial)
{
	const unsigned int aer = SKUA_PCI_ECAP_AER;
	const unsigned int dsn = SKUA_PCI_ECAP_DSN;

	reg(pci, aer, 4, PCI_EXT_CAP_ID_ERR | 2 << 16 | (uint32_t)dsn << 20, 0);
	reg_w1c(pci, aer + PCI_ERR_UNCOR_STATUS, 4, 0, AER_UNCOR);
	reg(pci, aer + PCI_ERR_UNCOR_MASK, 4, 0, AER_UNCOR);
	reg(pci, aer + PCI_ERR_UNCOR_SEVER, 4, AER_FATAL, AER_UNCOR);
	reg_w1c(pci, aer + PCI_ERR_COR_STATUS, 4, 0, AER_COR);
	reg(pci, aer + PCI_ERR_COR_MASK, 4, AER_COR_MASKED, AER_COR);
	sticky(pci, aer + PCI_ERR_UNCOR_STATUS, 4, AER_UNCOR);
	sticky(pci, aer + PCI_ERR_UNCOR_MASK, 4, AER_UNCOR);
	sticky(pci, aer + PCI_ERR_UNCOR_SEVER, 4, AER_UNCOR);
	sticky(pci, aer + PCI_ERR_COR_STATUS, 4, AER_COR);
	sticky(pci, aer + PCI_ERR_COR_MASK, 4, AER_COR);

	reg(pci, dsn, 4, PCI_EXT_CAP_ID_DSN | 1 << 16, 0);
	reg(pci, dsn + 4, 8, serial, 0);
}

void skua_pci_init(struct skua_pci *pci, const struct skua_dev_cfg *cfg)
{
	unsigned int vectors = cfg->msix_vectors ? cfg->msix_vectors : SKUA_MSIX_VECTORS_DEFAULT;

	if (vectors > SKUA_MSIX_VECTORS_MAX)
		vectors = SKUA_MSIX_VECTORS_MAX;

	memset(pci, 0, sizeof(*pci));
	init_header(pci);
	init_pm(pci);
	init_msix(pci, vectors);
	init_exp_device(pci);
	init_exp_link(pci);
	init_extended(pci, cfg->serial);
	skua_pci_reset(pci, SKUA_RESET_POWER);
}

void skua_pci_reset(struct skua_pci *pci, enum skua_reset_kind kind)
{
	for (unsigned int i = 0; i < SKUA_PCI_CFG_SIZE; i++) {
		uint8_t keep = kind == SKUA_RESET_FLR ? pci->sticky[i] : 0;

		pci->cfg[i] = (pci->cfg[i] & keep) | (pci->init[i] & ~keep);
	}
}

void skua_pci_read(const struct skua_pci *pci, unsigned int off, void *buf, size_t len)
{
	size_t in = 0;

	if (off < SKUA_PCI_CFG_SIZE)
		in = len < SKUA_PCI_CFG_SIZE - off ? len : SKUA_PCI_CFG_SIZE - off;
	if (in)
		memcpy(buf, pci->cfg + off, in);
	if (len > in)
		memset((uint8_t *)buf + in, 0, len - in);
}

/* A write of a power state that the function lacks changes nothing. */
static void fix_power_state(struct skua_pci *pci, unsigned int old)
{
	uint8_t *ctrl = &pci->cfg[SKUA_PCI_CAP_PM + PCI_PM_CTRL];
	unsigned int new = skua_pci_power_state(pci);

	if (new != 0 && new != PCI_PM_CTRL_STATE_MASK)
		*ctrl = (*ctrl & ~PCI_PM_CTRL_STATE_MASK) | old;
}

unsigned int skua_pci_write(struct skua_pci *pci, unsigned int off, const void *buf, size_t len)
{
	/* Initiate FLR is bit 15 of Device Control: the high bit of its second byte. */
	const unsigned int flr = SKUA_PCI_CAP_EXP + PCI_EXP_DEVCTL + 1;
	const uint8_t *val = buf;
	bool master = skua_pci_bus_master(pci);
	unsigned int state = skua_pci_power_state(pci);
	unsigned int events = 0;

	for (size_t i = 0; i < len && off < SKUA_PCI_CFG_SIZE; i++, off++) {
		uint8_t rw = pci->rw[off];

		pci->cfg[off] = (pci->cfg[off] & ~rw) | (val[i] & rw);
		pci->cfg[off] &= ~(val[i] & pci->w1c[off]);
		if (off == flr && (val[i] & PCI_EXP_DEVCTL_BCR_FLR >> 8))
			events |= SKUA_PCI_EV_FLR;
	}
	fix_power_state(pci, state);

	if (skua_pci_bus_master(pci) != master)
		events |= SKUA_PCI_EV_MASTER;
	if (skua_pci_power_state(pci) != state)
		events |= SKUA_PCI_EV_POWER;
	return events;
}

uint64_t skua_pci_bar(const struct skua_pci *pci, unsigned int bar)
{
	unsigned int reg = PCI_BASE_ADDRESS_0 + 4 * bar;

	return ((uint64_t)get(pci->cfg, reg + 4, 4) << 32 | get(pci->cfg, reg, 4)) &
	       ~0xfull;
}

unsigned int skua_pci_msix_vectors(const struct skua_pci *pci)
{
	return (get(pci->cfg, SKUA_PCI_CAP_MSIX + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_QSIZE) + 1;
}
