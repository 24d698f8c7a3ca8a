// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of kernel CQs on a live device: which completions have events, how these are moderated,
 * and CQs that are freed while their events are handled. They need a function whose netdev is up
 * and has an address; without one they are skipped.
 */
#include <linux/delay.h>
#include <linux/dim.h>
#include <linux/iopoll.h>
#include <linux/sched.h>
#include <skua/cqe_parse.h>

#include "../skua_ib.h"
#include "pair.h"

/* --- arming --- */

struct events {
	atomic_t seen;
	wait_queue_head_t wait;
};

static void event_seen(struct ib_cq *cq, void *ctx)
{
	struct events *ev = ctx;

	atomic_inc(&ev->seen);
	wake_up(&ev->wait);
}

static void expect_event(struct kunit *test, struct events *ev, int n)
{
	KUNIT_ASSERT_NE(test, wait_event_timeout(ev->wait, atomic_read(&ev->seen) >= n, TIMEOUT),
			0);
	KUNIT_ASSERT_EQ(test, atomic_read(&ev->seen), n);
}

static struct pair *pair_with_events(struct kunit *test, struct events *ev)
{
	struct pair *p = pair_new(test, IB_POLL_DIRECT);

	atomic_set(&ev->seen, 0);
	init_waitqueue_head(&ev->wait);
	p->cq->comp_handler = event_seen;
	p->cq->cq_context = ev;
	connect(test, p);
	return p;
}

/* Event, arm, poll: each completion has one event; also when the count of arms wraps. */
static void test_arm_then_poll(struct kunit *test)
{
	struct events *ev = kunit_kzalloc(test, sizeof(*ev), GFP_KERNEL);
	struct skua_ib_cq *cq;
	struct req send;
	struct pair *p;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ev);
	p = pair_with_events(test, ev);
	cq = to_skua_cq(p->cq);
	cq->arm_serial = U32_MAX - 10;
	KUNIT_ASSERT_EQ(test, ib_req_notify_cq(p->cq, IB_CQ_NEXT_COMP), 0);
	for (i = 1; i <= 20; i++) {
		KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE, 100, 0), 0);
		expect_event(test, ev, i);
		KUNIT_ASSERT_EQ(test, ib_req_notify_cq(p->cq, IB_CQ_NEXT_COMP), 0);
		/* 0 says that it was never armed: nobody would wait for its handler. */
		KUNIT_ASSERT_NE(test, cq->arm_serial, 0);
		KUNIT_ASSERT_EQ(test, ib_process_cq_direct(p->cq, -1), 1);
		KUNIT_ASSERT_EQ(test, send.wc.status, IB_WC_SUCCESS);
	}
}

/*
 * An event that a busy handler did not act upon: who asks for missed events must be told
 * of what is there, since no other event will.
 */
static void test_missed_events(struct kunit *test)
{
	const enum ib_cq_notify_flags missed = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	struct events *ev = kunit_kzalloc(test, sizeof(*ev), GFP_KERNEL);
	struct req send;
	struct pair *p;

	KUNIT_ASSERT_NOT_NULL(test, ev);
	p = pair_with_events(test, ev);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(p->cq, missed), 0);
	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE, 100, 0), 0);
	expect_event(test, ev, 1);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(p->cq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(p->cq, missed), 1);
	KUNIT_EXPECT_EQ(test, ib_process_cq_direct(p->cq, -1), 1);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(p->cq, missed), 0);
	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE, 100, 0), 0);
	expect_event(test, ev, 2);
	KUNIT_EXPECT_EQ(test, ib_process_cq_direct(p->cq, -1), 1);
}

/* --- adaptive moderation --- */

static u32 moderation_of(struct kunit *test, struct ib_cq *cq)
{
	struct skua_cqc cqc;

	KUNIT_ASSERT_EQ(test, skua_cq_query(to_skua_dev(cq->device)->core, &to_skua_cq(cq)->core,
					    &cqc), 0);
	return le32_to_cpu(cqc.moderation);
}

static void write_and_wait(struct kunit *test, struct pair *p)
{
	struct req send;

	KUNIT_ASSERT_EQ(test, post_send(p, &send, IB_WR_RDMA_WRITE, 100, 0), 0);
	expect(test, &send, IB_WC_SUCCESS, IB_WC_RDMA_WRITE);
}

