// SPDX-License-Identifier: GPL-2.0
/*
 * FLUSH and ATOMIC WRITE over RC, as the IBTA's annex 19 (memory placement
 * extensions) has them: who may, in which order, how they are answered, and that
 * what is repeated is not executed again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc_fault.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define SEC	1000000000ull
#define O(op)	IB_OPCODE(RC, op)

#define GLOBAL		SKUA_WQE_FLUSH_GLOBAL
#define PERSISTENT	SKUA_WQE_FLUSH_PERSISTENT
#define WHOLE		(SKUA_WQE_FLUSH_MR << 4)
#define QP_ALL		(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | \
			 SKUA_ACCESS_FLUSH_GLOBAL | SKUA_ACCESS_FLUSH_PERSISTENT)

/* A page of the buffer of side 1, with these rights. */
static uint32_t page_key(struct rc *rc, uint32_t pd, uint32_t access)
{
	struct mini *m = &rc->s[1].m;
	struct skua_mpt mpt = {
		.key = cpu_to_le32(m->next_mpt++ << 8 | 0x77),
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(access),
		.pd = cpu_to_le32(pd),
		.va = cpu_to_le64(RC_VA),
		.len = cpu_to_le64(4096),
		.xlat.base = cpu_to_le64(rc->s[1].bus),
	};

	mini_ok(m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	return le32_to_cpu(mpt.key);
}

/* --- FLUSH: who may --- */

#define NO_KEY	1	/* instead of rights: a key that names nothing */

static const struct {
	const char *name;
	uint32_t how;
	uint64_t roff;
	uint32_t len;
	uint32_t rights;	/* of the region */
	uint32_t qp;		/* rights of the QP, 0: all */
	enum skua_cqe_status status;
} flushes[] = {
	{ "visible, one byte", GLOBAL, 0, 1, SKUA_ACCESS_FLUSH_GLOBAL, 0, SKUA_CQE_OK },
	{ "visible, a page", GLOBAL, 0, 4096, SKUA_ACCESS_FLUSH_GLOBAL, 0, SKUA_CQE_OK },
	{ "visible, nothing", GLOBAL, 0, 0, NO_KEY, 0, SKUA_CQE_OK },
	{ "visible, the region", GLOBAL | WHOLE, 1ull << 40, 0, SKUA_ACCESS_FLUSH_GLOBAL, 0,
	  SKUA_CQE_OK },
	{ "persistent", PERSISTENT, 0, 8, SKUA_ACCESS_FLUSH_PERSISTENT, 0, SKUA_CQE_OK },
	{ "both", GLOBAL | PERSISTENT, 0, 8,
	  SKUA_ACCESS_FLUSH_GLOBAL | SKUA_ACCESS_FLUSH_PERSISTENT, 0, SKUA_CQE_OK },
	{ "beyond the region", GLOBAL, 1, 4096, SKUA_ACCESS_FLUSH_GLOBAL, 0,
	  SKUA_CQE_REM_ACCESS_ERR },
	{ "no such key", GLOBAL, 0, 8, NO_KEY, 0, SKUA_CQE_REM_ACCESS_ERR },
	{ "no such key, the region", GLOBAL | WHOLE, 0, 0, NO_KEY, 0, SKUA_CQE_REM_ACCESS_ERR },
	{ "region without the right", PERSISTENT, 0, 8, SKUA_ACCESS_FLUSH_GLOBAL, 0,
	  SKUA_CQE_REM_ACCESS_ERR },
	{ "region with one right of two", GLOBAL | PERSISTENT, 0, 8,
	  SKUA_ACCESS_FLUSH_PERSISTENT, 0, SKUA_CQE_REM_ACCESS_ERR },
	{ "the region, without the right", GLOBAL | WHOLE, 0, 0, SKUA_ACCESS_REMOTE_WRITE, 0,
	  SKUA_CQE_REM_ACCESS_ERR },
	{ "QP without the right", GLOBAL, 0, 8, SKUA_ACCESS_FLUSH_GLOBAL,
	  SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_FLUSH_PERSISTENT, SKUA_CQE_REM_INV_REQ_ERR },
	{ "QP with one right of two", GLOBAL | PERSISTENT, 0, 8,
	  SKUA_ACCESS_FLUSH_GLOBAL | SKUA_ACCESS_FLUSH_PERSISTENT, SKUA_ACCESS_FLUSH_GLOBAL,
	  SKUA_CQE_REM_INV_REQ_ERR },
	{ "QP before key", GLOBAL, 0, 8, NO_KEY, SKUA_ACCESS_REMOTE_WRITE,
	  SKUA_CQE_REM_INV_REQ_ERR },
	{ "no placement", 0, 0, 8, SKUA_ACCESS_FLUSH_GLOBAL, 0, SKUA_CQE_REM_INV_REQ_ERR },
	{ "placement that nobody defines", 4 | GLOBAL, 0, 8, SKUA_ACCESS_FLUSH_GLOBAL, 0,
	  SKUA_CQE_REM_INV_REQ_ERR },
	{ "selectivity that nobody defines", GLOBAL | 2 << 4, 0, 8, SKUA_ACCESS_FLUSH_GLOBAL, 0,
	  SKUA_CQE_REM_INV_REQ_ERR },
};

/* All of a region without a byte. */
static void test_flush_empty(void **state)
{
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE),
		.access = cpu_to_le32(SKUA_ACCESS_FLUSH_GLOBAL),
		.pd = cpu_to_le32(MINI_PD),
		.va = cpu_to_le64(RC_VA),
	};
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .access = QP_ALL });
	mpt.key = cpu_to_le32(rc.s[1].m.next_mpt++ << 8 | 0x77);
	mini_ok(&rc.s[1].m, SKUA_CMD_CREATE_MPT, &mpt, sizeof(mpt));
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FLUSH, .flush = GLOBAL | WHOLE,
					 .rkey = le32_to_cpu(mpt.key) });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_close(&rc);
}

