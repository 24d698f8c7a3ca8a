// SPDX-License-Identifier: GPL-2.0
/*
 * RAW_ETH queues, sending: frames are gathered, get their checksums and tag, and are sent; a
 * large TCP segment is cut first. A frame that cannot be sent (too long, or without the
 * protocol whose checksum is asked for) is counted, and its WQE completes without an error. An
 * invalid WQE, or one that fails to read its memory, takes the queue to ERR.
 */
#include <string.h>

#include "cmd_fault.h"
#include "port.h"

static void complete(struct skua_dev *dev, struct qp *qp, uint32_t cqn, uint32_t index,
		     enum skua_cqe_op op, enum skua_cqe_status status, enum skua_vendor vendor)
{
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(qp->qpn),
		.what = le32_encode_bits(index & 0xffff, SKUA_CQE_WQE_INDEX) |
			le32_encode_bits(op, SKUA_CQE_OPCODE) |
			le32_encode_bits(status, SKUA_CQE_STATUS),
		.own = le32_encode_bits(vendor, SKUA_CQE_VENDOR),
	};

	if (cq_post(dev, cqn, &cqe, false) && qp_state(qp) != SKUA_QP_ERR)
		qp_error(dev, qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
}

/* --- one frame --- */

/* There is room for a tag in front of @frame. */
static void send_frame(struct skua_dev *dev, const struct qp *qp, uint8_t *frame, size_t len,
		       const struct wqe *wqe)
{
	if (wqe->flags & SKUA_WQE_F_VLAN) {
		memmove(frame - ETH_VLAN_LEN, frame, 2 * ETH_ADDR_LEN);
		frame -= ETH_VLAN_LEN;
		len += ETH_VLAN_LEN;
		be16_put(frame + 2 * ETH_ADDR_LEN, ETH_TYPE_VLAN);
		be16_put(frame + 2 * ETH_ADDR_LEN + 2,
			 u32_get_bits(wqe->eth, SKUA_WQE_ETH_VLAN_TCI));
	}
	dev->cnt[SKUA_CNT_ETH_TX_PKTS]++;
	dev->cnt[SKUA_CNT_ETH_TX_BYTES] += len;
	sched_sent(dev, qp->qpn, len);
	set_count(dev, le32_to_cpu(qp->sqc->counter), SKUA_CNT_RDMA_TX_PKTS, 1);
	set_count(dev, le32_to_cpu(qp->sqc->counter), SKUA_CNT_RDMA_TX_BYTES, len);
	port_tx_eth(dev, frame, len,
		    !(le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_NO_LOOPBACK));
}

static bool fill_csum(const struct frame *f, uint8_t *data, uint32_t flags)
{
	if (flags & SKUA_WQE_F_L3_CSUM && !frame_l3_fill(f, data))
		return false;
	return !(flags & SKUA_WQE_F_L4_CSUM) || frame_l4_fill(f, data);
}

/* False: the frame cannot be sent with these offloads. */
static bool send_one(struct skua_dev *dev, const struct qp *qp, uint8_t *frame, size_t len,
		     const struct wqe *wqe)
{
	struct frame f;

	if (len < ETH_HDR_LEN)
		return false;
	frame_parse(&f, frame, len, false);
	if (frame_payload(&f) > dev->port->mtu || !fill_csum(&f, frame, wqe->flags))
		return false;
	send_frame(dev, qp, frame, len, wqe);
	return true;
}

/* --- a large segment --- */

/* Make the headers of the frame that has @len bytes of payload from @off on. */
static void piece_headers(uint8_t *frame, const struct frame *whole, uint32_t hdr, uint32_t off,
			  uint32_t len, uint32_t nth, bool last)
{
	struct tcp_hdr *tcp = (void *)(frame + whole->l4);
	uint32_t l4_bytes = hdr - whole->l4 + len;

	if (whole->ipv4) {
		struct ipv4_hdr *ip = (void *)(frame + whole->l3);

		be16_put(ip->tot_len, whole->l4 - whole->l3 + l4_bytes);
		be16_put(ip->id, be16_get(ip->id) + nth);
	} else {
		struct ipv6_hdr *ip = (void *)(frame + whole->l3);

		be16_put(ip->payload_len,
			 whole->l4 - whole->l3 - sizeof(*ip) + l4_bytes);
	}
	be32_put(tcp->seq, be32_get(tcp->seq) + off);
	if (!last)
		tcp->flags &= ~(TCP_FIN | TCP_PSH);
	if (nth)
		tcp->flags &= ~TCP_CWR;
}

