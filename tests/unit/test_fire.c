// SPDX-License-Identifier: GPL-2.0
/*
 * Every operation of RC, both ways at the same time, over a wire that loses, reorders,
 * doubles, damages and delays, all at once, with PSNs that begin anew: with selective repeat,
 * without it, and between one that has it and one that does not. Every byte is looked at, each
 * message completes once and in order, atomics are executed once, READs see the WRITEs before
 * them. Receives are the QPs' own, or those of SRQs; and XRC, one way, with two SRQs.
 *
 * Once with the loss state in the devices and once with it in the drivers of both, which look at
 * the devices' reports up to 100 ms after they came.
 *
 * SKUA_SEEDS: so many seeds, 10 if nothing is said. SKUA_SEED: only this one. SKUA_KEEPER: only
 * with the loss state in the "device" or "driver".
 */
#include <stdio.h>

#include "onload.h"
#include "rc_keys.h"
#include "rc_srq.h"
#include "roce/pkt.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SEC		1000000000ull
#define MSEC		1000000ull
#define MESSAGES	48
#define PLACE		(40u << 10)
#define LEN_MAX		(PLACE - 64)
/* Of each direction: where its messages are, at both ends, and what its atomics change. */
#define BASE(way)	((uint64_t)(way) * (8 << 20))
#define CELL(way, n)	((16ull << 20) + (way) * 64 + (n) * 8)
#define GUARD		0x5a
/* PSNs before zero at which the connections begin, at most. */
#define PSN_BEFORE	300

enum { BACK = 0x100 };		/* READ of what was written before */

/* Where receives come from. XRC's requests go one way. */
enum recvs { OWN, SRQ, XRC };
#define SRQN	5

/**
 * struct msg - a message
 * @op: enum skua_wqe_op, or BACK
 * @len: its bytes
 * @from: the message whose bytes it has: itself, or the one that is read back
 * @was: atomics: what is to be found there
 * @key: SEND_INV: the window that is invalidated
 * @srq: XRC: which SRQ it goes to
 */
struct msg {
	unsigned int op;
	uint32_t len, from, key, srq;
	uint64_t was;
};

/**
 * struct fire - one seed
 * @net: the connection
 * @rand: state of the generator
 * @ext: SKUA_EXT_* of each side
 * @late: half of the receives are posted later
 * @driver: the loss state is in the drivers
 * @driver_late: so many ns after it came they look at a report
 * @onload: the drivers
 * @spec: faults of the wire
 * @msg: messages of either way
 * @cell: what the atomics of either way have come to
 */
struct fire {
	struct net net;
	unsigned int rand;
	uint32_t ext[2];
	enum recvs recvs;
	struct rc_srq srq[2];
	bool late;
	bool driver;
	uint64_t driver_late;
	struct onload onload;
	char spec[160];
	struct msg msg[2][MESSAGES];
	uint64_t cell[2][4];
};

/**
 * struct sums - of all seeds
 * @hits: frames that each kind of fault met
 * @early: packets taken early, and acknowledgments with a bitmap
 * @reports: taken by drivers
 * @commands: of theirs, executed by devices
 */
struct sums {
	uint64_t hits[5], early, reports, commands;
};

static uint32_t draw(struct fire *f, uint32_t below)
{
	return (uint32_t)rand_r(&f->rand) % below;
}

static int ways(const struct fire *f)
{
	return f->recvs == XRC ? 1 : 2;
}

static bool takes_recv(const struct msg *m)
{
	return m->op == SKUA_WQE_SEND || m->op == SKUA_WQE_SEND_IMM ||
	       m->op == SKUA_WQE_SEND_INV || m->op == SKUA_WQE_WRITE_IMM;
}

static bool is_atomic(const struct msg *m)
{
	return m->op >= SKUA_WQE_CAS && m->op <= SKUA_WQE_MASKED_FAA;
}

static uint64_t at(int way, uint32_t k)
{
	return BASE(way) + (uint64_t)k * PLACE;
}

/* --- messages --- */

static uint32_t length(struct fire *f)
{
	switch (draw(f, 4)) {
	case 0:
		return draw(f, 70);
	case 1:
		return draw(f, 5000);
	default:
		return draw(f, LEN_MAX + 1);
	}
}

