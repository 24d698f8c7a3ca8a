// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: create, modify, query and destroy. qp_attr.c translates attributes, wr.c
 * posts work requests to kernel QPs.
 */
#include <kunit/visibility.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"
#include "trace.h"

/* Supported QP types and the capability that each needs. */
static const struct {
	enum ib_qp_type ib;
	enum skua_qp_type hw;
	u64 cap;
} skua_ib_qp_types[] = {
	{ IB_QPT_RC, SKUA_QP_RC, SKUA_CAP_RC },
	{ IB_QPT_UC, SKUA_QP_UC, SKUA_CAP_UC },
	{ IB_QPT_UD, SKUA_QP_UD, SKUA_CAP_UD },
	{ IB_QPT_GSI, SKUA_QP_GSI, SKUA_CAP_UD },
	{ IB_QPT_XRC_INI, SKUA_QP_XRC_INI, SKUA_CAP_XRC },
	{ IB_QPT_XRC_TGT, SKUA_QP_XRC_TGT, SKUA_CAP_XRC },
	{ IB_QPT_RAW_PACKET, SKUA_QP_RAW_ETH, SKUA_CAP_ETH },
};

/**
 * skua_ib_max_send_sge() - maximum number of gather elements
 * @lim: limits of the device
 *
 * The largest WQE also contains a control segment and, in the worst case, the address
 * vector of a datagram.
 *
 * Return: the number.
 */
u32 skua_ib_max_send_sge(const struct skua_limits *lim)
{
	return lim->max_wqe_blocks * SKUA_WQE_SEGS_PER_BLOCK - 1 -
	       SKUA_WQE_AV_SEGS;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_max_send_sge);

/**
 * skua_ib_max_qp_wr() - maximum number of work requests of a queue
 * @lim: limits of the device
 *
 * Return: the number, for WQEs of one block.
 */
u32 skua_ib_max_qp_wr(const struct skua_limits *lim)
{
	return min3(lim->max_sq_blocks, lim->max_rq_wqes, (u32)SKUA_IB_MAX_RING);
}

/**
 * skua_ib_wqe_blocks() - blocks of the largest WQE of a kernel QP
 * @lim: limits of the device
 * @type: type of the QP
 * @cap: requested capabilities
 *
 * Return: the number.
 */
u32 skua_ib_wqe_blocks(const struct skua_limits *lim, enum ib_qp_type type,
		       const struct ib_qp_cap *cap)
{
	u32 payload = max(cap->max_send_sge, skua_wqe_inline_segs(cap->max_inline_data));
	u32 segs = 2 + payload;

	if (skua_ib_is_dgram(type))
		return skua_wqe_blocks(1 + SKUA_WQE_AV_SEGS + payload);
	/* Segments: control, remote address, operands and, if masked, masks; then results. */
	if (lim->caps & SKUA_CAP_ATOMIC)
		segs = max(segs, 3 + cap->max_send_sge);
	if (lim->caps & SKUA_CAP_MASKED_ATOMIC)
		segs = max(segs, 4 + cap->max_send_sge);
	return skua_wqe_blocks(segs);
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_wqe_blocks);

static int skua_ib_qp_type(const struct skua_limits *lim, enum ib_qp_type type)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(skua_ib_qp_types); i++)
		if (skua_ib_qp_types[i].ib == type && skua_ib_qp_types[i].cap & lim->caps)
			return skua_ib_qp_types[i].hw;
	return -EOPNOTSUPP;
}

/* IB_QP_CREATE_* that are supported for a type of QP. */
static u32 skua_ib_create_flags(const struct skua_limits *lim, enum ib_qp_type type)
{
	if (type == IB_QPT_RAW_PACKET)
		return IB_QP_CREATE_CVLAN_STRIPPING;
	if (type == IB_QPT_UD && lim->caps & SKUA_CAP_MCAST)
		return IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	return 0;
}

