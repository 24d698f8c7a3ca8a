// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast: a copy for each member of the group, whether the packet comes from the
 * wire or from a QP of the same device; the netdev's filters have no say in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <skua/cqe_parse.h>

#include "core_test.h"
#include "port.h"
#include "rc.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))
#define QPS	3
#define SLOT	512u

/* Two devices with some UD QPs on each. */
struct room {
	struct rc rc;
	struct mini_qp qp[2][QPS];
};

static void room_open(struct room *r, bool ipv6, uint16_t vlan)
{
	memset(r, 0, sizeof(*r));
	rc_open(&r->rc, &(struct rc_opt){ .type = SKUA_QP_UD, .ipv6 = ipv6, .vlan = vlan });
	for (int i = 0; i < 2; i++) {
		r->qp[i][0] = r->rc.s[i].qp;
		for (unsigned int k = 1; k < QPS; k++) {
			rc_qp(&r->rc, i, &r->qp[i][k], &(struct rc_opt){ .type = SKUA_QP_UD });
			mini_rc_to_rts(&r->rc.s[i].m, &r->qp[i][k], &r->rc.s[i].attr);
		}
	}
}

static void group_gid(uint8_t gid[16], bool ipv6, uint8_t group)
{
	static const uint8_t v4[16] = { [10] = 0xff, [11] = 0xff, 239, 129, 2, 0 };
	static const uint8_t v6[16] = { 0xff, 0x0e, [12] = 0xa1, 0xb2, 0xc3, 0 };

	memcpy(gid, ipv6 ? v6 : v4, 16);
	gid[15] = group;
}

static int attach_gid(struct mini *m, uint32_t index, const uint8_t gid[16], uint32_t qpn)
{
	struct skua_cmd_mcg_in in = {
		.index = cpu_to_le32(index), .mcg.qpn = cpu_to_le32(qpn),
	};

	memcpy(in.mcg.gid, gid, 16);
	return mini_cmd(m, SKUA_CMD_ATTACH_MCG, &in, sizeof(in), NULL, 0);
}

static void attach(struct room *r, int i, uint32_t index, uint8_t group, unsigned int k)
{
	uint8_t gid[16];

	group_gid(gid, r->rc.s[0].ipv6, group);
	assert_status(attach_gid(&r->rc.s[i].m, index, gid, r->qp[i][k].qpn), OK);
}

static void detach(struct room *r, int i, uint32_t index)
{
	assert_status(mini_index(&r->rc.s[i].m, SKUA_CMD_DETACH_MCG, index, NULL, 0), OK);
}

static struct skua_wqe_av group_av(struct room *r, uint8_t group)
{
	struct skua_wqe_av av = rc_av(&r->rc, 0);

	group_gid(av.av.dgid, r->rc.s[0].ipv6, group);
	ib_gid_multicast_mac(av.av.dgid, av.av.dmac);
	av.dest_qpn = cpu_to_le32(SKUA_QPN_MULTICAST);
	return av;
}

/* A receive for each QP, QP @k's in its own slot. */
static void listen(struct room *r)
{
	for (int i = 0; i < 2; i++) {
		memset(r->rc.s[i].buf, 0, QPS * SLOT);
		for (unsigned int k = 0; k < QPS; k++) {
			struct skua_wqe_data d = {
				.addr = cpu_to_le64(RC_VA + k * SLOT),
				.lkey = cpu_to_le32(r->rc.s[i].key),
				.len = cpu_to_le32(SLOT),
			};

			mini_recv(&r->rc.s[i].m, &r->qp[i][k], &d, 1);
		}
	}
}

