/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: work queue elements.
 *
 * A send queue is a ring of 1 << n blocks of 64 bytes. A send WQE is a run of
 * 16-byte segments that starts at a block and takes up as many blocks as it
 * needs; it may wrap around the ring's end. Indices count blocks.
 *
 *   ctrl                                  every WQE
 *   + av (3 segments)                     UD
 *   + xrc                                 XRC initiator
 *   + raddr                               WRITE, READ, ATOMIC, FLUSH, ATOMIC_WRITE
 *   + atomic (masked: 2 segments)         ATOMIC
 *   + data ... or one inline              SEND, WRITE, READ, ATOMIC (result), ETH
 *   + bind                                BIND_MW
 *   + reg (3 segments)                    REG_MR
 *
 * A receive queue is a ring of 1 << n WQEs of a fixed stride (16 << m bytes),
 * each an array of data segments; an unused segment ends the list and has the
 * key SKUA_INVALID_LKEY. An SRQ's WQE begins with a next segment.
 *
 * Immediate data are big-endian as on the wire. All else is little-endian.
 * Software writes WQEs before the doorbell; the device may read a WQE, more
 * than once, until its completion (or that of a later WQE) is reported.
 * Reserved bits are zero: a WQE that breaks a rule completes with
 * SKUA_CQE_LOC_QP_OP_ERR.
 *
 * READ, the atomics, FLUSH and ATOMIC_WRITE have responses of their own: all
 * count against MAX_RD_ATOMIC.
 *
 * BIND_MW, LOCAL_INV and REG_MR work on keys, in the order of the queue: what is
 * behind them finds the key changed. They are done once, however often what is
 * before them is sent again; without LOCAL_FENCE that may find the key gone. A
 * key that does not allow what they want, or is not in a state for it, completes
 * them with SKUA_CQE_MW_BIND_ERR (the IBTA's memory management operation error),
 * and nothing is changed.
 */
#ifndef SKUA_HW_WQE_H
#define SKUA_HW_WQE_H

#include <linux/types.h>

#define SKUA_WQE_BLOCK			64
#define SKUA_WQE_SEG			16
/* Largest WQE: 16 blocks. */
#define SKUA_WQE_MAX_BLOCKS		16
#define SKUA_WQE_MAX_SEGS		(SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK / SKUA_WQE_SEG)

/**
 * enum skua_wqe_op - send WQE opcodes (SKUA_WQE_OPCODE)
 * @SKUA_WQE_NOP: does nothing, completes in order
 * @SKUA_WQE_SEND: SEND
 * @SKUA_WQE_SEND_IMM: SEND with immediate
 * @SKUA_WQE_SEND_INV: SEND with invalidate, the key in @imm of the ctrl segment
 * @SKUA_WQE_WRITE: RDMA WRITE
 * @SKUA_WQE_WRITE_IMM: RDMA WRITE with immediate
 * @SKUA_WQE_READ: RDMA READ
 * @SKUA_WQE_CAS: compare and swap of 8 bytes
 * @SKUA_WQE_FAA: fetch and add of 8 bytes
 * @SKUA_WQE_MASKED_CAS: CAS of the bits that masks name (struct skua_wqe_atomic)
 * @SKUA_WQE_MASKED_FAA: FAA of several fields at once, likewise
 * @SKUA_WQE_FLUSH: FLUSH (IBTA 1.6)
 * @SKUA_WQE_ATOMIC_WRITE: 8-byte ATOMIC WRITE (IBTA 1.6)
 * @SKUA_WQE_BIND_MW: bind a memory window, of either type
 * @SKUA_WQE_LOCAL_INV: invalidate a local key (in @inv_key): a FAST_REG region
 *	without windows or a type 2 window, VALID or FREE; it is FREE then
 * @SKUA_WQE_REG_MR: fast registration: a FREE FAST_REG region becomes VALID. It
 *	names bus addresses: only on queues with SKUA_QP_F_RESERVED_LKEY. For an
 *	integrity region there is also a descriptor (struct skua_pi_desc)
 * @SKUA_WQE_ETH: Ethernet frame (RAW_ETH queues)
 */
enum skua_wqe_op {
	SKUA_WQE_NOP			= 0x00,
	SKUA_WQE_SEND			= 0x01,
	SKUA_WQE_SEND_IMM		= 0x02,
	SKUA_WQE_SEND_INV		= 0x03,
	SKUA_WQE_WRITE			= 0x04,
	SKUA_WQE_WRITE_IMM		= 0x05,
	SKUA_WQE_READ			= 0x06,
	SKUA_WQE_CAS			= 0x08,
	SKUA_WQE_FAA			= 0x09,
	SKUA_WQE_MASKED_CAS		= 0x0a,
	SKUA_WQE_MASKED_FAA		= 0x0b,
	SKUA_WQE_FLUSH			= 0x0c,
	SKUA_WQE_ATOMIC_WRITE		= 0x0d,
	SKUA_WQE_BIND_MW		= 0x10,
	SKUA_WQE_LOCAL_INV		= 0x11,
	SKUA_WQE_REG_MR			= 0x12,
	SKUA_WQE_ETH			= 0x20,
};

/**
 * struct skua_wqe_ctrl - control segment, first of every send WQE
 * @op: opcode, number of segments including this one, and the low 16 bits of
 *	the block index at which the WQE starts (checked by the device, so that
 *	a stale or overwritten WQE is noticed)
 * @flags: SKUA_WQE_F_*
 * @imm: immediate data, big-endian; zero without
 * @inv_key: the key of SEND_INV and LOCAL_INV, in the place of @imm
 * @flush_len: the bytes that FLUSH covers, in the place of @imm; zero for a whole region
 * @eth: ETH only: VLAN tag to insert (with F_VLAN), maximum segment size and
 *	header length (with F_LSO); else zero
 */
struct skua_wqe_ctrl {
	__le32 op;
	__le32 flags;
	union {
		__be32 imm;
		__le32 inv_key;
		__le32 flush_len;
	};
	__le32 eth;
};

_Static_assert(sizeof(struct skua_wqe_ctrl) == SKUA_WQE_SEG, "skua_wqe_ctrl");

#define SKUA_WQE_OPCODE			GENMASK(7, 0)
#define SKUA_WQE_NSEG			GENMASK(15, 8)
#define SKUA_WQE_INDEX			GENMASK(31, 16)

/* Report completion by a CQE (errors always do). */
#define SKUA_WQE_F_SIGNALED		BIT(0)
/* SEND, SEND_IMM, SEND_INV, WRITE_IMM: solicited event at the receiver. */
#define SKUA_WQE_F_SOLICITED		BIT(1)
/* Start only when all earlier READs, atomics, FLUSHes, ATOMIC_WRITEs are complete. */
#define SKUA_WQE_F_FENCE		BIT(2)
/* The payload is an inline segment. SEND*, WRITE*, ATOMIC_WRITE, ETH only. */
#define SKUA_WQE_F_INLINE		BIT(3)
/*
 * ETH: compute the IPv4 header checksum; the TCP or UDP checksum. For these and for
 * SKUA_WQE_F_LSO the IP header follows the MAC header, or one 802.1Q tag in the frame.
 */
#define SKUA_WQE_F_L3_CSUM		BIT(4)
#define SKUA_WQE_F_L4_CSUM		BIT(5)
/* ETH: insert the 802.1Q tag of the ctrl segment. */
#define SKUA_WQE_F_VLAN			BIT(6)
/* ETH: cut a large TCP segment (capability SKUA_CAP_LSO). */
#define SKUA_WQE_F_LSO			BIT(7)
/* LOCAL_INV, REG_MR, BIND_MW only: start when all earlier WQEs are complete. */
#define SKUA_WQE_F_LOCAL_FENCE		BIT(8)
#define SKUA_WQE_F_ALL			GENMASK(8, 0)

#define SKUA_WQE_ETH_VLAN_TCI		GENMASK(15, 0)
/* LSO payload bytes per segment; the headers' length is found by parsing. */
#define SKUA_WQE_ETH_MSS		GENMASK(29, 16)
/* Frames of one LSO WQE at most. One with more is not sent, and counted as eth_tx_errors. */
#define SKUA_WQE_ETH_LSO_FRAMES		4096

/**
 * struct skua_wqe_raddr - remote address segment
 * @va: remote virtual address
 * @rkey: remote key
 * @flush: FLUSH only: placement type and selectivity level as in the FETH
 *
 * The address of an atomic and of ATOMIC_WRITE is a multiple of 8: the responder
 * answers another one as an invalid request.
 */
struct skua_wqe_raddr {
	__le64 va;
	__le32 rkey;
	__le32 flush;
};

_Static_assert(sizeof(struct skua_wqe_raddr) == SKUA_WQE_SEG, "skua_wqe_raddr");

#define SKUA_WQE_FLUSH_PLT		GENMASK(3, 0)
#define SKUA_WQE_FLUSH_GLOBAL		BIT(0)	/* of PLT: visible to everybody */
#define SKUA_WQE_FLUSH_PERSISTENT	BIT(1)	/* of PLT: survives a loss of power */
#define SKUA_WQE_FLUSH_SEL		GENMASK(5, 4)
#define SKUA_WQE_FLUSH_RANGE		0	/* of SEL: @va and the length */
#define SKUA_WQE_FLUSH_MR		1	/* of SEL: all of the region */

/**
 * struct skua_wqe_atomic - atomic operands; the masked forms have two of them,
 *	the second with the masks
 * @swap_add: swap or add operand (mask of it)
 * @compare: compare operand (mask of it)
 *
 * FAA and MASKED_FAA use @swap_add; the boundary mask of MASKED_FAA is the
 * second segment's @swap_add; @compare is zero there. The data segments, 8 bytes
 * together, take the original value. ATOMIC_WRITE has no atomic segment: its 8
 * bytes are inline or in data segments. The masked forms::
 *
 *   MASKED_CAS   if (((*va ^ compare) & compare_mask) == 0)
 *                    *va = (*va & ~swap_mask) | (swap & swap_mask)
 *   MASKED_FAA   *va += add, but no carry leaves a bit that is set in the mask:
 *                each set bit is the highest one of a field
 *
 * Operands, results and the memory at @va are little-endian. Each operation is
 * one step with regard to all others of this device on any QP; with regard to
 * the host's processors it is a read and a write.
 */
struct skua_wqe_atomic {
	__le64 swap_add;
	__le64 compare;
};

_Static_assert(sizeof(struct skua_wqe_atomic) == SKUA_WQE_SEG, "skua_wqe_atomic");

/**
 * struct skua_wqe_data - data segment
 * @addr: virtual address in the region of @lkey (bus address with the reserved
 *	local key)
 * @lkey: local key; SKUA_INVALID_LKEY ends a receive WQE's list
 * @len: bytes; 0 is an empty element. At most 1 << 31.
 */
struct skua_wqe_data {
	__le64 addr;
	__le32 lkey;
	__le32 len;
};

_Static_assert(sizeof(struct skua_wqe_data) == SKUA_WQE_SEG, "skua_wqe_data");

/* Never a valid key: ends the scatter list of a receive WQE. */
#define SKUA_INVALID_LKEY		0
/*
 * Key of the queue owner's whole bus address space. Only queues created with
 * SKUA_QP_F_RESERVED_LKEY may use it, that is the kernel's.
 */
#define SKUA_RESERVED_LKEY		0xff
/* Key indices below this one are never allocated. */
#define SKUA_RESERVED_KEYS		1

/**
 * struct skua_wqe_inline - inline segment: length, then the payload
 * @len: bytes of payload
 *
 * It takes up whole segments; what follows the payload in the last one has no meaning.
 */
struct skua_wqe_inline {
	__le32 len;
	/* payload follows at once */
};

_Static_assert(sizeof(struct skua_wqe_inline) == 4, "skua_wqe_inline");

/**
 * struct skua_wqe_next - first segment of an SRQ's WQE
 * @next: index of the WQE to use after this one
 * @reserved: zero
 */
struct skua_wqe_next {
	__le32 next;
	__le32 reserved[3];
};

_Static_assert(sizeof(struct skua_wqe_next) == SKUA_WQE_SEG, "skua_wqe_next");

/**
 * struct skua_wqe_xrc - XRC segment
 * @srqn: the remote SRQ
 * @reserved: zero
 */
struct skua_wqe_xrc {
	__le32 srqn;
	__le32 reserved[3];
};

_Static_assert(sizeof(struct skua_wqe_xrc) == SKUA_WQE_SEG, "skua_wqe_xrc");

/**
 * struct skua_wqe_bind - memory window bind segment
 * @mw_key: key of the window; its variant is not compared, as software cannot always
 *	know the present one
 * @new_key: key after the bind: index of the window, new consumer byte
 * @mr_key: region to bind to
 * @access: SKUA_ACCESS_* of the window: REMOTE_*, FLUSH_*, ZERO_BASED; LOCAL_WRITE
 *	has no effect, others are refused
 * @va: first byte, an address of the region
 * @len: bytes; 0 unbinds a type 1 window (@mr_key is not looked at then), and is
 *	refused for type 2
 *
 * A type 1 window may be bound again at any time, a type 2 window only when it
 * is FREE. Window, region and QP are of one PD. The region is VALID and not
 * zero-based, has SKUA_ACCESS_MW_BIND, LOCAL_WRITE for a window that can be
 * written (REMOTE_WRITE, REMOTE_ATOMIC), and the window's FLUSH_* rights; the
 * window lies in it. A ZERO_BASED window is addressed from 0, another one as the
 * region.
 *
 * A type 1 window serves every QP of its PD, a type 2 window the QP that bound
 * it alone (type 2B). A region with windows can be neither changed, invalidated
 * nor destroyed.
 */
struct skua_wqe_bind {
	__le32 mw_key;
	__le32 new_key;
	__le32 mr_key;
	__le32 access;
	__le64 va;
	__le64 len;
};

_Static_assert(sizeof(struct skua_wqe_bind) == 2 * SKUA_WQE_SEG, "skua_wqe_bind");

/**
 * struct skua_wqe_reg - fast registration segment
 * @key: the key after registration (index of the MR, new consumer byte)
 * @access: SKUA_ACCESS_*
 * @va: first byte as used in WQEs and on the wire
 * @len: bytes; of an integrity region those that work requests see, with tuples if they do
 * @page_list: bus address of an array of __le64 page addresses, 64-byte aligned; an
 *	address is a multiple of the page size, and nothing but an address
 * @npages: entries of the array
 * @log_page: log2 of the page size
 * @offset: of the first byte in the first page
 *
 * The device has read the array when it reports completion, at the latest.
 */
struct skua_wqe_reg {
	__le32 key;
	__le32 access;
	__le64 va;
	__le64 len;
	__le64 page_list;
	__le32 npages;
	__le32 log_page;
	__le64 offset;
};

_Static_assert(sizeof(struct skua_wqe_reg) == 3 * SKUA_WQE_SEG, "skua_wqe_reg");

/**
 * struct skua_av - address vector: in the QP context and in UD work requests
 * @dgid: destination GID (an IPv4 address in its mapped form)
 * @dmac: next hop's MAC address
 * @sgid_index: index in the GID table: source address, MAC and VLAN come from
 *	there, so that a user cannot send under another's name
 * @flow: flow label, priority; the other bits are zero
 * @tclass: traffic class (DSCP and ECN bits)
 * @hop_limit: hop limit or TTL
 * @udp_sport: UDP source port, 0: the device takes one from the flow label, or
 *	where that is 0 too from the QP numbers
 *
 * @dgid and the GID at @sgid_index are of one family (IPv4 or IPv6). A multicast
 * @dgid (UD only; 224.0.0.0/4 in the mapped form, or ff00::/8) goes with the
 * multicast MAC address that it maps to, any other with a unicast @dmac.
 */
struct skua_av {
	__u8 dgid[16];
	__u8 dmac[6];
	__le16 sgid_index;
	__le32 flow;
	__u8 tclass;
	__u8 hop_limit;
	__le16 udp_sport;
};

_Static_assert(sizeof(struct skua_av) == 32, "skua_av");

#define SKUA_AV_FLOW_LABEL		GENMASK(19, 0)
#define SKUA_AV_PCP			GENMASK(22, 20)

/**
 * struct skua_wqe_av - address vector segments of a UD WQE
 * @av: the path
 * @dest_qpn: destination QP, SKUA_QPN_MULTICAST for a group
 * @qkey: Q_Key to send; with its top bit set, the sending QP's own is used
 * @pkey_index: GSI: P_Key table index; UD: zero, the P_Key is the QP's
 * @reserved2: zero
 * @reserved: zero
 *
 * A datagram queue's SEND completes when it was sent. One that cannot be sent
 * (path: SKUA_CQE_LOC_QP_OP_ERR with SKUA_VENDOR_WQE_AV; longer than the path
 * MTU: SKUA_CQE_LOC_LEN_ERR; gather list: SKUA_CQE_LOC_PROT_ERR) completes in
 * error and takes the QP to SQE: the receive queue goes on, later sends are
 * flushed until software takes the QP to RTS again. UC queues do the same.
 * The command for that flushes first what was posted before it, and waits for nothing
 * that is posted later: this is flushed, or sent in RTS.
 */
struct skua_wqe_av {
	struct skua_av av;
	__le32 dest_qpn;
	__le32 qkey;
	__le16 pkey_index;
	__le16 reserved2;
	__le32 reserved;
};

_Static_assert(sizeof(struct skua_wqe_av) == 3 * SKUA_WQE_SEG, "skua_wqe_av");

/* The QP number that packets to a multicast group carry. */
#define SKUA_QPN_MULTICAST		0xffffff

#endif /* SKUA_HW_WQE_H */
