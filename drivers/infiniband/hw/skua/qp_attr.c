// SPDX-License-Identifier: GPL-2.0
/*
 * Translation of QP attributes between verbs and the device interface.
 */
#include <kunit/visibility.h>
#include <linux/etherdevice.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "skua_ib.h"

/* Attribute mask bits of verbs and of the device. */
static const struct {
	u32 ib;
	u32 hw;
} skua_ib_attrs[] = {
	{ IB_QP_STATE, SKUA_QP_M_STATE },
	{ IB_QP_EN_SQD_ASYNC_NOTIFY, SKUA_QP_M_SQD_NOTIFY },
	{ IB_QP_ACCESS_FLAGS, SKUA_QP_M_ACCESS },
	{ IB_QP_PKEY_INDEX, SKUA_QP_M_PKEY },
	{ IB_QP_PORT, SKUA_QP_M_PORT },
	{ IB_QP_QKEY, SKUA_QP_M_QKEY },
	{ IB_QP_AV, SKUA_QP_M_AV },
	{ IB_QP_PATH_MTU, SKUA_QP_M_PATH_MTU },
	{ IB_QP_TIMEOUT, SKUA_QP_M_ACK_TIMEOUT },
	{ IB_QP_RETRY_CNT, SKUA_QP_M_RETRY_CNT },
	{ IB_QP_RNR_RETRY, SKUA_QP_M_RNR_RETRY },
	{ IB_QP_RQ_PSN, SKUA_QP_M_RQ_PSN },
	{ IB_QP_MAX_QP_RD_ATOMIC, SKUA_QP_M_MAX_RD_ATOMIC },
	{ IB_QP_MIN_RNR_TIMER, SKUA_QP_M_MIN_RNR_TIMER },
	{ IB_QP_SQ_PSN, SKUA_QP_M_SQ_PSN },
	{ IB_QP_MAX_DEST_RD_ATOMIC, SKUA_QP_M_MAX_DEST_RD_ATOMIC },
	{ IB_QP_DEST_QPN, SKUA_QP_M_DEST_QPN },
	{ IB_QP_RATE_LIMIT, SKUA_QP_M_RATE },
};

/*
 * Remote access rights of verbs and of the device. Programs request them all, whatever the
 * device can do: a right without its capability is left out, and the device answers such
 * requests of the peer with a NAK.
 */
static const struct {
	int ib;
	u32 hw;
	u64 cap;
} skua_ib_qp_rights[] = {
	{ IB_ACCESS_REMOTE_WRITE, SKUA_ACCESS_REMOTE_WRITE },
	{ IB_ACCESS_REMOTE_READ, SKUA_ACCESS_REMOTE_READ },
	{ IB_ACCESS_REMOTE_ATOMIC, SKUA_ACCESS_REMOTE_ATOMIC },
	{ IB_ACCESS_FLUSH_GLOBAL, SKUA_ACCESS_FLUSH_GLOBAL, SKUA_CAP_FLUSH },
	{ IB_ACCESS_FLUSH_PERSISTENT, SKUA_ACCESS_FLUSH_PERSISTENT, SKUA_CAP_FLUSH },
};

/* The device uses the numbers of the verbs states. */
static_assert(IB_QPS_RESET == (int)SKUA_QP_RESET && IB_QPS_INIT == (int)SKUA_QP_INIT &&
	      IB_QPS_RTR == (int)SKUA_QP_RTR && IB_QPS_RTS == (int)SKUA_QP_RTS &&
	      IB_QPS_SQD == (int)SKUA_QP_SQD && IB_QPS_SQE == (int)SKUA_QP_SQE &&
	      IB_QPS_ERR == (int)SKUA_QP_ERR);

/**
 * skua_ib_attr_mask() - translate an attribute mask
 * @ib_mask: IB_QP_*
 * @mask: SKUA_QP_M_*
 *
 * Return: 0, or -EOPNOTSUPP for attributes that the device does not support (alternate
 * path, resize).
 */
