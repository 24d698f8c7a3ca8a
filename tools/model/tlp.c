// SPDX-License-Identifier: GPL-2.0
/* Accounts of PCIe transactions, see tlp.h: per QP, sums, and the commands of users. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define QPS		(1u << MODEL_LOG_QP)
/* Maximum number of QPs in one answer. */
#define LIST_QPS	256

static const char *const purposes[] = {
#define X(name, text) [TLP_##name] = text,
	TLP_PURPOSES(X)
#undef X
};

static const struct {
	const char *type, *dir;
} kinds[] = {
#define X(name, t, d) [TLP_##name] = { t, d },
	TLP_KINDS(X)
#undef X
};

/* --- QPs --- */

void tlp_count_qp(struct tlp_qp *qp, enum tlp_purpose purpose, enum tlp_kind kind, uint64_t n,
		  uint64_t bytes)
{
	qp->table.v[kind][purpose].count += n;
	qp->table.v[kind][purpose].bytes += bytes;
}

/* NULL: there is no memory. */
static struct tlp_qp *qp_find(struct skua_dev *dev, uint32_t index)
{
	struct tlp_acct *a = &dev->tlp;

	if (!a->qps[index])
		a->qps[index] = calloc(1, sizeof(struct tlp_qp));
	if (!a->qps[index] && !a->no_memory) {
		a->no_memory = true;
		dev_log(dev, 1, "no memory for the TLP accounts of all QPs: those of some are missing");
	}
	return a->qps[index];
}

void tlp_qp_begin(struct skua_dev *dev, uint32_t index)
{
	dev->tlp.qp = qp_find(dev, index);
}

void tlp_qp_name(struct skua_dev *dev, uint32_t qpn)
{
	if (dev->tlp.qp)
		dev->tlp.qp->qpn = qpn;
}

static void qp_forget(struct tlp_acct *a, uint32_t index)
{
	if (a->qp && a->qp == a->qps[index])
		a->qp = NULL;
	free(a->qps[index]);
	a->qps[index] = NULL;
}

void tlp_qp_new(struct skua_dev *dev, uint32_t index)
{
	if (dev->tlp.qps)
		qp_forget(&dev->tlp, index);
}

static int qps_on(struct tlp_acct *a)
{
	if (!a->qps)
		a->qps = calloc(QPS, sizeof(*a->qps));
	return a->qps ? 0 : -ENOMEM;
}

static void qps_forget(struct tlp_acct *a)
{
	for (uint32_t i = 0; a->qps && i < QPS; i++)
		qp_forget(a, i);
	a->no_memory = false;
}

static void qps_off(struct tlp_acct *a)
{
	qps_forget(a);
	free(a->qps);
	a->qps = NULL;
}

/* --- MMIO --- */

void tlp_mmio(struct skua_dev *dev, enum tlp_purpose purpose, size_t len)
{
	tlp_count(&dev->tlp, purpose, TLP_MWR_DOWN, 1, len);
}

void tlp_mmio_read(struct skua_dev *dev, enum tlp_purpose purpose, size_t len)
{
	tlp_count(&dev->tlp, purpose, TLP_MRD_DOWN, 1, len);
	tlp_count(&dev->tlp, purpose, TLP_CPLD_UP, 1, len);
}

void tlp_mmio_qp(struct skua_dev *dev, uint32_t qpn, enum tlp_purpose purpose, unsigned int n,
		 size_t bytes)
{
	uint32_t index = qp_index(qpn);
	struct tlp_qp *qp;

	if (!dev->tlp.qps || !obj_valid(dev, SKUA_ICM_SQC, index))
		return;
	qp = qp_find(dev, index);
	if (!qp || (qp->qpn && qp->qpn != qpn))
		return;
	qp->qpn = qpn;
	tlp_count_qp(qp, purpose, TLP_MWR_DOWN, n, bytes);
}

/* --- the device's own counters --- */

static void sum_up(const struct tlp_table *t, struct tlp sum[TLP_KIND_COUNT])
{
	memset(sum, 0, TLP_KIND_COUNT * sizeof(*sum));
	for (unsigned int p = 0; p < TLP_PURPOSE_COUNT; p++) {
		for (unsigned int k = 0; k < TLP_KIND_COUNT; k++) {
			sum[k].count += t->v[k][p].count;
			sum[k].bytes += t->v[k][p].bytes;
		}
	}
}

void tlp_counters_reset(struct skua_dev *dev)
{
	sum_up(&dev->tlp.fn, dev->tlp.cnt_from);
}

void tlp_counters(struct skua_dev *dev)
{
	const struct tlp *from = dev->tlp.cnt_from;
	struct tlp sum[TLP_KIND_COUNT];

	sum_up(&dev->tlp.fn, sum);
	for (unsigned int k = 0; k < TLP_KIND_COUNT; k++) {
		sum[k].count -= from[k].count;
		sum[k].bytes -= from[k].bytes;
	}
	dev->cnt[SKUA_CNT_TLP_MWR_TX] = sum[TLP_MWR_UP].count;
	dev->cnt[SKUA_CNT_TLP_MWR_TX_BYTES] = sum[TLP_MWR_UP].bytes;
	dev->cnt[SKUA_CNT_TLP_MRD_TX] = sum[TLP_MRD_UP].count;
	dev->cnt[SKUA_CNT_TLP_MRD_TX_BYTES] = sum[TLP_MRD_UP].bytes;
	dev->cnt[SKUA_CNT_TLP_CPLD_RX] = sum[TLP_CPLD_DOWN].count;
	dev->cnt[SKUA_CNT_TLP_MWR_RX] = sum[TLP_MWR_DOWN].count;
	dev->cnt[SKUA_CNT_TLP_MWR_RX_BYTES] = sum[TLP_MWR_DOWN].bytes;
	dev->cnt[SKUA_CNT_TLP_MRD_RX] = sum[TLP_MRD_DOWN].count;
}

