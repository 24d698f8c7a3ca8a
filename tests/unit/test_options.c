// SPDX-License-Identifier: GPL-2.0
/* The daemon's command line, and how much it logs. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "log.h"
#include "options.h"

static struct options opt;
static char text[8][256];

/* The exit code, or -1: go on. */
static int parse(const char *first, ...)
{
	char *argv[9] = { "skua-model" };
	int argc = 1;
	va_list ap;

	va_start(ap, first);
	for (const char *arg = first; arg; arg = va_arg(ap, const char *)) {
		snprintf(text[argc - 1], sizeof(text[0]), "%s", arg);
		argv[argc] = text[argc - 1];
		argc++;
	}
	va_end(ap);
	optind = 0;
	return options_parse(&opt, argc, argv);
}

static void test_nics(void **state)
{
	static const uint8_t mac[6] = { 2, 0x53, 0x4b, 0x55, 0x41, 0 };

	(void)state;
	assert_int_equal(parse("--nic", "socket=/a", "--nic", "socket=/b,mac=02:00:00:00:00:09",
			       NULL), -1);
	assert_int_equal(opt.num_nics, 2);
	assert_string_equal(opt.nics[0].socket, "/a");
	assert_memory_equal(opt.nics[0].mac, mac, 6);
	assert_int_equal(opt.nics[1].mac[5], 9);
	assert_false(opt.nics[0].has_bus || opt.nics[0].spoofchk || opt.nics[0].onchip);
	assert_int_equal(opt.nics[1].serial, 0x020000fffe000009ull);
	assert_int_equal(parse("--nic",
			       "socket=/a,onchip=64K,vectors=8,bus=3,serial=0x77,spoofchk=on,push=2"
			       ",contexts=whole,recovery=driver,objects=12", NULL),
			 -1);
	assert_int_equal(opt.nics[0].onchip, 65536);
	assert_int_equal(opt.nics[0].vectors, 8);
	assert_true(opt.nics[0].has_bus && opt.nics[0].bus == 3);
	assert_int_equal(opt.nics[0].serial, 0x77);
	assert_true(opt.nics[0].spoofchk);
	assert_int_equal(opt.nics[0].push, 2);
	assert_true(opt.nics[0].whole);
	assert_int_equal(opt.nics[0].objects, 12);
	assert_int_equal(parse("--nic", "socket=/a,spoofchk=off", NULL), -1);
	assert_false(opt.nics[0].spoofchk);
}

static void test_threads(void **state)
{
	(void)state;
	assert_int_equal(parse("--nic", "socket=/a", NULL), -1);
	assert_false(opt.threads);
	assert_int_equal(parse("--threads", "--nic", "socket=/a,bus=1", "--nic", "socket=/b,bus=1",
			       NULL), -1);
	assert_true(opt.threads);
	/* It has no value. */
	assert_int_equal(parse("--threads=2", "--nic", "socket=/a", NULL), 2);
	assert_int_equal(parse("--threads", "2", "--nic", "socket=/a", NULL), 2);
}

static void test_bad(void **state)
{
	static const char *const nics[] = {
		"", "socket", "socket=", "mac=02:00:00:00:00:01", "socket=/a,mac=",
		"socket=/a,mac=02:00:00:00:00", "socket=/a,mac=02:00:00:00:00:01:02",
		"socket=/a,mac=00:00:00:00:00:00", "socket=/a,mac=01:00:00:00:00:01",
		"socket=/a,mac=2:0:0:0:0:1", "socket=/a,serial=-1", "socket=/a,serial=1x",
		"socket=/a,serial=0x10000000000000000", "socket=/a,onchip=0",
		"socket=/a,onchip=1025M", "socket=/a,onchip=1KB", "socket=/a,onchip=K", "socket=/a,vectors=0", "socket=/a,vectors=65",
		"socket=/a,bus=64", "socket=/a,spoofchk=", "socket=/a,spoofchk=yes",
		"socket=/a,spoofchk", "socket=/a,push=4", "socket=/a,contexts=part",
		"socket=/a,recovery=me", "socket=/a,objects=7", "socket=/a,objects=25", "socket=/a,push=", "socket=/a,other=1",
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(nics) / sizeof(nics[0]); i++)
		assert_int_equal(parse("--nic", nics[i], NULL), 2);
	assert_int_equal(parse(NULL), 2);
	assert_int_equal(parse("--nic", "socket=/a", "more", NULL), 2);
	assert_int_equal(parse("--nic", "socket=/a", "--seed", "x", NULL), 2);
	assert_int_equal(parse("--nic", "socket=/a", "--caps-off", "RSS,NONE", NULL), 2);
	assert_int_equal(parse("--nic", "socket=/a", "--dgram", "local=/x", NULL), 2);
	assert_int_equal(parse("--nic", "socket=/a", "--unknown", NULL), 2);
	/* Two NICs must differ. */
	assert_int_equal(parse("--nic", "socket=/a", "--nic", "socket=/a", NULL), 2);
	assert_int_equal(parse("--nic", "socket=/a,mac=02:00:00:00:00:01", "--nic",
			       "socket=/b,mac=02:00:00:00:00:01", NULL), 2);
}

/* A guest that dies in a loop: a burst is logged, then five messages a second. */
static void test_log(void **state)
{
	struct log_limit log = { 0 };
	uint64_t left_out, now = 1000, said = 0, silent = 0, told = 0;

	(void)state;
	for (unsigned int i = 0; i < 50000; i++, now += 200000) {
		if (log_allow(&log, now, &left_out)) {
			said++;
			told += left_out;
		} else {
			silent++;
		}
	}
	/* Ten seconds. */
	assert_in_range(said, LOG_BURST + 49, LOG_BURST + 51);
	assert_int_equal(said + silent, 50000);
	assert_int_equal(told + log.left_out, silent);
	/* After a rest all is as before. */
	now += 3600 * 1000000000ull;
	for (unsigned int i = 0; i < LOG_BURST; i++)
		assert_true(log_allow(&log, now, &left_out));
	assert_false(log_allow(&log, now, &left_out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nics), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
