/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside of the switch: buffers, ports, and what switch.c, hold.c, dgram.c and
 * tap.c share.
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
/* Likewise of a switch that is a member of a trunk. */
#define WIRE_MEMBER_PORTS	512
#define WIRE_NAME_MAX		32

/* Frames given to, or taken from, one port outside in one call, and let out of a delay. */
#define WIRE_BUDGET		64
#define WIRE_BATCH		32	/* frames in one system call */
/* Bytes given to a station in one call, and what a frame counts at least. */
#define WIRE_BUDGET_BYTES	(128 << 10)
#define WIRE_FRAME_COST		256

/*
 * A frame inside the switch, shared by all ports that will send it: whoever
 * wants to change it needs to be its only holder.
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
 * @from: who has sent it
 * @next: packets of it that were delivered one by one
 * @bytes: of all its packets
 * @held: its payload is in the sender's memory
 * @own: else a copy of it; NULL: there was no memory, the train is lost
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
 * struct wire_port - a station's port
 * @w: the switch
 * @index: place among the ports
 * @number: for captures and for the fate of frames: the place among the ports of all threads
 * @name: for people and rules
 * @inside: behind it are stations of this process
 * @rx: of a station of this thread, otherwise NULL
 * @priv: first argument of @rx
 * @trains: what it does with trains, NULL: nothing
 * @again: the station wants the frame that it just got once more
 * @only_mac: it sends with @mac alone
 * @mac: see @only_mac
 * @line: of a port that leads to another thread's switch, otherwise NULL
 * @fd: of a link to the outside, otherwise -1
 * @closer: closes @fd and what descriptors a datagram peer sends
 * @stopped: nothing is read from @fd any more: descriptors that came with datagrams
 *	do not close
 * @remote: address of a datagram peer
 * @remote_len: its length
 * @path: our own socket's path, to be removed
 * @send: write queued frames to @fd, up to WIRE_BUDGET, or to @line
 * @receive: read frames from @fd, up to WIRE_BUDGET
 * @retry_at: the peer is busy: do not write before
 * @backoff: how long to wait the next time
 * @stuck_since: when it began to be busy, 0: it is not
 * @room: tells the station that it may send again, NULL: nobody wants to know
 * @full: the queue reached the mark, and has not come down yet
 * @full_since: when it did
 * @late: it takes too long, nobody waits for it
 * @n_held: frames which came in here and are held back or delayed
 * @held_bytes: of buffers, likewise
 * @held_full: those are so many that the station has to wait
 * @n_delayed: frames which came in here and are still delayed
 * @last_due: when the last of them gets through
 * @stage: where the station makes its next frame, NULL: nowhere yet
 * @n_trains: trains that it has sent and that are in queues with their payload in its memory
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
	struct wire_buf *stage;
	uint32_t n_trains;
	struct wire_queue q;
	struct wire_stats stats;
};

/* Delay and reordering stage, hold.c. */
struct wire_hold;

/* Behind that, in place of the ports' queues, fabric.c. */
struct fabric;

/* Room for descriptors that come with a datagram. */
union wire_control {
	char buf[CLOSER_CONTROL_SIZE];
	struct cmsghdr align;
};

/* Stations that moved or spoke: where to find an address. */
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

/* A splitmix64 step: a number that says nothing of @x. */
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

/* Give a frame, and one reference, to the ports that it is for. */
void wire_forward(struct wire_port *from, struct wire_buf *buf);

/* --- train.c --- */
/* Give the train at the head of the queue to the station. False: it wants it again. */
bool wire_train_deliver(struct wire_port *port, struct wire_buf *buf);
/* It is delivered, or dropped. */
void wire_train_end(struct wire_buf *buf);

/* --- trunk.c --- */
/* Take frames that other threads have sent. */
void wire_trunk_receive(struct wire *w);
/* Whether there are more for which there is room; for wire_deadline(). */
void wire_trunk_look(struct wire *w);
/* Another thread has done something since wire_trunk_receive(). */
bool wire_trunk_called(const struct wire *w);

/* Put a frame at the end of the port's queue, with one more reference. */
void wire_enqueue(struct wire_port *port, struct wire_buf *buf);
void wire_learn(struct wire_port *port, const uint8_t *addr);
/* The port that an address was learnt at, NULL: none, or the address is a group's. */
struct wire_port *wire_port_of(const struct wire *w, const uint8_t *addr);

/* The head of the queue is done with: sent, or dropped; or it is the caller's from now on. */
void wire_sent(struct wire_port *port);
struct wire_buf *wire_take(struct wire_port *port);
void wire_drop_head(struct wire_port *port);
/* The peer takes no more: come back later, or give up after a while. */
void wire_port_busy(struct wire_port *port);
void wire_port_idle(struct wire_port *port);

struct wire_hold *wire_hold_create(struct wire *w);
void wire_hold_destroy(struct wire_hold *h);
/* Send a frame, and one reference, on its way under @fate. */
void wire_hold_pass(struct wire_hold *h, struct wire_port *from, struct wire_buf *buf,
		    const struct wire_fate *fate);
/* Let through what is due, up to a bound. True: more is due. */
bool wire_hold_poll(struct wire_hold *h);
uint64_t wire_hold_deadline(const struct wire_hold *h);
void wire_hold_evict(struct wire_flow *flow);

/*
 * The network of switches. A frame, and one reference, from one NIC to another (-1: nobody
 * has its address); is the NIC to wait; do what is due, true: there is more.
 */
void fabric_send(struct fabric *f, unsigned int from, int to, struct wire_buf *buf);
bool fabric_full(struct fabric *f, unsigned int nic);
bool fabric_poll(struct fabric *f);
uint64_t fabric_deadline(const struct fabric *f);
void fabric_destroy(struct fabric *f);

int wire_err(char *err, size_t errlen, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* SKUA_WIRE_PRIV_H */