static int skua_ib_check_init(struct skua_ib_dev *dev, const struct ib_qp_init_attr *init)
{
	const struct skua_limits *lim = dev->lim;
	const struct ib_qp_cap *cap = &init->cap;
	bool tgt = init->qp_type == IB_QPT_XRC_TGT;
	u32 max_wr = skua_ib_max_qp_wr(lim);

	if (!tgt && (!init->send_cq || (!init->recv_cq && init->qp_type != IB_QPT_XRC_INI)))
		return skua_ib_refuse(dev, -EINVAL, "create_qp: type %d needs %s CQ",
				      init->qp_type, init->send_cq ? "a receive" : "a send");
	if (tgt != !!init->xrcd)
		return skua_ib_refuse(dev, -EINVAL, "create_qp: type %d %s an XRC domain",
				      init->qp_type, init->xrcd ? "must not have" : "needs");
	if (init->srq && init->qp_type != IB_QPT_RC && init->qp_type != IB_QPT_UC &&
	    init->qp_type != IB_QPT_UD && init->qp_type != IB_QPT_GSI)
		return skua_ib_refuse(dev, -EINVAL, "create_qp: type %d must not have an SRQ",
				      init->qp_type);
	if (init->create_flags & ~skua_ib_create_flags(lim, init->qp_type))
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_qp: flags %#x, supported %#x",
				      init->create_flags,
				      skua_ib_create_flags(lim, init->qp_type));
	if (cap->max_send_wr > max_wr || cap->max_recv_wr > max_wr ||
	    cap->max_send_sge > skua_ib_max_send_sge(lim) || cap->max_recv_sge > lim->max_rq_sge ||
	    cap->max_inline_data > lim->max_inline)
		return skua_ib_refuse(dev, -EINVAL,
				      "create_qp: send_wr %u recv_wr %u (max %u), send_sge %u (max %u), recv_sge %u (max %u), inline %u (max %u)",
				      cap->max_send_wr, cap->max_recv_wr, max_wr,
				      cap->max_send_sge, skua_ib_max_send_sge(lim),
				      cap->max_recv_sge, lim->max_rq_sge,
				      cap->max_inline_data, lim->max_inline);
	return 0;
}

