// SPDX-License-Identifier: GPL-2.0
/*
 * Parser of the fault language; fault.h has the grammar.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../roce/opcode.h"
#include "fault_priv.h"
#include "priv.h"

/* Bits per second. */
#define BANDWIDTH_MIN		1000
#define BANDWIDTH_MAX		10000000000000
/* Default of the maximum time that a frame is held back for later ones of its flow. */
#define HOLD_DEFAULT_NS		(2 * 1000 * 1000)
#define TIME_MAX_NS		(3600ull * 1000 * 1000 * 1000)
#define REORDER_MAX		4096

/* Parse an unsigned number, decimal or 0x. Without @end nothing may follow it. */
static bool parse_u64(const char *s, uint64_t *v, const char **end)
{
	char *e;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	*v = strtoull(s, &e, 0);
	if (errno || (!end && *e))
		return false;
	if (end)
		*end = e;
	return true;
}

static bool parse_rate(const char *s, uint64_t *rate)
{
	double v, d = 1;
	char *e;

	if (!isdigit((unsigned char)*s))
		return false;
	v = strtod(s, &e);
	if (*e == '%') {
		d = 100;
		e++;
	} else if (*e == '/') {
		if (!isdigit((unsigned char)e[1]))
			return false;
		d = strtod(e + 1, &e);
	}
	/* In this form the comparison also refuses NaN. */
	if (*e || !(d > 0) || !(v >= 0) || !(v <= d))
		return false;
	v = v / d * 0x1p64;
	*rate = v >= 0x1p64 ? FAULT_ALWAYS : (uint64_t)v;
	return true;
}

/* A unit of numbers, in multiples of a smaller one; the last one has no name. */
struct unit {
	const char *name;
	double factor;
};

/* A number with a unit, at most @max. */
static bool parse_quantity(const char *s, const struct unit *units, uint64_t max, uint64_t *to)
{
	double v;
	char *e;

	if (!isdigit((unsigned char)*s))
		return false;
	v = strtod(s, &e);
	for (; units->name; units++) {
		if (strcmp(e, units->name))
			continue;
		v *= units->factor;
		if (!(v <= (double)max))
			return false;
		*to = (uint64_t)v;
		return true;
	}
	return false;
}

static bool parse_time(const char *s, uint64_t *ns)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { 0 },
	};

	return parse_quantity(s, units, TIME_MAX_NS, ns);
}

static bool parse_bandwidth(const char *s, uint64_t *bps)
{
	static const struct unit units[] = {
		{ "kbit", 1e3 }, { "Mbit", 1e6 }, { "Gbit", 1e9 }, { 0 },
	};

	return parse_quantity(s, units, BANDWIDTH_MAX, bps) && *bps >= BANDWIDTH_MIN;
}

static bool parse_range(const char *s, struct fault_range *r)
{
	const char *e;

	if (!strcmp(s, "any")) {
		*r = (struct fault_range){ 0, UINT64_MAX };
		return true;
	}
	if (!parse_u64(s, &r->lo, &e))
		return false;
	r->hi = r->lo;
	if (*e == '-')
		return parse_u64(e + 1, &r->hi, NULL) && r->hi >= r->lo;
	return !*e;
}

static bool parse_name(const char *s, char name[FAULT_NAME_MAX])
{
	size_t len = strlen(s);

	if (!len || len >= FAULT_NAME_MAX)
		return false;
	memcpy(name, s, len + 1);
	return true;
}

/* N frames, or a time. */
static bool parse_reorder(const char *s, uint32_t *n, uint64_t *hold_ns)
{
	uint64_t v;

	if (parse_u64(s, &v, NULL)) {
		if (!v || v > REORDER_MAX)
			return false;
		*n = (uint32_t)v;
		return true;
	}
	*n = 0;
	return parse_time(s, hold_ns) && *hold_ns;
}

