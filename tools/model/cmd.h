/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function for each command; cmd.c has the table. The length of the input was checked, at
 * most @out_room bytes of output may be written, and the return value is an enum
 * skua_cmd_status.
 */
#ifndef SKUA_MODEL_CMD_H
#define SKUA_MODEL_CMD_H

#include "core.h"

/**
 * struct cmd_note - what a command that is not done yet keeps until it is called again
 * @taken: it keeps something
 * @qpn: MODIFY_QP: the QP that goes from SQE to RTS
 * @sq_pi: its producer index when the command came
 */
struct cmd_note {
	bool taken;
	uint32_t qpn;
	uint32_t sq_pi;
};

/**
 * struct cmd - a command while it runs
 * @in: input, 8-byte aligned
 * @in_len: bytes of input: the size of the structure, or more if that ends in an array
 * @out: output, zeroed
 * @out_room: bytes of output that the caller takes, at least the size of the structure
 * @out_len: bytes of output to write; set to the size of the structure before the call
 * @note: as the command has left it if this is not its first call, else zeroed
 */
struct cmd {
	const void *in;
	size_t in_len;
	void *out;
	size_t out_room;
	size_t out_len;
	struct cmd_note *note;
};

/*
 * In place of a status: nothing of the command is complete but what has taken enough of this turn.
 * It is called again in the next one, from the beginning, before all commands behind it. How often
 * that happens must not depend on what software does meanwhile. The input is read again each time,
 * and may be another one: @note does not tell whether it is.
 */
#define CMD_AGAIN	(-1)

#define CMD_SERVERS(X)							\
	X(NOP, nop)							\
	X(QUERY_DEVICE, query_device)					\
	X(INIT_DEVICE, init_device)					\
	X(TEARDOWN_DEVICE, teardown_device)				\
	X(MODIFY_DEVICE, modify_device)					\
	X(INJECT_FATAL, inject_fatal)					\
	X(MAP_ICM, map_icm)						\
	X(UNMAP_ICM, unmap_icm)						\
	X(CREATE_EQ, create_eq)						\
	X(DESTROY_EQ, destroy_eq)					\
	X(MODIFY_EQ, modify_eq)						\
	X(QUERY_EQ, query_eq)						\
	X(CREATE_MPT, create_mpt)					\
	X(DESTROY_MPT, destroy_mpt)					\
	X(MODIFY_MPT, modify_mpt)					\
	X(QUERY_MPT, query_mpt)						\
	X(SYNC_MTT, sync_mtt)						\
	X(CREATE_CQ, create_cq)						\
	X(DESTROY_CQ, destroy_cq)					\
	X(MODIFY_CQ, modify_cq)						\
	X(RESIZE_CQ, resize_cq)						\
	X(QUERY_CQ, query_cq)						\
	X(CREATE_SRQ, create_srq)					\
	X(DESTROY_SRQ, destroy_srq)					\
	X(MODIFY_SRQ, modify_srq)					\
	X(QUERY_SRQ, query_srq)						\
	X(RESIZE_SRQ, resize_srq)					\
	X(CREATE_QP, create_qp)						\
	X(DESTROY_QP, destroy_qp)					\
	X(MODIFY_QP, modify_qp)						\
	X(QUERY_QP, query_qp)						\
	X(SET_GID, set_gid)						\
	X(QUERY_GID, query_gid)						\
	X(CREATE_FLOW, create_flow)					\
	X(DESTROY_FLOW, destroy_flow)					\
	X(CREATE_RSS, create_rss)					\
	X(DESTROY_RSS, destroy_rss)					\
	X(MODIFY_RSS, modify_rss)					\
	X(ATTACH_MCG, attach_mcg)					\
	X(DETACH_MCG, detach_mcg)					\
	X(QUERY_PORT, query_port)					\
	X(MODIFY_PORT, modify_port)					\
	X(QUERY_CC, query_cc)						\
	X(MODIFY_CC, modify_cc)						\
	X(QUERY_COUNTERS, query_counters)				\
	X(QUERY_ICM_CACHE, query_icm_cache)				\
	X(CREATE_COUNTER, create_counter)				\
	X(DESTROY_COUNTER, destroy_counter)				\
	X(RESUME_PAGE_FAULT, resume_page_fault)

#define X(name, server) int cmd_##server(struct skua_dev *dev, struct cmd *cmd);
CMD_SERVERS(X)
#undef X

/* Are all @len bytes at @p zero? For reserved and state fields. */
bool all_zero(const void *p, size_t len);

/*
 * The index of a command whose input is struct skua_cmd_index_in, or whose first
 * two words are index and reserved: 0 and *index, or BAD_PARAM.
 */
int cmd_index(const struct cmd *cmd, uint32_t *index);
/* Likewise, but BAD_INDEX if there is no such object. */
int cmd_object(struct skua_dev *dev, const struct cmd *cmd, enum skua_icm_table table,
	       uint32_t *index);
/* Can object @index be created? BAD_INDEX, EXISTS, NO_ICM, or 0 if it can. */
int cmd_vacant(struct skua_dev *dev, enum skua_icm_table table, uint32_t index);
/* Write an object's context back to ICM and return a copy: the QUERY commands. */
int cmd_query_ctx(struct skua_dev *dev, enum skua_icm_table table, uint32_t index, void *out,
		  size_t len);

#endif /* SKUA_MODEL_CMD_H */
