/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internal header of skua_core, the driver of the PCI function.
 */
#ifndef SKUA_SKUA_H
#define SKUA_SKUA_H

#include <linux/bitops.h>
#include <linux/cleanup.h>
#include <linux/idr.h>
#include <linux/llist.h>
#include <linux/maple_tree.h>
#include <linux/slab.h>

#include <linux/skua/core.h>
#include <skua/hw/pci.h>
#include <skua/hw/regs.h>

#include "cmd.h"
#include "eq.h"
#include "icm.h"
#include "lifecycle.h"
#include "obj.h"

struct devlink;
struct devlink_health_reporter;

/**
 * struct skua_hw_ops - device accesses of the command ring, replaced in KUnit tests
 * @cmd_db: ring the command doorbell with the token of a slot
 * @quiesce: stop DMA of the device; on return none is in progress. Any context.
 */
struct skua_hw_ops {
	void (*cmd_db)(struct skua_dev *dev, u32 token);
	void (*quiesce)(struct skua_dev *dev);
};

/* A key consists of an index and a variant. */
#define SKUA_KEY_INDEX		GENMASK(31, 8)
#define SKUA_KEY_VARIANT	GENMASK(7, 0)
/* Mark in the array of keys: the device has an MPT entry for the key. */
#define SKUA_KEY_LIVE		XA_MARK_1

#define SKUA_DEBUGFS_FILES	5
#define SKUA_DEBUGFS_CONTEXTS	4

/**
 * struct skua_cc_file - a parameter of congestion control in debugfs
 * @dev: whose
 * @param: which, enum skua_cc_param
 */
struct skua_cc_file {
	struct skua_dev *dev;
	u32 param;
};

/**
 * struct skua_cc_values - parameters of congestion control
 * @lock: protects @value and @written, and orders them with the device
 * @value: what was written, by enum skua_cc_param
 * @written: which were written since the device was found
 * @count: parameters that the device has, of those the driver knows
 * @dir: debugfs directory, while the device is up
 * @file: what its files are given
 */
struct skua_cc_values {
	struct mutex lock;		/* see above */
	u32 value[SKUA_CC_PARAMS];
	DECLARE_BITMAP(written, SKUA_CC_PARAMS);
	u32 count;
	struct dentry *dir;
	struct skua_cc_file file[SKUA_CC_PARAMS];
};

/**
 * struct skua_turn - what a send queue may do at a time, as the administrator wants it
 * @wqes: send WQEs, 0: as the device has it
 * @bytes: bytes, likewise
 */
struct skua_turn {
	u32 wqes;
	u32 bytes;
};

