// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: the objects. Taking WQEs from them is wqe.c's business. */
#include <string.h>

#include "cmd.h"
#include "icm.h"

static uint64_t ring_size(const struct skua_srqc *srqc)
{
	return (uint64_t)SKUA_WQE_SEG << (le32_get_bits(srqc->flags, SKUA_SRQC_LOG_STRIDE) +
					  le32_get_bits(srqc->flags, SKUA_SRQC_LOG_SIZE));
}

/* The fields that must be right at all times. A WQE begins with a next segment. */
static bool srqc_ok(struct skua_dev *dev, const struct skua_srqc *srqc)
{
	uint32_t stride = le32_get_bits(srqc->flags, SKUA_SRQC_LOG_STRIDE);

	return le32_get_bits(srqc->flags, SKUA_SRQC_LOG_SIZE) <= MODEL_LOG_RQ_MAX &&
	       stride >= 1 && stride <= MODEL_LOG_RQ_STRIDE_MAX + 1 &&
	       ring_ok(dev, &srqc->ring, ring_size(srqc));
}

bool srqc_check(struct skua_dev *dev, uint32_t index, const void *ctx)
{
	const struct skua_srqc *srqc = ctx;

	return le32_to_cpu(srqc->flags) & SKUA_SRQC_VALID &&
	       le32_to_cpu(srqc->srqn) == index && srqc_ok(dev, srqc);
}

int cmd_create_srq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_srqc *in = &((const struct skua_cmd_create_srq_in *)cmd->in)->srqc;
	uint32_t srqn = le32_to_cpu(in->srqn);
	struct skua_srqc *srqc;
	int err = cmd_vacant(dev, SKUA_ICM_SRQC, srqn);

	if (err)
		return err;
	if (le32_to_cpu(in->flags) & ~(SKUA_SRQC_RESERVED_LKEY | SKUA_SRQC_LOG_SIZE |
				       SKUA_SRQC_LOG_STRIDE) ||
	    !srqc_ok(dev, in) || le64_to_cpu(in->dbr) % SKUA_DBR_ALIGN || in->xrcd || in->cqn ||
	    le32_to_cpu(in->limit) > 1u << le32_get_bits(in->flags, SKUA_SRQC_LOG_SIZE) ||
	    in->pi || in->ci || in->head || in->pending ||
	    !all_zero(in->reserved, sizeof(in->reserved)))
		return SKUA_CMD_ST_BAD_PARAM;
	srqc = ctx_new(dev, SKUA_ICM_SRQC, srqn);
	if (!srqc)
		return SKUA_CMD_ST_INTERNAL;
	*srqc = *in;
	srqc->flags |= cpu_to_le32(SKUA_SRQC_VALID);
	obj_set(dev, SKUA_ICM_SRQC, srqn, true);
	ctx_put(dev, srqc);
	return SKUA_CMD_ST_OK;
}

int cmd_destroy_srq(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_srqc *srqc;
	uint32_t srqn;
	int err = cmd_object(dev, cmd, SKUA_ICM_SRQC, &srqn);

	if (err)
		return err;
	if (obj_refs(dev, SKUA_ICM_SRQC, srqn))
		return SKUA_CMD_ST_BUSY;
	srq_event_forget(dev, srqn);
	obj_set(dev, SKUA_ICM_SRQC, srqn, false);
	srqc = ctx_new(dev, SKUA_ICM_SRQC, srqn);
	if (!srqc)
		return SKUA_CMD_ST_INTERNAL;
	ctx_put(dev, srqc);
	return SKUA_CMD_ST_OK;
}

int cmd_modify_srq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_srq_in *in = cmd->in;
	uint32_t srqn = le32_to_cpu(in->srqn);
	struct skua_srqc *srqc;
	int err = SKUA_CMD_ST_OK;

	if (!obj_valid(dev, SKUA_ICM_SRQC, srqn))
		return SKUA_CMD_ST_BAD_INDEX;
	srqc = ctx_get(dev, SKUA_ICM_SRQC, srqn);
	if (!srqc)
		return SKUA_CMD_ST_INTERNAL;
	if (le32_to_cpu(in->limit) > 1u << le32_get_bits(srqc->flags, SKUA_SRQC_LOG_SIZE))
		err = SKUA_CMD_ST_BAD_PARAM;
	else if (le32_to_cpu(srqc->flags) & SKUA_SRQC_ERROR)
		err = SKUA_CMD_ST_BAD_STATE;
	else
		srqc->limit = in->limit;
	ctx_dirty(dev, srqc);
	ctx_put(dev, srqc);
	return err;
}

int cmd_query_srq(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_srq_out *out = cmd->out;
	uint32_t srqn;
	int err = cmd_object(dev, cmd, SKUA_ICM_SRQC, &srqn);

	return err ? err : cmd_query_ctx(dev, SKUA_ICM_SRQC, srqn, &out->srqc,
					 sizeof(out->srqc));
}
