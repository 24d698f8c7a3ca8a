/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What versions of rdma-core have otherwise than 56, for which the provider is written. "build"
 * has it included before every file of the provider, and defines SKUA_RDMA_CORE, the version.
 *
 * Each macro gives a function of libibverbs the arguments that it has in 56: those that came later
 * are 0 or NULL, which is to say that nothing of what is new is wanted.
 */
#ifndef SKUA_RDMA_COMPAT_H
#define SKUA_RDMA_COMPAT_H

#include <infiniband/driver.h>

#if SKUA_RDMA_CORE < 54
#define ibv_cmd_reg_dmabuf_mr(pd, offset, len, iova, fd, access, vmr, driver) \
	ibv_cmd_reg_dmabuf_mr(pd, offset, len, iova, fd, access, vmr)
#endif

#if SKUA_RDMA_CORE >= 57
#define ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_get_context(ctx, cmd, cmd_size, NULL, resp, resp_size)
#endif

#if SKUA_RDMA_CORE >= 59
#define ibv_cmd_create_cq_ex(ctx, attr, vcq, cmd, cmd_size, resp, resp_size, flags) \
	ibv_cmd_create_cq_ex(ctx, attr, NULL, vcq, cmd, cmd_size, resp, resp_size, flags)
#endif

#if SKUA_RDMA_CORE >= 64
#define ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp, resp_size, NULL)
#endif

#endif
