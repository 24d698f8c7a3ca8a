// SPDX-License-Identifier: GPL-2.0
/*
 * devlink: information, parameters, reload, health.
 */
#include <kunit/visibility.h>
#include <linux/pci.h>
#include <net/devlink.h>

#include "skua.h"

/* Set the extack message for an error of skua_take_down(), skua_bring_back() or skua_recover(). */
static void skua_devlink_tell_why(struct skua_dev *dev, int err, struct netlink_ext_ack *extack)
{
	if (err == -EBUSY)
		NL_SET_ERR_MSG_FMT_MOD(extack, "Not now: %s", skua_state_why(dev->state));
	else if (err)
		NL_SET_ERR_MSG_FMT_MOD(extack, "The device cannot be brought up: error %d", err);
}

static int skua_devlink_info_get(struct devlink *devlink, struct devlink_info_req *req,
				 struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_priv(devlink);
	u64 fw = dev->limits.fw_version;
	char text[32];
	u32 version;
	u64 dsn;
	int err;

	dsn = pci_get_dsn(dev->pdev);
	if (dsn) {
		snprintf(text, sizeof(text), "%016llx", dsn);
		err = devlink_info_serial_number_put(req, text);
		if (err)
			return err;
	}
	snprintf(text, sizeof(text), "%02x", dev->pdev->revision);
	err = devlink_info_version_fixed_put(req, DEVLINK_INFO_VERSION_GENERIC_ASIC_REV, text);
	if (err || dev->state != SKUA_UP)
		return err;
	snprintf(text, sizeof(text), "%u.%u.%u", (u32)(fw >> 32), (u16)(fw >> 16), (u16)fw);
	err = devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW, text);
	if (err)
		return err;
	version = skua_read32(dev, SKUA_REG_VERSION);
	snprintf(text, sizeof(text), "%u.%u", u32_get_bits(version, SKUA_VERSION_MAJOR),
		 u32_get_bits(version, SKUA_VERSION_MINOR));
	return devlink_info_version_running_put(req, DEVLINK_INFO_VERSION_GENERIC_FW_MGMT_API,
						text);
}

static int skua_devlink_reload_down(struct devlink *devlink, bool netns_change,
				    enum devlink_reload_action action,
				    enum devlink_reload_limit limit,
				    struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_priv(devlink);
	int err;

	if (netns_change) {
		NL_SET_ERR_MSG_MOD(extack, "The devlink instance cannot change its namespace");
		return -EOPNOTSUPP;
	}
	err = skua_take_down(dev);
	skua_devlink_tell_why(dev, err, extack);
	return err;
}

static int skua_devlink_reload_up(struct devlink *devlink, enum devlink_reload_action action,
				  enum devlink_reload_limit limit, u32 *actions_performed,
				  struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_priv(devlink);
	int err;

	*actions_performed = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT);
	err = skua_bring_back(dev);
	skua_devlink_tell_why(dev, err, extack);
	return err;
}

static const struct devlink_ops skua_devlink_ops = {
	.reload_actions = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down = skua_devlink_reload_down,
	.reload_up = skua_devlink_reload_up,
	.info_get = skua_devlink_info_get,
};

/* --- Parameters --- */

enum skua_devlink_param_id {
	SKUA_DEVLINK_PARAM_BASE = DEVLINK_PARAM_GENERIC_ID_MAX,
	SKUA_DEVLINK_PARAM_SELECTIVE_REPEAT,
	SKUA_DEVLINK_PARAM_LOSS_RECOVERY,
	SKUA_DEVLINK_PARAM_SQ_TURN_WQES,
	SKUA_DEVLINK_PARAM_SQ_TURN_BYTES,
};

static int skua_devlink_loss_recovery_get(struct devlink *devlink, u32 id,
					  struct devlink_param_gset_ctx *ctx,
					  struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_priv(devlink);

	strscpy(ctx->val.vstr, skua_recovery_wanted(dev) ? "driver" : "device",
		sizeof(ctx->val.vstr));
	return 0;
}

static int skua_devlink_loss_recovery_set(struct devlink *devlink, u32 id,
					  struct devlink_param_gset_ctx *ctx,
					  struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_priv(devlink);
	bool driver = !strcmp(ctx->val.vstr, "driver");

	if (!driver && strcmp(ctx->val.vstr, "device")) {
		NL_SET_ERR_MSG_MOD(extack, "loss_recovery is either \"device\" or \"driver\"");
		return -EINVAL;
	}
	if (driver && !(dev->limits.caps & SKUA_CAP_RECOVERY)) {
		NL_SET_ERR_MSG_MOD(extack, "The device does not report losses to the driver");
		return -EOPNOTSUPP;
	}
	WRITE_ONCE(dev->recovery_by_device, !driver);
	return 0;
}

