// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams, UD and general services: chapter 9.8.3 (unreliable datagram service)
 * and 10.3 (queue pair states) of the IBTA's specification, rule by rule, and the
 * RoCEv2 annex for what stands where a GRH would.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define IMM	0x8badf00d
#define GRH	SKUA_GRH_SIZE

static void open_ud(struct rc *rc, const struct rc_opt *opt)
{
	struct rc_opt o = opt ? *opt : (struct rc_opt){ 0 };

	o.type = SKUA_QP_UD;
	o.caps = SKUA_CAP_UD | SKUA_CAP_UC;
	rc_open(rc, &o);
}

/* The last frame that side 0 sent. */
static bool keep(void *priv, struct fake_frame *frame)
{
	*(struct fake_frame *)priv = *frame;
	return true;
}

static void check_recv(struct rc *rc, uint32_t len, bool imm, bool ipv6)
{
	struct skua_cqe cqe = rc_expect(rc, 1, true, SKUA_CQE_OK);

	assert_int_equal(skua_cqe_opcode(&cqe), SKUA_CQE_RECV);
	assert_int_equal(le32_to_cpu(cqe.byte_len), len + GRH);
	assert_int_equal(le32_to_cpu(cqe.qpn), rc->s[1].qp.qpn);
	assert_int_equal(le32_to_cpu(cqe.ud.src_qpn), rc->s[0].qp.qpn);
	assert_memory_equal(cqe.ud.smac, rc->s[0].mac, 6);
	assert_int_equal(cqe.ud.ipv4, !ipv6);
	assert_int_equal(cqe.ud.pkey_index, 0);
	assert_int_equal(le16_to_cpu(cqe.ud.vlan_tci), rc->vlan);
	assert_int_equal(skua_cqe_flags(&cqe), SKUA_CQE_F_GRH | (imm ? SKUA_CQE_F_IMM : 0) |
			 (rc->vlan ? SKUA_CQE_F_VLAN : 0));
	if (imm)
		assert_int_equal(be32toh(cqe.imm), IMM);
}

/* The IP header as it was on the wire, at the end of the area. */
static void check_grh(struct rc *rc, const uint8_t *grh, const struct fake_frame *frame,
		      bool ipv6)
{
	size_t len = ipv6 ? 40 : 20;
	size_t l3 = ETH_HDR_LEN + (rc->vlan ? ETH_VLAN_LEN : 0);

	for (size_t k = 0; k < GRH - len; k++)
		assert_int_equal(grh[k], 0);
	assert_memory_equal(grh + GRH - len, frame->data + l3, len);
}

/* --- messages --- */

/* "A message is one packet": all lengths to the path MTU, each way to carry them. */
static void one_packet_each(struct rc *rc, bool ipv6)
{
	static const uint32_t lens[] = { 0, 1, 2, 3, 4, 5, 63, 64, 256, 1023, 4095, 4096 };
	struct fake_frame frame;
	uint64_t sent = rc->s[0].f.sent;

	rc->s[0].f.filter = keep;
	rc->s[0].f.filter_priv = &frame;
	for (size_t k = 0; k < N(lens); k++) {
		for (unsigned int imm = 0; imm < 2; imm++) {
			struct rc_wr wr = { .op = imm ? SKUA_WQE_SEND_IMM : SKUA_WQE_SEND,
					    .len = lens[k], .imm = IMM };
			struct skua_cqe cqe;

			if (lens[k] <= 64 && imm)
				wr.flags = SKUA_WQE_F_INLINE;
			rc_fill(rc->s[0].buf, lens[k], k);
			memset(rc->s[1].buf, 0xee, 8192);
			rc_recv(rc, 1, 0, lens[k] + GRH);
			rc_post(rc, 0, &wr);
			rc_pump(rc);
			cqe = rc_expect(rc, 0, false, SKUA_CQE_OK);
			assert_int_equal(le32_to_cpu(cqe.byte_len), 0);
			check_recv(rc, lens[k], imm, ipv6);
			check_grh(rc, rc->s[1].buf, &frame, ipv6);
			rc_check(rc->s[1].buf + GRH, lens[k], k);
			assert_int_equal(rc->s[1].buf[GRH + lens[k]], 0xee);
			sent++;
		}
	}
	assert_int_equal(rc->s[0].f.sent, sent);
	/* "Nothing is acknowledged." */
	assert_int_equal(rc->s[1].f.sent, 0);
	rc->s[0].f.filter = NULL;
}

