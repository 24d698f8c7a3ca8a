// SPDX-License-Identifier: GPL-2.0
/*
 * Queues with a rate limit. Every frame is watched: in no span of time are there more
 * bytes than the rate gives in it, a burst and what is left of the last packet; and
 * while there is work not fewer than the rate gives, less that much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/wqe_build.h>

#include "core_test.h"
#include "rc.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define MSEC	1000000ull
#define SEC	1000000000ull
#define FRAME	4400u	/* no frame here is longer */
#define WATCHED	8

/**
 * struct flow - frames to one QP of the other side
 * @qpn: that QP
 * @kbps: of what they must keep to; 0: nothing
 * @burst: likewise
 * @bytes: so far
 * @frames: so far
 * @asks: of them, those that ask for an acknowledgment
 * @over: bytes ahead of the rate, times 8000000
 * @last: time of the last one
 */
struct flow {
	uint32_t qpn;
	uint32_t kbps, burst;
	uint64_t bytes, frames, asks;
	unsigned __int128 over;
	uint64_t last;
};

/* What the wire from side 0 sees; @lose: each so many-th frame does not arrive. */
struct watch {
	struct rc *rc;
	struct flow flow[WATCHED];
	unsigned int num;
	unsigned int lose, seen;
};

static uint32_t frame_qpn(const struct fake_frame *frame)
{
	const uint8_t *bth = frame->data + 14 + 20 + 8;

	return (uint32_t)bth[5] << 16 | bth[6] << 8 | bth[7];
}

static void account(struct flow *f, uint64_t now, size_t len)
{
	unsigned __int128 gone = (unsigned __int128)(now - f->last) * f->kbps;

	f->bytes += len;
	f->frames++;
	if (!f->kbps)
		return;
	f->over = (f->over > gone ? f->over - gone : 0) + len * 8000000ull;
	f->last = now;
	if (f->over > (f->burst + FRAME) * 8000000ull)
		fail_msg("QP %#x: %llu bytes ahead of %u kbit/s", f->qpn,
			 (unsigned long long)(f->over / 8000000), f->kbps);
}

static bool see(void *priv, struct fake_frame *frame)
{
	struct watch *w = priv;

	for (unsigned int i = 0; i < w->num; i++) {
		if (w->flow[i].qpn != frame_qpn(frame))
			continue;
		account(&w->flow[i], w->rc->s[0].f.now, frame->len);
		w->flow[i].asks += frame->data[14 + 20 + 8 + 8] >> 7;
	}
	return !w->lose || ++w->seen % w->lose;
}

/* Frames to @qpn must keep to a rate from now on; where the device chose the burst too. */
static struct flow *watch(struct watch *w, uint32_t qpn, uint32_t kbps, uint32_t burst)
{
	uint32_t dflt = kbps / 8 > 16384 ? kbps / 8 : 16384;

	assert_true(w->num < WATCHED);
	w->flow[w->num] = (struct flow){ .qpn = qpn, .kbps = kbps, .burst = burst ? burst : dflt,
					 .last = w->rc->s[0].f.now };
	return &w->flow[w->num++];
}

static void open_watched(struct watch *w, struct rc *rc, const struct rc_opt *opt)
{
	rc_open(rc, opt);
	memset(w, 0, sizeof(*w));
	w->rc = rc;
	rc->s[0].f.filter = see;
	rc->s[0].f.filter_priv = w;
}

static int try_rate(struct mini *m, const struct mini_qp *qp, uint32_t kbps, uint32_t burst)
{
	struct skua_cmd_modify_qp_in in = {
		.qpn = cpu_to_le32(qp->qpn),
		.mask = cpu_to_le32(SKUA_QP_M_RATE),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
		.attr.rate_kbps = cpu_to_le32(kbps),
		.attr.rate_burst = cpu_to_le32(burst),
	};

	return mini_cmd(m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0);
}

static void set_rate(struct rc *rc, int i, uint32_t kbps, uint32_t burst)
{
	assert_status(try_rate(&rc->s[i].m, &rc->s[i].qp, kbps, burst), OK);
}

