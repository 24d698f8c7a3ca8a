// SPDX-License-Identifier: GPL-2.0
/* What is studied: one line of figures for each run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sim.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))

/* The columns: name, format for people, value. */
#define COLUMNS(X)								\
	X(gbps,		"%9.3f",	r->gbps)				\
	X(jain,		"%6.3f",	r->jain)				\
	X(us,		"%10.1f",	(double)r->ns / 1000)			\
	X(messages,	"%9llu",	(unsigned long long)r->messages)	\
	X(packets,	"%10llu",	(unsigned long long)r->packets)		\
	X(lost,		"%8llu",	(unsigned long long)r->lost)		\
	X(again,	"%9llu",	(unsigned long long)r->again)		\
	X(faults,	"%7llu",	(unsigned long long)r->faults)		\
	X(ooo,		"%8llu",	(unsigned long long)r->ooo)		\
	X(naks,		"%7llu",	(unsigned long long)r->naks)		\
	X(implied,	"%7llu",	(unsigned long long)r->implied)		\
	X(timeouts,	"%8llu",	(unsigned long long)r->timeouts)	\
	X(failed,	"%6llu",	(unsigned long long)r->failed)		\
	X(marks,	"%8llu",	(unsigned long long)r->marks)		\
	X(queue_kb,	"%8.1f",	(double)r->fabric.queue_max / 1000)	\
	X(p50_us,	"%9.1f",	(double)r->p50 / 1000)			\
	X(p99_us,	"%9.1f",	(double)r->p99 / 1000)			\
	X(max_us,	"%9.1f",	(double)r->max / 1000)

struct table {
	FILE *csv;
	bool perf;
	uint64_t wrong;
	unsigned int rows;
};

static int width(const char *format)
{
	return atoi(format + 1);
}

static void head(const struct table *t, const char *first)
{
	printf("%-14s", first);
#define X(name, format, value)	printf(" %*s", width(format), #name);
	COLUMNS(X)
#undef X
	printf(" %16s\n", "digest");
	if (!t->csv)
		return;
	fprintf(t->csv, "%s", first);
#define X(name, format, value)	fprintf(t->csv, "," #name);
	COLUMNS(X)
#undef X
	fprintf(t->csv, "\n");
}

static void row(struct table *t, const char *first, const struct sim_result *r)
{
	printf("%-14s", first);
#define X(name, format, value)	printf(" " format, value);
	COLUMNS(X)
#undef X
	printf(" %016llx\n", (unsigned long long)r->digest);
	fflush(stdout);
	t->wrong += r->wrong;
	t->rows++;
	if (!t->csv)
		return;
	fprintf(t->csv, "%s", first);
	/* Numbers stand right in their columns: as text they may have blanks before them. */
#define X(name, format, value)	fprintf(t->csv, "," format, value);
	COLUMNS(X)
#undef X
	fprintf(t->csv, "\n");
}

static void perf(const struct sim *sim, const struct sim_result *r)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	fprintf(stderr, "perf: %llu packets in %.3f s of processor time, %.0f packets/s, "
		"%.0f events/s, %u NICs, %u connections, at most %.1f MiB\n",
		(unsigned long long)r->packets, (double)r->cpu_ns / 1e9,
		(double)r->packets * 1e9 / (double)(r->cpu_ns + 1),
		(double)r->events * 1e9 / (double)(r->cpu_ns + 1), sim->num_nics, sim->num_flows,
		(double)ru.ru_maxrss / 1024);
}

static void one(struct table *t, const char *first, const struct sim_opt *opt,
		void (*connect)(struct sim *sim))
{
	static struct sim sim;
	struct sim_result res;

	sim_open(&sim, opt);
	connect(&sim);
	sim_run(&sim, &res);
	row(t, first, &res);
	if (t->perf)
		perf(&sim, &res);
	sim_close(&sim);
}

/* The next value of a list separated by commas. */
static bool next_value(const char **list, char *value, size_t size)
{
	size_t n = strcspn(*list, ",");

	if (!n)
		return false;
	if (n >= size)
		sim_die("\"%s\": a value is too long", *list);
	memcpy(value, *list, n);
	value[n] = '\0';
	*list += n + ((*list)[n] == ',');
	return true;
}

static void add_fault(struct sim_opt *opt, const char *spec)
{
	if (opt->num_faults == SIM_FAULTS_MAX)
		sim_die("more than %u faults", SIM_FAULTS_MAX);
	opt->fault[opt->num_faults++] = spec;
}

/* --- connections --- */

/* Of the first NIC to the second. */
static void connect_pair(struct sim *sim)
{
	for (unsigned int q = 0; q < sim->opt.qps; q++)
		sim_connect(sim, 0, 1);
}

/* Of all others to the first NIC; READs are asked for by it. */
static void connect_incast(struct sim *sim)
{
	bool read = sim->opt.op == SKUA_WQE_READ;

	for (unsigned int q = 0; q < sim->opt.qps; q++) {
		for (unsigned int i = 1; i < sim->num_nics; i++)
			sim_connect(sim, read ? 0 : i, read ? i : 0);
	}
}

/* Of each to each other, which begin with different ones. */
static void connect_all(struct sim *sim)
{
	for (unsigned int by = 1; by < sim->num_nics; by++) {
		for (unsigned int i = 0; i < sim->num_nics; i++) {
			for (unsigned int q = 0; q < sim->opt.qps; q++)
				sim_connect(sim, i, (i + by) % sim->num_nics);
		}
	}
}

/* --- scenarios --- */

static void scenario_pair(struct table *t, struct scenario_opt *o)
{
	head(t, "run");
	one(t, "pair", &o->sim, connect_pair);
}

