// SPDX-License-Identifier: GPL-2.0
/* Event queues: phase, arming, moderation, and that no event is ever lost. */
#include "core_test.h"
#include "icm.h"

static struct skua_eqe expect(struct rig *r, struct mini_eq *eq, enum skua_eqe_type type)
{
	struct skua_eqe eqe;

	assert_true(mini_eq_next(&r->m, eq, &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), type);
	return eqe;
}

static void none(struct rig *r, struct mini_eq *eq)
{
	struct skua_eqe eqe;

	assert_false(mini_eq_next(&r->m, eq, &eqe));
}

static void link(struct rig *r, bool up)
{
	skua_dev_link(r->f.dev, up);
}

static void create_checks(void **state)
{
	struct rig *r = *state;
	struct mini_eq eq;
	const struct skua_eqc good = mini_eqc(&r->m, &eq, 9, 3, 0, 4);
	struct skua_eqc in;

#define refuse(status, change) do {								\
		in = good;									\
		change;										\
		assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_EQ, &in, sizeof(in), NULL, 0),	\
			      status);								\
	} while (0)
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_EQC_VALID));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_EQC_ARMED));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(1u << 13));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, MODEL_LOG_EQ_MAX + 1, SKUA_EQC_LOG_SIZE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, 31, SKUA_EQC_LOG_SIZE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, skua_dev_msix_vectors(r->f.dev),
					     SKUA_EQC_VECTOR));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, 0xffff, SKUA_EQC_VECTOR));
	refuse(BAD_PARAM, in.uar = cpu_to_le32(dev_uars(r->f.dev)));
	refuse(BAD_PARAM, in.uar = cpu_to_le32(0xffffffff));
	refuse(BAD_PARAM, in.base = cpu_to_le64(eq.ring + 32));
	refuse(BAD_PARAM, in.pi = cpu_to_le32(1));
	refuse(BAD_PARAM, in.ci = cpu_to_le32(1));
	refuse(BAD_PARAM, in.pending = cpu_to_le32(1));
	refuse(BAD_PARAM, in.reserved[22] = cpu_to_le32(1));
	refuse(BAD_INDEX, in.eqn = cpu_to_le32(1u << MODEL_LOG_EQ));
	refuse(BAD_INDEX, in.eqn = cpu_to_le32(0xffffffff));
	refuse(EXISTS, in.eqn = cpu_to_le32(MINI_EQ_COMP));
	refuse(OK, in.moderation = cpu_to_le32(0xffffffff));
	refuse(EXISTS, );
#undef refuse
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, 9, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, 9, NULL, 0), BAD_INDEX);
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_EQ, 9, NULL, 128), BAD_INDEX);
}

/* A reader that trusts the phase sees each event once, turn after turn. */
static void phase(void **state)
{
	struct rig *r = *state;
	struct mini_eq *eq = &r->m.eq[MINI_EQ_ASYNC];

	for (unsigned int i = 0; i < 5u << MINI_EQ_LOG; i++) {
		none(r, eq);
		link(r, i & 1);
		expect(r, eq, SKUA_EQE_PORT);
		none(r, eq);
		if (i % 7 == 0)
			mini_eq_db(&r->m, eq, false);
	}
}

static void arming(void **state)
{
	struct rig *r = *state;
	struct mini_eq *eq = &r->m.eq[MINI_EQ_ASYNC];
	unsigned int *irqs = &r->f.msix[MINI_EQ_ASYNC];
	unsigned int n = *irqs;

	link(r, false);
	assert_int_equal(*irqs, n + 1);
	/* Once per arm. */
	link(r, true);
	link(r, false);
	assert_int_equal(*irqs, n + 1);
	expect(r, eq, SKUA_EQE_PORT);
	mini_eq_db(&r->m, eq, false);
	assert_int_equal(*irqs, n + 1);
	/* Two more are there already: at once. */
	mini_eq_db(&r->m, eq, true);
	assert_int_equal(*irqs, n + 2);
	expect(r, eq, SKUA_EQE_PORT);
	expect(r, eq, SKUA_EQE_PORT);
	mini_eq_db(&r->m, eq, true);
	assert_int_equal(*irqs, n + 2);
	link(r, true);
	assert_int_equal(*irqs, n + 3);
}

