// SPDX-License-Identifier: GPL-2.0
/*
 * The port: link, MTU, addresses, and the path of frames: to the wire, through the loopback if
 * they are for the device's own address, and from the wire, where RoCE for an address in the
 * GID table is told from all other frames.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "port.h"
#include "roce/pkt.h"

#define MTU_DEFAULT	1500
#define MTU_MIN		68
/* Bytes of the loopback buffer, a power of two; frames delivered from it in one round. */
#define LOOP_SIZE	(4u << 20)
#define LOOP_BUDGET	64
/* Length word that stands for: the next frame is at the start of the buffer. */
#define LOOP_SKIP	UINT32_MAX
/* Flag of a length word: a RoCE packet whose ICRC was not written. */
#define LOOP_PENDING	(1u << 31)

int port_init(struct skua_dev *dev)
{
	dev->port = calloc(1, sizeof(*dev->port));
	if (!dev->port)
		return -ENOMEM;
	dev->port->wire_up = true;
	dev->port->mcg = calloc(1u << MODEL_LOG_MCG, sizeof(*dev->port->mcg));
	dev->port->loop = malloc(LOOP_SIZE);
	return dev->port->mcg && dev->port->loop ? 0 : -ENOMEM;
}

void port_reset(struct skua_dev *dev)
{
	struct port *p = dev->port;

	p->enabled = false;
	p->mtu = MTU_DEFAULT;
	memcpy(p->mac, dev->cfg.mac, sizeof(p->mac));
	p->promisc = false;
	p->allmulti = false;
	p->dflt = SKUA_PORT_NO_DFLT;
	memset(p->gid, 0, sizeof(p->gid));
	memset(p->gid_head, 0, sizeof(p->gid_head));
	steer_reset(dev);
	p->loop_head = 0;
	p->loop_tail = 0;
	p->gro.segs = 0;
}

struct onchip steer_onchip(const struct skua_dev *dev)
{
	const struct port *p = dev->port;

	return (struct onchip){
		.num = p->num_rules + p->num_mcg + p->num_own,
		.bytes = p->num_rules * sizeof(*p->rules) +
			 p->num_mcg * (sizeof(*p->mcg) + sizeof(p->mcg_next[0])) +
			 sizeof(p->mcg_head) + sizeof(p->gid) + sizeof(p->gid_head) +
			 sizeof(p->gid_next) + sizeof(p->own),
	};
}

/* Buffers of whole frames, the engine's among them. */
struct onchip frames_onchip(const struct skua_dev *dev)
{
	const struct port *p = dev->port;

	return (struct onchip){
		.bytes = LOOP_SIZE + sizeof(p->gro) + sizeof(p->tx) + sizeof(p->lso) +
			 engine_frame_bytes(),
	};
}

void port_exit(struct skua_dev *dev)
{
	if (!dev->port)
		return;
	free(dev->port->rules);
	free(dev->port->mcg);
	free(dev->port->loop);
	free(dev->port);
}

uint32_t port_mtu(const struct skua_dev *dev)
{
	return dev->port->mtu;
}

void port_link(struct skua_dev *dev, bool up)
{
	bool was = port_is_up(dev->port);

	dev->port->wire_up = up;
	if (port_is_up(dev->port) != was && dev->state == DEV_OPERATIONAL)
		port_event(dev);
}

/* --- GID table --- */

static uint32_t gid_hash(const uint8_t gid[16], uint16_t vlan)
{
	uint64_t a, b;

	memcpy(&a, gid, 8);
	memcpy(&b, gid + 8, 8);
	return (a * 31 + b + vlan) * 0x9e3779b97f4a7c15ull >> (64 - MODEL_LOG_GID);
}

const struct skua_gid *port_gid(struct skua_dev *dev, uint32_t index)
{
	const struct skua_gid *gid = &dev->port->gid[index % GIDS];

	return index < GIDS && le32_to_cpu(gid->flags) & SKUA_GID_VALID ? gid : NULL;
}

int port_gid_find(struct skua_dev *dev, const uint8_t gid[16], uint16_t vlan)
{
	const struct port *p = dev->port;

	for (uint32_t n = p->gid_head[gid_hash(gid, vlan)]; n; n = p->gid_next[n - 1]) {
		if (!memcmp(p->gid[n - 1].gid, gid, 16) && le16_to_cpu(p->gid[n - 1].vlan) == vlan)
			return n - 1;
	}
	return -1;
}