/* Work requests of @len bytes until the ring is full; how many there are then. */
static unsigned int fill_sq(struct rc *rc, struct mini_qp *qp, enum skua_wqe_op op, uint32_t len,
			    unsigned int num)
{
	for (unsigned int k = 0; k < num; k++)
		rc_post_quiet(rc, 0, qp, &(struct rc_wr){ .op = op, .len = len });
	mini_ring(&rc->s[0].m, qp);
	return num;
}

static unsigned int completed(struct rc *rc)
{
	struct skua_cqe cqe;
	unsigned int n = 0;

	for (; mini_cq_next(&rc->s[0].m, &rc->s[0].scq, &cqe); n++)
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_OK);
	return n;
}

/* Not fewer bytes than @ns at the flow's rate give; what a burst and a packet is may lack. */
static void assert_kept_up(const struct flow *f, uint64_t ns)
{
	uint64_t due = ns * f->kbps / 8000000;

	if (f->bytes + f->burst + FRAME < due)
		fail_msg("QP %#x: %llu bytes, not %llu, at %u kbit/s", f->qpn,
			 (unsigned long long)f->bytes, (unsigned long long)due, f->kbps);
}

/* --- the rate is kept --- */

struct kept {
	enum skua_qp_type type;
	enum skua_wqe_op op;
	uint32_t len, num;
	uint32_t kbps, burst;
	uint64_t ns;
	uint32_t timeout, onchip;
};

static const struct kept kept[] = {
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 10000000, 0, 2 * MSEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 1000000, 0, 20 * MSEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 1000000, 4096, 20 * MSEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 1000000, 1, 20 * MSEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 1000000, 1 << 20, 20 * MSEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 1000000, 0, 20 * MSEC, 0, 4 },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 64, 60, 300, 1500, 100 * MSEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 0, 60, 77, 100, 100 * MSEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 20000, 60, 1000, 0, 3 * SEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 20000, 60, 1000, 0, 3 * SEC, 10 },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 5000, 60, 8, 0, 100 * SEC },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 99999999, 20000, MSEC / 5 },
	/* Bursts that are shorter than a nanosecond. */
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 99999999, 12, MSEC / 5 },
	{ SKUA_QP_RC, SKUA_WQE_WRITE, 65536, 60, 99999999, 1, MSEC / 5 },
	{ SKUA_QP_UD, SKUA_WQE_SEND, 4096, 60, 8000001, 1, MSEC / 8 },
	{ SKUA_QP_RC, SKUA_WQE_ATOMIC_WRITE, 8, 60, 500, 100, 20 * MSEC },
	{ SKUA_QP_UC, SKUA_WQE_WRITE, 65536, 60, 1000000, 0, 20 * MSEC },
	{ SKUA_QP_UC, SKUA_WQE_WRITE, 30000, 60, 3333, 9000, SEC },
	{ SKUA_QP_UD, SKUA_WQE_SEND, 4096, 60, 100000, 0, 10 * MSEC },
	{ SKUA_QP_UD, SKUA_WQE_SEND, 100, 60, 2500, 2000, 10 * MSEC },
};

static void one_kept(const struct kept *k)
{
	struct watch w;
	struct flow *f;
	struct rc rc;

	open_watched(&w, &rc, &(struct rc_opt){ .type = k->type, .timeout = k->timeout,
						.onchip = k->onchip, .log_sq = 7 });
	f = watch(&w, rc.s[1].qp.qpn, k->kbps, k->burst);
	set_rate(&rc, 0, k->kbps, k->burst);
	fill_sq(&rc, &rc.s[0].qp, k->op, k->len, k->num);
	rc_pump_for(&rc, k->ns);
	/* There was work all the time. */
	assert_true(completed(&rc) < k->num);
	assert_kept_up(f, k->ns);
	/* Nothing was lost and nobody thought so. */
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	/* Without limit the rest goes at once. */
	set_rate(&rc, 0, 0, 0);
	f->kbps = 0;
	rc_pump(&rc);
	assert_int_equal(rc.s[0].qp.sq_pi, le32_to_cpu(rc_query(&rc, 0).sqc.ci));
	assert_int_equal(rc_query(&rc, 0).sqc.rate_deadline, 0);
	rc_close(&rc);
}

