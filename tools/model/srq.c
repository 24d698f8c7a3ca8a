// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: commands, and taking WQEs from an SRQ. */
#include <errno.h>
#include <string.h>

#include "cmd.h"
#include "icm.h"

static uint32_t srq_wqes(const struct skua_srqc *srqc)
{
	return 1u << le32_get_bits(srqc->flags, SKUA_SRQC_LOG_SIZE);
}

static uint32_t srq_segs(const struct skua_srqc *srqc)
{
	return 1u << le32_get_bits(srqc->flags, SKUA_SRQC_LOG_STRIDE);
}

static uint64_t ring_size(const struct skua_srqc *srqc)
{
	return (uint64_t)SKUA_WQE_SEG * srq_segs(srqc) * srq_wqes(srqc);
}

/* Is the context valid? A WQE of an SRQ begins with a next segment. */
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
	       le32_to_cpu(srqc->srqn) == index && srqc_ok(dev, srqc) &&
	       le32_to_cpu(srqc->head) < srq_wqes(srqc);
}

struct skua_srqc *srq_get(struct skua_dev *dev, uint32_t srqn)
{
	return obj_valid(dev, SKUA_ICM_SRQC, srqn) ? ctx_get(dev, SKUA_ICM_SRQC, srqn) : NULL;
}

/* --- WQEs --- */

static uint32_t srq_there(const struct skua_srqc *srqc)
{
	uint32_t there = le32_to_cpu(srqc->pi) - le32_to_cpu(srqc->ci);

	return there > srq_wqes(srqc) ? 0 : there;
}

/* Read the doorbell record; an index beyond the size of the ring is ignored. */
static uint32_t read_record(struct skua_dev *dev, struct skua_srqc *srqc)
{
	struct skua_srq_dbr dbr;

	if (dma_read(dev, TLP_RECORD, le64_to_cpu(srqc->dbr), &dbr.pi, sizeof(dbr.pi)))
		return srq_there(srqc);
	if (le32_to_cpu(dbr.pi) - le32_to_cpu(srqc->ci) <= srq_wqes(srqc)) {
		srqc->pi = dbr.pi;
		ctx_dirty(dev, srqc);
	}
	return srq_there(srqc);
}

static void check_limit(struct skua_dev *dev, struct skua_srqc *srqc)
{
	uint32_t limit = le32_to_cpu(srqc->limit);

	if (!limit || srq_there(srqc) >= limit || read_record(dev, srqc) >= limit)
		return;
	srqc->limit = 0;
	srq_event(dev, srqc, SKUA_EQE_SRQ_LIMIT);
}

static int srq_fail(struct skua_dev *dev, struct skua_srqc *srqc)
{
	srqc->flags |= cpu_to_le32(SKUA_SRQC_ERROR);
	srq_event(dev, srqc, SKUA_EQE_SRQ_ERR);
	return -EIO;
}

int srq_take(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t *pos)
{
	uint32_t head = le32_to_cpu(srqc->head);
	struct skua_wqe_next link;

	if (le32_to_cpu(srqc->flags) & SKUA_SRQC_ERROR)
		return -EIO;
	if (!srq_there(srqc) && !read_record(dev, srqc))
		return -EAGAIN;
	if (ring_read(dev, TLP_RECV_WQE, &srqc->ring, ring_size(srqc),
		      (uint64_t)head * srq_segs(srqc) * SKUA_WQE_SEG, &link, sizeof(link)) ||
	    le32_to_cpu(link.next) >= srq_wqes(srqc))
		return srq_fail(dev, srqc);
	*pos = head;
	srqc->head = link.next;
	srqc->ci = cpu_to_le32(le32_to_cpu(srqc->ci) + 1);
	ctx_dirty(dev, srqc);
	check_limit(dev, srqc);
	return 0;
}

int srq_take_early(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t more, uint32_t *pos)
{
	/* The context may come from memory of the host, and there are no more WQEs than that. */
	uint32_t early = le32_to_cpu(srqc->early) & GENMASK(MODEL_LOG_RQ_MAX, 0);
	uint32_t leave = early + more;
	int err;

	if (srq_there(srqc) <= leave && read_record(dev, srqc) <= leave)
		return -EAGAIN;
	err = srq_take(dev, srqc, pos);
	if (!err)
		srqc->early = cpu_to_le32(early + 1);
	return err;
}

void srq_early_undo(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t pos)
{
	srqc->head = cpu_to_le32(pos);
	srqc->ci = cpu_to_le32(le32_to_cpu(srqc->ci) - 1);
	srq_early_done(dev, srqc);
}

void srq_early_done(struct skua_dev *dev, struct skua_srqc *srqc)
{
	uint32_t early = le32_to_cpu(srqc->early);

	if (!early)
		return;
	srqc->early = cpu_to_le32(early - 1);
	ctx_dirty(dev, srqc);
}

enum skua_vendor srq_fetch(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t pos,
			   struct rwqe *out)
{
	uint8_t raw[SKUA_WQE_SEG << (MODEL_LOG_RQ_STRIDE_MAX + 1)];
	size_t stride = (size_t)srq_segs(srqc) * SKUA_WQE_SEG;

