// SPDX-License-Identifier: GPL-2.0
/*
 * Programs, and the memory that their messages come from and go to.
 *
 * That memory is not there: what is at an address follows from flow, message and offset, and
 * what is written is compared with it. So each byte is looked at when it comes, a message
 * that lands in another's place is found, and no memory is used up. Of each message under
 * way it is known which packets of it were written: all of them, once, before it completes.
 */
#include <stdlib.h>
#include <string.h>

#include <skua/cqe_parse.h>
#include <skua/wqe_build.h>

#include "sim.h"
#include "wire/priv.h"

/* A table of bytes; a prime, so that neighbours in any power of two differ. */
#define PATTERN		65521
#define FLOW_SHIFT	32
/* From the doorbell to a packet: the store, and two reads of the device, there and back. */
#define POST_PCIE	5

static uint8_t pattern[PATTERN + WIRE_FRAME_MAX];

static void pattern_make(void)
{
	if (pattern[0] || pattern[1])
		return;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = i < PATTERN ? (uint8_t)wire_mix(i) : pattern[i - PATTERN];
}

/* Messages of a flow have places of their own, until these are used again. */
static uint32_t stride(const struct sim *sim)
{
	uint32_t n = 64;

	while (n < sim->opt.size)
		n *= 2;
	return n;
}

static uint64_t places(const struct sim *sim)
{
	return (1ull << FLOW_SHIFT) / stride(sim);
}

static uint64_t address(const struct sim *sim, uint64_t base, const struct sim_flow *f,
			uint64_t msg)
{
	return base + ((uint64_t)f->id << FLOW_SHIFT) + msg % places(sim) * stride(sim);
}

static const uint8_t *payload(const struct sim *sim, const struct sim_flow *f, uint64_t place,
			      uint32_t off)
{
	uint64_t seed = wire_mix(sim->opt.seed ^ f->id);

	return &pattern[(seed % PATTERN + place % PATTERN * 31337 + off) % PATTERN];
}

static uint32_t pieces(const struct sim *sim)
{
	return (sim->opt.size + sim->opt.mtu - 1) / sim->opt.mtu;
}

static uint32_t words(const struct sim *sim)
{
	return (pieces(sim) + 63) / 64;
}

void sim_flow_init(struct sim *sim, struct sim_flow *f)
{
	unsigned int depth = sim->opt.depth;

	pattern_make();
	f->msg = calloc(depth, sizeof(*f->msg));
	f->bits = calloc((size_t)depth * words(sim), sizeof(*f->bits));
	if (!f->msg || !f->bits)
		sim_die("out of memory");
}

/* --- memory --- */

/* Where an address leads; NULL: nowhere. */
static struct sim_flow *find(struct sim *sim, uint64_t base, uint64_t iova, uint64_t *place,
			     uint32_t *off)
{
	uint64_t id = (iova - base) >> FLOW_SHIFT;
	uint32_t at = (uint32_t)iova;

	if (iova < base || id >= sim->num_flows)
		return NULL;
	*place = at / stride(sim);
	*off = at % stride(sim);
	return &sim->flow[id];
}

int sim_far_read(void *priv, uint64_t iova, void *buf, size_t len)
{
	struct sim_nic *nic = priv;
	struct sim *sim = nic->sim;
	uint64_t place;
	uint32_t off;
	struct sim_flow *f = find(sim, SIM_SOURCE, iova, &place, &off);

	if (!f || f->source != nic->index || len > WIRE_FRAME_MAX || off + len > sim->opt.size) {
		sim_wrong(sim, "nic%u reads %zu bytes at %#llx, where nothing is", nic->index, len,
			  (unsigned long long)iova);
		return -1;
	}
	memcpy(buf, payload(sim, f, place, off), len);
	if (sim->opt.spoil == SIM_SPOIL_DATA && place == 3 && !off)
		((uint8_t *)buf)[len / 2] ^= 1;
	return 0;
}

