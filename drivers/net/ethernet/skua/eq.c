// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues and interrupts.
 *
 * Command and completion EQs are polled by the hard interrupt handler, the async EQ, the page
 * fault EQ and the recovery EQ by work items of their own: the callbacks of the first two may
 * sleep, and those of the third take long. The device never overflows an EQ: events for which
 * there is no room stay pending in its contexts, and without room in the recovery EQ it goes back.
 */
#include <kunit/visibility.h>
#include <linux/cpumask.h>
#include <linux/interrupt.h>
#include <linux/rcupdate.h>

#include <skua/cqe_parse.h>

#include "skua.h"
#include "trace.h"

#define SKUA_EQ_LOG_CMD		7
#define SKUA_EQ_LOG_ASYNC	10
#define SKUA_EQ_LOG_FAULT	8
/* What does not fit has the QP go back: room for a few reports of each of many QPs. */
#define SKUA_EQ_LOG_RECOVERY	12
#define SKUA_EQ_LOG_COMP	10

/* Each command slot has at most one outstanding event. */
static_assert(SKUA_EQ_LOG_CMD >= SKUA_CMDQ_LOG_SLOTS);

static void skua_eq_comp(struct skua_eq *eq, u32 cqn)
{
	struct skua_cq *cq;

	guard(rcu)();
	/* @cqs has only CQs of this EQ, whose end waits for this by skua_eq_sync_comp(). */
	cq = xa_load(&eq->cqs, cqn);
	if (!cq)
		eq->bad++;
	else if (cq->comp)
		cq->comp(cq);
}

static void skua_eq_qp(struct skua_eq *eq, u32 qpn, u32 event)
{
	struct skua_obj *obj = skua_obj_get(&eq->dev->qps, qpn);
	struct skua_qp *qp;

	if (!obj) {
		eq->bad++;
		return;
	}
	qp = container_of(obj, struct skua_qp, obj);
	if (event >= SKUA_QP_EV_COUNT)
		eq->bad++;
	else if (qp->event)
		qp->event(qp, event);
	skua_obj_put(obj);
}

static void skua_eq_cq_err(struct skua_eq *eq, u32 cqn, u32 why)
{
	struct skua_obj *obj = skua_obj_get(&eq->dev->cqs, cqn);
	struct skua_cq *cq;

	if (!obj) {
		eq->bad++;
		return;
	}
	cq = container_of(obj, struct skua_cq, obj);
	if (cq->event)
		cq->event(cq, why);
	skua_obj_put(obj);
}

static void skua_eq_srq(struct skua_eq *eq, u32 srqn, enum skua_eqe_type type)
{
	struct skua_obj *obj = skua_obj_get(&eq->dev->srqs, srqn);
	struct skua_srq *srq;

	if (!obj) {
		eq->bad++;
		return;
	}
	srq = container_of(obj, struct skua_srq, obj);
	if (srq->event)
		srq->event(srq, type);
	skua_obj_put(obj);
}

static void skua_eq_async(struct skua_eq *eq, enum skua_eqe_type type, u32 num, u32 subtype)
{
	struct skua_dev *dev = eq->dev;

	switch (type) {
	case SKUA_EQE_QP:
		skua_eq_qp(eq, num, subtype);
		break;
	case SKUA_EQE_CQ_ERR:
		skua_eq_cq_err(eq, num, subtype);
		break;
	case SKUA_EQE_SRQ_LIMIT:
	case SKUA_EQE_SRQ_ERR:
		skua_eq_srq(eq, num, type);
		break;
	case SKUA_EQE_PORT:
		queue_work(dev->wq, &dev->port_work);
		break;
	case SKUA_EQE_FATAL:
		skua_declare_dead(dev, "fatal event");
		break;
	default:
		eq->bad++;
		break;
	}
}

