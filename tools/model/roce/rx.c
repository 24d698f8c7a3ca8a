// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of a received packet before it is given to its QP. A packet that fails them is dropped and
 * counted, and not answered.
 */
#include <string.h>

#include "cc.h"
#include "engine.h"
#include "sr.h"

/* The P_Key table has one entry, the default P_Key of a full member. */
static bool pkey_ok(uint16_t pkey)
{
	return ((pkey ^ IB_PKEY_DEFAULT) & ~IB_PKEY_FULL & 0xffff) == 0;
}

/* A connected QP accepts packets of its peer only, with the addresses of its path. */
static bool peer_ok(struct skua_dev *dev, const struct qp *qp, const struct skua_pkt *pkt)
{
	const struct skua_av *av = &qp->sqc->attr.av;
	const struct skua_gid *gid = port_gid(dev, le16_to_cpu(av->sgid_index));
	uint16_t vlan = pkt->vlan && (pkt->tci & 0xfff) ? pkt->tci & 0xfff : SKUA_GID_NO_VLAN;

	return gid && !memcmp(av->dgid, pkt->sgid, sizeof(pkt->sgid)) &&
	       !memcmp(gid->gid, pkt->dgid, sizeof(pkt->dgid)) && le16_to_cpu(gid->vlan) == vlan;
}

static bool state_ok(enum skua_qp_state state, const struct skua_pkt *pkt)
{
	switch (state) {
	case SKUA_QP_RTR:
	case SKUA_QP_SQE:
		return pkt->op->flags & IB_F_REQUEST;
	case SKUA_QP_RTS:
	case SKUA_QP_SQD:
		return true;
	default:
		return false;
	}
}

/* Packets of selective repeat are only for QPs that have it. */
static bool ext_ok(const struct qp *qp, const struct skua_pkt *pkt)
{
	bool bitmap = pkt->op->flags & IB_F_AETH && pkt->opcode >= IB_OPCODE_VENDOR_MIN;

	return (!pkt->seth && !bitmap) || sr_set_up(qp->sqc);
}

/* CNPs are for QPs that send requests or READ responses. */
static enum skua_counter check_cnp(struct skua_dev *dev, const struct qp *qp,
				   const struct skua_pkt *pkt)
{
	enum skua_qp_state state = qp_state(qp);

	if (qp_is_datagram(qp) || qp_type(qp) == SKUA_QP_RAW_ETH)
		return SKUA_CNT_RP_CNP_IGNORED;
	if (!pkey_ok(pkt->pkey))
		return SKUA_CNT_RX_BAD_PKEY;
	if (!peer_ok(dev, qp, pkt))
		return SKUA_CNT_RX_BAD_PEER;
	return state == SKUA_QP_RTS || state == SKUA_QP_SQD ? SKUA_CNT_COUNT :
							      SKUA_CNT_RP_CNP_IGNORED;
}

/* SKUA_CNT_COUNT: the QP takes the packet. Otherwise the counter of the reason to drop it. */
static enum skua_counter check(struct skua_dev *dev, const struct qp *qp,
			       const struct skua_pkt *pkt)
{
	if (pkt->opcode == IB_OPCODE_CNP)
		return check_cnp(dev, qp, pkt);
	if (ib_opcode_transport(pkt->opcode) != transport_of(qp_type(qp)))
		return SKUA_CNT_RX_MALFORMED;
	if (qp_type(qp) == (pkt->op->flags & IB_F_REQUEST ? SKUA_QP_XRC_INI : SKUA_QP_XRC_TGT))
		return SKUA_CNT_RX_MALFORMED;
	if (!pkey_ok(pkt->pkey))
		return SKUA_CNT_RX_BAD_PKEY;
	if (!state_ok(qp_state(qp), pkt))
		return SKUA_CNT_RX_BAD_STATE;
	/* Only now: a QP that takes no packets has no extension, whatever its peer still sends. */
	if (!ext_ok(qp, pkt))
		return SKUA_CNT_RX_MALFORMED;
	if (qp_is_datagram(qp))
		return ud_qkey_ok(qp, pkt) ? SKUA_CNT_COUNT : SKUA_CNT_RX_BAD_QKEY;
	return peer_ok(dev, qp, pkt) ? SKUA_CNT_COUNT : SKUA_CNT_RX_BAD_PEER;
}

