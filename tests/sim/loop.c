// SPDX-License-Identifier: GPL-2.0
/* The clock: from event to event, of the fabric, of devices' timers, and of programs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

/* A device that never rests without time going on is at fault. */
#define ROUNDS_MAX	1000000

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

void sim_at(struct sim_nic *nic, uint64_t time, enum sim_kind kind)
{
	struct sim *sim = nic->sim;
	struct sim_event ev = { time, sim->heap.seq++, nic->index, kind };
	uint32_t i = sim->heap.n++;

	if (i == sim->heap.room) {
		sim->heap.room = i ? 2 * i : 1024;
		sim->heap.ev = realloc(sim->heap.ev, sim->heap.room * sizeof(ev));
		if (!sim->heap.ev)
			sim_die("out of memory");
	}
	for (; i && before(&ev, &sim->heap.ev[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap.ev[i] = sim->heap.ev[(i - 1) / 2];
	sim->heap.ev[i] = ev;
}

static struct sim_event pop(struct sim *sim)
{
	struct sim_event *h = sim->heap.ev, first = h[0], last = h[--sim->heap.n];
	uint32_t i = 0, child;

	for (; (child = 2 * i + 1) < sim->heap.n; i = child) {
		if (child + 1 < sim->heap.n && before(&h[child + 1], &h[child]))
			child++;
		if (!before(&h[child], &last))
			break;
		h[i] = h[child];
	}
	h[i] = last;
	return first;
}

void sim_touch(struct sim_nic *nic)
{
	struct sim *sim = nic->sim;

	if (nic->dirty)
		return;
	nic->dirty = true;
	sim->dirty.nic[sim->dirty.n++] = nic->index;
}

/* An earlier deadline goes into the heap; one that is there in vain is found out later. */
static void sync_timer(struct sim_nic *nic)
{
	if (nic->f.deadline >= nic->told)
		return;
	nic->told = nic->f.deadline;
	sim_at(nic, nic->told, SIM_TIMER);
}

static void serve(struct sim_nic *nic)
{
	for (unsigned int i = 0;; i++) {
		bool more = skua_dev_run(nic->f.dev);

		more |= sim_poll(nic);
		if (!more)
			break;
		if (i == ROUNDS_MAX)
			sim_die("nic%u never rests", nic->index);
	}
	sync_timer(nic);
}

/* In the order in which they were touched, which is that of events. */
static void serve_all(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->dirty.n; i++) {
		struct sim_nic *nic = &sim->nic[sim->dirty.nic[i]];

		nic->dirty = false;
		serve(nic);
	}
	sim->dirty.n = 0;
}

static void timer(struct sim_nic *nic, uint64_t time)
{
	if (nic->told != time)
		return;
	nic->told = SKUA_TIME_NEVER;
	if (nic->f.deadline > time) {
		sync_timer(nic);
		return;
	}
	nic->f.deadline = SKUA_TIME_NEVER;
	skua_dev_tick(nic->f.dev);
	sim_touch(nic);
}

static void happen(struct sim_nic *nic, const struct sim_event *ev)
{
	switch (ev->kind) {
	case SIM_TIMER:
		timer(nic, ev->time);
		break;
	case SIM_LOOK:
		sim_look(nic);
		break;
	case SIM_RING:
		sim_post(nic);
		sim_touch(nic);
		break;
	}
}

/* One step. False: nothing will ever happen. */
static bool step(struct sim *sim)
{
	uint64_t wire = wire_deadline(sim->wire);
	uint64_t own = sim->heap.n ? sim->heap.ev[0].time : SKUA_TIME_NEVER;
	uint64_t next = wire < own ? wire : own;

	if (next == SKUA_TIME_NEVER)
		return false;
	if (next > sim->now)
		sim->now = next;
	sim->events++;
	if (wire <= own) {
		wire_poll(sim->wire, sim->now);
	} else {
		struct sim_event ev = pop(sim);

		happen(&sim->nic[ev.nic], &ev);
	}
	serve_all(sim);
	return true;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void note_end(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->num_flows; i++)
		sim->flow[i].end_bytes = sim->flow[i].bytes;
}

void sim_run(struct sim *sim, struct sim_result *res)
{
	uint64_t limit, cpu = cpu_ns();
	bool ended = false;

	memset(res, 0, sizeof(*res));
	sim->start = sim->now;
	sim->stop = sim->opt.each ? SKUA_TIME_NEVER : sim->now + sim->opt.run_ns;
	limit = sim->now + (sim->opt.each ? 0 : sim->opt.run_ns) + sim->opt.limit_ns;
	for (unsigned int i = 0; i < sim->num_nics; i++) {
		struct sim_nic *nic = &sim->nic[i];

		mini_counter(&nic->m, 0);
		memcpy(nic->at_start, nic->f.dev->cnt, sizeof(nic->at_start));
		sim_begin(nic);
		sim_touch(nic);
	}
	serve_all(sim);
	/* What faults hold back is under way as well. */
	while (sim->busy || wire_deadline(sim->wire) != SKUA_TIME_NEVER) {
		if (!ended && sim->now >= sim->stop) {
			ended = true;
			note_end(sim);
		}
		if (sim->now > limit || !step(sim)) {
			sim_wrong(sim, "%llu messages are still under way",
				  (unsigned long long)sim->busy);
			break;
		}
	}
	if (!ended)
		note_end(sim);
	res->ns = sim->opt.each ? sim->now - sim->start : sim->opt.run_ns;
	res->cpu_ns = cpu_ns() - cpu;
	sim_check(sim);
	sim_sum_up(sim, res);
}
