// SPDX-License-Identifier: GPL-2.0
/*
 * RAW_ETH queues, receiving: consecutive frames of a TCP connection become one
 * (SKUA_CQE_F_GRO in <skua/hw/cqe.h> has the rules). A device merges one row of frames at a
 * time. The first frame is written to memory like any other, of the following ones only the
 * payload is written. The completion of the row is delayed until a frame arrives that does not
 * belong to it, or until the device turns to other work (eth_rx_done()). So a frame never waits
 * for another one that may not arrive.
 */
#include <string.h>

#include "port.h"

/* Two NOPs and a timestamp, as all systems send it. */
#define OPT_TIMESTAMP		0x0101080a
#define OPT_TIMESTAMP_LEN	12
#define IPV4_HDR_LEN		20
#define IPV6_HDR_LEN		40
#define TCP_HDR_LEN		20
_Static_assert(GRO_HDR_MAX == ETH_HDR_LEN + ETH_VLAN_LEN + IPV6_HDR_LEN + TCP_HDR_LEN +
	       OPT_TIMESTAMP_LEN, "the longest headers");

static const struct tcp_hdr *tcp_of(const struct frame *f)
{
	return (const void *)(f->data + f->l4);
}

/* Length of the headers of a frame that can be merged with others; 0: it cannot be merged. */
static uint32_t headers(const struct frame *f, const struct skua_cqe_eth *info)
{
	uint16_t csum = le16_to_cpu(info->csum);
	uint32_t ip = f->l4 - f->l3, hdr;

	if (!f->tcp || f->cut || f->end != f->len || mac_multicast(f->data) ||
	    !(csum & SKUA_CQE_CSUM_L4_OK))
		return 0;
	if (f->ipv4 ? ip != IPV4_HDR_LEN || !(csum & SKUA_CQE_CSUM_L3_OK) : ip != IPV6_HDR_LEN)
		return 0;
	hdr = f->l4 + TCP_HDR_LEN;
	/* The low four bits of this byte are a flag and reserved bits. */
	if (tcp_of(f)->doff == (TCP_HDR_LEN + OPT_TIMESTAMP_LEN) / 4 << 4) {
		if (be32_get(f->data + hdr) != OPT_TIMESTAMP)
			return 0;
		hdr += OPT_TIMESTAMP_LEN;
	} else if (tcp_of(f)->doff != TCP_HDR_LEN / 4 << 4) {
		return 0;
	}
	return hdr < f->end && (tcp_of(f)->flags & ~TCP_PSH) == TCP_ACK ? hdr : 0;
}

static void copy_field(uint8_t *to, const uint8_t *from, const uint8_t *base,
		       const uint8_t *field, size_t len)
{
	memcpy(to + (field - base), from + (field - base), len);
}

/* Are the headers the same, except for the fields that differ in each frame? */
static bool same_headers(const struct gro *g, const struct frame *f)
{
	const uint8_t *p = f->data;
	uint8_t head[GRO_HDR_MAX];

	memcpy(head, p, g->hdr);
	if (f->ipv4) {
		const struct ipv4_hdr *ip = (const void *)(p + f->l3);

		copy_field(head, g->head, p, ip->tot_len, sizeof(ip->tot_len));
		copy_field(head, g->head, p, ip->id, sizeof(ip->id));
		copy_field(head, g->head, p, ip->check, sizeof(ip->check));
	} else {
		const struct ipv6_hdr *ip = (const void *)(p + f->l3);

		copy_field(head, g->head, p, ip->payload_len, sizeof(ip->payload_len));
	}
	copy_field(head, g->head, p, tcp_of(f)->seq, sizeof(tcp_of(f)->seq));
	copy_field(head, g->head, p, tcp_of(f)->check, sizeof(tcp_of(f)->check));
	((struct tcp_hdr *)(head + f->l4))->flags &= ~TCP_PSH;
	return !memcmp(head, g->head, g->hdr);
}

static uint16_t ip_id(const struct frame *f)
{
	return f->ipv4 ? be16_get(((const struct ipv4_hdr *)(f->data + f->l3))->id) : 0;
}

/* Longest IP datagram that the length field of 16 bits allows. */
static uint32_t datagram_max(const struct frame *f)
{
	return f->ipv4 ? UINT16_MAX : IPV6_HDR_LEN + UINT16_MAX;
}

bool gro_follows(const struct gro *g, uint32_t qpn, const struct frame *f,
		 const struct skua_cqe_eth *info)
{
	return g->segs && g->qpn == qpn && headers(f, info) == g->hdr && f->l4 == g->f.l4 &&
	       f->ipv4 == g->f.ipv4 && f->end - g->hdr <= g->size &&
	       g->bytes + f->end - g->hdr - f->l3 <= datagram_max(f) &&
	       be32_get(tcp_of(f)->seq) == g->seq && (!f->ipv4 || ip_id(f) == g->id) &&
	       !memcmp(info, &g->info, sizeof(*info)) && same_headers(g, f);
}

