// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of the command engine, of Ethernet queues and of the heartbeat: the parser of rules,
 * and their application. Documentation/cmd-faults.rst describes the language.
 *
 * Rules survive a reset of the device, so that the commands that bring the device up again can
 * be made to fail, too.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_fault.h"

#define RULES		32
#define ANY_OP		UINT32_MAX
#define TEXT_MAX	1024
#define DELAY_MAX	(3600ull * 1000 * 1000 * 1000)

/**
 * struct rule - one clause
 * @op: opcode, ANY_OP, or one of enum fault_op
 * @first: first command (WQE, frame) with the fault, counted from 1
 * @last: last one
 * @seen: commands (WQEs, frames) of that name so far
 * @hit: those with a fault by this rule
 * @fault: the fault
 */
struct rule {
	uint32_t op;
	uint64_t first, last;
	uint64_t seen, hit;
	struct cmd_fault fault;
};

struct cmd_faults {
	struct rule rule[RULES];
	unsigned int num;
};

struct name {
	const char *name;
	uint32_t value;
};

static const struct name ops[] = {
#define X(name, op, in, out, states, class) { #name, op },
	SKUA_CMD_TABLE(X)
#undef X
	{ "any", ANY_OP },
	{ "ETH_SEND", ETH_FAULT_SEND },
	{ "ETH_RECV", ETH_FAULT_RECV },
	{ "HEARTBEAT", HEARTBEAT_FAULT },
};

static const struct name statuses[] = {
#define X(name, value, err, text) { #name, value },
	SKUA_CMD_STATUS_TABLE(X)
#undef X
};

static const struct name kinds[] = {
	{ "fail", CMD_FAULT_FAIL },
	{ "ignore", CMD_FAULT_IGNORE },
	{ "lose", CMD_FAULT_LOSE },
	{ "noevent", CMD_FAULT_NO_EVENT },
	{ "late", CMD_FAULT_LATE },
	{ "dma", CMD_FAULT_DMA },
	{ "twice", CMD_FAULT_TWICE },
	{ "long", CMD_FAULT_LONG },
};

static bool is_command(uint32_t op)
{
	return op < ETH_FAULT_SEND || op == ANY_OP;
}

/* What kind of operation a fault applies to. */
static bool kind_fits(enum cmd_fault_kind kind, uint32_t op)
{
	switch (kind) {
	case CMD_FAULT_LOSE:
		return op != HEARTBEAT_FAULT;
	case CMD_FAULT_IGNORE:
		return is_command(op) || op == HEARTBEAT_FAULT;
	case CMD_FAULT_DMA:
	case CMD_FAULT_TWICE:
		return op == ETH_FAULT_SEND || op == ETH_FAULT_RECV;
	case CMD_FAULT_LONG:
		return op == ETH_FAULT_RECV;
	default:
		return is_command(op);
	}
}

#define N(a) (sizeof(a) / sizeof((a)[0]))

static bool find_value(const struct name *list, size_t n, const char *name, uint32_t *value)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(list[i].name, name)) {
			*value = list[i].value;
			return true;
		}
	}
	return false;
}

static const char *find_name(const struct name *list, size_t n, uint32_t value)
{
	for (size_t i = 0; i < n; i++) {
		if (list[i].value == value)
			return list[i].name;
	}
	return "?";
}

static bool parse_num(const char *text, uint64_t *num, char **end)
{
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*num = strtoull(text, end, 10);
	return !errno;
}

/* N, N-M or N+, counted from 1. */
static bool parse_range(const char *text, struct rule *rule)
{
	char *end;

	if (!parse_num(text, &rule->first, &end) || !rule->first)
		return false;
	rule->last = rule->first;
	if (!strcmp(end, "+")) {
		rule->last = UINT64_MAX;
		return true;
	}
	if (*end == '-' && !parse_num(end + 1, &rule->last, &end))
		return false;
	return !*end && rule->last >= rule->first;
}

