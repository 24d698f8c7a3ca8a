/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internal header of skua_ib, the ib_device driver of a Skua function.
 *
 * skua_core (linux/skua/core.h) manages object numbers, contexts and commands. This driver
 * implements the verbs on top: attribute checks, memory, rings of kernel queues. In its
 * comments, "the RDMA core" is ib_core and ib_uverbs.
 */
#ifndef SKUA_IB_H
#define SKUA_IB_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/skua-abi.h>

#include <linux/skua/core.h>
#include <skua/cqe_parse.h>
#include <skua/sl.h>
#include <skua/sq_event.h>
#include <skua/wqe_build.h>

#include "kbuf.h"

/* CQEs have only the low 16 bits of a WQE index, which limits the size of rings. */
#define SKUA_IB_MAX_RING	65536
/* Maximum pages of a region for REG_MR: the list fits in 4 KiB. */
#define SKUA_IB_MAX_FAST_PAGES	(SZ_4K / sizeof(__le64))
/* Likewise of data, and of metadata, of an integrity region. */
#define SKUA_IB_MAX_PI_PAGES	256U

/**
 * struct skua_ib_dev - an ib_device
 * @ibdev: the RDMA core's part
 * @core: the PCI function, skua_core's part
 * @lim: limits of the device
 * @core_nb: notifier for events of the function
 * @netdev_nb: netdevice notifier, to bind and unbind the function's netdev
 * @dead: the device was declared dead. Never cleared: a device that is recovered gets a
 *	new ib_device.
 * @port_state: kernels in which the driver reports port events: last reported state
 * @cq_lock: protects @cqs; also keeps the CQs in it alive while their completion handlers
 *	are called
 * @cqs: all CQs, to call their handlers when the device dies
 * @uc_lock: protects @ucontexts
 * @ucontexts: all user contexts, to clear their status pages
 * @cnt_lock: protects @sets, @retired and @optional_base
 * @sets: counter sets to which QPs are bound, by number
 * @retired: sums of the values of destroyed sets, as the RDMA core last read them
 * @optional_base: values of optional counters when they were enabled
 * @user_lock: protects @users and their reference counts
 * @users: struct skua_ib_user of all users with contexts, or with objects that outlive these
 * @odps: on-demand regions by index of their key, for page faults and prefetches
 * @odp_handler: page fault handler
 * @odp_sem: held for reading by skua_ib_odp_enter(), for writing to set @odp_gone
 * @odp_gone: the device is removed: what is left of on-demand regions may not use it
 * @odp_lock: protects @odp_blocks, @odp_dirs and @odp_dmabufs; with @odp_sem held
 * @odp_blocks: struct skua_ib_odp_block of all regions
 * @odp_dirs: struct skua_ib_odp of all divided regions
 * @odp_dmabufs: struct skua_ib_odp_dmabuf of all regions
 * @frmrs: handles of the FRMR pools
 * @frmr_idle: number of idle handles
 * @frmr_idle_mtt: number of their MTT entries
 */
struct skua_ib_dev {
	struct ib_device ibdev;
	struct skua_dev *core;
	const struct skua_limits *lim;
	struct notifier_block core_nb;
	struct notifier_block netdev_nb;
	bool dead;
#ifdef SKUA_COMPAT_PORT_STATE
	enum ib_port_state port_state;
#endif
	spinlock_t cq_lock; /* see above */
	struct list_head cqs;
	struct mutex uc_lock; /* see above */
	struct list_head ucontexts;
	struct mutex cnt_lock; /* see above */
	struct xarray sets;
	u64 retired[SKUA_CNT_COUNT];
	u64 optional_base[SKUA_CNT_COUNT];
	struct mutex user_lock; /* see above */
	struct list_head users;
	struct xarray odps;
	struct skua_fault_handler odp_handler;
	struct rw_semaphore odp_sem; /* see above */
	bool odp_gone;
	spinlock_t odp_lock; /* see above */
	struct list_head odp_blocks;
	struct list_head odp_dirs;
	struct list_head odp_dmabufs;
	struct xarray frmrs;
	atomic_t frmr_idle;
	atomic_t frmr_idle_mtt;
};

static inline struct skua_ib_dev *to_skua_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct skua_ib_dev, ibdev);
}

static inline bool skua_ib_dead(const struct skua_ib_dev *dev)
{
	return READ_ONCE(dev->dead) || skua_dead(dev->core);
}

/*
 * Fail a request of a consumer and log the reason as a debug message: which parameter, its
 * value and the limit. @dev: struct skua_ib_dev; @err: the errno, value of the expression.
 */
