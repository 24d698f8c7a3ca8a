// SPDX-License-Identifier: GPL-2.0
/*
 * Atomics, memory windows, invalidation.
 */
#include "mem.h"

/* --- atomics --------------------------------------------------------------------- */

static bool atomic_op(struct mem *m, enum ibv_wr_opcode op, uint64_t raddr, uint32_t rkey,
		      uint64_t compare_add, uint64_t swap, enum ibv_wc_status status)
{
	struct mem_end *e = &m->end[0];
	struct ibv_sge sg = { (uintptr_t)e->buf + 512, 8, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 5, .opcode = op, .sg_list = &sg, .num_sge = 1,
		.wr.atomic = { raddr, compare_add, swap, rkey },
	};

	return post(m, 0, &wr, status);
}

static uint64_t old_value(struct mem *m)
{
	uint64_t v;

	memcpy(&v, m->end[0].buf + 512, sizeof(v));
	return v;
}

static bool no_atomics(struct mem *m)
{
	return m->end[0].attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE ||
	       m->end[1].attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE;
}

static bool atomics(struct mem *m)
{
	static const uint64_t values[] = {
		0, 1, 0x1122334455667788, -1ULL, 0x8000000000000000, 0xff,
	};
	struct mem_end *e = &m->end[1];
	uint64_t *word = (uint64_t *)(e->buf + 64), was, add;
	unsigned int i, j;

	if (no_atomics(m))
		return skip("no atomics");
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			was = *word = values[i];
			add = values[j];
			if (!atomic_op(m, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)word,
				       e->mr->rkey, add, 0, IBV_WC_SUCCESS))
				return false;
			if (old_value(m) != was || *word != was + add)
				return fail("%#llx + %#llx: %#llx, was %#llx",
					    (unsigned long long)was, (unsigned long long)add,
					    (unsigned long long)*word,
					    (unsigned long long)old_value(m));
			was = *word;
			if (!atomic_op(m, IBV_WR_ATOMIC_CMP_AND_SWP, (uintptr_t)word, e->mr->rkey,
				       values[i], ~values[j], IBV_WC_SUCCESS))
				return false;
			if (old_value(m) != was ||
			    *word != (was == values[i] ? ~values[j] : was))
				return fail("CAS: %#llx", (unsigned long long)*word);
		}
	return true;
}

static bool atomics_refused(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	uint64_t *word = (uint64_t *)(e->buf + 64);
	struct ibv_mr *mr;
	bool ok;

	if (no_atomics(m))
		return skip("no atomics");
	*word = 42;
	mr = ibv_reg_mr(e->dev.pd, e->buf, MEM_SIZE, MEM_ALL & ~IBV_ACCESS_REMOTE_ATOMIC);
	if (!mr)
		return fail("reg_mr: %m");
	ok = atomic_op(m, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)word, mr->rkey, 1, 0,
		       IBV_WC_REM_ACCESS_ERR) &&
	     /* soft-RoCE does not send it. */
	     (!m->end[0].is_skua ||
	      atomic_op(m, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)word + 4, e->mr->rkey, 1, 0,
			IBV_WC_REM_INV_REQ_ERR)) &&
	     atomic_op(m, IBV_WR_ATOMIC_CMP_AND_SWP, (uintptr_t)e->buf + MEM_SIZE, e->mr->rkey,
		       42, 0, IBV_WC_REM_ACCESS_ERR) &&
	     (*word == 42 || fail("changed all the same"));
	ibv_dereg_mr(mr);
	return ok;
}

/* Many in flight: each is done once, in order. READs between may see later ones. */
/* All eight bytes must be in the region, not the first of them alone. */
static bool atomic_over_end(struct mem *m, int access)
{
	struct mem_end *e = &m->end[1];
	uint64_t *word = (uint64_t *)(e->buf + 4096);
	unsigned int cut;
	bool ok = true;

	for (cut = 0; ok && cut < 8; cut++) {
		enum ibv_wc_status want = cut ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
		struct ibv_mr *mr = ibv_reg_mr(e->dev.pd, e->buf, 4096 + 8 - cut, access);

		if (!mr)
			return fail("reg_mr: %m");
		*word = 42;
		ok = atomic_op(m, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)word, mr->rkey, 1, 0,
			       want) &&
		     atomic_op(m, IBV_WR_ATOMIC_CMP_AND_SWP, (uintptr_t)word, mr->rkey, 43, 44,
			       want) &&
		     (*word == (cut ? 42 : 44) || fail("%ju with %u bytes outside", *word, cut));
		ibv_dereg_mr(mr);
	}
	return ok;
}

static bool atomics_at_end(struct mem *m)
{
	bool odp = m->end[1].is_skua &&
		   m->end[1].attr.odp_caps.general_caps & IBV_ODP_SUPPORT;

	if (no_atomics(m))
		return skip("no atomics");
	return atomic_over_end(m, MEM_ALL) &&
	       (!odp || atomic_over_end(m, MEM_ALL | IBV_ACCESS_ON_DEMAND));
}

