// SPDX-License-Identifier: GPL-2.0
/*
 * Receivers of a frame that is not RoCE for this device: steering rules, the port's default
 * destination, and receive side scaling, which selects one of several queues.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "icm.h"
#include "port.h"

void steer_reset(struct skua_dev *dev)
{
	dev->port->num_rules = 0;
	memset(dev->port->way, 0, sizeof(dev->port->way));
	memset(dev->port->mcg, 0, sizeof(*dev->port->mcg) << MODEL_LOG_MCG);
	memset(dev->port->mcg_head, 0, sizeof(dev->port->mcg_head));
	dev->port->num_mcg = 0;
}

/* --- destinations --- */

static bool is_eth_qp(struct skua_dev *dev, uint32_t qpn)
{
	struct qp qp;
	bool ok;

	if (qpn & ~IB_QPN_MASK || qp_get_sq(dev, qpn, &qp))
		return false;
	ok = qp_type(&qp) == SKUA_QP_RAW_ETH;
	qp_put(dev, &qp);
	return ok;
}

bool dest_ok(struct skua_dev *dev, bool rss, uint32_t dest)
{
	return rss ? obj_valid(dev, SKUA_ICM_RSS, dest) : is_eth_qp(dev, dest);
}

void dest_ref(struct skua_dev *dev, bool rss, uint32_t dest, int by)
{
	obj_ref(dev, rss ? SKUA_ICM_RSS : SKUA_ICM_SQC, rss ? dest : qp_index(dest), by);
}

/* --- receive side scaling --- */

/* Hash of the fields that the frame has and the context enables. Returns the type of hash. */
static uint32_t rss_hash(const struct skua_rss *rss, const struct frame *f, uint16_t *kind)
{
	uint32_t flags = le32_to_cpu(rss->flags);
	uint32_t l3 = f->ipv4 ? SKUA_RSS_IPV4 : SKUA_RSS_IPV6;
	uint32_t l4 = f->tcp ? (f->ipv4 ? SKUA_RSS_TCP_IPV4 : SKUA_RSS_TCP_IPV6) :
			       (f->ipv4 ? SKUA_RSS_UDP_IPV4 : SKUA_RSS_UDP_IPV6);
	uint8_t data[36];
	size_t len;

	*kind = 0;
	if (!f->ipv4 && !f->ipv6)
		return 0;
	if (f->ipv4) {
		memcpy(data, ((const struct ipv4_hdr *)(f->data + f->l3))->saddr, 8);
		len = 8;
	} else {
		memcpy(data, ((const struct ipv6_hdr *)(f->data + f->l3))->saddr, 32);
		len = 32;
	}
	if ((f->tcp || f->udp) && flags & l4) {
		memcpy(data + len, f->data + f->l4, 4);
		len += 4;
		*kind = SKUA_CQE_CSUM_HASH_L4;
	} else if (flags & l3) {
		*kind = SKUA_CQE_CSUM_HASH_L3;
	} else {
		return 0;
	}
	return toeplitz(rss->key, data, len);
}

static enum eth_rx to_rss(struct skua_dev *dev, uint32_t index, const struct frame *f,
			  struct skua_cqe_eth *info)
{
	const struct skua_rss *rss;
	uint32_t hash, qpn;
	uint16_t kind;

	if (!obj_valid(dev, SKUA_ICM_RSS, index))
		return ETH_RX_NO_QUEUE;
	rss = ctx_get(dev, SKUA_ICM_RSS, index);
	if (!rss)
		return ETH_RX_NO_QUEUE;
	hash = rss_hash(rss, f, &kind);
	qpn = le32_to_cpu(rss->qpn[hash & ((1u << le32_get_bits(rss->flags,
							       SKUA_RSS_LOG_SIZE)) - 1)]);
	ctx_put(dev, (void *)(uintptr_t)rss);
	info->rss_hash = cpu_to_le32(hash);
	info->csum |= cpu_to_le16(kind);
	return eth_rx(dev, qpn, f, info);
}

