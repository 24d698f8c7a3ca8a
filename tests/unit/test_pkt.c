// SPDX-License-Identifier: GPL-2.0
/*
 * RoCEv2 packets: what is built is understood, and every other byte sequence is
 * refused for the right reason.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce/icrc.h"
#include "roce/pkt.h"

/* What a test's packet looks like. */
struct shape {
	uint8_t opcode;
	bool ipv6;
	bool vlan;
	size_t payload;
};

static struct skua_pkt_addr address(const struct shape *s)
{
	static const uint8_t src[4] = { 192, 0, 2, 1 }, dst[4] = { 192, 0, 2, 2 };
	struct skua_pkt_addr a = {
		.dmac = { 2, 0, 0, 0, 0, 2 }, .smac = { 2, 0, 0, 0, 0, 1 },
		.vlan = s->vlan, .tci = 0x6123, .tclass = 0x6a, .sport = 0xd123,
		.flow_label = 0xabcde, .hop_limit = 63,
	};

	if (s->ipv6) {
		a.sgid[0] = 0x20;
		a.sgid[15] = 1;
		a.dgid[0] = 0x20;
		a.dgid[15] = 2;
	} else {
		ib_gid_from_v4(a.sgid, src);
		ib_gid_from_v4(a.dgid, dst);
	}
	return a;
}

static const struct skua_pkt_bth bth_fields = {
	.resv7 = 0x55, .pkey = 0x8123, .dqpn = 0xfedcba, .psn = 0x89abcd,
	.se = true, .ackreq = true, .fecn = true, .becn = false, .migreq = true,
};

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 37 + 11);
}

/* A packet of this shape in a buffer of exactly its size. */
static uint8_t *build(const struct shape *s, size_t *len)
{
	struct skua_pkt_addr a = address(s);
	struct skua_pkt_bth bth = bth_fields;
	struct skua_pkt_build b;
	static uint8_t buf[SKUA_PKT_OVERHEAD + 9000];
	uint8_t *frame;
	size_t i;

	bth.opcode = s->opcode;
	assert_int_equal(skua_pkt_build_start(&b, buf, sizeof(buf), &a, &bth), 0);
	if (b.reth)
		ib_reth_put(b.reth, 0x0123456789abcdef, 0x11223344, 0x55667788);
	if (b.deth)
		ib_deth_put(b.deth, 0x80010000, 0x654321);
	if (b.aeth)
		ib_aeth_put(b.aeth, 0x61, 0x010203);
	if (b.atomiceth)
		ib_atomiceth_put(b.atomiceth, 1, 2, 3, 4);
	if (b.atomicacketh)
		be64_put(b.atomicacketh->orig, 0x8877665544332211);
	if (b.immdt)
		be32_put(b.immdt->data, 0xcafef00d);
	if (b.ieth)
		be32_put(b.ieth->rkey, 0x0badcafe);
	if (b.xrceth)
		ib_xrceth_put(b.xrceth, 0x00abcd);
	if (b.seth)
		ib_seth_put(b.seth, IB_SETH_RTX, 0x00fedc, 0x00cdef);
	for (i = 0; i < s->payload; i++)
		b.payload[i] = pattern(i);
	*len = skua_pkt_build_finish(&b, s->payload);
	assert_true(*len >= ETH_MIN_LEN);
	frame = malloc(*len);
	assert_non_null(frame);
	memcpy(frame, buf, *len);
	return frame;
}

/* Make the ICRC right again after a change. */
static void fix_icrc(uint8_t *frame, const struct shape *s)
{
	uint8_t *l3 = frame + ETH_HDR_LEN + (s->vlan ? ETH_VLAN_LEN : 0);
	size_t len = s->ipv6 ? 40u + be16_get(l3 + 4) : be16_get(l3 + 2);

	skua_icrc_put(l3 + len - IB_ICRC_LEN, skua_icrc(l3, s->ipv6, len - IB_ICRC_LEN));
}

