/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * Objects of the Skua provider.
 */
#ifndef SKUA_PROVIDER_H
#define SKUA_PROVIDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <ccan/list.h>
#include <ccan/minmax.h>
#include <infiniband/driver.h>
#include <util/compiler.h>
#include <util/udma_barrier.h>
#include <util/util.h>

#include <skua/wqe_build.h>
#include <skua/cqe_parse.h>
#include <skua/sl.h>
#include <skua/hw/cmd.h>
#include <skua/hw/icm.h>
#include <skua/hw/pci.h>

#include "skua-abi.h"

/* A CQE has 16 bits for the WQE's index, so that a ring has at most 65536 entries. */
#define SKUA_RING_MAX		65536U

/* Bytes of a line of the processor's caches. */
#define SKUA_LINE		64

/* log2 of the bytes of a plain CQE, and of one with room for payload. */
#define SKUA_LOG_CQE		6
#define SKUA_LOG_CQE_LARGE	7

/**
 * struct skua_mem - memory that the device reads or writes
 * @addr: first byte, zeroed, not inherited over fork()
 * @len: bytes: whole pages, or a power of 2 that is less than a page
 * @slab: what it is a part of if it is less than a page, else NULL
 * @owner: parent domain whose allocator it comes from, NULL: mmap()
 * @type: enum skuadv_res_type that the allocator was given, if @owner is set
 */
struct skua_mem {
	void *addr;
	size_t len;
	struct skua_slab *slab;
	struct skua_pd *owner;
	uint64_t type;
};

struct skua_slab;

/**
 * struct skua_lock - a spinlock that is not taken in single-threaded objects
 * @held: a thread has it
 * @off: do not take it: the program has promised that one thread at a time uses the object
 *
 * Not a pthread_spinlock_t: that takes two calls through the PLT, which cost as much as an
 * empty poll, and for which the compiler must keep its values in callee-saved registers.
 */
struct skua_lock {
	atomic_bool held;
	bool off;
};

static inline void skua_lock_init(struct skua_lock *l, bool off)
{
	atomic_init(&l->held, false);
	l->off = off;
}

/* Take a lock that another thread has. lock.c */
void skua_lock_wait(struct skua_lock *l);

/* Returns false if another thread has it. */
static ALWAYS_INLINE inline bool skua_trylock(struct skua_lock *l)
{
	return l->off || !atomic_exchange_explicit(&l->held, true, memory_order_acquire);
}

static ALWAYS_INLINE inline void skua_lock(struct skua_lock *l)
{
	if (unlikely(!skua_trylock(l)))
		skua_lock_wait(l);
}

/* Of a lock that is known to be in use. */
static ALWAYS_INLINE inline void skua_unlock_taken(struct skua_lock *l)
{
	atomic_store_explicit(&l->held, false, memory_order_release);
}

static ALWAYS_INLINE inline void skua_unlock(struct skua_lock *l)
{
	if (likely(!l->off))
		skua_unlock_taken(l);
}

/* Sizes of chunks: 64 bytes to 32 KiB. */
#define SKUA_SLAB_SIZES		10

/**
 * struct skua_context - one opened device
 * @ibv_ctx: libibverbs' part
 * @uar: the process's UAR page, write only
 * @uar_size: its bytes
 * @push: the page for pushes, write-combining and write only, or NULL
 * @push_mutex: protects @push_pairs
 * @push_pairs: BIT(pair of slots) of those that are one QP's
 * @push_lock: of the slots that QPs share
 * @status: the driver's status page, read only
 * @page_size: bytes of a page of the system
 * @slab_lock: protects @slabs and what they have
 * @slabs: pages that are given out in chunks, by the size of these; with a free chunk first
 * @kick_lock: held by a kick, and while the indices of a QP return to 0
 * @scatter: SKUA_CREATE_QP_SCATTER_*: whose payload may come in CQEs
 * @log_cqe: log2 of the bytes of a CQE, unless the program says otherwise
 * @lim: limits and capabilities, as reported by the driver
 */
