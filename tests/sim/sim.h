/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many devices in one process and under one virtual clock: each is the model's real
 * device core, with a driver of a few hundred lines (tests/unit/mini.h) and guest memory; between
 * them is the fabric of tools/model/wire. Time goes from event to event, so what takes long
 * in virtual time costs nothing by itself, and a seed gives the same run each time.
 */
#ifndef SKUA_SIM_H
#define SKUA_SIM_H

#include "mini.h"
#include "wire/fabric.h"
#include "wire/wire.h"

#define SIM_NICS_MAX	512
#define SIM_START	1000000000ull	/* the clock when the run begins */
#define SIM_DEPTH_MAX	256
#define SIM_FAULTS_MAX	8

/* Deliberate faults of the simulation itself, to see that its checks find them. */
enum sim_spoil {
	SIM_SPOIL_NONE,
	SIM_SPOIL_DATA,		/* a byte of guest memory changes */
	SIM_SPOIL_TWICE,	/* a piece of a message is reported as written twice */
	SIM_SPOIL_LOST,		/* a frame is taken from the wire before its NIC gets it */
};

/*
 * Receives that a connection has posted: more than messages under way, so that the credits of
 * its answers, which are rounded down, never stop the other side.
 */
#define SIM_RECVS(sim)	(4 * (sim)->opt.depth)

/**
 * struct sim_opt - what a run is like
 * @fabric: the network
 * @seed: of all that is drawn
 * @fault: faults of the wire
 * @num_faults: how many
 * @op: what the messages are
 * @size: of a message
 * @mtu: path MTU, bytes
 * @qps: connections of each pair of NICs
 * @depth: messages that a connection has outstanding; with @each, that a NIC has
 * @run_ns: messages are posted so long, then those under way are waited for
 * @each: so many messages for each connection in place of @run_ns, in the NIC's order
 * @limit_ns: at the end of what is left has to be done
 * @timeout: code of the ACK timeout
 * @psn: first PSN of requesters, plus the number of the connection; -1: drawn
 * @tclass: traffic class of the packets, ECN bits among them
 * @pcie_ns: one way between processor and device
 * @onchip: bytes of the devices' memory on the chip, 0: the default
 * @caps_off: capabilities that the devices do without
 * @pcap: capture into this file
 * @judge: an automaton of the IBTA's rules looks at each packet
 * @cc: parameters of congestion control, by enum skua_cc_param, plus one; 0: not given
 * @sr: connections speak selective repeat with a window of 2^@sr packets; 0: go-back-N
 * @may_fail: a connection whose retries are exhausted is a result, and not wrong
 * @spoil: see above
 * @verbose: tell what devices log
 */
struct sim_opt {
	struct fabric_cfg fabric;
	uint64_t seed;
	const char *fault[SIM_FAULTS_MAX];
	unsigned int num_faults;
	enum skua_wqe_op op;
	uint32_t size;
	uint32_t mtu;
	unsigned int qps;
	unsigned int depth;
	uint64_t run_ns;
	unsigned int each;
	uint64_t limit_ns;
	uint32_t timeout;
	int32_t psn;
	uint8_t tclass;
	uint64_t pcie_ns;
	uint32_t onchip;
	uint64_t caps_off;
	uint64_t cc[SKUA_CC_PARAMS];
	uint32_t sr;
	const char *pcap;
	bool judge;
	bool may_fail;
	enum sim_spoil spoil;
	bool verbose;
};

/**
 * struct sim_msg - a message under way
 * @posted_at: when
 * @landed: bytes of it that were written
 */
struct sim_msg {
	uint64_t posted_at;
	uint32_t landed;
};

/**
 * struct sim_flow - a connection, whose messages all go one way
 * @id: its number
 * @nic: requester and responder
 * @source: NIC whose memory the payload comes from
 * @sink: NIC to whose memory it goes
 * @qp: of requester and responder
 * @wanted: messages that the program has decided to send
 * @posted: of these, given to the device
 * @done: completed at the requester
 * @recvs: receives posted
 * @recvd: receives completed
 * @bytes: payload that was written
 * @end_bytes: likewise, when time was over
 * @finished_at: when the last message completed
 * @failed: its retries were exhausted
 * @msg: by message, modulo the depth
 * @bits: pieces of each that were written
 */
struct sim_flow {
	uint32_t id;
	uint32_t nic[2];
	uint32_t source, sink;
	struct mini_qp qp[2];
	uint64_t wanted, posted, done;
	uint64_t recvs, recvd;
	uint64_t bytes, end_bytes;
	uint64_t finished_at;
	bool failed;
	struct sim_msg *msg;
	uint64_t *bits;
};

struct sim_want;

/**
 * struct sim_nic - one device, its driver and its program
 * @sim: all of them
 * @index: its number
 * @f: what surrounds the device
 * @m: the driver
 * @scq: completions of requests
 * @rcq: likewise of receives
 * @key: of all of its payload memory
 * @mac: address
 * @port: at the wire
 * @flow_of: flow by QP index, plus one; the sign bit: as the responder
 * @flows: those whose requester it is, in the order in which it serves them
 * @num_flows: how many
 * @next: the next one to be served, with sim_opt.each
 * @outstanding: messages, likewise
 * @want: messages that the program has decided to send, in order
 * @told: the deadline in the heap
 * @looks: a look at completions is in the heap
 * @dirty: something happened to the device
 * @again: it wants the frame that it got once more
 * @at_start: counters when traffic began
 */
