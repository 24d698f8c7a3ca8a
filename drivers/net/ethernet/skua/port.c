// SPDX-License-Identifier: GPL-2.0
/*
 * Port, GID table, receive side scaling, steering, counters.
 */
#include "skua.h"

/* How often a GID is to be cleared before the device is given up. */
#define SKUA_GID_TRIES	3

/**
 * skua_set_gid() - set or clear a GID table entry
 * @dev: the function
 * @index: entry
 * @gid: the entry; without SKUA_GID_VALID it is cleared
 *
 * A device that does not clear an entry would go on taking packets to an address that
 * is somebody else's by now, and sending in its name: it is declared dead, and has no
 * GIDs when it is brought back.
 *
 * Return: 0 or a negative errno.
 */
int skua_set_gid(struct skua_dev *dev, u32 index, const struct skua_gid *gid)
{
	struct skua_cmd_set_gid_in in = {
		.index = cpu_to_le32(index),
		.gid = *gid,
	};

	unsigned int tries = gid->flags & cpu_to_le32(SKUA_GID_VALID) ? 1 : SKUA_GID_TRIES;
	bool clear = tries > 1;
	int err;

	if (index >= dev->limits.max_gids)
		return -EINVAL;
	do {
		err = skua_cmd_in(dev, SKUA_CMD_SET_GID, &in);
	} while (err && --tries && !skua_dead(dev));
	if (err && clear && !skua_dead(dev)) {
		dev_err(dev->dev, "GID %u stays: %pe\n", index, ERR_PTR(err));
		skua_declare_dead(dev, "GID could not be cleared");
	}
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_set_gid, "SKUA");

/**
 * skua_query_port() - state of the port
 * @dev: the function
 * @out: filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_query_port(struct skua_dev *dev, struct skua_cmd_query_port_out *out)
{
	return skua_cmd_exec(dev, SKUA_CMD_QUERY_PORT, NULL, 0, out, sizeof(*out));
}
EXPORT_SYMBOL_NS_GPL(skua_query_port, "SKUA");

/**
 * skua_modify_port() - change settings of the port
 * @dev: the function
 * @in: what to change
 *
 * Return: 0 or a negative errno.
 */
int skua_modify_port(struct skua_dev *dev, const struct skua_cmd_modify_port_in *in)
{
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_PORT, in);
}
EXPORT_SYMBOL_NS_GPL(skua_modify_port, "SKUA");

/* Take a number and an entry of a table. */
static int skua_port_get(struct skua_dev *dev, struct ida *ida, enum skua_icm_table id, u32 max,
			 u32 *index)
{
	int err, i;

	if (!max)
		return -EOPNOTSUPP;
	i = ida_alloc_max(ida, max - 1, GFP_KERNEL_ACCOUNT);
	if (i < 0)
		return i;
	err = skua_icm_get(dev, id, i);
	if (err) {
		ida_free(ida, i);
		return err;
	}
	*index = i;
	return 0;
}

static void skua_port_put(struct skua_dev *dev, struct ida *ida, enum skua_icm_table id,
			  u32 index)
{
	skua_icm_put(dev, id, index);
	ida_free(ida, index);
}

static int skua_rss_cmd(struct skua_dev *dev, enum skua_cmd_op op, u32 index,
			const struct skua_rss *rss)
{
	struct skua_cmd_create_rss_in *in __free(kfree) = kzalloc(sizeof(*in), GFP_KERNEL);

	/* Too large for the stack. */
	if (!in)
		return -ENOMEM;
	in->index = cpu_to_le32(index);
	in->rss = *rss;
	return skua_cmd_in(dev, op, in);
}

/**
 * skua_rss_create() - create an RSS context
 * @dev: the function
 * @index: its number
 * @rss: the context
 *
 * Return: 0 or a negative errno.
 */
int skua_rss_create(struct skua_dev *dev, u32 *index, const struct skua_rss *rss)
{
	int err;

	err = skua_port_get(dev, &dev->rsss, SKUA_ICM_RSS, dev->limits.max_rss, index);
	if (err)
		return err;
	err = skua_rss_cmd(dev, SKUA_CMD_CREATE_RSS, *index, rss);
	if (err)
		skua_port_put(dev, &dev->rsss, SKUA_ICM_RSS, *index);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_rss_create, "SKUA");