struct skua_context {
	struct verbs_context ibv_ctx;
	void *uar;
	size_t uar_size;
	void *push;
	pthread_mutex_t push_mutex;
	uint32_t push_pairs;
	pthread_spinlock_t push_lock;
	const struct skua_status_page *status;
	size_t page_size;
	pthread_mutex_t slab_lock;
	struct list_head slabs[SKUA_SLAB_SIZES];
	pthread_mutex_t kick_lock;
	uint32_t scatter;
	uint32_t log_cqe;
	struct skua_alloc_ucontext_resp lim;
};

/**
 * struct skua_td - thread domain
 * @ibv_td: libibverbs' part
 * @refs: parent domains that name it
 */
struct skua_td {
	struct ibv_td ibv_td;
	atomic_int refs;
};

/**
 * struct skua_pd - protection domain or parent domain
 * @ibv_pd: libibverbs' part
 * @refs: parent domains on it; parent domain: queues made with it
 * @domain: parent domain: its protection domain, else NULL
 * @td: parent domain: its thread domain, or NULL
 * @alloc: parent domain: allocator of rings, or NULL
 * @free: and how to give back
 * @pd_context: the program's, for both
 */
struct skua_pd {
	struct ibv_pd ibv_pd;
	atomic_int refs;
	struct skua_pd *domain;
	struct skua_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

/* The queue of a QP that completes on a CQ: its send or its receive queue. */
enum skua_side {
	SKUA_SEND,
	SKUA_RECV,
	SKUA_SIDES
};

/**
 * struct skua_cq_table - QPs that complete on a CQ, by the low bits of their number
 * @old: the table that this one replaced, or NULL
 * @mask: buckets less one
 * @bucket: first QP of each
 */
struct skua_cq_table {
	struct skua_cq_table *old;
	uint32_t mask;
	_Atomic(struct skua_qp *) bucket[];
};

/**
 * struct skua_cq - completion queue
 * @vcq: libibverbs' part
 * @lock: serialises the pollers; protects all below but @arm_serial and what @table_lock does
 * @ring: the CQEs: the last 64 bytes of the first
 * @log_cqe: log2 of the bytes of each
 * @log_size: log2 of their number
 * @ring_mask: their number less one
 * @cqn: its number in doorbells
 * @ci: free-running consumer index; read without @lock to arm
 * @arm_serial: serial of the next arm; events and arms change it atomically
 * @last: QP of the last CQE, or one that has no number
 * @status: the context's status page
 * @dbr: doorbell record
 * @uar: UAR page
 * @table: QPs that complete here; changed under @table_lock
 * @xsrqs: XRC SRQs that complete here; changed under @table_lock
 * @overwritten: the device may write where CQEs were not polled
 * @table_lock: serialises the changes of queues that complete here, also where @lock is not
 *	taken; taken inside that; protects @nqps, @users and @sides
 * @nqps: QPs in the table
 * @users: queues that were attached and not yet detached
 * @sides: queues that complete here, in order of creation, by side
 * @pd: parent domain that it was made with, or NULL
 * @wc: the completion that ibv_start_poll() or ibv_next_poll() returned last
 * @cqe: a copy of its entry in the ring
 * @clock: device and system clock as last read; under @lock
 * @buf: the ring's memory
 */
struct skua_cq {
	struct verbs_cq vcq;
	struct skua_lock lock;
	uint8_t *ring;
	uint32_t log_cqe;
	uint32_t log_size;
	uint32_t ring_mask;
	uint32_t cqn;
	_Atomic(uint32_t) ci;
	_Atomic(uint32_t) arm_serial;
	struct skua_qp *last;
	const struct skua_status_page *status;
	struct skua_cq_dbr *dbr;
	void *uar;
	_Atomic(struct skua_cq_table *) table;
	_Atomic(struct skua_srq *) xsrqs;
	bool overwritten;
	struct skua_lock table_lock;
	uint32_t nqps;
	uint32_t users;
	struct list_head sides[SKUA_SIDES];
	struct skua_pd *pd;
	struct ibv_wc wc;
	struct skua_cqe cqe;
	struct skua_clock_resp clock;
	struct skua_mem buf;
};

/**
 * struct skua_sent - what software remembers of a posted send WQE
 * @wr_id: from the work request
 * @at: free-running index of its first block. Of a block in the middle of a WQE it is
 *	the index of an older WQE.
 * @opcode: enum ibv_wc_opcode of its completion
 * @blocks: blocks it takes up
 */
struct skua_sent {
	uint64_t wr_id;
	uint32_t at;
	uint8_t opcode;
	uint8_t blocks;
};

/* How the WQEs of a QP name their destination, by the QP's type. */
enum skua_addr {
	SKUA_ADDR_PEER,		/* not at all: the QP is connected, or sends Ethernet */
	SKUA_ADDR_AV,		/* an address vector segment */
	SKUA_ADDR_XRC,		/* an XRC segment with an SRQ of the peer */
};

/**
 * struct skua_ah - address handle
 * @ibv_ah: libibverbs' part
 * @av: address vector, copied into WQEs
 */
struct skua_ah {
	struct ibv_ah ibv_ah;
	struct skua_av av;
};

/**
 * struct skua_sq - send queue
 * @lock: serialises the posters
 * @tell: SKUA_TELL_*: how the device is told of new WQEs; 0: by a doorbell
 * @ring: the WQEs
 * @pi: free-running producer index in blocks; changed under @lock
 * @ci: block after the newest completed WQE; changed under the CQ's lock
 * @sent: for each block of the ring, the WQE that starts there
 * @blocks: size of the ring
 * @mask: @blocks less one
 * @sig: SKUA_WQE_F_SIGNALED if every WQE is, else 0
 * @plain_ops: those of @ops that encode_plain() can encode
 * @plain_inline: most inline bytes that it takes
 * @first_op: what to add to an opcode to find it in the encoder's table
 * @head_segs: segments of the control segment and of that
 * @raddr_segs: segments of a remote address, 0 for datagrams
 * @max_sge: most gather elements of a WQE
 * @max_inline: most bytes of an inline payload
 * @ops: BIT(enum ibv_wr_opcode) of what ibv_post_send() may post
 * @addr: how WQEs name their destination
 */
struct skua_sq {
	struct skua_lock lock;
	uint32_t tell;
	struct skua_sq_ring ring;
	_Atomic(uint32_t) pi;
	_Atomic(uint32_t) ci;
	struct skua_sent *sent;
	uint32_t blocks;
	uint32_t mask;
	uint32_t sig;
	uint32_t plain_ops;
	uint32_t plain_inline;
	uint32_t first_op;
	uint32_t head_segs;
	uint32_t raddr_segs;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t ops;
	enum skua_addr addr;
};

/* A doorbell only if the device's event index asks for it; by a push if the WQE fits. */
#define SKUA_TELL_IF_ASKED	BIT(0)
#define SKUA_TELL_BY_PUSH	BIT(1)

/**
 * struct skua_rq - receive queue
 * @lock: serialises the posters
 * @ring: the WQEs
 * @pi: free-running producer index; changed under @lock
 * @ci: WQE after the newest completed one; changed under the CQ's lock
 * @wr_id: for each WQE, from its work request
 * @size: WQEs in the ring; 0: no receive queue
 * @max_sge: most scatter elements of a WQE
 * @segs: data segments of a WQE
 * @in_err: the QP is in error: ring the doorbell after each post, so that the device
 *	flushes what was posted
 */
struct skua_rq {
	struct skua_lock lock;
	struct skua_rq_ring ring;
	_Atomic(uint32_t) pi;
	_Atomic(uint32_t) ci;
	uint64_t *wr_id;
	uint32_t size;
	uint32_t max_sge;
	uint32_t segs;
	atomic_bool in_err;
};

/**
 * struct send_enc - a send WQE being written
 * @sq: its queue, locked
 * @op: its row of send_ops
 * @block: its first block, which holds the control and address segments
 * @pi: free-running index of that block
 * @room: free blocks of the ring from there, as last looked up
 * @head: segments of control and destination
 * @nseg: segments written or reserved so far
 * @flush_len: FLUSH: its bytes
 */
struct send_enc {
	struct skua_sq *sq;
	const struct send_op *op;
	uint8_t *block;
	uint32_t pi;
	uint32_t room;
	unsigned int head;
	unsigned int nseg;
	uint32_t flush_len;
};

/**
 * struct skua_batch - state of the ibv_wr_*() calls between start and complete
 * @enc: the WQE that is being built
 * @ops: BIT(enum ibv_wr_opcode) of what the calls may post
 * @start: producer index at the start
 * @err: first error
 * @open: @enc is valid
 * @need_addr: its destination has not been set yet
 * @payload: segment at which its payload starts
 * @blocks: that it takes up; 0: there is none
 */
struct skua_batch {
	struct send_enc enc;
	uint32_t ops;
	uint32_t start;
	int err;
	bool open;
	bool need_addr;
	unsigned int payload;
	unsigned int blocks;
};

/**
 * struct skua_push - slots of a QP that pushes
 * @slot: first of its two slots, NULL: the QP does not push
 * @lock: of the slots if they are shared, else NULL
 * @pair: number of the two
 * @turn: offset of the one to use next
 * @max_segs: longest WQE to push
 */
struct skua_push {
	uint8_t *slot;
	pthread_spinlock_t *lock;
	uint32_t pair;
	uint32_t turn;
	uint32_t max_segs;
};

/**
 * struct skua_qp - queue pair
 * @vqp: libibverbs' part
 * @sq: send queue
 * @dbr: doorbell record
 * @uar: UAR page
 * @next: link in a bucket of the CQ of each side; changed under that CQ's table_lock
 * @rq: receive queue
 * @batch: ibv_wr_*() calls; under the lock of @sq
 * @push: under the lock of @sq
 * @side: link in the list of queues of the CQ of each side; under that CQ's table_lock
 * @known: it is in that CQ's buckets; indexed as @next, under that CQ's table_lock
 * @pd: parent domain that it was made with, or NULL
 * @buf: both rings' memory
 * @rate_limit: kbit/s, as last set
 * @is_rss: it has no queues of its own and spreads frames over work queues
 * @ece_set: ibv_set_ece() was called
 * @ece: the options that it set
 *
 * Of many queue pairs none is in the processor's caches when it is its turn: what a send and its
 * completion touch is in two lines, @sq to @next, beside the first one of @vqp.
 */
struct skua_qp {
	struct verbs_qp vqp;
	_Alignas(SKUA_LINE) struct skua_sq sq;
	struct skua_qp_dbr *dbr;
	void *uar;
	_Atomic(struct skua_qp *) next[SKUA_SIDES];
	struct skua_rq rq;
	struct skua_batch batch;
	struct skua_push push;
	struct list_node side[SKUA_SIDES];
	bool known[SKUA_SIDES];
	struct skua_pd *pd;
	struct skua_mem buf;
	uint32_t rate_limit;
	bool is_rss;
	bool ece_set;
	uint32_t ece;
};
_Static_assert(offsetof(struct skua_qp, rq) - offsetof(struct skua_qp, sq) <= 2 * SKUA_LINE,
	       "what sends touch is in two lines");

/**
 * struct skua_srq_slot - what software remembers of an SRQ's WQE
 * @wr_id: from the work request
 * @next: position of the WQE after it in the list
 * @posted: the device has it
 */
struct skua_srq_slot {
	uint64_t wr_id;
	uint32_t next;
	bool posted;
};

/**
 * struct skua_srq - shared receive queue
 * @vsrq: libibverbs' part
 * @lock: protects all below but @srqn, @next and @known; taken inside a CQ's
 * @ring: the WQEs
 * @slot: by position
 * @head: first free position
 * @tail: last free position; it is never posted
 * @posted: WQEs that the device has
 * @users: QPs that were attached and not yet detached
 * @pi: WQEs posted so far
 * @wqes: size of the ring
 * @segs: segments of a WQE
 * @max_sge: most scatter elements of a WQE
 * @srqn: its number in CQEs
 * @dbr: doorbell record
 * @next: XRC: link in the list of its CQ; changed under that CQ's table_lock
 * @known: it is in that list; under that CQ's table_lock
 * @buf: the ring's memory
 */
struct skua_srq {
	struct verbs_srq vsrq;
	pthread_spinlock_t lock;
	struct skua_rq_ring ring;
	struct skua_srq_slot *slot;
	uint32_t head;
	uint32_t tail;
	uint32_t posted;
	uint32_t users;
	uint32_t pi;
	uint32_t wqes;
	uint32_t segs;
	uint32_t max_sge;
	uint32_t srqn;
	struct skua_srq_dbr *dbr;
	_Atomic(struct skua_srq *) next;
	bool known;
	struct skua_mem buf;
};

static inline struct skua_srq *to_ssrq(struct ibv_srq *srq)
{
	return container_of(srq, struct skua_srq, vsrq.srq);
}

static inline struct skua_context *to_sctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct skua_context, ibv_ctx.context);
}

