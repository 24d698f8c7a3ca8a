// SPDX-License-Identifier: GPL-2.0
/*
 * skua-nomem -d DEV -g GID [-c CASE]; TAP. Each verb while the kernel runs out of memory at
 * its first, second, third... allocation (fault injection's fail-nth), until it needs no
 * more: it fails with ENOMEM, or does without; what it made before goes, and the same verb
 * works afterwards. Destruction fails with nothing lost, or not at all. Copies from and to
 * user memory are injected too, and count as allocations: EFAULT.
 */
#include <errno.h>
#include <fcntl.h>
#include <rdma/skua-abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nomem.h"

#define LEN		(64 * PAGE)
#define MOST		400	/* allocations of one verb; more are a loop without end */

struct dev dev;
struct ibv_cq *cq;
struct made it;

static uint8_t *mem;
static struct ibv_mr *mr;	/* of mem */
static struct ibv_qp *qp;	/* what verbs about QPs are tried on */
static int nth_fd;

/* --- fault injection ------------------------------------------------------------------ */

static void nth_set(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	/* The copy of this very text may be what fails; after that nothing does. */
	while (pwrite(nth_fd, text, len, 0) != len)
		if (errno != EFAULT)
			die("fail-nth: %m");
}

/* Allocations until the one that fails; 0: it has failed. */
static unsigned int nth_left(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) < 1) {
		/* It met the copy of this very answer. */
		if (errno == EFAULT)
			return 1;
		die("fail-nth: %m");
	}
	return strtoul(text, NULL, 10);
}

/* --- verbs ---------------------------------------------------------------------------- */

bool made(void *p)
{
	it.made = p;
	return p;
}

bool done(int err)
{
	if (err)
		errno = err;
	return !err;
}

static bool open_device(void)
{
	return made(ibv_open_device(dev.ctx->device));
}

static bool close_device(void)
{
	return done(ibv_close_device(it.made));
}

static bool alloc_pd(void)
{
	return made(ibv_alloc_pd(dev.ctx));
}

static bool dealloc_pd(void)
{
	return done(ibv_dealloc_pd(it.made));
}

static bool reg_mr(void)
{
	return made(ibv_reg_mr(dev.pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
}

static bool reg_odp(void)
{
	return made(ibv_reg_mr(dev.pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
}

static bool reg_implicit(void)
{
	return made(ibv_reg_mr(dev.pd, NULL, SIZE_MAX,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
}

bool dereg_mr(void)
{
	return done(ibv_dereg_mr(it.made));
}

/* As the man page has it: the region is lost if its resources were, and then only freed. */
static bool rereg_mr(void)
{
	int err = ibv_rereg_mr(it.made, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem + PAGE,
			       LEN - PAGE, 0);

	return done(err ? errno : 0);
}

static bool alloc_mw(void)
{
	return made(ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2));
}

static bool dealloc_mw(void)
{
	return done(ibv_dealloc_mw(it.made));
}

static bool create_channel(void)
{
	return made(ibv_create_comp_channel(dev.ctx));
}

static bool destroy_channel(void)
{
	return done(ibv_destroy_comp_channel(it.made));
}

static bool create_cq(void)
{
	return made(ibv_create_cq(dev.ctx, 1000, NULL, NULL, 0));
}

static bool resize_cq(void)
{
	return done(ibv_resize_cq(it.made, 3000));
}

static bool destroy_cq(void)
{
	return done(ibv_destroy_cq(it.made));
}

static bool create_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 100, .max_sge = 2 } };

	return made(ibv_create_srq(dev.pd, &attr));
}

static bool resize_srq(void)
{
	struct ibv_srq_attr attr = { .max_wr = 700 };

	return done(ibv_modify_srq(it.made, &attr, IBV_SRQ_MAX_WR));
}

bool destroy_srq(void)
{
	return done(ibv_destroy_srq(it.made));
}

struct ibv_qp *new_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { 100, 100, 4, 4, 64 },
	};

	return ibv_create_qp(dev.pd, &attr);
}

static bool create_rc(void)
{
	return made(new_qp(IBV_QPT_RC));
}

static bool create_ud(void)
{
	return made(new_qp(IBV_QPT_UD));
}

static bool create_raw(void)
{
	return made(new_qp(IBV_QPT_RAW_PACKET));
}

bool destroy_qp(void)
{
	return done(ibv_destroy_qp(it.made));
}

