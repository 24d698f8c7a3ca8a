/* SPDX-License-Identifier: GPL-2.0 */
/* MSI-X vectors of one function: an event descriptor and a pending bit each. */
#ifndef SKUA_HOST_IRQ_H
#define SKUA_HOST_IRQ_H

#include <stdint.h>

#include <skua/hw/pci.h>

struct closer;

/**
 * struct irqs - MSI-X vectors
 * @num: table size
 * @closer: helper that closes the client's descriptors, NULL: none
 * @fd: event descriptor of each vector, -1 if the client gave none
 * @pending: vectors raised while they had no descriptor; sent as soon as they
 *	get one, because a client takes the descriptors away for a moment whenever
 *	it sets vectors up anew
 */
struct irqs {
	unsigned int num;
	struct closer *closer;
	int fd[SKUA_MSIX_VECTORS_MAX];
	uint64_t pending;
};

/*
 * Set up signalling for the calling thread, see irq.c: irq_open() comes before irq_init(), and
 * each needs an irq_close() by the same thread. Returns 0, or a negative errno if the system has
 * no asynchronous I/O; then write() is used, which a malicious client can block.
 */
int irq_open(void);
void irq_close(void);

void irq_init(struct irqs *irqs, unsigned int num, struct closer *closer);
/* Set the descriptor of a vector; -1: none. -EINVAL: no eventfd; the caller keeps @fd then. */
int irq_assign(struct irqs *irqs, unsigned int vector, int fd);
void irq_raise(struct irqs *irqs, unsigned int vector);
/* Remove all descriptors; pending bits are kept. */
void irq_disable(struct irqs *irqs);
/* Clear the pending bits, after a reset of the function. */
void irq_reset(struct irqs *irqs);

#endif /* SKUA_HOST_IRQ_H */
