/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCEv2 packets: parser and builder. They deal with formats only, not with QPs, allocate no memory
 * and have no state.
 *
 * Frames are Ethernet with at most one 802.1Q tag, IPv4 without options or IPv6
 * without extension headers, UDP to port 4791, and IB transport.
 */
#ifndef SKUA_ROCE_PKT_H
#define SKUA_ROCE_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr.h"
#include "opcode.h"

struct skua_dev;

/*
 * Result of parsing a frame. Each one after NOT_ROCE is a reason to drop a RoCE packet, and has a
 * counter of this name.
 */
#define SKUA_PKT_STATUS(X)							\
	X(OK,		"ok")							\
	/* For the netdev: no IP, no UDP to 4791, a later fragment. */		\
	X(NOT_ROCE,	"not_roce")						\
	/* IPv4 with options. */						\
	X(IP_OPTIONS,	"ip_options")						\
	/* The first fragment of an IPv4 datagram. */				\
	X(IP_FRAGMENT,	"ip_fragment")						\
	/* The IP header names more bytes than came, or too few for UDP. */	\
	X(IP_LEN,	"ip_len")						\
	/* More behind the IP datagram than Ethernet's padding. */		\
	X(TRAILER,	"trailer")						\
	X(IP_CSUM,	"ip_csum")						\
	/* UDP length is not that of the IP datagram. */			\
	X(UDP_LEN,	"udp_len")						\
	/* Too short for BTH and ICRC. */					\
	X(BTH_LEN,	"bth_len")						\
	/* Not a multiple of four bytes. */					\
	X(ALIGN,	"align")						\
	X(ICRC,		"icrc")							\
	/* Transport header version is not 0. */				\
	X(TVER,		"tver")							\
	/* Manufacturer's opcode. */						\
	X(OPCODE_VENDOR, "opcode_vendor")					\
	X(OPCODE,	"opcode")						\
	/* Too short for the headers which the opcode has. */			\
	X(HDR_LEN,	"hdr_len")						\
	/* Payload where the opcode has none, or not the length it must have. */	\
	X(PAYLOAD_LEN,	"payload_len")						\
	/* More padding than payload. */					\
	X(PAD,		"pad")

enum skua_pkt_status {
#define X(id, name) SKUA_PKT_##id,
	SKUA_PKT_STATUS(X)
#undef X
	SKUA_PKT_STATUS_MAX
};

const char *skua_pkt_status_name(enum skua_pkt_status status);

/**
 * struct skua_pkt - a parsed frame; all pointers are into the frame
 * @l3: IP header
 * @len: bytes of the IP datagram
 * @dmac: destination MAC address
 * @smac: source MAC address
 * @vlan: the frame has an 802.1Q tag
 * @ipv6: @l3 is an IPv6 header
 * @tci: the tag's PCP, DEI and VID if @vlan, otherwise 0
 * @sgid: source address (::ffff:a.b.c.d for IPv4)
 * @dgid: destination address
 * @tclass: traffic class or TOS, ECN in the low two bits
 * @hop_limit: hop limit or TTL
 * @flow_label: IPv6 flow label, otherwise 0
 * @sport: UDP source port
 * @bth: base transport header
 * @op: what the opcode means
 * @opcode: from the BTH, as all down to @migreq
 * @resv7: the seven reserved bits beside the acknowledge request bit
 * @pkey: P_Key
 * @dqpn: destination QP number
 * @psn: packet sequence number
 * @se: solicited event
 * @ackreq: acknowledge request
 * @fecn: forward congestion notification
 * @becn: backward congestion notification
 * @migreq: migration request state
 * @xrceth: extended headers, NULL where the opcode has none
 * @seth: see @xrceth
 * @deth: see @xrceth
 * @feth: see @xrceth
 * @reth: see @xrceth
 * @atomiceth: see @xrceth
 * @maskedeth: see @xrceth
 * @aeth: see @xrceth
 * @atomicacketh: see @xrceth
 * @immdt: see @xrceth
 * @ieth: see @xrceth
 * @payload: first byte of payload (never NULL)
 * @payload_len: its length without padding
 *
 * skua_pkt_parse_ip() fills all up to @sport; skua_pkt_parse_ib() the others.
 */
