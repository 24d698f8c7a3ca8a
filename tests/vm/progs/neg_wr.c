// SPDX-License-Identifier: GPL-2.0
/*
 * Bad work requests: what post_* refuses, and what completes with which status.
 */
#include <errno.h>
#include <string.h>

#include "neg.h"

#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* --- refused at once --------------------------------------------------------- */

static bool refused_in_reset(struct neg *n)
{
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_SEND }, *bad = NULL;
	struct ibv_recv_wr rwr = { .wr_id = 2 }, *rbad = NULL;
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, false);
	ok = expect_err("post_send in RESET", ibv_post_send(p.qp[0], &wr, &bad), EINVAL) &&
	     expect_err("post_recv in RESET", ibv_post_recv(p.qp[0], &rwr, &rbad), EINVAL);
	if (ok && (bad != &wr || rbad != &rwr))
		ok = fail("bad_wr does not tell which");
	pair_free(&p);
	return ok;
}

static bool refused_in_init(struct neg *n)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, false);
	if (qp_to_init(p.qp[0], &link_default))
		die("INIT: %m");
	ok = expect_err("post_send in INIT", ibv_post_send(p.qp[0], &wr, &bad), EINVAL) &&
	     expect_err("post_recv in INIT", post_recv(&p, 0, 1, n->buf, 64, n->mr->lkey), 0);
	pair_free(&p);
	return ok;
}

static bool refused_sges(struct neg *n)
{
	struct ibv_sge sg[64] = {};
	struct ibv_send_wr ok_wr = { .wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE };
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = sg }, *bad = NULL;
	struct ibv_recv_wr rwr = { .sg_list = sg }, *rbad;
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	wr.num_sge = p.cap.max_send_sge + 1;
	rwr.num_sge = p.cap.max_recv_sge + 1;
	ok_wr.next = &wr;
	ok = expect_err("one SGE too many to send", ibv_post_send(p.qp[0], &ok_wr, &bad), EINVAL) &&
	     expect_err("one SGE too many to receive", ibv_post_recv(p.qp[0], &rwr, &rbad), EINVAL);
	if (ok && bad != &wr)
		ok = fail("bad_wr is not the second request");
	wr.num_sge = -1;
	ok = ok && expect_err("-1 SGEs", ibv_post_send(p.qp[0], &wr, &bad), EINVAL);
	pair_free(&p);
	return ok;
}

static bool refused_inline(struct neg *n)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE };
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	ok = expect_err("inline too long",
			post_send(&p, 0, &wr, n->buf, p.cap.max_inline_data + 1, 0), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	ok = ok && expect_err("inline READ", post_send(&p, 0, &wr, n->buf, 8, 0), EINVAL);
	pair_free(&p);
	return ok;
}

static bool refused_opcode(struct neg *n)
{
	static const int ops[] = { 31, 32, 255, -1 };
	struct ibv_send_wr wr = {}, *bad;
	struct pair p;
	unsigned int i;
	bool ok = true;

	pair_make(&p, n, ALL_RIGHTS, true);
	for (i = 0; ok && i < sizeof(ops) / sizeof(ops[0]); i++) {
		wr.opcode = ops[i];
		ok = expect_err("bad opcode", ibv_post_send(p.qp[0], &wr, &bad), EINVAL);
	}
	pair_free(&p);
	return ok;
}

/* A full queue says ENOMEM, not before it holds what was promised. */
static bool refused_full(struct neg *n)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;
	unsigned int posted = 0, rposted = 0;
	struct pair p;
	bool ok;
	int err;

	pair_make(&p, n, ALL_RIGHTS, true);
	/* Unsignaled: nothing gives room back until a later one is reported. */
	wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
	wr.wr.rdma.rkey = n->mr->rkey;
	while (!(err = ibv_post_send(p.qp[0], &wr, &bad)) && posted < 100000)
		posted++;
	ok = expect_err("send queue full", err, ENOMEM);
	if (ok && posted < 8)
		ok = fail("send queue full after %u of 8", posted);

	while (!(err = post_recv(&p, 1, rposted, n->buf, 64, n->mr->lkey)) && rposted < 100000)
		rposted++;
	ok = ok && expect_err("receive queue full", err, ENOMEM);
	if (ok && (rposted < 8 || rposted > p.cap.max_recv_wr))
		ok = fail("receive queue full after %u, has %u", rposted, p.cap.max_recv_wr);

	pair_free(&p);
	return ok;
}