static void doorbell_checks(void **state)
{
	struct rig *r = *state;
	struct mini_eq *eq = &r->m.eq[MINI_EQ_ASYNC];
	unsigned int n = r->f.msix[MINI_EQ_ASYNC];

	link(r, false);
	link(r, true);
	n++;
	assert_counts(&r->m, BAD_DB_INDEX, 1, fake_db(&r->f, 0, SKUA_UAR_EQ, eq->ci - 1,
						      MINI_EQ_ASYNC | SKUA_UAR_EQ_ARM));
	assert_counts(&r->m, BAD_DB_INDEX, 1, fake_db(&r->f, 0, SKUA_UAR_EQ, eq->ci + 3,
						      MINI_EQ_ASYNC | SKUA_UAR_EQ_ARM));
	assert_counts(&r->m, BAD_DB_UAR, 1, fake_db(&r->f, 1, SKUA_UAR_EQ, eq->ci + 2,
						    MINI_EQ_ASYNC | SKUA_UAR_EQ_ARM));
	assert_counts(&r->m, BAD_DB_QP, 1, fake_db(&r->f, 0, SKUA_UAR_EQ, 0, 77));
	assert_counts(&r->m, BAD_DB_QP, 1, fake_db(&r->f, 0, SKUA_UAR_EQ, 0, 0xffffff));
	for (unsigned int bit = 24; bit < 31; bit++)
		assert_counts(&r->m, BAD_DB, 1, fake_db(&r->f, 0, SKUA_UAR_EQ, eq->ci + 2,
							MINI_EQ_ASYNC | 1u << bit));
	assert_int_equal(r->f.msix[MINI_EQ_ASYNC], n);
	fake_db(&r->f, 0, SKUA_UAR_EQ, eq->ci + 2, MINI_EQ_ASYNC);
	fake_db(&r->f, 0, SKUA_UAR_EQ, eq->ci + 2, MINI_EQ_ASYNC | SKUA_UAR_EQ_ARM);
	assert_int_equal(r->f.msix[MINI_EQ_ASYNC], n);
}

/* Give the device another, tiny EQ for its asynchronous events. */
static void async_to(struct rig *r, uint32_t eqn)
{
	struct skua_cmd_modify_device_in mod = {
		.mask = cpu_to_le32(SKUA_DEV_M_ASYNC_EQ),
		.async_eqn = cpu_to_le32(eqn),
	};

	mini_ok(&r->m, SKUA_CMD_MODIFY_DEVICE, &mod, sizeof(mod));
}

