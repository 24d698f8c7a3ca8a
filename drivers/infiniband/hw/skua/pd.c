// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains: numbers, which the device compares.
 */
#include "skua_ib.h"

static int skua_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct skua_ib_pd *pd = container_of(ibpd, struct skua_ib_pd, ibpd);
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_alloc_pd_resp resp = {};
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;
	if (skua_ib_dead(dev))
		return -EIO;
	err = skua_pd_alloc(dev->core, &pd->pdn);
	if (err)
		return err;
	if (udata) {
		resp.pdn = pd->pdn;
		err = ib_respond_udata(udata, resp);
		if (err)
			skua_pd_free(dev->core, pd->pdn);
	}
	return err;
}

static int skua_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	int err = ib_no_udata_io(udata);

	if (err)
		return err;
	skua_pd_free(to_skua_dev(ibpd->device)->core, skua_ib_pdn(ibpd));
	return 0;
}

const struct ib_device_ops skua_ib_pd_ops = {
	.alloc_pd = skua_ib_alloc_pd,
	.dealloc_pd = skua_ib_dealloc_pd,
	INIT_RDMA_OBJ_SIZE(ib_pd, skua_ib_pd, ibpd),
};
