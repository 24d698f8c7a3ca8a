// SPDX-License-Identifier: GPL-2.0
/*
 * Polling and arming of kernel CQs.
 *
 * The device is not trusted: a CQE is copied once, and is ignored unless it refers to a
 * queue that completes on this CQ and to an outstanding WQE of it.
 */
#include <kunit/static_stub.h>
#include <kunit/visibility.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "skua_ib.h"

/* Replaces the QPN in CQEs of a destroyed QP; QPNs have 24 bits. */
#define SKUA_IB_NO_QPN		U32_MAX

static enum ib_wc_status skua_ib_wc_status(const struct skua_cqe *cqe)
{
	switch (skua_cqe_status(cqe)) {
		SKUA_CQE_STATUS_TABLE(SKUA_CQE_CASE_IB)
	}
	return IB_WC_GENERAL_ERR;
}

/* Complete the send WQE that starts at @index, and all before it. */
static bool skua_ib_take_send(struct skua_ib_sq *sq, u16 index, struct ib_wc *wc)
{
	/* Pairs with the release in skua_ib_post_send(): the entries are there. */
	u32 used = smp_load_acquire(&sq->pi) - sq->ci;
	u16 ahead = index - (u16)sq->ci;
	struct skua_ib_swqe *wqe = &sq->wqe[(sq->ci + ahead) & (sq->size - 1)];

	if (ahead >= used || !wqe->blocks)
		return false;
	wc->wr_id = wqe->wr_id;
	wc->opcode = wqe->opcode;
	/* Pairs with the acquire in skua_ib_post_send(): the entry may be reused. */
	smp_store_release(&sq->ci, sq->ci + ahead + wqe->blocks);
	return true;
}

static bool skua_ib_take_recv(struct skua_ib_rq *rq, u16 index, struct ib_wc *wc)
{
	/* Pairs with the release in skua_ib_post_recv(): the entries are there. */
	u32 used = smp_load_acquire(&rq->pi) - rq->ci;
	u16 ahead = index - (u16)rq->ci;

	if (ahead >= used)
		return false;
	wc->wr_id = rq->wr_id[(rq->ci + ahead) & (rq->size - 1)];
	wc->opcode = IB_WC_RECV;
	/* Pairs with the acquire in skua_ib_post_recv(): the entry may be reused. */
	smp_store_release(&rq->ci, rq->ci + ahead + 1);
	return true;
}

/* Complete a receive WQE of the QP or of its SRQ. */
static bool skua_ib_take_any_recv(struct skua_ib_qp *qp, const struct skua_cqe *cqe,
				  struct ib_wc *wc)
{
	struct ib_srq *ibsrq = qp->ibqp.srq;

	if (!ibsrq)
		return skua_ib_take_recv(&qp->rq, skua_cqe_wqe_index(cqe), wc);
	wc->opcode = IB_WC_RECV;
	return skua_cqe_flags(cqe) & SKUA_CQE_F_SRQ &&
	       skua_ib_srq_take(to_skua_srq(ibsrq), skua_cqe_wqe_index(cqe), &wc->wr_id);
}

/* Fill in the source of a datagram. */
static void skua_ib_wc_dgram(struct ib_wc *wc, const struct skua_cqe *cqe)
{
	const struct skua_cqe_ud *ud = &cqe->ud;

	wc->src_qp = le32_to_cpu(ud->src_qpn);
	wc->pkey_index = le16_to_cpu(ud->pkey_index);
	wc->port_num = 1;
	ether_addr_copy(wc->smac, ud->smac);
	wc->network_hdr_type = ud->ipv4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_SMAC | IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->sl = skua_cqe_ud_sl(cqe);
	if (skua_cqe_flags(cqe) & SKUA_CQE_F_VLAN) {
		wc->vlan_id = le16_to_cpu(ud->vlan_tci) & VLAN_VID_MASK;
		wc->wc_flags |= IB_WC_WITH_VLAN;
	}
}

/*
 * Return: true if a completion in error means that the QP is in ERR. A failed send takes
 * UC and UD QPs only to SQE, in which they still receive.
 */
static bool skua_ib_wc_is_fatal(const struct skua_cqe *cqe, enum ib_qp_type type)
{
	return skua_cqe_opcode(cqe) != SKUA_CQE_REQ ||
	       !(skua_ib_is_dgram(type) || type == IB_QPT_UC);
}

static void skua_ib_wc_fill(struct ib_wc *wc, const struct skua_cqe *cqe, struct skua_ib_qp *qp)
{
	u32 flags = skua_cqe_flags(cqe);

	wc->qp = &qp->ibqp;
	wc->status = skua_ib_wc_status(cqe);
	wc->vendor_err = skua_cqe_vendor(cqe);
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	if (flags & SKUA_CQE_F_IMM) {
		wc->ex.imm_data = cqe->imm;
		wc->wc_flags = IB_WC_WITH_IMM;
	} else if (flags & SKUA_CQE_F_INV) {
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->inv_key);
		wc->wc_flags = IB_WC_WITH_INVALIDATE;
	}
	if (likely(wc->status == IB_WC_SUCCESS)) {
		if (skua_cqe_opcode(cqe) == SKUA_CQE_RECV && skua_ib_is_dgram(qp->ibqp.qp_type))
			skua_ib_wc_dgram(wc, cqe);
		return;
	}
	if (!skua_ib_wc_is_fatal(cqe, qp->ibqp.qp_type))
		return;
	/* The QP is in ERR: have the device flush receives that were posted meanwhile. */
	if (!test_and_set_bit(0, &qp->failed)) {
		/*
		 * Pairs with skua_ib_post_recv(), which writes the record, then reads the
		 * flag: either it sees the flag or the device sees the record.
		 */
		smp_mb__after_atomic();
		skua_ib_qp_kick(qp);
	}
}

