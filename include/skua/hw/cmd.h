/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: commands.
 *
 * The command ring is an array of 1 << n slots of 64 bytes in host memory. Any
 * number of them may be in flight and they may complete in any order, but
 * commands that name the same object are executed in the order of their
 * doorbells. To issue one, software fills a free slot (@done last cleared),
 * makes it visible, and writes the slot's token to SKUA_REG_CMDQ_DB. The
 * device fetches the slot and the input once, executes, writes the output
 * mailbox, then @status and @done in one atomic 8-byte store; with
 * SKUA_CMD_F_EVENT it then posts SKUA_EQE_CMD.
 *
 * Token: slot index and a generation that software changes with each use, never
 * zero as a whole. A doorbell whose token does not match its slot is ignored
 * and counted (SKUA_CNT_BAD_CMD_DB).
 *
 * A command whose fate is unknown (no completion in its time) still owns its
 * mailboxes and whatever memory it names: only a device reset ends that.
 */
#ifndef SKUA_HW_CMD_H
#define SKUA_HW_CMD_H

#include <linux/types.h>
#include <skua/hw/cc.h>
#include <skua/hw/icm.h>
#include <skua/hw/queue.h>
#include <skua/hw/steer.h>

/**
 * struct skua_cmd_slot - one command
 * @token: SKUA_CMD_TOKEN_*
 * @opcode: enum skua_cmd_op
 * @flags: SKUA_CMD_F_*
 * @in: bus address of the input, 8-byte aligned, not crossing a 4 KiB page
 * @out: bus address of the output mailbox, likewise
 * @in_len: bytes of input: exactly the size of the opcode's structure (at
 *	least that, where it ends in an array; at most SKUA_CMD_MBOX_SIZE)
 * @out_len: bytes of room at @out: at least the opcode's; a longer output is cut
 *	here, a shorter one leaves the rest alone
 * @reserved: zero
 * @status: written by the device: enum skua_cmd_status
 * @done: written by the device: the token; software clears it before the doorbell
 */
struct skua_cmd_slot {
	__le32 token;
	__le16 opcode;
	__le16 flags;
	__le64 in;
	__le64 out;
	__le32 in_len;
	__le32 out_len;
	__le32 reserved[6];
	__le32 status;
	__le32 done;
};

_Static_assert(sizeof(struct skua_cmd_slot) == 64, "skua_cmd_slot");

#define SKUA_CMD_TOKEN_SLOT		GENMASK(15, 0)
#define SKUA_CMD_TOKEN_GEN		GENMASK(31, 16)
/*
 * Post SKUA_EQE_CMD on completion. BAD_PARAM if there is no command EQ, and with
 * TEARDOWN_DEVICE, which removes it: its completion is polled.
 */
#define SKUA_CMD_F_EVENT		BIT(0)

#define SKUA_CMD_MBOX_SIZE		4096

/*
 * Status codes: X(name, value, errno, text). The driver maps them to the
 * negative errno named here.
 */
#define SKUA_CMD_STATUS_TABLE(X)						\
	X(OK,		0x00, 0,	"ok")					\
	X(BAD_OPCODE,	0x01, EOPNOTSUPP, "no such command, or its capability is off")	\
	X(BAD_LEN,	0x02, EINVAL,	"wrong length of input or output")	\
	X(BAD_PARAM,	0x03, EINVAL,	"a field is out of range or a reserved one not zero") \
	X(BAD_DEV_STATE, 0x04, EIO,	"not in this state of the device")	\
	X(BAD_INDEX,	0x05, EINVAL,	"no such object, or index out of range")	\
	X(BUSY,		0x06, EBUSY,	"object in use")			\
	X(EXISTS,	0x07, EEXIST,	"object exists already")		\
	X(BAD_STATE,	0x08, EINVAL,	"not in this state of the object")	\
	X(NO_ICM,	0x09, ENOMEM,	"context not mapped")			\
	X(LIMIT,	0x0a, ENOMEM,	"device limit reached")			\
	X(DMA,		0x0b, EFAULT,	"mailbox or named memory not reachable")	\
	X(INTERNAL,	0x0c, EIO,	"internal error")			\
	X(ABORTED,	0x0d, EIO,	"device stopped while it ran")

enum skua_cmd_status {
#define X(name, value, err, text) SKUA_CMD_ST_##name = value,
	SKUA_CMD_STATUS_TABLE(X)
#undef X
};

/*
 * Device states in which a command is legal: R = ready (ring on), O =
 * operational. Timeout classes: FAST 5 s, SLOW 30 s (seconds of the device
 * working; a model under a debugger may need more). SAFE: reclaim-safe, may be
 * issued from a notifier in a reserved slot, always polled.
 */
