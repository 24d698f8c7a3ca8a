// SPDX-License-Identifier: GPL-2.0
/*
 * Trains: two devices and the model's switch between them, once as in the daemon and once
 * with each packet sent by itself. Packets, counters, memory and completions are the same in
 * both; and whatever becomes of the sender's memory while a train is under way, what arrives
 * is what was there when the work request was not complete yet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "icm.h"
#include "rc.h"
#include "roce/engine.h"
#include "wire/wire.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
/* As long as a window of the smallest packets. */
#define LONG	(32u << 10)

/* --- packet by packet --- */

#define LOG_MAX	(24u << 20)
/* What messages come from is in the first half of so many bytes, and goes to the second. */
#define AREA	(1u << 20)

/* All that a side sent, and what came of it. */
struct seen {
	uint8_t *log;
	size_t len;
	unsigned int frames, trains, taken;
	uint64_t cnt[2][SKUA_CNT_COUNT];
	struct tlp_table tlp[2];
	uint8_t *mem;
};

static void note(void *priv, const void *frame, size_t len)
{
	struct seen *s = priv;
	uint32_t n = (uint32_t)len;

	assert_true(s->len + len + sizeof(n) <= LOG_MAX);
	memcpy(s->log + s->len, &n, sizeof(n));
	memcpy(s->log + s->len + sizeof(n), frame, len);
	s->len += len + sizeof(n);
	s->frames++;
}

/**
 * struct kind - a way to use a connection
 * @opt: what it is like
 * @pages: buffers of both sides are of pages that do not lie one behind the other
 * @step: of the messages' lengths
 */
struct kind {
	struct rc_opt opt;
	bool pages;
	uint32_t step;
};

/* The buffer again, page by page, of which every two have changed places. */
static uint32_t paged_key(struct rc_side *s)
{
	const uint32_t num = AREA / 4096;
	uint64_t *page = calloc(num, sizeof(*page));
	uint32_t key;

	assert_non_null(page);
	for (uint32_t i = 0; i < num; i++)
		page[i] = s->bus + 4096ull * (i ^ 1);
	key = mini_mr_mtt(&s->m, RC_VA, page, num, 12, 0, AREA, SKUA_ACCESS_LOCAL_WRITE |
			  SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ);
	free(page);
	return key;
}

/* A list of @num elements that is as long as the message. */
static void make_list(struct rc *rc, struct rc_wr *wr, uint32_t num)
{
	uint32_t each = wr->len / num, at = 0;

	wr->nsge = num;
	for (uint32_t i = 0; i < num; i++) {
		wr->sge[i] = (struct sge){ .addr = RC_VA + wr->off + at + i * 8192,
					   .lkey = rc->s[0].key, .len = each };
		at += each;
	}
	wr->sge[num - 1].len = wr->len - at + each;
}

static void message(struct rc *rc, unsigned int k, uint32_t len)
{
	static const enum skua_wqe_op ops[] = {
		SKUA_WQE_WRITE, SKUA_WQE_SEND, SKUA_WQE_WRITE_IMM, SKUA_WQE_SEND_IMM,
	};
	struct rc_wr wr = { .op = ops[k % N(ops)], .imm = k, .len = len };
	bool recv = wr.op != SKUA_WQE_WRITE;

	wr.off = k * 77 % 5000;
	wr.roff = AREA / 2 + k * 131 % 9000;
	if (k % 5 == 2)
		make_list(rc, &wr, 3);
	if (recv && k % 3 == 0) {
		struct sge sge[2] = {
			{ .addr = RC_VA + wr.roff, .lkey = rc->s[1].key, .len = len / 3 + 1 },
			{ .addr = RC_VA + wr.roff + len + 100, .lkey = rc->s[1].key, .len = len },
		};

		rc_recv_sge(rc, 1, sge, 2);
	} else if (recv) {
		rc_recv(rc, 1, wr.roff, len);
	}
	rc_post(rc, 0, &wr);
	rc_pump_for(rc, 60000000000ull);
	rc_expect(rc, 0, false, SKUA_CQE_OK);
	if (recv)
		rc_expect(rc, 1, true, SKUA_CQE_OK);
}