static void run(struct skua_dev *dev, struct qp *qp, const struct skua_pkt *pkt)
{
	struct turn t;

	turn_begin(&t, dev, qp);
	if (pkt->opcode == IB_OPCODE_CNP) {
		cc_rx_cnp(&t);
		return;
	}
	if ((pkt->tclass & IP_ECN_MASK) == IP_ECN_CE)
		cc_rx_ce(&t, pkt);
	if (pkt->op->flags & IB_F_REQUEST && !turn_need_rq(&t))
		return;
	if (pkt->resv7)
		sr_hear(&t, pkt);
	if (!(pkt->op->flags & IB_F_REQUEST)) {
		comp_rx(&t, pkt);
		turn_end_req(&t);
		return;
	}
	if (t.transport == IB_TRANSPORT_UD)
		ud_rx(&t, pkt);
	else if (t.transport == IB_TRANSPORT_UC)
		uc_rx(&t, pkt);
	else
		resp_rx(&t, pkt);
	turn_end_resp(&t);
}

/* The device has counted it already. */
static void count_set(struct skua_dev *dev, const struct qp *qp, const struct skua_pkt *pkt,
		      size_t len)
{
	uint32_t set;

	if (!(le32_to_cpu(qp->sqc->valid) & SKUA_SQC_COUNTED))
		return;
	set = le32_to_cpu(qp->sqc->counter);
	set_count(dev, set, SKUA_CNT_RDMA_RX_PKTS, 1);
	set_count(dev, set, SKUA_CNT_RDMA_RX_BYTES, len);
	if ((pkt->tclass & IP_ECN_MASK) == IP_ECN_CE)
		set_count(dev, set, SKUA_CNT_NP_ECN_MARKED, 1);
}

static void deliver(struct skua_dev *dev, const struct skua_pkt *pkt, size_t len, uint32_t qpn)
{
	enum skua_counter drop;
	struct qp qp;

	if (qp_get_sq(dev, qpn, &qp)) {
		dev->cnt[SKUA_CNT_RX_NO_QP]++;
		return;
	}
	drop = check(dev, &qp, pkt);
	if (drop != SKUA_CNT_COUNT) {
		dev->cnt[drop]++;
	} else {
		count_set(dev, &qp, pkt, len);
		run(dev, &qp, pkt);
	}
	qp_put(dev, &qp);
}

/* A train for the QP of its first packet. */
static bool deliver_train(struct skua_dev *dev, struct qp *qp, const struct skua_pkt *pkt,
			  const struct skua_train *train)
{
	struct turn t;
	bool taken;

	if (qp_type(qp) != SKUA_QP_RC || check(dev, qp, pkt) != SKUA_CNT_COUNT)
		return false;
	turn_begin(&t, dev, qp);
	if (!turn_need_rq(&t))
		return false;
	if (pkt->resv7)
		sr_hear(&t, pkt);
	taken = resp_rx_train(&t, pkt, train);
	if (taken)
		turn_end_resp(&t);
	return taken;
}

/* Was it sent by this QP, which does not want its own packets? */
static bool own_echo(struct skua_dev *dev, const struct skua_pkt *pkt, uint32_t qpn)
{
	bool blocked;
	struct qp qp;

	if (be24_get(pkt->deth->sqpn) != qpn || qp_get_sq(dev, qpn, &qp))
		return false;
	blocked = le32_to_cpu(qp.sqc->cfg.flags) & SKUA_QP_F_NO_LOOPBACK;
	qp_put(dev, &qp);
	return blocked;
}

