// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: writing completions, finding out that there is no room, and
 * the rules of arming.
 */
#include <string.h>

#include "cmd.h"
#include "icm.h"

static uint32_t cq_log(const struct skua_cqc *cqc)
{
	return le32_get_bits(cqc->flags, SKUA_CQC_LOG_SIZE);
}

static uint32_t cqe_size(const struct skua_cqc *cqc)
{
	return le32_to_cpu(cqc->flags) & SKUA_CQC_CQE128 ? 128 : 64;
}

static uint64_t ring_size(const struct skua_cqc *cqc)
{
	return (uint64_t)cqe_size(cqc) << cq_log(cqc);
}

bool cqc_check(struct skua_dev *dev, uint32_t index, const void *ctx)
{
	const struct skua_cqc *cqc = ctx;

	return le32_to_cpu(cqc->flags) & SKUA_CQC_VALID && le32_to_cpu(cqc->cqn) == index &&
	       cq_log(cqc) <= MODEL_LOG_CQ_MAX &&
	       obj_valid(dev, SKUA_ICM_EQC, le32_to_cpu(cqc->eqn)) &&
	       le32_to_cpu(cqc->uar) < dev_uars(dev) && ring_ok(dev, &cqc->ring, ring_size(cqc));
}

static struct skua_cqc *cq_get(struct skua_dev *dev, uint32_t cqn)
{
	return obj_valid(dev, SKUA_ICM_CQC, cqn) ? ctx_get(dev, SKUA_ICM_CQC, cqn) : NULL;
}

/* --- arming --- */

static void hold_none(struct skua_dev *dev, struct skua_cqc *cqc)
{
	if (cqc->held)
		timer_set_cq(dev, le32_to_cpu(cqc->cqn), SKUA_TIME_NEVER);
	cqc->held = 0;
	ctx_dirty(dev, cqc);
}

void cq_told(struct skua_dev *dev, struct skua_cqc *cqc)
{
	cqc->told = cqc->pi;
	hold_none(dev, cqc);
}

static void fire(struct skua_dev *dev, struct skua_cqc *cqc)
{
	hold_none(dev, cqc);
	/* The serial is kept: a pending event still needs it. */
	cqc->arm &= ~cpu_to_le32(SKUA_CQC_ARM_ANY | SKUA_CQC_ARM_SOLICITED);
	comp_event(dev, cqc);
}

/* An armed CQ got a completion of the kind that it is armed for. */
static void moderate(struct skua_dev *dev, struct skua_cqc *cqc)
{
	uint32_t usec = le32_get_bits(cqc->moderation, SKUA_MOD_USEC);
	uint32_t most = le32_get_bits(cqc->moderation, SKUA_MOD_COUNT);
	uint32_t held = le32_to_cpu(cqc->held);

	if (!usec || (most && held + 1 >= most)) {
		fire(dev, cqc);
		return;
	}
	if (!held)
		timer_set_cq(dev, le32_to_cpu(cqc->cqn), dev_now(dev) + usec * 1000ull);
	cqc->held = cpu_to_le32(held + 1);
}

void cq_timer(struct skua_dev *dev, uint32_t cqn)
{
	struct skua_cqc *cqc = cq_get(dev, cqn);

	if (!cqc)
		return;
	if (cqc->held)
		fire(dev, cqc);
	ctx_put(dev, cqc);
}

/*
 * Is there a completion already that the arm asks for: one of its kind, at or past its index,
 * and written after the last event? Indices are compared by their distance from the producer
 * index, which none of them exceeds.
 */
