// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: memory regions and windows.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>

#include "skua.h"

struct ibv_mr *skua_reg_mr(struct ibv_pd *pd, void *addr, size_t len, uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_reg_mr(pd, addr, len, hca_va, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}

struct ibv_mr *skua_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				  int fd, int access)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_reg_dmabuf_mr(pd, offset, len, iova, fd, access, vmr, NULL);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}

/* All null regions of a PD share one key, which the kernel keeps with the PD. */
struct ibv_mr *skua_alloc_null_mr(struct ibv_pd *pd)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_PD, SKUA_METHOD_PD_NULL_MR, 2);
	struct verbs_mr *vmr;
	uint32_t lkey;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	fill_attr_in_obj(cmd, SKUA_ATTR_PD_NULL_MR_HANDLE, pd->handle);
	fill_attr_out_ptr(cmd, SKUA_ATTR_PD_NULL_MR_LKEY, &lkey);
	ret = execute_ioctl(pd->context, cmd);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	vmr->mr_type = IBV_MR_TYPE_NULL_MR;
	vmr->ibv_mr.context = pd->context;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.length = SIZE_MAX;
	vmr->ibv_mr.lkey = lkey;
	return &vmr->ibv_mr;
}

/* The region was registered by another context. */
struct ibv_mr *skua_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_query_mr(pd, vmr, handle);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}

void skua_unimport_mr(struct ibv_mr *mr)
{
	free(verbs_get_mr(mr));
}

int skua_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t len,
		  int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;
	int ret;

	/* The kernel ignores the arguments that @flags does not name. */
	ret = ibv_cmd_rereg_mr(vmr, flags, addr, len, (uintptr_t)addr, access, pd, &cmd,
			       sizeof(cmd), &resp, sizeof(resp));
	if (ret)
		errno = ret;
	return ret;
}

int skua_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge)
{
	return ibv_cmd_advise_mr(pd, advice, flags, sg_list, num_sge);
}

int skua_dereg_mr(struct verbs_mr *vmr)
{
	int ret;

	if (vmr->mr_type != IBV_MR_TYPE_NULL_MR) {
		ret = ibv_cmd_dereg_mr(vmr);
		if (ret)
			return ret;
	}
	free(vmr);
	return 0;
}

int skua_mw_access(unsigned int flags, uint32_t *access)
{
	static const struct {
		unsigned int ibv;
		uint32_t hw;
	} rights[] = {
		{ IBV_ACCESS_REMOTE_WRITE, SKUA_ACCESS_REMOTE_WRITE },
		{ IBV_ACCESS_REMOTE_READ, SKUA_ACCESS_REMOTE_READ },
		{ IBV_ACCESS_REMOTE_ATOMIC, SKUA_ACCESS_REMOTE_ATOMIC },
		{ IBV_ACCESS_FLUSH_GLOBAL, SKUA_ACCESS_FLUSH_GLOBAL },
		{ IBV_ACCESS_FLUSH_PERSISTENT, SKUA_ACCESS_FLUSH_PERSISTENT },
		{ IBV_ACCESS_ZERO_BASED, SKUA_ACCESS_ZERO_BASED },
	};
	/* LOCAL_WRITE has no meaning for a window, which is for remote access only. */
	unsigned int i, left = flags & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_OPTIONAL_RANGE);

	*access = 0;
	for (i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
		if (!(flags & rights[i].ibv))
			continue;
		*access |= rights[i].hw;
		left &= ~rights[i].ibv;
	}
	return left ? EINVAL : 0;
}

struct ibv_mw *skua_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw;
	int ret;

	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;

	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	return mw;
}

int skua_dealloc_mw(struct ibv_mw *mw)
{
	int ret;

	ret = ibv_cmd_dealloc_mw(mw);
	if (ret)
		return ret;
	free(mw);
	return 0;
}
