// SPDX-License-Identifier: GPL-2.0
/*
 * The fake's memory and its device; see fake.h.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>

#include "fake_kernel.h"

#define FAKE_MAX_HELD	4096

struct fake fake;

static const struct verbs_device_ops *provider;
static struct verbs_device *device;
static struct verbs_sysfs_dev sysfs = { .num_ports = 1 };
static int file = -1;
static void *uar_seen;		/* the provider's mapping of the UAR page */
static void *push_seen;		/* and of that for pushes */

size_t fake_page(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* The provider's constructor calls this in the place of libibverbs'. */
void verbs_register_driver(const struct verbs_device_ops *ops)
{
	provider = ops;
}

/* --- memory of the provider ------------------------------------------------ */

bool fake_step_fails(void)
{
	if (!fake.fail_at || --fake.fail_at)
		return false;
	fake.failed = true;
	return true;
}

void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *p);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __real_munmap(void *addr, size_t len);
int __real_ibv_dontfork_range(void *addr, size_t len);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void __wrap_free(void *p);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_munmap(void *addr, size_t len);
int __wrap_ibv_dontfork_range(void *addr, size_t len);

/* What the provider has: only that is counted, as libibverbs' memory passes through it */
static void *held[FAKE_MAX_HELD];
static struct {
	void *addr;
	size_t len;
	bool guarded;
} mapped[FAKE_MAX_HELD];

static unsigned int held_find(const void *p)
{
	unsigned int i;

	for (i = 0; i < FAKE_MAX_HELD && held[i] != p; i++)
		;
	return i;
}

static unsigned int mapped_find(const void *p)
{
	unsigned int i;

	for (i = 0; i < FAKE_MAX_HELD && mapped[i].addr != p; i++)
		;
	return i;
}

static void *hold(void *p)
{
	unsigned int i = held_find(NULL);

	assert_int_not_equal(i, FAKE_MAX_HELD);
	held[i] = p;
	fake.allocs++;
	return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
	if (fake_step_fails()) {
		errno = ENOMEM;
		return NULL;
	}
	return hold(__real_calloc(n, size));
}

/* Not zeroed, and seen to be not. */
void *__wrap_aligned_alloc(size_t align, size_t size)
{
	void *p;

	if (fake_step_fails()) {
		errno = ENOMEM;
		return NULL;
	}
	p = __real_aligned_alloc(align, size);
	memset(p, 0xa5, size);
	return hold(p);
}

void __wrap_free(void *p)
{
	unsigned int i = p ? held_find(p) : FAKE_MAX_HELD;

	if (i < FAKE_MAX_HELD) {
		held[i] = NULL;
		fake.allocs--;
	}
	__real_free(p);
}

/* A page that nobody may touch stands behind each ring. */
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	unsigned int i;
	char *p;

	if (fake_step_fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (!len) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (flags & MAP_ANONYMOUS) {
		p = __real_mmap(addr, len + fake_page(), prot, flags, fd, off);
		assert_ptr_not_equal(p, MAP_FAILED);
		assert_false(mprotect(p + len, fake_page(), PROT_NONE));
	} else {
		p = __real_mmap(addr, len, prot, flags, file, off);
		assert_ptr_not_equal(p, MAP_FAILED);
		if (off == FAKE_UAR_PAGE * (off_t)fake_page()) {
			assert_int_equal(prot, PROT_WRITE);
			uar_seen = p;
		} else if (off == FAKE_PUSH_PAGE * (off_t)fake_page()) {
			assert_int_equal(prot, PROT_WRITE);
			push_seen = p;
		} else if (off == FAKE_STATUS_PAGE * (off_t)fake_page()) {
			assert_int_equal(prot, PROT_READ);
		}
	}
	i = mapped_find(NULL);
	assert_int_not_equal(i, FAKE_MAX_HELD);
	mapped[i].addr = p;
	mapped[i].len = len;
	mapped[i].guarded = flags & MAP_ANONYMOUS;
	fake.maps++;
	return p;
}

