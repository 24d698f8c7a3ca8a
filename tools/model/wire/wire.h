/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The network of a model process: a learning Ethernet switch.
 *
 * Its ports are device functions of this process, QEMU peers on a unix datagram
 * socket (`-netdev dgram`), and TAP interfaces. Faults (loss, delay, ...) and
 * capture happen where a frame enters the switch.
 *
 * Of one thread; trunk.h joins the switches of several. Sending never delivers: frames are queued, and wire_poll()
 * hands them out, so no station is called from inside another's call.
 */
#ifndef SKUA_WIRE_H
#define SKUA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire;
struct wire_pcap;
struct wire_port;
struct skua_train;

/* Frames, without FCS. 9216 bytes of MTU and all headers fit with ease. */
#define WIRE_FRAME_MIN		14
#define WIRE_FRAME_MAX		16384

/*
 * Bound of each port's queue of frames waiting for delivery: what comes then is dropped
 * and counted. Stations of this process do not let it come so far: when the queue has
 * reached the mark they wait (wire_port_full()) until it has gone down to half of that.
 * What is above the mark is for what a station had begun to send, and for frames that
 * come from outside.
 */
#define WIRE_QUEUE_FRAMES	8192
#define WIRE_QUEUE_BYTES	(40u << 20)
#define WIRE_MARK_FRAMES	1024
#define WIRE_MARK_BYTES		(2u << 20)

/* File descriptors that a link to the outside has at most at one time. */
#define WIRE_LINK_FDS_MAX	8192

/*
 * Nobody waits for a peer any longer that has not come down from the mark in this time:
 * it could hold up what a station sends to others. Frames for it are dropped when its
 * queue is full, until it has caught up.
 */
#define WIRE_PATIENCE_NS	(500ull * 1000 * 1000)

/*
 * Counters of a port. rx is what its station sent into the switch, tx what was
 * handed to it. Faults count at the port where the frame came in.
 */
#define WIRE_STATS(X)								\
	X(rx_frames)								\
	X(rx_bytes)								\
	X(tx_frames)								\
	X(tx_bytes)								\
	X(drop_len)		/* from the station: too short or too long */	\
	X(drop_queue)		/* to the station: queue full */		\
	X(drop_peer)		/* to the station: peer missing, refused it */	\
	X(drop_hold)		/* from the station: too many delayed */	\
	X(drop_memory)		/* from the station: no buffer */		\
	X(bad_fds)		/* from the station: descriptors with a frame */	\
	X(drop_spoof)		/* from the station: not its address */		\
	X(filtered)		/* from the station: is for itself */		\
	X(waits)		/* to the station: times that senders had to wait */ \
	X(waits_ended)		/* of these: it took too long */		\
	X(fault_loss)								\
	X(fault_delay)								\
	X(fault_reorder)							\
	X(fault_dup)								\
	X(fault_corrupt)							\
	X(fault_ecn)								\
	X(fault_flow_evict)	/* forgotten flows: more QPs than the table */

struct wire_stats {
#define X(name) uint64_t name;
	WIRE_STATS(X)
#undef X
};

/*
 * @seed decides the fate of every frame where the fault specification does not
 * name a seed. NULL and errno on failure.
 */
struct wire *wire_create(uint64_t seed);
void wire_destroy(struct wire *w);

/*
 * Where frames get their time from between two wire_poll(): without a clock the
 * last wire_poll()'s time stands for them all.
 */
void wire_set_clock(struct wire *w, uint64_t (*now)(void *priv), void *priv);

/*
 * What the frames given to one station may take in one wire_poll(), by the clock that was
 * set; 0, the default: only their number is limited.
 */
void wire_set_turn(struct wire *w, uint64_t turn_ns);

/**
 * wire_add_dev() - attach a station of this process
 * @w: the wire
 * @name: of the port, for counters, capture and fault rules
 * @rx: takes a frame; called by wire_poll() only; may send. @icrc_pending: sent by
 *	wire_port_send_pending(), and nobody had to see its ICRC so far; @rx may write it.
 * @priv: its first argument
 *
 * Return: the port, which lives as long as the wire; NULL and errno on failure.
 */
struct wire_port *wire_add_dev(struct wire *w, const char *name,
			       void (*rx)(void *priv, void *frame, size_t len,
					  bool icrc_pending),
			       void *priv);
/*
 * From now on the station sends with this address only: a frame with another source is
 * dropped and counted (drop_spoof), and moves no address to this port.
 */
void wire_port_only_mac(struct wire_port *port, const uint8_t mac[6]);
void wire_port_send(struct wire_port *port, const void *frame, size_t len);
/*
 * Likewise a RoCE packet whose ICRC is still to be written. The switch does it, in @frame or
 * in its own copy, where a capture, a fault or a port to the outside can see the packet.
 */
void wire_port_send_pending(struct wire_port *port, void *frame, size_t len);
/*
 * Where the station may make its next frame of up to @size bytes: the switch does not copy
 * such a frame. The same place is returned until a frame there was sent, after which the
 * station has no business there. NULL: there is no memory.
 */