#define skua_ib_refuse(dev, err, fmt, ...)						\
({											\
	ibdev_dbg(&(dev)->ibdev, fmt "\n", ##__VA_ARGS__);				\
	(err);										\
})

/* Refuse a value that is not one of @min to @max, naming verb and field. */
#define skua_ib_range(dev, verb, field, val, min, max)					\
({											\
	u32 val_ = (val), min_ = (min), max_ = (max);					\
											\
	val_ >= min_ && val_ <= max_ ? 0 :						\
		skua_ib_refuse(dev, -EINVAL, verb ": " field " %u, must be %u to %u",	\
			       val_, min_, max_);					\
})

/*
 * Destroy callbacks do not check udata. If the RDMA core cannot copy the response of a
 * create method to user space it destroys the object with the udata of that method, and
 * the object would leak if the callback failed.
 */

/* --- main.c, port.c --- */
extern const struct ib_device_ops skua_ib_dev_ops;
#if IS_ENABLED(CONFIG_KUNIT)
void skua_ib_die(struct skua_ib_dev *dev);
#endif
extern const struct ib_device_ops skua_ib_port_ops;
int skua_ib_active_mtu(struct skua_ib_dev *dev, enum ib_mtu *mtu);
int skua_ib_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr);

/* --- user.c --- */

/**
 * enum skua_ib_resource - device resources of which each user gets a limited share
 * @SKUA_IB_RES_MTT: MTT entries of memory that does not count against RLIMIT_MEMLOCK
 * @SKUA_IB_RES_KEY: keys of regions, memory windows and null regions
 * @SKUA_IB_RES_UAR: UAR pages, one for each context
 * @SKUA_IB_RES_DM: bytes of device memory, until the last mapping is gone
 * @SKUA_IB_RES_QP: QPs, work queues included
 * @SKUA_IB_RES_CQ: CQs
 * @SKUA_IB_RES_SRQ: SRQs
 * @SKUA_IB_RES_PD: protection domains
 * @SKUA_IB_RES_XRCD: XRC domains
 * @SKUA_IB_RES_MCG: members of multicast groups
 * @SKUA_IB_RES_COUNT: number of resources
 */
enum skua_ib_resource {
	SKUA_IB_RES_MTT,
	SKUA_IB_RES_KEY,
	SKUA_IB_RES_UAR,
	SKUA_IB_RES_DM,
	SKUA_IB_RES_QP,
	SKUA_IB_RES_CQ,
	SKUA_IB_RES_SRQ,
	SKUA_IB_RES_PD,
	SKUA_IB_RES_XRCD,
	SKUA_IB_RES_MCG,
	SKUA_IB_RES_COUNT
};

/**
 * struct skua_ib_user - the account of a user
 * @link: entry in the device's list of accounts
 * @refs: references; the last one is dropped with the device's user_lock held
 * @dev: the device
 * @uid: the user
 * @used: what is charged to the user, by enum skua_ib_resource
 * @advices: prefetches in progress that the caller does not wait for
 * @fault_lock: protects @serving and @faults
 * @serving: page faults being served
 * @faults: struct skua_ib_fault that wait until one of those being served is done
 */
struct skua_ib_user {
	struct list_head link;
	refcount_t refs;
	struct skua_ib_dev *dev;
	kuid_t uid;
	atomic64_t used[SKUA_IB_RES_COUNT];
	atomic_t advices;
	spinlock_t fault_lock; /* see above */
	u32 serving;
	struct list_head faults;
};

struct skua_ib_user *skua_ib_user_get(struct skua_ib_dev *dev);
struct skua_ib_user *skua_ib_user_hold(struct skua_ib_user *user);
void skua_ib_user_put(struct skua_ib_user *user);
struct skua_ib_user *skua_ib_pd_user(struct ib_pd *ibpd);
int skua_ib_user_charge(struct skua_ib_user *user, enum skua_ib_resource res, u64 num);
void skua_ib_user_uncharge(struct skua_ib_user *user, enum skua_ib_resource res, u64 num);
int skua_ib_user_own(struct skua_ib_user **user, struct skua_ib_dev *dev, struct ib_udata *udata,
		     bool shared, enum skua_ib_resource res);
void skua_ib_user_disown(struct skua_ib_user *user, enum skua_ib_resource res);

/* --- ucontext.c --- */

