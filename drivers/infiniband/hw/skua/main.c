// SPDX-License-Identifier: GPL-2.0
/*
 * Auxiliary driver of "skua_core.rdma": registration of the ib_device.
 */
#include <kunit/visibility.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <rdma/ib_cache.h>

#include "skua_ib.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * On-demand paging by transport and operation. UC and UD do not support it for receives
 * and WRITEs: a packet for a missing page is dropped, and the peer does not repeat it.
 */
static void skua_ib_odp_caps(const struct skua_limits *lim, struct ib_odp_caps *caps)
{
	u32 rc = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |
		 IB_ODP_SUPPORT_READ;

	if (lim->caps & SKUA_CAP_SRQ)
		rc |= IB_ODP_SUPPORT_SRQ_RECV;
	if (lim->caps & SKUA_CAP_ATOMIC)
		rc |= IB_ODP_SUPPORT_ATOMIC;
	if (lim->caps & SKUA_CAP_FLUSH)
		rc |= IB_ODP_SUPPORT_FLUSH;
	if (lim->caps & SKUA_CAP_ATOMIC_WRITE)
		rc |= IB_ODP_SUPPORT_ATOMIC_WRITE;
	caps->general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	if (lim->caps & SKUA_CAP_RC)
		caps->per_transport_caps.rc_odp_caps = rc;
	if (lim->caps & SKUA_CAP_XRC)
		caps->per_transport_caps.xrc_odp_caps = rc;
	if (lim->caps & SKUA_CAP_UC)
		caps->per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	if (lim->caps & SKUA_CAP_UD)
		caps->per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

static void skua_ib_query_limits(const struct skua_limits *lim, struct ib_device_attr *attr)
{
	attr->fw_ver = lim->fw_version;
	attr->sys_image_guid = lim->node_guid;
	attr->max_mr_size = lim->max_mr_len;
	attr->page_size_cap = lim->page_sizes;
	attr->max_qp = lim->max_qp;
	attr->max_qp_wr = skua_ib_max_qp_wr(lim);
	attr->max_send_sge = skua_ib_max_send_sge(lim);
	attr->max_recv_sge = lim->max_rq_sge;
	attr->max_sge_rd = skua_ib_max_send_sge(lim);
	attr->max_cq = lim->max_cq;
	attr->max_cqe = lim->max_cqe;
	attr->max_mr = lim->max_mr;
	attr->max_pd = SKUA_PDN_MAX;
	attr->max_qp_rd_atom = lim->max_rd_atomic;
	attr->max_qp_init_rd_atom = lim->max_rd_atomic;
	attr->max_res_rd_atom =
		min_t(u64, (u64)lim->max_rd_atomic * lim->max_qp, INT_MAX);
	if (lim->caps & SKUA_CAP_SRQ) {
		attr->max_srq = lim->max_srq;
		attr->max_srq_wr = skua_ib_max_srq_wr(lim);
		attr->max_srq_sge = lim->max_rq_sge;
	}
	attr->max_pkeys = 1;
	/* Address handles use no resource of the device. */
	if (lim->caps & SKUA_CAP_UD)
		attr->max_ah = INT_MAX;
	if (lim->caps & SKUA_CAP_MCAST) {
		attr->max_mcast_grp = lim->max_mcg;
		attr->max_mcast_qp_attach = lim->max_mcg;
		attr->max_total_mcast_qp_attach = lim->max_mcg;
	}
	attr->max_dm_size = lim->dm_size;
	if (lim->caps & SKUA_CAP_RSS) {
		attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
		attr->rss_caps.max_rwq_indirection_tables = lim->max_rss;
		attr->rss_caps.max_rwq_indirection_table_size = SKUA_RSS_MAX;
		attr->max_wq_type_rq = lim->max_qp;
	}
	if (lim->caps & SKUA_CAP_ETH)
		attr->max_raw_ethy_qp = lim->max_qp;
	if (lim->caps & SKUA_CAP_CSUM)
		attr->raw_packet_caps |= IB_RAW_PACKET_CAP_IP_CSUM;
	if (lim->caps & SKUA_CAP_VLAN)
		attr->raw_packet_caps |= IB_RAW_PACKET_CAP_CVLAN_STRIPPING;
	attr->local_ca_ack_delay = 15;
	if (lim->caps & SKUA_CAP_ATOMIC)
		attr->atomic_cap = IB_ATOMIC_HCA;
	if (lim->caps & SKUA_CAP_MASKED_ATOMIC)
		attr->masked_atomic_cap = IB_ATOMIC_HCA;
	/* Windows and regions share one table of keys. */
	if (lim->caps & SKUA_CAP_MW)
		attr->max_mw = lim->max_mr;
	if (lim->caps & SKUA_CAP_FAST_REG)
		attr->max_fast_reg_page_list_len = SKUA_IB_MAX_FAST_PAGES;
	if (skua_ib_has_pi(lim)) {
		attr->max_pi_fast_reg_page_list_len = SKUA_IB_MAX_PI_PAGES;
		attr->sig_prot_cap = IB_PROT_T10DIF_TYPE_1 | IB_PROT_T10DIF_TYPE_2 |
				     IB_PROT_T10DIF_TYPE_3;
		attr->sig_guard_cap = IB_GUARD_T10DIF_CRC | IB_GUARD_T10DIF_CSUM;
	}
	if (lim->caps & SKUA_CAP_MODERATION) {
		attr->cq_caps.max_cq_moderation_count = U16_MAX;
		attr->cq_caps.max_cq_moderation_period = U16_MAX;
	}
	if (skua_ib_has_odp(lim))
		skua_ib_odp_caps(lim, &attr->odp_caps);
	if (lim->caps & SKUA_CAP_TIMESTAMP) {
		attr->timestamp_mask = U64_MAX;
		attr->hca_core_clock = lim->clock_khz;
	}
}

static u64 skua_ib_cap_flags(const struct skua_limits *lim)
{
	u64 flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SYS_IMAGE_GUID |
		    IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_CURR_QP_STATE_MOD;

	if (lim->caps & SKUA_CAP_MW)
		flags |= IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B;
	if (lim->caps & SKUA_CAP_FAST_REG && lim->caps & SKUA_CAP_INVALIDATE)
		flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	/* No FLUSH_PERSISTENT: the device cannot tell whether host memory is persistent. */
	if (lim->caps & SKUA_CAP_FLUSH)
		flags |= IB_DEVICE_FLUSH_GLOBAL;
	if (lim->caps & SKUA_CAP_ATOMIC_WRITE)
		flags |= IB_DEVICE_ATOMIC_WRITE;
	if (lim->caps & SKUA_CAP_SRQ_RESIZE)
		flags |= IB_DEVICE_SRQ_RESIZE;
	if (lim->caps & SKUA_CAP_XRC)
		flags |= IB_DEVICE_XRC;
	if (lim->caps & SKUA_CAP_ETH && lim->max_flows)
		flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
	if (lim->caps & SKUA_CAP_ETH && lim->caps & SKUA_CAP_CSUM)
		flags |= IB_DEVICE_RAW_IP_CSUM;
	return flags;
}

static int skua_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
				struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibdev);
	const struct pci_dev *pdev = skua_pdev(dev->core);
	struct skua_query_device_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	skua_ib_query_limits(dev->lim, attr);
	attr->vendor_id = pdev->vendor;
	attr->vendor_part_id = pdev->device;
	attr->hw_ver = pdev->revision;
	attr->device_cap_flags = skua_ib_cap_flags(dev->lim);
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	if (skua_ib_has_odp(dev->lim))
		attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	if (skua_ib_has_pi(dev->lim))
		attr->kernel_cap_flags |= IBK_INTEGRITY_HANDOVER;
	if (dev->lim->caps & SKUA_CAP_MCAST)
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
	if (!udata)
		return 0;
	resp.rate_qpts = skua_ib_rate_types(dev->lim);
	resp.rate_limit_min = dev->lim->rate_min;
	resp.rate_limit_max = dev->lim->rate_max;
	return ib_respond_udata(udata, resp);
}

