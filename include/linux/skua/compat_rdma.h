/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The RDMA part of compat.h: what older kernels' ib_core lacks. Included by the
 * out-of-tree build of skua_ib before its sources; empty on a new kernel.
 */
#ifndef LINUX_SKUA_COMPAT_RDMA_H
#define LINUX_SKUA_COMPAT_RDMA_H

#if defined(SKUA_COMPAT_UDATA) || defined(SKUA_COMPAT_UMEM) || defined(SKUA_COMPAT_PORT_STATE)
#include <linux/netdevice.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#endif

/* The rules of driver data, see the comment above struct ib_udata in new kernels. */
#ifdef SKUA_COMPAT_UDATA
static inline int skua_compat_udata_in(struct ib_udata *udata, void *req, size_t size,
				       size_t least)
{
	int err;

	if (udata->inlen < least)
		return -EINVAL;
	err = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return err == -E2BIG ? -EOPNOTSUPP : err;
}

#define ib_copy_validate_udata_in_cm(udata, req, end, valid) ({			\
	int _err = skua_compat_udata_in(udata, &(req), sizeof(req),		\
					offsetofend(typeof(req), end));		\
	if (!_err && (req).comp_mask & ~(typeof((req).comp_mask))(valid))	\
		_err = -EOPNOTSUPP;						\
	_err;									\
})

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	if (!udata || !udata->inlen)
		return 0;
	return skua_compat_udata_in(udata, NULL, 0, 0);
}

static inline int skua_compat_respond(struct ib_udata *udata, const void *resp, size_t size)
{
	size_t n = min(size, udata->outlen);

	if (copy_to_user(udata->outbuf, resp, n) ||
	    clear_user(udata->outbuf + n, udata->outlen - n))
		return -EFAULT;
	return 0;
}

#define ib_respond_udata(udata, resp)	skua_compat_respond(udata, &(resp), sizeof(resp))

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	return udata ? skua_compat_respond(udata, NULL, 0) : 0;
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	int err = ib_is_udata_in_empty(udata);

	return err ? err : ib_respond_empty_udata(udata);
}
#endif /* SKUA_COMPAT_UDATA */

#ifdef SKUA_COMPAT_UMEM
#define ib_umem_get_va			ib_umem_get
#define ib_umem_get_attr_or_va(dev, attrs, id, addr, size, access)			\
	((void)(attrs), ib_umem_get(dev, addr, size, access))
/* No attributes describe buffers of QPs: none is valid. */
#define UVERBS_ATTR_CREATE_QP_BUF_UMEM		(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM + 1)
#define UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM	(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM + 2)
#define UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM	(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM + 3)
#define ib_umem_get_cq_buf_or_va(dev, attrs, addr, size, access)		\
	ib_umem_get(dev, addr, size, access)

static inline dma_addr_t ib_umem_start_dma_addr(struct ib_umem *umem)
{
	return sg_dma_address(umem->sgt_append.sgt.sgl) + ib_umem_offset(umem);
}

static inline bool ib_umem_is_contiguous(struct ib_umem *umem)
{
	unsigned long pgsz = ib_umem_find_best_pgsz(umem, ULONG_MAX,
						    ib_umem_start_dma_addr(umem));

	return pgsz && ib_umem_num_dma_blocks(umem, pgsz) == 1;
}
#endif /* SKUA_COMPAT_UMEM */

/* A pinned dma-buf could not be revoked. */
#ifdef SKUA_COMPAT_REVOCABLE
#include <rdma/ib_umem.h>

static inline struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned_revocable_and_lock(struct ib_device *ibdev, unsigned long offset,
					     size_t size, int fd, int access)
{
	struct ib_umem_dmabuf *umem = ib_umem_dmabuf_get_pinned(ibdev, offset, size, fd, access);

	if (!IS_ERR(umem))
		ib_umem_dmabuf_revoke_lock(umem);
	return umem;
}

#define ib_umem_dmabuf_set_revoke_locked(umem, revoke, priv)	((void)(revoke), (void)(priv))
#endif