static void async_full(void **state)
{
	struct rig *r = *state;
	struct mini_eq eq;
	struct mini_cq cq;
	struct mini_qp qp[6];
	struct skua_eqe eqe;
	unsigned int got[6][SKUA_QP_EV_COUNT] = { 0 };

	mini_cq_create(&r->m, &cq, 4);
	assert_status(mini_eq_create(&r->m, &eq, 5, 1, 0, 3), OK);
	async_to(r, 5);
	for (unsigned int i = 0; i < 6; i++)
		mini_qp_create(&r->m, &qp[i], SKUA_QP_RC, &cq, &cq, 2, 2, 0);
	/* Events of one kind of one object coalesce, all others are kept. */
	for (unsigned int turn = 0; turn < 3; turn++) {
		for (unsigned int i = 0; i < 6; i++) {
			struct qp q;

			assert_int_equal(qp_get(r->f.dev, qp[i].qpn, &q), 0);
			qp_event(r->f.dev, q.sqc, SKUA_QP_EV_COMM_EST);
			qp_event(r->f.dev, q.sqc, SKUA_QP_EV_FATAL);
			qp_put(r->f.dev, &q);
		}
	}
	/* The sixth goes while it waits. */
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp[5].qpn, NULL, 0), OK);
	assert_true(mini_counter(&r->m, SKUA_CNT_EQ_FULL) > 0);
	while (mini_eq_next(&r->m, &eq, &eqe)) {
		uint32_t ev = le32_get_bits(eqe.what, SKUA_EQE_SUBTYPE);
		bool known = false;

		assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_QP);
		for (unsigned int i = 0; i < 6; i++) {
			if (le32_to_cpu(eqe.num) == qp[i].qpn) {
				got[i][ev]++;
				known = true;
			}
		}
		assert_true(known);
		mini_eq_db(&r->m, &eq, false);
	}
	/* The first two went at once, and once more when they came again. */
	assert_int_equal(got[0][SKUA_QP_EV_COMM_EST], 2);
	assert_int_equal(got[0][SKUA_QP_EV_FATAL], 2);
	for (unsigned int i = 1; i < 5; i++) {
		assert_int_equal(got[i][SKUA_QP_EV_COMM_EST], 1);
		assert_int_equal(got[i][SKUA_QP_EV_FATAL], 1);
	}
	assert_int_equal(got[5][SKUA_QP_EV_FATAL], 0);
}

static void async_without_eq(void **state)
{
	struct rig *r = *state;
	struct mini_eq *eq = &r->m.eq[MINI_EQ_ASYNC];
	struct mini_cq cq;
	struct mini_qp qp;
	struct qp q;

	mini_cq_create(&r->m, &cq, 4);
	mini_qp_create(&r->m, &qp, SKUA_QP_RC, &cq, &cq, 2, 2, 0);
	async_to(r, SKUA_NO_EQ);
	link(r, false);
	link(r, true);
	qp_get(r->f.dev, qp.qpn, &q);
	qp_event(r->f.dev, q.sqc, SKUA_QP_EV_REQ_ERR);
	qp_put(r->f.dev, &q);
	none(r, eq);
	async_to(r, MINI_EQ_ASYNC);
	expect(r, eq, SKUA_EQE_PORT);
	assert_int_equal(le32_to_cpu(expect(r, eq, SKUA_EQE_QP).num), qp.qpn);
	none(r, eq);
}

/* @num CQs fire into EQ 6, which has two entries. */
static void comp_fill(struct rig *r, struct mini_eq *eq, struct mini_cq *cq, unsigned int num)
{
	assert_status(mini_eq_create(&r->m, eq, 6, 1, 0, 3), OK);
	for (unsigned int i = 0; i < num; i++) {
		struct skua_cqc cqc = mini_cqc(&r->m, &cq[i], 2, 64);
		struct skua_cqe cqe = { 0 };

		cqc.eqn = cpu_to_le32(6);
		mini_ok(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
		mini_cq_arm(&r->m, &cq[i], false);
		assert_int_equal(cq_post(r->f.dev, cq[i].cqn, &cqe, false), 0);
	}
}

/* Many CQs fire into an EQ of two entries: each is heard of once, in order. */
static void comp_full(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq[20];
	struct mini_eq eq;
	struct skua_eqe eqe;
	unsigned int n = 0;

	comp_fill(r, &eq, cq, 20);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, 6, NULL, 0), BUSY);
	/* One goes while it waits, another is armed anew. */
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, cq[10].cqn, NULL, 0), OK);
	cq[15].serial = 2;
	mini_cq_arm(&r->m, &cq[15], false);
	while (mini_eq_next(&r->m, &eq, &eqe)) {
		if (n == 10)
			n++;
		assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_COMP);
		assert_int_equal(le32_to_cpu(eqe.num), cq[n].cqn);
		assert_int_equal(le32_to_cpu(eqe.info[0]), n == 15 ? 2 : 0);
		n++;
		mini_eq_db(&r->m, &eq, true);
	}
	assert_int_equal(n, 20);
}

