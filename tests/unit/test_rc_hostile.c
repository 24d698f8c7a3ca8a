// SPDX-License-Identifier: GPL-2.0
/*
 * RC and those who mean harm: a guest that rewrites what it posted or what the
 * device keeps in its memory, and a wire full of forged packets. The worst that
 * may come of it is an error of that guest's own QP.
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
#include "roce/engine.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull

/* --- WQEs that change after the doorbell --- */

/* The first WQE of side 0: segments of a WRITE or READ. */
static struct skua_wqe_ctrl *wqe_ctrl(struct rc *rc)
{
	return fake_ptr(&rc->s[0].f, rc->s[0].qp.sq);
}

static void change_len(struct rc *rc)
{
	struct skua_wqe_data *d = (void *)(wqe_ctrl(rc) + 2);

	d->len = cpu_to_le32(le32_to_cpu(d->len) + 1);
}

static void change_op(struct rc *rc)
{
	le32p_replace_bits(&wqe_ctrl(rc)->op, SKUA_WQE_SEND, SKUA_WQE_OPCODE);
	/* Its remote address is now a data segment of no key. */
}

static void change_to_read(struct rc *rc)
{
	le32p_replace_bits(&wqe_ctrl(rc)->op, SKUA_WQE_READ, SKUA_WQE_OPCODE);
}

static void change_rkey(struct rc *rc)
{
	struct skua_wqe_raddr *r = (void *)(wqe_ctrl(rc) + 1);

	r->rkey = cpu_to_le32(le32_to_cpu(r->rkey) ^ 0x100);
}

static void change_va(struct rc *rc)
{
	struct skua_wqe_raddr *r = (void *)(wqe_ctrl(rc) + 1);

	r->va = cpu_to_le64(0);
}

static void change_index(struct rc *rc)
{
	le32p_replace_bits(&wqe_ctrl(rc)->op, 16, SKUA_WQE_INDEX);
}

static void change_nseg(struct rc *rc)
{
	le32p_replace_bits(&wqe_ctrl(rc)->op, 255, SKUA_WQE_NSEG);
}

static void change_nseg0(struct rc *rc)
{
	le32p_replace_bits(&wqe_ctrl(rc)->op, 0, SKUA_WQE_NSEG);
}

static void change_flags(struct rc *rc)
{
	wqe_ctrl(rc)->flags ^= cpu_to_le32(SKUA_WQE_F_INLINE);
}

static void change_all(struct rc *rc)
{
	memset(wqe_ctrl(rc), 0xff, 64);
}

static void (*const changes[])(struct rc *) = {
	change_len, change_op, change_to_read, change_rkey, change_va, change_index, change_nseg,
	change_nseg0, change_flags, change_all,
};

static bool drop_all(void *priv, struct fake_frame *frame)
{
	(void)priv;
	(void)frame;
	return false;
}

/* In the midst of a message, of which a part is sent and nothing acknowledged. */
static void test_changed_while_sent(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(changes); k++) {
		rc_open(&rc, NULL);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1 << 20 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .quiet = true });
		skua_dev_run(rc.s[0].f.dev);
		changes[k](&rc);
		rc_pump_for(&rc, SEC);
		cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
		assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_CHANGED);
		assert_int_equal(skua_cqe_wqe_index(&cqe), 0);
		rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
		rc_expect_none(&rc, 0, false);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		rc_close(&rc);
	}
}

/*
 * When all is sent and has to be sent again. With the cache's memory of it a
 * change is found at once; without, ring and PSNs do not meet, or the peer refuses
 * the packet, or it is what the guest might as well have asked for in the first
 * place: then all is well.
 */
