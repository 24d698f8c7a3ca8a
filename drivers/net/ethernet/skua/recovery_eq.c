// SPDX-License-Identifier: GPL-2.0
/*
 * Loss recovery: from the device's reports to recovery.c, and from there to the recovery ring
 * of the QP. Documentation/recovery.rst describes it.
 *
 * Reports are handled by the work of the recovery EQ, and so is time: the timer of a QP, which
 * runs in soft interrupt context, has that work look at it. So what lies in the EQ is read before
 * it is decided that a packet is lost, however late the work is. The QP's state is found under
 * its lock. While the QP is paused reports are still taken, so that nothing is missing if it
 * goes on.
 */
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <kunit/visibility.h>

#include "recovery.h"
#include "skua.h"

/**
 * struct skua_qp_recovery - loss recovery of a QP
 * @dev: the function
 * @qpn: the QP
 * @lock: protects the fields below and the ring; taken with soft interrupts off
 * @paused: the device is told of no commands: one that ends the QP is on its way
 * @gone: the ring is not to be written, as it is about to be freed
 * @told: producer index that the device knows
 * @armed: time for which @timer is set, 0: it is not
 * @timer: the earliest time at which something has to be looked at, or an earlier one
 * @next: in the list of those that the EQ's work has reports of; the work's alone
 * @listed: it is in the list; the work's alone
 * @due: in dev->recovery_due, from when the timer expires until the work looks at it
 * @waits: it is in that list
 * @rcu: the EQ's work may still have it when it is removed
 * @state: what has arrived
 */
struct skua_qp_recovery {
	struct skua_dev *dev;
	u32 qpn;
	spinlock_t lock;		/* see above */
	bool paused;
	bool gone;
	u32 told;
	u64 armed;
	struct hrtimer timer;
	struct skua_qp_recovery *next;
	bool listed;
	struct llist_node due;
	bool waits;
	struct rcu_head rcu;
	struct skua_recovery state;
};

/* Tell the device of new commands, and be there in time. Under the lock; not while paused. */
static void skua_qp_recovery_act(struct skua_qp_recovery *rec, u64 now)
{
	struct skua_recovery *r = &rec->state;

	lockdep_assert_held(&rec->lock);
	if (r->pi != rec->told) {
		rec->told = r->pi;
		/* The ring is coherent memory: the doorbell's store is ordered behind it. */
		skua_ring_db(&rec->dev->uar, SKUA_UAR_RECOVERY, r->pi, rec->qpn);
	}
	/* A timer that expires too early costs less than to move it with each report. */
	if (!r->deadline || (rec->armed && rec->armed <= r->deadline))
		return;
	rec->armed = r->deadline;
	hrtimer_start(&rec->timer, ns_to_ktime(r->deadline > now ? r->deadline - now : 0),
		      HRTIMER_MODE_REL_SOFT);
}

static enum hrtimer_restart skua_qp_recovery_timer(struct hrtimer *timer)
{
	struct skua_qp_recovery *rec = container_of(timer, struct skua_qp_recovery, timer);
	struct skua_dev *dev = rec->dev;

	guard(spinlock)(&rec->lock);
	rec->armed = 0;
	/* Whoever ends the pause looks at the time. */
	if (rec->paused || rec->waits)
		return HRTIMER_NORESTART;
	rec->waits = true;
	llist_add(&rec->due, &dev->recovery_due);
	queue_work(dev->wq, &dev->recovery_eq.work);
	return HRTIMER_NORESTART;
}

/**
 * skua_recovery_report() - take a report of the device
 * @dev: the function
 * @e: the report
 *
 * By the work of the recovery EQ, in an RCU read-side section that lasts until
 * skua_recovery_flush() has returned.
 *
 * Return: false if there is no such QP.
 */
bool skua_recovery_report(struct skua_dev *dev, const struct skua_eqe_recovery *e)
{
	u32 qpn = le32_get_bits(e->qpn, SKUA_RECOVERY_QPN);
	struct skua_qp_recovery *rec;

	rec = xa_load(&dev->recoveries, skua_obj_index(&dev->qps, qpn));
	/* One of the QP that had this number before is of no interest, and no error. */
	if (!rec)
		return false;
	if (rec->qpn != qpn)
		return true;
	guard(spinlock_bh)(&rec->lock);
	if (rec->gone)
		return true;
	skua_recovery_event(&rec->state, e, ktime_get_ns());
	if (!rec->listed) {
		rec->listed = true;
		rec->next = dev->recovery_list;
		dev->recovery_list = rec;
	}
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_report);

