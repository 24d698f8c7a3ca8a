/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TCP frames for tests of merging, made, cut and checked by nothing of the device.
 */
#ifndef SKUA_TEST_TCP_FRAMES_H
#define SKUA_TEST_TCP_FRAMES_H

#include "eth_test.h"

struct flow {
	bool v6, stamp, tagged;
	uint16_t port, id;
	uint32_t seq;
};

static inline uint32_t add16(uint32_t sum, const uint8_t *p, size_t len)
{
	for (; len > 1; len -= 2, p += 2)
		sum += (uint32_t)p[0] << 8 | p[1];
	sum += len ? (uint32_t)p[0] << 8 : 0;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static inline size_t l3_of(const uint8_t *p)
{
	return be16_get(p + 12) == 0x8100 ? 18 : 14;
}

static inline bool is_v6(const uint8_t *p)
{
	return p[l3_of(p)] >> 4 == 6;
}

static inline size_t l4_of(const uint8_t *p)
{
	const uint8_t *ip = p + l3_of(p);

	/* One extension header at most, of destination options */
	return l3_of(p) + (is_v6(p) ? 40 + (ip[6] == 60 ? 8 : 0) : (ip[0] & 15) * 4u);
}

static inline uint32_t pseudo(const uint8_t *p, size_t len)
{
	const uint8_t *ip = p + l3_of(p);
	uint8_t tail[4] = { 0, 6, (uint8_t)(len >> 8), (uint8_t)len };
	uint32_t sum = is_v6(p) ? add16(0, ip + 8, 32) : add16(0, ip + 12, 8);

	return add16(sum, tail, 4);
}

static inline void fill_ip(uint8_t *p)
{
	uint8_t *ip = p + l3_of(p);

	if (is_v6(p))
		return;
	be16_put(ip + 10, 0);
	be16_put(ip + 10, ~add16(0, ip, (ip[0] & 15) * 4u));
}

/* Lengths and checksums of a frame of @len bytes. */
static inline void fill(uint8_t *p, size_t len)
{
	size_t l3 = l3_of(p), l4 = l4_of(p);

	be16_put(p + l3 + (is_v6(p) ? 4 : 2), len - l3 - (is_v6(p) ? 40 : 0));
	fill_ip(p);
	be16_put(p + l4 + 16, 0);
	be16_put(p + l4 + 16, ~add16(pseudo(p, len - l4), p + l4, len - l4));
}

/* The next segment of a flow. */
static inline size_t segment(uint8_t *p, struct flow *f, size_t payload, uint8_t flags)
{
	size_t l3 = f->tagged ? 18 : 14, l4 = l3 + (f->v6 ? 40 : 20);
	size_t hdr = l4 + 20 + (f->stamp ? 12 : 0);
	uint8_t *ip = p + l3, *t = p + l4;

	memset(p, 0, hdr);
	memcpy(p, own, 6);
	memcpy(p + 6, peer, 6);
	if (f->tagged)
		be32_put(p + 12, 0x81002fff);
	be16_put(p + l3 - 2, f->v6 ? ETH_TYPE_IPV6 : ETH_TYPE_IPV4);
	if (f->v6) {
		ip[0] = 0x60;
		ip[6] = 6;
		ip[7] = 64;
		memcpy(ip + 8, (uint8_t [2]){ 0xfd, 2 }, 2);
		memcpy(ip + 24, (uint8_t [2]){ 0xfd, 1 }, 2);
	} else {
		ip[0] = 0x45;
		be16_put(ip + 4, f->id++);
		ip[6] = 0x40;
		ip[8] = 64;
		ip[9] = 6;
		memcpy(ip + 12, (uint8_t [8]){ 10, 0, 0, 2, 10, 0, 0, 1 }, 8);
	}
	be16_put(t, f->port);
	be16_put(t + 2, 80);
	be32_put(t + 4, f->seq);
	be32_put(t + 8, 0x12345678);
	t[12] = (hdr - l4) / 4 << 4;
	t[13] = flags;
	be16_put(t + 14, 4096);
	if (f->stamp) {
		be32_put(t + 20, 0x0101080a);
		be32_put(t + 24, 77);
		be32_put(t + 28, 78);
	}
	for (size_t i = 0; i < payload; i++)
		p[hdr + i] = (uint8_t)((f->seq + i) * 7 + (f->seq + i) / 251);
	f->seq += payload;
	fill(p, hdr + payload);
	return hdr + payload;
}

/**
 * struct merged - a merged frame, or one that is not
 * @segs: frames that came
 * @size: payload of each but the last
 * @hdr: bytes of headers, without a tag that was taken out
 * @len: its bytes
 */
struct merged {
	uint32_t segs, size, hdr, len;
};

/*
 * Segment @i of a merged frame as it must have come, without its tag; its length. @first is
 * the memory of the first receive WQE, @own that of the segment's.
 */
static inline size_t cut_segment(const struct merged *m, const uint8_t *first, const uint8_t *own,
				 uint32_t i, uint8_t *out)
{
	size_t hdr = m->hdr, n, l4;

	if (m->segs == 1) {
		memcpy(out, first, m->len);
		return m->len;
	}
	memcpy(out, first, hdr);
	n = i == m->segs - 1 ? m->len - hdr - i * m->size : m->size;
	memcpy(out + hdr, i ? own : first + hdr, n);
	l4 = l4_of(out);
	be32_put(out + l4 + 4, be32_get(out + l4 + 4) + i * m->size);
	if (i != m->segs - 1)
		out[l4 + 13] &= ~TCP_PSH;
	if (!is_v6(out))
		be16_put(out + l3_of(out) + 4, be16_get(out + l3_of(out) + 4) + i);
	fill(out, hdr + n);
	return hdr + n;
}

/*
 * What is wrong with the headers @p of a merged frame, which are to be those of one that
 * software hands over to be cut. NULL: nothing.
 */
static inline const char *whole_fault(const struct merged *m, const uint8_t *p)
{
	size_t l3 = l3_of(p), l4 = l4_of(p);

	if (m->len <= m->hdr + (m->segs - 1) * m->size || m->len > m->hdr + m->segs * m->size)
		return "merged: another number of bytes than of frames";
	if (be16_get(p + l3 + (is_v6(p) ? 4 : 2)) != m->len - (is_v6(p) ? l4 : l3))
		return "merged: length of the datagram";
	if (!is_v6(p) && add16(0, p + l3, 20) != 0xffff)
		return "merged: checksum of the IPv4 header";
	if (be16_get(p + l4 + 16) != pseudo(p, m->len - l4))
		return "merged: checksum of the pseudo header";
	if (m->hdr != l4 + (p[l4 + 12] >> 4) * 4u)
		return "merged: bytes of headers";
	return NULL;
}

#endif /* SKUA_TEST_TCP_FRAMES_H */
