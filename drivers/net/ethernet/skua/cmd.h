/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The command ring, for the core's own files.
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
 * enum skua_cmd_state - life of a command slot
 * @SKUA_CMD_FREE: nobody's
 * @SKUA_CMD_BUSY: the device's, from the doorbell on
 * @SKUA_CMD_DONE: completed, the issuer has yet to fetch the output
 * @SKUA_CMD_LOST: given up: the device may still write slot and mailboxes, so
 *	neither is used again before the device has been reset
 */
enum skua_cmd_state {
	SKUA_CMD_FREE,
	SKUA_CMD_BUSY,
	SKUA_CMD_DONE,
	SKUA_CMD_LOST,
};

/**
 * struct skua_cmd_ctx - software's side of a command slot
 * @slot: its place in the ring
 * @mbox: input mailbox, followed by the output mailbox
 * @done: completed by the event, and when the device dies
 * @token: of the present use
 * @gen: generation of the present use
 * @state: whose it is
 * @status: what the device said, when DONE
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
 * struct skua_cmd_stat - what became of the commands of one opcode
 * @count: issued
 * @errors: refused by the device
 * @lost: without an end
 * @ns: time they took together
 * @max_ns: longest
 */
struct skua_cmd_stat {
	u64 count;
	u64 errors;
	u64 lost;
	u64 ns;
	u64 max_ns;
};

/* Commands that debugfs remembers. */
#define SKUA_CMD_TRACE		64

/**
 * struct skua_cmd_trace - a command that was
 * @end: when it ended, since boot
 * @ns: how long it took
 * @op: enum skua_cmd_op
 * @token: its token
 * @status: what the device said
 * @err: it has no end: negative errno
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
 * @ctx: software's side of them
 * @lock: protects @ctx[].state, @ctx[].token, @open, @users, @stat, @stale and
 *	@trace; taken in hard interrupt context
 * @wait: for a free slot, and for @users to reach zero
 * @open: commands are taken
 * @users: threads inside skua_cmd_exec()
 * @events: completions come by event
 * @late: completions seen in the slot without an event
 * @stale: events that belong to no command under way
 * @stat: by opcode
 * @trace: the last commands, a ring
 * @traced: how many there were
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

int skua_cmd_exec(struct skua_dev *dev, enum skua_cmd_op op, const void *in, size_t in_len,
		  void *out, size_t out_len);
int skua_cmd_index(struct skua_dev *dev, enum skua_cmd_op op, u32 index);
int skua_cmd_query(struct skua_dev *dev, enum skua_cmd_op op, u32 index, void *out,
		   size_t out_len);
void skua_cmd_destroy(struct skua_dev *dev, enum skua_cmd_op op, u32 index);

/* A command whose input is one structure and that has no output. */
#define skua_cmd_in(dev, op, in) skua_cmd_exec(dev, op, in, sizeof(*(in)), NULL, 0)

#endif /* SKUA_CORE_CMD_H */
