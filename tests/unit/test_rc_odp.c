// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging over RC: each operation with the pages of one side missing, and
 * what becomes of it when software brings them, all or one by one, cannot, comes late,
 * or takes them away again; and when the QP ends meanwhile.
 */
#include "odp.h"
#include "rc_fault.h"

/* Where the message lies in both regions: not at a page's start, over several. */
#define OFF	(3 * PAGE - 200)
#define LONG	(3 * PAGE + 500)

/**
 * struct op - an operation whose page is missing on one side
 * @name: of it
 * @op: opcode
 * @side: whose region is on demand: 0 the requester's, 1 the responder's
 * @len: bytes
 * @recv: it takes a receive WQE
 * @write: the page must be writable
 * @status: of the send, when there is no page to be had
 * @recv_status: of the receive then, if @recv
 * @event: of side 1 then; SKUA_QP_EV_COUNT: none
 */
static const struct op {
	const char *name;
	enum skua_wqe_op op;
	int side;
	uint32_t len;
	bool recv, write;
	enum skua_cqe_status status, recv_status;
	enum skua_qp_event event;
} ops[] = {
	{ "SEND gathers", SKUA_WQE_SEND, 0, LONG, true, false,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_OK, SKUA_QP_EV_COUNT },
	{ "SEND is received", SKUA_WQE_SEND, 1, LONG, true, true,
	  SKUA_CQE_REM_OP_ERR, SKUA_CQE_LOC_PROT_ERR, SKUA_QP_EV_COUNT },
	{ "SEND of few bytes is received", SKUA_WQE_SEND_IMM, 1, 17, true, true,
	  SKUA_CQE_REM_OP_ERR, SKUA_CQE_LOC_PROT_ERR, SKUA_QP_EV_COUNT },
	{ "WRITE gathers", SKUA_WQE_WRITE, 0, LONG, false, false,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_OK, SKUA_QP_EV_COUNT },
	{ "WRITE arrives", SKUA_WQE_WRITE, 1, LONG, false, true,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_CQE_OK, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE of few bytes arrives", SKUA_WQE_WRITE, 1, 1, false, true,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_CQE_OK, SKUA_QP_EV_ACCESS_ERR },
	{ "WRITE with immediate arrives", SKUA_WQE_WRITE_IMM, 1, LONG, true, true,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_CQE_WR_FLUSH_ERR, SKUA_QP_EV_ACCESS_ERR },
	{ "READ's response arrives", SKUA_WQE_READ, 0, LONG, false, true,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_OK, SKUA_QP_EV_COUNT },
	{ "READ is served", SKUA_WQE_READ, 1, LONG, false, false,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_CQE_OK, SKUA_QP_EV_ACCESS_ERR },
	{ "atomic's response arrives", SKUA_WQE_FAA, 0, 8, false, true,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_OK, SKUA_QP_EV_COUNT },
	{ "atomic is served", SKUA_WQE_FAA, 1, 8, false, true,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_CQE_OK, SKUA_QP_EV_ACCESS_ERR },
	{ "CAS is served", SKUA_WQE_CAS, 1, 8, false, true,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_CQE_OK, SKUA_QP_EV_ACCESS_ERR },
	{ "ATOMIC_WRITE gathers", SKUA_WQE_ATOMIC_WRITE, 0, 8, false, false,
	  SKUA_CQE_LOC_PROT_ERR, SKUA_CQE_OK, SKUA_QP_EV_COUNT },
	{ "ATOMIC_WRITE arrives", SKUA_WQE_ATOMIC_WRITE, 1, 8, false, true,
	  SKUA_CQE_REM_ACCESS_ERR, SKUA_CQE_OK, SKUA_QP_EV_ACCESS_ERR },
};

#define EACH_OP(op)	for (const struct op *op = ops; op < ops + N(ops); op++)

/* The smallest retry counts that must do: see each test. */
static const struct rc_opt small = { .mtu_code = 3, .psn = { 0xfffffe, 0xfffffd } };

static bool is_atomic(const struct op *op)
{
	return op->op == SKUA_WQE_FAA || op->op == SKUA_WQE_CAS;
}

/* Does the data go from side 0 to side 1? */
static bool goes_out(const struct op *op)
{
	return op->op != SKUA_WQE_READ && !is_atomic(op);
}

/* What the side holds at OFF; side 1 - @op->side has the plain buffer. */
static void side_put(struct odp *o, const struct op *op, int i, const void *p, size_t len)
{
	if (i == op->side)
		odp_put(o, i, OFF, p, len);
	else
		memcpy(o->rc.s[i].buf + OFF, p, len);
}

static void side_get(struct odp *o, const struct op *op, int i, void *p, size_t len)
{
	if (i == op->side)
		odp_get(o, i, OFF, p, len);
	else
		memcpy(p, o->rc.s[i].buf + OFF, len);
}

static void fill(struct odp *o, const struct op *op, uint32_t seed)
{
	static uint8_t data[LONG], zero[LONG];
	int from = goes_out(op) ? 0 : 1;

	rc_fill(data, op->len, seed);
	side_put(o, op, from, data, op->len);
	side_put(o, op, 1 - from, zero, op->len);
}

static uint64_t word_of(uint32_t seed)
{
	uint8_t raw[8];
	__le64 le;

	rc_fill(raw, sizeof(raw), seed);
	memcpy(&le, raw, sizeof(le));
	return le64_to_cpu(le);
}

/* Did what fill() laid out arrive, once? */
static void check(struct odp *o, const struct op *op, uint32_t seed)
{
	static uint8_t data[LONG];
	int to = goes_out(op) ? 1 : 0;
	__le64 le;

	side_get(o, op, to, data, op->len);
	rc_check(data, op->len, seed);
	if (!is_atomic(op))
		return;
	side_get(o, op, 1, &le, sizeof(le));
	assert_true(le64_to_cpu(le) == (op->op == SKUA_WQE_FAA ? word_of(seed) + 5 : 0x1234));
}

static uint32_t key_of(struct odp *o, const struct op *op, int i)
{
	return i == op->side ? o->s[i].key : o->rc.s[i].key;
}

static void post(struct odp *o, const struct op *op, uint32_t seed)
{
	struct sge sge = { .addr = RC_VA + OFF, .lkey = key_of(o, op, 1), .len = op->len };
	struct rc_wr wr = {
		.op = op->op,
		.nsge = 1,
		.sge[0] = { .addr = RC_VA + OFF, .lkey = key_of(o, op, 0), .len = op->len },
		.roff = OFF,
		.rkey = key_of(o, op, 1),
		.imm = 0x1234,
		.atomic[0] = { .swap_add = op->op == SKUA_WQE_FAA ? 5 : 0x1234,
			       .compare = op->op == SKUA_WQE_CAS ? word_of(seed) : 0 },
	};

	if (op->recv)
		rc_recv_sge(&o->rc, 1, &sge, 1);
	rc_post(&o->rc, 0, &wr);
}

static void expect_done(struct odp *o, const struct op *op, uint32_t seed)
{
	struct skua_cqe cqe;

	rc_expect(&o->rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(&o->rc, 0, false);
	if (op->recv) {
		cqe = rc_expect(&o->rc, 1, true, SKUA_CQE_OK);
		assert_int_equal(le32_to_cpu(cqe.byte_len), op->len);
	}
	rc_expect_none(&o->rc, 1, true);
	check(o, op, seed);
}

static uint64_t cnt(struct odp *o, int i, enum skua_counter c)
{
	return rc_cnt(&o->rc, i, c);
}

/* --- pages come --- */

static void all_pages_at_once(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct skua_eqe_fault f;
		struct odp o;

		odp_open(&o, &small, 4);
		fill(&o, op, 1);
		post(&o, op, 1);
		rc_pump(&o.rc);
		rc_expect_none(&o.rc, 0, false);
		assert_true(odp_fault(&o, op->side, &f));
		assert_int_equal(le64_to_cpu(f.va), RC_VA + OFF);
		assert_int_equal(le32_to_cpu(f.len), op->len);
		assert_int_equal(!!(le32_to_cpu(f.token) & SKUA_EQE_FAULT_WRITE), op->write);
		odp_serve(&o, op->side, &f, ODP_PAGES);
		rc_pump_for(&o.rc, 2 * MS);
		expect_done(&o, op, 1);
		assert_false(odp_fault(&o, 0, &f));
		assert_false(odp_fault(&o, 1, &f));
		assert_int_equal(cnt(&o, op->side, SKUA_CNT_PAGE_FAULTS), 1);
		assert_int_equal(cnt(&o, op->side, SKUA_CNT_PAGE_FAULT_RESUMED), 1);
		assert_int_equal(cnt(&o, 1, SKUA_CNT_PAGE_FAULT_RNR), op->side);
		assert_int_equal(cnt(&o, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		odp_close(&o);
	}
}

static void one_page_at_a_time(void **state)
{
	(void)state;
	EACH_OP(op) {
		unsigned int pages = (OFF % PAGE + op->len + PAGE - 1) / PAGE;
		struct odp o;

		odp_open(&o, &small, 4);
		fill(&o, op, 2);
		post(&o, op, 2);
		odp_run(&o, 1, 20);
		expect_done(&o, op, 2);
		assert_int_equal(o.s[op->side].faults, pages);
		assert_int_equal(cnt(&o, 0, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR), 0);
		odp_close(&o);
	}
}

/* Nobody is told that a page came: it is found. */
static void pages_come_unasked(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct odp o;

		odp_open(&o, &small, 4);
		/* What the device read of the list is old then. */
		for (uint32_t round = 1; round < 4; round++) {
			fill(&o, op, round);
			if (round == 2)
				odp_give_all(&o, op->side);
			post(&o, op, round);
			odp_run(&o, 1, 20);
			expect_done(&o, op, round);
		}
		odp_close(&o);
	}
}

/* The page is there to be read; who writes needs more. */
static void read_only_pages(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct skua_eqe_fault f;
		struct odp o;

		odp_open(&o, &small, 4);
		for (unsigned int n = 0; n < ODP_PAGES; n++)
			odp_give(&o, op->side, n, SKUA_MTT_PRESENT);
		fill(&o, op, 3);
		post(&o, op, 3);
		rc_pump(&o.rc);
		if (op->write) {
			assert_true(odp_fault(&o, op->side, &f));
			assert_true(le32_to_cpu(f.token) & SKUA_EQE_FAULT_WRITE);
			odp_serve(&o, op->side, &f, ODP_PAGES);
			rc_pump_for(&o.rc, 2 * MS);
		}
		expect_done(&o, op, 3);
		assert_false(odp_fault(&o, op->side, &f));
		odp_close(&o);
	}
}

/*
 * Software takes 300 ms. A requester's own fault costs no retry at all, whatever the
 * peer's timers; a responder's costs RNR retries, of which there are enough.
 */
static void software_is_slow(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct rc_opt opt = small;
		struct skua_eqe_fault f;
		struct odp o;

		/* Defaults are one more than the value: none, and six. */
		opt.retry_cnt = 1;
		opt.rnr_retry = op->side ? 8 : 1;
		opt.timeout = 10;
		odp_open(&o, &opt, 4);
		fill(&o, op, 4);
		post(&o, op, 4);
		rc_pump_for(&o.rc, 300 * MS);
		assert_true(odp_fault(&o, op->side, &f));
		rc_expect_none(&o.rc, 0, false);
		assert_int_equal(rc_state(&o.rc, 0), SKUA_QP_RTS);
		odp_serve(&o, op->side, &f, ODP_PAGES);
		rc_pump_for(&o.rc, 100 * MS);
		expect_done(&o, op, 4);
		/* One event, however often the peer came; and it came less and less often. */
		assert_int_equal(cnt(&o, op->side, SKUA_CNT_PAGE_FAULTS), 1);
		assert_true(cnt(&o, 1, SKUA_CNT_PAGE_FAULT_RNR) < 16);
		odp_close(&o);
	}
}

