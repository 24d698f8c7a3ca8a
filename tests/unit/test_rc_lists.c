// SPDX-License-Identifier: GPL-2.0
/*
 * Scatter lists of messages under way are kept in a cache that all QPs share: what it
 * spares, whichever QPs have messages at the same time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "rc.h"

#define QPS	200
#define PKTS	64		/* of a message */
#define MTU	1024

struct lists {
	struct rc rc;
	struct mini_qp qp[2][QPS];
};

static struct lists *lists_open(void)
{
	const struct rc_opt opt = { .mtu_code = 3, .log_cq = 10, .log_sq = 3, .log_rq = 1 };
	struct lists *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	rc_open(&l->rc, &opt);
	for (unsigned int q = 0; q < QPS; q++) {
		for (int i = 0; i < 2; i++)
			rc_qp(&l->rc, i, &l->qp[i][q], &opt);
		for (int i = 0; i < 2; i++) {
			struct skua_qp_attr a = rc_attr(&l->rc, i, &opt, l->qp[1 - i][q].qpn);

			mini_rc_to_rts(&l->rc.s[i].m, &l->qp[i][q], &a);
		}
	}
	return l;
}

static void lists_close(struct lists *l)
{
	rc_close(&l->rc);
	free(l);
}

/* One message on each of the QPs, all at once; how often its receiver fetched a list. */
static uint64_t run(struct lists *l, const unsigned int *q, unsigned int n, bool read)
{
	/* A READ's list is in the ring of the one that asked. */
	int side = read ? 0 : 1;
	uint64_t before = l->rc.s[side].f.reads;
	unsigned int done = 0;
	struct skua_cqe cqe;

	for (unsigned int k = 0; k < n; k++) {
		uint64_t off = (uint64_t)q[k] * PKTS * MTU;
		struct skua_wqe_data d;

		skua_wqe_data_set(&d, RC_VA + off, l->rc.s[1].key, PKTS * MTU);
		if (!read)
			mini_recv(&l->rc.s[1].m, &l->qp[1][q[k]], &d, 1);
		rc_post_quiet(&l->rc, 0, &l->qp[0][q[k]], &(struct rc_wr){
			.op = read ? SKUA_WQE_READ : SKUA_WQE_SEND, .len = PKTS * MTU,
			.off = off, .roff = off });
		mini_ring(&l->rc.s[0].m, &l->qp[0][q[k]]);
	}
	rc_pump(&l->rc);
	for (int i = 0; i < 2; i++) {
		while (mini_cq_next(&l->rc.s[i].m, i ? &l->rc.s[1].rcq : &l->rc.s[0].scq, &cqe)) {
			assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
			done++;
		}
	}
	assert_int_equal(done, read ? n : 2 * n);
	return l->rc.s[side].f.reads - before;
}

/* However far apart their numbers are, two do not drive out each other's. */
static void test_pairs(void **state)
{
	struct lists *l = lists_open();

	(void)state;
	for (unsigned int read = 0; read < 2; read++) {
		unsigned int first = 0;
		uint64_t one = run(l, &first, 1, read);

		for (unsigned int apart = 1; apart < QPS; apart++) {
			const unsigned int pair[] = { 0, apart };
			uint64_t both = run(l, pair, 2, read);

			if (both > 2 * one + 2)
				fail_msg("%u apart: %llu fetches, one alone %llu", apart,
					 (unsigned long long)both, (unsigned long long)one);
		}
	}
	lists_close(l);
}

/* Many at once: a set may be too small for all of its QPs, but most have their place. */
static void test_many(void **state)
{
	struct lists *l = lists_open();
	unsigned int all[QPS];

	(void)state;
	for (unsigned int q = 0; q < QPS; q++)
		all[q] = q;
	for (unsigned int read = 0; read < 2; read++) {
		uint64_t one = run(l, all, 1, read);

		for (unsigned int n = 16; n <= 128; n *= 2)
			assert_true(run(l, all, n, read) <= n * (one + 1));
		assert_true(run(l, all, QPS, read) <= QPS * (one + 4));
	}
	lists_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
