// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat with the loss state in the driver: two devices, a wire that loses and
 * reorders, and the driver's own recovery.c, which gets the device's reports after a time
 * that the test chooses, or never.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "../../drivers/net/ethernet/skua/recovery.h"
#include "net.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SEC		1000000000ull
#define MS		1000000ull
#define LEN		(64u << 10)
#define BATCH		64
#define BATCHES		12
#define EQN		MINI_EQS
#define LOG_EQ		12
#define NEVER		SKUA_TIME_NEVER

/**
 * struct drv - the driver of side 0
 * @net: the devices
 * @eq: of loss reports
 * @r: what it knows
 * @late: so many ns it takes until it looks at an event
 * @gone: it does not
 * @work_at: when it does, 0: there is no event
 * @told: producer index of the ring that the device knows
 * @events: reports taken
 */
struct drv {
	struct net net;
	struct mini_eq eq;
	struct skua_recovery r;
	uint64_t late;
	bool gone;
	uint64_t work_at;
	uint32_t told;
	uint64_t events;
};

static struct drv drv;

static bool has_event(struct drv *d)
{
	const struct skua_eqe *ring = fake_ptr(&d->net.rc.s[0].f, d->eq.ring);

	return skua_eqe_is_new(&ring[d->eq.ci & ((1u << d->eq.log) - 1)], d->eq.ci, d->eq.log);
}

static void take_events(struct drv *d, uint64_t now)
{
	struct rc_side *s = &d->net.rc.s[0];
	struct skua_eqe eqe;

	while (mini_eq_next(&s->m, &d->eq, &eqe)) {
		struct skua_eqe_recovery e;

		assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_RECOVERY);
		memcpy(&e, &eqe, sizeof(e));
		if (le32_get_bits(e.qpn, SKUA_RECOVERY_QPN) == s->qp.qpn)
			skua_recovery_event(&d->r, &e, now);
		d->events++;
	}
	skua_recovery_judge(&d->r, now);
	fake_db(&s->f, d->eq.uar, SKUA_UAR_EQ, d->eq.ci, d->eq.eqn | SKUA_UAR_EQ_ARM);
}

static bool drive(struct net *n)
{
	struct drv *d = (struct drv *)n;
	struct rc_side *s = &n->rc.s[0];
	uint64_t now = s->f.now;
	bool did = false;

	n->drive_at = NEVER;
	if (d->gone)
		return false;
	if (!d->work_at && has_event(d))
		d->work_at = now + d->late;
	if (d->work_at && now >= d->work_at) {
		take_events(d, now);
		d->work_at = 0;
		did = true;
	}
	if (d->r.deadline && now >= d->r.deadline)
		skua_recovery_timer(&d->r, now);
	if (d->r.pi != d->told) {
		d->told = d->r.pi;
		fake_db(&s->f, 0, SKUA_UAR_RECOVERY, d->told, s->qp.qpn);
		did = true;
	}
	if (d->work_at)
		n->drive_at = d->work_at;
	if (d->r.deadline && d->r.deadline < n->drive_at)
		n->drive_at = d->r.deadline;
	return did;
}

struct opt {
	const char *faults;
	uint32_t mode, log_eq, timeout, log_window;
	uint64_t late;
	bool gone;
};

static void connect(const struct opt *o)
{
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_RECOVERY_EQ),
		.recovery_eqn = cpu_to_le32(EQN),
	};
	struct rc_opt opt = {
		.mtu_code = 3, .log_sq = 9, .log_rq = 8, .timeout = o->timeout ? o->timeout : 14,
		.ext = { o->mode, o->mode }, .psn = { 0xfffa00, 0xffa000 }, .onload = true,
		.log_window = o->log_window,
	};
	struct mini *m = &drv.net.rc.s[0].m;

	memset(&drv, 0, sizeof(drv));
	net_open(&drv.net, &opt, o->faults);
	assert_int_equal(mini_eq_create(m, &drv.eq, EQN, o->log_eq ? o->log_eq - 1 : LOG_EQ, 0, 1),
			 SKUA_CMD_ST_OK);
	mini_eq_db(m, &drv.eq, true);
	mini_ok(m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	skua_recovery_init(&drv.r, fake_ptr(m->f, m->rec_ring),
			   o->log_window ? o->log_window : SKUA_EXT_LOG_WINDOW_MAX);
	drv.late = o->late ? o->late : 5000;
	drv.gone = o->gone;
	drv.net.drive = drive;
	drv.net.drive_at = NEVER;
}

