// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of user QPs: memory of the process, which says in its request where they are and how
 * long. Nothing of the request is believed.
 */
#include <linux/log2.h>
#include <linux/string.h>
#include <rdma/ib_umem.h>

#include "qp.h"

static int skua_ib_check_sq_req(struct skua_ib_dev *dev, const struct skua_create_qp_req *req,
				const struct ib_qp_cap *cap)
{
	u32 most = min_t(u32, dev->lim->max_sq_blocks, SKUA_IB_MAX_RING);

	if (req->has_sq)
		return skua_ib_range(dev, "create_qp", "log_sq", req->log_sq,
				     order_base_2(cap->max_send_wr), ilog2(most));
	return skua_ib_range(dev, "create_qp", "log_sq of no send ring", req->log_sq, 0, 0) ?:
	       skua_ib_range(dev, "create_qp", "max_send_wr of no send ring", cap->max_send_wr, 0,
			     0);
}

static int skua_ib_check_rq_req(struct skua_ib_dev *dev, const struct skua_create_qp_req *req,
				const struct ib_qp_cap *cap)
{
	u32 most = min_t(u32, dev->lim->max_rq_wqes, SKUA_IB_MAX_RING);

	if (req->has_rq)
		return skua_ib_range(dev, "create_qp", "log_rq", req->log_rq,
				     order_base_2(cap->max_recv_wr), ilog2(most)) ?:
		       skua_ib_range(dev, "create_qp", "log_rq_stride", req->log_rq_stride,
				     order_base_2(cap->max_recv_sge),
				     order_base_2(dev->lim->max_rq_sge));
	return skua_ib_range(dev, "create_qp", "log_rq of no receive ring", req->log_rq, 0, 0) ?:
	       skua_ib_range(dev, "create_qp", "log_rq_stride of no receive ring",
			     req->log_rq_stride, 0, 0) ?:
	       skua_ib_range(dev, "create_qp", "max_recv_wr of no receive ring", cap->max_recv_wr,
			     0, 0);
}

static int skua_ib_check_req(struct skua_ib_dev *dev, const struct skua_create_qp_req *req,
			     const struct ib_qp_cap *cap)
{
	u32 known = SKUA_CREATE_QP_PUSH;

	if (dev->lim->caps & SKUA_CAP_SCATTER_CQE)
		known |= SKUA_CREATE_QP_SCATTER_RQ | SKUA_CREATE_QP_SCATTER_SQ;
	if (dev->lim->caps & SKUA_CAP_DB_SUPPRESS)
		known |= SKUA_CREATE_QP_DB_SUPPRESS;
	if (memchr_inv(req->reserved, 0, sizeof(req->reserved)))
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_qp: reserved bytes are not 0");
	if (req->flags & ~known)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_qp: flags %#x, supported %#x",
				      req->flags, known);
	return skua_ib_range(dev, "create_qp", "has_sq", req->has_sq, 0, 1) ?:
	       skua_ib_range(dev, "create_qp", "has_rq", req->has_rq, 0, 1) ?:
	       skua_ib_check_sq_req(dev, req, cap) ?: skua_ib_check_rq_req(dev, req, cap);
}

/*
 * Pin the buffer of both rings, given by a uverbs attribute or by @req->buf_addr. Rings that are
 * short share pages with those of other QPs.
 */
static int skua_ib_user_rings(struct skua_ib_dev *dev, struct skua_ib_ucontext *uc,
			      struct uverbs_attr_bundle *attrs, struct skua_ib_umem *mem,
			      const struct skua_create_qp_req *req, u64 size)
{
	struct ib_umem *umem;
	int err;

	if (uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM) ||
	    uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM))
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_qp: separate RQ and SQ buffers");
	if (!uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_BUF_UMEM) &&
	    !(req->buf_addr & (SKUA_WQE_BLOCK - 1)) && skua_ib_ring_shares(req->buf_addr, size))
		return skua_ib_ring_map(uc, req->buf_addr, mem);
	umem = ib_umem_get_attr_or_va(&dev->ibdev, attrs, UVERBS_ATTR_CREATE_QP_BUF_UMEM,
				      req->buf_addr, size, 0);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	if (ib_umem_offset(umem) & (SKUA_WQE_BLOCK - 1))
		err = skua_ib_refuse(dev, -EINVAL,
				     "create_qp: buffer at page offset %d, must be aligned to %d",
				     ib_umem_offset(umem), SKUA_WQE_BLOCK);
	else
		err = skua_ib_umem_map(dev, mem, umem, false, false);
	if (err)
		ib_umem_release(umem);
	return err;
}

