// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that kernel consumers register by work requests (IB_WR_REG_MR): a key, a page
 * list that the work request refers to, and MTT entries to which the device copies the
 * list. The registration ends by LOCAL_INV or SEND with invalidate.
 */
#include <linux/slab.h>

#include "skua_ib.h"

/**
 * skua_ib_fastreg_free() - free the page lists of a region for REG_MR
 * @dev: the device
 * @fr: the page lists, which the device no longer uses; empty for other regions
 */
void skua_ib_fastreg_free(struct skua_ib_dev *dev, struct skua_ib_fastreg *fr)
{
	if (!fr->max_pages)
		return;
	skua_mtt_free(dev->core, &fr->mtt);
	skua_buf_free(dev->core, &fr->list);
	fr->max_pages = 0;
}

static int skua_ib_fastreg_init(struct skua_ib_dev *dev, struct skua_ib_fastreg *fr, u32 max_pages)
{
	int err;

	err = skua_buf_alloc(dev->core, &fr->list, max_pages * sizeof(__le64));
	if (err)
		return err;
	err = skua_mtt_alloc(dev->core, &fr->mtt, NULL, max_pages, __ffs64(dev->lim->page_sizes),
			     false);
	if (err) {
		skua_buf_free(dev->core, &fr->list);
		return err;
	}
	fr->max_pages = max_pages;
	return 0;
}

/**
 * skua_ib_fastreg_create() - create a region for REG_MR
 * @mr: filled in
 * @ibpd: its protection domain
 * @max_pages: room of its page list
 * @mpt: the MPT entry, with what is special of this region
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_fastreg_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, u32 max_pages,
			   struct skua_mpt *mpt)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	int err;

	err = skua_ib_fastreg_init(dev, &mr->fr, max_pages);
	if (err)
		return err;
	mpt->flags |= le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
		      le32_encode_bits(SKUA_MPT_MR, SKUA_MPT_TYPE) |
		      cpu_to_le32(SKUA_MPT_FAST_REG);
	mpt->pd = cpu_to_le32(skua_ib_pdn(ibpd));
	mpt->xlat.base = cpu_to_le64(mr->fr.mtt.first);
	mpt->xlat.mode = le32_encode_bits(SKUA_XLAT_MTT, SKUA_XLAT_MODE);
	mpt->npages = cpu_to_le32(max_pages);
	err = skua_mr_create(dev->core, &mr->core, mpt);
	if (err) {
		skua_ib_fastreg_free(dev, &mr->fr);
		return err;
	}
	mr->ibmr.lkey = mr->core.key;
	mr->ibmr.rkey = mr->core.key;
	return 0;
}

static struct ib_mr *skua_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mpt mpt = {};
	int err;

	/* Scatter lists with gaps are not supported; integrity.c has regions with signatures. */
	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "alloc_mr: type %d, only MEM_REG is supported",
					      type));
	if (!max_num_sg || max_num_sg > SKUA_IB_MAX_FAST_PAGES)
		return ERR_PTR(skua_ib_refuse(dev, -EINVAL, "alloc_mr: %u pages, must be 1 to %lu",
					      max_num_sg,
					      (unsigned long)SKUA_IB_MAX_FAST_PAGES));

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_fastreg_create(mr, ibpd, max_num_sg, &mpt);
	if (err)
		return ERR_PTR(err);
	return &no_free_ptr(mr)->ibmr;
}

static int skua_ib_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct skua_ib_fastreg *fr = &to_skua_mr(ibmr)->fr;
	__le64 *list = fr->list.va;

	if (fr->npages == fr->max_pages)
		return -ENOMEM;
	list[fr->npages++] = cpu_to_le64(addr);
	return 0;
}

/**
 * skua_ib_fastreg_map() - make the page list of a region for REG_MR
 * @ibmr: the region; @ibmr->page_size is set
 * @sg: what it is to consist of
 * @sg_nents: elements
 * @sg_offset: of the first byte in the first element, or NULL
 *
 * Return: the number of elements mapped, or a negative errno.
 */
int skua_ib_fastreg_map(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
			unsigned int *sg_offset)
{
	struct skua_ib_fastreg *fr = &to_skua_mr(ibmr)->fr;
	int n;

	if (!is_power_of_2(ibmr->page_size) ||
	    !(to_skua_dev(ibmr->device)->lim->page_sizes & ibmr->page_size))
		return skua_ib_refuse(to_skua_dev(ibmr->device), -EINVAL,
				      "map_mr_sg: page size %u, must be one of %#llx",
				      ibmr->page_size, to_skua_dev(ibmr->device)->lim->page_sizes);
	fr->npages = 0;
	n = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, skua_ib_set_page);
	/* Kept now, because the caller may change the iova to 0 afterwards. */
	fr->offset = ibmr->iova & (ibmr->page_size - 1);
	return n;
}

/*
 * Integrity regions have a work request of their own, which is for QPs that are made for it, and no
 * atomics.
 */
static bool skua_ib_reg_ok(const struct ib_qp *ibqp, const struct ib_reg_wr *wr)
{
	const struct skua_ib_mr *mr = to_skua_mr(wr->mr);

	if (wr->wr.opcode == IB_WR_REG_MR_INTEGRITY)
		return mr->pi && ibqp->integrity_en && !(wr->access & IB_ACCESS_REMOTE_ATOMIC);
	return mr->fr.max_pages && !mr->pi;
}

/**
 * skua_ib_put_reg() - write the registration segments of a REG_MR
 * @qp: the QP
 * @seg: first of the segments
 * @wr: the work request
 *
 * Return: 0 or -EINVAL.
 */
int skua_ib_put_reg(struct skua_ib_qp *qp, struct skua_wqe_reg *seg, const struct ib_reg_wr *wr)
{
	struct skua_ib_mr *mr = to_skua_mr(wr->mr);
	u64 len = mr->ibmr.length;
	u32 access;

	/* The consumer may change only the low byte of the key. */
	if (!skua_ib_reg_ok(&qp->ibqp, wr) || (wr->key ^ mr->core.key) & ~0xffU ||
	    skua_ib_access(skua_ib_qp_dev(qp)->lim, wr->access, &access))
		return -EINVAL;
	if (mr->pi && skua_ib_pi_prepare(mr, &len))
		return -EINVAL;
	skua_wqe_reg_set(seg, wr->key, access, mr->ibmr.iova, len);
	skua_wqe_reg_pages(seg, mr->fr.list.dma, mr->fr.npages, ilog2(mr->ibmr.page_size),
			   mr->fr.offset);
	return 0;
}

const struct ib_device_ops skua_ib_fastreg_ops = {
	.alloc_mr = skua_ib_alloc_mr,
	.map_mr_sg = skua_ib_fastreg_map,
};
