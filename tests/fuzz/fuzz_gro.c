// SPDX-License-Identifier: GPL-2.0
/*
 * Frames for a queue that merges (SKUA_CAP_GRO), in any order, of any size, odd ones among
 * them; receive WQEs of all sizes; commands, doorbells, errors and turns that end in between.
 * A second device gets all the same and does not merge: what the first one tells, cut into
 * frames again, must be what the second one tells, to the byte, the flags and the counters.
 *
 * In the other half of the inputs there is one device, whose host takes memory away and
 * changes WQEs while they are read: each WQE is reported once and in order.
 */
#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "fuzz_input.h"
#include "port.h"
#include "tcp_frames.h"

#define SLOT		2048u
#define LOG_MAX		6
#define SLOTS		(1u << LOG_MAX)
#define QUEUES		2
#define FLOWS		6
#define RULE		1
#define UNTOUCHED	0xee

/**
 * struct queue - a receive queue, on both devices alike
 * @qp: by device
 * @scq: by device
 * @rcq: by device
 * @rx: SLOTS slots, at the same address of both devices
 * @tx: a frame to send
 * @most: frames that are merged
 * @posted: receive WQEs
 * @taken: of them reported
 */
static struct queue {
	struct mini_qp qp[2];
	struct mini_cq scq[2], rcq[2];
	uint64_t rx, tx;
	uint32_t most;
	uint32_t posted, taken;
} queue[QUEUES];

static struct rig rig[2];
static struct {
	struct flow f;
	size_t payload;
} flows[FLOWS];
/* Devices of this input; completions by which the first one told less. */
static unsigned int devices;
static uint64_t spared;
/* A completion was lost, doubled, or says nonsense; it may never come. */
static bool faulty;
static struct fuzz_race race;

static bool alone(void)
{
	return devices == 1;
}

static uint8_t *slot(unsigned int d, const struct queue *q, uint32_t index)
{
	return fake_ptr(&rig[d].f, q->rx + (uint64_t)(index % (1u << q->qp[0].log_rq)) * SLOT);
}

static void run(void)
{
	for (unsigned int d = 0; d < devices; d++)
		fake_run(&rig[d].f);
}

/* --- what came of it --- */

static bool untouched(const uint8_t *p, size_t from)
{
	for (size_t i = from; i < SLOT; i++) {
		if (p[i] != UNTOUCHED)
			return false;
	}
	return true;
}

static uint32_t flags_of(const struct skua_cqe *cqe)
{
	return le32_to_cpu(cqe->own) & ~(SKUA_CQE_PHASE | SKUA_CQE_F_GRO);
}

static bool same_info(const struct skua_cqe *a, const struct skua_cqe *b)
{
	struct skua_cqe_eth x = a->eth;

	x.gro_segs = 0;
	x.gro_size = 0;
	x.gro_hdr = 0;
	return !memcmp(&x, &b->eth, sizeof(x)) && flags_of(a) == flags_of(b);
}

/* Merged frames, and what the other device tells of each. */
static void check_row(struct queue *q, const struct skua_cqe *a, const struct merged *m)
{
	uint32_t first = skua_cqe_wqe_index(a);
	uint8_t out[SLOT + 8];

	must(m->segs >= 2 && m->segs <= q->most, "merged: number of frames");
	must(m->hdr <= GRO_HDR_MAX && m->size && m->size <= SLOT, "merged: sizes");
	spared += m->segs - 1;
	/* Where WQEs change, frames go to other places. */
	if (alone())
		return;
	must(!whole_fault(m, slot(0, q, first)), "merged: headers");
	for (uint32_t i = 0; i < m->segs; i++) {
		const uint8_t *own = slot(0, q, first + i);
		size_t len = cut_segment(m, slot(0, q, first), own, i, out);
		struct skua_cqe b;

		must(untouched(own, i ? len - m->hdr : len), "written behind the frame");
		must(mini_cq_next(&rig[1].m, &q->rcq[1], &b), "merged: more frames than came");
		must(skua_cqe_status(&b) == SKUA_CQE_OK, "merged: one that has an error");
		must(skua_cqe_wqe_index(&b) == ((first + i) & 0xffff), "merged: another WQE");
		must(le32_to_cpu(b.byte_len) == len && same_info(a, &b), "merged: another frame");
		must(!memcmp(out, slot(1, q, first + i), len), "merged: other bytes");
	}
}

