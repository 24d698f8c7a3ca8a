// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const char usage[] =
"Usage: sim SCENARIO [OPTION...]\n"
"Many Skua NICs and a network under virtual time: goodput, fairness, queues, what is sent\n"
"again. One line for each run; each byte is compared, and counters with the network's own.\n"
"\n"
"SCENARIO, and what the list of values is:\n"
"  pair                  two NICs, one run\n"
"  loss                  two NICs: percent of frames lost\n"
"  reorder               two NICs: PERCENT:N, of packets that N others go past\n"
"  incast                number of NICs that send to one\n"
"  alltoall              each NIC to each other: flow, packet, turn (see --spread)\n"
"\n"
"  --list V[,V...]       values to go through in place of the scenario's own\n"
"  --seed N              of all that is drawn (1)\n"
"Traffic:\n"
"  --op OP               write, send or read (write)\n"
"  --size BYTES          of a message (65536; alltoall 16384)\n"
"  --qps N               connections of two NICs (4; incast and alltoall 1)\n"
"  --depth N             messages under way: of a connection (8); with --each, of a NIC (32)\n"
"  --run TIME            post for so long (10ms; incast 40ms), then wait for what is under\n"
"                        way\n"
"  --each N              N messages for each connection in place of that (alltoall: 1)\n"
"  --limit TIME          what is under way then is taken for hanging (10s)\n"
"  --mtu BYTES           path MTU (4096)\n"
"  --timeout CODE        of the ACK timeout, 4.096 us * 2^CODE (6: 262 us; incast\n"
"                        10: 4.2 ms)\n"
"  --may-fail            retries that are exhausted are a result (always with incast)\n"
"  --psn N               first PSN of the first connection, of the next N + 1 (drawn)\n"
"  --no-ect              packets are not ECN-capable\n"
"Network:\n"
"  --nics N              of alltoall (16)\n"
"  --rate GBIT           of a NIC, in Gbit/s, all planes together (100)\n"
"  --rtt TIME            round trip of an empty network, without sending times (40us)\n"
"  --queue BYTES         limit of each queue of a switch (2000000)\n"
"  --ecn MIN,MAX,PROB    bytes from which packets are marked, and all are, and the\n"
"                        probability just below (off)\n"
"  --leaf N              NICs at a leaf switch (all at one switch)\n"
"  --planes N, --spines N  networks side by side, and spine switches in each (1, 1)\n"
"  --up GBIT             of a link between leaf and spine (no bottleneck)\n"
"  --paths N             so many spines in one plane: --planes 1 --spines N\n"
"  --spread HOW          ways are chosen by flow, by packet, in turn, or by what the NIC's\n"
"                        links have to send (flow, packet, turn, adaptive)\n"
"  --dead PLANE[.SPINE][@AT[+KNOWN]]  fails at this time (0s), and is known after (0s); may\n"
"                        repeat\n"
"  --link-loss RATE      of frames on each link, 0 to 1\n"
"  --fault SPEC          faults and rules of the wire (Documentation/wire/faults.rst); may\n"
"                        repeat\n"
"Devices:\n"
"  --caps-off CAP[,...]  they lack these capabilities\n"
"  --cc ALGORITHM        congestion control: none, dcqcn (with --ecn) or delay (none)\n"
"  --cc-param NAME=VALUE  a parameter of it (Documentation/congestion.rst); may repeat\n"
"  --sr LOG              selective repeat with a window of 2^LOG packets, 5 to 9 (go-back-N)\n"
"  --onchip BYTES        memory on the chip, for contexts and what is under way (4505600)\n"
"  --frame-gap TIME      that a device needs for each frame that it sends (0ns)\n"
"  --pcie TIME           one way between processor and device (0ns)\n"
"Output:\n"
"  --csv FILE            the lines as comma-separated values\n"
"  --pcap FILE           capture of the last run\n"
"  --judge               an automaton of the IBTA's rules looks at each packet (32 QPs)\n"
"  --perf                speed and memory of the simulation, on standard error\n"
"  --spoil WHAT          data, twice, lost: for tests of the checks, which must fail then\n"
"  -v, --verbose         what devices log\n"
"  --help\n"
"\n"
"TIME is a number with ns, us, ms or s. Exit code: 0; 1: something was wrong; 2: bad usage.\n";

enum {
	LIST = 256, SEED, OP, SIZE, QPS, DEPTH, RUN, EACH, LIMIT, MTU, TIMEOUT, NO_ECT, MAY_FAIL,
	PSN, NICS, RATE, RTT, QUEUE, ECN, LEAF, PLANES, SPINES, UP, PATHS, SPREAD, DEAD, LINK_LOSS,
	FAULT, CAPS_OFF, CC, CC_PARAM, SR, ONCHIP, FRAME_GAP, PCIE, CSV, PCAP, JUDGE, PERF, SPOIL, HELP,
};

