// SPDX-License-Identifier: GPL-2.0
/* RAW_ETH queues: what comes in, and the hash that spreads it. */
#include "eth_test.h"

/* --- Toeplitz: the test vectors that Microsoft publishes for RSS --- */

static const uint8_t ms_key[] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
	0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static void toeplitz_v4(void **state)
{
	/* Source, destination, ports; hash over addresses, over all. */
	static const struct {
		uint8_t data[12];
		uint32_t l3, l4;
	} v[] = {
		{ { 66, 9, 149, 187, 161, 142, 100, 80, 2794 >> 8, 2794 & 255, 1766 >> 8,
		    1766 & 255 }, 0x323e8fc2, 0x51ccc178 },
		{ { 199, 92, 111, 2, 65, 69, 140, 83, 14230 >> 8, 14230 & 255, 4739 >> 8,
		    4739 & 255 }, 0xd718262a, 0xc626b0ea },
		{ { 24, 19, 198, 95, 12, 22, 207, 184, 12898 >> 8, 12898 & 255, 38024 >> 8,
		    38024 & 255 }, 0xd2d0a5de, 0x5c2b394a },
		{ { 38, 27, 205, 30, 209, 142, 163, 6, 48228 >> 8, 48228 & 255, 2217 >> 8,
		    2217 & 255 }, 0x82989176, 0xafc7327f },
		{ { 153, 39, 163, 191, 202, 188, 127, 2, 44251 >> 8, 44251 & 255, 1303 >> 8,
		    1303 & 255 }, 0x5d1809c5, 0x10e828a2 },
	};

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(toeplitz(ms_key, v[i].data, 8), v[i].l3);
		assert_int_equal(toeplitz(ms_key, v[i].data, 12), v[i].l4);
	}
}

static void toeplitz_v6(void **state)
{
	static const struct {
		uint8_t data[36];
		uint32_t l3, l4;
	} v[] = {
		/* 3ffe:2501:200:1fff::7 -> 3ffe:2501:200:3::1 */
		{ { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7,
		    0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1,
		    2794 >> 8, 2794 & 255, 1766 >> 8, 1766 & 255 }, 0x2cc18cd5, 0x40207d3d },
		/* 3ffe:501:8::260:97ff:fe40:efab -> ff02::1 */
		{ { 0x3f, 0xfe, 0x05, 0x01, 0, 8, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef,
		    0xab, 0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		    14230 >> 8, 14230 & 255, 4739 >> 8, 4739 & 255 }, 0x0f0c461c, 0xdde51bbf },
		/* 3ffe:1900:4545:3:200:f8ff:fe21:67cf -> fe80::200:f8ff:fe21:67cf */
		{ { 0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0, 3, 0x02, 0, 0xf8, 0xff, 0xfe, 0x21,
		    0x67, 0xcf, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0, 0xf8, 0xff, 0xfe, 0x21,
		    0x67, 0xcf, 44251 >> 8, 44251 & 255, 38024 >> 8, 38024 & 255 },
		  0x4b61e985, 0x02d1feef },
	};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(toeplitz(ms_key, v[i].data, 32), v[i].l3);
		assert_int_equal(toeplitz(ms_key, v[i].data, 36), v[i].l4);
	}
}

/* --- receiving --- */

static struct skua_cqe receive(struct eth *e, const uint8_t *frame, size_t len)
{
	struct skua_wqe_data s[4];
	struct skua_cqe cqe;

	/* Elements of odd sizes, one of them empty. */
	sge(&s[0], e->rx, SKUA_RESERVED_LKEY, 13);
	sge(&s[1], 0, SKUA_RESERVED_LKEY, 0);
	sge(&s[2], e->rx + 13, SKUA_RESERVED_LKEY, 100);
	sge(&s[3], e->rx + 113, SKUA_RESERVED_LKEY, 9000);
	memset(fake_ptr(&e->r->f, e->rx), 0xee, 9200);
	mini_recv(&e->r->m, &e->qp, s, 4);
	fake_rx(&e->r->f, frame, len);
	assert_true(mini_cq_next(&e->r->m, &e->rcq, &cqe));
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_OPCODE), SKUA_CQE_RECV_ETH);
	return cqe;
}

static void receive_plain(void **state)
{
	struct rig *r = *state;
	uint8_t frame[MINI_MTU + 18];
	struct eth e;

	eth_up(&e, r);
	eth_header(frame, 0x88b5);
	memcpy(frame, own, 6);
	for (unsigned int i = 14; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i * 5);
	for (size_t len = 14; len <= MINI_MTU + 14; len += 97) {
		struct skua_cqe cqe = receive(&e, frame, len);
		const uint8_t *mem = fake_ptr(&r->f, e.rx);

		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_OK);
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), e.qp.rq_pi - 1);
		assert_int_equal(le32_to_cpu(cqe.byte_len), len);
		assert_int_equal(cqe.eth.csum, 0);
		assert_memory_equal(mem, frame, len);
		assert_int_equal(mem[len], 0xee);
	}
}