static void skua_ib_qp_event(struct skua_qp *core, enum skua_qp_event what)
{
	static const enum ib_event_type type[SKUA_QP_EV_COUNT] = {
		[SKUA_QP_EV_COMM_EST] = IB_EVENT_COMM_EST,
		[SKUA_QP_EV_SQ_DRAINED] = IB_EVENT_SQ_DRAINED,
		[SKUA_QP_EV_LAST_WQE] = IB_EVENT_QP_LAST_WQE_REACHED,
		[SKUA_QP_EV_FATAL] = IB_EVENT_QP_FATAL,
		[SKUA_QP_EV_REQ_ERR] = IB_EVENT_QP_REQ_ERR,
		[SKUA_QP_EV_ACCESS_ERR] = IB_EVENT_QP_ACCESS_ERR,
	};
	struct skua_ib_qp *qp = container_of(core, struct skua_ib_qp, core);
	struct ib_event event = { .device = qp->ibqp.device, .element.qp = &qp->ibqp };

	if ((unsigned int)what >= ARRAY_SIZE(type))
		return;
	event.event = type[what];
	/*
	 * Do not change qp->state: the event may be from before a RESET. The transitions
	 * that ERR allows, to RESET and to ERR, are allowed in every state.
	 */
	if (what >= SKUA_QP_EV_FATAL && skua_ib_qp_is_kernel(qp) &&
	    !test_and_set_bit(0, &qp->failed)) {
		/* Pairs with skua_ib_post_recv(). */
		smp_mb__after_atomic();
		skua_ib_qp_kick(qp);
	}
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/* --- kernel QPs --- */

static void skua_ib_kernel_free(struct skua_ib_dev *dev, struct skua_ib_qp *qp)
{
	kvfree(qp->sq.wqe);
	kvfree(qp->rq.wr_id);
	skua_buf_free(dev->core, &qp->buf);
}

/* One buffer has the receive ring, the send ring and the doorbell record. */
static int skua_ib_kernel_rings(struct skua_ib_dev *dev, struct skua_ib_qp *qp, u32 log_rq,
				u32 log_stride, u32 log_sq, struct skua_cmd_create_qp_in *in)
{
	bool has_rq = !qp->ibqp.srq;
	size_t sq_pos = has_rq ? ALIGN((size_t)SKUA_WQE_SEG << (log_rq + log_stride),
				       SKUA_WQE_BLOCK) : 0;
	size_t dbr_pos = sq_pos + ((size_t)SKUA_WQE_BLOCK << log_sq);
	struct skua_buf sq_part;
	int err;

	err = skua_buf_alloc(dev->core, &qp->buf, dbr_pos + sizeof(struct skua_qp_dbr));
	if (err)
		return err;
	qp->sq.size = BIT(log_sq);
	qp->rq.size = has_rq ? BIT(log_rq) : 0;
	qp->sq.wqe = kvcalloc(qp->sq.size, sizeof(*qp->sq.wqe), GFP_KERNEL);
	if (has_rq)
		qp->rq.wr_id = kvcalloc(qp->rq.size, sizeof(*qp->rq.wr_id), GFP_KERNEL);
	if (!qp->sq.wqe || (has_rq && !qp->rq.wr_id)) {
		skua_ib_kernel_free(dev, qp);
		return -ENOMEM;
	}

	skua_rq_ring_init(&qp->rq.ring, qp->buf.va, log_rq, log_stride);
	skua_sq_ring_init(&qp->sq.ring, qp->buf.va + sq_pos, log_sq);
	qp->dbr = qp->buf.va + dbr_pos;
	sq_part = qp->buf;
	sq_part.dma += sq_pos;
	if (has_rq)
		in->rq.ring = skua_buf_xlat(&qp->buf);
	in->sq.ring = skua_buf_xlat(&sq_part);
	in->sq.dbr = cpu_to_le64(qp->buf.dma + dbr_pos);
	return 0;
}

static int skua_ib_kernel_qp(struct skua_ib_dev *dev, struct skua_ib_qp *qp,
			     struct ib_qp_cap *cap, struct skua_cmd_create_qp_in *in)
{
	u32 blocks = skua_ib_wqe_blocks(dev->lim, qp->ibqp.qp_type, cap);
	u32 log_stride = order_base_2(max(cap->max_recv_sge, 1U));
	u32 log_rq = order_base_2(max(cap->max_recv_wr, 1U));
	u32 log_sq = order_base_2(max(cap->max_send_wr, 1U) * blocks);
	int err;

	if (blocks > dev->lim->max_wqe_blocks ||
	    BIT(log_sq) > min_t(u32, dev->lim->max_sq_blocks, SKUA_IB_MAX_RING))
		return skua_ib_refuse(dev, -EINVAL,
				      "create_qp: WQE of %u blocks (max %u), send ring of %lu blocks (max %u)",
				      blocks, dev->lim->max_wqe_blocks, BIT(log_sq),
				      min_t(u32, dev->lim->max_sq_blocks, SKUA_IB_MAX_RING));
	err = skua_ib_kernel_rings(dev, qp, log_rq, log_stride, log_sq, in);
	if (err)
		return err;
	cap->max_send_wr = BIT(log_sq) / blocks;
	cap->max_recv_wr = qp->rq.size;

	in->sq.flags |= cpu_to_le32(SKUA_QP_F_RESERVED_LKEY) |
			le32_encode_bits(log_sq, SKUA_QP_LOG_SQ);
	in->sq.uar = cpu_to_le32(skua_kernel_uar(dev->core)->index);
	qp->sq.suppress = dev->lim->caps & SKUA_CAP_DB_SUPPRESS;
	if (qp->sq.suppress)
		in->sq.flags |= cpu_to_le32(SKUA_QP_F_DB_SUPPRESS);
	if (!qp->rq.size)
		in->sq.flags |= cpu_to_le32(SKUA_QP_F_NO_RQ);
	else
		in->rq.flags = le32_encode_bits(log_rq, SKUA_RQ_LOG_SIZE) |
			       le32_encode_bits(log_stride, SKUA_RQ_LOG_STRIDE);
	return 0;
}

/* Let polling find the QP by the QPN in CQEs. */
static int skua_ib_kernel_publish(struct skua_ib_qp *qp, const struct ib_qp_init_attr *init)
{
	struct skua_ib_cq *send = to_skua_cq(init->send_cq);
	struct skua_ib_cq *recv = to_skua_cq(init->recv_cq);
	int err;

	err = xa_insert_irq(&send->qps, qp->core.obj.num, qp, GFP_KERNEL);
	if (err || recv == send)
		return err;
	err = xa_insert_irq(&recv->qps, qp->core.obj.num, qp, GFP_KERNEL);
	if (err)
		xa_erase_irq(&send->qps, qp->core.obj.num);
	return err;
}

/* The CQ's lock protects consumer indices, the queue's lock producer indices. */
static void skua_ib_rq_restart(struct skua_ib_qp *qp)
{
	lockdep_assert_held(&to_skua_cq(qp->ibqp.recv_cq)->lock);
	lockdep_assert_held(&qp->rq.lock);
	qp->rq.pi = 0;
	qp->rq.ci = 0;
	WRITE_ONCE(qp->dbr->rq_pi, 0);
}

static void skua_ib_sq_restart(struct skua_ib_qp *qp)
{
	lockdep_assert_held(&to_skua_cq(qp->ibqp.send_cq)->lock);
	lockdep_assert_held(&qp->sq.lock);
	qp->sq.pi = 0;
	qp->sq.ci = 0;
	WRITE_ONCE(qp->dbr->sq_pi, 0);
}

/* Reset the rings after the device has taken the QP to RESET. */
static void skua_ib_kernel_reset(struct skua_ib_qp *qp)
{
	skua_ib_cq_forget(qp, false);
	scoped_guard(spinlock_irqsave, &to_skua_cq(qp->ibqp.recv_cq)->lock) {
		guard(spinlock)(&qp->rq.lock);
		skua_ib_rq_restart(qp);
	}
	scoped_guard(spinlock_irqsave, &to_skua_cq(qp->ibqp.send_cq)->lock) {
		guard(spinlock)(&qp->sq.lock);
		skua_ib_sq_restart(qp);
	}
	clear_bit(0, &qp->failed);
}

/* --- user QPs --- */

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

/* Pin the buffer of both rings, given by a uverbs attribute or by @req->buf_addr. */
static struct ib_umem *skua_ib_user_umem(struct skua_ib_dev *dev, struct ib_udata *udata,
					 const struct skua_create_qp_req *req, u64 size)
{
	struct uverbs_attr_bundle *attrs = rdma_udata_to_uverbs_attr_bundle(udata);

	if (uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM) ||
	    uverbs_attr_is_valid(attrs, UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM))
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "create_qp: separate RQ and SQ buffers"));
	return ib_umem_get_attr_or_va(&dev->ibdev, attrs, UVERBS_ATTR_CREATE_QP_BUF_UMEM,
				      req->buf_addr, size, 0);
}

