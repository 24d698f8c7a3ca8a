/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A network of switches behind a wire's ports, with rates, queues and distances, for
 * simulations under virtual time.
 *
 * Each port of the wire is a NIC. It has one link to a leaf switch of each plane; the leaf
 * switches of a plane are joined by spine switches, or there is one leaf and no spine. A link
 * carries one frame at a time, in order of arrival. Frames that arrive while it is busy wait in
 * the queue in front of it. A switch drops frames beyond the limit of the queue. A NIC drops
 * nothing: its station is told to wait (wire_port_full()).
 *
 * The random decisions about a packet depend on seed, flow, PSN and iteration alone (struct
 * wire_fate), the others on the queues on its path.
 */
#ifndef SKUA_WIRE_FABRIC_H
#define SKUA_WIRE_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire;

#define FABRIC_PATHS_MAX	64
#define FABRIC_DEATHS_MAX	8

/* Overhead of a frame on the wire: preamble, start delimiter, FCS and gap. */
#define FABRIC_FRAME_EXTRA	24
/* Shortest Ethernet frame, without FCS. */
#define FABRIC_FRAME_MIN	60

/* Choice of paths. */
enum fabric_spread {
	FABRIC_BY_FLOW,		/* each flow has one path */
	FABRIC_BY_PACKET,	/* each packet's is drawn */
	FABRIC_IN_TURN,		/* a flow's packets take one path after the other, plane by plane */
	FABRIC_ADAPTIVE,	/* each packet's is the one that its NIC can send on first */
};

/**
 * struct fabric_death - a part of the network that fails
 * @plane: its plane
 * @spine: the spine switch there; -1: the whole plane
 * @at_ns: from this time on all frames there are lost
 * @known_ns: from this time on senders do not use it
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
 * @nic_ns: propagation delay between NIC and leaf
 * @up_ns: likewise between leaf and spine
 * @queue_bytes: limit of each queue of a switch
 * @nic_bytes: bytes waiting in a NIC, for each plane, from which on its station has to wait
 * @frame_ns: minimum time between the frames that a NIC sends on one link
 * @ecn_min: bytes in a queue from which ECN-capable packets may be marked; 0: never
 * @ecn_max: bytes in a queue from which all of them are marked
 * @ecn_prob: probability of a mark just below @ecn_max, in units of 2^-32
 * @loss: probability that a frame is lost on a link, in units of 2^-64
 * @spread: choice of paths
 * @death: failures of parts of the network
 * @num_deaths: number of @death
 * @flows: number of flows to remember, see wire_faults_room(); 0: as without a network
 * @psns: number of PSNs to remember for each flow
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
 * struct fabric_stats - counters of frames
 * @sent: sent by NICs
 * @delivered: delivered to NICs
 * @drop_queue: lost because a queue was full
 * @drop_loss: lost on a link
 * @drop_dead: lost in a part that had failed, or for lack of a path
 * @drop_unknown: for an address that no NIC has
 * @drop_memory: lost for lack of memory
 * @marked: marked CE; a frame is counted once even if several queues would mark it
 * @marked_lost: of these, lost after the mark
 * @flight: still in flight
 * @queue_max: maximum of the bytes in a queue of a switch
 * @nic_max: maximum of the bytes waiting in a NIC
 * @path: sent by NICs on each path: plane times spines, plus spine
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
 * Put a network behind the ports of @w, which must have none. wire_add_dev() then adds NIC 0,
 * 1, ...; wire_port_only_mac() must be called for each and gives its address to the network.
 * Frames to other addresses, and to groups, are lost. Returns 0, or -1 with a message.
 */
int wire_use_fabric(struct wire *w, const struct fabric_cfg *cfg, char *err, size_t errlen);

const struct fabric_stats *wire_fabric_stats(const struct wire *w);
/* Number of paths between two NICs of different leaves, or of the only leaf. */
unsigned int wire_fabric_paths(const struct wire *w);

#endif /* SKUA_WIRE_FABRIC_H */
