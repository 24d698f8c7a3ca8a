// SPDX-License-Identifier: GPL-2.0
/*
 * The port: attributes, GIDs and the netdev.
 */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "skua_ib.h"

DEFINE_FREE(skua_put_netdev, struct net_device *, dev_put(_T))

static bool skua_ib_gsi(const struct skua_ib_dev *dev)
{
	/* MADs and the CM need the GSI QP, which is a UD QP. */
	return dev->lim->caps & SKUA_CAP_UD;
}

/**
 * skua_ib_active_mtu() - get the largest path MTU that the netdev's MTU allows
 * @dev: the device
 * @mtu: filled in
 *
 * Return: 0, -ENODEV without a netdev, or -EINVAL if its MTU is too small for any.
 */
int skua_ib_active_mtu(struct skua_ib_dev *dev, enum ib_mtu *mtu)
{
	struct net_device *ndev __free(skua_put_netdev) = ib_device_get_netdev(&dev->ibdev, 1);

	if (!ndev)
		return -ENODEV;
	*mtu = min_t(u32, iboe_get_mtu(READ_ONCE(ndev->mtu)), dev->lim->path_mtu_max);
	return *mtu ? 0 : -EINVAL;
}

static int skua_ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct net_device *ndev __free(skua_put_netdev) = ib_device_get_netdev(ibdev, port);
	struct skua_ib_dev *dev = to_skua_dev(ibdev);

	attr->state = IB_PORT_DOWN;
	attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = dev->lim->path_mtu_max;
	attr->active_mtu = IB_MTU_256;
	attr->gid_tbl_len = dev->lim->max_gids;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = min_t(u64, dev->lim->max_msg, BIT_ULL(31));
	attr->ip_gids = true;
	attr->max_vl_num = 1;
	attr->active_speed = IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_1X;
	if (skua_ib_gsi(dev))
		attr->port_cap_flags = IB_PORT_CM_SUP;
	if (!ndev)
		return 0;

	attr->state = skua_ib_dead(dev) ? IB_PORT_DOWN : ib_get_curr_port_state(ndev);
	if (attr->state == IB_PORT_ACTIVE)
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	else if (netif_running(ndev))
		attr->phys_state = IB_PORT_PHYS_STATE_POLLING;
	if (skua_ib_active_mtu(dev, &attr->active_mtu))
		attr->active_mtu = IB_MTU_256;
	attr->phys_mtu = ib_mtu_enum_to_int(attr->active_mtu);
	/* On failure the values above are kept. */
	ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width);
	return 0;
}

#ifndef SKUA_COMPAT_PORT_SPEED
/* In units of 100 Mb/s; not limited to the speeds of enum ib_port_speed. */
static int skua_ib_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct skua_cmd_query_port_out out = {};
	int err;

	err = skua_query_port(to_skua_dev(ibdev)->core, &out);
	if (err)
		return err;
	*speed = out.state & cpu_to_le32(SKUA_PORT_LINK_UP) ?
		 le32_to_cpu(out.speed_mbps) / 100 : 0;
	return 0;
}
#endif

static int skua_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
				      struct ib_port_immutable *immutable)
{
	struct skua_ib_dev *dev = to_skua_dev(ibdev);

	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = dev->lim->max_gids;
	if (skua_ib_gsi(dev)) {
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	} else {
		immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;
	}
	return 0;
}

static enum rdma_link_layer skua_ib_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int skua_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	/* The table has one entry. */
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static int skua_ib_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct skua_ib_dev *dev = to_skua_dev(attr->device);
	struct skua_gid gid = { .flags = cpu_to_le32(SKUA_GID_VALID) };
	u16 vlan = SKUA_GID_NO_VLAN;
	int err;

	/* The immutable port data announces RoCEv2 only. */
	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "add_gid: type %d, only RoCEv2 is supported",
				      attr->gid_type);
	if (attr->index >= dev->lim->max_gids)
		return skua_ib_refuse(dev, -EINVAL, "add_gid: index %u, must be below %u",
				      attr->index, dev->lim->max_gids);
	err = rdma_read_gid_l2_fields(attr, &vlan, gid.mac);
	if (err)
		return err;
	if (vlan < VLAN_N_VID)
		gid.vlan = cpu_to_le16(vlan);
	else
		gid.vlan = cpu_to_le16(SKUA_GID_NO_VLAN);
	if (rdma_gid_attr_network_type(attr) == RDMA_NETWORK_IPV4)
		gid.flags |= cpu_to_le32(SKUA_GID_IPV4);
	memcpy(gid.gid, attr->gid.raw, sizeof(gid.gid));
	return skua_set_gid(dev->core, attr->index, &gid);
}

static int skua_ib_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct skua_ib_dev *dev = to_skua_dev(attr->device);
	struct skua_gid none = {};
	int err;

	err = skua_set_gid(dev->core, attr->index, &none);
	/* A dead device has lost its GID table. */
	return skua_ib_dead(dev) ? 0 : err;
}

/* Bind the port to the function's netdev, if that is registered. */
static void skua_ib_attach_netdev(struct skua_ib_dev *dev)
{
	struct net_device *ndev __free(skua_put_netdev) = skua_get_netdev(dev->core);
	int err;

	if (!ndev || READ_ONCE(ndev->reg_state) != NETREG_REGISTERED)
		return;
	err = ib_device_set_netdev(&dev->ibdev, ndev, 1);
	if (err)
		ibdev_err(&dev->ibdev, "cannot bind %s: %pe\n", netdev_name(ndev), ERR_PTR(err));
}

/**
 * skua_ib_netdev_event() - netdevice notifier: bind and unbind the function's netdev
 * @nb: notifier block of the device
 * @event: NETDEV_*
 * @ptr: struct netdev_notifier_info
 *
 * The netdev is unregistered when skua_en is unbound and when it moves to another network
 * namespace. A reference that is not dropped then would block that.
 *
 * Return: NOTIFY_DONE.
 */
int skua_ib_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct skua_ib_dev *dev = container_of(nb, struct skua_ib_dev, netdev_nb);
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct net_device *old __free(skua_put_netdev) = ib_device_get_netdev(&dev->ibdev, 1);
	struct net_device *ours __free(skua_put_netdev) = skua_get_netdev(dev->core);

	switch (event) {
	case NETDEV_UNREGISTER:
		if (ndev == old)
			ib_device_set_netdev(&dev->ibdev, NULL, 1);
		break;
	case NETDEV_REGISTER:
	case NETDEV_UP:
		if (ndev == ours && ndev != old)
			skua_ib_attach_netdev(dev);
		break;
	}
#ifdef SKUA_COMPAT_PORT_STATE
	if (ndev == old && (event == NETDEV_UP || event == NETDEV_CHANGE || event == NETDEV_DOWN))
		skua_compat_port_event(&dev->ibdev, ndev, &dev->port_state);
#endif
	return NOTIFY_DONE;
}

const struct ib_device_ops skua_ib_port_ops = {
	.query_port = skua_ib_query_port,
#ifndef SKUA_COMPAT_PORT_SPEED
	.query_port_speed = skua_ib_query_port_speed,
#endif
	.get_port_immutable = skua_ib_get_port_immutable,
	.get_link_layer = skua_ib_get_link_layer,
	.query_pkey = skua_ib_query_pkey,
	.add_gid = skua_ib_add_gid,
	.del_gid = skua_ib_del_gid,
};
