/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ends a sleep in epoll at a time. A timeout of epoll_wait() would program the processor's
 * timer before each sleep and again after it, which costs several microseconds in a VM: most
 * sleeps end long before, by a message. This timer is left as it is while it rings early
 * enough, so that it is programmed no more often than it rings.
 */
#ifndef SKUA_HOST_WAKEUP_H
#define SKUA_HOST_WAKEUP_H

#include <stdint.h>

#include "event.h"

/**
 * struct wakeup - the timer of a loop
 * @src: its event
 * @fd: timer descriptor
 * @at: when it rings, by CLOCK_MONOTONIC in ns; UINT64_MAX: not set
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
 * The next sleep is to end at @at, or sooner. UINT64_MAX: it need not. 0 or a negative error
 * number.
 */
int wakeup_by(struct wakeup *w, uint64_t at);

#endif /* SKUA_HOST_WAKEUP_H */
