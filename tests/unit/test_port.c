// SPDX-License-Identifier: GPL-2.0
/* The port: link, addresses, and who gets a frame. */
#include "core_test.h"
#include "roce/pkt.h"

static const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x77 };
static const uint8_t group[6] = { 1, 0, 0x5e, 0, 0, 5 };
static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

#define QUEUES	4
#define BUF	16384

/* Queues that listen, each with a few large buffers. */
struct net {
	struct rig *r;
	struct mini_cq cq[QUEUES];
	struct mini_qp qp[QUEUES];
	uint64_t buf[QUEUES];
};

static void buffers(struct net *n, unsigned int q, unsigned int num)
{
	struct skua_wqe_data sge = {
		.addr = cpu_to_le64(n->buf[q]),
		.lkey = cpu_to_le32(SKUA_RESERVED_LKEY),
		.len = cpu_to_le32(BUF),
	};

	while (num--)
		mini_recv(&n->r->m, &n->qp[q], &sge, 1);
}

static void net_up(struct net *n, struct rig *r)
{
	n->r = r;
	for (unsigned int q = 0; q < QUEUES; q++) {
		mini_cq_create(&r->m, &n->cq[q], 6);
		mini_qp_create(&r->m, &n->qp[q], SKUA_QP_RAW_ETH, &n->cq[q], &n->cq[q], 4, 6, 1);
		mini_eth_to_rts(&r->m, &n->qp[q]);
		n->buf[q] = fake_alloc(&r->f, BUF, 64);
		buffers(n, q, 40);
	}
}

static int port(struct net *n, uint32_t mask, uint32_t dflt, bool promisc, bool allmulti)
{
	struct skua_cmd_modify_port_in in = {
		.mask = cpu_to_le32(mask),
		.promisc = cpu_to_le32(promisc),
		.allmulti = cpu_to_le32(allmulti),
		.dflt = cpu_to_le32(dflt),
	};

	return mini_cmd(&n->r->m, SKUA_CMD_MODIFY_PORT, &in, sizeof(in), NULL, 0);
}

/* The queues that got a frame, as bits; each may get it once. */
static unsigned int got(struct net *n)
{
	struct skua_cqe cqe;
	unsigned int mask = 0;

	for (unsigned int q = 0; q < QUEUES; q++) {
		if (!mini_cq_next(&n->r->m, &n->cq[q], &cqe))
			continue;
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_OPCODE), SKUA_CQE_RECV_ETH);
		assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), SKUA_CQE_OK);
		mask |= 1u << q;
		assert_false(mini_cq_next(&n->r->m, &n->cq[q], &cqe));
	}
	return mask;
}

static size_t make(uint8_t *frame, const uint8_t dmac[6], size_t payload)
{
	memcpy(frame, dmac, 6);
	memcpy(frame + 6, other, 6);
	frame[12] = 0x12;
	frame[13] = 0x34;
	for (size_t i = 0; i < payload; i++)
		frame[14 + i] = (uint8_t)i;
	return 14 + payload;
}

static unsigned int rx(struct net *n, const uint8_t dmac[6])
{
	uint8_t frame[128];

	fake_rx(&n->r->f, frame, make(frame, dmac, 50));
	return got(n);
}

static void dflt(void **state)
{
	struct rig *r = *state;
	struct net n;

	net_up(&n, r);
	assert_counts(&r->m, ETH_RX_FILTERED, 1, assert_int_equal(rx(&n, own), 0));
	assert_status(port(&n, SKUA_PORT_M_DFLT, n.qp[1].qpn, 0, 0), OK);
	assert_counts(&r->m, ETH_RX_PKTS, 1, assert_int_equal(rx(&n, own), 2));
	assert_counts(&r->m, ETH_RX_MCAST, 1, assert_int_equal(rx(&n, all), 2));
	assert_counts(&r->m, ETH_RX_FILTERED, 1, assert_int_equal(rx(&n, other), 0));
	assert_counts(&r->m, ETH_RX_FILTERED, 1, assert_int_equal(rx(&n, group), 0));
	assert_status(port(&n, SKUA_PORT_M_PROMISC, 0, 1, 0), OK);
	assert_int_equal(rx(&n, other), 2);
	assert_int_equal(rx(&n, group), 0);
	assert_status(port(&n, SKUA_PORT_M_PROMISC | SKUA_PORT_M_ALLMULTI, 0, 0, 1), OK);
	assert_int_equal(rx(&n, other), 0);
	assert_int_equal(rx(&n, group), 2);
	/* It is named, so it stays. */
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, n.qp[1].qpn, NULL, 0), BUSY);
	assert_status(port(&n, SKUA_PORT_M_DFLT, n.qp[2].qpn, 0, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, n.qp[1].qpn, NULL, 0), OK);
	assert_int_equal(rx(&n, own), 4);
	assert_status(port(&n, SKUA_PORT_M_DFLT, SKUA_PORT_NO_DFLT, 0, 0), OK);
	assert_int_equal(rx(&n, own), 0);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, n.qp[2].qpn, NULL, 0), OK);
}