#define SKUA_CMD_IN_R			BIT(0)
#define SKUA_CMD_IN_O			BIT(1)
#define SKUA_CMD_IN_RO			(SKUA_CMD_IN_R | SKUA_CMD_IN_O)
#define SKUA_CMD_FAST			0
#define SKUA_CMD_SLOW			1
#define SKUA_CMD_SAFE			2
#define SKUA_CMD_FAST_MS		5000
#define SKUA_CMD_SLOW_MS		30000

/* "No input" and "no output" in the table below. */
struct skua_cmd_none {
};

/*
 * All commands: X(name, opcode, input, output, states, timeout class).
 * struct skua_cmd_<input>, struct skua_cmd_<output>.
 */
#define SKUA_CMD_TABLE(X)									\
	X(NOP,			0x000, none,		none,		  RO, FAST)	\
	X(QUERY_DEVICE,		0x001, none,		query_device_out, RO, FAST)	\
	X(INIT_DEVICE,		0x002, init_device_in,	none,		  R,  SLOW)	\
	X(TEARDOWN_DEVICE,	0x003, none,		none,		  O,  SLOW)	\
	X(MODIFY_DEVICE,	0x004, modify_device_in, none,		  O,  FAST)	\
	X(INJECT_FATAL,		0x005, none,		none,		  O,  FAST)	\
	X(MAP_ICM,		0x008, map_icm_in,	none,		  RO, FAST)	\
	X(UNMAP_ICM,		0x009, unmap_icm_in,	none,		  RO, FAST)	\
	X(CREATE_EQ,		0x010, create_eq_in,	none,		  O,  FAST)	\
	X(DESTROY_EQ,		0x011, index_in,	none,		  O,  FAST)	\
	X(MODIFY_EQ,		0x012, modify_mod_in,	none,		  O,  FAST)	\
	X(QUERY_EQ,		0x013, index_in,	query_eq_out,	  O,  FAST)	\
	X(CREATE_MPT,		0x018, create_mpt_in,	none,		  O,  FAST)	\
	X(DESTROY_MPT,		0x019, index_in,	none,		  O,  FAST)	\
	X(MODIFY_MPT,		0x01a, create_mpt_in,	none,		  O,  FAST)	\
	X(QUERY_MPT,		0x01b, index_in,	query_mpt_out,	  O,  FAST)	\
	X(SYNC_MTT,		0x01c, sync_mtt_in,	none,		  O,  SAFE)	\
	X(CREATE_CQ,		0x020, create_cq_in,	none,		  O,  FAST)	\
	X(DESTROY_CQ,		0x021, index_in,	none,		  O,  FAST)	\
	X(MODIFY_CQ,		0x022, modify_mod_in,	none,		  O,  FAST)	\
	X(RESIZE_CQ,		0x023, create_cq_in,	resize_cq_out,	  O,  FAST)	\
	X(QUERY_CQ,		0x024, index_in,	query_cq_out,	  O,  FAST)	\
	X(CREATE_SRQ,		0x028, create_srq_in,	none,		  O,  FAST)	\
	X(DESTROY_SRQ,		0x029, index_in,	none,		  O,  FAST)	\
	X(MODIFY_SRQ,		0x02a, modify_srq_in,	none,		  O,  FAST)	\
	X(QUERY_SRQ,		0x02b, index_in,	query_srq_out,	  O,  FAST)	\
	X(RESIZE_SRQ,		0x02c, create_srq_in,	none,		  O,  FAST)	\
	X(CREATE_QP,		0x030, create_qp_in,	none,		  O,  FAST)	\
	X(DESTROY_QP,		0x031, index_in,	none,		  O,  SLOW)	\
	X(MODIFY_QP,		0x032, modify_qp_in,	none,		  O,  FAST)	\
	X(QUERY_QP,		0x033, index_in,	query_qp_out,	  O,  FAST)	\
	X(SET_GID,		0x040, set_gid_in,	none,		  O,  FAST)	\
	X(QUERY_GID,		0x041, index_in,	query_gid_out,	  O,  FAST)	\
	X(CREATE_FLOW,		0x048, create_flow_in,	none,		  O,  FAST)	\
	X(DESTROY_FLOW,		0x049, index_in,	none,		  O,  FAST)	\
	X(CREATE_RSS,		0x04c, create_rss_in,	none,		  O,  FAST)	\
	X(DESTROY_RSS,		0x04d, index_in,	none,		  O,  FAST)	\
	X(MODIFY_RSS,		0x04e, create_rss_in,	none,		  O,  FAST)	\
	X(ATTACH_MCG,		0x050, mcg_in,		none,		  O,  FAST)	\
	X(DETACH_MCG,		0x051, index_in,	none,		  O,  FAST)	\
	X(QUERY_PORT,		0x058, none,		query_port_out,	  O,  FAST)	\
	X(MODIFY_PORT,		0x059, modify_port_in,	none,		  O,  FAST)	\
	X(QUERY_CC,		0x05a, none,		query_cc_out,	  O,  FAST)	\
	X(MODIFY_CC,		0x05b, modify_cc_in,	none,		  O,  FAST)	\
	X(QUERY_COUNTERS,	0x060, index_in,	query_counters_out, O, FAST)	\
	X(QUERY_ICM_CACHE,	0x061, index_in,	query_icm_cache_out, O, FAST)	\
	X(CREATE_COUNTER,	0x062, index_in,	none,		  O,  FAST)	\
	X(DESTROY_COUNTER,	0x063, index_in,	none,		  O,  FAST)	\
	X(RESUME_PAGE_FAULT,	0x070, resume_fault_in,	none,		  O,  SAFE)