static void fix_ip_csum(uint8_t *l3)
{
	be16_put(l3 + 10, 0);
	be16_put(l3 + 10, skua_inet_csum(l3, 20));
}

static void check_headers(const struct skua_pkt *p)
{
	if (p->reth) {
		assert_int_equal(be64_get(p->reth->va), 0x0123456789abcdef);
		assert_int_equal(be32_get(p->reth->rkey), 0x11223344);
		assert_int_equal(be32_get(p->reth->len), 0x55667788);
	}
	if (p->deth) {
		assert_int_equal(be32_get(p->deth->qkey), 0x80010000);
		assert_int_equal(be24_get(p->deth->sqpn), 0x654321);
	}
	if (p->aeth) {
		assert_int_equal(p->aeth->syndrome, 0x61);
		assert_int_equal(be24_get(p->aeth->msn), 0x010203);
	}
	if (p->atomiceth)
		assert_int_equal(be64_get(p->atomiceth->compare), 4);
	if (p->atomicacketh)
		assert_int_equal(be64_get(p->atomicacketh->orig), 0x8877665544332211);
	if (p->immdt)
		assert_int_equal(be32_get(p->immdt->data), 0xcafef00d);
	if (p->ieth)
		assert_int_equal(be32_get(p->ieth->rkey), 0x0badcafe);
	if (p->xrceth)
		assert_int_equal(be24_get(p->xrceth->srqn), 0x00abcd);
	if (p->seth) {
		assert_int_equal(p->seth->flags, IB_SETH_RTX);
		assert_int_equal(be24_get(p->seth->seq), 0x00fedc);
		assert_int_equal(be24_get(p->seth->off), 0x00cdef);
	}
}

static void round_trip(const struct shape *s)
{
	struct skua_pkt_addr a = address(s);
	struct skua_pkt p;
	size_t len, i;
	uint8_t *frame = build(s, &len);
	enum skua_pkt_status status = skua_pkt_parse(frame, len, &p);

	if (status)
		fail_msg("opcode %#x payload %zu: %s", s->opcode, s->payload,
			 skua_pkt_status_name(status));
	assert_memory_equal(p.dmac, a.dmac, 6);
	assert_memory_equal(p.smac, a.smac, 6);
	assert_memory_equal(p.sgid, a.sgid, 16);
	assert_memory_equal(p.dgid, a.dgid, 16);
	assert_int_equal(p.vlan, s->vlan);
	assert_int_equal(p.tci, s->vlan ? a.tci : 0);
	assert_int_equal(p.ipv6, s->ipv6);
	assert_int_equal(p.tclass, a.tclass);
	assert_int_equal(p.hop_limit, a.hop_limit);
	assert_int_equal(p.flow_label, s->ipv6 ? a.flow_label : 0);
	assert_int_equal(p.sport, a.sport);
	assert_int_equal(p.opcode, s->opcode);
	assert_int_equal(p.resv7, bth_fields.resv7);
	assert_int_equal(p.pkey, bth_fields.pkey);
	assert_int_equal(p.dqpn, bth_fields.dqpn);
	assert_int_equal(p.psn, bth_fields.psn);
	assert_true(p.se && p.ackreq && p.fecn && !p.becn && p.migreq);
	assert_int_equal(!!p.reth, !!(p.op->flags & IB_F_RETH));
	assert_int_equal(!!p.aeth, !!(p.op->flags & IB_F_AETH));
	assert_int_equal(!!p.xrceth, !!(p.op->flags & IB_F_XRCETH));
	assert_int_equal(!!p.seth, !!(p.op->flags & IB_F_SETH));
	check_headers(&p);
	assert_int_equal(p.payload_len, s->payload);
	for (i = 0; i < s->payload; i++)
		assert_int_equal(p.payload[i], pattern(i));
	free(frame);
}

