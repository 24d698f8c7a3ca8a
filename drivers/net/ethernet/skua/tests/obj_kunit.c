// SPDX-License-Identifier: GPL-2.0
/*
 * Objects: numbers, and events that meet objects on their way out.
 */
#include <linux/delay.h>

#include "fake.h"

static void table_exit(void *data)
{
	skua_obj_table_exit(data);
}

static struct skua_obj_table *table_create(struct kunit *test, u32 first, u32 last,
					   u8 index_bits)
{
	struct skua_obj_table *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	skua_obj_table_init(t, first, last, index_bits, 24);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, table_exit, t), 0);
	return t;
}

static void test_life(struct kunit *test)
{
	struct skua_obj_table *t = table_create(test, 1, 100, 24);
	struct skua_obj a, b;

	KUNIT_ASSERT_EQ(test, skua_obj_reserve(t, &a), 0);
	KUNIT_EXPECT_EQ(test, a.num, 1);
	KUNIT_EXPECT_NULL(test, skua_obj_get(t, a.num));
	skua_obj_publish(t, &a);
	KUNIT_EXPECT_PTR_EQ(test, skua_obj_get(t, a.num), &a);
	skua_obj_put(&a);
	KUNIT_EXPECT_NULL(test, skua_obj_get(t, a.num + 1));
	KUNIT_EXPECT_NULL(test, skua_obj_get(t, U32_MAX));
	skua_obj_retire(t, &a);
	KUNIT_EXPECT_NULL(test, skua_obj_get(t, a.num));
	/* Retired, but the number is not given out before it is released. */
	KUNIT_ASSERT_EQ(test, skua_obj_reserve(t, &b), 0);
	KUNIT_EXPECT_NE(test, b.num, a.num);
	skua_obj_release(t, &a);
	skua_obj_release(t, &b);
	KUNIT_ASSERT_EQ(test, skua_obj_reserve(t, &b), 0);
	KUNIT_EXPECT_EQ(test, b.num, 1);
	skua_obj_release(t, &b);
}

static void test_exhausted(struct kunit *test)
{
	struct skua_obj_table *t = table_create(test, 2, 9, 24);
	struct skua_obj obj[9];
	unsigned int i;

	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_EQ(test, skua_obj_reserve(t, &obj[i]), 0);
		KUNIT_EXPECT_EQ(test, obj[i].num, i + 2);
	}
	KUNIT_EXPECT_EQ(test, skua_obj_reserve(t, &obj[8]), -ENOSPC);
	skua_obj_release(t, &obj[3]);
	KUNIT_EXPECT_EQ(test, skua_obj_reserve(t, &obj[3]), 0);
	for (i = 0; i < 8; i++)
		skua_obj_release(t, &obj[i]);
}

/* There is no object of this number; who gets one all the same puts it. */
static void expect_none(struct kunit *test, struct skua_obj_table *t, u32 num)
{
	struct skua_obj *obj = skua_obj_get(t, num);

	KUNIT_EXPECT_NULL(test, obj);
	if (obj)
		skua_obj_put(obj);
}

/* The bits above the index must fit too. */
static void test_variant(struct kunit *test)
{
	struct skua_obj_table *t = table_create(test, 2, 1000, 12);
	unsigned int i, same = 0;
	struct skua_obj obj;
	u32 last = 0;

	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_EQ(test, skua_obj_reserve(t, &obj), 0);
		KUNIT_EXPECT_EQ(test, skua_obj_index(t, obj.num), 2);
		KUNIT_EXPECT_LT(test, obj.num, BIT(24));
		skua_obj_publish(t, &obj);
		expect_none(test, t, obj.num ^ BIT(12));
		expect_none(test, t, obj.num ^ BIT(24));
		same += obj.num == last;
		last = obj.num;
		skua_obj_retire(t, &obj);
		skua_obj_release(t, &obj);
	}
	KUNIT_EXPECT_LT(test, same, 10);
}

/* QPN 0xffffff is the multicast one. */
static void test_multicast(struct kunit *test)
{
	struct skua_obj_table *t = table_create(test, 0x7fffff, 0x7fffff, 23);
	struct skua_obj obj;
	unsigned int i;

	for (i = 0; i < 64; i++) {
		KUNIT_ASSERT_EQ(test, skua_obj_reserve(t, &obj), 0);
		KUNIT_EXPECT_EQ(test, obj.num, 0x7fffff);
		skua_obj_release(t, &obj);
	}
}

