/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake below the provider: the kernel's answers to uverbs commands, and a device that
 * sees rings, doorbell records and the UAR page in memory.
 *
 * The provider's sources and libibverbs are the real ones. Between libibverbs and the
 * fake is ioctl(), between the provider and the fake are mmap() and the doorbell
 * (shim/util). The fake device does nothing by itself: a test says what completes.
 * What breaks the device interface (a doorbell out of range, a WQE without its index,
 * a CQE without room) fails the test at once.
 */
#ifndef SKUA_TESTS_PROVIDER_FAKE_H
#define SKUA_TESTS_PROVIDER_FAKE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/driver.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <util/udma_barrier.h>

#include <skua/bits.h>
#include <skua/hw/cmd.h>
#include <skua/hw/cqe.h>
#include <skua/hw/doorbell.h>
#include <skua/hw/icm.h>
#include <skua/hw/wqe.h>
#include <rdma/skua-abi.h>
#include "skuadv.h"

/* After stdbool and friends, as it wants */
#include <cmocka.h>

#define FAKE_MAX_OBJS		4096
#define FAKE_MAX_DBS		4096
#define FAKE_MAX_WQES		65536
#define FAKE_PORT		1
#define FAKE_RSS_KEY		40

/**
 * struct fake_db - a doorbell that the device got
 * @reg: register: SKUA_UAR_*
 * @lo: low half
 * @hi: high half
 */
struct fake_db {
	unsigned int reg;
	uint32_t lo;
	uint32_t hi;
};

/**
 * struct fake_obj - an object of the kernel
 * @object: UVERBS_OBJECT_*
 * @handle: its handle, never used again
 * @live: it was not destroyed yet
 * @num: QPN, CQN or SRQN
 * @pd: handle of its PD
 * @cq: handle of the CQ: send CQ of a QP
 * @recv_cq: QP: handle of the receive CQ
 * @srq: QP: handle of its SRQ
 * @type: enum ibv_qp_type, ibv_srq_type, ibv_mw_type
 * @flags: creation flags of the core
 * @entries: CQ: entries asked for
 * @cap: QP: sizes that the kernel was told
 * @state: QP: as last modified
 * @cq_req: what the provider said of a CQ; likewise the others
 * @mod: last modify_qp: the core's part
 * @mod_req: and the provider's
 * @mod_req_len: and how long that was
 * @rate_limit: of modify_qp_ex
 * @ring: CQ: its memory
 * @log: CQ: log2 of its entries
 * @pi: CQ: entries written so far
 * @sq_tail: QP: blocks that doorbells have told of
 * @sq_head: QP: blocks completed
 * @rq_head: QP, WQ: receives completed
 * @next: SRQ: position of the next WQE
 * @taken: SRQ: WQEs taken so far
 * @nwqes: QP: send WQEs outstanding
 * @wqe: QP: the block at which each begins, oldest first
 */
struct fake_obj {
	unsigned int object;
	uint32_t handle;
	bool live;
	uint32_t num;
	uint32_t pd;
	uint32_t cq;
	uint32_t recv_cq;
	uint32_t srq;
	uint32_t type;
	uint32_t flags;
	uint32_t entries;
	struct ib_uverbs_qp_cap cap;
	uint32_t state;
	union {
		struct skua_create_cq_req cq_req;
		struct skua_create_qp_req qp_req;
		struct skua_create_rss_qp_req rss_req;
		struct skua_create_srq_req srq_req;
		struct skua_create_wq_req wq_req;
	};
	struct ib_uverbs_modify_qp mod;
	struct skua_modify_qp_req mod_req;
	size_t mod_req_len;
	uint32_t rate_limit;
	struct skua_cqe *ring;
	uint32_t log;
	uint32_t pi;
	uint32_t sq_tail;
	uint32_t sq_head;
	uint32_t rq_head;
	uint32_t next;
	uint32_t taken;
	uint32_t nwqes;
	uint32_t wqe[1024];
};

/**
 * struct fake - all of it
 * @lim: what the driver tells of the device; change it before fake_open()
 * @payload: what CQEs from now on have, byte_len of it, or NULL
 * @wish: comp_mask of the last alloc_ucontext
 * @old_kernel: it refuses any
 * @ctx: the open context
 * @pd: a protection domain of it
 * @status: the status page as the driver sees it
 * @uar: the UAR page as the device sees it
 * @db: doorbells since fake_dbs_clear()
 * @ndbs: their number
 * @on_doorbell: called for each of them, or NULL
 * @on_barrier: called at each barrier of the provider, or NULL
 * @on_cmd: called before a command is served, with object and method (of a write command:
 *	UVERBS_OBJECT_DEVICE and its number + FAKE_WRITE), or NULL; a positive errno
 *	makes it fail
 * @after_cmd: likewise, after a command was served
 * @fail_at: the n-th step that can fail does so (1: the next one), 0: none
 * @failed: such a step has failed
 * @limit_err: errno for what sets the limit of an SRQ, after all else was done
 * @no_rss: the device has no RSS
 * @allocs: memory that the provider has from calloc()
 * @maps: mappings that the provider has
 * @next_num: number of the next queue
 * @clock: answer of the device's clock
 * @clock_reads: how often it was asked
 * @last_core: core part of the last write command
 * @last_len: its length
 * @last_write: its number
 */
