// SPDX-License-Identifier: GPL-2.0
/* Queue pairs of several traffic classes before a wire that takes less than they have to send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "narrow.h"
#include "rc.h"

#define QPS	4
/* Frames that the wire takes until it is full. */
#define ROOM	2
#define ROUNDS	4000

/**
 * struct rig - queue pairs, and what the wire took of them
 * @wire: takes a few frames at a time
 * @sent: bytes by queue pair
 * @frames: frames by queue pair
 * @posted: work requests of one frame by queue pair
 * @last: queue pair of the last frame
 */
static struct rig {
	struct rc rc;
	struct mini_qp qp[2][QPS];
	struct narrow wire;
	uint64_t sent[QPS];
	unsigned int frames[QPS], posted[QPS];
	unsigned int last;
} n;

static void took(void *priv, const struct skua_pkt *pkt, size_t len)
{
	(void)priv;
	for (unsigned int i = 0; i < QPS; i++) {
		if (pkt->dqpn != n.qp[1][i].qpn)
			continue;
		n.sent[i] += len;
		n.frames[i]++;
		n.last = i;
	}
}

static void narrow_down(void)
{
	n.wire.took = took;
	n.rc.s[0].f.net = &narrow_ops;
	n.rc.s[0].f.net_priv = &n.wire;
}

/* What a queue pair is like: of UC, which waits for nobody, or of datagrams. */
struct like {
	uint32_t prio, mtu_code;
	bool datagrams;
};

static void open_some(const struct like *like, unsigned int num)
{
	struct rc_opt opt = { .type = SKUA_QP_UC, .caps = SKUA_CAP_UC | SKUA_CAP_UD, .log_sq = 10 };
	struct rc *rc = &n.rc;

	memset(&n, 0, sizeof(n));
	rc_open(rc, &opt);
	for (unsigned int i = 0; i < num; i++) {
		opt.type = like[i].datagrams ? SKUA_QP_UD : SKUA_QP_UC;
		for (int k = 0; k < 2; k++)
			rc_qp(rc, k, &n.qp[k][i], &opt);
		opt.mtu_code = like[i].mtu_code;
		for (int k = 0; k < 2; k++) {
			uint32_t dest = like[i].datagrams ? 0 : n.qp[1 - k][i].qpn;
			struct skua_qp_attr a = rc_attr(rc, k, &opt, dest);

			a.av.flow |= le32_encode_bits(like[i].prio, SKUA_AV_PCP);
			mini_rc_to_rts(&rc->s[k].m, &n.qp[k][i], &a);
		}
	}
	narrow_down();
}

static void open_qps(const struct like like[QPS])
{
	open_some(like, QPS);
}

static void post(unsigned int i, uint32_t len)
{
	rc_post_quiet(&n.rc, 0, &n.qp[0][i], &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = len });
	mini_ring(&n.rc.s[0].m, &n.qp[0][i]);
}

static void post_nops(unsigned int i, unsigned int num)
{
	for (unsigned int k = 0; k < num; k++)
		rc_post_quiet(&n.rc, 0, &n.qp[0][i],
			      &(struct rc_wr){ .op = SKUA_WQE_NOP, .quiet = true });
	mini_ring(&n.rc.s[0].m, &n.qp[0][i]);
}

static void set_classes(const uint8_t prio_tc[SKUA_PRIO_NUM], const uint8_t share[SKUA_TC_NUM])
{
	struct skua_cmd_modify_device_in in = { .mask = cpu_to_le32(SKUA_DEV_M_ETS) };

	memcpy(in.prio_tc, prio_tc, sizeof(in.prio_tc));
	memcpy(in.tc_share, share, sizeof(in.tc_share));
	mini_ok(&n.rc.s[0].m, SKUA_CMD_MODIFY_DEVICE, &in, sizeof(in));
}

/* The wire has room for so many frames: who has waited for it gets ready. */
static void give_room(unsigned int room)
{
	n.wire.room = room;
	skua_dev_room(n.rc.s[0].f.dev);
}

/* The wire takes @room frames at once, @rounds times. */
static void drive(unsigned int rounds, unsigned int room)
{
	for (unsigned int round = 0; round < rounds; round++) {
		give_room(room);
		fake_run(&n.rc.s[0].f);
	}
}

/* Likewise; @sent: what is sent meanwhile. */
static void drive_count(unsigned int rounds, unsigned int room, uint64_t sent[QPS])
{
	uint64_t before[QPS];

	memcpy(before, n.sent, sizeof(before));
	drive(rounds, room);
	for (unsigned int i = 0; i < QPS; i++)
		sent[i] = n.sent[i] - before[i];
}

