/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: contexts of queues: EQs, CQs, SRQs and QPs.
 *
 * They lie in ICM (see icm.h). A QP has a context for each side: its send queue's
 * holds the attributes and the requester, its receive queue's the responder.
 *
 * "State" below marks fields that the device owns: zero in commands.
 */
#ifndef SKUA_HW_QUEUE_H
#define SKUA_HW_QUEUE_H

#include <linux/types.h>
#include <skua/hw/cc.h>
#include <skua/hw/icm.h>
#include <skua/hw/wqe.h>

/**
 * struct skua_eqc - event queue context
 * @flags: state bits, vector, size
 * @uar: UAR page of its doorbell
 * @base: bus address of the ring (contiguous), 64-byte aligned
 * @moderation: SKUA_MOD_*
 * @eqn: its number
 * @pi: state: producer index
 * @ci: state: consumer index
 * @pending: state: event types that wait for room
 * @reserved: zero
 */
struct skua_eqc {
	__le32 flags;
	__le32 uar;
	__le64 base;
	__le32 moderation;
	__le32 eqn;
	__le32 pi;
	__le32 ci;
	__le32 pending;
	__le32 reserved[23];
};

_Static_assert(sizeof(struct skua_eqc) == SKUA_ICM_EQC_SIZE, "skua_eqc");

#define SKUA_EQC_VALID			BIT(0)	/* state */
#define SKUA_EQC_ARMED			BIT(1)	/* state */
#define SKUA_EQC_LOG_SIZE		GENMASK(12, 8)
#define SKUA_EQC_VECTOR			GENMASK(31, 16)

/* Interrupt (EQ) or event (CQ) moderation: after COUNT events, or USEC microseconds
 * after the first, whichever is earlier; 0, 0: at once. COUNT 0 counts nothing:
 * after USEC; USEC 0: at once. An arm for which there are completions already is answered
 * at once; completions that another event reports meanwhile need no further event.
 */
#define SKUA_MOD_USEC			GENMASK(15, 0)
#define SKUA_MOD_COUNT			GENMASK(31, 16)

/**
 * struct skua_cqc - completion queue context
 * @flags: size, entry size
 * @eqn: EQ of its completion events
 * @uar: UAR page of its arm doorbell
 * @moderation: SKUA_MOD_*
 * @ring: where the entries lie
 * @dbr: bus address of struct skua_cq_dbr
 * @cqn: its number
 * @pi: state: producer index
 * @ci: state: consumer index as last read from the record
 * @arm_ci: state: consumer index of the arm
 * @arm: state: SKUA_CQC_ARM_*
 * @pending: state: events that wait for room in the EQ
 * @solicited: state: index after the last solicited or error CQE
 * @held: state: completions since the arm that moderation holds back
 * @told: state: @pi when the last completion EQE was written
 * @reserved: zero
 *
 * @told and @solicited are never more than 2^31 behind @pi: the device moves them along,
 * so that after a long time without an event they do not look like indices ahead of it.
 */
struct skua_cqc {
	__le32 flags;
	__le32 eqn;
	__le32 uar;
	__le32 moderation;
	struct skua_xlat ring;
	__le64 dbr;
	__le32 cqn;
	__le32 pi;
	__le32 ci;
	__le32 arm_ci;
	__le32 arm;
	__le32 pending;
	__le32 solicited;
	__le32 held;
	__le32 told;
	__le32 reserved[13];
};

_Static_assert(sizeof(struct skua_cqc) == SKUA_ICM_CQC_SIZE, "skua_cqc");

#define SKUA_CQC_VALID			BIT(0)	/* state */
#define SKUA_CQC_ERROR			BIT(1)	/* state: overrun or DMA error */
#define SKUA_CQC_CQE128			BIT(2)
/* Software takes care that the CQ cannot overrun: the record is not read. */
#define SKUA_CQC_IGNORE_OVERRUN		BIT(3)
#define SKUA_CQC_LOG_SIZE		GENMASK(12, 8)

#define SKUA_CQC_ARM_ANY		BIT(0)
#define SKUA_CQC_ARM_SOLICITED		BIT(1)
#define SKUA_CQC_ARM_SERIAL		GENMASK(9, 8)

#define SKUA_CQC_PENDING_COMP		BIT(0)
#define SKUA_CQC_PENDING_ERR		BIT(1)
#define SKUA_CQC_PENDING_ERR_DMA	BIT(2)	/* with ERR: it is SKUA_CQ_ERR_DMA */

/**
 * struct skua_srqc - shared receive queue context
 * @flags: size and stride
 * @pd: protection domain
 * @limit: limit event threshold, 0: off; reset to 0 by the event
 * @xrcd: XRC domain; 0: not an XRC SRQ
 * @cqn: XRC: completion queue, else zero
 * @srqn: its number
 * @ring: where the WQEs lie
 * @dbr: bus address of struct skua_srq_dbr
 * @pi: state: producer index as last read
 * @ci: state: WQEs taken
 * @head: state: position in the ring of the next WQE
 * @pending: state: events that wait for room in the EQ
 * @life: state: which of the SRQs that had this number one after the other it is
 * @early: state: WQEs that QPs hold for messages whose turn has not come
 * @reserved: zero
 *
 * WQEs form a list: the first is at position 0, each names the position of the next
 * one. A link is written before the WQE's own producer index: that of the last WQE
 * names where software will put the next. The device takes a WQE with the first
 * packet of a message, reports it when the message ends, and takes WQEs in the
 * order of the list for all QPs together.
 *
 * The WQEs' keys are checked against @pd, whatever the QP's. A link that leaves the
 * ring, or a ring that cannot be read, is the SRQ's error: SKUA_EQE_SRQ_ERR, no more
 * WQEs, and the QPs that want one go to ERR (SKUA_QP_EV_FATAL).
 *
 * With selective repeat a QP takes WQEs for messages of which packets come before their turn,
 * too, in the order of these messages: struct skua_ext_recv. All QPs together leave as many WQEs
 * in the SRQ as they hold so (@early). Those that a QP has when it goes to ERR or RESET, or is
 * destroyed, are reported with SKUA_CQE_WR_FLUSH_ERR.
 *
 * An SRQ with @xrcd serves the XRC_TGT QPs of that domain, for the packets that name
 * it; it reports to @cqn, and R_Keys of these packets are checked against @pd.
 */
