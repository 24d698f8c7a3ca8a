/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of RAW_ETH queues begin with: a queue pair, and frames to send. */
#ifndef SKUA_TEST_ETH_TEST_H
#define SKUA_TEST_ETH_TEST_H

#include "core_test.h"
#include "frame.h"

static const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t peer[6] = { 2, 0, 0, 0, 0, 0x77 };

struct eth {
	struct rig *r;
	struct mini_cq scq, rcq;
	struct mini_qp qp;
	uint64_t tx, rx;	/* memory to send from, to receive into */
};

#define MEM	(96u << 10)

static inline void eth_up_flags(struct eth *e, struct rig *r, uint32_t flags)
{
	struct skua_cmd_modify_port_in in = { .mask = cpu_to_le32(SKUA_PORT_M_DFLT) };
	struct skua_cmd_create_qp_in qp;

	e->r = r;
	mini_cq_create(&r->m, &e->scq, 6);
	mini_cq_create(&r->m, &e->rcq, 6);
	qp = mini_qp_in(&r->m, &e->qp, SKUA_QP_RAW_ETH, &e->scq, &e->rcq, 4, 4, 2);
	qp.sq.flags |= cpu_to_le32(flags);
	mini_ok(&r->m, SKUA_CMD_CREATE_QP, &qp, sizeof(qp));
	mini_eth_to_rts(&r->m, &e->qp);
	e->tx = fake_alloc(&r->f, MEM, 64);
	e->rx = fake_alloc(&r->f, MEM, 64);
	in.dflt = cpu_to_le32(e->qp.qpn);
	mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &in, sizeof(in));
}

static inline void eth_up(struct eth *e, struct rig *r)
{
	eth_up_flags(e, r, 0);
}

struct eth_wqe {
	struct skua_wqe_ctrl ctrl;
	struct skua_wqe_data sge[8];
};

static inline void sge(struct skua_wqe_data *s, uint64_t addr, uint32_t lkey, uint32_t len)
{
	s->addr = cpu_to_le64(addr);
	s->lkey = cpu_to_le32(lkey);
	s->len = cpu_to_le32(len);
}

/* Send @len bytes at e->tx; what completed (-1: nothing did). */
static inline int send(struct eth *e, uint32_t len, uint32_t flags, uint32_t eth)
{
	struct eth_wqe w = {
		.ctrl.op = le32_encode_bits(SKUA_WQE_ETH, SKUA_WQE_OPCODE),
		.ctrl.flags = cpu_to_le32(flags | SKUA_WQE_F_SIGNALED),
		.ctrl.eth = cpu_to_le32(eth),
	};
	uint32_t index = e->qp.sq_pi;
	struct skua_cqe cqe;

	sge(&w.sge[0], e->tx, SKUA_RESERVED_LKEY, len);
	mini_post(&e->r->m, &e->qp, &w, 2);
	mini_ring(&e->r->m, &e->qp);
	fake_run(&e->r->f);
	if (!mini_cq_next(&e->r->m, &e->scq, &cqe))
		return -1;
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), index & 0xffff);
	assert_int_equal(le32_to_cpu(cqe.qpn), e->qp.qpn);
	return le32_get_bits(cqe.what, SKUA_CQE_STATUS);
}

static inline void eth_header(uint8_t *p, uint16_t type)
{
	memcpy(p, peer, 6);
	memcpy(p + 6, own, 6);
	be16_put(p + 12, type);
}

/* A TCP or UDP datagram with wrong checksums; its frame's length. */
static inline size_t datagram(uint8_t *p, bool v6, bool tcp, size_t payload)
{
	size_t l4 = tcp ? 20 : 8;
	uint8_t *ip = p + 14, *t = ip + (v6 ? 40 : 20);

	memset(p, 0, 14 + 40 + 20);
	eth_header(p, v6 ? ETH_TYPE_IPV6 : ETH_TYPE_IPV4);
	if (v6) {
		ip[0] = 0x60;
		be16_put(ip + 4, l4 + payload);
		ip[6] = tcp ? 6 : 17;
		ip[7] = 64;
		memcpy(ip + 8, (uint8_t [2]){ 0xfd, 1 }, 2);
		memcpy(ip + 24, (uint8_t [2]){ 0xfd, 2 }, 2);
	} else {
		ip[0] = 0x45;
		be16_put(ip + 2, 20 + l4 + payload);
		be16_put(ip + 4, 0x1111);
		ip[8] = 64;
		ip[9] = tcp ? 6 : 17;
		be16_put(ip + 10, 0xdead);
		memcpy(ip + 12, (uint8_t [8]){ 10, 0, 0, 1, 10, 0, 0, 2 }, 8);
	}
	be16_put(t, 1000);
	be16_put(t + 2, 2000);
	if (tcp) {
		be32_put(t + 4, 0xfffffff0);
		t[12] = 0x50;
		t[13] = TCP_FIN | TCP_PSH | TCP_CWR | 0x10;
		be16_put(t + 16, 0xbeef);
	} else {
		be16_put(t + 4, 8 + payload);
		be16_put(t + 6, 0xbeef);
	}
	for (size_t i = 0; i < payload; i++)
		t[l4 + i] = (uint8_t)(i * 7 + i / 251);
	return 14 + (v6 ? 40 : 20) + l4 + payload;
}

#endif /* SKUA_TEST_ETH_TEST_H */
