// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: skua/<PCI address>/{commands,command_trace,counters,eqs,icm,cmd_timeout_ms},
 * those of debugfs_ctx.c, recovery of recovery_eq.c, and cc_params/ of cc.c
 *
 * All but cmd_timeout_ms exist only while the device is up; removing a file waits for its
 * readers. cmd_timeout_ms is a setting that survives resets.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "skua.h"

static struct dentry *skua_debugfs_root;

static int commands_show(struct seq_file *s, void *unused)
{
	struct skua_dev *dev = s->private;
	struct skua_cmdq *q = &dev->cmdq;
	unsigned int op;
	u64 late, stale;

	scoped_guard(spinlock_irqsave, &q->lock) {
		late = q->late;
		stale = q->stale;
	}
	seq_printf(s, "mode %s late_events %llu stale_events %llu\n",
		   READ_ONCE(q->events) ? "event" : "poll", late, stale);
	seq_puts(s, "command count errors lost avg_ns max_ns\n");
	for (op = 0; op < SKUA_CMD_OPS; op++) {
		struct skua_cmd_stat stat;

		if (!skua_cmd_name(op))
			continue;
		scoped_guard(spinlock_irqsave, &q->lock)
			stat = q->stat[op];
		seq_printf(s, "%s %llu %llu %llu %llu %llu\n", skua_cmd_name(op), stat.count,
			   stat.errors, stat.lost,
			   stat.count ? div64_u64(stat.ns, stat.count) : 0, stat.max_ns);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(commands);

/* The last commands, oldest first. */
static int command_trace_show(struct seq_file *s, void *unused)
{
	struct skua_dev *dev = s->private;
	struct skua_cmdq *q = &dev->cmdq;
	unsigned int i, n;

	struct skua_cmd_trace *trace __free(kfree) = kcalloc(SKUA_CMD_TRACE, sizeof(*trace),
							     GFP_KERNEL);

	if (!trace)
		return -ENOMEM;
	scoped_guard(spinlock_irqsave, &q->lock) {
		n = min(q->traced, SKUA_CMD_TRACE);
		for (i = 0; i < n; i++)
			trace[i] = q->trace[(q->traced - n + i) % SKUA_CMD_TRACE];
	}
	seq_puts(s, "end_ns command token status err ns\n");
	for (i = 0; i < n; i++)
		seq_printf(s, "%llu %s %#x %#x %d %llu\n", trace[i].end,
			   skua_cmd_name(trace[i].op), trace[i].token, trace[i].status,
			   trace[i].err, trace[i].ns);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(command_trace);

static int counters_show(struct seq_file *s, void *unused)
{
	static const struct {
		const char *group;
		const char *name;
	} names[] = {
#define X(_name, _group, _user, _text) { #_group, #_user },
		SKUA_COUNTER_TABLE(X)
#undef X
	};
	u64 *value __free(kfree) = kcalloc(SKUA_CNT_COUNT, sizeof(*value), GFP_KERNEL);
	unsigned int i;
	int err;

	if (!value)
		return -ENOMEM;
	err = skua_query_counters(s->private, value);
	if (err)
		return err;
	for (i = 0; i < SKUA_CNT_COUNT; i++)
		seq_printf(s, "%s %s %llu\n", names[i].group, names[i].name, value[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static void eqs_show_one(struct seq_file *s, struct skua_dev *dev, const struct skua_eq *eq)
{
	struct skua_cmd_query_eq_out out = {};
	int err = skua_cmd_query(dev, SKUA_CMD_QUERY_EQ, eq->eqn, &out, sizeof(out));

	seq_printf(s, "%u %u %u %u %u %llu %llu ", eq->eqn, eq->vector,
		   dev->vectors[eq->vector].irq, 1U << eq->log_size, READ_ONCE(eq->ci),
		   READ_ONCE(eq->count), READ_ONCE(eq->bad));
	if (err)
		seq_printf(s, "%pe\n", ERR_PTR(err));
	else
		seq_printf(s, "%u %u %#x\n", le32_to_cpu(out.eqc.pi), le32_to_cpu(out.eqc.ci),
			   le32_to_cpu(out.eqc.pending));
}

static int eqs_show(struct seq_file *s, void *unused)
{
	struct skua_dev *dev = s->private;
	unsigned int i;

	seq_puts(s, "eqn vector irq size ci events bad dev_pi dev_ci dev_pending\n");
	eqs_show_one(s, dev, &dev->cmd_eq);
	eqs_show_one(s, dev, &dev->async_eq);
	if (dev->fault_eq.created)
		eqs_show_one(s, dev, &dev->fault_eq);
	if (dev->recovery_eq.created)
		eqs_show_one(s, dev, &dev->recovery_eq);
	for (i = 0; i < dev->num_comp; i++)
		eqs_show_one(s, dev, &dev->comp_eq[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(eqs);

static int icm_show(struct seq_file *s, void *unused)
{
	struct skua_dev *dev = s->private;
	unsigned int i;

	seq_puts(s, "table log_entries entry_size pages used sectors hits misses writebacks dev_pages\n");
	for (i = 0; i < SKUA_ICM_TABLES; i++) {
		struct skua_cmd_query_icm_cache_out out = {};
		struct skua_icm_tbl *t = &dev->icm[i];
		u64 pages;
		int err;

		scoped_guard(mutex, &t->lock)
			pages = t->pages;
		seq_printf(s, "%s %u %u %llu ", skua_icm_name(i), t->log_num, t->entry_size,
			   pages);
		err = skua_cmd_query(dev, SKUA_CMD_QUERY_ICM_CACHE, i, &out, sizeof(out));
		if (err)
			seq_printf(s, "%pe\n", ERR_PTR(err));
		else
			seq_printf(s, "%u %u %llu %llu %llu %llu\n", le32_to_cpu(out.used),
				   le32_to_cpu(out.sectors), le64_to_cpu(out.hits),
				   le64_to_cpu(out.misses), le64_to_cpu(out.writebacks),
				   le64_to_cpu(out.mapped_pages));
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(icm);

/**
 * skua_debugfs_up() - create the files of a device that is up
 * @dev: the function
 */
void skua_debugfs_up(struct skua_dev *dev)
{
	static const struct {
		const char *name;
		const struct file_operations *fops;
	} files[] = {
		{ "commands", &commands_fops },
		{ "command_trace", &command_trace_fops },
		{ "counters", &counters_fops },
		{ "eqs", &eqs_fops },
		{ "icm", &icm_fops },
	};
	unsigned int i;

	static_assert(ARRAY_SIZE(files) == SKUA_DEBUGFS_FILES);
	for (i = 0; i < ARRAY_SIZE(files); i++)
		dev->debugfs_file[i] = debugfs_create_file(files[i].name, 0400, dev->debugfs, dev,
							   files[i].fops);
	skua_debugfs_ctx_up(dev, dev->debugfs_file + SKUA_DEBUGFS_FILES);
	dev->debugfs_recovery = skua_recovery_debugfs_up(dev);
	skua_cc_debugfs_up(dev);
}

/**
 * skua_debugfs_down() - undo skua_debugfs_up()
 * @dev: the function
 */
void skua_debugfs_down(struct skua_dev *dev)
{
	unsigned int i;

	skua_cc_debugfs_down(dev);
	debugfs_remove(dev->debugfs_recovery);
	for (i = 0; i < ARRAY_SIZE(dev->debugfs_file); i++)
		debugfs_remove(dev->debugfs_file[i]);
}

/**
 * skua_debugfs_init() - create the function's directory
 * @dev: the function
 */
void skua_debugfs_init(struct skua_dev *dev)
{
	dev->debugfs = debugfs_create_dir(dev_name(dev->dev), skua_debugfs_root);
	debugfs_create_u32("cmd_timeout_ms", 0600, dev->debugfs, &dev->cmd_timeout_ms);
}

/**
 * skua_debugfs_exit() - remove the function's directory
 * @dev: the function
 */
void skua_debugfs_exit(struct skua_dev *dev)
{
	debugfs_remove(dev->debugfs);
}

/**
 * skua_debugfs_root_init() - create the driver's directory
 */
void skua_debugfs_root_init(void)
{
	skua_debugfs_root = debugfs_create_dir("skua", NULL);
}

/**
 * skua_debugfs_root_exit() - remove the driver's directory
 */
void skua_debugfs_root_exit(void)
{
	debugfs_remove(skua_debugfs_root);
}