/* More than the wire takes in a test. */
static void fill(unsigned int i)
{
	for (unsigned int k = 0; k < 30; k++)
		rc_post_quiet(&n.rc, 0, &n.qp[0][i],
			      &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20,
					       .quiet = true });
	mini_ring(&n.rc.s[0].m, &n.qp[0][i]);
}

/* WRITEs of 8 bytes, so that as many as fit into the queue are to be sent. */
static void fill_small(unsigned int i)
{
	for (; n.posted[i] - n.frames[i] < 500; n.posted[i]++)
		rc_post_quiet(&n.rc, 0, &n.qp[0][i],
			      &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .quiet = true });
	mini_ring(&n.rc.s[0].m, &n.qp[0][i]);
}

static uint64_t total(const uint64_t sent[QPS])
{
	return sent[0] + sent[1] + sent[2] + sent[3];
}

/* Of all bytes the queue pair sent @percent, up to a few turns. */
static void has_percent(const uint64_t sent[QPS], unsigned int i, unsigned int percent)
{
	uint64_t want = total(sent) * percent / 100;

	assert_in_range(sent[i], want - 40000, want + 40000);
}

static uint64_t by_prio(unsigned int prio)
{
	return rc_cnt(&n.rc, 0, (enum skua_counter)(SKUA_CNT_TX_PRIO0_BYTES + prio));
}

/*
 * Bytes are shared as the classes say, and in a class equally, with another MTU too and however
 * few frames the wire takes at a time. The counters of priorities agree.
 */
static void test_shares(void **state)
{
	static const struct like like[QPS] = { { 0, 3 }, { 1, 3 }, { 1, 3 }, { 6, 1 } };
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { [1] = 5, [6] = 2 };
	static const uint8_t share[SKUA_TC_NUM] = { [0] = 10, [5] = 60, [2] = 30 };

	(void)state;
	for (unsigned int room = ROOM; room <= 256; room *= 16) {
		open_qps(like);
		set_classes(prio_tc, share);
		for (unsigned int i = 0; i < QPS; i++)
			fill(i);
		drive(ROUNDS * ROOM / room, room);
		assert_in_range(total(n.sent), 4 << 20, 16 << 20);
		has_percent(n.sent, 0, 10);
		has_percent(n.sent, 1, 30);
		has_percent(n.sent, 2, 30);
		has_percent(n.sent, 3, 30);
		assert_int_equal(by_prio(0), n.sent[0]);
		assert_int_equal(by_prio(1), n.sent[1] + n.sent[2]);
		assert_int_equal(by_prio(6), n.sent[3]);
		rc_close(&n.rc);
	}
}

/* Bytes are shared, not frames or turns: here in frames of 82 and of 1098 bytes. */
static void test_small(void **state)
{
	static const struct like like[QPS] = { { 0, 3 }, { 1, 3 }, { 1, 3 }, { 1, 3 } };
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { [1] = 1 };
	static const uint8_t share[SKUA_TC_NUM] = { 50, 50 };

	(void)state;
	for (unsigned int room = 1; room <= 16; room *= 2) {
		open_qps(like);
		set_classes(prio_tc, share);
		fill(0);
		while (total(n.sent) < 2 << 20) {
			for (unsigned int i = 1; i < QPS; i++)
				fill_small(i);
			drive(400 / room, room);
		}
		has_percent(n.sent, 0, 50);
		for (unsigned int i = 1; i < QPS; i++)
			assert_in_range(n.sent[i], total(n.sent) / 7, total(n.sent) / 5);
		rc_close(&n.rc);
	}
}

/* Without classes priorities have no effect. After a reset there are none. */
static void test_none(void **state)
{
	static const struct like like[QPS] = { { 0, 3 }, { 1, 3 }, { 7, 3 }, { 3, 3 } };
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { [1] = 1, [7] = 7 };
	static const uint8_t strict[SKUA_TC_NUM];

	(void)state;
	/* The next one is the same device, reset. */
	fake_pool();
	open_qps(like);
	set_classes(prio_tc, strict);
	rc_close(&n.rc);
	open_qps(like);
	for (unsigned int i = 0; i < QPS; i++)
		fill(i);
	drive(ROUNDS, ROOM);
	for (unsigned int i = 0; i < QPS; i++)
		has_percent(n.sent, i, 25);
	rc_close(&n.rc);
}