/* Six RNR retries last for 80 ms: 1.28 ms and twice as long each time. */
static void rnr_retries_count(void **state)
{
	static const struct {
		uint32_t rnr_retry;
		uint64_t ms;
		bool ok;
	} cases[] = { { 0, 0, false }, { 1, 1, true }, { 1, 5, false }, { 6, 70, true },
		      { 6, 90, false }, { 7, 400, true } };

	(void)state;
	for (size_t k = 0; k < N(cases); k++) {
		const struct op *op = &ops[4];
		struct rc_opt opt = small;
		struct skua_eqe_fault f;
		struct odp o;

		opt.rnr_retry = cases[k].rnr_retry + 1;
		odp_open(&o, &opt, 4);
		fill(&o, op, 5);
		post(&o, op, 5);
		rc_pump_for(&o.rc, cases[k].ms * MS);
		assert_true(odp_fault(&o, 1, &f));
		odp_serve(&o, 1, &f, ODP_PAGES);
		rc_pump_for(&o.rc, 100 * MS);
		if (cases[k].ok)
			expect_done(&o, op, 5);
		else
			rc_expect(&o.rc, 0, false, SKUA_CQE_RNR_RETRY_EXC_ERR);
		odp_close(&o);
	}
}

/* A QP that asks for more time than a page takes gets it. */
static void least_rnr_timer_holds(void **state)
{
	const struct op *op = &ops[4];
	struct rc_opt opt = small;
	struct skua_eqe_fault f;
	struct odp o;

	(void)state;
	opt.down = true;
	odp_open(&o, &opt, 4);
	/* 20.48 ms */
	le32p_replace_bits(&o.rc.s[1].attr.retry, 22, SKUA_ATTR_MIN_RNR_TIMER);
	for (int i = 0; i < 2; i++)
		mini_rc_to_rts(odp_m(&o, i), &o.rc.s[i].qp, &o.rc.s[i].attr);
	fill(&o, op, 6);
	post(&o, op, 6);
	rc_pump(&o.rc);
	assert_true(odp_fault(&o, 1, &f));
	odp_serve(&o, 1, &f, ODP_PAGES);
	rc_pump_for(&o.rc, 20 * MS);
	rc_expect_none(&o.rc, 0, false);
	rc_pump_for(&o.rc, MS);
	expect_done(&o, op, 6);
	odp_close(&o);
}

