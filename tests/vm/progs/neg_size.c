// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes of queues and regions: each field at 0, its maximum, one more, 2^31 and
 * 2^32 - 1.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "neg.h"

static bool cq_size(struct neg *n, int cqe, bool good)
{
	struct ibv_cq *cq = ibv_create_cq(n->dev.ctx, cqe, NULL, NULL, 0);
	int err = errno;

	if (cq) {
		bool enough = cq->cqe >= cqe;

		ibv_destroy_cq(cq);
		if (!good)
			return fail("a CQ of %d entries was made", cqe);
		return enough || fail("CQ smaller than %d", cqe);
	}
	/* The largest ones may be more memory than there is. */
	if (good)
		return err == ENOMEM || fail("CQ of %d entries: %s", cqe, strerror(err));
	return expect_err("CQ", err, EINVAL);
}

static bool cq_sizes(struct neg *n)
{
	int max = n->dev.attr.max_cqe;

	return cq_size(n, 1, true) && cq_size(n, 3, true) && cq_size(n, max, true) &&
	       cq_size(n, 0, false) && cq_size(n, max + 1, false) && cq_size(n, -1, false) &&
	       cq_size(n, 1U << 31, false) && cq_size(n, 0x7fffffff, false);
}

static bool cq_vector(struct neg *n)
{
	static const int v[] = { -1, 0x7fffffff };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		int vec = i < 2 ? v[i] : n->dev.ctx->num_comp_vectors;
		struct ibv_cq *cq = ibv_create_cq(n->dev.ctx, 16, NULL, NULL, vec);

		if (cq) {
			ibv_destroy_cq(cq);
			return fail("a CQ with completion vector %d was made", vec);
		}
		if (!expect_err("CQ with bad vector", errno, EINVAL))
			return false;
	}
	return true;
}

/* A QP with one field of its capabilities changed. */
static bool qp_size(struct neg *n, struct ibv_cq *cq, size_t field, uint32_t value, bool good,
		    const char *name)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;
	int err;

	*(uint32_t *)((char *)&attr.cap + field) = value;
	qp = ibv_create_qp(n->dev.pd, &attr);
	err = errno;
	if (qp) {
		uint32_t got = *(uint32_t *)((char *)&attr.cap + field);

		ibv_destroy_qp(qp);
		if (!good)
			return fail("a QP with %s %u was made", name, value);
		return got >= value || fail("%s %u became %u", name, value, got);
	}
	if (good)
		return err == ENOMEM || fail("QP with %s %u: %s", name, value, strerror(err));
	return expect_err(name, err, EINVAL);
}

static bool qp_sizes(struct neg *n)
{
	const struct {
		const char *name;
		size_t field;
		uint32_t max;
	} f[] = {
#define F(name, max) { #name, offsetof(struct ibv_qp_cap, name), max }
		F(max_send_wr, n->dev.attr.max_qp_wr),
		F(max_recv_wr, n->dev.attr.max_qp_wr),
		F(max_send_sge, n->dev.attr.max_sge),
		F(max_recv_sge, n->dev.attr.max_sge),
		F(max_inline_data, 0),
#undef F
	};
	struct ibv_cq *cq = ibv_create_cq(n->dev.ctx, 16, NULL, NULL, 0);
	unsigned int i;
	bool ok = true;

	if (!cq)
		die("create_cq: %m");
	for (i = 0; ok && i < sizeof(f) / sizeof(f[0]); i++) {
		ok = qp_size(n, cq, f[i].field, 0, true, f[i].name) &&
		     (!f[i].max || qp_size(n, cq, f[i].field, f[i].max, true, f[i].name)) &&
		     /* one more is allowed where whole blocks are taken */
		     qp_size(n, cq, f[i].field, 1U << 31, false, f[i].name) &&
		     qp_size(n, cq, f[i].field, 0xffffffff, false, f[i].name) &&
		     qp_size(n, cq, f[i].field, 65537 * 16, false, f[i].name);
		if (ok && strstr(f[i].name, "_wr"))
			ok = qp_size(n, cq, f[i].field, f[i].max + 1, false, f[i].name);
	}
	ibv_destroy_cq(cq);
	return ok;
}

static bool mr_sizes(struct neg *n)
{
	static const struct {
		uint64_t addr, len;
	} bad[] = {
		{ 0x1000, 4096 },			/* nothing mapped */
		{ (uint64_t)-4096, 8192 },		/* around the end */
		{ 0xffff800000000000ULL, 4096 },	/* the kernel's */
		{ 0x10000, (uint64_t)-1 },
		{ 0x10000, 1ULL << 63 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(n->dev.pd, (void *)(uintptr_t)bad[i].addr,
					       bad[i].len, IBV_ACCESS_LOCAL_WRITE);

		if (mr) {
			ibv_dereg_mr(mr);
			return fail("region %llx + %llx was registered",
				    (unsigned long long)bad[i].addr,
				    (unsigned long long)bad[i].len);
		}
	}
	return true;
}

/* Remote write without local write is refused. */
static bool mr_rights(struct neg *n)
{
	struct ibv_mr *mr = ibv_reg_mr(n->dev.pd, n->buf, 4096, IBV_ACCESS_REMOTE_WRITE);

	if (mr) {
		ibv_dereg_mr(mr);
		return fail("remote write without local write was taken");
	}
	return expect_err("reg_mr", errno, EINVAL);
}

/* Every transition that the IBTA does not have. */
static bool qp_states(struct neg *n)
{
	static const enum ibv_qp_state to[] = {
		IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE,
	};
	struct pair p;
	unsigned int i;
	bool ok = true;

	pair_make(&p, n, 0, false);
	for (i = 0; ok && i < sizeof(to) / sizeof(to[0]); i++) {
		struct ibv_qp_attr attr = { .qp_state = to[i] };

		ok = expect_err("from RESET", ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE), EINVAL);
	}
	if (ok && p.qp[0]->state != IBV_QPS_RESET)
		ok = fail("the state changed");
	pair_free(&p);
	return ok;
}

/* An object in use is not destroyed. */
static bool in_use(struct neg *n)
{
	struct pair p;
	bool ok;

	pair_make(&p, n, 0, false);
	ok = expect_err("destroy_cq", ibv_destroy_cq(p.cq[0]), EBUSY) &&
	     expect_err("dealloc_pd", ibv_dealloc_pd(n->dev.pd), EBUSY);
	pair_free(&p);
	return ok;
}

const struct neg_case cases_size[] = {
	{ "CQ sizes", cq_sizes, .skua_only = true },
	{ "CQ completion vectors", cq_vector },
	{ "QP sizes", qp_sizes, .skua_only = true },
	{ "region addresses and lengths", mr_sizes },
	{ "region rights", mr_rights },
	{ "QP states", qp_states },
	{ "objects in use", in_use },
	{}
};
