/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Older kernels: included before everything else by the out-of-tree build, never
 * by name. Each part is switched by tools/scripts/kconftest.sh, which looks for
 * the thing itself in the kernel's headers.
 */
#ifndef LINUX_SKUA_COMPAT_H
#define LINUX_SKUA_COMPAT_H

/* Namespaces were tokens before they became strings. */
#ifdef SKUA_COMPAT_NS_STRING
#include <linux/export.h>
#include <linux/module.h>
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)		MODULE_INFO(import_ns, ns)
/* Of use to tests alone, which are not built: see Kbuild. */
#include <kunit/visibility.h>
#undef EXPORT_SYMBOL_IF_KUNIT
#define EXPORT_SYMBOL_IF_KUNIT(sym)
#undef EXPORT_SYMBOL_NS
#define EXPORT_SYMBOL_NS(sym, ns)	__EXPORT_SYMBOL(sym, "", ns)
#undef EXPORT_SYMBOL_NS_GPL
#define EXPORT_SYMBOL_NS_GPL(sym, ns)	__EXPORT_SYMBOL(sym, "GPL", ns)
#endif

/* Objects were allocated by their size. */
#ifdef SKUA_COMPAT_ALLOC_OBJ
#include <linux/slab.h>
#define SKUA_COMPAT_GFP_(a, b, ...)	b
#define SKUA_COMPAT_GFP(...)		SKUA_COMPAT_GFP_(, ##__VA_ARGS__, GFP_KERNEL)
#define SKUA_COMPAT_ALLOC(alloc, type, ...)					\
	((type *)alloc(sizeof(type), SKUA_COMPAT_GFP(__VA_ARGS__)))
#define kmalloc_obj(obj, ...)	SKUA_COMPAT_ALLOC(kmalloc, typeof(obj), ##__VA_ARGS__)
#define kzalloc_obj(obj, ...)	SKUA_COMPAT_ALLOC(kzalloc, typeof(obj), ##__VA_ARGS__)
#define kvzalloc_obj(obj, ...)	SKUA_COMPAT_ALLOC(kvzalloc, typeof(obj), ##__VA_ARGS__)
#endif

/* The graceful period was an argument before it became a field of the operations. */
#ifdef SKUA_COMPAT_HEALTH_GRACE
#include <net/devlink.h>
struct skua_compat_reporter_ops {
	union {
		struct devlink_health_reporter_ops real;
		struct {
			char *name;
			int (*recover)(struct devlink_health_reporter *reporter,
				       void *priv_ctx, struct netlink_ext_ack *extack);
			int (*dump)(struct devlink_health_reporter *reporter,
				    struct devlink_fmsg *fmsg, void *priv_ctx,
				    struct netlink_ext_ack *extack);
			int (*diagnose)(struct devlink_health_reporter *reporter,
					struct devlink_fmsg *fmsg,
					struct netlink_ext_ack *extack);
			int (*test)(struct devlink_health_reporter *reporter,
				    struct netlink_ext_ack *extack);
		};
	};
	u64 default_graceful_period;
};

static_assert(offsetof(struct skua_compat_reporter_ops, default_graceful_period) ==
	      sizeof(struct devlink_health_reporter_ops));

#define devlink_health_reporter_ops	skua_compat_reporter_ops
#define devl_health_reporter_create(devlink, ops, priv)				\
	devl_health_reporter_create(devlink, &(ops)->real, (ops)->default_graceful_period, \
				    priv)
#endif

/* The value was passed as such before it was by address. */
#ifdef SKUA_COMPAT_DRIVERINIT_VALUE
#include <net/devlink.h>
#define devl_param_driverinit_value_set(devlink, id, val)			\
	devl_param_driverinit_value_set(devlink, id, *(val))
#endif

/* The getter of a parameter had no way to tell why it failed. */
#ifdef SKUA_COMPAT_PARAM_GET
#define SKUA_COMPAT_PARAM_GETTER(name, newer, arg1, arg2, arg3, arg4)	\
newer(arg1, arg2, arg3, arg4);						\
static int name(struct devlink *devlink, u32 id, struct devlink_param_gset_ctx *ctx) \
{									\
	return newer(devlink, id, ctx, NULL);				\
}									\
static int newer(arg1, arg2, arg3, arg4)
#define skua_devlink_loss_recovery_get(...)				\
	SKUA_COMPAT_PARAM_GETTER(skua_devlink_loss_recovery_get,	\
				 skua_devlink_get_loss_recovery, __VA_ARGS__)
#define skua_devlink_turn_get(...)					\
	SKUA_COMPAT_PARAM_GETTER(skua_devlink_turn_get, skua_devlink_get_turn, __VA_ARGS__)
#endif

/* The sample was passed as such before it was by address. */
#ifdef SKUA_COMPAT_DIM
#include <linux/dim.h>
#define net_dim(dim, sample)	net_dim(dim, *(sample))
#endif

/* The function was set apart. */
#ifdef SKUA_COMPAT_HRTIMER
#include <linux/hrtimer.h>
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/*
 * A mapping that nobody synchronises could not be asked for: one is made and looked at. What
 * debugs the DMA API makes all mappings but those of dma-direct look as if they needed it: there
 * are none then.
 */
