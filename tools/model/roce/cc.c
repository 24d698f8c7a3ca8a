// SPDX-License-Identifier: GPL-2.0
/* Congestion control: parameters, notification point, and the common part of the algorithms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../cmd.h"
#include "cc.h"
#include "sr.h"

/* Number of addresses whose last CNP is remembered; others may be sent a CNP at once. */
#define CNP_PLACES	64

/**
 * struct cc - congestion control of the device
 * @param: by enum skua_cc_param
 * @cnp_time: time of the last CNP, 0: there was none
 * @to: likewise for some addresses, by a hash of the address
 */
struct cc {
	uint32_t param[SKUA_CC_PARAMS];
	uint64_t cnp_time;
	struct {
		uint8_t gid[16];
		uint64_t time;
	} to[CNP_PLACES];
};

static const struct {
	uint32_t min, max, dflt;
} params[] = {
#define X(name, user, min, max, dflt, text) { min, max, dflt },
	SKUA_CC_PARAM_TABLE(X)
#undef X
};

_Static_assert(SKUA_CC_PARAMS <= SKUA_CC_PARAMS_MAX, "parameters fit QUERY_CC");

int cc_init(struct skua_dev *dev)
{
	dev->cc = calloc(1, sizeof(*dev->cc));
	return dev->cc ? 0 : -ENOMEM;
}

void cc_reset(struct skua_dev *dev)
{
	memset(dev->cc, 0, sizeof(*dev->cc));
	for (unsigned int i = 0; i < SKUA_CC_PARAMS; i++)
		dev->cc->param[i] = params[i].dflt;
}

void cc_exit(struct skua_dev *dev)
{
	free(dev->cc);
}

struct onchip cc_onchip(const struct skua_dev *dev)
{
	return (struct onchip){ .num = CNP_PLACES, .bytes = sizeof(*dev->cc) };
}

/* --- parameters --- */

uint32_t cc_param(const struct turn *t, enum skua_cc_param param)
{
	return t->dev->cc->param[param];
}

int cmd_query_cc(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_cc_out *out = cmd->out;

	out->count = cpu_to_le32(SKUA_CC_PARAMS);
	for (unsigned int i = 0; i < SKUA_CC_PARAMS; i++)
		out->value[i] = cpu_to_le32(dev->cc->param[i]);
	return SKUA_CMD_ST_OK;
}

int cmd_modify_cc(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_cc_in *in = cmd->in;
	uint32_t param = le32_to_cpu(in->param), value = le32_to_cpu(in->value);

	if (param >= SKUA_CC_PARAMS || value < params[param].min || value > params[param].max)
		return SKUA_CMD_ST_BAD_PARAM;
	if (param == SKUA_CC_RP_ALGORITHM && value == SKUA_CC_DELAY &&
	    !dev_has(dev, SKUA_CAP_CC_DELAY))
		return SKUA_CMD_ST_BAD_PARAM;
	dev->cc->param[param] = value;
	return SKUA_CMD_ST_OK;
}

/* --- algorithms --- */

/* The context may come from memory of the host: NULL if it names none. */
static const struct cc_ops *ops_of(const struct turn *t)
{
	static const struct cc_ops *const all[SKUA_CC_ALGORITHMS] = {
		[SKUA_CC_DCQCN] = &cc_dcqcn,
		[SKUA_CC_DELAY] = &cc_delay,
	};
	uint32_t which = le32_get_bits(t->sqc->cc.flags, SKUA_CC_ALGORITHM);

	return which < SKUA_CC_ALGORITHMS ? all[which] : NULL;
}

void cc_begin(struct turn *t)
{
	struct skua_cc *cc = &t->sqc->cc;

	*cc = (struct skua_cc){
		.flags = cc->flags & cpu_to_le32(SKUA_CC_ALGORITHM),
		.cnp_time = cc->cnp_time,
		.una = t->sqc->una_psn,
	};
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_CC_NEW);
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_CC);
}

void cc_end(struct turn *t)
{
	t->sqc->cc.rate = 0;
	t->sqc->cc.window = 0;
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_CC);
	pace_set(t->dev, t->qp);
	req_kick(t);
}

bool cc_open(struct turn *t, uint32_t bytes, bool measured)
{
	struct skua_cc *cc = &t->sqc->cc;
	uint32_t rtt = le32_to_cpu(cc->rtt), least = le32_to_cpu(cc->rtt_least);
	uint64_t window = le32_to_cpu(cc->window) + (uint64_t)bytes, max = cc_window_max(t);

	cc->window = cpu_to_le32((uint32_t)(window < max ? window : max));
	if (measured && (!least || rtt < least))
		cc->rtt_least = cc->rtt;
	return measured && least && rtt > least && rtt - least > least / 2;
}

