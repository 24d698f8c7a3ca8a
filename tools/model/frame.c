// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "frame.h"

/* Extension headers that may stand between IPv6 and the transport. */
#define IPV6_HOPOPTS	0
#define IPV6_ROUTING	43
#define IPV6_FRAGMENT	44
#define IPV6_DSTOPTS	60
#define IPV6_EXT_MAX	8

static void parse_l4(struct frame *f)
{
	const uint8_t *l4 = f->data + f->l4;
	uint32_t room = f->end - f->l4;

	if (f->fragment)
		return;
	if (f->proto == IP_PROTO_TCP && room >= sizeof(struct tcp_hdr)) {
		uint32_t hdr = (((const struct tcp_hdr *)l4)->doff >> 4) * 4u;

		f->tcp = hdr >= sizeof(struct tcp_hdr) && hdr <= room;
	} else if (f->proto == IP_PROTO_UDP && room >= sizeof(struct udp_hdr)) {
		uint16_t len = be16_get(((const struct udp_hdr *)l4)->len);

		f->udp = len >= sizeof(struct udp_hdr) && len <= room;
	}
}

static void parse_ipv4(struct frame *f, bool lso)
{
	const struct ipv4_hdr *ip = (const void *)(f->data + f->l3);
	uint32_t room = f->len - f->l3;
	uint32_t hdr, len;

	if (room < sizeof(*ip) || ip->ver_ihl >> 4 != 4)
		return;
	hdr = (ip->ver_ihl & 15) * 4u;
	len = lso ? room : be16_get(ip->tot_len);
	if (hdr < sizeof(*ip) || hdr > len || hdr > room)
		return;
	f->cut = len > room;
	if (f->cut)
		len = room;
	f->ipv4 = true;
	f->proto = ip->proto;
	f->fragment = be16_get(ip->frag_off) & (IPV4_MF | IPV4_OFFSET_MASK);
	f->l4 = f->l3 + hdr;
	f->end = f->l3 + len;
	parse_l4(f);
}

static void parse_ipv6(struct frame *f, bool lso)
{
	const struct ipv6_hdr *ip = (const void *)(f->data + f->l3);
	uint32_t room = f->len - f->l3;
	uint32_t len;

	if (room < sizeof(*ip) || ip->ver_tc_flow[0] >> 4 != 6)
		return;
	len = lso ? room - sizeof(*ip) : be16_get(ip->payload_len);
	f->cut = len > room - sizeof(*ip);
	if (f->cut)
		len = room - sizeof(*ip);
	f->ipv6 = true;
	f->proto = ip->next_hdr;
	f->l4 = f->l3 + sizeof(*ip);
	f->end = f->l4 + len;
	for (unsigned int i = 0; i < IPV6_EXT_MAX && f->end - f->l4 >= 8; i++) {
		const uint8_t *ext = f->data + f->l4;
		uint32_t size = ext[1] * 8u + 8;

		if (f->proto == IPV6_FRAGMENT) {
			f->fragment = true;
			size = 8;
		} else if (f->proto != IPV6_HOPOPTS && f->proto != IPV6_ROUTING &&
			   f->proto != IPV6_DSTOPTS) {
			break;
		}
		/* The final destination, which checksums are of, is in this header (RFC 8200, 8.1). */
		if (f->proto == IPV6_ROUTING && ext[3])
			break;
		if (size > f->end - f->l4)
			break;
		f->proto = ext[0];
		f->l4 += size;
	}
	parse_l4(f);
}

void frame_parse(struct frame *f, const void *data, size_t len, bool lso)
{
	memset(f, 0, sizeof(*f));
	f->data = data;
	f->len = len;
	f->l3 = ETH_HDR_LEN;
	f->type = be16_get(((const struct eth_hdr *)data)->type);
	if (f->type == ETH_TYPE_VLAN && len >= ETH_HDR_LEN + ETH_VLAN_LEN) {
		f->tagged = true;
		f->tci = be16_get(f->data + ETH_HDR_LEN);
		f->type = be16_get(f->data + ETH_HDR_LEN + 2);
		f->l3 += ETH_VLAN_LEN;
	}
	if (f->type == ETH_TYPE_IPV4)
		parse_ipv4(f, lso);
	else if (f->type == ETH_TYPE_IPV6)
		parse_ipv6(f, lso);
}

