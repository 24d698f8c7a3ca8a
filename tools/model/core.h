/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internal to the device core: the device structure, and the functions that its files share.
 * Its interface to the rest of the model is model.h.
 *
 * Conventions: functions return 0 or a positive code, of skua_cmd_status for commands, else as
 * said at the function (skua_vendor, skua_cqe_status); nothing here blocks. Contexts are
 * used in place, little-endian, through bits.h.
 */
#ifndef SKUA_MODEL_CORE_H
#define SKUA_MODEL_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include <skua/bits.h>
#include <skua/hw/pci.h>
#include <skua/hw/regs.h>
#include <skua/hw/doorbell.h>
#include <skua/hw/wqe.h>
#include <skua/hw/cqe.h>
#include <skua/hw/eqe.h>
#include <skua/hw/icm.h>
#include <skua/hw/queue.h>
#include <skua/hw/steer.h>
#include <skua/hw/cmd.h>
#include <skua/hw/counters.h>

#include "model.h"
#include "pci.h"
#include "tlp.h"

/* Limits of the device. */
#define MODEL_LOG_QP		17	/* QPs (SQC, RQC, RRC), index part of a QPN */
#define MODEL_LOG_CQ		17
#define MODEL_LOG_SRQ		16
#define MODEL_LOG_EQ		7
#define MODEL_LOG_MPT		20
#define MODEL_LOG_MTT		27
#define MODEL_LOG_MTT_OBJECT	4	/* MTT entries for each object, if these are limited */
#define MODEL_LOG_GID		8
#define MODEL_LOG_FLOW		12
#define MODEL_LOG_MCG		12
#define MODEL_LOG_RSS		7
#define MODEL_LOG_CNT		10
#define MODEL_LOG_SQ_MAX	16	/* blocks */
#define MODEL_LOG_RQ_MAX	15	/* WQEs */
#define MODEL_LOG_RQ_STRIDE_MAX	5	/* segments: 32 */
#define MODEL_LOG_CQ_MAX	20
#define MODEL_LOG_EQ_MAX	16
#define MODEL_MAX_RD_ATOMIC	16
#define MODEL_MAX_MTU		9216	/* Ethernet payload */
#define MODEL_MAX_FRAME		(MODEL_MAX_MTU + 18)
#define MODEL_MAX_INLINE	512
#define MODEL_CLOCK_KHZ		1000000	/* the device clock counts nanoseconds */
#define MODEL_LOG_MR_LEN	63
#define MODEL_LOG_PAGE_MIN	12
#define MODEL_LOG_PAGE_MAX	31
#define MODEL_LOG_DIR_MAX	48	/* what an entry of a directory covers */
#define MODEL_REG_PAGES		(1 << 16)	/* of a FAST_REG region */
#define MODEL_LOG_MSG		31
#define MODEL_PKEYS		1	/* the default P_Key, index 0 */
#define MODEL_SPEED_MBPS	100000
/* Default limits of a QP's turn. */
#define MODEL_TURN_WQES		8
#define MODEL_TURN_BYTES	(16 << 10)
#define MODEL_LOCALS		512	/* WQEs without packets, done ahead of what they wait for */
#define MODEL_RATE_MIN		8	/* kbit/s: a byte in a millisecond */
#define MODEL_RATE_MAX		(MODEL_SPEED_MBPS * 1000)
#define MODEL_RATE_BURST_MAX	(1u << 30)

/* The first byte of an access whose page is missing; key and address are the region's. */
struct mr_miss {
	uint64_t va;
	uint32_t key;
	uint32_t len;		/* bytes wanted from there on */
	bool write;
};

enum dev_state { DEV_READY, DEV_RING, DEV_OPERATIONAL, DEV_FATAL };

struct icm;		/* icm.c, cache.c */
struct cmdq;		/* cmd.c */
struct cmd_faults;	/* cmd_fault.c: rules of faults that commands suffer */
struct uar_latches;	/* db.c */
struct push;		/* push.c: push slots, and WQEs that came by them */
struct port;		/* port.c: link, GID and steering lookup, loopback queue */
struct events;		/* eq.c: what waits for room in an EQ */
struct sched;		/* sched.c: ready queue */
struct hot;		/* hot.c: send queues whose doorbell records are looked at */
struct timers;		/* timer.c */
struct cc;		/* roce/cc.c: congestion control */
struct engine;		/* roce/: buffers, shared cache of WQEs under way */

/**
 * struct skua_dev - one function
 *
 * @caps: SKUA_CAP_* of this device
 * @heartbeat: the last value read; it does not change any more when the device is FATAL
 * @turn_end: end of the present turn, 0: its time is not limited
 * @only_looks: the only work left by the last round is to look at doorbell records
 * @cnt: counters, host order: dev->cnt[SKUA_CNT_...]++; those of TLPs as tlp_counters() left them
 * @tlp: transactions on the link
 * @cmd_eqn, @async_eqn, @fault_eqn, @recovery_eqn: from MODIFY_DEVICE
 */
/* Completions that one memory write of the link takes. */
#define CQ_BATCH	4

/**
 * struct cq_batch - completions that are written together
 * @on: between cq_batch_begin() and cq_batch_end()
 * @failed: some of them could not be written
 * @cqc: their CQ, pinned
 * @num: number of them, 0: @cqc is not set
 * @off: offset of the first one in the ring
 * @stamp: time stamp of all of them
 * @cqe: the completions
 */
struct cq_batch {
	bool on, failed;
	struct skua_cqc *cqc;
	unsigned int num;
	uint64_t off;
	__le64 stamp;
	struct skua_cqe cqe[CQ_BATCH];
};

struct skua_dev {
	struct skua_dev_cfg cfg;
	const struct skua_host_ops *host;
	void *host_priv;
	const struct skua_wire_ops *wire;
	void *wire_priv;