struct skua_srqc {
	__le32 flags;
	__le32 pd;
	__le32 limit;
	__le32 xrcd;
	__le32 cqn;
	__le32 srqn;
	struct skua_xlat ring;
	__le64 dbr;
	__le32 pi;
	__le32 ci;
	__le32 head;
	__le32 pending;
	__le32 life;
	__le32 early;
	__le32 reserved[14];
};

_Static_assert(sizeof(struct skua_srqc) == SKUA_ICM_SRQC_SIZE, "skua_srqc");

#define SKUA_SRQC_VALID			BIT(0)	/* state */
#define SKUA_SRQC_ERROR			BIT(1)	/* state */
#define SKUA_SRQC_RESERVED_LKEY		BIT(2)
#define SKUA_SRQC_LOG_SIZE		GENMASK(12, 8)
#define SKUA_SRQC_LOG_STRIDE		GENMASK(19, 16)

/* Transport service types (SKUA_QP_TYPE). */
enum skua_qp_type {
	SKUA_QP_RC			= 0,
	SKUA_QP_UC			= 1,
	SKUA_QP_UD			= 2,
	SKUA_QP_GSI			= 3,
	SKUA_QP_XRC_INI			= 4,
	SKUA_QP_XRC_TGT			= 5,
	SKUA_QP_RAW_ETH			= 6,
};

/*
 * QP states (SKUA_ATTR_STATE), numbered as in enum ib_qp_state. A responder that goes to RESET or
 * ERR, or is destroyed, acknowledges first what it has completed and not acknowledged, unless it
 * has failed, or, without selective repeat, has responses to send.
 */
enum skua_qp_state {
	SKUA_QP_RESET			= 0,
	SKUA_QP_INIT			= 1,
	SKUA_QP_RTR			= 2,
	SKUA_QP_RTS			= 3,
	SKUA_QP_SQD			= 4,
	SKUA_QP_SQE			= 5,
	SKUA_QP_ERR			= 6,
};

/**
 * struct skua_qp_attr - QP attributes that MODIFY_QP sets
 * @av: path to the peer (RC, UC, XRC)
 * @dest_qpn: peer's QP (RC, UC, XRC)
 * @retry: retry counts, timers, path MTU (RC, UC, XRC); that of UD and GSI is the
 *	largest that the port's MTU leaves room for, with 96 bytes for headers
 * @rights: READ/atomic depths and remote access rights
 * @state: QP state
 * @sq_psn: first PSN to send
 * @rq_psn: first PSN expected
 * @qkey: Q_Key (UD); that of GSI is SKUA_QKEY_GSI whatever is given here
 * @pkey: P_Key index
 * @rate_kbps: send rate limit, 0: none (SKUA_CAP_RATE_LIMIT)
 * @ext: selective repeat (RC, XRC; SKUA_CAP_SR), else zero
 * @rate_burst: bytes that may go at once under the limit, 0: the device's choice; zero
 *	where @rate_kbps is
 * @vendor_off: SKUA_VENDOR_*: operations of Skua's own that the QP does without, as
 *	the peer may (RC, XRC; SKUA_CAP_VENDOR_OFF)
 *
 * A QP with a rate limit sends, in any span of time, no more bytes than the rate gives
 * in that time, one burst, and the rest of the packet with which the burst ends
 * (RAW_ETH: of the WQE, as it may be a large segment). Bytes are those of the frames,
 * from the MAC header to the ICRC or the end of the payload; what the link adds (FCS,
 * preamble, gap) does not count. Requests are limited, retransmissions included.
 * Responses (acknowledgments, READ and atomic responses) are not. Where congestion control
 * (cc.h) imposes a lower rate, that counts in place of the limit, with a burst of the
 * device's choice, and READ responses keep to it too.
 *
 * A QP whose turn it is not waits for the time when it is, and costs nothing until then;
 * it does not delay others. A new limit holds from the next packet on: what was sent
 * under the old one still counts, in bytes, up to a burst and a packet of the new one.
 */
struct skua_qp_attr {
	struct skua_av av;
	__le32 dest_qpn;
	__le32 retry;
	__le32 rights;
	__le32 state;
	__le32 sq_psn;
	__le32 rq_psn;
	__le32 qkey;
	__le32 pkey;
	__le32 rate_kbps;
	__le32 ext;
	__le32 rate_burst;
	__le32 vendor_off;
};

_Static_assert(sizeof(struct skua_qp_attr) == 80, "skua_qp_attr");

/* The Q_Key of QP 1, by the IBTA. */
#define SKUA_QKEY_GSI			0x80010000