static void test_reserve_at(struct kunit *test)
{
	struct skua_obj_table *t = table_create(test, 2, 100, 12);
	struct skua_obj a, b;

	KUNIT_ASSERT_EQ(test, skua_obj_reserve_at(t, &a, 1), 0);
	KUNIT_EXPECT_EQ(test, a.num, 1);
	KUNIT_EXPECT_EQ(test, skua_obj_reserve_at(t, &b, 1), -EBUSY);
	skua_obj_publish(t, &a);
	KUNIT_EXPECT_PTR_EQ(test, skua_obj_get(t, 1), &a);
	skua_obj_put(&a);
	skua_obj_retire(t, &a);
	skua_obj_release(t, &a);
	KUNIT_ASSERT_EQ(test, skua_obj_reserve_at(t, &b, 1), 0);
	skua_obj_release(t, &b);
}

struct event {
	struct work_struct work;
	struct skua_obj_table *t;
	u32 num;
	struct completion got;
	unsigned int found;
	bool inside;
	bool stop;
};

static void slow_event(struct work_struct *work)
{
	struct event *ev = container_of(work, struct event, work);
	struct skua_obj *obj = skua_obj_get(ev->t, ev->num);

	ev->found = !!obj;
	WRITE_ONCE(ev->inside, true);
	complete(&ev->got);
	msleep(100);
	WRITE_ONCE(ev->inside, false);
	if (obj)
		skua_obj_put(obj);
}

/* Retiring waits for an event that found the object. */
static void test_retire_waits(struct kunit *test)
{
	struct skua_obj_table *t = table_create(test, 1, 100, 24);
	struct skua_obj obj;
	struct event ev = { .t = t };

	KUNIT_ASSERT_EQ(test, skua_obj_reserve(t, &obj), 0);
	skua_obj_publish(t, &obj);
	ev.num = obj.num;
	init_completion(&ev.got);
	INIT_WORK_ONSTACK(&ev.work, slow_event);
	schedule_work(&ev.work);
	wait_for_completion(&ev.got);
	skua_obj_retire(t, &obj);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(ev.inside));
	flush_work(&ev.work);
	destroy_work_on_stack(&ev.work);
	KUNIT_EXPECT_EQ(test, ev.found, 1);
	skua_obj_release(t, &obj);
}

static void busy_events(struct work_struct *work)
{
	struct event *ev = container_of(work, struct event, work);

	while (!READ_ONCE(ev->stop)) {
		struct skua_obj *obj = skua_obj_get(ev->t, ev->num);

		if (obj) {
			ev->found++;
			/* Freed memory would have been overwritten. */
			WARN_ON(READ_ONCE(obj->num) != ev->num);
			skua_obj_put(obj);
		}
		cond_resched();
	}
}

/* Objects come and go under a storm of events for their number. */
static void test_storm(struct kunit *test)
{
	struct skua_obj_table *t = table_create(test, 1, 1, 24);
	struct event ev = { .t = t, .num = 1 };
	unsigned int i;

	INIT_WORK_ONSTACK(&ev.work, busy_events);
	queue_work(system_unbound_wq, &ev.work);
	for (i = 0; i < 200 || (!READ_ONCE(ev.found) && i < 10000); i++) {
		struct skua_obj *obj = kmalloc(sizeof(*obj), GFP_KERNEL);

		if (!obj || skua_obj_reserve(t, obj)) {
			KUNIT_FAIL(test, "no object");
			kfree(obj);
			break;
		}
		skua_obj_publish(t, obj);
		if (i % 16 == 0)
			cond_resched();
		skua_obj_retire(t, obj);
		skua_obj_release(t, obj);
		memset(obj, 0x5a, sizeof(*obj));
		kfree(obj);
	}
	WRITE_ONCE(ev.stop, true);
	flush_work(&ev.work);
	destroy_work_on_stack(&ev.work);
	KUNIT_EXPECT_GT(test, ev.found, 0);
}

static struct kunit_case skua_obj_cases[] = {
	KUNIT_CASE(test_life),
	KUNIT_CASE(test_exhausted),
	KUNIT_CASE(test_variant),
	KUNIT_CASE(test_multicast),
	KUNIT_CASE(test_reserve_at),
	KUNIT_CASE(test_retire_waits),
	KUNIT_CASE(test_storm),
	{}
};

struct kunit_suite skua_obj_suite = {
	.name = "skua_obj",
	.test_cases = skua_obj_cases,
};