int skua_ib_attr_mask(int ib_mask, u32 *mask)
{
	u32 left = ib_mask & ~(u32)IB_QP_CUR_STATE;
	unsigned int i;

	*mask = 0;
	for (i = 0; i < ARRAY_SIZE(skua_ib_attrs); i++) {
		if (!(left & skua_ib_attrs[i].ib))
			continue;
		*mask |= skua_ib_attrs[i].hw;
		left &= ~skua_ib_attrs[i].ib;
	}
	return left ? -EOPNOTSUPP : 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_attr_mask);

static int skua_ib_attr_refuse(const struct ib_device *ibdev, const char *name, u32 value,
			       u32 least, u32 most)
{
	ibdev_dbg(ibdev, "modify_qp: %s %#x, must be %#x to %#x\n", name, value, least, most);
	return -EINVAL;
}

/**
 * skua_ib_attr_check() - check the ranges of attribute values
 * @ibdev: the device, for messages
 * @lim: its limits
 * @attr: values
 * @mask: which of them to check, IB_QP_*
 * @active: the port's MTU
 *
 * Return: 0, or -EINVAL.
 */
int skua_ib_attr_check(const struct ib_device *ibdev, const struct skua_limits *lim,
		       const struct ib_qp_attr *attr, int mask, enum ib_mtu active)
{
	const struct {
		int mask;
		const char *name;
		u32 value;
		u32 least;
		u32 most;
	} check[] = {
		{ IB_QP_PORT, "port", attr->port_num, 1, 1 },
		{ IB_QP_PKEY_INDEX, "P_Key index", attr->pkey_index, 0, 0 },
		{ IB_QP_PATH_MTU, "path MTU", attr->path_mtu, IB_MTU_256,
		  min_t(u32, lim->path_mtu_max, active) },
		{ IB_QP_TIMEOUT, "timeout", attr->timeout, 0, 31 },
		{ IB_QP_RETRY_CNT, "retry count", attr->retry_cnt, 0, 7 },
		{ IB_QP_RNR_RETRY, "RNR retry count", attr->rnr_retry, 0, 7 },
		{ IB_QP_MIN_RNR_TIMER, "RNR timer", attr->min_rnr_timer, 0, 31 },
		{ IB_QP_MAX_QP_RD_ATOMIC, "outstanding READs", attr->max_rd_atomic, 0,
		  lim->max_rd_atomic },
		{ IB_QP_MAX_DEST_RD_ATOMIC, "READs of the peer", attr->max_dest_rd_atomic, 0,
		  lim->max_rd_atomic },
		{ IB_QP_DEST_QPN, "destination QP", attr->dest_qp_num, 0, 0xffffff },
		{ IB_QP_RQ_PSN, "receive PSN", attr->rq_psn, 0, 0xffffff },
		{ IB_QP_SQ_PSN, "send PSN", attr->sq_psn, 0, 0xffffff },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(check); i++)
		if (mask & check[i].mask &&
		    (check[i].value < check[i].least || check[i].value > check[i].most))
			return skua_ib_attr_refuse(ibdev, check[i].name, check[i].value,
						   check[i].least, check[i].most);
	if (mask & IB_QP_ACCESS_FLAGS && attr->qp_access_flags & ~IB_ACCESS_SUPPORTED)
		return skua_ib_attr_refuse(ibdev, "access", attr->qp_access_flags, 0,
					   IB_ACCESS_SUPPORTED);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_attr_check);

/**
 * skua_ib_rate_types() - QP types that support rate limits
 * @lim: limits of the device
 *
 * Return: mask of BIT(enum ib_qp_type).
 */