/* retry. Codes of timers and MTU are the IBTA's (enum ib_mtu: 1 = 256 ...). */
#define SKUA_ATTR_RETRY_CNT		GENMASK(2, 0)
#define SKUA_ATTR_RNR_RETRY		GENMASK(6, 4)	/* 7: without end */
#define SKUA_ATTR_ACK_TIMEOUT		GENMASK(12, 8)	/* 4.096 us << n; 0: never */
#define SKUA_ATTR_MIN_RNR_TIMER		GENMASK(20, 16)
#define SKUA_ATTR_PATH_MTU		GENMASK(26, 24)
/* rights */
#define SKUA_ATTR_MAX_RD_ATOMIC		GENMASK(7, 0)	/* as requester */
#define SKUA_ATTR_MAX_DEST_RD_ATOMIC	GENMASK(15, 8)	/* as responder */
#define SKUA_ATTR_ACCESS		GENMASK(31, 16)	/* SKUA_ACCESS_REMOTE_*, FLUSH */
/* state */
#define SKUA_ATTR_STATE			GENMASK(3, 0)
#define SKUA_ATTR_SQD_NOTIFY		BIT(4)	/* SQ_DRAINED event wanted */
/* pkey */
#define SKUA_ATTR_PKEY_INDEX		GENMASK(15, 0)
/*
 * ext: whether the QP speaks the extension that Documentation/wire/selective-repeat.rst
 * describes, and log2 of the packets that it lets its peer have outstanding: MIN to MAX;
 * zero with SKUA_EXT_PLAIN.
 */
#define SKUA_ATTR_EXT_MODE		GENMASK(1, 0)
#define SKUA_EXT_PLAIN			0	/* standard RoCEv2 only */
#define SKUA_EXT_NEGOTIATE		1	/* as soon as the peer has said that it does too */
#define SKUA_EXT_ALWAYS			2	/* from the first packet on */
#define SKUA_ATTR_EXT_LOG_WINDOW	GENMASK(12, 8)
#define SKUA_EXT_LOG_WINDOW_MIN		5
#define SKUA_EXT_LOG_WINDOW_MAX		9
/*
 * SKUA_CAP_RECOVERY: of what the QP sends, software keeps what has arrived, and decides what
 * is sent again (Documentation/recovery.rst). Not with SKUA_EXT_PLAIN.
 */
#define SKUA_ATTR_EXT_ONLOAD		BIT(16)
/*
 * vendor_off: a send WQE of such an operation ends with LOC_QP_OP_ERR, and to a packet
 * of one the responder says what a device without it does (NAK, invalid request).
 */
#define SKUA_VENDOR_MASKED_ATOMIC	BIT(0)	/* MASKED_CAS, MASKED_FAA */
#define SKUA_VENDOR_ALL			BIT(0)

/**
 * struct skua_fault - state of one side of a QP: its page fault
 * @va: first byte missed, an address of the region
 * @key: of the region
 * @len: bytes wanted from there on
 * @token: as in the EQE, 0: there was none
 * @flags: SKUA_FAULT_*
 */
struct skua_fault {
	__le64 va;
	__le32 key;
	__le32 len;
	__le32 token;
	__le32 flags;
};

_Static_assert(sizeof(struct skua_fault) == 24, "skua_fault");

#define SKUA_FAULT_WAITS		BIT(0)	/* for RESUME_PAGE_FAULT */
#define SKUA_FAULT_PENDING		BIT(1)	/* the EQE waits for room */
#define SKUA_FAULT_ERROR		BIT(2)	/* the next miss at @va fails */
#define SKUA_FAULT_RNRS			GENMASK(15, 8)	/* RNR NAKs for it so far */

/**
 * struct skua_sq_cfg - what CREATE_QP says of the send side
 * @flags: SKUA_QP_F_* and type, log2 of the ring's blocks
 * @pd: protection domain (XRC_TGT: zero, the SRQs' is used)
 * @cqn: CQ of send completions (XRC_TGT: zero)
 * @uar: UAR page of its doorbells
 * @ring: where the ring lies
 * @dbr: bus address of struct skua_qp_dbr
 * @max_inline: largest inline payload that software will post
 * @qpn: the QP's number, variant bits included
 */
struct skua_sq_cfg {
	__le32 flags;
	__le32 pd;
	__le32 cqn;
	__le32 uar;
	struct skua_xlat ring;
	__le64 dbr;
	__le32 max_inline;
	__le32 qpn;
};

_Static_assert(sizeof(struct skua_sq_cfg) == 48, "skua_sq_cfg");

#define SKUA_QP_TYPE			GENMASK(3, 0)
/* Every send WQE is signaled. */
#define SKUA_QP_F_SIG_ALL		BIT(4)
/* SKUA_RESERVED_LKEY may be used: kernel queues only. */
#define SKUA_QP_F_RESERVED_LKEY		BIT(5)
/*
 * SKUA_CAP_SCATTER_CQE: small payloads may come in the CQE (SKUA_CQE_F_INLINE) and are not
 * written to memory then. RQ: messages of one packet that are received by SEND (RC, UC).
 * SQ: what signaled READs and atomics fetch (RC, XRC_INI). Only where all of the scatter
 * list's elements that it fills are in regions with SKUA_MPT_OWN_VA; the device checks key,
 * rights and bounds of each as if it wrote there, with the same errors.
 */
#define SKUA_QP_F_SCATTER_RQ_CQE	BIT(6)
#define SKUA_QP_F_SCATTER_SQ_CQE	BIT(7)
/* Doorbell suppression by struct skua_qp_dbr's event index (SKUA_CAP_DB_SUPPRESS). */
#define SKUA_QP_F_DB_SUPPRESS		BIT(8)
/* UD, RAW_ETH: multicast that this QP sent is not given back to it. */
#define SKUA_QP_F_NO_LOOPBACK		BIT(9)
/*
 * No send queue / no receive queue (its size is then zero). XRC_INI has NO_RQ,
 * XRC_TGT both.
 */
#define SKUA_QP_F_NO_SQ			BIT(10)
#define SKUA_QP_F_NO_RQ			BIT(11)
/* Receives come from an SRQ, which is none of XRC (RC, UC, UD, GSI). */
#define SKUA_QP_F_SRQ			BIT(12)
/* RAW_ETH: VLAN tags stay in received frames. */
#define SKUA_QP_F_KEEP_VLAN		BIT(13)
#define SKUA_QP_LOG_SQ			GENMASK(20, 16)