static bool send_pieces(struct skua_dev *dev, const struct qp *qp, const uint8_t *data, size_t len,
			const struct wqe *wqe)
{
	uint8_t *frame = dev->port->tx + ETH_VLAN_LEN;
	uint32_t mss = u32_get_bits(wqe->eth, SKUA_WQE_ETH_MSS);
	struct frame whole, f;
	uint32_t hdr, nth = 0;

	if (len < ETH_HDR_LEN || !mss)
		return false;
	frame_parse(&whole, data, len, true);
	if (!whole.tcp)
		return false;
	hdr = whole.l4 + (((const struct tcp_hdr *)(data + whole.l4))->doff >> 4) * 4u;
	/* The number of frames bounds the time of one WQE. */
	if (hdr - whole.l3 + mss > dev->port->mtu ||
	    (len - hdr) > (size_t)mss * SKUA_WQE_ETH_LSO_FRAMES)
		return false;
	for (uint32_t off = 0; off < len - hdr; off += mss, nth++) {
		uint32_t n = mss < len - hdr - off ? mss : len - hdr - off;

		memcpy(frame, data, hdr);
		memcpy(frame + hdr, data + hdr + off, n);
		piece_headers(frame, &whole, hdr, off, n, nth, off + n == len - hdr);
		frame_parse(&f, frame, hdr + n, false);
		/* Each frame has headers of its own, so both checksums are always computed. */
		if (whole.ipv4)
			frame_l3_fill(&f, frame);
		frame_l4_fill(&f, frame);
		send_frame(dev, qp, frame, hdr + n, wqe);
	}
	return nth > 0;
}

/* --- WQEs --- */

static enum skua_vendor gather(struct skua_dev *dev, const struct qp *qp, const struct wqe *wqe,
			       uint8_t *buf)
{
	struct mr_who who = {
		.pd = le32_to_cpu(qp->sqc->cfg.pd),
		.qpn = qp->qpn,
		.reserved_lkey = le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_RESERVED_LKEY,
	};

	if (wqe->flags & SKUA_WQE_F_INLINE) {
		memcpy(buf, wqe->inl, wqe->inl_len);
		return SKUA_VENDOR_NONE;
	}
	for (uint32_t i = 0; i < wqe->nsge; i++) {
		enum skua_vendor err = mr_read(dev, &who, wqe->sge[i].lkey, wqe->sge[i].addr, buf,
					       wqe->sge[i].len);

		if (err != SKUA_VENDOR_NONE)
			return err;
		buf += wqe->sge[i].len;
	}
	return SKUA_VENDOR_NONE;
}

static enum skua_vendor send_wqe(struct skua_dev *dev, const struct qp *qp, const struct wqe *wqe,
				 enum cmd_fault_kind fault)
{
	struct port *p = dev->port;
	bool lso = wqe->flags & SKUA_WQE_F_LSO;
	uint8_t *buf = lso ? p->lso : p->tx + ETH_VLAN_LEN;
	/* The room for a tag in @tx does not count as room for the frame. */
	size_t room = lso ? sizeof(p->lso) : sizeof(p->tx) - ETH_VLAN_LEN;
	size_t len = wqe->flags & SKUA_WQE_F_INLINE ? wqe->inl_len : wqe->len;
	enum skua_vendor err;
	bool sent = false;

