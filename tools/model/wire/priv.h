/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internal to the switch: buffers, ports, and the functions that its files share.
 */
#ifndef SKUA_WIRE_PRIV_H
#define SKUA_WIRE_PRIV_H

#include <sys/socket.h>
#include <sys/un.h>

#include "../host/closer.h"
#include "../roce/pkt.h"
#include "fault.h"
#include "pcapng.h"
#include "trunk.h"
#include "wire.h"

#define WIRE_PORTS_MAX		1024
/* Maximum number of ports of a switch that is a member of a trunk. */
#define WIRE_MEMBER_PORTS	512
#define WIRE_NAME_MAX		32

/* Frames sent to, or received from, one link in one call, and released from hold.c in one. */
#define WIRE_BUDGET		64
#define WIRE_BATCH		32	/* frames in one system call */
/* Bytes delivered to a station in one call; a frame counts as WIRE_FRAME_COST at least. */
#define WIRE_BUDGET_BYTES	(128 << 10)
#define WIRE_FRAME_COST		256

/*
 * A frame in the switch, shared by all ports that will send it. Only its sole holder may change
 * it.
 */
struct wire_buf {
	struct wire_buf *next;		/* in the free list */
	uint32_t refs;
	uint32_t len;
	uint32_t size;			/* bytes of @data */
	uint32_t pool;			/* which free list */
	uint32_t cost;			/* what it counts in a queue */
	bool icrc_pending;		/* a RoCE packet whose ICRC is to be written */
	uint64_t flow_id;		/* with a fabric: see struct wire_fate */
	uint64_t packet_id;
	uint64_t turn;
	struct wire_train *train;	/* in @data, behind the headers; NULL: a frame */
	uint8_t data[] __attribute__((aligned(16)));
};

/**
 * struct wire_train - a train in a queue
 * @from: port of the sender
 * @next: number of its packets that were already delivered one by one
 * @bytes: sum of the lengths of all its packets
 * @held: its payload is in the sender's memory
 * @own: if not @held, a copy of the payload; NULL: there was no memory, the train is lost
 * @t: the train
 */
struct wire_train {
	struct wire_port *from;
	uint32_t next;
	size_t bytes;
	bool held;
	uint8_t *own;
	struct skua_train t;
};

#define WIRE_POOLS		4

struct wire_pool {
	struct wire_buf *free[WIRE_POOLS];
	size_t free_bytes;
};

/* NULL if there is no memory. */
struct wire_buf *wire_buf_get(struct wire_pool *pool, size_t len);
void wire_buf_put(struct wire_pool *pool, struct wire_buf *buf);
void wire_pool_destroy(struct wire_pool *pool);

/* Ring of frames that wait for a port; indices run freely. */
struct wire_queue {
	struct wire_buf *slot[WIRE_QUEUE_FRAMES];
	uint32_t head;			/* next to take */
	uint32_t tail;			/* next to fill */
	size_t bytes;
};

static inline uint32_t wire_queue_len(const struct wire_queue *q)
{
	return q->tail - q->head;
}

/* Frame @i from the head. */
static inline struct wire_buf *wire_queue_peek(const struct wire_queue *q, uint32_t i)
{
	return q->slot[(q->head + i) % WIRE_QUEUE_FRAMES];
}

