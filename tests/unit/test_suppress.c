// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell suppression: what the device makes of doorbell records, and when it wants a
 * doorbell. That no interleaving of the two sides loses work is test_suppress_order's.
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

#define N(a)	(sizeof(a) / sizeof((a)[0]))
/* As hot.c has them. */
#define LIST	64
#define LOOKS	32
#define SEC	1000000000ull

static const struct rc_opt opt = { .qp_flags = SKUA_QP_F_DB_SUPPRESS };

static struct fake *dev0(struct rc *rc)
{
	return &rc->s[0].f;
}

static struct skua_qp_dbr *record(struct rc *rc, const struct mini_qp *qp)
{
	return fake_ptr(dev0(rc), qp->dbr);
}

/*
 * The device's own words: after a command, QUERY among them, it is run until it rests, and
 * then no queue is hot any more.
 */
static uint32_t pi_of(struct rc *rc, const struct mini_qp *qp)
{
	uint32_t known;
	struct qp own;

	assert_int_equal(qp_get(dev0(rc)->dev, qp->qpn, &own), 0);
	known = le32_to_cpu(own.sqc->pi);
	qp_put(dev0(rc)->dev, &own);
	return known;
}

static uint32_t pi(struct rc *rc)
{
	return pi_of(rc, &rc->s[0].qp);
}

static uint64_t device_count(struct rc *rc, enum skua_counter counter)
{
	tlp_counters(dev0(rc)->dev);
	return dev0(rc)->dev->cnt[counter];
}

#define count(rc, counter)	device_count(rc, SKUA_CNT_##counter)

/* Post a WRITE; true: the device wanted a doorbell. */
static bool post(struct rc *rc, struct mini_qp *qp)
{
	static const struct rc_wr wr = { .op = SKUA_WQE_WRITE, .len = 8 };

	rc_post_quiet(rc, 0, qp, &wr);
	return mini_ring(&rc->s[0].m, qp);
}

static void open_hot(struct rc *rc)
{
	rc_open(rc, &opt);
	assert_true(post(rc, &rc->s[0].qp));
	assert_true(skua_dev_run(dev0(rc)->dev));
}

#define assert_counted(rc, counter, by, expr)						\
	do {										\
		uint64_t before_ = count(rc, counter);					\
		expr;									\
		assert_int_equal(count(rc, counter) - before_, by);			\
	} while (0)

