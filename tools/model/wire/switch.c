// SPDX-License-Identifier: GPL-2.0
/*
 * The learning switch: ports, queues, addresses, and the path of a frame:
 *
 *   wire_ingress()   copy it, learn its source, decide its fate, capture it
 *   wire_hold_pass() hold it back or delay it, if that is its fate
 *   wire_forward()   queue it at the ports that it is for
 *   wire_poll()      give it to the stations
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../roce/hdr.h"
#include "../roce/pkt.h"
#include "priv.h"

/* If a peer takes nothing for so long, the frames that wait for it are dropped. */
#define STUCK_NS		(1000ull * 1000 * 1000)
#define BACKOFF_MIN_NS		(20ull * 1000)
#define BACKOFF_MAX_NS		(5ull * 1000 * 1000)

/* Up to this length a frame in the station's buffer is copied to a smaller buffer. */
#define STAGE_COPY_MAX		1024

/* Bytes of free buffers that are kept; the others are freed. */
#define POOL_KEEP_BYTES		(64u << 20)

/* ACKs; Ethernet; path MTU 4096; jumbo. */
static const uint32_t pool_size[WIRE_POOLS] = { 256, 2048, 4608, WIRE_FRAME_MAX };

int wire_err(char *err, size_t errlen, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (errlen)
		vsnprintf(err, errlen, fmt, ap);
	va_end(ap);
	return -1;
}

/* Buffers */

struct wire_buf *wire_buf_get(struct wire_pool *pool, size_t len)
{
	struct wire_buf *buf;
	unsigned int i = 0;

	while (pool_size[i] < len)
		i++;
	buf = pool->free[i];
	if (buf) {
		pool->free[i] = buf->next;
		pool->free_bytes -= buf->size;
	} else {
		buf = malloc(sizeof(*buf) + pool_size[i]);
		if (!buf)
			return NULL;
		buf->size = pool_size[i];
		buf->pool = i;
	}
	buf->refs = 1;
	buf->len = (uint32_t)len;
	buf->cost = buf->size;
	buf->train = NULL;
	return buf;
}

/* This is allowed while others hold the frame: they do not read the ICRC. */
static void write_icrc(struct wire_buf *buf)
{
	if (!buf->icrc_pending)
		return;
	skua_pkt_icrc_fill(buf->data, buf->len);
	buf->icrc_pending = false;
}

void wire_buf_put(struct wire_pool *pool, struct wire_buf *buf)
{
	if (--buf->refs)
		return;
	if (pool->free_bytes + buf->size > POOL_KEEP_BYTES) {
		free(buf);
		return;
	}
	/* Last in, first out: this buffer is still in the processor's cache. */
	buf->next = pool->free[buf->pool];
	pool->free[buf->pool] = buf;
	pool->free_bytes += buf->size;
}

void wire_pool_destroy(struct wire_pool *pool)
{
	unsigned int i;

	for (i = 0; i < WIRE_POOLS; i++)
		while (pool->free[i]) {
			struct wire_buf *buf = pool->free[i];

			pool->free[i] = buf->next;
			free(buf);
		}
}

/* Life */

struct wire *wire_create(uint64_t seed)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->macs = &w->own_macs;
	w->faults = wire_faults_create(seed);
	w->hold = wire_hold_create(w);
	w->scratch = malloc((size_t)WIRE_BATCH * WIRE_FRAME_MAX);
	if (!w->faults || !w->hold || !w->scratch) {
		wire_destroy(w);
		errno = ENOMEM;
		return NULL;
	}
	wire_faults_on_evict(w->faults, wire_hold_evict);
	return w;
}

void wire_destroy(struct wire *w)
{
	if (!w)
		return;
	while (w->n_ports)
		wire_port_del(w->port[w->n_ports - 1]);
	fabric_destroy(w->fabric);
	wire_hold_destroy(w->hold);
	wire_faults_destroy(w->faults);
	if (!w->pcap_shared)
		wire_pcap_close(w->pcap);
	wire_pool_destroy(&w->pool);
	free(w->scratch);
	free(w);
}

void wire_set_clock(struct wire *w, uint64_t (*now)(void *priv), void *priv)
{
	w->clock = now;
	w->clock_priv = priv;
}

