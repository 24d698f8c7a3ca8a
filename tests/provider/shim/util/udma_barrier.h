/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * rdma-core's barriers and dma_mb(), each of them shown to the fake device: a test can then look at
 * what memory holds at that point, or change it as a device would.
 */
#ifndef SKUA_SHIM_UDMA_BARRIER_H
#define SKUA_SHIM_UDMA_BARRIER_H

#include_next <util/udma_barrier.h>

#include <skua/bits.h>

enum fake_barrier {
	FAKE_TO_DEVICE,
	FAKE_FROM_DEVICE,
	FAKE_FENCE,
	FAKE_FLUSH_WRITES,
};

void fake_barrier(enum fake_barrier kind);

static inline void shim_to_device(void)
{
	udma_to_device_barrier();
	fake_barrier(FAKE_TO_DEVICE);
}

static inline void shim_from_device(void)
{
	fake_barrier(FAKE_FROM_DEVICE);
	udma_from_device_barrier();
}

static inline void shim_mb(void)
{
	dma_mb();
	fake_barrier(FAKE_FENCE);
}

static inline void shim_flush_writes(void)
{
	mmio_flush_writes();
	fake_barrier(FAKE_FLUSH_WRITES);
}

#undef udma_to_device_barrier
#undef udma_from_device_barrier
#undef mmio_flush_writes
#undef dma_mb
#define udma_to_device_barrier()	shim_to_device()
#define udma_from_device_barrier()	shim_from_device()
#define mmio_flush_writes()		shim_flush_writes()
#define dma_mb()			shim_mb()

#endif /* SKUA_SHIM_UDMA_BARRIER_H */
