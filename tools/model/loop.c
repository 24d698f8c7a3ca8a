// SPDX-License-Identifier: GPL-2.0
/*
 * A loop: what one thread does, see loop.h.
 *
 * A loop without work sleeps in epoll_wait(). Before that it polls for new work for some
 * microseconds, if that is likely to find any: see spin.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "host/processor.h"
#include "host/vfu.h"
#include "loop.h"
#include "model.h"
#include "wire/trunk.h"
#include "wire/wire.h"

#define NSEC_PER_SEC	1000000000ull
/*
 * Limit of time in one turn of the loop, in ns, for each of: the messages of one client, the
 * work of one function, and the frames delivered to one station.
 */
#define TURN_NSEC	200000u
/* Scheduler slice: a short one lets the loop preempt a guest that polls when it wakes up. */
#define SLICE_NSEC	100000u
/*
 * While there is work, epoll_wait() is called no more often than this, in ns. It is about the
 * time that a short message takes; the system call takes half of that.
 */
#define ASK_NSEC	4000u
#define EVENTS		64

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static uint64_t wire_now(void *priv)
{
	(void)priv;
	return now_ns();
}

static void log_msg(void *priv, int level, const char *msg)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	struct function *fn = priv;
	uint64_t left_out;

	if (level > 1 + fn->loop->verbose)
		return;
	/* Debug messages are only logged if -v -v was given, and then all of them. */
	if (level < 3 && !log_allow(&fn->log, now_ns(), &left_out))
		return;
	if (level < 3 && left_out)
		fprintf(stderr, "skua-model: %s: %" PRIu64 " messages left out\n", fn->name,
			left_out);
	fprintf(stderr, "skua-model: %s: %s: %s\n", fn->name,
		names[level < 0 ? 0 : level > 3 ? 3 : level], msg);
}

static void port_send(void *wire, const void *frame, size_t len)
{
	wire_port_send(wire, frame, len);
}

static void port_send_pending(void *wire, void *frame, size_t len)
{
	wire_port_send_pending(wire, frame, len);
}

static void *port_frame(void *wire, size_t size)
{
	return wire_port_frame(wire, size);
}

static bool port_full(void *wire, const uint8_t dmac[6])
{
	return wire_port_full(wire, dmac);
}

static bool port_direct(void *wire, const uint8_t dmac[6])
{
	return wire_port_direct(wire, dmac);
}

static void port_send_train(void *wire, void *head, size_t len, const struct skua_train *train)
{
	wire_port_send_train(wire, head, len, train);
}

static void port_settle(void *wire)
{
	wire_port_settle(wire);
}

static void settle_all(void *wire)
{
	wire_settle(wire, NULL);
}

static const struct skua_wire_ops wire_ops = {
	.send = port_send,
	.send_pending = port_send_pending,
	.frame = port_frame,
	.full = port_full,
	.direct = port_direct,
	.send_train = port_send_train,
	.settle = port_settle,
};

static void port_room(void *priv)
{
	struct function *fn = priv;

	skua_dev_room(fn->dev);
}

static void port_rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct function *fn = priv;

	if (skua_dev_rx(fn->dev, frame, len, icrc_pending))
		wire_port_again(fn->port);
}

static void port_rx_soon(void *priv, const void *frame, size_t len)
{
	skua_dev_rx_soon(((struct function *)priv)->dev, frame, len);
}

static bool port_rx_train(void *priv, void *head, size_t len, const struct skua_train *train)
{
	return skua_dev_rx_train(((struct function *)priv)->dev, head, len, train);
}

static void port_train_done(void *priv, const struct skua_train *train)
{
	skua_dev_train_done(((struct function *)priv)->dev, train);
}

static const struct wire_trains trains = { .rx = port_rx_train, .done = port_train_done };

int loop_error(const char *what, const char *why)
{
	fprintf(stderr, "skua-model: %s: %s\n", what, why);
	return -1;
}