/* --- pages cannot be had --- */

static void no_page_to_be_had(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct skua_eqe_fault f;
		struct skua_cqe cqe;
		struct odp o;

		odp_open(&o, &small, 4);
		fill(&o, op, 7);
		post(&o, op, 7);
		rc_pump(&o.rc);
		assert_true(odp_fault(&o, op->side, &f));
		odp_fault_ok(&o, op->side, &f);
		assert_int_equal(odp_resume(&o, op->side, &f, 1), 0);
		rc_pump_for(&o.rc, 5 * MS);
		cqe = rc_expect(&o.rc, 0, false, op->status);
		if (!op->side)
			assert_int_equal(le32_get_bits(cqe.own, SKUA_CQE_VENDOR),
					 SKUA_VENDOR_KEY_FAULT);
		assert_int_equal(rc_state(&o.rc, 0), SKUA_QP_ERR);
		if (op->side) {
			assert_int_equal(rc_state(&o.rc, 1), SKUA_QP_ERR);
			if (op->recv)
				rc_expect(&o.rc, 1, true, op->recv_status);
			rc_expect_none(&o.rc, 1, true);
		}
		if (op->event != SKUA_QP_EV_COUNT)
			rc_expect_event(&o.rc, 1, op->event);
		rc_expect_no_event(&o.rc, 1);
		assert_false(odp_fault(&o, op->side, &f));
		assert_int_equal(cnt(&o, op->side, SKUA_CNT_PAGE_FAULT_ERR), 1);
		odp_close(&o);
	}
}