static bool in_table(const struct port *p, const uint8_t mac[ETH_ADDR_LEN])
{
	for (uint32_t i = 0; i < p->num_own; i++) {
		if (!memcmp(mac, p->own[i], ETH_ADDR_LEN))
			return true;
	}
	return false;
}

/* Build the hash chains anew: the table is small, and changes are rare. */
static void gid_rehash(struct port *p)
{
	memset(p->gid_head, 0, sizeof(p->gid_head));
	p->num_own = 0;
	for (uint32_t i = GIDS; i--; ) {
		const struct skua_gid *gid = &p->gid[i];
		uint16_t *head;

		if (!(le32_to_cpu(gid->flags) & SKUA_GID_VALID))
			continue;
		head = &p->gid_head[gid_hash(gid->gid, le16_to_cpu(gid->vlan))];
		p->gid_next[i] = *head;
		*head = i + 1;
		if (!in_table(p, gid->mac))
			memcpy(p->own[p->num_own++], gid->mac, ETH_ADDR_LEN);
	}
}

static bool own_mac(const struct port *p, const uint8_t mac[ETH_ADDR_LEN])
{
	return !memcmp(mac, p->mac, ETH_ADDR_LEN) || in_table(p, mac);
}

/* --- what is RoCE --- */

/* Is a GID table entry in the VLAN that the frame came in? */
static bool in_our_vlan(const struct port *p, uint16_t vlan)
{
	for (uint32_t i = 0; i < GIDS; i++) {
		if (le32_to_cpu(p->gid[i].flags) & SKUA_GID_VALID &&
		    le16_to_cpu(p->gid[i].vlan) == vlan)
			return true;
	}
	return false;
}

/*
 * Is the frame RoCE for one of the device's addresses, or for a group with members here? If so,
 * @in has the result of parsing it up to the UDP header.
 */
static bool roce_ours(struct skua_dev *dev, struct roce_in *in)
{
	struct skua_pkt *pkt = &in->pkt;
	uint32_t pos = 0, qpn;
	uint16_t vlan;
	int gid;

	in->status = skua_pkt_parse_ip(in->frame, in->len, pkt);
	if (in->status == SKUA_PKT_NOT_ROCE)
		return false;
	vlan = pkt->tci & 0xfff ? pkt->tci & 0xfff : SKUA_GID_NO_VLAN;
	if (mac_multicast(pkt->dmac))
		return port_mcg_next(dev, pkt->dgid, &pos, &qpn) && in_our_vlan(dev->port, vlan);
	gid = port_gid_find(dev, pkt->dgid, vlan);
	return gid >= 0 && !memcmp(pkt->dmac, dev->port->gid[gid].mac, ETH_ADDR_LEN);
}

static bool is_roce(struct skua_dev *dev, const struct frame *f, struct roce_in *in)
{
	if (!dev->roce || f->proto != IP_PROTO_UDP ||
	    (f->udp && be16_get(f->data + f->l4 + 2) != ROCE_UDP_PORT))
		return false;
	return roce_ours(dev, in);
}

/*
 * A packet whose ICRC is pending was made by another device of this process, so it is RoCE and
 * its headers are valid: only roce_ours() parses them, unless software gets the packet.
 */
static bool pending_ours(struct skua_dev *dev, struct roce_in *in)
{
	/* Short enough with and without a tag. */
	return in->icrc_pending && dev->roce &&
	       in->len <= (size_t)ETH_HDR_LEN + dev->port->mtu && roce_ours(dev, in);
}

/* Do members of this device get a multicast frame that the device itself sends? */
static bool to_members(struct skua_dev *dev, const void *data, size_t len)
{
	struct roce_in in = { .frame = data, .len = len };
	struct frame f;

	frame_parse(&f, data, len, false);
	return is_roce(dev, &f, &in);
}

/* --- round inside --- */

static void loop_word(struct port *p, uint32_t word)
{
	memcpy(p->loop + p->loop_tail % LOOP_SIZE, &word, sizeof(word));
}

/*
 * Frames are not split, so that the last bytes of the buffer may stay empty. Senders stop when
 * it is half full (port_tx_busy()); the other half has room for what one turn sends.
 */
