/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: completion queue elements.
 *
 * A completion queue is a ring of 1 << n entries of 64 or 128 bytes in host
 * memory, zeroed by software before CREATE_CQ. The device writes an entry in
 * two steps: everything but the last 8 bytes, then the last 8 bytes in one
 * atomic store with release order. Software looks at PHASE in the last word:
 * the entry of the free-running index i is new when PHASE equals
 * !((i >> n) & 1), i.e. 1 in the first turn round the ring; then, after a read
 * barrier, it reads the rest.
 *
 * A 128-byte entry is 64 bytes of data (struct skua_cqe is its second half).
 *
 * With SKUA_CQE_F_INLINE the entry has the payload, of byte_len bytes: up to 32 in @data of
 * struct skua_cqe, more (up to 64) in the first half of a 128-byte entry. Software writes
 * it where the WQE's scatter list says, before it gives the WQE's place in the ring away.
 */
#ifndef SKUA_HW_CQE_H
#define SKUA_HW_CQE_H

#include <linux/types.h>

/**
 * enum skua_cqe_op - what completed (SKUA_CQE_OPCODE)
 * @SKUA_CQE_REQ: a send queue WQE; software knows its kind from the ring
 * @SKUA_CQE_RECV: a receive by SEND
 * @SKUA_CQE_RECV_WRITE_IMM: a receive consumed by WRITE with immediate
 * @SKUA_CQE_RECV_ETH: an Ethernet frame
 */
enum skua_cqe_op {
	SKUA_CQE_REQ			= 0x00,
	SKUA_CQE_RECV			= 0x01,
	SKUA_CQE_RECV_WRITE_IMM		= 0x02,
	SKUA_CQE_RECV_ETH		= 0x03,
};

/*
 * Completion status (SKUA_CQE_STATUS): X(name, value, verbs name). The verbs
 * name completes IB_WC_ and IBV_WC_. MW_BIND_ERR is the IBTA's memory management
 * operation error: of BIND_MW, LOCAL_INV and REG_MR.
 */
#define SKUA_CQE_STATUS_TABLE(X)				\
	X(OK,			0x00, SUCCESS)			\
	X(LOC_LEN_ERR,		0x01, LOC_LEN_ERR)		\
	X(LOC_QP_OP_ERR,	0x02, LOC_QP_OP_ERR)		\
	X(LOC_PROT_ERR,		0x04, LOC_PROT_ERR)		\
	X(WR_FLUSH_ERR,		0x05, WR_FLUSH_ERR)		\
	X(MW_BIND_ERR,		0x06, MW_BIND_ERR)		\
	X(BAD_RESP_ERR,		0x07, BAD_RESP_ERR)		\
	X(LOC_ACCESS_ERR,	0x08, LOC_ACCESS_ERR)		\
	X(REM_INV_REQ_ERR,	0x09, REM_INV_REQ_ERR)		\
	X(REM_ACCESS_ERR,	0x0a, REM_ACCESS_ERR)		\
	X(REM_OP_ERR,		0x0b, REM_OP_ERR)		\
	X(RETRY_EXC_ERR,	0x0c, RETRY_EXC_ERR)		\
	X(RNR_RETRY_EXC_ERR,	0x0d, RNR_RETRY_EXC_ERR)	\
	X(REM_ABORT_ERR,	0x10, REM_ABORT_ERR)		\
	X(FATAL_ERR,		0x13, FATAL_ERR)		\
	X(RESP_TIMEOUT_ERR,	0x14, RESP_TIMEOUT_ERR)		\
	X(GENERAL_ERR,		0x15, GENERAL_ERR)

/* Values of SKUA_CQE_STATUS: SKUA_CQE_OK, SKUA_CQE_LOC_LEN_ERR ... */
enum skua_cqe_status {
#define X(name, value, verbs) SKUA_CQE_##name = value,
	SKUA_CQE_STATUS_TABLE(X)
#undef X
};

