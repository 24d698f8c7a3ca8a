// SPDX-License-Identifier: GPL-2.0
/*
 * skua-api -d DEV -g GID; TAP. The newer half of the verbs on one device with itself:
 * errors of ibv_wr_complete(), extended CQs and their clocks, thread and parent
 * domains, flags that nobody knows, the port's speed.
 */
#include <errno.h>
#include <net/if.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/skua-abi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define SIZE	4096
#define INLINE	64
#define NS	1000000000LL

#define OPS	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE)

static struct dev dev;
static uint8_t buf[2][SIZE] __attribute__((aligned(SIZE)));
static struct ibv_mr *mr[2];

/* Two QPs on one CQ, connected. */
struct pair {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *x;	/* of qp[0] */
};

static struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_cq_ex *cq, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { 16, 16, 1, 1, INLINE },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(dev.ctx, &attr);
}

static bool pair_make(struct pair *p, struct ibv_pd *pd, struct ibv_cq_init_attr_ex *cq)
{
	struct ibv_cq_init_attr_ex plain = { .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct addr a[2];
	int i;

	memset(p, 0, sizeof(*p));
	cq = cq ? cq : &plain;
	cq->cqe = 64;
	p->cq = ibv_create_cq_ex(dev.ctx, cq);
	if (!p->cq)
		return fail("create_cq_ex: %m");
	for (i = 0; i < 2; i++) {
		p->qp[i] = qp_make(pd, p->cq, OPS);
		if (!p->qp[i])
			return fail("create_qp_ex: %m");
		a[i] = qp_addr(&dev, p->qp[i], 100 + i);
	}
	for (i = 0; i < 2; i++)
		qp_connect(&dev, p->qp[i], a[i].psn, &a[!i], &link_default);
	p->x = ibv_qp_to_qp_ex(p->qp[0]);
	return true;
}

static bool pair_drop(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		if (p->qp[i] && ibv_destroy_qp(p->qp[i]))
			return fail("destroy_qp: %m");
	return !p->cq || !ibv_destroy_cq(ibv_cq_ex_to_cq(p->cq)) || fail("destroy_cq: %m");
}

static bool recv_post(struct pair *p)
{
	struct ibv_sge sg = { (uintptr_t)buf[1], SIZE, mr[1]->lkey };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = &sg, .num_sge = 1 }, *bad;

	return expect_err("post_recv", ibv_post_recv(p->qp[1], &wr, &bad), 0);
}

/* Send with immediate data, and leave at the receive; the CQ is being polled then. */
static bool sent_polled(struct pair *p)
{
	struct ibv_poll_cq_attr attr = { 0 };
	double end = now() + 20;
	int i, err = ENOENT;

	if (!recv_post(p))
		return false;
	ibv_wr_start(p->x);
	p->x->wr_id = 3;
	p->x->wr_flags = 0;
	ibv_wr_send_imm(p->x, htobe32(0x1234));
	ibv_wr_set_inline_data(p->x, "skua", 4);
	if (!expect_err("wr_complete", ibv_wr_complete(p->x), 0))
		return false;
	/* Two completions, in any order. */
	for (i = 0; i < 2; i++) {
		while (now() < end && (err = ibv_start_poll(p->cq, &attr)) == ENOENT)
			;
		if (err || p->cq->status)
			return fail("poll: %s, status %d", strerror(err), err ? 0 : p->cq->status);
		if (i || p->cq->wr_id == 7)
			return p->cq->wr_id == 7 || i;
		ibv_end_poll(p->cq);
	}
	return false;
}

/* --- cases -------------------------------------------------------------------- */