enum skua_ib_mmap_kind {
	SKUA_IB_MMAP_UAR,
	SKUA_IB_MMAP_PUSH,
	SKUA_IB_MMAP_STATUS,
	SKUA_IB_MMAP_DM,
};

/**
 * struct skua_ib_mmap - an object that user space may map
 * @entry: the RDMA core's part
 * @kind: kind of object
 * @uar: the UAR page, freed with the entry
 * @page: the status page, with a reference
 * @dm: the device memory, freed with the entry
 */
struct skua_ib_mmap {
	struct rdma_user_mmap_entry entry;
	enum skua_ib_mmap_kind kind;
	union {
		struct skua_uar uar;
		struct page *page;
		struct skua_dm dm;
	};
};

/**
 * struct skua_ib_ucontext - user context
 * @ibuc: the RDMA core's part
 * @user: account of the user who opened it
 * @mm: address space of the process that opened it; for comparison only
 * @uar: number of its UAR page
 * @push_uar: number of its UAR page for pushes, with @push_map
 * @uar_map: mmap entry of the UAR page
 * @push_map: mmap entry of the UAR page for pushes, or NULL
 * @status_map: mmap entry of the status page
 * @status: the status page
 * @link: entry in the device's list
 * @page_lock: protects @pages and their reference counts
 * @pages: pages pinned for doorbell records and short rings, by the number of the page
 */
struct skua_ib_ucontext {
	struct ib_ucontext ibuc;
	struct skua_ib_user *user;
	struct mm_struct *mm;
	u32 uar;
	u32 push_uar;
	struct skua_ib_mmap *uar_map;
	struct skua_ib_mmap *push_map;
	struct skua_ib_mmap *status_map;
	struct skua_status_page *status;
	struct list_head link;
	struct mutex page_lock; /* see above */
	struct xarray pages;
};

static inline struct skua_ib_ucontext *to_skua_ucontext(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct skua_ib_ucontext, ibuc);
}

extern const struct ib_device_ops skua_ib_ucontext_ops;
extern const struct uapi_definition skua_ib_ucontext_defs[];
int skua_ib_mmap_check(enum skua_ib_mmap_kind kind, vm_flags_t flags);
void skua_ib_status_dead(struct skua_ib_dev *dev);

/* --- pd.c --- */

/**
 * struct skua_ib_pd - protection domain
 * @ibpd: the RDMA core's part
 * @pdn: its number
 * @null_lock: serializes the creation of @null
 * @has_null: @null exists
 * @null: the null region
 */
struct skua_ib_pd {
	struct ib_pd ibpd;
	u32 pdn;
	struct mutex null_lock; /* see above */
	bool has_null;
	struct skua_mr null;
};

static inline u32 skua_ib_pdn(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct skua_ib_pd, ibpd)->pdn;
}

extern const struct ib_device_ops skua_ib_pd_ops;
extern const struct uapi_definition skua_ib_pd_defs[];

/* --- ah.c, mcast.c --- */

/**
 * struct skua_ib_ah - address handle
 * @ibah: the RDMA core's part
 * @av: address vector, copied to work requests
 */
struct skua_ib_ah {
	struct ib_ah ibah;
	struct skua_av av;
};

static inline struct skua_ib_ah *to_skua_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct skua_ib_ah, ibah);
}

extern const struct ib_device_ops skua_ib_ah_ops;
extern const struct ib_device_ops skua_ib_mcast_ops;

/* --- umem.c: address translation of pinned user memory --- */
struct skua_ib_frmr;
struct skua_ib_page;

/**
 * struct skua_ib_umem - a pinned buffer and its translation
 * @umem: the pinned pages
 * @shared: instead of @umem: the page that the buffer shares with others
 * @user: the account that the MTT entries of a dma-buf are charged to, since these pages do
 *	not count against RLIMIT_MEMLOCK; NULL for other memory
 * @revocable: the exporter may revoke the pages at any time. They are always listed in the
 *	MTT, from where they can be removed while the region exists.
 * @frmr: the FRMR handle to which @mtt belongs, or NULL
 * @mode: SKUA_XLAT_*
 * @log_page: log2 of the page size (INLINE, MTT)
 * @npages: pages (INLINE, MTT)
 * @base: bus address of the first page (CONTIG)
 * @offset: offset of the buffer's first byte in the first page
 * @page: the pages (INLINE), as MTT entries
 * @mtt: the pages (MTT)
 */
