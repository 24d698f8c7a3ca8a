/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * uverbs ABI of the Skua driver: the data that kernel and provider exchange in addition
 * to the structures of the RDMA core. Append only: new fields go to the end, zero or
 * absent means the old behaviour.
 *
 * Ring, record and UAR layouts are the device interface's (skua/hw).
 */
#ifndef SKUA_ABI_USER_H
#define SKUA_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define SKUA_UVERBS_ABI_VERSION	1

/* alloc_ucontext. comp_mask: SKUA_ALLOC_UCONTEXT_*. */
struct skua_alloc_ucontext_req {
	__u32 comp_mask;
	__u32 reserved;
};

/* Give the context a page for pushes if the device says that they pay; in any case. */
#define SKUA_ALLOC_UCONTEXT_PUSH	0x1
#define SKUA_ALLOC_UCONTEXT_PUSH_ALWAYS	0x2

/*
 * ECE options: operations and extensions that both ends of a connection must have.
 * Connection managers carry the bits from host to host, so that they keep their meaning
 * for ever. SELECTIVE_REPEAT: agreed on, the QP uses it from the first packet on; left out,
 * not at all. A QP for which nobody asked finds out from its peer's packets.
 */
#define SKUA_ECE_MASKED_ATOMIC		0x1
#define SKUA_ECE_SELECTIVE_REPEAT	0x2

/*
 * uar_offset, status_offset: mmap offsets of the context's UAR page (one system
 * page, write only) and of its status page (read only, struct
 * skua_status_page). caps: SKUA_CAP_* in force. Sizes are the device's limits.
 * ece_options: those that RC and XRC QPs have, and can do without; 0: there is nothing
 * to agree on, or the kernel knows no ECE.
 * push_offset, push_size: likewise of the context's second UAR page, for QPs created with
 * SKUA_CREATE_QP_PUSH (one system page, write only, write-combining); push_size 0: it has
 * none. push_segs: the longest WQE, in segments, that is to be pushed.
 */
struct skua_alloc_ucontext_resp {
	__u32 comp_mask;
	__u32 uar_size;
	__aligned_u64 uar_offset;
	__aligned_u64 status_offset;
	__aligned_u64 caps;
	__u32 max_sq_blocks;
	__u32 max_rq_wqes;
	__u32 max_wqe_blocks;
	__u32 max_rq_sge;
	__u32 max_inline;
	__u32 max_cqe;
	__u32 clock_khz;
	__u32 ece_options;
	__aligned_u64 push_offset;
	__u32 push_size;
	__u32 push_segs;
};

/*
 * The status page. alive: 1, or 0 from the moment the device is lost: queues
 * then get no more completions, and what is outstanding counts as flushed. A
 * page that was disassociated reads as zero.
 */
struct skua_status_page {
	__u32 alive;
	__u32 reserved;
};

/*
 * query_device, extended: rate limits that QPs may have, in kbit/s, and BIT(type) of
 * those that may; all zero if none may.
 */
struct skua_query_device_resp {
	__u32 comp_mask;
	__u32 rate_qpts;
	__u32 rate_limit_min;
	__u32 rate_limit_max;
};

/* alloc_pd */
struct skua_alloc_pd_resp {
	__u32 pdn;
	__u32 comp_mask;
};

/*
 * create_ah: what the kernel has found out about the path. udp_sport: 0 for the
 * device's choice.
 */
struct skua_create_ah_resp {
	__u8 dmac[6];
	__u16 udp_sport;
	__u8 hop_limit;
	__u8 reserved[3];
	__u32 comp_mask;
};

/*
 * create_cq: ring of cqe_size bytes an entry; the kernel rounds the entries
 * asked for up to a power of two, and buf_len is the size of that.
 */
struct skua_create_cq_req {
	__aligned_u64 buf_addr;
	__aligned_u64 buf_len;
	__aligned_u64 dbr_addr;
	__u32 cqe_size;
	__u32 comp_mask;
};

struct skua_create_cq_resp {
	__u32 cqn;
	__u32 entries;
	__u32 comp_mask;
	__u32 reserved;
};

/*
 * create_srq: a ring of 1 << log_wqes WQEs of 16 << log_stride bytes, the first
 * segment of each being its link. An XRC SRQ has an XRC domain and a CQ.
 */
struct skua_create_srq_req {
	__aligned_u64 buf_addr;
	__aligned_u64 buf_len;
	__aligned_u64 dbr_addr;
	__u32 log_wqes;
	__u32 log_stride;
	__u32 comp_mask;
	__u32 reserved;
};

struct skua_create_srq_resp {
	__u32 srqn;
	__u32 comp_mask;
};

/*
 * modify_srq with a new size: a ring of 1 << log_wqes WQEs of the old stride, to
 * whose start the old ring was copied. Needed with IBV_SRQ_MAX_WR only.
 */
struct skua_modify_srq_req {
	__aligned_u64 buf_addr;
	__aligned_u64 buf_len;
	__u32 log_wqes;
	__u32 comp_mask;
};

/*
 * resize_cq: the new ring, prepared as RESIZE_CQ of the device interface says; the
 * size is rounded up as by create_cq. pi: index of the first entry in it.
 */
struct skua_resize_cq_req {
	__aligned_u64 buf_addr;
	__aligned_u64 buf_len;
	__u32 comp_mask;
	__u32 reserved;
};

