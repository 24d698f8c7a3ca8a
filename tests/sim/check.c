// SPDX-License-Identifier: GPL-2.0
/* What has to hold at the end of a run, and what came out of it. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* For printf(). */
#define U(x)	((unsigned long long)(x))

static uint64_t count(const struct sim_nic *nic, enum skua_counter cnt)
{
	return nic->f.dev->cnt[cnt] - nic->at_start[cnt];
}

uint64_t sim_count(const struct sim *sim, enum skua_counter cnt)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < sim->num_nics; i++)
		sum += count(&sim->nic[i], cnt);
	return sum;
}

static uint64_t wire_sum(const struct sim *sim, size_t off)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < sim->num_nics; i++)
		sum += *(const uint64_t *)((const char *)wire_port_stats(sim->nic[i].port) + off);
	return sum;
}

#define WIRE_SUM(sim, name)	wire_sum(sim, offsetof(struct wire_stats, name))

static void equal(struct sim *sim, const char *what, uint64_t a, const char *other, uint64_t b)
{
	if (a != b)
		sim_wrong(sim, "%s: %llu, but %s: %llu", what, (unsigned long long)a, other,
			  (unsigned long long)b);
}

/*
 * What faults have marked may be doubled, lost behind that, or damaged: then it is known only
 * within bounds how many marks arrive.
 */
static void check_marks(struct sim *sim, const struct fabric_stats *st, uint64_t bad)
{
	uint64_t by_fault = WIRE_SUM(sim, fault_ecn), dup = WIRE_SUM(sim, fault_dup);
	uint64_t got = sim_count(sim, SKUA_CNT_NP_ECN_MARKED);
	uint64_t want = st->marked - st->marked_lost + by_fault;
	uint64_t lost = bad + (by_fault ? st->sent - st->delivered : 0);

	if (got > want + dup || got + lost < want)
		sim_wrong(sim, "%llu marked packets arrived, but %llu were marked", U(got),
			  U(want));
}

/* What devices count is what the wire has counted, frame by frame. */
static void check_frames(struct sim *sim)
{
	const struct fabric_stats *st = wire_fabric_stats(sim->wire);
	uint64_t bad = sim_count(sim, SKUA_CNT_RX_ICRC);

	equal(sim, "packets that devices sent", sim_count(sim, SKUA_CNT_RDMA_TX_PKTS),
	      "frames on the wire", WIRE_SUM(sim, rx_frames));
	equal(sim, "frames on the wire", WIRE_SUM(sim, rx_frames) + WIRE_SUM(sim, fault_dup),
	      "lost by fault and gone on", WIRE_SUM(sim, fault_loss) + WIRE_SUM(sim, drop_hold) +
					    WIRE_SUM(sim, drop_spoof) + WIRE_SUM(sim, drop_memory) +
					    st->sent);
	equal(sim, "frames that the network took", st->sent, "delivered, lost and under way",
	      st->delivered + st->drop_queue + st->drop_loss + st->drop_dead + st->drop_unknown +
	      st->drop_memory + st->flight);
	equal(sim, "frames delivered", st->delivered, "packets that devices received",
	      sim_count(sim, SKUA_CNT_RDMA_RX_PKTS) + bad);
	check_marks(sim, st, bad);
	equal(sim, "frames under way at the end", st->flight, "none", 0);
}

static uint64_t failed(const struct sim *sim)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < sim->num_flows; i++)
		n += sim->flow[i].failed;
	return n;
}

/* Counters of what must not happen, whatever the network does. */
static void check_zero(struct sim *sim)
{
	static const struct {
		enum skua_counter cnt;
		const char *name;
	} zero[] = {
		{ SKUA_CNT_OUT_OF_BUFFER, "no receive WQE" },
		{ SKUA_CNT_RESP_CQE_ERROR, "receive completions in error" },
		{ SKUA_CNT_REQ_REMOTE_INV, "invalid request NAKs" },
		{ SKUA_CNT_REQ_REMOTE_ACCESS, "remote access NAKs" },
		{ SKUA_CNT_RX_NO_QP, "packets for no QP" },
		{ SKUA_CNT_RX_BAD_STATE, "packets in a QP's wrong state" },
		{ SKUA_CNT_RX_BAD_PEER, "packets of strangers" },
		{ SKUA_CNT_CQ_OVERRUN, "completion queues overrun" },
		{ SKUA_CNT_DMA_ERR, "DMA errors" },
	};

	for (size_t i = 0; i < sizeof(zero) / sizeof(zero[0]); i++)
		equal(sim, zero[i].name, sim_count(sim, zero[i].cnt), "none", 0);
	/* A READ that is asked for again late may find that nothing is known of it any more. */
	if (!WIRE_SUM(sim, fault_reorder) && !WIRE_SUM(sim, fault_delay) &&
	    !WIRE_SUM(sim, fault_dup))
		equal(sim, "malformed packets", sim_count(sim, SKUA_CNT_RX_MALFORMED), "none", 0);
	equal(sim, "retry counts exhausted", sim_count(sim, SKUA_CNT_RETRY_EXCEEDED),
	      "connections that failed", failed(sim));
	equal(sim, "send completions in error", sim_count(sim, SKUA_CNT_REQ_CQE_ERROR),
	      "connections that failed", failed(sim));
}

