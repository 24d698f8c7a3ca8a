/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: contexts as they lie in ICM.
 *
 * ICM is the device's virtual memory in the host: one 48-bit address space,
 * holding tables, each of a base and an entry size. The driver maps host pages
 * into it on demand (MAP_ICM). A mapped context belongs to the device: software
 * neither reads nor writes it, but for MTT pages, which software fills before
 * the MPT that uses them becomes valid, or with SYNC_MTT after. The QUERY
 * commands return contexts up to date.
 *
 * Contexts hold everything: doorbell indices, PSNs, deadlines. The device may
 * keep any of them in a bounded cache and write it back; a quiesced device can
 * be written out whole.
 *
 * "State" below marks fields that the device owns: zero in commands.
 */
#ifndef SKUA_HW_CONTEXT_H
#define SKUA_HW_CONTEXT_H

#include <linux/types.h>
#include <skua/hw/wqe.h>

/* ICM is mapped in pages of this unit; table bases are aligned to it. */
#define SKUA_ICM_PAGE_SHIFT		12
#define SKUA_ICM_PAGE_SIZE		BIT(SKUA_ICM_PAGE_SHIFT)
/* Addresses in ICM are below this power of two. */
#define SKUA_ICM_ADDR_BITS		48

/*
 * The tables: X(name, number, entry size in bytes, text). The entry sizes are
 * also in QUERY_DEVICE; software uses those.
 */
#define SKUA_ICM_TABLE(X)						\
	X(SQC,	 0, 512,  "send queue contexts")			\
	X(RQC,	 1, 256,  "receive queue contexts")			\
	X(SRQC,	 2, 128,  "shared receive queue contexts")		\
	X(CQC,	 3, 128,  "completion queue contexts")			\
	X(EQC,	 4, 128,  "event queue contexts")			\
	X(MPT,	 5, 128,  "memory protection table")			\
	X(MTT,	 6, 8,    "memory translation table")			\
	X(RRC,	 7, 512,  "responder resources (READ, atomics) of a QP")\
	X(GID,	 8, 32,   "GID table")					\
	X(FLOW,	 9, 128,  "flow steering rules")			\
	X(MCG,	10, 64,   "multicast members")				\
	X(RSS,	11, 1024, "receive side scaling contexts")		\
	X(CNT,	12, 256,  "counter sets")

enum skua_icm_table {
#define X(name, number, size, text) SKUA_ICM_##name = number,
	SKUA_ICM_TABLE(X)
#undef X
	SKUA_ICM_TABLES
};

/* SKUA_ICM_SQC_SIZE ... */
enum {
#define X(name, number, size, text) SKUA_ICM_##name##_SIZE = size,
	SKUA_ICM_TABLE(X)
#undef X
};

/**
 * struct skua_xlat - where a queue's ring lies
 * @base: bus address of the first page (MODE_CONTIG), or index of the first MTT
 *	entry (MODE_MTT)
 * @offset: of the ring's first byte in the first page; a multiple of 64
 * @mode: translation mode and page size
 */
struct skua_xlat {
	__le64 base;
	__le32 offset;
	__le32 mode;
};

_Static_assert(sizeof(struct skua_xlat) == 16, "skua_xlat");

#define SKUA_XLAT_MODE			GENMASK(1, 0)
#define SKUA_XLAT_CONTIG		0	/* one run of bus addresses */
#define SKUA_XLAT_MTT			1	/* page list in the MTT */
#define SKUA_XLAT_INLINE		2	/* page list in the MPT entry */
#define SKUA_XLAT_DIR			3	/* SKUA_MPT_ODP: directory in the MTT */
#define SKUA_XLAT_LOG_PAGE		GENMASK(13, 8)
/* XLAT_DIR: of the lists that the directory names; LOG_PAGE is what a list covers. */
#define SKUA_XLAT_LOG_SUB		GENMASK(21, 16)

/*
 * The device may cache MTT entries by aligned groups of this many (64 bytes), and
 * then knows an entry as it was when the group was first used. So a group has one
 * user at a time, and SYNC_MTT comes between two users.
 */
