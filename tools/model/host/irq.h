/* SPDX-License-Identifier: GPL-2.0 */
/* MSI-X vectors of one function: an event descriptor and a pending bit each. */
#ifndef SKUA_HOST_IRQ_H
#define SKUA_HOST_IRQ_H

#include <stdint.h>

#include <skua/hw/pci.h>

/**
 * struct irqs - MSI-X vectors
 * @num: table size
 * @fd: event descriptor of each vector, -1 if the client gave none
 * @pending: vectors raised while they had no descriptor; sent as soon as they
 *	get one, because a client takes the descriptors away for a moment whenever
 *	it sets vectors up anew
 */
struct irqs {
	unsigned int num;
	int fd[SKUA_MSIX_VECTORS_MAX];
	uint64_t pending;
};

/*
 * What all functions of a thread signal with, see irq.c: open before irq_init(), and
 * close, in pairs and in the thread that signals. 0, or a negative errno if this system has
 * only the way that a malicious client can block; it is used then.
 */
int irq_open(void);
void irq_close(void);

void irq_init(struct irqs *irqs, unsigned int num);
/* Takes @fd over; -1 removes. -EINVAL if it is no event descriptor (then not taken). */
int irq_assign(struct irqs *irqs, unsigned int vector, int fd);
void irq_raise(struct irqs *irqs, unsigned int vector);
/* All descriptors away; pending bits stay. */
void irq_disable(struct irqs *irqs);
/* Forget what is pending: the function was reset. */
void irq_reset(struct irqs *irqs);

#endif /* SKUA_HOST_IRQ_H */
