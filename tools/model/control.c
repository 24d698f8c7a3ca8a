// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "host/closer.h"
#include "host/event.h"
#include "host/path.h"

#define LINE_MAX_LEN	2048
#define ANSWER_MAX	8192

struct control {
	struct event_source src;
	struct closer *closer;
	int fd;
	int epfd;
	control_fn fn;
	void *priv;
	char *path;
};

_Static_assert(1 + CLOSER_WAITING_MAX + CLOSER_MSG_FDS <= CONTROL_FDS_MAX,
	       "a sender can have the model hold more file descriptors than were reserved");

/*
 * Can a message be read now? Not before the descriptors that came with earlier messages are
 * closed; if closing them does not end, the socket is removed from the epoll set.
 */
static bool ready(struct control *c)
{
	enum closer_state state = closer_state(c->closer);

	if (state == CLOSER_STUCK)
		epoll_ctl(c->epfd, EPOLL_CTL_DEL, c->fd, NULL);
	return state == CLOSER_ROOM;
}

/* Receive one command. Returns its length, -1 if there is none, @room if it is longer than that. */
static ssize_t receive(struct control *c, char *line, size_t room, struct sockaddr_un *from,
		       socklen_t *from_len)
{
	union {
		char buf[CLOSER_CONTROL_SIZE];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = line, .iov_len = room - 1 };
	struct msghdr mh = {
		.msg_name = from,
		.msg_namelen = sizeof(*from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;

	if (!ready(c))
		return -1;
	n = recvmsg(c->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -1;
	closer_msg(c->closer, &mh);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	*from_len = mh.msg_namelen;
	return mh.msg_flags & MSG_TRUNC ? (ssize_t)room : n;
}

static void control_ready(struct event_source *src, uint32_t events)
{
	struct control *c = (void *)src;
	char line[LINE_MAX_LEN], answer[ANSWER_MAX] = "";
	struct sockaddr_un from;
	socklen_t len;
	ssize_t n;

	(void)events;
	n = receive(c, line, sizeof(line), &from, &len);
	if (n < 0)
		return;
	if (n < (ssize_t)sizeof(line))
		c->fn(c->priv, line, answer, sizeof(answer));
	else
		snprintf(answer, sizeof(answer), "a command has at most %zu bytes",
			 sizeof(line) - 1);
	/* A sender without an address, or whose queue is full, gets no answer. */
	if (len > sizeof(sa_family_t))
		sendto(c->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL,
		       (struct sockaddr *)&from, len);
}

struct control *control_create(const char *path, int epfd, control_fn fn, void *priv)
{
	struct control *c = calloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN };
	int err;

	if (!c)
		return NULL;
	c->src.ready = control_ready;
	c->epfd = epfd;
	c->fn = fn;
	c->priv = priv;
	c->fd = -1;
	ev.data.ptr = &c->src;
	c->closer = closer_create();
	err = c->closer ? 0 : errno;
	if (!err) {
		c->fd = path_bind(path, SOCK_DGRAM);
		err = c->fd < 0 ? -c->fd : 0;
	}
	if (!err) {
		closer_refuse_fds(c->fd);
		c->path = strdup(path);
		if (!c->path || epoll_ctl(epfd, EPOLL_CTL_ADD, c->fd, &ev))
			err = errno;
		if (!c->path)
			unlink(path);
	}
	if (!err)
		return c;
	control_destroy(c);
	errno = err;
	return NULL;
}

void control_destroy(struct control *c)
{
	if (!c)
		return;
	closer_fd(c->closer, c->fd);
	if (c->path)
		unlink(c->path);
	closer_destroy(c->closer);
	free(c->path);
	free(c);
}
