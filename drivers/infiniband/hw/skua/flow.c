// SPDX-License-Identifier: GPL-2.0
/*
 * Flow steering: rules that direct frames to RAW_PACKET QPs and RSS QPs.
 */
#include <kunit/visibility.h>
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "skua_ib.h"

/**
 * struct skua_ib_flow - a steering rule
 * @ibflow: the RDMA core's part
 * @index: number of the rule in the device
 */
struct skua_ib_flow {
	struct ib_flow ibflow;
	u32 index;
};

/*
 * Add the bits of a specification to those of the ones before it, in whatever order they
 * come. The device requires value bits outside of the mask to be zero. Return: -EINVAL if
 * two specifications contradict each other, since no frame has both.
 */
static int skua_ib_flow_bits(void *val, void *mask, const void *from, const void *from_mask,
			     size_t len)
{
	const u8 *new = from, *new_mask = from_mask;
	u8 *old = val, *old_mask = mask;
	size_t i;

	for (i = 0; i < len; i++) {
		if ((old[i] ^ new[i]) & old_mask[i] & new_mask[i])
			return -EINVAL;
		old[i] |= new[i] & new_mask[i];
		old_mask[i] |= new_mask[i];
	}
	return 0;
}

#define SKUA_IB_FLOW_BITS(flow, field, spec, from)					\
	skua_ib_flow_bits(&(flow)->value.field, &(flow)->mask.field, &(spec)->val.from,	\
			  &(spec)->mask.from, sizeof((spec)->val.from))

static int skua_ib_flow_is(struct skua_flow *flow, u8 flag)
{
	const u8 ip = SKUA_FLOW_M_IPV4 | SKUA_FLOW_M_IPV6;

	flow->value.flags |= flag;
	flow->mask.flags |= flag;
	return (flow->value.flags & ip) == ip ? -EINVAL : 0;
}

static int skua_ib_flow_eth(struct skua_flow *flow, const struct ib_flow_spec_eth *spec)
{
	if (spec->mask.vlan_tag)
		skua_ib_flow_is(flow, SKUA_FLOW_M_VLAN);
	return SKUA_IB_FLOW_BITS(flow, dmac, spec, dst_mac) ?:
	       SKUA_IB_FLOW_BITS(flow, smac, spec, src_mac) ?:
	       SKUA_IB_FLOW_BITS(flow, ethertype, spec, ether_type) ?:
	       SKUA_IB_FLOW_BITS(flow, vlan_tci, spec, vlan_tag);
}

/* IPv4 addresses are in the last four bytes of the address fields. */
static int skua_ib_flow_ipv4(struct skua_flow *flow, const struct ib_flow_spec_ipv4 *spec)
{
	const size_t at = sizeof(flow->value.saddr) - sizeof(spec->val.src_ip);

	if (spec->mask.tos || spec->mask.ttl || spec->mask.flags)
		return -EOPNOTSUPP;
	return skua_ib_flow_is(flow, SKUA_FLOW_M_IPV4) ?:
	       SKUA_IB_FLOW_BITS(flow, saddr[at], spec, src_ip) ?:
	       SKUA_IB_FLOW_BITS(flow, daddr[at], spec, dst_ip) ?:
	       SKUA_IB_FLOW_BITS(flow, ip_proto, spec, proto);
}

static int skua_ib_flow_ipv6(struct skua_flow *flow, const struct ib_flow_spec_ipv6 *spec)
{
	if (spec->mask.flow_label || spec->mask.traffic_class || spec->mask.hop_limit)
		return -EOPNOTSUPP;
	return skua_ib_flow_is(flow, SKUA_FLOW_M_IPV6) ?:
	       SKUA_IB_FLOW_BITS(flow, saddr, spec, src_ip) ?:
	       SKUA_IB_FLOW_BITS(flow, daddr, spec, dst_ip) ?:
	       SKUA_IB_FLOW_BITS(flow, ip_proto, spec, next_hdr);
}

static int skua_ib_flow_l4(struct skua_flow *flow, const struct ib_flow_spec_tcp_udp *spec,
			   u8 proto)
{
	const u8 whole = 0xff;

	return skua_ib_flow_bits(&flow->value.ip_proto, &flow->mask.ip_proto, &proto, &whole,
				 sizeof(proto)) ?:
	       SKUA_IB_FLOW_BITS(flow, sport, spec, src_port) ?:
	       SKUA_IB_FLOW_BITS(flow, dport, spec, dst_port);
}

/* A rule is counted in at most one counter set. */
static int skua_ib_flow_count(struct skua_flow *flow, struct ib_counters *counters)
{
	u32 set;
	int err;

	if (flow->counter)
		return -EINVAL;
	err = skua_ib_flow_set(counters, &set);
	if (err)
		return err;
	flow->counter = cpu_to_le32(set);
	return 0;
}

