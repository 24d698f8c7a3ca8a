// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: check of access rights, and translation. Every access of user memory goes through here.
 * It is checked completely each time, and copied by runs of adjacent bus addresses.
 */
#include <string.h>

#include "cmd.h"
#include "icm.h"
#include "mr.h"
#include "roce/pkt.h"

/* Does the page list exist and cover the region? */
static bool pages_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint64_t num = icm_num(dev, SKUA_ICM_MTT);
	uint64_t base = le64_to_cpu(mpt->xlat.base);
	uint64_t offset = le32_to_cpu(mpt->xlat.offset);
	uint64_t npages = le32_to_cpu(mpt->npages);
	uint64_t len = mpt_is(mpt, SKUA_MPT_PI) ? pi_data_len(mpt) : le64_to_cpu(mpt->len);
	uint32_t log = mpt_log_page(mpt);
	uint32_t max = mpt_mode(mpt) == SKUA_XLAT_DIR ? MODEL_LOG_DIR_MAX : MODEL_LOG_PAGE_MAX;

	if (log < MODEL_LOG_PAGE_MIN || log > max || offset >> log || npages > UINT64_MAX >> log)
		return false;
	if (len > npages << log || offset > (npages << log) - len)
		return false;
	if (mpt_mode(mpt) == SKUA_XLAT_INLINE)
		return npages <= SKUA_MPT_INLINE_PAGES && !base;
	return base <= num && npages <= num - base;
}

/* The same for the page lists of an on-demand region. */
static bool odp_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint32_t sub = mpt_log_sub(mpt), mid = mpt_log_mid(mpt), dir = mpt_log_page(mpt);

	if (mpt_is(mpt, SKUA_MPT_NULL | SKUA_MPT_DM) || !pages_ok(dev, mpt))
		return false;
	if (mpt_mode(mpt) == SKUA_XLAT_DIR)
		return sub >= MODEL_LOG_PAGE_MIN && sub <= MODEL_LOG_PAGE_MAX &&
		       (mid ? sub <= mid && mid <= dir : sub <= dir);
	return mpt_mode(mpt) == SKUA_XLAT_MTT && !sub && !mid;
}

/* The fields that say where a region lies. */
static bool xlat_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint64_t len = le64_to_cpu(mpt->len);
	uint64_t base = le64_to_cpu(mpt->xlat.base);
	uint64_t start = base + le32_to_cpu(mpt->xlat.offset);
	uint32_t known = SKUA_XLAT_MODE | SKUA_XLAT_LOG_PAGE |
			 (mpt_is(mpt, SKUA_MPT_ODP) ? SKUA_XLAT_LOG_SUB | SKUA_XLAT_LOG_MID : 0);

	if (le32_to_cpu(mpt->xlat.mode) & ~known)
		return false;
	if (mpt_is(mpt, SKUA_MPT_PI))
		return mpt_mode(mpt) == SKUA_XLAT_MTT && pi_ok(dev, mpt) && pages_ok(dev, mpt);
	if (mpt_mode(mpt) != SKUA_XLAT_INLINE && !all_zero(mpt->page, sizeof(mpt->page)))
		return false;
	if (mpt_is(mpt, SKUA_MPT_ODP))
		return odp_ok(dev, mpt);
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

/* Check a region for REG_MR work requests: the place of its page list. */
static bool free_mr_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint64_t num = icm_num(dev, SKUA_ICM_MTT);
	uint64_t base = le64_to_cpu(mpt->xlat.base);
	uint32_t npages = le32_to_cpu(mpt->npages);

	return mpt_is(mpt, SKUA_MPT_FAST_REG) &&
	       !mpt_is(mpt, SKUA_MPT_NULL | SKUA_MPT_DM | SKUA_MPT_ODP) &&
	       mpt_mode(mpt) == SKUA_XLAT_MTT && base % SKUA_MTT_GROUP == 0 && base <= num &&
	       npages <= num - base && npages <= MODEL_REG_PAGES &&
	       (!mpt_is(mpt, SKUA_MPT_PI) || pi_free_ok(dev, mpt));
}

static bool mr_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint64_t va = le64_to_cpu(mpt->va);
	uint64_t len = le64_to_cpu(mpt->len);

	if (mpt_state(mpt) == SKUA_MPT_FREE)
		return free_mr_ok(dev, mpt);
	return (!len || va + (len - 1) >= va) && xlat_ok(dev, mpt);
}

