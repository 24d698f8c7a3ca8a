// SPDX-License-Identifier: GPL-2.0
/*
 * skua-ece -d DEV -g GID; TAP. ECE: what two QPs agree on, by the verbs alone, and what
 * becomes of masked atomics where they did not. No verb of user space posts these, so
 * that the WQE is written into the ring, which a parent domain's allocator shows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/skua-abi.h>
#include <skua/hw/pci.h>
#include <skua/wqe_build.h>

#include "common.h"

#define BUF	(2 * PAGE)	/* results of one side, memory of the other */

static struct dev dev;
static uint8_t *buf;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_pd *parent;
static void *ring;		/* what the allocator gave last */
static uint32_t all;		/* options that the device has */

static void *ring_alloc(struct ibv_pd *pd, void *ctx, size_t size, size_t align, uint64_t type)
{
	(void)pd;
	(void)ctx;
	(void)type;
	ring = aligned_alloc(align, (size + align - 1) / align * align);
	return ring;
}

static void ring_free(struct ibv_pd *pd, void *ctx, void *p, uint64_t type)
{
	(void)pd;
	(void)ctx;
	(void)type;
	free(p);
}

static struct ibv_qp *qp_make(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = parent,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(dev.ctx, &attr);

	if (!qp)
		die("create_qp: %m");
	return qp;
}

/* What a QP says of itself. */
static bool is(struct ibv_qp *qp, uint32_t options)
{
	struct ibv_ece ece = { 1, 1, 1 };
	int ret = ibv_query_ece(qp, &ece);

	if (ret)
		return fail("query_ece: error %d", ret);
	return (ece.vendor_id == dev.attr.vendor_id && ece.options == options && !ece.comp_mask) ||
	       fail("vendor %#x, options %#x instead of %#x", ece.vendor_id, ece.options, options);
}

static bool set(struct ibv_qp *qp, uint32_t vendor, uint32_t options, uint32_t mask, int err)
{
	struct ibv_ece ece = { vendor, options, mask };
	int ret = ibv_set_ece(qp, &ece);

	if (ret != err)
		return fail("set_ece(%#x, %#x, %#x): error %d instead of %d", vendor, options, mask,
			    ret, err);
	return ret || ece.options == (options & all) ||
	       fail("%#x accepted of %#x", ece.options, options);
}

/* Masked atomics, and selective repeat where the device has it. */
static bool options(void)
{
	struct ibv_qp *qp = qp_make(IBV_QPT_RC);
	struct ibv_ece ece = {};
	int ret = ibv_query_ece(qp, &ece);

	ibv_destroy_qp(qp);
	all = ece.options;
	return !ret && (all | SKUA_ECE_SELECTIVE_REPEAT) ==
		       (SKUA_ECE_MASKED_ATOMIC | SKUA_ECE_SELECTIVE_REPEAT);
}

/* --- what is said ------------------------------------------------------------------ */

static bool offered(void)
{
	struct ibv_qp *rc = qp_make(IBV_QPT_RC), *uc = qp_make(IBV_QPT_UC), *ud = qp_make(IBV_QPT_UD);
	bool ok = is(rc, all) && is(uc, 0) && is(ud, 0);

	/* A peer with nothing to offer is fine for all of them. */
	ok = ok && set(ud, SKUA_PCI_VENDOR_ID, 0, 0, 0) && is(ud, 0) &&
	     set(uc, SKUA_PCI_VENDOR_ID, 0, 0, 0) && is(uc, 0);
	ibv_destroy_qp(rc);
	ibv_destroy_qp(uc);
	ibv_destroy_qp(ud);
	return ok;
}

static bool refused(void)
{
	struct ibv_qp *qp = qp_make(IBV_QPT_RC);
	bool ok = set(qp, 0, 0, 0, EOPNOTSUPP) &&
		  set(qp, 0x15b3, SKUA_ECE_MASKED_ATOMIC, 0, EINVAL) &&
		  set(qp, SKUA_PCI_VENDOR_ID, SKUA_ECE_MASKED_ATOMIC, 1, EINVAL) &&
		  is(qp, all);

	ibv_destroy_qp(qp);
	return ok;
}

static void connect(struct ibv_qp *a, struct ibv_qp *b)
{
	struct link_attr l = link_default;
	struct addr to_a = qp_addr(&dev, a, 11), to_b = qp_addr(&dev, b, 22);

	l.access |= IBV_ACCESS_REMOTE_ATOMIC;
	qp_connect(&dev, a, 11, &to_b, &l);
	qp_connect(&dev, b, 22, &to_a, &l);
}

/* Once agreed on it stays, until RESET. */
static bool stays(void)
{
	struct ibv_qp *a = qp_make(IBV_QPT_RC), *b = qp_make(IBV_QPT_RC);
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	bool ok = set(a, SKUA_PCI_VENDOR_ID, ~0U, 0, 0) && is(a, all) &&
		  set(a, SKUA_PCI_VENDOR_ID, 0, 0, 0) && is(a, 0) &&
		  set(b, SKUA_PCI_VENDOR_ID, ~0U, 0, 0);

	connect(a, b);
	ok = ok && is(a, 0) && is(b, all) &&
	     set(a, SKUA_PCI_VENDOR_ID, ~0U, 0, EINVAL) && is(a, 0);
	if (ibv_modify_qp(a, &reset, IBV_QP_STATE))
		ok = fail("RESET: %m");
	ok = ok && is(a, all);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	return ok;
}

/* --- what is done ------------------------------------------------------------------ */

static bool to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return !ibv_modify_qp(qp, &attr, IBV_QP_STATE) || fail("to state %d: %m", state);
}

