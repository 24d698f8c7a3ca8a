// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of the wire: which frame gets which fault.
 *
 * A flow is what one QP sends another in one role: {port, addresses, destination
 * QP, source QP where the packet names it, request or response}. Its first packet
 * gives it an ordinal, and its PSNs count from that packet's PSN, so that faults do not
 * depend on QP numbers and first PSNs, which may be random.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../roce/pkt.h"
#include "fault_priv.h"
#include "priv.h"

#define PORTS			WIRE_PORTS_MAX

/* PSNs of a flow that are remembered without memory of their own. A power of two. */
#define FEW_PSNS		16

struct flow_key {
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t dqpn;
	uint32_t sqpn;
	uint16_t port;
	uint16_t class;
};
/* Hashed and compared as bytes, so none of them may be padding. */
_Static_assert(sizeof(struct flow_key) == 16 + 16 + 4 + 4 + 2 + 2, "flow key");

/**
 * struct wire_flow - one QP's packets to another in one role
 * @key: identity of the flow
 * @next: in its hash bucket
 * @newer: neighbours in the order of last use
 * @older: see @newer
 * @held: frames held back until later ones of this flow have passed
 * @ordinal: number of the flow on its port and in its class
 * @first_psn: PSN of the first packet
 * @high: highest PSN so far, counted from the first
 * @rewinds: how often PSNs went back
 * @last: the latest packet's PSN, counted from the first
 * @id: random number by seed and flow; 0: not drawn yet
 * @drawn_for: index of the clause of rates that @drawn and @draw are of
 * @drawn: bits of the kinds of which @draw is known
 * @draw: what the draws of a kind begin with, see draw_flow()
 * @n_psns: number of elements of @psn, a power of two
 * @psn: recent PSNs, by their low bits: 24 bits of PSN, 8 bits of the number of its passages;
 *	0: none
 * @few: what @psn is until that is too small
 */
struct wire_flow {
	struct flow_key key;
	struct wire_flow *next;
	struct wire_flow *newer;
	struct wire_flow *older;
	struct wire_held *held;
	uint64_t ordinal;
	uint32_t first_psn;
	int64_t high;
	int64_t last;
	uint32_t rewinds;
	uint64_t id;
	unsigned int drawn_for;
	unsigned int drawn;
	uint64_t draw[FAULT_KIND_MAX];
	uint32_t n_psns;
	uint32_t *psn;
	uint32_t few[FEW_PSNS];
};

struct wire_faults {
	uint64_t seed;
	struct fault_clause *clause;
	unsigned int n_clauses;
	unsigned int n_flows;
	uint32_t max_flows;
	uint32_t n_psns;		/* at most, of a flow */
	uint32_t n_buckets;
	struct wire_flow *newest;
	struct wire_flow *oldest;
	void (*evict)(struct wire_flow *flow);
	struct wire_flow **bucket;
	uint64_t ordinals[PORTS][FAULT_CLASS_MAX];
	uint64_t frames[PORTS];
};

/* Everything that the fate of a frame depends on. */
struct subject {
	unsigned int port;
	const char *port_name;
	const uint8_t *frame;
	size_t len;
	uint64_t frame_no;
	struct wire_flow *flow;		/* NULL: not RoCE */
	uint8_t opcode;
	int64_t psn;
	uint32_t iter;
	size_t covered;			/* what the ICRC covers, from the BTH on */
	size_t covered_len;
};

struct wire_faults *wire_faults_create(uint64_t seed)
{
	struct wire_faults *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->seed = seed;
	if (!wire_faults_room(f, WIRE_FLOWS_MAX, WIRE_FLOW_PSNS))
		return f;
	free(f);
	return NULL;
}

int wire_faults_room(struct wire_faults *f, uint32_t flows, uint32_t psns)
{
	uint32_t n = (flows + 1) / 2;
	struct wire_flow **bucket = calloc(n, sizeof(*bucket));

	if (!bucket)
		return -1;
	free(f->bucket);
	f->bucket = bucket;
	f->n_buckets = n;
	f->max_flows = flows;
	for (f->n_psns = 1; f->n_psns < psns && f->n_psns < IB_PSN_MASK; f->n_psns *= 2)
		;
	return 0;
}

/* What its PSNs take; they must not be looked at any more. */
static void flow_forget(struct wire_flow *flow)
{
	if (flow->psn != flow->few)
		free(flow->psn);
}

static void flow_free(struct wire_flow *flow)
{
	flow_forget(flow);
	free(flow);
}