enum skua_cmd_op {
#define X(name, op, in, out, states, class) SKUA_CMD_##name = op,
	SKUA_CMD_TABLE(X)
#undef X
};

/* Capability bits of QUERY_DEVICE. */
#define SKUA_CAP_ROCE			BIT_ULL(0)	/* RoCEv2 engine */
#define SKUA_CAP_ETH			BIT_ULL(1)	/* RAW_ETH queues */
#define SKUA_CAP_RSS			BIT_ULL(2)
#define SKUA_CAP_CSUM			BIT_ULL(3)	/* L3/L4 checksums */
#define SKUA_CAP_VLAN			BIT_ULL(4)	/* tag insertion and removal */
#define SKUA_CAP_LSO			BIT_ULL(5)
#define SKUA_CAP_FLOW			BIT_ULL(6)	/* rules beyond MAC and VLAN */
#define SKUA_CAP_RC			BIT_ULL(7)
#define SKUA_CAP_UC			BIT_ULL(8)
#define SKUA_CAP_UD			BIT_ULL(9)	/* with GSI */
#define SKUA_CAP_XRC			BIT_ULL(10)
#define SKUA_CAP_SRQ			BIT_ULL(11)
#define SKUA_CAP_ATOMIC			BIT_ULL(12)
#define SKUA_CAP_MASKED_ATOMIC		BIT_ULL(13)
#define SKUA_CAP_FLUSH			BIT_ULL(14)
#define SKUA_CAP_ATOMIC_WRITE		BIT_ULL(15)
#define SKUA_CAP_INVALIDATE		BIT_ULL(16)	/* SEND_INV, LOCAL_INV */
#define SKUA_CAP_MW			BIT_ULL(17)	/* windows of type 1 and 2 */
#define SKUA_CAP_FAST_REG		BIT_ULL(18)	/* REG_MR work requests */
#define SKUA_CAP_ODP			BIT_ULL(19)
#define SKUA_CAP_DM			BIT_ULL(20)
#define SKUA_CAP_TIMESTAMP		BIT_ULL(21)	/* CQE time stamps */
#define SKUA_CAP_CQ_RESIZE		BIT_ULL(22)
#define SKUA_CAP_MODERATION		BIT_ULL(23)
#define SKUA_CAP_PUSH			BIT_ULL(24)
#define SKUA_CAP_DB_SUPPRESS		BIT_ULL(25)	/* of send queues, by their records */
#define SKUA_CAP_SCATTER_CQE		BIT_ULL(26)
#define SKUA_CAP_RATE_LIMIT		BIT_ULL(27)	/* of a QP, in its attributes */
#define SKUA_CAP_DCQCN			BIT_ULL(28)	/* CNPs, and rates by them (cc.h) */
#define SKUA_CAP_SR			BIT_ULL(29)	/* selective repeat, all in device */
#define SKUA_CAP_RECOVERY		BIT_ULL(30)	/* loss tracking by the driver */
#define SKUA_CAP_MCAST			BIT_ULL(31)	/* UD multicast */
#define SKUA_CAP_COUNTER_SET		BIT_ULL(32)	/* per-QP counter sets */
#define SKUA_CAP_NULL_MR		BIT_ULL(33)
#define SKUA_CAP_SRQ_RESIZE		BIT_ULL(34)
#define SKUA_CAP_VENDOR_OFF		BIT_ULL(35)	/* QPs without Skua's own operations */
#define SKUA_CAP_CC_DELAY		BIT_ULL(36)	/* windows by delay (cc.h) */
#define SKUA_CAP_GRO			BIT_ULL(37)	/* TCP frames merged on receive (cqe.h) */
#define SKUA_CAP_TURN			BIT_ULL(38)	/* what a send queue may do at a time */
#define SKUA_CAP_PI			BIT_ULL(39)	/* integrity regions (icm.h) */
#define SKUA_CAP_ETS			BIT_ULL(40)	/* traffic classes of send queues */