static const struct option options[] = {
	{ "list", required_argument, NULL, LIST },
	{ "seed", required_argument, NULL, SEED },
	{ "op", required_argument, NULL, OP },
	{ "size", required_argument, NULL, SIZE },
	{ "qps", required_argument, NULL, QPS },
	{ "depth", required_argument, NULL, DEPTH },
	{ "run", required_argument, NULL, RUN },
	{ "each", required_argument, NULL, EACH },
	{ "limit", required_argument, NULL, LIMIT },
	{ "mtu", required_argument, NULL, MTU },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "no-ect", no_argument, NULL, NO_ECT },
	{ "may-fail", no_argument, NULL, MAY_FAIL },
	{ "psn", required_argument, NULL, PSN },
	{ "nics", required_argument, NULL, NICS },
	{ "rate", required_argument, NULL, RATE },
	{ "rtt", required_argument, NULL, RTT },
	{ "queue", required_argument, NULL, QUEUE },
	{ "ecn", required_argument, NULL, ECN },
	{ "leaf", required_argument, NULL, LEAF },
	{ "planes", required_argument, NULL, PLANES },
	{ "spines", required_argument, NULL, SPINES },
	{ "up", required_argument, NULL, UP },
	{ "paths", required_argument, NULL, PATHS },
	{ "spread", required_argument, NULL, SPREAD },
	{ "dead", required_argument, NULL, DEAD },
	{ "link-loss", required_argument, NULL, LINK_LOSS },
	{ "fault", required_argument, NULL, FAULT },
	{ "caps-off", required_argument, NULL, CAPS_OFF },
	{ "cc", required_argument, NULL, CC },
	{ "cc-param", required_argument, NULL, CC_PARAM },
	{ "sr", required_argument, NULL, SR },
	{ "onchip", required_argument, NULL, ONCHIP },
	{ "frame-gap", required_argument, NULL, FRAME_GAP },
	{ "pcie", required_argument, NULL, PCIE },
	{ "csv", required_argument, NULL, CSV },
	{ "pcap", required_argument, NULL, PCAP },
	{ "judge", no_argument, NULL, JUDGE },
	{ "perf", no_argument, NULL, PERF },
	{ "spoil", required_argument, NULL, SPOIL },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static const char *option_name(int c)
{
	for (size_t i = 0; options[i].name; i++) {
		if (options[i].val == c)
			return options[i].name;
	}
	return "?";
}

static uint64_t number(int c, const char *text, uint64_t min, uint64_t max)
{
	uint64_t v = 0;
	char *end;

	errno = 0;
	if (*text >= '0' && *text <= '9')
		v = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || errno || *end || v < min || v > max)
		sim_die("--%s %s: a number from %llu to %llu", option_name(c), text,
			(unsigned long long)min, (unsigned long long)max);
	return v;
}

/* Up to a day; @end: what may follow, NULL: nothing. */
static uint64_t time_ns(int c, const char *text, const char **end)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	double v = 0;
	char *e = NULL;

	if (*text >= '0' && *text <= '9')
		v = strtod(text, &e);
	for (size_t i = 0; e && i < sizeof(units) / sizeof(units[0]); i++) {
		size_t n = strlen(units[i].unit);

		if (strncmp(e, units[i].unit, n) || (e[n] && !end) || v * units[i].ns > 86400e9)
			continue;
		if (end)
			*end = e + n;
		return (uint64_t)(v * units[i].ns);
	}
	sim_die("--%s %s: a time is a number with ns, us, ms or s", option_name(c), text);
}

static double real(int c, const char *text, double min, double max)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= min) || !(v <= max))
		sim_die("--%s %s: a number from %g to %g", option_name(c), text, min, max);
	return v;
}

/* Which of the words @text is. */
static unsigned int word(int c, const char *text, const char *const *words)
{
	for (unsigned int i = 0; words[i]; i++) {
		if (!strcmp(words[i], text))
			return i;
	}
	sim_die("--%s: \"%s\" is not known", option_name(c), text);
}

static enum skua_wqe_op op_of(const char *text)
{
	static const char *const words[] = { "write", "send", "read", NULL };
	static const enum skua_wqe_op ops[] = { SKUA_WQE_WRITE, SKUA_WQE_SEND, SKUA_WQE_READ };

	return ops[word(OP, text, words)];
}

static uint64_t caps(char *text)
{
	static const struct {
		const char *name;
		uint64_t cap;
	} all[] = {
#define X(name) { #name, SKUA_CAP_##name },
		SKUA_CAP_TABLE(X)
#undef X
	};
	uint64_t mask = 0;
	char *name;

	while ((name = strsep(&text, ","))) {
		size_t i = 0;

		while (i < sizeof(all) / sizeof(all[0]) && strcmp(all[i].name, name))
			i++;
		if (i == sizeof(all) / sizeof(all[0]))
			sim_die("--caps-off: unknown capability \"%s\"", name);
		mask |= all[i].cap;
	}
	return mask;
}

