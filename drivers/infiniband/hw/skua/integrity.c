// SPDX-License-Identifier: GPL-2.0
/*
 * Integrity regions of kernel consumers: the device checks, makes and takes away T10 protection
 * information. A region for REG_MR (fastreg.c) with a second page list, for the tuples in memory,
 * and an area of host memory: the attributes, which the device reads when the region is
 * registered, and the status of the checks, which it writes before the completions.
 */
#include <kunit/visibility.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "skua_ib.h"

/**
 * skua_ib_pi_free() - free what an integrity region has besides
 * @dev: the device
 * @mr: the region, of any kind, which the device no longer uses
 */
void skua_ib_pi_free(struct skua_ib_dev *dev, struct skua_ib_mr *mr)
{
	if (!mr->pi)
		return;
	skua_mtt_free(dev->core, &mr->pi->mtt);
	skua_buf_free(dev->core, &mr->pi->buf);
	kfree(mr->pi);
	mr->pi = NULL;
}

/* One buffer has the area and the page list, which begins at a multiple of 64 bytes. */
static int skua_ib_pi_init(struct skua_ib_dev *dev, struct skua_ib_mr *mr, u32 data_pages,
			   u32 meta_pages)
{
	u32 page = BIT(__ffs64(dev->lim->page_sizes));
	u32 blocks = data_pages * (page / SKUA_PI_INTERVAL_MIN);
	size_t list = ALIGN(struct_size_t(struct skua_pi_area, tuple, blocks), SKUA_WQE_BLOCK);
	struct skua_ib_pi *pi;
	int err;

	pi = kzalloc_obj(*pi);
	if (!pi)
		return -ENOMEM;
	err = skua_buf_alloc(dev->core, &pi->buf, list + meta_pages * sizeof(__le64));
	if (err)
		goto err_free;
	err = skua_mtt_alloc(dev->core, &pi->mtt, NULL, meta_pages,
			     __ffs64(dev->lim->page_sizes), false);
	if (err)
		goto err_buf;
	pi->area = pi->buf.va;
	pi->list = pi->buf.va + list;
	pi->list_dma = pi->buf.dma + list;
	pi->max_pages = meta_pages;
	pi->max_blocks = blocks;
	mr->pi = pi;
	return 0;

err_buf:
	skua_buf_free(dev->core, &pi->buf);
err_free:
	kfree(pi);
	return err;
}

static struct ib_mr *skua_ib_alloc_mr_integrity(struct ib_pd *ibpd, u32 max_data_sg,
						u32 max_meta_sg)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_mpt mpt = {
		.flags = cpu_to_le32(SKUA_MPT_PI),
	};
	int err;

	if (!max_data_sg || max_data_sg > SKUA_IB_MAX_PI_PAGES ||
	    max_meta_sg > SKUA_IB_MAX_PI_PAGES)
		return ERR_PTR(skua_ib_refuse(dev, -EINVAL,
					      "alloc_mr_integrity: %u pages of data, %u of metadata, must be 1 to %u",
					      max_data_sg, max_meta_sg, SKUA_IB_MAX_PI_PAGES));

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_pi_init(dev, mr, max_data_sg, max_meta_sg);
	if (err)
		return ERR_PTR(err);
	mpt.pi.area = cpu_to_le64(mr->pi->buf.dma);
	mpt.pi.base = cpu_to_le64(mr->pi->mtt.first);
	mpt.pi.npages = cpu_to_le32(max_meta_sg);
	mpt.pi.max_blocks = cpu_to_le32(mr->pi->max_blocks);
	err = skua_ib_fastreg_create(mr, ibpd, max_data_sg, &mpt);
	if (err) {
		skua_ib_pi_free(dev, mr);
		return ERR_PTR(err);
	}
	return &no_free_ptr(mr)->ibmr;
}

/* --- attributes --- */

static bool skua_ib_pi_has_dif(const struct ib_sig_domain *d)
{
	return d->sig_type == IB_SIG_TYPE_T10_DIF;
}