/* The names above, for tools that list them: X(name) is SKUA_CAP_<name>. */
#define SKUA_CAP_TABLE(X)						\
	X(ROCE) X(ETH) X(RSS) X(CSUM) X(VLAN) X(LSO) X(FLOW) X(RC) X(UC) X(UD)	\
	X(XRC) X(SRQ) X(ATOMIC) X(MASKED_ATOMIC) X(FLUSH) X(ATOMIC_WRITE)	\
	X(INVALIDATE) X(MW) X(FAST_REG) X(ODP) X(DM) X(TIMESTAMP) X(CQ_RESIZE)	\
	X(MODERATION) X(PUSH) X(DB_SUPPRESS) X(SCATTER_CQE) X(RATE_LIMIT)	\
	X(DCQCN) X(SR) X(RECOVERY) X(MCAST) X(COUNTER_SET) X(NULL_MR)	\
	X(SRQ_RESIZE) X(VENDOR_OFF) X(CC_DELAY) X(GRO) X(TURN) X(PI)	\
	X(ETS)

/* A table of QUERY_DEVICE and INIT_DEVICE. */
struct skua_icm_desc {
	__le32 entry_size;
	__le32 log_max;
};

_Static_assert(sizeof(struct skua_icm_desc) == 8, "skua_icm_desc");

/* Room for tables that later versions add. */
#define SKUA_ICM_TABLES_MAX		16

/**
 * struct skua_cmd_query_device_out - what the device is and can do
 * @size: bytes of this structure that the device filled in
 * @version: SKUA_REG_VERSION
 * @caps: SKUA_CAP_*
 * @fw_version: major << 32 | minor << 16 | sub
 * @node_guid: EUI-64 of the function, big-endian
 * @mac: permanent MAC address
 * @ports: always 1
 * @log_uars: log2 of the UAR pages there are, at the page size set
 * @msix_vectors: size of the MSI-X table
 * @clock_khz: frequency of the device clock
 * @max_mtu: largest Ethernet payload
 * @max_wqe_blocks: largest send WQE in 64-byte blocks
 * @log_max_sq: log2 of the largest send ring in blocks
 * @log_max_rq: log2 of the most receive WQEs (RQ, SRQ)
 * @max_rq_sge: scatter elements of a receive WQE
 * @log_max_cq: log2 of the most CQEs of a CQ
 * @log_max_eq: log2 of the most EQEs of an EQ
 * @max_rd_atomic: READs and atomics outstanding, as requester or responder
 * @max_inline: most bytes of inline payload
 * @log_max_msg: log2 of the longest message
 * @max_gids: size of the GID table
 * @log_max_mr_len: log2 of the longest region
 * @log_min_page: log2 of the smallest page of a region or ring
 * @log_max_page: log2 of the largest
 * @qpn_bits: width of a QPN's index: the other bits of the 24 are variant
 * @dm_size: bytes of device memory
 * @counters: entries of QUERY_COUNTERS (SKUA_CNT_COUNT of the device's version)
 * @active_mtu_max: IBTA code of the largest path MTU
 * @push_segs: longest WQE, in segments, that costs less if it is pushed (doorbell.h)
 *	than if the device reads it: at most SKUA_PUSH_SEGS. 0: none does, though slots may
 *	be there (SKUA_CAP_PUSH)
 * @rate_min: least rate limit of a QP, kbit/s; 0 without SKUA_CAP_RATE_LIMIT
 * @rate_max: greatest
 * @rate_burst_max: longest burst, bytes
 * @turn_bytes: bytes that a QP sends in a turn, at present; 0 without SKUA_CAP_TURN
 * @turn_wqes: send WQEs that it begins in a turn, likewise
 * @reserved2: zero
 * @icm: entry size and log2 of the most entries of each table, by enum
 *	skua_icm_table
 */
struct skua_cmd_query_device_out {
	__le32 size;
	__le32 version;
	__le64 caps;
	__le64 fw_version;
	__be64 node_guid;
	__u8 mac[6];
	__u8 ports;
	__u8 log_uars;
	__le16 msix_vectors;
	__le16 max_mtu;
	__le32 clock_khz;
	__u8 max_wqe_blocks;
	__u8 log_max_sq;
	__u8 log_max_rq;
	__u8 max_rq_sge;
	__u8 log_max_cq;
	__u8 log_max_eq;
	__u8 max_rd_atomic;
	__u8 log_max_msg;
	__le16 max_inline;
	__le16 max_gids;
	__u8 log_max_mr_len;
	__u8 log_min_page;
	__u8 log_max_page;
	__u8 qpn_bits;
	__le32 dm_size;
	__le16 counters;
	__u8 active_mtu_max;
	__u8 push_segs;
	__le32 rate_min;
	__le32 rate_max;
	__le32 rate_burst_max;
	__le32 turn_bytes;
	__le16 turn_wqes;
	__u8 reserved2[38];
	struct skua_icm_desc icm[SKUA_ICM_TABLES_MAX];
};

