// SPDX-License-Identifier: GPL-2.0
/*
 * Faults: the same packets suffer the same, whatever else is on the wire and
 * whenever it is sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fault_test.h"

/* Language */

static void test_language(void **state)
{
	static const char * const good[] = {
		"", ";", "loss=1%", "loss=0.5,dup=1/3,corrupt=0,ecn=100%",
		"loss=1%,reorder=1%:4,delay=100us+20us,dup=0.1%,corrupt=0.1%,ecn=5%,seed=7",
		"delay=1ms@10%", "delay=1.5us+1ns@1/7", "reorder=1:50us,hold=1s", "seed=0xabc",
		"port=a,loss=1;port=b,ecn=1,ecn-force", "all,corrupt=1,corrupt-any", "key=qpn",
		"rule=drop", "rule=drop:qpn=any,psn=3,iter=0", "rule=delay/10ms:psn=3-7",
		"rule=reorder/3:op=rc_ack;rule=reorder/1us:op=0xc0", "rule=dup:class=resp,count=1",
		"loss=1% rule=ecn:port=b,qp=0", "rule=corrupt:frame=0-9,port=a",
		"bandwidth=1kbit", "bandwidth=2.5Gbit,port=a,loss=1%", "bandwidth=10000Gbit",
	};
	static const char * const bad[] = {
		"loss", "loss=", "loss=1.1", "loss=101%", "loss=-1", "loss=1%%", "loss=1/0", "loss=x",
		"loss=nan", "loss=0xfffffffffffffffffffffffffffffff", "delay=1", "delay=1 us",
		"delay=us", "delay=1us+", "delay=1us@", "delay=2h", "delay=99999s", "reorder=1%",
		"reorder=1%:", "reorder=1%:0", "reorder=1%:99999", "reorder=1%:0s", "hold=0s",
		"seed=", "seed=-1", "seed=99999999999999999999999", "key=x", "all=1", "foo=1",
		"port=", "port=a-name-of-more-than-thirty-one-characters", "rule=", "rule=foo",
		"rule=drop/3", "rule=delay", "rule=delay/", "rule=reorder", "rule=drop:psn",
		"rule=drop:psn=", "rule=drop:psn=5-3", "rule=drop:psn=-3", "rule=drop:psn=1-",
		"rule=drop:op=foo", "rule=drop:op=256", "rule=drop:class=foo", "rule=drop:loss=1",
		"loss=1%,rule=drop", "loss=1%;;rule=dro", "bandwidth=1", "bandwidth=1bit",
		"bandwidth=0.9kbit", "bandwidth=10001Gbit", "bandwidth=Mbit", "bandwidth=-1Mbit",
	};
	struct wire_faults *f;
	unsigned int i;
	char err[120];

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		f = wire_faults_create(0);
		if (wire_faults_add(f, good[i], err, sizeof(err)))
			fail_msg("\"%s\": %s", good[i], err);
		wire_faults_destroy(f);
	}
	f = wire_faults_create(0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err[0] = '\0';
		if (!wire_faults_add(f, bad[i], err, sizeof(err)))
			fail_msg("\"%s\" was accepted", bad[i]);
		assert_true(err[0]);
	}
	/* Nothing of what was refused, not even its good first clauses, stays. */
	assert_false(wire_faults_active(f));
	assert_int_equal(wire_faults_add(f, "loss=2", NULL, 0), -1);
	wire_faults_destroy(f);
}

/* Which (qpn, psn) came through, as bits. */
static void arrivals(const struct log *log, uint32_t qpn, uint32_t first, uint8_t *seen,
		     unsigned int n)
{
	unsigned int i;

	memset(seen, 0, n);
	for (i = 0; i < log->n; i++)
		if (log->e[i].qpn == qpn && ((log->e[i].psn - first) & IB_PSN_MASK) < n)
			seen[(log->e[i].psn - first) & IB_PSN_MASK]++;
}

#define N 4000

enum mixing { ALTERNATE, BLOCKS, ONE_BY_ONE, RAGGED };

/*
 * Two QPs send N packets each, in some order and speed; fates of both in @seen.
 */
