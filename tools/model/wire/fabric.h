/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A network of switches behind a wire's ports, with rates, queues and distances, for
 * simulations under virtual time.
 *
 * Each port of the wire is a NIC. It has one link to a leaf switch of each plane; the leaf
 * switches of a plane are joined by spine switches, none if there is only one leaf. A link
 * carries one frame at a time, whole frames, in the order in which they came. What comes
 * while it is busy waits in the queue before it: at a switch up to a limit, what is beyond
 * is lost. A NIC loses nothing: it is told to wait (wire_port_full()).
 *
 * What a packet meets is decided by numbers that follow from seed, flow, PSN and iteration
 * alone (struct wire_fate), and by the queues that it finds.
 */
#ifndef SKUA_WIRE_FABRIC_H
#define SKUA_WIRE_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire;

#define FABRIC_PATHS_MAX	64
#define FABRIC_DEATHS_MAX	8

/* Preamble, start, frame check sequence and gap: what a frame takes up beside its bytes. */
#define FABRIC_FRAME_EXTRA	24
/* Ethernet's shortest, without frame check sequence. */
#define FABRIC_FRAME_MIN	60

/* Who goes which way. */
enum fabric_spread {
	FABRIC_BY_FLOW,		/* each flow has one path */
	FABRIC_BY_PACKET,	/* each packet's is drawn */
	FABRIC_IN_TURN,		/* a flow's packets take one path after the other */
};

/**
 * struct fabric_death - a part of the network that fails
 * @plane: its plane
 * @spine: the spine switch there; -1: the whole plane
 * @at_ns: from then on nothing comes through
 * @known_ns: from then on nobody takes that way
 */
struct fabric_death {
	unsigned int plane;
	int spine;
	uint64_t at_ns;
	uint64_t known_ns;
};

/**
 * struct fabric_cfg - a network
 * @nics: ports of the wire
 * @per_leaf: NICs at one leaf switch; 0: all of them at one switch
 * @planes: networks side by side, each of which has its part of a NIC's rate; 0: one
 * @spines: spine switches of a plane; 0: one
 * @rate_mbps: of a NIC, all planes together
 * @up_mbps: of a link between leaf and spine; 0: the spines carry what the NICs can send
 * @nic_ns: time that a signal takes between NIC and leaf
 * @up_ns: likewise between leaf and spine
 * @queue_bytes: limit of each queue of a switch
 * @nic_bytes: of what waits in a NIC for each plane, after which it is to wait
 * @frame_ns: shortest time between frames that a NIC sends on one link
 * @ecn_min: bytes in a queue from which ECN-capable packets may be marked; 0: never
 * @ecn_max: from which all of them are
 * @ecn_prob: how likely that is just below, of 2^32
 * @loss: how likely a frame is lost on a link, of 2^64
 * @spread: who goes which way
 * @death: what fails
 * @num_deaths: how many of them
 * @flows: flows to remember, see wire_faults_room(); 0: as without a network
 * @psns: PSNs of each
 */
struct fabric_cfg {
	unsigned int nics;
	unsigned int per_leaf;
	unsigned int planes;
	unsigned int spines;
	uint32_t rate_mbps;
	uint32_t up_mbps;
	uint64_t nic_ns;
	uint64_t up_ns;
	uint32_t queue_bytes;
	uint32_t nic_bytes;
	uint32_t frame_ns;
	uint32_t ecn_min;
	uint32_t ecn_max;
	uint32_t ecn_prob;
	uint64_t loss;
	enum fabric_spread spread;
	struct fabric_death death[FABRIC_DEATHS_MAX];
	unsigned int num_deaths;
	uint32_t flows;
	uint32_t psns;
};

/**
 * struct fabric_stats - what became of the frames
 * @sent: that NICs gave it
 * @delivered: that came to a NIC
 * @drop_queue: lost because a queue was full
 * @drop_loss: lost on a link
 * @drop_dead: lost in what had failed, or with no way left
 * @drop_unknown: for an address that no NIC has
 * @drop_memory: for want of memory
 * @marked: frames that got a CE mark; one may pass several queues, and gets one
 * @marked_lost: of these, lost behind that
 * @flight: still on their way
 * @queue_max: most bytes that waited before a link of a switch
 * @nic_max: most bytes that waited in a NIC
 * @path: frames that NICs sent on each way: plane times spines, plus spine
 */
struct fabric_stats {
	uint64_t sent;
	uint64_t delivered;
	uint64_t drop_queue;
	uint64_t drop_loss;
	uint64_t drop_dead;
	uint64_t drop_unknown;
	uint64_t drop_memory;
	uint64_t marked;
	uint64_t marked_lost;
	uint64_t flight;
	uint64_t queue_max;
	uint64_t nic_max;
	uint64_t path[FABRIC_PATHS_MAX];
};

/*
 * Put a network behind the ports of @w, which has none yet. wire_add_dev() then adds NIC 0,
 * 1, ...; wire_port_only_mac() says where an address is, and must be called for each.
 * Frames for other addresses, and for groups, are lost. 0, or -1 with a message.
 */
int wire_use_fabric(struct wire *w, const struct fabric_cfg *cfg, char *err, size_t errlen);

const struct fabric_stats *wire_fabric_stats(const struct wire *w);
/* Ways between two NICs of different leaves, or of one if there is only that. */
unsigned int wire_fabric_paths(const struct wire *w);

#endif /* SKUA_WIRE_FABRIC_H */