/* A hot queue: no MMIO, and the device finds what was posted. */
static void test_seen(void **state)
{
	struct rc rc;

	(void)state;
	open_hot(&rc);
	assert_counted(&rc, SQ_RECORD, 5, {
		for (unsigned int i = 0; i < 5; i++) {
			assert_counted(&rc, TLP_MWR_RX, 0, {
				for (unsigned int n = 0; n <= i; n++)
					assert_false(post(&rc, &rc.s[0].qp));
			});
			/* To find them was work, to look again is none; short of becoming cold. */
			assert_true(skua_dev_run(dev0(&rc)->dev));
			assert_false(skua_dev_only_looks(dev0(&rc)->dev));
			for (unsigned int n = 0; n < LOOKS - 2; n++)
				assert_true(skua_dev_run(dev0(&rc)->dev));
			assert_true(skua_dev_only_looks(dev0(&rc)->dev));
			assert_int_equal(pi(&rc), rc.s[0].qp.sq_pi);
		}
	});
	assert_int_equal(count(&rc, SQ_DB), 1);
	assert_int_equal(count(&rc, SQ_EVENT), 0);
	rc_pump(&rc);
	for (unsigned int i = 0; i < 16; i++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

/* How a queue becomes cold, what that costs, and that an idle device costs nothing. */
static void test_cold(void **state)
{
	uint64_t reads, writes;
	unsigned int rounds;
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	/* Before the first doorbell there is nothing to look at. */
	assert_false(skua_dev_run(dev0(&rc)->dev));
	assert_true(post(&rc, &rc.s[0].qp));
	fake_pump(&rc.s[0].f, &rc.s[1].f);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(count(&rc, SQ_EVENT), 1);
	assert_int_equal(le32_to_cpu(record(&rc, &rc.s[0].qp)->sq_event), 1);

	reads = dev0(&rc)->reads;
	writes = dev0(&rc)->writes;
	for (unsigned int i = 0; i < 1000; i++) {
		assert_false(skua_dev_run(dev0(&rc)->dev));
		assert_false(skua_dev_only_looks(dev0(&rc)->dev));
	}
	assert_int_equal(dev0(&rc)->reads, reads);
	assert_int_equal(dev0(&rc)->writes, writes);

	/* The next one is told by a doorbell. After its turn there are looks, and no more. */
	assert_true(post(&rc, &rc.s[0].qp));
	assert_true(skua_dev_run(dev0(&rc)->dev));
	assert_true(skua_dev_run(dev0(&rc)->dev));
	reads = dev0(&rc)->reads;
	writes = dev0(&rc)->writes;
	for (rounds = 1; skua_dev_run(dev0(&rc)->dev); rounds++)
		assert_true(skua_dev_only_looks(dev0(&rc)->dev));
	assert_in_range(rounds, LOOKS - 2, LOOKS);
	assert_int_equal(dev0(&rc)->reads - reads, rounds + 1);
	assert_int_equal(dev0(&rc)->writes - writes, 1);
	assert_int_equal(count(&rc, SQ_EVENT), 2);
	rc_close(&rc);
}

/* The host is about to sleep: queues are cold at once, but for those with work. */
static void test_rest(void **state)
{
	struct rc rc;

	(void)state;
	open_hot(&rc);
	assert_counted(&rc, SQ_EVENT, 1, assert_false(skua_dev_rest(dev0(&rc)->dev)));
	assert_false(skua_dev_run(dev0(&rc)->dev));
	assert_counted(&rc, SQ_EVENT, 0, assert_false(skua_dev_rest(dev0(&rc)->dev)));
	assert_true(post(&rc, &rc.s[0].qp));
	skua_dev_run(dev0(&rc)->dev);
	assert_false(post(&rc, &rc.s[0].qp));
	assert_true(skua_dev_rest(dev0(&rc)->dev));
	assert_int_equal(skua_dev_found(dev0(&rc)->dev), 1);
	assert_false(post(&rc, &rc.s[0].qp));
	rc_pump(&rc);
	for (unsigned int i = 0; i < 4; i++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&rc, 0, false);
	rc_close(&rc);
}

static void late(struct rc *rc, uint32_t index)
{
	fake_db(dev0(rc), MINI_UAR, SKUA_UAR_SQ, index, rc->s[0].qp.qpn);
}

/* A doorbell that comes after its record was taken, hot or cold, is not an error. */
static void test_late(void **state)
{
	struct rc rc;

	(void)state;
	open_hot(&rc);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	for (unsigned int round = 0; round < 2; round++) {
		/* More than a ring. */
		for (unsigned int i = 0; i < 100; i++) {
			post(&rc, &rc.s[0].qp);
			rc_pump(&rc);
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		}
		assert_counted(&rc, BAD_DB_INDEX, 0, {
			assert_counted(&rc, SQ_DB, 0, {
				late(&rc, pi(&rc));
				late(&rc, pi(&rc) - 1);
				late(&rc, pi(&rc) - 64);
				late(&rc, 1);
			});
		});
		rc_pump(&rc);
		rc_expect_none(&rc, 0, false);
		if (!round) {
			assert_true(post(&rc, &rc.s[0].qp));
			skua_dev_run(dev0(&rc)->dev);
			assert_false(post(&rc, &rc.s[0].qp));
			rc_pump(&rc);
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		}
	}
	/* One that is ahead of the ring is what it always was. */
	assert_counted(&rc, BAD_DB_INDEX, 2, {
		late(&rc, pi(&rc) + 65);
		late(&rc, pi(&rc) + 0x7fffffff);
	});
	/* It is a kick: receives of a QP in ERR are flushed. */
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
	rc_pump(&rc);
	rc_recv(&rc, 0, 0, 64);
	rc_pump(&rc);
	rc_expect_none(&rc, 0, true);
	late(&rc, pi(&rc) - 1);
	rc_pump(&rc);
	rc_expect(&rc, 0, true, SKUA_CQE_WR_FLUSH_ERR);
	rc_close(&rc);
}

/* A queue that does not take part has the rule that it had. */
static void test_without(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	assert_true(post(&rc, &rc.s[0].qp));
	rc_pump(&rc);
	assert_counted(&rc, BAD_DB_INDEX, 1, late(&rc, 0));
	assert_int_equal(count(&rc, SQ_EVENT), 0);
	assert_true(post(&rc, &rc.s[0].qp));
	rc_close(&rc);
}

/* Producer, consumer and event index run past 2^32. */
static void test_wrap(void **state)
{
	const uint32_t start = 0xfffffff0;
	struct skua_qp_dbr *dbr;
	struct mini_qp *sq;
	struct rc rc;
	struct qp qp;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .qp_flags = SKUA_QP_F_DB_SUPPRESS, .down = true });
	sq = &rc.s[0].qp;
	dbr = record(&rc, sq);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, sq, SKUA_QP_INIT, SKUA_QP_M_PKEY |
					SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &rc.s[0].attr), 0);
	qp_get(dev0(&rc)->dev, sq->qpn, &qp);
	qp.sqc->pi = cpu_to_le32(start);
	qp.sqc->ci = cpu_to_le32(start);
	qp_dirty(dev0(&rc)->dev, &qp);
	qp_put(dev0(&rc)->dev, &qp);
	sq->sq_pi = start;
	sq->sq_told = start;
	dbr->sq_event = cpu_to_le32(start);

	/* Cold: it wants to know at once. Then no more, whatever the index. */
	for (unsigned int i = 0; i < 60; i++) {
		sq->sq_pi++;
		assert_int_equal(mini_ring(&rc.s[0].m, sq), !i);
		skua_dev_run(dev0(&rc)->dev);
		assert_int_equal(pi(&rc), start + i + 1);
	}
	fake_run(dev0(&rc));
	assert_int_equal(le32_to_cpu(dbr->sq_event), start + 60);
	assert_int_equal(start + 60, 44);
	assert_counted(&rc, BAD_DB_INDEX, 0, late(&rc, start + 1));
	sq->sq_pi++;
	assert_true(mini_ring(&rc.s[0].m, sq));
	assert_int_equal(pi(&rc), 45);
	assert_int_equal(count(&rc, BAD_DB_INDEX), 0);
	rc_close(&rc);
}

