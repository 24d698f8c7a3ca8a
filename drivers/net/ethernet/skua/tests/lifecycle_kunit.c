// SPDX-License-Identifier: GPL-2.0
/*
 * The table of the life cycle: every state with every event, rules that all of them keep,
 * and long lives at random against a model that knows of no states.
 */
#include <linux/prandom.h>

#include "fake.h"

/* Those that hold the function down until something else is over. */
static bool is_hold(enum skua_state state)
{
	return state == SKUA_RESET || state == SKUA_ERROR || state == SKUA_ASLEEP;
}

/* In these nothing is allocated, or nothing that will ever be used again. */
static bool is_down(enum skua_state state)
{
	return is_hold(state) || state == SKUA_OFF || state == SKUA_GONE;
}

static void each_pair(struct kunit *test,
		      void (*check)(struct kunit *test, enum skua_state state,
				    enum skua_life event, struct skua_life_step step))
{
	enum skua_state state;
	enum skua_life event;

	for (state = 0; state < SKUA_STATES; state++)
		for (event = 0; event < SKUA_LIVES; event++)
			check(test, state, event, skua_life_step(state, event));
}

#define EXPECT(test, cond, state, event)					\
	KUNIT_EXPECT_TRUE_MSG(test, cond, "%s in state %s", skua_life_name(event), \
			      skua_state_name(state))

static void check_complete(struct kunit *test, enum skua_state state, enum skua_life event,
			   struct skua_life_step step)
{
	KUNIT_EXPECT_NOT_NULL(test, skua_state_name(state));
	KUNIT_EXPECT_NOT_NULL(test, skua_life_name(event));
	EXPECT(test, step.next < SKUA_STATES, state, event);
	EXPECT(test, step.action <= SKUA_IMPOSSIBLE, state, event);
	/* A hole in the table would send everything to the first state. */
	EXPECT(test, step.next != SKUA_OFF || step.action != SKUA_NOTHING ||
	       state == SKUA_OFF || event == SKUA_STOPPED || event == SKUA_ERROR_FAIL,
	       state, event);
	/* What is refused or impossible changes nothing. */
	if (step.action == SKUA_REFUSE || step.action == SKUA_IMPOSSIBLE)
		EXPECT(test, step.next == state, state, event);
}

static void check_actions(struct kunit *test, enum skua_state state, enum skua_life event,
			  struct skua_life_step step)
{
	bool ends = skua_state_is_alive(state) && !skua_state_is_alive(step.next);
	bool kills = step.action == SKUA_KILL || step.action == SKUA_KILL_AND_TAKE_DOWN;
	bool frees = step.action == SKUA_TAKE_DOWN || step.action == SKUA_KILL_AND_TAKE_DOWN;

	/* Bringing up begins where nothing is allocated, and nowhere else. */
	EXPECT(test, (step.action == SKUA_BRING_UP) ==
	       (step.next == SKUA_STARTING && state != SKUA_STARTING), state, event);
	if (step.action == SKUA_BRING_UP)
		EXPECT(test, is_down(state) && state != SKUA_GONE, state, event);
	/* Commands under way are ended exactly when none are taken any more. */
	if (event != SKUA_STOPPED)
		EXPECT(test, kills == ends, state, event);
	/* What is allocated is freed before the function is down; but not in shutdown. */
	if (!is_down(state) && is_down(step.next) && event != SKUA_STOPPED &&
	    event != SKUA_END)
		EXPECT(test, frees, state, event);
	/* Nothing is freed twice. */
	if (frees)
		EXPECT(test, state == SKUA_UP || state == SKUA_DEAD, state, event);
}

/* Any context, any time: never impossible, and it frees nothing. */
static void check_death(struct kunit *test, enum skua_state state, enum skua_life event,
			struct skua_life_step step)
{
	if (event != SKUA_DIE)
		return;
	EXPECT(test, step.next == (skua_state_is_alive(state) ? SKUA_DEAD : state), state,
	       event);
	EXPECT(test, step.action == (skua_state_is_alive(state) ? SKUA_KILL : SKUA_NOTHING),
	       state, event);
}

static void check_holds(struct kunit *test, enum skua_state state, enum skua_life event,
			struct skua_life_step step)
{
	enum skua_life end = state == SKUA_RESET ? SKUA_RESET_END :
			     state == SKUA_ERROR ? SKUA_ERROR_END : SKUA_WAKE;

