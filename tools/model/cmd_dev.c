// SPDX-License-Identifier: GPL-2.0
/* Commands about the device as a whole. */
#include <string.h>

#include "cmd.h"
#include "icm.h"

/* Version of the model, reported by QUERY_DEVICE. */
#define MODEL_FW_MAJOR	0ull
#define MODEL_FW_MINOR	1ull
#define MODEL_FW_SUB	0ull

int cmd_nop(struct skua_dev *dev, struct cmd *cmd)
{
	(void)dev;
	(void)cmd;
	return SKUA_CMD_ST_OK;
}

static void query_limits(struct skua_dev *dev, struct skua_cmd_query_device_out *out)
{
	out->ports = 1;
	out->log_uars = __builtin_ctz(dev_uars(dev));
	out->msix_vectors = cpu_to_le16(skua_dev_msix_vectors(dev));
	out->max_mtu = cpu_to_le16(MODEL_MAX_MTU);
	out->clock_khz = cpu_to_le32(MODEL_CLOCK_KHZ);
	out->max_wqe_blocks = SKUA_WQE_MAX_BLOCKS;
	out->log_max_sq = MODEL_LOG_SQ_MAX;
	out->log_max_rq = MODEL_LOG_RQ_MAX;
	out->max_rq_sge = 1 << MODEL_LOG_RQ_STRIDE_MAX;
	out->log_max_cq = MODEL_LOG_CQ_MAX;
	out->log_max_eq = MODEL_LOG_EQ_MAX;
	out->max_rd_atomic = MODEL_MAX_RD_ATOMIC;
	out->log_max_msg = MODEL_LOG_MSG;
	out->max_inline = cpu_to_le16(MODEL_MAX_INLINE);
	out->max_gids = cpu_to_le16(1 << MODEL_LOG_GID);
	out->log_max_mr_len = MODEL_LOG_MR_LEN;
	out->log_min_page = MODEL_LOG_PAGE_MIN;
	out->log_max_page = MODEL_LOG_PAGE_MAX;
	out->qpn_bits = MODEL_LOG_QP;
	out->dm_size = cpu_to_le32(dev_has(dev, SKUA_CAP_DM) ? SKUA_BAR_DM_SIZE : 0);
	out->counters = cpu_to_le16(SKUA_CNT_COUNT);
	out->active_mtu_max = 5;
	if (dev_has(dev, SKUA_CAP_PUSH))
		out->push_segs = dev->cfg.push_segs;
	if (dev_has(dev, SKUA_CAP_TURN)) {
		out->turn_wqes = cpu_to_le16((uint16_t)dev->turn_wqes);
		out->turn_bytes = cpu_to_le32(dev->turn_bytes);
	}
	if (!dev_has(dev, SKUA_CAP_RATE_LIMIT))
		return;
	out->rate_min = cpu_to_le32(MODEL_RATE_MIN);
	out->rate_max = cpu_to_le32(MODEL_RATE_MAX);
	out->rate_burst_max = cpu_to_le32(MODEL_RATE_BURST_MAX);
}

int cmd_query_device(struct skua_dev *dev, struct cmd *cmd)
{
	static const uint32_t size[SKUA_ICM_TABLES] = {
#define X(name, number, bytes, text) [SKUA_ICM_##name] = bytes,
		SKUA_ICM_TABLE(X)
#undef X
	};
	struct skua_cmd_query_device_out *out = cmd->out;
	uint64_t guid = htobe64(dev->cfg.serial);

	out->size = cpu_to_le32(sizeof(*out));
	out->version = cpu_to_le32(u32_encode_bits(SKUA_HW_MAJOR, SKUA_VERSION_MAJOR) |
				   u32_encode_bits(SKUA_HW_MINOR, SKUA_VERSION_MINOR));
	out->caps = cpu_to_le64(dev->caps);
	out->fw_version = cpu_to_le64(MODEL_FW_MAJOR << 32 | MODEL_FW_MINOR << 16 | MODEL_FW_SUB);
	memcpy(&out->node_guid, &guid, sizeof(guid));
	memcpy(out->mac, dev->cfg.mac, sizeof(out->mac));
	query_limits(dev, out);
	for (unsigned int i = 0; i < SKUA_ICM_TABLES; i++) {
		out->icm[i].entry_size = cpu_to_le32(size[i]);
		out->icm[i].log_max = cpu_to_le32(icm_log_max(dev, i));
	}
	return SKUA_CMD_ST_OK;
}

static int check_eqn(struct skua_dev *dev, uint32_t eqn)
{
	return eqn == SKUA_NO_EQ || obj_valid(dev, SKUA_ICM_EQC, eqn) ? SKUA_CMD_ST_OK :
									SKUA_CMD_ST_BAD_INDEX;
}

