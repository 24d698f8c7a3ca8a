// SPDX-License-Identifier: GPL-2.0
/* The timer that ends a sleep of the loop. Times are the past, or so far that none comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "host/wakeup.h"

#define FAR	(1ull << 62)

static struct wakeup w;
static int epfd;

/* Events without waiting. They are handled. */
static int poll_events(void)
{
	struct epoll_event ev;
	int n = epoll_wait(epfd, &ev, 1, 0);

	if (n == 1) {
		assert_ptr_equal(ev.data.ptr, &w.src);
		w.src.ready(&w.src, ev.events);
	}
	return n;
}

/* What the kernel's timer is set to, relative to now. */
static bool is_set(void)
{
	struct itimerspec left;

	assert_int_equal(timerfd_gettime(w.fd, &left), 0);
	return left.it_value.tv_sec || left.it_value.tv_nsec;
}

static int setup(void **state)
{
	(void)state;
	epfd = epoll_create1(EPOLL_CLOEXEC);
	return wakeup_open(&w, epfd);
}

static int teardown(void **state)
{
	(void)state;
	wakeup_close(&w);
	return close(epfd);
}

static void test_never(void **state)
{
	(void)state;
	assert_int_equal(wakeup_by(&w, UINT64_MAX), 0);
	assert_false(is_set());
	assert_int_equal(poll_events(), 0);
}

/* Times that are over already, that of the beginning included. */
static void test_past(void **state)
{
	static const uint64_t times[] = { 0, 1, 1000000001 };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(wakeup_by(&w, times[i]), 0);
		assert_int_equal(epoll_wait(epfd, &(struct epoll_event){ 0 }, 1, 10000), 1);
		assert_int_equal(poll_events(), 1);
		assert_int_equal(w.at, UINT64_MAX);
		assert_int_equal(poll_events(), 0);
	}
}

/* It is moved to an earlier time only. */
static void test_earlier_only(void **state)
{
	(void)state;
	assert_int_equal(wakeup_by(&w, FAR), 0);
	assert_true(is_set());
	assert_int_equal(wakeup_by(&w, FAR + 1), 0);
	assert_int_equal(w.at, FAR);
	assert_int_equal(wakeup_by(&w, UINT64_MAX), 0);
	assert_int_equal(w.at, FAR);
	assert_true(is_set());
	assert_int_equal(wakeup_by(&w, FAR - 1), 0);
	assert_int_equal(w.at, FAR - 1);
	assert_int_equal(poll_events(), 0);
	assert_int_equal(wakeup_by(&w, 1), 0);
	assert_int_equal(epoll_wait(epfd, &(struct epoll_event){ 0 }, 1, 10000), 1);
	assert_int_equal(poll_events(), 1);
	/* It rang for good: the later time is set anew. */
	assert_false(is_set());
	assert_int_equal(wakeup_by(&w, FAR), 0);
	assert_true(is_set());
}

static void test_refused(void **state)
{
	int fd;

	(void)state;
	fd = w.fd;
	w.fd = -1;
	assert_int_equal(wakeup_by(&w, 1), -EBADF);
	assert_int_equal(w.at, UINT64_MAX);
	w.fd = fd;
	assert_int_equal(wakeup_open(&(struct wakeup){ 0 }, -1), -EBADF);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_never), T(test_past), T(test_earlier_only), T(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
