/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A loop: functions, their vfio-user servers, a switch, and the thread that drives them.
 *
 * The daemon has one, or, with --threads, one for each function. Loops share nothing that
 * changes but what wire/trunk.h and wire/pcapng.h have, and the mailbox (loop_call()): what is
 * to be done with anything of a loop is done by its thread, between two turns, from
 * making it to its end.
 */
#ifndef SKUA_MODEL_LOOP_H
#define SKUA_MODEL_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/event.h"
#include "host/wakeup.h"
#include "log.h"
#include "options.h"
#include "spin.h"

struct loop;
struct trunk;
struct vfu_bus;

/* File descriptors of a loop itself. */
#define LOOP_FDS	4

/**
 * struct function - one NIC: its core between its guest and its wire port
 * @name: for people
 * @loop: who drives it
 * @log: how much it has logged
 * @vfu: its server
 * @dev: its core
 * @port: its port
 * @messages: handled up to the last turn, and indices found in records
 */
struct function {
	char name[16];
	struct loop *loop;
	struct log_limit log;
	struct vfu *vfu;
	struct skua_dev *dev;
	struct wire_port *port;
	uint64_t messages;
};

/**
 * struct link_source - a link of the wire to the outside
 * @src: in the epoll set
 * @wire: the switch that it is a port of
 * @name: for people
 * @epfd: the epoll set
 * @fd: its descriptor
 */
struct link_source {
	struct event_source src;
	struct wire *wire;
	const char *name;
	int epfd;
	int fd;
};

/**
 * struct loop - what one thread drives
 * @verbose: how much is logged
 * @epfd: what it sleeps in, -1: it was not opened
 * @wakeup: ends its sleeps
 * @wire: its switch
 * @nic: its functions
 * @num_nics: how many
 * @spin: whether it looks for more or sleeps
 * @stop: it is to end
 * @far: event source of the trunk's descriptor
 * @far_frames: that came from other threads up to the last turn
 * @threaded: it has a thread of its own
 * @thread: that
 * @calls: event source of @call_fd
 * @call_fd: somebody has called
 * @lock: protects all below
 * @changed: any of it has
 * @fn: what it is called for, NULL: nothing
 * @arg: second argument of @fn
 * @begun: it may drive what it has
 * @ended: its thread is to end
 * @failed: it could not go on
 */
struct loop {
	int verbose;
	int epfd;
	struct wakeup wakeup;
	struct wire *wire;
	struct function *nic[OPT_MAX_NICS];
	unsigned int num_nics;
	struct spin spin;
	bool stop;
	struct event_source far;
	uint64_t far_frames;
	bool threaded;
	pthread_t thread;
	struct event_source calls;
	int call_fd;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void (*fn)(struct loop *l, void *arg);
	void *arg;
	bool begun;
	bool ended;
	bool failed;
};

/* Say what failed; -1. */
int loop_error(const char *what, const char *why);

/* A switch and an epoll set, no functions yet. 0, or -1 with a message. */
int loop_open(struct loop *l, const struct options *opt);
/* Its switch is member @member of @t. 0, or -1 with a message. */
int loop_join(struct loop *l, struct trunk *t, unsigned int member);
/* After that nothing of it is used. */
void loop_close(struct loop *l);

/*
 * Add a NIC; @number is that of its port among all. Called in the loop's thread. Or a link.
 * 0, or -1 with a message.
 */
int loop_add_nic(struct loop *l, struct function *fn, const struct opt_nic *nic,
		 unsigned int number, struct vfu_bus *bus, uint64_t caps_off);
int loop_add_link(struct loop *l, struct link_source *link, const struct opt_link *opt);
/* Its functions end. Likewise. */
void loop_remove_nics(struct loop *l);

/* Have the calling thread woken up as soon as Linux can. */
void loop_tune(void);

/* Drive it until @l->stop. 0, or -1 with a message. */
int loop_run(struct loop *l);

/* Give it a thread, which waits for calls and for loop_begin(). 0, or -1 with a message. */
int loop_start(struct loop *l, const char *name);
void loop_begin(struct loop *l);
/* The thread drives nothing any more, but takes calls. */
void loop_halt(struct loop *l);
/* The thread ends. False: it could not go on before. */
bool loop_end(struct loop *l);

/*
 * Have the loop's thread call @fn between two turns, and wait until it has. By the one thread
 * that started it, which is that of the loop if it has no thread of its own.
 */
void loop_call(struct loop *l, void (*fn)(struct loop *l, void *arg), void *arg);

#endif /* SKUA_MODEL_LOOP_H */
