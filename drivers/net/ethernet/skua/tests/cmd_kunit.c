// SPDX-License-Identifier: GPL-2.0
/*
 * Commands: slots, tokens, completion by event and by polling, and bad ends.
 */
#include <kunit/static_stub.h>
#include <linux/delay.h>
#include <linux/random.h>

#include "fake.h"

static int run_nop(struct fake *fake)
{
	return skua_cmd_exec(&fake->dev, SKUA_CMD_NOP, NULL, 0, NULL, 0);
}

/* A command on its own thread. */
struct runner {
	struct work_struct work;
	struct fake *fake;
	int err;
};

static void runner_work(struct work_struct *work)
{
	struct runner *r = container_of(work, struct runner, work);

	WRITE_ONCE(r->err, run_nop(r->fake));
}

static struct runner *runners_start(struct fake *fake, unsigned int num)
{
	struct runner *r = kunit_kcalloc(fake->test, num, sizeof(*r), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(fake->test, r);
	for (i = 0; i < num; i++) {
		INIT_WORK(&r[i].work, runner_work);
		r[i].fake = fake;
		r[i].err = 1;
		queue_work(fake->dev.wq, &r[i].work);
	}
	return r;
}

/* How many of @num runners have not come back */
static unsigned int runners_left(const struct runner *r, unsigned int num)
{
	unsigned int left = 0;

	while (num--)
		left += READ_ONCE(r[num].err) == 1;
	return left;
}

static bool until(atomic_t *what, int value)
{
	unsigned int i;

	for (i = 0; i < 20000; i++) {
		if (atomic_read(what) == value)
			return true;
		usleep_range(500, 1000);
	}
	return false;
}

/* How much of its output the device writes. */
static size_t fake_written;

static u32 serve_query(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	const struct skua_cmd_index_in *index = in;

	KUNIT_EXPECT_EQ(fake->test, le32_to_cpu(slot->in_len), sizeof(*index));
	memset(out, le32_to_cpu(index->index), fake_written);
	return SKUA_CMD_ST_OK;
}

/* What the device does not write is zero, and not what an earlier command had there. */
static void test_output(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	u8 out[sizeof(struct skua_cqc)];
	unsigned int round, i;

	fake->serve = serve_query;
	for (round = 0; round < 4; round++) {
		u8 value = 0x11 * (round + 1);

		skua_cmdq_use_events(&fake->dev, round & 1);
		fake_written = round < 2 ? sizeof(out) : sizeof(out) / 2;
		memset(out, 0xee, sizeof(out));
		KUNIT_EXPECT_EQ(test, skua_cmd_query(&fake->dev, SKUA_CMD_QUERY_CQ, value, out,
						     sizeof(out)), 0);
		for (i = 0; i < sizeof(out); i++)
			KUNIT_ASSERT_EQ(test, out[i], i < fake_written ? value : 0);
	}
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.late, 0);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stat[SKUA_CMD_QUERY_CQ].count, 4);
}

static u32 fake_status;

static u32 serve_status(struct fake *fake, struct skua_cmd_slot *slot, const void *in, void *out)
{
	return fake_status;
}

static void test_errno(struct kunit *test)
{
	static const struct {
		u32 status;
		int err;
	} cases[] = {
#define X(_name, _value, _errno, _text) { _value, -(_errno) },
		SKUA_CMD_STATUS_TABLE(X)
#undef X
		{ 0x0e, -EIO },
		{ 0xff, -EIO },
		{ 0x80000000, -EIO },
		{ 0xffffffff, -EIO },
	};
	struct fake *fake = fake_create(test);
	unsigned int i;

	fake->serve = serve_status;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_status = cases[i].status;
		KUNIT_EXPECT_EQ(test, run_nop(fake), cases[i].err);
	}
	KUNIT_EXPECT_FALSE(test, skua_dead(&fake->dev));
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stat[SKUA_CMD_NOP].errors, ARRAY_SIZE(cases) - 1);
}

static void test_names(struct kunit *test)
{
	static const struct {
		unsigned int op;
		const char *name;
	} table[] = {
#define X(_name, _op, _in, _out, _states, _class) { _op, #_name },
		SKUA_CMD_TABLE(X)
#undef X
	};
	unsigned int i, named = 0;

	for (i = 0; i < 0x10000; i++)
		named += !!skua_cmd_name(i);
	KUNIT_EXPECT_EQ(test, named, ARRAY_SIZE(table));
	for (i = 0; i < ARRAY_SIZE(table); i++)
		KUNIT_EXPECT_STREQ(test, skua_cmd_name(table[i].op), table[i].name);
}

