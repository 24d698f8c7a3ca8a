// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat between two devices and a wire that loses and reorders: what is sent
 * again is what was lost, and hardly more; nothing is for reordering alone.
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
#define SEC		1000000000ull
#define BATCHES		12

static void connect(struct net *n, uint32_t mode, const char *faults)
{
	net_open(n, &(struct rc_opt){ .mtu_code = 3, .log_sq = 9, .log_rq = 8, .timeout = 14,
				      .ext = { mode, mode }, .psn = { 0xfffa00, 0xffa000 } },
		 faults);
}

/* Without faults nothing is sent twice, and what is said of selective repeat is nothing. */
static void test_clean(void **state)
{
	static struct net n;

	(void)state;
	for (size_t k = 0; k < N(net_kinds); k++) {
		connect(&n, SKUA_EXT_NEGOTIATE, "delay=20us");
		net_run(&n, &net_kinds[k], 2, 2 * SEC);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_TX_RETRANS_PKTS), 0);
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_TX_SACK), 0);
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_RX_EARLY), 0);
			assert_int_equal(rc_cnt(&n.rc, i, SKUA_CNT_TX_PROBE), 0);
		}
		net_close(&n);
	}
}

/* Packets that wait until up to 64 later ones went past them, or for less than a round trip. */
static void test_reorder(void **state)
{
	static struct net n;

	(void)state;
	for (size_t k = 0; k < N(net_kinds); k++) {
		connect(&n, SKUA_EXT_ALWAYS, "reorder=20%:64,hold=30us,delay=20us");
		net_run(&n, &net_kinds[k], 4, 2 * SEC);
		print_message("%s: early %llu, again %llu\n", net_kinds[k].name,
			      (unsigned long long)rc_cnt(&n.rc, 1, SKUA_CNT_RX_EARLY),
			      (unsigned long long)rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS));
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		net_close(&n);
	}
}

/*
 * Requests that are lost, or responses: the packets sent again, READ responses asked for
 * again among them, are as many as were lost but for what the tail costs.
 */
static void test_loss(void **state)
{
	static const char *const wires[] = {
		"loss=0.1%,delay=20us", "loss=1%,delay=20us", "loss=5%,delay=20us",
	};
	static struct net n;

	(void)state;
	for (size_t w = 0; w < N(wires); w++) {
		for (size_t k = 0; k < N(net_kinds); k++) {
			uint64_t lost, again, sent;
			int data = net_kinds[k].op == SKUA_WQE_READ ? 1 : 0;
			char spec[100];

			snprintf(spec, sizeof(spec), "port=nic%d,%s", data, wires[w]);
			connect(&n, SKUA_EXT_ALWAYS, spec);
			net_run(&n, &net_kinds[k], BATCHES, 2 * SEC);
			lost = wire_port_stats(n.port[data])->fault_loss;
			sent = n.rc.s[data].f.sent;
			again = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
			print_message("%s %s: sent %llu lost %llu again %llu, probes %llu, timeouts %llu\n",
				      spec, net_kinds[k].name, (unsigned long long)sent,
				      (unsigned long long)lost, (unsigned long long)again,
				      (unsigned long long)rc_cnt(&n.rc, 0, SKUA_CNT_TX_PROBE),
				      (unsigned long long)rc_cnt(&n.rc, 0,
								 SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR));
			assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
			/* What the ends of the batches cost besides. */
			assert_true(100 * again <= 105 * lost + 100 * 3);
			/* Enough comes behind what is missing, so that nobody has to ask. */
			if (net_kinds[k].len == NET_LEN_MAX)
				assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_PROBE), 0);
			net_close(&n);
		}
	}
}

/*
 * A path that is longer than what is waited for while no round trip was measured: it is known
 * after the first message, and nothing is sent twice from then on.
 */
static void test_far(void **state)
{
	static struct net n;
	uint64_t again = 0;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=5ms");
	for (unsigned int k = 0; k < 64; k++) {
		rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
		net_pass(&n, SEC);
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
		if (!k)
			again = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
	}
	assert_in_range(again, 1, 4);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), again);
	net_close(&n);
}

/*
 * WQEs without packets behind one that is lost: no more of them are executed than may be looked
 * through at each time of loss; and all are in the end.
 */
