// SPDX-License-Identifier: GPL-2.0
/*
 * The network of switches: links, paths, and what a switch does with a frame.
 *
 * A link needs no queue of frames: since they keep their order and the rate is fixed, the end of
 * the last transmission is enough. When a frame enters, the end of its transmission and its
 * arrival are computed at once, and it is in the link's list until it arrives. The lists are in
 * the order of arrival, so the agenda (a heap of events) has one entry for each link, however
 * many frames are in flight.
 *
 * Time is counted in fractions of a nanosecond: the shortest frame takes 6.72 ns at 100 Gbit/s.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../roce/hdr.h"
#include "fabric.h"
#include "priv.h"

#define TICKS		1024ull		/* of a nanosecond */
#define TICKS_NEVER	UINT64_MAX
/* Ticks of a byte at 1 Mbit/s. */
#define BYTE_TICKS	(8 * 1000 * TICKS)

/* Salts of the random draws for a packet on a link. */
enum { SALT_LOSS = 1, SALT_ECN };

/**
 * struct transit - a frame on a link
 * @buf: the frame
 * @at: time of arrival, ticks
 * @from: NIC that has sent it
 * @to: NIC of its destination
 * @path: number of its path: plane times spines, plus spine
 * @hop: number of links that it has passed before
 * @marked: a switch has marked it (CE)
 */
struct transit {
	struct wire_buf *buf;
	uint64_t at;
	uint16_t from, to;
	uint8_t path, hop;
	bool marked;
};

/* Indices of @ring run freely; @room is a power of two. */
struct link {
	uint64_t busy;			/* until then */
	uint64_t delay;			/* of a signal, ticks */
	uint32_t mbps;
	uint32_t plane;
	int32_t spine;			/* -1: between NIC and leaf */
	struct transit *ring;
	uint32_t head, tail, room;
};

/* Times of the next events: by link, then by NIC (there is room again). */
struct agenda {
	uint64_t *time;			/* by number, TICKS_NEVER: not in @heap */
	uint32_t *pos;
	uint32_t *heap;
	uint32_t n;
};

struct fabric {
	struct wire *w;
	struct fabric_cfg cfg;
	unsigned int leaves, n_links;
	/* Where these begin in @link. */
	unsigned int to_nic, to_spine, to_leaf;
	struct link *link;
	bool *waits;			/* by NIC: it was told that there is no room */
	/* With FABRIC_ADAPTIVE, by NIC and way: until then it is busy, see freest(). */
	uint64_t *way_busy;
	struct agenda agenda;
	uint8_t way[FABRIC_PATHS_MAX];	/* that may be taken, one of each plane by turns */
	unsigned int n_ways, n_planes;	/* of these */
	uint64_t ways_until;		/* ticks: then something is known to have failed */
	struct fabric_stats st;
};

/* --- agenda --- */

static bool sooner(const struct agenda *a, uint32_t x, uint32_t y)
{
	return a->time[x] < a->time[y] || (a->time[x] == a->time[y] && x < y);
}

static void put(struct agenda *a, uint32_t i, uint32_t id)
{
	a->heap[i] = id;
	a->pos[id] = i;
}

static void sift(struct agenda *a, uint32_t i, uint32_t id)
{
	while (i && sooner(a, id, a->heap[(i - 1) / 2])) {
		put(a, i, a->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < a->n && sooner(a, a->heap[child + 1], a->heap[child]))
			child++;
		if (child >= a->n || !sooner(a, a->heap[child], id))
			break;
		put(a, i, a->heap[child]);
		i = child;
	}
	put(a, i, id);
}

static void agenda_set(struct agenda *a, uint32_t id, uint64_t time)
{
	bool in = a->time[id] != TICKS_NEVER;

	a->time[id] = time;
	if (time != TICKS_NEVER) {
		sift(a, in ? a->pos[id] : a->n++, id);
	} else if (in) {
		uint32_t last = a->heap[--a->n];

		if (last != id)
			sift(a, a->pos[id], last);
	}
}

/* --- links --- */

/* Rounded up, so that a waiting frame never counts as less than its bytes. */
static uint64_t ticks_of(const struct link *l, uint64_t bytes)
{
	return (bytes * BYTE_TICKS + l->mbps - 1) / l->mbps;
}

/* Number of bytes still to be sent at @now. */
static uint64_t backlog(const struct link *l, uint64_t now)
{
	return l->busy > now ? (l->busy - now) * l->mbps / BYTE_TICKS : 0;
}