static void skua_eq_fault(struct skua_eq *eq, const struct skua_eqe *eqe)
{
	struct skua_page_fault fault;
	struct skua_eqe_fault in;

	memcpy(&in, eqe, sizeof(in));
	fault = (struct skua_page_fault) {
		.qpn = le32_to_cpu(in.qpn),
		.key = le32_to_cpu(in.key),
		.va = le64_to_cpu(in.va),
		.len = le32_to_cpu(in.len),
		.token = le32_get_bits(in.token, SKUA_EQE_FAULT_TOKEN),
		.write = le32_get_bits(in.token, SKUA_EQE_FAULT_WRITE),
	};
	skua_fault_raise(eq->dev, &fault);
}

static void skua_eq_recovery(struct skua_eq *eq, const struct skua_eqe *eqe)
{
	struct skua_eqe_recovery report;

	memcpy(&report, eqe, sizeof(report));
	if (!skua_recovery_report(eq->dev, &report))
		eq->bad++;
}

static void skua_eq_dispatch(struct skua_eq *eq, const struct skua_eqe *eqe)
{
	u32 type = le32_get_bits(eqe->what, SKUA_EQE_TYPE);
	u32 subtype = le32_get_bits(eqe->what, SKUA_EQE_SUBTYPE);
	u32 num = le32_to_cpu(eqe->num);

	trace_skua_eqe(eq->dev, eq->eqn, eq->ci, type, subtype, num);
	if (type == SKUA_EQE_COMP)
		skua_eq_comp(eq, num);
	else if (type == SKUA_EQE_CMD)
		skua_cmd_complete(eq->dev, num);
	else if (type == SKUA_EQE_PAGE_FAULT && eq->eqn == SKUA_EQN_FAULT)
		skua_eq_fault(eq, eqe);
	else if (type == SKUA_EQE_RECOVERY && eq->eqn == SKUA_EQN_RECOVERY)
		skua_eq_recovery(eq, eqe);
	else if (eq->eqn == SKUA_EQN_ASYNC)
		skua_eq_async(eq, type, num, subtype);
	else
		eq->bad++;
}

/* Write an EQ's consumer index and arm it. */
static void skua_eq_arm(struct skua_eq *eq)
{
	skua_ring_db(&eq->dev->uar, SKUA_UAR_EQ, eq->ci,
		     u32_encode_bits(eq->eqn, SKUA_UAR_EQ_EQN) | SKUA_UAR_EQ_ARM);
}

/**
 * skua_eq_poll() - handle the events in an EQ, then arm it
 * @eq: the EQ; callers are serialized
 *
 * Bounded: if there are more events, the device interrupts as soon as the EQ is armed.
 *
 * Return: the number of events.
 */
unsigned int skua_eq_poll(struct skua_eq *eq)
{
	u32 budget = min(SKUA_EQ_BUDGET, 1U << eq->log_size);
	struct skua_eqe *ring = eq->buf.va;
	unsigned int n;

	for (n = 0; n < budget; n++) {
		struct skua_eqe *eqe = &ring[eq->ci & ((1U << eq->log_size) - 1)];
		struct skua_eqe copy;

		if (!skua_eqe_is_new(eqe, eq->ci, eq->log_size))
			break;
		/* Read the entry after its phase bit. */
		dma_rmb();
		copy = *eqe;
		skua_eq_dispatch(eq, &copy);
		eq->ci++;
	}
	eq->count += n;
	skua_eq_arm(eq);
	return n;
}
EXPORT_SYMBOL_IF_KUNIT(skua_eq_poll);

/**
 * skua_eq_work() - handle the events of an EQ in process context
 * @work: the EQ's
 */
