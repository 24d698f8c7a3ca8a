// SPDX-License-Identifier: GPL-2.0
/*
 * The network of switches: times to the nanosecond, what is lost, marked and sent which
 * way, and that all of it follows from the seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce/pkt.h"
#include "wire/fabric.h"
#include "wire/wire.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define NICS		8
#define LOG_MAX		20000
#define ECT		2
#define CE		3

struct nic {
	struct net *net;
	struct wire_port *port;
	unsigned int n, rooms, again, marked, unmarked, bad;
	struct {
		uint64_t time;
		uint32_t psn;
		uint8_t from;
	} got[LOG_MAX];
};

struct net {
	struct wire *w;
	uint64_t now;
	struct nic nic[NICS];
};

static uint64_t clock_of(void *priv)
{
	return ((struct net *)priv)->now;
}

static void rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct nic *nic = priv;
	struct skua_pkt p;

	if (nic->again) {
		nic->again--;
		wire_port_again(nic->port);
		return;
	}
	if (icrc_pending)
		skua_pkt_icrc_fill(frame, len);
	assert_true(nic->n < LOG_MAX);
	if (skua_pkt_parse(frame, len, &p)) {
		nic->bad++;
		return;
	}
	nic->got[nic->n].time = nic->net->now;
	nic->got[nic->n].psn = p.psn;
	nic->got[nic->n].from = p.smac[5];
	nic->marked += (p.tclass & 3) == CE;
	nic->unmarked += (p.tclass & 3) == ECT;
	nic->n++;
}

static void room(void *priv)
{
	((struct nic *)priv)->rooms++;
}

/* 100 Gbit/s, links of 500 ns, one switch, queues of 100,000 bytes. */
static struct fabric_cfg plain(void)
{
	return (struct fabric_cfg){ .nics = NICS, .rate_mbps = 100000, .nic_ns = 500,
				    .up_ns = 250, .queue_bytes = 100000, .nic_bytes = 1 << 30 };
}

static struct net *open_net(const struct fabric_cfg *cfg, uint64_t seed, const char *faults)
{
	struct net *net = calloc(1, sizeof(*net));
	char err[200] = "";

	assert_non_null(net);
	net->w = wire_create(seed);
	assert_non_null(net->w);
	if (wire_use_fabric(net->w, cfg, err, sizeof(err)))
		fail_msg("%s", err);
	wire_set_clock(net->w, clock_of, net);
	for (unsigned int i = 0; i < cfg->nics && i < NICS; i++) {
		uint8_t mac[6] = { 2, 0, 0, 0, 0, (uint8_t)(i + 1) };
		char name[8];

		snprintf(name, sizeof(name), "nic%u", i);
		net->nic[i].net = net;
		net->nic[i].port = wire_add_dev(net->w, name, rx, &net->nic[i]);
		assert_non_null(net->nic[i].port);
		wire_port_only_mac(net->nic[i].port, mac);
		wire_port_on_room(net->nic[i].port, room);
	}
	if (faults && wire_fault(net->w, faults, err, sizeof(err)))
		fail_msg("%s: %s", faults, err);
	return net;
}

static void close_net(struct net *net)
{
	wire_destroy(net->w);
	free(net);
}

static void run(struct net *net)
{
	while (wire_deadline(net->w) != UINT64_MAX) {
		if (wire_deadline(net->w) > net->now)
			net->now = wire_deadline(net->w);
		wire_poll(net->w, net->now);
	}
}

static const struct fabric_stats *stats(const struct net *net)
{
	return wire_fabric_stats(net->w);
}

/* Nothing is lost that nothing is told of. */
static void check_sum(const struct net *net)
{
	const struct fabric_stats *s = stats(net);

	assert_int_equal(s->sent, s->delivered + s->drop_queue + s->drop_loss + s->drop_dead +
				  s->drop_unknown + s->drop_memory + s->flight);
}

