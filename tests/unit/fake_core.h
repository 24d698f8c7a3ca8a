/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device core small enough to see through, for tests of what surrounds one:
 * BAR bytes are memory, and a few places in BAR 4 make it use its host.
 */
#ifndef SKUA_TEST_FAKE_CORE_H
#define SKUA_TEST_FAKE_CORE_H

#include "model.h"
#include "pci.h"

#define FAKE_BAR_BYTES	0x1000

/* 8-byte writes at these places of BAR 4 make the device core act. */
#define FAKE_MSIX	0x00	/* raise vector */
#define FAKE_IOVA	0x08	/* bus address for the next two */
#define FAKE_DMA_WRITE	0x10	/* write the value there; result in err */
#define FAKE_DMA_READ	0x18	/* read 8 bytes there into word; result in err */
#define FAKE_TIMER	0x20	/* set the timer that many nanoseconds ahead */
#define FAKE_LEN	0x28	/* dma_read this many bytes (bounded) at the bus address */

struct skua_dev {
	struct skua_dev_cfg cfg;
	const struct skua_host_ops *host;
	void *host_priv;
	struct skua_pci pci;
	uint8_t bar[6][FAKE_BAR_BYTES];
	unsigned int writes;
	unsigned int resets;
	unsigned int flrs;
	unsigned int ticks;
	uint64_t iova;
	uint64_t word;
	uint64_t peer_at;	/* peers find @peer at this bus address, but not at 0 */
	uint64_t peer;
	int err;
};

/* For fuzzers: what a reset leaves, too, is as just made. */
void fake_core_clear(struct skua_dev *dev);

#endif /* SKUA_TEST_FAKE_CORE_H */