static void test_flush_rights(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(flushes); k++) {
		__typeof__(flushes[0]) *c = &flushes[k];
		struct skua_cqe cqe;
		uint32_t rkey = 0x3ff00;
		uint64_t reads;

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .access = c->qp ? c->qp | SKUA_ACCESS_REMOTE_READ :
								  QP_ALL });
		if (c->rights != NO_KEY)
			rkey = page_key(&rc, MINI_PD, c->rights);
		/* A first one, so that all contexts are there. */
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		reads = rc.s[1].f.reads;
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FLUSH, .flush = c->how,
						 .imm = c->len, .roff = c->roff, .rkey = rkey });
		rc_pump(&rc);
		reads = rc.s[1].f.reads - reads;
		cqe = rc_expect(&rc, 0, false, c->status);
		assert_int_equal(le32_to_cpu(cqe.byte_len), 0);
		if (c->status == SKUA_CQE_OK) {
			assert_int_equal(rc_state(&rc, 1), SKUA_QP_RTS);
			rc_expect_no_event(&rc, 1);
			/* A read behind the writes is what makes them seen. */
			assert_int_equal(reads, c->rights != NO_KEY);
		} else {
			assert_int_equal(rc_state(&rc, 1), SKUA_QP_ERR);
			rc_expect_event(&rc, 1, c->status == SKUA_CQE_REM_ACCESS_ERR ?
					SKUA_QP_EV_ACCESS_ERR : SKUA_QP_EV_REQ_ERR);
		}
		rc_close(&rc);
	}
}

/* --- ATOMIC WRITE --- */

