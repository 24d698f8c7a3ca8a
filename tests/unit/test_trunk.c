// SPDX-License-Identifier: GPL-2.0
/*
 * Switches of several threads joined by a trunk: to their stations it is one network, and
 * nothing is lost. First turn by turn in one thread, then by threads that sleep and wake each
 * other, as those of the daemon.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "wire/fabric.h"
#include "wire/pcapng.h"
#include "wire/trunk.h"
#include "wire/wire.h"

#define MEMBERS		3
#define LOG_MAX		20000
#define HEAD		24

/* --- in one thread --- */

struct station {
	struct wire *w;
	struct wire_port *port;
	int fd;
	unsigned int n, rooms, again, pending;
	struct {
		uint8_t src;
		uint32_t seq;
	} got[LOG_MAX];
};

struct fixture {
	struct trunk *t;
	uint64_t now;
	struct station st[MEMBERS];
};

static void make(uint8_t *frame, uint8_t dst, uint8_t src, uint32_t seq)
{
	memset(frame, 0, HEAD);
	frame[0] = dst == 0xff ? 0xff : 2;
	frame[5] = dst;
	frame[6] = 2;
	frame[11] = src;
	frame[12] = 0x88;
	frame[13] = 0xb5;
	memcpy(frame + 14, &seq, sizeof(seq));
}

static void rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct station *s = priv;
	const uint8_t *p = frame;

	(void)len;
	s->pending += icrc_pending;
	if (s->again) {
		s->again--;
		wire_port_again(s->port);
		return;
	}
	assert_true(s->n < LOG_MAX);
	s->got[s->n].src = p[11];
	memcpy(&s->got[s->n].seq, p + 14, 4);
	s->n++;
}

static void room(void *priv)
{
	((struct station *)priv)->rooms++;
}

static struct fixture *open_members(uint64_t seed)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->now = 1000;
	f->t = trunk_create(MEMBERS);
	assert_non_null(f->t);
	for (unsigned int i = 0; i < MEMBERS; i++) {
		struct station *s = &f->st[i];
		char name[8];

		snprintf(name, sizeof(name), "nic%u", i);
		s->w = wire_create(seed);
		assert_non_null(s->w);
		s->fd = wire_join(s->w, f->t, i);
		assert_true(s->fd >= 0);
		wire_number_ports(s->w, i);
		s->port = wire_add_dev(s->w, name, rx, s);
		assert_non_null(s->port);
		wire_port_on_room(s->port, room);
	}
	return f;
}

static void close_members(struct fixture *f)
{
	for (unsigned int i = 0; i < MEMBERS; i++)
		wire_destroy(f->st[i].w);
	trunk_destroy(f->t);
	free(f);
}

static int setup(void **state)
{
	*state = open_members(1);
	return 0;
}

static int teardown(void **state)
{
	close_members(*state);
	return 0;
}

/* What the thread of member @i does as long as it has anything to do. */
static void work(struct fixture *f, unsigned int i)
{
	for (unsigned int k = 0; wire_deadline(f->st[i].w) <= f->now; k++) {
		assert_true(k < 100000);
		wire_poll(f->st[i].w, f->now);
	}
}

/* All of them, until none has. */
static void settle(struct fixture *f)
{
	bool more = true;

	for (unsigned int k = 0; more; k++) {
		assert_true(k < 100000);
		more = false;
		for (unsigned int i = 0; i < MEMBERS; i++) {
			more |= wire_deadline(f->st[i].w) <= f->now;
			work(f, i);
		}
	}
}

static void send_frame(struct fixture *f, unsigned int i, uint8_t dst, uint32_t seq, size_t len)
{
	uint8_t frame[WIRE_FRAME_MAX] = { 0 };

	make(frame, dst, (uint8_t)(i + 1), seq);
	wire_port_send(f->st[i].port, frame, len);
}

