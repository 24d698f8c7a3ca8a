// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions over pinned user memory, and the DMA region of kernel consumers. Other
 * kinds of regions: dmabuf.c (dma-bufs), odp.c (on-demand paging), fastreg.c (registered
 * by work requests), dm.c (device memory), pd.c (null regions). frmr.c has the pools of
 * keys and page lists.
 */
#include <kunit/visibility.h>
#include <linux/compat.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/*
 * Access rights and the capabilities that they need. REMOTE_ATOMIC needs none: many
 * programs request it unconditionally, and without atomics it has no effect.
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
	/* Handled by the driver: the iova is 0. */
	{ IB_ZERO_BASED, 0 },
	{ IB_ACCESS_FLUSH_GLOBAL, SKUA_ACCESS_FLUSH_GLOBAL, SKUA_CAP_FLUSH },
	{ IB_ACCESS_FLUSH_PERSISTENT, SKUA_ACCESS_FLUSH_PERSISTENT, SKUA_CAP_FLUSH },
	{ IB_ACCESS_RELAXED_ORDERING, SKUA_ACCESS_RELAXED_ORDERING },
	/* A hint that is not needed: the best page size is always determined. */
	{ IB_ACCESS_HUGETLB, 0 },
};

/**
 * skua_ib_access() - translate access rights
 * @lim: the device
 * @flags: IB_ACCESS_*
 * @access: SKUA_ACCESS_*
 *
 * Return: 0, or -EOPNOTSUPP for rights that the device does not support.
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
 * @mr: filled in; if @mr->frmr is set it has a key already
 * @ibpd: its protection domain, to whose user the key is charged
 * @mpt: the MPT entry; key, domain, state and type are filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_mr_create(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct skua_mpt *mpt)
{
	struct skua_dev *core = to_skua_dev(ibpd->device)->core;
	int err;

	mpt->flags |= le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE) |
		      le32_encode_bits(SKUA_MPT_MR, SKUA_MPT_TYPE);
	mpt->pd = cpu_to_le32(skua_ib_pdn(ibpd));
	err = skua_ib_user_charge(skua_ib_pd_user(ibpd), SKUA_IB_RES_KEY, 1);
	if (err)
		return err;
	if (mr->frmr)
		err = skua_mr_enable(core, &mr->core, mpt);
	else
		err = skua_mr_create(core, &mr->core, mpt);
	if (err) {
		skua_ib_user_uncharge(skua_ib_pd_user(ibpd), SKUA_IB_RES_KEY, 1);
		return err;
	}
	mr->user = skua_ib_pd_user(ibpd);
	mr->ibmr.lkey = mr->core.key;
	mr->ibmr.rkey = mr->core.key;
	return 0;
}

/* A region over all bus addresses except for the last byte. */
static struct ib_mr *skua_ib_get_dma_mr(struct ib_pd *ibpd, int flags)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mpt mpt = {
		.len = cpu_to_le64(U64_MAX),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_CONTIG, SKUA_XLAT_MODE),
	};
	u32 access;
	int err;

	err = skua_ib_access(dev->lim, flags, &access);
	if (err)
		return ERR_PTR(skua_ib_refuse(dev, err, "get_dma_mr: access %#x is not supported",
					      flags));
	mpt.access = cpu_to_le32(access);

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_mr_create(mr, ibpd, &mpt);
	if (err)
		return ERR_PTR(err);
	return &no_free_ptr(mr)->ibmr;
}

/* --- user regions --- */

/* Check access rights, length and iova. */
static int skua_ib_range_check(struct skua_ib_dev *dev, struct skua_ib_range *range)
{
	u32 access;
	u64 end;
	int err;

	err = skua_ib_access(dev->lim, range->access, &access);
	if (err)
		return skua_ib_refuse(dev, err, "region: access %#x is not supported",
				      range->access);
	if (range->access & IB_ZERO_BASED)
		range->va = 0;
	if (!range->len || range->len > dev->lim->max_mr_len ||
	    check_add_overflow(range->va, range->len - 1, &end))
		return skua_ib_refuse(dev, -EINVAL,
				      "region: %llu bytes at iova %#llx: length must be 1 to %llu, the end within 64 bits",
				      range->len, range->va, dev->lim->max_mr_len);
	return 0;
}

/**
 * skua_ib_user_range_check() - check the parameters of a user region
 * @dev: the device
 * @range: iova, length and access; the iova of a zero based region is set to 0
 * @start: user address of its first byte
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_user_range_check(struct skua_ib_dev *dev, struct skua_ib_range *range, u64 start)
{
	u64 end;
	int err;

	err = skua_ib_range_check(dev, range);
	if (err)
		return err;
	if (check_add_overflow(start, range->len, &end) || end > ULONG_MAX)
		return skua_ib_refuse(dev, -EINVAL,
				      "region: %llu bytes at address %#llx exceed the address space",
				      range->len, start);
	return 0;
}

/*
 * May the provider write to the region by its iova? It is the address in the process that
 * opened the context and owns its QPs, not in one that imported the domain.
 */
