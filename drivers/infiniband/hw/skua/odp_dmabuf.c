// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand regions over dma-bufs. The buffer is mapped while its owner leaves it where
 * it is, and as a whole, for it is moved as a whole. When it has moved, the device misses
 * it, and the fault has it mapped where it is then; one that was taken away for good is
 * not to be had any more, and the access fails.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "odp.h"

/*
 * The owner is about to move the buffer, and holds its reservation lock. Nothing here
 * may fail, or wait for a device that has died: no access is under way on return.
 */
static void skua_ib_odp_dmabuf_invalidate(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *umem = attach->importer_priv;
	struct skua_ib_odp_dmabuf *mem = umem->private;
	u32 num;

	dma_resv_assert_held(attach->dmabuf->resv);
	/* What is not mapped may be so young that it does not know its region. */
	if (!umem->sgt)
		return;
	num = skua_mtt_zap(mem->odp->dev->core, &mem->mtt, 0, mem->mtt.npages);
	mem->present = false;
	atomic64_add(num, &mem->odp->invalidations);
	/* The device is done with the pages: now they may go. */
	ib_umem_dmabuf_unmap_pages(umem);
}

static const struct dma_buf_attach_ops skua_ib_odp_dmabuf_ops = {
	/* Memory of another device on the bus is as good as any. */
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

	/* Waits also for what the owner still has to copy there. */
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
 * skua_ib_odp_dmabuf_page_in() - give the device the buffer's pages
 * @mem: the buffer
 * @how: what for; SKUA_ODP_PRESENT maps nothing
 *
 * Return: the number of pages that it did not have; or -ENODEV if the owner has taken
 * them away for good, or another negative errno, the owner's; never -EBUSY, upon which
 * callers would ask again and again.
 */
int skua_ib_odp_dmabuf_page_in(struct skua_ib_odp_dmabuf *mem, enum skua_ib_odp_how how)
{
	int num = 0;

	ib_umem_dmabuf_revoke_lock(mem->umem);
	if (!mem->present && how != SKUA_ODP_PRESENT)
		num = skua_ib_odp_dmabuf_fill(mem);
	ib_umem_dmabuf_revoke_unlock(mem->umem);
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
	/* The RDMA core leaves it 0, and would count the pages of a range that begins there. */
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
 * skua_ib_odp_dmabuf_free() - let go of the buffer
 * @mem: the buffer, which the device does not find any more
 */
void skua_ib_odp_dmabuf_free(struct skua_ib_odp_dmabuf *mem)
{
	/* After it there are no more invalidations. */
	ib_umem_release(&mem->umem->umem);
	skua_mtt_free(mem->odp->dev->core, &mem->mtt);
	skua_ib_user_uncharge(mem->odp->user, SKUA_IB_RES_MTT, mem->mtt.npages);
	kfree(mem);
}

/**
 * skua_ib_odp_reg_dmabuf() - register a region over a dma-buf that may move
 * @mr: @mr->range is set, and checked
 * @ibpd: its protection domain
 * @offset: its first byte in the buffer
 * @fd: the buffer
 *
 * Return: 0 or a negative errno, also if the device cannot reach the buffer.
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
