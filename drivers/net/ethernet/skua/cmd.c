// SPDX-License-Identifier: GPL-2.0
/*
 * Command ring.
 *
 * Each slot has its own mailboxes, so that issuing a command allocates nothing, and a
 * command that times out keeps the memory that the device may still write.
 *
 * Completion is determined by the slot; the event only wakes the waiting thread. The
 * thread also checks the slot once a second, so that a lost interrupt causes only a delay.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/delay.h>
#include <linux/ktime.h>

#include "skua.h"
#include "trace.h"

/* Where in a slot's buffer the output mailbox begins. */
#define SKUA_CMD_MBOX_OUT	SKUA_CMD_MBOX_SIZE

/* Polling: microseconds of spinning, then sleeps that grow to this. */
#define SKUA_CMD_SPIN_US	20
#define SKUA_CMD_POLL_MAX_US	1000

/*
 * Interval in which a thread that waits for an event also checks its slot, and the minimum
 * number of checks before a timeout.
 */
#define SKUA_CMD_LOOK_MS	1000
#define SKUA_CMD_LOOKS		5

struct skua_cmd_info {
	const char *name;
	u16 in_len;
	u16 out_len;
	u8 class;
};

static const struct skua_cmd_info skua_cmd_infos[SKUA_CMD_OPS] = {
#define X(_name, _op, _in, _out, _states, _class)			\
	[SKUA_CMD_##_name] = {						\
		.name = #_name,						\
		.in_len = sizeof(struct skua_cmd_##_in),		\
		.out_len = sizeof(struct skua_cmd_##_out),		\
		.class = SKUA_CMD_##_class,				\
	},
	SKUA_CMD_TABLE(X)
#undef X
};

static const int skua_cmd_errnos[] = {
#define X(_name, _value, _errno, _text)					\
	[SKUA_CMD_ST_##_name] = -(_errno),
	SKUA_CMD_STATUS_TABLE(X)
#undef X
};

static const char * const skua_cmd_texts[] = {
#define X(_name, _value, _errno, _text)					\
	[SKUA_CMD_ST_##_name] = _text,
	SKUA_CMD_STATUS_TABLE(X)
#undef X
};

/**
 * skua_cmd_name() - name of an opcode
 * @op: any number
 *
 * Return: the name, or NULL if there is no such command.
 */
const char *skua_cmd_name(unsigned int op)
{
	return op < SKUA_CMD_OPS ? skua_cmd_infos[op].name : NULL;
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmd_name);

static int skua_cmd_errno(u32 status)
{
	/* A status code that this version of the interface does not define. */
	if (status >= ARRAY_SIZE(skua_cmd_errnos))
		return -EIO;
	return skua_cmd_errnos[status];
}

static unsigned long skua_cmd_timeout(const struct skua_dev *dev,
				      const struct skua_cmd_info *info)
{
	/* Can be shortened in debugfs, for tests. */
	u32 ms = READ_ONCE(dev->cmd_timeout_ms);

	if (!ms)
		ms = info->class == SKUA_CMD_SLOW ? SKUA_CMD_SLOW_MS : SKUA_CMD_FAST_MS;
	return msecs_to_jiffies(ms);
}

/* Take a free slot that @info may have. -EAGAIN: wait for one. */
static int skua_cmd_slot_try(struct skua_dev *dev, const struct skua_cmd_info *info,
			     struct skua_cmd_ctx **out)
{
	bool safe = info->class == SKUA_CMD_SAFE;
	struct skua_cmdq *q = &dev->cmdq;
	unsigned int i, end;

	guard(spinlock_irqsave)(&q->lock);
	/* With the lock held: either the flag is seen here or skua_cmd_abort() sees this slot. */
	if (!q->open || skua_dead(dev))
		return -EIO;

	i = safe ? SKUA_CMDQ_SLOTS - SKUA_CMDQ_SAFE_SLOTS : 0;
	end = safe ? SKUA_CMDQ_SLOTS : SKUA_CMDQ_SLOTS - SKUA_CMDQ_SAFE_SLOTS;
	for (; i < end; i++) {
		struct skua_cmd_ctx *ctx = &q->ctx[i];

		if (ctx->state != SKUA_CMD_FREE)
			continue;
		/* Generation 0 is never used, so no token is zero. */
		if (!++ctx->gen)
			ctx->gen = 1;
		ctx->token = u32_encode_bits(i, SKUA_CMD_TOKEN_SLOT) |
			     u32_encode_bits(ctx->gen, SKUA_CMD_TOKEN_GEN);
		ctx->state = SKUA_CMD_BUSY;
		reinit_completion(&ctx->done);
		q->users++;
		*out = ctx;
		return 0;
	}
	return -EAGAIN;
}

static int skua_cmd_slot_get(struct skua_dev *dev, const struct skua_cmd_info *info,
			     struct skua_cmd_ctx **ctx)
{
	int err;

	/* Not interruptible: destroy commands may not fail for a signal. */
	wait_event(dev->cmdq.wait, (err = skua_cmd_slot_try(dev, info, ctx)) != -EAGAIN);
	return err;
}

/* Leave skua_cmd_exec(). A LOST slot stays lost. */
static void skua_cmd_slot_put(struct skua_dev *dev, struct skua_cmd_ctx *ctx)
{
	struct skua_cmdq *q = &dev->cmdq;

	guard(spinlock_irqsave)(&q->lock);
	if (ctx->state == SKUA_CMD_DONE)
		ctx->state = SKUA_CMD_FREE;
	q->users--;
	/* Inside the lock: skua_cmdq_exit() may not overtake the wake-up. */
	wake_up(&q->wait);
}

/* Check whether the device has completed the slot, and read its status. */
static bool skua_cmd_take(struct skua_cmd_ctx *ctx)
{
	if (le32_to_cpu(READ_ONCE(ctx->slot->done)) != ctx->token)
		return false;
	/* The status and the output mailbox are older than @done. */
	dma_rmb();
	ctx->status = le32_to_cpu(READ_ONCE(ctx->slot->status));
	ctx->state = SKUA_CMD_DONE;
	return true;
}

/**
 * skua_cmd_complete() - handle a command EQE
 * @dev: the function
 * @token: token from the EQE, not trusted
 *
 * Called in hard interrupt context.
 */
void skua_cmd_complete(struct skua_dev *dev, u32 token)
{
	unsigned int i = u32_get_bits(token, SKUA_CMD_TOKEN_SLOT);
	struct skua_cmdq *q = &dev->cmdq;
	struct skua_cmd_ctx *ctx;

	guard(spinlock_irqsave)(&q->lock);
	if (i >= SKUA_CMDQ_SLOTS) {
		q->stale++;
		return;
	}
	/*
	 * The generation in the token distinguishes this use of the slot from an earlier
	 * one, of which the event came only after the slot was checked and reused.
	 */
	ctx = &q->ctx[i];
	if (ctx->state != SKUA_CMD_BUSY || ctx->token != token || !skua_cmd_take(ctx)) {
		q->stale++;
		return;
	}
	complete(&ctx->done);
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmd_complete);

/*
 * Check a pending command. Return: 0 if it is done, -EIO if the device is dead, else
 * -EAGAIN. @late is set if it is done although no event was received.
 */
static int skua_cmd_look(struct skua_dev *dev, struct skua_cmd_ctx *ctx, bool *late)
{
	struct skua_cmdq *q = &dev->cmdq;

	guard(spinlock_irqsave)(&q->lock);
	*late = false;
	if (ctx->state == SKUA_CMD_DONE)
		return 0;
	if (skua_cmd_take(ctx)) {
		*late = true;
		return 0;
	}
	if (skua_dead(dev)) {
		ctx->state = SKUA_CMD_LOST;
		return -EIO;
	}
	return -EAGAIN;
}

static int skua_cmd_wait_event(struct skua_dev *dev, struct skua_cmd_ctx *ctx,
			       const struct skua_cmd_info *info, unsigned long timeout)
{
	unsigned long look = min(msecs_to_jiffies(SKUA_CMD_LOOK_MS), timeout / SKUA_CMD_LOOKS);
	unsigned long deadline = jiffies + timeout;
	bool late;
	int err;

	for (;;) {
		bool last = time_after_eq(jiffies, deadline);

		wait_for_completion_timeout(&ctx->done, max(look, 1));
		err = skua_cmd_look(dev, ctx, &late);
		if (err == -EAGAIN && !last)
			continue;
		if (!err && late) {
			scoped_guard(spinlock_irqsave, &dev->cmdq.lock)
				dev->cmdq.late++;
			dev_warn_ratelimited(dev->dev,
					     "%s: completed, but its event was lost\n",
					     info->name);
		}
		return err;
	}
}

static int skua_cmd_wait_poll(struct skua_dev *dev, struct skua_cmd_ctx *ctx,
			      unsigned long timeout)
{
	unsigned long deadline = jiffies + timeout;
	unsigned int spun = 0, us = SKUA_CMD_SPIN_US;
	bool late;
	int err;

	for (;;) {
		bool last = time_after_eq(jiffies, deadline);

		err = skua_cmd_look(dev, ctx, &late);
		if (err != -EAGAIN || last)
			return err;
		if (spun++ < SKUA_CMD_SPIN_US) {
			udelay(1);
		} else {
			usleep_range(us, 2 * us);
			us = min(2 * us, SKUA_CMD_POLL_MAX_US);
		}
	}
}

static void skua_cmd_post(struct skua_dev *dev, struct skua_cmd_ctx *ctx,
			  enum skua_cmd_op op, bool event, const void *in, size_t in_len,
			  size_t out_len)
{
	void *mbox = ctx->mbox.va;

	if (in_len)
		memcpy(mbox, in, in_len);
	/* Clear the output of an earlier command. */
	memset(mbox + SKUA_CMD_MBOX_OUT, 0, out_len);
	*ctx->slot = (struct skua_cmd_slot) {
		.token = cpu_to_le32(ctx->token),
		.opcode = cpu_to_le16(op),
		.flags = cpu_to_le16(event ? SKUA_CMD_F_EVENT : 0),
		.in = cpu_to_le64(in_len ? ctx->mbox.dma : 0),
		.out = cpu_to_le64(out_len ? ctx->mbox.dma + SKUA_CMD_MBOX_OUT : 0),
		.in_len = cpu_to_le32(in_len),
		.out_len = cpu_to_le32(out_len),
	};
	/* The doorbell is an MMIO write: it orders the stores above before it. */
	dev->hw->cmd_db(dev, ctx->token);
}

static void skua_cmd_account(struct skua_dev *dev, enum skua_cmd_op op, u32 token, int err,
			     u32 status, u64 ns)
{
	struct skua_cmd_stat *stat = &dev->cmdq.stat[op];
	struct skua_cmdq *q = &dev->cmdq;

	guard(spinlock_irqsave)(&q->lock);
	q->trace[q->traced++ % SKUA_CMD_TRACE] = (struct skua_cmd_trace) {
		.end = ktime_get_boottime_ns(),
		.ns = ns,
		.op = op,
		.token = token,
		.status = status,
		.err = err,
	};
	stat->count++;
	if (err)
		stat->lost++;
	else if (status != SKUA_CMD_ST_OK)
		stat->errors++;
	stat->ns += ns;
	stat->max_ns = max(stat->max_ns, ns);
}

/*
 * Handle a command that timed out or that was pending when the device died. @event: it was to
 * have one. Return: 0 if it was done after all, between the last look and now.
 */
VISIBLE_IF_KUNIT int skua_cmd_give_up(struct skua_dev *dev, struct skua_cmd_ctx *ctx,
				      const struct skua_cmd_info *info, bool event, int err)
{
	KUNIT_STATIC_STUB_REDIRECT(skua_cmd_give_up, dev, ctx, info, event, err);
	if (err != -EAGAIN)
		return err;
	scoped_guard(spinlock_irqsave, &dev->cmdq.lock) {
		if (ctx->state == SKUA_CMD_DONE)
			return 0;
		if (skua_cmd_take(ctx)) {
			dev->cmdq.late += event;
			return 0;
		}
		ctx->state = SKUA_CMD_LOST;
	}
	dev_err(dev->dev, "%s: not completed in time, token %#x\n", info->name, ctx->token);
	skua_declare_dead(dev, "command timed out");
	return -ETIMEDOUT;
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmd_give_up);

/**
 * skua_cmd_exec() - execute a command
 * @dev: the function
 * @op: opcode
 * @in: input, the structure of the opcode
 * @in_len: its size, or more if the structure ends in an array
 * @out: output buffer
 * @out_len: its size, at least that of the structure. Bytes that the device did not write
 *	are zero.
 *
 * Sleeps. A reclaim-safe command allocates nothing, waits for nothing that allocates, and
 * returns when the device dies. A device that does not complete a command in time is
 * declared dead.
 *
 * Return: 0, the errno for the device's status, -EIO if the device is dead, or -ETIMEDOUT
 * if this command was not completed in time.
 */
int skua_cmd_exec(struct skua_dev *dev, enum skua_cmd_op op, const void *in, size_t in_len,
		  void *out, size_t out_len)
{
	const struct skua_cmd_info *info = &skua_cmd_infos[op];
	struct skua_cmd_ctx *ctx;
	unsigned long timeout;
	u32 status = 0;
	u64 start;
	bool event;
	int err;

	if (WARN_ON_ONCE(in_len < info->in_len || in_len > SKUA_CMD_MBOX_SIZE ||
			 out_len < info->out_len || out_len > SKUA_CMD_MBOX_SIZE))
		return -EINVAL;

	err = skua_cmd_slot_get(dev, info, &ctx);
	if (err)
		return err;

	start = ktime_get_ns();
	timeout = skua_cmd_timeout(dev, info);
	event = READ_ONCE(dev->cmdq.events) && info->class != SKUA_CMD_SAFE;
	trace_skua_cmd_issue(dev, op, ctx->token, in_len, out_len);
	skua_cmd_post(dev, ctx, op, event, in, in_len, out_len);
	err = event ? skua_cmd_wait_event(dev, ctx, info, timeout) :
		      skua_cmd_wait_poll(dev, ctx, timeout);
	if (err)
		err = skua_cmd_give_up(dev, ctx, info, event, err);
	if (!err) {
		status = ctx->status;
		if (out_len)
			memcpy(out, ctx->mbox.va + SKUA_CMD_MBOX_OUT, out_len);
	}
	start = ktime_get_ns() - start;
	trace_skua_cmd(dev, op, ctx->token, err, status, start);
	skua_cmd_account(dev, op, ctx->token, err, status, start);
	skua_cmd_slot_put(dev, ctx);
	if (err)
		return err;
	/* Debug level only, because users can make commands fail. */
	if (status)
		dev_dbg(dev->dev, "%s: status %#x, %s\n", info->name, status,
			status < ARRAY_SIZE(skua_cmd_texts) ? skua_cmd_texts[status] : "?");
	return skua_cmd_errno(status);
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmd_exec);

/**
 * skua_cmd_index() - execute a command whose input is an object's number
 * @dev: the function
 * @op: which
 * @index: the number
 *
 * Return: as skua_cmd_exec().
 */
int skua_cmd_index(struct skua_dev *dev, enum skua_cmd_op op, u32 index)
{
	return skua_cmd_query(dev, op, index, NULL, 0);
}

/**
 * skua_cmd_query() - execute a query of an object
 * @dev: the function
 * @op: which
 * @index: the object's number
 * @out: where the output goes
 * @out_len: its bytes
 *
 * Return: as skua_cmd_exec().
 */
int skua_cmd_query(struct skua_dev *dev, enum skua_cmd_op op, u32 index, void *out,
		   size_t out_len)
{
	struct skua_cmd_index_in in = {
		.index = cpu_to_le32(index),
	};

	return skua_cmd_exec(dev, op, &in, sizeof(in), out, out_len);
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmd_query);

/**
 * skua_cmd_destroy() - destroy an object whose memory is about to be freed
 * @dev: the function
 * @op: which
 * @index: the object's number
 *
 * On return the device no longer uses the object: either the command succeeded, or the
 * device was declared dead and does no DMA.
 */
void skua_cmd_destroy(struct skua_dev *dev, enum skua_cmd_op op, u32 index)
{
	int err;

	if (skua_dead(dev))
		return;
	err = skua_cmd_index(dev, op, index);
	if (!err || skua_dead(dev))
		return;
	dev_err(dev->dev, "%s %#x failed: %pe\n", skua_cmd_name(op), index, ERR_PTR(err));
	skua_declare_dead(dev, "object could not be destroyed");
}

/**
 * skua_cmd_abort() - wake all threads that wait for commands of a dead device
 * @dev: the function, already marked dead
 */
void skua_cmd_abort(struct skua_dev *dev)
{
	struct skua_cmdq *q = &dev->cmdq;
	unsigned int i;

	scoped_guard(spinlock_irqsave, &q->lock)
		for (i = 0; i < SKUA_CMDQ_SLOTS; i++)
			if (q->ctx[i].state == SKUA_CMD_BUSY)
				complete(&q->ctx[i].done);
	wake_up_all(&q->wait);
}

/**
 * skua_cmdq_use_events() - switch between events and polling
 * @dev: the function
 * @events: true when the command EQ is created; false before it is destroyed
 *
 * Pending commands keep the mode in which they were issued. The caller ensures that there
 * are none when the EQ is destroyed.
 */
void skua_cmdq_use_events(struct skua_dev *dev, bool events)
{
	WRITE_ONCE(dev->cmdq.events, events);
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmdq_use_events);

static void skua_cmdq_free(struct skua_dev *dev)
{
	struct skua_cmdq *q = &dev->cmdq;
	unsigned int i;

	for (i = 0; i < SKUA_CMDQ_SLOTS; i++)
		skua_buf_free(dev, &q->ctx[i].mbox);
	skua_buf_free(dev, &q->ring);
}

/**
 * skua_cmdq_init() - allocate the command ring; the caller passes it to the device
 * @dev: the function
 *
 * Return: 0 or -ENOMEM.
 */
int skua_cmdq_init(struct skua_dev *dev)
{
	struct skua_cmdq *q = &dev->cmdq;
	struct skua_cmd_slot *slot;
	unsigned int i;
	int err;

	memset(q, 0, sizeof(*q));
	spin_lock_init(&q->lock);
	init_waitqueue_head(&q->wait);

	err = skua_buf_alloc(dev, &q->ring, SKUA_CMDQ_SLOTS * sizeof(*slot));
	if (err)
		return err;
	slot = q->ring.va;
	for (i = 0; i < SKUA_CMDQ_SLOTS; i++) {
		q->ctx[i].slot = &slot[i];
		init_completion(&q->ctx[i].done);
		err = skua_buf_alloc(dev, &q->ctx[i].mbox, 2 * SKUA_CMD_MBOX_SIZE);
		if (err) {
			skua_cmdq_free(dev);
			return err;
		}
	}
	q->open = true;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmdq_init);

/**
 * skua_cmdq_exit() - free the ring and all mailboxes, those of lost commands included
 * @dev: the function, which has been reset or does no more DMA
 */
void skua_cmdq_exit(struct skua_dev *dev)
{
	struct skua_cmdq *q = &dev->cmdq;

	scoped_guard(spinlock_irqsave, &q->lock)
		q->open = false;
	wake_up_all(&q->wait);
	wait_event(q->wait, !READ_ONCE(q->users));
	/* The last thread may still hold the lock. */
	scoped_guard(spinlock_irqsave, &q->lock)
		WARN_ON(q->users);
	skua_cmdq_free(dev);
}
EXPORT_SYMBOL_IF_KUNIT(skua_cmdq_exit);
