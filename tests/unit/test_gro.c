// SPDX-License-Identifier: GPL-2.0
/*
 * Merging of received TCP frames (SKUA_CAP_GRO): which are merged, that cutting gives what came,
 * and what becomes of a row of frames when something else happens.
 */
#include <stdio.h>

#include "tcp_frames.h"

#define LOG_RQ		6
#define SLOT		2048u
#define MOST		18u
#define PAYLOAD		500u
#define FRAME_MAX	1600u

struct gro_rig {
	struct eth e;
	uint32_t posted;	/* receive WQEs */
	uint32_t taken;		/* of them completed */
};

/* --- the queue --- */

static void post(struct gro_rig *g, uint32_t len)
{
	struct skua_wqe_data s;

	sge(&s, g->e.rx + (uint64_t)(g->posted % (1u << LOG_RQ)) * SLOT, SKUA_RESERVED_LKEY, len);
	mini_recv(&g->e.r->m, &g->e.qp, &s, 1);
	g->posted++;
}

static void refill(struct gro_rig *g)
{
	while (g->posted - g->taken < 1u << LOG_RQ)
		post(g, SLOT);
}

static struct skua_cmd_create_qp_in queue_in(struct gro_rig *g, struct rig *r, uint32_t flags,
					     uint32_t most)
{
	struct skua_cmd_create_qp_in in;
	struct eth *e = &g->e;

	*g = (struct gro_rig){ .e.r = r };
	mini_cq_create(&r->m, &e->scq, LOG_RQ);
	mini_cq_create(&r->m, &e->rcq, LOG_RQ);
	in = mini_qp_in(&r->m, &e->qp, SKUA_QP_RAW_ETH, &e->scq, &e->rcq, 4, LOG_RQ, 0);
	in.sq.flags |= cpu_to_le32(flags);
	le32p_replace_bits(&in.rq.flags, most, SKUA_RQ_GRO);
	return in;
}

