// SPDX-License-Identifier: GPL-2.0
/*
 * Keys changed by work requests: regions registered and invalidated, windows bound
 * and invalidated.
 *
 * The number of windows that are bound to a region is counted on the chip, as for any object
 * that others name (obj_refs()). The count in the MPT entry is a copy for those who query it.
 */
#include <string.h>

#include "mr.h"

#define REMOTE_RIGHTS	(SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ | \
			 SKUA_ACCESS_REMOTE_ATOMIC)
#define FLUSH_RIGHTS	(SKUA_ACCESS_FLUSH_GLOBAL | SKUA_ACCESS_FLUSH_PERSISTENT)

/* The entry at a key's index, of whatever state and variant, pinned. */
static struct skua_mpt *entry_get(struct skua_dev *dev, uint32_t key)
{
	if (!obj_valid(dev, SKUA_ICM_MPT, key >> 8))
		return NULL;
	return ctx_get(dev, SKUA_ICM_MPT, key >> 8);
}

static void set_state(struct skua_dev *dev, struct skua_mpt *mpt, uint32_t state)
{
	le32p_replace_bits(&mpt->flags, state, SKUA_MPT_STATE);
	ctx_dirty(dev, mpt);
}

/* --- windows --- */

/* One more or one less window is bound to a region. */
static void count_window(struct skua_dev *dev, uint32_t mr_key, int by)
{
	struct skua_mpt *mr = entry_get(dev, mr_key);

	if (!mr)
		return;
	if (by > 0 || obj_refs(dev, SKUA_ICM_MPT, mr_key >> 8))
		obj_ref(dev, SKUA_ICM_MPT, mr_key >> 8, by);
	mr->windows = cpu_to_le32(obj_refs(dev, SKUA_ICM_MPT, mr_key >> 8));
	ctx_dirty(dev, mr);
	ctx_put(dev, mr);
}

void mw_unbind(struct skua_dev *dev, struct skua_mpt *mw)
{
	if (mpt_type(mw) == SKUA_MPT_MR || mpt_state(mw) != SKUA_MPT_VALID)
		return;
	count_window(dev, le32_to_cpu(mw->parent), -1);
	mw->parent = 0;
	mw->qpn = 0;
	mw->va = 0;
	mw->len = 0;
	mw->access = 0;
	set_state(dev, mw, SKUA_MPT_FREE);
}

/* May this window be bound to the region? */
static enum skua_vendor bind_region_ok(const struct skua_mpt *mr, const struct mr_who *who,
				       const struct skua_wqe_bind *b)
{
	uint32_t access = le32_to_cpu(b->access), has = le32_to_cpu(mr->access);
	uint64_t start = le64_to_cpu(mr->va), size = le64_to_cpu(mr->len);
	uint64_t va = le64_to_cpu(b->va), len = le64_to_cpu(b->len);
	uint32_t need = SKUA_ACCESS_MW_BIND | (access & FLUSH_RIGHTS);

	if (access & (SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_ATOMIC))
		need |= SKUA_ACCESS_LOCAL_WRITE;
	if (le32_to_cpu(mr->key) != le32_to_cpu(b->mr_key))
		return SKUA_VENDOR_KEY_INVALID;
	if (mpt_type(mr) != SKUA_MPT_MR || mpt_state(mr) != SKUA_MPT_VALID || mpt_zero_based(mr))
		return SKUA_VENDOR_KEY_STATE;
	if (le32_to_cpu(mr->pd) != who->pd)
		return SKUA_VENDOR_KEY_PD;
	if (need & ~has)
		return SKUA_VENDOR_KEY_ACCESS;
	if (len > size || va < start || va - start > size - len)
		return SKUA_VENDOR_KEY_BOUNDS;
	return SKUA_VENDOR_NONE;
}

