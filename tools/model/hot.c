// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell suppression: send queues whose software rings no doorbell, because the device
 * looks at their doorbell records by itself (SKUA_QP_F_DB_SUPPRESS).
 *
 * A queue is cold, or hot. Software rings for a cold one: its record has the device's event
 * index, which is the producer index that the device knows. The doorbell makes it hot, and
 * that costs nothing, because the event index is then behind what software posts. The
 * device looks at the record of a hot queue in each round, until it has looked so many times
 * in a row and found nothing, or the host is about to sleep. Then it writes the event index,
 * reads the record once more, and if there still is nothing new the queue is cold.
 *
 * The list of queues that are looked at is short. A hot queue for which it has no room is
 * waiting: it is in the ready queue or parked (sched.c), and what happens to it is decided
 * after its turn: it is put into the list, or made cold as above, one attempt in each turn.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "icm.h"

/* Queues that are looked at in each round. */
#define LIST_MAX	64
/* How often in a row there may be nothing new. */
#define LOOKS_DEFAULT	32

/* Of a QP: cold, hot and waiting, or its place in the list + LISTED. */
enum { COLD, WAITING, LISTED };

/**
 * struct hot_sq - a send queue that is looked at
 * @index: of the QP
 * @pi: producer index known
 * @misses: times in a row that there was nothing new
 * @dbr: bus address of the doorbell record
 */
struct hot_sq {
	uint32_t index;
	uint32_t pi;
	uint32_t misses;
	uint64_t dbr;
};

struct hot {
	struct hot_sq list[LIST_MAX];
	unsigned int num;
	unsigned int looks;
	uint8_t *state;		/* by QP index */
};

_Static_assert(LISTED + LIST_MAX <= UINT8_MAX, "state of a QP");

/* What a look at a record showed. */
enum look { LOOK_OLD, LOOK_NEW, LOOK_BAD, LOOK_ERROR };

int hot_init(struct skua_dev *dev)
{
	dev->hot = calloc(1, sizeof(*dev->hot));
	if (!dev->hot)
		return -ENOMEM;
	dev->hot->looks = dev->cfg.hot_looks ? dev->cfg.hot_looks : LOOKS_DEFAULT;
	dev->hot->state = calloc(1u << MODEL_LOG_QP, sizeof(*dev->hot->state));
	return dev->hot->state ? 0 : -ENOMEM;
}

void hot_reset(struct skua_dev *dev)
{
	dev->hot->num = 0;
	memset(dev->hot->state, COLD, 1u << MODEL_LOG_QP);
}

void hot_exit(struct skua_dev *dev)
{
	if (!dev->hot)
		return;
	free(dev->hot->state);
	free(dev->hot);
}

struct onchip hot_onchip(const struct skua_dev *dev)
{
	return (struct onchip){
		.num = dev->hot->num,
		.bytes = sizeof(dev->hot->list) +
			 dev->icm->table[SKUA_ICM_SQC].objects * sizeof(*dev->hot->state),
	};
}

static bool suppresses(const struct qp *qp)
{
	return le32_to_cpu(qp->sqc->cfg.flags) & SKUA_QP_F_DB_SUPPRESS;
}

static struct hot_sq *listed(struct hot *hot, uint32_t index)
{
	return hot->state[index] >= LISTED ? &hot->list[hot->state[index] - LISTED] : NULL;
}

/* Into the list. False: it is full. */
static bool enlist(struct hot *hot, const struct qp *qp)
{
	uint32_t index = qp_index(qp->qpn);

	if (hot->num == LIST_MAX)
		return false;
	hot->list[hot->num] = (struct hot_sq){
		.index = index,
		.pi = le32_to_cpu(qp->sqc->pi),
		.dbr = le64_to_cpu(qp->sqc->cfg.dbr),
	};
	hot->state[index] = LISTED + hot->num++;
	return true;
}

bool hot_place(const struct skua_dev *dev, uint32_t qpn, uint32_t *misses)
{
	struct hot_sq *sq = listed(dev->hot, qp_index(qpn));

	*misses = sq ? sq->misses : 0;
	return dev->hot->state[qp_index(qpn)] != COLD;
}

void hot_forget(struct skua_dev *dev, uint32_t qpn)
{
	struct hot *hot = dev->hot;
	struct hot_sq *sq = listed(hot, qp_index(qpn));

	hot->state[qp_index(qpn)] = COLD;
	if (!sq)
		return;
	/* The last one takes its place. */
	*sq = hot->list[--hot->num];
	if (sq != &hot->list[hot->num])
		hot->state[sq->index] = LISTED + (sq - hot->list);
}

void hot_doorbell(struct skua_dev *dev, const struct qp *qp)
{
	struct hot *hot = dev->hot;
	struct hot_sq *sq = listed(hot, qp_index(qp->qpn));

	if (!suppresses(qp))
		return;
	if (sq) {
		sq->pi = le32_to_cpu(qp->sqc->pi);
		sq->misses = 0;
	} else if (!enlist(hot, qp)) {
		hot->state[qp_index(qp->qpn)] = WAITING;
	}
}

