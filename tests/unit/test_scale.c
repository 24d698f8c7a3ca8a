// SPDX-License-Identifier: GPL-2.0
/*
 * What a message costs on the link when very many connections are active: two devices and
 * the switch between them, as in the daemon. In each round every QP of both sides posts one
 * message before anything runs, so that all are under way together.
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

#include "icm.h"
#include "rc.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define FEW		16
#define MANY		10000
/* Rounds before what is counted, in which the caches fill. */
#define WARM		3

struct pairs {
	struct rc rc;
	struct mini_qp qp[2][MANY];
	unsigned int num;
};

static struct pairs pairs;

/*
 * @classic: as NICs were that keep whole contexts, in 2 MiB. @ext: SKUA_EXT_* of all QPs; the
 * smallest window, since its table is of no account here.
 */
static void pairs_open(struct pairs *p, unsigned int num, bool classic, uint32_t ext)
{
	const struct rc_opt opt = {
		.onchip = classic ? 2 << 20 : 0, .whole = classic,
		.log_sq = 3, .log_rq = 3, .log_stride = 1, .log_cq = 15, .timeout = 20,
		.qps = num + 16,
		.ext = { ext, ext }, .log_window = SKUA_EXT_LOG_WINDOW_MIN,
	};

	rc_open(&p->rc, &opt);
	p->num = num;
	for (unsigned int k = 0; k < num; k++) {
		for (int i = 0; i < 2; i++)
			rc_qp(&p->rc, i, &p->qp[i][k], &opt);
		for (int i = 0; i < 2; i++) {
			struct skua_qp_attr a = rc_attr(&p->rc, i, &opt, p->qp[1 - i][k].qpn);

			mini_rc_to_rts(&p->rc.s[i].m, &p->qp[i][k], &a);
		}
	}
	fake_switch(&p->rc.s[0].f, &p->rc.s[1].f);
	for (int i = 0; i < 2; i++)
		p->rc.s[i].f.raw = true;
}

static void take(struct pairs *p, int i, struct mini_cq *cq)
{
	struct skua_cqe cqe;

	for (unsigned int k = 0; k < p->num; k++) {
		assert_true(mini_cq_next(&p->rc.s[i].m, cq, &cqe));
		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
	}
	assert_false(mini_cq_next(&p->rc.s[i].m, cq, &cqe));
}

/* One message of each QP; of side 0's only, if not @both. */
static void one_round(struct pairs *p, enum skua_wqe_op op, bool both)
{
	struct rc *rc = &p->rc;
	const struct rc_wr wr = { .op = op, .len = 64, .roff = 1 << 20 };

	for (unsigned int k = 0; k < p->num; k++) {
		for (int i = 0; i <= both; i++) {
			struct skua_wqe_data d;

			skua_wqe_data_set(&d, RC_VA + 4096, rc->s[1 - i].key, 64);
			if (op == SKUA_WQE_SEND)
				mini_recv(&rc->s[1 - i].m, &p->qp[1 - i][k], &d, 1);
			rc_post_quiet(rc, i, &p->qp[i][k], &wr);
		}
	}
	for (unsigned int k = 0; k < p->num; k++) {
		for (int i = 0; i <= both; i++)
			mini_ring(&rc->s[i].m, &p->qp[i][k]);
	}
	rc_pump(rc);
	for (int i = 0; i <= both; i++) {
		take(p, i, &rc->s[i].scq);
		if (op == SKUA_WQE_SEND)
			take(p, 1 - i, &rc->s[1 - i].rcq);
	}
}

/* Reads and writes of both sides for one message, by purpose. */
struct cost {
	double reads[TLP_PURPOSE_COUNT], writes[TLP_PURPOSE_COUNT];
	double all_reads, all_writes;
};

static void add(struct pairs *p, struct cost *c, double by)
{
	for (int i = 0; i < 2; i++) {
		const struct tlp_table *t = &p->rc.s[i].f.dev->tlp.fn;

		for (unsigned int k = 0; k < TLP_PURPOSE_COUNT; k++) {
			c->reads[k] += by * (double)t->v[TLP_MRD_UP][k].count;
			c->writes[k] += by * (double)t->v[TLP_MWR_UP][k].count;
			c->all_reads += by * (double)t->v[TLP_MRD_UP][k].count;
			c->all_writes += by * (double)t->v[TLP_MWR_UP][k].count;
		}
	}
}

static void print(unsigned int num, enum skua_wqe_op op, bool both, const struct cost *c)
{
	static const char *const name[] = {
#define X(name, text) text,
		TLP_PURPOSES(X)
#undef X
	};

	print_message("%5u QPs %s%-5s %6.3f reads %6.3f writes:", num,
		      both ? "both ways " : "", op == SKUA_WQE_SEND ? "SEND" : "WRITE", c->all_reads, c->all_writes);
	for (unsigned int k = 0; k < TLP_PURPOSE_COUNT; k++) {
		if (c->reads[k] > 0 || c->writes[k] > 0)
			print_message(" %s %.3f/%.3f", name[k], c->reads[k], c->writes[k]);
	}
	print_message("\n");
}