u32 skua_ib_rate_types(const struct skua_limits *lim)
{
	u32 types = 0;

	if (!(lim->caps & SKUA_CAP_RATE_LIMIT))
		return 0;
	if (lim->caps & SKUA_CAP_RC)
		types |= BIT(IB_QPT_RC);
	if (lim->caps & SKUA_CAP_UC)
		types |= BIT(IB_QPT_UC);
	if (lim->caps & SKUA_CAP_UD)
		types |= BIT(IB_QPT_UD);
	if (lim->caps & SKUA_CAP_XRC)
		types |= BIT(IB_QPT_XRC_INI);
	if (lim->caps & SKUA_CAP_ETH)
		types |= BIT(IB_QPT_RAW_PACKET);
	return types;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_rate_types);

/**
 * skua_ib_rate_check() - check a rate limit
 * @lim: limits of the device
 * @type: type of the QP
 * @new: state after the change; must be neither RESET nor ERR
 * @rate: kbit/s, 0: no limit
 * @burst: bytes, 0: the device's default; must be 0 without a limit
 *
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int skua_ib_rate_check(const struct skua_limits *lim, enum ib_qp_type type,
		       enum ib_qp_state new, u32 rate, u32 burst)
{
	/* Driver-specific QP types are larger than the number of bits. */
	if (type > IB_QPT_XRC_TGT || !(skua_ib_rate_types(lim) & BIT(type)))
		return -EOPNOTSUPP;
	if (new == IB_QPS_RESET || new == IB_QPS_ERR || burst > lim->rate_burst_max)
		return -EINVAL;
	if (!rate)
		return burst ? -EINVAL : 0;
	return rate < lim->rate_min || rate > lim->rate_max ? -EINVAL : 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_rate_check);

static u32 skua_ib_qp_access(const struct skua_limits *lim, int flags)
{
	unsigned int i;
	u32 hw = 0;

	for (i = 0; i < ARRAY_SIZE(skua_ib_qp_rights); i++)
		if (flags & skua_ib_qp_rights[i].ib && !(skua_ib_qp_rights[i].cap & ~lim->caps))
			hw |= skua_ib_qp_rights[i].hw;
	return hw;
}

/* Both GIDs must be of one address family, and the next hop must match the destination. */
static bool skua_ib_path_ok(const struct ib_global_route *grh, const u8 *dmac)
{
	struct in6_addr *dgid = (struct in6_addr *)grh->dgid.raw;
	bool v4 = rdma_gid_attr_network_type(grh->sgid_attr) == RDMA_NETWORK_IPV4;

	return v4 == ipv6_addr_v4mapped(dgid) && !ipv6_addr_any(dgid) &&
	       !is_zero_ether_addr(dmac) &&
	       is_multicast_ether_addr(dmac) == rdma_is_multicast_addr(dgid);
}

/**
 * skua_ib_av_build() - translate the attributes of a path
 * @lim: limits of the device
 * @ah: the path, with its GID entry and the next hop's MAC address resolved
 * @qpn: local QP, from which the UDP source port is derived; 0 for an address handle
 * @dest_qpn: remote QP
 * @av: filled in
 *
 * Return: 0 or -EINVAL.
 */
int skua_ib_av_build(const struct skua_limits *lim, const struct rdma_ah_attr *ah, u32 qpn,
		     u32 dest_qpn, struct skua_av *av)
{
	const struct ib_global_route *grh;
	u32 label, sport = 0, priority = skua_sl_priority(rdma_ah_get_sl(ah));

	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE || !(rdma_ah_get_ah_flags(ah) & IB_AH_GRH) ||
	    rdma_ah_get_port_num(ah) != 1 || priority > SKUA_SL_PRIORITY_MAX)
		return -EINVAL;
	grh = rdma_ah_read_grh(ah);
	if (!grh->sgid_attr || grh->sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP ||
	    grh->sgid_attr->index >= lim->max_gids || !skua_ib_path_ok(grh, ah->roce.dmac))
		return -EINVAL;

	label = grh->flow_label & IB_GRH_FLOWLABEL_MASK;
	/* With neither the device derives the UDP source port from the pair of QPs. */
	if (label || qpn)
		sport = rdma_get_udp_sport(label, qpn, dest_qpn);
	skua_av_set(av, grh->dgid.raw, ah->roce.dmac, grh->sgid_attr->index);
	skua_av_ip_set(av, label, priority, grh->traffic_class,
		       grh->hop_limit ?: IPV6_DEFAULT_HOPLIMIT, sport);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_av_build);

