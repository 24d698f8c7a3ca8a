// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues: phase, order, bounds, and events that make no sense.
 */
#include <linux/random.h>

#include "fake.h"

/* An EQ, its producer, and the objects that events may be for. */
struct eqt {
	struct fake *fake;
	struct skua_eq eq;
	u32 pi;
	struct skua_cq cq;
	struct skua_qp qp;
	struct skua_srq srq;
	unsigned int comps;
	unsigned int cq_errs;
	unsigned int qp_events[SKUA_QP_EV_COUNT];
	unsigned int srq_limits;
	unsigned int srq_errs;
};

static void produce(struct eqt *e, u32 type, u32 subtype, u32 num)
{
	struct skua_eqe *ring = e->eq.buf.va;
	struct skua_eqe *eqe = &ring[e->pi & (BIT(e->eq.log_size) - 1)];
	u32 phase = !((e->pi >> e->eq.log_size) & 1);

	memset(eqe, 0, offsetof(struct skua_eqe, what));
	eqe->num = cpu_to_le32(num);
	eqe->what = le32_encode_bits(type, SKUA_EQE_TYPE) |
		    le32_encode_bits(subtype, SKUA_EQE_SUBTYPE);
	/* The phase last, as a device does. */
	dma_wmb();
	WRITE_ONCE(eqe->own, le32_encode_bits(phase, SKUA_EQE_PHASE));
	e->pi++;
}

static void on_comp(struct skua_cq *cq)
{
	container_of(cq, struct eqt, cq)->comps++;
}

static void on_cq_err(struct skua_cq *cq, enum skua_cq_err err)
{
	container_of(cq, struct eqt, cq)->cq_errs++;
}

static void on_qp(struct skua_qp *qp, enum skua_qp_event event)
{
	container_of(qp, struct eqt, qp)->qp_events[event]++;
}

static void on_srq(struct skua_srq *srq, enum skua_eqe_type type)
{
	struct eqt *e = container_of(srq, struct eqt, srq);

	if (type == SKUA_EQE_SRQ_LIMIT)
		e->srq_limits++;
	if (type == SKUA_EQE_SRQ_ERR)
		e->srq_errs++;
}

static void eqt_exit(void *data)
{
	struct eqt *e = data;
	struct skua_dev *dev = &e->fake->dev;

	flush_workqueue(dev->wq);
	xa_destroy(&e->eq.cqs);
	skua_obj_retire(&dev->cqs, &e->cq.obj);
	skua_obj_release(&dev->cqs, &e->cq.obj);
	skua_obj_retire(&dev->qps, &e->qp.obj);
	skua_obj_release(&dev->qps, &e->qp.obj);
	skua_obj_retire(&dev->srqs, &e->srq.obj);
	skua_obj_release(&dev->srqs, &e->srq.obj);
	skua_obj_table_exit(&dev->cqs);
	skua_obj_table_exit(&dev->qps);
	skua_obj_table_exit(&dev->srqs);
	skua_buf_free(dev, &e->eq.buf);
}

static struct eqt *eqt_create(struct kunit *test, u32 eqn, u8 log_size)
{
	struct eqt *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	struct skua_dev *dev;

	KUNIT_ASSERT_NOT_NULL(test, e);
	e->fake = fake_create(test);
	dev = &e->fake->dev;
	e->eq.dev = dev;
	e->eq.eqn = eqn;
	e->eq.log_size = log_size;
	xa_init(&e->eq.cqs);
	KUNIT_ASSERT_EQ(test, skua_buf_alloc(dev, &e->eq.buf, sizeof(struct skua_eqe) << log_size),
			0);
	skua_obj_table_init(&dev->cqs, 1, 1000, 24, 24);
	skua_obj_table_init(&dev->srqs, 1, 1000, 24, 24);
	skua_obj_table_init(&dev->qps, 2, 1000, 12, 24);
	KUNIT_ASSERT_EQ(test, skua_obj_reserve(&dev->cqs, &e->cq.obj), 0);
	KUNIT_ASSERT_EQ(test, skua_obj_reserve(&dev->qps, &e->qp.obj), 0);
	KUNIT_ASSERT_EQ(test, skua_obj_reserve(&dev->srqs, &e->srq.obj), 0);
	e->cq.comp = on_comp;
	e->cq.event = on_cq_err;
	e->qp.event = on_qp;
	e->srq.event = on_srq;
	skua_obj_publish(&dev->cqs, &e->cq.obj);
	skua_obj_publish(&dev->qps, &e->qp.obj);
	skua_obj_publish(&dev->srqs, &e->srq.obj);
	KUNIT_ASSERT_EQ(test, xa_err(xa_store(&e->eq.cqs, e->cq.obj.num, &e->cq, GFP_KERNEL)), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, eqt_exit, e), 0);
	return e;
}

