// SPDX-License-Identifier: GPL-2.0
/*
 * Payload that comes in the CQE: which, that nothing is written to memory then, and that
 * keys, rights and bounds count as if it were.
 */
#include "core_test.h"
#include "rc.h"
#include <skua/cqe_parse.h>

static struct rc rc;
static uint8_t before[16384];

static void open_with(const struct rc_opt *opt)
{
	rc_open(&rc, opt);
	for (int i = 0; i < 2; i++)
		rc_fill(rc.s[i].buf, RC_BUF, 1 + i);
	memcpy(before, rc.s[1].buf, sizeof(before));
}

/* Stays pinned. */
static struct skua_mpt *mpt(int i, uint32_t key)
{
	return ctx_get(rc.s[i].f.dev, SKUA_ICM_MPT, key >> 8);
}

static void qp_flags(int i, uint32_t flags)
{
	struct qp qp;

	assert_int_equal(qp_get(rc.s[i].f.dev, rc.s[i].qp.qpn, &qp), 0);
	qp.sqc->cfg.flags |= cpu_to_le32(flags);
	qp_put(rc.s[i].f.dev, &qp);
}

static void enable(void)
{
	for (int i = 0; i < 2; i++) {
		mpt(i, rc.s[i].key)->flags |= cpu_to_le32(SKUA_MPT_OWN_VA);
		qp_flags(i, SKUA_QP_F_SCATTER_RQ_CQE | SKUA_QP_F_SCATTER_SQ_CQE);
	}
}

static int setup(void **state)
{
	(void)state;
	open_with(&(struct rc_opt){ 0 });
	enable();
	return 0;
}

static int setup_uc(void **state)
{
	(void)state;
	open_with(&(struct rc_opt){ .type = SKUA_QP_UC });
	enable();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rc_close(&rc);
	return 0;
}

/* An empty CQ of 64-byte entries becomes one of half as many that are larger. */
static void enlarge(int i, struct mini_cq *cq)
{
	struct skua_cqc *cqc = ctx_get(rc.s[i].f.dev, SKUA_ICM_CQC, cq->cqn);

	assert_int_equal(cq->ci, 0);
	cq->log--;
	cq->size = 128;
	le32p_replace_bits(&cqc->flags, cq->log, SKUA_CQC_LOG_SIZE);
	cqc->flags |= cpu_to_le32(SKUA_CQC_CQE128);
	ctx_put(rc.s[i].f.dev, cqc);
}

/* The payload in the entry that was taken last. */
static const uint8_t *data_of(int i, const struct mini_cq *cq, uint32_t len)
{
	uint64_t at = cq->ring + (uint64_t)((cq->ci - 1) & ((1u << cq->log) - 1)) * cq->size;

	return (uint8_t *)fake_ptr(&rc.s[i].f, at) +
	       (cq->size == 128 && len <= 32 ? sizeof(struct skua_cqe) : 0);
}

static bool is_inline(const struct skua_cqe *cqe)
{
	return skua_cqe_flags(cqe) & SKUA_CQE_F_INLINE;
}

/* @in: it comes in the CQE, and nowhere else; or to memory alone. */
static void received(const struct skua_cqe *cqe, uint64_t from, uint64_t to, uint32_t len, bool in)
{
	struct rc_side *s = &rc.s[1];

	assert_int_equal(le32_to_cpu(cqe->byte_len), len);
	assert_int_equal(is_inline(cqe), in && len);
	if (in && len) {
		assert_memory_equal(data_of(1, &s->rcq, len), rc.s[0].buf + from, len);
		assert_memory_equal(s->buf + to, before + to, len);
	} else {
		assert_memory_equal(s->buf + to, rc.s[0].buf + from, len);
		memcpy(s->buf + to, before + to, len);
	}
}

static void send(enum skua_wqe_op op, uint64_t from, uint32_t len)
{
	rc_post(&rc, 0, &(struct rc_wr){ .op = op, .off = from, .len = len, .imm = 0x1234567 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
}

static void one_recv(enum skua_wqe_op op, uint32_t len, bool in)
{
	struct skua_cqe cqe;

	rc_recv(&rc, 1, 512, 8192);
	send(op, 2048 + len, len);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
	received(&cqe, 2048 + len, 512, len, in);
	if (op == SKUA_WQE_SEND_IMM)
		assert_int_equal(be32toh(cqe.imm), 0x1234567);
}

static void small(void **state)
{
	(void)state;
	for (uint32_t len = 0; len <= 70; len++) {
		one_recv(SKUA_WQE_SEND, len, len <= 32);
		one_recv(SKUA_WQE_SEND_IMM, len, len <= 32);
	}
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_CQE_SCATTER), 64);
}

