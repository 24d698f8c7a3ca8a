/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model's outer face: what a device function offers to its surroundings
 * and what it needs from them.
 *
 * The core is single-threaded and deterministic. It knows no socket, no clock
 * and no thread: it reaches guest memory, interrupts and time only through
 * struct skua_host_ops, and the network only through struct skua_wire_ops.
 * The same core therefore runs below the vfio-user server, the unit tests and
 * the fuzzers, and replays exactly under virtual time.
 *
 * None of the entry points may be called from within an op, but for those of peers
 * (skua_dev_peer_*()), from which nothing follows.
 */
#ifndef SKUA_MODEL_H
#define SKUA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct skua_dev;
struct skua_train;

/* The timer is off. */
#define SKUA_TIME_NEVER UINT64_MAX

/**
 * struct skua_host_ops - what the core needs from its host side
 * @dma_read: copy @len bytes at bus address @iova into @buf. 0, or -EFAULT if
 *	any byte of the range is not mapped for reading (@buf is then undefined).
 * @dma_write: copy @len bytes to bus address @iova. 0, or -EFAULT if any byte
 *	is not mapped for writing (nothing is written then). A naturally aligned
 *	write of 1, 2, 4 or 8 bytes is single-copy atomic. Writes become visible
 *	to the guest in call order: each is a release with regard to the earlier
 *	ones, as posted PCIe writes are.
 * @order: what was written by @dma_write before is visible to the guest before @dma_read
 *	reads anything after: a full barrier, which a read on PCI Express is to posted writes.
 * @msix: send the message of MSI-X vector @vector.
 * @now: nanoseconds of a monotonic clock.
 * @timer: call skua_dev_tick() once at or after @deadline (same clock as @now);
 *	replaces the earlier deadline; SKUA_TIME_NEVER disarms.
 *
 * @dma_map: where the @len bytes at bus address @iova lie in this process, for reading; they
 *	stay there until the host has called for wire_settle(). NULL: they do
 *	not lie in one piece, or are not guest memory.
 * @dma_broken: how often memory that @dma_map had told of turned out to be gone without
 *	notice; what is read there after that is not the guest's. NULL: that does not happen.
 *
 * The core calls @dma_read, @dma_write, @dma_map and @msix only while the function's Bus
 * Master Enable bit is set; it checks that itself.
 */
struct skua_host_ops {
	int (*dma_read)(void *host, uint64_t iova, void *buf, size_t len);
	int (*dma_write)(void *host, uint64_t iova, const void *buf, size_t len);
	void (*order)(void *host);
	void (*msix)(void *host, unsigned int vector);
	uint64_t (*now)(void *host);
	void (*timer)(void *host, uint64_t deadline);
	const void *(*dma_map)(void *host, uint64_t iova, size_t len);
	uint64_t (*dma_broken)(void *host);
};

/**
 * struct skua_wire_ops - the network side
 * @send: one Ethernet frame without preamble and FCS, at least 14 bytes. The
 *	buffer is the caller's again on return. Must not call back into the
 *	sending device (skua_dev_rx() comes later, from the event loop).
 * @send_pending: likewise a RoCE packet whose ICRC is still to be written. The wire does
 *	that (skua_pkt_icrc_fill()) before anything but another device of this process sees
 *	the frame; such a device is told by skua_dev_rx(). NULL: the wire wants all frames
 *	finished.
 * @frame: where a frame of up to @size bytes may be made, so that @send and @send_pending
 *	need not copy it; what is there stays until one of them is given it. NULL, or it
 *	returns NULL: make it elsewhere.
 * @full: a frame for @dmac should be sent later, when skua_dev_room() was called. What
 *	had begun may be sent all the same. NULL: there always is room.
 * @direct: may packets to @dmac be sent as a train now? NULL: there are no trains.
 * @send_train: the packets of a train (roce/pkt.h), of which @head are the headers of the
 *	first, in a buffer of at least SKUA_PKT_HDR_MAX bytes, and @len is its length. The
 *	payload stays as it is until skua_dev_train_done().
 * @settle: the payload of trains under way must not be needed any more on return.
 */
struct skua_wire_ops {
	void (*send)(void *wire, const void *frame, size_t len);
	void (*send_pending)(void *wire, void *frame, size_t len);
	void *(*frame)(void *wire, size_t size);
	bool (*full)(void *wire, const uint8_t dmac[6]);
	bool (*direct)(void *wire, const uint8_t dmac[6]);
	void (*send_train)(void *wire, void *head, size_t len, const struct skua_train *train);
	void (*settle)(void *wire);
};

/**
 * struct skua_dev_cfg - what the user chooses for one function
 * @mac: permanent address
 * @serial: PCIe device serial number, also the node GUID's source
 * @onchip: bytes of memory on the chip (0: the default); what is too little is taken as the
 *	least that the device can work with
 * @whole: contexts are on the chip as a whole, not by sectors, for comparison
 * @onload: SKUA_CAP_RECOVERY: software may keep the loss state of QPs
 * @msix_vectors: MSI-X table size (0: the default)
 * @turn_ns: nanoseconds of @now that a call of skua_dev_run() or skua_dev_tick() may take,
 *	and a little more; 0, and under a clock that stands still meanwhile: only what is
 *	done is limited, not how long it takes
 * @push_segs: longest WQE, in segments, that software is told to push
 * @hot_looks: looks at a doorbell record, in a row and with nothing new, after which its
 *	software is to ring the doorbell again (0: the default)
 * @caps_off: SKUA_CAP_* that the device is to be without
 * @log: where the model's messages go (may be NULL); @level 0 error,
 *	1 warning, 2 info, 3 debug
 * @log_priv: first argument of @log
 */