static void up_flags(struct gro_rig *g, struct rig *r, uint32_t flags, uint32_t most)
{
	struct skua_cmd_modify_port_in port = { .mask = cpu_to_le32(SKUA_PORT_M_DFLT) };
	struct skua_cmd_create_qp_in in = queue_in(g, r, flags, most);

	mini_ok(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	mini_eth_to_rts(&r->m, &g->e.qp);
	g->e.rx = fake_alloc(&r->f, (size_t)SLOT << LOG_RQ, 64);
	g->e.tx = fake_alloc(&r->f, MEM, 64);
	port.dflt = cpu_to_le32(g->e.qp.qpn);
	mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
}

static void up(struct gro_rig *g, struct rig *r)
{
	up_flags(g, r, 0, MOST);
	refill(g);
}

static const uint8_t *slot(struct gro_rig *g, uint32_t index)
{
	return fake_ptr(&g->e.r->f, g->e.rx + (uint64_t)(index % (1u << LOG_RQ)) * SLOT);
}

/* A completion, and what was merged. */
struct told {
	struct skua_cqe cqe;
	uint32_t first;
	struct merged m;
};

/* The next completion, which is good. False: there is none. */
static bool next(struct gro_rig *g, struct told *t)
{
	if (!mini_cq_next(&g->e.r->m, &g->e.rcq, &t->cqe))
		return false;
	assert_int_equal(le32_get_bits(t->cqe.what, SKUA_CQE_STATUS), SKUA_CQE_OK);
	assert_int_equal(le32_get_bits(t->cqe.what, SKUA_CQE_OPCODE), SKUA_CQE_RECV_ETH);
	t->first = le32_get_bits(t->cqe.what, SKUA_CQE_WQE_INDEX);
	assert_int_equal(t->first, g->taken & 0xffff);
	t->m.segs = 1;
	t->m.size = le16_to_cpu(t->cqe.eth.gro_size);
	t->m.hdr = le16_to_cpu(t->cqe.eth.gro_hdr);
	t->m.len = le32_to_cpu(t->cqe.byte_len);
	if (le32_to_cpu(t->cqe.own) & SKUA_CQE_F_GRO) {
		t->m.segs = le16_to_cpu(t->cqe.eth.gro_segs);
		assert_in_range(t->m.segs, 2, MOST);
	} else {
		assert_int_equal(t->cqe.eth.gro_segs, 0);
		assert_int_equal(t->m.size, 0);
		assert_int_equal(t->m.hdr, 0);
	}
	g->taken += t->m.segs;
	return true;
}

static size_t cut(struct gro_rig *g, const struct told *t, uint32_t i, uint8_t *out)
{
	return cut_segment(&t->m, slot(g, t->first), slot(g, t->first + i), i, out);
}

static void check_whole(struct gro_rig *g, const struct told *t)
{
	const char *fault;

	if (t->m.segs == 1)
		return;
	fault = whole_fault(&t->m, slot(g, t->first));
	if (fault)
		fail_msg("%s", fault);
	assert_true(le16_to_cpu(t->cqe.eth.csum) & SKUA_CQE_CSUM_L4_OK);
}

/* --- what may be merged --- */

/* The second of three frames, changed; @len may change too. */
static void odd_none(uint8_t *p, size_t *len) { (void)p; (void)len; }
static void odd_seq(uint8_t *p, size_t *len) { p[l4_of(p) + 7] ^= 1; (void)len; }
static void odd_ack(uint8_t *p, size_t *len) { p[l4_of(p) + 11] ^= 1; (void)len; }
static void odd_window(uint8_t *p, size_t *len) { p[l4_of(p) + 15] ^= 1; (void)len; }
static void odd_urgent(uint8_t *p, size_t *len) { p[l4_of(p) + 19] ^= 1; (void)len; }
static void odd_port(uint8_t *p, size_t *len) { p[l4_of(p) + 1] ^= 1; (void)len; }
static void odd_fin(uint8_t *p, size_t *len) { p[l4_of(p) + 13] |= 0x01; (void)len; }
static void odd_syn(uint8_t *p, size_t *len) { p[l4_of(p) + 13] |= 0x02; (void)len; }
static void odd_rst(uint8_t *p, size_t *len) { p[l4_of(p) + 13] |= 0x04; (void)len; }
static void odd_push(uint8_t *p, size_t *len) { p[l4_of(p) + 13] |= 0x08; (void)len; }
static void odd_no_ack(uint8_t *p, size_t *len) { p[l4_of(p) + 13] &= ~0x10; (void)len; }
static void odd_urg(uint8_t *p, size_t *len) { p[l4_of(p) + 13] |= 0x20; (void)len; }
static void odd_ece(uint8_t *p, size_t *len) { p[l4_of(p) + 13] |= 0x40; (void)len; }
static void odd_cwr(uint8_t *p, size_t *len) { p[l4_of(p) + 13] |= 0x80; (void)len; }
static void odd_ae(uint8_t *p, size_t *len) { p[l4_of(p) + 12] |= 0x01; (void)len; }
static void odd_short(uint8_t *p, size_t *len) { (void)p; *len -= 1; }
static void odd_long(uint8_t *p, size_t *len) { p[*len] = 0; *len += 1; }
static void odd_empty(uint8_t *p, size_t *len) { (void)p; *len -= PAYLOAD; }
static void odd_hops(uint8_t *p, size_t *len) { p[l3_of(p) + (is_v6(p) ? 7 : 8)]--; (void)len; }
static void odd_class(uint8_t *p, size_t *len) { p[l3_of(p) + 1] ^= is_v6(p) ? 0x20 : 2; (void)len; }
static void odd_saddr(uint8_t *p, size_t *len) { p[l3_of(p) + 15] ^= 1; (void)len; }
static void odd_smac(uint8_t *p, size_t *len) { p[11] ^= 1; (void)len; }
static void odd_id(uint8_t *p, size_t *len) { p[l3_of(p) + (is_v6(p) ? 3 : 5)] ^= 8; (void)len; }
static void odd_df(uint8_t *p, size_t *len) { p[l3_of(p) + (is_v6(p) ? 2 : 6)] ^= 0x40; (void)len; }

/* An option more, or another one. */
static void odd_stamp(uint8_t *p, size_t *len)
{
	size_t at = l4_of(p) + 20;

	if (p[l4_of(p) + 12] == 0x80) {
		p[at + 7] ^= 1;
		return;
	}
	memmove(p + at + 12, p + at, *len - at);
	be32_put(p + at, 0x0101080a);
	memset(p + at + 4, 0, 8);
	p[l4_of(p) + 12] = 0x80;
	*len += 12;
}

static void odd_option(uint8_t *p, size_t *len)
{
	size_t at = l4_of(p) + 20;

	if (p[l4_of(p) + 12] == 0x80) {
		be32_put(p + at, 0x080a0101);
		return;
	}
	memmove(p + at + 4, p + at, *len - at);
	be32_put(p + at, 0x01010101);
	p[l4_of(p) + 12] = 0x60;
	*len += 4;
}

static void odd_ip_option(uint8_t *p, size_t *len)
{
	size_t l3 = l3_of(p), at = l4_of(p);

	memmove(p + at + 8, p + at, *len - at);
	*len += 8;
	if (is_v6(p)) {
		/* Destination options: padding of six bytes */
		memcpy(p + at, (uint8_t [8]){ 6, 0, 1, 4 }, 8);
		p[l3 + 6] = 60;
	} else {
		memset(p + at, 1, 8);
		p[l3] = 0x47;
	}
}

/* After the sums were made. */
static void late_sum(uint8_t *p, size_t *len) { p[*len - 1] ^= 1; }
static void late_trailer(uint8_t *p, size_t *len) { memset(p + *len, 0, 3); *len += 3; }
static void late_cut(uint8_t *p, size_t *len) { (void)p; *len -= 3; }
static void late_fragment(uint8_t *p, size_t *len)
{
	(void)len;
	if (is_v6(p))
		p[l3_of(p) + 6] = 17;
	else
		p[l3_of(p) + 6] |= 0x20;
	fill_ip(p);
}
static void late_ip_sum(uint8_t *p, size_t *len)
{
	(void)len;
	p[l3_of(p) + (is_v6(p) ? 5 : 11)] ^= 1;
}

struct odd {
	const char *name;
	void (*change)(uint8_t *p, size_t *len);
	void (*late)(uint8_t *p, size_t *len);
	unsigned int runs[3];	/* frames of each completion */
	bool never;		/* nor are such frames merged with each other */
};

static const struct odd odds[] = {
	{ "nothing", odd_none, NULL, { 3 } },
	{ "PSH", odd_push, NULL, { 2, 1 } },
	{ "a byte less", odd_short, NULL, { 2, 1 } },
	{ "a byte more", odd_long, NULL, { 1, 1, 1 } },
	{ "sequence number", odd_seq, NULL, { 1, 1, 1 } },
	{ "acknowledgment", odd_ack, NULL, { 1, 1, 1 } },
	{ "window", odd_window, NULL, { 1, 1, 1 } },
	{ "urgent pointer", odd_urgent, NULL, { 1, 1, 1 } },
	{ "port", odd_port, NULL, { 1, 1, 1 } },
	{ "FIN", odd_fin, NULL, { 1, 1, 1 }, true },
	{ "SYN", odd_syn, NULL, { 1, 1, 1 }, true },
	{ "RST", odd_rst, NULL, { 1, 1, 1 }, true },
	{ "no ACK", odd_no_ack, NULL, { 1, 1, 1 }, true },
	{ "URG", odd_urg, NULL, { 1, 1, 1 }, true },
	{ "ECE", odd_ece, NULL, { 1, 1, 1 }, true },
	{ "CWR", odd_cwr, NULL, { 1, 1, 1 }, true },
	{ "AE", odd_ae, NULL, { 1, 1, 1 }, true },
	{ "no payload", odd_empty, NULL, { 1, 1, 1 }, true },
	{ "hop limit", odd_hops, NULL, { 1, 1, 1 } },
	{ "traffic class", odd_class, NULL, { 1, 1, 1 } },
	{ "address", odd_saddr, NULL, { 1, 1, 1 } },
	{ "MAC address", odd_smac, NULL, { 1, 1, 1 } },
	{ "identification or flow label", odd_id, NULL, { 1, 1, 1 } },
	{ "DF or flow label", odd_df, NULL, { 1, 1, 1 } },
	{ "timestamp", odd_stamp, NULL, { 1, 1, 1 } },
	{ "option", odd_option, NULL, { 1, 1, 1 }, true },
	{ "IP options", odd_ip_option, NULL, { 1, 1, 1 }, true },
	{ "wrong TCP checksum", odd_none, late_sum, { 1, 1, 1 }, true },
	{ "something behind it", odd_none, late_trailer, { 1, 1, 1 }, true },
	{ "shorter than it says", odd_none, late_cut, { 1, 1, 1 }, true },
	{ "fragment or UDP", odd_none, late_fragment, { 1, 1, 1 }, true },
	{ "wrong IPv4 checksum or length", odd_none, late_ip_sum, { 1, 1, 1 }, true },
};

/* Frames sent, in the order in which they must come out. */
struct sent {
	uint8_t data[FRAME_MAX];
	size_t len;
};

static void give(struct gro_rig *g, const struct sent *s)
{
	fake_rx(&g->e.r->f, s->data, s->len);
}

/* All completions, cut, are the @n frames at @s; their lengths in frames to @runs. */
static unsigned int compare(struct gro_rig *g, const struct sent *s, unsigned int n,
			    unsigned int *runs, unsigned int num)
{
	uint8_t out[FRAME_MAX + 4];
	unsigned int at = 0, done = 0;
	struct told t;

	while (next(g, &t)) {
		bool tag = le32_to_cpu(t.cqe.own) & SKUA_CQE_F_VLAN;

		check_whole(g, &t);
		for (uint32_t i = 0; i < t.m.segs; i++, at++) {
			size_t len = cut(g, &t, i, out);

			assert_true(at < n);
			assert_int_equal(len, s[at].len - (tag ? 4 : 0));
			assert_memory_equal(out, s[at].data, 12);
			if (tag)
				assert_int_equal(le16_to_cpu(t.cqe.eth.vlan_tci),
						 be16_get(s[at].data + 14));
			assert_memory_equal(out + 12, s[at].data + (tag ? 16 : 12), len - 12);
		}
		if (done < num)
			runs[done] = t.m.segs;
		done++;
	}
	assert_int_equal(at, n);
	refill(g);
	return done;
}

static void three(struct gro_rig *g, const struct odd *o, struct flow f)
{
	unsigned int runs[3] = { 0 };
	struct sent s[3];

	for (unsigned int i = 0; i < 3; i++) {
		s[i].len = segment(s[i].data, &f, PAYLOAD, TCP_ACK);
		if (i != 1)
			continue;
		o->change(s[i].data, &s[i].len);
		fill(s[i].data, s[i].len);
		if (o->late)
			o->late(s[i].data, &s[i].len);
	}
	for (unsigned int i = 0; i < 3; i++)
		give(g, &s[i]);
	fake_run(&g->e.r->f);
	compare(g, s, 3, runs, 3);
	for (unsigned int i = 0; i < 3; i++) {
		if (runs[i] != o->runs[i])
			print_error("%s (%s%s%s): completion %u has %u frames\n", o->name,
				    f.v6 ? "IPv6" : "IPv4", f.stamp ? ", timestamp" : "",
				    f.tagged ? ", tag" : "", i, runs[i]);
		assert_int_equal(runs[i], o->runs[i]);
	}
}

static void rules(void **state)
{
	struct rig *r = *state;
	struct gro_rig g;

	up(&g, r);
	for (unsigned int i = 0; i < sizeof(odds) / sizeof(odds[0]); i++) {
		for (unsigned int kind = 0; kind < 8; kind++)
			three(&g, &odds[i], (struct flow){
				.v6 = kind & 1, .stamp = kind & 2, .tagged = kind & 4,
				.port = 1000, .id = 0xfffe, .seq = 0xffffff00,
			});
	}
}

/* Frames of a kind that is not merged, one behind the other. */
static void three_odd(struct gro_rig *g, const struct odd *o, struct flow f)
{
	unsigned int runs[3] = { 0 };
	struct sent s[3];

	for (unsigned int i = 0; i < 3; i++) {
		const uint8_t *tcp;

		s[i].len = segment(s[i].data, &f, PAYLOAD, TCP_ACK);
		o->change(s[i].data, &s[i].len);
		fill(s[i].data, s[i].len);
		tcp = s[i].data + l4_of(s[i].data);
		/* Behind what it has now */
		f.seq = be32_get(tcp + 4) + (uint32_t)(s[i].data + s[i].len - tcp) -
			(tcp[12] >> 4) * 4u;
		if (o->late)
			o->late(s[i].data, &s[i].len);
		give(g, &s[i]);
	}
	fake_run(&g->e.r->f);
	if (compare(g, s, 3, runs, 3) != 3)
		fail_msg("%s: %u, %u, %u frames merged", o->name, runs[0], runs[1], runs[2]);
}

static void never(void **state)
{
	struct rig *r = *state;
	struct gro_rig g;

	up(&g, r);
	for (unsigned int i = 0; i < sizeof(odds) / sizeof(odds[0]); i++) {
		for (unsigned int kind = 0; kind < 8 && odds[i].never; kind++)
			three_odd(&g, &odds[i], (struct flow){
				.v6 = kind & 1, .stamp = kind & 2, .tagged = kind & 4,
				.port = 1000, .id = 0xfffe, .seq = 0xffffff00,
			});
	}
}

/* The tag stays in the frame, and is part of the headers. */
static void keep_vlan(void **state)
{
	struct flow f = { .tagged = true, .port = 7 };
	struct rig *r = *state;
	unsigned int runs[1];
	struct sent s[4];
	struct gro_rig g;

	up_flags(&g, r, SKUA_QP_F_KEEP_VLAN, MOST);
	refill(&g);
	for (unsigned int i = 0; i < 4; i++) {
		s[i].len = segment(s[i].data, &f, PAYLOAD, TCP_ACK);
		give(&g, &s[i]);
	}
	fake_run(&r->f);
	assert_int_equal(compare(&g, s, 4, runs, 1), 1);
}

/* Another tag, priority included, is another frame. */
static void other_vlan(void **state)
{
	struct flow f = { .tagged = true, .port = 7 };
	struct rig *r = *state;
	unsigned int runs[3];
	struct sent s[3];
	struct gro_rig g;

	up(&g, r);
	for (unsigned int i = 0; i < 3; i++) {
		s[i].len = segment(s[i].data, &f, PAYLOAD, TCP_ACK);
		s[i].data[14] ^= i == 2 ? 0x20 : 0;
		give(&g, &s[i]);
	}
	fake_run(&r->f);
	assert_int_equal(compare(&g, s, 3, runs, 3), 2);
	assert_int_equal(runs[0], 2);
}

/* Neither more frames than the queue wants, nor more bytes than IP can say. */
static void limits(void **state)
{
	struct rig *r = *state;
	static struct sent s[60];
	unsigned int runs[8];
	struct gro_rig g;

	for (unsigned int most = 0; most <= 3; most++) {
		struct flow f = { .port = 7 };

		up_flags(&g, r, 0, most);
		refill(&g);
		for (unsigned int i = 0; i < 6; i++) {
			s[i].len = segment(s[i].data, &f, PAYLOAD, TCP_ACK);
			give(&g, &s[i]);
		}
		fake_run(&r->f);
		assert_int_equal(compare(&g, s, 6, runs, 8), most < 2 ? 6 : 6 / most);
	}
}

static void bytes_limit(void **state)
{
	static struct sent s[60];
	struct rig *r = *state;
	struct gro_rig g;
	struct told t;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		uint32_t hdr = v6 ? 74 : 54, most = v6 ? 65535 - 20 : 65535 - 40;
		struct flow f = { .v6 = v6, .port = 7 };
		uint8_t out[FRAME_MAX];
		uint32_t at = 0;

		up_flags(&g, r, 0, 63);
		refill(&g);
		for (unsigned int i = 0; i < 60; i++) {
			s[i].len = segment(s[i].data, &f, 1420, TCP_ACK);
			give(&g, &s[i]);
		}
		fake_run(&r->f);
		for (unsigned int n = 0; n < 2; n++) {
			assert_true(mini_cq_next(&r->m, &g.e.rcq, &t.cqe));
			t.first = le32_get_bits(t.cqe.what, SKUA_CQE_WQE_INDEX);
			t.m.segs = le16_to_cpu(t.cqe.eth.gro_segs);
			t.m.size = 1420;
			t.m.hdr = hdr;
			t.m.len = le32_to_cpu(t.cqe.byte_len);
			assert_int_equal(t.m.segs, n ? 60 - most / 1420 : most / 1420);
			check_whole(&g, &t);
			for (uint32_t i = 0; i < t.m.segs; i++, at++) {
				assert_int_equal(cut(&g, &t, i, out), s[at].len);
				assert_memory_equal(out, s[at].data, s[at].len);
			}
		}
		assert_false(mini_cq_next(&r->m, &g.e.rcq, &t.cqe));
	}
}

