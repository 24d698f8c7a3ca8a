/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The driver of either side of a connection as far as loss recovery goes: its own recovery.c,
 * which gets the device's reports after a time that the test chooses, or never.
 */
#ifndef SKUA_TEST_ONLOAD_H
#define SKUA_TEST_ONLOAD_H

#include "../../drivers/net/ethernet/skua/recovery.h"
#include "net.h"

#define ONLOAD_EQN	MINI_EQS
#define ONLOAD_LOG_EQ	12

/**
 * struct onload_side - the driver of one side
 * @eq: of loss reports
 * @r: what it knows of the side's QP
 * @used: there is such a driver
 * @late: so many ns it takes until it looks at an event
 * @gone: it does not
 * @work_at: when it does, 0: there is no event
 * @told: producer index of the ring that the device knows
 * @events: reports taken
 */
struct onload_side {
	struct mini_eq eq;
	struct skua_recovery r;
	bool used;
	uint64_t late;
	bool gone;
	uint64_t work_at;
	uint32_t told;
	uint64_t events;
};

/**
 * struct onload - the drivers of a connection
 * @side: of both sides
 */
struct onload {
	struct onload_side side[2];
};

/* Begin with a connection that was just opened (rc_opt.onload), and that net_close() ends. */
void onload_start(struct net *n, struct onload *o);
/* The driver of side @i, with a window and an EQ of so many entries. */
void onload_side(struct net *n, int i, uint32_t log_window, uint32_t log_eq, uint64_t late);

#endif /* SKUA_TEST_ONLOAD_H */
