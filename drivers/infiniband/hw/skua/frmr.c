// SPDX-License-Identifier: GPL-2.0
/*
 * Keys and page lists that are reused for one user region after another, kept in the
 * RDMA core's FRMR pools. A handle is a key with an MPT entry that is backed by memory,
 * and zero or more MTT entries that are backed, too. While a handle is in its pool there
 * is no MPT entry in the device: a region is created with CREATE_MPT, under a new variant
 * of the key, and destroyed with DESTROY_MPT, as any other. Reuse saves mapping and
 * unmapping of ICM, and writing and invalidating MTT entries that do not change.
 *
 * A handle can be used with any access rights, page size and address, so pools differ
 * only in the number of MTT entries.
 */
#include <kunit/visibility.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/frmr_pools.h>

#include "skua_ib.h"

/* Longer page lists are not pooled, because idle handles take up memory. */
#define SKUA_IB_FRMR_MAX_MTT	BIT(16)
/* Limits of idle handles: MTT entries, and the fraction of all MTT entries and keys. */
#define SKUA_IB_FRMR_IDLE_MTT	BIT(22)
#define SKUA_IB_FRMR_IDLE_PART	8
/* A handle is used for at most so many regions, each under another 8-bit key variant. */
#define SKUA_IB_FRMR_MAX_USES	U8_MAX

/**
 * struct skua_ib_frmr - a handle
 * @core: the key
 * @mtt: its MTT entries, if @mtt.npages is not 0
 * @uses: number of regions that it was used for
 * @known: the MTT entries were used by a region, so that the device may cache them
 * @idle: counted in &skua_ib_dev.frmr_idle
 */
struct skua_ib_frmr {
	struct skua_mr core;
	struct skua_mtt mtt;
	u32 uses;
	bool known;
	bool idle;
};

static u32 skua_ib_frmr_max_mtt(const struct skua_ib_dev *dev)
{
	return min_t(u64, SKUA_IB_FRMR_MAX_MTT, dev->lim->max_mtt / SKUA_IB_FRMR_IDLE_PART);
}

/**
 * skua_ib_frmr_key() - determine the pool for a request
 * @ibdev: the device
 * @in: the request; only the number of MTT entries matters
 * @out: the pool's key
 *
 * Return: 0, or -EINVAL if such handles are not pooled.
 */
int skua_ib_frmr_key(struct ib_device *ibdev, const struct ib_frmr_key *in,
		     struct ib_frmr_key *out)
{
	u32 max = skua_ib_frmr_max_mtt(to_skua_dev(ibdev));

	/* Neither ATS nor driver-specific pools are supported. */
	if (in->ats || in->vendor_key || in->num_dma_blocks > max)
		return -EINVAL;
	*out = (struct ib_frmr_key) {};
	if (in->num_dma_blocks)
		out->num_dma_blocks = clamp(roundup_pow_of_two(in->num_dma_blocks),
					    SKUA_MTT_GROUP, max);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_frmr_key);

/* --- handles --- */

static void skua_ib_frmr_free(struct skua_ib_dev *dev, struct skua_ib_frmr *frmr)
{
	if (frmr->mtt.npages)
		skua_mtt_free(dev->core, &frmr->mtt);
	skua_mr_unreserve(dev->core, &frmr->core);
	kfree(frmr);
}

static int skua_ib_frmr_create(struct skua_ib_dev *dev, u32 entries, u32 *handle)
{
	struct skua_ib_frmr *frmr;
	int err;

	frmr = kzalloc_obj(*frmr, GFP_KERNEL_ACCOUNT);
	if (!frmr)
		return -ENOMEM;
	err = skua_mr_reserve(dev->core, &frmr->core);
	if (err)
		goto err_free;
	if (entries) {
		err = skua_mtt_alloc(dev->core, &frmr->mtt, NULL, entries,
				     __ffs64(dev->lim->page_sizes), false);
		if (err)
			goto err_key;
	}
	err = xa_alloc(&dev->frmrs, handle, frmr, xa_limit_32b, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_mtt;
	return 0;

err_mtt:
	if (entries)
		skua_mtt_free(dev->core, &frmr->mtt);
err_key:
	skua_mr_unreserve(dev->core, &frmr->core);
err_free:
	kfree(frmr);
	return err;
}

/* Count a handle as idle or in use. Return: false if there are too many idle ones. */
static bool skua_ib_frmr_set_idle(struct skua_ib_dev *dev, struct skua_ib_frmr *frmr, bool idle)
{
	int sign = idle ? 1 : -1;
	u32 keys, entries;

	if (frmr->idle == idle)
		return true;
	frmr->idle = idle;
	keys = atomic_add_return(sign, &dev->frmr_idle);
	entries = atomic_add_return(sign * (int)frmr->mtt.npages, &dev->frmr_idle_mtt);
	return keys <= dev->lim->max_mr / SKUA_IB_FRMR_IDLE_PART &&
	       entries <= min_t(u64, SKUA_IB_FRMR_IDLE_MTT,
				dev->lim->max_mtt / SKUA_IB_FRMR_IDLE_PART);
}

static void skua_ib_frmr_destroy(struct skua_ib_dev *dev, u32 handle)
{
	struct skua_ib_frmr *frmr = xa_erase(&dev->frmrs, handle);

	if (WARN_ON_ONCE(!frmr))
		return;
	skua_ib_frmr_set_idle(dev, frmr, false);
	skua_ib_frmr_free(dev, frmr);
}

static void skua_ib_destroy_frmrs(struct ib_device *ibdev, u32 *handles, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		skua_ib_frmr_destroy(to_skua_dev(ibdev), handles[i]);
}

static int skua_ib_create_frmrs(struct ib_device *ibdev, struct ib_frmr_key *key, u32 *handles,
				u32 count)
{
	struct skua_ib_dev *dev = to_skua_dev(ibdev);
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		err = skua_ib_frmr_create(dev, key->num_dma_blocks, &handles[i]);
		if (err)
			goto err_destroy;
		/* Idle until skua_ib_frmr_get(), if that is what the handles are for. */
		if (!skua_ib_frmr_set_idle(dev, xa_load(&dev->frmrs, handles[i]), true)) {
			err = -ENOSPC;
			i++;
			goto err_destroy;
		}
	}
	return 0;

err_destroy:
	skua_ib_destroy_frmrs(ibdev, handles, i);
	return err;
}

