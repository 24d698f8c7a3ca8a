// SPDX-License-Identifier: GPL-2.0
/*
 * One recvmsg() takes as many messages as there are: posted doorbells come in
 * bursts, and a system call for each would cost more than the doorbell.
 *
 * Descriptors: the kernel ends a read behind the piece of the stream they were
 * sent with, so they belong to the message that holds the last byte read. While
 * that message is incomplete we read no further than its end, so that there is
 * never more than one message with descriptors to remember.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vfu_tran.h"

#define RX_INITIAL	(64u << 10)
/* Bytes that one call sends: a client that reads at the same time never has the socket full. */
#define TX_TURN		(64u << 10)

static int grow(uint8_t **buf, size_t *cap, size_t need)
{
	size_t size = *cap ? *cap : RX_INITIAL;
	uint8_t *new;

	if (need <= *cap)
		return 0;
	while (size < need)
		size *= 2;
	new = realloc(*buf, size);
	if (!new)
		return -ENOMEM;
	*buf = new;
	*cap = size;
	return 0;
}

int tran_open(struct tran *tran, int fd, struct closer *closer)
{
	int flags = fcntl(fd, F_GETFL);

	memset(tran, 0, sizeof(*tran));
	tran->fd = -1;
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	if (grow(&tran->rx, &tran->rx_cap, RX_INITIAL))
		return -ENOMEM;
	tran->fd = fd;
	tran->closer = closer;
	return 0;
}

void tran_close(struct tran *tran)
{
	for (unsigned int i = 0; i < tran->rx_nfds; i++)
		closer_fd(tran->closer, tran->rx_fds[i]);
	/* The client sees the end at once, also if the helper closes the socket later. */
	shutdown(tran->fd, SHUT_RDWR);
	closer_fd(tran->closer, tran->fd);
	free(tran->rx);
	free(tran->tx);
	memset(tran, 0, sizeof(*tran));
	tran->fd = -1;
}

/* Keep what came with a read; false if it is more than a message may have. */
static bool take_fds(struct tran *tran, struct msghdr *mh)
{
	bool ok = !(mh->msg_flags & MSG_CTRUNC);
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		const uint8_t *data = CMSG_DATA(cm);
		size_t n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, data + i * sizeof(fd), sizeof(fd));
			if (ok && tran->rx_nfds < TRAN_MAX_FDS) {
				tran->rx_fds[tran->rx_nfds++] = fd;
			} else {
				closer_fd(tran->closer, fd);
				ok = false;
			}
		}
		tran->rx_fds_end = tran->rx_tail;
	}
	return ok;
}

/*
 * One read of at most @max bytes: 1, or another result of tran_recv(). There
 * is room for all descriptors that can come: those that did not fit would be closed by
 * the kernel, in this thread.
 */