/* The last EQ doorbell armed @e at its consumer index; there will have been no other. */
static void expect_armed(struct eqt *e)
{
	__le32 *db = e->fake->uar + SKUA_UAR_EQ;

	KUNIT_EXPECT_EQ(e->fake->test, le32_to_cpu(db[0]), e->eq.ci);
	KUNIT_EXPECT_EQ(e->fake->test, le32_to_cpu(db[1]),
			u32_encode_bits(e->eq.eqn, SKUA_UAR_EQ_EQN) | SKUA_UAR_EQ_ARM);
	memset(db, 0, sizeof(u64));
}

static void test_empty(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_COMP, 4);

	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 0);
	expect_armed(e);
	KUNIT_EXPECT_EQ(test, e->eq.ci, 0);
}

/* Many turns, by steps of every size: each event once, no stale one. */
static void test_wrap(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_COMP, 4);
	unsigned int step, i, total = 0;

	for (step = 1; step <= 16; step++) {
		for (i = 0; i < step; i++)
			produce(e, SKUA_EQE_COMP, 0, e->cq.obj.num);
		KUNIT_ASSERT_EQ(test, skua_eq_poll(&e->eq), step);
		KUNIT_ASSERT_EQ(test, skua_eq_poll(&e->eq), 0);
		total += step;
		KUNIT_ASSERT_EQ(test, e->comps, total);
		KUNIT_ASSERT_EQ(test, e->eq.ci, e->pi);
	}
	KUNIT_EXPECT_EQ(test, e->eq.bad, 0);
	KUNIT_EXPECT_EQ(test, e->eq.count, total);
}

static void test_index_wrap(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_COMP, 4);
	struct skua_eqe *ring = e->eq.buf.va;
	unsigned int i;

	/* Just before the index overflows the ring is full of odd turns' entries. */
	for (i = 0; i < 16; i++)
		ring[i].own = le32_encode_bits(1, SKUA_EQE_PHASE);
	e->pi = 0xfffffff0;
	e->eq.ci = e->pi;
	for (i = 0; i < 40; i++) {
		KUNIT_ASSERT_EQ(test, skua_eq_poll(&e->eq), 0);
		produce(e, SKUA_EQE_COMP, 0, e->cq.obj.num);
		KUNIT_ASSERT_EQ(test, skua_eq_poll(&e->eq), 1);
	}
	KUNIT_EXPECT_EQ(test, e->comps, 40);
}

/* One visit is bounded, and leaves the rest to the next one. */
static void test_budget(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_COMP, 8);
	unsigned int i;

	for (i = 0; i < 256; i++)
		produce(e, SKUA_EQE_COMP, 0, e->cq.obj.num);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), SKUA_EQ_BUDGET);
	expect_armed(e);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 256 - SKUA_EQ_BUDGET);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 0);
	KUNIT_EXPECT_EQ(test, e->comps, 256);
}

/* A CQ that is not this EQ's is not found, though it exists. */
static void test_foreign_cq(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_COMP, 4);

	produce(e, SKUA_EQE_COMP, 0, e->cq.obj.num);
	xa_erase(&e->eq.cqs, e->cq.obj.num);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 1);
	KUNIT_EXPECT_EQ(test, e->comps, 0);
	KUNIT_EXPECT_EQ(test, e->eq.bad, 1);
}