struct skua_pkt {
	const uint8_t *l3;
	size_t len;
	uint8_t dmac[ETH_ADDR_LEN];
	uint8_t smac[ETH_ADDR_LEN];
	bool vlan;
	bool ipv6;
	uint16_t tci;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint8_t tclass;
	uint8_t hop_limit;
	uint16_t sport;
	uint32_t flow_label;

	const struct ib_bth *bth;
	const struct ib_opcode_info *op;
	uint8_t opcode;
	uint8_t resv7;
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	bool se;
	bool ackreq;
	bool fecn;
	bool becn;
	bool migreq;

	const struct ib_xrceth *xrceth;
	const struct ib_seth *seth;
	const struct ib_deth *deth;
	const struct ib_feth *feth;
	const struct ib_reth *reth;
	const struct ib_atomiceth *atomiceth;
	const struct ib_maskedeth *maskedeth;
	const struct ib_aeth *aeth;
	const struct ib_atomicacketh *atomicacketh;
	const struct ib_immdt *immdt;
	const struct ib_ieth *ieth;

	const uint8_t *payload;
	uint32_t payload_len;
};

/**
 * skua_pkt_parse_ip() - first half: Ethernet, IP and UDP
 * @frame: what came from the wire
 * @len: its length
 * @pkt: result
 *
 * Whether RoCE claims a frame depends on its destination address, so that the
 * caller can look before it goes on: unless SKUA_PKT_NOT_ROCE is returned,
 * addresses and @sport are valid even where a reason to drop is given.
 */
enum skua_pkt_status skua_pkt_parse_ip(const void *frame, size_t len, struct skua_pkt *pkt);

/**
 * skua_pkt_parse_bth() - fill @pkt's BTH fields, look no further
 * @pkt: from skua_pkt_parse_ip() that returned SKUA_PKT_OK
 *
 * For packets of others, on the wire: ICRC, opcode and the rest are not checked;
 * @op is NULL if the opcode is unknown. SKUA_PKT_OK,
 * SKUA_PKT_BTH_LEN or SKUA_PKT_ALIGN.
 */
enum skua_pkt_status skua_pkt_parse_bth(struct skua_pkt *pkt);

/**
 * skua_pkt_parse_ib() - second half: ICRC, BTH, extended headers, payload
 * @pkt: from skua_pkt_parse_ip() that returned SKUA_PKT_OK
 *
 * The ICRC is looked at before any field that it covers, so a packet damaged on
 * its way is always counted as SKUA_PKT_ICRC. Afterwards @op, all headers of the
 * opcode and @payload are there. Left to the caller: whether the payload fits
 * the path MTU and the position in its message, P_Key, Q_Key, QP and state.
 */
enum skua_pkt_status skua_pkt_parse_ib(struct skua_pkt *pkt);

/* Likewise, but the ICRC was not written (skua_pkt_build_close()) and is not compared. */
enum skua_pkt_status skua_pkt_parse_ib_pending(struct skua_pkt *pkt);

/* Both halves. */
enum skua_pkt_status skua_pkt_parse(const void *frame, size_t len, struct skua_pkt *pkt);

/**
 * struct roce_in - a received packet
 * @frame: the frame
 * @len: its bytes
 * @own: sent by the device itself
 * @icrc_pending: its ICRC has not been written
 * @status: of skua_pkt_parse_ip()
 * @pkt: from there; roce_rx() completes it
 */
struct roce_in {
	const void *frame;
	size_t len;
	bool own;
	bool icrc_pending;
	enum skua_pkt_status status;
	struct skua_pkt pkt;
};