static void rate_is_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(kept); i++)
		one_kept(&kept[i]);
}

/* An idle queue saves up one burst, however long it rests. */
static void idle_saves_a_burst(void **state)
{
	struct watch w;
	struct flow *f;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, NULL);
	f = watch(&w, rc.s[1].qp.qpn, 1000, 40000);
	set_rate(&rc, 0, 1000, 40000);
	for (unsigned int k = 0; k < 3; k++) {
		uint64_t before = f->bytes;

		rc_pump_for(&rc, 10 * SEC);
		fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 100000, 1);
		rc_pump(&rc);
		assert_in_range(f->bytes - before, 40000, 40000 + FRAME);
		rc_pump_for(&rc, SEC);
		assert_int_equal(completed(&rc), 1);
	}
	rc_close(&rc);
}

/* Where no timer waits for it, an acknowledgment is not asked for more often. */
static void asks_without_timeout(void **state)
{
	struct watch w;
	struct flow *f;
	struct rc rc;
	struct qp qp;

	(void)state;
	for (int timer = 0; timer < 2; timer++) {
		open_watched(&w, &rc, NULL);
		assert_int_equal(qp_get(rc.s[0].f.dev, rc.s[0].qp.qpn, &qp), 0);
		le32p_replace_bits(&qp.sqc->attr.retry, timer, SKUA_ATTR_ACK_TIMEOUT);
		qp_put(rc.s[0].f.dev, &qp);
		f = watch(&w, rc.s[1].qp.qpn, 1000000, 1 << 20);
		set_rate(&rc, 0, 1000000, 1 << 20);
		fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 1 << 19, 1);
		rc_pump(&rc);
		assert_int_equal(completed(&rc), 1);
		if (timer)
			assert_int_equal(f->asks, f->frames);
		else
			assert_in_range(f->asks, 1, f->frames / 8);
		rc_close(&rc);
	}
}

/* --- queues beside each other --- */

static void others_go_on(void **state)
{
	static const uint32_t kbps[] = { 1000000, 100000, 0 };
	struct mini_qp qp[2][N(kbps)];
	struct flow *f[N(kbps)];
	struct rc_opt opt = { 0 };
	struct watch w;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, &opt);
	for (size_t i = 0; i < N(kbps); i++) {
		for (int s = 0; s < 2; s++)
			rc_qp(&rc, s, &qp[s][i], &opt);
		for (int s = 0; s < 2; s++) {
			struct skua_qp_attr a = rc_attr(&rc, s, &opt, qp[1 - s][i].qpn);

			mini_rc_to_rts(&rc.s[s].m, &qp[s][i], &a);
		}
		f[i] = watch(&w, qp[1][i].qpn, kbps[i], 0);
		if (kbps[i])
			assert_status(try_rate(&rc.s[0].m, &qp[0][i], kbps[i], 0), OK);
		fill_sq(&rc, &qp[0][i], SKUA_WQE_WRITE, 65536, 60);
	}
	/* The one without limit is done before any time has passed. */
	rc_pump(&rc);
	assert_in_range(f[2]->bytes, 60 * 65536, 60 * 70000);
	rc_pump_for(&rc, 20 * MSEC);
	assert_kept_up(f[0], 20 * MSEC);
	assert_kept_up(f[1], 20 * MSEC);
	assert_true(f[0]->bytes > 4 * f[1]->bytes);
	rc_close(&rc);
}

/* A queue that waits does nothing: no memory is read, no timer set, until it may send. */
static void waits_without_work(void **state)
{
	uint64_t reads, writes, deadline;
	struct watch w;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, &(struct rc_opt){ .timeout = 1 });
	set_rate(&rc, 0, 8, 5000);
	fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 100000, 3);
	rc_pump_for(&rc, 10 * MSEC);
	reads = rc.s[0].f.reads;
	writes = rc.s[0].f.writes;
	deadline = rc.s[0].f.deadline;
	assert_true(deadline > rc.s[0].f.now + SEC && deadline != SKUA_TIME_NEVER);
	rc_pump_for(&rc, SEC);
	assert_int_equal(rc.s[0].f.reads, reads);
	assert_int_equal(rc.s[0].f.writes, writes);
	assert_int_equal(rc.s[0].f.deadline, deadline);
	rc_close(&rc);
}

