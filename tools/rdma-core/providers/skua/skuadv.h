/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Interface of the Skua provider to programs, beyond the verbs: skuadv(7).
 */
#ifndef SKUADV_H
#define SKUADV_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum skuadv_res_type - what the allocator of a parent domain is asked for
 * @SKUADV_RES_QP: both rings of a queue pair
 * @SKUADV_RES_CQ: ring of a completion queue
 *
 * The allocator is asked for whole pages and must return page-aligned memory. Doorbell
 * records are not allocated by it.
 */
enum skuadv_res_type {
	SKUADV_RES_QP = 0x5ca00000,
	SKUADV_RES_CQ,
};

bool skuadv_is_supported(struct ibv_device *device);

/* --- the device -------------------------------------------------------------------- */

enum skuadv_device_caps {
	SKUADV_CAP_PUSH		= 1 << 0,
	SKUADV_CAP_DB_SUPPRESS	= 1 << 1,
	SKUADV_CAP_SCATTER_CQE	= 1 << 2,
	SKUADV_CAP_SELECTIVE_REPEAT	= 1 << 3,
};

/* Options of ibv_query_ece() and ibv_set_ece() */
enum skuadv_ece_options {
	SKUADV_ECE_MASKED_ATOMIC	= 1 << 0,
	SKUADV_ECE_SELECTIVE_REPEAT	= 1 << 1,
};

/**
 * struct skuadv_device_attr - what the device and this context can do
 * @comp_mask: set to the fields that are valid beyond these: none so far
 * @caps: SKUADV_CAP_* of the device
 * @push_wqe_size: bytes of the longest send WQE that this context's QPs push, 0: none
 * @cqe_sizes: sizes of CQEs, or-ed
 * @max_send_blocks: 64-byte blocks of the largest send ring
 * @max_wqe_blocks: and of the longest send WQE
 * @max_inline: bytes of the longest inline payload
 * @max_scatter_cqe: bytes of the longest payload in the largest CQE
 */
struct skuadv_device_attr {
	uint64_t comp_mask;
	uint64_t caps;
	uint32_t push_wqe_size;
	uint32_t cqe_sizes;
	uint32_t max_send_blocks;
	uint32_t max_wqe_blocks;
	uint32_t max_inline;
	uint32_t max_scatter_cqe;
};

int skuadv_query_device(struct ibv_context *context, struct skuadv_device_attr *attr,
			uint32_t inlen);

/* --- queues ------------------------------------------------------------------------ */

enum skuadv_qp_create_flags {
	SKUADV_QP_CREATE_NO_SCATTER_CQE		= 1 << 0,
	SKUADV_QP_CREATE_SCATTER_CQE	= 1 << 1,
	SKUADV_QP_CREATE_NO_PUSH		= 1 << 2,
	SKUADV_QP_CREATE_NO_DB_SUPPRESS		= 1 << 3,
};

/**
 * struct skuadv_qp_init_attr - what ibv_create_qp_ex() cannot say
 * @comp_mask: zero
 * @create_flags: SKUADV_QP_CREATE_*
 * @reserved: zero
 */
struct skuadv_qp_init_attr {
	uint64_t comp_mask;
	uint32_t create_flags;
	uint32_t reserved;
};

struct ibv_qp *skuadv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				const struct skuadv_qp_init_attr *skua_attr, uint32_t inlen);

/**
 * struct skuadv_cq_init_attr - what ibv_create_cq_ex() cannot say
 * @comp_mask: zero
 * @cqe_size: 64, 128, or 0: the default
 * @reserved: zero
 */
struct skuadv_cq_init_attr {
	uint64_t comp_mask;
	uint32_t cqe_size;
	uint32_t reserved;
};

struct ibv_cq_ex *skuadv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
				   const struct skuadv_cq_init_attr *skua_attr, uint32_t inlen);

/* --- rings ------------------------------------------------------------------------- */