/* Change one of the device's EQs, and the reference counts of the old and the new one. */
static void swap_eq(struct skua_dev *dev, uint32_t *eqn, uint32_t to)
{
	if (*eqn != SKUA_NO_EQ)
		obj_ref(dev, SKUA_ICM_EQC, *eqn, -1);
	if (to != SKUA_NO_EQ)
		obj_ref(dev, SKUA_ICM_EQC, to, 1);
	*eqn = to;
}

static bool classes_ok(const struct skua_cmd_modify_device_in *in)
{
	for (unsigned int i = 0; i < SKUA_PRIO_NUM; i++) {
		if (in->prio_tc[i] >= SKUA_TC_NUM)
			return false;
	}
	for (unsigned int i = 0; i < SKUA_TC_NUM; i++) {
		if (in->tc_share[i] > SKUA_TC_SHARE_MAX)
			return false;
	}
	return true;
}

/* Check the fields other than EQs. */
static bool settings_ok(struct skua_dev *dev, const struct skua_cmd_modify_device_in *in)
{
	const uint32_t turn = SKUA_DEV_M_TURN_WQES | SKUA_DEV_M_TURN_BYTES;
	uint32_t mask = le32_to_cpu(in->mask);
	uint32_t wqes = le32_to_cpu(in->turn_wqes), bytes = le32_to_cpu(in->turn_bytes);

	if (mask & ~(SKUA_DEV_M_CMD_EQ | SKUA_DEV_M_ASYNC_EQ | SKUA_DEV_M_FAULT_EQ |
		     SKUA_DEV_M_RECOVERY_EQ | SKUA_DEV_M_ROCE |
		     (dev_has(dev, SKUA_CAP_TURN) ? turn : 0) |
		     (dev_has(dev, SKUA_CAP_ETS) ? SKUA_DEV_M_ETS : 0)))
		return false;
	if (mask & SKUA_DEV_M_ETS && !classes_ok(in))
		return false;
	if (mask & SKUA_DEV_M_ROCE && le32_to_cpu(in->roce) > 1)
		return false;
	if (mask & SKUA_DEV_M_TURN_WQES &&
	    (wqes < SKUA_TURN_WQES_MIN || wqes > SKUA_TURN_WQES_MAX))
		return false;
	return !(mask & SKUA_DEV_M_TURN_BYTES) ||
	       (bytes >= SKUA_TURN_BYTES_MIN && bytes <= SKUA_TURN_BYTES_MAX);
}

int cmd_modify_device(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_device_in *in = cmd->in;
	uint32_t mask = le32_to_cpu(in->mask);
	const struct {
		uint32_t bit;
		uint32_t to;
		uint32_t *eqn;
	} eq[] = {
		{ SKUA_DEV_M_CMD_EQ, le32_to_cpu(in->cmd_eqn), &dev->cmd_eqn },
		{ SKUA_DEV_M_ASYNC_EQ, le32_to_cpu(in->async_eqn), &dev->async_eqn },
		{ SKUA_DEV_M_FAULT_EQ, le32_to_cpu(in->fault_eqn), &dev->fault_eqn },
		{ SKUA_DEV_M_RECOVERY_EQ, le32_to_cpu(in->recovery_eqn), &dev->recovery_eqn },
	};
	int err;

	if (!settings_ok(dev, in))
		return SKUA_CMD_ST_BAD_PARAM;
	for (unsigned int i = 0; i < sizeof(eq) / sizeof(eq[0]); i++) {
		err = mask & eq[i].bit ? check_eqn(dev, eq[i].to) : 0;
		if (err)
			return err;
	}
	for (unsigned int i = 0; i < sizeof(eq) / sizeof(eq[0]); i++) {
		if (mask & eq[i].bit)
			swap_eq(dev, eq[i].eqn, eq[i].to);
	}
	if (mask & SKUA_DEV_M_ROCE)
		dev->roce = le32_to_cpu(in->roce);
	if (mask & SKUA_DEV_M_TURN_WQES)
		dev->turn_wqes = le32_to_cpu(in->turn_wqes);
	if (mask & SKUA_DEV_M_TURN_BYTES)
		dev->turn_bytes = le32_to_cpu(in->turn_bytes);
	if (mask & SKUA_DEV_M_ETS)
		sched_set_classes(dev, in->prio_tc, in->tc_share);
	eq_kick(dev);
	return SKUA_CMD_ST_OK;
}

/* The teardown itself follows the completion, see cmd.c. */
int cmd_inject_fatal(struct skua_dev *dev, struct cmd *cmd)
{
	(void)dev;
	(void)cmd;
	return SKUA_CMD_ST_OK;
}