void skua_eq_work(struct work_struct *work)
{
	struct skua_eq *eq = container_of(work, struct skua_eq, work);
	bool recovery = eq->eqn == SKUA_EQN_RECOVERY;
	unsigned int n;
	u32 i;

	/*
	 * Handle at least as many events as the ring holds, because skua_eq_flush() relies on
	 * it, but not more, in case the device keeps writing.
	 */
	for (i = 0; i <= 1U << eq->log_size; i += SKUA_EQ_BUDGET) {
		/* QPs stay until what was reported of them was acted upon, all of a QP at once. */
		if (recovery)
			rcu_read_lock();
		n = skua_eq_poll(eq);
		if (recovery) {
			skua_recovery_flush(eq->dev);
			rcu_read_unlock();
		}
		if (n < SKUA_EQ_BUDGET)
			break;
		cond_resched();
	}
	if (recovery) {
		rcu_read_lock();
		skua_recovery_expire(eq->dev);
		rcu_read_unlock();
	}
}
EXPORT_SYMBOL_IF_KUNIT(skua_eq_work);

static irqreturn_t skua_irq(int irq, void *data)
{
	struct skua_vector *v = data;
	unsigned int i;

	for (i = 0; i < v->num_eqs; i++) {
		struct skua_eq *eq = v->eq[i];

		/* Acquire: pairs with the release in skua_eq_create(). */
		if (!smp_load_acquire(&eq->created))
			continue;
		if (eq->defer)
			queue_work(eq->dev->wq, &eq->work);
		else
			skua_eq_poll(eq);
	}
	/* May be spurious, if an event was handled before the EQ was armed. */
	return IRQ_HANDLED;
}

/**
 * skua_eq_kick() - poll the EQs of work items without an interrupt
 * @dev: the function
 */
void skua_eq_kick(struct skua_dev *dev)
{
	if (dev->async_eq.created)
		queue_work(dev->wq, &dev->async_eq.work);
	if (dev->fault_eq.created)
		queue_work(dev->wq, &dev->fault_eq.work);
	if (dev->recovery_eq.created)
		queue_work(dev->wq, &dev->recovery_eq.work);
}

static void skua_eq_flush(struct skua_dev *dev, struct skua_eq *eq)
{
	if (eq->created)
		queue_work(dev->wq, &eq->work);
	flush_work(&eq->work);
}

/**
 * skua_eq_flush_async() - wait until the async events that are in the EQ are handled
 * @dev: the function
 *
 * Called after the destroy command of an object: its last events are in the EQ by then,
 * whether or not an interrupt has arrived. Must not be called from an event callback.
 */
void skua_eq_flush_async(struct skua_dev *dev)
{
	skua_eq_flush(dev, &dev->async_eq);
}

/**
 * skua_eq_flush_comp() - handle the completion events that are in the EQ
 * @dev: the function
 * @vector: completion vector of the EQ
 *
 * Called after the destroy command of a CQ, before its number can be reused: its last events
 * are in the EQ by then, and would be taken for those of the next CQ of this number.
 *
 * Context: process; not from a callback.
 */
void skua_eq_flush_comp(struct skua_dev *dev, unsigned int vector)
{
	struct skua_eq *eq = &dev->comp_eq[vector];
	int irq = skua_comp_vector_irq(dev, vector);
	unsigned int n;
	u32 i;

	guard(mutex)(&eq->flush_lock);
	if (irq)
		disable_irq(irq);
	/* The whole ring, but not more, in case the device keeps writing. */
	for (i = 0; i <= 1U << eq->log_size; i += SKUA_EQ_BUDGET) {
		/* Callbacks run as in the interrupt handler, which is a thread with PREEMPT_RT. */
		local_bh_disable();
		if (!IS_ENABLED(CONFIG_PREEMPT_RT))
			local_irq_disable();
		n = skua_eq_poll(eq);
		if (!IS_ENABLED(CONFIG_PREEMPT_RT))
			local_irq_enable();
		local_bh_enable();
		if (n < SKUA_EQ_BUDGET)
			break;
	}
	if (irq)
		enable_irq(irq);
}

/**
 * skua_eq_sync_comp() - wait until callbacks of an EQ's CQs that have begun are over
 * @dev: the function
 * @vector: completion vector of the EQ
 *
 * They run in the interrupt handler, and in skua_eq_flush_comp() on behalf of any CQ of the EQ.
 *
 * Context: process; not from a callback.
 */
