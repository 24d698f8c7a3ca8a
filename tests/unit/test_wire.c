// SPDX-License-Identifier: GPL-2.0
/*
 * The switch: who gets which frame, in which order, and what happens when a
 * station takes none.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host/closer.h"
#include "linger.h"
#include "peer.h"
#include "wire/wire.h"

#define LOG_MAX	20000

struct station {
	struct wire_port *port;
	unsigned int n;
	size_t bytes;
	struct {
		size_t len;
		uint8_t src;		/* last byte of source address */
		uint32_t seq;		/* behind the header */
	} got[LOG_MAX];
	/* Answer each frame with one to this station. */
	uint8_t answer;
	unsigned int depth;
	unsigned int rooms;		/* times it was told that there is room */
	unsigned int again;		/* times it wants the next frame once more */
	unsigned int told;		/* frames it was told of before they came */
};

static void make(uint8_t *frame, uint8_t dst, uint8_t src, uint32_t seq)
{
	memset(frame, 0, 14);
	frame[0] = dst == 0xff ? 0xff : 2;
	frame[5] = dst;
	frame[6] = 2;
	frame[11] = src;
	frame[12] = 0x88;
	frame[13] = 0xb5;
	memcpy(frame + 14, &seq, sizeof(seq));
}

static void send_frame(struct station *s, uint8_t dst, uint8_t src, uint32_t seq, size_t len)
{
	uint8_t frame[WIRE_FRAME_MAX + 1] = { 0 };

	make(frame, dst, src, seq);
	wire_port_send(s->port, frame, len);
}

static void rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct station *s = priv;
	const uint8_t *p = frame;

	assert_false(icrc_pending);
	if (s->again) {
		s->again--;
		wire_port_again(s->port);
	}
	assert_int_equal(s->depth++, 0);
	assert_true(s->n < LOG_MAX);
	s->got[s->n].len = len;
	s->got[s->n].src = p[11];
	if (len >= 18)
		memcpy(&s->got[s->n].seq, p + 14, 4);
	s->n++;
	s->bytes += len;
	if (s->answer)
		send_frame(s, s->answer, 1, 0, 60);
	s->depth--;
}

static void room(void *priv)
{
	struct station *s = priv;

	assert_int_equal(s->depth, 0);
	s->rooms++;
}

struct fixture {
	struct wire *w;
	uint64_t now;
	struct station st[3];		/* stations 1, 2, 3 */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	unsigned int i;

	assert_non_null(f);
	f->now = 1000;
	f->w = wire_create(1);
	assert_non_null(f->w);
	for (i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof(name), "nic%u", i);
		f->st[i].port = wire_add_dev(f->w, name, rx, &f->st[i]);
		assert_non_null(f->st[i].port);
		wire_port_on_room(f->st[i].port, room);
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	wire_destroy(f->w);
	free(f);
	return 0;
}

static void drain(struct fixture *f)
{
	while (wire_poll(f->w, f->now))
		;
}

static const struct wire_stats *stats(struct fixture *f, unsigned int i)
{
	return wire_port_stats(f->st[i].port);
}

static void test_learning(void **state)
{
	struct fixture *f = *state;

	/* Unknown: to all others, never back. */
	send_frame(&f->st[0], 2, 1, 0, 60);
	assert_int_equal(f->st[1].n, 0);
	assert_int_equal(wire_deadline(f->w), 0);
	drain(f);
	assert_int_equal(f->st[0].n, 0);
	assert_int_equal(f->st[1].n, 1);
	assert_int_equal(f->st[2].n, 1);
	assert_int_equal(wire_deadline(f->w), UINT64_MAX);

	/* The answer goes to where the question came from, and teaches. */
	send_frame(&f->st[1], 1, 2, 0, 60);
	send_frame(&f->st[0], 2, 1, 1, 60);
	drain(f);
	assert_int_equal(f->st[0].n, 1);
	assert_int_equal(f->st[1].n, 2);
	assert_int_equal(f->st[2].n, 1);

	/* Broadcast and multicast go to all others always. */
	send_frame(&f->st[2], 0xff, 3, 0, 60);
	drain(f);
	assert_int_equal(f->st[0].n, 2);
	assert_int_equal(f->st[1].n, 3);
	assert_int_equal(f->st[2].n, 1);

	/* A station that moved is found at its new place. */
	send_frame(&f->st[2], 1, 2, 0, 60);
	send_frame(&f->st[0], 2, 1, 0, 60);
	drain(f);
	assert_int_equal(f->st[1].n, 3);
	assert_int_equal(f->st[2].n, 2);

	/* To a station at its own port. */
	send_frame(&f->st[2], 2, 3, 0, 60);
	drain(f);
	assert_int_equal(stats(f, 2)->filtered, 1);
	assert_int_equal(f->st[2].n, 2);
}