/* Some payload length that is right for an opcode. */
static size_t some_payload(uint8_t opcode, size_t want)
{
	if (!(ib_opcode_info(opcode)->flags & IB_F_PAYLOAD))
		return 0;
	if (opcode == IB_OPCODE_CNP)
		return IB_CNP_PAYLOAD_LEN;
	if (opcode == IB_OPCODE(RC, ATOMIC_WRITE))
		return 8;
	return want;
}

static void test_round_trip(void **state)
{
	static const size_t payloads[] = { 0, 1, 2, 3, 4, 255, 256, 1024, 4095, 4096, 8999 };
	unsigned int opcode, i, known = 0;
	int how;

	(void)state;
	for (opcode = 0; opcode < 256; opcode++) {
		if (!ib_opcode_info((uint8_t)opcode))
			continue;
		known++;
		for (how = 0; how < 4; how++)
			for (i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
				struct shape s = { (uint8_t)opcode, how & 1, how & 2, 0 };

				s.payload = some_payload(s.opcode, payloads[i]);
				round_trip(&s);
			}
	}
	/* RC, UC, UD, CNP, XRC, masked atomics, selective repeat. */
	assert_int_equal(known, 25 + 12 + 2 + 1 + 23 + 4 + 32);
}

static void test_opcodes(void **state)
{
	static const struct {
		uint8_t opcode;
		uint8_t ext_len;
		const char *name;
	} want[] = {
		{ 0x00, 0, "RC_SEND_FIRST" },		{ 0x05, 4, "RC_SEND_ONLY_IMM" },
		{ 0x06, 16, "RC_WRITE_FIRST" },		{ 0x0b, 20, "RC_WRITE_ONLY_IMM" },
		{ 0x0c, 16, "RC_READ_REQUEST" },	{ 0x0d, 4, "RC_READ_RESP_FIRST" },
		{ 0x0e, 0, "RC_READ_RESP_MIDDLE" },	{ 0x11, 4, "RC_ACK" },
		{ 0x12, 12, "RC_ATOMIC_ACK" },		{ 0x13, 28, "RC_CMP_SWAP" },
		{ 0x17, 4, "RC_SEND_ONLY_INV" },	{ 0x1c, 20, "RC_FLUSH" },
		{ 0x1d, 16, "RC_ATOMIC_WRITE" },	{ 0x2a, 16, "UC_WRITE_ONLY" },
		{ 0x64, 8, "UD_SEND_ONLY" },		{ 0x65, 12, "UD_SEND_ONLY_IMM" },
		{ 0x81, 0, "CNP" },			{ 0xa0, 4, "XRC_SEND_FIRST" },
		{ 0xac, 20, "XRC_READ_REQUEST" },	{ 0xae, 0, "XRC_READ_RESP_MIDDLE" },
		{ 0xb3, 32, "XRC_CMP_SWAP" },		{ 0xd8, 44, "SKUA_RC_MASKED_CMP_SWAP" },
		{ 0xd9, 44, "SKUA_RC_MASKED_FETCH_ADD" },
		{ 0xf8, 48, "SKUA_XRC_MASKED_CMP_SWAP" },
		{ 0xf9, 48, "SKUA_XRC_MASKED_FETCH_ADD" },
		{ 0xc0, 8, "SKUA_RC_SEND_FIRST" },	{ 0xc7, 24, "SKUA_RC_WRITE_MIDDLE" },
		{ 0xd1, 4, "SKUA_RC_ACK" },		{ 0xeb, 32, "SKUA_XRC_WRITE_ONLY_IMM" },
		{ 0xec, 28, "SKUA_XRC_READ_REQUEST" },
	};
	/* SEND, WRITE, READ REQUEST, ACK; masked atomics. */
	const uint32_t own = 0x1fff | 1u << 0x11 | 3u << 0x16 | 3u << 0x18;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct ib_opcode_info *op = ib_opcode_info(want[i].opcode);

		assert_non_null(op);
		assert_string_equal(op->name, want[i].name);
		assert_int_equal(op->ext_len, want[i].ext_len);
	}
	for (i = 0; i < 256; i++) {
		const struct ib_opcode_info *op = ib_opcode_info((uint8_t)i);

		/* Reliable datagram is nobody's; of the manufacturers' range little is ours. */
		if ((i & IB_TRANSPORT_MASK) == 0x40)
			assert_null(op);
		if (i >= IB_OPCODE_VENDOR_MIN)
			assert_int_equal(!!op, own >> (i & 0x1f) & 1);
		/* A packet is of a request or of a response, or a CNP. */
		if (op && i != IB_OPCODE_CNP)
			assert_int_equal(!!(op->flags & IB_F_REQUEST) +
					 !!(op->flags & IB_F_RESPONSE), 1);
	}
}

