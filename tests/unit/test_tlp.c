// SPDX-License-Identifier: GPL-2.0
/*
 * What is counted on a function's link, by purpose: the commands, the accounts of QPs, and
 * what each kind of message costs. The latter is the table of Documentation/tlp.rst, which
 * this test reads and holds against what it counts: a kind of message is an entry of
 * scenarios[] and two lines of that table.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "core_test.h"
#include "icm.h"
#include "rc.h"

#define ANSWER		8192
#define LINE		256
#define COLUMNS		16

/* --- answers --- */

struct count {
	char purpose[16], type[8], dir[8];
	uint64_t count, bytes;
	bool seen;
};

struct counts {
	struct count v[TLP_PURPOSE_COUNT * TLP_KIND_COUNT];
	unsigned int num;
};

static void tlp_ok(struct skua_dev *dev, const char *what, char *answer)
{
	assert_int_equal(skua_dev_tlp(dev, what, answer, ANSWER), 0);
}

static void tlp_do(struct skua_dev *dev, const char *what)
{
	char answer[ANSWER];

	tlp_ok(dev, what, answer);
	assert_string_equal(answer, "");
}

/* Records are divided by "; ", and the first one says of whom they are. */
static void parse(const char *answer, struct counts *c)
{
	c->num = 0;
	while ((answer = strchr(answer, ';'))) {
		struct count *v = &c->v[c->num++];
		unsigned long count, bytes;

		answer++;
		assert_int_equal(sscanf(answer, " %15s %7s %7s %lu %lu", v->purpose, v->type, v->dir,
					&count, &bytes), 5);
		v->count = count;
		v->bytes = bytes;
		v->seen = false;
	}
}

static void counts_of(struct skua_dev *dev, uint32_t qpn, struct counts *c)
{
	char what[32] = "show", answer[ANSWER], who[32] = "function";

	if (qpn) {
		snprintf(what, sizeof(what), "show %u", qpn);
		snprintf(who, sizeof(who), "qp 0x%x", qpn);
	}
	tlp_ok(dev, what, answer);
	assert_memory_equal(answer, who, strlen(who));
	assert_true(!answer[strlen(who)] || answer[strlen(who)] == ';');
	parse(answer, c);
}

static struct count *find(struct counts *c, const char *purpose, const char *type,
			  const char *dir)
{
	for (unsigned int i = 0; i < c->num; i++) {
		if (!strcmp(c->v[i].purpose, purpose) && !strcmp(c->v[i].type, type) &&
		    !strcmp(c->v[i].dir, dir))
			return &c->v[i];
	}
	return NULL;
}

static uint64_t count_of(struct skua_dev *dev, uint32_t qpn, const char *purpose,
			 const char *type, const char *dir)
{
	struct counts c;
	struct count *v;

	counts_of(dev, qpn, &c);
	v = find(&c, purpose, type, dir);
	return v ? v->count : 0;
}

static void refused(struct skua_dev *dev, const char *what, const char *why)
{
	char answer[ANSWER];

	assert_int_equal(skua_dev_tlp(dev, what, answer, sizeof(answer)), -EINVAL);
	assert_string_equal(answer, why);
}

static void refused_qp(struct skua_dev *dev, uint32_t qpn)
{
	char what[32], why[64];

	snprintf(what, sizeof(what), "show 0x%x", qpn);
	snprintf(why, sizeof(why), "nothing was counted for QP 0x%x", qpn);
	refused(dev, what, why);
}

/* --- messages --- */

/**
 * struct scenario - messages of one kind
 * @name: as in the table
 * @n: how many
 * @list: with one doorbell
 * @push: by a push slot instead of a doorbell
 * @signal: every so many-th is signaled; 0: all
 * @recvs: receives that are posted before the first; then each comes with its message
 * @events: the CQs are armed, and their events taken
 * @cold: contexts and translations are not cached
 * @scatter: payload comes in CQEs where it fits
 * @type: of the QPs
 * @wr: the request
 */
struct scenario {
	const char *name;
	unsigned int n;
	bool list;
	bool push;
	unsigned int signal;
	unsigned int recvs;
	bool events;
	bool cold;
	bool scatter;
	enum skua_qp_type type;
	struct rc_wr wr;
};

#define W(...)	{ .roff = 1 << 20, __VA_ARGS__ }

