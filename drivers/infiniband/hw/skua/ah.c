// SPDX-License-Identifier: GPL-2.0
/*
 * Address handles. The device has no object for them: the work request of a datagram
 * carries the whole address vector. Address handles of user space are created by the
 * kernel, too, because it resolves the next hop's MAC address and holds a reference to
 * the GID entry.
 */
#include "skua_ib.h"
#include "trace.h"

static int skua_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			     struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibah->device);
	struct skua_ib_ah *ah = to_skua_ah(ibah);
	struct skua_create_ah_resp resp = {};
	int err;

	/* Nothing here sleeps, whatever RDMA_CREATE_AH_SLEEPABLE says. */
	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;
	err = skua_ib_av_build(dev->lim, init->ah_attr, 0, 0, &ah->av);
	if (err)
		return skua_ib_refuse(dev, err,
				      "create_ah: invalid path: GID index %u, port %u, SL %u, destination %pI6",
				      rdma_ah_read_grh(init->ah_attr)->sgid_index,
				      rdma_ah_get_port_num(init->ah_attr),
				      rdma_ah_get_sl(init->ah_attr),
				      rdma_ah_read_grh(init->ah_attr)->dgid.raw);
	trace_skua_ib_create_ah(ibah->device, &ah->av);
	if (!udata)
		return 0;
	memcpy(resp.dmac, ah->av.dmac, sizeof(resp.dmac));
	resp.udp_sport = le16_to_cpu(ah->av.udp_sport);
	resp.hop_limit = ah->av.hop_limit;
	return ib_respond_udata(udata, resp);
}

static int skua_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	skua_ib_av_parse(&to_skua_ah(ibah)->av, attr);
	return 0;
}

/* Work requests contain a copy of the address vector, so there is nothing to wait for. */
static int skua_ib_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	trace_skua_ib_destroy_ah(ibah->device, &to_skua_ah(ibah)->av);
	return 0;
}

const struct ib_device_ops skua_ib_ah_ops = {
	.create_ah = skua_ib_create_ah,
	.create_user_ah = skua_ib_create_ah,
	.query_ah = skua_ib_query_ah,
	.destroy_ah = skua_ib_destroy_ah,
	INIT_RDMA_OBJ_SIZE(ib_ah, skua_ib_ah, ibah),
};