/* A WRITE of one packet; the frame has @payload bytes and 70 more. */
static void send_psn(struct net *net, unsigned int from, unsigned int to, uint32_t qpn,
		     uint32_t psn, unsigned int payload, uint8_t tclass)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	struct skua_pkt_addr addr = { .dmac = { 2, 0, 0, 0, 0, (uint8_t)(to + 1) },
				      .smac = { 2, 0, 0, 0, 0, (uint8_t)(from + 1) },
				      .tclass = tclass, .hop_limit = 64 };
	struct skua_pkt_bth bth = { .opcode = IB_OPCODE(UC, WRITE_MIDDLE), .pkey = 0xffff,
				    .dqpn = qpn, .psn = psn };
	struct skua_pkt_build b;
	size_t len;

	addr.sgid[10] = addr.sgid[11] = addr.dgid[10] = addr.dgid[11] = 0xff;
	addr.sgid[12] = addr.dgid[12] = 10;
	addr.sgid[15] = (uint8_t)(from + 1);
	addr.dgid[15] = (uint8_t)(to + 1);
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &addr, &bth), 0);
	memset(b.payload, 0x5a, payload);
	len = skua_pkt_build_close(&b, payload);
	assert_true(len > 0);
	wire_port_send_pending(net->nic[from].port, frame, len);
}

/* Bytes of such a frame on a link. */
#define ON_LINK(payload)	((payload) + 14 + 20 + 8 + 12 + 4 + FABRIC_FRAME_EXTRA)

/* Two links, each takes the frame whole, and 500 ns. */
static void test_time(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net = open_net(&cfg, 1, NULL);
	uint64_t bits = ON_LINK(1000) * 8;

	(void)state;
	for (uint32_t k = 0; k < 100; k++)
		send_psn(net, 0, 1, 7, k, 1000, 0);
	run(net);
	assert_int_equal(net->nic[1].n, 100);
	for (uint32_t k = 0; k < 100; k++) {
		/* At 100 Gbit/s a hundredth of a nanosecond for a bit, rounded up by frame. */
		uint64_t hundredths = (k + 2) * bits + 2 * 50000;

		assert_int_equal(net->nic[1].got[k].psn, k);
		assert_in_range(net->nic[1].got[k].time, hundredths / 100, hundredths / 100 + 2);
	}
	check_sum(net);
	close_net(net);
}

/* Between leaves there are four links, those in the middle with rate and time of their own. */
static void test_leaves(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net;

	(void)state;
	cfg.per_leaf = 4;
	cfg.up_mbps = 50000;
	net = open_net(&cfg, 1, NULL);
	send_psn(net, 0, 3, 7, 0, 1000, 0);
	send_psn(net, 1, 4, 7, 0, 1000, 0);
	run(net);
	assert_in_range(net->nic[3].got[0].time, 1000 + ON_LINK(1000) * 16 / 100,
			1001 + ON_LINK(1000) * 16 / 100);
	assert_in_range(net->nic[4].got[0].time, 1500 + ON_LINK(1000) * 48 / 100,
			1501 + ON_LINK(1000) * 48 / 100);
	close_net(net);
}

/* Frames from two leaves to one, and from one to two, meet on a link; others do not. */
static void test_meet(void **state)
{
	static const struct {
		unsigned int from[2], to[2];
		bool meet;
	} c[] = {
		{ { 0, 2 }, { 6, 7 }, true },
		{ { 0, 1 }, { 4, 6 }, true },
		{ { 0, 2 }, { 4, 6 }, false },
		{ { 0, 1 }, { 1, 0 }, false },
	};

	(void)state;
	for (size_t i = 0; i < N(c); i++) {
		struct fabric_cfg cfg = plain();
		uint64_t time[2];
		struct net *net;

		cfg.per_leaf = 2;
		cfg.up_mbps = 100000;
		net = open_net(&cfg, 1, NULL);
		for (unsigned int k = 0; k < 2; k++)
			send_psn(net, c[i].from[k], c[i].to[k], 7, 0, 1000, 0);
		run(net);
		for (unsigned int k = 0; k < 2; k++) {
			assert_int_equal(net->nic[c[i].to[k]].n, 1);
			time[k] = net->nic[c[i].to[k]].got[0].time;
		}
		assert_in_range(time[1] - time[0], c[i].meet ? ON_LINK(1000) * 8 / 100 : 0,
				c[i].meet ? ON_LINK(1000) * 8 / 100 + 1 : 0);
		close_net(net);
	}
}