	out->index = pos;
	if (ring_read(dev, TLP_RECV_WQE, &srqc->ring, ring_size(srqc), pos * (uint64_t)stride, raw,
		      stride))
		return SKUA_VENDOR_WQE_DMA;
	return rwqe_decode(raw + SKUA_WQE_SEG, srq_segs(srqc) - 1, out);
}

/* --- commands --- */

/* An XRC SRQ has a domain and a CQ, another one neither. */
static int xrc_check(struct skua_dev *dev, const struct skua_srqc *in)
{
	if (!in->xrcd)
		return in->cqn ? SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK;
	if (!dev_has(dev, SKUA_CAP_XRC))
		return SKUA_CMD_ST_BAD_PARAM;
	return obj_valid(dev, SKUA_ICM_CQC, le32_to_cpu(in->cqn)) ? SKUA_CMD_ST_OK :
								   SKUA_CMD_ST_BAD_INDEX;
}

static void count_cq(struct skua_dev *dev, const struct skua_srqc *srqc, int by)
{
	if (srqc->xrcd)
		obj_ref(dev, SKUA_ICM_CQC, le32_to_cpu(srqc->cqn), by);
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
	    !srqc_ok(dev, in) || le64_to_cpu(in->dbr) % SKUA_DBR_ALIGN ||
	    le32_to_cpu(in->limit) > srq_wqes(in) ||
	    in->pi || in->ci || in->head || in->pending || in->life || in->early ||
	    !all_zero(in->reserved, sizeof(in->reserved)))
		return SKUA_CMD_ST_BAD_PARAM;
	err = xrc_check(dev, in);
	if (err)
		return err;
	srqc = ctx_new(dev, SKUA_ICM_SRQC, srqn);
	if (!srqc)
		return SKUA_CMD_ST_INTERNAL;
	*srqc = *in;
	count_cq(dev, srqc, 1);
	srqc->flags |= cpu_to_le32(SKUA_SRQC_VALID);
	srqc->life = cpu_to_le32(++dev->srq_lives);
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
	srqc = ctx_get(dev, SKUA_ICM_SRQC, srqn);
	if (!srqc)
		return SKUA_CMD_ST_INTERNAL;
	srq_event_forget(dev, srqn);
	count_cq(dev, srqc, -1);
	obj_set(dev, SKUA_ICM_SRQC, srqn, false);
	memset(srqc, 0, sizeof(*srqc));
	ctx_dirty(dev, srqc);
	ctx_put(dev, srqc);
	return SKUA_CMD_ST_OK;
}

int cmd_modify_srq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_srq_in *in = cmd->in;
	uint32_t srqn = le32_to_cpu(in->srqn);
	struct skua_srqc *srqc;
	int err = SKUA_CMD_ST_OK;

	srqc = srq_get(dev, srqn);
	if (!srqc)
		return SKUA_CMD_ST_BAD_INDEX;
	if (le32_to_cpu(in->limit) > srq_wqes(srqc)) {
		err = SKUA_CMD_ST_BAD_PARAM;
	} else if (le32_to_cpu(srqc->flags) & SKUA_SRQC_ERROR) {
		err = SKUA_CMD_ST_BAD_STATE;
	} else {
		srqc->limit = in->limit;
		ctx_dirty(dev, srqc);
		check_limit(dev, srqc);
	}
	ctx_put(dev, srqc);
	return err;
}

/* Check that the input has only the fields that RESIZE_SRQ changes. */
static bool resize_ok(struct skua_dev *dev, const struct skua_srqc *srqc,
		      const struct skua_srqc *in)
{
	struct skua_srqc rest = *in;

	rest.srqn = 0;
	rest.flags &= ~cpu_to_le32(SKUA_SRQC_LOG_SIZE | SKUA_SRQC_LOG_STRIDE);
	memset(&rest.ring, 0, sizeof(rest.ring));
	return all_zero(&rest, sizeof(rest)) && srqc_ok(dev, in) &&
	       srq_segs(in) == srq_segs(srqc) && srq_wqes(in) >= srq_wqes(srqc);
}

int cmd_resize_srq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_srqc *in = &((const struct skua_cmd_create_srq_in *)cmd->in)->srqc;
	struct skua_srqc *srqc = srq_get(dev, le32_to_cpu(in->srqn));
	int err = SKUA_CMD_ST_OK;

	if (!srqc)
		return SKUA_CMD_ST_BAD_INDEX;
	if (!resize_ok(dev, srqc, in)) {
		err = SKUA_CMD_ST_BAD_PARAM;
	} else if (le32_to_cpu(srqc->flags) & SKUA_SRQC_ERROR) {
		err = SKUA_CMD_ST_BAD_STATE;
	} else {
		srqc->ring = in->ring;
		le32p_replace_bits(&srqc->flags, le32_get_bits(in->flags, SKUA_SRQC_LOG_SIZE),
				   SKUA_SRQC_LOG_SIZE);
		ctx_dirty(dev, srqc);
	}
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