static void test_many_addresses(void **state)
{
	struct fixture *f = *state;
	uint8_t frame[60] = { 0 };
	uint32_t i;

	/* More addresses than the table holds push each other out, no more. */
	for (i = 0; i < 100000; i++) {
		make(frame, 0xff, 1, i);
		memcpy(frame + 8, &i, 4);
		wire_port_send(f->st[0].port, frame, sizeof(frame));
		if (!(i % 64))
			drain(f);
		f->st[1].n = 0;
		f->st[2].n = 0;
	}
	drain(f);
	/* Multicast source addresses are not learnt. */
	make(frame, 2, 1, 0);
	frame[6] = 3;
	wire_port_send(f->st[0].port, frame, sizeof(frame));
	drain(f);
	assert_int_equal(stats(f, 1)->drop_queue, 0);
}

/* A switch with more ports than a byte can count knows who is at each. */
static void test_many_ports(void **state)
{
	struct fixture *f = *state;
	struct station *st = calloc(300, sizeof(*st));
	char name[12];

	assert_non_null(st);
	for (unsigned int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "more%u", i);
		st[i].port = wire_add_dev(f->w, name, rx, &st[i]);
		assert_non_null(st[i].port);
	}
	send_frame(&st[299], 0xff, 77, 0, 60);
	drain(f);
	for (unsigned int i = 0; i < 300; i++)
		st[i].n = 0;
	send_frame(&f->st[0], 77, 1, 5, 60);
	drain(f);
	for (unsigned int i = 0; i < 300; i++)
		assert_int_equal(st[i].n, i == 299);
	wire_destroy(f->w);
	f->w = NULL;
	free(st);
}

static void test_lengths(void **state)
{
	static const size_t good[] = { 14, 60, 256, 257, 1518, 2048, 2049, 4178, 4608, 4609,
				       9216, 9234, WIRE_FRAME_MAX };
	struct fixture *f = *state;
	unsigned int i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		send_frame(&f->st[0], 2, 1, i, good[i]);
		drain(f);
		assert_int_equal(f->st[1].n, i + 1);
		assert_int_equal(f->st[1].got[i].len, good[i]);
	}
	send_frame(&f->st[0], 2, 1, 0, 13);
	send_frame(&f->st[0], 2, 1, 0, 0);
	send_frame(&f->st[0], 2, 1, 0, WIRE_FRAME_MAX + 1);
	drain(f);
	assert_int_equal(f->st[1].n, i);
	assert_int_equal(stats(f, 0)->drop_len, 3);
	assert_int_equal(stats(f, 0)->rx_frames, i);
	assert_int_equal(stats(f, 1)->tx_frames, i);
	assert_int_equal(stats(f, 1)->tx_bytes, f->st[1].bytes);
	assert_int_equal(stats(f, 0)->rx_bytes, f->st[1].bytes);
}

static void test_order_and_bound(void **state)
{
	struct fixture *f = *state;
	unsigned int i, polls = 0;

	for (i = 0; i < 1000; i++)
		send_frame(&f->st[0], 2, 1, i, 100 + i % 7000);
	while (wire_poll(f->w, f->now))
		polls++;
	assert_int_equal(f->st[1].n, 1000);
	for (i = 0; i < 1000; i++)
		assert_int_equal(f->st[1].got[i].seq, i);
	assert_in_range(polls, 4, 100);
}