static bool skua_ib_pi_domain_ok(const struct ib_sig_domain *d)
{
	if (d->sig_type == IB_SIG_TYPE_NONE)
		return true;
	return skua_ib_pi_has_dif(d) &&
	       (d->sig.dif.bg_type == IB_T10DIF_CRC || d->sig.dif.bg_type == IB_T10DIF_CSUM);
}

static void skua_ib_pi_put_domain(struct skua_pi_domain *to, const struct ib_sig_domain *d)
{
	const struct ib_t10_dif_domain *dif = &d->sig.dif;
	u16 flags = SKUA_PI_F_T10;

	memset(to, 0, sizeof(*to));
	if (!skua_ib_pi_has_dif(d))
		return;
	if (dif->bg_type == IB_T10DIF_CSUM)
		flags |= SKUA_PI_F_CSUM;
	if (dif->ref_remap)
		flags |= SKUA_PI_F_REF_INC;
	if (dif->app_escape)
		flags |= SKUA_PI_F_APP_ESCAPE;
	if (dif->ref_escape)
		flags |= SKUA_PI_F_REF_ESCAPE;
	to->flags = cpu_to_le16(flags);
	to->seed = cpu_to_le16(dif->bg);
	to->app_tag = cpu_to_le16(dif->app_tag);
	to->app_mask = cpu_to_le16(dif->apptag_check_mask);
	to->ref_tag = cpu_to_le32(dif->ref_tag);
}

/* What has the same rules on both sides goes through unchanged, right or wrong. */
static u8 skua_ib_pi_copy(const struct ib_sig_attrs *sig)
{
	const struct ib_t10_dif_domain *mem = &sig->mem.sig.dif, *wire = &sig->wire.sig.dif;
	u8 copy = 0;

	if (!skua_ib_pi_has_dif(&sig->mem) || !skua_ib_pi_has_dif(&sig->wire))
		return 0;
	if (mem->bg_type == wire->bg_type && mem->bg == wire->bg)
		copy |= SKUA_PI_GUARD;
	if (mem->app_tag == wire->app_tag)
		copy |= SKUA_PI_APP;
	if (mem->ref_tag == wire->ref_tag && mem->ref_remap == wire->ref_remap)
		copy |= SKUA_PI_REF;
	return copy;
}

/* Bytes of data in a block, 0: these attributes are not supported. */
static u32 skua_ib_pi_interval(const struct ib_sig_attrs *sig)
{
	bool mem = skua_ib_pi_has_dif(&sig->mem), wire = skua_ib_pi_has_dif(&sig->wire);
	u32 interval;

	if (!skua_ib_pi_domain_ok(&sig->mem) || !skua_ib_pi_domain_ok(&sig->wire))
		return 0;
	/* Without any protection information the size of a block has no meaning. */
	if (!mem && !wire)
		return SKUA_PI_INTERVAL_MIN;
	interval = mem ? sig->mem.sig.dif.pi_interval : sig->wire.sig.dif.pi_interval;
	if (mem && wire && sig->wire.sig.dif.pi_interval != interval)
		return 0;
	if (interval < SKUA_PI_INTERVAL_MIN || interval > SKUA_PI_INTERVAL_MAX ||
	    interval % sizeof(struct skua_pi_tuple))
		return 0;
	return interval;
}

/**
 * skua_ib_pi_describe() - the attributes of an integrity region, for the device
 * @sig: what the consumer wants
 * @desc: filled in but for the page list
 *
 * Return: 0, or -EINVAL if the device does not support them.
 */
VISIBLE_IF_KUNIT int skua_ib_pi_describe(const struct ib_sig_attrs *sig,
					 struct skua_pi_desc *desc)
{
	u32 interval = skua_ib_pi_interval(sig);