static const struct scenario scenarios[] = {
	{ "WRITE 64", 1, .wr = W(.op = SKUA_WQE_WRITE, .len = 64) },
	{ "WRITE 4096", 1, .wr = W(.op = SKUA_WQE_WRITE, .len = 4096) },
	{ "WRITE 28, inline", 1,
	  .wr = W(.op = SKUA_WQE_WRITE, .len = 28, .flags = SKUA_WQE_F_INLINE) },
	{ "WRITE 29, inline", 1,
	  .wr = W(.op = SKUA_WQE_WRITE, .len = 29, .flags = SKUA_WQE_F_INLINE) },
	{ "WRITE 12, inline, push", 1, .push = true,
	  .wr = W(.op = SKUA_WQE_WRITE, .len = 12, .flags = SKUA_WQE_F_INLINE) },
	{ "WRITE 64, push", 1, .push = true, .wr = W(.op = SKUA_WQE_WRITE, .len = 64) },
	{ "WRITE 64, 16, 1 signaled", 16, .signal = 16,
	  .wr = W(.op = SKUA_WQE_WRITE, .len = 64) },
	{ "WRITE 64, list of 8", 8, .list = true, .wr = W(.op = SKUA_WQE_WRITE, .len = 64) },
	{ "WRITE 64, list of 8, 1 signaled", 8, .list = true, .signal = 8,
	  .wr = W(.op = SKUA_WQE_WRITE, .len = 64) },
	{ "WRITE 28, inline, list of 8, 1 signaled", 8, .list = true, .signal = 8,
	  .wr = W(.op = SKUA_WQE_WRITE, .len = 28, .flags = SKUA_WQE_F_INLINE) },
	{ "WRITE_IMM 64", 1, .recvs = 1, .wr = W(.op = SKUA_WQE_WRITE_IMM, .len = 64) },
	{ "READ 64", 1, .wr = W(.op = SKUA_WQE_READ, .len = 64) },
	{ "READ 4096", 1, .wr = W(.op = SKUA_WQE_READ, .len = 4096) },
	{ "FETCH_AND_ADD", 1,
	  .wr = W(.op = SKUA_WQE_FAA, .len = 8, .atomic = { { .swap_add = 1 } }) },
	{ "SEND 64", 1, .recvs = 1, .wr = W(.op = SKUA_WQE_SEND, .len = 64) },
	{ "SEND 44, inline", 1, .recvs = 1,
	  .wr = W(.op = SKUA_WQE_SEND, .len = 44, .flags = SKUA_WQE_F_INLINE) },
	{ "SEND 28, inline, push", 1, .recvs = 1, .push = true,
	  .wr = W(.op = SKUA_WQE_SEND, .len = 28, .flags = SKUA_WQE_F_INLINE) },
	{ "SEND 64, 16, receives posted before", 16, .recvs = 16,
	  .wr = W(.op = SKUA_WQE_SEND, .len = 64) },
	{ "UD SEND 64", 1, .recvs = 1, .type = SKUA_QP_UD,
	  .wr = W(.op = SKUA_WQE_SEND, .len = 64) },
	{ "SEND 64, with events", 1, .recvs = 1, .events = true,
	  .wr = W(.op = SKUA_WQE_SEND, .len = 64) },
	{ "READ 32, in the CQE", 1, .scatter = true, .wr = W(.op = SKUA_WQE_READ, .len = 32) },
	{ "FETCH_AND_ADD, in the CQE", 1, .scatter = true,
	  .wr = W(.op = SKUA_WQE_FAA, .len = 8, .atomic = { { .swap_add = 1 } }) },
	{ "SEND 32, in the CQE", 1, .recvs = 1, .scatter = true,
	  .wr = W(.op = SKUA_WQE_SEND, .len = 32) },
	{ "SEND 28, inline, push, in the CQE", 1, .recvs = 1, .push = true, .scatter = true,
	  .wr = W(.op = SKUA_WQE_SEND, .len = 28, .flags = SKUA_WQE_F_INLINE) },
	{ "WRITE 64, nothing cached", 1, .cold = true,
	  .wr = W(.op = SKUA_WQE_WRITE, .len = 64) },
};

#define N(a)	(sizeof(a) / sizeof((a)[0]))