static bool skua_ib_cqe_to_wc(struct skua_ib_cq *cq, const struct skua_cqe *cqe,
			      struct ib_wc *wc)
{
	u16 index = skua_cqe_wqe_index(cqe);
	u32 qpn = le32_to_cpu(cqe->qpn);
	struct skua_ib_qp *qp;
	bool ok = false;

	if (qpn == SKUA_IB_NO_QPN)
		return false;
	memset(wc, 0, sizeof(*wc));
	qp = xa_load(&cq->qps, qpn);
	if (!qp)
		goto bad;
	switch (skua_cqe_opcode(cqe)) {
	case SKUA_CQE_REQ:
		ok = qp->ibqp.send_cq == &cq->ibcq && skua_ib_take_send(&qp->sq, index, wc);
		break;
	case SKUA_CQE_RECV:
		ok = qp->ibqp.recv_cq == &cq->ibcq && skua_ib_take_any_recv(qp, cqe, wc);
		break;
	case SKUA_CQE_RECV_WRITE_IMM:
		ok = qp->ibqp.recv_cq == &cq->ibcq && skua_ib_take_any_recv(qp, cqe, wc);
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
		break;
	}
	if (!ok)
		goto bad;
	skua_ib_wc_fill(wc, cqe, qp);
	return true;

bad:
	ibdev_err_ratelimited(cq->ibcq.device,
			      "CQ %u: invalid CQE: QP %#x, WQE index %u is not outstanding\n",
			      cq->core.obj.num, qpn, index);
	return false;
}

/* Complete the next outstanding WQE of a dead device in error, as a flush would. */
static bool skua_ib_flush_one(struct skua_ib_cq *cq, struct skua_ib_qp *qp, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	if ((qp->ibqp.send_cq == &cq->ibcq && skua_ib_take_send(&qp->sq, qp->sq.ci, wc)) ||
	    (qp->ibqp.recv_cq == &cq->ibcq && skua_ib_take_recv(&qp->rq, qp->rq.ci, wc))) {
		wc->qp = &qp->ibqp;
		wc->status = IB_WC_WR_FLUSH_ERR;
		return true;
	}
	return false;
}

static int skua_ib_flush(struct skua_ib_cq *cq, int num, struct ib_wc *wc)
{
	struct skua_ib_qp *qp;
	unsigned long qpn;
	int n = 0;

	xa_for_each(&cq->qps, qpn, qp) {
		while (n < num && skua_ib_flush_one(cq, qp, &wc[n]))
			n++;
	}
	return n;
}

/*
 * Complete what the ring has. The device gets the room once, after the queues have theirs. So
 * consumers may post for completions that they were given, as all in the kernel do, but not
 * until a queue is full while another CPU polls.
 */
static int skua_ib_take_cqes(struct skua_ib_cq *cq, int num, struct ib_wc *wc)
{
	u32 start = cq->ci, mask = BIT(cq->log_size) - 1;
	struct skua_cqe cqe;
	int n = 0;

	while (n < num && skua_cqe_is_new(&cq->ring[cq->ci & mask], cq->ci, cq->log_size)) {
		/* Read the entry after its last word, which has the phase bit. */
		dma_rmb();
		cqe = cq->ring[cq->ci & mask];
		cq->ci++;
		n += skua_ib_cqe_to_wc(cq, &cqe, &wc[n]);
	}
	if (cq->ci != start) {
		/* Order the reads of the entries before the store that frees them. */
		dma_mb();
		WRITE_ONCE(cq->dbr->ci, cpu_to_le32(cq->ci));
	}
	return n;
}

/*
 * A dead device completes nothing more: flush the rest after its last completions, of which some
 * may have come since the ring was found empty.
 */
VISIBLE_IF_KUNIT int skua_ib_take_last(struct skua_ib_cq *cq, int num, struct ib_wc *wc)
{
	int n;

	KUNIT_STATIC_STUB_REDIRECT(skua_ib_take_last, cq, num, wc);
	/* That it is dead before the ring. */
	dma_rmb();
	n = skua_ib_take_cqes(cq, num, wc);
	if (n < num)
		n += skua_ib_flush(cq, num - n, &wc[n]);
	return n;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_take_last);

/**
 * skua_ib_poll_cq() - poll completions
 * @ibcq: a kernel CQ
 * @num: size of @wc
 * @wc: filled in
 *
 * Return: the number of completions.
 */