	if (!interval)
		return -EINVAL;
	*desc = (struct skua_pi_desc) {
		.attr.interval = cpu_to_le16(interval),
		.attr.copy = skua_ib_pi_copy(sig),
	};
	if (skua_ib_pi_has_dif(&sig->mem) || skua_ib_pi_has_dif(&sig->wire))
		desc->attr.check = sig->check_mask;
	skua_ib_pi_put_domain(&desc->attr.mem, &sig->mem);
	skua_ib_pi_put_domain(&desc->attr.wire, &sig->wire);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_pi_describe);

/* --- mapping --- */

static int skua_ib_pi_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct skua_ib_pi *pi = to_skua_mr(ibmr)->pi;

	if (pi->npages == pi->max_pages)
		return -ENOMEM;
	pi->list[pi->npages++] = cpu_to_le64(addr);
	return 0;
}

static int skua_ib_pi_map_meta(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
			       unsigned int *offset)
{
	struct skua_ib_pi *pi = to_skua_mr(ibmr)->pi;
	int n;

	pi->npages = 0;
	pi->meta_len = 0;
	if (!nents)
		return 0;
	n = ib_sg_to_pages(ibmr, sg, nents, offset, skua_ib_pi_set_page);
	if (n != nents)
		return n < 0 ? n : -ENOMEM;
	pi->meta_len = ibmr->length;
	pi->meta_offset = ibmr->iova & (ibmr->page_size - 1);
	return 0;
}

/*
 * Only the page lists are made here. The attributes are looked at when the region is registered:
 * NVMe over Fabrics sets them in between.
 */
static int skua_ib_map_mr_sg_pi(struct ib_mr *ibmr, struct scatterlist *data_sg, int data_nents,
				unsigned int *data_offset, struct scatterlist *meta_sg,
				int meta_nents, unsigned int *meta_offset)
{
	struct skua_ib_dev *dev = to_skua_dev(ibmr->device);
	struct skua_ib_pi *pi = to_skua_mr(ibmr)->pi;
	int err, n;

	n = skua_ib_fastreg_map(ibmr, data_sg, data_nents, data_offset);
	/* Too many pages, or a gap: there is no region of part of a list. */
	if (n != data_nents)
		return n < 0 ? n : -ENOMEM;
	pi->data_len = ibmr->length;
	err = skua_ib_pi_map_meta(ibmr, meta_sg, meta_nents, meta_offset);
	if (err)
		return skua_ib_refuse(dev, err,
				      "map_mr_sg_pi: metadata: more than %u pages, or with gaps",
				      pi->max_pages);
	/*
	 * The region begins at 0. Its length is that of what is mapped: consumers take the metadata
	 * off where the wire has none, and add it where only the wire has it.
	 */
	ibmr->sig_attrs->meta_length = pi->meta_len;
	ibmr->iova = 0;
	ibmr->length = pi->data_len + pi->meta_len;
	return 0;
}

/* The blocks of the region, or a negative errno. */
static s64 skua_ib_pi_blocks(struct skua_ib_dev *dev, const struct skua_ib_pi *pi, u32 interval,
			     bool mem)
{
	u64 blocks;
	u32 rest;

	blocks = div_u64_rem(pi->data_len, interval, &rest);
	if (rest || blocks > pi->max_blocks)
		return skua_ib_refuse(dev, -EINVAL,
				      "reg_mr_integrity: %llu bytes of data, must be at most %u blocks of %u",
				      pi->data_len, pi->max_blocks, interval);
	if (mem && pi->meta_len < blocks * sizeof(struct skua_pi_tuple))
		return skua_ib_refuse(dev, -EINVAL,
				      "reg_mr_integrity: %llu bytes of metadata, %llu blocks need %llu",
				      pi->meta_len, blocks, blocks * sizeof(struct skua_pi_tuple));
	return blocks;
}

/**
 * skua_ib_pi_prepare() - write what the device reads when it registers an integrity region
 * @mr: the region, whose last registration the device has read
 * @wire_len: set to the bytes of the region as remote requests and work requests see it
 *
 * Context: a send queue's lock is held. The doorbell comes later, with its barrier.
 * Return: 0, or -EINVAL for attributes that are not supported or do not fit what is mapped.
 */