static const struct {
	const char *name;
	uint64_t roff;
	uint32_t pd, rights, qp;
	enum skua_cqe_status status;
} writes[] = {
	{ "good", 8, MINI_PD, SKUA_ACCESS_REMOTE_WRITE, 0, SKUA_CQE_OK },
	{ "not a multiple of 8", 12, MINI_PD, SKUA_ACCESS_REMOTE_WRITE, 0,
	  SKUA_CQE_REM_INV_REQ_ERR },
	{ "another PD", 8, MINI_PD + 1, SKUA_ACCESS_REMOTE_WRITE, 0, SKUA_CQE_REM_ACCESS_ERR },
	{ "region without remote write", 8, MINI_PD, SKUA_ACCESS_REMOTE_ATOMIC, 0,
	  SKUA_CQE_REM_ACCESS_ERR },
	{ "beyond the region", 4096, MINI_PD, SKUA_ACCESS_REMOTE_WRITE, 0,
	  SKUA_CQE_REM_ACCESS_ERR },
	{ "QP without remote write", 8, MINI_PD, SKUA_ACCESS_REMOTE_WRITE,
	  SKUA_ACCESS_REMOTE_READ, SKUA_CQE_REM_INV_REQ_ERR },
	{ "alignment before key", 9, MINI_PD + 1, 0, 0, SKUA_CQE_REM_INV_REQ_ERR },
};

static void test_atomic_write(void **state)
{
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < 2 * N(writes); k++) {
		__typeof__(writes[0]) *c = &writes[k / 2];
		bool good = c->status == SKUA_CQE_OK;

		print_message("%s%s\n", c->name, k & 1 ? ", inline" : "");
		rc_open(&rc, &(struct rc_opt){ .access = c->qp ? c->qp : QP_ALL, .mtu_code = 1 });
		rc_fill(rc.s[0].buf + 64, 8, k);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_ATOMIC_WRITE, .off = 64, .len = 8,
			.roff = c->roff, .flags = k & 1 ? SKUA_WQE_F_INLINE : 0,
			.rkey = page_key(&rc, c->pd, c->rights | SKUA_ACCESS_LOCAL_WRITE) });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, c->status);
		if (good)
			rc_check(rc.s[1].buf + 8, 8, k);
		for (uint32_t b = 0; b < 8192; b++)
			assert_true(rc.s[1].buf[b] == 0 || (good && b >= 8 && b < 16));
		assert_int_equal(rc_state(&rc, 1), good ? SKUA_QP_RTS : SKUA_QP_ERR);
		if (!good)
			rc_expect_event(&rc, 1, c->status == SKUA_CQE_REM_ACCESS_ERR ?
					SKUA_QP_EV_ACCESS_ERR : SKUA_QP_EV_REQ_ERR);
		rc_expect_no_event(&rc, 1);
		rc_close(&rc);
	}
}

/* The 8 bytes may lie in several places; other lengths do not leave. */
static void test_atomic_write_source(void **state)
{
	struct rc_wr wr = { .op = SKUA_WQE_ATOMIC_WRITE, .nsge = 3 };
	struct rc rc;

	(void)state;
	rc_open(&rc, NULL);
	rc_fill(rc.s[0].buf, 8, 3);
	wr.sge[0] = (struct sge){ RC_VA, rc.s[0].key, 5 };
	wr.sge[1] = (struct sge){ RC_VA + 5, rc.s[0].key, 1 };
	wr.sge[2] = (struct sge){ RC_VA + 6, rc.s[0].key, 2 };
	rc_post(&rc, 0, &wr);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	rc_check(rc.s[1].buf, 8, 3);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_ATOMIC_WRITE, .len = 7 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_LOC_LEN_ERR);
	rc_close(&rc);
}

/* --- on the wire --- */

/* Requests, as a peer that does not mind its PSNs would send them. */
static void forge(struct rc *rc, uint8_t op, uint32_t psn, uint32_t len, uint8_t fill)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;
	uint32_t payload = op == O(FLUSH) ? 0 : len;

	assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), op, psn), 0);
	ib_reth_put(b.reth, RC_VA, rc->s[1].key, len);
	/* What is reserved is not looked at. */
	if (b.feth)
		be32_put(b.feth->word, 0xffffffc0 | GLOBAL);
	memset(b.payload, fill, payload);
	rc_inject(rc, 1, &b, payload);
	fake_run(&rc->s[1].f);
}

