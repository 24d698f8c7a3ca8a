// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows: allocation of keys. They are bound by work requests of user space.
 */
#include "skua_ib.h"

/**
 * struct skua_ib_mw - memory window
 * @ibmw: the RDMA core's part
 * @core: skua_core's part
 */
struct skua_ib_mw {
	struct ib_mw ibmw;
	struct skua_mr core;
};

static struct skua_ib_mw *to_skua_mw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct skua_ib_mw, ibmw);
}

static int skua_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibmw->device);
	struct skua_ib_mw *mw = to_skua_mw(ibmw);
	u32 type = ibmw->type == IB_MW_TYPE_1 ? SKUA_MPT_MW1 : SKUA_MPT_MW2;
	struct skua_mpt mpt = {
		.flags = le32_encode_bits(SKUA_MPT_FREE, SKUA_MPT_STATE) |
			 le32_encode_bits(type, SKUA_MPT_TYPE),
		.pd = cpu_to_le32(skua_ib_pdn(ibmw->pd)),
	};
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	err = skua_ib_user_charge(skua_ib_pd_user(ibmw->pd), SKUA_IB_RES_KEY, 1);
	if (err)
		return err;
	err = skua_mr_create(dev->core, &mw->core, &mpt);
	if (err) {
		skua_ib_user_uncharge(skua_ib_pd_user(ibmw->pd), SKUA_IB_RES_KEY, 1);
		return err;
	}
	ibmw->rkey = mw->core.key;
	return 0;
}

static int skua_ib_dealloc_mw(struct ib_mw *ibmw)
{
	int err;

	err = skua_mr_destroy(to_skua_dev(ibmw->device)->core, &to_skua_mw(ibmw)->core);
	if (err)
		return err;
	skua_ib_user_uncharge(skua_ib_pd_user(ibmw->pd), SKUA_IB_RES_KEY, 1);
	return 0;
}

const struct ib_device_ops skua_ib_mw_ops = {
	.alloc_mw = skua_ib_alloc_mw,
	.dealloc_mw = skua_ib_dealloc_mw,
	INIT_RDMA_OBJ_SIZE(ib_mw, skua_ib_mw, ibmw),
};
