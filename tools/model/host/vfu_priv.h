/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by connection handling (vfu.c) and message handlers (vfu_cmd.c). */
#ifndef SKUA_HOST_VFU_PRIV_H
#define SKUA_HOST_VFU_PRIV_H

#include <limits.h>

#include "closer.h"
#include "dma.h"
#include "event.h"
#include "irq.h"
#include "vfu.h"
#include "vfu_tran.h"

/**
 * struct vfu - server of one function
 * @cfg: configuration; @cfg.path is a copy
 * @dev: the device core
 * @next: next server on the bus
 * @listener: event source of @listen_fd
 * @conn: event source of the connection
 * @listen_fd: listening socket, or -1
 * @polled: epoll events of the connection, 0 if it is not in the set
 * @closer: helper that releases descriptors and memory of clients
 * @tran: the connection
 * @dma: memory mapped by the client
 * @irqs: event descriptors of the client
 * @deadline: the device core's timer
 * @messages: number of messages handled since the creation
 * @msg: the message being handled, while @unfinished
 * @unfinished: its handling goes on in the next turn
 * @done: progress in handling it, defined by its handler
 * @turn_end: end of the present turn, 0: its time is not limited
 * @pending: the last turn has left work to do
 * @negotiated: the version exchange is done
 * @shared_maps: number of maps of this connection with a descriptor
 * @private_maps: number of writable ones without
 * @warnings: number of warnings for this connection, which is limited
 */
struct vfu {
	struct vfu_cfg cfg;
	struct skua_dev *dev;
	struct vfu *next;
	struct event_source listener;
	struct event_source conn;
	int listen_fd;
	uint32_t polled;
	struct closer *closer;
	struct tran tran;
	struct dma_table dma;
	struct irqs irqs;
	uint64_t deadline;
	uint64_t messages;
	struct tran_msg msg;
	bool unfinished;
	uint64_t done;
	uint64_t turn_end;
	bool pending;
	bool negotiated;
	uint64_t shared_maps;
	uint64_t private_maps;
	unsigned int warnings;
};

enum { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

__attribute__((format(printf, 3, 4)))
void vfu_log(struct vfu *vfu, int level, const char *fmt, ...);
/* Log a warning that a client can cause: their number is limited per connection. */
__attribute__((format(printf, 2, 3)))
void vfu_warn(struct vfu *vfu, const char *fmt, ...);

/* Maximum number of messages in one turn, so that queues are served between doorbells. */
#define VFU_TURN_MESSAGES	64

/* To be called before guest memory of this client is moved or unmapped. */
void vfu_memory_moves(struct vfu *vfu);

/* Is the time of the turn over? */
bool vfu_turn_over(const struct vfu *vfu);

/*
 * Handle one message and queue its reply; a negative errno ends the connection.
 * VFU_UNFINISHED: to be called again with the same message, in the next turn.
 */
#define VFU_UNFINISHED	INT_MAX
int vfu_dispatch(struct vfu *vfu, struct tran_msg *msg);

#endif /* SKUA_HOST_VFU_PRIV_H */