_Static_assert(sizeof(struct skua_cmd_query_device_out) == 256, "query_device_out");

/**
 * struct skua_cmd_init_device_in - lay out ICM and start
 * @icm: base and size of each table, by enum skua_icm_table: @icm.base in ICM
 *	space, a multiple of the ICM page; tables must not overlap
 * @reserved: zero
 *
 * log_num is log2 of the table's entries, at most the device's log_max. Every
 * table that the device knows must be there. Entry 0 of CQC and MPT names no object,
 * so a device offers at least two of each.
 */
struct skua_cmd_init_device_in {
	struct {
		__le64 base;
		__le32 log_num;
		__le32 reserved;
	} icm[SKUA_ICM_TABLES_MAX];
	__le64 reserved;
};

_Static_assert(sizeof(struct skua_cmd_init_device_in) == 264, "init_device_in");

/* Priorities, traffic classes, and shares of the latter. */
#define SKUA_PRIO_NUM			8
#define SKUA_TC_NUM			8
#define SKUA_TC_STRICT			0
#define SKUA_TC_SHARE_MAX		100

/**
 * struct skua_cmd_modify_device_in - device-wide settings
 * @mask: SKUA_DEV_M_*: which of the following to change
 * @cmd_eqn: EQ of command completions, or SKUA_NO_EQ: commands with F_EVENT are
 *	then refused
 * @async_eqn: EQ of asynchronous events, or SKUA_NO_EQ: they wait
 * @fault_eqn: EQ of page faults, or SKUA_NO_EQ: misses are then errors at once; what
 *	waits already goes on waiting
 * @recovery_eqn: EQ of loss reports, or SKUA_NO_EQ: QPs whose loss state software keeps go
 *	back by themselves
 * @roce: 1: claim RoCEv2 for the GID table's addresses; 0: UDP 4791 is the netdev's
 * @turn_wqes: send WQEs that a QP begins in a turn before the next QP has its own, of
 *	SKUA_TURN_WQES_MIN to SKUA_TURN_WQES_MAX (SKUA_CAP_TURN)
 * @turn_bytes: bytes after which its turn ends too, with the packet that reaches them, of
 *	SKUA_TURN_BYTES_MIN to SKUA_TURN_BYTES_MAX. Responses count, and what stands before
 *	their payload
 *
 * @prio_tc: traffic class of each priority, below SKUA_TC_NUM (SKUA_CAP_ETS)
 * @tc_share: of each traffic class its share of what is sent, compared with the others': 1
 *	to SKUA_TC_SHARE_MAX, or SKUA_TC_STRICT
 *
 * QPs that have something to send have turns. A QP is in the traffic class of its
 * priority, with its requests, responses and acknowledgments: SKUA_AV_PCP of its path, for a
 * datagram queue that of the work request that is next. RAW_ETH queues have priority 0. While
 * there are ready QPs in classes with SKUA_TC_STRICT, the class of these with the highest
 * number has the turn. The others get turns such that the bytes sent are in proportion to
 * their shares while they have ready QPs (IEEE 802.1Q, enhanced transmission selection). In a
 * class QPs have turns one after the other. QPs in ERR and SQE, whose work requests are
 * flushed, do not wait for a class: they have every second turn at most. What a device
 * receives has no class.
 *
 * A reset gives all these settings their first values: all priorities are in class 0, and all
 * classes have SKUA_TC_STRICT.
 */
struct skua_cmd_modify_device_in {
	__le32 mask;
	__le32 cmd_eqn;
	__le32 async_eqn;
	__le32 fault_eqn;
	__le32 recovery_eqn;
	__le32 roce;
	__le32 turn_wqes;
	__le32 turn_bytes;
	__u8 prio_tc[SKUA_PRIO_NUM];
	__u8 tc_share[SKUA_TC_NUM];
};

_Static_assert(sizeof(struct skua_cmd_modify_device_in) == 48, "modify_device_in");

#define SKUA_DEV_M_CMD_EQ		BIT(0)
#define SKUA_DEV_M_ASYNC_EQ		BIT(1)
#define SKUA_DEV_M_FAULT_EQ		BIT(2)
#define SKUA_DEV_M_RECOVERY_EQ		BIT(3)
#define SKUA_DEV_M_ROCE			BIT(4)
#define SKUA_DEV_M_TURN_WQES		BIT(5)
#define SKUA_DEV_M_TURN_BYTES		BIT(6)
#define SKUA_DEV_M_ETS			BIT(7)	/* @prio_tc and @tc_share */
#define SKUA_NO_EQ			0xffffffff