enum skuadv_qp_flags {
	SKUADV_QP_WRITE_COMBINING	= 1 << 0,
	SKUADV_QP_DB_SUPPRESS		= 1 << 1,
};

/**
 * struct skuadv_qp - a QP's rings
 * @comp_mask: as in struct skuadv_device_attr
 * @sq_buf: send ring, blocks of 64 bytes
 * @rq_buf: receive ring
 * @sq_blocks: blocks of the send ring, 0: there is none
 * @rq_wqes: WQEs of the receive ring, 0: there is none
 * @rq_stride: bytes of each
 * @qpn: the number for doorbells
 * @record: struct skua_qp_dbr
 * @doorbell: the eight bytes to store doorbells of the send queue to
 * @push: two push slots for the program alone, or NULL
 * @push_wqe_size: bytes of the longest WQE to push
 * @flags: SKUADV_QP_*
 * @alive: becomes 0 when the device is lost
 */
struct skuadv_qp {
	uint64_t comp_mask;
	void *sq_buf;
	void *rq_buf;
	uint32_t sq_blocks;
	uint32_t rq_wqes;
	uint32_t rq_stride;
	uint32_t qpn;
	void *record;
	void *doorbell;
	void *push;
	uint32_t push_wqe_size;
	uint32_t flags;
	const volatile uint32_t *alive;
};

/**
 * struct skuadv_cq - a CQ's ring
 * @comp_mask: as in struct skuadv_device_attr
 * @buf: the ring; a resize replaces it
 * @cqes: entries, a power of two
 * @cqe_size: bytes of each; struct skua_cqe is the last 64
 * @cqn: the number for arms
 * @ci: consumer index so far
 * @record: struct skua_cq_dbr
 * @arm: the eight bytes to store arms to
 */
struct skuadv_cq {
	uint64_t comp_mask;
	void *buf;
	uint32_t cqes;
	uint32_t cqe_size;
	uint32_t cqn;
	uint32_t ci;
	void *record;
	void *arm;
};

/**
 * struct skuadv_srq - an SRQ's ring
 * @comp_mask: as in struct skuadv_device_attr
 * @buf: the ring; a resize replaces it
 * @wqes: WQEs of the ring
 * @stride: bytes of each, the link to the next one included
 * @head: first free position
 * @tail: last free position, which is not to be posted
 * @srqn: the number in CQEs
 * @pi: WQEs posted so far
 * @record: struct skua_srq_dbr
 */
struct skuadv_srq {
	uint64_t comp_mask;
	void *buf;
	uint32_t wqes;
	uint32_t stride;
	uint32_t head;
	uint32_t tail;
	uint32_t srqn;
	uint32_t pi;
	void *record;
};

/**
 * struct skuadv_ah - an address handle
 * @comp_mask: as in struct skuadv_device_attr
 * @av: struct skua_av
 */
struct skuadv_ah {
	uint64_t comp_mask;
	const void *av;
};

/**
 * struct skuadv_obj - objects of the verbs, and where to tell of them
 */
struct skuadv_obj {
	struct {
		struct ibv_qp *in;
		struct skuadv_qp *out;
	} qp;
	struct {
		struct ibv_cq *in;
		struct skuadv_cq *out;
	} cq;
	struct {
		struct ibv_srq *in;
		struct skuadv_srq *out;
	} srq;
	struct {
		struct ibv_ah *in;
		struct skuadv_ah *out;
	} ah;
};

enum skuadv_obj_type {
	SKUADV_OBJ_QP	= 1 << 0,
	SKUADV_OBJ_CQ	= 1 << 1,
	SKUADV_OBJ_SRQ	= 1 << 2,
	SKUADV_OBJ_AH	= 1 << 3,
};

int skuadv_init_obj(struct skuadv_obj *obj, uint64_t obj_type);

#ifdef __cplusplus
}
#endif

#endif /* SKUADV_H */
