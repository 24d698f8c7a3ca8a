/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-demand regions, for odp.c, odp_dir.c, odp_dmabuf.c and odp_fault.c.
 */
#ifndef SKUA_IB_ODP_H
#define SKUA_IB_ODP_H

#include <linux/atomic.h>
#include <linux/refcount.h>
#include <rdma/ib_umem_odp.h>

#include "skua_ib.h"

/*
 * A region longer than a block is divided into blocks, which come when a page in them
 * is first wanted: neither page lists nor notifiers are had for what nobody uses. The
 * lists of a block fill a page of the system's each.
 */
#define SKUA_ODP_LOG_BLOCK	(2 * PAGE_SHIFT - 3)
#define SKUA_ODP_BLOCK_SIZE	BIT_ULL(SKUA_ODP_LOG_BLOCK)
#define SKUA_ODP_BLOCK_PAGES	BIT(SKUA_ODP_LOG_BLOCK - PAGE_SHIFT)

/* How long an empty block may stay, in case its pages come back. */
#define SKUA_ODP_REAP_DELAY	HZ

/**
 * struct skua_ib_odp_block - memory with one page list
 * @ref: of the region, and of each who pages in
 * @odp: the region
 * @umem: the memory. Its umem_mutex protects its page list and @mtt's entries;
 *	taken in memory reclaim, so that nothing is allocated under it.
 * @mtt: the page list
 * @start: address of the first page of @mtt
 */
struct skua_ib_odp_block {
	refcount_t ref;
	struct skua_ib_odp *odp;
	struct ib_umem_odp *umem;
	struct skua_mtt mtt;
	u64 start;
};

/**
 * struct skua_ib_odp_dmabuf - a dma-buf whose owner may move it
 * @odp: the region
 * @umem: the buffer. Its reservation lock protects its mapping, @mtt's entries and
 *	@present.
 * @mtt: the page list
 * @present: the list has the pages
 */
struct skua_ib_odp_dmabuf {
	struct skua_ib_odp *odp;
	struct ib_umem_dmabuf *umem;
	struct skua_mtt mtt;
	bool present;
};

/**
 * struct skua_ib_odp - on-demand region
 * @ref: of the memory region, and of each who pages in. The memory region does not
 *	wait for the others: a page may be long in coming, if it is user space that has
 *	to provide it.
 * @dev: the device
 * @user: whose it is, or NULL
 * @range: where and what for; @range.va is not that of the memory if @start is
 *	another
 * @start: address of the first byte in the process, or in the dma-buf
 * @key: its key
 * @write: pages may be made writable
 * @implicit: all of the address space
 * @dmabuf: over a dma-buf, which is not divided: its memory
 * @whole: not divided: its only block
 * @root: divided: stands for the process
 * @dir: divided: directory, of the blocks or of directories of these
 * @log_mid: divided: log2 of the entries of a directory of the second level; 0: there
 *	are none
 * @base: divided: address that the first block begins at
 * @lock: divided: protects @mids, @blocks, their number and @victim
 * @mids: divided: struct skua_ib_odp_mid by index in @dir
 * @blocks: divided: struct skua_ib_odp_block by index
 * @num_blocks: their number
 * @victim: where to look for the next one that goes if there are too many
 * @reap: divided: gets rid of blocks that have become empty
 * @faults: pages that the device asked for
 * @invalidations: pages taken away from it
 * @prefetched: pages given to it by advice
 */
struct skua_ib_odp {
	refcount_t ref;
	struct skua_ib_dev *dev;
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

/**
 * enum skua_ib_odp_how - how to page in
 * @SKUA_ODP_READ: pages are wanted for reading
 * @SKUA_ODP_WRITE: for writing
 * @SKUA_ODP_PRESENT: only those that the process has already
 */
enum skua_ib_odp_how {
	SKUA_ODP_READ,
	SKUA_ODP_WRITE,
	SKUA_ODP_PRESENT,
};

int skua_ib_odp_page_in(struct skua_ib_odp *odp, u64 va, u64 len, enum skua_ib_odp_how how);

extern const struct mmu_interval_notifier_ops skua_ib_odp_mmu_ops;
int skua_ib_odp_block_init(struct skua_ib_odp_block *block, struct skua_ib_odp *odp,
			   struct ib_umem_odp *umem, u64 npages);
void skua_ib_odp_block_put(struct skua_ib_odp_block *block);

int skua_ib_odp_dir_init(struct skua_ib_odp *odp);
void skua_ib_odp_dir_destroy(struct skua_ib_odp *odp);
struct skua_ib_odp_block *skua_ib_odp_dir_get(struct skua_ib_odp *odp, u64 addr, bool *fresh);

int skua_ib_odp_dmabuf_page_in(struct skua_ib_odp_dmabuf *mem, enum skua_ib_odp_how how);
void skua_ib_odp_dmabuf_free(struct skua_ib_odp_dmabuf *mem);

#endif /* SKUA_IB_ODP_H */