/* TIME[+JITTER][@RATE] */
static bool parse_delay(char *s, struct fault_rates *r)
{
	char *rate = strchr(s, '@');
	char *jitter;

	if (rate)
		*rate++ = '\0';
	jitter = strchr(s, '+');
	if (jitter)
		*jitter++ = '\0';
	r->rate[FAULT_DELAY] = FAULT_ALWAYS;
	return parse_time(s, &r->delay_ns) && (!jitter || parse_time(jitter, &r->jitter_ns)) &&
	       (!rate || parse_rate(rate, &r->rate[FAULT_DELAY]));
}

static bool parse_rates_reorder(char *s, struct fault_rates *r)
{
	char *how = strchr(s, ':');

	if (!how)
		return false;
	*how++ = '\0';
	return parse_rate(s, &r->rate[FAULT_REORDER]) &&
	       parse_reorder(how, &r->reorder_n, &r->hold_ns);
}

static bool rates_flag(const char *key, struct fault_rates *r)
{
	if (!strcmp(key, "all"))
		r->all = true;
	else if (!strcmp(key, "corrupt-any"))
		r->corrupt_any = true;
	else if (!strcmp(key, "ecn-force"))
		r->ecn_force = true;
	else
		return false;
	return true;
}

static bool rates_value(const char *key, char *value, struct fault_rates *r)
{
	if (!strcmp(key, "loss"))
		return parse_rate(value, &r->rate[FAULT_LOSS]);
	if (!strcmp(key, "dup"))
		return parse_rate(value, &r->rate[FAULT_DUP]);
	if (!strcmp(key, "corrupt"))
		return parse_rate(value, &r->rate[FAULT_CORRUPT]);
	if (!strcmp(key, "ecn"))
		return parse_rate(value, &r->rate[FAULT_ECN]);
	if (!strcmp(key, "delay"))
		return parse_delay(value, r);
	if (!strcmp(key, "reorder"))
		return parse_rates_reorder(value, r);
	if (!strcmp(key, "hold"))
		return parse_time(value, &r->hold_ns) && r->hold_ns;
	if (!strcmp(key, "bandwidth"))
		return parse_bandwidth(value, &r->bps);
	if (!strcmp(key, "port"))
		return parse_name(value, r->port);
	if (!strcmp(key, "key")) {
		r->key_qpn = !strcmp(value, "qpn");
		return r->key_qpn || !strcmp(value, "ordinal");
	}
	if (!strcmp(key, "seed")) {
		r->has_seed = true;
		return parse_u64(value, &r->seed, NULL);
	}
	return false;
}

static int parse_rates(char *text, struct fault_rates *r, char *err, size_t errlen)
{
	char *item, *save = NULL;

	r->hold_ns = HOLD_DEFAULT_NS;
	for (item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		char *value = strchr(item, '=');
		bool ok;

		if (value)
			*value++ = '\0';
		ok = value ? rates_value(item, value, r) : rates_flag(item, r);
		if (!ok)
			return wire_err(err, errlen, "fault: cannot understand \"%s%s%s\"", item,
					value ? "=" : "", value ? value : "");
	}
	return 0;
}

static bool parse_action(char *s, struct fault_rule *r)
{
	static const char * const names[] = {
		[FAULT_LOSS] = "drop",
		[FAULT_DUP] = "dup",
		[FAULT_CORRUPT] = "corrupt",
		[FAULT_ECN] = "ecn",
		[FAULT_DELAY] = "delay",
		[FAULT_REORDER] = "reorder",
	};
	char *arg = strchr(s, '/');
	unsigned int i;

	if (arg)
		*arg++ = '\0';
	for (i = 0; i < FAULT_KIND_MAX; i++)
		if (!strcmp(s, names[i]))
			break;
	r->kind = i;
	switch (r->kind) {
	case FAULT_DELAY:
		return arg && parse_time(arg, &r->delay_ns);
	case FAULT_REORDER:
		return arg && parse_reorder(arg, &r->reorder_n, &r->hold_ns);
	default:
		return !arg && i < FAULT_KIND_MAX;
	}
}