static void test_queue_full(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	/* The whole queue of path MTU 4096 packets is granted. */
	send_frame(&f->st[1], 1, 2, 0, 60);
	drain(f);
	for (i = 0; i < WIRE_QUEUE_FRAMES + 10; i++)
		send_frame(&f->st[0], 2, 1, i, 4178);
	assert_int_equal(stats(f, 1)->drop_queue, 10);
	drain(f);
	assert_int_equal(f->st[1].n, WIRE_QUEUE_FRAMES);
	assert_int_equal(f->st[1].got[WIRE_QUEUE_FRAMES - 1].seq, WIRE_QUEUE_FRAMES - 1);

	/* Jumbos are bounded by bytes. */
	for (i = 0; i < WIRE_QUEUE_FRAMES; i++)
		send_frame(&f->st[0], 2, 1, i, 9000);
	assert_true(stats(f, 1)->drop_queue > WIRE_QUEUE_FRAMES / 2);
	f->st[1].n = 0;
	drain(f);
	assert_int_equal(f->st[1].n, WIRE_QUEUE_BYTES / WIRE_FRAME_MAX);
}

/* Would station @from have to wait with a frame to @dst? */
static bool waits(struct fixture *f, unsigned int from, uint8_t dst)
{
	uint8_t frame[60];

	make(frame, dst, 1, 0);
	return wire_port_full(f->st[from].port, frame);
}

/* Have all stations be known. */
static void introduce(struct fixture *f)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		send_frame(&f->st[i], 0xff, i + 1, 0, 60);
	drain(f);
}

/* Those who wait at the mark lose nothing, and others do not wait. */
static void test_mark(void **state)
{
	static const size_t lens[] = { 60, 1100, 4178, 9000 };
	struct fixture *f = *state;
	unsigned int i, k, n, rooms;

	introduce(f);
	f->st[1].n = 0;
	for (k = 0; k < 4; k++) {
		for (n = 0; !waits(f, 0, 2); n++)
			send_frame(&f->st[0], 2, 1, n, lens[k]);
		assert_in_range(n, 100, WIRE_MARK_FRAMES);
		assert_int_equal(stats(f, 1)->waits, k + 1);
		/* Everybody waits for that station, as do frames for all. */
		assert_true(waits(f, 2, 2));
		assert_true(waits(f, 2, 0xff));
		assert_true(waits(f, 2, 99));
		/* The station itself, and frames for others, do not. */
		assert_false(waits(f, 0, 3));
		assert_false(waits(f, 0, 1));
		assert_false(waits(f, 1, 2));
		assert_false(waits(f, 1, 0xff));
		rooms = f->st[0].rooms;
		for (i = 0; waits(f, 0, 2); i++) {
			assert_int_equal(f->st[0].rooms, rooms);
			assert_true(wire_poll(f->w, f->now));
		}
		/* Half of it is gone, not more than one call's worth besides. */
		assert_in_range(f->st[1].n, n / 2 - 1, n);
		for (i = 0; i < 3; i++)
			assert_int_equal(f->st[i].rooms, rooms + 1);
		drain(f);
		assert_int_equal(f->st[0].rooms, rooms + 1);
		assert_int_equal(f->st[1].n, n);
		f->st[1].n = 0;
	}
	assert_int_equal(stats(f, 1)->drop_queue, 0);
	assert_int_equal(stats(f, 1)->waits_ended, 0);
}

/* Two stations which answer each frame: a call of poll ends all the same. */
static void test_ping_pong(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	f->st[0].answer = 0xff;
	f->st[1].answer = 0xff;
	send_frame(&f->st[2], 0xff, 3, 0, 60);
	for (i = 0; i < 10; i++)
		assert_true(wire_poll(f->w, f->now));
	assert_true(f->st[0].n >= 10);
	f->st[0].answer = 0;
	f->st[1].answer = 0;
	drain(f);
}

static void test_names(void **state)
{
	struct fixture *f = *state;
	char err[100] = "";

	assert_null(wire_add_dev(f->w, "nic0", rx, &f->st[0]));
	assert_int_equal(errno, EEXIST);
	assert_null(wire_add_dev(f->w, "", rx, &f->st[0]));
	assert_null(wire_add_dev(f->w, "a-name-of-more-than-thirty-one-characters", rx, NULL));
	assert_int_equal(wire_add_tap(f->w, "a-name-too-long-for-tap", err, sizeof(err)), -1);
	assert_non_null(strstr(err, "too long"));
	assert_string_equal(wire_port_name(f->st[2].port), "nic2");
}