	struct skua_pci pci;
	enum dev_state state;
	enum skua_fatal fatal;
	uint32_t heartbeat;
	uint64_t caps;
	uint32_t uar_shift;
	struct {
		uint64_t cmdq_base;
		uint32_t cmdq_log_size;
		uint32_t cmdq_ctrl;
	} regs;			/* as written, before the ring is on */
	bool roce;
	uint32_t turn_wqes, turn_bytes;
	uint32_t cmd_eqn, async_eqn, fault_eqn, recovery_eqn;
	uint64_t turn_end;
	bool only_looks;

	uint64_t cnt[SKUA_CNT_COUNT];
	struct tlp_acct tlp;
	uint32_t srq_lives;	/* SRQs made so far */

	struct icm *icm;
	struct cmdq *cmdq;
	struct cmd_faults *cmd_faults;
	struct uar_latches *latches;
	struct push *push;
	struct port *port;
	struct events *events;
	struct sched *sched;
	struct hot *hot;
	struct timers *timers;
	struct engine *engine;
	struct cc *cc;
	struct mr_miss miss;	/* with SKUA_VENDOR_MISS */
	struct cq_batch batch;
	uint8_t *dm;		/* device memory, SKUA_BAR_DM_SIZE bytes; NULL without */
};

/*
 * Functions of the parts. init: once, when the device is created; allocates all memory of the
 * part; 0 or -ENOMEM. reset: back to the state after init, on every kind of device reset; never
 * called while another part works. exit: frees the part; also called if init failed or was not
 * called.
 *
 * TEARDOWN_DEVICE resets the parts that work for an operational device, too. It is a command: it
 * leaves the command queue, and what is there before INIT_DEVICE.
 */
#define MODEL_PARTS_RING(X)							\
	X(tlp)		/* tlp.c */						\
	X(icm)		/* icm.c */						\
	X(cmdq)		/* cmd.c */						\
	X(cmd_fault)	/* cmd_fault.c */
#define MODEL_PARTS_OPERATIONAL(X)						\
	X(dm)		/* dm.c */						\
	X(db)		/* db.c */						\
	X(push)		/* push.c */						\
	X(timer)	/* timer.c */						\
	X(eq)		/* eq.c */						\
	X(port)		/* port.c */						\
	X(sched)	/* sched.c */						\
	X(hot)		/* hot.c */						\
	X(engine)	/* roce/ */						\
	X(cc)		/* roce/cc.c */
#define MODEL_PARTS(X)	MODEL_PARTS_RING(X) MODEL_PARTS_OPERATIONAL(X)

struct skua_train;

#define X(part)									\
	int part##_init(struct skua_dev *dev);					\
	void part##_reset(struct skua_dev *dev);				\
	void part##_exit(struct skua_dev *dev);
MODEL_PARTS(X)
#undef X