static bool mw_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	return dev_has(dev, SKUA_CAP_MW) && !mpt_is(mpt, ~(SKUA_MPT_STATE | SKUA_MPT_TYPE)) &&
	       !mpt->npages && all_zero(&mpt->xlat, sizeof(mpt->xlat)) &&
	       all_zero(mpt->page, sizeof(mpt->page));
}

bool mpt_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	uint32_t flags = SKUA_MPT_STATE | SKUA_MPT_TYPE;

	flags |= dev_has(dev, SKUA_CAP_FAST_REG) ? SKUA_MPT_FAST_REG : 0;
	flags |= dev_has(dev, SKUA_CAP_NULL_MR) ? SKUA_MPT_NULL : 0;
	flags |= dev_has(dev, SKUA_CAP_DM) ? SKUA_MPT_DM : 0;
	flags |= dev_has(dev, SKUA_CAP_ODP) ? SKUA_MPT_ODP : 0;
	flags |= dev_has(dev, SKUA_CAP_SCATTER_CQE) ? SKUA_MPT_OWN_VA : 0;
	flags |= dev_has(dev, SKUA_CAP_PI) ? SKUA_MPT_PI : 0;
	if (mpt_is(mpt, SKUA_MPT_PI) && (!mpt_is(mpt, SKUA_MPT_FAST_REG) ||
	    mpt_is(mpt, SKUA_MPT_NULL | SKUA_MPT_DM | SKUA_MPT_ODP)))
		return false;
	if (mpt_is(mpt, SKUA_MPT_OWN_VA) &&
	    mpt_is(mpt, SKUA_MPT_FAST_REG | SKUA_MPT_NULL | SKUA_MPT_DM | SKUA_MPT_ODP))
		return false;
	if (mpt_is(mpt, ~flags) || le32_to_cpu(mpt->access) & ~SKUA_ACCESS_ALL ||
	    (mpt_state(mpt) != SKUA_MPT_FREE && mpt_state(mpt) != SKUA_MPT_VALID))
		return false;
	switch (mpt_type(mpt)) {
	case SKUA_MPT_MR:
		return mr_ok(dev, mpt);
	case SKUA_MPT_MW1:
	case SKUA_MPT_MW2:
		return mw_ok(dev, mpt);
	}
	return false;
}

/* Nothing is registered: no page in the entry, and none of an integrity region's attributes. */
static bool pages_zero(const struct skua_mpt *mpt)
{
	const size_t at = mpt_is(mpt, SKUA_MPT_PI) ? offsetof(struct skua_mpt_pi, attr) : 0;

	return all_zero((const uint8_t *)mpt->page + at, sizeof(mpt->page) - at);
}

/* Check an entry from a command: state fields are zero, and all others too if it is FREE. */
static bool mpt_new_ok(const struct skua_dev *dev, const struct skua_mpt *mpt)
{
	if (mpt->windows || mpt->parent || mpt->qpn || !mpt_ok(dev, mpt))
		return false;
	if (mpt_state(mpt) == SKUA_MPT_VALID)
		return mpt_type(mpt) == SKUA_MPT_MR && !mpt_is(mpt, SKUA_MPT_FAST_REG);
	return !mpt->va && !mpt->len && !mpt->access && !mpt->xlat.offset &&
	       !mpt_log_page(mpt) && pages_zero(mpt) &&
	       !(le32_to_cpu(mpt->xlat.mode) & ~SKUA_XLAT_MODE);
}

bool mpt_check(struct skua_dev *dev, uint32_t index, const void *ctx)
{
	const struct skua_mpt *mpt = ctx;

	return le32_to_cpu(mpt->key) >> 8 == index && mpt_ok(dev, mpt);
}

/* --- access --- */

/* The MPT entry of a key, pinned. NULL: there is none, or it has another variant. */
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

/* Does [@va, @va + @len) lie within @size bytes from @start on? */
static bool inside(uint64_t start, uint64_t size, uint64_t va, uint64_t len)
{
	return len <= size && va >= start && va - start <= size - len;
}