static void modify_checks(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_port_in in;
	struct mini_cq cq;
	struct mini_qp rc;
	struct net n;

	net_up(&n, r);
	mini_cq_create(&r->m, &cq, 2);
	mini_qp_create(&r->m, &rc, SKUA_QP_RC, &cq, &cq, 2, 2, 0);
#define refuse(status, bits, change) do {							\
		memset(&in, 0, sizeof(in));							\
		in.mask = cpu_to_le32(bits);							\
		change;										\
		assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_PORT, &in, sizeof(in), NULL, 0),	\
			      status);								\
	} while (0)
	refuse(BAD_PARAM, 1u << 6, );
	refuse(BAD_PARAM, 0, in.reserved = cpu_to_le32(1));
	refuse(BAD_PARAM, SKUA_PORT_M_ENABLE, in.enable = cpu_to_le32(2));
	refuse(BAD_PARAM, SKUA_PORT_M_PROMISC, in.promisc = cpu_to_le32(2));
	refuse(BAD_PARAM, SKUA_PORT_M_ALLMULTI, in.allmulti = cpu_to_le32(2));
	refuse(BAD_PARAM, SKUA_PORT_M_MTU, in.mtu = cpu_to_le16(67));
	refuse(BAD_PARAM, SKUA_PORT_M_MTU, in.mtu = cpu_to_le16(MODEL_MAX_MTU + 1));
	refuse(OK, SKUA_PORT_M_MTU, in.mtu = cpu_to_le16(MODEL_MAX_MTU));
	refuse(BAD_PARAM, SKUA_PORT_M_MAC, );
	refuse(BAD_PARAM, SKUA_PORT_M_MAC, memcpy(in.mac, group, 6));
	refuse(BAD_INDEX, SKUA_PORT_M_DFLT, in.dflt = cpu_to_le32(rc.qpn));
	refuse(BAD_INDEX, SKUA_PORT_M_DFLT, in.dflt = cpu_to_le32(n.qp[0].qpn ^ 1u << 23));
	refuse(BAD_INDEX, SKUA_PORT_M_DFLT, in.dflt = cpu_to_le32(SKUA_PORT_DFLT_RSS));
	refuse(BAD_INDEX, SKUA_PORT_M_DFLT, in.dflt = cpu_to_le32(0xffffffff));
	/* The new address is the one that counts. */
	refuse(OK, SKUA_PORT_M_MAC | SKUA_PORT_M_DFLT, memcpy(in.mac, other, 6);
	       in.dflt = cpu_to_le32(n.qp[0].qpn));
#undef refuse
	assert_int_equal(rx(&n, other), 1);
	assert_int_equal(rx(&n, own), 0);
}

static void link_events(void **state)
{
	struct rig *r = *state;
	struct mini_eq *eq = &r->m.eq[MINI_EQ_ASYNC];
	struct skua_cmd_query_port_out out;
	struct skua_eqe eqe;
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT, n.qp[0].qpn, 0, 0);
	skua_dev_link(r->f.dev, false);
	assert_true(mini_eq_next(&r->m, eq, &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_PORT);
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_PORT, NULL, 0, &out, sizeof(out)), OK);
	assert_int_equal(le32_to_cpu(out.state), SKUA_PORT_ENABLED);
	assert_int_equal(rx(&n, own), 0);
	skua_dev_link(r->f.dev, false);
	assert_false(mini_eq_next(&r->m, eq, &eqe));
	skua_dev_link(r->f.dev, true);
	assert_true(mini_eq_next(&r->m, eq, &eqe));
	assert_status(mini_cmd(&r->m, SKUA_CMD_QUERY_PORT, NULL, 0, &out, sizeof(out)), OK);
	assert_int_equal(le32_to_cpu(out.state), SKUA_PORT_ENABLED | SKUA_PORT_LINK_UP);
	assert_int_equal(le16_to_cpu(out.mtu), MINI_MTU);
	assert_memory_equal(out.mac, own, 6);
	assert_int_equal(rx(&n, own), 1);
	/* Software turns it off. */
	assert_status(port(&n, SKUA_PORT_M_ENABLE, 0, 0, 0), OK);
	assert_true(mini_eq_next(&r->m, eq, &eqe));
	assert_int_equal(rx(&n, own), 0);
}

