// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware counters: the port's are those of the RDMA engine; the device's are
 * those of PCIe and of misuse of the device interface.
 */
#include <linux/slab.h>

#include "skua_ib.h"

#define SKUA_IB_COUNTER(id, user)	SKUA_CNT_##id,
#define SKUA_IB_DESC(id, user)		{ .name = #user },

/* Pick the groups RDMA (port), PCIE and DEV (device) from the table. */
#define PORT_RDMA(x, id, user)		x(id, user)
#define PORT_ETH(x, id, user)
#define PORT_PCIE(x, id, user)
#define PORT_DEV(x, id, user)
#define DEVICE_RDMA(x, id, user)
#define DEVICE_ETH(x, id, user)
#define DEVICE_PCIE(x, id, user)	x(id, user)
#define DEVICE_DEV(x, id, user)		x(id, user)

static const struct rdma_stat_desc skua_ib_port_descs[] = {
#define X(id, group, user, text)	PORT_##group(SKUA_IB_DESC, id, user)
	SKUA_COUNTER_TABLE(X)
#undef X
};

static const u8 skua_ib_port_counters[] = {
#define X(id, group, user, text)	PORT_##group(SKUA_IB_COUNTER, id, user)
	SKUA_COUNTER_TABLE(X)
#undef X
};

static const struct rdma_stat_desc skua_ib_device_descs[] = {
#define X(id, group, user, text)	DEVICE_##group(SKUA_IB_DESC, id, user)
	SKUA_COUNTER_TABLE(X)
#undef X
};

static const u8 skua_ib_device_counters[] = {
#define X(id, group, user, text)	DEVICE_##group(SKUA_IB_COUNTER, id, user)
	SKUA_COUNTER_TABLE(X)
#undef X
};

static_assert(SKUA_CNT_COUNT <= U8_MAX);

static struct rdma_hw_stats *skua_ib_alloc_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(skua_ib_port_descs, ARRAY_SIZE(skua_ib_port_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static struct rdma_hw_stats *skua_ib_alloc_device_stats(struct ib_device *ibdev)
{
	return rdma_alloc_hw_stats_struct(skua_ib_device_descs, ARRAY_SIZE(skua_ib_device_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int skua_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
				int index)
{
	const u8 *which = port ? skua_ib_port_counters : skua_ib_device_counters;
	size_t n = port ? ARRAY_SIZE(skua_ib_port_counters) : ARRAY_SIZE(skua_ib_device_counters);
	size_t i;
	int err;

	u64 *value __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);

	if (!value)
		return -ENOMEM;
	err = skua_query_counters(to_skua_dev(ibdev)->core, value);
	if (err)
		return err;
	for (i = 0; i < n; i++)
		stats->value[i] = value[which[i]];
	return n;
}

const struct ib_device_ops skua_ib_counter_ops = {
	.alloc_hw_port_stats = skua_ib_alloc_port_stats,
	.alloc_hw_device_stats = skua_ib_alloc_device_stats,
	.get_hw_stats = skua_ib_get_hw_stats,
};
