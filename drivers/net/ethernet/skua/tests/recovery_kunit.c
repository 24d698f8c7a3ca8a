// SPDX-License-Identifier: GPL-2.0
/*
 * Loss recovery: reports to the right QP, commands and the doorbell for them, time, and the
 * end of a QP while all that goes on. The rules have a test of their own in user space.
 */
#include <linux/delay.h>

#include "fake.h"
#include "../recovery.h"

#define LOG_WINDOW	SKUA_EXT_LOG_WINDOW_MAX
#define TABLE		SKUA_EXT_TABLE_BYTES(LOG_WINDOW)
#define LOG_QPS		10
#define LOG_EQ		4
#define QPN(n)		(0x400000 | (n))
#define SERIAL		77
#define UNA		0xfffff0U

/**
 * struct rt - a device and two QPs
 * @fake: the function
 * @qp: the QPs
 * @pi: reports in the EQ, so far
 */
struct rt {
	struct fake *fake;
	struct skua_qp qp[2];
	u32 pi;
};

static void rt_exit(void *data)
{
	struct rt *t = data;
	struct skua_dev *dev = &t->fake->dev;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(t->qp); i++) {
		skua_recovery_del(dev, &t->qp[i]);
		skua_buf_free(dev, &t->qp[i].ext);
	}
	flush_work(&dev->recovery_eq.work);
	skua_buf_free(dev, &dev->recovery_eq.buf);
	skua_obj_table_exit(&dev->qps);
}

/* The recovery EQ, whose work runs when it is told to. */
static void make_eq(struct kunit *test, struct skua_dev *dev)
{
	struct skua_eq *eq = &dev->recovery_eq;

	eq->dev = dev;
	eq->eqn = SKUA_EQN_RECOVERY;
	eq->log_size = LOG_EQ;
	INIT_WORK(&eq->work, skua_eq_work);
	KUNIT_ASSERT_EQ(test, skua_buf_alloc(dev, &eq->buf, sizeof(struct skua_eqe) << LOG_EQ),
			0);
	eq->created = true;
}

static int recovery_init(struct kunit *test)
{
	struct rt *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct skua_dev *dev;
	unsigned int i;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	t->fake = fake_create(test);
	dev = &t->fake->dev;
	dev->limits.caps = SKUA_CAP_SR | SKUA_CAP_RECOVERY;
	xa_init(&dev->recoveries);
	skua_obj_table_init(&dev->qps, 2, BIT(LOG_QPS) - 1, LOG_QPS, 24);
	make_eq(test, dev);
	err = kunit_add_action_or_reset(test, rt_exit, t);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(t->qp); i++) {
		t->qp[i].obj.num = QPN(i + 2);
		KUNIT_ASSERT_EQ(test, skua_buf_alloc(dev, &t->qp[i].ext,
						     TABLE + skua_recovery_bytes(dev)), 0);
		KUNIT_ASSERT_EQ(test, skua_recovery_add(dev, &t->qp[i], LOG_WINDOW), 0);
	}
	return 0;
}

/* A report of 32 packets from UNA on, of which @bits arrived. */
static struct skua_eqe_recovery make_report(u32 qpn, u32 kind, u64 bits)
{
	return (struct skua_eqe_recovery){
		.qpn = cpu_to_le32(qpn),
		.serial = cpu_to_le32(SERIAL),
		.una = cpu_to_le32(UNA),
		.what = le32_encode_bits(kind, SKUA_RECOVERY_KIND) |
			le32_encode_bits(32, SKUA_RECOVERY_MAX),
		.bits = cpu_to_le64(bits),
	};
}

