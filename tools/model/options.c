// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>
#include <skua/bits.h>
#include <skua/hw/cmd.h>
#include <skua/hw/doorbell.h>
#include <skua/hw/pci.h>

#include "options.h"

static const char usage[] =
"Usage: skua-model --nic socket=PATH[,KEY=VALUE...] [OPTION...]\n"
"Serve Skua NICs to virtual machines over vfio-user.\n"
"\n"
"  --nic socket=PATH     a NIC, served at this unix socket; repeat for more.\n"
"        mac=M             permanent address (default 02:53:4b:55:41:NN)\n"
"        serial=N          PCIe serial number (default: from the address)\n"
"        onchip=SIZE       bytes of memory on the chip, with K or M (default 4400K)\n"
"        contexts=sectors|whole  what of a context is there: the sectors that are\n"
"                          needed, or for comparison all (default: sectors)\n"
"        vectors=N         MSI-X vectors, 1 to 64\n"
"        bus=N             reaches the device memory of the other NICs with the same\n"
"                          N, 0 to 63, which must be the same VM's (default: none)\n"
"        spoofchk=on|off   its frames with a source address other than mac are dropped,\n"
"                          whatever address its driver sets (default: off)\n"
"        push=N            tells software to push send WQEs of up to N segments, 0 to 3\n"
"                          (default 0: none, as a doorbell costs less here)\n"
"        recovery=device|driver  who keeps what has arrived of packets that were sent\n"
"                          under selective repeat (default: device)\n"
"        objects=LOG       offers at most 2^LOG QPs, CQs, SRQs, keys, multicast members\n"
"                          and 16 times as many MTT entries; 8 to 24 (default: all)\n"
"  --dgram local=PATH,remote=PATH\n"
"                        a peer with QEMU's -netdev dgram; local is its remote\n"
"  --tap NAME            a TAP interface on the same wire\n"
"  --fault SPEC          loss, delay, reordering ... on the wire; may repeat\n"
"  --cmd-fault [NIC/]OPCODE[@RANGE]:FAULT[;...]\n"
"                        a command of that name (\"any\": of each) does not do what\n"
"                        it should; RANGE: N, N-M or N+, by default 1+; NIC: nic0,\n"
"                        nic1 ..., by default each; may repeat. FAULT is one of\n"
"        fail=STATUS       not executed, completes with that status\n"
"        ignore            not executed, never completes\n"
"        lose              executed, never completes\n"
"        noevent           executed, completes without its event\n"
"        late=TIME         executed, completes so much later (us, ms, s)\n"
"                        OPCODE ETH_SEND, ETH_RECV: send WQEs and received frames of\n"
"                        Ethernet queues; their FAULT is one of\n"
"        dma               the frame cannot be read or written\n"
"        lose, twice       no completion, two completions\n"
"        long              ETH_RECV: completes with too many bytes\n"
"  --caps-off CAP[,...]  the NICs lack these capabilities (RSS, CSUM ...)\n"
"  --control PATH        take commands at this unix datagram socket: \"cmd-fault\"\n"
"                        as above (OPCODE... may be \"off\"), \"cmd-fault show\",\n"
"                        \"fault\" as above, \"fault off\"\n"
"  --threads             a thread for each NIC (for those of one bus: one for all of\n"
"                        them), and one for the rest; for hosts with a processor for\n"
"                        each. By default one thread does everything\n"
"  --pcap FILE           capture the wire as pcapng\n"
"  --stats FILE          write counters there at the end and at SIGUSR1\n"
"  --seed N              seed of all that is random (default 0)\n"
"  -v, --verbose         log information messages; twice: debug messages too\n"
"  --help, --version\n"
"\n"
"Prints \"ready\" when all sockets listen. SIGTERM and SIGINT end it.\n";

__attribute__((format(printf, 1, 2)))
static int bad(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("skua-model: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputs("\nTry 'skua-model --help'.\n", stderr);
	va_end(ap);
	return 2;
}

static bool parse_u64(const char *text, uint64_t max, uint64_t *val)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*val = strtoull(text, &end, 0);
	return !errno && !*end && *val <= max;
}