static void test_locals(void **state)
{
	struct rc_opt opt = { .log_sq = 12, .log_cq = 12, .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } };
	static struct net n;
	struct skua_sqc sqc;
	uint64_t before;

	(void)state;
	net_open(&n, &opt, "port=nic0,loss=100%");
	rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
	for (unsigned int k = 0; k < 3000; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_settle(&n);
	sqc = rc_query(&n.rc, 0).sqc;
	assert_in_range(le32_to_cpu(sqc.cur) - le32_to_cpu(sqc.ci), 500, 530);
	before = n.rc.s[0].f.reads;
	net_pass(&n, 5000000);
	assert_true(rc_cnt(&n.rc, 0, SKUA_CNT_TX_PROBE) > 0);
	assert_true(n.rc.s[0].f.reads - before < 1000);
	wire_fault_clear(n.wire);
	net_pass(&n, 2 * SEC);
	for (unsigned int k = 0; k < 3001; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&n.rc, 0, false);
	net_close(&n);
}

/* --- a guest that changes what was sent, and has acknowledgments come that make it be walked --- */

#define FIRST	100

/*
 * One WRITE of one block and @num of @len bytes, and @nops NOPs; nothing gets through, and the
 * cache of messages under way has places for others only.
 */
static void open_lost(struct net *n, unsigned int num, uint32_t len, unsigned int nops)
{
	struct rc_opt opt = { .log_sq = 13, .log_cq = 13, .psn = { FIRST, 7 },
			      .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } };

	net_open(n, &opt, "port=nic0,loss=100%");
	rc_post_quiet(&n->rc, 0, &n->rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 64 });
	for (unsigned int k = 0; k < num; k++)
		rc_post_quiet(&n->rc, 0, &n->rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .flags = SKUA_WQE_F_INLINE, .len = len });
	for (unsigned int k = 0; k < nops; k++)
		rc_post_quiet(&n->rc, 0, &n->rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	mini_ring(&n->rc.s[0].m, &n->rc.s[0].qp);
	net_settle(n);
}

/* The blocks from @from up to @to become NOPs. */
static void make_nops(struct net *n, uint32_t from, uint32_t to)
{
	struct mini_qp qp = n->rc.s[0].qp;

	for (qp.sq_pi = from; qp.sq_pi != to;)
		rc_post_quiet(&n->rc, 0, &qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	memset(n->rc.s[0].f.dev->engine->flight, 0, sizeof(n->rc.s[0].f.dev->engine->flight));
}

/* To side 0: the first packet is missing, that of number @psn has come. Reads that this takes. */
static uint64_t forge_bitmap(struct net *n, uint32_t psn)
{
	uint64_t before = n->rc.s[0].f.reads;
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(&n->rc, 1, &b, frame, sizeof(frame), IB_OPCODE(SKUA_RC, ACK),
				  FIRST - 1), 0);
	ib_aeth_put(b.aeth, IB_AETH_ACK | IB_AETH_CREDIT_INVALID, 0);
	memset(b.payload, 0, 64);
	b.payload[psn / 8] = (uint8_t)(1u << psn % 8);
	rc_inject(&n->rc, 0, &b, 64);
	return n->rc.s[0].f.reads - before;
}

/*
 * A message that became a NOP: what it is looked for in ends with what was sent, not with what
 * is posted.
 */
static void test_walk_sent(void **state)
{
	static struct net n;

	(void)state;
	open_lost(&n, 1, 8, 6000);
	make_nops(&n, 1, 2);
	assert_in_range(forge_bitmap(&n, 1), 500, 700);
	make_nops(&n, 1, 2);
	assert_in_range(forge_bitmap(&n, 1), 500, 700);
	assert_int_equal(rc_state(&n.rc, 0), SKUA_QP_RTS);
	net_close(&n);
}

/*
 * Messages of nine blocks each became as many NOPs. What was sent never was so many WQEs: neither
 * at the beginning of a time of loss nor in it are they all looked at.
 */
static void test_walk_more(void **state)
{
	static struct net n;
	struct skua_cqe cqe;

	(void)state;
	open_lost(&n, 450, 512, 0);
	assert_true(forge_bitmap(&n, 1) < 1000);
	make_nops(&n, 1, 1 + 450 * 9);
	assert_in_range(forge_bitmap(&n, 2), 1000, 1050);
	assert_int_equal(rc_state(&n.rc, 0), SKUA_QP_RTS);
	net_close(&n);

	open_lost(&n, 450, 512, 0);
	make_nops(&n, 1, 1 + 450 * 9);
	assert_in_range(forge_bitmap(&n, 1), 1000, 1050);
	cqe = rc_expect(&n.rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_CHANGED);
	net_close(&n);
}