/* The device writes a report into the EQ; the interrupt has not come yet. */
static void produce(struct rt *t, u32 qpn, u32 kind, u64 bits)
{
	const struct skua_eqe_recovery e = make_report(qpn, kind, bits);
	struct skua_eq *eq = &t->fake->dev.recovery_eq;
	struct skua_eqe *eqe = eq->buf.va + (t->pi & (BIT(LOG_EQ) - 1)) * sizeof(*eqe);
	u32 phase = !(t->pi++ >> LOG_EQ & 1);

	memcpy(eqe, &e, sizeof(e));
	eqe->what = le32_encode_bits(SKUA_EQE_RECOVERY, SKUA_EQE_TYPE);
	/* The phase last, as a device does. */
	dma_wmb();
	WRITE_ONCE(eqe->own, le32_encode_bits(phase, SKUA_EQE_PHASE));
}

static void interrupt(struct rt *t)
{
	struct skua_dev *dev = &t->fake->dev;

	queue_work(dev->wq, &dev->recovery_eq.work);
	flush_work(&dev->recovery_eq.work);
}

static bool report(struct rt *t, u32 qpn, u32 kind, u64 bits)
{
	const struct skua_eqe_recovery e = make_report(qpn, kind, bits);
	bool found;

	rcu_read_lock();
	found = skua_recovery_report(&t->fake->dev, &e);
	skua_recovery_flush(&t->fake->dev);
	rcu_read_unlock();
	return found;
}

/* What the device was told last: index and QPN. */
static u64 doorbell(struct rt *t)
{
	return readq(t->fake->dev.uar.map + SKUA_UAR_RECOVERY);
}

static const struct skua_recovery_cmd *ring(struct rt *t, unsigned int qp)
{
	return t->qp[qp].ext.va + TABLE;
}

/* Wait for the doorbell, not longer than a slow machine may take. */
static void wait_doorbell(struct kunit *test, u64 old)
{
	struct rt *t = test->priv;
	unsigned int n;

	for (n = 0; n < 10000 && doorbell(t) == old; n++)
		usleep_range(100, 200);
	KUNIT_EXPECT_NE(test, doorbell(t), old);
}

/* What is lost is known by time: the timer has it sent again, and rings for that QP alone. */
static void test_lost(struct kunit *test)
{
	struct rt *t = test->priv;

	/* So long that nothing is asked for before the second report, however busy the machine. */
	KUNIT_EXPECT_TRUE(test, report(t, QPN(3), SKUA_RECOVERY_OPEN, 50 * NSEC_PER_MSEC));
	KUNIT_EXPECT_EQ(test, doorbell(t), 0);
	/* The first and the third are missing. */
	KUNIT_EXPECT_TRUE(test, report(t, QPN(3), SKUA_RECOVERY_ARRIVED, 0xa));
	wait_doorbell(test, 0);
	KUNIT_EXPECT_EQ(test, upper_32_bits(doorbell(t)), QPN(3));
	KUNIT_EXPECT_GE(test, lower_32_bits(doorbell(t)), 2);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ring(t, 1)[0].op), SKUA_RECOVERY_SEND);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ring(t, 1)[0].serial), SERIAL);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ring(t, 1)[0].first), UNA);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ring(t, 1)[0].end), UNA + 1);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ring(t, 1)[1].first), UNA + 2);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(ring(t, 1)[1].end), UNA + 3);
	KUNIT_EXPECT_NULL(test, memchr_inv(ring(t, 0), 0, skua_recovery_bytes(&t->fake->dev)));
}

/* Reports of QPs that there are not: one is an error, that of a former one is not. */
static void test_nobody(struct kunit *test)
{
	struct rt *t = test->priv;

	KUNIT_EXPECT_FALSE(test, report(t, QPN(9), SKUA_RECOVERY_OPEN, 0));
	KUNIT_EXPECT_TRUE(test, report(t, 0x800002, SKUA_RECOVERY_PROBE, 0));
	KUNIT_EXPECT_EQ(test, doorbell(t), 0);
	skua_recovery_del(&t->fake->dev, &t->qp[0]);
	KUNIT_EXPECT_FALSE(test, report(t, QPN(2), SKUA_RECOVERY_PROBE, 0));
	KUNIT_EXPECT_EQ(test, doorbell(t), 0);
	KUNIT_EXPECT_NULL(test, t->qp[0].recovery);
	/* Twice does nothing. */
	skua_recovery_del(&t->fake->dev, &t->qp[0]);
	KUNIT_EXPECT_TRUE(test, report(t, QPN(3), SKUA_RECOVERY_PROBE, NSEC_PER_SEC));
	KUNIT_EXPECT_EQ(test, doorbell(t), (u64)QPN(3) << 32 | 1);
}

