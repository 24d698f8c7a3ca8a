// SPDX-License-Identifier: GPL-2.0
/*
 * skua-model: device functions, their vfio-user servers and the wire between
 * them, driven by one loop in one thread.
 *
 * When it has nothing to do it sleeps in epoll. After it has worked it looks for more for a
 * few microseconds before it sleeps again, where that pays: see spin.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "host/event.h"
#include "host/nofile.h"
#include "host/path.h"
#include "host/processor.h"
#include "host/vfu.h"
#include "host/wakeup.h"
#include "log.h"
#include "model.h"
#include "options.h"
#include "spin.h"
#include "wire/wire.h"

#define NSEC_PER_SEC	1000000000ull
/*
 * Nanoseconds in one turn of the loop for each of: the messages of one client, the work of
 * one function, the frames delivered to one station.
 */
#define TURN_NSEC	200000u
/* Slices of a processor: a wake-up is not to wait until those of a guest that polls end. */
#define SLICE_NSEC	100000u
/*
 * While there is work, sockets are asked for more no sooner than after so many nanoseconds:
 * that is as much work as a short message is, and a system call costs half as much.
 */
#define ASK_NSEC	4000u
#define EVENTS		64
/* File descriptors of the model's own: standard streams, epoll, signals, captures, files. */
#define DESCRIPTORS	64

/* One NIC: its core between its guest and its wire port. */
struct function {
	char name[16];
	struct log_limit log;
	struct vfu *vfu;
	struct skua_dev *dev;
	struct wire_port *port;
	uint64_t messages;	/* handled up to the last turn, and indices found in records */
};

/* A link of the wire to the outside. */
struct link_source {
	struct event_source src;
	struct wire *wire;
	const char *name;
	int epfd;
	int fd;
};

struct daemon {
	struct options opt;
	int epfd;
	int sigfd;
	struct event_source signals;
	struct wakeup wakeup;
	struct control *control;
	struct wire *wire;
	struct vfu_bus bus[OPT_MAX_BUSES];
	struct function nics[OPT_MAX_NICS];
	struct link_source links[OPT_MAX_LINKS];
	struct spin spin;
	bool stop;
};

static struct daemon daemon_state;

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

	if (level > 1 + daemon_state.opt.verbose)
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
	wire_settle(daemon_state.wire, wire);
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

static bool port_rx_train(void *priv, void *head, size_t len, const struct skua_train *train)
{
	return skua_dev_rx_train(((struct function *)priv)->dev, head, len, train);
}

static void port_train_done(void *priv, const struct skua_train *train)
{
	skua_dev_train_done(((struct function *)priv)->dev, train);
}

static const struct wire_trains trains = { .rx = port_rx_train, .done = port_train_done };

static int die(const char *what, const char *why)
{
	fprintf(stderr, "skua-model: %s: %s\n", what, why);
	return -1;
}

static int add_nic(struct daemon *d, unsigned int i)
{
	const struct opt_nic *nic = &d->opt.nics[i];
	struct function *fn = &d->nics[i];
	struct vfu_cfg host = {
		.path = nic->socket,
		.epfd = d->epfd,
		.turn_ns = TURN_NSEC,
		.bus = nic->has_bus ? &d->bus[nic->bus] : NULL,
		.settle = settle_all,
		.settle_priv = d->wire,
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
		.caps_off = d->opt.caps_off,
		.log = log_msg,
		.log_priv = fn,
	};

	memcpy(cfg.mac, nic->mac, sizeof(cfg.mac));
	snprintf(fn->name, sizeof(fn->name), "nic%u", i);
	fn->port = wire_add_dev(d->wire, fn->name, port_rx, fn);
	if (!fn->port)
		return die(fn->name, strerror(errno));
	if (nic->spoofchk)
		wire_port_only_mac(fn->port, nic->mac);
	fn->vfu = vfu_create(&host);
	if (!fn->vfu)
		return die(nic->socket, strerror(errno));
	fn->dev = skua_dev_create(&cfg, &vfu_host_ops, fn->vfu, &wire_ops, fn->port);
	if (!fn->dev)
		return die(fn->name, strerror(errno));
	wire_port_on_room(fn->port, port_room);
	wire_port_trains(fn->port, &trains);
	vfu_set_dev(fn->vfu, fn->dev);
	return 0;
}