int skua_ib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct skua_ib_cq *cq = to_skua_cq(ibcq);
	int n;

	guard(spinlock_irqsave)(&cq->lock);
	n = skua_ib_take_cqes(cq, num, wc);
	if (n < num && unlikely(skua_ib_dead(to_skua_dev(ibcq->device))))
		n += skua_ib_take_last(cq, num - n, &wc[n]);
	return n;
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_poll_cq);

/* Return: true if WQEs of a dead device remain to be flushed. */
static bool skua_ib_flush_pending(struct skua_ib_cq *cq)
{
	struct skua_ib_qp *qp;
	unsigned long qpn;

	xa_for_each(&cq->qps, qpn, qp) {
		if (qp->ibqp.send_cq == &cq->ibcq && READ_ONCE(qp->sq.pi) != qp->sq.ci)
			return true;
		if (qp->ibqp.recv_cq == &cq->ibcq && READ_ONCE(qp->rq.pi) != qp->rq.ci)
			return true;
	}
	return false;
}

/**
 * skua_ib_req_notify_cq() - request a completion event
 * @ibcq: a kernel CQ
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP, and IB_CQ_REPORT_MISSED_EVENTS
 *
 * The device sends an event at once if there is a completion past the consumer index for
 * which it has sent no event yet. An event for such a completion may have come while the
 * consumer was still polling, and then had no effect. Therefore, with
 * IB_CQ_REPORT_MISSED_EVENTS, any completion in the ring is reported.
 *
 * Return: 0, or 1 if events may have been missed and the caller must poll again.
 */
int skua_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct skua_ib_dev *dev = to_skua_dev(ibcq->device);
	struct skua_ib_cq *cq = to_skua_cq(ibcq);
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;

	guard(spinlock_irqsave)(&cq->lock);
	if (unlikely(cq->closed))
		return 0;
	/* 0 means never armed. The device uses only the low two bits. */
	if (unlikely(!++cq->arm_serial))
		cq->arm_serial = 4;
	skua_ring_db(skua_kernel_uar(dev->core), SKUA_UAR_CQ_ARM, cq->ci,
		     skua_db_cq_arm(cq->core.obj.num, cq->arm_serial, solicited));
	if (flags & IB_CQ_REPORT_MISSED_EVENTS) {
		/*
		 * Order the caller's store that marks it as not running (in irq_poll, for
		 * example) before the read of the ring: a completion that is not seen here
		 * has an event that finds the caller not running.
		 */
		smp_mb();
		if (skua_cqe_is_new(&cq->ring[cq->ci & (BIT(cq->log_size) - 1)], cq->ci,
				    cq->log_size))
			return 1;
	}
	if (likely(!skua_ib_dead(dev)) || !skua_ib_flush_pending(cq))
		return 0;
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		return 1;
	schedule_work(&cq->wake);
	return 0;
}

/*
 * Invalidate the QP's CQEs, so that polling skips them, and free the SRQ WQEs to which
 * they refer.
 */
static void skua_ib_cq_purge(struct skua_ib_cq *cq, struct skua_ib_qp *qp)
{
	u32 qpn = qp->core.obj.num;
	u64 wr_id;
	u32 i, mask = BIT(cq->log_size) - 1;

	lockdep_assert_held(&cq->lock);
	for (i = cq->ci; i - cq->ci <= mask; i++) {
		struct skua_cqe *cqe = &cq->ring[i & mask];

		if (!skua_cqe_is_new(cqe, i, cq->log_size))
			break;
		/* Read the entry after its last word, which has the phase bit. */
		dma_rmb();
		if (le32_to_cpu(cqe->qpn) != qpn)
			continue;
		if (qp->ibqp.srq && skua_cqe_flags(cqe) & SKUA_CQE_F_SRQ)
			skua_ib_srq_take(to_skua_srq(qp->ibqp.srq), skua_cqe_wqe_index(cqe),
					 &wr_id);
		cqe->qpn = cpu_to_le32(SKUA_IB_NO_QPN);
	}
}

static void skua_ib_cq_forget_one(struct skua_ib_cq *cq, struct skua_ib_qp *qp, bool remove)
{
	guard(spinlock_irqsave)(&cq->lock);
	skua_ib_cq_purge(cq, qp);
	if (remove)
		xa_erase(&cq->qps, qp->core.obj.num);
}

/**
 * skua_ib_cq_forget() - drop a kernel QP's completions from its CQs
 * @qp: the QP, in RESET or destroyed in the device
 * @remove: also remove the QP from its CQs, because it is being destroyed
 *
 * Needed for RESET, too: the QP keeps its number, and CQEs from before the RESET must not
 * be taken for completions of WQEs that are posted after it.
 */
void skua_ib_cq_forget(struct skua_ib_qp *qp, bool remove)
{
	struct ib_cq *send = qp->ibqp.send_cq, *recv = qp->ibqp.recv_cq;

	if (send)
		skua_ib_cq_forget_one(to_skua_cq(send), qp, remove);
	if (recv && recv != send)
		skua_ib_cq_forget_one(to_skua_cq(recv), qp, remove);
}
EXPORT_SYMBOL_IF_KUNIT(skua_ib_cq_forget);
