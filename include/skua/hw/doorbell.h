/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: UAR pages of BAR 2, and doorbell records.
 *
 * BAR 2 is an array of UAR pages of 1 << SKUA_REG_UAR_PAGE_SHIFT bytes. A page
 * belongs to the kernel or to one process; a queue's context names the page
 * that its doorbells come through, and the device takes a doorbell only through
 * that page. Only the first 4 KiB of a page are used.
 *
 * A doorbell is one aligned 8-byte little-endian store {index, queue number}.
 * 32-bit software stores the low half (offset + 0), then the high half (offset
 * + 4), under a lock: the low half is kept in the page's latch, the high half
 * acts. Any other width or offset is ignored and counted (SKUA_CNT_BAD_DB), and
 * so is a doorbell for a queue that does not exist, that names another page,
 * or whose index does not advance in serial arithmetic by 1..queue size.
 * A doorbell repeating the present index is no error and not counted: it makes
 * the device look at the QP again, which is how receive WQEs posted to a QP in
 * ERR get flushed (the receive queue has no doorbell of its own).
 *
 * Nor is a send doorbell of a QP with SKUA_QP_F_DB_SUPPRESS an error if its index is behind
 * the present one: it came after the device had read a later index from the doorbell record,
 * and is taken like one that repeats the present index.
 *
 * A send doorbell is also out of range if it leaves more blocks outstanding than
 * the ring has, and in state RESET there is no send queue. The consumer index of an
 * EQ must lie within the ring's size behind the producer's; that of a CQ must not be
 * ahead of the producer's, and may be old: a thread that polls may overtake one that
 * arms. Either may be repeated. A high half is ignored and counted unless the last
 * 32-bit store to the page was the low half of the same register.
 */
#ifndef SKUA_HW_DOORBELL_H
#define SKUA_HW_DOORBELL_H

#include <linux/types.h>

/*
 * Send queue: low half = producer index, a free-running count of 64-byte
 * blocks (SKUA_WQE_BLOCK); high half = QPN, bits 31:24 zero.
 */
#define SKUA_UAR_SQ			0x000

/*
 * CQ arm: low half = consumer index, a free-running count of CQEs; high half
 * as below. The device writes one completion EQE as soon as there is a CQE (SOLICITED: a
 * solicited or error CQE) at or past that index that no completion EQE has reported yet.
 * A completion EQE reports every CQE that was written before it, whichever arm it
 * answers. So a program that gets an event, arms, and only then polls does not get a
 * second event for the same CQEs. An arm replaces the one before it, but one for
 * SOLICITED after one for any that was not answered yet is for any, too. SERIAL is returned
 * in the EQE.
 *
 * Software that polls until the CQ is empty and arms, both at some time after each EQE
 * and in either order, misses nothing: if the arm comes first, the poll finds the CQE; if
 * the poll comes first, the arm contains the index at which it ended. Software that drops
 * an EQE without polling gets no other EQE for the CQEs that it reported.
 */
#define SKUA_UAR_CQ_ARM			0x008
#define SKUA_UAR_CQ_ARM_CQN		GENMASK(23, 0)
#define SKUA_UAR_CQ_ARM_SERIAL		GENMASK(25, 24)
#define SKUA_UAR_CQ_ARM_SOLICITED	BIT(26)

/*
 * EQ: low half = consumer index, a free-running count of EQEs; high half as
 * below. With ARM the device sends the EQ's interrupt for the next EQE, or at
 * once if an EQE at or past the index is there already. Only in the page that
 * the EQ's context names.
 */
#define SKUA_UAR_EQ			0x010
#define SKUA_UAR_EQ_EQN			GENMASK(23, 0)
#define SKUA_UAR_EQ_ARM			BIT(31)

/*
 * Recovery ring of a QP with SKUA_ATTR_EXT_ONLOAD (SKUA_CAP_RECOVERY): low half = producer
 * index, a free-running count of struct skua_recovery_cmd since the QP left RESET; high half =
 * QPN, bits 31:24 zero. Only in the page of the EQ of loss reports, which is the kernel's.
 */
#define SKUA_UAR_RECOVERY		0x018