/* What does not fit in a queue is lost, and nothing else. */
static void test_tail_drop(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net = open_net(&cfg, 1, NULL);
	const struct fabric_stats *s = stats(net);

	(void)state;
	for (uint32_t k = 0; k < 200; k++) {
		for (unsigned int i = 1; i < 3; i++)
			send_psn(net, i, 0, i, k, 4000, 0);
	}
	run(net);
	/* Twice the rate comes: half of it passes, and what the queue holds. */
	assert_in_range(s->queue_max, 100000 - ON_LINK(4000), 100000);
	assert_in_range(s->drop_queue, 200 - 100000 / ON_LINK(4000) - 2,
			200 - 100000 / ON_LINK(4000) + 2);
	assert_int_equal(net->nic[0].n + s->drop_queue, 400);
	assert_int_equal(s->flight, 0);
	check_sum(net);
	close_net(net);
}

/* A NIC waits when enough does, and is told when half of it has gone. */
static void test_room(void **state)
{
	static const uint8_t dmac[6] = { 2, 0, 0, 0, 0, 2 };
	struct fabric_cfg cfg = plain();
	unsigned int sent = 0;
	struct net *net;

	(void)state;
	cfg.nic_bytes = 10 * ON_LINK(1000);
	net = open_net(&cfg, 1, NULL);
	while (!wire_port_full(net->nic[0].port, dmac))
		send_psn(net, 0, 1, 7, sent++, 1000, 0);
	assert_int_equal(sent, 10);
	assert_false(wire_port_full(net->nic[1].port, dmac));
	while (!net->nic[0].rooms) {
		assert_true(wire_port_full(net->nic[0].port, dmac));
		assert_true(wire_deadline(net->w) != UINT64_MAX);
		net->now = wire_deadline(net->w);
		wire_poll(net->w, net->now);
	}
	assert_in_range(net->now, 5 * ON_LINK(1000) * 8 / 100, 5 * ON_LINK(1000) * 8 / 100 + 3);
	assert_false(wire_port_full(net->nic[0].port, dmac));
	run(net);
	assert_int_equal(net->nic[0].rooms, 1);
	assert_int_equal(net->nic[1].n, sent);
	close_net(net);
}

/* With several planes a NIC waits for all of them together, also if it sends on one only. */
static void test_room_planes(void **state)
{
	static const uint8_t dmac[6] = { 2, 0, 0, 0, 0, 2 };
	struct fabric_cfg cfg = plain();
	unsigned int sent = 0;
	struct net *net;

	(void)state;
	cfg.planes = 4;
	cfg.nic_bytes = 5 * ON_LINK(1000);
	net = open_net(&cfg, 1, NULL);
	while (!wire_port_full(net->nic[0].port, dmac))
		send_psn(net, 0, 1, 7, sent++, 1000, 0);
	assert_int_equal(sent, 20);
	while (!net->nic[0].rooms) {
		assert_true(wire_deadline(net->w) != UINT64_MAX);
		net->now = wire_deadline(net->w);
		wire_poll(net->w, net->now);
	}
	/* One flow has one path: a quarter of the rate. */
	assert_in_range(net->now, 4 * 10 * ON_LINK(1000) * 8 / 100,
			4 * 10 * ON_LINK(1000) * 8 / 100 + 10);
	run(net);
	assert_int_equal(net->nic[1].n, sent);
	close_net(net);
}

/* Marks follow the queue: none below the minimum, all from the maximum, between a part. */
static void test_ecn(void **state)
{
	static const struct {
		uint32_t min, max, prob;
		uint8_t tclass;
		unsigned int lo, hi;
	} c[] = {
		{ 0, 0, 0, ECT, 0, 0 },
		{ 99000, 99500, UINT32_MAX, ECT, 0, 0 },
		{ 1, 2, 0, ECT, 398, 399 },		/* all but the first of each NIC */
		{ 1, 2, 0, 0, 0, 0 },			/* not ECN-capable */
		{ 1, 1u << 30, UINT32_MAX, ECT, 0, 2 },
		{ 1, 1u << 17, UINT32_MAX / 2, ECT, 50, 95 },
	};

	(void)state;
	for (size_t i = 0; i < N(c); i++) {
		struct fabric_cfg cfg = plain();
		const struct fabric_stats *s;
		struct net *net;

		cfg.ecn_min = c[i].min;
		cfg.ecn_max = c[i].max;
		cfg.ecn_prob = c[i].prob;
		net = open_net(&cfg, 3, NULL);
		s = stats(net);
		for (uint32_t k = 0; k < 200; k++) {
			for (unsigned int from = 1; from < 3; from++)
				send_psn(net, from, 0, from, k, 400, c[i].tclass);
		}
		run(net);
		assert_int_equal(net->nic[0].n, 400);
		assert_in_range(s->marked, c[i].lo, c[i].hi);
		assert_int_equal(net->nic[0].marked, s->marked - s->marked_lost);
		assert_int_equal(net->nic[0].bad, 0);
		close_net(net);
	}
}