static int skua_ib_modify_device(struct ib_device *ibdev, int mask,
				 struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return skua_ib_refuse(to_skua_dev(ibdev), -EOPNOTSUPP,
				      "modify_device: mask %#x, only NODE_DESC is supported", mask);
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

static void skua_ib_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	u64 v = to_skua_dev(ibdev)->lim->fw_version;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", upper_32_bits(v),
		 (u32)(v >> 16) & 0xffff, (u32)v & 0xffff);
}

const struct ib_device_ops skua_ib_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = SKUA_UVERBS_ABI_VERSION,
#ifndef SKUA_COMPAT_UDATA
	.uverbs_robust_udata = 1,
#endif
	.query_device = skua_ib_query_device,
	.modify_device = skua_ib_modify_device,
	.get_dev_fw_str = skua_ib_get_dev_fw_str,
};

/**
 * skua_ib_die() - the device has failed: wake those that wait for completions, tell consumers
 * @dev: the device
 */
VISIBLE_IF_KUNIT void skua_ib_die(struct skua_ib_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = 1,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	if (xchg(&dev->dead, true))
		return;
	skua_ib_status_dead(dev);
	/*
	 * skua_ib_wake_if_dead() reads @dead after a WQE was posted, without a barrier between
	 * the two. That is within a lock with interrupts disabled, which this waits for: whoever
	 * did not see @dead has posted by now, and its completion handler is called below.
	 */
	synchronize_rcu();
	skua_ib_wake_all(dev);
	skua_ib_qp_die(dev);
	ib_dispatch_event(&event);
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_die);

