// SPDX-License-Identifier: GPL-2.0
/* RAW_ETH queues: what goes out, what comes in, and the hash that spreads it. */
#include "core_test.h"
#include "frame.h"

static const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t peer[6] = { 2, 0, 0, 0, 0, 0x77 };

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

/* --- a queue pair --- */

struct eth {
	struct rig *r;
	struct mini_cq scq, rcq;
	struct mini_qp qp;
	uint64_t tx, rx;	/* memory to send from, to receive into */
};

#define MEM	(96u << 10)

static void eth_up_flags(struct eth *e, struct rig *r, uint32_t flags)
{
	struct skua_cmd_modify_port_in in = { .mask = cpu_to_le32(SKUA_PORT_M_DFLT) };
	struct skua_cmd_create_qp_in qp;

	e->r = r;
	mini_cq_create(&r->m, &e->scq, 6);
	mini_cq_create(&r->m, &e->rcq, 6);
	qp = mini_qp_in(&r->m, &e->qp, SKUA_QP_RAW_ETH, &e->scq, &e->rcq, 4, 4, 2);
	qp.sq.flags |= cpu_to_le32(flags);
	mini_ok(&r->m, SKUA_CMD_CREATE_QP, &qp, sizeof(qp));
	mini_eth_to_rts(&r->m, &e->qp);
	e->tx = fake_alloc(&r->f, MEM, 64);
	e->rx = fake_alloc(&r->f, MEM, 64);
	in.dflt = cpu_to_le32(e->qp.qpn);
	mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &in, sizeof(in));
}

static void eth_up(struct eth *e, struct rig *r)
{
	eth_up_flags(e, r, 0);
}

struct eth_wqe {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_data sge[8];
};

static void sge(struct skua_wqe_data *s, uint64_t addr, uint32_t lkey, uint32_t len)
{
	s->addr = cpu_to_le64(addr);
	s->lkey = cpu_to_le32(lkey);
	s->len = cpu_to_le32(len);
}

/* Send @len bytes at e->tx; what completed (-1: nothing did). */
static int send(struct eth *e, uint32_t len, uint32_t flags, uint32_t eth)
{
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(flags | SKUA_WQE_F_SIGNALED),
		.ctrl.eth = cpu_to_le32(eth),
	};
	uint32_t index = e->qp.sq_pi;
	struct skua_cqe cqe;

	sge(&w.sge[0], e->tx, SKUA_RESERVED_LKEY, len);
	mini_post(&e->r->m, &e->qp, &w, 2);
	mini_ring(&e->r->m, &e->qp);
	fake_run(&e->r->f);
	if (!mini_cq_next(&e->r->m, &e->scq, &cqe))
		return -1;
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), index & 0xffff);
	assert_int_equal(le32_to_cpu(cqe.qpn), e->qp.qpn);
	return le32_get_bits(cqe.what, SKUA_CQE_STATUS);
}

static void eth_header(uint8_t *p, uint16_t type)
{
	memcpy(p, peer, 6);
	memcpy(p + 6, own, 6);
	be16_put(p + 12, type);
}

/* A TCP or UDP datagram with wrong checksums; its frame's length. */
static size_t datagram(uint8_t *p, bool v6, bool tcp, size_t payload)
{
	size_t l4 = tcp ? 20 : 8;
	uint8_t *ip = p + 14, *t = ip + (v6 ? 40 : 20);

	memset(p, 0, 14 + 40 + 20);
	eth_header(p, v6 ? ETH_TYPE_IPV6 : ETH_TYPE_IPV4);
	if (v6) {
		ip[0] = 0x60;
		be16_put(ip + 4, l4 + payload);
		ip[6] = tcp ? 6 : 17;
		ip[7] = 64;
		memcpy(ip + 8, (uint8_t [2]){ 0xfd, 1 }, 2);
		memcpy(ip + 24, (uint8_t [2]){ 0xfd, 2 }, 2);
	} else {
		ip[0] = 0x45;
		be16_put(ip + 2, 20 + l4 + payload);
		be16_put(ip + 4, 0x1111);
		ip[8] = 64;
		ip[9] = tcp ? 6 : 17;
		be16_put(ip + 10, 0xdead);
		memcpy(ip + 12, (uint8_t [8]){ 10, 0, 0, 1, 10, 0, 0, 2 }, 8);
	}
	be16_put(t, 1000);
	be16_put(t + 2, 2000);
	if (tcp) {
		be32_put(t + 4, 0xfffffff0);
		t[12] = 0x50;
		t[13] = TCP_FIN | TCP_PSH | TCP_CWR | 0x10;
		be16_put(t + 16, 0xbeef);
	} else {
		be16_put(t + 4, 8 + payload);
		be16_put(t + 6, 0xbeef);
	}
	for (size_t i = 0; i < payload; i++)
		t[l4 + i] = (uint8_t)(i * 7 + i / 251);
	return 14 + (v6 ? 40 : 20) + l4 + payload;
}

