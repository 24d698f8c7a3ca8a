// SPDX-License-Identifier: GPL-2.0
/*
 * Merging of received TCP frames (SKUA_CAP_GRO): receive WQEs, and what becomes of a row of frames
 * when something else happens.
 */
#include <stdio.h>

#include "gro_test.h"

/* --- receive WQEs --- */

static void row(struct gro_rig *g, struct flow *f, struct sent *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		s[i].len = segment(s[i].data, f, PAYLOAD, TCP_ACK);
		give(g, &s[i]);
	}
}

/* As many as there are WQEs are merged, the others lost. */
static void no_wqe(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[5];
	struct told t;

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 3; i++)
		post(&g, SLOT);
	row(&g, &f, s, 5);
	fake_run(&r->f);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_ETH_RX_NO_BUF), 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 3);
	check_whole(&g, &t);
	assert_false(next(&g, &t));
	/* A gap is a gap, and what comes then begins anew. */
	refill(&g);
	row(&g, &f, s, 2);
	fake_run(&r->f);
	assert_int_equal(compare(&g, s, 2, NULL, 0), 1);
}

/* A WQE for payload only is not enough. */
static void short_wqe(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];
	struct told t;

	up_flags(&g, r, 0, MOST);
	post(&g, SLOT);
	post(&g, PAYLOAD + 53);
	row(&g, &f, s, 3);
	fake_run(&r->f);
	assert_int_equal(mini_counter(&r->m, SKUA_CNT_ETH_RX_TOO_LONG), 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 1);
	assert_memory_equal(slot(&g, 0), s[0].data, s[0].len);
	assert_false(next(&g, &t));
}

static void assert_error(struct gro_rig *g, enum skua_cqe_status status, uint32_t index)
{
	struct skua_cqe cqe;

	assert_true(mini_cq_next(&g->e.r->m, &g->e.rcq, &cqe));
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_STATUS), status);
	assert_int_equal(le32_get_bits(cqe.what, SKUA_CQE_WQE_INDEX), index);
}

/* Memory that is not there: what came before is told of, then the error, then the flush. */
static void no_memory(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[4];
	struct told t;

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 4; i++)
		post(&g, SLOT);
	fake_hole(&r->f, g.e.rx + 2 * SLOT + 100, 1);
	row(&g, &f, s, 4);
	fake_run(&r->f);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 2);
	check_whole(&g, &t);
	assert_error(&g, SKUA_CQE_LOC_PROT_ERR, 2);
	assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, 3);
}

/* The memory of the headers goes away before they are written: each WQE completes. */
static void no_headers(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 4; i++)
		post(&g, SLOT);
	row(&g, &f, s, 3);
	fake_hole(&r->f, g.e.rx + 20, 1);
	fake_run(&r->f);
	assert_error(&g, SKUA_CQE_LOC_PROT_ERR, 0);
	for (unsigned int i = 1; i < 4; i++)
		assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, i);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
}

/* A ring that cannot be read: the row is told of first. */
static void no_ring(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];
	struct told t;

	up(&g, r);
	fake_hole(&r->f, g.e.qp.rq + 2 * SKUA_WQE_SEG, 1);
	row(&g, &f, s, 3);
	fake_run(&r->f);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 2);
	assert_error(&g, SKUA_CQE_LOC_QP_OP_ERR, 2);
	assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, 3);
}

/* --- what else happens --- */

/* Nothing is told while a row may go on; all of it before a command is answered. */
static void command(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];
	struct told t;

	up_flags(&g, r, 0, MOST);
	for (unsigned int i = 0; i < 4; i++)
		post(&g, SLOT);
	row(&g, &f, s, 3);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
	assert_int_equal(mini_qp_modify(&r->m, &g.e.qp, SKUA_QP_ERR, 0, NULL), 0);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 3);
	fake_run(&r->f);
	assert_error(&g, SKUA_CQE_WR_FLUSH_ERR, 3);
}

/* Counters that a command reads include the frames that came before the command. */
static void counters(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	struct {
		struct skua_cmd_query_counters_out head;
		__le64 value[SKUA_CNT_COUNT];
	} out;

	up(&g, r);
	row(&g, &f, s, 3);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_COUNTERS, 0, &out, sizeof(out)), OK);
	assert_int_equal(le64_to_cpu(out.value[SKUA_CNT_ETH_RX_GRO_SEGS]), 3);
	assert_int_equal(compare(&g, s, 3, NULL, 0), 1);
}

/* A queue that is gone gets nothing, and one that is made with its number neither. */
static void reset(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	up(&g, r);
	row(&g, &f, s, 3);
	skua_dev_reset(r->f.dev, SKUA_RESET_FLR);
	fake_run(&r->f);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
}

