// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand regions over dma-bufs. The buffer is mapped as a whole, because its exporter
 * moves it as a whole. A move unmaps it; the next access of the device faults and maps it
 * again. When the exporter has revoked the buffer, mapping fails, and so does the access.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "odp.h"

/*
 * The exporter is about to move the buffer and holds its reservation lock. Nothing here
 * may fail, or wait for a dead device. On return the device no longer accesses the buffer.
 */
static void skua_ib_odp_dmabuf_invalidate(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *umem = attach->importer_priv;
	struct skua_ib_odp_dmabuf *mem = umem->private;
	u32 num;

	dma_resv_assert_held(attach->dmabuf->resv);
	/* If the buffer is not mapped, umem->private may not be set yet. */
	if (!umem->sgt)
		return;
	num = skua_mtt_zap(mem->odp->dev->core, &mem->mtt, 0, mem->mtt.npages);
	mem->present = false;
	atomic64_add(num, &mem->odp->invalidations);
	/* The device no longer accesses the pages. */
	ib_umem_dmabuf_unmap_pages(umem);
}

static const struct dma_buf_attach_ops skua_ib_odp_dmabuf_ops = {
	/* Memory of peer PCI devices is supported. */
	.allow_peer2peer = true,
	.invalidate_mappings = skua_ib_odp_dmabuf_invalidate,
};

/* Return: the number of pages, or a negative errno. */
static int skua_ib_odp_dmabuf_fill(struct skua_ib_odp_dmabuf *mem)
{
	struct skua_ib_odp *odp = mem->odp;
	struct ib_block_iter biter;
	u32 i = 0;
	int err;

	/* Also waits for the exporter's pending copies. */
	err = ib_umem_dmabuf_map_pages(mem->umem);
	if (err)
		return err == -EBUSY ? -EIO : err;
	rdma_umem_for_each_dma_block(&mem->umem->umem, &biter, PAGE_SIZE)
		skua_mtt_set(odp->dev->core, &mem->mtt, i++,
			     rdma_block_iter_dma_address(&biter), odp->write);
	mem->present = true;
	return i;
}

/**
 * skua_ib_odp_dmabuf_page_in() - map a dma-buf and add its pages to the MTT
 * @mem: the buffer
 * @how: SKUA_ODP_PRESENT: do nothing if the buffer is not mapped
 *
 * Return: the number of pages that were added, -ENODEV if the exporter has revoked the
 * buffer or the device is gone, or another negative errno of the exporter; never -EBUSY,
 * upon which callers would retry for ever.
 */
int skua_ib_odp_dmabuf_page_in(struct skua_ib_odp_dmabuf *mem, enum skua_ib_odp_how how)
{
	struct skua_ib_dev *dev = mem->odp->dev;
	int num = 0;

	/*
	 * The removal of the device waits for this. Unlike a page of user space, the exporter
	 * and its fences may not take arbitrarily long.
	 */
	if (!skua_ib_odp_enter(dev))
		return -ENODEV;
	ib_umem_dmabuf_revoke_lock(mem->umem);
	if (!mem->present && how != SKUA_ODP_PRESENT)
		num = skua_ib_odp_dmabuf_fill(mem);
	ib_umem_dmabuf_revoke_unlock(mem->umem);
	skua_ib_odp_leave(dev);
	return num;
}

static int skua_ib_odp_dmabuf_init(struct skua_ib_odp *odp, int fd)
{
	struct skua_ib_odp_dmabuf *mem = kzalloc_obj(*mem, GFP_KERNEL_ACCOUNT);
	struct ib_umem_dmabuf *umem;
	size_t npages;
	int err;

	if (!mem)
		return -ENOMEM;
	umem = ib_umem_dmabuf_get(&odp->dev->ibdev, odp->start, odp->range.len, fd,
				  odp->range.access, &skua_ib_odp_dmabuf_ops);
	if (IS_ERR(umem)) {
		err = PTR_ERR(umem);
		goto err_mem;
	}
	/* The RDMA core leaves it 0 but uses it to compute the number of pages. */
	umem->umem.iova = odp->start;
	npages = ib_umem_num_pages(&umem->umem);
	err = skua_ib_user_charge(odp->user, SKUA_IB_RES_MTT, npages);
	if (err)
		goto err_umem;
	err = skua_mtt_alloc(odp->dev->core, &mem->mtt, NULL, npages, PAGE_SHIFT, false);
	if (err)
		goto err_user;
	mem->odp = odp;
	mem->umem = umem;
	umem->private = mem;
	odp->dmabuf = mem;
	spin_lock(&odp->dev->odp_lock);
	list_add(&mem->link, &odp->dev->odp_dmabufs);
	spin_unlock(&odp->dev->odp_lock);
	return 0;

err_user:
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, npages);
err_umem:
	ib_umem_release(&umem->umem);
err_mem:
	kfree(mem);
	return err;
}

/**
 * skua_ib_odp_dmabuf_detach() - release the buffer and its MTT entries
 * @mem: the buffer, to which no MPT entry of the device refers any more
 *
 * The caller excludes skua_ib_odp_exit(), or is it.
 */
void skua_ib_odp_dmabuf_detach(struct skua_ib_odp_dmabuf *mem)
{
	struct skua_ib_odp *odp = mem->odp;

	/* No invalidation runs after this. */
	ib_umem_release(&mem->umem->umem);
	skua_mtt_free(odp->dev->core, &mem->mtt);
	skua_ib_user_uncharge(odp->user, SKUA_IB_RES_MTT, mem->mtt.npages);
	scoped_guard(spinlock, &odp->dev->odp_lock)
		list_del(&mem->link);
}

/**
 * skua_ib_odp_dmabuf_free() - release the buffer, unless this was done, and free @mem
 * @mem: the buffer, to which no MPT entry of the device refers any more
 */
void skua_ib_odp_dmabuf_free(struct skua_ib_odp_dmabuf *mem)
{
	struct skua_ib_dev *dev = mem->odp->dev;

	if (skua_ib_odp_enter(dev)) {
		skua_ib_odp_dmabuf_detach(mem);
		skua_ib_odp_leave(dev);
	}
	kfree(mem);
}

/**
 * skua_ib_odp_reg_dmabuf() - register a region over a dma-buf that may move
 * @mr: the memory region; @mr->range is set and checked
 * @ibpd: its protection domain
 * @offset: offset of its first byte in the buffer
 * @fd: file descriptor of the buffer
 *
 * Return: 0 or a negative errno, also if the device cannot access the buffer.
 */
int skua_ib_odp_reg_dmabuf(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 offset, int fd)
{
	struct skua_ib_odp *odp;
	int ret;

	odp = skua_ib_odp_alloc(ibpd, &mr->range, offset);
	if (!odp)
		return -ENOMEM;
	ret = skua_ib_odp_dmabuf_init(odp, fd);
	if (!ret)
		ret = skua_ib_odp_dmabuf_page_in(odp->dmabuf, SKUA_ODP_WRITE);
	if (ret < 0) {
		skua_ib_odp_put(odp);
		return ret;
	}
	return skua_ib_odp_publish(odp, mr, ibpd);
}
