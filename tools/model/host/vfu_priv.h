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
 * @cfg: what the user chose; @cfg.path is a copy
 * @dev: the device core
 * @next: on the bus
 * @listener: event source of @listen_fd
 * @conn: event source of the connection
 * @listen_fd: listening socket, or -1
 * @polled: epoll events asked for on the connection, 0 if it is not in the set
 * @closer: lets go of what clients gave
 * @tran: the connection
 * @dma: what the client mapped
 * @irqs: what the client takes interrupts with
 * @deadline: the core's timer
 * @messages: handled since creation
 * @msg: the message that is being handled, while @unfinished
 * @unfinished: it goes on in the next turn
 * @done: how much of it is done; what that means is up to its handler
 * @turn_end: when the turn is to end, 0: it may take as long as it takes
 * @pending: the last turn did not come to the end of what there is
 * @negotiated: the version exchange is done
 * @shared_maps: maps of this connection that had a descriptor
 * @private_maps: writable ones that had none
 * @warnings: given for this connection; a client must not fill the log
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
/* For what a client can provoke at will: limited per connection. */
__attribute__((format(printf, 2, 3)))
void vfu_warn(struct vfu *vfu, const char *fmt, ...);

/* Messages in one turn: a flood of doorbells must not keep the queues from being served. */
#define VFU_TURN_MESSAGES	64

/* Guest memory of this client is about to move or to go. */
void vfu_memory_moves(struct vfu *vfu);

/* The turn has taken its time. */
bool vfu_turn_over(const struct vfu *vfu);

/*
 * Handle one message and queue its reply; a negative errno ends the connection.
 * VFU_UNFINISHED: to be called again with the same message, after others had their turn.
 */
#define VFU_UNFINISHED	INT_MAX
int vfu_dispatch(struct vfu *vfu, struct tran_msg *msg);

#endif /* SKUA_HOST_VFU_PRIV_H */
