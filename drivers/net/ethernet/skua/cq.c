// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues.
 */
#include <linux/interrupt.h>

#include "skua.h"
#include "trace.h"

/* Let events find the CQ: completions in its EQ, errors in the device's table. */
static int skua_cq_publish(struct skua_dev *dev, struct skua_cq *cq)
{
	int err;

	err = xa_err(xa_store(&dev->comp_eq[cq->vector].cqs, cq->obj.num, cq,
			      GFP_KERNEL_ACCOUNT));
	if (err)
		return err;
	skua_obj_publish(&dev->cqs, &cq->obj);
	return 0;
}

static void skua_cq_retire(struct skua_dev *dev, struct skua_cq *cq)
{
	xa_erase(&dev->comp_eq[cq->vector].cqs, cq->obj.num);
	skua_eq_sync_comp(dev, cq->vector);
	skua_obj_retire(&dev->cqs, &cq->obj);
}

int skua_cq_create(struct skua_dev *dev, struct skua_cq *cq, struct skua_cqc *cqc)
{
	struct skua_cmd_create_cq_in in;
	int err;

	if (cq->vector >= dev->num_comp)
		return -EINVAL;
	err = skua_obj_reserve(&dev->cqs, &cq->obj);
	if (err)
		return err;
	err = skua_icm_get(dev, SKUA_ICM_CQC, cq->obj.num);
	if (err)
		goto err_release;
	cq->irq = skua_comp_vector_irq(dev, cq->vector);
	err = skua_cq_publish(dev, cq);
	if (err)
		goto err_icm;
	cqc->cqn = cpu_to_le32(cq->obj.num);
	cqc->eqn = cpu_to_le32(dev->comp_eq[cq->vector].eqn);
	in.cqc = *cqc;
	err = skua_cmd_in(dev, SKUA_CMD_CREATE_CQ, &in);
	if (err)
		goto err_retire;
	trace_skua_create(dev, "CQ", cq->obj.num);
	return 0;

err_retire:
	skua_cq_retire(dev, cq);
err_icm:
	skua_icm_put(dev, SKUA_ICM_CQC, cq->obj.num);
err_release:
	skua_obj_release(&dev->cqs, &cq->obj);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_cq_create, "SKUA");

/**
 * skua_cq_destroy() - destroy a completion queue
 * @dev: the function
 * @cq: a CQ that no QP or SRQ names any more
 *
 * On return no callback runs or will run, and the device leaves ring and record
 * alone. Not from a callback.
 */
void skua_cq_destroy(struct skua_dev *dev, struct skua_cq *cq)
{
	trace_skua_destroy(dev, "CQ", cq->obj.num);
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_CQ, cq->obj.num);
	skua_eq_flush_comp(dev, cq->vector);
	skua_cq_retire(dev, cq);
	skua_eq_flush_async(dev);
	skua_icm_put(dev, SKUA_ICM_CQC, cq->obj.num);
	skua_obj_release(&dev->cqs, &cq->obj);
}
EXPORT_SYMBOL_NS_GPL(skua_cq_destroy, "SKUA");

/**
 * skua_cq_modify() - change event moderation
 * @dev: the function
 * @cq: the CQ
 * @count: event after so many completions, or
 * @usec: so many microseconds after the first; both 0: at once
 *
 * Return: 0 or a negative errno.
 */
int skua_cq_modify(struct skua_dev *dev, struct skua_cq *cq, u16 count, u16 usec)
{
	struct skua_cmd_modify_mod_in in = {
		.index = cpu_to_le32(cq->obj.num),
		.moderation = le32_encode_bits(count, SKUA_MOD_COUNT) |
			      le32_encode_bits(usec, SKUA_MOD_USEC),
	};

	return skua_cmd_in(dev, SKUA_CMD_MODIFY_CQ, &in);
}
EXPORT_SYMBOL_NS_GPL(skua_cq_modify, "SKUA");

/**
 * skua_cq_resize() - give a CQ another ring
 * @dev: the function
 * @cq: the CQ
 * @cqc: flags (size) and ring; the number is filled in
 * @pi: filled in: index of the first completion in the new ring
 *
 * On success the device leaves the old ring alone; on failure the new one, unless
 * the device died.
 *
 * Return: 0 or a negative errno.
 */
int skua_cq_resize(struct skua_dev *dev, struct skua_cq *cq, struct skua_cqc *cqc, u32 *pi)
{
	struct skua_cmd_resize_cq_out out;
	struct skua_cmd_create_cq_in in;
	int err;

	cqc->cqn = cpu_to_le32(cq->obj.num);
	in.cqc = *cqc;
	err = skua_cmd_exec(dev, SKUA_CMD_RESIZE_CQ, &in, sizeof(in), &out, sizeof(out));
	if (err)
		return err;
	*pi = le32_to_cpu(out.pi);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(skua_cq_resize, "SKUA");

/**
 * skua_cq_query() - read the context
 * @dev: the function
 * @cq: the CQ
 * @cqc: filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_cq_query(struct skua_dev *dev, struct skua_cq *cq, struct skua_cqc *cqc)
{
	return skua_cmd_query(dev, SKUA_CMD_QUERY_CQ, cq->obj.num, cqc, sizeof(*cqc));
}
EXPORT_SYMBOL_NS_GPL(skua_cq_query, "SKUA");
