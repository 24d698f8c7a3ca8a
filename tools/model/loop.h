/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A loop: functions, their vfio-user servers, a switch, and the thread that drives them.
 *
 * The daemon has one loop, or, with --threads, one for each function. Loops share no data that
 * changes, except through wire/trunk.h, wire/pcapng.h and the mailbox (loop_call()): another
 * thread that needs anything of a loop has the loop's thread do it between two turns. That
 * includes the creation and the end of its functions.
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

/*
 * File descriptors of a loop with a thread: the epoll set, the timer, the event descriptors of
 * the trunk and of the mailbox, and the file that requests for interrupts name (host/irq.c).
 */
#define LOOP_FDS	5

/**
 * struct function - one NIC: a device core between a vfio-user server and a port of the switch
 * @name: for log messages and counters
 * @loop: the loop that drives it
 * @log: limits its log messages
 * @vfu: vfio-user server
 * @dev: device core
 * @port: port of the loop's switch
 * @messages: vfio-user messages plus doorbell records taken, up to the last turn
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
 * @src: event source of @fd
 * @wire: the switch that has it as a port
 * @name: for log messages
 * @epfd: the epoll set
 * @fd: the socket or TAP device
 * @waits: @fd is not polled until the switch has room for its frames
 */
struct link_source {
	struct event_source src;
	struct wire *wire;
	const char *name;
	int epfd;
	int fd;
	bool waits;
};

/**
 * struct loop - what one thread drives
 * @verbose: log level
 * @epfd: epoll set in which the loop sleeps; -1: not opened
 * @wakeup: timer that ends a sleep
 * @wire: the switch
 * @nic: the functions
 * @num_nics: number of functions
 * @spin: state of the decision whether to poll or to sleep
 * @stop: loop_run() is to return
 * @far: event source of the trunk's event descriptor
 * @far_frames: frames received from other threads up to the last turn
 * @threaded: the loop has a thread of its own
 * @thread: this thread
 * @calls: event source of @call_fd
 * @call_fd: event descriptor that loop_call() signals
 * @lock: protects all members below
 * @changed: signalled when one of these members has changed
 * @fn: function that the loop's thread is to call, NULL: none
 * @arg: second argument of @fn
 * @begun: the thread may enter loop_run()
 * @ended: the thread is to end
 * @failed: loop_run() failed
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

/* Print what failed, and why. Returns -1. */
int loop_error(const char *what, const char *why);

/* Make the switch and the epoll set, without functions. Returns 0, or -1 with a message. */
int loop_open(struct loop *l, const struct options *opt);
/* Make the loop's switch member @member of @t. Returns 0, or -1 with a message. */
int loop_join(struct loop *l, struct trunk *t, unsigned int member);
/* Undo loop_open() and loop_join(). The loop has no functions and no thread any more. */
void loop_close(struct loop *l);

/*
 * Add a NIC, or a link, in the loop's thread. @number is the number of the NIC's port among the
 * ports of all threads. Returns 0, or -1 with a message.
 */
int loop_add_nic(struct loop *l, struct function *fn, const struct opt_nic *nic,
		 unsigned int number, struct vfu_bus *bus, uint64_t caps_off);
int loop_add_link(struct loop *l, struct link_source *link, const struct opt_link *opt);
/* End the loop's functions, in the loop's thread. */
void loop_remove_nics(struct loop *l);

/* Ask the scheduler to wake the calling thread with little delay. */
void loop_tune(void);

/* Drive the loop until @l->stop. Returns 0, or -1 with a message. */
int loop_run(struct loop *l);

/*
 * Create the loop's thread, which waits for loop_call() and loop_begin(). Returns 0, or -1 with
 * a message.
 */
int loop_start(struct loop *l, const char *name);
void loop_begin(struct loop *l);
/* Have the thread leave loop_run(); it still serves loop_call(). */
void loop_halt(struct loop *l);
/* End the thread. False: loop_run() had failed. */
bool loop_end(struct loop *l);

/*
 * Have the loop's thread call @fn between two turns, and wait for the return of @fn. Only the
 * thread that called loop_open() may do so; it calls @fn itself if the loop has no thread.
 */
void loop_call(struct loop *l, void (*fn)(struct loop *l, void *arg), void *arg);

#endif /* SKUA_MODEL_LOOP_H */
