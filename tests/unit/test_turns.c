// SPDX-License-Identifier: GPL-2.0
/* Queue pairs that wait for room in the wire take turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "narrow.h"
#include "rc.h"

#define QPS	5
#define ROUNDS	60
/* Frames that the wire takes until it is full. */
#define ROOM	2

/* Queue pairs, the wire, and the frames that it took of each. */
struct rig {
	struct rc rc;
	struct mini_qp qp[2][QPS];
	struct narrow wire;
	unsigned int sent[QPS];
};

static void took(void *priv, const struct skua_pkt *pkt, size_t len)
{
	struct rig *r = priv;

	(void)len;
	for (unsigned int i = 0; i < QPS; i++)
		r->sent[i] += pkt->dqpn == r->qp[1][i].qpn;
}

/*
 * Each has far more to send than the wire takes in a round, and none may send in two rounds
 * before all others did in one.
 */
static void test_turns(void **state)
{
	static struct rig r;
	struct rc *rc = &r.rc;
	struct rc_opt opt = { .mtu_code = 3, .timeout = 20 };
	struct fake *f = &rc->s[0].f;

	(void)state;
	rc_open(rc, &opt);
	for (unsigned int i = 0; i < QPS; i++) {
		for (int k = 0; k < 2; k++)
			rc_qp(rc, k, &r.qp[k][i], &opt);
		for (int k = 0; k < 2; k++) {
			struct skua_qp_attr a = rc_attr(rc, k, &opt, r.qp[1 - k][i].qpn);

			mini_rc_to_rts(&rc->s[k].m, &r.qp[k][i], &a);
		}
	}
	f->net = &narrow_ops;
	r.wire = (struct narrow){ .took = took, .priv = &r };
	f->net_priv = &r.wire;
	for (unsigned int i = 0; i < QPS; i++) {
		rc_post_quiet(rc, 0, &r.qp[0][i], &(struct rc_wr){ .op = SKUA_WQE_WRITE,
								    .len = 1 << 20 });
		mini_ring(&rc->s[0].m, &r.qp[0][i]);
	}
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		r.wire.room = ROOM;
		skua_dev_room(f->dev);
		fake_run(f);
		for (unsigned int i = 0; i < QPS; i++)
			assert_in_range(r.sent[i], round / QPS * ROOM, (round / QPS + 1) * ROOM);
	}
	rc_close(rc);
}

/* --- very many of them --- */

/* QPs that there are only in the lists, from an index on that no other has. */
#define CROWD		40000
#define CROWD_FIRST	5000
/* Most of them that one turn may look at, in each of two ways. */
#define LOOKS		4096

/**
 * struct crowd - they all wait for stations that stay full
 * @narrow: the wire; it has room for frames to other stations
 * @asked: how often the device asked for room for a frame of theirs
 * @last: QP for which it asked last
 */
struct crowd {
	struct narrow narrow;
	unsigned long asked;
	uint32_t last;
};

/* Each has a station of its own. They are asked for in turn, always. */
static bool crowd_full(void *priv, const uint8_t dmac[6])
{
	struct crowd *c = priv;
	uint32_t i;

	if (dmac[0] != 6)
		return narrow_full(&c->narrow, dmac);
	memcpy(&i, dmac + 2, sizeof(i));
	assert_int_equal(i, c->asked ? (c->last + 1) % CROWD : 0);
	c->last = i;
	c->asked++;
	return true;
}

static void crowd_send(void *priv, const void *frame, size_t len)
{
	narrow_send(&((struct crowd *)priv)->narrow, frame, len);
}

static void crowd_send_pending(void *priv, void *frame, size_t len)
{
	narrow_send_pending(&((struct crowd *)priv)->narrow, frame, len);
}

static const struct skua_wire_ops crowd_ops = {
	.send = crowd_send,
	.send_pending = crowd_send_pending,
	.frame = narrow_frame,
	.full = crowd_full,
};

static void crowd_park(struct skua_dev *dev)
{
	for (uint32_t i = 0; i < CROWD; i++) {
		uint8_t dmac[6] = { 6 };

		memcpy(dmac + 2, &i, sizeof(i));
		sched_park(dev, CROWD_FIRST + i, dmac);
	}
}

static unsigned int crowd_ready(const struct skua_dev *dev)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < CROWD; i++)
		n += sched_ready(dev, CROWD_FIRST + i);
	return n;
}

/* One turn of the device, which looks at a limited number of them. */
static bool crowd_turn(struct fake *f, const struct crowd *c)
{
	unsigned long asked = c->asked;
	unsigned int ready = crowd_ready(f->dev);
	bool more = skua_dev_run(f->dev);

	assert_true(c->asked - asked <= LOOKS);
	assert_true(crowd_ready(f->dev) <= ready + LOOKS);
	return more;
}

/* When there may be room a turn looks at a limited number of QPs, and at each of them once. */
static void test_crowd(void **state)
{
	struct crowd c = { 0 };
	unsigned long asked;
	struct fake f;
	struct mini m;

	(void)state;
	fake_init(&f, NULL);
	mini_up(&m, &f);
	f.net = &crowd_ops;
	f.net_priv = &c;
	crowd_park(f.dev);
	assert_false(skua_dev_run(f.dev));
	assert_int_equal(c.asked, 0);
	skua_dev_room(f.dev);
	assert_true(crowd_ready(f.dev) <= LOOKS);
	while (crowd_turn(&f, &c))
		;
	assert_int_equal(c.asked, CROWD);
	assert_int_equal(crowd_ready(f.dev), 0);
	/* While it looks there is more room, early and late: it looks at all of them after that. */
	for (unsigned int turns = 2; turns < 20; turns += 12) {
		skua_dev_room(f.dev);
		for (unsigned int i = 0; i < turns; i++)
			assert_true(crowd_turn(&f, &c));
		asked = c.asked;
		skua_dev_room(f.dev);
		skua_dev_room(f.dev);
		while (crowd_turn(&f, &c))
			;
		assert_in_range(c.asked, asked + CROWD, asked + 2 * CROWD);
	}
	/* A reset ends it. */
	skua_dev_room(f.dev);
	crowd_turn(&f, &c);
	fake_wr32(&f, SKUA_REG_CTRL, SKUA_CTRL_RESET);
	mini_up(&m, &f);
	c.asked = 0;
	assert_false(skua_dev_run(f.dev));
	assert_int_equal(c.asked, 0);
	fake_exit(&f);
}

static void crowd_took(void *priv, const struct skua_pkt *pkt, size_t len)
{
	(void)pkt;
	(void)len;
	++*(unsigned int *)priv;
}

/*
 * Room comes again and again while the device still looks: a QP that can send has its turns all
 * the same.
 */
static void test_crowd_fair(void **state)
{
	static struct rc rc;
	const struct rc_opt opt = { .mtu_code = 3, .timeout = 20 };
	/* Turns in which the device looks at all of them, in both ways. */
	const unsigned int pass = 2 * CROWD / LOOKS + 4;
	unsigned int sent = 0, before;
	struct crowd c = { .narrow = { .took = crowd_took, .priv = &sent } };
	struct fake *f = &rc.s[0].f;

	(void)state;
	rc_open(&rc, &opt);
	f->net = &crowd_ops;
	f->net_priv = &c;
	crowd_park(f->dev);
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	for (unsigned int i = 0; i < 3; i++) {
		before = sent;
		for (unsigned int k = 0; k < pass; k++) {
			c.narrow.room = 1;
			skua_dev_room(f->dev);
			skua_dev_run(f->dev);
		}
		assert_true(sent > before);
	}
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_crowd_fair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