int __wrap_munmap(void *addr, size_t len)
{
	unsigned int i = mapped_find(addr);

	if (i == FAKE_MAX_HELD)
		return __real_munmap(addr, len);
	assert_int_equal(len, mapped[i].len);
	mapped[i].addr = NULL;
	fake.maps--;
	return __real_munmap(addr, len + (mapped[i].guarded ? fake_page() : 0));
}

int __wrap_ibv_dontfork_range(void *addr, size_t len)
{
	if (fake_step_fails()) {
		errno = ENOMEM;
		return -1;
	}
	return __real_ibv_dontfork_range(addr, len);
}

/* --- life ------------------------------------------------------------------ */

static void default_limits(void)
{
	fake.lim = (struct skua_alloc_ucontext_resp){
		.uar_size = fake_page(),
		.uar_offset = FAKE_UAR_PAGE * fake_page(),
		.status_offset = FAKE_STATUS_PAGE * fake_page(),
		.caps = ~(uint64_t)SKUA_CAP_DB_SUPPRESS,
		.max_sq_blocks = 65536,
		.max_rq_wqes = 32768,
		.max_wqe_blocks = SKUA_WQE_MAX_BLOCKS,
		.max_rq_sge = 30,
		.max_inline = 900,
		.max_cqe = 65536,
		.clock_khz = 1000000,
		.ece_options = SKUA_ECE_MASKED_ATOMIC,
	};
}

int fake_setup(void **state)
{
	char *p;

	(void)state;
	/* A case that failed before may have left what it had */
	fake_kernel_reset();
	memset(held, 0, sizeof(held));
	memset(mapped, 0, sizeof(mapped));
	device = NULL;
	push_seen = NULL;
	memset(&fake, 0, sizeof(fake));
	fake.next_num = 0x5a0017;
	default_limits();
	file = memfd_create("skua", 0);
	if (file < 0 || ftruncate(file, FAKE_FILE_PAGES * fake_page()))
		return -1;
	p = __real_mmap(NULL, FAKE_FILE_PAGES * fake_page(), PROT_READ | PROT_WRITE, MAP_SHARED,
			file, 0);
	if (p == MAP_FAILED)
		return -1;
	fake.uar = (uint8_t *)p + FAKE_UAR_PAGE * fake_page();
	fake.status = (void *)(p + FAKE_STATUS_PAGE * fake_page());
	fake.status->alive = 1;
	return 0;
}

static int make_device(void)
{
	device = provider->alloc_device(NULL);
	assert_non_null(device);
	device->ops = provider;
	atomic_init(&device->refcount, 1);
	device->device.node_type = IBV_NODE_CA;
	device->device.transport_type = IBV_TRANSPORT_IB;
	return 0;
}

void fake_open(void)
{
	make_device();
	fake.ctx = verbs_open_device(&device->device, NULL);
	if (!fake.ctx)
		return;
	/* libibverbs looks there for the ports; it would open a device by it before */
	device->sysfs = &sysfs;
	fake.pd = ibv_alloc_pd(fake.ctx);
	assert_non_null(fake.pd);
}

struct ibv_context *fake_import(void)
{
	struct verbs_context *ctx;

	if (!device)
		make_device();
	ctx = provider->import_context(&device->device, -1);
	return ctx ? &ctx->context : NULL;
}

void fake_close(void)
{
	if (fake.pd)
		assert_false(ibv_dealloc_pd(fake.pd));
	if (fake.ctx)
		assert_false(ibv_close_device(fake.ctx));
	fake.pd = NULL;
	fake.ctx = NULL;
	if (device)
		provider->uninit_device(device);
	device = NULL;
}

void fake_assert_clean(void)
{
	unsigned int object;

	for (object = UVERBS_OBJECT_PD; object <= UVERBS_OBJECT_COUNTERS; object++)
		if (fake_live(object))
			fail_msg("%u objects of kind %u are left", fake_live(object), object);
	assert_int_equal(fake.allocs, 0);
	assert_int_equal(fake.maps, 0);
}