/* --- any frames in any order --- */

static uint32_t rnd(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)*seed * n >> 32);
}

/* Rows of a few flows, some with a frame that is odd; turns end at any time. */
static void streams(void **state)
{
	static struct sent s[48];
	unsigned int merged = 0, frames = 0, now = 0;
	struct flow flow[5];
	uint32_t seed = 1;
	struct rig *r = *state;
	struct gro_rig g;

	up(&g, r);
	for (unsigned int i = 0; i < 5; i++)
		flow[i] = (struct flow){ .v6 = i & 1, .stamp = i & 2, .tagged = i == 4,
					 .port = (uint16_t)i, .id = (uint16_t)(0xffff - i),
					 .seq = rnd(&seed, UINT32_MAX) };
	for (unsigned int round = 0; round < 3000; round++) {
		unsigned int n = 1 + rnd(&seed, 48);

		for (unsigned int i = 0; i < n; i++) {
			uint32_t kind = rnd(&seed, 30);
			size_t payload = PAYLOAD;
			const struct odd *o;

			now = rnd(&seed, 12) ? now : rnd(&seed, 5);
			if (kind == 1)
				payload = 1 + rnd(&seed, 1000);
			s[i].len = segment(s[i].data, &flow[now], payload,
					   TCP_ACK | (kind == 2 ? TCP_PSH : 0));
			if (!kind) {
				o = &odds[rnd(&seed, sizeof(odds) / sizeof(odds[0]))];
				o->change(s[i].data, &s[i].len);
				fill(s[i].data, s[i].len);
				if (o->late)
					o->late(s[i].data, &s[i].len);
			}
		}
		for (unsigned int i = 0; i < n; i++) {
			give(&g, &s[i]);
			if (!rnd(&seed, 20))
				fake_run(&r->f);
		}
		fake_run(&r->f);
		frames += n;
		merged += n - compare(&g, s, n, NULL, 0);
	}
	/* Enough of it that all of this means something */
	assert_true(merged > frames / 2);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_ETH_RX_GRO_SEGS) -
			 mini_counter(&r->m, SKUA_CNT_ETH_RX_GRO_PKTS), merged);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_ETH_RX_PKTS), frames);
}

