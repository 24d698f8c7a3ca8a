// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: who may access what, and where it lies. Every access of user memory goes
 * through here, is checked in full each time, and copied run by run.
 */
#include <string.h>

#include "cmd.h"
#include "icm.h"

static uint32_t mpt_state(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->flags, SKUA_MPT_STATE);
}

static uint32_t mpt_mode(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->xlat.mode, SKUA_XLAT_MODE);
}

static uint32_t mpt_log_page(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->xlat.mode, SKUA_XLAT_LOG_PAGE);
}

/* Does the page list exist, and does it cover the region? */
static bool pages_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint64_t num = icm_num(dev, SKUA_ICM_MTT);
	uint64_t base = le64_to_cpu(mpt->xlat.base);
	uint64_t offset = le32_to_cpu(mpt->xlat.offset);
	uint64_t npages = le32_to_cpu(mpt->npages);
	uint64_t len = le64_to_cpu(mpt->len);
	uint32_t log = mpt_log_page(mpt);

	if (log < MODEL_LOG_PAGE_MIN || log > MODEL_LOG_PAGE_MAX || offset >> log)
		return false;
	/* 32 bits of pages of at most 2^31 bytes: the product fits 64. */
	if (len > npages << log || offset > (npages << log) - len)
		return false;
	if (mpt_mode(mpt) == SKUA_XLAT_INLINE)
		return npages <= SKUA_MPT_INLINE_PAGES && !base;
	return base <= num && npages <= num - base;
}

/* The fields that say where a region lies. */
static bool xlat_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint64_t len = le64_to_cpu(mpt->len);
	uint64_t base = le64_to_cpu(mpt->xlat.base);
	uint64_t start = base + le32_to_cpu(mpt->xlat.offset);

	if (le32_to_cpu(mpt->xlat.mode) & ~(SKUA_XLAT_MODE | SKUA_XLAT_LOG_PAGE))
		return false;
	if (mpt_mode(mpt) != SKUA_XLAT_INLINE && !all_zero(mpt->page, sizeof(mpt->page)))
		return false;
	if (le32_to_cpu(mpt->flags) & SKUA_MPT_NULL)
		return all_zero(&mpt->xlat, sizeof(mpt->xlat)) && !mpt->npages;
	if (le32_to_cpu(mpt->flags) & SKUA_MPT_DM)
		return mpt_mode(mpt) == SKUA_XLAT_CONTIG && start >= base &&
		       dm_ok(dev, start, len) && !mpt->npages;
	switch (mpt_mode(mpt)) {
	case SKUA_XLAT_CONTIG:
		return start >= base && (!len || start + (len - 1) >= start) && !mpt->npages;
	case SKUA_XLAT_MTT:
	case SKUA_XLAT_INLINE:
		return pages_ok(dev, mpt);
	}
	return false;
}

/* An entry that software or, much later, ICM offers. */
static bool mpt_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint32_t flags = SKUA_MPT_STATE | SKUA_MPT_TYPE;
	uint64_t va = le64_to_cpu(mpt->va);
	uint64_t len = le64_to_cpu(mpt->len);

	flags |= dev_has(dev, SKUA_CAP_FAST_REG) ? SKUA_MPT_FAST_REG : 0;
	flags |= dev_has(dev, SKUA_CAP_NULL_MR) ? SKUA_MPT_NULL : 0;
	flags |= dev_has(dev, SKUA_CAP_DM) ? SKUA_MPT_DM : 0;
	if (le32_to_cpu(mpt->flags) & ~flags ||
	    le32_get_bits(mpt->flags, SKUA_MPT_TYPE) != SKUA_MPT_MR ||
	    le32_to_cpu(mpt->access) & ~SKUA_ACCESS_ALL || mpt->parent || mpt->qpn)
		return false;
	switch (mpt_state(mpt)) {
	case SKUA_MPT_FREE:
		return le32_to_cpu(mpt->flags) & SKUA_MPT_FAST_REG;
	case SKUA_MPT_VALID:
		return (!len || va + (len - 1) >= va) && xlat_ok(dev, mpt);
	}
	return false;
}

bool mpt_check(struct skua_dev *dev, uint32_t index, const void *ctx)
{
	const struct skua_mpt *mpt = ctx;

	return le32_to_cpu(mpt->key) >> 8 == index && mpt_ok(dev, mpt);
}

/* --- access --- */

/* The entry of a key, pinned; NULL: there is none, or of another variant. */
static struct skua_mpt *mpt_get(struct skua_dev *dev, uint32_t key)
{
	struct skua_mpt *mpt;

