/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The network of a model process: a learning Ethernet switch.
 *
 * Its ports are device functions of this process, QEMU peers on a unix datagram
 * socket (`-netdev dgram`), and TAP interfaces. Faults (loss, delay, ...) and
 * capture happen where a frame enters the switch.
 *
 * A switch belongs to one thread; trunk.h joins the switches of several threads. Sending only
 * queues a frame, and wire_poll() delivers it, so that no station is called within the call of
 * another one.
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

/* Length of frames, without FCS. An MTU of 9216 bytes with all headers fits. */
#define WIRE_FRAME_MIN		14
#define WIRE_FRAME_MAX		16384

/*
 * Limits of each port's queue. Frames beyond WIRE_QUEUE_* are dropped and counted. Stations of
 * this process do not exceed them: when a queue has reached WIRE_MARK_* they wait
 * (wire_port_full()) until it has gone down to half of that. The room above the mark is for
 * messages that a station has begun to send, and for frames from links.
 */
#define WIRE_QUEUE_FRAMES	8192
#define WIRE_QUEUE_BYTES	(40u << 20)
#define WIRE_MARK_FRAMES	1024
#define WIRE_MARK_BYTES		(2u << 20)

/* Maximum number of file descriptors of a link at one time. */
#define WIRE_LINK_FDS_MAX	8192

/*
 * Time after which stations do not wait any longer for a link whose queue is above the mark,
 * since that delays their frames to others. Its frames are dropped when its queue is full, until
 * the queue has gone down to half of the mark.
 */
#define WIRE_PATIENCE_NS	(500ull * 1000 * 1000)

/*
 * Counters of a port. rx counts frames that its station has sent into the switch, tx those
 * delivered to it. Faults count at the port where the frame has entered.
 */
#define WIRE_STATS(X)								\
	X(rx_frames)								\
	X(rx_bytes)								\
	X(tx_frames)								\
	X(tx_bytes)								\
	X(drop_len)		/* from the station: too short or too long */	\
	X(drop_queue)		/* to the station: queue full */		\
	X(drop_peer)		/* to the station: peer missing, refused it */	\
	X(drop_hold)		/* from the station: too many under faults */	\
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
 * Set the clock for the time of frames. Without one it is the time of the last wire_poll().
 */
void wire_set_clock(struct wire *w, uint64_t (*now)(void *priv), void *priv);

/*
 * Limit the time that the delivery of frames to one station takes in one wire_poll(), by the
 * clock that was set. 0, the default: only the number of frames is limited.
 */
void wire_set_turn(struct wire *w, uint64_t turn_ns);

/**
 * wire_add_dev() - attach a station of this process
 * @w: the wire
 * @name: of the port, for counters, capture and fault rules
 * @rx: receives a frame; called by wire_poll() only; may send. @icrc_pending: the frame was
 *	sent by wire_port_send_pending(), and its ICRC was not written yet; @rx may write it.
 * @priv: its first argument
 *
 * Return: the port, which lives as long as the wire; NULL and errno on failure.
 */
struct wire_port *wire_add_dev(struct wire *w, const char *name,
			       void (*rx)(void *priv, void *frame, size_t len,
					  bool icrc_pending),
			       void *priv);
/*
 * Have the station told of the frame that it receives next, while it has another one: a hint,
 * of which it may load what it needs for it. Of a train it is the first packet's headers.
 */
void wire_port_on_next(struct wire_port *port,
		       void (*soon)(void *priv, const void *frame, size_t len));
/*
 * Restrict the station to this source address: a frame with another one is dropped and counted
 * (drop_spoof), and its address is not learnt.
 */
void wire_port_only_mac(struct wire_port *port, const uint8_t mac[6]);
void wire_port_send(struct wire_port *port, const void *frame, size_t len);
/*
 * Likewise a RoCE packet whose ICRC is still to be written. The switch does it, in @frame or
 * in its own copy, where a capture, a fault or a port to the outside can see the packet.
 */
void wire_port_send_pending(struct wire_port *port, void *frame, size_t len);
/*
 * A buffer of the switch in which the station may make its next frame of up to @size bytes, so
 * that it need not be copied. The same buffer is returned until a frame in it was sent; after
 * that the station must not access it any more. NULL: there is no memory.
 */
void *wire_port_frame(struct wire_port *port, size_t size);

/*
 * Trains (roce/pkt.h): packets to a station of this process that are sent as one unit, with
 * payload that stays in the sender's memory until the delivery. Counters count the packets.
 */

