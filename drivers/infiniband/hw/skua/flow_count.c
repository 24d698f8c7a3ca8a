// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of steering rules: a verbs counters object has a counter set of the device,
 * which the rules that name it share, from the first of them on. Anybody may make such
 * objects, but rules need CAP_NET_RAW, and the device has few sets.
 */
#include "skua_ib.h"

/**
 * struct skua_ib_counters - verbs counters
 * @ibcounters: the core's part
 * @lock: serialises the making of @set
 * @set: the device's number, SKUA_NO_SET before the first rule. Stays: what was counted
 *	is read also between two rules.
 */
struct skua_ib_counters {
	struct ib_counters ibcounters;
	struct mutex lock; /* see above */
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
 * @set: its number; taken from the device if the object has none yet
 *
 * Return: 0, -ENOSPC, or another negative errno.
 */
int skua_ib_flow_set(struct ib_counters *ibcounters, u32 *set)
{
	struct skua_ib_counters *counters = to_skua_counters(ibcounters);
	int err;

	guard(mutex)(&counters->lock);
	*set = counters->set;
	if (*set != SKUA_NO_SET)
		return 0;
	err = skua_set_create(to_skua_dev(ibcounters->device)->core, set);
	if (err)
		return err;
	WRITE_ONCE(counters->set, *set);
	return 0;
}

static int skua_ib_create_counters(struct ib_counters *ibcounters,
				   struct uverbs_attr_bundle *attrs)
{
	struct skua_ib_counters *counters = to_skua_counters(ibcounters);

	mutex_init(&counters->lock);
	counters->set = SKUA_NO_SET;
	return 0;
}

static int skua_ib_destroy_counters(struct ib_counters *ibcounters)
{
	u32 set = to_skua_counters(ibcounters)->set;

	if (set != SKUA_NO_SET)
		skua_set_destroy(to_skua_dev(ibcounters->device)->core, set);
	return 0;
}

static int skua_ib_read_counters(struct ib_counters *ibcounters,
				 struct ib_counters_read_attr *attr,
				 struct uverbs_attr_bundle *attrs)
{
	u64 *value __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);
	u32 n = min_t(u32, attr->ncounters, ARRAY_SIZE(skua_ib_flow_values));
	u32 set = READ_ONCE(to_skua_counters(ibcounters)->set);
	int err;

	if (!value)
		return -ENOMEM;
	/* The RDMA core has seen that a rule counts here; it may just be in the making. */
	if (set == SKUA_NO_SET)
		return -EINVAL;
	err = skua_query_set(to_skua_dev(ibcounters->device)->core, set, value);
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