struct skua_ib_umem {
	struct ib_umem *umem;
	struct skua_ib_page *shared;
	struct skua_ib_user *user;
	bool revocable;
	struct skua_ib_frmr *frmr;
	u8 mode;
	u8 log_page;
	u32 npages;
	u64 base;
	u32 offset;
	__le64 page[SKUA_MPT_INLINE_PAGES];
	struct skua_mtt mtt;
};

/* Where a buffer begins that is contiguous on the bus. */
static inline void skua_ib_umem_contig(struct skua_ib_umem *m, dma_addr_t start)
{
	m->base = start & SKUA_MTT_ADDR;
	m->offset = start & ~SKUA_MTT_ADDR;
}

u8 skua_ib_umem_mode(size_t npages, bool contig, bool may_inline);
int skua_ib_umem_layout(struct skua_ib_dev *dev, struct skua_ib_umem *m, struct ib_umem *umem,
			bool may_inline);
int skua_ib_umem_fill(struct skua_ib_dev *dev, struct skua_ib_umem *m, bool write);
int skua_ib_umem_map(struct skua_ib_dev *dev, struct skua_ib_umem *m, struct ib_umem *umem,
		     bool may_inline, bool write);
void skua_ib_umem_mtt_free(struct skua_ib_dev *dev, struct skua_ib_umem *m);
struct skua_xlat skua_ib_umem_xlat(const struct skua_ib_umem *m, u64 pos);
void skua_ib_umem_unmap(struct skua_ib_dev *dev, struct skua_ib_umem *m);

/* --- db.c: doorbell records and short rings in user memory --- */

/**
 * struct skua_ib_db - a doorbell record
 * @page: the pinned page, shared with others
 * @dma: its bus address
 */
struct skua_ib_db {
	struct skua_ib_page *page;
	dma_addr_t dma;
};

int skua_ib_db_map(struct skua_ib_ucontext *uc, u64 va, struct skua_ib_db *db);
void skua_ib_db_unmap(struct skua_ib_db *db);
bool skua_ib_ring_shares(u64 va, u64 size);
int skua_ib_ring_map(struct skua_ib_ucontext *uc, u64 va, struct skua_ib_umem *m);
void skua_ib_page_put(struct skua_ib_page *page);

/* --- mr.c, dmabuf.c, fastreg.c, mw.c --- */

/**
 * struct skua_ib_range - parameters of a user region
 * @va: iova of the first byte
 * @len: bytes
 * @access: IB_ACCESS_*
 * @pdn: protection domain
 */
struct skua_ib_range {
	u64 va;
	u64 len;
	int access;
	u32 pdn;
};

/**
 * struct skua_ib_fastreg - page lists of a kernel region for REG_MR
 * @list: the page list that the work request refers to
 * @mtt: entries to which the device copies it
 * @max_pages: size of both; 0: not a region for REG_MR
 * @npages: pages in the list
 * @offset: offset of the first byte in the first page
 */
struct skua_ib_fastreg {
	struct skua_buf list;
	struct skua_mtt mtt;
	u32 max_pages;
	u32 npages;
	u32 offset;
};

/**
 * struct skua_ib_pi - what an integrity region has besides page lists of its data
 * @buf: area and page list
 * @mtt: entries to which the device copies the page list
 * @area: attributes and status
 * @list: pages of metadata
 * @list_dma: bus address of the list
 * @max_pages: room of the list
 * @npages: pages in it
 * @max_blocks: blocks that the area has room for
 * @meta_offset: of the first tuple in the first of these pages
 * @data_len: bytes of data that are mapped
 * @meta_len: bytes of metadata that are mapped
 */
struct skua_ib_pi {
	struct skua_buf buf;
	struct skua_mtt mtt;
	struct skua_pi_area *area;
	__le64 *list;
	dma_addr_t list_dma;
	u32 max_pages;
	u32 npages;
	u32 max_blocks;
	u32 meta_offset;
	u64 data_len;
	u64 meta_len;
};

/**
 * struct skua_ib_mr - memory region
 * @ibmr: the RDMA core's part
 * @core: skua_core's part
 * @user: the account that the key is charged to, or NULL
 * @range: user region: iova, length, access and domain
 * @mem: user region: pinned memory
 * @frmr: user region: the FRMR handle that its key belongs to, or NULL
 * @fr: kernel region for REG_MR: its page lists
 * @pi: integrity region: what it has besides, or NULL
 * @odp: on-demand region: its memory
 */
struct skua_ib_mr {
	struct ib_mr ibmr;
	struct skua_mr core;
	struct skua_ib_user *user;
	struct skua_ib_range range;
	struct skua_ib_umem mem;
	struct skua_ib_frmr *frmr;
	struct skua_ib_fastreg fr;
	struct skua_ib_pi *pi;
	struct skua_ib_odp *odp;
};