static void link_ready(struct event_source *src, uint32_t events)
{
	struct link_source *link = (void *)src;

	(void)events;
	if (wire_fd_ready(link->wire, link->fd))
		return;
	epoll_ctl(link->epfd, EPOLL_CTL_DEL, link->fd, NULL);
	die(link->name, "stopped: file descriptors that came with frames do not close");
}

static int add_link(struct daemon *d, unsigned int i)
{
	const struct opt_link *opt = &d->opt.links[i];
	struct link_source *link = &d->links[i];
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &link->src };
	char err[256] = "";

	link->src.ready = link_ready;
	link->wire = d->wire;
	link->name = opt->tap ? opt->tap : opt->local;
	link->epfd = d->epfd;
	link->fd = opt->tap ? wire_add_tap(d->wire, opt->tap, err, sizeof(err)) :
		   wire_add_dgram(d->wire, opt->local, opt->remote, err, sizeof(err));
	if (link->fd < 0)
		return die(opt->tap ? "--tap" : "--dgram", err);
	if (epoll_ctl(d->epfd, EPOLL_CTL_ADD, link->fd, &ev))
		return die("epoll", strerror(errno));
	return 0;
}

static void put_counter(void *priv, const char *port, const char *counter, uint64_t value)
{
	fprintf(priv, "wire.%s.%s %" PRIu64 "\n", port, counter, value);
}

static void write_stats(const struct daemon *d)
{
	FILE *f;
	int fd;

	if (!d->opt.stats)
		return;
	fd = path_create(d->opt.stats);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		die(d->opt.stats, strerror(fd < 0 ? -fd : errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned int i = 0; i < d->opt.num_nics; i++)
		fprintf(f, "host.%s.messages %" PRIu64 "\n", d->nics[i].name,
			vfu_messages(d->nics[i].vfu));
	wire_stats_each(d->wire, put_counter, f);
	if (fclose(f))
		die(d->opt.stats, strerror(errno));
}

static void signals_ready(struct event_source *src, uint32_t events)
{
	struct daemon *d = (void *)((char *)src - offsetof(struct daemon, signals));
	struct signalfd_siginfo info;

	(void)events;
	if (read(d->sigfd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1)
		write_stats(d);
	else
		d->stop = true;
}

static int add_signals(struct daemon *d)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &d->signals };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	signal(SIGPIPE, SIG_IGN);
	d->signals.ready = signals_ready;
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return die("signalfd", strerror(errno));
	d->sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->sigfd < 0 || epoll_ctl(d->epfd, EPOLL_CTL_ADD, d->sigfd, &ev))
		return die("signalfd", strerror(errno));
	return 0;
}

/* Is it the one of that name, or is none named? */
static bool named(const struct function *fn, const char *name, size_t len)
{
	return !len || (strlen(fn->name) == len && !memcmp(fn->name, name, len));
}

/*
 * What is said of one NIC: @what, for which @sole tells that no other NIC is meant. False: no
 * further one is to be told.
 */
typedef bool (*nic_line)(struct daemon *d, struct function *fn, const char *what, bool sole,
			 char *answer, size_t room);

/* "[NIC/]WHAT": for the one NIC, or for all of them. */
static void for_nics(struct daemon *d, const char *arg, nic_line line, char *answer, size_t room)
{
	const char *slash = strchr(arg, '/');
	size_t len = slash ? (size_t)(slash - arg) : 0;
	const char *what = slash ? slash + 1 : arg;
	bool sole = len || d->opt.num_nics == 1;
	unsigned int num = 0;

	*answer = '\0';
	for (unsigned int i = 0; i < d->opt.num_nics; i++) {
		if (!named(&d->nics[i], arg, len))
			continue;
		num++;
		if (!line(d, &d->nics[i], what, sole, answer, room))
			return;
	}
	if (!num)
		snprintf(answer, room, "no NIC is called '%.*s'", (int)len, arg);
}

/* "SPEC" adds rules; "show": the answer lists them. */
static bool cmd_fault(struct daemon *d, struct function *fn, const char *spec, bool sole,
		      char *answer, size_t room)
{
	size_t at;

	(void)sole;
	if (strcmp(spec, "show"))
		return !skua_dev_cmd_fault(fn->dev, spec, answer, room);
	at = strlen(answer);
	at += snprintf(answer + at, room - at, "%s%s: ", fn != d->nics ? " " : "", fn->name);
	if (at >= room)
		return false;
	skua_dev_cmd_fault_show(fn->dev, answer + at, room - at);
	return true;
}

