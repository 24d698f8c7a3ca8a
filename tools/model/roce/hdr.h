/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Headers of a RoCEv2 frame as they lie on the wire: the only place that knows
 * these layouts and numbers.
 *
 * Every field is an array of bytes, so that a header may be laid over any
 * address of a frame without a thought about alignment, padding or the byte
 * order of the machine. be*_get() and be*_put() are the way in and out.
 */
#ifndef SKUA_ROCE_HDR_H
#define SKUA_ROCE_HDR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t be16_get(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be24_get(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t be32_get(const uint8_t *p)
{
	return (uint32_t)be16_get(p) << 16 | be16_get(p + 2);
}

static inline uint64_t be64_get(const uint8_t *p)
{
	return (uint64_t)be32_get(p) << 32 | be32_get(p + 4);
}

static inline void be16_put(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void be24_put(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	be16_put(p + 1, (uint16_t)v);
}

static inline void be32_put(uint8_t *p, uint32_t v)
{
	be16_put(p, (uint16_t)(v >> 16));
	be16_put(p + 2, (uint16_t)v);
}

static inline void be64_put(uint8_t *p, uint64_t v)
{
	be32_put(p, (uint32_t)(v >> 32));
	be32_put(p + 4, (uint32_t)v);
}

/* Ethernet */

#define ETH_ADDR_LEN		6
#define ETH_HDR_LEN		14
#define ETH_VLAN_LEN		4	/* an 802.1Q tag, between source address and type */
#define ETH_MIN_LEN		60	/* shortest frame, without FCS */

#define ETH_TYPE_IPV4		0x0800
#define ETH_TYPE_IPV6		0x86dd
#define ETH_TYPE_VLAN		0x8100
#define ETH_TYPE_VLAN_AD	0x88a8

struct eth_hdr {
	uint8_t dmac[ETH_ADDR_LEN];
	uint8_t smac[ETH_ADDR_LEN];
	uint8_t type[2];
};
_Static_assert(sizeof(struct eth_hdr) == ETH_HDR_LEN, "Ethernet header");

/* IPv4, IPv6, UDP */

#define IP_PROTO_UDP		17
#define IP_ECN_MASK		0x03	/* of the TOS or traffic class byte */
#define IP_ECN_NOT_ECT		0x00
#define IP_ECN_ECT1		0x01
#define IP_ECN_ECT0		0x02
#define IP_ECN_CE		0x03

#define IPV4_DF			0x4000	/* of frag_off */
#define IPV4_MF			0x2000
#define IPV4_OFFSET_MASK	0x1fff

struct ipv4_hdr {
	uint8_t ver_ihl;
	uint8_t tos;
	uint8_t tot_len[2];
	uint8_t id[2];
	uint8_t frag_off[2];
	uint8_t ttl;
	uint8_t proto;
	uint8_t check[2];
	uint8_t saddr[4];
	uint8_t daddr[4];
};
_Static_assert(sizeof(struct ipv4_hdr) == 20, "IPv4 header");

struct ipv6_hdr {
	uint8_t ver_tc_flow[4];		/* version 4, traffic class 8, flow label 20 bits */
	uint8_t payload_len[2];
	uint8_t next_hdr;
	uint8_t hop_limit;
	uint8_t saddr[16];
	uint8_t daddr[16];
};
_Static_assert(sizeof(struct ipv6_hdr) == 40, "IPv6 header");

#define IPV6_FLOW_MASK		0x000fffff

struct udp_hdr {
	uint8_t sport[2];
	uint8_t dport[2];
	uint8_t len[2];
	uint8_t check[2];
};
_Static_assert(sizeof(struct udp_hdr) == 8, "UDP header");

#define ROCE_UDP_PORT		4791
/* Source ports which senders choose from, so that routers see the flows. */
#define ROCE_UDP_SPORT_MIN	0xc000

/* InfiniBand transport */

#define IB_PSN_MASK		0x00ffffff
#define IB_QPN_MASK		0x00ffffff
#define IB_QPN_GSI		1
#define IB_PKEY_DEFAULT		0xffff
#define IB_PKEY_FULL		0x8000	/* full membership */
#define IB_ICRC_LEN		4

#define IB_BTH_SE		0x80	/* of flags: solicited event */
#define IB_BTH_MIG		0x40	/* migration request state */
#define IB_BTH_PAD_SHIFT	4
#define IB_BTH_PAD_MASK		0x30
#define IB_BTH_TVER_MASK	0x0f
#define IB_BTH_FECN		0x80	/* of resv8a; the ICRC does not cover this byte */
#define IB_BTH_BECN		0x40
#define IB_BTH_ACK_REQ		0x80	/* of ack; the other seven bits are reserved */
#define IB_BTH_RESV7_MASK	0x7f
/* Of these, Skua: log2 of the window in which the sender takes packets out of order. */
#define IB_RESV7_LOG_WINDOW	0x0f

struct ib_bth {
	uint8_t opcode;
	uint8_t flags;
	uint8_t pkey[2];
	uint8_t resv8a;
	uint8_t dqpn[3];
	uint8_t ack;
	uint8_t psn[3];
};
_Static_assert(sizeof(struct ib_bth) == 12, "BTH");

struct ib_deth {
	uint8_t qkey[4];
	uint8_t resv;
	uint8_t sqpn[3];
};
_Static_assert(sizeof(struct ib_deth) == 8, "DETH");

struct ib_reth {
	uint8_t va[8];
	uint8_t rkey[4];
	uint8_t len[4];
};
_Static_assert(sizeof(struct ib_reth) == 16, "RETH");

struct ib_atomiceth {
	uint8_t va[8];
	uint8_t rkey[4];
	uint8_t swap_add[8];
	uint8_t compare[8];
};
_Static_assert(sizeof(struct ib_atomiceth) == 28, "AtomicETH");

/* Not the IBTA's: of Skua's masked atomics. */
struct ib_maskedeth {
	struct ib_atomiceth atomic;
	uint8_t swap_add_mask[8];
	uint8_t compare_mask[8];
};
_Static_assert(sizeof(struct ib_maskedeth) == 44, "MaskedAtomicETH");

/*
 * Syndrome: bit 7 is reserved, bits 6:5 say what it is, bits 4:0 are the credit
 * count of an ACK, the timer code of an RNR NAK, the reason of a NAK.
 */
#define IB_AETH_TYPE_MASK	0x60
#define IB_AETH_ACK		0x00
#define IB_AETH_RNR_NAK		0x20
#define IB_AETH_NAK		0x60
#define IB_AETH_VALUE_MASK	0x1f
#define IB_AETH_CREDIT_INVALID	0x1f	/* no end-to-end flow control */
#define IB_AETH_CREDIT_MAX	0x1e
#define IB_MSN_MASK		0x00ffffff

/* Credits that a code stands for: 0, 1, then 2^n and 3 * 2^(n-1) by turns. */
static inline uint32_t ib_credits(unsigned int code)
{
	if (code < 2)
		return code;
	return code & 1 ? 3u << (code - 3) / 2 : 1u << code / 2;
}

/* The code of so many, or of the next fewer that has one. */
static inline uint8_t ib_credit_code(uint32_t credits)
{
	unsigned int log, code;

	if (credits < 2)
		return (uint8_t)credits;
	log = 31 - __builtin_clz(credits);
	code = 2 * log + (3ull << log <= 2ull * credits);
	return (uint8_t)(code < IB_AETH_CREDIT_MAX ? code : IB_AETH_CREDIT_MAX);
}

enum ib_nak_code {
	IB_NAK_PSN_SEQUENCE	= 0,
	IB_NAK_INVALID_REQUEST	= 1,
	IB_NAK_REMOTE_ACCESS	= 2,
	IB_NAK_REMOTE_OP	= 3,
	IB_NAK_INVALID_RD	= 4,
};

struct ib_aeth {
	uint8_t syndrome;
	uint8_t msn[3];
};
_Static_assert(sizeof(struct ib_aeth) == 4, "AETH");

struct ib_atomicacketh {
	uint8_t orig[8];
};
_Static_assert(sizeof(struct ib_atomicacketh) == 8, "AtomicAckETH");

struct ib_immdt {
	uint8_t data[4];		/* opaque: goes to the CQE as it is */
};
_Static_assert(sizeof(struct ib_immdt) == 4, "ImmDt");

struct ib_ieth {
	uint8_t rkey[4];
};
_Static_assert(sizeof(struct ib_ieth) == 4, "IETH");

struct ib_xrceth {
	uint8_t resv;
	uint8_t srqn[3];
};
_Static_assert(sizeof(struct ib_xrceth) == 4, "XRCETH");

/*
 * Not the IBTA's: where a packet of selective repeat belongs. @seq: number of its message
 * among those that take a receive, or of the READ request among those that take a
 * responder resource; @run: XRC: so many messages directly before it that take a receive go
 * to the same SRQ; @off: number of the packet in its message.
 */
struct ib_seth {
	uint8_t flags;
	uint8_t seq[3];
	uint8_t run;
	uint8_t off[3];
};
_Static_assert(sizeof(struct ib_seth) == 8, "SETH");

#define IB_SETH_RTX		0x80	/* of flags: sent again */

#define IB_FETH_PLACEMENT_MASK	0x0000000f	/* of word */
#define IB_FETH_SELECT_MASK	0x00000030

struct ib_feth {
	uint8_t word[4];
};
_Static_assert(sizeof(struct ib_feth) == 4, "FETH");

#define IB_CNP_PAYLOAD_LEN	16	/* reserved, zero */

static inline void ib_deth_put(struct ib_deth *h, uint32_t qkey, uint32_t sqpn)
{
	be32_put(h->qkey, qkey);
	h->resv = 0;
	be24_put(h->sqpn, sqpn);
}

static inline void ib_reth_put(struct ib_reth *h, uint64_t va, uint32_t rkey, uint32_t len)
{
	be64_put(h->va, va);
	be32_put(h->rkey, rkey);
	be32_put(h->len, len);
}

static inline void ib_atomiceth_put(struct ib_atomiceth *h, uint64_t va, uint32_t rkey,
				    uint64_t swap_add, uint64_t compare)
{
	be64_put(h->va, va);
	be32_put(h->rkey, rkey);
	be64_put(h->swap_add, swap_add);
	be64_put(h->compare, compare);
}

static inline void ib_maskedeth_put(struct ib_maskedeth *h, uint64_t swap_add_mask,
				    uint64_t compare_mask)
{
	be64_put(h->swap_add_mask, swap_add_mask);
	be64_put(h->compare_mask, compare_mask);
}

static inline void ib_aeth_put(struct ib_aeth *h, uint8_t syndrome, uint32_t msn)
{
	h->syndrome = syndrome;
	be24_put(h->msn, msn);
}

static inline void ib_seth_put(struct ib_seth *h, uint8_t flags, uint32_t seq, uint32_t off)
{
	h->flags = flags;
	be24_put(h->seq, seq);
	h->run = 0;
	be24_put(h->off, off);
}

static inline void ib_xrceth_put(struct ib_xrceth *h, uint32_t srqn)
{
	h->resv = 0;
	be24_put(h->srqn, srqn);
}

/* Serial arithmetic on 24-bit numbers: a - b as a signed distance. */
static inline int32_t ib_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* A GID which stands for an IPv4 address, ::ffff:a.b.c.d. */
static inline bool ib_gid_is_v4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

static inline void ib_gid_from_v4(uint8_t gid[16], const uint8_t addr[4])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, addr, 4);
}

/* 224.0.0.0/4 in the mapped form, or ff00::/8. */
static inline bool ib_gid_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (ib_gid_is_v4(gid) && (gid[12] & 0xf0) == 0xe0);
}

/* The MAC address that a multicast address maps to (RFC 1112, RFC 2464). */
static inline void ib_gid_multicast_mac(const uint8_t gid[16], uint8_t mac[ETH_ADDR_LEN])
{
	static const uint8_t v4[3] = { 0x01, 0x00, 0x5e };

	if (ib_gid_is_v4(gid)) {
		memcpy(mac, v4, sizeof(v4));
		memcpy(mac + 3, gid + 13, 3);
		mac[3] &= 0x7f;
	} else {
		memset(mac, 0x33, 2);
		memcpy(mac + 2, gid + 12, 4);
	}
}

#endif /* SKUA_ROCE_HDR_H */