static bool reset_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return done(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

static bool qp_init(void)
{
	return done(qp_to_init(qp, &link_default));
}

/* A step from INIT; both states are tried again from RESET. */
static bool qp_rtr(void)
{
	struct addr peer = qp_addr(&dev, qp, 1);

	return done(qp_to_rtr(&dev, qp, &peer, &link_default));
}

static bool init_only(void)
{
	return reset_qp() && qp_init();
}

static bool qp_rts(void)
{
	return done(qp_to_rts(qp, 1, &link_default));
}

static bool init_rtr(void)
{
	return init_only() && qp_rtr();
}

static bool query_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return done(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
}

static bool create_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 1 },
	};

	return made(ibv_create_ah(dev.pd, &attr));
}

static bool destroy_ah(void)
{
	return done(ibv_destroy_ah(it.made));
}

bool create_raw_init(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	it.again = new_qp(IBV_QPT_RAW_PACKET);
	return it.again && done(ibv_modify_qp(it.again, &attr, IBV_QP_STATE | IBV_QP_PORT));
}

static bool create_flow(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			 .val = { .dst_mac = { 2, 0, 0, 0, 0, 7 } },
			 .mask = { .dst_mac = { 255, 255, 255, 255, 255, 255 } } },
	};

	return made(ibv_create_flow(it.again, &rule.attr));
}

bool destroy_flow(void)
{
	return done(ibv_destroy_flow(it.made));
}

bool destroy_it(void)
{
	return done(ibv_destroy_qp(it.again));
}

static bool ud_before(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11 };

	it.again = new_qp(IBV_QPT_UD);
	return it.again && done(ibv_modify_qp(it.again, &attr, IBV_QP_STATE | IBV_QP_PORT |
					      IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
}

static const union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 77, 1, 9 } };

static bool attach(void)
{
	return done(ibv_attach_mcast(it.again, &group, 0));
}

static bool detach(void)
{
	return done(ibv_detach_mcast(it.again, &group, 0));
}

/* The driver's DEVICE_CLOCK */
static bool query_clock(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	return done(ibv_query_rt_values_ex(dev.ctx, &values));
}

/* The RDMA core's part and the driver's */
static bool query_context(void)
{
	struct skua_alloc_ucontext_resp resp;
	uint64_t core_support;
	uint32_t vectors;
	struct uverbs_call c = { .num = 3, .attr = {
		ATTR(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, sizeof(vectors), &vectors),
		ATTR(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, sizeof(core_support), &core_support),
		ATTR(SKUA_ATTR_QUERY_CONTEXT_RESP, sizeof(resp), &resp),
	} };

	return done(uverbs_call(dev.ctx, &c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT));
}

bool nothing(void)
{
	return true;
}

bool kept(bool ok)
{
	it.again = it.made;
	return ok;
}

static const struct verb verbs[] = {
	/* libibverbs looks for the device's node elsewhere if it cannot be opened */
	{ "open and close a device", nothing, open_device, close_device, .any_errno = true },
	{ "alloc_pd", nothing, alloc_pd, dealloc_pd },
	{ "dealloc_pd", nothing, alloc_pd, dealloc_pd, .undo_tried = true },
	{ "reg_mr", nothing, reg_mr, dereg_mr },
	{ "dereg_mr", nothing, reg_mr, dereg_mr, .undo_tried = true },
	{ "rereg_mr", reg_mr, rereg_mr, nothing, dereg_mr },
	{ "reg_mr, on demand", nothing, reg_odp, dereg_mr },
	{ "reg_mr, on demand, implicit", nothing, reg_implicit, dereg_mr },
	{ "dereg_mr, on demand, implicit", nothing, reg_implicit, dereg_mr, .undo_tried = true },
	{ "alloc_mw", nothing, alloc_mw, dealloc_mw },
	{ "dealloc_mw", nothing, alloc_mw, dealloc_mw, .undo_tried = true },
	{ "create_comp_channel", nothing, create_channel, destroy_channel },
	{ "create_cq", nothing, create_cq, destroy_cq },
	{ "resize_cq", create_cq, resize_cq, nothing, destroy_cq },
	{ "destroy_cq", nothing, create_cq, destroy_cq, .undo_tried = true },
	{ "create_srq", nothing, create_srq, destroy_srq },
	{ "modify_srq", create_srq, resize_srq, nothing, destroy_srq },
	{ "destroy_srq", nothing, create_srq, destroy_srq, .undo_tried = true },
	{ "create_qp, RC", nothing, create_rc, destroy_qp },
	{ "create_qp, UD", nothing, create_ud, destroy_qp },
	{ "create_qp, RAW_PACKET", nothing, create_raw, destroy_qp },
	{ "destroy_qp", nothing, create_rc, destroy_qp, .undo_tried = true },
	{ "modify_qp to INIT", reset_qp, qp_init, nothing },
	/* The route to the peer */
	{ "modify_qp to RTR", init_only, qp_rtr, nothing, .other = ENOBUFS },
	{ "modify_qp to RTS", init_rtr, qp_rts, nothing },
	{ "query_qp", nothing, query_qp, nothing },
	{ "modify_qp to RESET", init_rtr, reset_qp, nothing },
	{ "create_ah", nothing, create_ah, destroy_ah, .other = ENOBUFS },
	{ "destroy_ah", nothing, create_ah, destroy_ah, .undo_tried = true },
	{ "attach_mcast", ud_before, attach, detach, destroy_it },
	{ "create_flow", create_raw_init, create_flow, destroy_flow, destroy_it },
	{ "query_rt_values_ex", nothing, query_clock, nothing },
	{ "QUERY_CONTEXT", nothing, query_context, nothing },
	{}
};

