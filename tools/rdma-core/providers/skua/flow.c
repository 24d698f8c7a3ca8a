// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: flow steering.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "skua.h"

/**
 * struct skua_rule - flow rule
 * @ibv_flow: libibverbs' part
 * @counters: what it counts in, or NULL
 */
struct skua_rule {
	struct ibv_flow ibv_flow;
	struct ibv_counters *counters;
};

static struct skua_rule *to_srule(struct ibv_flow *flow)
{
	return container_of(flow, struct skua_rule, ibv_flow);
}

/*
 * The first action to count, copied to @count: specifications are packed, so that one may not be
 * aligned. The kernel refuses a rule with more than one. Returns false if there is none.
 */
static bool find_count(const struct ibv_flow_attr *attr, struct ibv_flow_spec_counter_action *count)
{
	const uint8_t *p = (const uint8_t *)(attr + 1);
	unsigned int i;

	for (i = 0; i < attr->num_of_specs; i++) {
		memcpy(count, p, offsetof(struct ibv_flow_spec_counter_action, counters));
		if (count->type == IBV_FLOW_SPEC_ACTION_COUNT) {
			memcpy(count, p, sizeof(*count));
			return true;
		}
		p += count->size;
	}
	return false;
}

struct ibv_flow *skua_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow_spec_counter_action count;
	struct skua_rule *rule;
	int ret;

	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return NULL;
	if (find_count(attr, &count)) {
		if (!skua_counters_bind(count.counters)) {
			ret = EINVAL;
			goto err;
		}
		rule->counters = count.counters;
	}
	ret = ibv_cmd_create_flow(qp, &rule->ibv_flow, attr, NULL, 0);
	if (ret)
		goto err_unbind;
	return &rule->ibv_flow;

err_unbind:
	if (rule->counters)
		skua_counters_unbind(rule->counters);
err:
	free(rule);
	errno = ret;
	return NULL;
}

int skua_destroy_flow(struct ibv_flow *ibflow)
{
	struct skua_rule *rule = to_srule(ibflow);
	int ret;

	ret = ibv_cmd_destroy_flow(ibflow);
	if (ret)
		return ret;
	if (rule->counters)
		skua_counters_unbind(rule->counters);
	free(rule);
	return 0;
}
