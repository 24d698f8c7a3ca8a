// SPDX-License-Identifier: GPL-2.0
/*
 * Ports with a bandwidth: when their frames leave, and who waits for that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault_test.h"
#include "peer.h"

/* Bits that a frame of send_psn() takes up on a link. */
static uint64_t frame_bits(void)
{
	uint8_t frame[256];

	return 8 * (make(frame, sizeof(frame), &(struct what){
				.opcode = IB_OPCODE(RC, SEND_MIDDLE), .qpn = 1 }) + 24);
}

/*
 * Frames leave one after the other, each when it is sent at the bandwidth; other frames than RoCE
 * wait too, a delay comes after that, and another port has a shaper of its own.
 */
static void test_in_turn(void **state)
{
	static const char * const specs[] = {
		"bandwidth=1Mbit,port=a", "bandwidth=1Mbit,port=a;bandwidth=2Mbit",
		"bandwidth=1Mbit,delay=5us",
	};
	const uint64_t each = frame_bits() * 1000, other = 8 * (60 + 24) * 1000;
	uint8_t arp[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6 };

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		struct fixture *f = open_wire(1, specs[k]);
		uint64_t delay = k == 2 ? 5000 : 0;

		for (unsigned int i = 0; i < 10; i++)
			send_psn(f, 1, i);
		wire_port_send(f->a, arp, sizeof(arp));
		send_what(f->b, &(struct what){ .opcode = IB_OPCODE(RC, ACK), .qpn = 1 });
		drain(f);
		assert_int_equal(f->at_b->n, 0);
		/* Port b has no bandwidth, or the same, or twice that. */
		assert_int_equal(f->at_a->n, k == 0);
		finish(f);
		assert_int_equal(f->at_a->n, 1);
		for (unsigned int i = 0; i < 10; i++) {
			assert_int_equal(f->at_b->e[i].psn, i);
			assert_int_equal(f->at_b->e[i].time, (i + 1) * each + delay);
		}
		/* The last one is not RoCE: it is not delayed. */
		assert_int_equal(f->now, 10 * each + other);
		/* The shaper was idle: the next one does not wait. */
		f->now += 1000000000;
		wire_poll(f->w, f->now);
		send_psn(f, 1, 10);
		finish(f);
		assert_int_equal(f->at_b->e[f->at_b->n - 1].time, 10 * each + other +
				 1000000000 + each + delay);
		/* Without the clause too the order stays. */
		send_psn(f, 1, 11);
		wire_fault_clear(f->w);
		send_psn(f, 1, 12);
		finish(f);
		assert_int_equal(f->at_b->n, 13);
		assert_int_equal(f->at_b->e[f->at_b->n - 1].psn, 12);
		assert_int_equal(f->at_b->e[f->at_b->n - 2].psn, 11);
		send_psn(f, 1, 13);
		drain(f);
		assert_int_equal(f->at_b->e[f->at_b->n - 1].psn, 13);
		close_wire(f);
	}
}

/* The time of many frames is exact: what is less than a nanosecond is not lost with each. */
static void test_exact(void **state)
{
	static const struct {
		const char *spec;
		uint64_t bps;
	} at[] = {
		{ "bandwidth=3Mbit", 3000000 }, { "bandwidth=7Gbit", 7000000000 },
		{ "bandwidth=100Gbit", 100000000000 }, { "bandwidth=999Gbit", 999000000000 },
		{ "bandwidth=10000Gbit", 10000000000000 },
	};
	const uint64_t each = frame_bits() * 1000000000;
	struct fixture *f;
	uint64_t idle;
	char err[120];

	(void)state;
	for (unsigned int k = 0; k < sizeof(at) / sizeof(at[0]); k++) {
		f = open_wire(1, at[k].spec);
		for (unsigned int i = 0; i < 1000; i++)
			send_psn(f, 1, i);
		finish(f);
		assert_int_equal(f->at_b->n, 1000);
		for (unsigned int i = 0; i < 1000; i++)
			assert_int_equal(f->at_b->e[i].time, (i + 1) * each / at[k].bps);
		/* A shaper that was idle begins at the time of the frame, not before. */
		idle = f->now + 1;
		f->now = idle;
		wire_poll(f->w, f->now);
		for (unsigned int i = 0; i < 4; i++)
			send_psn(f, 1, i);
		finish(f);
		for (unsigned int i = 0; i < 4; i++)
			assert_int_equal(f->at_b->e[1000 + i].time,
					 idle + (i + 1) * each / at[k].bps);
		close_wire(f);
	}
	/* A part of a nanosecond at one bandwidth is not taken for one at another. */
	f = open_wire(1, "bandwidth=100Gbit");
	send_psn(f, 1, 0);
	assert_int_equal(wire_fault(f->w, "bandwidth=1kbit", err, sizeof(err)), 0);
	send_psn(f, 1, 1);
	finish(f);
	assert_int_equal(f->at_b->e[1].time, each / at[2].bps + each / 1000);
	close_wire(f);
}

