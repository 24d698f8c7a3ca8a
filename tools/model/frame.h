/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ethernet frames other than RoCE: parser of the headers, checksums, and the hash of receive
 * side scaling. (roce/pkt.c parses RoCE packets.)
 */
#ifndef SKUA_MODEL_FRAME_H
#define SKUA_MODEL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce/hdr.h"

#define IP_PROTO_TCP		6

struct tcp_hdr {
	uint8_t sport[2];
	uint8_t dport[2];
	uint8_t seq[4];
	uint8_t ack[4];
	uint8_t doff;
	uint8_t flags;
	uint8_t window[2];
	uint8_t check[2];
	uint8_t urgent[2];
};
_Static_assert(sizeof(struct tcp_hdr) == 20, "TCP header");

#define TCP_FIN			0x01
#define TCP_PSH			0x08
#define TCP_ACK			0x10
#define TCP_CWR			0x80

/**
 * struct frame - result of parsing a frame's headers
 * @data: the frame
 * @len: its bytes
 * @tagged: it has an 802.1Q tag
 * @tci: the tag
 * @type: EtherType behind the tag
 * @ipv4: sound IPv4 header at @l3
 * @ipv6: sound IPv6 header at @l3
 * @fragment: part of a fragmented datagram
 * @cut: the length of the IP datagram exceeds the frame: its headers are used for steering
 *	only
 * @proto: protocol above IP
 * @tcp: complete TCP header at @l4
 * @udp: UDP header at @l4
 * @l3: offset of the IP header
 * @l4: offset of what IP carries
 * @end: offset of the IP datagram's end
 */
struct frame {
	const uint8_t *data;
	size_t len;
	bool tagged, ipv4, ipv6, fragment, cut, tcp, udp;
	uint8_t proto;
	uint16_t tci;
	uint16_t type;
	uint32_t l3, l4, end;
};

/*
 * Parse a frame of at least ETH_HDR_LEN bytes. @lso: it is a large segment that is to be cut, so
 * the length fields of its headers are ignored.
 */
void frame_parse(struct frame *f, const void *data, size_t len, bool lso);

/* What the port's MTU limits: without one VLAN tag. Nothing behind an 802.1ad tag is parsed. */
static inline size_t frame_payload(const struct frame *f)
{
	bool tag = f->tagged ||
		   (f->type == ETH_TYPE_VLAN_AD && f->len >= ETH_HDR_LEN + ETH_VLAN_LEN);

	return f->len - ETH_HDR_LEN - (tag ? ETH_VLAN_LEN : 0);
}

static inline bool mac_multicast(const uint8_t mac[ETH_ADDR_LEN])
{
	return mac[0] & 1;
}

/* Is the checksum of the IPv4 header right? */
bool frame_l3_ok(const struct frame *f);
/* Is there a TCP or UDP checksum, and is it right? */
bool frame_l4_has_csum(const struct frame *f);
bool frame_l4_ok(const struct frame *f);
/* The sum of the TCP or UDP pseudo header for @len bytes above IP, not inverted. */
uint16_t frame_pseudo_sum(const struct frame *f, uint32_t len);
/* Compute them in @data, the writable twin of @f->data. False: not such a frame. */
bool frame_l3_fill(const struct frame *f, uint8_t *data);
bool frame_l4_fill(const struct frame *f, uint8_t *data);

/* Toeplitz hash. @key has at least @len + 4 bytes. */
uint32_t toeplitz(const uint8_t *key, const uint8_t *data, size_t len);

#endif /* SKUA_MODEL_FRAME_H */
