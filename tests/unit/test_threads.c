// SPDX-License-Identifier: GPL-2.0
/*
 * Two devices, each with a switch and a thread of its own, and a trunk between them, as with
 * skua-model --threads: both send each other messages of all kinds at once, and every byte
 * arrives, whatever the wire does and whoever looks at it meanwhile.
 */
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
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "rc.h"
#include "wire/pcapng.h"
#include "wire/trunk.h"
#include "wire/wire.h"

#define N(a)		(sizeof(a) / sizeof((a)[0]))
#define MESSAGES	60
#define PLACE		(64u << 10)
#define HALF		(RC_BUF / 2)
#define NSEC_PER_SEC	1000000000ull

_Static_assert(MESSAGES * PLACE <= HALF, "places of both sides");

struct message {
	enum skua_wqe_op op;
	uint32_t len;
};

/**
 * struct side - what one thread has
 * @p: all of it
 * @i: which side
 * @thread: the thread
 * @w: its switch
 * @epfd: it sleeps there
 * @wake: so it is told that there is something to do besides
 * @recvs: completions of receives that are to come
 * @m: messages that it sends
 * @sent: good completions of sends
 * @got: good completions of receives
 */
struct side {
	struct pair *p;
	int i;
	pthread_t thread;
	struct wire *w;
	int epfd, wake;
	unsigned int recvs;
	struct message m[MESSAGES];
	unsigned int sent, got;
};

/**
 * struct pair - both sides
 * @ready: sides that have all completions of a round
 * @end: the round is over
 * @call: what the thread of each side is to do between two turns, NULL: nothing
 * @bad: completions that are not good
 */
struct pair {
	struct rc rc;
	struct trunk *t;
	struct wire_pcap *pcap;
	struct side s[2];
	atomic_uint ready;
	atomic_bool end;
	void (*_Atomic call[2])(struct side *s);
	atomic_uint bad;
	uint64_t epoch;
};

static uint64_t now_ns(const struct pair *p)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec - p->epoch;
}

/* --- what a thread does --- */

static bool take_completions(struct side *s)
{
	struct rc_side *rs = &s->p->rc.s[s->i];
	struct skua_cqe cqe;
	bool any = false;

	while (mini_cq_next(&rs->m, &rs->scq, &cqe)) {
		any = true;
		s->sent++;
		if (skua_cqe_status(&cqe) != SKUA_CQE_OK)
			atomic_fetch_add(&s->p->bad, 1);
	}
	while (mini_cq_next(&rs->m, &rs->rcq, &cqe)) {
		any = true;
		s->got++;
		if (skua_cqe_status(&cqe) != SKUA_CQE_OK)
			atomic_fetch_add(&s->p->bad, 1);
	}
	return any;
}

static void turn(struct side *s)
{
	struct fake *f = &s->p->rc.s[s->i].f;

	f->now = now_ns(s->p);
	skua_dev_run(f->dev);
	if (f->deadline <= f->now) {
		f->deadline = SKUA_TIME_NEVER;
		skua_dev_tick(f->dev);
	}
	if (wire_deadline(s->w) <= f->now)
		wire_poll(s->w, f->now);
}

/* Until the next deadline, or until somebody wakes it up. */
static void rest(struct side *s)
{
	struct fake *f = &s->p->rc.s[s->i].f;
	uint64_t next = wire_deadline(s->w);
	struct epoll_event ev;
	bool sleeps;
	int ms = -1;

	if (f->deadline < next)
		next = f->deadline;
	f->now = now_ns(s->p);
	if (next != UINT64_MAX)
		ms = next > f->now ? (int)((next - f->now) / 1000000) + 1 : 0;
	sleeps = ms && wire_sleeps(s->w);
	if (epoll_wait(s->epfd, &ev, 1, sleeps ? ms : 0) == 1 && ev.data.fd == s->wake) {
		uint64_t times;

		if (read(s->wake, &times, sizeof(times)) < 0)
			atomic_fetch_add(&s->p->bad, 1);
	}
	if (sleeps)
		wire_wakes(s->w);
}

static void *side_main(void *arg)
{
	struct side *s = arg;
	struct fake *f = &s->p->rc.s[s->i].f;
	bool ready = false;

	while (!atomic_load(&s->p->end)) {
		void (*call)(struct side *) = atomic_exchange(&s->p->call[s->i], NULL);

		if (call)
			call(s);
		turn(s);
		if (take_completions(s))
			continue;
		if (!ready && s->sent == MESSAGES && s->got == s->recvs) {
			ready = true;
			atomic_fetch_add(&s->p->ready, 1);
		}
		if (!skua_dev_run(f->dev))
			rest(s);
	}
	return NULL;
}