struct fake {
	struct skua_alloc_ucontext_resp lim;
	const uint8_t *payload;
	uint32_t wish;
	bool old_kernel;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct skua_status_page *status;
	uint8_t *uar;
	struct fake_db db[FAKE_MAX_DBS];
	unsigned int ndbs;
	void (*on_doorbell)(const struct fake_db *db);
	void (*on_barrier)(enum fake_barrier kind);
	int (*on_cmd)(unsigned int object, unsigned int method);
	void (*after_cmd)(unsigned int object, unsigned int method);
	unsigned int fail_at;
	bool failed;
	int limit_err;
	bool no_rss;
	long allocs;
	long maps;
	uint32_t next_num;
	struct skua_clock_resp clock;
	unsigned int clock_reads;
	uint8_t last_core[256] __attribute__((aligned(8)));
	size_t last_len;
	unsigned int last_write;
};

#define FAKE_WRITE	0x10000

extern struct fake fake;

/* --- life: for cmocka's setup and teardown ------------------------------ */
int fake_setup(void **state);
int fake_teardown(void **state);
/* With an open context; with a CQ and an RC QP in RTS as well */
int fake_setup_open(void **state);
int fake_setup_rc(void **state, int cqe, struct ibv_cq **cq, struct ibv_qp **qp);
int fake_teardown_rc(void **state, struct ibv_cq *cq, struct ibv_qp *qp);
void fake_open(void);
void fake_close(void);
struct ibv_context *fake_import(void);
/* Everything that a program can make is gone again */
void fake_assert_clean(void);

/* --- objects ------------------------------------------------------------- */
struct fake_obj *fake_obj(unsigned int object, uint32_t handle);
struct fake_obj *fake_by_num(unsigned int object, uint32_t num);
struct fake_obj *fake_qp(const struct ibv_qp *qp);
struct fake_obj *fake_cq(const struct ibv_cq *cq);
struct fake_obj *fake_srq(const struct ibv_srq *srq);
struct fake_obj *fake_wq(const struct ibv_wq *wq);
unsigned int fake_live(unsigned int object);

/* --- doorbells ------------------------------------------------------------ */
static inline void fake_dbs_clear(void)
{
	fake.ndbs = 0;
}

/* --- the device ----------------------------------------------------------- */

/* Read the record of a QP, as the device does with DB_SUPPRESS */
void fake_look(struct fake_obj *qp);
/* A send WQE, made contiguous; returns its segments */
unsigned int fake_wqe(const struct fake_obj *qp, uint32_t index, uint8_t wqe[1024]);
struct skua_qp_dbr *fake_qp_dbr(const struct fake_obj *qp);
struct skua_cq_dbr *fake_cq_dbr(const struct fake_obj *cq);
struct skua_srq_dbr *fake_srq_dbr(const struct fake_obj *srq);
/* The data segments of a receive WQE of a QP or WQ */
const struct skua_wqe_data *fake_rq_wqe(const struct fake_obj *qp, uint32_t index);
/* Take the next WQE of an SRQ: its position, or -1 if none is posted */
int fake_srq_take(struct fake_obj *srq);
const struct skua_wqe_data *fake_srq_wqe(const struct fake_obj *srq, uint32_t pos);

/* Write a CQE, phase and all; SKUA_CQE_F_* and vendor syndrome in @cqe->own */
void fake_cqe(struct fake_obj *cq, const struct skua_cqe *cqe);
__le32 fake_what(unsigned int index, enum skua_cqe_op op, unsigned int status);
/* Complete send WQEs up to the one that begins at @index */
void fake_sent(const struct ibv_qp *qp, uint32_t index, unsigned int status);
/* Complete the oldest receive WQE of a QP or an SRQ */
void fake_rcvd(const struct ibv_qp *qp, enum skua_cqe_op op, unsigned int status, uint32_t len);
void fake_rcvd_shared(const struct ibv_qp *qp, uint32_t pos, uint32_t len);

/* --- what tests make often -------------------------------------------------- */
struct ibv_cq *fake_make_cq(int cqe);
/* Attributes of a QP with an indirection table and a hash key of FAKE_RSS_KEY bytes */
struct ibv_qp_init_attr_ex fake_rss_attr(struct ibv_rwq_ind_table *table, uint8_t *key);
struct ibv_qp *fake_make_qp(struct ibv_cq *cq, enum ibv_qp_type type);
size_t fake_page(void);
struct ibv_qp *fake_make_qp_cap(struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
				enum ibv_qp_type type, const struct ibv_qp_cap *cap);
void fake_modify(struct ibv_qp *qp, enum ibv_qp_state state);
void fake_destroy_qp(struct ibv_qp *qp);
void fake_destroy_cq(struct ibv_cq *cq);
/* Post @n writes of one element, signaled; wr_id counts from @wr_id */
void fake_post_writes(struct ibv_qp *qp, unsigned int n, uint64_t wr_id);
void fake_post_recvs(struct ibv_qp *qp, unsigned int n, uint64_t wr_id);

#endif /* SKUA_TESTS_PROVIDER_FAKE_H */