static u32 skua_ib_retry_bits(const struct ib_qp_attr *attr, int mask)
{
	u32 v = 0;

	if (mask & IB_QP_RETRY_CNT)
		v |= u32_encode_bits(attr->retry_cnt, SKUA_ATTR_RETRY_CNT);
	if (mask & IB_QP_RNR_RETRY)
		v |= u32_encode_bits(attr->rnr_retry, SKUA_ATTR_RNR_RETRY);
	if (mask & IB_QP_TIMEOUT)
		v |= u32_encode_bits(attr->timeout, SKUA_ATTR_ACK_TIMEOUT);
	if (mask & IB_QP_MIN_RNR_TIMER)
		v |= u32_encode_bits(attr->min_rnr_timer, SKUA_ATTR_MIN_RNR_TIMER);
	if (mask & IB_QP_PATH_MTU)
		v |= u32_encode_bits(attr->path_mtu, SKUA_ATTR_PATH_MTU);
	return v;
}

static u32 skua_ib_rights_bits(const struct skua_limits *lim, const struct ib_qp_attr *attr,
			       int mask)
{
	u32 v = 0;

	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		v |= u32_encode_bits(attr->max_rd_atomic, SKUA_ATTR_MAX_RD_ATOMIC);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		v |= u32_encode_bits(attr->max_dest_rd_atomic, SKUA_ATTR_MAX_DEST_RD_ATOMIC);
	if (mask & IB_QP_ACCESS_FLAGS)
		v |= u32_encode_bits(skua_ib_qp_access(lim, attr->qp_access_flags),
				     SKUA_ATTR_ACCESS);
	return v;
}

static u32 skua_ib_state_bits(const struct ib_qp_attr *attr, int mask)
{
	u32 v = 0;

	if (mask & IB_QP_STATE)
		v |= u32_encode_bits(attr->qp_state, SKUA_ATTR_STATE);
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
		v |= SKUA_ATTR_SQD_NOTIFY;
	return v;
}

/**
 * skua_ib_attr_build() - translate attribute values
 * @qp: the QP
 * @attr: values, checked
 * @mask: which of them to translate, IB_QP_*
 * @out: filled in; all else is zero
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_attr_build(struct skua_ib_qp *qp, const struct ib_qp_attr *attr, int mask,
		       struct skua_qp_attr *out)
{
	u32 dest = mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->dest_qpn;
	const struct skua_limits *lim = skua_ib_qp_dev(qp)->lim;

	memset(out, 0, sizeof(*out));
	out->retry = cpu_to_le32(skua_ib_retry_bits(attr, mask));
	out->rights = cpu_to_le32(skua_ib_rights_bits(lim, attr, mask));
	out->state = cpu_to_le32(skua_ib_state_bits(attr, mask));
	if (mask & IB_QP_DEST_QPN)
		out->dest_qpn = cpu_to_le32(dest);
	if (mask & IB_QP_SQ_PSN)
		out->sq_psn = cpu_to_le32(attr->sq_psn);
	if (mask & IB_QP_RQ_PSN)
		out->rq_psn = cpu_to_le32(attr->rq_psn);
	if (mask & IB_QP_QKEY)
		out->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_PKEY_INDEX)
		out->pkey = le32_encode_bits(attr->pkey_index, SKUA_ATTR_PKEY_INDEX);
	if (mask & IB_QP_RATE_LIMIT)
		out->rate_kbps = cpu_to_le32(attr->rate_limit);
	if (mask & IB_QP_AV)
		return skua_ib_av_build(lim, &attr->ah_attr, qp->core.obj.num, dest, &out->av);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_attr_build);

/* ECE options, the vendor features that they enable, and the capabilities they need. */
static const struct {
	u32 option;
	u32 vendor;
	u64 caps;
} skua_ib_ece[] = {
	{ SKUA_ECE_MASKED_ATOMIC, SKUA_VENDOR_MASKED_ATOMIC,
	  SKUA_CAP_MASKED_ATOMIC | SKUA_CAP_VENDOR_OFF },
	{ SKUA_ECE_SELECTIVE_REPEAT, 0, SKUA_CAP_SR },
};