/* The context of a CQ that waits comes back from ICM with another EQ: it leaves its own list. */
static void comp_moved(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq[3];
	struct mini_eq eq;
	struct skua_eqe eqe;
	struct skua_cqc *ctx;

	comp_fill(r, &eq, cq, 3);
	cache_evict_range(r->f.dev, 0, UINT64_MAX);
	ctx = (void *)mini_icm(&r->m, SKUA_ICM_CQC, cq[2].cqn);
	assert_true(le32_to_cpu(ctx->pending) & SKUA_CQC_PENDING_COMP);
	ctx->eqn = cpu_to_le32(MINI_EQ_COMP);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, cq[2].cqn, NULL, 0), OK);
	/* The memory is software's again. */
	cache_evict_range(r->f.dev, 0, UINT64_MAX);
	ctx->eqn = cpu_to_le32(MINI_EQ_COMP);
	ctx->cqn = cpu_to_le32(0xffffff);
	ctx->held = cpu_to_le32(1);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(mini_eq_next(&r->m, &eq, &eqe));
		assert_int_equal(le32_to_cpu(eqe.num), cq[i].cqn);
		mini_eq_db(&r->m, &eq, true);
	}
	assert_false(mini_eq_next(&r->m, &eq, &eqe));
	assert_false(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_COMP], &eqe));
}

static void moderation(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_mod_in mod = {
		.index = cpu_to_le32(MINI_EQ_ASYNC),
		.moderation = le32_encode_bits(100, SKUA_MOD_USEC) |
			      le32_encode_bits(3, SKUA_MOD_COUNT),
	};
	struct mini_eq *eq = &r->m.eq[MINI_EQ_ASYNC];
	unsigned int *irqs = &r->f.msix[MINI_EQ_ASYNC];
	unsigned int n = *irqs;

	mini_ok(&r->m, SKUA_CMD_MODIFY_EQ, &mod, sizeof(mod));
	link(r, false);
	link(r, true);
	assert_int_equal(*irqs, n);
	link(r, false);
	assert_int_equal(*irqs, n + 1);
	for (unsigned int i = 0; i < 3; i++)
		expect(r, eq, SKUA_EQE_PORT);
	mini_eq_db(&r->m, eq, true);
	link(r, true);
	fake_advance(&r->f, 99000);
	assert_int_equal(*irqs, n + 1);
	fake_advance(&r->f, 1000);
	assert_int_equal(*irqs, n + 2);
	expect(r, eq, SKUA_EQE_PORT);
	mini_eq_db(&r->m, eq, true);
	fake_advance(&r->f, 1000000);
	assert_int_equal(*irqs, n + 2);
	/* Moderation ends while it holds one back. */
	link(r, false);
	assert_int_equal(*irqs, n + 2);
	mod.moderation = 0;
	mini_ok(&r->m, SKUA_CMD_MODIFY_EQ, &mod, sizeof(mod));
	assert_int_equal(*irqs, n + 3);
	mod.index = cpu_to_le32(99);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_EQ, &mod, sizeof(mod), NULL, 0), BAD_INDEX);
}

static void write_fault(void **state)
{
	struct rig *r = *state;
	struct mini_eq *eq = &r->m.eq[MINI_EQ_ASYNC];

	fake_hole(&r->f, eq->ring, sizeof(struct skua_eqe) << MINI_EQ_LOG);
	link(r, false);
	assert_int_equal(r->f.dev->fatal, SKUA_FATAL_EQ_DMA);
	assert_int_equal(u32_get_bits(fake_rd32(&r->f, SKUA_REG_STATUS), SKUA_STATUS_CODE),
			 SKUA_FATAL_EQ_DMA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(create_checks),
		rig_test(phase),
		rig_test(arming),
		rig_test(doorbell_checks),
		rig_test(async_full),
		rig_test(async_without_eq),
		rig_test(comp_full),
		rig_test(comp_moved),
		rig_test(moderation),
		rig_test(write_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
