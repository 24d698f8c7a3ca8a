// SPDX-License-Identifier: GPL-2.0
/* UAR pages: what makes a doorbell, and whose. */
#include "core_test.h"

struct db_rig {
	struct rig *r;
	struct mini_cq cq;
	struct mini_qp qp;
};

/* A RAW_ETH QP that takes its doorbells but has not been started. */
static void prepare(struct db_rig *d, struct rig *r)
{
	d->r = r;
	mini_cq_create(&r->m, &d->cq, 4);
	mini_qp_create(&r->m, &d->qp, SKUA_QP_RAW_ETH, &d->cq, &d->cq, 3, 3, 0);
	assert_status(mini_qp_modify(&r->m, &d->qp, SKUA_QP_INIT, SKUA_QP_M_PORT, NULL), OK);
}

static uint32_t pi(struct db_rig *d)
{
	struct skua_cmd_query_qp_out out;

	assert_status(mini_index(&d->r->m, SKUA_CMD_QUERY_QP, d->qp.qpn, &out, sizeof(out)), OK);
	return le32_to_cpu(out.sqc.pi);
}

static void db(struct db_rig *d, uint32_t index)
{
	fake_db(&d->r->f, MINI_UAR, SKUA_UAR_SQ, index, d->qp.qpn);
}

static void bar_write(struct rig *r, uint64_t off, uint64_t val, size_t len)
{
	uint64_t buf[8] = { val };

	skua_dev_bar_write(r->f.dev, SKUA_BAR_UAR, off, buf, len);
}

static void widths(void **state)
{
	struct rig *r = *state;
	struct db_rig d;
	uint64_t val;

	prepare(&d, r);
	val = 1 | (uint64_t)d.qp.qpn << 32;
	for (unsigned int len = 1; len <= 64; len++) {
		for (unsigned int off = 0; off < 8; off++) {
			if ((len == 8 && !off) || (len == 4 && off % 4 == 0))
				continue;
			assert_counts(&r->m, BAD_DB, 1, bar_write(r, 4096 + off, val, len));
		}
	}
	/* Registers that are none, push slots without the capability, the page's other end. */
	r->f.dev->caps &= ~SKUA_CAP_PUSH;
	for (unsigned int off = 0x18; off < 4096; off += 8)
		assert_counts(&r->m, BAD_DB, 1, bar_write(r, 4096 + off, val, 8));
	assert_int_equal(pi(&d), 0);
	assert_counts(&r->m, SQ_DB, 1, bar_write(r, 4096, val, 8));
	assert_int_equal(pi(&d), 1);
	/* A read has no effect and tells nothing. */
	val = 5;
	skua_dev_bar_read(r->f.dev, SKUA_BAR_UAR, 4096, &val, 8);
	assert_int_equal(val, 0);
}

static void halves(void **state)
{
	struct rig *r = *state;
	struct db_rig d;

	prepare(&d, r);
	assert_counts(&r->m, SQ_DB, 1, {
		bar_write(r, 4096, 1, 4);
		bar_write(r, 4096 + 4, d.qp.qpn, 4);
	});
	assert_int_equal(pi(&d), 1);
	/* The low half alone does nothing; the high half needs one, each time. */
	assert_counts(&r->m, BAD_DB, 1, bar_write(r, 4096 + 4, d.qp.qpn, 4));
	bar_write(r, 4096, 2, 4);
	assert_int_equal(pi(&d), 1);
	/* Of another register or page it is not the one. */
	assert_counts(&r->m, BAD_DB, 1, bar_write(r, 4096 + 12, d.cq.cqn, 4));
	assert_counts(&r->m, BAD_DB, 1, bar_write(r, 2 * 4096 + 4, d.qp.qpn, 4));
	assert_counts(&r->m, SQ_DB, 1, bar_write(r, 4096 + 4, d.qp.qpn, 4));
	assert_int_equal(pi(&d), 2);
	/* The last low half counts. */
	bar_write(r, 4096, 7, 4);
	bar_write(r, 4096, 3, 4);
	bar_write(r, 4096 + 4, d.qp.qpn, 4);
	assert_int_equal(pi(&d), 3);
	/* Two pages do not disturb each other. */
	bar_write(r, 4096, 4, 4);
	bar_write(r, 2 * 4096, 9, 4);
	assert_counts(&r->m, BAD_DB_UAR, 1, bar_write(r, 2 * 4096 + 4, d.qp.qpn, 4));
	bar_write(r, 4096 + 4, d.qp.qpn, 4);
	assert_int_equal(pi(&d), 4);
}

static void owners(void **state)
{
	struct rig *r = *state;
	struct db_rig d;

	prepare(&d, r);
	assert_counts(&r->m, BAD_DB_UAR, 1, fake_db(&r->f, 0, SKUA_UAR_SQ, 1, d.qp.qpn));
	assert_counts(&r->m, BAD_DB_UAR, 1,
		      fake_db(&r->f, dev_uars(r->f.dev) - 1, SKUA_UAR_SQ, 1, d.qp.qpn));
	assert_counts(&r->m, BAD_DB_QP, 1, fake_db(&r->f, MINI_UAR, SKUA_UAR_SQ, 1, d.qp.qpn + 1));
	/* The right index, another variant. */
	assert_counts(&r->m, BAD_DB_QP, 1,
		      fake_db(&r->f, MINI_UAR, SKUA_UAR_SQ, 1, d.qp.qpn ^ 1u << MODEL_LOG_QP));
	for (unsigned int bit = 24; bit < 32; bit++)
		assert_counts(&r->m, BAD_DB, 1,
			      fake_db(&r->f, MINI_UAR, SKUA_UAR_SQ, 1, d.qp.qpn | 1u << bit));
	assert_int_equal(pi(&d), 0);
}