	if (!is_hold(state))
		return;
	if (event == SKUA_START || event == SKUA_STOP)
		EXPECT(test, step.action == SKUA_REFUSE, state, event);
	/* Only its own end brings the function up. */
	EXPECT(test, (step.action == SKUA_BRING_UP) == (event == end), state, event);
	if (event != end && event != SKUA_END && event != SKUA_ERROR_FAIL)
		EXPECT(test, is_hold(step.next), state, event);
	if (event == SKUA_END)
		EXPECT(test, step.next == SKUA_GONE, state, event);
}

static void check_gone(struct kunit *test, enum skua_state state, enum skua_life event,
		       struct skua_life_step step)
{
	if (state == SKUA_GONE)
		EXPECT(test, step.next == SKUA_GONE && step.action != SKUA_BRING_UP, state, event);
}

/* Whoever brings the function up or down holds the lock that all others wait for. */
static void check_locked(struct kunit *test, enum skua_state state, enum skua_life event,
			 struct skua_life_step step)
{
	bool busy = state == SKUA_STARTING || state == SKUA_STOPPING;
	bool own = event == SKUA_DIE || event == SKUA_STOPPED ||
		   (event == SKUA_STARTED && state == SKUA_STARTING);

	if (busy)
		EXPECT(test, (step.action == SKUA_IMPOSSIBLE) == !own, state, event);
	else if (event != SKUA_STARTED && !(event == SKUA_STOPPED && state == SKUA_UP))
		EXPECT(test, step.action != SKUA_IMPOSSIBLE, state, event);
}

/* What each event is for, in all states in which it can come. */
static void check_purpose(struct kunit *test, enum skua_state state, enum skua_life event,
			  struct skua_life_step step)
{
	bool has = state == SKUA_UP || state == SKUA_DEAD;

	if (state == SKUA_STARTING || state == SKUA_STOPPING)
		return;
	if (step.action == SKUA_REFUSE)
		EXPECT(test, event == SKUA_START || event == SKUA_STOP ||
		       (event == SKUA_STARTED && state == SKUA_DEAD), state, event);
	switch (event) {
	case SKUA_START:
		EXPECT(test, step.action == (state == SKUA_OFF ? SKUA_BRING_UP :
		       state == SKUA_UP ? SKUA_NOTHING : SKUA_REFUSE), state, event);
		break;
	case SKUA_STARTED:
		EXPECT(test, step.action == (state == SKUA_DEAD ? SKUA_REFUSE :
		       SKUA_IMPOSSIBLE), state, event);
		break;
	case SKUA_STOP:
		EXPECT(test, step.action == (has ? SKUA_TAKE_DOWN :
		       state == SKUA_OFF ? SKUA_NOTHING : SKUA_REFUSE), state, event);
		break;
	case SKUA_STOPPED:
		EXPECT(test, step.action == (state == SKUA_UP ? SKUA_IMPOSSIBLE :
		       SKUA_NOTHING), state, event);
		break;
	case SKUA_RESET_BEGIN:
		EXPECT(test, step.next == (has || state == SKUA_OFF || state == SKUA_ERROR ?
					   SKUA_RESET : state), state, event);
		break;
	case SKUA_ERROR_BEGIN:
	case SKUA_ERROR_RESET:
		EXPECT(test, step.next == (state == SKUA_ASLEEP || state == SKUA_GONE ? state :
		       SKUA_ERROR), state, event);
		break;
	case SKUA_ERROR_END:
		EXPECT(test, (step.action == SKUA_BRING_UP) ==
		       (state == SKUA_OFF || state == SKUA_ERROR), state, event);
		break;
	case SKUA_ERROR_FAIL:
		EXPECT(test, step.next == (has || state == SKUA_ERROR ? SKUA_OFF : state), state,
		       event);
		break;
	case SKUA_SLEEP:
		EXPECT(test, step.next == (state == SKUA_GONE ? state : SKUA_ASLEEP), state,
		       event);
		break;
	default:
		break;
	}
}

static void check_stopped(struct kunit *test, enum skua_state state, enum skua_life event,
			  struct skua_life_step step)
{
	if (event != SKUA_STOPPED)
		return;
	EXPECT(test, step.next == (is_down(state) || state == SKUA_UP ? state : SKUA_OFF), state,
	       event);
}