/* The checksum by the book: 16 bits at a time, big-endian. */
static uint16_t book_sum(const uint8_t *p, size_t len, uint32_t acc)
{
	for (size_t i = 0; i < len; i++)
		acc += i & 1 ? p[i] : p[i] << 8;
	while (acc >> 16)
		acc = (acc & 0xffff) + (acc >> 16);
	return acc;
}

static bool book_ok(const uint8_t *frame, size_t len, bool v6)
{
	const uint8_t *ip = frame + 14;
	size_t hdr = v6 ? 40 : 20, l4 = len - 14 - hdr;
	uint32_t acc = book_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, 0);

	acc += (v6 ? ip[6] : ip[9]) + l4;
	if (!v6 && book_sum(ip, 20, 0) != 0xffff)
		return false;
	return book_sum(ip + hdr, l4, acc) == 0xffff;
}

/* --- sending --- */

static void send_plain(void **state)
{
	struct rig *r = *state;
	struct fake_frame *out;
	struct eth e;
	uint8_t *mem;

	eth_up(&e, r);
	mem = fake_ptr(&r->f, e.tx);
	for (uint32_t len = 14; len <= MINI_MTU + 14; len += 391) {
		eth_header(mem, 0x88b5);
		memset(mem + 14, len, len - 14);
		assert_counts(&r->m, ETH_TX_PKTS, 1, assert_int_equal(send(&e, len, 0, 0), 0));
		out = fake_tx(&r->f);
		assert_non_null(out);
		assert_int_equal(out->len, len);
		assert_memory_equal(out->data, mem, len);
		free(out);
	}
	/* What cannot be sent is counted and completes. */
	assert_counts(&r->m, ETH_TX_ERR, 1, assert_int_equal(send(&e, 13, 0, 0), 0));
	assert_counts(&r->m, ETH_TX_ERR, 1, assert_int_equal(send(&e, MINI_MTU + 15, 0, 0), 0));
	assert_counts(&r->m, ETH_TX_ERR, 1, assert_int_equal(send(&e, 90000, 0, 0), 0));
	assert_counts(&r->m, ETH_TX_ERR, 1,
		      assert_int_equal(send(&e, 100, SKUA_WQE_F_L4_CSUM, 0), 0));
	assert_null(fake_tx(&r->f));
	skua_dev_link(r->f.dev, false);
	assert_counts(&r->m, ETH_TX_ERR, 1, assert_int_equal(send(&e, 100, 0, 0), 0));
}

static void send_gather(void **state)
{
	static const uint32_t lens[] = { 3, 0, 11, 1, 400, 77 };
	struct rig *r = *state;
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
	};
	struct fake_frame *out;
	uint32_t at = 0, key;
	struct eth e;
	uint8_t *mem;

	eth_up(&e, r);
	mem = fake_ptr(&r->f, e.tx);
	eth_header(mem, 0x88b5);
	for (unsigned int i = 14; i < 492; i++)
		mem[i] = (uint8_t)i;
	key = mini_mr(&r->m, 0x5000, e.tx, MEM, 0);
	for (unsigned int i = 0; i < 6; i++) {
		sge(&w.sge[i], i & 1 ? e.tx + at : 0x5000 + at, i & 1 ? SKUA_RESERVED_LKEY : key,
		    lens[i]);
		at += lens[i];
	}
	/* Round the ring's end several times; unsignaled, so nothing completes. */
	for (unsigned int turn = 0; turn < 40; turn++) {
		struct skua_cqe cqe;

		mini_post(&r->m, &e.qp, &w, 7);
		mini_ring(&r->m, &e.qp);
		fake_run(&r->f);
		out = fake_tx(&r->f);
		assert_non_null(out);
		assert_int_equal(out->len, 492);
		assert_memory_equal(out->data, mem, 492);
		free(out);
		assert_false(mini_cq_next(&r->m, &e.scq, &cqe));
	}
}