/* Strict priority: the highest class that has work, then the next; those with shares last. */
static void test_strict(void **state)
{
	static const struct like like[QPS] = { { 0, 3 }, { 2, 3 }, { 5, 3 }, { 4, 3 } };
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { [2] = 1, [4] = 3, [5] = 6 };
	static const uint8_t share[SKUA_TC_NUM] = { [0] = 25, [1] = 75 };
	static const unsigned int order[] = { 2, 3 };

	(void)state;
	open_qps(like);
	set_classes(prio_tc, share);
	fill(0);
	fill(1);
	for (unsigned int k = 0; k < 2; k++)
		post(order[k], 100 << 10);
	for (unsigned int k = 0; k < 2; k++) {
		/* 100 frames each. */
		drive(100 / ROOM, ROOM);
		assert_int_equal(n.last, order[k]);
		assert_in_range(n.sent[order[k]], 100 << 10, 120 << 10);
		assert_int_equal(total(n.sent) / (k + 1), n.sent[order[0]]);
	}
	drive(ROUNDS / 4, ROOM);
	n.sent[2] = 0;
	n.sent[3] = 0;
	has_percent(n.sent, 0, 25);
	has_percent(n.sent, 1, 75);
	/* It comes again, and is first. */
	post(2, 10 << 10);
	drive(10 / ROOM, ROOM);
	assert_in_range(n.sent[2], 10 << 10, 12 << 10);
	rc_close(&n.rc);
}

/* A class that had nothing to send has not saved up its share. */
static void test_idle(void **state)
{
	static const struct like like[QPS] = { { 0, 3 }, { 1, 3 }, { 2, 3 }, { 3, 3 } };
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { 0, 1, 2, 3 };
	static const uint8_t share[SKUA_TC_NUM] = { 50, 50 };
	uint64_t sent[QPS];

	(void)state;
	open_qps(like);
	set_classes(prio_tc, share);
	fill(0);
	drive(ROUNDS / 2, ROOM);
	fill(1);
	drive_count(ROUNDS / 4, ROOM, sent);
	has_percent(sent, 0, 50);
	has_percent(sent, 1, 50);
	rc_close(&n.rc);
}

/* The first one sends a frame, and the others are ready: the time of the turn is over. */
static void short_turn(void)
{
	struct fake *f = &n.rc.s[0].f;

	f->dev->cfg.turn_ns = 1;
	f->step = 1;
	give_room(1);
	assert_true(skua_dev_run(f->dev));
	f->dev->cfg.turn_ns = 0;
	f->step = 0;
}

/* Classes are changed while queue pairs wait, whether for a turn or for the wire. */
static void test_change(void **state)
{
	static const struct like like[QPS] = { { 0, 3 }, { 1, 3 }, { 2, 3 }, { 3, 3 } };
	static const uint8_t one[SKUA_PRIO_NUM], each[SKUA_PRIO_NUM] = { 0, 1, 2, 3 };
	static const uint8_t strict[SKUA_TC_NUM], share[SKUA_TC_NUM] = { 40, 30, 20, 10 };

	(void)state;
	for (unsigned int ready = 0; ready < 2; ready++) {
		uint64_t sent[QPS];

		open_qps(like);
		for (unsigned int i = 0; i < QPS; i++)
			fill(i);
		drive(ROUNDS / 4, ROOM);
		if (ready)
			short_turn();
		for (unsigned int i = 1; i < QPS; i++)
			assert_int_equal(sched_ready(n.rc.s[0].f.dev, qp_index(n.qp[0][i].qpn)),
					 ready);
		/* Without a command, in which the device would give them turns first. */
		sched_set_classes(n.rc.s[0].f.dev, each, strict);
		n.wire.room = 1;
		if (!ready)
			skua_dev_room(n.rc.s[0].f.dev);
		skua_dev_run(n.rc.s[0].f.dev);
		assert_int_equal(n.last, 3);
		set_classes(each, share);
		drive_count(ROUNDS, ROOM, sent);
		for (unsigned int i = 0; i < QPS; i++)
			has_percent(sent, i, share[i]);
		set_classes(one, strict);
		drive_count(ROUNDS, ROOM, sent);
		for (unsigned int i = 0; i < QPS; i++)
			has_percent(sent, i, 25);
		rc_close(&n.rc);
	}
}

/* Turns in which a queue pair sends nothing are not for nothing: others have theirs meanwhile. */
static void test_empty_turns(void **state)
{
	static const struct like like[QPS] = { { 0, 3 }, { 1, 3 }, { 1, 3 }, { 1, 3 } };
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { [1] = 1 };
	static const uint8_t share[SKUA_TC_NUM] = { 50, 50 };

	(void)state;
	open_qps(like);
	set_classes(prio_tc, share);
	fill(0);
	post_nops(1, 1000);
	n.wire.room = 1000;
	/* Eight turns each. */
	for (unsigned int k = 0; k < 15; k++)
		skua_dev_run(n.rc.s[0].f.dev);
	/* A turn of 16 KiB counts as much as 64 of the others. */
	assert_in_range(n.sent[0], MODEL_TURN_BYTES * 3 / 2, MODEL_TURN_BYTES * 3);
	rc_close(&n.rc);
}