#define SKUA_MTT_GROUP			8

/* An MTT entry: bus address of a page, a multiple of its size, and: */
#define SKUA_MTT_PRESENT		BIT_ULL(0)
#define SKUA_MTT_WRITE			BIT_ULL(1)
#define SKUA_MTT_ADDR			GENMASK_ULL(63, 12)
/* An entry of a directory (XLAT_DIR): PRESENT, and the index of a list's first entry: */
#define SKUA_MTT_LIST			GENMASK_ULL(63, 12)

/* Access rights: in MPT entries, memory windows and QP attributes. */
#define SKUA_ACCESS_LOCAL_WRITE		BIT(0)
#define SKUA_ACCESS_REMOTE_WRITE	BIT(1)
#define SKUA_ACCESS_REMOTE_READ		BIT(2)
#define SKUA_ACCESS_REMOTE_ATOMIC	BIT(3)
#define SKUA_ACCESS_MW_BIND		BIT(4)
#define SKUA_ACCESS_ZERO_BASED		BIT(5)
#define SKUA_ACCESS_FLUSH_GLOBAL	BIT(6)
#define SKUA_ACCESS_FLUSH_PERSISTENT	BIT(7)
#define SKUA_ACCESS_RELAXED_ORDERING	BIT(8)
#define SKUA_ACCESS_ALL			GENMASK(8, 0)

/* Pages that an MPT entry can hold itself. */
#define SKUA_MPT_INLINE_PAGES		8

/**
 * struct skua_mpt - memory protection table entry: a region or a window
 * @key: the whole key, index << 8 | variant
 * @flags: type, state
 * @access: SKUA_ACCESS_*
 * @pd: protection domain
 * @va: first byte, as used in work requests and on the wire
 * @len: bytes
 * @xlat: where the region lies; @xlat.offset is that of @va in the first page
 * @npages: pages of the list
 * @parent: state: bound windows: key of the region bound to
 * @qpn: state: bound type 2 windows: the QP that bound it
 * @windows: state: windows bound to this region
 * @page: page addresses (XLAT_INLINE), as MTT entries
 */
struct skua_mpt {
	__le32 key;
	__le32 flags;
	__le32 access;
	__le32 pd;
	__le64 va;
	__le64 len;
	struct skua_xlat xlat;
	__le32 npages;
	__le32 parent;
	__le32 qpn;
	__le32 windows;
	__le64 page[SKUA_MPT_INLINE_PAGES];
};

_Static_assert(sizeof(struct skua_mpt) == SKUA_ICM_MPT_SIZE, "skua_mpt");

