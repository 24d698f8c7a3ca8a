// SPDX-License-Identifier: GPL-2.0
/*
 * Receive side scaling for user space: work queues (RAW_ETH QPs without a send side),
 * indirection tables, and the QPs that spread frames over them.
 */
#include <kunit/visibility.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "skua_ib.h"

/**
 * struct skua_ib_wq - work queue
 * @ibwq: the RDMA core's part
 * @core: skua_core's part
 * @user: the account that it is charged to as a QP
 * @lock: serializes changes of state
 * @mem: ring
 * @db: doorbell record
 */
struct skua_ib_wq {
	struct ib_wq ibwq;
	struct skua_qp core;
	struct skua_ib_user *user;
	struct mutex lock; /* see above */
	struct skua_ib_umem mem;
	struct skua_ib_db db;
};

/* The driver keeps nothing for an indirection table. */
struct skua_ib_rwq_ind_table {
	struct ib_rwq_ind_table ibtable;
};

static struct skua_ib_wq *to_skua_wq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct skua_ib_wq, ibwq);
}

static void skua_ib_wq_event(struct skua_qp *core, enum skua_qp_event what)
{
	struct skua_ib_wq *wq = container_of(core, struct skua_ib_wq, core);
	struct ib_event event = {
		.device = wq->ibwq.device,
		.element.wq = &wq->ibwq,
		.event = IB_EVENT_WQ_FATAL,
	};

	/* The handler uses the uobject, which uverbs sets only after create_wq(). */
	if (what >= SKUA_QP_EV_FATAL && READ_ONCE(wq->ibwq.uobject))
		wq->ibwq.event_handler(&event, wq->ibwq.wq_context);
}

static int skua_ib_wq_check(struct skua_ib_dev *dev, const struct ib_wq_init_attr *init,
			    const struct skua_create_wq_req *req)
{
	u32 max_wr = min_t(u32, dev->lim->max_rq_wqes, SKUA_IB_MAX_RING);
	u32 max_sge = dev->lim->max_rq_sge;

	if (!(dev->lim->caps & SKUA_CAP_ETH) || init->wq_type != IB_WQT_RQ)
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "create_wq: type %d is not supported by the device",
				      init->wq_type);
	if (init->create_flags & ~(u32)IB_WQ_FLAGS_CVLAN_STRIPPING)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_wq: flags %#x, supported %#x",
				      init->create_flags, IB_WQ_FLAGS_CVLAN_STRIPPING);
	if (req->reserved)
		return skua_ib_refuse(dev, -EOPNOTSUPP, "create_wq: reserved is %#x, must be 0",
				      req->reserved);
	return skua_ib_range(dev, "create_wq", "max_wr", init->max_wr, 1, max_wr) ?:
	       skua_ib_range(dev, "create_wq", "max_sge", init->max_sge, 0, max_sge) ?:
	       skua_ib_range(dev, "create_wq", "log_wqes", req->log_wqes,
			     order_base_2(init->max_wr), ilog2(max_wr)) ?:
	       skua_ib_range(dev, "create_wq", "log_stride", req->log_stride,
			     order_base_2(init->max_sge), order_base_2(max_sge));
}

static int skua_ib_wq_pin(struct skua_ib_dev *dev, struct skua_ib_ucontext *uc,
			  struct skua_ib_wq *wq, const struct skua_create_wq_req *req)
{
	u64 size = ALIGN((u64)SKUA_WQE_SEG << (req->log_wqes + req->log_stride),
			 SKUA_WQE_BLOCK);
	struct ib_umem *umem;
	int err;

	if (req->buf_len < size || req->buf_addr & (SKUA_WQE_BLOCK - 1) ||
	    req->buf_addr > ULONG_MAX)
		return skua_ib_refuse(dev, -EINVAL,
				      "create_wq: ring of %llu bytes at %#llx, needs %llu and must be aligned to %d",
				      req->buf_len, req->buf_addr, size, SKUA_WQE_BLOCK);
	umem = ib_umem_get_va(&dev->ibdev, req->buf_addr, size, 0);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = skua_ib_umem_map(dev, &wq->mem, umem, false, false);
	if (err) {
		ib_umem_release(umem);
		return err;
	}
	err = skua_ib_db_map(uc, req->dbr_addr, &wq->db);
	if (err)
		skua_ib_umem_unmap(dev, &wq->mem);
	return err;
}

