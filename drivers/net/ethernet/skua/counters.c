// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of the device, and counter sets for QPs and flow rules.
 */
#include "skua.h"

/**
 * skua_set_create() - make a counter set
 * @dev: the function
 * @set: its number, not SKUA_NO_SET
 *
 * Return: 0, -EOPNOTSUPP or another negative errno.
 */
int skua_set_create(struct skua_dev *dev, u32 *set)
{
	int i, err;

	if (!(dev->limits.caps & SKUA_CAP_COUNTER_SET) || !dev->limits.max_sets)
		return -EOPNOTSUPP;
	i = ida_alloc_range(&dev->sets, SKUA_NO_SET + 1, dev->limits.max_sets,
			    GFP_KERNEL_ACCOUNT);
	if (i < 0)
		return i;
	err = skua_icm_get(dev, SKUA_ICM_CNT, i);
	if (err)
		goto err_free;
	err = skua_cmd_index(dev, SKUA_CMD_CREATE_COUNTER, i);
	if (err)
		goto err_icm;
	*set = i;
	return 0;

err_icm:
	skua_icm_put(dev, SKUA_ICM_CNT, i);
err_free:
	ida_free(&dev->sets, i);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_set_create, "SKUA");

/**
 * skua_set_destroy() - end a counter set
 * @dev: the function
 * @set: its number; no QP and no rule names it any more
 */
void skua_set_destroy(struct skua_dev *dev, u32 set)
{
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_COUNTER, set);
	skua_icm_put(dev, SKUA_ICM_CNT, set);
	ida_free(&dev->sets, set);
}
EXPORT_SYMBOL_NS_GPL(skua_set_destroy, "SKUA");

/**
 * skua_query_set() - read counters
 * @dev: the function
 * @set: whose: a counter set's, or with SKUA_NO_SET the device's
 * @value: room for SKUA_CNT_COUNT; what the device lacks is zero
 *
 * Return: 0 or a negative errno.
 */
int skua_query_set(struct skua_dev *dev, u32 set, u64 *value)
{
	size_t len = struct_size_t(struct skua_cmd_query_counters_out, value, SKUA_CNT_COUNT);
	struct skua_cmd_query_counters_out *out __free(kfree) = kzalloc(len, GFP_KERNEL);
	unsigned int i;
	u32 count;
	int err;

	if (!out)
		return -ENOMEM;
	err = skua_cmd_query(dev, SKUA_CMD_QUERY_COUNTERS, set, out, len);
	if (err)
		return err;
	count = le32_to_cpu(out->count);
	for (i = 0; i < SKUA_CNT_COUNT; i++)
		value[i] = i < count ? le64_to_cpu(out->value[i]) : 0;
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_query_set, "SKUA");
