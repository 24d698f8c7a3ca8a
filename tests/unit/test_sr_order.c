// SPDX-License-Identifier: GPL-2.0
/*
 * Selective repeat, responder: WRITEs to the same bytes. Whatever order their packets come in,
 * memory is in the end as if they had come in the order in which they were sent.
 */
#include "odp.h"

#include "sr_forge.h"

#define SPAN	2048u		/* bytes that these WRITEs go to, at AREA */
#define MAX	8u		/* packets */

/* A WRITE of @len bytes to @at. */
struct msg {
	uint32_t at, len;
	bool imm;
	bool plain;		/* in the standard's form, which only the expected packet may have */
};

/**
 * struct run - messages, and what they leave behind
 * @rc: the responder is its side 1
 * @p: their packets
 * @n: how many
 * @key: of the second region, 0: all go to the first
 * @psn: of the first of them
 * @seq: messages before them that took a receive
 * @want: memory, afterwards
 */
struct run {
	struct rc rc;
	struct sr_pkt p[MAX];
	unsigned int n;
	uint32_t key;
	uint32_t psn, seq;
	uint8_t want[SPAN];
};

static uint8_t opcode(const struct msg *m, bool first, bool last)
{
	if (first && last)
		return m->imm ? IB_OP_WRITE_ONLY_IMM : IB_OP_WRITE_ONLY;
	if (last)
		return m->imm ? IB_OP_WRITE_LAST_IMM : IB_OP_WRITE_LAST;
	return first ? IB_OP_WRITE_FIRST : IB_OP_WRITE_MIDDLE;
}

/* Bytes of a seed of its own, which differ from all others' at each place. */
static void message(struct run *r, const struct msg *m)
{
	uint32_t mtu = r->rc.mtu, seed = r->psn + r->n, first = r->n;

	assert_true(m->at + m->len <= SPAN);
	rc_fill(r->want + m->at, m->len, seed);
	for (uint32_t off = 0; !off || off * mtu < m->len; off++) {
		bool last = off * mtu + mtu >= m->len;

		assert_true(r->n < MAX);
		r->p[r->n] = (struct sr_pkt){
			.op = opcode(m, !off, last),
			.psn = r->psn + first + off,
			.off = off,
			.seq = m->imm && last ? r->seq++ : 0,
			.len = last ? m->len - off * mtu : mtu,
			.seed = seed,
			.roff = AREA + m->at,
			.total = m->len,
			.imm = m->imm && last ? seed : 0,
			.plain = m->plain,
		};
		r->n++;
	}
}

/* They come by @order, and all is there. */
static void deliver(struct run *r, const unsigned int *order, bool one_by_one)
{
	memset(r->rc.s[1].buf + AREA, 0xee, SPAN);
	for (unsigned int k = 0; k < r->n; k++) {
		give(&r->rc, r->p[order[k]]);
		if (one_by_one)
			run(&r->rc);
	}
	hush(&r->rc);
	assert_int_equal(epsn(&r->rc), (r->psn + r->n) & IB_PSN_MASK);
	assert_false(sr_held(&r->rc));
	assert_int_equal(sr_lrc_of(&r->rc)->held, 0);
}

/* The next order, as of a number whose digits all differ. False: that was the last. */
static bool permute(unsigned int *order, unsigned int n)
{
	unsigned int k = n - 1, j = n - 1, t;

	while (k && order[k - 1] > order[k])
		k--;
	if (!k)
		return false;
	while (order[j] < order[k - 1])
		j--;
	t = order[k - 1];
	order[k - 1] = order[j];
	order[j] = t;
	for (j = n - 1; k < j; k++, j--) {
		t = order[k];
		order[k] = order[j];
		order[j] = t;
	}
	return true;
}