/* --- local errors -------------------------------------------------------------- */

/* A WRITE whose gather element is bad completes with LOC_PROT_ERR. */
static bool bad_gather(struct neg *n, void *addr, uint32_t len, uint32_t lkey)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr next = { .wr_id = 8, .opcode = IBV_WR_RDMA_WRITE };
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	wr.wr.rdma.remote_addr = next.wr.rdma.remote_addr = (uintptr_t)n->buf;
	wr.wr.rdma.rkey = next.wr.rdma.rkey = n->mr->rkey;
	ok = expect_err("post", post_send(&p, 0, &wr, addr, len, lkey), 0) &&
	     expect_wc(&p, 0, 7, IBV_WC_LOC_PROT_ERR) &&
	     expect_err("post in error", post_send(&p, 0, &next, n->buf, 8, n->mr->lkey), 0) &&
	     expect_wc(&p, 0, 8, IBV_WC_WR_FLUSH_ERR);
	pair_free(&p);
	return ok;
}

static bool lkey_unknown(struct neg *n)
{
	return bad_gather(n, n->buf, 64, n->mr->lkey ^ 0x55555500);
}

static bool lkey_variant(struct neg *n)
{
	return bad_gather(n, n->buf, 64, n->mr->lkey ^ 1);
}

static bool lkey_zero(struct neg *n)
{
	return bad_gather(n, n->buf, 64, 0);
}

static bool lkey_reserved(struct neg *n)
{
	/* The kernel's key of all memory: not for a user's queue. */
	return bad_gather(n, n->buf, 64, 0xff);
}

static bool lkey_other_pd(struct neg *n)
{
	return bad_gather(n, n->buf, 64, n->mr2->lkey);
}

static bool gather_before(struct neg *n)
{
	return bad_gather(n, n->buf - 1, 64, n->mr->lkey);
}

static bool gather_beyond(struct neg *n)
{
	return bad_gather(n, n->buf + BUF_SIZE - 63, 64, n->mr->lkey);
}

static bool gather_wraps(struct neg *n)
{
	return bad_gather(n, (void *)(uintptr_t)-32, 64, n->mr->lkey);
}

static bool lkey_deregistered(struct neg *n)
{
	struct ibv_mr *mr = ibv_reg_mr(n->dev.pd, n->buf, BUF_SIZE, ALL_RIGHTS);
	uint32_t lkey;

	if (!mr)
		die("reg_mr: %m");
	lkey = mr->lkey;
	ibv_dereg_mr(mr);
	return bad_gather(n, n->buf, 64, lkey);
}

/* A READ may not write where the region has no local write right. */
static bool read_to_readonly(struct neg *n)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_RDMA_READ };
	struct ibv_mr *ro = ibv_reg_mr(n->dev.pd, n->buf, BUF_SIZE, 0);
	struct pair p;
	bool ok;

	if (!ro)
		die("reg_mr: %m");
	pair_make(&p, n, ALL_RIGHTS, true);
	wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
	wr.wr.rdma.rkey = n->mr->rkey;
	ok = expect_err("post", post_send(&p, 0, &wr, n->buf, 64, ro->lkey), 0) &&
	     expect_wc(&p, 0, 7, IBV_WC_LOC_PROT_ERR);
	pair_free(&p);
	ibv_dereg_mr(ro);
	return ok;
}

/* --- receives -------------------------------------------------------------------- */