static void take_events(struct rc *rc, int i)
{
	struct mini *m = &rc->s[i].m;
	struct skua_eqe eqe;

	assert_true(mini_eq_next(m, &m->eq[MINI_EQ_COMP], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_COMP);
	mini_eq_db(m, &m->eq[MINI_EQ_COMP], true);
}

static void take_completions(struct rc *rc, const struct scenario *sc)
{
	unsigned int signaled = sc->n / (sc->signal ? sc->signal : 1);

	for (unsigned int k = 0; k < signaled; k++)
		rc_expect(rc, 0, false, SKUA_CQE_OK);
	rc_expect_none(rc, 0, false);
	for (unsigned int k = 0; k < sc->recvs; k++)
		rc_expect(rc, 1, true, SKUA_CQE_OK);
	rc_expect_none(rc, 1, true);
	for (int i = 0; sc->events && i < 2; i++)
		take_events(rc, i);
}

/* Pass on what is in the ring: the record, and a doorbell or the WQE with it. */
static void ring(struct rc *rc, const struct scenario *sc)
{
	struct rc_side *s = &rc->s[0];
	struct skua_qp_dbr *dbr = fake_ptr(&s->f, s->qp.dbr);
	uint32_t at = (s->qp.sq_pi - 1) & ((1u << s->qp.log_sq) - 1);
	__le64 slot[SKUA_UAR_PUSH_SLOT_SIZE / 8] = { 0 };

	if (!sc->push) {
		mini_ring(&s->m, &s->qp);
		return;
	}
	dbr->sq_pi = cpu_to_le32(s->qp.sq_pi);
	memcpy(slot, fake_ptr(&s->f, s->qp.sq + (uint64_t)at * SKUA_WQE_BLOCK),
	       SKUA_PUSH_SEGS * SKUA_WQE_SEG);
	slot[7] = cpu_to_le64(s->qp.sq_pi | (uint64_t)s->qp.qpn << 32);
	for (unsigned int i = 0; i < 8; i++)
		skua_dev_bar_write(s->f.dev, SKUA_BAR_UAR,
				   ((uint64_t)MINI_UAR << s->f.dev->uar_shift) + SKUA_UAR_PUSH +
				   8 * i, &slot[i], 8);
}

static void allow_scatter(struct rc *rc)
{
	for (int i = 0; i < 2; i++) {
		struct rc_side *s = &rc->s[i];
		struct skua_mpt *mpt = ctx_get(s->f.dev, SKUA_ICM_MPT, s->key >> 8);
		struct skua_sqc *sqc = ctx_get(s->f.dev, SKUA_ICM_SQC, qp_index(s->qp.qpn));

		mpt->flags |= cpu_to_le32(SKUA_MPT_OWN_VA);
		sqc->cfg.flags |= cpu_to_le32(SKUA_QP_F_SCATTER_RQ_CQE | SKUA_QP_F_SCATTER_SQ_CQE);
		ctx_put(s->f.dev, sqc);
		ctx_put(s->f.dev, mpt);
	}
}

static void messages(struct rc *rc, const struct scenario *sc)
{
	for (unsigned int k = 0; k < sc->recvs; k++)
		rc_recv(rc, 1, 4096 * k, 4096);
	if (sc->events) {
		mini_cq_arm(&rc->s[0].m, &rc->s[0].scq, false);
		mini_cq_arm(&rc->s[1].m, &rc->s[1].rcq, false);
	}
	for (unsigned int k = 0; k < sc->n; k++) {
		struct rc_wr wr = sc->wr;

		wr.quiet = sc->signal && (k + 1) % sc->signal;
		rc_post_quiet(rc, 0, &rc->s[0].qp, &wr);
		if (!sc->list) {
			ring(rc, sc);
			rc_pump(rc);
		}
	}
	if (sc->list)
		ring(rc, sc);
	rc_pump(rc);
	take_completions(rc, sc);
}

/* The second time, when all that is cached has been cached. */
static void count_messages(const struct scenario *sc, struct counts c[2])
{
	struct rc_opt opt = { .type = sc->type };
	static struct rc rc;

	rc_open(&rc, &opt);
	if (sc->scatter)
		allow_scatter(&rc);
	messages(&rc, sc);
	for (int i = 0; i < 2; i++) {
		if (sc->cold)
			cache_evict_range(rc.s[i].f.dev, 0, UINT64_MAX);
		tlp_do(rc.s[i].f.dev, "reset");
	}
	messages(&rc, sc);
	for (int i = 0; i < 2; i++)
		counts_of(rc.s[i].f.dev, 0, &c[i]);
	rc_close(&rc);
}

/* --- the table --- */

struct column {
	char purpose[16], type[16];
};

struct table {
	struct column col[COLUMNS];
	unsigned int cols;
};

/* The words of a line, in place. */
static unsigned int split(char *line, char *word[], unsigned int max)
{
	unsigned int n = 0;

	for (char *w = strtok(line, " \n"); w && n < max; w = strtok(NULL, " \n"))
		word[n++] = w;
	return n;
}

/* "purpose" and "type" begin the two lines of a head. */
static bool head(struct table *t, char *word[], unsigned int n)
{
	if (n > 1 && !strcmp(word[0], "purpose")) {
		t->cols = n - 1;
		assert_in_range(t->cols, 1, COLUMNS);
		for (unsigned int i = 0; i < t->cols; i++)
			snprintf(t->col[i].purpose, sizeof(t->col[i].purpose), "%s", word[i + 1]);
		return true;
	}
	if (n > 1 && !strcmp(word[0], "type")) {
		assert_int_equal(n - 1, t->cols);
		for (unsigned int i = 0; i < t->cols; i++)
			snprintf(t->col[i].type, sizeof(t->col[i].type), "%s", word[i + 1]);
		return true;
	}
	return false;
}

static bool by_host(const char *purpose)
{
	return !strcmp(purpose, "doorbell") || !strcmp(purpose, "push") || !strcmp(purpose, "arm");
}

/* What a cell says of one type: "COUNT/BYTES", "-" for none. */
static void compare(struct counts *c, const char *purpose, const char *type, const char *dir,
		    unsigned long count, unsigned long bytes)
{
	struct count *v = find(c, purpose, type, dir);

	if (v)
		v->seen = true;
	if ((v ? v->count : 0) != count || (v ? v->bytes : 0) != bytes)
		fail_msg("%s %s %s: %" PRIu64 "/%" PRIu64 " counted, the table has %lu/%lu", purpose,
			 type, dir, v ? v->count : 0, v ? v->bytes : 0, count, bytes);
}

/* A column MRd+CplD has cells "REQUESTS+COMPLETIONS/BYTES". */
static void cell(struct counts *c, const struct column *col, const char *text)
{
	unsigned long count = 0, more = 0, bytes = 0;
	bool none = !strcmp(text, "-");

	if (!strcmp(col->type, "MRd+CplD")) {
		assert_true(none || sscanf(text, "%lu+%lu/%lu", &count, &more, &bytes) == 3);
		compare(c, col->purpose, "MRd", "up", count, bytes);
		compare(c, col->purpose, "CplD", "down", more, bytes);
	} else {
		assert_string_equal(col->type, "MWr");
		assert_true(none || sscanf(text, "%lu/%lu", &count, &bytes) == 2);
		compare(c, col->purpose, "MWr", by_host(col->purpose) ? "down" : "up", count, bytes);
	}
}

static void row(const struct table *t, char *const word[], struct counts *c)
{
	for (unsigned int i = 0; i < t->cols; i++)
		cell(c, &t->col[i], word[i]);
	for (unsigned int i = 0; i < c->num; i++) {
		if (!c->v[i].seen)
			fail_msg("%s %s %s: %" PRIu64 " counted, the table has no column for it",
				 c->v[i].purpose, c->v[i].type, c->v[i].dir, c->v[i].count);
	}
}

static const struct scenario *scenario_of(const char *name)
{
	for (unsigned int i = 0; i < N(scenarios); i++) {
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	}
	fail_msg("'%s' is in the table and not in scenarios[]", name);
	return NULL;
}

/* The words before the cells: a name and "requester", or "responder" alone. */
static void name_of(char *const word[], unsigned int n, char name[LINE])
{
	*name = '\0';
	for (unsigned int i = 0; i < n; i++) {
		strcat(name, i ? " " : "");
		strcat(name, word[i]);
	}
}

/* Each line of the table; how many messages there were. */
static unsigned int check_table(FILE *f)
{
	static struct counts c[2];
	char line[LINE], name[LINE];
	struct table t = { .cols = 0 };
	char *word[COLUMNS * 2];
	unsigned int kinds = 0;

	while (fgets(line, sizeof(line), f)) {
		unsigned int n, at;

		/* Tables are literal blocks, and end with the first line that is not. */
		if (strncmp(line, "    ", 4)) {
			t.cols = *line == '\n' ? t.cols : 0;
			continue;
		}
		n = split(line, word, N(word));
		if (head(&t, word, n) || !t.cols || n <= t.cols)
			continue;
		at = n - t.cols;
		name_of(word, at - 1, name);
		if (!strcmp(word[at - 1], "requester")) {
			print_message("%s\n", name);
			count_messages(scenario_of(name), c);
			row(&t, word + at, &c[0]);
			kinds++;
		} else {
			assert_string_equal(word[at - 1], "responder");
			row(&t, word + at, &c[1]);
		}
	}
	return kinds;
}

static void table(void **state)
{
	FILE *f = fopen(TLP_RST, "r");

	(void)state;
	assert_non_null(f);
	assert_int_equal(check_table(f), N(scenarios));
	fclose(f);
}

/* For who adds a row: what is counted. */
static void print_counts(void)
{
	static struct counts c[2];

	for (unsigned int i = 0; i < N(scenarios); i++) {
		count_messages(&scenarios[i], c);
		for (int k = 0; k < 2; k++) {
			printf("%s %s:", scenarios[i].name, k ? "responder" : "requester");
			for (unsigned int j = 0; j < c[k].num; j++)
				printf(" %s %s %" PRIu64 "/%" PRIu64, c[k].v[j].purpose,
				       c[k].v[j].type, c[k].v[j].count, c[k].v[j].bytes);
			puts("");
		}
	}
}

/* --- commands, and what is whose --- */

static void commands(void **state)
{
	struct rig *r = *state;
	struct skua_dev *dev = r->f.dev;
	char answer[ANSWER];

	refused(dev, "", "tlp knows reset, show, per-qp and qps, not ''");
	refused(dev, "shown", "tlp knows reset, show, per-qp and qps, not 'shown'");
	refused(dev, "reset 1", "reset has no argument '1'");
	refused(dev, "per-qp", "per-qp is 'on' or 'off', not ''");
	refused(dev, "per-qp maybe", "per-qp is 'on' or 'off', not 'maybe'");
	refused(dev, "show 5", "QPs have no accounts: 'per-qp on' makes them");
	refused(dev, "qps", "QPs have no accounts: 'per-qp on' makes them");
	refused(dev, "show 0", "'0' is no QPN");
	refused(dev, "show 5x", "'5x' is no QPN");
	refused(dev, "show 0xffffff", "'0xffffff' is no QPN");
	refused(dev, "qps x", "'x' is no index");
	tlp_do(dev, "per-qp on");
	refused(dev, "show 5", "nothing was counted for QP 0x5");
	tlp_ok(dev, "qps", answer);
	assert_string_equal(answer, "qps");
	tlp_do(dev, "reset");
	tlp_ok(dev, "show", answer);
	assert_string_equal(answer, "function");
	fake_rd32(&r->f, SKUA_REG_STATUS);
	fake_rd32(&r->f, SKUA_REG_STATUS);
	tlp_ok(dev, "show", answer);
	assert_string_equal(answer, "function; register MRd down 2 8; register CplD up 2 8");
	tlp_do(dev, "per-qp off");
	refused(dev, "qps", "QPs have no accounts: 'per-qp on' makes them");
}

/* Each access of software is of some purpose. */
static void mmio(void **state)
{
	struct rig *r = *state;
	struct skua_dev *dev = r->f.dev;
	char answer[ANSWER];
	uint64_t word = 0;

	tlp_do(dev, "reset");
	skua_dev_bar_write(dev, SKUA_BAR_UAR, SKUA_UAR_SQ, &word, 8);
	skua_dev_bar_write(dev, SKUA_BAR_UAR, SKUA_UAR_CQ_ARM, &word, 8);
	skua_dev_bar_write(dev, SKUA_BAR_UAR, SKUA_UAR_EQ + 4, &word, 4);
	skua_dev_bar_write(dev, SKUA_BAR_UAR, SKUA_UAR_PUSH - 8, &word, 8);
	skua_dev_bar_write(dev, SKUA_BAR_REGS, SKUA_REG_CMDQ_DB, &word, 4);
	skua_dev_bar_write(dev, SKUA_BAR_REGS, SKUA_REG_CTRL, &word, 4);
	skua_dev_bar_write(dev, SKUA_BAR_DM, 0, &word, 8);
	skua_dev_bar_read(dev, SKUA_BAR_DM, 0, &word, 8);
	skua_dev_bar_read(dev, SKUA_BAR_UAR, 0, &word, 4);
	tlp_ok(dev, "show", answer);
	assert_string_equal(answer, "function; doorbell MWr down 1 8; arm MWr down 2 12; "
			    "command MWr down 1 4; register MWr down 1 4; dm MWr down 1 8; "
			    "dm MRd down 1 8; dm CplD up 1 8; other MWr down 1 8; "
			    "other MRd down 1 4; other CplD up 1 4");
}

/* The device's own counters are the sums, and a reset of the function clears only those. */
static void counters(void **state)
{
	struct rig *r = *state;
	struct skua_dev *dev = r->f.dev;
	uint64_t sum[TLP_KIND_COUNT] = { 0 }, bytes = 0, before;
	struct counts c;

	counts_of(dev, 0, &c);
	for (unsigned int i = 0; i < c.num; i++) {
		bool up = !strcmp(c.v[i].dir, "up");

		if (!strcmp(c.v[i].type, "MWr"))
			sum[up ? TLP_MWR_UP : TLP_MWR_DOWN] += c.v[i].count;
		else if (!strcmp(c.v[i].type, "MRd"))
			sum[up ? TLP_MRD_UP : TLP_MRD_DOWN] += c.v[i].count;
		else
			sum[up ? TLP_CPLD_UP : TLP_CPLD_DOWN] += c.v[i].count;
		if (!strcmp(c.v[i].type, "MRd") && up)
			bytes += c.v[i].bytes;
	}
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MWR_TX), sum[TLP_MWR_UP]);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MRD_TX), sum[TLP_MRD_UP]);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MRD_TX_BYTES), bytes);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_CPLD_RX), sum[TLP_CPLD_DOWN]);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MWR_RX), sum[TLP_MWR_DOWN]);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MRD_RX), sum[TLP_MRD_DOWN]);
	assert_true(sum[TLP_MWR_UP] && sum[TLP_MRD_UP] && sum[TLP_MWR_DOWN]);
	before = count_of(dev, 0, "command", "MRd", "up");
	assert_true(before);
	skua_dev_reset(dev, SKUA_RESET_FLR);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MWR_TX), 0);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MRD_TX_BYTES), 0);
	assert_int_equal(count_of(dev, 0, "command", "MRd", "up"), before);
	/* And that of the accounts does not touch the device's. */
	fake_bus(&r->f, true, true);
	fake_rd32(&r->f, SKUA_REG_STATUS);
	tlp_do(dev, "reset");
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_TLP_MRD_RX), 1);
	assert_int_equal(count_of(dev, 0, "command", "MRd", "up"), 0);
}