int fake_teardown(void **state)
{
	(void)state;
	fake_close();
	fake_assert_clean();
	__real_munmap(fake.uar - FAKE_UAR_PAGE * fake_page(), FAKE_FILE_PAGES * fake_page());
	close(file);
	fake_kernel_reset();
	return 0;
}

int fake_setup_open(void **state)
{
	if (fake_setup(state))
		return -1;
	fake_open();
	return 0;
}

int fake_setup_rc(void **state, int cqe, struct ibv_cq **cq, struct ibv_qp **qp)
{
	if (fake_setup_open(state))
		return -1;
	*cq = fake_make_cq(cqe);
	*qp = fake_make_qp(*cq, IBV_QPT_RC);
	fake_dbs_clear();
	return 0;
}

/* Either may be NULL: the test has destroyed it. */
int fake_teardown_rc(void **state, struct ibv_cq *cq, struct ibv_qp *qp)
{
	if (qp)
		fake_destroy_qp(qp);
	if (cq)
		fake_destroy_cq(cq);
	return fake_teardown(state);
}

/* --- objects --------------------------------------------------------------- */

static struct fake_obj *known(unsigned int object, uint32_t handle)
{
	struct fake_obj *obj = fake_obj(object, handle);

	assert_non_null(obj);
	return obj;
}

struct fake_obj *fake_qp(const struct ibv_qp *qp)
{
	return known(UVERBS_OBJECT_QP, qp->handle);
}

struct fake_obj *fake_cq(const struct ibv_cq *cq)
{
	return known(UVERBS_OBJECT_CQ, cq->handle);
}

struct fake_obj *fake_srq(const struct ibv_srq *srq)
{
	return known(UVERBS_OBJECT_SRQ, srq->handle);
}

struct fake_obj *fake_wq(const struct ibv_wq *wq)
{
	return known(UVERBS_OBJECT_WQ, wq->handle);
}

struct skua_qp_dbr *fake_qp_dbr(const struct fake_obj *qp)
{
	return (void *)(uintptr_t)(qp->object == UVERBS_OBJECT_WQ ? qp->wq_req.dbr_addr :
								    qp->qp_req.dbr_addr);
}

struct skua_cq_dbr *fake_cq_dbr(const struct fake_obj *cq)
{
	return (void *)(uintptr_t)cq->cq_req.dbr_addr;
}

struct skua_srq_dbr *fake_srq_dbr(const struct fake_obj *srq)
{
	return (void *)(uintptr_t)srq->srq_req.dbr_addr;
}

/* --- send queue ------------------------------------------------------------ */

static uint8_t *sq_block(const struct fake_obj *qp, uint32_t index)
{
	const struct skua_create_qp_req *req = &qp->qp_req;
	size_t rq_len = req->has_rq ? 16UL << (req->log_rq + req->log_rq_stride) : 0;

	rq_len = (rq_len + SKUA_WQE_BLOCK - 1) / SKUA_WQE_BLOCK * SKUA_WQE_BLOCK;
	assert_int_equal(req->buf_len, rq_len + (req->has_sq ? 64UL << req->log_sq : 0));
	return (uint8_t *)(uintptr_t)req->buf_addr + rq_len +
	       (size_t)(index & ((1U << req->log_sq) - 1)) * SKUA_WQE_BLOCK;
}

unsigned int fake_wqe(const struct fake_obj *qp, uint32_t index, uint8_t wqe[1024])
{
	const struct skua_wqe_ctrl *c = (void *)sq_block(qp, index);
	unsigned int nseg = le32_get_bits(c->op, SKUA_WQE_NSEG), i;

	assert_int_equal(le32_get_bits(c->op, SKUA_WQE_INDEX), index & 0xffff);
	assert_in_range(nseg, 1, SKUA_WQE_MAX_SEGS);
	assert_false(le32_to_cpu(c->flags) & ~SKUA_WQE_F_ALL);
	memset(wqe, 0, 1024);
	for (i = 0; i < (nseg + 3) / 4; i++)
		memcpy(wqe + i * SKUA_WQE_BLOCK, sq_block(qp, index + i), SKUA_WQE_BLOCK);
	return nseg;
}