static void lengths(void **state)
{
	struct rig *r = *state;
	uint8_t frame[MODEL_MAX_FRAME + 100];
	struct skua_wqe_data sge = {
		.lkey = cpu_to_le32(SKUA_RESERVED_LKEY),
		.len = cpu_to_le32(100),
	};
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT, n.qp[0].qpn, 0, 0);
	for (size_t len = 0; len < 14; len++) {
		make(frame, own, 0);
		fake_rx(&r->f, frame, len);
		assert_int_equal(got(&n), 0);
	}
	fake_rx(&r->f, frame, make(frame, own, MINI_MTU));
	assert_int_equal(got(&n), 1);
	assert_counts(&r->m, ETH_RX_TOO_LONG, 1,
		      fake_rx(&r->f, frame, make(frame, own, MINI_MTU + 1)));
	assert_int_equal(got(&n), 0);
	/* A tag does not count. */
	make(frame, own, MINI_MTU + 4);
	frame[12] = 0x81;
	frame[13] = 0;
	fake_rx(&r->f, frame, 14 + 4 + MINI_MTU);
	assert_int_equal(got(&n), 1);
	fake_rx(&r->f, frame, sizeof(frame));
	/* A buffer that is too short keeps its place. */
	sge.addr = cpu_to_le64(n.buf[1]);
	port(&n, SKUA_PORT_M_DFLT, n.qp[1].qpn, 0, 0);
	for (unsigned int i = 0; i < 40; i++)
		assert_int_equal(rx(&n, own), 2);
	assert_counts(&r->m, ETH_RX_NO_BUF, 1, assert_int_equal(rx(&n, own), 0));
	mini_recv(&r->m, &n.qp[1], &sge, 1);
	assert_counts(&r->m, ETH_RX_TOO_LONG, 1, fake_rx(&r->f, frame, make(frame, own, 87)));
	assert_int_equal(got(&n), 0);
	fake_rx(&r->f, frame, make(frame, own, 86));
	assert_int_equal(got(&n), 2);
}

/* --- rules --- */

static int rule(struct net *n, uint32_t index, const uint8_t *dmac, uint32_t flags, uint32_t prio,
		uint32_t dest)
{
	struct skua_cmd_create_flow_in in = {
		.index = cpu_to_le32(index),
		.flow.flags = cpu_to_le32(flags) | le32_encode_bits(prio, SKUA_FLOW_PRIO),
		.flow.dest = cpu_to_le32(dest),
		.flow.tag = cpu_to_le32(0x100 + index),
	};

	if (dmac) {
		memcpy(in.flow.value.dmac, dmac, 6);
		memset(in.flow.mask.dmac, 0xff, 6);
	}
	return mini_cmd(&n->r->m, SKUA_CMD_CREATE_FLOW, &in, sizeof(in), NULL, 0);
}

static int unrule(struct net *n, uint32_t index)
{
	return mini_index(&n->r->m, SKUA_CMD_DESTROY_FLOW, index, NULL, 0);
}