static inline struct skua_ib_mr *to_skua_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct skua_ib_mr, ibmr);
}

struct skua_ib_qp;
extern const struct ib_device_ops skua_ib_mr_ops;
extern const struct ib_device_ops skua_ib_dmabuf_ops;
extern const struct ib_device_ops skua_ib_fastreg_ops;
extern const struct ib_device_ops skua_ib_mw_ops;
int skua_ib_put_reg(struct skua_ib_qp *qp, struct skua_wqe_reg *seg, const struct ib_reg_wr *wr);
void skua_ib_fastreg_free(struct skua_ib_dev *dev, struct skua_ib_fastreg *fr);
int skua_ib_fastreg_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, u32 max_pages,
			   struct skua_mpt *mpt);
int skua_ib_fastreg_map(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
			unsigned int *offset);
int skua_ib_access(const struct skua_limits *lim, int flags, u32 *access);
int skua_ib_mr_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct skua_mpt *mpt);
int skua_ib_user_range_check(struct skua_ib_dev *dev, struct skua_ib_range *range, u64 start);
int skua_ib_mr_map(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct ib_umem *umem);

/* --- integrity.c --- */
extern const struct ib_device_ops skua_ib_pi_ops;
static inline bool skua_ib_has_pi(const struct skua_limits *lim)
{
	const u64 caps = SKUA_CAP_PI | SKUA_CAP_FAST_REG | SKUA_CAP_INVALIDATE;

	return (lim->caps & caps) == caps;
}

void skua_ib_pi_free(struct skua_ib_dev *dev, struct skua_ib_mr *mr);
int skua_ib_pi_prepare(struct skua_ib_mr *mr, u64 *wire_len);
#if IS_ENABLED(CONFIG_KUNIT)
int skua_ib_pi_describe(const struct ib_sig_attrs *sig, struct skua_pi_desc *desc);
int skua_ib_check_mr_status(struct ib_mr *ibmr, u32 check_mask, struct ib_mr_status *status);
#endif

/* --- frmr.c: pools of keys and page lists --- */
#ifndef SKUA_COMPAT_FRMR
int skua_ib_frmr_init(struct skua_ib_dev *dev);
void skua_ib_frmr_exit(struct skua_ib_dev *dev);
int skua_ib_frmr_key(struct ib_device *ibdev, const struct ib_frmr_key *in,
		     struct ib_frmr_key *out);
int skua_ib_frmr_get(struct skua_ib_dev *dev, struct skua_ib_mr *mr);
void skua_ib_frmr_fill(struct skua_ib_dev *dev, struct skua_ib_umem *m, const dma_addr_t *pages,
		       bool write);
void skua_ib_frmr_put(struct skua_ib_dev *dev, struct skua_ib_mr *mr);
#else
static inline int skua_ib_frmr_init(struct skua_ib_dev *dev)
{
	return 0;
}

static inline void skua_ib_frmr_exit(struct skua_ib_dev *dev)
{
}

static inline int skua_ib_frmr_get(struct skua_ib_dev *dev, struct skua_ib_mr *mr)
{
	return 0;
}

static inline void skua_ib_frmr_fill(struct skua_ib_dev *dev, struct skua_ib_umem *m,
				     const dma_addr_t *pages, bool write)
{
}

static inline void skua_ib_frmr_put(struct skua_ib_dev *dev, struct skua_ib_mr *mr)
{
}
#endif

/* --- odp.c, odp_dir.c, odp_dmabuf.c, odp_fault.c, odp_mm.c: on-demand paging --- */
extern const struct ib_device_ops skua_ib_odp_ops;
#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)
static inline bool skua_ib_has_odp(const struct skua_limits *lim)
{
	return lim->caps & SKUA_CAP_ODP;
}

int skua_ib_odp_reg(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start, bool implicit);
int skua_ib_odp_reg_dmabuf(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 offset, int fd);
void skua_ib_odp_free(struct skua_ib_mr *mr);
int skua_ib_odp_init(struct skua_ib_dev *dev);
void skua_ib_odp_exit(struct skua_ib_dev *dev);
int skua_ib_odp_module_init(void);
void skua_ib_odp_module_exit(void);
int skua_ib_odp_fill_res(struct sk_buff *msg, const struct skua_ib_mr *mr);
#else
static inline bool skua_ib_has_odp(const struct skua_limits *lim)
{
	return false;
}

