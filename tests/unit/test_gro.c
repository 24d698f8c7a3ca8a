// SPDX-License-Identifier: GPL-2.0
/* Merging of received TCP frames (SKUA_CAP_GRO): which are merged, and that cutting gives what came. */
#include <stdio.h>

#include "gro_test.h"

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
