/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults of the command engine, for tests of drivers: a command of a named opcode
 * fails, is never completed, loses its event or is delayed. Ethernet queues, too: the
 * DMA of a frame fails, or its completion does not tell the truth.
 */
#ifndef SKUA_MODEL_CMD_FAULT_H
#define SKUA_MODEL_CMD_FAULT_H

#include "core.h"

/**
 * enum fault_op - what has faults and is no command; no opcode is as large
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
 * enum cmd_fault_kind - what becomes of a command, a send WQE or a received frame
 * @CMD_FAULT_NONE: what should
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
 * A command of this opcode (or one of enum fault_op) is about to run: what is to
 * become of it? It is counted.
 */
struct cmd_fault cmd_fault_next(struct skua_dev *dev, uint32_t op);
/* It did not run after the last call for @op, and comes again: do not count it twice. */
void cmd_fault_undo(struct skua_dev *dev, uint32_t op);

#endif /* SKUA_MODEL_CMD_FAULT_H */