/* --- changes under way --- */

static void changed(void **state)
{
	static const struct {
		uint32_t kbps, burst;
		uint64_t ns;
	} step[] = {
		{ 1000, 20000, 300 * MSEC }, { 1000000, 0, 2 * MSEC }, { 50000, 0, 10 * MSEC },
		{ 8, 0, SEC }, { 200000, 1000, 5 * MSEC }, { 200000, 100000, 5 * MSEC },
		{ 8, 1, SEC }, { 3000000, 0, 2 * MSEC },
	};
	struct watch w;
	struct flow *f;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, NULL);
	f = watch(&w, rc.s[1].qp.qpn, 0, 0);
	for (size_t k = 0; k < N(step); k++) {
		uint32_t burst = step[k].burst ? step[k].burst :
				 step[k].kbps / 8 > 16384 ? step[k].kbps / 8 : 16384;

		/* What is owed from before is owed in bytes, up to a burst. */
		*f = (struct flow){ .qpn = f->qpn, .kbps = step[k].kbps, .burst = burst,
				    .last = rc.s[0].f.now };
		set_rate(&rc, 0, step[k].kbps, step[k].burst);
		if (!k)
			fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 131072, 60);
		rc_pump_for(&rc, step[k].ns);
		assert_true(completed(&rc) < 60);
		if (step[k].kbps > 8)
			if (f->bytes * 8000000 < step[k].ns * step[k].kbps / 2)
				fail_msg("step %zu: %llu bytes", k, (unsigned long long)f->bytes);
	}
	rc_close(&rc);
}

/* Whoever sets the same limit again and again gains nothing. */
static void same_again(void **state)
{
	struct watch w;
	struct flow *f;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, NULL);
	f = watch(&w, rc.s[1].qp.qpn, 100000, 0);
	set_rate(&rc, 0, 100000, 0);
	fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 65536, 60);
	for (unsigned int k = 0; k < 1000; k++) {
		set_rate(&rc, 0, 100000, 0);
		rc_pump_for(&rc, MSEC / 100);
	}
	assert_kept_up(f, 10 * MSEC);
	rc_close(&rc);
}

/* --- together with what else makes a queue wait --- */

/* What is repeated counts too, and everything arrives. */
static void losses(void **state)
{
	struct watch w;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, &(struct rc_opt){ .timeout = 8, .mtu_code = 3 });
	watch(&w, rc.s[1].qp.qpn, 100000, 8000);
	set_rate(&rc, 0, 100000, 8000);
	w.lose = 13;
	rc_fill(rc.s[0].buf, 50000, 3);
	fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 50000, 30);
	rc_pump_for(&rc, SEC);
	assert_int_equal(completed(&rc), 30);
	rc_check(rc.s[1].buf, 50000, 3);
	assert_true(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS) > 50);
	rc_close(&rc);
}

/* A queue that gives up does so as fast as one without limit. */
static void retries_exhausted(void **state)
{
	struct watch w;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, &(struct rc_opt){ .timeout = 8, .retry_cnt = 3 });
	watch(&w, rc.s[1].qp.qpn, 1000, 100);
	set_rate(&rc, 0, 1000, 100);
	w.lose = 1;
	fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 10000, 2);
	rc_pump_for(&rc, SEC);
	rc_expect(&rc, 0, false, SKUA_CQE_RETRY_EXC_ERR);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	rc_expect_none(&rc, 0, false);
	rc_close(&rc);
}