static void loop_put(struct skua_dev *dev, const void *frame, uint32_t len, bool icrc_pending)
{
	struct port *p = dev->port;
	uint64_t need = (sizeof(len) + len + 7) & ~7ull;
	uint64_t left = LOOP_SIZE - p->loop_tail % LOOP_SIZE;
	uint64_t skip = need > left ? left : 0;

	if (p->loop_tail - p->loop_head + skip + need > LOOP_SIZE) {
		dev->cnt[SKUA_CNT_LOOPBACK_DROP]++;
		return;
	}
	if (skip) {
		loop_word(p, LOOP_SKIP);
		p->loop_tail += skip;
	}
	loop_word(p, len | (icrc_pending ? LOOP_PENDING : 0));
	memcpy(p->loop + p->loop_tail % LOOP_SIZE + sizeof(len), frame, len);
	p->loop_tail += need;
}

bool port_tx_busy(const struct skua_dev *dev)
{
	return dev->port->loop_tail - dev->port->loop_head > LOOP_SIZE / 2;
}

bool port_tx_full(const struct skua_dev *dev, const uint8_t dmac[ETH_ADDR_LEN])
{
	const struct port *p = dev->port;

	return dev->wire && dev->wire->full && p->enabled && p->wire_up &&
	       dev->wire->full(dev->wire_priv, dmac) && (mac_multicast(dmac) || !own_mac(p, dmac));
}

/* Loop a frame back if it is for this device. True: it also has to be sent to the wire. */
static bool turn_round(struct skua_dev *dev, const void *frame, size_t len, bool icrc_pending,
		       bool to_rules)
{
	struct port *p = dev->port;
	const uint8_t *dmac = frame;
	bool multicast = mac_multicast(dmac);

	if (!p->enabled || len < ETH_HDR_LEN || len > MODEL_MAX_FRAME)
		return false;
	if (!multicast && own_mac(p, dmac)) {
		loop_put(dev, frame, len, icrc_pending);
		return false;
	}
	/* Members of a group on this device get what the device sends to the group. */
	if (multicast && ((p->num_mcg && to_members(dev, frame, len)) ||
			  (to_rules && p->num_rules)))
		loop_put(dev, frame, len, icrc_pending);
	return p->wire_up && dev->wire;
}

void *port_frame(struct skua_dev *dev, size_t size)
{
	return dev->wire && dev->wire->frame ? dev->wire->frame(dev->wire_priv, size) : NULL;
}

void port_tx(struct skua_dev *dev, void *frame, size_t len)
{
	if (!turn_round(dev, frame, len, true, false))
		return;
	if (dev->wire->send_pending) {
		dev->wire->send_pending(dev->wire_priv, frame, len);
	} else {
		skua_pkt_icrc_fill(frame, len);
		dev->wire->send(dev->wire_priv, frame, len);
	}
}

bool port_direct(const struct skua_dev *dev, const uint8_t dmac[ETH_ADDR_LEN])
{
	const struct port *p = dev->port;

	return dev->wire && dev->wire->direct && p->enabled && p->wire_up && !own_mac(p, dmac) &&
	       dev->wire->direct(dev->wire_priv, dmac);
}

void port_tx_train(struct skua_dev *dev, void *head, size_t len, const struct skua_train *train)
{
	dev->wire->send_train(dev->wire_priv, head, len, train);
}

void port_tx_eth(struct skua_dev *dev, const void *frame, size_t len, bool loop)
{
	if (turn_round(dev, frame, len, false, loop))
		dev->wire->send(dev->wire_priv, frame, len);
}

/* --- in --- */

/* True: not all receivers have got it: call again with the same frame. */
static bool deliver(struct skua_dev *dev, void *data, size_t len, bool looped, bool icrc_pending)
{
	struct roce_in in = { .frame = data, .len = len, .own = looped,
			      .icrc_pending = icrc_pending };
	struct frame f;

	if (len < ETH_HDR_LEN || !dev->port->enabled)
		return false;
	if (pending_ours(dev, &in)) {
		roce_rx(dev, &in);
		return false;
	}
	frame_parse(&f, data, len, false);
	if (frame_payload(&f) > dev->port->mtu) {
		dev->cnt[SKUA_CNT_ETH_RX_TOO_LONG]++;
		return false;
	}
	if (is_roce(dev, &f, &in)) {
		roce_rx(dev, &in);
		return false;
	}
	/* Deliver to software. */
	if (icrc_pending && !dev->port->way[looped].begun)
		skua_pkt_icrc_fill(data, len);
	return steer(dev, &f, looped);
}