struct skua_resize_cq_resp {
	__u32 pi;
	__u32 comp_mask;
};

/*
 * create_qp: one buffer, the receive ring at its start (log_rq WQEs of
 * 16 << log_rq_stride bytes, rounded up to 64 bytes as a whole), then the send
 * ring (64 << log_sq bytes). has_sq and has_rq are zero for a queue that is
 * not there (SRQ, XRC). With UVERBS_ATTR_CREATE_QP_BUF_UMEM the buffer is where that says,
 * and buf_addr means nothing. A buffer that is shorter than a page, and within one, may share
 * the page with other buffers and with doorbell records: it is pinned once for all of them,
 * and must be writable as for these.
 */
struct skua_create_qp_req {
	__aligned_u64 buf_addr;
	__aligned_u64 buf_len;
	__aligned_u64 dbr_addr;
	__u8 log_sq;
	__u8 log_rq;
	__u8 log_rq_stride;
	__u8 has_sq;
	__u8 has_rq;
	__u8 reserved[3];
	__u32 flags;
	__u32 comp_mask;
};

/* flags of create_qp */
#define SKUA_CREATE_QP_SCATTER_RQ	0x1	/* short messages may come in the CQE */
#define SKUA_CREATE_QP_DB_SUPPRESS	0x2
#define SKUA_CREATE_QP_PUSH		0x4	/* its UAR page is the one for pushes */
#define SKUA_CREATE_QP_SCATTER_SQ	0x8	/* as SCATTER_RQ, of READs and atomics */

struct skua_create_qp_resp {
	__u32 qpn;
	__u32 comp_mask;
};

/*
 * modify_qp. max_burst: with IBV_QP_RATE_LIMIT: bytes that may go at once under the
 * limit, 0: the device's choice. ece_options: with the change from INIT to RTR: what both
 * ends agreed on, with SKUA_MODIFY_QP_ECE in comp_mask; the QP does without the others.
 * If nobody asked it has them all, selective repeat as soon as the peer says so too.
 */
struct skua_modify_qp_req {
	__u32 max_burst;
	__u32 comp_mask;
	__u32 ece_options;
	__u32 reserved;
};

#define SKUA_MODIFY_QP_ECE	0x1

/*
 * create_wq: the receive ring (1 << log_wqes WQEs of 16 << log_stride bytes), rounded
 * up to 64 bytes as a whole.
 */
struct skua_create_wq_req {
	__aligned_u64 buf_addr;
	__aligned_u64 buf_len;
	__aligned_u64 dbr_addr;
	__u32 log_wqes;
	__u32 log_stride;
	__u32 comp_mask;
	__u32 reserved;
};

struct skua_create_wq_resp {
	__u32 wqn;
	__u32 comp_mask;
};

/*
 * create_qp with an indirection table. fields: SKUA_RX_HASH_*, which are the verbs'
 * IBV_RX_HASH_*; function and length of the key have one value each.
 */
struct skua_create_rss_qp_req {
	__aligned_u64 fields;
	__u8 function;
	__u8 key_len;
	__u8 reserved[2];
	__u32 comp_mask;
	__u8 key[40];
};

#define SKUA_RX_HASH_TOEPLITZ	0x1
#define SKUA_RX_HASH_IPV4	0x03	/* source and destination */
#define SKUA_RX_HASH_IPV6	0x0c
#define SKUA_RX_HASH_TCP	0x30
#define SKUA_RX_HASH_UDP	0xc0

/*
 * Device memory. The answer of UVERBS_METHOD_DM_ALLOC, in an attribute of its own,
 * and of a query by any process that has the handle. offset: mmap offset; size: bytes
 * to map; length: bytes asked for.
 */
struct skua_dm_resp {
	__aligned_u64 offset;
	__aligned_u64 size;
	__aligned_u64 length;
};

enum skua_attrs_dm_alloc {
	SKUA_ATTR_DM_ALLOC_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

enum skua_methods_dm {
	SKUA_METHOD_DM_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum skua_attrs_dm_query {
	SKUA_ATTR_DM_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	SKUA_ATTR_DM_QUERY_RESP,
};

/* The key of a protection domain's null region, which lives as long as the domain. */
enum skua_methods_pd {
	SKUA_METHOD_PD_NULL_MR = (1U << UVERBS_ID_NS_SHIFT),
};

enum skua_attrs_pd_null_mr {
	SKUA_ATTR_PD_NULL_MR_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	SKUA_ATTR_PD_NULL_MR_LKEY,
};

/*
 * The device. For an imported context, which has no response of alloc_ucontext: returns
 * struct skua_alloc_ucontext_resp.
 */
enum skua_attrs_query_context {
	SKUA_ATTR_QUERY_CONTEXT_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * The device's clock, and the system's (CLOCK_REALTIME, nanoseconds) at that moment.
 * By a call: the register shares a page with others that are not for processes.
 */
struct skua_clock_resp {
	__aligned_u64 clock;
	__aligned_u64 real_ns;
};

enum skua_methods_device {
	SKUA_METHOD_DEVICE_CLOCK = (1U << UVERBS_ID_NS_SHIFT),
};

enum skua_attrs_device_clock {
	SKUA_ATTR_DEVICE_CLOCK_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

#endif /* SKUA_ABI_USER_H */
