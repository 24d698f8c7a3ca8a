// SPDX-License-Identifier: GPL-2.0
/*
 * Steering of received frames: RSS contexts, flow rules, multicast membership.
 */
#include <kunit/static_stub.h>

#include "skua.h"

/**
 * skua_steer_get() - reserve an entry of a steering table
 * @dev: the function
 * @ida: indices of the table in use
 * @id: the table
 * @max: number of its entries
 * @index: filled in: index of the entry, which is backed by memory
 *
 * Return: 0, -EOPNOTSUPP without such a table, -ENOSPC, or another negative errno.
 */
static int skua_steer_get(struct skua_dev *dev, struct ida *ida, enum skua_icm_table id, u32 max,
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

static void skua_steer_put(struct skua_dev *dev, struct ida *ida, enum skua_icm_table id,
			   u32 index)
{
	skua_icm_put(dev, id, index);
	ida_free(ida, index);
}

/* The command is too large for the stack. */
static int skua_rss_cmd(struct skua_dev *dev, enum skua_cmd_op op, u32 index,
			const struct skua_rss *rss)
{
	struct skua_cmd_create_rss_in *in __free(kfree) = kzalloc(sizeof(*in), GFP_KERNEL);

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

	err = skua_steer_get(dev, &dev->rsss, SKUA_ICM_RSS, dev->limits.max_rss, index);
	if (err)
		return err;
	err = skua_rss_cmd(dev, SKUA_CMD_CREATE_RSS, *index, rss);
	if (err)
		skua_steer_put(dev, &dev->rsss, SKUA_ICM_RSS, *index);
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
	skua_steer_put(dev, &dev->rsss, SKUA_ICM_RSS, index);
}
EXPORT_SYMBOL_NS_GPL(skua_rss_destroy, "SKUA");

static bool skua_flow_is_l2(const struct skua_flow_match *mask)
{
	return !memchr_inv(mask->saddr, 0, sizeof(mask->saddr)) &&
	       !memchr_inv(mask->daddr, 0, sizeof(mask->daddr)) && !mask->sport &&
	       !mask->dport && !mask->ip_proto && !(mask->flags & ~SKUA_FLOW_M_VLAN);
}

/**
 * skua_flow_create() - add a steering rule
 * @dev: the function
 * @index: its number
 * @flow: the rule
 *
 * Return: 0, -EOPNOTSUPP without rules or for fields beyond MAC and VLAN on a device that
 * looks at no others, or another negative errno.
 */
int skua_flow_create(struct skua_dev *dev, u32 *index, const struct skua_flow *flow)
{
	struct skua_cmd_create_flow_in in = {
		.flow = *flow,
	};
	int err;

	KUNIT_STATIC_STUB_REDIRECT(skua_flow_create, dev, index, flow);
	if (!(dev->limits.caps & SKUA_CAP_FLOW) && !skua_flow_is_l2(&flow->mask))
		return -EOPNOTSUPP;
	err = skua_steer_get(dev, &dev->flows, SKUA_ICM_FLOW, dev->limits.max_flows, index);
	if (err)
		return err;
	in.index = cpu_to_le32(*index);
	err = skua_cmd_in(dev, SKUA_CMD_CREATE_FLOW, &in);
	if (err)
		skua_steer_put(dev, &dev->flows, SKUA_ICM_FLOW, *index);
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
	KUNIT_STATIC_STUB_REDIRECT(skua_flow_destroy, dev, index);
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_FLOW, index);
	skua_steer_put(dev, &dev->flows, SKUA_ICM_FLOW, index);
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

	err = skua_steer_get(dev, &dev->mcgs, SKUA_ICM_MCG, dev->limits.max_mcg, index);
	if (err)
		return err;
	in.index = cpu_to_le32(*index);
	err = skua_cmd_in(dev, SKUA_CMD_ATTACH_MCG, &in);
	if (err)
		skua_steer_put(dev, &dev->mcgs, SKUA_ICM_MCG, *index);
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
	skua_steer_put(dev, &dev->mcgs, SKUA_ICM_MCG, index);
}
EXPORT_SYMBOL_NS_GPL(skua_mcg_detach, "SKUA");