/* Add a frame, and set what the next one must have. False: there can be no next one. */
static bool expect(struct gro *g, const struct frame *f)
{
	uint32_t payload = f->end - g->hdr;

	g->segs++;
	g->bytes += payload;
	g->seq = be32_get(tcp_of(f)->seq) + payload;
	g->id = ip_id(f) + 1;
	g->psh = tcp_of(f)->flags & TCP_PSH;
	return !g->psh && payload == g->size && g->segs < g->most;
}

bool gro_begin(struct gro *g, const struct qp *qp, const struct frame *f,
	       const struct skua_cqe_eth *info, const struct rwqe *rwqe, bool strip)
{
	uint32_t most = le32_get_bits(qp->rqc->cfg.flags, SKUA_RQ_GRO);
	uint32_t hdr = most > 1 ? headers(f, info) : 0;

	if (!hdr || tcp_of(f)->flags & TCP_PSH)
		return false;
	g->qpn = qp->qpn;
	g->most = most;
	g->hdr = hdr;
	g->size = f->end - hdr;
	g->bytes = hdr;
	g->strip = strip;
	g->info = *info;
	g->rwqe = *rwqe;
	memcpy(g->head, f->data, hdr);
	/* Fields that do not depend on the length are those of the merged frame. */
	g->f = *f;
	g->f.data = g->head;
	return expect(g, f);
}

void gro_add(struct skua_dev *dev, const struct frame *f)
{
	if (!expect(&dev->port->gro, f))
		eth_rx_done(dev);
}

/* Make the headers of the merged frame from those of the first frame. */
static void whole_headers(struct gro *g)
{
	uint8_t *l3 = g->head + g->f.l3;
	struct tcp_hdr *tcp = (void *)(g->head + g->f.l4);
	uint16_t sum;

	if (g->f.ipv4) {
		be16_put(((struct ipv4_hdr *)l3)->tot_len, g->bytes - g->f.l3);
		frame_l3_fill(&g->f, g->head);
	} else {
		be16_put(((struct ipv6_hdr *)l3)->payload_len,
			 g->bytes - g->f.l3 - IPV6_HDR_LEN);
	}
	tcp->flags |= g->psh ? TCP_PSH : 0;
	sum = frame_pseudo_sum(&g->f, g->bytes - g->f.l4);
	memcpy(tcp->check, &sum, sizeof(sum));
}

/* The headers cannot be written: the first WQE has that error, the others are flushed. */
static void fail(struct skua_dev *dev, struct qp *qp, const struct gro *g, enum skua_vendor err)
{
	struct eth_done done = { .status = SKUA_CQE_LOC_PROT_ERR, .vendor = err };

	eth_rx_complete(dev, qp, g->rwqe.index, &done);
	done = (struct eth_done){ .status = SKUA_CQE_WR_FLUSH_ERR };
	for (uint32_t i = 1; i < g->segs; i++) {
		qp_count(dev, qp->sqc, SKUA_CNT_RESP_CQE_FLUSH, 1);
		eth_rx_complete(dev, qp, g->rwqe.index + i, &done);
	}
}

static void finish(struct skua_dev *dev, struct qp *qp, struct gro *g)
{
	uint32_t tag = g->strip ? ETH_VLAN_LEN : 0;
	struct eth_done done = {
		.len = g->bytes - tag,
		.info = g->info,
		.flags = g->strip ? SKUA_CQE_F_VLAN : 0,
	};
	enum skua_vendor err;

	if (g->segs > 1) {
		whole_headers(g);
		g->f.len = g->hdr;
		err = eth_scatter(dev, qp, &g->rwqe, &g->f, 0, g->hdr - tag, g->strip);
		if (err != SKUA_VENDOR_NONE) {
			fail(dev, qp, g, err);
			return;
		}
		done.flags |= SKUA_CQE_F_GRO;
		done.info.gro_segs = cpu_to_le16(g->segs);
		done.info.gro_size = cpu_to_le16(g->size);
		done.info.gro_hdr = cpu_to_le16(g->hdr - tag);
		dev->cnt[SKUA_CNT_ETH_RX_GRO_PKTS]++;
		dev->cnt[SKUA_CNT_ETH_RX_GRO_SEGS] += g->segs;
	}
	eth_rx_complete(dev, qp, g->rwqe.index, &done);
}

void eth_rx_done(struct skua_dev *dev)
{
	struct gro *g = &dev->port->gro;
	struct qp qp;

	if (!g->segs)
		return;
	if (!qp_get(dev, g->qpn, &qp)) {
		finish(dev, &qp, g);
		qp_put(dev, &qp);
	}
	g->segs = 0;
}