/* In flags. A FREE entry has an owner (its key is allocated) but no meaning. */
#define SKUA_MPT_STATE			GENMASK(1, 0)
#define SKUA_MPT_INVALID		0	/* not created */
#define SKUA_MPT_FREE			1	/* created, to be registered by a WQE */
#define SKUA_MPT_VALID			2
#define SKUA_MPT_TYPE			GENMASK(5, 4)
#define SKUA_MPT_MR			0
#define SKUA_MPT_MW1			1
#define SKUA_MPT_MW2			2
/* The region may be registered again by REG_MR work requests. */
#define SKUA_MPT_FAST_REG		BIT(8)
/*
 * On-demand region (SKUA_CAP_ODP): pages come and go while it is VALID. Its mode is
 * SKUA_XLAT_MTT, or SKUA_XLAT_DIR: then @xlat.base and @npages are a directory, each
 * entry of which covers 1 << SKUA_XLAT_LOG_PAGE bytes by naming a list of pages of
 * 1 << SKUA_XLAT_LOG_SUB bytes. A sparse region (implicit: the address space) thus
 * needs lists only where it is used. Not with FAST_REG, DM or NULL.
 *
 * An entry without SKUA_MTT_PRESENT, one in ICM that is not mapped, and for a write
 * one without SKUA_MTT_WRITE are misses. What gives rights (an entry becomes PRESENT,
 * a list gets its directory entry when it is filled) needs no SYNC_MTT: the device
 * reads an entry anew before it calls it a miss. What takes them does: software
 * changes the entry, by one 8-byte store, and the page or the list is its own when
 * SYNC_MTT of that entry is complete.
 *
 * A miss is found after key, rights and bounds were checked, and before a byte of
 * the packet is placed, fetched or changed. It makes one side of a QP, its requester
 * or its responder, report SKUA_EQE_PAGE_FAULT and wait for RESUME_PAGE_FAULT; each
 * side has at most one fault outstanding. While it waits:
 *
 * - A requester (gathering, or placing a response, which is dropped) sends nothing;
 *   its ack timer stands still. It goes on with the oldest PSN that it lacks.
 * - The responder of RC and XRC executes nothing that misses: it answers RNR NAK, with
 *   the QP's MIN_RNR_TIMER or 1.28 ms, whichever is longer, which doubles up to 41 ms
 *   while the fault is outstanding. ePSN stays, a receive WQE stays the message's.
 *   Where a READ response misses (its first pages did not) the responder pauses there.
 * - The responder of UC and UD drops the message. The receive WQE serves the next; one
 *   of an SRQ that UC has begun is reported, as for any message that UC drops.
 *
 * A QP that leaves for RESET or ERR forgets its faults (for SQE, its requester's).
 * RAW_ETH QPs do not wait, nor does anybody when there is no EQ of faults: there, and
 * after RESUME_PAGE_FAULT with an error, the access fails as for a bad key:
 * SKUA_VENDOR_KEY_FAULT, with LOC_PROT_ERR for a local key (a receive's peer is told
 * REMOTE_OP), NAK REMOTE_ACCESS for a remote one. FLUSH never misses: the device has
 * nothing left to write to a page that is not there.
 */
#define SKUA_MPT_ODP			BIT(9)
/*
 * Lies in device memory (SKUA_CAP_DM): mode is SKUA_XLAT_CONTIG and the address an
 * offset in BAR 4. The whole region lies within dm_size.
 */
#define SKUA_MPT_DM			BIT(10)
/* Reads give zero, writes are dropped: a null region. */
#define SKUA_MPT_NULL			BIT(11)
/*
 * Who makes an entry VALID, besides CREATE_MPT:
 *
 * A region with FAST_REG is created FREE, with @pd, and with a run of MTT entries of
 * its own (XLAT_MTT; @xlat.base, @npages: the most pages it can have; all else zero).
 * REG_MR finds it FREE, copies its page list into these entries and makes it VALID
 * under the key, rights, range, page size and offset of the WQE; @xlat.base and
 * @npages stay. LOCAL_INV and SEND_INV make it FREE again.
 *
 * A window is created FREE, with @pd. BIND_MW makes it VALID; binding type 1 to
 * nothing, or LOCAL_INV and SEND_INV on type 2, make it FREE. A bound window has no
 * translation of its own: its @va is an address of the region @parent (with
 * ZERO_BASED, byte 0 is the byte of the region that the bind named).
 *
 * The variant of a key is that of the last REG_MR or BIND_MW, or of CREATE_MPT.
 */

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
 * after USEC; USEC 0: at once. An arm that finds events there is never held back.
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
 * @reserved: zero
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
	__le32 reserved[14];
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
	__le32 reserved[15];
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

/* QP states (SKUA_ATTR_STATE), numbered as in enum ib_qp_state. */
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
 * @sq_psn: first PSN to send
 * @rq_psn: first PSN expected
 * @qkey: Q_Key (UD); that of GSI is SKUA_QKEY_GSI whatever is given here
 * @retry: retry counts, timers, path MTU (RC, UC, XRC); that of UD and GSI is the
 *	largest that the port's MTU leaves room for, with 96 bytes for headers
 * @rights: READ/atomic depths and remote access rights
 * @state: QP state
 * @pkey: P_Key index
 * @rate_kbps: send rate limit, 0: none (SKUA_CAP_RATE_LIMIT)
 * @ext: Skua extension (SKUA_CAP_SR), else zero
 * @rate_burst: bytes that may go at once under the limit, 0: the device's choice; zero
 *	where @rate_kbps is
 * @vendor_off: SKUA_VENDOR_*: operations of Skua's own that the QP does without, as
 *	the peer may (RC, XRC; SKUA_CAP_VENDOR_OFF)
 *
 * A QP with a rate limit sends, in any span of time, no more bytes than the rate gives
 * in that time and one burst, and what is left of the packet with which the burst ends
 * (RAW_ETH: of the WQE, as it may be a large segment). Bytes are those of the frames,
 * from the MAC header to the ICRC or the end of the payload; what the link adds (FCS,
 * preamble, gap) does not count. Limited are the requests, repeated ones too: they come
 * from the send queue. What the QP answers (acknowledgments, READ and atomic responses)
 * is asked for by its peer, and goes at once.
 *
 * A QP whose turn it is not waits for the time when it is, and costs nothing until then;
 * it does not delay others. A new limit holds from the next packet on: what was sent
 * under the old one still counts, in bytes, up to a burst and a packet of the new one.
 */