void wire_faults_destroy(struct wire_faults *f)
{
	if (!f)
		return;
	while (f->newest) {
		struct wire_flow *flow = f->newest;

		f->newest = flow->older;
		flow_free(flow);
	}
	free(f->clause);
	free(f->bucket);
	free(f);
}

bool wire_faults_active(const struct wire_faults *f)
{
	return f->n_clauses;
}

void wire_faults_on_evict(struct wire_faults *f, void (*evict)(struct wire_flow *flow))
{
	f->evict = evict;
}

struct wire_held **wire_flow_held(struct wire_flow *flow)
{
	return &flow->held;
}

int wire_faults_add(struct wire_faults *f, const char *spec, char *err, size_t errlen)
{
	unsigned int n = f->n_clauses;
	char *text = strdup(spec);
	char *one, *save = NULL;
	int ret = -1;

	if (!text)
		return wire_err(err, errlen, "fault: out of memory");
	for (one = strtok_r(text, "; \t\n", &save); one; one = strtok_r(NULL, "; \t\n", &save)) {
		struct fault_clause *more = realloc(f->clause, (n + 1) * sizeof(*more));

		if (!more) {
			wire_err(err, errlen, "fault: out of memory");
			goto out;
		}
		f->clause = more;
		if (fault_parse_clause(one, &f->clause[n], err, errlen))
			goto out;
		n++;
	}
	f->n_clauses = n;
	ret = 0;
out:
	free(text);
	return ret;
}

/* Flows */

static struct wire_flow **flow_bucket(struct wire_faults *f, const struct flow_key *key)
{
	uint64_t h = 0;
	uint32_t word;
	size_t i;

	for (i = 0; i < sizeof(*key); i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)key + i, sizeof(word));
		h = h * 0x9e3779b97f4a7c15ull ^ word;
	}
	return &f->bucket[wire_mix(h) % f->n_buckets];
}

static void flow_unlink(struct wire_faults *f, struct wire_flow *flow)
{
	*(flow->newer ? &flow->newer->older : &f->newest) = flow->older;
	*(flow->older ? &flow->older->newer : &f->oldest) = flow->newer;
}

static void flow_link(struct wire_faults *f, struct wire_flow *flow)
{
	flow->newer = NULL;
	flow->older = f->newest;
	*(f->newest ? &f->newest->newer : &f->oldest) = flow;
	f->newest = flow;
}

static struct wire_flow *flow_evict(struct wire_faults *f)
{
	struct wire_flow *flow = f->oldest;
	struct wire_flow **pp = flow_bucket(f, &flow->key);

	if (f->evict)
		f->evict(flow);
	while (*pp != flow)
		pp = &(*pp)->next;
	*pp = flow->next;
	flow_unlink(f, flow);
	return flow;
}

void wire_faults_clear(struct wire_faults *f)
{
	while (f->n_flows) {
		flow_free(flow_evict(f));
		f->n_flows--;
	}
	memset(f->ordinals, 0, sizeof(f->ordinals));
	f->n_clauses = 0;
}

/* NULL only if there is no memory: the frame then gets no fault. */
static struct wire_flow *flow_get(struct wire_faults *f, const struct flow_key *key,
				  uint32_t psn, unsigned int *evicted)
{
	struct wire_flow **pp = flow_bucket(f, key);
	struct wire_flow *flow;

	for (flow = *pp; flow; flow = flow->next)
		if (!memcmp(&flow->key, key, sizeof(*key))) {
			flow_unlink(f, flow);
			flow_link(f, flow);
			return flow;
		}

	if (f->n_flows < f->max_flows) {
		flow = malloc(sizeof(*flow));
		if (!flow)
			return NULL;
		f->n_flows++;
	} else {
		flow = flow_evict(f);
		flow_forget(flow);
		*evicted = 1;
	}
	memset(flow, 0, sizeof(*flow));
	flow->key = *key;
	flow->psn = flow->few;
	flow->n_psns = f->n_psns < FEW_PSNS ? f->n_psns : FEW_PSNS;
	flow->ordinal = f->ordinals[key->port][key->class]++;
	flow->first_psn = psn;
	flow->high = -1;
	flow->last = -1;
	flow->next = *pp;
	*pp = flow;
	flow_link(f, flow);
	return flow;
}

/* Remember four times as many PSNs. False: no more are allowed, or there is no memory. */
static bool flow_grow(const struct wire_faults *f, struct wire_flow *flow)
{
	uint32_t n = flow->n_psns < f->n_psns / 4 ? flow->n_psns * 4 : f->n_psns;
	uint32_t *psn = n > flow->n_psns ? calloc(n, sizeof(*psn)) : NULL;

	if (!psn)
		return false;
	for (uint32_t i = 0; i < flow->n_psns; i++)
		if (flow->psn[i])
			psn[(flow->psn[i] >> 8) & (n - 1)] = flow->psn[i];
	flow_forget(flow);
	flow->psn = psn;
	flow->n_psns = n;
	return true;
}