/* --- dev.c --- */
void dev_log(struct skua_dev *dev, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Write the reason why a user's text is refused to the answer; returns -EINVAL. */
int answer_err(char *answer, size_t room, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static inline uint64_t dev_now(struct skua_dev *dev)
{
	return dev->host->now(dev->host_priv);
}
/* Is the time of the turn over? The remaining work then waits for the next one. */
static inline bool dev_turn_over(struct skua_dev *dev)
{
	return dev->turn_end && dev_now(dev) >= dev->turn_end;
}
/*
 * Fatal error: set the status register, write the fatal EQE. After that all DMA fails, so that
 * the callers return with errors, and the device does no work any more.
 */
void dev_fatal(struct skua_dev *dev, enum skua_fatal why);
uint32_t dev_heartbeat(struct skua_dev *dev);
/* CTRL_RESET: reset everything except configuration space and counters. */
void dev_hw_reset(struct skua_dev *dev);
/* Clear the device's references to EQs. */
void dev_quiesce(struct skua_dev *dev);
static inline bool dev_has(const struct skua_dev *dev, uint64_t cap)
{
	return (dev->caps & cap) == cap;
}
/* Number of UAR pages at the configured page size. */
static inline uint32_t dev_uars(const struct skua_dev *dev)
{
	return SKUA_BAR_UAR_SIZE >> dev->uar_shift;
}

/* --- dma.c: the one function that reads and the one that writes guest memory.
 * They check Bus Master Enable, count TLPs (MPS 256, MRRS 512, RCB 64) by what they are
 * for, and DMA_ERR. 0 or -EFAULT.
 */
int dma_read(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, void *buf, size_t len);
int dma_write(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, const void *buf,
	      size_t len);
/* Pointer to the range in host memory, NULL: not in one piece. No TLP is counted. */
const void *dma_map(struct skua_dev *dev, uint64_t iova, size_t len);
/* A train's payload counts as read: as if packet by packet. */
void dma_count_train(struct skua_dev *dev, const struct skua_train *t);
/* Write its bytes [@off, @off + @len), counted likewise. */
int dma_write_train(struct skua_dev *dev, uint64_t iova, const struct skua_train *t, uint32_t off,
		    uint32_t len);
/*
 * The same for a queue element whose last 8 bytes, naturally aligned, are to become
 * visible after the others, by one atomic store. One memory write on the link.
 */
int dma_write_elem(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, const void *buf,
		   size_t len);
/*
 * @num of them, of @size bytes each, one behind the other: those behind the first one are
 * visible when that is.
 */
int dma_write_elems(struct skua_dev *dev, enum tlp_purpose purpose, uint64_t iova, const void *buf,
		    size_t size, unsigned int num);
/*
 * Full barrier: earlier writes are visible to the guest's processors before later reads, as on
 * PCI Express, where a read pushes earlier writes ahead of it.
 */
void dma_order(struct skua_dev *dev);
void dma_msix(struct skua_dev *dev, unsigned int vector);
/* Count another function's accesses of device memory as TLPs of this function. */
void dma_count_peer_read(struct skua_dev *dev, uint64_t addr, size_t len);
void dma_count_peer_write(struct skua_dev *dev, uint64_t addr, size_t len);

/* --- onchip.c: memory on the chip --- */

/* On-chip memory of a part of the device: number of its objects, and their bytes in total. */
struct onchip {
	uint64_t num;
	uint64_t bytes;
};

/* X(part, text): each has a function of its own. Contexts are not among them. */
#define ONCHIP_PARTS(X)								\
	X(mtt, "mtt-lines")		/* cache.c */				\
	X(obj, "objects")		/* icm.c: which there are */		\
	X(sched, "scheduler")		/* sched.c */				\
	X(timer, "timers")		/* timer.c */				\
	X(hot, "records-looked-at")	/* hot.c */				\
	X(push, "push")			/* push.c */				\
	X(eq, "events")			/* eq.c: what waits for room */		\
	X(steer, "steering")		/* port.c: rules, groups, addresses */	\
	X(flight, "messages")		/* roce/: under way */			\
	X(rlist, "lists")		/* roce/: scatter lists in use */	\
	X(walk, "walks")		/* roce/: ends of walks along these */	\
	X(cc, "congestion")		/* roce/: parameters, CNPs sent */
#define X(part, text) struct onchip part##_onchip(const struct skua_dev *dev);
ONCHIP_PARTS(X)
#undef X
struct onchip frames_onchip(const struct skua_dev *dev);
/* Size of the on-chip memory; bytes used by all parts except contexts; by all parts. */
uint64_t onchip_size(const struct skua_dev *dev);
uint64_t onchip_others(const struct skua_dev *dev);
uint64_t onchip_used(const struct skua_dev *dev);

/* --- icm.c, cache.c --- */

/* Number of entries of a table, set by INIT_DEVICE; 0 before that. */
uint64_t icm_num(const struct skua_dev *dev, enum skua_icm_table table);
/* Is the page of this entry mapped? */
bool icm_mapped(const struct skua_dev *dev, enum skua_icm_table table, uint64_t index);

/*
 * Which objects exist, one bit for each entry of a table, and how many others
 * name each. On the chip, so that a number out of a packet or a doorbell costs no
 * access to ICM, and so that memory of the host alone cannot make an object.
 */
bool obj_valid(const struct skua_dev *dev, enum skua_icm_table table, uint64_t index);
void obj_set(struct skua_dev *dev, enum skua_icm_table table, uint32_t index, bool valid);
void obj_ref(struct skua_dev *dev, enum skua_icm_table table, uint32_t index, int by);
uint32_t obj_refs(const struct skua_dev *dev, enum skua_icm_table table, uint32_t index);

/**
 * ctx_get() - pin a context in the cache, fetching it if need be
 *
 * Returns it, to be used in place, or NULL if @index is outside of the table,
 * its page is not mapped, or it could not be read (the device is FATAL then).
 * Pins nest. Every pin is dropped before control returns to the event loop.
 *
 * A context fetched from ICM may have been changed by the host, which must not
 * but can. What the create command checked is checked again by the fetch
 * (a contradiction is SKUA_FATAL_ICM_CORRUPT); of all else, the engine's words
 * among it, the user must not believe any value that it has not bounded.
 */
void *ctx_get(struct skua_dev *dev, enum skua_icm_table table, uint32_t index);
/*
 * The same, with no more than these sectors of 64 bytes (BIT(n): the n-th): the rest must
 * not be touched, unless ctx_need() has brought it. False from that: as NULL.
 */
void *ctx_get_part(struct skua_dev *dev, enum skua_icm_table table, uint32_t index,
		   uint32_t sectors);
bool ctx_need(struct skua_dev *dev, void *ctx);
/* A hint: the context is needed soon, so that the host may load what is cached of it. */
void ctx_prefetch(const struct skua_dev *dev, enum skua_icm_table table, uint32_t index);
/* The same for an entry that begins its life: all zero, dirty, ICM is not read. */
void *ctx_new(struct skua_dev *dev, enum skua_icm_table table, uint32_t index);
void ctx_put(struct skua_dev *dev, void *ctx);
/* The context was changed: it will be written back before it is evicted. */
void ctx_dirty(struct skua_dev *dev, void *ctx);
/* Only in these sectors. */
void ctx_dirty_part(struct skua_dev *dev, void *ctx, uint32_t sectors);
/* Write it back now if it is cached and dirty: QUERY commands. */
void ctx_flush(struct skua_dev *dev, enum skua_icm_table table, uint32_t index);

/* One MTT entry by index, through its cache of lines. 0 or -1. */
int mtt_get(struct skua_dev *dev, uint64_t index, uint64_t *entry);
/* Write entries and drop them from the cache. 0 or -1. */
int mtt_put(struct skua_dev *dev, uint64_t index, const __le64 *entry, uint32_t count);

/* --- dm.c: device memory --- */
/* Is [@off, @off + @len) in device memory? */
bool dm_ok(const struct skua_dev *dev, uint64_t off, uint64_t len);
/* For ranges that do. */
void dm_read(struct skua_dev *dev, uint64_t off, void *buf, size_t len);
void dm_write(struct skua_dev *dev, uint64_t off, const void *buf, size_t len);

/* --- mr.c: keys and translation --- */

/* Identity and rights of an access, for mr_read() and mr_write(). */
struct mr_who {
	uint32_t pd;
	uint32_t qpn;
	bool reserved_lkey;	/* SKUA_RESERVED_LKEY allowed */
	uint32_t access;	/* SKUA_ACCESS_* needed; 0: local read */
	bool remote;		/* @key is an rkey */
	bool may_wait;		/* for a page that is missing */
	uint64_t want;		/* bytes that will be accessed there, if more than now */
	bool in_order;		/* a message's bytes are written in order: integrity regions */
};

/*
 * A page of an on-demand region is missing, and nothing was done; dev->miss has the address.
 * Returned to callers that can wait for the page; others get KEY_FAULT.
 */
#define SKUA_VENDOR_MISS	((enum skua_vendor)0x100)
/* The wire has no room (port_tx_full()), and nothing was done. */
#define SKUA_VENDOR_FULL	((enum skua_vendor)0x101)

/**
 * mr_check() - may @who access [@va, @va + @len) through @key?
 *
 * Returns SKUA_VENDOR_NONE or SKUA_VENDOR_KEY_*. A zero length access of a
 * remote key is not checked (IBTA 9.7.4.1.3), of a local key neither.
 */
enum skua_vendor mr_check(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			  uint64_t va, uint64_t len);
/* Likewise for a local key; *@own is cleared if its region is not SKUA_MPT_OWN_VA. */
enum skua_vendor mr_check_own(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			      uint64_t va, uint64_t len, bool *own);

/**
 * struct mr_part - a part of the memory that a request accesses
 * @key: remote or local key
 * @va: address of what the request accesses
 * @len: bytes of that
 * @off: where in it the part begins
 * @bytes: of the part
 */
struct mr_part {
	uint32_t key;
	uint64_t va, len;
	uint64_t off;
	uint32_t bytes;
};

/* mr_check() of the whole, and are the pages of the part present for that? */
enum skua_vendor mr_probe(struct skua_dev *dev, const struct mr_who *who,
			  const struct mr_part *part);
/* mr_check() of the whole, and mr_write() of the part. */
enum skua_vendor mr_write_part(struct skua_dev *dev, const struct mr_who *who,
			       const struct mr_part *part, const void *buf);
/* Check and copy. SKUA_VENDOR_NONE, SKUA_VENDOR_KEY_*, or SKUA_VENDOR_MISS. */
enum skua_vendor mr_read(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			 uint64_t va, void *buf, uint32_t len);
enum skua_vendor mr_write(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			  uint64_t va, const void *buf, uint32_t len);
/*
 * Append the location of the bytes [@va, @va + @len) of a local key to a train's pieces. Returns
 * the number of bytes: fewer if there are too many pieces, if they are not all in guest memory,
 * or if the access would fail, for a reason that mr_read() returns.
 */
uint32_t mr_pieces(struct skua_dev *dev, const struct mr_who *who, uint32_t key, uint64_t va,
		   uint32_t len, struct skua_train *t);
/*
 * mr_write() of a train's bytes [@off, @off + @len). SKUA_VENDOR_MISS also where this is not
 * for trains. After any failure the packets may be written one by one.
 */
enum skua_vendor mr_write_train(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
				uint64_t va, const struct skua_train *t, uint32_t off,
				uint32_t len);
/* Check the access and change 8 bytes atomically; *@old is their original value. */
enum skua_vendor mr_atomic(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			   uint64_t va, uint64_t (*change)(uint64_t val, const void *arg),
			   const void *arg, uint64_t *old);
/* FLUSH: check the access, or with @whole that of the whole region; then writes are complete. */
enum skua_vendor mr_flush(struct skua_dev *dev, const struct mr_who *who, uint32_t key,
			  uint64_t va, uint64_t len, bool whole);

/* --- key.c: keys changed by work requests. SKUA_VENDOR_NONE or SKUA_VENDOR_KEY_*:
 * then nothing was changed.
 */
enum skua_vendor key_register(struct skua_dev *dev, const struct mr_who *who,
			      const struct skua_wqe_reg *reg);
enum skua_vendor key_bind(struct skua_dev *dev, const struct mr_who *who,
			  const struct skua_wqe_bind *bind);
/* LOCAL_INV, or the invalidation of a SEND_INV if @who is remote. */
enum skua_vendor key_invalidate(struct skua_dev *dev, const struct mr_who *who, uint32_t key);

/* --- ring.c: bytes of a ring described by a skua_xlat, wrapping at @size. 0 or -EFAULT. */
int ring_read(struct skua_dev *dev, enum tlp_purpose purpose, const struct skua_xlat *x,
	      uint64_t size, uint64_t off, void *buf, size_t len);
/* As dma_write_elem() does it; the element must not cross a page. */
int ring_write_elem(struct skua_dev *dev, enum tlp_purpose purpose, const struct skua_xlat *x,
		    uint64_t size, uint64_t off, const void *buf, size_t len);
/* Likewise @num elements; they must not cross a page, nor the end of the ring. */
int ring_write_elems(struct skua_dev *dev, enum tlp_purpose purpose, const struct skua_xlat *x,
		     uint64_t size, uint64_t off, const void *buf, size_t each, unsigned int num);
/* Is this a valid description of a ring of @size bytes? */
bool ring_ok(const struct skua_dev *dev, const struct skua_xlat *x, uint64_t size);

/* --- cq.c --- */

/**
 * cq_post() - write one completion
 * @cqe: everything but PHASE and timestamp, which are filled in here
 * @solicited: may fire a solicited-only arm (errors always do)
 *
 * Returns 0, or -1 if the CQ does not exist or is (now) in error: the caller
 * takes the QP to ERR with SKUA_QP_EV_FATAL. An overrun posts SKUA_EQE_CQ_ERR.
 */
int cq_post(struct skua_dev *dev, uint32_t cqn, struct skua_cqe *cqe, bool solicited);
/* One with SKUA_CQE_F_INLINE: @data are the byte_len bytes, not more than cq_room(). */
int cq_post_data(struct skua_dev *dev, uint32_t cqn, struct skua_cqe *cqe, bool solicited,
		 const void *data);
/*
 * Between the two calls successful completions of 64 bytes for one CQ that is not armed are
 * collected until they fill a memory write, and get one time stamp. False: they could not be
 * written and the CQ is in error; to be handled like a failure of cq_post().
 */
void cq_batch_begin(struct skua_dev *dev);
bool cq_batch_end(struct skua_dev *dev);
/* Number of payload bytes that fit in an entry of the CQ; 0: there is no such CQ. */
uint32_t cq_room(struct skua_dev *dev, uint32_t cqn);
/* A completion event of the CQ was written: it reports all completions so far. */
void cq_told(struct skua_dev *dev, struct skua_cqc *cqc);

/* --- eq.c: events; they coalesce in the contexts' pending words when an EQ is full. */
void qp_event(struct skua_dev *dev, struct skua_sqc *sqc, enum skua_qp_event ev);
void srq_event(struct skua_dev *dev, struct skua_srqc *srqc, enum skua_eqe_type type);
/* Report a page fault that is pending in its context; and withdraw it when it was resumed. */
void fault_event(struct skua_dev *dev, uint32_t qpn, bool responder);
/* Report a loss. 0, or a negative errno: the EQ is full, or there is none. */
int recovery_event(struct skua_dev *dev, const struct skua_eqe_recovery *e);
/* UAR page of the EQ that they go to; UINT32_MAX: there is none. */
uint32_t recovery_uar(struct skua_dev *dev);
void fault_event_forget(struct skua_dev *dev, uint32_t qpn, bool responder);
void port_event(struct skua_dev *dev);
/* A command completed with SKUA_CMD_F_EVENT. */
void cmd_event(struct skua_dev *dev, uint32_t token);
/* Write the completion event of an armed CQ. False: it is pending in @cqc. */
bool comp_event(struct skua_dev *dev, struct skua_cqc *cqc);
void cq_err_event(struct skua_dev *dev, struct skua_cqc *cqc, enum skua_cq_err err);
/* Drop the waiting events of an object that is destroyed. */
void cq_event_forget(struct skua_dev *dev, uint32_t cqn);
void qp_event_forget(struct skua_dev *dev, uint32_t qpn);
void srq_event_forget(struct skua_dev *dev, uint32_t srqn);
/* From dev_fatal(): the last EQE. */
void eq_fatal(struct skua_dev *dev, enum skua_fatal why);
/* MODIFY_DEVICE has changed the EQs: try to write the waiting events. */
void eq_kick(struct skua_dev *dev);
/* Go on with events that wait, a limited number of them. True: call again. */
bool eq_run(struct skua_dev *dev);

/* Doorbells (db.c found the page): consumer index @lo, second word @hi. */
void eq_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi);
/* Of a QP's recovery ring, roce/sr_onload.c. */
void recovery_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi);
void cq_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi);
/* @pushed: segments of a pushed WQE, else NULL. */
void sq_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi,
		 const void *pushed);
