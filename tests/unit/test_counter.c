// SPDX-License-Identifier: GPL-2.0
/*
 * Counter sets: their life, what is bound to them, and that they count just what
 * befalls that, as the device does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core_test.h"
#include "rc.h"

#define N(a)	(sizeof(a) / sizeof((a)[0]))

/* The counters that a set keeps. */
static const enum skua_counter kept[] = {
#define X(name) SKUA_CNT_##name,
	SKUA_COUNTER_SET_TABLE(X)
#undef X
};

struct values {
	uint64_t v[SKUA_CNT_COUNT];
};

static int query(struct mini *m, uint32_t index, struct values *val)
{
	struct {
		struct skua_cmd_query_counters_out head;
		__le64 value[SKUA_CNT_COUNT];
	} out = { 0 };
	int status = mini_index(m, SKUA_CMD_QUERY_COUNTERS, index, &out, sizeof(out));

	if (status)
		return status;
	assert_int_equal(le32_to_cpu(out.head.count), SKUA_CNT_COUNT);
	for (unsigned int i = 0; i < SKUA_CNT_COUNT; i++)
		val->v[i] = le64_to_cpu(out.value[i]);
	return status;
}

static int create(struct mini *m, uint32_t index)
{
	return mini_index(m, SKUA_CMD_CREATE_COUNTER, index, NULL, 0);
}

static int destroy(struct mini *m, uint32_t index)
{
	return mini_index(m, SKUA_CMD_DESTROY_COUNTER, index, NULL, 0);
}

static int bind_how(struct mini *m, uint32_t qpn, uint32_t set, uint32_t mask, uint32_t state)
{
	struct skua_cmd_modify_qp_in in = {
		.qpn = cpu_to_le32(qpn),
		.mask = cpu_to_le32(SKUA_QP_M_COUNTER | mask),
		.cur_state = cpu_to_le32(state),
		.counter = cpu_to_le32(set),
	};

	return mini_cmd(m, SKUA_CMD_MODIFY_QP, &in, sizeof(in), NULL, 0);
}

static int bind(struct mini *m, uint32_t qpn, uint32_t set)
{
	return bind_how(m, qpn, set, 0, SKUA_QP_ANY_STATE);
}

static void life(void **state)
{
	struct rig *r = *state;
	struct mini *m = &r->m;
	struct values val;

	assert_status(create(m, 0), BAD_INDEX);
	assert_status(create(m, 1u << 20), BAD_INDEX);
	assert_status(query(m, 1, &val), BAD_INDEX);
	assert_status(destroy(m, 1), BAD_INDEX);
	assert_status(create(m, 1), OK);
	assert_status(create(m, 1), EXISTS);
	assert_status(query(m, 1, &val), OK);
	for (unsigned int i = 0; i < SKUA_CNT_COUNT; i++)
		assert_int_equal(val.v[i], 0);
	assert_status(destroy(m, 1), OK);
	assert_status(destroy(m, 1), BAD_INDEX);
	r->f.dev->caps &= ~SKUA_CAP_COUNTER_SET;
	assert_status(create(m, 1), BAD_OPCODE);
}

static void binding(void **state)
{
	struct rig *r = *state;
	struct mini *m = &r->m;
	struct mini_cq cq;
	struct mini_qp qp, made;
	struct skua_cmd_create_qp_in in;

	mini_cq_create(m, &cq, 4);
	mini_qp_create(m, &qp, SKUA_QP_RC, &cq, &cq, 4, 4, 2);
	assert_status(create(m, 1), OK);
	assert_status(create(m, 2), OK);
	assert_status(bind(m, qp.qpn, 3), BAD_INDEX);
	assert_status(bind_how(m, qp.qpn, 1, SKUA_QP_M_STATE, SKUA_QP_ANY_STATE), BAD_PARAM);
	assert_status(bind_how(m, qp.qpn, 1, 0, SKUA_QP_INIT), BAD_STATE);
	assert_status(bind_how(m, qp.qpn, 1, 0, 9), BAD_PARAM);
	assert_status(bind_how(m, qp.qpn, 1, 0, SKUA_QP_RESET), OK);
	assert_status(destroy(m, 1), BUSY);
	/* From one to the other, and to none. */
	assert_status(bind(m, qp.qpn, 2), OK);
	assert_status(destroy(m, 1), OK);
	assert_status(destroy(m, 2), BUSY);
	assert_status(mini_qp_modify(m, &qp, SKUA_QP_RESET, 0, &(struct skua_qp_attr){ 0 }), OK);
	assert_status(destroy(m, 2), BUSY);
	assert_status(bind(m, qp.qpn, 0), OK);
	assert_status(destroy(m, 2), OK);
	/* Bound from the beginning; the QP's end unbinds. */
	assert_status(create(m, 5), OK);
	in = mini_qp_in(m, &made, SKUA_QP_RC, &cq, &cq, 4, 4, 2);
	in.counter = cpu_to_le32(5);
	mini_ok(m, SKUA_CMD_CREATE_QP, &in, sizeof(in));
	assert_status(destroy(m, 5), BUSY);
	assert_status(mini_index(m, SKUA_CMD_DESTROY_QP, made.qpn, NULL, 0), OK);
	assert_status(destroy(m, 5), OK);
	r->f.dev->caps &= ~SKUA_CAP_COUNTER_SET;
	assert_status(bind(m, qp.qpn, 0), BAD_PARAM);
}