static void receive_vlan(void **state)
{
	struct rig *r = *state;
	uint8_t frame[200];
	struct eth e;

	eth_up(&e, r);
	for (unsigned int i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)i;
	memcpy(frame, own, 6);
	be32_put(frame + 12, 0x81002fff);
	be16_put(frame + 16, 0x88b5);
	for (size_t len = 18; len < 200; len += 7) {
		struct skua_cqe cqe = receive(&e, frame, len);
		const uint8_t *mem = fake_ptr(&r->f, e.rx);

		assert_true(le32_to_cpu(cqe.own) & SKUA_CQE_F_VLAN);
		assert_int_equal(le16_to_cpu(cqe.eth.vlan_tci), 0x2fff);
		assert_int_equal(le32_to_cpu(cqe.byte_len), len - 4);
		assert_memory_equal(mem, frame, 12);
		assert_memory_equal(mem + 12, frame + 16, len - 16);
		assert_int_equal(mem[len - 4], 0xee);
	}
}

/* A tag that is stripped needs no room. */
static void receive_vlan_fits(void **state)
{
	struct rig *r = *state;
	uint8_t frame[104] = { 0 };
	struct skua_wqe_data d;
	struct skua_cqe cqe;
	struct eth e;

	eth_up(&e, r);
	memcpy(frame, own, 6);
	be32_put(frame + 12, 0x81002fff);
	be16_put(frame + 16, 0x88b5);
	sge(&d, e.rx, SKUA_RESERVED_LKEY, sizeof(frame) - 4);
	mini_recv(&r->m, &e.qp, &d, 1);
	fake_rx(&r->f, frame, sizeof(frame));
	fake_run(&r->f);
	assert_true(mini_cq_next(&r->m, &e.rcq, &cqe));
	assert_int_equal(le32_to_cpu(cqe.byte_len), sizeof(frame) - 4);
	/* One byte less is too little. */
	sge(&d, e.rx, SKUA_RESERVED_LKEY, sizeof(frame) - 5);
	mini_recv(&r->m, &e.qp, &d, 1);
	fake_rx(&r->f, frame, sizeof(frame));
	fake_run(&r->f);
	assert_false(mini_cq_next(&r->m, &e.rcq, &cqe));
}

/* A queue that wants tags left where they are. */
static void receive_keep_vlan(void **state)
{
	struct rig *r = *state;
	uint8_t frame[200];
	struct eth e;

	eth_up_flags(&e, r, SKUA_QP_F_KEEP_VLAN);
	for (unsigned int i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)i;
	memcpy(frame, own, 6);
	be32_put(frame + 12, 0x81002fff);
	be16_put(frame + 16, 0x88b5);
	for (size_t len = 18; len < 200; len += 7) {
		struct skua_cqe cqe = receive(&e, frame, len);
		const uint8_t *mem = fake_ptr(&r->f, e.rx);

		assert_false(le32_to_cpu(cqe.own) & SKUA_CQE_F_VLAN);
		assert_int_equal(le32_to_cpu(cqe.byte_len), len);
		assert_memory_equal(mem, frame, len);
		assert_int_equal(mem[len], 0xee);
	}
}

/* One tag, of either type, is not part of the payload that the port's MTU limits. */
static void receive_tag_mtu(void **state)
{
	static const struct {
		uint32_t outer, inner;
		bool fits;
	} tags[] = {
		{ 0x81000007, 0x88b5, true },
		{ 0x88a80007, 0x88b5, true },
		{ 0x88a80007, 0x8100, true },
		{ 0x88b50000, 0x88b5, false },
	};
	struct rig *r = *state;
	uint8_t frame[MINI_MTU + 19] = { 0 };
	struct skua_cqe cqe;
	struct eth e;

	eth_up_flags(&e, r, SKUA_QP_F_KEEP_VLAN);
	memcpy(frame, own, 6);
	for (unsigned int i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		be32_put(frame + 12, tags[i].outer);
		be16_put(frame + 16, (uint16_t)tags[i].inner);
		if (tags[i].fits) {
			cqe = receive(&e, frame, MINI_MTU + 18);
			assert_int_equal(le32_to_cpu(cqe.byte_len), MINI_MTU + 18);
		} else {
			assert_counts(&r->m, ETH_RX_TOO_LONG, 1,
				      fake_rx(&r->f, frame, MINI_MTU + 18));
		}
		assert_counts(&r->m, ETH_RX_TOO_LONG, 1, fake_rx(&r->f, frame, MINI_MTU + 19));
	}
	/* Cut behind the type: a frame like any other. */
	be16_put(frame + 12, 0x88a8);
	cqe = receive(&e, frame, 14);
	assert_int_equal(le32_to_cpu(cqe.byte_len), 14);
}