/* --- the sweep ------------------------------------------------------------------------ */

/* @f while its @n-th allocation fails; *@err is 0 or its errno, *@hit whether one failed. */
static void with_fault(bool (*f)(void), unsigned int n, int *err, bool *hit)
{
	bool ok;

	errno = 0;
	nth_set(n);
	ok = f();
	*err = ok ? 0 : errno ? errno : EIO;
	*hit = !nth_left();
	nth_set(0);
}

static bool undo_again(const struct verb *v, unsigned int n)
{
	return v->undo() || fail("allocation %u: cannot be undone then: %m", n);
}

/* What has not gone goes now; if only the answer could not be copied, it has. */
static bool destroy_again(const struct verb *v, unsigned int n, int err)
{
	errno = 0;
	return v->undo() || (err == EFAULT && errno == ENOENT) ||
	       fail("allocation %u: %s, cannot be destroyed then: %m", n, strerrorname_np(err));
}

/* True, and *@more: an allocation failed, and all was well. */
static bool step(const struct verb *v, unsigned int n, bool *more)
{
	bool ok = true;
	int err;

	if (!v->before())
		return fail("allocation %u: set-up: %m", n);
	if (v->undo_tried) {
		if (!v->run())
			return fail("allocation %u: %m", n);
		with_fault(v->undo, n, &err, more);
		if (err)
			ok = destroy_again(v, n, err);
	} else {
		with_fault(v->run, n, &err, more);
		if (!err)
			ok = undo_again(v, n);
	}
	if (v->after && !v->after())
		ok = ok && fail("allocation %u: clean-up: %m", n);
	if (ok && err && err != ENOMEM && err != EFAULT && err != v->other && !v->any_errno)
		ok = fail("allocation %u: %s, should be ENOMEM or EFAULT", n,
			  strerrorname_np(err));
	if (ok && err && !*more)
		ok = fail("%s though no allocation failed", strerrorname_np(err));
	return ok;
}

static bool sweep(const struct verb *v)
{
	bool more = true;
	unsigned int n;

	if (v->skip)
		return skip(v->skip);
	for (n = 1; more; n++) {
		if (n > MOST)
			return fail("more than %u allocations", MOST);
		if (!step(v, n, &more))
			return false;
	}
	printf("# %s: %u allocations\n", v->name, n - 2);
	return true;
}

static void setup(const char *name, int gid_index)
{
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (nth_fd < 0)
		die("/proc/thread-self/fail-nth: %m (a kernel with fault injection is needed)");
	dev_open(&dev, name, gid_index);
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (mem == MAP_FAILED)
		die("mmap: %m");
	mr = ibv_reg_mr(dev.pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(dev.ctx, 100, NULL, NULL, 0);
	qp = cq ? new_qp(IBV_QPT_RC) : NULL;
	if (!mr || !qp)
		die("set-up: %m");
}

int main(int argc, char **argv)
{
	static const struct verb *const tables[] = {
		verbs, verbs_of_memory, verbs_of_queues, verbs_of_counters,
	};
	const char *name = NULL, *only = NULL;
	const struct verb *v;
	int c, gid_index = 0;
	unsigned int i;

	while ((c = getopt(argc, argv, "d:g:c:")) != -1) {
		switch (c) {
		case 'd':
			name = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 'c':
			only = optarg;
			break;
		default:
			return 2;
		}
	}
	if (!name)
		die("usage: skua-nomem -d DEV -g GID [-c CASE]");
	setlinebuf(stdout);
	setup(name, gid_index);
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (v = tables[i]; v->name; v++)
			if (!only || strstr(v->name, only))
				tap_case(v->name, sweep(v));
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	ibv_dereg_mr(mr);
	dev_close(&dev);
	return tap_end();
}