/*
 * The RDMA core counts the completions of a CQ, and its work item gives the device the
 * moderation that it has chosen. Which one depends on time; here the test chooses one whose time
 * and count differ.
 */
static void test_adaptive_moderation(struct kunit *test)
{
	struct pair *p = pair_new(test, IB_POLL_WORKQUEUE);
	struct dim *dim = p->cq->dim;
	u32 seen;

	if (!(to_skua_dev(live_dev)->lim->caps & SKUA_CAP_MODERATION))
		kunit_skip(test, "the device has no moderation");
	KUNIT_ASSERT_NOT_NULL(test, dim);
	KUNIT_EXPECT_EQ(test, moderation_of(test, p->cq), 0);
	connect(test, p);
	write_and_wait(test, p);
	KUNIT_EXPECT_EQ(test, read_poll_timeout(READ_ONCE, seen, seen, 100,
						jiffies_to_usecs(TIMEOUT), false,
						dim->measuring_sample.comp_ctr), 0);
	dim->profile_ix = RDMA_DIM_PARAMS_NUM_PROFILES - 2;
	schedule_work(&dim->work);
	flush_work(&dim->work);
	KUNIT_EXPECT_EQ(test, moderation_of(test, p->cq),
			FIELD_PREP(SKUA_MOD_USEC, 32) | FIELD_PREP(SKUA_MOD_COUNT, 16));
	/* One completion is less than 16: the event comes by the time. */
	write_and_wait(test, p);
}

/* --- the end of a CQ --- */

/**
 * struct late - a completion handler that stays while its CQ is freed
 * @handler: the RDMA core's, which it calls in the end
 * @destroy: the device's, while ours is in its place
 * @post_destroy: likewise
 * @stay: the handler is to stay, unless it interrupts @cpu
 * @cpu: processor of the test
 * @seen: it has been called
 * @stays: it stays
 * @freeing: the CQ is about to be freed
 * @cancelled: the CQ's work was cancelled: it must not be queued any more
 * @raced: the handler was still there when ib_free_cq() began
 * @too_late: it would have queued the work after that
 * @left: it has ended
 */
struct late {
	void (*handler)(struct ib_cq *cq, void *ctx);
	int (*destroy)(struct ib_cq *cq, struct ib_udata *udata);
	void (*post_destroy)(struct ib_cq *cq);
	bool stay;
	unsigned int cpu;
	bool seen;
	bool stays;
	bool freeing;
	bool cancelled;
	bool raced;
	bool too_late;
	bool left;
};

static struct late late;

/* In the interrupt: not longer than it takes, nor for ever. */
static void late_handler(struct ib_cq *cq, void *ctx)
{
	unsigned int i;

	late.stays = late.stay && late.cpu != raw_smp_processor_id();
	/* Pairs with the acquire in late_seen(): @stays first. */
	smp_store_release(&late.seen, true);
	if (!late.stays)
		return;
	for (i = 0; i < 10000 && !READ_ONCE(late.freeing); i++)
		mdelay(1);
	for (i = 0; i < 300 && !READ_ONCE(late.cancelled); i++)
		mdelay(1);
	late.too_late = READ_ONCE(late.cancelled);
	if (!late.too_late)
		late.handler(cq, ctx);
	WRITE_ONCE(late.left, true);
}

/* Without sleep: who is woken may be put on the processor that the handler keeps. */
static bool late_seen(void)
{
	bool seen;

	return !read_poll_timeout_atomic(smp_load_acquire, seen, seen, 10,
					 jiffies_to_usecs(TIMEOUT), false, &late.seen);
}

/* What ib_core calls when it has cancelled the work: one of these. */
static void late_post_destroy(struct ib_cq *cq)
{
	WRITE_ONCE(late.cancelled, true);
	late.post_destroy(cq);
}

static int late_destroy(struct ib_cq *cq, struct ib_udata *udata)
{
	WRITE_ONCE(late.cancelled, true);
	return late.destroy(cq, udata);
}