static void rules(void **state)
{
	struct rig *r = *state;
	struct skua_cqe cqe;
	uint8_t frame[64];
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT, n.qp[0].qpn, 0, 0);
	/* Priority, then number. */
	assert_status(rule(&n, 5, other, 0, 3, n.qp[1].qpn), OK);
	assert_int_equal(rx(&n, other), 2);
	assert_status(rule(&n, 9, other, 0, 2, n.qp[2].qpn), OK);
	assert_int_equal(rx(&n, other), 4);
	assert_status(rule(&n, 7, other, 0, 2, n.qp[3].qpn), OK);
	assert_int_equal(rx(&n, other), 8);
	assert_status(rule(&n, 7, other, 0, 2, n.qp[3].qpn), EXISTS);
	assert_status(rule(&n, 8, other, 0, 2, n.qp[1].qpn), OK);
	assert_int_equal(rx(&n, other), 8);
	assert_status(unrule(&n, 8), OK);
	/* A rule takes own frames from the default, drops, or listens. */
	assert_status(rule(&n, 1, own, 0, 9, n.qp[1].qpn), OK);
	assert_int_equal(rx(&n, own), 2);
	assert_status(rule(&n, 2, NULL, SKUA_FLOW_SNIFFER, 100, n.qp[2].qpn), OK);
	assert_int_equal(rx(&n, own), 2 | 4);
	assert_int_equal(rx(&n, other), 8 | 4);
	assert_int_equal(rx(&n, all), 1 | 4);
	assert_status(rule(&n, 0, own, SKUA_FLOW_DROP, 0, 0), OK);
	assert_int_equal(rx(&n, own), 4);
	assert_status(unrule(&n, 0), OK);
	assert_status(unrule(&n, 0), BAD_INDEX);
	assert_status(unrule(&n, 2), OK);
	assert_int_equal(rx(&n, own), 2);
	/* The tag goes with it. */
	fake_rx(&r->f, frame, make(frame, own, 46));
	assert_true(mini_cq_next(&r->m, &n.cq[1], &cqe));
	assert_int_equal(le32_to_cpu(cqe.eth.flow_tag), 0x101);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, n.qp[1].qpn, NULL, 0), BUSY);
	unrule(&n, 1);
	unrule(&n, 5);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, n.qp[1].qpn, NULL, 0), OK);
	assert_int_equal(rx(&n, own), 1);
}

static unsigned int drain_cq(struct net *n, unsigned int q)
{
	struct skua_cqe cqe;
	unsigned int num = 0;

	while (mini_cq_next(&n->r->m, &n->cq[q], &cqe))
		num++;
	return num;
}

/* Asks of the device to take a frame, once. */
static bool rx_turn(struct net *n, const uint8_t dmac[6])
{
	uint8_t frame[128];
	size_t len = make(frame, dmac, 50);

	return skua_dev_rx(n->r->f.dev, frame, len, false);
}

/* Rules that have it in one turn. */
#define IN_A_TURN	32

/*
 * Many rules have a frame in several turns. What is done to them in between counts for
 * those that were not asked yet.
 */
static void rules_in_turns(void **state)
{
	struct rig *r = *state;
	unsigned int turns;
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT, n.qp[0].qpn, 0, 0);
	/* To a queue that soon has no buffers left. */
	while (rx(&n, own))
		;
	buffers(&n, 0, 2 * IN_A_TURN);
	for (uint32_t i = 50; i < 50 + 4 * IN_A_TURN; i++)
		assert_status(rule(&n, i, NULL, SKUA_FLOW_SNIFFER, 5, n.qp[0].qpn), OK);
	assert_status(rule(&n, 4, own, 0, 9, n.qp[2].qpn), OK);
	assert_true(rx_turn(&n, own));
	assert_int_equal(drain_cq(&n, 0), IN_A_TURN);
	assert_int_equal(got(&n), 0);
	/* Too early in the order; behind; the one that was asked last is gone, and others. */
	assert_status(rule(&n, 5, own, 0, 1, n.qp[3].qpn), OK);
	assert_status(rule(&n, 6, NULL, SKUA_FLOW_SNIFFER, 8, n.qp[1].qpn), OK);
	for (uint32_t i = 50; i < 50 + 3 * IN_A_TURN; i++)
		assert_status(unrule(&n, i), OK);
	assert_counts(&r->m, ETH_RX_PKTS, 1, {
		for (turns = 2; rx_turn(&n, own); turns++)
			;
	});
	assert_int_equal(turns, 3);
	assert_int_equal(drain_cq(&n, 0), IN_A_TURN);
	assert_int_equal(got(&n), 2 | 4);
	/* The next frame is asked from the start, by rules that do not have room either. */
	assert_int_equal(rx(&n, own), 2 | 8);
	/* Nobody comes back for the rest: the next one is not taken for it. */
	assert_true(rx_turn(&n, other));
	skua_dev_link(r->f.dev, false);
	assert_false(rx_turn(&n, other));
	skua_dev_link(r->f.dev, true);
	assert_int_equal(got(&n), 0);
	assert_int_equal(rx(&n, own), 2 | 8);
}