static bool atomics_queued(struct mem *m)
{
	enum { NUM = 24 };
	struct mem_end *a = &m->end[0], *b = &m->end[1];
	uint64_t *word = (uint64_t *)b->buf, *old = (uint64_t *)a->buf;
	struct ibv_send_wr wr[NUM] = {}, *bad;
	struct ibv_sge sg[NUM];
	struct ibv_wc wc;
	int i, err;

	if (no_atomics(m))
		return skip("no atomics");
	mem_connect(m);
	*word = 1000;
	for (i = 0; i < NUM; i++) {
		sg[i] = (struct ibv_sge){ (uintptr_t)&old[i], 8, a->mr->lkey };
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < NUM ? &wr[i + 1] : NULL, .sg_list = &sg[i], .num_sge = 1,
			.wr_id = i, .send_flags = i + 1 < NUM ? 0 : IBV_SEND_SIGNALED,
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.wr.atomic = { (uintptr_t)word, 1, 0, b->mr->rkey },
		};
		if (i % 5 == 4) {
			wr[i].opcode = IBV_WR_RDMA_READ;
			wr[i].wr.rdma.remote_addr = (uintptr_t)word;
			wr[i].wr.rdma.rkey = b->mr->rkey;
		}
	}
	err = ibv_post_send(a->qp, wr, &bad);
	if (err)
		return fail("post_send: %s", strerror(err));
	if (!completes(m, 0, &wc, IBV_WC_SUCCESS))
		return false;
	for (i = 0; i < NUM; i++)
		if (i % 5 == 4 ? old[i] < 1000 + (uint64_t)(i - i / 5) :
				 old[i] != 1000 + (uint64_t)(i - i / 5))
			return fail("number %d found %llu", i, (unsigned long long)old[i]);
	return *word == 1000 + NUM - NUM / 5 || fail("%llu at last", (unsigned long long)*word);
}

/* --- memory windows ----------------------------------------------------------------- */

static bool has(const struct mem_end *e, unsigned int flag)
{
	return e->attr.orig_attr.device_cap_flags & flag;
}

/* A region of end 1 that windows may be bound to, and no remote right of its own. */
static struct ibv_mr *bindable(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr = ibv_reg_mr(e->dev.pd, e->buf, MEM_SIZE,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);

	if (!mr)
		fail("reg_mr for windows: %m");
	return mr;
}

static bool bind1(struct mem *m, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint64_t len,
		  int access, enum ibv_wc_status status)
{
	struct ibv_mw_bind bind = {
		.wr_id = 6, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = mr, .addr = addr, .length = len, .mw_access_flags = access },
	};
	struct ibv_wc wc;
	int err;

	mem_connect(m);
	err = ibv_bind_mw(m->end[1].qp, mw, &bind);
	if (err)
		return fail("bind_mw: %s", strerror(err));
	if (status)
		mem_spoilt(m);
	return completes(m, 1, &wc, status) &&
	       (status || wc.opcode == IBV_WC_BIND_MW || fail("opcode %d", wc.opcode));
}

static bool bind2(struct mem *m, struct ibv_mw *mw, struct ibv_mr *mr, uint32_t rkey,
		  uint64_t addr, uint64_t len, int access, enum ibv_wc_status status)
{
	struct ibv_send_wr wr = {
		.wr_id = 7, .opcode = IBV_WR_BIND_MW,
		.bind_mw = {
			.mw = mw, .rkey = rkey,
			.bind_info = { .mr = mr, .addr = addr, .length = len,
				       .mw_access_flags = access },
		},
	};

	return post(m, 1, &wr, status);
}

/*
 * The window is this range and no byte more, for this and nothing else. soft-RoCE heeds
 * the rights of a window, yet the range of its region.
 */
static bool window_is(struct mem *m, uint32_t rkey, uint8_t *p, uint32_t len)
{
	return write_arrives(m, p, (uintptr_t)p, rkey, len) &&
	       (!m->end[1].is_skua ||
		(rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)p + 1, rkey, len, IBV_WC_REM_ACCESS_ERR) &&
		 rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)p - 1, rkey, 8, IBV_WC_REM_ACCESS_ERR))) &&
	       rdma(m, IBV_WR_RDMA_READ, (uintptr_t)p, rkey, 8, IBV_WC_REM_ACCESS_ERR);
}