static int skua_ib_user_pin(struct skua_ib_dev *dev, struct ib_udata *udata,
			    struct skua_ib_qp *qp, const struct skua_create_qp_req *req,
			    struct skua_cmd_create_qp_in *in)
{
	struct skua_ib_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibuc);
	u64 sq_pos = 0, size;
	struct ib_umem *umem;
	int err;

	if (req->has_rq)
		sq_pos = ALIGN((u64)SKUA_WQE_SEG << (req->log_rq + req->log_rq_stride),
			       SKUA_WQE_BLOCK);
	size = sq_pos + (req->has_sq ? (u64)SKUA_WQE_BLOCK << req->log_sq : 0);
	if (!size || req->buf_len < size || req->buf_addr > ULONG_MAX)
		return skua_ib_refuse(dev, -EINVAL,
				      "create_qp: buffer of %llu bytes at %#llx, the rings need %llu",
				      req->buf_len, req->buf_addr, size);
	umem = skua_ib_user_umem(dev, udata, req, size);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	if (ib_umem_offset(umem) & (SKUA_WQE_BLOCK - 1)) {
		err = skua_ib_refuse(dev, -EINVAL,
				     "create_qp: buffer at page offset %d, must be aligned to %d",
				     ib_umem_offset(umem), SKUA_WQE_BLOCK);
		goto err_umem;
	}
	err = skua_ib_umem_map(dev, &qp->mem, umem, false, false);
	if (err)
		goto err_umem;
	err = skua_ib_db_map(uc, req->dbr_addr, &qp->db);
	if (err)
		goto err_map;
	if (req->has_rq)
		in->rq.ring = skua_ib_umem_xlat(&qp->mem, 0);
	if (req->has_sq)
		in->sq.ring = skua_ib_umem_xlat(&qp->mem, sq_pos);
	in->sq.dbr = cpu_to_le64(qp->db.dma);
	return 0;

err_map:
	skua_ib_umem_unmap(dev, &qp->mem);
	return err;
err_umem:
	ib_umem_release(umem);
	return err;
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