/* BAR 2. */
void db_write(struct skua_dev *dev, uint64_t off, const void *buf, size_t len);

/* --- push.c --- */
/* BAR 2: a store to a push slot, which is counted when the slot acts. False: it is none. */
bool push_write(struct skua_dev *dev, uint64_t off, const void *buf, size_t len);
/* The QP's next WQE, @raw of SKUA_PUSH_SEGS segments, is at block @index. */
void push_put(struct skua_dev *dev, uint32_t qpn, uint32_t index, const void *raw);
/* Take the WQE at @index, if it was pushed; any other pushed WQE of the QP is dropped. */
const void *push_take(struct skua_dev *dev, uint32_t qpn, uint32_t index, size_t *nbytes);
void push_forget(struct skua_dev *dev, uint32_t qpn);

/* --- cmd.c --- */
/* The registers that make the ring, and its doorbell; bar.c knows when. */
void cmdq_enable(struct skua_dev *dev, uint64_t base, uint32_t log_size);
void cmdq_doorbell(struct skua_dev *dev, uint32_t token);
bool cmdq_run(struct skua_dev *dev);

/* --- counter.c: counter sets; 0 is none --- */
/* @counter of the set rises; nothing if there is no such set, or if sets do not keep it. */
void set_count(struct skua_dev *dev, uint32_t index, enum skua_counter counter, uint64_t by);
bool set_ok(const struct skua_dev *dev, uint32_t index);
void set_ref(struct skua_dev *dev, uint32_t index, int by);
/* From now on the QP counts in set @index, 0: in none. */
static inline void sqc_count_in(struct skua_sqc *sqc, __le32 index)
{
	sqc->counter = index;
	sqc->valid &= ~cpu_to_le32(SKUA_SQC_COUNTED);
	sqc->valid |= cpu_to_le32(index ? SKUA_SQC_COUNTED : 0);
}