/* "VERB [ARG]"; what is shown is shown of one NIC. */
static bool tlp(struct daemon *d, struct function *fn, const char *what, bool sole,
		char *answer, size_t room)
{
	(void)d;
	if (skua_dev_tlp(fn->dev, what, answer, room))
		return false;
	if (!*answer || sole)
		return true;
	snprintf(answer, room, "'%s' needs the name of a NIC: NIC/%s", what, what);
	return false;
}

/* "show": of one NIC. */
static bool onchip(struct daemon *d, struct function *fn, const char *what, bool sole,
		   char *answer, size_t room)
{
	(void)d;
	*answer = '\0';
	if (strcmp(what, "show"))
		snprintf(answer, room, "onchip knows show, not '%s'", what);
	else if (!sole)
		snprintf(answer, room, "'show' needs the name of a NIC: NIC/show");
	else
		skua_dev_onchip(fn->dev, answer, room);
	return !strcmp(what, "show") && sole;
}

/* "SPEC" adds faults, "off" removes all of them and forgets the flows. */
static void wire_faults(struct daemon *d, const char *spec, char *answer, size_t room)
{
	if (!strcmp(spec, "off"))
		wire_fault_clear(d->wire);
	else
		wire_fault(d->wire, spec, answer, room);
}

static void answer_control(void *priv, char *line, char *answer, size_t room)
{
	struct daemon *d = priv;
	char *arg = strchr(line, ' ');

	if (arg)
		*arg++ = '\0';
	if (arg && !strcmp(line, "cmd-fault"))
		for_nics(d, arg, cmd_fault, answer, room);
	else if (arg && !strcmp(line, "fault"))
		wire_faults(d, arg, answer, room);
	else if (arg && !strcmp(line, "tlp"))
		for_nics(d, arg, tlp, answer, room);
	else if (arg && !strcmp(line, "onchip"))
		for_nics(d, arg, onchip, answer, room);
	else
		snprintf(answer, room, "unknown command '%s', or its argument is missing", line);
	if (!*answer)
		snprintf(answer, room, "ok");
}

static int setup(struct daemon *d)
{
	const struct options *opt = &d->opt;
	char err[256] = "";

	d->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (d->epfd < 0)
		return die("epoll", strerror(errno));
	if (wakeup_open(&d->wakeup, d->epfd))
		return die("timerfd", strerror(errno));
	if (add_signals(d))
		return -1;
	d->wire = wire_create(opt->seed);
	if (!d->wire)
		return die("cannot create the wire", strerror(errno));
	wire_set_clock(d->wire, wire_now, NULL);
	wire_set_turn(d->wire, TURN_NSEC);
	for (unsigned int i = 0; i < opt->num_nics; i++) {
		if (add_nic(d, i))
			return -1;
	}
	for (unsigned int i = 0; i < opt->num_links; i++) {
		if (add_link(d, i))
			return -1;
	}
	for (unsigned int i = 0; i < opt->num_faults; i++) {
		if (wire_fault(d->wire, opt->faults[i], err, sizeof(err)))
			return die("--fault", err);
	}
	for (unsigned int i = 0; i < opt->num_cmd_faults; i++) {
		for_nics(d, opt->cmd_faults[i], cmd_fault, err, sizeof(err));
		if (*err)
			return die("--cmd-fault", err);
	}
	if (opt->control) {
		d->control = control_create(opt->control, d->epfd, answer_control, d);
		if (!d->control)
			return die(opt->control, strerror(errno));
	}
	if (opt->pcap && wire_pcap(d->wire, opt->pcap, err, sizeof(err)))
		return die("--pcap", err);
	return 0;
}

static void teardown(struct daemon *d)
{
	for (unsigned int i = 0; i < d->opt.num_nics; i++) {
		struct function *fn = &d->nics[i];

		if (fn->vfu)
			vfu_shutdown(fn->vfu);
		if (fn->dev)
			skua_dev_destroy(fn->dev);
		vfu_destroy(fn->vfu);
	}
	control_destroy(d->control);
	if (d->wire)
		wire_destroy(d->wire);
	if (d->sigfd > 0)
		close(d->sigfd);
	if (d->wakeup.fd > 0)
		wakeup_close(&d->wakeup);
	if (d->epfd > 0)
		close(d->epfd);
}

/*
 * Do everything that is due, each for a bounded time. *@more: some of it has work left.
 * *@hot: doorbell records are to be looked at again. Returns whether anything was done, looks
 * that found nothing left out.
 */