/* One change to a good packet, and what it must lead to. */
static void expect(const struct shape *s, enum skua_pkt_status want,
		   void (*change)(uint8_t *l3, uint8_t *bth))
{
	struct skua_pkt p;
	size_t len;
	uint8_t *frame = build(s, &len);
	uint8_t *l3 = frame + ETH_HDR_LEN + (s->vlan ? ETH_VLAN_LEN : 0);
	enum skua_pkt_status got;

	change(l3, l3 + (s->ipv6 ? 48 : 28));
	got = skua_pkt_parse(frame, len, &p);
	if (got != want)
		fail_msg("wanted %s, got %s", skua_pkt_status_name(want),
			 skua_pkt_status_name(got));
	if (want > SKUA_PKT_NOT_ROCE) {
		struct skua_pkt_addr a = address(s);

		assert_memory_equal(p.dgid, a.dgid, 16);
		assert_memory_equal(p.smac, a.smac, 6);
	}
	free(frame);
}

static const struct shape v4 = { IB_OPCODE(RC, WRITE_ONLY), false, false, 100 };
static const struct shape v6 = { IB_OPCODE(RC, WRITE_ONLY), true, true, 100 };

#define CHANGE(name, ...) \
	static void name(uint8_t *l3, uint8_t *bth) { (void)l3; (void)bth; __VA_ARGS__ }

CHANGE(nothing, )
CHANGE(v4_version, l3[0] = 0x55;)
CHANGE(v4_ihl_small, l3[0] = 0x44;)
CHANGE(v4_proto, l3[9] = 6;)
CHANGE(v4_port, l3[23] ^= 1;)
CHANGE(v4_offset, be16_put(l3 + 6, 1); fix_ip_csum(l3);)
CHANGE(v4_mf, be16_put(l3 + 6, IPV4_MF); fix_ip_csum(l3);)
CHANGE(v4_csum, l3[11] ^= 1;)
CHANGE(v4_long, be16_put(l3 + 2, be16_get(l3 + 2) + 1); fix_ip_csum(l3);)
CHANGE(v4_short, be16_put(l3 + 2, 27); fix_ip_csum(l3);)
CHANGE(v4_trailer, be16_put(l3 + 2, be16_get(l3 + 2) - 4); fix_ip_csum(l3);)
CHANGE(v4_udp_len, be16_put(l3 + 24, be16_get(l3 + 24) - 1);)
CHANGE(v6_version, l3[0] ^= 0x20;)
CHANGE(v6_ext, l3[6] = 0;)
CHANGE(v6_port, l3[42] ^= 1;)
CHANGE(v6_long, be16_put(l3 + 4, be16_get(l3 + 4) + 1);)
CHANGE(v6_none, be16_put(l3 + 4, 0);)
CHANGE(v6_trailer, be16_put(l3 + 4, be16_get(l3 + 4) - 4);)
CHANGE(v6_udp_len, be16_put(l3 + 44, be16_get(l3 + 44) + 1);)
CHANGE(udp_csum, l3[26] = 0x12; l3[27] = 0x34;)
CHANGE(payload_bit, bth[40] ^= 0x10;)
CHANGE(ecn_way, l3[1] |= 3; fix_ip_csum(l3); bth[4] ^= 0xff;)