/* The last message before @k that wrote to a place of its own; -1: there is none. */
static int written(const struct msg *m, uint32_t k)
{
	while (k--) {
		if ((m[k].op == SKUA_WQE_WRITE || m[k].op == SKUA_WQE_WRITE_IMM) && m[k].len)
			return (int)k;
	}
	return -1;
}

static void plan(struct fire *f, int way)
{
	static const unsigned int ops[] = {
		SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_SEND_INV, SKUA_WQE_WRITE,
		SKUA_WQE_WRITE, SKUA_WQE_WRITE_IMM, SKUA_WQE_READ, BACK, SKUA_WQE_CAS,
		SKUA_WQE_FAA, SKUA_WQE_MASKED_CAS, SKUA_WQE_MASKED_FAA, SKUA_WQE_FLUSH,
		SKUA_WQE_ATOMIC_WRITE,
	};
	/* A target binds no windows. */
	static const unsigned int xrc[] = {
		SKUA_WQE_SEND, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE, SKUA_WQE_WRITE_IMM,
		SKUA_WQE_READ, BACK, SKUA_WQE_CAS, SKUA_WQE_FAA,
	};
	const unsigned int *op = f->recvs == XRC ? xrc : ops;
	unsigned int num = f->recvs == XRC ? N(xrc) : N(ops);
	struct msg *m = f->msg[way];

	for (uint32_t k = 0; k < MESSAGES; k++) {
		/* Each at least twice. */
		m[k].op = op[k < 2 * num ? k % num : draw(f, num)];
		m[k].srq = f->recvs == XRC ? draw(f, 2) : 0;
		m[k].from = k;
		m[k].len = is_atomic(&m[k]) || m[k].op == SKUA_WQE_ATOMIC_WRITE ? 8 : length(f);
		if (m[k].op == SKUA_WQE_FLUSH)
			m[k].len = 0;
		if (m[k].op == BACK && written(m, k) < 0)
			m[k].op = SKUA_WQE_READ;
		if (m[k].op == BACK) {
			m[k].from = (uint32_t)written(m, k);
			m[k].len = m[m[k].from].len;
		}
	}
}

/* The side where a message's bytes arrive; it is @way that sends requests. */
static int sink(int way, const struct msg *m)
{
	return m->op == SKUA_WQE_READ || m->op == BACK || is_atomic(m) ? way : 1 - way;
}

static void fill(struct fire *f, int way)
{
	struct rc *rc = &f->net.rc;

	for (uint32_t k = 0; k < MESSAGES; k++) {
		struct msg *m = &f->msg[way][k];
		int to = sink(way, m);

		memset(rc->s[to].buf + at(way, k), GUARD, m->len + 8);
		if (m->op != BACK)
			rc_fill(rc->s[1 - to].buf + at(way, k), m->len, way * 1000 + k);
		if (m->op != SKUA_WQE_SEND_INV)
			continue;
		m->key = window(rc, 1 - way, SKUA_MPT_MW2, MINI_PD);
		post_bind(rc, 1 - way, &(struct bind){ m->key, m->key, rc->s[1 - way].key, RW, 0, 64 });
		rc_expect(rc, 1 - way, false, SKUA_CQE_OK);
	}
}

/* Each atomic of a kind finds what the one before left there. */
static void set_atomic(struct fire *f, int way, struct msg *m, struct rc_wr *wr)
{
	uint64_t *cell = &f->cell[way][m->op - SKUA_WQE_CAS];

	m->was = *cell;
	wr->roff = CELL(way, m->op - SKUA_WQE_CAS);
	if (m->op == SKUA_WQE_CAS || m->op == SKUA_WQE_MASKED_CAS) {
		wr->atomic[0].compare = *cell;
		wr->atomic[0].swap_add = ((uint64_t)rand_r(&f->rand) << 32) + m->from;
		wr->atomic[1].compare = ~0ull;
		wr->atomic[1].swap_add = ~0ull;
		*cell = wr->atomic[0].swap_add;
	} else {
		wr->atomic[0].swap_add = 1 + m->from;
		*cell += 1 + m->from;
	}
}

