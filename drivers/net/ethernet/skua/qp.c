// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs.
 */
#include "skua.h"
#include "trace.h"

/* Number of the general services QP (IBTA). */
#define SKUA_QPN_GSI		1

/* Tables with one entry for each QP. */
static const enum skua_icm_table skua_qp_tables[] = {
	SKUA_ICM_SQC, SKUA_ICM_RQC, SKUA_ICM_RRC,
};

static int skua_qp_icm_get(struct skua_dev *dev, u32 index)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(skua_qp_tables); i++) {
		err = skua_icm_get(dev, skua_qp_tables[i], index);
		if (err) {
			while (i--)
				skua_icm_put(dev, skua_qp_tables[i], index);
			return err;
		}
	}
	return 0;
}

static void skua_qp_icm_put(struct skua_dev *dev, u32 index)
{
	unsigned int i = ARRAY_SIZE(skua_qp_tables);

	while (i--)
		skua_icm_put(dev, skua_qp_tables[i], index);
}

int skua_qp_create(struct skua_dev *dev, struct skua_qp *qp,
		   struct skua_cmd_create_qp_in *in, bool gsi)
{
	u32 index;
	int err;

	err = gsi ? skua_obj_reserve_at(&dev->qps, &qp->obj, SKUA_QPN_GSI) :
		    skua_obj_reserve(&dev->qps, &qp->obj);
	if (err)
		return err;
	index = skua_obj_index(&dev->qps, qp->obj.num);
	err = skua_qp_icm_get(dev, index);
	if (err)
		goto err_release;
	skua_obj_publish(&dev->qps, &qp->obj);
	in->sq.qpn = cpu_to_le32(qp->obj.num);
	err = skua_cmd_in(dev, SKUA_CMD_CREATE_QP, in);
	if (err)
		goto err_retire;
	trace_skua_create(dev, "QP", qp->obj.num);
	return 0;

err_retire:
	skua_obj_retire(&dev->qps, &qp->obj);
	skua_qp_icm_put(dev, index);
err_release:
	skua_obj_release(&dev->qps, &qp->obj);
	return err;
}
EXPORT_SYMBOL_NS_GPL(skua_qp_create, "SKUA");

/**
 * skua_qp_destroy() - destroy a QP in any state
 * @dev: the function
 * @qp: the QP
 *
 * On return no callback runs or will run, and the device leaves rings and record
 * alone. Not from a callback.
 */
void skua_qp_destroy(struct skua_dev *dev, struct skua_qp *qp)
{
	trace_skua_destroy(dev, "QP", qp->obj.num);
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_QP, qp->obj.num);
	skua_obj_retire(&dev->qps, &qp->obj);
	skua_eq_flush_async(dev);
	skua_qp_icm_put(dev, skua_obj_index(&dev->qps, qp->obj.num));
	skua_obj_release(&dev->qps, &qp->obj);
}
EXPORT_SYMBOL_NS_GPL(skua_qp_destroy, "SKUA");

/**
 * skua_qp_modify() - change state or attributes
 * @dev: the function
 * @qp: the QP
 * @in: what to change; the number is filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_qp_modify(struct skua_dev *dev, struct skua_qp *qp, struct skua_cmd_modify_qp_in *in)
{
	in->qpn = cpu_to_le32(qp->obj.num);
	return skua_cmd_in(dev, SKUA_CMD_MODIFY_QP, in);
}
EXPORT_SYMBOL_NS_GPL(skua_qp_modify, "SKUA");

/**
 * skua_qp_count() - bind to a counter set
 * @dev: the function
 * @qp: the QP
 * @set: the set, or SKUA_NO_SET
 *
 * Return: 0 or a negative errno.
 */
int skua_qp_count(struct skua_dev *dev, struct skua_qp *qp, u32 set)
{
	struct skua_cmd_modify_qp_in in = {
		.mask = cpu_to_le32(SKUA_QP_M_COUNTER),
		.cur_state = cpu_to_le32(SKUA_QP_ANY_STATE),
		.counter = cpu_to_le32(set),
	};

	return skua_qp_modify(dev, qp, &in);
}
EXPORT_SYMBOL_NS_GPL(skua_qp_count, "SKUA");

/**
 * skua_qp_query() - read both contexts
 * @dev: the function
 * @qp: the QP
 * @out: filled in
 *
 * Return: 0 or a negative errno.
 */
int skua_qp_query(struct skua_dev *dev, struct skua_qp *qp, struct skua_cmd_query_qp_out *out)
{
	return skua_cmd_query(dev, SKUA_CMD_QUERY_QP, qp->obj.num, out, sizeof(*out));
}
EXPORT_SYMBOL_NS_GPL(skua_qp_query, "SKUA");
