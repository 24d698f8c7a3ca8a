// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs files skua/<PCI address>/{qps,cqs,srqs,mrs}: the contexts of all objects, each as
 * a line of its main fields followed by the raw context. Contexts are queried from the
 * device when the file is read. An object is not destroyed while it is shown.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "skua.h"

/* Show a context as 32-bit little-endian words. */
static void skua_ctx_dump(struct seq_file *s, const void *ctx, size_t len)
{
	const __le32 *word = ctx;
	size_t i;

	for (i = 0; i < len / sizeof(*word); i++)
		seq_printf(s, "%s%08x%s", i % 8 ? "" : "  ", le32_to_cpu(word[i]),
			   i % 8 == 7 ? "\n" : " ");
	if (i % 8)
		seq_putc(s, '\n');
}

/* --- QPs, CQs, SRQs: file position 0 is the header, position n the index n - 1 --- */

static void *skua_ctx_find(struct skua_obj_table *t, loff_t *pos)
{
	unsigned long index = *pos ? *pos - 1 : 0;
	struct skua_obj *obj = skua_obj_next(t, &index);

	if (obj)
		*pos = index + 1;
	return obj;
}

static void *skua_ctx_start(struct skua_obj_table *t, loff_t *pos)
{
	return *pos ? skua_ctx_find(t, pos) : SEQ_START_TOKEN;
}

static void skua_ctx_stop(struct seq_file *s, void *v)
{
	if (v && v != SEQ_START_TOKEN)
		skua_obj_put(v);
}

static void *skua_ctx_next(struct skua_obj_table *t, struct seq_file *s, void *v, loff_t *pos)
{
	skua_ctx_stop(s, v);
	++*pos;
	return skua_ctx_find(t, pos);
}

/* --- QPs --- */

static int qps_show(struct seq_file *s, void *v)
{
	static const char * const types[] = {
		[SKUA_QP_RC] = "RC", [SKUA_QP_UC] = "UC", [SKUA_QP_UD] = "UD",
		[SKUA_QP_GSI] = "GSI", [SKUA_QP_XRC_INI] = "XRC_INI",
		[SKUA_QP_XRC_TGT] = "XRC_TGT", [SKUA_QP_RAW_ETH] = "RAW_ETH",
	};
	static const char * const states[] = {
		[SKUA_QP_RESET] = "RESET", [SKUA_QP_INIT] = "INIT", [SKUA_QP_RTR] = "RTR",
		[SKUA_QP_RTS] = "RTS", [SKUA_QP_SQD] = "SQD", [SKUA_QP_SQE] = "SQE",
		[SKUA_QP_ERR] = "ERR",
	};
	const struct skua_obj *obj = v;
	u32 type, state;
	int err;

	if (v == SEQ_START_TOKEN) {
		seq_puts(s, "qpn type state dest sq_pi sq_ci next_psn una_psn rq_pi rq_ci epsn sr_window recovery\n");
		return 0;
	}

	struct skua_cmd_query_qp_out *out __free(kfree) = kzalloc(sizeof(*out), GFP_KERNEL);

	if (!out)
		return -ENOMEM;
	err = skua_cmd_query(s->private, SKUA_CMD_QUERY_QP, obj->num, out, sizeof(*out));
	if (err) {
		seq_printf(s, "%#x %pe\n", obj->num, ERR_PTR(err));
		return 0;
	}
	type = le32_get_bits(out->sqc.cfg.flags, SKUA_QP_TYPE);
	state = le32_get_bits(out->sqc.attr.state, SKUA_ATTR_STATE);
	seq_printf(s, "%#x %s %s %#x %u %u %u %u %u %u %u %u %s\n", obj->num,
		   type < ARRAY_SIZE(types) ? types[type] : "?",
		   state < ARRAY_SIZE(states) ? states[state] : "?",
		   le32_to_cpu(out->sqc.attr.dest_qpn), le32_to_cpu(out->sqc.pi),
		   le32_to_cpu(out->sqc.ci), le32_to_cpu(out->sqc.next_psn),
		   le32_to_cpu(out->sqc.una_psn), le32_to_cpu(out->rqc.pi),
		   le32_to_cpu(out->rqc.ci), le32_to_cpu(out->rqc.epsn),
		   skua_qp_sr_window(out),
		   skua_qp_recovery(out));
	skua_ctx_dump(s, out, sizeof(*out));
	return 0;
}