static void post(struct fire *f, int way)
{
	struct rc *rc = &f->net.rc;

	for (uint32_t k = 0; k < MESSAGES; k++) {
		struct msg *m = &f->msg[way][k];
		struct rc_wr wr = {
			.op = m->op == BACK ? SKUA_WQE_READ : (enum skua_wqe_op)m->op,
			.len = m->len, .off = at(way, k), .roff = at(way, m->from), .imm = k,
			.srqn = SRQN + m->srq,
		};

		if (is_atomic(m))
			set_atomic(f, way, m, &wr);
		if (m->op == SKUA_WQE_SEND_INV)
			wr.imm = m->key;
		if (m->op == SKUA_WQE_FLUSH) {
			wr.imm = 100;
			wr.flush = SKUA_WQE_FLUSH_GLOBAL;
		}
		rc_post_quiet(rc, way, &rc->s[way].qp, &wr);
	}
}

static void receives(struct fire *f, int way, uint32_t from, uint32_t to)
{
	for (uint32_t k = from; k < to; k++) {
		const struct msg *m = &f->msg[way][k];

		if (!takes_recv(m))
			continue;
		if (f->recvs == OWN)
			rc_recv(&f->net.rc, 1 - way, at(way, k), m->len);
		else
			rc_srq_post(&f->srq[f->recvs == XRC ? m->srq : 1 - (uint32_t)way],
				    at(way, k), m->len);
	}
}

/* --- what came of it --- */

static void check_recv(struct fire *f, int way, const struct msg *m)
{
	struct skua_cqe cqe = rc_expect(&f->net.rc, 1 - way, true, SKUA_CQE_OK);

	assert_int_equal(le32_to_cpu(cqe.byte_len), m->len);
	if (m->op == SKUA_WQE_SEND_IMM || m->op == SKUA_WQE_WRITE_IMM)
		assert_int_equal(be32toh(cqe.imm), m->from);
	assert_int_equal(!!(le32_to_cpu(cqe.own) & SKUA_CQE_F_INV), m->op == SKUA_WQE_SEND_INV);
	if (m->op != SKUA_WQE_SEND_INV)
		return;
	assert_int_equal(le32_to_cpu(cqe.inv_key), m->key);
	assert_int_equal(state_of(&f->net.rc, 1 - way, m->key), SKUA_MPT_FREE);
}

static void check(struct fire *f, int way)
{
	struct rc *rc = &f->net.rc;
	uint64_t was;

	for (uint32_t k = 0; k < MESSAGES; k++) {
		const struct msg *m = &f->msg[way][k];
		const uint8_t *p = rc->s[sink(way, m)].buf + at(way, k);

		rc_expect(rc, way, false, SKUA_CQE_OK);
		if (takes_recv(m))
			check_recv(f, way, m);
		if (is_atomic(m)) {
			memcpy(&was, p, sizeof(was));
			assert_int_equal(was, m->was);
		} else {
			rc_check(p, m->len, way * 1000 + m->from);
		}
		assert_int_equal(p[m->len], GUARD);
	}
	rc_expect_none(rc, way, false);
	rc_expect_none(rc, 1 - way, true);
	for (unsigned int n = 0; n < N(f->cell[way]); n++) {
		memcpy(&was, rc->s[1 - way].buf + CELL(way, n), sizeof(was));
		assert_int_equal(was, f->cell[way][n]);
	}
}

/* Packets taken early, and acknowledgments with a bitmap, of both sides. */
static uint64_t selective(struct fire *f)
{
	uint64_t n = 0;

	for (int i = 0; i < 2; i++)
		n += rc_cnt(&f->net.rc, i, SKUA_CNT_RX_EARLY) +
		     rc_cnt(&f->net.rc, i, SKUA_CNT_TX_SACK);
	return n;
}

/* What was done to frames, by each kind of fault. */
static void count_faults(struct fire *f, uint64_t hits[5])
{
	for (int i = 0; i < 2; i++) {
		const struct wire_stats *s = wire_port_stats(f->net.port[i]);

		hits[0] += s->fault_loss;
		hits[1] += s->fault_reorder;
		hits[2] += s->fault_dup;
		hits[3] += s->fault_corrupt;
		hits[4] += s->fault_delay;
		assert_int_equal(s->drop_queue + s->drop_len + s->drop_memory, 0);
	}
}