/**
 * struct skua_dev - a PCI function
 * @dev: the device, for DMA and messages
 * @pdev: the same as a PCI device
 * @hw: access to the device
 * @regs: BAR 0
 * @limits: what the device can do
 * @max_vectors: size of its MSI-X table
 * @qpn_bits: width of a QPN's index
 * @state_lock: protects @state; taken in hard interrupt context
 * @state: written by skua_life() only, read by anybody
 * @registered: devlink knows the function; under the devlink instance lock, as are the
 *	next two
 * @started: when it was last brought up
 * @failures: recoveries since it last worked for a while
 * @wq: works below but @report_work; not ordered, so that a slow client delays no event
 * @cmd_timeout_ms: how long a command may take; 0: what its class says
 * @cmdq: command ring
 * @icm: ICM tables
 * @cmd_eq: command completions
 * @async_eq: async events
 * @fault_eq: page faults
 * @fault_handler: page fault handler; read by the work of @fault_eq only
 * @recovery_eq: loss reports (SKUA_CAP_RECOVERY)
 * @recoveries: struct skua_qp_recovery by index of the QP; read under RCU
 * @recovery_list: those of which the work of @recovery_eq has reports; the work's alone
 * @recovery_due: those whose timers have expired, for that work
 * @recovery_by_device: the administrator wants the device to keep the loss state all the same
 * @recovery_bad: reports that made no sense, of QPs that are gone
 * @recovery_stale: reports of an earlier time of loss, of QPs that are gone
 * @comp_eq: completion events, by completion vector
 * @num_comp: completion vectors
 * @vectors: interrupt vectors
 * @num_vectors: elements of @vectors
 * @uar: UAR page of the kernel
 * @uars: UAR pages in use
 * @dm_lock: protects @dm_used
 * @dm_used: pages of device memory in use
 * @dm_pages: pages of device memory
 * @dm_map: kernel mapping of the device memory
 * @dm_provider: peer-to-peer DMA provider of the device memory, or NULL
 * @cqs: CQs
 * @srqs: SRQs
 * @qps: QPs
 * @keys: key indices in use, those with an MPT entry marked SKUA_KEY_LIVE
 * @num_keys: number of keys in use
 * @key_base: first index of the range from which keys are drawn
 * @pds: protection domains in use
 * @xrcds: XRC domains in use
 * @rsss: RSS contexts in use
 * @flows: steering rules in use
 * @mcgs: multicast memberships in use
 * @sets: counter sets in use
 * @mtt: MTT entries in use: ranges. Its own lock protects it.
 * @notifier: clients' notifier chain
 * @port_work: tells it of a port event
 * @dead_work: tells it of the device's death
 * @report_work: then tells devlink, which may recover the device
 * @health_work: looks at the device once a second
 * @heartbeat: last value of the register
 * @still: how many times it has been the same
 * @why_dead: reason
 * @reporter: devlink health reporter
 * @recoveries_by_hand: how often an administrator asked for a recovery
 * @adev_eth: auxiliary device of the netdev, or NULL
 * @adev_rdma: auxiliary device of the ib_device, or NULL
 * @adev_id: their instance number
 * @netdev_lock: protects @netdev
 * @netdev: set by skua_en
 * @roce: RoCE is claimed by the device
 * @debugfs: directory
 * @debugfs_file: the core's files in it, while the device is up
 * @debugfs_recovery: likewise, NULL: there is none
 * @cc: parameters of congestion control
 * @turn: parameters of send queues; under the devlink instance lock
 *
 * The devlink instance lock serializes whatever brings the device up or down:
 * probe, remove, reload, recovery, resets of the PCI function.
 */
struct skua_dev {
	struct device *dev;
	struct pci_dev *pdev;
	const struct skua_hw_ops *hw;
	void __iomem *regs;
	struct skua_limits limits;
	u32 max_vectors;
	u8 qpn_bits;
	spinlock_t state_lock;		/* see above */
	enum skua_state state;
	bool registered;
	unsigned long started;
	unsigned int failures;
	struct workqueue_struct *wq;

	u32 cmd_timeout_ms;
	struct skua_cmdq cmdq;
	struct skua_icm_tbl icm[SKUA_ICM_TABLES_MAX];

	struct skua_eq cmd_eq;
	struct skua_eq async_eq;
	struct skua_eq fault_eq;
	struct skua_fault_handler *fault_handler;
	struct skua_eq recovery_eq;
	struct xarray recoveries;
	struct skua_qp_recovery *recovery_list;
	struct llist_head recovery_due;
	bool recovery_by_device;
	atomic64_t recovery_bad;
	atomic64_t recovery_stale;
	struct skua_eq *comp_eq;
	unsigned int num_comp;
	struct skua_vector *vectors;
	unsigned int num_vectors;

	struct skua_uar uar;
	struct ida uars;
	struct mutex dm_lock;		/* see above */
	unsigned long *dm_used;
	unsigned long dm_pages;
	void __iomem *dm_map;
	struct p2pdma_provider *dm_provider;
	struct skua_obj_table cqs;
	struct skua_obj_table srqs;
	struct skua_obj_table qps;
	struct xarray keys;
	atomic_t num_keys;
	u32 key_base;
	struct ida pds;
	struct ida xrcds;
	struct ida rsss;
	struct ida flows;
	struct ida mcgs;
	struct ida sets;
	struct maple_tree mtt;

	struct blocking_notifier_head notifier;
	struct work_struct port_work;
	struct work_struct dead_work;
	struct work_struct report_work;
	struct delayed_work health_work;
	u32 heartbeat;
	unsigned int still;
	const char *why_dead;
	struct devlink_health_reporter *reporter;
	unsigned int recoveries_by_hand;

	struct skua_adev *adev_eth;
	struct skua_adev *adev_rdma;
	int adev_id;
	spinlock_t netdev_lock;		/* see above */
	struct net_device *netdev;
	bool roce;
	struct dentry *debugfs;
	struct dentry *debugfs_file[SKUA_DEBUGFS_FILES + SKUA_DEBUGFS_CONTEXTS];
	struct dentry *debugfs_recovery;
	struct skua_cc_values cc;
	struct skua_turn turn;
};