static int skua_ib_user_qp(struct skua_ib_dev *dev, struct skua_ib_qp *qp, struct ib_udata *udata,
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

/* --- both --- */

/*
 * An XRC target has no queues. The RDMA core owns it on behalf of all processes that have
 * it open, and creates it without udata.
 */
static void skua_ib_tgt_qp(struct ib_qp_cap *cap, struct skua_cmd_create_qp_in *in)
{
	memset(cap, 0, sizeof(*cap));
	in->sq.flags |= cpu_to_le32(SKUA_QP_F_NO_SQ | SKUA_QP_F_NO_RQ);
}

static int skua_ib_queues(struct skua_ib_dev *dev, struct skua_ib_qp *qp, struct ib_udata *udata,
			  struct ib_qp_cap *cap, struct skua_cmd_create_qp_in *in)
{
	if (qp->ibqp.qp_type == IB_QPT_XRC_TGT) {
		skua_ib_tgt_qp(cap, in);
		return 0;
	}
	return udata ? skua_ib_user_qp(dev, qp, udata, cap, in) :
		       skua_ib_kernel_qp(dev, qp, cap, in);
}

/* Free the rings, which the device no longer uses. */
static void skua_ib_qp_free(struct skua_ib_dev *dev, struct skua_ib_qp *qp,
			    struct ib_udata *udata)
{
	if (skua_ib_qp_is_kernel(qp)) {
		skua_ib_kernel_free(dev, qp);
		return;
	}
	/* An XRC target has no rings. */
	if (!qp->mem.umem)
		return;
	skua_ib_db_unmap(rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibuc), &qp->db);
	skua_ib_umem_unmap(dev, &qp->mem);
}

static int skua_ib_qp_announce(struct skua_ib_qp *qp, const struct ib_qp_init_attr *init,
			       struct ib_udata *udata)
{
	struct skua_create_qp_resp resp = { .qpn = qp->core.obj.num };

	qp->ibqp.qp_num = qp->core.obj.num;
	if (qp->ibqp.qp_type == IB_QPT_XRC_TGT)
		return 0;
	return udata ? ib_respond_udata(udata, resp) : skua_ib_kernel_publish(qp, init);
}

/* Fill in the numbers of the objects that the QP refers to. */
static void skua_ib_qp_names(struct ib_qp *ibqp, const struct ib_qp_init_attr *init,
			     struct skua_cmd_create_qp_in *in)
{
	if (init->qp_type == IB_QPT_XRC_TGT) {
		in->rq.xrcd = cpu_to_le32(to_skua_xrcd(init->xrcd)->num);
		return;
	}
	in->sq.pd = cpu_to_le32(skua_ib_pdn(ibqp->pd));
	in->sq.cqn = cpu_to_le32(to_skua_cq(init->send_cq)->core.obj.num);
	if (init->qp_type != IB_QPT_XRC_INI)
		in->rq.cqn = cpu_to_le32(to_skua_cq(init->recv_cq)->core.obj.num);
	if (init->srq) {
		in->sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ);
		in->rq.srqn = cpu_to_le32(to_skua_srq(init->srq)->core.obj.num);
	}
}

/*
 * Only the kernel may have the GSI QP. Kernel consumers use neither RAW_PACKET nor XRC;
 * XRC targets are created by the RDMA core on behalf of processes.
 */
static bool skua_ib_qp_allowed(enum ib_qp_type type, const struct ib_udata *udata)
{
	switch (type) {
	case IB_QPT_GSI:
		return !udata;
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
	case IB_QPT_XRC_TGT:
		return true;
	default:
		return udata;
	}
}

