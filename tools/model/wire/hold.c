// SPDX-License-Identifier: GPL-2.0
/*
 * Frames under faults: first they may be held back (reordering), then they wait for the shaper,
 * if their port has a bandwidth, then they are delayed.
 *
 * All stages share one heap, ordered by the time at which a frame leaves its stage. A frame
 * that is held back is also in the list of its flow, and leaves as soon as enough later frames
 * of the flow have passed; the time is a limit in case there are none. The shaper and the
 * delay stage keep the order of their frames, as a cable does.
 */
#include <stdlib.h>

#include "priv.h"

#define HELD_MAX	16384
#define HELD_BYTES	(128u << 20)
/*
 * Half of that is divided among all ports, as shares of stations. Links, which cannot be told to
 * wait, may have a quarter: so there is one left for what stations had begun to send.
 */
#define STATIONS_PART	2
#define LINKS_PART	4

/* What a frame takes up on a link besides: preamble, checksum, gap (IEEE 802.3). */
#define SHAPER_OVERHEAD	24
/* A station of which so many bytes wait for the shaper waits, until half of them are sent. */
#define SHAPER_MARK	65536
/* Of a link no more than this waits there: a port of a switch has such a buffer. */
#define SHAPER_FRAMES	1024
#define SHAPER_BYTES	(2u << 20)

enum stage { HELD, SHAPED, DELAYED };

/**
 * struct wire_held - one frame
 * @from: the port where it came in
 * @buf: the frame
 * @due: time at which it leaves its stage
 * @seq: order among frames with the same @due
 * @bps: rate of the shaper, 0: any; until it is in that stage
 * @delay_ns: delay of the last stage, until it is in that
 * @stage: where it is
 * @place: index in the heap
 * @wait_n: number of frames of its flow that still have to pass
 * @flow: its flow, while it is in the list of that
 * @next: next in the flow's list, or in the list of unused entries
 */
struct wire_held {
	struct wire_port *from;
	struct wire_buf *buf;
	uint64_t due;
	uint64_t seq;
	uint64_t bps;
	uint64_t delay_ns;
	enum stage stage;
	uint32_t place;
	uint32_t wait_n;
	struct wire_flow *flow;
	struct wire_held *next;
};

struct wire_hold {
	struct wire *w;
	struct wire_held *unused;
	uint64_t seq;
	size_t bytes;
	size_t link_bytes;		/* of these: from links */
	uint32_t link_n;
	uint32_t n;
	struct wire_held *heap[HELD_MAX];
};

struct wire_hold *wire_hold_create(struct wire *w)
{
	struct wire_hold *h = calloc(1, sizeof(*h));

	if (h)
		h->w = w;
	return h;
}

void wire_hold_destroy(struct wire_hold *h)
{
	if (!h)
		return;
	while (h->n) {
		wire_buf_put(&h->w->pool, h->heap[--h->n]->buf);
		free(h->heap[h->n]);
	}
	while (h->unused) {
		struct wire_held *e = h->unused;

		h->unused = e->next;
		free(e);
	}
	free(h);
}

static bool before(const struct wire_held *a, const struct wire_held *b)
{
	return a->due < b->due || (a->due == b->due && a->seq < b->seq);
}

static void place(struct wire_hold *h, uint32_t i, struct wire_held *e)
{
	h->heap[i] = e;
	e->place = i;
}

static void sift(struct wire_hold *h, uint32_t i, struct wire_held *e)
{
	while (i && before(e, h->heap[(i - 1) / 2])) {
		place(h, i, h->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < h->n && before(h->heap[child + 1], h->heap[child]))
			child++;
		if (child >= h->n || !before(h->heap[child], e))
			break;
		place(h, i, h->heap[child]);
		i = child;
	}
	place(h, i, e);
}

static void heap_remove(struct wire_hold *h, struct wire_held *e)
{
	struct wire_held *last = h->heap[--h->n];

	if (last != e)
		sift(h, e->place, last);
}

/* Share of one station. */
static uint32_t share(const struct wire_hold *h, uint32_t room)
{
	return room / STATIONS_PART / h->w->n_ports;
}