static void test_changed_before_resend(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < 2 * N(changes); k++) {
		bool forget = k >= N(changes);

		rc_open(&rc, &(struct rc_opt){ .mtu_code = 1 });
		rc.s[0].f.judge.fickle = true;
		rc.s[0].f.filter = drop_all;
		rc_recv(&rc, 1, 0, 1024);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 1024 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		rc_pump(&rc);
		changes[k % N(changes)](&rc);
		if (forget)
			memset(rc.s[0].f.dev->engine->flight, 0,
			       sizeof(rc.s[0].f.dev->engine->flight));
		rc.s[0].f.filter = NULL;
		rc_pump_for(&rc, 5 * SEC);
		assert_true(mini_cq_next(&rc.s[0].m, &rc.s[0].scq, &cqe));
		assert_int_equal(skua_cqe_wqe_index(&cqe), 0);
		if (changes[k % N(changes)] == change_rkey)
			assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_REM_ACCESS_ERR);
		else if (skua_cqe_status(&cqe) == SKUA_CQE_OK)
			assert_true(forget && (changes[k % N(changes)] == change_to_read ||
					       changes[k % N(changes)] == change_op));
		assert_int_equal(rc_state(&rc, 0), skua_cqe_status(&cqe) ? SKUA_QP_ERR :
				 SKUA_QP_RTS);
		assert_true(mini_cq_next(&rc.s[0].m, &rc.s[0].scq, &cqe));
		assert_false(mini_cq_next(&rc.s[0].m, &rc.s[0].scq, &cqe));
		rc_close(&rc);
	}
}

/* The in-flight cache may lose anything: the ring has it all. */
static void test_inflight_misses(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .mtu_code = 1, .log_sq = 8 });
	rc_fill(rc.s[1].buf, 20000, 3);
	for (unsigned int k = 0; k < 100; k++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){
			.op = k % 3 == 0 ? SKUA_WQE_READ : k % 3 == 1 ? SKUA_WQE_WRITE :
			      SKUA_WQE_NOP,
			.len = 100 * k, .off = 1 << 20, .roff = k % 3 ? 1 << 20 : 0 });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	for (bool more = true; more; ) {
		struct engine *e = rc.s[0].f.dev->engine;
		struct fake_frame *f;

		more = skua_dev_run(rc.s[0].f.dev);
		memset(e->flight, 0, sizeof(e->flight));
		rlist_drop_all(&e->lists);
		while ((f = fake_tx(&rc.s[0].f))) {
			fake_rx(&rc.s[1].f, f->data, f->len);
			free(f);
			more = true;
		}
		more |= skua_dev_run(rc.s[1].f.dev);
		while ((f = fake_tx(&rc.s[1].f))) {
			fake_rx(&rc.s[0].f, f->data, f->len);
			free(f);
			more = true;
		}
	}
	for (unsigned int k = 0; k < 100; k++) {
		struct skua_cqe cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);

		assert_int_equal(skua_cqe_wqe_index(&cqe), k);
	}
	rc_check(rc.s[0].buf + (1 << 20), 9900, 3);
	assert_true(rc_cnt(&rc, 0, SKUA_CNT_INFLIGHT_MISS) > 50);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_TX_RETRANS_PKTS), 0);
	rc_close(&rc);
}

/* A WQE that claims more than was posted, and a ring that cannot be read. */
static void test_ring_ends(void **state)
{
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .nsge = 10 });
	fake_db(&rc.s[0].f, MINI_UAR, SKUA_UAR_SQ, 1, rc.s[0].qp.qpn);
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_FORMAT);
	rc_expect_none(&rc, 0, false);
	rc_close(&rc);

	rc_open(&rc, NULL);
	fake_hole(&rc.s[0].f, rc.s[0].qp.sq, 4096);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_DMA);
	rc_close(&rc);

	/* Memory that is registered but gone. */
	rc_open(&rc, NULL);
	fake_hole(&rc.s[1].f, rc.s[1].bus + 8192, 4096);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 16384 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_REM_OP_ERR);
	rc_expect_event(&rc, 1, SKUA_QP_EV_FATAL);
	rc_close(&rc);

	rc_open(&rc, NULL);
	fake_hole(&rc.s[1].f, rc.s[1].bus + 8192, 4096);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 16384 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_REM_OP_ERR);
	rc_close(&rc);
}

/* --- forged packets --- */

enum forgery {
	NONE, SOURCE, DEST, TAGGED, PKEY, PKEY_LIMITED, NO_QP, VARIANT, TRANSPORT, TVER, CRC,
	VENDOR_OP, UNKNOWN_OP,
};