static void begin(struct run *r, const struct msg *m, unsigned int n)
{
	r->psn += r->n;
	r->n = 0;
	memset(r->want, 0xee, sizeof(r->want));
	for (unsigned int k = 0; k < n; k++) {
		message(r, &m[k]);
		if (m[k].imm)
			rc_recv(&r->rc, 1, 0, 0);
	}
}

static void check(struct run *r, const struct msg *m, unsigned int n)
{
	for (unsigned int k = 0; k < n; k++) {
		if (m[k].imm)
			rc_expect(&r->rc, 1, true, SKUA_CQE_OK);
	}
	rc_expect_none(&r->rc, 1, true);
	assert_memory_equal(r->rc.s[1].buf + AREA, r->want, SPAN);
}

/* In each order that they can come in. */
static void all_orders(struct run *r, const struct msg *m, unsigned int n)
{
	unsigned int order[MAX] = { 0, 1, 2, 3, 4, 5, 6, 7 };

	do {
		begin(r, m, n);
		deliver(r, order, r->psn & 1);
		check(r, m, n);
	} while (permute(order, r->n));
	assert_int_equal(rc_cnt(&r->rc, 1, SKUA_CNT_RX_EARLY_DROP), 0);
	assert_int_equal(rc_cnt(&r->rc, 1, SKUA_CNT_TX_NAK), 0);
}

static const struct {
	const char *what;
	struct msg m[5];
} lists[] = {
	{ "the same bytes", { { 0, 256 }, { 0, 256 }, { 0, 256 } } },
	{ "beginning, end, middle", { { 100, 200 }, { 90, 20 }, { 290, 40 }, { 180, 30 } } },
	{ "the first byte, the last byte", { { 100, 200 }, { 100, 1 }, { 299, 1 } } },
	{ "next to each other", { { 100, 100 }, { 0, 100 }, { 200, 100 } } },
	{ "all and more", { { 100, 100 }, { 50, 250 }, { 120, 10 } } },
	{ "a message of three packets, and one across two of them",
	  { { 0, 700 }, { 200, 256 }, { 500, 100 } } },
	{ "two messages of several packets", { { 0, 600 }, { 300, 700 } } },
	{ "a shorter one later", { { 0, 600 }, { 0, 300 }, { 10, 1 } } },
	{ "no bytes", { { 100, 100 }, { 150, 0 }, { 100, 100 } } },
	{ "with immediate data",
	  { { 0, 256, .imm = true }, { 0, 300, .imm = true }, { 10, 200, .imm = true } } },
	{ "five of all kinds", { { 0, 256 }, { 128, 256, .imm = true }, { 0, 200 },
				 { 100, 200, .imm = true }, { 150, 10 } } },
};

static void test_all_orders(void **state)
{
	static struct run r;

	(void)state;
	for (size_t k = 0; k < N(lists); k++) {
		struct rc_opt opt = small;
		unsigned int n = 1;

		print_message("%s\n", lists[k].what);
		while (n < N(lists[k].m) && (lists[k].m[n].len || lists[k].m[n].at))
			n++;
		/* By turns a table that a few of these fill. */
		opt.log_window = k & 1 ? SKUA_EXT_LOG_WINDOW_MIN : 0;
		memset(&r, 0, sizeof(r));
		rc_open(&r.rc, &opt);
		all_orders(&r, lists[k].m, n);
		rc_close(&r.rc);
	}
}

/* The expected one in the standard's form, as of a peer that had not heard yet. */
static void test_plain(void **state)
{
	static const struct msg m[] = {
		{ 100, 200, .plain = true }, { 150, 50 }, { 0, 120 },
	};
	static const unsigned int order[] = { 2, 1, 0 };
	static struct run r;

	(void)state;
	memset(&r, 0, sizeof(r));
	rc_open(&r.rc, &small);
	begin(&r, m, N(m));
	deliver(&r, order, true);
	check(&r, m, N(m));
	rc_close(&r.rc);
}

/*
 * Of a later WRITE only a part has come when a READ between both is answered: it finds the earlier
 * one's bytes where the later one's are not there.
 */