/* What a fault has doubled is one buffer: the copy gets no mark with it. */
static void test_copies(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net;

	(void)state;
	cfg.ecn_min = 1;
	cfg.ecn_max = 2;
	net = open_net(&cfg, 3, "dup=100%");
	send_psn(net, 1, 0, 5, 0, 1000, ECT);
	run(net);
	/* The second finds the first in the NIC, but none in the switch. */
	assert_int_equal(net->nic[0].n, 2);
	assert_int_equal(net->nic[0].marked, 0);
	send_psn(net, 1, 0, 5, 1, 1000, ECT);
	send_psn(net, 2, 0, 5, 0, 1000, ECT);
	run(net);
	assert_int_equal(net->nic[0].n, 6);
	assert_int_equal(net->nic[0].marked, 3);
	assert_int_equal(net->nic[0].unmarked, 3);
	close_net(net);
}

/* Which PSNs of the flow from NIC 1 come through; others send meanwhile, or not. */
static void losses(uint64_t seed, bool others, uint8_t *come, unsigned int num)
{
	struct fabric_cfg cfg = plain();
	struct net *net;

	cfg.loss = UINT64_MAX / 20;
	net = open_net(&cfg, seed, NULL);
	for (uint32_t k = 0; k < num; k++) {
		send_psn(net, 1, 0, 5, 100 + k, 100, 0);
		if (others)
			send_psn(net, 2, 3, 5, k, 1000, 0);
		if (others && k % 3 == 0)
			send_psn(net, 1, 4, 6, k, 500, 0);
	}
	run(net);
	check_sum(net);
	memset(come, 0, num);
	for (unsigned int i = 0; i < net->nic[0].n; i++)
		come[net->nic[0].got[i].psn - 100] = 1;
	close_net(net);
}

static void test_loss(void **state)
{
	static uint8_t come[4][2000];
	unsigned int lost = 0, differ = 0;

	(void)state;
	losses(1, false, come[0], 2000);
	losses(1, false, come[1], 2000);
	losses(1, true, come[2], 2000);
	losses(2, false, come[3], 2000);
	for (unsigned int k = 0; k < 2000; k++) {
		lost += !come[0][k];
		differ += come[0][k] != come[3][k];
	}
	/* Two links, 5 % each: 195 of 2000. */
	assert_in_range(lost, 160, 230);
	assert_memory_equal(come[0], come[1], 2000);
	assert_memory_equal(come[0], come[2], 2000);
	assert_true(differ > 200);
}

/* A packet that was lost is decided anew when it is sent again. */
static void test_loss_again(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net;

	(void)state;
	cfg.loss = UINT64_MAX / 4;
	net = open_net(&cfg, 1, NULL);
	for (unsigned int round = 0; round < 40; round++) {
		for (uint32_t k = 0; k < 50; k++)
			send_psn(net, 1, 0, 5, k, 100, 0);
		run(net);
	}
	for (uint32_t k = 0; k < 50; k++) {
		unsigned int times = 0;

		for (unsigned int i = 0; i < net->nic[0].n; i++)
			times += net->nic[0].got[i].psn == k;
		/* 40 * 9/16 */
		assert_in_range(times, 8, 36);
	}
	close_net(net);
}

