// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs.
 */
#include <kunit/static_stub.h>

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

/*
 * Memory that the device needs for selective repeat: the QP's loss recovery context, its
 * placement tables, behind them its recovery ring if the loss state is the driver's, and behind
 * that a table of receives if these come from an SRQ. Pages of its own for each QP, not a
 * dma_pool: a pool returns no memory until it is destroyed, and charges a page to only one of
 * its users.
 */
static int skua_qp_ext_get(struct skua_dev *dev, struct skua_qp *qp, u32 ext)
{
	u32 log_window = u32_get_bits(ext, SKUA_ATTR_EXT_LOG_WINDOW);
	size_t ring = skua_recovery_bytes(dev);
	size_t recvs = qp->shared ? sizeof(struct skua_ext_recv) << log_window : 0;
	size_t size = SKUA_EXT_TABLE_BYTES(log_window) + ring + recvs;
	u32 index = skua_obj_index(&dev->qps, qp->obj.num);
	struct skua_buf table;
	int err;

	err = skua_icm_get(dev, SKUA_ICM_LRC, index);
	if (err)
		return err;
	/* Coherent memory is aligned to its size: the tables, which come first, to theirs. */
	err = skua_buf_try(dev, &table, size, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_icm;
	qp->ext = table;
	if (!ring)
		return 0;
	err = skua_recovery_add(dev, qp, log_window);
	if (err)
		goto err_table;
	return 0;

err_table:
	skua_buf_free(dev, &qp->ext);
err_icm:
	skua_icm_put(dev, SKUA_ICM_LRC, index);
	return err;
}

/* Only when the device no longer uses the memory. */
static void skua_qp_ext_put(struct skua_dev *dev, struct skua_qp *qp)
{
	if (!qp->ext.va)
		return;
	skua_recovery_del(dev, qp);
	skua_buf_free(dev, &qp->ext);
	skua_icm_put(dev, SKUA_ICM_LRC, skua_obj_index(&dev->qps, qp->obj.num));
}

int skua_qp_create(struct skua_dev *dev, struct skua_qp *qp,
		   struct skua_cmd_create_qp_in *in, bool gsi)
{
	u32 index;
	int err;

	qp->ext = (struct skua_buf) {};
	qp->recovery = NULL;
	qp->shared = le32_to_cpu(in->sq.flags) & SKUA_QP_F_SRQ ||
		     le32_get_bits(in->sq.flags, SKUA_QP_TYPE) == SKUA_QP_XRC_TGT;
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
	skua_recovery_pause(qp, true);
	skua_cmd_destroy(dev, SKUA_CMD_DESTROY_QP, qp->obj.num);
	skua_obj_retire(&dev->qps, &qp->obj);
	skua_eq_flush_async(dev);
	skua_qp_ext_put(dev, qp);
	skua_qp_icm_put(dev, skua_obj_index(&dev->qps, qp->obj.num));
	skua_obj_release(&dev->qps, &qp->obj);
}
EXPORT_SYMBOL_NS_GPL(skua_qp_destroy, "SKUA");

/**
 * skua_qp_for_each() - do something with QPs of one kind
 * @dev: the function
 * @event: callback of events that these have
 * @fn: what to do
 *
 * Context: process, not from @event. A QP is not destroyed meanwhile.
 */
void skua_qp_for_each(struct skua_dev *dev,
		      void (*event)(struct skua_qp *qp, enum skua_qp_event event),
		      void (*fn)(struct skua_qp *qp))
{
	unsigned long index = 0;
	struct skua_obj *obj;

	KUNIT_STATIC_STUB_REDIRECT(skua_qp_for_each, dev, event, fn);
	for (; (obj = skua_obj_next(&dev->qps, &index)); index++) {
		struct skua_qp *qp = container_of(obj, struct skua_qp, obj);

		if (qp->event == event)
			fn(qp);
		skua_obj_put(obj);
	}
}
EXPORT_SYMBOL_NS_GPL(skua_qp_for_each, "SKUA");

/**
 * skua_qp_modify() - change state or attributes
 * @dev: the function
 * @qp: the QP
 * @in: what to change; the number is filled in, and with SKUA_QP_M_EXT the placement table
 *
 * With SKUA_QP_M_EXT and a mode other than SKUA_EXT_PLAIN the QP gets the memory that
 * selective repeat needs. It is freed when the QP has entered RESET or is destroyed. The
 * caller serializes such changes of one QP.
 *
 * Return: 0 or a negative errno.
 */
int skua_qp_modify(struct skua_dev *dev, struct skua_qp *qp, struct skua_cmd_modify_qp_in *in)
{
	u32 state = le32_get_bits(in->attr.state, SKUA_ATTR_STATE);
	u32 mask = le32_to_cpu(in->mask);
	bool ext = mask & SKUA_QP_M_EXT && in->attr.ext;
	bool reset = mask & SKUA_QP_M_STATE && state == SKUA_QP_RESET;
	bool fresh = ext && !qp->ext.va;
	int err;

	if (fresh) {
		err = skua_qp_ext_get(dev, qp, le32_to_cpu(in->attr.ext));
		if (err)
			return err;
	}
	if (ext) {
		in->ext_table = cpu_to_le64(qp->ext.dma);
		in->ext_len = cpu_to_le32(qp->ext.size);
		if (qp->recovery)
			in->attr.ext |= cpu_to_le32(SKUA_ATTR_EXT_ONLOAD);
	}
	in->qpn = cpu_to_le32(qp->obj.num);
	if (reset)
		skua_recovery_pause(qp, true);
	err = skua_cmd_in(dev, SKUA_CMD_MODIFY_QP, in);
	if (err && reset)
		skua_recovery_pause(qp, false);
	/*
	 * A command that failed had no effect, or the device was declared dead and does no
	 * DMA: a table that it was to begin with is not in use, one that it had still may be.
	 */
	if (err ? fresh : reset)
		skua_qp_ext_put(dev, qp);
	return err;
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

/**
 * skua_qp_sr_window() - how many packets may a QP have outstanding under selective repeat?
 * @out: its contexts
 *
 * Return: packets, 0 if its peer has not said that it speaks it.
 */
u32 skua_qp_sr_window(const struct skua_cmd_query_qp_out *out)
{
	u32 log = u32_get_bits(out->sqc.sr_window, SKUA_SQC_WINDOW);

	return log ? BIT(log) : 0;
}
EXPORT_SYMBOL_NS_GPL(skua_qp_sr_window, "SKUA");

/**
 * skua_qp_recovery() - in which direction does a QP recover from packet loss?
 * @out: its contexts
 *
 * Selective repeat only: "send" while packets that it sent have not arrived, "receive"
 * while it holds packets that came before their turn.
 *
 * Return: "none", "send", "receive" or "both".
 */
const char *skua_qp_recovery(const struct skua_cmd_query_qp_out *out)
{
	bool send = out->sqc.valid & cpu_to_le32(SKUA_SQC_LOSS);
	bool receive = out->rqc.flags & cpu_to_le32(SKUA_RQC_HELD);

	if (send)
		return receive ? "both" : "send";
	return receive ? "receive" : "none";
}
EXPORT_SYMBOL_NS_GPL(skua_qp_recovery, "SKUA");