static void test_between(void **state)
{
	uint8_t all[512], want[256];
	struct sr_answer a;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	GIVE(&rc, .op = IB_OP_WRITE_LAST, .psn = 3, .off = 1, .len = 256, .total = 512,
	     .roff = AREA, .seed = 2);
	hush(&rc);
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .psn = 0, .len = 256, .total = 256, .roff = AREA + 128,
	     .seed = 1);
	hush(&rc);
	GIVE(&rc, .op = IB_OP_READ_REQUEST, .psn = 1, .total = 256, .roff = AREA + 128);
	run(&rc);
	rc_fill(want, 256, 1);
	rc_fill(all, 512, 2);
	memcpy(want + 128, all + 256, 128);
	assert_true(sr_next(&rc, &a));
	assert_int_equal(a.opcode, IB_TRANSPORT_RC | IB_OP_READ_RESP_ONLY);
	assert_int_equal(a.len, 256);
	assert_memory_equal(a.payload, want, 256);
	hush(&rc);
	GIVE(&rc, .op = IB_OP_WRITE_FIRST, .psn = 2, .len = 256, .total = 512, .roff = AREA,
	     .seed = 2);
	hush(&rc);
	assert_int_equal(epsn(&rc), 4);
	rc_check(rc.s[1].buf + AREA, 512, 2);
	rc_close(&rc);
}

/* A later WRITE has more packets than codes there are, of which some are held. */
static void test_long(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	for (uint32_t off = 1; off < 256; off++)
		GIVE(&rc, .op = IB_OP_WRITE_MIDDLE, .psn = 1 + off, .off = off, .len = 256,
		     .total = 700 * 256, .roff = AREA, .seed = 2);
	hush(&rc);
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .psn = 0, .len = 256, .total = 256,
	     .roff = AREA + (SKUA_LRC_PSNS + 88) * 256, .seed = 1);
	hush(&rc);
	assert_int_equal(epsn(&rc), 1);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY), 255);
	rc_check(rc.s[1].buf + AREA + (SKUA_LRC_PSNS + 88) * 256, 256, 1);
	rc_close(&rc);
}

/*
 * Something is held all the time, until a message has the same place in the codes as one had before
 * it of which only the last packet was there at first. It is not taken for that one.
 */
static void test_passed(void **state)
{
	uint32_t psn = 1 + SKUA_LRC_PSNS;
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	GIVE(&rc, .op = IB_OP_WRITE_LAST, .psn = 2, .off = 1, .len = 256, .total = 512,
	     .roff = AREA + 1024, .seed = 1);
	for (uint32_t k = 4; k < psn; k += 2) {
		give(&rc, write_one(k));
		if (k == 4) {
			give(&rc, write_one(0));
			GIVE(&rc, .op = IB_OP_WRITE_FIRST, .psn = 1, .len = 256, .total = 512,
			     .roff = AREA + 1024, .seed = 1);
		} else {
			give(&rc, write_one(k - 3));
		}
		hush(&rc);
		assert_true(sr_held(&rc));
	}
	assert_int_equal(epsn(&rc), psn - 2);
	GIVE(&rc, .op = IB_OP_WRITE_LAST, .psn = psn + 1, .off = 1, .len = 256, .total = 512,
	     .roff = AREA, .seed = 3);
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .psn = psn - 2, .len = 256, .total = 256,
	     .roff = AREA + 256, .seed = 2);
	GIVE(&rc, .op = IB_OP_WRITE_FIRST, .psn = psn, .len = 256, .total = 512, .roff = AREA,
	     .seed = 3);
	hush(&rc);
	assert_int_equal(epsn(&rc), psn + 2);
	rc_check(rc.s[1].buf + AREA, 512, 3);
	rc_close(&rc);
}