static inline struct skua_pd *to_spd(struct ibv_pd *pd)
{
	return container_of(pd, struct skua_pd, ibv_pd);
}

static inline struct skua_td *to_std(struct ibv_td *td)
{
	return container_of(td, struct skua_td, ibv_td);
}

static inline struct skua_cq *to_scq(struct ibv_cq *cq)
{
	return container_of(cq, struct skua_cq, vcq.cq);
}

static inline struct skua_qp *to_sqp(struct ibv_qp *qp)
{
	return container_of(qp, struct skua_qp, vqp.qp);
}

static inline struct skua_ah *to_sah(struct ibv_ah *ah)
{
	return container_of(ah, struct skua_ah, ibv_ah);
}

static inline struct skua_cqe *cqe_at(const struct skua_cq *cq, uint32_t index)
{
	return (struct skua_cqe *)(cq->ring + ((size_t)(index & cq->ring_mask) << cq->log_cqe));
}

/*
 * Write the scatter list of a receive. Elements of no length are left out: with the key
 * SKUA_INVALID_LKEY, which they may have, they would end the list for the device. Returns
 * the elements written.
 */
static ALWAYS_INLINE inline unsigned int skua_rq_list(struct skua_wqe_data *d,
						      const struct ibv_sge *sg, unsigned int num)
{
	unsigned int n = 0;

	for (; num; num--, sg++)
		if (likely(sg->length))
			skua_wqe_data_set(&d[n++], sg->addr, sg->lkey, sg->length);
	return n;
}

