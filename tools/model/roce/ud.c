// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: UD QPs and GSI. A message is one packet, its path is in the work request, and it is
 * complete when it was sent.
 */
#include <string.h>

#include "engine.h"

/* QP 1 has the Q_Key that the IBTA defines, whatever software has set. */
static uint32_t own_qkey(const struct qp *qp)
{
	return qp_type(qp) == SKUA_QP_GSI ? SKUA_QKEY_GSI : le32_to_cpu(qp->sqc->attr.qkey);
}

/* --- sending --- */

enum skua_vendor ud_check(const struct turn *t, const struct wqe *w)
{
	if (w->dest_qpn & ~IB_QPN_MASK || !qp_av_ok(t->dev, &w->av, true) ||
	    (ib_gid_is_multicast(w->av.dgid) && w->dest_qpn != SKUA_QPN_MULTICAST))
		return SKUA_VENDOR_WQE_AV;
	return w->len > t->mtu ? SKUA_VENDOR_SGE_LEN : SKUA_VENDOR_NONE;
}

bool ud_has_turn(struct turn *t, const struct wqe *w)
{
	return sched_turn_prio(t->dev, t->qp->qpn, le32_get_bits(w->av.flow, SKUA_AV_PCP));
}

enum skua_vendor ud_send(struct turn *t, const struct wqe *w, bool solicited)
{
	struct engine *e = t->dev->engine;
	struct skua_pkt_bth bth = {
		.opcode = w->op == SKUA_WQE_SEND_IMM ? IB_OPCODE(UD, SEND_ONLY_IMM) :
						       IB_OPCODE(UD, SEND_ONLY),
		.pkey = IB_PKEY_DEFAULT,
		.dqpn = w->dest_qpn,
		.psn = le32_to_cpu(t->sqc->next_psn),
		.se = solicited,
		.migreq = true,
	};
	/* The top bit selects the QP's own Q_Key: such keys are not for users. */
	uint32_t qkey = w->qkey >> 31 ? own_qkey(t->qp) : w->qkey;
	uint32_t len = (uint32_t)w->len;
	__le32 imm = cpu_to_le32(w->imm);
	struct sge_pos pos = { 0 };
	struct skua_pkt_addr addr;
	struct skua_pkt_build b;
	enum skua_vendor err;

	if (!tx_path(t, &w->av, w->dest_qpn, &addr) ||
	    skua_pkt_build_start(&b, tx_frame(t), sizeof(e->frame), &addr, &bth))
		return SKUA_VENDOR_WQE_AV;
	ib_deth_put(b.deth, qkey, t->qp->qpn);
	if (b.immdt)
		memcpy(b.immdt->data, &imm, sizeof(imm));
	err = tx_payload(t, w, &pos, 0, b.payload, len);
	if (err)
		return err;
	tx_finish(t, &b, len);
	sched_next_unknown(t->dev, t->qp->qpn);
	req_note_sent(t, 1, len);
	t->budget -= len + SKUA_PKT_OVERHEAD;
	return SKUA_VENDOR_NONE;
}

/* --- receiving --- */

bool ud_qkey_ok(const struct qp *qp, const struct skua_pkt *pkt)
{
	return be32_get(pkt->deth->qkey) == own_qkey(qp);
}

/* Write the received IP header to the area of a GRH, at its end. */
static void fill_grh(const struct skua_pkt *pkt, uint8_t grh[SKUA_GRH_SIZE])
{
	size_t len = pkt->ipv6 ? sizeof(struct ipv6_hdr) : sizeof(struct ipv4_hdr);

	memset(grh, 0, SKUA_GRH_SIZE - len);
	memcpy(grh + SKUA_GRH_SIZE - len, pkt->l3, len);
}

static void describe(const struct skua_pkt *pkt, struct skua_cqe *cqe)
{
	cqe->ud.src_qpn = cpu_to_le32(be24_get(pkt->deth->sqpn));
	memcpy(cqe->ud.smac, pkt->smac, sizeof(cqe->ud.smac));
	cqe->ud.vlan_tci = cpu_to_le16(pkt->tci);
	cqe->ud.ipv4 = !pkt->ipv6;
	cqe->own = cpu_to_le32(SKUA_CQE_F_GRH | (pkt->vlan ? SKUA_CQE_F_VLAN : 0));
}

static enum skua_vendor scatter(struct turn *t, const struct skua_pkt *pkt, struct rlist *l)
{
	uint8_t grh[SKUA_GRH_SIZE];
	enum skua_vendor err;

	fill_grh(pkt, grh);
	err = recv_place(t, l, 0, grh, sizeof(grh));
	return err ? err : recv_place(t, l, sizeof(grh), pkt->payload, pkt->payload_len);
}

/* A local error: the QP goes to ERR. */
static void fail(struct turn *t, enum skua_cqe_status status, enum skua_vendor vendor)
{
	resp_recv_error(t, status, vendor);
	qp_error(t->dev, t->qp, SKUA_QP_ERR, SKUA_QP_EV_COUNT);
}

/*
 * A packet that is longer than the path MTU, that finds no receive WQE, or for which the WQE is too
 * short is dropped. The WQE is used for the next packet, but one of an SRQ is completed as too
 * short. A packet for which a page is missing is dropped, too.
 */
void ud_rx(struct turn *t, const struct skua_pkt *pkt)
{
	struct skua_cqe cqe = { 0 };
	enum skua_vendor err;
	struct rlist *l;

	if (pkt->payload_len > t->mtu) {
		turn_count(t, SKUA_CNT_RX_MALFORMED);
		return;
	}
	if (!resp_have_recv(t))
		return;
	err = recv_fetch(t, 0, &l);
	if (err) {
		fail(t, SKUA_CQE_LOC_QP_OP_ERR, err);
		return;
	}
	if (SKUA_GRH_SIZE + (uint64_t)pkt->payload_len > l->rwqe.len) {
		turn_count(t, SKUA_CNT_RESP_LOCAL_LEN);
		resp_drop_recv(t, SKUA_CQE_LOC_LEN_ERR, SKUA_VENDOR_MSG_LEN);
		return;
	}
	err = fault_resp(t, scatter(t, pkt, l));
	if (err == SKUA_VENDOR_MISS)
		return;
	if (err) {
		fail(t, SKUA_CQE_LOC_PROT_ERR, err);
		return;
	}
	turn_count(t, SKUA_CNT_RX_SEND);
	describe(pkt, &cqe);
	resp_recv_ok(t, pkt, &cqe, SKUA_CQE_RECV, SKUA_GRH_SIZE + pkt->payload_len);
}