/* Does this element of a flow's PSNs count the one at distance @rel? */
static bool counts(uint32_t slot, int64_t rel)
{
	return slot && slot >> 8 == ((uint32_t)rel & IB_PSN_MASK);
}

/*
 * Where the passages of the PSN at distance @rel from the flow's first one are counted. A flow of
 * a few packets needs no more than a few places; one that has none left gets more.
 */
static uint32_t *flow_slot(const struct wire_faults *f, struct wire_flow *flow, int64_t rel)
{
	uint32_t *slot;

	do
		slot = &flow->psn[(uint64_t)rel & (flow->n_psns - 1)];
	while (*slot && !counts(*slot, rel) && flow_grow(f, flow));
	return slot;
}

/*
 * Count a passage of @psn: its distance from the flow's first PSN, and the number of its earlier
 * passages ("iteration"). If the count of an old PSN was dropped, the number of times that the
 * flow went back is used instead. It must not be 0 again: a packet that was lost in its first
 * passage would then be lost each time.
 */
static uint32_t flow_passage(const struct wire_faults *f, struct wire_flow *flow, uint32_t psn,
			     int64_t *rel)
{
	uint32_t base = (flow->first_psn + (uint32_t)flow->high) & IB_PSN_MASK;
	int64_t r = flow->high + ib_psn_diff(psn, base);
	uint32_t *slot = flow_slot(f, flow, r);
	uint32_t seen;

	if (r <= flow->last)
		flow->rewinds++;
	flow->last = r;
	*rel = r;
	if (r > flow->high) {
		flow->high = r;
		seen = 0;
	} else if (counts(*slot, r)) {
		seen = *slot & 0xff;
	} else {
		seen = flow->rewinds;
	}
	if (seen > 0xfe)
		seen = 1 + seen % 0xfe;
	*slot = (uint32_t)r << 8 | (seen + 1);
	return seen;
}

static enum fault_class classify(const struct skua_pkt *pkt)
{
	if (pkt->opcode == IB_OPCODE_CNP)
		return FAULT_CLASS_CNP;
	if (!pkt->op)
		return FAULT_CLASS_OTHER;
	return pkt->op->flags & IB_F_REQUEST ? FAULT_CLASS_REQ : FAULT_CLASS_RESP;
}

static unsigned int look(struct wire_faults *f, struct subject *s)
{
	unsigned int evicted = 0;
	struct flow_key key = { .port = (uint16_t)s->port };
	struct skua_pkt pkt;

	s->frame_no = f->frames[s->port]++;
	if (skua_pkt_parse_ip(s->frame, s->len, &pkt) || skua_pkt_parse_bth(&pkt))
		return 0;
	key.class = classify(&pkt);
	key.dqpn = pkt.dqpn;
	memcpy(key.sgid, pkt.sgid, sizeof(key.sgid));
	memcpy(key.dgid, pkt.dgid, sizeof(key.dgid));
	s->covered = (size_t)((const uint8_t *)pkt.bth - s->frame);
	s->covered_len = (size_t)(pkt.l3 + pkt.len - (const uint8_t *)pkt.bth);
	if (pkt.op && pkt.op->flags & IB_F_DETH &&
	    s->covered_len >= sizeof(struct ib_bth) + sizeof(struct ib_deth) + IB_ICRC_LEN)
		key.sqpn = be24_get(((const struct ib_deth *)(pkt.bth + 1))->sqpn);

	s->flow = flow_get(f, &key, pkt.psn, &evicted);
	if (s->flow) {
		s->opcode = pkt.opcode;
		s->iter = flow_passage(f, s->flow, pkt.psn, &s->psn);
	}
	return evicted;
}

/* Fates */

/* The part of a draw that is the same for all packets of a flow. */
static uint64_t draw_flow(const struct subject *s, uint64_t seed, bool key_qpn, unsigned int salt)
{
	uint64_t h = wire_mix(seed ^ wire_mix(salt));

	h = wire_mix(h ^ s->port);
	if (!s->flow)
		return h;
	h = wire_mix(h ^ s->flow->key.class);
	return wire_mix(h ^ (key_qpn ? s->flow->key.dqpn : s->flow->ordinal));
}