/* Of a large entry the first half has payload alone. */
static inline size_t cqe_before(const struct skua_cq *cq)
{
	return ((size_t)1 << cq->log_cqe) - sizeof(struct skua_cqe);
}

/* An entry goes to another place, whole, where its phase is @phase. */
static inline void cqe_copy(const struct skua_cq *cq, struct skua_cqe *to,
			    const struct skua_cqe *from, __le32 phase)
{
	memcpy((uint8_t *)to - cqe_before(cq), (const uint8_t *)from - cqe_before(cq),
	       (size_t)1 << cq->log_cqe);
	to->own = (to->own & ~cpu_to_le32(SKUA_CQE_PHASE)) | phase;
}

/* Is the payload in the CQE? */
static inline bool cqe_has_payload(const struct skua_cqe *cqe)
{
	return cqe->own & cpu_to_le32(SKUA_CQE_F_INLINE);
}

static inline bool skua_has(const struct skua_context *ctx, uint64_t cap)
{
	return ctx->lim.caps & cap;
}

/* skua.c */
bool skua_is_ours(struct ibv_device *device);

/* mem.c */
void *skua_zalloc_lines(size_t size);
int skua_mem_alloc(struct skua_context *ctx, struct skua_mem *buf, size_t len);
int skua_mem_alloc_in(struct skua_context *ctx, struct skua_pd *pd, struct skua_mem *buf,
		      size_t len, uint64_t type);