static void send_inline(void **state)
{
	struct rig *r = *state;
	struct fake_frame *out;
	struct {
		struct skua_wqe_ctrl ctrl;
		__le32 len;
		uint8_t data[60 + 12];
	} w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(SKUA_WQE_F_INLINE | SKUA_WQE_F_SIGNALED),
		.len = cpu_to_le32(60),
	};
	struct eth e;

	eth_up(&e, r);
	eth_header(w.data, 0x88b5);
	for (unsigned int i = 14; i < 60; i++)
		w.data[i] = (uint8_t)(i * 3);
	mini_post(&r->m, &e.qp, &w, 5);
	mini_ring(&r->m, &e.qp);
	fake_run(&r->f);
	out = fake_tx(&r->f);
	assert_non_null(out);
	assert_int_equal(out->len, 60);
	assert_memory_equal(out->data, w.data, 60);
	free(out);
}

static void send_checksums(void **state)
{
	struct rig *r = *state;
	struct eth e;

	eth_up(&e, r);
	for (unsigned int kind = 0; kind < 4; kind++) {
		bool v6 = kind & 1, tcp = kind & 2;

		for (size_t payload = 0; payload < 1300; payload = payload * 2 + 1) {
			size_t len = datagram(fake_ptr(&r->f, e.tx), v6, tcp, payload);
			struct fake_frame *out;

			assert_int_equal(send(&e, len, SKUA_WQE_F_L4_CSUM |
					      (v6 ? 0 : SKUA_WQE_F_L3_CSUM), 0), 0);
			out = fake_tx(&r->f);
			assert_non_null(out);
			assert_int_equal(out->len, len);
			assert_true(book_ok(out->data, len, v6));
			free(out);
		}
	}
}

/* A UDP sum that comes out as zero is sent as ones. */
static void send_udp_zero(void **state)
{
	struct rig *r = *state;
	struct fake_frame *out;
	struct eth e;
	uint8_t *mem;
	uint16_t sum;
	size_t len;

	eth_up(&e, r);
	mem = fake_ptr(&r->f, e.tx);
	len = datagram(mem, false, false, 2);
	be16_put(mem + 40, 0);
	be16_put(mem + 42, 0);
	sum = book_sum(mem + 26, 8, 17 + 10);
	sum = book_sum(mem + 34, 8, sum);
	be16_put(mem + 42, ~sum);
	assert_int_equal(send(&e, len, SKUA_WQE_F_L4_CSUM, 0), 0);
	out = fake_tx(&r->f);
	assert_non_null(out);
	assert_int_equal(be16_get(out->data + 40), 0xffff);
	free(out);
}

static void send_vlan(void **state)
{
	struct rig *r = *state;
	struct fake_frame *out;
	struct eth e;
	uint8_t *mem;
	size_t len;

	eth_up(&e, r);
	mem = fake_ptr(&r->f, e.tx);
	len = datagram(mem, false, true, 100);
	assert_int_equal(send(&e, len, SKUA_WQE_F_VLAN | SKUA_WQE_F_L4_CSUM | SKUA_WQE_F_L3_CSUM,
			      0x6123), 0);
	out = fake_tx(&r->f);
	assert_non_null(out);
	assert_int_equal(out->len, len + 4);
	assert_memory_equal(out->data, mem, 12);
	assert_int_equal(be32_get(out->data + 12), 0x81006123);
	memmove(out->data + 12, out->data + 16, len - 12);
	assert_true(book_ok(out->data, len, false));
	free(out);
	/* The largest frame there is may be tagged. */
	eth_header(mem, 0x88b5);
	assert_int_equal(send(&e, MINI_MTU + 14, SKUA_WQE_F_VLAN, 1), 0);
	out = fake_tx(&r->f);
	assert_int_equal(out->len, MINI_MTU + 18);
	free(out);
}