	if (!obj_valid(dev, SKUA_ICM_MPT, key >> 8))
		return NULL;
	mpt = ctx_get(dev, SKUA_ICM_MPT, key >> 8);
	if (mpt && (le32_to_cpu(mpt->key) != key || mpt_state(mpt) != SKUA_MPT_VALID)) {
		ctx_put(dev, mpt);
		return NULL;
	}
	return mpt;
}

static enum skua_vendor check(const struct skua_mpt *mpt, const struct mr_who *who, uint64_t va,
			      uint64_t len)
{
	uint64_t start = le64_to_cpu(mpt->va);
	uint64_t size = le64_to_cpu(mpt->len);

	if (le32_to_cpu(mpt->pd) != who->pd)
		return SKUA_VENDOR_KEY_PD;
	if (who->access & ~le32_to_cpu(mpt->access))
		return SKUA_VENDOR_KEY_ACCESS;
	if (len > size || va < start || va - start > size - len)
		return SKUA_VENDOR_KEY_BOUNDS;
	return SKUA_VENDOR_NONE;
}

static bool is_reserved(const struct mr_who *who, uint32_t key)
{
	return key == SKUA_RESERVED_LKEY && !who->remote && who->reserved_lkey;
}

enum skua_vendor mr_check(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			  uint64_t va, uint64_t len)
{
	struct skua_mpt *mpt;
	enum skua_vendor err;

	if (!len)
		return SKUA_VENDOR_NONE;
	if (is_reserved(who, key))
		return va + (len - 1) >= va ? SKUA_VENDOR_NONE : SKUA_VENDOR_KEY_BOUNDS;
	mpt = mpt_get(dev, key);
	if (!mpt)
		return SKUA_VENDOR_KEY_INVALID;
	err = check(mpt, who, va, len);
	ctx_put(dev, mpt);
	return err;
}

/*
 * Bus address of the byte @pos of a region (counted from its first page's start)
 * and how many bytes follow there. False: no such page, or not for this use.
 */
static bool page_of(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t pos, bool write,
		    uint64_t *bus, uint64_t *room)
{
	uint32_t log = mpt_log_page(mpt);
	uint64_t page = 1ull << log;
	uint64_t entry;

	if (mpt_mode(mpt) == SKUA_XLAT_INLINE)
		entry = le64_to_cpu(mpt->page[pos >> log]);
	else if (mtt_get(dev, le64_to_cpu(mpt->xlat.base) + (pos >> log), &entry))
		return false;
	if (!(entry & SKUA_MTT_PRESENT) || (write && !(entry & SKUA_MTT_WRITE)) ||
	    (entry & SKUA_MTT_ADDR) % page)
		return false;
	*bus = (entry & SKUA_MTT_ADDR) + pos % page;
	*room = page - pos % page;
	return true;
}

/* The longest run of bus addresses at @pos, at most @len bytes: one copy's worth. */
static bool run_of(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t pos, uint32_t len,
		   bool write, uint64_t *bus, uint64_t *run)
{
	uint64_t next, room;

	if (mpt_mode(mpt) == SKUA_XLAT_CONTIG) {
		*bus = le64_to_cpu(mpt->xlat.base) + pos;
		*run = len;
		return true;
	}
	if (!page_of(dev, mpt, pos, write, bus, run))
		return false;
	while (*run < len && page_of(dev, mpt, pos + *run, write, &next, &room) &&
	       next == *bus + *run)
		*run += room;
	if (*run > len)
		*run = len;
	return true;
}

static enum skua_vendor copy(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t va,
			     uint8_t *buf, uint32_t len, bool write)
{
	uint64_t pos = va - le64_to_cpu(mpt->va) + le32_to_cpu(mpt->xlat.offset);
	uint64_t bus, run;

	if (le32_to_cpu(mpt->flags) & SKUA_MPT_NULL) {
		if (!write)
			memset(buf, 0, len);
		return SKUA_VENDOR_NONE;
	}
	if (le32_to_cpu(mpt->flags) & SKUA_MPT_DM) {
		/* The entry may have come back from ICM as another. */
		bus = le64_to_cpu(mpt->xlat.base) + pos;
		if (!dm_ok(dev, bus, len))
			return SKUA_VENDOR_KEY_DMA;
		if (write)
			dm_write(dev, bus, buf, len);
		else
			dm_read(dev, bus, buf, len);
		return SKUA_VENDOR_NONE;
	}
	while (len) {
		if (!run_of(dev, mpt, pos, len, write, &bus, &run) ||
		    (write ? dma_write(dev, bus, buf, run) : dma_read(dev, bus, buf, run)))
			return SKUA_VENDOR_KEY_DMA;
		pos += run;
		buf += run;
		len -= run;
	}
	return SKUA_VENDOR_NONE;
}