int loop_add_nic(struct loop *l, struct function *fn, const struct opt_nic *nic,
		 unsigned int number, struct vfu_bus *bus, uint64_t caps_off)
{
	struct vfu_cfg host = {
		.path = nic->socket,
		.epfd = l->epfd,
		.turn_ns = TURN_NSEC,
		.bus = bus,
		.settle = settle_all,
		.settle_priv = l->wire,
		.log = log_msg,
		.log_priv = fn,
	};
	struct skua_dev_cfg cfg = {
		.serial = nic->serial,
		.onchip = nic->onchip,
		.whole = nic->whole,
		.onload = nic->onload,
		.msix_vectors = nic->vectors,
		.turn_ns = TURN_NSEC,
		.push_segs = nic->push,
		.log_objects = nic->objects,
		.caps_off = caps_off,
		.log = log_msg,
		.log_priv = fn,
	};

	memcpy(cfg.mac, nic->mac, sizeof(cfg.mac));
	snprintf(fn->name, sizeof(fn->name), "nic%u", number);
	fn->loop = l;
	l->nic[l->num_nics++] = fn;
	wire_number_ports(l->wire, number);
	fn->port = wire_add_dev(l->wire, fn->name, port_rx, fn);
	if (!fn->port)
		return loop_error(fn->name, strerror(errno));
	if (nic->spoofchk)
		wire_port_only_mac(fn->port, nic->mac);
	fn->vfu = vfu_create(&host);
	if (!fn->vfu)
		return loop_error(nic->socket, strerror(errno));
	fn->dev = skua_dev_create(&cfg, &vfu_host_ops, fn->vfu, &wire_ops, fn->port);
	if (!fn->dev)
		return loop_error(fn->name, strerror(errno));
	wire_port_on_room(fn->port, port_room);
	wire_port_trains(fn->port, &trains);
	wire_port_on_next(fn->port, port_rx_soon);
	vfu_set_dev(fn->vfu, fn->dev);
	return 0;
}

static int link_poll(struct link_source *link)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &link->src };

	link->waits = false;
	return epoll_ctl(link->epfd, EPOLL_CTL_ADD, link->fd, &ev);
}

static void link_room(void *priv)
{
	struct link_source *link = priv;

	if (link->waits && link_poll(link))
		loop_error(link->name, strerror(errno));
}

static void link_ready(struct event_source *src, uint32_t events)
{
	struct link_source *link = (void *)src;
	enum wire_fd next = wire_fd_ready(link->wire, link->fd);

	(void)events;
	if (next == WIRE_FD_POLL)
		return;
	/* A descriptor that is not read stays readable: polled, it would keep the loop awake. */
	epoll_ctl(link->epfd, EPOLL_CTL_DEL, link->fd, NULL);
	link->waits = next == WIRE_FD_WAIT;
	if (!link->waits)
		loop_error(link->name,
			   "stopped: file descriptors that came with frames do not close");
}

int loop_add_link(struct loop *l, struct link_source *link, const struct opt_link *opt)
{
	char err[256] = "";

	link->src.ready = link_ready;
	link->wire = l->wire;
	link->name = opt->tap ? opt->tap : opt->local;
	link->epfd = l->epfd;
	link->fd = opt->tap ? wire_add_tap(l->wire, opt->tap, err, sizeof(err)) :
		   wire_add_dgram(l->wire, opt->local, opt->remote, err, sizeof(err));
	if (link->fd < 0)
		return loop_error(opt->tap ? "--tap" : "--dgram", err);
	wire_fd_on_room(l->wire, link->fd, link_room, link);
	if (link_poll(link))
		return loop_error("epoll", strerror(errno));
	return 0;
}

/*
 * Do all work that is due, each part for a bounded time. *@more: there is work left.
 * *@hot: only doorbell records are to be looked at again. Returns whether any work was done;
 * a look at doorbell records without a result does not count.
 */
static bool turn(struct loop *l, bool *more, bool *hot)
{
	uint64_t now = now_ns();
	bool did = false;

	*more = false;
	*hot = false;
	for (unsigned int i = 0; i < l->num_nics; i++) {
		struct function *fn = l->nic[i];

		if (vfu_pending(fn->vfu)) {
			did = true;
			*more |= vfu_run(fn->vfu);
		}
		if (vfu_deadline(fn->vfu) <= now) {
			did = true;
			vfu_tick(fn->vfu, now);
		}
		if (skua_dev_run(fn->dev)) {
			*hot |= skua_dev_only_looks(fn->dev);
			*more |= !skua_dev_only_looks(fn->dev);
		}
	}
	if (wire_deadline(l->wire) <= now) {
		did = true;
		wire_poll(l->wire, now);
		/* The functions handle the frames delivered here in the next turn. */
		*more = true;
	}
	return did || *more;
}