static bool wr_errors(struct pair *p)
{
	static uint8_t much[INLINE * 8];
	int i;

	ibv_wr_start(p->x);
	ibv_wr_rdma_read(p->x, mr[1]->rkey, (uintptr_t)buf[1]);
	ibv_wr_set_sge(p->x, mr[0]->lkey, (uintptr_t)buf[0], 8);
	if (!expect_err("an opcode that was not asked for", ibv_wr_complete(p->x), EINVAL))
		return false;
	ibv_wr_start(p->x);
	ibv_wr_send(p->x);
	ibv_wr_set_inline_data(p->x, much, sizeof(much));
	if (!expect_err("too much inline", ibv_wr_complete(p->x), EINVAL))
		return false;
	ibv_wr_start(p->x);
	ibv_wr_set_sge(p->x, mr[0]->lkey, (uintptr_t)buf[0], 8);
	if (!expect_err("a setter alone", ibv_wr_complete(p->x), EINVAL))
		return false;
	ibv_wr_start(p->x);
	for (i = 0; i < 1000; i++)
		ibv_wr_rdma_write(p->x, mr[1]->rkey, (uintptr_t)buf[1]);
	if (!expect_err("more than the ring holds", ibv_wr_complete(p->x), ENOMEM))
		return false;
	ibv_wr_start(p->x);
	ibv_wr_send(p->x);
	ibv_wr_abort(p->x);
	/* Nothing of all that was posted. */
	if (!sent_polled(p))
		return false;
	ibv_end_poll(p->cq);
	return !memcmp(buf[1], "skua", 4) || fail("wrong bytes");
}

static bool wr_state(struct pair *p)
{
	struct ibv_qp *qp = qp_make(dev.pd, p->cq, OPS);
	struct ibv_qp_ex *x;
	int err;

	if (!qp)
		return fail("create_qp_ex: %m");
	x = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(x);
	ibv_wr_send(x);
	err = ibv_wr_complete(x);
	ibv_destroy_qp(qp);
	return expect_err("a QP in RESET", err, EINVAL);
}

static bool unknown_flags(struct pair *p)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS };
	struct ibv_parent_domain_init_attr pd = { .pd = dev.pd, .comp_mask = 1 << 30 };
	struct ibv_td_init_attr td = { .comp_mask = 1 };

	errno = 0;
	if (qp_make(dev.pd, p->cq, IBV_QP_EX_WITH_TSO))
		return fail("an RC QP with segmentation");
	if (!expect_err("TSO", errno, EOPNOTSUPP))
		return false;
	cq.flags = 1U << 31;
	if (ibv_create_cq_ex(dev.ctx, &cq) || !expect_err("CQ flags", errno, EOPNOTSUPP))
		return false;
	cq.flags = 0;
	cq.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	if (ibv_create_cq_ex(dev.ctx, &cq) || !expect_err("tag matching", errno, EOPNOTSUPP))
		return false;
	cq.wc_flags = 0;
	cq.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	cq.parent_domain = dev.pd;
	if (ibv_create_cq_ex(dev.ctx, &cq) || !expect_err("a PD as parent", errno, EINVAL))
		return false;
	if (ibv_alloc_parent_domain(dev.ctx, &pd) || !expect_err("domain's mask", errno, EOPNOTSUPP))
		return false;
	return !ibv_alloc_td(dev.ctx, &td) && expect_err("thread domain's mask", errno, EOPNOTSUPP);
}

static bool fields(struct pair *p)
{
	bool ok;

	if (!sent_polled(p))
		return false;
	ok = ibv_wc_read_opcode(p->cq) == IBV_WC_RECV && ibv_wc_read_byte_len(p->cq) == 4 &&
	     ibv_wc_read_imm_data(p->cq) == htobe32(0x1234) &&
	     ibv_wc_read_wc_flags(p->cq) & IBV_WC_WITH_IMM &&
	     ibv_wc_read_qp_num(p->cq) == p->qp[1]->qp_num && !ibv_wc_read_vendor_err(p->cq) &&
	     !ibv_wc_read_slid(p->cq) && !ibv_wc_read_dlid_path_bits(p->cq);
	ibv_end_poll(p->cq);
	return ok || fail("a field is wrong");
}

static int64_t wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