static bool link_grow(struct link *l)
{
	uint32_t room = l->room ? 2 * l->room : 16;
	struct transit *ring = malloc(room * sizeof(*ring));

	if (!ring)
		return false;
	for (uint32_t i = l->head; i != l->tail; i++)
		ring[i & (room - 1)] = l->ring[i & (l->room - 1)];
	free(l->ring);
	l->ring = ring;
	l->room = room;
	return true;
}

static struct transit *link_head(const struct link *l)
{
	return &l->ring[l->head & (l->room - 1)];
}

/* What the frame takes up of a link. */
static uint64_t frame_bytes(const struct wire_buf *buf)
{
	return (buf->len > FABRIC_FRAME_MIN ? buf->len : FABRIC_FRAME_MIN) + FABRIC_FRAME_EXTRA;
}

static void lose(struct fabric *f, struct transit *t, uint64_t *why)
{
	(*why)++;
	f->st.flight--;
	f->st.marked_lost += t->marked;
	wire_buf_put(&f->w->pool, t->buf);
}

static uint64_t draw(const struct transit *t, unsigned int link, unsigned int salt)
{
	return wire_mix(wire_mix(t->buf->packet_id ^ link) ^ salt);
}

/* Has the link's part of the network failed? @known: and do senders avoid it? */
static bool is_dead(const struct fabric *f, unsigned int plane, int spine, uint64_t now, bool known)
{
	for (unsigned int i = 0; i < f->cfg.num_deaths; i++) {
		const struct fabric_death *d = &f->cfg.death[i];

		if (d->plane == plane && (d->spine < 0 || d->spine == spine) &&
		    (known ? d->known_ns : d->at_ns) * TICKS <= now)
			return true;
	}
	return false;
}

/* A frame with other holders is copied before it is changed. */
static bool own(struct fabric *f, struct transit *t)
{
	struct wire_buf *copy;

	if (t->buf->refs == 1)
		return true;
	copy = wire_buf_get(&f->w->pool, t->buf->len);
	if (!copy)
		return false;
	memcpy(copy->data, t->buf->data, t->buf->len);
	copy->icrc_pending = t->buf->icrc_pending;
	copy->flow_id = t->buf->flow_id;
	copy->packet_id = t->buf->packet_id;
	copy->turn = t->buf->turn;
	wire_buf_put(&f->w->pool, t->buf);
	t->buf = copy;
	return true;
}

/* Mark by the length of the queue in front of the frame, without the frame itself. */
static void mark(struct fabric *f, struct transit *t, unsigned int link, uint64_t queued)
{
	const struct fabric_cfg *c = &f->cfg;

	if (!c->ecn_min || queued < c->ecn_min)
		return;
	if (queued < c->ecn_max &&
	    (uint32_t)draw(t, link, SALT_ECN) >= (uint64_t)c->ecn_prob * (queued - c->ecn_min) /
						 (c->ecn_max - c->ecn_min))
		return;
	if (own(f, t) && wire_mark_ce(t->buf->data, t->buf->len, false)) {
		f->st.marked++;
		t->marked = true;
	}
}

/* The links of a path: from the NIC, up, down, and to the other NIC. */
static unsigned int link_of(const struct fabric *f, const struct transit *t, unsigned int *hops)
{
	const struct fabric_cfg *c = &f->cfg;
	unsigned int plane = t->path / c->spines;
	unsigned int from = t->from / c->per_leaf, to = t->to / c->per_leaf;

	*hops = from == to ? 2 : 4;
	if (!t->hop)
		return t->from * c->planes + plane;
	if (t->hop + 1u == *hops)
		return f->to_nic + t->to * c->planes + plane;
	if (t->hop == 1)
		return f->to_spine + from * c->planes * c->spines + t->path;
	return f->to_leaf + to * c->planes * c->spines + t->path;
}