static const struct {
	const char *name;
	enum forgery how;
	enum skua_counter cnt;
} forgeries[] = {
	{ "nothing forged", NONE, SKUA_CNT_RX_WRITE },
	{ "from another address", SOURCE, SKUA_CNT_RX_BAD_PEER },
	{ "for another address", DEST, SKUA_CNT_COUNT },
	{ "in a VLAN", TAGGED, SKUA_CNT_COUNT },
	{ "another P_Key (C9-43)", PKEY, SKUA_CNT_RX_BAD_PKEY },
	{ "a limited member", PKEY_LIMITED, SKUA_CNT_RX_WRITE },
	{ "a QP that is not", NO_QP, SKUA_CNT_RX_NO_QP },
	{ "a QP of an earlier life", VARIANT, SKUA_CNT_RX_NO_QP },
	{ "another transport", TRANSPORT, SKUA_CNT_RX_MALFORMED },
	{ "another header version", TVER, SKUA_CNT_RX_MALFORMED },
	{ "a damaged packet", CRC, SKUA_CNT_RX_ICRC },
	{ "a manufacturer's opcode", VENDOR_OP, SKUA_CNT_RX_MALFORMED },
	{ "an opcode that is not", UNKNOWN_OP, SKUA_CNT_RX_MALFORMED },
};

static void forge(struct rc *rc, enum forgery how)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_addr a = rc_addr(rc, 0);
	struct skua_pkt_bth bth = {
		.opcode = how == TRANSPORT ? IB_OPCODE(UC, WRITE_ONLY) : IB_OPCODE(RC, WRITE_ONLY),
		.pkey = how == PKEY ? 0x8001 : how == PKEY_LIMITED ? 0x7fff : IB_PKEY_DEFAULT,
		.dqpn = rc->s[1].qp.qpn ^ (how == NO_QP ? 0x80 : how == VARIANT ?
					   1u << MODEL_LOG_QP : 0),
		.ackreq = true,
	};
	struct skua_pkt_build b;
	size_t len;

	if (how == SOURCE)
		a.sgid[15] = 77;
	if (how == DEST)
		a.dgid[15] = 78;
	if (how == TAGGED) {
		a.vlan = true;
		a.tci = 5;
	}
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
	ib_reth_put(b.reth, RC_VA, rc->s[1].key, 8);
	memset(b.payload, 0x66, 8);
	if (how == TVER)
		b.bth->flags |= 1;
	if (how == VENDOR_OP)
		b.bth->opcode = 0xc5;
	if (how == UNKNOWN_OP)
		b.bth->opcode = 0x15;
	len = skua_pkt_build_finish(&b, 8);
	if (how == CRC)
		b.payload[3] ^= 1;
	fake_rx(&rc->s[1].f, frame, len);
}

static void test_forged(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(forgeries); k++) {
		bool good = forgeries[k].cnt == SKUA_CNT_RX_WRITE;

		print_message("%s\n", forgeries[k].name);
		rc_open(&rc, NULL);
		forge(&rc, forgeries[k].how);
		fake_run(&rc.s[1].f);
		if (forgeries[k].cnt != SKUA_CNT_COUNT)
			assert_int_equal(rc_cnt(&rc, 1, forgeries[k].cnt), 1);
		assert_int_equal(rc.s[1].f.sent, good);
		assert_int_equal(rc.s[1].buf[0], good ? 0x66 : 0);
		rc_expect_no_event(&rc, 1);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
		rc_close(&rc);
	}
}

/* --- contexts in memory of the host --- */

/*
 * What the device wrote back is scribbled over: everything but what was said at
 * creation. The device may die of it, or its QPs; nothing else.
 */