/* The values that were set, or else the defaults of the device. */
static int skua_devlink_turn_get(struct devlink *devlink, u32 id,
				 struct devlink_param_gset_ctx *ctx,
				 struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_priv(devlink);

	if (!(dev->limits.caps & SKUA_CAP_TURN)) {
		NL_SET_ERR_MSG_MOD(extack, "The device's send queues have no such parameter");
		return -EOPNOTSUPP;
	}
	ctx->val.vu32 = id == SKUA_DEVLINK_PARAM_SQ_TURN_WQES ?
			dev->turn.wqes ?: dev->limits.turn_wqes :
			dev->turn.bytes ?: dev->limits.turn_bytes;
	return 0;
}

static int skua_devlink_turn_write(struct skua_dev *dev, const struct skua_turn *turn)
{
	struct skua_cmd_modify_device_in in = {
		.mask = cpu_to_le32((turn->wqes ? SKUA_DEV_M_TURN_WQES : 0) |
				    (turn->bytes ? SKUA_DEV_M_TURN_BYTES : 0)),
		.turn_wqes = cpu_to_le32(turn->wqes),
		.turn_bytes = cpu_to_le32(turn->bytes),
	};

	return in.mask ? skua_cmd_in(dev, SKUA_CMD_MODIFY_DEVICE, &in) : 0;
}

static int skua_devlink_turn_set(struct devlink *devlink, u32 id,
				 struct devlink_param_gset_ctx *ctx,
				 struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_priv(devlink);
	struct skua_turn turn = {};
	int err;

	if (dev->state != SKUA_UP) {
		skua_devlink_tell_why(dev, -EBUSY, extack);
		return -EBUSY;
	}
	if (!(dev->limits.caps & SKUA_CAP_TURN)) {
		NL_SET_ERR_MSG_MOD(extack, "The device's send queues have no such parameter");
		return -EOPNOTSUPP;
	}
	if (id == SKUA_DEVLINK_PARAM_SQ_TURN_WQES)
		turn.wqes = ctx->val.vu32;
	else
		turn.bytes = ctx->val.vu32;
	err = skua_devlink_turn_write(dev, &turn);
	if (err) {
		NL_SET_ERR_MSG_FMT_MOD(extack, "The device refuses %u: error %d",
				       ctx->val.vu32, err);
		return err;
	}
	if (turn.wqes)
		dev->turn.wqes = turn.wqes;
	else
		dev->turn.bytes = turn.bytes;
	return 0;
}

static int skua_devlink_turn_validate(struct devlink *devlink, u32 id,
				      union devlink_param_value *val,
				      struct netlink_ext_ack *extack)
{
	bool wqes = id == SKUA_DEVLINK_PARAM_SQ_TURN_WQES;
	u32 min = wqes ? SKUA_TURN_WQES_MIN : SKUA_TURN_BYTES_MIN;
	u32 max = wqes ? SKUA_TURN_WQES_MAX : SKUA_TURN_BYTES_MAX;

	if (val->vu32 >= min && val->vu32 <= max)
		return 0;
	NL_SET_ERR_MSG_FMT_MOD(extack, "%u is not in the range %u to %u", val->vu32, min, max);
	return -ERANGE;
}

/**
 * skua_devlink_turn_up() - write sq_turn_wqes and sq_turn_bytes to the device again
 * @dev: the function, which takes commands; the instance lock is held
 *
 * The device has lost them in the reset. If it does not take them any more its defaults are in
 * force, as if they had never been set.
 *
 * Return: 0, or a negative errno if the device is dead.
 */
int skua_devlink_turn_up(struct skua_dev *dev)
{
	int err;

	if (!(dev->limits.caps & SKUA_CAP_TURN))
		return 0;
	err = skua_devlink_turn_write(dev, &dev->turn);
	if (!err || skua_dead(dev))
		return err;
	dev_warn(dev->dev,
		 "the device does not take sq_turn_wqes %u and sq_turn_bytes %u (0: not set) again: %pe\n",
		 dev->turn.wqes, dev->turn.bytes, ERR_PTR(err));
	dev->turn = (struct skua_turn){};
	return 0;
}

/*
 * enable_roce and selective_repeat have no effect on a device without these capabilities.
 * selective_repeat takes effect at a reload only, since existing QPs may have agreed with
 * their peers to use it. loss_recovery is a runtime parameter: it concerns one side of a
 * connection only, and a QP takes the value of the time at which it leaves INIT.
 */
