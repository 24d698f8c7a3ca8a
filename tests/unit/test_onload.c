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

#include "onload.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define SEC		1000000000ull
#define MS		1000000ull
#define LEN		NET_LEN_MAX
#define BATCHES		12

/**
 * struct drv - the driver of side 0
 * @net: the devices
 * @o: what it knows
 */
struct drv {
	struct net net;
	struct onload o;
};

static struct drv drv;

static struct onload_side *const side = &drv.o.side[0];

struct opt {
	const char *faults;
	uint32_t mode, log_eq, timeout, log_window, peer_log_window;
	uint64_t late;
	bool gone;
};

static void connect(const struct opt *o)
{
	struct rc_opt opt = {
		.mtu_code = 3, .log_sq = 9, .log_rq = 8, .timeout = o->timeout ? o->timeout : 14,
		.ext = { o->mode, o->mode }, .psn = { 0xfffa00, 0xffa000 }, .onload = true,
		.log_window = o->log_window, .peer_log_window = o->peer_log_window,
	};

	memset(&drv, 0, sizeof(drv));
	net_open(&drv.net, &opt, o->faults);
	onload_start(&drv.net, &drv.o);
	onload_side(&drv.net, 0, o->log_window ? o->log_window : SKUA_EXT_LOG_WINDOW_MAX,
		    o->log_eq ? o->log_eq - 1 : ONLOAD_LOG_EQ, o->late ? o->late : 5000);
	side->gone = o->gone;
}

static void done(void)
{
	/* Reports and commands, all of them, were understood. */
	assert_int_equal(side->r.bad, 0);
	net_close(&drv.net);
}

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
	for (size_t k = 0; k < N(net_kinds); k++) {
		connect(&(struct opt){ .faults = "delay=20us", .mode = SKUA_EXT_NEGOTIATE });
		net_run(&drv.net, &net_kinds[k], 2, 2 * SEC);
		assert_int_equal(cnt(SKUA_CNT_TX_RETRANS_PKTS), 0);
		assert_int_equal(cnt(SKUA_CNT_RECOVERY_EVENT), 0);
		done();
	}
}

