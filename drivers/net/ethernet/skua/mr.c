// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and MPT entries of memory regions and windows.
 */
#include <linux/random.h>

#include "skua.h"
#include "trace.h"

/*
 * Key indices are drawn from a range of at least so many, or so many times the number of
 * keys in use: large enough that most guesses of a peer miss, small enough that the memory
 * for contexts stays in proportion.
 */
#define SKUA_KEY_RANGE_MIN	4096U
#define SKUA_KEY_RANGE_PER_KEY	4
/* Attempts to draw a free index; each fails with a probability of about 1/4. */
#define SKUA_KEY_DRAWS		32

/*
 * Draw a random index, so that other keys cannot be derived from a known one. The range
 * starts at a random place of the table and wraps around at its end.
 */
static int skua_key_alloc(struct skua_dev *dev, u32 *index)
{
	u32 max = dev->limits.max_mr, num = atomic_inc_return(&dev->num_keys);
	u32 range = max;
	int i, err;

	if (!max) {
		atomic_dec(&dev->num_keys);
		return -ENOSPC;
	}
	if (num <= max / SKUA_KEY_RANGE_PER_KEY)
		range = clamp(num * SKUA_KEY_RANGE_PER_KEY, min(SKUA_KEY_RANGE_MIN, max), max);
	for (i = 0; i < SKUA_KEY_DRAWS; i++) {
		*index = 1 + (dev->key_base + get_random_u32_below(range)) % max;
		err = xa_insert(&dev->keys, *index, xa_mk_value(0), GFP_KERNEL_ACCOUNT);
		if (err != -EBUSY)
			break;
	}
	if (err == -EBUSY)
		err = xa_alloc(&dev->keys, index, xa_mk_value(0), XA_LIMIT(1, max),
			       GFP_KERNEL_ACCOUNT);
	if (!err)
		return 0;
	atomic_dec(&dev->num_keys);
	return err == -EBUSY ? -ENOSPC : err;
}

static void skua_key_free(struct skua_dev *dev, u32 index)
{
	xa_erase(&dev->keys, index);
	atomic_dec(&dev->num_keys);
}

/**
 * skua_mr_reserve() - allocate a key and back its MPT entry with memory
 * @dev: the function
 * @mr: filled in
 *
 * The key is not valid in the device before skua_mr_enable().
 *
 * Return: 0, -ENOSPC, or another negative errno.
 */
int skua_mr_reserve(struct skua_dev *dev, struct skua_mr *mr)
{
	u32 index;
	int err;

	err = skua_key_alloc(dev, &index);
	if (err)
		return err;
	err = skua_icm_get(dev, SKUA_ICM_MPT, index);
	if (err) {
		skua_key_free(dev, index);
		return err;
	}
	mr->key = u32_encode_bits(index, SKUA_KEY_INDEX) |
		  u32_encode_bits(get_random_u8(), SKUA_KEY_VARIANT);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mr_reserve, "SKUA");

/**
 * skua_mr_unreserve() - undo skua_mr_reserve()
 * @dev: the function
 * @mr: a key without an MPT entry
 */
void skua_mr_unreserve(struct skua_dev *dev, const struct skua_mr *mr)
{
	u32 index = u32_get_bits(mr->key, SKUA_KEY_INDEX);

	skua_icm_put(dev, SKUA_ICM_MPT, index);
	skua_key_free(dev, index);
}
EXPORT_SYMBOL_NS_GPL(skua_mr_unreserve, "SKUA");

/**
 * skua_mr_enable() - create the MPT entry of a reserved key
 * @dev: the function
 * @mr: the key. It gets another variant, so that the key of an earlier use is not valid.
 * @mpt: everything but the key
 *
 * Return: 0, or a negative errno and there is no MPT entry.
 */
int skua_mr_enable(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt)
{
	struct skua_cmd_create_mpt_in in;
	u8 variant = u32_get_bits(mr->key, SKUA_KEY_VARIANT) + 1;
	int err;

	mr->key = u32_replace_bits(mr->key, variant, SKUA_KEY_VARIANT);
	mpt->key = cpu_to_le32(mr->key);
	in.mpt = *mpt;
	err = skua_cmd_in(dev, SKUA_CMD_CREATE_MPT, &in);
	if (err)
		return err;
	xa_set_mark(&dev->keys, u32_get_bits(mr->key, SKUA_KEY_INDEX), SKUA_KEY_LIVE);
	trace_skua_create(dev, "MR", mr->key);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mr_enable, "SKUA");

/**
 * skua_mr_disable() - destroy the MPT entry and keep the key
 * @dev: the function
 * @mr: the region or window
 *
 * On success no access with the key is in progress, and later ones fail.
 *
 * Return: 0, or -EBUSY without effect if windows are bound to it. Always succeeds if the
 * device is dead.
 */
int skua_mr_disable(struct skua_dev *dev, struct skua_mr *mr)
{
	int err = 0;

	if (!skua_dead(dev))
		err = skua_cmd_index(dev, SKUA_CMD_DESTROY_MPT, mr->key);
	if (err == -EBUSY && !skua_dead(dev))
		return err;
	if (err && !skua_dead(dev)) {
		dev_err(dev->dev, "DESTROY_MPT %#x failed: %pe\n", mr->key, ERR_PTR(err));
		skua_declare_dead(dev, "region could not be destroyed");
	}
	xa_clear_mark(&dev->keys, u32_get_bits(mr->key, SKUA_KEY_INDEX), SKUA_KEY_LIVE);
	trace_skua_destroy(dev, "MR", mr->key);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mr_disable, "SKUA");

int skua_mr_create(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt)
{
	int err;

	err = skua_mr_reserve(dev, mr);
	if (err)
		return err;
	err = skua_mr_enable(dev, mr, mpt);
	if (err)
		skua_mr_unreserve(dev, mr);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_mr_create, "SKUA");

/**
 * skua_mr_destroy() - destroy the MPT entry and free the key
 * @dev: the function
 * @mr: the region or window
 *
 * On success no access with the key is in progress, and later ones fail.
 *
 * Return: 0, or -EBUSY without effect if windows are bound to it. Always succeeds if the
 * device is dead.
 */
int skua_mr_destroy(struct skua_dev *dev, struct skua_mr *mr)
{
	int err;

	err = skua_mr_disable(dev, mr);
	if (err)
		return err;
	skua_mr_unreserve(dev, mr);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_mr_destroy, "SKUA");

/**
 * skua_mr_modify() - replace the MPT entry of a region
 * @dev: the function
 * @mr: the region
 * @mpt: everything but the key, which stays
 *
 * On success no access by the old entry is in progress. On failure the old entry stays
 * valid, or the device is dead.
 *
 * Return: 0, -EBUSY while windows are bound to it, or another negative errno.
 */
int skua_mr_modify(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt)
{
	struct skua_cmd_create_mpt_in in;

	mpt->key = cpu_to_le32(mr->key);
	in.mpt = *mpt;
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_MPT, &in);
}
EXPORT_SYMBOL_NS_GPL(skua_mr_modify, "SKUA");

/**
 * skua_mr_query() - read the MPT entry
 * @dev: the function
 * @mr: the region or window
 * @mpt: filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_mr_query(struct skua_dev *dev, struct skua_mr *mr, struct skua_mpt *mpt)
{
	return skua_cmd_query(dev, SKUA_CMD_QUERY_MPT, mr->key, mpt, sizeof(*mpt));
}
EXPORT_SYMBOL_NS_GPL(skua_mr_query, "SKUA");
