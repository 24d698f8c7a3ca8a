// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell suppression loses no work: every interleaving of software, which runs
 * skua_sq_record() of <skua/sq_event.h>, with the device, which runs hot.c, on a machine on
 * which each of the two has a store buffer (x86's memory model).
 *
 * One execution is a list of choices: whenever one side is about to access what both share,
 * it is chosen who goes on: software with its next access, the device with its own, or either
 * buffer with its oldest store. All lists are run, but those that come to a state in which an
 * earlier one was. In the end, when software has posted all, nothing is on its way and the
 * device rests, the device must know of all that was posted.
 *
 * The same search finds the lost wake-up if either barrier or the second look is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/bits.h>

/* What software does to shared memory is seen here. */
static __le32 sw_load(const __le32 *word);
static void sw_store(__le32 *word, __le32 val);
static void sw_fence(void);
#undef READ_ONCE
#undef WRITE_ONCE
#undef dma_mb
#define READ_ONCE(x)		sw_load(&(x))
#define WRITE_ONCE(x, v)	sw_store(&(x), v)
#define dma_mb()		sw_fence()
#include <skua/sq_event.h>

#include "rc.h"

#define POSTS_MAX	4
#define BUFFER		8	/* stores in a buffer */
#define DEPTH		4096	/* choices in an execution */
#define LOG		64	/* accesses of the device in a turn */
#define VISITED		(1u << 22)

/* What is left out. */
enum fault { NONE, NO_FENCE, NO_ORDER, NO_LOOK };

/* A store on its way to memory, or a doorbell. */
struct store {
	enum { RECORD, EVENT, DOORBELL } what;
	uint32_t val;
};

struct buffer {
	struct store at[BUFFER];
	unsigned int num;
};

/* Software: the n-th access of a post is made by running it anew up to there. */
struct software {
	unsigned int post;	/* posts done */
	unsigned int step;	/* accesses of the present one that are made */
	uint32_t loaded;	/* by it */
	struct buffer buf;
};

/* An access of the device since it was called last, and what it read. */
struct access {
	enum { READ, WRITE, ORDER } what;
	uint32_t val;
};

struct device {
	bool awake;
	unsigned int quiet;	/* rounds without an access */
	struct buffer buf;
	/* When it was called: what it knew, and how it was called. */
	uint32_t pi, misses;
	bool hot, ready;
	enum { DOORBELL_CALL, RUN_CALL, REST_CALL } how;
	unsigned int num;
	struct access log[LOG];
};

/* A scenario, and how far the search is. */
static struct {
	enum fault fault;
	uint32_t start;
	unsigned int posts;
	const uint32_t *blocks;	/* of each post */
	bool full;		/* the device's list of hot queues has no room */

	struct rc *rc;
	struct mini_qp *qp;
	/* The state of this execution. */
	uint32_t record, event;
	struct software sw;
	struct device dev;
	struct buffer db;	/* doorbells that have not arrived */
	/* Choices of this execution; those before @depth are made. */
	struct {
		uint8_t made, of;
	} choice[DEPTH];
	unsigned int depth, at;
	bool blind;
	/* Of the whole search. */
	uint64_t *visited;
	unsigned int states, runs, lost, suppressed, rung, late;
} s;

static jmp_buf sw_stop;
static struct {
	unsigned int n;
	bool did;
} sw_now;

/* --- choices ------------------------------------------------------------------------------ */

static uint64_t hash(uint64_t h, const void *p, size_t len)
{
	const uint8_t *b = p;

	while (len--)
		h = (h ^ *b++) * 0x100000001b3ull;
	return h;
}

static uint64_t hash_buffer(uint64_t h, const struct buffer *buf)
{
	h = hash(h, &buf->num, sizeof(buf->num));
	return hash(h, buf->at, buf->num * sizeof(buf->at[0]));
}

static uint64_t state(unsigned int where)
{
	const struct device *d = &s.dev;
	const uint32_t words[] = {
		where, s.record, s.event, s.sw.post, s.sw.step, s.sw.loaded, d->awake, d->quiet,
		d->pi, d->misses, d->hot, d->ready, d->how, d->num,
	};
	uint64_t h = hash(0xcbf29ce484222325ull, words, sizeof(words));

	h = hash(h, d->log, d->num * sizeof(d->log[0]));
	h = hash_buffer(h, &s.sw.buf);
	h = hash_buffer(h, &d->buf);
	h = hash_buffer(h, &s.db);
	return h ? h : 1;
}

/* False: an execution was in this state before. */
static bool visit(uint64_t h)
{
	uint32_t i = h % VISITED;

	while (s.visited[i] && s.visited[i] != h)
		i = (i + 1) % VISITED;
	if (s.visited[i])
		return false;
	s.visited[i] = h;
	assert_in_range(++s.states, 1, VISITED / 2);
	return true;
}

/* One of @of ways to go on. */
static unsigned int choose(unsigned int of, unsigned int where)
{
	if (of < 2)
		return 0;
	if (s.at < s.depth)
		return s.choice[s.at++].made;
	if (!s.blind && !visit(state(where)))
		s.blind = true;
	if (s.blind)
		return 0;
	assert_in_range(s.at, 0, DEPTH - 1);
	s.choice[s.at].made = 0;
	s.choice[s.at].of = of;
	s.depth = ++s.at;
	return 0;
}

/* The next list of choices; false: that was the last. */
static bool next(void)
{
	while (s.depth && s.choice[s.depth - 1].made + 1 == s.choice[s.depth - 1].of)
		s.depth--;
	if (!s.depth)
		return false;
	s.choice[s.depth - 1].made++;
	return true;
}

/* --- memory ------------------------------------------------------------------------------- */

static void push(struct buffer *buf, int what, uint32_t val)
{
	assert_in_range(buf->num, 0, BUFFER - 1);
	buf->at[buf->num++] = (struct store){ .what = what, .val = val };
}

static struct store pop(struct buffer *buf)
{
	struct store first = buf->at[0];

	memmove(buf->at, buf->at + 1, --buf->num * sizeof(buf->at[0]));
	return first;
}

/* The oldest store of a buffer becomes visible. */
static void drain(struct buffer *buf)
{
	struct store st = pop(buf);

	if (st.what == RECORD)
		s.record = st.val;
	else if (st.what == EVENT)
		s.event = st.val;
	else
		push(&s.db, DOORBELL, st.val);
}

/* --- software ----------------------------------------------------------------------------- */

/* True: make this access now. Those before it were made, and those after it come later. */
static bool sw_access(void)
{
	if (sw_now.n++ < s.sw.step)
		return false;
	if (sw_now.did)
		longjmp(sw_stop, 1);
	sw_now.did = true;
	return true;
}

static __le32 sw_load(const __le32 *word)
{
	(void)word;
	if (sw_access())
		s.sw.loaded = s.event;
	return cpu_to_le32(s.sw.loaded);
}

static void sw_store(__le32 *word, __le32 val)
{
	(void)word;
	if (sw_access())
		push(&s.sw.buf, RECORD, le32_to_cpu(val));
}

static void sw_fence(void)
{
	if (s.fault != NO_FENCE)
		sw_access();
}

static uint32_t posted(unsigned int num)
{
	uint32_t pi = s.start;

	while (num--)
		pi += s.blocks[num];
	return pi;
}

static void sw_post(void)
{
	uint32_t pi = posted(s.sw.post + 1);
	struct skua_qp_dbr dbr;

	if (!skua_sq_record(&dbr, pi, posted(s.sw.post), true)) {
		s.suppressed++;
		return;
	}
	if (sw_access()) {
		push(&s.sw.buf, DOORBELL, pi);
		s.rung++;
	}
}

/* The second access of a post is the fence: it waits for the buffer. */
static bool sw_can(void)
{
	bool fence = s.sw.step == 1 && s.fault != NO_FENCE;

	return s.sw.post < s.posts && !(fence && s.sw.buf.num);
}

static void sw_step(void)
{
	sw_now.n = 0;
	sw_now.did = false;
	if (!setjmp(sw_stop)) {
		sw_post();
		s.sw.post++;
		s.sw.step = 0;
		s.sw.loaded = 0;
	} else {
		s.sw.step++;
	}
}

/* --- device ------------------------------------------------------------------------------- */

static uint32_t known(void)
{
	struct qp qp;
	uint32_t pi;

	assert_int_equal(qp_get(s.rc->s[0].f.dev, s.qp->qpn, &qp), 0);
	pi = le32_to_cpu(qp.sqc->pi);
	qp_put(s.rc->s[0].f.dev, &qp);
	return pi;
}

/* Others go on for as long as is chosen, then the device does, as soon as it @may. */
static void others(int what)
{
	for (;;) {
		bool may = what != ORDER || s.fault == NO_ORDER || !s.dev.buf.num;
		void (*way[4])(void) = { NULL };
		struct buffer *flush[4] = { NULL };
		unsigned int of = 0, pick;

		if (may)
			of++;
		if (sw_can())
			way[of++] = sw_step;
		if (s.sw.buf.num)
			flush[of++] = &s.sw.buf;
		if (s.dev.buf.num)
			flush[of++] = &s.dev.buf;
		pick = choose(of, 1 + what);
		if (way[pick])
			way[pick]();
		else if (flush[pick])
			drain(flush[pick]);
		else
			return;
	}
}

static void log_access(int what, uint32_t val)
{
	assert_in_range(s.dev.num, 0, LOG - 1);
	s.dev.log[s.dev.num++] = (struct access){ .what = what, .val = val };
}

/* What the device reads is put into the fake's memory before. */
static void dev_read(void *priv, uint64_t iova, size_t len)
{
	struct skua_qp_dbr *dbr;
	bool second;

	(void)priv;
	if (iova != s.qp->dbr + offsetof(struct skua_qp_dbr, sq_pi))
		return;
	assert_int_equal(len, 4);
	second = s.dev.num && s.dev.log[s.dev.num - 1].what == ORDER;
	others(READ);
	dbr = fake_ptr(&s.rc->s[0].f, s.qp->dbr);
	/* What is not read again has nothing new. */
	dbr->sq_pi = cpu_to_le32(second && s.fault == NO_LOOK ? known() : s.record);
	log_access(READ, le32_to_cpu(dbr->sq_pi));
}

static bool dev_write(void *priv, uint64_t iova, const void *buf, size_t len)
{
	__le32 val;

	(void)priv;
	if (iova != s.qp->dbr + offsetof(struct skua_qp_dbr, sq_event))
		return false;
	assert_int_equal(len, 4);
	memcpy(&val, buf, sizeof(val));
	others(WRITE);
	push(&s.dev.buf, EVENT, le32_to_cpu(val));
	log_access(WRITE, le32_to_cpu(val));
	return true;
}

static void dev_order(void *priv)
{
	(void)priv;
	/* Another queue's. */
	if (!s.dev.num || s.dev.log[s.dev.num - 1].what != WRITE)
		return;
	others(ORDER);
	log_access(ORDER, 0);
}

/*
 * The device is called: by a doorbell that arrives, because it has something to do, or because
 * its host would like to sleep.
 */
static void call(int how)
{
	struct fake *f = &s.rc->s[0].f;
	struct device *d = &s.dev;

	d->pi = known();
	d->hot = hot_place(f->dev, s.qp->qpn, &d->misses);
	d->ready = sched_ready(f->dev, qp_index(s.qp->qpn));
	d->how = how;
	d->num = 0;
	if (how == REST_CALL) {
		skua_dev_rest(f->dev);
		d->quiet = 0;
	} else if (how == RUN_CALL) {
		bool more = skua_dev_run(f->dev);

		d->quiet = d->num ? 0 : d->quiet + 1;
		/* Other queues that are hot have it go on for ever. */
		d->awake = s.full ? d->quiet < 3 : more;
	} else {
		uint32_t index = pop(&s.db).val;

		s.late += (int32_t)(index - d->pi) <= 0;
		fake_db(f, MINI_UAR, SKUA_UAR_SQ, index, s.qp->qpn);
		d->awake = true;
		d->quiet = 0;
	}
	d->num = 0;
}

/* Between its calls; false: nothing can happen any more. */
static bool between(void)
{
	enum { RUN, REST, TAKE, SOFTWARE, DRAIN_SW, DRAIN_DEV } way[6];
	unsigned int of = 0;

	s.dev.pi = known();
	s.dev.hot = hot_place(s.rc->s[0].f.dev, s.qp->qpn, &s.dev.misses);
	s.dev.ready = sched_ready(s.rc->s[0].f.dev, qp_index(s.qp->qpn));
	if (s.dev.awake)
		way[of++] = RUN;
	if (s.dev.awake && s.dev.hot && !s.full)
		way[of++] = REST;
	if (s.db.num)
		way[of++] = TAKE;
	if (sw_can())
		way[of++] = SOFTWARE;
	if (s.sw.buf.num)
		way[of++] = DRAIN_SW;
	if (s.dev.buf.num)
		way[of++] = DRAIN_DEV;
	if (!of)
		return false;
	switch (way[choose(of, 0)]) {
	case RUN:
		call(RUN_CALL);
		break;
	case REST:
		call(REST_CALL);
		break;
	case TAKE:
		call(DOORBELL_CALL);
		break;
	case SOFTWARE:
		sw_step();
		break;
	case DRAIN_SW:
		drain(&s.sw.buf);
		break;
	case DRAIN_DEV:
		drain(&s.dev.buf);
		break;
	}
	return true;
}

/* --- the search --------------------------------------------------------------------------- */

static void execute(void)
{
	struct skua_dev *dev = s.rc->s[0].f.dev;
	struct qp qp;

	sched_forget(dev, s.qp->qpn);
	hot_forget(dev, s.qp->qpn);
	assert_int_equal(qp_get(dev, s.qp->qpn, &qp), 0);
	qp.sqc->pi = cpu_to_le32(s.start);
	qp.sqc->ci = cpu_to_le32(s.start);
	qp_put(dev, &qp);
	s.record = s.start;
	s.event = s.start;
	s.sw = (struct software){ 0 };
	s.dev = (struct device){ 0 };
	s.db.num = 0;
	s.at = 0;
	s.blind = false;
	while (between())
		;
	assert_int_equal(s.sw.post, s.posts);
	s.lost += known() != posted(s.posts);
	assert_int_equal(dev->cnt[SKUA_CNT_BAD_DB_INDEX], 0);
	s.runs++;
}

/* Queues that are hot and stay so. */
static void fill(struct rc *rc, struct mini_qp *qp, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++) {
		rc_qp(rc, 0, &qp[i], &(struct rc_opt){ 0 });
		assert_int_equal(mini_qp_modify(&rc->s[0].m, &qp[i], SKUA_QP_INIT, SKUA_QP_M_PKEY |
						SKUA_QP_M_PORT | SKUA_QP_M_ACCESS,
						&rc->s[0].attr), 0);
	}
	for (unsigned int i = 0; i < num; i++) {
		qp[i].sq_pi++;
		fake_db(&rc->s[0].f, MINI_UAR, SKUA_UAR_SQ, 1, qp[i].qpn);
		((struct skua_qp_dbr *)fake_ptr(&rc->s[0].f, qp[i].dbr))->sq_pi = cpu_to_le32(1);
	}
	for (unsigned int i = 0; i < num; i++)
		skua_dev_run(rc->s[0].f.dev);
}