struct skua_qp_attr {
	struct skua_av av;
	__le32 dest_qpn;
	__le32 sq_psn;
	__le32 rq_psn;
	__le32 qkey;
	__le32 retry;
	__le32 rights;
	__le32 state;
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
/* ext: mode (0 plain RoCEv2, 1 negotiate, 2 always), log2 of the window */
#define SKUA_ATTR_EXT_MODE		GENMASK(1, 0)
#define SKUA_ATTR_EXT_LOG_WINDOW	GENMASK(12, 8)
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
/* Small payloads may come in the CQE (responder; requester's READs). */
#define SKUA_QP_F_SCATTER_RQ_CQE	BIT(6)
#define SKUA_QP_F_SCATTER_SQ_CQE	BIT(7)
/* Use struct skua_qp_dbr's event index (SKUA_CAP_DB_SUPPRESS). */
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
 * @flags: log2 of the WQEs, log2 of the stride in segments
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

/**
 * struct skua_sqc - send queue context: the QP's attributes, state and requester
 * @attr: attributes; @attr.state is the QP state's one home
 * @cfg: as created
 * @valid: state: SKUA_SQC_*
 * @counter: counter set bound to the QP, 0: none
 * @pi: producer index as last taken from a doorbell, in blocks
 * @ci: block index of the oldest WQE not yet completed
 * @cur: block index of the WQE being sent
 * @cur_sent: bytes of the current message sent
 * @cur_len: pinned: length of the current message
 * @cur_psn: pinned: first PSN of the current message
 * @cur_op: pinned: opcode and flags word bits of the current message
 * @next_psn: PSN of the next packet to send (going back rewinds it)
 * @max_psn: first PSN never sent: where next_psn returns to after recovery
 * @una_psn: oldest PSN not acknowledged
 * @msn: message sequence number of the last acknowledgment
 * @credit: credit limit from AETH, with SKUA_SQC_CREDIT_VALID in @valid
 * @rd_outstanding: READs and atomics sent and not complete
 * @retry_left: transport retries left
 * @rnr_left: RNR retries left
 * @resp_psn: READ response PSN expected next
 * @ssn: extension: send sequence number of the current message
 * @ack_deadline: device time (ns) at which to retry, 0: timer off
 * @rnr_deadline: device time (ns) until which to wait, 0: not waiting
 * @rate_deadline: device time (ns) at which to send again under @rate, 0: not waiting
 * @rate_time: device time (ns) at which what was sent would be over if it had been sent
 *	at @rate, without a burst
 * @err_status: CQE status and vendor syndrome of the first error
 * @pending: asynchronous events that wait for room, BIT(enum skua_qp_event)
 * @cur_va: remote address of the current message as first sent
 * @cur_rkey: its key
 * @ci_psn: first PSN of the WQE at @ci
 * @hi: block index of the first WQE not yet sent to its end: where @cur returns to
 *	after recovery
 * @hi_psn: its first PSN
 * @hi_op: pinned: as @cur_op, kept while @cur is behind @hi
 * @hi_len: pinned: as @cur_len
 * @hi_rkey: pinned: as @cur_rkey
 * @incarnation: number of the QP's life since it left RESET, for caches
 * @local: WQEs without packets that are done but not reported, as they wait for
 *	earlier ones
 * @hi_va: pinned: as @cur_va
 * @timer: device time (ns) that the QP's timer is set to, 0: it is off
 * @fault: page fault of the requester
 * @rate: rate in force, kbit/s, 0: none: the least of @attr.rate_kbps and of what the
 *	device itself imposes (SKUA_CAP_DCQCN)
 * @rate_frac: of @rate_time, parts of a nanosecond: @rate of them are one
 * @engine: the requester's own further state
 */
struct skua_sqc {
	struct skua_qp_attr attr;
	struct skua_sq_cfg cfg;
	__le32 valid;
	__le32 counter;
	__le32 pi;
	__le32 ci;
	__le32 cur;
	__le32 cur_sent;
	__le32 cur_len;
	__le32 cur_psn;
	__le32 cur_op;
	__le32 next_psn;
	__le32 max_psn;
	__le32 una_psn;
	__le32 msn;
	__le32 credit;
	__le32 rd_outstanding;
	__le32 retry_left;
	__le32 rnr_left;
	__le32 resp_psn;
	__le32 ssn;
	__le32 err_status;
	__le64 ack_deadline;
	__le64 rnr_deadline;
	__le64 rate_deadline;
	__le64 rate_time;
	__le64 cur_va;
	__le32 cur_rkey;
	__le32 pending;
	__le32 ci_psn;
	__le32 hi;
	__le32 hi_psn;
	__le32 hi_op;
	__le32 hi_len;
	__le32 hi_rkey;
	__le32 incarnation;
	__le32 local;
	__le64 hi_va;
	__le64 timer;
	struct skua_fault fault;
	__le32 rate;
	__le32 rate_frac;
	__le32 engine[44];
};

_Static_assert(sizeof(struct skua_sqc) == SKUA_ICM_SQC_SIZE, "skua_sqc");

#define SKUA_SQC_VALID			BIT(0)
#define SKUA_SQC_CREDIT_VALID		BIT(1)
#define SKUA_SQC_IN_RECOVERY		BIT(2)
#define SKUA_SQC_DRAINING		BIT(3)
#define SKUA_SQC_LAST_WQE_SENT		BIT(4)
#define SKUA_SQC_PINNED			BIT(5)	/* cur_*: begun, must not change */
#define SKUA_SQC_HI_PINNED		BIT(6)	/* hi_*: likewise */

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
 * @cur_rkey: RDMA WRITE: key
 * @cur_va: RDMA WRITE: first byte
 * @cur_wqe: SKUA_RQC_WQE_TAKEN: position of the SRQ's WQE under way
 * @flags: SKUA_RQC_*
 * @rr_head: responder resources: oldest entry not done
 * @rr_tail: responder resources: next to use
 * @ack_psn: PSN of the last acknowledgment sent
 * @ack_due: packets since
 * @ack_deadline: device time (ns) by which to acknowledge, 0: none due
 * @ext_table: extension: bus address of the placement table
 * @ext_flags: extension: size of the table, mode
 * @err_syndrome: NAK syndrome that took the QP down
 * @nak: syndrome of the NAK that waits to be sent, with SKUA_RQC_NAK_PENDING
 * @nak_psn: its PSN
 * @fail_event: SKUA_RQC_FAILED: enum skua_qp_event of the error, or
 *	SKUA_QP_EV_COUNT for one that a completion reported
 * @cur_srqn: SKUA_RQC_WQE_TAKEN: SRQ of that WQE; XRC: of the message under way
 * @cur_srq_life: SKUA_RQC_WQE_TAKEN: its @life: an SRQ may go while a WQE of it is used
 * @fault: page fault of the responder
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
	__le32 cur_rkey;
	__le32 cur_wqe;
	__le64 cur_va;
	__le32 flags;
	__le32 rr_head;
	__le32 rr_tail;
	__le32 ack_psn;
	__le32 ack_due;
	__le32 ext_flags;
	__le64 ack_deadline;
	__le64 ext_table;
	__le32 err_syndrome;
	__le32 nak;
	__le32 nak_psn;
	__le32 fail_event;
	__le32 cur_srqn;
	__le32 cur_srq_life;
	struct skua_fault fault;
	__le32 engine[22];
};