/* --- delivery of a frame --- */

/* Fields of the completion that follow from the headers alone. */
static void describe(struct skua_dev *dev, const struct frame *f, struct skua_cqe_eth *info)
{
	uint16_t csum = 0;
	bool bad = false;

	memset(info, 0, sizeof(*info));
	if (f->tagged)
		info->vlan_tci = cpu_to_le16(f->tci);
	if (f->cut)
		return;
	if (f->ipv6)
		csum |= SKUA_CQE_CSUM_IPV6;
	if (f->ipv4) {
		csum |= SKUA_CQE_CSUM_IPV4;
		if (frame_l3_ok(f))
			csum |= SKUA_CQE_CSUM_L3_OK;
		else
			bad = true;
	}
	csum |= f->tcp ? SKUA_CQE_CSUM_TCP : 0;
	csum |= f->udp ? SKUA_CQE_CSUM_UDP : 0;
	if (frame_l4_has_csum(f)) {
		if (frame_l4_ok(f))
			csum |= SKUA_CQE_CSUM_L4_OK;
		else
			bad = true;
	} else if (f->udp) {
		csum |= SKUA_CQE_CSUM_L4_NONE;
	}
	info->csum = cpu_to_le16(csum);
	if (bad)
		dev->cnt[SKUA_CNT_ETH_RX_CSUM_ERR]++;
}

static void give(struct skua_dev *dev, struct way *way, const struct frame *f, bool is_rss,
		 uint32_t dest, uint32_t tag)
{
	struct skua_cqe_eth info = way->info;
	enum eth_rx result;

	info.flow_tag = cpu_to_le32(tag);
	result = is_rss ? to_rss(dev, dest, f, &info) : eth_rx(dev, dest, f, &info);
	if (!way->any || result == ETH_RX_TAKEN)
		way->result = result;
	way->any = true;
}

static void flow_key(const struct frame *f, uint64_t key[RULE_WORDS])
{
	struct skua_flow_match m;

	memset(&m, 0, sizeof(m));
	memcpy(m.dmac, f->data, sizeof(m.dmac));
	memcpy(m.smac, f->data + ETH_ADDR_LEN, sizeof(m.smac));
	be16_put((uint8_t *)&m.ethertype, f->type);
	if (f->tagged) {
		be16_put((uint8_t *)&m.vlan_tci, f->tci);
		m.flags |= SKUA_FLOW_M_VLAN;
	}
	if (f->ipv4) {
		const struct ipv4_hdr *ip = (const void *)(f->data + f->l3);

		memcpy(m.saddr + 12, ip->saddr, 4);
		memcpy(m.daddr + 12, ip->daddr, 4);
		m.flags |= SKUA_FLOW_M_IPV4;
	} else if (f->ipv6) {
		const struct ipv6_hdr *ip = (const void *)(f->data + f->l3);

		memcpy(m.saddr, ip->saddr, 16);
		memcpy(m.daddr, ip->daddr, 16);
		m.flags |= SKUA_FLOW_M_IPV6;
	}
	m.ip_proto = f->proto;
	if (f->tcp || f->udp) {
		memcpy(&m.sport, f->data + f->l4, 2);
		memcpy(&m.dport, f->data + f->l4 + 2, 2);
	}
	memcpy(key, &m, sizeof(m));
}

static bool matches(const struct rule *rule, const uint64_t key[RULE_WORDS])
{
	uint64_t diff = 0;

	for (unsigned int i = 0; i < RULE_WORDS; i++)
		diff |= (key[i] & rule->mask[i]) ^ rule->value[i];
	return !diff;
}

