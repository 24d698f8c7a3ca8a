/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of the device core begin with. */
#ifndef SKUA_TEST_CORE_TEST_H
#define SKUA_TEST_CORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mini.h"

/* A device that is up, and its driver. */
struct rig {
	struct fake f;
	struct mini m;
};

static inline int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	fake_init(&r->f, NULL);
	mini_up(&r->m, &r->f);
	*state = r;
	return 0;
}

static inline int rig_teardown(void **state)
{
	struct rig *r = *state;

	fake_exit(&r->f);
	free(r);
	return 0;
}

#define rig_test(fn)	cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

#define assert_status(call, status)	assert_int_equal(call, SKUA_CMD_ST_##status)

/* @expr makes the counter rise by @by. */
#define assert_counts(m, counter, by, expr)						\
	do {										\
		uint64_t before_ = mini_counter(m, SKUA_CNT_##counter);			\
		expr;									\
		assert_int_equal(mini_counter(m, SKUA_CNT_##counter) - before_, by);	\
	} while (0)

#endif /* SKUA_TEST_CORE_TEST_H */