static bool window_1(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	const int w = IBV_ACCESS_REMOTE_WRITE;
	uint64_t va = (uintptr_t)e->buf;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t first;
	bool ok;

	if (!has(e, IBV_DEVICE_MEM_WINDOW))
		return skip("no windows");
	mr = bindable(m);
	if (!mr)
		return false;
	mw = ibv_alloc_mw(e->dev.pd, IBV_MW_TYPE_1);
	if (!mw) {
		ibv_dereg_mr(mr);
		return fail("alloc_mw: %m");
	}
	first = mw->rkey;
	ok = rdma(m, IBV_WR_RDMA_WRITE, va, first, 8, IBV_WC_REM_ACCESS_ERR) &&
	     bind1(m, mw, mr, va + 100, 10000, w, IBV_WC_SUCCESS) &&
	     (mw->rkey != first || fail("the key is the old one")) &&
	     window_is(m, mw->rkey, e->buf + 100, 10000) &&
	     rdma(m, IBV_WR_RDMA_WRITE, va + 100, first, 8, IBV_WC_REM_ACCESS_ERR);
	/* Bound again elsewhere; the key changes with it. */
	first = mw->rkey;
	ok = ok && bind1(m, mw, mr, va + 30000, 777, w, IBV_WC_SUCCESS) &&
	     window_is(m, mw->rkey, e->buf + 30000, 777) &&
	     rdma(m, IBV_WR_RDMA_WRITE, va + 100, first, 8, IBV_WC_REM_ACCESS_ERR);
	/* A region with a window bound to it stays as it is. */
	if (ok && e->is_skua)
		ok = expect_err("dereg_mr with a window", ibv_dereg_mr(mr), EBUSY) &&
		     expect_err("rereg_mr with a window",
				ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					     IBV_ACCESS_LOCAL_WRITE) ? errno : 0, EBUSY) &&
		     window_is(m, mw->rkey, e->buf + 30000, 777);
	/* Bound to nothing. */
	first = mw->rkey;
	ok = ok && bind1(m, mw, mr, va, 0, 0, IBV_WC_SUCCESS) &&
	     rdma(m, IBV_WR_RDMA_WRITE, va + 30000, first, 8, IBV_WC_REM_ACCESS_ERR) &&
	     rdma(m, IBV_WR_RDMA_WRITE, va + 30000, mw->rkey, 8, IBV_WC_REM_ACCESS_ERR);
	if (ibv_dealloc_mw(mw))
		ok = fail("dealloc_mw: %m");
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	return ok;
}

/* A window that goes bound lets go of its region. */
static bool window_goes(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey = 0;
	bool ok;

	if (!has(e, IBV_DEVICE_MEM_WINDOW))
		return skip("no windows");
	mr = bindable(m);
	if (!mr)
		return false;
	mw = ibv_alloc_mw(e->dev.pd, IBV_MW_TYPE_1);
	if (!mw) {
		ibv_dereg_mr(mr);
		return fail("alloc_mw: %m");
	}
	ok = bind1(m, mw, mr, (uintptr_t)e->buf, 100, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
	rkey = mw->rkey;
	if (ibv_dealloc_mw(mw))
		ok = fail("dealloc_mw: %m");
	ok = ok && rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)e->buf, rkey, 8, IBV_WC_REM_ACCESS_ERR);
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	return ok;
}

/* SEND with invalidate by end 0, told to end 1. */
static bool send_inv(struct mem *m, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey };
	struct mem_end *e = &m->end[1];
	struct ibv_wc wc;

	if (!recv_post(m, 1, e->buf, 64, e->mr->lkey) || !post(m, 0, &wr, status))
		return false;
	if (status != IBV_WC_SUCCESS)
		return true;
	return completes(m, 1, &wc, IBV_WC_SUCCESS) &&
	       /* soft-RoCE sets the kernel's flag, which is another bit. */
	       (!e->is_skua || wc.wc_flags & IBV_WC_WITH_INV ||
		fail("nothing said of the key")) &&
	       (wc.invalidated_rkey == rkey || fail("another key: %#x", wc.invalidated_rkey));
}

static bool local_inv(struct mem *m, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey };

	return post(m, 1, &wr, status);
}