void wire_set_turn(struct wire *w, uint64_t turn_ns)
{
	w->turn_ns = turn_ns;
}

uint64_t wire_now(const struct wire *w)
{
	return w->clock ? w->clock(w->clock_priv) : w->now;
}

struct wire_port *wire_port_add(struct wire *w, const char *name, char *err, size_t errlen)
{
	struct wire_port *port;
	unsigned int i;

	for (i = 0; i < w->n_ports; i++)
		if (!strcmp(w->port[i]->name, name)) {
			wire_err(err, errlen, "wire: there is a port %s already", name);
			errno = EEXIST;
			return NULL;
		}
	if (!*name || strlen(name) >= WIRE_NAME_MAX ||
	    w->n_ports >= (w->trunk ? WIRE_MEMBER_PORTS : WIRE_PORTS_MAX)) {
		wire_err(err, errlen, "wire: port %s: bad name, or too many ports", name);
		errno = EINVAL;
		return NULL;
	}
	port = calloc(1, sizeof(*port));
	if (!port) {
		wire_err(err, errlen, "wire: out of memory");
		return NULL;
	}
	port->w = w;
	port->index = w->n_ports;
	port->number = w->next_number++ % WIRE_PORTS_MAX;
	port->fd = -1;
	strcpy(port->name, name);
	w->port[w->n_ports++] = port;
	if (w->pcap && !w->pcap_shared) {
		wire_pcap_add_interface(w->pcap, name);
		w->captured = true;
	}
	return port;
}

static struct wire_buf *dequeue(struct wire_port *port);

/* Only for the port added last: after an error in its set-up, and in wire_destroy(). */
void wire_port_del(struct wire_port *port)
{
	struct wire *w = port->w;

	while (wire_queue_len(&port->q)) {
		struct wire_buf *buf = dequeue(port);

		/* Without a call of its sender, which may be gone. */
		if (buf->train)
			free(buf->train->own);
		wire_buf_put(&w->pool, buf);
	}
	if (port->stage)
		wire_buf_put(&w->pool, port->stage);
	closer_fd(port->closer, port->fd);
	closer_destroy(port->closer);
	if (port->path)
		unlink(port->path);
	free(port->path);
	free(port->line);
	w->n_ports--;
	free(port);
}

struct wire_port *wire_add_dev(struct wire *w, const char *name,
			       void (*rx)(void *priv, void *frame, size_t len,
					  bool icrc_pending),
			       void *priv)
{
	struct wire_port *port = wire_port_add(w, name, NULL, 0);

	if (port) {
		port->inside = true;
		port->rx = rx;
		port->priv = priv;
	}
	return port;
}

void wire_port_on_next(struct wire_port *port,
		       void (*soon)(void *priv, const void *frame, size_t len))
{
	port->soon = soon;
}

int wire_fault(struct wire *w, const char *spec, char *err, size_t errlen)
{
	return wire_faults_add(w->faults, spec, err, errlen);
}

void wire_fault_clear(struct wire *w)
{
	wire_faults_clear(w->faults);
	wire_hold_unshape(w->hold);
}

static void flush_capture(struct wire *w)
{
	if (!w->captured)
		return;
	wire_pcap_flush(w->pcap);
	w->captured = false;
}

int wire_pcap(struct wire *w, const char *path, char *err, size_t errlen)
{
	unsigned int i;

	if (w->pcap)
		return wire_err(err, errlen, "capture: %s: only one file at a time", path);
	w->pcap = wire_pcap_open(path);
	if (!w->pcap)
		return wire_err(err, errlen, "capture: %s: %s", path, strerror(errno));
	for (i = 0; i < w->n_ports; i++)
		wire_pcap_add_interface(w->pcap, w->port[i]->name);
	w->captured = true;
	return 0;
}

void wire_pcap_share(struct wire *w, struct wire_pcap *pcap)
{
	flush_capture(w);
	w->pcap = pcap;
	w->pcap_shared = true;
}

void wire_number_ports(struct wire *w, unsigned int first)
{
	w->next_number = first;
}

/* The way in */

