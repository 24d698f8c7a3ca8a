// SPDX-License-Identifier: GPL-2.0
/* Completion queues: phase, room, overrun, arming. */
#include "core_test.h"

static int post(struct rig *r, struct mini_cq *cq, uint32_t num, bool solicited)
{
	struct skua_cqe cqe = { .qpn = cpu_to_le32(num) };

	return cq_post(r->f.dev, cq->cqn, &cqe, solicited);
}

static void post_error(struct rig *r, struct mini_cq *cq)
{
	struct skua_cqe cqe = {
		.what = le32_encode_bits(SKUA_CQE_WR_FLUSH_ERR, SKUA_CQE_STATUS),
	};

	assert_int_equal(cq_post(r->f.dev, cq->cqn, &cqe, false), 0);
}

static void none(struct rig *r)
{
	struct skua_eqe eqe;

	assert_false(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_COMP], &eqe));
}

static void fired(struct rig *r, struct mini_cq *cq, uint32_t serial)
{
	struct skua_eqe eqe;

	assert_true(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_COMP], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_COMP);
	assert_int_equal(le32_to_cpu(eqe.num), cq->cqn);
	assert_int_equal(le32_to_cpu(eqe.info[0]), serial);
	mini_eq_db(&r->m, &r->m.eq[MINI_EQ_COMP], true);
	none(r);
}

static void create_checks(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	const struct skua_cqc good = mini_cqc(&r->m, &cq, 4, 64);
	struct skua_cqc in;

#define refuse(status, change) do {								\
		in = good;									\
		change;										\
		assert_status(mini_cmd(&r->m, SKUA_CMD_CREATE_CQ, &in, sizeof(in), NULL, 0),	\
			      status);								\
	} while (0)
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_CQC_VALID));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_CQC_ERROR));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(1u << 31));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, MODEL_LOG_CQ_MAX + 1, SKUA_CQC_LOG_SIZE));
	refuse(BAD_PARAM, in.uar = cpu_to_le32(dev_uars(r->f.dev)));
	refuse(BAD_PARAM, in.dbr = cpu_to_le64(cq.dbr + 8));
	refuse(BAD_PARAM, in.ring.base = cpu_to_le64(cq.ring + 4));
	refuse(BAD_PARAM, in.ring.offset = cpu_to_le32(32));
	refuse(BAD_PARAM, in.ring.base = cpu_to_le64(0xffffffffffffffc0ull));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(SKUA_XLAT_INLINE));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(3));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(1u << 20));
	/* A page list: page size, and place in the table. */
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(SKUA_XLAT_MTT | 11 << 8));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(SKUA_XLAT_MTT | 32 << 8));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(SKUA_XLAT_MTT | 12 << 8));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(SKUA_XLAT_MTT | 12 << 8);
	       in.ring.base = 0; in.ring.offset = cpu_to_le32(4096));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(SKUA_XLAT_MTT | 12 << 8);
	       in.ring.base = cpu_to_le64(1u << MINI_LOG_MTT));
	refuse(BAD_PARAM, in.ring.mode = cpu_to_le32(SKUA_XLAT_MTT | 12 << 8);
	       in.ring.base = cpu_to_le64((1u << MINI_LOG_MTT) - 1);
	       in.ring.offset = cpu_to_le32(4096 - 512));
	refuse(BAD_PARAM, in.pi = cpu_to_le32(1));
	refuse(BAD_PARAM, in.ci = cpu_to_le32(1));
	refuse(BAD_PARAM, in.arm_ci = cpu_to_le32(1));
	refuse(BAD_PARAM, in.arm = cpu_to_le32(1));
	refuse(BAD_PARAM, in.pending = cpu_to_le32(1));
	refuse(BAD_PARAM, in.solicited = cpu_to_le32(1));
	refuse(BAD_PARAM, in.held = cpu_to_le32(1));
	refuse(BAD_PARAM, in.told = cpu_to_le32(1));
	refuse(BAD_PARAM, in.reserved[0] = cpu_to_le32(1));
	refuse(BAD_PARAM, in.reserved[12] = cpu_to_le32(1));
	refuse(BAD_INDEX, in.eqn = cpu_to_le32(20));
	refuse(BAD_INDEX, in.eqn = cpu_to_le32(SKUA_NO_EQ));
	refuse(OK, );
	refuse(EXISTS, );