static inline u32 skua_read32(const struct skua_dev *dev, unsigned int reg)
{
	return readl(dev->regs + reg);
}

static inline void skua_write32(struct skua_dev *dev, unsigned int reg, u32 val)
{
	writel(val, dev->regs + reg);
}

/* A register that can never hold all-ones tells whether there is a device. */
static inline bool skua_gone(const struct skua_dev *dev)
{
	return skua_read32(dev, SKUA_REG_ID) != SKUA_ID_MAGIC;
}

/* main.c */
int skua_up(struct skua_dev *dev);
void skua_down(struct skua_dev *dev);

/* reset.c */
int skua_hw_reset(struct skua_dev *dev);
void skua_reset_init(struct skua_dev *dev);
struct workqueue_struct *skua_alloc_wq(const char *name);
void skua_health_start(struct skua_dev *dev);
void skua_health_stop(struct skua_dev *dev);
void skua_declare_dead(struct skua_dev *dev, const char *why);
int skua_bring_back(struct skua_dev *dev);
int skua_take_down(struct skua_dev *dev);
int skua_recover(struct skua_dev *dev, bool pace);
void skua_end(struct skua_dev *dev);
extern const struct pci_error_handlers skua_err_handlers;
extern const struct dev_pm_ops skua_pm_ops;

/* profile.c */
int skua_profile_init(struct skua_dev *dev);
void skua_profile_exit(struct skua_dev *dev);

/* aux.c */
int skua_aux_init(struct skua_dev *dev);
void skua_aux_exit(struct skua_dev *dev);
int skua_aux_up(struct skua_dev *dev);
void skua_aux_down(struct skua_dev *dev, enum skua_down_reason reason);
void skua_aux_unplug(struct skua_dev *dev);

/* fault.c */
void skua_fault_raise(struct skua_dev *dev, const struct skua_page_fault *fault);

/* recovery_eq.c */
bool skua_recovery_report(struct skua_dev *dev, const struct skua_eqe_recovery *e);
void skua_recovery_flush(struct skua_dev *dev);
void skua_recovery_expire(struct skua_dev *dev);
bool skua_recovery_wanted(const struct skua_dev *dev);
size_t skua_recovery_bytes(const struct skua_dev *dev);
int skua_recovery_add(struct skua_dev *dev, struct skua_qp *qp, u32 log_window);
void skua_recovery_pause(struct skua_qp *qp, bool pause);
void skua_recovery_del(struct skua_dev *dev, struct skua_qp *qp);
struct dentry *skua_recovery_debugfs_up(struct skua_dev *dev);

/* uar.c */
int skua_uars_init(struct skua_dev *dev);
void skua_uars_exit(struct skua_dev *dev);

/* dm.c */
int skua_dm_init(struct skua_dev *dev);
void skua_dm_exit(struct skua_dev *dev);

/* devlink.c */
struct skua_dev *skua_devlink_alloc(struct pci_dev *pdev);
int skua_devlink_init(struct skua_dev *dev);
void skua_devlink_exit(struct skua_dev *dev);
bool skua_devlink_want_roce(struct skua_dev *dev);
bool skua_devlink_want_sr(struct skua_dev *dev);
void skua_devlink_report(struct skua_dev *dev);
void skua_devlink_health(struct skua_dev *dev, bool healthy);
int skua_devlink_turn_up(struct skua_dev *dev);

/* cc.c */
void skua_cc_init(struct skua_dev *dev);
int skua_cc_up(struct skua_dev *dev);
int skua_cc_query(struct skua_dev *dev, u32 *value);
int skua_cc_set(struct skua_dev *dev, u32 param, u64 value);
void skua_cc_debugfs_up(struct skua_dev *dev);
void skua_cc_debugfs_down(struct skua_dev *dev);

/* debugfs.c, debugfs_ctx.c */
void skua_debugfs_init(struct skua_dev *dev);
void skua_debugfs_exit(struct skua_dev *dev);
void skua_debugfs_up(struct skua_dev *dev);
void skua_debugfs_ctx_up(struct skua_dev *dev, struct dentry **file);
void skua_debugfs_down(struct skua_dev *dev);
void skua_debugfs_root_init(void);
void skua_debugfs_root_exit(void);

#endif /* SKUA_SKUA_H */
