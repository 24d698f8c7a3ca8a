// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "host/event.h"

#define LINE_MAX_LEN	2048
#define ANSWER_MAX	8192

struct control {
	struct event_source src;
	int fd;
	control_fn fn;
	void *priv;
	struct sockaddr_un addr;
};

static void control_ready(struct event_source *src, uint32_t events)
{
	struct control *c = (void *)src;
	char line[LINE_MAX_LEN], answer[ANSWER_MAX] = "";
	struct sockaddr_un from;
	socklen_t len = sizeof(from);
	ssize_t n;

	(void)events;
	n = recvfrom(c->fd, line, sizeof(line) - 1, 0, (struct sockaddr *)&from, &len);
	if (n < 0)
		return;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	c->fn(c->priv, line, answer, sizeof(answer));
	/* Who has no name, or does not read, gets no answer. */
	if (len > sizeof(sa_family_t))
		sendto(c->fd, answer, strlen(answer), MSG_NOSIGNAL, (struct sockaddr *)&from, len);
}

struct control *control_create(const char *path, int epfd, control_fn fn, void *priv)
{
	struct control *c = calloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN };

	if (!c)
		return NULL;
	c->src.ready = control_ready;
	c->fn = fn;
	c->priv = priv;
	c->fd = -1;
	c->addr.sun_family = AF_UNIX;
	ev.data.ptr = &c->src;
	if (strlen(path) >= sizeof(c->addr.sun_path)) {
		errno = ENAMETOOLONG;
		goto err;
	}
	strcpy(c->addr.sun_path, path);
	c->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		goto err;
	/* Left behind by a model that was killed. */
	unlink(path);
	if (bind(c->fd, (struct sockaddr *)&c->addr, sizeof(c->addr)) ||
	    epoll_ctl(epfd, EPOLL_CTL_ADD, c->fd, &ev))
		goto err;
	return c;
err:
	if (c->fd >= 0)
		close(c->fd);
	free(c);
	return NULL;
}

void control_destroy(struct control *c)
{
	if (!c)
		return;
	close(c->fd);
	unlink(c->addr.sun_path);
	free(c);
}