static void multicast(void **state)
{
	struct rig *r = *state;
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT | SKUA_PORT_M_ALLMULTI, n.qp[0].qpn, 0, 1);
	assert_int_equal(rx(&n, group), 1);
	/* Each member gets a copy; nobody twice. */
	assert_status(rule(&n, 1, group, 0, 1, n.qp[1].qpn), OK);
	assert_status(rule(&n, 2, group, 0, 2, n.qp[2].qpn), OK);
	assert_int_equal(rx(&n, group), 2 | 4);
	assert_status(rule(&n, 3, group, 0, 3, n.qp[0].qpn), OK);
	assert_int_equal(rx(&n, group), 1 | 2 | 4);
	assert_status(rule(&n, 4, all, 0, 3, n.qp[3].qpn), OK);
	assert_int_equal(rx(&n, all), 1 | 8);
	assert_status(rule(&n, 5, all, 0, 3, n.qp[0].qpn), OK);
	assert_int_equal(rx(&n, all), 1 | 8);
}

/*
 * What a queue here sends to a group turns round for the queues that rules name; who
 * is behind the port's default destination has sent it.
 */
static void multicast_own(void **state)
{
	struct rig *r = *state;
	uint8_t frame[128];
	size_t len = make(frame, group, 50);
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT | SKUA_PORT_M_ALLMULTI, n.qp[0].qpn, 0, 1);
	assert_status(rule(&n, 1, group, 0, 1, n.qp[0].qpn), OK);
	assert_status(rule(&n, 2, group, 0, 2, n.qp[1].qpn), OK);
	for (unsigned int loop = 0; loop < 2; loop++) {
		struct fake_frame *out;

		port_tx_eth(r->f.dev, frame, len, loop);
		fake_run(&r->f);
		assert_int_equal(got(&n), loop ? 2 : 0);
		out = fake_tx(&r->f);
		assert_non_null(out);
		free(out);
	}
	/* One that nobody wants is not a frame that was filtered. */
	make(frame, all, 50);
	assert_counts(&r->m, ETH_RX_FILTERED, 0, {
		port_tx_eth(r->f.dev, frame, len, true);
		fake_run(&r->f);
	});
	assert_int_equal(got(&n), 0);
	free(fake_tx(&r->f));
}

static void rule_checks(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_flow_in good = { .index = cpu_to_le32(3) }, in;
	struct net n;

	net_up(&n, r);
	good.flow.dest = cpu_to_le32(n.qp[0].qpn);
#define refuse(status, change) do {								\
		in = good;									\
		change;										\
		assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_FLOW, &in, sizeof(in), NULL, 0),	\
			      status);								\
	} while (0)
	refuse(BAD_PARAM, in.flow.flags = cpu_to_le32(SKUA_FLOW_VALID));
	refuse(BAD_PARAM, in.flow.flags = cpu_to_le32(1u << 4));
	refuse(BAD_INDEX, in.flow.counter = cpu_to_le32(1));
	refuse(BAD_PARAM, in.reserved = cpu_to_le32(1));
	refuse(BAD_PARAM, in.flow.value.dmac[0] = 1);
	refuse(BAD_PARAM, in.flow.mask.reserved[1] = 1);
	refuse(BAD_PARAM, in.flow.mask.flags = 8);
	refuse(BAD_PARAM, in.flow.flags = cpu_to_le32(SKUA_FLOW_DROP));
	refuse(BAD_INDEX, in.flow.dest = cpu_to_le32(n.qp[0].qpn + 100));
	refuse(BAD_INDEX, in.flow.flags = cpu_to_le32(SKUA_FLOW_RSS));
	refuse(BAD_INDEX, in.index = cpu_to_le32(256));
	refuse(BAD_INDEX, in.index = cpu_to_le32(0xffffffff));
	r->f.dev->caps &= ~SKUA_CAP_FLOW;
	refuse(BAD_PARAM, in.flow.mask.dport = 0xffff);
	refuse(BAD_PARAM, in.flow.mask.flags = SKUA_FLOW_M_IPV4);
	refuse(OK, in.flow.mask.flags = SKUA_FLOW_M_VLAN; in.flow.mask.vlan_tci = 0xff0f);
#undef refuse
}

