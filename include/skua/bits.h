/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * One idiom for the fields of little-endian words, in the kernel and outside:
 * le32_get_bits(word, MASK), le32_encode_bits(value, MASK),
 * le32p_replace_bits(&word, value, MASK), and the le16/le64 twins.
 *
 * The kernel has these in <linux/bitfield.h>; this header gives user space
 * (provider, device model, tests) the same names. It also provides memcpy(), memset(),
 * likely(), READ_ONCE(), WRITE_ONCE() and dma_mb() for the ring code in this directory, so
 * that this is the only header with a distinction between kernel and user space.
 */
#ifndef SKUA_BITS_H
#define SKUA_BITS_H

#ifdef __KERNEL__

#include <asm/barrier.h>
#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/string.h>

#else /* !__KERNEL__ */

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

#ifndef BIT
#define BIT(n)			(1UL << (n))
#endif
#ifndef BIT_ULL
#define BIT_ULL(n)		(1ULL << (n))
#endif
#ifndef GENMASK
#define GENMASK(h, l)		((uint32_t)(((~0U) << (l)) & (~0U >> (31 - (h)))))
#endif
#ifndef GENMASK_ULL
#define GENMASK_ULL(h, l)	(((~0ULL) << (l)) & (~0ULL >> (63 - (h))))
#endif

#ifdef __CHECKER__
#define SKUA_FORCE		__attribute__((force))
#else
#define SKUA_FORCE
#endif

#define SKUA_BITS_MAKE(w)							\
static inline uint##w##_t skua_le##w(__le##w v)					\
{										\
	return le##w##toh((SKUA_FORCE uint##w##_t)v);				\
}										\
static inline __le##w skua_cpu_to_le##w(uint##w##_t v)				\
{										\
	return (SKUA_FORCE __le##w)htole##w(v);					\
}										\
static inline uint##w##_t le##w##_get_bits(__le##w v, uint##w##_t mask)		\
{										\
	return (uint##w##_t)((skua_le##w(v) & mask) / (mask & -mask));		\
}										\
static inline __le##w le##w##_encode_bits(uint##w##_t v, uint##w##_t mask)	\
{										\
	return skua_cpu_to_le##w((uint##w##_t)((v * (mask & -mask)) & mask));	\
}										\
static inline void le##w##p_replace_bits(__le##w *p, uint##w##_t v,		\
					 uint##w##_t mask)			\
{										\
	*p = skua_cpu_to_le##w((uint##w##_t)((skua_le##w(*p) & ~mask) |		\
			       ((v * (mask & -mask)) & mask)));			\
}

/* The same on words in host order. */
static inline __u32 u32_get_bits(__u32 v, __u32 mask)
{
	return (v & mask) / (mask & -mask);
}

static inline __u32 u32_encode_bits(__u32 v, __u32 mask)
{
	return (v * (mask & -mask)) & mask;
}

SKUA_BITS_MAKE(16)
SKUA_BITS_MAKE(32)
SKUA_BITS_MAKE(64)
#undef SKUA_BITS_MAKE

#ifndef le16_to_cpu
#define le16_to_cpu(v)		skua_le16(v)
#define le32_to_cpu(v)		skua_le32(v)
#define le64_to_cpu(v)		skua_le64(v)
#define cpu_to_le16(v)		skua_cpu_to_le16(v)
#define cpu_to_le32(v)		skua_cpu_to_le32(v)
#define cpu_to_le64(v)		skua_cpu_to_le64(v)
#endif

#ifndef READ_ONCE
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#endif
#ifndef WRITE_ONCE
#define WRITE_ONCE(x, v)	(*(volatile __typeof__(x) *)&(x) = (v))
#endif
/* Orders all accesses to memory that a device shares: stores before later loads, too. */
#ifndef dma_mb
#ifdef __aarch64__
#define dma_mb()		__asm__ volatile("dmb osh" : : : "memory")
#else
#define dma_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#endif
#ifndef likely
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#endif

#endif /* !__KERNEL__ */
#endif /* SKUA_BITS_H */