/**
 * struct skua_rq_cfg - what CREATE_QP says of the receive side
 * @flags: log2 of the WQEs, log2 of the stride in segments, SKUA_RQ_GRO
 * @cqn: CQ of receive completions (XRC: zero)
 * @srqn: SRQ, with SKUA_QP_F_SRQ
 * @xrcd: XRC domain, not 0 (XRC_TGT), else zero
 * @ring: where the ring lies
 */
struct skua_rq_cfg {
	__le32 flags;
	__le32 cqn;
	__le32 srqn;
	__le32 xrcd;
	struct skua_xlat ring;
};

_Static_assert(sizeof(struct skua_rq_cfg) == 32, "skua_rq_cfg");

#define SKUA_RQ_LOG_SIZE		GENMASK(4, 0)
#define SKUA_RQ_LOG_STRIDE		GENMASK(11, 8)
/*
 * RAW_ETH: most frames that may be merged into one (SKUA_CAP_GRO, SKUA_CQE_F_GRO); 0 and 1:
 * none are.
 */
#define SKUA_RQ_GRO			GENMASK(21, 16)

/*
 * Contexts of QPs begin with the words that a device needs for a message of the ordinary
 * kind: SKUA_SQC_HOT and SKUA_RQC_HOT bytes. A device that has little room for contexts
 * keeps no more than these of a QP. The others are for what is rare, or for kinds of QPs
 * that are few: a message that takes several turns, going back, errors and events, page
 * faults, rate limits, congestion, datagrams, lost packets, a peer without a receive.
 */
#define SKUA_SQC_HOT			192
#define SKUA_RQC_HOT			128

/**
 * struct skua_sqc - send queue context: the QP's attributes, state and requester
 * @valid: state: SKUA_SQC_*
 * @recv_seq: selective repeat: of the current message, how many before it take a receive
 * @incarnation: number of the QP's life since it left RESET, for caches
 * @pi: producer index as last taken from a doorbell, in blocks
 * @ci: block index of the oldest WQE not yet completed
 * @cur: block index of the WQE being sent
 * @hi: block index of the first WQE not yet sent to its end: where @cur returns to
 *	after recovery
 * @cur_sent: bytes of the current message sent
 * @next_psn: PSN of the next packet to send (going back rewinds it)
 * @max_psn: first PSN never sent: where next_psn returns to after recovery
 * @una_psn: oldest PSN not acknowledged
 * @cur_psn: first PSN of the current message
 * @ci_psn: first PSN of the WQE at @ci
 * @hi_psn: first PSN of the WQE at @hi
 * @ssn: send sequence number: number of the current message, as the peer's MSN counts them
 * @ci_ssn: as @ssn, of the WQE at @ci
 * @ack_deadline: device time (ns) at which to retry, 0: timer off
 * @rr_seq: selective repeat: how many READ requests, atomics and ATOMIC WRITEs come before it
 * @sr_deadline: device time, in 1024 ns, low 32 bits, at which to look after what may be
 *	lost, with SKUA_SQC_SR_TIMER
 * @credit: last message for which the peer has a receive, by its number (as @ssn), with
 *	SKUA_SQC_CREDIT_VALID in @valid
 * @first_len: length of the message at @ci, with SKUA_SQC_FIRST_KNOWN
 * @first: what else completes it: SKUA_SQC_FIRST_*
 * @local: WQEs without packets that are done but not reported, as they wait for
 *	earlier ones
 * @retry_left: transport retries left
 * @rnr_left: RNR retries left
 * @rd_outstanding: READs and atomics sent and not complete
 * @sr_window: windows of selective repeat: SKUA_SQC_WINDOW_*
 * @cfg: as created
 * @attr: attributes; @attr.state is the QP state's one home. The hot words end before
 *	@attr.sq_psn
 * @err_status: CQE status and vendor syndrome of the first error
 * @pending: asynchronous events that wait for room, BIT(enum skua_qp_event)
 * @cur_va: pinned: remote address of the current message
 * @cur_op: pinned: its opcode and flags word bits
 * @cur_len: pinned: its length
 * @cur_rkey: pinned: its key
 * @hi_rkey: pinned: as @cur_rkey, kept while @cur is behind @hi
 * @hi_va: pinned: as @cur_va
 * @hi_op: pinned: as @cur_op
 * @hi_len: pinned: as @cur_len
 * @rate_deadline: device time (ns) at which to send again under @rate, 0: not waiting
 * @rate_time: device time (ns) at which what was sent would be over if it had been sent
 *	at @rate, without a burst
 * @rate: rate in force, kbit/s, 0: none: the least of @attr.rate_kbps and of what the
 *	device itself imposes (@cc.rate)
 * @rate_frac: of @rate_time, parts of a nanosecond: @rate of them are one
 * @fault: page fault of the requester
 * @rnr_deadline: device time (ns) until which to wait, with SKUA_SQC_RNR_WAIT
 * @rtt_time: device time (ns) at which @rtt_psn was sent, with SKUA_SQC_RTT; 0: the next
 *	packet is to be measured
 * @counter: counter set bound to the QP, with SKUA_SQC_COUNTED
 * @rtt_psn: PSN whose acknowledgment measures the round trip, and SKUA_SQC_RTT_AGAIN,
 *	SKUA_SQC_RTT_REREAD, SKUA_SQC_RTT_ONCE
 * @srtt: smoothed round trip time, ns, 0: not known
 * @rttvar: its mean deviation, ns
 * @rtt_min: shortest round trip that was measured without a repair in it, ns, 0: not known
 * @ci_recv_seq: as @recv_seq, of the WQE at @ci, with SKUA_SQC_CI_SEQ
 * @ci_rr_seq: as @rr_seq, likewise
 * @cc: congestion control (SKUA_CAP_DCQCN, SKUA_CAP_CC_DELAY)
 * @rec_ring: bus address of the recovery ring (SKUA_ATTR_EXT_ONLOAD)
 * @rec_serial: of the present time of loss, with SKUA_SQC_LOSS
 * @rec_pi: producer index of the ring as last taken from a doorbell
 * @rec_ci: commands dealt with
 * @rec_next: PSN at which the command at @rec_ci goes on, and SKUA_SQC_REC_BEGUN
 * @rec_cum: PSN that the peer expects next, as it said last
 * @rec_top: one after the furthest PSN of which something was reported
 * @rec_sack: one after the furthest PSN that a bitmap of the peer's had
 * @rec_holes: PSNs between @rec_cum and @rec_sack that it did not have
 * @rec_first: first PSN of the run of arrivals that came last
 * @rec_told: PSNs of it from here on are yet to be reported
 * @rec_end: end of it
 * @run: selective repeat, XRC: SRQ of the last message before the current one that takes a
 *	receive, and how many in a row there are: SKUA_SQC_RUN_*
 * @engine: the requester's own further state
 */
