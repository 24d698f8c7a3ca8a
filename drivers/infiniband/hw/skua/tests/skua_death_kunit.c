// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what skua_ib does when the device fails, which need no device: who is woken, and
 * what programs and clients are told.
 */
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/module.h>

#include "../skua_ib.h"

enum { ARMED, NEVER_ARMED, USER, NO_HANDLER, NO_QP, CQS };

enum { DRAINED, IN_RTS, NO_SRQ, OF_USER, QPS };

/**
 * struct death - a device that is not registered
 * @dev: the device
 * @cq: its CQs
 * @cqe: ring of the kernel's
 * @calls: of the completion handlers
 * @qp: QPs, in error but for IN_RTS, with an SRQ but for NO_SRQ
 * @srq: that
 * @dbr: doorbell record of the kernel's
 * @last_wqe: how often each was told that its last receive is flushed
 * @uc: a context of a program
 * @status: its status page
 * @handler: of events of the device
 * @fatal: events of the device
 * @other: events that are none of it
 * @seen_dead: the status page was cleared, and the CQs woken, before the event
 */
struct death {
	struct skua_ib_dev *dev;
	struct skua_ib_cq cq[CQS];
	struct skua_cqe cqe;
	int calls[CQS];
	struct skua_ib_qp qp[QPS];
	struct ib_srq srq;
	struct skua_qp_dbr dbr;
	int last_wqe[QPS];
	struct skua_ib_ucontext uc;
	struct skua_status_page status;
	struct ib_event_handler handler;
	int fatal;
	int other;
	bool seen_dead;
};

static void on_comp(struct ib_cq *ibcq, void *context)
{
	int *calls = context;

	(*calls)++;
}

static void on_qp_event(struct ib_event *event, void *context)
{
	int *last_wqe = context;

	*last_wqe += event->event == IB_EVENT_QP_LAST_WQE_REACHED;
}

/* Instead of the function's table of QPs */
static void each_qp(struct skua_dev *core,
		    void (*event)(struct skua_qp *qp, enum skua_qp_event event),
		    void (*fn)(struct skua_qp *qp))
{
	struct death *d = kunit_get_current_test()->priv;
	unsigned int i;

	for (i = 0; i < QPS; i++)
		fn(&d->qp[i].core);
}

static void on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct death *d = container_of(handler, struct death, handler);

	if (event->event == IB_EVENT_DEVICE_FATAL)
		d->fatal++;
	else
		d->other++;
	d->seen_dead = !d->status.alive && d->calls[USER];
}

static void death_exit(void *data)
{
	struct death *d = data;
	unsigned int i;

	for (i = 0; i < CQS; i++)
		xa_destroy(&d->cq[i].qps);
	ib_unregister_event_handler(&d->handler);
	ib_dealloc_device(&d->dev->ibdev);
}

static void qps_init(struct death *d)
{
	unsigned int i;

	for (i = 0; i < QPS; i++) {
		struct skua_ib_qp *qp = &d->qp[i];

		qp->ibqp.device = &d->dev->ibdev;
		qp->ibqp.srq = i == NO_SRQ ? NULL : &d->srq;
		qp->ibqp.event_handler = on_qp_event;
		qp->ibqp.qp_context = &d->last_wqe[i];
		qp->state = i == IN_RTS ? IB_QPS_RTS : IB_QPS_ERR;
		qp->dbr = i == OF_USER ? NULL : &d->dbr;
	}
}

static int death_init(struct kunit *test)
{
	struct death *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, d);
	test->priv = d;
	d->dev = ib_alloc_device(skua_ib_dev, ibdev);
	KUNIT_ASSERT_NOT_NULL(test, d->dev);
	spin_lock_init(&d->dev->cq_lock);
	INIT_LIST_HEAD(&d->dev->cqs);
	mutex_init(&d->dev->uc_lock);
	INIT_LIST_HEAD(&d->dev->ucontexts);
	INIT_IB_EVENT_HANDLER(&d->handler, &d->dev->ibdev, on_event);
	ib_register_event_handler(&d->handler);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, death_exit, d), 0);

	qps_init(d);
	kunit_activate_static_stub(test, skua_qp_for_each, each_qp);
	d->status.alive = 1;
	d->uc.status = &d->status;
	list_add(&d->uc.link, &d->dev->ucontexts);
	for (i = 0; i < CQS; i++) {
		struct skua_ib_cq *cq = &d->cq[i];

		cq->ibcq.device = &d->dev->ibdev;
		cq->ibcq.comp_handler = i == NO_HANDLER ? NULL : on_comp;
		cq->ibcq.cq_context = &d->calls[i];
		cq->ring = i == USER ? NULL : &d->cqe;
		cq->arm_serial = i == ARMED || i == NO_HANDLER || i == NO_QP;
		list_add(&cq->link, &d->dev->cqs);
		xa_init_flags(&cq->qps, XA_FLAGS_LOCK_IRQ);
		if (i != USER && i != NO_QP)
			KUNIT_ASSERT_EQ(test, xa_insert_irq(&cq->qps, 2, d, GFP_KERNEL), 0);
	}
	return 0;
}