/* A rule that looks at ports: only just this flow. */
static void five_tuple(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_flow_in in = { .index = 0 };
	uint8_t frame[64] = { 0 };
	uint8_t *ip = frame + 14, *udp = frame + 34;
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT, n.qp[0].qpn, 0, 0);
	in.flow.dest = cpu_to_le32(n.qp[1].qpn);
	in.flow.mask.ip_proto = 0xff;
	in.flow.value.ip_proto = 17;
	in.flow.mask.flags = in.flow.value.flags = SKUA_FLOW_M_IPV4;
	memset(&in.flow.mask.dport, 0xff, 2);
	memcpy(&in.flow.value.dport, (uint8_t [2]){ 0x14, 0xe9 }, 2);
	memset(in.flow.mask.saddr + 12, 0xff, 3);
	memcpy(in.flow.value.saddr + 12, (uint8_t [3]){ 192, 168, 7 }, 3);
	mini_ok(&r->m, SKUA_CMD_CREATE_FLOW, &in, sizeof(in));

	memcpy(frame, own, 6);
	frame[12] = 8;
	ip[0] = 0x45;
	ip[3] = 36;
	ip[9] = 17;
	memcpy(ip + 12, (uint8_t [8]){ 192, 168, 7, 33, 10, 0, 0, 1 }, 8);
	memcpy(udp, (uint8_t [8]){ 1, 2, 0x14, 0xe9, 0, 16, 0, 0 }, 8);
	fake_rx(&r->f, frame, 60);
	assert_int_equal(got(&n), 2);
	udp[3] ^= 1;
	fake_rx(&r->f, frame, 60);
	assert_int_equal(got(&n), 1);
	udp[3] ^= 1;
	ip[14] = 8;
	fake_rx(&r->f, frame, 60);
	assert_int_equal(got(&n), 1);
	ip[14] = 7;
	/* A datagram that says to be longer than its frame still has its addresses. */
	ip[3] = 200;
	fake_rx(&r->f, frame, 60);
	assert_int_equal(got(&n), 2);
	ip[3] = 36;
	/* A fragment has no ports. */
	ip[6] = 0x20;
	fake_rx(&r->f, frame, 60);
	assert_int_equal(got(&n), 1);
}

/* --- GIDs --- */

static void gid_checks(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_set_gid_in good = {
		.index = cpu_to_le32(3),
		.gid.flags = cpu_to_le32(SKUA_GID_VALID | SKUA_GID_IPV4),
		.gid.vlan = cpu_to_le16(SKUA_GID_NO_VLAN),
	}, in;
	struct skua_gid out;

	mini_gid_addr(good.gid.gid, 9, false);
	memcpy(good.gid.mac, own, 6);
#define refuse(status, change) do {								\
		in = good;									\
		change;										\
		assert_status(mini_cmd(&r->m, SKUA_CMD_SET_GID, &in, sizeof(in), NULL, 0), status); \
	} while (0)
	refuse(BAD_PARAM, in.reserved = cpu_to_le32(1));
	refuse(BAD_PARAM, in.gid.reserved = cpu_to_le32(1));
	refuse(BAD_PARAM, in.gid.flags |= cpu_to_le32(4));
	refuse(BAD_PARAM, in.gid.flags = cpu_to_le32(SKUA_GID_VALID));
	refuse(BAD_PARAM, in.gid.gid[0] = 0xfd);
	refuse(BAD_PARAM, in.gid.vlan = 0);
	refuse(BAD_PARAM, in.gid.vlan = cpu_to_le16(4095));
	refuse(BAD_PARAM, memset(in.gid.mac, 0, 6));
	refuse(BAD_PARAM, memcpy(in.gid.mac, group, 6));
	refuse(BAD_INDEX, in.index = cpu_to_le32(1 << MODEL_LOG_GID));
	refuse(BAD_INDEX, in.index = cpu_to_le32(0xffffffff));
	refuse(OK, );
	refuse(OK, in.gid.vlan = cpu_to_le16(4094); in.index = cpu_to_le32(255));
#undef refuse
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_GID, 3, &out, sizeof(out)), OK);
	assert_memory_equal(&out, &good.gid, sizeof(out));
	assert_memory_equal(mini_icm(&r->m, SKUA_ICM_GID, 3), &good.gid, sizeof(out));
	assert_int_equal(port_gid_find(r->f.dev, good.gid.gid, SKUA_GID_NO_VLAN), 3);
	assert_int_equal(port_gid_find(r->f.dev, good.gid.gid, 4094), 255);
	assert_int_equal(port_gid_find(r->f.dev, good.gid.gid, 7), -1);
	/* Cleared. */
	memset(&good.gid, 0, sizeof(good.gid));
	mini_ok(&r->m, SKUA_CMD_SET_GID, &good, sizeof(good));
	assert_null(port_gid(r->f.dev, 3));
	assert_int_equal(port_gid_find(r->f.dev, out.gid, SKUA_GID_NO_VLAN), -1);
	assert_null(port_gid(r->f.dev, 256));
	assert_null(port_gid(r->f.dev, 0xffffffff));
}