/* As many WQEs as there can be of what was sent, with packets and without: the last is found. */
static void test_walk_most(void **state)
{
	static struct net n;

	(void)state;
	open_lost(&n, 0, 0, 512);
	for (unsigned int k = 0; k < 511; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .flags = SKUA_WQE_F_INLINE, .len = 8 });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_settle(&n);
	assert_int_equal(le32_to_cpu(rc_query(&n.rc, 0).sqc.cur), 1024);
	forge_bitmap(&n, 511);
	assert_int_equal(le32_to_cpu(rc_lrc(&n.rc)->top), FIRST + 512);
	wire_fault_clear(n.wire);
	net_pass(&n, 2 * SEC);
	for (unsigned int k = 0; k < 1024; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	net_close(&n);
}

/* @num WRITEs of 64 KiB; within @ns all are complete. */
static void writes(struct net *n, unsigned int num, uint64_t ns)
{
	net_post(n, SKUA_WQE_WRITE, num);
	net_pass(n, ns);
	for (unsigned int k = 0; k < num; k++)
		rc_expect(&n->rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&n->rc, 0, false);
}

/*
 * A path that has kept the order: what is lost is there one round trip after that is known,
 * which is at once if some packets came behind it, and a small part of a round trip later if
 * few did. What is lost once more is there as long after it would have come.
 */
static void test_calm(void **state)
{
	static const struct {
		const char *faults;
		uint64_t us, again;
	} cases[] = {
		/* The second 512 packets begin with number 512; 40 us are a round trip. */
		{ "rule=drop:port=nic0,psn=1000,iter=0", 80, 1 },
		{ "rule=drop:port=nic0,psn=1021,iter=0", 92, 1 },
		{ "rule=drop:port=nic0,psn=600-603,iter=0;rule=drop:port=nic0,psn=1000,iter=0", 80, 5 },
		{ "rule=drop:port=nic0,psn=1000,iter=0-1", 180, 2 },
		/* The other one that was sent again shows it. */
		{ "rule=drop:port=nic0,psn=600,iter=0-1;rule=drop:port=nic0,psn=1000,iter=0", 122, 3 },
	};
	static struct net n;

	(void)state;
	for (size_t c = 0; c < N(cases); c++) {
		char spec[200];

		snprintf(spec, sizeof(spec), "delay=20us;%s", cases[c].faults);
		connect(&n, SKUA_EXT_ALWAYS, spec);
		for (unsigned int k = 0; k < 8; k++)
			writes(&n, 1, 42000);
		print_message("%s\n", cases[c].faults);
		writes(&n, 8, cases[c].us * 1000);
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), cases[c].again);
		net_close(&n);
	}
}

/*
 * A loss that shows while another one is repaired is repaired as soon. That it came tells that the
 * first one was lost once more.
 */
static void test_calm_later(void **state)
{
	static const struct {
		const char *first;
		uint64_t us, again;
	} cases[] = {
		{ "0", 82, 2 },
		{ "0-1", 122, 3 },
	};
	static struct net n;

	(void)state;
	for (size_t c = 0; c < N(cases); c++) {
		char spec[200];

		snprintf(spec, sizeof(spec), "delay=20us;rule=drop:port=nic0,psn=522,iter=%s;"
			 "rule=drop:port=nic0,psn=586,iter=0", cases[c].first);
		connect(&n, SKUA_EXT_ALWAYS, spec);
		for (unsigned int k = 0; k < 8; k++)
			writes(&n, 1, 42000);
		net_post(&n, SKUA_WQE_WRITE, 1);
		net_pass(&n, 10000);
		net_post(&n, SKUA_WQE_WRITE, 1);
		net_pass(&n, cases[c].us * 1000);
		for (unsigned int k = 0; k < 2; k++)
			rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), cases[c].again);
		net_close(&n);
	}
}

/*
 * A path that kept the order and does not any longer: one packet may be sent again in vain,
 * and none of those that are as late after it; nor after as many in order as had made it calm.
 */
