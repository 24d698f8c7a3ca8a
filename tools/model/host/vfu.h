/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vfio-user server of one device function. It listens on a unix socket, serves
 * one client at a time, and is the device core's host: DMA, interrupts, time. All functions for a
 * server, from its creation to its end, must be called by one thread; other threads may have
 * other servers.
 */
#ifndef SKUA_HOST_VFU_H
#define SKUA_HOST_VFU_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

struct vfu;

/* Maximum number of file descriptors of a server at one time, including those being closed. */
#define VFU_FDS_MAX	2048

/**
 * struct vfu_bus - functions with peer-to-peer access, as behind one PCIe switch
 * @first: list of the servers that have a device
 *
 * Initialized with zeros; must outlive its servers. All its functions must belong to one VM:
 * accesses are not restricted, and addresses of BARs are those of this VM.
 */
struct vfu_bus {
	struct vfu *first;
};

/**
 * struct vfu_cfg - what a server needs
 * @path: socket to listen at; NULL: none, clients come by vfu_attach()
 * @epfd: epoll set that gets the server's descriptors, as struct event_source;
 *	-1: none, the caller calls vfu_run() when it likes
 * @bus: bus of the function, where addresses that the client has not mapped are looked up;
 *	NULL: none
 * @turn_ns: time after which a turn begins no further work, ns; 0: only the amount of work in a
 *	turn is limited
 * @settle: called before guest memory of any function may be moved or unmapped: pointers
 *	from skua_host_ops.dma_map are invalid after that. May be NULL.
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

/* NULL and errno on failure. vfu_set_dev() must be called before any other function. */
struct vfu *vfu_create(const struct vfu_cfg *cfg);
/*
 * The end has two steps, so that the device always has a host: vfu_shutdown() disconnects the
 * client and closes the socket; vfu_destroy() frees the server after the device was destroyed.
 */
void vfu_shutdown(struct vfu *vfu);
void vfu_destroy(struct vfu *vfu);
void vfu_set_dev(struct vfu *vfu, struct skua_dev *dev);

/* Serve the client at the other end of stream socket @fd, which becomes the server's. */
int vfu_attach(struct vfu *vfu, int fd);
bool vfu_connected(const struct vfu *vfu);

/* Wait until all descriptors of clients are closed. False: not within @ms milliseconds. */
bool vfu_settle(struct vfu *vfu, unsigned int ms);

/*
 * Handle a limited number of messages. True: there may be more, without another epoll event:
 * call again after the turns of others.
 */
bool vfu_run(struct vfu *vfu);
/* Is there work left from the last turn? */
bool vfu_pending(const struct vfu *vfu);
/* Number of messages handled so far. */
uint64_t vfu_messages(const struct vfu *vfu);

/* The device core's timer. */
uint64_t vfu_deadline(const struct vfu *vfu);
void vfu_tick(struct vfu *vfu, uint64_t now);

#endif /* SKUA_HOST_VFU_H */
