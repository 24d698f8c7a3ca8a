// SPDX-License-Identifier: GPL-2.0
/*
 * GID table: the addresses of the RoCE port.
 */
#include "skua.h"

/* Attempts to clear a GID before the device is declared dead. */
#define SKUA_GID_TRIES	3

/**
 * skua_set_gid() - set or clear a GID table entry
 * @dev: the function
 * @index: entry
 * @gid: the entry; without SKUA_GID_VALID it is cleared
 *
 * A device that does not clear an entry would go on receiving packets for an address that
 * may belong to another host by now, and sending with it. It is declared dead instead; its
 * GID table is empty after recovery.
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
		dev_err(dev->dev, "GID table entry %u cannot be cleared: %pe\n", index,
			ERR_PTR(err));
		skua_declare_dead(dev, "GID could not be cleared");
	}
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_set_gid, "SKUA");