static int skua_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			     struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct skua_cmd_create_qp_in in = {};
	int type, err;

	mutex_init(&qp->lock);
	INIT_LIST_HEAD(&qp->mcasts);
	if (init->rwq_ind_tbl)
		return skua_ib_rss_create(qp, init, udata);
	type = skua_ib_qp_type(dev->lim, init->qp_type);
	if (type < 0 || !skua_ib_qp_allowed(init->qp_type, udata))
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_qp: type %d is not supported %s",
				      init->qp_type, type < 0 ? "by the device" :
				      udata ? "for user space" : "for kernel consumers");
	/* Ignored with an SRQ. */
	if (init->srq) {
		init->cap.max_recv_wr = 0;
		init->cap.max_recv_sge = 0;
	}
	err = skua_ib_check_init(dev, init);
	if (err)
		return err;
	if (skua_ib_dead(dev))
		return -EIO;

	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	qp->state = IB_QPS_RESET;
	qp->core.event = skua_ib_qp_event;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	in.sq.flags = le32_encode_bits(type, SKUA_QP_TYPE);
	if (type == SKUA_QP_RAW_ETH && !(init->create_flags & IB_QP_CREATE_CVLAN_STRIPPING))
		in.sq.flags |= cpu_to_le32(SKUA_QP_F_KEEP_VLAN);
	if (init->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		in.sq.flags |= cpu_to_le32(SKUA_QP_F_NO_LOOPBACK);
	if (qp->sig_all)
		in.sq.flags |= cpu_to_le32(SKUA_QP_F_SIG_ALL);
	/* The RDMA core creates XRC targets without udata. */
	err = skua_ib_user_own(&qp->user, dev, udata, type == SKUA_QP_XRC_TGT, SKUA_IB_RES_QP);
	if (err)
		return err;
	qp->mem.user = qp->user;
	err = skua_ib_queues(dev, qp, udata, &init->cap, &in);
	if (err)
		goto err_user;

	qp->cap = init->cap;
	in.sq.max_inline = cpu_to_le32(init->cap.max_inline_data);
	skua_ib_qp_names(ibqp, init, &in);
	err = skua_qp_create(dev->core, &qp->core, &in, type == SKUA_QP_GSI);
	if (err)
		goto err_free;
	err = skua_ib_qp_announce(qp, init, udata);
	if (err)
		goto err_qp;
	return 0;

err_qp:
	skua_qp_destroy(dev->core, &qp->core);
err_free:
	skua_ib_qp_free(dev, qp, udata);
err_user:
	skua_ib_user_disown(qp->user, SKUA_IB_RES_QP);
	return err;
}

static int skua_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);

	if (qp->is_rss) {
		skua_ib_rss_destroy(qp);
		return 0;
	}
	if (skua_ib_qp_is_kernel(qp)) {
		struct skua_cmd_modify_qp_in reset = {
			.mask = cpu_to_le32(SKUA_QP_M_STATE),
			.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
			.attr.state = le32_encode_bits(SKUA_QP_RESET, SKUA_ATTR_STATE),
		};

		/*
		 * Remove the QP's CQEs before its number can be reused. Only a dead
		 * device fails the command, and it writes no more CQEs.
		 */
		skua_qp_modify(dev->core, &qp->core, &reset);
		skua_ib_cq_forget(qp, true);
	}
	skua_qp_destroy(dev->core, &qp->core);
	skua_ib_qp_free(dev, qp, udata);
	skua_ib_user_disown(qp->user, SKUA_IB_RES_QP);
	return 0;
}

/* The device has changed the state of the QP. */
static void skua_ib_qp_entered(struct skua_ib_qp *qp, enum ib_qp_state new)
{
	if (!skua_ib_qp_is_kernel(qp)) {
		WRITE_ONCE(qp->state, new);
		return;
	}
	if (new == IB_QPS_RESET) {
		WRITE_ONCE(qp->state, new);
		skua_ib_kernel_reset(qp);
		return;
	}
	/* Pairs with skua_ib_post_recv(): set the state before the kick. */
	smp_store_mb(qp->state, new);
	if (new == IB_QPS_ERR)
		skua_ib_qp_kick(qp);
}

/* Change the state of a QP of a dead device: only ERR has an effect, on kernel CQs. */
static int skua_ib_modify_dead(struct skua_ib_qp *qp, enum ib_qp_state new)
{
	if (new != IB_QPS_ERR)
		return -EIO;
	WRITE_ONCE(qp->state, new);
	if (skua_ib_qp_is_kernel(qp)) {
		schedule_work(&to_skua_cq(qp->ibqp.send_cq)->wake);
		schedule_work(&to_skua_cq(qp->ibqp.recv_cq)->wake);
	}
	/* Draining a QP with an SRQ waits for this event. */
	if (qp->ibqp.srq)
		skua_ib_qp_event(&qp->core, SKUA_QP_EV_LAST_WQE);
	return 0;
}