static struct seen run(const struct kind *kind, bool trains)
{
	struct seen s = { .log = malloc(LOG_MAX), .mem = malloc(AREA) };
	unsigned int k = 0;
	struct rc rc;

	assert_true(s.log && s.mem);
	rc_open(&rc, &kind->opt);
	fake_switch(&rc.s[0].f, &rc.s[1].f);
	for (int i = 0; i < 2; i++) {
		rc.s[i].f.no_trains = !trains;
		rc_fill(rc.s[i].buf, AREA / 2, i);
		memset(rc.s[i].buf + AREA / 2, 0x5a, AREA);
		if (kind->pages)
			rc.s[i].key = paged_key(&rc.s[i]);
	}
	rc.s[0].f.on_sent = note;
	rc.s[0].f.on_priv = &s;
	for (uint32_t len = 1; len < 140000 && k < 60; len += kind->step + 1237 * k)
		message(&rc, k++, len);
	for (int i = 0; i < 2; i++) {
		for (unsigned int c = 0; c < SKUA_CNT_COUNT; c++)
			s.cnt[i][c] = rc_cnt(&rc, i, c);
		s.tlp[i] = rc.s[i].f.dev->tlp.fn;
	}
	s.trains = rc.s[0].f.trains;
	s.taken = rc.s[1].f.trains_taken;
	assert_int_equal(wire_port_stats(rc.s[1].f.port)->tx_frames, s.frames);
	assert_int_equal(wire_port_stats(rc.s[0].f.port)->rx_frames, s.frames);
	memcpy(s.mem, rc.s[1].buf + AREA / 2, AREA);
	rc_close(&rc);
	return s;
}

static const struct kind kinds[] = {
	{ .opt = { .mtu_code = 5 }, .step = 3000 },
	{ .opt = { .mtu_code = 3 }, .step = 2000 },
	{ .opt = { .mtu_code = 1 }, .step = 1000 },
	{ .opt = { .mtu_code = 4, .ipv6 = true, .vlan = 5 }, .step = 3000 },
	{ .opt = { .mtu_code = 5 }, .step = 3500, .pages = true },
	{ .opt = { .mtu_code = 2, .psn = { 0xffffe0, 0 } }, .step = 1500, .pages = true },
};

static void test_packets(void **state)
{
	(void)state;
	for (size_t k = 0; k < N(kinds); k++) {
		struct seen a = run(&kinds[k], true), b = run(&kinds[k], false);

		print_message("%zu: %u frames, %u trains, %u of them taken\n", k, a.frames, a.trains,
			      a.taken);
		assert_int_equal(b.trains, 0);
		assert_true(a.trains > 20);
		assert_int_equal(a.taken, a.trains);
		assert_int_equal(a.frames, b.frames);
		assert_int_equal(a.len, b.len);
		assert_memory_equal(a.log, b.log, a.len);
		for (int i = 0; i < 2; i++) {
			for (unsigned int c = 0; c < SKUA_CNT_COUNT; c++)
				assert_int_equal(a.cnt[i][c], b.cnt[i][c]);
		}
		assert_memory_equal(a.tlp, b.tlp, sizeof(a.tlp));
		assert_memory_equal(a.mem, b.mem, AREA);
		free(a.log);
		free(a.mem);
		free(b.log);
		free(b.mem);
	}
}

/* --- the sender's memory --- */