static bool skua_ib_is_own_va(const struct skua_ib_dev *dev, const struct ib_pd *ibpd,
			      const struct skua_ib_range *range, const struct ib_umem *umem)
{
	if (!(dev->lim->caps & SKUA_CAP_SCATTER_CQE) || umem->is_dmabuf || !ibpd->uobject)
		return false;
	return umem->address == range->va &&
	       umem->owning_mm == to_skua_ucontext(ibpd->uobject->context)->mm;
}

static void skua_ib_mpt_build(struct skua_ib_dev *dev, const struct ib_pd *ibpd,
			      const struct skua_ib_range *range, const struct skua_ib_umem *mem,
			      struct skua_mpt *mpt)
{
	u32 access;

	/* Checked before. */
	skua_ib_access(dev->lim, range->access, &access);
	*mpt = (struct skua_mpt) {
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE) |
			 le32_encode_bits(SKUA_MPT_MR, SKUA_MPT_TYPE),
		.access = cpu_to_le32(access),
		.pd = cpu_to_le32(range->pdn),
		.va = cpu_to_le64(range->va),
		.len = cpu_to_le64(range->len),
		.xlat = skua_ib_umem_xlat(mem, 0),
		.npages = cpu_to_le32(mem->npages),
	};
	if (skua_ib_is_own_va(dev, ibpd, range, mem->umem))
		mpt->flags |= cpu_to_le32(SKUA_MPT_OWN_VA);
	memcpy(mpt->page, mem->page, sizeof(mpt->page));
}

/**
 * skua_ib_mr_map() - create a region over a pinned buffer
 * @mr: the region; @mr->range is set and checked
 * @ibpd: its protection domain
 * @umem: the buffer; on failure the caller releases it
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_mr_map(struct skua_ib_mr *mr, struct ib_pd *ibpd, struct ib_umem *umem)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mpt mpt;
	int err;

	err = skua_ib_umem_layout(dev, &mr->mem, umem, true);
	if (err)
		return err;
	err = skua_ib_frmr_get(dev, mr);
	if (err)
		return err;
	err = skua_ib_umem_fill(dev, &mr->mem, ib_access_writable(mr->range.access));
	if (err)
		goto err_frmr;
	skua_ib_mpt_build(dev, ibpd, &mr->range, &mr->mem, &mpt);
	err = skua_ib_mr_create(mr, ibpd, &mpt);
	if (err)
		goto err_mtt;
	return 0;

err_mtt:
	skua_ib_umem_mtt_free(dev, &mr->mem);
err_frmr:
	skua_ib_frmr_put(dev, mr);
	return err;
}

/*
 * The implicit region is registered with address 0 and the maximum of size_t, for which rdma-core
 * sends U64_MAX from programs of 32 bits, too.
 */
static bool skua_ib_is_implicit(const struct skua_ib_range *range, u64 start)
{
	return !start && (range->len == U64_MAX ||
			  (in_compat_syscall() && range->len == U32_MAX));
}

static int skua_ib_reg_on_demand(struct skua_ib_mr *mr, struct ib_pd *ibpd, u64 start)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_ib_range *range = &mr->range;
	bool implicit;
	int err;

	if (!skua_ib_has_odp(dev->lim) || range->access & IB_ACCESS_MW_BIND)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "on-demand region: access %#x: %s",
				      range->access, skua_ib_has_odp(dev->lim) ?
				      "MW_BIND is not supported with on-demand paging" :
				      "the device does not support on-demand paging");
	range->access &= ~IB_ACCESS_ON_DEMAND;
	implicit = skua_ib_is_implicit(range, start);
	if (implicit) {
		if (range->va || range->access & IB_ACCESS_HUGETLB)
			return skua_ib_refuse(dev, -EINVAL,
					      "implicit region: iova %#llx, access %#x: iova must be 0 and HUGETLB clear",
					      range->va, range->access);
		range->len = TASK_SIZE;
	}
	err = skua_ib_user_range_check(dev, range, start);
	if (err)
		return err;
	/* The same errno as pinning beyond the end of the address space. */
	if (start > TASK_SIZE || range->len > TASK_SIZE - start)
		return skua_ib_refuse(dev, -EFAULT,
				      "on-demand region: %llu bytes at %#llx end above TASK_SIZE, %#lx",
				      range->len, start, TASK_SIZE);
	return skua_ib_odp_reg(mr, ibpd, start, implicit);
}