static void check_one(struct queue *q, const struct skua_cqe *a)
{
	struct skua_cqe b;

	must(!a->eth.gro_segs && !a->eth.gro_size && !a->eth.gro_hdr, "not merged, says how");
	if (alone())
		return;
	must(mini_cq_next(&rig[1].m, &q->rcq[1], &b), "more frames than came");
	must(a->what == b.what && a->byte_len == b.byte_len, "another completion");
	must(flags_of(a) == flags_of(&b) && same_info(a, &b), "another completion's facts");
	must(!memcmp(slot(0, q, skua_cqe_wqe_index(a)), slot(1, q, skua_cqe_wqe_index(a)), SLOT),
	     "other bytes");
}

/* Nothing is held back: all turns are over. */
static void check_queue(struct queue *q)
{
	struct skua_cqe cqe;

	while (mini_cq_next(&rig[0].m, &q->rcq[0], &cqe)) {
		struct merged m = {
			.segs = 1,
			.size = le16_to_cpu(cqe.eth.gro_size),
			.hdr = le16_to_cpu(cqe.eth.gro_hdr),
			.len = le32_to_cpu(cqe.byte_len),
		};
		uint32_t index = skua_cqe_wqe_index(&cqe);

		must(le32_to_cpu(cqe.qpn) == q->qp[0].qpn, "completion of another queue");
		must(skua_cqe_opcode(&cqe) == SKUA_CQE_RECV_ETH, "completion of no frame");
		if (le32_to_cpu(cqe.own) & SKUA_CQE_F_GRO) {
			must(skua_cqe_status(&cqe) == SKUA_CQE_OK, "merged, with an error");
			m.segs = le16_to_cpu(cqe.eth.gro_segs);
			check_row(q, &cqe, &m);
		} else {
			check_one(q, &cqe);
		}
		must(faulty || index == (q->taken & 0xffff), "a WQE twice, or none");
		q->taken += (uint16_t)(index - q->taken + m.segs);
		must(faulty || q->posted - q->taken <= SLOTS, "a WQE that was not posted");
	}
	must(alone() || !mini_cq_next(&rig[1].m, &q->rcq[1], &cqe), "fewer frames than came");
}

static void check_sent(struct queue *q)
{
	struct skua_cqe a, b;

	while (mini_cq_next(&rig[0].m, &q->scq[0], &a)) {
		must(alone() || (mini_cq_next(&rig[1].m, &q->scq[1], &b) && a.what == b.what),
		     "sent otherwise");
	}
	must(alone() || !mini_cq_next(&rig[1].m, &q->scq[1], &b), "sent less");
}

static void check(void)
{
	static const enum skua_counter same[] = {
		SKUA_CNT_ETH_RX_PKTS, SKUA_CNT_ETH_RX_BYTES, SKUA_CNT_ETH_RX_MCAST,
		SKUA_CNT_ETH_RX_NO_BUF, SKUA_CNT_ETH_RX_TOO_LONG, SKUA_CNT_ETH_RX_FILTERED,
		SKUA_CNT_ETH_RX_CSUM_ERR, SKUA_CNT_LOOPBACK_PKTS, SKUA_CNT_LOOPBACK_DROP,
	};

	run();
	for (unsigned int k = 0; k < QUEUES; k++) {
		check_queue(&queue[k]);
		check_sent(&queue[k]);
	}
	must(mini_counter(&rig[0].m, SKUA_CNT_ETH_RX_GRO_SEGS) -
	     mini_counter(&rig[0].m, SKUA_CNT_ETH_RX_GRO_PKTS) == spared, "merged: counters");
	for (unsigned int i = 0; i < sizeof(same) / sizeof(same[0]) && !alone(); i++)
		must(mini_counter(&rig[0].m, same[i]) == mini_counter(&rig[1].m, same[i]),
		     "another counter");
}

/* --- frames --- */

static void arrives(const uint8_t *frame, size_t len)
{
	for (unsigned int d = 0; d < devices; d++)
		fake_rx(&rig[d].f, frame, len);
}