static void arm(struct skua_dev *dev, struct skua_cqc *cqc, uint32_t ci, uint32_t hi)
{
	/* A request for the next completion stays one (C11-31). */
	bool solicited = hi & SKUA_UAR_CQ_ARM_SOLICITED &&
			 !(le32_to_cpu(cqc->arm) & SKUA_CQC_ARM_ANY);
	uint32_t pi = le32_to_cpu(cqc->pi);
	uint32_t behind = solicited ? pi - le32_to_cpu(cqc->solicited) : 0;

	cqc->arm_ci = cpu_to_le32(ci);
	cqc->arm = le32_encode_bits(u32_get_bits(hi, SKUA_UAR_CQ_ARM_SERIAL),
				    SKUA_CQC_ARM_SERIAL) |
		   cpu_to_le32(solicited ? SKUA_CQC_ARM_SOLICITED : SKUA_CQC_ARM_ANY);
	hold_none(dev, cqc);
	if (behind < pi - ci && behind < pi - le32_to_cpu(cqc->told))
		fire(dev, cqc);
}

void cq_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi)
{
	uint32_t cqn = u32_get_bits(hi, SKUA_UAR_CQ_ARM_CQN);
	struct skua_cqc *cqc;

	if (hi & ~(SKUA_UAR_CQ_ARM_CQN | SKUA_UAR_CQ_ARM_SERIAL | SKUA_UAR_CQ_ARM_SOLICITED)) {
		dev->cnt[SKUA_CNT_BAD_DB]++;
		return;
	}
	cqc = cq_get(dev, cqn);
	if (!cqc) {
		dev->cnt[SKUA_CNT_BAD_DB_QP]++;
		return;
	}
	if (le32_to_cpu(cqc->uar) != page) {
		dev->cnt[SKUA_CNT_BAD_DB_UAR]++;
	} else if ((int32_t)(le32_to_cpu(cqc->pi) - lo) < 0) {
		dev->cnt[SKUA_CNT_BAD_DB_INDEX]++;
	} else {
		dev->cnt[SKUA_CNT_CQ_DB]++;
		arm(dev, cqc, lo, hi);
	}
	ctx_put(dev, cqc);
}

/* --- completions --- */

/*
 * Is there room for another entry? The doorbell record is read only if there is none by the
 * consumer index known, and used only if it lies between that and the producer index.
 */
static bool has_room(struct skua_dev *dev, struct skua_cqc *cqc)
{
	uint32_t pi = le32_to_cpu(cqc->pi);
	uint32_t ci = le32_to_cpu(cqc->ci);
	struct skua_cq_dbr dbr;
	uint32_t new;

	if (le32_to_cpu(cqc->flags) & SKUA_CQC_IGNORE_OVERRUN || pi - ci < 1u << cq_log(cqc))
		return true;
	if (dma_read(dev, TLP_RECORD, le64_to_cpu(cqc->dbr), &dbr.ci, sizeof(dbr.ci)))
		return false;
	new = le32_to_cpu(dbr.ci);
	if (new == ci || new - ci > pi - ci)
		return false;
	cqc->ci = cpu_to_le32(new);
	ctx_dirty(dev, cqc);
	return true;
}

static int cq_fail(struct skua_dev *dev, struct skua_cqc *cqc, enum skua_cq_err err)
{
	if (err == SKUA_CQ_ERR_OVERRUN)
		dev->cnt[SKUA_CNT_CQ_OVERRUN]++;
	cqc->flags |= cpu_to_le32(SKUA_CQC_ERROR);
	cq_err_event(dev, cqc, err);
	return -1;
}

/* Keep a mark of events within 2^31 of the producer index @pi, so that it can be compared. */
static __le32 mark_keep(__le32 mark, uint32_t pi)
{
	const uint32_t most = 1u << 31;

	return pi - le32_to_cpu(mark) > most ? cpu_to_le32(pi - most) : mark;
}

/* The entry at @off of the ring. Of a large one the first half is written if it has data. */
static int write_entry(struct skua_dev *dev, struct skua_cqc *cqc, uint64_t off,
		       struct skua_cqe *cqe, const void *data)
{
	uint32_t len = le32_to_cpu(cqe->byte_len);
	uint8_t both[2 * sizeof(*cqe)];

