/* SPDX-License-Identifier: GPL-2.0 */
/* A peer of the wire on a unix datagram socket. */
#ifndef SKUA_TEST_PEER_H
#define SKUA_TEST_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/wire.h"

struct peer {
	char dir[32];
	char local[64];
	char remote[64];
	int fd;			/* the peer's socket; bound to @remote */
	int wire_fd;
};

static inline int peer_bind(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	strcpy(sun.sun_path, path);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static inline void peer_send(struct peer *p, const void *frame, size_t len)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	strcpy(sun.sun_path, p->local);
	assert_int_equal(sendto(p->fd, frame, len, 0, (struct sockaddr *)&sun, sizeof(sun)), len);
}

static inline void peer_open(struct wire *w, struct peer *p)
{
	char err[200] = "";

	strcpy(p->dir, "/tmp/skua-wire-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->local, sizeof(p->local), "%s/local", p->dir);
	snprintf(p->remote, sizeof(p->remote), "%s/remote", p->dir);
	p->fd = -1;
	p->wire_fd = wire_add_dgram(w, p->local, p->remote, err, sizeof(err));
	if (p->wire_fd < 0)
		fail_msg("%s", err);
}

static inline void peer_close(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	unlink(p->remote);
	unlink(p->local);
	assert_int_equal(rmdir(p->dir), 0);
}

struct find {
	const char *port;
	const char *counter;
	uint64_t value;
};

static inline void find_stat(void *priv, const char *port, const char *counter, uint64_t value)
{
	struct find *find = priv;

	if (!strcmp(port, find->port) && !strcmp(counter, find->counter))
		find->value = value;
}

static inline uint64_t port_stat(struct wire *w, const char *port, const char *counter)
{
	struct find find = { port, counter, UINT64_MAX };

	wire_stats_each(w, find_stat, &find);
	return find.value;
}

/* Of the first peer. */
static inline uint64_t dgram_stat(struct wire *w, const char *counter)
{
	return port_stat(w, "dgram0", counter);
}

#endif /* SKUA_TEST_PEER_H */