/*
 * Longest headers of a frame (tagged, IPv6, masked CmpSwap over XRC) and what
 * stands behind the payload: buffers of SKUA_PKT_OVERHEAD + MTU always do.
 */
#define SKUA_PKT_HDR_MAX	(ETH_HDR_LEN + ETH_VLAN_LEN + sizeof(struct ipv6_hdr) +	\
				 sizeof(struct udp_hdr) + sizeof(struct ib_bth) +	\
				 sizeof(struct ib_xrceth) + sizeof(struct ib_maskedeth))
#define SKUA_PKT_OVERHEAD	(SKUA_PKT_HDR_MAX + 3 + IB_ICRC_LEN)

/**
 * struct skua_pkt_addr - where a packet goes: an address vector ready for use
 * @dmac: destination MAC address
 * @smac: source MAC address
 * @vlan: put an 802.1Q tag
 * @tclass: traffic class or TOS: DSCP and ECN
 * @tci: the tag: PCP, DEI, VID
 * @sport: UDP source port
 * @sgid: source address
 * @dgid: destination address; IPv4 is spoken when both are ::ffff:a.b.c.d
 * @flow_label: for IPv6
 * @hop_limit: hop limit or TTL
 */
struct skua_pkt_addr {
	uint8_t dmac[ETH_ADDR_LEN];
	uint8_t smac[ETH_ADDR_LEN];
	bool vlan;
	uint8_t tclass;
	uint16_t tci;
	uint16_t sport;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t hop_limit;
};

/* The fields of a BTH that a sender chooses, named as in struct skua_pkt. */
struct skua_pkt_bth {
	uint8_t opcode;
	uint8_t resv7;
	uint16_t pkey;
	uint32_t dqpn;
	uint32_t psn;
	bool se;
	bool ackreq;
	bool fecn;
	bool becn;
	bool migreq;
};

/**
 * struct skua_pkt_build - a packet in the making; all pointers lead into its buffer
 * @frame: first byte
 * @size: bytes of room
 * @l3: IP header
 * @bth: base transport header
 * @xrceth: extended headers for the caller to fill (they are zero), NULL where
 *	the opcode has none
 * @seth: see @xrceth
 * @deth: see @xrceth
 * @feth: see @xrceth
 * @reth: see @xrceth
 * @atomiceth: see @xrceth
 * @maskedeth: see @xrceth
 * @aeth: see @xrceth
 * @atomicacketh: see @xrceth
 * @immdt: see @xrceth
 * @ieth: see @xrceth
 * @payload: where the caller puts the payload
 * @room: how much fits there
 * @ipv6: IPv6 is spoken
 */
struct skua_pkt_build {
	uint8_t *frame;
	size_t size;
	uint8_t *l3;
	struct ib_bth *bth;
	struct ib_xrceth *xrceth;
	struct ib_seth *seth;
	struct ib_deth *deth;
	struct ib_feth *feth;
	struct ib_reth *reth;
	struct ib_atomiceth *atomiceth;
	struct ib_maskedeth *maskedeth;
	struct ib_aeth *aeth;
	struct ib_atomicacketh *atomicacketh;
	struct ib_immdt *immdt;
	struct ib_ieth *ieth;
	uint8_t *payload;
	size_t room;
	bool ipv6;
};

/**
 * skua_pkt_build_start() - write all headers, lengths and sums excepted
 * @b: result
 * @buf: where the frame shall stand
 * @size: room there; SKUA_PKT_OVERHEAD plus payload is always enough
 * @addr: where to
 * @bth: its opcode decides which headers follow
 *
 * The caller then fills the extended headers (ib_*_put() of hdr.h) and the
 * payload, in any order, and calls skua_pkt_build_finish().
 *
 * Return: 0, -EINVAL for an unknown opcode, -EMSGSIZE if headers do not fit.
 */
int skua_pkt_build_start(struct skua_pkt_build *b, void *buf, size_t size,
			 const struct skua_pkt_addr *addr, const struct skua_pkt_bth *bth);