/* Count an event of a QP, for the device and in the QP's counter set. */
static inline void qp_count(struct skua_dev *dev, const struct skua_sqc *sqc,
			    enum skua_counter counter, uint64_t by)
{
	dev->cnt[counter] += by;
	if (le32_to_cpu(sqc->valid) & SKUA_SQC_COUNTED)
		set_count(dev, le32_to_cpu(sqc->counter), counter, by);
}

/* --- qp.c: QP commands and state --- */

/*
 * A pinned QP: the context of the send queue, which has attributes and state, and that of the
 * receive queue where it is needed, else NULL. Only one QP is pinned at a time, to which the
 * TLPs are counted.
 */
struct qp {
	uint32_t qpn;		/* with variant bits */
	struct skua_sqc *sqc;
	struct skua_rqc *rqc;
};
/* By full QPN, both halves, all of them: 0, or -1 if there is no such QP. Drop with qp_put(). */
int qp_get(struct skua_dev *dev, uint32_t qpn, struct qp *qp);
/* By index, whatever the variant. */
int qp_get_index(struct skua_dev *dev, uint32_t index, struct qp *qp);
/* The send queue's half alone; its cold words only if its state needs them. */
int qp_get_sq(struct skua_dev *dev, uint32_t qpn, struct qp *qp);
/* The QP of a doorbell whose high half is @hi; false: there is none, which was counted. */
bool qp_get_db(struct skua_dev *dev, uint32_t hi, struct qp *qp);
int qp_get_sq_index(struct skua_dev *dev, uint32_t index, struct qp *qp);
/*
 * Pin the hot words of the receive queue's half, too. False: they cannot be read, the device is
 * FATAL.
 */
bool qp_need_rq(struct skua_dev *dev, struct qp *qp);
/* All words of both halves. */
bool qp_need_all(struct skua_dev *dev, struct qp *qp);
static inline uint32_t qp_index(uint32_t qpn)
{
	return qpn & GENMASK(MODEL_LOG_QP - 1, 0);
}

/* Has the QP switched off these vendor operations (SKUA_VENDOR_*)? */
bool qp_without(struct skua_dev *dev, struct skua_sqc *sqc, uint32_t ops);