struct skua_sqc {
	__le32 valid;
	__le32 recv_seq;
	__le32 incarnation;
	__le32 pi;
	__le32 ci;
	__le32 cur;
	__le32 hi;
	__le32 cur_sent;
	__le32 next_psn;
	__le32 max_psn;
	__le32 una_psn;
	__le32 cur_psn;
	__le32 ci_psn;
	__le32 hi_psn;
	__le32 ssn;
	__le32 ci_ssn;
	__le64 ack_deadline;
	__le32 rr_seq;
	__le32 sr_deadline;
	__le32 credit;
	__le32 first_len;
	__le16 first;
	__le16 local;
	__u8 retry_left;
	__u8 rnr_left;
	__u8 rd_outstanding;
	__u8 sr_window;
	struct skua_sq_cfg cfg;
	struct skua_qp_attr attr;
	__le32 err_status;
	__le32 pending;
	__le64 cur_va;
	__le32 cur_op;
	__le32 cur_len;
	__le32 cur_rkey;
	__le32 hi_rkey;
	__le64 hi_va;
	__le32 hi_op;
	__le32 hi_len;
	__le64 rate_deadline;
	__le64 rate_time;
	__le32 rate;
	__le32 rate_frac;
	struct skua_fault fault;
	__le64 rnr_deadline;
	__le64 rtt_time;
	__le32 counter;
	__le32 rtt_psn;
	__le32 srtt;
	__le32 rttvar;
	__le32 ci_recv_seq;
	__le32 ci_rr_seq;
	struct skua_cc cc;
	__le64 rec_ring;
	__le32 rec_serial;
	__le32 rec_pi;
	__le32 rec_ci;
	__le32 rec_next;
	__le32 rec_cum;
	__le32 rec_top;
	__le32 rec_sack;
	__le32 rec_holes;
	__le32 rec_first;
	__le32 rec_told;
	__le32 rec_end;
	__le32 run;
	__le32 rtt_min;
	__le32 engine;
};

_Static_assert(__builtin_offsetof(struct skua_sqc, attr.sq_psn) == SKUA_SQC_HOT, "skua_sqc");
_Static_assert(sizeof(struct skua_sqc) == SKUA_ICM_SQC_SIZE, "skua_sqc");

#define SKUA_SQC_VALID			BIT(0)
#define SKUA_SQC_CREDIT_VALID		BIT(1)	/* the peer limits SENDs */
#define SKUA_SQC_IN_RECOVERY		BIT(2)
#define SKUA_SQC_DRAINING		BIT(3)
#define SKUA_SQC_LAST_WQE_SENT		BIT(4)
#define SKUA_SQC_PINNED			BIT(5)	/* cur_*: begun, must not change */
#define SKUA_SQC_HI_PINNED		BIT(6)	/* hi_*: likewise */
/*
 * Something is missing: the requester's part of the LRC holds, or with SKUA_ATTR_EXT_ONLOAD
 * the requester reports.
 */
#define SKUA_SQC_LOSS			BIT(7)
#define SKUA_SQC_PACED			BIT(8)	/* rate is not 0 */
#define SKUA_SQC_FAULT			BIT(9)	/* fault.flags are not 0 */
#define SKUA_SQC_EXT			BIT(10)	/* attr.ext is not 0 */
#define SKUA_SQC_CC			BIT(11)	/* congestion control holds the QP back */
#define SKUA_SQC_ECT			BIT(12)	/* its packets may be marked: ECT(0) */
#define SKUA_SQC_CC_NEW			BIT(13)	/* under congestion control, has sent no request */
#define SKUA_SQC_REC_NEWS		BIT(14)	/* there is something to report */
#define SKUA_SQC_RESP_SENT		BIT(15)	/* under the rate the responder had the last turn */
#define SKUA_SQC_COUNTED		BIT(16)	/* counter is not 0 */
#define SKUA_SQC_RNR_WAIT		BIT(17)	/* for rnr_deadline */
#define SKUA_SQC_SR_TIMER		BIT(18)	/* sr_deadline holds */
#define SKUA_SQC_RTT			BIT(19)	/* rtt_*: a round trip is measured */
#define SKUA_SQC_CI_SEQ			BIT(20)	/* ci_recv_seq and ci_rr_seq hold */
#define SKUA_SQC_SR_LATE		BIT(21)	/* sr_deadline is that of a probe */
#define SKUA_SQC_ONLOAD			BIT(22)	/* attr.ext has SKUA_ATTR_EXT_ONLOAD */
#define SKUA_SQC_CC_READ		BIT(23)	/* like SKUA_SQC_CC_NEW: was asked for no READ */
/* Code of the NAK that the peer's QP has ended with, of a request after una_psn; 0: none. */
#define SKUA_SQC_PEER_NAK		GENMASK(26, 24)