static void describe(const struct wire_fate *fate, bool marked, char *text, size_t size)
{
	size_t n = 0;

#define SAY(...) \
	do { \
		n += (size_t)snprintf(text + n, size - n, __VA_ARGS__); \
		if (n >= size) \
			return; \
	} while (0)
	text[0] = '\0';
	if (fate->drop) {
		SAY("skua: dropped by fault");
		return;
	}
	SAY("skua:");
	if (fate->corrupt)
		SAY(" corrupted (bit %zu of byte %zu flipped)",
		    fate->corrupt_bit % 8, fate->corrupt_bit / 8);
	if (marked)
		SAY(" marked CE");
	if (fate->dup)
		SAY(" duplicated");
	if (fate->reorder && fate->reorder_n)
		SAY(" held back by %u", fate->reorder_n);
	else if (fate->reorder)
		SAY(" held back by %llu ns", (unsigned long long)fate->hold_ns);
	if (fate->delay_ns)
		SAY(" delayed by %llu ns", (unsigned long long)fate->delay_ns);
#undef SAY
}

static void capture(struct wire_port *port, const void *frame, size_t len,
		    const struct wire_fate *fate, bool marked)
{
	struct wire *w = port->w;
	char comment[160];
	bool harmed = fate->drop || fate->corrupt || marked || fate->dup || fate->reorder ||
		      fate->delay_ns;

	if (!w->pcap)
		return;
	w->captured = true;
	if (harmed)
		describe(fate, marked, comment, sizeof(comment));
	wire_pcap_packet(w->pcap, port->number, wire_now(w), frame, len, harmed ? comment : NULL);
}

/* Apply faults to a frame. @frame is as it was sent, @buf the switch's copy. */
static void ingress_faults(struct wire_port *port, const void *frame, struct wire_buf *buf)
{
	struct wire *w = port->w;
	struct wire_stats *st = &port->stats;
	struct wire_fate fate;
	bool marked;

	st->fault_flow_evict += wire_faults_decide(w->faults, port->number, port->name,
						   frame, buf->len, &fate);
	buf->flow_id = fate.flow_id;
	buf->packet_id = fate.packet_id;
	buf->turn = fate.turn;
	marked = !fate.drop && fate.ecn && wire_mark_ce(buf->data, buf->len, fate.ecn_force);
	capture(port, frame, buf->len, &fate, marked);
	if (fate.drop) {
		st->fault_loss++;
		wire_buf_put(&w->pool, buf);
		return;
	}
	if (fate.corrupt)
		write_icrc(buf);
	if (fate.corrupt)
		buf->data[fate.corrupt_bit / 8] ^= 0x80 >> fate.corrupt_bit % 8;
	st->fault_corrupt += fate.corrupt;
	st->fault_ecn += marked;
	st->fault_dup += fate.dup;
	st->fault_reorder += fate.reorder;
	st->fault_delay += fate.delay_ns != 0;
	if (fate.dup) {
		/* The copy is delayed but not held back, and does not count as another packet. */
		struct wire_fate ahead = { .bps = fate.bps, .delay_ns = fate.delay_ns };

		buf->refs++;
		wire_hold_pass(w->hold, port, buf, &ahead);
	}
	wire_hold_pass(w->hold, port, buf, &fate);
}

/*
 * Take a frame without a copy if it was made in the station's buffer and nothing looks at it in
 * the switch. Short frames are copied all the same, since in a queue a frame counts with the
 * size of its buffer.
 */
static struct wire_buf *take_frame(struct wire_port *port, const void *frame, size_t len,
				   bool unseen)
{
	struct wire_buf *buf = port->stage;

	if (unseen && buf && frame == buf->data && len > STAGE_COPY_MAX) {
		port->stage = NULL;
		buf->len = (uint32_t)len;
		return buf;
	}
	buf = wire_buf_get(&port->w->pool, len);
	if (buf)
		memcpy(buf->data, frame, len);
	return buf;
}

void *wire_port_frame(struct wire_port *port, size_t size)
{
	if (port->stage && port->stage->size < size) {
		wire_buf_put(&port->w->pool, port->stage);
		port->stage = NULL;
	}
	if (!port->stage)
		port->stage = wire_buf_get(&port->w->pool, size);
	return port->stage ? port->stage->data : NULL;
}