/**
 * struct skua_cqe_eth - bytes 0..31 of a CQE for RECV_ETH
 * @rss_hash: Toeplitz hash, 0 without RSS
 * @flow_tag: tag of the flow rule that matched
 * @vlan_tci: tag that was stripped (SKUA_CQE_F_VLAN)
 * @csum: SKUA_CQE_CSUM_*
 * @gro_segs: frames that were merged, which is how many receive WQEs completed
 *	(SKUA_CQE_F_GRO), else zero
 * @gro_size: bytes of TCP payload of each of them but the last, likewise
 * @gro_hdr: bytes of headers in front of the payload, likewise
 * @reserved2: zero
 * @reserved: zero
 *
 * Merged frames (SKUA_CQE_F_GRO): a queue with SKUA_RQ_GRO may get consecutive frames of a TCP
 * connection as one. It lies in @gro_segs consecutive receive WQEs, of which the CQE names
 * the first: that has the headers and the first frame's payload, each of the others has the
 * payload of one more frame and nothing else, @gro_size bytes or, the last one, up to that.
 * byte_len counts the headers once, and all of the payload. Each of the WQEs has room for a
 * whole frame all the same: one that is too short for that gets none.
 *
 * Segmentation by @gro_size (as by SKUA_WQE_F_LSO) gives exactly the frames that came. The
 * device merges only
 *
 * - TCP over IPv4 without options, or over IPv6 without extension headers, that is no fragment
 *   and has nothing behind the datagram;
 * - where the IPv4 header's checksum and TCP's are right;
 * - with payload, of as many bytes as the first one's, or fewer in the last one;
 * - with no flag but ACK and, in the last one, PSH;
 * - with no TCP options, or a timestamp behind two NOPs;
 * - whose sequence number is that behind the frame before, and IPv4 identification one more;
 * - which are otherwise the same, from the MAC addresses and the VLAN tag to the last
 *   option, and in the RSS hash and the flow tag of their completions;
 * - and while the length of the whole fits in the IP header: 65,535 bytes of the IPv4 datagram,
 *   or of the IPv6 payload, which is what follows the fixed header of 40 bytes.
 *
 * The headers are those of the first frame with the lengths and the IPv4 checksum of the whole
 * and the PSH flag of the last frame. TCP's checksum field has the sum of the pseudo header
 * of the whole, not inverted: what software leaves there for a device that is to fill it in.
 *
 * Frames do not wait to be merged with one that may come: the completion is written as soon
 * as the device finds no further frame to deliver, or one that does not fit. The order of
 * frames of a connection is kept.
 */
struct skua_cqe_eth {
	__le32 rss_hash;
	__le32 flow_tag;
	__le16 vlan_tci;
	__le16 csum;
	__le16 gro_segs;
	__le16 gro_size;
	__le16 gro_hdr;
	__le16 reserved2;
	__le32 reserved[3];
};

_Static_assert(sizeof(struct skua_cqe_eth) == 32, "skua_cqe_eth");

/* Header recognised / its checksum verified and right. */
#define SKUA_CQE_CSUM_IPV4		BIT(0)
#define SKUA_CQE_CSUM_IPV6		BIT(1)
#define SKUA_CQE_CSUM_TCP		BIT(2)
#define SKUA_CQE_CSUM_UDP		BIT(3)
#define SKUA_CQE_CSUM_L3_OK		BIT(4)
#define SKUA_CQE_CSUM_L4_OK		BIT(5)
#define SKUA_CQE_CSUM_HASH_L4		BIT(6)
#define SKUA_CQE_CSUM_HASH_L3		BIT(7)
/* UDP header whose checksum field is zero: the sender made none, there is nothing to verify. */
#define SKUA_CQE_CSUM_L4_NONE		BIT(8)

/**
 * struct skua_cqe_ud - bytes 0..31 of a CQE for a UD or GSI receive
 * @src_qpn: source QP
 * @smac: source MAC address
 * @vlan_tci: VLAN tag, PCP as service level (SKUA_CQE_F_VLAN)
 * @pkey_index: P_Key table index that matched
 * @ipv4: 1 for IPv4, 0 for IPv6
 * @reserved: zero
 *
 * SKUA_CQE_F_GRH is set always: the receive buffer begins with an area of
 * SKUA_GRH_SIZE bytes, which byte_len includes, and the payload follows. The area
 * holds the IP header as received: an IPv6 header fills it, an IPv4 header is its
 * last 20 bytes after 20 of zero.
 */
struct skua_cqe_ud {
	__le32 src_qpn;
	__u8 smac[6];
	__le16 vlan_tci;
	__le16 pkey_index;
	__u8 ipv4;
	__u8 reserved[17];
};

_Static_assert(sizeof(struct skua_cqe_ud) == 32, "skua_cqe_ud");

#define SKUA_GRH_SIZE			40