/* Some of a connection's frames; one of them may be odd. */
static void frames(struct input *in)
{
	uint8_t which = (uint8_t)take(in, 1), how = (uint8_t)take(in, 1), frame[SLOT];
	unsigned int n = 1 + which / FLOWS % 20, odd = how & 0x0c ? (uint32_t)take(in, 1) % n : n;
	struct flow *f = &flows[which % FLOWS].f;

	for (unsigned int i = 0; i < n; i++) {
		bool last = i == n - 1;
		size_t payload = last && how & 1 ? (size_t)take(in, 2) % 1500 :
				 flows[which % FLOWS].payload;
		size_t len = segment(frame, f, payload, TCP_ACK | (last && how & 2 ? TCP_PSH : 0));

		/* Anything of the headers, with sums that fit, or that do not. */
		if (i == odd) {
			frame[(uint32_t)take(in, 1) % len] ^= (uint8_t)take(in, 1);
			if (how & 4 && l4_of(frame) + 20 <= len)
				fill(frame, len);
		}
		if (i == odd && how & 0x10) {
			uint32_t more = (uint32_t)take(in, 1);

			memset(frame + len, 0, more % 16);
			len += more % 16;
			len -= more >> 4;
		}
		arrives(frame, len);
		if (how & 0x80 && i == n / 2)
			run();
	}
	/* The connection's peer sends some of it again. */
	if (how & 0x20)
		f->seq -= (uint32_t)take(in, 2);
}

static void any_frame(struct input *in)
{
	uint8_t frame[300] = { 0 };
	size_t len = 14 + (size_t)take(in, 1);

	take_bytes(in, frame, 16 + len % 64);
	if (len & 1)
		memcpy(frame, own, sizeof(own));
	arrives(frame, len);
}

/* A datagram that is cut, to the own address: it comes back in pieces, and is merged. */
static void send_large(struct queue *q, struct input *in)
{
	uint32_t mss = (uint32_t)take(in, 2) % 1500, len = (uint32_t)take(in, 2) % 20000;
	uint8_t pick = (uint8_t)take(in, 1), frame[20000 + 100];
	struct flow f = flows[pick % FLOWS].f;
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(SKUA_WQE_F_SIGNALED | SKUA_WQE_F_LSO |
					  SKUA_WQE_F_L3_CSUM | SKUA_WQE_F_L4_CSUM),
		.ctrl.eth = le32_encode_bits(mss, SKUA_WQE_ETH_MSS),
	};
	size_t bytes = segment(frame, &f, len, TCP_ACK | (pick & 0x80 ? TCP_PSH : 0));

	if (mss < 50)
		return;
	sge(&w.sge[0], q->tx, SKUA_RESERVED_LKEY, (uint32_t)bytes);
	for (unsigned int d = 0; d < devices; d++) {
		memcpy(fake_ptr(&rig[d].f, q->tx), frame, bytes);
		mini_post(&rig[d].m, &q->qp[d], &w, 2);
		mini_ring(&rig[d].m, &q->qp[d]);
	}
	check();
}

/* --- the guest --- */

static void post(struct queue *q, struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);
	uint32_t n = 1 + pick % SLOTS, len = pick & 0x40 ? (uint32_t)take(in, 2) % SLOT : SLOT;
	uint32_t nsge = 1 + (pick & 0x80 ? (uint32_t)take(in, 1) : 0) % (1u << q->qp[0].log_stride);

	for (; n && q->posted - q->taken < 1u << q->qp[0].log_rq; n--, q->posted++) {
		uint64_t at = q->rx + (uint64_t)(q->posted % (1u << q->qp[0].log_rq)) * SLOT;
		struct skua_wqe_data s[8];
		uint32_t left = len;

		for (uint32_t k = 0; k < nsge; k++) {
			uint32_t piece = k == nsge - 1 ? left : left / 3;

			sge(&s[k], at, SKUA_RESERVED_LKEY, piece);
			at += piece;
			left -= piece;
		}
		for (unsigned int d = 0; d < devices; d++) {
			memset(slot(d, q, q->posted), UNTOUCHED, SLOT);
			mini_recv(&rig[d].m, &q->qp[d], s, nsge);
		}
	}
}

/* From whatever became of it back to work. */
static void restart(struct queue *q)
{
	check();
	for (unsigned int d = 0; d < devices; d++) {
		must(!mini_qp_modify(&rig[d].m, &q->qp[d], SKUA_QP_RESET, 0, NULL), "no RESET");
		memset(fake_ptr(&rig[d].f, q->qp[d].dbr), 0, sizeof(struct skua_qp_dbr));
		q->qp[d].sq_pi = 0;
		q->qp[d].sq_told = 0;
		q->qp[d].rq_pi = 0;
		mini_eth_to_rts(&rig[d].m, &q->qp[d]);
	}
	q->posted = 0;
	q->taken = 0;
}