#undef refuse
}

static void phase(void **state)
{
	struct rig *r = *state;

	for (uint32_t size = 64; size <= 128; size += 64) {
		struct mini_cq cq;
		struct skua_cqc cqc = mini_cqc(&r->m, &cq, 3, size);
		struct skua_cqe cqe;
		uint32_t sent = 0, taken = 0;

		mini_ok(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
		for (unsigned int i = 0; i < 200; i++) {
			for (unsigned int n = i % 9; n; n--) {
				r->f.now += 5;
				assert_int_equal(post(r, &cq, sent++, false), 0);
			}
			while (mini_cq_next(&r->m, &cq, &cqe)) {
				assert_int_equal(le32_to_cpu(cqe.qpn), taken++);
				assert_true(le64_to_cpu(cqe.timestamp) <= r->f.now);
			}
			assert_int_equal(taken, sent);
		}
	}
}

/* A ring of scattered pages, with an offset in the first. */
static void paged_ring(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqc cqc = mini_cqc(&r->m, &cq, 7, 64);
	uint64_t page[3];
	struct skua_cqe cqe;

	for (unsigned int i = 0; i < 3; i++) {
		page[i] = fake_alloc(&r->f, 4096, 4096);
		fake_alloc(&r->f, 4096, 4096);
		*(__le64 *)mini_icm(&r->m, SKUA_ICM_MTT, 8 + i) =
			cpu_to_le64(page[i] | SKUA_MTT_PRESENT | SKUA_MTT_WRITE);
	}
	cqc.ring.base = cpu_to_le64(8);
	cqc.ring.offset = cpu_to_le32(256);
	cqc.ring.mode = cpu_to_le32(SKUA_XLAT_MTT | 12 << 8);
	mini_ok(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
	for (uint32_t i = 0; i < 400; i++) {
		uint64_t pos = 256 + i % 128 * 64;

		assert_int_equal(post(r, &cq, i, false), 0);
		memcpy(&cqe, fake_ptr(&r->f, page[pos / 4096] + pos % 4096), sizeof(cqe));
		assert_int_equal(le32_to_cpu(cqe.qpn), i);
		((struct skua_cq_dbr *)fake_ptr(&r->f, cq.dbr))->ci = cpu_to_le32(i + 1);
	}
	/* A page of which the list says that it is read only. */
	((__le64 *)mini_icm(&r->m, SKUA_ICM_MTT, 0))[9] = cpu_to_le64(page[1] | SKUA_MTT_PRESENT);
	struct skua_cmd_sync_mtt_in sync = { .index = cpu_to_le64(8), .count = cpu_to_le32(8) };

	mini_ok(&r->m, SKUA_CMD_SYNC_MTT, &sync, sizeof(sync));
	for (uint32_t i = 400; i < 528; i++) {
		if (post(r, &cq, i, false))
			break;
	}
	mini_index(&r->m, SKUA_CMD_QUERY_CQ, cq.cqn, &cqc, sizeof(cqc));
	assert_true(le32_to_cpu(cqc.flags) & SKUA_CQC_ERROR);
}

static void async_err(struct rig *r, struct mini_cq *cq, enum skua_cq_err err)
{
	struct skua_eqe eqe;

	assert_true(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_TYPE), SKUA_EQE_CQ_ERR);
	assert_int_equal(le32_get_bits(eqe.what, SKUA_EQE_SUBTYPE), err);
	assert_int_equal(le32_to_cpu(eqe.num), cq->cqn);
	assert_false(mini_eq_next(&r->m, &r->m.eq[MINI_EQ_ASYNC], &eqe));
}

static void overrun(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqe cqe;

	mini_cq_create(&r->m, &cq, 2);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(post(r, &cq, i, false), 0);
	/* Software took one: there is room for one. */
	assert_true(mini_cq_next(&r->m, &cq, &cqe));
	assert_int_equal(post(r, &cq, 4, false), 0);
	assert_counts(&r->m, CQ_OVERRUN, 1, assert_int_equal(post(r, &cq, 5, false), -1));
	async_err(r, &cq, SKUA_CQ_ERR_OVERRUN);
	/* It takes no more, also when there would be room, and tells it once. */
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	assert_int_equal(cq.ci, 5);
	assert_int_equal(post(r, &cq, 6, false), -1);
	assert_false(mini_cq_next(&r->m, &cq, &cqe));
	assert_int_equal(post(r, &(struct mini_cq){ .cqn = 200 }, 0, false), -1);
}

/* A record that claims what cannot be is no room. */
static void hostile_record(void **state)
{
	static const uint32_t claims[] = { 0, 5, 6, 0x80000000, 0xffffffff };
	struct rig *r = *state;

	for (unsigned int i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		struct skua_cq_dbr *dbr;
		struct mini_cq cq;

		mini_cq_create(&r->m, &cq, 2);
		dbr = fake_ptr(&r->f, cq.dbr);
		for (uint32_t n = 0; n < 4; n++)
			assert_int_equal(post(r, &cq, n, false), 0);
		dbr->ci = cpu_to_le32(claims[i]);
		assert_int_equal(post(r, &cq, 4, false), -1);
		async_err(r, &cq, SKUA_CQ_ERR_OVERRUN);
		mini_eq_db(&r->m, &r->m.eq[MINI_EQ_ASYNC], true);
	}
}

static void ignore_overrun(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqc cqc = mini_cqc(&r->m, &cq, 2, 64);
	uint64_t reads;

	cqc.flags |= cpu_to_le32(SKUA_CQC_IGNORE_OVERRUN);
	mini_ok(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
	reads = r->f.reads;
	for (uint32_t n = 0; n < 40; n++)
		assert_int_equal(post(r, &cq, n, false), 0);
	assert_int_equal(r->f.reads, reads);
	/* Whoever fell behind by more than a ring is told of what there is all the same. */
	none(r);
	mini_cq_arm(&r->m, &cq, false);
	fired(r, &cq, 0);
}

static void ring_fault(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;

	mini_cq_create(&r->m, &cq, 4);
	fake_hole(&r->f, cq.ring + 128, 64);
	assert_int_equal(post(r, &cq, 0, false), 0);
	assert_int_equal(post(r, &cq, 1, false), 0);
	assert_int_equal(post(r, &cq, 2, false), -1);
	async_err(r, &cq, SKUA_CQ_ERR_DMA);
	assert_int_equal(r->f.dev->state, DEV_OPERATIONAL);
}

/* --- arming --- */

static void arm_any(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqe cqe;

	mini_cq_create(&r->m, &cq, 4);
	post(r, &cq, 0, false);
	none(r);
	/* One is there already. */
	mini_cq_arm(&r->m, &cq, false);
	fired(r, &cq, 0);
	post(r, &cq, 1, false);
	none(r);
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	mini_cq_arm(&r->m, &cq, false);
	none(r);
	post(r, &cq, 2, false);
	fired(r, &cq, 1);
	post(r, &cq, 3, false);
	none(r);
	/* The later of two arms counts. */
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	mini_cq_arm(&r->m, &cq, false);
	mini_cq_arm(&r->m, &cq, false);
	none(r);
	post(r, &cq, 4, false);
	fired(r, &cq, 3);
}

static void arm_solicited(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;
	struct skua_cqe cqe;

	mini_cq_create(&r->m, &cq, 4);
	mini_cq_arm(&r->m, &cq, true);
	post(r, &cq, 0, false);
	none(r);
	post(r, &cq, 1, true);
	fired(r, &cq, 0);
	/* The solicited one is taken, a plain one is left: not what is asked for. */
	mini_cq_next(&r->m, &cq, &cqe);
	mini_cq_next(&r->m, &cq, &cqe);
	post(r, &cq, 2, false);
	mini_cq_arm(&r->m, &cq, true);
	none(r);
	/* Errors always are. */
	post_error(r, &cq);
	fired(r, &cq, 1);
	/* It is still there, but has been told of; another one has not: at once. */
	mini_cq_arm(&r->m, &cq, true);
	none(r);
	mini_cq_arm(&r->m, &cq, false);
	none(r);
	post_error(r, &cq);
	fired(r, &cq, 3);
	post_error(r, &cq);
	none(r);
	mini_cq_arm(&r->m, &cq, true);
	fired(r, &cq, 0);
	/* An arm for any replaces one for solicited ones. */
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	mini_cq_arm(&r->m, &cq, true);
	mini_cq_arm(&r->m, &cq, false);
	post(r, &cq, 3, false);
	fired(r, &cq, 2);
	/* Not the other way round. */
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	mini_cq_arm(&r->m, &cq, false);
	mini_cq_arm(&r->m, &cq, true);
	post(r, &cq, 4, false);
	fired(r, &cq, 0);
	/* It was answered. */
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	mini_cq_arm(&r->m, &cq, true);
	post(r, &cq, 5, false);
	none(r);
}

static void arm_checks(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;

	mini_cq_create(&r->m, &cq, 2);
	for (uint32_t i = 0; i < 3; i++)
		post(r, &cq, i, false);
	assert_counts(&r->m, BAD_DB_INDEX, 1, fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 4, cq.cqn));
	assert_counts(&r->m, BAD_DB_INDEX, 1,
		      fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 0x80000003, cq.cqn));
	assert_counts(&r->m, BAD_DB_UAR, 1, fake_db(&r->f, 0, SKUA_UAR_CQ_ARM, 3, cq.cqn));
	assert_counts(&r->m, BAD_DB_QP, 1, fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 3, 0xffffff));
	for (unsigned int bit = 27; bit < 32; bit++)
		assert_counts(&r->m, BAD_DB, 1, fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 3,
							cq.cqn | 1u << bit));
	none(r);
	assert_counts(&r->m, CQ_DB, 1, fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 3, cq.cqn));
	none(r);
	assert_counts(&r->m, CQ_DB, 1, fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 2, cq.cqn));
	fired(r, &cq, 0);
	/* One that was overtaken by a whole turn of the ring, and more, is late, not wrong. */
	post(r, &cq, 3, false);
	assert_counts(&r->m, CQ_DB, 1,
		      fake_db(&r->f, MINI_UAR, SKUA_UAR_CQ_ARM, 0xfffffffe, cq.cqn));
	fired(r, &cq, 0);
}