/* Packets that wait until up to 64 later ones went past them, or for less than a round trip. */
static void test_reorder(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(net_kinds); k++) {
		connect(&(struct opt){ .faults = "reorder=20%:64,hold=30us,delay=20us",
				       .mode = SKUA_EXT_ALWAYS });
		net_run(&drv.net, &net_kinds[k], 4, 2 * SEC);
		tell(net_kinds[k].name, 0);
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
		for (size_t k = 0; k < N(net_kinds); k++) {
			int data = net_kinds[k].op == SKUA_WQE_READ ? 1 : 0;
			char spec[100];
			uint64_t lost, looks;

			snprintf(spec, sizeof(spec), "port=nic%d,%s", data, wires[w]);
			connect(&(struct opt){ .faults = spec, .mode = SKUA_EXT_ALWAYS });
			looks = lrc_looks();
			net_run(&drv.net, &net_kinds[k], BATCHES, 2 * SEC);
			assert_int_equal(lrc_looks(), looks);
			lost = wire_port_stats(drv.net.port[data])->fault_loss;
			print_message("%s ", spec);
			tell(net_kinds[k].name, lost);
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
			for (size_t k = 0; k < N(net_kinds); k++) {
				connect(&(struct opt){ .faults = wires[w], .late = late[l],
						       .mode = k % 2 ? SKUA_EXT_ALWAYS :
							       SKUA_EXT_NEGOTIATE,
						       .timeout = 18 });
				net_run(&drv.net, &net_kinds[k], 3, 10 * SEC);
				print_message("%s, late by %llu: ", wires[w],
					      (unsigned long long)late[l]);
				tell(net_kinds[k].name, 0);
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
		for (size_t k = 0; k < N(net_kinds); k++) {
			struct opt o = cases[c].opt;

			o.faults = "loss=2%,reorder=5%:32,hold=30us,dup=1%,delay=20us";
			o.mode = SKUA_EXT_ALWAYS;
			connect(&o);
			net_run(&drv.net, &net_kinds[k], getenv("SKUA_LONG") ? 2 : 1, 20 * SEC);
			print_message("%s, ", cases[c].what);
			tell(net_kinds[k].name, 0);
			done();
		}
	}
}

/*
 * Nothing came that a report could tell of, nobody hears that it is asked for, and there is no ack
 * timer: the QP goes back by itself.
 */
static void test_gone_silent(void **state)
{
	(void)state;
	connect(&(struct opt){ .faults = "delay=20us;rule=drop:port=nic0,psn=0,iter=0",
			       .mode = SKUA_EXT_ALWAYS, .gone = true, .timeout = 32 });
	rc_post(&drv.net.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
	net_pass(&drv.net, SEC);
	rc_expect(&drv.net.rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(cnt(SKUA_CNT_RECOVERY_FALLBACK), 1);
	done();
}

/* A peer that takes fewer packets out of order than the QP would. */
static void test_narrow(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(net_kinds); k++) {
		connect(&(struct opt){ .faults = "loss=2%,delay=20us", .mode = SKUA_EXT_ALWAYS,
				       .peer_log_window = 7 });
		net_run(&drv.net, &net_kinds[k], 4, 2 * SEC);
		tell(net_kinds[k].name, 0);
		assert_int_equal(cnt(SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		assert_true(cnt(SKUA_CNT_RECOVERY_CMD));
		assert_int_equal(side->r.window, 128);
		assert_in_range(side->r.distance, 32, 96);
		done();
	}
}

/* All is acknowledged and sent in no time: much goes by from one report to the next. */
static void test_no_delay(void **state)
{
	static const char *const wires[] = {
		"loss=1%", "loss=5%,reorder=5%:64", "loss=20%", "loss=1%,delay=1us",
	};

	(void)state;
	for (size_t w = 0; w < N(wires); w++) {
		for (size_t k = 0; k < N(net_kinds); k++) {
			connect(&(struct opt){ .faults = wires[w], .mode = SKUA_EXT_ALWAYS,
					       .timeout = 18 });
			net_run(&drv.net, &net_kinds[k], 4, 20 * SEC);
			print_message("%s, ", wires[w]);
			tell(net_kinds[k].name, 0);
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

	while (mini_eq_next(&drv.net.rc.s[0].m, &side->eq, &eqe)) {
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

	side->r.ring[side->told++ % SKUA_RECOVERY_RING] = (struct skua_recovery_cmd){
		.op = cpu_to_le32(op),
		.serial = cpu_to_le32(serial),
		.first = cpu_to_le32(first),
		.end = cpu_to_le32(end),
	};
	fake_db(&s->f, 0, SKUA_UAR_RECOVERY, side->told, s->qp.qpn);
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
	/* The driver need not ask any more. */
	assert_int_equal(report(SKUA_RECOVERY_CLOSE).serial, e.serial);
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
	side->r.ring = fake_ptr(&rc->s[0].f, rc->s[0].m.rec_ring);
	side->told = 0;
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
		uint32_t table = SKUA_EXT_TABLE_BYTES(SKUA_EXT_LOG_WINDOW_MAX);
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

/* As with the loss state in the device: the peer's QP has ended behind a READ. */
static void test_nak_ahead(void **state)
{
	static const struct {
		const char *faults;
		bool lost;
	} cases[] = {
		{ "delay=20us;rule=reorder/100us:port=nic1,frame=3-5", false },
		{ "delay=20us;rule=drop:port=nic1,frame=3", true },
		{ "delay=20us;rule=drop:port=nic1,frame=0-63", true },
	};

	(void)state;
	for (size_t c = 0; c < N(cases); c++) {
		struct rc *rc = &drv.net.rc;

		print_message("%s\n", cases[c].faults);
		connect(&(struct opt){ .faults = cases[c].faults, .mode = SKUA_EXT_ALWAYS });
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = LEN });
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .len = 64, .rkey = 0xbad00 });
		mini_ring(&rc->s[0].m, &rc->s[0].qp);
		net_pass(&drv.net, 20 * MS);
		rc_expect(rc, 0, false, cases[c].lost ? SKUA_CQE_RETRY_EXC_ERR : SKUA_CQE_OK);
		rc_expect(rc, 0, false, cases[c].lost ? SKUA_CQE_WR_FLUSH_ERR :
							SKUA_CQE_REM_ACCESS_ERR);
		assert_int_equal(cnt(SKUA_CNT_REQ_REMOTE_ACCESS), 1);
		assert_int_equal(cnt(SKUA_CNT_RETRY_EXCEEDED), cases[c].lost);
		assert_int_equal(cnt(SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		done();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_gone_silent),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_no_delay),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_go_back),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_nak_ahead),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_ring_gone),
		cmocka_unit_test(test_attr),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
