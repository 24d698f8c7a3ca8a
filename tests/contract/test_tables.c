// SPDX-License-Identifier: GPL-2.0
/*
 * Does the model serve each command of the interface, and just once?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "all.h"
#include "cmd.h"

static const struct {
	const char *name;
	unsigned int op;
} commands[] = {
#define X(name, op, in, out, states, class) { #name, op },
	SKUA_CMD_TABLE(X)
#undef X
};

static const unsigned int served[] = {
#define X(name, fn) SKUA_CMD_##name,
	CMD_SERVERS(X)
#undef X
};

#define N(a) (sizeof(a) / sizeof((a)[0]))

static unsigned int count(const unsigned int *list, size_t n, unsigned int op)
{
	unsigned int found = 0;

	while (n--)
		found += list[n] == op;
	return found;
}

static void each_command_is_served(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < N(commands); i++) {
		unsigned int in = count(served, N(served), commands[i].op);

		if (in != 1)
			print_error("%s: served %u times\n", commands[i].name, in);
		assert_int_equal(in, 1);
	}
	assert_int_equal(N(served), N(commands));
}

static void opcodes_are_distinct(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < N(commands); i++)
		for (j = i + 1; j < N(commands); j++)
			assert_int_not_equal(commands[i].op, commands[j].op);
}

/* No table may give two names one value. */
#define DISTINCT(table)						\
	do {							\
		static const unsigned int v[] = { table(X) };	\
		size_t i, j;					\
								\
		for (i = 0; i < N(v); i++)			\
			for (j = i + 1; j < N(v); j++)		\
				assert_int_not_equal(v[i], v[j]);\
	} while (0)

static void values_are_distinct(void **state)
{
	(void)state;
#define X(name, value, ...) value,
	DISTINCT(SKUA_CMD_STATUS_TABLE);
	DISTINCT(SKUA_CQE_STATUS_TABLE);
	DISTINCT(SKUA_VENDOR_TABLE);
	DISTINCT(SKUA_QP_ATTR_TABLE);
	DISTINCT(SKUA_ICM_TABLE);
#undef X
}

static void attribute_bits_fit(void **state)
{
	(void)state;
#define X(name, bit, text) assert_true((bit) < 32);
	SKUA_QP_ATTR_TABLE(X)
#undef X
	assert_true(SKUA_ICM_TABLES <= SKUA_ICM_TABLES_MAX);
}

/* Every capability bit has its name in the table, none has two. */
static void capabilities_are_named(void **state)
{
	uint64_t all = 0;
	unsigned int n = 0;

	(void)state;
#define X(name) all |= SKUA_CAP_##name; n++;
	SKUA_CAP_TABLE(X)
#undef X
	/* The bits are given out one after the other. */
	assert_true(all == (1ull << n) - 1);
	assert_true(all & SKUA_CAP_NULL_MR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_command_is_served),
		cmocka_unit_test(opcodes_are_distinct),
		cmocka_unit_test(values_are_distinct),
		cmocka_unit_test(attribute_bits_fit),
		cmocka_unit_test(capabilities_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