/* The message under way that has this place: -1: none has. */
static int64_t message_at(const struct sim *sim, const struct sim_flow *f, uint64_t place)
{
	/* A SEND is known to have come by its receive, the others by their completion. */
	uint64_t first = sim->opt.op == SKUA_WQE_SEND ? f->recvd : f->done;
	uint64_t msg;

	msg = first + (place + places(sim) - first % places(sim)) % places(sim);
	return msg < f->posted ? (int64_t)msg : -1;
}

static bool note_piece(struct sim *sim, struct sim_flow *f, uint64_t msg, uint32_t off, size_t len)
{
	unsigned int slot = (unsigned int)(msg % sim->opt.depth);
	uint64_t *bits = f->bits + (size_t)slot * words(sim);
	uint32_t piece = off / sim->opt.mtu;
	bool twice = bits[piece / 64] >> piece % 64 & 1;

	if (sim->opt.spoil == SIM_SPOIL_TWICE && msg == 3 && piece == 0)
		twice = true;
	bits[piece / 64] |= 1ull << piece % 64;
	f->msg[slot].landed += len;
	f->bytes += len;
	return !twice;
}

int sim_far_write(void *priv, uint64_t iova, const void *buf, size_t len)
{
	struct sim_nic *nic = priv;
	struct sim *sim = nic->sim;
	uint64_t place;
	uint32_t off;
	struct sim_flow *f = find(sim, SIM_SINK, iova, &place, &off);
	int64_t msg;

	if (!f || f->sink != nic->index || off + len > sim->opt.size) {
		sim_wrong(sim, "nic%u writes %zu bytes at %#llx, where nothing is", nic->index, len,
			  (unsigned long long)iova);
		return -1;
	}
	msg = message_at(sim, f, place);
	if (msg < 0)
		sim_wrong(sim, "flow %u: byte %u of place %llu is written, with no message there",
			  f->id, off, (unsigned long long)place);
	else if (off % sim->opt.mtu || len > sim->opt.mtu ||
		 (len < sim->opt.mtu && off + len != sim->opt.size))
		sim_wrong(sim, "flow %u, message %lld: %zu bytes at %u are no packet of it", f->id,
			  (long long)msg, len, off);
	else if (!note_piece(sim, f, (uint64_t)msg, off, len))
		sim_wrong(sim, "flow %u, message %lld: the packet at %u was written twice", f->id,
			  (long long)msg, off);
	if (memcmp(buf, payload(sim, f, place, off), len))
		sim_wrong(sim, "flow %u, message %lld: other bytes at %u than were sent", f->id,
			  (long long)msg, off);
	return 0;
}

/* --- requests --- */

static void want(struct sim_nic *nic, struct sim_flow *f)
{
	struct sim *sim = nic->sim;
	struct sim_want w = { f, sim->now, sim->now + POST_PCIE * sim->opt.pcie_ns };
	uint32_t room = nic->want.room;

	if (nic->want.tail - nic->want.head == room) {
		struct sim_want *ring = malloc((room ? 2 * room : 16) * sizeof(*ring));

		if (!ring)
			sim_die("out of memory");
		for (uint32_t i = 0; i < room; i++)
			ring[i] = nic->want.ring[(nic->want.head + i) % room];
		free(nic->want.ring);
		nic->want.ring = ring;
		nic->want.head = 0;
		nic->want.tail = room;
		nic->want.room = room ? 2 * room : 16;
	}
	nic->want.ring[nic->want.tail++ % nic->want.room] = w;
	f->wanted++;
	sim->busy++;
}