static enum skua_vendor check(const struct skua_mpt *mpt, const struct mr_who *who, uint64_t va,
			      uint64_t len)
{
	bool window = mpt_type(mpt) != SKUA_MPT_MR;
	uint64_t start = window && mpt_zero_based(mpt) ? 0 : le64_to_cpu(mpt->va);

	/* Windows are for remote access only: they have no L_Key. */
	if (window && !who->remote)
		return SKUA_VENDOR_KEY_INVALID;
	if (le32_to_cpu(mpt->pd) != who->pd)
		return SKUA_VENDOR_KEY_PD;
	if (mpt_type(mpt) == SKUA_MPT_MW2 && le32_to_cpu(mpt->qpn) != who->qpn)
		return SKUA_VENDOR_KEY_QP;
	if (who->access & ~le32_to_cpu(mpt->access))
		return SKUA_VENDOR_KEY_ACCESS;
	return inside(start, le64_to_cpu(mpt->len), va, len) ? SKUA_VENDOR_NONE :
							       SKUA_VENDOR_KEY_BOUNDS;
}

/*
 * The region that a window is bound to. The region cannot change while it has windows, but its
 * context may have been read from ICM, which the guest can write: check it again.
 */
static enum skua_vendor through(struct skua_dev *dev, struct skua_mpt **mpt, uint64_t *va,
				uint64_t len)
{
	struct skua_mpt *window = *mpt, *mr = mpt_get(dev, le32_to_cpu(window->parent));

	if (mpt_zero_based(window))
		*va += le64_to_cpu(window->va);
	ctx_put(dev, window);
	*mpt = mr;
	if (!mr)
		return SKUA_VENDOR_KEY_INVALID;
	if (mpt_type(mr) == SKUA_MPT_MR &&
	    inside(le64_to_cpu(mr->va), le64_to_cpu(mr->len), *va, len))
		return SKUA_VENDOR_NONE;
	ctx_put(dev, mr);
	return SKUA_VENDOR_KEY_BOUNDS;
}

/*
 * Check an access by key. Returns the region, pinned, and the address of the access in it.
 */
static enum skua_vendor mr_get(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			       uint64_t *va, uint64_t len, struct skua_mpt **out)
{
	struct skua_mpt *mpt = mpt_get(dev, key);
	enum skua_vendor err;

	if (!mpt)
		return SKUA_VENDOR_KEY_INVALID;
	err = check(mpt, who, *va, len);
	if (err) {
		ctx_put(dev, mpt);
		return err;
	}
	if (mpt_type(mpt) != SKUA_MPT_MR)
		err = through(dev, &mpt, va, len);
	*out = mpt;
	return err;
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
	err = mr_get(dev, who, key, &va, len, &mpt);
	if (!err)
		ctx_put(dev, mpt);
	return err;
}

enum skua_vendor mr_check_own(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			      uint64_t va, uint64_t len, bool *own)
{
	struct skua_mpt *mpt;
	enum skua_vendor err;

	if (!len)
		return SKUA_VENDOR_NONE;
	if (is_reserved(who, key)) {
		*own = false;
		return mr_check(dev, who, key, va, len);
	}
	err = mr_get(dev, who, key, &va, len, &mpt);
	if (err)
		return err;
	if (!mpt_is(mpt, SKUA_MPT_OWN_VA))
		*own = false;
	ctx_put(dev, mpt);
	return SKUA_VENDOR_NONE;
}