/* Bytes, 1 to 1 GiB, with K or M for powers of 1024. */
static bool parse_size(const char *text, uint32_t *size)
{
	uint64_t unit = 1, num;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	num = strtoull(text, &end, 0);
	if (*end == 'K' || *end == 'M')
		unit = *end++ == 'K' ? 1 << 10 : 1 << 20;
	if (errno || *end || !num || num > (1u << 30) / unit)
		return false;
	*size = (uint32_t)(num * unit);
	return true;
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
	uint8_t any = 0;
	int used = 0;

	if (sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0], &mac[1], &mac[2],
		   &mac[3], &mac[4], &mac[5], &used) != 6 || used != 17 || text[used])
		return false;
	for (int i = 0; i < 6; i++)
		any |= mac[i];
	return any && !(mac[0] & 1);
}

static bool nic_key(struct opt_nic *nic, int key, const char *val)
{
	uint64_t num;

	switch (key) {
	case 0:
		nic->socket = val;
		return *val;
	case 1:
		nic->has_mac = true;
		return parse_mac(val, nic->mac);
	case 2:
		nic->has_serial = true;
		return parse_u64(val, UINT64_MAX, &nic->serial);
	case 3:
		return parse_size(val, &nic->onchip);
	case 4:
		if (!parse_u64(val, SKUA_MSIX_VECTORS_MAX, &num) || !num)
			return false;
		nic->vectors = num;
		return true;
	case 5:
		if (!parse_u64(val, OPT_MAX_BUSES - 1, &num))
			return false;
		nic->has_bus = true;
		nic->bus = num;
		return true;
	case 6:
		nic->spoofchk = !strcmp(val, "on");
		return nic->spoofchk || !strcmp(val, "off");
	case 7:
		if (!parse_u64(val, SKUA_PUSH_SEGS, &num))
			return false;
		nic->push = num;
		return true;
	case 8:
		nic->whole = !strcmp(val, "whole");
		return nic->whole || !strcmp(val, "sectors");
	case 9:
		nic->onload = !strcmp(val, "driver");
		return nic->onload || !strcmp(val, "device");
	case 10:
		if (!parse_u64(val, OPT_MAX_OBJECTS, &num) || num < OPT_MIN_OBJECTS)
			return false;
		nic->objects = num;
		return true;
	}
	return false;
}

static int parse_nic(struct options *opt, char *arg)
{
	char *const keys[] = { "socket", "mac", "serial", "onchip", "vectors", "bus",
			       "spoofchk", "push", "contexts", "recovery",
			       "objects", NULL };
	struct opt_nic *nic;
	char *val, *text = arg;
	int key;

	if (opt->num_nics == OPT_MAX_NICS)
		return bad("more than %d --nic", OPT_MAX_NICS);
	nic = &opt->nics[opt->num_nics];
	while (*text) {
		key = getsubopt(&text, keys, &val);
		if (key < 0 || !val)
			return bad("--nic: '%s' is not KEY=VALUE of a known key", val ? val : "");
		if (!nic_key(nic, key, val))
			return bad("--nic: bad value '%s' of %s", val, keys[key]);
	}
	if (!nic->socket)
		return bad("--nic needs socket=PATH");
	opt->num_nics++;
	return -1;
}

static int parse_dgram(struct options *opt, char *arg)
{
	char *const keys[] = { "local", "remote", NULL };
	struct opt_link *link;
	char *val, *text = arg;
	int key;

	if (opt->num_links == OPT_MAX_LINKS)
		return bad("more than %d of --dgram and --tap together", OPT_MAX_LINKS);
	link = &opt->links[opt->num_links];
	while (*text) {
		key = getsubopt(&text, keys, &val);
		if (key < 0 || !val || !*val)
			return bad("--dgram: both local=PATH and remote=PATH are required, and nothing else");
		if (key == 0)
			link->local = val;
		else
			link->remote = val;
	}
	if (!link->local || !link->remote)
		return bad("--dgram: both local=PATH and remote=PATH are required, and nothing else");
	opt->num_links++;
	return -1;
}

static int parse_caps(struct options *opt, char *arg)
{
	static const struct {
		const char *name;
		uint64_t cap;
	} caps[] = {
#define X(name) { #name, SKUA_CAP_##name },
		SKUA_CAP_TABLE(X)
#undef X
	};
	char *name;

	while ((name = strsep(&arg, ","))) {
		unsigned int i = 0;

		while (i < sizeof(caps) / sizeof(caps[0]) && strcmp(caps[i].name, name))
			i++;
		if (i == sizeof(caps) / sizeof(caps[0]))
			return bad("--caps-off: unknown capability '%s'", name);
		opt->caps_off |= caps[i].cap;
	}
	return -1;
}