/*
 * While the queue stands still two CAS of a block each are posted, and made into one
 * masked FAA of two blocks.
 */
static bool masked_add(struct ibv_qp *qp, void *sq, uint64_t add)
{
	struct ibv_sge sge = { (uintptr_t)buf, 8, mr->lkey };
	struct ibv_send_wr wr[2] = {
		{ .wr_id = 7, .next = &wr[1], .sg_list = &sge, .num_sge = 1,
		  .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .send_flags = IBV_SEND_SIGNALED },
		{ .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP },
	}, *bad;
	struct skua_sq_ring sqr;

	wr[0].wr.atomic.remote_addr = (uintptr_t)buf + PAGE;
	wr[0].wr.atomic.rkey = mr->rkey;
	wr[1].wr = wr[0].wr;
	if (!to_state(qp, IBV_QPS_SQD))
		return false;
	if (ibv_post_send(qp, wr, &bad))
		return fail("post_send: %m");
	skua_sq_ring_init(&sqr, sq, 3);
	skua_wqe_ctrl_set(skua_sq_seg(&sqr, 0, 0), SKUA_WQE_MASKED_FAA, 5, 0, SKUA_WQE_F_SIGNALED);
	skua_wqe_raddr_set(skua_sq_seg(&sqr, 0, 1), (uintptr_t)buf + PAGE, mr->rkey, 0);
	skua_wqe_atomic_set(skua_sq_seg(&sqr, 0, 2), add, 0);
	skua_wqe_atomic_set(skua_sq_seg(&sqr, 0, 3), 0, 0);
	skua_wqe_data_set(skua_sq_seg(&sqr, 0, 4), (uintptr_t)buf, mr->lkey, 8);
	return to_state(qp, IBV_QPS_RTS);
}

/* Neither, or options that each side was told: 0, or all that there are. */
static bool between(int a_told, int b_told, enum ibv_wc_status status)
{
	struct ibv_qp *a = qp_make(IBV_QPT_RC), *b;
	uint64_t *there = (uint64_t *)(buf + PAGE);
	void *sq = ring;
	struct ibv_wc wc;
	bool ok = true;

	b = qp_make(IBV_QPT_RC);
	*there = 37;
	if (a_told >= 0)
		ok = set(a, SKUA_PCI_VENDOR_ID, a_told, 0, 0);
	if (b_told >= 0)
		ok = ok && set(b, SKUA_PCI_VENDOR_ID, b_told, 0, 0);
	connect(a, b);
	ok = ok && masked_add(a, sq, 5);
	if (ok && !poll_one(cq, &wc, 10))
		ok = fail("no completion");
	if (ok && (wc.wr_id != 7 || wc.status != status))
		ok = fail("request %llu ends with %s", (unsigned long long)wc.wr_id,
			  ibv_wc_status_str(wc.status));
	if (ok && *there != (status ? 37 : 42))
		ok = fail("%llu is there", (unsigned long long)*there);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	return ok;
}

static bool nobody_asked(void)
{
	return between(-1, -1, IBV_WC_SUCCESS);
}

static bool both_have(void)
{
	return between(SKUA_ECE_MASKED_ATOMIC, SKUA_ECE_MASKED_ATOMIC, IBV_WC_SUCCESS);
}

static bool requester_without(void)
{
	return between(0, SKUA_ECE_MASKED_ATOMIC, IBV_WC_LOC_QP_OP_ERR);
}

static bool responder_without(void)
{
	return between(-1, 0, IBV_WC_REM_INV_REQ_ERR);
}

/*
 * What one end uses need not be what the other was told: they find to each other, or stay
 * with what the standard has.
 */
static bool one_always(void)
{
	return between(all, -1, IBV_WC_SUCCESS);
}

static bool one_plain(void)
{
	return between(SKUA_ECE_MASKED_ATOMIC, -1, IBV_WC_SUCCESS) &&
	       between(-1, SKUA_ECE_MASKED_ATOMIC, IBV_WC_SUCCESS);
}

static bool both_all(void)
{
	return between(all, all, IBV_WC_SUCCESS);
}

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "what QPs offer", offered },
	{ "what is no ECE of ours", refused },
	{ "what was agreed on stays", stays },
	{ "masked atomic, nobody asked", nobody_asked },
	{ "masked atomic, both have it", both_have },
	{ "masked atomic, the requester does without", requester_without },
	{ "masked atomic, the responder does without", responder_without },
	{ "all options, agreed on", both_all },
	{ "all options, agreed on, the other end was not asked", one_always },
	{ "no selective repeat, the other end was not asked", one_plain },
};

int main(int argc, char **argv)
{
	struct ibv_parent_domain_init_attr domain = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		.alloc = ring_alloc,
		.free = ring_free,
	};
	const char *name = NULL;
	unsigned int i;
	int c, gid = 0;

	while ((c = getopt(argc, argv, "d:g:")) != -1) {
		if (c == 'd')
			name = optarg;
		else if (c == 'g')
			gid = atoi(optarg);
		else
			return 2;
	}
	dev_open(&dev, name, gid);
	domain.pd = dev.pd;
	parent = ibv_alloc_parent_domain(dev.ctx, &domain);
	buf = aligned_alloc(PAGE, BUF);
	mr = parent && buf ? ibv_reg_mr(dev.pd, buf, BUF, IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) : NULL;
	cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	if (!mr || !cq)
		die("domain, region, CQ: %m");
	if (!options())
		die("options %#x: others than expected", all);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		tap_case(cases[i].name, cases[i].run());
	c = tap_end();
	if (ibv_destroy_cq(cq) || ibv_dereg_mr(mr) || ibv_dealloc_pd(parent))
		die("something is left: %m");
	dev_close(&dev);
	return c;
}