/* What comes by another key to the same address is another place. */
static void test_keys(void **state)
{
	static const unsigned int order[2][2] = { { 0, 1 }, { 1, 0 } };
	static struct run r;

	(void)state;
	for (unsigned int k = 0; k < 2; k++) {
		struct msg m[] = { { 0, 256 }, { 0, 256 } };
		uint64_t other;

		memset(&r, 0, sizeof(r));
		rc_open(&r.rc, &small);
		other = fake_alloc(&r.rc.s[1].f, SPAN, 4096);
		begin(&r, m, N(m));
		r.p[1].key = mini_mr(&r.rc.s[1].m, RC_VA + AREA, other, SPAN,
				     SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_LOCAL_WRITE);
		deliver(&r, order[k], true);
		rc_check(r.rc.s[1].buf + AREA, 256, r.p[0].seed);
		rc_check(fake_ptr(&r.rc.s[1].f, other), 256, r.p[1].seed);
		rc_close(&r.rc);
	}
}

/*
 * The end of an earlier WRITE is outside of its region, and the bytes in front of that are a later
 * one's. None is written.
 */
static void test_bounds(void **state)
{
	uint8_t before[SPAN];
	struct rc rc;
	uint32_t key;

	(void)state;
	rc_open(&rc, &small);
	key = mini_mr(&rc.s[1].m, RC_VA + AREA, rc.s[1].bus + AREA, 200,
		      SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_LOCAL_WRITE);
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 10, .total = 10, .roff = AREA + 100,
	     .key = key, .seed = 1);
	hush(&rc);
	memcpy(before, rc.s[1].buf + AREA, sizeof(before));
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .psn = 0, .len = 256, .total = 256, .roff = AREA,
	     .key = key, .seed = 2);
	run(&rc);
	expect_nak(&rc, 0, IB_AETH_NAK | IB_NAK_REMOTE_ACCESS, 0xff);
	assert_memory_equal(rc.s[1].buf + AREA, before, sizeof(before));
	rc_close(&rc);
}

/* The second page of an earlier WRITE is missing: nothing of it is written, and all is asked for. */
static void test_page(void **state)
{
	struct sr_pkt first = { .op = IB_OP_WRITE_ONLY, .len = 256, .total = 256,
				.roff = PAGE - 100, .seed = 1 };
	struct sr_pkt later = { .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 10, .total = 10,
				.roff = PAGE - 50, .seed = 2 };
	uint8_t want[256], got[256];
	struct skua_eqe_fault f;
	struct odp o;

	(void)state;
	odp_open(&o, &small, 4);
	first.key = o.s[1].key;
	later.key = o.s[1].key;
	odp_give(&o, 1, 0, RW);
	give(&o.rc, later);
	hush(&o.rc);
	odp_get(&o, 1, first.roff, want, 100);
	give(&o.rc, first);
	run(&o.rc);
	expect_nak(&o.rc, 0, IB_AETH_RNR_NAK, IB_AETH_TYPE_MASK);
	odp_get(&o, 1, first.roff, got, 100);
	assert_memory_equal(got, want, 100);
	assert_true(odp_fault(&o, 1, &f));
	assert_int_equal(le64_to_cpu(f.va), RC_VA + PAGE);
	assert_int_equal(le32_to_cpu(f.len), 256 - 100);
	odp_serve(&o, 1, &f, 1);
	give(&o.rc, first);
	hush(&o.rc);
	assert_int_equal(epsn(&o.rc), 2);
	rc_fill(want, 256, 1);
	rc_fill(want + 50, 10, 2);
	odp_get(&o, 1, first.roff, got, 256);
	assert_memory_equal(got, want, 256);
	odp_close(&o);
}

struct table {
	uint64_t from, to;
	unsigned int reads;
};

static void count_table(void *priv, uint64_t iova, size_t len)
{
	struct table *t = priv;

	if (iova + len > t->from && iova < t->to)
		t->reads++;
}