/* A frame arrives at the next link of its path. */
static void enter(struct fabric *f, struct transit *t, uint64_t now)
{
	unsigned int hops, id = link_of(f, t, &hops);
	struct link *l = &f->link[id];
	uint64_t bytes = frame_bytes(t->buf), queued = backlog(l, now), takes;

	if (is_dead(f, l->plane, l->spine, now, false)) {
		lose(f, t, &f->st.drop_dead);
		return;
	}
	takes = ticks_of(l, bytes);
	if (t->hop) {
		if (queued + bytes > f->cfg.queue_bytes) {
			lose(f, t, &f->st.drop_queue);
			return;
		}
		mark(f, t, id, queued);
		if (queued + bytes > f->st.queue_max)
			f->st.queue_max = queued + bytes;
	} else {
		if (takes < f->cfg.frame_ns * TICKS)
			takes = f->cfg.frame_ns * TICKS;
		if (queued + bytes > f->st.nic_max)
			f->st.nic_max = queued + bytes;
	}
	if (l->tail - l->head == l->room && !link_grow(l)) {
		lose(f, t, &f->st.drop_memory);
		return;
	}
	l->busy = (l->busy > now ? l->busy : now) + takes;
	t->at = l->busy + l->delay;
	l->ring[l->tail++ & (l->room - 1)] = *t;
	if (l->tail - l->head == 1)
		agenda_set(&f->agenda, id, t->at);
}

/* --- paths --- */

/* Recompute the paths that are not known to have failed, whenever another failure is known. */
static void find_ways(struct fabric *f, uint64_t now)
{
	const struct fabric_cfg *c = &f->cfg;
	uint64_t planes = 0;

	f->n_ways = 0;
	f->n_planes = 0;
	for (unsigned int s = 0; s < c->spines; s++) {
		for (unsigned int p = 0; p < c->planes; p++) {
			if (is_dead(f, p, (int)s, now, true))
				continue;
			f->way[f->n_ways++] = (uint8_t)(p * c->spines + s);
			f->n_planes += !(planes >> p & 1);
			planes |= 1ull << p;
		}
	}
	f->ways_until = TICKS_NEVER;
	for (unsigned int i = 0; i < c->num_deaths; i++) {
		uint64_t known = c->death[i].known_ns * TICKS;

		if (known > now && known < f->ways_until)
			f->ways_until = known;
	}
}

static uint64_t choose(const struct fabric *f, const struct wire_buf *buf)
{
	switch (f->cfg.spread) {
	case FABRIC_BY_PACKET:
		return buf->packet_id;
	case FABRIC_IN_TURN:
		return buf->flow_id + buf->turn;
	default:
		return buf->flow_id;
	}
}

/*
 * The way that a NIC can send on first: the link to its plane is free, and so is the way, each
 * of which has its part of the NIC's rate, so that a plane which has lost spines gets less. Of
 * equal ones the flow's packets take one after the other.
 */
static uint8_t freest(struct fabric *f, const struct transit *t, uint64_t now)
{
	const struct fabric_cfg *c = &f->cfg;
	unsigned int paths = c->planes * c->spines;
	uint64_t *busy = &f->way_busy[t->from * paths];
	uint64_t first = (t->buf->flow_id + t->buf->turn) % f->n_ways, best = TICKS_NEVER;
	uint8_t way = 0;

	for (unsigned int i = 0; i < f->n_ways; i++) {
		uint8_t w = f->way[(first + i) % f->n_ways];
		uint64_t at = f->link[t->from * c->planes + w / c->spines].busy;

		if (at < busy[w])
			at = busy[w];
		if (at < now)
			at = now;
		if (at < best) {
			best = at;
			way = w;
		}
	}
	busy[way] = best + (frame_bytes(t->buf) * BYTE_TICKS * paths) / c->rate_mbps;
	return way;
}

static uint64_t fabric_ticks(const struct fabric *f)
{
	return wire_now(f->w) * TICKS;
}

void fabric_send(struct fabric *f, unsigned int from, int to, struct wire_buf *buf)
{
	uint64_t now = fabric_ticks(f);
	struct transit t = { .buf = buf, .from = (uint16_t)from, .to = (uint16_t)to };

	f->st.sent++;
	f->st.flight++;
	if (now >= f->ways_until)
		find_ways(f, now);
	if (to < 0) {
		lose(f, &t, &f->st.drop_unknown);
	} else if (!f->n_ways) {
		lose(f, &t, &f->st.drop_dead);
	} else {
		t.path = f->way_busy ? freest(f, &t, now) : f->way[choose(f, buf) % f->n_ways];
		f->st.path[t.path]++;
		enter(f, &t, now);
	}
}

/* Number of bytes that wait in a NIC. */
static uint64_t nic_backlog(const struct fabric *f, unsigned int nic, uint64_t now)
{
	uint64_t sum = 0;

	for (unsigned int p = 0; p < f->cfg.planes; p++)
		sum += backlog(&f->link[nic * f->cfg.planes + p], now);
	return sum;
}

