// SPDX-License-Identifier: GPL-2.0
/*
 * Packets from the wire: parser, builder, and the faults' view of them.
 *
 * The first byte says what is put right before the rest is parsed: without
 * checksum, lengths and ICRC in order, no random input gets past them. A packet
 * that is understood is built anew, and must come out as it was in everything
 * the builder decides.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "roce/icrc.h"
#include "roce/pkt.h"
#include "wire/fault.h"

#define FIX_ETH		0x01	/* type, port, protocol: make it RoCE */
#define FIX_IPV6	0x02	/* over IPv6 */
#define FIX_LEN		0x04
#define FIX_SUMS	0x08
#define FIX_VLAN	0x10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix(uint8_t *frame, size_t len, uint8_t how)
{
	bool ipv6 = how & FIX_IPV6;
	size_t off = how & FIX_VLAN ? ETH_HDR_LEN + ETH_VLAN_LEN : ETH_HDR_LEN;
	size_t l3_len = ipv6 ? sizeof(struct ipv6_hdr) : sizeof(struct ipv4_hdr);
	uint8_t *l3 = frame + off, *udp = l3 + l3_len;
	size_t n = len - off;

	if (len < off + l3_len + sizeof(struct udp_hdr) + sizeof(struct ib_bth) + IB_ICRC_LEN)
		return;
	if (how & FIX_ETH) {
		if (how & FIX_VLAN)
			be16_put(frame + 12, ETH_TYPE_VLAN);
		be16_put(l3 - 2, ipv6 ? ETH_TYPE_IPV6 : ETH_TYPE_IPV4);
		l3[0] = ipv6 ? (uint8_t)(0x60 | (l3[0] & 0x0f)) : 0x45;
		l3[ipv6 ? 6 : 9] = IP_PROTO_UDP;
		be16_put(udp + 2, ROCE_UDP_PORT);
		if (!ipv6)
			be16_put(l3 + 6, IPV4_DF);
	}
	if (how & FIX_LEN && n <= UINT16_MAX) {
		be16_put(ipv6 ? l3 + 4 : l3 + 2, (uint16_t)(ipv6 ? n - l3_len : n));
		be16_put(udp + 4, (uint16_t)(n - l3_len));
	}
	if (how & FIX_SUMS) {
		if (!ipv6) {
			be16_put(l3 + 10, 0);
			be16_put(l3 + 10, skua_inet_csum(l3, l3_len));
		}
		skua_icrc_put(l3 + n - IB_ICRC_LEN, skua_icrc(l3, ipv6, n - IB_ICRC_LEN));
	}
}

static void check(bool ok)
{
	if (!ok)
		abort();
}

/* Each header lies between BTH and payload. */
static void check_pointers(const struct skua_pkt *p, const uint8_t *frame, size_t len)
{
	const uint8_t *first = (const uint8_t *)(p->bth + 1);

#define IN(h) \
	check(!p->h || ((const uint8_t *)p->h >= first && (const uint8_t *)(p->h + 1) <= p->payload))
	IN(xrceth);
	IN(seth);
	IN(deth);
	IN(feth);
	IN(reth);
	IN(atomiceth);
	IN(maskedeth);
	IN(aeth);
	IN(atomicacketh);
	IN(immdt);
	IN(ieth);
#undef IN
	check(p->payload == first + p->op->ext_len);
	check(p->payload + p->payload_len + IB_ICRC_LEN <= frame + len);
}

static void rebuild(const struct skua_pkt *p)
{
	struct skua_pkt_addr addr = {
		.vlan = p->vlan, .tci = p->tci, .tclass = p->tclass, .sport = p->sport,
		.flow_label = p->flow_label, .hop_limit = p->hop_limit,
	};
	struct skua_pkt_bth bth = {
		.opcode = p->opcode, .resv7 = p->resv7, .pkey = p->pkey, .dqpn = p->dqpn,
		.psn = p->psn, .se = p->se, .ackreq = p->ackreq, .fecn = p->fecn,
		.becn = p->becn, .migreq = p->migreq,
	};
	size_t size = SKUA_PKT_OVERHEAD + p->payload_len, len;
	uint8_t *buf = malloc(size);
	struct skua_pkt_build b;
	struct skua_pkt q;

	check(buf);
	memcpy(addr.dmac, p->dmac, sizeof(addr.dmac));
	memcpy(addr.smac, p->smac, sizeof(addr.smac));
	memcpy(addr.sgid, p->sgid, sizeof(addr.sgid));
	memcpy(addr.dgid, p->dgid, sizeof(addr.dgid));
	check(!skua_pkt_build_start(&b, buf, size, &addr, &bth));
	memcpy(b.bth + 1, p->bth + 1, p->op->ext_len);
	memcpy(b.payload, p->payload, p->payload_len);
	len = skua_pkt_build_finish(&b, p->payload_len);
	check(len && len <= size);
	check(skua_pkt_parse(buf, len, &q) == SKUA_PKT_OK);
	check(q.opcode == p->opcode && q.psn == p->psn && q.dqpn == p->dqpn &&
	      q.payload_len == p->payload_len && q.resv7 == p->resv7 &&
	      q.tclass == p->tclass && q.vlan == p->vlan && q.tci == p->tci);
	check(!memcmp(q.payload, p->payload, p->payload_len));
	digest(buf, len);
	free(buf);
}

/* The switch takes nothing shorter than an Ethernet header. */
static void faults_of(uint8_t *frame, size_t len)
{
	/* They count the passages of a packet: those of earlier inputs must not count. */
	struct wire_faults *faults = wire_faults_create(1);
	struct wire_fate fate;

	check(faults && !wire_faults_room(faults, 2, 2));
	check(!wire_faults_add(faults, "loss=10%,corrupt=50%,ecn=50%,all,corrupt-any;"
			       "corrupt=50%", NULL, 0));
	wire_faults_decide(faults, 0, "a", frame, len, &fate);
	digest_num(fate.packet_id);
	if (fate.corrupt) {
		check(fate.corrupt_bit / 8 < len);
		frame[fate.corrupt_bit / 8] ^= 0x80 >> fate.corrupt_bit % 8;
	}
	wire_mark_ce(frame, len, true);
	wire_faults_destroy(faults);
	digest(frame, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skua_pkt p;
	enum skua_pkt_status status;
	uint8_t *frame;

	if (size < 1 || size > 1 + 16384)
		return 0;
	/* A copy of exactly the size, so that reading one byte too far is seen. */
	frame = malloc(size);
	check(frame);
	memcpy(frame, data + 1, size - 1);
	frame = realloc(frame, size > 1 ? size - 1 : 1);
	fix(frame, size - 1, *data);

	status = skua_pkt_parse(frame, size - 1, &p);
	check(skua_pkt_status_name(status) && status < SKUA_PKT_STATUS_MAX);
	digest_num(status);
	if (status == SKUA_PKT_OK) {
		check_pointers(&p, frame, size - 1);
		/* Whether IPv6 with mapped addresses is spoken is not the builder's choice. */
		if (p.ipv6 == (!ib_gid_is_v4(p.sgid) || !ib_gid_is_v4(p.dgid)))
			rebuild(&p);
	}
	if (size - 1 >= ETH_HDR_LEN)
		faults_of(frame, size - 1);
	digest_end();
	free(frame);
	return 0;
}
