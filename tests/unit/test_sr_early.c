// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, the requester behind a loss: most responses to READs come in their order, and
 * the device does no more for these than it must. What is missing is asked for as soon all the
 * same.
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

#include "net.h"
#include "roce/engine.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))

static void connect(struct net *n, const char *faults)
{
	net_open(n, &(struct rc_opt){ .mtu_code = 3, .log_sq = 9, .log_rq = 8, .timeout = 14,
				      .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS },
				      .psn = { 0xfffa00, 0xffa000 } }, faults);
}

/* Until @num are complete: us from now on. */
static uint64_t complete(struct net *n, unsigned int num)
{
	uint64_t us = 0;

	for (unsigned int k = 0; k < num; k++) {
		struct skua_cqe cqe;

		while (!mini_cq_next(&n->rc.s[0].m, &n->rc.s[0].scq, &cqe)) {
			assert_true(us++ < 20000);
			net_pass(n, 1000);
		}
		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
	}
	return us;
}

/* All is complete, after @us, and closed. */
static void end(struct net *n, const char *what, uint64_t us, uint64_t most, uint64_t want)
{
	uint64_t again = rc_cnt(&n->rc, 0, SKUA_CNT_TX_RETRANS_PKTS);

	if (us > most || again != want)
		fail_msg("%s: %llu us, %llu sent again", what, (unsigned long long)us,
			 (unsigned long long)again);
	net_close(n);
}

/*
 * Eight READs, of which responses or a request are lost, on a path that takes 40 us and keeps the
 * order: without a loss they take 154 us, and what is lost amid the others is there before the
 * last of these.
 */
static const struct {
	const char *what;
	const char *faults;	/* the first response is number 2048 */
	uint64_t us, again;
	bool cold;		/* there are no READs before; the first response is number 0 */
} lost[] = {
	{ "nothing", "", 154, 0 },
	{ "amid", "rule=drop:port=nic1,psn=2236,iter=0", 154, 1 },
	{ "first", "rule=drop:port=nic1,psn=2048,iter=0", 154, 2 },
	{ "near the end", "rule=drop:port=nic1,psn=2557,iter=0", 200, 1 },
	{ "last", "rule=drop:port=nic1,psn=2559,iter=0", 1195, 1 },
	{ "twice", "rule=drop:port=nic1,psn=2236,iter=0-1", 200, 2 },
	{ "twice, then another",
	  "rule=drop:port=nic1,psn=2236,iter=0-1;"
	  "rule=drop:port=nic1,psn=2336,iter=0", 194, 3 },
	{ "another before the first is back",
	  "rule=drop:port=nic1,psn=2236,iter=0;"
	  "rule=drop:port=nic1,psn=2256,iter=0", 154, 2 },
	{ "another after",
	  "rule=drop:port=nic1,psn=2136,iter=0;"
	  "rule=drop:port=nic1,psn=2436,iter=0", 168, 3 },
	{ "another near the end",
	  "rule=drop:port=nic1,psn=2436,iter=0;"
	  "rule=drop:port=nic1,psn=2558,iter=0", 200, 2 },
	{ "another near the end, the first twice",
	  "rule=drop:port=nic1,psn=2500,iter=0-1;"
	  "rule=drop:port=nic1,psn=2558,iter=0", 241, 3 },
	{ "a run", "rule=drop:port=nic1,psn=2186-2216,iter=0", 154, 8 },
	{ "request", "rule=drop:port=nic0,psn=2240,iter=0", 201, 1 },
	{ "cold, 40", "rule=drop:port=nic1,psn=40,iter=0", 154, 1, true },
	{ "cold, 96", "rule=drop:port=nic1,psn=96,iter=0", 154, 1, true },
	{ "cold, 150", "rule=drop:port=nic1,psn=150,iter=0", 154, 1, true },
	{ "cold, 200", "rule=drop:port=nic1,psn=200,iter=0", 154, 1, true },
	{ "cold, 260", "rule=drop:port=nic1,psn=260,iter=0", 154, 1, true },
	{ "cold, 330", "rule=drop:port=nic1,psn=330,iter=0", 156, 1, true },
	{ "cold, 400", "rule=drop:port=nic1,psn=400,iter=0", 171, 1, true },
	{ "cold, 450", "rule=drop:port=nic1,psn=450,iter=0", 182, 1, true },
	{ "cold, 500", "rule=drop:port=nic1,psn=500,iter=0", 193, 1, true },
};

static void test_lost(void **state)
{
	static struct net n;

	(void)state;
	for (size_t c = 0; c < N(lost); c++) {
		char spec[300];
		uint64_t us;

		snprintf(spec, sizeof(spec), "delay=20us,bandwidth=40Gbit;%s", lost[c].faults);
		connect(&n, spec);
		for (unsigned int k = 0; k < 4 && !lost[c].cold; k++) {
			net_post(&n, SKUA_WQE_READ, 8);
			complete(&n, 8);
		}
		net_post(&n, SKUA_WQE_READ, 8);
		us = complete(&n, 8);
		end(&n, lost[c].what, us, lost[c].us, lost[c].again);
	}
}

/*
 * 30 READs, eight of which are under way at any time, on a connection of which no round trip is
 * known. What is sent again is lost again, or other responses meanwhile.
 */
