/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Event queues and interrupts, internal to skua_core.
 */
#ifndef SKUA_CORE_EQ_H
#define SKUA_CORE_EQ_H

#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <linux/skua/core.h>

/* EQ numbers. Completion EQs follow. */
#define SKUA_EQN_CMD		0
#define SKUA_EQN_ASYNC		1
#define SKUA_EQN_FAULT		2
#define SKUA_EQN_RECOVERY	3
#define SKUA_EQN_COMP		4

/* Most EQs that share one vector: command, async, page fault, recovery and, if there is but
 * one vector, the completion EQ.
 */
#define SKUA_VECTOR_EQS		5

/*
 * Events handled before the EQ is armed again, to bound the time with interrupts off. The
 * device interrupts again if there are more.
 */
#define SKUA_EQ_BUDGET		128

/**
 * struct skua_eq - event queue
 * @dev: the function
 * @buf: the ring
 * @eqn: its number
 * @vector: interrupt vector
 * @log_size: log2 of its entries
 * @created: the EQ exists in the device
 * @ci: consumer index, changed only by the poller, which is the interrupt handler, @work, or
 *	skua_eq_flush_comp() while the interrupt is disabled
 * @cqs: completion EQ: struct skua_cq by number. Read under RCU by the interrupt
 *	handler; a removed CQ may be freed after synchronize_irq().
 * @defer: its events are handled in process context, by @work
 * @work: polls the EQ if @defer is set
 * @flush_lock: completion EQ: one skua_eq_flush_comp() at a time
 * @count: events handled
 * @bad: invalid events: unknown type, or no such object
 */
struct skua_eq {
	struct skua_dev *dev;
	struct skua_buf buf;
	u32 eqn;
	unsigned int vector;
	u8 log_size;
	bool created;
	u32 ci;
	struct xarray cqs;
	bool defer;
	struct work_struct work;
	/* Serializes skua_eq_flush_comp(). */
	struct mutex flush_lock;
	u64 count;
	u64 bad;
};

/**
 * struct skua_vector - interrupt vector
 * @irq: Linux interrupt, 0: not requested
 * @num_eqs: elements of @eq
 * @eq: event queues that interrupt through it
 * @name: as /proc/interrupts shows it
 */
struct skua_vector {
	int irq;
	unsigned int num_eqs;
	struct skua_eq *eq[SKUA_VECTOR_EQS];
	char name[48];
};

int skua_eqs_init(struct skua_dev *dev);
void skua_eqs_exit(struct skua_dev *dev);
void skua_eq_flush_async(struct skua_dev *dev);
void skua_eq_flush_comp(struct skua_dev *dev, unsigned int vector);
void skua_eq_sync_comp(struct skua_dev *dev, unsigned int vector);
void skua_eq_flush_recovery(struct skua_dev *dev);
void skua_eq_work(struct work_struct *work);
void skua_eq_kick(struct skua_dev *dev);
unsigned int skua_eq_poll(struct skua_eq *eq);
int skua_irqs_init(struct skua_dev *dev);
void skua_irqs_exit(struct skua_dev *dev);

#endif /* SKUA_CORE_EQ_H */