static void run_two(uint64_t seed, const char *spec, enum mixing mixing, uint32_t qpn,
		    uint32_t first, uint8_t seen[2][N])
{
	struct fixture *f = open_wire(seed, spec);
	unsigned int sent[2] = { 0, 0 }, i = 0;

	/* QP 0 is the first in all orders. */
	while (sent[0] < N || sent[1] < N) {
		unsigned int q;

		switch (mixing) {
		case ALTERNATE:
			q = i % 2;
			break;
		case BLOCKS:
			q = i / 64 % 2;
			break;
		case ONE_BY_ONE:
			q = i >= N;
			break;
		default:
			q = i && (i * 2654435761u >> 7) % 3 == 0;
			break;
		}
		if (sent[q] == N)
			q = !q;
		send_psn(f, qpn + q, first + sent[q]++);
		i++;
		if (mixing == RAGGED && i % 7 == 0) {
			f->now += i * 977 % 5000;
			/* Other traffic. */
			send_what(f->b, &(struct what){ .opcode = IB_OPCODE(RC, ACK), .qpn = 5,
							.psn = i });
		}
		if (mixing != BLOCKS)
			wire_poll(f->w, f->now);
		else if (i % 500 == 0)
			drain(f);
	}
	finish(f);
	arrivals(f->at_b, qpn, first, seen[0], N);
	arrivals(f->at_b, qpn + 1, first, seen[1], N);
	close_wire(f);
}

static void test_deterministic(void **state)
{
	static const char spec[] = "loss=5%,dup=3%";
	static uint8_t want[2][N], got[2][N], qpn_want[2][N];
	enum mixing m;
	unsigned int i, lost = 0, twice = 0;

	(void)state;
	run_two(42, spec, ALTERNATE, 0x100, 0, want);
	for (i = 0; i < N; i++) {
		lost += !want[0][i];
		twice += want[0][i] == 2;
	}
	assert_in_range(lost, N / 30, N / 13);
	assert_in_range(twice, N / 60, N / 20);
	assert_memory_not_equal(want[0], want[1], N);

	for (m = BLOCKS; m <= RAGGED; m++) {
		run_two(42, spec, m, 0x100, 0, got);
		assert_memory_equal(want, got, sizeof(got));
	}
	/* Neither QP numbers nor first PSNs matter, not even where PSNs wrap. */
	run_two(42, spec, RAGGED, 0xabcdef, 0xfffff0, got);
	assert_memory_equal(want, got, sizeof(got));
	/* The seed does. */
	run_two(43, spec, ALTERNATE, 0x100, 0, got);
	assert_memory_not_equal(want[0], got[0], N);
	run_two(43, "loss=5%,dup=3%,seed=42", ALTERNATE, 0x100, 0, got);
	assert_memory_equal(want, got, sizeof(got));

	/* By QP number: does not depend even on who is first. */
	run_two(1, "loss=5%,key=qpn", ALTERNATE, 0x100, 0, qpn_want);
	run_two(1, "loss=5%,key=qpn", ONE_BY_ONE, 0x101, 0, got);
	assert_memory_equal(qpn_want[1], got[0], N);
}

/* Lost packets that are sent again get through at last, each in its own time. */
static void test_iterations(void **state)
{
	struct fixture *f;
	static uint8_t seen[3000];
	unsigned int round, i, missing = 3000;

	(void)state;
	/* More packets at once than a flow's PSNs are counted for. */
	f = open_wire(3, "loss=50%");
	for (round = 0; round < 60 && missing; round++) {
		for (i = 0; i < 3000; i++)
			send_psn(f, 7, 100 + i);
		drain(f);
		arrivals(f->at_b, 7, 100, seen, 3000);
		for (missing = 0, i = 0; i < 3000; i++)
			missing += !seen[i];
		if (f->at_b->n > LOG_MAX / 2)
			break;
	}
	assert_true(missing < 3);
	close_wire(f);

	/* Rules count passages. */
	f = open_wire(0, "rule=drop:psn=3,iter=0-1");
	for (i = 0; i < 4; i++) {
		send_psn(f, 7, 1003);
		if (!i)
			send_psn(f, 7, 1000);
	}
	drain(f);
	/* 1003 was the first seen, so it is PSN 0, and 1000 lies before it. */
	assert_int_equal(f->at_b->n, 5);
	for (i = 0; i < 4; i++)
		send_psn(f, 7, 1006);
	drain(f);
	assert_int_equal(f->at_b->n, 7);
	assert_int_equal(stats(f)->fault_loss, 2);
	close_wire(f);
}

/*
 * Passages are counted of all of WIRE_FLOW_PSNS packets, whatever their order. What is not
 * remembered has the number of times that the flow went back instead, which are many here.
 */