static void test_learn(void **state)
{
	char spec[400] = "delay=20us";
	static struct net n;

	(void)state;
	for (unsigned int k = 0; k < 5; k++)
		snprintf(spec + strlen(spec), sizeof(spec) - strlen(spec),
			 ";rule=reorder/12us:port=nic0,psn=%u,iter=0", 1024 + k * 512 + 440);
	connect(&n, SKUA_EXT_ALWAYS, spec);
	for (unsigned int k = 0; k < 16; k++)
		writes(&n, 1, 42000);
	for (unsigned int k = 0; k < 5; k++)
		writes(&n, 8, 1000000);
	assert_int_equal(wire_port_stats(n.port[0])->fault_reorder, 5);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 1);
	net_close(&n);
}

/*
 * A READ that the peer held until the one before it came again: its response and all that tells
 * of it are lost.
 */
static void test_held_lost(void **state)
{
	static struct net n;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us;rule=drop:port=nic0,psn=0,iter=0;"
		"rule=drop:port=nic1,frame=2-3");
	for (unsigned int k = 0; k < 2; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_READ, .len = 64, .off = k * 64, .roff = k * 64 });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_pass(&n, 50000000);
	for (unsigned int k = 0; k < 2; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(wire_port_stats(n.port[1])->fault_loss, 2);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
	net_close(&n);
}

/*
 * READs that the peer held are not asked for again while it answers them, however slowly, on a path
 * that is known to keep the order; nor is the request before them that had been lost.
 */
static void test_held_slow(void **state)
{
	const uint32_t len = NET_LEN_MAX;
	static struct net n;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us;rule=drop:port=nic0,psn=1024,iter=0;"
		"rule=delay/15us:port=nic1,psn=1100;rule=delay/15us:port=nic1,psn=1180");
	for (unsigned int k = 0; k < 16; k++)
		writes(&n, 1, 42000);
	for (unsigned int k = 0; k < 4; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_READ, .len = len });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_pass(&n, SEC);
	for (unsigned int k = 0; k < 4; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(wire_port_stats(n.port[0])->fault_loss, 1);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 1);
	net_close(&n);
}

/*
 * SENDs wait for receives, WRITEs behind them have come: after the RNR NAK's time each SEND is
 * sent again once.
 */
static void test_rnr(void **state)
{
	static struct net n;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us");
	for (unsigned int k = 0; k < 4; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_SEND, .len = 64 });
	for (unsigned int k = 0; k < 4; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .len = NET_LEN_MAX });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_pass(&n, 60000);
	assert_true(rc_cnt(&n.rc, 1, SKUA_CNT_TX_RNR) > 0);
	for (unsigned int k = 0; k < 4; k++)
		rc_recv(&n.rc, 1, k * 64, 64);
	net_pass(&n, SEC);
	for (unsigned int k = 0; k < 8; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	print_message("RNR: again %llu\n",
		      (unsigned long long)rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS));
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 4);
	net_close(&n);
}

/* These and no others. */
static void set_faults(struct net *n, const char *faults)
{
	char err[200];

	wire_fault_clear(n->wire);
	assert_int_equal(wire_fault(n->wire, faults, err, sizeof(err)), 0);
}

/*
 * An ack timeout of more than two hours. Of two SENDs one or both find no receive or no credits for
 * a while, and what is sent again for that is lost too: it is asked for, whatever waits behind it.
 */