static bool bad_receive(struct neg *n, void *addr, uint32_t len, uint32_t lkey,
			enum ibv_wc_status mine, enum ibv_wc_status theirs)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_SEND };
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	ok = expect_err("post_recv", post_recv(&p, 1, 9, addr, len, lkey), 0) &&
	     expect_err("post_recv", post_recv(&p, 1, 10, n->buf, 64, n->mr->lkey), 0) &&
	     expect_err("post_send", post_send(&p, 0, &wr, n->buf, 64, n->mr->lkey), 0) &&
	     expect_wc(&p, 1, 9, mine) && expect_wc(&p, 0, 7, theirs) &&
	     expect_wc(&p, 1, 10, IBV_WC_WR_FLUSH_ERR) &&
	     /* posted to a QP that the device took to error */
	     expect_err("late post_recv", post_recv(&p, 1, 11, n->buf, 64, n->mr->lkey), 0) &&
	     expect_wc(&p, 1, 11, IBV_WC_WR_FLUSH_ERR);
	pair_free(&p);
	return ok;
}

static bool recv_too_short(struct neg *n)
{
	return bad_receive(n, n->buf, 63, n->mr->lkey, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
}

static bool recv_bad_lkey(struct neg *n)
{
	return bad_receive(n, n->buf, 64, n->mr->lkey ^ 0x55555500, IBV_WC_LOC_PROT_ERR,
			   IBV_WC_REM_OP_ERR);
}

static bool recv_other_pd(struct neg *n)
{
	return bad_receive(n, n->buf, 64, n->mr2->lkey, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
}

static bool recv_beyond(struct neg *n)
{
	return bad_receive(n, n->buf + BUF_SIZE - 10, 64, n->mr->lkey, IBV_WC_LOC_PROT_ERR,
			   IBV_WC_REM_OP_ERR);
}

static bool recv_readonly(struct neg *n)
{
	struct ibv_mr *ro = ibv_reg_mr(n->dev.pd, n->buf, BUF_SIZE, 0);
	bool ok;

	if (!ro)
		die("reg_mr: %m");
	ok = bad_receive(n, n->buf, 64, ro->lkey, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	ibv_dereg_mr(ro);
	return ok;
}

static bool recv_none(struct neg *n)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_SEND };
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	ok = expect_err("post", post_send(&p, 0, &wr, n->buf, 64, n->mr->lkey), 0) &&
	     expect_wc(&p, 0, 7, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_free(&p);
	return ok;
}

/* --- remote errors ------------------------------------------------------------------ */

static bool bad_remote(struct neg *n, enum ibv_wr_opcode op, void *addr, uint32_t len,
		       uint32_t rkey, unsigned int qp_access)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = op };
	struct pair p;
	bool ok;

	pair_make(&p, n, qp_access, true);
	wr.wr.rdma.remote_addr = (uintptr_t)addr;
	wr.wr.rdma.rkey = rkey;
	ok = expect_err("post", post_send(&p, 0, &wr, n->buf, len, n->mr->lkey), 0) &&
	     expect_wc(&p, 0, 7, IBV_WC_REM_ACCESS_ERR);
	pair_free(&p);
	return ok;
}

/* WRITE and READ alike. */
static bool bad_remote_both(struct neg *n, void *addr, uint32_t len, uint32_t rkey)
{
	return bad_remote(n, IBV_WR_RDMA_WRITE, addr, len, rkey, ALL_RIGHTS) &&
	       bad_remote(n, IBV_WR_RDMA_READ, addr, len, rkey, ALL_RIGHTS);
}

static bool rkey_unknown(struct neg *n)
{
	return bad_remote_both(n, n->buf, 64, n->mr->rkey ^ 0x55555500);
}

static bool rkey_variant(struct neg *n)
{
	return bad_remote_both(n, n->buf, 64, n->mr->rkey ^ 1);
}

static bool rkey_reserved(struct neg *n)
{
	return bad_remote_both(n, n->buf, 64, 0xff);
}

static bool rkey_other_pd(struct neg *n)
{
	return bad_remote_both(n, n->buf, 64, n->mr2->rkey);
}