static int skua_ib_core_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct skua_ib_dev *dev = container_of(nb, struct skua_ib_dev, core_nb);

	/* SKUA_EVENT_PORT is handled by skua_en; the RDMA core follows the netdev's carrier. */
	if (event == SKUA_EVENT_DEAD)
		skua_ib_die(dev);
	return NOTIFY_DONE;
}

static const struct uapi_definition skua_ib_defs[] = {
	UAPI_DEF_CHAIN(skua_ib_ucontext_defs),
	UAPI_DEF_CHAIN(skua_ib_dm_defs),
	UAPI_DEF_CHAIN(skua_ib_pd_defs),
	{},
};

static void skua_ib_set_ops(struct skua_ib_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ib_set_device_ops(ibdev, &skua_ib_dev_ops);
	ib_set_device_ops(ibdev, &skua_ib_port_ops);
	ib_set_device_ops(ibdev, &skua_ib_ucontext_ops);
	ib_set_device_ops(ibdev, &skua_ib_pd_ops);
	if (dev->lim->caps & SKUA_CAP_UD)
		ib_set_device_ops(ibdev, &skua_ib_ah_ops);
	if (dev->lim->caps & SKUA_CAP_MCAST)
		ib_set_device_ops(ibdev, &skua_ib_mcast_ops);
	ib_set_device_ops(ibdev, &skua_ib_mr_ops);
	ib_set_device_ops(ibdev, &skua_ib_dmabuf_ops);
	if (dev->lim->caps & SKUA_CAP_FAST_REG)
		ib_set_device_ops(ibdev, &skua_ib_fastreg_ops);
	if (skua_ib_has_pi(dev->lim))
		ib_set_device_ops(ibdev, &skua_ib_pi_ops);
	if (dev->lim->caps & SKUA_CAP_MW)
		ib_set_device_ops(ibdev, &skua_ib_mw_ops);
	if (skua_ib_has_odp(dev->lim))
		ib_set_device_ops(ibdev, &skua_ib_odp_ops);
	ib_set_device_ops(ibdev, &skua_ib_dm_ops);
	ib_set_device_ops(ibdev, &skua_ib_cq_ops);
	ib_set_device_ops(ibdev, &skua_ib_srq_ops);
	ib_set_device_ops(ibdev, &skua_ib_qp_ops);
	ib_set_device_ops(ibdev, &skua_ib_wq_ops);
	ib_set_device_ops(ibdev, &skua_ib_flow_ops);
	ib_set_device_ops(ibdev, &skua_ib_counter_ops);
	if (dev->lim->caps & SKUA_CAP_COUNTER_SET) {
		ib_set_device_ops(ibdev, &skua_ib_qp_counter_ops);
		ib_set_device_ops(ibdev, &skua_ib_flow_count_ops);
	}
	ib_set_device_ops(ibdev, &skua_ib_pma_ops);
	ib_set_device_ops(ibdev, &skua_ib_restrack_ops);
	ibdev->driver_def = skua_ib_defs;
}

