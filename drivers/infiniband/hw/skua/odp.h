/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-demand regions, for odp.c, odp_dir.c, odp_dmabuf.c, odp_fault.c and odp_mm.c.
 */
#ifndef SKUA_IB_ODP_H
#define SKUA_IB_ODP_H

#include <linux/atomic.h>
#include <linux/refcount.h>
#include <rdma/ib_umem_odp.h>

#include "skua_ib.h"

/*
 * A region longer than a block is divided into blocks, which are created when a page in
 * them is first accessed, so that unused parts need neither page lists nor notifiers. The
 * page list of a block is as long as a page.
 */
#define SKUA_ODP_LOG_BLOCK	(2 * PAGE_SHIFT - 3)
#define SKUA_ODP_BLOCK_SIZE	BIT_ULL(SKUA_ODP_LOG_BLOCK)
#define SKUA_ODP_BLOCK_PAGES	BIT(SKUA_ODP_LOG_BLOCK - PAGE_SHIFT)

/* How long an empty block is kept, because its pages may be accessed again. */
#define SKUA_ODP_REAP_DELAY	HZ

/**
 * struct skua_ib_odp_block - memory with one page list
 * @ref: references: one of the region and one of each thread that pages in
 * @link: entry in the device's list of blocks, while the block uses the device
 * @odp: the region
 * @umem: the memory. Its umem_mutex protects its page list and the entries of @mtt; it
 *	is taken in memory reclaim, so nothing is allocated with it held.
 * @mtt: the page list
 * @present: entries of @mtt that have a page, as the page list says: decides when an empty
 *	block is freed, not whether an invalidation reaches the device
 * @gone: the block no longer uses the device: no page is mapped for DMA and @mtt is free.
 *	Protected by umem_mutex.
 * @start: address of the first page of @mtt
 */
struct skua_ib_odp_block {
	refcount_t ref;
	struct list_head link;
	struct skua_ib_odp *odp;
	struct ib_umem_odp *umem;
	struct skua_mtt mtt;
	u32 present;
	bool gone;
	u64 start;
};

/**
 * struct skua_ib_odp_dmabuf - a dma-buf that its exporter may move
 * @odp: the region
 * @link: entry in the device's list of dma-bufs; removed when @umem and @mtt are released
 * @umem: the buffer. Its reservation lock protects its mapping, the entries of @mtt and
 *	@present.
 * @mtt: the page list
 * @present: the buffer is mapped and its pages are in @mtt
 */
struct skua_ib_odp_dmabuf {
	struct skua_ib_odp *odp;
	struct list_head link;
	struct ib_umem_dmabuf *umem;
	struct skua_mtt mtt;
	bool present;
};

/**
 * struct skua_ib_odp - on-demand region
 * @ref: references: one of the memory region and one of each thread that pages in.
 *	Neither deregistration nor the removal of the device waits for these threads,
 *	because a page may take arbitrarily long if user space provides it.
 * @dev: the device, with a reference to its memory
 * @link: divided region: entry in the device's list of directories, while the region uses
 *	the device
 * @user: account of the user, or NULL
 * @range: iova, length and access
 * @start: address of the first byte in the process, or offset in the dma-buf
 * @key: its key
 * @write: the region is writable
 * @implicit: it is the implicit region
 * @dmabuf: dma-buf region: the buffer
 * @whole: region not divided into blocks: its only block
 * @root: divided region: the parent of the umems of its blocks
 * @dir: divided region: directory of the blocks, or of second-level directories
 * @log_mid: divided region: log2 of the entries of a second-level directory; 0: there
 *	are none
 * @base: divided region: address of the first block
 * @lock: divided region: protects @mids, @blocks, @num_blocks and @victim
 * @mids: divided region: struct skua_ib_odp_mid by index in @dir
 * @blocks: divided region: struct skua_ib_odp_block by index
 * @num_blocks: number of blocks
 * @victim: index of the block that was evicted last
 * @reap: divided region: frees blocks that have become empty
 * @faults: pages that were added because of page faults of the device
 * @invalidations: pages that were removed
 * @prefetched: pages that were added by ibv_advise_mr()
 */