/* All WQEs up to a producer index are looked at when it becomes known. */
static void sq_advance(struct fake_obj *qp, uint32_t pi)
{
	uint32_t size = 1U << qp->qp_req.log_sq;
	uint8_t wqe[1024];

	if (pi - qp->sq_head > size)
		fail_msg("producer index %u, but %u is the oldest of %u blocks", pi, qp->sq_head,
			 size);
	while (qp->sq_tail != pi) {
		unsigned int nseg = fake_wqe(qp, qp->sq_tail, wqe);

		assert_in_range(qp->nwqes, 0, 1023);
		qp->wqe[qp->nwqes++] = qp->sq_tail;
		qp->sq_tail += (nseg + 3) / 4;
		assert_true((int32_t)(pi - qp->sq_tail) >= 0);
	}
}

void fake_look(struct fake_obj *qp)
{
	sq_advance(qp, le32_to_cpu(fake_qp_dbr(qp)->sq_pi));
}

/* The QP's own doorbells come through the page that the kernel was told of. */
static void sq_rung(struct fake_obj *qp, bool push, uint32_t pi)
{
	assert_int_equal(push, !!(qp->qp_req.flags & SKUA_CREATE_QP_PUSH));
	assert_int_equal(le32_to_cpu(fake_qp_dbr(qp)->sq_pi), pi);
	sq_advance(qp, pi);
}

static bool in_push_page(void *addr)
{
	return push_seen && (uint8_t *)addr >= (uint8_t *)push_seen &&
	       (uint8_t *)addr < (uint8_t *)push_seen + fake_page();
}

/* Eight words went to a push slot. */
void fake_pushed(void *addr, const void *words)
{
	struct fake_db *db;
	struct fake_obj *qp;
	uint64_t word;

	assert_true(in_push_page(addr));
	memcpy(&word, (const uint8_t *)words + 56, sizeof(word));
	assert_in_range(fake.ndbs, 0, FAKE_MAX_DBS - 1);
	db = &fake.db[fake.ndbs++];
	db->reg = (uint8_t *)addr - (uint8_t *)push_seen;
	db->lo = le64toh(word);
	db->hi = le64toh(word) >> 32;
	assert_in_range(db->reg, SKUA_UAR_PUSH, SKUA_UAR_PUSH +
			(SKUA_UAR_PUSH_SLOTS - 1) * SKUA_UAR_PUSH_SLOT_SIZE);
	assert_int_equal(db->reg % SKUA_UAR_PUSH_SLOT_SIZE, 0);
	qp = fake_by_num(UVERBS_OBJECT_QP, db->hi);
	assert_non_null(qp);
	/* What the ring has, and of a length that may be pushed. */
	assert_memory_equal(words, sq_block(qp, db->lo - 1), SKUA_PUSH_SEGS * SKUA_WQE_SEG);
	assert_in_range(((const uint8_t *)words)[1], 1, fake.lim.push_segs);
	sq_rung(qp, true, db->lo);
	if (fake.on_doorbell)
		fake.on_doorbell(db);
}

void fake_doorbell(void *addr, uint64_t le_word)
{
	bool push = in_push_page(addr);
	uint64_t word = le64toh(le_word);
	struct fake_db *db;
	struct fake_obj *qp;

	assert_in_range(fake.ndbs, 0, FAKE_MAX_DBS - 1);
	db = &fake.db[fake.ndbs++];
	db->reg = (uint8_t *)addr - (uint8_t *)(push ? push_seen : uar_seen);
	db->lo = word;
	db->hi = word >> 32;
	switch (db->reg) {
	case SKUA_UAR_SQ:
		qp = fake_by_num(UVERBS_OBJECT_QP, db->hi);
		if (!qp)
			qp = fake_by_num(UVERBS_OBJECT_WQ, db->hi);
		assert_non_null(qp);
		if (qp->object == UVERBS_OBJECT_QP) {
			sq_rung(qp, push, db->lo);
		} else {
			assert_int_equal(db->lo, 0);
		}
		break;
	case SKUA_UAR_CQ_ARM:
		assert_false(push);
		assert_non_null(fake_by_num(UVERBS_OBJECT_CQ, db->hi & SKUA_UAR_CQ_ARM_CQN));
		break;
	default:
		fail_msg("doorbell at offset %#x of the UAR page", db->reg);
	}
	if (fake.on_doorbell)
		fake.on_doorbell(db);
}