static void skua_ib_init(struct skua_ib_dev *dev, struct skua_dev *core)
{
	struct ib_device *ibdev = &dev->ibdev;

	dev->core = core;
	dev->lim = skua_limits(core);
	spin_lock_init(&dev->cq_lock);
	INIT_LIST_HEAD(&dev->cqs);
	mutex_init(&dev->uc_lock);
	INIT_LIST_HEAD(&dev->ucontexts);
	mutex_init(&dev->cnt_lock);
	mutex_init(&dev->user_lock);
	INIT_LIST_HEAD(&dev->users);
	xa_init(&dev->sets);
	xa_init_flags(&dev->frmrs, XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT);
	dev->core_nb.notifier_call = skua_ib_core_event;
	dev->netdev_nb.notifier_call = skua_ib_netdev_event;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->node_guid = dev->lim->node_guid;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = skua_num_comp_vectors(core);
	ibdev->local_dma_lkey = SKUA_RESERVED_LKEY;
#ifndef SKUA_COMPAT_PRE_DESTROY_CQ
	/* Older RDMA cores free the DIM state of a CQ before the last event of the CQ. */
	ibdev->use_cq_dim = !!(dev->lim->caps & SKUA_CAP_MODERATION);
#endif
	/* The provider matches the device by its PCI IDs. */
	ibdev->dev.parent = &skua_pdev(core)->dev;
	strscpy(ibdev->node_desc, "Skua RoCEv2 NIC", sizeof(ibdev->node_desc));
	skua_ib_set_ops(dev);
}

static int skua_ib_probe(struct auxiliary_device *adev, const struct auxiliary_device_id *id)
{
	struct skua_dev *core = skua_adev_dev(adev);
	struct device *dma_dev = &skua_pdev(core)->dev;
	struct skua_ib_dev *dev;
	int err;

	if (skua_dead(core))
		return -EIO;
	dev = ib_alloc_device(skua_ib_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	skua_ib_init(dev, core);
	err = skua_ib_odp_init(dev);
	if (err)
		goto err_dealloc;
	err = skua_ib_frmr_init(dev);
	if (err)
		goto err_odp;
	/* Also calls the notifier for a netdev that is registered already. */
	err = register_netdevice_notifier(&dev->netdev_nb);
	if (err)
		goto err_frmr;
	err = ib_register_device(&dev->ibdev, "skua%d", dma_dev);
	if (err)
		goto err_netdev_nb;
	err = skua_register_notifier(core, &dev->core_nb);
	if (err)
		goto err_ibdev;
	/* The device may have died before the notifier was registered. */
	if (skua_dead(core))
		skua_ib_die(dev);
	auxiliary_set_drvdata(adev, dev);
	return 0;

err_ibdev:
	ib_unregister_device(&dev->ibdev);
err_netdev_nb:
	unregister_netdevice_notifier(&dev->netdev_nb);
err_frmr:
	skua_ib_frmr_exit(dev);
err_odp:
	skua_ib_odp_exit(dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return dev_err_probe(&adev->dev, err, "cannot register the ib_device\n");
}

static void skua_ib_remove(struct auxiliary_device *adev)
{
	struct skua_ib_dev *dev = auxiliary_get_drvdata(adev);

	/*
	 * User contexts are destroyed even if programs still use them. Kernel consumers
	 * drain their queues, so the notifier must stay registered until they are done: the
	 * device may die meanwhile.
	 */
	ib_unregister_device(&dev->ibdev);
	skua_unregister_notifier(dev->core, &dev->core_nb);
	unregister_netdevice_notifier(&dev->netdev_nb);
	skua_ib_frmr_exit(dev);
	skua_ib_odp_exit(dev);
	/* IB_EVENT_DEVICE_FATAL may still be queued. */
	flush_workqueue(ib_wq);
	/* Page faults that wait for their pages have references to the memory of @dev. */
	ib_dealloc_device(&dev->ibdev);
}

static const struct auxiliary_device_id skua_ib_id_table[] = {
	{ .name = "skua_core.rdma" },
	{}
};
MODULE_DEVICE_TABLE(auxiliary, skua_ib_id_table);

static struct auxiliary_driver skua_ib_driver = {
	.name = "rdma",
	.probe = skua_ib_probe,
	.remove = skua_ib_remove,
	.id_table = skua_ib_id_table,
};

static int __init skua_ib_module_init(void)
{
	int err;

	err = skua_ib_odp_module_init();
	if (err)
		return err;
	err = auxiliary_driver_register(&skua_ib_driver);
	if (err)
		skua_ib_odp_module_exit();
	return err;
}
module_init(skua_ib_module_init);

static void __exit skua_ib_module_exit(void)
{
	auxiliary_driver_unregister(&skua_ib_driver);
	skua_ib_odp_module_exit();
}
module_exit(skua_ib_module_exit);

MODULE_DESCRIPTION("Skua RoCEv2 RDMA driver");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
