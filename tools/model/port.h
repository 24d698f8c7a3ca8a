/* SPDX-License-Identifier: GPL-2.0 */
/* What port.c (link, addresses, loopback), steer.c (who gets a frame) and eth_*.c
 * (the RAW_ETH queues) share.
 */
#ifndef SKUA_MODEL_PORT_H
#define SKUA_MODEL_PORT_H

#include "core.h"
#include "frame.h"

#define GIDS		(1u << MODEL_LOG_GID)
#define MCG_HASH	256u
/* Largest TCP segment that a queue may hand over to be cut, with its headers. */
#define MODEL_MAX_LSO	(64u * 1024 + 256)

/* A steering rule on the chip, as words to compare. */
#define RULE_WORDS	(sizeof(struct skua_flow_match) / 8)
struct rule {
	uint32_t index;
	uint32_t prio;
	uint32_t flags;
	uint32_t dest;
	uint32_t tag;
	uint32_t counter;
	uint64_t value[RULE_WORDS];
	uint64_t mask[RULE_WORDS];
};

/* eth_rx.c: what became of a frame at a queue. */
enum eth_rx { ETH_RX_TAKEN, ETH_RX_NO_QUEUE, ETH_RX_NO_WQE, ETH_RX_LONG };

/* Longest headers of a frame that may be merged with others. */
#define GRO_HDR_MAX	90

/**
 * struct gro - frames that are being merged
 * @segs: how many, 0: none
 * @qpn: queue that gets them
 * @most: how many there may be
 * @hdr: bytes of headers of each, a tag included
 * @size: bytes of payload of each
 * @bytes: of the whole, a tag included
 * @seq: sequence number of the next one
 * @id: its IPv4 identification
 * @psh: the last one had the PSH flag
 * @strip: the queue gets them without their tag
 * @info: what their completions say
 * @rwqe: receive WQE of the first
 * @f: the first, of which only the headers are still there
 * @head: they
 */
struct gro {
	uint32_t segs, qpn, most, hdr, size, bytes, seq;
	uint16_t id;
	bool psh, strip;
	struct skua_cqe_eth info;
	struct rwqe rwqe;
	struct frame f;
	uint8_t head[GRO_HDR_MAX];
};

/**
 * struct eth_done - what the completion of a receive WQE says
 * @status: status
 * @vendor: vendor syndrome
 * @len: bytes received
 * @info: of the frame
 * @flags: SKUA_CQE_F_*
 */
struct eth_done {
	enum skua_cqe_status status;
	enum skua_vendor vendor;
	uint32_t len;
	struct skua_cqe_eth info;
	uint32_t flags;
};

/**
 * struct way - a frame on its way to its receivers, some at a time
 * @begun: some rules were asked, and the frame comes again
 * @prio: of the last of them
 * @index: likewise
 * @info: what all receivers are told
 * @result: the best that became of it
 * @any: somebody was to get it
 * @claimed: a rule that is no sniffer has
 * @had: the port's default destination got it by a rule
 * @own: a multicast frame of the device itself: rules may lead it to queues, but the
 *	port's default destination, whose host sent it, does not get it back
 */
struct way {
	bool begun;
	uint32_t prio, index;
	struct skua_cqe_eth info;
	enum eth_rx result;
	bool any, claimed, had, own;
};

/**
 * struct port - the port
 * @wire_up: the wire is there
 * @enabled: MODIFY_PORT turned it on
 * @mtu: Ethernet payload limit
 * @mac: present MAC address
 * @promisc: unicast frames of others go to @dflt
 * @allmulti: multicast frames do
 * @dflt: where frames for @mac go
 * @gid: copy of the GID table, for lookup by address
 * @gid_head: hash chains of it: index + 1
 * @gid_next: likewise
 * @own: MAC addresses of the GID table, each once
 * @num_own: how many
 * @rules: copy of the steering rules, in the order in which they are asked
 * @way: the frame from the wire that is being steered, and the one on its way round
 * @num_rules: how many
 * @room_rules: for how many there is room
 * @mcg: copy of the multicast members
 * @mcg_head: hash chains of it by group, in the order of indices: index + 1
 * @mcg_next: likewise
 * @num_mcg: valid ones
 * @loop: frames on their way round inside, length word and bytes each
 * @loop_head: oldest byte, free running
 * @loop_tail: next byte to fill, free running
 * @gro: received frames that are being merged
 * @tx: a frame while it is made, with room in front for a tag
 * @lso: a large segment while it is cut
 */
struct port {
	bool wire_up;
	bool enabled;
	uint16_t mtu;
	uint8_t mac[ETH_ADDR_LEN];
	bool promisc;
	bool allmulti;
	uint32_t dflt;
	struct skua_gid gid[GIDS];
	uint16_t gid_head[GIDS];
	uint16_t gid_next[GIDS];
	uint8_t own[GIDS][ETH_ADDR_LEN];
	uint32_t num_own;
	struct rule *rules;
	uint32_t num_rules, room_rules;
	struct way way[2];
	struct skua_mcg *mcg;
	uint16_t mcg_head[MCG_HASH];
	uint16_t mcg_next[1u << MODEL_LOG_MCG];
	uint32_t num_mcg;
	uint8_t *loop;
	uint64_t loop_head, loop_tail;
	struct gro gro;
	uint8_t tx[ETH_VLAN_LEN + MODEL_MAX_FRAME];
	uint8_t lso[MODEL_MAX_LSO];
};

/*
 * steer.c: deliver a frame that RoCE did not claim to the QPs that the rules select. @looped:
 * the device has sent it itself. Return: true if it is not finished; call again with the same
 * frame in the next turn.
 */
bool steer(struct skua_dev *dev, const struct frame *f, bool looped);
void steer_reset(struct skua_dev *dev);
/* Does a destination (RSS context or QPN) exist? It then counts as named by @by more. */
bool dest_ok(struct skua_dev *dev, bool rss, uint32_t dest);
void dest_ref(struct skua_dev *dev, bool rss, uint32_t dest, int by);

/* eth_rx.c */
enum eth_rx eth_rx(struct skua_dev *dev, uint32_t qpn, const struct frame *f,
		   const struct skua_cqe_eth *info);
/* Write bytes [@from, @from + @len) of a frame, its tag taken out if @strip, to a WQE. */
enum skua_vendor eth_scatter(struct skua_dev *dev, const struct qp *qp, const struct rwqe *rwqe,
			     const struct frame *f, uint32_t from, uint32_t len, bool strip);
void eth_rx_complete(struct skua_dev *dev, struct qp *qp, uint32_t index,
		     const struct eth_done *done);

/* eth_gro.c */
/* Is the frame the next one of those that are being merged? */
bool gro_follows(const struct gro *g, uint32_t qpn, const struct frame *f,
		 const struct skua_cqe_eth *info);
/*
 * A frame was written to @rwqe, and none are being merged. False: it will not be merged with
 * another one, and is to be completed now.
 */
bool gro_begin(struct gro *g, const struct qp *qp, const struct frame *f,
	       const struct skua_cqe_eth *info, const struct rwqe *rwqe, bool strip);
/* A frame that follows; its payload was written. */
void gro_add(struct skua_dev *dev, const struct frame *f);

/* The port's and the wire's state together. */
static inline bool port_is_up(const struct port *p)
{
	return p->wire_up && p->enabled;
}

#endif /* SKUA_MODEL_PORT_H */
