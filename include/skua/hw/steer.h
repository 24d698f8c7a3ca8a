/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Skua device interface: contexts of addresses and steering.
 *
 * They lie in ICM (see icm.h), and say which addresses are the device's and which
 * QPs get what comes to them: receive side scaling, flow rules, multicast members.
 *
 * "State" below marks fields that the device owns: zero in commands.
 */
#ifndef SKUA_HW_STEER_H
#define SKUA_HW_STEER_H

#include <linux/types.h>
#include <skua/hw/icm.h>

/**
 * struct skua_gid - GID table entry
 * @gid: IPv6 address, or IPv4 address in its mapped form
 * @mac: source MAC, and destination MAC of RoCE frames for it
 * @vlan: VLAN id, SKUA_GID_NO_VLAN: untagged
 * @flags: SKUA_GID_*
 * @reserved: zero
 */
struct skua_gid {
	__u8 gid[16];
	__u8 mac[6];
	__le16 vlan;
	__le32 flags;
	__le32 reserved;
};

_Static_assert(sizeof(struct skua_gid) == SKUA_ICM_GID_SIZE, "skua_gid");

#define SKUA_GID_NO_VLAN		0xffff
#define SKUA_GID_VALID			BIT(0)
#define SKUA_GID_IPV4			BIT(1)

/* Largest indirection table of an RSS context. */
#define SKUA_RSS_MAX			128
#define SKUA_RSS_KEY_SIZE		40

/**
 * struct skua_rss - receive side scaling context
 * @flags: SKUA_RSS_*
 * @reserved: zero
 * @key: Toeplitz key
 * @qpn: receive queues (QPs) by hash bits
 * @pad: zero
 */
struct skua_rss {
	__le32 flags;
	__le32 reserved;
	__u8 key[SKUA_RSS_KEY_SIZE];
	__le32 qpn[SKUA_RSS_MAX];
	__le32 pad[116];
};

_Static_assert(sizeof(struct skua_rss) == SKUA_ICM_RSS_SIZE, "skua_rss");

#define SKUA_RSS_VALID			BIT(0)	/* state */
#define SKUA_RSS_LOG_SIZE		GENMASK(11, 8)
/* Hash over addresses; over addresses and ports. */
#define SKUA_RSS_IPV4			BIT(16)
#define SKUA_RSS_IPV6			BIT(17)
#define SKUA_RSS_TCP_IPV4		BIT(18)
#define SKUA_RSS_TCP_IPV6		BIT(19)
#define SKUA_RSS_UDP_IPV4		BIT(20)
#define SKUA_RSS_UDP_IPV6		BIT(21)

/**
 * struct skua_flow_match - header fields a rule compares
 * @dmac: destination MAC
 * @smac: source MAC
 * @ethertype: after a VLAN tag, big-endian
 * @vlan_tci: VLAN tag, big-endian
 * @saddr: source address, IPv4 in the last four bytes
 * @daddr: destination address, likewise
 * @sport: TCP or UDP source port, big-endian
 * @dport: TCP or UDP destination port, big-endian
 * @ip_proto: IP protocol
 * @flags: SKUA_FLOW_M_*
 * @reserved: zero
 */
struct skua_flow_match {
	__u8 dmac[6];
	__u8 smac[6];
	__be16 ethertype;
	__be16 vlan_tci;
	__u8 saddr[16];
	__u8 daddr[16];
	__be16 sport;
	__be16 dport;
	__u8 ip_proto;
	__u8 flags;
	__u8 reserved[2];
};

_Static_assert(sizeof(struct skua_flow_match) == 56, "skua_flow_match");

#define SKUA_FLOW_M_VLAN		BIT(0)	/* frame is tagged */
#define SKUA_FLOW_M_IPV4		BIT(1)
#define SKUA_FLOW_M_IPV6		BIT(2)

/**
 * struct skua_flow - flow steering rule
 * @flags: SKUA_FLOW_*
 * @dest: QPN, or RSS context with SKUA_FLOW_RSS
 * @tag: flow tag for the CQE
 * @counter: counter set that counts the frames it takes, 0: none
 * @value: what to compare with; zero where the mask is zero
 * @mask: which bits to compare
 *
 * The valid rule of the lowest PRIO that matches takes the frame; of two of
 * the same priority, the one of the lower index. Multicast and SNIFFER rules
 * copy: every one that matches gets the frame.
 */
struct skua_flow {
	__le32 flags;
	__le32 dest;
	__le32 tag;
	__le32 counter;
	struct skua_flow_match value;
	struct skua_flow_match mask;
};

_Static_assert(sizeof(struct skua_flow) == SKUA_ICM_FLOW_SIZE, "skua_flow");

#define SKUA_FLOW_VALID			BIT(0)	/* state */
#define SKUA_FLOW_RSS			BIT(1)
#define SKUA_FLOW_DROP			BIT(2)
#define SKUA_FLOW_SNIFFER		BIT(3)
#define SKUA_FLOW_PRIO			GENMASK(31, 16)

/**
 * struct skua_mcg - member of a multicast group (UD)
 * @gid: the group: ff00::/8, or 224.0.0.0/4 in the mapped form
 * @qpn: the member
 * @flags: SKUA_MCG_VALID
 * @reserved: zero
 *
 * A RoCE packet to a group comes to each member, whatever the netdev's filters
 * say: from the wire, and from other QPs of this device. It must come in a VLAN
 * (or untagged) that a GID table entry is in. Of a group without members the
 * netdev's filters decide. Members of a group are QPs: no QP is two of them.
 */
struct skua_mcg {
	__u8 gid[16];
	__le32 qpn;
	__le32 flags;
	__le32 reserved[10];
};

_Static_assert(sizeof(struct skua_mcg) == SKUA_ICM_MCG_SIZE, "skua_mcg");

#define SKUA_MCG_VALID			BIT(0)	/* state */

#endif /* SKUA_HW_STEER_H */
