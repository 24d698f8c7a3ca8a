// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions.
 */
#include <kunit/visibility.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/*
 * Rights and what they need: some the device has always, some with a
 * capability. REMOTE_ATOMIC is a right like others: without atomics nobody can
 * make use of it, and programs ask for it as a matter of course.
 */
static const struct {
	u32 ib;
	u32 hw;
	u64 cap;
} skua_ib_rights[] = {
	{ IB_ACCESS_LOCAL_WRITE, SKUA_ACCESS_LOCAL_WRITE },
	{ IB_ACCESS_REMOTE_WRITE, SKUA_ACCESS_REMOTE_WRITE },
	{ IB_ACCESS_REMOTE_READ, SKUA_ACCESS_REMOTE_READ },
	{ IB_ACCESS_REMOTE_ATOMIC, SKUA_ACCESS_REMOTE_ATOMIC },
	{ IB_ACCESS_MW_BIND, SKUA_ACCESS_MW_BIND, SKUA_CAP_MW },
	{ IB_ZERO_BASED, SKUA_ACCESS_ZERO_BASED, SKUA_CAP_MW },
	{ IB_ACCESS_FLUSH_GLOBAL, SKUA_ACCESS_FLUSH_GLOBAL, SKUA_CAP_FLUSH },
	{ IB_ACCESS_FLUSH_PERSISTENT, SKUA_ACCESS_FLUSH_PERSISTENT, SKUA_CAP_FLUSH },
	{ IB_ACCESS_RELAXED_ORDERING, SKUA_ACCESS_RELAXED_ORDERING },
	/* Only a promise of the caller about the pages; they are looked at anyway. */
	{ IB_ACCESS_HUGETLB, 0 },
};

/**
 * skua_ib_access() - translate access rights
 * @lim: the device
 * @flags: IB_ACCESS_*
 * @access: SKUA_ACCESS_*
 *
 * Return: 0, or -EOPNOTSUPP for rights the device does not know.
 */
int skua_ib_access(const struct skua_limits *lim, int flags, u32 *access)
{
	u32 left = flags & ~(u32)IB_ACCESS_OPTIONAL;
	unsigned int i;

	*access = 0;
	for (i = 0; i < ARRAY_SIZE(skua_ib_rights); i++) {
		if (!(flags & skua_ib_rights[i].ib))
			continue;
		if (skua_ib_rights[i].cap & ~lim->caps)
			return -EOPNOTSUPP;
		*access |= skua_ib_rights[i].hw;
		left &= ~skua_ib_rights[i].ib;
	}
	return left ? -EOPNOTSUPP : 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_access);

/**
 * skua_ib_mr_create() - create a region
 * @mr: filled in
 * @ibpd: its protection domain
 * @mpt: where it lies, and what may be done with it; flags of its kind
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_mr_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct skua_mpt *mpt)
{
	int err;

	mpt->flags |= le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE) |
		      le32_encode_bits(SKUA_MPT_MR, SKUA_MPT_TYPE);
	mpt->pd = cpu_to_le32(skua_ib_pdn(ibpd));
	err = skua_mr_create(to_skua_dev(ibpd->device)->core, &mr->core, mpt);
	if (err)
		return err;
	mr->ibmr.lkey = mr->core.key;
	mr->ibmr.rkey = mr->core.key;
	return 0;
}

/* All bus addresses that a region can span, for kernel users that want a key. */
static struct ib_mr *skua_ib_get_dma_mr(struct ib_pd *ibpd, int flags)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mpt mpt = {
		.len = cpu_to_le64(dev->lim->max_mr_len),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_CONTIG, SKUA_XLAT_MODE),
	};
	u32 access;
	int err;

	err = skua_ib_access(dev->lim, flags, &access);
	if (err)
		return ERR_PTR(err);
	mpt.access = cpu_to_le32(access);

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_mr_create(mr, ibpd, &mpt);
	if (err)
		return ERR_PTR(err);
	return &no_free_ptr(mr)->ibmr;
}

/* Create the region of a pinned buffer. */
static int skua_ib_mr_map(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct ib_umem *umem,
			  u64 iova, u64 length, u32 access, int flags)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mpt mpt = {
		.access = cpu_to_le32(access),
		.va = cpu_to_le64(iova),
		.len = cpu_to_le64(length),
	};
	int err;

	err = skua_ib_umem_map(dev, &mr->mem, umem, true, ib_access_writable(flags));
	if (err)
		return err;
	mpt.xlat = skua_ib_umem_xlat(&mr->mem, 0);
	mpt.npages = cpu_to_le32(mr->mem.npages);
	memcpy(mpt.page, mr->mem.page, sizeof(mpt.page));
	err = skua_ib_mr_create(mr, ibpd, &mpt);
	if (err && mr->mem.mode == SKUA_XLAT_MTT)
		skua_mtt_free(dev->core, &mr->mem.mtt);
	return err;
}

static struct ib_mr *skua_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					 int flags, struct ib_dmah *dmah, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct ib_umem *umem;
	u32 access;
	u64 end;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	err = skua_ib_access(dev->lim, flags, &access);
	if (err)
		return ERR_PTR(err);
	if (flags & IB_ZERO_BASED)
		iova = 0;
	if (!length || length > dev->lim->max_mr_len ||
	    check_add_overflow(start, length, &end) || end > ULONG_MAX ||
	    check_add_overflow(iova, length - 1, &end))
		return ERR_PTR(-EINVAL);

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	umem = ib_umem_get_va(ibpd->device, start, length, flags);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	err = skua_ib_mr_map(mr, ibpd, umem, iova, length, access, flags);
	if (err) {
		ib_umem_release(umem);
		return ERR_PTR(err);
	}
	return &no_free_ptr(mr)->ibmr;
}

static int skua_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibmr->device);
	struct skua_ib_mr *mr = to_skua_mr(ibmr);
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	err = skua_mr_destroy(dev->core, &mr->core);
	if (err)
		return err;
	skua_ib_umem_unmap(dev, &mr->mem);
	kfree(mr);
	return 0;
}

const struct ib_device_ops skua_ib_mr_ops = {
	.get_dma_mr = skua_ib_get_dma_mr,
	.reg_user_mr = skua_ib_reg_user_mr,
	.dereg_mr = skua_ib_dereg_mr,
};
