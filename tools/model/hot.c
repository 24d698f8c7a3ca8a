// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell suppression (SKUA_QP_F_DB_SUPPRESS): while the device polls the doorbell record of a
 * send queue, software need not ring the doorbell.
 *
 * A queue is cold or hot. Software rings the doorbell of a cold queue, whose record has the
 * producer index that the device knows as its event index. The doorbell makes the queue hot.
 * That takes no write to the record: the event index is then behind all indices that software
 * posts, so that none of them needs a doorbell. The device reads the record of a hot queue in
 * each round, until a number of reads in a row have found no new index, or the host is about
 * to sleep. It then writes the event index and reads the record once more. If the producer
 * index is still the same, the queue is cold.
 *
 * The list of polled queues is short. A hot queue that does not fit in it is waiting: it is in
 * the ready queue or parked (sched.c), and after each of its turns there is one attempt to put
 * it into the list, or else to make it cold as described above.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "icm.h"

/* Size of the list of polled queues. */
#define LIST_MAX	64
/* Number of reads in a row without a new index, after which a queue becomes cold. */
#define LOOKS_DEFAULT	32

/* State of a QP: cold, hot and waiting, or its place in the list + LISTED. */
enum { COLD, WAITING, LISTED };

/**
 * struct hot_sq - a send queue whose record is polled
 * @index: of the QP
 * @pi: producer index known
 * @misses: reads in a row without a new index
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

/* Result of reading a record. */
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

/* Put a QP into the list. False: the list is full. */
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
	/* The last entry moves to the place of the removed one. */
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
 * The record cannot be read or the event index cannot be written: the QP goes to ERR, since the
 * device would not learn of new work any more.
 */
static void fail(struct skua_dev *dev, struct qp *qp)
{
	hot_forget(dev, qp->qpn);
	if (qp_state(qp) != SKUA_QP_ERR)
		qp_error(dev, qp, SKUA_QP_ERR, SKUA_QP_EV_FATAL);
}

/* Read the record of a QP whose producer index is known as @pi. */
static enum look read_record(struct skua_dev *dev, uint64_t dbr, uint32_t pi, uint32_t *now)
{
	__le32 record;

	if (dma_read(dev, TLP_RECORD, dbr + offsetof(struct skua_qp_dbr, sq_pi), &record,
		     sizeof(record)))
		return LOOK_ERROR;
	*now = le32_to_cpu(record);
	return *now == pi ? LOOK_OLD : LOOK_NEW;
}

/* Take the index @now from the record of a QP; software may have written any value. */
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
 * Try to make the QP cold. LOOK_OLD: it is cold. LOOK_NEW: it stays hot, and is in the ready
 * queue again. Other results: it is cold, and the error was handled; @told: a bad record was
 * counted before.
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

/* A queue of the list has a new index, or had none for the maximum number of reads. */
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

void hot_look(struct skua_dev *dev, struct qp *qp)
{
	struct hot_sq *sq = listed(dev->hot, qp_index(qp->qpn));
	enum look look;
	uint32_t now;

	if (dev->hot->state[qp_index(qp->qpn)] == COLD)
		return;
	look = read_record(dev, le64_to_cpu(qp->sqc->cfg.dbr), le32_to_cpu(qp->sqc->pi), &now);
	if (look == LOOK_ERROR)
		fail(dev, qp);
	/* A bad index is left to the look that comes anyway. */
	if (look != LOOK_NEW || take(dev, qp, now) != LOOK_NEW || !sq)
		return;
	sq->pi = now;
	sq->misses = 0;
}

bool hot_run(struct skua_dev *dev)
{
	struct hot *hot = dev->hot;

	/* From the end: a removed entry is replaced by one that was handled already. */
	for (unsigned int i = hot->num; i-- && dev->state == DEV_OPERATIONAL;) {
		struct hot_sq *sq = &hot->list[i];
		enum look look;
		uint32_t now = 0;

		/* A QP in the ready queue will get a turn anyway. */
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

	/* From the end, as in hot_run(). */
	for (unsigned int i = hot->num; i-- && dev->state == DEV_OPERATIONAL;)
		look_closer(dev, &hot->list[i], LOOK_OLD, 0);
	return hot->num;
}