_Static_assert(sizeof(struct skua_rqc) == SKUA_ICM_RQC_SIZE, "skua_rqc");

#define SKUA_RQC_NAK_SENT		BIT(0)	/* sequence error reported */
#define SKUA_RQC_RNR_SENT		BIT(1)
#define SKUA_RQC_COMM_EST		BIT(2)	/* event given */
#define SKUA_RQC_ACK_PENDING		BIT(3)
#define SKUA_RQC_NAK_PENDING		BIT(4)
#define SKUA_RQC_FAILED			BIT(5)	/* takes no more requests, goes to ERR */
#define SKUA_RQC_WQE_TAKEN		BIT(6)	/* an SRQ's WQE is under way */

/**
 * struct skua_rr - one responder resource; RRC entries are arrays of these
 * @psn: first PSN of the request
 * @op: kind: 0 unused, else enum skua_wqe_op of the request, and SKUA_RR_*
 * @va: READ: first byte; atomics: the original value
 * @rkey: READ: key
 * @len: READ: bytes; atomics: 8
 * @sent: READ: bytes already answered
 * @psns: PSNs the response takes up
 *
 * An entry stays after its answer until its place is used again, so that the
 * original value of an atomic is there for a request that is repeated.
 */
struct skua_rr {
	__le32 psn;
	__le32 op;
	__le64 va;
	__le32 rkey;
	__le32 len;
	__le32 sent;
	__le32 psns;
};