/* The first pages came, the last cannot: what came before it is done. */
static void last_page_not_to_be_had(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct skua_eqe_fault f;
		struct odp o;

		if (op->len < LONG)
			continue;
		odp_open(&o, &small, 4);
		for (unsigned int n = 0; n < (OFF + LONG - 1) / PAGE; n++)
			odp_give(&o, op->side, n, RW);
		fill(&o, op, 8);
		post(&o, op, 8);
		rc_pump_for(&o.rc, 5 * MS);
		assert_true(odp_fault(&o, op->side, &f));
		assert_int_equal(le64_to_cpu(f.va), RC_VA + (OFF + LONG - 1) / PAGE * PAGE);
		assert_int_equal(le32_to_cpu(f.len), (OFF + LONG) % PAGE);
		assert_int_equal(odp_resume(&o, op->side, &f, 1), 0);
		rc_pump_for(&o.rc, 20 * MS);
		rc_expect(&o.rc, 0, false, op->status);
		odp_close(&o);
	}
}

/* Software was wrong: the page is there when it is tried again. */
static void error_but_there(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct skua_eqe_fault f;
		struct odp o;

		odp_open(&o, &small, 4);
		fill(&o, op, 9);
		post(&o, op, 9);
		rc_pump(&o.rc);
		assert_true(odp_fault(&o, op->side, &f));
		odp_give_all(&o, op->side);
		assert_int_equal(odp_resume(&o, op->side, &f, 1), 0);
		rc_pump_for(&o.rc, 5 * MS);
		expect_done(&o, op, 9);
		odp_close(&o);
	}
}