static void count_stat(void *priv, const char *port, const char *counter, uint64_t value)
{
	uint64_t *sum = priv;

	assert_int_equal(strncmp(port, "nic", 3), 0);
	if (!strcmp(counter, "rx_frames") || !strcmp(counter, "tx_frames"))
		*sum += value;
}

static void test_stats(void **state)
{
	struct fixture *f = *state;
	uint64_t sum = 0;

	send_frame(&f->st[0], 0xff, 1, 0, 60);
	drain(f);
	wire_stats_each(f->w, count_stat, &sum);
	assert_int_equal(sum, 3);
}

/* Datagram peers */

static void test_dgram(void **state)
{
	struct fixture *f = *state;
	struct peer p;
	uint8_t frame[WIRE_FRAME_MAX + 1] = { 0 };
	unsigned int i;

	peer_open(f->w, &p);
	/* Nobody there yet: lost, counted, and nothing else happens. */
	send_frame(&f->st[0], 0xff, 1, 0, 60);
	drain(f);
	assert_int_equal(dgram_stat(f->w, "drop_peer"), 1);

	p.fd = peer_bind(p.remote);
	for (i = 0; i < 3; i++)
		send_frame(&f->st[0], 9, 1, i, 1000 * (i + 1));
	drain(f);
	for (i = 0; i < 3; i++) {
		assert_int_equal(recv(p.fd, frame, sizeof(frame), 0), 1000 * (i + 1));
		assert_int_equal(frame[14], i);
	}
	assert_int_equal(dgram_stat(f->w, "tx_frames"), 3);

	/* And the other way, as one frame per datagram. */
	f->st[0].n = 0;
	make(frame, 1, 9, 77);
	peer_send(&p, frame, 9018);
	peer_send(&p, frame, 10);
	peer_send(&p, frame, WIRE_FRAME_MAX + 1);
	wire_fd_ready(f->w, p.wire_fd);
	assert_int_equal(f->st[0].n, 0);
	drain(f);
	assert_int_equal(f->st[0].n, 1);
	assert_int_equal(f->st[0].got[0].len, 9018);
	assert_int_equal(f->st[0].got[0].seq, 77);
	assert_int_equal(dgram_stat(f->w, "drop_len"), 2);
	/* Nothing to read is no error, nor is a descriptor of nobody. */
	wire_fd_ready(f->w, p.wire_fd);
	wire_fd_ready(f->w, -1);
	wire_fd_ready(f->w, 12345);

	/* The peer goes and another comes to its place. */
	close(p.fd);
	send_frame(&f->st[0], 9, 1, 0, 60);
	drain(f);
	assert_int_equal(dgram_stat(f->w, "drop_peer"), 2);
	unlink(p.remote);
	p.fd = peer_bind(p.remote);
	send_frame(&f->st[0], 9, 1, 0, 60);
	drain(f);
	assert_int_equal(recv(p.fd, frame, sizeof(frame), 0), 60);
	peer_send(&p, frame, 60);

	wire_destroy(f->w);
	f->w = wire_create(0);
	assert_int_equal(access(p.local, F_OK), -1);
	peer_close(&p);
}

/* A peer that is slow loses nothing; one that is stuck does in the end. */
static void test_dgram_full(void **state)
{
	struct fixture *f = *state;
	struct peer p;
	uint8_t frame[200];
	uint32_t i, seq, next = 0;

	peer_open(f->w, &p);
	p.fd = peer_bind(p.remote);
	for (i = 0; i < 2000; i++)
		send_frame(&f->st[0], 9, 1, i, 100);
	drain(f);
	assert_true(wire_deadline(f->w) > f->now);
	while (next < 2000) {
		while (recv(p.fd, frame, sizeof(frame), 0) == 100) {
			memcpy(&seq, frame + 14, sizeof(seq));
			assert_int_equal(seq, next++);
		}
		if (wire_deadline(f->w) != UINT64_MAX)
			f->now = wire_deadline(f->w);
		drain(f);
	}
	assert_int_equal(dgram_stat(f->w, "drop_peer"), 0);
	assert_int_equal(wire_deadline(f->w), UINT64_MAX);

	for (i = 0; i < 2000; i++)
		send_frame(&f->st[0], 9, 1, i, 100);
	for (i = 0; i < 100000 && wire_deadline(f->w) != UINT64_MAX; i++) {
		drain(f);
		if (wire_deadline(f->w) != UINT64_MAX)
			f->now = wire_deadline(f->w);
	}
	assert_true(i < 1000);
	assert_int_equal(dgram_stat(f->w, "drop_peer") + dgram_stat(f->w, "tx_frames"), 4000);
	peer_close(&p);
}