_Static_assert(sizeof(struct skua_rr) == 32, "skua_rr");
#define SKUA_RR_OP			GENMASK(7, 0)
/* XRC: the SRQ whose PD the key is of. */
#define SKUA_RR_SRQN			GENMASK(29, 8)
/* The answer is yet to be sent. */
#define SKUA_RR_PENDING			BIT(30)
/* A repeated request: does not count against MAX_DEST_RD_ATOMIC. */
#define SKUA_RR_DUP			BIT(31)
#define SKUA_RR_PER_QP			(SKUA_ICM_RRC_SIZE / sizeof(struct skua_rr))

/**
 * struct skua_gid - GID table entry
 * @gid: IPv6 address, or IPv4 address in its mapped form
 * @mac: source MAC, and destination MAC of RoCE frames for it
 * @vlan: VLAN id, SKUA_GID_NO_VLAN: untagged
 * @flags: SKUA_GID_*
 * @reserved: zero
 */
struct skua_gid {
	__u8 gid[16];
	__u8 mac[6];
	__le16 vlan;
	__le32 flags;
	__le32 reserved;
};

_Static_assert(sizeof(struct skua_gid) == SKUA_ICM_GID_SIZE, "skua_gid");

#define SKUA_GID_NO_VLAN		0xffff
#define SKUA_GID_VALID			BIT(0)
#define SKUA_GID_IPV4			BIT(1)

/* Largest indirection table of an RSS context. */
#define SKUA_RSS_MAX			128
#define SKUA_RSS_KEY_SIZE		40

/**
 * struct skua_rss - receive side scaling context
 * @flags: SKUA_RSS_*
 * @reserved: zero
 * @key: Toeplitz key
 * @qpn: receive queues (QPs) by hash bits
 * @pad: zero
 */
struct skua_rss {
	__le32 flags;
	__le32 reserved;
	__u8 key[SKUA_RSS_KEY_SIZE];
	__le32 qpn[SKUA_RSS_MAX];
	__le32 pad[116];
};

_Static_assert(sizeof(struct skua_rss) == SKUA_ICM_RSS_SIZE, "skua_rss");

#define SKUA_RSS_VALID			BIT(0)	/* state */
#define SKUA_RSS_LOG_SIZE		GENMASK(11, 8)
/* Hash over addresses; over addresses and ports. */
#define SKUA_RSS_IPV4			BIT(16)
#define SKUA_RSS_IPV6			BIT(17)
#define SKUA_RSS_TCP_IPV4		BIT(18)
#define SKUA_RSS_TCP_IPV6		BIT(19)
#define SKUA_RSS_UDP_IPV4		BIT(20)
#define SKUA_RSS_UDP_IPV6		BIT(21)