static void large(void **state)
{
	(void)state;
	enlarge(1, &rc.s[1].rcq);
	for (uint32_t len = 0; len <= 70; len++)
		one_recv(SKUA_WQE_SEND, len, len <= 64);
}

/* No write of payload, and one for the CQE whatever its size. */
static void writes(void **state)
{
	struct skua_dev *dev = rc.s[1].f.dev;

	(void)state;
	for (int in = 1; in >= 0; in--) {
		uint64_t cqes, payload;

		rc_recv(&rc, 1, 512, 1024);
		rc_recv(&rc, 1, 512, 1024);
		/* The first one fills the caches. */
		send(SKUA_WQE_SEND, 0, 16);
		cqes = dev->tlp.fn.v[TLP_MWR_UP][TLP_CQE].count;
		payload = dev->tlp.fn.v[TLP_MWR_UP][TLP_PAYLOAD].count;
		send(SKUA_WQE_SEND, 0, 16);
		assert_int_equal(dev->tlp.fn.v[TLP_MWR_UP][TLP_CQE].count - cqes, 1);
		assert_int_equal(dev->tlp.fn.v[TLP_MWR_UP][TLP_PAYLOAD].count - payload, !in);
		mpt(1, rc.s[1].key)->flags &= ~cpu_to_le32(SKUA_MPT_OWN_VA);
	}
}

/* Messages of several packets, WRITEs with immediate, and QPs without the flag. */
static void not_these(void **state)
{
	struct qp qp;

	(void)state;
	one_recv(SKUA_WQE_SEND, 5000, false);
	/* One that comes in several packets of which the last is short. */
	one_recv(SKUA_WQE_SEND, 4096 + 8, false);
	rc_recv(&rc, 1, 512, 64);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE_IMM, .len = 8, .roff = 8192 });
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_false(is_inline(&(struct skua_cqe){ .own = rc_expect(&rc, 1, true, SKUA_CQE_OK).own }));
	assert_memory_equal(rc.s[1].buf + 8192, rc.s[0].buf, 8);
	qp_get(rc.s[1].f.dev, rc.s[1].qp.qpn, &qp);
	qp.sqc->cfg.flags &= ~cpu_to_le32(SKUA_QP_F_SCATTER_RQ_CQE);
	qp_put(rc.s[1].f.dev, &qp);
	one_recv(SKUA_WQE_SEND, 8, false);
}

/* Several elements, one of them of a region that is not the process's own. */
static void lists(void **state)
{
	struct rc_side *s = &rc.s[1];
	uint32_t other = mini_mr(&s->m, RC_VA, s->bus, 4096, SKUA_ACCESS_LOCAL_WRITE);
	struct sge sge[3] = {
		{ RC_VA + 100, s->key, 5 }, { RC_VA + 200, s->key, 0 }, { RC_VA + 300, s->key, 60 },
	};
	struct skua_cqe cqe;

	(void)state;
	rc_recv_sge(&rc, 1, sge, 3);
	send(SKUA_WQE_SEND, 0, 20);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
	assert_true(is_inline(&cqe));
	assert_memory_equal(data_of(1, &s->rcq, 20), rc.s[0].buf, 20);
	assert_memory_equal(s->buf, before, sizeof(before));

	sge[2].lkey = other;
	rc_recv_sge(&rc, 1, sge, 3);
	/* It is not reached. */
	send(SKUA_WQE_SEND, 0, 5);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
	assert_true(is_inline(&cqe));
	rc_recv_sge(&rc, 1, sge, 3);
	send(SKUA_WQE_SEND, 0, 6);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_OK);
	assert_false(is_inline(&cqe));
	assert_memory_equal(s->buf + 100, rc.s[0].buf, 5);
	assert_memory_equal(s->buf + 300, rc.s[0].buf + 5, 1);
}