/* RESET clears both words, and the device forgets the queue. */
static void test_reset(void **state)
{
	uint64_t reads;
	struct rc rc;

	(void)state;
	for (unsigned int hot = 0; hot < 2; hot++) {
		struct mini_qp *sq = &rc.s[0].qp;

		open_hot(&rc);
		if (!hot)
			rc_pump(&rc);
		assert_int_equal(le32_to_cpu(record(&rc, sq)->sq_event), !hot);
		assert_int_equal(mini_qp_modify(&rc.s[0].m, sq, SKUA_QP_RESET, 0, NULL), 0);
		assert_int_equal(le32_to_cpu(record(&rc, sq)->sq_event), 0);
		/* What is in the record now is none of the device's business. */
		reads = dev0(&rc)->reads;
		assert_false(skua_dev_run(dev0(&rc)->dev));
		assert_int_equal(dev0(&rc)->reads, reads);

		record(&rc, sq)->sq_pi = 0;
		sq->sq_pi = 0;
		sq->sq_told = 0;
		while (mini_cq_next(&rc.s[0].m, &rc.s[0].scq, &(struct skua_cqe){ 0 }))
			;
		mini_rc_to_rts(&rc.s[0].m, sq, &rc.s[0].attr);
		assert_int_equal(pi(&rc), 0);
		assert_true(post(&rc, sq));
		assert_int_equal(pi(&rc), 1);
		rc_close(&rc);
	}
}

/* The device as a whole is reset. */
static void test_device_reset(void **state)
{
	uint64_t reads;
	struct rc rc;

	(void)state;
	open_hot(&rc);
	skua_dev_reset(dev0(&rc)->dev, SKUA_RESET_FLR);
	reads = dev0(&rc)->reads;
	fake_bus(dev0(&rc), true, true);
	assert_false(skua_dev_run(dev0(&rc)->dev));
	assert_int_equal(dev0(&rc)->reads, reads);
	/* Nor are there hot queues after the next start. */
	mini_up(&rc.s[0].m, &rc.s[0].f);
	reads = dev0(&rc)->reads;
	assert_false(skua_dev_run(dev0(&rc)->dev));
	assert_int_equal(dev0(&rc)->reads, reads);
	rc_close(&rc);
}