/* Frames that @num WQEs of @pieces each become in one look at the device's queues. */
static uint64_t lso_in_a_round(struct eth *e, unsigned int num, uint32_t pieces)
{
	struct fake *f = &e->r->f;
	const uint64_t *sent = &f->dev->cnt[SKUA_CNT_ETH_TX_PKTS];
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(SKUA_WQE_F_LSO),
		.ctrl.eth = cpu_to_le32(536 << 16),
	};
	uint64_t before = *sent, round;
	struct fake_frame *out;

	sge(&w.sge[0], e->tx, SKUA_RESERVED_LKEY,
	    datagram(fake_ptr(f, e->tx), false, true, pieces * 536));
	for (unsigned int i = 0; i < num; i++)
		mini_post(&e->r->m, &e->qp, &w, 2);
	mini_ring(&e->r->m, &e->qp);
	skua_dev_run(f->dev);
	round = *sent - before;
	fake_run(f);
	assert_int_equal(*sent - before, num * pieces);
	while ((out = fake_tx(f)))
		free(out);
	return round;
}

/* A queue with a rate has as short a turn as others: frames count, not requests. */
static void turn_of_lso(void **state)
{
	struct skua_qp_attr rate = {
		.rate_kbps = cpu_to_le32(10000000), .rate_burst = cpu_to_le32(1 << 20),
	};
	struct rig *r = *state;
	uint64_t round;
	struct eth e;

	eth_up(&e, r);
	round = lso_in_a_round(&e, 14, 40);
	assert_in_range(round, 40, 14 * 40 - 1);
	assert_status(mini_qp_modify(&r->m, &e.qp, SKUA_QP_RTS, SKUA_QP_M_RATE, &rate), OK);
	assert_int_equal(lso_in_a_round(&e, 14, 40), round);
}

static void send_lso(void **state)
{
	struct rig *r = *state;
	struct eth e;

	eth_up(&e, r);
	for (unsigned int turn = 0; turn < 8; turn++) {
		bool v6 = turn & 1, vlan = turn & 2;
		uint32_t mss = turn & 4 ? 1448 : 536, payload = turn & 4 ? 60000 : 536 * 3;
		uint32_t hdr = 14 + (v6 ? 40 : 20) + 20, pieces = (payload + mss - 1) / mss;
		uint8_t *mem = fake_ptr(&r->f, e.tx);
		size_t len = datagram(mem, v6, true, payload);

		assert_counts(&r->m, ETH_TX_PKTS, pieces,
			      assert_int_equal(send(&e, len, SKUA_WQE_F_LSO | SKUA_WQE_F_L4_CSUM |
						    (vlan ? SKUA_WQE_F_VLAN : 0), mss << 16 |
						    (vlan ? 77 : 0)), 0));
		for (uint32_t i = 0; i < pieces; i++) {
			uint32_t n = i + 1 == pieces ? payload - i * mss : mss;
			struct fake_frame *out = fake_tx(&r->f);
			uint8_t *t = out->data + (v6 ? 54 : 34);

			assert_non_null(out);
			if (vlan) {
				assert_int_equal(be32_get(out->data + 12), 0x81000000 | 77);
				memmove(out->data + 12, out->data + 16, out->len - 16);
				out->len -= 4;
			}
			assert_int_equal(out->len, hdr + n);
			assert_true(book_ok(out->data, out->len, v6));
			assert_memory_equal(out->data + hdr, mem + hdr + i * mss, n);
			assert_int_equal(be32_get(t + 4), (uint32_t)(0xfffffff0 + i * mss));
			assert_int_equal(t[13] & (TCP_FIN | TCP_PSH),
					 i + 1 == pieces ? TCP_FIN | TCP_PSH : 0);
			assert_int_equal(!!(t[13] & TCP_CWR), i == 0);
			if (!v6)
				assert_int_equal(be16_get(out->data + 18), 0x1111 + i);
			free(out);
		}
		assert_null(fake_tx(&r->f));
	}
	/* Not TCP, no size, a size that does not fit: counted. */
	assert_counts(&r->m, ETH_TX_ERR, 1, send(&e, 2000, SKUA_WQE_F_LSO, 0));
	assert_counts(&r->m, ETH_TX_ERR, 1, send(&e, 2000, SKUA_WQE_F_LSO, 9000 << 16));
	datagram(fake_ptr(&r->f, e.tx), false, false, 5000);
	assert_counts(&r->m, ETH_TX_ERR, 1, send(&e, 5042, SKUA_WQE_F_LSO, 1000 << 16));
}