static void ecn(struct fabric_cfg *f, char *text)
{
	char *max = strchr(text, ','), *prob = max ? strchr(max + 1, ',') : NULL;

	if (!prob)
		sim_die("--ecn %s: MIN,MAX,PROB", text);
	*max++ = '\0';
	*prob++ = '\0';
	f->ecn_min = (uint32_t)number(ECN, text, 1, 1u << 30);
	f->ecn_max = (uint32_t)number(ECN, max, 2, 1u << 30);
	f->ecn_prob = (uint32_t)(real(ECN, prob, 0, 1) * UINT32_MAX);
}

/* PLANE[.SPINE][@AT[+KNOWN]]; times count from when traffic begins, at 1 s. */
static void dead(struct fabric_cfg *f, char *text)
{
	struct fabric_death *d = &f->death[f->num_deaths];
	char *at = strchr(text, '@'), *spine;
	const char *known = "";

	if (f->num_deaths == FABRIC_DEATHS_MAX)
		sim_die("--dead: more than %u", FABRIC_DEATHS_MAX);
	if (at)
		*at++ = '\0';
	spine = strchr(text, '.');
	if (spine)
		*spine++ = '\0';
	f->num_deaths++;
	d->plane = (unsigned int)number(DEAD, text, 0, FABRIC_PATHS_MAX - 1);
	d->spine = spine ? (int)number(DEAD, spine, 0, FABRIC_PATHS_MAX - 1) : -1;
	d->at_ns = SIM_START + (at ? time_ns(DEAD, at, &known) : 0);
	if (*known && *known != '+')
		sim_die("--dead: \"%s\" behind the time", known);
	d->known_ns = d->at_ns + (*known ? time_ns(DEAD, known + 1, NULL) : 0);
	if (!at)
		d->at_ns = d->known_ns = 0;
}

static bool parse_traffic(struct scenario_opt *o, int c, char *arg)
{
	struct sim_opt *s = &o->sim;

	switch (c) {
	case LIST:
		o->list = arg;
		return true;
	case SEED:
		s->seed = number(c, arg, 0, UINT64_MAX);
		return true;
	case OP:
		s->op = op_of(arg);
		return true;
	case SIZE:
		s->size = (uint32_t)number(c, arg, 1, 64 << 20);
		o->size_set = true;
		return true;
	case QPS:
		s->qps = (unsigned int)number(c, arg, 1, 50000);
		o->qps_set = true;
		return true;
	case DEPTH:
		s->depth = (unsigned int)number(c, arg, 1, SIM_DEPTH_MAX);
		o->depth_set = true;
		return true;
	case RUN:
		s->run_ns = time_ns(c, arg, NULL);
		o->run_set = true;
		return true;
	case EACH:
		s->each = (unsigned int)number(c, arg, 1, 1u << 20);
		return true;
	case LIMIT:
		s->limit_ns = time_ns(c, arg, NULL);
		return true;
	case MTU:
		s->mtu = (uint32_t)number(c, arg, 256, 4096);
		if (s->mtu & (s->mtu - 1))
			sim_die("--mtu %s: 256, 512, 1024, 2048 or 4096", arg);
		return true;
	case TIMEOUT:
		s->timeout = (uint32_t)number(c, arg, 0, 31);
		o->timeout_set = true;
		return true;
	case PSN:
		s->psn = (int32_t)number(c, arg, 0, 0xffffff);
		return true;
	case MAY_FAIL:
		s->may_fail = true;
		return true;
	case NO_ECT:
		s->tclass = 0;
		return true;
	}
	return false;
}

/* Kept one higher, so that 0 is none given. */
static void cc_param(struct sim_opt *s, char *text)
{
	static const struct {
		const char *name;
		uint32_t min, max;
	} all[] = {
#define X(name, user, min, max, dflt, text) { #user, min, max },
		SKUA_CC_PARAM_TABLE(X)
#undef X
	};
	char *value = strchr(text, '=');
	size_t i = 0;

	if (!value)
		sim_die("--cc-param %s: NAME=VALUE", text);
	*value++ = '\0';
	while (i < sizeof(all) / sizeof(all[0]) && strcmp(all[i].name, text))
		i++;
	if (i == sizeof(all) / sizeof(all[0]))
		sim_die("--cc-param: unknown parameter \"%s\"", text);
	s->cc[i] = number(CC_PARAM, value, all[i].min, all[i].max) + 1;
}