/* Packets of each way of spreading on 2 planes of 4 spines. */
static void spread(enum fabric_spread how, unsigned int flows, unsigned int packets,
		   unsigned int *fewest, unsigned int *most)
{
	struct fabric_cfg cfg = plain();
	struct net *net;

	cfg.per_leaf = 4;
	cfg.planes = 2;
	cfg.spines = 4;
	cfg.spread = how;
	cfg.queue_bytes = 10 << 20;
	net = open_net(&cfg, 1, NULL);
	assert_int_equal(wire_fabric_paths(net->w), 8);
	for (uint32_t k = 0; k < packets; k++) {
		for (unsigned int q = 0; q < flows; q++)
			send_psn(net, 0, 4, 10 + q, k, 500, 0);
	}
	run(net);
	assert_int_equal(net->nic[4].n, flows * packets);
	*fewest = UINT32_MAX;
	*most = 0;
	for (unsigned int i = 0; i < 8; i++) {
		unsigned int n = (unsigned int)stats(net)->path[i];

		*fewest = n < *fewest ? n : *fewest;
		*most = n > *most ? n : *most;
	}
	close_net(net);
}

static void test_spread(void **state)
{
	unsigned int fewest, most;

	(void)state;
	spread(FABRIC_BY_FLOW, 1, 800, &fewest, &most);
	assert_int_equal(fewest, 0);
	assert_int_equal(most, 800);
	spread(FABRIC_BY_FLOW, 400, 2, &fewest, &most);
	assert_in_range(fewest, 60, 100);
	assert_in_range(most, 100, 140);
	spread(FABRIC_IN_TURN, 1, 800, &fewest, &most);
	assert_int_equal(fewest, 100);
	assert_int_equal(most, 100);
	spread(FABRIC_BY_PACKET, 1, 800, &fewest, &most);
	assert_in_range(fewest, 70, 99);
	assert_in_range(most, 101, 130);
}

/* Part of the network's rate that a NIC gets which always has something to send. */
static double saturate(enum fabric_spread how, const struct fabric_death *death,
		       unsigned int *fewest, unsigned int *most)
{
	static const uint8_t dmac[6] = { 2, 0, 0, 0, 0, 5 };
	struct fabric_cfg cfg = plain();
	const uint64_t ns = 2000000;
	uint32_t psn[4] = { 0 };
	struct net *net;
	double got;

	cfg.per_leaf = 4;
	cfg.planes = 8;
	cfg.spines = 2;
	cfg.nic_bytes = 16384;
	cfg.queue_bytes = 1 << 20;
	cfg.spread = how;
	cfg.death[0] = *death;
	cfg.num_deaths = 1;
	net = open_net(&cfg, 1, NULL);
	for (unsigned int k = 0; net->now < ns;) {
		while (!wire_port_full(net->nic[0].port, dmac)) {
			send_psn(net, 0, 4 + k % 4, 10, psn[k % 4]++, 4000, 0);
			k++;
		}
		net->now = wire_deadline(net->w);
		wire_poll(net->w, net->now);
	}
	got = (double)stats(net)->delivered * ON_LINK(4000) * 8 / 100 / ns;
	assert_int_equal(stats(net)->drop_dead, 0);
	assert_int_equal(stats(net)->drop_queue, 0);
	*fewest = UINT32_MAX;
	*most = 0;
	for (unsigned int i = 0; i < 16; i++) {
		unsigned int n = (unsigned int)stats(net)->path[i];

		if (i / 2 == death->plane && (death->spine < 0 || i % 2 == (unsigned int)death->spine))
			continue;
		*fewest = n < *fewest ? n : *fewest;
		*most = n > *most ? n : *most;
	}
	check_sum(net);
	close_net(net);
	return got;
}

/*
 * A NIC that waits for links which happen to have much to send, while others have nothing,
 * does not get all of its rate. With a way for each packet by what its links have to send it
 * does, and gives each way that is left the same.
 */
static void test_adaptive(void **state)
{
	static const struct fabric_death plane = { 3, -1, 0, 0 }, spine = { 3, 1, 0, 0 };
	unsigned int fewest, most;

	(void)state;
	assert_true(saturate(FABRIC_BY_PACKET, &plane, &fewest, &most) < 0.875 * 0.9);
	assert_true(saturate(FABRIC_ADAPTIVE, &plane, &fewest, &most) > 0.875 * 0.97);
	assert_in_range(most - fewest, 0, 2);
	/* The plane has half of its rate to other leaves left. */
	assert_true(saturate(FABRIC_ADAPTIVE, &spine, &fewest, &most) > 0.9375 * 0.97);
	assert_in_range(most - fewest, 0, 2);
}