/* --- receive WQEs --- */

static void row(struct gro_rig *g, struct flow *f, struct sent *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		s[i].len = segment(s[i].data, f, PAYLOAD, TCP_ACK);
		give(g, &s[i]);
	}
}

/* As many as there are WQEs are merged, the others lost. */
static void no_wqe(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[5];
	struct told t;

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 3; i++)
		post(&g, SLOT);
	row(&g, &f, s, 5);
	fake_run(&r->f);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_ETH_RX_NO_BUF), 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 3);
	check_whole(&g, &t);
	assert_false(next(&g, &t));
	/* A gap is a gap, and what comes then begins anew. */
	refill(&g);
	row(&g, &f, s, 2);
	fake_run(&r->f);
	assert_int_equal(compare(&g, s, 2, NULL, 0), 1);
}

/* A WQE for payload only is not enough. */
static void short_wqe(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];
	struct told t;

	up_flags(&g, r, 0, MOST);
	post(&g, SLOT);
	post(&g, PAYLOAD + 53);
	row(&g, &f, s, 3);
	fake_run(&r->f);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_ETH_RX_TOO_LONG), 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 1);
	assert_memory_equal(slot(&g, 0), s[0].data, s[0].len);
	assert_false(next(&g, &t));
}

static void assert_error(struct gro_rig *g, enum skua_cqe_status status, uint32_t index)
{
	struct skua_cqe cqe;

	assert_true(mini_cq_next(&g->e.r->m, &g->e.rcq, &cqe));
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), status);
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), index);
}