static void rnr(void **state)
{
	struct watch w;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, NULL);
	watch(&w, rc.s[1].qp.qpn, 20000, 5000);
	set_rate(&rc, 0, 20000, 5000);
	rc_fill(rc.s[0].buf, 20000, 5);
	fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_SEND, 20000, 3);
	rc_pump_for(&rc, 100 * MSEC);
	assert_int_equal(completed(&rc), 0);
	assert_true(rc_cnt(&rc, 0, SKUA_CNT_RNR_NAK_RETRY_ERR) > 2);
	for (unsigned int k = 0; k < 3; k++)
		rc_recv(&rc, 1, k * 20000, 20000);
	rc_pump_for(&rc, 100 * MSEC);
	assert_int_equal(completed(&rc), 3);
	for (unsigned int k = 0; k < 3; k++) {
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
		rc_check(rc.s[1].buf + k * 20000, 20000, 5);
	}
	rc_close(&rc);
}

/* In SQD what was begun is sent, at its rate, and then the queue is drained. */
static void drained(void **state)
{
	struct watch w;
	struct rc rc;

	(void)state;
	open_watched(&w, &rc, NULL);
	watch(&w, rc.s[1].qp.qpn, 10000, 5000);
	set_rate(&rc, 0, 10000, 5000);
	fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 50000, 2);
	rc_pump(&rc);
	rc_drain(&rc, 0);
	rc_pump_for(&rc, 10 * MSEC);
	rc_expect_no_event(&rc, 0);
	/* Faster, in the middle of it. */
	set_rate(&rc, 0, 20000, 5000);
	w.flow[0].kbps = 20000;
	rc_pump_for(&rc, 40 * MSEC);
	rc_expect_event(&rc, 0, SKUA_QP_EV_SQ_DRAINED);
	assert_int_equal(completed(&rc), 1);
	assert_status(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_RTS, 0, NULL), OK);
	rc_pump_for(&rc, 40 * MSEC);
	assert_int_equal(completed(&rc), 1);
	rc_close(&rc);
}

/* --- the end of a queue that waits --- */

static void start_waiting(struct watch *w, struct rc *rc, enum skua_qp_type type)
{
	open_watched(w, rc, &(struct rc_opt){ .type = type });
	set_rate(rc, 0, 8, 1);
	fill_sq(rc, &rc->s[0].qp, type == SKUA_QP_UD ? SKUA_WQE_SEND : SKUA_WQE_WRITE, 4000, 4);
	rc_pump(rc);
	assert_int_not_equal(rc_query(rc, 0).sqc.rate_deadline, 0);
}

static void flushed_at_once(void **state)
{
	static const enum skua_qp_type types[] = { SKUA_QP_RC, SKUA_QP_UC, SKUA_QP_UD };
	struct watch w;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(types); k++) {
		unsigned int done;

		start_waiting(&w, &rc, types[k]);
		done = completed(&rc);
		assert_status(mini_qp_modify(&rc.s[0].m, &rc.s[0].qp, SKUA_QP_ERR, 0, NULL), OK);
		rc_pump(&rc);
		for (; done < 4; done++)
			rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&rc, 0, false);
		assert_int_equal(rc_query(&rc, 0).sqc.rate_deadline, 0);
		/* What is posted later is flushed without delay too. */
		fill_sq(&rc, &rc.s[0].qp, types[k] == SKUA_QP_UD ? SKUA_WQE_SEND : SKUA_WQE_WRITE,
			10, 1);
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		rc_close(&rc);
	}
}

/* RESET ends the limit; the QP's next life has none. */
static void reset_forgets(void **state)
{
	struct skua_sqc sqc;
	struct watch w;
	struct rc rc;

	(void)state;
	start_waiting(&w, &rc, SKUA_QP_RC);
	sqc = rc_query(&rc, 0).sqc;
	assert_int_equal(le32_to_cpu(sqc.attr.rate_kbps), 8);
	assert_int_equal(le32_to_cpu(sqc.attr.rate_burst), 1);
	assert_int_equal(le32_to_cpu(sqc.rate), 8);
	for (int i = 0; i < 2; i++) {
		assert_status(mini_qp_modify(&rc.s[i].m, &rc.s[i].qp, SKUA_QP_RESET, 0, NULL), OK);
		rc.s[i].qp.sq_pi = 0;
	}
	sqc = rc_query(&rc, 0).sqc;
	assert_int_equal(sqc.attr.rate_kbps, 0);
	assert_int_equal(sqc.attr.rate_burst, 0);
	assert_int_equal(sqc.rate, 0);
	for (int i = 0; i < 2; i++)
		mini_rc_to_rts(&rc.s[i].m, &rc.s[i].qp, &rc.s[i].attr);
	completed(&rc);
	fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 100000, 2);
	rc_pump(&rc);
	assert_int_equal(completed(&rc), 2);
	rc_close(&rc);
}

