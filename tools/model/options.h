/* SPDX-License-Identifier: GPL-2.0 */
/* Command line of the daemon. */
#ifndef SKUA_MODEL_OPTIONS_H
#define SKUA_MODEL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPT_MAX_NICS	64
#define OPT_MAX_BUSES	64
#define OPT_MAX_LINKS	64
#define OPT_MIN_OBJECTS	8
#define OPT_MAX_OBJECTS	24
#define OPT_MAX_FAULTS	64

/**
 * struct opt_nic - one --nic
 * @socket: path of its vfio-user socket
 * @mac: permanent address
 * @serial: PCIe serial number
 * @onchip: bytes of memory on the chip, 0: the default
 * @whole: contexts are cached as a whole, not by sectors
 * @onload: software may keep the loss state of QPs
 * @vectors: MSI-X vectors, 0: the default
 * @bus: PCIe bus on which it can access the other NICs, if @has_bus
 * @push: longest WQE, in segments, that software is told to push
 * @objects: logarithm of the QPs, CQs, SRQs, keys ... that it offers, 0: as many as it can
 * @spoofchk: frames with a source address other than @mac are dropped
 * @has_mac: the user gave @mac
 * @has_serial: the user gave @serial
 * @has_bus: the user gave @bus; else it is alone on its bus
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
	unsigned int objects;
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

/* Parse the command line. -1: go on; else the exit code, after a message, help or version. */
int options_parse(struct options *opt, int argc, char **argv);

#endif /* SKUA_MODEL_OPTIONS_H */