static inline int skua_ib_odp_reg(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start,
				  bool implicit)
{
	return -EOPNOTSUPP;
}

static inline int skua_ib_odp_reg_dmabuf(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 offset,
					 int fd)
{
	return -EOPNOTSUPP;
}

static inline void skua_ib_odp_free(struct skua_ib_mr *mr)
{
}

static inline int skua_ib_odp_init(struct skua_ib_dev *dev)
{
	return 0;
}

static inline void skua_ib_odp_exit(struct skua_ib_dev *dev)
{
}

static inline int skua_ib_odp_module_init(void)
{
	return 0;
}

static inline void skua_ib_odp_module_exit(void)
{
}

static inline int skua_ib_odp_fill_res(struct sk_buff *msg, const struct skua_ib_mr *mr)
{
	return 0;
}
#endif

/* --- dm.c --- */

/**
 * struct skua_ib_dm - device memory
 * @ibdm: the RDMA core's part
 * @map: mmap entry, which owns the memory; outlives this while it is mapped
 */
struct skua_ib_dm {
	struct ib_dm ibdm;
	struct skua_ib_mmap *map;
};

void skua_ib_dm_put(struct skua_ib_ucontext *uc, const struct skua_dm *dm);
extern const struct ib_device_ops skua_ib_dm_ops;
extern const struct uapi_definition skua_ib_dm_defs[];

/* --- cq.c, poll.c --- */

/**
 * struct skua_ib_cq - completion queue
 * @ibcq: the RDMA core's part
 * @core: skua_core's part
 * @link: entry in the device's list
 * @lock: kernel CQ: protects @ci, @arm_serial, @closed, the ring, and the consumer indices
 *	of the kernel QPs that complete here
 * @closed: kernel CQ: being destroyed, its number may be in use by another CQ. Set with
 *	@resize_lock held, too.
 * @buf: kernel CQ: ring, then the doorbell record
 * @ring: kernel CQ: first entry
 * @dbr: kernel CQ: doorbell record
 * @log_size: log2 of the entries
 * @ci: free-running consumer index
 * @arm_serial: number of the last arm; 0: never armed
 * @qps: kernel QPs that complete here, by QPN. CQEs with other QPNs are ignored. Entries
 *	are removed with @lock held, so that poll needs no reference.
 * @wake: calls the completion handler when a dead device leaves WQEs to be flushed
 * @resize_lock: serializes changes of @mem, and changes of moderation against @closed
 * @user: the account that it is charged to, or NULL
 * @cqe_size: user CQ: bytes of an entry
 * @mem: user CQ: ring
 * @db: user CQ: doorbell record
 */
struct skua_ib_cq {
	struct ib_cq ibcq;
	struct skua_cq core;
	struct list_head link;

	spinlock_t lock; /* see above */
	bool closed;
	struct skua_ib_kbuf buf;
	struct skua_cqe *ring;
	struct skua_cq_dbr *dbr;
	u8 log_size;
	u32 ci;
	u32 arm_serial;
	struct xarray qps;
	struct work_struct wake;

	struct mutex resize_lock; /* see above */
	struct skua_ib_user *user;
	u32 cqe_size;
	struct skua_ib_umem mem;
	struct skua_ib_db db;
};

static inline struct skua_ib_cq *to_skua_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct skua_ib_cq, ibcq);
}

extern const struct ib_device_ops skua_ib_cq_ops;
void skua_ib_wake_all(struct skua_ib_dev *dev);
int skua_ib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
#if IS_ENABLED(CONFIG_KUNIT)
int skua_ib_take_last(struct skua_ib_cq *cq, int num, struct ib_wc *wc);
#endif
int skua_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void skua_ib_cq_forget(struct skua_ib_qp *qp, bool remove);

/* --- srq.c --- */

/**
 * struct skua_ib_xrcd - XRC domain
 * @ibxrcd: the RDMA core's part
 * @user: the account that it is charged to, or NULL
 * @num: its number
 */
struct skua_ib_xrcd {
	struct ib_xrcd ibxrcd;
	struct skua_ib_user *user;
	u32 num;
};

static inline struct skua_ib_xrcd *to_skua_xrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct skua_ib_xrcd, ibxrcd);
}