static void test_scribbled_contexts(void **state)
{
	const struct rc_opt opt = { .onchip = 1, .log_sq = 4, .log_rq = 4, .mtu_code = 1,
				    .timeout = 5 };
	static const enum skua_wqe_op ops[] = {
		SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_FAA, SKUA_WQE_ATOMIC_WRITE,
		SKUA_WQE_FLUSH, SKUA_WQE_MASKED_CAS, SKUA_WQE_NOP, SKUA_WQE_BIND_MW,
	};
	unsigned int seed = 1;
	struct mini_qp qp[2][20];
	struct rc rc;

	(void)state;
	for (unsigned int round = 0; round < 90; round++) {
		struct skua_mpt mw = {
			.flags = cpu_to_le32(SKUA_MPT_FREE | SKUA_MPT_MW1 << 4),
			.pd = cpu_to_le32(MINI_PD),
		};

		rc_open(&rc, &opt);
		rc.s[0].f.unjudged = true;
		/* More windows than the cache holds. */
		for (unsigned int k = 0; k < 20; k++) {
			mw.key = cpu_to_le32((100 + k) << 8);
			mini_ok(&rc.s[0].m, SKUA_CMD_CREATE_MPT, &mw, sizeof(mw));
		}
		for (unsigned int q = 0; q < 20; q++) {
			for (int i = 0; i < 2; i++)
				rc_qp(&rc, i, &qp[i][q], &opt);
			for (int i = 0; i < 2; i++) {
				struct skua_qp_attr a = rc_attr(&rc, i, &opt, qp[1 - i][q].qpn);

				mini_rc_to_rts(&rc.s[i].m, &qp[i][q], &a);
			}
		}
		for (unsigned int step = 0; step < 40; step++) {
			unsigned int q = rand_r(&seed) % 20;
			uint32_t index = qp_index(qp[0][q].qpn);
			uint8_t *sqc = mini_icm(&rc.s[0].m, SKUA_ICM_SQC, index);
			uint8_t *rqc = mini_icm(&rc.s[0].m, SKUA_ICM_RQC, index);
			uint8_t *rrc = mini_icm(&rc.s[0].m, SKUA_ICM_RRC, index);
			uint8_t *mpt = mini_icm(&rc.s[0].m, SKUA_ICM_MPT, 100 + q);
			size_t from = offsetof(struct skua_sqc, cur);
			struct rc_wr wr = { .op = ops[rand_r(&seed) % N(ops)],
					    .len = rand_r(&seed) % 5000, .flush = 1 };
			int i = round % 3 == 2;

			if (wr.op >= SKUA_WQE_CAS)
				wr.len = 8;
			skua_wqe_bind_set(&wr.bind, (100 + q) << 8, (100 + q) << 8, rc.s[0].key,
					  0xe, RC_VA, 4096);
			/* As requester, as responder. */
			if (i)
				wr.rkey = rand_r(&seed) % 2 ? 0 : (100 + q) << 8;
			rc_post_quiet(&rc, i, &qp[i][q], &wr);
			mini_ring(&rc.s[i].m, &qp[i][q]);
			if (round % 4 == 0)
				mpt[rand_r(&seed) % SKUA_ICM_MPT_SIZE] = rand_r(&seed);
			if (rand_r(&seed) % 4)
				sqc[from + rand_r(&seed) % (sizeof(struct skua_sqc) - from)] =
					rand_r(&seed);
			from = offsetof(struct skua_rqc, epsn);
			rqc[from + rand_r(&seed) % (sizeof(struct skua_rqc) - from)] =
				rand_r(&seed);
			rrc[rand_r(&seed) % SKUA_ICM_RRC_SIZE] = rand_r(&seed);
			skua_dev_run(rc.s[0].f.dev);
			skua_dev_run(rc.s[1].f.dev);
			if (rand_r(&seed) % 3 == 0)
				rc_pump_for(&rc, 1000000);
		}
		rc_pump_for(&rc, 10000000);
		rc_close(&rc);
	}
}

/*
 * Of a READ, between the request and the first response. A list of one element is kept: it
 * is that of when the request was sent. A longer one is read again, and so is the one that
 * the cache has lost.
 */