/**
 * skua_recovery_flush() - do what the reports since the last call demand
 * @dev: the function
 */
void skua_recovery_flush(struct skua_dev *dev)
{
	struct skua_qp_recovery *rec;

	while ((rec = dev->recovery_list)) {
		u64 now;

		dev->recovery_list = rec->next;
		rec->listed = false;
		guard(spinlock_bh)(&rec->lock);
		if (rec->paused)
			continue;
		/* Under the lock: no time that was noted before is later. */
		now = ktime_get_ns();
		skua_recovery_judge(&rec->state, now);
		skua_qp_recovery_act(rec, now);
	}
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_flush);

/**
 * skua_recovery_expire() - look at the QPs whose timers have expired
 * @dev: the function
 *
 * By the work of the recovery EQ, when it has handled the reports that it found there, in
 * an RCU read-side section.
 */
void skua_recovery_expire(struct skua_dev *dev)
{
	struct skua_qp_recovery *rec, *next;

	llist_for_each_entry_safe(rec, next, llist_del_all(&dev->recovery_due), due) {
		u64 now;

		guard(spinlock_bh)(&rec->lock);
		rec->waits = false;
		if (rec->paused)
			continue;
		now = ktime_get_ns();
		skua_recovery_timer(&rec->state, now);
		skua_qp_recovery_act(rec, now);
	}
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_expire);

/**
 * skua_recovery_wanted() - who is to keep the loss state of QPs that leave INIT from now on?
 * @dev: the function
 *
 * Return: true for the driver, false for the device.
 */
bool skua_recovery_wanted(const struct skua_dev *dev)
{
	return dev->limits.caps & SKUA_CAP_RECOVERY && !READ_ONCE(dev->recovery_by_device);
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_wanted);

/**
 * skua_recovery_bytes() - size of a QP's recovery ring
 * @dev: the function
 *
 * Return: bytes, 0 if the device keeps the loss state.
 */
size_t skua_recovery_bytes(const struct skua_dev *dev)
{
	if (!skua_recovery_wanted(dev))
		return 0;
	return SKUA_RECOVERY_RING * sizeof(struct skua_recovery_cmd);
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_bytes);

/**
 * skua_recovery_add() - begin to serve a QP, which is about to leave INIT
 * @dev: the function, with SKUA_CAP_RECOVERY
 * @qp: the QP, which has its placement table and ring
 * @log_window: log2 of its window
 *
 * Return: 0 or a negative errno.
 */