static void test_waits_lost(void **state)
{
	static const struct {
		const char *first, *then;	/* faults, from the RNR NAK on */
		unsigned int recvs, rnr, before;	/* done before there is another receive */
	} cases[] = {
		/* Both wait until the RNR NAK's time is over; the first one is lost then. */
		{ "delay=20us", "delay=20us;rule=drop:port=nic0,count=1", 0, 1, 0 },
		/* Both are lost, and a WRITE tells of that; there are credits for the first one. */
		{ "delay=20us;rule=drop:port=nic0,psn=0,iter=0-1;rule=drop:port=nic0,psn=1,iter=0",
		  NULL, 1, 0, 1 },
		/* The first is lost; the second comes and needs two receives. */
		{ "delay=20us;rule=drop:port=nic0,psn=0,iter=0", NULL, 1, 0, 1 },
	};
	static struct net n;

	(void)state;
	for (unsigned int c = 0; c < N(cases); c++) {
		unsigned int num = c == 1 ? 3 : 2;

		print_message("%s\n", cases[c].first);
		net_open(&n, &(struct rc_opt){ .mtu_code = 3, .timeout = 31,
					       .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } },
			 cases[c].first);
		for (unsigned int k = 0; k < cases[c].recvs; k++)
			rc_recv(&n.rc, 1, k * 64, 64);
		for (unsigned int k = 0; k < num; k++)
			rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
				.op = k < 2 ? SKUA_WQE_SEND : SKUA_WQE_WRITE, .len = 64,
				.roff = 4096 });
		mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
		net_pass(&n, 60000);
		assert_int_equal(rc_cnt(&n.rc, 1, SKUA_CNT_TX_RNR), cases[c].rnr);
		if (cases[c].then)
			set_faults(&n, cases[c].then);
		if (cases[c].rnr)
			rc_recv(&n.rc, 1, 0, 64);
		net_pass(&n, 40000000);
		for (unsigned int k = 0; k < cases[c].before; k++)
			rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
		rc_recv(&n.rc, 1, 64, 64);
		net_pass(&n, 40000000);
		for (unsigned int k = cases[c].before; k < num; k++)
			rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
		net_close(&n);
	}
}

/*
 * Two requests with a response, of WQEs that have the same place in the cache of messages: the
 * response to the first one is lost, that to the second comes early, and goes to its own buffer.
 */
static void test_one_place(void **state)
{
	enum { READ_AT = 0, FAA_AT = 64, BLOCKS = 9, FILL = (1 << ENGINE_LOG_FLIGHTS) / BLOCKS };
	const uint64_t value[2] = { htole64(0x1111), htole64(0x2222) };
	static struct net n;
	struct rc_side *s;

	(void)state;
	_Static_assert(1 + FILL * BLOCKS == 1 << ENGINE_LOG_FLIGHTS, "they have the same place");
	net_open(&n, &(struct rc_opt){ .mtu_code = 3, .log_sq = 13, .timeout = 31,
				       .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } },
		 "delay=20us;rule=drop:port=nic1,op=rc_read_resp_only,count=1");
	s = n.rc.s;
	memcpy(s[1].buf + READ_AT, &value[0], 8);
	memcpy(s[1].buf + FAA_AT, &value[1], 8);
	rc_post_quiet(&n.rc, 0, &s[0].qp, &(struct rc_wr){
		.op = SKUA_WQE_READ, .len = 8, .off = READ_AT, .roff = READ_AT });
	for (unsigned int k = 0; k < FILL; k++)
		rc_post_quiet(&n.rc, 0, &s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .flags = SKUA_WQE_F_INLINE, .len = 512,
			.off = 8192, .roff = 8192 });
	rc_post_quiet(&n.rc, 0, &s[0].qp, &(struct rc_wr){
		.op = SKUA_WQE_FAA, .len = 8, .off = FAA_AT, .roff = FAA_AT,
		.atomic[0].swap_add = 1 });
	mini_ring(&s[0].m, &s[0].qp);
	net_pass(&n, SEC);
	for (unsigned int k = 0; k < FILL + 2; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(wire_port_stats(n.port[1])->fault_loss, 1);
	assert_memory_equal(s[0].buf + READ_AT, &value[0], 8);
	assert_memory_equal(s[0].buf + FAA_AT, &value[1], 8);
	net_close(&n);
}

/*
 * The peer is silent while a packet is known to be missing, which was sent again already: that
 * one is asked for less and less often, and no timer runs for a hole that nothing is done about.
 */
static void test_silent(void **state)
{
	unsigned int before;
	static struct net n;
	char err[200];

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us;rule=drop:port=nic0,psn=1000,iter=0");
	for (unsigned int k = 0; k < 8; k++)
		writes(&n, 1, 42000);
	for (unsigned int k = 0; k < 8; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .len = NET_LEN_MAX });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_pass(&n, 41000);
	assert_int_equal(wire_fault(n.wire, "loss=100%", err, sizeof(err)), 0);
	before = n.ticks;
	net_pass(&n, 4000000);
	assert_true(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS) >= 1);
	assert_in_range(n.ticks - before, 1, 60);
	wire_fault_clear(n.wire);
	net_pass(&n, 2 * SEC);
	for (unsigned int k = 0; k < 8; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&n.rc, 0, false);
	net_close(&n);
}

