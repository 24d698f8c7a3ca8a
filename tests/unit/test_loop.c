// SPDX-License-Identifier: GPL-2.0
/*
 * A link in a loop's epoll set: its descriptor is polled while frames of it can be taken, and
 * only then. The test does what the loop does in its turns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "loop.h"
#include "wire/wire.h"

#define LEN	1000

struct fixture {
	struct loop l;
	struct link_source link;
	struct wire_port *port[2];
	char dir[32], local[64], remote[64];
	int peer;
	bool slow;		/* station 1 takes no frame */
	unsigned int got;	/* what it has taken */
};

static void rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct fixture *f = priv;

	(void)frame;
	(void)len;
	(void)icrc_pending;
	if (f->slow)
		wire_port_again(f->port[1]);
	else
		f->got++;
}

static void rx_nothing(void *priv, void *frame, size_t len, bool icrc_pending)
{
	(void)priv;
	(void)frame;
	(void)len;
	(void)icrc_pending;
}

static const uint8_t addr[3][6] = { { 2, [5] = 1 }, { 2, [5] = 2 }, { 2, [5] = 9 } };

static void make(uint8_t *frame, unsigned int to, unsigned int from)
{
	memset(frame, 0, LEN);
	memcpy(frame, addr[to], 6);
	memcpy(frame + 6, addr[from], 6);
}

static void peer_send(struct fixture *f)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	uint8_t frame[LEN];

	make(frame, 1, 2);
	strcpy(sun.sun_path, f->local);
	assert_int_equal(sendto(f->peer, frame, LEN, 0, (struct sockaddr *)&sun, sizeof(sun)), LEN);
}

static void station_send(struct fixture *f, unsigned int from, unsigned int to)
{
	uint8_t frame[LEN];

	make(frame, to, from);
	wire_port_send(f->port[from], frame, LEN);
}

/* Events that the loop would not sleep for; they are handled. */
static int events(struct fixture *f)
{
	struct epoll_event ev[4];
	int n = epoll_wait(f->l.epfd, ev, 4, 0);

	for (int i = 0; i < n; i++) {
		struct event_source *src = ev[i].data.ptr;

		src->ready(src, ev[i].events);
	}
	return n;
}

static void poll_wire(struct fixture *f)
{
	while (wire_deadline(f->l.wire) != UINT64_MAX && (wire_poll(f->l.wire, 1), !f->slow))
		;
}

static int setup(void **state)
{
	static const struct options opt = { .seed = 1 };
	struct fixture *f = calloc(1, sizeof(*f));
	struct opt_link link = { 0 };

	assert_non_null(f);
	strcpy(f->dir, "/tmp/skua-loop-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->local, sizeof(f->local), "%s/local", f->dir);
	snprintf(f->remote, sizeof(f->remote), "%s/remote", f->dir);
	assert_int_equal(loop_open(&f->l, &opt), 0);
	f->port[0] = wire_add_dev(f->l.wire, "nic0", rx_nothing, f);
	f->port[1] = wire_add_dev(f->l.wire, "nic1", rx, f);
	link.local = f->local;
	link.remote = f->remote;
	assert_int_equal(loop_add_link(&f->l, &f->link, &link), 0);
	f->peer = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(f->peer >= 0);
	/* The switch knows where they are. */
	station_send(f, 0, 1);
	station_send(f, 1, 0);
	poll_wire(f);
	f->got = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_close(&f->l);
	close(f->peer);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void test_frames(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(events(f), 0);
	peer_send(f);
	peer_send(f);
	assert_int_equal(events(f), 1);
	assert_int_equal(events(f), 0);
	poll_wire(f);
	assert_int_equal(f->got, 2);
}

/* Frames that there is no room for do not keep the loop awake, and are taken when there is. */
static void test_full(void **state)
{
	struct fixture *f = *state;
	unsigned int sent = 0;

	f->slow = true;
	while (!wire_port_full(f->port[0], addr[1])) {
		assert_true(sent < 10000);
		station_send(f, 0, 1);
		sent++;
	}
	for (unsigned int round = 0; round < 2; round++) {
		peer_send(f);
		assert_int_equal(events(f), 1);
		for (unsigned int i = 0; i < 3; i++) {
			poll_wire(f);
			assert_int_equal(events(f), 0);
		}
		f->slow = false;
		while (wire_port_full(f->port[0], addr[1]))
			wire_poll(f->l.wire, 1);
		f->slow = true;
		/* It is told in the turn that makes the room. */
		assert_int_equal(events(f), 1);
		assert_int_equal(events(f), 0);
		sent++;
		while (!wire_port_full(f->port[0], addr[1])) {
			station_send(f, 0, 1);
			sent++;
		}
	}
	f->slow = false;
	poll_wire(f);
	assert_int_equal(f->got, sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