/*
 * The record cannot be read, or the event index not be written: software and device cannot
 * tell each other of work any more.
 */
static void fail(struct skua_dev *dev, struct qp *qp)
{
	hot_forget(dev, qp->qpn);
	if (qp_state(qp) != SKUA_QP_ERR)
		qp_error(dev, qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
}

/* Read the record; @pi is what is known. */
static enum look read_record(struct skua_dev *dev, uint64_t dbr, uint32_t pi, uint32_t *now)
{
	__le32 record;

	if (dma_read(dev, TLP_RECORD, dbr + offsetof(struct skua_qp_dbr, sq_pi), &record,
		     sizeof(record)))
		return LOOK_ERROR;
	*now = le32_to_cpu(record);
	return *now == pi ? LOOK_OLD : LOOK_NEW;
}

/* The record of the QP has index @now, which may be any. */
static enum look take(struct skua_dev *dev, struct qp *qp, uint32_t now)
{
	if (!sq_index_ok(qp->sqc, now))
		return LOOK_BAD;
	dev->cnt[SKUA_CNT_SQ_RECORD]++;
	qp->sqc->pi = cpu_to_le32(now);
	ctx_dirty(dev, qp->sqc);
	sched_kick(dev, qp->qpn);
	return LOOK_NEW;
}

/*
 * Try to make the QP cold. LOOK_OLD: it is. LOOK_NEW: it stays hot, and is in the ready
 * queue again. Otherwise it is cold and the reason was dealt with; @told: a bad record has
 * been counted.
 */
static enum look cool(struct skua_dev *dev, struct qp *qp, bool told)
{
	uint64_t dbr = le64_to_cpu(qp->sqc->cfg.dbr);
	uint32_t now;
	enum look look;

	dev->cnt[SKUA_CNT_SQ_EVENT]++;
	if (dma_write(dev, TLP_RECORD, dbr + offsetof(struct skua_qp_dbr, sq_event), &qp->sqc->pi,
		      sizeof(qp->sqc->pi))) {
		fail(dev, qp);
		return LOOK_ERROR;
	}
	/*
	 * Pairs with dma_mb() in skua_sq_record(): either software sees this event index, and
	 * rings, or the record that it has written is seen here.
	 */
	dma_order(dev);
	look = read_record(dev, dbr, le32_to_cpu(qp->sqc->pi), &now);
	if (look == LOOK_NEW)
		look = take(dev, qp, now);
	if (look == LOOK_NEW)
		return look;
	if (look == LOOK_BAD && !told)
		dev->cnt[SKUA_CNT_BAD_DB_INDEX]++;
	if (look == LOOK_ERROR)
		fail(dev, qp);
	else
		hot_forget(dev, qp->qpn);
	return look;
}

void hot_turn(struct skua_dev *dev, struct qp *qp)
{
	if (dev->hot->state[qp_index(qp->qpn)] == WAITING && !enlist(dev->hot, qp))
		cool(dev, qp, false);
}

/* The record of one in the list is not as known, or was so for long enough. */
static void look_closer(struct skua_dev *dev, struct hot_sq *sq, enum look look, uint32_t now)
{
	struct qp qp;

	if (qp_get_sq_index(dev, sq->index, &qp))
		return;
	if (look == LOOK_NEW)
		look = take(dev, &qp, now);
	if (look == LOOK_BAD)
		dev->cnt[SKUA_CNT_BAD_DB_INDEX]++;
	if (look == LOOK_ERROR)
		fail(dev, &qp);
	else if (look != LOOK_NEW)
		look = cool(dev, &qp, look == LOOK_BAD);
	if (look == LOOK_NEW) {
		sq->pi = le32_to_cpu(qp.sqc->pi);
		sq->misses = 0;
	}
	qp_put(dev, &qp);
}

bool hot_run(struct skua_dev *dev)
{
	struct hot *hot = dev->hot;

	/* From the end: one that goes is replaced by one that has been looked at. */
	for (unsigned int i = hot->num; i-- && dev->state == DEV_OPERATIONAL;) {
		struct hot_sq *sq = &hot->list[i];
		enum look look;
		uint32_t now = 0;

		/* One that is to have a turn has enough to do. */
		if (sched_ready(dev, sq->index))
			continue;
		if (dev->tlp.qps)
			tlp_qp_begin(dev, sq->index);
		look = read_record(dev, sq->dbr, sq->pi, &now);
		dev->tlp.qp = NULL;
		if (look != LOOK_OLD || ++sq->misses == hot->looks)
			look_closer(dev, sq, look, now);
	}
	return hot->num;
}

bool hot_rest(struct skua_dev *dev)
{
	struct hot *hot = dev->hot;

	/* As in hot_run(). */
	for (unsigned int i = hot->num; i-- && dev->state == DEV_OPERATIONAL;)
		look_closer(dev, &hot->list[i], LOOK_OLD, 0);
	return hot->num;
}