/*
 * A datagram that the wire has no room for waits, and those behind it; other queues do
 * not.
 */
static void test_waits_for_wire(void **state)
{
	const struct rc_opt opt = { .type = SKUA_QP_UD };
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x33 };
	struct skua_qp_attr attr;
	struct mini_qp qp;
	struct rc rc;

	(void)state;
	open_ud(&rc, NULL);
	rc_qp(&rc, 0, &qp, &opt);
	attr = rc_attr(&rc, 0, &opt, 0);
	mini_rc_to_rts(&rc.s[0].m, &qp, &attr);
	rc.s[0].f.full = rc.s[1].mac;
	for (unsigned int k = 0; k < 4; k++) {
		struct skua_wqe_av av = rc_av(&rc, 0);

		if (k == 3)
			memcpy(av.av.dmac, other, sizeof(other));
		rc_post_quiet(&rc, 0, k == 3 ? &qp : &rc.s[0].qp,
			      &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = k, .av = &av });
	}
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	mini_ring(&rc.s[0].m, &qp);
	fake_run(&rc.s[0].f);
	assert_int_equal(rc.s[0].f.sent, 1);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	rc.s[0].f.full = NULL;
	skua_dev_room(rc.s[0].f.dev);
	fake_run(&rc.s[0].f);
	assert_int_equal(rc.s[0].f.sent, 4);
	for (unsigned int k = 0; k < 3; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

static void test_messages(void **state)
{
	const struct rc_opt opts[] = {
		{ 0 }, { .ipv6 = true }, { .vlan = 100 }, { .ipv6 = true, .vlan = 4094 },
		{ .psn = { 0xfffffd, 5 } }, { .onchip = 1 },
	};
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(opts); k++) {
		open_ud(&rc, &opts[k]);
		one_packet_each(&rc, opts[k].ipv6);
		rc_expect_none(&rc, 1, true);
		rc_expect_no_event(&rc, 1);
		rc_close(&rc);
	}
}

/* Lists on both sides, cut anywhere, also within what stands for the GRH. */
static void test_lists(void **state)
{
	unsigned int seed = 5;
	struct rc rc;

	(void)state;
	open_ud(&rc, &(struct rc_opt){ .log_stride = 4 });
	for (unsigned int k = 0; k < 200; k++) {
		uint32_t len = rand_r(&seed) % 4097, left = len, off = 100;
		struct rc_wr wr = { .op = SKUA_WQE_SEND, .nsge = 1 + rand_r(&seed) % 10 };
		struct sge recv[16];

		for (uint32_t i = 0; i < wr.nsge; i++) {
			uint32_t n = i + 1 == wr.nsge ? left : rand_r(&seed) % (left + 1);

			wr.sge[i] = (struct sge){ RC_VA + off, rc.s[0].key, n };
			off += n;
			left -= n;
		}
		left = GRH + len;
		for (uint32_t i = 0; i < 16; i++) {
			uint32_t n = i == 15 ? left : rand_r(&seed) % (1 + left / 2);

			recv[i] = (struct sge){ RC_VA + 8192 + GRH + len - left, rc.s[1].key, n };
			left -= n;
		}
		rc_fill(rc.s[0].buf + 100, len, k);
		rc_recv_sge(&rc, 1, recv, 16);
		rc_post(&rc, 0, &wr);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		check_recv(&rc, len, false, false);
		rc_check(rc.s[1].buf + 8192 + GRH, len, k);
	}
	rc_close(&rc);
}