/* A completion's time lies between a look before the send and one after the poll. */
static bool clocks(struct pair *unused)
{
	struct ibv_values_ex before = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK }, after = before;
	struct ibv_cq_init_attr_ex cq = {
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	int64_t from, to, ns;
	struct pair p;
	uint64_t ts;
	bool ok;

	(void)unused;
	if (!pair_make(&p, dev.pd, &cq))
		return false;
	from = wall();
	if (!expect_err("rt values", ibv_query_rt_values_ex(dev.ctx, &before), 0) || !sent_polled(&p))
		return false;
	ts = ibv_wc_read_completion_ts(p.cq);
	ns = ibv_wc_read_completion_wallclock_ns(p.cq);
	ibv_end_poll(p.cq);
	to = wall();
	if (!expect_err("rt values", ibv_query_rt_values_ex(dev.ctx, &after), 0))
		return false;
	ok = before.comp_mask == IBV_VALUES_MASK_RAW_CLOCK &&
	     ts > (uint64_t)before.raw_clock.tv_nsec && ts < (uint64_t)after.raw_clock.tv_nsec;
	if (!ok)
		fail("stamp %ju is not between %jd and %jd", (uintmax_t)ts,
		     (intmax_t)before.raw_clock.tv_nsec, (intmax_t)after.raw_clock.tv_nsec);
	/* A look at both clocks is as exact as a register read is short. */
	else if (ns < from - NS / 50 || ns > to + NS / 50)
		ok = fail("%jd ns is not between %jd and %jd", (intmax_t)ns, (intmax_t)from,
			  (intmax_t)to);
	return pair_drop(&p) && ok;
}

static int allocated;

static void *my_alloc(struct ibv_pd *pd, void *ctx, size_t size, size_t align, uint64_t type)
{
	void *p = NULL;

	(void)pd;
	(void)type;
	if (ctx != &allocated || posix_memalign(&p, align, size))
		return NULL;
	memset(p, 0xff, size);
	allocated++;
	return p;
}

static void my_free(struct ibv_pd *pd, void *ctx, void *p, uint64_t type)
{
	(void)pd;
	(void)ctx;
	(void)type;
	free(p);
	allocated--;
}

static bool domains(struct pair *unused)
{
	struct ibv_cq_init_attr_ex cq = {
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD | IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_parent_domain_init_attr attr = {
		.pd = dev.pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = my_alloc,
		.free = my_free,
		.pd_context = &allocated,
	};
	struct ibv_td_init_attr no = { 0 };
	struct pair p;

	(void)unused;
	attr.td = ibv_alloc_td(dev.ctx, &no);
	if (!attr.td)
		return fail("alloc_td: %m");
	cq.parent_domain = ibv_alloc_parent_domain(dev.ctx, &attr);
	if (!cq.parent_domain)
		return fail("alloc_parent_domain: %m");
	if (!pair_make(&p, cq.parent_domain, &cq))
		return false;
	if (allocated != 3)
		return fail("%d rings came from the allocator, not 3", allocated);
	if (!sent_polled(&p))
		return false;
	ibv_end_poll(p.cq);
	if (!expect_err("a thread domain in use", ibv_dealloc_td(attr.td), EBUSY) ||
	    !expect_err("a PD in use", ibv_dealloc_pd(dev.pd), EBUSY) ||
	    !expect_err("a parent domain in use", ibv_dealloc_pd(cq.parent_domain), EBUSY) ||
	    !pair_drop(&p))
		return false;
	if (allocated)
		return fail("%d rings were not given back", allocated);
	return expect_err("dealloc parent domain", ibv_dealloc_pd(cq.parent_domain), 0) &&
	       expect_err("dealloc thread domain", ibv_dealloc_td(attr.td), 0);
}

/* A context, a domain and a region by their handles: the key serves the same bytes. */
static bool imported(struct pair *p)
{
	struct ibv_context *ctx = ibv_import_device(dup(dev.ctx->cmd_fd));
	struct ibv_pd *pd = ctx ? ibv_import_pd(ctx, dev.pd->handle) : NULL;
	struct ibv_mr *copy = pd ? ibv_import_mr(pd, mr[1]->handle) : NULL;
	bool ok = copy && copy->rkey == mr[1]->rkey && copy->lkey == mr[1]->lkey &&
		  copy->length == SIZE;

	(void)p;
	if (!ok)
		fail("context %d, domain %d, region %d: %m", !!ctx, !!pd, !!copy);
	if (copy)
		ibv_unimport_mr(copy);
	if (pd)
		ibv_unimport_pd(pd);
	return (!ctx || !ibv_close_device(ctx) || fail("close_device: %m")) && ok;
}

/* --- what the device tells ------------------------------------------------- */

/* Of kernel 7.2: newer than the headers of libibverbs here. */
enum { METHOD_QUERY_PORT_SPEED = UVERBS_METHOD_QUERY_GID_ENTRY + 1 };
enum { ATTR_PORT_SPEED_PORT_NUM, ATTR_PORT_SPEED_RESP };

/* In units of 100 Mb/s; 0 or errno. */
static int port_speed(unsigned int port, uint64_t *speed)
{
	struct uverbs_call c = { .attr = {
		{ .attr_id = ATTR_PORT_SPEED_PORT_NUM, .flags = UVERBS_ATTR_F_MANDATORY,
		  .len = sizeof(uint64_t), .data = port },
		{ .attr_id = ATTR_PORT_SPEED_RESP, .flags = UVERBS_ATTR_F_MANDATORY,
		  .len = sizeof(*speed), .data = (uintptr_t)speed },
	} };

	return uverbs_call(dev.ctx, &c, UVERBS_OBJECT_DEVICE, METHOD_QUERY_PORT_SPEED);
}

/* As the netdev of the GID has it, in Mb/s; -1: it does not say. */
static int netdev_speed(void)
{
	char name[IF_NAMESIZE], path[64];
	struct ibv_gid_entry entry;
	int speed = -1;
	FILE *f;

	if (ibv_query_gid_ex(dev.ctx, 1, dev.gid_index, &entry, 0) ||
	    !if_indextoname(entry.ndev_ifindex, name))
		return -1;
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &speed) != 1)
		speed = -1;
	fclose(f);
	return speed;
}