/* --- commands of users --- */

static void show(const struct tlp_table *t, const struct tlp_table *from, char *answer,
		 size_t room)
{
	size_t at = strlen(answer);

	for (unsigned int p = 0; p < TLP_PURPOSE_COUNT; p++) {
		for (unsigned int k = 0; k < TLP_KIND_COUNT && at < room; k++) {
			uint64_t count = t->v[k][p].count - (from ? from->v[k][p].count : 0);
			uint64_t bytes = t->v[k][p].bytes - (from ? from->v[k][p].bytes : 0);

			if (count)
				at += snprintf(answer + at, room - at,
					       "; %s %s %s %" PRIu64 " %" PRIu64, purposes[p],
					       kinds[k].type, kinds[k].dir, count, bytes);
		}
	}
}

/* "" or a QPN. */
static int cmd_show(struct skua_dev *dev, const char *arg, char *answer, size_t room)
{
	const struct tlp_acct *a = &dev->tlp;
	const struct tlp_qp *qp;
	unsigned long qpn;
	char *end;

	if (!*arg) {
		snprintf(answer, room, "function");
		show(&a->fn, &a->from, answer, room);
		return 0;
	}
	qpn = strtoul(arg, &end, 0);
	if (*end || end == arg || !qpn || qpn >= SKUA_QPN_MULTICAST)
		return answer_err(answer, room, "'%s' is no QPN", arg);
	if (!a->qps)
		return answer_err(answer, room, "QPs have no accounts: 'per-qp on' makes them");
	qp = a->qps[qp_index(qpn)];
	if (!qp || qp->qpn != qpn)
		return answer_err(answer, room, "nothing was counted for QP 0x%lx", qpn);
	snprintf(answer, room, "qp 0x%lx", qpn);
	show(&qp->table, NULL, answer, room);
	return 0;
}

static int cmd_per_qp(struct skua_dev *dev, const char *arg, char *answer, size_t room)
{
	if (!strcmp(arg, "on")) {
		if (qps_on(&dev->tlp))
			return answer_err(answer, room, "no memory for the accounts of QPs");
	} else if (!strcmp(arg, "off")) {
		qps_off(&dev->tlp);
	} else {
		return answer_err(answer, room, "per-qp is 'on' or 'off', not '%s'", arg);
	}
	return 0;
}

/* From which index on, "" for all. */
static int cmd_qps(struct skua_dev *dev, const char *arg, char *answer, size_t room)
{
	const struct tlp_acct *a = &dev->tlp;
	unsigned int n = 0;
	unsigned long i;
	char *end;
	size_t at;

	i = strtoul(arg, &end, 0);
	if (*end)
		return answer_err(answer, room, "'%s' is no index", arg);
	if (!a->qps)
		return answer_err(answer, room, "QPs have no accounts: 'per-qp on' makes them");
	at = snprintf(answer, room, "qps");
	for (; i < QPS && n < LIST_QPS && at < room; i++) {
		if (!a->qps[i] || !a->qps[i]->qpn)
			continue;
		at += snprintf(answer + at, room - at, " 0x%" PRIx32, a->qps[i]->qpn);
		n++;
	}
	if (i < QPS && at < room)
		snprintf(answer + at, room - at, " next %lu", i);
	return 0;
}

static int cmd_reset(struct skua_dev *dev, const char *arg, char *answer, size_t room)
{
	if (*arg)
		return answer_err(answer, room, "reset has no argument '%s'", arg);
	dev->tlp.from = dev->tlp.fn;
	qps_forget(&dev->tlp);
	return 0;
}

int skua_dev_tlp(struct skua_dev *dev, const char *what, char *answer, size_t room)
{
	static const struct {
		const char *verb;
		int (*fn)(struct skua_dev *dev, const char *arg, char *answer, size_t room);
	} verbs[] = {
		{ "reset", cmd_reset },
		{ "show", cmd_show },
		{ "per-qp", cmd_per_qp },
		{ "qps", cmd_qps },
	};
	size_t len = strcspn(what, " ");

	*answer = '\0';
	for (unsigned int i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strlen(verbs[i].verb) == len && !memcmp(verbs[i].verb, what, len))
			return verbs[i].fn(dev, what + len + (what[len] == ' '), answer, room);
	}
	return answer_err(answer, room, "tlp knows reset, show, per-qp and qps, not '%.*s'",
			  (int)len, what);
}

/* --- create and destroy; the accounts survive a reset of the function --- */

int tlp_init(struct skua_dev *dev)
{
	(void)dev;
	return 0;
}

void tlp_reset(struct skua_dev *dev)
{
	(void)dev;
}

void tlp_exit(struct skua_dev *dev)
{
	qps_off(&dev->tlp);
}