/* --- what they are to do --- */

static const enum skua_wqe_op ops[] = {
	SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_SEND_IMM, SKUA_WQE_WRITE_IMM,
	SKUA_WQE_FAA,
};

static bool reads(enum skua_wqe_op op)
{
	return op == SKUA_WQE_READ || op == SKUA_WQE_FAA;
}

static bool takes_receive(enum skua_wqe_op op)
{
	return op == SKUA_WQE_SEND || op == SKUA_WQE_SEND_IMM || op == SKUA_WQE_WRITE_IMM;
}

/* Place @k of what side @i sends, in the memory of both. */
static uint64_t place(int i, uint32_t k)
{
	return (uint64_t)i * HALF + (uint64_t)k * PLACE;
}

static void prepare(struct pair *p, int i, unsigned int seed)
{
	struct side *s = &p->s[i];
	unsigned int draw = seed;

	s->sent = 0;
	s->got = 0;
	p->s[1 - i].recvs = 0;
	for (uint32_t k = 0; k < MESSAGES; k++) {
		enum skua_wqe_op op = ops[(unsigned int)rand_r(&draw) % N(ops)];
		uint32_t len = op == SKUA_WQE_FAA ? 8 : (unsigned int)rand_r(&draw) % (PLACE / 2);
		uint64_t at = place(i, k);
		int to = reads(op) ? i : 1 - i;

		s->m[k] = (struct message){ op, len };
		memset(p->rc.s[to].buf + at, 0x5a, len + 1);
		rc_fill(p->rc.s[1 - to].buf + at, len, seed + k);
		if (takes_receive(op)) {
			rc_recv(&p->rc, 1 - i, at, len);
			p->s[1 - i].recvs++;
		}
		rc_post_quiet(&p->rc, i, &p->rc.s[i].qp, &(struct rc_wr){
			.op = op, .len = len, .off = at, .roff = at, .imm = k });
	}
}

static void check(struct pair *p, int i, unsigned int seed)
{
	const struct side *s = &p->s[i];

	for (uint32_t k = 0; k < MESSAGES; k++) {
		uint64_t at = place(i, k);
		int to = reads(s->m[k].op) ? i : 1 - i;

		rc_check(p->rc.s[to].buf + at, s->m[k].len, seed + k);
		assert_int_equal(p->rc.s[to].buf[at + s->m[k].len], 0x5a);
	}
}

static void pause_ms(unsigned int ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000l };

	nanosleep(&ts, NULL);
}

/* Have both threads do something, and wait until they have. */
static void call(struct pair *p, void (*fn)(struct side *s))
{
	for (int i = 0; i < 2; i++) {
		atomic_store(&p->call[i], fn);
		assert_int_equal(eventfd_write(p->s[i].wake, 1), 0);
	}
	for (int i = 0; i < 2; i++)
		while (atomic_load(&p->call[i]) && atomic_load(&p->ready) < 2)
			pause_ms(1);
}

static void faults_on(struct side *s)
{
	char err[100];

	wire_fault(s->w, "loss=2%,dup=1%", err, sizeof(err));
}

static void faults_off(struct side *s)
{
	wire_fault_clear(s->w);
}

static void capture_on(struct side *s)
{
	wire_pcap_share(s->w, s->p->pcap);
}

static void capture_off(struct side *s)
{
	wire_pcap_share(s->w, NULL);
}

static void ignore(void *priv, const char *port, const char *counter, uint64_t value)
{
	(void)port;
	(void)counter;
	*(uint64_t *)priv += value;
}

static void look(struct side *s)
{
	struct skua_dev *dev = s->p->rc.s[s->i].f.dev;
	char answer[8192];
	uint64_t sum = 0;

	wire_stats_each(s->w, ignore, &sum);
	skua_dev_onchip(dev, answer, sizeof(answer));
	skua_dev_cmd_fault_show(dev, answer, sizeof(answer));
}