/* What may not be written may not come in the CQE either. */
static void refused(void **state)
{
	static const struct {
		uint64_t off;
		uint32_t len;
		bool key, pd, access;
		enum skua_vendor vendor;
	} bad[] = {
		{ 0, 64, .key = true, .vendor = SKUA_VENDOR_KEY_INVALID },
		{ 0, 64, .pd = true, .vendor = SKUA_VENDOR_KEY_PD },
		{ 0, 64, .access = true, .vendor = SKUA_VENDOR_KEY_ACCESS },
		{ RC_BUF - 4, 64, .vendor = SKUA_VENDOR_KEY_BOUNDS },
		{ -4ull, 64, .vendor = SKUA_VENDOR_KEY_BOUNDS },
		{ 0, 4, .vendor = SKUA_VENDOR_MSG_LEN },
	};

	for (unsigned int k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		struct rc_side *s = &rc.s[1];
		struct sge sge = { RC_VA + bad[k].off, s->key ^ bad[k].key, bad[k].len };
		struct skua_cqe cqe;

		if (bad[k].pd)
			mpt(1, s->key)->pd = cpu_to_le32(MINI_PD + 1);
		if (bad[k].access)
			mpt(1, s->key)->access = 0;
		rc_recv_sge(&rc, 1, &sge, 1);
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .len = 8 });
		rc_pump(&rc);
		cqe = rc_expect(&rc, 1, true, bad[k].vendor == SKUA_VENDOR_MSG_LEN ?
				SKUA_CQE_LOC_LEN_ERR : SKUA_CQE_LOC_PROT_ERR);
		assert_int_equal(le32_get_bits(cqe.own, SKUA_CQE_VENDOR), bad[k].vendor);
		assert_false(is_inline(&cqe));
		teardown(state);
		setup(state);
	}
}

/* An invalidation that fails: neither this nor the next completion has the payload. */
static void invalidation(void **state)
{
	struct skua_cqe cqe;

	(void)state;
	rc_recv(&rc, 1, 512, 64);
	rc_recv(&rc, 1, 512, 64);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND_INV, .len = 8, .imm = 0x55500 });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_REM_INV_REQ_ERR);
	assert_false(is_inline(&cqe));
	cqe = rc_expect(&rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
	assert_false(is_inline(&cqe));
}

/* --- what the requester fetches --- */

static void read_one(uint32_t len, bool quiet, bool in)
{
	struct skua_cqe cqe;

	memcpy(before, rc.s[0].buf + 512, 128);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .off = 512, .roff = 4096 + len,
					 .len = len, .quiet = quiet });
	if (quiet)
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(le32_to_cpu(cqe.byte_len), quiet ? 0 : len);
	assert_int_equal(is_inline(&cqe), in);
	if (in) {
		assert_memory_equal(data_of(0, &rc.s[0].scq, len), rc.s[1].buf + 4096 + len, len);
		assert_memory_equal(rc.s[0].buf + 512, before, 128);
	} else {
		assert_memory_equal(rc.s[0].buf + 512, rc.s[1].buf + 4096 + len, len);
	}
}

static void reads(void **state)
{
	(void)state;
	for (uint32_t len = 0; len <= 70; len++)
		read_one(len, false, len && len <= 32);
	/* Nobody will look into a CQE that does not come. */
	read_one(16, true, false);
	read_one(5000, false, false);
}

static void reads_large(void **state)
{
	(void)state;
	enlarge(0, &rc.s[0].scq);
	for (uint32_t len = 0; len <= 70; len++)
		read_one(len, false, len && len <= 64);
}

/* What completes in the same turn, without a packet of its own, has nothing in its CQE. */
static void next_in_turn(void **state)
{
	struct skua_cqe cqe;

	(void)state;
	rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_READ, .roff = 64,
							     .len = 8 });
	for (int i = 0; i < 2; i++)
		rc_post_quiet(&rc, 0, &rc.s[0].qp, &(struct rc_wr){ .op = SKUA_WQE_NOP });
	mini_ring(&rc.s[0].m, &rc.s[0].qp);
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_true(is_inline(&cqe));
	for (int i = 0; i < 2; i++) {
		cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
		assert_false(is_inline(&cqe));
	}
	assert_int_equal(rc_cnt(&rc, 0, SKUA_CNT_CQE_SCATTER), 1);
}

static void atomics(void **state)
{
	uint64_t there = 0x1122334455667788, orig;
	struct skua_cqe cqe;

	(void)state;
	memcpy(rc.s[1].buf + 64, &there, 8);
	memcpy(before, rc.s[0].buf, 64);
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_FAA, .off = 8, .len = 8, .roff = 64,
					 .atomic = { { .swap_add = 1 } } });
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_true(is_inline(&cqe));
	memcpy(&orig, cqe.data, 8);
	assert_int_equal(orig, there);
	assert_memory_equal(rc.s[0].buf, before, 64);
	memcpy(&there, rc.s[1].buf + 64, 8);
	assert_int_equal(there, orig + 1);
}

