/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Doorbells and doorbell records: every access of the provider to them, each
 * with the barrier it needs.
 *
 * mmio_write64_le() is one 8-byte store. Where the machine has none, it is two
 * halves in ascending order under a process-wide lock, which is what the device
 * interface asks of 32-bit software.
 */
#ifndef SKUA_PROVIDER_DB_H
#define SKUA_PROVIDER_DB_H

#include <stdatomic.h>

#include <util/mmio.h>
#include <util/udma_barrier.h>

#include <skua/wqe_build.h>
#include <skua/sq_event.h>

static inline void skua_ring(void *uar, unsigned int reg, uint32_t lo, uint32_t hi)
{
	mmio_write64_le((uint8_t *)uar + reg, cpu_to_le64(skua_db_word(lo, hi)));
}

/* Volatile: the compiler may neither split nor repeat a store that the device reads. */
static inline void skua_record(__le32 *rec, uint32_t v)
{
	*(volatile __le32 *)rec = cpu_to_le32(v);
}

/**
 * skua_db_sq_record() - store the record of new send WQEs
 * @dbr: the QP's record
 * @pi: new producer index
 * @old: producer index of the last call
 * @suppress: the device's event index tells whether it wants a doorbell
 *
 * Return: the doorbell must follow.
 */
static inline bool skua_db_sq_record(struct skua_qp_dbr *dbr, uint32_t pi, uint32_t old,
				     bool suppress)
{
	/* The WQEs before the index that makes them the device's. */
	udma_to_device_barrier();
	return skua_sq_record(dbr, pi, old, suppress);
}

/**
 * skua_db_sq() - pass new send WQEs to the device
 * @uar: UAR page
 * @dbr: the QP's record
 * @qpn: the QP
 * @pi: new producer index
 * @old: producer index of the last call
 * @suppress: the device's event index tells whether it wants a doorbell
 */
static inline void skua_db_sq(void *uar, struct skua_qp_dbr *dbr, uint32_t qpn, uint32_t pi,
			      uint32_t old, bool suppress)
{
	if (!skua_db_sq_record(dbr, pi, old, suppress))
		return;
	/* The record and the WQEs before the doorbell. */
	udma_to_device_barrier();
	skua_ring(uar, SKUA_UAR_SQ, pi, qpn);
}

/**
 * skua_db_kick() - repeat the doorbell of a QP
 * @uar: UAR page
 * @qpn: the QP
 * @pi: send producer index of the last doorbell
 *
 * The receive queue has no doorbell: the device sees receives that were posted to a QP
 * in error when a send doorbell makes it process the QP.
 */
static inline void skua_db_kick(void *uar, uint32_t qpn, uint32_t pi)
{
	/* The receive record before the doorbell. */
	udma_to_device_barrier();
	/* The page may be one for pushes, which is weakly ordered. */
	mmio_wc_start();
	skua_ring(uar, SKUA_UAR_SQ, pi, qpn);
	mmio_flush_writes();
}

/**
 * skua_db_rq() - pass new receive WQEs to the device
 * @dbr: the QP's record
 * @pi: new producer index
 */
static inline void skua_db_rq(struct skua_qp_dbr *dbr, uint32_t pi)
{
	/* The WQEs before the index that makes them the device's. */
	udma_to_device_barrier();
	skua_record(&dbr->rq_pi, pi);
}

/**
 * skua_db_srq() - pass new WQEs of an SRQ to the device
 * @dbr: the SRQ's record
 * @pi: new producer index
 */
static inline void skua_db_srq(struct skua_srq_dbr *dbr, uint32_t pi)
{
	/* The WQEs before the index that makes them the device's. */
	udma_to_device_barrier();
	skua_record(&dbr->pi, pi);
}

/**
 * skua_db_cq_ci() - give consumed CQEs back to the device
 * @dbr: the CQ's record
 * @ci: new consumer index
 */
static inline void skua_db_cq_ci(struct skua_cq_dbr *dbr, uint32_t ci)
{
	/* Load the CQEs before the store that allows the device to overwrite them. */
	atomic_thread_fence(memory_order_release);
	skua_record(&dbr->ci, ci);
}

/**
 * skua_db_arm() - ask for an event
 * @uar: UAR page
 * @cqn: the CQ
 * @ci: consumer index
 * @serial: of this arm
 * @solicited: solicited and error completions only
 */
static inline void skua_db_arm(void *uar, uint32_t cqn, uint32_t ci, uint32_t serial,
			       bool solicited)
{
	/* The consumer index record before the arm. */
	udma_to_device_barrier();
	skua_ring(uar, SKUA_UAR_CQ_ARM, ci, skua_db_cq_arm(cqn, serial, solicited));
}

#endif /* SKUA_PROVIDER_DB_H */