	if (data && len <= sizeof(cqe->data)) {
		memcpy(cqe->data, data, len);
		data = NULL;
	}
	if (!data)
		return ring_write_elem(dev, TLP_CQE, &cqc->ring, ring_size(cqc),
				       off + cqe_size(cqc) - sizeof(*cqe), cqe, sizeof(*cqe));
	memset(both, 0, sizeof(*cqe));
	memcpy(both, data, len);
	memcpy(both + sizeof(*cqe), cqe, sizeof(*cqe));
	return ring_write_elem(dev, TLP_CQE, &cqc->ring, ring_size(cqc), off, both, sizeof(both));
}

/* --- several in one memory write --- */

static void batch_flush(struct skua_dev *dev)
{
	struct cq_batch *b = &dev->batch;
	struct skua_cqc *cqc = b->cqc;

	if (!b->num)
		return;
	if (ring_write_elems(dev, TLP_CQE, &cqc->ring, ring_size(cqc), b->off, b->cqe,
			     sizeof(b->cqe[0]), b->num)) {
		b->failed = true;
		cq_fail(dev, cqc, SKUA_CQ_ERR_DMA);
	}
	b->num = 0;
	ctx_put(dev, cqc);
}

void cq_batch_begin(struct skua_dev *dev)
{
	dev->batch.on = true;
	dev->batch.failed = false;
}

bool cq_batch_end(struct skua_dev *dev)
{
	batch_flush(dev);
	dev->batch.on = false;
	return !dev->batch.failed;
}

/*
 * May the entry at @off be written later, together with the next one? Not if it is an error, or
 * if it causes an event. Entries written together lie in one block of the maximum payload size.
 */
static bool batch_takes(const struct skua_dev *dev, const struct skua_cqc *cqc, const void *data,
			bool error)
{
	return dev->batch.on && !error && !data && !cqc->held &&
	       !(le32_to_cpu(cqc->arm) & (SKUA_CQC_ARM_ANY | SKUA_CQC_ARM_SOLICITED)) &&
	       cqe_size(cqc) == sizeof(struct skua_cqe);
}

static void batch_add(struct skua_dev *dev, struct skua_cqc *cqc, uint64_t off,
		      struct skua_cqe *cqe)
{
	const uint64_t block = sizeof(dev->batch.cqe);
	struct cq_batch *b = &dev->batch;

	if (b->num && (b->cqc != cqc || off != b->off + b->num * sizeof(*cqe)))
		batch_flush(dev);
	if (!b->num) {
		b->cqc = cq_get(dev, le32_to_cpu(cqc->cqn));
		b->off = off;
		b->stamp = cqe->timestamp;
	}
	b->cqe[b->num++] = *cqe;
	if ((le32_to_cpu(cqc->ring.offset) + off + sizeof(*cqe)) % block == 0)
		batch_flush(dev);
}

uint32_t cq_room(struct skua_dev *dev, uint32_t cqn)
{
	struct skua_cqc *cqc = cq_get(dev, cqn);
	uint32_t room;

	if (!cqc)
		return 0;
	room = cqe_size(cqc) == 128 ? 64 : 32;
	ctx_put(dev, cqc);
	return room;
}

static int write_cqe(struct skua_dev *dev, struct skua_cqc *cqc, struct skua_cqe *cqe,
		     const void *data, bool solicited)
{
	uint32_t log = cq_log(cqc);
	uint32_t pi = le32_to_cpu(cqc->pi);
	uint64_t off = (uint64_t)(pi & ((1u << log) - 1)) * cqe_size(cqc);
	bool error = le32_get_bits(cqe->what, SKUA_CQE_STATUS) != SKUA_CQE_OK;

	if (!has_room(dev, cqc)) {
		/* Software cannot have consumed entries that are not written yet. */
		batch_flush(dev);
		if (!has_room(dev, cqc))
			return cq_fail(dev, cqc, SKUA_CQ_ERR_OVERRUN);
	}
	le32p_replace_bits(&cqe->own, !(pi >> log & 1), SKUA_CQE_PHASE);
	if (!batch_takes(dev, cqc, data, error))
		batch_flush(dev);
	if (dev->batch.num && dev->batch.cqc == cqc)
		cqe->timestamp = dev->batch.stamp;
	else
		cqe->timestamp = cpu_to_le64(dev_has(dev, SKUA_CAP_TIMESTAMP) ? dev_now(dev) : 0);
	if (batch_takes(dev, cqc, data, error))
		batch_add(dev, cqc, off, cqe);
	else if (write_entry(dev, cqc, off, cqe, data))
		return cq_fail(dev, cqc, SKUA_CQ_ERR_DMA);
	cqc->pi = cpu_to_le32(pi + 1);
	cqc->told = mark_keep(cqc->told, pi + 1);
	cqc->solicited = solicited || error ? cqc->pi : mark_keep(cqc->solicited, pi + 1);
	ctx_dirty(dev, cqc);
	if (le32_to_cpu(cqc->arm) & SKUA_CQC_ARM_ANY ||
	    (le32_to_cpu(cqc->arm) & SKUA_CQC_ARM_SOLICITED && (solicited || error)))
		moderate(dev, cqc);
	return 0;
}