/* What a rule that matches does; false: it asks for nothing. */
static bool apply(struct skua_dev *dev, struct way *way, const struct frame *f,
		  const struct rule *rule, bool multicast)
{
	bool rss = rule->flags & SKUA_FLOW_RSS;
	bool to_dflt = dev->port->dflt == (rule->dest | (rss ? SKUA_PORT_DFLT_RSS : 0));

	if (way->own && to_dflt)
		return false;
	if (!(rule->flags & SKUA_FLOW_SNIFFER)) {
		if (way->claimed && !multicast)
			return false;
		way->claimed = true;
	}
	if (rule->counter) {
		set_count(dev, rule->counter, SKUA_CNT_RDMA_RX_PKTS, 1);
		set_count(dev, rule->counter, SKUA_CNT_RDMA_RX_BYTES, f->len);
	}
	if (rule->flags & SKUA_FLOW_DROP)
		return false;
	way->had |= to_dflt;
	give(dev, way, f, rss, rule->dest, rule->tag);
	return true;
}

/*
 * Limit of the work for one frame in one turn: number of rules compared; a delivery counts as
 * several of these.
 */
#define STEER_TURN	1024
#define STEER_RECEIVER	32

/* The first rule after the last one applied; rules may have been added and removed since. */
static uint32_t next_rule(const struct port *p, const struct way *way)
{
	uint32_t low = 0, high = p->num_rules;

	while (way->begun && low < high) {
		uint32_t mid = (low + high) / 2;
		const struct rule *rule = &p->rules[mid];

		if (rule->prio < way->prio ||
		    (rule->prio == way->prio && rule->index <= way->index))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Apply the rules, in order. Sniffers get a copy. The first other rule that matches claims a
 * unicast frame; a multicast frame goes to all that match. True: there are more rules.
 */
static bool ask_rules(struct skua_dev *dev, struct way *way, const struct frame *f, bool multicast)
{
	struct port *p = dev->port;
	uint64_t key[RULE_WORDS];
	int left = STEER_TURN;

	if (!p->num_rules)
		return false;
	flow_key(f, key);
	for (uint32_t i = next_rule(p, way); i < p->num_rules; i++) {
		const struct rule *rule = &p->rules[i];

		if (left-- <= 0)
			return true;
		way->begun = true;
		way->prio = rule->prio;
		way->index = rule->index;
		if (!matches(rule, key) || !apply(dev, way, f, rule, multicast))
			continue;
		if (dev->state != DEV_OPERATIONAL)
			break;
		left -= STEER_RECEIVER;
	}
	return false;
}

static bool is_broadcast(const uint8_t mac[ETH_ADDR_LEN])
{
	static const uint8_t ones[ETH_ADDR_LEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	return !memcmp(mac, ones, ETH_ADDR_LEN);
}

/* Does the port's default destination get the frame, after the rules were applied? */
static bool by_default(const struct port *p, const uint8_t *dmac, bool claimed, bool had)
{
	if (p->dflt == SKUA_PORT_NO_DFLT || had)
		return false;
	if (is_broadcast(dmac))
		return true;
	if (claimed)
		return false;
	if (mac_multicast(dmac))
		return p->allmulti;
	return p->promisc || !memcmp(dmac, p->mac, ETH_ADDR_LEN);
}

static void count(struct skua_dev *dev, const struct way *way, const struct frame *f)
{
	if (way->own && !way->any)
		return;
	if (!way->any || way->result == ETH_RX_NO_QUEUE) {
		dev->cnt[SKUA_CNT_ETH_RX_FILTERED]++;
	} else if (way->result == ETH_RX_NO_WQE) {
		dev->cnt[SKUA_CNT_ETH_RX_NO_BUF]++;
	} else if (way->result == ETH_RX_LONG) {
		dev->cnt[SKUA_CNT_ETH_RX_TOO_LONG]++;
	} else {
		dev->cnt[SKUA_CNT_ETH_RX_PKTS]++;
		dev->cnt[SKUA_CNT_ETH_RX_BYTES] += f->len;
		dev->cnt[SKUA_CNT_ETH_RX_MCAST] += mac_multicast(f->data);
	}
}

bool steer(struct skua_dev *dev, const struct frame *f, bool looped)
{
	bool multicast = mac_multicast(f->data);
	struct port *p = dev->port;
	struct way *way = &p->way[looped];

	if (!dev_has(dev, SKUA_CAP_ETH))
		return false;
	if (!way->begun) {
		*way = (struct way){ .own = looped && multicast };
		describe(dev, f, &way->info);
	}
	if (ask_rules(dev, way, f, multicast))
		return true;
	if (!way->own && by_default(p, f->data, way->claimed, way->had))
		give(dev, way, f, p->dflt & SKUA_PORT_DFLT_RSS, p->dflt & ~SKUA_PORT_DFLT_RSS, 0);
	count(dev, way, f);
	return false;
}

/* --- rules --- */

/* Fields beyond MAC addresses, EtherType and VLAN tag. */
static bool beyond_l2(const struct skua_flow_match *m)
{
	return !all_zero(m->saddr, sizeof(m->saddr)) || !all_zero(m->daddr, sizeof(m->daddr)) ||
	       m->sport || m->dport || m->ip_proto || m->flags & ~SKUA_FLOW_M_VLAN;
}

static int check_flow(struct skua_dev *dev, const struct skua_flow *flow)
{
	uint32_t flags = le32_to_cpu(flow->flags);
	const uint8_t *value = (const void *)&flow->value;
	const uint8_t *mask = (const void *)&flow->mask;

	if (flags & ~(SKUA_FLOW_RSS | SKUA_FLOW_DROP | SKUA_FLOW_SNIFFER | SKUA_FLOW_PRIO) ||
	    !all_zero(flow->mask.reserved, sizeof(flow->mask.reserved)) ||
	    flow->mask.flags & ~(SKUA_FLOW_M_VLAN | SKUA_FLOW_M_IPV4 | SKUA_FLOW_M_IPV6))
		return SKUA_CMD_ST_BAD_PARAM;
	for (unsigned int i = 0; i < sizeof(flow->value); i++) {
		if (value[i] & ~mask[i])
			return SKUA_CMD_ST_BAD_PARAM;
	}
	if (beyond_l2(&flow->mask) && !dev_has(dev, SKUA_CAP_FLOW))
		return SKUA_CMD_ST_BAD_PARAM;
	if (flow->counter && !dev_has(dev, SKUA_CAP_COUNTER_SET))
		return SKUA_CMD_ST_BAD_PARAM;
	if (!set_ok(dev, le32_to_cpu(flow->counter)))
		return SKUA_CMD_ST_BAD_INDEX;
	if (flags & SKUA_FLOW_DROP)
		return flow->dest || flags & (SKUA_FLOW_RSS | SKUA_FLOW_SNIFFER) ?
		       SKUA_CMD_ST_BAD_PARAM : SKUA_CMD_ST_OK;
	return dest_ok(dev, flags & SKUA_FLOW_RSS, le32_to_cpu(flow->dest)) ?
	       SKUA_CMD_ST_OK : SKUA_CMD_ST_BAD_INDEX;
}

/* Into the list, behind all of lower or equal priority and lower index. */
static bool rule_insert(struct port *p, uint32_t index, const struct skua_flow *flow)
{
	struct rule rule = {
		.index = index,
		.prio = le32_get_bits(flow->flags, SKUA_FLOW_PRIO),
		.flags = le32_to_cpu(flow->flags),
		.dest = le32_to_cpu(flow->dest),
		.tag = le32_to_cpu(flow->tag),
		.counter = le32_to_cpu(flow->counter),
	};
	uint32_t at;

	if (p->num_rules == p->room_rules) {
		uint32_t room = p->room_rules ? 2 * p->room_rules : 16;
		struct rule *rules = realloc(p->rules, room * sizeof(*rules));

		if (!rules)
			return false;
		p->rules = rules;
		p->room_rules = room;
	}
	memcpy(rule.value, &flow->value, sizeof(rule.value));
	memcpy(rule.mask, &flow->mask, sizeof(rule.mask));
	for (at = p->num_rules; at; at--) {
		const struct rule *before = &p->rules[at - 1];

		if (before->prio < rule.prio ||
		    (before->prio == rule.prio && before->index < index))
			break;
		p->rules[at] = *before;
	}
	p->rules[at] = rule;
	p->num_rules++;
	return true;
}

static void rule_remove(struct port *p, uint32_t index)
{
	uint32_t at = 0;

	while (at < p->num_rules && p->rules[at].index != index)
		at++;
	if (at == p->num_rules)
		return;
	p->num_rules--;
	memmove(&p->rules[at], &p->rules[at + 1], (p->num_rules - at) * sizeof(p->rules[0]));
}

int cmd_create_flow(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_create_flow_in *in = cmd->in;
	uint32_t flags = le32_to_cpu(in->flow.flags);
	struct skua_flow *flow;
	uint32_t index;
	int err = cmd_index(cmd, &index);

	if (!err)
		err = cmd_vacant(dev, SKUA_ICM_FLOW, index);
	if (!err)
		err = check_flow(dev, &in->flow);
	if (err)
		return err;
	flow = ctx_new(dev, SKUA_ICM_FLOW, index);
	if (!flow)
		return SKUA_CMD_ST_INTERNAL;
	if (rule_insert(dev->port, index, &in->flow)) {
		*flow = in->flow;
		flow->flags |= cpu_to_le32(SKUA_FLOW_VALID);
		obj_set(dev, SKUA_ICM_FLOW, index, true);
		set_ref(dev, le32_to_cpu(flow->counter), 1);
		if (!(flags & SKUA_FLOW_DROP))
			dest_ref(dev, flags & SKUA_FLOW_RSS, le32_to_cpu(flow->dest), 1);
	} else {
		err = SKUA_CMD_ST_LIMIT;
	}
	ctx_put(dev, flow);
	return err;
}

int cmd_destroy_flow(struct skua_dev *dev, struct cmd *cmd)
{
	const struct port *p = dev->port;
	struct skua_flow *flow;
	uint32_t index;
	int err = cmd_object(dev, cmd, SKUA_ICM_FLOW, &index);

	if (err)
		return err;
	/* The counters are those of the on-chip copy; the context in ICM may have been changed. */
	for (uint32_t i = 0; i < p->num_rules; i++) {
		const struct rule *rule = &p->rules[i];

		if (rule->index != index)
			continue;
		set_ref(dev, rule->counter, -1);
		if (!(rule->flags & SKUA_FLOW_DROP))
			dest_ref(dev, rule->flags & SKUA_FLOW_RSS, rule->dest, -1);
	}
	rule_remove(dev->port, index);
	obj_set(dev, SKUA_ICM_FLOW, index, false);
	flow = ctx_new(dev, SKUA_ICM_FLOW, index);
	if (!flow)
		return SKUA_CMD_ST_INTERNAL;
	ctx_put(dev, flow);
	return SKUA_CMD_ST_OK;
}

/* --- RSS contexts --- */

static uint32_t rss_size(const struct skua_rss *rss)
{
	return 1u << le32_get_bits(rss->flags, SKUA_RSS_LOG_SIZE);
}

bool rss_check(struct skua_dev *dev, uint32_t index, const void *ctx)
{
	const struct skua_rss *rss = ctx;

	(void)dev;
	(void)index;
	return le32_to_cpu(rss->flags) & SKUA_RSS_VALID && rss_size(rss) <= SKUA_RSS_MAX;
}

static int check_rss(struct skua_dev *dev, const struct skua_cmd_create_rss_in *in)
{
	const struct skua_rss *rss = &in->rss;

	if (in->reserved || rss->reserved || !all_zero(rss->pad, sizeof(rss->pad)) ||
	    le32_to_cpu(rss->flags) & ~(SKUA_RSS_LOG_SIZE | SKUA_RSS_IPV4 | SKUA_RSS_IPV6 |
					SKUA_RSS_TCP_IPV4 | SKUA_RSS_TCP_IPV6 |
					SKUA_RSS_UDP_IPV4 | SKUA_RSS_UDP_IPV6) ||
	    rss_size(rss) > SKUA_RSS_MAX)
		return SKUA_CMD_ST_BAD_PARAM;
	for (uint32_t i = 0; i < SKUA_RSS_MAX; i++) {
		if (i >= rss_size(rss) && rss->qpn[i])
			return SKUA_CMD_ST_BAD_PARAM;
		if (i < rss_size(rss) && !is_eth_qp(dev, le32_to_cpu(rss->qpn[i])))
			return SKUA_CMD_ST_BAD_INDEX;
	}
	return SKUA_CMD_ST_OK;
}

static void rss_refs(struct skua_dev *dev, const struct skua_rss *rss, int by)
{
	for (uint32_t i = 0; i < rss_size(rss); i++)
		dest_ref(dev, false, le32_to_cpu(rss->qpn[i]), by);
}

int cmd_create_rss(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_create_rss_in *in = cmd->in;
	uint32_t index = le32_to_cpu(in->index);
	struct skua_rss *rss;
	int err = cmd_vacant(dev, SKUA_ICM_RSS, index);

	if (!err)
		err = check_rss(dev, in);
	if (err)
		return err;
	rss = ctx_new(dev, SKUA_ICM_RSS, index);
	if (!rss)
		return SKUA_CMD_ST_INTERNAL;
	*rss = in->rss;
	rss->flags |= cpu_to_le32(SKUA_RSS_VALID);
	obj_set(dev, SKUA_ICM_RSS, index, true);
	rss_refs(dev, rss, 1);
	ctx_put(dev, rss);
	return SKUA_CMD_ST_OK;
}

int cmd_modify_rss(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_create_rss_in *in = cmd->in;
	uint32_t index = le32_to_cpu(in->index);
	struct skua_rss *rss;
	int err;

	if (!obj_valid(dev, SKUA_ICM_RSS, index))
		return SKUA_CMD_ST_BAD_INDEX;
	err = check_rss(dev, in);
	if (err)
		return err;
	rss = ctx_get(dev, SKUA_ICM_RSS, index);
	if (!rss)
		return SKUA_CMD_ST_INTERNAL;
	rss_refs(dev, &in->rss, 1);
	rss_refs(dev, rss, -1);
	*rss = in->rss;
	rss->flags |= cpu_to_le32(SKUA_RSS_VALID);
	ctx_dirty(dev, rss);
	ctx_put(dev, rss);
	return SKUA_CMD_ST_OK;
}

int cmd_destroy_rss(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_rss *rss;
	uint32_t index;
	int err = cmd_object(dev, cmd, SKUA_ICM_RSS, &index);

	if (err)
		return err;
	if (obj_refs(dev, SKUA_ICM_RSS, index))
		return SKUA_CMD_ST_BUSY;
	rss = ctx_get(dev, SKUA_ICM_RSS, index);
	if (!rss)
		return SKUA_CMD_ST_INTERNAL;
	rss_refs(dev, rss, -1);
	obj_set(dev, SKUA_ICM_RSS, index, false);
	memset(rss, 0, sizeof(*rss));
	ctx_dirty(dev, rss);
	ctx_put(dev, rss);
	return SKUA_CMD_ST_OK;
}

/* --- multicast groups --- */

static uint16_t *mcg_chain(struct port *p, const uint8_t gid[16])
{
	uint32_t word[4];

	memcpy(word, gid, sizeof(word));
	return &p->mcg_head[(word[0] ^ word[1] ^ word[2] ^ word[3]) * 0x9e3779b1u / (1u << 24)];
}

bool port_mcg_next(struct skua_dev *dev, const uint8_t gid[16], uint32_t *pos, uint32_t *qpn)
{
	struct port *p = dev->port;
	uint32_t n;

	/* If the last member still exists, go on with its next one; else search from the start. */
	if (*pos && !memcmp(p->mcg[*pos - 1].gid, gid, 16))
		n = p->mcg_next[*pos - 1];
	else
		n = *mcg_chain(p, gid);
	while (n && (n <= *pos || memcmp(p->mcg[n - 1].gid, gid, 16)))
		n = p->mcg_next[n - 1];
	*pos = n;
	if (!n)
		return false;
	*qpn = le32_to_cpu(p->mcg[n - 1].qpn);
	return true;
}

static void mcg_insert(struct port *p, uint32_t index, const struct skua_mcg *mcg)
{
	uint16_t *at = mcg_chain(p, mcg->gid);

	while (*at && *at < index + 1)
		at = &p->mcg_next[*at - 1];
	p->mcg_next[index] = *at;
	*at = index + 1;
	p->mcg[index] = *mcg;
	p->num_mcg++;
}

static void mcg_remove(struct port *p, uint32_t index)
{
	uint16_t *at = mcg_chain(p, p->mcg[index].gid);

	while (*at != index + 1)
		at = &p->mcg_next[*at - 1];
	*at = p->mcg_next[index];
	memset(&p->mcg[index], 0, sizeof(p->mcg[index]));
	p->num_mcg--;
}

static bool is_member(struct skua_dev *dev, const struct skua_mcg *mcg)
{
	uint32_t pos = 0, qpn;

	while (port_mcg_next(dev, mcg->gid, &pos, &qpn)) {
		if (qpn == le32_to_cpu(mcg->qpn))
			return true;
	}
	return false;
}

static int check_mcg(struct skua_dev *dev, const struct skua_mcg *mcg)
{
	struct qp qp;
	bool ud;

	if (mcg->flags || !all_zero(mcg->reserved, sizeof(mcg->reserved)) ||
	    !ib_gid_is_multicast(mcg->gid))
		return SKUA_CMD_ST_BAD_PARAM;
	if (le32_to_cpu(mcg->qpn) & ~IB_QPN_MASK || qp_get_sq(dev, le32_to_cpu(mcg->qpn), &qp))
		return SKUA_CMD_ST_BAD_INDEX;
	ud = qp_type(&qp) == SKUA_QP_UD;
	qp_put(dev, &qp);
	if (!ud)
		return SKUA_CMD_ST_BAD_INDEX;
	return is_member(dev, mcg) ? SKUA_CMD_ST_EXISTS : SKUA_CMD_ST_OK;
}

int cmd_attach_mcg(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_mcg_in *in = cmd->in;
	struct skua_mcg *mcg;
	uint32_t index;
	int err = cmd_index(cmd, &index);

	if (!err)
		err = cmd_vacant(dev, SKUA_ICM_MCG, index);
	if (!err)
		err = check_mcg(dev, &in->mcg);
	if (err)
		return err;
	mcg = ctx_new(dev, SKUA_ICM_MCG, index);
	if (!mcg)
		return SKUA_CMD_ST_INTERNAL;
	*mcg = in->mcg;
	mcg->flags = cpu_to_le32(SKUA_MCG_VALID);
	mcg_insert(dev->port, index, mcg);
	obj_set(dev, SKUA_ICM_MCG, index, true);
	dest_ref(dev, false, le32_to_cpu(mcg->qpn), 1);
	ctx_put(dev, mcg);
	return SKUA_CMD_ST_OK;
}

int cmd_detach_mcg(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_mcg *mcg;
	uint32_t index;
	int err = cmd_object(dev, cmd, SKUA_ICM_MCG, &index);

	if (err)
		return err;
	dest_ref(dev, false, le32_to_cpu(dev->port->mcg[index].qpn), -1);
	mcg_remove(dev->port, index);
	obj_set(dev, SKUA_ICM_MCG, index, false);
	mcg = ctx_new(dev, SKUA_ICM_MCG, index);
	if (!mcg)
		return SKUA_CMD_ST_INTERNAL;
	ctx_put(dev, mcg);
	return SKUA_CMD_ST_OK;
}