static void receive_checksums(void **state)
{
	struct rig *r = *state;
	struct eth e;

	eth_up(&e, r);
	for (unsigned int kind = 0; kind < 4; kind++) {
		bool v6 = kind & 1, tcp = kind & 2;
		uint16_t seen = (v6 ? SKUA_CQE_CSUM_IPV6 : SKUA_CQE_CSUM_IPV4) |
				(tcp ? SKUA_CQE_CSUM_TCP : SKUA_CQE_CSUM_UDP);
		uint8_t *mem = fake_ptr(&r->f, e.tx);
		size_t len = datagram(mem, v6, tcp, 333);
		struct fake_frame *out;
		struct skua_cqe cqe;

		/* Let the device make the sums; they were tested above. */
		send(&e, len, SKUA_WQE_F_L4_CSUM | (v6 ? 0 : SKUA_WQE_F_L3_CSUM), 0);
		out = fake_tx(&r->f);
		memcpy(out->data, own, 6);
		cqe = receive(&e, out->data, len);
		assert_int_equal(le16_to_cpu(cqe.eth.csum), seen | SKUA_CQE_CSUM_L4_OK |
				 (v6 ? 0 : SKUA_CQE_CSUM_L3_OK));
		/* Padding behind the datagram is none of it. */
		memset(out->data + len, 0x5a, 10);
		cqe = receive(&e, out->data, len + 10);
		assert_true(le16_to_cpu(cqe.eth.csum) & SKUA_CQE_CSUM_L4_OK);
		out->data[len - 1] ^= 1;
		assert_counts(&r->m, ETH_RX_CSUM_ERR, 1, cqe = receive(&e, out->data, len));
		assert_int_equal(le16_to_cpu(cqe.eth.csum), seen | (v6 ? 0 : SKUA_CQE_CSUM_L3_OK));
		out->data[len - 1] ^= 1;
		if (!v6) {
			out->data[14 + 8]--;
			cqe = receive(&e, out->data, len);
			assert_int_equal(le16_to_cpu(cqe.eth.csum), seen | SKUA_CQE_CSUM_L4_OK);
			out->data[14 + 8]++;
		}
		if (!tcp) {
			/* A sender that made no checksum: there is none to be wrong. */
			uint8_t *check = out->data + 14 + (v6 ? 40 : 20) + 6;
			uint16_t was = be16_get(check);

			be16_put(check, 0);
			assert_counts(&r->m, ETH_RX_CSUM_ERR, 0,
				      cqe = receive(&e, out->data, len));
			assert_int_equal(le16_to_cpu(cqe.eth.csum), seen | SKUA_CQE_CSUM_L4_NONE |
					 (v6 ? 0 : SKUA_CQE_CSUM_L3_OK));
			be16_put(check, was);
		}
		/* A length that is not there: nothing is said. */
		cqe = receive(&e, out->data, len - 1);
		assert_int_equal(cqe.eth.csum, 0);
		if (!v6) {
			/* A fragment: its transport header may be elsewhere. */
			out->data[14 + 6] = 0x20;
			cqe = receive(&e, out->data, len);
			assert_int_equal(le16_to_cpu(cqe.eth.csum), SKUA_CQE_CSUM_IPV4);
		}
		free(out);
	}
}

static void receive_fault(void **state)
{
	struct rig *r = *state;
	uint8_t frame[64] = { 0 };
	struct skua_cqe cqe;
	struct eth e;

	eth_up(&e, r);
	memcpy(frame, own, 6);
	fake_hole(&r->f, e.rx + 20, 1);
	cqe = receive(&e, frame, 60);
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(le32_get_bits(cqe.own, SKUA_CQE_VENDOR), SKUA_VENDOR_KEY_DMA);
	assert_counts(&r->m, ETH_RX_FILTERED, 1, fake_rx(&r->f, frame, 60));
}

/* --- spreading --- */