/* While the QP may end nothing is written; if it does not, all goes on. */
static void test_pause(struct kunit *test)
{
	struct rt *t = test->priv;
	u64 old;

	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_OPEN, 20000));
	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_ARRIVED, 2));
	skua_recovery_pause(&t->qp[0], true);
	old = doorbell(t);
	usleep_range(3000, 4000);
	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_PROBE, 0));
	KUNIT_EXPECT_EQ(test, doorbell(t), old);
	/* What was reported meanwhile is not forgotten. */
	skua_recovery_pause(&t->qp[0], false);
	KUNIT_EXPECT_NE(test, doorbell(t), old);
}

/* The timer expires while the QP is paused: it runs again if the QP goes on. */
static void test_pause_timer(struct kunit *test)
{
	struct rt *t = test->priv;
	u64 old;

	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_OPEN, 5 * NSEC_PER_MSEC));
	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_ARRIVED, 2));
	skua_recovery_pause(&t->qp[0], true);
	old = doorbell(t);
	msleep(20);
	KUNIT_EXPECT_EQ(test, doorbell(t), old);
	skua_recovery_pause(&t->qp[0], false);
	wait_doorbell(test, old);
	/* The device does not tell that it sent anything: it is told again. */
	wait_doorbell(test, doorbell(t));
}

/*
 * The timer expires, but the work that looks at the QP then runs only when it is paused: nothing
 * is written until the QP goes on.
 */
static void test_pause_due(struct kunit *test)
{
	struct rt *t = test->priv;
	struct skua_dev *dev = &t->fake->dev;
	struct work_struct *work = &dev->recovery_eq.work;
	unsigned int n;
	u64 old;

	disable_work_sync(work);
	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_OPEN, 5 * NSEC_PER_MSEC));
	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_ARRIVED, 2));
	for (n = 0; n < 10000 && llist_empty(&dev->recovery_due); n++)
		usleep_range(100, 200);
	KUNIT_EXPECT_FALSE(test, llist_empty(&dev->recovery_due));
	old = doorbell(t);
	skua_recovery_pause(&t->qp[0], true);
	rcu_read_lock();
	skua_recovery_expire(dev);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, doorbell(t), old);
	enable_work(work);
	skua_recovery_pause(&t->qp[0], false);
	wait_doorbell(test, old);
}

/* What is in the EQ when a QP ends is nothing to the one that has its number next. */
static void test_outlived(struct kunit *test)
{
	struct rt *t = test->priv;
	struct skua_dev *dev = &t->fake->dev;

	produce(t, QPN(2), SKUA_RECOVERY_PROBE, 0);
	produce(t, QPN(2), SKUA_RECOVERY_PROBE, 0);
	skua_recovery_pause(&t->qp[0], true);
	skua_recovery_del(dev, &t->qp[0]);
	KUNIT_ASSERT_EQ(test, skua_recovery_add(dev, &t->qp[0], LOG_WINDOW), 0);
	interrupt(t);
	KUNIT_EXPECT_EQ(test, doorbell(t), 0);
	/* It belonged to somebody. */
	KUNIT_EXPECT_EQ(test, dev->recovery_eq.bad, 0);
	KUNIT_EXPECT_EQ(test, dev->recovery_eq.ci, 2);
	/* The next is not asked for within a second. */
	produce(t, QPN(2), SKUA_RECOVERY_PROBE, NSEC_PER_SEC);
	interrupt(t);
	KUNIT_EXPECT_EQ(test, doorbell(t), (u64)QPN(2) << 32 | 1);
}