static void post(struct sim_nic *nic, struct sim_flow *f, uint64_t since)
{
	struct sim *sim = nic->sim;
	uint64_t msg = f->posted++, remote = sim->opt.op == SKUA_WQE_READ ? SIM_SOURCE : SIM_SINK;
	uint64_t local = sim->opt.op == SKUA_WQE_READ ? SIM_SINK : SIM_SOURCE;
	unsigned int slot = (unsigned int)(msg % sim->opt.depth), nseg = 1;
	uint8_t wqe[SKUA_WQE_BLOCK] __attribute__((aligned(16))) = { 0 };

	f->msg[slot] = (struct sim_msg){ .posted_at = since };
	memset(f->bits + (size_t)slot * words(sim), 0, words(sim) * sizeof(*f->bits));
	skua_wqe_ctrl_set((void *)wqe, sim->opt.op, 0, 0, SKUA_WQE_F_SIGNALED);
	if (sim->opt.op != SKUA_WQE_SEND)
		skua_wqe_raddr_set((void *)(wqe + nseg++ * SKUA_WQE_SEG),
				   address(sim, remote, f, msg), sim->nic[f->nic[1]].key, 0);
	skua_wqe_data_set((void *)(wqe + nseg++ * SKUA_WQE_SEG), address(sim, local, f, msg),
			  nic->key, sim->opt.size);
	mini_post(&nic->m, &f->qp[0], wqe, nseg);
}

bool sim_post(struct sim_nic *nic)
{
	bool any = false;

	while (nic->want.head != nic->want.tail) {
		struct sim_want *w = &nic->want.ring[nic->want.head % nic->want.room];
		struct sim_flow *f = w->flow;

		if (w->due > nic->sim->now)
			break;
		post(nic, f, w->since);
		nic->want.head++;
		/* One doorbell for messages in a row. */
		if (nic->want.head == nic->want.tail ||
		    nic->want.ring[nic->want.head % nic->want.room].flow != f)
			mini_ring(&nic->m, &f->qp[0]);
		any = true;
	}
	return any;
}

static void receive(struct sim *sim, struct sim_flow *f)
{
	struct sim_nic *nic = &sim->nic[f->nic[1]];
	struct skua_wqe_data d;

	skua_wqe_data_set(&d, address(sim, SIM_SINK, f, f->recvs++), nic->key, sim->opt.size);
	mini_recv(&nic->m, &f->qp[1], &d, 1);
}

/* Messages of this flow, or of the NIC's next ones, as many as may be outstanding. */
static void go_on(struct sim_nic *nic, struct sim_flow *f)
{
	struct sim *sim = nic->sim;

	if (!sim->opt.each) {
		while (sim->now < sim->stop && f->wanted - f->done < sim->opt.depth)
			want(nic, f);
		return;
	}
	while (nic->outstanding < sim->opt.depth &&
	       nic->next < nic->num_flows * sim->opt.each) {
		f = nic->flows[nic->next % nic->num_flows];
		/* Its own have a place each. */
		if (f->wanted - f->done == sim->opt.depth)
			break;
		want(nic, f);
		nic->outstanding++;
		nic->next++;
	}
}

static void ring_later(struct sim_nic *nic)
{
	if (nic->want.head != nic->want.tail)
		sim_at(nic, nic->want.ring[(nic->want.tail - 1) % nic->want.room].due, SIM_RING);
}

void sim_begin(struct sim_nic *nic)
{
	struct sim *sim = nic->sim;

	for (unsigned int i = 0; i < nic->num_flows; i++) {
		struct sim_flow *f = nic->flows[i];

		for (unsigned int k = 0; sim->opt.op == SKUA_WQE_SEND && k < SIM_RECVS(sim); k++)
			receive(sim, f);
		go_on(nic, f);
	}
	ring_later(nic);
}

/* --- completions --- */

static struct sim_flow *flow_of(struct sim_nic *nic, const struct skua_cqe *cqe, bool responder)
{
	uint32_t index = le32_to_cpu(cqe->qpn) & ((1u << MODEL_LOG_QP) - 1);
	int32_t id = nic->flow_of[index];

	if (id && (id < 0) == responder)
		return &nic->sim->flow[(id < 0 ? -id : id) - 1];
	sim_wrong(nic->sim, "nic%u: completion of QP %#x, which has none", nic->index,
		  le32_to_cpu(cqe->qpn));
	return NULL;
}

