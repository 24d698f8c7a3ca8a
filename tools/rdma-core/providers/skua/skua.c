// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: device match and contexts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_ioctl.h>

#include "skua.h"

static void skua_free_context(struct ibv_context *ibctx);

static const struct verbs_context_ops skua_ops = {
	.advise_mr = skua_advise_mr,
	.alloc_dm = skua_alloc_dm,
	.alloc_mw = skua_alloc_mw,
	.alloc_null_mr = skua_alloc_null_mr,
	.alloc_parent_domain = skua_alloc_parent_domain,
	.alloc_pd = skua_alloc_pd,
	.alloc_td = skua_alloc_td,
	.async_event = skua_async_event,
	.attach_counters_point_flow = skua_attach_counters_point_flow,
	.attach_mcast = skua_attach_mcast,
	.bind_mw = skua_bind_mw,
	.close_xrcd = skua_close_xrcd,
	.cq_event = skua_cq_event,
	.create_ah = skua_create_ah,
	.create_counters = skua_create_counters,
	.create_cq = skua_create_cq,
	.create_cq_ex = skua_create_cq_ex,
	.create_flow = skua_create_flow,
	.create_qp = skua_create_qp,
	.create_qp_ex = skua_create_qp_ex,
	.create_rwq_ind_table = skua_create_rwq_ind_table,
	.create_wq = skua_create_wq,
	.create_srq = skua_create_srq,
	.create_srq_ex = skua_create_srq_ex,
	.dealloc_mw = skua_dealloc_mw,
	.dealloc_pd = skua_dealloc_pd,
	.dealloc_td = skua_dealloc_td,
	.dereg_mr = skua_dereg_mr,
	.destroy_ah = skua_destroy_ah,
	.destroy_counters = skua_destroy_counters,
	.destroy_cq = skua_destroy_cq,
	.destroy_flow = skua_destroy_flow,
	.destroy_qp = skua_destroy_qp,
	.destroy_rwq_ind_table = skua_destroy_rwq_ind_table,
	.destroy_wq = skua_destroy_wq,
	.destroy_srq = skua_destroy_srq,
	.detach_mcast = skua_detach_mcast,
	.free_context = skua_free_context,
	.free_dm = skua_free_dm,
	.get_srq_num = skua_get_srq_num,
	.import_dm = skua_import_dm,
	.import_mr = skua_import_mr,
	.import_pd = skua_import_pd,
	.modify_cq = skua_modify_cq,
	.modify_qp = skua_modify_qp,
	.modify_qp_rate_limit = skua_modify_qp_rate_limit,
	.modify_wq = skua_modify_wq,
	.modify_srq = skua_modify_srq,
	.open_qp = skua_open_qp,
	.open_xrcd = skua_open_xrcd,
	.poll_cq = skua_poll_cq,
	.post_recv = skua_post_recv,
	.post_send = skua_post_send,
	.post_srq_recv = skua_post_srq_recv,
	.query_device_ex = skua_query_device_ex,
	.query_ece = skua_query_ece,
	.query_port = skua_query_port,
	.query_qp = skua_query_qp,
	.query_rt_values = skua_query_rt_values,
	.query_srq = skua_query_srq,
	.read_counters = skua_read_counters,
	.reg_dm_mr = skua_reg_dm_mr,
	.reg_dmabuf_mr = skua_reg_dmabuf_mr,
	.reg_mr = skua_reg_mr,
	.req_notify_cq = skua_arm_cq,
	.resize_cq = skua_resize_cq,
	.rereg_mr = skua_rereg_mr,
	.set_ece = skua_set_ece,
	.unimport_dm = skua_unimport_dm,
	.unimport_mr = skua_unimport_mr,
	.unimport_pd = skua_unimport_pd,
};

/* Check the limits before anything is allocated or mapped by them. */
static bool skua_limits_sane(const struct skua_context *ctx)
{
	const struct skua_alloc_ucontext_resp *lim = &ctx->lim;

	if (lim->push_size && (lim->push_size < SKUA_UAR_USED ||
			       lim->push_size & (ctx->page_size - 1) ||
			       !lim->push_segs || lim->push_segs > SKUA_PUSH_SEGS))
		return false;
	return lim->uar_size >= SKUA_UAR_USED && !(lim->uar_size & (ctx->page_size - 1)) &&
	       lim->max_sq_blocks && lim->max_wqe_blocks &&
	       lim->max_wqe_blocks <= SKUA_WQE_MAX_BLOCKS && lim->max_rq_wqes &&
	       lim->max_rq_sge && lim->max_cqe;
}

static void skua_unmap(struct skua_context *ctx)
{
	if (ctx->status)
		munmap((void *)ctx->status, ctx->page_size);
	if (ctx->uar)
		munmap(ctx->uar, ctx->uar_size);
	skua_push_unmap(ctx);
}

static int skua_map(struct skua_context *ctx, int cmd_fd)
{
	void *p;
	int err;

	err = skua_push_map(ctx, cmd_fd);
	if (err)
		return err;

	p = mmap(NULL, ctx->lim.uar_size, PROT_WRITE, MAP_SHARED, cmd_fd, ctx->lim.uar_offset);
	if (p == MAP_FAILED)
		goto err;
	ctx->uar = p;
	ctx->uar_size = ctx->lim.uar_size;

	p = mmap(NULL, ctx->page_size, PROT_READ, MAP_SHARED, cmd_fd, ctx->lim.status_offset);
	if (p == MAP_FAILED)
		goto err;
	ctx->status = p;
	return 0;

err:
	err = errno;
	skua_unmap(ctx);
	return err;
}