int cq_post_data(struct skua_dev *dev, uint32_t cqn, struct skua_cqe *cqe, bool solicited,
		 const void *data)
{
	struct skua_cqc *cqc = cq_get(dev, cqn);
	int err = -1;

	if (!cqc)
		return -1;
	if (!(le32_to_cpu(cqc->flags) & SKUA_CQC_ERROR))
		err = write_cqe(dev, cqc, cqe, data, solicited);
	ctx_put(dev, cqc);
	return err;
}

int cq_post(struct skua_dev *dev, uint32_t cqn, struct skua_cqe *cqe, bool solicited)
{
	return cq_post_data(dev, cqn, cqe, solicited, NULL);
}

/* --- commands --- */

static bool cqc_ok(struct skua_dev *dev, const struct skua_cqc *in)
{
	return !(le32_to_cpu(in->flags) & ~(SKUA_CQC_CQE128 | SKUA_CQC_IGNORE_OVERRUN |
					    SKUA_CQC_LOG_SIZE)) &&
	       cq_log(in) <= MODEL_LOG_CQ_MAX && le32_to_cpu(in->uar) < dev_uars(dev) &&
	       ring_ok(dev, &in->ring, ring_size(in)) &&
	       le64_to_cpu(in->dbr) % SKUA_DBR_ALIGN == 0 &&
	       !in->pi && !in->ci && !in->arm_ci && !in->arm && !in->pending &&
	       !in->solicited && !in->held && !in->told && all_zero(in->reserved, sizeof(in->reserved));
}

int cmd_create_cq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cqc *in = &((const struct skua_cmd_create_cq_in *)cmd->in)->cqc;
	uint32_t cqn = le32_to_cpu(in->cqn);
	uint32_t eqn = le32_to_cpu(in->eqn);
	struct skua_cqc *cqc;
	int err = cmd_vacant(dev, SKUA_ICM_CQC, cqn);

	if (err)
		return err;
	if (!cqc_ok(dev, in))
		return SKUA_CMD_ST_BAD_PARAM;
	if (!obj_valid(dev, SKUA_ICM_EQC, eqn))
		return SKUA_CMD_ST_BAD_INDEX;
	cqc = ctx_new(dev, SKUA_ICM_CQC, cqn);
	if (!cqc)
		return SKUA_CMD_ST_INTERNAL;
	*cqc = *in;
	cqc->flags |= cpu_to_le32(SKUA_CQC_VALID);
	obj_set(dev, SKUA_ICM_CQC, cqn, true);
	obj_ref(dev, SKUA_ICM_EQC, eqn, 1);
	ctx_put(dev, cqc);
	return SKUA_CMD_ST_OK;
}