static bool parse_delay(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = { { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	uint64_t num;
	char *end;

	if (!parse_num(text, &num, &end))
		return false;
	for (size_t i = 0; i < N(units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		if (num > DELAY_MAX / units[i].ns)
			return false;
		*ns = num * units[i].ns;
		return true;
	}
	return false;
}

static int parse_fault(char *text, struct cmd_fault *fault, char *err, size_t len)
{
	char *val = strchr(text, '=');
	uint32_t num;

	if (val)
		*val++ = '\0';
	if (!find_value(kinds, N(kinds), text, &num))
		return answer_err(err, len, "no fault is called '%s'", text);
	fault->kind = num;
	switch (fault->kind) {
	case CMD_FAULT_FAIL:
		if (!val || !find_value(statuses, N(statuses), val, &num) || !num)
			return answer_err(err, len, "'%s' is no status of a failure", val ? val : "");
		fault->status = num;
		return 0;
	case CMD_FAULT_LATE:
		if (!val || !parse_delay(val, &fault->delay))
			return answer_err(err, len, "'%s' is no time (us, ms, s)", val ? val : "");
		return 0;
	default:
		return val ? answer_err(err, len, "'%s' takes no value", text) : 0;
	}
}

/* OPCODE[@RANGE]:FAULT */
static int parse_rule(char *text, struct rule *rule, char *err, size_t len)
{
	char *fault = strchr(text, ':');
	char *range;

	*rule = (struct rule){ .first = 1, .last = UINT64_MAX };
	if (!fault)
		return answer_err(err, len, "'%s' is not OPCODE[@RANGE]:FAULT", text);
	*fault++ = '\0';
	range = strchr(text, '@');
	if (range)
		*range++ = '\0';
	if (!find_value(ops, N(ops), text, &rule->op))
		return answer_err(err, len, "no command is called '%s'", text);
	if (range && !parse_range(range, rule))
		return answer_err(err, len, "'%s' is not N, N-M or N+, from 1", range);
	if (parse_fault(fault, &rule->fault, err, len))
		return -EINVAL;
	if (!kind_fits(rule->fault.kind, rule->op))
		return answer_err(err, len, "'%s' has no fault '%s'", text, fault);
	return 0;
}

int skua_dev_cmd_fault(struct skua_dev *dev, const char *spec, char *err, size_t len)
{
	struct cmd_faults *f = dev->cmd_faults, now = *f;
	char text[TEXT_MAX], *rest = text, *clause;
	bool any = false;

	if (strlen(spec) >= sizeof(text))
		return answer_err(err, len, "too long");
	strcpy(text, spec);
	while ((clause = strsep(&rest, "; \t"))) {
		if (!*clause)
			continue;
		any = true;
		if (!strcmp(clause, "off")) {
			now.num = 0;
			continue;
		}
		if (now.num == RULES)
			return answer_err(err, len, "more than %d rules", RULES);
		if (parse_rule(clause, &now.rule[now.num], err, len))
			return -EINVAL;
		now.num++;
	}
	if (!any)
		return answer_err(err, len, "no rule");
	/* Add all rules of a text, or, if one is wrong, none. */
	*f = now;
	return 0;
}

void skua_dev_cmd_fault_show(const struct skua_dev *dev, char *buf, size_t len)
{
	const struct cmd_faults *f = dev->cmd_faults;
	size_t at = 0;

	if (len)
		*buf = '\0';
	for (unsigned int i = 0; i < f->num && at < len; i++) {
		const struct rule *r = &f->rule[i];

		at += snprintf(buf + at, len - at, "%s%s:%s seen %llu hit %llu",
			       i ? "; " : "", find_name(ops, N(ops), r->op),
			       find_name(kinds, N(kinds), r->fault.kind),
			       (unsigned long long)r->seen, (unsigned long long)r->hit);
	}
}

/* "any" matches commands only, not Ethernet queues and the heartbeat. */
static bool rule_fits(const struct rule *r, uint32_t op)
{
	return r->op == op || (r->op == ANY_OP && is_command(op));
}

struct cmd_fault cmd_fault_next(struct skua_dev *dev, uint32_t op)
{
	struct cmd_faults *f = dev->cmd_faults;
	struct cmd_fault fault = { .kind = CMD_FAULT_NONE };

	for (unsigned int i = 0; i < f->num; i++) {
		struct rule *r = &f->rule[i];

		if (!rule_fits(r, op))
			continue;
		r->seen++;
		/* The first rule that matches is applied; the counts of the others advance, too. */
		if (fault.kind != CMD_FAULT_NONE || r->seen < r->first || r->seen > r->last)
			continue;
		r->hit++;
		fault = r->fault;
		dev_log(dev, 2, "%s: fault '%s'", find_name(ops, N(ops), op),
			find_name(kinds, N(kinds), fault.kind));
	}
	return fault;
}

void cmd_fault_undo(struct skua_dev *dev, uint32_t op)
{
	struct cmd_faults *f = dev->cmd_faults;
	bool acted = false;

	for (unsigned int i = 0; i < f->num; i++) {
		struct rule *r = &f->rule[i];

		if (!rule_fits(r, op))
			continue;
		if (!acted && r->seen >= r->first && r->seen <= r->last) {
			acted = true;
			r->hit--;
		}
		r->seen--;
	}
}

int cmd_fault_init(struct skua_dev *dev)
{
	dev->cmd_faults = calloc(1, sizeof(*dev->cmd_faults));
	return dev->cmd_faults ? 0 : -ENOMEM;
}

/* The rules stay. */
void cmd_fault_reset(struct skua_dev *dev)
{
	(void)dev;
}

void cmd_fault_exit(struct skua_dev *dev)
{
	free(dev->cmd_faults);
}
