// SPDX-License-Identifier: GPL-2.0
/*
 * The ready queue: QPs that have something to do, in turns. A QP is in it once at
 * most, from the moment something happened to it until a turn finds nothing more
 * that it could do now; it costs nothing while it waits for the other side.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

/* Turns of one round, and frames of an Ethernet queue's turn. */
#define ROUND	8
#define FRAMES	16

/* By QP index; numbers in the list are index + 1, 0 ends it. */
struct link {
	uint32_t next, prev;
	bool queued;
};

struct sched {
	struct link *link;
	uint32_t head, tail;
};

int sched_init(struct skua_dev *dev)
{
	dev->sched = calloc(1, sizeof(*dev->sched));
	if (!dev->sched)
		return -ENOMEM;
	dev->sched->link = calloc(1u << MODEL_LOG_QP, sizeof(struct link));
	return dev->sched->link ? 0 : -ENOMEM;
}

static void unlink_qp(struct sched *s, uint32_t index)
{
	struct link *l = &s->link[index];

	if (!l->queued)
		return;
	if (l->prev)
		s->link[l->prev - 1].next = l->next;
	else
		s->head = l->next;
	if (l->next)
		s->link[l->next - 1].prev = l->prev;
	else
		s->tail = l->prev;
	*l = (struct link){ 0 };
}

void sched_reset(struct skua_dev *dev)
{
	struct sched *s = dev->sched;

	while (s->head)
		unlink_qp(s, s->head - 1);
}

void sched_exit(struct skua_dev *dev)
{
	if (!dev->sched)
		return;
	free(dev->sched->link);
	free(dev->sched);
}

void sched_kick(struct skua_dev *dev, uint32_t qpn)
{
	struct sched *s = dev->sched;
	uint32_t index = qp_index(qpn);
	struct link *l = &s->link[index];

	if (l->queued)
		return;
	*l = (struct link){ .prev = s->tail, .queued = true };
	if (s->tail)
		s->link[s->tail - 1].next = index + 1;
	else
		s->head = index + 1;
	s->tail = index + 1;
}

void sched_forget(struct skua_dev *dev, uint32_t qpn)
{
	unlink_qp(dev->sched, qp_index(qpn));
}

static bool turn(struct skua_dev *dev, struct qp *qp)
{
	if (qp_type(qp) == SKUA_QP_RAW_ETH)
		return eth_sq_run(dev, qp, FRAMES);
	return engine_run(dev, qp);
}

bool sched_run(struct skua_dev *dev)
{
	struct sched *s = dev->sched;

	for (unsigned int n = 0; n < ROUND && s->head && !port_tx_busy(dev); n++) {
		uint32_t index = s->head - 1;
		struct qp qp;

		if (n && dev_turn_over(dev))
			break;
		unlink_qp(s, index);
		if (qp_get_index(dev, index, &qp))
			continue;
		if (turn(dev, &qp))
			sched_kick(dev, qp.qpn);
		qp_put(dev, &qp);
		if (dev->state != DEV_OPERATIONAL)
			return false;
	}
	return s->head;
}