void wire_ingress(struct wire_port *port, const void *frame, size_t len, bool icrc_pending)
{
	static const struct wire_fate unharmed;
	struct wire *w = port->w;
	const struct eth_hdr *eth = frame;
	struct wire_buf *buf;

	if (len < WIRE_FRAME_MIN || len > WIRE_FRAME_MAX) {
		port->stats.drop_len++;
		return;
	}
	port->stats.rx_frames++;
	port->stats.rx_bytes += len;
	if (port->only_mac && memcmp(eth->smac, port->mac, sizeof(port->mac))) {
		port->stats.drop_spoof++;
		return;
	}
	buf = take_frame(port, frame, len, icrc_pending);
	if (!buf) {
		port->stats.drop_memory++;
		return;
	}
	buf->icrc_pending = icrc_pending;
	if (!w->fabric)
		wire_learn(port, eth->smac);
	if (w->fabric || wire_faults_active(w->faults)) {
		ingress_faults(port, frame, buf);
		return;
	}
	capture(port, frame, len, &unharmed, false);
	/*
	 * Frames that wait for the shaper or are delayed, by faults that were ended since, go
	 * first. Those that are held back for reordering are passed.
	 */
	if (port->n_held)
		wire_hold_pass(w->hold, port, buf, &unharmed);
	else
		wire_forward(port, buf);
}

void wire_port_only_mac(struct wire_port *port, const uint8_t mac[6])
{
	memcpy(port->mac, mac, sizeof(port->mac));
	port->only_mac = true;
	if (port->w->fabric)
		wire_learn(port, mac);
}

void wire_port_send(struct wire_port *port, const void *frame, size_t len)
{
	wire_ingress(port, frame, len, false);
}

void wire_port_send_pending(struct wire_port *port, void *frame, size_t len)
{
	bool faults = wire_faults_active(port->w->faults) && !port->w->fabric;
	bool seen = port->w->pcap || faults;

	if (seen)
		skua_pkt_icrc_fill(frame, len);
	wire_ingress(port, frame, len, !seen);
}

/* The way out */

/* A frame from another member of the trunk is not forwarded to a third: each sends to all. */
static bool crosses(const struct wire_port *from, const struct wire_port *to)
{
	return to != from && !(to->line && from->line);
}

/* Has the queue reached the mark divided by @part? */
static bool filled(const struct wire_queue *q, unsigned int part)
{
	return wire_queue_len(q) >= WIRE_MARK_FRAMES / part || q->bytes >= WIRE_MARK_BYTES / part;
}

/* Senders need not wait for this port any more. */
static void release(struct wire_port *port)
{
	port->w->n_full--;
	port->w->room = true;
}

void wire_enqueue(struct wire_port *port, struct wire_buf *buf)
{
	struct wire_queue *q = &port->q;

	if (wire_queue_len(q) == WIRE_QUEUE_FRAMES || q->bytes + buf->cost > WIRE_QUEUE_BYTES) {
		port->stats.drop_queue++;
		return;
	}
	if (!port->inside)
		write_icrc(buf);
	buf->refs++;
	q->slot[q->tail++ % WIRE_QUEUE_FRAMES] = buf;
	q->bytes += buf->cost;
	if (!port->full && filled(q, 1)) {
		port->full = true;
		port->full_since = port->w->now;
		port->stats.waits++;
		port->w->n_full++;
	}
}

void wire_forward(struct wire_port *from, struct wire_buf *buf)
{
	struct wire *w = from->w;
	const struct eth_hdr *eth = (const struct eth_hdr *)buf->data;
	struct wire_port *to = wire_port_of(w, eth->dmac);
	unsigned int i;

	if (w->fabric) {
		fabric_send(w->fabric, from->index, to ? (int)to->index : -1, buf);
		return;
	}
	if (to && !crosses(from, to))
		from->stats.filtered++;
	else if (to)
		wire_enqueue(to, buf);
	else
		for (i = 0; i < w->n_ports; i++)
			if (crosses(from, w->port[i]))
				wire_enqueue(w->port[i], buf);
	wire_buf_put(&w->pool, buf);
}

static struct wire_buf *dequeue(struct wire_port *port)
{
	struct wire_queue *q = &port->q;
	struct wire_buf *buf = q->slot[q->head++ % WIRE_QUEUE_FRAMES];

	q->bytes -= buf->cost;
	if (port->full && !filled(q, 2)) {
		if (!port->late)
			release(port);
		port->full = false;
		port->late = false;
	}
	return buf;
}