bool port_rx(struct skua_dev *dev, void *frame, size_t len, bool icrc_pending)
{
	bool more = dev->port->wire_up && deliver(dev, frame, len, false, icrc_pending);

	dev->port->way[0].begun = more;
	return more;
}

bool port_rx_train(struct skua_dev *dev, void *head, size_t len, const struct skua_train *train)
{
	struct roce_in in = { .frame = head, .len = len, .icrc_pending = true };

	return dev->port->wire_up && dev->port->enabled && !dev->port->way[0].begun &&
	       pending_ours(dev, &in) && roce_rx_train(dev, &in, train);
}

void port_rx_none(struct skua_dev *dev)
{
	dev->port->way[0].begun = false;
}

/* The device's own frames to a group are not dropped: they wait while there is no room. */
static bool must_wait(struct skua_dev *dev, const void *frame, size_t len)
{
	return mac_multicast(frame) && roce_groups_full(dev) && to_members(dev, frame, len);
}

/*
 * Deliver the oldest frame of the loopback buffer. It stays there until it is delivered: frames
 * that are sent in answer to it are put behind it.
 */
bool port_run(struct skua_dev *dev)
{
	struct port *p = dev->port;
	bool icrc_pending;
	uint8_t *frame;
	uint32_t len;

	for (unsigned int i = 0; i < LOOP_BUDGET && p->loop_head != p->loop_tail; i++) {
		if (i && dev_turn_over(dev))
			break;
		memcpy(&len, p->loop + p->loop_head % LOOP_SIZE, sizeof(len));
		if (len == LOOP_SKIP) {
			p->loop_head += LOOP_SIZE - p->loop_head % LOOP_SIZE;
			continue;
		}
		icrc_pending = len & LOOP_PENDING;
		len &= ~LOOP_PENDING;
		frame = p->loop + p->loop_head % LOOP_SIZE + sizeof(len);
		if (must_wait(dev, frame, len))
			break;
		dev->cnt[SKUA_CNT_LOOPBACK_PKTS] += !p->way[1].begun;
		p->way[1].begun = deliver(dev, frame, len, true, icrc_pending);
		if (p->way[1].begun)
			break;
		p->loop_head += (sizeof(len) + len + 7) & ~7ull;
	}
	return p->loop_head != p->loop_tail;
}

bool port_pending(const struct skua_dev *dev)
{
	return dev->port->loop_head != dev->port->loop_tail;
}

/* --- commands --- */

static bool gid_ok(const struct skua_gid *gid)
{
	uint32_t flags = le32_to_cpu(gid->flags);
	uint16_t vlan = le16_to_cpu(gid->vlan);

	if (flags & ~(SKUA_GID_VALID | SKUA_GID_IPV4) || gid->reserved)
		return false;
	if (!(flags & SKUA_GID_VALID))
		return true;
	return (vlan == SKUA_GID_NO_VLAN || (vlan >= 1 && vlan <= 4094)) &&
	       ib_gid_is_v4(gid->gid) == !!(flags & SKUA_GID_IPV4) &&
	       !all_zero(gid->gid, sizeof(gid->gid)) && !ib_gid_is_multicast(gid->gid) &&
	       !mac_multicast(gid->mac) &&
	       !all_zero(gid->mac, sizeof(gid->mac));
}

int cmd_set_gid(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_set_gid_in *in = cmd->in;
	uint32_t index = le32_to_cpu(in->index);
	bool valid = le32_to_cpu(in->gid.flags) & SKUA_GID_VALID;
	struct skua_gid *gid;

	if (in->reserved || !gid_ok(&in->gid))
		return SKUA_CMD_ST_BAD_PARAM;
	if (index >= icm_num(dev, SKUA_ICM_GID) || index >= GIDS)
		return SKUA_CMD_ST_BAD_INDEX;
	if (!icm_mapped(dev, SKUA_ICM_GID, index))
		return SKUA_CMD_ST_NO_ICM;
	gid = ctx_new(dev, SKUA_ICM_GID, index);
	if (!gid)
		return SKUA_CMD_ST_INTERNAL;
	if (valid)
		*gid = in->gid;
	obj_set(dev, SKUA_ICM_GID, index, valid);
	dev->port->gid[index] = *gid;
	gid_rehash(dev->port);
	ctx_put(dev, gid);
	return SKUA_CMD_ST_OK;
}