/* Memory that is not there: what came before is told of, then the error, then the flush. */
static void no_memory(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[4];
	struct told t;

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 4; i++)
		post(&g, SLOT);
	fake_hole(&r->f, g.e.rx + 2 * SLOT + 100, 1);
	row(&g, &f, s, 4);
	fake_run(&r->f);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 2);
	check_whole(&g, &t);
	assert_error(&g, SKUA_CQE_LOC_PROT_ERR, 2);
	assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, 3);
}

/* The memory of the headers goes away before they are written: each WQE completes. */
static void no_headers(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 4; i++)
		post(&g, SLOT);
	row(&g, &f, s, 3);
	fake_hole(&r->f, g.e.rx + 20, 1);
	fake_run(&r->f);
	assert_error(&g, SKUA_CQE_LOC_PROT_ERR, 0);
	for (unsigned int i = 1; i < 4; i++)
		assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, i);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
}

/* A ring that cannot be read: the row is told of first. */
static void no_ring(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];
	struct told t;

	up(&g, r);
	fake_hole(&r->f, g.e.qp.rq + 2 * SKUA_WQE_SEG, 1);
	row(&g, &f, s, 3);
	fake_run(&r->f);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 2);
	assert_error(&g, SKUA_CQE_LOC_QP_OP_ERR, 2);
	assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, 3);
}