/* It begins anew without a reset: no queue of the time before is looked at, and it rests. */
static void test_teardown(void **state)
{
	struct skua_cmd_init_device_in init;
	uint64_t reads;
	struct rc rc;

	(void)state;
	open_hot(&rc);
	mini_ok(&rc.s[0].m, SKUA_CMD_TEARDOWN_DEVICE, NULL, 0);
	mini_init_in(&rc.s[0].m, &init);
	mini_ok(&rc.s[0].m, SKUA_CMD_INIT_DEVICE, &init, sizeof(init));
	reads = dev0(&rc)->reads;
	assert_false(skua_dev_run(dev0(&rc)->dev));
	assert_false(skua_dev_rest(dev0(&rc)->dev));
	assert_int_equal(dev0(&rc)->reads, reads);
	rc_close(&rc);
}

/* Without Bus Master Enable nothing is looked at; afterwards all is as before. */
static void test_bus_master(void **state)
{
	struct rc rc;

	(void)state;
	open_hot(&rc);
	fake_bus(dev0(&rc), true, false);
	assert_false(post(&rc, &rc.s[0].qp));
	assert_false(skua_dev_run(dev0(&rc)->dev));
	assert_int_equal(dev0(&rc)->dev->cnt[SKUA_CNT_DMA_ERR], 0);
	fake_bus(dev0(&rc), true, true);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

/* Records that no driver writes: counted once, ignored, and the queue is cold. */
static void test_bad_index(void **state)
{
	static const uint32_t bad[] = { 0, 66, 1 + 64 + 1, 0x80000000, 0xffffffff };

	(void)state;
	for (unsigned int i = 0; i < N(bad); i++) {
		struct rc rc;

		open_hot(&rc);
		record(&rc, &rc.s[0].qp)->sq_pi = cpu_to_le32(bad[i]);
		assert_counted(&rc, BAD_DB_INDEX, 1, rc_pump(&rc));
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(pi(&rc), 1);
		assert_int_equal(le32_to_cpu(record(&rc, &rc.s[0].qp)->sq_event), 1);
		/* Posted as it should be it works again. */
		assert_true(post(&rc, &rc.s[0].qp));
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_RTS);
		rc_close(&rc);
	}
}

static void flip(void *priv, uint64_t iova, size_t len)
{
	struct rc *rc = priv;
	struct skua_qp_dbr *dbr = record(rc, &rc->s[0].qp);

	(void)len;
	/* Never the same, never right. */
	if (iova == rc->s[0].qp.dbr + offsetof(struct skua_qp_dbr, sq_pi))
		dbr->sq_pi = cpu_to_le32(le32_to_cpu(dbr->sq_pi) + 1000000);
}

/* A record that changes from one look to the next keeps nobody busy. */
static void test_restless(void **state)
{
	struct rc rc;

	(void)state;
	open_hot(&rc);
	dev0(&rc)->on_priv = &rc;
	dev0(&rc)->on_read = flip;
	assert_counted(&rc, BAD_DB_INDEX, 1, assert_false(skua_dev_run(dev0(&rc)->dev)));
	dev0(&rc)->on_read = NULL;
	rc_close(&rc);
}

/* QPs of side 0 that have a ring, and nobody to talk to: INIT is enough for records. */
static void make(struct rc *rc, struct mini_qp *qp, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++) {
		rc_qp(rc, 0, &qp[i], &opt);
		assert_int_equal(mini_qp_modify(&rc->s[0].m, &qp[i], SKUA_QP_INIT, SKUA_QP_M_PKEY |
						SKUA_QP_M_PORT | SKUA_QP_M_ACCESS,
						&rc->s[0].attr), 0);
	}
	fake_run(dev0(rc));
}