static void post_datagram(unsigned int i, uint32_t prio, bool quiet)
{
	struct skua_wqe_av av = rc_av(&n.rc, 0);

	av.dest_qpn = cpu_to_le32(n.qp[1][i].qpn);
	av.av.flow |= le32_encode_bits(prio, SKUA_AV_PCP);
	rc_post_quiet(&n.rc, 0, &n.qp[0][i],
		      &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 1000, .av = &av,
				       .quiet = quiet });
}

/* Sends datagrams with these priorities, of 1000 bytes each. */
static void post_datagrams(unsigned int i, const char *prios)
{
	for (; *prios; prios++)
		post_datagram(i, (uint32_t)(*prios - '0'), false);
	mini_ring(&n.rc.s[0].m, &n.qp[0][i]);
}

/* Two datagram queues, and three strict classes. */
static void open_datagrams(void)
{
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { 0, 1, 2, 0 };
	static const uint8_t strict[SKUA_TC_NUM];
	const struct like like = { .datagrams = true }, both[] = { like, like };

	open_some(both, 2);
	set_classes(prio_tc, strict);
}

/*
 * A datagram queue is in the class of the datagram that is next: here one of low priority keeps
 * it until another queue is done, and one of high priority is before that.
 */
static void test_datagrams(void **state)
{
	const uint64_t one = 1000 + SKUA_PKT_OVERHEAD - 12;
	struct rc *rc = &n.rc;

	(void)state;
	open_datagrams();
	post_datagrams(0, "221022");
	post_datagrams(1, "1111");
	drive(2, 1);
	/* Both "2"; the second queue had begun with priority 0, as the first. */
	assert_int_equal(n.last, 0);
	assert_int_equal(total(n.sent), n.sent[0]);
	drive(5, 1);
	/* Then that of the first queue and those of the second, in turns; "0" waits. */
	assert_int_equal(n.sent[0] + n.sent[1], total(n.sent));
	assert_int_equal(n.sent[0] * 4, n.sent[1] * 3);
	drive(3, 1);
	assert_int_equal(n.last, 0);
	assert_int_equal(n.sent[0] * 4, n.sent[1] * 6);
	assert_int_equal(by_prio(0) * 4, by_prio(2));
	assert_int_equal(by_prio(1), by_prio(0) * 5);
	assert_in_range(by_prio(0), one - 64, one);
	/* Two priorities of one class, in one turn: each is counted. */
	post_datagrams(0, "30033");
	drive(1, 5);
	assert_int_equal(by_prio(0) / 3, by_prio(3) / 3);
	for (unsigned int k = 0; k < 15; k++)
		rc_expect(rc, 0, false, SKUA_CQE_OK);
	rc_close(rc);
}

/* The wire takes so many frames at once, as many times; these are the queues' of them. */
static void takes(unsigned int rounds, unsigned int room, unsigned int first, unsigned int second)
{
	memset(n.frames, 0, sizeof(n.frames));
	drive(rounds, room);
	assert_int_equal(n.frames[0], first);
	assert_int_equal(n.frames[1], second);
}

/* A datagram of a high class does not wait for others because of what its queue sent before. */
static void test_next_datagram(void **state)
{
	(void)state;
	open_datagrams();
	post_datagrams(1, "11111111111111111111111111111111");
	takes(4, 1, 0, 4);
	/* While the wire is full. */
	post_datagrams(0, "2");
	takes(1, 1, 1, 0);
	/* While others wait for a turn, after one of their class. */
	post_datagrams(0, "1");
	takes(2, 1, 1, 1);
	give_room(1);
	post_datagrams(0, "2");
	takes(1, 1, 1, 0);
	/* Behind the last one that a turn has time for. */
	post_datagrams(0, "111111112");
	takes(3, 8, 9, 15);
	/* One of a low class waits, whether the turn begins with it or not. */
	give_room(3);
	post_datagrams(0, "20");
	takes(1, 3, 1, 2);
	takes(1, 4, 0, 4);
	takes(1, 7, 1, 6);
	post_datagrams(1, "111");
	drive(1, 1);
	drive(1, 0);
	give_room(2);
	post_datagrams(0, "0");
	takes(1, 2, 0, 2);
	rc_close(&n.rc);
}

