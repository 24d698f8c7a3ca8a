// SPDX-License-Identifier: GPL-2.0
/* Queue pairs that wait for room in the wire take turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rc.h"

#define QPS	5
#define ROUNDS	60
/* Frames that the wire takes until it is full. */
#define ROOM	2

/* A wire that takes a few frames at a time, and counts them by their queue pair. */
struct narrow {
	struct rc rc;
	struct mini_qp qp[2][QPS];
	unsigned int room;
	unsigned int sent[QPS];
};

static void take(struct narrow *n, const void *frame, size_t len)
{
	struct skua_pkt pkt;

	assert_int_equal(skua_pkt_parse(frame, len, &pkt), SKUA_PKT_OK);
	for (unsigned int i = 0; i < QPS; i++)
		n->sent[i] += pkt.dqpn == n->qp[1][i].qpn;
	n->room -= n->room > 0;
}

static void narrow_send(void *priv, const void *frame, size_t len)
{
	take(priv, frame, len);
}

static void narrow_send_pending(void *priv, void *frame, size_t len)
{
	skua_pkt_icrc_fill(frame, len);
	take(priv, frame, len);
}

static void *narrow_frame(void *priv, size_t size)
{
	(void)priv;
	(void)size;
	return NULL;
}

static bool narrow_full(void *priv, const uint8_t dmac[6])
{
	(void)dmac;
	return !((struct narrow *)priv)->room;
}

static const struct skua_wire_ops narrow_ops = {
	.send = narrow_send,
	.send_pending = narrow_send_pending,
	.frame = narrow_frame,
	.full = narrow_full,
};

/*
 * Each has far more to send than the wire takes in a round, and none may send in two rounds
 * before all others did in one.
 */
static void test_turns(void **state)
{
	static struct narrow n;
	struct rc *rc = &n.rc;
	struct rc_opt opt = { .mtu_code = 3, .timeout = 20 };
	struct fake *f = &rc->s[0].f;

	(void)state;
	rc_open(rc, &opt);
	for (unsigned int i = 0; i < QPS; i++) {
		for (int k = 0; k < 2; k++)
			rc_qp(rc, k, &n.qp[k][i], &opt);
		for (int k = 0; k < 2; k++) {
			struct skua_qp_attr a = rc_attr(rc, k, &opt, n.qp[1 - k][i].qpn);

			mini_rc_to_rts(&rc->s[k].m, &n.qp[k][i], &a);
		}
	}
	f->net = &narrow_ops;
	f->net_priv = &n;
	for (unsigned int i = 0; i < QPS; i++) {
		rc_post_quiet(rc, 0, &n.qp[0][i], &(struct rc_wr){ .op = SKUA_WQE_WRITE,
								    .len = 1 << 20 });
		mini_ring(&rc->s[0].m, &n.qp[0][i]);
	}
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		n.room = ROOM;
		skua_dev_room(f->dev);
		fake_run(f);
		for (unsigned int i = 0; i < QPS; i++)
			assert_in_range(n.sent[i], round / QPS * ROOM, (round / QPS + 1) * ROOM);
	}
	rc_close(rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
