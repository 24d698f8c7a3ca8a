/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * The driver's uverbs structures in the frame that libibverbs wants.
 */
#ifndef SKUA_PROVIDER_ABI_H
#define SKUA_PROVIDER_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/skua-abi.h>
#include <kernel-abi/skua-abi.h>

DECLARE_DRV_CMD(skua_alloc_ucontext_cmd, IB_USER_VERBS_CMD_GET_CONTEXT,
		skua_alloc_ucontext_req, skua_alloc_ucontext_resp);
DECLARE_DRV_CMD(skua_alloc_pd_cmd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, skua_alloc_pd_resp);
DECLARE_DRV_CMD(skua_create_cq_cmd, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		skua_create_cq_req, skua_create_cq_resp);
DECLARE_DRV_CMD(skua_resize_cq_cmd, IB_USER_VERBS_CMD_RESIZE_CQ,
		skua_resize_cq_req, skua_resize_cq_resp);
DECLARE_DRV_CMD(skua_create_srq_cmd, IB_USER_VERBS_CMD_CREATE_SRQ,
		skua_create_srq_req, skua_create_srq_resp);
DECLARE_DRV_CMD(skua_create_srq_ex_cmd, IB_USER_VERBS_CMD_CREATE_XSRQ,
		skua_create_srq_req, skua_create_srq_resp);
DECLARE_DRV_CMD(skua_modify_srq_cmd, IB_USER_VERBS_CMD_MODIFY_SRQ,
		skua_modify_srq_req, empty);
DECLARE_DRV_CMD(skua_create_qp_cmd, IB_USER_VERBS_EX_CMD_CREATE_QP,
		skua_create_qp_req, skua_create_qp_resp);
DECLARE_DRV_CMD(skua_modify_qp_cmd, IB_USER_VERBS_CMD_MODIFY_QP,
		skua_modify_qp_req, empty);
DECLARE_DRV_CMD(skua_modify_qp_ex_cmd, IB_USER_VERBS_EX_CMD_MODIFY_QP,
		skua_modify_qp_req, empty);
DECLARE_DRV_CMD(skua_query_device_ex_cmd, IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
		empty, skua_query_device_resp);
DECLARE_DRV_CMD(skua_create_wq_cmd, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		skua_create_wq_req, skua_create_wq_resp);
DECLARE_DRV_CMD(skua_create_rss_qp_cmd, IB_USER_VERBS_EX_CMD_CREATE_QP,
		skua_create_rss_qp_req, skua_create_qp_resp);
DECLARE_DRV_CMD(skua_create_ah_cmd, IB_USER_VERBS_CMD_CREATE_AH,
		empty, skua_create_ah_resp);

#endif /* SKUA_PROVIDER_ABI_H */
