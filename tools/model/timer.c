// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlines, in one heap. Each QP, CQ and EQ has at most one entry, and there are a few function
 * calls, so that the number of objects bounds its size. The position of each owner's entry is
 * recorded, so that a deadline can be changed.
 *
 * The host's timer is set anew only to an earlier time: an expiry that is too early costs less
 * than a call of the host for each acknowledgment.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

enum kind { KIND_QP, KIND_CQ, KIND_EQ, KIND_CALL, KINDS };

#define LOG_CALLS	8
/* Maximum number of expiries in one call. */
#define BUDGET		64

static const uint8_t log_size[KINDS] = { MODEL_LOG_QP, MODEL_LOG_CQ, MODEL_LOG_EQ, LOG_CALLS };

struct node {
	uint64_t deadline;
	uint32_t index:24;
	uint32_t kind:8;
} __attribute__((packed));

_Static_assert(sizeof(struct node) == 12, "of each QP on the chip");

struct call {
	void (*fn)(struct skua_dev *dev, uint32_t arg);
	uint32_t arg;
};

/* @pos: position of an owner's node in the heap, plus one; 0: none. @told: the host's deadline. */
struct timers {
	struct node *heap;
	uint32_t num, room;
	uint32_t *pos[KINDS];
	struct call call[1 << LOG_CALLS];
	uint64_t told;
};

int timer_init(struct skua_dev *dev)
{
	dev->timers = calloc(1, sizeof(*dev->timers));
	return dev->timers ? 0 : -ENOMEM;
}

void timer_reset(struct skua_dev *dev)
{
	struct timers *t = dev->timers;

	for (unsigned int k = 0; k < KINDS; k++) {
		free(t->pos[k]);
		t->pos[k] = NULL;
	}
	t->num = 0;
	t->told = 0;
}

void timer_exit(struct skua_dev *dev)
{
	if (!dev->timers)
		return;
	timer_reset(dev);
	free(dev->timers->heap);
	free(dev->timers);
}

struct onchip timer_onchip(const struct skua_dev *dev)
{
	const struct timers *t = dev->timers;

	return (struct onchip){
		.num = t->num,
		.bytes = t->num * (sizeof(*t->heap) + sizeof(*t->pos[0])) + sizeof(t->call),
	};
}

static void place(struct timers *t, uint32_t at, struct node node)
{
	t->heap[at] = node;
	t->pos[node.kind][node.index] = at + 1;
}

static void sift_up(struct timers *t, uint32_t at, struct node node)
{
	while (at) {
		uint32_t up = (at - 1) / 2;

		if (t->heap[up].deadline <= node.deadline)
			break;
		place(t, at, t->heap[up]);
		at = up;
	}
	place(t, at, node);
}

static void sift_down(struct timers *t, uint32_t at, struct node node)
{
	for (;;) {
		uint32_t down = 2 * at + 1;

		if (down >= t->num)
			break;
		if (down + 1 < t->num && t->heap[down + 1].deadline < t->heap[down].deadline)
			down++;
		if (t->heap[down].deadline >= node.deadline)
			break;
		place(t, at, t->heap[down]);
		at = down;
	}
	place(t, at, node);
}

static void move(struct timers *t, uint32_t at, struct node node)
{
	if (at && t->heap[(at - 1) / 2].deadline > node.deadline)
		sift_up(t, at, node);
	else
		sift_down(t, at, node);
}

static void cancel(struct timers *t, enum kind kind, uint32_t index)
{
	uint32_t at;
	struct node last;

	if (!t->pos[kind] || !t->pos[kind][index])
		return;
	at = t->pos[kind][index] - 1;
	t->pos[kind][index] = 0;
	last = t->heap[--t->num];
	if (at < t->num)
		move(t, at, last);
}

/* Room for one more entry. */
static bool grow(struct timers *t, enum kind kind)
{
	struct node *heap;
	uint32_t room;

	if (!t->pos[kind]) {
		t->pos[kind] = calloc(1u << log_size[kind], sizeof(uint32_t));
		if (!t->pos[kind])
			return false;
	}
	if (t->num < t->room)
		return true;
	room = t->room ? 2 * t->room : 64;
	heap = realloc(t->heap, room * sizeof(*heap));
	if (!heap)
		return false;
	t->heap = heap;
	t->room = room;
	return true;
}

