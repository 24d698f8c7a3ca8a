// SPDX-License-Identifier: GPL-2.0
/*
 * State and settings of the port.
 */
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
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_PORT, in);
}
EXPORT_SYMBOL_NS_GPL(skua_modify_port, "SKUA");