/* One that is destroyed while it waits leaves nothing behind. */
static void destroyed(void **state)
{
	struct watch w;
	struct rc rc;

	(void)state;
	start_waiting(&w, &rc, SKUA_QP_RC);
	assert_status(mini_index(&rc.s[0].m, SKUA_CMD_DESTROY_QP, rc.s[0].qp.qpn, NULL, 0), OK);
	rc_pump_for(&rc, 100 * SEC);
	rc_close(&rc);
}

/* --- what is not limited --- */

/* Answers are the peer's doing. */
static void answers_go_at_once(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	set_rate(&rc, 1, 8, 1);
	rc_fill(rc.s[1].buf, 1000000, 7);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 1000000 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FAA, .roff = 2000000, .off = 2000000,
					 .len = 8 });
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 500000, .off = 3000000,
					 .roff = 3000000 });
	rc_pump(&rc);
	for (unsigned int k = 0; k < 3; k++)
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[0].buf, 1000000, 7);
	rc_close(&rc);
}

/* --- Ethernet --- */

/* Frames of a RAW_ETH queue. */
static void ethernet(void **state)
{
	struct rig *r = *state;
	uint64_t mem = fake_alloc(&r->f, 4096, 64);
	uint32_t key = mini_mr(&r->m, mem, mem, 4096, 0);
	struct flow f = { .kbps = 10000, .burst = 3000 };
	struct fake_frame *frame;
	struct skua_cqe cqe;
	struct mini_cq cq;
	struct mini_qp qp;
	unsigned int done = 0;
	struct {
		struct skua_wqe_ctrl ctrl;
		struct skua_wqe_data sge;
	} wqe = { .sge = { .addr = cpu_to_le64(mem), .lkey = cpu_to_le32(key),
			   .len = cpu_to_le32(1000) } };

	mini_cq_create(&r->m, &cq, 8);
	mini_qp_create(&r->m, &qp, SKUA_QP_RAW_ETH, &cq, &cq, 6, 4, 2);
	mini_eth_to_rts(&r->m, &qp);
	assert_status(try_rate(&r->m, &qp, f.kbps, f.burst), OK);
	skua_wqe_ctrl_set(&wqe.ctrl, SKUA_WQE_ETH, 0, 0, SKUA_WQE_F_SIGNALED);
	((uint8_t *)fake_ptr(&r->f, mem))[0] = 2;
	f.last = r->f.now;
	for (unsigned int k = 0; k < 60; k++)
		mini_post(&r->m, &qp, &wqe, 2);
	mini_ring(&r->m, &qp);
	for (unsigned int k = 0; k < 2000; k++) {
		while ((frame = fake_tx(&r->f))) {
			account(&f, r->f.now, frame->len);
			free(frame);
		}
		fake_advance(&r->f, MSEC / 100);
	}
	assert_kept_up(&f, 20 * MSEC);
	for (; mini_cq_next(&r->m, &cq, &cqe); done++)
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_OK);
	assert_int_equal(done, f.frames);
	assert_in_range(done, 20, 40);
	/* The rest is flushed at once. */
	assert_status(mini_qp_modify(&r->m, &qp, SKUA_QP_ERR, 0, NULL), OK);
	fake_run(&r->f);
	for (; mini_cq_next(&r->m, &cq, &cqe); done++)
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(done, 60);
}

/* --- what may be asked for --- */

