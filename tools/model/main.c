// SPDX-License-Identifier: GPL-2.0
/*
 * skua-model: device functions, their vfio-user servers and the wire between them, driven by
 * one loop in one thread, or by one for each function (loop.h). This file has what concerns all
 * functions: signals, the control socket, counters, and the links to the outside.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "control.h"
#include "host/event.h"
#include "host/nofile.h"
#include "host/path.h"
#include "host/vfu.h"
#include "loop.h"
#include "model.h"
#include "options.h"
#include "wire/pcapng.h"
#include "wire/trunk.h"
#include "wire/wire.h"

/* File descriptors of the process: standard streams, epoll, signals, captures, files. */
#define DESCRIPTORS	64

/*
 * Freed memory at the end of a heap that the process keeps, and the smallest piece that is no
 * part of a heap. The largest MAP_ICM takes 2 MiB and UNMAP_ICM frees them, a client that reads
 * 1 MiB has them for its replies: if they went back to the kernel, each such pair or connection
 * would fault in 512 pages, which takes milliseconds in some virtual machines, and the other
 * functions wait as long.
 */
#define HEAP_KEPT	(32 << 20)
#define HEAP_LARGEST	(4 << 20)

struct daemon {
	struct options opt;
	int sigfd;
	struct event_source signals;
	struct control *control;
	struct vfu_bus bus[OPT_MAX_BUSES];
	struct function nics[OPT_MAX_NICS];
	struct link_source links[OPT_MAX_LINKS];
	struct loop loops[1 + OPT_MAX_NICS];	/* the first one is the main thread's */
	unsigned int num_loops;
	unsigned int loop_of[OPT_MAX_NICS];
	struct trunk *trunk;		/* with threads */
	struct wire_pcap *pcap;		/* likewise */
};

static struct daemon daemon_state;

static void put_counter(void *priv, const char *port, const char *counter, uint64_t value)
{
	fprintf(priv, "wire.%s.%s %" PRIu64 "\n", port, counter, value);
}

static void put_messages(struct loop *l, void *f)
{
	for (unsigned int i = 0; i < l->num_nics; i++)
		fprintf(f, "host.%s.messages %" PRIu64 "\n", l->nic[i]->name,
			vfu_messages(l->nic[i]->vfu));
}

static void put_wire(struct loop *l, void *f)
{
	wire_stats_each(l->wire, put_counter, f);
}

