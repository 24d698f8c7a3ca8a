// SPDX-License-Identifier: GPL-2.0
/*
 * RAW_ETH queues, receiving: write a frame to a receive WQE, and complete that. The VLAN tag
 * is moved to the completion, unless the queue has SKUA_QP_F_KEEP_VLAN.
 */
#include <string.h>

#include "cmd_fault.h"
#include "port.h"

/**
 * struct source - the bytes to be written: a frame without its tag
 * @head: bytes in front of the tag
 * @data: the frame
 * @skip: bytes of the tag
 */
struct source {
	const uint8_t *data;
	uint32_t head;
	uint32_t skip;
};

static struct mr_who rx_who(const struct qp *qp)
{
	return (struct mr_who){
		.pd = le32_to_cpu(qp->sqc->cfg.pd),
		.qpn = qp->qpn,
		.reserved_lkey = le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_RESERVED_LKEY,
		.access = SKUA_ACCESS_LOCAL_WRITE,
	};
}

/* Bytes [@off, @off + @len) of the source to @va. They may lie on both sides of the tag. */
static enum skua_vendor put(struct skua_dev *dev, const struct mr_who *who, uint32_t lkey,
			    uint64_t va, const struct source *src, uint32_t off, uint32_t len)
{
	enum skua_vendor err = SKUA_VENDOR_NONE;
	uint32_t before = 0;

	if (off < src->head) {
		before = len < src->head - off ? len : src->head - off;
		err = mr_write(dev, who, lkey, va, src->data + off, before);
	}
	if (err == SKUA_VENDOR_NONE && before < len)
		err = mr_write(dev, who, lkey, va + before, src->data + src->skip + off + before,
			       len - before);
	return err;
}

enum skua_vendor eth_scatter(struct skua_dev *dev, const struct qp *qp, const struct rwqe *rwqe,
			     const struct frame *f, uint32_t from, uint32_t len, bool strip)
{
	struct mr_who who = rx_who(qp);
	struct source src = {
		.data = f->data,
		.head = strip ? 2 * ETH_ADDR_LEN : from + len,
		.skip = strip ? ETH_VLAN_LEN : 0,
	};
	uint32_t off = 0;

	for (uint32_t i = 0; i < rwqe->nsge && off < len; i++) {
		uint32_t n = rwqe->sge[i].len < len - off ? rwqe->sge[i].len : len - off;
		enum skua_vendor err = put(dev, &who, rwqe->sge[i].lkey, rwqe->sge[i].addr, &src,
					   from + off, n);

		if (err != SKUA_VENDOR_NONE)
			return err;
		off += n;
	}
	return SKUA_VENDOR_NONE;
}

void eth_rx_complete(struct skua_dev *dev, struct qp *qp, uint32_t index,
		     const struct eth_done *done)
{
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(qp->qpn),
		.byte_len = cpu_to_le32(done->len),
		.what = le32_encode_bits(index, SKUA_CQE_WQE_INDEX) |
			le32_encode_bits(SKUA_CQE_RECV_ETH, SKUA_CQE_OPCODE) |
			le32_encode_bits(done->status, SKUA_CQE_STATUS),
		.own = le32_encode_bits(done->vendor, SKUA_CQE_VENDOR) | cpu_to_le32(done->flags),
	};

	if (done->status == SKUA_CQE_OK)
		cqe.eth = done->info;
	else if (done->status != SKUA_CQE_WR_FLUSH_ERR)
		qp_count(dev, qp->sqc, SKUA_CNT_RESP_CQE_ERROR, 1);
	if (cq_post(dev, le32_to_cpu(qp->rqc->cfg.cqn), &cqe, false) &&
	    qp_state(qp) != SKUA_QP_ERR)
		qp_error(dev, qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
	else if (done->status != SKUA_CQE_OK)
		qp_error(dev, qp, SKUA_QP_ERR, SKUA_QP_EV_COUNT);
}

static void fail(struct skua_dev *dev, struct qp *qp, uint32_t index, enum skua_cqe_status status,
		 enum skua_vendor vendor)
{
	struct eth_done done = { .status = status, .vendor = vendor };

	eth_rx_complete(dev, qp, index, &done);
}