static void test_read_changed(void **state)
{
	static const struct {
		uint32_t nsge;
		bool lost;
	} cases[] = { { 1, false }, { 1, true }, { 2, false } };
	struct skua_wqe_data *data;
	struct skua_cqe cqe;
	struct rc rc;

	(void)state;
	for (unsigned int i = 0; i < N(cases); i++) {
		struct rc_wr wr = { .op = SKUA_WQE_READ, .nsge = cases[i].nsge };

		rc_open(&rc, NULL);
		for (uint32_t k = 0; k < wr.nsge; k++)
			wr.sge[k] = (struct sge){ .addr = RC_VA + 1000 * k, .lkey = rc.s[0].key,
						  .len = 100 };
		rc_fill(rc.s[1].buf, 200, i);
		rc_post(&rc, 0, &wr);
		skua_dev_run(rc.s[0].f.dev);
		if (cases[i].lost)
			memset(rc.s[0].f.dev->engine->flight, 0,
			       sizeof(rc.s[0].f.dev->engine->flight));
		data = (void *)(wqe_ctrl(&rc) + 2);
		assert_int_equal(le32_to_cpu(data->len), 100);
		data->len = cpu_to_le32(200);
		rc_pump_for(&rc, SEC);
		if (wr.nsge == 1 && !cases[i].lost) {
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
			rc_check(rc.s[0].buf, 100, i);
			assert_int_equal(rc.s[0].buf[100], 0);
		} else if (cases[i].lost) {
			/* The WQE is for more than the response has. */
			cqe = rc_expect(&rc, 0, false, SKUA_CQE_BAD_RESP_ERR);
			assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_RESP_BAD);
		} else {
			cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
			assert_int_equal(skua_cqe_vendor(&cqe), SKUA_VENDOR_WQE_CHANGED);
		}
		rc_close(&rc);
	}
}

/* From the second look on the record of receives claims more than there can be. */
static void spoil_record(void *priv, uint64_t iova, size_t len)
{
	struct rc_side *s = priv;
	struct skua_qp_dbr *dbr = fake_ptr(&s->f, s->qp.dbr);
	static unsigned int looks;

	(void)len;
	if (iova != s->qp.dbr + offsetof(struct skua_qp_dbr, rq_pi))
		return;
	if (looks++)
		dbr->rq_pi = cpu_to_le32(1000);
}

/* It is not believed, but what it said before is. */
static void test_record(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_recv(&rc, 1, 0, 100);
	rc_recv(&rc, 1, 0, 100);
	rc.s[1].f.on_read = spoil_record;
	rc.s[1].f.on_priv = &rc.s[1];
	for (unsigned int k = 0; k < 2; k++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 100 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect(&rc, 1, true, SKUA_CQE_OK);
	}
	rc_close(&rc);
}

/* The ACK of all comes late, when a part has been sent once more. */
static void test_late_ack(void **state)
{
	uint8_t frame[SKUA_PKT_OVERHEAD];
	struct skua_pkt_build b;
	struct rc_side *s;
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	s = &rc.s[0];
	s->f.unjudged = true;
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 100 * 4096 });
	fake_run(&s->f);
	assert_int_equal(s->f.sent, 100);
	s->f.now = s->f.deadline;
	skua_dev_tick(s->f.dev);
	skua_dev_run(s->f.dev);
	assert_in_range(s->f.sent, 101, 199);
	assert_int_equal(rc_build(&rc, 1, &b, frame, sizeof(frame), IB_OPCODE(RC, ACK), 99), 0);
	ib_aeth_put(b.aeth, IB_AETH_ACK | IB_AETH_CREDIT_INVALID, 1);
	rc_inject(&rc, 0, &b, 0);
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_RX_BAD_RESP), 0);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

/* Indices that the host has changed: none is sent behind the producer's. */
static void test_indices(void **state)
{
	static const struct {
		uint32_t cur, hi;
	} bad[] = { { 1, 0 }, { 0, 2 }, { 2, 2 }, { -1, 0 }, { 0, -1 } };

	(void)state;
	for (size_t k = 0; k < N(bad); k++) {
		struct skua_sqc *sqc;
		struct rc rc;

		rc_open(&rc, NULL);
		rc.s[0].f.unjudged = true;
		sqc = ctx_get(rc.s[0].f.dev, SKUA_ICM_SQC, qp_index(rc.s[0].qp.qpn));
		sqc->cur = cpu_to_le32(bad[k].cur);
		sqc->hi = cpu_to_le32(bad[k].hi);
		ctx_put(rc.s[0].f.dev, sqc);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8 });
		rc_pump(&rc);
		assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
		rc_expect_event(&rc, 0, SKUA_QP_EV_FATAL);
		rc_close(&rc);
	}
}

