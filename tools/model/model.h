/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface of the device core: the functions of a device function, and the operations that it
 * needs from its host side and from the network.
 *
 * The device core is single-threaded and deterministic. It knows no socket, no clock
 * and no thread: it reaches guest memory, interrupts and time only through
 * struct skua_host_ops, and the network only through struct skua_wire_ops.
 * The same code therefore runs below the vfio-user server, the unit tests and
 * the fuzzers, and replays exactly under virtual time.
 *
 * No entry point may be called from within an op, except those for accesses by peers
 * (skua_dev_peer_*()), which have no further effects.
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
 * struct skua_host_ops - what the device core needs from its host side
 * @dma_read: copy @len bytes at bus address @iova into @buf. 0, or -EFAULT if
 *	any byte of the range is not mapped for reading (@buf is then undefined).
 * @dma_write: copy @len bytes to bus address @iova. 0, or -EFAULT if any byte
 *	is not mapped for writing (nothing is written then). A naturally aligned
 *	write of 1, 2, 4 or 8 bytes is single-copy atomic. Writes become visible
 *	to the guest in call order: each is a release with regard to the earlier
 *	ones, as posted PCIe writes are.
 * @order: full barrier: earlier writes by @dma_write are visible to the guest before later
 *	reads by @dma_read. On PCI Express a read has this effect on posted writes.
 * @msix: send the message of MSI-X vector @vector.
 * @now: nanoseconds of a monotonic clock.
 * @timer: call skua_dev_tick() once at or after @deadline (same clock as @now);
 *	replaces the earlier deadline; SKUA_TIME_NEVER disarms.
 *
 * @dma_map: pointer for reading @len bytes at bus address @iova, valid until the host calls
 *	wire_settle(). NULL: they are not in one piece, or not guest memory.
 * @dma_broken: number of times that memory returned by @dma_map was lost without notice (its
 *	file was truncated), after which reads do not return the guest's data. NULL: this
 *	does not happen.
 *
 * The device core calls @dma_read, @dma_write, @dma_map and @msix only while the function's
 * Bus Master Enable bit is set; it checks that itself.
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
 * @full: true: a frame to @dmac has to wait for the call of skua_dev_room(). The rest of a
 *	message may be sent all the same. NULL: there is always room.
 * @direct: may packets to @dmac be sent as a train now? NULL: there are no trains.
 * @send_train: send the packets of a train (roce/pkt.h). @head has the headers of the first
 *	packet, in a buffer of at least SKUA_PKT_HDR_MAX bytes, and @len is the length of
 *	that packet. The payload does not change until skua_dev_train_done().
 * @settle: copy the payload of trains in flight: it may change after the return.
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
 * struct skua_dev_cfg - configuration of one function
 * @mac: permanent address
 * @serial: PCIe device serial number, also the node GUID's source
 * @onchip: bytes of on-chip memory (0: the default); if it is too small the device uses the
 *	minimum with which it can work
 * @whole: contexts are cached as a whole instead of by sectors, for comparison
 * @onload: SKUA_CAP_RECOVERY: software may keep the loss state of QPs
 * @msix_vectors: MSI-X table size (0: the default)
 * @turn_ns: time (of @now) after which a call of skua_dev_run() or skua_dev_tick() begins no
 *	further work. 0: only the amount of work is limited, as it is under virtual time.
 * @push_segs: longest WQE, in segments, that software is told to push
 * @hot_looks: number of reads of a doorbell record without a new index, in a row, after which
 *	software has to ring the doorbell again (0: the default)
 * @log_objects: logarithm of the entries that the device offers of each ICM table, of the MTT 16
 *	times as many (0: as many as it can)
 * @caps_off: SKUA_CAP_* that the device does not have
 * @log: called for log messages (may be NULL); @level 0 error,
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
	uint8_t log_objects;
	uint64_t caps_off;
	void (*log)(void *log_priv, int level, const char *msg);
	void *log_priv;
};

enum skua_reset_kind {
	SKUA_RESET_POWER,	/* as made; also secondary bus and system reset */
	SKUA_RESET_FLR,		/* function level reset */
};

/* Create, reset, destroy. skua_dev_create() returns NULL and sets errno on failure. */
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
/* True: the write has reset the function; state of it in the host side is invalid. */
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
 * Receive a frame from the wire. @icrc_pending: it was sent by skua_wire_ops.send_pending and its
 * ICRC was not written, so it is not checked; the device may write it.
 * True: the frame was not handled completely, and has to be given again before any other frame,
 * after the turns of other functions. Some frames are reported to software only by the next
 * skua_dev_run(), which has to be called when there are no more frames.
 */
bool skua_dev_rx(struct skua_dev *dev, void *frame, size_t len, bool icrc_pending);
/* A hint: this frame is received next. */
void skua_dev_rx_soon(struct skua_dev *dev, const void *frame, size_t len);
/*
 * Receive a train from the wire: the headers of the first packet, and its length. False: the
 * packets have to be given one by one.
 */
bool skua_dev_rx_train(struct skua_dev *dev, void *head, size_t len,
		       const struct skua_train *train);
/* A train that the device has sent was delivered, or its payload was copied. */
void skua_dev_train_done(struct skua_dev *dev, const struct skua_train *train);
/* The timer's call. */
void skua_dev_tick(struct skua_dev *dev);

/* The wire may have room again: the next skua_dev_run() tries to send. */
void skua_dev_room(struct skua_dev *dev);

/* Link of the wire: the port's physical state follows it. Up when created. */
void skua_dev_link(struct skua_dev *dev, bool up);

/*
 * Do a bounded amount of queued work (commands, events, send queues, doorbell records).
 * Returns true while there is more: call again, after looking at other sources.
 */
bool skua_dev_run(struct skua_dev *dev);
/*
 * Has the last skua_dev_run() only read doorbell records, without finding a new index? It has to
 * be called again all the same; after a number of calls it stops reading records.
 */
bool skua_dev_only_looks(const struct skua_dev *dev);
/* Before a sleep of the host: stop reading records now. True: work was found. */
bool skua_dev_rest(struct skua_dev *dev);
/* Number of new producer indices found in doorbell records so far. */
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