CHANGE(tver, bth[1] |= 1; fix_icrc(l3 - 14, &v4);)
CHANGE(rd_opcode, bth[0] = 0x44; fix_icrc(l3 - 14, &v4);)
CHANGE(reserved_opcode, bth[0] = 0x15; fix_icrc(l3 - 14, &v4);)
CHANGE(vendor_opcode, bth[0] = 0xd5; fix_icrc(l3 - 14, &v4);)
CHANGE(vendor_last_opcode, bth[0] = 0xff; fix_icrc(l3 - 14, &v4);)
CHANGE(payload_on_ack, bth[0] = 0x11; fix_icrc(l3 - 14, &v4);)
CHANGE(payload_on_read, bth[0] = 0x0c; fix_icrc(l3 - 14, &v4);)
CHANGE(cnp_too_long, bth[0] = 0x81; fix_icrc(l3 - 14, &v4);)
CHANGE(atomic_write_too_long, bth[0] = 0x1d; fix_icrc(l3 - 14, &v4);)

/* A datagram of @n bytes behind BTH, made of a longer one. */
static void cut(uint8_t *l3, uint8_t *bth, uint8_t opcode, uint8_t pad, uint16_t n)
{
	uint16_t udp = (uint16_t)(8 + 12 + n + 4);

	be16_put(l3 + 2, (uint16_t)(20 + udp));
	be16_put(l3 + 24, udp);
	fix_ip_csum(l3);
	bth[0] = opcode;
	bth[1] = (uint8_t)(pad << 4);
	fix_icrc(l3 - 14, &v4);
}

static void expect_cut(uint8_t opcode, uint8_t pad, uint16_t n, enum skua_pkt_status want)
{
	struct skua_pkt p;
	size_t len;
	uint8_t *frame = build(&v4, &len);
	uint8_t *small;
	enum skua_pkt_status got;

	cut(frame + 14, frame + 42, opcode, pad, n);
	len = 14 + 20 + 8 + 12 + n + 4u;
	small = malloc(len);
	assert_non_null(small);
	memcpy(small, frame, len);
	got = skua_pkt_parse(small, len, &p);
	if (got != want)
		fail_msg("opcode %#x pad %u, %u bytes: wanted %s, got %s", opcode, pad, n,
			 skua_pkt_status_name(want), skua_pkt_status_name(got));
	free(small);
	free(frame);
}