static void done(void)
{
	/* Reports and commands, all of them, were understood. */
	assert_int_equal(drv.r.bad, 0);
	net_close(&drv.net);
}

/* @batches of BATCH messages of @op from side 0, all verified. */
static void run(enum skua_wqe_op op, uint32_t len, unsigned int batches, uint64_t time)
{
	int to = op == SKUA_WQE_READ ? 0 : 1;
	struct rc *rc = &drv.net.rc;

	for (unsigned int b = 0; b < batches; b++) {
		for (uint32_t k = 0; k < BATCH; k++) {
			uint64_t at = (uint64_t)k * LEN;

			memset(rc->s[to].buf + at, 0x5a, len);
			rc_fill(rc->s[1 - to].buf + at, len, b * BATCH + k);
			if (op == SKUA_WQE_SEND)
				rc_recv(rc, 1, at, len);
			rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
				.op = op, .len = len, .off = at, .roff = at });
		}
		mini_ring(&rc->s[0].m, &rc->s[0].qp);
		net_pass(&drv.net, time);
		for (uint32_t k = 0; k < BATCH; k++) {
			rc_expect(rc, 0, false, SKUA_CQE_OK);
			if (op == SKUA_WQE_SEND)
				rc_expect(rc, 1, true, SKUA_CQE_OK);
			rc_check(rc->s[to].buf + (uint64_t)k * LEN, len, b * BATCH + k);
		}
	}
	rc_expect_none(rc, 0, false);
	rc_expect_none(rc, 1, true);
}

static const struct {
	const char *name;
	enum skua_wqe_op op;
	uint32_t len;
} kinds[] = {
	{ "WRITE 64 KiB", SKUA_WQE_WRITE, LEN }, { "SEND 64 KiB", SKUA_WQE_SEND, LEN },
	{ "READ 64 KiB", SKUA_WQE_READ, LEN }, { "WRITE 64 B", SKUA_WQE_WRITE, 64 },
	{ "SEND 64 B", SKUA_WQE_SEND, 64 }, { "READ 64 B", SKUA_WQE_READ, 64 },
};

static uint64_t cnt(enum skua_counter c)
{
	return rc_cnt(&drv.net.rc, 0, c);
}

static void tell(const char *what, uint64_t lost)
{
	print_message("%s: lost %llu again %llu; events %llu, commands %llu, stale %llu, back %llu, timeouts %llu\n",
		      what, (unsigned long long)lost,
		      (unsigned long long)cnt(SKUA_CNT_TX_RETRANS_PKTS),
		      (unsigned long long)cnt(SKUA_CNT_RECOVERY_EVENT),
		      (unsigned long long)cnt(SKUA_CNT_RECOVERY_CMD),
		      (unsigned long long)cnt(SKUA_CNT_RECOVERY_STALE),
		      (unsigned long long)cnt(SKUA_CNT_RECOVERY_FALLBACK),
		      (unsigned long long)cnt(SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR));
}

/* Looks at the requester's loss recovery context, which takes memory on the chip. */
static uint64_t lrc_looks(void)
{
	struct skua_cmd_query_icm_cache_out out;

	assert_int_equal(mini_index(&drv.net.rc.s[0].m, SKUA_CMD_QUERY_ICM_CACHE, SKUA_ICM_LRC,
				    &out, sizeof(out)), SKUA_CMD_ST_OK);
	return le64_to_cpu(out.hits) + le64_to_cpu(out.misses);
}