static int skua_ib_wq_qp(struct skua_ib_dev *dev, struct skua_ib_ucontext *uc,
			 struct skua_ib_wq *wq, struct ib_pd *ibpd,
			 const struct ib_wq_init_attr *init, const struct skua_create_wq_req *req)
{
	u32 cqn = to_skua_cq(init->cq)->core.obj.num;
	struct skua_cmd_create_qp_in in = {
		.sq.flags = le32_encode_bits(SKUA_QP_RAW_ETH, SKUA_QP_TYPE) |
			    cpu_to_le32(SKUA_QP_F_NO_SQ),
		.sq.pd = cpu_to_le32(skua_ib_pdn(ibpd)),
		.sq.cqn = cpu_to_le32(cqn),
		.sq.uar = cpu_to_le32(uc->uar),
		.sq.dbr = cpu_to_le64(wq->db.dma),
		.rq.flags = le32_encode_bits(req->log_wqes, SKUA_RQ_LOG_SIZE) |
			    le32_encode_bits(req->log_stride, SKUA_RQ_LOG_STRIDE),
		.rq.cqn = cpu_to_le32(cqn),
		.rq.ring = skua_ib_umem_xlat(&wq->mem, 0),
	};

	if (!(init->create_flags & IB_WQ_FLAGS_CVLAN_STRIPPING))
		in.sq.flags |= cpu_to_le32(SKUA_QP_F_KEEP_VLAN);
	wq->core.event = skua_ib_wq_event;
	return skua_qp_create(dev->core, &wq->core, &in, false);
}

static void skua_ib_wq_unpin(struct skua_ib_dev *dev, struct skua_ib_wq *wq)
{
	skua_ib_db_unmap(&wq->db);
	skua_ib_umem_unmap(dev, &wq->mem);
}

/* Pin the ring and create the QP of a work queue. */
static int skua_ib_wq_init(struct skua_ib_dev *dev, struct skua_ib_wq *wq, struct ib_pd *ibpd,
			   const struct ib_wq_init_attr *init,
			   const struct skua_create_wq_req *req, struct ib_udata *udata)
{
	struct skua_ib_ucontext *uc =
		rdma_udata_to_drv_context(udata, struct skua_ib_ucontext, ibuc);
	struct skua_create_wq_resp resp = {};
	int err;

	err = skua_ib_user_own(&wq->user, dev, udata, false, SKUA_IB_RES_QP);
	if (err)
		return err;
	err = skua_ib_wq_pin(dev, uc, wq, req);
	if (err)
		goto err_user;
	err = skua_ib_wq_qp(dev, uc, wq, ibpd, init, req);
	if (err)
		goto err_pin;
	wq->ibwq.wq_num = wq->core.obj.num;
	wq->ibwq.state = IB_WQS_RESET;
	resp.wqn = wq->core.obj.num;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_qp;
	return 0;

err_qp:
	skua_qp_destroy(dev->core, &wq->core);
err_pin:
	skua_ib_wq_unpin(dev, wq);
err_user:
	skua_ib_user_disown(wq->user, SKUA_IB_RES_QP);
	return err;
}

static struct ib_wq *skua_ib_create_wq(struct ib_pd *ibpd, struct ib_wq_init_attr *init,
				       struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibpd->device);
	struct skua_create_wq_req req;
	int err;

	if (!udata)
		return ERR_PTR(skua_ib_refuse(dev, -EOPNOTSUPP,
					      "create_wq: not supported for kernel consumers"));
	err = ib_copy_validate_udata_in_cm(udata, req, comp_mask, 0);
	if (err)
		return ERR_PTR(err);
	err = skua_ib_wq_check(dev, init, &req);
	if (err)
		return ERR_PTR(err);
	if (skua_ib_dead(dev))
		return ERR_PTR(-EIO);

	struct skua_ib_wq *wq __free(kfree) = kzalloc_obj(*wq, GFP_KERNEL_ACCOUNT);

	if (!wq)
		return ERR_PTR(-ENOMEM);
	mutex_init(&wq->lock);
	/* Events may come before the RDMA core sets the device; uverbs sets no handler. */
	wq->ibwq.device = &dev->ibdev;
	wq->ibwq.event_handler = init->event_handler;
	err = skua_ib_wq_init(dev, wq, ibpd, init, &req, udata);
	if (err)
		return ERR_PTR(err);
	return &no_free_ptr(wq)->ibwq;
}

static int skua_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibwq->device);
	struct skua_ib_wq *wq = to_skua_wq(ibwq);

	skua_qp_destroy(dev->core, &wq->core);
	skua_ib_wq_unpin(dev, wq);
	skua_ib_user_disown(wq->user, SKUA_IB_RES_QP);
	kfree(wq);
	return 0;
}

static int skua_ib_wq_to(struct skua_ib_dev *dev, struct skua_ib_wq *wq, enum skua_qp_state state,
			 u32 mask)
{
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_STATE | mask),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
		.attr.state = le32_encode_bits(state, SKUA_ATTR_STATE),
	};

	return skua_qp_modify(dev->core, &wq->core, &in);
}