static bool speed_of_port(struct pair *p)
{
	uint64_t speed = ~0ULL;
	int err = port_speed(1, &speed), mbps;

	(void)p;
	if (err == EPROTONOSUPPORT)
		return skip("the kernel has no port speed");
	mbps = netdev_speed();
	return expect_err("port speed", err, 0) &&
	       ((mbps > 0 && speed == (uint64_t)mbps / 100) ||
		fail("speed %ju, netdev %d Mb/s", (uintmax_t)speed, mbps)) &&
	       expect_err("speed of port 0", port_speed(0, &speed), EINVAL) &&
	       expect_err("speed of port 2", port_speed(2, &speed), EINVAL);
}

/* The core's part of the answer is to be had without the driver's, and the other way round. */
static bool context_asked(struct pair *p)
{
	uint32_t vectors = 0;
	struct skua_alloc_ucontext_resp resp = {};
	struct uverbs_call core = { .num = 1, .attr = {
		ATTR(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, sizeof(vectors), &vectors),
	} };
	struct uverbs_call driver = { .num = 1, .attr = {
		ATTR(SKUA_ATTR_QUERY_CONTEXT_RESP, sizeof(resp), &resp),
	} };

	(void)p;
	return expect_err("the core's part alone",
			  uverbs_call(dev.ctx, &core, UVERBS_OBJECT_DEVICE,
				      UVERBS_METHOD_QUERY_CONTEXT), 0) &&
	       (vectors == (uint32_t)dev.ctx->num_comp_vectors || fail("%u vectors", vectors)) &&
	       expect_err("the driver's part alone",
			  uverbs_call(dev.ctx, &driver, UVERBS_OBJECT_DEVICE,
				      UVERBS_METHOD_QUERY_CONTEXT), 0) &&
	       (resp.uar_size == (uint32_t)getpagesize() || fail("UAR of %u bytes", resp.uar_size));
}

/* What the device has it announces, and no less of it. */
static bool announced(struct pair *p)
{
	struct ibv_device_attr attr;

	(void)p;
	if (ibv_query_device(dev.ctx, &attr))
		return fail("query_device: %m");
	return (attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING ||
		fail("no flow steering: flags %#x", attr.device_cap_flags)) &&
	       (attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM ||
		fail("no checksums of raw packets: flags %#x", attr.device_cap_flags)) &&
	       (attr.max_pd == (1 << 24) - 1 || fail("%d protection domains", attr.max_pd));
}

/* --- objects by attributes that libibverbs does not know yet: kernel 7.2 ------------ */

enum { METHOD_REG_MR = UVERBS_METHOD_REG_DMABUF_MR + 1 };
enum {
	ATTR_REG_MR_HANDLE, ATTR_REG_MR_PD_HANDLE, ATTR_REG_MR_DMA_HANDLE, ATTR_REG_MR_IOVA,
	ATTR_REG_MR_ADDR, ATTR_REG_MR_LENGTH, ATTR_REG_MR_ACCESS_FLAGS, ATTR_REG_MR_FD,
	ATTR_REG_MR_FD_OFFSET, ATTR_REG_MR_RESP_LKEY, ATTR_REG_MR_RESP_RKEY
};