#ifdef SKUA_COMPAT_REQUIRE_COHERENT
#include <linux/dma-mapping.h>
#define DMA_ATTR_REQUIRE_COHERENT	BIT(31)

static inline void skua_compat_unmap_page(struct device *dev, dma_addr_t dma, size_t size,
					  enum dma_data_direction dir, unsigned long attrs)
{
	dma_unmap_page_attrs(dev, dma, size, dir, attrs & ~DMA_ATTR_REQUIRE_COHERENT);
}

static inline dma_addr_t skua_compat_map_page(struct device *dev, struct page *page, size_t offset,
					      size_t size, enum dma_data_direction dir,
					      unsigned long attrs)
{
	dma_addr_t dma = dma_map_page_attrs(dev, page, offset, size, dir,
					    attrs & ~DMA_ATTR_REQUIRE_COHERENT);

	if (!(attrs & DMA_ATTR_REQUIRE_COHERENT) || dma_mapping_error(dev, dma) ||
	    !dma_need_sync(dev, dma))
		return dma;
	skua_compat_unmap_page(dev, dma, size, dir, attrs);
	return DMA_MAPPING_ERROR;
}

#define dma_map_page_attrs	skua_compat_map_page
#define dma_unmap_page_attrs	skua_compat_unmap_page
#endif

/*
 * A saved state was restored once, and then no more until it was saved again, which cannot be done
 * while the function is gone. What was saved is kept all the same. No header says which kernel is
 * so: 6.12 is, 7.2 is not, and on one between them that is not this changes nothing.
 */
#include <linux/version.h>
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#include <linux/pci.h>
static inline void skua_compat_pci_restore_state(struct pci_dev *pdev)
{
	bool saved = pdev->state_saved;

	pci_restore_state(pdev);
	pdev->state_saved = saved;
}

#define pci_restore_state	skua_compat_pci_restore_state
#endif

/*
 * Callbacks whose prototype has changed: a function-like macro of the callback's
 * name turns its definition into an adapter of the old prototype, and the new
 * function under another name. Where the name stands alone, in a table of
 * operations, it is the adapter.
 */

/*
 * The fields that are hashed were asked for by a classification command. The callback of all of
 * them is named twice in the table of operations then: what comes later is the one that counts.
 */
#ifdef SKUA_COMPAT_RXFH_FIELDS
#include <linux/ethtool.h>
struct ethtool_rxfh_fields {
	u32 data;
	u32 flow_type;
};

#define get_rxfh_fields	get_rxnfc
#define skua_en_get_rxfh_fields(arg1, arg2)					\
skua_en_rxfh_fields(arg1, arg2);						\
static int skua_en_get_rxfh_fields(struct net_device *netdev,			\
				   struct ethtool_rxnfc *info, u32 *rules)	\
{										\
	struct ethtool_rxfh_fields fields = { .flow_type = info->flow_type };	\
	int err;								\
										\
	if (info->cmd != ETHTOOL_GRXFH)						\
		return -EOPNOTSUPP;						\
	err = skua_en_rxfh_fields(netdev, &fields);				\
	info->data = fields.data;						\
	return err;								\
}										\
static int skua_en_rxfh_fields(arg1, arg2)
/* In parentheses it is no macro */
#define SKUA_COMPAT_OTHER_RXNFC(...)	(skua_en_get_rxfh_fields)(__VA_ARGS__)
#else
#define SKUA_COMPAT_OTHER_RXNFC(...)	-EOPNOTSUPP
#endif

/* The number of receive rings was a classification command. */
#ifdef SKUA_COMPAT_RX_RING_COUNT
#include <linux/ethtool.h>
#define get_rx_ring_count	get_rxnfc
#define skua_en_get_rx_ring_count(args)						\
skua_en_rx_rings(args);								\
static int skua_en_get_rx_ring_count(struct net_device *netdev,			\
				     struct ethtool_rxnfc *info, u32 *rules)	\
{										\
	if (info->cmd != ETHTOOL_GRXRINGS)					\
		return SKUA_COMPAT_OTHER_RXNFC(netdev, info, rules);		\
	info->data = skua_en_rx_rings(netdev);					\
	return 0;								\
}										\
static u32 skua_en_rx_rings(args)
#endif

/* The new value of a parameter was passed as such before it was by address. */
#ifdef SKUA_COMPAT_PARAM_VALIDATE
#include <net/devlink.h>
#define skua_devlink_turn_validate(arg1, arg2, arg3, arg4)			\
skua_devlink_check_turn(arg1, arg2, arg3, arg4);				\
static int skua_devlink_turn_validate(struct devlink *devlink, u32 id,		\
				      union devlink_param_value val,		\
				      struct netlink_ext_ack *extack)		\
{										\
	return skua_devlink_check_turn(devlink, id, &val, extack);		\
}										\
static int skua_devlink_check_turn(arg1, arg2, arg3, arg4)
#endif

/*
 * SKUA_COMPAT_RX_MODE: the stack hands out its address lists under a spinlock only,
 * in ndo_set_rx_mode(); skua_en reads them from a work item of its own then.
 */

#endif /* LINUX_SKUA_COMPAT_H */
