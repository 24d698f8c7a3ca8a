// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: waiting for a lock that another thread has.
 */
#include "skua.h"

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" : : : "memory");
#endif
}

void skua_lock_wait(struct skua_lock *l)
{
	do {
		/* Loads alone do not take the cache line away from the thread that has it. */
		while (atomic_load_explicit(&l->held, memory_order_relaxed))
			pause_cpu();
	} while (atomic_exchange_explicit(&l->held, true, memory_order_acquire));
}
