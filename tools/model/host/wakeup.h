/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A timer that ends a sleep in epoll_wait() at a given time. With a timeout of epoll_wait() the
 * kernel would program the processor's timer at the begin and at the end of each sleep, which
 * costs several microseconds on a host that is a VM. Most sleeps end by a message, long before
 * the time. This timer is not changed while its expiry is early enough, so that it is programmed
 * only about as often as it expires.
 */
#ifndef SKUA_HOST_WAKEUP_H
#define SKUA_HOST_WAKEUP_H

#include <stdint.h>

#include "event.h"

/**
 * struct wakeup - the timer of a loop
 * @src: event source of @fd
 * @fd: timer descriptor
 * @at: expiry, by CLOCK_MONOTONIC in ns; UINT64_MAX: not set
 */
struct wakeup {
	struct event_source src;
	int fd;
	uint64_t at;
};

/* 0 or a negative error number. */
int wakeup_open(struct wakeup *w, int epfd);
void wakeup_close(struct wakeup *w);
/*
 * Have the next sleep end at @at or earlier. UINT64_MAX: no limit. Returns 0 or a negative error
 * number.
 */
int wakeup_by(struct wakeup *w, uint64_t at);

#endif /* SKUA_HOST_WAKEUP_H */