static bool next_answer(struct rc *rc, struct skua_pkt *pkt)
{
	static struct fake_frame held;
	struct fake_frame *f = fake_tx(&rc->s[1].f);

	if (!f)
		return false;
	held = *f;
	free(f);
	assert_int_equal(skua_pkt_parse(held.data, held.len, pkt), SKUA_PKT_OK);
	return true;
}

/*
 * Both are answered by a READ response of no length. Repeated, they are answered
 * once more but not executed: what was written since stays.
 */
static void test_answers_and_duplicates(void **state)
{
	struct skua_pkt pkt;
	uint64_t reads;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .access = QP_ALL, .psn = { 0xffffff } });
	forge(&rc, O(ATOMIC_WRITE), 0xffffff, 8, 0x11);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.opcode, O(READ_RESP_ONLY));
	assert_int_equal(pkt.psn, 0xffffff);
	assert_int_equal(pkt.payload_len, 0);
	assert_int_equal(rc.s[1].buf[7], 0x11);
	forge(&rc, O(FLUSH), 0, 8, 0);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.opcode, O(READ_RESP_ONLY));
	assert_int_equal(pkt.psn, 0);
	forge(&rc, O(ATOMIC_WRITE), 1, 8, 0x22);
	assert_true(next_answer(&rc, &pkt));
	reads = rc.s[1].f.reads;
	forge(&rc, O(ATOMIC_WRITE), 0xffffff, 8, 0x11);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.psn, 0xffffff);
	assert_int_equal(rc.s[1].buf[7], 0x22);
	forge(&rc, O(FLUSH), 0, 8, 0);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.opcode, O(READ_RESP_ONLY));
	assert_int_equal(pkt.psn, 0);
	assert_int_equal(rc.s[1].f.reads, reads);
	assert_false(next_answer(&rc, &pkt));
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_DUPLICATE_REQUEST), 2);
	rc_close(&rc);
}

/* So many FLUSHes from PSN 0 on that are there before the responder runs. */
static void flush_at_once(struct rc *rc, uint32_t num)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;

	for (uint32_t k = 0; k < num; k++) {
		assert_int_equal(rc_build(rc, 0, &b, frame, sizeof(frame), O(FLUSH), k), 0);
		ib_reth_put(b.reth, RC_VA, rc->s[1].key, 8);
		be32_put(b.feth->word, GLOBAL);
		rc_inject(rc, 1, &b, 0);
	}
	fake_run(&rc->s[1].f);
}

/*
 * FLUSH is not held to the depth that was agreed on. When all places wait for their
 * answer it is lost, and comes again.
 */
static void test_flush_depth(void **state)
{
	struct skua_pkt pkt;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .access = QP_ALL, .rd_atomic = 1 });
	flush_at_once(&rc, 17);
	for (uint32_t k = 0; k < 16; k++) {
		assert_true(next_answer(&rc, &pkt));
		assert_int_equal(pkt.opcode, O(READ_RESP_ONLY));
		assert_int_equal(pkt.psn, k);
	}
	assert_false(next_answer(&rc, &pkt));
	forge(&rc, O(FLUSH), 16, 8, 0);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.psn, 16);
	/* All again at once: there is no place for the last one, which will come once more. */
	flush_at_once(&rc, 17);
	for (uint32_t k = 0; k < 16; k++) {
		assert_true(next_answer(&rc, &pkt));
		assert_int_equal(pkt.psn, k);
	}
	assert_false(next_answer(&rc, &pkt));
	/* An ATOMIC WRITE is. */
	forge(&rc, O(ATOMIC_WRITE), 17, 8, 1);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.aeth->syndrome, IB_AETH_NAK | IB_NAK_INVALID_REQUEST);
	rc_close(&rc);
}

/*
 * A FLUSH is answered again although the context keeps a request that had its PSN 2^24 PSNs
 * before. One that had another PSN is kept.
 */