static void test_remembered(void **state)
{
	struct fixture *f = open_wire(0, "rule=drop:iter=3-254");
	const uint32_t first = 1000, last = first + WIRE_FLOW_PSNS - 1;

	(void)state;
	/* All PSNs below this one lie before the flow's first. */
	send_psn(f, 7, first + 500);
	for (uint32_t psn = first; psn <= last; psn++)
		send_psn(f, 7, psn);
	for (uint32_t psn = last; psn >= first; psn--)
		send_psn(f, 7, psn);
	drain(f);
	assert_int_equal(stats(f)->fault_loss, 0);
	/* One more, and the one in whose place it is counts as new. */
	send_psn(f, 7, last + 1);
	send_psn(f, 7, first);
	drain(f);
	assert_int_equal(stats(f)->fault_loss, 1);
	close_wire(f);
}

/* After the end of all faults the same ones do the same again. */
static void test_clear(void **state)
{
	struct fixture *f = open_wire(5, "loss=30%,reorder=5%:3");
	static uint8_t seen[3][300];
	unsigned int round, i;
	char err[120];

	(void)state;
	for (round = 0; round < 3; round++) {
		/* Another flow before: ordinals begin anew as well. */
		send_psn(f, 8, round);
		for (i = 0; i < 300; i++)
			send_psn(f, 7, 100 + i);
		finish(f);
		arrivals(f->at_b, 7, 100, seen[round], 300);
		f->at_b->n = 0;
		/* Frames of a flow that is forgotten while they wait get on. */
		for (i = 0; !round && i < 100; i++)
			send_psn(f, 9, i);
		wire_fault_clear(f->w);
		finish(f);
		f->at_b->n = 0;
		if (round == 1)
			assert_int_equal(wire_fault(f->w, "loss=30%,reorder=5%:3", err,
						    sizeof(err)), 0);
	}
	for (i = 0; i < 300; i++)
		assert_true(seen[1][i]);
	assert_memory_equal(seen[0], seen[2], sizeof(seen[0]));
	assert_memory_not_equal(seen[0], seen[1], sizeof(seen[0]));
	close_wire(f);
}

static void test_rules(void **state)
{
	struct fixture *f = open_wire(0, "rule=drop:qp=1,psn=2,iter=0;rule=drop:op=rc_ack,count=1;"
					 "rule=drop:port=b,class=req;rule=drop:qpn=0x99");
	unsigned int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		send_psn(f, 10, 50 + i);
		send_psn(f, 20, 90 + i);
		send_psn(f, 0x99, i);
	}
	drain(f);
	assert_int_equal(f->at_b->n, 9);
	for (i = 0; i < 9; i++)
		assert_false(f->at_b->e[i].qpn == 20 && f->at_b->e[i].psn == 92);

	for (i = 0; i < 3; i++)
		send_what(f->b, &(struct what){ .opcode = IB_OPCODE(RC, ACK), .qpn = 1, .psn = i });
	send_what(f->b, &(struct what){ .opcode = IB_OPCODE(RC, SEND_ONLY), .qpn = 1, .psn = 9 });
	drain(f);
	assert_int_equal(f->at_a->n, 2);
	assert_int_equal(f->at_a->e[0].psn, 1);
	close_wire(f);
}