/* Ask the device for the state, because a work queue enters ERR by itself after an error. */
static int skua_ib_wq_sync(struct skua_ib_dev *dev, struct skua_ib_wq *wq)
{
	struct skua_cmd_query_qp_out *out __free(kfree) = kzalloc_obj(*out);
	u32 state;
	int err;

	lockdep_assert_held(&wq->lock);
	if (!out)
		return -ENOMEM;
	err = skua_qp_query(dev->core, &wq->core, out);
	if (err)
		return err;
	state = le32_get_bits(out->sqc.attr.state, SKUA_ATTR_STATE);
	/* A transition to RDY that failed halfway leaves INIT, in which nothing is received. */
	if (state <= SKUA_QP_INIT)
		wq->ibwq.state = IB_WQS_RESET;
	else
		wq->ibwq.state = state == SKUA_QP_RTR ? IB_WQS_RDY : IB_WQS_ERR;
	return 0;
}

static int skua_ib_wq_set(struct skua_ib_dev *dev, struct skua_ib_wq *wq, enum ib_wq_state new)
{
	switch (new) {
	case IB_WQS_RDY:
		return skua_ib_wq_to(dev, wq, SKUA_QP_INIT, SKUA_QP_M_PORT) ?:
		       skua_ib_wq_to(dev, wq, SKUA_QP_RTR, 0);
	case IB_WQS_RESET:
		return skua_ib_wq_to(dev, wq, SKUA_QP_RESET, 0);
	case IB_WQS_ERR:
		return skua_ib_wq_to(dev, wq, SKUA_QP_ERR, 0);
	}
	return -EINVAL;
}

static int skua_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
			     struct ib_udata *udata)
{
	struct skua_ib_dev *dev = to_skua_dev(ibwq->device);
	struct skua_ib_wq *wq = to_skua_wq(ibwq);
	enum ib_wq_state cur, new;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (mask & ~(u32)(IB_WQ_STATE | IB_WQ_CUR_STATE))
		return skua_ib_refuse(dev, -EOPNOTSUPP, "modify_wq: attributes %#x, supported %#lx",
				      mask, (unsigned long)(IB_WQ_STATE | IB_WQ_CUR_STATE));
	guard(mutex)(&wq->lock);
	err = skua_ib_wq_sync(dev, wq);
	if (err)
		return err;
	cur = mask & IB_WQ_CUR_STATE ? attr->curr_wq_state : ibwq->state;
	new = mask & IB_WQ_STATE ? attr->wq_state : cur;
	/* ERR to RDY is possible only through RESET. */
	if (cur != ibwq->state || new > IB_WQS_ERR ||
	    (new == IB_WQS_RDY && cur == IB_WQS_ERR))
		return skua_ib_refuse(dev, -EINVAL,
				      "modify_wq: invalid transition %d to %d, present state %d",
				      cur, new, ibwq->state);
	if (new == cur)
		return 0;
	err = skua_ib_wq_set(dev, wq, new);
	if (!err)
		ibwq->state = new;
	return err;
}

/* --- indirection tables: the RSS context is created with the QP, which has the key --- */

static int skua_ib_create_rwq_ind_table(struct ib_rwq_ind_table *table,
					struct ib_rwq_ind_table_init_attr *init,
					struct ib_udata *udata)
{
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (init->log_ind_tbl_size > ilog2(SKUA_RSS_MAX))
		return skua_ib_refuse(to_skua_dev(table->device), -EINVAL,
				      "create_rwq_ind_table: 2^%u entries, at most %d",
				      init->log_ind_tbl_size, SKUA_RSS_MAX);
	return 0;
}

static int skua_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *table)
{
	return 0;
}

/* --- RSS QPs --- */

/* Fields that the device can hash: always source and destination together. */
static const struct {
	u64 fields;
	u64 needs;
	u32 hw;
} skua_ib_hashes[] = {
	{ SKUA_RX_HASH_IPV4, 0, SKUA_RSS_IPV4 },
	{ SKUA_RX_HASH_IPV6, 0, SKUA_RSS_IPV6 },
	{ SKUA_RX_HASH_TCP, SKUA_RX_HASH_IPV4, SKUA_RSS_TCP_IPV4 },
	{ SKUA_RX_HASH_TCP, SKUA_RX_HASH_IPV6, SKUA_RSS_TCP_IPV6 },
	{ SKUA_RX_HASH_UDP, SKUA_RX_HASH_IPV4, SKUA_RSS_UDP_IPV4 },
	{ SKUA_RX_HASH_UDP, SKUA_RX_HASH_IPV6, SKUA_RSS_UDP_IPV6 },
};

/**
 * skua_ib_rss_hash() - translate the fields of a hash
 * @fields: SKUA_RX_HASH_*
 * @flags: SKUA_RSS_*
 *
 * Return: 0, or -EOPNOTSUPP for combinations that the device does not support: only the
 * source or the destination, or ports without addresses.
 */