static bool turn(struct daemon *d, bool *more, bool *hot)
{
	uint64_t now = now_ns();
	bool did = false;

	*more = false;
	*hot = false;
	for (unsigned int i = 0; i < d->opt.num_nics; i++) {
		struct function *fn = &d->nics[i];

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
	if (wire_deadline(d->wire) <= now) {
		did = true;
		wire_poll(d->wire, now);
		/* What was delivered is worked on in the next turn. */
		*more = true;
	}
	return did || *more;
}

/* Before the loop sleeps: look at no doorbell records any more. True: there is work after all. */
static bool rest(struct daemon *d)
{
	bool found = false;

	for (unsigned int i = 0; i < d->opt.num_nics; i++)
		found |= skua_dev_rest(d->nics[i].dev);
	return found;
}

/* The earliest deadline; UINT64_MAX if there is none. */
static uint64_t deadline(const struct daemon *d)
{
	uint64_t next = wire_deadline(d->wire);

	for (unsigned int i = 0; i < d->opt.num_nics; i++) {
		uint64_t t = vfu_deadline(d->nics[i].vfu);

		if (t < next)
			next = t;
	}
	return next;
}

/*
 * Handle what has come. If there is nothing, @sleep until something does or a deadline is
 * over. Returns how many things came, the end of the sleep left out, or an error number.
 */
static int wait_events(struct daemon *d, bool sleep)
{
	int n = sleep ? wakeup_by(&d->wakeup, deadline(d)) : 0, came = 0;
	struct epoll_event ev[EVENTS];

	if (n < 0)
		return n;
	n = epoll_wait(d->epfd, ev, EVENTS, sleep ? -1 : 0);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct event_source *src = ev[i].data.ptr;

		src->ready(src, ev[i].events);
		came += src != &d->wakeup.src;
	}
	return came;
}

/* For whom something was done: the last function that had messages, or the one before. */
static unsigned int source(struct daemon *d)
{
	unsigned int source = d->spin.source;

	for (unsigned int i = 0; i < d->opt.num_nics; i++) {
		struct function *fn = &d->nics[i];
		uint64_t messages = vfu_messages(fn->vfu) + skua_dev_found(fn->dev);

		if (messages != fn->messages)
			source = i;
		fn->messages = messages;
	}
	return source;
}

/* Nothing is left to do: look for more at once? */
static bool look(struct daemon *d, uint64_t now)
{
	if (spin_looks(&d->spin, now))
		return true;
	return spin_moves(&d->spin, now) && processor_leave();
}

static int loop(struct daemon *d)
{
	bool did, more, hot, found = false;
	uint64_t now, asked = 0;
	int n = 0;

	while (!d->stop) {
		did = turn(d, &more, &hot) || found;
		now = now_ns();
		if (did || n)
			spin_work(&d->spin, source(d), now);
		n = 0;
		found = false;
		if (did && now - asked < ASK_NSEC)
			continue;
		asked = now;
		more = more || look(d, now);
		found = !more && hot && rest(d);
		n = wait_events(d, !more && !found);
		if (n < 0)
			return die("epoll", strerror(-n));
	}
	return 0;
}

/*
 * With fewer the model works, too. But descriptors for which there is no room are closed by
 * the kernel in this thread, and that may take long.
 */
static void reserve_descriptors(const struct options *opt)
{
	unsigned int num = DESCRIPTORS + opt->num_nics * VFU_FDS_MAX +
			   opt->num_links * WIRE_LINK_FDS_MAX + CONTROL_FDS_MAX;
	int got = nofile_reserve(num);

	if (got < 0)
		die("file descriptors", strerror(-got));
	else if ((unsigned int)got < num)
		fprintf(stderr, "skua-model: RLIMIT_NOFILE allows %d file descriptors, clients can use up to %u\n",
			got, num);
}

int main(int argc, char **argv)
{
	struct daemon *d = &daemon_state;
	int ret = options_parse(&d->opt, argc, argv);

	if (ret >= 0)
		return ret;
	reserve_descriptors(&d->opt);
	processor_slice(SLICE_NSEC);
	spin_init(&d->spin);
	ret = setup(d);
	if (!ret) {
		puts("ready");
		fflush(stdout);
		ret = loop(d);
		write_stats(d);
	}
	teardown(d);
	return ret ? 1 : 0;
}