/* A station waits when the shaper has 64 KiB to send, until it has sent half of them. */
static void test_full(void **state)
{
	static const uint8_t any[6] = { 2, 0, 0, 0, 0, 9 };
	struct fixture *f = open_wire(1, "bandwidth=1Gbit");
	const uint64_t most = 65536 * 8, bits = frame_bits();
	unsigned int n = 0;

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		for (; !wire_port_full(f->a, any); n++)
			send_psn(f, 1, n);
		assert_false(wire_port_full(f->b, any));
		assert_in_range((n - f->at_b->n) * bits, most, most + bits);
		while (wire_port_full(f->a, any)) {
			f->now = wire_deadline(f->w);
			wire_poll(f->w, f->now);
		}
		assert_in_range((n - f->at_b->n) * bits, most / 2 - 2 * bits, most / 2 + bits);
		drain(f);
	}
	/* All of this time the shaper was busy. */
	finish(f);
	assert_int_equal(f->at_b->n, n);
	assert_int_equal(f->now, n * bits);
	assert_int_equal(stats(f)->drop_hold, 0);
	/* Who does not wait loses what there is no room for. That takes no time of the shaper. */
	for (unsigned int i = 0; !stats(f)->drop_hold; i++)
		send_psn(f, 1, i);
	for (unsigned int i = 0; i < 1000; i++)
		send_psn(f, 1, i);
	f->at_b->n = 0;
	finish(f);
	assert_int_equal(f->at_b->n, 16384);
	assert_false(wire_port_full(f->a, any));
	assert_int_equal(f->now, (n + f->at_b->n) * bits);
	close_wire(f);
}

static void count_room(void *priv)
{
	((struct fixture *)priv)->rooms++;
}

/*
 * Without the faults nothing waits for the bandwidth any more, and nobody for room. Frames of the
 * port that are held back or delayed still are, and so are those of others.
 */
static void test_ended(void **state)
{
	struct fixture *f = open_wire(1, "bandwidth=1kbit,port=a;rule=delay/9ms:psn=1,port=a;"
				      "rule=delay/7ms:port=b;rule=reorder/1ms:psn=3,port=a");
	static const uint8_t any[6] = { 2, 0, 0, 0, 0, 9 };
	unsigned int n = 0;

	(void)state;
	wire_port_on_room(f->a, count_room);
	f->now = 1000;
	wire_poll(f->w, f->now);
	send_what(f->b, &(struct what){ .opcode = IB_OPCODE(RC, ACK), .qpn = 1 });
	while (!wire_port_full(f->a, any))
		send_psn(f, 1, n++);
	drain(f);
	assert_int_equal(f->at_b->n + f->rooms, 0);
	wire_fault_clear(f->w);
	assert_false(wire_port_full(f->a, any));
	assert_true(wire_deadline(f->w) <= f->now);
	drain(f);
	assert_int_equal(f->rooms, 1);
	/* The second frame is delayed, the next ones stay behind it, the fourth is held back. */
	assert_int_equal(f->at_b->n, 1);
	assert_int_equal(wire_deadline(f->w), 1001000);
	finish(f);
	assert_int_equal(f->at_b->n, n);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(f->at_b->e[i].psn, i < 3 ? i : i < n - 1 ? i + 1 : 3);
		assert_int_equal(f->at_b->e[i].time, i ? 9001000 : 1000);
	}
	assert_int_equal(f->at_a->e[0].time, 7001000);
	close_wire(f);
}

/* Faults are ended, and there is a higher bandwidth at once: it counts from now on. */
static void test_faster(void **state)
{
	struct fixture *f = open_wire(1, "bandwidth=1kbit;rule=reorder/1ms:psn=2");
	const uint64_t each = frame_bits();
	char err[120];

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		send_psn(f, 1, i);
	drain(f);
	wire_fault_clear(f->w);
	assert_int_equal(wire_fault(f->w, "bandwidth=1Gbit", err, sizeof(err)), 0);
	send_psn(f, 1, 100);
	send_psn(f, 1, 101);
	finish(f);
	assert_int_equal(f->at_b->n, 102);
	for (unsigned int i = 0; i < 102; i++) {
		assert_int_equal(f->at_b->e[i].psn, i < 2 ? i : i < 101 ? i + 1 : 2);
		assert_int_equal(f->at_b->e[i].time,
				 i < 99 ? 0 : i < 101 ? (i - 98) * each : 1000000);
	}
	close_wire(f);
	/* Nothing is left of those before, not even if the bandwidth is the same. */
	f = open_wire(1, "bandwidth=3Mbit");
	send_psn(f, 1, 0);
	send_psn(f, 1, 1);
	wire_fault_clear(f->w);
	assert_int_equal(wire_fault(f->w, "bandwidth=3Mbit", err, sizeof(err)), 0);
	send_psn(f, 1, 2);
	finish(f);
	assert_int_equal(f->at_b->e[2].time, each * 1000 / 3);
	close_wire(f);
}

