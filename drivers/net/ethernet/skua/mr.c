// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and MPT entries of memory regions and windows.
 */
#include <linux/random.h>

#include "skua.h"
#include "trace.h"

/**
 * skua_mr_reserve() - take a key, and have its MPT entry backed by memory
 * @dev: the function
 * @mr: filled in
 *
 * The device knows nothing of the key before skua_mr_enable().
 *
 * Return: 0, -ENOSPC, or another negative errno.
 */
int skua_mr_reserve(struct skua_dev *dev, struct skua_mr *mr)
{
	u32 index;
	int err;

	/*
	 * Indices go round from a random start and the variant is random, so
	 * that a key is hard to guess and the one just freed is not reused soon.
	 */
	err = xa_alloc_cyclic(&dev->keys, &index, xa_mk_value(0), XA_LIMIT(1, dev->limits.max_mr),
			      &dev->next_key, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	err = skua_icm_get(dev, SKUA_ICM_MPT, index);
	if (err) {
		xa_erase(&dev->keys, index);
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
 * @mr: a key that the device knows nothing of
 */
void skua_mr_unreserve(struct skua_dev *dev, const struct skua_mr *mr)
{
	u32 index = u32_get_bits(mr->key, SKUA_KEY_INDEX);

	skua_icm_put(dev, SKUA_ICM_MPT, index);
	xa_erase(&dev->keys, index);
}
EXPORT_SYMBOL_NS_GPL(skua_mr_unreserve, "SKUA");

/**
 * skua_mr_enable() - create the MPT entry of a reserved key
 * @dev: the function
 * @mr: the key, which gets another variant: what knows it from an earlier use has
 *	no access
 * @mpt: everything but the key
 *
 * Return: 0 or a negative errno; then the device knows nothing of the key.
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
 * On success no access through it is under way, and none will be.
 *
 * Return: 0, or -EBUSY while windows are bound to it, and nothing happened. With a
 * dead device it always succeeds.
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
 * On success no access through it is under way, and none will be.
 *
 * Return: 0, or -EBUSY while windows are bound to it, and nothing happened. A
 * region of a dead device is always freed.
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
 * On success no access through the old entry is under way. On failure the old
 * entry is in force, or the device is dead.
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