static void rss_spread(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_rss_in in = { .index = cpu_to_le32(2) };
	struct skua_cmd_modify_port_in port = {
		.mask = cpu_to_le32(SKUA_PORT_M_DFLT),
		.dflt = cpu_to_le32(SKUA_PORT_DFLT_RSS | 2),
	};
	struct eth e[4];
	unsigned int hits[4] = { 0 };
	uint8_t frame[100];

	for (unsigned int i = 0; i < 4; i++)
		eth_up(&e[i], r);
	in.rss.flags = le32_encode_bits(5, SKUA_RSS_LOG_SIZE) |
		       cpu_to_le32(SKUA_RSS_IPV4 | SKUA_RSS_TCP_IPV4);
	memcpy(in.rss.key, ms_key, sizeof(ms_key));
	for (unsigned int i = 0; i < 32; i++)
		in.rss.qpn[i] = cpu_to_le32(e[i % 4].qp.qpn);
	mini_ok(&r->m, SKUA_CMD_CREATE_RSS, &in, sizeof(in));
	mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_RSS, 2, NULL, 0), BUSY);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, e[1].qp.qpn, NULL, 0), BUSY);

	for (unsigned int i = 0; i < 256; i++) {
		bool tcp = i & 1;
		size_t len = datagram(frame, false, tcp, 20);
		uint8_t tuple[12];
		struct skua_wqe_data s;
		struct skua_cqe cqe;
		uint32_t hash;

		memcpy(frame, own, 6);
		frame[29] = i >> 1;
		memcpy(tuple, frame + 26, 12);
		hash = toeplitz(ms_key, tuple, tcp ? 12 : 8);
		sge(&s, e[hash % 4].rx, SKUA_RESERVED_LKEY, 2000);
		mini_recv(&r->m, &e[hash % 4].qp, &s, 1);
		fake_rx(&r->f, frame, len);
		assert_true(mini_cq_next(&r->m, &e[hash % 4].rcq, &cqe));
		assert_int_equal(le32_to_cpu(cqe.eth.rss_hash), hash);
		assert_true(le16_to_cpu(cqe.eth.csum) & (tcp ? SKUA_CQE_CSUM_HASH_L4 :
							       SKUA_CQE_CSUM_HASH_L3));
		hits[hash % 4]++;
	}
	for (unsigned int i = 0; i < 4; i++)
		assert_true(hits[i] > 20);

	/* Another table, of one queue. */
	in.rss.flags = cpu_to_le32(SKUA_RSS_IPV4);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_RSS, &in, sizeof(in), NULL, 0), BAD_PARAM);
	memset(in.rss.qpn + 1, 0, sizeof(in.rss.qpn) - 4);
	mini_ok(&r->m, SKUA_CMD_MODIFY_RSS, &in, sizeof(in));
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, e[1].qp.qpn, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, e[0].qp.qpn, NULL, 0), BUSY);
	port.dflt = cpu_to_le32(SKUA_PORT_NO_DFLT);
	mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_RSS, 2, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, e[0].qp.qpn, NULL, 0), OK);
}

static void rss_checks(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_rss_in good = { .index = cpu_to_le32(1) }, in;
	struct eth e;

	eth_up(&e, r);
	good.rss.flags = le32_encode_bits(1, SKUA_RSS_LOG_SIZE) | cpu_to_le32(SKUA_RSS_IPV6);
	good.rss.qpn[0] = cpu_to_le32(e.qp.qpn);
	good.rss.qpn[1] = cpu_to_le32(e.qp.qpn);
#define refuse(status, change) do {								\
		in = good;									\
		change;										\
		assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_RSS, &in, sizeof(in), NULL, 0),	\
			      status);								\
	} while (0)
	refuse(BAD_PARAM, in.rss.flags |= cpu_to_le32(SKUA_RSS_VALID));
	refuse(BAD_PARAM, in.rss.flags |= cpu_to_le32(1u << 22));
	refuse(BAD_PARAM, le32p_replace_bits(&in.rss.flags, 8, SKUA_RSS_LOG_SIZE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.rss.flags, 0, SKUA_RSS_LOG_SIZE));
	refuse(BAD_PARAM, in.rss.reserved = cpu_to_le32(1));
	refuse(BAD_PARAM, in.rss.pad[115] = cpu_to_le32(1));
	refuse(BAD_PARAM, in.reserved = cpu_to_le32(1));
	refuse(BAD_PARAM, in.rss.qpn[2] = cpu_to_le32(e.qp.qpn));
	refuse(BAD_INDEX, in.rss.qpn[1] = 0);
	refuse(BAD_INDEX, in.rss.qpn[0] = cpu_to_le32(0xffffffff));
	refuse(BAD_INDEX, in.index = cpu_to_le32(1 << MODEL_LOG_RSS));
	refuse(OK, );
	refuse(EXISTS, );
#undef refuse
	good.index = cpu_to_le32(3);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_RSS, &good, sizeof(good), NULL, 0), BAD_INDEX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(toeplitz_v4),
		cmocka_unit_test(toeplitz_v6),
		rig_test(receive_plain),
		rig_test(receive_vlan),
		rig_test(receive_vlan_fits),
		rig_test(receive_keep_vlan),
		rig_test(receive_tag_mtu),
		rig_test(receive_checksums),
		rig_test(receive_fault),
		rig_test(rss_spread),
		rig_test(rss_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