static void test_frame_rule(void **state)
{
	struct fixture *f = open_wire(0, "rule=drop:frame=1-2,port=a");
	uint8_t arp[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		wire_port_send(f->a, arp, sizeof(arp));
	send_psn(f, 1, 1);
	drain(f);
	assert_int_equal(f->at_b->other, 1);
	assert_int_equal(f->at_b->n, 1);
	close_wire(f);
}

/* Everything else is left alone unless asked for. */
static void test_other_frames(void **state)
{
	uint8_t arp[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6 };
	struct fixture *f = open_wire(0, "loss=100%");
	unsigned int i, first;

	(void)state;
	for (i = 0; i < 100; i++)
		wire_port_send(f->a, arp, sizeof(arp));
	send_psn(f, 1, 1);
	drain(f);
	assert_int_equal(f->at_b->other, 100);
	assert_int_equal(f->at_b->n, 0);
	close_wire(f);

	for (i = 0; i < 2; i++) {
		unsigned int k;

		f = open_wire(5, "loss=30%,all");
		for (k = 0; k < 1000; k++) {
			wire_port_send(f->a, arp, sizeof(arp));
			drain(f);
		}
		if (!i)
			first = f->at_b->other;
		assert_in_range(f->at_b->other, 600, 800);
		assert_int_equal(f->at_b->other, first);
		close_wire(f);
	}
}

static void test_port_rates(void **state)
{
	struct fixture *f = open_wire(0, "port=b,loss=100%");

	(void)state;
	send_psn(f, 1, 1);
	send_what(f->b, &(struct what){ .opcode = IB_OPCODE(RC, ACK), .qpn = 1 });
	drain(f);
	assert_int_equal(f->at_b->n, 1);
	assert_int_equal(f->at_a->n, 0);
	close_wire(f);
}

/* Damage is always found by the ICRC, and never changes what is not covered. */
static void test_corrupt(void **state)
{
	struct fixture *f = open_wire(9, "corrupt=100%");
	unsigned int i;

	(void)state;
	for (i = 0; i < 2000; i++)
		send_psn(f, 1, i);
	for (i = 0; i < 2000; i++)
		send_what(f->a, &(struct what){ .opcode = IB_OPCODE(RC, SEND_ONLY), .qpn = 2,
						.psn = i, .ipv6 = true });
	drain(f);
	assert_int_equal(f->at_b->n, 4000);
	for (i = 0; i < 4000; i++)
		assert_int_equal(f->at_b->e[i].status, SKUA_PKT_ICRC);
	assert_int_equal(stats(f)->fault_corrupt, 4000);
	close_wire(f);

	/* Anywhere: some are no longer RoCE, or no longer IP. */
	f = open_wire(9, "corrupt=100%,corrupt-any");
	for (i = 0; i < 2000; i++)
		send_psn(f, 1, i);
	drain(f);
	assert_true(f->at_b->other > 0);
	close_wire(f);
}

static void test_ecn(void **state)
{
	static const struct {
		const char *spec;
		uint8_t before, after;
	} cases[] = {
		{ "ecn=100%", 0x68, 0x68 }, { "ecn=100%", 0x69, 0x6b }, { "ecn=100%", 0x6a, 0x6b },
		{ "ecn=100%", 0x6b, 0x6b }, { "ecn=100%,ecn-force", 0x68, 0x6b },
		{ "ecn=0,corrupt=0", 0x6a, 0x6a },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = open_wire(0, cases[i / 2].spec);

		send_what(f->a, &(struct what){ .opcode = IB_OPCODE(RC, SEND_ONLY), .qpn = 1,
						.tclass = cases[i / 2].before, .ipv6 = i & 1 });
		drain(f);
		/* Also proves that the IPv4 checksum is right. */
		assert_int_equal(f->at_b->e[0].status, SKUA_PKT_OK);
		assert_int_equal(f->at_b->e[0].tclass, cases[i / 2].after);
		assert_int_equal(stats(f)->fault_ecn, cases[i / 2].before != cases[i / 2].after);
		close_wire(f);
	}
}

static void test_ecn_checksum(void **state)
{
	uint8_t frame[256];
	unsigned int i;

	(void)state;
	/* Sums around the wrap of one's complement. */
	for (i = 0; i < 65536; i++) {
		struct what what = { .opcode = IB_OPCODE(RC, SEND_ONLY), .tclass = 0x02 };

		if (!i)
			make(frame, sizeof(frame), &what);
		frame[15] = 0x02;
		be16_put(frame + 18, (uint16_t)i);	/* identification */
		be16_put(frame + 24, 0);
		be16_put(frame + 24, skua_inet_csum(frame + 14, 20));
		assert_true(wire_mark_ce(frame, sizeof(frame), false));
		assert_int_equal(skua_inet_csum(frame + 14, 20), 0);
		/* A wrong sum stays wrong. */
		frame[15] = 0x01;
		be16_put(frame + 24, 0);
		be16_put(frame + 24, (uint16_t)(skua_inet_csum(frame + 14, 20) ^ 0x1000));
		wire_mark_ce(frame, sizeof(frame), false);
		assert_int_not_equal(skua_inet_csum(frame + 14, 20), 0);
	}
	for (i = 0; i < 34; i++)
		assert_false(wire_mark_ce(frame, i, true));
}

static void test_delay(void **state)
{
	struct fixture *f = open_wire(1, "delay=100us+50us");
	unsigned int i;
	uint64_t least = UINT64_MAX, most = 0;

	(void)state;
	for (i = 0; i < 500; i++) {
		f->now = i * 1000000;
		wire_poll(f->w, f->now);
		send_psn(f, 1, i);
		drain(f);
		assert_int_equal(f->at_b->n, i);
		assert_in_range(wire_deadline(f->w), f->now + 100000, f->now + 150000);
		finish(f);
		assert_int_equal(f->at_b->n, i + 1);
		f->at_b->e[i].time -= i * 1000000ull;
		if (f->at_b->e[i].time < least)
			least = f->at_b->e[i].time;
		if (f->at_b->e[i].time > most)
			most = f->at_b->e[i].time;
	}
	assert_in_range(least, 100000, 102000);
	assert_in_range(most, 148000, 150000);

	/* Jitter does not reorder. */
	f->at_b->n = 0;
	for (i = 0; i < 5000; i++) {
		f->now += 700;
		wire_poll(f->w, f->now);
		send_psn(f, 1, i);
	}
	finish(f);
	assert_int_equal(f->at_b->n, 5000);
	for (i = 0; i < 5000; i++)
		assert_int_equal(f->at_b->e[i].psn, i);
	assert_int_equal(stats(f)->fault_delay, 5500);
	close_wire(f);
}

/* One frame is slow: those behind it wait, as on a cable; other directions do not. */
static void test_delay_some(void **state)
{
	struct fixture *f = open_wire(1, "rule=delay/1ms:psn=0,port=a");

	(void)state;
	send_psn(f, 1, 0);
	send_psn(f, 1, 1);
	send_what(f->b, &(struct what){ .opcode = IB_OPCODE(RC, ACK), .qpn = 1 });
	drain(f);
	assert_int_equal(f->at_a->n, 1);
	assert_int_equal(f->at_b->n, 0);
	f->now = 999999;
	drain(f);
	assert_int_equal(f->at_b->n, 0);
	f->now = 1000000;
	drain(f);
	assert_int_equal(f->at_b->n, 2);
	assert_int_equal(f->at_b->e[0].psn, 0);
	close_wire(f);
}

static void test_reorder(void **state)
{
	struct fixture *f = open_wire(1, "rule=reorder/2:psn=1,class=req,qpn=1");
	static const uint32_t want[] = { 0, 2, 3, 1, 4 };
	unsigned int i, n = 0;

	(void)state;
	for (i = 0; i < 5; i++) {
		send_psn(f, 1, i);
		/* Others do not count. */
		send_what(f->a, &(struct what){ .opcode = IB_OPCODE(RC, ACK), .qpn = 1, .psn = i });
		send_psn(f, 2, 900);
	}
	drain(f);
	assert_int_equal(f->at_b->n, 15);
	for (i = 0; i < 15; i++)
		if (f->at_b->e[i].qpn == 1 && f->at_b->e[i].opcode != IB_OPCODE(RC, ACK))
			assert_int_equal(f->at_b->e[i].psn, want[n++]);
	assert_int_equal(n, 5);

	/* None comes after it: time frees it. */
	close_wire(f);
	f = open_wire(1, "reorder=100%:2,hold=3ms");
	send_psn(f, 1, 0);
	drain(f);
	assert_int_equal(f->at_b->n, 0);
	assert_int_equal(wire_deadline(f->w), 3000000);
	finish(f);
	assert_int_equal(f->at_b->n, 1);
	close_wire(f);

	/* For a time. */
	f = open_wire(1, "rule=reorder/50us:psn=0");
	send_psn(f, 1, 0);
	send_psn(f, 1, 1);
	drain(f);
	assert_int_equal(f->at_b->n, 1);
	f->now = 50000;
	drain(f);
	assert_int_equal(f->at_b->n, 2);
	close_wire(f);
}

static void test_duplicate(void **state)
{
	struct fixture *f = open_wire(1, "dup=100%");
	unsigned int i;

	(void)state;
	for (i = 0; i < 10; i++)
		send_psn(f, 1, i);
	drain(f);
	assert_int_equal(f->at_b->n, 20);
	for (i = 0; i < 20; i++) {
		assert_int_equal(f->at_b->e[i].psn, i / 2);
		assert_int_equal(f->at_b->e[i].status, SKUA_PKT_OK);
	}
	close_wire(f);
}

/* More QPs than the table holds, some with frames held back. */
static void test_many_flows(void **state)
{
	struct fixture *f = open_wire(1, "rule=reorder/2:psn=0,count=500");
	unsigned int i;

	(void)state;
	assert_true(WIRE_FLOWS_MAX >= 4 * 10000);
	for (i = 0; i < WIRE_FLOWS_MAX + 1000; i++) {
		send_psn(f, i, i * 7);
		drain(f);
	}
	assert_int_equal(stats(f)->fault_flow_evict, 1000);
	assert_int_equal(stats(f)->fault_reorder, 500);
	assert_int_equal(f->at_b->n, WIRE_FLOWS_MAX + 500);
	finish(f);
	assert_int_equal(f->at_b->n, WIRE_FLOWS_MAX + 1000);
	close_wire(f);
}

/* UD: senders are told apart, so that they do not disturb each other. */
static void test_ud(void **state)
{
	struct fixture *f = open_wire(1, "rule=drop:psn=1");
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		send_what(f->a, &(struct what){ .opcode = IB_OPCODE(UD, SEND_ONLY), .qpn = 1,
						.psn = 10 * (i % 2) + i / 2, .sqpn = 5 + i % 2 });
	drain(f);
	assert_int_equal(f->at_b->n, 2);
	assert_int_equal(f->at_b->e[0].psn, 0);
	assert_int_equal(f->at_b->e[1].psn, 10);
	close_wire(f);
}

enum { FATES = 500 };

/* What @spec does to each packet of two flows, as bits; added to what @fates has. */
static void add_fates(const char *spec, uint8_t fates[FATES])
{
	struct wire_faults *f = wire_faults_create(7);
	struct wire_fate fate;
	uint8_t frame[256];
	size_t len;

	assert_int_equal(wire_faults_add(f, spec, NULL, 0), 0);
	for (uint32_t i = 0; i < FATES; i++) {
		len = make(frame, sizeof(frame), &(struct what){
			.opcode = IB_OPCODE(RC, SEND_MIDDLE), .qpn = i % 2, .psn = i / 2 });
		wire_faults_decide(f, 0, "a", frame, len, &fate);
		fates[i] |= (uint8_t)(fate.drop | fate.dup << 1 | fate.ecn << 2);
	}
	wire_faults_destroy(f);
}

/* Kinds of faults, and clauses, are drawn by themselves: together they do what each does alone. */
static void test_apart(void **state)
{
	static const char *const together[] = { "loss=30%,dup=40%,ecn=20%",
						"loss=30%,seed=5;loss=10%,dup=20%,seed=6",
						"loss=30%,dup=10%,seed=5;loss=10%,dup=20%,seed=6" };
	static const char *const alone[][4] = {
		{ "loss=30%", "dup=40%", "ecn=20%" },
		{ "loss=30%,seed=5", "loss=10%,seed=6", "dup=20%,seed=6" },
		{ "loss=30%,seed=5", "dup=10%,seed=5", "loss=10%,seed=6", "dup=20%,seed=6" },
	};

	(void)state;
	for (unsigned int n = 0; n < sizeof(together) / sizeof(together[0]); n++) {
		uint8_t a[FATES] = { 0 }, b[FATES] = { 0 };

		add_fates(together[n], a);
		for (unsigned int i = 0; i < 4 && alone[n][i]; i++)
			add_fates(alone[n][i], b);
		assert_memory_equal(a, b, sizeof(a));
	}
}

static void test_all_together(void **state)
{
	static const char spec[] = "loss=5%,dup=5%,corrupt=5%,ecn=5%,reorder=5%:3,delay=10us+5us,all";
	uint8_t arp[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6 };
	struct fixture *f = open_wire(77, spec);
	const struct wire_stats *st = stats(f);
	unsigned int i;

	(void)state;
	for (i = 0; i < 10000; i++) {
		send_what(f->a, &(struct what){ .opcode = IB_OPCODE(RC, SEND_ONLY),
						.qpn = i % 10, .psn = i / 10, .tclass = 2 });
		if (i % 10 == 0)
			wire_port_send(f->a, arp, sizeof(arp));
		f->now += 300;
		wire_poll(f->w, f->now);
	}
	finish(f);
	assert_int_equal(f->at_b->n + f->at_b->other + st->fault_loss - st->fault_dup, 11000);
	assert_int_equal(st->drop_hold, 0);
	assert_in_range(st->fault_loss, 400, 700);
	assert_in_range(st->fault_reorder, 400, 700);
	close_wire(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_language),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_iterations),
		cmocka_unit_test(test_remembered),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_frame_rule),
		cmocka_unit_test(test_other_frames),
		cmocka_unit_test(test_port_rates),
		cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_ecn),
		cmocka_unit_test(test_ecn_checksum),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_delay_some),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_duplicate),
		cmocka_unit_test(test_many_flows),
		cmocka_unit_test(test_ud),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_all_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