#define SKUA_TURN_WQES_MIN		1
#define SKUA_TURN_WQES_MAX		256
#define SKUA_TURN_BYTES_MIN		256
#define SKUA_TURN_BYTES_MAX		1048576

/**
 * struct skua_cmd_map_icm_in - map host pages into ICM
 * @addr: first ICM address, a multiple of the ICM page
 * @count: elements of @page
 * @reserved: zero
 * @page: bus addresses of runs, a multiple of the ICM page, with the log2 of
 *	the run's ICM pages in the low bits; runs follow each other in ICM
 *
 * BUSY if any page of the range is mapped already (nothing is mapped then).
 * Software hands over zeroed memory.
 */
struct skua_cmd_map_icm_in {
	__le64 addr;
	__le32 count;
	__le32 reserved;
	__le64 page[];
};

#define SKUA_MAP_ICM_LOG_PAGES		GENMASK_ULL(5, 0)
#define SKUA_MAP_ICM_ADDR		GENMASK_ULL(63, 12)
#define SKUA_MAP_ICM_MAX		((SKUA_CMD_MBOX_SIZE - 16) / 8)

/**
 * struct skua_cmd_unmap_icm_in - take host pages back
 * @addr: first ICM address
 * @npages: ICM pages
 * @reserved: zero
 *
 * The device writes back and forgets everything it caches of the range first.
 * BUSY if a valid context lies in it.
 */
struct skua_cmd_unmap_icm_in {
	__le64 addr;
	__le32 npages;
	__le32 reserved;
};

/* An object by number (QPN, CQN, SRQN, EQN, key, table index), or counter set. */
struct skua_cmd_index_in {
	__le32 index;
	__le32 reserved;
};

struct skua_cmd_create_eq_in {
	struct skua_eqc eqc;	/* eqn, flags, uar, base, moderation */
};

/* MODIFY_EQ, MODIFY_CQ: new moderation. */
struct skua_cmd_modify_mod_in {
	__le32 index;
	__le32 moderation;
};

struct skua_cmd_query_eq_out {
	struct skua_eqc eqc;
};

/*
 * CREATE_MPT: INVALID becomes FREE or VALID as @mpt says.
 * MODIFY_MPT: replaces a VALID region's entry (same key index; the key's
 * variant may change); BUSY while windows are bound to it, BAD_STATE if it is a
 * window or FREE. On return no access through the old entry is under way.
 * DESTROY_MPT: key, of any variant; BUSY while windows are bound to it; a bound
 * window is unbound by it. On return no access through it is under way.
 */
struct skua_cmd_create_mpt_in {
	struct skua_mpt mpt;
};

struct skua_cmd_query_mpt_out {
	struct skua_mpt mpt;
};

/**
 * struct skua_cmd_sync_mtt_in - forget cached translations
 * @index: first MTT entry
 * @count: entries
 * @reserved: zero
 *
 * On return no access through the old entries is under way: a packet that was being
 * placed or gathered has been, the next finds the new ones. An access that waits for
 * RESUME_PAGE_FAULT is not under way, so that this never waits for software. Entries
 * of ICM that is not mapped may be in the range.
 */
struct skua_cmd_sync_mtt_in {
	__le64 index;
	__le32 count;
	__le32 reserved;
};

struct skua_cmd_create_cq_in {
	struct skua_cqc cqc;
};

/**
 * struct skua_cmd_resize_cq_out - where the device changed rings
 * @pi: free-running index of the first CQE in the new ring
 * @reserved: zero
 *
 * RESIZE_CQ's input names cqn, flags (the size; CQE128 as created) and ring; all
 * else is zero. Indices go on as before. Entries not consumed are software's to
 * copy; their phase is that of the new size. Software consumes nothing from before
 * it prepares the new ring, in which no entry from the consumer index on looks new,
 * until it has copied. BAD_PARAM if more entries are not consumed, by the record,
 * than the new ring has; BAD_STATE for a CQ in error.
 */
struct skua_cmd_resize_cq_out {
	__le32 pi;
	__le32 reserved;
};

struct skua_cmd_query_cq_out {
	struct skua_cqc cqc;
};

/*
 * CREATE_SRQ. RESIZE_SRQ (SKUA_CAP_SRQ_RESIZE) names srqn, flags (a larger or the
 * same size; the stride as created) and ring; all else is zero. WQEs keep their
 * positions: software copies the old ring to the start of the new one before, and
 * neither posts nor changes a link meanwhile. New positions are linked in by later
 * posts. On return the device leaves the old ring alone.
 */
struct skua_cmd_create_srq_in {
	struct skua_srqc srqc;
};

/* MODIFY_SRQ: arms the limit event, which comes at once if it is passed already. */
struct skua_cmd_modify_srq_in {
	__le32 srqn;
	__le32 limit;
};

