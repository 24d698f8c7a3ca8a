// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of steering rules: a verbs counters object is a counter set of the
 * device, which the rules that name it share.
 */
#include "skua_ib.h"

/**
 * struct skua_ib_counters - verbs counters
 * @ibcounters: the core's part
 * @set: the device's number
 */
struct skua_ib_counters {
	struct ib_counters ibcounters;
	u32 set;
};

/* What a read returns, in this order: user space knows which its caller wants. */
static const u8 skua_ib_flow_values[] = {
	[IB_COUNTER_PACKETS] = SKUA_CNT_RDMA_RX_PKTS,
	[IB_COUNTER_BYTES] = SKUA_CNT_RDMA_RX_BYTES,
};

static struct skua_ib_counters *to_skua_counters(struct ib_counters *ibcounters)
{
	return container_of(ibcounters, struct skua_ib_counters, ibcounters);
}

/**
 * skua_ib_flow_set() - the counter set of a counters object
 * @ibcounters: the object
 *
 * Return: its number.
 */
u32 skua_ib_flow_set(struct ib_counters *ibcounters)
{
	return to_skua_counters(ibcounters)->set;
}

static int skua_ib_create_counters(struct ib_counters *ibcounters,
				   struct uverbs_attr_bundle *attrs)
{
	return skua_set_create(to_skua_dev(ibcounters->device)->core,
			       &to_skua_counters(ibcounters)->set);
}

static int skua_ib_destroy_counters(struct ib_counters *ibcounters)
{
	skua_set_destroy(to_skua_dev(ibcounters->device)->core,
			 to_skua_counters(ibcounters)->set);
	return 0;
}

static int skua_ib_read_counters(struct ib_counters *ibcounters,
				 struct ib_counters_read_attr *attr,
				 struct uverbs_attr_bundle *attrs)
{
	u64 *value __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);
	u32 n = min_t(u32, attr->ncounters, ARRAY_SIZE(skua_ib_flow_values));
	int err;

	if (!value)
		return -ENOMEM;
	err = skua_query_set(to_skua_dev(ibcounters->device)->core,
			     to_skua_counters(ibcounters)->set, value);
	if (err)
		return err;
	while (n--)
		attr->counters_buff[n] = value[skua_ib_flow_values[n]];
	return 0;
}

const struct ib_device_ops skua_ib_flow_count_ops = {
	.create_counters = skua_ib_create_counters,
	.destroy_counters = skua_ib_destroy_counters,
	.read_counters = skua_ib_read_counters,

	INIT_RDMA_OBJ_SIZE(ib_counters, skua_ib_counters, ibcounters),
};