/* What the address vector says is what the packet has. */
static void test_path(void **state)
{
	struct fake_frame frame;
	struct skua_wqe_av av;
	struct skua_pkt pkt;
	uint16_t port = 0;
	struct rc rc;

	(void)state;
	for (unsigned int ipv6 = 0; ipv6 < 2; ipv6++) {
		open_ud(&rc, &(struct rc_opt){ .ipv6 = ipv6, .vlan = 7, .psn = { 0xffffff } });
		rc.s[0].f.filter = keep;
		rc.s[0].f.filter_priv = &frame;
		av = rc_av(&rc, 0);
		av.av.tclass = 0xb9;
		av.av.hop_limit = 3;
		av.av.flow = le32_encode_bits(0xabcde, SKUA_AV_FLOW_LABEL) |
			     le32_encode_bits(5, SKUA_AV_PCP);
		av.av.udp_sport = cpu_to_le16(4242);
		rc_recv(&rc, 1, 0, 4096);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 10, .av = &av,
						 .flags = SKUA_WQE_F_SOLICITED });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(skua_pkt_parse(frame.data, frame.len, &pkt), SKUA_PKT_OK);
		assert_int_equal(pkt.opcode, IB_OPCODE(UD, SEND_ONLY));
		assert_int_equal(pkt.tclass, 0xb9);
		assert_int_equal(pkt.hop_limit, 3);
		assert_int_equal(pkt.flow_label, ipv6 ? 0xabcde : 0);
		assert_int_equal(pkt.tci, 5 << 13 | 7);
		assert_int_equal(pkt.sport, 4242);
		assert_int_equal(pkt.psn, 0xffffff);
		assert_true(pkt.se);
		assert_false(pkt.ackreq);
		assert_int_equal(pkt.pkey, IB_PKEY_DEFAULT);
		assert_int_equal(pkt.dqpn, rc.s[1].qp.qpn);
		assert_int_equal(be24_get(pkt.deth->sqpn), rc.s[0].qp.qpn);
		assert_int_equal(be32_get(pkt.deth->qkey), RC_QKEY);
		assert_memory_equal(pkt.dmac, rc.s[1].mac, 6);
		/* Without a port: from the flow label, or from the QP numbers; the next PSN. */
		av.av.udp_sport = 0;
		for (unsigned int k = 0; k < 2; k++) {
			rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .av = &av });
			rc_pump(&rc);
			assert_int_equal(skua_pkt_parse(frame.data, frame.len, &pkt), SKUA_PKT_OK);
			assert_int_equal(pkt.psn, k);
			assert_true(pkt.sport >= ROCE_UDP_SPORT_MIN);
			/* All bits of the label count. */
			assert_true(k || pkt.sport == (((0xabcde & 0x3fff) ^ 0xabcde >> 14) |
						       ROCE_UDP_SPORT_MIN));
			assert_true(!k || pkt.sport != port);
			port = pkt.sport;
			av.av.flow = 0;
		}
		rc_close(&rc);
	}
}

/* --- the Q_Key --- */

static const struct {
	const char *name;
	uint32_t sent, own, theirs;
	bool arrives;
} qkeys[] = {
	{ "the addressee's", 0x1234, 1, 0x1234, true },
	{ "another", 0x1235, 0x1234, 0x1234, false },
	{ "zero is a Q_Key", 0, 1, 0, true },
	{ "top bit: the sender's own (3.5.3)", 0x80000000, 0x1234, 0x1234, true },
	{ "whatever the other bits are", 0xffffffff, 0x1234, 0x1234, true },
	{ "top bit: not what the WQE says", 0x80001234, 0x77, 0x80001234, false },
	{ "an own Q_Key with the top bit", 0x80000000, 0x80001234, 0x80001234, true },
};

static void set_qkey(struct rc *rc, int i, uint32_t qkey)
{
	struct skua_qp_attr a = { .qkey = cpu_to_le32(qkey) };

	assert_int_equal(mini_qp_modify(&rc->s[i].m, &rc->s[i].qp, SKUA_QP_RTS, SKUA_QP_M_QKEY,
					&a), 0);
}

static void test_qkey(void **state)
{
	struct rc rc;

	(void)state;
	open_ud(&rc, NULL);
	for (size_t k = 0; k < N(qkeys); k++) {
		struct skua_wqe_av av = rc_av(&rc, 0);
		uint64_t bad = rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_QKEY);

		print_message("%s\n", qkeys[k].name);
		set_qkey(&rc, 0, qkeys[k].own);
		set_qkey(&rc, 1, qkeys[k].theirs);
		av.qkey = cpu_to_le32(qkeys[k].sent);
		rc_recv(&rc, 1, 0, 4096);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 5, .av = &av });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_QKEY), bad + !qkeys[k].arrives);
		if (qkeys[k].arrives)
			check_recv(&rc, 5, false, false);
		rc_expect_none(&rc, 1, true);
		rc_expect_no_event(&rc, 1);
	}
	assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
	rc_close(&rc);
}

