// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: create, modify, query and destroy. qp_kernel.c and qp_user.c make the rings,
 * qp_attr.c translates attributes, wr.c posts work requests to kernel QPs.
 */
#include <kunit/visibility.h>
#include <linux/slab.h>

#include "qp.h"
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
 * Return: the number.
 */
u32 skua_ib_max_send_sge(const struct skua_limits *lim)
{
	return skua_wqe_max_sge(lim->max_wqe_blocks);
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
	/* To the device such a QP is as any other; IB_WR_REG_MR_INTEGRITY asks for it. */
	if (type == IB_QPT_RC && skua_ib_has_pi(lim))
		return IB_QP_CREATE_INTEGRITY_EN;
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

/* Draining a kernel QP with an SRQ waits for this event, which a dead device does not report. */
static void skua_ib_qp_last_wqe(struct skua_qp *core)
{
	struct skua_ib_qp *qp = container_of(core, struct skua_ib_qp, core);

	if (qp->ibqp.srq && skua_ib_qp_is_kernel(qp) && READ_ONCE(qp->state) == IB_QPS_ERR)
		skua_ib_qp_event(core, SKUA_QP_EV_LAST_WQE);
}

/**
 * skua_ib_qp_die() - the device has failed: end the draining of QPs
 * @dev: the device, just declared dead
 *
 * The event may have come before: twice does no harm to who waits for it.
 */
void skua_ib_qp_die(struct skua_ib_dev *dev)
{
	skua_qp_for_each(dev->core, skua_ib_qp_event, skua_ib_qp_last_wqe);
}

/* --- create and destroy --- */

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
static void skua_ib_qp_free(struct skua_ib_dev *dev, struct skua_ib_qp *qp)
{
	if (skua_ib_qp_is_kernel(qp)) {
		skua_ib_kernel_free(dev, qp);
		return;
	}
	/* An XRC target has no rings. */
	if (!qp->db.page)
		return;
	skua_ib_db_unmap(&qp->db);
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
	skua_ib_qp_free(dev, qp);
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
	skua_ib_qp_free(dev, qp);
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
	/* Pairs with skua_ib_post_recv(): set the state before the kick; and with skua_ib_die(). */
	smp_store_mb(qp->state, new);
	if (new != IB_QPS_ERR)
		return;
	skua_ib_qp_kick(qp);
	/* If skua_ib_qp_die() has not seen the state yet, this sees that the device is dead. */
	if (skua_ib_dead(skua_ib_qp_dev(qp)))
		skua_ib_qp_last_wqe(&qp->core);
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
