/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Life cycle of the function: states, events, and the actions that the table of lifecycle.c
 * (drawn in Documentation/lifecycle.rst) has for them.
 */
#ifndef SKUA_CORE_LIFECYCLE_H
#define SKUA_CORE_LIFECYCLE_H

#include <linux/types.h>

struct skua_dev;

/**
 * enum skua_state - states of a function
 * @SKUA_OFF: not brought up: nothing is allocated, no client uses it
 * @SKUA_STARTING: being brought up; commands are taken
 * @SKUA_UP: brought up; clients may use it
 * @SKUA_STOPPING: being taken down in order; commands are still taken
 * @SKUA_DEAD: it failed: it takes no commands and does no DMA; nothing is freed yet
 * @SKUA_RESET: the PCI core resets the function, until its reset_done()
 * @SKUA_ERROR: the PCI core recovers the function from an error, until its resume() or a
 *	permanent failure
 * @SKUA_ASLEEP: the system sleeps
 * @SKUA_GONE: removed or shut down
 * @SKUA_STATES: how many there are
 */
enum skua_state {
	SKUA_OFF,
	SKUA_STARTING,
	SKUA_UP,
	SKUA_STOPPING,
	SKUA_DEAD,
	SKUA_RESET,
	SKUA_ERROR,
	SKUA_ASLEEP,
	SKUA_GONE,
	SKUA_STATES,
};

/**
 * enum skua_life - events of a function
 * @SKUA_START: request to bring it up: by probe, devlink reload or recovery
 * @SKUA_STARTED: it was brought up
 * @SKUA_STOP: request to take it down: by devlink reload, recovery or removal
 * @SKUA_STOPPED: it was taken down, or could not be brought up: nothing is allocated
 * @SKUA_DIE: it failed. The only event that can occur at any time and in any context.
 * @SKUA_RESET_BEGIN: the PCI core is about to reset the function
 * @SKUA_RESET_END: that reset is over
 * @SKUA_ERROR_BEGIN: the PCI core reports an error of the function
 * @SKUA_ERROR_RESET: the PCI core has reset the slot after that error
 * @SKUA_ERROR_END: the PCI core has ended the recovery with success
 * @SKUA_ERROR_FAIL: the recovery failed, or the error is permanent
 * @SKUA_SLEEP: the system goes to sleep
 * @SKUA_WAKE: the system is awake again
 * @SKUA_END: the function is removed, or the system shut down
 * @SKUA_LIVES: how many there are
 */
enum skua_life {
	SKUA_START,
	SKUA_STARTED,
	SKUA_STOP,
	SKUA_STOPPED,
	SKUA_DIE,
	SKUA_RESET_BEGIN,
	SKUA_RESET_END,
	SKUA_ERROR_BEGIN,
	SKUA_ERROR_RESET,
	SKUA_ERROR_END,
	SKUA_ERROR_FAIL,
	SKUA_SLEEP,
	SKUA_WAKE,
	SKUA_END,
	SKUA_LIVES,
};

/**
 * enum skua_action - what the caller of skua_life() has to do
 * @SKUA_NOTHING: nothing
 * @SKUA_REFUSE: refuse the request with -EBUSY
 * @SKUA_BRING_UP: bring the function up, then its clients
 * @SKUA_TAKE_DOWN: take the clients down, then the function
 * @SKUA_KILL: fail all commands in flight, and send the clients SKUA_EVENT_DEAD
 * @SKUA_KILL_AND_TAKE_DOWN: SKUA_KILL, then SKUA_TAKE_DOWN
 * @SKUA_IMPOSSIBLE: the locks exclude this event in this state
 */
enum skua_action {
	SKUA_NOTHING,
	SKUA_REFUSE,
	SKUA_BRING_UP,
	SKUA_TAKE_DOWN,
	SKUA_KILL,
	SKUA_KILL_AND_TAKE_DOWN,
	SKUA_IMPOSSIBLE,
};

/**
 * struct skua_life_step - an element of the table
 * @next: the state after the event
 * @action: what the caller has to do
 */
struct skua_life_step {
	u8 next;
	u8 action;
};

struct skua_life_step skua_life_step(enum skua_state state, enum skua_life event);
enum skua_action skua_life(struct skua_dev *dev, enum skua_life event);
const char *skua_state_name(enum skua_state state);
const char *skua_life_name(enum skua_life event);
const char *skua_state_why(enum skua_state state);
bool skua_state_is_alive(enum skua_state state);

#endif /* SKUA_CORE_LIFECYCLE_H */