/* A word that cannot be read, or written: this QP is in error, the others are not. */
static void test_unmapped(void **state)
{
	static const size_t word[] = {
		offsetof(struct skua_qp_dbr, sq_pi), offsetof(struct skua_qp_dbr, sq_event),
	};

	(void)state;
	for (unsigned int i = 0; i < N(word); i++) {
		struct mini_qp other;
		struct rc rc;

		rc_open(&rc, &opt);
		make(&rc, &other, 1);
		assert_true(post(&rc, &rc.s[0].qp));
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);

		fake_hole(dev0(&rc), rc.s[0].qp.dbr + word[i], 4);
		assert_true(post(&rc, &rc.s[0].qp));
		other.sq_pi++;
		assert_true(mini_ring(&rc.s[0].m, &other));
		assert_counted(&rc, DMA_ERR, 1, fake_run(dev0(&rc)));
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		rc_expect_event(&rc, 0, SKUA_QP_EV_FATAL);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		/* From now on it costs an attempt for each doorbell, and no event again. */
		assert_counted(&rc, DMA_ERR, 1, {
			late(&rc, ++rc.s[0].qp.sq_pi);
			fake_run(dev0(&rc));
		});
		rc_expect_no_event(&rc, 0);
		assert_counted(&rc, DMA_ERR, 0, fake_run(dev0(&rc)));

		assert_int_equal(pi_of(&rc, &other), 1);
		assert_int_equal(le32_to_cpu(record(&rc, &other)->sq_event), 1);
		rc_close(&rc);
	}
}

/* In SQD what is posted is known and waits; in ERR it is flushed. */
static void test_states(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_SQD, 0, NULL), 0);
	assert_true(post(&rc, &rc.s[0].qp));
	skua_dev_run(dev0(&rc)->dev);
	assert_false(post(&rc, &rc.s[0].qp));
	rc_pump(&rc);
	assert_int_equal(pi(&rc), 2);
	rc_expect_none(&rc, 0, false);
	/* It is cold by now, work or not. */
	assert_true(post(&rc, &rc.s[0].qp));
	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), 0);
	rc_pump(&rc);
	for (unsigned int i = 0; i < 3; i++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);

	assert_int_equal(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(post(&rc, &rc.s[0].qp), i % 5 == 0);
		if (i % 5 == 4)
			rc_pump(&rc);
		else
			skua_dev_run(dev0(&rc)->dev);
	}
	for (unsigned int i = 0; i < 20; i++)
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	rc_close(&rc);
}

/* Destroyed while hot, at any place of the list: its record is not touched again. */
static void test_destroy(void **state)
{
	enum { QPS = 5 };

	(void)state;
	for (unsigned int gone = 0; gone < QPS; gone++) {
		struct mini_qp qp[QPS];
		struct rc rc;

		rc_open(&rc, &opt);
		make(&rc, qp, QPS);
		for (unsigned int i = 0; i < QPS; i++) {
			qp[i].sq_pi++;
			assert_true(mini_ring(&rc.s[0].m, &qp[i]));
		}
		skua_dev_run(dev0(&rc)->dev);
		/* Those that stay have news in their records when the other one goes. */
		for (unsigned int i = 0; i < QPS; i++) {
			qp[i].sq_pi++;
			assert_false(mini_ring(&rc.s[0].m, &qp[i]));
		}
		fake_hole(dev0(&rc), qp[gone].dbr, 16);
		assert_counted(&rc, SQ_RECORD, QPS - 1, {
			assert_int_equal(mini_index(&rc.s[0].m, SKUA_CMD_DESTROY_QP, qp[gone].qpn,
						    NULL, 0), 0);
		});
		assert_int_equal(count(&rc, DMA_ERR), 0);
		for (unsigned int i = 0; i < QPS; i++) {
			if (i != gone)
				assert_int_equal(pi_of(&rc, &qp[i]), 2);
		}
		rc_close(&rc);
	}
}

/* More hot queues than the list has room for: each has its work done, in few rounds. */
static void test_many(void **state)
{
	enum { QPS = LIST + 40 };
	static struct mini_qp qp[QPS];
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	make(&rc, qp, QPS);
	for (unsigned int round = 0; round < 4; round++) {
		unsigned int rang = 0, n;

		for (unsigned int i = 0; i < QPS; i++) {
			qp[i].sq_pi++;
			rang += mini_ring(&rc.s[0].m, &qp[i]);
		}
		/* Eight turns in each round. */
		for (n = 0; n < QPS / 8 + 2; n++)
			assert_true(skua_dev_run(dev0(&rc)->dev));
		for (unsigned int i = 0; i < QPS; i++)
			assert_int_equal(pi_of(&rc, &qp[i]), round + 1);
		/* Those that had no room are cold. */
		assert_int_equal(rang, round ? QPS - LIST : QPS);
		assert_int_equal(count(&rc, SQ_EVENT), (round + 1) * (QPS - LIST));
	}
	fake_run(dev0(&rc));
	assert_int_equal(count(&rc, SQ_EVENT), 4 * (QPS - LIST) + LIST);
	rc_close(&rc);
}