/**
 * struct wire_port - a port of the switch
 * @w: the switch
 * @index: index among the ports of @w
 * @number: number among the ports of all threads, for captures and fault rules
 * @name: for counters, captures and fault rules
 * @inside: it leads to stations of this process, not to a link
 * @rx: gives a frame to the station of this thread; NULL: there is none
 * @soon: tells it of the frame behind that one, or NULL
 * @priv: first argument of @rx, @soon and @room
 * @trains: functions of a station that takes trains, else NULL
 * @again: set by the station in @rx: it wants to get the same frame again
 * @only_mac: frames with another source address than @mac are dropped
 * @mac: see @only_mac
 * @line: of a port that leads to another thread's switch, otherwise NULL
 * @fd: of a link to the outside, otherwise -1
 * @closer: helper that closes @fd, and the descriptors that a datagram peer sends
 * @stopped: nothing is read from @fd any more: descriptors that came with datagrams
 *	do not close
 * @remote: address of a datagram peer
 * @remote_len: its length
 * @path: our own socket's path, to be removed
 * @send: write queued frames to @fd, up to WIRE_BUDGET, or to @line
 * @receive: read frames from @fd, up to WIRE_BUDGET
 * @retry_at: the peer is busy: time before which there is no further attempt to send
 * @backoff: delay of the next attempt
 * @stuck_since: since when the peer is busy, 0: it is not
 * @room: called when there is room again, for the station or for who polls @fd; may be NULL
 * @full: the queue has reached the mark, and not gone down to half of it since
 * @full_since: time at which it reached the mark
 * @late: it is full for too long: nobody waits for it any more
 * @n_held: number of frames from this port that are held back or delayed
 * @held_bytes: size of their buffers
 * @held_full: they are so many that the station has to wait
 * @n_delayed: number of frames from this port that are delayed
 * @last_due: time at which the last of these leaves
 * @n_shaped: number of frames from this port that wait for its shaper: it has a bandwidth
 * @shaped_bytes: size of their buffers
 * @shaper_free: time at which the last of these is sent
 * @shaper_bps: bandwidth of the last one that has any
 * @shaper_rest: what is left of a nanosecond then, in parts of @shaper_bps
 * @shaper_full: they have reached the mark, and not gone down to half of it since
 * @stage: buffer in which the station makes its next frame, NULL: none
 * @n_trains: trains from this port that are in queues, with their payload in its memory
 * @q: frames for the station
 * @stats: counters
 */
struct wire_port {
	struct wire *w;
	unsigned int index;
	unsigned int number;
	char name[WIRE_NAME_MAX];
	bool inside;
	void (*rx)(void *priv, void *frame, size_t len, bool icrc_pending);
	void (*soon)(void *priv, const void *frame, size_t len);
	void *priv;
	const struct wire_trains *trains;
	bool again;
	bool only_mac;
	uint8_t mac[6];
	struct trunk_line *line;
	int fd;
	struct closer *closer;
	bool stopped;
	struct sockaddr_un remote;
	socklen_t remote_len;
	char *path;
	void (*send)(struct wire_port *port);
	void (*receive)(struct wire_port *port);
	uint64_t retry_at;
	uint64_t backoff;
	uint64_t stuck_since;
	void (*room)(void *priv);
	bool full;
	uint64_t full_since;
	bool late;
	uint32_t n_held;
	size_t held_bytes;
	bool held_full;
	uint32_t n_delayed;
	uint64_t last_due;
	uint32_t n_shaped;
	size_t shaped_bytes;
	uint64_t shaper_free;
	uint64_t shaper_bps;
	uint64_t shaper_rest;
	bool shaper_full;
	struct wire_buf *stage;
	uint32_t n_trains;
	struct wire_queue q;
	struct wire_stats stats;
};

/* The stage of held back and delayed frames, hold.c. */
struct wire_hold;

/* A network of switches, which takes the place of the ports' queues, fabric.c. */
struct fabric;

/* Room for descriptors that come with a datagram. */
union wire_control {
	char buf[CLOSER_CONTROL_SIZE];
	struct cmsghdr align;
};

/* Size of the table of addresses. */
#define WIRE_MAC_SETS		1024
#define WIRE_MAC_WAYS		8

/**
 * struct wire_macs - addresses and their ports
 * @way: address, shifted left by 16, and the port's number; 0: none. See mac.c.
 */
struct wire_macs {
	uint64_t way[WIRE_MAC_SETS][WIRE_MAC_WAYS];
};