int cmd_query_gid(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_gid_out *out = cmd->out;
	uint32_t index;
	int err = cmd_index(cmd, &index);

	if (err)
		return err;
	if (index >= icm_num(dev, SKUA_ICM_GID) || index >= GIDS)
		return SKUA_CMD_ST_BAD_INDEX;
	ctx_flush(dev, SKUA_ICM_GID, index);
	out->gid = dev->port->gid[index];
	return SKUA_CMD_ST_OK;
}

int cmd_query_port(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_port_out *out = cmd->out;
	const struct port *p = dev->port;
	uint32_t state = p->enabled ? SKUA_PORT_ENABLED : 0;

	if (port_is_up(p))
		state |= SKUA_PORT_LINK_UP;
	out->state = cpu_to_le32(state);
	out->speed_mbps = cpu_to_le32(MODEL_SPEED_MBPS);
	out->mtu = cpu_to_le16(p->mtu);
	memcpy(out->mac, p->mac, sizeof(out->mac));
	return SKUA_CMD_ST_OK;
}

static int check_port(struct skua_dev *dev, const struct skua_cmd_modify_port_in *in,
		      uint32_t mask)
{
	uint32_t dflt = le32_to_cpu(in->dflt);
	uint16_t mtu = le16_to_cpu(in->mtu);

	if (mask & ~(SKUA_PORT_M_ENABLE | SKUA_PORT_M_MTU | SKUA_PORT_M_MAC |
		     SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI | SKUA_PORT_M_DFLT) ||
	    in->reserved)
		return SKUA_CMD_ST_BAD_PARAM;
	if ((mask & SKUA_PORT_M_ENABLE && le32_to_cpu(in->enable) > 1) ||
	    (mask & SKUA_PORT_M_PROMISC && le32_to_cpu(in->promisc) > 1) ||
	    (mask & SKUA_PORT_M_ALLMULTI && le32_to_cpu(in->allmulti) > 1) ||
	    (mask & SKUA_PORT_M_MTU && (mtu < MTU_MIN || mtu > MODEL_MAX_MTU)) ||
	    (mask & SKUA_PORT_M_MAC && (mac_multicast(in->mac) || all_zero(in->mac, 6))))
		return SKUA_CMD_ST_BAD_PARAM;
	if (mask & SKUA_PORT_M_DFLT && dflt != SKUA_PORT_NO_DFLT &&
	    !dest_ok(dev, dflt & SKUA_PORT_DFLT_RSS, dflt & ~SKUA_PORT_DFLT_RSS))
		return SKUA_CMD_ST_BAD_INDEX;
	return SKUA_CMD_ST_OK;
}

static void set_dflt(struct skua_dev *dev, uint32_t dflt)
{
	uint32_t old = dev->port->dflt;

	if (dflt != SKUA_PORT_NO_DFLT)
		dest_ref(dev, dflt & SKUA_PORT_DFLT_RSS, dflt & ~SKUA_PORT_DFLT_RSS, 1);
	if (old != SKUA_PORT_NO_DFLT)
		dest_ref(dev, old & SKUA_PORT_DFLT_RSS, old & ~SKUA_PORT_DFLT_RSS, -1);
	dev->port->dflt = dflt;
}

int cmd_modify_port(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_port_in *in = cmd->in;
	uint32_t mask = le32_to_cpu(in->mask);
	struct port *p = dev->port;
	bool was = port_is_up(p);
	int err = check_port(dev, in, mask);

	if (err)
		return err;
	if (mask & SKUA_PORT_M_ENABLE)
		p->enabled = le32_to_cpu(in->enable);
	if (mask & SKUA_PORT_M_MTU)
		p->mtu = le16_to_cpu(in->mtu);
	if (mask & SKUA_PORT_M_MAC)
		memcpy(p->mac, in->mac, sizeof(p->mac));
	if (mask & SKUA_PORT_M_PROMISC)
		p->promisc = le32_to_cpu(in->promisc);
	if (mask & SKUA_PORT_M_ALLMULTI)
		p->allmulti = le32_to_cpu(in->allmulti);
	if (mask & SKUA_PORT_M_DFLT)
		set_dflt(dev, le32_to_cpu(in->dflt));
	if (port_is_up(p) != was)
		port_event(dev);
	return SKUA_CMD_ST_OK;
}