static const struct {
	const char *faults;
	uint64_t us, again;
} stream[] = {
	{ "", 453, 0 },
	{ "rule=drop:port=nic1,psn=96,iter=0", 561, 1 },
	{ "rule=drop:port=nic1,psn=200,iter=0", 554, 1 },
	{ "rule=drop:port=nic1,psn=300,iter=0", 554, 1 },
	{ "rule=drop:port=nic1,psn=96,iter=0-1", 837, 2 },
	{ "rule=drop:port=nic1,psn=600,iter=0-1", 789, 2 },
	{ "rule=drop:port=nic1,psn=1400,iter=0-1", 763, 2 },
	{ "rule=drop:port=nic1,psn=1400,iter=0-2", 1183, 3 },
	{ "rule=drop:port=nic1,psn=1400,iter=0-1;"
	  "rule=drop:port=nic1,psn=1450,iter=0", 658, 3 },
	{ "rule=drop:port=nic1,psn=1400,iter=0;"
	  "rule=drop:port=nic1,psn=1450,iter=0-1", 649, 3 },
	{ "rule=drop:port=nic1,psn=1400,iter=0-1;"
	  "rule=drop:port=nic1,psn=1700,iter=0", 741, 3 },
	{ "rule=drop:port=nic1,psn=1400,iter=0;"
	  "rule=drop:port=nic1,psn=1700,iter=0-1", 649, 3 },
	{ "rule=drop:port=nic1,psn=1400-1500,iter=0;"
	  "rule=drop:port=nic1,psn=1420-1440,iter=1", 561, 11 },
	{ "rule=drop:port=nic0,psn=640,iter=0-1", 857, 2 },
};

static void test_stream(void **state)
{
	static struct net n;

	(void)state;
	for (size_t c = 0; c < N(stream); c++) {
		char spec[300];
		uint64_t us = 0;

		snprintf(spec, sizeof(spec), "delay=50us,bandwidth=100Gbit;%s", stream[c].faults);
		connect(&n, spec);
		net_post(&n, SKUA_WQE_READ, 8);
		for (unsigned int k = 8; k < 38; k++) {
			us += complete(&n, 1);
			if (k < 30)
				net_post(&n, SKUA_WQE_READ, 1);
		}
		end(&n, stream[c].faults, us, stream[c].us, stream[c].again);
	}
}

/* @num READs of @len bytes, each from and to a place of its own. */
static void post_apart(struct net *n, unsigned int first, unsigned int num, uint32_t len)
{
	for (unsigned int k = first; k < first + num; k++)
		rc_post_quiet(&n->rc, 0, &n->rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_READ, .len = len, .off = k * NET_LEN_MAX,
			.roff = k * NET_LEN_MAX });
}

static void check_apart(struct net *n, unsigned int first, unsigned int num, uint32_t len)
{
	for (unsigned int k = first; k < first + num; k++)
		assert_memory_equal(n->rc.s[0].buf + k * NET_LEN_MAX,
				    n->rc.s[1].buf + k * NET_LEN_MAX, len);
}

static void restart(struct net *n)
{
	rc_reset(&n->rc);
	for (int i = 0; i < 2; i++)
		mini_rc_to_rts(&n->rc.s[i].m, &n->rc.s[i].qp, &n->rc.s[i].attr);
}

/* Does the device remember where a search for a message of the QP ended? */
static bool remembers(struct net *n)
{
	const struct engine *e = n->rc.s[0].f.dev->engine;

	for (size_t i = 0; i < N(e->walks); i++) {
		if (e->walks[i].incarnation && e->walks[i].qpn == n->rc.s[0].qp.qpn)
			return true;
	}
	return false;
}

/*
 * The first responses are lost, and all others come early. Where the search for their messages
 * ended is remembered, but not in the QP's next life, in which those have other lengths; nor after
 * a reset of the device.
 */
static void test_next_life(void **state)
{
	static const char *const first[] = {
		"rule=drop:port=nic1,psn=0,iter=0",
		/* PSNs begin anew. The first to come is of the last READ but one. */
		"rule=drop:port=nic1,psn=0,iter=2;rule=drop:port=nic1,psn=1-450,iter=1",
	};
	static struct net n;
	char err[200];

	(void)state;
	connect(&n, "delay=20us");
	for (unsigned int life = 0; life < 2; life++) {
		rc_fill(n.rc.s[1].buf, 16 * NET_LEN_MAX, life);
		assert_int_equal(wire_fault(n.wire, first[life], err, sizeof(err)), 0);
		post_apart(&n, 0, 8, life ? 64 : NET_LEN_MAX);
		post_apart(&n, 8, life * 8, NET_LEN_MAX);
		mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
		complete(&n, life ? 16 : 8);
		check_apart(&n, 0, 8, life ? 64 : NET_LEN_MAX);
		check_apart(&n, 8, life * 8, NET_LEN_MAX);
		assert_true(remembers(&n));
		assert_int_equal(wire_port_stats(n.port[1])->fault_loss, life ? 452 : 1);
		/* The QP's first life changes nothing in the second one. */
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), life ? 1 + 16 : 1);
		if (!life)
			restart(&n);
	}
	dev_hw_reset(n.rc.s[0].f.dev);
	assert_false(remembers(&n));
	net_close(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_next_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
