// SPDX-License-Identifier: GPL-2.0
/*
 * The table of learnt addresses and their ports. All VLANs share it.
 *
 * The switches of several threads (trunk.h) share one table, without a lock: an address and its
 * port are one word, which is read and written as a whole. Accesses are relaxed, since no other
 * memory depends on a word. If two threads learn one address at the same time it may be in the
 * table twice. The first entry is used; the next frame from the address corrects it.
 */
#include "../roce/hdr.h"
#include "priv.h"

/* Ports have numbers from 1 on in a word. */
_Static_assert(1 + WIRE_PORTS_MAX <= UINT16_MAX &&
	       1 + TRUNK_MEMBERS_MAX * WIRE_MEMBER_PORTS <= UINT16_MAX, "a port has 16 bits");

static bool is_group(const uint8_t *addr)
{
	return addr[0] & 1;
}

static uint64_t key_of(const uint8_t *addr)
{
	return (uint64_t)be32_get(addr) << 32 | (uint64_t)be16_get(addr + 4) << 16;
}

static unsigned int set_of(uint64_t key)
{
	return (unsigned int)((key >> 16) * 0x9e3779b97f4a7c15ull >> 32) % WIRE_MAC_SETS;
}

static uint64_t load(const uint64_t *way)
{
	return __atomic_load_n(way, __ATOMIC_RELAXED);
}

/* The port number in @word if that is the entry of the address, else 0. */
static unsigned int port_in(uint64_t word, uint64_t key)
{
	return (word ^ key) >> 16 ? 0 : (uint16_t)word;
}

static unsigned int number_of(const struct wire_port *port)
{
	return 1 + port->w->member * WIRE_MEMBER_PORTS + port->index;
}

static struct wire_port *port_of(const struct wire *w, unsigned int number)
{
	unsigned int member = (number - 1) / WIRE_MEMBER_PORTS;

	if (!w->trunk)
		return w->port[number - 1];
	return member == w->member ? w->port[(number - 1) % WIRE_MEMBER_PORTS] : w->far[member];
}

struct wire_port *wire_port_of(const struct wire *w, const uint8_t *addr)
{
	uint64_t key = key_of(addr);
	const uint64_t *way = w->macs->way[set_of(key)];

	if (is_group(addr))
		return NULL;
	for (unsigned int i = 0; i < WIRE_MAC_WAYS; i++) {
		unsigned int number = port_in(load(&way[i]), key);

		if (number)
			return port_of(w, number);
	}
	return NULL;
}

void wire_learn(struct wire_port *port, const uint8_t *addr)
{
	uint64_t key = key_of(addr), word = key | number_of(port), old;
	unsigned int set = set_of(key), i;
	uint64_t *way = port->w->macs->way[set];

	if (is_group(addr))
		return;
	for (i = 0; i < WIRE_MAC_WAYS; i++) {
		old = load(&way[i]);
		if (old == word)
			return;
		if (port_in(old, key))
			break;
	}
	for (unsigned int k = 0; k < WIRE_MAC_WAYS && i == WIRE_MAC_WAYS; k++)
		if (!load(&way[k]))
			i = k;
	/* The set is full: replace an entry, whose address will be learnt again. */
	if (i == WIRE_MAC_WAYS)
		i = port->w->mac_victim[set]++ % WIRE_MAC_WAYS;
	__atomic_store_n(&way[i], word, __ATOMIC_RELAXED);
}
