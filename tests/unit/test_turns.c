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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