/* The rest of it. */
static uint64_t draw_packet(const struct subject *s, uint64_t h)
{
	if (!s->flow)
		return wire_mix(h ^ ~s->frame_no);
	return wire_mix(wire_mix(h ^ (uint64_t)s->psn) ^ s->iter);
}

static uint64_t draw(const struct subject *s, uint64_t seed, bool key_qpn, unsigned int salt)
{
	return draw_packet(s, draw_flow(s, seed, key_qpn, salt));
}

/* The flow remembers the first part of the draws of one clause: most specifications have one. */
static void remember_draw(struct wire_flow *flow, unsigned int clause, enum fault_kind kind,
			  uint64_t draw)
{
	if (flow->drawn_for != clause) {
		flow->drawn_for = clause;
		flow->drawn = 0;
	}
	flow->draw[kind] = draw;
	flow->drawn |= 1u << kind;
}

/* Draw whether this kind of fault of the clause hits the packet. */
static inline bool drawn(const struct subject *s, const struct fault_rates *r, unsigned int clause,
			 uint64_t seed, enum fault_kind kind)
{
	struct wire_flow *flow = s->flow;

	if (!flow)
		return draw(s, seed, r->key_qpn, kind) < r->rate[kind];
	if (flow->drawn_for != clause || !(flow->drawn & 1u << kind))
		remember_draw(flow, clause, kind, draw_flow(s, seed, r->key_qpn, kind));
	return draw_packet(s, flow->draw[kind]) < r->rate[kind];
}

static inline bool hit(const struct subject *s, const struct fault_rates *r, unsigned int clause,
		       uint64_t seed, enum fault_kind kind)
{
	return r->rate[kind] == FAULT_ALWAYS || (r->rate[kind] && drawn(s, r, clause, seed, kind));
}

/* Salts of the draws that select one of several possibilities. */
enum {
	SALT_JITTER = FAULT_KIND_MAX,
	SALT_BIT,
	SALT_ID,
};

/*
 * Select a bit that the ICRC covers, so that the receiver detects the damage: from the BTH on,
 * except for the byte that switches may change.
 */
static size_t corrupt_bit(const struct subject *s, uint64_t seed, bool key_qpn, bool any)
{
	uint64_t h = draw(s, seed, key_qpn, SALT_BIT);
	size_t byte;

	if (any || !s->flow)
		return (size_t)(h % (s->len * 8));
	byte = (size_t)(h / 8 % (s->covered_len - 1));
	if (byte >= offsetof(struct ib_bth, resv8a))
		byte++;
	return (s->covered + byte) * 8 + (size_t)(h % 8);
}

static void apply_rates(const struct wire_faults *f, unsigned int clause,
			const struct subject *s, struct wire_fate *fate)
{
	const struct fault_rates *r = &f->clause[clause].rates;
	uint64_t seed = r->has_seed ? r->seed : f->seed;

	if (*r->port && strcmp(r->port, s->port_name))
		return;
	if (r->bps && (!fate->bps || r->bps < fate->bps))
		fate->bps = r->bps;
	if (!s->flow && !r->all)
		return;
	fate->drop |= hit(s, r, clause, seed, FAULT_LOSS);
	fate->dup |= hit(s, r, clause, seed, FAULT_DUP);
	if (hit(s, r, clause, seed, FAULT_CORRUPT)) {
		fate->corrupt = true;
		fate->corrupt_bit = corrupt_bit(s, seed, r->key_qpn, r->corrupt_any);
	}
	if (hit(s, r, clause, seed, FAULT_ECN)) {
		fate->ecn = true;
		fate->ecn_force |= r->ecn_force;
	}
	if (hit(s, r, clause, seed, FAULT_DELAY)) {
		uint64_t jitter = r->jitter_ns;

		if (jitter)
			jitter = draw(s, seed, r->key_qpn, SALT_JITTER) % (jitter + 1);
		fate->delay_ns += r->delay_ns + jitter;
	}
	if (hit(s, r, clause, seed, FAULT_REORDER)) {
		fate->reorder = true;
		fate->reorder_n = r->reorder_n;
		fate->hold_ns = r->hold_ns;
	}
}

static bool in(const struct fault_range *r, uint64_t v)
{
	return v >= r->lo && v <= r->hi;
}

