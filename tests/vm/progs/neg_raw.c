// SPDX-License-Identifier: GPL-2.0
/*
 * Below libibverbs: the driver's own structures short, long, garbage; and every
 * way of mapping what is not to be mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/skua-abi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <skua/hw/doorbell.h>

#include "neg.h"

/* --- one uverbs ioctl ---------------------------------------------------------- */

#define MAX_ATTRS	20

union req {
	struct ib_uverbs_ioctl_hdr hdr;
	uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + MAX_ATTRS * sizeof(struct ib_uverbs_attr)];
};

static void req_init(union req *r, unsigned int object, unsigned int method)
{
	memset(r, 0, sizeof(*r));
	r->hdr.object_id = object;
	r->hdr.method_id = method;
}

static struct ib_uverbs_attr *req_add(union req *r, unsigned int id, unsigned int len,
				      uint64_t data)
{
	struct ib_uverbs_attr *a = &r->hdr.attrs[r->hdr.num_attrs++];

	a->attr_id = id;
	a->len = len;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	a->data = data;
	return a;
}

/* Input: up to eight bytes go in the attribute itself. */
static void req_in(union req *r, unsigned int id, const void *p, unsigned int len)
{
	struct ib_uverbs_attr *a = req_add(r, id, len, (uintptr_t)p);

	if (len <= sizeof(a->data)) {
		a->data = 0;
		memcpy(&a->data, p, len);
	}
}

static int req_do(union req *r, int fd)
{
	r->hdr.length = sizeof(r->hdr) + r->hdr.num_attrs * sizeof(r->hdr.attrs[0]);
	return ioctl(fd, RDMA_VERBS_IOCTL, &r->hdr) ? errno : 0;
}

/* --- contexts --------------------------------------------------------------------- */

static int open_uverbs(struct neg *n)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", n->dev.ctx->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("%s: %m", path);
	return fd;
}