/* Before a sleep: have doorbells rung instead of looking at records. True: work was found. */
static bool rest(struct loop *l)
{
	bool found = false;

	for (unsigned int i = 0; i < l->num_nics; i++)
		found |= skua_dev_rest(l->nic[i]->dev);
	return found;
}

/* The earliest deadline; UINT64_MAX if there is none. */
static uint64_t deadline(const struct loop *l)
{
	uint64_t next = wire_deadline(l->wire);

	for (unsigned int i = 0; i < l->num_nics; i++) {
		uint64_t t = vfu_deadline(l->nic[i]->vfu);

		if (t < next)
			next = t;
	}
	return next;
}

/*
 * Handle the events of the epoll set. With @sleep wait for one, or for the next deadline, unless
 * another thread has sent frames. Returns the number of events other than that of the timer, or
 * a negative errno.
 */
static int wait_events(struct loop *l, bool sleep)
{
	bool sleeps = sleep && wire_sleeps(l->wire);
	int n = sleeps ? wakeup_by(&l->wakeup, deadline(l)) : 0, came = 0;
	struct epoll_event ev[EVENTS];

	if (!n) {
		n = epoll_wait(l->epfd, ev, EVENTS, sleeps ? -1 : 0);
		n = n < 0 ? -errno : n;
	}
	if (sleeps)
		wire_wakes(l->wire);
	if (n < 0)
		return n == -EINTR ? 0 : n;
	for (int i = 0; i < n; i++) {
		struct event_source *src = ev[i].data.ptr;

		src->ready(src, ev[i].events);
		came += src != &l->wakeup.src;
	}
	return came;
}

/*
 * The source of the work that was done, for spin.h: the last function with new messages, else
 * the other threads, if frames came from there, else the same source as before.
 */
static unsigned int source(struct loop *l)
{
	uint64_t far = wire_trunk_frames(l->wire);
	unsigned int source = l->spin.source;

	if (far != l->far_frames)
		source = SPIN_SOURCES - 1;
	l->far_frames = far;
	for (unsigned int i = 0; i < l->num_nics; i++) {
		struct function *fn = l->nic[i];
		uint64_t messages = vfu_messages(fn->vfu) + skua_dev_found(fn->dev);

		if (messages != fn->messages)
			source = i;
		fn->messages = messages;
	}
	return source;
}

/* There is no work left: poll for more, rather than sleep? */
static bool look(struct loop *l, uint64_t now)
{
	if (spin_looks(&l->spin, now))
		return true;
	return spin_moves(&l->spin, now) && processor_leave();
}

int loop_run(struct loop *l)
{
	bool did, more, hot, found = false;
	uint64_t now, asked = 0;
	int n = 0;

	while (!l->stop) {
		did = turn(l, &more, &hot) || found;
		now = now_ns();
		if (did || n)
			spin_work(&l->spin, source(l), now);
		n = 0;
		found = false;
		if (did && now - asked < ASK_NSEC)
			continue;
		asked = now;
		more = more || look(l, now);
		found = !more && hot && rest(l);
		n = wait_events(l, !more && !found);
		if (n < 0)
			return loop_error("epoll", strerror(-n));
	}
	return 0;
}

int loop_open(struct loop *l, const struct options *opt)
{
	l->verbose = opt->verbose;
	spin_init(&l->spin);
	l->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epfd < 0)
		return loop_error("epoll", strerror(errno));
	if (wakeup_open(&l->wakeup, l->epfd))
		return loop_error("timerfd", strerror(errno));
	l->wire = wire_create(opt->seed);
	if (!l->wire)
		return loop_error("cannot create the wire", strerror(errno));
	wire_set_clock(l->wire, wire_now, NULL);
	wire_set_turn(l->wire, TURN_NSEC);
	return 0;
}

/* The event descriptor only ends the sleep; wire_poll() finds the frames. */
static void far_ready(struct event_source *src, uint32_t events)
{
	(void)src;
	(void)events;
}

int loop_join(struct loop *l, struct trunk *t, unsigned int member)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.ptr = &l->far };
	int fd = wire_join(l->wire, t, member);

	l->far.ready = far_ready;
	if (fd < 0 || epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev))
		return loop_error("cannot join the wires of the threads", strerror(errno));
	return 0;
}