static void round_of(struct pair *p, unsigned int seed, bool meddle)
{
	static void (*const fns[])(struct side *) = {
		capture_on, look, faults_on, capture_off, look, faults_off, look,
	};

	for (int i = 0; i < 2; i++)
		prepare(p, i, seed * 2 + i);
	for (int i = 0; i < 2; i++)
		mini_ring(&p->rc.s[i].m, &p->rc.s[i].qp);
	atomic_store(&p->ready, 0);
	atomic_store(&p->end, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&p->s[i].thread, NULL, side_main, &p->s[i]), 0);
	for (unsigned int k = 0; atomic_load(&p->ready) < 2; k++) {
		if (meddle)
			call(p, fns[k % N(fns)]);
		else
			pause_ms(1);
	}
	atomic_store(&p->end, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(eventfd_write(p->s[i].wake, 1), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(p->s[i].thread, NULL);
	for (int i = 0; i < 2; i++)
		atomic_store(&p->call[i], NULL);
	assert_int_equal(atomic_load(&p->bad), 0);
	for (int i = 0; i < 2; i++)
		check(p, i, seed * 2 + i);
}

static void run(const struct rc_opt *opt, const char *faults, bool meddle, bool capture,
		unsigned int rounds)
{
	struct pair *p = calloc(1, sizeof(*p));
	char path[] = "/tmp/skua-threads-XXXXXX", err[100] = "";
	uint64_t lost = 0, retries = 0;

	assert_non_null(p);
	alarm(250);
	rc_open(&p->rc, opt);
	p->t = trunk_create(2);
	assert_non_null(p->t);
	close(mkstemp(path));
	p->pcap = wire_pcap_open(path);
	assert_non_null(p->pcap);
	p->epoch = now_ns(p) - p->rc.s[0].f.now;
	for (int i = 0; i < 2; i++) {
		struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.fd = -1 };
		struct side *s = &p->s[i];
		int fd;

		*s = (struct side){ .p = p, .i = i, .w = fake_wire(&p->rc.s[i].f, 7) };
		fd = wire_join(s->w, p->t, i);
		assert_true(fd >= 0);
		wire_number_ports(s->w, i);
		fake_join(&p->rc.s[i].f, s->w, i ? "nic1" : "nic0");
		wire_pcap_add_interface(p->pcap, i ? "nic1" : "nic0");
		if (faults && wire_fault(s->w, faults, err, sizeof(err)))
			fail_msg("%s", err);
		if (capture)
			wire_pcap_share(s->w, p->pcap);
		s->epfd = epoll_create1(EPOLL_CLOEXEC);
		s->wake = eventfd(0, EFD_CLOEXEC);
		assert_int_equal(epoll_ctl(s->epfd, EPOLL_CTL_ADD, fd, &ev), 0);
		ev = (struct epoll_event){ .events = EPOLLIN, .data.fd = s->wake };
		assert_int_equal(epoll_ctl(s->epfd, EPOLL_CTL_ADD, s->wake, &ev), 0);
	}
	for (unsigned int r = 1; r <= rounds; r++)
		round_of(p, r, meddle);
	for (int i = 0; i < 2; i++) {
		const struct wire_stats *st = wire_port_stats(p->rc.s[i].f.port);

		assert_int_equal(st->drop_queue + st->drop_len + st->drop_memory + st->drop_hold +
				 st->waits_ended, 0);
		assert_true(st->rx_frames > 100 && st->tx_frames > 100);
		lost += st->fault_loss;
		close(p->s[i].epfd);
		close(p->s[i].wake);
	}
	/* These are commands, whose device runs in this thread. */
	for (int i = 0; i < 2; i++)
		retries += rc_cnt(&p->rc, i, SKUA_CNT_TX_RETRANS_PKTS);
	if (faults)
		assert_true(lost > 3 && retries > 3);
	else if (!meddle)
		assert_int_equal(retries, 0);
	rc_close(&p->rc);
	trunk_destroy(p->t);
	wire_pcap_close(p->pcap);
	unlink(path);
	free(p);
	alarm(0);
}

/* Acknowledgments that nobody misses, however long a busy machine keeps a thread waiting. */
#define PATIENT	22
/* Those that are lost are missed; retries go on for some seconds. */
#define TIMEOUT	15

static struct rc_opt options(uint32_t timeout, uint32_t mtu_code)
{
	return (struct rc_opt){ .mtu_code = mtu_code, .log_sq = 8, .log_rq = 7,
				.timeout = timeout, .psn = { 0xfffff0, 0xffff00 } };
}

static void test_good(void **state)
{
	struct rc_opt opt = options(PATIENT, 3);

	(void)state;
	run(&opt, NULL, false, false, 8);
	opt.mtu_code = 5;
	run(&opt, NULL, false, true, 4);
}

static void test_bad(void **state)
{
	struct rc_opt opt = options(TIMEOUT, 3);

	(void)state;
	run(&opt, "loss=2%", false, false, 3);
	run(&opt, "loss=1%,dup=1%,reorder=1%:3,delay=20us", false, true, 3);
	opt.ext[0] = SKUA_EXT_ALWAYS;
	opt.ext[1] = SKUA_EXT_ALWAYS;
	run(&opt, "loss=3%,reorder=2%:4", false, false, 3);
}

/* Captures and faults come and go, and counters are read, while they work. */
static void test_meddled(void **state)
{
	struct rc_opt opt = options(TIMEOUT, 3);

	(void)state;
	run(&opt, NULL, true, false, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_meddled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