void *wire_port_frame(struct wire_port *port, size_t size);

/*
 * Trains (roce/pkt.h): packets that go to a station of this process as one, with payload that
 * stays in the sender's memory until it is delivered. They count like the packets that they
 * consist of.
 */

/**
 * struct wire_trains - what a station does with trains
 * @rx: takes one: the headers of its first packet, and the length of that. False: the
 *	packets are to be given to it one by one.
 * @done: one that the station has sent needs its memory no longer
 */
struct wire_trains {
	bool (*rx)(void *priv, void *head, size_t len, const struct skua_train *train);
	void (*done)(void *priv, const struct skua_train *train);
};

/* The station can do so. @trains stays. */
void wire_port_trains(struct wire_port *port, const struct wire_trains *trains);
/*
 * Does a train to @dmac stay one? Not if anybody looks at what is on the wire, if the address
 * is not known, or if it is not that of another station which takes trains.
 */
bool wire_port_direct(const struct wire_port *port, const uint8_t dmac[6]);
/* @head: the first packet's headers, @len: its length. */
void wire_port_send_train(struct wire_port *port, const void *head, size_t len,
			  const struct skua_train *train);
/*
 * Memory that trains name is about to change or to go: that of those which @port sent, or all
 * for NULL. Their payload is copied.
 */
void wire_settle(struct wire *w, struct wire_port *port);
void wire_port_settle(struct wire_port *port);

/**
 * wire_port_full() - is a frame better sent later?
 * @port: the station's
 * @dmac: where the frame is for
 *
 * The station that does as it is told here loses nothing in the switch, but to faults and
 * to peers which take nothing. It is not held up by the latter: a frame for several
 * stations waits for those of this process only, and see WIRE_PATIENCE_NS.
 *
 * Return: true: wait for the call of wire_port_on_room().
 */
bool wire_port_full(const struct wire_port *port, const uint8_t dmac[6]);

/*
 * For a station, while it gets a frame: it is not done with it, and gets it again in the
 * next wire_poll(), before any other.
 */
void wire_port_again(struct wire_port *port);

/* Have wire_poll() call @room, with the station's @priv, when it may try again. */
void wire_port_on_room(struct wire_port *port, void (*room)(void *priv));

/**
 * wire_add_dgram() - attach a QEMU `-netdev dgram` with unix addresses
 * @w: the wire
 * @local: our socket's path, QEMU's remote.path
 * @remote: QEMU's local.path; need not exist yet
 * @err: where to put a message on failure
 * @errlen: room there
 *
 * The port is called dgram0, dgram1, ... A socket that nobody is bound to any
 * more is removed from @local; anything else there is an error.
 *
 * Return: descriptor to poll for reading, -1 on failure.
 */
int wire_add_dgram(struct wire *w, const char *local, const char *remote,
		   char *err, size_t errlen);

/*
 * Attach the TAP interface @name, which is made if it does not exist. The port
 * is called after it. Return: as wire_add_dgram().
 */
int wire_add_tap(struct wire *w, const char *name, char *err, size_t errlen);

/*
 * Take some frames from @fd, which can be read. Level-triggered: more may wait. False:
 * nothing is read from @fd any more, do not poll it.
 */
bool wire_fd_ready(struct wire *w, int fd);

/*
 * Add faults, in the language of fault.h. May be called again and at any time.
 * 0, or -1 with a message.
 */
int wire_fault(struct wire *w, const char *spec, char *err, size_t errlen);

/* End all faults; those added later find no flow that they know. */
void wire_fault_clear(struct wire *w);

/*
 * Capture into a pcapng file: each frame once, as its sender sent it; what
 * became of it is said in a comment. 0, or -1 with a message.
 */
int wire_pcap(struct wire *w, const char *path, char *err, size_t errlen);

/*
 * Likewise into a file that several switches write to (pcapng.h). The caller adds an interface
 * there for each port's number (wire_number_ports()), and closes the file when the switch is gone
 * or has been told so: NULL ends it.
 */
void wire_pcap_share(struct wire *w, struct wire_pcap *pcap);

/*
 * Ports have numbers in captures and for the fate of their frames, by default from 0 on: the
 * next port to be added gets @first, and so on. Those of switches that a trunk joins are to differ.
 */
void wire_number_ports(struct wire *w, unsigned int first);

/*
 * Deliver what is queued or due, up to a bound. True: there is more, call again
 * after looking at other sources.
 */
bool wire_poll(struct wire *w, uint64_t now_ns);

/* When wire_poll() has to be called at the latest; UINT64_MAX: no need. */
uint64_t wire_deadline(const struct wire *w);

const char *wire_port_name(const struct wire_port *port);
const struct wire_stats *wire_port_stats(const struct wire_port *port);

/* Call @fn for each counter of each port; those that lead to other threads are one. */
void wire_stats_each(const struct wire *w,
		     void (*fn)(void *priv, const char *port, const char *counter, uint64_t value),
		     void *priv);

#endif /* SKUA_WIRE_H */