#define SKUA_SQC_REC_BEGUN		BIT(31)	/* in rec_next */
#define SKUA_SQC_RTT_AGAIN		BIT(31)	/* in rtt_psn: sent before, or waits for what was */
#define SKUA_SQC_RTT_REREAD		BIT(30)	/* likewise: sent before, a READ response */
#define SKUA_SQC_RTT_ONCE		BIT(29)	/* likewise: and asked for again only once */

#define SKUA_SQC_RUN_SRQN		GENMASK(23, 0)
#define SKUA_SQC_RUN_NUM		GENMASK(31, 24)	/* 255: as many or more */

/* sr_window, log2 of packets each. */
#define SKUA_SQC_WINDOW			GENMASK(3, 0)	/* in force, 0: none */
#define SKUA_SQC_WINDOW_OWN		GENMASK(7, 4)	/* of @attr.ext, 0: there is none */

/*
 * first: what is known of the message at ci when it was begun, so that its completion needs
 * no look at its WQE.
 */
#define SKUA_SQC_FIRST_OP		GENMASK(7, 0)	/* enum skua_wqe_op */
#define SKUA_SQC_FIRST_BLOCKS		GENMASK(12, 8)
#define SKUA_SQC_FIRST_SIGNALED		BIT(13)
#define SKUA_SQC_FIRST_KNOWN		BIT(14)

/**
 * struct skua_rqc - receive queue context: the responder
 * @cfg: as created
 * @state: copy of the QP state
 * @pi: producer index as last read from the record
 * @ci: receive WQEs taken
 * @epsn: PSN expected
 * @msn: messages completed
 * @cur_op: opcode class of the message under way
 * @cur_got: bytes of it placed
 * @cur_len: RDMA WRITE: bytes announced
 * @cur_va: RDMA WRITE: first byte
 * @cur_rkey: RDMA WRITE: key
 * @cur_wqe: SKUA_RQC_WQE_TAKEN: position of the SRQ's WQE under way
 * @flags: SKUA_RQC_*
 * @rr_head: responder resources: oldest entry not done
 * @rr_tail: responder resources: next to use
 * @ack_psn: PSN of the last acknowledgment sent
 * @nak: syndrome of the NAK that waits to be sent, with SKUA_RQC_NAK_PENDING
 * @nak_psn: its PSN
 * @cur_srqn: SKUA_RQC_WQE_TAKEN: SRQ of that WQE; XRC: of the message under way
 * @cur_srq_life: SKUA_RQC_WQE_TAKEN: its @life: an SRQ may go while a WQE of it is used
 * @dropped: PSN of the furthest packet that was dropped since the NAK became due; with
 *	SKUA_RQC_DROPPED, for want of a receive of an SRQ since the last acknowledgment
 * @rq_seen: 1 + @ci when the record was last read, 0: it never was
 * @flush_num: FLUSH requests that wait for their answer
 * @recv_seq: receives completed since RTR
 * @err_syndrome: NAK syndrome that took the QP down. With it the hot words have ended
 * @fail_event: SKUA_RQC_FAILED: enum skua_qp_event of the error, or
 *	SKUA_QP_EV_COUNT for one that a completion reported
 * @fault: page fault of the responder
 * @flush: FLUSH requests, in the order of their PSNs: SKUA_RQC_FLUSH_*
 * @engine: the responder's own further state
 */
struct skua_rqc {
	struct skua_rq_cfg cfg;
	__le32 state;
	__le32 pi;
	__le32 ci;
	__le32 epsn;
	__le32 msn;
	__le32 cur_op;
	__le32 cur_got;
	__le32 cur_len;
	__le64 cur_va;
	__le32 cur_rkey;
	__le32 cur_wqe;
	__le32 flags;
	__le32 rr_head;
	__le32 rr_tail;
	__le32 ack_psn;
	__le32 nak;
	__le32 nak_psn;
	__le32 cur_srqn;
	__le32 cur_srq_life;
	__le32 dropped;
	__le32 rq_seen;
	__le32 flush_num;
	__le32 recv_seq;
	__le32 err_syndrome;
	__le32 fail_event;
	struct skua_fault fault;
	__le32 flush[16];
	__le32 engine[8];
};

_Static_assert(__builtin_offsetof(struct skua_rqc, err_syndrome) == SKUA_RQC_HOT, "skua_rqc");
_Static_assert(sizeof(struct skua_rqc) == SKUA_ICM_RQC_SIZE, "skua_rqc");

#define SKUA_RQC_FLUSHES		16	/* entries of flush */
#define SKUA_RQC_FLUSH_PSN		GENMASK(23, 0)
#define SKUA_RQC_FLUSH_MSN		GENMASK(31, 24)	/* of the MSN, its low bits */

