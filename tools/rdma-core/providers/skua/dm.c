// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: device memory, mapped into the process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>
#include <util/mmio.h>

#include "skua.h"

/* Offsets and lengths are multiples of this: MMIO is accessed by whole aligned words. */
#define DM_WORD	4

/**
 * struct skua_dm - device memory
 * @vdm: libibverbs' part
 * @map: the memory
 * @size: bytes mapped
 * @length: bytes that were asked for
 */
struct skua_dm {
	struct verbs_dm vdm;
	void *map;
	size_t size;
	uint64_t length;
};

static struct skua_dm *to_sdm(struct ibv_dm *dm)
{
	return container_of(dm, struct skua_dm, vdm.dm);
}

static bool dm_range_ok(const struct skua_dm *dm, uint64_t offset, size_t length)
{
	return !(offset % DM_WORD) && !(length % DM_WORD) && offset <= dm->length &&
	       length <= dm->length - offset;
}

static int dm_copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *host, size_t length)
{
	struct skua_dm *dm = to_sdm(ibdm);
	const char *from = host;
	char *to = (char *)dm->map + offset;
	uint64_t v64;
	uint32_t v32;

	if (!dm_range_ok(dm, offset, length))
		return EINVAL;
	while (length) {
		if (offset % sizeof(v64) || length < sizeof(v64)) {
			memcpy(&v32, from, sizeof(v32));
			*(volatile uint32_t *)to = v32;
			v64 = sizeof(v32);
		} else {
			memcpy(&v64, from, sizeof(v64));
			*(volatile uint64_t *)to = v64;
			v64 = sizeof(v64);
		}
		from += v64;
		to += v64;
		offset += v64;
		length -= v64;
	}
	/* Flush write combining, so that the data precede a doorbell that is rung later. */
	mmio_flush_writes();
	return 0;
}

static int dm_copy_from(void *host, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct skua_dm *dm = to_sdm(ibdm);
	const char *from = (char *)dm->map + offset;
	char *to = host;
	uint64_t v64;
	uint32_t v32;

	if (!dm_range_ok(dm, offset, length))
		return EINVAL;
	while (length) {
		if (offset % sizeof(v64) || length < sizeof(v64)) {
			v32 = *(const volatile uint32_t *)from;
			memcpy(to, &v32, sizeof(v32));
			v64 = sizeof(v32);
		} else {
			v64 = *(const volatile uint64_t *)from;
			memcpy(to, &v64, sizeof(v64));
			v64 = sizeof(v64);
		}
		from += v64;
		to += v64;
		offset += v64;
		length -= v64;
	}
	return 0;
}

/* Map the memory that @resp describes, and fill in @dm. */
static int dm_map(struct skua_dm *dm, struct ibv_context *ctx, const struct skua_dm_resp *resp)
{
	void *p = mmap(NULL, resp->size, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->cmd_fd,
		       resp->offset);

	if (p == MAP_FAILED)
		return errno;
	/* Not for a child process: it would write to the same memory. */
	if (ibv_dontfork_range(p, resp->size)) {
		int err = errno;

		munmap(p, resp->size);
		return err;
	}
	dm->map = p;
	dm->size = resp->size;
	dm->length = resp->length;
	dm->vdm.dm.memcpy_to_dm = dm_copy_to;
	dm->vdm.dm.memcpy_from_dm = dm_copy_from;
	return 0;
}

static void dm_unmap(struct skua_dm *dm)
{
	ibv_dofork_range(dm->map, dm->size);
	munmap(dm->map, dm->size);
}

struct ibv_dm *skua_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 1);
	struct skua_dm_resp resp = {};
	struct skua_dm *dm;
	int ret;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_out_ptr(cmdb, SKUA_ATTR_DM_ALLOC_RESP, &resp);
	ret = ibv_cmd_alloc_dm(ctx, attr, &dm->vdm, cmdb);
	if (ret)
		goto err_free;
	ret = dm_map(dm, ctx, &resp);
	if (ret)
		goto err_dm;
	return &dm->vdm.dm;

err_dm:
	ibv_cmd_free_dm(&dm->vdm);
err_free:
	free(dm);
	errno = ret;
	return NULL;
}

int skua_free_dm(struct ibv_dm *ibdm)
{
	struct skua_dm *dm = to_sdm(ibdm);
	int ret;

	ret = ibv_cmd_free_dm(&dm->vdm);
	if (ret)
		return ret;
	dm_unmap(dm);
	free(dm);
	return 0;
}

struct ibv_dm *skua_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DM, SKUA_METHOD_DM_QUERY, 2);
	struct skua_dm_resp resp = {};
	struct skua_dm *dm;
	int ret;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_in_obj(cmdb, SKUA_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmdb, SKUA_ATTR_DM_QUERY_RESP, &resp);
	ret = execute_ioctl(ctx, cmdb) ? errno : 0;
	if (!ret)
		ret = dm_map(dm, ctx, &resp);
	if (ret) {
		free(dm);
		errno = ret;
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->vdm.dm.context = ctx;
	return &dm->vdm.dm;
}

void skua_unimport_dm(struct ibv_dm *ibdm)
{
	struct skua_dm *dm = to_sdm(ibdm);

	dm_unmap(dm);
	free(dm);
}

struct ibv_mr *skua_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset,
			      size_t length, unsigned int access)
{
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	ret = ibv_cmd_reg_dm_mr(pd, &to_sdm(ibdm)->vdm, offset, length, access, vmr, NULL);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}