static const struct ib_frmr_pool_ops skua_ib_frmr_ops = {
	.create_frmrs = skua_ib_create_frmrs,
	.destroy_frmrs = skua_ib_destroy_frmrs,
	.build_key = skua_ib_frmr_key,
};

/**
 * skua_ib_frmr_init() - initialize the pools
 * @dev: the device, not registered yet
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_frmr_init(struct skua_ib_dev *dev)
{
	return ib_frmr_pools_init(&dev->ibdev, &skua_ib_frmr_ops);
}

/**
 * skua_ib_frmr_exit() - destroy the pools and their handles
 * @dev: the device, no longer registered
 */
void skua_ib_frmr_exit(struct skua_ib_dev *dev)
{
	ib_frmr_pools_cleanup(&dev->ibdev);
	WARN_ON_ONCE(!xa_empty(&dev->frmrs));
}

/* --- regions --- */

/**
 * skua_ib_frmr_get() - get a handle from a pool for a region
 * @dev: the device
 * @mr: the region, of which the layout is known
 *
 * Regions over memory that may be revoked get none, because revocation changes their MTT
 * entries at any time.
 *
 * Return: 0, also if the region gets no handle, or a negative errno.
 */
int skua_ib_frmr_get(struct skua_ib_dev *dev, struct skua_ib_mr *mr)
{
	struct ib_frmr_key want = {};
	struct skua_ib_frmr *frmr;
	int err;

	if (mr->mem.mode == SKUA_XLAT_MTT)
		want.num_dma_blocks = mr->mem.npages;
	if (mr->mem.revocable || skua_ib_frmr_key(&dev->ibdev, &want, &mr->ibmr.frmr.key))
		return 0;
	err = ib_frmr_pool_pop(&dev->ibdev, &mr->ibmr);
	/* Pools round up. There may be enough for the region alone. */
	if (err == -ENOSPC)
		return 0;
	if (err)
		return err;
	frmr = xa_load(&dev->frmrs, mr->ibmr.frmr.handle);
	skua_ib_frmr_set_idle(dev, frmr, false);
	mr->frmr = frmr;
	mr->core = frmr->core;
	if (want.num_dma_blocks)
		mr->mem.frmr = frmr;
	return 0;
}

/**
 * skua_ib_frmr_fill() - write a page list to the MTT entries of a handle
 * @dev: the device
 * @m: the buffer, with a handle
 * @pages: bus addresses of its pages
 * @write: the device may write to them
 *
 * Only cached entries that changed are invalidated.
 */
void skua_ib_frmr_fill(struct skua_ib_dev *dev, struct skua_ib_umem *m, const dma_addr_t *pages,
		       bool write)
{
	struct skua_ib_frmr *frmr = m->frmr;

	skua_mtt_refill(dev->core, &frmr->mtt, pages, m->npages, write, frmr->known);
	m->mtt = frmr->mtt;
	frmr->known = true;
}

/**
 * skua_ib_frmr_put() - return a region's handle to its pool
 * @dev: the device
 * @mr: the region, of which the MPT entry is destroyed; may have no handle
 */
void skua_ib_frmr_put(struct skua_ib_dev *dev, struct skua_ib_mr *mr)
{
	struct skua_ib_frmr *frmr = mr->frmr;

	if (!frmr)
		return;
	mr->frmr = NULL;
	mr->mem.frmr = NULL;
	/* Keep the key variant that was used last. */
	frmr->core = mr->core;
	/*
	 * No variant is used twice: peers that know it from an earlier region could access
	 * the new one. After the push the handle may be in use by another region.
	 */
	if (++frmr->uses < SKUA_IB_FRMR_MAX_USES && skua_ib_frmr_set_idle(dev, frmr, true)) {
		ib_frmr_pool_push(&dev->ibdev, &mr->ibmr);
		return;
	}
	ib_frmr_pool_drop(&mr->ibmr);
	skua_ib_frmr_destroy(dev, mr->ibmr.frmr.handle);
}