/* Two QPs of one device: each has its own, and together they have all but arms and the like. */
static void per_qp(void **state)
{
	static const struct {
		const char *purpose, *type, *dir;
		unsigned int first, second;
	} want[] = {
		{ "doorbell", "MWr", "down", 3, 1 },
		{ "wqe", "MRd", "up", 3, 1 },
		{ "wqe", "CplD", "down", 3, 1 },
		{ "payload", "MRd", "up", 3, 1 },
		{ "cqe", "MWr", "up", 3, 1 },
		{ "eqe", "MWr", "up", 1, 0 },
		{ "msix", "MWr", "up", 1, 0 },
		{ "arm", "MWr", "down", 0, 0 },
	};
	struct rc_wr wr = { .op = SKUA_WQE_WRITE, .len = 64, .roff = 1 << 20 };
	struct rc_opt opt = { 0 };
	struct skua_cmd_query_cq_out cqc;
	struct skua_qp_attr attr;
	struct mini_qp qp[2];
	char answer[ANSWER], list[64];
	struct skua_dev *dev;
	static struct rc rc;

	(void)state;
	rc_open(&rc, &opt);
	dev = rc.s[0].f.dev;
	for (int i = 0; i < 2; i++)
		rc_qp(&rc, i, &qp[i], &opt);
	for (int i = 0; i < 2; i++) {
		attr = rc_attr(&rc, i, &opt, qp[1 - i].qpn);
		mini_rc_to_rts(&rc.s[i].m, &qp[i], &attr);
	}
	tlp_do(dev, "per-qp on");
	tlp_do(dev, "reset");
	mini_cq_arm(&rc.s[0].m, &rc.s[0].scq, false);
	for (unsigned int k = 0; k < 3; k++) {
		rc_post(&rc, 0, &wr);
		rc_pump(&rc);
	}
	rc_post_quiet(&rc, 0, &qp[0], &wr);
	mini_ring(&rc.s[0].m, &qp[0]);
	rc_pump(&rc);
	tlp_ok(dev, "qps", answer);
	snprintf(list, sizeof(list), "qps 0x%x 0x%x", rc.s[0].qp.qpn, qp[0].qpn);
	assert_string_equal(answer, list);
	for (unsigned int i = 0; i < N(want); i++) {
		assert_int_equal(count_of(dev, rc.s[0].qp.qpn, want[i].purpose, want[i].type,
					  want[i].dir), want[i].first);
		assert_int_equal(count_of(dev, qp[0].qpn, want[i].purpose, want[i].type,
					  want[i].dir), want[i].second);
	}
	assert_int_equal(count_of(dev, 0, "cqe", "MWr", "up"), 4);
	assert_int_equal(count_of(dev, 0, "arm", "MWr", "down"), 1);
	/* Nor is a command anybody's. */
	assert_status(mini_index(&rc.s[0].m, SKUA_CMD_QUERY_CQ, rc.s[0].scq.cqn, &cqc,
				 sizeof(cqc)), OK);
	assert_true(count_of(dev, 0, "command", "MRd", "up"));
	assert_int_equal(count_of(dev, rc.s[0].qp.qpn, "command", "MRd", "up"), 0);
	assert_int_equal(count_of(dev, qp[0].qpn, "command", "MRd", "up"), 0);
	tlp_do(dev, "reset");
	refused(dev, "qps 200000x", "'200000x' is no index");
	tlp_ok(dev, "qps", answer);
	assert_string_equal(answer, "qps");
	/* What is not cached is fetched for the QP that needs it. */
	cache_evict_range(dev, 0, UINT64_MAX);
	tlp_do(dev, "reset");
	rc_post(&rc, 0, &wr);
	rc_pump(&rc);
	assert_int_equal(count_of(dev, rc.s[0].qp.qpn, "context", "MRd", "up"), 2);
	assert_int_equal(count_of(dev, rc.s[0].qp.qpn, "mpt", "MRd", "up"), 1);
	rc_close(&rc);
}