void skua_eq_sync_comp(struct skua_dev *dev, unsigned int vector)
{
	struct skua_eq *eq = &dev->comp_eq[vector];

	mutex_lock(&eq->flush_lock);
	mutex_unlock(&eq->flush_lock);
	synchronize_irq(skua_comp_vector_irq(dev, vector));
}

/**
 * skua_eq_flush_recovery() - wait until the loss reports that are in the EQ are handled
 * @dev: the function, with SKUA_CAP_RECOVERY
 *
 * As skua_eq_flush_async(), after a command that ends a QP or takes it to RESET.
 */
void skua_eq_flush_recovery(struct skua_dev *dev)
{
	skua_eq_flush(dev, &dev->recovery_eq);
}
EXPORT_SYMBOL_IF_KUNIT(skua_eq_flush_recovery);

/* --- Creation and destruction --- */

static int skua_eq_create(struct skua_dev *dev, struct skua_eq *eq)
{
	struct skua_cmd_create_eq_in in = {
		.eqc.flags = le32_encode_bits(eq->log_size, SKUA_EQC_LOG_SIZE) |
			     le32_encode_bits(eq->vector, SKUA_EQC_VECTOR),
		.eqc.uar = cpu_to_le32(dev->uar.index),
		.eqc.eqn = cpu_to_le32(eq->eqn),
	};
	int err;

	err = skua_buf_alloc(dev, &eq->buf, sizeof(struct skua_eqe) << eq->log_size);
	if (err)
		return err;
	err = skua_icm_get(dev, SKUA_ICM_EQC, eq->eqn);
	if (err)
		goto err_buf;
	in.eqc.base = cpu_to_le64(eq->buf.dma);
	err = skua_cmd_in(dev, SKUA_CMD_CREATE_EQ, &in);
	if (err)
		goto err_icm;
	/* Release: the interrupt handler sees a complete EQ. */
	smp_store_release(&eq->created, true);
	skua_eq_arm(eq);
	return 0;

err_icm:
	skua_icm_put(dev, SKUA_ICM_EQC, eq->eqn);
err_buf:
	skua_buf_free(dev, &eq->buf);
	return err;
}

static void skua_eq_destroy(struct skua_dev *dev, struct skua_eq *eq)
{
	if (!eq->created)
		return;
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_EQ, eq->eqn);
	WRITE_ONCE(eq->created, false);
	if (dev->vectors[eq->vector].irq)
		synchronize_irq(dev->vectors[eq->vector].irq);
	cancel_work_sync(&eq->work);
	WARN_ON_ONCE(!xa_empty(&eq->cqs));
	skua_icm_put(dev, SKUA_ICM_EQC, eq->eqn);
	skua_buf_free(dev, &eq->buf);
}

static void skua_eq_setup(struct skua_dev *dev, struct skua_eq *eq, u32 eqn,
			  unsigned int vector, u8 log_size)
{
	struct skua_vector *v = &dev->vectors[vector];

	memset(eq, 0, sizeof(*eq));
	eq->dev = dev;
	eq->eqn = eqn;
	eq->vector = vector;
	eq->log_size = min_t(u32, log_size, ilog2(dev->limits.max_eqe));
	eq->defer = eqn == SKUA_EQN_ASYNC || eqn == SKUA_EQN_FAULT || eqn == SKUA_EQN_RECOVERY;
	xa_init_flags(&eq->cqs, XA_FLAGS_ACCOUNT);
	INIT_WORK(&eq->work, skua_eq_work);
	mutex_init(&eq->flush_lock);
	v->eq[v->num_eqs++] = eq;
}

