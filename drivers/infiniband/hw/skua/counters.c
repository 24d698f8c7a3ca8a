// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware counters. The counters of the port are those of the RDMA engine, the counters
 * of the device those of PCIe and of invalid use of the device interface. QPs can be
 * bound to counter sets of their own.
 *
 * The device-wide counters include what is counted in sets. As the RDMA core adds the
 * values of all sets to those of the port, the port's values reported here are those of
 * QPs without a set.
 */
#include <linux/slab.h>

#include "skua_ib.h"

#define SKUA_IB_COUNTER(id, user)	SKUA_CNT_##id,
#define SKUA_IB_DESC(id, user)		{ .name = #user },

/* Select the groups RDMA (port), PCIE and DEV (device) from the table. */
#define PORT_RDMA(x, id, user)		x(id, user)
#define PORT_ETH(x, id, user)
#define PORT_PCIE(x, id, user)
#define PORT_DEV(x, id, user)
#define DEVICE_RDMA(x, id, user)
#define DEVICE_ETH(x, id, user)
#define DEVICE_PCIE(x, id, user)	x(id, user)
#define DEVICE_DEV(x, id, user)		x(id, user)

/*
 * Optional counters: disabled by default; they start at zero when they are enabled. Other
 * RoCE drivers use the same names.
 */
#define SKUA_IB_OPTIONAL(x)				\
	x(NP_ECN_MARKED, cc_rx_ce_pkts)			\
	x(RP_CNP_HANDLED, cc_rx_cnp_pkts)		\
	x(NP_CNP_SENT, cc_tx_cnp_pkts)			\
	x(RDMA_TX_PKTS, rdma_tx_packets)		\
	x(RDMA_TX_BYTES, rdma_tx_bytes)			\
	x(RDMA_RX_PKTS, rdma_rx_packets)		\
	x(RDMA_RX_BYTES, rdma_rx_bytes)

static const struct rdma_stat_desc skua_ib_port_descs[] = {
#define X(id, group, user, text)	PORT_##group(SKUA_IB_DESC, id, user)
	SKUA_COUNTER_TABLE(X)
#undef X
#define X(id, user)			{ .name = #user, .flags = IB_STAT_FLAG_OPTIONAL },
	SKUA_IB_OPTIONAL(X)
#undef X
};

static const u8 skua_ib_port_counters[] = {
#define X(id, group, user, text)	PORT_##group(SKUA_IB_COUNTER, id, user)
	SKUA_COUNTER_TABLE(X)
#undef X
#define X(id, user)			SKUA_CNT_##id,
	SKUA_IB_OPTIONAL(X)
#undef X
};

static_assert(ARRAY_SIZE(skua_ib_port_descs) == ARRAY_SIZE(skua_ib_port_counters));