/* Segments of a byte each, from every WQE of a ring: others get their turns all the same. */
static void send_lso_tiny(void **state)
{
	static const struct {
		uint32_t mss, payload, pieces;
	} cases[] = { { 1, 60000, 0 }, { 8, 65000, 0 }, { 16, 4096 * 16, 4096 }, { 1, 4096, 4096 },
		      { 1, 4097, 0 }, { 40, 65000, 1625 } };
	struct rig *r = *state;
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(SKUA_WQE_F_LSO),
		.ctrl.eth = cpu_to_le32(4 << 16),
	};
	struct fake_frame *out;
	struct eth e;
	size_t len;

	eth_up(&e, r);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int n = 0;

		len = datagram(fake_ptr(&r->f, e.tx), false, true, cases[i].payload);
		assert_counts(&r->m, ETH_TX_ERR, !cases[i].pieces,
			      send(&e, len, SKUA_WQE_F_LSO, cases[i].mss << 16));
		for (; (out = fake_tx(&r->f)); n++)
			free(out);
		/* The fake wire drops what is more than it holds. */
		assert_true(n == cases[i].pieces || n == FAKE_FRAMES);
	}
	/* A turn ends when its frames are sent, however few WQEs they are of. */
	len = datagram(fake_ptr(&r->f, e.tx), false, true, 400);
	sge(&w.sge[0], e.tx, SKUA_RESERVED_LKEY, len);
	for (unsigned int i = 0; i < 3; i++)
		mini_post(&r->m, &e.qp, &w, 2);
	mini_ring(&r->m, &e.qp);
	assert_counts(&r->m, ETH_TX_PKTS, 0, );
	for (unsigned int i = 1; i <= 3; i++) {
		uint64_t before = r->f.dev->cnt[SKUA_CNT_ETH_TX_PKTS];
		struct qp qp;

		assert_int_equal(qp_get(r->f.dev, e.qp.qpn, &qp), 0);
		assert_int_equal(eth_sq_run(r->f.dev, &qp, 16), i < 3);
		qp_put(r->f.dev, &qp);
		assert_int_equal(r->f.dev->cnt[SKUA_CNT_ETH_TX_PKTS], before + 100);
	}
	while ((out = fake_tx(&r->f)))
		free(out);
}

/* A WQE that breaks the rules ends the queue; the rest of it is flushed. */
static void bad_wqe(void **state)
{
	struct rig *r = *state;
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
	};
	struct skua_wqe_data rx;
	struct skua_cqe cqe;
	struct eth e;

	eth_up(&e, r);
	eth_header(fake_ptr(&r->f, e.tx), 0x88b5);
	sge(&rx, e.rx, SKUA_RESERVED_LKEY, 2048);
	for (unsigned int i = 0; i < 3; i++)
		mini_recv(&r->m, &e.qp, &rx, 1);
	sge(&w.sge[0], e.tx, SKUA_RESERVED_LKEY, 100);
	mini_post(&r->m, &e.qp, &w, 2);
	sge(&w.sge[0], e.tx, 0x12300, 100);
	mini_post(&r->m, &e.qp, &w, 2);
	sge(&w.sge[0], e.tx, SKUA_RESERVED_LKEY, 100);
	mini_post(&r->m, &e.qp, &w, 6);
	mini_post(&r->m, &e.qp, &w, 2);
	mini_ring(&r->m, &e.qp);
	fake_run(&r->f);
	assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_LOC_PROT_ERR);
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), 1);
	assert_int_equal(le32_get_bits(cqe.own, SKUA_CQE_VENDOR), SKUA_VENDOR_KEY_INVALID);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), i ? 4 : 2);
	}
	assert_false(mini_cq_next(&r->m, &e.scq, &cqe));
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(mini_cq_next(&r->m, &e.rcq, &cqe));
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_WR_FLUSH_ERR);
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), i);
	}
	/* What is posted later is flushed too, as soon as the device is told to look. */
	mini_post(&r->m, &e.qp, &w, 2);
	mini_recv(&r->m, &e.qp, &rx, 1);
	mini_ring(&r->m, &e.qp);
	fake_run(&r->f);
	assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
	assert_true(mini_cq_next(&r->m, &e.rcq, &cqe));
	mini_recv(&r->m, &e.qp, &rx, 1);
	mini_ring(&r->m, &e.qp);
	fake_run(&r->f);
	assert_true(mini_cq_next(&r->m, &e.rcq, &cqe));
	/* And it can begin anew. */
	assert_status(mini_qp_modify(&r->m, &e.qp, SKUA_QP_RESET, 0, NULL), OK);
	e.qp.sq_pi = 0;
	e.qp.rq_pi = 0;
	memset(fake_ptr(&r->f, e.qp.dbr), 0, 16);
	mini_eth_to_rts(&r->m, &e.qp);
	free(fake_tx(&r->f));
	assert_int_equal(send(&e, 100, 0, 0), SKUA_CQE_OK);
	free(fake_tx(&r->f));
}