static int mr_query(uint32_t handle, uint64_t *length, uint64_t *iova)
{
	uint32_t key[2];
	struct uverbs_call c = { .num = 5, .attr = {
		ATTR(UVERBS_ATTR_QUERY_MR_HANDLE, 0, handle),
		ATTR(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, &key[0]),
		ATTR(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, &key[1]),
		ATTR(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, length),
		ATTR(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, iova),
	} };

	return uverbs_call(dev.ctx, &c, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
}

static bool mr_is(const char *what, uint32_t handle, uint64_t length, uint64_t iova)
{
	uint64_t have[2] = { ~0ULL, ~0ULL };

	return expect_err(what, mr_query(handle, &have[0], &have[1]), 0) &&
	       ((have[0] == length && have[1] == iova) ||
		fail("%s: %ju bytes at %#jx, not %ju at %#jx", what, (uintmax_t)have[0],
		     (uintmax_t)have[1], (uintmax_t)length, (uintmax_t)iova));
}

static bool mr_drop(uint32_t handle)
{
	struct uverbs_call c = { .num = 1, .attr = {
		ATTR(UVERBS_ATTR_DESTROY_MR_HANDLE, 0, handle),
	} };

	return expect_err("destroy", uverbs_call(dev.ctx, &c, UVERBS_OBJECT_MR,
						 UVERBS_METHOD_MR_DESTROY), 0);
}

static bool mr_by_attributes(int access)
{
	uint64_t iova = 0x5000 + ((uintptr_t)buf[0] & (SIZE - 1)) + 3, addr = (uintptr_t)buf[0] + 3;
	uint32_t key[2], handle;
	struct uverbs_call c = { .num = 8, .attr = {
		ATTR(ATTR_REG_MR_HANDLE, 0, 0),
		ATTR(ATTR_REG_MR_PD_HANDLE, 0, dev.pd->handle),
		ATTR(ATTR_REG_MR_IOVA, 8, iova),
		ATTR(ATTR_REG_MR_ADDR, 8, addr),
		ATTR(ATTR_REG_MR_LENGTH, 8, 1234),
		ATTR(ATTR_REG_MR_ACCESS_FLAGS, 4, access),
		ATTR(ATTR_REG_MR_RESP_LKEY, 4, &key[0]),
		ATTR(ATTR_REG_MR_RESP_RKEY, 4, &key[1]),
	} };
	int err = uverbs_call(dev.ctx, &c, UVERBS_OBJECT_MR, METHOD_REG_MR);
	bool ok;

	if (err == EPROTONOSUPPORT)
		return skip("the kernel has no such method");
	if (!expect_err("REG_MR", err, 0))
		return false;
	handle = c.attr[0].data;
	ok = mr_is(access & IBV_ACCESS_ON_DEMAND ? "on demand" : "pinned", handle, 1234, iova);
	return mr_drop(handle) && ok;
}

/* Other processes, and "rdma resource show mr", are told where a region lies. */
static bool regions_told(struct pair *p)
{
	struct ibv_alloc_dm_attr attr = { .length = SIZE };
	struct ibv_device_attr_ex ex;
	struct ibv_dm *dm;
	struct ibv_mr *of_dm;
	bool ok = true;

	(void)p;
	if (ibv_query_device_ex(dev.ctx, NULL, &ex))
		return fail("query_device_ex: %m");
	dm = ibv_alloc_dm(dev.ctx, &attr);
	if (dm) {
		of_dm = ibv_reg_dm_mr(dev.pd, dm, 64, 777,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
		ok = of_dm ? mr_is("device memory", of_dm->handle, 777, 0) && !ibv_dereg_mr(of_dm) :
			     fail("reg_dm_mr: %m");
		ibv_free_dm(dm);
	}
	if (ok && ex.odp_caps.general_caps & IBV_ODP_SUPPORT)
		ok = mr_by_attributes(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	return ok && mr_by_attributes(IBV_ACCESS_LOCAL_WRITE);
}

/* Four receives of one element, four blocks of sends. */
#define RINGS	(4 * 16 + 4 * 64)

/* A QP with no ring at its address, made and destroyed; 0 or errno. */
static int qp_once(struct pair *p, uint16_t attr, const struct buffer_desc *desc)
{
	struct ib_uverbs_qp_cap cap = { 1, 1, 1, 1, 0 };
	struct skua_create_qp_req req = {
		.buf_len = RINGS, .has_sq = 1, .has_rq = 1, .log_sq = 2, .log_rq = 2,
	};
	uint32_t handle, events;
	int err = qp_by_desc(&dev, ibv_cq_ex_to_cq(p->cq)->handle, &cap, &req, attr, desc, &handle);
	struct uverbs_call end = { .attr = {
		ATTR(UVERBS_ATTR_DESTROY_QP_HANDLE, 0, handle),
		ATTR(UVERBS_ATTR_DESTROY_QP_RESP, sizeof(events), &events),
	} };

	if (err)
		return err;
	err = uverbs_call(dev.ctx, &end, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
	if (err)
		die("destroy of a QP: %s", strerror(err));
	return 0;
}

static bool qp_buffers(struct pair *p)
{
	struct buffer_desc desc = { .type = BUFFER_VA, .addr = (uintptr_t)buf[0], .length = RINGS };
	int err = qp_once(p, ATTR_CREATE_QP_BUF_UMEM, &desc);

	if (err == EPROTONOSUPPORT)
		return skip("the kernel has no such attribute");
	if (!expect_err("a buffer by descriptor", err, 0))
		return false;
	desc.length = RINGS - 1;
	if (!expect_err("one that is too short", qp_once(p, ATTR_CREATE_QP_BUF_UMEM, &desc), EINVAL))
		return false;
	desc = (struct buffer_desc){ BUFFER_VA, .addr = (uintptr_t)buf[0] + 8, .length = RINGS };
	if (!expect_err("one that is not aligned", qp_once(p, ATTR_CREATE_QP_BUF_UMEM, &desc),
			EINVAL))
		return false;
	desc = (struct buffer_desc){ BUFFER_DMABUF, .fd = -1, .length = RINGS };
	if (!expect_err("no dma-buf", qp_once(p, ATTR_CREATE_QP_BUF_UMEM, &desc), EBADF))
		return false;
	desc = (struct buffer_desc){ BUFFER_VA, .addr = (uintptr_t)buf[0], .length = RINGS };
	return expect_err("a receive ring apart",
			  qp_once(p, ATTR_CREATE_QP_RQ_BUF_UMEM, &desc), EOPNOTSUPP) &&
	       expect_err("a send ring apart",
			  qp_once(p, ATTR_CREATE_QP_SQ_BUF_UMEM, &desc), EOPNOTSUPP);
}

static const struct {
	const char *name;
	bool (*run)(struct pair *p);
} cases[] = {
	{ "errors at wr_complete", wr_errors },
	{ "wr_complete in RESET", wr_state },
	{ "flags that nobody knows", unknown_flags },
	{ "fields of a completion", fields },
	{ "time stamps and clocks", clocks },
	{ "thread and parent domain", domains },
	{ "imported context, domain, region", imported },
	{ "speed of the port", speed_of_port },
	{ "context asked for", context_asked },
	{ "capabilities announced", announced },
	{ "length and address of regions", regions_told },
	{ "QP buffers by descriptors", qp_buffers },
};

int main(int argc, char **argv)
{
	int c, i, n = sizeof(cases) / sizeof(cases[0]), gid = 0, ret;
	const char *name = NULL;
	struct pair p;

	while ((c = getopt(argc, argv, "d:g:")) != -1) {
		if (c == 'd')
			name = optarg;
		else if (c == 'g')
			gid = atoi(optarg);
		else
			return 2;
	}
	dev_open(&dev, name, gid);
	for (i = 0; i < 2; i++) {
		mr[i] = ibv_reg_mr(dev.pd, buf[i], SIZE,
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		if (!mr[i])
			die("reg_mr: %m");
	}
	if (!pair_make(&p, dev.pd, NULL))
		die("%s", why);
	for (i = 0; i < n; i++)
		tap_case(cases[i].name, cases[i].run(&p));
	ret = tap_end();
	if (!pair_drop(&p))
		die("%s", why);
	for (i = 0; i < 2; i++)
		ibv_dereg_mr(mr[i]);
	dev_close(&dev);
	return ret;
}