/* Without an EQ of faults nobody could bring a page. */
static void no_eq_no_waiting(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct odp o;

		odp_open(&o, &small, 4);
		odp_fault_eq(&o, op->side, SKUA_NO_EQ);
		fill(&o, op, 10);
		post(&o, op, 10);
		rc_pump_for(&o.rc, MS);
		rc_expect(&o.rc, 0, false, op->status);
		assert_int_equal(cnt(&o, op->side, SKUA_CNT_PAGE_FAULTS), 0);
		assert_int_equal(cnt(&o, op->side, SKUA_CNT_PAGE_FAULT_ERR), 1);
		odp_close(&o);
	}
}

/* The region goes while one waits for it: then its key is wrong. */
static void region_destroyed(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct skua_eqe_fault f;
		struct odp o;

		odp_open(&o, &small, 4);
		fill(&o, op, 11);
		post(&o, op, 11);
		rc_pump(&o.rc);
		assert_true(odp_fault(&o, op->side, &f));
		assert_int_equal(mini_index(odp_m(&o, op->side), SKUA_CMD_DESTROY_MPT,
					    o.s[op->side].key, NULL, 0), 0);
		assert_int_equal(odp_resume(&o, op->side, &f, 0), 0);
		rc_pump_for(&o.rc, 5 * MS);
		rc_expect(&o.rc, 0, false, op->status);
		odp_close(&o);
	}
}

/* --- the QP ends meanwhile --- */

enum end { TO_RESET, TO_ERR, DESTROYED, ENDS };

static void end_qp(struct odp *o, int i, enum end end)
{
	struct rc_side *s = &o->rc.s[i];

	if (end == DESTROYED)
		assert_int_equal(mini_index(&s->m, SKUA_CMD_DESTROY_QP, s->qp.qpn, NULL, 0), 0);
	else
		assert_int_equal(mini_qp_modify(&s->m, &s->qp, end == TO_RESET ? SKUA_QP_RESET :
						SKUA_QP_ERR, 0, &s->attr), 0);
}