static void malformed_wqes(void **state)
{
	struct rig *r = *state;
	struct eth e;

	eth_up(&e, r);
	for (unsigned int i = 0; i < 6; i++) {
		struct eth_wqe w = {
			.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		};
		struct skua_cqe cqe;

		switch (i) {
		case 0:
			w.ctrl.op = le32_encode_bits(SKUA_WQE_SEND, SKUA_WQE_OPCODE);
			break;
		case 1:
			w.ctrl.flags = cpu_to_le32(1u << 9);
			break;
		case 2:
			w.ctrl.imm = 1;
			break;
		case 3:
			w.ctrl.op = le32_encode_bits(0x7f, SKUA_WQE_OPCODE);
			break;
		case 4:
			w.ctrl.flags = cpu_to_le32(SKUA_WQE_F_INLINE);
			sge(&w.sge[0], 0xffffffff, 0, 0);
			break;
		case 5:
			sge(&w.sge[0], e.tx, SKUA_RESERVED_LKEY, 0xffffffff);
			break;
		}
		mini_post(&r->m, &e.qp, &w, 2);
		mini_ring(&r->m, &e.qp);
		fake_run(&r->f);
		assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_LOC_QP_OP_ERR);
		assert_null(fake_tx(&r->f));
		assert_status(mini_qp_modify(&r->m, &e.qp, SKUA_QP_RESET, 0, NULL), OK);
		e.qp.sq_pi = 0;
		mini_eth_to_rts(&r->m, &e.qp);
	}
}

/* A CQ that has no room takes the queue to ERR, with both events. */
static void cq_overrun(void **state)
{
	struct rig *r = *state;
	struct skua_eqe eqe;
	unsigned int seen = 0;
	struct mini_cq tiny;
	struct mini_qp qp;
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_NOP, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(SKUA_WQE_F_SIGNALED),
	};

	mini_cq_create(&r->m, &tiny, 1);
	mini_qp_create(&r->m, &qp, SKUA_QP_RAW_ETH, &tiny, &tiny, 4, 0, 0);
	mini_eth_to_rts(&r->m, &qp);
	for (unsigned int i = 0; i < 5; i++)
		mini_post(&r->m, &qp, &w, 1);
	mini_ring(&r->m, &qp);
	fake_run(&r->f);
	while (mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe)) {
		uint32_t type = le32_get_bits(eqe.what, SKUA_EQE_TYPE);

		seen |= 1u << type;
		assert_int_equal(le32_to_cpu(eqe.num), type == SKUA_EQE_QP ? qp.qpn : tiny.cqn);
	}
	assert_int_equal(seen, 1u << SKUA_EQE_QP | 1u << SKUA_EQE_CQ_ERR);
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
		rig_test(send_plain),
		rig_test(send_gather),
		rig_test(send_inline),
		rig_test(send_checksums),
		rig_test(send_udp_zero),
		rig_test(send_vlan),
		rig_test(send_lso), rig_test(turn_of_lso),
		rig_test(send_lso_tiny),
		rig_test(bad_wqe),
		rig_test(malformed_wqes),
		rig_test(cq_overrun),
		rig_test(receive_plain),
		rig_test(receive_vlan),
		rig_test(receive_keep_vlan),
		rig_test(receive_checksums),
		rig_test(receive_fault),
		rig_test(rss_spread),
		rig_test(rss_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
