/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Command ring, internal to skua_core.
 */
#ifndef SKUA_CORE_CMD_H
#define SKUA_CORE_CMD_H

#include <linux/completion.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include <linux/skua/core.h>

#define SKUA_CMDQ_LOG_SLOTS	5
#define SKUA_CMDQ_SLOTS		BIT(SKUA_CMDQ_LOG_SLOTS)
/* Slots that only reclaim-safe commands take: the last ones of the ring. */
#define SKUA_CMDQ_SAFE_SLOTS	4

/* One more than the highest opcode. */
#define SKUA_CMD_OPS		(SKUA_CMD_RESUME_PAGE_FAULT + 1)

/**
 * enum skua_cmd_state - state of a command slot
 * @SKUA_CMD_FREE: not in use
 * @SKUA_CMD_BUSY: owned by the device
 * @SKUA_CMD_DONE: completed, but the output is not copied yet
 * @SKUA_CMD_LOST: timed out. The device may still write slot and mailboxes, so they are
 *	not used again before it is reset.
 */
enum skua_cmd_state {
	SKUA_CMD_FREE,
	SKUA_CMD_BUSY,
	SKUA_CMD_DONE,
	SKUA_CMD_LOST,
};

/**
 * struct skua_cmd_ctx - driver state of a command slot
 * @slot: its place in the ring
 * @mbox: input mailbox, followed by the output mailbox
 * @done: completed by the event, and when the device dies
 * @token: token of the present use
 * @gen: generation of the present use
 * @state: state of the slot
 * @status: status from the device, when DONE
 */
struct skua_cmd_ctx {
	struct skua_cmd_slot *slot;
	struct skua_buf mbox;
	struct completion done;
	u32 token;
	u16 gen;
	enum skua_cmd_state state;
	u32 status;
};

/**
 * struct skua_cmd_stat - statistics of the commands of one opcode
 * @count: commands issued
 * @errors: commands that the device failed
 * @lost: commands that were not completed
 * @ns: sum of the execution times
 * @max_ns: longest execution time
 */
struct skua_cmd_stat {
	u64 count;
	u64 errors;
	u64 lost;
	u64 ns;
	u64 max_ns;
};

/* Number of commands in the debugfs file command_trace. */
#define SKUA_CMD_TRACE		64

/**
 * struct skua_cmd_trace - an executed command
 * @end: time of its end, since boot
 * @ns: execution time
 * @op: enum skua_cmd_op
 * @token: its token
 * @status: status from the device
 * @err: negative errno if it was not completed
 */
struct skua_cmd_trace {
	u64 end;
	u64 ns;
	u32 op;
	u32 token;
	u32 status;
	int err;
};

/**
 * struct skua_cmdq - the command ring
 * @ring: slots, shared with the device
 * @ctx: driver state of the slots
 * @lock: protects @ctx[].state, @ctx[].token, @open, @users, @stat, @stale and
 *	@trace; taken in hard interrupt context
 * @wait: for a free slot, and for @users to reach zero
 * @open: commands are accepted
 * @users: threads inside skua_cmd_exec()
 * @events: completions are reported by events
 * @late: completions that were found in the slot without an event
 * @stale: events that match no pending command
 * @stat: statistics by opcode
 * @trace: the last commands, a ring
 * @traced: number of commands written to @trace
 */
struct skua_cmdq {
	struct skua_buf ring;
	struct skua_cmd_ctx ctx[SKUA_CMDQ_SLOTS];
	spinlock_t lock;		/* see above */
	wait_queue_head_t wait;
	bool open;
	unsigned int users;
	bool events;
	u64 late;
	u64 stale;
	struct skua_cmd_stat stat[SKUA_CMD_OPS];
	struct skua_cmd_trace trace[SKUA_CMD_TRACE];
	unsigned int traced;
};

int skua_cmdq_init(struct skua_dev *dev);
void skua_cmdq_exit(struct skua_dev *dev);
void skua_cmdq_use_events(struct skua_dev *dev, bool events);
void skua_cmd_abort(struct skua_dev *dev);
void skua_cmd_complete(struct skua_dev *dev, u32 token);
const char *skua_cmd_name(unsigned int op);

#if IS_ENABLED(CONFIG_KUNIT)
struct skua_cmd_info;
int skua_cmd_give_up(struct skua_dev *dev, struct skua_cmd_ctx *ctx,
		     const struct skua_cmd_info *info, bool event, int err);
#endif
int skua_cmd_exec(struct skua_dev *dev, enum skua_cmd_op op, const void *in, size_t in_len,
		  void *out, size_t out_len);
int skua_cmd_index(struct skua_dev *dev, enum skua_cmd_op op, u32 index);
int skua_cmd_query(struct skua_dev *dev, enum skua_cmd_op op, u32 index, void *out,
		   size_t out_len);
void skua_cmd_destroy(struct skua_dev *dev, enum skua_cmd_op op, u32 index);

/* A command whose input is one structure and that has no output. */
#define skua_cmd_in(dev, op, in) skua_cmd_exec(dev, op, in, sizeof(*(in)), NULL, 0)

#endif /* SKUA_CORE_CMD_H */