/* While the function may not master the bus, what is under way waits. */
static void bus_master(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[3];

	up(&g, r);
	row(&g, &f, s, 3);
	fake_bus(&r->f, true, false);
	fake_run(&r->f);
	assert_false(mini_cq_peek(&r->m, &g.e.rcq));
	fake_bus(&r->f, true, true);
	fake_run(&r->f);
	assert_int_equal(compare(&g, s, 3, NULL, 0), 1);
}

/* Two queues, by a rule: each frame goes to its own, and ends the row of the other. */
static void two_queues(void **state)
{
	struct skua_cmd_create_flow_in rule = { .index = cpu_to_le32(1) };
	struct flow f[2] = { { .port = 7 }, { .port = 8 } };
	struct rig *r = *state;
	struct gro_rig g[2];
	struct sent s[2][4];

	up(&g[0], r);
	up(&g[1], r);
	be16_put((uint8_t *)&rule.flow.value.sport, 7);
	memset(&rule.flow.mask.sport, 0xff, 2);
	rule.flow.dest = cpu_to_le32(g[0].e.qp.qpn);
	mini_ok(&r->m, SKUA_CMD_CREATE_FLOW, &rule, sizeof(rule));
	for (unsigned int i = 0; i < 2; i++) {
		row(&g[0], &f[0], s[0] + 2 * i, 2);
		row(&g[1], &f[1], s[1] + 2 * i, 2);
	}
	fake_run(&r->f);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(compare(&g[i], s[i], 4, NULL, 0), 2);
}

static void faults(void **state)
{
	struct flow f = { .port = 7 };
	struct rig *r = *state;
	struct gro_rig g;
	struct sent s[6];
	struct told t;
	char err[128];

	up(&g, r);
	assert_int_equal(skua_dev_cmd_fault(r->f.dev, "ETH_RECV@3:twice", err, sizeof(err)), 0);
	row(&g, &f, s, 6);
	fake_run(&r->f);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 1);
	/* Told of once more */
	assert_error(&g, SKUA_CQE_OK, 2);
	assert_true(next(&g, &t));
	assert_int_equal(t.m.segs, 3);
}

/* --- from a device that cuts to one that merges, and round inside --- */

static void large(uint8_t *p, bool v6, uint32_t payload)
{
	struct flow f = { .v6 = v6, .stamp = true, .port = 7, .id = 0xfff0, .seq = 0xfffff000 };

	segment(p, &f, payload, TCP_ACK | TCP_PSH);
}

static void loop(void **state)
{
	struct rig *r = *state;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		uint32_t hdr = v6 ? 86 : 66, mss = 1448, n = 10, len = n * mss - 7;
		struct skua_cmd_modify_port_in port = {
			.mask = cpu_to_le32(SKUA_PORT_M_MAC),
		};
		uint8_t *mem;
		struct gro_rig g;
		struct told t;

		up(&g, r);
		memcpy(port.mac, own, 6);
		mini_ok(&r->m, SKUA_CMD_MODIFY_PORT, &port, sizeof(port));
		mem = fake_ptr(&r->f, g.e.tx);
		large(mem, v6, len);
		assert_int_equal(send(&g.e, hdr + len, SKUA_WQE_F_LSO | SKUA_WQE_F_L3_CSUM |
				      SKUA_WQE_F_L4_CSUM,
				      u32_encode_bits(mss, SKUA_WQE_ETH_MSS)), SKUA_CQE_OK);
		assert_true(next(&g, &t));
		assert_int_equal(t.m.segs, n);
		assert_int_equal(t.m.size, mss);
		assert_int_equal(t.m.len, hdr + len);
		check_whole(&g, &t);
		/* But for TCP's checksum it is what was handed over to be cut. */
		memcpy(mem + l4_of(mem) + 16, slot(&g, t.first) + l4_of(mem) + 16, 2);
		assert_memory_equal(slot(&g, t.first), mem, hdr + mss);
		for (uint32_t i = 1; i < n; i++)
			assert_memory_equal(slot(&g, t.first + i), mem + hdr + i * mss,
					    i == n - 1 ? mss - 7 : mss);
		assert_false(next(&g, &t));
	}
}

/* --- asked for where it cannot be --- */

static void refused(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_create_qp_in in;
	struct gro_rig g;

	in = queue_in(&g, r, 0, 5);
	le32p_replace_bits(&in.sq.flags, SKUA_QP_RC, SKUA_QP_TYPE);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), BAD_PARAM);
	in = queue_in(&g, r, 0, 5);
	r->f.dev->caps &= ~SKUA_CAP_GRO;
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), BAD_PARAM);
	r->f.dev->caps |= SKUA_CAP_GRO;
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &in, sizeof(in), NULL, 0), OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(no_wqe),
		rig_test(short_wqe),
		rig_test(no_memory),
		rig_test(no_headers),
		rig_test(no_ring),
		rig_test(command),
		rig_test(counters),
		rig_test(reset),
		rig_test(bus_master),
		rig_test(two_queues),
		rig_test(faults),
		rig_test(loop),
		rig_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