void skua_mem_free(struct skua_mem *buf);
void *skua_dbr_alloc(struct skua_context *ctx);
void skua_dbr_free(struct skua_context *ctx, void *dbr);
void skua_slabs_init(struct skua_context *ctx);
void skua_slabs_cleanup(struct skua_context *ctx);

/* verbs.c */
int skua_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int skua_clock(struct ibv_context *ctx, struct skua_clock_resp *now);
int skua_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
int skua_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);

/* pd.c */
struct ibv_pd *skua_alloc_pd(struct ibv_context *ctx);
struct ibv_pd *skua_import_pd(struct ibv_context *ctx, uint32_t handle);
void skua_unimport_pd(struct ibv_pd *pd);
int skua_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *skua_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int skua_dealloc_td(struct ibv_td *td);
struct ibv_pd *skua_alloc_parent_domain(struct ibv_context *ctx,
					struct ibv_parent_domain_init_attr *attr);
struct skua_pd *skua_parent_get(struct ibv_pd *pd);
void skua_parent_put(struct skua_pd *pd);

/* push.c */
uint32_t skua_push_wish(void);
int skua_push_map(struct skua_context *ctx, int cmd_fd);
void skua_push_unmap(struct skua_context *ctx);
void skua_push_get(struct skua_context *ctx, struct skua_qp *qp);
void skua_push_put(struct skua_context *ctx, struct skua_qp *qp);
void skua_push_sq(struct skua_qp *qp, uint32_t pi, uint32_t old);

