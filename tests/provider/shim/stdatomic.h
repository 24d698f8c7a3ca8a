/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * The compiler's <stdatomic.h>, with full fences shown to the fake device; see
 * util/udma_barrier.h.
 */
#ifndef SKUA_SHIM_STDATOMIC_H
#define SKUA_SHIM_STDATOMIC_H

#include_next <stdatomic.h>

void fake_fence(int order);

#undef atomic_thread_fence
#define atomic_thread_fence(order)	(__atomic_thread_fence(order), fake_fence(order))

#endif /* SKUA_SHIM_STDATOMIC_H */