/* --- what else happens --- */

/* Nothing is told while a row may go on; all of it before a command is answered. */
static void command(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];
	struct told t;

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 4; i++)
		post(&g, SLOT);
	row(&g, &f, s, 3);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
	assert_int_equal(mini_qp_modify(&r->m, &g.e.qp, SKUA_QP_ERR, 0, NULL), 0);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 3);
	fake_run(&r->f);
	assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, 3);
}

/* Counters that a command reads include the frames that came before the command. */
static void counters(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	struct {
		struct skua_cmd_query_counters_out head;
		__le64 value[SKUA_CNT_COUNT];
	} out;

	up(&g, r);
	row(&g, &f, s, 3);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_COUNTERS, 0, &out, sizeof(out)), OK);
	assert_int_equal(le64_to_cpu(out.value[SKUA_CNT_ETH_RX_GRO_SEGS]), 3);
	assert_int_equal(compare(&g, s, 3, NULL, 0), 1);
}

/* A queue that is gone gets nothing, and one that is made with its number neither. */
static void reset(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	up(&g, r);
	row(&g, &f, s, 3);
	skua_dev_reset(r->f.dev, SKUA_RESET_FLR);
	fake_run(&r->f);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
}

/* While the function may not master the bus, what is under way waits. */
static void bus_master(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	up(&g, r);
	row(&g, &f, s, 3);
	fake_bus(&r->f, true, false);
	fake_run(&r->f);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
	fake_bus(&r->f, true, true);
	fake_run(&r->f);
	assert_int_equal(compare(&g, s, 3, NULL, 0), 1);
}

