// SPDX-License-Identifier: GPL-2.0
/* Counter sets: what befalls some QPs or steering rules, apart from the rest. */
#include "cmd.h"

/* Place of a counter in a set, + 1; 0: sets do not keep it. */
static const uint8_t place[SKUA_CNT_COUNT] = {
#define X(name) [SKUA_CNT_##name] = SKUA_SET_##name + 1,
	SKUA_COUNTER_SET_TABLE(X)
#undef X
};

_Static_assert(SKUA_SET_COUNT <= SKUA_SET_MAX, "a set holds what it keeps");

void set_count(struct skua_dev *dev, uint32_t index, enum skua_counter counter, uint64_t by)
{
	struct skua_counter_set *set;

	if (!index || !place[counter] || !obj_valid(dev, SKUA_ICM_CNT, index))
		return;
	set = ctx_get(dev, SKUA_ICM_CNT, index);
	if (!set)
		return;
	set->value[place[counter] - 1] =
		cpu_to_le64(le64_to_cpu(set->value[place[counter] - 1]) + by);
	ctx_dirty(dev, set);
	ctx_put(dev, set);
}

bool set_ok(const struct skua_dev *dev, uint32_t index)
{
	return !index || obj_valid(dev, SKUA_ICM_CNT, index);
}

void set_ref(struct skua_dev *dev, uint32_t index, int by)
{
	if (index)
		obj_ref(dev, SKUA_ICM_CNT, index, by);
}

int cmd_create_counter(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_counter_set *set;
	uint32_t index;
	int err = cmd_index(cmd, &index);

	if (!err && !index)
		err = SKUA_CMD_ST_BAD_INDEX;
	if (!err)
		err = cmd_vacant(dev, SKUA_ICM_CNT, index);
	if (err)
		return err;
	set = ctx_new(dev, SKUA_ICM_CNT, index);
	if (!set)
		return SKUA_CMD_ST_INTERNAL;
	obj_set(dev, SKUA_ICM_CNT, index, true);
	ctx_put(dev, set);
	return SKUA_CMD_ST_OK;
}

int cmd_destroy_counter(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_counter_set *set;
	uint32_t index;
	int err = cmd_object(dev, cmd, SKUA_ICM_CNT, &index);

	if (err)
		return err;
	if (obj_refs(dev, SKUA_ICM_CNT, index))
		return SKUA_CMD_ST_BUSY;
	obj_set(dev, SKUA_ICM_CNT, index, false);
	set = ctx_new(dev, SKUA_ICM_CNT, index);
	if (!set)
		return SKUA_CMD_ST_INTERNAL;
	ctx_put(dev, set);
	return SKUA_CMD_ST_OK;
}

static int query_set(struct skua_dev *dev, uint32_t index, __le64 *value)
{
	struct skua_counter_set set;
	int err;

	if (!obj_valid(dev, SKUA_ICM_CNT, index))
		return SKUA_CMD_ST_BAD_INDEX;
	err = cmd_query_ctx(dev, SKUA_ICM_CNT, index, &set, sizeof(set));
	if (err)
		return err;
	for (unsigned int i = 0; i < SKUA_CNT_COUNT; i++)
		value[i] = place[i] ? set.value[place[i] - 1] : 0;
	return SKUA_CMD_ST_OK;
}

int cmd_query_counters(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_counters_out *out = cmd->out;
	uint32_t index;
	int err = cmd_index(cmd, &index);

	_Static_assert(sizeof(*out) + SKUA_CNT_COUNT * sizeof(out->value[0]) <=
		       SKUA_CMD_MBOX_SIZE, "counters fit a mailbox");
	if (!err && index)
		err = query_set(dev, index, out->value);
	if (err)
		return err;
	out->count = cpu_to_le32(SKUA_CNT_COUNT);
	tlp_counters(dev);
	for (unsigned int i = 0; !index && i < SKUA_CNT_COUNT; i++)
		out->value[i] = cpu_to_le64(dev->cnt[i]);
	cmd->out_len = sizeof(*out) + SKUA_CNT_COUNT * sizeof(out->value[0]);
	return SKUA_CMD_ST_OK;
}