/* Mark the pinned halves as changed. */
void qp_dirty(struct skua_dev *dev, struct qp *qp);
void qp_put(struct skua_dev *dev, struct qp *qp);
enum skua_qp_type qp_type(const struct qp *qp);
enum skua_qp_state qp_state(const struct qp *qp);
/* In error: work requests are flushed, at least those for sending, and none is sent. */
bool qp_flushes(const struct qp *qp);
/* UD or GSI: no peer of its own, each packet is a message. */
bool qp_is_datagram(const struct qp *qp);
/*
 * Take a QP to @state (SQE or ERR) from inside: both copies of the state, the
 * event if @ev is not SKUA_QP_EV_COUNT; then engine_flush() runs from sched.
 */
void qp_error(struct skua_dev *dev, struct qp *qp, enum skua_qp_state state,
	      enum skua_qp_event ev);
/* RoCE path MTU in bytes; datagram queues have the port's. */
uint32_t qp_mtu(const struct skua_dev *dev, const struct qp *qp);
/* IBTA code of the largest that the port's MTU leaves room for, 0: none. */
uint32_t qp_mtu_max(const struct skua_dev *dev);
/*
 * Is the path valid: an own address of the same family, and a next hop that fits the
 * destination? @multicast: the destination may be a group.
 */
bool qp_av_ok(struct skua_dev *dev, const struct skua_av *av, bool multicast);

/* Is @index a valid producer index now? The present one is valid, too. */
bool sq_index_ok(const struct skua_sqc *sqc, uint32_t index);

/*
 * Guarantees for sched.c and the engine: 0 <= sqc->pi - sqc->ci <= ring size, as
 * long as they only advance ci; other send doorbells are refused. qp.c kicks
 * a QP after every MODIFY_QP and qp_error() that leaves it out of RESET, after
 * engine_state(); into RESET and on destroy it calls sched_forget() and
 * timer_set(SKUA_TIME_NEVER) itself. RAW_ETH QPs have no engine: for them
 * sched_run() calls eth_sq_run(), which flushes as well.
 */

/* --- sched.c: QPs with work --- */
/* Put the QP into the ready queue: it may have WQEs to send or to flush. */
void sched_kick(struct skua_dev *dev, uint32_t qpn);
/*
 * Likewise for the responder. Until sched_resp_done() each turn pins the receive queue's half,
 * which other turns need not fetch.
 */
void sched_kick_resp(struct skua_dev *dev, uint32_t qpn);
bool sched_resp(const struct skua_dev *dev, uint32_t qpn);
void sched_resp_done(struct skua_dev *dev, uint32_t qpn);
/* Traffic classes of priorities, and shares of the classes, as in MODIFY_DEVICE. */
void sched_set_classes(struct skua_dev *dev, const uint8_t prio_tc[SKUA_PRIO_NUM],
		       const uint8_t tc_share[SKUA_TC_NUM]);
/* All priorities are in one class, as after a reset. */
void sched_one_class(struct skua_dev *dev);
/* The QP has this priority from now on; 0 after sched_forget(). */
void sched_set_prio(struct skua_dev *dev, uint32_t qpn, uint32_t prio);
/* Of a datagram queue: its priority is that of its next datagram, which a turn has to look at. */
void sched_next_unknown(struct skua_dev *dev, uint32_t qpn);
/*
 * In the QP's turn: this is the priority of the next datagram. False: that is of another class, in
 * which it has to wait for a turn.
 */
bool sched_turn_prio(struct skua_dev *dev, uint32_t qpn, uint32_t prio);
/* So many bytes of the QP are sent, in its turn or not. */
void sched_sent(struct skua_dev *dev, uint32_t qpn, uint64_t bytes);
/* Remove the QP from all lists (destroy, reset). */
void sched_forget(struct skua_dev *dev, uint32_t qpn);
/*
 * Called in a QP's turn: the QP is parked until the wire has room for @dmac. Until then it gets
 * no turn, even if it is kicked.
 */
void sched_park(struct skua_dev *dev, uint32_t qpn, const uint8_t dmac[6]);
/*
 * The QP has another state or path: it is ready, whether it has waited for the wire or not.
 * @flush: it is in error, and is only flushed.
 */
void sched_state(struct skua_dev *dev, uint32_t qpn, bool flush);
/* The wire may have room again. */
void sched_room(struct skua_dev *dev);
/* Is it in the ready queue? */
bool sched_ready(const struct skua_dev *dev, uint32_t index);
/* Run one round. True: there are ready QPs left. */
bool sched_run(struct skua_dev *dev);

/* --- hot.c: doorbell suppression --- */
/* A doorbell brought the QP a new producer index. */
void hot_doorbell(struct skua_dev *dev, const struct qp *qp);
/* The QP had a turn, and has no more work now. */
void hot_turn(struct skua_dev *dev, struct qp *qp);
/*
 * Look at the record of this one QP now, if its software may have left out the doorbell. If that
 * fails the QP goes to ERR.
 */
void hot_look(struct skua_dev *dev, struct qp *qp);
/* Stop looking at the QP's record (destroy, reset). */
void hot_forget(struct skua_dev *dev, uint32_t qpn);
/* Look at the records of those in the list, once; true while there are any. */
bool hot_run(struct skua_dev *dev);
/* Make all queues cold. True: some of their records had new indices. */
bool hot_rest(struct skua_dev *dev);
/* For tests: may its software leave out doorbells, and how many looks found nothing? */
bool hot_place(const struct skua_dev *dev, uint32_t qpn, uint32_t *misses);

/* --- timer.c: one deadline for each QP, in ns of dev_now(); the earliest of the
 * device goes to host->timer(). Expiry calls engine_timer().
 */
void timer_set(struct skua_dev *dev, uint32_t qpn, uint64_t deadline);
/* Set the deadline unless the present one is earlier. */
void timer_at_latest(struct skua_dev *dev, uint32_t qpn, uint64_t deadline);
/* A moderation or other timer: calls fn(dev, arg) once at @deadline. */
int timer_call(struct skua_dev *dev, uint64_t deadline, void (*fn)(struct skua_dev *, uint32_t),
	       uint32_t arg);