static void search(enum fault fault, unsigned int posts, const uint32_t *blocks, uint32_t start,
		   unsigned int looks, bool full)
{
	static struct mini_qp others_[64];
	struct rc_opt opt = {
		.qp_flags = SKUA_QP_F_DB_SUPPRESS,
		.hot_looks = full ? UINT32_MAX : looks,
		.down = true,
	};
	struct fake *f;
	struct rc rc;

	memset(&s, 0, sizeof(s));
	rc_open(&rc, &opt);
	f = &rc.s[0].f;
	s.fault = fault;
	s.posts = posts;
	s.blocks = blocks;
	s.start = start;
	s.full = full;
	s.rc = &rc;
	s.qp = &rc.s[0].qp;
	s.visited = calloc(VISITED, sizeof(*s.visited));
	assert_int_equal(mini_qp_modify(&rc.s[0].m, s.qp, SKUA_QP_INIT, SKUA_QP_M_PKEY |
					SKUA_QP_M_PORT | SKUA_QP_M_ACCESS, &rc.s[0].attr), 0);
	if (full)
		fill(&rc, others_, 64);
	f->on_read = dev_read;
	f->on_write = dev_write;
	f->on_order = dev_order;
	do
		execute();
	while (next());
	f->on_read = NULL;
	f->on_write = NULL;
	f->on_order = NULL;
	printf("# fault %d, %u posts, %u looks%s: %u states, %u executions, %u posts suppressed, %u rung, %u late, %u lost\n",
	       fault, posts, looks, full ? ", list full" : "", s.states, s.runs, s.suppressed,
	       s.rung, s.late, s.lost);
	free(s.visited);
	rc_close(&rc);
}

