/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC of RoCEv2.
 */
#ifndef SKUA_ROCE_ICRC_H
#define SKUA_ROCE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The reflected CRC-32 of Ethernet, without the inversions before and after:
 * start with ~0, feed pieces in order, invert the last result.
 */
uint32_t skua_crc32(uint32_t crc, const void *data, size_t len);

/* The same by table alone; skua_crc32() takes the processor's help if it can. */
uint32_t skua_crc32_table(uint32_t crc, const void *data, size_t len);

/**
 * skua_icrc() - ICRC of a packet
 * @l3: its IPv4 (no options) or IPv6 (no extension headers) header
 * @ipv6: which of them
 * @len: bytes from @l3 up to the ICRC field: at least IP, UDP and BTH
 *
 * What routers may change counts as ones: TOS, TTL and header checksum, or
 * traffic class, flow label and hop limit; UDP checksum; the BTH byte with FECN
 * and BECN. Eight bytes of ones stand for the LRH which RoCE does not have.
 *
 * Return: the value for skua_icrc_put().
 */
uint32_t skua_icrc(const uint8_t *l3, bool ipv6, size_t len);

/* The field is little-endian, unlike everything else on the wire. */
static inline void skua_icrc_put(uint8_t *p, uint32_t icrc)
{
	p[0] = (uint8_t)icrc;
	p[1] = (uint8_t)(icrc >> 8);
	p[2] = (uint8_t)(icrc >> 16);
	p[3] = (uint8_t)(icrc >> 24);
}

static inline uint32_t skua_icrc_get(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

#endif /* SKUA_ROCE_ICRC_H */