static bool remote_before(struct neg *n)
{
	return bad_remote_both(n, n->buf - 1, 64, n->mr->rkey);
}

static bool remote_beyond(struct neg *n)
{
	return bad_remote_both(n, n->buf + BUF_SIZE - 8191, 8192, n->mr->rkey);
}

static bool remote_wraps(struct neg *n)
{
	return bad_remote_both(n, (void *)(uintptr_t)-32, 64, n->mr->rkey);
}

static bool remote_rights_mr(struct neg *n)
{
	struct ibv_mr *r, *w;
	bool ok;

	r = ibv_reg_mr(n->dev.pd, n->buf, BUF_SIZE, IBV_ACCESS_REMOTE_READ);
	w = ibv_reg_mr(n->dev.pd, n->buf, BUF_SIZE,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!r || !w)
		die("reg_mr: %m");
	ok = bad_remote(n, IBV_WR_RDMA_WRITE, n->buf, 64, r->rkey, ALL_RIGHTS) &&
	     bad_remote(n, IBV_WR_RDMA_READ, n->buf, 64, w->rkey, ALL_RIGHTS);
	ibv_dereg_mr(r);
	ibv_dereg_mr(w);
	return ok;
}

/* A QP without the right: the request is invalid, or an access error. */
static bool remote_rights_qp(struct neg *n)
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	static const unsigned int access[] = { IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct ibv_send_wr wr = { .wr_id = 7, .opcode = op[i] };
		struct ibv_wc wc;
		struct pair p;
		bool ok = true;

		pair_make(&p, n, access[i], true);
		memset(n->buf, 0x11, 64);
		memset(n->buf + 4096, 0x22, 64);
		wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
		wr.wr.rdma.rkey = n->mr->rkey;
		if (post_send(&p, 0, &wr, n->buf + 4096, 64, n->mr->lkey) ||
		    !poll_one(p.cq[0], &wc, 20))
			ok = fail("no completion");
		else if (wc.status != IBV_WC_REM_ACCESS_ERR && wc.status != IBV_WC_REM_INV_REQ_ERR)
			ok = fail("opcode %u: %s", op[i], ibv_wc_status_str(wc.status));
		else if (n->buf[0] != 0x11 || n->buf[4096] != 0x22)
			ok = fail("opcode %u: data moved", op[i]);
		pair_free(&p);
		if (!ok)
			return false;
	}
	return true;
}

/* Nobody answers. */
static bool peer_gone(struct neg *n)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_RDMA_WRITE };
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, true);
	if (ibv_destroy_qp(p.qp[1]))
		die("destroy_qp: %m");
	p.qp[1] = NULL;
	wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
	wr.wr.rdma.rkey = n->mr->rkey;
	ok = expect_err("post", post_send(&p, 0, &wr, n->buf, 64, n->mr->lkey), 0) &&
	     expect_wc(&p, 0, 7, IBV_WC_RETRY_EXC_ERR);
	pair_free(&p);
	return ok;
}

/* The requester's packets are longer than the responder's path MTU. */
static bool mtu_mismatch(struct neg *n)
{
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_RDMA_WRITE };
	struct pair p;
	bool ok;

	pair_make(&p, n, ALL_RIGHTS, false);
	pair_connect(&p, ALL_RIGHTS, IBV_MTU_1024, IBV_MTU_256);
	wr.wr.rdma.remote_addr = (uintptr_t)n->buf;
	wr.wr.rdma.rkey = n->mr->rkey;
	ok = expect_err("post", post_send(&p, 0, &wr, n->buf + 8192, 4096, n->mr->lkey), 0) &&
	     expect_wc(&p, 0, 7, IBV_WC_REM_INV_REQ_ERR);
	pair_free(&p);
	return ok;
}