/* scatter.c */
uint32_t skua_scatter_env(void);
void skua_scatter_rq(const struct skua_cq *cq, const struct skua_cqe *cqe,
		     const struct skua_rq *rq, uint32_t at);
void skua_scatter_srq(const struct skua_cq *cq, const struct skua_cqe *cqe,
		      const struct skua_srq *srq, uint32_t pos);
void skua_scatter_sq(const struct skua_cq *cq, const struct skua_cqe *cqe,
		     const struct skua_sq *sq, uint32_t at);

/* ah.c */
struct ibv_ah *skua_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int skua_destroy_ah(struct ibv_ah *ah);
int skua_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int skua_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* mr.c */
struct ibv_mr *skua_reg_mr(struct ibv_pd *pd, void *addr, size_t len, uint64_t hca_va,
			   int access);
struct ibv_mr *skua_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				  int fd, int access);
struct ibv_mr *skua_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *skua_import_mr(struct ibv_pd *pd, uint32_t handle);
void skua_unimport_mr(struct ibv_mr *mr);
int skua_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge);
int skua_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t len,
		  int access);
int skua_dereg_mr(struct verbs_mr *vmr);
/* Convert the rights of a window from IBV_ACCESS_* to SKUA_ACCESS_*. Returns 0 or EINVAL. */
int skua_mw_access(unsigned int flags, uint32_t *access);
struct ibv_mw *skua_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int skua_dealloc_mw(struct ibv_mw *mw);

/* dm.c */
struct ibv_dm *skua_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int skua_free_dm(struct ibv_dm *dm);
struct ibv_dm *skua_import_dm(struct ibv_context *ctx, uint32_t handle);
void skua_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *skua_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
			      size_t length, unsigned int access);