/* Long and short packets by turns: one plane does not get all of the long ones. */
static void test_adaptive_sizes(void **state)
{
	/* For 100 of each at 100 Gbit/s. */
	const uint64_t ns = (ON_LINK(4000) + ON_LINK(100)) * 8;
	struct fabric_cfg cfg = plain();
	struct net *net;

	(void)state;
	cfg.per_leaf = 4;
	cfg.planes = 2;
	cfg.spines = 1;
	cfg.queue_bytes = 10 << 20;
	cfg.spread = FABRIC_ADAPTIVE;
	net = open_net(&cfg, 1, NULL);
	for (uint32_t k = 0; k < 200; k++)
		send_psn(net, 0, 4, 10, k, k % 2 ? 100 : 4000, 0);
	run(net);
	assert_int_equal(net->nic[4].n, 200);
	assert_in_range(net->now, ns, ns * 11 / 10 + 3000);
	check_sum(net);
	close_net(net);
}

/* A plane dies: until that is known its part is lost, and after that nothing. */
static void test_death(void **state)
{
	static const struct {
		int spine;
		unsigned int lost;	/* of 800 while nobody knows */
	} c[] = { { -1, 400 }, { 2, 100 } };

	(void)state;
	for (size_t i = 0; i < N(c); i++) {
		struct fabric_cfg cfg = plain();
		struct net *net;

		cfg.per_leaf = 4;
		cfg.planes = 2;
		cfg.spines = 4;
		cfg.spread = FABRIC_IN_TURN;
		cfg.queue_bytes = 10 << 20;
		cfg.death[0] = (struct fabric_death){ 1, c[i].spine, 1000000, 2000000 };
		cfg.num_deaths = 1;
		net = open_net(&cfg, 1, NULL);
		for (unsigned int phase = 0; phase < 3; phase++) {
			unsigned int before = net->nic[4].n;

			net->now = phase * 1000000;
			for (uint32_t k = 0; k < 800; k++)
				send_psn(net, 0, 4, 10, phase * 800 + k, 100, 0);
			run(net);
			assert_int_equal(net->nic[4].n - before,
					 phase == 1 ? 800 - c[i].lost : 800);
		}
		assert_int_equal(stats(net)->drop_dead, c[i].lost);
		check_sum(net);
		close_net(net);
	}
}

/* All planes are gone: what is sent is lost, and nobody waits for room. */
static void test_death_of_all(void **state)
{
	static const uint8_t dmac[6] = { 2, 0, 0, 0, 0, 2 };
	struct fabric_cfg cfg = plain();
	struct net *net;

	(void)state;
	cfg.nic_bytes = 1000;
	cfg.death[0] = (struct fabric_death){ 0, -1, 0, 0 };
	cfg.num_deaths = 1;
	net = open_net(&cfg, 1, NULL);
	for (uint32_t k = 0; k < 10; k++)
		send_psn(net, 0, 1, 7, k, 1000, 0);
	assert_false(wire_port_full(net->nic[0].port, dmac));
	run(net);
	assert_int_equal(stats(net)->drop_dead, 10);
	check_sum(net);
	close_net(net);
}

/* Faults of the wire come first: rules for one packet, delays, order, damage. */
static void test_faults(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net = open_net(&cfg, 1, "rule=drop:qpn=7,psn=3;rule=delay/1us:qpn=7,psn=5;"
				   "rule=corrupt:qpn=7,psn=7;rule=ecn:qpn=7,psn=8;"
				   "rule=reorder/2:qpn=7,psn=9");
	static const uint32_t want[] = { 0, 1, 2, 4, 5, 6, 8, 10, 11, 9, 12 };

	(void)state;
	for (uint32_t k = 0; k < 13; k++)
		send_psn(net, 0, 1, 7, k, 1000, ECT);
	run(net);
	assert_int_equal(net->nic[1].n, N(want));
	for (size_t i = 0; i < N(want); i++)
		assert_int_equal(net->nic[1].got[i].psn, want[i]);
	assert_int_equal(net->nic[1].bad, 1);
	assert_int_equal(net->nic[1].marked, 1);
	/* The fifth frame, and the one that was delayed, which comes by itself then. */
	assert_in_range(net->nic[1].got[3].time, 1000 + 5 * ON_LINK(1000) * 8 / 100,
			1002 + 5 * ON_LINK(1000) * 8 / 100);
	assert_in_range(net->nic[1].got[4].time, 2000 + 2 * ON_LINK(1000) * 8 / 100,
			2002 + 2 * ON_LINK(1000) * 8 / 100);
	assert_int_equal(stats(net)->sent, 12);
	check_sum(net);
	close_net(net);
}