static void life_pairs(struct kunit *test)
{
	each_pair(test, check_complete);
	each_pair(test, check_actions);
	each_pair(test, check_death);
	each_pair(test, check_holds);
	each_pair(test, check_gone);
	each_pair(test, check_locked);
	each_pair(test, check_purpose);
	each_pair(test, check_stopped);
}

/* From every state but the last one there is a way to be up again. */
static void life_no_dead_end(struct kunit *test)
{
	bool reaches[SKUA_STATES] = { [SKUA_UP] = true };
	enum skua_state state;
	enum skua_life event;
	unsigned int i;

	for (i = 0; i < SKUA_STATES; i++)
		for (state = 0; state < SKUA_STATES; state++)
			for (event = 0; event < SKUA_LIVES; event++) {
				struct skua_life_step step = skua_life_step(state, event);

				if (step.action != SKUA_IMPOSSIBLE && reaches[step.next])
					reaches[state] = true;
			}
	for (state = 0; state < SKUA_STATES; state++)
		KUNIT_EXPECT_EQ_MSG(test, reaches[state], state != SKUA_GONE, "state %s",
				    skua_state_name(state));
}

/**
 * struct world - what is true of a function, whatever the table believes
 * @allocated: it was brought up, and not taken down since
 * @works: commands are taken
 * @reset: within a reset of the PCI core
 * @error: within the PCI core's recovery from an error
 * @sleep: the system sleeps
 * @failed: the device failed, or was not brought up when it should have been
 */
struct world {
	bool allocated;
	bool works;
	bool reset;
	bool error;
	bool sleep;
	bool failed;
};

/* What the driver does when it is told to. One time in four the device fails meanwhile. */
static void world_act(struct kunit *test, struct world *w, struct skua_dev *dev,
		      enum skua_action action, struct rnd_state *rnd)
{
	bool dies = !(prandom_u32_state(rnd) % 4);

	switch (action) {
	case SKUA_BRING_UP:
		KUNIT_EXPECT_FALSE(test, w->allocated);
		w->allocated = true;
		w->works = true;
		if (dies && skua_life(dev, SKUA_DIE) == SKUA_KILL)
			w->works = false;
		if (dies && prandom_u32_state(rnd) & 1) {
			w->allocated = false;
			KUNIT_EXPECT_EQ(test, skua_life(dev, SKUA_STOPPED), SKUA_NOTHING);
			break;
		}
		KUNIT_EXPECT_EQ(test, skua_life(dev, SKUA_STARTED),
				dies ? SKUA_REFUSE : SKUA_NOTHING);
		break;
	case SKUA_KILL_AND_TAKE_DOWN:
		w->works = false;
		fallthrough;
	case SKUA_TAKE_DOWN:
		KUNIT_EXPECT_TRUE(test, w->allocated);
		if (dies)
			skua_life(dev, SKUA_DIE);
		w->works = false;
		w->allocated = false;
		KUNIT_EXPECT_EQ(test, skua_life(dev, SKUA_STOPPED), SKUA_NOTHING);
		break;
	case SKUA_KILL:
		w->works = false;
		break;
	default:
		KUNIT_EXPECT_NE(test, action, SKUA_IMPOSSIBLE);
		break;
	}
}

/* The next event that the kernel's locks permit, and what it changes in the world. */
static enum skua_life world_event(struct world *w, struct rnd_state *rnd)
{
	for (;;) {
		switch (prandom_u32_state(rnd) % 9) {
		case 0:
			return SKUA_DIE;
		case 1:
			return w->allocated ? SKUA_STOP : SKUA_START;
		case 2:
			return SKUA_START;
		case 3:
			if (w->reset)
				continue;
			w->reset = true;
			return SKUA_RESET_BEGIN;
		case 4:
			if (!w->reset)
				continue;
			w->reset = false;
			return SKUA_RESET_END;
		case 5:
			if (w->reset)
				continue;
			if (w->error)
				return SKUA_ERROR_RESET;
			w->error = true;
			return SKUA_ERROR_BEGIN;
		case 6:
			if (w->reset || !w->error)
				continue;
			w->error = false;
			return prandom_u32_state(rnd) % 4 ? SKUA_ERROR_END : SKUA_ERROR_FAIL;
		case 7:
			if (w->reset || w->sleep)
				continue;
			w->sleep = true;
			return SKUA_SLEEP;
		default:
			if (w->reset || !w->sleep)
				continue;
			w->sleep = false;
			return SKUA_WAKE;
		}
	}
}