static void indices(void **state)
{
	struct rig *r = *state;
	struct db_rig d;

	prepare(&d, r);
	assert_counts(&r->m, BAD_DB_INDEX, 1, db(&d, 9));
	assert_counts(&r->m, BAD_DB_INDEX, 1, db(&d, 0xffffffff));
	assert_counts(&r->m, BAD_DB_INDEX, 1, db(&d, 0x80000000));
	assert_counts(&r->m, SQ_DB, 1, db(&d, 5));
	/* Once more: nothing. Backwards, or more than the ring has: no. */
	assert_counts(&r->m, BAD_DB_INDEX, 0, db(&d, 5));
	assert_counts(&r->m, SQ_DB, 0, db(&d, 5));
	assert_counts(&r->m, BAD_DB_INDEX, 1, db(&d, 4));
	assert_counts(&r->m, BAD_DB_INDEX, 1, db(&d, 9));
	assert_counts(&r->m, SQ_DB, 1, db(&d, 8));
	assert_int_equal(pi(&d), 8);
	/* RESET has no queue. */
	assert_status(mini_qp_modify(&r->m, &d.qp, SKUA_QP_RESET, 0, NULL), OK);
	assert_counts(&r->m, BAD_DB_QP, 1, db(&d, 1));
	assert_int_equal(pi(&d), 0);
}

/* The index runs past 2^32. */
static void wrap(void **state)
{
	struct rig *r = *state;
	struct db_rig d;
	struct qp qp;

	prepare(&d, r);
	qp_get(r->f.dev, d.qp.qpn, &qp);
	qp.sqc->pi = cpu_to_le32(0xfffffffe);
	qp.sqc->ci = cpu_to_le32(0xfffffffe);
	qp_put(r->f.dev, &qp);
	assert_counts(&r->m, BAD_DB_INDEX, 1, db(&d, 7));
	assert_counts(&r->m, BAD_DB_INDEX, 1, db(&d, 0xfffffffd));
	assert_counts(&r->m, SQ_DB, 1, db(&d, 0));
	assert_counts(&r->m, SQ_DB, 1, db(&d, 6));
	assert_int_equal(pi(&d), 6);
}

/* A page of 64 KiB: only its first 4 KiB mean anything. */
static void big_pages(void **state)
{
	struct mini_eq eq;
	struct mini m;
	struct fake f;

	(void)state;
	fake_init(&f, NULL);
	fake_wr32(&f, SKUA_REG_UAR_PAGE_SHIFT, 16);
	memset(&m, 0, sizeof(m));
	m.f = &f;
	m.cmdq = fake_alloc(&f, 64 << MINI_CMDQ_LOG, 64);
	m.in = fake_alloc(&f, 4096, 4096);
	m.out = fake_alloc(&f, 4096, 4096);
	fake_wr64(&f, SKUA_REG_CMDQ_BASE, m.cmdq);
	fake_wr32(&f, SKUA_REG_CMDQ_LOG_SIZE, MINI_CMDQ_LOG);
	fake_wr32(&f, SKUA_REG_CMDQ_CTRL, SKUA_CMDQ_CTRL_ENABLE);
	struct skua_cmd_init_device_in init;

	mini_init_in(&m, &init);
	mini_map_all(&m);
	mini_ok(&m, SKUA_CMD_INIT_DEVICE, &init, sizeof(init));
	assert_status(mini_eq_create(&m, &eq, 0, 3, 256, 0), BAD_PARAM);
	assert_status(mini_eq_create(&m, &eq, 0, 3, 255, 0), OK);
	assert_counts(&m, BAD_DB, 0, fake_db(&f, 255, SKUA_UAR_EQ, 0, SKUA_UAR_EQ_ARM));
	assert_counts(&m, BAD_DB_UAR, 0, fake_db(&f, 255, SKUA_UAR_EQ, 0, SKUA_UAR_EQ_ARM));
	assert_counts(&m, BAD_DB_UAR, 1, fake_db(&f, 15, SKUA_UAR_EQ, 0, SKUA_UAR_EQ_ARM));
	assert_counts(&m, BAD_DB, 1, fake_db(&f, 255, 0x1000 + SKUA_UAR_EQ, 0, SKUA_UAR_EQ_ARM));
	fake_exit(&f);
}

static void not_started(void **state)
{
	struct mini m;
	struct fake f;

	(void)state;
	fake_init(&f, NULL);
	mini_ring_up(&m, &f);
	assert_counts(&m, BAD_DB, 1, fake_db(&f, 0, SKUA_UAR_SQ, 1, 2));
	/* Beyond the BAR nothing is counted, nothing happens. */
	assert_counts(&m, BAD_DB, 0, bar_write(&(struct rig){ .f = f }, SKUA_BAR_UAR_SIZE, 1, 8));
	assert_counts(&m, BAD_DB, 0, bar_write(&(struct rig){ .f = f }, SKUA_BAR_UAR_SIZE - 4, 1, 8));
	assert_counts(&m, BAD_DB, 0, bar_write(&(struct rig){ .f = f }, UINT64_MAX - 3, 1, 8));
	fake_exit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(widths),
		rig_test(halves),
		rig_test(owners),
		rig_test(indices),
		rig_test(wrap),
		cmocka_unit_test(big_pages),
		cmocka_unit_test(not_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
