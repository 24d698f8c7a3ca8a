/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by port.c (link, addresses, loopback), steer.c (receivers of a frame) and eth_*.c
 * (the RAW_ETH queues).
 */
#ifndef SKUA_MODEL_PORT_H
#define SKUA_MODEL_PORT_H

#include "core.h"
#include "frame.h"

#define GIDS		(1u << MODEL_LOG_GID)
#define MCG_HASH	256u
/* Largest TCP segment for segmentation by the device, with its headers. */
#define MODEL_MAX_LSO	(64u * 1024 + 256)

/* On-chip copy of a steering rule, as words to compare. */
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

/* eth_rx.c: result of delivering a frame to a queue. */
enum eth_rx { ETH_RX_TAKEN, ETH_RX_NO_QUEUE, ETH_RX_NO_WQE, ETH_RX_LONG };

/* Longest headers of a frame that may be merged with others. */
#define GRO_HDR_MAX	90

/**
 * struct gro - frames that are being merged
 * @segs: number of frames so far, 0: none are being merged
 * @qpn: receiving queue
 * @most: maximum number of frames
 * @hdr: bytes of headers of each, a tag included
 * @size: bytes of payload of each
 * @bytes: length of the merged frame, with its tag
 * @seq: sequence number of the next one
 * @id: its IPv4 identification
 * @psh: the last frame had the PSH flag
 * @strip: the tag is removed for the queue
 * @info: fields of the completion, equal for all frames
 * @rwqe: receive WQE of the first frame
 * @f: the first frame, of which only the headers are left
 * @head: copy of these headers
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
 * struct eth_done - contents of the completion of a receive WQE
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
 * struct way - state of the delivery of a frame, which may take several turns
 * @begun: some rules were applied in an earlier turn, and the frame comes again
 * @prio: priority of the last rule applied
 * @index: index of the last rule applied
 * @info: fields of the completion that are the same for all receivers
 * @result: best result of all receivers so far
 * @any: there was a receiver
 * @claimed: a rule other than a sniffer has taken the frame
 * @had: the port's default destination got the frame by a rule
 * @own: a multicast frame sent by the device itself: it is delivered by rules, but not to the
 *	port's default destination, whose host has sent it
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
 * @wire_up: the wire has a link
 * @enabled: enabled by MODIFY_PORT
 * @mtu: Ethernet payload limit
 * @mac: present MAC address
 * @promisc: @dflt gets unicast frames for all addresses
 * @allmulti: @dflt gets all multicast frames
 * @dflt: destination of frames for @mac
 * @gid: copy of the GID table, for lookup by address
 * @gid_head: hash chains of it: index + 1
 * @gid_next: likewise
 * @own: MAC addresses of the GID table, each once
 * @num_own: number of these
 * @rules: copy of the steering rules, in the order of their application
 * @way: delivery of the frame from the wire, and of the one from the loopback buffer
 * @num_rules: number of @rules
 * @room_rules: allocated size of @rules
 * @mcg: copy of the multicast members
 * @mcg_head: hash chains of it by group, in the order of indices: index + 1
 * @mcg_next: likewise
 * @num_mcg: valid ones
 * @loop: loopback buffer: of each frame a length word and its bytes
 * @loop_head: oldest byte, free running
 * @loop_tail: next byte to fill, free running
 * @gro: received frames that are being merged
 * @tx: buffer in which a frame is made, with room for a tag in front
 * @lso: buffer of a large segment that is being cut
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
/* Does a destination (RSS context or QPN) exist? If so, its reference count changes by @by. */
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
/* Add a frame that follows, after its payload was written. */
void gro_add(struct skua_dev *dev, const struct frame *f);

/* The port's and the wire's state together. */
static inline bool port_is_up(const struct port *p)
{
	return p->wire_up && p->enabled;
}

#endif /* SKUA_MODEL_PORT_H */