static bool skua_ib_has_ece(enum ib_qp_type type)
{
	return type == IB_QPT_RC || type == IB_QPT_XRC_INI || type == IB_QPT_XRC_TGT;
}

/**
 * skua_ib_ece_options() - ECE options that the device supports
 * @lim: limits of the device
 *
 * Return: mask of SKUA_ECE_*.
 */
u32 skua_ib_ece_options(const struct skua_limits *lim)
{
	u32 options = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(skua_ib_ece); i++)
		if (!(skua_ib_ece[i].caps & ~lim->caps))
			options |= skua_ib_ece[i].option;
	return options;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_ece_options);

/**
 * skua_ib_ece_build() - disable the vendor features that were not negotiated
 * @lim: limits of the device
 * @type: type of the QP
 * @options: negotiated options
 * @in: the transition to RTR, to which the attribute is added
 *
 * Selective repeat is no vendor feature: see skua_ib_ext_build().
 *
 * Return: 0, -EINVAL for a QP type without options, or -EOPNOTSUPP for unknown options.
 */
int skua_ib_ece_build(const struct skua_limits *lim, enum ib_qp_type type, u32 options,
		      struct skua_cmd_modify_qp_in *in)
{
	u32 have = skua_ib_ece_options(lim), off = 0;
	unsigned int i;

	if (!have || options & ~have)
		return -EOPNOTSUPP;
	if (!skua_ib_has_ece(type))
		return -EINVAL;
	if (!(lim->caps & SKUA_CAP_VENDOR_OFF))
		return 0;
	for (i = 0; i < ARRAY_SIZE(skua_ib_ece); i++)
		if (!(options & skua_ib_ece[i].option))
			off |= skua_ib_ece[i].vendor;
	in->mask |= cpu_to_le32(SKUA_QP_M_VENDOR_OFF);
	in->attr.vendor_off = cpu_to_le32(off);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_ece_build);

/**
 * skua_ib_ext_build() - choose whether a QP uses selective repeat
 * @lim: limits of the device
 * @type: type of the QP
 * @agreed: there was an ECE handshake
 * @options: with @agreed: negotiated options, which the device supports
 * @in: the transition to RTR, to which the attribute is added
 *
 * If both ends agreed on it, from the first packet on; if there was a handshake and they
 * did not, never. Without a handshake as soon as the peer says in its packets that it
 * supports it. Peers that do not are never sent anything beyond the standard.
 */
void skua_ib_ext_build(const struct skua_limits *lim, enum ib_qp_type type, bool agreed,
		       u32 options, struct skua_cmd_modify_qp_in *in)
{
	u32 mode = SKUA_EXT_NEGOTIATE;

	if (!(lim->caps & SKUA_CAP_SR) || !skua_ib_has_ece(type))
		return;
	if (agreed)
		mode = options & SKUA_ECE_SELECTIVE_REPEAT ? SKUA_EXT_ALWAYS : SKUA_EXT_PLAIN;
	in->mask |= cpu_to_le32(SKUA_QP_M_EXT);
	in->attr.ext = 0;
	if (mode != SKUA_EXT_PLAIN)
		in->attr.ext = le32_encode_bits(mode, SKUA_ATTR_EXT_MODE) |
			       le32_encode_bits(SKUA_EXT_LOG_WINDOW_MAX,
						SKUA_ATTR_EXT_LOG_WINDOW);
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_ext_build);