static int set(struct skua_dev *dev, enum kind kind, uint32_t index, uint64_t deadline)
{
	struct timers *t = dev->timers;
	struct node node = { .deadline = deadline, .index = index, .kind = kind };

	if (deadline == SKUA_TIME_NEVER) {
		cancel(t, kind, index);
		return 0;
	}
	if (!grow(t, kind)) {
		/* A lost deadline would let a queue hang: make the device FATAL instead. */
		dev_log(dev, 0, "no memory for a timer");
		dev_fatal(dev, SKUA_FATAL_ICM_DMA);
		return -1;
	}
	if (t->pos[kind][index])
		move(t, t->pos[kind][index] - 1, node);
	else
		sift_up(t, t->num++, node);
	return 0;
}

void timer_set(struct skua_dev *dev, uint32_t qpn, uint64_t deadline)
{
	set(dev, KIND_QP, qp_index(qpn), deadline);
}

void timer_at_latest(struct skua_dev *dev, uint32_t qpn, uint64_t deadline)
{
	const struct timers *t = dev->timers;
	uint32_t at = t->pos[KIND_QP] ? t->pos[KIND_QP][qp_index(qpn)] : 0;

	if (!at || t->heap[at - 1].deadline > deadline)
		timer_set(dev, qpn, deadline);
}

void timer_set_cq(struct skua_dev *dev, uint32_t cqn, uint64_t deadline)
{
	set(dev, KIND_CQ, cqn, deadline);
}

void timer_set_eq(struct skua_dev *dev, uint32_t eqn, uint64_t deadline)
{
	set(dev, KIND_EQ, eqn, deadline);
}

int timer_call(struct skua_dev *dev, uint64_t deadline, void (*fn)(struct skua_dev *, uint32_t),
	       uint32_t arg)
{
	struct timers *t = dev->timers;

	if (deadline == SKUA_TIME_NEVER)
		return 0;
	for (uint32_t i = 0; i < 1u << LOG_CALLS; i++) {
		if (t->pos[KIND_CALL] && t->pos[KIND_CALL][i])
			continue;
		t->call[i] = (struct call){ .fn = fn, .arg = arg };
		return set(dev, KIND_CALL, i, deadline);
	}
	return -1;
}

static void expire(struct skua_dev *dev, const struct node *node)
{
	const struct call *call;
	struct qp qp;

	switch (node->kind) {
	case KIND_QP:
		if (qp_get_sq_index(dev, node->index, &qp))
			break;
		engine_timer(dev, &qp);
		qp_put(dev, &qp);
		break;
	case KIND_CQ:
		cq_timer(dev, node->index);
		break;
	case KIND_EQ:
		eq_timer(dev, node->index);
		break;
	case KIND_CALL:
		call = &dev->timers->call[node->index];
		call->fn(dev, call->arg);
		break;
	}
}

void timer_rang(struct skua_dev *dev)
{
	dev->timers->told = 0;
}

void timer_run(struct skua_dev *dev)
{
	struct timers *t = dev->timers;
	uint64_t now = dev_now(dev);

	for (unsigned int n = 0; n < BUDGET && t->num && dev->state != DEV_FATAL; n++) {
		struct node node = t->heap[0];

		if (node.deadline > now || (n && dev_turn_over(dev)))
			break;
		cancel(t, node.kind, node.index);
		expire(dev, &node);
	}
}

/* @told is 0 when the host's timer is off or has expired. */
void timer_sync(struct skua_dev *dev)
{
	struct timers *t = dev->timers;
	uint64_t want;

	if (dev->state == DEV_FATAL || !t->num)
		return;
	want = t->heap[0].deadline ? t->heap[0].deadline : 1;
	if (t->told && t->told <= want)
		return;
	t->told = want;
	dev->host->timer(dev->host_priv, want);
}