static void qp_ends_while_it_waits(void **state)
{
	(void)state;
	EACH_OP(op) {
		for (enum end end = 0; end < ENDS; end++) {
			struct skua_eqe_fault f;
			struct odp o;

			odp_open(&o, &small, 4);
			fill(&o, op, 12);
			post(&o, op, 12);
			rc_pump(&o.rc);
			assert_true(odp_fault(&o, op->side, &f));
			end_qp(&o, op->side, end);
			rc_pump(&o.rc);
			/* Too late, and no harm. */
			odp_give_all(&o, op->side);
			assert_int_equal(odp_resume(&o, op->side, &f, 0), SKUA_CMD_ST_BAD_INDEX);
			rc_pump_for(&o.rc, 5 * MS);
			assert_int_equal(cnt(&o, op->side, SKUA_CNT_PAGE_FAULT_RESUMED), 0);
			if (end == TO_ERR && !op->side)
				rc_expect(&o.rc, 0, false, SKUA_CQE_WR_FLUSH_ERR);
			odp_close(&o);
		}
	}
}

/* From RESET on it is a new life: its faults are its own. */
static void new_life_new_token(void **state)
{
	(void)state;
	EACH_OP(op) {
		struct skua_eqe_fault old, f;
		struct odp o;

		odp_open(&o, &small, 4);
		fill(&o, op, 13);
		post(&o, op, 13);
		rc_pump(&o.rc);
		assert_true(odp_fault(&o, op->side, &old));
		for (int i = 0; i < 2; i++) {
			struct rc_side *s = &o.rc.s[i];

			end_qp(&o, i, TO_RESET);
			s->qp.sq_pi = 0;
			s->qp.rq_pi = 0;
			memset(fake_ptr(&s->f, s->qp.dbr), 0, sizeof(struct skua_qp_dbr));
		}
		for (int i = 0; i < 2; i++)
			mini_rc_to_rts(odp_m(&o, i), &o.rc.s[i].qp, &o.rc.s[i].attr);
		fill(&o, op, 13);
		post(&o, op, 13);
		rc_pump(&o.rc);
		assert_true(odp_fault(&o, op->side, &f));
		assert_int_not_equal(f.token, old.token);
		assert_int_equal(odp_resume(&o, op->side, &old, 1), SKUA_CMD_ST_BAD_INDEX);
		odp_serve(&o, op->side, &f, ODP_PAGES);
		rc_pump_for(&o.rc, 2 * MS);
		expect_done(&o, op, 13);
		odp_close(&o);
	}
}

/* --- pages go again --- */

/* After frame number @at, of both sides together, a side's pages go. */
struct taker {
	struct odp *o;
	int side;
	unsigned int at, seen;
	bool took;
};

static bool take_after(void *priv, struct fake_frame *frame)
{
	struct taker *t = priv;

	(void)frame;
	if (t->seen++ == t->at) {
		odp_take_all(t->o, t->side);
		t->took = true;
	}
	return true;
}

/* At each moment of a long message: not a byte goes where a page was. */
static void taken_amid_a_message(void **state)
{
	(void)state;
	EACH_OP(op) {
		bool took = true;

		for (unsigned int at = 0; took; at++) {
			struct taker t = { .side = op->side, .at = at };
			struct odp o;

			odp_open(&o, &small, 4);
			t.o = &o;
			odp_give_all(&o, op->side);
			fill(&o, op, at);
			for (int i = 0; i < 2; i++) {
				o.rc.s[i].f.filter = take_after;
				o.rc.s[i].f.filter_priv = &t;
			}
			post(&o, op, at);
			odp_run(&o, 1 + at % 3, 20);
			expect_done(&o, op, at);
			took = t.took;
			odp_close(&o);
		}
	}
}