/*
 * The event of a failure that waits for its NAK, as the host would have it: there are
 * so many kinds of events and no more.
 */
static void test_fail_event(void **state)
{
	static const uint32_t events[] = {
		SKUA_QP_EV_REQ_ERR, SKUA_QP_EV_COUNT, SKUA_QP_EV_COUNT + 1, 31, 32, UINT32_MAX,
	};
	const struct rc_opt opt = { .onchip = 1, .mtu_code = 1 };

	(void)state;
	for (size_t k = 0; k < N(events); k++) {
		struct skua_rqc *rqc;
		struct rc rc;

		rc_open(&rc, &opt);
		rc.s[1].f.unjudged = true;
		rc_evict(&rc, 1, &opt);
		rqc = mini_icm(&rc.s[1].m, SKUA_ICM_RQC, qp_index(rc.s[1].qp.qpn));
		rqc->flags |= cpu_to_le32(SKUA_RQC_FAILED | SKUA_RQC_NAK_PENDING);
		rqc->nak = cpu_to_le32(IB_AETH_NAK | IB_NAK_INVALID_REQUEST);
		rqc->fail_event = cpu_to_le32(events[k]);
		sched_kick_resp(rc.s[1].f.dev, rc.s[1].qp.qpn);
		rc_pump(&rc);
		assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
		if (events[k] < SKUA_QP_EV_COUNT)
			rc_expect_event(&rc, 1, events[k]);
		rc_expect_no_event(&rc, 1);
		rc_close(&rc);
	}
}

/* --- marks of selective repeat --- */

static uint32_t dropping;

/* The first frame is lost, and all behind the eighth. */
static bool drop_some(void *priv, struct fake_frame *frame)
{
	(void)priv;
	(void)frame;
	return dropping++ - 1 < 7;
}

/* A word of the send queue's context, which is not on the chip. */
static __le32 *sq_word(struct rc *rc, size_t at)
{
	cache_evict_range(rc->s[0].f.dev, 0, UINT64_MAX);
	return (void *)((uint8_t *)mini_icm(&rc->s[0].m, SKUA_ICM_SQC,
					    qp_index(rc->s[0].qp.qpn)) + at);
}

/* Eight messages under way, of which the first is missing. */
static void open_in_loss(struct rc *rc, enum skua_wqe_op op, bool onload)
{
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_RECOVERY_EQ),
		.recovery_eqn = cpu_to_le32(MINI_EQS),
	};
	struct mini_eq eq;

	rc_open(rc, &(struct rc_opt){
		.mtu_code = 1, .timeout = 12, .ext = { SKUA_EXT_ALWAYS, SKUA_EXT_ALWAYS },
		.psn = { 0xfffffc, 0 }, .onload = onload,
	});
	rc->s[0].f.unjudged = true;
	if (onload) {
		assert_int_equal(mini_eq_create(&rc->s[0].m, &eq, MINI_EQS, 6, 0, 1), 0);
		mini_ok(&rc->s[0].m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	}
	rc->s[0].f.filter = drop_some;
	dropping = 0;
	for (uint32_t n = 0; n < 8; n++)
		rc_post_quiet(rc, 0, &rc->s[0].qp, &(struct rc_wr){
			.op = op, .off = n * 256, .roff = n * 256, .len = 256 });
	mini_ring(&rc->s[0].m, &rc->s[0].qp);
	rc_pump(rc);
	assert_true(le32_to_cpu(*sq_word(rc, offsetof(struct skua_sqc, valid))) & SKUA_SQC_LOSS);
}

/*
 * The PSNs up to which the requester of selective repeat has come, as the host would have
 * them: none is ever beyond what was sent. To walk up to there would take many milliseconds.
 */