/* Every kind of message once, and one that fails. */
static void traffic(struct rc *rc)
{
	static const enum skua_wqe_op ops[] = {
		SKUA_WQE_SEND, SKUA_WQE_WRITE, SKUA_WQE_READ, SKUA_WQE_FAA, SKUA_WQE_FLUSH,
		SKUA_WQE_ATOMIC_WRITE,
	};

	for (size_t k = 0; k < N(ops); k++) {
		bool answered = ops[k] >= SKUA_WQE_CAS;

		if (ops[k] == SKUA_WQE_SEND)
			rc_recv(rc, 1, 0, 9000);
		rc_post(rc, 0, &(struct rc_wr){
			.op = ops[k],
			.flush = ops[k] == SKUA_WQE_FLUSH ? SKUA_WQE_FLUSH_GLOBAL : 0,
			.len = ops[k] == SKUA_WQE_FLUSH ? 0 : answered ? 8 : 9000 });
		rc_pump(rc);
		rc_expect(rc, 0, false, SKUA_CQE_OK);
		if (ops[k] == SKUA_WQE_SEND)
			rc_expect(rc, 1, true, SKUA_CQE_OK);
	}
	rc_post(rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 8, .rkey = 0x3ff00 });
	rc_pump(rc);
	rc_expect(rc, 0, false, SKUA_CQE_REM_ACCESS_ERR);
}

/* What the set has is what the device has counted meanwhile, of the counters it keeps. */
static void expect_same(struct mini *m, uint32_t set, const struct values *before)
{
	struct values dev, val;
	unsigned int seen = 0;

	assert_status(query(m, 0, &dev), OK);
	assert_status(query(m, set, &val), OK);
	for (size_t k = 0; k < N(kept); k++) {
		enum skua_counter c = kept[k];

		assert_int_equal(val.v[c], dev.v[c] - before->v[c]);
		seen += !!val.v[c];
		val.v[c] = 0;
	}
	/* Not a comparison of nothing. */
	assert_in_range(seen, 5, N(kept));
	for (unsigned int i = 0; i < SKUA_CNT_COUNT; i++)
		assert_int_equal(val.v[i], 0);
}

static const struct rc_opt all_caps = {
	.caps = SKUA_CAP_FLUSH | SKUA_CAP_ATOMIC_WRITE | SKUA_CAP_ATOMIC,
	.access = SKUA_ACCESS_REMOTE_WRITE | SKUA_ACCESS_REMOTE_READ |
		  SKUA_ACCESS_REMOTE_ATOMIC | SKUA_ACCESS_FLUSH_GLOBAL,
};

static void counts_as_the_device(void **state)
{
	struct values before[2];
	struct rc rc;

	(void)state;
	rc_open(&rc, &all_caps);
	for (unsigned int i = 0; i < 2; i++) {
		struct mini *m = &rc.s[i].m;

		assert_status(create(m, 7), OK);
		assert_status(bind(m, rc.s[i].qp.qpn, 7), OK);
		assert_status(query(m, 0, &before[i]), OK);
	}
	traffic(&rc);
	for (unsigned int i = 0; i < 2; i++)
		expect_same(&rc.s[i].m, 7, &before[i]);
	rc_close(&rc);
}

/* The set of another QP sees nothing; a QP that was unbound counts no further. */
static void others_do_not_count(void **state)
{
	struct values val;
	struct rc rc;

	(void)state;
	rc_open(&rc, &all_caps);
	assert_status(create(&rc.s[0].m, 1), OK);
	assert_status(bind(&rc.s[0].m, rc.s[0].qp.qpn, 1), OK);
	assert_status(bind(&rc.s[0].m, rc.s[0].qp.qpn, 0), OK);
	assert_status(create(&rc.s[1].m, 1), OK);
	traffic(&rc);
	for (unsigned int i = 0; i < 2; i++) {
		assert_status(query(&rc.s[i].m, 1, &val), OK);
		for (unsigned int c = 0; c < SKUA_CNT_COUNT; c++)
			assert_int_equal(val.v[c], 0);
	}
	rc_close(&rc);
}

