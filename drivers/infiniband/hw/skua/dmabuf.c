// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions over dma-bufs. If the device supports on-demand paging the buffer is not
 * pinned, and its exporter may move it (odp_dmabuf.c). Otherwise the buffer is pinned.
 */
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/*
 * The exporter revokes a pinned buffer: the region stays registered, but all accesses to
 * it fail from now on. Called at most once, with the buffer's reservation lock held.
 */
static void skua_ib_dmabuf_revoke(void *priv)
{
	struct skua_ib_mr *mr = priv;

	skua_mtt_clear(to_skua_dev(mr->mem.umem->ibdev)->core, &mr->mem.mtt);
}

/* Fails if the exporter cannot pin the buffer. It may revoke it later. */
static int skua_ib_reg_dmabuf_pinned(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 offset, int fd)
{
	struct ib_umem_dmabuf *umem;
	int err;

	umem = ib_umem_dmabuf_get_pinned_revocable_and_lock(ibpd->device, offset, mr->range.len,
							    fd, mr->range.access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	mr->mem.revocable = true;
	mr->mem.user = skua_ib_pd_user(ibpd);
	err = skua_ib_mr_map(mr, ibpd, &umem->umem);
	if (!err)
		ib_umem_dmabuf_set_revoke_locked(umem, skua_ib_dmabuf_revoke, mr);
	ib_umem_dmabuf_revoke_unlock(umem);
	if (err)
		ib_umem_release(&umem->umem);
	return err;
}

static struct ib_mr *skua_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length,
						u64 iova, int fd, int flags, struct ib_dmah *dmah,
						struct uverbs_attr_bundle *attrs)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	int err;

	err = ib_no_udata_io(&attrs->driver_udata);
	if (err)
		return ERR_PTR(err);
	if (dmah)
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "reg_dmabuf_mr: DMA handles are not supported"));

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->range = (struct skua_ib_range) { iova, length, flags, skua_ib_pdn(ibpd) };
	err = skua_ib_user_range_check(dev, &mr->range, offset);
	if (err)
		return ERR_PTR(err);
	/* Memory windows cannot be bound to on-demand regions. */
	if (skua_ib_has_odp(dev->lim) && !(flags & IB_ACCESS_MW_BIND))
		err = skua_ib_odp_reg_dmabuf(mr, ibpd, offset, fd);
	else
		err = skua_ib_reg_dmabuf_pinned(mr, ibpd, offset, fd);
	if (err)
		return ERR_PTR(err);
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	return &no_free_ptr(mr)->ibmr;
}

const struct ib_device_ops skua_ib_dmabuf_ops = {
	.reg_user_mr_dmabuf = skua_ib_reg_user_mr_dmabuf,
};