int skua_recovery_add(struct skua_dev *dev, struct skua_qp *qp, u32 log_window)
{
	size_t table = SKUA_EXT_TABLE_BYTES(log_window);
	struct skua_qp_recovery *rec = kzalloc(sizeof(*rec), GFP_KERNEL_ACCOUNT);
	int err;

	if (!rec)
		return -ENOMEM;
	rec->dev = dev;
	rec->qpn = qp->obj.num;
	spin_lock_init(&rec->lock);
	hrtimer_setup(&rec->timer, skua_qp_recovery_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	skua_recovery_init(&rec->state, qp->ext.va + table, log_window);
	err = xa_err(xa_store(&dev->recoveries, skua_obj_index(&dev->qps, rec->qpn), rec,
			      GFP_KERNEL_ACCOUNT));
	if (err) {
		kfree(rec);
		return err;
	}
	qp->recovery = rec;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_add);

/**
 * skua_recovery_pause() - write no commands, as a command that ends the QP is on its way
 * @qp: the QP
 * @pause: false: that command was refused, go on
 *
 * What is reported meanwhile is remembered, and the timer may expire in vain: whoever goes on
 * looks at both anew.
 */
void skua_recovery_pause(struct skua_qp *qp, bool pause)
{
	struct skua_qp_recovery *rec = qp->recovery;
	u64 now;

	if (!rec)
		return;
	guard(spinlock_bh)(&rec->lock);
	rec->paused = pause;
	if (pause)
		return;
	now = ktime_get_ns();
	skua_recovery_judge(&rec->state, now);
	skua_qp_recovery_act(rec, now);
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_pause);

/**
 * skua_recovery_del() - end what skua_recovery_add() began
 * @dev: the function
 * @qp: the QP, which the device reports nothing of any more; its ring is not written any more
 *	on return
 *
 * No report of it is left on return: one that is handled later would be taken for one of the
 * QP that gets the same number next, or of this one after RESET.
 */
void skua_recovery_del(struct skua_dev *dev, struct skua_qp *qp)
{
	struct skua_qp_recovery *rec = qp->recovery;

	if (!rec)
		return;
	skua_recovery_pause(qp, true);
	/* Paused, it is not started again. */
	hrtimer_cancel(&rec->timer);
	skua_eq_flush_recovery(dev);
	xa_erase(&dev->recoveries, skua_obj_index(&dev->qps, rec->qpn));
	scoped_guard(spinlock_bh, &rec->lock)
		rec->gone = true;
	atomic64_add(rec->state.bad, &dev->recovery_bad);
	atomic64_add(rec->state.stale, &dev->recovery_stale);
	qp->recovery = NULL;
	kfree_rcu(rec, rcu);
}
EXPORT_SYMBOL_IF_KUNIT(skua_recovery_del);

/* --- debugfs: file position 0 is the header, position n the index n - 1 --- */

static void *recovery_find(struct skua_dev *dev, loff_t *pos)
{
	unsigned long index = *pos - 1;
	struct skua_qp_recovery *rec = xa_find(&dev->recoveries, &index, ULONG_MAX, XA_PRESENT);

	if (rec)
		*pos = index + 1;
	return rec;
}

static void *recovery_start(struct seq_file *s, loff_t *pos)
	__acquires(RCU)
{
	rcu_read_lock();
	return *pos ? recovery_find(s->private, pos) : SEQ_START_TOKEN;
}

static void *recovery_next(struct seq_file *s, void *v, loff_t *pos)
{
	++*pos;
	return recovery_find(s->private, pos);
}

static void recovery_stop(struct seq_file *s, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

/* Of all QPs, those that are gone among them. */
static void recovery_show_sums(struct seq_file *s, struct skua_dev *dev)
{
	u64 bad = atomic64_read(&dev->recovery_bad), stale = atomic64_read(&dev->recovery_stale);
	struct skua_qp_recovery *rec;
	unsigned long index;

	xa_for_each(&dev->recoveries, index, rec) {
		guard(spinlock_bh)(&rec->lock);
		bad += rec->state.bad;
		stale += rec->state.stale;
	}
	seq_printf(s, "bad %llu stale %llu\n", bad, stale);
}

static int recovery_show(struct seq_file *s, void *v)
{
	struct skua_qp_recovery *rec = v;
	struct skua_recovery *r;

	if (v == SEQ_START_TOKEN) {
		recovery_show_sums(s, s->private);
		seq_puts(s, "qpn open serial una max window distance wait_ns extra_ns rtt_ns probes commands done bad stale\n");
		return 0;
	}
	r = &rec->state;
	guard(spinlock_bh)(&rec->lock);
	seq_printf(s, "%#x %u %u %u %u %u %u %llu %llu %llu %u %u %u %llu %llu\n", rec->qpn,
		   r->open, r->serial, r->una, r->max, r->window, r->distance, r->wait, r->extra,
		   r->rtt, r->probes, r->pi, r->done, r->bad, r->stale);
	return 0;
}

static const struct seq_operations recovery_sops = {
	.start = recovery_start,
	.next = recovery_next,
	.stop = recovery_stop,
	.show = recovery_show,
};
DEFINE_SEQ_ATTRIBUTE(recovery);

/**
 * skua_recovery_debugfs_up() - create the file of a device that is up
 * @dev: the function
 *
 * Return: the file, NULL if the device keeps the loss state of all QPs.
 */
struct dentry *skua_recovery_debugfs_up(struct skua_dev *dev)
{
	if (!(dev->limits.caps & SKUA_CAP_RECOVERY))
		return NULL;
	return debugfs_create_file("recovery", 0400, dev->debugfs, dev, &recovery_fops);
}