void cc_set_rate(struct turn *t, uint32_t kbps)
{
	t->sqc->cc.rate = cpu_to_le32(kbps);
	pace_set(t->dev, t->qp);
}

uint32_t cc_window_max(const struct turn *t)
{
	uint32_t psns = sr_on(t) ? sr_window(t) : ENGINE_WINDOW;

	return (psns > SKUA_LRC_PSNS ? SKUA_LRC_PSNS : psns) * t->mtu;
}

/* --- events of a QP --- */

void cc_start(struct turn *t)
{
	uint32_t which = dev_has(t->dev, SKUA_CAP_DCQCN) ? cc_param(t, SKUA_CC_RP_ALGORITHM) : 0;
	const struct cc_ops *ops;

	if (!t->reliable || !which)
		return;
	t->sqc->cc.flags = le32_encode_bits(which, SKUA_CC_ALGORITHM);
	ops = ops_of(t);
	if (!ops)
		return;
	t->sqc->valid |= cpu_to_le32(SKUA_SQC_CC_NEW | (ops->read ? SKUA_SQC_CC_READ : 0) |
				     (ops->ect ? SKUA_SQC_ECT : 0));
}

/* Only when the QP sends a request: one that only responds needs no initial window. */
void cc_first_request(struct turn *t)
{
	const struct cc_ops *ops;

	if (!turn_need_sq_rest(t))
		return;
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_CC_NEW);
	ops = ops_of(t);
	if (ops)
		ops->start(t);
}

void cc_first_read(struct turn *t)
{
	const struct cc_ops *ops;

	if (!turn_need_sq_rest(t))
		return;
	t->sqc->valid &= ~cpu_to_le32(SKUA_SQC_CC_READ);
	ops = ops_of(t);
	if (ops && ops->read)
		ops->read(t);
	ctx_dirty(t->dev, t->sqc);
}

/* Measure the round trip of packets that were sent once only. */
static bool measure(struct turn *t)
{
	struct skua_cc *cc = &t->sqc->cc;
	uint64_t then = le64_to_cpu(cc->rtt_time), took = t->now - then;

	if (!then || ib_psn_diff(le32_to_cpu(t->sqc->una_psn), le32_to_cpu(cc->rtt_psn)) <= 0)
		return false;
	cc->rtt_time = 0;
	if (then > t->now)
		return false;
	cc->rtt = cpu_to_le32(took < UINT32_MAX ? (uint32_t)took + 1 : UINT32_MAX);
	return true;
}

void cc_progress(struct turn *t)
{
	const struct cc_ops *ops = ops_of(t);
	uint32_t una = le32_to_cpu(t->sqc->una_psn);
	uint64_t bytes = (uint64_t)psn_sub(una, le32_to_cpu(t->sqc->cc.una)) * t->mtu;
	bool measured = measure(t);

	t->sqc->cc.una = cpu_to_le32(una);
	if (ops && ops->acked)
		ops->acked(t, bytes < UINT32_MAX / 4 ? (uint32_t)bytes : UINT32_MAX / 4, measured);
}

void cc_note_sent(struct turn *t, uint32_t psn)
{
	struct skua_cc *cc = &t->sqc->cc;

	if (cc->rtt_time || sr_in_loss(t))
		return;
	cc->rtt_psn = cpu_to_le32(psn);
	cc->rtt_time = cpu_to_le64(t->now);
}

void cc_note_again(struct turn *t)
{
	t->sqc->cc.rtt_time = 0;
}

void cc_timeout(struct turn *t)
{
	const struct cc_ops *ops = cc_on(t) ? ops_of(t) : NULL;

	if (ops && ops->timeout)
		ops->timeout(t);
}

void cc_turn(struct turn *t)
{
	const struct cc_ops *ops = ops_of(t);

	if (ops && ops->turn)
		ops->turn(t);
}

void cc_sent(struct turn *t, uint64_t bytes)
{
	const struct cc_ops *ops = cc_on(t) ? ops_of(t) : NULL;

	if (ops && ops->sent && bytes)
		ops->sent(t, bytes);
}