static void moderation(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_modify_mod_in mod = {
		.moderation = le32_encode_bits(50, SKUA_MOD_USEC) |
			      le32_encode_bits(4, SKUA_MOD_COUNT),
	};
	struct mini_cq cq;
	struct skua_cqe cqe;

	mini_cq_create(&r->m, &cq, 6);
	mod.index = cpu_to_le32(cq.cqn);
	mini_ok(&r->m, SKUA_CMD_MODIFY_CQ, &mod, sizeof(mod));
	mini_cq_arm(&r->m, &cq, false);
	for (uint32_t i = 0; i < 3; i++) {
		post(r, &cq, i, false);
		none(r);
	}
	post(r, &cq, 3, false);
	fired(r, &cq, 0);
	/* By time. */
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	mini_cq_arm(&r->m, &cq, false);
	fake_advance(&r->f, 1000000);
	post(r, &cq, 4, false);
	timer_sync(r->f.dev);
	fake_advance(&r->f, 49000);
	none(r);
	fake_advance(&r->f, 1000);
	fired(r, &cq, 1);
	/* An arm that finds one there is not held back. */
	post(r, &cq, 5, false);
	mini_cq_arm(&r->m, &cq, false);
	fired(r, &cq, 2);
	/* The CQ goes while its timer runs. */
	while (mini_cq_next(&r->m, &cq, &cqe))
		;
	mini_cq_arm(&r->m, &cq, false);
	post(r, &cq, 5, false);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, cq.cqn, NULL, 0), OK);
	fake_advance(&r->f, 1000000);
	none(r);
	assert_status(mini_cmd(&r->m, SKUA_CMD_MODIFY_CQ, &mod, sizeof(mod), NULL, 0), BAD_INDEX);
}