/* The event is lost: the command ends well all the same, and soon. */
static void test_lost_event(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	unsigned long begun = jiffies;
	u32 old;

	skua_cmdq_use_events(&fake->dev, true);
	fake->mode = FAKE_LOSE_EVENT;
	KUNIT_EXPECT_EQ(test, run_nop(fake), 0);
	/* Long before it would time out */
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, begun + 30 * HZ));
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.late, 1);
	KUNIT_EXPECT_FALSE(test, skua_dead(&fake->dev));

	/* Now it comes, when the slot has its next command: it is not that one's. */
	old = fake->token;
	fake->mode = FAKE_HOLD;
	runners_start(fake, 1);
	KUNIT_ASSERT_TRUE(test, until(&fake->held, 1));
	KUNIT_EXPECT_NE(test, fake->token, old);
	KUNIT_EXPECT_EQ(test, fake->token & 0xffff, old & 0xffff);
	skua_cmd_complete(&fake->dev, old);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stale, 1);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.ctx[old & 0xffff].state, SKUA_CMD_BUSY);
	/* Nor is it when that one is done, and its own event has not come yet. */
	fake_finish(fake, fake->token, false);
	skua_cmd_complete(&fake->dev, old);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stale, 2);
	flush_workqueue(fake->dev.wq);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.ctx[old & 0xffff].state, SKUA_CMD_FREE);
}

/* An event for a command that is not done completes nothing. */
static void test_lying_event(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	struct runner *r;

	skua_cmdq_use_events(&fake->dev, true);
	fake->mode = FAKE_HOLD;
	r = runners_start(fake, 1);
	KUNIT_ASSERT_TRUE(test, until(&fake->held, 1));
	skua_cmd_complete(&fake->dev, fake->token);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stale, 1);
	msleep(20);
	KUNIT_EXPECT_EQ(test, r->err, 1);
	fake_finish_all(fake);
	flush_workqueue(fake->dev.wq);
	KUNIT_EXPECT_EQ(test, r->err, 0);
}

/* Whatever tokens events have, commands end as they should. */
static void test_garbage_tokens(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	unsigned int i;

	skua_cmdq_use_events(&fake->dev, true);
	for (i = 0; i < 1000; i++) {
		skua_cmd_complete(&fake->dev, get_random_u32());
		skua_cmd_complete(&fake->dev, i);
		if (i % 10 == 0)
			KUNIT_EXPECT_EQ(test, run_nop(fake), 0);
	}
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stale, 2000);
}

/* Tokens are never zero, and the same slot's follow each other. */
static void test_generation(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	unsigned int i;
	u32 last = 0;

	fake->dev.cmdq.ctx[0].gen = 0xfffd;
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, run_nop(fake), 0);
		KUNIT_EXPECT_EQ(test, fake->token & 0xffff, 0);
		KUNIT_EXPECT_NE(test, fake->token, 0);
		KUNIT_EXPECT_NE(test, fake->token, last);
		last = fake->token;
	}
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.ctx[0].gen, 3);
}

/* Ordinary commands wait for slots, but leave some to reclaim-safe ones. */
static void test_reserved_slots(struct kunit *test)
{
	const unsigned int num = 2 * SKUA_CMDQ_SLOTS;
	struct skua_cmd_sync_mtt_in in = {};
	struct fake *fake = fake_create(test);
	struct runner *r;
	unsigned int i;

	skua_cmdq_use_events(&fake->dev, true);
	fake->hold_op = SKUA_CMD_NOP;
	r = runners_start(fake, num);
	KUNIT_ASSERT_TRUE(test, until(&fake->held, SKUA_CMDQ_SLOTS - SKUA_CMDQ_SAFE_SLOTS));
	msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->held), SKUA_CMDQ_SLOTS - SKUA_CMDQ_SAFE_SLOTS);
	KUNIT_EXPECT_EQ(test, skua_cmd_in(&fake->dev, SKUA_CMD_SYNC_MTT, &in), 0);
	/* It is polled, whatever the others are. */
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.late, 0);

	/* One that was finished before it was posted is finished again. */
	while (runners_left(r, num)) {
		fake_finish_all(fake);
		usleep_range(1000, 2000);
	}
	flush_workqueue(fake->dev.wq);
	for (i = 0; i < num; i++)
		KUNIT_EXPECT_EQ(test, r[i].err, 0);
}

static void check_dead(struct fake *fake)
{
	struct kunit *test = fake->test;

	KUNIT_EXPECT_TRUE(test, fake->quiesced);
	KUNIT_EXPECT_TRUE(test, skua_dead(&fake->dev));
	fake->mode = FAKE_SERVE;
	fake->hold_op = -1;
	KUNIT_EXPECT_EQ(test, run_nop(fake), -EIO);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->served), 0);
}