static void limits(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_query_device_out dev;
	uint32_t min, max, burst;
	struct mini_cq cq;
	struct mini_qp qp;

	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &dev, sizeof(dev)), OK);
	min = le32_to_cpu(dev.rate_min);
	max = le32_to_cpu(dev.rate_max);
	burst = le32_to_cpu(dev.rate_burst_max);
	assert_true(min > 1 && max > min && max < UINT32_MAX && burst && burst < UINT32_MAX);
	mini_cq_create(&r->m, &cq, 4);
	mini_qp_create(&r->m, &qp, SKUA_QP_UC, &cq, &cq, 4, 4, 2);
	assert_status(mini_qp_modify(&r->m, &qp, SKUA_QP_INIT, SKUA_QP_M_PKEY | SKUA_QP_M_PORT |
				     SKUA_QP_M_ACCESS, NULL), OK);
	assert_status(try_rate(&r->m, &qp, min, 0), OK);
	assert_status(try_rate(&r->m, &qp, min - 1, 0), BAD_PARAM);
	assert_status(try_rate(&r->m, &qp, max, burst), OK);
	assert_status(try_rate(&r->m, &qp, max + 1, 0), BAD_PARAM);
	assert_status(try_rate(&r->m, &qp, UINT32_MAX, 0), BAD_PARAM);
	assert_status(try_rate(&r->m, &qp, max, burst + 1), BAD_PARAM);
	assert_status(try_rate(&r->m, &qp, max, UINT32_MAX), BAD_PARAM);
	assert_status(try_rate(&r->m, &qp, 0, 1), BAD_PARAM);
	assert_status(try_rate(&r->m, &qp, 0, 0), OK);
	/* There is none in a state that only leads elsewhere. */
	assert_status(mini_qp_modify(&r->m, &qp, SKUA_QP_RESET, 0, NULL), OK);
	assert_status(try_rate(&r->m, &qp, min, 0), BAD_PARAM);

	r->f.dev->caps &= ~SKUA_CAP_RATE_LIMIT;
	assert_status(mini_qp_modify(&r->m, &qp, SKUA_QP_INIT, SKUA_QP_M_PKEY | SKUA_QP_M_PORT |
				     SKUA_QP_M_ACCESS, NULL), OK);
	assert_status(try_rate(&r->m, &qp, 0, 0), BAD_PARAM);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_DEVICE, NULL, 0, &dev, sizeof(dev)), OK);
	assert_int_equal(dev.rate_min | dev.rate_max | dev.rate_burst_max, 0);
}

/* A context that memory of the host has spoilt delays its own queue at most. */
static void spoilt_context(void **state)
{
	static const uint64_t when[] = { 1, UINT64_MAX, UINT64_MAX / 2, 5ull << 32 };
	struct watch w;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < 4 * N(when); k++) {
		struct skua_sqc *sqc;
		struct qp qp;

		open_watched(&w, &rc, NULL);
		set_rate(&rc, 0, 1000000, 0);
		assert_int_equal(qp_get(rc.s[0].f.dev, rc.s[0].qp.qpn, &qp), 0);
		sqc = qp.sqc;
		sqc->rate_time = cpu_to_le64(when[k % N(when)]);
		sqc->rate_frac = cpu_to_le32(k & 4 ? UINT32_MAX : 0);
		sqc->attr.rate_burst = cpu_to_le32(k & 8 ? UINT32_MAX : 0);
		qp_put(rc.s[0].f.dev, &qp);
		fill_sq(&rc, &rc.s[0].qp, SKUA_WQE_WRITE, 65536, 10);
		rc_pump_for(&rc, 60 * SEC);
		assert_int_equal(completed(&rc), 10);
		rc_close(&rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_is_kept),
		cmocka_unit_test(idle_saves_a_burst),
		cmocka_unit_test(asks_without_timeout),
		cmocka_unit_test(others_go_on),
		cmocka_unit_test(waits_without_work),
		cmocka_unit_test(changed),
		cmocka_unit_test(same_again),
		cmocka_unit_test(losses),
		cmocka_unit_test(retries_exhausted),
		cmocka_unit_test(rnr),
		cmocka_unit_test(drained),
		cmocka_unit_test(flushed_at_once),
		cmocka_unit_test(reset_forgets),
		cmocka_unit_test(destroyed),
		cmocka_unit_test(answers_go_at_once),
		cmocka_unit_test(spoilt_context),
		rig_test(ethernet),
		rig_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