/**
 * struct skua_ib_srq - shared receive queue
 * @ibsrq: the RDMA core's part
 * @core: skua_core's part
 * @user: the account that it is charged to, or NULL
 * @mutex: serializes modify and query
 * @wqes: size of the ring
 * @log_segs: log2 of the segments of a WQE
 * @max_sge: scatter elements of a WQE
 * @lock: kernel SRQ: protects all members below but @buf. Nests inside a CQ's lock.
 * @ring: kernel SRQ: the WQEs
 * @wr_id: kernel SRQ: by position
 * @next: kernel SRQ: by position: the next position in the list
 * @posted: kernel SRQ: bitmap of positions that are posted
 * @head: kernel SRQ: first free position
 * @tail: kernel SRQ: last free position, which stays free
 * @pi: kernel SRQ: WQEs posted so far
 * @buf: kernel SRQ: ring, then the doorbell record
 * @dbr: kernel SRQ: doorbell record
 * @mem: user SRQ: ring
 * @db: user SRQ: doorbell record
 */
struct skua_ib_srq {
	struct ib_srq ibsrq;
	struct skua_srq core;
	struct skua_ib_user *user;
	struct mutex mutex; /* see above */
	u32 wqes;
	u32 log_segs;
	u32 max_sge;

	spinlock_t lock; /* see above */
	struct skua_rq_ring ring;
	u64 *wr_id;
	u16 *next;
	unsigned long *posted;
	u32 head;
	u32 tail;
	u32 pi;
	struct skua_ib_kbuf buf;
	struct skua_srq_dbr *dbr;

	struct skua_ib_umem mem;
	struct skua_ib_db db;
};

static inline struct skua_ib_srq *to_skua_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct skua_ib_srq, ibsrq);
}

extern const struct ib_device_ops skua_ib_srq_ops;
u32 skua_ib_max_srq_wr(const struct skua_limits *lim);
bool skua_ib_srq_take(struct skua_ib_srq *srq, u32 pos, u64 *wr_id);
int skua_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad_wr);

/* --- qp.c, qp_kernel.c, qp_user.c, qp_attr.c, wr.c --- */

/**
 * struct skua_ib_swqe - data of a posted send WQE
 * @wr_id: wr_id of the work request
 * @opcode: enum ib_wc_opcode of the completion
 * @blocks: number of blocks; 0 if no WQE starts at this block
 */
struct skua_ib_swqe {
	u64 wr_id;
	u8 opcode;
	u8 blocks;
};

/**
 * struct skua_ib_sq - kernel send queue
 * @lock: protects the producer side. Nests inside a CQ's lock.
 * @ring: the WQEs
 * @wqe: posted WQEs, by block
 * @size: blocks
 * @pi: free-running producer index in blocks
 * @ci: free-running consumer index in blocks, protected by the CQ's lock
 * @suppress: the device tells when it wants a doorbell (SKUA_QP_F_DB_SUPPRESS)
 */
struct skua_ib_sq {
	spinlock_t lock; /* see above */
	struct skua_sq_ring ring;
	struct skua_ib_swqe *wqe;
	u32 size;
	u32 pi;
	u32 ci;
	bool suppress;
};

/**
 * struct skua_ib_rq - kernel receive queue
 * @lock: protects the producer side. Taken before the send queue's lock.
 * @ring: the WQEs
 * @wr_id: by WQE
 * @size: WQEs
 * @pi: free-running producer index
 * @ci: free-running consumer index, protected by the CQ's lock
 */
struct skua_ib_rq {
	spinlock_t lock; /* see above */
	struct skua_rq_ring ring;
	u64 *wr_id;
	u32 size;
	u32 pi;
	u32 ci;
};

/**
 * struct skua_ib_qp - queue pair
 * @ibqp: the RDMA core's part
 * @core: skua_core's part
 * @user: the account that it is charged to, or NULL
 * @lock: serializes modify and query; protects @mcasts
 * @state: state as last modified or queried; the device may have entered an error state
 * @failed: kernel QP: bit 0 is set when a completion in error or an error event has shown
 *	that the QP is in ERR
 * @cap: capabilities granted
 * @sig_all: every send is signaled
 * @dest_qpn: QPN of the peer, as last modified
 * @rate_limit: rate limit in kbit/s, as last modified; 0: none
 * @rate_burst: burst of the rate limit in bytes
 * @mcasts: multicast groups that it is attached to
 * @is_rss: RSS QP: it has an RSS context and no queues
 * @rss: number of the RSS context
 * @sq: kernel QP: send queue
 * @rq: kernel QP: receive queue
 * @buf: kernel QP: rings, then the doorbell record
 * @dbr: kernel QP: doorbell record
 * @mem: user QP: rings
 * @db: user QP: doorbell record
 */