/* Without faults the driver hears nothing. */
static void test_clean(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(kinds); k++) {
		connect(&(struct opt){ .faults = "delay=20us", .mode = SKUA_EXT_NEGOTIATE });
		run(kinds[k].op, kinds[k].len, 2, 2 * SEC);
		assert_int_equal(cnt(SKUA_CNT_TX_RETRANS_PKTS), 0);
		assert_int_equal(cnt(SKUA_CNT_RECOVERY_EVENT), 0);
		done();
	}
}

/* Packets that wait until up to 64 later ones went past them, or for less than a round trip. */
static void test_reorder(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(kinds); k++) {
		connect(&(struct opt){ .faults = "reorder=20%:64,hold=30us,delay=20us",
				       .mode = SKUA_EXT_ALWAYS });
		run(kinds[k].op, kinds[k].len, 4, 2 * SEC);
		tell(kinds[k].name, 0);
		assert_int_equal(cnt(SKUA_CNT_TX_RETRANS_PKTS), 0);
		assert_int_equal(cnt(SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		assert_true(cnt(SKUA_CNT_RECOVERY_EVENT));
		done();
	}
}

/* What is sent again is as much as was lost, but for what the tail costs. */
static void test_loss(void **state)
{
	static const char *const wires[] = {
		"loss=0.1%,delay=20us", "loss=1%,delay=20us", "loss=5%,delay=20us",
	};

	(void)state;
	for (size_t w = 0; w < N(wires); w++) {
		for (size_t k = 0; k < N(kinds); k++) {
			int data = kinds[k].op == SKUA_WQE_READ ? 1 : 0;
			char spec[100];
			uint64_t lost, looks;

			snprintf(spec, sizeof(spec), "port=nic%d,%s", data, wires[w]);
			connect(&(struct opt){ .faults = spec, .mode = SKUA_EXT_ALWAYS });
			looks = lrc_looks();
			run(kinds[k].op, kinds[k].len, BATCHES, 2 * SEC);
			assert_int_equal(lrc_looks(), looks);
			lost = wire_port_stats(drv.net.port[data])->fault_loss;
			print_message("%s ", spec);
			tell(kinds[k].name, lost);
			assert_int_equal(cnt(SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
			assert_int_equal(cnt(SKUA_CNT_RECOVERY_FALLBACK), 0);
			assert_true(100 * cnt(SKUA_CNT_TX_RETRANS_PKTS) <= 105 * lost + 100 * 3);
			done();
		}
	}
}

/* Acknowledgments and responses are lost, too, and the driver is slow: nothing waits for long. */
static void test_both_ways(void **state)
{
	static const uint64_t late[] = { 5000, 300000, 3 * MS };
	static const char *const wires[] = {
		"loss=5%,delay=2us", "loss=5%,delay=20us", "loss=10%,delay=100us",
		"loss=5%,delay=2us,seed=2", "loss=5%,delay=2us,seed=3", "loss=5%,delay=2us,seed=4",
	};

	(void)state;
	for (size_t w = 0; w < N(wires); w++) {
		for (size_t l = 0; l < N(late); l++) {
			for (size_t k = 0; k < N(kinds); k++) {
				connect(&(struct opt){ .faults = wires[w], .late = late[l],
						       .mode = k % 2 ? SKUA_EXT_ALWAYS :
							       SKUA_EXT_NEGOTIATE,
						       .timeout = 18 });
				run(kinds[k].op, kinds[k].len, 3, 10 * SEC);
				print_message("%s, late by %llu: ", wires[w],
					      (unsigned long long)late[l]);
				tell(kinds[k].name, 0);
				assert_int_equal(cnt(SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
				done();
			}
		}
	}
}

/* A driver that is late, or is no more, or whose event queue is full: all arrives in the end. */
static void test_late(void **state)
{
	static const struct {
		const char *what;
		struct opt opt;
	} cases[] = {
		{ "late by 1 ms", { .late = MS } },
		{ "late by 100 ms", { .late = 100 * MS } },
		{ "gone", { .gone = true } },
		{ "an EQ of 1", { .log_eq = 1 } },
		{ "an EQ of 8", { .log_eq = 4 } },
		{ "an EQ of 8, late", { .log_eq = 4, .late = 20 * MS } },
		{ "gone, no ack timer", { .gone = true, .timeout = 32 } },
	};

	(void)state;
	for (size_t c = 0; c < N(cases); c++) {
		for (size_t k = 0; k < N(kinds); k++) {
			struct opt o = cases[c].opt;

			o.faults = "loss=2%,reorder=5%:32,hold=30us,dup=1%,delay=20us";
			o.mode = SKUA_EXT_ALWAYS;
			connect(&o);
			run(kinds[k].op, kinds[k].len, 2, 20 * SEC);
			print_message("%s, ", cases[c].what);
			tell(kinds[k].name, 0);
			done();
		}
	}
}

/* --- commands by hand --- */

/* The last report; @kind: that must have come. */
static struct skua_eqe_recovery report(enum skua_recovery_kind kind)
{
	struct skua_eqe_recovery e, last = { 0 };
	struct skua_eqe eqe;
	bool found = false;

	while (mini_eq_next(&drv.net.rc.s[0].m, &drv.eq, &eqe)) {
		memcpy(&e, &eqe, sizeof(e));
		if (le32_get_bits(e.what, SKUA_RECOVERY_KIND) != kind)
			continue;
		last = e;
		found = true;
	}
	assert_true(found);
	return last;
}

static void command(enum skua_recovery_op op, uint32_t serial, uint32_t first, uint32_t end)
{
	struct rc_side *s = &drv.net.rc.s[0];

	drv.r.ring[drv.told++ % SKUA_RECOVERY_RING] = (struct skua_recovery_cmd){
		.op = cpu_to_le32(op),
		.serial = cpu_to_le32(serial),
		.first = cpu_to_le32(first),
		.end = cpu_to_le32(end),
	};
	fake_db(&s->f, 0, SKUA_UAR_RECOVERY, drv.told, s->qp.qpn);
	net_pass(&drv.net, 0);
}

/* 64 packets are sent, some of which are lost; nobody does anything about that. */
static struct skua_eqe_recovery lose(void)
{
	struct rc *rc = &drv.net.rc;

	connect(&(struct opt){ .faults = "port=nic0,loss=30%,delay=20us",
			       .mode = SKUA_EXT_ALWAYS, .gone = true });
	rc_fill(rc->s[0].buf, LEN, 5);
	rc_post(rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = LEN });
	net_pass(&drv.net, MS);
	assert_true(le32_to_cpu(rc_query(rc, 0).sqc.valid) & SKUA_SQC_LOSS);
	return report(SKUA_RECOVERY_OPEN);
}

static void arrives(void)
{
	struct rc *rc = &drv.net.rc;

	net_pass(&drv.net, 20 * SEC);
	rc_expect(rc, 0, false, SKUA_CQE_OK);
	rc_check(rc->s[1].buf, LEN, 5);
	net_close(&drv.net);
}

/* Commands of another time, or that name what was not sent, have no effect. */
static void test_stale(void **state)
{
	struct skua_eqe_recovery e = lose();
	uint32_t serial = le32_to_cpu(e.serial), una = le32_to_cpu(e.una);
	uint32_t sent = le32_to_cpu(rc_query(&drv.net.rc, 0).sqc.una_psn);
	const struct {
		uint32_t op, serial, first, end;
	} wrong[] = {
		{ SKUA_RECOVERY_SEND, serial - 1, una, una + 1 },
		{ SKUA_RECOVERY_GO_BACK, serial + 1, 0, 0 },
		{ SKUA_RECOVERY_FAIL, 0, 0, 0 },
		{ 0, serial, una, una + 1 },
		{ 15, serial, una, una + 1 },
		{ SKUA_RECOVERY_SEND, serial, una, una },
		{ SKUA_RECOVERY_SEND, serial, una + 1, una },
		{ SKUA_RECOVERY_SEND, serial, una, una + 2000 },
		{ SKUA_RECOVERY_SEND, serial, una + 0x1000000, una + 0x1000001 },
		{ SKUA_RECOVERY_ADVANCE, serial, 0, una + 2000 },
		{ SKUA_RECOVERY_ADVANCE | 16, serial, 0, una },
	};

	(void)state;
	for (size_t k = 0; k < N(wrong); k++) {
		command(wrong[k].op, wrong[k].serial, wrong[k].first, wrong[k].end);
		assert_int_equal(cnt(SKUA_CNT_RECOVERY_STALE), k + 1);
	}
	assert_int_equal(cnt(SKUA_CNT_TX_RETRANS_PKTS), 0);
	/* Of WRITEs only the peer's word counts. */
	command(SKUA_RECOVERY_ADVANCE, serial, 0, sent + 20);
	assert_int_equal(le32_to_cpu(rc_query(&drv.net.rc, 0).sqc.una_psn), sent);
	rc_expect_none(&drv.net.rc, 0, false);
	assert_int_equal(rc_state(&drv.net.rc, 0), SKUA_QP_RTS);
	arrives();
}

static void test_doorbells(void **state)
{
	struct skua_eqe_recovery e = lose();
	struct rc_side *s = &drv.net.rc.s[0];
	const struct {
		uint32_t page, pi, qpn;
		enum skua_counter count;
	} wrong[] = {
		{ 1, 1, s->qp.qpn, SKUA_CNT_BAD_DB_UAR },
		{ 0, SKUA_RECOVERY_RING + 1, s->qp.qpn, SKUA_CNT_BAD_DB_INDEX },
		{ 0, UINT32_MAX, s->qp.qpn, SKUA_CNT_BAD_DB_INDEX },
		{ 0, 1, s->qp.qpn ^ 1, SKUA_CNT_BAD_DB_QP },
		{ 0, 1, s->qp.qpn | 1u << 31, SKUA_CNT_BAD_DB },
	};

	(void)state;
	for (size_t k = 0; k < N(wrong); k++) {
		uint64_t before = cnt(wrong[k].count);

		fake_db(&s->f, wrong[k].page, SKUA_UAR_RECOVERY, wrong[k].pi, wrong[k].qpn);
		net_pass(&drv.net, 0);
		assert_int_equal(cnt(wrong[k].count), before + 1);
	}
	assert_int_equal(rc_query(&drv.net.rc, 0).sqc.rec_pi, 0);
	assert_true(e.serial);
	arrives();
}

static void test_go_back(void **state)
{
	struct skua_eqe_recovery e = lose();

	(void)state;
	command(SKUA_RECOVERY_GO_BACK, le32_to_cpu(e.serial), 0, 0);
	assert_int_equal(report(SKUA_RECOVERY_CLOSE).serial, e.serial);
	assert_int_equal(cnt(SKUA_CNT_RECOVERY_FALLBACK), 1);
	assert_int_equal(cnt(SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
	assert_true(cnt(SKUA_CNT_TX_RETRANS_PKTS) > 30);
	arrives();
}

static void test_fail(void **state)
{
	struct skua_eqe_recovery e = lose();

	(void)state;
	command(SKUA_RECOVERY_FAIL, le32_to_cpu(e.serial), 0, 0);
	assert_int_equal(rc_state(&drv.net.rc, 0), SKUA_QP_ERR);
	rc_expect_event(&drv.net.rc, 0, SKUA_QP_EV_FATAL);
	rc_expect(&drv.net.rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	net_close(&drv.net);
}

/* A QP that was reset and set up again knows nothing of commands for the one before. */
static void test_reset(void **state)
{
	struct skua_eqe_recovery e = lose();
	struct rc *rc = &drv.net.rc;
	uint32_t stale;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rc_side *s = &rc->s[i];

		assert_int_equal(mini_qp_modify(&s->m, &s->qp, SKUA_QP_RESET, SKUA_QP_M_STATE,
						NULL), SKUA_CMD_ST_OK);
		s->qp.sq_pi = 0;
		s->qp.sq_told = 0;
		memset(fake_ptr(&s->f, s->qp.dbr), 0, sizeof(struct skua_qp_dbr));
		mini_rc_to_rts(&s->m, &s->qp, &s->attr);
	}
	drv.r.ring = fake_ptr(&rc->s[0].f, rc->s[0].m.rec_ring);
	drv.told = 0;
	net_pass(&drv.net, MS);
	rc_post(rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = LEN });
	net_pass(&drv.net, MS);
	assert_true(report(SKUA_RECOVERY_OPEN).serial != e.serial);
	stale = cnt(SKUA_CNT_RECOVERY_STALE);
	command(SKUA_RECOVERY_FAIL, le32_to_cpu(e.serial), 0, 0);
	assert_int_equal(cnt(SKUA_CNT_RECOVERY_STALE), stale + 1);
	arrives();
}

/* The ring cannot be read: the QP ends, and nothing else. */
static void test_ring_gone(void **state)
{
	struct skua_eqe_recovery e = lose();
	struct rc_side *s = &drv.net.rc.s[0];

	(void)state;
	assert_true(e.serial);
	s->f.fail_read = 1;
	command(SKUA_RECOVERY_SEND, le32_to_cpu(e.serial), 0, 1);
	assert_int_equal(rc_state(&drv.net.rc, 0), SKUA_QP_ERR);
	rc_expect_event(&drv.net.rc, 0, SKUA_QP_EV_FATAL);
	assert_int_equal(s->f.dev->fatal, SKUA_FATAL_NONE);
	net_close(&drv.net);
}

/* Only with the capability, and with memory for the ring. */
static void test_attr(void **state)
{
	struct rc_opt opt = { .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS }, .onload = true };
	static struct rc rc;

	(void)state;
	opt.down = true;
	rc_open(&rc, &opt);
	for (unsigned int k = 0; k < 3; k++) {
		struct mini *m = &rc.s[0].m;
		struct skua_qp_attr a = rc_attr(&rc, 0, &opt, rc.s[1].qp.qpn);
		uint32_t table = sizeof(struct skua_ext_slot) << SKUA_EXT_LOG_WINDOW_MAX;
		uint32_t ring = SKUA_RECOVERY_RING * sizeof(struct skua_recovery_cmd);
		uint32_t init = SKUA_QP_M_PKEY | SKUA_QP_M_PORT | SKUA_QP_M_ACCESS;
		struct skua_cmd_modify_qp_in in = {
			.qpn = cpu_to_le32(rc.s[0].qp.qpn),
			.mask = cpu_to_le32(SKUA_QP_M_STATE | SKUA_QP_M_AV | SKUA_QP_M_PATH_MTU |
					    SKUA_QP_M_DEST_QPN | SKUA_QP_M_RQ_PSN |
					    SKUA_QP_M_MAX_DEST_RD_ATOMIC |
					    SKUA_QP_M_MIN_RNR_TIMER | SKUA_QP_M_EXT),
			.cur_state = cpu_to_le32(SKUA_QP_INIT),
			.attr = {
				.av = a.av, .dest_qpn = a.dest_qpn, .rq_psn = a.rq_psn,
				.ext = a.ext,
				.retry = a.retry & cpu_to_le32(SKUA_ATTR_PATH_MTU |
							       SKUA_ATTR_MIN_RNR_TIMER),
				.rights = a.rights & cpu_to_le32(SKUA_ATTR_MAX_DEST_RD_ATOMIC),
				.state = cpu_to_le32(SKUA_QP_RTR),
			},
			.ext_table = cpu_to_le64(fake_alloc(m->f, table + ring, table)),
			/* 1: without the ring. 2: without the capability. */
			.ext_len = cpu_to_le32(table + (k == 1 ? 0 : ring)),
		};

		if (k == 2)
			m->f->dev->caps &= ~SKUA_CAP_RECOVERY;
		assert_int_equal(mini_qp_modify(m, &rc.s[0].qp, SKUA_QP_RESET, SKUA_QP_M_STATE,
						NULL), SKUA_CMD_ST_OK);
		assert_int_equal(mini_qp_modify(m, &rc.s[0].qp, SKUA_QP_INIT,
						SKUA_QP_M_STATE | init, &a), SKUA_CMD_ST_OK);
		assert_int_equal(mini_cmd(m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0),
				 k ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK);
	}
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_go_back),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_ring_gone),
		cmocka_unit_test(test_attr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
