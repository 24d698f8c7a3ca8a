// SPDX-License-Identifier: GPL-2.0
/*
 * skua-direct -d DEV -g GID; TAP. The provider's own interface: what it tells of the device,
 * flags of creation, and a program that posts and polls by the rings, doorbells, push slots
 * and records alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skua/cqe_parse.h>
#include <skua/hw/doorbell.h>
#include <skua/wqe_build.h>

#include "common.h"
#include "skuadv.h"

#define LEN	64
#define ROUNDS	200

/* One side: its queue, as the verbs and as it lies in memory */
struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct skuadv_cq dcq;
	struct skuadv_qp dqp;
	uint32_t sq_pi, rq_pi, ci;
	unsigned int turn;
};

static struct dev dev;
static struct ibv_mr *mr;
static uint8_t *buf;		/* a page of each side */
static struct side side[2];

/* --- queues -------------------------------------------------------------------------- */

static struct ibv_cq *cq_make(uint32_t cqe_size)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64 };
	struct skuadv_cq_init_attr sattr = { .cqe_size = cqe_size };
	struct ibv_cq_ex *cq = skuadv_create_cq(dev.ctx, &attr, &sattr, sizeof(sattr));

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_qp *qp_make(struct ibv_cq *cq, uint32_t flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 28 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = dev.pd,
	};
	struct skuadv_qp_init_attr sattr = { .create_flags = flags };

	return skuadv_create_qp(dev.ctx, &attr, &sattr, sizeof(sattr));
}

static bool connect_both(void)
{
	struct addr addr[2];
	int i;

	for (i = 0; i < 2; i++)
		addr[i] = qp_addr(&dev, side[i].qp, 77 + i);
	for (i = 0; i < 2; i++)
		qp_connect(&dev, side[i].qp, 77 + i, &addr[!i], &link_default);
	return true;
}

static bool up(uint32_t cqe_size, uint32_t flags)
{
	int i;

	memset(side, 0, sizeof(side));
	for (i = 0; i < 2; i++) {
		struct side *s = &side[i];
		struct skuadv_obj obj = { 0 };
		int ret;

		s->cq = cq_make(cqe_size);
		if (!s->cq)
			return fail("create_cq: %m");
		s->qp = qp_make(s->cq, flags);
		if (!s->qp)
			return fail("create_qp: %m");
		obj.qp.in = s->qp;
		obj.qp.out = &s->dqp;
		obj.cq.in = s->cq;
		obj.cq.out = &s->dcq;
		ret = skuadv_init_obj(&obj, SKUADV_OBJ_QP | SKUADV_OBJ_CQ);
		if (ret)
			return fail("init_obj: error %d", ret);
		if (s->dqp.qpn != s->qp->qp_num || s->dcq.cqe_size != cqe_size)
			return fail("QPN %#x instead of %#x, CQE of %u instead of %u bytes",
				    s->dqp.qpn, s->qp->qp_num, s->dcq.cqe_size, cqe_size);
	}
	return connect_both();
}

static void down(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (side[i].qp)
			ibv_destroy_qp(side[i].qp);
		if (side[i].cq)
			ibv_destroy_cq(side[i].cq);
	}
}

static uint8_t *mem(int i)
{
	return buf + i * PAGE;
}

/* --- by hand --------------------------------------------------------------------------- */

/* Stronger than it need be: all memory, of whatever type */
static void barrier(void)
{
	__sync_synchronize();
}

static void store(void *to, uint64_t word)
{
	*(volatile uint64_t *)to = cpu_to_le64(word);
}

static void ring(struct side *s, bool push)
{
	const struct skuadv_qp *q = &s->dqp;
	uint64_t word = skua_db_word(s->sq_pi, q->qpn);
	struct skua_qp_dbr *rec = q->record;
	const uint64_t *wqe = (void *)((uint8_t *)q->sq_buf +
				       ((s->sq_pi - 1) & (q->sq_blocks - 1)) * SKUA_WQE_BLOCK);
	uint8_t *slot = (uint8_t *)q->push + s->turn * SKUA_UAR_PUSH_SLOT_SIZE;
	int i;

	barrier();
	rec->sq_pi = cpu_to_le32(s->sq_pi);
	barrier();
	if (push) {
		for (i = 0; i < 7; i++)
			store(slot + 8 * i, i < 6 ? le64_to_cpu(wqe[i]) : 0);
		store(slot + 56, word);
		s->turn ^= 1;
	} else {
		store(q->doorbell, word);
	}
	barrier();
}