static int skua_ib_user_pin(struct skua_ib_dev *dev, struct ib_udata *udata,
			    struct skua_ib_qp *qp, const struct skua_create_qp_req *req,
			    struct skua_cmd_create_qp_in *in)
{
	struct skua_ib_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibuc);
	u64 sq_pos = 0, size;
	int err;

	if (req->has_rq)
		sq_pos = ALIGN((u64)SKUA_WQE_SEG << (req->log_rq + req->log_rq_stride),
			       SKUA_WQE_BLOCK);
	size = sq_pos + (req->has_sq ? (u64)SKUA_WQE_BLOCK << req->log_sq : 0);
	if (!size || req->buf_len < size || req->buf_addr > ULONG_MAX)
		return skua_ib_refuse(dev, -EINVAL,
				      "create_qp: buffer of %llu bytes at %#llx, the rings need %llu",
				      req->buf_len, req->buf_addr, size);
	err = skua_ib_user_rings(dev, uc, rdma_udata_to_uverbs_attr_bundle(udata), &qp->mem, req,
				 size);
	if (err)
		return err;
	err = skua_ib_db_map(uc, req->dbr_addr, &qp->db);
	if (err) {
		skua_ib_umem_unmap(dev, &qp->mem);
		return err;
	}
	if (req->has_rq)
		in->rq.ring = skua_ib_umem_xlat(&qp->mem, 0);
	if (req->has_sq)
		in->sq.ring = skua_ib_umem_xlat(&qp->mem, sq_pos);
	in->sq.dbr = cpu_to_le64(qp->db.dma);
	return 0;
}

/* Other QPs receive through an SRQ or not at all. */
static bool skua_ib_may_have_rq(const struct ib_qp *ibqp)
{
	return !ibqp->srq && ibqp->qp_type != IB_QPT_XRC_INI;
}

/*
 * Types of QPs that get payload in CQEs. A process that imported its protection domain has
 * other addresses than the regions of those that share it, and goes without.
 */
static u32 skua_ib_scatter_flags(const struct skua_ib_ucontext *uc, const struct ib_qp *ibqp,
				 const struct skua_create_qp_req *req)
{
	enum ib_qp_type type = ibqp->qp_type;
	u32 flags = 0;

	if (current->mm != uc->mm)
		return 0;
	if (req->flags & SKUA_CREATE_QP_SCATTER_RQ && (type == IB_QPT_RC || type == IB_QPT_UC))
		flags |= SKUA_QP_F_SCATTER_RQ_CQE;
	if (req->flags & SKUA_CREATE_QP_SCATTER_SQ &&
	    (type == IB_QPT_RC || type == IB_QPT_XRC_INI))
		flags |= SKUA_QP_F_SCATTER_SQ_CQE;
	return flags;
}

/**
 * skua_ib_user_qp() - map the rings of a user QP
 * @dev: the device
 * @qp: the QP
 * @udata: the request
 * @cap: requested capabilities
 * @in: filled in: what the command says of the rings
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_user_qp(struct skua_ib_dev *dev, struct skua_ib_qp *qp, struct ib_udata *udata,
		    const struct ib_qp_cap *cap, struct skua_cmd_create_qp_in *in)
{
	struct skua_ib_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibuc);
	struct skua_create_qp_req req;
	u32 flags = 0;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return err;
	err = skua_ib_check_req(dev, &req, cap);
	if (err)
		return err;
	if (req.has_rq && !skua_ib_may_have_rq(&qp->ibqp))
		return skua_ib_refuse(dev, -EINVAL,
				      "create_qp: type %d%s must not have a receive ring",
				      qp->ibqp.qp_type, qp->ibqp.srq ? " with an SRQ" : "");
	if (req.flags & SKUA_CREATE_QP_PUSH && !uc->push_map)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "create_qp: the context has no page for pushes");
	err = skua_ib_user_pin(dev, udata, qp, &req, in);
	if (err)
		return err;

	flags |= skua_ib_scatter_flags(uc, &qp->ibqp, &req);
	if (req.flags & SKUA_CREATE_QP_DB_SUPPRESS)
		flags |= SKUA_QP_F_DB_SUPPRESS;
	if (!req.has_sq)
		flags |= SKUA_QP_F_NO_SQ;
	if (!req.has_rq)
		flags |= SKUA_QP_F_NO_RQ;
	in->sq.flags |= cpu_to_le32(flags) | le32_encode_bits(req.log_sq, SKUA_QP_LOG_SQ);
	in->sq.uar = cpu_to_le32(req.flags & SKUA_CREATE_QP_PUSH ? uc->push_uar : uc->uar);
	in->rq.flags = le32_encode_bits(req.log_rq, SKUA_RQ_LOG_SIZE) |
		       le32_encode_bits(req.log_rq_stride, SKUA_RQ_LOG_STRIDE);
	return 0;
}