/*
 * Push slots (capability SKUA_CAP_PUSH): 64-byte slots, by which a doorbell brings the
 * WQE that it is about, so that the device need not read the ring. The WQE is in the
 * ring as well.
 *
 *   bytes 0..47    a send WQE of at most SKUA_PUSH_SEGS segments; what is behind its last
 *                  one has no meaning
 *   bytes 48..55   no meaning
 *   bytes 56..63   the SQ doorbell word {index, QPN}; the index is that of the WQE + 1
 *
 * A slot is written by stores of 8 bytes, in ascending order, or through write-combining
 * memory, which makes larger ones of them: any that are aligned to 8 bytes, a multiple of
 * 8 bytes long and within the slot are taken. The last 8 bytes act. If the others have not
 * all come since the slot acted before, it is a plain doorbell. So it is if they did, and
 * the WQE is not one that the device can use now: it does not name its place in the ring,
 * or WQEs before it have not been read yet. The device checks a WQE out of a slot as one
 * out of the ring; if it breaks a rule, the one in the ring counts.
 *
 * Two QPs, or threads, must not write one slot at the same time. Software that writes
 * through write-combining memory flushes it after the slot, and before the next store to
 * that page: doorbells in a page that is mapped so need the same.
 */
#define SKUA_UAR_PUSH			0x400
#define SKUA_UAR_PUSH_SLOT_SIZE		64
#define SKUA_UAR_PUSH_SLOTS		16
#define SKUA_PUSH_SEGS			3

/* Bytes of a UAR page that mean something. */
#define SKUA_UAR_USED			0x1000

/*
 * Doorbell suppression (capability SKUA_CAP_DB_SUPPRESS, for QPs with
 * SKUA_QP_F_DB_SUPPRESS). Of each such send queue the device either has to be told by a
 * doorbell, or it looks at the producer index in the doorbell record by itself. The record's
 * event index tells software which: the doorbell may be left out unless the producer index
 * moves from at most the event index to beyond it, in serial arithmetic. Software
 *
 *	1. writes the WQEs, and orders them before
 *	2. the store of sq_pi,
 *	3. passes a full barrier, which orders that store before
 *	4. the load of sq_event, and
 *	5. rings the doorbell if new - sq_event - 1 < new - old, modulo 2^32, where old and new
 *	   are the producer index before and after.
 *
 * A doorbell whose index advances makes the device look at the record from then on. Before
 * it stops doing so, the device
 *
 *	1. writes the producer index that it knows to sq_event,
 *	2. orders that before what follows, as a PCI Express read orders itself behind writes,
 *	3. reads sq_pi again, and goes on looking if that advances.
 *
 * So either the device sees a producer index, or software sees the event index that asks for
 * the doorbell. Both words start at zero, where the first WQE needs a doorbell. While the
 * device looks, sq_event lies behind what software posts; it comes before it again after 2^32
 * blocks, and then one doorbell is rung that need not be.
 *
 * The device looks at a bounded number of queues, and stops to look at one in which it has
 * found nothing new a bounded number of times. An index in the record is checked like that of
 * a doorbell: one that is behind the present one, or claims more blocks than the ring has, is
 * ignored and counted (SKUA_CNT_BAD_DB_INDEX), and the device then stops to look. If
 * either word cannot be accessed, the QP goes to ERR with SKUA_QP_EV_FATAL.
 */

/**
 * struct skua_qp_dbr - doorbell record of a QP, in host memory
 * @rq_pi: receive producer index, free-running count of receive WQEs; written
 *	by software after the WQEs; the receive queue has no MMIO doorbell
 * @sq_pi: send producer index in blocks, written by software before the SQ
 *	doorbell (the device reads it with SKUA_QP_F_DB_SUPPRESS)
 * @sq_event: written by the device with SKUA_QP_F_DB_SUPPRESS: software skips
 *	the SQ doorbell unless its producer index passes this one
 * @reserved: zero
 *
 * 16-byte aligned. All three are zero when the QP is created, where software
 * clears them, and when it enters RESET: software clears its words, and the
 * device's word is cleared by it before the command that takes the QP to RESET
 * completes. The device does not look at sq_pi before the first doorbell then.
 */
struct skua_qp_dbr {
	__le32 rq_pi;
	__le32 sq_pi;
	__le32 sq_event;
	__le32 reserved;
};

_Static_assert(sizeof(struct skua_qp_dbr) == 16, "skua_qp_dbr");

/**
 * struct skua_srq_dbr - doorbell record of an SRQ
 * @pi: producer index, free-running count of WQEs, written by software
 * @reserved: zero
 */
struct skua_srq_dbr {
	__le32 pi;
	__le32 reserved[3];
};

_Static_assert(sizeof(struct skua_srq_dbr) == 16, "skua_srq_dbr");

/**
 * struct skua_cq_dbr - doorbell record of a CQ
 * @ci: consumer index, free-running count of CQEs, written by software; the
 *	device reads it only when the CQ looks full to it
 * @reserved: zero
 */
struct skua_cq_dbr {
	__le32 ci;
	__le32 reserved[3];
};

_Static_assert(sizeof(struct skua_cq_dbr) == 16, "skua_cq_dbr");

/* Alignment of every doorbell record. */
#define SKUA_DBR_ALIGN			16

#endif /* SKUA_HW_DOORBELL_H */