/*
 * A response to a READ is missing when the path fails, for longer than it takes until the peer is
 * asked as rarely as it ever is. The last response is there, so that it is of no use to ask for
 * that one: when the path is back the first one is asked for, without waiting for the ACK timeout.
 */
static void test_read_outage(void **state)
{
	static struct net n;
	char err[200];

	(void)state;
	net_open(&n, &(struct rc_opt){ .mtu_code = 3, .log_sq = 9, .log_rq = 8, .timeout = 31,
				       .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } }, "delay=20us");
	for (unsigned int k = 0; k < 8; k++)
		writes(&n, 1, 42000);
	assert_int_equal(wire_fault(n.wire, "rule=drop:port=nic1,op=rc_read_resp_middle,count=1",
				    err, sizeof(err)), 0);
	rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 32 * 1024 });
	net_pass(&n, 45000);
	assert_int_equal(wire_port_stats(n.port[1])->fault_loss, 1);
	assert_int_equal(wire_fault(n.wire, "loss=100%", err, sizeof(err)), 0);
	net_pass(&n, SEC);
	rc_expect_none(&n.rc, 0, false);
	wire_fault_clear(n.wire);
	net_pass(&n, SEC);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	net_close(&n);
}

/*
 * The last responses to a READ are lost. Of what is under way nothing comes: it is asked for the last
 * one, once, after the time for that, and each probe that was counted was sent. It does not
 * come either the first time.
 */
static void test_read_tail(void **state)
{
	static struct net n;
	char err[200];

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us");
	for (unsigned int k = 0; k < 8; k++)
		writes(&n, 1, 42000);
	assert_int_equal(wire_fault(n.wire, "rule=drop:port=nic1,frame=68-72", err,
				    sizeof(err)), 0);
	rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = NET_LEN_MAX });
	net_pass(&n, 1000000 + 60000);
	assert_int_equal(wire_port_stats(n.port[1])->fault_loss, 4);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_PROBE), 1);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 1);
	net_pass(&n, 1000000);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(wire_port_stats(n.port[1])->fault_loss, 5);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
	net_close(&n);
}

/*
 * A READ that the peer held for a while is answered, in order, while something else is missing: its
 * place is for another request from then on.
 */
static void test_held_answered(void **state)
{
	static const enum skua_wqe_op ops[] = {
		SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_WRITE, SKUA_WQE_WRITE,
	};
	static struct net n;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us;rule=drop:port=nic0,psn=0,iter=0;"
		"rule=drop:port=nic0,psn=2,iter=0-9");
	for (size_t k = 0; k < N(ops); k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = ops[k], .len = 64, .roff = 64 * k, .off = 64 * k });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_pass(&n, 41000);
	assert_true(le32_get_bits(rc_lrc(&n.rc)->rr_held, SKUA_LRC_RR_HELD));
	net_pass(&n, 4000000);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&n.rc, 0, false);
	assert_true(le32_to_cpu(rc_query(&n.rc, 0).sqc.valid) & SKUA_SQC_LOSS);
	assert_false(le32_get_bits(rc_lrc(&n.rc)->rr_held, SKUA_LRC_RR_HELD));
	net_close(&n);
}

/* How long a response that is asked for again takes, as the device has learned it, ns. */
static uint32_t reread_time(struct rc *rc)
{
	return le32_get_bits(rc_lrc(rc)->patience, SKUA_LRC_PATIENCE_REREAD) * SKUA_LRC_REREAD_UNIT;
}

/*
 * The first response of all is lost, or the first of all requests. The time that its READ takes, the
 * repair included, is not the shortest round trip: what comes sooner when it is asked for again
 * later is measured.
 */
static void test_read_first(void **state)
{
	static const char *const first[] = {
		"delay=20us;rule=drop:port=nic1,frame=0",
		"delay=20us;rule=drop:port=nic0,frame=0",
	};
	const char *response = "rule=drop:port=nic1,op=rc_read_resp_first,count=1";
	static struct net n;
	char err[200];

	(void)state;
	for (unsigned int c = 0; c < N(first); c++) {
		connect(&n, SKUA_EXT_ALWAYS, first[c]);
		for (unsigned int k = 0; k < 2; k++) {
			if (k)
				assert_int_equal(wire_fault(n.wire, response, err, sizeof(err)), 0);
			rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ,
							   .len = NET_LEN_MAX });
			net_pass(&n, 50000000);
			rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
			assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), k + 1);
		}
		assert_in_range(reread_time(&n.rc), 40000, 100000);
		net_close(&n);
	}
}

