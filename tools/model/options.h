/* SPDX-License-Identifier: GPL-2.0 */
/* Command line of the daemon. */
#ifndef SKUA_MODEL_OPTIONS_H
#define SKUA_MODEL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPT_MAX_NICS	64
#define OPT_MAX_BUSES	64
#define OPT_MAX_LINKS	64
#define OPT_MAX_FAULTS	64

/**
 * struct opt_nic - one --nic
 * @socket: path of its vfio-user socket
 * @mac: permanent address
 * @serial: PCIe serial number
 * @onchip: bytes of memory on the chip, 0: the default
 * @whole: contexts are there as a whole
 * @onload: software may keep the loss state of QPs
 * @vectors: MSI-X vectors, 0: the default
 * @bus: PCIe bus where it reaches the other NICs there, if @has_bus
 * @push: longest WQE, in segments, that software is told to push
 * @spoofchk: it sends with the address @mac alone
 * @has_mac: the user gave @mac
 * @has_serial: the user gave @serial
 * @has_bus: the user gave @bus; else it is alone
 */
struct opt_nic {
	const char *socket;
	uint8_t mac[6];
	uint64_t serial;
	uint32_t onchip;
	bool whole;
	bool onload;
	unsigned int vectors;
	unsigned int bus;
	unsigned int push;
	bool spoofchk;
	bool has_mac;
	bool has_serial;
	bool has_bus;
};

/* A --dgram (@tap is NULL) or a --tap. */
struct opt_link {
	const char *tap;
	const char *local;
	const char *remote;
};

struct options {
	struct opt_nic nics[OPT_MAX_NICS];
	unsigned int num_nics;
	struct opt_link links[OPT_MAX_LINKS];
	unsigned int num_links;
	const char *faults[OPT_MAX_FAULTS];
	unsigned int num_faults;
	const char *cmd_faults[OPT_MAX_FAULTS];
	unsigned int num_cmd_faults;
	uint64_t caps_off;
	bool threads;
	const char *control;
	const char *pcap;
	const char *stats;
	uint64_t seed;
	int verbose;
};

/* Prints what is wrong, or help or version, and returns the exit code; -1: go on. */
int options_parse(struct options *opt, int argc, char **argv);

#endif /* SKUA_MODEL_OPTIONS_H */