/**
 * skua_rss_modify() - replace an RSS context
 * @dev: the function
 * @index: its number
 * @rss: the context
 *
 * Return: 0 or a negative errno.
 */
int skua_rss_modify(struct skua_dev *dev, u32 index, const struct skua_rss *rss)
{
	return skua_rss_cmd(dev, SKUA_CMD_MODIFY_RSS, index, rss);
}
EXPORT_SYMBOL_NS_GPL(skua_rss_modify, "SKUA");

/**
 * skua_rss_destroy() - destroy an RSS context
 * @dev: the function
 * @index: its number; neither the port nor a rule names it any more
 */
void skua_rss_destroy(struct skua_dev *dev, u32 index)
{
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_RSS, index);
	skua_port_put(dev, &dev->rsss, SKUA_ICM_RSS, index);
}
EXPORT_SYMBOL_NS_GPL(skua_rss_destroy, "SKUA");

/**
 * skua_flow_create() - add a steering rule
 * @dev: the function
 * @index: its number
 * @flow: the rule
 *
 * Return: 0 or a negative errno.
 */
int skua_flow_create(struct skua_dev *dev, u32 *index, const struct skua_flow *flow)
{
	struct skua_cmd_create_flow_in in = {
		.flow = *flow,
	};
	int err;

	err = skua_port_get(dev, &dev->flows, SKUA_ICM_FLOW, dev->limits.max_flows, index);
	if (err)
		return err;
	in.index = cpu_to_le32(*index);
	err = skua_cmd_in(dev, SKUA_CMD_CREATE_FLOW, &in);
	if (err)
		skua_port_put(dev, &dev->flows, SKUA_ICM_FLOW, *index);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_flow_create, "SKUA");

/**
 * skua_flow_destroy() - remove a steering rule
 * @dev: the function
 * @index: its number
 */
void skua_flow_destroy(struct skua_dev *dev, u32 index)
{
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_FLOW, index);
	skua_port_put(dev, &dev->flows, SKUA_ICM_FLOW, index);
}
EXPORT_SYMBOL_NS_GPL(skua_flow_destroy, "SKUA");

/**
 * skua_mcg_attach() - make a QP a member of a multicast group
 * @dev: the function
 * @index: number of the membership
 * @mcg: group and member
 *
 * Return: 0 or a negative errno.
 */
int skua_mcg_attach(struct skua_dev *dev, u32 *index, const struct skua_mcg *mcg)
{
	struct skua_cmd_mcg_in in = {
		.mcg = *mcg,
	};
	int err;

	err = skua_port_get(dev, &dev->mcgs, SKUA_ICM_MCG, dev->limits.max_mcg, index);
	if (err)
		return err;
	in.index = cpu_to_le32(*index);
	err = skua_cmd_in(dev, SKUA_CMD_ATTACH_MCG, &in);
	if (err)
		skua_port_put(dev, &dev->mcgs, SKUA_ICM_MCG, *index);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_mcg_attach, "SKUA");

/**
 * skua_mcg_detach() - end a membership
 * @dev: the function
 * @index: its number
 */
void skua_mcg_detach(struct skua_dev *dev, u32 index)
{
	skua_cmd_destroy(dev, SKUA_CMD_DETACH_MCG, index);
	skua_port_put(dev, &dev->mcgs, SKUA_ICM_MCG, index);
}
EXPORT_SYMBOL_NS_GPL(skua_mcg_detach, "SKUA");

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
	skua_port_put(dev, &dev->sets, SKUA_ICM_CNT, set);
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

/**
 * skua_roce_enabled() - does the device claim RoCE traffic?
 * @dev: the function
 *
 * Return: true if so.
 */
bool skua_roce_enabled(const struct skua_dev *dev)
{
	return dev->roce;
}
EXPORT_SYMBOL_NS_GPL(skua_roce_enabled, "SKUA");