static void rule(struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);
	struct skua_cmd_create_flow_in make = {
		.index = cpu_to_le32(RULE),
		.flow.flags = cpu_to_le32(pick & 0x40 ? SKUA_FLOW_SNIFFER : 0),
	};

	be16_put((uint8_t *)&make.flow.value.sport, flows[pick % FLOWS].f.port);
	memset(&make.flow.mask.sport, 0xff, 2);
	for (unsigned int d = 0; d < devices; d++) {
		make.flow.dest = cpu_to_le32(queue[1].qp[d].qpn);
		if (pick & 0x80)
			mini_index(&rig[d].m, SKUA_CMD_DESTROY_FLOW, RULE, NULL, 0);
		else
			mini_cmd(&rig[d].m, SKUA_CMD_CREATE_FLOW, &make, sizeof(make), NULL, 0);
	}
}

static void port(struct input *in)
{
	uint8_t pick = (uint8_t)take(in, 1);
	struct skua_cmd_modify_port_in mod = {
		.mask = cpu_to_le32(pick & 1 ? SKUA_PORT_M_MTU : SKUA_PORT_M_PROMISC),
		.mtu = cpu_to_le16(pick & 1 ? 68 + (uint32_t)take(in, 2) % 9000 : 0),
		.promisc = cpu_to_le32(pick >> 1 & 1),
	};

	for (unsigned int d = 0; d < devices; d++)
		mini_ok(&rig[d].m, SKUA_CMD_MODIFY_PORT, &mod, sizeof(mod));
}

/* One of the next frames meets a fault of the device's, on both. */
static void fault(struct input *in)
{
	static const char *const kinds[] = { "dma", "lose", "twice", "long" };
	uint8_t pick = (uint8_t)take(in, 1);
	char spec[40], err[80];

	if (alone())
		return;
	snprintf(spec, sizeof(spec), "off;ETH_RECV@%u:%s", 1 + pick / 4, kinds[pick % 4]);
	for (unsigned int d = 0; d < devices; d++)
		must(!skua_dev_cmd_fault(rig[d].f.dev, spec, err, sizeof(err)), err);
	faulty = true;
}

/* Memory of slots, or of the ring, goes away, or all is there again. */
static void hole(const struct queue *q, struct input *in)
{
	struct fake *f = &rig[0].f;
	uint32_t at = (uint32_t)take(in, 2), len = 1 + (uint32_t)take(in, 1);

	if (!alone())
		return;
	if (f->hole[FAKE_HOLES - 1].to || !at)
		fake_no_holes(f);
	else if (at & 1)
		fake_hole(f, q->rx + at % ((uint64_t)SLOT << q->qp[0].log_rq), len);
	else
		fake_hole(f, q->qp[0].rq + at % (16u << (q->qp[0].log_rq + q->qp[0].log_stride)),
			  len % 32);
}

static void each(enum skua_cmd_op op, uint32_t index, size_t out)
{
	for (unsigned int d = 0; d < devices; d++)
		mini_index(&rig[d].m, op, index, NULL, out);
}

static void step(struct input *in)
{
	uint8_t act = (uint8_t)take(in, 1);
	struct queue *q = &queue[act >> 7];

	switch (act & 0x0f) {
	case 5:
		any_frame(in);
		break;
	case 6 ... 7:
		post(q, in);
		break;
	case 8:
		port(in);
		break;
	case 9:
		if (act & 0x40)
			rule(in);
		else
			each(SKUA_CMD_QUERY_QP, q->qp[0].qpn, sizeof(struct skua_cmd_query_qp_out));
		break;
	case 10:
		if (act & 0x40)
			restart(q);
		else
			for (unsigned int d = 0; d < devices; d++)
				mini_qp_modify(&rig[d].m, &q->qp[d], SKUA_QP_ERR, 0, NULL);
		break;
	case 11:
		fault(in);
		break;
	case 12:
		send_large(q, in);
		break;
	case 13:
		for (unsigned int d = 0; d < devices; d++)
			mini_cq_arm(&rig[d].m, &q->rcq[d], act & 0x40);
		break;
	case 14:
		if (act & 0x40 && alone())
			fuzz_race(&race, &rig[0].f, in);
		else
			hole(q, in);
		break;
	case 15:
		check();
		break;
	default:
		frames(in);
		break;
	}
}

