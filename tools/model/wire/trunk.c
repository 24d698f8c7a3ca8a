// SPDX-License-Identifier: GPL-2.0
/*
 * Lines between the switches of threads.
 *
 * The rings of a line hold pointers to buffers. The sender puts its buffer into a slot. The
 * receiver takes it and leaves an empty buffer of the same size in the slot, if it has one. So
 * frames are not copied, and in steady state no buffer is allocated or freed. A buffer that
 * other ports of the sender's switch hold, too, is copied, since its reference count is not
 * atomic.
 *
 * A thread publishes frames, or room, by a release store of an index, and then rings the bell of
 * the other thread. The bell is one word that is changed only by atomic exchange: the caller
 * learns whether the other thread sleeps and has to be woken up, and a thread that is about to
 * sleep learns whether its bell was rung. So no wake-up is lost, and a thread that is awake
 * costs the others no system call.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../roce/hdr.h"
#include "priv.h"

/* Frames in a ring, a power of two. */
#define SLOTS			256u
/* Frames taken from one ring before it is the next one's turn. */
#define TAKE_MAX		64

#define CACHE_LINE		64

enum bell { BELL_QUIET, BELL_RUNG, BELL_ASLEEP };

/**
 * struct ring - frames from one member to another; indices run freely
 * @tail: next slot to fill; written by the sender
 * @head: next slot to take; written by the receiver
 * @wants_room: the sender found the ring full, and waits for its bell
 * @slot: from @head to @tail frames; the others have empty buffers for the sender, or NULL
 */
struct ring {
	uint32_t tail __attribute__((aligned(CACHE_LINE)));
	uint32_t head __attribute__((aligned(CACHE_LINE)));
	uint32_t wants_room;
	struct wire_buf *slot[SLOTS] __attribute__((aligned(CACHE_LINE)));
};

/**
 * struct member - a member of the trunk: the switch of one thread
 * @bell: enum bell
 * @fd: event descriptor that wakes the thread
 */
struct member {
	uint32_t bell __attribute__((aligned(CACHE_LINE)));
	int fd;
};

struct trunk {
	unsigned int num;
	struct wire_macs macs;
	struct member member[TRUNK_MEMBERS_MAX];
	struct ring ring[];		/* from, times @num, plus to */
};

/**
 * struct trunk_line - one thread's ends of the two rings that join it with another
 * @out: ring to the other member
 * @in: ring from the other member
 * @tail: tail of @out, including slots that are not published yet
 * @head_seen: head of @out when it was last read
 * @head: head of @in
 * @tail_seen: tail of @in when it was last read
 * @left: number of frames that may still be taken from @in in its turn
 * @other: the other member
 */
struct trunk_line {
	struct ring *out;
	struct ring *in;
	uint32_t tail;
	uint32_t head_seen;
	uint32_t head;
	uint32_t tail_seen;
	uint32_t left;
	struct member *other;
};

static struct ring *ring_of(struct trunk *t, unsigned int from, unsigned int to)
{
	return &t->ring[from * t->num + to];
}

struct trunk *trunk_create(unsigned int members)
{
	size_t size = sizeof(struct trunk) + (size_t)members * members * sizeof(struct ring);
	struct trunk *t;