static struct ib_mr *skua_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					 int flags, struct ib_dmah *dmah, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct ib_umem *umem;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	if (dmah)
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "reg_mr: DMA handles are not supported"));

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->range = (struct skua_ib_range) { iova, length, flags, skua_ib_pdn(ibpd) };
	/* Not all uverbs methods set these, and QUERY_MR returns them. */
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	if (flags & IB_ACCESS_ON_DEMAND) {
		err = skua_ib_reg_on_demand(mr, ibpd, start);
		return err ? ERR_PTR(err) : &no_free_ptr(mr)->ibmr;
	}
	err = skua_ib_user_range_check(dev, &mr->range, start);
	if (err)
		return ERR_PTR(err);
	umem = ib_umem_get_va(ibpd->device, start, length, flags);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	err = skua_ib_mr_map(mr, ibpd, umem);
	if (err) {
		ib_umem_release(umem);
		return ERR_PTR(err);
	}
	return &no_free_ptr(mr)->ibmr;
}

/*
 * Pin the memory of a changed region: if @trans is set that at @start, else the old
 * memory again, because the new access rights need it writable.
 */
static int skua_ib_rereg_pin(struct skua_ib_dev *dev, struct skua_ib_mr *mr, bool trans,
			     u64 start, struct skua_ib_range *range, struct skua_ib_umem *mem)
{
	struct ib_umem *umem = mr->mem.umem;
	int err;

	if (umem->is_dmabuf)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "rereg_mr: key %#x: memory of a dma-buf cannot be changed",
				      mr->core.key);
	if (!trans) {
		/* The address is valid only in the process that registered the region. */
		if (umem->owning_mm != current->mm)
			return skua_ib_refuse(dev, -EACCES,
					      "rereg_mr: key %#x was registered by another process",
					      mr->core.key);
		start = umem->address;
	}
	err = skua_ib_user_range_check(dev, range, start);
	if (err)
		return err;
	umem = ib_umem_get_va(&dev->ibdev, start, range->len, range->access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = skua_ib_umem_map(dev, mem, umem, true, ib_access_writable(range->access));
	if (err)
		ib_umem_release(umem);
	return err;
}

/* On failure the region stays unchanged and usable. */
static struct ib_mr *skua_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
					   u64 iova, int access, struct ib_pd *ibpd,
					   struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibmr->device);
	struct skua_ib_mr *mr = to_skua_mr(ibmr);
	struct skua_ib_range range = mr->range;
	struct skua_ib_umem mem = {};
	bool trans, pin;
	struct skua_mpt mpt;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	if (!mr->mem.umem || flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "rereg_mr: key %#x, flags %#x: only %#lx of pinned user memory are supported",
					      mr->core.key, flags,
					      (unsigned long)IB_MR_REREG_SUPPORTED));
	trans = flags & IB_MR_REREG_TRANS;
	if (trans) {
		range.va = iova;
		range.len = length;
	}
	if (flags & IB_MR_REREG_ACCESS)
		range.access = access;
	if (flags & IB_MR_REREG_PD)
		range.pdn = skua_ib_pdn(ibpd);
	err = skua_ib_range_check(dev, &range);
	if (err)
		return ERR_PTR(err);

	pin = trans || ib_umem_check_rereg(mr->mem.umem, flags, access);
	if (pin) {
		err = skua_ib_rereg_pin(dev, mr, trans, start, &range, &mem);
		if (err)
			return ERR_PTR(err);
	}
	skua_ib_mpt_build(dev, ibmr->pd, &range, pin ? &mem : &mr->mem, &mpt);
	err = skua_mr_modify(dev->core, &mr->core, &mpt);
	if (err) {
		skua_ib_umem_unmap(dev, &mem);
		return ERR_PTR(err);
	}
	mr->range = range;
	if (pin) {
		swap(mr->mem, mem);
		skua_ib_umem_unmap(dev, &mem);
	}
	return NULL;
}

static int skua_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibmr->device);
	struct skua_ib_mr *mr = to_skua_mr(ibmr);
	int err;

	if (mr->frmr)
		err = skua_mr_disable(dev->core, &mr->core);
	else
		err = skua_mr_destroy(dev->core, &mr->core);
	if (err)
		return err;
	skua_ib_user_uncharge(mr->user, SKUA_IB_RES_KEY, 1);
	skua_ib_pi_free(dev, mr);
	skua_ib_fastreg_free(dev, &mr->fr);
	skua_ib_umem_unmap(dev, &mr->mem);
	skua_ib_frmr_put(dev, mr);
	skua_ib_odp_free(mr);
	kfree(mr);
	return 0;
}

const struct ib_device_ops skua_ib_mr_ops = {
	.get_dma_mr = skua_ib_get_dma_mr,
	.reg_user_mr = skua_ib_reg_user_mr,
	.rereg_user_mr = skua_ib_rereg_user_mr,
	.dereg_mr = skua_ib_dereg_mr,
};