/* Only the first page is there. @p[0] has been given; from now on reads of the table are counted. */
static void open_watched(struct odp *o, struct table *t, struct sr_pkt p[3])
{
	odp_open(o, &small, 4);
	odp_give(o, 1, 0, RW);
	for (unsigned int k = 0; k < 3; k++)
		p[k].key = o->s[1].key;
	t->from = le64_to_cpu(sr_lrc_of(&o->rc)->table) +
		  sizeof(struct skua_ext_slot) * SKUA_LRC_PSNS;
	t->to = t->from + sizeof(struct skua_ext_write) * SKUA_LRC_PSNS;
	give(&o->rc, p[0]);
	hush(&o->rc);
	o->rc.s[1].f.on_priv = t;
	o->rc.s[1].f.on_read = count_table;
}

/* A page is missing: the table is not looked through first, however often the packet comes. */
static void test_page_first(void **state)
{
	struct sr_pkt p[] = {
		{ .op = IB_OP_WRITE_ONLY, .psn = 2, .len = 10, .total = 10, .roff = 50, .seed = 2 },
		{ .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 256, .total = 256, .roff = PAGE - 100,
		  .seed = 1 },
		{ .op = IB_OP_WRITE_ONLY, .psn = 0, .len = 256, .total = 256, .roff = PAGE - 100,
		  .seed = 1 },
	};
	struct table t = { 0 };
	struct odp o;

	(void)state;
	open_watched(&o, &t, p);
	for (unsigned int k = 0; k < 10; k++)
		give(&o.rc, p[1 + k % 2]);
	assert_int_equal(t.reads, 0);
	assert_int_equal(rc_cnt(&o.rc, 1, SKUA_CNT_RX_EARLY), 1);
	odp_close(&o);
}

/*
 * Of a WRITE that comes early each packet needs only its own page: the one whose page is there is
 * taken, the other one is dropped before the table is read.
 */
static void test_page_own(void **state)
{
	struct sr_pkt p[] = {
		{ .op = IB_OP_WRITE_ONLY, .psn = 3, .len = 10, .total = 10, .roff = 50, .seed = 2 },
		{ .op = IB_OP_WRITE_FIRST, .psn = 1, .len = 256, .total = 300, .roff = PAGE - 256,
		  .seed = 1 },
		{ .op = IB_OP_WRITE_LAST, .psn = 2, .off = 1, .len = 44, .total = 300,
		  .roff = PAGE - 256, .seed = 1 },
	};
	struct table t = { 0 };
	struct odp o;

	(void)state;
	open_watched(&o, &t, p);
	give(&o.rc, p[2]);
	assert_int_equal(t.reads, 0);
	assert_int_equal(rc_cnt(&o.rc, 1, SKUA_CNT_RX_EARLY), 1);
	give(&o.rc, p[1]);
	assert_int_equal(rc_cnt(&o.rc, 1, SKUA_CNT_RX_EARLY), 2);
	odp_close(&o);
}

/*
 * Of a packet that comes early many single bytes would be left. It waits for its turn, at which
 * they are written one by one.
 */
static void test_holes(void **state)
{
	struct sr_pkt p = { .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 200, .total = 200,
			    .roff = AREA, .seed = 1 };
	uint8_t want[200];
	uint64_t before;
	struct rc rc;

	(void)state;
	for (unsigned int pieces = 32; pieces <= 33; pieces++) {
		rc_open(&rc, &small);
		rc_fill(want, sizeof(want), 1);
		for (uint32_t k = 0; k < pieces - 1; k++) {
			GIVE(&rc, .op = IB_OP_WRITE_ONLY, .psn = 2 + k, .len = 1, .total = 1,
			     .roff = AREA + 1 + 2 * k, .seed = 100 + k);
			rc_fill(want + 1 + 2 * k, 1, 100 + k);
		}
		hush(&rc);
		before = rc.s[1].f.writes;
		for (unsigned int k = 0; k < 3; k++)
			give(&rc, p);
		if (pieces > 32)
			assert_int_equal(rc.s[1].f.writes, before);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY), pieces <= 32 ? pieces : 32);
		give(&rc, write_one(0));
		give(&rc, p);
		hush(&rc);
		assert_int_equal(epsn(&rc), pieces + 1);
		assert_memory_equal(rc.s[1].buf + AREA, want, sizeof(want));
		rc_close(&rc);
	}
}