static void test_drop_reasons_ca17_24(void **state)
{
	(void)state;
	expect(&v4, SKUA_PKT_OK, nothing);
	expect(&v6, SKUA_PKT_OK, nothing);
	expect(&v4, SKUA_PKT_OK, udp_csum);
	expect(&v4, SKUA_PKT_OK, ecn_way);
	expect(&v4, SKUA_PKT_NOT_ROCE, v4_version);
	expect(&v4, SKUA_PKT_NOT_ROCE, v4_ihl_small);
	expect(&v4, SKUA_PKT_NOT_ROCE, v4_proto);
	expect(&v4, SKUA_PKT_NOT_ROCE, v4_port);
	expect(&v4, SKUA_PKT_NOT_ROCE, v4_offset);
	expect(&v4, SKUA_PKT_IP_FRAGMENT, v4_mf);
	expect(&v4, SKUA_PKT_IP_CSUM, v4_csum);
	expect(&v4, SKUA_PKT_IP_LEN, v4_long);
	expect(&v4, SKUA_PKT_IP_LEN, v4_short);
	expect(&v4, SKUA_PKT_TRAILER, v4_trailer);
	expect(&v4, SKUA_PKT_UDP_LEN, v4_udp_len);
	expect(&v6, SKUA_PKT_NOT_ROCE, v6_version);
	expect(&v6, SKUA_PKT_NOT_ROCE, v6_ext);
	expect(&v6, SKUA_PKT_NOT_ROCE, v6_port);
	expect(&v6, SKUA_PKT_IP_LEN, v6_long);
	expect(&v6, SKUA_PKT_IP_LEN, v6_none);
	expect(&v6, SKUA_PKT_TRAILER, v6_trailer);
	expect(&v6, SKUA_PKT_UDP_LEN, v6_udp_len);
	expect(&v4, SKUA_PKT_ICRC, payload_bit);
	expect(&v6, SKUA_PKT_ICRC, payload_bit);
	expect(&v4, SKUA_PKT_TVER, tver);
	expect(&v4, SKUA_PKT_OPCODE, rd_opcode);
	expect(&v4, SKUA_PKT_OPCODE, reserved_opcode);
	expect(&v4, SKUA_PKT_OPCODE_VENDOR, vendor_opcode);
	expect(&v4, SKUA_PKT_OPCODE_VENDOR, vendor_last_opcode);
	expect(&v4, SKUA_PKT_PAYLOAD_LEN, payload_on_ack);
	expect(&v4, SKUA_PKT_PAYLOAD_LEN, payload_on_read);
	expect(&v4, SKUA_PKT_PAYLOAD_LEN, cnp_too_long);
	expect(&v4, SKUA_PKT_PAYLOAD_LEN, atomic_write_too_long);

	/* Lengths around those of the headers. */
	expect_cut(IB_OPCODE(RC, SEND_ONLY), 0, 4, SKUA_PKT_OK);
	expect_cut(IB_OPCODE(RC, SEND_ONLY), 3, 4, SKUA_PKT_OK);
	expect_cut(IB_OPCODE(RC, SEND_ONLY), 0, 0, SKUA_PKT_OK);
	expect_cut(IB_OPCODE(RC, SEND_ONLY), 1, 0, SKUA_PKT_PAD);
	expect_cut(IB_OPCODE(RC, SEND_ONLY), 0, 5, SKUA_PKT_ALIGN);
	expect_cut(IB_OPCODE(RC, WRITE_ONLY), 0, 16, SKUA_PKT_OK);
	expect_cut(IB_OPCODE(RC, WRITE_ONLY), 0, 12, SKUA_PKT_HDR_LEN);
	expect_cut(IB_OPCODE(RC, WRITE_ONLY), 2, 16, SKUA_PKT_PAD);
	expect_cut(IB_OPCODE(RC, READ_REQUEST), 0, 16, SKUA_PKT_OK);
	expect_cut(IB_OPCODE(RC, READ_REQUEST), 2, 16, SKUA_PKT_PAD);
	expect_cut(IB_OPCODE(RC, READ_REQUEST), 0, 20, SKUA_PKT_PAYLOAD_LEN);
	expect_cut(IB_OPCODE(RC, READ_REQUEST), 3, 20, SKUA_PKT_PAYLOAD_LEN);
	expect_cut(IB_OPCODE(RC, ATOMIC_WRITE), 0, 24, SKUA_PKT_OK);
	expect_cut(IB_OPCODE(RC, ATOMIC_WRITE), 1, 24, SKUA_PKT_PAYLOAD_LEN);
	expect_cut(IB_OPCODE_CNP, 0, 16, SKUA_PKT_OK);
	expect_cut(IB_OPCODE_CNP, 0, 12, SKUA_PKT_PAYLOAD_LEN);
}

static void test_short_datagram(void **state)
{
	struct skua_pkt p;
	unsigned int n;

	(void)state;
	/* UDP payloads too short for BTH and ICRC. */
	for (n = 0; n < sizeof(struct ib_bth) + IB_ICRC_LEN; n++) {
		size_t len;
		uint8_t *frame = build(&v4, &len);

		be16_put(frame + 14 + 2, (uint16_t)(28 + n));
		be16_put(frame + 14 + 24, (uint16_t)(8 + n));
		fix_ip_csum(frame + 14);
		assert_int_equal(skua_pkt_parse(frame, 14 + 28 + n, &p), SKUA_PKT_BTH_LEN);
		free(frame);
	}
}