/* Who heard it, a bit for each QP of side @i; each the whole, once. */
static unsigned int heard(struct room *r, int i, uint32_t len, uint32_t seed)
{
	struct rc_side *s = &r->rc.s[i];
	unsigned int who = 0;
	struct skua_cqe cqe;

	while (mini_cq_next(&s->m, &s->rcq, &cqe)) {
		unsigned int k = 0;

		assert_int_equal(skua_cqe_status(&cqe), SKUA_CQE_OK);
		while (r->qp[i][k].qpn != le32_to_cpu(cqe.qpn))
			assert_true(++k < QPS);
		assert_false(who & 1u << k);
		who |= 1u << k;
		assert_int_equal(le32_to_cpu(cqe.byte_len), len + SKUA_GRH_SIZE);
		assert_int_equal(le32_to_cpu(cqe.ud.src_qpn), r->qp[0][0].qpn);
		rc_check(s->buf + k * SLOT + SKUA_GRH_SIZE, len, seed);
	}
	return who;
}

static void say(struct room *r, uint8_t group, uint32_t len, uint32_t seed)
{
	struct skua_wqe_av av = group_av(r, group);

	rc_fill(r->rc.s[0].buf + 8192, len, seed);
	rc_post(&r->rc, 0, &(struct rc_wr){ .op = SKUA_WQE_SEND, .off = 8192, .len = len,
					    .av = &av });
	rc_pump(&r->rc);
	rc_expect(&r->rc, 0, false, SKUA_CQE_OK);
}

static void test_members(void **state)
{
	static const struct {
		bool ipv6;
		uint16_t vlan;
	} nets[] = { { false, 0 }, { true, 0 }, { false, 5 }, { true, 5 } };
	struct room r;

	(void)state;
	for (size_t n = 0; n < N(nets); n++) {
		room_open(&r, nets[n].ipv6, nets[n].vlan);
		/* Nobody yet: it goes out, and is for the netdev's filters there. */
		listen(&r);
		say(&r, 1, 100, 0);
		assert_int_equal(r.rc.s[0].f.sent, 1);
		assert_int_equal(heard(&r, 0, 100, 0) | heard(&r, 1, 100, 0), 0);
		assert_int_equal(rc_cnt(&r.rc, 0, SKUA_CNT_LOOPBACK_PKTS), 0);
		assert_int_equal(rc_cnt(&r.rc, 1, SKUA_CNT_ETH_RX_FILTERED), 1);
		/* Members on both sides, the sender among them. */
		attach(&r, 1, 7, 1, 0);
		attach(&r, 1, 3, 1, 2);
		attach(&r, 0, 200, 1, 0);
		attach(&r, 0, 0, 1, 1);
		attach(&r, 0, 1, 2, 2);
		say(&r, 1, 200, 1);
		assert_int_equal(heard(&r, 0, 200, 1), 3);
		assert_int_equal(heard(&r, 1, 200, 1), 5);
		/* Another group. */
		say(&r, 2, 30, 2);
		assert_int_equal(heard(&r, 0, 30, 2), 4);
		assert_int_equal(heard(&r, 1, 30, 2), 0);
		/* One leaves, the others stay. */
		detach(&r, 1, 7);
		detach(&r, 0, 200);
		listen(&r);
		say(&r, 1, 40, 3);
		assert_int_equal(heard(&r, 0, 40, 3), 2);
		assert_int_equal(heard(&r, 1, 40, 3), 4);
		rc_close(&r.rc);
	}
}