static bool waited_for(const struct wire_port *port)
{
	return port->full && !port->late;
}

/* Must @port wait for any station of this process that its frames can go to? */
static bool stations_full(const struct wire_port *port)
{
	const struct wire *w = port->w;
	unsigned int i;

	if (!w->n_full)
		return false;
	for (i = 0; i < w->n_ports; i++)
		if (w->port[i]->inside && crosses(port, w->port[i]) && waited_for(w->port[i]))
			return true;
	return false;
}

bool wire_port_full(const struct wire_port *port, const uint8_t dmac[6])
{
	const struct wire *w = port->w;
	const struct wire_port *to;

	if (port->held_full || port->shaper_full)
		return true;
	if (w->fabric)
		return fabric_full(w->fabric, port->index);
	if (!w->n_full)
		return false;
	to = wire_port_of(w, dmac);
	return to ? crosses(port, to) && waited_for(to) : stations_full(port);
}

void wire_port_on_room(struct wire_port *port, void (*room)(void *priv))
{
	port->room = room;
}

/* Stop waiting for peers that are too slow. Stations of this process are always waited for. */
static void lose_patience(struct wire *w)
{
	unsigned int i;

	for (i = 0; i < w->n_ports && w->n_full; i++) {
		struct wire_port *port = w->port[i];

		if (port->inside || !waited_for(port) || w->now - port->full_since < WIRE_PATIENCE_NS)
			continue;
		port->late = true;
		port->stats.waits_ended++;
		release(port);
	}
}

/* Call the room functions, if there is room again. True: they may have sent something. */
static bool tell_room(struct wire *w)
{
	unsigned int i;

	if (!w->room)
		return false;
	w->room = false;
	for (i = 0; i < w->n_ports; i++)
		if (w->port[i]->room)
			w->port[i]->room(w->port[i]->priv);
	return true;
}

struct wire_buf *wire_take(struct wire_port *port)
{
	struct wire_buf *buf = dequeue(port);

	port->stats.tx_frames += buf->train ? buf->train->t.packets : 1;
	port->stats.tx_bytes += buf->train ? buf->train->bytes : buf->len;
	return buf;
}

void wire_sent(struct wire_port *port)
{
	struct wire_buf *buf = wire_take(port);

	if (buf->train)
		wire_train_end(buf);
	wire_buf_put(&port->w->pool, buf);
}

void wire_drop_head(struct wire_port *port)
{
	struct wire_buf *buf = dequeue(port);

	port->stats.drop_peer++;
	if (buf->train)
		wire_train_end(buf);
	wire_buf_put(&port->w->pool, buf);
}

void wire_port_busy(struct wire_port *port)
{
	uint64_t now = port->w->now;

	if (!port->stuck_since) {
		port->stuck_since = now ? now : 1;
		port->backoff = BACKOFF_MIN_NS;
	} else if (now - port->stuck_since >= STUCK_NS) {
		while (wire_queue_len(&port->q))
			wire_drop_head(port);
		port->stuck_since = now;
	}
	port->retry_at = now + port->backoff;
	port->backoff = port->backoff * 2 < BACKOFF_MAX_NS ? port->backoff * 2 : BACKOFF_MAX_NS;
}

void wire_port_idle(struct wire_port *port)
{
	port->stuck_since = 0;
	port->retry_at = 0;
}

/* What is behind the frame that is delivered. */
static void tell_next(struct wire_port *port)
{
	const struct wire_buf *next = port->q.slot[(port->q.head + 1) % WIRE_QUEUE_FRAMES];

	port->soon(port->priv, next->data, next->len);
}

/* Only the frames queued at the start: a station may answer each frame with another one. */
static void deliver(struct wire_port *port)
{
	uint64_t end = port->w->turn_ns ? wire_now(port->w) + port->w->turn_ns : 0;
	uint32_t n = wire_queue_len(&port->q), done = 0;
	int budget = WIRE_BUDGET_BYTES;
	struct wire_buf *buf;

	while (n-- && budget > 0) {
		if (end && done++ && wire_now(port->w) >= end)
			break;
		buf = port->q.slot[port->q.head % WIRE_QUEUE_FRAMES];
		if (n && port->soon)
			tell_next(port);
		port->again = false;
		if (buf->train) {
			budget -= (int)buf->cost;
			if (!wire_train_deliver(port, buf))
				break;
		} else {
			budget -= buf->len > WIRE_FRAME_COST ? (int)buf->len : WIRE_FRAME_COST;
			port->rx(port->priv, buf->data, buf->len, buf->icrc_pending);
			if (port->again)
				break;
		}
		wire_sent(port);
	}
}

