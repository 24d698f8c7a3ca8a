/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A trunk joins the switches of several threads, so that their stations are on one network.
 *
 * Each thread has a switch of its own (wire.h), which no other thread accesses. A trunk has a
 * member for each switch, and between each two members a line: in each direction a ring of
 * frames with one writer and one reader. For a switch a line is a port. So a frame for a
 * station of another thread is queued and counted like any other, and back-pressure works
 * between threads as within one: nothing is lost.
 *
 * Faults, delays and capture are applied where a frame enters, in the thread of its sender. A
 * frame that came over a line is forwarded to stations and links of that switch only.
 */
#ifndef SKUA_WIRE_TRUNK_H
#define SKUA_WIRE_TRUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRUNK_MEMBERS_MAX	127

struct trunk;
struct wire;
struct wire_port;

/* Create a trunk for @members switches. NULL and errno on failure. */
struct trunk *trunk_create(unsigned int members);
/* Destroy a trunk, after all switches that have joined it. */
void trunk_destroy(struct trunk *t);

/**
 * wire_join() - make a switch a member of a trunk
 * @w: the switch, which has had no frame yet
 * @t: the trunk
 * @member: its number, from 0 on, different for each switch
 *
 * To be called by the thread of the switch, or before that thread runs. Frames for members that
 * have not joined yet wait.
 *
 * Return: a descriptor that becomes readable when another thread wakes this one
 * (wire_sleeps()); it need not be read if it is polled edge-triggered. -1 and errno on failure.
 */
int wire_join(struct wire *w, struct trunk *t, unsigned int member);

/*
 * The thread is about to sleep until wire_deadline(). False: it must not, since another thread
 * has rung its bell. After the sleep it must call wire_wakes() before any other function.
 */
bool wire_sleeps(struct wire *w);
void wire_wakes(struct wire *w);

/* Number of frames received from other threads. */
uint64_t wire_trunk_frames(const struct wire *w);

#endif /* SKUA_WIRE_TRUNK_H */
