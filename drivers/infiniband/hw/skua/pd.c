// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains (numbers that the device compares) and null regions.
 */
#include <rdma/uverbs_ioctl.h>

#include "skua_ib.h"
#include "trace.h"

#define UVERBS_MODULE_NAME skua_ib
#include <rdma/uverbs_named_ioctl.h>

static struct skua_ib_pd *to_skua_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct skua_ib_pd, ibpd);
}

static int skua_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_ib_pd *pd = to_skua_pd(ibpd);
	struct skua_alloc_pd_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;
	if (skua_ib_dead(dev))
		return -EIO;
	mutex_init(&pd->null_lock);
	err = skua_ib_user_charge(skua_ib_pd_user(ibpd), SKUA_IB_RES_PD, 1);
	if (err)
		return err;
	err = skua_pd_alloc(dev->core, &pd->pdn);
	if (err)
		goto err_user;
	if (udata) {
		resp.pdn = pd->pdn;
		err = ib_respond_udata(udata, resp);
		if (err)
			goto err_pd;
	}
	trace_skua_ib_alloc_pd(ibpd->device, pd->pdn);
	return 0;

err_pd:
	skua_pd_free(dev->core, pd->pdn);
err_user:
	skua_ib_user_uncharge(skua_ib_pd_user(ibpd), SKUA_IB_RES_PD, 1);
	return err;
}

static int skua_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct skua_dev *core = to_skua_dev(ibpd->device)->core;
	struct skua_ib_pd *pd = to_skua_pd(ibpd);
	int err;

	if (pd->has_null) {
		err = skua_mr_destroy(core, &pd->null);
		if (err)
			return err;
		skua_ib_user_uncharge(skua_ib_pd_user(ibpd), SKUA_IB_RES_KEY, 1);
	}
	trace_skua_ib_dealloc_pd(ibpd->device, pd->pdn);
	skua_pd_free(core, pd->pdn);
	skua_ib_user_uncharge(skua_ib_pd_user(ibpd), SKUA_IB_RES_PD, 1);
	return 0;
}

const struct ib_device_ops skua_ib_pd_ops = {
	.alloc_pd = skua_ib_alloc_pd,
	.dealloc_pd = skua_ib_dealloc_pd,
	INIT_RDMA_OBJ_SIZE(ib_pd, skua_ib_pd, ibpd),
};

/* --- null regions --- */

/*
 * A null region discards writes and returns zeros for reads, at any address. All null
 * regions are alike, so a domain has at most one: it is created at the first request and
 * destroyed with the domain.
 */
static int skua_ib_null_mr(struct skua_ib_pd *pd)
{
	struct skua_ib_dev *dev = to_skua_dev(pd->ibpd.device);
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_VALID, SKUA_MPT_STATE) |
			 le32_encode_bits(SKUA_MPT_MR, SKUA_MPT_TYPE) |
			 cpu_to_le32(SKUA_MPT_NULL),
		.access = cpu_to_le32(SKUA_ACCESS_LOCAL_WRITE),
		.pd = cpu_to_le32(pd->pdn),
		.len = cpu_to_le64(U64_MAX),
	};
	int err;

	lockdep_assert_held(&pd->null_lock);
	if (pd->has_null)
		return 0;
	if (!(dev->lim->caps & SKUA_CAP_NULL_MR))
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "alloc_null_mr: the device does not support null regions");
	err = skua_ib_user_charge(skua_ib_pd_user(&pd->ibpd), SKUA_IB_RES_KEY, 1);
	if (err)
		return err;
	err = skua_mr_create(dev->core, &pd->null, &mpt);
	if (err)
		skua_ib_user_uncharge(skua_ib_pd_user(&pd->ibpd), SKUA_IB_RES_KEY, 1);
	pd->has_null = !err;
	return err;
}

static int UVERBS_HANDLER(SKUA_METHOD_PD_NULL_MR)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *ibpd = uverbs_attr_get_obj(attrs, SKUA_ATTR_PD_NULL_MR_HANDLE);
	struct skua_ib_pd *pd = to_skua_pd(ibpd);
	int err;

	scoped_guard(mutex, &pd->null_lock) {
		err = skua_ib_null_mr(pd);
		if (err)
			return err;
	}
	return uverbs_copy_to(attrs, SKUA_ATTR_PD_NULL_MR_LKEY, &pd->null.key,
			      sizeof(pd->null.key));
}

DECLARE_UVERBS_NAMED_METHOD(SKUA_METHOD_PD_NULL_MR,
			    UVERBS_ATTR_IDR(SKUA_ATTR_PD_NULL_MR_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(SKUA_ATTR_PD_NULL_MR_LKEY,
						UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_PD, &UVERBS_METHOD(SKUA_METHOD_PD_NULL_MR));

const struct uapi_definition skua_ib_pd_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_PD),
	{},
};