/* After the faults a frame passes those that are held back for reordering. */
static void test_held_back(void **state)
{
	struct fixture *f = open_wire(1, "rule=reorder/1ms:psn=0");

	(void)state;
	send_psn(f, 1, 0);
	wire_fault_clear(f->w);
	send_psn(f, 1, 1);
	drain(f);
	assert_int_equal(f->at_b->n, 1);
	assert_int_equal(f->at_b->e[0].psn, 1);
	finish(f);
	assert_int_equal(f->at_b->n, 2);
	close_wire(f);
}

/* @n frames of @len bytes come from a link. */
static void link_sends(struct fixture *f, struct peer *p, unsigned int n, size_t len)
{
	uint8_t frame[10000] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 7, 8, 6 };

	for (unsigned int i = 0; i < n; i++) {
		peer_send(p, frame, len);
		if (i % 8 == 7 || i == n - 1)
			wire_fd_ready(f->w, p->wire_fd);
	}
}

static void open_link(struct fixture *f, struct peer *p)
{
	peer_open(f->w, p);
	p->fd = peer_bind(p->remote);
}

/*
 * A link of which too much waits for its shaper loses what comes then, as at a port of a switch:
 * 1024 frames are kept, or 2 MiB. What is lost takes no time of the shaper.
 */
static void test_link(void **state)
{
	static const struct {
		size_t len;
		unsigned int kept;
	} at[] = { { 60, 1024 }, { 1500, 1024 }, { 9000, 128 } };
	struct fixture *f = open_wire(1, "bandwidth=1Mbit,port=dgram0");
	uint64_t lost = 0;
	struct peer p;

	(void)state;
	open_link(f, &p);
	for (unsigned int k = 0; k < 6; k++) {
		uint64_t each = (at[k % 3].len + 24) * 8 * 1000, begun = f->now;

		f->at_b->other = 0;
		link_sends(f, &p, 1500, at[k % 3].len);
		lost += 1500 - at[k % 3].kept;
		assert_int_equal(dgram_stat(f->w, "drop_hold"), lost);
		finish(f);
		assert_int_equal(f->at_b->other, at[k % 3].kept);
		assert_int_equal(f->now - begun, at[k % 3].kept * each);
	}
	/* A frame that has left makes room for one. */
	link_sends(f, &p, 1024, 60);
	f->now = wire_deadline(f->w);
	drain(f);
	link_sends(f, &p, 2, 60);
	assert_int_equal(dgram_stat(f->w, "drop_hold"), lost + 1);
	/* When the bandwidth is removed there is room for all, while those before them leave. */
	wire_fault_clear(f->w);
	link_sends(f, &p, 100, 60);
	assert_int_equal(dgram_stat(f->w, "drop_hold"), lost + 1);
	peer_close(&p);
	close_wire(f);
}

/* All that links may have under faults is a quarter of the room, so that there is some for NICs. */
static void test_links(void **state)
{
	static const struct {
		size_t len;
		unsigned int kept;
	} at[] = { { 60, 4096 }, { 9000, 2048 } };
	struct fixture *f = open_wire(1, "delay=1s,all");
	static const uint8_t any[6] = { 2, 0, 0, 0, 0, 9 };
	struct peer p[2];
	uint64_t lost = 0;

	(void)state;
	open_link(f, &p[0]);
	open_link(f, &p[1]);
	for (unsigned int k = 0; k < 4; k++) {
		unsigned int n = 0;

		f->at_b->other = f->at_b->n = 0;
		for (unsigned int i = 0; i < 17000; i += 1000)
			link_sends(f, &p[i / 1000 % 2], 1000, at[k % 2].len);
		lost += 17000 - at[k % 2].kept;
		assert_int_equal(dgram_stat(f->w, "drop_hold") +
				 port_stat(f->w, "dgram1", "drop_hold"), lost);
		/* A station loses nothing, nor what it had begun when it was to wait. */
		while (!wire_port_full(f->a, any))
			send_psn(f, 1, n++);
		for (unsigned int i = 0; i < 1024; i++)
			send_psn(f, 1, n++);
		assert_int_equal(stats(f)->drop_hold, 0);
		finish(f);
		assert_int_equal(f->at_b->other, at[k % 2].kept);
		assert_int_equal(f->at_b->n, n);
	}
	peer_close(&p[0]);
	peer_close(&p[1]);
	close_wire(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_turn),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_faster),
		cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
