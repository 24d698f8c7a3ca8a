/* SPDX-License-Identifier: GPL-2.0 */
/* A descriptor that does not close: a TCP socket with unsent data that lingers. */
#ifndef SKUA_TEST_LINGER_H
#define SKUA_TEST_LINGER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct linger_pair {
	int fd;		/* who closes it last waits an hour, or until @peer is closed */
	int peer;
};

static inline struct linger_pair linger_open(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct linger hour = { .l_onoff = 1, .l_linger = 3600 };
	socklen_t len = sizeof(addr);
	struct linger_pair p;
	char junk[16384];
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(junk, 0x5a, sizeof(junk));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(l, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&addr, &len), 0);
	p.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(p.fd, (struct sockaddr *)&addr, len), 0);
	p.peer = accept(l, NULL, NULL);
	assert_true(p.peer >= 0);
	close(l);
	while (send(p.fd, junk, sizeof(junk), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(p.fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	return p;
}

#endif /* SKUA_TEST_LINGER_H */