/* Counters that a counter set has. */
static const bool skua_ib_in_set[SKUA_CNT_COUNT] = {
#define X(id)				[SKUA_CNT_##id] = true,
	SKUA_COUNTER_SET_TABLE(X)
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

static bool skua_ib_is_optional(size_t index)
{
	return skua_ib_port_descs[index].flags & IB_STAT_FLAG_OPTIONAL;
}

static struct rdma_hw_stats *skua_ib_alloc_port_stats(struct ib_device *ibdev, u32 port)
{
	struct rdma_hw_stats *stats;
	size_t i;

	stats = rdma_alloc_hw_stats_struct(skua_ib_port_descs, ARRAY_SIZE(skua_ib_port_descs),
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	if (!stats)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(skua_ib_port_descs); i++)
		if (skua_ib_is_optional(i))
			__set_bit(i, stats->is_disabled);
	return stats;
}

static struct rdma_hw_stats *skua_ib_alloc_device_stats(struct ib_device *ibdev)
{
	return rdma_alloc_hw_stats_struct(skua_ib_device_descs, ARRAY_SIZE(skua_ib_device_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/*
 * Values of QPs without a set in @value, of all QPs in @scratch. Sets are read first, so
 * that the difference cannot be negative.
 */
static int skua_ib_port_values(struct skua_ib_dev *dev, u64 *value, u64 *scratch)
{
	unsigned long set;
	unsigned int i;
	void *entry;
	int err;

	lockdep_assert_held(&dev->cnt_lock);
	u64 *sets __free(kfree) = kmemdup(dev->retired, sizeof(dev->retired), GFP_KERNEL);

	if (!sets)
		return -ENOMEM;
	xa_for_each(&dev->sets, set, entry) {
		err = skua_query_set(dev->core, set, scratch);
		if (err)
			return err;
		for (i = 0; i < SKUA_CNT_COUNT; i++)
			sets[i] += scratch[i];
	}
	err = skua_query_counters(dev->core, value);
	if (err)
		return err;
	/* Optional counters include sets. */
	memcpy(scratch, value, sizeof(dev->retired));
	for (i = 0; i < SKUA_CNT_COUNT; i++)
		value[i] -= sets[i];
	return 0;
}

static int skua_ib_get_port_stats(struct skua_ib_dev *dev, struct rdma_hw_stats *stats)
{
	u64 *value __free(kfree) = kcalloc(2 * SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);
	u64 *all = value + SKUA_CNT_COUNT;
	size_t i;
	int err;

	if (!value)
		return -ENOMEM;
	guard(mutex)(&dev->cnt_lock);
	err = skua_ib_port_values(dev, value, all);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(skua_ib_port_counters); i++) {
		u8 which = skua_ib_port_counters[i];

		if (!skua_ib_is_optional(i))
			stats->value[i] = value[which];
		else if (!test_bit(i, stats->is_disabled))
			stats->value[i] = all[which] - dev->optional_base[which];
	}
	return ARRAY_SIZE(skua_ib_port_counters);
}

static int skua_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
				int index)
{
	struct skua_ib_dev *dev = to_skua_dev(ibdev);
	size_t i;
	int err;

	if (port)
		return skua_ib_get_port_stats(dev, stats);

	u64 *value __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);

	if (!value)
		return -ENOMEM;
	err = skua_query_counters(dev->core, value);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(skua_ib_device_counters); i++)
		stats->value[i] = value[skua_ib_device_counters[i]];
	return ARRAY_SIZE(skua_ib_device_counters);
}

static int skua_ib_modify_hw_stat(struct ib_device *ibdev, u32 port, unsigned int index,
				  bool enable)
{
	struct skua_ib_dev *dev = to_skua_dev(ibdev);
	u8 which;
	int err;

	if (!port || index >= ARRAY_SIZE(skua_ib_port_counters) || !skua_ib_is_optional(index))
		return skua_ib_refuse(dev, -EINVAL,
				      "modify_hw_stat: counter %u of port %u is not optional",
				      index, port);
	if (!enable)
		return 0;

	u64 *value __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);

	if (!value)
		return -ENOMEM;
	guard(mutex)(&dev->cnt_lock);
	err = skua_query_counters(dev->core, value);
	if (err)
		return err;
	which = skua_ib_port_counters[index];
	dev->optional_base[which] = value[which];
	return 0;
}

const struct ib_device_ops skua_ib_counter_ops = {
	.alloc_hw_port_stats = skua_ib_alloc_port_stats,
	.alloc_hw_device_stats = skua_ib_alloc_device_stats,
	.get_hw_stats = skua_ib_get_hw_stats,
	.modify_hw_stat = skua_ib_modify_hw_stat,
};

/* --- counters of some QPs --- */

/*
 * The same list as the port's, because the RDMA core adds the values by index. Counters
 * that sets do not have are disabled.
 */
static struct rdma_hw_stats *skua_ib_counter_alloc_stats(struct rdma_counter *counter)
{
	struct rdma_hw_stats *stats = skua_ib_alloc_port_stats(counter->device, counter->port);
	size_t i;