/* Defaults of what was not given: distinct MAC addresses, and serial numbers from these. */
static int finish_nics(struct options *opt)
{
	for (unsigned int i = 0; i < opt->num_nics; i++) {
		struct opt_nic *nic = &opt->nics[i];
		const uint8_t *m = nic->mac;

		if (!nic->has_mac) {
			memcpy(nic->mac, "\x02SKUA", 5);
			nic->mac[5] = i;
		}
		/* EUI-64 as the PCIe specification builds it from a 48-bit address. */
		if (!nic->has_serial)
			nic->serial = (uint64_t)m[0] << 56 | (uint64_t)m[1] << 48 |
				      (uint64_t)m[2] << 40 | 0xfffeull << 24 |
				      (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5];
		for (unsigned int j = 0; j < i; j++) {
			if (!memcmp(nic->mac, opt->nics[j].mac, sizeof(nic->mac)))
				return bad("--nic: NICs %u and %u have the same mac=", j, i);
			if (!strcmp(nic->socket, opt->nics[j].socket))
				return bad("--nic: NICs %u and %u have the same socket=", j, i);
		}
	}
	return -1;
}

enum { NIC = 256, DGRAM, TAP, FAULT, CMD_FAULT, CAPS_OFF, CONTROL, THREADS, PCAP, STATS, SEED,
       HELP, VERS };

static const struct option longopts[] = {
	{ "nic", required_argument, NULL, NIC },
	{ "dgram", required_argument, NULL, DGRAM },
	{ "tap", required_argument, NULL, TAP },
	{ "fault", required_argument, NULL, FAULT },
	{ "cmd-fault", required_argument, NULL, CMD_FAULT },
	{ "caps-off", required_argument, NULL, CAPS_OFF },
	{ "control", required_argument, NULL, CONTROL },
	{ "threads", no_argument, NULL, THREADS },
	{ "pcap", required_argument, NULL, PCAP },
	{ "stats", required_argument, NULL, STATS },
	{ "seed", required_argument, NULL, SEED },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, HELP },
	{ "version", no_argument, NULL, VERS },
	{ 0 }
};

int options_parse(struct options *opt, int argc, char **argv)
{
	int c, ret = -1;

	memset(opt, 0, sizeof(*opt));
	while (ret < 0 && (c = getopt_long(argc, argv, "v", longopts, NULL)) != -1) {
		switch (c) {
		case NIC:
			ret = parse_nic(opt, optarg);
			break;
		case DGRAM:
			ret = parse_dgram(opt, optarg);
			break;
		case TAP:
			if (opt->num_links == OPT_MAX_LINKS)
				return bad("more than %d of --dgram and --tap together", OPT_MAX_LINKS);
			opt->links[opt->num_links++].tap = optarg;
			break;
		case FAULT:
			if (opt->num_faults == OPT_MAX_FAULTS)
				return bad("more than %d --fault", OPT_MAX_FAULTS);
			opt->faults[opt->num_faults++] = optarg;
			break;
		case CMD_FAULT:
			if (opt->num_cmd_faults == OPT_MAX_FAULTS)
				return bad("more than %d --cmd-fault", OPT_MAX_FAULTS);
			opt->cmd_faults[opt->num_cmd_faults++] = optarg;
			break;
		case CAPS_OFF:
			ret = parse_caps(opt, optarg);
			break;
		case CONTROL:
			opt->control = optarg;
			break;
		case THREADS:
			opt->threads = true;
			break;
		case PCAP:
			opt->pcap = optarg;
			break;
		case STATS:
			opt->stats = optarg;
			break;
		case SEED:
			if (!parse_u64(optarg, UINT64_MAX, &opt->seed))
				return bad("--seed: '%s' is not a number of 64 bits", optarg);
			break;
		case 'v':
			opt->verbose++;
			break;
		case HELP:
			fputs(usage, stdout);
			return 0;
		case VERS:
			puts("skua-model " VERSION);
			return 0;
		default:
			return 2;
		}
	}
	if (ret >= 0)
		return ret;
	if (optind < argc)
		return bad("unexpected argument '%s'", argv[optind]);
	if (!opt->num_nics)
		return bad("at least one --nic is required");
	return finish_nics(opt);
}