/* --- checksums: sums of 16-bit words in memory order, folded at the end --- */

static uint64_t sum(uint64_t acc, const uint8_t *p, size_t len)
{
	uint64_t word = 0;
	uint32_t half;

	/* Add 32 bits at a time; the carries accumulate in the upper half. */
	for (; len >= 4; len -= 4, p += 4) {
		memcpy(&half, p, 4);
		acc += half;
	}
	memcpy(&word, p, len);
	return acc + word;
}

static uint16_t fold(uint64_t acc)
{
	acc = (acc & 0xffffffff) + (acc >> 32);
	acc = (acc & 0xffffffff) + (acc >> 32);
	acc = (acc & 0xffff) + (acc >> 16);
	acc = (acc & 0xffff) + (acc >> 16);
	return (uint16_t)acc;
}

static uint64_t pseudo(const struct frame *f, uint32_t len)
{
	uint8_t tail[8] = { 0, 0, (uint8_t)(len >> 8), (uint8_t)len, 0, 0, 0, f->proto };
	const uint8_t *ip = f->data + f->l3;

	if (f->ipv4)
		return sum(sum(0, ((const struct ipv4_hdr *)ip)->saddr, 8), tail, 8);
	return sum(sum(0, ((const struct ipv6_hdr *)ip)->saddr, 32), tail, 8);
}

uint16_t frame_pseudo_sum(const struct frame *f, uint32_t len)
{
	return fold(pseudo(f, len));
}

/* Number of bytes that the TCP or UDP checksum covers. */
static uint32_t l4_len(const struct frame *f)
{
	if (f->udp)
		return be16_get(((const struct udp_hdr *)(f->data + f->l4))->len);
	return f->end - f->l4;
}

static uint16_t l4_sum(const struct frame *f)
{
	uint32_t len = l4_len(f);

	return fold(sum(pseudo(f, len), f->data + f->l4, len));
}

bool frame_l3_ok(const struct frame *f)
{
	return f->ipv4 && fold(sum(0, f->data + f->l3, (f->data[f->l3] & 15) * 4u)) == 0xffff;
}

bool frame_l4_has_csum(const struct frame *f)
{
	const struct udp_hdr *udp = (const void *)(f->data + f->l4);

	/* The checksum of a datagram that is cut cannot be verified. */
	return !f->cut && (f->tcp || (f->udp && be16_get(udp->check)));
}

bool frame_l4_ok(const struct frame *f)
{
	return frame_l4_has_csum(f) && l4_sum(f) == 0xffff;
}

bool frame_l3_fill(const struct frame *f, uint8_t *data)
{
	struct ipv4_hdr *ip = (void *)(data + f->l3);
	uint16_t csum;

	if (!f->ipv4 || f->cut)
		return false;
	memset(ip->check, 0, sizeof(ip->check));
	csum = ~fold(sum(0, data + f->l3, (ip->ver_ihl & 15) * 4u));
	memcpy(ip->check, &csum, sizeof(csum));
	return true;
}

bool frame_l4_fill(const struct frame *f, uint8_t *data)
{
	uint8_t *check;
	uint16_t csum;

	if (f->cut)
		return false;
	if (f->tcp)
		check = ((struct tcp_hdr *)(data + f->l4))->check;
	else if (f->udp)
		check = ((struct udp_hdr *)(data + f->l4))->check;
	else
		return false;
	memset(check, 0, 2);
	csum = ~l4_sum(f);
	/* A UDP checksum of zero means that there is none. */
	if (f->udp && !csum)
		csum = 0xffff;
	memcpy(check, &csum, sizeof(csum));
	return true;
}

uint32_t toeplitz(const uint8_t *key, const uint8_t *data, size_t len)
{
	uint32_t window = be32_get(key);
	uint32_t hash = 0;

	for (size_t i = 0; i < len; i++) {
		uint8_t next = key[i + 4];

		for (unsigned int bit = 0x80; bit; bit >>= 1) {
			if (data[i] & bit)
				hash ^= window;
			window = window << 1 | !!(next & bit);
		}
	}
	return hash;
}