static bool parse_class(const char *s, enum fault_class *class)
{
	static const char * const names[] = {
		[FAULT_CLASS_REQ] = "req",
		[FAULT_CLASS_RESP] = "resp",
		[FAULT_CLASS_CNP] = "cnp",
		[FAULT_CLASS_OTHER] = "other",
		[FAULT_CLASS_ANY] = "any",
	};
	unsigned int i;

	for (i = 0; i <= FAULT_CLASS_ANY; i++)
		if (!strcmp(s, names[i])) {
			*class = i;
			return true;
		}
	return false;
}

static bool parse_opcode(const char *s, int *opcode)
{
	uint64_t v;
	int i;

	if (parse_u64(s, &v, NULL)) {
		*opcode = (int)v;
		return v <= UINT8_MAX;
	}
	for (i = 0; i <= UINT8_MAX; i++) {
		const struct ib_opcode_info *op = ib_opcode_info((uint8_t)i);

		if (op && !strcasecmp(op->name, s)) {
			*opcode = i;
			return true;
		}
	}
	return false;
}

static bool rule_match(const char *key, const char *value, struct fault_rule *r)
{
	if (!strcmp(key, "port"))
		return parse_name(value, r->port);
	if (!strcmp(key, "frame"))
		return parse_range(value, &r->frame);
	if (!strcmp(key, "count"))
		return parse_u64(value, &r->count, NULL);

	/* All other items match fields that only RoCE packets have. */
	r->any_frame = false;
	if (!strcmp(key, "qpn"))
		return parse_range(value, &r->qpn);
	if (!strcmp(key, "qp"))
		return parse_range(value, &r->qp);
	if (!strcmp(key, "psn"))
		return parse_range(value, &r->psn);
	if (!strcmp(key, "iter"))
		return parse_range(value, &r->iter);
	if (!strcmp(key, "class"))
		return parse_class(value, &r->class);
	if (!strcmp(key, "op"))
		return parse_opcode(value, &r->opcode);
	return false;
}

static int parse_rule(char *text, struct fault_rule *r, char *err, size_t errlen)
{
	static const struct fault_range any = { 0, UINT64_MAX };
	char *match = strchr(text, ':');
	char *item, *save = NULL;

	*r = (struct fault_rule){
		.hold_ns = HOLD_DEFAULT_NS, .class = FAULT_CLASS_ANY, .opcode = -1,
		.qpn = any, .qp = any, .psn = any, .iter = any, .frame = any,
		.any_frame = true, .count = UINT64_MAX,
	};
	if (match)
		*match++ = '\0';
	if (!parse_action(text, r))
		return wire_err(err, errlen, "fault: cannot understand action \"%s\"", text);
	if (!match) {
		r->any_frame = false;
		return 0;
	}
	for (item = strtok_r(match, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		char *value = strchr(item, '=');

		if (value)
			*value++ = '\0';
		if (!value || !rule_match(item, value, r))
			return wire_err(err, errlen, "fault: cannot understand match \"%s%s%s\"",
					item, value ? "=" : "", value ? value : "");
	}
	/* Other frames than RoCE need the item "all". */
	if (r->frame.lo == any.lo && r->frame.hi == any.hi)
		r->any_frame = false;
	return 0;
}

int fault_parse_clause(char *text, struct fault_clause *clause, char *err, size_t errlen)
{
	static const char rule[] = "rule=";

	memset(clause, 0, sizeof(*clause));
	clause->is_rule = !strncmp(text, rule, sizeof(rule) - 1);
	if (clause->is_rule)
		return parse_rule(text + sizeof(rule) - 1, &clause->rule, err, errlen);
	if (strstr(text, rule))
		return wire_err(err, errlen, "fault: a rule is a clause of its own, put ';' before it");
	return parse_rates(text, &clause->rates, err, errlen);
}