/* --- one seed --- */

/* Whether the ack timer expires before the driver has looked is left to chance, too. */
static void draw_driver(struct fire *f, struct rc_opt *opt)
{
	static const uint64_t late[] = { 5000, 100000, 3 * MSEC, 30 * MSEC, 100 * MSEC };

	f->driver_late = late[draw(f, N(late))];
	opt->timeout = draw(f, 2) ? 10 : 16;
	opt->onload = true;
}

static void add_drivers(struct fire *f, uint32_t log_window)
{
	onload_start(&f->net, &f->onload);
	for (int i = 0; i < 2; i++) {
		if (f->ext[i])
			onload_side(&f->net, i, log_window, ONLOAD_LOG_EQ, f->driver_late);
	}
}

static void connect(struct fire *f, const struct rc_opt *opt)
{
	struct rc *rc = &f->net.rc;

	for (unsigned int i = 0; i < 2 && f->recvs != OWN; i++)
		rc_srq_make(&f->srq[i], rc, f->recvs == XRC ? 1 : (int)i, SRQN + i, 7,
			    f->recvs == XRC);
	if (f->recvs == XRC) {
		rc_xrc_up(rc, opt);
	} else if (f->recvs == SRQ) {
		for (int i = 0; i < 2; i++)
			rc_srq_qp(&f->srq[i], &rc->s[i].qp, opt->log_sq);
		rc_srq_connect(rc, opt, &rc->s[0].qp, &rc->s[1].qp);
	}
}

static void set_up(struct fire *f, unsigned int seed)
{
	static const uint32_t modes[][2] = {
		{ SKUA_EXT_NEGOTIATE, SKUA_EXT_NEGOTIATE }, { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS },
		{ SKUA_EXT_PLAIN, SKUA_EXT_NEGOTIATE }, { SKUA_EXT_NEGOTIATE, SKUA_EXT_PLAIN },
		{ SKUA_EXT_PLAIN, SKUA_EXT_PLAIN }, { SKUA_EXT_ALWAYS, SKUA_EXT_NEGOTIATE },
	};
	/* With drivers that have something to do. */
	static const uint32_t driver_modes[][2] = {
		{ SKUA_EXT_NEGOTIATE, SKUA_EXT_NEGOTIATE }, { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS },
		{ SKUA_EXT_ALWAYS, SKUA_EXT_NEGOTIATE }, { SKUA_EXT_NEGOTIATE, SKUA_EXT_ALWAYS },
		{ SKUA_EXT_NEGOTIATE, SKUA_EXT_PLAIN },
	};
	struct rc_opt opt = {
		.log_sq = 8, .log_rq = 7, .timeout = 10,
		.access = RW | SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL,
		.caps = SKUA_CAP_FLUSH | SKUA_CAP_ATOMIC_WRITE | SKUA_CAP_ATOMIC,
	};
	bool plain;

	/* All of them with each of the modes below. */
	f->recvs = seed / N(modes) % 3;
	opt.down = f->recvs != OWN;
	f->rand = seed;
	memcpy(f->ext, f->driver ? driver_modes[seed % N(driver_modes)] : modes[seed % N(modes)],
	       sizeof(f->ext));
	plain = !f->ext[0] || !f->ext[1];
	memcpy(opt.ext, f->ext, sizeof(opt.ext));
	opt.mtu_code = 1 + draw(f, 5);
	opt.log_window = SKUA_EXT_LOG_WINDOW_MIN +
			 draw(f, SKUA_EXT_LOG_WINDOW_MAX - SKUA_EXT_LOG_WINDOW_MIN + 1);
	for (int i = 0; i < 2; i++)
		opt.psn[i] = (1u << 24) - 1 - draw(f, PSN_BEFORE);
	f->late = !draw(f, 4);
	/* Going back takes each one that was overtaken for lost. */
	snprintf(f->spec, sizeof(f->spec),
		 "loss=%u.%u%%,reorder=%u%%:%u,dup=%u.%u%%,corrupt=%u.%u%%,delay=%uus,seed=%u",
		 draw(f, plain ? 2 : 6), 1 + draw(f, 9), 1 + draw(f, plain ? 4 : 20),
		 1 + draw(f, plain ? 8 : 64), draw(f, 3), 1 + draw(f, 9), draw(f, 2),
		 1 + draw(f, 9), 1 + draw(f, 100), seed);
	if (f->driver)
		draw_driver(f, &opt);
	net_open(&f->net, &opt, f->spec);
	connect(f, &opt);
	if (f->driver)
		add_drivers(f, opt.log_window);
}

