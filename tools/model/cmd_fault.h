/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults of the command engine, for tests of drivers: a command of a named opcode
 * fails, is never completed, loses its event or is delayed. Likewise for Ethernet queues: the
 * DMA of a frame fails, or its completion is missing, repeated or wrong.
 */
#ifndef SKUA_MODEL_CMD_FAULT_H
#define SKUA_MODEL_CMD_FAULT_H

#include "core.h"

/**
 * enum fault_op - operations with faults that are no commands; values are above all opcodes
 * @ETH_FAULT_SEND: a send WQE of a RAW_ETH queue
 * @ETH_FAULT_RECV: a frame that has a receive WQE of a RAW_ETH queue
 * @HEARTBEAT_FAULT: a read of the heartbeat register
 */
enum fault_op {
	ETH_FAULT_SEND = 0x10000,
	ETH_FAULT_RECV,
	HEARTBEAT_FAULT,
};

/**
 * enum cmd_fault_kind - fault of a command, a send WQE or a received frame
 * @CMD_FAULT_NONE: no fault
 * @CMD_FAULT_FAIL: it is not executed, and completes with a status
 * @CMD_FAULT_IGNORE: it is not executed, and does not complete; the heartbeat is as it was
 *	at the read before
 * @CMD_FAULT_LOSE: it is executed, and does not complete
 * @CMD_FAULT_NO_EVENT: it is executed and completes; the event is lost
 * @CMD_FAULT_LATE: it is executed, and completes after a delay
 * @CMD_FAULT_DMA: Ethernet: its data cannot be read or written
 * @CMD_FAULT_TWICE: Ethernet: there are two completions of it
 * @CMD_FAULT_LONG: received frame: the completion reports more bytes than there
 *	is room for
 */
enum cmd_fault_kind {
	CMD_FAULT_NONE,
	CMD_FAULT_FAIL,
	CMD_FAULT_IGNORE,
	CMD_FAULT_LOSE,
	CMD_FAULT_NO_EVENT,
	CMD_FAULT_LATE,
	CMD_FAULT_DMA,
	CMD_FAULT_TWICE,
	CMD_FAULT_LONG,
};

/* @status: of CMD_FAULT_FAIL; @delay: of CMD_FAULT_LATE, in ns. */
struct cmd_fault {
	enum cmd_fault_kind kind;
	int status;
	uint64_t delay;
};

/*
 * Return the fault of the next command of opcode (or enum fault_op) @op, which is about to be
 * executed, and count it.
 */
struct cmd_fault cmd_fault_next(struct skua_dev *dev, uint32_t op);
/* The last one was not executed, and will be tried again: take it back from the count. */
void cmd_fault_undo(struct skua_dev *dev, uint32_t op);

#endif /* SKUA_MODEL_CMD_FAULT_H */