/* What the sender does not want to hear, others of its device do. */
static void test_no_loopback(void **state)
{
	struct skua_cmd_create_qp_in in;
	struct rc_side *s;
	struct room r;

	(void)state;
	room_open(&r, false, 0);
	s = &r.rc.s[0];
	assert_status(mini_index(&s->m, SKUA_CMD_DESTROY_QP, s->qp.qpn, NULL, 0), OK);
	in = mini_qp_in(&s->m, &s->qp, SKUA_QP_UD, &s->scq, &s->rcq, 6, 6, 2);
	in.sq.flags |= cpu_to_le32(SKUA_QP_F_NO_LOOPBACK);
	mini_ok(&s->m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	mini_rc_to_rts(&s->m, &s->qp, &s->attr);
	r.qp[0][0] = s->qp;
	for (unsigned int k = 0; k < QPS; k++) {
		attach(&r, 0, k, 1, k);
		attach(&r, 1, k, 1, k);
	}
	listen(&r);
	say(&r, 1, 100, 1);
	assert_int_equal(heard(&r, 0, 100, 1), 6);
	assert_int_equal(heard(&r, 1, 100, 1), 7);
	rc_close(&r.rc);
}

/* The wish of one QP not to hear itself keeps no other's datagrams from it. */
static void test_no_loopback_of_others(void **state)
{
	struct skua_cmd_create_qp_in in;
	struct rc_side *s;
	struct room r;

	(void)state;
	room_open(&r, false, 0);
	s = &r.rc.s[0];
	in = mini_qp_in(&s->m, &r.qp[0][1], SKUA_QP_UD, &s->scq, &s->rcq, 6, 6, 2);
	in.sq.flags |= cpu_to_le32(SKUA_QP_F_NO_LOOPBACK);
	mini_ok(&s->m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	mini_rc_to_rts(&s->m, &r.qp[0][1], &s->attr);
	for (unsigned int k = 0; k < QPS; k++)
		attach(&r, 0, k, 1, k);
	listen(&r);
	say(&r, 1, 100, 1);
	assert_int_equal(heard(&r, 0, 100, 1), 7);
	rc_close(&r.rc);
}

/* A member that cannot take it is no matter to the others. */
static void test_deaf_members(void **state)
{
	struct room r;

	(void)state;
	room_open(&r, false, 0);
	for (unsigned int k = 0; k < QPS; k++)
		attach(&r, 1, k, 1, k);
	listen(&r);
	assert_int_equal(mini_qp_modify(&r.rc.s[1].m, &r.qp[1][0], SKUA_QP_ERR, 0, NULL), 0);
	assert_int_equal(mini_qp_modify(&r.rc.s[1].m, &r.qp[1][1], SKUA_QP_RTS, SKUA_QP_M_QKEY,
					&(struct skua_qp_attr){ .qkey = cpu_to_le32(1) }), 0);
	fake_run(&r.rc.s[1].f);
	rc_expect(&r.rc, 1, true, SKUA_CQE_WR_FLUSH_ERR);
	say(&r, 1, 100, 1);
	assert_int_equal(heard(&r, 1, 100, 1), 4);
	assert_int_equal(rc_cnt(&r.rc, 1, SKUA_CNT_RX_BAD_QKEY), 1);
	assert_int_equal(rc_cnt(&r.rc, 1, SKUA_CNT_RX_BAD_STATE), 1);
	/* Without a receive. */
	say(&r, 1, 100, 2);
	assert_int_equal(heard(&r, 1, 100, 2), 0);
	assert_int_equal(rc_cnt(&r.rc, 1, SKUA_CNT_OUT_OF_BUFFER), 1);
	rc_close(&r.rc);
}

/* --- what is no packet to the group --- */

enum forgery { NONE, DQPN, OPCODE, VLAN, TAG0, UNICAST_MAC, OTHER_GROUP, UNICAST_GID, PKEY };

static const struct {
	const char *name;
	enum forgery how;
	enum skua_counter cnt;
} forgeries[] = {
	{ "nothing amiss", NONE, SKUA_CNT_RX_SEND },
	{ "a priority tag is no VLAN", TAG0, SKUA_CNT_RX_SEND },
	{ "a single QP's number", DQPN, SKUA_CNT_RX_NO_QP },
	{ "a connection's opcode", OPCODE, SKUA_CNT_RX_MALFORMED },
	{ "a VLAN where the device has no address", VLAN, SKUA_CNT_ETH_RX_FILTERED },
	{ "the group's address in a frame for the host", UNICAST_MAC, SKUA_CNT_ETH_RX_FILTERED },
	{ "a group of nobody", OTHER_GROUP, SKUA_CNT_ETH_RX_FILTERED },
	{ "the host's address in a frame for the group", UNICAST_GID, SKUA_CNT_ETH_RX_FILTERED },
	{ "another P_Key", PKEY, SKUA_CNT_RX_BAD_PKEY },
};

static void forge(struct room *r, enum forgery how)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_addr a = rc_addr(&r->rc, 0);
	struct skua_pkt_bth bth = {
		.opcode = how == OPCODE ? IB_OPCODE(RC, SEND_ONLY) : IB_OPCODE(UD, SEND_ONLY),
		.pkey = how == PKEY ? 0x8001 : IB_PKEY_DEFAULT,
		.dqpn = how == DQPN ? r->qp[1][0].qpn : SKUA_QPN_MULTICAST,
	};
	struct skua_pkt_build b;

	if (how != UNICAST_GID)
		group_gid(a.dgid, false, how == OTHER_GROUP ? 9 : 1);
	if (how == UNICAST_GID)
		memcpy(a.dmac, "\x01\x00\x5e\x01\x02\x01", 6);
	else if (how != UNICAST_MAC)
		ib_gid_multicast_mac(a.dgid, a.dmac);
	a.vlan = how == VLAN || how == TAG0;
	a.tci = how == VLAN ? 77 : 3 << 13;
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
	if (b.deth)
		ib_deth_put(b.deth, RC_QKEY, r->qp[0][0].qpn);
	rc_fill(b.payload, 8, 5);
	rc_inject(&r->rc, 1, &b, 8);
	fake_run(&r->rc.s[1].f);
}

static void test_forged(void **state)
{
	struct room r;

	(void)state;
	for (size_t k = 0; k < N(forgeries); k++) {
		bool good = forgeries[k].cnt == SKUA_CNT_RX_SEND;

		print_message("%s\n", forgeries[k].name);
		room_open(&r, false, 0);
		attach(&r, 1, 0, 1, 0);
		listen(&r);
		forge(&r, forgeries[k].how);
		assert_int_equal(rc_cnt(&r.rc, 1, forgeries[k].cnt), 1);
		assert_int_equal(heard(&r, 1, 8, 5), good);
		rc_close(&r.rc);
	}
}

/* A group's MAC address in the frame of another one that shares it: by address. */
static void test_shared_mac(void **state)
{
	uint8_t gid[16], mac[2][6];
	struct room r;

	(void)state;
	room_open(&r, false, 0);
	group_gid(gid, false, 1);
	ib_gid_multicast_mac(gid, mac[0]);
	gid[13] &= 0x7f;
	ib_gid_multicast_mac(gid, mac[1]);
	assert_memory_equal(mac[0], mac[1], 6);
	assert_status(attach_gid(&r.rc.s[1].m, 0, gid, r.qp[1][1].qpn), OK);
	attach(&r, 1, 1, 1, 0);
	listen(&r);
	say(&r, 1, 10, 1);
	assert_int_equal(heard(&r, 1, 10, 1), 1);
	rc_close(&r.rc);
}

/* --- commands --- */

static void test_commands_o10_2_2_3(void **state)
{
	static const uint8_t bad[][16] = {
		{ 0 }, { 0xfe, 0x80 }, { 0xfd, [15] = 1 },
		{ [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 },
		{ [10] = 0xff, [11] = 0xff, 223, 255, 255, 255 },
		{ [10] = 0xff, [11] = 0xff, 240, 0, 0, 1 },
	};
	static const uint8_t good[][16] = {
		{ 0xff }, { 0xff, 0x02, [15] = 1 }, { [10] = 0xff, [11] = 0xff, 224 },
		{ [10] = 0xff, [11] = 0xff, 239, 255, 255, 255 },
	};
	struct skua_cmd_mcg_in in = { 0 };
	struct mini_qp rcqp;
	struct room r;
	struct mini *m;
	uint32_t qpn;

	(void)state;
	room_open(&r, false, 0);
	m = &r.rc.s[0].m;
	qpn = r.qp[0][0].qpn;
	for (size_t k = 0; k < N(bad); k++)
		assert_status(attach_gid(m, k, bad[k], qpn), BAD_PARAM);
	for (size_t k = 0; k < N(good); k++)
		assert_status(attach_gid(m, k, good[k], qpn), OK);
	/* The index is taken; the QP is in the group; another QP may be. */
	assert_status(attach_gid(m, 0, good[1], r.qp[0][1].qpn), EXISTS);
	assert_status(attach_gid(m, 9, good[0], qpn), EXISTS);
	assert_status(attach_gid(m, 9, good[0], r.qp[0][1].qpn), OK);
	/* No QP, another life of one, one that is not UD. */
	assert_status(attach_gid(m, 10, good[0], 0x7f), BAD_INDEX);
	assert_status(attach_gid(m, 10, good[0], qpn ^ 1u << MODEL_LOG_QP), BAD_INDEX);
	assert_status(attach_gid(m, 10, good[0], qpn | 1u << 24), BAD_INDEX);
	rc_qp(&r.rc, 0, &rcqp, &(struct rc_opt){ 0 });
	assert_status(attach_gid(m, 10, good[0], rcqp.qpn), BAD_INDEX);
	assert_status(attach_gid(m, 1u << MODEL_LOG_MCG, good[0], r.qp[0][2].qpn), BAD_INDEX);
	assert_status(attach_gid(m, 0xffffffff, good[0], r.qp[0][2].qpn), BAD_INDEX);
	in.index = cpu_to_le32(10);
	memcpy(in.mcg.gid, good[0], 16);
	in.mcg.qpn = cpu_to_le32(r.qp[0][2].qpn);
	in.mcg.flags = cpu_to_le32(SKUA_MCG_VALID);
	assert_status(mini_cmd(m, SKUA_CMD_ATTACH_MCG, &in, sizeof(in), NULL, 0), BAD_PARAM);
	in.mcg.flags = 0;
	in.mcg.reserved[9] = cpu_to_le32(1);
	assert_status(mini_cmd(m, SKUA_CMD_ATTACH_MCG, &in, sizeof(in), NULL, 0), BAD_PARAM);
	/* A member cannot go. */
	assert_status(mini_index(m, SKUA_CMD_DESTROY_QP, qpn, NULL, 0), BUSY);
	for (size_t k = 0; k < N(good); k++)
		assert_status(mini_index(m, SKUA_CMD_DETACH_MCG, k, NULL, 0), OK);
	assert_status(mini_index(m, SKUA_CMD_DETACH_MCG, 0, NULL, 0), BAD_INDEX);
	assert_status(mini_index(m, SKUA_CMD_DETACH_MCG, 0xffffffff, NULL, 0), BAD_INDEX);
	assert_status(mini_index(m, SKUA_CMD_DESTROY_QP, qpn, NULL, 0), OK);
	rc_close(&r.rc);
}

/* Groups come and go in any order: the device finds those that are there. */
static void test_many_groups(void **state)
{
	uint8_t member[256] = { 0 };	/* group + 1 of the entry */
	unsigned int seed = 11;
	uint8_t gid[16];
	struct room r;
	struct mini *m;

	(void)state;
	room_open(&r, true, 0);
	m = &r.rc.s[0].m;
	for (unsigned int step = 0; step < 3000; step++) {
		uint32_t index = rand_r(&seed) % 200, pos = 0, last = 0, qpn;
		uint8_t group = rand_r(&seed) % 20;
		unsigned int n = 0, want = 0, in_it = 0;

		group_gid(gid, true, group);
		for (unsigned int k = 0; k < 200; k++) {
			want += member[k] == group + 1;
			in_it += member[k] == group + 1 && k % QPS == index % QPS;
		}
		while (port_mcg_next(r.rc.s[0].f.dev, gid, &pos, &qpn)) {
			assert_true(pos > last);
			last = pos;
			n++;
		}
		assert_int_equal(n, want);
		if (member[index]) {
			detach(&r, 0, index);
			member[index] = 0;
		} else {
			assert_int_equal(attach_gid(m, index, gid, r.qp[0][index % QPS].qpn),
					 in_it ? SKUA_CMD_ST_EXISTS : SKUA_CMD_ST_OK);
			member[index] = in_it ? 0 : group + 1;
		}
	}
	rc_close(&r.rc);
}

/* --- large groups --- */

#define CROWD	200u
#define OWN	30u
#define TURN	64u	/* members that hear at once */
#define FLOOD	20u	/* more than are kept */

/* So many QPs of side 1 in group 1, none of which has a receive: each counts what it hears. */
static void crowd_open_num(struct room *r, unsigned int num)
{
	uint8_t gid[16];

	room_open(r, false, 0);
	group_gid(gid, false, 1);
	for (unsigned int k = 0; k < num; k++) {
		struct mini_qp qp;

		rc_qp(&r->rc, 1, &qp, &(struct rc_opt){ .type = SKUA_QP_UD, .log_sq = 1,
							.log_rq = 1 });
		mini_rc_to_rts(&r->rc.s[1].m, &qp, &r->rc.s[1].attr);
		assert_status(attach_gid(&r->rc.s[1].m, k, gid, qp.qpn), OK);
	}
}

static void crowd_open(struct room *r)
{
	crowd_open_num(r, CROWD);
}

static uint64_t crowd_heard(struct room *r)
{
	return rc_cnt(&r->rc, 1, SKUA_CNT_OUT_OF_BUFFER);
}

/* A packet to the group comes from the wire; nothing else is done. */
static void group_rx(struct room *r, uint8_t group)
{
	uint8_t frame[SKUA_PKT_OVERHEAD + 64];
	struct skua_pkt_addr a = rc_addr(&r->rc, 0);
	struct skua_pkt_bth bth = {
		.opcode = IB_OPCODE(UD, SEND_ONLY), .pkey = IB_PKEY_DEFAULT,
		.dqpn = SKUA_QPN_MULTICAST,
	};
	struct skua_pkt_build b;

	group_gid(a.dgid, false, group);
	ib_gid_multicast_mac(a.dgid, a.dmac);
	assert_int_equal(skua_pkt_build_start(&b, frame, sizeof(frame), &a, &bth), 0);
	ib_deth_put(b.deth, RC_QKEY, r->qp[0][0].qpn);
	rc_inject(&r->rc, 1, &b, 8);
}

static void crowd_rx(struct room *r)
{
	group_rx(r, 1);
}

/* However many the members, a turn is short, and none is left out or hears it twice. */
static void test_crowd(void **state)
{
	unsigned int turns = 1;
	uint64_t before;
	struct room r;

	(void)state;
	crowd_open(&r);
	crowd_rx(&r);
	assert_in_range(crowd_heard(&r), 1, CROWD / 2);
	do {
		before = crowd_heard(&r);
		turns++;
		if (!skua_dev_run(r.rc.s[1].f.dev))
			break;
		assert_in_range(crowd_heard(&r) - before, 0, CROWD / 2);
	} while (turns < 100);
	assert_int_equal(crowd_heard(&r), CROWD);
	assert_in_range(turns, 3, 99);
	/* Several at once keep their order, and are all heard. */
	for (unsigned int i = 0; i < 5; i++)
		crowd_rx(&r);
	fake_run(&r.rc.s[1].f);
	assert_int_equal(crowd_heard(&r), 6 * CROWD);
	assert_int_equal(rc_cnt(&r.rc, 1, SKUA_CNT_RDMA_RX_PKTS), 6);
	rc_close(&r.rc);
}

/* Between two turns members leave, the one that was last among them, and others come. */
static void test_crowd_changes(void **state)
{
	struct room r;
	uint64_t had;

	(void)state;
	for (unsigned int gone = 0; gone < CROWD; gone += 7) {
		crowd_open(&r);
		crowd_rx(&r);
		had = crowd_heard(&r);
		detach(&r, 1, gone);
		/* Its entry is another group's now. */
		attach(&r, 1, gone, 2, 0);
		fake_run(&r.rc.s[1].f);
		assert_int_equal(crowd_heard(&r), gone < had ? CROWD : CROWD - 1);
		rc_close(&r.rc);
	}
}

/* More than it can keep are lost, as datagrams may be; a reset forgets those it keeps. */
static void test_crowd_flood(void **state)
{
	const unsigned int num = 1000;
	uint64_t had, lost;
	struct room r;

	(void)state;
	crowd_open(&r);
	for (unsigned int i = 0; i < num; i++)
		crowd_rx(&r);
	/* What is lost is counted, too, once each. */
	assert_in_range(crowd_heard(&r), num / 2, num + CROWD / 2);
	fake_run(&r.rc.s[1].f);
	lost = num - (crowd_heard(&r) - num) / (CROWD - 1);
	assert_in_range(lost, num / 2, num - 1);
	assert_int_equal(crowd_heard(&r), lost + (num - lost) * CROWD);
	crowd_rx(&r);
	fake_run(&r.rc.s[1].f);
	crowd_rx(&r);
	had = crowd_heard(&r);
	skua_dev_reset(r.rc.s[1].f.dev, SKUA_RESET_FLR);
	fake_run(&r.rc.s[1].f);
	assert_in_range(crowd_heard(&r), 0, had);
	rc_close(&r.rc);
}

/* Of the device's own, none is lost: those behind it wait. */
static void test_crowd_own(void **state)
{
	struct skua_wqe_av av;
	struct room r;

	(void)state;
	crowd_open(&r);
	/* Side 1 sends to its own crowd, as many as its ring holds. */
	av = rc_av(&r.rc, 1);
	group_gid(av.av.dgid, false, 1);
	ib_gid_multicast_mac(av.av.dgid, av.av.dmac);
	av.dest_qpn = cpu_to_le32(SKUA_QPN_MULTICAST);
	for (unsigned int i = 0; i < OWN; i++)
		rc_post(&r.rc, 1, &(struct rc_wr){ .op = SKUA_WQE_SEND, .off = 8192, .len = 16,
						   .av = &av });
	rc_pump(&r.rc);
	for (unsigned int i = 0; i < OWN; i++)
		rc_expect(&r.rc, 1, false, SKUA_CQE_OK);
	assert_int_equal(crowd_heard(&r), OWN * CROWD);
	rc_close(&r.rc);
}

/* A group that one turn is enough for leaves nothing for another. */
static void test_crowd_of_a_turn(void **state)
{
	struct room r;

	(void)state;
	crowd_open_num(&r, TURN);
	for (unsigned int i = 1; i <= 100; i++) {
		crowd_rx(&r);
		assert_int_equal(crowd_heard(&r), i * TURN);
	}
	assert_false(skua_dev_run(r.rc.s[1].f.dev));
	rc_close(&r.rc);
}

/* A large group does not delay others; its own packets stay in order behind each other. */
static void test_crowd_beside(void **state)
{
	struct skua_cqe cqe;
	struct room r;
	uint64_t had;

	(void)state;
	crowd_open(&r);
	attach(&r, 1, 250, 2, 0);
	attach(&r, 1, 251, 1, 1);
	listen(&r);
	for (unsigned int i = 0; i < FLOOD; i++)
		crowd_rx(&r);
	had = crowd_heard(&r);
	group_rx(&r, 2);
	assert_int_equal(crowd_heard(&r), had);
	assert_true(mini_cq_next(&r.rc.s[1].m, &r.rc.s[1].rcq, &cqe));
	assert_int_equal(le32_to_cpu(cqe.qpn), r.qp[1][0].qpn);
	assert_false(mini_cq_next(&r.rc.s[1].m, &r.rc.s[1].rcq, &cqe));
	rc_close(&r.rc);
}

/* A turn of side 1 while the wire is full of packets to the crowd. */
static void flooded_turn(struct room *r)
{
	for (unsigned int i = 0; i < FLOOD; i++)
		crowd_rx(r);
	skua_dev_run(r->rc.s[1].f.dev);
}

/* What the device sends itself gets its turn, however much comes from the wire. */
static void test_crowd_starves_none(void **state)
{
	struct skua_wqe_av av;
	unsigned int turns = 0;
	struct skua_cqe cqe;
	struct room r;

	(void)state;
	crowd_open(&r);
	listen(&r);
	for (unsigned int i = 0; i < FLOOD; i++)
		crowd_rx(&r);
	/* To one of its own QPs. */
	av = rc_av(&r.rc, 0);
	rc_post(&r.rc, 1, &(struct rc_wr){ .op = SKUA_WQE_SEND, .off = 8192, .len = 16,
					   .av = &av });
	flooded_turn(&r);
	flooded_turn(&r);
	assert_int_equal(rc_cnt(&r.rc, 1, SKUA_CNT_LOOPBACK_PKTS), 1);
	assert_true(mini_cq_next(&r.rc.s[1].m, &r.rc.s[1].rcq, &cqe));
	rc_expect(&r.rc, 1, false, SKUA_CQE_OK);
	/* To the crowd. */
	group_gid(av.av.dgid, false, 1);
	ib_gid_multicast_mac(av.av.dgid, av.av.dmac);
	av.dest_qpn = cpu_to_le32(SKUA_QPN_MULTICAST);
	for (unsigned int i = 0; i < OWN; i++)
		rc_post(&r.rc, 1, &(struct rc_wr){ .op = SKUA_WQE_SEND, .off = 8192, .len = 16,
						   .av = &av });
	while (rc_cnt(&r.rc, 1, SKUA_CNT_LOOPBACK_PKTS) < 1 + OWN) {
		assert_in_range(turns++, 0, 50 * OWN);
		flooded_turn(&r);
	}
	rc_close(&r.rc);
}

/* A GID of our own is no group. */
static void test_gid_no_group(void **state)
{
	struct skua_cmd_set_gid_in in = {
		.index = cpu_to_le32(5), .gid.vlan = cpu_to_le16(SKUA_GID_NO_VLAN),
		.gid.flags = cpu_to_le32(SKUA_GID_VALID | SKUA_GID_IPV4),
		.gid.mac = { 2, 0, 0, 0, 0, 9 },
	};
	struct rig *r = *state;

	group_gid(in.gid.gid, false, 1);
	assert_status(mini_cmd(&r->m, SKUA_CMD_SET_GID, &in, sizeof(in), NULL, 0), BAD_PARAM);
	in.gid.flags = cpu_to_le32(SKUA_GID_VALID);
	group_gid(in.gid.gid, true, 1);
	assert_status(mini_cmd(&r->m, SKUA_CMD_SET_GID, &in, sizeof(in), NULL, 0), BAD_PARAM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_no_loopback),
		cmocka_unit_test(test_no_loopback_of_others),
		cmocka_unit_test(test_deaf_members),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_shared_mac),
		cmocka_unit_test(test_commands_o10_2_2_3),
		cmocka_unit_test(test_many_groups),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_crowd_changes),
		cmocka_unit_test(test_crowd_flood),
		cmocka_unit_test(test_crowd_own),
		cmocka_unit_test(test_crowd_of_a_turn),
		cmocka_unit_test(test_crowd_beside),
		cmocka_unit_test(test_crowd_starves_none),
		rig_test(test_gid_no_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