/* An ATOMIC WRITE, executed when its turn has come, and a WRITE behind it that came before. */
static void test_atomic_write(void **state)
{
	static const uint8_t eight[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct rc_opt opt = small;
	uint8_t want[8];
	struct rc rc;

	(void)state;
	opt.caps = SKUA_CAP_ATOMIC_WRITE;
	rc_open(&rc, &opt);
	GIVE(&rc, .op = IB_OP_WRITE_ONLY, .psn = 1, .len = 3, .total = 3, .roff = AREA + 4,
	     .seed = 2);
	hush(&rc);
	GIVE(&rc, .op = IB_OP_ATOMIC_WRITE, .psn = 0, .len = 8, .data = eight, .roff = AREA,
	     .total = 8, .plain = true);
	hush(&rc);
	assert_int_equal(epsn(&rc), 2);
	memcpy(want, eight, 8);
	rc_fill(want + 4, 3, 2);
	assert_memory_equal(rc.s[1].buf + AREA, want, 8);
	rc_close(&rc);
}

/* The table cannot be written when a WRITE comes early, or not read when an earlier one comes. */
static void test_no_table(void **state)
{
	struct rc rc;

	(void)state;
	for (int late = 0; late < 2; late++) {
		uint64_t table;

		rc_open(&rc, &small);
		table = le64_to_cpu(sr_lrc_of(&rc)->table) +
			sizeof(struct skua_ext_slot) * SKUA_LRC_PSNS;
		if (late) {
			give(&rc, write_one(1));
			hush(&rc);
		}
		fake_hole(&rc.s[1].f, table, sizeof(struct skua_ext_write) * SKUA_LRC_PSNS);
		give(&rc, write_one(late ? 0 : 1));
		run(&rc);
		expect_nak(&rc, 0, IB_AETH_NAK | IB_NAK_REMOTE_OP, 0xff);
		expect_silence(&rc);
		rc_expect_event(&rc, 1, SKUA_QP_EV_FATAL);
		assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY), late);
		assert_false(written(&rc, 0));
		rc_close(&rc);
	}
}

/* Where nothing is missing, and amid one message, the table is not touched. */
static void test_untouched(void **state)
{
	struct rc rc;

	(void)state;
	rc_open(&rc, &small);
	fake_hole(&rc.s[1].f,
		  le64_to_cpu(sr_lrc_of(&rc)->table) +
		  sizeof(struct skua_ext_slot) * SKUA_LRC_PSNS,
		  sizeof(struct skua_ext_write) * SKUA_LRC_PSNS);
	give(&rc, write_one(0));
	GIVE(&rc, .op = IB_OP_WRITE_FIRST, .psn = 1, .len = 256, .total = 900, .roff = AREA,
	     .seed = 9);
	run(&rc);
	for (uint32_t k = 3; k > 0; k--)
		GIVE(&rc, .op = k == 3 ? IB_OP_WRITE_LAST : IB_OP_WRITE_MIDDLE, .psn = 1 + k,
		     .off = k, .len = k == 3 ? 132 : 256, .total = 900, .roff = AREA, .seed = 9);
	hush(&rc);
	assert_int_equal(epsn(&rc), 5);
	rc_check(rc.s[1].buf + AREA, 900, 9);
	assert_int_equal(rc_cnt(&rc, 1, SKUA_CNT_RX_EARLY), 2);
	rc_close(&rc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_orders),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_between),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_passed),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_first),
		cmocka_unit_test(test_page_own),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_atomic_write),
		cmocka_unit_test(test_no_table),
		cmocka_unit_test(test_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
