// SPDX-License-Identifier: GPL-2.0
/* The timer that ends a sleep of the loop; see wakeup.h. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "wakeup.h"

#define NSEC_PER_SEC	1000000000ull

static void rings(struct event_source *src, uint32_t events)
{
	struct wakeup *w = (struct wakeup *)src;
	uint64_t times;

	(void)events;
	if (read(w->fd, &times, sizeof(times)) == sizeof(times))
		w->at = UINT64_MAX;
}

int wakeup_open(struct wakeup *w, int epfd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &w->src };
	int err;

	memset(w, 0, sizeof(*w));
	w->src.ready = rings;
	w->at = UINT64_MAX;
	w->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (w->fd >= 0 && !epoll_ctl(epfd, EPOLL_CTL_ADD, w->fd, &ev))
		return 0;
	err = -errno;
	wakeup_close(w);
	return err;
}

void wakeup_close(struct wakeup *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

int wakeup_by(struct wakeup *w, uint64_t at)
{
	struct itimerspec when = {
		.it_value = { .tv_sec = at / NSEC_PER_SEC, .tv_nsec = at % NSEC_PER_SEC },
	};

	if (at >= w->at)
		return 0;
	/* A time of 0 would stop it. */
	if (!at)
		when.it_value.tv_nsec = 1;
	if (timerfd_settime(w->fd, TFD_TIMER_ABSTIME, &when, NULL))
		return -errno;
	w->at = at;
	return 0;
}
