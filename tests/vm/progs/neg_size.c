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

/* No attribute tells the most inline data: find it, then ask for one byte more. */
static bool inline_sizes(struct neg *n, struct ibv_cq *cq)
{
	const size_t field = offsetof(struct ibv_qp_cap, max_inline_data);
	uint32_t good = 0, bad = 1 << 16;

	while (bad - good > 1) {
		uint32_t mid = good + (bad - good) / 2;

		if (qp_size(n, cq, field, mid, true, "max_inline_data"))
			good = mid;
		else
			bad = mid;
	}
	return qp_size(n, cq, field, good, true, "max_inline_data") &&
	       qp_size(n, cq, field, good + 1, false, "max_inline_data") &&
	       (good >= 32 || fail("no more than %u bytes inline", good));
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
		if (ok && strstr(f[i].name, "_sge"))
			ok = qp_size(n, cq, f[i].field, f[i].max + 1, false, f[i].name) ||
			     qp_size(n, cq, f[i].field, f[i].max + 1, true, f[i].name);
	}
	if (ok)
		ok = inline_sizes(n, cq);
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

/* --- attributes of QPs ------------------------------------------------------------- */

struct attr_case {
	const char *what;
	int mask;
	size_t field, size;
	uint32_t value;
	int err;
};

#define E(field, flag, value, err) \
	{ #field " " #value, flag, offsetof(struct ibv_qp_attr, field), \
	  sizeof(((struct ibv_qp_attr *)0)->field), value, err }
#define A(field, flag, value) E(field, flag, value, EINVAL)

/* PSNs are not here: the kernel's core takes their low 24 bits for everybody. */
static const struct attr_case to_init[] = {
	A(port_num, IBV_QP_PORT, 0), A(port_num, IBV_QP_PORT, 2), A(port_num, IBV_QP_PORT, 255),
	A(pkey_index, IBV_QP_PKEY_INDEX, 1), A(pkey_index, IBV_QP_PKEY_INDEX, 0x8000),
	A(pkey_index, IBV_QP_PKEY_INDEX, 0xffff),
	A(qp_access_flags, IBV_QP_ACCESS_FLAGS, 1U << 30),
	A(qp_access_flags, IBV_QP_ACCESS_FLAGS, 1U << 31),
	A(qp_access_flags, IBV_QP_ACCESS_FLAGS, 0xffffffff),
};

static const struct attr_case to_rtr[] = {
	A(path_mtu, IBV_QP_PATH_MTU, 0), A(path_mtu, IBV_QP_PATH_MTU, IBV_MTU_4096 + 1),
	A(path_mtu, IBV_QP_PATH_MTU, 1U << 31), A(path_mtu, IBV_QP_PATH_MTU, 0xffffffff),
	A(dest_qp_num, IBV_QP_DEST_QPN, 1 << 24), A(dest_qp_num, IBV_QP_DEST_QPN, 1U << 31),
	A(dest_qp_num, IBV_QP_DEST_QPN, 0xffffffff),
	A(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, 32), A(min_rnr_timer, IBV_QP_MIN_RNR_TIMER, 255),
	A(max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC, 255),
	A(ah_attr.port_num, IBV_QP_AV, 0), A(ah_attr.port_num, IBV_QP_AV, 2),
	A(ah_attr.is_global, IBV_QP_AV, 0),
	/* within the table, but there is none */
	E(ah_attr.grh.sgid_index, IBV_QP_AV, 255, ENODATA),
	A(ah_attr.sl, IBV_QP_AV, 8), A(ah_attr.sl, IBV_QP_AV, 255),
};

static const struct attr_case to_rts[] = {
	A(timeout, IBV_QP_TIMEOUT, 32), A(timeout, IBV_QP_TIMEOUT, 255),
	A(retry_cnt, IBV_QP_RETRY_CNT, 8), A(retry_cnt, IBV_QP_RETRY_CNT, 255),
	A(rnr_retry, IBV_QP_RNR_RETRY, 8), A(rnr_retry, IBV_QP_RNR_RETRY, 255),
	A(max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC, 255),
};

#undef A
#undef E

/* What the transition takes, with one field changed: refused, and nothing happened. */
static bool attrs_refused(struct ibv_qp *qp, const struct ibv_qp_attr *good, int mask,
			  const struct attr_case *t, unsigned int num)
{
	enum ibv_qp_state before = qp->state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int i;

	for (i = 0; i < num; i++) {
		attr = *good;
		memcpy((char *)&attr + t[i].field, &t[i].value, t[i].size);
		if (!(mask & t[i].mask))
			return fail("%s is no part of it", t[i].what);
		if (!expect_err(t[i].what, ibv_modify_qp(qp, &attr, mask), t[i].err))
			return false;
	}
	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		die("query_qp: %m");
	return attr.qp_state == before || fail("the state changed to %u", attr.qp_state);
}

static bool qp_attrs(struct neg *n)
{
	static const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	static const int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
	static const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr good = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_256,
		.max_rd_atomic = n->dev.attr.max_qp_init_rd_atom,
		.max_dest_rd_atomic = n->dev.attr.max_qp_rd_atom,
		.timeout = 31, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 31,
		.dest_qp_num = 0xffffff, .rq_psn = 0xffffff, .sq_psn = 0xffffff,
		.ah_attr = { .is_global = 1, .port_num = 1, .sl = 7,
			     .grh = { .sgid_index = n->dev.gid_index, .dgid = n->dev.gid } },
	};
	struct pair p;
	bool ok;

	pair_make(&p, n, 0, false);
	good.dest_qp_num = p.qp[1]->qp_num;
#define N(t) (t), sizeof(t) / sizeof((t)[0])
	ok = attrs_refused(p.qp[0], &good, init, N(to_init)) &&
	     expect_err("to INIT", ibv_modify_qp(p.qp[0], &good, init), 0);
	good.qp_state = IBV_QPS_RTR;
	ok = ok && attrs_refused(p.qp[0], &good, rtr, N(to_rtr)) &&
	     expect_err("to RTR, all at their maximum", ibv_modify_qp(p.qp[0], &good, rtr), 0);
	good.qp_state = IBV_QPS_RTS;
	ok = ok && attrs_refused(p.qp[0], &good, rts, N(to_rts)) &&
	     expect_err("to RTS, all at their maximum", ibv_modify_qp(p.qp[0], &good, rts), 0);
#undef N
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
	{ "QP attributes out of range", qp_attrs, .skua_only = true },
	{ "objects in use", in_use },
	{}
};
