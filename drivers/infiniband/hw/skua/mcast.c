// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of UD QPs.
 */
#include <linux/slab.h>

#include "skua_ib.h"

/**
 * struct skua_ib_mcast - membership of a QP in a group
 * @link: entry in the QP's list
 * @gid: the group
 * @count: how often the QP was attached
 * @index: number of the membership in the device
 */
struct skua_ib_mcast {
	struct list_head link;
	union ib_gid gid;
	unsigned int count;
	u32 index;
};

static struct skua_ib_mcast *skua_ib_mcast_find(struct skua_ib_qp *qp, const union ib_gid *gid)
{
	struct skua_ib_mcast *mc;

	lockdep_assert_held(&qp->lock);
	list_for_each_entry(mc, &qp->mcasts, link)
		if (!memcmp(&mc->gid, gid, sizeof(*gid)))
			return mc;
	return NULL;
}

/* A QP that is attached twice gets each packet once and must be detached twice. */
static int skua_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct skua_mcg mcg = { .qpn = cpu_to_le32(qp->core.obj.num) };
	struct skua_ib_mcast *mc;
	int err;

	guard(mutex)(&qp->lock);
	mc = skua_ib_mcast_find(qp, gid);
	if (mc) {
		mc->count++;
		return 0;
	}

	struct skua_ib_mcast *new __free(kfree) = kzalloc_obj(*new, GFP_KERNEL_ACCOUNT);

	if (!new)
		return -ENOMEM;
	memcpy(mcg.gid, gid->raw, sizeof(mcg.gid));
	err = skua_ib_user_charge(qp->user, SKUA_IB_RES_MCG, 1);
	if (err)
		return err;
	err = skua_mcg_attach(dev->core, &new->index, &mcg);
	if (err) {
		skua_ib_user_uncharge(qp->user, SKUA_IB_RES_MCG, 1);
		return err;
	}
	new->gid = *gid;
	new->count = 1;
	list_add(&no_free_ptr(new)->link, &qp->mcasts);
	return 0;
}

static int skua_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct skua_ib_mcast *mc;

	guard(mutex)(&qp->lock);
	mc = skua_ib_mcast_find(qp, gid);
	if (!mc)
		return skua_ib_refuse(dev, -EINVAL,
				      "detach_mcast: QP %#x is not attached to group %pI6",
				      ibqp->qp_num, gid->raw);
	if (--mc->count)
		return 0;
	skua_mcg_detach(dev->core, mc->index);
	skua_ib_user_uncharge(qp->user, SKUA_IB_RES_MCG, 1);
	list_del(&mc->link);
	kfree(mc);
	return 0;
}

const struct ib_device_ops skua_ib_mcast_ops = {
	.attach_mcast = skua_ib_attach_mcast,
	.detach_mcast = skua_ib_detach_mcast,
};