/* A READ of which the responder's page goes when half of it is answered: it pauses. */
static void read_response_pauses(void **state)
{
	const struct op *op = &ops[8];
	struct taker t = { .side = 1, .at = 4 };
	struct skua_eqe_fault f;
	struct odp o;

	(void)state;
	assert_int_equal(op->op, SKUA_WQE_READ);
	odp_open(&o, &small, 4);
	t.o = &o;
	odp_give_all(&o, 1);
	fill(&o, op, 3);
	o.rc.s[1].f.filter = take_after;
	o.rc.s[1].f.filter_priv = &t;
	post(&o, op, 3);
	rc_pump(&o.rc);
	/* Those that were on their way arrived; the device's turn had gone further. */
	assert_true(t.took);
	if (odp_fault(&o, 1, &f)) {
		rc_pump_for(&o.rc, 30 * MS);
		assert_int_equal(cnt(&o, 1, SKUA_CNT_PAGE_FAULT_RNR), 0);
		odp_serve(&o, 1, &f, ODP_PAGES);
		rc_pump(&o.rc);
	}
	expect_done(&o, op, 3);
	odp_close(&o);
}

/* Loss, reordering, and pages that go at any time, many messages at once. */
static void everything_goes_wrong(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= N(ops); seed++) {
		const struct op *op = &ops[seed % N(ops)];
		struct fault bad[2];
		struct rc_opt opt = small;
		unsigned int rnd = seed;
		struct odp o;

		opt.timeout = 8;
		odp_open(&o, &opt, 4);
		for (int i = 0; i < 2; i++) {
			bad[i] = (struct fault){
				.kind = KINDS, .rate = { 20, 10, 10, 20, 5 }, .seed = seed + i,
			};
			set_fault(&o.rc, i, &bad[i]);
		}
		for (unsigned int k = 0; k < 40; k++) {
			fill(&o, op, k);
			if (rand_r(&rnd) % 2)
				odp_take_all(&o, op->side);
			post(&o, op, k);
			for (unsigned int n = rand_r(&rnd) % 4; n; n--) {
				odp_run(&o, 1 + rand_r(&rnd) % 4, 1);
				odp_take_all(&o, op->side);
			}
			odp_run(&o, ODP_PAGES, 60);
			if (rc_state(&o.rc, 0) == SKUA_QP_RTS) {
				expect_done(&o, op, k);
				continue;
			}
			/* Seven losses in a row are a broken wire. */
			rc_expect(&o.rc, 0, false, SKUA_CQE_RETRY_EXC_ERR);
			break;
		}
		release(&bad[0]);
		release(&bad[1]);
		odp_close(&o);
	}
}

/* A fault is reported amid the turn of a QP, to which the transactions are counted as before. */
static void turn_goes_on(void **state)
{
	struct skua_dev *dev;
	struct skua_eqe_fault f;
	struct tlp_qp *account;
	char answer[64];
	struct odp o;
	struct qp qp;

	(void)state;
	odp_open(&o, &small, 4);
	dev = o.rc.s[0].f.dev;
	assert_int_equal(skua_dev_tlp(dev, "per-qp on", answer, sizeof(answer)), 0);
	assert_int_equal(qp_get(dev, o.rc.s[0].qp.qpn, &qp), 0);
	account = dev->tlp.qp;
	assert_non_null(account);
	qp.sqc->fault.flags = cpu_to_le32(SKUA_FAULT_PENDING);
	fault_event(dev, qp.qpn, false);
	assert_ptr_equal(dev->tlp.qp, account);
	qp_put(dev, &qp);
	assert_true(odp_fault(&o, 0, &f));
	odp_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_pages_at_once),
		cmocka_unit_test(one_page_at_a_time),
		cmocka_unit_test(pages_come_unasked),
		cmocka_unit_test(read_only_pages),
		cmocka_unit_test(software_is_slow),
		cmocka_unit_test(rnr_retries_count),
		cmocka_unit_test(least_rnr_timer_holds),
		cmocka_unit_test(no_page_to_be_had),
		cmocka_unit_test(last_page_not_to_be_had),
		cmocka_unit_test(error_but_there),
		cmocka_unit_test(no_eq_no_waiting),
		cmocka_unit_test(region_destroyed),
		cmocka_unit_test(qp_ends_while_it_waits),
		cmocka_unit_test(new_life_new_token),
		cmocka_unit_test(taken_amid_a_message),
		cmocka_unit_test(read_response_pauses),
		cmocka_unit_test(everything_goes_wrong),
		cmocka_unit_test(turn_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