/* Two halves are two transactions; those that name nobody are nobody's. */
static void doorbells(void **state)
{
	struct rc_wr wr = { .op = SKUA_WQE_WRITE, .len = 64, .roff = 1 << 20 };
	uint64_t uar = (uint64_t)MINI_UAR << MODEL_LOG_PAGE_MIN;
	struct rc_opt opt = { 0 };
	struct skua_dev *dev;
	static struct rc rc;
	struct mini_qp *qp;
	uint32_t word;

	(void)state;
	rc_open(&rc, &opt);
	dev = rc.s[0].f.dev;
	qp = &rc.s[0].qp;
	tlp_do(dev, "per-qp on");
	tlp_do(dev, "reset");
	rc_post_quiet(&rc, 0, qp, &wr);
	word = cpu_to_le32(qp->sq_pi);
	skua_dev_bar_write(dev, SKUA_BAR_UAR, uar + SKUA_UAR_SQ, &word, 4);
	word = cpu_to_le32(qp->qpn);
	skua_dev_bar_write(dev, SKUA_BAR_UAR, uar + SKUA_UAR_SQ + 4, &word, 4);
	rc_pump(&rc);
	rc_expect(&rc, 0, false, SKUA_CQE_OK);
	assert_int_equal(count_of(dev, 0, "doorbell", "MWr", "down"), 2);
	assert_int_equal(count_of(dev, qp->qpn, "doorbell", "MWr", "down"), 2);
	fake_db(&rc.s[0].f, MINI_UAR, SKUA_UAR_SQ, qp->sq_pi, qp->qpn ^ 1u << MODEL_LOG_QP);
	fake_db(&rc.s[0].f, MINI_UAR, SKUA_UAR_SQ, 0, qp->qpn + 9);
	assert_int_equal(count_of(dev, 0, "doorbell", "MWr", "down"), 4);
	assert_int_equal(count_of(dev, qp->qpn, "doorbell", "MWr", "down"), 2);
	rc_close(&rc);
}