/* Moderation of a CQ and an EQ; expiry calls cq_timer(), eq_timer(). */
void timer_set_cq(struct skua_dev *dev, uint32_t cqn, uint64_t deadline);
void timer_set_eq(struct skua_dev *dev, uint32_t eqn, uint64_t deadline);
void cq_timer(struct skua_dev *dev, uint32_t cqn);
void eq_timer(struct skua_dev *dev, uint32_t eqn);
/* The host's timer has expired. */
void timer_rang(struct skua_dev *dev);
/* Handle a limited number of deadlines that are due; set the host's timer. */
void timer_run(struct skua_dev *dev);
void timer_sync(struct skua_dev *dev);

/* --- wqe.c: send and receive WQEs, fetched once and validated --- */

#define WQE_MAX_SGE	(SKUA_WQE_MAX_SEGS - 1)
/* Blocks that one fetch reads: a turn's worth. */
#define WQE_WIN_BLOCKS	8

/* An element of a gather or scatter list. */
struct sge {
	uint64_t addr;
	uint32_t lkey;
	uint32_t len;
};

/* A send WQE in host order. */
struct wqe {
	uint32_t index;		/* block where it starts, free running */
	uint32_t blocks;
	enum skua_wqe_op op;
	uint32_t flags;
	uint32_t imm;		/* as in memory (big-endian bits) or key, host order of le32 */
	uint32_t eth;
	uint64_t va;
	uint32_t rkey;
	uint32_t flush;
	uint64_t swap_add, compare, swap_add_mask, compare_mask;
	union {			/* as they lie in memory */
		struct skua_wqe_bind bind;
		struct skua_wqe_reg reg;
	};
	struct skua_av av;
	uint32_t dest_qpn, qkey;
	uint32_t nsge;
	struct sge sge[WQE_MAX_SGE];
	uint64_t len;		/* total payload */
	uint8_t inl[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK];	/* inline payload */
	uint32_t inl_len;
};
/*
 * Decode @nbytes of a WQE at block @index; pure, for tests and fuzzers.
 * SKUA_VENDOR_NONE or SKUA_VENDOR_WQE_*; *blocks is then still right when the
 * control segment could be read.
 */
enum skua_vendor wqe_decode(const void *raw, size_t nbytes, uint32_t index,
			    enum skua_qp_type type, struct wqe *out);
/*
 * A part of the send ring, read by one DMA; initialized with @blocks 0. Valid for one turn only:
 * its contents were read once, and are validated by each decoding.
 * @most: blocks that one fetch reads if no WQE is longer, 0: WQE_WIN_BLOCKS.
 */
struct wqe_win {
	uint32_t start;
	uint32_t blocks;
	uint32_t most;
	uint8_t raw[SKUA_WQE_MAX_BLOCKS * SKUA_WQE_BLOCK] __attribute__((aligned(8)));
};
/*
 * Fetch and decode the WQE at block @index of the QP's ring, which must not reach
 * past the producer index; capabilities and the QP's limits are checked as well.
 */
enum skua_vendor wqe_fetch_win(struct skua_dev *dev, struct qp *qp, struct wqe_win *win,
			       uint32_t index, struct wqe *out);
enum skua_vendor wqe_fetch(struct skua_dev *dev, struct qp *qp, uint32_t index, struct wqe *out);
/* Blocks of the WQE at @index if its control segment names that index, else 0. */
uint32_t wqe_blocks(struct skua_dev *dev, struct qp *qp, struct wqe_win *win, uint32_t index);

/* A receive WQE. */
struct rwqe {
	uint32_t index;		/* for the CQE */
	uint32_t nsge;
	struct sge sge[1 << MODEL_LOG_RQ_STRIDE_MAX];
	uint64_t len;
};
/*
 * The receive WQE at position @pos (free running) of the QP's RQ. rq_avail()
 * re-reads the doorbell record if none is known to be there.
 */
bool rq_avail(struct skua_dev *dev, struct qp *qp);
/* Number of receive WQEs, at least; the record is read again when there are few. */
uint32_t rq_count(struct skua_dev *dev, struct qp *qp);
/* Are there more than @n? */
bool rq_has(struct skua_dev *dev, struct qp *qp, uint32_t n);
enum skua_vendor rq_fetch(struct skua_dev *dev, struct qp *qp, uint32_t pos, struct rwqe *out);
/* The scatter list of @nseg data segments. SKUA_VENDOR_NONE or SKUA_VENDOR_SGE_LEN. */
enum skua_vendor rwqe_decode(const void *raw, uint32_t nseg, struct rwqe *out);

/* --- srq.c --- */
/* Pinned, or NULL if there is none. */
struct skua_srqc *srq_get(struct skua_dev *dev, uint32_t srqn);
/*
 * Take the next WQE: 0 and its position; -EAGAIN if there is none; -EIO if the SRQ is
 * in error, perhaps since now. May fire the limit event.
 */
int srq_take(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t *pos);
/*
 * Likewise for a message before its turn: -EAGAIN unless as many other WQEs remain as are held
 * for such messages, and @more.
 */
int srq_take_early(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t more, uint32_t *pos);
/* The WQE that it took last, since which nothing else was, is given back. */
void srq_early_undo(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t pos);
/* The turn of one of these messages has come, or it is flushed. */
void srq_early_done(struct skua_dev *dev, struct skua_srqc *srqc);
/* Read a WQE that was taken. SKUA_VENDOR_NONE, or the reason why it is invalid. */
enum skua_vendor srq_fetch(struct skua_dev *dev, struct skua_srqc *srqc, uint32_t pos,
			   struct rwqe *out);

/* --- port.c, eth.c --- */
/*
 * Send a RoCE packet made by skua_pkt_build_close(); it is looped back if it is for this device.
 * Its ICRC is written if it leaves the process, or if a capture or a fault sees it.
 */