static void test_flush_old_psn(void **state)
{
	const struct rc_opt opt = { .access = QP_ALL, .onchip = 1, .mtu_code = 1 };
	struct skua_rqc *rqc;
	struct skua_pkt pkt;
	struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	/* Most of the packets are not seen. */
	rc.s[1].f.unjudged = true;
	forge(&rc, O(ATOMIC_WRITE), 0, 8, 0x11);
	forge(&rc, O(ATOMIC_WRITE), 1, 8, 0x22);
	for (uint32_t k = 0; k < 2; k++)
		assert_true(next_answer(&rc, &pkt));
	rc_evict(&rc, 1, &opt);
	rqc = mini_icm(&rc.s[1].m, SKUA_ICM_RQC, qp_index(rc.s[1].qp.qpn));
	assert_int_equal(le32_to_cpu(rqc->epsn), 2);
	/* As after 2^24 - 1 packets of WRITEs. */
	rqc->epsn = cpu_to_le32(1);

	for (uint32_t k = 0; k < 2; k++) {
		forge(&rc, O(FLUSH), 1, 8, 0);
		assert_true(next_answer(&rc, &pkt));
		assert_int_equal(pkt.opcode, O(READ_RESP_ONLY));
		assert_int_equal(pkt.psn, 1);
	}
	forge(&rc, O(ATOMIC_WRITE), 0, 8, 0x33);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.psn, 0);
	assert_int_equal(rc.s[1].buf[0], 0x22);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_DUPLICATE_REQUEST), 2);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_MALFORMED), 0);
	rc_close(&rc);
}

/* The length that an ATOMIC WRITE announces is 8. */
static void test_atomic_write_length(void **state)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;
	struct skua_pkt pkt;
	struct rc rc;

	(void)state;
	rc_open(&rc, &(struct rc_opt){ .access = QP_ALL });
	assert_int_equal(rc_build(&rc, 0, &b, frame, sizeof(frame), O(ATOMIC_WRITE), 0), 0);
	ib_reth_put(b.reth, RC_VA, rc.s[1].key, 16);
	rc_inject(&rc, 1, &b, 8);
	fake_run(&rc.s[1].f);
	assert_true(next_answer(&rc, &pkt));
	assert_int_equal(pkt.aeth->syndrome, IB_AETH_NAK | IB_NAK_INVALID_REQUEST);
	rc_close(&rc);
}

/* What the completer takes for their answer. PSN 10 is a FLUSH, 11 an ATOMIC WRITE. */
static const struct {
	const char *name;
	uint8_t op;
	uint32_t psn, payload;
	unsigned int done;
	enum skua_cqe_status status;	/* of the WQE after those done; OK: none */
	enum skua_counter cnt;
} answers[] = {
	{ "empty READ response", O(READ_RESP_ONLY), 10, 0, 1, SKUA_CQE_OK, SKUA_CNT_COUNT },
	{ "an ACK says that it is lost", O(ACK), 10, 0, 0, SKUA_CQE_OK,
	  SKUA_CNT_IMPLIED_NAK_SEQ_ERR },
	{ "the later answer says so too", O(READ_RESP_ONLY), 11, 0, 0, SKUA_CQE_OK,
	  SKUA_CNT_IMPLIED_NAK_SEQ_ERR },
	{ "READ response with data", O(READ_RESP_ONLY), 10, 8, 0, SKUA_CQE_BAD_RESP_ERR,
	  SKUA_CNT_COUNT },
	{ "READ response that goes on", O(READ_RESP_FIRST), 10, 0, 0, SKUA_CQE_BAD_RESP_ERR,
	  SKUA_CNT_COUNT },
	{ "atomic response", O(ATOMIC_ACK), 10, 0, 0, SKUA_CQE_OK, SKUA_CNT_RX_BAD_RESP },
};