static int skua_ib_flow_spec(struct skua_flow *flow, const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		return skua_ib_flow_eth(flow, &spec->eth);
	case IB_FLOW_SPEC_IPV4:
		return skua_ib_flow_ipv4(flow, &spec->ipv4);
	case IB_FLOW_SPEC_IPV6:
		return skua_ib_flow_ipv6(flow, &spec->ipv6);
	case IB_FLOW_SPEC_TCP:
		return skua_ib_flow_l4(flow, &spec->tcp_udp, IPPROTO_TCP);
	case IB_FLOW_SPEC_UDP:
		return skua_ib_flow_l4(flow, &spec->tcp_udp, IPPROTO_UDP);
	case IB_FLOW_SPEC_ACTION_TAG:
		flow->tag = cpu_to_le32(spec->flow_tag.tag_id);
		return 0;
	case IB_FLOW_SPEC_ACTION_COUNT:
		return skua_ib_flow_count(flow, spec->flow_count.counters);
	case IB_FLOW_SPEC_ACTION_DROP:
		flow->flags |= cpu_to_le32(SKUA_FLOW_DROP);
		return 0;
	}
	return -EOPNOTSUPP;
}

/* Priority and built-in matches of each type of rule. */
static int skua_ib_flow_type(struct skua_flow *flow, const struct ib_flow_attr *attr)
{
	u32 prio = SKUA_FLOW_PRIO_REST;

	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		prio = SKUA_FLOW_PRIO_USER + attr->priority;
		if (prio >= SKUA_FLOW_PRIO_NETDEV)
			return -EINVAL;
		break;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		break;
	case IB_FLOW_ATTR_MC_DEFAULT:
		/* The group bit of the destination MAC address. */
		flow->value.dmac[0] = 1;
		flow->mask.dmac[0] = 1;
		break;
	case IB_FLOW_ATTR_SNIFFER:
		prio = SKUA_FLOW_PRIO_USER;
		flow->flags |= cpu_to_le32(SKUA_FLOW_SNIFFER);
		break;
	default:
		return -EINVAL;
	}
	if (attr->type != IB_FLOW_ATTR_NORMAL && attr->num_of_specs)
		return -EINVAL;
	le32p_replace_bits(&flow->flags, prio, SKUA_FLOW_PRIO);
	return 0;
}

/**
 * skua_ib_flow_build() - translate a rule
 * @attr: the rule
 * @flow: filled in, except for the destination
 *
 * Return: 0, -EINVAL for a contradictory rule or a priority out of range, or -EOPNOTSUPP
 * for a rule with a field, mask or action that the device does not support.
 */
int skua_ib_flow_build(const struct ib_flow_attr *attr, struct skua_flow *flow)
{
	const union ib_flow_spec *spec = attr->flows;
	unsigned int i;
	int err;

	memset(flow, 0, sizeof(*flow));
	if (attr->flags & ~(u32)IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	err = skua_ib_flow_type(flow, attr);
	if (err)
		return err;
	for (i = 0; i < attr->num_of_specs; i++) {
		err = skua_ib_flow_spec(flow, spec);
		if (err)
			return err;
		spec = (const void *)spec + spec->size;
	}
	/* The device copies the frames of sniffer rules and goes on to other rules. */
	if (attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		flow->flags |= cpu_to_le32(SKUA_FLOW_SNIFFER);
	if (flow->flags & cpu_to_le32(SKUA_FLOW_DROP) &&
	    flow->flags & cpu_to_le32(SKUA_FLOW_SNIFFER))
		return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_flow_build);

static struct ib_flow *skua_ib_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
					   struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct skua_flow hw;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "create_flow: QP %#x of type %d, must be RAW_PACKET",
					      ibqp->qp_num, ibqp->qp_type));
	if (attr->port != 1)
		return ERR_PTR(skua_ib_refuse(dev, -EINVAL, "create_flow: port %u, must be 1",
					      attr->port));
	err = skua_ib_flow_build(attr, &hw);
	if (err)
		return ERR_PTR(skua_ib_refuse(dev, err,
					      "create_flow: type %d, flags %#x, priority %u, %u specs: %s",
					      attr->type, attr->flags, attr->priority,
					      attr->num_of_specs, err == -EOPNOTSUPP ?
					      "a field, mask or action is not supported" :
					      "contradictory, or priority above 0x7fff"));
	if (!(hw.flags & cpu_to_le32(SKUA_FLOW_DROP))) {
		hw.dest = cpu_to_le32(qp->is_rss ? qp->rss : qp->core.obj.num);
		hw.flags |= cpu_to_le32(qp->is_rss ? SKUA_FLOW_RSS : 0);
	}

	struct skua_ib_flow *flow __free(kfree) = kzalloc_obj(*flow, GFP_KERNEL_ACCOUNT);

	if (!flow)
		return ERR_PTR(-ENOMEM);
	err = skua_flow_create(dev->core, &flow->index, &hw);
	if (err)
		return ERR_PTR(skua_ib_refuse(dev, err,
					      "create_flow: adding the rule: %d", err));
	return &no_free_ptr(flow)->ibflow;
}

static int skua_ib_destroy_flow(struct ib_flow *ibflow)
{
	struct skua_ib_flow *flow = container_of(ibflow, struct skua_ib_flow, ibflow);

	skua_flow_destroy(to_skua_dev(ibflow->device)->core, flow->index);
	kfree(flow);
	return 0;
}

const struct ib_device_ops skua_ib_flow_ops = {
	.create_flow = skua_ib_create_flow,
	.destroy_flow = skua_ib_destroy_flow,
};