static void test_ip_options(void **state)
{
	struct skua_pkt p;
	size_t len;
	uint8_t *frame = build(&v4, &len);
	uint8_t *longer = calloc(1, len + 4);

	(void)state;
	assert_non_null(longer);
	memcpy(longer, frame, 34);
	memcpy(longer + 38, frame + 34, len - 34);
	longer[14] = 0x46;
	be16_put(longer + 16, (uint16_t)(be16_get(longer + 16) + 4));
	assert_int_equal(skua_pkt_parse(longer, len + 4, &p), SKUA_PKT_IP_OPTIONS);
	assert_true(ib_gid_is_v4(p.dgid));
	free(longer);
	free(frame);
}

/* No beginning of a packet is a packet; its buffer ends where it ends. */
static void test_truncated(void **state)
{
	static const struct shape shapes[] = {
		{ IB_OPCODE(RC, WRITE_ONLY_IMM), false, false, 33 },
		{ IB_OPCODE(XRC, CMP_SWAP), true, true, 0 },
		{ IB_OPCODE(UD, SEND_ONLY), true, false, 7 },
	};
	struct skua_pkt p;
	size_t i, n, len;

	(void)state;
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		uint8_t *frame = build(&shapes[i], &len);

		for (n = 0; n < len; n++) {
			uint8_t *part = malloc(n ? n : 1);

			assert_non_null(part);
			memcpy(part, frame, n);
			assert_int_not_equal(skua_pkt_parse(part, n, &p), SKUA_PKT_OK);
			free(part);
		}
		free(frame);
	}
}

static void test_ethernet_padding(void **state)
{
	struct shape s = { IB_OPCODE(RC, SEND_ONLY), false, false, 0 };
	struct skua_pkt p;
	size_t len;
	uint8_t *frame = build(&s, &len);
	uint8_t *tagged;

	(void)state;
	/* 58 bytes of packet. */
	assert_int_equal(len, ETH_MIN_LEN);
	assert_int_equal(skua_pkt_parse(frame, len, &p), SKUA_PKT_OK);
	assert_int_equal(p.payload_len, 0);
	assert_int_equal(p.len, 44);
	assert_int_equal(frame[58] | frame[59], 0);

	/* A switch that adds a tag lengthens the frame. */
	tagged = malloc(len + 4);
	assert_non_null(tagged);
	memcpy(tagged, frame, 12);
	be16_put(tagged + 12, ETH_TYPE_VLAN);
	be16_put(tagged + 14, 5);
	memcpy(tagged + 16, frame + 12, len - 12);
	assert_int_equal(skua_pkt_parse(tagged, len + 4, &p), SKUA_PKT_OK);
	assert_int_equal(p.tci, 5);
	free(tagged);

	/* One byte more is no padding. */
	frame = realloc(frame, len + 1);
	assert_non_null(frame);
	frame[len] = 0;
	assert_int_equal(skua_pkt_parse(frame, len + 1, &p), SKUA_PKT_TRAILER);
	free(frame);
}

static void test_double_tag(void **state)
{
	struct skua_pkt p;
	size_t len;
	uint8_t *frame = build(&v6, &len);

	(void)state;
	be16_put(frame + 16, ETH_TYPE_VLAN);
	assert_int_equal(skua_pkt_parse(frame, len, &p), SKUA_PKT_NOT_ROCE);
	free(frame);
}

