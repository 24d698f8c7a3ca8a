// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: the objects and their commands. */
#include <errno.h>

#include "core_test.h"

static struct skua_srqc make(struct rig *r, uint32_t srqn)
{
	return (struct skua_srqc){
		.flags = le32_encode_bits(4, SKUA_SRQC_LOG_SIZE) |
			 le32_encode_bits(2, SKUA_SRQC_LOG_STRIDE),
		.pd = cpu_to_le32(MINI_PD),
		.srqn = cpu_to_le32(srqn),
		.limit = cpu_to_le32(3),
		.ring.base = cpu_to_le64(fake_alloc(&r->f, 64 << 4, 4096)),
		.dbr = cpu_to_le64(fake_alloc(&r->f, 16, 16)),
	};
}

static int create(struct rig *r, const struct skua_srqc *srqc)
{
	return mini_cmd(&r->m, SKUA_CMD_CREATE_SRQ, srqc, sizeof(*srqc), NULL, 0);
}

static void capability(void **state)
{
	struct rig *r = *state;
	struct skua_srqc srqc = make(r, 3);

	if (!(r->m.caps & SKUA_CAP_SRQ))
		assert_status(create(r, &srqc), BAD_OPCODE);
	r->f.dev->caps |= SKUA_CAP_SRQ;
	assert_status(create(r, &srqc), OK);
}

static void create_checks(void **state)
{
	struct rig *r = *state;
	const struct skua_srqc good = make(r, 3);
	struct skua_srqc in;

	r->f.dev->caps |= SKUA_CAP_SRQ;
#define refuse(status, change) do { in = good; change; assert_status(create(r, &in), status); } while (0)
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_SRQC_VALID));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_SRQC_ERROR));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(1u << 31));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, MODEL_LOG_RQ_MAX + 1, SKUA_SRQC_LOG_SIZE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, 0, SKUA_SRQC_LOG_STRIDE));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, 15, SKUA_SRQC_LOG_STRIDE));
	refuse(BAD_PARAM, in.limit = cpu_to_le32(17));
	refuse(BAD_PARAM, in.dbr = cpu_to_le64(8));
	refuse(BAD_PARAM, in.ring.base = cpu_to_le64(8));
	/* XRC's: there is no such CQ. */
	refuse(BAD_INDEX, in.xrcd = cpu_to_le32(1));
	refuse(BAD_PARAM, in.cqn = cpu_to_le32(1));
	refuse(BAD_PARAM, in.pi = cpu_to_le32(1));
	refuse(BAD_PARAM, in.ci = cpu_to_le32(1));
	refuse(BAD_PARAM, in.head = cpu_to_le32(1));
	refuse(BAD_PARAM, in.pending = cpu_to_le32(1));
	refuse(BAD_PARAM, in.reserved[13] = cpu_to_le32(1));
	refuse(BAD_PARAM, in.life = cpu_to_le32(1));
	refuse(BAD_PARAM, in.early = cpu_to_le32(1));
	refuse(BAD_INDEX, in.srqn = cpu_to_le32(1u << MINI_LOG_QP));
	refuse(BAD_INDEX, in.srqn = cpu_to_le32(0xffffffff));
	refuse(NO_ICM, in.srqn = cpu_to_le32(MINI_MAPPED));
	refuse(OK, );
	refuse(EXISTS, );
#undef refuse
}

/* A ring that leads nowhere: one error, and nothing more is taken, mended or not. */
static void error(void **state)
{
	struct rig *r = *state;
	struct skua_srqc in = make(r, 3), *srqc;
	struct skua_srq_dbr *dbr = fake_ptr(&r->f, le64_to_cpu(in.dbr));
	struct skua_wqe_next *first = fake_ptr(&r->f, le64_to_cpu(in.ring.base));
	struct skua_eqe eqe;
	uint32_t pos;

	r->f.dev->caps |= SKUA_CAP_SRQ;
	in.limit = 0;
	assert_status(create(r, &in), OK);
	srqc = ctx_get(r->f.dev, SKUA_ICM_SRQC, 3);
	assert_int_equal(srq_take(r->f.dev, srqc, &pos), -EAGAIN);
	dbr->pi = cpu_to_le32(2);
	first->next = cpu_to_le32(16);
	assert_int_equal(srq_take(r->f.dev, srqc, &pos), -EIO);
	first->next = cpu_to_le32(1);
	assert_int_equal(srq_take(r->f.dev, srqc, &pos), -EIO);
	ctx_put(r->f.dev, srqc);
	assert_true(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_SRQ_ERR);
	assert_false(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
}

static void life(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_srq_in mod = { .srqn = cpu_to_le32(3) };
	struct skua_cmd_create_qp_in qp_in;
	struct skua_srqc in = make(r, 3), out;
	struct mini_cq cq;
	struct mini_qp qp;

	r->f.dev->caps |= SKUA_CAP_SRQ;
	assert_status(create(r, &in), OK);
	mod.limit = cpu_to_le32(17);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_SRQ, &mod, sizeof(mod), NULL, 0), BAD_PARAM);
	mod.limit = cpu_to_le32(16);
	mini_ok(&r->m, SKUA_CMD_MODIFY_SRQ, &mod, sizeof(mod));
	assert_status(mini_index(&r->m, SKUA_CMD_QUERY_SRQ, 3, &out, sizeof(out)), OK);
	/* It is empty: the limit is passed, its event on its way. */
	assert_int_equal(le32_to_cpu(out.limit), 0);
	assert_int_equal(le64_to_cpu(out.ring.base), le64_to_cpu(in.ring.base));

	/* A QP that receives from it keeps it. */
	mini_cq_create(&r->m, &cq, 4);
	qp_in = mini_qp_in(&r->m, &qp, SKUA_QP_RC, &cq, &cq, 2, 0, 0);
	qp_in.sq.flags |= cpu_to_le32(SKUA_QP_F_SRQ);
	memset(&qp_in.rq.ring, 0, sizeof(qp_in.rq.ring));
	qp_in.rq.srqn = cpu_to_le32(4);
	assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_QP, &qp_in, sizeof(qp_in), NULL, 0),
		      BAD_INDEX);
	qp_in.rq.srqn = cpu_to_le32(3);
	mini_ok(&r->m, SKUA_CMD_CREATE_QP, &qp_in, sizeof(qp_in));
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_SRQ, 3, NULL, 0), BUSY);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp.qpn, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_SRQ, 3, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_SRQ, 3, NULL, 0), BAD_INDEX);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_SRQ, &mod, sizeof(mod), NULL, 0), BAD_INDEX);
}

static void events(void **state)
{
	struct rig *r = *state;
	struct skua_srqc in = make(r, 3), *srqc;
	struct skua_eqe eqe;

	r->f.dev->caps |= SKUA_CAP_SRQ;
	assert_status(create(r, &in), OK);
	srqc = ctx_get(r->f.dev, SKUA_ICM_SRQC, 3);
	srq_event(r->f.dev, srqc, SKUA_EQE_SRQ_LIMIT);
	srq_event(r->f.dev, srqc, SKUA_EQE_SRQ_ERR);
	ctx_put(r->f.dev, srqc);
	assert_true(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_SRQ_LIMIT);
	assert_int_equal(le32_to_cpu(eqe.num), 3);
	assert_true(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_SRQ_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(capability),
		rig_test(create_checks),
		rig_test(life),
		rig_test(error),
		rig_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
