// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: address handles and multicast groups.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"

/*
 * The kernel checks the attributes, resolves the next hop and holds a reference on the GID.
 * Each work request carries the resulting address vector.
 */
struct ibv_ah *skua_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct skua_create_ah_cmd_resp resp = {};
	struct skua_ah *ah;
	int ret;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ret = ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}
	skua_av_set(&ah->av, attr->grh.dgid.raw, resp.dmac, attr->grh.sgid_index);
	skua_av_ip_set(&ah->av, attr->grh.flow_label, skua_sl_priority(attr->sl),
		       attr->grh.traffic_class, resp.hop_limit, resp.udp_sport);
	return &ah->ibv_ah;
}

int skua_destroy_ah(struct ibv_ah *ibah)
{
	int ret;

	ret = ibv_cmd_destroy_ah(ibah);
	if (ret)
		return ret;
	free(to_sah(ibah));
	return 0;
}

int skua_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_attach_mcast(qp, gid, lid);
}

int skua_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_detach_mcast(qp, gid, lid);
}