static int skua_vector_request(struct skua_dev *dev, unsigned int i)
{
	struct skua_vector *v = &dev->vectors[i];
	int irq = pci_irq_vector(dev->pdev, i);
	unsigned int cpu;
	int err;

	snprintf(v->name, sizeof(v->name), "skua%u@pci:%s", i, pci_name(dev->pdev));
	err = request_irq(irq, skua_irq, 0, v->name, v);
	if (err)
		return err;
	v->irq = irq;
	/* Vector 0 is for commands and rare events: leave it to irqbalance. */
	if (i) {
		cpu = cpumask_local_spread(i - 1, dev_to_node(dev->dev));
		irq_set_affinity_and_hint(irq, get_cpu_mask(cpu));
	}
	return 0;
}

/**
 * skua_irqs_init() - allocate interrupt vectors and assign EQs to them
 * @dev: the function, whose limits are known
 *
 * One vector is for commands and async events, and one per CPU for completions; with
 * fewer vectors they are shared.
 *
 * Return: 0 or a negative errno.
 */
int skua_irqs_init(struct skua_dev *dev)
{
	unsigned int i, want = min_t(u32, num_online_cpus() + 1, dev->max_vectors);
	int num, err;

	num = pci_alloc_irq_vectors(dev->pdev, 1, max(want, 1U), PCI_IRQ_MSIX);
	if (num < 0)
		return num;
	dev->vectors = kcalloc(num, sizeof(*dev->vectors), GFP_KERNEL);
	dev->num_comp = max(num - 1, 1);
	dev->comp_eq = kcalloc(dev->num_comp, sizeof(*dev->comp_eq), GFP_KERNEL);
	if (!dev->vectors || !dev->comp_eq) {
		err = -ENOMEM;
		goto err_free;
	}
	dev->num_vectors = num;

	/* Before the first interrupt: the handler walks these without a lock. */
	skua_eq_setup(dev, &dev->cmd_eq, SKUA_EQN_CMD, 0, SKUA_EQ_LOG_CMD);
	skua_eq_setup(dev, &dev->async_eq, SKUA_EQN_ASYNC, 0, SKUA_EQ_LOG_ASYNC);
	skua_eq_setup(dev, &dev->fault_eq, SKUA_EQN_FAULT, 0, SKUA_EQ_LOG_FAULT);
	skua_eq_setup(dev, &dev->recovery_eq, SKUA_EQN_RECOVERY, 0, SKUA_EQ_LOG_RECOVERY);
	xa_init_flags(&dev->recoveries, XA_FLAGS_ACCOUNT);
	for (i = 0; i < dev->num_comp; i++)
		skua_eq_setup(dev, &dev->comp_eq[i], SKUA_EQN_COMP + i, num > 1 ? i + 1 : 0,
			      SKUA_EQ_LOG_COMP);
	for (i = 0; i < num; i++) {
		err = skua_vector_request(dev, i);
		if (err) {
			skua_irqs_exit(dev);
			return err;
		}
	}
	return 0;

err_free:
	kfree(dev->comp_eq);
	kfree(dev->vectors);
	dev->comp_eq = NULL;
	dev->vectors = NULL;
	pci_free_irq_vectors(dev->pdev);
	return err;
}

/**
 * skua_irqs_exit() - undo skua_irqs_init()
 * @dev: the function, whose EQs are destroyed
 */
void skua_irqs_exit(struct skua_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->num_vectors; i++) {
		struct skua_vector *v = &dev->vectors[i];

		if (!v->irq)
			continue;
		irq_update_affinity_hint(v->irq, NULL);
		free_irq(v->irq, v);
	}
	dev->num_vectors = 0;
	kfree(dev->comp_eq);
	kfree(dev->vectors);
	dev->comp_eq = NULL;
	dev->vectors = NULL;
	pci_free_irq_vectors(dev->pdev);
}

