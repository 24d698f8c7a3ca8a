// SPDX-License-Identifier: GPL-2.0
/*
 * The provider's spinlock.
 */
#include <pthread.h>
#include <sched.h>

#include "fake.h"
#include "skua.h"

#define THREADS	4
#define ROUNDS	20000

static struct skua_lock lock;

/* What the lock protects: an increment in two steps. */
static uint64_t counter;

/* Threads that were in there without it. */
static atomic_uint passed;

static void *count(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		volatile uint64_t *c = &counter;
		uint64_t v;

		skua_lock(&lock);
		/* The thread that waited has it, not only seen that it was free. */
		if (!atomic_load(&lock.held))
			passed++;
		v = *c;
		/* Now and then others wait for it. */
		if (i % 64 == 0)
			sched_yield();
		*c = v + 1;
		skua_unlock(&lock);
	}
	return NULL;
}

/* A thread that has it keeps others out; each that waits gets it. */
static void test_lock(void **state)
{
	pthread_t thread[THREADS];
	unsigned int i;

	(void)state;
	skua_lock_init(&lock, false);
	counter = 0;
	skua_lock(&lock);
	assert_false(skua_trylock(&lock));
	for (i = 0; i < THREADS; i++)
		assert_false(pthread_create(&thread[i], NULL, count, NULL));
	/* No thread passes while it is held here. */
	assert_int_equal(counter, 0);
	skua_unlock(&lock);
	for (i = 0; i < THREADS; i++)
		assert_false(pthread_join(thread[i], NULL));
	assert_int_equal(counter, THREADS * ROUNDS);
	assert_int_equal(passed, 0);
	assert_true(skua_trylock(&lock));
	skua_unlock(&lock);
}

/* Where the program has promised that there is one thread, nothing is taken. */
static void test_lock_off(void **state)
{
	(void)state;
	skua_lock_init(&lock, true);
	skua_lock(&lock);
	assert_true(skua_trylock(&lock));
	assert_false(atomic_load(&lock.held));
	skua_unlock(&lock);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock), cmocka_unit_test(test_lock_off),
	};

	return cmocka_run_group_tests_name("provider lock", tests, NULL, NULL);
}