struct wire {
	struct wire_port *port[WIRE_PORTS_MAX];
	unsigned int n_ports;
	unsigned int n_dgrams;
	unsigned int next_number;	/* of the next port that is added */
	unsigned int next_port;		/* who is served first, so that all are alike */
	unsigned int n_full;		/* ports that somebody has to wait for */
	bool room;			/* not any more: tell those who wait */
	uint64_t now;
	uint64_t (*clock)(void *priv);
	void *clock_priv;
	uint64_t turn_ns;		/* of one station in wire_poll(); 0: no limit */
	struct wire_pool pool;
	struct wire_faults *faults;
	struct wire_hold *hold;
	struct fabric *fabric;		/* NULL: one switch, with time for nothing */
	struct wire_pcap *pcap;
	bool pcap_shared;		/* somebody else closes it */
	bool captured;			/* since it was flushed */
	struct trunk *trunk;		/* NULL: no other switches */
	unsigned int member;		/* of the trunk: who it is; else 0 */
	struct wire_port *far[TRUNK_MEMBERS_MAX];	/* ports to the others */
	uint8_t far_order[TRUNK_MEMBERS_MAX];	/* the others, as they are served next */
	unsigned int n_far;
	bool far_ready;			/* frames from there can be taken */
	uint64_t far_frames;		/* that were */
	struct wire_macs *macs;		/* its own, or the trunk's */
	struct wire_macs own_macs;
	uint8_t mac_victim[WIRE_MAC_SETS];
	/*
	 * Where dgram.c and tap.c read to: one frame per vector element. The first is also
	 * where a packet of a train is made.
	 */
	uint8_t *scratch;
	union wire_control control[WIRE_BATCH];
};

/* A hash of @x: a step of splitmix64. */
static inline uint64_t wire_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t wire_now(const struct wire *w);
struct wire_port *wire_port_add(struct wire *w, const char *name, char *err, size_t errlen);
void wire_port_del(struct wire_port *port);

/* A frame from @port's station. @icrc_pending: see wire_port_send_pending(). */
void wire_ingress(struct wire_port *port, const void *frame, size_t len, bool icrc_pending);

/* Queue a frame at the ports of its destination. Takes one reference. */
void wire_forward(struct wire_port *from, struct wire_buf *buf);

/* --- train.c --- */
/* Deliver the train at the head of the queue. False: the station wants to get it again. */
bool wire_train_deliver(struct wire_port *port, struct wire_buf *buf);
/* The train was delivered or dropped: release it. */
void wire_train_end(struct wire_buf *buf);

/* --- trunk.c --- */
/* Take frames that other threads have sent. */
void wire_trunk_receive(struct wire *w);
/* Find out for wire_deadline() whether there are more for which there is room. */
void wire_trunk_look(struct wire *w);
/* Has another thread rung the bell since wire_trunk_receive()? */
bool wire_trunk_called(const struct wire *w);

/* Put a frame at the end of the port's queue, with one more reference. */
void wire_enqueue(struct wire_port *port, struct wire_buf *buf);
void wire_learn(struct wire_port *port, const uint8_t *addr);
/* The port that an address was learnt at, NULL: none, or the address is a group's. */
struct wire_port *wire_port_of(const struct wire *w, const uint8_t *addr);

/* Remove the head of the queue: it was sent, it becomes the caller's, or it is dropped. */
void wire_sent(struct wire_port *port);
struct wire_buf *wire_take(struct wire_port *port);
void wire_drop_head(struct wire_port *port);
/* The peer takes no more now: set the time of the next attempt, or drop all after a while. */
void wire_port_busy(struct wire_port *port);
void wire_port_idle(struct wire_port *port);

struct wire_hold *wire_hold_create(struct wire *w);
void wire_hold_destroy(struct wire_hold *h);
/* Forward a frame, subject to @fate. Takes one reference. */
void wire_hold_pass(struct wire_hold *h, struct wire_port *from, struct wire_buf *buf,
		    const struct wire_fate *fate);
/* Release the frames that are due, up to a limit. True: more are due. */
bool wire_hold_poll(struct wire_hold *h);
uint64_t wire_hold_deadline(const struct wire_hold *h);
void wire_hold_evict(struct wire_flow *flow);
/* No port has a bandwidth any more: what waits for it, and for its room, waits no longer. */
void wire_hold_unshape(struct wire_hold *h);

/*
 * The network of switches. fabric_send() takes a frame, and one reference, from one NIC to
 * another (-1: no NIC has the address). fabric_full(): does the NIC have to wait?
 * fabric_poll() handles the events that are due; true: there are more.
 */
void fabric_send(struct fabric *f, unsigned int from, int to, struct wire_buf *buf);
bool fabric_full(struct fabric *f, unsigned int nic);
bool fabric_poll(struct fabric *f);
uint64_t fabric_deadline(const struct fabric *f);
void fabric_destroy(struct fabric *f);

int wire_err(char *err, size_t errlen, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* SKUA_WIRE_PRIV_H */
