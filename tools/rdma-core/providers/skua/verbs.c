// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: queries of device, port and clock.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>

#include "skua.h"

int skua_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct skua_query_device_ex_cmd_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int ret;

	ret = ibv_cmd_query_device_any(ctx, input, attr, attr_size, &resp.ibv_resp, &resp_size);
	if (ret)
		return ret;

	if (attr_size >= offsetofend(struct ibv_device_attr_ex, packet_pacing_caps)) {
		attr->packet_pacing_caps.qp_rate_limit_min = resp.rate_limit_min;
		attr->packet_pacing_caps.qp_rate_limit_max = resp.rate_limit_max;
		attr->packet_pacing_caps.supported_qpts = resp.rate_qpts;
	}
	/* What the kernel says of RSS has no place for these. */
	if (attr_size >= offsetofend(struct ibv_device_attr_ex, rss_caps) &&
	    attr->rss_caps.supported_qpts) {
		attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
		attr->rss_caps.rx_hash_fields_mask = SKUA_RX_HASH_IPV4 | SKUA_RX_HASH_IPV6 |
						     SKUA_RX_HASH_TCP | SKUA_RX_HASH_UDP;
	}
	fw = resp.ibv_resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u.%u",
		 (unsigned int)(fw >> 32), (unsigned int)(fw >> 16) & 0xffff,
		 (unsigned int)fw & 0xffff);
	return 0;
}

int skua_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ctx, port, attr, &cmd, sizeof(cmd));
}

/* Read the device's clock and the system's, as of one moment. */
int skua_clock(struct ibv_context *ctx, struct skua_clock_resp *now)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE, SKUA_METHOD_DEVICE_CLOCK, 1);

	if (!skua_has(to_sctx(ctx), SKUA_CAP_TIMESTAMP))
		return EOPNOTSUPP;
	fill_attr_out_ptr(cmd, SKUA_ATTR_DEVICE_CLOCK_RESP, now);
	return execute_ioctl(ctx, cmd);
}

/* tv_nsec is in ticks of the device's clock, not in ns: so are the time stamps of CQEs. */
int skua_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask;
	struct skua_clock_resp now;
	int ret;

	values->comp_mask = 0;
	if (!(asked & IBV_VALUES_MASK_RAW_CLOCK))
		return 0;
	ret = skua_clock(ctx, &now);
	if (ret)
		return ret;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = now.clock;
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}