void cc_wait(struct turn *t)
{
	const struct cc_ops *ops = cc_on(t) ? ops_of(t) : NULL;
	uint64_t next = ops && ops->next ? ops->next(t) : 0;

	if (next <= t->now || next >= le64_to_cpu(t->sqc->rate_deadline))
		return;
	t->sqc->rate_deadline = cpu_to_le64(next);
	pace_arm(t->dev, t->qp);
}

/* --- CNPs --- */

void cc_rx_cnp(struct turn *t)
{
	const struct cc_ops *ops;

	if (!turn_need_sq_rest(t))
		return;
	ops = ops_of(t);
	if (ops && ops->cnp && ops->cnp(t)) {
		turn_count(t, SKUA_CNT_RP_CNP_HANDLED);
		ctx_dirty(t->dev, t->sqc);
	} else {
		turn_count(t, SKUA_CNT_RP_CNP_IGNORED);
	}
}

/* Has the minimum time between CNPs passed? If so, it begins anew. */
static bool cnp_due(uint64_t *last, uint64_t now, uint64_t between)
{
	if (*last && *last <= now && now - *last < between)
		return false;
	*last = now;
	return true;
}

static bool cnp_due_ip(struct turn *t, uint64_t between)
{
	const uint8_t *gid = t->sqc->attr.av.dgid;
	struct cc *cc = t->dev->cc;
	unsigned int at = 0;

	for (unsigned int i = 0; i < 16; i++)
		at = at * 31 + gid[i];
	at %= CNP_PLACES;
	if (memcmp(cc->to[at].gid, gid, 16)) {
		memcpy(cc->to[at].gid, gid, 16);
		cc->to[at].time = 0;
	}
	return cnp_due(&cc->to[at].time, t->now, between);
}

static bool cnp_due_qp(struct turn *t, uint64_t between)
{
	uint64_t last = le64_to_cpu(t->sqc->cc.cnp_time);

	if (!cnp_due(&last, t->now, between))
		return false;
	t->sqc->cc.cnp_time = cpu_to_le64(last);
	ctx_dirty(t->dev, t->sqc);
	return true;
}

static void send_cnp(struct turn *t)
{
	uint32_t prio = cc_param(t, SKUA_CC_NP_CNP_PRIO);
	uint32_t dest = le32_to_cpu(t->sqc->attr.dest_qpn);
	const struct skua_pkt_bth bth = {
		.opcode = IB_OPCODE_CNP,
		.pkey = IB_PKEY_DEFAULT,
		.dqpn = dest,
		.becn = true,
		.migreq = true,
	};
	struct skua_pkt_addr addr;
	struct skua_pkt_build b;

	if (!tx_path(t, &t->sqc->attr.av, dest, &addr))
		return;
	addr.tclass = (uint8_t)(cc_param(t, SKUA_CC_NP_CNP_DSCP) << 2);
	if (addr.vlan && cc_param(t, SKUA_CC_NP_CNP_PRIO_MODE))
		addr.tci = (uint16_t)((addr.tci & 0x1fff) | prio << 13);
	if (skua_pkt_build_start(&b, tx_frame(t), sizeof(t->dev->engine->frame), &addr, &bth))
		return;
	memset(b.payload, 0, IB_CNP_PAYLOAD_LEN);
	turn_count(t, SKUA_CNT_NP_CNP_SENT);
	tx_finish(t, &b, IB_CNP_PAYLOAD_LEN);
}

/* Datagrams, and QPs that are not connected yet, have no peer to which a CNP could be sent. */
void cc_rx_ce(struct turn *t, const struct skua_pkt *pkt)
{
	uint64_t between = cc_param_ns(t, SKUA_CC_NP_MIN_TIME_BETWEEN_CNPS);
	uint64_t now = t->now ? t->now : 1;
	bool due;

	if (!dev_has(t->dev, SKUA_CAP_DCQCN) || pkt->opcode == IB_OPCODE_CNP ||
	    qp_is_datagram(t->qp) || !turn_need_sq_rest(t))
		return;
	/* There is no room for the CNP; the next marked packet causes another attempt. */
	if (tx_peer_waits(t)) {
		t->full = false;
		return;
	}
	if (cc_param(t, SKUA_CC_NP_CNP_SCOPE) == SKUA_CNP_PER_PORT)
		due = cnp_due(&t->dev->cc->cnp_time, now, between);
	else if (cc_param(t, SKUA_CC_NP_CNP_SCOPE) == SKUA_CNP_PER_IP)
		due = cnp_due_ip(t, between);
	else
		due = cnp_due_qp(t, between);
	if (due)
		send_cnp(t);
}