/* --- what cannot be sent --- */

static void av_no_gid(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->av.sgid_index = cpu_to_le16(1);
}

static void av_far_gid(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->av.sgid_index = cpu_to_le16(0xffff);
}

static void av_family(struct rc *rc, struct skua_wqe_av *av)
{
	mini_gid_addr(av->av.dgid, 2, !rc->s[0].ipv6);
}

static void av_no_dgid(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	memset(av->av.dgid, 0, sizeof(av->av.dgid));
}

static void av_no_dmac(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	memset(av->av.dmac, 0, sizeof(av->av.dmac));
}

static void av_group_dmac(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->av.dmac[0] |= 1;
}

static void av_group_qpn(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	/* 239.1.2.3 with its MAC address, but for a single QP. */
	memcpy(av->av.dgid + 12, "\xef\x01\x02\x03", 4);
	memcpy(av->av.dmac, "\x01\x00\x5e\x01\x02\x03", 6);
}

static void av_group_wrong_dmac(struct rc *rc, struct skua_wqe_av *av)
{
	av_group_qpn(rc, av);
	av->dest_qpn = cpu_to_le32(SKUA_QPN_MULTICAST);
	av->av.dmac[5] ^= 1;
}

static void av_group_unicast_dmac(struct rc *rc, struct skua_wqe_av *av)
{
	av_group_qpn(rc, av);
	av->dest_qpn = cpu_to_le32(SKUA_QPN_MULTICAST);
	memcpy(av->av.dmac, rc->s[1].mac, 6);
}

static void av_qpn(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->dest_qpn |= cpu_to_le32(1u << 24);
}

static void av_flow(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->av.flow = cpu_to_le32(1u << 23);
}

static void av_flow_bits(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->av.flow = cpu_to_le32(2u << 24);
}

static void av_pkey(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->pkey_index = cpu_to_le16(1);
}

static void av_reserved(struct rc *rc, struct skua_wqe_av *av)
{
	(void)rc;
	av->reserved = cpu_to_le32(1);
}

static const struct {
	const char *name;
	void (*change)(struct rc *rc, struct skua_wqe_av *av);
	enum skua_wqe_op op;
	uint32_t len, flags;
	uint32_t lkey;
	enum skua_cqe_status status;
	enum skua_vendor vendor;
} refused[] = {
	{ "no source GID", av_no_gid, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "source GID beyond the table", av_far_gid, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "families differ", av_family, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "no destination GID", av_no_dgid, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "no next hop", av_no_dmac, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "unicast to a group's MAC", av_group_dmac, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "multicast to one QP", av_group_qpn, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "multicast to another group's MAC", av_group_wrong_dmac,
	  .status = SKUA_CQE_LOC_QP_OP_ERR, .vendor = SKUA_VENDOR_WQE_AV },
	{ "multicast to a host's MAC", av_group_unicast_dmac,
	  .status = SKUA_CQE_LOC_QP_OP_ERR, .vendor = SKUA_VENDOR_WQE_AV },
	{ "QPN beyond 24 bits", av_qpn, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "reserved bit of the flow", av_flow, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "a rate without the capability", av_flow_bits, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_AV },
	{ "P_Key index", av_pkey, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_FORMAT },
	{ "reserved word", av_reserved, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_FORMAT },
	{ "longer than the path MTU", .len = 4097, .status = SKUA_CQE_LOC_LEN_ERR,
	  .vendor = SKUA_VENDOR_SGE_LEN },
	{ "a key that is not", .len = 8, .lkey = 0x1f00, .status = SKUA_CQE_LOC_PROT_ERR,
	  .vendor = SKUA_VENDOR_KEY_INVALID },
	{ "WRITE", .op = SKUA_WQE_WRITE, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_OPCODE },
	{ "READ", .op = SKUA_WQE_READ, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_OPCODE },
	{ "atomic", .op = SKUA_WQE_FAA, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_OPCODE },
	{ "invalidate", .op = SKUA_WQE_LOCAL_INV, .status = SKUA_CQE_LOC_QP_OP_ERR,
	  .vendor = SKUA_VENDOR_WQE_OPCODE },
};

