#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# kconftest.sh KERNEL: print a -D flag for each thing that the kernel's headers
# lack and include/linux/skua/compat.h makes up for. Version numbers are not
# looked at: distributions take changes back.
k=$1/include

# lacks FLAG FILE REGEX: -DFLAG unless FILE has a line with REGEX
lacks()
{
	grep -qE -e "$3" "$k/$2" 2>/dev/null || printf ' -D%s' "$1"
}

# lacks_text FLAG FILE REGEX: likewise, of what may go over several lines
lacks_text()
{
	tr -s '\n\t ' ' ' 2>/dev/null <"$k/$2" | grep -qE -e "$3" || printf ' -D%s' "$1"
}

lacks SKUA_COMPAT_NS_STRING linux/module.h 'MODULE_IMPORT_NS\(ns\).*MODULE_INFO\(import_ns, ns\)'
lacks SKUA_COMPAT_ALLOC_OBJ linux/slab.h '^#define kvzalloc_obj\('
lacks SKUA_COMPAT_HEALTH_GRACE net/devlink.h 'default_graceful_period'
lacks SKUA_COMPAT_DRIVERINIT_VALUE net/devlink.h 'union devlink_param_value \*init_val'
lacks_text SKUA_COMPAT_PARAM_GET net/devlink.h \
	'\(\*get\)\(struct devlink \*devlink, u32 id, struct devlink_param_gset_ctx \*ctx, struct netlink_ext_ack'
lacks SKUA_COMPAT_PARAM_VALIDATE net/devlink.h 'union devlink_param_value \*val,'
lacks SKUA_COMPAT_RXFH_FIELDS linux/ethtool.h '\(\*get_rxfh_fields\)'
lacks SKUA_COMPAT_RX_RING_COUNT linux/ethtool.h '\(\*get_rx_ring_count\)'
lacks SKUA_COMPAT_DIM linux/dim.h '^void net_dim\(struct dim \*dim, const struct dim_sample'
lacks SKUA_COMPAT_HRTIMER linux/hrtimer.h '^extern void hrtimer_setup\('
lacks SKUA_COMPAT_REQUIRE_COHERENT linux/dma-mapping.h '^#define DMA_ATTR_REQUIRE_COHERENT'
lacks SKUA_COMPAT_RX_MODE linux/netdevice.h '\(\*ndo_set_rx_mode_async\)'
lacks SKUA_COMPAT_UDATA rdma/uverbs_ioctl.h 'ib_no_udata_io\('
lacks SKUA_COMPAT_UMEM rdma/ib_umem.h 'ib_umem_get_va\('
lacks SKUA_COMPAT_REVOCABLE rdma/ib_umem.h 'ib_umem_dmabuf_set_revoke_locked\('
lacks SKUA_COMPAT_PORT_STATE rdma/ib_verbs.h 'ib_get_curr_port_state\('
lacks SKUA_COMPAT_PRE_DESTROY_CQ rdma/ib_verbs.h '\(\*pre_destroy_cq\)'
lacks SKUA_COMPAT_CREATE_USER_CQ rdma/ib_verbs.h '\(\*create_user_cq\)'
lacks SKUA_COMPAT_ODP rdma/ib_umem_odp.h 'struct hmm_dma_map'
lacks SKUA_COMPAT_ODP_CAPS rdma/ib_verbs.h 'IB_ODP_SUPPORT_FLUSH'
lacks SKUA_COMPAT_MOVE_NOTIFY linux/dma-buf.h '\(\*invalidate_mappings\)'
lacks SKUA_COMPAT_MMAP_PFNS rdma/ib_verbs.h '\(\*mmap_get_pfns\)'
lacks SKUA_COMPAT_PORT_SPEED rdma/ib_verbs.h '\(\*query_port_speed\)'
lacks SKUA_COMPAT_COUNTER rdma/ib_verbs.h '\(\*counter_init\)'
lacks SKUA_COMPAT_FRMR rdma/frmr_pools.h 'ib_frmr_pool_drop\('
lacks SKUA_COMPAT_DMAH rdma/ib_verbs.h '^struct ib_dmah'
echo