static bool window_2(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	const int w = IBV_ACCESS_REMOTE_WRITE;
	uint64_t va = (uintptr_t)e->buf;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t rkey;
	bool ok;

	if (!has(e, IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		return skip("no windows of type 2");
	mr = bindable(m);
	if (!mr)
		return false;
	mw = ibv_alloc_mw(e->dev.pd, IBV_MW_TYPE_2);
	if (!mw) {
		ibv_dereg_mr(mr);
		return fail("alloc_mw: %m");
	}
	rkey = ibv_inc_rkey(mw->rkey);
	ok = bind2(m, mw, mr, rkey, va + 64, 9000, w, IBV_WC_SUCCESS) &&
	     window_is(m, rkey, e->buf + 64, 9000) &&
	     local_inv(m, rkey, IBV_WC_SUCCESS) &&
	     rdma(m, IBV_WR_RDMA_WRITE, va + 64, rkey, 8, IBV_WC_REM_ACCESS_ERR);
	mw->rkey = rkey;
	rkey = ibv_inc_rkey(rkey);
	ok = ok && bind2(m, mw, mr, rkey, va + 5000, 3000, w, IBV_WC_SUCCESS) &&
	     window_is(m, rkey, e->buf + 5000, 3000) &&
	     send_inv(m, rkey, IBV_WC_SUCCESS) &&
	     rdma(m, IBV_WR_RDMA_WRITE, va + 5000, rkey, 8, IBV_WC_REM_ACCESS_ERR);
	mw->rkey = rkey;
	if (ibv_dealloc_mw(mw))
		ok = fail("dealloc_mw: %m");
	if (ibv_dereg_mr(mr))
		ok = fail("dereg_mr: %m");
	return ok;
}

/* Binds that must not be. */
static bool bind_refused(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	const int w = IBV_ACCESS_REMOTE_WRITE;
	uint64_t va = (uintptr_t)e->buf;
	struct ibv_mw_bind bind = { .bind_info = { .length = 100, .mw_access_flags = w } };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_mw *mw1, *mw2;
	struct ibv_mr *mr, *ro;
	bool ok;

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	if (!has(e, IBV_DEVICE_MEM_WINDOW))
		return skip("no windows");
	mr = bindable(m);
	ro = ibv_reg_mr(e->dev.pd, e->buf, MEM_SIZE, IBV_ACCESS_MW_BIND);
	mw1 = ibv_alloc_mw(e->dev.pd, IBV_MW_TYPE_1);
	mw2 = ibv_alloc_mw(e->dev.pd, IBV_MW_TYPE_2);
	if (!mr || !ro || !mw1 || !mw2)
		return fail("region or window: %m");
	/* The device says no: no right to bind, beyond the region, no right to write. */
	ok = bind1(m, mw1, e->mr, va, 100, w, IBV_WC_MW_BIND_ERR) &&
	     bind1(m, mw1, mr, va + MEM_SIZE - 99, 100, w, IBV_WC_MW_BIND_ERR) &&
	     bind1(m, mw1, ro, va, 100, w, IBV_WC_MW_BIND_ERR) &&
	     bind2(m, mw2, e->mr, ibv_inc_rkey(mw2->rkey), va, 100, w, IBV_WC_MW_BIND_ERR);
	/* The library says no: types mixed up, rights that windows have not. */
	bind.bind_info.mr = mr;
	bind.bind_info.addr = va;
	ok = ok && expect_err("bind_mw of type 2", ibv_bind_mw(e->qp, mw2, &bind), EINVAL);
	bind.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	mem_connect(m);
	ok = ok && expect_err("bind_mw for binding", ibv_bind_mw(e->qp, mw1, &bind), EINVAL);
	wr.bind_mw.mw = mw1;
	wr.bind_mw.rkey = ibv_inc_rkey(mw1->rkey);
	wr.bind_mw.bind_info = bind.bind_info;
	wr.bind_mw.bind_info.mw_access_flags = w;
	ok = ok && expect_err("post_send of type 1", ibv_post_send(e->qp, &wr, &bad), EINVAL);
	wr.bind_mw.mw = mw2;
	wr.bind_mw.rkey = mw2->rkey + 256;
	ok = ok && expect_err("another key index", ibv_post_send(e->qp, &wr, &bad), EINVAL);
	if (ibv_dealloc_mw(mw1) || ibv_dealloc_mw(mw2) || ibv_dereg_mr(mr) || ibv_dereg_mr(ro))
		ok = fail("something is left: %m");
	return ok;
}

/* Keys that cannot be invalidated. */
static bool inv_refused(struct mem *m)
{
	struct mem_end *e = &m->end[1];

	if (!e->is_skua)
		return skip("not of soft-RoCE");
	if (!has(e, IBV_DEVICE_MEM_MGT_EXTENSIONS))
		return skip("no invalidation");
	/* A region of reg_mr; a key of nothing. */
	return local_inv(m, e->mr->rkey, IBV_WC_MW_BIND_ERR) &&
	       send_inv(m, e->mr->rkey, IBV_WC_REM_ACCESS_ERR) &&
	       rdma(m, IBV_WR_RDMA_WRITE, (uintptr_t)e->buf, e->mr->rkey, 8, IBV_WC_SUCCESS);
}

const struct mem_case mem_cases_key[] = {
	{ "atomics", atomics },
	{ "atomics that must not be", atomics_refused },
	{ "atomics at the end of a region", atomics_at_end },
	{ "atomics in flight", atomics_queued },
	{ "window of type 1", window_1 },
	{ "window goes with its binding", window_goes },
	{ "window of type 2", window_2 },
	{ "binds that must not be", bind_refused },
	{ "keys that stay", inv_refused },
	{}
};