/*
 * A path becomes shorter than any round trip was, or the ones so far contained the time for other
 * QPs. Amid a READ the opcode tells that a response is the answer to what was asked for again, not
 * a late one.
 */
static void test_read_shorter(void **state)
{
	static const struct {
		const char *faults;
		uint32_t least, most;
	} cases[] = {
		{ "delay=200us;rule=drop:port=nic1,op=rc_read_resp_middle,count=1", 40000, 100000 },
		/* It comes when it was asked for again, before the answer to that can. */
		{ "delay=200us;rule=reorder/20us:port=nic1,op=rc_read_resp_middle,count=1", 0, 0 },
	};
	static struct net n;

	(void)state;
	for (unsigned int c = 0; c < N(cases); c++) {
		connect(&n, SKUA_EXT_ALWAYS, "delay=200us");
		for (unsigned int k = 0; k < 12; k++) {
			if (k == 11)
				set_faults(&n, cases[c].faults);
			rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ,
							   .len = NET_LEN_MAX });
			/* The responses are under way. */
			net_pass(&n, 300000);
			if (k == 11)
				set_faults(&n, "delay=20us");
			net_pass(&n, 50000000);
			rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
		}
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 1);
		assert_in_range(reread_time(&n.rc), cases[c].least, cases[c].most);
		net_close(&n);
	}
}

/*
 * The path becomes slow, but loses nothing. The peer is asked with the last packet, less and less
 * often; what is in front of that one does not count as lost.
 */
static void test_slow(void **state)
{
	static struct net n;
	uint64_t probes;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us");
	for (unsigned int k = 0; k < 8; k++)
		writes(&n, 1, 42000);
	set_faults(&n, "delay=20ms");
	writes(&n, 2, SEC);
	probes = rc_cnt(&n.rc, 0, SKUA_CNT_TX_PROBE);
	assert_in_range(probes, 1, 16);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS), probes);
	net_close(&n);
}

/*
 * The same amid READs. All responses are asked for again, and come again, but not as often as nothing
 * came in the time for that.
 */
static void test_slow_reads(void **state)
{
	static struct net n;
	uint64_t before, again, sent;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us;rule=drop:port=nic1,psn=70,iter=0");
	for (unsigned int k = 0; k < 4; k++) {
		rc_post(&n.rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = NET_LEN_MAX });
		net_pass(&n, 5000000);
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	}
	before = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS);
	sent = n.rc.s[1].f.sent;
	set_faults(&n, "delay=20ms");
	for (unsigned int k = 0; k < 8; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_READ, .len = NET_LEN_MAX });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_pass(&n, SEC);
	for (unsigned int k = 0; k < 8; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	again = rc_cnt(&n.rc, 0, SKUA_CNT_TX_RETRANS_PKTS) - before;
	sent = n.rc.s[1].f.sent - sent;
	print_message("slow READs: requests again %llu, responses %llu\n", (unsigned long long)again,
		      (unsigned long long)sent);
	assert_in_range(again, 1, 30);
	assert_in_range(sent, 512, 4 * 512);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
	net_close(&n);
}

/* The first of some atomics is lost, and all that the peer says of it. */
static void test_atomics(void **state)
{
	static struct net n;

	(void)state;
	connect(&n, SKUA_EXT_ALWAYS, "delay=20us;rule=drop:port=nic0,frame=0;"
		"rule=drop:port=nic1,frame=0-7");
	for (unsigned int k = 0; k < 8; k++)
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_FAA, .len = 8, .off = 8 * k, .roff = 8 * k,
			.atomic[0].swap_add = 1 });
	mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
	net_pass(&n, 60000000);
	for (unsigned int k = 0; k < 8; k++)
		rc_expect(&n.rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
	net_close(&n);
}

static bool due(struct rc *rc)
{
	return le32_to_cpu(rc_lrc(rc)->probes) & SKUA_LRC_PROBE_DUE;
}

