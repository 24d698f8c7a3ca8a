// SPDX-License-Identifier: GPL-2.0
/* The decision whether the loop polls for more work or sleeps; see spin.h. */
#include <string.h>

#include "spin.h"

void spin_init(struct spin *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned int i = 0; i < SPIN_SOURCES; i++)
		s->by[i].every = SPIN_EVERY_MIN;
	s->pause = SPIN_MOVE_MIN;
}

/* The look after the work of the last source has found work. */
static void hit(struct spin *s)
{
	s->by[s->source].misses = 0;
	s->by[s->source].every = SPIN_EVERY_MIN;
	s->lost = 0;
	if (++s->paid >= SPIN_GOOD)
		s->pause = SPIN_MOVE_MIN;
}

static void miss(struct spin *s)
{
	uint32_t *every = &s->by[s->source].every;

	s->paid = 0;
	if (s->by[s->source].misses < SPIN_MISSES)
		s->by[s->source].misses++;
	else if (*every < SPIN_EVERY_MAX)
		*every *= 2;
}

/* Is there to be a look after the work of the present source? */
static bool worth_a_look(struct spin *s)
{
	if (s->by[s->source].misses < SPIN_MISSES)
		return true;
	if (++s->by[s->source].rounds < s->by[s->source].every)
		return false;
	s->by[s->source].rounds = 0;
	return true;
}

void spin_work(struct spin *s, unsigned int source, uint64_t now)
{
	if (s->looked)
		hit(s);
	else if (s->idle_since)
		s->lost = now - s->idle_since < SPIN_NEAR ? s->lost + 1 : 0;
	s->source = source < SPIN_SOURCES ? source : SPIN_SOURCES - 1;
	s->looked = false;
	s->last = false;
	s->idle_since = 0;
}

bool spin_looks(struct spin *s, uint64_t now)
{
	if (s->idle_since)
		return false;
	if (!s->looked) {
		s->looked = worth_a_look(s);
		s->until = now + SPIN_LOOK;
	} else if (s->last) {
		miss(s);
		s->looked = false;
	} else {
		s->last = now >= s->until;
	}
	if (!s->looked)
		s->idle_since = now;
	return s->looked;
}

bool spin_moves(struct spin *s, uint64_t now)
{
	if (s->lost < SPIN_LOST || now - s->moved < s->pause)
		return false;
	s->moved = now;
	if (s->pause < SPIN_MOVE_MAX)
		s->pause *= 2;
	s->lost = 0;
	/* What was learned holds for the previous processor only. */
	for (unsigned int i = 0; i < SPIN_SOURCES; i++)
		s->by[i].misses = 0;
	s->looked = true;
	s->last = false;
	s->idle_since = 0;
	s->until = now + SPIN_LOOK;
	return true;
}