struct skua_ib_qp {
	struct ib_qp ibqp;
	struct skua_qp core;
	struct skua_ib_user *user;
	struct mutex lock; /* see above */
	enum ib_qp_state state;
	unsigned long failed;
	struct ib_qp_cap cap;
	bool sig_all;
	u32 dest_qpn;
	u32 rate_limit;
	u32 rate_burst;
	struct list_head mcasts;
	bool is_rss;
	u32 rss;

	struct skua_ib_sq sq;
	struct skua_ib_rq rq;
	struct skua_ib_kbuf buf;
	struct skua_qp_dbr *dbr;

	struct skua_ib_umem mem;
	struct skua_ib_db db;
};

static inline struct skua_ib_qp *to_skua_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct skua_ib_qp, ibqp);
}

static inline struct skua_ib_dev *skua_ib_qp_dev(const struct skua_ib_qp *qp)
{
	return to_skua_dev(qp->ibqp.device);
}

static inline bool skua_ib_qp_is_kernel(const struct skua_ib_qp *qp)
{
	return qp->dbr;
}

/* QP types of which each work request has an address vector. */
static inline bool skua_ib_is_dgram(enum ib_qp_type type)
{
	return type == IB_QPT_UD || type == IB_QPT_GSI;
}

extern const struct ib_device_ops skua_ib_qp_ops;
u32 skua_ib_ece_options(const struct skua_limits *lim);
int skua_ib_ece_build(const struct skua_limits *lim, enum ib_qp_type type, u32 options,
		      struct skua_cmd_modify_qp_in *in);
void skua_ib_ext_build(const struct skua_limits *lim, enum ib_qp_type type, bool agreed,
		       u32 options, struct skua_cmd_modify_qp_in *in);
u32 skua_ib_max_send_sge(const struct skua_limits *lim);
u32 skua_ib_max_qp_wr(const struct skua_limits *lim);
u32 skua_ib_wqe_blocks(const struct skua_limits *lim, enum ib_qp_type type,
		       const struct ib_qp_cap *cap);

int skua_ib_attr_mask(int ib_mask, u32 *mask);
int skua_ib_attr_check(const struct ib_device *ibdev, const struct skua_limits *lim,
		       const struct ib_qp_attr *attr, int mask, enum ib_mtu active);
u32 skua_ib_rate_types(const struct skua_limits *lim);
int skua_ib_rate_check(const struct skua_limits *lim, enum ib_qp_type type,
		       enum ib_qp_state new, u32 rate, u32 burst);
int skua_ib_attr_build(struct skua_ib_qp *qp, const struct ib_qp_attr *attr, int mask,
		       struct skua_qp_attr *out);
int skua_ib_av_build(const struct skua_limits *lim, const struct rdma_ah_attr *ah, u32 qpn,
		     u32 dest_qpn, struct skua_av *av);
void skua_ib_av_parse(const struct skua_av *av, struct rdma_ah_attr *ah);
void skua_ib_attr_parse(struct skua_ib_qp *qp, const struct skua_cmd_query_qp_out *out,
			struct ib_qp_attr *attr);

int skua_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad_wr);
int skua_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);
void skua_ib_qp_kick(struct skua_ib_qp *qp);
void skua_ib_qp_die(struct skua_ib_dev *dev);
#if IS_ENABLED(CONFIG_KUNIT)
int skua_ib_put_wqe(struct skua_ib_qp *qp, const struct ib_send_wr *wr, u32 pi);
#endif

/* --- wq.c, flow.c --- */

extern const struct ib_device_ops skua_ib_wq_ops;
extern const struct ib_device_ops skua_ib_flow_ops;
int skua_ib_rss_create(struct skua_ib_qp *qp, const struct ib_qp_init_attr *init,
		       struct ib_udata *udata);
void skua_ib_rss_destroy(struct skua_ib_qp *qp);
int skua_ib_rss_hash(u64 fields, u32 *flags);
int skua_ib_flow_build(const struct ib_flow_attr *attr, struct skua_flow *flow);

/* --- counters.c, flow_count.c, pma.c, restrack.c --- */
extern const struct ib_device_ops skua_ib_counter_ops;
extern const struct ib_device_ops skua_ib_qp_counter_ops;
extern const struct ib_device_ops skua_ib_flow_count_ops;
int skua_ib_flow_set(struct ib_counters *ibcounters, u32 *set);
extern const struct ib_device_ops skua_ib_pma_ops;
extern const struct ib_device_ops skua_ib_restrack_ops;

#endif /* SKUA_IB_H */
