// SPDX-License-Identifier: GPL-2.0
/*
 * Life cycle of the function: a table of states and events. dev->state alone tells whether
 * the device can be used.
 *
 * The devlink instance lock serializes all events but SKUA_DIE, so that no other event
 * occurs while the function is STARTING or STOPPING. From the begin of a PCI reset, a PCI
 * error or system sleep the function stays down until the end of it, and requests to start it
 * are refused with -EBUSY. If one of the three begins within another one, the function is
 * brought up at the end of one of them only, as the table says: the device is always reset
 * when it is brought up, so one time is enough.
 *
 * The end of a PCI reset within an error does bring the function up: Linux 6.12 does not tell
 * a driver that it has given up the recovery from an error, and an administrator who resets
 * the function after that wants to use it. If the recovery goes on all the same,
 * skua_slot_reset() takes the function down again.
 */
#include <kunit/visibility.h>

#include "skua.h"
#include "trace.h"

#define STEP(_event, _next, _action)	\
	[SKUA_##_event] = { .next = SKUA_##_next, .action = SKUA_##_action }
/* STAY: the event changes nothing; NOT_NOW: it is refused; NEVER: the locks exclude it. */
#define STAY(_event)		STEP(_event, SAME, NOTHING)
#define NOT_NOW(_event)		STEP(_event, SAME, REFUSE)
#define NEVER(_event)		STEP(_event, SAME, IMPOSSIBLE)
#define SKUA_SAME		SKUA_STATES

static const struct skua_life_step skua_life_table[SKUA_STATES][SKUA_LIVES] = {
	[SKUA_OFF] = {
		STEP(START, STARTING, BRING_UP),
		NEVER(STARTED),
		STAY(STOP),
		STAY(STOPPED),
		STAY(DIE),
		STEP(RESET_BEGIN, RESET, NOTHING),
		STAY(RESET_END),
		STEP(ERROR_BEGIN, ERROR, NOTHING),
		STEP(ERROR_RESET, ERROR, NOTHING),
		STEP(ERROR_END, STARTING, BRING_UP),
		STAY(ERROR_FAIL),
		STEP(SLEEP, ASLEEP, NOTHING),
		STAY(WAKE),
		STEP(END, GONE, NOTHING),
	},
	[SKUA_STARTING] = {
		NEVER(START),
		STEP(STARTED, UP, NOTHING),
		NEVER(STOP),
		STEP(STOPPED, OFF, NOTHING),
		STEP(DIE, DEAD, KILL),
		NEVER(RESET_BEGIN),
		NEVER(RESET_END),
		NEVER(ERROR_BEGIN),
		NEVER(ERROR_RESET),
		NEVER(ERROR_END),
		NEVER(ERROR_FAIL),
		NEVER(SLEEP),
		NEVER(WAKE),
		NEVER(END),
	},
	[SKUA_UP] = {
		STAY(START),
		NEVER(STARTED),
		STEP(STOP, STOPPING, TAKE_DOWN),
		NEVER(STOPPED),
		STEP(DIE, DEAD, KILL),
		STEP(RESET_BEGIN, RESET, KILL_AND_TAKE_DOWN),
		STAY(RESET_END),
		STEP(ERROR_BEGIN, ERROR, KILL_AND_TAKE_DOWN),
		/* The driver was bound after the error; the slot reset has cleared the device. */
		STEP(ERROR_RESET, ERROR, KILL_AND_TAKE_DOWN),
		STAY(ERROR_END),
		STEP(ERROR_FAIL, OFF, KILL_AND_TAKE_DOWN),
		STEP(SLEEP, ASLEEP, KILL_AND_TAKE_DOWN),
		STAY(WAKE),
		/* Only at system shutdown: removal of the function sends STOP before END. */
		STEP(END, GONE, KILL),
	},
	[SKUA_STOPPING] = {
		NEVER(START),
		NEVER(STARTED),
		NEVER(STOP),
		STEP(STOPPED, OFF, NOTHING),
		STEP(DIE, DEAD, KILL),
		NEVER(RESET_BEGIN),
		NEVER(RESET_END),
		NEVER(ERROR_BEGIN),
		NEVER(ERROR_RESET),
		NEVER(ERROR_END),
		NEVER(ERROR_FAIL),
		NEVER(SLEEP),
		NEVER(WAKE),
		NEVER(END),
	},
	[SKUA_DEAD] = {
		/* STOP must come before START. */
		NOT_NOW(START),
		/* It failed while it was brought up: skua_start_once() sees the refusal. */
		NOT_NOW(STARTED),
		STEP(STOP, DEAD, TAKE_DOWN),
		STEP(STOPPED, OFF, NOTHING),
		STAY(DIE),
		STEP(RESET_BEGIN, RESET, TAKE_DOWN),
		STAY(RESET_END),
		STEP(ERROR_BEGIN, ERROR, TAKE_DOWN),
		STEP(ERROR_RESET, ERROR, TAKE_DOWN),
		STAY(ERROR_END),
		STEP(ERROR_FAIL, OFF, TAKE_DOWN),
		STEP(SLEEP, ASLEEP, TAKE_DOWN),
		STAY(WAKE),
		STEP(END, GONE, NOTHING),
	},
	[SKUA_RESET] = {
		NOT_NOW(START),
		NEVER(STARTED),
		NOT_NOW(STOP),
		STAY(STOPPED),
		STAY(DIE),
		STAY(RESET_BEGIN),
		STEP(RESET_END, STARTING, BRING_UP),
		STEP(ERROR_BEGIN, ERROR, NOTHING),
		STEP(ERROR_RESET, ERROR, NOTHING),
		STAY(ERROR_END),
		STAY(ERROR_FAIL),
		STEP(SLEEP, ASLEEP, NOTHING),
		STAY(WAKE),
		STEP(END, GONE, NOTHING),
	},
	[SKUA_ERROR] = {
		NOT_NOW(START),
		NEVER(STARTED),
		NOT_NOW(STOP),
		STAY(STOPPED),
		STAY(DIE),
		/* The recovery may have been given up, see the top of this file. */
		STEP(RESET_BEGIN, RESET, NOTHING),
		STAY(RESET_END),
		STAY(ERROR_BEGIN),
		STAY(ERROR_RESET),
		STEP(ERROR_END, STARTING, BRING_UP),
		STEP(ERROR_FAIL, OFF, NOTHING),
		STEP(SLEEP, ASLEEP, NOTHING),
		STAY(WAKE),
		STEP(END, GONE, NOTHING),
	},
	[SKUA_ASLEEP] = {
		NOT_NOW(START),
		NEVER(STARTED),
		NOT_NOW(STOP),
		STAY(STOPPED),
		STAY(DIE),
		STAY(RESET_BEGIN),
		STAY(RESET_END),
		STAY(ERROR_BEGIN),
		STAY(ERROR_RESET),
		STAY(ERROR_END),
		STAY(ERROR_FAIL),
		STAY(SLEEP),
		STEP(WAKE, STARTING, BRING_UP),
		STEP(END, GONE, NOTHING),
	},
	[SKUA_GONE] = {
		NOT_NOW(START),
		NEVER(STARTED),
		NOT_NOW(STOP),
		STAY(STOPPED),
		STAY(DIE),
		STAY(RESET_BEGIN),
		STAY(RESET_END),
		STAY(ERROR_BEGIN),
		STAY(ERROR_RESET),
		STAY(ERROR_END),
		STAY(ERROR_FAIL),
		STAY(SLEEP),
		STAY(WAKE),
		STAY(END),
	},
};

static const char * const skua_state_names[SKUA_STATES] = {
	[SKUA_OFF] = "off",
	[SKUA_STARTING] = "starting",
	[SKUA_UP] = "up",
	[SKUA_STOPPING] = "stopping",
	[SKUA_DEAD] = "dead",
	[SKUA_RESET] = "reset",
	[SKUA_ERROR] = "error",
	[SKUA_ASLEEP] = "asleep",
	[SKUA_GONE] = "gone",
};

static const char * const skua_life_names[SKUA_LIVES] = {
	[SKUA_START] = "start",
	[SKUA_STARTED] = "started",
	[SKUA_STOP] = "stop",
	[SKUA_STOPPED] = "stopped",
	[SKUA_DIE] = "die",
	[SKUA_RESET_BEGIN] = "reset_begin",
	[SKUA_RESET_END] = "reset_end",
	[SKUA_ERROR_BEGIN] = "error_begin",
	[SKUA_ERROR_RESET] = "error_reset",
	[SKUA_ERROR_END] = "error_end",
	[SKUA_ERROR_FAIL] = "error_fail",
	[SKUA_SLEEP] = "sleep",
	[SKUA_WAKE] = "wake",
	[SKUA_END] = "end",
};

/**
 * skua_life_step() - look up a state and an event in the table
 * @state: a state
 * @event: an event
 *
 * Return: the next state, and what the caller has to do.
 */
struct skua_life_step skua_life_step(enum skua_state state, enum skua_life event)
{
	struct skua_life_step step = skua_life_table[state][event];

	if (step.next == SKUA_SAME)
		step.next = state;
	return step;
}
EXPORT_SYMBOL_IF_KUNIT(skua_life_step);

/**
 * skua_life() - change the state of the function by an event
 * @dev: the function; the devlink instance lock is held, except for SKUA_DIE
 * @event: the event
 *
 * Before an event after which the device may not be used the caller has turned off its DMA
 * (hw->quiesce()).
 *
 * Context: any.
 * Return: what the caller has to do.
 */
enum skua_action skua_life(struct skua_dev *dev, enum skua_life event)
{
	struct skua_life_step step;
	enum skua_state state;

	scoped_guard(spinlock_irqsave, &dev->state_lock) {
		state = dev->state;
		step = skua_life_step(state, event);
		WRITE_ONCE(dev->state, step.next);
	}
	trace_skua_life(dev, state, event, step.next, step.action);
	dev_WARN_ONCE(dev->dev, step.action == SKUA_IMPOSSIBLE, "event %s in state %s\n",
		      skua_life_names[event], skua_state_names[state]);
	return step.action;
}
EXPORT_SYMBOL_IF_KUNIT(skua_life);

/**
 * skua_state_name() - a state's name
 * @state: the state
 *
 * Return: the name.
 */
const char *skua_state_name(enum skua_state state)
{
	return skua_state_names[state];
}
EXPORT_SYMBOL_IF_KUNIT(skua_state_name);

/**
 * skua_life_name() - an event's name
 * @event: the event
 *
 * Return: the name.
 */
const char *skua_life_name(enum skua_life event)
{
	return skua_life_names[event];
}
EXPORT_SYMBOL_IF_KUNIT(skua_life_name);

/**
 * skua_state_why() - why a function cannot be stopped or started now
 * @state: its state
 *
 * Return: the reason, a text for users.
 */
const char *skua_state_why(enum skua_state state)
{
	switch (state) {
	case SKUA_RESET:
		return "the PCI core is resetting the function";
	case SKUA_ERROR:
		return "recovery from a PCI error is under way";
	case SKUA_ASLEEP:
		return "the system is going to sleep or waking up";
	case SKUA_GONE:
		return "the function is being removed or shut down";
	default:
		return "the function is busy";
	}
}
EXPORT_SYMBOL_IF_KUNIT(skua_state_why);

/**
 * skua_state_is_alive() - does a function in this state take commands?
 * @state: the state
 *
 * Return: true if it does. If not, the device does no DMA either.
 */
bool skua_state_is_alive(enum skua_state state)
{
	return state == SKUA_STARTING || state == SKUA_UP || state == SKUA_STOPPING;
}
EXPORT_SYMBOL_IF_KUNIT(skua_state_is_alive);

/**
 * skua_dead() - see linux/skua/core.h
 * @dev: the function
 *
 * Return: true if the device must not be used.
 */
bool skua_dead(const struct skua_dev *dev)
{
	return !skua_state_is_alive(READ_ONCE(dev->state));
}
EXPORT_SYMBOL_NS_GPL(skua_dead, "SKUA");

/**
 * skua_is_up() - see linux/skua/core.h
 * @dev: the function
 *
 * Return: true if clients may use the device.
 */
bool skua_is_up(const struct skua_dev *dev)
{
	return READ_ONCE(dev->state) == SKUA_UP;
}
EXPORT_SYMBOL_NS_GPL(skua_is_up, "SKUA");