/* Side 1 has nothing but the second of two READs at @psn, and says so. */
static void tell_held(struct rc *rc, uint32_t psn)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_build b;

	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), IB_OPCODE(SKUA_RC, ACK),
				  psn_add(psn, IB_PSN_MASK)), 0);
	ib_aeth_put(b.aeth, IB_AETH_ACK | IB_AETH_CREDIT_INVALID, 0);
	memset(b.payload, 0, 4);
	b.payload[0] = 2;
	rc_inject(rc, 0, &b, 4);
}

/*
 * The peer is to be asked with the last packet, but says that it has this before that leaves. So it is
 * not sent, and what is sent later is no probe.
 */
static void test_no_probe(void **state)
{
	const uint32_t psn = 10;
	struct fake *f;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .psn = { psn },
				       .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS } });
	f = &rc.s[0].f;
	for (unsigned int k = 0; k < 2; k++)
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8, .off = 8 * k });
	fake_run(f);
	/* One more time that the timer ends, and the READ would be sent. */
	for (unsigned int k = 0; k < 8 && !due(&rc); k++) {
		f->now = f->deadline;
		f->deadline = SKUA_TIME_NEVER;
		skua_dev_tick(f->dev);
	}
	assert_true(due(&rc));
	tell_held(&rc, psn);
	/* Until both are asked for again, and no longer. */
	fake_advance(f, 4000000);
	assert_true(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS) > 1);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_PROBE), 0);
	rc_close(&rc);
}

/*
 * Behind a READ a WRITE without rights, whose NAK ends the peer's QP. If responses to the READ come
 * later than that, it is complete and the WRITE is what fails. If one is lost nobody will
 * answer for it: the READ fails soon, not after the ack timeouts of all retries.
 */
static void test_nak_ahead(void **state)
{
	static const struct {
		const char *faults;
		bool lost;
	} cases[] = {
		{ "rule=reorder/100us:port=nic1,frame=3-5", false },
		{ "rule=drop:port=nic1,frame=3", true },
		{ "rule=drop:port=nic1,frame=0-63", true },
		{ "rule=reorder/100us:port=nic1,frame=2;rule=drop:port=nic1,frame=9", true },
	};
	static struct net n;

	(void)state;
	for (size_t c = 0; c < N(cases); c++) {
		struct skua_cqe cqe;
		char spec[200];

		snprintf(spec, sizeof(spec), "delay=20us;%s", cases[c].faults);
		print_message("%s\n", spec);
		connect(&n, SKUA_EXT_ALWAYS, spec);
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_READ, .len = NET_LEN_MAX });
		rc_post_quiet(&n.rc, 0, &n.rc.s[0].qp, &(struct rc_wr){
			.op = SKUA_WQE_WRITE, .len = 64, .rkey = 0xbad00 });
		mini_ring(&n.rc.s[0].m, &n.rc.s[0].qp);
		net_pass(&n, 20000000);
		cqe = rc_expect(&n.rc, 0, false, cases[c].lost ? SKUA_CQE_RETRY_EXC_ERR : SKUA_CQE_OK);
		if (cases[c].lost)
			assert_int_equal(le32_get_bits(cqe.own, SKUA_CQE_VENDOR), SKUA_VENDOR_NAK_ACC);
		rc_expect(&n.rc, 0, false, cases[c].lost ? SKUA_CQE_WR_FLUSH_ERR :
							   SKUA_CQE_REM_ACCESS_ERR);
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_REQ_REMOTE_ACCESS), 1);
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_RETRY_EXCEEDED), cases[c].lost);
		assert_int_equal(rc_cnt(&n.rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		net_close(&n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_reorder),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_locals),
		cmocka_unit_test(test_walk_sent),
		cmocka_unit_test(test_walk_more),
		cmocka_unit_test(test_walk_most),
		cmocka_unit_test(test_calm),
		cmocka_unit_test(test_calm_later),
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_held_lost),
		cmocka_unit_test(test_held_slow),
		cmocka_unit_test(test_held_answered),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_waits_lost),
		cmocka_unit_test(test_one_place),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_read_outage),
		cmocka_unit_test(test_read_tail),
		cmocka_unit_test(test_read_first),
		cmocka_unit_test(test_read_shorter),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_slow_reads),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_no_probe),
		cmocka_unit_test(test_nak_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