/*
 * Time of the next check for room: when the excess would be sent if all links of the NIC were
 * busy. If they are not, that is too early, and there will be another check.
 */
static void await_room(struct fabric *f, unsigned int nic, uint64_t now, uint64_t excess)
{
	uint64_t wait = excess * BYTE_TICKS / f->cfg.rate_mbps + TICKS;

	agenda_set(&f->agenda, f->n_links + nic, now + wait);
}

bool fabric_full(struct fabric *f, unsigned int nic)
{
	uint64_t now = fabric_ticks(f), limit = (uint64_t)f->n_planes * f->cfg.nic_bytes, sum;

	if (f->waits[nic])
		return true;
	sum = nic_backlog(f, nic, now);
	if (!f->n_ways || sum < limit)
		return false;
	f->waits[nic] = true;
	await_room(f, nic, now, sum - limit / 2);
	return true;
}

static void look_for_room(struct fabric *f, unsigned int nic, uint64_t now)
{
	uint64_t half = (uint64_t)f->n_planes * f->cfg.nic_bytes / 2;
	uint64_t sum = nic_backlog(f, nic, now);
	struct wire_port *port = f->w->port[nic];

	if (sum > half) {
		await_room(f, nic, now, sum - half);
		return;
	}
	agenda_set(&f->agenda, f->n_links + nic, TICKS_NEVER);
	f->waits[nic] = false;
	if (port->room)
		port->room(port->priv);
}

/* The first frame of a link has arrived. False: the station wants to get it again. */
static bool arrive(struct fabric *f, unsigned int id)
{
	struct link *l = &f->link[id];
	struct transit t = *link_head(l);
	bool lost = f->cfg.loss && draw(&t, id, SALT_LOSS) < f->cfg.loss;
	unsigned int hops;

	link_of(f, &t, &hops);
	if (!lost && t.hop + 1u == hops) {
		struct wire_port *port = f->w->port[t.to];

		port->again = false;
		port->rx(port->priv, t.buf->data, t.buf->len, t.buf->icrc_pending);
		if (port->again)
			return false;
	}
	l->head++;
	agenda_set(&f->agenda, id, l->head == l->tail ? TICKS_NEVER : link_head(l)->at);
	if (lost) {
		lose(f, &t, &f->st.drop_loss);
	} else if (++t.hop < hops) {
		enter(f, &t, t.at);
	} else {
		f->st.delivered++;
		f->st.flight--;
		f->w->port[t.to]->stats.tx_frames++;
		f->w->port[t.to]->stats.tx_bytes += t.buf->len;
		wire_buf_put(&f->w->pool, t.buf);
	}
	return true;
}

bool fabric_poll(struct fabric *f)
{
	uint64_t end = fabric_ticks(f);
	struct agenda *a = &f->agenda;

	for (unsigned int n = 0; a->n && a->time[a->heap[0]] <= end; n++) {
		uint32_t id = a->heap[0];

		if (n == WIRE_BUDGET)
			return true;
		if (id >= f->n_links)
			look_for_room(f, id - f->n_links, a->time[id]);
		else if (!arrive(f, id))
			return true;
	}
	return false;
}

uint64_t fabric_deadline(const struct fabric *f)
{
	const struct agenda *a = &f->agenda;

	return a->n ? (a->time[a->heap[0]] + TICKS - 1) / TICKS : UINT64_MAX;
}

/* --- create and destroy --- */

void fabric_destroy(struct fabric *f)
{
	if (!f)
		return;
	for (unsigned int i = 0; f->link && i < f->n_links; i++) {
		struct link *l = &f->link[i];

		for (; l->head != l->tail; l->head++)
			wire_buf_put(&f->w->pool, link_head(l)->buf);
		free(l->ring);
	}
	free(f->link);
	free(f->waits);
	free(f->way_busy);
	free(f->agenda.time);
	free(f->agenda.pos);
	free(f->agenda.heap);
	free(f);
}

static const char *cfg_wrong(const struct fabric_cfg *c)
{
	if (!c->nics || c->nics > WIRE_PORTS_MAX)
		return "number of NICs is out of range";
	if (c->planes * c->spines > FABRIC_PATHS_MAX)
		return "more paths than 64";
	if (!c->rate_mbps || c->rate_mbps / c->planes == 0)
		return "rate of a NIC, or of its link to a plane, is 0";
	if (c->queue_bytes < WIRE_FRAME_MAX + FABRIC_FRAME_EXTRA)
		return "a queue holds no frame";
	if (!c->nic_bytes)
		return "nothing may wait in a NIC";
	if (c->ecn_min && c->ecn_max <= c->ecn_min)
		return "ecn_max is not above ecn_min";
	if (c->num_deaths > FABRIC_DEATHS_MAX)
		return "too many parts fail";
	for (unsigned int i = 0; i < c->num_deaths; i++) {
		const struct fabric_death *d = &c->death[i];

		if (d->plane >= c->planes || d->spine >= (int)c->spines || d->spine < -1)
			return "there is no such plane or spine to fail";
	}
	return NULL;
}