/* The station that is not done with a frame gets it again before the next one. */
static void test_again(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net = open_net(&cfg, 1, NULL);

	(void)state;
	net->nic[1].again = 3;
	for (uint32_t k = 0; k < 3; k++)
		send_psn(net, 0, 1, 7, k, 1000, 0);
	run(net);
	assert_int_equal(net->nic[1].again, 0);
	assert_int_equal(net->nic[1].n, 3);
	for (uint32_t k = 0; k < 3; k++)
		assert_int_equal(net->nic[1].got[k].psn, k);
	close_net(net);
}

static void test_unknown(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net = open_net(&cfg, 1, NULL);
	uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1 };

	(void)state;
	wire_port_send(net->nic[0].port, frame, sizeof(frame));
	send_psn(net, 0, 40, 7, 0, 100, 0);
	/* Not its address. */
	frame[11] = 9;
	wire_port_send(net->nic[0].port, frame, sizeof(frame));
	run(net);
	assert_int_equal(stats(net)->sent, 2);
	assert_int_equal(stats(net)->drop_unknown, 2);
	assert_int_equal(wire_port_stats(net->nic[0].port)->drop_spoof, 1);
	check_sum(net);
	/* What is under way at the end is not leaked. */
	send_psn(net, 0, 1, 7, 0, 100, 0);
	close_net(net);
}

/* More flows than are remembered, and fewer PSNs than come: all that is lost is the past. */
static void test_limits(void **state)
{
	struct fabric_cfg cfg = plain();
	struct net *net;

	(void)state;
	cfg.flows = 10;
	cfg.psns = 4;
	cfg.queue_bytes = 10 << 20;
	net = open_net(&cfg, 1, NULL);
	for (uint32_t k = 0; k < 100; k++) {
		for (unsigned int q = 0; q < 30; q++)
			send_psn(net, 0, 1, 7 + q, k, 100, 0);
	}
	run(net);
	assert_int_equal(net->nic[1].n, 3000);
	assert_int_equal(wire_port_stats(net->nic[0].port)->fault_flow_evict, 2990);
	close_net(net);
}

static void test_refused(void **state)
{
	static const struct {
		size_t off;
		uint32_t val;
		const char *say;
	} c[] = {
		{ offsetof(struct fabric_cfg, nics), 0, "NICs" },
		{ offsetof(struct fabric_cfg, nics), 5000, "NICs" },
		{ offsetof(struct fabric_cfg, planes), 65, "paths" },
		{ offsetof(struct fabric_cfg, rate_mbps), 0, "rate" },
		{ offsetof(struct fabric_cfg, queue_bytes), 100, "queue" },
		{ offsetof(struct fabric_cfg, nic_bytes), 0, "NIC" },
		{ offsetof(struct fabric_cfg, ecn_min), 100, "ecn_max" },
		{ offsetof(struct fabric_cfg, num_deaths), 9, "fail" },
	};
	struct wire *w = wire_create(1);
	struct fabric_cfg cfg = plain();
	char err[200];

	(void)state;
	assert_non_null(w);
	for (size_t i = 0; i < N(c); i++) {
		cfg = plain();
		memcpy((char *)&cfg + c[i].off, &c[i].val, sizeof(c[i].val));
		assert_int_equal(wire_use_fabric(w, &cfg, err, sizeof(err)), -1);
		assert_non_null(strstr(err, c[i].say));
	}
	cfg = plain();
	cfg.num_deaths = 1;
	cfg.death[0].spine = 1;
	assert_int_equal(wire_use_fabric(w, &cfg, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "no such plane"));
	cfg = plain();
	assert_non_null(wire_add_dev(w, "nic0", rx, NULL));
	assert_int_equal(wire_use_fabric(w, &cfg, err, sizeof(err)), -1);
	wire_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_meet),
		cmocka_unit_test(test_tail_drop),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_room_planes),
		cmocka_unit_test(test_ecn),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_loss_again),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_adaptive),
		cmocka_unit_test(test_adaptive_sizes),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_death_of_all),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