enum skua_vendor mr_probe(struct skua_dev *dev, const struct mr_who *who,
			  const struct mr_part *part)
{
	struct skua_mpt *mpt;
	enum skua_vendor err;
	uint64_t va = part->va;

	if (!part->len)
		return SKUA_VENDOR_NONE;
	err = mr_get(dev, who, part->key, &va, part->len, &mpt);
	if (err)
		return err;
	if (mpt_is(mpt, SKUA_MPT_ODP))
		err = odp_probe(dev, who, mpt, va + part->off, part->bytes);
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

enum skua_vendor mr_copy(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t va,
			 uint8_t *buf, uint32_t len, bool write)
{
	uint64_t pos = va - le64_to_cpu(mpt->va) + le32_to_cpu(mpt->xlat.offset);
	uint64_t bus, run;

	while (len) {
		if (!run_of(dev, mpt, pos, len, write, &bus, &run) ||
		    (write ? dma_write(dev, TLP_PAYLOAD, bus, buf, run) :
			     dma_read(dev, TLP_PAYLOAD, bus, buf, run)))
			return SKUA_VENDOR_KEY_DMA;
		pos += run;
		buf += run;
		len -= run;
	}
	return SKUA_VENDOR_NONE;
}

static enum skua_vendor copy(struct skua_dev *dev, const struct mr_who *who,
			     const struct skua_mpt *mpt, uint64_t va, uint8_t *buf, uint32_t len,
			     bool write)
{
	uint64_t bus;

	if (mpt_is(mpt, SKUA_MPT_ODP))
		return odp_copy(dev, who, mpt, va, buf, len, write);
	if (mpt_is(mpt, SKUA_MPT_PI))
		return pi_copy(dev, who, mpt, va, buf, len, write);
	if (le32_to_cpu(mpt->flags) & SKUA_MPT_NULL) {
		if (!write)
			memset(buf, 0, len);
		return SKUA_VENDOR_NONE;
	}
	if (le32_to_cpu(mpt->flags) & SKUA_MPT_DM) {
		bus = le64_to_cpu(mpt->xlat.base) + va - le64_to_cpu(mpt->va) +
		      le32_to_cpu(mpt->xlat.offset);
		if (write)
			dm_write(dev, bus, buf, len);
		else
			dm_read(dev, bus, buf, len);
		return SKUA_VENDOR_NONE;
	}
	return mr_copy(dev, mpt, va, buf, len, write);
}

static enum skua_vendor access(struct skua_dev *dev, const struct mr_who *who,
			       const struct mr_part *part, void *buf, bool write)
{
	struct skua_mpt *mpt;
	enum skua_vendor err;
	uint64_t va = part->va;

	if (!part->len)
		return SKUA_VENDOR_NONE;
	if (is_reserved(who, part->key)) {
		err = write ? dma_write(dev, TLP_PAYLOAD, va + part->off, buf, part->bytes) :
			      dma_read(dev, TLP_PAYLOAD, va + part->off, buf, part->bytes);
		return err ? SKUA_VENDOR_KEY_DMA : SKUA_VENDOR_NONE;
	}
	err = mr_get(dev, who, part->key, &va, part->len, &mpt);
	if (err)
		return err;
	err = copy(dev, who, mpt, va + part->off, buf, part->bytes, write);
	ctx_put(dev, mpt);
	return err;
}

enum skua_vendor mr_read(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			 uint64_t va, void *buf, uint32_t len)
{
	const struct mr_part all = { .key = key, .va = va, .len = len, .bytes = len };

	return access(dev, who, &all, buf, false);
}

enum skua_vendor mr_write(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			  uint64_t va, const void *buf, uint32_t len)
{
	const struct mr_part all = { .key = key, .va = va, .len = len, .bytes = len };

	return access(dev, who, &all, (void *)(uintptr_t)buf, true);
}

enum skua_vendor mr_write_part(struct skua_dev *dev, const struct mr_who *who,
			       const struct mr_part *part, const void *buf)
{
	return access(dev, who, part, (void *)(uintptr_t)buf, true);
}

/* Append a piece to the train's list, or extend the last one. False: the list is full. */
static bool add_piece(struct skua_train *t, const uint8_t *at, uint64_t bus, uint32_t len,
		      bool begin)
{
	struct skua_piece *p = &t->piece[t->num];

	if (!begin && p[-1].at + p[-1].len == at && p[-1].bus + p[-1].len == bus) {
		p[-1].len += len;
		return true;
	}
	if (t->num == SKUA_TRAIN_PIECES)
		return false;
	*p = (struct skua_piece){ .at = at, .bus = bus, .len = len };
	t->num++;
	return true;
}

uint32_t mr_pieces(struct skua_dev *dev, const struct mr_who *who, uint32_t key, uint64_t va,
		   uint32_t len, struct skua_train *t)
{
	uint64_t bus = va, run = len, pos = 0;
	struct skua_mpt *mpt = NULL;
	const uint8_t *at;
	uint32_t got = 0;

	if (!is_reserved(who, key)) {
		if (mr_get(dev, who, key, &va, len, &mpt))
			return 0;
		pos = va - le64_to_cpu(mpt->va) + le32_to_cpu(mpt->xlat.offset);
	}
	while (got < len && !(mpt && mpt_is(mpt, SKUA_MPT_ODP | SKUA_MPT_NULL | SKUA_MPT_DM |
						 SKUA_MPT_PI))) {
		if (mpt && !run_of(dev, mpt, pos + got, len - got, false, &bus, &run))
			break;
		at = dma_map(dev, bus, run);
		if (!at || !add_piece(t, at, bus, (uint32_t)run, !got))
			break;
		got += run;
	}
	if (mpt)
		ctx_put(dev, mpt);
	return got;
}

enum skua_vendor mr_write_train(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
				uint64_t va, const struct skua_train *t, uint32_t off,
				uint32_t len)
{
	enum skua_vendor err = SKUA_VENDOR_NONE;
	struct skua_mpt *mpt;
	uint64_t pos, bus, run;

	if (is_reserved(who, key))
		return dma_write_train(dev, va, t, off, len) ? SKUA_VENDOR_KEY_DMA :
							       SKUA_VENDOR_NONE;
	err = mr_get(dev, who, key, &va, len, &mpt);
	if (err)
		return err;
	pos = va - le64_to_cpu(mpt->va) + le32_to_cpu(mpt->xlat.offset);
	if (mpt_is(mpt, SKUA_MPT_ODP | SKUA_MPT_NULL | SKUA_MPT_DM | SKUA_MPT_PI))
		err = SKUA_VENDOR_MISS;
	for (; len && !err; pos += run, off += run, len -= run) {
		if (!run_of(dev, mpt, pos, len, true, &bus, &run) ||
		    dma_write_train(dev, bus, t, off, (uint32_t)run)) {
			err = SKUA_VENDOR_KEY_DMA;
			break;
		}
	}
	ctx_put(dev, mpt);
	return err;
}

enum skua_vendor mr_atomic(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			   uint64_t va, uint64_t (*change)(uint64_t val, const void *arg),
			   const void *arg, uint64_t *old)
{
	struct skua_mpt *mpt;
	enum skua_vendor err;
	__le64 val, new;

	err = mr_get(dev, who, key, &va, sizeof(val), &mpt);
	if (err)
		return err;
	if (mpt_is(mpt, SKUA_MPT_ODP)) {
		err = odp_change(dev, who, mpt, va, change, arg, old);
		ctx_put(dev, mpt);
		return err;
	}
	err = copy(dev, who, mpt, va, (uint8_t *)&val, sizeof(val), false);
	if (!err) {
		*old = le64_to_cpu(val);
		new = cpu_to_le64(change(*old, arg));
		if (new != val)
			err = copy(dev, who, mpt, va, (uint8_t *)&new, sizeof(new), true);
	}
	ctx_put(dev, mpt);
	return err;
}

/* As on PCI Express, a read is answered after all earlier writes are visible. */
enum skua_vendor mr_flush(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			  uint64_t va, uint64_t len, bool whole)
{
	struct skua_mpt *mpt;
	enum skua_vendor err;
	uint8_t byte;

	if (whole) {
		mpt = mpt_get(dev, key);
		if (!mpt)
			return SKUA_VENDOR_KEY_INVALID;
		va = mpt_type(mpt) != SKUA_MPT_MR && mpt_zero_based(mpt) ? 0 :
									   le64_to_cpu(mpt->va);
		len = le64_to_cpu(mpt->len);
		ctx_put(dev, mpt);
	} else if (!len) {
		return SKUA_VENDOR_NONE;
	}
	err = mr_get(dev, who, key, &va, len, &mpt);
	if (err)
		return err;
	if (len && mpt_is(mpt, SKUA_MPT_ODP))
		err = odp_flush(dev, mpt, va);
	else if (len)
		err = copy(dev, who, mpt, va, &byte, sizeof(byte), false);
	ctx_put(dev, mpt);
	return err;
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
	if (!mpt_new_ok(dev, in))
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
	if (obj_refs(dev, SKUA_ICM_MPT, index)) {
		err = SKUA_CMD_ST_BUSY;
	} else {
		mw_unbind(dev, mpt);
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
	if (mpt_state(in) != SKUA_MPT_VALID || !mpt_new_ok(dev, in))
		return SKUA_CMD_ST_BAD_PARAM;
	mpt = ctx_get(dev, SKUA_ICM_MPT, index);
	if (!mpt)
		return SKUA_CMD_ST_INTERNAL;
	if (mpt_state(mpt) != SKUA_MPT_VALID || mpt_type(mpt) != SKUA_MPT_MR ||
	    mpt_is(mpt, SKUA_MPT_FAST_REG)) {
		err = SKUA_CMD_ST_BAD_STATE;
	} else if (obj_refs(dev, SKUA_ICM_MPT, index)) {
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