/* --- CQs --- */

static int cqs_show(struct seq_file *s, void *v)
{
	const struct skua_obj *obj = v;
	struct skua_cmd_query_cq_out out = {};
	int err;

	if (v == SEQ_START_TOKEN) {
		seq_puts(s, "cqn flags eqn uar pi ci pending moderation\n");
		return 0;
	}
	err = skua_cmd_query(s->private, SKUA_CMD_QUERY_CQ, obj->num, &out, sizeof(out));
	if (err) {
		seq_printf(s, "%#x %pe\n", obj->num, ERR_PTR(err));
		return 0;
	}
	seq_printf(s, "%#x %#x %u %u %u %u %#x %#x\n", obj->num, le32_to_cpu(out.cqc.flags),
		   le32_to_cpu(out.cqc.eqn), le32_to_cpu(out.cqc.uar), le32_to_cpu(out.cqc.pi),
		   le32_to_cpu(out.cqc.ci), le32_to_cpu(out.cqc.pending),
		   le32_to_cpu(out.cqc.moderation));
	skua_ctx_dump(s, &out, sizeof(out));
	return 0;
}

/* --- SRQs --- */

static int srqs_show(struct seq_file *s, void *v)
{
	const struct skua_obj *obj = v;
	struct skua_cmd_query_srq_out out = {};
	int err;

	if (v == SEQ_START_TOKEN) {
		seq_puts(s, "srqn flags pd limit xrcd cqn pi ci\n");
		return 0;
	}
	err = skua_cmd_query(s->private, SKUA_CMD_QUERY_SRQ, obj->num, &out, sizeof(out));
	if (err) {
		seq_printf(s, "%#x %pe\n", obj->num, ERR_PTR(err));
		return 0;
	}
	seq_printf(s, "%#x %#x %u %u %u %#x %u %u\n", obj->num, le32_to_cpu(out.srqc.flags),
		   le32_to_cpu(out.srqc.pd), le32_to_cpu(out.srqc.limit),
		   le32_to_cpu(out.srqc.xrcd), le32_to_cpu(out.srqc.cqn),
		   le32_to_cpu(out.srqc.pi), le32_to_cpu(out.srqc.ci));
	skua_ctx_dump(s, &out, sizeof(out));
	return 0;
}

static void *qps_start(struct seq_file *s, loff_t *pos)
{
	struct skua_dev *dev = s->private;

	return skua_ctx_start(&dev->qps, pos);
}

static void *qps_next(struct seq_file *s, void *v, loff_t *pos)
{
	struct skua_dev *dev = s->private;

	return skua_ctx_next(&dev->qps, s, v, pos);
}

static const struct seq_operations qps_sops = {
	.start = qps_start,
	.next = qps_next,
	.stop = skua_ctx_stop,
	.show = qps_show,
};
DEFINE_SEQ_ATTRIBUTE(qps);

static void *cqs_start(struct seq_file *s, loff_t *pos)
{
	struct skua_dev *dev = s->private;

	return skua_ctx_start(&dev->cqs, pos);
}

static void *cqs_next(struct seq_file *s, void *v, loff_t *pos)
{
	struct skua_dev *dev = s->private;

	return skua_ctx_next(&dev->cqs, s, v, pos);
}

static const struct seq_operations cqs_sops = {
	.start = cqs_start,
	.next = cqs_next,
	.stop = skua_ctx_stop,
	.show = cqs_show,
};
DEFINE_SEQ_ATTRIBUTE(cqs);