int skua_ib_pi_prepare(struct skua_ib_mr *mr, u64 *wire_len)
{
	struct skua_ib_dev *dev = to_skua_dev(mr->ibmr.device);
	const struct ib_sig_attrs *sig = mr->ibmr.sig_attrs;
	bool mem = skua_ib_pi_has_dif(&sig->mem), wire = skua_ib_pi_has_dif(&sig->wire);
	struct skua_ib_pi *pi = mr->pi;
	struct skua_pi_desc desc;
	s64 blocks = 0;
	int err;

	err = skua_ib_pi_describe(sig, &desc);
	if (err)
		return skua_ib_refuse(dev, err,
				      "reg_mr_integrity: signatures %d and %d, blocks of %u and %u bytes, guards %d and %d",
				      sig->mem.sig_type, sig->wire.sig_type,
				      sig->mem.sig.dif.pi_interval, sig->wire.sig.dif.pi_interval,
				      sig->mem.sig.dif.bg_type, sig->wire.sig.dif.bg_type);
	if (mem || wire)
		blocks = skua_ib_pi_blocks(dev, pi, le16_to_cpu(desc.attr.interval), mem);
	if (blocks < 0)
		return blocks;
	if (mem) {
		desc.page_list = cpu_to_le64(pi->list_dma);
		desc.npages = cpu_to_le32(pi->npages);
		desc.attr.offset = cpu_to_le32(pi->meta_offset);
	}
	pi->area->desc = desc;
	*wire_len = pi->data_len + (wire ? blocks * sizeof(struct skua_pi_tuple) : 0);
	return 0;
}

/* --- status --- */

static enum ib_sig_err_type skua_ib_pi_err_type(u32 what)
{
	switch (what) {
	case SKUA_PI_APP:
		return IB_SIG_BAD_APPTAG;
	case SKUA_PI_REF:
		return IB_SIG_BAD_REFTAG;
	default:
		return IB_SIG_BAD_GUARD;
	}
}

/**
 * skua_ib_check_mr_status() - what the checks of an integrity region found
 * @ibmr: the region
 * @check_mask: IB_MR_CHECK_SIG_STATUS
 * @status: filled in
 *
 * The device has written it before the completion that the caller knows of, so that nothing
 * is waited for. It stays until the region is registered again.
 *
 * Return: 0 or -EINVAL.
 */
VISIBLE_IF_KUNIT int skua_ib_check_mr_status(struct ib_mr *ibmr, u32 check_mask,
					     struct ib_mr_status *status)
{
	const struct skua_ib_pi *pi = to_skua_mr(ibmr)->pi;
	const struct skua_pi_status *s;

	if (check_mask & ~(u32)IB_MR_CHECK_SIG_STATUS)
		return -EINVAL;
	memset(status, 0, sizeof(*status));
	if (!(check_mask & IB_MR_CHECK_SIG_STATUS))
		return 0;
	if (!pi)
		return -EINVAL;
	s = &pi->area->status;
	/* Pairs with the device's order: the status, then the completion. */
	dma_rmb();
	if (!s->errors)
		return 0;
	status->fail_status = IB_MR_CHECK_SIG_STATUS;
	status->sig_err = (struct ib_sig_err) {
		.err_type = skua_ib_pi_err_type(le32_to_cpu(s->what)),
		.expected = le32_to_cpu(s->expected),
		.actual = le32_to_cpu(s->actual),
		.sig_err_offset = le64_to_cpu(s->offset),
		.key = le32_to_cpu(s->key),
	};
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_check_mr_status);

const struct ib_device_ops skua_ib_pi_ops = {
	.alloc_mr_integrity = skua_ib_alloc_mr_integrity,
	.check_mr_status = skua_ib_check_mr_status,
	.map_mr_sg_pi = skua_ib_map_mr_sg_pi,
};