/* A command without an end: the slot is kept, the device dead. */
static void run_timeout(struct kunit *test, bool events)
{
	struct fake *fake = fake_create(test);
	unsigned long begun = jiffies;
	struct skua_cmd_ctx *ctx;

	skua_cmdq_use_events(&fake->dev, events);
	fake->mode = FAKE_HOLD;
	fake->dev.cmd_timeout_ms = 0;
	KUNIT_EXPECT_EQ(test, run_nop(fake), -ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, begun + SKUA_CMD_FAST_MS / 1000 * HZ));
	ctx = &fake->dev.cmdq.ctx[fake->token & 0xffff];
	KUNIT_EXPECT_EQ(test, ctx->state, SKUA_CMD_LOST);
	KUNIT_EXPECT_NOT_NULL(test, ctx->mbox.va);
	check_dead(fake);
	/* It ends after all, and nobody cares. */
	fake_finish(fake, fake->token, true);
	KUNIT_EXPECT_EQ(test, ctx->state, SKUA_CMD_LOST);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stat[SKUA_CMD_NOP].lost, 1);
}

static void test_timeout_event(struct kunit *test)
{
	run_timeout(test, true);
}

static void test_timeout_poll(struct kunit *test)
{
	run_timeout(test, false);
}

static struct fake *late_fake;
static bool late_event;

/* The command is done after the last look, before it is given up. */
static int done_late(struct skua_dev *dev, struct skua_cmd_ctx *ctx,
		     const struct skua_cmd_info *info, bool event, int err)
{
	KUNIT_EXPECT_EQ(late_fake->test, err, -EAGAIN);
	fake_finish(late_fake, late_fake->token, late_event);
	kunit_deactivate_static_stub(late_fake->test, skua_cmd_give_up);
	return skua_cmd_give_up(dev, ctx, info, event, err);
}

static void run_late(struct kunit *test, bool events, bool event)
{
	struct fake *fake = fake_create(test);

	late_fake = fake;
	late_event = event;
	skua_cmdq_use_events(&fake->dev, events);
	fake->mode = FAKE_HOLD;
	fake->dev.cmd_timeout_ms = 50;
	kunit_activate_static_stub(test, skua_cmd_give_up, done_late);
	KUNIT_EXPECT_EQ(test, run_nop(fake), 0);
	KUNIT_EXPECT_FALSE(test, skua_dead(&fake->dev));
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.stat[SKUA_CMD_NOP].lost, 0);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.late, events && !event);
	KUNIT_EXPECT_EQ(test, fake->dev.cmdq.ctx[fake->token & 0xffff].state, SKUA_CMD_FREE);
	fake->mode = FAKE_SERVE;
	KUNIT_EXPECT_EQ(test, run_nop(fake), 0);
}

static void test_late_event(struct kunit *test)
{
	run_late(test, true, true);
}

static void test_late_no_event(struct kunit *test)
{
	run_late(test, true, false);
}

static void test_late_poll(struct kunit *test)
{
	run_late(test, false, false);
}

/* Death wakes those who wait for a command, and those who wait for a slot. */
static void run_death(struct kunit *test, bool events)
{
	const unsigned int num = SKUA_CMDQ_SLOTS + 8;
	struct fake *fake = fake_create(test);
	unsigned long begun;
	struct runner *r;
	unsigned int i;

	skua_cmdq_use_events(&fake->dev, events);
	fake->mode = FAKE_HOLD;
	r = runners_start(fake, num);
	KUNIT_ASSERT_TRUE(test, until(&fake->held, SKUA_CMDQ_SLOTS - SKUA_CMDQ_SAFE_SLOTS));
	begun = jiffies;
	skua_declare_dead(&fake->dev, "test");
	skua_declare_dead(&fake->dev, "test, again");
	flush_workqueue(fake->dev.wq);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, begun + 30 * HZ));
	for (i = 0; i < num; i++)
		KUNIT_EXPECT_EQ(test, r[i].err, -EIO);
	check_dead(fake);
}

static void test_death_event(struct kunit *test)
{
	run_death(test, true);
}

static void test_death_poll(struct kunit *test)
{
	run_death(test, false);
}

static struct kunit_case skua_cmd_cases[] = {
	KUNIT_CASE(test_output),
	KUNIT_CASE(test_errno),
	KUNIT_CASE(test_names),
	KUNIT_CASE(test_lost_event),
	KUNIT_CASE(test_lying_event),
	KUNIT_CASE(test_garbage_tokens),
	KUNIT_CASE(test_generation),
	KUNIT_CASE(test_reserved_slots),
	KUNIT_CASE_SLOW(test_timeout_event),
	KUNIT_CASE_SLOW(test_timeout_poll),
	KUNIT_CASE(test_late_event),
	KUNIT_CASE(test_late_no_event),
	KUNIT_CASE(test_late_poll),
	KUNIT_CASE(test_death_event),
	KUNIT_CASE(test_death_poll),
	{}
};

struct kunit_suite skua_cmd_suite = {
	.name = "skua_cmd",
	.test_cases = skua_cmd_cases,
};