/* cq.c */
int skua_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
extern struct skua_qp skua_no_qp;
bool skua_cq_next(struct skua_cq *cq, struct ibv_wc *wc);
int skua_arm_cq(struct ibv_cq *cq, int solicited_only);
void skua_cq_event(struct ibv_cq *cq);
int skua_cq_table_init(struct skua_cq *cq);
void skua_cq_table_free(struct skua_cq *cq);
void skua_cq_attach(struct skua_cq *cq, struct skua_qp *qp);
void skua_cq_detach(struct skua_cq *cq, struct skua_qp *qp);
void skua_cq_clean(struct skua_cq *cq, struct skua_qp *qp);
void skua_cq_attach_srq(struct skua_cq *cq, struct skua_srq *srq);
void skua_cq_detach_srq(struct skua_cq *cq, struct skua_srq *srq);

/* cq_life.c */
struct ibv_cq *skua_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *skua_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
struct ibv_cq_ex *skua_create_cq_dv(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
				    uint32_t cqe_size);
int skua_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int skua_destroy_cq(struct ibv_cq *cq);
int skua_resize_cq(struct ibv_cq *cq, int cqe);

/* srq.c */
struct ibv_srq *skua_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *skua_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int skua_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int skua_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int skua_destroy_srq(struct ibv_srq *srq);
void skua_srq_attach(struct skua_srq *srq);
void skua_srq_detach(struct skua_srq *srq);
int skua_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int skua_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
bool skua_srq_take(struct skua_srq *srq, uint64_t *wr_id, const struct skua_cq *cq,
		   const struct skua_cqe *cqe, uint32_t ci);
void skua_srq_drop(struct skua_srq *srq, uint32_t pos);

/* xrc.c */
struct ibv_xrcd *skua_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int skua_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *skua_create_tgt(struct skua_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *skua_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);

/* wq.c, flow.c */
struct ibv_wq *skua_create_wq(struct ibv_context *ctx, struct ibv_wq_init_attr *attr);
int skua_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int skua_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *skua_create_rwq_ind_table(struct ibv_context *ctx,
						    struct ibv_rwq_ind_table_init_attr *attr);
int skua_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
struct ibv_qp *skua_create_rss_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int skua_destroy_rss_qp(struct skua_qp *qp);
struct ibv_counters *skua_create_counters(struct ibv_context *ibctx,
					  struct ibv_counters_init_attr *attr);
int skua_destroy_counters(struct ibv_counters *counters);
int skua_attach_counters_point_flow(struct ibv_counters *counters,
				    struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
bool skua_counters_bind(struct ibv_counters *counters);
void skua_counters_unbind(struct ibv_counters *counters);
int skua_read_counters(struct ibv_counters *counters, uint64_t *value, uint32_t num,
		       uint32_t flags);
struct ibv_flow *skua_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int skua_destroy_flow(struct ibv_flow *flow);

/* cq_ex.c */
void skua_cq_ex_init(struct skua_cq *cq);

/* qp.c */
struct skua_qp *skua_qp_alloc(struct skua_context *ctx, struct skua_pd *parent);
void skua_qp_free(struct skua_context *ctx, struct skua_qp *qp);
int skua_rq_size(const struct skua_context *ctx, struct skua_rq *rq, struct ibv_qp_cap *cap);
int skua_rq_post(struct skua_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *skua_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *skua_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *skua_create_qp_dv(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
				 uint32_t flags);
int skua_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int skua_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
int skua_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int skua_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int skua_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int skua_destroy_qp(struct ibv_qp *qp);
int skua_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void skua_qp_in_error(struct skua_qp *qp);
void skua_wq_in_error(struct ibv_wq *wq);
void skua_async_event(struct ibv_context *ctx, struct ibv_async_event *event);

/* send.c */
void skua_sq_init_plain(struct skua_sq *sq);
int skua_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int skua_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* wr.c */
int skua_wr_init(struct skua_qp *qp, uint32_t ops, uint64_t flags);
void skua_wr_init_plain(struct skua_qp *qp);

#endif /* SKUA_PROVIDER_H */