struct sim_nic {
	struct sim *sim;
	uint32_t index;
	struct fake f;
	struct mini m;
	struct mini_cq scq, rcq;
	uint32_t key;
	uint8_t mac[6];
	struct wire_port *port;
	int32_t *flow_of;
	struct sim_flow **flows;
	unsigned int num_flows, next, outstanding;
	struct {
		struct sim_want *ring;
		uint32_t head, tail, room;
	} want;
	uint64_t told;
	bool looks;
	bool dirty;
	bool again;
	uint64_t at_start[SKUA_CNT_COUNT];
};

enum sim_kind {
	SIM_TIMER,		/* of the device */
	SIM_LOOK,		/* the program sees completions */
	SIM_RING,		/* a doorbell reaches the device */
};

struct sim_event {
	uint64_t time;
	uint64_t seq;
	uint32_t nic;
	enum sim_kind kind;
};

/* A message of @flow, for which the device begins at @due. */
struct sim_want {
	struct sim_flow *flow;
	uint64_t since, due;
};

/**
 * struct sim - a run
 * @opt: what it is like
 * @now: the clock
 * @wire: with the fabric
 * @nic: devices
 * @num_nics: how many
 * @flow: connections
 * @num_flows: how many
 * @room_flows: that @flow has room for
 * @start: when traffic began
 * @stop: when nothing is posted any more
 * @busy: flows whose messages are under way
 * @heap: events of devices and programs
 * @dirty: NICs that something happened to
 * @sample: latencies of messages
 * @events: of all kinds, handled so far
 * @wrong: things that may not be, so far
 * @lost: frames taken by SIM_SPOIL_LOST
 */
struct sim {
	struct sim_opt opt;
	uint64_t now;
	struct wire *wire;
	struct sim_nic *nic;
	unsigned int num_nics;
	struct sim_flow *flow;
	uint32_t num_flows, room_flows;
	uint64_t start, stop;
	uint64_t busy;
	struct {
		struct sim_event *ev;
		uint32_t n, room;
		uint64_t seq;
	} heap;
	struct {
		uint32_t *nic;
		uint32_t n;
	} dirty;
	struct {
		uint64_t *ns;
		size_t n, room;
	} sample;
	uint64_t events;
	uint64_t wrong;
	uint64_t lost;
};

/**
 * struct sim_result - what came out
 * @gbps: payload written in the time that messages were posted, or until the last was done
 * @jain: fairness among flows
 * @ns: time of that
 * @packets: sent by devices
 * @again: of these, requests sent again
 * @lost: frames lost, whatever the reason
 * @faults: frames that faults of the wire have changed, delayed or put out of order
 * @timeouts: ACK timers that expired
 * @naks: sequence NAKs received
 * @implied: responses that implied a loss
 * @ooo: packets that came before their turn
 * @marks: CE marks
 * @failed: connections whose retries were exhausted
 * @messages: completed
 * @p50: latency of a message, median
 * @p99: likewise
 * @max: likewise
 * @fabric: the network's own counts
 * @digest: of all counters of all devices
 * @wrong: things that may not be
 * @events: handled
 * @cpu_ns: processor time of traffic
 */
struct sim_result {
	double gbps, jain;
	uint64_t ns;
	uint64_t packets, again, lost, faults;
	uint64_t timeouts, naks, implied, ooo, marks, failed;
	uint64_t messages, p50, p99, max;
	struct fabric_stats fabric;
	uint64_t digest;
	uint64_t wrong;
	uint64_t events, cpu_ns;
};

/* --- net.c: devices and connections --- */
void sim_open(struct sim *sim, const struct sim_opt *opt);
void sim_close(struct sim *sim);
/* A connection, whose requester is @req. Its traffic begins with sim_run(). */
void sim_connect(struct sim *sim, unsigned int req, unsigned int rsp);
/* What may not be: counted, and the first few are told. */
void sim_wrong(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What cannot be worked with: the end. */
_Noreturn void sim_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- loop.c: time --- */
void sim_run(struct sim *sim, struct sim_result *res);
/* Something happened to the device: let it do its work soon. */
void sim_touch(struct sim_nic *nic);
void sim_at(struct sim_nic *nic, uint64_t time, enum sim_kind kind);

/* --- flow.c: programs, and what they find in their memory --- */
#define SIM_SOURCE	(1ull << 61)			/* payload that is sent */
#define SIM_SINK	(SIM_SOURCE | 1ull << 60)	/* where it is to go */
void sim_flow_init(struct sim *sim, struct sim_flow *f);
int sim_far_read(void *priv, uint64_t iova, void *buf, size_t len);
int sim_far_write(void *priv, uint64_t iova, const void *buf, size_t len);
void sim_begin(struct sim_nic *nic);
/* After the device has worked. True: it has something new to do. */
bool sim_poll(struct sim_nic *nic);
/* The program sees completions, and goes on. */
void sim_look(struct sim_nic *nic);
/* Post what is due. True: there was something. */
bool sim_post(struct sim_nic *nic);

/* --- check.c --- */
uint64_t sim_count(const struct sim *sim, enum skua_counter cnt);
void sim_check(struct sim *sim);
void sim_sum_up(struct sim *sim, struct sim_result *res);

/* --- scenario.c --- */
struct scenario_opt {
	struct sim_opt sim;
	const char *list;	/* of values to go through; NULL: the scenario's own */
	const char *csv;
	bool perf;
	bool run_set, size_set, qps_set, depth_set, timeout_set;
	uint64_t rtt_ns;
};
/* Its rows; the exit code. */
int scenario_run(const char *name, struct scenario_opt *opt);
bool scenario_known(const char *name);

#endif /* SKUA_SIM_H */