static void test_build_limits(void **state)
{
	struct shape s = { IB_OPCODE(SKUA_XRC, MASKED_CMP_SWAP), true, true, 0 };
	struct skua_pkt_addr a = address(&s);
	struct skua_pkt_bth bth = { .opcode = IB_OPCODE(SKUA_XRC, MASKED_CMP_SWAP) };
	static uint8_t buf[70000];
	struct skua_pkt_build b;
	size_t hdr = SKUA_PKT_HDR_MAX;

	(void)state;
	/* The longest headers there are fill SKUA_PKT_HDR_MAX exactly. */
	assert_int_equal(skua_pkt_build_start(&b, buf, hdr + 4, &a, &bth), 0);
	assert_int_equal(b.payload - b.frame, hdr);
	assert_int_equal(b.room, 0);
	assert_int_equal(skua_pkt_build_finish(&b, 0), hdr + 4);
	assert_int_equal(skua_pkt_build_finish(&b, 1), 0);
	assert_int_equal(skua_pkt_build_start(&b, buf, hdr + 3, &a, &bth), -EMSGSIZE);
	assert_int_equal(skua_pkt_build_start(&b, buf, 0, &a, &bth), -EMSGSIZE);

	bth.opcode = 0x15;
	assert_int_equal(skua_pkt_build_start(&b, buf, sizeof(buf), &a, &bth), -EINVAL);
	bth.opcode = 0xdf;
	assert_int_equal(skua_pkt_build_start(&b, buf, sizeof(buf), &a, &bth), -EINVAL);

	/* Room counts padding; an IP datagram ends at 65535. */
	bth.opcode = IB_OPCODE(RC, SEND_ONLY);
	assert_int_equal(skua_pkt_build_start(&b, buf, 200, &a, &bth), 0);
	assert_int_not_equal(skua_pkt_build_finish(&b, b.room & ~3ul), 0);
	assert_int_equal(skua_pkt_build_finish(&b, (b.room & ~3ul) + 4), 0);
	assert_int_equal(skua_pkt_build_start(&b, buf, sizeof(buf), &a, &bth), 0);
	assert_int_equal(skua_pkt_build_finish(&b, 65535), 0);
	assert_int_equal(skua_pkt_build_finish(&b, SIZE_MAX), 0);
	assert_int_equal(skua_pkt_build_finish(&b, 65535 - 40 - 8 - 12 - 4), 0);
	assert_int_not_equal(skua_pkt_build_finish(&b, 65532 - 40 - 8 - 12 - 4), 0);
}

/* Sent once more with another PSN: everything is right again. */
static void test_finish_again(void **state)
{
	struct shape s = { IB_OPCODE(RC, SEND_ONLY), false, false, 5 };
	struct skua_pkt_addr a = address(&s);
	struct skua_pkt_bth bth = { .opcode = IB_OPCODE(RC, SEND_ONLY), .psn = 7 };
	uint8_t buf[SKUA_PKT_OVERHEAD + 8];
	struct skua_pkt_build b;
	struct skua_pkt p;
	size_t len;

	(void)state;
	assert_int_equal(skua_pkt_build_start(&b, buf, sizeof(buf), &a, &bth), 0);
	memset(b.payload, 0xaa, 8);
	len = skua_pkt_build_finish(&b, 5);
	assert_int_equal(skua_pkt_parse(buf, len, &p), SKUA_PKT_OK);
	assert_int_equal(p.payload[5] | p.payload[6] | p.payload[7], 0);
	be24_put(b.bth->psn, 8);
	b.bth->ack |= IB_BTH_ACK_REQ;
	len = skua_pkt_build_finish(&b, 4);
	assert_int_equal(skua_pkt_parse(buf, len, &p), SKUA_PKT_OK);
	assert_int_equal(p.psn, 8);
	assert_true(p.ackreq);
	assert_int_equal(p.payload_len, 4);
}

static void test_psn_diff(void **state)
{
	(void)state;
	assert_int_equal(ib_psn_diff(5, 3), 2);
	assert_int_equal(ib_psn_diff(3, 5), -2);
	assert_int_equal(ib_psn_diff(0, 0xffffff), 1);
	assert_int_equal(ib_psn_diff(0xffffff, 0), -1);
	assert_int_equal(ib_psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(ib_psn_diff(0x800000, 0), -0x800000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_drop_reasons_ca17_24),
		cmocka_unit_test(test_short_datagram),
		cmocka_unit_test(test_ip_options),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_ethernet_padding),
		cmocka_unit_test(test_double_tag),
		cmocka_unit_test(test_build_limits),
		cmocka_unit_test(test_finish_again),
		cmocka_unit_test(test_psn_diff),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