static void poll_all(struct fixture *f)
{
	while (wire_poll(f->w, ++f->now))
		;
}

/* A port takes over the address of another by sending with it, unless it may not. */
static void test_spoofed(void **state)
{
	const uint8_t mac[6] = { 2, 0, 0, 0, 0, 3 };
	struct fixture *f = *state;

	send_frame(&f->st[0], 0xff, 1, 0, 60);
	send_frame(&f->st[2], 2, 1, 1, 60);
	poll_all(f);
	f->st[0].n = 0;
	f->st[2].n = 0;
	send_frame(&f->st[1], 1, 2, 2, 60);
	poll_all(f);
	assert_int_equal(f->st[0].n, 0);
	assert_int_equal(f->st[2].n, 1);

	wire_port_only_mac(f->st[2].port, mac);
	send_frame(&f->st[0], 0xff, 1, 3, 60);
	poll_all(f);
	f->st[1].n = 0;
	f->st[2].n = 0;
	send_frame(&f->st[2], 2, 1, 4, 60);
	send_frame(&f->st[2], 0xff, 4, 5, 60);
	poll_all(f);
	assert_int_equal(wire_port_stats(f->st[2].port)->drop_spoof, 2);
	assert_int_equal(f->st[1].n, 0);
	send_frame(&f->st[1], 1, 2, 6, 60);
	send_frame(&f->st[2], 2, 3, 7, 60);
	poll_all(f);
	assert_int_equal(f->st[0].n, 1);
	assert_int_equal(f->st[2].n, 0);
	assert_int_equal(f->st[1].n, 1);
	assert_int_equal(wire_port_stats(f->st[2].port)->drop_spoof, 2);
}

/* A station that is not done with a frame gets it again in the next turn, in its order. */
static void test_again(void **state)
{
	struct fixture *f = *state;

	introduce(f);
	f->st[1].n = 0;
	for (uint32_t seq = 1; seq <= 3; seq++)
		send_frame(&f->st[0], 2, 1, seq, 60);
	send_frame(&f->st[0], 3, 1, 9, 60);
	f->st[2].n = 0;
	f->st[1].again = 2;
	assert_true(wire_poll(f->w, ++f->now));
	assert_int_equal(f->st[1].n, 1);
	assert_int_equal(f->st[2].n, 1);
	assert_true(wire_poll(f->w, ++f->now));
	assert_int_equal(f->st[1].n, 2);
	assert_int_equal(wire_port_stats(f->st[1].port)->tx_frames, 2);
	poll_all(f);
	assert_int_equal(f->st[1].n, 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(f->st[1].got[i].seq, i < 3 ? 1 : i - 1);
	assert_int_equal(wire_port_stats(f->st[1].port)->tx_frames, 5);
}

static bool send_fd(struct peer *p, int fd)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2 };
	struct iovec iov = { .iov_base = frame, .iov_len = sizeof(frame) };
	struct msghdr mh = {
		.msg_name = &sun, .msg_namelen = sizeof(sun), .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);

	strcpy(sun.sun_path, p->local);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	return sendmsg(p->fd, &mh, 0) == (ssize_t)sizeof(frame);
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

/*
 * Frames that bring descriptors which do not close: the kernel refuses them to the
 * sender, or, older than 6.16, the port takes the frames until it has had enough.
 */