void port_tx(struct skua_dev *dev, void *frame, size_t len);
/* Buffer for a packet of up to @size bytes, which need not be copied then; NULL: none. */
void *port_frame(struct skua_dev *dev, size_t size);
/* From a RAW_ETH queue; @loop: steering rules here may want a multicast frame as well. */
void port_tx_eth(struct skua_dev *dev, const void *frame, size_t len, bool loop);
/*
 * Complete the frames that are being merged. To be called after the delivery of frames, before
 * the device handles commands, doorbells or deadlines.
 */
void eth_rx_done(struct skua_dev *dev);
/* Is the loopback buffer half full? Then nothing more is sent in this round. */
bool port_tx_busy(const struct skua_dev *dev);
/* Has the wire no room for a frame to @dmac? Then its queue has to wait. */
bool port_tx_full(const struct skua_dev *dev, const uint8_t dmac[6]);
/* Deliver a bounded number of them; true while there are more. */
bool port_run(struct skua_dev *dev);
/* Are there any? */
bool port_pending(const struct skua_dev *dev);
/* Receive a frame from the wire. True: call again with the same frame. */
bool port_rx(struct skua_dev *dev, void *frame, size_t len, bool icrc_pending);
/* Receive a train from the wire. False: its packets have to be given one by one. */
bool port_rx_train(struct skua_dev *dev, void *head, size_t len, const struct skua_train *train);
/* The frame that was to be given again will not be given any more. */
void port_rx_none(struct skua_dev *dev);
void port_link(struct skua_dev *dev, bool up);
/* Ethernet payload limit in force. */
uint32_t port_mtu(const struct skua_dev *dev);
/*
 * Members of a multicast group, by index: call with *pos = 0 first; false: no more.
 * Between calls members may come and go, the last one too.
 */
bool port_mcg_next(struct skua_dev *dev, const uint8_t gid[16], uint32_t *pos, uint32_t *qpn);
/* GID table: entry by index (NULL: none or cleared), index by address and VLAN (-1). */
const struct skua_gid *port_gid(struct skua_dev *dev, uint32_t index);
int port_gid_find(struct skua_dev *dev, const uint8_t gid[16], uint16_t vlan);
/* Can a train be sent to @dmac? Send a train. */
bool port_direct(const struct skua_dev *dev, const uint8_t dmac[6]);
void port_tx_train(struct skua_dev *dev, void *head, size_t len, const struct skua_train *train);
/* RAW_ETH send queue: do at most @budget frames; true while more. */
bool eth_sq_run(struct skua_dev *dev, struct qp *qp, unsigned int budget);

/* --- pace.c: send queues with a rate (SKUA_SQC_PACED: sqc->rate is not 0) --- */
/* Number of bytes that may be sent now; a packet is always sent whole. */
uint64_t pace_room(const struct skua_sqc *sqc, uint64_t now);
/* Account for bytes that were sent. */
void pace_charge(struct skua_sqc *sqc, uint64_t now, uint64_t bytes);
/* The QP has to wait for its rate: have a timer put it into the ready queue. */
void pace_wait(struct skua_dev *dev, struct qp *qp, uint64_t now);
/* Set the QP's timer again, if it waits, after the timer was used for another deadline. */
void pace_arm(struct skua_dev *dev, struct qp *qp);
/* MODIFY_QP changed the limit, or congestion control did. */
void pace_set(struct skua_dev *dev, struct qp *qp);

/* --- roce/: the engine --- */
struct roce_in;
/* A hint: this frame is received next. */
void roce_rx_soon(const struct skua_dev *dev, const void *frame, size_t len);
/*
 * A frame that port.c found to be RoCEv2 for one of our addresses, or for a group
 * with members here.
 */
void roce_rx(struct skua_dev *dev, struct roce_in *in);
/* Likewise for a train; @in is its first packet. False: give its packets one by one. */
bool roce_rx_train(struct skua_dev *dev, struct roce_in *in, const struct skua_train *train);
/* Is the payload's memory intact (see skua_host_ops.dma_broken)? */
bool train_intact(const struct skua_train *train);
/*
 * The memory of trains in flight may be reused after this: have their payload copied.
 */
void engine_settle(struct skua_dev *dev);
/* Continue the delivery of datagrams to large groups. True: there are more. */
bool roce_run(struct skua_dev *dev);
/* Size of the engine's buffers of whole packets. */
size_t engine_frame_bytes(void);
/* Is there no room for another one? A datagram of the device itself would be lost then. */
bool roce_groups_full(const struct skua_dev *dev);
/* From sched_run(): one turn of this QP. True: put it at the end of the queue again. */
bool engine_run(struct skua_dev *dev, struct qp *qp);
/* The QP's deadline passed. */
void engine_timer(struct skua_dev *dev, struct qp *qp);
/*
 * From qp.c, after the contexts hold the new attributes and state: set up or
 * tear down what the engine keeps in them (PSNs, retry counters, timers, flush).
 * Into RESET it comes before they are cleared, as does engine_destroy().
 */
void engine_state(struct skua_dev *dev, struct qp *qp, enum skua_qp_state from,
		  enum skua_qp_state to);
/*
 * Before SQE to RTS: is all of the send queue before the block @end flushed? That may take several
 * turns. What was posted behind it is left to run.
 */
bool engine_flushed(struct skua_dev *dev, struct qp *qp, uint32_t end);
/* The QP is going: forget transient state. */
void engine_destroy(struct skua_dev *dev, struct qp *qp);

/* --- roce/sr.c: selective repeat --- */
/* The attribute EXT by itself. */
bool sr_attr_ok(const struct skua_qp_attr *a);
/* INIT to RTR with EXT: a command's status. */
int sr_check(struct skua_dev *dev, const struct skua_cmd_modify_qp_in *in, const struct qp *qp);
/* @attr.ext was given: at INIT to RTR, once. */
void sr_apply(struct skua_sqc *sqc);
/* After sr_check(). False: the context cannot be had. */
bool sr_open(struct skua_dev *dev, struct qp *qp, const struct skua_cmd_modify_qp_in *in);
/* Into RESET, or destroyed. */
void sr_close(struct skua_dev *dev, struct qp *qp);

#endif /* SKUA_MODEL_CORE_H */