struct skua_ib_odp {
	refcount_t ref;
	struct skua_ib_dev *dev;
	struct list_head link;
	struct skua_ib_user *user;
	struct skua_ib_range range;
	u64 start;
	u32 key;
	bool write;
	bool implicit;

	struct skua_ib_odp_dmabuf *dmabuf;
	struct skua_ib_odp_block *whole;

	struct ib_umem_odp *root;
	struct skua_mtt dir;
	u8 log_mid;
	u64 base;
	struct mutex lock; /* see above */
	struct xarray mids;
	struct xarray blocks;
	u32 num_blocks;
	unsigned long victim;
	struct delayed_work reap;

	atomic64_t faults;
	atomic64_t invalidations;
	atomic64_t prefetched;
};

struct skua_ib_odp *skua_ib_odp_alloc(struct ib_pd *ibpd, const struct skua_ib_range *range,
				      u64 start);
int skua_ib_odp_publish(struct skua_ib_odp *odp, struct skua_ib_mr *mr, struct ib_pd *ibpd);
struct skua_ib_odp *skua_ib_odp_get(struct skua_ib_dev *dev, u32 key);
void skua_ib_odp_put(struct skua_ib_odp *odp);
bool skua_ib_odp_known(const struct skua_ib_odp *odp);
bool skua_ib_odp_enter(struct skua_ib_dev *dev);
void skua_ib_odp_leave(struct skua_ib_dev *dev);
void skua_ib_odp_queue_reap(struct skua_ib_odp *odp);

/**
 * enum skua_ib_odp_how - how to page in
 * @SKUA_ODP_READ: fault pages in for reading
 * @SKUA_ODP_WRITE: fault pages in for writing
 * @SKUA_ODP_PRESENT: only pages that are present
 */
enum skua_ib_odp_how {
	SKUA_ODP_READ,
	SKUA_ODP_WRITE,
	SKUA_ODP_PRESENT,
};

int skua_ib_odp_page_in(struct skua_ib_odp *odp, u64 va, u64 len, enum skua_ib_odp_how how);

#if IS_ENABLED(CONFIG_KUNIT) && !defined(SKUA_COMPAT_ODP)
int skua_ib_odp_map(struct ib_umem_odp *umem, u32 i, unsigned long pfn, dma_addr_t *addr);
#endif
int skua_ib_odp_mm_prepare(struct mm_struct *mm);
int skua_ib_odp_lock_pages(struct ib_umem_odp *umem, u64 start, u32 num, unsigned long need,
			   unsigned long *pfns);

extern struct workqueue_struct *skua_ib_odp_wq;
extern const struct mmu_interval_notifier_ops skua_ib_odp_mmu_ops;
int skua_ib_odp_block_init(struct skua_ib_odp_block *block, struct skua_ib_odp *odp,
			   struct ib_umem_odp *umem, u64 npages);
void skua_ib_odp_block_detach(struct skua_ib_odp_block *block);
void skua_ib_odp_block_put(struct skua_ib_odp_block *block);

int skua_ib_odp_dir_init(struct skua_ib_odp *odp);
void skua_ib_odp_dir_detach(struct skua_ib_odp *odp);
void skua_ib_odp_dir_destroy(struct skua_ib_odp *odp);
struct skua_ib_odp_block *skua_ib_odp_dir_get(struct skua_ib_odp *odp, u64 addr, bool *fresh);

int skua_ib_odp_dmabuf_page_in(struct skua_ib_odp_dmabuf *mem, enum skua_ib_odp_how how);
void skua_ib_odp_dmabuf_detach(struct skua_ib_odp_dmabuf *mem);
void skua_ib_odp_dmabuf_free(struct skua_ib_odp_dmabuf *mem);

#endif /* SKUA_IB_ODP_H */