static void post_refused(struct rc *rc, size_t k)
{
	struct skua_wqe_av av = rc_av(rc, 0);
	struct rc_wr wr = { .op = refused[k].op ? refused[k].op : SKUA_WQE_SEND,
			    .len = refused[k].len, .flags = refused[k].flags, .quiet = true,
			    .av = &av };

	if (refused[k].change)
		refused[k].change(rc, &av);
	if (refused[k].lkey) {
		wr.nsge = 1;
		wr.sge[0] = (struct sge){ RC_VA, refused[k].lkey, refused[k].len };
	}
	rc_post_quiet(rc, 0, &rc->s[0].qp, &wr);
}

/* In SQE receives come in as ever, and what is posted to send is flushed. */
static void in_sqe(struct rc *rc)
{
	assert_int_equal(rc_state(rc, 0), SKUA_QP_SQE);
	rc_post(rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND });
	rc_recv(rc, 0, 0, 4096);
	rc_post(rc, 1, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 7 });
	rc_pump(rc);
	rc_expect(rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect(rc, 0, true, SKUA_CQE_OK);
	rc_expect(rc, 1, false, SKUA_CQE_OK);
	rc_expect_no_event(rc, 0);
}

/*
 * "A datagram queue whose work request fails goes to SQE": that one is reported,
 * those before it are complete, those behind it are flushed.
 */
static void test_refused(void **state)
{
	struct skua_cqe cqe;
	uint64_t sent;
	struct rc rc;

	(void)state;
	open_ud(&rc, NULL);
	for (size_t k = 0; k < N(refused); k++) {
		print_message("%s\n", refused[k].name);
		rc_recv(&rc, 1, 0, 4096);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_SEND });
		post_refused(&rc, k);
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_SEND });
		sent = rc.s[0].f.sent;
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		assert_int_equal(rc.s[0].f.sent, sent + 1);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		cqe = rc_expect(&rc, 0, false, refused[k].status);
		assert_int_equal(skua_cqe_vendor(&cqe), refused[k].vendor);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&rc, 0, false);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
		in_sqe(&rc);
		assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
	}
	rc_recv(&rc, 1, 0, 4096);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 9 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	check_recv(&rc, 9, false, false);
	rc_close(&rc);
}

/* What was posted in the time of the error is flushed, however soon software resumes. */
static void test_resume_at_once(void **state)
{
	struct rc rc;

	(void)state;
	open_ud(&rc, &(struct rc_opt){ .log_sq = 8 });
	post_refused(&rc, 0);
	for (unsigned int k = 0; k < 100; k++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_SEND });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	while (rc_state(&rc, 0) != SKUA_QP_SQE)
		skua_dev_run(rc.s[0].f.dev);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	for (unsigned int k = 0; k < 100; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(rc.s[0].f.sent, 1);
	rc_close(&rc);
}

/* The path MTU of datagrams is the port's. */
static void test_port_mtu(void **state)
{
	static const uint16_t ports[] = { 352, 608, 1120, 1500, 2144, 4192 };
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(ports); k++) {
		uint32_t mtu = ports[k] == 1500 ? 1024 : ports[k] - 96;
		struct skua_cmd_modify_port_in port = {
			.mask = cpu_to_le32(SKUA_PORT_M_MTU), .mtu = cpu_to_le16(ports[k]),
		};

		open_ud(&rc, NULL);
		for (int i = 0; i < 2; i++)
			mini_ok(&rc.s[i].m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
		rc_recv(&rc, 1, 0, 8192);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = mtu });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = mtu + 1 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, SKUA_CQE_LOC_LEN_ERR);
		check_recv(&rc, mtu, false, false);
		rc_close(&rc);
	}
}

/* --- what cannot be received --- */

static void inject(struct rc *rc, uint32_t qkey, uint32_t dqpn, uint16_t pkey, uint8_t opcode,
		   uint32_t len)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4200];
	struct skua_pkt_addr a = rc_addr(rc, 0);
	struct skua_pkt_bth bth = { .opcode = opcode, .pkey = pkey, .dqpn = dqpn };
	struct skua_pkt_build b;

	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
	if (b.deth)
		ib_deth_put(b.deth, qkey, 5);
	memset(b.payload, 0x66, len);
	rc_inject(rc, 1, &b, len);
	fake_run(&rc->s[1].f);
}