static void expect_woken(struct kunit *test, int times)
{
	struct death *d = test->priv;

	KUNIT_EXPECT_EQ(test, d->calls[ARMED], times);
	KUNIT_EXPECT_EQ(test, d->calls[USER], times);
	/* The RDMA core may not even have set the handler of this one. */
	KUNIT_EXPECT_EQ(test, d->calls[NEVER_ARMED], 0);
	/* Or it has armed this one and not yet set what the handler uses. */
	KUNIT_EXPECT_EQ(test, d->calls[NO_QP], 0);
}

/* Whoever waits for a completion polls again, kernel and user space. */
static void test_wake_all(struct kunit *test)
{
	struct death *d = test->priv;

	skua_ib_wake_all(d->dev);
	expect_woken(test, 1);
	skua_ib_wake_all(d->dev);
	expect_woken(test, 2);
}

/* Once, however often it is heard of; programs that only poll see it before the event. */
static void test_die(struct kunit *test)
{
	struct death *d = test->priv;

	skua_ib_die(d->dev);
	flush_workqueue(ib_wq);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(d->dev->dead));
	KUNIT_EXPECT_EQ(test, d->status.alive, 0);
	KUNIT_EXPECT_EQ(test, d->fatal, 1);
	KUNIT_EXPECT_TRUE(test, d->seen_dead);
	expect_woken(test, 1);

	skua_ib_die(d->dev);
	flush_workqueue(ib_wq);
	KUNIT_EXPECT_EQ(test, d->fatal, 1);
	KUNIT_EXPECT_EQ(test, d->other, 0);
	expect_woken(test, 1);
}

/* ib_drain_qp() of a QP with an SRQ waits for an event, and nobody else does. */
static void test_drain(struct kunit *test)
{
	struct death *d = test->priv;

	skua_ib_die(d->dev);
	flush_workqueue(ib_wq);
	KUNIT_EXPECT_EQ(test, d->last_wqe[DRAINED], 1);
	KUNIT_EXPECT_EQ(test, d->last_wqe[IN_RTS], 0);
	KUNIT_EXPECT_EQ(test, d->last_wqe[NO_SRQ], 0);
	KUNIT_EXPECT_EQ(test, d->last_wqe[OF_USER], 0);
}

#define LAST_QPN	3

/* The device has written its last CQE after the ring was found empty, before it died. */
static int last_words(struct skua_ib_cq *cq, int num, struct ib_wc *wc)
{
	struct kunit *test = kunit_get_current_test();

	cq->ring->qpn = cpu_to_le32(LAST_QPN);
	cq->ring->own = cpu_to_le32(SKUA_CQE_PHASE);
	KUNIT_EXPECT_TRUE(test, skua_cqe_is_new(cq->ring, cq->ci, cq->log_size));
	kunit_deactivate_static_stub(test, skua_ib_take_last);
	return skua_ib_take_last(cq, num, wc);
}

/* It is reported as what it is; what is behind it is flushed. */
static void test_last_cqe(struct kunit *test)
{
	struct skua_ib_swqe wqe[2] = {
		{ .wr_id = 7, .opcode = IB_WC_SEND, .blocks = 1 },
		{ .wr_id = 8, .opcode = IB_WC_SEND, .blocks = 1 },
	};
	struct death *d = test->priv;
	struct skua_ib_cq *cq = &d->cq[ARMED];
	struct skua_ib_qp *qp = &d->qp[NO_SRQ];
	struct skua_cq_dbr dbr = {};
	struct ib_wc wc;

	spin_lock_init(&cq->lock);
	cq->dbr = &dbr;
	qp->ibqp.send_cq = &cq->ibcq;
	qp->sq.wqe = wqe;
	qp->sq.size = ARRAY_SIZE(wqe);
	qp->sq.pi = ARRAY_SIZE(wqe);
	xa_erase_irq(&cq->qps, 2);
	KUNIT_ASSERT_EQ(test, xa_insert_irq(&cq->qps, LAST_QPN, qp, GFP_KERNEL), 0);
	WRITE_ONCE(d->dev->dead, true);
	kunit_activate_static_stub(test, skua_ib_take_last, last_words);

	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&cq->ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 7);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(dbr.ci), 1);
	KUNIT_ASSERT_EQ(test, skua_ib_poll_cq(&cq->ibcq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 8);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, skua_ib_poll_cq(&cq->ibcq, 1, &wc), 0);
}

static struct kunit_case skua_death_cases[] = {
	KUNIT_CASE(test_wake_all),
	KUNIT_CASE(test_die),
	KUNIT_CASE(test_drain),
	KUNIT_CASE(test_last_cqe),
	{}
};

static struct kunit_suite skua_death_suite = {
	.name = "skua_death",
	.init = death_init,
	.test_cases = skua_death_cases,
};

kunit_test_suite(skua_death_suite);

MODULE_DESCRIPTION("KUnit tests of skua_ib when the device fails");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
