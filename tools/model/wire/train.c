// SPDX-License-Identifier: GPL-2.0
/*
 * Trains: packets of one message that are forwarded as one unit between two stations. The
 * payload is read from the sender's memory at the delivery. A train is split into its packets
 * where it enters the switch, if a capture or a fault has to see them, or at the delivery, if
 * the receiver does not take it as a whole.
 *
 * The payload must be that of the time of sending: before the sender's memory may change or be
 * reused, it is copied (wire_settle()).
 */
#include <stdlib.h>
#include <string.h>

#include "priv.h"

/* Allocate a buffer for the headers of a packet and the train behind them. */
#define HEAD_MAX	((SKUA_PKT_HDR_MAX + 15) & ~15ul)

void wire_port_trains(struct wire_port *port, const struct wire_trains *trains)
{
	port->trains = trains;
}

/* The port of the station that has this address, if it takes trains from @port; else NULL. */
static struct wire_port *direct_to(const struct wire_port *port, const uint8_t dmac[6])
{
	struct wire *w = port->w;
	struct wire_port *to;

	if (w->pcap || w->fabric || wire_faults_active(w->faults) || port->n_held)
		return NULL;
	to = wire_port_of(w, dmac);
	return to && to != port && to->trains ? to : NULL;
}

bool wire_port_direct(const struct wire_port *port, const uint8_t dmac[6])
{
	return direct_to(port, dmac);
}

/* Tell the sender that its memory is not needed any more. */
static void done(struct wire_train *train)
{
	train->held = false;
	train->from->n_trains--;
	train->from->trains->done(train->from->priv, &train->t);
}

void wire_train_end(struct wire_buf *buf)
{
	struct wire_train *train = buf->train;

	if (train->held)
		done(train);
	free(train->own);
	buf->train = NULL;
}

/* Send all packets of a train one by one. */
static void send_packets(struct wire_port *port, const void *head, size_t len,
			 const struct skua_train *t)
{
	void *frame = port->w->scratch;

	for (uint32_t i = 0; i < t->packets; i++) {
		size_t n = skua_train_packet(head, len, t, i, frame, WIRE_FRAME_MAX);

		if (n)
			wire_port_send_pending(port, frame, n);
	}
	port->trains->done(port->priv, t);
}

void wire_port_send_train(struct wire_port *port, const void *head, size_t len,
			  const struct skua_train *t)
{
	const struct eth_hdr *eth = head;
	struct wire *w = port->w;
	struct wire_train *train;
	struct wire_port *to = NULL;
	struct wire_buf *buf;

	if (!port->only_mac || !memcmp(eth->smac, port->mac, sizeof(port->mac))) {
		/* Learning may replace another entry of the table, even that of the peer. */
		if (!w->fabric)
			wire_learn(port, eth->smac);
		to = direct_to(port, eth->dmac);
	}
	if (!to) {
		send_packets(port, head, len, t);
		return;
	}
	buf = wire_buf_get(&w->pool, HEAD_MAX + sizeof(*train));
	if (!buf) {
		port->stats.drop_memory += t->packets;
		port->trains->done(port->priv, t);
		return;
	}
	memcpy(buf->data, head, len < HEAD_MAX ? len : HEAD_MAX);
	train = (struct wire_train *)(buf->data + HEAD_MAX);
	train->from = port;
	train->next = 0;
	train->bytes = skua_train_bytes(head, len, t);
	train->held = true;
	train->own = NULL;
	memcpy(&train->t, t, offsetof(struct skua_train, piece) + t->num * sizeof(t->piece[0]));
	buf->len = (uint32_t)len;
	buf->cost = (uint32_t)train->bytes;
	buf->icrc_pending = true;
	buf->train = train;
	port->stats.rx_frames += t->packets;
	port->stats.rx_bytes += train->bytes;
	port->n_trains++;
	wire_enqueue(to, buf);
	/* The queue was full. */
	if (buf->refs == 1)
		wire_train_end(buf);
	wire_buf_put(&w->pool, buf);
}

bool wire_train_deliver(struct wire_port *port, struct wire_buf *buf)
{
	struct wire_train *train = buf->train;
	void *frame = port->w->scratch;
	size_t len;

	if (!train->held && !train->own) {
		train->from->stats.drop_memory += train->t.packets;
		return true;
	}
	if (!train->next && port->trains->rx(port->priv, buf->data, buf->len, &train->t))
		return true;
	for (; train->next < train->t.packets; train->next++) {
		len = skua_train_packet(buf->data, buf->len, &train->t, train->next, frame,
					WIRE_FRAME_MAX);
		port->again = false;
		if (len)
			port->rx(port->priv, frame, len, true);
		if (port->again)
			return false;
	}
	return true;
}

/* Copy the payload of a train. Without memory for that the train is lost. */
static void settle(struct wire_train *train)
{
	struct skua_train *t = &train->t;

	train->own = malloc(t->bytes);
	if (train->own) {
		skua_train_copy(t, 0, train->own, t->bytes);
		t->piece[0] = (struct skua_piece){ .at = train->own, .len = t->bytes };
		t->num = 1;
	}
	done(train);
	t->sender = NULL;
}

static void settle_port(struct wire *w, const struct wire_port *from)
{
	for (unsigned int i = 0; i < w->n_ports && from->n_trains; i++) {
		struct wire_queue *q = &w->port[i]->q;

		for (uint32_t n = 0; n < wire_queue_len(q); n++) {
			struct wire_train *train = wire_queue_peek(q, n)->train;

			if (train && train->held && train->from == from)
				settle(train);
		}
	}
}

void wire_settle(struct wire *w, struct wire_port *port)
{
	if (port) {
		settle_port(w, port);
		return;
	}
	for (unsigned int i = 0; i < w->n_ports; i++)
		settle_port(w, w->port[i]);
}

void wire_port_settle(struct wire_port *port)
{
	settle_port(port->w, port);
}