static struct cost count(struct pairs *p, enum skua_wqe_op op, bool both)
{
	struct cost c = { 0 };
	unsigned int rounds = p->num < MANY ? 16 : 1;
	double messages = (1.0 + both) * p->num * rounds;

	for (unsigned int k = 0; k < WARM; k++)
		one_round(p, op, both);
	add(p, &c, -1 / messages);
	for (unsigned int k = 0; k < rounds; k++)
		one_round(p, op, both);
	add(p, &c, 1 / messages);
	print(p->num, op, both, &c);
	return c;
}

/*
 * Where the contexts do not fit, what a packet or a turn does not need is neither fetched nor
 * written back: of a WRITE the requester's send queue context goes out each time that it was
 * changed (doorbell, turn, ACK), the responder's receive queue context likewise (packet,
 * turn).
 */
static void test_classic(void **state)
{
	struct cost c;

	(void)state;
	pairs_open(&pairs, 4096, true, SKUA_EXT_PLAIN);
	c = count(&pairs, SKUA_WQE_WRITE, false);
	rc_close(&pairs.rc);
	assert_true(c.writes[TLP_CTX] <= 5.01);
	assert_true(c.reads[TLP_CTX] <= 4.01);
	/* The contrast: more of the link goes to contexts than to all else. */
	assert_true(c.reads[TLP_CTX] + c.writes[TLP_CTX] > 4);
}

static const enum skua_wqe_op op[] = { SKUA_WQE_WRITE, SKUA_WQE_SEND };

/* Log2 of the window of selective repeat that is in force for QP @k. */
static uint32_t window(struct pairs *p, int i, unsigned int k)
{
	struct skua_cmd_query_qp_out q;

	assert_int_equal(mini_index(&p->rc.s[i].m, SKUA_CMD_QUERY_QP, p->qp[i][k].qpn, &q,
				    sizeof(q)), 0);
	return u32_get_bits(q.sqc.sr_window, SKUA_SQC_WINDOW);
}

/* 10,000 active connections cost what 16 cost, each as sender and as receiver. */
static void same(uint32_t ext, struct cost few[N(op)])
{
	struct cost many[N(op)];

	pairs_open(&pairs, FEW, false, ext);
	for (unsigned int k = 0; k < N(op); k++)
		few[k] = count(&pairs, op[k], true);
	rc_close(&pairs.rc);
	pairs_open(&pairs, MANY, false, ext);
	for (unsigned int k = 0; k < N(op); k++)
		many[k] = count(&pairs, op[k], true);
	for (int i = 0; i < 2; i++) {
		struct skua_dev *dev = pairs.rc.s[i].f.dev;
		char answer[2048];

		/* It is spoken by now, and nothing is missing. */
		assert_int_equal(window(&pairs, i, MANY - 1), ext ? SKUA_EXT_LOG_WINDOW_MIN : 0);
		skua_dev_onchip(dev, answer, sizeof(answer));
		print_message("%s\n", answer);
		assert_true(onchip_used(dev) <= 4400 << 10);
	}
	rc_close(&pairs.rc);
	for (unsigned int k = 0; k < N(op); k++) {
		assert_true(few[k].all_reads > 1);
		assert_true(many[k].all_reads <= few[k].all_reads * 1.05);
		assert_true(many[k].all_writes <= few[k].all_writes * 1.05);
	}
}

/* With selective repeat they cost what they cost without. */
static void test_same(void **state)
{
	struct cost plain[N(op)], ext[N(op)];

	(void)state;
	same(SKUA_EXT_PLAIN, plain);
	same(SKUA_EXT_NEGOTIATE, ext);
	for (unsigned int k = 0; k < N(op); k++) {
		assert_true(ext[k].all_reads <= plain[k].all_reads * 1.05);
		assert_true(ext[k].all_writes <= plain[k].all_writes * 1.05);
	}
}

/* Nor does a side that only answers need more: no round trip of its own is ever measured. */
static void test_one_way(void **state)
{
	struct cost few, many;

	(void)state;
	pairs_open(&pairs, FEW, false, SKUA_EXT_NEGOTIATE);
	few = count(&pairs, SKUA_WQE_WRITE, false);
	rc_close(&pairs.rc);
	pairs_open(&pairs, MANY, false, SKUA_EXT_NEGOTIATE);
	many = count(&pairs, SKUA_WQE_WRITE, false);
	rc_close(&pairs.rc);
	assert_true(many.all_reads <= few.all_reads * 1.05);
	assert_true(many.all_writes <= few.all_writes * 1.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classic),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_one_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
