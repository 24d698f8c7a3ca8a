/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: event queue elements.
 *
 * An event queue is a ring of 1 << n entries of 32 bytes in host memory, zeroed
 * by software before CREATE_EQ, written in two steps like a CQE: 24 bytes, then
 * the last 8 by one atomic release store. PHASE works as in cqe.h.
 *
 * EQs do not overflow: the device never writes past the consumer index plus the
 * ring size. What does not fit waits as one pending bit for each event type in
 * the context that caused it and is written when software moves the consumer
 * index. Events of one type of one object thus coalesce.
 */
#ifndef SKUA_HW_EQE_H
#define SKUA_HW_EQE_H

#include <linux/types.h>

/**
 * enum skua_eqe_type - SKUA_EQE_TYPE
 * @SKUA_EQE_CMD: a command completed; @num = its token
 * @SKUA_EQE_COMP: an armed CQ fired; @num = CQN, @info[0] = arm serial
 * @SKUA_EQE_QP: asynchronous QP event; @num = QPN, subtype enum skua_qp_event
 * @SKUA_EQE_CQ_ERR: CQ overrun or not writable; @num = CQN, subtype enum
 *	skua_cq_err. The CQ takes no more completions
 * @SKUA_EQE_SRQ_LIMIT: SRQ fell below its limit (which is then disarmed);
 *	@num = SRQN
 * @SKUA_EQE_SRQ_ERR: SRQ in error; @num = SRQN
 * @SKUA_EQE_PORT: link state changed: QUERY_PORT returns the present one
 * @SKUA_EQE_FATAL: SKUA_STATUS_FATAL was set; @info[0] = enum skua_fatal
 * @SKUA_EQE_PAGE_FAULT: access to a non-present page of an on-demand region;
 *	body is struct skua_eqe_fault (capability SKUA_CAP_ODP)
 * @SKUA_EQE_RECOVERY: loss tracking report; body is struct skua_eqe_recovery
 *	(capability SKUA_CAP_RECOVERY)
 */
enum skua_eqe_type {
	SKUA_EQE_CMD			= 0x01,
	SKUA_EQE_COMP			= 0x02,
	SKUA_EQE_QP			= 0x03,
	SKUA_EQE_CQ_ERR			= 0x04,
	SKUA_EQE_SRQ_LIMIT		= 0x05,
	SKUA_EQE_SRQ_ERR		= 0x06,
	SKUA_EQE_PORT			= 0x07,
	SKUA_EQE_FATAL			= 0x08,
	SKUA_EQE_PAGE_FAULT		= 0x09,
	SKUA_EQE_RECOVERY		= 0x0a,
};

/**
 * enum skua_qp_event - subtype of SKUA_EQE_QP
 * @SKUA_QP_EV_COMM_EST: first packet for a QP still in RTR
 * @SKUA_QP_EV_SQ_DRAINED: SQD reached, all earlier sends complete
 * @SKUA_QP_EV_LAST_WQE: no more receives from the SRQ for a QP in error
 * @SKUA_QP_EV_FATAL: QP in error for an internal or completion queue reason
 * @SKUA_QP_EV_REQ_ERR: responder met an invalid request
 * @SKUA_QP_EV_ACCESS_ERR: responder met an access violation
 * @SKUA_QP_EV_COUNT: number of events
 */
enum skua_qp_event {
	SKUA_QP_EV_COMM_EST		= 0,
	SKUA_QP_EV_SQ_DRAINED		= 1,
	SKUA_QP_EV_LAST_WQE		= 2,
	SKUA_QP_EV_FATAL		= 3,
	SKUA_QP_EV_REQ_ERR		= 4,
	SKUA_QP_EV_ACCESS_ERR		= 5,
	SKUA_QP_EV_COUNT
};

/* Subtype of SKUA_EQE_CQ_ERR. */
enum skua_cq_err {
	SKUA_CQ_ERR_OVERRUN		= 0,
	SKUA_CQ_ERR_DMA			= 1,
};

/**
 * struct skua_eqe - event queue element
 * @num: token or object number, see enum skua_eqe_type
 * @info: by type, else zero
 * @what: type and subtype
 * @own: phase
 *
 * @what and @own are stored last, by one atomic 8-byte write.
 */
struct skua_eqe {
	__le32 num;
	__le32 info[5];
	__le32 what;
	__le32 own;
};

_Static_assert(sizeof(struct skua_eqe) == 32, "skua_eqe");

#define SKUA_EQE_TYPE			GENMASK(7, 0)
#define SKUA_EQE_SUBTYPE		GENMASK(15, 8)
#define SKUA_EQE_PHASE			BIT(31)

/**
 * struct skua_eqe_fault - first 24 bytes of SKUA_EQE_PAGE_FAULT
 * @qpn: QP that waits
 * @key: of the on-demand region; for a window, that of the region behind it
 * @va: first byte that is missing, an address of that region
 * @len: bytes from there on that the message is known to access; they lie within the
 *	region. Software may provide only the first; the device then faults again
 * @token: SKUA_EQE_FAULT_TOKEN, for RESUME_PAGE_FAULT: never 0, of no further meaning;
 *	SKUA_EQE_FAULT_WRITE: the page must be writable
 *
 * A side of a QP has one fault outstanding at most, from the miss to its RESUME or to
 * the QP's end: so its EQE waits in the context while the EQ is full, like any other.
 */
struct skua_eqe_fault {
	__le32 qpn;
	__le32 key;
	__le64 va;
	__le32 len;
	__le32 token;
};