/* The first message fails, those behind it are flushed; nothing is posted any more. */
static void fail(struct sim_nic *nic, struct sim_flow *f, enum skua_cqe_status status)
{
	struct sim *sim = nic->sim;

	if (!sim->opt.may_fail || status != (f->failed ? SKUA_CQE_WR_FLUSH_ERR :
							 SKUA_CQE_RETRY_EXC_ERR))
		sim_wrong(sim, "flow %u, message %llu: completion with status %#x", f->id,
			  (unsigned long long)f->done, status);
	f->failed = true;
	f->done++;
	sim->busy--;
	if (!sim->opt.each)
		return;
	nic->outstanding--;
	go_on(nic, f);
}

static void sample(struct sim *sim, uint64_t ns)
{
	if (sim->sample.n == sim->sample.room) {
		sim->sample.room = sim->sample.n ? 2 * sim->sample.n : 4096;
		sim->sample.ns = realloc(sim->sample.ns, sim->sample.room * sizeof(ns));
		if (!sim->sample.ns)
			sim_die("out of memory");
	}
	sim->sample.ns[sim->sample.n++] = ns;
}

static void check_whole(struct sim *sim, struct sim_flow *f, uint64_t msg)
{
	const struct sim_msg *m = &f->msg[msg % sim->opt.depth];

	if (m->landed != sim->opt.size)
		sim_wrong(sim, "flow %u, message %llu completes with %u bytes of %u", f->id,
			  (unsigned long long)msg, m->landed, sim->opt.size);
}

static void sent(struct sim_nic *nic, struct sim_flow *f, const struct skua_cqe *cqe)
{
	struct sim *sim = nic->sim;
	uint64_t msg = f->done;

	if (msg == f->posted) {
		sim_wrong(sim, "flow %u: a completion more than messages", f->id);
		return;
	}
	/* A message is a block of the ring. */
	if (le32_get_bits(cqe->what, SKUA_CQE_WQE_INDEX) != (msg & 0xffff))
		sim_wrong(sim, "flow %u: completion of WQE %u in place of %llu", f->id,
			  le32_get_bits(cqe->what, SKUA_CQE_WQE_INDEX), (unsigned long long)msg);
	if (skua_cqe_status(cqe) != SKUA_CQE_OK) {
		fail(nic, f, skua_cqe_status(cqe));
		return;
	}
	check_whole(sim, f, msg);
	sample(sim, sim->now - f->msg[msg % sim->opt.depth].posted_at);
	f->done++;
	f->finished_at = sim->now;
	sim->busy--;
	if (sim->opt.each)
		nic->outstanding--;
	go_on(nic, f);
}

static void received(struct sim_nic *nic, struct sim_flow *f, const struct skua_cqe *cqe)
{
	struct sim *sim = nic->sim;

	if (skua_cqe_status(cqe) != SKUA_CQE_OK || le32_to_cpu(cqe->byte_len) != sim->opt.size)
		sim_wrong(sim, "flow %u: receive %llu has status %#x and %u bytes", f->id,
			  (unsigned long long)f->recvd, skua_cqe_status(cqe),
			  le32_to_cpu(cqe->byte_len));
	check_whole(sim, f, f->recvd);
	f->recvd++;
	receive(sim, f);
}

void sim_look(struct sim_nic *nic)
{
	struct sim_flow *f;
	struct skua_cqe cqe;

	nic->looks = false;
	while (mini_cq_next(&nic->m, &nic->rcq, &cqe)) {
		f = flow_of(nic, &cqe, true);
		if (f)
			received(nic, f, &cqe);
	}
	while (mini_cq_next(&nic->m, &nic->scq, &cqe)) {
		f = flow_of(nic, &cqe, false);
		if (f)
			sent(nic, f, &cqe);
	}
	if (nic->sim->opt.pcie_ns)
		ring_later(nic);
}

bool sim_poll(struct sim_nic *nic)
{
	uint64_t pcie = nic->sim->opt.pcie_ns;

	if (!nic->looks && (mini_cq_peek(&nic->m, &nic->scq) || mini_cq_peek(&nic->m, &nic->rcq))) {
		if (pcie) {
			nic->looks = true;
			sim_at(nic, nic->sim->now + pcie, SIM_LOOK);
		} else {
			sim_look(nic);
		}
	}
	return !pcie && sim_post(nic);
}
