// SPDX-License-Identifier: GPL-2.0
/*
 * The command ring: doorbell, fetch, checks that all commands have in common,
 * completion. A doorbell only records the token; the run loop executes the commands, in order
 * and without recursion.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_fault.h"

#define SLOTS		(1u << SKUA_CMDQ_LOG_SIZE_MAX)
/* Commands executed in one round. */
#define BUDGET		16

/**
 * struct cmdq - the ring
 * @base: bus address
 * @slots: slots, 0: ring off
 * @fifo: slots whose doorbell was rung, in this order
 * @token: of each slot that waits in @fifo or for its late completion, else 0
 * @late: status of that late completion
 * @note: of the oldest command, if that is not done yet
 * @in: copy of the input while a command runs
 * @out: its output
 */
struct cmdq {
	uint64_t base;
	uint32_t slots;
	uint16_t fifo[SLOTS];
	uint32_t head, tail;
	uint32_t token[SLOTS];
	struct late {
		struct skua_cmd_slot slot;
		int status;
	} late[SLOTS];
	struct cmd_note note;
	_Alignas(8) uint8_t in[SKUA_CMD_MBOX_SIZE];
	_Alignas(8) uint8_t out[SKUA_CMD_MBOX_SIZE];
};

struct server {
	const char *name;
	uint32_t op;
	uint32_t in_size, out_size;
	uint32_t states;
};