static bool held_room(const struct wire_hold *h, const struct wire_port *from, size_t size)
{
	if (!from->inside && (h->link_n == HELD_MAX / LINKS_PART ||
			      h->link_bytes + size > HELD_BYTES / LINKS_PART))
		return false;
	return h->n < HELD_MAX && h->bytes + size <= HELD_BYTES;
}

static void drop(struct wire_hold *h, struct wire_port *from, struct wire_buf *buf)
{
	from->stats.drop_hold++;
	wire_buf_put(&h->w->pool, buf);
}

/* NULL: there is no room, the frame is dropped. */
static struct wire_held *held_add(struct wire_hold *h, struct wire_port *from,
				  struct wire_buf *buf, uint64_t due)
{
	struct wire_held *e = h->unused;

	if (!held_room(h, from, buf->size))
		e = NULL;
	else if (e)
		h->unused = e->next;
	else
		e = malloc(sizeof(*e));
	if (!e) {
		drop(h, from, buf);
		return NULL;
	}
	*e = (struct wire_held){ .from = from, .buf = buf, .due = due, .seq = h->seq++ };
	h->bytes += buf->size;
	h->n++;
	if (!from->inside) {
		h->link_bytes += buf->size;
		h->link_n++;
	}
	sift(h, h->n - 1, e);
	from->n_held++;
	from->held_bytes += buf->size;
	from->held_full |= from->n_held >= share(h, HELD_MAX) ||
			   from->held_bytes >= share(h, HELD_BYTES);
	return e;
}

static void held_free(struct wire_hold *h, struct wire_held *e)
{
	struct wire_port *from = e->from;

	h->bytes -= e->buf->size;
	if (!from->inside) {
		h->link_bytes -= e->buf->size;
		h->link_n--;
	}
	from->n_held--;
	from->held_bytes -= e->buf->size;
	if (from->held_full && from->n_held < share(h, HELD_MAX) / 2 &&
	    from->held_bytes < share(h, HELD_BYTES) / 2) {
		from->held_full = false;
		h->w->room = true;
	}
	heap_remove(h, e);
	e->next = h->unused;
	h->unused = e;
}

/* Enter the last stage. */
static void delay(struct wire_hold *h, struct wire_port *from, struct wire_buf *buf,
		  uint64_t delay_ns)
{
	uint64_t due = wire_now(h->w) + delay_ns;
	struct wire_held *e;

	if (!delay_ns && !from->n_delayed) {
		wire_forward(from, buf);
		return;
	}
	if (due < from->last_due)
		due = from->last_due;
	e = held_add(h, from, buf, due);
	if (!e)
		return;
	e->stage = DELAYED;
	from->n_delayed++;
	from->last_due = due;
}

/* Time to send @bytes, in nanoseconds by bits per second: to be divided by the bandwidth. */
static uint64_t send_time(uint64_t bytes)
{
	return bytes * 8 * 1000000000;
}

/* For a link: a station was told to wait long before, and loses nothing. */
static bool shaper_room(const struct wire_port *from, const struct wire_buf *buf)
{
	return from->inside || (from->n_shaped < SHAPER_FRAMES &&
				from->shaped_bytes + buf->size <= SHAPER_BYTES);
}

/* Enter the shaper. Where there is no bandwidth any more, those before go first. */
static void shape(struct wire_hold *h, struct wire_port *from, struct wire_buf *buf,
		  uint64_t bps, uint64_t delay_ns)
{
	uint64_t now = wire_now(h->w), due = from->shaper_free, time = 0;
	struct wire_held *e;

	if (!bps && !from->n_shaped) {
		delay(h, from, buf, delay_ns);
		return;
	}
	if (bps && !shaper_room(from, buf)) {
		drop(h, from, buf);
		return;
	}
	if (due < now)
		due = now;
	else if (bps == from->shaper_bps)
		time = from->shaper_rest;
	if (bps) {
		time += send_time(buf->len + SHAPER_OVERHEAD);
		due += time / bps;
		time %= bps;
	}
	e = held_add(h, from, buf, due);
	if (!e)
		return;
	e->stage = SHAPED;
	e->delay_ns = delay_ns;
	from->n_shaped++;
	from->shaped_bytes += buf->size;
	from->shaper_free = due;
	if (!bps)
		return;
	from->shaper_bps = bps;
	from->shaper_rest = time;
	from->shaper_full |= due - now >= send_time(SHAPER_MARK) / bps;
}

