// SPDX-License-Identifier: GPL-2.0
/*
 * State and settings of the port, and of what it sends.
 */
#include <kunit/static_stub.h>

#include "skua.h"

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
	KUNIT_STATIC_STUB_REDIRECT(skua_modify_port, dev, in);
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_PORT, in);
}
EXPORT_SYMBOL_NS_GPL(skua_modify_port, "SKUA");

/**
 * skua_set_classes() - traffic classes of all queues
 * @dev: the function, which has SKUA_CAP_ETS
 * @prio_tc: class of each priority
 * @tc_share: share of each class, or SKUA_TC_STRICT
 *
 * Return: 0 or a negative errno.
 */
int skua_set_classes(struct skua_dev *dev, const u8 prio_tc[SKUA_PRIO_NUM],
		     const u8 tc_share[SKUA_TC_NUM])
{
	struct skua_cmd_modify_device_in in = {
		.mask = cpu_to_le32(SKUA_DEV_M_ETS),
	};

	KUNIT_STATIC_STUB_REDIRECT(skua_set_classes, dev, prio_tc, tc_share);
	memcpy(in.prio_tc, prio_tc, sizeof(in.prio_tc));
	memcpy(in.tc_share, tc_share, sizeof(in.tc_share));
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_DEVICE, &in);
}
EXPORT_SYMBOL_NS_GPL(skua_set_classes, "SKUA");