/* Write a frame to a WQE; if it is merged with those before it, only its payload. */
static enum skua_vendor write_frame(struct skua_dev *dev, const struct qp *qp,
				    const struct rwqe *rwqe, const struct frame *f, bool strip,
				    bool follows, enum cmd_fault_kind fault)
{
	uint32_t tag = strip ? ETH_VLAN_LEN : 0;
	uint32_t from = follows ? dev->port->gro.hdr - tag : 0;

	if (fault == CMD_FAULT_DMA) {
		dev->cnt[SKUA_CNT_DMA_ERR]++;
		return SKUA_VENDOR_KEY_DMA;
	}
	return eth_scatter(dev, qp, rwqe, f, from, f->len - tag - from, strip);
}

/* A frame that is not merged with another one. */
static void complete_one(struct skua_dev *dev, struct qp *qp, const struct rwqe *rwqe,
			 struct eth_done *done, enum cmd_fault_kind fault)
{
	if (fault == CMD_FAULT_LONG)
		done->len = rwqe->len + 1;
	if (fault != CMD_FAULT_LOSE)
		eth_rx_complete(dev, qp, rwqe->index, done);
	if (fault == CMD_FAULT_TWICE)
		eth_rx_complete(dev, qp, rwqe->index, done);
}

/* Receive a frame. @follows: it is merged with those before it. */
static enum eth_rx receive(struct skua_dev *dev, struct qp *qp, const struct frame *f,
			   const struct skua_cqe_eth *info, bool follows)
{
	bool strip = f->tagged &&
		     !(le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_KEEP_VLAN);
	uint32_t len = f->len - (strip ? ETH_VLAN_LEN : 0);
	uint32_t pos = le32_to_cpu(qp->rqc->ci);
	struct eth_done done = { .len = len, .info = *info, .flags = strip ? SKUA_CQE_F_VLAN : 0 };
	enum cmd_fault_kind fault;
	struct rwqe rwqe;
	enum skua_vendor err;

	if (!rq_avail(dev, qp))
		return ETH_RX_NO_WQE;
	err = rq_fetch(dev, qp, pos, &rwqe);
	/* Room for a whole frame is needed even if it is merged and only its payload is written. */
	if (err == SKUA_VENDOR_NONE && rwqe.len < len)
		return ETH_RX_LONG;
	qp->rqc->ci = cpu_to_le32(pos + 1);
	ctx_dirty(dev, qp->rqc);
	if (err != SKUA_VENDOR_NONE) {
		eth_rx_done(dev);
		fail(dev, qp, pos, SKUA_CQE_LOC_QP_OP_ERR, err);
		return ETH_RX_NO_WQE;
	}
	fault = cmd_fault_next(dev, ETH_FAULT_RECV).kind;
	if (fault != CMD_FAULT_NONE) {
		eth_rx_done(dev);
		follows = false;
	}
	err = write_frame(dev, qp, &rwqe, f, strip, follows, fault);
	if (err != SKUA_VENDOR_NONE) {
		eth_rx_done(dev);
		fail(dev, qp, rwqe.index, SKUA_CQE_LOC_PROT_ERR, err);
		return ETH_RX_NO_WQE;
	}
	set_count(dev, le32_to_cpu(qp->sqc->counter), SKUA_CNT_RDMA_RX_PKTS, 1);
	set_count(dev, le32_to_cpu(qp->sqc->counter), SKUA_CNT_RDMA_RX_BYTES, f->len);
	if (follows)
		gro_add(dev, f);
	else if (fault != CMD_FAULT_NONE || !gro_begin(&dev->port->gro, qp, f, info, &rwqe, strip))
		complete_one(dev, qp, &rwqe, &done, fault);
	return ETH_RX_TAKEN;
}

enum eth_rx eth_rx(struct skua_dev *dev, uint32_t qpn, const struct frame *f,
		   const struct skua_cqe_eth *info)
{
	bool follows = gro_follows(&dev->port->gro, qpn, f, info);
	enum eth_rx result = ETH_RX_NO_QUEUE;
	enum skua_qp_state state;
	struct qp qp;

	if (!follows)
		eth_rx_done(dev);
	if (qp_get(dev, qpn, &qp))
		return ETH_RX_NO_QUEUE;
	state = qp_state(&qp);
	if (qp_type(&qp) == SKUA_QP_RAW_ETH && (state == SKUA_QP_RTR || state == SKUA_QP_RTS))
		result = receive(dev, &qp, f, info, follows);
	qp_put(dev, &qp);
	return result;
}