static enum skua_vendor access(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			       uint64_t va, void *buf, uint32_t len, bool write)
{
	struct skua_mpt *mpt;
	enum skua_vendor err;

	if (!len)
		return SKUA_VENDOR_NONE;
	if (is_reserved(who, key)) {
		err = write ? dma_write(dev, va, buf, len) : dma_read(dev, va, buf, len);
		return err ? SKUA_VENDOR_KEY_DMA : SKUA_VENDOR_NONE;
	}
	mpt = mpt_get(dev, key);
	if (!mpt)
		return SKUA_VENDOR_KEY_INVALID;
	err = check(mpt, who, va, len);
	if (err == SKUA_VENDOR_NONE)
		err = copy(dev, mpt, va, buf, len, write);
	ctx_put(dev, mpt);
	return err;
}

enum skua_vendor mr_read(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			 uint64_t va, void *buf, uint32_t len)
{
	return access(dev, who, key, va, buf, len, false);
}

enum skua_vendor mr_write(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			  uint64_t va, const void *buf, uint32_t len)
{
	return access(dev, who, key, va, (void *)(uintptr_t)buf, len, true);
}

/* --- commands --- */

int cmd_create_mpt(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_mpt *in = &((const struct skua_cmd_create_mpt_in *)cmd->in)->mpt;
	uint32_t index = le32_to_cpu(in->key) >> 8;
	struct skua_mpt *mpt;
	int err = cmd_vacant(dev, SKUA_ICM_MPT, index);

	if (err)
		return err;
	if (index < SKUA_RESERVED_KEYS)
		return SKUA_CMD_ST_BAD_INDEX;
	if (in->windows || !mpt_ok(dev, in))
		return SKUA_CMD_ST_BAD_PARAM;
	mpt = ctx_new(dev, SKUA_ICM_MPT, index);
	if (!mpt)
		return SKUA_CMD_ST_INTERNAL;
	*mpt = *in;
	obj_set(dev, SKUA_ICM_MPT, index, true);
	ctx_put(dev, mpt);
	return SKUA_CMD_ST_OK;
}

/* The entry of a command's key. Its variant may have been changed by work requests. */
static int key_object(struct skua_dev *dev, const struct cmd *cmd, uint32_t *index)
{
	int err = cmd_index(cmd, index);

	*index >>= 8;
	if (err)
		return err;
	return obj_valid(dev, SKUA_ICM_MPT, *index) ? SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_INDEX;
}

int cmd_destroy_mpt(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_mpt *mpt;
	uint32_t index;
	int err = key_object(dev, cmd, &index);

	if (err)
		return err;
	mpt = ctx_get(dev, SKUA_ICM_MPT, index);
	if (!mpt)
		return SKUA_CMD_ST_INTERNAL;
	if (mpt->windows) {
		err = SKUA_CMD_ST_BUSY;
	} else {
		obj_set(dev, SKUA_ICM_MPT, index, false);
		memset(mpt, 0, sizeof(*mpt));
		ctx_dirty(dev, mpt);
	}
	ctx_put(dev, mpt);
	return err;
}

int cmd_modify_mpt(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_mpt *in = &((const struct skua_cmd_create_mpt_in *)cmd->in)->mpt;
	uint32_t index = le32_to_cpu(in->key) >> 8;
	struct skua_mpt *mpt;
	int err = SKUA_CMD_ST_OK;

	if (!obj_valid(dev, SKUA_ICM_MPT, index))
		return SKUA_CMD_ST_BAD_INDEX;
	if (in->windows || mpt_state(in) != SKUA_MPT_VALID || !mpt_ok(dev, in))
		return SKUA_CMD_ST_BAD_PARAM;
	mpt = ctx_get(dev, SKUA_ICM_MPT, index);
	if (!mpt)
		return SKUA_CMD_ST_INTERNAL;
	if (mpt_state(mpt) != SKUA_MPT_VALID) {
		err = SKUA_CMD_ST_BAD_STATE;
	} else if (mpt->windows) {
		err = SKUA_CMD_ST_BUSY;
	} else {
		*mpt = *in;
		ctx_dirty(dev, mpt);
	}
	ctx_put(dev, mpt);
	return err;
}

int cmd_query_mpt(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_mpt_out *out = cmd->out;
	uint32_t index;
	int err = key_object(dev, cmd, &index);

	return err ? err : cmd_query_ctx(dev, SKUA_ICM_MPT, index, &out->mpt, sizeof(out->mpt));
}
