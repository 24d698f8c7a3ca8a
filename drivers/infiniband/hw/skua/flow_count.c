// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of steering rules. A verbs counters object uses a counter set of the device,
 * which all rules that refer to the object share. The set is allocated with the first
 * rule and not with the object: rules need CAP_NET_RAW, objects need no privilege, and
 * the device has few sets.
 */
#include "skua_ib.h"

/**
 * struct skua_ib_counters - verbs counters
 * @ibcounters: the RDMA core's part
 * @lock: serializes the allocation of @set
 * @set: number of the counter set, SKUA_NO_SET before the first rule. Freed with the
 *	object and not with the last rule, so that its values can still be read.
 */
struct skua_ib_counters {
	struct ib_counters ibcounters;
	struct mutex lock; /* see above */
	u32 set;
};

/* Counters in the order in which a read returns them; the provider selects from them. */
static const u8 skua_ib_flow_values[] = {
	[IB_COUNTER_PACKETS] = SKUA_CNT_RDMA_RX_PKTS,
	[IB_COUNTER_BYTES] = SKUA_CNT_RDMA_RX_BYTES,
};

static struct skua_ib_counters *to_skua_counters(struct ib_counters *ibcounters)
{
	return container_of(ibcounters, struct skua_ib_counters, ibcounters);
}

/**
 * skua_ib_flow_set() - get the counter set of a counters object
 * @ibcounters: the object
 * @set: filled in: number of the set, which is allocated if the object has none yet
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
	/* The RDMA core has checked that there is a rule, but that may be incomplete yet. */
	if (set == SKUA_NO_SET)
		return skua_ib_refuse(to_skua_dev(ibcounters->device), -EINVAL,
				      "read_counters: no rule counts in them yet");
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
