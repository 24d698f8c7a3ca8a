// SPDX-License-Identifier: GPL-2.0
/*
 * The ready queue: QPs with work, which get turns. A QP is in it at most once: from an event
 * (doorbell, packet, timer) until a turn ends without work that can be done now. A QP that
 * waits for its peer takes no time.
 *
 * QPs whose frames find no room in the wire are parked. When there may be room again they are
 * put behind the ready ones, in the order in which they were parked. If there is no room for
 * the frame of one of them after all it is parked again without reading its context. QPs that
 * have sent something in the turn in which they were parked are put behind those that have
 * not: otherwise the first one would take all of the room each time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "icm.h"

/* Turns in one round, and frames in one turn of an Ethernet queue. */
#define ROUND	8
#define FRAMES	16

/* By QP index; numbers in the list are index + 1, 0 ends it. */
struct list {
	uint32_t head, tail;
};

/* Parked QPs are in PARKED if they have sent nothing in their turn, else in SERVED. */
enum { NOWHERE, READY, PARKED, SERVED, LISTS };

/**
 * struct link - a QP's place in the lists
 * @next: the QP behind it
 * @prev: the QP in front of it
 * @list: the list that it is in
 * @resp: its responder has something to send
 * @parked: the QP is parked, or about to be: the wire had no room for a frame to @dmac
 * @dmac: destination of that frame
 */
struct link {
	uint32_t next, prev;
	uint8_t list;
	bool resp:1;
	bool parked:1;
	uint8_t dmac[ETH_ADDR_LEN];
};

_Static_assert(sizeof(struct link) == 16, "of each QP on the chip");

/**
 * struct sched - the lists
 * @link: by QP index
 * @top: no QP from this index on has been in a list
 * @list: heads of the lists of ready and parked QPs
 * @sent: frames that the device had sent when the present turn began
 */
struct sched {
	struct link *link;
	uint32_t top;
	struct list list[LISTS];
	uint64_t sent;
};

static uint64_t frames_sent(const struct skua_dev *dev)
{
	return dev->cnt[SKUA_CNT_RDMA_TX_PKTS] + dev->cnt[SKUA_CNT_ETH_TX_PKTS];
}

int sched_init(struct skua_dev *dev)
{
	dev->sched = calloc(1, sizeof(*dev->sched));
	if (!dev->sched)
		return -ENOMEM;
	dev->sched->link = calloc(1u << MODEL_LOG_QP, sizeof(struct link));
	return dev->sched->link ? 0 : -ENOMEM;
}

struct onchip sched_onchip(const struct skua_dev *dev)
{
	uint64_t num = dev->icm->table[SKUA_ICM_SQC].objects;

	return (struct onchip){ .num = num, .bytes = num * sizeof(struct link) };
}

static void unlink_qp(struct sched *s, uint32_t index)
{
	struct link *l = &s->link[index];
	struct list *list = &s->list[l->list];

	if (!l->list)
		return;
	if (l->prev)
		s->link[l->prev - 1].next = l->next;
	else
		list->head = l->next;
	if (l->next)
		s->link[l->next - 1].prev = l->prev;
	else
		list->tail = l->prev;
	l->next = 0;
	l->prev = 0;
	l->list = NOWHERE;
}

static void append(struct sched *s, uint8_t which, uint32_t index)
{
	struct list *list = &s->list[which];
	struct link *l = &s->link[index];

	if (s->top <= index)
		s->top = index + 1;
	l->prev = list->tail;
	l->list = which;
	if (list->tail)
		s->link[list->tail - 1].next = index + 1;
	else
		list->head = index + 1;
	list->tail = index + 1;
}

static void forget(struct sched *s, uint32_t index)
{
	unlink_qp(s, index);
	s->link[index].parked = false;
}

void sched_reset(struct skua_dev *dev)
{
	struct sched *s = dev->sched;

	memset(s->link, 0, s->top * sizeof(*s->link));
	memset(s->list, 0, sizeof(s->list));
	s->top = 0;
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

	if (!s->link[index].list)
		append(s, READY, index);
}

void sched_kick_resp(struct skua_dev *dev, uint32_t qpn)
{
	dev->sched->link[qp_index(qpn)].resp = true;
	sched_kick(dev, qpn);
}

bool sched_resp(const struct skua_dev *dev, uint32_t qpn)
{
	return dev->sched->link[qp_index(qpn)].resp;
}

void sched_resp_done(struct skua_dev *dev, uint32_t qpn)
{
	dev->sched->link[qp_index(qpn)].resp = false;
}

void sched_forget(struct skua_dev *dev, uint32_t qpn)
{
	sched_resp_done(dev, qpn);
	forget(dev->sched, qp_index(qpn));
}

void sched_park(struct skua_dev *dev, uint32_t qpn, const uint8_t dmac[ETH_ADDR_LEN])
{
	struct sched *s = dev->sched;
	uint32_t index = qp_index(qpn);
	struct link *l = &s->link[index];

	/* The QP may have been kicked during its turn. */
	unlink_qp(s, index);
	append(s, frames_sent(dev) == s->sent ? PARKED : SERVED, index);
	l->parked = true;
	memcpy(l->dmac, dmac, sizeof(l->dmac));
}

void sched_unpark(struct skua_dev *dev, uint32_t qpn)
{
	struct sched *s = dev->sched;
	uint32_t index = qp_index(qpn);

	if (!s->link[index].parked)
		return;
	forget(s, index);
	append(s, READY, index);
}

static void make_ready(struct sched *s, struct list *list)
{
	while (list->head) {
		uint32_t index = list->head - 1;

		unlink_qp(s, index);
		append(s, READY, index);
	}
}

void sched_room(struct skua_dev *dev)
{
	make_ready(dev->sched, &dev->sched->list[PARKED]);
	make_ready(dev->sched, &dev->sched->list[SERVED]);
}

/* Take the next QP that may have a turn. False: there is none. */
static bool next_ready(struct skua_dev *dev, uint32_t *index)
{
	struct sched *s = dev->sched;

	while (s->list[READY].head && !port_tx_busy(dev)) {
		struct link *l = &s->link[s->list[READY].head - 1];

		*index = s->list[READY].head - 1;
		unlink_qp(s, *index);
		if (!l->parked)
			return true;
		l->parked = port_tx_full(dev, l->dmac);
		if (!l->parked)
			return true;
		append(s, PARKED, *index);
	}
	return false;
}

bool sched_ready(const struct skua_dev *dev, uint32_t index)
{
	return dev->sched->link[index].list == READY;
}

static bool turn(struct skua_dev *dev, struct qp *qp)
{
	dev->sched->sent = frames_sent(dev);
	if (qp_type(qp) == SKUA_QP_RAW_ETH)
		return qp_need_rq(dev, qp) && eth_sq_run(dev, qp, FRAMES);
	return engine_run(dev, qp);
}

bool sched_run(struct skua_dev *dev)
{
	uint32_t index;

	for (unsigned int n = 0; n < ROUND; n++) {
		struct qp qp;

		if ((n && dev_turn_over(dev)) || !next_ready(dev, &index))
			break;
		if (qp_get_sq_index(dev, index, &qp))
			continue;
		if (turn(dev, &qp))
			sched_kick(dev, qp.qpn);
		else
			hot_turn(dev, &qp);
		qp_put(dev, &qp);
		if (dev->state != DEV_OPERATIONAL)
			return false;
	}
	return dev->sched->list[READY].head;
}