/* What was agreed on with the peer takes effect with the transition to RTR. */
static int skua_ib_modify_ece(struct skua_ib_qp *qp, const struct skua_modify_qp_req *req,
			      enum ib_qp_state cur, enum ib_qp_state new,
			      struct skua_cmd_modify_qp_in *in)
{
	bool agreed = req->comp_mask & SKUA_MODIFY_QP_ECE;
	struct skua_ib_dev *dev = skua_ib_qp_dev(qp);
	int err;

	if (cur != IB_QPS_INIT || new != IB_QPS_RTR)
		return agreed ? skua_ib_refuse(dev, -EINVAL,
					       "modify_qp: QP %#x: ECE options with transition %d to %d, must be INIT to RTR",
					       qp->core.obj.num, cur, new) : 0;
	if (agreed) {
		err = skua_ib_ece_build(dev->lim, qp->ibqp.qp_type, req->ece_options, in);
		if (err)
			return skua_ib_refuse(dev, err,
					      "modify_qp: QP %#x of type %d: ECE options %#x, supported %#x",
					      qp->core.obj.num, qp->ibqp.qp_type, req->ece_options,
					      skua_ib_ece_options(dev->lim));
	}
	skua_ib_ext_build(dev->lim, qp->ibqp.qp_type, agreed, req->ece_options, in);
	return 0;
}

static int skua_ib_modify_hw(struct skua_ib_qp *qp, const struct ib_qp_attr *attr, int mask,
			     const struct skua_modify_qp_req *req, enum ib_qp_state cur,
			     enum ib_qp_state new)
{
	struct skua_ib_dev *dev = skua_ib_qp_dev(qp);
	struct skua_cmd_modify_qp_in in = {};
	enum ib_mtu active = 0;
	u32 hw_mask;
	int err;

	err = skua_ib_attr_mask(mask, &hw_mask);
	if (err)
		return skua_ib_refuse(dev, err,
				      "modify_qp: QP %#x: attributes %#x are not supported",
				      qp->core.obj.num, mask);
	if (mask & IB_QP_PATH_MTU) {
		err = skua_ib_active_mtu(dev, &active);
		if (err)
			return skua_ib_refuse(dev, err,
					      "modify_qp: QP %#x: no path MTU, the netdev %s",
					      qp->core.obj.num, err == -ENODEV ?
					      "is not there" : "has too small an MTU");
	}
	err = skua_ib_attr_check(&dev->ibdev, dev->lim, attr, mask, active);
	if (err)
		return err;
	err = skua_ib_attr_build(qp, attr, mask, &in.attr);
	if (err)
		return skua_ib_refuse(dev, err,
				      "modify_qp: QP %#x: invalid path: GID index %u, port %u, SL %u, destination %pI6",
				      qp->core.obj.num,
				      rdma_ah_read_grh(&attr->ah_attr)->sgid_index,
				      rdma_ah_get_port_num(&attr->ah_attr),
				      rdma_ah_get_sl(&attr->ah_attr),
				      rdma_ah_read_grh(&attr->ah_attr)->dgid.raw);
	in.attr.rate_burst = cpu_to_le32(req->max_burst);
	in.mask = cpu_to_le32(hw_mask);
	err = skua_ib_modify_ece(qp, req, cur, new, &in);
	if (err)
		return err;
	/* RESET and ERR are allowed from any state that the device has entered by itself. */
	in.cur_state = cpu_to_le32(new == IB_QPS_RESET || new == IB_QPS_ERR ?
				   SKUA_QP_ANY_STATE : cur);
	return skua_qp_modify(dev->core, &qp->core, &in);
}

/* The RDMA core allows rate limits for few QP types only, so they are checked here. */
static int skua_ib_modify_ok(struct skua_ib_qp *qp, const struct ib_qp_attr *attr, int mask,
			     u32 burst, enum ib_qp_state cur, enum ib_qp_state new)
{
	struct skua_ib_dev *dev = skua_ib_qp_dev(qp);
	int err;

	if (!ib_modify_qp_is_ok(cur, new, qp->ibqp.qp_type, mask & ~IB_QP_RATE_LIMIT))
		return skua_ib_refuse(dev, -EINVAL,
				      "modify_qp: QP %#x of type %d: invalid transition %d to %d with attributes %#x",
				      qp->core.obj.num, qp->ibqp.qp_type, cur, new, mask);
	if (!(mask & IB_QP_RATE_LIMIT))
		return burst ? skua_ib_refuse(dev, -EINVAL,
					      "modify_qp: QP %#x: burst %u without a rate limit",
					      qp->core.obj.num, burst) : 0;
	err = skua_ib_rate_check(dev->lim, qp->ibqp.qp_type, new, attr->rate_limit, burst);
	if (err)
		return skua_ib_refuse(dev, err,
				      "modify_qp: QP %#x of type %d in state %d: rate limit %u (%u to %u), burst %u (max %u)",
				      qp->core.obj.num, qp->ibqp.qp_type, new, attr->rate_limit,
				      dev->lim->rate_min, dev->lim->rate_max, burst,
				      dev->lim->rate_burst_max);
	return 0;
}

