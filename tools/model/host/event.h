/* SPDX-License-Identifier: GPL-2.0 */
/* What the event loop polls: the pointer stored with each descriptor in the epoll set. */
#ifndef SKUA_HOST_EVENT_H
#define SKUA_HOST_EVENT_H

#include <stdint.h>

/**
 * struct event_source - a polled descriptor
 * @ready: called with the epoll events; must not block
 */
struct event_source {
	void (*ready)(struct event_source *src, uint32_t events);
};

#endif /* SKUA_HOST_EVENT_H */