	if (!members || members > TRUNK_MEMBERS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	t = aligned_alloc(CACHE_LINE, (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (!t)
		return NULL;
	memset(t, 0, size);
	t->num = members;
	for (unsigned int i = 0; i < members; i++)
		t->member[i].fd = -1;
	for (unsigned int i = 0; i < members; i++) {
		t->member[i].fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (t->member[i].fd < 0) {
			int err = errno;

			trunk_destroy(t);
			errno = err;
			return NULL;
		}
	}
	return t;
}

void trunk_destroy(struct trunk *t)
{
	if (!t)
		return;
	for (unsigned int i = 0; i < t->num; i++)
		if (t->member[i].fd >= 0)
			close(t->member[i].fd);
	for (unsigned int i = 0; i < t->num * t->num; i++)
		for (unsigned int k = 0; k < SLOTS; k++)
			free(t->ring[i].slot[k]);
	free(t);
}

/* Ring the bell: the other thread sees what was published before, before it sleeps. */
static void call(struct member *m)
{
	static const uint64_t one = 1;

	if (__atomic_exchange_n(&m->bell, BELL_RUNG, __ATOMIC_ACQ_REL) != BELL_ASLEEP)
		return;
	/* The write fails only if the counter is full: after 2^64 calls without a wake-up. */
	if (write(m->fd, &one, sizeof(one)) < 0)
		return;
}

/* Sending */

/* Take the empty buffer that the receiver has left in the slot. */
static void take_empty(struct wire *w, struct wire_buf **slot)
{
	struct wire_buf *buf = *slot;

	if (!buf)
		return;
	*slot = NULL;
	buf->refs = 1;
	wire_buf_put(&w->pool, buf);
}

/* Return the buffer, or a copy if there are other holders. NULL: there is no memory. */
static struct wire_buf *own(struct wire *w, struct wire_buf *buf)
{
	struct wire_buf *copy;

	if (buf->refs == 1)
		return buf;
	copy = wire_buf_get(&w->pool, buf->len);
	if (copy) {
		copy->icrc_pending = buf->icrc_pending;
		memcpy(copy->data, buf->data, buf->len);
	}
	wire_buf_put(&w->pool, buf);
	return copy;
}

/*
 * Is there room in the ring? If not, the receiver is asked to ring the bell when there is. All
 * accesses of @wants_room and @head here are sequentially consistent: either the receiver sees
 * the request, or its new index is seen here.
 */
static bool has_room(struct trunk_line *l)
{
	if (l->tail - l->head_seen < SLOTS)
		return true;
	l->head_seen = __atomic_load_n(&l->out->head, __ATOMIC_ACQUIRE);
	if (l->tail - l->head_seen < SLOTS)
		return true;
	__atomic_store_n(&l->out->wants_room, 1, __ATOMIC_SEQ_CST);
	l->head_seen = __atomic_load_n(&l->out->head, __ATOMIC_SEQ_CST);
	return l->tail - l->head_seen < SLOTS;
}

static void trunk_send(struct wire_port *port)
{
	struct trunk_line *l = port->line;
	struct wire *w = port->w;
	uint32_t before = l->tail;

	while (wire_queue_len(&port->q)) {
		struct wire_buf **slot = &l->out->slot[l->tail % SLOTS];
		struct wire_buf *buf;

		if (!has_room(l)) {
			/* Until the receiver rings the bell, see look_at_rings(). */
			port->retry_at = UINT64_MAX;
			break;
		}
		take_empty(w, slot);
		buf = own(w, wire_take(port));
		if (!buf) {
			port->stats.drop_memory++;
			continue;
		}
		*slot = buf;
		l->tail++;
	}
	if (l->tail == before)
		return;
	__atomic_store_n(&l->out->tail, l->tail, __ATOMIC_RELEASE);
	call(l->other);
}

/* Receiving */

/* An empty buffer of the same size for the sender; NULL: none is free. */
static struct wire_buf *spare(struct wire *w, const struct wire_buf *like)
{
	struct wire_buf *buf = w->pool.free[like->pool];

	if (!buf)
		return NULL;
	w->pool.free[like->pool] = buf->next;
	w->pool.free_bytes -= buf->size;
	return buf;
}

static bool room_for_next(const struct wire_port *port)
{
	const struct trunk_line *l = port->line;
	const struct wire_buf *buf = l->in->slot[l->head % SLOTS];

	return !wire_port_full(port, ((const struct eth_hdr *)buf->data)->dmac);
}

/*
 * Take frames from a ring that is not empty, as many as are left in its turn. A turn that ends
 * early because a station has no room goes on next time: otherwise the rings that are served
 * first would take all of that room again and again. True: the turn is over.
 */
static bool take_frames(struct wire_port *port)
{
	struct trunk_line *l = port->line;
	uint32_t before = l->head;

	while (l->head != l->tail_seen && l->left && room_for_next(port)) {
		struct wire_buf **slot = &l->in->slot[l->head % SLOTS];
		struct wire_buf *buf = *slot;

		*slot = spare(port->w, buf);
		l->head++;
		l->left--;
		port->stats.rx_frames++;
		port->stats.rx_bytes += buf->len;
		wire_forward(port, buf);
	}
	if (l->head == before)
		return false;
	port->w->far_frames += l->head - before;
	__atomic_store_n(&l->in->head, l->head, __ATOMIC_SEQ_CST);
	/* The sender adds no frames while it waits, so @tail_seen is the tail. */
	if (__atomic_load_n(&l->in->wants_room, __ATOMIC_SEQ_CST) &&
	    l->tail_seen - l->head <= SLOTS / 2) {
		__atomic_store_n(&l->in->wants_room, 0, __ATOMIC_SEQ_CST);
		call(l->other);
	}
	if (l->left && l->head != l->tail_seen)
		return false;
	l->left = TAKE_MAX;
	return true;
}

bool wire_trunk_called(const struct wire *w)
{
	return __atomic_load_n(&w->trunk->member[w->member].bell, __ATOMIC_RELAXED) == BELL_RUNG;
}

/* The bell was rung: read the indices of all rings, and try again to send. */
static void look_at_rings(struct wire *w)
{
	for (unsigned int i = 0; i < w->trunk->num; i++) {
		struct wire_port *port = w->far[i];

		if (!port)
			continue;
		port->line->tail_seen = __atomic_load_n(&port->line->in->tail, __ATOMIC_ACQUIRE);
		port->retry_at = 0;
	}
}

/* Members whose turn is over are served after all others the next time. */
static void take_by_turns(struct wire *w)
{
	uint8_t over[TRUNK_MEMBERS_MAX];
	unsigned int n_over = 0, n_kept = 0;

	for (unsigned int i = 0; i < w->n_far; i++) {
		uint8_t member = w->far_order[i];
		struct trunk_line *l = w->far[member]->line;

		if (l->head != l->tail_seen && take_frames(w->far[member]))
			over[n_over++] = member;
		else
			w->far_order[n_kept++] = member;
	}
	memcpy(w->far_order + n_kept, over, n_over);
}

void wire_trunk_receive(struct wire *w)
{
	if (wire_trunk_called(w)) {
		__atomic_exchange_n(&w->trunk->member[w->member].bell, BELL_QUIET,
				    __ATOMIC_ACQ_REL);
		look_at_rings(w);
	} else if (!w->far_ready) {
		return;
	}
	take_by_turns(w);
}

void wire_trunk_look(struct wire *w)
{
	w->far_ready = false;
	for (unsigned int i = 0; i < w->trunk->num && !w->far_ready; i++) {
		const struct wire_port *port = w->far[i];

		w->far_ready = port && port->line->head != port->line->tail_seen &&
			       room_for_next(port);
	}
}

bool wire_sleeps(struct wire *w)
{
	uint32_t quiet = BELL_QUIET;

	return !w->trunk ||
	       __atomic_compare_exchange_n(&w->trunk->member[w->member].bell, &quiet,
					   BELL_ASLEEP, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

void wire_wakes(struct wire *w)
{
	uint32_t asleep = BELL_ASLEEP;

	if (w->trunk)
		__atomic_compare_exchange_n(&w->trunk->member[w->member].bell, &asleep, BELL_QUIET,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

uint64_t wire_trunk_frames(const struct wire *w)
{
	return w->far_frames;
}

/* Joining */

static int add_line(struct wire *w, struct trunk *t, unsigned int me, unsigned int other)
{
	struct trunk_line *l = calloc(1, sizeof(*l));
	char name[WIRE_NAME_MAX];
	struct wire_port *port;

	if (!l)
		return -1;
	snprintf(name, sizeof(name), "trunk%u-%u", me, other);
	port = wire_port_add(w, name, NULL, 0);
	if (!port) {
		free(l);
		return -1;
	}
	l->out = ring_of(t, me, other);
	l->in = ring_of(t, other, me);
	l->left = TAKE_MAX;
	l->other = &t->member[other];
	port->line = l;
	port->inside = true;
	port->send = trunk_send;
	w->far[other] = port;
	w->far_order[w->n_far++] = (uint8_t)other;
	return 0;
}

int wire_join(struct wire *w, struct trunk *t, unsigned int member)
{
	if (w->trunk || w->fabric || w->pcap || member >= t->num ||
	    w->n_ports + t->num > WIRE_MEMBER_PORTS) {
		errno = EINVAL;
		return -1;
	}
	for (unsigned int i = 0; i < t->num; i++)
		if (i != member && add_line(w, t, member, i))
			return -1;
	w->trunk = t;
	w->member = member;
	w->macs = &t->macs;
	return t->member[member].fd;
}