/* More sets than the cache holds: they come and go through ICM and lose nothing. */
static void evicted(void **state)
{
	struct rc_opt opt = all_caps;
	struct values before, val;
	struct rc rc;

	(void)state;
	opt.onchip = 8;
	rc_open(&rc, &opt);
	for (uint32_t i = 1; i < 40; i++)
		assert_status(create(&rc.s[0].m, i), OK);
	assert_status(bind(&rc.s[0].m, rc.s[0].qp.qpn, 20), OK);
	assert_status(query(&rc.s[0].m, 0, &before), OK);
	for (unsigned int k = 0; k < 3; k++) {
		rc_post(&rc, 0, &(struct rc_wr){ .op = SKUA_WQE_WRITE, .len = 100 });
		rc_pump(&rc);
		rc_expect(&rc, 0, false, SKUA_CQE_OK);
		for (uint32_t i = 1; i < 20; i++)
			assert_status(query(&rc.s[0].m, i, &val), OK);
	}
	assert_status(query(&rc.s[0].m, 20, &val), OK);
	assert_int_equal(val.v[SKUA_CNT_TX_WRITE], 3);
	assert_int_equal(val.v[SKUA_CNT_RDMA_TX_PKTS], 3);
	rc_close(&rc);
}

static void flush_and_atomic_write(void **state)
{
	static const enum skua_counter asked[] = { SKUA_CNT_TX_FLUSH, SKUA_CNT_TX_ATOMIC_WRITE };
	static const enum skua_counter served[] = { SKUA_CNT_RX_FLUSH, SKUA_CNT_RX_ATOMIC_WRITE };
	struct rc rc;

	(void)state;
	rc_open(&rc, &all_caps);
	traffic(&rc);
	for (size_t k = 0; k < N(asked); k++) {
		assert_int_equal(rc_cnt(&rc, 0, asked[k]), 1);
		assert_int_equal(rc_cnt(&rc, 1, served[k]), 1);
		assert_int_equal(rc_cnt(&rc, 1, asked[k]), 0);
	}
	rc_close(&rc);
}

/* A rule's set counts the frames that the rule takes, and holds the set. */
static void rules(void **state)
{
	struct rig *r = *state;
	struct mini *m = &r->m;
	struct skua_cmd_create_flow_in in = { .index = cpu_to_le32(3) };
	uint8_t frame[100] = { 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };
	struct mini_cq cq;
	struct mini_qp qp;
	struct values val;

	mini_cq_create(m, &cq, 4);
	mini_qp_create(m, &qp, SKUA_QP_RAW_ETH, &cq, &cq, 4, 4, 2);
	mini_eth_to_rts(m, &qp);
	assert_status(create(m, 1), OK);
	memset(in.flow.mask.dmac, 0xff, 6);
	memcpy(in.flow.value.dmac, frame, 6);
	in.flow.flags = cpu_to_le32(SKUA_FLOW_DROP);
	in.flow.counter = cpu_to_le32(2);
	assert_status(mini_cmd(m, SKUA_CMD_CREATE_FLOW, &in, sizeof(in), NULL, 0), BAD_INDEX);
	in.flow.counter = cpu_to_le32(1);
	mini_ok(m, SKUA_CMD_CREATE_FLOW, &in, sizeof(in));
	assert_status(destroy(m, 1), BUSY);
	fake_rx(&r->f, frame, 60);
	fake_rx(&r->f, frame, 100);
	frame[5] = 8;
	fake_rx(&r->f, frame, 70);
	assert_status(query(m, 1, &val), OK);
	assert_int_equal(val.v[SKUA_CNT_RDMA_RX_PKTS], 2);
	assert_int_equal(val.v[SKUA_CNT_RDMA_RX_BYTES], 160);
	assert_status(mini_index(m, SKUA_CMD_DESTROY_FLOW, 3, NULL, 0), OK);
	assert_status(destroy(m, 1), OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(life),
		rig_test(binding),
		rig_test(rules),
		cmocka_unit_test(counts_as_the_device),
		cmocka_unit_test(others_do_not_count),
		cmocka_unit_test(evicted),
		cmocka_unit_test(flush_and_atomic_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
