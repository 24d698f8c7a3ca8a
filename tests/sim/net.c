// SPDX-License-Identifier: GPL-2.0
/* Devices, their wire, and connections between them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce/pkt.h"
#include "sim.h"
#include "wire/priv.h"

/* Of a device: contexts and rings of each connection, and what there is without any. */
#define MEM_BASE	(4u << 20)
#define MEM_QP		4096u
#define MEM_WQE		256u
/* Wrong things that are told of. */
#define WRONG_TOLD	10

void sim_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("sim: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

void sim_wrong(struct sim *sim, const char *fmt, ...)
{
	va_list ap;

	if (++sim->wrong > WRONG_TOLD)
		return;
	fflush(stdout);
	fprintf(stderr, "sim: wrong at %llu ns: ", (unsigned long long)(sim->now - sim->start));
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void *zalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		sim_die("out of memory");
	return p;
}

/* --- the device's way to the wire --- */

static void net_send(void *priv, const void *frame, size_t len)
{
	wire_port_send(priv, frame, len);
}

static void net_send_pending(void *priv, void *frame, size_t len)
{
	wire_port_send_pending(priv, frame, len);
}

static void *net_frame(void *priv, size_t size)
{
	return wire_port_frame(priv, size);
}

static bool net_full(void *priv, const uint8_t dmac[6])
{
	return wire_port_full(priv, dmac);
}

static const struct skua_wire_ops net_ops = {
	.send = net_send,
	.send_pending = net_send_pending,
	.frame = net_frame,
	.full = net_full,
};

static void net_rx(void *priv, void *frame, size_t len, bool icrc_pending)
{
	struct sim_nic *nic = priv;
	struct sim *sim = nic->sim;

	sim_touch(nic);
	if (sim->opt.judge && !nic->again)
		judge_received(&nic->f.judge, frame, len, sim->now);
	nic->again = false;
	if (sim->opt.spoil == SIM_SPOIL_LOST && !sim->lost && sim->now > sim->start + 50000) {
		sim->lost++;
		return;
	}
	nic->again = skua_dev_rx(nic->f.dev, frame, len, icrc_pending);
	if (nic->again)
		wire_port_again(nic->port);
}

static void net_room(void *priv)
{
	struct sim_nic *nic = priv;

	skua_dev_room(nic->f.dev);
	sim_touch(nic);
}

static uint64_t clock_of(void *priv)
{
	return ((struct sim *)priv)->now;
}

static void log_line(void *priv, int level, const char *msg)
{
	struct sim_nic *nic = priv;

	if (nic->sim->opt.verbose || level == 0)
		fprintf(stderr, "nic%u: %s\n", nic->index, msg);
}

/* --- devices --- */

static uint32_t log2_up(uint64_t n)
{
	uint32_t log = 0;

	while (1ull << log < n)
		log++;
	return log;
}

/* Connections that a NIC has at most, with each other NIC. */
static unsigned int qps_of(const struct sim *sim)
{
	return sim->opt.qps * (sim->num_nics - 1);
}

static void cc_params(struct sim_nic *nic)
{
	for (unsigned int i = 0; i < SKUA_CC_PARAMS; i++) {
		struct skua_cmd_modify_cc_in in = {
			.param = cpu_to_le32(i),
			.value = cpu_to_le32((uint32_t)(nic->sim->opt.cc[i] - 1)),
		};

		if (nic->sim->opt.cc[i])
			mini_ok(&nic->m, SKUA_CMD_MODIFY_CC, &in, sizeof(in));
	}
}

static void nic_open(struct sim *sim, unsigned int i)
{
	struct sim_nic *nic = &sim->nic[i];
	const struct sim_opt *o = &sim->opt;
	unsigned int qps = qps_of(sim);
	/* Both of a connection's ends may be here. */
	uint64_t msgs = 2ull * qps * o->depth + 16;
	struct skua_dev_cfg cfg = {
		.mac = { 2, 0, 0, 0, (uint8_t)((i + 1) >> 8), (uint8_t)(i + 1) },
		.serial = 0x0200000000000000ull + i + 1,
		.onchip = o->onchip,
		/* A MiB of each device that nobody uses here. */
		.caps_off = o->caps_off | SKUA_CAP_DM,
		.log = log_line,
		.log_priv = nic,
	};
	uint64_t per_qp = MEM_QP + o->depth * MEM_WQE, mem;
	char name[16];

	nic->sim = sim;
	nic->index = i;
	nic->told = SKUA_TIME_NEVER;
	memcpy(nic->mac, cfg.mac, sizeof(nic->mac));
	/* Rings of connections, and of completions, whose sizes are rounded up. */
	if (o->sr)
		per_qp += 4096 + SKUA_EXT_TABLE_BYTES(o->sr);
	mem = MEM_BASE + 2ull * qps * per_qp +
	      msgs * 2 * 2 * sizeof(struct skua_cqe);
	fake_init_sized(&nic->f, &cfg, mem);
	nic->f.dev->caps |= o->sr ? SKUA_CAP_SR : 0;
	nic->f.clock = &sim->now;
	nic->f.far_read = sim_far_read;
	nic->f.far_write = sim_far_write;
	nic->f.far_priv = nic;
	mini_up_qps(&nic->m, &nic->f, 2 * qps + 2);
	if (mini_gid(&nic->m, 0, (uint16_t)(i + 1), false, SKUA_GID_NO_VLAN))
		sim_die("nic%u: SET_GID failed", i);
	cc_params(nic);
	mini_cq_create(&nic->m, &nic->scq, log2_up(msgs));
	mini_cq_create(&nic->m, &nic->rcq, log2_up(msgs));
	nic->key = mini_mr(&nic->m, SIM_SOURCE, SIM_SOURCE, SIM_SOURCE, SKUA_ACCESS_LOCAL_WRITE |
			   SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ);
	nic->flow_of = zalloc(2 * qps + 4, sizeof(*nic->flow_of));
	nic->flows = zalloc(2 * qps, sizeof(*nic->flows));
	snprintf(name, sizeof(name), "nic%u", i);
	nic->port = wire_add_dev(sim->wire, name, net_rx, nic);
	if (!nic->port)
		sim_die("%s: no port at the wire", name);
	wire_port_only_mac(nic->port, nic->mac);
	wire_port_on_room(nic->port, net_room);
	nic->f.net = &net_ops;
	nic->f.net_priv = nic->port;
	nic->f.judged = o->judge;
}

void sim_open(struct sim *sim, const struct sim_opt *opt)
{
	char err[200] = "";

	memset(sim, 0, sizeof(*sim));
	sim->opt = *opt;
	sim->now = SIM_START;
	sim->num_nics = opt->fabric.nics;
	sim->wire = wire_create(opt->seed);
	if (!sim->wire)
		sim_die("out of memory");
	if (opt->judge && 2 * opt->qps * (sim->num_nics - 1) > JUDGE_QPS)
		sim_die("--judge: more than %u queue pairs at a NIC", JUDGE_QPS);
	if (wire_use_fabric(sim->wire, &opt->fabric, err, sizeof(err)))
		sim_die("%s", err);
	wire_set_clock(sim->wire, clock_of, sim);
	sim->nic = zalloc(sim->num_nics, sizeof(*sim->nic));
	sim->room_flows = (uint64_t)sim->num_nics * qps_of(sim);
	sim->flow = zalloc(sim->room_flows, sizeof(*sim->flow));
	sim->dirty.nic = zalloc(sim->num_nics, sizeof(*sim->dirty.nic));
	for (unsigned int i = 0; i < sim->num_nics; i++)
		nic_open(sim, i);
	for (unsigned int i = 0; i < opt->num_faults; i++) {
		if (wire_fault(sim->wire, opt->fault[i], err, sizeof(err)))
			sim_die("%s", err);
	}
	if (opt->pcap && wire_pcap(sim->wire, opt->pcap, err, sizeof(err)))
		sim_die("%s", err);
}

void sim_close(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->num_flows; i++) {
		free(sim->flow[i].msg);
		free(sim->flow[i].bits);
	}
	for (unsigned int i = 0; i < sim->num_nics; i++) {
		fake_exit(&sim->nic[i].f);
		free(sim->nic[i].flow_of);
		free(sim->nic[i].flows);
		free(sim->nic[i].want.ring);
	}
	wire_destroy(sim->wire);
	free(sim->flow);
	free(sim->nic);
	free(sim->dirty.nic);
	free(sim->heap.ev);
	free(sim->sample.ns);
}

