/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * rdma-core's MMIO accessors, with the doorbells of the provider shown to the fake
 * device in the moment in which they are stored.
 */
#ifndef SKUA_SHIM_MMIO_H
#define SKUA_SHIM_MMIO_H

#include_next <util/mmio.h>

void fake_doorbell(void *addr, uint64_t le_word);

static inline void shim_write64_le(void *addr, __le64 word)
{
	mmio_write64_le(addr, word);
	fake_doorbell(addr, word);
}
#define mmio_write64_le(addr, word)	shim_write64_le(addr, word)

void fake_pushed(void *addr, const void *words);

static inline void shim_memcpy_x64(void *to, const void *from, size_t len)
{
	mmio_memcpy_x64(to, from, len);
	fake_pushed(to, from);
}
#undef mmio_memcpy_x64
#define mmio_memcpy_x64(to, from, len)	shim_memcpy_x64(to, from, len)

#endif /* SKUA_SHIM_MMIO_H */