/* A datagram queue and one of UC of this priority, in classes of strict priority. */
static void open_mixed(uint32_t prio)
{
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { 0, 1 }, strict[SKUA_TC_NUM];
	const struct like like[] = { { .datagrams = true }, { .prio = prio } };

	open_some(like, 2);
	set_classes(prio_tc, strict);
	fill(1);
	give_room(10000);
}

/* The turns of a datagram queue are no more than those of others of its class. */
static void test_same_class(void **state)
{
	(void)state;
	open_mixed(0);
	for (unsigned int k = 0; k < 400; k++)
		post_datagram(0, 0, true);
	mini_ring(&n.rc.s[0].m, &n.qp[0][0]);
	for (unsigned int k = 0; k < 10; k++)
		skua_dev_run(n.rc.s[0].f.dev);
	/* 80 turns, of 8 datagrams or 16 KiB; a third of them looks what the next datagram is. */
	assert_in_range(n.frames[0], 25 * 8, 27 * 8);
	assert_in_range(n.frames[1], 25 * MODEL_TURN_BYTES / 4096, 27 * MODEL_TURN_BYTES / 4096);
	rc_close(&n.rc);
}

/* A datagram queue with work requests that send nothing is in the class of before. */
static void test_locals(void **state)
{
	(void)state;
	open_mixed(1);
	post_nops(0, 500);
	for (unsigned int k = 0; k < 4; k++)
		skua_dev_run(n.rc.s[0].f.dev);
	/* One turn of 32 found no datagram. */
	assert_int_equal(n.frames[1], 31 * MODEL_TURN_BYTES / 4096);
	rc_close(&n.rc);
	/* Until it had none for a while. */
	open_mixed(1);
	n.wire.room = 0;
	post_nops(0, 20);
	fake_run(&n.rc.s[0].f);
	give_room(1000);
	post_datagrams(0, "1");
	skua_dev_run(n.rc.s[0].f.dev);
	assert_int_equal(n.frames[0], 1);
	assert_true(n.wire.room > 0);
	rc_close(&n.rc);
}

/*
 * Three queue pairs of the highest class, with a lot to send, and one of the lowest, which gets
 * into error with @posted work requests.
 */
static void open_flush(unsigned int posted)
{
	static const struct like like[QPS] = { { 0, 3 }, { 3, 3 }, { 3, 3 }, { 3, 3 } };
	static const uint8_t prio_tc[SKUA_PRIO_NUM] = { [3] = 3 };
	static const uint8_t strict[SKUA_TC_NUM];
	struct qp qp;

	open_qps(like);
	set_classes(prio_tc, strict);
	for (unsigned int i = 1; i < QPS; i++)
		fill(i);
	give_room(1000);
	for (unsigned int k = 0; k < posted; k++)
		post(0, 8);
	/* Without a command, in which the device would give them turns first. */
	assert_int_equal(qp_get(n.rc.s[0].f.dev, n.qp[0][0].qpn, &qp), 0);
	qp_error(n.rc.s[0].f.dev, &qp, SKUA_QP_ERR, SKUA_QP_EV_COUNT);
	qp_put(n.rc.s[0].f.dev, &qp);
}

static unsigned int flushed(void)
{
	struct skua_cqe cqe;
	unsigned int num = 0;

	for (; mini_cq_next(&n.rc.s[0].m, &n.rc.s[0].scq, &cqe); num++)
		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_WR_FLUSH_ERR);
	return num;
}

/* Who is in error is flushed, however much others have to send that come first. */
static void test_flush(void **state)
{
	(void)state;
	open_flush(3);
	skua_dev_run(n.rc.s[0].f.dev);
	assert_int_equal(flushed(), 3);
	post(0, 8);
	skua_dev_run(n.rc.s[0].f.dev);
	assert_int_equal(flushed(), 1);
	assert_true(n.wire.room > 0);
	rc_close(&n.rc);
}

/* However much there is to flush, others send. */
static void test_flush_long(void **state)
{
	(void)state;
	open_flush(500);
	/* Eight turns, 16 work requests in one of them. */
	skua_dev_run(n.rc.s[0].f.dev);
	assert_int_equal(flushed(), 4 * 16);
	assert_in_range(total(n.sent), 4 * MODEL_TURN_BYTES - 2000, 4 * MODEL_TURN_BYTES);
	rc_close(&n.rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_strict),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_empty_turns),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_next_datagram),
		cmocka_unit_test(test_same_class),
		cmocka_unit_test(test_locals),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_flush_long),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