/**
 * struct skua_cqe - completion queue element
 * @data: scattered payload (SKUA_CQE_F_INLINE)
 * @eth: Ethernet receive
 * @ud: datagram receive
 * @qpn: queue pair, with its variant bits
 * @srqn: SRQ the WQE came from (SKUA_CQE_F_SRQ)
 * @byte_len: bytes received (receives), bytes read (READ; atomics: 8), else 0
 * @imm: immediate data, big-endian (SKUA_CQE_F_IMM)
 * @inv_key: key that the device invalidated (SKUA_CQE_F_INV)
 * @timestamp: device clock when the CQE was written (SKUA_CAP_TIMESTAMP)
 * @what: WQE index, opcode, status
 * @own: vendor syndrome, flags, phase
 *
 * @what and @own are stored by one atomic 8-byte write, last. The WQE index is
 * the free-running block index (send) or WQE index (receive) modulo 65536, or
 * the position of the WQE in the SRQ's ring.
 */
struct skua_cqe {
	union {
		__u8 data[32];
		struct skua_cqe_eth eth;
		struct skua_cqe_ud ud;
	};
	__le32 qpn;
	__le32 srqn;
	__le32 byte_len;
	union {
		__be32 imm;
		__le32 inv_key;
	};
	__le64 timestamp;
	__le32 what;
	__le32 own;
};

_Static_assert(sizeof(struct skua_cqe) == 64, "skua_cqe");

#define SKUA_CQE_WQE_INDEX		GENMASK(15, 0)
#define SKUA_CQE_OPCODE			GENMASK(23, 16)
#define SKUA_CQE_STATUS			GENMASK(31, 24)

#define SKUA_CQE_VENDOR			GENMASK(7, 0)
#define SKUA_CQE_FLAGS			GENMASK(30, 8)
#define SKUA_CQE_PHASE			BIT(31)
/* Flags, as bits of @own. */
#define SKUA_CQE_F_IMM			BIT(8)
#define SKUA_CQE_F_INV			BIT(9)
#define SKUA_CQE_F_SOLICITED		BIT(10)
#define SKUA_CQE_F_GRH			BIT(11)
#define SKUA_CQE_F_SRQ			BIT(12)
#define SKUA_CQE_F_INLINE		BIT(13)
#define SKUA_CQE_F_VLAN			BIT(14)
#define SKUA_CQE_F_GRO			BIT(15)

/*
 * Vendor syndromes (SKUA_CQE_VENDOR): a second word to the status, for people.
 * X(name, value, text)
 */
#define SKUA_VENDOR_TABLE(X)						\
	X(NONE,		0x00, "none")					\
	X(WQE_FORMAT,	0x01, "malformed WQE")				\
	X(WQE_INDEX,	0x02, "WQE index mismatch (ring overwritten)")	\
	X(WQE_CHANGED,	0x03, "WQE changed after the doorbell")		\
	X(WQE_OPCODE,	0x04, "opcode not allowed on this QP")		\
	X(WQE_DMA,	0x05, "ring not readable")			\
	X(SGE_LEN,	0x06, "gather list length")			\
	X(WQE_AV,	0x07, "address vector names no path")		\
	X(KEY_INVALID,	0x10, "no such key")				\
	X(KEY_PD,	0x11, "key of another PD")			\
	X(KEY_ACCESS,	0x12, "key lacks the access right")		\
	X(KEY_BOUNDS,	0x13, "outside the key's range")		\
	X(KEY_DMA,	0x14, "memory not reachable")			\
	X(KEY_STATE,	0x15, "key of the wrong kind or in the wrong state") \
	X(KEY_BOUND,	0x16, "windows are bound to the region")	\
	X(KEY_QP,	0x17, "window of another QP")			\
	X(KEY_PAGES,	0x18, "page list not usable")			\
	X(KEY_FAULT,	0x19, "page could not be had")			\
	X(NAK_SEQ,	0x20, "NAK: PSN sequence")			\
	X(NAK_INV,	0x21, "NAK: invalid request")			\
	X(NAK_ACC,	0x22, "NAK: remote access")			\
	X(NAK_OP,	0x23, "NAK: remote operation")			\
	X(NAK_RNR,	0x24, "NAK: receiver not ready")		\
	X(TIMEOUT,	0x25, "no acknowledgment in time")		\
	X(RESP_BAD,	0x26, "malformed or unexpected response")	\
	X(MSG_LEN,	0x27, "message longer than the receive buffer")	\
	X(REQ_BAD,	0x28, "malformed request sequence")

enum skua_vendor {
#define X(name, value, text) SKUA_VENDOR_##name = value,
	SKUA_VENDOR_TABLE(X)
#undef X
};

#endif /* SKUA_HW_CQE_H */