static const struct devlink_param skua_devlink_params[] = {
	DEVLINK_PARAM_GENERIC(ENABLE_ROCE, BIT(DEVLINK_PARAM_CMODE_DRIVERINIT), NULL, NULL, NULL),
	DEVLINK_PARAM_DRIVER(SKUA_DEVLINK_PARAM_SELECTIVE_REPEAT, "selective_repeat",
			     DEVLINK_PARAM_TYPE_BOOL, BIT(DEVLINK_PARAM_CMODE_DRIVERINIT),
			     NULL, NULL, NULL),
	DEVLINK_PARAM_DRIVER(SKUA_DEVLINK_PARAM_LOSS_RECOVERY, "loss_recovery",
			     DEVLINK_PARAM_TYPE_STRING, BIT(DEVLINK_PARAM_CMODE_RUNTIME),
			     skua_devlink_loss_recovery_get, skua_devlink_loss_recovery_set,
			     NULL),
	DEVLINK_PARAM_DRIVER(SKUA_DEVLINK_PARAM_SQ_TURN_WQES, "sq_turn_wqes",
			     DEVLINK_PARAM_TYPE_U32, BIT(DEVLINK_PARAM_CMODE_RUNTIME),
			     skua_devlink_turn_get, skua_devlink_turn_set,
			     skua_devlink_turn_validate),
	DEVLINK_PARAM_DRIVER(SKUA_DEVLINK_PARAM_SQ_TURN_BYTES, "sq_turn_bytes",
			     DEVLINK_PARAM_TYPE_U32, BIT(DEVLINK_PARAM_CMODE_RUNTIME),
			     skua_devlink_turn_get, skua_devlink_turn_set,
			     skua_devlink_turn_validate),
};

static bool skua_devlink_want(struct skua_dev *dev, u32 id)
{
	union devlink_param_value val;

	if (devl_param_driverinit_value_get(priv_to_devlink(dev), id, &val))
		return true;
	return val.vbool;
}

/**
 * skua_devlink_want_roce() - does the administrator want RoCE?
 * @dev: the function
 *
 * Return: what enable_roce is set to.
 */
bool skua_devlink_want_roce(struct skua_dev *dev)
{
	return skua_devlink_want(dev, DEVLINK_PARAM_GENERIC_ID_ENABLE_ROCE);
}

/**
 * skua_devlink_want_sr() - does the administrator want selective repeat?
 * @dev: the function
 *
 * Return: what selective_repeat is set to.
 */
bool skua_devlink_want_sr(struct skua_dev *dev)
{
	return skua_devlink_want(dev, SKUA_DEVLINK_PARAM_SELECTIVE_REPEAT);
}

/* --- Health --- */

/* @priv_ctx: not NULL for a report of the driver, NULL for a request of the administrator. */
static int skua_devlink_recover(struct devlink_health_reporter *reporter, void *priv_ctx,
				struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_health_reporter_priv(reporter);
	int err;

	if (!priv_ctx)
		dev->recoveries_by_hand++;
	err = skua_recover(dev, priv_ctx);
	skua_devlink_tell_why(dev, err, extack);
	return err;
}

static int skua_devlink_diagnose(struct devlink_health_reporter *reporter,
				 struct devlink_fmsg *fmsg, struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_health_reporter_priv(reporter);
	const char *why = READ_ONCE(dev->why_dead);
	enum skua_state state = READ_ONCE(dev->state);
	u32 status;

	devlink_fmsg_string_pair_put(fmsg, "state", skua_state_name(state));
	devlink_fmsg_string_pair_put(fmsg, "last failure", why ?: "none");
	devlink_fmsg_u32_pair_put(fmsg, "recoveries in a row", dev->failures);
	/* During a reset, a PCI error and sleep the registers must not be read. */
	if (state != SKUA_UP && state != SKUA_DEAD && state != SKUA_OFF)
		return 0;
	status = skua_read32(dev, SKUA_REG_STATUS);
	devlink_fmsg_u32_pair_put(fmsg, "status", status);
	devlink_fmsg_u32_pair_put(fmsg, "fatal code", u32_get_bits(status, SKUA_STATUS_CODE));
	devlink_fmsg_u32_pair_put(fmsg, "heartbeat", skua_read32(dev, SKUA_REG_HEARTBEAT));
	return 0;
}

static int skua_devlink_test(struct devlink_health_reporter *reporter,
			     struct netlink_ext_ack *extack)
{
	struct skua_dev *dev = devlink_health_reporter_priv(reporter);

	if (dev->state != SKUA_UP) {
		NL_SET_ERR_MSG_MOD(extack, "The device is not up");
		return -ENODEV;
	}
	return skua_cmd_exec(dev, SKUA_CMD_INJECT_FATAL, NULL, 0, NULL, 0);
}

/*
 * The graceful period is 0: with another one devlink would not recover a device that fails
 * again within that time. skua_recover() limits how often a device is recovered.
 */
static const struct devlink_health_reporter_ops skua_devlink_reporter_ops = {
	.name = "fw_fatal",
	.recover = skua_devlink_recover,
	.diagnose = skua_devlink_diagnose,
	.test = skua_devlink_test,
	.default_graceful_period = 0,
};