/* May the window be bound now, with these attributes? */
static enum skua_vendor bind_window_ok(const struct skua_mpt *mw, const struct mr_who *who,
				       const struct skua_wqe_bind *b)
{
	const uint32_t known = REMOTE_RIGHTS | FLUSH_RIGHTS | SKUA_ACCESS_ZERO_BASED |
			       SKUA_ACCESS_LOCAL_WRITE;

	if (mpt_type(mw) == SKUA_MPT_MR ||
	    (mpt_type(mw) == SKUA_MPT_MW2 && mpt_state(mw) != SKUA_MPT_FREE))
		return SKUA_VENDOR_KEY_STATE;
	if (le32_to_cpu(mw->pd) != who->pd)
		return SKUA_VENDOR_KEY_PD;
	if (le32_to_cpu(b->access) & ~known)
		return SKUA_VENDOR_KEY_ACCESS;
	if (!b->len && mpt_type(mw) == SKUA_MPT_MW2)
		return SKUA_VENDOR_KEY_BOUNDS;
	if (le32_to_cpu(b->new_key) >> 8 != le32_to_cpu(b->mw_key) >> 8)
		return SKUA_VENDOR_KEY_INVALID;
	return SKUA_VENDOR_NONE;
}

static void bind_to(struct skua_dev *dev, struct skua_mpt *mw, const struct mr_who *who,
		    const struct skua_wqe_bind *b)
{
	mw_unbind(dev, mw);
	mw->key = b->new_key;
	ctx_dirty(dev, mw);
	if (!b->len)
		return;
	mw->access = b->access & ~cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE);
	mw->va = b->va;
	mw->len = b->len;
	mw->parent = b->mr_key;
	mw->qpn = cpu_to_le32(mpt_type(mw) == SKUA_MPT_MW2 ? who->qpn : 0);
	set_state(dev, mw, SKUA_MPT_VALID);
	count_window(dev, le32_to_cpu(b->mr_key), 1);
}

enum skua_vendor key_bind(struct skua_dev *dev, const struct mr_who *who,
			  const struct skua_wqe_bind *bind)
{
	struct skua_mpt *mw = entry_get(dev, le32_to_cpu(bind->mw_key)), *mr;
	enum skua_vendor err;

	if (!mw)
		return SKUA_VENDOR_KEY_INVALID;
	err = bind_window_ok(mw, who, bind);
	if (!err && bind->len) {
		mr = entry_get(dev, le32_to_cpu(bind->mr_key));
		err = mr ? bind_region_ok(mr, who, bind) : SKUA_VENDOR_KEY_INVALID;
		if (mr)
			ctx_put(dev, mr);
	}
	if (!err)
		bind_to(dev, mw, who, bind);
	ctx_put(dev, mw);
	return err;
}

/* --- invalidation --- */

static enum skua_vendor invalidate_ok(const struct skua_dev *dev, const struct skua_mpt *mpt,
				      const struct mr_who *who, uint32_t key)
{
	bool valid = mpt_state(mpt) == SKUA_MPT_VALID;

	if (le32_to_cpu(mpt->key) != key || (who->remote && !valid))
		return SKUA_VENDOR_KEY_INVALID;
	if (le32_to_cpu(mpt->pd) != who->pd)
		return SKUA_VENDOR_KEY_PD;
	switch (mpt_type(mpt)) {
	case SKUA_MPT_MR:
		if (!mpt_is(mpt, SKUA_MPT_FAST_REG))
			return SKUA_VENDOR_KEY_STATE;
		/* The peer can invalidate only keys that allow remote access. */
		if (who->remote && !(le32_to_cpu(mpt->access) & REMOTE_RIGHTS))
			return SKUA_VENDOR_KEY_ACCESS;
		return obj_refs(dev, SKUA_ICM_MPT, key >> 8) ? SKUA_VENDOR_KEY_BOUND :
							       SKUA_VENDOR_NONE;
	case SKUA_MPT_MW2:
		return valid && le32_to_cpu(mpt->qpn) != who->qpn ? SKUA_VENDOR_KEY_QP :
								    SKUA_VENDOR_NONE;
	default:
		return SKUA_VENDOR_KEY_STATE;
	}
}

enum skua_vendor key_invalidate(struct skua_dev *dev, const struct mr_who *who, uint32_t key)
{
	struct skua_mpt *mpt = entry_get(dev, key);
	enum skua_vendor err;

	if (!mpt)
		return SKUA_VENDOR_KEY_INVALID;
	engine_settle(dev);
	err = invalidate_ok(dev, mpt, who, key);
	if (!err && mpt_type(mpt) == SKUA_MPT_MR)
		set_state(dev, mpt, SKUA_MPT_FREE);
	else if (!err)
		mw_unbind(dev, mpt);
	ctx_put(dev, mpt);
	return err;
}

/* --- fast registration --- */