void loop_close(struct loop *l)
{
	if (l->wire)
		wire_destroy(l->wire);
	if (l->wakeup.fd > 0)
		wakeup_close(&l->wakeup);
	if (l->epfd >= 0)
		close(l->epfd);
}

void loop_remove_nics(struct loop *l)
{
	for (unsigned int i = 0; i < l->num_nics; i++) {
		struct function *fn = l->nic[i];

		if (fn->vfu)
			vfu_shutdown(fn->vfu);
		if (fn->dev)
			skua_dev_destroy(fn->dev);
		vfu_destroy(fn->vfu);
	}
	l->num_nics = 0;
}

/* --- threads --- */

/* Do the call of loop_call(), if there is one. The lock is held, but not during the call. */
static void answer(struct loop *l)
{
	void (*fn)(struct loop *l, void *arg) = l->fn;

	if (!fn)
		return;
	pthread_mutex_unlock(&l->lock);
	fn(l, l->arg);
	pthread_mutex_lock(&l->lock);
	l->fn = NULL;
	pthread_cond_broadcast(&l->changed);
}

static void called(struct event_source *src, uint32_t events)
{
	struct loop *l = (void *)((char *)src - offsetof(struct loop, calls));
	uint64_t times;

	(void)events;
	if (read(l->call_fd, &times, sizeof(times)) < 0)
		return;
	pthread_mutex_lock(&l->lock);
	answer(l);
	pthread_mutex_unlock(&l->lock);
}

/* Serve calls until loop_begin() (returns true) or loop_end() (false). */
static bool wait_for_begin(struct loop *l)
{
	bool begun;

	pthread_mutex_lock(&l->lock);
	while (!l->begun && !l->ended) {
		if (l->fn)
			answer(l);
		else
			pthread_cond_wait(&l->changed, &l->lock);
	}
	begun = l->begun;
	l->begun = false;
	pthread_mutex_unlock(&l->lock);
	return begun;
}

static void *loop_main(void *arg)
{
	struct loop *l = arg;

	loop_tune();
	while (wait_for_begin(l)) {
		if (!loop_run(l))
			continue;
		pthread_mutex_lock(&l->lock);
		l->failed = true;
		pthread_mutex_unlock(&l->lock);
		kill(getpid(), SIGTERM);
	}
	return NULL;
}

void loop_tune(void)
{
	processor_slice(SLICE_NSEC);
}

int loop_start(struct loop *l, const char *name)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &l->calls };
	int err;

	l->calls.ready = called;
	l->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->call_fd < 0)
		return loop_error("eventfd", strerror(errno));
	if (epoll_ctl(l->epfd, EPOLL_CTL_ADD, l->call_fd, &ev)) {
		err = errno;
		close(l->call_fd);
		return loop_error("epoll", strerror(err));
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	err = pthread_create(&l->thread, NULL, loop_main, l);
	if (err) {
		pthread_cond_destroy(&l->changed);
		pthread_mutex_destroy(&l->lock);
		close(l->call_fd);
		return loop_error("cannot create a thread", strerror(err));
	}
	l->threaded = true;
	pthread_setname_np(l->thread, name);
	return 0;
}

static void tell(struct loop *l, bool *what)
{
	pthread_mutex_lock(&l->lock);
	*what = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

void loop_begin(struct loop *l)
{
	tell(l, &l->begun);
}

static void set_stop(struct loop *l, void *arg)
{
	(void)arg;
	l->stop = true;
}

void loop_halt(struct loop *l)
{
	loop_call(l, set_stop, NULL);
}

bool loop_end(struct loop *l)
{
	tell(l, &l->ended);
	pthread_join(l->thread, NULL);
	l->threaded = false;
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	close(l->call_fd);
	return !l->failed;
}

void loop_call(struct loop *l, void (*fn)(struct loop *l, void *arg), void *arg)
{
	static const uint64_t one = 1;

	if (!l->threaded) {
		fn(l, arg);
		return;
	}
	pthread_mutex_lock(&l->lock);
	l->fn = fn;
	l->arg = arg;
	pthread_cond_broadcast(&l->changed);
	/* The write can fail only if the counter is full: after 2^64 calls without a read. */
	if (write(l->call_fd, &one, sizeof(one)) < 0)
		loop_error("eventfd", strerror(errno));
	while (l->fn)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
}