static void test_async(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_ASYNC, 4);
	u32 qpn = e->qp.obj.num;

	produce(e, SKUA_EQE_QP, SKUA_QP_EV_FATAL, qpn);
	produce(e, SKUA_EQE_QP, SKUA_QP_EV_COUNT, qpn);
	produce(e, SKUA_EQE_QP, 255, qpn);
	produce(e, SKUA_EQE_QP, SKUA_QP_EV_FATAL, qpn ^ BIT(12));
	produce(e, SKUA_EQE_CQ_ERR, SKUA_CQ_ERR_OVERRUN, e->cq.obj.num);
	produce(e, SKUA_EQE_SRQ_LIMIT, 0, e->srq.obj.num);
	produce(e, SKUA_EQE_SRQ_LIMIT, 0, e->srq.obj.num + 1);
	produce(e, SKUA_EQE_SRQ_ERR, 0, e->srq.obj.num);
	produce(e, SKUA_EQE_SRQ_ERR, 0, e->srq.obj.num);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 9);
	KUNIT_EXPECT_EQ(test, e->qp_events[SKUA_QP_EV_FATAL], 1);
	KUNIT_EXPECT_EQ(test, e->cq_errs, 1);
	KUNIT_EXPECT_EQ(test, e->srq_limits, 1);
	KUNIT_EXPECT_EQ(test, e->srq_errs, 2);
	KUNIT_EXPECT_EQ(test, e->eq.bad, 4);
	/* All references are back, else this test would never end. */
}

/* Callbacks that may sleep are never called for an EQ that interrupts poll. */
static void test_async_elsewhere(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_COMP, 4);

	produce(e, SKUA_EQE_QP, SKUA_QP_EV_FATAL, e->qp.obj.num);
	produce(e, SKUA_EQE_CQ_ERR, 0, e->cq.obj.num);
	produce(e, SKUA_EQE_FATAL, 0, 0);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 3);
	KUNIT_EXPECT_EQ(test, e->qp_events[SKUA_QP_EV_FATAL], 0);
	KUNIT_EXPECT_EQ(test, e->cq_errs, 0);
	KUNIT_EXPECT_EQ(test, e->eq.bad, 3);
	KUNIT_EXPECT_FALSE(test, skua_dead(&e->fake->dev));
}

static void test_fatal(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_ASYNC, 4);

	produce(e, SKUA_EQE_FATAL, 0, 0);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 1);
	KUNIT_EXPECT_TRUE(test, skua_dead(&e->fake->dev));
	KUNIT_EXPECT_TRUE(test, e->fake->quiesced);
}

/* Noise of every type: nothing breaks, and what is valid still gets through. */
static void test_garbage(struct kunit *test)
{
	struct eqt *e = eqt_create(test, SKUA_EQN_ASYNC, 4);
	unsigned int i;

	for (i = 0; i < 4096; i++) {
		u32 type = i & 0xff;

		if (type != SKUA_EQE_FATAL)
			produce(e, type, get_random_u8(), get_random_u32());
		skua_eq_poll(&e->eq);
	}
	KUNIT_EXPECT_FALSE(test, skua_dead(&e->fake->dev));
	produce(e, SKUA_EQE_QP, SKUA_QP_EV_FATAL, e->qp.obj.num);
	KUNIT_EXPECT_EQ(test, skua_eq_poll(&e->eq), 1);
	KUNIT_EXPECT_EQ(test, e->qp_events[SKUA_QP_EV_FATAL], 1);
}

/* The device's last event for a CQ is in the ring when DESTROY_CQ is answered. */
static u32 serve_last_event(struct fake *fake, struct skua_cmd_slot *slot, const void *in,
			    void *out)
{
	struct eqt *e = fake->test->priv;

	if (le16_to_cpu(slot->opcode) == SKUA_CMD_DESTROY_CQ) {
		unsigned int i;

		for (i = 0; i < SKUA_EQ_BUDGET + 10; i++)
			produce(e, SKUA_EQE_COMP, 0, e->cq.obj.num);
		return SKUA_CMD_ST_OK;
	}
	if (le16_to_cpu(slot->opcode) == SKUA_CMD_CREATE_CQ)
		return SKUA_CMD_ST_OK;
	return fake_serve_icm(fake, slot, in, out);
}

