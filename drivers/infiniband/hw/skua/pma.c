// SPDX-License-Identifier: GPL-2.0
/*
 * Performance management: the counters of the port as MAD attributes. The RDMA core also
 * uses them for the counters in sysfs.
 */
#include <linux/slab.h>
#include <rdma/ib_pma.h>

#include "skua_ib.h"

/* The counters of 32 and fewer bits stop at their largest value (IBTA 16.1.3.5). */
static u32 skua_ib_pma_sat(u64 value, u32 max)
{
	return min_t(u64, value, max);
}

static void skua_ib_pma_counters(const u64 *cnt, struct ib_pma_portcounters *pc)
{
	/* Data counters are in units of 32-bit words. */
	pc->port_xmit_data = cpu_to_be32(skua_ib_pma_sat(cnt[SKUA_CNT_RDMA_TX_BYTES] / 4,
							 U32_MAX));
	pc->port_rcv_data = cpu_to_be32(skua_ib_pma_sat(cnt[SKUA_CNT_RDMA_RX_BYTES] / 4,
							U32_MAX));
	pc->port_xmit_packets = cpu_to_be32(skua_ib_pma_sat(cnt[SKUA_CNT_RDMA_TX_PKTS], U32_MAX));
	pc->port_rcv_packets = cpu_to_be32(skua_ib_pma_sat(cnt[SKUA_CNT_RDMA_RX_PKTS], U32_MAX));
	pc->port_rcv_errors = cpu_to_be16(skua_ib_pma_sat(cnt[SKUA_CNT_RX_ICRC] +
							  cnt[SKUA_CNT_RX_MALFORMED], U16_MAX));
	pc->port_rcv_constraint_errors = skua_ib_pma_sat(cnt[SKUA_CNT_RX_BAD_PKEY], U8_MAX);
}

static void skua_ib_pma_counters_ext(const u64 *cnt, struct ib_pma_portcounters_ext *pc)
{
	pc->port_xmit_data = cpu_to_be64(cnt[SKUA_CNT_RDMA_TX_BYTES] / 4);
	pc->port_rcv_data = cpu_to_be64(cnt[SKUA_CNT_RDMA_RX_BYTES] / 4);
	pc->port_xmit_packets = cpu_to_be64(cnt[SKUA_CNT_RDMA_TX_PKTS]);
	pc->port_rcv_packets = cpu_to_be64(cnt[SKUA_CNT_RDMA_RX_PKTS]);
}

/* Return: status of the response: 0, or an unsupported attribute or method. */
static u16 skua_ib_pma_get(const struct ib_pma_mad *in, struct ib_pma_mad *out, const u64 *cnt)
{
	struct ib_class_port_info *cpi = (void *)out->data;
	struct ib_pma_portcounters_ext *ext = (void *)out->data;
	struct ib_pma_portcounters *pc = (void *)out->data;

	if (in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD;
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		cpi->base_version = IB_MGMT_BASE_VERSION;
		cpi->class_version = 1;
		/* No separate counters for unicast and multicast. */
		cpi->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF;
		return 0;
	case IB_PMA_PORT_COUNTERS:
		pc->port_select = 1;
		skua_ib_pma_counters(cnt, pc);
		return 0;
	case IB_PMA_PORT_COUNTERS_EXT:
		ext->port_select = 1;
		skua_ib_pma_counters_ext(cnt, ext);
		return 0;
	}
	return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
}

static int skua_ib_process_mad(struct ib_device *ibdev, int flags, u32 port,
			       const struct ib_wc *wc, const struct ib_grh *grh,
			       const struct ib_mad *in, struct ib_mad *out, size_t *out_size,
			       u16 *out_pkey_index)
{
	struct skua_ib_dev *dev = to_skua_dev(ibdev);
	u16 status;

	/* All other MADs are passed to registered agents. */
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method == IB_MGMT_METHOD_GET_RESP)
		return IB_MAD_RESULT_SUCCESS;

	u64 *cnt __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*cnt), GFP_KERNEL);

	if (!cnt || skua_query_counters(dev->core, cnt))
		return IB_MAD_RESULT_FAILURE;
	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	status = skua_ib_pma_get((const void *)in, (void *)out, cnt);
	out->mad_hdr.status = cpu_to_be16(status);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

const struct ib_device_ops skua_ib_pma_ops = {
	.process_mad = skua_ib_process_mad,
};