/* "A datagram that fails a check is dropped without a word": counted, the QP as before. */
static void test_dropped(void **state)
{
	const uint8_t send = IB_OPCODE(UD, SEND_ONLY);
	const struct {
		const char *name;
		uint32_t qkey, variant;
		uint16_t pkey;
		uint8_t opcode;
		uint32_t len, room;
		enum skua_counter cnt;
	} cases[] = {
		{ "nothing amiss", RC_QKEY, 0, 0xffff, send, 8, 64, SKUA_CNT_RX_SEND },
		{ "a limited member", RC_QKEY, 0, 0x7fff, send, 8, 64, SKUA_CNT_RX_SEND },
		{ "another Q_Key", RC_QKEY + 1, 0, 0xffff, send, 8, 64, SKUA_CNT_RX_BAD_QKEY },
		{ "another P_Key (C9-43)", RC_QKEY, 0, 0x8001, send, 8, 64, SKUA_CNT_RX_BAD_PKEY },
		{ "both: the P_Key comes first", 1, 0, 0x8001, send, 8, 64,
		  SKUA_CNT_RX_BAD_PKEY },
		{ "no such QP", RC_QKEY, 1u << MODEL_LOG_QP, 0xffff, send, 8, 64,
		  SKUA_CNT_RX_NO_QP },
		{ "a connection's opcode", RC_QKEY, 0, 0xffff, IB_OPCODE(RC, SEND_ONLY), 8, 64,
		  SKUA_CNT_RX_MALFORMED },
		{ "no receive WQE", RC_QKEY, 0, 0xffff, send, 8, 0, SKUA_CNT_OUT_OF_BUFFER },
		{ "a byte too short", RC_QKEY, 0, 0xffff, send, 25, 64,
		  SKUA_CNT_RESP_LOCAL_LEN },
		{ "no room for the GRH", RC_QKEY, 0, 0xffff, send, 0, 39,
		  SKUA_CNT_RESP_LOCAL_LEN },
		{ "just so much room", RC_QKEY, 0, 0xffff, send, 24, 64, SKUA_CNT_RX_SEND },
		{ "longer than the path MTU", RC_QKEY, 0, 0xffff, send, 4100, 8192,
		  SKUA_CNT_RX_MALFORMED },
	};
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(cases); k++) {
		bool good = cases[k].cnt == SKUA_CNT_RX_SEND;

		print_message("%s\n", cases[k].name);
		open_ud(&rc, NULL);
		if (cases[k].room)
			rc_recv(&rc, 1, 0, cases[k].room);
		inject(&rc, cases[k].qkey, rc.s[1].qp.qpn ^ cases[k].variant, cases[k].pkey,
		       cases[k].opcode, cases[k].len);
		assert_int_equal(rc_cnt(&rc, 1, cases[k].cnt), 1);
		if (good)
			rc_expect(&rc, 1, true, SKUA_CQE_OK);
		rc_expect_none(&rc, 1, true);
		rc_expect_no_event(&rc, 1);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		assert_int_equal(rc.s[1].f.sent, 0);
		/* The WQE is there for the next one. */
		if (!good && cases[k].room >= GRH) {
			inject(&rc, RC_QKEY, rc.s[1].qp.qpn, 0xffff, send, 0);
			rc_expect(&rc, 1, true, SKUA_CQE_OK);
		}
		rc_close(&rc);
	}
}