/* Defaults. */
static void cfg_fill(struct fabric_cfg *c)
{
	if (!c->per_leaf || c->per_leaf >= c->nics)
		c->per_leaf = c->nics;
	if (!c->planes)
		c->planes = 1;
	if (!c->spines || c->per_leaf == c->nics)
		c->spines = 1;
	if (!c->up_mbps)
		c->up_mbps = (uint32_t)((uint64_t)c->rate_mbps / c->planes * c->per_leaf /
					c->spines);
}

static void link_init(const struct fabric *f, struct link *l, unsigned int path, bool up)
{
	const struct fabric_cfg *c = &f->cfg;

	l->mbps = up ? c->up_mbps : c->rate_mbps / c->planes;
	l->delay = (up ? c->up_ns : c->nic_ns) * TICKS;
	l->plane = up ? path / c->spines : path;
	l->spine = up ? (int32_t)(path % c->spines) : -1;
}

static int fabric_init(struct fabric *f)
{
	const struct fabric_cfg *c = &f->cfg;
	unsigned int paths = c->planes * c->spines, ups = f->leaves * paths, n;

	if (f->leaves == 1)
		ups = 0;
	f->to_nic = c->nics * c->planes;
	f->to_spine = 2 * f->to_nic;
	f->to_leaf = f->to_spine + ups;
	f->n_links = f->to_leaf + ups;
	n = f->n_links + c->nics;
	f->link = calloc(f->n_links, sizeof(*f->link));
	f->waits = calloc(c->nics, sizeof(*f->waits));
	if (c->spread == FABRIC_ADAPTIVE) {
		f->way_busy = calloc((size_t)c->nics * paths, sizeof(*f->way_busy));
		if (!f->way_busy)
			return -1;
	}
	f->agenda.time = malloc(n * sizeof(*f->agenda.time));
	f->agenda.pos = malloc(n * sizeof(*f->agenda.pos));
	f->agenda.heap = malloc(n * sizeof(*f->agenda.heap));
	if (!f->link || !f->waits || !f->agenda.time || !f->agenda.pos || !f->agenda.heap)
		return -1;
	for (unsigned int i = 0; i < n; i++)
		f->agenda.time[i] = TICKS_NEVER;
	for (unsigned int i = 0; i < f->to_spine; i++)
		link_init(f, &f->link[i], i % c->planes, false);
	for (unsigned int i = f->to_spine; i < f->n_links; i++)
		link_init(f, &f->link[i], (i - f->to_spine) % paths, true);
	find_ways(f, 0);
	return 0;
}

int wire_use_fabric(struct wire *w, const struct fabric_cfg *cfg, char *err, size_t errlen)
{
	struct fabric *f;
	const char *wrong;

	if (w->fabric || w->trunk || w->n_ports)
		return wire_err(err, errlen, "fabric: the wire has ports already");
	f = calloc(1, sizeof(*f));
	if (!f)
		return wire_err(err, errlen, "fabric: out of memory");
	f->w = w;
	f->cfg = *cfg;
	cfg_fill(&f->cfg);
	wrong = cfg_wrong(&f->cfg);
	if (wrong) {
		free(f);
		return wire_err(err, errlen, "fabric: %s", wrong);
	}
	f->leaves = (f->cfg.nics + f->cfg.per_leaf - 1) / f->cfg.per_leaf;
	if (fabric_init(f) ||
	    (cfg->flows && wire_faults_room(w->faults, cfg->flows, cfg->psns ? cfg->psns : 1))) {
		fabric_destroy(f);
		return wire_err(err, errlen, "fabric: out of memory");
	}
	w->fabric = f;
	return 0;
}

const struct fabric_stats *wire_fabric_stats(const struct wire *w)
{
	return &w->fabric->st;
}

unsigned int wire_fabric_paths(const struct wire *w)
{
	return w->fabric->cfg.planes * w->fabric->cfg.spines;
}