static void *srqs_start(struct seq_file *s, loff_t *pos)
{
	struct skua_dev *dev = s->private;

	return skua_ctx_start(&dev->srqs, pos);
}

static void *srqs_next(struct seq_file *s, void *v, loff_t *pos)
{
	struct skua_dev *dev = s->private;

	return skua_ctx_next(&dev->srqs, s, v, pos);
}

static const struct seq_operations srqs_sops = {
	.start = srqs_start,
	.next = srqs_next,
	.stop = skua_ctx_stop,
	.show = srqs_show,
};
DEFINE_SEQ_ATTRIBUTE(srqs);

/* --- regions and windows, without references: one may be gone when it is queried --- */

static void *mrs_find(struct skua_dev *dev, loff_t *pos)
{
	unsigned long index = *pos ? *pos - 1 : 0;

	if (!xa_find(&dev->keys, &index, ULONG_MAX, SKUA_KEY_LIVE))
		return NULL;
	*pos = index + 1;
	/*
	 * mrs_show() uses the position only. Do not return the entry: it is a value that
	 * could equal SEQ_START_TOKEN.
	 */
	return dev;
}

static void *mrs_start(struct seq_file *s, loff_t *pos)
{
	return *pos ? mrs_find(s->private, pos) : SEQ_START_TOKEN;
}

static void *mrs_next(struct seq_file *s, void *v, loff_t *pos)
{
	++*pos;
	return mrs_find(s->private, pos);
}

static void mrs_stop(struct seq_file *s, void *v)
{
}

static int mrs_show(struct seq_file *s, void *v)
{
	u32 key = u32_encode_bits(s->index - 1, SKUA_KEY_INDEX);
	struct skua_cmd_query_mpt_out out = {};
	int err;

	if (v == SEQ_START_TOKEN) {
		seq_puts(s, "key flags access pd va len mode npages windows\n");
		return 0;
	}
	err = skua_cmd_query(s->private, SKUA_CMD_QUERY_MPT, key, &out, sizeof(out));
	if (err == -EINVAL)
		return SEQ_SKIP;
	if (err) {
		seq_printf(s, "%#x %pe\n", key, ERR_PTR(err));
		return 0;
	}
	seq_printf(s, "%#x %#x %#x %u %#llx %#llx %u %u %u\n", le32_to_cpu(out.mpt.key),
		   le32_to_cpu(out.mpt.flags), le32_to_cpu(out.mpt.access),
		   le32_to_cpu(out.mpt.pd), le64_to_cpu(out.mpt.va), le64_to_cpu(out.mpt.len),
		   le32_get_bits(out.mpt.xlat.mode, SKUA_XLAT_MODE),
		   le32_to_cpu(out.mpt.npages), le32_to_cpu(out.mpt.windows));
	skua_ctx_dump(s, &out, sizeof(out));
	return 0;
}

static const struct seq_operations mrs_sops = {
	.start = mrs_start,
	.next = mrs_next,
	.stop = mrs_stop,
	.show = mrs_show,
};
DEFINE_SEQ_ATTRIBUTE(mrs);

static const struct {
	const char *name;
	const struct file_operations *fops;
} skua_ctx_files[] = {
	{ "qps", &qps_fops },
	{ "cqs", &cqs_fops },
	{ "srqs", &srqs_fops },
	{ "mrs", &mrs_fops },
};

static_assert(ARRAY_SIZE(skua_ctx_files) == SKUA_DEBUGFS_CONTEXTS);

/**
 * skua_debugfs_ctx_up() - create the context files of a device that is up
 * @dev: the function
 * @file: filled in: SKUA_DEBUGFS_CONTEXTS files
 */
void skua_debugfs_ctx_up(struct skua_dev *dev, struct dentry **file)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(skua_ctx_files); i++)
		file[i] = debugfs_create_file(skua_ctx_files[i].name, 0400, dev->debugfs, dev,
					      skua_ctx_files[i].fops);
}