static bool parse_network(struct scenario_opt *o, int c, char *arg)
{
	static const char *const spreads[] = { "flow", "packet", "turn", "adaptive", NULL };
	struct fabric_cfg *f = &o->sim.fabric;

	switch (c) {
	case NICS:
		f->nics = (unsigned int)number(c, arg, 2, SIM_NICS_MAX);
		return true;
	case RATE:
		f->rate_mbps = (uint32_t)(real(c, arg, 0.001, 1600) * 1000);
		return true;
	case RTT:
		o->rtt_ns = time_ns(c, arg, NULL);
		return true;
	case QUEUE:
		f->queue_bytes = (uint32_t)number(c, arg, 1, 1u << 30);
		return true;
	case ECN:
		ecn(f, arg);
		return true;
	case LEAF:
		f->per_leaf = (unsigned int)number(c, arg, 1, SIM_NICS_MAX);
		return true;
	case PLANES:
		f->planes = (unsigned int)number(c, arg, 1, FABRIC_PATHS_MAX);
		return true;
	case PATHS:
		f->planes = 1;
		f->spines = (unsigned int)number(c, arg, 1, FABRIC_PATHS_MAX);
		return true;
	case SPINES:
		f->spines = (unsigned int)number(c, arg, 1, FABRIC_PATHS_MAX);
		return true;
	case UP:
		f->up_mbps = (uint32_t)(real(c, arg, 0.001, 4000) * 1000);
		return true;
	case SPREAD:
		f->spread = (enum fabric_spread)word(c, arg, spreads);
		return true;
	case DEAD:
		dead(f, arg);
		return true;
	case LINK_LOSS:
		f->loss = (uint64_t)(real(c, arg, 0, 0.999) * 0x1p64);
		return true;
	case FRAME_GAP:
		f->frame_ns = (uint32_t)time_ns(c, arg, NULL);
		return true;
	}
	return false;
}

static bool parse_other(struct scenario_opt *o, int c, char *arg)
{
	static const char *const spoils[] = { "none", "data", "twice", "lost", NULL };
	static const char *const algorithms[] = { "none", "dcqcn", "delay", NULL };
	struct sim_opt *s = &o->sim;

	switch (c) {
	case FAULT:
		if (s->num_faults == SIM_FAULTS_MAX)
			sim_die("--fault: more than %u", SIM_FAULTS_MAX);
		s->fault[s->num_faults++] = arg;
		return true;
	case CAPS_OFF:
		s->caps_off |= caps(arg);
		return true;
	case CC:
		s->cc[SKUA_CC_RP_ALGORITHM] = word(CC, arg, algorithms) + 1;
		return true;
	case CC_PARAM:
		cc_param(s, arg);
		return true;
	case SR:
		s->sr = (uint32_t)number(c, arg, SKUA_EXT_LOG_WINDOW_MIN, SKUA_EXT_LOG_WINDOW_MAX);
		return true;
	case ONCHIP:
		s->onchip = (uint32_t)number(c, arg, 1, 1u << 30);
		return true;
	case PCIE:
		s->pcie_ns = time_ns(c, arg, NULL);
		return true;
	case CSV:
		o->csv = arg;
		return true;
	case PCAP:
		s->pcap = arg;
		return true;
	case JUDGE:
		s->judge = true;
		return true;
	case PERF:
		o->perf = true;
		return true;
	case SPOIL:
		s->spoil = (enum sim_spoil)word(c, arg, spoils);
		return true;
	case 'v':
		s->verbose = true;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct scenario_opt o = {
		.sim = {
			.fabric = {
				.nics = 2,
				.rate_mbps = 100000,
				.queue_bytes = 2000000,
				.nic_bytes = 16384,
			},
			.seed = 1,
			.op = SKUA_WQE_WRITE,
			.size = 65536,
			.mtu = 4096,
			.qps = 4,
			.depth = 8,
			.run_ns = 10000000,
			.limit_ns = 10000000000,
			.timeout = 6,
			.psn = -1,
			.tclass = 2,
		},
		.rtt_ns = 40000,
	};
	int c;

	/* Tables of devices are large and hardly used: they stay zero pages in each run. */
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_MMAP_MAX, 1 << 20);
	while ((c = getopt_long(argc, argv, "v", options, NULL)) != -1) {
		if (c == HELP) {
			fputs(usage, stdout);
			return 0;
		}
		if (c == '?' || (!parse_traffic(&o, c, optarg) && !parse_network(&o, c, optarg) &&
				 !parse_other(&o, c, optarg)))
			return 2;
	}
	if (optind + 1 != argc || !scenario_known(argv[optind]))
		sim_die("one scenario: pair, loss, reorder, incast or alltoall; see --help");
	if (!strcmp(argv[optind], "alltoall") && o.sim.fabric.nics == 2)
		o.sim.fabric.nics = 16;
	return scenario_run(argv[optind], &o);
}