/* "By state": INIT takes nothing; RTR, SQD and SQE do, without an event. */
static void test_states(void **state)
{
	struct rc rc;

	(void)state;
	for (unsigned int s = SKUA_QP_RESET; s <= SKUA_QP_ERR; s++) {
		bool takes = s != SKUA_QP_RESET && s != SKUA_QP_INIT && s != SKUA_QP_ERR;
		struct skua_qp_attr a;

		if (s == SKUA_QP_SQE)
			continue;	/* test_refused */
		open_ud(&rc, &(struct rc_opt){ .down = true });
		a = rc.s[1].attr;
		if (s >= SKUA_QP_INIT)
			assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_INIT,
							SKUA_QP_M_PKEY | SKUA_QP_M_PORT |
							SKUA_QP_M_QKEY, &a), 0);
		if (s >= SKUA_QP_RTR)
			assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RTR, 0,
							&a), 0);
		if (s >= SKUA_QP_RTS)
			assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_RTS,
							SKUA_QP_M_SQ_PSN, &a), 0);
		if (s > SKUA_QP_RTS)
			assert_int_equal(mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, s, 0, &a), 0);
		if (s != SKUA_QP_ERR)
			rc_recv(&rc, 1, 0, 4096);
		inject(&rc, RC_QKEY, rc.s[1].qp.qpn, 0xffff, IB_OPCODE(UD, SEND_ONLY), 3);
		assert_int_equal(rc_cnt(&rc, 1, takes ? SKUA_CNT_RX_SEND : SKUA_CNT_RX_BAD_STATE),
				 1);
		if (takes)
			rc_expect(&rc, 1, true, SKUA_CQE_OK);
		rc_expect_none(&rc, 1, true);
		rc_expect_no_event(&rc, 1);
		rc_close(&rc);
	}
}

/* A receive WQE that is at fault itself ends the QP. */
static void test_bad_receive(void **state)
{
	struct skua_cqe cqe;
	struct sge sge;
	struct rc rc;

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		open_ud(&rc, NULL);
		sge = (struct sge){ RC_VA, rc.s[1].key, 4096 };
		if (k == 0)
			sge.lkey = 0x1f00;
		else if (k == 1)
			sge.len = (1u << 31) + 1;
		else
			fake_hole(&rc.s[1].f, rc.s[1].qp.rq, 4096);
		if (k != 2)
			rc_recv_sge(&rc, 1, &sge, 1);
		else
			((struct skua_qp_dbr *)fake_ptr(&rc.s[1].f, rc.s[1].qp.dbr))->rq_pi =
				cpu_to_le32(1);
		inject(&rc, RC_QKEY, rc.s[1].qp.qpn, 0xffff, IB_OPCODE(UD, SEND_ONLY), 3);
		cqe = rc_expect(&rc, 1, true, k ? SKUA_CQE_LOC_QP_OP_ERR : SKUA_CQE_LOC_PROT_ERR);
		assert_int_equal(skua_cqe_vendor(&cqe), k == 0 ? SKUA_VENDOR_KEY_INVALID :
				 k == 1 ? SKUA_VENDOR_SGE_LEN : SKUA_VENDOR_WQE_DMA);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		rc_close(&rc);
	}
}

/* --- general services --- */

static void gsi_open(struct rc *rc, int i, struct mini_qp *qp)
{
	struct rc_side *s = &rc->s[i];
	struct skua_cmd_create_qp_in in;
	/* Not what is checked: the Q_Key of QP 1 cannot be changed. */
	struct skua_qp_attr a = { .qkey = cpu_to_le32(0x4711) };

	in = mini_qp_in(&s->m, qp, SKUA_QP_GSI, &s->scq, &s->rcq, 6, 6, 2);
	qp->qpn = IB_QPN_GSI;
	in.sq.qpn = cpu_to_le32(IB_QPN_GSI);
	mini_ok(&s->m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	mini_rc_to_rts(&s->m, qp, &a);
}

static void gsi_recv(struct rc *rc, int i, struct mini_qp *qp)
{
	struct skua_wqe_data d = { .addr = cpu_to_le64(RC_VA), .len = cpu_to_le32(512),
				   .lkey = cpu_to_le32(rc->s[i].key) };

	mini_recv(&rc->s[i].m, qp, &d, 1);
}

/* QP 1 to QP 1; users do not get there, but by its Q_Key. */
static void test_gsi_c9_42(void **state)
{
	struct mini_qp gsi[2];
	struct skua_wqe_av av;
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	open_ud(&rc, NULL);
	for (int i = 0; i < 2; i++)
		gsi_open(&rc, i, &gsi[i]);
	av = rc_av(&rc, 0);
	av.dest_qpn = cpu_to_le32(IB_QPN_GSI);
	av.qkey = cpu_to_le32(SKUA_QKEY_GSI);
	gsi_recv(&rc, 1, &gsi[1]);
	rc_fill(rc.s[0].buf, 256, 1);
	rc_post_quiet(&rc, 0, &gsi[0], &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 256,
							.av = &av });
	mini_ring(&rc.s[0].m, &gsi[0]);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
	assert_int_equal(le32_to_cpu(cqe.qpn), IB_QPN_GSI);
	assert_int_equal(le32_to_cpu(cqe.ud.src_qpn), IB_QPN_GSI);
	assert_int_equal(le32_to_cpu(cqe.byte_len), 256 + GRH);
	rc_check(rc.s[1].buf + GRH, 256, 1);
	/* A user's WQE that names it sends that user's own. */
	gsi_recv(&rc, 1, &gsi[1]);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 256, .av = &av });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 1, true);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_QKEY), 1);
	/* Nor does the one that software gave it open it. */
	inject(&rc, 0x4711, IB_QPN_GSI, 0xffff, IB_OPCODE(UD, SEND_ONLY), 3);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_QKEY), 2);
	/* Nor does it take what is of another partition. */
	inject(&rc, SKUA_QKEY_GSI, IB_QPN_GSI, 0x8001, IB_OPCODE(UD, SEND_ONLY), 3);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_PKEY), 1);
	rc_expect_none(&rc, 1, true);
	inject(&rc, SKUA_QKEY_GSI, IB_QPN_GSI, 0xffff, IB_OPCODE(UD, SEND_ONLY), 3);
	rc_expect(&rc, 1, true, SKUA_CQE_OK);
	rc_close(&rc);
}