_Static_assert(sizeof(struct skua_eqe_fault) == 24, "skua_eqe_fault");

#define SKUA_EQE_FAULT_TOKEN		GENMASK(30, 0)
#define SKUA_EQE_FAULT_WRITE		BIT(31)

/**
 * enum skua_recovery_kind - SKUA_RECOVERY_KIND: what a loss report says
 * @SKUA_RECOVERY_OPEN: the requester has begun to report, as something is missing; @bits:
 *	in the low half after how many ns without news a packet counts as lost, in the high
 *	half the round trip time in ns; WORD: log2 of the packets that may be outstanding, as
 *	the smaller of both ends' windows has it
 * @SKUA_RECOVERY_PROBE: the same, as nothing came for long: what the peer has is to be asked
 * @SKUA_RECOVERY_ARRIVED: PSNs that arrived: requests at the peer, responses here
 * @SKUA_RECOVERY_HELD: PSNs of responses to READ requests that the peer holds before their
 *	turn: nothing of them is missing before the peer's expected PSN is beyond them
 * @SKUA_RECOVERY_ASKED: PSNs of responses that were asked for again now, although no command
 *	named them: of a READ whose request was lost all is asked for at once
 * @SKUA_RECOVERY_CLOSE: nothing is missing any more, or the device goes back by itself:
 *	commands of this serial have no effect from now on
 * @SKUA_RECOVERY_DROPPED: PSNs that arrived at the peer and were dropped there, as it had no
 *	receive for them before those before them have come: they are missing, too
 */
enum skua_recovery_kind {
	SKUA_RECOVERY_OPEN		= 1,
	SKUA_RECOVERY_PROBE		= 2,
	SKUA_RECOVERY_ARRIVED		= 3,
	SKUA_RECOVERY_HELD		= 4,
	SKUA_RECOVERY_ASKED		= 5,
	SKUA_RECOVERY_CLOSE		= 6,
	SKUA_RECOVERY_DROPPED		= 7,
};

/**
 * struct skua_eqe_recovery - first 24 bytes of SKUA_EQE_RECOVERY
 * @qpn: the QP; SKUA_RECOVERY_DONE: how many commands of its ring were dealt with, modulo 256
 * @serial: of this time of loss, for commands to quote; no other time of any QP has the same
 *	until the device is reset
 * @una: oldest PSN that is not acknowledged
 * @what: SKUA_RECOVERY_*
 * @bits: by kind; ARRIVED, HELD, ASKED: bit *i* is PSN @una + 64 * WORD + *i*; else zero
 *
 * Documentation/recovery.rst describes how device and driver work together. What does not
 * fit into the EQ is not kept: the QP then goes back by itself.
 */
struct skua_eqe_recovery {
	__le32 qpn;
	__le32 serial;
	__le32 una;
	__le32 what;
	__le64 bits;
};

_Static_assert(sizeof(struct skua_eqe_recovery) == 24, "skua_eqe_recovery");

/* qpn */
#define SKUA_RECOVERY_QPN		GENMASK(23, 0)
#define SKUA_RECOVERY_DONE		GENMASK(31, 24)
/* what: PSNs from una up to the one that the peer expects, and up to the first never sent */
#define SKUA_RECOVERY_KIND		GENMASK(3, 0)
#define SKUA_RECOVERY_WORD		GENMASK(7, 4)
#define SKUA_RECOVERY_CUM		GENMASK(17, 8)
#define SKUA_RECOVERY_MAX		GENMASK(27, 18)

/**
 * enum skua_recovery_op - SKUA_RECOVERY_OP: what the requester is to do
 * @SKUA_RECOVERY_SEND: send again what was sent with the PSNs from @first up to @end; those
 *	that are acknowledged by then are left out
 * @SKUA_RECOVERY_ADVANCE: all before @end arrived, responses too: complete it. It has no
 *	effect beyond the PSN that the peer expects
 * @SKUA_RECOVERY_GO_BACK: send all again that is not acknowledged, and report no more
 * @SKUA_RECOVERY_FAIL: the QP goes to ERR, with SKUA_QP_EV_FATAL
 */
enum skua_recovery_op {
	SKUA_RECOVERY_SEND		= 1,
	SKUA_RECOVERY_ADVANCE		= 2,
	SKUA_RECOVERY_GO_BACK		= 3,
	SKUA_RECOVERY_FAIL		= 4,
};

/**
 * struct skua_recovery_cmd - entry of a QP's recovery ring
 * @op: SKUA_RECOVERY_OP
 * @serial: of the report that it answers
 * @first: PSN; zero where it is not used
 * @end: PSN; zero where it is not used
 *
 * The ring has SKUA_RECOVERY_RING entries and lies behind the table of struct skua_ext_write.
 * Software writes entries and rings SKUA_UAR_RECOVERY; the device reads an entry when it is
 * about to execute it. One with another serial than the present one, an unknown op, or PSNs
 * that are not outstanding has no effect and is counted (SKUA_CNT_RECOVERY_STALE).
 */
struct skua_recovery_cmd {
	__le32 op;
	__le32 serial;
	__le32 first;
	__le32 end;
};

_Static_assert(sizeof(struct skua_recovery_cmd) == 16, "skua_recovery_cmd");

#define SKUA_RECOVERY_OP		GENMASK(3, 0)
#define SKUA_RECOVERY_RING		64

#endif /* SKUA_HW_EQE_H */