/* Many addresses: each is found, under its own number. */
static void gid_many(void **state)
{
	struct rig *r = *state;
	uint8_t gid[16];

	for (unsigned int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < 256; i++)
			assert_status(mini_gid(&r->m, i, i, turn, i % 3 ? i % 5 + 1 :
					       SKUA_GID_NO_VLAN), OK);
		for (uint32_t i = 0; i < 256; i++) {
			uint16_t vlan = i % 3 ? i % 5 + 1 : SKUA_GID_NO_VLAN;

			mini_gid_addr(gid, i, turn);
			assert_int_equal(port_gid_find(r->f.dev, gid, vlan), i);
			mini_gid_addr(gid, i, !turn);
			assert_int_equal(port_gid_find(r->f.dev, gid, vlan), -1);
		}
	}
}

/*
 * UDP to port 4791: RoCE's if address, MAC and VLAN are in the table and RoCE is
 * on, otherwise an ordinary frame for the netdev.
 */
static void roce_claim(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_device_in mod = { .mask = cpu_to_le32(SKUA_DEV_M_ROCE) };
	uint8_t frame[80] = { 0 }, tagged[84];
	uint8_t *ip = frame + 14, *udp = frame + 34;
	struct net n;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT | SKUA_PORT_M_PROMISC, n.qp[0].qpn, 1, 0);
	mini_gid(&r->m, 0, 1, false, SKUA_GID_NO_VLAN);
	memcpy(frame, own, 6);
	frame[12] = 8;
	ip[0] = 0x45;
	ip[3] = 60;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, (uint8_t [8]){ 10, 0, 0, 9, 10, 0, 0, 1 }, 8);
	memcpy(udp, (uint8_t [8]){ 0xc0, 0, 0x12, 0xb7, 0, 40, 0, 0 }, 8);
	fake_rx(&r->f, frame, 74);
	assert_int_equal(got(&n), 0);
	/* Another port, another address, another MAC, a tag. */
	udp[3]++;
	fake_rx(&r->f, frame, 74);
	assert_int_equal(got(&n), 1);
	udp[3]--;
	ip[19]++;
	fake_rx(&r->f, frame, 74);
	assert_int_equal(got(&n), 1);
	ip[19]--;
	frame[5]++;
	fake_rx(&r->f, frame, 74);
	assert_int_equal(got(&n), 1);
	frame[5]--;
	memcpy(tagged, frame, 12);
	memcpy(tagged + 12, (uint8_t [4]){ 0x81, 0, 0, 5 }, 4);
	memcpy(tagged + 16, frame + 12, 62);
	fake_rx(&r->f, tagged, 78);
	assert_int_equal(got(&n), 1);
	/* A priority tag is no VLAN; then the VLAN has the address too. */
	tagged[15] = 0;
	tagged[14] = 0xe0;
	fake_rx(&r->f, tagged, 78);
	assert_int_equal(got(&n), 0);
	tagged[15] = 5;
	mini_gid(&r->m, 1, 1, false, 5);
	fake_rx(&r->f, tagged, 78);
	assert_int_equal(got(&n), 0);
	/* RoCE off: all of it is the netdev's. */
	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
	fake_rx(&r->f, frame, 74);
	assert_int_equal(got(&n), 1);
}

/* Software sees a RoCE packet that is not for RoCE: then its ICRC is written, if it was not. */
static void roce_pending(void **state)
{
	struct rig *r = *state;
	const struct skua_pkt_addr addr = {
		.dmac = { own[0], own[1], own[2], own[3], own[4], own[5] },
		.sgid = { [10] = 0xff, 0xff, 10, 0, 0, 9 },
		.dgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
	};
	const struct skua_pkt_bth bth = { .opcode = IB_OPCODE(RC, SEND_ONLY), .dqpn = 5 };
	uint8_t frame[128] = { 0 }, whole[128];
	struct skua_pkt_build b;
	struct net n;
	size_t len;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT, n.qp[0].qpn, 0, 0);
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &addr, &bth), 0);
	memset(b.payload, 0x17, 33);
	len = skua_pkt_build_close(&b, 33);
	memcpy(whole, frame, len);
	skua_pkt_icrc_fill(whole, len);
	assert_memory_not_equal(frame, whole, len);
	skua_dev_rx(r->f.dev, frame, len, true);
	assert_int_equal(got(&n), 1);
	assert_memory_equal(fake_ptr(&r->f, n.buf[0]), whole, len);
}

/* --- round inside --- */