static void in_use_c11_17(void **state)
{
	struct rig *r = *state;
	struct mini_cq scq, rcq;
	struct mini_qp qp;

	mini_cq_create(&r->m, &scq, 2);
	mini_cq_create(&r->m, &rcq, 2);
	mini_qp_create(&r->m, &qp, SKUA_QP_RC, &scq, &rcq, 2, 2, 0);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, scq.cqn, NULL, 0), BUSY);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, rcq.cqn, NULL, 0), BUSY);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_QP, qp.qpn, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, scq.cqn, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, rcq.cqn, NULL, 0), OK);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_CQ, rcq.cqn, NULL, 0), BAD_INDEX);
	assert_status(mini_index(&r->m, SKUA_CMD_DESTROY_EQ, MINI_EQ_COMP, NULL, 0), OK);
}

/* --- RESIZE_CQ --- */

/*
 * As software does it: the new ring with no entry that looks new from the consumer
 * index on, the command, then what is not consumed into it. The command's status.
 */
static int resize(struct rig *r, struct mini_cq *cq, uint32_t log)
{
	struct skua_cmd_resize_cq_out out = { 0 };
	struct mini_cq new = *cq;
	struct skua_cqc in = {
		.cqn = cpu_to_le32(cq->cqn),
		.flags = le32_encode_bits(log, SKUA_CQC_LOG_SIZE) |
			 cpu_to_le32(cq->size == 128 ? SKUA_CQC_CQE128 : 0),
	};
	struct skua_cqe *from, *to;
	int err;

	new.log = log;
	new.ring = fake_alloc(&r->f, (size_t)cq->size << log, 4096);
	in.ring.base = cpu_to_le64(new.ring);
	for (uint32_t i = cq->ci; i != cq->ci + (1u << log); i++) {
		to = fake_ptr(&r->f, new.ring + (i & ((1u << log) - 1)) * cq->size +
			      cq->size - sizeof(*to));
		to->own = le32_encode_bits(i >> log & 1, SKUA_CQE_PHASE);
	}
	err = mini_cmd(&r->m, SKUA_CMD_RESIZE_CQ, &in, sizeof(in), &out, sizeof(out));
	if (err)
		return err;
	for (uint32_t i = cq->ci; i != le32_to_cpu(out.pi); i++) {
		from = fake_ptr(&r->f, cq->ring + (i & ((1u << cq->log) - 1)) * cq->size +
				cq->size - sizeof(*to));
		to = fake_ptr(&r->f, new.ring + (i & ((1u << log) - 1)) * cq->size +
			      cq->size - sizeof(*to));
		*to = *from;
		le32p_replace_bits(&to->own, !(i >> log & 1), SKUA_CQE_PHASE);
	}
	memset(fake_ptr(&r->f, cq->ring), 0xee, (size_t)cq->size << cq->log);
	*cq = new;
	return 0;
}

