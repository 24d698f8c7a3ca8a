// SPDX-License-Identifier: GPL-2.0
/*
 * RoCEv2 packets: parser and builder.
 *
 * The parser compares every length with the bytes that are available before it reads a header.
 * The UDP checksum is not verified: senders of RoCEv2 set it to 0, and the ICRC covers all that it
 * would.
 */
#include <errno.h>
#include <string.h>

#include "icrc.h"
#include "pkt.h"

static const char * const status_names[] = {
#define X(id, name) [SKUA_PKT_##id] = name,
	SKUA_PKT_STATUS(X)
#undef X
};

const char *skua_pkt_status_name(enum skua_pkt_status status)
{
	return (unsigned int)status < SKUA_PKT_STATUS_MAX ? status_names[status] : "unknown";
}

uint16_t skua_inet_csum(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += be16_get(p + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/*
 * Bytes after the datagram are allowed only as padding to the minimum length of Ethernet; a switch
 * that inserts a tag may leave the padding.
 */
static bool trailer_ok(const struct skua_pkt *pkt, size_t frame_len, size_t rest)
{
	return rest == pkt->len || frame_len <= ETH_MIN_LEN + (pkt->vlan ? ETH_VLAN_LEN : 0);
}

static enum skua_pkt_status parse_ipv4(struct skua_pkt *pkt, size_t rest, size_t frame_len)
{
	const struct ipv4_hdr *ip = (const struct ipv4_hdr *)pkt->l3;
	const struct udp_hdr *udp;
	size_t ihl;
	uint16_t frag;

	if (rest < sizeof(*ip) || ip->ver_ihl >> 4 != 4 || ip->proto != IP_PROTO_UDP)
		return SKUA_PKT_NOT_ROCE;
	ihl = (size_t)(ip->ver_ihl & 0x0f) * 4;
	frag = be16_get(ip->frag_off);
	if (ihl < sizeof(*ip) || rest < ihl + sizeof(*udp) || frag & IPV4_OFFSET_MASK)
		return SKUA_PKT_NOT_ROCE;
	udp = (const struct udp_hdr *)(pkt->l3 + ihl);
	if (be16_get(udp->dport) != ROCE_UDP_PORT)
		return SKUA_PKT_NOT_ROCE;

	ib_gid_from_v4(pkt->sgid, ip->saddr);
	ib_gid_from_v4(pkt->dgid, ip->daddr);
	pkt->tclass = ip->tos;
	pkt->hop_limit = ip->ttl;
	pkt->sport = be16_get(udp->sport);
	pkt->len = be16_get(ip->tot_len);

	if (ihl != sizeof(*ip))
		return SKUA_PKT_IP_OPTIONS;
	if (frag & IPV4_MF)
		return SKUA_PKT_IP_FRAGMENT;
	if (pkt->len < sizeof(*ip) + sizeof(*udp) || pkt->len > rest)
		return SKUA_PKT_IP_LEN;
	if (!trailer_ok(pkt, frame_len, rest))
		return SKUA_PKT_TRAILER;
	if (skua_inet_csum(ip, sizeof(*ip)))
		return SKUA_PKT_IP_CSUM;
	if (be16_get(udp->len) != pkt->len - sizeof(*ip))
		return SKUA_PKT_UDP_LEN;
	return SKUA_PKT_OK;
}

static enum skua_pkt_status parse_ipv6(struct skua_pkt *pkt, size_t rest, size_t frame_len)
{
	const struct ipv6_hdr *ip = (const struct ipv6_hdr *)pkt->l3;
	const struct udp_hdr *udp = (const struct udp_hdr *)(ip + 1);
	uint32_t word;

	if (rest < sizeof(*ip) + sizeof(*udp) || ip->ver_tc_flow[0] >> 4 != 6 ||
	    ip->next_hdr != IP_PROTO_UDP || be16_get(udp->dport) != ROCE_UDP_PORT)
		return SKUA_PKT_NOT_ROCE;

	pkt->ipv6 = true;
	memcpy(pkt->sgid, ip->saddr, sizeof(pkt->sgid));
	memcpy(pkt->dgid, ip->daddr, sizeof(pkt->dgid));
	word = be32_get(ip->ver_tc_flow);
	pkt->tclass = (uint8_t)(word >> 20);
	pkt->flow_label = word & IPV6_FLOW_MASK;
	pkt->hop_limit = ip->hop_limit;
	pkt->sport = be16_get(udp->sport);
	pkt->len = sizeof(*ip) + be16_get(ip->payload_len);

	if (pkt->len < sizeof(*ip) + sizeof(*udp) || pkt->len > rest)
		return SKUA_PKT_IP_LEN;
	if (!trailer_ok(pkt, frame_len, rest))
		return SKUA_PKT_TRAILER;
	if (be16_get(udp->len) != pkt->len - sizeof(*ip))
		return SKUA_PKT_UDP_LEN;
	return SKUA_PKT_OK;
}

enum skua_pkt_status skua_pkt_parse_ip(const void *frame, size_t len, struct skua_pkt *pkt)
{
	const struct eth_hdr *eth = frame;
	size_t off = ETH_HDR_LEN;
	uint16_t type;

	memset(pkt, 0, sizeof(*pkt));
	if (len < ETH_HDR_LEN)
		return SKUA_PKT_NOT_ROCE;
	memcpy(pkt->dmac, eth->dmac, sizeof(pkt->dmac));
	memcpy(pkt->smac, eth->smac, sizeof(pkt->smac));
	type = be16_get(eth->type);
	if (type == ETH_TYPE_VLAN) {
		const uint8_t *tag = (const uint8_t *)frame + ETH_HDR_LEN;

		off += ETH_VLAN_LEN;
		if (len < off)
			return SKUA_PKT_NOT_ROCE;
		pkt->vlan = true;
		pkt->tci = be16_get(tag);
		type = be16_get(tag + 2);
	}
	pkt->l3 = (const uint8_t *)frame + off;
	if (type == ETH_TYPE_IPV4)
		return parse_ipv4(pkt, len - off, len);
	if (type == ETH_TYPE_IPV6)
		return parse_ipv6(pkt, len - off, len);
	return SKUA_PKT_NOT_ROCE;
}

/* Bytes of IP and UDP header, or from the IP header to the BTH. */
static size_t bth_offset(bool ipv6)
{
	return (ipv6 ? sizeof(struct ipv6_hdr) : sizeof(struct ipv4_hdr)) + sizeof(struct udp_hdr);
}

enum skua_pkt_status skua_pkt_parse_bth(struct skua_pkt *pkt)
{
	size_t off = bth_offset(pkt->ipv6);
	const struct ib_bth *bth = (const struct ib_bth *)(pkt->l3 + off);

	if (pkt->len < off + sizeof(*bth) + IB_ICRC_LEN)
		return SKUA_PKT_BTH_LEN;
	if ((pkt->len - off) & 3)
		return SKUA_PKT_ALIGN;
	pkt->bth = bth;
	pkt->opcode = bth->opcode;
	pkt->op = ib_opcode_info(bth->opcode);
	pkt->resv7 = bth->ack & IB_BTH_RESV7_MASK;
	pkt->pkey = be16_get(bth->pkey);
	pkt->dqpn = be24_get(bth->dqpn);
	pkt->psn = be24_get(bth->psn);
	pkt->se = bth->flags & IB_BTH_SE;
	pkt->ackreq = bth->ack & IB_BTH_ACK_REQ;
	pkt->fecn = bth->resv8a & IB_BTH_FECN;
	pkt->becn = bth->resv8a & IB_BTH_BECN;
	pkt->migreq = bth->flags & IB_BTH_MIG;
	return SKUA_PKT_OK;
}

/*
 * Set the pointers to the extended headers of @flags, in the order in which
 * they stand from @p on; @p is then behind them. @P is a struct skua_pkt or a
 * struct skua_pkt_build.
 */
#define TAKE(P, flags, p, bit, hdr)					\
	do {								\
		if ((flags) & (bit)) {					\
			(P)->hdr = (__typeof__((P)->hdr))(p);		\
			(p) += sizeof(*(P)->hdr);			\
		}							\
	} while (0)

#define TAKE_EXT(P, flags, p)						\
	do {								\
		TAKE(P, flags, p, IB_F_XRCETH, xrceth);			\
		TAKE(P, flags, p, IB_F_SETH, seth);			\
		TAKE(P, flags, p, IB_F_DETH, deth);			\
		TAKE(P, flags, p, IB_F_FETH, feth);			\
		TAKE(P, flags, p, IB_F_RETH, reth);			\
		TAKE(P, flags, p, IB_F_ATOMICETH, atomiceth);		\
		TAKE(P, flags, p, IB_F_MASKEDETH, maskedeth);		\
		TAKE(P, flags, p, IB_F_AETH, aeth);			\
		TAKE(P, flags, p, IB_F_ATOMICACKETH, atomicacketh);	\
		TAKE(P, flags, p, IB_F_IMMDT, immdt);			\
		TAKE(P, flags, p, IB_F_IETH, ieth);			\
	} while (0)

/* Number of payload bytes that an opcode must have, -1: any number. */
static int fixed_payload(uint8_t opcode)
{
	switch (opcode) {
	case IB_OPCODE_CNP:
		return IB_CNP_PAYLOAD_LEN;
	case IB_OPCODE(RC, ATOMIC_WRITE):
		return 8;
	default:
		return -1;
	}
}

static const uint8_t *icrc_of(const struct skua_pkt *pkt)
{
	return pkt->l3 + pkt->len - IB_ICRC_LEN;
}

/* Parse BTH, extended headers and payload; pkt->bth was set. */
static enum skua_pkt_status parse_rest(struct skua_pkt *pkt)
{
	const uint8_t *icrc = icrc_of(pkt);
	const uint8_t *p;
	size_t len, pad;
	int fixed;

	if (pkt->bth->flags & IB_BTH_TVER_MASK)
		return SKUA_PKT_TVER;
	if (!pkt->op)
		return pkt->opcode >= IB_OPCODE_VENDOR_MIN ? SKUA_PKT_OPCODE_VENDOR :
							     SKUA_PKT_OPCODE;

	p = (const uint8_t *)(pkt->bth + 1);
	len = (size_t)(icrc - p);
	if (len < pkt->op->ext_len)
		return SKUA_PKT_HDR_LEN;
	TAKE_EXT(pkt, pkt->op->flags, p);
	pkt->payload = p;

	len -= pkt->op->ext_len;
	pad = (pkt->bth->flags & IB_BTH_PAD_MASK) >> IB_BTH_PAD_SHIFT;
	if (pad > len)
		return SKUA_PKT_PAD;
	if (len && !(pkt->op->flags & IB_F_PAYLOAD))
		return SKUA_PKT_PAYLOAD_LEN;
	pkt->payload_len = (uint32_t)(len - pad);
	fixed = fixed_payload(pkt->opcode);
	if (fixed >= 0 && pkt->payload_len != (uint32_t)fixed)
		return SKUA_PKT_PAYLOAD_LEN;
	return SKUA_PKT_OK;
}

enum skua_pkt_status skua_pkt_parse_ib(struct skua_pkt *pkt)
{
	enum skua_pkt_status status = skua_pkt_parse_bth(pkt);

	if (status)
		return status;
	if (skua_icrc_get(icrc_of(pkt)) !=
	    skua_icrc(pkt->l3, pkt->ipv6, pkt->len - IB_ICRC_LEN))
		return SKUA_PKT_ICRC;
	return parse_rest(pkt);
}

enum skua_pkt_status skua_pkt_parse(const void *frame, size_t len, struct skua_pkt *pkt)
{
	enum skua_pkt_status status = skua_pkt_parse_ip(frame, len, pkt);

	return status ? status : skua_pkt_parse_ib(pkt);
}

enum skua_pkt_status skua_pkt_parse_ib_pending(struct skua_pkt *pkt)
{
	enum skua_pkt_status status = skua_pkt_parse_bth(pkt);

	return status ? status : parse_rest(pkt);
}

void skua_pkt_icrc_fill(void *frame, size_t len)
{
	struct skua_pkt pkt;

	if (skua_pkt_parse_ip(frame, len, &pkt) || skua_pkt_parse_bth(&pkt))
		return;
	skua_icrc_put((uint8_t *)icrc_of(&pkt),
		      skua_icrc(pkt.l3, pkt.ipv6, pkt.len - IB_ICRC_LEN));
}

static uint8_t *put_eth(uint8_t *p, const struct skua_pkt_addr *addr, bool ipv6)
{
	struct eth_hdr *eth = (struct eth_hdr *)p;
	uint16_t type = ipv6 ? ETH_TYPE_IPV6 : ETH_TYPE_IPV4;

	memcpy(eth->dmac, addr->dmac, sizeof(eth->dmac));
	memcpy(eth->smac, addr->smac, sizeof(eth->smac));
	p += ETH_HDR_LEN;
	if (!addr->vlan) {
		be16_put(eth->type, type);
		return p;
	}
	be16_put(eth->type, ETH_TYPE_VLAN);
	be16_put(p, addr->tci);
	be16_put(p + 2, type);
	return p + ETH_VLAN_LEN;
}

static uint8_t *put_ip(uint8_t *p, const struct skua_pkt_addr *addr, bool ipv6)
{
	struct ipv4_hdr *ip4 = (struct ipv4_hdr *)p;
	struct ipv6_hdr *ip6 = (struct ipv6_hdr *)p;

	if (ipv6) {
		be32_put(ip6->ver_tc_flow, 6u << 28 | (uint32_t)addr->tclass << 20 |
			 (addr->flow_label & IPV6_FLOW_MASK));
		ip6->next_hdr = IP_PROTO_UDP;
		ip6->hop_limit = addr->hop_limit;
		memcpy(ip6->saddr, addr->sgid, sizeof(ip6->saddr));
		memcpy(ip6->daddr, addr->dgid, sizeof(ip6->daddr));
		return p + sizeof(*ip6);
	}
	/* Never fragmented, so the identification may stay 0 (RFC 6864). */
	ip4->ver_ihl = 0x45;
	ip4->tos = addr->tclass;
	be16_put(ip4->id, 0);
	be16_put(ip4->frag_off, IPV4_DF);
	ip4->ttl = addr->hop_limit;
	ip4->proto = IP_PROTO_UDP;
	memcpy(ip4->saddr, addr->sgid + 12, sizeof(ip4->saddr));
	memcpy(ip4->daddr, addr->dgid + 12, sizeof(ip4->daddr));
	return p + sizeof(*ip4);
}

static void put_bth(struct ib_bth *h, const struct skua_pkt_bth *bth)
{
	h->opcode = bth->opcode;
	h->flags = (bth->se ? IB_BTH_SE : 0) | (bth->migreq ? IB_BTH_MIG : 0);
	be16_put(h->pkey, bth->pkey);
	h->resv8a = (bth->fecn ? IB_BTH_FECN : 0) | (bth->becn ? IB_BTH_BECN : 0);
	be24_put(h->dqpn, bth->dqpn);
	h->ack = (bth->ackreq ? IB_BTH_ACK_REQ : 0) | (bth->resv7 & IB_BTH_RESV7_MASK);
	be24_put(h->psn, bth->psn);
}

int skua_pkt_build_start(struct skua_pkt_build *b, void *buf, size_t size,
			 const struct skua_pkt_addr *addr, const struct skua_pkt_bth *bth)
{
	const struct ib_opcode_info *op = ib_opcode_info(bth->opcode);
	struct udp_hdr *udp;
	uint8_t *p = buf;
	size_t len;

	memset(b, 0, sizeof(*b));
	if (!op)
		return -EINVAL;
	b->ipv6 = !ib_gid_is_v4(addr->sgid) || !ib_gid_is_v4(addr->dgid);
	len = ETH_HDR_LEN + (addr->vlan ? ETH_VLAN_LEN : 0) + bth_offset(b->ipv6) +
	      sizeof(struct ib_bth) + op->ext_len;
	if (size < len + IB_ICRC_LEN || size < ETH_MIN_LEN)
		return -EMSGSIZE;

	b->frame = buf;
	b->size = size;
	b->l3 = put_eth(p, addr, b->ipv6);
	udp = (struct udp_hdr *)put_ip(b->l3, addr, b->ipv6);
	be16_put(udp->sport, addr->sport);
	be16_put(udp->dport, ROCE_UDP_PORT);
	be16_put(udp->check, 0);
	b->bth = (struct ib_bth *)(udp + 1);
	put_bth(b->bth, bth);
	p = (uint8_t *)(b->bth + 1);
	memset(p, 0, op->ext_len);
	TAKE_EXT(b, op->flags, p);
	b->payload = p;
	b->room = size - len - IB_ICRC_LEN;
	return 0;
}

size_t skua_pkt_build_close(struct skua_pkt_build *b, size_t payload_len)
{
	size_t pad = -payload_len & 3;
	size_t dgram, len;
	uint8_t *icrc;

	if (payload_len > UINT16_MAX || payload_len + pad > b->room)
		return 0;
	icrc = b->payload + payload_len + pad;
	memset(b->payload + payload_len, 0, pad);
	b->bth->flags = (uint8_t)((b->bth->flags & ~IB_BTH_PAD_MASK) | pad << IB_BTH_PAD_SHIFT);

	dgram = (size_t)(icrc + IB_ICRC_LEN - b->l3);
	if (dgram > UINT16_MAX)
		return 0;
	if (b->ipv6) {
		struct ipv6_hdr *ip6 = (struct ipv6_hdr *)b->l3;
		struct udp_hdr *udp = (struct udp_hdr *)(ip6 + 1);

		be16_put(ip6->payload_len, (uint16_t)(dgram - sizeof(*ip6)));
		be16_put(udp->len, (uint16_t)(dgram - sizeof(*ip6)));
	} else {
		struct ipv4_hdr *ip4 = (struct ipv4_hdr *)b->l3;
		struct udp_hdr *udp = (struct udp_hdr *)(ip4 + 1);

		be16_put(ip4->tot_len, (uint16_t)dgram);
		be16_put(udp->len, (uint16_t)(dgram - sizeof(*ip4)));
		be16_put(ip4->check, 0);
		be16_put(ip4->check, skua_inet_csum(ip4, sizeof(*ip4)));
	}
	len = (size_t)(icrc + IB_ICRC_LEN - b->frame);
	if (len < ETH_MIN_LEN) {
		memset(b->frame + len, 0, ETH_MIN_LEN - len);
		len = ETH_MIN_LEN;
	}
	return len;
}

size_t skua_pkt_build_finish(struct skua_pkt_build *b, size_t payload_len)
{
	size_t len = skua_pkt_build_close(b, payload_len);

	if (len)
		skua_pkt_icrc_fill(b->frame, len);
	return len;
}

/* --- trains --- */

void skua_train_copy(const struct skua_train *t, uint32_t off, void *to, uint32_t len)
{
	const struct skua_piece *p = t->piece;
	uint8_t *at = to;
	uint32_t n;

	for (; off >= p->len; p++)
		off -= p->len;
	for (; len; p++, at += n, len -= n, off = 0) {
		n = p->len - off < len ? p->len - off : len;
		memcpy(at, p->at + off, n);
	}
}

/* The first packet's BTH, and its length up to there. */
static const struct ib_bth *bth_of(const void *head, size_t len, struct skua_pkt *pkt)
{
	if (skua_pkt_parse_ip(head, len, pkt) || skua_pkt_parse_bth(pkt))
		return NULL;
	return pkt->bth;
}

size_t skua_train_packet(const void *head, size_t len, const struct skua_train *t, uint32_t i,
			 void *buf, size_t size)
{
	const uint8_t opcode = i + 1 < t->packets ? t->middle : t->last;
	const struct ib_opcode_info *op;
	struct skua_pkt_build b = { .frame = buf, .size = size };
	struct skua_pkt pkt;
	size_t fixed;
	bool ackreq;

	if (!bth_of(head, len, &pkt))
		return 0;
	op = i ? ib_opcode_info(opcode) : pkt.op;
	fixed = (const uint8_t *)(pkt.bth + 1) - (const uint8_t *)head;
	if (!op || size < fixed + op->ext_len + IB_ICRC_LEN || size < ETH_MIN_LEN)
		return 0;
	b.ipv6 = pkt.ipv6;
	b.l3 = (uint8_t *)buf + (pkt.l3 - (const uint8_t *)head);
	b.bth = (struct ib_bth *)((uint8_t *)buf + fixed) - 1;
	b.payload = (uint8_t *)buf + fixed + op->ext_len;
	b.room = size - fixed - op->ext_len - IB_ICRC_LEN;
	if (skua_train_payload(t, i) > b.room)
		return 0;
	/* Extension headers are those of the first packet, or there are none. */
	memcpy(buf, head, fixed + (i ? 0 : op->ext_len));
	if (i) {
		uint32_t psn = (pkt.psn + i) & IB_PSN_MASK;

		ackreq = (psn & t->ack_mask) == t->ack_mask ||
			 (i + 1 == t->packets && t->ack_last);
		b.bth->opcode = opcode;
		b.bth->ack = (uint8_t)((b.bth->ack & ~IB_BTH_ACK_REQ) |
				       (ackreq ? IB_BTH_ACK_REQ : 0));
		be24_put(b.bth->psn, psn);
	}
	skua_train_copy(t, i * t->mtu, b.payload, skua_train_payload(t, i));
	return skua_pkt_build_close(&b, skua_train_payload(t, i));
}

size_t skua_train_bytes(const void *head, size_t len, const struct skua_train *t)
{
	uint32_t last = skua_train_payload(t, t->packets - 1);
	struct skua_pkt pkt;
	size_t rest;

	if (!bth_of(head, len, &pkt) || !pkt.op)
		return 0;
	rest = len - pkt.op->ext_len;
	return len + rest * (t->packets - 1) - t->mtu + ((last + 3) & ~3u);
}