/* Set the EQs for command, async, page fault and recovery events, or SKUA_NO_EQ. */
static int skua_eqs_attach(struct skua_dev *dev, bool on)
{
	struct skua_cmd_modify_device_in in = {
		.mask = cpu_to_le32(SKUA_DEV_M_CMD_EQ | SKUA_DEV_M_ASYNC_EQ),
		.cmd_eqn = cpu_to_le32(on ? SKUA_EQN_CMD : SKUA_NO_EQ),
		.async_eqn = cpu_to_le32(on ? SKUA_EQN_ASYNC : SKUA_NO_EQ),
	};

	if (dev->limits.caps & SKUA_CAP_ODP) {
		in.mask |= cpu_to_le32(SKUA_DEV_M_FAULT_EQ);
		in.fault_eqn = cpu_to_le32(on ? SKUA_EQN_FAULT : SKUA_NO_EQ);
	}
	if (dev->limits.caps & SKUA_CAP_RECOVERY) {
		in.mask |= cpu_to_le32(SKUA_DEV_M_RECOVERY_EQ);
		in.recovery_eqn = cpu_to_le32(on ? SKUA_EQN_RECOVERY : SKUA_NO_EQ);
	}
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_DEVICE, &in);
}

/**
 * skua_eqs_init() - create the EQs and use events for commands
 * @dev: the function, with interrupts
 *
 * Return: 0 or a negative errno.
 */
int skua_eqs_init(struct skua_dev *dev)
{
	unsigned int i;
	int err;

	err = skua_eq_create(dev, &dev->cmd_eq);
	if (err)
		return err;
	err = skua_eq_create(dev, &dev->async_eq);
	if (!err && dev->limits.caps & SKUA_CAP_ODP)
		err = skua_eq_create(dev, &dev->fault_eq);
	if (!err && dev->limits.caps & SKUA_CAP_RECOVERY)
		err = skua_eq_create(dev, &dev->recovery_eq);
	for (i = 0; !err && i < dev->num_comp; i++)
		err = skua_eq_create(dev, &dev->comp_eq[i]);
	if (!err)
		err = skua_eqs_attach(dev, true);
	if (err) {
		skua_eqs_exit(dev);
		return err;
	}
	skua_cmdq_use_events(dev, true);
	return 0;
}

/**
 * skua_eqs_exit() - switch to polled commands and destroy the EQs
 * @dev: the function; only the caller issues commands
 */
void skua_eqs_exit(struct skua_dev *dev)
{
	unsigned int i;
	int err;

	skua_cmdq_use_events(dev, false);
	err = skua_eqs_attach(dev, false);
	/* If this fails, DESTROY_EQ fails as well, and the device is declared dead. */
	if (err && !skua_dead(dev))
		dev_err(dev->dev, "MODIFY_DEVICE: cannot detach the EQs: %pe\n", ERR_PTR(err));
	for (i = dev->num_comp; i--;)
		skua_eq_destroy(dev, &dev->comp_eq[i]);
	skua_eq_destroy(dev, &dev->recovery_eq);
	WARN_ON_ONCE(!xa_empty(&dev->recoveries));
	skua_eq_destroy(dev, &dev->fault_eq);
	skua_eq_destroy(dev, &dev->async_eq);
	skua_eq_destroy(dev, &dev->cmd_eq);
}

/**
 * skua_num_comp_vectors() - number of completion vectors
 * @dev: the function
 *
 * Return: at least 1.
 */
unsigned int skua_num_comp_vectors(const struct skua_dev *dev)
{
	return dev->num_comp;
}
EXPORT_SYMBOL_NS_GPL(skua_num_comp_vectors, "SKUA");

/**
 * skua_comp_vector_irq() - Linux interrupt of a completion vector
 * @dev: the function
 * @vector: less than skua_num_comp_vectors()
 *
 * Return: the interrupt number or -EINVAL.
 */
int skua_comp_vector_irq(const struct skua_dev *dev, unsigned int vector)
{
	if (vector >= dev->num_comp)
		return -EINVAL;
	return dev->vectors[dev->comp_eq[vector].vector].irq;
}
EXPORT_SYMBOL_NS_GPL(skua_comp_vector_irq, "SKUA");