/* Who comes after a QP under its index does not inherit. */
static void next_qp(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_qp_in in;
	struct skua_dev *dev = r->f.dev;
	struct mini_cq cq;
	struct mini_qp qp;
	uint32_t other;

	tlp_do(dev, "per-qp on");
	mini_cq_create(&r->m, &cq, 4);
	in = mini_qp_in(&r->m, &qp, SKUA_QP_RC, &cq, &cq, 4, 4, 0);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), OK);
	for (unsigned int k = 0; k < 5; k++)
		fake_db(&r->f, MINI_UAR, SKUA_UAR_SQ, 0, qp.qpn);
	assert_int_equal(count_of(dev, qp.qpn, "doorbell", "MWr", "down"), 5);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp.qpn, NULL, 0), OK);
	assert_int_equal(count_of(dev, qp.qpn, "doorbell", "MWr", "down"), 5);
	other = qp.qpn ^ 1u << MODEL_LOG_QP;
	in.sq.qpn = cpu_to_le32(other);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), OK);
	fake_db(&r->f, MINI_UAR, SKUA_UAR_SQ, 0, other);
	fake_db(&r->f, MINI_UAR, SKUA_UAR_SQ, 0, other);
	assert_int_equal(count_of(dev, other, "doorbell", "MWr", "down"), 2);
	refused_qp(dev, qp.qpn);
}

