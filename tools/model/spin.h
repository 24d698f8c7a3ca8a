/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the loop does when it has done its work: look for more for a while, or sleep.
 *
 * To look pays if whoever has something to do next runs on another processor: it is served
 * without the time that a wake-up takes. If it needs the processor that the loop looks on, it
 * cannot have anything to do before the loop sleeps. On a machine with few processors both
 * are common, and who comes next depends on who came last: the sender of a stream again, the
 * other side of a program that answers. So it is learned for each source of work.
 *
 * Where looking never pays while there is work again as soon as the loop sleeps, it is on the
 * processor of the one that it works for. Linux brings it there, since who wakes it up seems
 * to be about to sleep. Then another processor may be better.
 */
#ifndef SKUA_SPIN_H
#define SKUA_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_SOURCES	65

/* For so long it looks, in ns. */
#define SPIN_LOOK	20000u
/* So many times in vain, and it does not any more but to find out whether that has changed: */
#define SPIN_MISSES	2
/* after so many rounds, then twice as many, up to: */
#define SPIN_EVERY_MIN	8
#define SPIN_EVERY_MAX	64
/* Work that comes so soon after it went to sleep might have been found. */
#define SPIN_NEAR	100000u
/* So many rounds of that kind before it wants another processor, */
#define SPIN_LOST	4
/* not sooner again than after so long, then twice as long, up to: */
#define SPIN_MOVE_MIN	1000000u
#define SPIN_MOVE_MAX	1000000000u
/* So many times in a row it paid: the present processor is right. */
#define SPIN_GOOD	32

/**
 * struct spin - what was learned
 * @by: of each source
 * @by.misses: looks after its work that were in vain, in a row, up to SPIN_MISSES
 * @by.rounds: rounds without a look since the last one
 * @by.every: after how many of them it looks
 * @source: whose work was done last
 * @until: end of the present look
 * @looked: there is one
 * @last: its time is over, but others may have had the processor meanwhile
 * @idle_since: when it ended, or when there was none and nothing more to do; 0: neither
 * @lost: rounds in a row in which a look was or would have been in vain, yet work came soon
 * @paid: looks in a row that found work
 * @moved: when another processor was wanted last
 * @pause: how long after that it may be wanted again
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
/* Something was done, for @source (those above the last are one). */
void spin_work(struct spin *s, unsigned int source, uint64_t now);
/* There is no more to do: look for more? Else sleep. */
bool spin_looks(struct spin *s, uint64_t now);
/* Before it sleeps: does it want another processor? It looks there first. */
bool spin_moves(struct spin *s, uint64_t now);

#endif /* SKUA_SPIN_H */
