/* SPDX-License-Identifier: GPL-2.0 */
/* What mr.c (access, commands) and key.c (work requests on keys) share. */
#ifndef SKUA_MODEL_MR_H
#define SKUA_MODEL_MR_H

#include "core.h"

static inline uint32_t mpt_state(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->flags, SKUA_MPT_STATE);
}

static inline uint32_t mpt_type(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->flags, SKUA_MPT_TYPE);
}

static inline bool mpt_is(const struct skua_mpt *mpt, uint32_t flags)
{
	return le32_to_cpu(mpt->flags) & flags;
}

static inline bool mpt_zero_based(const struct skua_mpt *mpt)
{
	return le32_to_cpu(mpt->access) & SKUA_ACCESS_ZERO_BASED;
}

static inline uint32_t mpt_mode(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->xlat.mode, SKUA_XLAT_MODE);
}

static inline uint32_t mpt_log_page(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->xlat.mode, SKUA_XLAT_LOG_PAGE);
}

/* XLAT_DIR: of the lists' pages. */
static inline uint32_t mpt_log_sub(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->xlat.mode, SKUA_XLAT_LOG_SUB);
}

/* XLAT_DIR: what an entry of a directory of the second level covers, 0: there is none. */
static inline uint32_t mpt_log_mid(const struct skua_mpt *mpt)
{
	return le32_get_bits(mpt->xlat.mode, SKUA_XLAT_LOG_MID);
}

/* Is the entry valid, whatever its state? */
bool mpt_ok(const struct skua_dev *dev, const struct skua_mpt *mpt);

/* Unbind a window from its region, if it is bound to one. */
void mw_unbind(struct skua_dev *dev, struct skua_mpt *mw);

/*
 * odp.c: access of on-demand regions, after the check of the key. SKUA_VENDOR_MISS or KEY_FAULT:
 * a page is missing, and nothing was done.
 */
enum skua_vendor odp_copy(struct skua_dev *dev, const struct mr_who *who,
			  const struct skua_mpt *mpt, uint64_t va, uint8_t *buf, uint32_t len,
			  bool write);
enum skua_vendor odp_change(struct skua_dev *dev, const struct mr_who *who,
			    const struct skua_mpt *mpt, uint64_t va,
			    uint64_t (*change)(uint64_t val, const void *arg), const void *arg,
			    uint64_t *old);
enum skua_vendor odp_probe(struct skua_dev *dev, const struct mr_who *who,
			   const struct skua_mpt *mpt, uint64_t va, uint64_t len);
enum skua_vendor odp_flush(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t va);

/* mr.c: copy by the region's page list, after the check of the key; @va as the entry has it. */
enum skua_vendor mr_copy(struct skua_dev *dev, const struct skua_mpt *mpt, uint64_t va,
			 uint8_t *buf, uint32_t len, bool write);

/* key.c: copy a page list into the MTT entries from @index on. */
enum skua_vendor key_pages(struct skua_dev *dev, uint64_t index, uint64_t list, uint32_t npages,
			   uint32_t log_page);

/* --- pi.c: integrity regions --- */

/* A valid region's fields in @pi; bytes of its blocks, without tuples. */
bool pi_ok(const struct skua_dev *dev, const struct skua_mpt *mpt);
uint64_t pi_data_len(const struct skua_mpt *mpt);
/* The same of a region to be registered: what CREATE_MPT gives. */
bool pi_free_ok(const struct skua_dev *dev, const struct skua_mpt *mpt);
/* REG_MR: read the descriptor into the new entry; copy its page list and clear the status. */
enum skua_vendor pi_describe(struct skua_dev *dev, struct skua_mpt *mpt, struct skua_pi_desc *d);
enum skua_vendor pi_register(struct skua_dev *dev, const struct skua_mpt *mpt,
			     const struct skua_pi_desc *d);
/* Access, after the check of the key. */
enum skua_vendor pi_copy(struct skua_dev *dev, const struct mr_who *who,
			 const struct skua_mpt *mpt, uint64_t va, uint8_t *buf, uint32_t len,
			 bool write);

#endif /* SKUA_MODEL_MR_H */