/*
 * A turn that does not come to the end of its message reads no other WQE of the ring. Of a
 * message of 64 KiB four turns send 16 KiB each, of which the first one, which does not know
 * the message, reads ahead.
 */
static void long_messages(void **state)
{
	enum { MESSAGES = 8 };
	struct rc_opt opt = { .log_sq = 6 };
	struct tlp reads, before;
	struct rc rc;

	(void)state;
	for (uint32_t nsge = 1; nsge <= 8; nsge += 7) {
		uint32_t bytes = nsge == 1 ? 64 : 192;

		rc_open(&rc, &opt);
		before = rc.s[0].f.dev->tlp.fn.v[TLP_MRD_UP][TLP_WQE];
		for (unsigned int k = 0; k < MESSAGES; k++) {
			struct rc_wr wr = { .op = SKUA_WQE_WRITE, .len = 65536 };

			wr.nsge = nsge == 1 ? 0 : nsge;
			for (uint32_t i = 0; i < wr.nsge; i++)
				wr.sge[i] = (struct sge){ .addr = RC_VA, .lkey = rc.s[0].key,
							  .len = 8192 };
			rc_post_quiet(&rc, 0, &rc.s[0].qp, &wr);
		}
		mini_ring(&rc.s[0].m, &rc.s[0].qp);
		rc_pump(&rc);
		for (unsigned int k = 0; k < MESSAGES; k++)
			rc_expect(&rc, 0, false, SKUA_CQE_OK);
		reads = rc.s[0].f.dev->tlp.fn.v[TLP_MRD_UP][TLP_WQE];
		reads.count -= before.count;
		reads.bytes -= before.bytes;
		print_message("%u elements: %u reads, %u bytes\n", nsge, (unsigned int)reads.count,
			      (unsigned int)reads.bytes);
		assert_true(reads.count <= 4 * MESSAGES);
		assert_true(reads.bytes <= MESSAGES * (512 + 3 * bytes));
		rc_close(&rc);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		rig_test(commands),
		rig_test(mmio),
		rig_test(counters),
		cmocka_unit_test(per_qp),
		cmocka_unit_test(doorbells),
		rig_test(next_qp),
		cmocka_unit_test(long_messages),
		cmocka_unit_test(table),
	};

	if (argc == 2 && !strcmp(argv[1], "show")) {
		print_counts();
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