void fake_barrier(enum fake_barrier kind)
{
	if (fake.on_barrier)
		fake.on_barrier(kind);
}

void fake_fence(int order)
{
	if (order == __ATOMIC_SEQ_CST)
		fake_barrier(FAKE_FENCE);
}

/* --- receive queues -------------------------------------------------------- */

const struct skua_wqe_data *fake_rq_wqe(const struct fake_obj *qp, uint32_t index)
{
	bool wq = qp->object == UVERBS_OBJECT_WQ;
	uint32_t log = wq ? qp->wq_req.log_wqes : qp->qp_req.log_rq;
	uint32_t stride = wq ? qp->wq_req.log_stride : qp->qp_req.log_rq_stride;
	uint64_t addr = wq ? qp->wq_req.buf_addr : qp->qp_req.buf_addr;

	return (void *)(uintptr_t)(addr + ((uint64_t)(index & ((1U << log) - 1)) << (4 + stride)));
}

static uint8_t *srq_at(const struct fake_obj *srq, uint32_t pos)
{
	assert_in_range(pos, 0, (1U << srq->srq_req.log_wqes) - 1);
	return (uint8_t *)(uintptr_t)srq->srq_req.buf_addr +
	       ((size_t)pos << (4 + srq->srq_req.log_stride));
}

int fake_srq_take(struct fake_obj *srq)
{
	const struct skua_wqe_next *link;
	uint32_t pos = srq->next;

	if (le32_to_cpu(fake_srq_dbr(srq)->pi) == srq->taken)
		return -1;
	link = (void *)srq_at(srq, pos);
	srq->next = le32_to_cpu(link->next);
	assert_false(link->reserved[0] | link->reserved[1] | link->reserved[2]);
	srq->taken++;
	return pos;
}

const struct skua_wqe_data *fake_srq_wqe(const struct fake_obj *srq, uint32_t pos)
{
	return (void *)(srq_at(srq, pos) + SKUA_WQE_SEG);
}

/* --- completions ----------------------------------------------------------- */

void fake_cqe(struct fake_obj *cq, const struct skua_cqe *cqe)
{
	uint32_t size = 1U << cq->log, ci = le32_to_cpu(fake_cq_dbr(cq)->ci);
	uint32_t len = le32_to_cpu(cqe->byte_len), bytes = cq->cq_req.cqe_size;
	uint8_t *entry = (uint8_t *)cq->ring + (size_t)(cq->pi & (size - 1)) * bytes;
	struct skua_cqe *at = (struct skua_cqe *)(entry + bytes - sizeof(*at));

	if (cq->pi - ci >= size)
		fail_msg("CQ of %u overflows: index %u, consumer at %u", size, cq->pi, ci);
	*at = *cqe;
	if (fake.payload) {
		assert_true(len <= (bytes == 128 ? 64 : 32));
		memcpy(len <= 32 ? at->data : entry, fake.payload, len);
		at->own |= cpu_to_le32(SKUA_CQE_F_INLINE);
	}
	le32p_replace_bits(&at->own, !(cq->pi >> cq->log & 1), SKUA_CQE_PHASE);
	cq->pi++;
}

__le32 fake_what(unsigned int index, enum skua_cqe_op op, unsigned int status)
{
	return cpu_to_le32(u32_encode_bits(index, SKUA_CQE_WQE_INDEX) |
			   u32_encode_bits(op, SKUA_CQE_OPCODE) |
			   u32_encode_bits(status, SKUA_CQE_STATUS));
}