/* Two queues, by a rule: each frame goes to its own, and ends the row of the other. */
static void two_queues(void **state)
{
	struct skua_cmd_create_flow_in rule = { .index = cpu_to_le32(1) };
	struct flow f[2] = { { .port = 7 }, { .port = 8 } };
	struct rig *r = *state;
	struct gro_rig g[2];
	struct sent s[2][4];

	up(&g[0], r);
	up(&g[1], r);
	be16_put((uint8_t *)&rule.flow.value.sport, 7);
	memset(&rule.flow.mask.sport, 0xff, 2);
	rule.flow.dest = cpu_to_le32(g[0].e.qp.qpn);
	mini_ok(&r->m, SKUA_CMD_CREATE_FLOW, &rule, sizeof(rule));
	for (unsigned int i = 0; i < 2; i++) {
		row(&g[0], &f[0], s[0] + 2 * i, 2);
		row(&g[1], &f[1], s[1] + 2 * i, 2);
	}
	fake_run(&r->f);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(compare(&g[i], s[i], 4, NULL, 0), 2);
}

static void faults(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[6];
	struct told t;
	char err[128];

	up(&g, r);
	assert_int_equal(skua_dev_cmd_fault(r->f.dev, "ETH_RECV@3:twice", err, sizeof(err)), 0);
	row(&g, &f, s, 6);
	fake_run(&r->f);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 1);
	/* Told of once more */
	assert_error(&g, SKUA_CQE_OK, 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 3);
}