int cmd_destroy_cq(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cqc *cqc;
	uint32_t cqn;
	int err = cmd_object(dev, cmd, SKUA_ICM_CQC, &cqn);

	if (err)
		return err;
	if (obj_refs(dev, SKUA_ICM_CQC, cqn))
		return SKUA_CMD_ST_BUSY;
	cqc = ctx_get(dev, SKUA_ICM_CQC, cqn);
	if (!cqc)
		return SKUA_CMD_ST_INTERNAL;
	cq_event_forget(dev, cqn);
	timer_set_cq(dev, cqn, SKUA_TIME_NEVER);
	obj_ref(dev, SKUA_ICM_EQC, le32_to_cpu(cqc->eqn), -1);
	obj_set(dev, SKUA_ICM_CQC, cqn, false);
	memset(cqc, 0, sizeof(*cqc));
	ctx_dirty(dev, cqc);
	ctx_put(dev, cqc);
	return SKUA_CMD_ST_OK;
}

int cmd_modify_cq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_mod_in *in = cmd->in;
	struct skua_cqc *cqc = cq_get(dev, le32_to_cpu(in->index));

	if (!cqc)
		return SKUA_CMD_ST_BAD_INDEX;
	cqc->moderation = in->moderation;
	ctx_dirty(dev, cqc);
	/* An event that the old moderation delays is sent now. */
	if (cqc->held)
		fire(dev, cqc);
	ctx_put(dev, cqc);
	return SKUA_CMD_ST_OK;
}

/* Check that the input has only the fields that RESIZE_CQ changes. */
static bool resize_ok(struct skua_dev *dev, const struct skua_cqc *cqc, const struct skua_cqc *in)
{
	struct skua_cqc rest = *in;

	rest.cqn = 0;
	rest.flags &= ~cpu_to_le32(SKUA_CQC_CQE128 | SKUA_CQC_LOG_SIZE);
	memset(&rest.ring, 0, sizeof(rest.ring));
	return all_zero(&rest, sizeof(rest)) && cq_log(in) <= MODEL_LOG_CQ_MAX &&
	       cqe_size(in) == cqe_size(cqc) && ring_ok(dev, &in->ring, ring_size(in));
}

/* By the record as it is now: entries that are not consumed must fit into the new ring. */
static int resize(struct skua_dev *dev, struct skua_cqc *cqc, const struct skua_cqc *in)
{
	uint32_t pi = le32_to_cpu(cqc->pi);
	struct skua_cq_dbr dbr;

	if (le32_to_cpu(cqc->flags) & SKUA_CQC_ERROR)
		return SKUA_CMD_ST_BAD_STATE;
	if (!resize_ok(dev, cqc, in))
		return SKUA_CMD_ST_BAD_PARAM;
	if (dma_read(dev, TLP_RECORD, le64_to_cpu(cqc->dbr), &dbr.ci, sizeof(dbr.ci)))
		return SKUA_CMD_ST_DMA;
	if (pi - le32_to_cpu(dbr.ci) > 1u << cq_log(cqc) ||
	    pi - le32_to_cpu(dbr.ci) > 1u << cq_log(in))
		return SKUA_CMD_ST_BAD_PARAM;
	cqc->ci = dbr.ci;
	cqc->ring = in->ring;
	le32p_replace_bits(&cqc->flags, cq_log(in), SKUA_CQC_LOG_SIZE);
	ctx_dirty(dev, cqc);
	return SKUA_CMD_ST_OK;
}

int cmd_resize_cq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cqc *in = &((const struct skua_cmd_create_cq_in *)cmd->in)->cqc;
	struct skua_cmd_resize_cq_out *out = cmd->out;
	struct skua_cqc *cqc = cq_get(dev, le32_to_cpu(in->cqn));
	int err;

	if (!cqc)
		return SKUA_CMD_ST_BAD_INDEX;
	err = resize(dev, cqc, in);
	out->pi = cqc->pi;
	ctx_put(dev, cqc);
	return err;
}

int cmd_query_cq(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_cq_out *out = cmd->out;
	uint32_t cqn;
	int err = cmd_object(dev, cmd, SKUA_ICM_CQC, &cqn);

	return err ? err : cmd_query_ctx(dev, SKUA_ICM_CQC, cqn, &out->cqc, sizeof(out->cqc));
}