void fake_sent(const struct ibv_qp *ibqp, uint32_t index, unsigned int status)
{
	struct fake_obj *qp = fake_qp(ibqp);
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(qp->num),
		.what = fake_what(index, SKUA_CQE_REQ, status),
		.timestamp = cpu_to_le64(7000 + index),
	};
	uint8_t wqe[1024];
	unsigned int i;

	for (i = 0; i < qp->nwqes && qp->wqe[i] != index; i++)
		;
	assert_true(i < qp->nwqes);
	qp->sq_head = index + (fake_wqe(qp, index, wqe) + 3) / 4;
	qp->nwqes -= i + 1;
	memmove(qp->wqe, qp->wqe + i + 1, qp->nwqes * sizeof(qp->wqe[0]));
	fake_cqe(known(UVERBS_OBJECT_CQ, qp->cq), &cqe);
}

void fake_rcvd(const struct ibv_qp *ibqp, enum skua_cqe_op op, unsigned int status, uint32_t len)
{
	struct fake_obj *qp = fake_qp(ibqp);
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(qp->num),
		.byte_len = cpu_to_le32(len),
		.what = fake_what(qp->rq_head, op, status),
	};

	assert_int_not_equal(le32_to_cpu(fake_qp_dbr(qp)->rq_pi), qp->rq_head);
	qp->rq_head++;
	fake_cqe(known(UVERBS_OBJECT_CQ, qp->recv_cq), &cqe);
}

void fake_rcvd_shared(const struct ibv_qp *ibqp, uint32_t pos, uint32_t len)
{
	struct fake_obj *qp = fake_qp(ibqp);
	struct skua_cqe cqe = {
		.qpn = cpu_to_le32(qp->num),
		.srqn = cpu_to_le32(known(UVERBS_OBJECT_SRQ, qp->srq)->num),
		.byte_len = cpu_to_le32(len),
		.what = fake_what(pos, SKUA_CQE_RECV, SKUA_CQE_OK),
		.own = cpu_to_le32(SKUA_CQE_F_SRQ),
	};

	fake_cqe(known(UVERBS_OBJECT_CQ, qp->recv_cq), &cqe);
}

/* --- what tests make often ------------------------------------------------- */

struct ibv_cq *fake_make_cq(int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(fake.ctx, cqe, NULL, NULL, 0);

	assert_non_null(cq);
	return cq;
}

struct ibv_qp_init_attr_ex fake_rss_attr(struct ibv_rwq_ind_table *table, uint8_t *key)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = fake.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = FAKE_RSS_KEY,
			.rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
		},
	};
}

struct ibv_qp *fake_make_qp_cap(struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
				enum ibv_qp_type type, const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = type,
		.cap = *cap,
	};
	struct ibv_qp *qp = ibv_create_qp(fake.pd, &attr);

	assert_non_null(qp);
	return qp;
}

/* In RTS: 8 blocks, 4 receives of 2 elements */
struct ibv_qp *fake_make_qp(struct ibv_cq *cq, enum ibv_qp_type type)
{
	static const struct ibv_qp_cap cap = {
		.max_send_wr = 8,
		.max_send_sge = 1,
		.max_recv_wr = 4,
		.max_recv_sge = 2,
	};
	struct ibv_qp *qp = fake_make_qp_cap(cq, cq, type, &cap);

	fake_modify(qp, IBV_QPS_RTS);
	return qp;
}

void fake_modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	assert_false(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

void fake_destroy_qp(struct ibv_qp *qp)
{
	assert_false(ibv_destroy_qp(qp));
}

void fake_destroy_cq(struct ibv_cq *cq)
{
	assert_false(ibv_destroy_cq(cq));
}

void fake_post_writes(struct ibv_qp *qp, unsigned int n, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = 0x1000, .length = 8, .lkey = 5 };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	for (; n; n--) {
		wr.wr_id = wr_id++;
		assert_false(ibv_post_send(qp, &wr, &bad));
	}
}

void fake_post_recvs(struct ibv_qp *qp, unsigned int n, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = 0x2000, .length = 64, .lkey = 6 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (; n; n--) {
		wr.wr_id = wr_id++;
		assert_false(ibv_post_recv(qp, &wr, &bad));
	}
}