/* --- devices --- */

static void make_queue(struct queue *q, uint8_t size, uint8_t most)
{
	uint32_t log_rq = size % (LOG_MAX + 1), log_stride = size / (LOG_MAX + 1) % 3;

	*q = (struct queue){ .most = most % 64 };
	for (unsigned int d = 0; d < devices; d++) {
		struct mini *m = &rig[d].m;
		struct skua_cmd_create_qp_in in;

		mini_cq_create(m, &q->scq[d], 5);
		mini_cq_create(m, &q->rcq[d], log_rq + 2);
		in = mini_qp_in(m, &q->qp[d], SKUA_QP_RAW_ETH, &q->scq[d], &q->rcq[d], 4, log_rq,
				log_stride);
		in.sq.flags |= cpu_to_le32(size & 0x80 ? SKUA_QP_F_KEEP_VLAN : 0);
		le32p_replace_bits(&in.rq.flags, d ? 0 : q->most, SKUA_RQ_GRO);
		mini_ok(m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
		mini_eth_to_rts(m, &q->qp[d]);
		fuzz_race_at(&race, q->qp[0].rq, 16u << (log_rq + log_stride));
		q->rx = fake_alloc(m->f, (size_t)SLOT << log_rq, 64);
		q->tx = fake_alloc(m->f, 32768, 64);
	}
}

static void open_all(struct input *in)
{
	static const struct skua_dev_cfg cfg = { .mac = { 2, 0, 0, 0, 0, 1 }, .onchip = 8 };
	struct skua_cmd_modify_port_in dflt = {
		.mask = cpu_to_le32(SKUA_PORT_M_DFLT | SKUA_PORT_M_MTU),
		.mtu = cpu_to_le16(1600),
	};
	uint8_t mode = (uint8_t)take(in, 1), sizes[2], most[2];
	char err[80];

	take_bytes(in, sizes, 2);
	take_bytes(in, most, 2);
	devices = mode & 1 ? 1 : 2;
	spared = 0;
	faulty = false;
	race = (struct fuzz_race){ 0 };
	fake_pool();
	for (unsigned int d = 0; d < devices; d++) {
		fake_init(&rig[d].f, &cfg);
		mini_up(&rig[d].m, &rig[d].f);
		must(!skua_dev_cmd_fault(rig[d].f.dev, "off", err, sizeof(err)), err);
	}
	for (unsigned int k = 0; k < QUEUES; k++)
		make_queue(&queue[k], sizes[k], most[k]);
	for (unsigned int d = 0; d < devices; d++) {
		dflt.dflt = cpu_to_le32(queue[0].qp[d].qpn);
		mini_ok(&rig[d].m, SKUA_CMD_MODIFY_PORT, &dflt, sizeof(dflt));
	}
	for (unsigned int k = 0; k < FLOWS; k++) {
		flows[k].f = (struct flow){
			.v6 = k & 1, .stamp = k & 2, .tagged = k > 3, .port = (uint16_t)(100 + k),
			.id = (uint16_t)(0xfff0 + k), .seq = 0xfffff000 + k,
		};
		flows[k].payload = k == 5 ? 1400 : 1 + (mode >> 1) * (k + 1);
	}
	/* Rings full of WQEs, unless it is to be otherwise. */
	for (unsigned int k = 0; k < QUEUES && !(mode & 0x80); k++)
		post(&queue[k], &(struct input){ (const uint8_t [1]){ SLOTS - 1 }, 1 });
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	open_all(&in);
	while (in.left)
		step(&in);
	check();
	fake_no_holes(&rig[0].f);
	/* Whatever was posted is reported. */
	for (unsigned int k = 0; k < QUEUES; k++) {
		for (unsigned int d = 0; d < devices; d++)
			must(!mini_qp_modify(&rig[d].m, &queue[k].qp[d], SKUA_QP_ERR, 0, NULL),
			     "no ERR");
	}
	check();
	for (unsigned int k = 0; k < QUEUES; k++)
		must(faulty || queue[k].taken == queue[k].posted, "a WQE that is never reported");
	for (unsigned int d = 0; d < devices; d++) {
		must(rig[d].f.dev->state == DEV_OPERATIONAL, "the device died");
		fake_exit(&rig[d].f);
	}
	return 0;
}