static int skua_ib_modify_udata(struct skua_ib_dev *dev, struct ib_udata *udata,
				struct skua_modify_qp_req *req)
{
	int err;

	if (udata && udata->inlen) {
		err = ib_copy_validate_udata_in_cm(udata, *req, comp_mask,
						   SKUA_MODIFY_QP_ECE);
		if (err)
			return err;
		if (req->reserved ||
		    (req->ece_options && !(req->comp_mask & SKUA_MODIFY_QP_ECE)))
			return skua_ib_refuse(dev, -EOPNOTSUPP,
					      "modify_qp: reserved %#x, ECE options %#x with comp_mask %#x",
					      req->reserved, req->ece_options, req->comp_mask);
	}
	return ib_respond_empty_udata(udata);
}

static int skua_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			     struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	struct skua_modify_qp_req req = {};
	enum ib_qp_state cur, new;
	int err;

	err = skua_ib_modify_udata(dev, udata, &req);
	if (err)
		return err;
	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT) ||
	    mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE))
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "modify_qp: QP %#x: attributes %#x, alternate paths are not supported",
				      ibqp->qp_num, mask);
	/* An RSS QP has no queues and no state. */
	if (qp->is_rss)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "modify_qp: QP %#x has an indirection table and cannot be modified",
				      ibqp->qp_num);

	guard(mutex)(&qp->lock);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	new = mask & IB_QP_STATE ? attr->qp_state : cur;
	err = skua_ib_modify_ok(qp, attr, mask, req.max_burst, cur, new);
	if (err)
		return err;
	err = skua_ib_dead(dev) ? -EIO :
				  skua_ib_modify_hw(qp, attr, mask, &req, cur, new);
	trace_skua_ib_modify_qp(ibqp->device, ibqp->qp_num, cur, new, mask, err);
	if (err)
		return skua_ib_dead(dev) ? skua_ib_modify_dead(qp, new) : err;

	if (mask & IB_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_RATE_LIMIT || new == IB_QPS_RESET) {
		WRITE_ONCE(qp->rate_limit, mask & IB_QP_RATE_LIMIT ? attr->rate_limit : 0);
		WRITE_ONCE(qp->rate_burst, req.max_burst);
	}
	if (mask & IB_QP_STATE)
		skua_ib_qp_entered(qp, new);
	return 0;
}

static int skua_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			    struct ib_qp_init_attr *init)
{
	struct skua_ib_dev *dev = to_skua_dev(ibqp->device);
	struct skua_ib_qp *qp = to_skua_qp(ibqp);
	int err;

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	if (qp->is_rss) {
		attr->qp_state = qp->state;
		attr->port_num = 1;
		init->qp_type = ibqp->qp_type;
		return 0;
	}

	struct skua_cmd_query_qp_out *out __free(kfree) = kzalloc_obj(*out);

	if (!out)
		return -ENOMEM;
	guard(mutex)(&qp->lock);
	err = skua_qp_query(dev->core, &qp->core, out);
	if (err)
		return err;
	skua_ib_attr_parse(qp, out, attr);
	/* The device may have entered an error state by itself. */
	WRITE_ONCE(qp->state, attr->qp_state);
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	init->port_num = 1;
	return 0;
}

const struct ib_device_ops skua_ib_qp_ops = {
	.create_qp = skua_ib_create_qp,
	.destroy_qp = skua_ib_destroy_qp,
	.modify_qp = skua_ib_modify_qp,
	.query_qp = skua_ib_query_qp,
	.post_send = skua_ib_post_send,
	.post_recv = skua_ib_post_recv,
	INIT_RDMA_OBJ_SIZE(ib_qp, skua_ib_qp, ibqp),
};