struct skua_dev_cfg {
	uint8_t mac[6];
	uint64_t serial;
	uint32_t onchip;
	bool whole;
	bool onload;
	unsigned int msix_vectors;
	uint64_t turn_ns;
	unsigned int push_segs;
	unsigned int hot_looks;
	uint64_t caps_off;
	void (*log)(void *log_priv, int level, const char *msg);
	void *log_priv;
};

enum skua_reset_kind {
	SKUA_RESET_POWER,	/* as made; also secondary bus and system reset */
	SKUA_RESET_FLR,		/* function level reset */
};

/* Life cycle. create returns NULL and sets errno on failure. */
struct skua_dev *skua_dev_create(const struct skua_dev_cfg *cfg,
				 const struct skua_host_ops *host, void *host_priv,
				 const struct skua_wire_ops *wire, void *wire_priv);
void skua_dev_destroy(struct skua_dev *dev);
void skua_dev_reset(struct skua_dev *dev, enum skua_reset_kind kind);

/*
 * Configuration space of SKUA_PCI_CFG_SIZE bytes (pci.c): any width and offset,
 * out-of-range bytes read as zero. Which accesses reach a BAR, the MSI-X table and MSI-X
 * enable are the host bridge's business; the function has a copy of what was written, by
 * which it answers its peers.
 */
void skua_dev_cfg_read(struct skua_dev *dev, unsigned int off, void *buf, size_t len);
/* True: the write reset the function, and what the host side kept of it is void. */
bool skua_dev_cfg_write(struct skua_dev *dev, unsigned int off, const void *buf, size_t len);

/*
 * BAR accesses: any width and offset inside the BAR. Out-of-range reads give
 * all-ones, such writes are dropped. A write is posted: it may leave work
 * behind that skua_dev_run() does.
 */
uint64_t skua_dev_bar_size(const struct skua_dev *dev, unsigned int bar);
void skua_dev_bar_read(struct skua_dev *dev, unsigned int bar, uint64_t off, void *buf, size_t len);
void skua_dev_bar_write(struct skua_dev *dev, unsigned int bar, uint64_t off, const void *buf,
			size_t len);
unsigned int skua_dev_msix_vectors(const struct skua_dev *dev);

/*
 * Another function of the bus, or this one, reads and writes device memory, at the bus
 * address that software has given BAR 4. 0, or -EFAULT if the function does not answer
 * there for all of the range (and then nothing is written). Of its other BARs it takes
 * nothing from its peers.
 */
int skua_dev_peer_read(struct skua_dev *dev, uint64_t addr, void *buf, size_t len);
int skua_dev_peer_write(struct skua_dev *dev, uint64_t addr, const void *buf, size_t len);

/*
 * A frame from the wire. @icrc_pending: it was sent by skua_wire_ops.send_pending and its
 * ICRC has not been written, so there is nothing to compare; the device may write it then.
 * True: the device is not done with it. The same frame comes again after others had their
 * turn, and before any other. Some frames are reported to software only by the next
 * skua_dev_run(), which is to be called when no more are at hand.
 */
bool skua_dev_rx(struct skua_dev *dev, void *frame, size_t len, bool icrc_pending);
/*
 * A train from the wire: the first packet's headers, and its length. False: the device wants
 * the packets one by one.
 */
bool skua_dev_rx_train(struct skua_dev *dev, void *head, size_t len,
		       const struct skua_train *train);
/* A train that the device has sent was delivered, or does without its payload now. */
void skua_dev_train_done(struct skua_dev *dev, const struct skua_train *train);
/* The timer's call. */
void skua_dev_tick(struct skua_dev *dev);

/* The wire may have room again: what waited for it is tried by skua_dev_run(). */
void skua_dev_room(struct skua_dev *dev);

/* Link of the wire: the port's physical state follows it. Up when created. */
void skua_dev_link(struct skua_dev *dev, bool up);

/*
 * Do a bounded amount of queued work (commands, send queues, doorbell records).
 * Returns true while there is more: call again, after looking at other sources.
 */
bool skua_dev_run(struct skua_dev *dev);
/*
 * The last skua_dev_run() did nothing but to look at doorbell records, in which there was
 * nothing new, and is to do so again. That ends after a number of calls.
 */
bool skua_dev_only_looks(const struct skua_dev *dev);
/* The host is about to sleep: be done with looks now. True: there is work after all. */
bool skua_dev_rest(struct skua_dev *dev);
/* Producer indices found in doorbell records so far. */
uint64_t skua_dev_found(const struct skua_dev *dev);

/*
 * Faults that commands suffer, see Documentation/cmd-faults.rst: add the rules of
 * @spec, in which "off" drops all before it. 0, or -EINVAL and the reason in @err.
 */
int skua_dev_cmd_fault(struct skua_dev *dev, const char *spec, char *err, size_t len);
/* The rules and how often they acted, in one line. */
void skua_dev_cmd_fault_show(const struct skua_dev *dev, char *buf, size_t len);

/*
 * What was counted on the function's link, see Documentation/tlp.rst: "reset", "show",
 * "show QPN", "per-qp on", "per-qp off", "qps [INDEX]". 0 and the answer in one line, "" if
 * there is nothing to tell, or -EINVAL and the reason.
 */
int skua_dev_tlp(struct skua_dev *dev, const char *what, char *answer, size_t room);

/*
 * What is in the memory on the chip: "size BYTES used BYTES", then "; NAME NUMBER BYTES" for
 * each table of contexts and each other part that has anything there.
 */
void skua_dev_onchip(struct skua_dev *dev, char *answer, size_t room);

#endif /* SKUA_MODEL_H */