static const uint8_t *mac(unsigned int i)
{
	static uint8_t m[6] = { 2 };

	m[5] = (uint8_t)(i + 1);
	return m;
}

/* An unknown address is everybody's; a known one has its station alone, for all switches. */
static void test_addresses(void **state)
{
	struct fixture *f = *state;

	send_frame(f, 0, 2, 1, 60);
	settle(f);
	assert_int_equal(f->st[0].n, 0);
	assert_int_equal(f->st[1].n, 1);
	assert_int_equal(f->st[2].n, 1);
	send_frame(f, 1, 1, 2, 60);
	settle(f);
	assert_int_equal(f->st[0].n, 1);
	assert_int_equal(f->st[0].got[0].src, 2);
	assert_int_equal(f->st[2].n, 1);
	/* Member 2 has never had a frame of station 1 alone, but knows where it is. */
	send_frame(f, 2, 1, 3, 60);
	send_frame(f, 2, 2, 4, 60);
	settle(f);
	assert_int_equal(f->st[0].n, 2);
	assert_int_equal(f->st[1].n, 2);
	assert_int_equal(f->st[1].got[1].seq, 4);
	/* An address that moves is there where it spoke last, from all sides. */
	wire_port_send(f->st[1].port, (uint8_t[60]){ 2, [5] = 3, 2, [11] = 1, 0x88, 0xb5 }, 60);
	settle(f);
	send_frame(f, 2, 1, 5, 60);
	settle(f);
	assert_int_equal(f->st[0].n, 2);
	assert_int_equal(f->st[1].n, 3);
}

/* Each of the others gets it once, and the sender does not. */
static void test_groups(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < MEMBERS; i++)
		send_frame(f, i, 0xff, i, 60);
	settle(f);
	for (unsigned int i = 0; i < MEMBERS; i++) {
		assert_int_equal(f->st[i].n, MEMBERS - 1);
		for (unsigned int k = 0; k < f->st[i].n; k++)
			assert_int_not_equal(f->st[i].got[k].src, i + 1);
		assert_int_not_equal(f->st[i].got[0].src, f->st[i].got[1].src);
	}
}

/* That an ICRC is still to be written is said there too, to one as to several. */
static void test_pending(void **state)
{
	struct fixture *f = *state;
	uint8_t frame[60] = { 0 };

	for (uint32_t k = 0; k < 2; k++) {
		make(frame, 2, 1, k);
		wire_port_send_pending(f->st[0].port, frame, sizeof(frame));
		settle(f);
		assert_int_equal(f->st[1].pending, k + 1);
		assert_int_equal(f->st[2].pending, 1);
		send_frame(f, 1, 1, 7, 60);
		settle(f);
	}
	assert_int_equal(f->st[0].pending, 0);
	assert_int_equal(f->st[0].n, 2);
}

static void say_who(struct fixture *f)
{
	for (unsigned int i = 0; i < MEMBERS; i++)
		send_frame(f, i, 0xff, 0, 60);
	settle(f);
	for (unsigned int i = 0; i < MEMBERS; i++)
		f->st[i].n = 0;
}

static struct {
	const char *name;
	uint64_t val;
} wanted;

static void add(void *priv, const char *port, const char *counter, uint64_t value)
{
	(void)priv;
	(void)port;
	if (!strcmp(counter, wanted.name))
		wanted.val += value;
}

static uint64_t sum(struct fixture *f, const char *counter)
{
	wanted.name = counter;
	wanted.val = 0;
	for (unsigned int i = 0; i < MEMBERS; i++)
		wire_stats_each(f->st[i].w, add, NULL);
	return wanted.val;
}

/*
 * A thread that takes nothing for a while: the others are told to wait in time, for it alone,
 * and told again when they need not. All comes, in order.
 */