static void run(unsigned int seed, bool driver, struct sums *sums)
{
	static struct fire f;
	struct rc *rc = &f.net.rc;

	memset(&f, 0, sizeof(f));
	f.driver = driver;
	set_up(&f, seed);
	print_message("seed %u: %s, modes %u %u, MTU %u%s%s, %s\n", seed,
		      f.recvs == XRC ? "XRC" : f.recvs == SRQ ? "SRQs" : "RC", f.ext[0], f.ext[1],
		      rc->mtu, f.late ? ", late receives" : "", driver ? ", driver" : "", f.spec);
	if (driver)
		print_message("it is late by %llu us\n", (unsigned long long)f.driver_late / 1000);
	for (int way = 0; way < ways(&f); way++) {
		memset(rc->s[way].buf + CELL(0, 0), 0, 128);
		plan(&f, way);
		fill(&f, way);
	}
	for (int way = 0; way < ways(&f); way++) {
		receives(&f, way, 0, f.late ? MESSAGES / 2 : MESSAGES);
		post(&f, way);
	}
	for (int way = 0; way < ways(&f); way++)
		mini_ring(&rc->s[way].m, &rc->s[way].qp);
	if (f.late) {
		net_pass(&f.net, 20 * MSEC);
		for (int way = 0; way < ways(&f); way++)
			receives(&f, way, MESSAGES / 2, MESSAGES);
	}
	net_pass(&f.net, 30 * SEC);
	for (int way = 0; way < ways(&f); way++) {
		check(&f, way);
		rc_expect_no_event(rc, way);
	}
	count_faults(&f, sums->hits);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(f.onload.side[i].r.bad, 0);
		sums->reports += f.onload.side[i].events;
		sums->commands += rc_cnt(rc, i, SKUA_CNT_RECOVERY_CMD);
	}
	if (f.ext[0] && f.ext[1])
		sums->early += selective(&f);
	else
		assert_int_equal(selective(&f), 0);
	net_close(&f.net);
}

static unsigned int setting(const char *name, unsigned int other)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 0) : other;
}

static void fire(bool driver)
{
	unsigned int first = setting("SKUA_SEED", 1), num = setting("SKUA_SEEDS", 10);
	struct sums sums = { 0 };

	if (getenv("SKUA_SEED"))
		num = 1;
	for (unsigned int seed = first; seed < first + num; seed++)
		run(seed, driver, &sums);
	/* With so few seeds not all kinds of receives came to their turn. */
	for (unsigned int seed = 12; seed < 18 && first + num <= seed && num >= 10; seed++)
		run(seed, driver, &sums);
	print_message("%llu reports, %llu commands\n", (unsigned long long)sums.reports,
		      (unsigned long long)sums.commands);
	if (num < 10)
		return;
	for (unsigned int k = 0; k < N(sums.hits); k++)
		assert_true(sums.hits[k] > 20);
	assert_true(sums.early > 100);
	assert_true(driver ? sums.commands > 100 : !sums.reports);
}

static void test_fire(void **state)
{
	(void)state;
	fire(false);
}

static void test_fire_driver(void **state)
{
	(void)state;
	fire(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fire),
		cmocka_unit_test(test_fire_driver),
	};
	const char *keeper = getenv("SKUA_KEEPER");

	/* The other one is not skipped, it is not asked for. */
	if (keeper)
		cmocka_set_test_filter(strcmp(keeper, "driver") ? "test_fire" : "test_fire_driver");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