/* The addresses are learnt with the first messages, which go as they always did. */
static void open_by(struct rc *rc, const struct rc_opt *opt)
{
	rc_open(rc, opt);
	fake_switch(&rc->s[0].f, &rc->s[1].f);
	for (int i = 0; i < 2; i++) {
		rc_post(rc, i, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		rc_pump(rc);
		rc_expect(rc, i, false, SKUA_CQE_OK);
	}
	rc_fill(rc->s[0].buf, LONG, 7);
	memset(rc->s[1].buf, 0, LONG);
}

static void open_link(struct rc *rc, uint32_t mtu_code)
{
	const struct rc_opt opt = { .mtu_code = mtu_code, .timeout = 10 };

	open_by(rc, &opt);
}

/* A message of side 0 is sent, and is not delivered yet. */
static void send_long(struct rc *rc)
{
	rc_post(rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = LONG });
	fake_run(&rc->s[0].f);
	assert_true(rc->s[0].f.trains > 0);
	assert_int_equal(rc->s[1].f.trains_taken, 0);
	assert_true(rc->s[0].f.dev->engine->trains > 0);
}

/* Software has its buffer again, and puts something else there. What was sent arrives. */
static void reuse(struct rc *rc)
{
	assert_int_equal(rc->s[0].f.dev->engine->trains, 0);
	memset(rc->s[0].buf, 0xee, LONG);
	rc_pump(rc);
	assert_true(rc->s[1].f.trains_taken > 0);
	/* What was let go when it was copied is not let go again. */
	assert_int_equal(rc->s[0].f.dev->engine->trains, 0);
	rc_check(rc->s[1].buf, LONG, 7);
}

static void to_error(struct rc *rc)
{
	assert_int_equal(mini_qp_modify(&rc->s[0].m, &rc->s[0].qp, SKUA_QP_ERR, 0, NULL), 0);
}

static void destroy_qp(struct rc *rc)
{
	mini_index(&rc->s[0].m, SKUA_CMD_DESTROY_QP, rc->s[0].qp.qpn, NULL, 0);
}

static void destroy_mr(struct rc *rc)
{
	assert_int_equal(mini_index(&rc->s[0].m, SKUA_CMD_DESTROY_MPT, rc->s[0].key, NULL, 0), 0);
}

static void no_bus_master(struct rc *rc)
{
	fake_bus(&rc->s[0].f, true, false);
}

static void reset_dev(struct rc *rc)
{
	skua_dev_reset(rc->s[0].f.dev, SKUA_RESET_FLR);
}

static void fatal(struct rc *rc)
{
	dev_fatal(rc->s[0].f.dev, SKUA_FATAL_INJECTED);
}

/* As the vfio-user server does before a map changes. */
static void unmap(struct rc *rc)
{
	wire_settle(rc->s[0].f.wire, NULL);
}

/* An answer that the peer did not give. The message has the PSNs from 1 on. */
static void forge(struct rc *rc, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	uint8_t frame[200];
	struct skua_pkt_build b;

	rc->s[0].f.unjudged = true;
	rc->s[1].f.unjudged = true;
	assert_int_equal(rc_build(rc, 1, &b, frame, sizeof(frame), IB_OPCODE(RC, ACK), psn), 0);
	ib_aeth_put(b.aeth, syndrome, msn);
	rc_inject(rc, 0, &b, 0);
}

/* The message is complete before it was delivered. */
static void forged_ack(struct rc *rc)
{
	forge(rc, LONG / rc->mtu, IB_AETH_ACK | IB_AETH_CREDIT_INVALID, 2);
	rc_expect(rc, 0, false, SKUA_CQE_OK);
}

static void forged_nak(struct rc *rc)
{
	forge(rc, 1, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS, 1);
	rc_expect(rc, 0, false, SKUA_CQE_REM_ACCESS_ERR);
}

/* Of a part of it: the buffer still belongs to it, nothing needs to be copied. */
static void test_partly_acked(void **state)
{
	struct rc rc;

	(void)state;
	open_link(&rc, 3);
	send_long(&rc);
	forge(&rc, LONG / rc.mtu / 2, IB_AETH_ACK | IB_AETH_CREDIT_INVALID, 1);
	assert_true(rc.s[0].f.dev->engine->trains > 0);
	assert_int_equal(rc.s[0].f.settled, 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[1].buf, LONG, 7);
	rc_close(&rc);
}