static void test_room(void **state)
{
	struct fixture *f = *state;
	uint32_t sent = 0;

	say_who(f);
	while (!wire_port_full(f->st[0].port, mac(1))) {
		assert_true(sent < 10000);
		send_frame(f, 0, 2, sent++, 1500);
		work(f, 0);
	}
	/* Neither looks for a wake-up that will not come, nor goes on working. */
	assert_true(wire_deadline(f->st[0].w) == UINT64_MAX);
	assert_false(wire_port_full(f->st[0].port, mac(2)));
	assert_true(wire_port_full(f->st[0].port, (uint8_t[6]){ 0xff }));
	send_frame(f, 0, 3, 7, 60);
	work(f, 0);
	work(f, 2);
	assert_int_equal(f->st[2].n, 1);
	assert_int_equal(f->st[0].rooms, 0);
	for (unsigned int k = 0; !f->st[0].rooms; k++) {
		assert_true(k < 100);
		work(f, 1);
		work(f, 0);
	}
	assert_false(wire_port_full(f->st[0].port, mac(1)));
	settle(f);
	assert_int_equal(f->st[1].n, sent);
	for (uint32_t k = 0; k < sent; k++)
		assert_int_equal(f->st[1].got[k].seq, k);
	assert_int_equal(sum(f, "drop_queue"), 0);
	assert_int_equal(sum(f, "waits"), 1);
}

/* A station that takes nothing has all threads wait that send to it, and no other. */
static void test_slow_station(void **state)
{
	struct fixture *f = *state;
	uint32_t sent[MEMBERS] = { 0 };

	say_who(f);
	f->st[1].again = UINT32_MAX;
	for (unsigned int k = 0; k < 5000; k++) {
		for (unsigned int i = 0; i < MEMBERS; i += 2)
			if (!wire_port_full(f->st[i].port, mac(1)))
				send_frame(f, i, 2, sent[i]++, 900);
		for (unsigned int i = 0; i < MEMBERS; i++)
			wire_poll(f->st[i].w, f->now);
	}
	assert_int_equal(f->st[1].n, 0);
	assert_true(wire_port_full(f->st[0].port, mac(1)));
	assert_true(wire_port_full(f->st[2].port, mac(1)));
	send_frame(f, 0, 3, 0, 60);
	for (unsigned int k = 0; k < 10; k++)
		for (unsigned int i = 0; i < MEMBERS; i++)
			wire_poll(f->st[i].w, f->now);
	assert_int_equal(f->st[2].n, 1);
	f->st[1].again = 0;
	settle(f);
	assert_int_equal(f->st[1].n, sent[0] + sent[2]);
	assert_true(f->st[0].rooms && f->st[2].rooms);
	assert_int_equal(sum(f, "drop_queue"), 0);
}