static void test_completer(void **state)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 4096];
	struct skua_pkt_build b;
	struct rc rc;

	(void)state;
	for (size_t k = 0; k < N(answers); k++) {
		__typeof__(answers[0]) *c = &answers[k];

		print_message("%s\n", c->name);
		rc_open(&rc, &(struct rc_opt){ .access = QP_ALL, .psn = { 10 } });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FLUSH, .flush = GLOBAL, .imm = 8 });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_ATOMIC_WRITE, .len = 8 });
		fake_run(&rc.s[0].f);
		assert_int_equal(rc_build(&rc, 1, &b, frame, sizeof(frame), c->op, c->psn), 0);
		if (b.aeth)
			ib_aeth_put(b.aeth, IB_AETH_CREDIT_INVALID, 1);
		rc_inject(&rc, 0, &b, c->payload);
		fake_run(&rc.s[0].f);
		for (unsigned int i = 0; i < c->done; i++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		if (c->status)
			rc_expect(&rc, 0, false, c->status);
		else
			rc_expect_none(&rc, 0, false);
		if (c->cnt != SKUA_CNT_COUNT)
			assert_int_equal(rc_cnt(&rc, 0, c->cnt), 1);
		rc_close(&rc);
	}
}

/*
 * WRITE, FLUSH, ATOMIC WRITE of its number, over and over: whoever sees the number
 * sees the data, whatever the wire does, and numbers only rise.
 */
static void in_order(unsigned int percent, unsigned int seed)
{
	struct fault x[2] = { 0 };
	uint64_t last = 0;
	struct rc rc;

	rc_open(&rc, &(struct rc_opt){ .access = QP_ALL, .mtu_code = 1 + seed % 3, .timeout = 8,
				       .rd_atomic = 1 + 1 + seed % 4, .psn = { 0xffffc0, 0 } });
	for (int i = 0; i < 2; i++) {
		x[i].kind = KINDS;
		x[i].seed = seed * 2 + i;
		for (unsigned int k = 0; k < KINDS; k++)
			x[i].rate[k] = percent * 5 / (k == LOSS ? 1 : 4);
		set_fault(&rc, i, &x[i]);
	}
	for (uint64_t n = 1; n <= 60; n++) {
		__le64 num = cpu_to_le64(n), now;

		rc_fill(rc.s[0].buf + 4096, 2000, n);
		memcpy(rc.s[0].buf, &num, sizeof(num));
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_WRITE,
			      .len = 2000, .off = 4096, .roff = 4096, .quiet = true });
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_FLUSH,
			      .flush = GLOBAL | (n & 1 ? WHOLE : 0), .imm = n & 1 ? 0 : 2000,
			      .roff = 4096, .quiet = true });
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_ATOMIC_WRITE, .len = 8 });
		for (unsigned int step = 0; step < 40; step++) {
			rc_pump_for(&rc, 1000000);
			memcpy(&now, rc.s[1].buf, sizeof(now));
			assert_true(le64_to_cpu(now) == last || le64_to_cpu(now) == n);
			last = le64_to_cpu(now);
			if (last == n)
				rc_check(rc.s[1].buf + 4096, 2000, n);
		}
		rc_pump_for(&rc, SEC);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		rc_expect_none(&rc, 0, false);
		memcpy(&now, rc.s[1].buf, sizeof(now));
		assert_int_equal(le64_to_cpu(now), n);
		last = n;
	}
	for (int i = 0; i < 2; i++)
		free(x[i].hold);
	rc_close(&rc);
}

static void test_in_order(void **state)
{
	static const unsigned int percent[] = { 0, 2, 8, 20 };

	(void)state;
	for (unsigned int k = 0; k < N(percent); k++) {
		for (unsigned int seed = 1; seed <= 4; seed++)
			in_order(percent[k], seed * 5 + k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush_rights),
		cmocka_unit_test(test_flush_empty),
		cmocka_unit_test(test_atomic_write),
		cmocka_unit_test(test_atomic_write_source),
		cmocka_unit_test(test_answers_and_duplicates),
		cmocka_unit_test(test_flush_depth),
		cmocka_unit_test(test_flush_old_psn),
		cmocka_unit_test(test_atomic_write_length),
		cmocka_unit_test(test_completer),
		cmocka_unit_test(test_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