static void loopback(void **state)
{
	struct rig *r = *state;
	uint8_t frame[2000];
	size_t len = make(frame, own, 1000);
	struct net n;
	struct fake_frame *out;

	net_up(&n, r);
	port(&n, SKUA_PORT_M_DFLT, n.qp[0].qpn, 0, 0);
	assert_counts(&r->m, LOOPBACK_PKTS, 1, {
		port_tx(r->f.dev, frame, len);
		assert_int_equal(got(&n), 0);
		fake_run(&r->f);
	});
	assert_int_equal(got(&n), 1);
	assert_memory_equal(fake_ptr(&r->f, n.buf[0]), frame, len);
	assert_null(fake_tx(&r->f));
	/* Others' frames leave, and so does multicast, without an echo. */
	make(frame, other, 1000);
	port_tx(r->f.dev, frame, len);
	make(frame, all, 1000);
	port_tx(r->f.dev, frame, len);
	fake_run(&r->f);
	assert_int_equal(got(&n), 0);
	for (unsigned int i = 0; i < 2; i++) {
		out = fake_tx(&r->f);
		assert_non_null(out);
		assert_int_equal(out->len, len);
		free(out);
	}
	/* Round also while the wire is gone, but not while the port is off. */
	skua_dev_link(r->f.dev, false);
	make(frame, own, 1000);
	port_tx(r->f.dev, frame, len);
	fake_run(&r->f);
	assert_int_equal(got(&n), 1);
	port(&n, SKUA_PORT_M_ENABLE, 0, 0, 0);
	port_tx(r->f.dev, frame, len);
	fake_run(&r->f);
	assert_int_equal(got(&n), 0);
}

/* An address of the GID table turns round as well, while it is there. */
static void loopback_gid_mac(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_set_gid_in in = {
		.index = cpu_to_le32(7),
		.gid.flags = cpu_to_le32(SKUA_GID_VALID),
		.gid.vlan = cpu_to_le16(SKUA_GID_NO_VLAN),
	};
	uint8_t frame[64];
	size_t len = make(frame, other, 50);

	mini_gid_addr(in.gid.gid, 3, true);
	memcpy(in.gid.mac, other, 6);
	mini_ok(&r->m, SKUA_CMD_SET_GID, &in, sizeof(in));
	assert_counts(&r->m, LOOPBACK_PKTS, 1, {
		port_tx(r->f.dev, frame, len);
		fake_run(&r->f);
	});
	assert_null(fake_tx(&r->f));
	in.gid.flags = 0;
	mini_ok(&r->m, SKUA_CMD_SET_GID, &in, sizeof(in));
	assert_counts(&r->m, LOOPBACK_PKTS, 0, {
		port_tx(r->f.dev, frame, len);
		fake_run(&r->f);
	});
	assert_int_equal(r->f.sent, 1);
}

/* More than the queue holds: the rest is lost, and counted. */
static void loopback_full(void **state)
{
	struct rig *r = *state;
	static uint8_t frame[MODEL_MAX_FRAME];
	uint64_t turned, lost;
	unsigned int busy = 0;
	struct net n;

	net_up(&n, r);
	turned = mini_counter(&r->m, SKUA_CNT_LOOPBACK_PKTS);
	lost = mini_counter(&r->m, SKUA_CNT_LOOPBACK_DROP);
	for (unsigned int turn = 0; turn < 3; turn++) {
		for (unsigned int i = 0; i < 3000; i++) {
			size_t len = make(frame, own, i * 37 % 4000);

			port_tx(r->f.dev, frame, len);
			busy += port_tx_busy(r->f.dev);
		}
		fake_run(&r->f);
		assert_false(port_tx_busy(r->f.dev));
	}
	assert_true(busy > 1000);
	turned = mini_counter(&r->m, SKUA_CNT_LOOPBACK_PKTS) - turned;
	lost = mini_counter(&r->m, SKUA_CNT_LOOPBACK_DROP) - lost;
	assert_true(turned > 3 * 1500);
	assert_int_equal(turned + lost, 3 * 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(dflt),
		rig_test(modify_checks),
		rig_test(link_events),
		rig_test(lengths),
		rig_test(rules),
		rig_test(rules_in_turns),
		rig_test(multicast),
		rig_test(multicast_own),
		rig_test(rule_checks),
		rig_test(five_tuple),
		rig_test(gid_checks),
		rig_test(gid_many),
		rig_test(roce_claim),
		rig_test(roce_pending),
		rig_test(loopback),
		rig_test(loopback_gid_mac),
		rig_test(loopback_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