/* Who keeps the loss state of the next QP. */
static void test_wanted(struct kunit *test)
{
	struct rt *t = test->priv;
	struct skua_dev *dev = &t->fake->dev;

	KUNIT_EXPECT_EQ(test, skua_recovery_bytes(dev),
			SKUA_RECOVERY_RING * sizeof(struct skua_recovery_cmd));
	dev->recovery_by_device = true;
	KUNIT_EXPECT_FALSE(test, skua_recovery_wanted(dev));
	KUNIT_EXPECT_EQ(test, skua_recovery_bytes(dev), 0);
	dev->recovery_by_device = false;
	KUNIT_EXPECT_TRUE(test, skua_recovery_wanted(dev));
	dev->limits.caps = SKUA_CAP_SR;
	KUNIT_EXPECT_FALSE(test, skua_recovery_wanted(dev));
	KUNIT_EXPECT_EQ(test, skua_recovery_bytes(dev), 0);
}

/* Reports that cannot be, and those of another time, are counted, and outlive the QP. */
static void test_counts(struct kunit *test)
{
	struct rt *t = test->priv;
	struct skua_dev *dev = &t->fake->dev;

	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), 0, 0));
	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), 15, 0));
	KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_ARRIVED, 1));
	KUNIT_EXPECT_EQ(test, atomic64_read(&dev->recovery_bad), 0);
	skua_recovery_del(dev, &t->qp[0]);
	KUNIT_EXPECT_EQ(test, atomic64_read(&dev->recovery_bad), 2);
	KUNIT_EXPECT_EQ(test, atomic64_read(&dev->recovery_stale), 1);
}

/* With the timer set. */
static void test_del(struct kunit *test)
{
	struct rt *t = test->priv;
	unsigned int n;
	u64 old;

	for (n = 0; n < 100; n++) {
		struct skua_dev *dev = &t->fake->dev;

		KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_OPEN, 20000));
		KUNIT_EXPECT_TRUE(test, report(t, QPN(2), SKUA_RECOVERY_ARRIVED, 2));
		usleep_range(1 + n % 40, 2 + n % 40);
		skua_recovery_del(dev, &t->qp[0]);
		old = doorbell(t);
		usleep_range(50, 100);
		KUNIT_EXPECT_EQ(test, doorbell(t), old);
		KUNIT_ASSERT_EQ(test, skua_recovery_add(dev, &t->qp[0], LOG_WINDOW), 0);
	}
}

/*
 * The time after which a packet counts as lost is over, but the EQ has the report that it
 * arrived, though no interrupt has come: nothing is sent again.
 */
static void test_told_late(struct kunit *test)
{
	struct rt *t = test->priv;
	struct skua_eq *eq = &t->fake->dev.recovery_eq;
	unsigned int n;

	/* First, or the time may be over before it is there. */
	produce(t, QPN(3), SKUA_RECOVERY_ARRIVED, 0x5);
	KUNIT_EXPECT_TRUE(test, report(t, QPN(3), SKUA_RECOVERY_OPEN, 50 * NSEC_PER_MSEC));
	KUNIT_EXPECT_TRUE(test, report(t, QPN(3), SKUA_RECOVERY_ARRIVED, 0xa));
	for (n = 0; n < 10000 && !READ_ONCE(eq->ci) && !doorbell(t); n++)
		usleep_range(100, 200);
	flush_work(&eq->work);
	KUNIT_EXPECT_EQ(test, eq->ci, 1);
	KUNIT_EXPECT_EQ(test, doorbell(t), 0);
}

static struct kunit_case skua_recovery_cases[] = {
	KUNIT_CASE(test_lost),
	KUNIT_CASE(test_told_late),
	KUNIT_CASE(test_nobody),
	KUNIT_CASE(test_pause),
	KUNIT_CASE(test_pause_timer),
	KUNIT_CASE(test_pause_due),
	KUNIT_CASE(test_outlived),
	KUNIT_CASE(test_wanted),
	KUNIT_CASE(test_counts),
	KUNIT_CASE(test_del),
	{}
};

struct kunit_suite skua_recovery_suite = {
	.name = "skua_recovery",
	.init = recovery_init,
	.test_cases = skua_recovery_cases,
};
