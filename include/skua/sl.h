/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * The service level of datagrams, as programs have it (struct ibv_wc and struct
 * ibv_ah_attr): shared by the kernel driver and the user-space provider.
 *
 * With Ethernet a service level is a VLAN priority, 0..7. The IBTA (A17.4.5.1) also
 * requires the completion of a datagram to report the network header type, for which the
 * user-space verbs have no field. Programs expect it where mlx5 reports it, in the low
 * four bits of the service level. The priority is in the bits above, so that an address
 * handle that is created from a completion (ibv_create_ah_from_wc) has the same one.
 *
 * Kernel consumers get the network header type in struct ib_wc.network_hdr_type; their
 * service level is only the priority.
 */
#ifndef SKUA_SL_H
#define SKUA_SL_H

#include <skua/cqe_parse.h>

#define SKUA_SL_KIND		GENMASK(3, 0)	/* 0..7: it is a priority alone */
#define SKUA_SL_IPV6		9		/* UDP over IPv6 */
#define SKUA_SL_IPV4		10		/* UDP over IPv4 */
#define SKUA_SL_PRIORITY	GENMASK(6, 4)
#define SKUA_SL_PRIORITY_MAX	7

/**
 * skua_sl_received() - service level that a program finds in a completion
 * @cqe: of a received datagram
 *
 * Return: kind of packet and priority.
 */
static inline __u32 skua_sl_received(const struct skua_cqe *cqe)
{
	return u32_encode_bits(cqe->ud.ipv4 ? SKUA_SL_IPV4 : SKUA_SL_IPV6, SKUA_SL_KIND) |
	       u32_encode_bits(skua_cqe_ud_sl(cqe), SKUA_SL_PRIORITY);
}

/**
 * skua_sl_priority() - VLAN priority of a service level
 * @sl: a priority, or what skua_sl_received() gave
 *
 * Return: the priority, or a number above SKUA_SL_PRIORITY_MAX if there is no such
 * service level.
 */
static inline __u32 skua_sl_priority(__u32 sl)
{
	__u32 kind = u32_get_bits(sl, SKUA_SL_KIND);

	if ((kind == SKUA_SL_IPV6 || kind == SKUA_SL_IPV4) &&
	    !(sl & ~(__u32)(SKUA_SL_KIND | SKUA_SL_PRIORITY)))
		return u32_get_bits(sl, SKUA_SL_PRIORITY);
	return sl;
}

#endif /* SKUA_SL_H */
