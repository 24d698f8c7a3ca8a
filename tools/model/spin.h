/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The decision that the loop makes when it has no work: poll for more for a while ("look"), or
 * sleep.
 *
 * A look pays if the source of the next work (a guest, or another thread of the model) runs on
 * another processor: its work is then served without the delay of a wake-up. If that source
 * needs the processor on which the loop polls, no work can come before the loop sleeps. With
 * few processors both cases are common. Which one it is depends on the source of the last work,
 * since that tells the next one: the same source for a stream, the peer for requests and
 * responses. So success is recorded by the source of the last work.
 *
 * If looks after the work of all sources fail, but work comes as soon as the loop sleeps, the
 * loop shares a processor with its source. The Linux scheduler does that: it places a thread on
 * the processor of its waker. The loop then tries another processor.
 */
#ifndef SKUA_SPIN_H
#define SKUA_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_SOURCES	65

/* Duration of a look, ns. */
#define SPIN_LOOK	20000u
/* After so many failed looks in a row for a source there is only a trial look now and then: */
#define SPIN_MISSES	2
/* the first one after so many rounds, the interval doubling up to SPIN_EVERY_MAX rounds. */
#define SPIN_EVERY_MIN	8
#define SPIN_EVERY_MAX	64
/* Work that comes this soon (ns) after the loop began to sleep: a look might have found it. */
#define SPIN_NEAR	100000u
/* Number of rounds in a row in which looks fail and work comes soon, before the loop moves, */
#define SPIN_LOST	4
/* and the time (ns) until it may move again, which doubles up to SPIN_MOVE_MAX. */
#define SPIN_MOVE_MIN	1000000u
#define SPIN_MOVE_MAX	1000000000u
/* After so many successful looks in a row the present processor is taken to be a good one. */
#define SPIN_GOOD	32

/**
 * struct spin - state of the decision
 * @by: per source of work
 * @by.misses: failed looks in a row after work of this source, up to SPIN_MISSES
 * @by.rounds: rounds without a look since the last one
 * @by.every: number of rounds between trial looks
 * @source: source of the last work
 * @until: end of the present look
 * @looked: a look is under way
 * @last: its time is over, but it goes on for one more check, since the loop may not have had
 *	the processor for a part of that time
 * @idle_since: end of the last look, or, without a look, of the last work; 0: neither
 * @lost: rounds in a row in which a look failed, or would have, and work came within SPIN_NEAR
 * @paid: successful looks in a row
 * @moved: time of the last attempt to change the processor
 * @pause: minimum time between two such attempts
 */
struct spin {
	struct {
		uint32_t misses, rounds, every;
	} by[SPIN_SOURCES];
	unsigned int source;
	uint64_t until;
	bool looked, last;
	uint64_t idle_since;
	unsigned int lost, paid;
	uint64_t moved, pause;
};

void spin_init(struct spin *s);
/* Work of @source was done; sources from SPIN_SOURCES - 1 on count as one. */
void spin_work(struct spin *s, unsigned int source, uint64_t now);
/* There is no more work. True: look for more; false: sleep. */
bool spin_looks(struct spin *s, uint64_t now);
/* Before a sleep. True: try another processor, with a look there first. */
bool spin_moves(struct spin *s, uint64_t now);

#endif /* SKUA_SPIN_H */