/* A CQ that gets the number of an earlier one gets none of its events. */
static void test_cq_reuse(struct kunit *test)
{
	struct eqt *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	struct skua_vector *vector = kunit_kzalloc(test, sizeof(*vector), GFP_KERNEL);
	struct skua_cqc cqc = {};
	struct skua_dev *dev;
	struct skua_eq *eq;
	u32 num;

	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_ASSERT_NOT_NULL(test, vector);
	e->fake = fake_create(test);
	e->fake->serve = serve_last_event;
	test->priv = e;
	dev = &e->fake->dev;
	eq = &e->eq;
	eq->dev = dev;
	eq->eqn = SKUA_EQN_COMP;
	eq->log_size = 8;
	xa_init(&eq->cqs);
	KUNIT_ASSERT_EQ(test, skua_buf_alloc(dev, &eq->buf, sizeof(struct skua_eqe) << 8), 0);
	eq->created = true;
	mutex_init(&eq->flush_lock);
	INIT_WORK(&dev->async_eq.work, skua_eq_work);
	dev->vectors = vector;
	dev->comp_eq = eq;
	dev->num_comp = 1;
	skua_obj_table_init(&dev->cqs, 1, 1000, 24, 24);
	skua_icm_table_init(&dev->icm[SKUA_ICM_CQC], 0, SKUA_ICM_CQC_SIZE, 10);

	e->cq.comp = on_comp;
	KUNIT_EXPECT_EQ(test, skua_cq_create(dev, &e->cq, &cqc), 0);
	num = e->cq.obj.num;
	skua_cq_destroy(dev, &e->cq);
	e->comps = 0;
	KUNIT_EXPECT_EQ(test, skua_cq_create(dev, &e->cq, &cqc), 0);
	KUNIT_EXPECT_EQ(test, e->cq.obj.num, num);
	skua_eq_poll(eq);
	skua_eq_poll(eq);
	KUNIT_EXPECT_EQ(test, eq->ci, e->pi);
	KUNIT_EXPECT_EQ(test, e->comps, 0);
	KUNIT_EXPECT_EQ(test, eq->bad, 0);
	skua_cq_destroy(dev, &e->cq);

	skua_icm_table_exit(dev, &dev->icm[SKUA_ICM_CQC]);
	skua_obj_table_exit(&dev->cqs);
	skua_buf_free(dev, &eq->buf);
}

/* A ring that is larger than any piece of memory is refused. The kernel's log must not have it. */
static void test_too_large(struct kunit *test)
{
	struct fake *fake = fake_create(test);
	struct skua_buf buf;

	KUNIT_EXPECT_EQ(test, skua_buf_alloc(&fake->dev, &buf, PAGE_SIZE << (MAX_PAGE_ORDER + 1)),
			-ENOMEM);
	KUNIT_EXPECT_NULL(test, buf.va);
	skua_buf_free(&fake->dev, &buf);
}

static struct kunit_case skua_eq_cases[] = {
	KUNIT_CASE(test_empty),
	KUNIT_CASE(test_wrap),
	KUNIT_CASE(test_index_wrap),
	KUNIT_CASE(test_budget),
	KUNIT_CASE(test_foreign_cq),
	KUNIT_CASE(test_async),
	KUNIT_CASE(test_async_elsewhere),
	KUNIT_CASE(test_fatal),
	KUNIT_CASE(test_garbage),
	KUNIT_CASE(test_cq_reuse),
	KUNIT_CASE(test_too_large),
	{}
};

struct kunit_suite skua_eq_suite = {
	.name = "skua_eq",
	.test_cases = skua_eq_cases,
};