struct skua_cmd_query_srq_out {
	struct skua_srqc srqc;
};

/**
 * struct skua_cmd_create_qp_in - make a QP in state RESET
 * @sq: send side; @sq.qpn is the QP's number
 * @rq: receive side
 * @counter: counter set, 0: none
 * @reserved: zero
 */
struct skua_cmd_create_qp_in {
	struct skua_sq_cfg sq;
	struct skua_rq_cfg rq;
	__le32 counter;
	__le32 reserved;
};

/*
 * Attributes that MODIFY_QP takes: X(name, bit, text). The device demands and
 * allows just those that the IBTA's table of state transitions demands and
 * allows for the QP's type, and besides: RATE (SKUA_CAP_RATE_LIMIT), for types that
 * send requests of users (RC, UC, UD, XRC_INI, RAW_ETH), with every transition but
 * those to RESET, which ends the limit, and ERR; VENDOR_OFF (SKUA_CAP_VENDOR_OFF), for
 * RC and XRC, with that from INIT to RTR; and COUNTER (SKUA_CAP_COUNTER_SET), which
 * comes alone, in any state, and stays in RESET.
 */
#define SKUA_QP_ATTR_TABLE(X)						\
	X(STATE,		 0, "state: new state")			\
	X(ACCESS,		 1, "rights: remote access")		\
	X(PKEY,			 2, "pkey")				\
	X(PORT,			 3, "port 1 (nothing to carry)")	\
	X(QKEY,			 4, "qkey")				\
	X(AV,			 5, "av")				\
	X(PATH_MTU,		 6, "retry: path MTU")			\
	X(ACK_TIMEOUT,		 7, "retry: ack timeout")		\
	X(RETRY_CNT,		 8, "retry: retry count")		\
	X(RNR_RETRY,		 9, "retry: RNR retry count")		\
	X(RQ_PSN,		10, "rq_psn")				\
	X(MAX_RD_ATOMIC,	11, "rights: depth as requester")	\
	X(MIN_RNR_TIMER,	12, "retry: minimum RNR timer")		\
	X(SQ_PSN,		13, "sq_psn")				\
	X(MAX_DEST_RD_ATOMIC,	14, "rights: depth as responder")	\
	X(DEST_QPN,		15, "dest_qpn")				\
	X(SQD_NOTIFY,		16, "state: SQD notification")		\
	X(RATE,			17, "rate_kbps, rate_burst")		\
	X(EXT,			18, "ext")				\
	X(COUNTER,		19, "counter")				\
	X(VENDOR_OFF,		20, "vendor_off")

enum {
#define X(name, bit, text) SKUA_QP_M_##name = 1U << (bit),
	SKUA_QP_ATTR_TABLE(X)
#undef X
};

/**
 * struct skua_cmd_modify_qp_in - change state or attributes
 * @qpn: the QP
 * @mask: SKUA_QP_M_*
 * @cur_state: state the software believes the QP to be in; BAD_STATE if it is
 *	not (SKUA_QP_ANY_STATE: whatever it is in)
 * @reserved: zero
 * @attr: values of the attributes in @mask; the others are zero
 * @ext_table: bus address of the tables of struct skua_ext_slot and, behind it, of struct
 *	skua_ext_write, with EXT and a mode other than SKUA_EXT_PLAIN; a multiple of the size of
 *	both. The device uses it until the QP is in RESET or destroyed
 * @ext_len: its bytes: 32 for each PSN of the window, SKUA_ATTR_EXT_LOG_WINDOW; with
 *	SKUA_ATTR_EXT_ONLOAD those of the recovery ring behind it; and of a QP that receives
 *	from an SRQ, as XRC_TGT does, sizeof(struct skua_ext_recv) << SKUA_ATTR_EXT_LOG_WINDOW
 *	for a table of these behind that
 * @counter: counter set, 0: none, with COUNTER
 */
struct skua_cmd_modify_qp_in {
	__le32 qpn;
	__le32 mask;
	__le32 cur_state;
	__le32 reserved;
	struct skua_qp_attr attr;
	__le64 ext_table;
	__le32 ext_len;
	__le32 counter;
};

_Static_assert(sizeof(struct skua_cmd_modify_qp_in) == 112, "modify_qp_in");
#define SKUA_QP_ANY_STATE		0xff

struct skua_cmd_query_qp_out {
	struct skua_sqc sqc;
	struct skua_rqc rqc;
};

/**
 * struct skua_cmd_set_gid_in - set or clear a GID table entry
 * @index: entry
 * @reserved: zero
 * @gid: the entry; without SKUA_GID_VALID it is cleared
 */
struct skua_cmd_set_gid_in {
	__le32 index;
	__le32 reserved;
	struct skua_gid gid;
};