/* To ERR by hand: everything flushes, in order, signaled or not. */
static bool flush_all(struct neg *n)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct pair p;
	bool ok = true;
	int i;

	pair_make(&p, n, ALL_RIGHTS, true);
	for (i = 0; i < 8; i++)
		if (post_recv(&p, 0, i, n->buf, 64, n->mr->lkey))
			die("post_recv: %m");
	if (ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE))
		die("to ERR: %m");
	for (i = 0; ok && i < 8; i++)
		ok = expect_wc(&p, 0, i, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; ok && i < 4; i++) {
		wr.wr_id = 100 + i;
		ok = expect_err("send in ERR", ibv_post_send(p.qp[0], &wr, &bad), 0) &&
		     expect_wc(&p, 0, 100 + i, IBV_WC_WR_FLUSH_ERR) &&
		     expect_err("receive in ERR",
				post_recv(&p, 0, 200 + i, n->buf, 64, n->mr->lkey), 0) &&
		     expect_wc(&p, 0, 200 + i, IBV_WC_WR_FLUSH_ERR);
	}
	pair_free(&p);
	return ok;
}

/* RESET forgets what was posted; the QP then works again. */
static bool reset_and_reuse(struct neg *n)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_send_wr wr = { .wr_id = 7, .opcode = IBV_WR_SEND };
	struct ibv_wc wc;
	struct pair p;
	bool ok = true;
	int i, turn;

	pair_make(&p, n, ALL_RIGHTS, true);
	for (turn = 0; ok && turn < 3; turn++) {
		for (i = 0; i < 5; i++)
			if (post_recv(&p, 1, 50 + i, n->buf, 64, n->mr->lkey))
				die("post_recv: %m");
		ok = expect_err("post", post_send(&p, 0, &wr, n->buf, 64, n->mr->lkey), 0) &&
		     expect_wc(&p, 0, 7, IBV_WC_SUCCESS) && expect_wc(&p, 1, 50, IBV_WC_SUCCESS);
		for (i = 0; i < 2; i++)
			if (ibv_modify_qp(p.qp[i], &attr, IBV_QP_STATE))
				die("to RESET: %m");
		for (i = 0; ok && i < 2; i++)
			if (ibv_poll_cq(p.cq[i], 1, &wc))
				ok = fail("a completion after RESET");
		pair_connect(&p, ALL_RIGHTS, IBV_MTU_512, IBV_MTU_512);
	}
	pair_free(&p);
	return ok;
}

const struct neg_case cases_wr[] = {
	{ "post in RESET", refused_in_reset },
	{ "post in INIT", refused_in_init },
	{ "post too many SGEs", refused_sges },
	{ "post inline too long", refused_inline, .skua_only = true },
	{ "post bad opcode", refused_opcode },
	{ "post to a full queue", refused_full },
	{ "lkey unknown", lkey_unknown },
	{ "lkey of another variant", lkey_variant },
	{ "lkey zero", lkey_zero },
	{ "lkey reserved", lkey_reserved },
	{ "lkey of another PD", lkey_other_pd },
	{ "lkey deregistered", lkey_deregistered },
	{ "gather before the region", gather_before },
	{ "gather beyond the region", gather_beyond },
	{ "gather around the address space", gather_wraps },
	{ "READ into read-only memory", read_to_readonly },
	{ "receive too short", recv_too_short },
	{ "receive with bad lkey", recv_bad_lkey },
	{ "receive in another PD", recv_other_pd },
	{ "receive beyond the region", recv_beyond },
	{ "receive into read-only memory", recv_readonly },
	{ "no receive posted", recv_none },
	{ "rkey unknown", rkey_unknown },
	{ "rkey of another variant", rkey_variant },
	{ "rkey reserved", rkey_reserved },
	{ "rkey of another PD", rkey_other_pd },
	{ "remote before the region", remote_before },
	{ "remote beyond the region", remote_beyond },
	{ "remote around the address space", remote_wraps },
	{ "remote rights of the region", remote_rights_mr },
	{ "remote rights of the QP", remote_rights_qp },
	{ "peer gone", peer_gone },
	{ "path MTU mismatch", mtu_mismatch },
	{ "flush in ERR", flush_all },
	{ "RESET and reuse", reset_and_reuse },
	{}
};