static void test_dgram_descriptors(void **state)
{
	struct fixture *f = *state;
	struct linger_pair pair[70];
	unsigned int n = 0;
	struct peer p;
	int on = 1;

	alarm(60);
	peer_open(f->w, &p);
	p.fd = peer_bind(p.remote);
	for (n = 0; n < 70; n++)
		pair[n] = linger_open();
	if (!send_fd(&p, pair[0].fd)) {
		assert_int_equal(errno, EPERM);
		assert_int_equal(setsockopt(p.wire_fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on)),
				 0);
		assert_true(send_fd(&p, pair[0].fd));
	}
	close(pair[0].fd);
	assert_true(wire_fd_ready(f->w, p.wire_fd));
	assert_int_equal(dgram_stat(f->w, "rx_frames"), 1);
	assert_int_equal(dgram_stat(f->w, "bad_fds"), 1);
	for (n = 1; n < 70; n++) {
		assert_true(send_fd(&p, pair[n].fd));
		close(pair[n].fd);
		wire_fd_ready(f->w, p.wire_fd);
	}
	/* One is being closed, so many wait: no more were taken. */
	assert_int_equal(dgram_stat(f->w, "bad_fds"), 1 + CLOSER_WAITING_MAX);
	/* It takes a moment until the port believes that they do not close. */
	while (wire_fd_ready(f->w, p.wire_fd))
		;
	assert_int_equal(dgram_stat(f->w, "bad_fds"), 1 + CLOSER_WAITING_MAX);
	while (n--)
		close(pair[n].peer);
	peer_close(&p);
	alarm(0);
}

/* Fill the queue of the peer, address 9, until stations wait for it. */
static void fill_peer(struct fixture *f, struct peer *p)
{
	uint8_t frame[60] = { 0 };

	p->fd = peer_bind(p->remote);
	introduce(f);
	make(frame, 0xff, 9, 0);
	peer_send(p, frame, sizeof(frame));
	wire_fd_ready(f->w, p->wire_fd);
	drain(f);
	while (!waits(f, 0, 9))
		send_frame(&f->st[0], 9, 1, 0, 1000);
	drain(f);
	assert_true(waits(f, 0, 9));
}

/* Stations wait for a peer outside too, but not with what is for others, and not for ever. */
static void test_slow_peer(void **state)
{
	struct fixture *f = *state;
	uint64_t begun = f->now;
	uint8_t frame[2000];
	unsigned int rooms;
	struct peer p;

	peer_open(f->w, &p);
	fill_peer(f, &p);
	rooms = f->st[0].rooms;
	assert_false(waits(f, 0, 2));
	assert_false(waits(f, 0, 0xff));
	/* It takes a frame now and then: it is not stuck, and yet too slow. */
	while (waits(f, 0, 9)) {
		assert_true(f->now - begun <= WIRE_PATIENCE_NS + 5000000);
		assert_true(recv(p.fd, frame, sizeof(frame), 0) > 0);
		f->now += 5000000;
		drain(f);
	}
	assert_true(f->now - begun >= WIRE_PATIENCE_NS);
	assert_int_equal(f->st[0].rooms, rooms + 1);
	assert_int_equal(dgram_stat(f->w, "waits"), 1);
	assert_int_equal(dgram_stat(f->w, "waits_ended"), 1);
	/* It catches up, and is waited for again. */
	while (recv(p.fd, frame, sizeof(frame), 0) > 0 || wire_deadline(f->w) != UINT64_MAX) {
		if (wire_deadline(f->w) != UINT64_MAX)
			f->now = wire_deadline(f->w);
		drain(f);
	}
	while (!waits(f, 0, 9))
		send_frame(&f->st[0], 9, 1, 0, 1000);
	assert_int_equal(dgram_stat(f->w, "waits"), 2);
	assert_int_equal(dgram_stat(f->w, "drop_queue"), 0);
	assert_int_equal(dgram_stat(f->w, "drop_peer"), 0);
	peer_close(&p);
}

/* What a peer sends stays outside while a station has no room. */
static void test_peer_waits(void **state)
{
	struct fixture *f = *state;
	uint8_t frame[60] = { 0 };
	unsigned int n;
	struct peer p;

	peer_open(f->w, &p);
	introduce(f);
	p.fd = peer_bind(p.remote);
	for (n = 0; !waits(f, 0, 2); n++)
		send_frame(&f->st[0], 2, 1, n, 1000);
	make(frame, 2, 9, 12345);
	peer_send(&p, frame, sizeof(frame));
	wire_fd_ready(f->w, p.wire_fd);
	assert_int_equal(dgram_stat(f->w, "rx_frames"), 0);
	while (waits(f, 0, 2))
		wire_poll(f->w, f->now);
	wire_fd_ready(f->w, p.wire_fd);
	assert_int_equal(dgram_stat(f->w, "rx_frames"), 1);
	f->st[1].n = 0;
	drain(f);
	assert_int_equal(f->st[1].got[f->st[1].n - 1].seq, 12345);
	peer_close(&p);
}