/* --- groups: a copy for each member, some members at a time --- */

/* Maximum number of members that get a datagram in one turn. */
#define GROUP_TURN	64

/* The next members after *@pos. False: there are no more. */
static bool deliver_some(struct skua_dev *dev, const struct skua_pkt *pkt, size_t len, bool own,
			 uint32_t *pos)
{
	uint32_t last, qpn;

	for (unsigned int n = 0; n < GROUP_TURN; n++) {
		if (dev->state != DEV_OPERATIONAL || !port_mcg_next(dev, pkt->dgid, pos, &qpn))
			return false;
		if (!own || !own_echo(dev, pkt, qpn))
			deliver(dev, pkt, len, qpn);
	}
	last = *pos;
	return dev->state == DEV_OPERATIONAL && port_mcg_next(dev, pkt->dgid, &last, &qpn);
}

bool roce_groups_full(const struct skua_dev *dev)
{
	return dev->engine->group_tail - dev->engine->group_head == ENGINE_GROUPS;
}

/* Frames from the wire have a limited share, so that there is room for the device's own. */
static bool group_room(const struct skua_dev *dev, bool own)
{
	const struct engine *e = dev->engine;
	unsigned int wire = 0;

	for (uint32_t n = e->group_head; n != e->group_tail; n++)
		wire += !e->group[n % ENGINE_GROUPS].own;
	return !roce_groups_full(dev) && (own || wire < ENGINE_GROUPS - ENGINE_GROUPS_OWN);
}

static bool group_waits(const struct engine *e, const uint8_t dgid[16])
{
	for (uint32_t n = e->group_head; n != e->group_tail; n++) {
		if (!memcmp(e->group[n % ENGINE_GROUPS].dgid, dgid, 16))
			return true;
	}
	return false;
}

/* Keep a datagram for its other members. Without room it is dropped. */
static void group_put(struct skua_dev *dev, const struct roce_in *in, uint32_t pos)
{
	struct engine *e = dev->engine;
	struct group_rx *g = &e->group[e->group_tail % ENGINE_GROUPS];

	if (!group_room(dev, in->own) || in->len > sizeof(g->frame)) {
		dev->cnt[SKUA_CNT_OUT_OF_BUFFER]++;
		return;
	}
	g->pos = pos;
	g->own = in->own;
	memcpy(g->dgid, in->pkt.dgid, sizeof(g->dgid));
	g->len = (uint32_t)in->len;
	memcpy(g->frame, in->frame, in->len);
	e->group_tail++;
}

static void deliver_group(struct skua_dev *dev, const struct roce_in *in)
{
	const struct skua_pkt *pkt = &in->pkt;
	uint32_t pos = 0;

	if (!pkt->deth) {
		dev->cnt[SKUA_CNT_RX_MALFORMED]++;
		return;
	}
	if (pkt->dqpn != SKUA_QPN_MULTICAST) {
		dev->cnt[SKUA_CNT_RX_NO_QP]++;
		return;
	}
	/* Datagrams to one group keep their order; different groups do not wait for each other. */
	if (group_waits(dev->engine, pkt->dgid) || deliver_some(dev, pkt, in->len, in->own, &pos))
		group_put(dev, in, pos);
}

/* The ICRC was checked when it arrived. */
static bool parse_again(const struct group_rx *g, struct skua_pkt *pkt)
{
	return !skua_pkt_parse_ip(g->frame, g->len, pkt) && !skua_pkt_parse_ib_pending(pkt);
}

bool roce_run(struct skua_dev *dev)
{
	struct engine *e = dev->engine;
	struct group_rx *g = &e->group[e->group_head % ENGINE_GROUPS];
	struct skua_pkt pkt;

	if (e->group_head == e->group_tail)
		return false;
	if (!parse_again(g, &pkt) || !deliver_some(dev, &pkt, g->len, g->own, &g->pos)) {
		/* A reset in between has emptied the ring. */
		if (e->group_head != e->group_tail)
			e->group_head++;
	}
	return e->group_head != e->group_tail;
}

