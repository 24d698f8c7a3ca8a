// SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB)
/*
 * Skua provider: counters of flow rules. The kernel returns all values of a set; which of
 * them go to which index of the program's array is recorded here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "skua.h"

/* Number of values that the kernel returns, indexed by enum ibv_counter_description. */
#define SKUA_FLOW_VALUES	(IBV_COUNTER_BYTES + 1)
/* Highest index in a reader's array, plus 1. */
#define SKUA_COUNTERS_MAX	64

/**
 * struct skua_counters - counters object
 * @vcounters: libibverbs' part
 * @lock: protects what follows
 * @flows: flows that count in it
 * @times: how often each value is added to each index
 */
struct skua_counters {
	struct verbs_counters vcounters;
	pthread_mutex_t lock;
	uint32_t flows;
	uint32_t times[SKUA_COUNTERS_MAX][SKUA_FLOW_VALUES];
};

static struct skua_counters *to_scounters(struct ibv_counters *counters)
{
	return container_of(counters, struct skua_counters, vcounters.counters);
}

struct ibv_counters *skua_create_counters(struct ibv_context *ibctx,
					  struct ibv_counters_init_attr *attr)
{
	struct skua_counters *c;
	int ret;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		errno = ENOMEM;
		return NULL;
	}
	ret = ibv_cmd_create_counters(ibctx, attr, &c->vcounters, NULL);
	if (ret) {
		free(c);
		errno = ret;
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	return &c->vcounters.counters;
}

/*
 * The kernel's count of the flows is not enough: a thread that destroys one may not have
 * come to skua_counters_unbind() yet.
 */
int skua_destroy_counters(struct ibv_counters *counters)
{
	struct skua_counters *c = to_scounters(counters);
	bool busy;
	int ret;

	pthread_mutex_lock(&c->lock);
	busy = c->flows;
	pthread_mutex_unlock(&c->lock);
	if (busy)
		return EBUSY;
	ret = ibv_cmd_destroy_counters(&c->vcounters);
	if (ret)
		return ret;
	pthread_mutex_destroy(&c->lock);
	free(c);
	return 0;
}

/*
 * A flow is to count in the set, which stays as it is meanwhile. Returns false if it is no set
 * of this provider.
 */
bool skua_counters_bind(struct ibv_counters *counters)
{
	struct skua_counters *c;

	if (!counters || !skua_is_ours(counters->context->device))
		return false;
	c = to_scounters(counters);
	pthread_mutex_lock(&c->lock);
	c->flows++;
	pthread_mutex_unlock(&c->lock);
	return true;
}

void skua_counters_unbind(struct ibv_counters *counters)
{
	struct skua_counters *c = to_scounters(counters);

	pthread_mutex_lock(&c->lock);
	c->flows--;
	pthread_mutex_unlock(&c->lock);
}

/*
 * Record that a value is added to an index. This is done before a flow that names the set is
 * created; attaching to a flow that exists is not supported.
 */
int skua_attach_counters_point_flow(struct ibv_counters *counters,
				    struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct skua_counters *c = to_scounters(counters);
	int ret = 0;

	if (flow || attr->comp_mask || (uint32_t)attr->counter_desc >= SKUA_FLOW_VALUES)
		return ENOTSUP;
	if (attr->index >= SKUA_COUNTERS_MAX)
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	if (c->flows)
		ret = EBUSY;
	else
		c->times[attr->index][attr->counter_desc]++;
	pthread_mutex_unlock(&c->lock);
	return ret;
}

int skua_read_counters(struct ibv_counters *counters, uint64_t *value, uint32_t num,
		       uint32_t flags)
{
	struct skua_counters *c = to_scounters(counters);
	uint64_t raw[SKUA_FLOW_VALUES] = {};
	uint32_t i, j;
	int ret;

	ret = ibv_cmd_read_counters(&c->vcounters, raw, SKUA_FLOW_VALUES, flags, NULL);
	if (ret)
		return ret;
	memset(value, 0, num * sizeof(*value));
	pthread_mutex_lock(&c->lock);
	for (i = 0; i < num && i < SKUA_COUNTERS_MAX; i++)
		for (j = 0; j < SKUA_FLOW_VALUES; j++)
			value[i] += c->times[i][j] * raw[j];
	pthread_mutex_unlock(&c->lock);
	return 0;
}