static void test_dgram_address(void **state)
{
	struct fixture *f = *state;
	char err[200] = "", long_path[300];
	struct peer p, q;
	struct stat st;
	int fd;

	umask(0);
	peer_open(f->w, &p);
	assert_int_equal(lstat(p.local, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* In use. */
	assert_int_equal(wire_add_dgram(f->w, p.local, p.remote, err, sizeof(err)), -1);
	assert_non_null(strstr(err, p.local));
	/* Not a socket: is not removed. */
	q = p;
	fd = open(q.remote, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(wire_add_dgram(f->w, q.remote, q.local, err, sizeof(err)), -1);
	assert_int_equal(access(q.remote, F_OK), 0);
	unlink(q.remote);
	/* Left behind by somebody who died. */
	close(peer_bind(q.remote));
	assert_int_equal(access(q.remote, F_OK), 0);
	fd = wire_add_dgram(f->w, q.remote, q.local, err, sizeof(err));
	if (fd < 0)
		fail_msg("%s", err);

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(wire_add_dgram(f->w, long_path, p.remote, err, sizeof(err)), -1);
	assert_int_equal(wire_add_dgram(f->w, p.remote, "", err, sizeof(err)), -1);
	peer_close(&p);
}

static void test_tap(void **state)
{
	struct fixture *f = *state;
	char err[200] = "";
	struct find find = { "tx_frames", 0 };
	int fd = wire_add_tap(f->w, "skuatest0", err, sizeof(err));

	if (fd < 0) {
		print_message("no TAP here: %s\n", err);
		skip();
	}
	/* It is down: what is sent there is lost, and nothing comes. */
	send_frame(&f->st[0], 0xff, 1, 0, 60);
	drain(f);
	wire_fd_ready(f->w, fd);
	assert_int_equal(wire_add_tap(f->w, "skuatest0", err, sizeof(err)), -1);
	wire_stats_each(f->w, find_stat, &find);
	assert_int_equal(wire_deadline(f->w), UINT64_MAX);

	/* Up: the kernel sends its neighbour discovery, and takes a frame. */
	if (system("ip link set skuatest0 up") == 0) {
		unsigned int i;

		for (i = 0; i < 300 && !f->st[0].n; i++) {
			usleep(10000);
			wire_fd_ready(f->w, fd);
			drain(f);
		}
		assert_true(f->st[0].n > 0);
		send_frame(&f->st[0], 0xff, 1, 0, 1000);
		drain(f);
		assert_int_equal(system("ip -s link show skuatest0 | grep -q ' 1000 *1 '"), 0);
	}
}

/* --- hints --- */

static void soon(void *priv, const void *frame, size_t len)
{
	struct station *s = priv;
	uint32_t seq;

	assert_int_equal(len, 60);
	memcpy(&seq, (const uint8_t *)frame + 14, sizeof(seq));
	/* All before the one in front of it have come. */
	assert_int_equal(seq, s->n + 2);
	assert_int_equal(s->depth, 0);
	s->told++;
}

/* A station is told of each frame that has come while another one is in front of it. */
static void test_next(void **state)
{
	struct fixture *f = *state;
	struct station *a = &f->st[0], *b = &f->st[1];

	wire_port_on_next(b->port, soon);
	for (uint32_t seq = 1; seq <= 5; seq++)
		send_frame(a, 0xff, 1, seq, 60);
	drain(f);
	assert_int_equal(b->n, 5);
	assert_int_equal(b->told, 4);
	/* One that is alone is not announced. */
	send_frame(a, 0xff, 1, 6, 60);
	drain(f);
	assert_int_equal(b->n, 6);
	assert_int_equal(b->told, 4);
	assert_int_equal(a->told + f->st[2].told, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_learning),
		T(test_many_addresses),
		T(test_many_ports),
		T(test_lengths),
		T(test_order_and_bound),
		T(test_queue_full), T(test_mark),
		T(test_ping_pong),
		T(test_names),
		T(test_stats),
		T(test_spoofed),
		T(test_dgram),
		T(test_dgram_full),
		T(test_slow_peer),
		T(test_peer_waits),
		T(test_again), T(test_next), T(test_dgram_descriptors),
		T(test_dgram_address),
		T(test_tap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