/* Posts and rounds of the device in any order: when it rests, it knows of all. */
static void test_random(void **state)
{
	enum { QPS = LIST + 20 };
	static struct mini_qp qp[QPS];

	(void)state;
	for (unsigned int seed = 1; seed <= 10; seed++) {
		unsigned int busy = 1 + (seed - 1) * (QPS - 1) / 9;
		struct rc rc;

		srand(seed);
		rc_open(&rc, &opt);
		make(&rc, qp, QPS);
		for (unsigned int i = 0; i < 20000; i++) {
			struct mini_qp *q = &qp[(unsigned int)rand() % (rand() % 8 ? busy : QPS)];
			struct qp own;
			uint32_t ci;

			if (rand() % 3 == 0) {
				skua_dev_run(dev0(&rc)->dev);
				continue;
			}
			q->sq_pi += 1 + rand() % 3;
			mini_ring(&rc.s[0].m, q);
			/* The engine does nothing in INIT: what is there is done here. */
			assert_int_equal(qp_get(dev0(&rc)->dev, q->qpn, &own), 0);
			own.sqc->ci = own.sqc->pi;
			ci = le32_to_cpu(own.sqc->ci);
			qp_put(dev0(&rc)->dev, &own);
			if (q->sq_pi - ci > 60)
				fake_run(dev0(&rc));
		}
		fake_run(dev0(&rc));
		for (unsigned int i = 0; i < QPS; i++)
			assert_int_equal(pi_of(&rc, &qp[i]), qp[i].sq_pi);
		assert_int_equal(count(&rc, BAD_DB_INDEX), 0);
		assert_in_range(count(&rc, SQ_RECORD), 100, UINT64_MAX);
		rc_close(&rc);
	}
}

/* While the wire has no room for its frames a queue gets cold, and the device sleeps. */
static void test_parked(void **state)
{
	static const uint8_t peer[6] = { 0x02, 0, 0, 0, 0, 2 };
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	dev0(&rc)->full = peer;
	assert_true(post(&rc, &rc.s[0].qp));
	fake_run(dev0(&rc));
	assert_int_equal(dev0(&rc)->sent, 0);
	assert_true(post(&rc, &rc.s[0].qp));
	skua_dev_run(dev0(&rc)->dev);
	assert_false(post(&rc, &rc.s[0].qp));
	fake_run(dev0(&rc));
	assert_int_equal(pi(&rc), 3);
	dev0(&rc)->full = NULL;
	skua_dev_room(dev0(&rc)->dev);
	rc_pump(&rc);
	for (unsigned int i = 0; i < 3; i++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

/* The capability's owner alone may use the flag, whatever the type. */
static void test_capability(void **state)
{
	(void)state;
	for (unsigned int has = 0; has < 2; has++) {
		struct skua_cmd_create_qp_in in;
		struct mini_qp qp;
		struct rc rc;

		rc_open(&rc, has ? NULL : &(struct rc_opt){ .no_caps = SKUA_CAP_DB_SUPPRESS });
		for (unsigned int type = SKUA_QP_RC; type <= SKUA_QP_UD; type++) {
			rc.s[0].m.qp_flags = SKUA_QP_F_DB_SUPPRESS;
			in = mini_qp_in(&rc.s[0].m, &qp, type, &rc.s[0].scq, &rc.s[0].rcq, 3, 3, 0);
			assert_int_equal(mini_cmd(&rc.s[0].m, SKUA_CMD_CREATE_QP, &in, sizeof(in),
						  NULL, 0),
					 has ? SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_PARAM);
		}
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seen),
		cmocka_unit_test(test_cold),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_device_reset),
		cmocka_unit_test(test_teardown),
		cmocka_unit_test(test_bus_master),
		cmocka_unit_test(test_bad_index),
		cmocka_unit_test(test_restless),
		cmocka_unit_test(test_unmapped),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_parked),
		cmocka_unit_test(test_capability),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
