// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: allocation in pages, and memory regions in it. ucontext.c maps it.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "skua_ib.h"

#define UVERBS_MODULE_NAME skua_ib
#include <rdma/uverbs_named_ioctl.h>

static struct skua_ib_dm *to_skua_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct skua_ib_dm, ibdm);
}

static int skua_ib_dm_respond(struct skua_ib_dm *dm, u64 length, struct uverbs_attr_bundle *attrs,
			      u16 attr)
{
	struct skua_dm_resp resp = {
		.offset = rdma_user_mmap_get_offset(&dm->map->entry),
		.size = dm->map->dm.size,
		.length = length,
	};

	return uverbs_copy_to_struct_or_zero(attrs, attr, &resp, sizeof(resp));
}

static int skua_ib_dm_get(struct skua_ib_ucontext *uc, struct skua_dm *dm,
			  const struct ib_dm_alloc_attr *attr)
{
	struct skua_ib_dev *dev = to_skua_dev(uc->ibuc.device);
	u64 size = PAGE_ALIGN(attr->length);
	int err;

	err = skua_ib_user_charge(uc->user, SKUA_IB_RES_DM, size);
	if (err)
		return err;
	err = skua_dm_alloc(dev->core, dm, attr->length, attr->alignment);
	if (err) {
		skua_ib_user_uncharge(uc->user, SKUA_IB_RES_DM, size);
		return skua_ib_refuse(dev, err,
				      "alloc_dm: no %llu bytes aligned to 2^%u are free: %pe",
				      size, attr->alignment, ERR_PTR(err));
	}
	return 0;
}

/**
 * skua_ib_dm_put() - free device memory
 * @uc: the context it was allocated in
 * @dm: the memory, which is no longer mapped
 */
void skua_ib_dm_put(struct skua_ib_ucontext *uc, const struct skua_dm *dm)
{
	skua_ib_user_uncharge(uc->user, SKUA_IB_RES_DM, dm->size);
	skua_dm_free(to_skua_dev(uc->ibuc.device)->core, dm);
}

/* The mmap entry owns the memory, because mappings may outlive the DM object. */
static int skua_ib_dm_map(struct skua_ib_dm *dm, struct ib_ucontext *ibuc,
			  const struct ib_dm_alloc_attr *attr)
{
	struct skua_ib_ucontext *uc = to_skua_ucontext(ibuc);
	int err;

	struct skua_ib_mmap *map __free(kfree) = kzalloc_obj(*map, GFP_KERNEL_ACCOUNT);

	if (!map)
		return -ENOMEM;
	map->kind = SKUA_IB_MMAP_DM;
	err = skua_ib_dm_get(uc, &map->dm, attr);
	if (err)
		return err;
	err = rdma_user_mmap_entry_insert(ibuc, &map->entry, map->dm.size);
	if (err) {
		skua_ib_dm_put(uc, &map->dm);
		return err;
	}
	dm->map = no_free_ptr(map);
	return 0;
}

static struct ib_dm *skua_ib_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
				      struct ib_dm_alloc_attr *attr,
				      struct uverbs_attr_bundle *attrs)
{
	struct skua_ib_dev *dev = to_skua_dev(ibdev);
	u32 size = dev->lim->dm_size;
	int err;

	if (!size)
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "alloc_dm: the device has no device memory"));
	if (!attr->length || attr->length > size || attr->flags)
		return ERR_PTR(skua_ib_refuse(dev, -EINVAL,
					      "alloc_dm: %llu bytes, flags %#x; 1 to %u bytes and no flags are supported",
					      attr->length, attr->flags, size));

	struct skua_ib_dm *dm __free(kfree) = kzalloc_obj(*dm, GFP_KERNEL_ACCOUNT);

	if (!dm)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_dm_map(dm, ibuc, attr);
	if (err)
		return ERR_PTR(err);
	if (uverbs_attr_is_valid(attrs, SKUA_ATTR_DM_ALLOC_RESP)) {
		err = skua_ib_dm_respond(dm, attr->length, attrs, SKUA_ATTR_DM_ALLOC_RESP);
		if (err) {
			rdma_user_mmap_entry_remove(&dm->map->entry);
			return ERR_PTR(err);
		}
	}
	return &no_free_ptr(dm)->ibdm;
}