/**
 * skua_devlink_health() - update the state of devlink's health reporter
 * @dev: the function; the instance lock is held
 * @healthy: it was brought up. It may have failed since: its own work item reports that, and
 *	devlink recovers only a device that was healthy before.
 */
void skua_devlink_health(struct skua_dev *dev, bool healthy)
{
	if (!dev->registered || IS_ERR_OR_NULL(dev->reporter))
		return;
	devlink_health_reporter_state_update(dev->reporter, healthy ?
					     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY :
					     DEVLINK_HEALTH_REPORTER_STATE_ERROR);
}
EXPORT_SYMBOL_IF_KUNIT(skua_devlink_health);

/**
 * skua_devlink_report() - tell devlink that the device failed
 * @dev: the function
 *
 * devlink then recovers the device, unless the reporter's auto_recover is off, or the device
 * fails again within the reporter's grace period (-ECANCELED). In two cases devlink would do
 * nothing though it should: the reporter is in error, because the report of an earlier failure
 * came late; and a recovery by hand ended meanwhile, after which devlink takes the device for
 * healthy. In the latter the failure is reported once more.
 *
 * Context: process; the instance lock is not held, devlink takes it.
 */
void skua_devlink_report(struct skua_dev *dev)
{
	struct devlink *devlink = priv_to_devlink(dev);
	const char *why = READ_ONCE(dev->why_dead);
	unsigned int by_hand;
	int err;

	if (IS_ERR_OR_NULL(dev->reporter))
		return;
	/* A recovery by hand that is under way has ended then. */
	devl_lock(devlink);
	by_hand = dev->recoveries_by_hand;
	if (dev->state == SKUA_DEAD)
		skua_devlink_health(dev, true);
	devl_unlock(devlink);
	/* skua_declare_dead() sets the state before the reason, which may be NULL here. */
	err = devlink_health_report(dev->reporter, why ?: "the device failed", dev);
	devl_lock(devlink);
	if (dev->state == SKUA_DEAD && dev->recoveries_by_hand != by_hand) {
		skua_devlink_health(dev, true);
		queue_work(system_freezable_wq, &dev->report_work);
		err = 0;
	}
	/* The device may be up again by now; then the report must not leave it in error. */
	if (err && dev->state == SKUA_DEAD)
		dev_err(dev->dev, "not recovered: %pe\n", ERR_PTR(err));
	if (dev->state == SKUA_UP)
		skua_devlink_health(dev, true);
	devl_unlock(devlink);
}
EXPORT_SYMBOL_IF_KUNIT(skua_devlink_report);

/* --- Create and destroy --- */

/**
 * skua_devlink_alloc() - allocate a function
 * @pdev: the PCI device
 *
 * Return: the function, all zero, or NULL.
 */
struct skua_dev *skua_devlink_alloc(struct pci_dev *pdev)
{
	struct devlink *devlink = devlink_alloc(&skua_devlink_ops, sizeof(struct skua_dev),
						&pdev->dev);

	return devlink ? devlink_priv(devlink) : NULL;
}

/**
 * skua_devlink_init() - register parameters and create the health reporter
 * @dev: the function; the instance lock is held
 *
 * Return: 0 or a negative errno.
 */
int skua_devlink_init(struct skua_dev *dev)
{
	struct devlink *devlink = priv_to_devlink(dev);
	union devlink_param_value val = { .vbool = true };
	int err;

	err = devl_params_register(devlink, skua_devlink_params,
				   ARRAY_SIZE(skua_devlink_params));
	if (err)
		return err;
	devl_param_driverinit_value_set(devlink, DEVLINK_PARAM_GENERIC_ID_ENABLE_ROCE, &val);
	devl_param_driverinit_value_set(devlink, SKUA_DEVLINK_PARAM_SELECTIVE_REPEAT, &val);
	dev->reporter = devl_health_reporter_create(devlink, &skua_devlink_reporter_ops, dev);
	/* Without a reporter the device works, but is not recovered automatically. */
	if (IS_ERR(dev->reporter))
		dev_warn(dev->dev, "no health reporter: %pe\n", dev->reporter);
	return 0;
}

/**
 * skua_devlink_exit() - undo skua_devlink_init()
 * @dev: the function; the instance lock is held
 */
void skua_devlink_exit(struct skua_dev *dev)
{
	struct devlink *devlink = priv_to_devlink(dev);

	if (!IS_ERR_OR_NULL(dev->reporter))
		devl_health_reporter_destroy(dev->reporter);
	dev->reporter = NULL;
	devl_params_unregister(devlink, skua_devlink_params, ARRAY_SIZE(skua_devlink_params));
}