/**
 * struct skua_flow_match - header fields a rule compares
 * @dmac: destination MAC
 * @smac: source MAC
 * @ethertype: after a VLAN tag, big-endian
 * @vlan_tci: VLAN tag, big-endian
 * @saddr: source address, IPv4 in the last four bytes
 * @daddr: destination address, likewise
 * @sport: TCP or UDP source port, big-endian
 * @dport: TCP or UDP destination port, big-endian
 * @ip_proto: IP protocol
 * @flags: SKUA_FLOW_M_*
 * @reserved: zero
 */
struct skua_flow_match {
	__u8 dmac[6];
	__u8 smac[6];
	__be16 ethertype;
	__be16 vlan_tci;
	__u8 saddr[16];
	__u8 daddr[16];
	__be16 sport;
	__be16 dport;
	__u8 ip_proto;
	__u8 flags;
	__u8 reserved[2];
};

_Static_assert(sizeof(struct skua_flow_match) == 56, "skua_flow_match");

#define SKUA_FLOW_M_VLAN		BIT(0)	/* frame is tagged */
#define SKUA_FLOW_M_IPV4		BIT(1)
#define SKUA_FLOW_M_IPV6		BIT(2)

/**
 * struct skua_flow - flow steering rule
 * @flags: SKUA_FLOW_*
 * @dest: QPN, or RSS context with SKUA_FLOW_RSS
 * @tag: flow tag for the CQE
 * @counter: counter set that counts the frames it takes, 0: none
 * @value: what to compare with; zero where the mask is zero
 * @mask: which bits to compare
 *
 * The valid rule of the lowest PRIO that matches takes the frame; of two of
 * the same priority, the one of the lower index. Multicast and SNIFFER rules
 * copy: every one that matches gets the frame.
 */
struct skua_flow {
	__le32 flags;
	__le32 dest;
	__le32 tag;
	__le32 counter;
	struct skua_flow_match value;
	struct skua_flow_match mask;
};

_Static_assert(sizeof(struct skua_flow) == SKUA_ICM_FLOW_SIZE, "skua_flow");

#define SKUA_FLOW_VALID			BIT(0)	/* state */
#define SKUA_FLOW_RSS			BIT(1)
#define SKUA_FLOW_DROP			BIT(2)
#define SKUA_FLOW_SNIFFER		BIT(3)
#define SKUA_FLOW_PRIO			GENMASK(31, 16)

/**
 * struct skua_mcg - member of a multicast group (UD)
 * @gid: the group: ff00::/8, or 224.0.0.0/4 in the mapped form
 * @qpn: the member
 * @flags: SKUA_MCG_VALID
 * @reserved: zero
 *
 * A RoCE packet to a group comes to each member, whatever the netdev's filters
 * say: from the wire, and from other QPs of this device. It must come in a VLAN
 * (or untagged) that a GID table entry is in. Of a group without members the
 * netdev's filters decide. Members of a group are QPs: no QP is two of them.
 */
struct skua_mcg {
	__u8 gid[16];
	__le32 qpn;
	__le32 flags;
	__le32 reserved[10];
};

_Static_assert(sizeof(struct skua_mcg) == SKUA_ICM_MCG_SIZE, "skua_mcg");

#define SKUA_MCG_VALID			BIT(0)	/* state */

/* Values that a counter set has room for. */
#define SKUA_SET_MAX			32

/**
 * struct skua_counter_set - what some QPs or steering rules have done
 * @value: state: by enum skua_set_counter
 *
 * Sets are numbered from 1: 0 says that there is none, and is the device's own in
 * QUERY_COUNTERS.
 */
struct skua_counter_set {
	__le64 value[SKUA_SET_MAX];
};

_Static_assert(sizeof(struct skua_counter_set) == SKUA_ICM_CNT_SIZE, "skua_counter_set");

#endif /* SKUA_HW_CONTEXT_H */