static void late_free_cq(struct ib_cq *cq)
{
	struct ib_device *dev = cq->device;

	late.destroy = dev->ops.destroy_cq;
	late.post_destroy = dev->ops.post_destroy_cq;
	dev->ops.destroy_cq = late_destroy;
	if (late.post_destroy)
		dev->ops.post_destroy_cq = late_post_destroy;
	WRITE_ONCE(late.freeing, true);
	late.raced = late.stays && !READ_ONCE(late.left);
	ib_free_cq(cq);
	dev->ops.destroy_cq = late.destroy;
	dev->ops.post_destroy_cq = late.post_destroy;
}

/* Completion @index of the CQ: a receive that is flushed. */
static void late_complete(struct kunit *test, struct pair *p, struct ib_cq *cq, u32 index)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.send_cq = cq, .recv_cq = cq,
	};
	struct ib_sge sge = { p->side[0].dma, 8, p->pd->local_dma_lkey };
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };
	struct skua_ib_cq *scq = to_skua_cq(cq);
	struct ib_qp *qp = ib_create_qp(p->pd, &init);
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct req r;
	bool new;

	KUNIT_ASSERT_FALSE(test, IS_ERR(qp));
	req_init(&r);
	wr.wr_cqe = &r.cqe;
	KUNIT_EXPECT_EQ(test, modify_init(qp), 0);
	KUNIT_EXPECT_EQ(test, ib_post_recv(qp, &wr, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_modify_qp(qp, &err, IB_QP_STATE), 0);
	KUNIT_EXPECT_EQ(test, read_poll_timeout(skua_cqe_is_new, new, new, 100,
						jiffies_to_usecs(TIMEOUT), false,
						&scq->ring[index], index, scq->log_size), 0);
	/* Nobody polls it: the entry stays, as one of no QP. */
	ib_destroy_qp(qp);
}

/*
 * A CQ is freed while its handler stands between the interrupt and the work. All but that
 * was done before, for what needs the processor of the interrupt has to wait for the
 * handler. Return: false if that processor is the test's own, @cpu.
 */
static bool late_round(struct kunit *test, struct pair *p, unsigned int vector, unsigned int cpu)
{
	struct ib_cq *cq;

	memset(&late, 0, sizeof(late));
	late.cpu = cpu;
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
	cq = ib_alloc_cq(live_dev, NULL, 4, vector, IB_POLL_WORKQUEUE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	late.handler = cq->comp_handler;
	cq->comp_handler = late_handler;
	/* This takes the event that was asked for; the next completion has none. */
	late_complete(test, p, cq, 0);
	KUNIT_EXPECT_TRUE(test, late_seen());
	late_complete(test, p, cq, 1);
	late.seen = false;
	late.stay = true;
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_TRUE(test, late_seen());
	late_free_cq(cq);
	KUNIT_EXPECT_EQ(test, late.left, late.stays);
	KUNIT_EXPECT_EQ(test, late.raced, late.stays);
	KUNIT_EXPECT_FALSE_MSG(test, late.too_late, "vector %u: work of a freed CQ", vector);
	return late.stays;
}

static void test_free_cq_in_handler(struct kunit *test)
{
	struct pair *p = pair_new(test, IB_POLL_WORKQUEUE);
	unsigned int vector, cpu;
	bool raced;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two processors");
	for (vector = 0; vector < live_dev->num_comp_vectors; vector++) {
		raced = false;
		for_each_online_cpu(cpu) {
			raced = late_round(test, p, vector, cpu);
			if (raced)
				break;
		}
		KUNIT_EXPECT_TRUE_MSG(test, raced, "vector %u", vector);
	}
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static struct kunit_case skua_kcq_cases[] = {
	KUNIT_CASE_SLOW(test_arm_then_poll),
	KUNIT_CASE_SLOW(test_missed_events),
	KUNIT_CASE_SLOW(test_adaptive_moderation),
	KUNIT_CASE_SLOW(test_free_cq_in_handler),
	{}
};

static struct kunit_suite skua_kcq_suite = {
	.name = "skua_kcq",
	.suite_init = live_init,
	.suite_exit = live_exit,
	.test_cases = skua_kcq_cases,
};

kunit_test_suite(skua_kcq_suite);

MODULE_DESCRIPTION("KUnit tests of kernel CQs on a Skua device");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("SKUA");