static void test_reuse(void **state)
{
	static void (*const ends[])(struct rc *rc) = {
		to_error, destroy_qp, destroy_mr, no_bus_master, reset_dev, fatal, unmap,
		forged_ack, forged_nak,
	};

	(void)state;
	for (size_t k = 0; k < N(ends); k++) {
		for (uint32_t mtu = 1; mtu <= 5; mtu += 2) {
			struct rc rc;

			open_link(&rc, mtu);
			send_long(&rc);
			ends[k](&rc);
			reuse(&rc);
			rc_close(&rc);
		}
	}
}

/* Keys that a work request changes. */
static void test_local_invalidate(void **state)
{
	struct rc rc;

	(void)state;
	open_link(&rc, 3);
	send_long(&rc);
	rc.s[0].f.unjudged = true;
	/* There is no such key: an error for the queue, as the region would be gone for it. */
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_LOCAL_INV, .imm = rc.s[0].key });
	fake_run(&rc.s[0].f);
	reuse(&rc);
	rc_close(&rc);
}

/* In an undisturbed connection nothing is ever copied. */
static void test_no_copy(void **state)
{
	struct rc rc;

	(void)state;
	open_link(&rc, 5);
	for (unsigned int k = 0; k < 50; k++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	}
	assert_int_equal(rc.s[0].f.settled, 0);
	assert_true(rc.s[1].f.trains_taken >= 50 * 32);
	rc_close(&rc);
}

/* The memory of a guest vanishes: what was not delivered is lost, and not made up. */
static void test_broken(void **state)
{
	struct rc rc;

	(void)state;
	open_link(&rc, 5);
	send_long(&rc);
	memset(rc.s[0].buf, 0, LONG);
	rc.s[0].f.broken++;
	fake_pump(&rc.s[0].f, &rc.s[1].f);
	rc_expect_none(&rc, 0, false);
	/* It is there again: the sender, which hears nothing, sends once more. */
	rc_fill(rc.s[0].buf, LONG, 7);
	rc_pump_for(&rc, 1000000000ull);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[1].buf, LONG, 7);
	assert_true(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS) > 0);
	rc_close(&rc);
}

/* --- who does not take them --- */

static unsigned int good, bad;

static void look(void *priv, const void *frame, size_t len)
{
	struct skua_pkt pkt;

	(void)priv;
	if (skua_pkt_parse(frame, len, &pkt))
		bad++;
	else
		good++;
}

/*
 * The peer has another path MTU, takes no requests, or is in a state in which each packet is
 * looked at by itself: it gets packets, and does with them what it always did.
 */
static void test_not_taken(void **state)
{
	struct rc rc;

	(void)state;
	for (unsigned int k = 0; k < 3; k++) {
		open_link(&rc, 3);
		rc.s[0].f.on_sent = look;
		send_long(&rc);
		if (k == 0)
			mini_qp_modify(&rc.s[1].m, &rc.s[1].qp, SKUA_QP_ERR, 0, NULL);
		if (k == 1)
			rc.s[1].f.dev->roce = false;
		if (k == 2)
			skua_dev_link(rc.s[1].f.dev, false);
		wire_poll(rc.s[0].f.wire, rc.s[0].f.now);
		while (rc.s[0].f.dev->engine->trains)
			wire_poll(rc.s[0].f.wire, rc.s[0].f.now);
		assert_int_equal(rc.s[1].f.trains_taken, 0);
		assert_int_equal(wire_port_stats(rc.s[1].f.port)->tx_frames, 2 + LONG / rc.mtu);
		if (k == 0)
			assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_BAD_STATE), LONG / rc.mtu);
		rc_close(&rc);
	}
	assert_true(good > 0);
	assert_int_equal(bad, 0);
}