	if (wqe->op == SKUA_WQE_NOP)
		return SKUA_VENDOR_NONE;
	if (fault == CMD_FAULT_DMA) {
		dev->cnt[SKUA_CNT_DMA_ERR]++;
		return SKUA_VENDOR_KEY_DMA;
	}
	if (len <= room && port_is_up(p)) {
		err = gather(dev, qp, wqe, buf);
		if (err != SKUA_VENDOR_NONE)
			return err;
		/* The destination is known only now. When there is room, gathering begins anew. */
		if (len >= ETH_HDR_LEN && port_tx_full(dev, buf)) {
			sched_park(dev, qp->qpn, buf);
			return SKUA_VENDOR_FULL;
		}
		sent = lso ? send_pieces(dev, qp, buf, len, wqe) :
			     send_one(dev, qp, buf, len, wqe);
	}
	if (!sent)
		dev->cnt[SKUA_CNT_ETH_TX_ERR]++;
	return SKUA_VENDOR_NONE;
}

static void advance(struct skua_dev *dev, struct qp *qp, uint32_t blocks)
{
	qp->sqc->ci = cpu_to_le32(le32_to_cpu(qp->sqc->ci) + blocks);
	qp->sqc->cur = qp->sqc->ci;
	ctx_dirty(dev, qp->sqc);
}

/* Number of blocks of an invalid WQE, by its header if that is valid. */
static uint32_t bad_blocks(const struct qp *qp, const struct wqe *wqe)
{
	uint32_t left = le32_to_cpu(qp->sqc->pi) - le32_to_cpu(qp->sqc->ci);

	return wqe->blocks && wqe->blocks <= left ? wqe->blocks : 1;
}

/* False: the WQE waits for room in the wire. */
static bool run_wqe(struct skua_dev *dev, struct qp *qp, struct wqe_win *win)
{
	uint32_t index = le32_to_cpu(qp->sqc->ci);
	uint32_t cqn = le32_to_cpu(qp->sqc->cfg.cqn);
	enum skua_cqe_status status = SKUA_CQE_LOC_QP_OP_ERR;
	enum cmd_fault_kind fault;
	enum skua_vendor err;
	struct wqe wqe;

	err = wqe_fetch_win(dev, qp, win, index, &wqe);
	fault = cmd_fault_next(dev, ETH_FAULT_SEND).kind;
	if (err == SKUA_VENDOR_NONE && wqe.flags & SKUA_WQE_F_LSO && !dev_has(dev, SKUA_CAP_LSO))
		err = SKUA_VENDOR_WQE_FORMAT;
	if (err == SKUA_VENDOR_NONE) {
		err = send_wqe(dev, qp, &wqe, fault);
		if (err == SKUA_VENDOR_FULL) {
			/* The WQE will be tried again, but counts as one. */
			cmd_fault_undo(dev, ETH_FAULT_SEND);
			return false;
		}
		status = err == SKUA_VENDOR_NONE ? SKUA_CQE_OK : SKUA_CQE_LOC_PROT_ERR;
	}
	if (status != SKUA_CQE_OK) {
		/* The following flush begins behind this WQE. */
		advance(dev, qp, bad_blocks(qp, &wqe));
		qp_count(dev, qp->sqc, SKUA_CNT_REQ_CQE_ERROR, 1);
		complete(dev, qp, cqn, index, SKUA_CQE_REQ, status, err);
		qp_error(dev, qp, SKUA_QP_ERR, SKUA_QP_EV_COUNT);
		return true;
	}
	advance(dev, qp, wqe.blocks);
	if (fault == CMD_FAULT_LOSE ||
	    !(wqe.flags & SKUA_WQE_F_SIGNALED ||
	      le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_SIG_ALL))
		return true;
	complete(dev, qp, cqn, index, SKUA_CQE_REQ, SKUA_CQE_OK, SKUA_VENDOR_NONE);
	if (fault == CMD_FAULT_TWICE)
		complete(dev, qp, cqn, index, SKUA_CQE_REQ, SKUA_CQE_OK, SKUA_VENDOR_NONE);
	return true;
}

/* --- the end of a queue --- */

/*
 * The oldest send WQE completes as flushed. Behind one whose length could not be
 * told there may be a block that begins none, which its index betrays: it was not
 * posted and does not complete. Of a ring that cannot be read nothing is known.
 */
