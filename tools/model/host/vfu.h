/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vfio-user server of one device function. It listens on a unix socket, serves
 * one client at a time, and is the device core's host: DMA, interrupts, time. All that is done
 * with a server, from its creation to its end, is done by one thread; others may have servers
 * of their own.
 */
#ifndef SKUA_HOST_VFU_H
#define SKUA_HOST_VFU_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

struct vfu;

/* File descriptors that a server has at most at one time, those it closes included. */
#define VFU_FDS_MAX	2048

/**
 * struct vfu_bus - functions that reach each other, as behind one PCIe switch
 * @first: list of those that have a device
 *
 * Zeroed: none. It lives longer than its servers. All are of one client, a VM: there is
 * no look at who asks, and the VM's addresses of BARs mean nothing in another.
 */
struct vfu_bus {
	struct vfu *first;
};

/**
 * struct vfu_cfg - what a server needs
 * @path: socket to listen at; NULL: none, clients come by vfu_attach()
 * @epfd: epoll set that gets the server's descriptors, as struct event_source;
 *	-1: none, the caller calls vfu_run() when it likes
 * @bus: where the function is; what the client does not map is looked for there.
 *	NULL: it is alone.
 * @turn_ns: nanoseconds that a turn may take, and a little more; 0: only what is done in
 *	a turn is limited, not how long that takes
 * @settle: called before guest memory of any function may move or go: what
 *	skua_host_ops.dma_map told is not true any more after that. May be NULL.
 * @settle_priv: its argument
 * @log: where messages go (may be NULL); levels as in struct skua_dev_cfg
 * @log_priv: first argument of @log
 */
struct vfu_cfg {
	const char *path;
	int epfd;
	struct vfu_bus *bus;
	uint64_t turn_ns;
	void (*settle)(void *settle_priv);
	void *settle_priv;
	void (*log)(void *log_priv, int level, const char *msg);
	void *log_priv;
};

/* Host side of the device core; its host argument is the struct vfu. */
extern const struct skua_host_ops vfu_host_ops;

/* NULL with errno on failure. The device is set before anything else is called. */
struct vfu *vfu_create(const struct vfu_cfg *cfg);
/*
 * Two steps, so that the device always has a host: shutdown drops the client and
 * the socket; destroy frees, when the device is gone.
 */
void vfu_shutdown(struct vfu *vfu);
void vfu_destroy(struct vfu *vfu);
void vfu_set_dev(struct vfu *vfu, struct skua_dev *dev);

/* Serve the client at the other end of stream socket @fd, which becomes the server's. */
int vfu_attach(struct vfu *vfu, int fd);
bool vfu_connected(const struct vfu *vfu);

/* Wait until all that clients gave is closed. False: it is not after @ms milliseconds. */
bool vfu_settle(struct vfu *vfu, unsigned int ms);

/*
 * Handle a bounded number of messages. True: there may be more, call again
 * after the other sources had their turn; no event will tell.
 */
bool vfu_run(struct vfu *vfu);
/* Whether the last turn, also one that an event caused, left something to do. */
bool vfu_pending(const struct vfu *vfu);
/* Messages handled so far: tells a loop whether the last turn did anything. */
uint64_t vfu_messages(const struct vfu *vfu);

/* The core's timer. */
uint64_t vfu_deadline(const struct vfu *vfu);
void vfu_tick(struct vfu *vfu, uint64_t now);

#endif /* SKUA_HOST_VFU_H */