#ifdef SKUA_COMPAT_PORT_STATE
static inline enum ib_port_state ib_get_curr_port_state(struct net_device *ndev)
{
	return netif_running(ndev) && netif_carrier_ok(ndev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
}

/* Port events were the drivers' to send; now ib_core follows the netdev. */
static inline void skua_compat_port_event(struct ib_device *ibdev, struct net_device *ndev,
					  enum ib_port_state *last)
{
	enum ib_port_state now = ib_get_curr_port_state(ndev);
	struct ib_event event = {
		.device = ibdev,
		.element.port_num = 1,
		.event = now == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (xchg(last, now) != now)
		ib_dispatch_event(&event);
}
#endif /* SKUA_COMPAT_PORT_STATE */

/* What could fault was less. */
#ifdef SKUA_COMPAT_ODP_CAPS
#define IB_ODP_SUPPORT_FLUSH		0
#define IB_ODP_SUPPORT_ATOMIC_WRITE	0
#endif

/* The addresses of the pages of an on-demand region were an array of their own. */
#if defined(SKUA_COMPAT_ODP) && IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)
#include <linux/hmm.h>
#include <rdma/ib_umem_odp.h>

static inline int skua_ib_odp_map(struct ib_umem_odp *umem, u32 i, unsigned long pfn,
				  dma_addr_t *addr)
{
	*addr = umem->dma_list[i] & ODP_DMA_ADDR_MASK;
	if (!*addr) {
		*addr = ib_dma_map_page(umem->umem.ibdev, hmm_pfn_to_page(pfn), 0, PAGE_SIZE,
					DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(umem->umem.ibdev, *addr))
			return -EFAULT;
		umem->pfn_list[i] = pfn;
		umem->npages++;
	}
	umem->dma_list[i] = *addr | ODP_READ_ALLOWED_BIT |
			    (pfn & HMM_PFN_WRITE ? ODP_WRITE_ALLOWED_BIT : 0);
	return 0;
}
#endif

/*
 * The core cancelled a CQ's work before the driver could end its events, which may have
 * queued it again: cancel it once more, after the last event.
 */
#ifdef SKUA_COMPAT_PRE_DESTROY_CQ
#include <rdma/ib_verbs.h>

static inline void skua_compat_cancel_cq_work(struct ib_cq *cq)
{
	if (cq->poll_ctx == IB_POLL_WORKQUEUE || cq->poll_ctx == IB_POLL_UNBOUND_WORKQUEUE)
		cancel_work_sync(&cq->work);
}
#endif

/* The owner of a dma-buf moves it: the callback had another name. */
#ifdef SKUA_COMPAT_MOVE_NOTIFY
#define invalidate_mappings	move_notify
#endif

/* An argument fewer: see compat.h for how the macro makes an adapter. */
#ifdef SKUA_COMPAT_DMAH
#define ib_dmah skua_no_dmah
struct skua_no_dmah;
#define skua_ib_reg_user_mr(args...)						\
skua_ib_reg_user_mr_dmah(args);							\
static struct ib_mr *skua_ib_reg_user_mr(struct ib_pd *ibpd, u64 start,	u64 length,	\
					 u64 iova, int flags, struct ib_udata *udata)	\
{										\
	return skua_ib_reg_user_mr_dmah(ibpd, start, length, iova, flags, NULL, udata);	\
}										\
static struct ib_mr *skua_ib_reg_user_mr_dmah(args)

#define skua_ib_reg_user_mr_dmabuf(args...)					\
skua_ib_reg_user_mr_dmabuf_dmah(args);						\
static struct ib_mr *skua_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, \
						u64 iova, int fd, int flags,	\
						struct uverbs_attr_bundle *attrs)	\
{										\
	return skua_ib_reg_user_mr_dmabuf_dmah(ibpd, offset, length, iova, fd, flags, NULL, \
					       attrs);				\
}										\
static struct ib_mr *skua_ib_reg_user_mr_dmabuf_dmah(args)
#endif

/* The port was the counter's alone to know. */
#ifdef SKUA_COMPAT_COUNTER
#define skua_ib_counter_bind(args...)						\
skua_ib_counter_bind_port(args);						\
static int skua_ib_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp)	\
{										\
	return skua_ib_counter_bind_port(counter, ibqp, counter->port);		\
}										\
static int skua_ib_counter_bind_port(args)

#define skua_ib_counter_unbind(args...)						\
skua_ib_counter_unbind_port(args);						\
static int skua_ib_counter_unbind(struct ib_qp *ibqp)				\
{										\
	return skua_ib_counter_unbind_port(ibqp, ibqp->port);			\
}										\
static int skua_ib_counter_unbind_port(args)
#endif

#endif /* LINUX_SKUA_COMPAT_RDMA_H */
