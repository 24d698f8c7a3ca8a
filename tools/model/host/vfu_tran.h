/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transport: whole messages and their descriptors out of a stream socket, and
 * replies into it, without ever blocking.
 */
#ifndef SKUA_HOST_VFU_TRAN_H
#define SKUA_HOST_VFU_TRAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "closer.h"
#include "proto.h"

/* Descriptors taken with one message; announced to the client as max_msg_fds. */
#define TRAN_MAX_FDS	16

/**
 * struct tran - one connection
 * @fd: the socket, -1 if there is none
 * @closer: closes descriptors of the client, the socket among them: that may hold more
 *	which nobody has received
 * @rx: received bytes; [@rx_head, @rx_tail) is not consumed yet
 * @rx_cap: size of @rx
 * @rx_head: see @rx
 * @rx_tail: see @rx
 * @rx_fds: descriptors that came with the message that holds byte @rx_fds_end - 1
 * @rx_nfds: how many
 * @rx_fds_end: see @rx_fds
 * @rx_dry: the last read took all that there was
 * @tx: replies; [@tx_head, @tx_tail) is not sent yet
 * @tx_cap: size of @tx
 * @tx_head: see @tx
 * @tx_tail: see @tx
 */
struct tran {
	int fd;
	struct closer *closer;
	uint8_t *rx;
	size_t rx_cap, rx_head, rx_tail;
	int rx_fds[TRAN_MAX_FDS];
	unsigned int rx_nfds;
	size_t rx_fds_end;
	bool rx_dry;
	uint8_t *tx;
	size_t tx_cap, tx_head, tx_tail;
};

/**
 * struct tran_msg - one message received
 * @hdr: its header
 * @data: payload, not aligned; valid until the next call of tran_recv()
 * @len: of the payload
 * @fds: descriptors; the receiver sets those to -1 that it keeps
 * @nfds: how many
 */
struct tran_msg {
	struct vfu_hdr hdr;
	const uint8_t *data;
	size_t len;
	int fds[TRAN_MAX_FDS];
	unsigned int nfds;
};

/* @fd becomes the transport's and non-blocking; @closer outlives the transport. */
int tran_open(struct tran *tran, int fd, struct closer *closer);
void tran_close(struct tran *tran);

/*
 * The next message: 1, 0 if none is complete yet (what has come since the last read, the
 * socket tells of), TRAN_LATER if the client's earlier
 * descriptors have to be closed first, which no event will tell, or a negative errno when the
 * connection is over (-EPIPE: closed by the client; -EPROTO: the stream makes
 * no sense any more; -EMFILE: too many descriptors of the client do not close).
 */
#define TRAN_LATER	2
int tran_recv(struct tran *tran, struct tran_msg *msg);
/* Close what the receiver left in the message. */
void tran_msg_done(struct tran *tran, struct tran_msg *msg);

/*
 * Room for the payload of a reply to @hdr, its header already written; NULL
 * without memory. tran_flush() sends it.
 */
void *tran_reply(struct tran *tran, const struct vfu_hdr *hdr, size_t len);
int tran_reply_error(struct tran *tran, const struct vfu_hdr *hdr, int err);
/*
 * 1: everything is sent, 0: the socket is full, or has taken as much as one call may send;
 * negative errno: it is dead.
 */
int tran_flush(struct tran *tran);

static inline bool tran_sending(const struct tran *tran)
{
	return tran->tx_head != tran->tx_tail;
}

#endif /* SKUA_HOST_VFU_TRAN_H */