/* The key goes while the READ is under way: as if its bytes were written. */
static void read_key_gone(void **state)
{
	struct skua_cqe cqe;

	(void)state;
	rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_READ, .len = 8, .roff = 64 });
	fake_run(&rc.s[0].f);
	mpt(0, rc.s[0].key)->access = 0;
	rc_pump(&rc);
	cqe = rc_expect(&rc, 0, false, SKUA_CQE_LOC_PROT_ERR);
	assert_false(is_inline(&cqe));
}

/* --- commands --- */

static void create(void **state)
{
	struct rc_side *s = &rc.s[0];
	static const struct {
		enum skua_qp_type type;
		uint32_t flag;
		int status;
	} row[] = {
		{ SKUA_QP_RC, SKUA_QP_F_SCATTER_RQ_CQE, SKUA_CMD_ST_OK },
		{ SKUA_QP_RC, SKUA_QP_F_SCATTER_SQ_CQE, SKUA_CMD_ST_OK },
		{ SKUA_QP_UC, SKUA_QP_F_SCATTER_RQ_CQE, SKUA_CMD_ST_OK },
		{ SKUA_QP_UC, SKUA_QP_F_SCATTER_SQ_CQE, SKUA_CMD_ST_BAD_PARAM },
		{ SKUA_QP_UD, SKUA_QP_F_SCATTER_RQ_CQE, SKUA_CMD_ST_BAD_PARAM },
		{ SKUA_QP_RAW_ETH, SKUA_QP_F_SCATTER_RQ_CQE, SKUA_CMD_ST_BAD_PARAM },
	};
	struct skua_cmd_create_mpt_in in = {};

	(void)state;
	for (unsigned int k = 0; k < 2 * sizeof(row) / sizeof(row[0]); k++) {
		bool off = k % 2;
		struct mini_qp qp;
		struct skua_cmd_create_qp_in q = mini_qp_in(&s->m, &qp, row[k / 2].type, &s->scq,
							    &s->rcq, 3, 3, 0);

		q.sq.flags |= cpu_to_le32(row[k / 2].flag);
		s->f.dev->caps |= SKUA_CAP_SCATTER_CQE;
		if (off)
			s->f.dev->caps &= ~SKUA_CAP_SCATTER_CQE;
		assert_int_equal(mini_cmd(&s->m, SKUA_CMD_CREATE_QP, &q, sizeof(q), NULL, 0),
				 off ? SKUA_CMD_ST_BAD_PARAM : row[k / 2].status);
	}
	/* A null region, or one in device memory, has no addresses of a process. */
	in.mpt = *mpt(0, s->key);
	in.mpt.flags |= cpu_to_le32(SKUA_MPT_OWN_VA);
	assert_int_equal(mini_cmd(&s->m, SKUA_CMD_MODIFY_MPT, &in, sizeof(in), NULL, 0),
			 SKUA_CMD_ST_BAD_PARAM);
	s->f.dev->caps |= SKUA_CAP_SCATTER_CQE;
	assert_int_equal(mini_cmd(&s->m, SKUA_CMD_MODIFY_MPT, &in, sizeof(in), NULL, 0),
			 SKUA_CMD_ST_OK);
	in.mpt.flags |= cpu_to_le32(SKUA_MPT_NULL);
	memset(&in.mpt.xlat, 0, sizeof(in.mpt.xlat));
	assert_int_equal(mini_cmd(&s->m, SKUA_CMD_MODIFY_MPT, &in, sizeof(in), NULL, 0),
			 SKUA_CMD_ST_BAD_PARAM);
	in.mpt.flags &= ~cpu_to_le32(SKUA_MPT_OWN_VA);
	assert_int_equal(mini_cmd(&s->m, SKUA_CMD_MODIFY_MPT, &in, sizeof(in), NULL, 0),
			 SKUA_CMD_ST_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(small, setup, teardown),
		cmocka_unit_test_setup_teardown(small, setup_uc, teardown),
		cmocka_unit_test_setup_teardown(large, setup, teardown),
		cmocka_unit_test_setup_teardown(writes, setup, teardown),
		cmocka_unit_test_setup_teardown(not_these, setup, teardown),
		cmocka_unit_test_setup_teardown(lists, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(invalidation, setup, teardown),
		cmocka_unit_test_setup_teardown(reads, setup, teardown),
		cmocka_unit_test_setup_teardown(reads_large, setup, teardown),
		cmocka_unit_test_setup_teardown(next_in_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(atomics, setup, teardown),
		cmocka_unit_test_setup_teardown(read_key_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(create, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
