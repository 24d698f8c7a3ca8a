/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What joins the switches of several threads, so that their stations are on one network.
 *
 * Each thread has a switch of its own (wire.h), which nobody else touches. A trunk has a
 * member for each of them, and a line from each member to each other: a ring of frames with
 * one writer and one reader. In a switch a line is a port like others. So a frame for a
 * station of another thread is queued, counted and waited for as any other, and what a full
 * queue does to its senders holds from thread to thread: nothing is lost.
 *
 * Faults, delays and capture are where a frame comes in, in the thread of its sender. What
 * comes over a line goes to stations and links of the switch there, never to a third one.
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

/* A trunk for so many switches. NULL and errno on failure. */
struct trunk *trunk_create(unsigned int members);
/* When all switches that joined it are gone. */
void trunk_destroy(struct trunk *t);

/**
 * wire_join() - make a switch a member of a trunk
 * @w: the switch; before any frame
 * @t: the trunk
 * @member: who it is, from 0 on; each once
 *
 * By the thread that has the switch, or before that thread runs. Frames for members that have
 * not joined yet wait.
 *
 * Return: a descriptor that becomes readable when another thread wakes this one
 * (wire_sleeps()); it need not be read if it is polled edge-triggered. -1 and errno on failure.
 */
int wire_join(struct wire *w, struct trunk *t, unsigned int member);

/*
 * The thread is about to sleep until wire_deadline(). False: it must not, another thread has
 * just sent something. After that it must call wire_wakes() before anything else.
 */
bool wire_sleeps(struct wire *w);
void wire_wakes(struct wire *w);

/* Frames that came from other threads. */
uint64_t wire_trunk_frames(const struct wire *w);

#endif /* SKUA_WIRE_TRUNK_H */
