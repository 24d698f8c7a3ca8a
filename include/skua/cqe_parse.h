/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Reading completion and event queue elements: shared by the kernel driver and
 * the user-space provider, like wqe_build.h.
 *
 * The device is not trusted: opcode, status and index come as they are, and the
 * caller bounds whatever it uses as an array index.
 */
#ifndef SKUA_CQE_PARSE_H
#define SKUA_CQE_PARSE_H

#include <skua/bits.h>
#include <skua/hw/cqe.h>
#include <skua/hw/eqe.h>

/* CQEs and EQEs share the phase rule, and one bit for it. */
_Static_assert((__u32)SKUA_CQE_PHASE == 1U << 31 && (__u32)SKUA_EQE_PHASE == 1U << 31,
	       "skua_phase_is_new looks at bit 31");

/**
 * skua_phase_is_new() - has the device written this ring entry in this turn?
 * @own: the entry's last word
 * @index: free-running index of the entry
 * @log_size: log2 of the ring's entries
 *
 * Return: true if so.
 */
static inline _Bool skua_phase_is_new(__u32 own, __u32 index, unsigned int log_size)
{
	return (own ^ index << (31 - log_size)) >> 31;
}

/**
 * skua_cqe_is_new() - has the device written this CQE?
 * @cqe: the entry (the last 64 bytes of a larger one)
 * @index: free-running consumer index
 * @log_size: log2 of the CQ's entries
 *
 * Reads the entry's last word once. Software must pass a read barrier before
 * it looks at the rest.
 *
 * Return: true if so.
 */
static inline _Bool skua_cqe_is_new(const struct skua_cqe *cqe, __u32 index,
				    unsigned int log_size)
{
	return skua_phase_is_new(le32_to_cpu(READ_ONCE(cqe->own)), index, log_size);
}

/**
 * skua_eqe_is_new() - has the device written this EQE?
 * @eqe: the entry
 * @index: free-running consumer index
 * @log_size: log2 of the EQ's entries
 *
 * As skua_cqe_is_new().
 *
 * Return: true if so.
 */
static inline _Bool skua_eqe_is_new(const struct skua_eqe *eqe, __u32 index,
				    unsigned int log_size)
{
	return skua_phase_is_new(le32_to_cpu(READ_ONCE(eqe->own)), index, log_size);
}

/**
 * skua_cqe_opcode() - what completed
 * @cqe: the entry
 *
 * Return: enum skua_cqe_op, or a number that is not in it.
 */
static inline unsigned int skua_cqe_opcode(const struct skua_cqe *cqe)
{
	return le32_get_bits(cqe->what, SKUA_CQE_OPCODE);
}

/**
 * skua_cqe_status() - how it completed
 * @cqe: the entry
 *
 * Return: enum skua_cqe_status, or a number that is not in it.
 */
static inline unsigned int skua_cqe_status(const struct skua_cqe *cqe)
{
	return le32_get_bits(cqe->what, SKUA_CQE_STATUS);
}

/**
 * skua_cqe_wqe_index() - which WQE completed
 * @cqe: the entry
 *
 * Return: the low 16 bits of the free-running block index (send) or WQE index
 * (receive), or the WQE's position in the SRQ's ring.
 */
static inline unsigned int skua_cqe_wqe_index(const struct skua_cqe *cqe)
{
	return le32_get_bits(cqe->what, SKUA_CQE_WQE_INDEX);
}

/**
 * skua_cqe_flags() - flags of a CQE
 * @cqe: the entry
 *
 * Return: SKUA_CQE_F_*.
 */
static inline __u32 skua_cqe_flags(const struct skua_cqe *cqe)
{
	return le32_to_cpu(cqe->own) & (__u32)SKUA_CQE_FLAGS;
}

/**
 * skua_cqe_vendor() - vendor syndrome of a CQE
 * @cqe: the entry
 *
 * Return: enum skua_vendor, or a number that is not in it.
 */
static inline unsigned int skua_cqe_vendor(const struct skua_cqe *cqe)
{
	return le32_get_bits(cqe->own, SKUA_CQE_VENDOR);
}

/**
 * skua_cqe_ud_sl() - service level of a received datagram
 * @cqe: the entry
 *
 * Return: the priority of its VLAN tag, 0 without one.
 */
static inline unsigned int skua_cqe_ud_sl(const struct skua_cqe *cqe)
{
	if (!(skua_cqe_flags(cqe) & (__u32)SKUA_CQE_F_VLAN))
		return 0;
	return le16_to_cpu(cqe->ud.vlan_tci) >> 13;
}

/*
 * One case of a switch that turns SKUA_CQE_STATUS into the verbs' status, for
 * the kernel's and for libibverbs' name of it:
 *
 *	switch (skua_cqe_status(cqe)) {
 *	SKUA_CQE_STATUS_TABLE(SKUA_CQE_CASE_IBV)
 *	default: return IBV_WC_GENERAL_ERR;
 *	}
 */
#define SKUA_CQE_CASE_IB(name, value, verbs)	case SKUA_CQE_##name: return IB_WC_##verbs;
#define SKUA_CQE_CASE_IBV(name, value, verbs)	case SKUA_CQE_##name: return IBV_WC_##verbs;

#endif /* SKUA_CQE_PARSE_H */
