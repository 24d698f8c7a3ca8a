// SPDX-License-Identifier: GPL-2.0
/*
 * The rules of arming a completion queue, in every order of what may happen: arms of
 * both kinds, completions, polls, events taken, an event queue that is full, time that
 * passes, another ring. And programs of the usual forms, in every order with the
 * completions: none of them ever waits while something is there for it.
 */
#include <stdio.h>

#include "core_test.h"

/* EQ of one entry, so that a second event finds it full. */
#define EQN		8

struct bench {
	struct rig *r;
	struct mini_eq eq;
	struct mini_cq cq;
};

static void bench_open(struct bench *b, struct rig *r, uint32_t log)
{
	struct skua_cqc cqc;

	b->r = r;
	assert_status(mini_eq_create(&r->m, &b->eq, EQN, 0, 0, 3), OK);
	cqc = mini_cqc(&r->m, &b->cq, log, 64);
	cqc.eqn = cpu_to_le32(EQN);
	mini_ok(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
}

static void complete(struct bench *b, bool solicited, bool error)
{
	struct skua_cqe cqe = {
		.what = le32_encode_bits(error ? SKUA_CQE_WR_FLUSH_ERR : SKUA_CQE_OK,
					 SKUA_CQE_STATUS),
	};

	assert_int_equal(cq_post(b->r->f.dev, b->cq.cqn, &cqe, solicited), 0);
}

static bool poll_one(struct bench *b)
{
	struct skua_cqe cqe;

	return mini_cq_next(&b->r->m, &b->cq, &cqe);
}

/* The CQ arms with an index and a kind. */
static void arm_at(struct bench *b, uint32_t ci, bool solicited)
{
	uint32_t now = b->cq.ci;

	b->cq.ci = ci;
	mini_cq_arm(&b->r->m, &b->cq, solicited);
	b->cq.ci = now;
}

static bool event_there(struct bench *b)
{
	struct mini_eq peek = b->eq;
	struct skua_eqe eqe;

	return mini_eq_next(&b->r->m, &peek, &eqe);
}

static bool take_event(struct bench *b, struct skua_eqe *eqe)
{
	if (!mini_eq_next(&b->r->m, &b->eq, eqe))
		return false;
	assert_int_equal(le32_get_bits(eqe->what, SKUA_EQE_TYPE), SKUA_EQE_COMP);
	assert_int_equal(le32_to_cpu(eqe->num), b->cq.cqn);
	mini_eq_db(&b->r->m, &b->eq, true);
	return true;
}

/* --- every order, against the rules ------------------------------------------ */

#define MOST_DONE	64
#define HOLD_USEC	50

/*
 * The rules in their plainest form: of each completion it is known whether an event
 * told of it, which is any event written after it.
 */
struct rules {
	struct {
		bool solicited, told;
	} done[MOST_DONE];
	unsigned int n, ci;
	enum { UNARMED, ANY, SOLICITED } arm;
	unsigned int serial;	/* of the last arm */
	unsigned int most;	/* moderation: so many completions make an event; 0: off */
	unsigned int held;
	bool in_eq;		/* an event lies in the EQ */
	bool waits;		/* another one waits for it to be taken */
};

static void rules_told(struct rules *m)
{
	for (unsigned int i = 0; i < m->n; i++)
		m->done[i].told = true;
	m->held = 0;
}

static void rules_event(struct rules *m)
{
	m->arm = UNARMED;
	m->held = 0;
	if (m->in_eq) {
		m->waits = true;
		return;
	}
	m->in_eq = true;
	rules_told(m);
}

static void rules_complete(struct rules *m, bool solicited)
{
	assert_true(m->n < MOST_DONE);
	m->done[m->n].solicited = solicited;
	m->done[m->n++].told = false;
	if (m->arm == UNARMED || (m->arm == SOLICITED && !solicited))
		return;
	if (++m->held >= m->most)
		rules_event(m);
}

static void rules_arm(struct rules *m, bool solicited)
{
	solicited &= m->arm != ANY;
	m->arm = solicited ? SOLICITED : ANY;
	m->serial++;
	m->held = 0;
	for (unsigned int i = m->ci; i < m->n; i++) {
		if (!m->done[i].told && (!solicited || m->done[i].solicited)) {
			rules_event(m);
			return;
		}
	}
}

static void rules_take(struct rules *m)
{
	m->in_eq = m->waits;
	if (m->waits)
		rules_told(m);
	m->waits = false;
}

static bool rules_clean(const struct rules *m)
{
	return m->ci == m->n && (!m->n || m->done[m->n - 1].told) && m->arm == UNARMED &&
	       !m->in_eq;
}

/* RESIZE_CQ to a ring of 32 or 64 entries, whichever it is not, with all that is in it. */
static void other_ring(struct bench *b)
{
	struct skua_cmd_resize_cq_out out = { 0 };
	struct mini_cq *cq = &b->cq, new = *cq;
	struct skua_cqc in = { .cqn = cpu_to_le32(cq->cqn) };
	static uint64_t ring[2];
	struct skua_cqe *old, *to;
	uint32_t i;

	new.log = cq->log == 5 ? 6 : 5;
	/* Two rings in turn: guest memory is not given back. */
	if (!cq->serial)
		ring[0] = ring[1] = 0;
	if (!ring[new.log - 5])
		ring[new.log - 5] = fake_alloc(&b->r->f, 64u << 6, 4096);
	new.ring = ring[new.log - 5];
	in.flags = le32_encode_bits(new.log, SKUA_CQC_LOG_SIZE);
	in.ring.base = cpu_to_le64(new.ring);
	to = fake_ptr(&b->r->f, new.ring);
	for (i = cq->ci; i != cq->ci + (1u << new.log); i++)
		to[i & ((1u << new.log) - 1)].own =
			le32_encode_bits(i >> new.log & 1, SKUA_CQE_PHASE);
	assert_status(mini_cmd(&b->r->m, SKUA_CMD_RESIZE_CQ, &in, sizeof(in), &out, sizeof(out)),
		      OK);
	old = fake_ptr(&b->r->f, cq->ring);
	for (i = cq->ci; i != le32_to_cpu(out.pi); i++) {
		struct skua_cqe *at = &to[i & ((1u << new.log) - 1)];

		*at = old[i & ((1u << cq->log) - 1)];
		le32p_replace_bits(&at->own, !(i >> new.log & 1), SKUA_CQE_PHASE);
	}
	*cq = new;
}

static char history[64];

static void act(struct bench *b, struct rules *m, char what)
{
	struct skua_eqe eqe;
	bool had = m->in_eq;

	switch (what) {
	case 'c':
	case 's':
	case 'e':
		complete(b, what == 's', what == 'e');
		rules_complete(m, what != 'c');
		break;
	case 'p':
		if (poll_one(b) != (m->ci < m->n))
			fail_msg("%s: poll", history);
		m->ci += m->ci < m->n;
		break;
	case 'A':
	case 'S':
		mini_cq_arm(&b->r->m, &b->cq, what == 'S');
		rules_arm(m, what == 'S');
		break;
	case 't':
		if (take_event(b, &eqe) != had)
			fail_msg("%s: event taken", history);
		if (had)
			rules_take(m);
		break;
	case 'w':
		fake_advance(&b->r->f, HOLD_USEC * 1000);
		if (m->held)
			rules_event(m);
		break;
	case 'r':
		other_ring(b);
		break;
	}
	if (event_there(b) != m->in_eq)
		fail_msg("%s: %s", history, m->in_eq ? "no event" : "an event too many");
	if (m->in_eq && !had) {
		struct mini_eq peek = b->eq;

		mini_eq_next(&b->r->m, &peek, &eqe);
		if (le32_to_cpu(eqe.info[0]) != ((m->serial - 1) & 3))
			fail_msg("%s: serial", history);
	}
}

/* Back to where nothing is there, told or awaited. */
static void tidy(struct bench *b, struct rules *m)
{
	unsigned int most = m->most, serial;

	for (unsigned int i = 0; !rules_clean(m); i++) {
		assert_true(i < 8);
		act(b, m, 't');
		act(b, m, 't');
		while (m->ci < m->n)
			act(b, m, 'p');
		if (rules_clean(m))
			break;
		act(b, m, 'A');
		act(b, m, 'c');
		act(b, m, 'w');
	}
	serial = m->serial;
	*m = (struct rules){ .most = most, .serial = serial };
}

/* Each sequence of @len of these letters, with those of @first before it. */
static void every_order(struct rig *r, const char *first, const char *letters, unsigned int len,
			unsigned int most)
{
	struct skua_cmd_modify_mod_in mod = {
		.moderation = le32_encode_bits(HOLD_USEC, SKUA_MOD_USEC) |
			      le32_encode_bits(most, SKUA_MOD_COUNT),
	};
	unsigned int base = strlen(letters), total = 1;
	struct rules m = { .most = most };
	struct bench b;

	bench_open(&b, r, 5);
	mod.index = cpu_to_le32(b.cq.cqn);
	if (most)
		mini_ok(&r->m, SKUA_CMD_MODIFY_CQ, &mod, sizeof(mod));
	mini_eq_db(&r->m, &b.eq, true);
	for (unsigned int i = 0; i < len; i++)
		total *= base;
	for (unsigned int n = 0; n < total; n++) {
		unsigned int i, rest = n;

		for (i = 0; i < strlen(first) + len; i++) {
			history[i] = i < strlen(first) ? first[i] : letters[rest % base];
			history[i + 1] = 0;
			rest /= i < strlen(first) ? 1 : base;
			act(&b, &m, history[i]);
		}
		tidy(&b, &m);
	}
}

static void orders(void **state)
{
	every_order(*state, "", "csAStp", 7, 0);
}

static void orders_errors(void **state)
{
	every_order(*state, "", "ceSAtp", 5, 0);
}

static void orders_moderated(void **state)
{
	every_order(*state, "", "csAStpw", 6, 2);
}

/* One event in the EQ, one that waits for room there, and an arm that meets neither. */
static void orders_full(void **state)
{
	every_order(*state, "cAcAppA", "csAStp", 5, 0);
}

static void orders_full_moderated(void **state)
{
	every_order(*state, "cAcAppA", "csAStpw", 5, 2);
}

static void orders_resized(void **state)
{
	every_order(*state, "", "csAStpr", 5, 0);
}

/* --- programs of the usual forms ----------------------------------------------- */

/*
 * What a program does at its start and after each event, then it waits for the next:
 * a: arm; p: poll until there is nothing; x: remember the index; X: arm with that one,
 * as a thread does that another one overtakes.
 */
struct program {
	const char *does;
	bool solicited;
};

/* Which of the possible steps is taken, at each point; next_path() counts on. */
struct path {
	unsigned int len, at;
	uint8_t taken[64], of[64];
};

static unsigned int choose(struct path *p, unsigned int of)
{
	if (p->at == p->len) {
		assert_true(p->len < sizeof(p->taken));
		p->taken[p->len] = 0;
		p->of[p->len++] = of;
	}
	assert_int_equal(p->of[p->at], of);
	return p->taken[p->at++];
}

static bool next_path(struct path *p)
{
	while (p->len && ++p->taken[p->len - 1] == p->of[p->len - 1])
		p->len--;
	p->at = 0;
	return p->len;
}

/* One step of the program, which stands at *@at and has what it waits for. */
static void step(struct bench *b, const struct program *prog, unsigned int *at, uint32_t *ci,
		 unsigned int *events)
{
	struct skua_eqe eqe;

	switch (prog->does[*at]) {
	case 0:
		assert_true(take_event(b, &eqe));
		++*events;
		*at = 0;
		return;
	case 'a':
		mini_cq_arm(&b->r->m, &b->cq, prog->solicited);
		break;
	case 'x':
		*ci = b->cq.ci;
		break;
	case 'X':
		arm_at(b, *ci, prog->solicited);
		break;
	case 'p':
		if (poll_one(b))
			return;
		break;
	}
	++*at;
}

/* One run: @total completions, of which those in @mask are solicited. */
static void run(struct bench *b, const struct program *prog, struct path *path,
		unsigned int total, unsigned int mask)
{
	uint32_t base = b->cq.ci, ci = base, wanted = base;
	unsigned int done = 0, at = 0, events = 0;

	for (;;) {
		bool may = done < total && base + done - b->cq.ci < 1u << b->cq.log;
		bool waits = !prog->does[at] && !event_there(b);

		if (waits && !may)
			break;
		/* Who waits for an event does not go on by itself. */
		if (may && (waits || choose(path, 2))) {
			complete(b, mask >> done & 1, false);
			done++;
			if (!prog->solicited || mask >> (done - 1) & 1)
				wanted = base + done;
		} else {
			step(b, prog, &at, &ci, &events);
		}
	}
	if ((int32_t)(wanted - b->cq.ci) > 0)
		fail_msg("\"%s\" waits, %u of %u completions polled (solicited: %#x)", prog->does,
			 b->cq.ci - base, total, mask);
	assert_true(events <= total);
}

/* Nothing there, told or awaited: the next run starts as the first did. */
static void settle(struct bench *b)
{
	struct skua_eqe eqe;

	mini_cq_arm(&b->r->m, &b->cq, false);
	complete(b, false, false);
	while (take_event(b, &eqe))
		;
	while (poll_one(b))
		;
}

static void every_path(struct rig *r, const struct program *prog, uint32_t log,
		       unsigned int total)
{
	struct bench b;

	bench_open(&b, r, log);
	mini_eq_db(&r->m, &b.eq, true);
	for (unsigned int mask = 0; mask < (prog->solicited ? 1u << total : 1); mask++) {
		struct path path = { 0 };

		do {
			run(&b, prog, &path, total, mask);
			while (poll_one(&b))
				;
			settle(&b);
		} while (next_path(&path));
	}
}

/* Event, arm, poll: as the man page has it. */
static void program_arm_poll(void **state)
{
	every_path(*state, &(struct program){ "ap" }, 3, 5);
}

/* Poll, arm, and no second look: kernel consumers. */
static void program_poll_arm(void **state)
{
	every_path(*state, &(struct program){ "pa" }, 3, 5);
}

static void program_poll_arm_poll(void **state)
{
	every_path(*state, &(struct program){ "pap" }, 3, 4);
}

static void program_arm_poll_solicited(void **state)
{
	every_path(*state, &(struct program){ "ap", true }, 3, 4);
}

static void program_poll_arm_solicited(void **state)
{
	every_path(*state, &(struct program){ "pa", true }, 3, 4);
}

/* An arm that comes late: more went round the small ring since its index was read. */
static void program_overtaken(void **state)
{
	every_path(*state, &(struct program){ "xpXp" }, 1, 6);
}

/* --- single cases ---------------------------------------------------------------- */

/* ib_send_lat -e: one completion and one event at a time, each event before its poll. */
static void one_event_each(void **state)
{
	struct rig *r = *state;
	struct skua_eqe eqe;
	struct bench b;

	bench_open(&b, r, 3);
	for (int solicited = 0; solicited < 2; solicited++) {
		mini_cq_arm(&r->m, &b.cq, solicited);
		for (unsigned int i = 0; i < 100; i++) {
			complete(&b, true, false);
			assert_true(take_event(&b, &eqe));
			mini_cq_arm(&r->m, &b.cq, solicited);
			assert_false(event_there(&b));
			assert_true(poll_one(&b));
			assert_false(poll_one(&b));
		}
		settle(&b);
	}
}

/* Set what the CQ has behind it, as if @n completions had come and been polled. */
static void jump(struct bench *b, uint32_t n)
{
	struct skua_dev *dev = b->r->f.dev;
	struct skua_cqc *cqc = ctx_get(dev, SKUA_ICM_CQC, b->cq.cqn);
	struct skua_cq_dbr *dbr = fake_ptr(&b->r->f, b->cq.dbr);

	assert_int_equal(n % (2u << b->cq.log), 0);
	b->cq.ci += n;
	cqc->pi = cpu_to_le32(le32_to_cpu(cqc->pi) + n);
	cqc->ci = cpu_to_le32(b->cq.ci);
	dbr->ci = cqc->ci;
	ctx_dirty(dev, cqc);
	ctx_put(dev, cqc);
}

static void polled(struct bench *b, unsigned int n)
{
	while (n--) {
		complete(b, false, false);
		assert_true(poll_one(b));
	}
}

/*
 * A CQ that is polled only, for so long that the indices wrap: what is 2^32 completions
 * old does not look new, nor the other way round.
 */
static void long_time_unarmed(void **state)
{
	struct rig *r = *state;
	struct skua_eqe eqe;
	struct bench b;

	bench_open(&b, r, 3);
	for (unsigned int last = 1; last <= 3; last += 2) {
		bool solicited = last == 3;

		/* The last event and the last solicited completion are here. */
		mini_cq_arm(&r->m, &b.cq, true);
		complete(&b, true, false);
		assert_true(take_event(&b, &eqe));
		assert_true(poll_one(&b));
		jump(&b, 0x7ffffff0);
		polled(&b, 16);
		jump(&b, 0x7ffffff0);
		polled(&b, 15);
		/* Of these the first is the 2^32th since. */
		for (unsigned int n = 0; n < last; n++)
			complete(&b, false, false);
		mini_cq_arm(&r->m, &b.cq, solicited);
		assert_int_equal(event_there(&b), !solicited);
		complete(&b, true, false);
		assert_true(take_event(&b, &eqe));
		while (poll_one(&b))
			;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(orders),
		rig_test(orders_errors),
		rig_test(orders_moderated),
		rig_test(orders_full),
		rig_test(orders_full_moderated),
		rig_test(orders_resized),
		rig_test(program_arm_poll),
		rig_test(program_poll_arm),
		rig_test(program_poll_arm_poll),
		rig_test(program_arm_poll_solicited),
		rig_test(program_poll_arm_solicited),
		rig_test(program_overtaken),
		rig_test(one_event_each),
		rig_test(long_time_unarmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