	if (!stats)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(skua_ib_port_counters); i++)
		if (!skua_ib_in_set[skua_ib_port_counters[i]])
			__set_bit(i, stats->is_disabled);
	return stats;
}

static int skua_ib_counter_update(struct rdma_counter *counter)
{
	u64 *value __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);
	size_t i;
	int err;

	if (!value)
		return -ENOMEM;
	err = skua_query_set(to_skua_dev(counter->device)->core, counter->id, value);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(skua_ib_port_counters); i++)
		if (!skua_ib_is_optional(i))
			counter->stats->value[i] = value[skua_ib_port_counters[i]];
	return 0;
}

static int skua_ib_set_get(struct skua_ib_dev *dev, u32 *set)
{
	int err;

	guard(mutex)(&dev->cnt_lock);
	err = skua_set_create(dev->core, set);
	if (err)
		return err;
	err = xa_err(xa_store(&dev->sets, *set, xa_mk_value(*set), GFP_KERNEL));
	if (err)
		skua_set_destroy(dev->core, *set);
	return err;
}

static void skua_ib_set_put(struct skua_ib_dev *dev, u32 set)
{
	lockdep_assert_held(&dev->cnt_lock);
	xa_erase(&dev->sets, set);
	skua_set_destroy(dev->core, set);
}

/*
 * The RDMA core has read the set for the last time, and adds what it has then to the values
 * of the port from now on. The set is not read again: a read can fail, here and in the RDMA
 * core, and what one of them has and the other one not would be lost, or counted twice.
 */
static int skua_ib_counter_dealloc(struct rdma_counter *counter)
{
	struct skua_ib_dev *dev = to_skua_dev(counter->device);
	size_t i;

	if (counter->id == SKUA_NO_SET)
		return 0;
	guard(mutex)(&dev->cnt_lock);
	for (i = 0; i < ARRAY_SIZE(skua_ib_port_counters); i++)
		if (!skua_ib_is_optional(i))
			dev->retired[skua_ib_port_counters[i]] += counter->stats->value[i];
	skua_ib_set_put(dev, counter->id);
	return 0;
}

static int skua_ib_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	bool fresh = !counter->id;
	u32 set = counter->id;
	int err;

	if (qp->is_rss)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "counter_bind_qp: QP %#x has an indirection table",
				      ibqp->qp_num);
	if (fresh) {
		err = skua_ib_set_get(dev, &set);
		if (err)
			return err;
	}
	err = skua_qp_count(dev->core, &qp->core, set);
	if (err) {
		if (fresh) {
			guard(mutex)(&dev->cnt_lock);
			skua_ib_set_put(dev, set);
		}
		return err;
	}
	counter->id = set;
	ibqp->counter = counter;
	return 0;
}

static int skua_ib_counter_unbind(struct ib_qp *ibqp, u32 port)
{
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	int err;

	err = skua_qp_count(to_skua_dev(ibqp->device)->core, &qp->core, SKUA_NO_SET);
	if (err)
		return err;
	ibqp->counter = NULL;
	return 0;
}

#ifndef SKUA_COMPAT_COUNTER
/* The counter set is allocated when the first QP is bound. */
static void skua_ib_counter_init(struct rdma_counter *counter)
{
	counter->id = SKUA_NO_SET;
}

struct skua_ib_counter {
	struct rdma_counter counter;
};
#endif

const struct ib_device_ops skua_ib_qp_counter_ops = {
	.counter_bind_qp = skua_ib_counter_bind,
	.counter_unbind_qp = skua_ib_counter_unbind,
	.counter_dealloc = skua_ib_counter_dealloc,
	.counter_alloc_stats = skua_ib_counter_alloc_stats,
	.counter_update_stats = skua_ib_counter_update,
#ifndef SKUA_COMPAT_COUNTER
	.counter_init = skua_ib_counter_init,

	INIT_RDMA_OBJ_SIZE(rdma_counter, skua_ib_counter, counter),
#endif
};
