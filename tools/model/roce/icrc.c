// SPDX-License-Identifier: GPL-2.0
/*
 * The invariant CRC of RoCEv2, and the CRC-32 below it.
 *
 * Each packet is summed twice (sender and receiver), which makes this the most
 * expensive arithmetic of the model. Long runs are therefore folded 64 bytes at
 * a time by carry-less multiplication where the processor has it; the rest, and
 * other processors, take eight bytes at a time by table.
 */
#include <string.h>

#include "hdr.h"
#include "icrc.h"

#define CRC32_POLY	0xedb88320u	/* bit-reversed 0x04c11db7 */

static uint32_t crc_table[8][256];

static void table_init(void)
{
	unsigned int i, k;

	for (i = 0; i < 256; i++) {
		uint32_t c = i;

		for (k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? CRC32_POLY : 0);
		crc_table[0][i] = c;
	}
	for (k = 1; k < 8; k++)
		for (i = 0; i < 256; i++) {
			uint32_t c = crc_table[k - 1][i];

			crc_table[k][i] = crc_table[0][c & 0xff] ^ c >> 8;
		}
}

uint32_t skua_crc32_table(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (; len >= 8; len -= 8, p += 8)
		crc = crc_table[7][(uint8_t)crc ^ p[0]] ^
		      crc_table[6][(uint8_t)(crc >> 8) ^ p[1]] ^
		      crc_table[5][(uint8_t)(crc >> 16) ^ p[2]] ^
		      crc_table[4][crc >> 24 ^ p[3]] ^
		      crc_table[3][p[4]] ^ crc_table[2][p[5]] ^
		      crc_table[1][p[6]] ^ crc_table[0][p[7]];
	while (len--)
		crc = crc_table[0][(uint8_t)crc ^ *p++] ^ crc >> 8;
	return crc;
}

#ifdef __x86_64__
#include <immintrin.h>

/* Below this a run is not worth the set-up. */
#define FOLD_MIN	128

/* fold_k[0]: over 512 bits, fold_k[1]: over 128. Low half first. */
static uint64_t fold_k[2][2];
static bool have_clmul;

/*
 * x^n mod P, bit-reversed, one place to the left: a carry-less product of two
 * reversed numbers comes out one place too low.
 */
static uint64_t xpow(unsigned int n)
{
	uint32_t r = 0x80000000u;	/* x^0, reversed */

	while (n--)
		r = r >> 1 ^ (r & 1 ? CRC32_POLY : 0);
	return (uint64_t)r << 1;
}

static void fold_init(void)
{
	/*
	 * The low half of a block is the earlier one and so 64 places further
	 * from the end; the 32-bit constants stand in the low half of their
	 * lane, which is worth another 32.
	 */
	fold_k[0][0] = xpow(512 + 32);
	fold_k[0][1] = xpow(512 - 32);
	fold_k[1][0] = xpow(128 + 32);
	fold_k[1][1] = xpow(128 - 32);
	__builtin_cpu_init();
	have_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse2");
}

__attribute__((target("pclmul,sse2")))
static inline __m128i fold(__m128i x, __m128i k, __m128i next)
{
	__m128i lo = _mm_clmulepi64_si128(x, k, 0x00);
	__m128i hi = _mm_clmulepi64_si128(x, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(lo, hi), next);
}

/*
 * Fold all whole blocks of 16 into one which has the same remainder, and leave
 * that one and the tail to the table.
 */
__attribute__((target("pclmul,sse2")))
static uint32_t crc32_fold(uint32_t crc, const uint8_t *p, size_t len)
{
	__m128i k = _mm_loadu_si128((const __m128i *)fold_k[0]);
	__m128i x[4];
	uint8_t last[16];
	unsigned int i;

	for (i = 0; i < 4; i++, p += 16)
		x[i] = _mm_loadu_si128((const __m128i *)p);
	x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
	for (len -= 64; len >= 64; len -= 64)
		for (i = 0; i < 4; i++, p += 16)
			x[i] = fold(x[i], k, _mm_loadu_si128((const __m128i *)p));

	k = _mm_loadu_si128((const __m128i *)fold_k[1]);
	for (i = 1; i < 4; i++)
		x[0] = fold(x[0], k, x[i]);
	for (; len >= 16; len -= 16, p += 16)
		x[0] = fold(x[0], k, _mm_loadu_si128((const __m128i *)p));

	_mm_storeu_si128((__m128i *)last, x[0]);
	return skua_crc32_table(skua_crc32_table(0, last, sizeof(last)), p, len);
}

uint32_t skua_crc32(uint32_t crc, const void *data, size_t len)
{
	if (len >= FOLD_MIN && have_clmul)
		return crc32_fold(crc, data, len);
	return skua_crc32_table(crc, data, len);
}
#else
static void fold_init(void)
{
}

uint32_t skua_crc32(uint32_t crc, const void *data, size_t len)
{
	return skua_crc32_table(crc, data, len);
}
#endif

__attribute__((constructor))
static void crc_init(void)
{
	table_init();
	fold_init();
}

uint32_t skua_icrc(const uint8_t *l3, bool ipv6, size_t len)
{
	/* Stand-in for the LRH, then the headers of which parts are masked. */
	uint8_t head[8 + sizeof(struct ipv6_hdr) + sizeof(struct udp_hdr) + sizeof(struct ib_bth)];
	size_t l3_len = ipv6 ? sizeof(struct ipv6_hdr) : sizeof(struct ipv4_hdr);
	size_t head_len = l3_len + sizeof(struct udp_hdr) + sizeof(struct ib_bth);
	struct udp_hdr *udp = (struct udp_hdr *)(head + 8 + l3_len);
	struct ib_bth *bth = (struct ib_bth *)(udp + 1);
	uint32_t crc;

	memset(head, 0xff, 8);
	memcpy(head + 8, l3, head_len);
	if (ipv6) {
		struct ipv6_hdr *ip6 = (struct ipv6_hdr *)(head + 8);

		ip6->ver_tc_flow[0] |= 0x0f;
		memset(ip6->ver_tc_flow + 1, 0xff, 3);
		ip6->hop_limit = 0xff;
	} else {
		struct ipv4_hdr *ip4 = (struct ipv4_hdr *)(head + 8);

		ip4->tos = 0xff;
		ip4->ttl = 0xff;
		memset(ip4->check, 0xff, sizeof(ip4->check));
	}
	memset(udp->check, 0xff, sizeof(udp->check));
	bth->resv8a = 0xff;

	crc = skua_crc32_table(0xffffffffu, head, 8 + head_len);
	return ~skua_crc32(crc, l3 + head_len, len - head_len);
}
