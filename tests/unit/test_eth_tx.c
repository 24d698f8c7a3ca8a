// SPDX-License-Identifier: GPL-2.0
/*
 * RAW_ETH queues: what goes out, and what ends a queue. What comes in is in
 * test_eth_rx.c.
 */
#include <skua/cqe_parse.h>

#include "eth_test.h"

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

/*
 * The wire has no room for what is to go to @peer: the queue rests, and goes on in order
 * when there is. What is for another does not wait, but for those before it in the queue.
 */
static void send_waits(void **state)
{
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x78 };
	static const bool lso[] = { false, true, false };
	struct rig *r = *state;
	struct fake_frame *out;
	struct eth e;
	uint8_t *mem;
	size_t len;

	eth_up(&e, r);
	mem = fake_ptr(&r->f, e.tx);
	len = datagram(mem, false, true, 2000);
	r->f.full = peer;
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(send(&e, len, lso[i] ? SKUA_WQE_F_LSO : 0,
				      le32_encode_bits(1000, SKUA_WQE_ETH_MSS)), -1);
	assert_int_equal(r->f.sent, 0);
	assert_false(skua_dev_run(r->f.dev));
	/* Somebody says that there may be room; there is none. */
	skua_dev_room(r->f.dev);
	fake_run(&r->f);
	assert_int_equal(r->f.sent, 0);
	r->f.full = other;
	skua_dev_room(r->f.dev);
	fake_run(&r->f);
	assert_int_equal(r->f.sent, 4);
	for (unsigned int i = 0; i < 4; i++) {
		out = fake_tx(&r->f);
		assert_int_equal(out->len, i == 0 || i == 3 ? len : len - 1000);
		free(out);
	}
	for (unsigned int i = 0; i < 3; i++) {
		struct skua_cqe cqe;

		assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), i);
	}
	/* To itself it may send whatever the wire says. */
	memcpy(mem, own, 6);
	r->f.full = own;
	assert_int_equal(send(&e, len, 0, 0), SKUA_CQE_OK);
}

/* A queue that waits is flushed at once when it goes to ERR, and forgotten in RESET. */
static void send_waits_no_more(void **state)
{
	struct rig *r = *state;
	struct skua_cqe cqe;
	struct eth e;

	eth_up(&e, r);
	eth_header(fake_ptr(&r->f, e.tx), 0x88b5);
	r->f.full = peer;
	assert_int_equal(send(&e, 100, 0, 0), -1);
	assert_int_equal(mini_qp_modify(&r->m, &e.qp, SKUA_QP_ERR, 0, NULL), 0);
	fake_run(&r->f);
	assert_true(mini_cq_next(&r->m, &e.scq, &cqe));
	assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(mini_qp_modify(&r->m, &e.qp, SKUA_QP_RESET, 0, NULL), 0);
	r->f.full = NULL;
	skua_dev_room(r->f.dev);
	fake_run(&r->f);
	assert_int_equal(r->f.sent, 0);
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

/*
 * An IPv6 routing header: the checksum is of the final destination, which is in it while segments
 * are left. Such a frame is refused, not sent with a wrong sum.
 */
static void send_routing(void **state)
{
	struct rig *r = *state;
	struct fake_frame *out;
	struct eth e;
	uint8_t *mem;
	size_t len;

	eth_up(&e, r);
	mem = fake_ptr(&r->f, e.tx);
	for (uint8_t left = 0; left < 2; left++) {
		len = datagram(mem, true, false, 100);
		memmove(mem + 14 + 40 + 24, mem + 14 + 40, len - 14 - 40);
		memset(mem + 14 + 40, 0, 24);
		mem[14 + 40] = mem[14 + 6];
		mem[14 + 40 + 1] = 2;
		mem[14 + 40 + 2] = 4;
		mem[14 + 40 + 3] = left;
		mem[14 + 6] = 43;
		len += 24;
		be16_put(mem + 14 + 4, len - 14 - 40);
		assert_counts(&r->m, ETH_TX_ERR, left, send(&e, len, SKUA_WQE_F_L4_CSUM, 0));
		out = fake_tx(&r->f);
		if (left) {
			assert_null(out);
			continue;
		}
		assert_non_null(out);
		/* As without the header. */
		memmove(out->data + 14 + 40, out->data + 14 + 40 + 24, len - 14 - 40 - 24);
		out->data[14 + 6] = 17;
		be16_put(out->data + 14 + 4, len - 14 - 40 - 24);
		assert_true(book_ok(out->data, len - 24, true));
		free(out);
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
	/* So may one with a provider tag in it, and the device adds one. */
	be32_put(mem + 12, 0x88a80007);
	be16_put(mem + 16, 0x88b5);
	assert_int_equal(send(&e, MINI_MTU + 18, SKUA_WQE_F_VLAN, 1), 0);
	out = fake_tx(&r->f);
	assert_non_null(out);
	assert_int_equal(out->len, MINI_MTU + 22);
	free(out);
	assert_counts(&r->m, ETH_TX_ERR, 1, assert_int_equal(send(&e, MINI_MTU + 19, 0, 0), 0));
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
	} cases[] = {
		{ 1, 60000, 0 }, { 8, 65000, 0 }, { 40, 65000, 1625 },
		{ 16, SKUA_WQE_ETH_LSO_FRAMES * 16, SKUA_WQE_ETH_LSO_FRAMES },
		{ 1, SKUA_WQE_ETH_LSO_FRAMES, SKUA_WQE_ETH_LSO_FRAMES },
		{ 1, SKUA_WQE_ETH_LSO_FRAMES + 1, 0 },
	};
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

/* --- errors --- */

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

/* What the device does not offer it does not do. */
static void lso_capability(void **state)
{
	struct rig *r = *state;
	struct eth e;
	size_t len;

	r->f.dev->caps &= ~SKUA_CAP_LSO;
	eth_up(&e, r);
	len = datagram(fake_ptr(&r->f, e.tx), false, true, 3000);
	assert_int_equal(send(&e, len, SKUA_WQE_F_LSO | SKUA_WQE_F_L4_CSUM | SKUA_WQE_F_L3_CSUM,
			      1000u << 16), SKUA_CQE_LOC_QP_OP_ERR);
	assert_int_equal(r->f.sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(send_plain),
		rig_test(send_waits),
		rig_test(send_waits_no_more),
		rig_test(send_gather),
		rig_test(send_inline),
		rig_test(send_checksums),
		rig_test(send_routing),
		rig_test(send_udp_zero),
		rig_test(send_vlan),
		rig_test(send_lso), rig_test(turn_of_lso),
		rig_test(send_lso_tiny),
		rig_test(bad_wqe),
		rig_test(malformed_wqes),
		rig_test(cq_overrun),
		rig_test(lso_capability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