static const uint32_t one[POSTS_MAX] = { 1, 1, 1, 1 };
static const uint32_t lists[POSTS_MAX] = { 3, 1, 5, 2 };

/* It does what it is for, and every kind of thing happened. */
static void expect_none_lost(void)
{
	assert_int_equal(s.lost, 0);
	assert_in_range(s.states, 80, UINT32_MAX);
	assert_in_range(s.suppressed, 1, UINT32_MAX);
	assert_in_range(s.rung, 1, UINT32_MAX);
	assert_in_range(s.late, 1, UINT32_MAX);
}

static void test_order(void **state)
{
	(void)state;
	search(NONE, 4, one, 0, 1, false);
	expect_none_lost();
	search(NONE, 4, lists, 0, 3, false);
	expect_none_lost();
}

static void test_order_wrap(void **state)
{
	(void)state;
	for (uint32_t start = 0xfffffffe; start; start++) {
		search(NONE, 2, lists, start, 2, false);
		expect_none_lost();
	}
}

static void test_order_full(void **state)
{
	(void)state;
	search(NONE, 4, one, 0, 1, true);
	expect_none_lost();
}

/* Without any one of the parts of the protocol, with and without room in the list. */
static void test_order_faults(void **state)
{
	(void)state;
	for (enum fault fault = NO_FENCE; fault <= NO_LOOK; fault++) {
		search(fault, 2, one, 0, 1, false);
		assert_in_range(s.lost, 1, UINT32_MAX);
		search(fault, 2, one, 0, 1, true);
		assert_in_range(s.lost, 1, UINT32_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_wrap),
		cmocka_unit_test(test_order_full),
		cmocka_unit_test(test_order_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