static int get_context(int fd, const void *in, unsigned int in_len, void *out,
		       unsigned int out_len)
{
	union req r;

	req_init(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	if (in)
		req_in(&r, UVERBS_ATTR_UHW_IN, in, in_len);
	if (out)
		req_add(&r, UVERBS_ATTR_UHW_OUT, out_len, (uintptr_t)out);
	return req_do(&r, fd);
}

static bool context_udata(struct neg *n)
{
	struct {
		struct skua_alloc_ucontext_req req;
		uint8_t tail[56];
	} in;
	struct skua_alloc_ucontext_resp resp;
	const struct {
		const char *what;
		uint32_t comp_mask, reserved;
		uint8_t tail;
		unsigned int len;
		int err;
	} t[] = {
		{ "short input", 0, 0, 0, 4, EINVAL },
		{ "unknown comp_mask", 1U << 31, 0, 0, 8, EOPNOTSUPP },
		{ "a page for pushes", SKUA_ALLOC_UCONTEXT_PUSH, 0, 0, 8, 0 },
		{ "a page for pushes in any case", SKUA_ALLOC_UCONTEXT_PUSH_ALWAYS, 0, 0, 8, 0 },
		{ "all of comp_mask", 0xffffffff, 0, 0, 8, EOPNOTSUPP },
		{ "reserved field", 0, 1, 0, 8, EOPNOTSUPP },
		{ "longer with something in it", 0, 0, 1, 64, EOPNOTSUPP },
		{ "longer but zero", 0, 0, 0, 64, 0 },
		{ "as it should be", 0, 0, 0, 8, 0 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int fd = open_uverbs(n), err;

		memset(&in, 0, sizeof(in));
		in.req.comp_mask = t[i].comp_mask;
		in.req.reserved = t[i].reserved;
		in.tail[40] = t[i].tail;
		err = get_context(fd, &in, t[i].len, &resp, sizeof(resp));
		close(fd);
		if (!expect_err(t[i].what, err, t[i].err))
			return false;
	}
	return true;
}

/* A response may be cut short; it may not go where nothing is mapped. */
static bool context_response(struct neg *n)
{
	struct skua_alloc_ucontext_req in = {};
	uint8_t out[sizeof(struct skua_alloc_ucontext_resp)];
	int fd = open_uverbs(n), err;
	unsigned int i;

	memset(out, 0xee, sizeof(out));
	err = get_context(fd, &in, sizeof(in), out, 16);
	close(fd);
	if (!expect_err("short response", err, 0))
		return false;
	for (i = 16; i < sizeof(out); i++)
		if (out[i] != 0xee)
			return fail("byte %u beyond a short response was written", i);

	fd = open_uverbs(n);
	err = get_context(fd, &in, sizeof(in), (void *)4096, sizeof(out));
	close(fd);
	return expect_err("response to nowhere", err, EFAULT);
}

/* --- mmap --------------------------------------------------------------------------- */

static bool may_map(int fd, uint64_t off, size_t len, int prot, int flags, int want)
{
	void *p = mmap(NULL, len, prot, flags, fd, off);
	int err = p == MAP_FAILED ? errno : 0;

	if (!err)
		munmap(p, len);
	if (!!err == !!want)
		return true;
	return fail("mmap of %zu at 0x%llx, prot %x, flags %x: %s", len, (unsigned long long)off,
		    prot, flags, err ? strerror(err) : "success");
}

static bool mmap_ways(struct neg *n)
{
	struct skua_alloc_ucontext_req in = {};
	struct skua_alloc_ucontext_resp r;
	size_t pg = sysconf(_SC_PAGESIZE);
	int fd = open_uverbs(n), fd2 = open_uverbs(n), nofd = open_uverbs(n);
	bool ok = true;
	uint64_t off;
	int prot;

	if (get_context(fd, &in, sizeof(in), &r, sizeof(r)))
		die("get_context: %m");
	if (get_context(fd2, &in, sizeof(in), (uint8_t[sizeof(r)]){}, sizeof(r)))
		die("get_context: %m");

	/* as it should be */
	ok = may_map(fd, r.uar_offset, r.uar_size, PROT_WRITE, MAP_SHARED, 0) &&
	     may_map(fd, r.status_offset, pg, PROT_READ, MAP_SHARED, 0);
	/* every protection of both */
	for (prot = 0; ok && prot < 8; prot++) {
		bool uar = prot == PROT_WRITE;
		bool status = !(prot & PROT_WRITE) && prot != PROT_EXEC;

		ok = may_map(fd, r.uar_offset, pg, prot, MAP_SHARED, uar ? 0 : EINVAL) &&
		     may_map(fd, r.status_offset, pg, prot, MAP_SHARED, status ? 0 : EPERM);
	}
	/* not a copy, not another size */
	ok = ok && may_map(fd, r.uar_offset, pg, PROT_WRITE, MAP_PRIVATE, EINVAL) &&
	     may_map(fd, r.status_offset, pg, PROT_READ, MAP_PRIVATE, EINVAL) &&
	     may_map(fd, r.uar_offset, 2 * pg, PROT_WRITE, MAP_SHARED, EINVAL) &&
	     may_map(fd, r.status_offset, 2 * pg, PROT_READ, MAP_SHARED, EINVAL) &&
	     may_map(fd, r.uar_offset, 1024 * pg, PROT_WRITE, MAP_SHARED, EINVAL);
	/* not before there is a context */
	ok = ok && may_map(nofd, r.uar_offset, pg, PROT_WRITE, MAP_SHARED, EINVAL);
	/* every other place */
	for (off = 0; ok && off < 64 * pg; off += pg) {
		if (off != r.uar_offset && off != r.status_offset)
			ok = may_map(fd, off, pg, PROT_WRITE, MAP_SHARED, EINVAL) &&
			     may_map(fd, off, pg, PROT_READ, MAP_SHARED, EINVAL);
	}
	for (off = 1ULL << 20; ok && off && off < 1ULL << 62; off <<= 1)
		if (off != r.uar_offset && off != r.status_offset)
			ok = may_map(fd, off, pg, PROT_WRITE, MAP_SHARED, EINVAL);
	close(fd);
	close(fd2);
	close(nofd);
	return ok;
}

/* The status page of a context that is made for @fd */
static void *map_status(int fd, int prot)
{
	struct skua_alloc_ucontext_req in = {};
	struct skua_alloc_ucontext_resp r;
	void *p;

	if (get_context(fd, &in, sizeof(in), &r, sizeof(r)))
		die("get_context: %m");
	p = mmap(NULL, sysconf(_SC_PAGESIZE), prot, MAP_SHARED, fd, r.status_offset);
	if (p == MAP_FAILED)
		die("status page: %m");
	return p;
}

static bool says_alive(const volatile struct skua_status_page *p)
{
	return p->alive || fail("the status page says dead");
}

/* A status page that was mapped for reading stays so. */
static bool mprotect_ways(struct neg *n)
{
	size_t pg = sysconf(_SC_PAGESIZE);
	int fd = open_uverbs(n);
	void *p = map_status(fd, PROT_READ);
	bool ok = says_alive(p);

	if (ok && !mprotect(p, pg, PROT_READ | PROT_WRITE))
		ok = fail("the status page was made writable");
	if (ok && !mprotect(p, pg, PROT_READ | PROT_EXEC))
		ok = fail("the status page was made executable");
	munmap(p, pg);
	close(fd);
	return ok;
}

#ifdef __x86_64__
static void faulted(int sig, siginfo_t *info, void *context)
{
	const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	/* Bit 4 of a page fault's error code: it is about the fetch of an instruction. */
	_exit(!(regs[REG_ERR] & 1 << 4));
}

/* A process that jumps to @p gets no instruction from there. */
static bool cannot_run(void *p)
{
	struct sigaction action = { .sa_sigaction = faulted, .sa_flags = SA_SIGINFO };
	pid_t pid = fork();
	int status;

	if (!pid) {
		sigaction(SIGSEGV, &action, NULL);
		((void (*)(void))p)();
		_exit(2);
	}
	return waitpid(pid, &status, 0) == pid &&
	       (!status || fail("instructions of the status page are executed: %#x", status));
}

/* A status page that was mapped for reading and for execution can only be read. */
static bool mmap_exec(struct neg *n)
{
	int fd = open_uverbs(n);
	void *p = map_status(fd, PROT_READ | PROT_EXEC);
	bool ok = says_alive(p) && cannot_run(p);

	munmap(p, sysconf(_SC_PAGESIZE));
	close(fd);
	return ok;
}
#endif

/* --- CQs ------------------------------------------------------------------------------ */

static int raw_cq(struct neg *n, uint32_t cqe, const void *in, unsigned int len, uint32_t *handle)
{
	struct skua_create_cq_resp resp;
	struct ib_uverbs_attr *h;
	uint64_t user = 1;
	uint32_t vec = 0, got;
	union req r;
	int err;

	req_init(&r, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	h = req_add(&r, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	req_in(&r, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe));
	req_in(&r, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &user, sizeof(user));
	req_in(&r, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vec, sizeof(vec));
	req_add(&r, UVERBS_ATTR_CREATE_CQ_RESP_CQE, sizeof(got), (uintptr_t)&got);
	if (len)
		req_in(&r, UVERBS_ATTR_UHW_IN, in, len);
	req_add(&r, UVERBS_ATTR_UHW_OUT, sizeof(resp), (uintptr_t)&resp);
	err = req_do(&r, n->dev.ctx->cmd_fd);
	*handle = h->data;
	return err;
}

static void raw_destroy(struct neg *n, unsigned int object, unsigned int method,
			unsigned int id_handle, unsigned int id_resp, uint32_t handle)
{
	uint8_t resp[16];
	union req r;

	req_init(&r, object, method);
	req_add(&r, id_handle, 0, handle);
	req_add(&r, id_resp, object == UVERBS_OBJECT_QP ?
			     sizeof(struct ib_uverbs_destroy_qp_resp) :
			     sizeof(struct ib_uverbs_destroy_cq_resp), (uintptr_t)resp);
	if (req_do(&r, n->dev.ctx->cmd_fd))
		die("cannot destroy what a case made: %m");
}

struct mem {
	uint8_t *ring;
	uint8_t *dbr;
};

static struct mem mem_make(void)
{
	uint8_t *p = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap: %m");
	return (struct mem){ .ring = p, .dbr = p + 8192 };
}

static bool cq_udata(struct neg *n)
{
	struct mem m = mem_make();
	const struct skua_create_cq_req good = {
		.buf_addr = (uintptr_t)m.ring, .buf_len = 64 * 64,
		.dbr_addr = (uintptr_t)m.dbr, .cqe_size = 64,
	};
	struct {
		const char *what;
		struct skua_create_cq_req req;
	} t[] = {
#define T(what, field, value) \
		{ what, ({ struct skua_create_cq_req r_ = good; r_.field = value; r_; }) }
		T("no buffer", buf_addr, 0),
		T("buffer of the kernel", buf_addr, 0xffff888000000000ULL),
		T("buffer at the end", buf_addr, (uint64_t)-4096),
		T("buffer not aligned", buf_addr, good.buf_addr + 4),
		T("buffer empty", buf_len, 0),
		T("buffer too short", buf_len, 64 * 64 - 1),
		T("no record", dbr_addr, 0),
		T("record of the kernel", dbr_addr, 0xffff888000000000ULL),
		T("record not aligned", dbr_addr, good.dbr_addr + 4),
		T("entry size 0", cqe_size, 0),
		T("entry size 63", cqe_size, 63),
		T("entry size 256", cqe_size, 256),
		T("entry size huge", cqe_size, 1U << 31),
		T("unknown comp_mask", comp_mask, 1),
		T("all of comp_mask", comp_mask, 0xffffffff),
#undef T
	};
	struct {
		struct skua_create_cq_req req;
		uint8_t tail[32];
	} longer = { good };
	uint32_t handle;
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (!raw_cq(n, 64, &t[i].req, sizeof(t[i].req), &handle))
			return fail("CQ made with %s", t[i].what);
	for (i = 1; i < sizeof(good); i++)
		if (!raw_cq(n, 64, &good, i, &handle))
			return fail("CQ made with %u bytes of input", i);
	longer.tail[17] = 1;
	if (!raw_cq(n, 64, &longer, sizeof(longer), &handle))
		return fail("CQ made with a tail");
	if (!raw_cq(n, 64, NULL, 0, &handle))
		return fail("CQ made with no input");
	/* and the frame itself is right */
	if (!expect_err("good CQ", raw_cq(n, 64, &good, sizeof(good), &handle), 0))
		return false;
	raw_destroy(n, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, UVERBS_ATTR_DESTROY_CQ_HANDLE,
		    UVERBS_ATTR_DESTROY_CQ_RESP, handle);
	munmap(m.ring, 16384);
	return true;
}

/* --- QPs ------------------------------------------------------------------------------ */

static int raw_qp(struct neg *n, struct ibv_cq *cq, const void *in, unsigned int len,
		  uint32_t *handle)
{
	struct ib_uverbs_qp_cap cap = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
	}, cap_out;
	struct skua_create_qp_resp resp;
	struct ib_uverbs_attr *h;
	uint64_t user = 1, type = IB_UVERBS_QPT_RC;
	uint32_t qpn;
	union req r;
	int err;

	req_init(&r, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	h = req_add(&r, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
	req_add(&r, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, n->dev.pd->handle);
	req_add(&r, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, cq->handle);
	req_add(&r, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, cq->handle);
	req_in(&r, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user, sizeof(user));
	req_in(&r, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	req_in(&r, UVERBS_ATTR_CREATE_QP_TYPE, &type, sizeof(type));
	req_add(&r, UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap_out), (uintptr_t)&cap_out);
	req_add(&r, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, sizeof(qpn), (uintptr_t)&qpn);
	if (len)
		req_in(&r, UVERBS_ATTR_UHW_IN, in, len);
	req_add(&r, UVERBS_ATTR_UHW_OUT, sizeof(resp), (uintptr_t)&resp);
	err = req_do(&r, n->dev.ctx->cmd_fd);
	*handle = h->data;
	return err;
}

static bool qp_udata_with(struct neg *n, struct ibv_cq *cq)
{
	struct mem m = mem_make();
	const struct skua_create_qp_req good = {
		.buf_addr = (uintptr_t)m.ring, .buf_len = 64 + 4 * 64,
		.dbr_addr = (uintptr_t)m.dbr,
		.log_sq = 2, .log_rq = 2, .log_rq_stride = 0, .has_sq = 1, .has_rq = 1,
	};
	struct {
		const char *what;
		struct skua_create_qp_req req;
	} t[] = {
#define T(what, field, value) \
		{ what, ({ struct skua_create_qp_req r_ = good; r_.field = value; r_; }) }
		T("no buffer", buf_addr, 0),
		T("buffer of the kernel", buf_addr, 0xffff888000000000ULL),
		T("buffer at the end", buf_addr, (uint64_t)-64),
		T("buffer not aligned", buf_addr, good.buf_addr + 16),
		T("buffer too short", buf_len, 63 + 4 * 64),
		T("buffer length 2^63, address 2^63", buf_addr, 1ULL << 63),
		T("no record", dbr_addr, 0),
		T("record of the kernel", dbr_addr, 0xffff888000000000ULL),
		T("record not aligned", dbr_addr, good.dbr_addr + 8),
		T("send ring of 2^31", log_sq, 31),
		T("send ring of 2^32", log_sq, 32),
		T("send ring of 2^64", log_sq, 64),
		T("send ring of 2^255", log_sq, 255),
		T("receive ring of 2^31", log_rq, 31),
		T("receive ring of 2^255", log_rq, 255),
		T("stride of 2^16", log_rq_stride, 16),
		T("stride of 2^255", log_rq_stride, 255),
		T("send ring too small", log_sq, 1),
		T("receive ring too small", log_rq, 1),
		T("no send queue", has_sq, 0),
		T("no receive queue", has_rq, 0),
		T("has_sq 2", has_sq, 2),
		T("has_rq 255", has_rq, 255),
		T("reserved", reserved[1], 1),
		T("unknown flags", flags, 1U << 31),
		T("unknown comp_mask", comp_mask, 1),
#undef T
	};
	struct {
		struct skua_create_qp_req req;
		uint8_t tail[32];
	} longer = { good };
	uint32_t handle;
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (!raw_qp(n, cq, &t[i].req, sizeof(t[i].req), &handle))
			return fail("QP made with %s", t[i].what);
	for (i = 1; i < sizeof(good); i++)
		if (!raw_qp(n, cq, &good, i, &handle))
			return fail("QP made with %u bytes of input", i);
	longer.tail[17] = 1;
	if (!raw_qp(n, cq, &longer, sizeof(longer), &handle))
		return fail("QP made with a tail");
	if (!raw_qp(n, cq, NULL, 0, &handle))
		return fail("QP made with no input");
	if (!expect_err("good QP", raw_qp(n, cq, &good, sizeof(good), &handle), 0))
		return false;
	raw_destroy(n, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, UVERBS_ATTR_DESTROY_QP_HANDLE,
		    UVERBS_ATTR_DESTROY_QP_RESP, handle);
	munmap(m.ring, 16384);
	return true;
}

static bool qp_udata(struct neg *n)
{
	struct ibv_cq *cq = ibv_create_cq(n->dev.ctx, 16, NULL, NULL, 0);
	bool ok;

	if (!cq)
		die("create_cq: %m");
	ok = qp_udata_with(n, cq);
	if (ok && ibv_destroy_cq(cq))
		ok = fail("a refused QP holds its CQ");
	return ok;
}

/* Random bytes: whatever is answered, the device works on. */
static bool garbage(struct neg *n)
{
	struct ibv_cq *cq = ibv_create_cq(n->dev.ctx, 16, NULL, NULL, 0);
	struct rng rng = rng_make(1, 0x9a7b);
	uint64_t buf[16];
	uint32_t handle;
	unsigned int i, k;

	if (!cq)
		die("create_cq: %m");
	for (i = 0; i < 2000; i++) {
		for (k = 0; k < 16; k++)
			buf[k] = rng_next(&rng) & (rng_below(&rng, 2) ? ~0ULL : 0xff);
		if (!raw_qp(n, cq, buf, 1 + rng_below(&rng, sizeof(buf)), &handle))
			return fail("a QP was made of garbage, try %u", i);
		if (!raw_cq(n, rng_next(&rng), buf, 1 + rng_below(&rng, sizeof(buf)), &handle))
			return fail("a CQ was made of garbage, try %u", i);
	}
	return !ibv_destroy_cq(cq) || fail("destroy_cq: %m");
}

const struct neg_case cases_raw[] = {
	{ "context input", context_udata, .skua_only = true },
	{ "context response", context_response, .skua_only = true },
	{ "mmap of each place, size, protection", mmap_ways, .skua_only = true },
	{ "mprotect of the status page", mprotect_ways, .skua_only = true },
#ifdef __x86_64__
	{ "execution of the status page", mmap_exec, .skua_only = true },
#endif
	{ "CQ input", cq_udata, .skua_only = true },
	{ "QP input", qp_udata, .skua_only = true },
	{ "garbage input", garbage, .skua_only = true },
	{}
};