enum skua_vendor key_pages(struct skua_dev *dev, uint64_t index, uint64_t list, uint32_t npages,
			   uint32_t log_page)
{
	uint64_t mask = (1ull << log_page) - 1;
	__le64 page[SKUA_ICM_PAGE_SIZE / sizeof(__le64)];
	uint32_t n;

	for (; npages; npages -= n) {
		n = npages < sizeof(page) / sizeof(page[0]) ? npages :
							      sizeof(page) / sizeof(page[0]);
		if (dma_read(dev, TLP_MTT, list, page, n * sizeof(page[0])))
			return SKUA_VENDOR_KEY_DMA;
		for (uint32_t i = 0; i < n; i++) {
			if (le64_to_cpu(page[i]) & mask)
				return SKUA_VENDOR_KEY_PAGES;
			page[i] |= cpu_to_le64(SKUA_MTT_PRESENT | SKUA_MTT_WRITE);
		}
		if (mtt_put(dev, index, page, n))
			return SKUA_VENDOR_KEY_PAGES;
		list += n * sizeof(page[0]);
		index += n;
	}
	return SKUA_VENDOR_NONE;
}

static enum skua_vendor register_ok(const struct skua_mpt *mpt, const struct mr_who *who,
				    const struct skua_wqe_reg *r)
{
	if (mpt_type(mpt) != SKUA_MPT_MR || !mpt_is(mpt, SKUA_MPT_FAST_REG) ||
	    mpt_state(mpt) != SKUA_MPT_FREE)
		return SKUA_VENDOR_KEY_STATE;
	if (le32_to_cpu(mpt->pd) != who->pd)
		return SKUA_VENDOR_KEY_PD;
	if (le32_to_cpu(r->access) & ~SKUA_ACCESS_ALL)
		return SKUA_VENDOR_KEY_ACCESS;
	if (le32_to_cpu(r->npages) > le32_to_cpu(mpt->npages))
		return SKUA_VENDOR_KEY_PAGES;
	return SKUA_VENDOR_NONE;
}

/* Build the new entry. False: the request is invalid. */
static bool register_entry(const struct skua_dev *dev, struct skua_mpt *mpt,
			   const struct skua_wqe_reg *r)
{
	uint64_t npages = le32_to_cpu(r->npages), offset = le64_to_cpu(r->offset);
	uint32_t log = le32_to_cpu(r->log_page);
	uint64_t len;

	mpt->key = r->key;
	le32p_replace_bits(&mpt->flags, SKUA_MPT_VALID, SKUA_MPT_STATE);
	mpt->access = r->access;
	mpt->va = r->va;
	mpt->len = r->len;
	mpt->xlat.offset = cpu_to_le32((uint32_t)offset);
	mpt->xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE) |
			 le32_encode_bits(log, SKUA_XLAT_LOG_PAGE);
	if (log < MODEL_LOG_PAGE_MIN || log > MODEL_LOG_PAGE_MAX || offset >> log ||
	    !mpt_ok(dev, mpt))
		return false;
	/* The pages of the list, which may be fewer than the region's. */
	len = mpt_is(mpt, SKUA_MPT_PI) ? pi_data_len(mpt) : le64_to_cpu(mpt->len);
	return len <= npages << log && offset <= (npages << log) - len;
}

enum skua_vendor key_register(struct skua_dev *dev, const struct mr_who *who,
			      const struct skua_wqe_reg *reg)
{
	struct skua_mpt *mpt = entry_get(dev, le32_to_cpu(reg->key));
	struct skua_pi_desc desc = { 0 };
	enum skua_vendor err;
	struct skua_mpt next;

	if (!mpt)
		return SKUA_VENDOR_KEY_INVALID;
	engine_settle(dev);
	err = register_ok(mpt, who, reg);
	next = *mpt;
	if (!err && mpt_is(mpt, SKUA_MPT_PI))
		err = pi_describe(dev, &next, &desc);
	if (!err && !register_entry(dev, &next, reg))
		err = SKUA_VENDOR_KEY_PAGES;
	if (!err)
		err = key_pages(dev, le64_to_cpu(next.xlat.base), le64_to_cpu(reg->page_list),
				le32_to_cpu(reg->npages), mpt_log_page(&next));
	if (!err && mpt_is(mpt, SKUA_MPT_PI))
		err = pi_register(dev, &next, &desc);
	if (!err) {
		*mpt = next;
		ctx_dirty(dev, mpt);
	}
	ctx_put(dev, mpt);
	return err;
}
