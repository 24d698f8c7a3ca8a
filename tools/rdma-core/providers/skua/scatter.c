// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: payload that came in the CQE goes where the WQE says.
 *
 * The device has checked the elements' keys, rights and bounds, and that each address is one
 * of this process. The WQE is still in its ring: callers copy before they give its place away.
 */
#include <stdlib.h>
#include <string.h>

#include "skua.h"
#include "send.h"

/**
 * skua_scatter_env() - which queues get payload in CQEs
 *
 * Return: SKUA_CREATE_QP_SCATTER_* by the environment variable SKUA_SCATTER_TO_CQE: 1: both;
 * else none. What a READ or an atomic fetches must be in memory when a
 * fenced request behind it begins, whether its completion was polled or not: only the program
 * knows that it has none.
 */
uint32_t skua_scatter_env(void)
{
	const char *env = getenv("SKUA_SCATTER_TO_CQE");

	if (!env || !*env || !strcmp(env, "0"))
		return 0;
	return SKUA_CREATE_QP_SCATTER_RQ | SKUA_CREATE_QP_SCATTER_SQ;
}

/**
 * struct payload - what of a CQE's payload is still to be copied
 * @at: first byte
 * @len: bytes
 */
struct payload {
	const uint8_t *at;
	uint32_t len;
};

/* The device's word is good for no more than there is room for. */
static struct payload payload_of(const struct skua_cq *cq, const struct skua_cqe *cqe)
{
	struct payload p = { .at = cqe->data, .len = le32_to_cpu(cqe->byte_len) };
	uint32_t room = sizeof(cqe->data);

	if (p.len > room && cq->log_cqe > SKUA_LOG_CQE) {
		room = sizeof(*cqe);
		p.at = (const uint8_t *)cqe - sizeof(*cqe);
	}
	if (p.len > room)
		p.len = 0;
	return p;
}

static void put(struct payload *p, const struct skua_wqe_data *d)
{
	uint32_t n = min_t(uint32_t, le32_to_cpu(d->len), p->len);

	if (!n)
		return;
	memcpy((void *)(uintptr_t)le64_to_cpu(d->addr), p->at, n);
	p->at += n;
	p->len -= n;
}

/* @d: list of @max elements at most. */
static void put_list(struct payload *p, const struct skua_wqe_data *d, unsigned int max)
{
	unsigned int i;

	for (i = 0; i < max && p->len && d[i].lkey != cpu_to_le32(SKUA_INVALID_LKEY); i++)
		put(p, &d[i]);
}

void skua_scatter_rq(const struct skua_cq *cq, const struct skua_cqe *cqe,
		     const struct skua_rq *rq, uint32_t at)
{
	struct payload p = payload_of(cq, cqe);

	put_list(&p, skua_rq_wqe(&rq->ring, at), rq->segs);
}

/* @pos: of a WQE that is posted. The SRQ is locked. */
void skua_scatter_srq(const struct skua_cq *cq, const struct skua_cqe *cqe,
		      const struct skua_srq *srq, uint32_t pos)
{
	const struct skua_wqe_data *d = skua_rq_wqe(&srq->ring, pos);
	struct payload p = payload_of(cq, cqe);

	/* Behind the link to the next WQE. */
	put_list(&p, d + 1, srq->segs - 1);
}

/* Does the operation have a list into which something is fetched? */
static bool op_fetches(unsigned int op)
{
	switch (op) {
	case SKUA_WQE_READ:
	case SKUA_WQE_CAS:
	case SKUA_WQE_FAA:
	case SKUA_WQE_MASKED_CAS:
	case SKUA_WQE_MASKED_FAA:
		return true;
	}
	return false;
}

void skua_scatter_sq(const struct skua_cq *cq, const struct skua_cqe *cqe,
		     const struct skua_sq *sq, uint32_t at)
{
	const struct skua_wqe_ctrl *c = skua_sq_seg(&sq->ring, at, 0);
	unsigned int nseg = min_t(unsigned int, le32_get_bits(c->op, SKUA_WQE_NSEG),
				  SKUA_WQE_MAX_SEGS);
	unsigned int op = le32_get_bits(c->op, SKUA_WQE_OPCODE), i;
	struct payload p = payload_of(cq, cqe);

	if (!op_fetches(op))
		return;
	for (i = sq->head_segs + SKUA_WQE_OP_SEGS(op); i < nseg; i++)
		put(&p, skua_sq_seg(&sq->ring, at, i));
}