/**
 * struct wire_trains - functions of a station that takes trains
 * @rx: receives a train: the headers of its first packet, and the length of that packet.
 *	False: the station wants to get the packets one by one.
 * @done: a train that the station has sent does not need the station's memory any more
 */
struct wire_trains {
	bool (*rx)(void *priv, void *head, size_t len, const struct skua_train *train);
	void (*done)(void *priv, const struct skua_train *train);
};

/* Set the station's functions for trains. The structure is not copied. */
void wire_port_trains(struct wire_port *port, const struct wire_trains *trains);
/*
 * Can a train be sent to @dmac? Not if a capture or a fault looks at the wire, if the address is
 * not known, or if it is not that of another station that takes trains.
 */
bool wire_port_direct(const struct wire_port *port, const uint8_t dmac[6]);
/* @head: the first packet's headers, @len: its length. */
void wire_port_send_train(struct wire_port *port, const void *head, size_t len,
			  const struct skua_train *train);
/*
 * Copy the payload of the queued trains that @port has sent (NULL: of all trains), before the
 * memory that they name may change or be unmapped.
 */
void wire_settle(struct wire *w, struct wire_port *port);
void wire_port_settle(struct wire_port *port);

/**
 * wire_port_full() - does a frame have to wait for room in the switch?
 * @port: the station's port
 * @dmac: destination of the frame
 *
 * If a station obeys this, the switch drops none of its frames, except by faults and for links
 * whose peers take nothing. The latter do not block it for long: a multicast frame waits for
 * stations of this process only, and see WIRE_PATIENCE_NS.
 *
 * Return: true: wait for the call of wire_port_on_room().
 */
bool wire_port_full(const struct wire_port *port, const uint8_t dmac[6]);

/*
 * To be called by a station in its @rx: it has not handled the frame completely, and gets it
 * again in the next wire_poll(), before any other one.
 */
void wire_port_again(struct wire_port *port);

/* Have wire_poll() call @room, with the station's @priv, when there may be room again. */
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

/**
 * enum wire_fd - when a link's descriptor is to be polled for reading
 * @WIRE_FD_END: never again: nothing is read from it any more
 * @WIRE_FD_POLL: at once, level-triggered: more frames may wait there
 * @WIRE_FD_WAIT: after the call of wire_fd_on_room(): a station that its frames may be for has no
 *	room, and the frames stay in the descriptor until then
 */
enum wire_fd { WIRE_FD_END, WIRE_FD_POLL, WIRE_FD_WAIT };

/* Take some frames from @fd, which can be read. */
enum wire_fd wire_fd_ready(struct wire *w, int fd);
/* Have wire_poll() call @room(@priv) when there may be room again for the frames of @fd. */
void wire_fd_on_room(struct wire *w, int fd, void (*room)(void *priv), void *priv);

/*
 * Add faults, in the language of fault.h. May be called again and at any time.
 * 0, or -1 with a message.
 */
int wire_fault(struct wire *w, const char *spec, char *err, size_t errlen);

/* Remove all faults, and drop all flows: for faults that are added later all flows are new. */
void wire_fault_clear(struct wire *w);

/*
 * Capture into a pcapng file: each frame once, as it was sent, with a comment about the faults
 * that were applied. Returns 0, or -1 with a message.
 */
int wire_pcap(struct wire *w, const char *path, char *err, size_t errlen);

/*
 * Capture into a file that several switches write to (pcapng.h); NULL ends that. The caller adds
 * an interface for each port's number (wire_number_ports()) to the file, and closes it after
 * the end of the capture, or of the switch.
 */
void wire_pcap_share(struct wire *w, struct wire_pcap *pcap);

/*
 * Set the number of the next port that is added, for captures and faults; the following ports
 * count on from there. The default is 0. All ports of a trunk's switches must differ.
 */
void wire_number_ports(struct wire *w, unsigned int first);

/*
 * Deliver the frames that are queued or due, up to a limit. True: there are more: call again
 * after other work was done.
 */
bool wire_poll(struct wire *w, uint64_t now_ns);

/* The time at which wire_poll() has to be called; UINT64_MAX: no need to call it. */
uint64_t wire_deadline(const struct wire *w);

const char *wire_port_name(const struct wire_port *port);
const struct wire_stats *wire_port_stats(const struct wire_port *port);

/* Call @fn for each counter of each port; ports to other threads count as one. */
void wire_stats_each(const struct wire *w,
		     void (*fn)(void *priv, const char *port, const char *counter, uint64_t value),
		     void *priv);

#endif /* SKUA_WIRE_H */