void wire_port_again(struct wire_port *port)
{
	port->again = true;
}

static bool can_send(const struct wire_port *port)
{
	return wire_queue_len(&port->q) && port->retry_at <= port->w->now;
}

bool wire_poll(struct wire *w, uint64_t now_ns)
{
	bool more;
	unsigned int i;

	w->now = now_ns;
	more = wire_hold_poll(w->hold);
	if (w->fabric) {
		more |= fabric_poll(w->fabric);
		more |= tell_room(w);
		flush_capture(w);
		return more;
	}
	if (w->trunk)
		wire_trunk_receive(w);
	for (i = 0; i < w->n_ports; i++) {
		struct wire_port *port = w->port[(w->next_port + i) % w->n_ports];

		if (!can_send(port))
			continue;
		if (port->rx)
			deliver(port);
		else
			port->send(port);
	}
	if (w->n_ports)
		w->next_port = (w->next_port + 1) % w->n_ports;
	lose_patience(w);
	more |= tell_room(w);
	for (i = 0; i < w->n_ports && !more; i++)
		more = can_send(w->port[i]);
	if (w->trunk)
		wire_trunk_look(w);
	flush_capture(w);
	return more || w->far_ready;
}

uint64_t wire_deadline(const struct wire *w)
{
	uint64_t deadline = wire_hold_deadline(w->hold);
	unsigned int i;

	/* A frame that was dropped by a fault may have left only its capture to be written. */
	if (w->captured || w->room)
		return 0;
	if (w->trunk && (w->far_ready || wire_trunk_called(w)))
		return 0;
	if (w->fabric) {
		uint64_t fabric = fabric_deadline(w->fabric);

		return fabric < deadline ? fabric : deadline;
	}
	for (i = 0; i < w->n_ports; i++) {
		const struct wire_port *port = w->port[i];

		/* If the peer is not busy retry_at is 0, which is due now. */
		if (wire_queue_len(&port->q) && port->retry_at < deadline)
			deadline = port->retry_at;
	}
	return deadline;
}

static struct wire_port *port_of_fd(const struct wire *w, int fd)
{
	unsigned int i;

	for (i = 0; i < w->n_ports && fd >= 0; i++)
		if (w->port[i]->fd == fd)
			return w->port[i];
	return NULL;
}

enum wire_fd wire_fd_ready(struct wire *w, int fd)
{
	struct wire_port *port = port_of_fd(w, fd);

	if (!port || port->stopped)
		return WIRE_FD_END;
	if (stations_full(port))
		return WIRE_FD_WAIT;
	port->receive(port);
	return port->stopped ? WIRE_FD_END : WIRE_FD_POLL;
}

void wire_fd_on_room(struct wire *w, int fd, void (*room)(void *priv), void *priv)
{
	struct wire_port *port = port_of_fd(w, fd);

	port->room = room;
	port->priv = priv;
}

/* Counters */

const char *wire_port_name(const struct wire_port *port)
{
	return port->name;
}

const struct wire_stats *wire_port_stats(const struct wire_port *port)
{
	return &port->stats;
}

void wire_stats_each(const struct wire *w,
		     void (*fn)(void *priv, const char *port, const char *counter, uint64_t value),
		     void *priv)
{
	struct wire_stats lines = { 0 };
	char name[WIRE_NAME_MAX];
	unsigned int i;

	for (i = 0; i < w->n_ports; i++) {
		const struct wire_port *port = w->port[i];

		if (port->line) {
#define X(counter) lines.counter += port->stats.counter;
			WIRE_STATS(X)
#undef X
			continue;
		}
#define X(counter) fn(priv, port->name, #counter, port->stats.counter);
		WIRE_STATS(X)
#undef X
	}
	if (!w->trunk)
		return;
	/* One line for all ports to other threads. */
	snprintf(name, sizeof(name), "trunk%u", w->member);
#define X(counter) fn(priv, name, #counter, lines.counter);
	WIRE_STATS(X)
#undef X
}