/* --- connections --- */

static void qp_make(struct sim *sim, struct sim_flow *f, int end)
{
	struct sim_nic *nic = &sim->nic[f->nic[end]];
	uint32_t log = log2_up(sim->opt.depth) + 1, recvs = log2_up(SIM_RECVS(sim));

	/* The responder sends nothing of its own, the requester receives nothing. */
	mini_qp_create(&nic->m, &f->qp[end], SKUA_QP_RC, &nic->scq, &nic->rcq, end ? 1 : log,
		       end ? recvs : 1, 1);
	nic->flow_of[f->qp[end].qpn & ((1u << MODEL_LOG_QP) - 1)] = end ? -(int32_t)f->id - 1 :
								(int32_t)f->id + 1;
}

static void qp_up(struct sim *sim, struct sim_flow *f, int end)
{
	struct sim_nic *nic = &sim->nic[f->nic[end]], *peer = &sim->nic[f->nic[!end]];
	int own = sim->opt.psn < 0 ? -1 : sim->opt.psn + (int)f->id;
	uint32_t psn[2], code = 1;
	struct skua_qp_attr a;

	for (uint32_t i = 0; i < 2; i++)
		psn[i] = (own < 0 || i ? (uint32_t)wire_mix(sim->opt.seed ^ (2ull * f->id + i)) :
					 (uint32_t)own) & IB_PSN_MASK;
	while (128u << code < sim->opt.mtu)
		code++;
	a = mini_rc_attr(f->qp[!end].qpn, (uint16_t)(peer->index + 1), peer->mac, false,
			 psn[end], psn[!end], code);
	le32p_replace_bits(&a.retry, sim->opt.timeout, SKUA_ATTR_ACK_TIMEOUT);
	a.av.tclass = sim->opt.tclass;
	if (sim->opt.sr)
		a.ext = le32_encode_bits(SKUA_EXT_ALWAYS, SKUA_ATTR_EXT_MODE) |
			le32_encode_bits(sim->opt.sr, SKUA_ATTR_EXT_LOG_WINDOW);
	mini_rc_to_rts(&nic->m, &f->qp[end], &a);
}

void sim_connect(struct sim *sim, unsigned int req, unsigned int rsp)
{
	struct sim_nic *nic = &sim->nic[req];
	struct sim_flow *f;

	if (sim->num_flows == sim->room_flows)
		sim_die("more connections than there is room for");
	f = &sim->flow[sim->num_flows];
	f->id = sim->num_flows++;
	f->nic[0] = req;
	f->nic[1] = rsp;
	f->source = sim->opt.op == SKUA_WQE_READ ? rsp : req;
	f->sink = sim->opt.op == SKUA_WQE_READ ? req : rsp;
	for (int end = 0; end < 2; end++)
		qp_make(sim, f, end);
	for (int end = 0; end < 2; end++)
		qp_up(sim, f, end);
	sim_flow_init(sim, f);
	nic->flows[nic->num_flows++] = f;
}