/* --- round inside, order, SQD --- */

static void test_loopback(void **state)
{
	struct skua_wqe_av av;
	struct rc rc;

	(void)state;
	open_ud(&rc, NULL);
	av = rc_av(&rc, 1);
	av.dest_qpn = cpu_to_le32(rc.s[0].qp.qpn);
	rc_recv(&rc, 0, 1 << 20, 8192);
	rc_fill(rc.s[0].buf, 1000, 9);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 1000, .av = &av });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, true, SKUA_CQE_OK);
	rc_check(rc.s[0].buf + (1 << 20) + GRH, 1000, 9);
	assert_int_equal(rc.s[0].f.sent, 0);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_LOOPBACK_PKTS), 1);
	rc_close(&rc);
}

/* Round the ring and the number spaces; unsignaled ones leave no trace. */
static void test_many(void **state)
{
	struct rc rc;

	(void)state;
	open_ud(&rc, &(struct rc_opt){ .log_sq = 5, .log_rq = 4, .psn = { 0xfffff0 } });
	for (unsigned int round = 0; round < 10000; round++) {
		for (unsigned int k = 0; k < 4; k++) {
			if (k != 2)
				rc_recv(&rc, 1, 64 * k, 64);
			rc_post_quiet(&rc, 0, &rc.s[0].qp,
				      &(struct rc_wr){ .op = k == 2 ? SKUA_WQE_NOP :
						       SKUA_WQE_SEND, .len = k, .quiet = k & 1 });
		}
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect_none(&rc, 0, false);
		check_recv(&rc, 0, false, false);
		check_recv(&rc, 1, false, false);
		check_recv(&rc, 3, false, false);
	}
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	rc_close(&rc);
}

static void test_sqd(void **state)
{
	struct rc rc;

	(void)state;
	open_ud(&rc, NULL);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_SQD, 0, NULL), 0);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND });
	rc_pump(&rc);
	assert_int_equal(rc.s[0].f.sent, 0);
	rc_recv(&rc, 0, 0, 64);
	rc_post(&rc, 1, &(struct rc_wr){ .op = SKUA_WQE_SEND });
	rc_pump(&rc);
	rc_expect(&rc, 0, true, SKUA_CQE_OK);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(rc.s[0].f.sent, 1);
	/* Into ERR both queues are flushed. */
	rc_recv(&rc, 0, 0, 64);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect(&rc, 0, true, SKUA_CQE_WR_FLUSH_ERR);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_waits_for_wire),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_qkey),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_resume_at_once),
		cmocka_unit_test(test_port_mtu),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_bad_receive),
		cmocka_unit_test(test_gsi_c9_42),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_sqd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