static const struct server servers[] = {
#define X(cname, opcode, input, output, where, class)			\
	{								\
		.name = #cname,						\
		.op = opcode,						\
		.in_size = sizeof(struct skua_cmd_##input),		\
		.out_size = sizeof(struct skua_cmd_##output),		\
		.states = SKUA_CMD_IN_##where,				\
	},
	SKUA_CMD_TABLE(X)
#undef X
};

typedef int (*serve_fn)(struct skua_dev *dev, struct cmd *cmd);

static const serve_fn serve[] = {
#define X(name, fn) [SKUA_CMD_##name] = cmd_##fn,
	CMD_SERVERS(X)
#undef X
};

/* Commands that exist only with a capability. */
static const struct {
	uint32_t op;
	uint64_t cap;
} needs[] = {
	{ SKUA_CMD_RESIZE_CQ,	SKUA_CAP_CQ_RESIZE },
	{ SKUA_CMD_CREATE_SRQ,	SKUA_CAP_SRQ },
	{ SKUA_CMD_DESTROY_SRQ,	SKUA_CAP_SRQ },
	{ SKUA_CMD_MODIFY_SRQ,	SKUA_CAP_SRQ },
	{ SKUA_CMD_QUERY_SRQ,	SKUA_CAP_SRQ },
	{ SKUA_CMD_RESIZE_SRQ,	SKUA_CAP_SRQ_RESIZE },
	{ SKUA_CMD_CREATE_RSS,	SKUA_CAP_RSS },
	{ SKUA_CMD_DESTROY_RSS,	SKUA_CAP_RSS },
	{ SKUA_CMD_MODIFY_RSS,	SKUA_CAP_RSS },
	{ SKUA_CMD_CREATE_FLOW,	SKUA_CAP_ETH },
	{ SKUA_CMD_DESTROY_FLOW, SKUA_CAP_ETH },
	{ SKUA_CMD_ATTACH_MCG,	SKUA_CAP_MCAST },
	{ SKUA_CMD_DETACH_MCG,	SKUA_CAP_MCAST },
	{ SKUA_CMD_CREATE_COUNTER, SKUA_CAP_COUNTER_SET },
	{ SKUA_CMD_DESTROY_COUNTER, SKUA_CAP_COUNTER_SET },
	{ SKUA_CMD_MODIFY_EQ,	SKUA_CAP_MODERATION },
	{ SKUA_CMD_MODIFY_CQ,	SKUA_CAP_MODERATION },
	{ SKUA_CMD_RESUME_PAGE_FAULT, SKUA_CAP_ODP },
	{ SKUA_CMD_QUERY_CC,	SKUA_CAP_DCQCN },
	{ SKUA_CMD_MODIFY_CC,	SKUA_CAP_DCQCN },
};

bool all_zero(const void *p, size_t len)
{
	const uint8_t *byte = p;

	while (len--) {
		if (*byte++)
			return false;
	}
	return true;
}

int cmd_index(const struct cmd *cmd, uint32_t *index)
{
	const struct skua_cmd_index_in *in = cmd->in;

	*index = le32_to_cpu(in->index);
	return in->reserved ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK;
}

int cmd_object(struct skua_dev *dev, const struct cmd *cmd, enum skua_icm_table table,
	       uint32_t *index)
{
	int err = cmd_index(cmd, index);

	if (err)
		return err;
	return obj_valid(dev, table, *index) ? SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_INDEX;
}

int cmd_vacant(struct skua_dev *dev, enum skua_icm_table table, uint32_t index)
{
	if (index >= icm_num(dev, table))
		return SKUA_CMD_ST_BAD_INDEX;
	if (obj_valid(dev, table, index))
		return SKUA_CMD_ST_EXISTS;
	return icm_mapped(dev, table, index) ? SKUA_CMD_ST_OK : SKUA_CMD_ST_NO_ICM;
}

int cmd_query_ctx(struct skua_dev *dev, enum skua_icm_table table, uint32_t index, void *out,
		  size_t len)
{
	void *ctx = ctx_get(dev, table, index);

	if (!ctx)
		return SKUA_CMD_ST_INTERNAL;
	ctx_flush(dev, table, index);
	memcpy(out, ctx, len);
	ctx_put(dev, ctx);
	return SKUA_CMD_ST_OK;
}

/* --- ring --- */

int cmdq_init(struct skua_dev *dev)
{
	dev->cmdq = calloc(1, sizeof(*dev->cmdq));
	return dev->cmdq ? 0 : -ENOMEM;
}

void cmdq_reset(struct skua_dev *dev)
{
	struct cmdq *q = dev->cmdq;

	q->slots = 0;
	q->head = 0;
	q->tail = 0;
	memset(q->token, 0, sizeof(q->token));
	q->note = (struct cmd_note){ 0 };
}

void cmdq_exit(struct skua_dev *dev)
{
	free(dev->cmdq);
}

void cmdq_enable(struct skua_dev *dev, uint64_t base, uint32_t log_size)
{
	dev->cmdq->base = base;
	dev->cmdq->slots = 1u << log_size;
}

void cmdq_doorbell(struct skua_dev *dev, uint32_t token)
{
	struct cmdq *q = dev->cmdq;
	uint32_t slot = u32_get_bits(token, SKUA_CMD_TOKEN_SLOT);

	if (!token || slot >= q->slots || q->token[slot] || dev->state == DEV_FATAL) {
		dev->cnt[SKUA_CNT_BAD_CMD_DB]++;
		return;
	}
	q->token[slot] = token;
	q->fifo[q->tail++ % SLOTS] = slot;
}

/* An address range of at most one page, within one page, 8-byte aligned. */
static bool mailbox_ok(uint64_t addr, uint32_t len)
{
	return !(addr % 8) && addr % SKUA_CMD_MBOX_SIZE + len <= SKUA_CMD_MBOX_SIZE;
}

static int check_slot(struct skua_dev *dev, const struct skua_cmd_slot *slot,
		      const struct server *server)
{
	uint32_t in_len = le32_to_cpu(slot->in_len);
	uint32_t out_len = le32_to_cpu(slot->out_len);
	uint16_t flags = le16_to_cpu(slot->flags);
	bool array = server->op == SKUA_CMD_MAP_ICM;
	unsigned int state = dev->state == DEV_OPERATIONAL ? SKUA_CMD_IN_O : SKUA_CMD_IN_R;

	if (!(server->states & state))
		return SKUA_CMD_ST_BAD_DEV_STATE;
	if (flags & ~SKUA_CMD_F_EVENT || !all_zero(slot->reserved, sizeof(slot->reserved)))
		return SKUA_CMD_ST_BAD_PARAM;
	/* After TEARDOWN_DEVICE there is no EQ for its completion event. */
	if (flags & SKUA_CMD_F_EVENT &&
	    (dev->cmd_eqn == SKUA_NO_EQ || server->op == SKUA_CMD_TEARDOWN_DEVICE))
		return SKUA_CMD_ST_BAD_PARAM;
	if (in_len < server->in_size || in_len > SKUA_CMD_MBOX_SIZE ||
	    (in_len > server->in_size && !array))
		return SKUA_CMD_ST_BAD_LEN;
	if (out_len < server->out_size || out_len > SKUA_CMD_MBOX_SIZE)
		return SKUA_CMD_ST_BAD_LEN;
	if ((in_len && !mailbox_ok(le64_to_cpu(slot->in), in_len)) ||
	    (out_len && !mailbox_ok(le64_to_cpu(slot->out), out_len)))
		return SKUA_CMD_ST_BAD_PARAM;
	return SKUA_CMD_ST_OK;
}

static const struct server *find_server(struct skua_dev *dev, uint32_t op)
{
	for (unsigned int i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (needs[i].op == op && !dev_has(dev, needs[i].cap))
			return NULL;
	}
	for (unsigned int i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		if (servers[i].op == op && op < sizeof(serve) / sizeof(serve[0]) && serve[op])
			return &servers[i];
	}
	return NULL;
}

/* Everything between fetching the slot and writing its status. */
static int execute(struct skua_dev *dev, const struct skua_cmd_slot *slot)
{
	const struct server *server = find_server(dev, le16_to_cpu(slot->opcode));
	struct cmdq *q = dev->cmdq;
	struct cmd cmd = {
		.in = q->in,
		.in_len = le32_to_cpu(slot->in_len),
		.out = q->out,
		.out_room = le32_to_cpu(slot->out_len),
		.note = &q->note,
	};
	int status;

	if (!server)
		return SKUA_CMD_ST_BAD_OPCODE;
	status = check_slot(dev, slot, server);
	if (status)
		return status;
	if (dma_read(dev, TLP_CMD, le64_to_cpu(slot->in), q->in, cmd.in_len))
		return SKUA_CMD_ST_DMA;
	memset(q->out, 0, cmd.out_room);
	cmd.out_len = server->out_size;
	status = serve[server->op](dev, &cmd);
	if (status)
		return status;
	if (cmd.out_len > cmd.out_room)
		cmd.out_len = cmd.out_room;
	if (dma_write(dev, TLP_CMD, le64_to_cpu(slot->out), q->out, cmd.out_len))
		return SKUA_CMD_ST_DMA;
	return SKUA_CMD_ST_OK;
}

/* Complete the command in slot @n, with or without its event. */
static void complete(struct skua_dev *dev, const struct skua_cmd_slot *slot, uint32_t n,
		     int status, bool event)
{
	uint64_t addr = dev->cmdq->base + n * sizeof(*slot);
	struct {
		__le32 status;
		__le32 done;
	} end = { .status = cpu_to_le32(status), .done = slot->token };

	dev->cnt[SKUA_CNT_CMDS]++;
	if (status)
		dev->cnt[SKUA_CNT_CMD_ERRS]++;
	/* Before the completion: software may reuse the slot as soon as it sees that. */
	dev->cmdq->token[n] = 0;
	if (dma_write(dev, TLP_CMD, addr + offsetof(struct skua_cmd_slot, status), &end, sizeof(end))) {
		dev_fatal(dev, SKUA_FATAL_CMD_DMA);
		return;
	}
	if (event && le16_to_cpu(slot->flags) & SKUA_CMD_F_EVENT && dev->cmd_eqn != SKUA_NO_EQ)
		cmd_event(dev, le32_to_cpu(slot->token));
	if (!status && le16_to_cpu(slot->opcode) == SKUA_CMD_INJECT_FATAL)
		dev_fatal(dev, SKUA_FATAL_INJECTED);
}

static void complete_late(struct skua_dev *dev, uint32_t n)
{
	const struct late *late = &dev->cmdq->late[n];

	complete(dev, &late->slot, n, late->status, true);
}

/* Execute a command and complete it, subject to the fault rules. True: it is not done yet. */
static bool run_command(struct skua_dev *dev, const struct skua_cmd_slot *slot, uint32_t n)
{
	struct cmd_fault fault = cmd_fault_next(dev, le16_to_cpu(slot->opcode));
	int status = fault.status;

	/* A command that is not completed keeps its slot until the device is reset. */
	if (fault.kind == CMD_FAULT_IGNORE)
		return false;
	if (fault.kind != CMD_FAULT_FAIL)
		status = execute(dev, slot);
	if (status == CMD_AGAIN) {
		cmd_fault_undo(dev, le16_to_cpu(slot->opcode));
		return true;
	}
	if (dev->state == DEV_FATAL || fault.kind == CMD_FAULT_LOSE)
		return false;
	if (status)
		dev_log(dev, 3, "command 0x%03x: status 0x%02x", le16_to_cpu(slot->opcode),
			status);
	if (fault.kind == CMD_FAULT_LATE) {
		dev->cmdq->late[n] = (struct late){ .slot = *slot, .status = status };
		if (!timer_call(dev, dev_now(dev) + fault.delay, complete_late, n))
			return false;
	}
	complete(dev, slot, n, status, fault.kind != CMD_FAULT_NO_EVENT);
	return false;
}

static bool run_slot(struct skua_dev *dev, uint32_t n)
{
	struct cmdq *q = dev->cmdq;
	uint64_t addr = q->base + n * sizeof(struct skua_cmd_slot);
	uint32_t token = q->token[n];
	struct skua_cmd_slot slot;

	if (dma_read(dev, TLP_CMD, addr, &slot, sizeof(slot))) {
		dev_fatal(dev, SKUA_FATAL_CMD_DMA);
		return false;
	}
	if (le32_to_cpu(slot.token) != token) {
		q->token[n] = 0;
		dev->cnt[SKUA_CNT_BAD_CMD_DB]++;
		return false;
	}
	return run_command(dev, &slot, n);
}

bool cmdq_run(struct skua_dev *dev)
{
	struct cmdq *q = dev->cmdq;

	for (unsigned int i = 0; i < BUDGET && q->head != q->tail; i++) {
		if (i && dev_turn_over(dev))
			break;
		engine_settle(dev);
		if (run_slot(dev, q->fifo[q->head % SLOTS]))
			return dev->state != DEV_FATAL;
		q->note = (struct cmd_note){ 0 };
		q->head++;
		if (dev->state == DEV_FATAL)
			return false;
	}
	return q->head != q->tail;
}