/* Threads that all have more for one station than it takes get the same share of its room. */
static void test_fair(void **state)
{
	struct fixture *f = *state;
	unsigned int from[MEMBERS] = { 0 };

	say_who(f);
	for (unsigned int k = 0; k < 1000; k++) {
		for (unsigned int i = 0; i < MEMBERS; i += 2) {
			while (!wire_port_full(f->st[i].port, mac(1)))
				send_frame(f, i, 2, 0, 9000);
			wire_poll(f->st[i].w, f->now);
		}
		wire_poll(f->st[1].w, f->now);
	}
	for (unsigned int k = 0; k < f->st[1].n; k++)
		from[f->st[1].got[k].src - 1]++;
	assert_true(f->st[1].n > 10000);
	assert_in_range(from[0], f->st[1].n / 2 - 100, f->st[1].n / 2 + 100);
	assert_int_equal(from[0] + from[2], f->st[1].n);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Who is awake costs no system call, who sleeps is woken up, who wants to sleep is told. */
static void test_sleep(void **state)
{
	struct fixture *f = *state;
	uint64_t times;

	say_who(f);
	assert_false(readable(f->st[1].fd));
	assert_true(wire_sleeps(f->st[1].w));
	send_frame(f, 0, 2, 1, 60);
	work(f, 0);
	assert_true(readable(f->st[1].fd));
	assert_int_equal(read(f->st[1].fd, &times, sizeof(times)), sizeof(times));
	assert_int_equal(times, 1);
	wire_wakes(f->st[1].w);
	assert_int_equal(wire_deadline(f->st[1].w), 0);
	assert_false(wire_sleeps(f->st[1].w));
	work(f, 1);
	assert_int_equal(f->st[1].n, 1);
	/* A time-out woke it up. */
	assert_true(wire_sleeps(f->st[1].w));
	wire_wakes(f->st[1].w);
	send_frame(f, 0, 2, 2, 60);
	work(f, 0);
	assert_false(readable(f->st[1].fd));
	assert_false(wire_sleeps(f->st[1].w));
	work(f, 1);
	assert_int_equal(f->st[1].n, 2);
	assert_int_equal(wire_trunk_frames(f->st[1].w), 4);
}

/* What is in rings and queues at the end goes with them (the sanitizer looks). */
static void test_end(void **state)
{
	struct fixture *f = *state;

	say_who(f);
	for (uint32_t k = 0; k < 600; k++) {
		send_frame(f, 0, 2, k, 60);
		wire_poll(f->st[0].w, f->now);
		if (k == 300)
			wire_poll(f->st[1].w, f->now);
	}
	assert_in_range(f->st[1].n, 1, 300);
}

/* The same seed does the same to the same frames, in one switch or in several. */
static void test_faults(void **state)
{
	static const char spec[] = "loss=30%,dup=10%,all;rule=drop:port=nic1,frame=5";
	struct fixture *f = *state, *one = calloc(1, sizeof(*one));
	struct wire *w = wire_create(1);
	char err[100];

	assert_non_null(one);
	assert_non_null(w);
	for (unsigned int i = 0; i < MEMBERS; i++) {
		one->st[i].w = w;
		one->st[i].port = wire_add_dev(w, (char[]){ 'n', 'i', 'c', (char)('0' + i), 0 },
					       rx, &one->st[i]);
		assert_int_equal(wire_fault(f->st[i].w, spec, err, sizeof(err)), 0);
	}
	assert_int_equal(wire_fault(w, spec, err, sizeof(err)), 0);
	for (uint32_t k = 0; k < 300; k++) {
		send_frame(f, k % 2, 0xff, k, 60);
		settle(f);
		send_frame(one, k % 2, 0xff, k, 60);
		while (wire_poll(w, 1000))
			;
	}
	for (unsigned int i = 0; i < MEMBERS; i++) {
		assert_int_equal(f->st[i].n, one->st[i].n);
		assert_memory_equal(f->st[i].got, one->st[i].got,
				    f->st[i].n * sizeof(f->st[i].got[0]));
	}
	assert_in_range(f->st[2].n, 150, 280);
	assert_true(sum(f, "fault_loss") > 50);
	wire_destroy(w);
	free(one);
}

/* A peer outside which takes nothing is waited for, but not for ever, from thread to thread. */
static void test_peer(void **state)
{
	char dir[] = "/tmp/skua-trunk-XXXXXX", local[48], remote[48], err[100];
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct fixture *f = *state;
	uint8_t frame[2048];
	unsigned int got = 0;
	uint32_t sent = 0;
	int fd, link;

	assert_non_null(mkdtemp(dir));
	snprintf(local, sizeof(local), "%s/local", dir);
	snprintf(remote, sizeof(remote), "%s/remote", dir);
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	strcpy(sun.sun_path, remote);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	say_who(f);
	link = wire_add_dgram(f->st[2].w, local, remote, err, sizeof(err));
	assert_true(link >= 0);
	strcpy(sun.sun_path, local);
	make(frame, 0xff, 9, 0);
	assert_int_equal(sendto(fd, frame, 60, 0, (struct sockaddr *)&sun, sizeof(sun)), 60);
	assert_true(wire_fd_ready(f->st[2].w, link));
	settle(f);
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_int_equal(f->st[i].n, 1);
	while (!wire_port_full(f->st[0].port, mac(8))) {
		assert_true(sent < 8000);
		send_frame(f, 0, 9, sent++, 1000);
		for (unsigned int i = 0; i < MEMBERS; i++)
			wire_poll(f->st[i].w, f->now);
	}
	assert_false(wire_port_full(f->st[0].port, mac(1)));
	f->now += WIRE_PATIENCE_NS;
	for (unsigned int k = 0; k < 2000; k++)
		for (unsigned int i = 0; i < MEMBERS; i++)
			wire_poll(f->st[i].w, f->now);
	assert_false(wire_port_full(f->st[0].port, mac(8)));
	while (recv(fd, frame, sizeof(frame), MSG_DONTWAIT) > 0)
		got++;
	assert_true(got > 0);
	assert_int_equal(sum(f, "waits_ended"), 1);
	close(fd);
	unlink(remote);
	unlink(local);
	rmdir(dir);
}

static void test_refused(void **state)
{
	struct fabric_cfg cfg = { .nics = 2, .rate_mbps = 1000, .queue_bytes = 100000,
				  .nic_bytes = 1 << 20 };
	struct fixture *f = *state;
	struct wire *w = wire_create(1);
	char err[100] = "";

	assert_null(trunk_create(0));
	assert_null(trunk_create(TRUNK_MEMBERS_MAX + 1));
	assert_int_equal(wire_join(f->st[0].w, f->t, 0), -1);
	assert_int_equal(wire_join(w, f->t, MEMBERS), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(wire_use_fabric(f->st[0].w, &cfg, err, sizeof(err)), -1);
	assert_int_equal(wire_use_fabric(w, &cfg, err, sizeof(err)), 0);
	assert_int_equal(wire_join(w, f->t, 1), -1);
	wire_destroy(w);
}

/* --- by threads --- */

#define FRAMES		20000
#define STORM_LEN	9000

struct stormer {
	pthread_t thread;
	struct storm *s;
	unsigned int me;
	struct wire *w;
	struct wire_port *port;
	int epfd, end;
	unsigned int seed;
	uint32_t sent[MEMBERS];		/* to whom; place @me: to all */
	uint32_t next[MEMBERS][2];	/* from whom, to me and to all */
	uint32_t left;
	bool told;
	bool full;
	uint64_t got, frames, drops;
};

struct storm {
	struct trunk *t;
	struct wire_pcap *pcap;
	struct stormer m[MEMBERS];
	atomic_uint wrong;
	atomic_uint finished;
	atomic_uint_fast64_t begun, sent, got;
	bool lossy;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t clock_of(void *priv)
{
	(void)priv;
	return now_ns();
}

static uint8_t byte_of(uint32_t seq, unsigned int from, size_t i)
{
	return (uint8_t)(seq * 31 + from * 7 + i);
}

/* In order from each sender, and whole. */
static void storm_rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct stormer *m = priv;
	const uint8_t *p = frame;
	unsigned int from = p[11] - 1u, all = p[0] == 0xff;
	uint32_t seq;

	if (rand_r(&m->seed) % 64 == 0) {
		wire_port_again(m->port);
		return;
	}
	/* Addresses are not known from the beginning: then all get it. */
	if (!all && p[5] != m->me + 1)
		return;
	memcpy(&seq, p + 14, sizeof(seq));
	if (icrc_pending || from >= MEMBERS || from == m->me ||
	    (m->s->lossy ? seq < m->next[from][all] : seq != m->next[from][all]))
		atomic_fetch_add(&m->s->wrong, 1);
	else
		m->next[from][all] = seq + 1;
	for (size_t i = HEAD; i < len; i += 97)
		if (p[i] != byte_of(seq, from, i))
			atomic_fetch_add(&m->s->wrong, 1);
	m->got++;
	atomic_fetch_add(&m->s->got, 1);
}

static void storm_room(void *priv)
{
	((struct stormer *)priv)->full = false;
}

static void storm_send(struct stormer *m)
{
	unsigned int to = rand_r(&m->seed) % MEMBERS;
	size_t len = HEAD + (rand_r(&m->seed) % 4 ? rand_r(&m->seed) % 200 :
			     rand_r(&m->seed) % (STORM_LEN - HEAD));
	bool all = to == m->me;
	uint8_t addr[6] = { 2, [5] = (uint8_t)(to + 1) };
	uint8_t *frame = wire_port_frame(m->port, STORM_LEN), *p = frame;

	if (all)
		addr[0] = 0xff;
	if (wire_port_full(m->port, addr)) {
		m->full = true;
		return;
	}
	make(p, all ? 0xff : (uint8_t)(to + 1), (uint8_t)(m->me + 1), m->sent[to]);
	for (size_t i = HEAD; i < len; i += 97)
		p[i] = byte_of(m->sent[to], m->me, i);
	wire_port_send(m->port, p, len);
	m->sent[to]++;
	m->left--;
	atomic_fetch_add(&m->s->sent, all ? MEMBERS - 1 : 1);
	atomic_fetch_add(&m->s->begun, 1);
}

static void storm_sleep(struct stormer *m)
{
	uint64_t now = now_ns(), next = wire_deadline(m->w);
	struct epoll_event ev;
	bool sleeps;
	/* A faultless wire has no deadlines; with faults they are soon. */
	int ms = next == UINT64_MAX ? -1 : next > now ? (int)((next - now) / 1000000) + 1 : 0;

	sleeps = ms && wire_sleeps(m->w);
	epoll_wait(m->epfd, &ev, 1, sleeps ? ms : 0);
	if (sleeps)
		wire_wakes(m->w);
}

static void *storm_main(void *arg)
{
	struct stormer *m = arg;

	while (!atomic_load(&m->s->finished)) {
		for (unsigned int k = 0; k < 32 && m->left && !m->full; k++)
			storm_send(m);
		if (wire_deadline(m->w) <= now_ns())
			wire_poll(m->w, now_ns());
		else if (!m->left || m->full)
			storm_sleep(m);
	}
	return NULL;
}

static void count_drops(void *priv, const char *port, const char *counter, uint64_t value)
{
	struct stormer *m = priv;

	(void)port;
	if (!strncmp(counter, "drop_", 5) || !strcmp(counter, "waits_ended"))
		m->drops += value;
	if (!strcmp(counter, "fault_loss"))
		m->frames += value;
}

static void storm_open(struct storm *s, unsigned int i, const char *faults)
{
	struct stormer *m = &s->m[i];
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	char name[8], err[100] = "";
	int fd;

	*m = (struct stormer){ .s = s, .me = i, .seed = i + 1, .left = FRAMES };
	m->w = wire_create(3);
	assert_non_null(m->w);
	wire_set_clock(m->w, clock_of, NULL);
	fd = wire_join(m->w, s->t, i);
	assert_true(fd >= 0);
	wire_number_ports(m->w, i);
	snprintf(name, sizeof(name), "nic%u", i);
	m->port = wire_add_dev(m->w, name, storm_rx, m);
	wire_port_on_room(m->port, storm_room);
	if (faults && wire_fault(m->w, faults, err, sizeof(err)))
		fail_msg("%s", err);
	if (s->pcap) {
		wire_pcap_add_interface(s->pcap, name);
		wire_pcap_share(m->w, s->pcap);
	}
	m->epfd = epoll_create1(EPOLL_CLOEXEC);
	m->end = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(epoll_ctl(m->epfd, EPOLL_CTL_ADD, fd, &ev), 0);
	assert_int_equal(epoll_ctl(m->epfd, EPOLL_CTL_ADD, m->end, &ev), 0);
}

static void storm_finish(struct storm *s)
{
	atomic_store(&s->finished, 1);
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_int_equal(eventfd_write(s->m[i].end, 1), 0);
	for (unsigned int i = 0; i < MEMBERS; i++)
		pthread_join(s->m[i].thread, NULL);
}

/* All is sent; and all has come, or, on a bad wire, nothing has for a while. */
static bool over(struct storm *s)
{
	static uint64_t last;
	static unsigned int same;
	uint64_t got = atomic_load(&s->got);

	if (atomic_load(&s->begun) < MEMBERS * FRAMES)
		return false;
	if (!s->lossy)
		return got == atomic_load(&s->sent);
	same = got == last ? same + 1 : 0;
	last = got;
	return same > 20;
}

/* Enhanced packet blocks, whose times do not go back. */
static unsigned int read_capture(const char *path)
{
	FILE *file = fopen(path, "r");
	uint32_t head[2], rest[3];
	uint64_t last = 0, time;
	unsigned int n = 0;

	assert_non_null(file);
	while (fread(head, sizeof(head), 1, file) == 1) {
		assert_in_range(head[1], 12, 1u << 17);
		assert_int_equal(fread(rest, sizeof(rest[0]), 1, file), 1);
		if (head[0] != 6) {
			assert_int_equal(fseek(file, head[1] - 12, SEEK_CUR), 0);
			continue;
		}
		assert_int_equal(fread(rest + 1, sizeof(rest[0]), 2, file), 2);
		assert_true(rest[0] < MEMBERS);
		time = (uint64_t)rest[1] << 32 | rest[2];
		assert_true(time >= last);
		last = time;
		n++;
		assert_int_equal(fseek(file, head[1] - 20, SEEK_CUR), 0);
	}
	fclose(file);
	return n;
}

static void storm(const char *faults, bool capture)
{
	char path[] = "/tmp/skua-trunk-XXXXXX";
	struct storm *s = calloc(1, sizeof(*s));
	uint64_t lost = 0;

	assert_non_null(s);
	alarm(240);
	s->lossy = faults;
	s->t = trunk_create(MEMBERS);
	assert_non_null(s->t);
	if (capture) {
		close(mkstemp(path));
		s->pcap = wire_pcap_open(path);
		assert_non_null(s->pcap);
	}
	for (unsigned int i = 0; i < MEMBERS; i++)
		storm_open(s, i, faults);
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_int_equal(pthread_create(&s->m[i].thread, NULL, storm_main, &s->m[i]), 0);
	while (!over(s)) {
		struct timespec ms = { .tv_nsec = 10000000 };

		nanosleep(&ms, NULL);
	}
	storm_finish(s);
	assert_int_equal(atomic_load(&s->wrong), 0);
	for (unsigned int i = 0; i < MEMBERS; i++) {
		struct stormer *m = &s->m[i];

		assert_int_equal(m->left, 0);
		wire_stats_each(m->w, count_drops, m);
		assert_int_equal(m->drops, 0);
		lost += m->frames;
		wire_destroy(m->w);
		close(m->epfd);
		close(m->end);
	}
	if (faults)
		assert_true(lost > 100);
	else
		assert_int_equal(s->got, s->sent);
	trunk_destroy(s->t);
	wire_pcap_close(s->pcap);
	if (capture) {
		assert_int_equal(read_capture(path), MEMBERS * FRAMES);
		unlink(path);
	}
	free(s);
	alarm(0);
}

static void test_storm(void **state)
{
	(void)state;
	storm(NULL, false);
}

static void test_storm_capture(void **state)
{
	(void)state;
	storm(NULL, true);
}

static void test_storm_faults(void **state)
{
	(void)state;
	storm("loss=1%,delay=50us,all", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pending, setup, teardown),
		cmocka_unit_test_setup_teardown(test_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_station, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fair, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sleep, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_storm_capture),
		cmocka_unit_test(test_storm_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