/* What the user has switched off, the device is taken to be without. */
static void skua_read_env(struct skua_context *ctx)
{
	const char *suppress = getenv("SKUA_DB_SUPPRESS");

	if (suppress && !strcmp(suppress, "0"))
		ctx->lim.caps &= ~SKUA_CAP_DB_SUPPRESS;
}

/* Set up a context whose ctx->lim is filled. */
static int skua_setup(struct skua_context *ctx, int cmd_fd)
{
	const char *env;
	int ret;

	if (!skua_limits_sane(ctx))
		return EPROTO;
	skua_read_env(ctx);
	ctx->lim.max_sq_blocks = min_t(uint32_t, ctx->lim.max_sq_blocks, SKUA_RING_MAX);
	ctx->lim.max_rq_wqes = min_t(uint32_t, ctx->lim.max_rq_wqes, SKUA_RING_MAX);
	ret = skua_map(ctx, cmd_fd);
	if (ret)
		return ret;
	env = getenv("SKUA_CQE_SIZE");
	ctx->log_cqe = env && !strcmp(env, "128") ? SKUA_LOG_CQE_LARGE : SKUA_LOG_CQE;
	if (skua_has(ctx, SKUA_CAP_SCATTER_CQE))
		ctx->scatter = skua_scatter_env();
	pthread_mutex_init(&ctx->kick_lock, NULL);
	skua_slabs_init(ctx);
	verbs_set_ops(&ctx->ibv_ctx, &skua_ops);
	return 0;
}

static struct verbs_context *skua_open(struct ibv_device *ibdev, int cmd_fd,
				       int (*tell)(struct skua_context *ctx))
{
	struct skua_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, ibv_ctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	ctx->page_size = sysconf(_SC_PAGESIZE);
	ret = tell(ctx);
	if (!ret)
		ret = skua_setup(ctx, cmd_fd);
	if (!ret)
		return &ctx->ibv_ctx;

	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
	errno = ret;
	return NULL;
}

static int skua_get_context(struct skua_context *ctx)
{
	struct skua_alloc_ucontext_cmd_resp resp = {};
	struct skua_alloc_ucontext_cmd cmd = { .comp_mask = skua_push_wish() };
	int ret;

	ret = ibv_cmd_get_context(&ctx->ibv_ctx, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				  sizeof(resp));
	if (ret == EOPNOTSUPP && cmd.comp_mask) {
		/* A kernel that does not know the flags. */
		cmd.comp_mask = 0;
		ret = ibv_cmd_get_context(&ctx->ibv_ctx, &cmd.ibv_cmd, sizeof(cmd),
					  &resp.ibv_resp, sizeof(resp));
	}
	ctx->lim = resp.drv_payload;
	return ret;
}

static struct verbs_context *skua_alloc_context(struct ibv_device *ibdev, int cmd_fd,
						void *private_data)
{
	(void)private_data;
	return skua_open(ibdev, cmd_fd, skua_get_context);
}

static int skua_query_context(struct skua_context *ctx)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1);
	int ret;

	fill_attr_out_ptr(cmd, SKUA_ATTR_QUERY_CONTEXT_RESP, &ctx->lim);
	ret = ibv_cmd_query_context(&ctx->ibv_ctx.context, cmd);
	/* The other context does not know which push slots this one would use. */
	ctx->lim.push_size = 0;
	return ret;
}

/*
 * @cmd_fd is another context's file: both share UAR page and status page.
 *
 * A process of 32 bits stores a doorbell as two halves, under a lock of its own. Two processes
 * that share a UAR page would mix theirs, and the device would see doorbells that nobody rang.
 */
static struct verbs_context *skua_import_context(struct ibv_device *ibdev, int cmd_fd)
{
	if (sizeof(long) < sizeof(uint64_t)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return skua_open(ibdev, cmd_fd, skua_query_context);
}

static void skua_free_context(struct ibv_context *ibctx)
{
	struct skua_context *ctx = to_sctx(ibctx);

	skua_slabs_cleanup(ctx);
	pthread_mutex_destroy(&ctx->kick_lock);
	skua_unmap(ctx);
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
}

static struct verbs_device *skua_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	(void)sysfs_dev;
	return calloc(1, sizeof(struct verbs_device));
}

static void skua_uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

static const struct verbs_match_ent skua_match[] = {
	VERBS_PCI_MATCH(SKUA_PCI_VENDOR_ID, SKUA_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops skua_dev_ops = {
	.name = "skua",
	.match_min_abi_version = SKUA_UVERBS_ABI_VERSION,
	.match_max_abi_version = SKUA_UVERBS_ABI_VERSION,
	.match_table = skua_match,
	.alloc_device = skua_alloc_device,
	.uninit_device = skua_uninit_device,
	.alloc_context = skua_alloc_context,
	.import_context = skua_import_context,
};

bool skua_is_ours(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &skua_dev_ops;
}
PROVIDER_DRIVER(skua, skua_dev_ops);