static void check_flow(struct sim *sim, const struct sim_flow *f)
{
	if (f->done != f->posted || f->posted != f->wanted)
		sim_wrong(sim, "flow %u: %llu of %llu messages are done", f->id,
			  (unsigned long long)f->done, (unsigned long long)f->wanted);
	if (!f->failed && f->bytes != f->posted * sim->opt.size)
		sim_wrong(sim, "flow %u: %llu bytes were written for %llu messages of %u", f->id,
			  (unsigned long long)f->bytes, (unsigned long long)f->posted,
			  sim->opt.size);
	if (sim->opt.op == SKUA_WQE_SEND && f->recvd != f->done)
		sim_wrong(sim, "flow %u: %llu receives for %llu messages", f->id,
			  (unsigned long long)f->recvd, (unsigned long long)f->done);
}

/* Without loss and reordering nothing is sent again, unless a timer was too short. */
static void check_calm(struct sim *sim)
{
	const struct fabric_stats *st = wire_fabric_stats(sim->wire);

	if (sim->opt.num_faults || st->sent != st->delivered || wire_fabric_paths(sim->wire) > 1)
		return;
	equal(sim, "sequence NAKs on a good wire", sim_count(sim, SKUA_CNT_PACKET_SEQ_ERR), "none",
	      0);
	if (!sim_count(sim, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR))
		equal(sim, "packets sent again on a good wire",
		      sim_count(sim, SKUA_CNT_TX_RETRANS_PKTS), "none", 0);
}

void sim_check(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->num_nics; i++)
		mini_counter(&sim->nic[i].m, 0);
	for (uint32_t i = 0; i < sim->num_flows; i++)
		check_flow(sim, &sim->flow[i]);
	check_frames(sim);
	check_zero(sim);
	check_calm(sim);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* What a NIC has got done by when it was done, with a fixed number of messages. */
static double nic_rate(const struct sim *sim, const struct sim_nic *nic)
{
	uint64_t end = sim->start, bytes = 0;

	for (unsigned int i = 0; i < nic->num_flows; i++) {
		bytes += nic->flows[i]->bytes;
		if (nic->flows[i]->finished_at > end)
			end = nic->flows[i]->finished_at;
	}
	return end > sim->start ? (double)bytes / (double)(end - sim->start) : 0;
}

/* Among connections, or NICs if their time and not their bytes is what differs. */
static void fairness(const struct sim *sim, struct sim_result *res)
{
	unsigned int num = sim->opt.each ? sim->num_nics : sim->num_flows, some = 0;
	double sum = 0, squares = 0, bytes = 0;

	for (unsigned int i = 0; i < num; i++) {
		double rate = sim->opt.each ? nic_rate(sim, &sim->nic[i]) :
					      (double)sim->flow[i].end_bytes;

		sum += rate;
		squares += rate * rate;
		some += !sim->opt.each || sim->nic[i].num_flows;
	}
	for (uint32_t i = 0; i < sim->num_flows; i++)
		bytes += (double)sim->flow[i].end_bytes;
	res->gbps = res->ns ? bytes * 8 / (double)res->ns : 0;
	res->jain = squares > 0 ? sum * sum / squares / some : 0;
}

void sim_sum_up(struct sim *sim, struct sim_result *res)
{
	uint64_t digest = 0xcbf29ce484222325ull;

	fairness(sim, res);
	res->packets = sim_count(sim, SKUA_CNT_RDMA_TX_PKTS);
	res->again = sim_count(sim, SKUA_CNT_TX_RETRANS_PKTS);
	res->timeouts = sim_count(sim, SKUA_CNT_LOCAL_ACK_TIMEOUT_ERR);
	res->naks = sim_count(sim, SKUA_CNT_PACKET_SEQ_ERR);
	res->implied = sim_count(sim, SKUA_CNT_IMPLIED_NAK_SEQ_ERR);
	res->ooo = sim_count(sim, SKUA_CNT_OUT_OF_SEQUENCE);
	res->failed = failed(sim);
	res->marks = sim_count(sim, SKUA_CNT_NP_ECN_MARKED);
	res->fabric = *wire_fabric_stats(sim->wire);
	res->lost = WIRE_SUM(sim, fault_loss) + res->fabric.drop_queue + res->fabric.drop_loss +
		    res->fabric.drop_dead;
	res->faults = WIRE_SUM(sim, fault_delay) + WIRE_SUM(sim, fault_reorder) +
		      WIRE_SUM(sim, fault_dup) + WIRE_SUM(sim, fault_corrupt) +
		      WIRE_SUM(sim, fault_ecn);
	res->messages = sim->sample.n;
	if (sim->sample.n) {
		qsort(sim->sample.ns, sim->sample.n, sizeof(*sim->sample.ns), by_size);
		res->p50 = sim->sample.ns[sim->sample.n / 2];
		res->p99 = sim->sample.ns[sim->sample.n * 99 / 100];
		res->max = sim->sample.ns[sim->sample.n - 1];
	}
	for (unsigned int i = 0; i < sim->num_nics; i++) {
		for (unsigned int c = 0; c < SKUA_CNT_COUNT; c++)
			digest = (digest ^ count(&sim->nic[i], c)) * 0x100000001b3ull;
	}
	res->digest = (digest ^ sim->now) * 0x100000001b3ull;
	res->wrong = sim->wrong;
	res->events = sim->events;
}