/**
 * skua_pkt_build_close() - pad the payload, fill in lengths and checksum, leave the ICRC out
 * @b: the packet
 * @payload_len: bytes that stand at @b->payload
 *
 * The CRC is most of the cost of a packet. A packet that stays in this process and is not captured
 * needs none; otherwise skua_pkt_icrc_fill() writes it.
 *
 * Return: as skua_pkt_build_finish().
 */
size_t skua_pkt_build_close(struct skua_pkt_build *b, size_t payload_len);

/* Write the ICRC of a packet made by skua_pkt_build_close(). Other frames are not changed. */
void skua_pkt_icrc_fill(void *frame, size_t len);

/**
 * skua_pkt_build_finish() - pad the payload, fill in lengths, checksum and ICRC
 * @b: the packet
 * @payload_len: bytes that stand at @b->payload
 *
 * The UDP checksum is sent as 0: the ICRC covers more. May be called again
 * after a change of header fields, for instance to send a packet once more.
 *
 * Return: length of the frame, filled up to Ethernet's minimum; 0 if it does
 * not fit into buffer or IP datagram.
 */
size_t skua_pkt_build_finish(struct skua_pkt_build *b, size_t payload_len);

/*
 * Trains: consecutive packets of one message between two devices of this process, sent as one
 * unit: the headers of the first packet, and the location of the payload of all of them in the
 * sender's memory. skua_train_packet() makes the single packets.
 */
#define SKUA_TRAIN_PIECES	20

/* A piece of payload: the bus address by which the sender has read it, and a pointer to it. */
struct skua_piece {
	const uint8_t *at;
	uint64_t bus;
	uint32_t len;
};

/**
 * struct skua_train - a train, without the headers of its first packet
 * @packets: number of packets, at least 2
 * @mtu: bytes of payload in each packet but the last
 * @bytes: bytes of payload in all packets
 * @ack_mask: packets whose PSN has all these bits request an acknowledgment
 * @ack_last: the last packet requests one
 * @middle: opcode of those after the first
 * @last: opcode of the last one
 * @qpn: the sender's QP
 * @end: PSN after that of the last packet
 * @sender: the sending device
 * @broken: result of skua_host_ops.dma_broken of its host when the train was sent
 * @num: number of @piece
 * @piece: the payload, in order
 */
struct skua_train {
	uint32_t packets;
	uint32_t mtu;
	uint32_t bytes;
	uint32_t ack_mask;
	bool ack_last;
	uint8_t middle, last;
	uint32_t qpn;
	uint32_t end;
	struct skua_dev *sender;
	uint64_t broken;
	uint32_t num;
	struct skua_piece piece[SKUA_TRAIN_PIECES];
};

/* Bytes of payload in packet @i. */
static inline uint32_t skua_train_payload(const struct skua_train *t, uint32_t i)
{
	return i + 1 < t->packets ? t->mtu : t->bytes - (t->packets - 1) * t->mtu;
}

/* Copy the payload [@off, @off + @len) to @to. */
void skua_train_copy(const struct skua_train *t, uint32_t off, void *to, uint32_t len);

/**
 * skua_train_packet() - packet @i of a train, as it would have been sent by itself
 * @head: headers of the first packet; the bytes after them are not read
 * @len: length of the first packet
 * @t: the train
 * @i: which
 * @buf: where to
 * @size: room there
 *
 * Return: its length; the ICRC is not written. 0: it does not fit.
 */
size_t skua_train_packet(const void *head, size_t len, const struct skua_train *t, uint32_t i,
			 void *buf, size_t size);

/* Sum of the lengths of all packets of a train. */
size_t skua_train_bytes(const void *head, size_t len, const struct skua_train *t);

/* Internet checksum of @len (even) bytes; 0 over a header that is intact. */
uint16_t skua_inet_csum(const void *data, size_t len);

#endif /* SKUA_ROCE_PKT_H */