static int fill(struct tran *tran, size_t max)
{
	union {
		char buf[CLOSER_CONTROL_SIZE];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = tran->rx + tran->rx_tail, .iov_len = max };
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;

	switch (closer_state(tran->closer)) {
	case CLOSER_ROOM:
		break;
	case CLOSER_BUSY:
		return TRAN_LATER;
	case CLOSER_STUCK:
		return -EMFILE;
	}
	do {
		n = recvmsg(tran->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	if (n > 0)
		tran->rx_tail += n;
	if (!take_fds(tran, &mh))
		return -EPROTO;
	tran->rx_dry = (size_t)n < max && !tran->rx_nfds;
	return n ? 1 : -EPIPE;
}

/* The message at the head: its header is complete and makes sense. 1, 0 or -EPROTO. */
static int peek(const struct tran *tran, struct vfu_hdr *hdr)
{
	if (tran->rx_tail - tran->rx_head < sizeof(*hdr))
		return 0;
	memcpy(hdr, tran->rx + tran->rx_head, sizeof(*hdr));
	if (hdr->size < sizeof(*hdr) || hdr->size > VFU_MAX_MSG)
		return -EPROTO;
	/* We ask the client nothing, so there is nothing it could reply to. */
	if ((hdr->flags & VFU_F_TYPE_MASK) != VFU_F_TYPE_COMMAND)
		return -EPROTO;
	return 1;
}

static void pop(struct tran *tran, struct tran_msg *msg)
{
	size_t end = tran->rx_head + msg->hdr.size;

	msg->data = tran->rx + tran->rx_head + sizeof(msg->hdr);
	msg->len = msg->hdr.size - sizeof(msg->hdr);
	msg->nfds = 0;
	if (tran->rx_nfds && end >= tran->rx_fds_end) {
		memcpy(msg->fds, tran->rx_fds, tran->rx_nfds * sizeof(int));
		msg->nfds = tran->rx_nfds;
		tran->rx_nfds = 0;
	}
	tran->rx_head = end;
}

/* Room for the incomplete message at the head, moved to the front of the buffer. */
static int make_room(struct tran *tran, size_t need)
{
	size_t have = tran->rx_tail - tran->rx_head;

	if (tran->rx_head) {
		memmove(tran->rx, tran->rx + tran->rx_head, have);
		tran->rx_fds_end -= tran->rx_nfds ? tran->rx_head : 0;
		tran->rx_head = 0;
		tran->rx_tail = have;
	}
	return grow(&tran->rx, &tran->rx_cap, need);
}

int tran_recv(struct tran *tran, struct tran_msg *msg)
{
	size_t have, need;
	int ret;

	for (;;) {
		ret = peek(tran, &msg->hdr);
		if (ret < 0)
			return ret;
		have = tran->rx_tail - tran->rx_head;
		need = ret ? msg->hdr.size : sizeof(msg->hdr);
		if (ret && have >= need) {
			pop(tran, msg);
			return 1;
		}
		/* A read that finds nothing would cost as much as one that does. */
		if (tran->rx_dry) {
			tran->rx_dry = false;
			return 0;
		}
		if (make_room(tran, need))
			return -ENOMEM;
		ret = fill(tran, tran->rx_nfds ? need - have : tran->rx_cap - have);
		if (ret != 1)
			return ret;
	}
}

void tran_msg_done(struct tran *tran, struct tran_msg *msg)
{
	for (unsigned int i = 0; i < msg->nfds; i++)
		closer_fd(tran->closer, msg->fds[i]);
	msg->nfds = 0;
}

void *tran_reply(struct tran *tran, const struct vfu_hdr *hdr, size_t len)
{
	struct vfu_hdr reply = {
		.id = hdr->id,
		.cmd = hdr->cmd,
		.size = sizeof(reply) + len,
		.flags = VFU_F_TYPE_REPLY,
	};
	uint8_t *buf;

	if (!tran_sending(tran))
		tran->tx_head = tran->tx_tail = 0;
	if (grow(&tran->tx, &tran->tx_cap, tran->tx_tail + reply.size))
		return NULL;
	buf = tran->tx + tran->tx_tail;
	memcpy(buf, &reply, sizeof(reply));
	tran->tx_tail += reply.size;
	return buf + sizeof(reply);
}

int tran_reply_error(struct tran *tran, const struct vfu_hdr *hdr, int err)
{
	uint8_t *buf = tran_reply(tran, hdr, 0);
	struct vfu_hdr reply;

	if (!buf)
		return -ENOMEM;
	buf -= sizeof(reply);
	memcpy(&reply, buf, sizeof(reply));
	reply.flags |= VFU_F_ERROR;
	reply.error = err;
	memcpy(buf, &reply, sizeof(reply));
	return 0;
}

int tran_flush(struct tran *tran)
{
	size_t left = TX_TURN, len;
	ssize_t n;

	while (tran_sending(tran)) {
		len = tran->tx_tail - tran->tx_head;
		if (!left)
			return 0;
		n = send(tran->fd, tran->tx + tran->tx_head, len < left ? len : left,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		tran->tx_head += n;
		left -= n;
	}
	return 1;
}