/* The peer's region ends within the message: the same packet is refused, for the same reason. */
static void test_refused(void **state)
{
	uint64_t cnt[2][SKUA_CNT_COUNT];
	struct rc rc;

	(void)state;
	for (unsigned int trains = 0; trains < 2; trains++) {
		open_link(&rc, 2);
		rc.s[0].f.no_trains = !trains;
		fake_hole(&rc.s[1].f, rc.s[1].bus + 20000, 4096);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = LONG });
		rc_pump_for(&rc, 1000000000ull);
		rc_expect(&rc, 0, false, SKUA_CQE_REM_OP_ERR);
		rc_check(rc.s[1].buf, 19968, 7);
		for (unsigned int c = 0; c < SKUA_CNT_COUNT; c++)
			cnt[trains][c] = rc_cnt(&rc, 1, c);
		rc_close(&rc);
	}
	/* What was written before the hole was found was written twice. */
	for (unsigned int c = 0; c < SKUA_CNT_COUNT; c++) {
		if (c != SKUA_CNT_DMA_ERR && (c < SKUA_CNT_TLP_MWR_TX || c > SKUA_CNT_TLP_MSIX))
			assert_int_equal(cnt[0][c], cnt[1][c]);
	}
}

/*
 * The packet before a train is lost: the peer does not take the train, and what is sent again
 * goes as packets.
 */
static void test_behind_lost(void **state)
{
	const uint64_t off = 4096;
	unsigned int trains;
	struct rc rc;

	(void)state;
	open_link(&rc, 3);
	skua_dev_link(rc.s[1].f.dev, false);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
	fake_run(&rc.s[0].f);
	wire_poll(rc.s[0].f.wire, rc.s[0].f.now);
	skua_dev_link(rc.s[1].f.dev, true);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = LONG - off, .off = off,
					 .roff = off });
	fake_run(&rc.s[0].f);
	trains = rc.s[0].f.trains;
	assert_true(trains > 0);
	rc_pump_for(&rc, 1000000000ull);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(rc.s[0].f.trains, trains);
	assert_int_equal(rc.s[1].f.trains_taken, 0);
	assert_memory_equal(rc.s[0].buf, rc.s[1].buf, 8);
	assert_memory_equal(rc.s[0].buf + off, rc.s[1].buf + off, LONG - off);
	rc_close(&rc);
}

/* --- the window --- */

struct last {
	unsigned int frames;
	bool ackreq;
};

static void note_last(void *priv, const void *frame, size_t len)
{
	struct last *l = priv;
	struct skua_pkt pkt;

	assert_int_equal(skua_pkt_parse(frame, len, &pkt), SKUA_PKT_OK);
	l->frames++;
	l->ackreq = pkt.ackreq;
}

/* Nothing is delivered: so many packets go, and the last one asks for an acknowledgment. */
static void test_window(void **state)
{
	(void)state;
	for (uint32_t log = 4; log <= SKUA_EXT_LOG_WINDOW_MAX; log++) {
		/* Without selective repeat it has the engine's. */
		const uint32_t mode = log < SKUA_EXT_LOG_WINDOW_MIN ? 0 : SKUA_EXT_ALWAYS;
		const unsigned int want = mode ? 1u << log : ENGINE_WINDOW;
		const struct rc_opt opt = { .mtu_code = 1, .timeout = 10, .ext = { mode, mode },
					    .log_window = log };
		struct last last = { 0 };
		struct rc rc;

		open_by(&rc, &opt);
		rc.s[0].f.on_sent = note_last;
		rc.s[0].f.on_priv = &last;
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 300000 });
		fake_run(&rc.s[0].f);
		assert_true(rc.s[0].f.trains > 0);
		assert_int_equal(last.frames, want);
		assert_true(last.ackreq);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_partly_acked),
		cmocka_unit_test(test_local_invalidate),
		cmocka_unit_test(test_no_copy),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_not_taken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_behind_lost),
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
