// SPDX-License-Identifier: GPL-2.0
/* The table of file descriptors is as large from the start as it can ever become. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/nofile.h"

static unsigned int table_size(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	unsigned int size = 0;
	char line[256];

	assert_non_null(f);
	while (!size && fgets(line, sizeof(line), f))
		sscanf(line, "FDSize: %u", &size);
	fclose(f);
	assert_true(size > 0);
	return size;
}

static void test_reserve(void **state)
{
	unsigned int size = table_size(), num = 2 * size + 100;
	struct rlimit lim;
	int fd;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
	assert_true(lim.rlim_max >= num);
	assert_int_equal(nofile_reserve(num), num);
	size = table_size();
	assert_true(size >= num);
	/* The last one fits, and there is none behind it. */
	fd = fcntl(0, F_DUPFD, num - 1);
	assert_int_equal(fd, num - 1);
	assert_int_equal(fcntl(0, F_DUPFD, num - 1), -1);
	assert_int_equal(errno, EMFILE);
	assert_int_equal(close(fd), 0);
	assert_int_equal(table_size(), size);
	/* Only the soft limit has changed. */
	fd = lim.rlim_max;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
	assert_int_equal(lim.rlim_cur, num);
	assert_int_equal(lim.rlim_max, fd);
}

static void test_hard_limit(void **state)
{
	struct rlimit lim;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = lim.rlim_max = 700;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
	assert_int_equal(nofile_reserve(5000), 700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserve), cmocka_unit_test(test_hard_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
