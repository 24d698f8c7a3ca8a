// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: protection domains, thread domains, and parent domains, which are
 * a protection domain with a thread domain and an allocator.
 */
#include <errno.h>
#include <stdlib.h>

#include "skua.h"

struct ibv_pd *skua_alloc_pd(struct ibv_context *ctx)
{
	struct skua_alloc_pd_cmd_resp resp = {};
	struct skua_alloc_pd_cmd cmd = {};
	struct skua_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	ret = ibv_cmd_alloc_pd(ctx, &pd->ibv_pd, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
			       sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->ibv_pd;
}

/* The PD was created by another context of the same device. */
struct ibv_pd *skua_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	struct skua_pd *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv_pd.context = ctx;
	pd->ibv_pd.handle = handle;
	return &pd->ibv_pd;
}

void skua_unimport_pd(struct ibv_pd *pd)
{
	free(to_spd(pd));
}

struct ibv_td *skua_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	struct skua_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ctx;
	return &td->ibv_td;
}

int skua_dealloc_td(struct ibv_td *ibtd)
{
	struct skua_td *td = to_std(ibtd);

	if (atomic_load(&td->refs))
		return EBUSY;
	free(td);
	return 0;
}

#define ALLOCATORS	IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS
#define PD_CONTEXT	IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT

struct ibv_pd *skua_alloc_parent_domain(struct ibv_context *ctx,
					struct ibv_parent_domain_init_attr *attr)
{
	struct skua_pd *base, *pd;

	(void)ctx;
	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	if (!check_comp_mask(attr->comp_mask, ALLOCATORS | PD_CONTEXT)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask & ALLOCATORS && (!attr->alloc || !attr->free)) {
		errno = EINVAL;
		return NULL;
	}
	/* Of a parent domain the domain below it: thread domain and allocator are the new one's. */
	base = to_spd(attr->pd);
	if (base->domain)
		base = base->domain;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	ibv_initialize_parent_domain(&pd->ibv_pd, &base->ibv_pd);
	pd->domain = base;
	atomic_fetch_add(&pd->domain->refs, 1);
	if (attr->td) {
		pd->td = to_std(attr->td);
		atomic_fetch_add(&pd->td->refs, 1);
	}
	if (attr->comp_mask & ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->ibv_pd;
}

int skua_dealloc_pd(struct ibv_pd *ibpd)
{
	struct skua_pd *pd = to_spd(ibpd);
	int ret;

	if (atomic_load(&pd->refs))
		return EBUSY;
	if (pd->domain) {
		atomic_fetch_sub(&pd->domain->refs, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->refs, 1);
	} else {
		ret = ibv_cmd_dealloc_pd(ibpd);
		if (ret)
			return ret;
	}
	free(pd);
	return 0;
}

/* Take a reference if @ibpd is a parent domain, else return NULL. @ibpd may be NULL. */
struct skua_pd *skua_parent_get(struct ibv_pd *ibpd)
{
	struct skua_pd *pd = ibpd ? to_spd(ibpd) : NULL;

	if (!pd || !pd->domain)
		return NULL;
	atomic_fetch_add(&pd->refs, 1);
	return pd;
}

void skua_parent_put(struct skua_pd *pd)
{
	if (pd)
		atomic_fetch_sub(&pd->refs, 1);
}