/* The packet's BTH, if the frame looks like a RoCE packet, of which nothing is checked, or NULL. */
static const struct ib_bth *bth_at_a_glance(const uint8_t *frame, size_t len)
{
	size_t at = ETH_HDR_LEN;
	uint16_t type;

	if (len < ETH_HDR_LEN + ETH_VLAN_LEN)
		return NULL;
	type = be16_get(((const struct eth_hdr *)frame)->type);
	if (type == ETH_TYPE_VLAN) {
		at += ETH_VLAN_LEN;
		type = be16_get(frame + at - 2);
	}
	if (type == ETH_TYPE_IPV4)
		at += sizeof(struct ipv4_hdr);
	else if (type == ETH_TYPE_IPV6)
		at += sizeof(struct ipv6_hdr);
	else
		return NULL;
	if (len < at + sizeof(struct udp_hdr) + sizeof(struct ib_bth) ||
	    be16_get(((const struct udp_hdr *)(frame + at))->dport) != ROCE_UDP_PORT)
		return NULL;
	return (const struct ib_bth *)(frame + at + sizeof(struct udp_hdr));
}

void roce_rx_soon(const struct skua_dev *dev, const void *frame, size_t len)
{
	const struct ib_bth *bth = bth_at_a_glance(frame, len);
	uint32_t index;

	if (!bth)
		return;
	index = qp_index(be24_get(bth->dqpn));
	ctx_prefetch(dev, SKUA_ICM_SQC, index);
	if (bth->opcode != IB_OPCODE(RC, ACK))
		ctx_prefetch(dev, SKUA_ICM_RQC, index);
}

void roce_rx(struct skua_dev *dev, struct roce_in *in)
{
	enum skua_pkt_status status = in->status;
	struct skua_pkt *pkt = &in->pkt;

	if (!status)
		status = in->icrc_pending ? skua_pkt_parse_ib_pending(pkt) : skua_pkt_parse_ib(pkt);
	if (status) {
		dev->cnt[status == SKUA_PKT_ICRC ? SKUA_CNT_RX_ICRC : SKUA_CNT_RX_MALFORMED]++;
		return;
	}
	dev->cnt[SKUA_CNT_RDMA_RX_PKTS]++;
	dev->cnt[SKUA_CNT_RDMA_RX_BYTES] += in->len;
	if ((pkt->tclass & IP_ECN_MASK) == IP_ECN_CE)
		dev->cnt[SKUA_CNT_NP_ECN_MARKED]++;
	if (ib_gid_is_multicast(pkt->dgid))
		deliver_group(dev, in);
	else
		deliver(dev, pkt, in->len, pkt->dqpn);
}

bool roce_rx_train(struct skua_dev *dev, struct roce_in *in, const struct skua_train *train)
{
	struct skua_pkt *pkt = &in->pkt;
	size_t bytes;
	bool taken;
	struct qp qp;

	if (in->status || skua_pkt_parse_ib_pending(pkt) || ib_gid_is_multicast(pkt->dgid) ||
	    (pkt->tclass & IP_ECN_MASK) == IP_ECN_CE ||
	    !(pkt->op->flags & (IB_F_SEND | IB_F_WRITE)) || qp_get(dev, pkt->dqpn, &qp))
		return false;
	taken = deliver_train(dev, &qp, pkt, train);
	if (taken) {
		bytes = skua_train_bytes(in->frame, in->len, train);
		qp_count(dev, qp.sqc, SKUA_CNT_RDMA_RX_PKTS, train->packets);
		qp_count(dev, qp.sqc, SKUA_CNT_RDMA_RX_BYTES, bytes);
	}
	qp_put(dev, &qp);
	return taken;
}
