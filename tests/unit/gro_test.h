/* SPDX-License-Identifier: GPL-2.0 */
/* A queue that merges received TCP frames, and what came out of it. */
#ifndef SKUA_TEST_GRO_TEST_H
#define SKUA_TEST_GRO_TEST_H

#include "tcp_frames.h"

#define LOG_RQ		6
#define SLOT		2048u
#define MOST		18u
#define PAYLOAD		500u
#define FRAME_MAX	1600u

struct gro_rig {
	struct eth e;
	uint32_t posted;	/* receive WQEs */
	uint32_t taken;		/* of them completed */
};

/* --- the queue --- */

static inline void post(struct gro_rig *g, uint32_t len)
{
	struct skua_wqe_data s;

	sge(&s, g->e.rx + (uint64_t)(g->posted % (1u << LOG_RQ)) * SLOT, SKUA_RESERVED_LKEY, len);
	mini_recv(&g->e.r->m, &g->e.qp, &s, 1);
	g->posted++;
}

static inline void refill(struct gro_rig *g)
{
	while (g->posted - g->taken < 1u << LOG_RQ)
		post(g, SLOT);
}

static inline struct skua_cmd_create_qp_in queue_in(struct gro_rig *g, struct rig *r,
						    uint32_t flags, uint32_t most)
{
	struct skua_cmd_create_qp_in in;
	struct eth *e = &g->e;

	*g = (struct gro_rig){ .e.r = r };
	mini_cq_create(&r->m, &e->scq, LOG_RQ);
	mini_cq_create(&r->m, &e->rcq, LOG_RQ);
	in = mini_qp_in(&r->m, &e->qp, SKUA_QP_RAW_ETH, &e->scq, &e->rcq, 4, LOG_RQ, 0);
	in.sq.flags |= cpu_to_le32(flags);
	le32p_replace_bits(&in.rq.flags, most, SKUA_RQ_GRO);
	return in;
}

static inline void up_flags(struct gro_rig *g, struct rig *r, uint32_t flags, uint32_t most)
{
	struct skua_cmd_modify_port_in port = { .mask = cpu_to_le32(SKUA_PORT_M_DFLT) };
	struct skua_cmd_create_qp_in in = queue_in(g, r, flags, most);

	mini_ok(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	mini_eth_to_rts(&r->m, &g->e.qp);
	g->e.rx = fake_alloc(&r->f, (size_t)SLOT << LOG_RQ, 64);
	g->e.tx = fake_alloc(&r->f, MEM, 64);
	port.dflt = cpu_to_le32(g->e.qp.qpn);
	mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
}

static inline void up(struct gro_rig *g, struct rig *r)
{
	up_flags(g, r, 0, MOST);
	refill(g);
}

static const uint8_t *slot(struct gro_rig *g, uint32_t index)
{
	return fake_ptr(&g->e.r->f, g->e.rx + (uint64_t)(index % (1u << LOG_RQ)) * SLOT);
}

/* A completion, and what was merged. */
struct told {
	struct skua_cqe cqe;
	uint32_t first;
	struct merged m;
};

/* The next completion, which is good. False: there is none. */
static inline bool next(struct gro_rig *g, struct told *t)
{
	if (!mini_cq_next(&g->e.r->m, &g->e.rcq, &t->cqe))
		return false;
	assert_int_equal(le32_get_bits(t->cqe.what, SKUA_CQE_STATUS), SKUA_CQE_OK);
	assert_int_equal(le32_get_bits(t->cqe.what, SKUA_CQE_OPCODE), SKUA_CQE_RECV_ETH);
	t->first = le32_get_bits(t->cqe.what, SKUA_CQE_WQE_INDEX);
	assert_int_equal(t->first, g->taken & 0xffff);
	t->m.segs = 1;
	t->m.size = le16_to_cpu(t->cqe.eth.gro_size);
	t->m.hdr = le16_to_cpu(t->cqe.eth.gro_hdr);
	t->m.len = le32_to_cpu(t->cqe.byte_len);
	if (le32_to_cpu(t->cqe.own) & SKUA_CQE_F_GRO) {
		t->m.segs = le16_to_cpu(t->cqe.eth.gro_segs);
		assert_in_range(t->m.segs, 2, MOST);
	} else {
		assert_int_equal(t->cqe.eth.gro_segs, 0);
		assert_int_equal(t->m.size, 0);
		assert_int_equal(t->m.hdr, 0);
	}
	g->taken += t->m.segs;
	return true;
}

static inline size_t cut(struct gro_rig *g, const struct told *t, uint32_t i, uint8_t *out)
{
	return cut_segment(&t->m, slot(g, t->first), slot(g, t->first + i), i, out);
}

static inline void check_whole(struct gro_rig *g, const struct told *t)
{
	const char *fault;

	if (t->m.segs == 1)
		return;
	fault = whole_fault(&t->m, slot(g, t->first));
	if (fault)
		fail_msg("%s", fault);
	assert_true(le16_to_cpu(t->cqe.eth.csum) & SKUA_CQE_CSUM_L4_OK);
}

/* --- what goes in and comes out --- */

/* Frames sent, in the order in which they must come out. */
struct sent {
	uint8_t data[FRAME_MAX];
	size_t len;
};

static inline void give(struct gro_rig *g, const struct sent *s)
{
	fake_rx(&g->e.r->f, s->data, s->len);
}

/* All completions, cut, are the @n frames at @s; their lengths in frames to @runs. */
static inline unsigned int compare(struct gro_rig *g, const struct sent *s, unsigned int n,
				   unsigned int *runs, unsigned int num)
{
	uint8_t out[FRAME_MAX + 4];
	unsigned int at = 0, done = 0;
	struct told t;

	while (next(g, &t)) {
		bool tag = le32_to_cpu(t.cqe.own) & SKUA_CQE_F_VLAN;

		check_whole(g, &t);
		for (uint32_t i = 0; i < t.m.segs; i++, at++) {
			size_t len = cut(g, &t, i, out);

			assert_true(at < n);
			assert_int_equal(len, s[at].len - (tag ? 4 : 0));
			assert_memory_equal(out, s[at].data, 12);
			if (tag)
				assert_int_equal(le16_to_cpu(t.cqe.eth.vlan_tci),
						 be16_get(s[at].data + 14));
			assert_memory_equal(out + 12, s[at].data + (tag ? 16 : 12), len - 12);
		}
		if (done < num)
			runs[done] = t.m.segs;
		done++;
	}
	assert_int_equal(at, n);
	refill(g);
	return done;
}

#endif /* SKUA_TEST_GRO_TEST_H */