/* A SEND, or a WRITE to the peer's page, of @len bytes from @off */
static void post(struct side *s, enum skua_wqe_op op, uint32_t off, uint32_t len)
{
	uint32_t at = s->sq_pi & (s->dqp.sq_blocks - 1);
	uint8_t *wqe = (uint8_t *)s->dqp.sq_buf + at * SKUA_WQE_BLOCK;
	unsigned int n = 1;

	if (op == SKUA_WQE_WRITE)
		skua_wqe_raddr_set((void *)(wqe + SKUA_WQE_SEG * n++),
				   (uintptr_t)mem(s == &side[0]) + off, mr->rkey, 0);
	skua_wqe_data_set((void *)(wqe + SKUA_WQE_SEG * n++),
			  (uintptr_t)mem(s == &side[1]) + off, mr->lkey, len);
	skua_wqe_ctrl_set((void *)wqe, op, n, s->sq_pi, SKUA_WQE_F_SIGNALED);
	s->sq_pi++;
}

static void post_recv(struct side *s, uint32_t off)
{
	struct skua_wqe_data *d = (void *)((uint8_t *)s->dqp.rq_buf +
					   (s->rq_pi & (s->dqp.rq_wqes - 1)) * s->dqp.rq_stride);

	skua_wqe_data_set(d, (uintptr_t)mem(s == &side[1]) + off, mr->lkey, LEN);
	if (s->dqp.rq_stride > sizeof(*d))
		d[1].lkey = cpu_to_le32(SKUA_INVALID_LKEY);
	barrier();
	((struct skua_qp_dbr *)s->dqp.record)->rq_pi = cpu_to_le32(++s->rq_pi);
}

/* The next completion; NULL and a message if it does not come */
static const struct skua_cqe *next(struct side *s)
{
	const struct skuadv_cq *c = &s->dcq;
	const struct skua_cqe *cqe = (void *)((uint8_t *)c->buf +
			((size_t)(s->ci & (c->cqes - 1)) + 1) * c->cqe_size - sizeof(*cqe));
	double end = now() + 20;

	while (!skua_cqe_is_new(cqe, s->ci, __builtin_ctz(c->cqes))) {
		if (now() > end || !*s->dqp.alive) {
			fail("no completion %u", s->ci);
			return NULL;
		}
	}
	barrier();
	s->ci++;
	if (skua_cqe_status(cqe) == SKUA_CQE_OK)
		return cqe;
	fail("completion %u: status %#x, vendor %#x", s->ci - 1, skua_cqe_status(cqe),
	     skua_cqe_vendor(cqe));
	return NULL;
}

/* What was taken may be written over. */
static void release(struct side *s)
{
	barrier();
	((struct skua_cq_dbr *)s->dcq.record)->ci = cpu_to_le32(s->ci);
}

/* --- cases ------------------------------------------------------------------------------ */

static bool writes(bool push)
{
	unsigned int i, k;

	for (i = 0; i < ROUNDS; i++) {
		for (k = 0; k < LEN; k++)
			mem(0)[64 + k] = i + k;
		post(&side[0], SKUA_WQE_WRITE, 64, LEN);
		ring(&side[0], push);
		if (!next(&side[0]))
			return false;
		release(&side[0]);
		if (memcmp(mem(0) + 64, mem(1) + 64, LEN))
			return fail("round %u: other data", i);
	}
	return true;
}

static bool by_doorbell(void)
{
	return writes(false);
}

static bool by_push(void)
{
	if (!side[0].dqp.push)
		return skip("the context has no page for pushes: SKUA_SHUT_UP_BF=0");
	return writes(true);
}

/* Receives by hand too: payload where the completion says */
static bool sends(void)
{
	unsigned int i, k;

	for (i = 0; i < ROUNDS; i++) {
		uint32_t len = 1 + i % LEN, room = side[1].dcq.cqe_size == 128 ? 64 : 32;
		const struct skua_cqe *cqe;
		const uint8_t *got = mem(1) + 512;
		bool in;

		for (k = 0; k < len; k++)
			mem(0)[k] = 3 * i + k;
		memset(mem(1) + 512, 0xee, LEN);
		post_recv(&side[1], 512);
		post(&side[0], SKUA_WQE_SEND, 0, len);
		ring(&side[0], false);
		cqe = next(&side[1]);
		if (!cqe || !next(&side[0]))
			return false;
		in = skua_cqe_flags(cqe) & SKUA_CQE_F_INLINE;
		if (le32_to_cpu(cqe->byte_len) != len)
			return fail("round %u: %u bytes", i, le32_to_cpu(cqe->byte_len));
		if (in != (len <= room))
			return fail("%u bytes %s in the CQE", len, in ? "came" : "did not come");
		if (in)
			got = len <= 32 ? cqe->data : (const uint8_t *)cqe - sizeof(*cqe);
		if (memcmp(mem(0), got, len))
			return fail("round %u: other data", i);
		if (in && mem(1)[512] != 0xee)
			return fail("round %u: in memory as well", i);
		release(&side[0]);
		release(&side[1]);
	}
	return true;
}