struct skua_cmd_query_gid_out {
	struct skua_gid gid;
};

struct skua_cmd_create_flow_in {
	__le32 index;
	__le32 reserved;
	struct skua_flow flow;
};

struct skua_cmd_create_rss_in {
	__le32 index;
	__le32 reserved;
	struct skua_rss rss;
};

/*
 * ATTACH_MCG: EXISTS also if the QP is in the group by another index; BAD_INDEX
 * for a QP that is not UD. DESTROY_QP of a member: BUSY.
 */
struct skua_cmd_mcg_in {
	__le32 index;
	__le32 reserved;
	struct skua_mcg mcg;
};

/**
 * struct skua_cmd_query_port_out - the port
 * @state: SKUA_PORT_*
 * @speed_mbps: present speed
 * @mtu: Ethernet payload limit in force, as in struct skua_cmd_modify_port_in
 * @mac: present MAC address
 * @reserved: zero
 */
struct skua_cmd_query_port_out {
	__le32 state;
	__le32 speed_mbps;
	__le16 mtu;
	__u8 mac[6];
	__le32 reserved[4];
};

#define SKUA_PORT_LINK_UP		BIT(0)	/* wire is there and port enabled */
#define SKUA_PORT_ENABLED		BIT(1)

/**
 * struct skua_cmd_modify_port_in - port settings
 * @mask: SKUA_PORT_M_*
 * @enable: 1: port takes and sends frames
 * @mtu: Ethernet payload limit: longer frames are dropped and counted. One VLAN tag, 802.1Q
 *	(0x8100) or 802.1ad (0x88a8), is not part of the payload
 * @mac: MAC address
 * @promisc: 1: unicast frames that no rule and no GID claims go to @dflt
 * @allmulti: 1: multicast frames likewise
 * @dflt: QPN, or RSS context with SKUA_PORT_DFLT_RSS, or SKUA_PORT_NO_DFLT: where
 *	frames for @mac, broadcasts, and those of @promisc and @allmulti go
 * @reserved: zero
 */
struct skua_cmd_modify_port_in {
	__le32 mask;
	__le32 enable;
	__le16 mtu;
	__u8 mac[6];
	__le32 promisc;
	__le32 allmulti;
	__le32 dflt;
	__le32 reserved;
};

#define SKUA_PORT_M_ENABLE		BIT(0)
#define SKUA_PORT_M_MTU			BIT(1)
#define SKUA_PORT_M_MAC			BIT(2)
#define SKUA_PORT_M_PROMISC		BIT(3)
#define SKUA_PORT_M_ALLMULTI		BIT(4)
#define SKUA_PORT_M_DFLT		BIT(5)
#define SKUA_PORT_DFLT_RSS		BIT(31)
#define SKUA_PORT_NO_DFLT		0x7fffffff

/**
 * struct skua_cmd_query_counters_out - counters
 * @count: values that follow
 * @reserved: zero
 * @value: by enum skua_counter
 *
 * Index 0 is the device's set. All values are read at one moment. Of another set
 * the counters that SKUA_COUNTER_SET_TABLE does not name are zero.
 *
 * CREATE_COUNTER makes a set, all zero. DESTROY_COUNTER: BUSY while a QP or a
 * steering rule names it.
 */
struct skua_cmd_query_counters_out {
	__le32 count;
	__le32 reserved;
	__le64 value[];
};

/**
 * struct skua_cmd_query_icm_cache_out - what the device has of one table on the chip
 * @used: contexts of which it has anything
 * @sectors: sectors of them, of 64 bytes; MTT: lines of as many
 * @hits: lookups served
 * @misses: lookups that read ICM
 * @writebacks: contexts of which something was written to ICM
 * @mapped_pages: ICM pages mapped at present (whole ICM space of the table)
 *
 * All tables share one memory; of a context only those sectors are there that are needed.
 */
struct skua_cmd_query_icm_cache_out {
	__le32 used;
	__le32 sectors;
	__le64 hits;
	__le64 misses;
	__le64 writebacks;
	__le64 mapped_pages;
};

/**
 * struct skua_cmd_resume_fault_in - a page fault is settled
 * @token: of the EQE (SKUA_EQE_FAULT_TOKEN; the other bit zero)
 * @error: 0: the access is made anew, from the key on, and may miss again, with a new
 *	token; 1: the page cannot be had: the access fails if it misses there again
 *
 * BAD_INDEX if no such fault is outstanding, as the QP was destroyed or left the states
 * in which it waits: nothing happens then, and software has nothing to do. Destroying
 * the region ends no fault; the access made anew finds no key.
 */
struct skua_cmd_resume_fault_in {
	__le32 token;
	__le32 error;
};

#endif /* SKUA_HW_CMD_H */