static int skua_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct skua_ib_dm *dm = to_skua_dm(ibdm);

	rdma_user_mmap_entry_remove(&dm->map->entry);
	kfree(dm);
	return 0;
}

/* The RDMA core has checked the range and that IB_ZERO_BASED is set. */
static struct ib_mr *skua_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				       struct ib_dm_mr_attr *attr,
				       struct uverbs_attr_bundle *attrs)
{
	u64 first = to_skua_dm(ibdm)->map->dm.offset + attr->offset;
	struct skua_mpt mpt = {
		.flags = cpu_to_le32(SKUA_MPT_DM),
		.len = cpu_to_le64(attr->length),
		.xlat.base = cpu_to_le64(first & PAGE_MASK),
		.xlat.offset = cpu_to_le32(first & ~PAGE_MASK),
		.xlat.mode = le32_encode_bits(SKUA_XLAT_CONTIG, SKUA_XLAT_MODE),
	};
	u32 access;
	int err;

	err = skua_ib_access(to_skua_dev(ibpd->device)->lim, attr->access_flags & ~IB_ZERO_BASED,
			     &access);
	if (err)
		return ERR_PTR(skua_ib_refuse(to_skua_dev(ibpd->device), err,
					      "reg_dm_mr: access %#x is not supported",
					      attr->access_flags));
	mpt.access = cpu_to_le32(access);

	struct skua_ib_mr *mr __free(kfree) = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = skua_ib_mr_create(mr, ibpd, &mpt);
	if (err)
		return ERR_PTR(err);
	/* The region is zero based: its iova stays 0. */
	mr->ibmr.length = attr->length;
	return &no_free_ptr(mr)->ibmr;
}

const struct ib_device_ops skua_ib_dm_ops = {
	.alloc_dm = skua_ib_alloc_dm,
	.dealloc_dm = skua_ib_dealloc_dm,
	.reg_dm_mr = skua_ib_reg_dm_mr,
};

/* --- driver methods and attributes --- */

static int UVERBS_HANDLER(SKUA_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, SKUA_ATTR_DM_QUERY_HANDLE);

	return skua_ib_dm_respond(to_skua_dm(ibdm), ibdm->length, attrs, SKUA_ATTR_DM_QUERY_RESP);
}

DECLARE_UVERBS_NAMED_METHOD(SKUA_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(SKUA_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(SKUA_ATTR_DM_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct skua_dm_resp, length),
						UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DM, &UVERBS_METHOD(SKUA_METHOD_DM_QUERY));

/* A driver attribute of the RDMA core's DM_ALLOC method. */
static const struct uverbs_attr_def * const skua_ib_dm_alloc_attrs[] = {
	UVERBS_ATTR_PTR_OUT(SKUA_ATTR_DM_ALLOC_RESP,
			    UVERBS_ATTR_STRUCT(struct skua_dm_resp, length), UA_OPTIONAL),
};

static const struct uverbs_method_def skua_ib_dm_alloc = {
	.id = UVERBS_METHOD_DM_ALLOC,
	.num_attrs = ARRAY_SIZE(skua_ib_dm_alloc_attrs),
	.attrs = &skua_ib_dm_alloc_attrs,
};

static const struct uverbs_method_def * const skua_ib_dm_methods[] = {
	&skua_ib_dm_alloc,
};

static const struct uverbs_object_def skua_ib_dm_object = {
	.id = UVERBS_OBJECT_DM,
	.num_methods = ARRAY_SIZE(skua_ib_dm_methods),
	.methods = &skua_ib_dm_methods,
};

const struct uapi_definition skua_ib_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &skua_ib_dm_object),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_DM),
	{},
};