static void write_stats(struct daemon *d)
{
	FILE *f;
	int fd;

	if (!d->opt.stats)
		return;
	fd = path_create(d->opt.stats);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		loop_error(d->opt.stats, strerror(fd < 0 ? -fd : errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned int i = 0; i < d->num_loops; i++)
		loop_call(&d->loops[i], put_messages, f);
	for (unsigned int i = 0; i < d->num_loops; i++)
		loop_call(&d->loops[i], put_wire, f);
	if (fclose(f))
		loop_error(d->opt.stats, strerror(errno));
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
		d->loops[0].stop = true;
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
		return loop_error("signalfd", strerror(errno));
	d->sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (d->sigfd < 0 || epoll_ctl(d->loops[0].epfd, EPOLL_CTL_ADD, d->sigfd, &ev))
		return loop_error("signalfd", strerror(errno));
	return 0;
}

/* Is @fn the NIC of that name? An empty name stands for all NICs. */
static bool named(const struct function *fn, const char *name, size_t len)
{
	return !len || (strlen(fn->name) == len && !memcmp(fn->name, name, len));
}

/*
 * Carries out the control command @what for one NIC. @sole: the command names only this NIC.
 * False: stop, the answer is complete.
 */
typedef bool (*nic_line)(struct daemon *d, struct function *fn, const char *what, bool sole,
			 char *answer, size_t room);

/* One call of a nic_line, in the thread of the NIC. */
struct line_call {
	nic_line line;
	struct daemon *d;
	struct function *fn;
	const char *what;
	bool sole;
	char *answer;
	size_t room;
	bool go_on;
};

static void call_line(struct loop *l, void *arg)
{
	struct line_call *c = arg;

	(void)l;
	c->go_on = c->line(c->d, c->fn, c->what, c->sole, c->answer, c->room);
}

/* Carry out "[NIC/]WHAT" for the NIC of that name, or for all NICs. */
static void for_nics(struct daemon *d, const char *arg, nic_line line, char *answer, size_t room)
{
	const char *slash = strchr(arg, '/');
	size_t len = slash ? (size_t)(slash - arg) : 0;
	const char *what = slash ? slash + 1 : arg;
	bool sole = len || d->opt.num_nics == 1;
	unsigned int num = 0;

	*answer = '\0';
	for (unsigned int i = 0; i < d->opt.num_nics; i++) {
		struct line_call c = { line, d, &d->nics[i], what, sole, answer, room, true };

		if (!named(c.fn, arg, len))
			continue;
		num++;
		loop_call(c.fn->loop, call_line, &c);
		if (!c.go_on)
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

/* "VERB [ARG]"; verbs that show something need the name of a NIC. */
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

/* "show", which needs the name of a NIC. */
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

struct fault_call {
	const char *spec;
	char *answer;
	size_t room;
	int err;
};

static void call_fault(struct loop *l, void *arg)
{
	struct fault_call *c = arg;

	if (!strcmp(c->spec, "off"))
		wire_fault_clear(l->wire);
	else
		c->err = wire_fault(l->wire, c->spec, c->answer, c->room);
}

/* "SPEC" adds faults, "off" removes all of them and forgets the flows, in each loop's switch. */
static void wire_faults(struct daemon *d, const char *spec, char *answer, size_t room)
{
	struct fault_call c = { spec, answer, room, 0 };

	for (unsigned int i = 0; i < d->num_loops && !c.err; i++)
		loop_call(&d->loops[i], call_fault, &c);
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

struct add_call {
	struct daemon *d;
	unsigned int i;
	int err;
};

static void call_add_nic(struct loop *l, void *arg)
{
	struct add_call *c = arg;
	const struct opt_nic *nic = &c->d->opt.nics[c->i];

	c->err = loop_add_nic(l, &c->d->nics[c->i], nic, c->i,
			      nic->has_bus ? &c->d->bus[nic->bus] : NULL, c->d->opt.caps_off);
}

static void call_remove_nics(struct loop *l, void *arg)
{
	(void)arg;
	loop_remove_nics(l);
}

/*
 * Choose the loop for each NIC: with --threads each NIC has a loop of its own, but NICs of one
 * bus, which access each other's memory, share one. Returns the number of loops.
 */
static unsigned int assign_loops(struct daemon *d)
{
	const struct opt_nic *nic = d->opt.nics;
	unsigned int num = 1;

	for (unsigned int i = 0; i < d->opt.num_nics && d->opt.threads; i++) {
		unsigned int k = 0;

		while (k < i && !(nic[i].has_bus && nic[k].has_bus && nic[i].bus == nic[k].bus))
			k++;
		d->loop_of[i] = k < i ? d->loop_of[k] : num++;
	}
	return num;
}

/* Create the trunk and the threads, which have no functions yet. */
static int start_threads(struct daemon *d)
{
	/* Without links the main thread handles no frames, and does not join the trunk. */
	unsigned int main_joins = d->opt.num_links > 0, num = assign_loops(d);
	char name[16];

	d->trunk = trunk_create(num - 1 + main_joins);
	if (!d->trunk)
		return loop_error("cannot join the wires of the threads", strerror(errno));
	if (main_joins && loop_join(&d->loops[0], d->trunk, num - 1))
		return -1;
	while (d->num_loops < num) {
		struct loop *l = &d->loops[d->num_loops++];

		if (loop_open(l, &d->opt) || loop_join(l, d->trunk, d->num_loops - 2))
			return -1;
		snprintf(name, sizeof(name), "skua-%u", d->num_loops - 2);
		if (loop_start(l, name))
			return -1;
	}
	return 0;
}

static int add_nics(struct daemon *d)
{
	for (unsigned int i = 0; i < d->opt.num_nics; i++) {
		struct add_call c = { d, i, 0 };

		loop_call(&d->loops[d->loop_of[i]], call_add_nic, &c);
		if (c.err)
			return -1;
	}
	wire_number_ports(d->loops[0].wire, d->opt.num_nics);
	for (unsigned int i = 0; i < d->opt.num_links; i++) {
		if (loop_add_link(&d->loops[0], &d->links[i], &d->opt.links[i]))
			return -1;
	}
	return 0;
}

static void call_share(struct loop *l, void *pcap)
{
	wire_pcap_share(l->wire, pcap);
}

/* One file for all threads; its interfaces are in the order of the ports' numbers. */
static int share_capture(struct daemon *d)
{
	char name[16];

	d->pcap = wire_pcap_open(d->opt.pcap);
	if (!d->pcap)
		return loop_error(d->opt.pcap, strerror(errno));
	for (unsigned int i = 0; i < d->opt.num_nics; i++)
		wire_pcap_add_interface(d->pcap, d->nics[i].name);
	for (unsigned int i = 0, dgrams = 0; i < d->opt.num_links; i++) {
		snprintf(name, sizeof(name), "dgram%u", dgrams);
		dgrams += !d->opt.links[i].tap;
		wire_pcap_add_interface(d->pcap, d->opt.links[i].tap ? d->opt.links[i].tap : name);
	}
	if (wire_pcap_flush(d->pcap))
		return loop_error(d->opt.pcap, "cannot write");
	for (unsigned int i = 0; i < d->num_loops; i++)
		loop_call(&d->loops[i], call_share, d->pcap);
	return 0;
}

static int setup(struct daemon *d)
{
	const struct options *opt = &d->opt;
	char err[256] = "";

	d->num_loops = 1;
	if (loop_open(&d->loops[0], opt) || add_signals(d))
		return -1;
	if (opt->threads && start_threads(d))
		return -1;
	if (add_nics(d))
		return -1;
	for (unsigned int i = 0; i < opt->num_faults; i++) {
		wire_faults(d, opt->faults[i], err, sizeof(err));
		if (*err)
			return loop_error("--fault", err);
	}
	for (unsigned int i = 0; i < opt->num_cmd_faults; i++) {
		for_nics(d, opt->cmd_faults[i], cmd_fault, err, sizeof(err));
		if (*err)
			return loop_error("--cmd-fault", err);
	}
	if (opt->control) {
		d->control = control_create(opt->control, d->loops[0].epfd, answer_control, d);
		if (!d->control)
			return loop_error(opt->control, strerror(errno));
	}
	if (opt->pcap && opt->threads)
		return share_capture(d);
	if (opt->pcap && wire_pcap(d->loops[0].wire, opt->pcap, err, sizeof(err)))
		return loop_error("--pcap", err);
	return 0;
}

/* Run all loops until a signal ends them. */
static int run(struct daemon *d)
{
	int ret;

	for (unsigned int i = 1; i < d->num_loops; i++)
		loop_begin(&d->loops[i]);
	ret = loop_run(&d->loops[0]);
	for (unsigned int i = 1; i < d->num_loops; i++)
		loop_halt(&d->loops[i]);
	return ret;
}

static int teardown(struct daemon *d)
{
	int ret = 0;

	for (unsigned int i = 0; i < d->num_loops; i++)
		loop_call(&d->loops[i], call_remove_nics, NULL);
	for (unsigned int i = 1; i < d->num_loops; i++) {
		if (d->loops[i].threaded && !loop_end(&d->loops[i]))
			ret = -1;
	}
	control_destroy(d->control);
	for (unsigned int i = 0; i < d->num_loops; i++)
		loop_close(&d->loops[i]);
	trunk_destroy(d->trunk);
	wire_pcap_close(d->pcap);
	if (d->sigfd > 0)
		close(d->sigfd);
	return ret;
}

/*
 * The model also works with fewer descriptors. But the kernel closes descriptors that do not fit
 * in the table in the thread that receives them, and a client can make that take long.
 */
static void reserve_descriptors(const struct options *opt)
{
	unsigned int num = DESCRIPTORS + opt->num_nics * VFU_FDS_MAX +
			   opt->num_links * WIRE_LINK_FDS_MAX + CONTROL_FDS_MAX +
			   (opt->threads ? opt->num_nics * LOOP_FDS : 0);
	int got = nofile_reserve(num);

	if (got < 0)
		loop_error("file descriptors", strerror(-got));
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
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	mallopt(M_MMAP_THRESHOLD, HEAP_LARGEST);
	for (unsigned int i = 0; i < sizeof(d->loops) / sizeof(d->loops[0]); i++)
		d->loops[i].epfd = -1;
	loop_tune();
	ret = setup(d);
	if (!ret) {
		puts("ready");
		fflush(stdout);
		ret = run(d);
		write_stats(d);
	}
	if (teardown(d))
		ret = -1;
	return ret ? 1 : 0;
}