#define SKUA_RQC_NAK_SENT		BIT(0)	/* sequence error reported */
#define SKUA_RQC_RNR_SENT		BIT(1)
#define SKUA_RQC_COMM_EST		BIT(2)	/* event given */
#define SKUA_RQC_ACK_PENDING		BIT(3)
#define SKUA_RQC_NAK_PENDING		BIT(4)
#define SKUA_RQC_FAILED			BIT(5)	/* takes no more requests, goes to ERR */
#define SKUA_RQC_WQE_TAKEN		BIT(6)	/* an SRQ's WQE is under way */
#define SKUA_RQC_HELD			BIT(7)	/* the responder's part of the LRC holds */
#define SKUA_RQC_EXT			BIT(8)	/* the peer has sent packets of the extension */
#define SKUA_RQC_REREAD			BIT(9)	/* the LRC has READ responses to be sent again */
#define SKUA_RQC_FAULT			BIT(10)	/* fault.flags are not 0 */
#define SKUA_RQC_DROPPED		BIT(12)	/* dropped is to be told to the peer */
#define SKUA_RQC_RECVS			BIT(11)	/* receives of SRQs are taken for later messages */

/**
 * struct skua_rr - one responder resource; RRC entries are arrays of these
 * @psn: first PSN of the request
 * @op: kind: 0 unused, else enum skua_wqe_op of the request, and SKUA_RR_*
 * @va: READ: first byte; atomics: the original value
 * @rkey: READ: key
 * @len: READ: bytes; atomics: 8
 * @sent: READ: bytes already answered
 * @msn: MSN that the answer carries: the request itself included, later ones not
 *
 * An entry stays after its answer until its place is used again: what a repeated
 * READ asks for is compared with it, and the original value of an atomic is there.
 * FLUSH requests are not among them (see @flush of struct skua_rqc): their number is
 * not limited by MAX_DEST_RD_ATOMIC, and they must not take the place of one that may
 * be repeated.
 */
struct skua_rr {
	__le32 psn;
	__le32 op;
	__le64 va;
	__le32 rkey;
	__le32 len;
	__le32 sent;
	__le32 msn;
};

_Static_assert(sizeof(struct skua_rr) == 32, "skua_rr");
#define SKUA_RR_OP			GENMASK(6, 0)
/* XRC: the SRQ whose PD the key is of. */
#define SKUA_RR_SRQN			GENMASK(29, 8)
/* The answer is yet to be sent. */
#define SKUA_RR_PENDING			BIT(30)
/* A repeated request: does not count against MAX_DEST_RD_ATOMIC. */
#define SKUA_RR_DUP			BIT(31)
/* Selective repeat: it came before its turn, its @psn is not yet reached. */
#define SKUA_RR_EARLY			BIT(7)
#define SKUA_RR_PER_QP			(SKUA_ICM_RRC_SIZE / sizeof(struct skua_rr))

/* The largest window of selective repeat, in packets. */
#define SKUA_LRC_PSNS			512

/**
 * struct skua_lrc - loss recovery context of a QP (SKUA_CAP_SR): state, all of it
 * @arrived: requester: PSNs from una_psn on that the peer holds, or of READ and atomic
 *	responses that came; bit PSN modulo SKUA_LRC_PSNS
 * @cum: requester: PSN that the peer expects next, as it said last
 * @top: requester: one after the furthest PSN of a packet that is known to have arrived
 * @seen: requester: likewise, but counting what is known of otherwise too: @cum, and READ
 *	requests, behind which come the PSNs of their responses
 * @lost: requester: what is before it and did not arrive counts as lost
 * @next: requester: PSNs from here up to @lost are still to be sent again
 * @again: requester: those from here up to @again_end once more, as they were lost once more
 * @again_end: see @again
 * @mark_end: requester: PSNs before it had been sent again when @mark_psn was next_psn
 * @mark_psn: see @mark_end
 * @mark_time: requester: device time (ns) of that
 * @hole_time: requester: device time (ns) since when there are holes, 0: there are none
 * @hole_top: requester: @seen at that time
 * @probes: requester: how often in turn nothing came for long since anything arrived, and
 *	SKUA_LRC_PROBE_DUE
 * @rr_held: requester: READ requests that the peer holds, and those that were sent again: a bit
 *	for each by the number that its SETH has, modulo SKUA_RR_PER_QP: SKUA_LRC_RR_*
 * @table: bus address of the table of struct skua_ext_slot, one for each PSN of the window; behind
 *	it is that of struct skua_ext_write, likewise
 * @recvs: responder: bus address of the table of struct skua_ext_recv, likewise
 * @recv_end: responder: with SKUA_RQC_RECVS, number of the first message, as its SETH has it,
 *	for which no receive was taken from an SRQ
 * @log_window: responder: log2 of the window
 * @held: responder: PSNs that are held
 * @held_top: responder: one after the furthest of them
 * @reread_num: responder: READ responses to be sent again: entries of @reread
 * @reread: responder: which, in the order in which they were asked for: SKUA_LRC_REREAD_*
 * @reread_sent: responder: how many of the first entry's were sent
 * @patience: requester: how much of the longest waiting for a hole the path needs:
 *	SKUA_LRC_PATIENCE_*, 0: nothing was learned
 * @calm: requester: first PSN since which nothing was late, or changed @patience
 * @fresh: requester: PSNs from here on were not sent again before @fresh_time
 * @fresh_time: requester: device time, in 1024 ns, low 32 bits
 * @order_end: requester: PSNs before it that were sent again were so in their order
 * @filled: requester: one after the furthest of these that has arrived since
 * @code: responder: what is held of the PSNs from epsn on: SKUA_LRC_*, four bits for each
 *	PSN modulo SKUA_LRC_PSNS, the lowest bits for the lowest PSN
 *
 * It is written while packets are missing and need not be looked at otherwise
 * (SKUA_SQC_LOSS, SKUA_RQC_HELD, SKUA_RQC_REREAD, SKUA_RQC_RECVS). What it says of the path
 * (@patience, @calm) holds until RESET.
 */