/**
 * skua_ib_av_parse() - translate an address vector
 * @av: the path
 * @ah: filled in
 */
void skua_ib_av_parse(const struct skua_av *av, struct rdma_ah_attr *ah)
{
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_sl(ah, le32_get_bits(av->flow, SKUA_AV_PCP));
	rdma_ah_set_static_rate(ah, IB_RATE_PORT_CURRENT);
	rdma_ah_set_grh(ah, NULL, le32_get_bits(av->flow, SKUA_AV_FLOW_LABEL),
			le16_to_cpu(av->sgid_index), av->hop_limit, av->tclass);
	rdma_ah_set_dgid_raw(ah, (void *)av->dgid);
	memcpy(ah->roce.dmac, av->dmac, sizeof(ah->roce.dmac));
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_av_parse);

static int skua_ib_access_parse(u32 hw)
{
	unsigned int i;
	int flags = 0;

	for (i = 0; i < ARRAY_SIZE(skua_ib_qp_rights); i++)
		if (hw & skua_ib_qp_rights[i].hw)
			flags |= skua_ib_qp_rights[i].ib;
	return flags;
}

/**
 * skua_ib_attr_parse() - translate a QP's contexts
 * @qp: the QP
 * @out: its contexts
 * @attr: filled in
 */
void skua_ib_attr_parse(struct skua_ib_qp *qp, const struct skua_cmd_query_qp_out *out,
			struct ib_qp_attr *attr)
{
	const struct skua_qp_attr *a = &out->sqc.attr;
	u32 state = le32_get_bits(a->state, SKUA_ATTR_STATE);

	attr->qp_state = min_t(u32, state, IB_QPS_ERR);
	attr->cur_qp_state = attr->qp_state;
	attr->sq_draining = !!(out->sqc.valid & cpu_to_le32(SKUA_SQC_DRAINING));
	attr->en_sqd_async_notify = !!(a->state & cpu_to_le32(SKUA_ATTR_SQD_NOTIFY));
	attr->path_mtu = le32_get_bits(a->retry, SKUA_ATTR_PATH_MTU);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = le32_to_cpu(a->qkey);
	/* The current PSNs, as soon as the QP is in a state that has them. */
	attr->rq_psn = le32_to_cpu(state < SKUA_QP_RTR ? a->rq_psn : out->rqc.epsn);
	attr->sq_psn = le32_to_cpu(state < SKUA_QP_RTS ? a->sq_psn : out->sqc.next_psn);
	attr->dest_qp_num = le32_to_cpu(a->dest_qpn);
	attr->qp_access_flags =
		skua_ib_access_parse(le32_get_bits(a->rights, SKUA_ATTR_ACCESS));
	attr->pkey_index = le32_get_bits(a->pkey, SKUA_ATTR_PKEY_INDEX);
	attr->max_rd_atomic = le32_get_bits(a->rights, SKUA_ATTR_MAX_RD_ATOMIC);
	attr->max_dest_rd_atomic = le32_get_bits(a->rights, SKUA_ATTR_MAX_DEST_RD_ATOMIC);
	attr->min_rnr_timer = le32_get_bits(a->retry, SKUA_ATTR_MIN_RNR_TIMER);
	attr->timeout = le32_get_bits(a->retry, SKUA_ATTR_ACK_TIMEOUT);
	attr->retry_cnt = le32_get_bits(a->retry, SKUA_ATTR_RETRY_CNT);
	attr->rnr_retry = le32_get_bits(a->retry, SKUA_ATTR_RNR_RETRY);
	attr->rate_limit = le32_to_cpu(a->rate_kbps);
	attr->port_num = 1;
	/* Datagram QPs have no path of their own. */
	if (state >= SKUA_QP_RTR && !skua_ib_is_dgram(qp->ibqp.qp_type))
		skua_ib_av_parse(&a->av, &attr->ah_attr);
	attr->cap = qp->cap;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_attr_parse);