/* No completion is lost and none comes twice, at whatever turn of the ring. */
static void resize_keeps(void **state)
{
	static const uint32_t logs[] = { 4, 6, 3, 3, 7, 2, 5 };
	struct rig *r = *state;
	uint32_t in = 0, out = 0;
	struct skua_cqe cqe;
	struct mini_cq cq;

	for (int wide = 0; wide < 2; wide++) {
		struct skua_cqc cqc = mini_cqc(&r->m, &cq, 2, wide ? 128 : 64);

		mini_ok(&r->m, SKUA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
		in = out = 0;
		for (uint32_t turn = 0; turn < 200; turn++) {
			uint32_t want = turn * 7 % 4;

			while (in - out < want)
				assert_int_equal(post(r, &cq, in++, false), 0);
			assert_status(resize(r, &cq, logs[turn % 7]), OK);
			while (in - out < (1u << cq.log) && in % 3)
				assert_int_equal(post(r, &cq, in++, false), 0);
			while (in - out > turn % 4) {
				assert_true(mini_cq_next(&r->m, &cq, &cqe));
				assert_int_equal(le32_to_cpu(cqe.qpn), out++);
			}
		}
		while (in != out) {
			assert_true(mini_cq_next(&r->m, &cq, &cqe));
			assert_int_equal(le32_to_cpu(cqe.qpn), out++);
		}
		assert_false(mini_cq_next(&r->m, &cq, &cqe));
	}
}

static void resize_checks(void **state)
{
	struct rig *r = *state;
	struct skua_cmd_resize_cq_out out;
	struct skua_cqe cqe;
	struct skua_cqc good, in;
	struct mini_cq cq;

	mini_cq_create(&r->m, &cq, 4);
	good = (struct skua_cqc){
		.cqn = cpu_to_le32(cq.cqn),
		.flags = le32_encode_bits(2, SKUA_CQC_LOG_SIZE),
		.ring.base = cpu_to_le64(fake_alloc(&r->f, 4096, 4096)),
	};
#define refuse(status, change) do { in = good; change; assert_status(mini_cmd(&r->m,		\
		SKUA_CMD_RESIZE_CQ, &in, sizeof(in), &out, sizeof(out)), status); } while (0)
	refuse(BAD_INDEX, in.cqn = cpu_to_le32(cq.cqn + 1));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_CQC_CQE128));
	refuse(BAD_PARAM, in.flags |= cpu_to_le32(SKUA_CQC_IGNORE_OVERRUN));
	refuse(BAD_PARAM, le32p_replace_bits(&in.flags, MODEL_LOG_CQ_MAX + 1, SKUA_CQC_LOG_SIZE));
	refuse(BAD_PARAM, in.uar = cpu_to_le32(1));
	refuse(BAD_PARAM, in.eqn = cpu_to_le32(1));
	refuse(BAD_PARAM, in.dbr = cpu_to_le64(cq.dbr));
	refuse(BAD_PARAM, in.ring.base = cpu_to_le64(4));
	/* Fewer than are in it. */
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(post(r, &cq, i, false), 0);
	refuse(BAD_PARAM, );
	assert_true(mini_cq_next(&r->m, &cq, &cqe));
	refuse(OK, );
	assert_int_equal(le32_to_cpu(out.pi), 5);
	cq.log = 2;
	cq.ring = le64_to_cpu(good.ring.base);
	assert_int_equal(post(r, &cq, 5, false), -1);
	/* Overrun: in error. */
	refuse(BAD_STATE, );
#undef refuse
}

/* An arm of before the resize is answered by a completion of after it. */
static void resize_armed(void **state)
{
	struct rig *r = *state;
	struct mini_cq cq;

	mini_cq_create(&r->m, &cq, 2);
	mini_cq_arm(&r->m, &cq, false);
	assert_status(resize(r, &cq, 5), OK);
	none(r);
	assert_int_equal(post(r, &cq, 1, false), 0);
	fired(r, &cq, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(create_checks),
		rig_test(phase),
		rig_test(paged_ring),
		rig_test(overrun),
		rig_test(hostile_record),
		rig_test(ignore_overrun),
		rig_test(ring_fault),
		rig_test(arm_any),
		rig_test(arm_solicited),
		rig_test(arm_checks),
		rig_test(moderation),
		rig_test(in_use_c11_17),
		rig_test(resize_keeps),
		rig_test(resize_checks),
		rig_test(resize_armed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
