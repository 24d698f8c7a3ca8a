// SPDX-License-Identifier: GPL-2.0
/*
 * Completions that one acknowledgment brings are written together: in order, whole before
 * they are visible, and not later than whatever tells of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc.h"

/* What software sees, which looks after each single write of the device. */
struct watch {
	struct rc *rc;
	unsigned int seen;
	uint32_t index;		/* of the WQE that completes next */
	bool in;
};

static void poll(struct watch *w)
{
	struct skua_cqe cqe;

	while (mini_cq_next(&w->rc->s[0].m, &w->rc->s[0].scq, &cqe)) {
		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
		assert_int_equal(le32_to_cpu(cqe.qpn), w->rc->s[0].qp.qpn);
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), w->index);
		assert_int_not_equal(cqe.timestamp, 0);
		w->index = (w->index + 1) & 0xffff;
		w->seen++;
	}
}

static bool on_write(void *priv, uint64_t iova, const void *buf, size_t len)
{
	struct watch *w = priv;

	memcpy(fake_ptr(&w->rc->s[0].f, iova), buf, len);
	poll(w);
	return true;
}

static void post(struct rc *rc, unsigned int num)
{
	for (unsigned int k = 0; k < num; k++)
		rc_post_quiet(rc, 0, &rc->s[0].qp,
			      &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
	rc_pump(rc);
}

static uint64_t writes(struct rc *rc)
{
	return rc->s[0].f.dev->tlp.fn.v[TLP_MWR_UP][TLP_CQE].count;
}

/* Lists of all lengths, over the end of rings of all sizes. */
static void test_order(void **state)
{
	(void)state;
	for (uint32_t log = 1; log <= 6; log++) {
		struct rc_opt opt = { .log_cq = log };
		struct watch w = { 0 };
		unsigned int all = 0;
		struct rc rc;

		rc_open(&rc, &opt);
		w.rc = &rc;
		rc.s[0].f.on_write = on_write;
		rc.s[0].f.on_priv = &w;
		for (unsigned int num = 1; num <= 8; num++) {
			for (unsigned int k = 0; k < 5; k++) {
				post(&rc, num);
				all += num;
				assert_int_equal(w.seen, all);
			}
		}
		rc.s[0].f.on_write = NULL;
		rc_close(&rc);
	}
}

/* As few memory writes as there can be: none crosses a block of 256 bytes. */
static void test_count(void **state)
{
	struct skua_cqe cqe;
	uint64_t before;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	post(&rc, 1);
	for (unsigned int pos = 1; pos < 200; pos += 8) {
		before = writes(&rc);
		post(&rc, 8);
		assert_int_equal(writes(&rc) - before, (pos + 8 + 3) / 4 - pos / 4);
	}
	while (mini_cq_next(&rc.s[0].m, &rc.s[0].scq, &cqe))
		;
	/* One event is to tell of them: each is written before that, and none waits. */
	mini_cq_arm(&rc.s[0].m, &rc.s[0].scq, false);
	before = writes(&rc);
	post(&rc, 8);
	assert_true(writes(&rc) - before <= 4);
	for (unsigned int k = 0; k < 8; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

struct told {
	struct watch w;
	struct mini_eq *eq;
	unsigned int told;
};

/* When an event is there, so is what it tells of. */
static bool on_event(void *priv, uint64_t iova, const void *buf, size_t len)
{
	struct told *t = priv;
	uint64_t size = sizeof(struct skua_eqe) << t->eq->log;

	memcpy(fake_ptr(&t->w.rc->s[0].f, iova), buf, len);
	if (iova >= t->eq->ring && iova - t->eq->ring < size) {
		poll(&t->w);
		assert_true(t->w.seen > 0);
		t->told++;
	}
	return true;
}

static void test_event(void **state)
{
	struct rc rc;

	(void)state;
	for (unsigned int num = 1; num <= 8; num++) {
		struct told t = { .w.rc = &rc };

		rc_open(&rc, NULL);
		t.eq = &rc.s[0].m.eq[MINI_EQ_COMP];
		mini_cq_arm(&rc.s[0].m, &rc.s[0].scq, false);
		rc.s[0].f.on_write = on_event;
		rc.s[0].f.on_priv = &t;
		post(&rc, num);
		assert_true(t.told > 0);
		poll(&t.w);
		assert_int_equal(t.w.seen, num);
		rc.s[0].f.on_write = NULL;
		rc_close(&rc);
	}
}

/* The ring cannot be written: the CQ is in error, and so is the QP. */
static void test_hole(void **state)
{
	struct rc rc;

	(void)state;
	for (unsigned int num = 1; num <= 8; num++) {
		rc_open(&rc, NULL);
		fake_hole(&rc.s[0].f, rc.s[0].scq.ring, 4096);
		post(&rc, num);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		rc_close(&rc);
	}
}

/* Nobody takes them: what there is room for is whole, and the CQ says that it was too much. */
static void test_overrun(void **state)
{
	struct rc_opt opt = { .log_cq = 2 };
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	post(&rc, 8);
	for (unsigned int k = 0; k < 4; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
