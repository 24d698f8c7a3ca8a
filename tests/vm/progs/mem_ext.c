// SPDX-License-Identifier: GPL-2.0
/*
 * skua-mem: what only ibv_wr_*() can post, FLUSH and ATOMIC WRITE.
 */
#include "mem.h"

static bool ext_done(struct mem *m)
{
	return mem_qp(m, 0, 0) || fail("create_qp: %m");
}

/* --- FLUSH ------------------------------------------------------------------- */

/* A FLUSH that ends so. */
static bool flush_op(struct mem *m, uint64_t va, uint32_t rkey, size_t len, uint8_t type,
		     uint8_t level, enum ibv_wc_status status)
{
	struct ibv_qp_ex *qpx;
	struct ibv_wc wc;
	int err;

	mem_connect(m);
	qpx = ibv_qp_to_qp_ex(m->end[0].qp);
	ibv_wr_start(qpx);
	qpx->wr_id = 17;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qpx, rkey, va, len, type, level);
	err = ibv_wr_complete(qpx);
	if (err)
		return fail("wr_flush: %s", strerror(err));
	if (status)
		mem_spoilt(m);
	return completes(m, 0, &wc, status) &&
	       (status || wc.opcode == IBV_WC_FLUSH || fail("opcode %d", wc.opcode)) &&
	       (wc.wr_id == 17 || fail("another request"));
}

static bool flush_all(struct mem *m, struct ibv_mr *mr)
{
	const uint8_t g = IBV_FLUSH_GLOBAL, range = IBV_FLUSH_RANGE;
	const enum ibv_wc_status access = IBV_WC_REM_ACCESS_ERR;
	struct mem_end *e = &m->end[1];
	uint64_t va = (uintptr_t)e->buf;

	return write_arrives(m, e->buf, va, mr->rkey, 10000) &&
	       flush_op(m, va, mr->rkey, 10000, g, range, IBV_WC_SUCCESS) &&
	       flush_op(m, va, mr->rkey, MEM_SIZE, g, range, IBV_WC_SUCCESS) &&
	       flush_op(m, 0, mr->rkey, 0, g, IBV_FLUSH_MR, IBV_WC_SUCCESS) &&
	       /* Over the end; of a region without the right; of a kind the QP has not. */
	       flush_op(m, va + 1, mr->rkey, MEM_SIZE, g, range, access) &&
	       flush_op(m, va, e->mr->rkey, 8, g, range, access) &&
	       flush_op(m, va, mr->rkey, 8, IBV_FLUSH_PERSISTENT, range,
			IBV_WC_REM_INV_REQ_ERR);
}

static bool flush(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	struct ibv_mr *mr;
	bool ok;

	/*
	 * soft-RoCE reckons the ICRC of a FLUSH over its headers twice: it drops those of
	 * others, and they its own.
	 */
	if (m->end[0].is_skua != m->end[1].is_skua)
		return skip("soft-RoCE's ICRC of a FLUSH is wrong");
	mr = ibv_reg_mr(e->dev.pd, e->buf, MEM_SIZE, MEM_ALL | IBV_ACCESS_FLUSH_GLOBAL);
	if (!mr)
		return errno == EOPNOTSUPP ? skip("no regions to flush") : fail("reg_mr: %m");
	if (!mem_qp(m, 0, IBV_QP_EX_WITH_FLUSH)) {
		ibv_dereg_mr(mr);
		return skip("no QPs that flush");
	}
	m->flush = IBV_ACCESS_FLUSH_GLOBAL;
	ok = flush_all(m, mr);
	m->flush = 0;
	ok = ext_done(m) && ok;
	ibv_dereg_mr(mr);
	return ok;
}

/* --- ATOMIC WRITE ------------------------------------------------------------- */

static bool write_op(struct mem *m, uint64_t *word, uint64_t va, uint32_t rkey,
		     enum ibv_wc_status status)
{
	static const uint64_t value = 0x1122334455667788;
	struct ibv_qp_ex *qpx;
	struct ibv_wc wc;
	int err;

	mem_connect(m);
	qpx = ibv_qp_to_qp_ex(m->end[0].qp);
	word[0] = word[1] = 0;
	ibv_wr_start(qpx);
	qpx->wr_id = 18;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qpx, rkey, va, &value);
	err = ibv_wr_complete(qpx);
	if (err)
		return fail("wr_atomic_write: %s", strerror(err));
	if (status)
		mem_spoilt(m);
	return completes(m, 0, &wc, status) &&
	       (word[0] == (status ? 0 : value) ||
		fail("%#llx is there", (unsigned long long)word[0])) &&
	       (!word[1] || fail("and behind it")) &&
	       (status || wc.opcode == IBV_WC_ATOMIC_WRITE || fail("opcode %d", wc.opcode));
}

static bool atomic_write(struct mem *m)
{
	struct mem_end *e = &m->end[1];
	uint64_t *word = (uint64_t *)(e->buf + 64), va = (uintptr_t)word;
	bool ok;

	if (!mem_qp(m, 0, IBV_QP_EX_WITH_ATOMIC_WRITE))
		return skip("no ATOMIC WRITE");
	/* Well; beside a multiple of 8; with a key of nothing; beyond the region. */
	ok = write_op(m, word, va, e->mr->rkey, IBV_WC_SUCCESS) &&
	     write_op(m, word, va + 4, e->mr->rkey, IBV_WC_REM_INV_REQ_ERR) &&
	     write_op(m, word, va, e->mr->rkey ^ 1, IBV_WC_REM_ACCESS_ERR) &&
	     write_op(m, word, (uintptr_t)e->buf + MEM_SIZE, e->mr->rkey,
		      IBV_WC_REM_ACCESS_ERR) &&
	     write_op(m, word, va, e->mr->rkey, IBV_WC_SUCCESS);
	return ext_done(m) && ok;
}

const struct mem_case mem_cases_ext[] = {
	{ "FLUSH", flush },
	{ "ATOMIC WRITE", atomic_write },
	{}
};
