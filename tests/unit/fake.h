/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The surroundings of a device core, in one process and under one virtual clock:
 * guest memory with holes and faults, interrupts that are counted, a wire that
 * captures frames or leads to another device. Nothing happens by itself: time
 * passes and frames arrive when the test says so, hence every run is the same.
 */
#ifndef SKUA_TEST_FAKE_H
#define SKUA_TEST_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core.h"
#include "judge.h"

#define FAKE_MEM_SIZE	(256u << 20)
#define FAKE_MEM_BASE	0x100000000ull
#define FAKE_FRAMES	4096
#define FAKE_HOLES	8

struct fake_frame {
	size_t len;
	uint8_t data[MODEL_MAX_FRAME];
};

/**
 * struct fake - one device and what surrounds it
 * @dev: the device
 * @mem: guest memory, @mem_size bytes at bus address FAKE_MEM_BASE
 * @mem_size: FAKE_MEM_SIZE unless fake_init_sized() said otherwise
 * @next: first byte not handed out by fake_alloc()
 * @used: first byte that never was
 * @hole: ranges of bus addresses that do not answer; end 0: unused
 * @fail_read: 0: none; n: the n-th read from now fails (once)
 * @fail_write: likewise
 * @reads: DMA reads so far
 * @writes: DMA writes so far
 * @msix: messages of each vector
 * @now: the clock, nanoseconds
 * @clock: the clock of many devices, which @now follows; NULL: @now is the clock
 * @step: what it advances by each time that the device looks at it
 * @deadline: of the timer
 * @tx: frames on the wire that nobody took yet, oldest at @tx_head
 * @peer: where frames go instead, when fake_pump() carries them
 * @filter: may change or drop (false) a frame on its way to the peer
 * @filter_priv: its first argument
 * @sent: frames sent so far
 * @full: the wire has no room for frames to this address, NULL: it has for all
 * @wire: the switch, NULL: there is none
 * @port: its port for this device
 * @owns_wire: fake_exit() ends it
 * @net: where frames go instead of all of these, with @net_priv; NULL: nowhere
 * @net_priv: see @net
 * @judged: with @net, the judge sees what the device sends, and it is finished
 * @far_read: what is outside of @mem; 0, or it is not there. NULL: nothing is
 * @far_write: likewise
 * @far_priv: first argument of these
 * @raw: a benchmark: with the switch, frames are neither looked at nor copied here
 * @pending: the switch takes RoCE packets whose ICRC is still to be written, as in the
 *	daemon; in them it is wrong
 * @no_trains: it takes each packet by itself
 * @trains: trains sent
 * @trains_taken: trains that the device took as such
 * @settled: times that the device wanted those under way to do without their memory
 * @broken: what the host says of its memory, see skua_host_ops.dma_broken
 * @on_read: called before each DMA read, for a guest whose memory changes meanwhile
 * @on_write: called for each DMA write; true: it has written, or will
 * @on_order: called when the device orders what it writes before what it reads
 * @on_sent: called for each frame that the device sends, those of trains one by one
 * @on_priv: first argument of these
 * @rx_again: times that the device wanted a frame once more
 * @caps: of the device as it was made
 * @judge: of what the device sends; mini.c tells it of QPs
 * @unjudged: a test has the guest do what no judge can follow
 */
struct fake {
	struct skua_dev *dev;
	uint8_t *mem;
	uint64_t mem_size;
	uint64_t next, used;
	struct {
		uint64_t from, to;
	} hole[FAKE_HOLES];
	unsigned int fail_read, fail_write;
	uint64_t reads, writes;
	unsigned int msix[SKUA_MSIX_VECTORS_MAX];
	uint64_t now;
	const uint64_t *clock;
	uint64_t step;
	uint64_t deadline;
	struct fake_frame **tx;
	unsigned int tx_head, tx_tail;
	struct fake *peer;
	bool (*filter)(void *priv, struct fake_frame *frame);
	void *filter_priv;
	uint64_t sent;
	const uint8_t *full;
	struct wire *wire;
	struct wire_port *port;
	bool owns_wire;
	const struct skua_wire_ops *net;
	void *net_priv;
	bool judged;
	int (*far_read)(void *priv, uint64_t iova, void *buf, size_t len);
	int (*far_write)(void *priv, uint64_t iova, const void *buf, size_t len);
	void *far_priv;
	bool raw;
	bool pending;
	bool no_trains;
	unsigned int trains, trains_taken, settled;
	uint64_t broken;
	void (*on_read)(void *priv, uint64_t iova, size_t len);
	bool (*on_write)(void *priv, uint64_t iova, const void *buf, size_t len);
	void (*on_order)(void *priv);
	void (*on_sent)(void *priv, const void *frame, size_t len);
	void *on_priv;
	uint64_t caps;
	unsigned int rx_again;
	struct judge judge;
	bool unjudged;
};

/* A device that is on the bus: memory space and bus master enabled. @cfg may be NULL. */
void fake_init(struct fake *f, const struct skua_dev_cfg *cfg);
/* With another size of memory, which takes up no more than is used of it. */
void fake_init_sized(struct fake *f, const struct skua_dev_cfg *cfg, uint64_t size);
void fake_exit(struct fake *f);
/*
 * For fuzzers, which begin anew for each input: fake_exit() keeps device and memory, and
 * fake_init() takes them again, as they were when made. To be called once.
 */
void fake_pool(void);
/* Turn on, or off, what a driver turns on in the command register. */
void fake_bus(struct fake *f, bool memory, bool master);

/* Zeroed guest memory: bus address, and where the test sees it. */
uint64_t fake_alloc(struct fake *f, size_t size, size_t align);
void *fake_ptr(struct fake *f, uint64_t iova);
void fake_hole(struct fake *f, uint64_t iova, uint64_t len);
void fake_no_holes(struct fake *f);

/* BAR 0 and BAR 2. */
uint32_t fake_rd32(struct fake *f, unsigned int reg);
void fake_wr32(struct fake *f, unsigned int reg, uint32_t val);
void fake_wr64(struct fake *f, unsigned int reg, uint64_t val);
/* One 8-byte doorbell. */
void fake_db(struct fake *f, unsigned int page, unsigned int reg, uint32_t lo, uint32_t hi);

/* Let the device do all its work. */
void fake_run(struct fake *f);
/* Let time pass: timers ring in order, each followed by all the work it makes. */
void fake_advance(struct fake *f, uint64_t ns);
/* A frame from the wire. */
void fake_rx(struct fake *f, const void *frame, size_t len);
/* The oldest frame on the wire, NULL: none. The caller frees it. */
struct fake_frame *fake_tx(struct fake *f);

/* A cable between two devices; from now on they share the first one's clock. */
void fake_cable(struct fake *a, struct fake *b);
/*
 * The model's own switch in place of the cable, which had to be there before; the first
 * of them ends it. Peers and filters do not count any more.
 */
struct wire *fake_switch(struct fake *a, struct fake *b);
/* The two steps of that: a switch that ends with @f and has its clock; @f's port there. */
struct wire *fake_wire(struct fake *f, uint64_t seed);
void fake_join(struct fake *f, struct wire *w, const char *name);
/* Run both and carry frames until nothing moves any more. */
void fake_pump(struct fake *a, struct fake *b);
/* Let time pass for both. */
void fake_pump_for(struct fake *a, struct fake *b, uint64_t ns);

#endif /* SKUA_TEST_FAKE_H */