static bool no_scatter(void)
{
	const struct skua_cqe *cqe;

	post_recv(&side[1], 512);
	post(&side[0], SKUA_WQE_SEND, 0, 8);
	ring(&side[0], false);
	cqe = next(&side[1]);
	return cqe && next(&side[0]) &&
	       (!(skua_cqe_flags(cqe) & SKUA_CQE_F_INLINE) || fail("payload in the CQE")) &&
	       (!side[0].dqp.push || fail("push slots"));
}

static bool query(void)
{
	struct skuadv_device_attr attr, part;
	int ret = skuadv_query_device(dev.ctx, &attr, sizeof(attr));

	if (ret)
		return fail("error %d", ret);
	if (!skuadv_is_supported(dev.ctx->device))
		return fail("not supported");
	if (attr.comp_mask || attr.cqe_sizes != (64 | 128) || attr.max_send_blocks < 16 ||
	    attr.push_wqe_size > 48 || attr.max_wqe_blocks < 2)
		return fail("push %u, CQEs %#x, blocks %u", attr.push_wqe_size, attr.cqe_sizes,
			    attr.max_send_blocks);
	/* A program that knows less */
	memset(&part, 0xee, sizeof(part));
	ret = skuadv_query_device(dev.ctx, &part, 16);
	if (ret || part.caps != attr.caps || part.push_wqe_size != 0xeeeeeeee)
		return fail("16 bytes: error %d, capabilities %#llx, next %#x", ret,
			    (unsigned long long)part.caps, part.push_wqe_size);
	return expect_err("4 bytes", skuadv_query_device(dev.ctx, &part, 4), EINVAL);
}

static bool refused(void)
{
	struct skuadv_qp_init_attr qattr = { 0 };
	struct skuadv_cq_init_attr cattr = { .cqe_size = 96 };
	struct ibv_cq_init_attr_ex cq = { .cqe = 4 };
	struct ibv_qp_init_attr_ex qp = { .qp_type = IBV_QPT_RC };
	struct skuadv_obj obj = { 0 };

	if (skuadv_create_cq(dev.ctx, &cq, &cattr, sizeof(cattr)) || errno != EINVAL)
		return fail("CQE of 96 bytes: %m");
	qattr.create_flags = 1 << 20;
	if (skuadv_create_qp(dev.ctx, &qp, &qattr, sizeof(qattr)) || errno != EINVAL)
		return fail("an unknown flag: %m");
	qattr.create_flags = SKUADV_QP_CREATE_NO_SCATTER_CQE | SKUADV_QP_CREATE_SCATTER_CQE;
	if (skuadv_create_qp(dev.ctx, &qp, &qattr, sizeof(qattr)) || errno != EINVAL)
		return fail("flags that contradict: %m");
	return expect_err("no object", skuadv_init_obj(&obj, 0), EINVAL) &&
	       expect_err("an unknown object", skuadv_init_obj(&obj, 1 << 10), EINVAL);
}

/* Cases with a pair of queues of CQEs of this size, created with these flags */
static void with_pair(const char *name, uint32_t cqe_size, uint32_t flags, bool (*run)(void))
{
	tap_case(name, up(cqe_size, flags) && run());
	down();
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	int opt, gid = -1;

	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd')
			name = optarg;
		else if (opt == 'g')
			gid = atoi(optarg);
		else
			return 1;
	}
	if (!name || gid < 0)
		die("usage: skua-direct -d DEV -g GID");
	dev_open(&dev, name, gid);
	buf = aligned_alloc(PAGE, 2 * PAGE);
	if (!buf)
		die("no memory");
	memset(buf, 0, 2 * PAGE);
	mr = ibv_reg_mr(dev.pd, buf, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		die("reg_mr: %m");

	tap_case("query", query());
	tap_case("wrong arguments are refused", refused());
	with_pair("WRITEs by doorbells", 64, 0, by_doorbell);
	with_pair("WRITEs by push slots", 64, 0, by_push);
	with_pair("SENDs", 64, SKUADV_QP_CREATE_SCATTER_CQE, sends);
	with_pair("SENDs, large CQEs", 128, SKUADV_QP_CREATE_SCATTER_CQE, sends);
	with_pair("neither payload in CQEs nor pushes", 64,
		  SKUADV_QP_CREATE_NO_SCATTER_CQE | SKUADV_QP_CREATE_NO_PUSH, no_scatter);
	ibv_dereg_mr(mr);
	free(buf);
	dev_close(&dev);
	return tap_end();
}