static void life_at_random(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	struct skua_dev *dev = &fake->dev;
	struct rnd_state rnd;
	unsigned int seed, i, ups = 0;

	for (seed = 1; seed <= 50; seed++) {
		struct world w = {};

		prandom_seed_state(&rnd, seed);
		dev->state = SKUA_OFF;
		for (i = 0; i < 200; i++) {
			enum skua_state before = dev->state;
			enum skua_life event = world_event(&w, &rnd);
			enum skua_action action = skua_life(dev, event);

			world_act(test, &w, dev, action, &rnd);
			KUNIT_ASSERT_EQ_MSG(test, w.works, !skua_dead(dev), "seed %u: %s in %s",
					    seed, skua_life_name(event), skua_state_name(before));
			KUNIT_ASSERT_EQ_MSG(test, w.allocated, !is_down(dev->state),
					    "seed %u: %s in %s", seed, skua_life_name(event),
					    skua_state_name(before));
			/* Nothing is brought up within a reset or while the system sleeps. */
			if (w.reset || w.sleep)
				KUNIT_ASSERT_FALSE_MSG(test, w.allocated, "seed %u: %s in %s",
						       seed, skua_life_name(event),
						       skua_state_name(before));
			ups += dev->state == SKUA_UP;
		}
		KUNIT_EXPECT_EQ(test, skua_life(dev, SKUA_END) == SKUA_KILL, w.works);
		KUNIT_EXPECT_EQ(test, skua_life(dev, SKUA_START), SKUA_REFUSE);
		KUNIT_EXPECT_EQ(test, dev->state, SKUA_GONE);
	}
	KUNIT_EXPECT_GT(test, ups, 500);
	/* The fake is torn down as one that failed. */
	dev->state = SKUA_DEAD;
}

static atomic_t reports;

static void count_report(struct work_struct *work)
{
	atomic_inc(&reports);
}

/* Dead work runs, and the report that it may have queued. */
static int count_reports(struct skua_dev *dev)
{
	flush_work(&dev->dead_work);
	flush_work(&dev->report_work);
	return atomic_read(&reports);
}

/* A death is reported once devlink knows the function, and not where others recover it. */
static void life_reports(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	struct skua_dev *dev = &fake->dev;

	atomic_set(&reports, 0);
	/* As skua_reset_init() left it: disabled. */
	skua_declare_dead(dev, "test");
	KUNIT_EXPECT_EQ(test, count_reports(dev), 0);
	KUNIT_EXPECT_EQ(test, dev->state, SKUA_DEAD);
	KUNIT_EXPECT_TRUE(test, fake->quiesced);
	KUNIT_EXPECT_TRUE(test, enable_work(&dev->report_work));

	/* From here on a report is only counted: there is no devlink. */
	INIT_WORK(&dev->report_work, count_report);
	dev->state = SKUA_UP;
	skua_declare_dead(dev, "test");
	KUNIT_EXPECT_EQ(test, count_reports(dev), 1);
	/* It is dead already. */
	skua_declare_dead(dev, "test");
	KUNIT_EXPECT_EQ(test, count_reports(dev), 1);

	dev->state = SKUA_UP;
	KUNIT_EXPECT_EQ(test, skua_life(dev, SKUA_RESET_BEGIN), SKUA_KILL_AND_TAKE_DOWN);
	queue_work(dev->wq, &dev->dead_work);
	KUNIT_EXPECT_EQ(test, count_reports(dev), 1);
	disable_work_sync(&dev->report_work);
	dev->state = SKUA_DEAD;
}

static struct kunit_case skua_lifecycle_cases[] = {
	KUNIT_CASE(life_pairs),
	KUNIT_CASE(life_no_dead_end),
	KUNIT_CASE(life_at_random),
	KUNIT_CASE(life_reports),
	{}
};

struct kunit_suite skua_lifecycle_suite = {
	.name = "skua_lifecycle",
	.test_cases = skua_lifecycle_cases,
};
