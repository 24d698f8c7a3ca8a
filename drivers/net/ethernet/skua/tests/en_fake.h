/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A channel of a netdev with rings in memory, and a device that is a few lines of C.
 */
#ifndef SKUA_TESTS_EN_FAKE_H
#define SKUA_TESTS_EN_FAKE_H

#include <kunit/test.h>

#include "en.h"
#include "skua.h"

#define LOG_RQ		6
#define LOG_SQ		9
#define FRAME_LEN	60

/**
 * struct ent - a channel, its device, and what was seen
 * @test: the test
 * @dev: as much of a function as queues need
 * @en: the netdev's private data
 * @ch: its channel
 * @rx_pi: CQEs that the device has written to the receive CQ
 * @rx_wqe: receive WQEs that it has used
 * @tx_pi: likewise, to the send CQ
 * @publishes: how often a consumer index was published
 * @room_early: how often room of a ring was given out before
 * @skb: what the stack was given
 */
struct ent {
	struct kunit *test;
	struct skua_dev dev;
	struct skua_en *en;
	struct skua_en_channel *ch;
	u32 rx_pi;
	u32 rx_wqe;
	u32 tx_pi;
	unsigned int publishes;
	unsigned int room_early;
	struct sk_buff *skb;
};

/* Ends with the test. */
struct ent *ent_create(struct kunit *test);
/* Rings and CQs of a channel, and its pool of pages; both are done for that of ent_create(). */
void ent_rings(struct ent *t, struct skua_en_channel *ch);
struct page_pool *ent_pool(struct skua_en_channel *ch);
/* Restarts that are asked for are counted in en->restarts[0], until en->dead is true again. */
void ent_count_restarts(struct ent *t);
/* Memory of the test, cleared. */
void *ent_zalloc(struct kunit *test, size_t size);

/* The device writes a CQE, the phase last. */
void ent_cq_write(struct skua_en_cq *cq, u32 pi, u32 index, u32 status, u32 len);
/* A frame for @dmac arrives in the next receive WQE; frames arrive in the next @n of them. */
void ent_receive_one(struct ent *t, const u8 *dmac);
void ent_receive(struct ent *t, unsigned int n);
/* As NAPI would: @budget, soft interrupts off. Return: what the poll says. */
int ent_poll(struct ent *t, int budget);
/* Send a packet; @tci: with this VLAN tag, 0: without one. */
void ent_send(struct ent *t, u16 tci);
/* The next @n packets, of one block each, are sent. */
void ent_complete_sends(struct ent *t, unsigned int n);

#endif /* SKUA_TESTS_EN_FAKE_H */