static bool rule_matches(const struct fault_rule *r, const struct subject *s)
{
	const struct wire_flow *flow = s->flow;

	if (!r->count || !in(&r->frame, s->frame_no) ||
	    (*r->port && strcmp(r->port, s->port_name)))
		return false;
	if (r->any_frame)
		return true;
	if (!flow)
		return false;
	return (r->class == FAULT_CLASS_ANY || r->class == flow->key.class) &&
	       (r->opcode < 0 || r->opcode == s->opcode) &&
	       in(&r->qpn, flow->key.dqpn) && in(&r->qp, flow->ordinal) &&
	       ((r->psn.lo == 0 && r->psn.hi == UINT64_MAX) ||
		(s->psn >= 0 && in(&r->psn, (uint64_t)s->psn))) &&
	       in(&r->iter, s->iter);
}

static void apply_rule(const struct wire_faults *f, struct fault_rule *r,
		       const struct subject *s, struct wire_fate *fate)
{
	if (!rule_matches(r, s))
		return;
	if (r->count != UINT64_MAX)
		r->count--;
	switch (r->kind) {
	case FAULT_LOSS:
		fate->drop = true;
		break;
	case FAULT_DUP:
		fate->dup = true;
		break;
	case FAULT_CORRUPT:
		fate->corrupt = true;
		fate->corrupt_bit = corrupt_bit(s, f->seed, false, false);
		break;
	case FAULT_ECN:
		fate->ecn = true;
		break;
	case FAULT_DELAY:
		fate->delay_ns += r->delay_ns;
		break;
	default:
		fate->reorder = true;
		fate->reorder_n = r->reorder_n;
		fate->hold_ns = r->hold_ns;
		break;
	}
}

/* Other frames than RoCE have no flow: those of one port to one address share a flow id. */
static void identify(const struct wire_faults *f, const struct subject *s, struct wire_fate *fate)
{
	struct wire_flow *flow = s->flow;

	if (flow) {
		if (!flow->id)
			flow->id = draw_flow(s, f->seed, false, SALT_ID);
		fate->flow_id = flow->id;
		fate->turn = (uint64_t)s->psn + s->iter;
	} else {
		uint64_t h = draw_flow(s, f->seed, false, SALT_ID);

		if (s->len >= ETH_ADDR_LEN)
			h = wire_mix(h ^ (uint64_t)be32_get(s->frame) << 16 ^ be16_get(s->frame + 4));
		fate->flow_id = h;
		fate->turn = s->frame_no;
	}
	fate->packet_id = draw_packet(s, fate->flow_id);
}

unsigned int wire_faults_decide(struct wire_faults *f, unsigned int port_index,
				const char *port_name, const uint8_t *frame, size_t len,
				struct wire_fate *fate)
{
	struct subject s = { .port = port_index, .port_name = port_name,
			     .frame = frame, .len = len };
	unsigned int evicted = look(f, &s);
	unsigned int i;

	memset(fate, 0, sizeof(*fate));
	fate->flow = s.flow;
	identify(f, &s, fate);
	for (i = 0; i < f->n_clauses; i++)
		if (f->clause[i].is_rule)
			apply_rule(f, &f->clause[i].rule, &s, fate);
		else
			apply_rates(f, i, &s, fate);
	return evicted;
}

/* ECN */

static bool mark_ipv4(struct ipv4_hdr *ip, bool force)
{
	uint16_t before = be16_get(&ip->ver_ihl);
	uint32_t sum;

	if ((ip->tos & IP_ECN_MASK) == IP_ECN_CE ||
	    (!force && (ip->tos & IP_ECN_MASK) == IP_ECN_NOT_ECT))
		return false;
	ip->tos |= IP_ECN_CE;
	/* Update the checksum by the difference, as routers do: a wrong one remains wrong. */
	sum = (uint16_t)~be16_get(ip->check) + (uint32_t)(uint16_t)~before +
	      be16_get(&ip->ver_ihl);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	be16_put(ip->check, (uint16_t)~sum);
	return true;
}

bool wire_mark_ce(uint8_t *frame, size_t len, bool force)
{
	size_t off = ETH_HDR_LEN;
	uint16_t type;

	if (len < off)
		return false;
	type = be16_get(frame + off - 2);
	if (type == ETH_TYPE_VLAN) {
		off += ETH_VLAN_LEN;
		if (len < off)
			return false;
		type = be16_get(frame + off - 2);
	}
	if (type == ETH_TYPE_IPV4 && len >= off + sizeof(struct ipv4_hdr))
		return mark_ipv4((struct ipv4_hdr *)(frame + off), force);
	if (type == ETH_TYPE_IPV6 && len >= off + sizeof(struct ipv6_hdr)) {
		uint8_t *ecn = frame + off + 1;	/* in bits 5:4 */

		if ((*ecn & 0x30) == 0x30 || (!force && !(*ecn & 0x30)))
			return false;
		*ecn |= 0x30;
		return true;
	}
	return false;
}