struct skua_lrc {
	__le64 arrived[SKUA_LRC_PSNS / 64];
	__le32 cum;
	__le32 top;
	__le32 lost;
	__le32 next;
	__le32 again;
	__le32 again_end;
	__le32 mark_end;
	__le32 mark_psn;
	__le64 mark_time;
	__le64 hole_time;
	__le32 hole_top;
	__le32 probes;
	__le64 table;
	__le32 rr_held;
	__le32 seen;
	__le32 log_window;
	__le32 held;
	__le32 held_top;
	__le32 reread_num;
	__le32 reread[16];
	__le32 reread_sent;
	__le32 recv_end;
	__le64 recvs;
	__le32 patience;
	__le32 calm;
	__le32 fresh;
	__le32 fresh_time;
	__le32 order_end;
	__le32 filled;
	__le32 code[SKUA_LRC_PSNS / 8];
};

_Static_assert(sizeof(struct skua_lrc) == SKUA_ICM_LRC_SIZE, "skua_lrc");

#define SKUA_LRC_PROBES			GENMASK(30, 0)	/* in probes: how often */
#define SKUA_LRC_PROBE_DUE		BIT(31)	/* likewise: the last packet is to be sent */
#define SKUA_LRC_PATIENCE_NOW		GENMASK(8, 0)	/* parts of SKUA_LRC_PATIENCE */
/* So long READ responses that were asked for again are waited for; 0: as others. */
#define SKUA_LRC_PATIENCE_REREAD	GENMASK(30, 9)
#define SKUA_LRC_REREAD_UNIT		256	/* ns, of SKUA_LRC_PATIENCE_REREAD */
#define SKUA_LRC_PATIENCE_LATE		BIT(31)	/* a packet was late ever */
#define SKUA_LRC_PATIENCE		256

#define SKUA_LRC_RR_HELD		GENMASK(15, 0)	/* it came, its answer did not yet */
#define SKUA_LRC_RR_ASKED		GENMASK(31, 16)	/* sent again, of which nothing came */

#define SKUA_LRC_REREADS		16	/* entries of reread */
#define SKUA_LRC_REREAD_PSN		GENMASK(23, 0)	/* the first */
#define SKUA_LRC_REREAD_NUM		GENMASK(31, 24)	/* how many */

/*
 * What is held of a PSN: which packet of which kind of message. SKUA_LRC_WRITE_BEGUN: nothing,
 * but the WRITE whose first packet it is has a struct skua_ext_write, as others of its packets
 * came.
 */
#define SKUA_LRC_NONE			0
#define SKUA_LRC_SEND_FIRST		1
#define SKUA_LRC_SEND_MIDDLE		2
#define SKUA_LRC_SEND_LAST		3
#define SKUA_LRC_SEND_ONLY		4
#define SKUA_LRC_WRITE_FIRST		5
#define SKUA_LRC_WRITE_MIDDLE		6
#define SKUA_LRC_WRITE_LAST		7
#define SKUA_LRC_WRITE_ONLY		8
#define SKUA_LRC_WRITE_LAST_IMM		9
#define SKUA_LRC_WRITE_ONLY_IMM		10
#define SKUA_LRC_READ			11	/* a READ request, in its place of the RRC */
#define SKUA_LRC_WRITE_BEGUN		15

/**
 * struct skua_ext_slot - what a packet said that came before its turn
 * @imm: immediate data as on the wire, or the key to invalidate
 * @what: SKUA_EXT_SLOT_*
 * @off: number of the packet in its message
 * @seq: number of the message among those that take a receive, 24 bits
 *
 * The device writes it for each packet of a SEND and for the last one of a WRITE with
 * immediate data, at index PSN modulo the window, and reads it when their turn has come:
 * that all packets of a message belong together is only known then. Software does neither.
 */
struct skua_ext_slot {
	__le32 imm;
	__le32 what;
	__le32 off;
	__le32 seq;
};

_Static_assert(sizeof(struct skua_ext_slot) == 16, "skua_ext_slot");

/**
 * struct skua_ext_write - where a WRITE goes of which packets came before their turn
 * @va: RETH of its packets: address of the whole message
 * @rkey: likewise: key
 * @len: likewise: bytes of the whole message
 *
 * At index PSN of the message's first packet modulo the window. The device writes it when the
 * first of the message's packets comes before its turn, unless the PSN expected is amid the
 * message. It reads it when a packet of an earlier WRITE comes, which must not overwrite what
 * packets of the later one have written. Software does neither.
 */
struct skua_ext_write {
	__le64 va;
	__le32 rkey;
	__le32 len;
};

_Static_assert(sizeof(struct skua_ext_write) == 16, "skua_ext_write");

/* Bytes of the tables of struct skua_ext_slot and skua_ext_write, by log2 of the window. */
#define SKUA_EXT_TABLE_BYTES(log_window)					\
	((sizeof(struct skua_ext_slot) + sizeof(struct skua_ext_write)) << (log_window))

/**
 * struct skua_ext_recv - a WQE of an SRQ that was taken for a message before its turn
 * @pos: its position in the SRQ
 * @srqn: the SRQ
 * @life: of the SRQ, as @life of struct skua_srqc
 * @reserved: zero
 *
 * At index number of the message (@seq of struct skua_ext_slot) modulo the window, of QPs that
 * receive from an SRQ. The device writes and reads it, software does neither.
 */
struct skua_ext_recv {
	__le32 pos;
	__le32 srqn;
	__le32 life;
	__le32 reserved;
};

_Static_assert(sizeof(struct skua_ext_recv) == 16, "skua_ext_recv");

#define SKUA_EXT_SLOT_LEN		GENMASK(15, 0)	/* payload of the packet */
#define SKUA_EXT_SLOT_SE		BIT(16)
#define SKUA_EXT_SLOT_IMM		BIT(17)
#define SKUA_EXT_SLOT_INV		BIT(18)

#endif /* SKUA_HW_QUEUE_H */