/* --- from a device that cuts to one that merges, and round inside --- */

static void large(uint8_t *p, bool v6, uint32_t payload)
{
	struct flow f = { .v6 = v6, .stamp = true, .port = 7, .id = 0xfff0, .seq = 0xfffff000 };

	segment(p, &f, payload, TCP_ACK | TCP_PSH);
}

static void loop(void **state)
{
	struct rig *r = *state;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		uint32_t hdr = v6 ? 86 : 66, mss = 1448, n = 10, len = n * mss - 7;
		struct skua_cmd_modify_port_in port = {
			.mask = cpu_to_le32(SKUA_PORT_M_MAC),
		};
		uint8_t *mem;
		struct gro_rig g;
		struct told t;

		up(&g, r);
		memcpy(port.mac, own, 6);
		mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
		mem = fake_ptr(&r->f, g.e.tx);
		large(mem, v6, len);
		assert_int_equal(send(&g.e, hdr + len, SKUA_WQE_F_LSO | SKUA_WQE_F_L3_CSUM |
				      SKUA_WQE_F_L4_CSUM,
				      u32_encode_bits(mss, SKUA_WQE_ETH_MSS)), SKUA_CQE_OK);
		assert_true(next(&g, &t));
		assert_int_equal(t.m.segs, n);
		assert_int_equal(t.m.size, mss);
		assert_int_equal(t.m.len, hdr + len);
		check_whole(&g, &t);
		/* But for TCP's checksum it is what was handed over to be cut. */
		memcpy(mem + l4_of(mem) + 16, slot(&g, t.first) + l4_of(mem) + 16, 2);
		assert_memory_equal(slot(&g, t.first), mem, hdr + mss);
		for (uint32_t i = 1; i < n; i++)
			assert_memory_equal(slot(&g, t.first + i), mem + hdr + i * mss,
					    i == n - 1 ? mss - 7 : mss);
		assert_false(next(&g, &t));
	}
}

/* --- asked for where it cannot be --- */

static void refused(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_qp_in in;
	struct gro_rig g;

	in = queue_in(&g, r, 0, 5);
	le32p_replace_bits(&in.sq.flags, SKUA_QP_RC, SKUA_QP_TYPE);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), BAD_PARAM);
	in = queue_in(&g, r, 0, 5);
	r->f.dev->caps &= ~SKUA_CAP_GRO;
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), BAD_PARAM);
	r->f.dev->caps |= SKUA_CAP_GRO;
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(rules),
		rig_test(never),
		rig_test(keep_vlan),
		rig_test(other_vlan),
		rig_test(limits),
		rig_test(bytes_limit),
		rig_test(streams),
		rig_test(no_wqe),
		rig_test(short_wqe),
		rig_test(no_memory),
		rig_test(no_headers),
		rig_test(no_ring),
		rig_test(command),
		rig_test(counters),
		rig_test(reset),
		rig_test(bus_master),
		rig_test(two_queues),
		rig_test(faults),
		rig_test(loop),
		rig_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