static void flush_send(struct skua_dev *dev, struct qp *qp, struct wqe_win *win)
{
	uint32_t index = le32_to_cpu(qp->sqc->ci);
	enum skua_vendor err;
	struct wqe wqe;

	err = wqe_fetch_win(dev, qp, win, index, &wqe);
	if (err == SKUA_VENDOR_WQE_DMA) {
		advance(dev, qp, le32_to_cpu(qp->sqc->pi) - index);
		return;
	}
	advance(dev, qp, bad_blocks(qp, &wqe));
	if (err == SKUA_VENDOR_WQE_INDEX)
		return;
	qp_count(dev, qp->sqc, SKUA_CNT_REQ_CQE_FLUSH, 1);
	complete(dev, qp, le32_to_cpu(qp->sqc->cfg.cqn), index, SKUA_CQE_REQ,
		 SKUA_CQE_WR_FLUSH_ERR, SKUA_VENDOR_NONE);
}

/* Complete all posted WQEs as flushed. */
static bool flush(struct skua_dev *dev, struct qp *qp, unsigned int budget)
{
	struct wqe_win win = { .blocks = 0 };

	for (; budget && qp->sqc->ci != qp->sqc->pi; budget--)
		flush_send(dev, qp, &win);
	for (; budget && rq_avail(dev, qp); budget--) {
		uint32_t pos = le32_to_cpu(qp->rqc->ci);

		qp->rqc->ci = cpu_to_le32(pos + 1);
		ctx_dirty(dev, qp->rqc);
		qp_count(dev, qp->sqc, SKUA_CNT_RESP_CQE_FLUSH, 1);
		complete(dev, qp, le32_to_cpu(qp->rqc->cfg.cqn), pos, SKUA_CQE_RECV_ETH,
			 SKUA_CQE_WR_FLUSH_ERR, SKUA_VENDOR_NONE);
	}
	return !budget;
}

/* What is left of the budget: a WQE costs the number of its frames, and at least one. */
static unsigned int spend(unsigned int budget, uint64_t frames)
{
	frames = frames ? frames : 1;
	return frames < budget ? budget - (unsigned int)frames : 0;
}

/* A queue with a rate limit: one WQE at a time, since its length is not known before. */
static bool run_paced(struct skua_dev *dev, struct qp *qp, unsigned int budget)
{
	const uint64_t *bytes = &dev->cnt[SKUA_CNT_ETH_TX_BYTES];
	const uint64_t *sent = &dev->cnt[SKUA_CNT_ETH_TX_PKTS];
	struct wqe_win win = { .blocks = 0 };
	uint64_t now = dev_now(dev);

	qp->sqc->rate_deadline = 0;
	while (qp_state(qp) == SKUA_QP_RTS && qp->sqc->ci != qp->sqc->pi) {
		uint64_t before = *bytes, frames = *sent;

		if (!budget || port_tx_busy(dev))
			return true;
		if (!pace_room(qp->sqc, now)) {
			pace_wait(dev, qp, now);
			ctx_dirty(dev, qp->sqc);
			return false;
		}
		if (!run_wqe(dev, qp, &win) || dev->state != DEV_OPERATIONAL)
			return false;
		pace_charge(qp->sqc, now, *bytes - before);
		budget = spend(budget, *sent - frames);
	}
	return qp_state(qp) == SKUA_QP_ERR;
}

bool eth_sq_run(struct skua_dev *dev, struct qp *qp, unsigned int budget)
{
	const uint64_t *sent = &dev->cnt[SKUA_CNT_ETH_TX_PKTS];
	struct wqe_win win = { .blocks = 0 };

	if (qp->sqc->rate && qp_state(qp) == SKUA_QP_RTS)
		return run_paced(dev, qp, budget);
	while (qp_state(qp) == SKUA_QP_RTS && qp->sqc->ci != qp->sqc->pi) {
		uint64_t frames = *sent;

		if (!budget || port_tx_busy(dev))
			return true;
		if (!run_wqe(dev, qp, &win) || dev->state != DEV_OPERATIONAL)
			return false;
		budget = spend(budget, *sent - frames);
	}
	return qp_state(qp) == SKUA_QP_ERR ? flush(dev, qp, budget) : false;
}