static void flow_unhook(struct wire_held *e)
{
	struct wire_held **pp;

	if (!e->flow)
		return;
	for (pp = wire_flow_held(e->flow); *pp != e; pp = &(*pp)->next)
		;
	*pp = e->next;
	e->flow = NULL;
}

/* A frame leaves its stage, and enters the next one. */
static void leave(struct wire_hold *h, struct wire_held *e)
{
	struct wire_port *from = e->from;
	struct wire_buf *buf = e->buf;
	uint64_t due = e->due, bps = e->bps, delay_ns = e->delay_ns;
	enum stage stage = e->stage;

	flow_unhook(e);
	held_free(h, e);
	switch (stage) {
	case HELD:
		shape(h, from, buf, bps, delay_ns);
		break;
	case SHAPED:
		from->n_shaped--;
		from->shaped_bytes -= buf->size;
		if (from->shaper_full &&
		    from->shaper_free - due <= send_time(SHAPER_MARK) / 2 / from->shaper_bps) {
			from->shaper_full = false;
			h->w->room = true;
		}
		delay(h, from, buf, delay_ns);
		break;
	case DELAYED:
		from->n_delayed--;
		wire_forward(from, buf);
		break;
	}
}

/* A frame of @flow went past those that wait for it, oldest first. */
static void flow_passed(struct wire_hold *h, struct wire_flow *flow)
{
	struct wire_held *e, *next;

	for (e = *wire_flow_held(flow); e; e = next) {
		next = e->next;
		if (e->wait_n && !--e->wait_n)
			leave(h, e);
	}
}

void wire_hold_pass(struct wire_hold *h, struct wire_port *from, struct wire_buf *buf,
		    const struct wire_fate *fate)
{
	struct wire_held **pp, *e;

	if (!fate->reorder) {
		shape(h, from, buf, fate->bps, fate->delay_ns);
		if (fate->flow)
			flow_passed(h, fate->flow);
		return;
	}
	e = held_add(h, from, buf, wire_now(h->w) + fate->hold_ns);
	if (!e)
		return;
	e->stage = HELD;
	e->bps = fate->bps;
	e->delay_ns = fate->delay_ns;
	e->wait_n = fate->reorder_n;
	e->flow = fate->flow;
	if (!e->flow)
		return;
	for (pp = wire_flow_held(e->flow); *pp; pp = &(*pp)->next)
		;
	*pp = e;
}

void wire_hold_evict(struct wire_flow *flow)
{
	struct wire_held *e;

	/* From now on they are released by time only. */
	for (e = *wire_flow_held(flow); e; e = e->next)
		e->flow = NULL;
	*wire_flow_held(flow) = NULL;
}

void wire_hold_unshape(struct wire_hold *h)
{
	uint64_t now = wire_now(h->w);
	unsigned int i;

	/* Who is due earlier only goes up in the heap, where all have been looked at. */
	for (i = 0; i < h->n; i++) {
		struct wire_held *e = h->heap[i];

		e->bps = 0;
		if (e->stage == SHAPED && e->due > now) {
			e->due = now;
			sift(h, i, e);
		}
	}
	for (i = 0; i < h->w->n_ports; i++) {
		struct wire_port *port = h->w->port[i];

		h->w->room |= port->shaper_full;
		port->shaper_full = false;
		port->shaper_free = 0;
		port->shaper_rest = 0;
	}
}

bool wire_hold_poll(struct wire_hold *h)
{
	unsigned int budget = WIRE_BUDGET;
	uint64_t now = wire_now(h->w);

	while (h->n && h->heap[0]->due <= now) {
		if (!budget--)
			return true;
		leave(h, h->heap[0]);
	}
	return false;
}

uint64_t wire_hold_deadline(const struct wire_hold *h)
{
	return h->n ? h->heap[0]->due : UINT64_MAX;
}