static void scenario_loss(struct table *t, struct scenario_opt *o)
{
	const char *list = o->list ? o->list : "0,0.01,0.02,0.05,0.1,0.2,0.5,1,2,5,10";
	char value[32], spec[64];

	head(t, "loss_percent");
	while (next_value(&list, value, sizeof(value))) {
		struct sim_opt opt = o->sim;

		snprintf(spec, sizeof(spec), "loss=%s%%", value);
		if (atof(value) > 0)
			add_fault(&opt, spec);
		one(t, value, &opt, connect_pair);
	}
}

/* RATE:DISTANCE, or a rate alone: 64 packets go past. */
static void scenario_reorder(struct table *t, struct scenario_opt *o)
{
	const char *list = o->list ? o->list :
		"0:1,0.1:1,0.1:8,0.1:64,1:1,1:8,1:64,5:1,5:8,5:64,20:1,20:8,20:64";
	char value[32], spec[96];

	head(t, "percent:by");
	while (next_value(&list, value, sizeof(value))) {
		struct sim_opt opt = o->sim;
		char *by = strchr(value, ':');

		snprintf(spec, sizeof(spec), "reorder=%.*s%%:%s,hold=1ms",
			 (int)(by ? by - value : (long)strlen(value)), value, by ? by + 1 : "64");
		if (atof(value) > 0)
			add_fault(&opt, spec);
		one(t, value, &opt, connect_pair);
	}
}

static void scenario_incast(struct table *t, struct scenario_opt *o)
{
	const char *list = o->list ? o->list : "2,4,8,16,32,64";
	char value[32];

	head(t, "senders");
	while (next_value(&list, value, sizeof(value))) {
		struct sim_opt opt = o->sim;

		opt.fabric.nics = (unsigned int)atoi(value) + 1;
		if (opt.fabric.nics < 2 || opt.fabric.nics > SIM_NICS_MAX)
			sim_die("%s senders: 1 to %u", value, SIM_NICS_MAX - 1);
		one(t, value, &opt, connect_incast);
	}
}

static void scenario_alltoall(struct table *t, struct scenario_opt *o)
{
	static const char *const name[] = {
		[FABRIC_BY_FLOW] = "flow", [FABRIC_BY_PACKET] = "packet",
		[FABRIC_IN_TURN] = "turn", [FABRIC_ADAPTIVE] = "adaptive",
	};
	const char *list = o->list ? o->list : name[o->sim.fabric.spread];
	char value[32];

	head(t, "spread");
	while (next_value(&list, value, sizeof(value))) {
		struct sim_opt opt = o->sim;
		size_t how = 0;

		while (how < N(name) && strcmp(name[how], value))
			how++;
		if (how == N(name))
			sim_die("spread \"%s\": flow, packet, turn or adaptive", value);
		opt.fabric.spread = (enum fabric_spread)how;
		one(t, value, &opt, connect_all);
	}
}

/* The round trip goes over 2 links each way, over 4 between leaves. */
static void distance(struct fabric_cfg *f, uint64_t rtt_ns)
{
	bool leaves = f->per_leaf && f->per_leaf < f->nics;

	f->nic_ns = rtt_ns / (leaves ? 8 : 4);
	f->up_ns = f->nic_ns;
}

static void alltoall_defaults(struct scenario_opt *o)
{
	struct sim_opt *s = &o->sim;

	if (!o->qps_set)
		s->qps = 1;
	if (!o->depth_set)
		s->depth = 32;
	if (!o->size_set)
		s->size = 16384;
	if (!o->run_set && !s->each)
		s->each = 1;
	s->fabric.flows = s->fabric.nics * s->fabric.nics * s->qps * 2;
	s->fabric.psns = 256;
}

/*
 * Without congestion control most of what is sent is lost: with short timers retries end in
 * errors, with long ones those that lose once stand still.
 */
static void incast_defaults(struct scenario_opt *o)
{
	if (!o->qps_set)
		o->sim.qps = 1;
	if (!o->timeout_set)
		o->sim.timeout = 10;
	if (!o->run_set)
		o->sim.run_ns = 40000000;
	o->sim.may_fail = true;
}

static const struct scenario {
	const char *name;
	void (*run)(struct table *t, struct scenario_opt *o);
	void (*defaults)(struct scenario_opt *o);
} scenarios[] = {
	{ "pair", scenario_pair, NULL },
	{ "loss", scenario_loss, NULL },
	{ "reorder", scenario_reorder, NULL },
	{ "incast", scenario_incast, incast_defaults },
	{ "alltoall", scenario_alltoall, alltoall_defaults },
};

static const struct scenario *find(const char *name)
{
	for (size_t i = 0; i < N(scenarios); i++) {
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	}
	return NULL;
}

bool scenario_known(const char *name)
{
	return find(name);
}

int scenario_run(const char *name, struct scenario_opt *o)
{
	const struct scenario *s = find(name);
	struct table t = { .perf = o->perf };

	if (s->defaults)
		s->defaults(o);
	distance(&o->sim.fabric, o->rtt_ns);
	if (o->csv) {
		t.csv = fopen(o->csv, "w");
		if (!t.csv)
			sim_die("%s: cannot be written", o->csv);
	}
	s->run(&t, o);
	if (t.csv && (ferror(t.csv) | fclose(t.csv)))
		sim_die("%s: could not be written", o->csv);
	if (!t.rows)
		sim_die("nothing was run");
	if (t.wrong)
		fprintf(stderr, "sim: %llu things are wrong\n", (unsigned long long)t.wrong);
	return t.wrong ? 1 : 0;
}
