// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues.
 */
#include "skua.h"
#include "trace.h"

/**
 * skua_srq_create() - create a shared receive queue
 * @dev: the function
 * @srq: @event is set by the caller
 * @srqc: everything but the number, which is filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_srq_create(struct skua_dev *dev, struct skua_srq *srq, struct skua_srqc *srqc)
{
	struct skua_cmd_create_srq_in in;
	int err;

	err = skua_obj_reserve(&dev->srqs, &srq->obj);
	if (err)
		return err;
	err = skua_icm_get(dev, SKUA_ICM_SRQC, srq->obj.num);
	if (err)
		goto err_release;
	skua_obj_publish(&dev->srqs, &srq->obj);
	srqc->srqn = cpu_to_le32(srq->obj.num);
	in.srqc = *srqc;
	err = skua_cmd_in(dev, SKUA_CMD_CREATE_SRQ, &in);
	if (err)
		goto err_retire;
	trace_skua_create(dev, "SRQ", srq->obj.num);
	return 0;

err_retire:
	skua_obj_retire(&dev->srqs, &srq->obj);
	skua_icm_put(dev, SKUA_ICM_SRQC, srq->obj.num);
err_release:
	skua_obj_release(&dev->srqs, &srq->obj);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_srq_create, "SKUA");

/**
 * skua_srq_destroy() - destroy a shared receive queue
 * @dev: the function
 * @srq: an SRQ that no QP names any more
 *
 * On return no callback runs or will run, and the device leaves ring and record
 * alone. Not from a callback.
 */
void skua_srq_destroy(struct skua_dev *dev, struct skua_srq *srq)
{
	trace_skua_destroy(dev, "SRQ", srq->obj.num);
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_SRQ, srq->obj.num);
	skua_obj_retire(&dev->srqs, &srq->obj);
	skua_eq_flush_async(dev);
	skua_icm_put(dev, SKUA_ICM_SRQC, srq->obj.num);
	skua_obj_release(&dev->srqs, &srq->obj);
}
EXPORT_SYMBOL_NS_GPL(skua_srq_destroy, "SKUA");

/**
 * skua_srq_modify() - arm the limit event
 * @dev: the function
 * @srq: the SRQ
 * @limit: event when fewer receives are left; 0: none
 *
 * Return: 0 or a negative errno.
 */
int skua_srq_modify(struct skua_dev *dev, struct skua_srq *srq, u32 limit)
{
	struct skua_cmd_modify_srq_in in = {
		.srqn = cpu_to_le32(srq->obj.num),
		.limit = cpu_to_le32(limit),
	};

	return skua_cmd_in(dev, SKUA_CMD_MODIFY_SRQ, &in);
}
EXPORT_SYMBOL_NS_GPL(skua_srq_modify, "SKUA");

/**
 * skua_srq_resize() - give an SRQ a larger ring
 * @dev: the function
 * @srq: the SRQ
 * @srqc: flags (size and stride) and ring; the number is filled in
 *
 * The old ring was copied to the start of the new one. On success the device leaves
 * the old one alone; on failure the new one, unless the device died.
 *
 * Return: 0 or a negative errno.
 */
int skua_srq_resize(struct skua_dev *dev, struct skua_srq *srq, struct skua_srqc *srqc)
{
	struct skua_cmd_create_srq_in in;

	srqc->srqn = cpu_to_le32(srq->obj.num);
	in.srqc = *srqc;
	return skua_cmd_in(dev, SKUA_CMD_RESIZE_SRQ, &in);
}
EXPORT_SYMBOL_NS_GPL(skua_srq_resize, "SKUA");

/**
 * skua_srq_query() - read the context
 * @dev: the function
 * @srq: the SRQ
 * @srqc: filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_srq_query(struct skua_dev *dev, struct skua_srq *srq, struct skua_srqc *srqc)
{
	return skua_cmd_query(dev, SKUA_CMD_QUERY_SRQ, srq->obj.num, srqc, sizeof(*srqc));
}
EXPORT_SYMBOL_NS_GPL(skua_srq_query, "SKUA");
