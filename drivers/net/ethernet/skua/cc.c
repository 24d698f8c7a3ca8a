// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters of congestion control: debugfs skua/<PCI address>/cc_params/, with the names
 * that users of mlx5 know. The device forgets them in a reset: those that were written are
 * written again.
 */
#include <kunit/visibility.h>
#include <linux/debugfs.h>

#include "skua.h"

static const struct {
	const char *name;
	u32 min, max;
} skua_cc_params[] = {
#define X(id, user, min, max, dflt, text) { #user, min, max },
	SKUA_CC_PARAM_TABLE(X)
#undef X
};

static_assert(ARRAY_SIZE(skua_cc_params) == SKUA_CC_PARAMS);

/**
 * skua_cc_query() - read all parameters
 * @dev: the function
 * @value: room for SKUA_CC_PARAMS
 *
 * Return: how many the device has, at most SKUA_CC_PARAMS, or a negative errno.
 */
int skua_cc_query(struct skua_dev *dev, u32 *value)
{
	struct skua_cmd_query_cc_out out = {};
	u32 i, count;
	int err;

	err = skua_cmd_exec(dev, SKUA_CMD_QUERY_CC, NULL, 0, &out, sizeof(out));
	if (err)
		return err;
	count = min_t(u32, le32_to_cpu(out.count), SKUA_CC_PARAMS);
	for (i = 0; i < count; i++)
		value[i] = le32_to_cpu(out.value[i]);
	return count;
}
EXPORT_SYMBOL_IF_KUNIT(skua_cc_query);

static int skua_cc_write(struct skua_dev *dev, u32 param, u32 value)
{
	struct skua_cmd_modify_cc_in in = {
		.param = cpu_to_le32(param),
		.value = cpu_to_le32(value),
	};

	return skua_cmd_in(dev, SKUA_CMD_MODIFY_CC, &in);
}

/**
 * skua_cc_set() - write a parameter
 * @dev: the function
 * @param: which
 * @value: its value
 *
 * Return: 0, -ERANGE if @value is out of the range of SKUA_CC_PARAM_TABLE, -EOPNOTSUPP for an
 * algorithm that the device does not have, or another negative errno.
 */
int skua_cc_set(struct skua_dev *dev, u32 param, u64 value)
{
	struct skua_cc_values *cc = &dev->cc;
	int err;

	if (value < skua_cc_params[param].min || value > skua_cc_params[param].max) {
		dev_warn(dev->dev, "cc_params/%s: %llu is not in the range %u to %u\n",
			 skua_cc_params[param].name, value, skua_cc_params[param].min,
			 skua_cc_params[param].max);
		return -ERANGE;
	}
	if (param == SKUA_CC_RP_ALGORITHM && value == SKUA_CC_DELAY &&
	    !(dev->limits.caps & SKUA_CAP_CC_DELAY)) {
		dev_warn(dev->dev, "cc_params/%s: the device has no algorithm %llu\n",
			 skua_cc_params[param].name, value);
		return -EOPNOTSUPP;
	}
	guard(mutex)(&cc->lock);
	err = skua_cc_write(dev, param, value);
	if (err) {
		dev_warn(dev->dev, "cc_params/%s: the device refuses %llu: %pe\n",
			 skua_cc_params[param].name, value, ERR_PTR(err));
		return err;
	}
	cc->value[param] = value;
	__set_bit(param, cc->written);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_cc_set);

static int skua_cc_param_get(void *data, u64 *value)
{
	struct skua_cc_file *file = data;
	u32 all[SKUA_CC_PARAMS] = {};
	int count = skua_cc_query(file->dev, all);

	if (count < 0)
		return count;
	*value = all[file->param];
	return 0;
}

static int skua_cc_param_set(void *data, u64 value)
{
	struct skua_cc_file *file = data;

	return skua_cc_set(file->dev, file->param, value);
}
DEFINE_DEBUGFS_ATTRIBUTE(skua_cc_fops, skua_cc_param_get, skua_cc_param_set, "%llu\n");

/**
 * skua_cc_init() - before the device comes up for the first time
 * @dev: the function
 */
void skua_cc_init(struct skua_dev *dev)
{
	u32 i;

	mutex_init(&dev->cc.lock);
	for (i = 0; i < SKUA_CC_PARAMS; i++)
		dev->cc.file[i] = (struct skua_cc_file){ .dev = dev, .param = i };
}
EXPORT_SYMBOL_IF_KUNIT(skua_cc_init);

/**
 * skua_cc_up() - write again what was written before a reset
 * @dev: the function, of which commands are executed
 *
 * A value that the device does not take any more is told of and left out. A device that does
 * not tell its parameters has none.
 *
 * Return: 0, or a negative errno if the device is dead.
 */
int skua_cc_up(struct skua_dev *dev)
{
	struct skua_cc_values *cc = &dev->cc;
	u32 all[SKUA_CC_PARAMS];
	int count, err;
	u32 i;

	cc->count = 0;
	if (!(dev->limits.caps & SKUA_CAP_DCQCN))
		return 0;
	count = skua_cc_query(dev, all);
	if (count < 0 && skua_dead(dev))
		return count;
	if (count < 0) {
		dev_warn(dev->dev, "no cc_params: the device does not tell its parameters: %pe\n",
			 ERR_PTR(count));
		return 0;
	}
	guard(mutex)(&cc->lock);
	cc->count = count;
	for_each_set_bit(i, cc->written, count) {
		err = skua_cc_write(dev, i, cc->value[i]);
		if (err && skua_dead(dev))
			return err;
		if (err)
			dev_warn(dev->dev, "cc_params/%s: the device does not take %u again: %pe\n",
				 skua_cc_params[i].name, cc->value[i], ERR_PTR(err));
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_cc_up);

/**
 * skua_cc_debugfs_up() - create the files of a device that is up
 * @dev: the function
 */
void skua_cc_debugfs_up(struct skua_dev *dev)
{
	struct skua_cc_values *cc = &dev->cc;
	u32 i;

	cc->dir = NULL;
	if (!cc->count)
		return;
	cc->dir = debugfs_create_dir("cc_params", dev->debugfs);
	for (i = 0; i < cc->count; i++)
		debugfs_create_file_unsafe(skua_cc_params[i].name, 0600, cc->dir, &cc->file[i],
					   &skua_cc_fops);
}

/**
 * skua_cc_debugfs_down() - remove them, and wait for those who use them
 * @dev: the function
 */
void skua_cc_debugfs_down(struct skua_dev *dev)
{
	debugfs_remove(dev->cc.dir);
}