int skua_ib_rss_hash(u64 fields, u32 *flags)
{
	u64 left = fields;
	unsigned int i;

	*flags = 0;
	for (i = 0; i < ARRAY_SIZE(skua_ib_hashes); i++) {
		u64 all = skua_ib_hashes[i].fields | skua_ib_hashes[i].needs;

		if ((fields & all) != all)
			continue;
		*flags |= skua_ib_hashes[i].hw;
		left &= ~skua_ib_hashes[i].fields;
	}
	return left ? -EOPNOTSUPP : 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_rss_hash);

static int skua_ib_rss_fill(struct skua_rss *rss, const struct ib_rwq_ind_table *table,
			    const struct skua_create_rss_qp_req *req)
{
	u32 flags, i;
	int err;

	err = skua_ib_rss_hash(req->fields, &flags);
	if (err)
		return err;
	rss->flags = cpu_to_le32(flags) |
		     le32_encode_bits(table->log_ind_tbl_size, SKUA_RSS_LOG_SIZE);
	memcpy(rss->key, req->key, sizeof(rss->key));
	for (i = 0; i < BIT(table->log_ind_tbl_size); i++)
		rss->qpn[i] = cpu_to_le32(to_skua_wq(table->ind_tbl[i])->core.obj.num);
	return 0;
}

/* A QP number for display, above the range of the numbers of real QPs. */
static u32 skua_ib_rss_qpn(const struct skua_limits *lim, u32 rss)
{
	u64 num = (u64)(rss + 1) << lim->qpn_bits;

	return num < IB_MULTICAST_QPN ? num : 0;
}

/**
 * skua_ib_rss_create() - create a QP that distributes frames to work queues
 * @qp: the QP
 * @init: attributes with an indirection table
 * @udata: key and fields of the hash
 *
 * Such a QP has no queues of its own and no state.
 *
 * Return: 0 or a negative errno.
 */
int skua_ib_rss_create(struct skua_ib_qp *qp, const struct ib_qp_init_attr *init,
		       struct ib_udata *udata)
{
	struct skua_ib_dev *dev = skua_ib_qp_dev(qp);
	struct skua_create_rss_qp_req req;
	struct skua_create_qp_resp resp;
	int err;

	if (init->qp_type != IB_QPT_RAW_PACKET || !udata || init->create_flags ||
	    !(dev->lim->caps & SKUA_CAP_RSS))
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "create_qp: type %d, flags %#x with an indirection table, must be RAW_PACKET without flags on a device with RSS",
				      init->qp_type, init->create_flags);
	if (init->send_cq || init->cap.max_send_wr)
		return skua_ib_refuse(dev, -EINVAL,
				      "create_qp: max_send_wr %u or a send CQ with an indirection table",
				      init->cap.max_send_wr);
	err = ib_copy_validate_udata_in_cm(udata, req, key, 0);
	if (err)
		return err;
	if (req.function != SKUA_RX_HASH_TOEPLITZ || req.key_len != sizeof(req.key) ||
	    memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return skua_ib_refuse(dev, -EOPNOTSUPP,
				      "create_qp: hash function %u, key of %u bytes; only Toeplitz with %zu bytes is supported",
				      req.function, req.key_len, sizeof(req.key));

	struct skua_rss *rss __free(kfree) = kzalloc_obj(*rss);

	if (!rss)
		return -ENOMEM;
	err = skua_ib_rss_fill(rss, init->rwq_ind_tbl, &req);
	if (err)
		return skua_ib_refuse(dev, err,
				      "create_qp: hash fields %#llx are not supported together",
				      req.fields);
	err = skua_rss_create(dev->core, &qp->rss, rss);
	if (err)
		return err;
	qp->is_rss = true;
	qp->state = IB_QPS_RTS;
	qp->ibqp.qp_num = skua_ib_rss_qpn(dev->lim, qp->rss);
	resp = (struct skua_create_qp_resp) { .qpn = qp->ibqp.qp_num };
	err = ib_respond_udata(udata, resp);
	if (err)
		skua_rss_destroy(dev->core, qp->rss);
	return err;
}

/**
 * skua_ib_rss_destroy() - destroy the RSS context of a QP
 * @qp: the QP, to which no flow rule refers any more
 */
void skua_ib_rss_destroy(struct skua_ib_qp *qp)
{
	skua_rss_destroy(skua_ib_qp_dev(qp)->core, qp->rss);
}

const struct ib_device_ops skua_ib_wq_ops = {
	.create_wq = skua_ib_create_wq,
	.destroy_wq = skua_ib_destroy_wq,
	.modify_wq = skua_ib_modify_wq,
	.create_rwq_ind_table = skua_ib_create_rwq_ind_table,
	.destroy_rwq_ind_table = skua_ib_destroy_rwq_ind_table,
	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, skua_ib_rwq_ind_table, ibtable),
};