static void test_marks(void **state)
{
#define M(f)	offsetof(struct skua_lrc, f)
	static const size_t marks[] = {
		M(lost), M(again_end), M(mark_end), M(hole_top), M(seen), M(top), M(next),
		M(again), M(cum),
	};
#undef M

	(void)state;
	for (size_t k = 0; k < 2 * N(marks); k++) {
		uint32_t una, end;
		uint8_t *lrc;
		struct rc rc;

		open_in_loss(&rc, SKUA_WQE_WRITE, false);
		lrc = mini_icm(&rc.s[0].m, SKUA_ICM_LRC, qp_index(rc.s[0].qp.qpn));
		una = le32_to_cpu(*sq_word(&rc, offsetof(struct skua_sqc, una_psn)));
		assert_int_equal(una, 0xfffffc);
		memset(lrc, 0xff, sizeof(((struct skua_lrc *)NULL)->arrived));
		*(__le32 *)(lrc + marks[k / 2]) = cpu_to_le32((una + (1u << 22)) & IB_PSN_MASK);
		end = 8;
		if (k % 2) {
			/* What was sent is as far off. */
			*sq_word(&rc, offsetof(struct skua_sqc, max_psn)) =
				cpu_to_le32((una + (1u << 22)) & IB_PSN_MASK);
			end = SKUA_LRC_PSNS;
		}
		rc_pump_for(&rc, 3000000);
		cache_evict_range(rc.s[0].f.dev, 0, UINT64_MAX);
		for (size_t n = 0; n < N(marks); n++) {
			uint32_t at = le32_to_cpu(*(__le32 *)(lrc + marks[n]));

			if (ib_psn_diff(at, una) > (int32_t)end)
				fail_msg("mark %zu: mark %zu is %d ahead", k / 2, n,
					 ib_psn_diff(at, una));
		}
		assert_int_equal(rc.s[0].f.dev->state, DEV_OPERATIONAL);
		rc_close(&rc);
	}
}

/* What is acknowledged is not of the message that is to be completed next. */
static void test_other_message(void **state)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 256];
	struct skua_pkt_build b;
	struct rc rc;

	(void)state;
	open_in_loss(&rc, SKUA_WQE_WRITE, false);
	*sq_word(&rc, offsetof(struct skua_sqc, ci_psn)) = cpu_to_le32(0xfffffc - 100);
	assert_int_equal(rc_build(&rc, 1, &b, frame, sizeof(frame), IB_OPCODE(RC, ACK), 0xffffff),
			 0);
	ib_aeth_put(b.aeth, IB_AETH_CREDIT_INVALID, 3);
	rc_inject(&rc, 0, &b, 0);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
	rc_close(&rc);
}

/* Likewise where the driver says what is complete. */
static void test_other_message_onload(void **state)
{
	struct skua_recovery_cmd *cmd;
	struct rc rc;

	(void)state;
	open_in_loss(&rc, SKUA_WQE_READ, true);
	cmd = fake_ptr(&rc.s[0].f, rc.s[0].m.rec_ring);
	*cmd = (struct skua_recovery_cmd){
		.serial = *sq_word(&rc, offsetof(struct skua_sqc, rec_serial)),
		.op = cpu_to_le32(SKUA_RECOVERY_ADVANCE),
		.end = cpu_to_le32(0xffffff),
	};
	*sq_word(&rc, offsetof(struct skua_sqc, ci_psn)) = cpu_to_le32(0xfffffc - 100);
	*sq_word(&rc, offsetof(struct skua_sqc, rec_cum)) = cpu_to_le32(0);
	fake_db(&rc.s[0].f, 0, SKUA_UAR_RECOVERY, 1, rc.s[0].qp.qpn);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_QP_OP_ERR);
	rc_expect(&rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
	assert_int_equal(rc_state(&rc, 0), SKUA_QP_ERR);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changed_while_sent),
		cmocka_unit_test(test_changed_before_resend),
		cmocka_unit_test(test_read_changed),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_late_ack),
		cmocka_unit_test(test_indices),
		cmocka_unit_test(test_inflight_misses),
		cmocka_unit_test(test_ring_ends),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_scribbled_contexts),
		cmocka_unit_test(test_fail_event),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_other_message),
		cmocka_unit_test(test_other_message_onload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
