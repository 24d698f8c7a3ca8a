// SPDX-License-Identifier: GPL-2.0
/*
 * The ready queues, one for each traffic class: QPs with work, which get turns. A QP is in one
 * of them at most once: from an event (doorbell, packet, timer) until a turn ends without work
 * that can be done now. A QP that waits for its peer takes no time.
 *
 * Classes of strict priority come first, the one with the highest number before the others.
 * The rest share what is sent by start-time fair queueing (Goyal, Vin, Cheng 1997): a class has a
 * virtual time at which its next turn begins, each byte moves it on by the inverse of the
 * class's share, and the class that is behind the others has the turn. A class that gets ready
 * begins where the one is that had the last turn: it has not saved up what it did not use. One
 * that only waits for the wire stays behind, and so has the next turn there is.
 *
 * Some turns belong to no class, and as a rule send nothing: those of QPs in error, which are
 * flushed (who destroys a QP waits for that, however much others have to send), and those of
 * datagram queues that have sent what they were in a class for: the next datagram says which is
 * the next class. Every second turn may be one of these.
 *
 * QPs whose frames find no room in the wire are parked. When there may be room again they are
 * put behind the ready ones, in the order in which they were parked. If there is no room for
 * the frame of one of them after all it is parked again without reading its context. QPs that
 * have sent something in the turn in which they were parked are put behind those that have
 * not: otherwise the first one would take all of the room each time.
 *
 * There may be very many of them, and other functions of the process wait meanwhile, so that one
 * call looks at a limited number. No QP has a turn before all that were parked are ready: they
 * are in the order in which they would be after one long call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "icm.h"

/* Turns in one round, and frames in one turn of an Ethernet queue. */
#define ROUND	8
#define FRAMES	16
/* Parked QPs that one call of sched_run() makes ready or parks again, which takes about 0.1 ms. */
#define LOOKS	4096

/* By QP index; numbers in the list are index + 1, 0 ends it. */
struct list {
	uint32_t head, tail;
};

/*
 * Parked QPs are in PARKED if they have sent nothing in their turn, else in SERVED. Ready ones are
 * in READY and the number of their class, which for turns of no class is NO_TC; in MOVING they are
 * only while classes change.
 */
enum { NO_TC = SKUA_TC_NUM, TCS };
enum { NOWHERE, PARKED, SERVED, MOVING, READY, LISTS = READY + TCS };

/* What a turn counts for that sends nothing, though the wire had room: it takes time too. */
#define TURN_MIN	256
/* No class gets further ahead of another by one turn. */
#define AHEAD_MAX	(1ull << 48)

/**
 * struct link - a QP's place in the lists
 * @next: the QP behind it
 * @prev: the QP in front of it
 * @list: the list that it is in
 * @prio: its priority; of a datagram queue that of the datagram that is next, or was last
 * @datagram: it is a datagram queue
 * @next_unknown: likewise, and its next datagram may have another priority
 * @flush: it is in error: its turns only flush it
 * @resp: its responder has something to send
 * @parked: the QP is parked, or about to be: the wire had no room for a frame to @dmac
 * @dmac: destination of that frame
 */
struct link {
	uint32_t next, prev;
	uint8_t list;
	uint8_t prio:3;
	bool datagram:1;
	bool next_unknown:1;
	bool flush:1;
	bool resp:1;
	bool parked:1;
	uint8_t dmac[ETH_ADDR_LEN];
};

_Static_assert(sizeof(struct link) == 16, "of each QP on the chip");

/**
 * struct tclass - a traffic class
 * @cost: of a byte, in virtual time; 0 unless it has a share
 * @time: virtual time at which its next turn begins
 */
struct tclass {
	uint64_t cost, time;
};

/**
 * struct sched - the lists
 * @link: by QP index
 * @top: no QP from this index on has been in a list
 * @list: heads of the lists of ready and parked QPs
 * @room: there may be room for the parked ones
 * @turn_bytes: bytes sent in the present turn, and since
 * @turn: class whose turn it is
 * @no_tc: the turn began as one of no class
 * @ready: classes that have ready QPs, a bit for each
 * @strict: classes of strict priority, likewise
 * @several: priorities are in more than one class
 * @tc_of: class of each priority
 * @now: virtual time at which the last turn of a class with a share began that sent something
 * @tc: the classes
 */
struct sched {
	struct link *link;
	uint32_t top;
	struct list list[LISTS];
	bool room;
	uint64_t turn_bytes;
	unsigned int turn;
	uint32_t ready, strict;
	bool no_tc, several;
	uint8_t tc_of[SKUA_PRIO_NUM];
	uint64_t now;
	struct tclass tc[TCS];
};

static uint8_t ready_list(const struct sched *s, const struct link *l)
{
	return READY + (s->several && (l->flush || l->next_unknown) ? NO_TC : s->tc_of[l->prio]);
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
	if (!list->head && l->list >= READY)
		s->ready &= ~BIT(l->list - READY);
	l->next = 0;
	l->prev = 0;
	l->list = NOWHERE;
}

/* A class that had no ready QP: if its time is behind, or is from very long ago, it is now. */
static void catch_up(struct sched *s, unsigned int tc)
{
	if (s->tc[tc].time - s->now > AHEAD_MAX)
		s->tc[tc].time = s->now;
}

static void append(struct sched *s, uint8_t which, uint32_t index)
{
	struct list *list = &s->list[which];
	struct link *l = &s->link[index];

	if (s->top <= index)
		s->top = index + 1;
	if (!list->head && which >= READY) {
		catch_up(s, which - READY);
		s->ready |= BIT(which - READY);
	}
	l->prev = list->tail;
	l->list = which;
	if (list->tail)
		s->link[list->tail - 1].next = index + 1;
	else
		list->head = index + 1;
	list->tail = index + 1;
}

/* To the ready QPs of its class. */
static void append_ready(struct sched *s, uint32_t index)
{
	append(s, ready_list(s, &s->link[index]), index);
}

/* Its class may be another one now, which has an effect if it is ready. */
static void move_ready(struct sched *s, uint32_t index)
{
	const struct link *l = &s->link[index];

	if (l->list < READY || l->list == ready_list(s, l))
		return;
	unlink_qp(s, index);
	append_ready(s, index);
}

void sched_reset(struct skua_dev *dev)
{
	struct sched *s = dev->sched;

	memset(s->link, 0, s->top * sizeof(*s->link));
	memset(s->list, 0, sizeof(s->list));
	s->room = false;
	s->top = 0;
	s->ready = 0;
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
		append_ready(s, index);
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
	unlink_qp(dev->sched, qp_index(qpn));
	dev->sched->link[qp_index(qpn)] = (struct link){ 0 };
}

void sched_park(struct skua_dev *dev, uint32_t qpn, const uint8_t dmac[ETH_ADDR_LEN])
{
	struct sched *s = dev->sched;
	uint32_t index = qp_index(qpn);
	struct link *l = &s->link[index];

	/* The QP may have been kicked during its turn. */
	unlink_qp(s, index);
	append(s, s->turn_bytes ? SERVED : PARKED, index);
	l->parked = true;
	memcpy(l->dmac, dmac, sizeof(l->dmac));
}

void sched_state(struct skua_dev *dev, uint32_t qpn, bool flush)
{
	struct sched *s = dev->sched;
	uint32_t index = qp_index(qpn);

	s->link[index].flush = flush;
	if (s->link[index].parked)
		unlink_qp(s, index);
	s->link[index].parked = false;
	move_ready(s, index);
	sched_kick(dev, qpn);
}

/* The first QP of the list. False: there is none. */
static bool make_ready(struct sched *s, const struct list *list)
{
	uint32_t index = list->head - 1;

	if (!list->head)
		return false;
	unlink_qp(s, index);
	append_ready(s, index);
	return true;
}

void sched_set_classes(struct skua_dev *dev, const uint8_t prio_tc[SKUA_PRIO_NUM],
		       const uint8_t tc_share[SKUA_TC_NUM])
{
	struct sched *s = dev->sched;

	for (unsigned int tc = 0; tc < TCS; tc++) {
		while (s->list[READY + tc].head) {
			uint32_t index = s->list[READY + tc].head - 1;

			unlink_qp(s, index);
			append(s, MOVING, index);
		}
	}
	memcpy(s->tc_of, prio_tc, sizeof(s->tc_of));
	s->several = memcmp(prio_tc, prio_tc + 1, SKUA_PRIO_NUM - 1);
	s->strict = 0;
	for (unsigned int tc = 0; tc < SKUA_TC_NUM; tc++) {
		s->tc[tc].time = s->now;
		s->tc[tc].cost = tc_share[tc] == SKUA_TC_STRICT ? 0 :
				 ((uint64_t)SKUA_TC_SHARE_MAX << 16) / tc_share[tc];
		s->strict |= s->tc[tc].cost ? 0 : BIT(tc);
	}
	while (make_ready(s, &s->list[MOVING]))
		;
}

void sched_one_class(struct skua_dev *dev)
{
	const uint8_t prio_tc[SKUA_PRIO_NUM] = { 0 }, strict[SKUA_TC_NUM] = { 0 };

	sched_set_classes(dev, prio_tc, strict);
}

void sched_sent(struct skua_dev *dev, uint32_t qpn, uint64_t bytes)
{
	struct sched *s = dev->sched;

	dev->cnt[SKUA_CNT_TX_PRIO0_BYTES + s->link[qp_index(qpn)].prio] += bytes;
	s->turn_bytes += bytes;
}

void sched_set_prio(struct skua_dev *dev, uint32_t qpn, uint32_t prio)
{
	dev->sched->link[qp_index(qpn)].prio = prio & 7;
	move_ready(dev->sched, qp_index(qpn));
}

void sched_next_unknown(struct skua_dev *dev, uint32_t qpn)
{
	struct link *l = &dev->sched->link[qp_index(qpn)];

	l->datagram = true;
	l->next_unknown = true;
	move_ready(dev->sched, qp_index(qpn));
}

void sched_room(struct skua_dev *dev)
{
	dev->sched->room = true;
}

/* Make the parked QPs ready if there may be room, at most *@looks of them. False: not yet all. */
static bool unpark(struct sched *s, unsigned int *looks)
{
	for (; s->room && *looks; --*looks)
		s->room = make_ready(s, &s->list[PARKED]) || make_ready(s, &s->list[SERVED]);
	return !s->room;
}

/* The one of these classes whose turn it is. */
static unsigned int first_class(const struct sched *s, uint32_t ready)
{
	uint32_t strict = ready & s->strict;
	unsigned int best;

	if (strict)
		return 31 - (unsigned int)__builtin_clz(strict);
	best = (unsigned int)__builtin_ctz(ready);
	for (uint32_t rest = ready & (ready - 1); rest; rest &= rest - 1) {
		unsigned int tc = (unsigned int)__builtin_ctz(rest);

		if ((int64_t)(s->tc[tc].time - s->tc[best].time) < 0)
			best = tc;
	}
	return best;
}

/* The class whose turn it is, of those that have ready QPs. */
static unsigned int next_class(const struct sched *s)
{
	uint32_t ready = s->ready & ~BIT(NO_TC);

	if (ready != s->ready && (!ready || !s->no_tc))
		return NO_TC;
	return first_class(s, ready);
}

bool sched_turn_prio(struct skua_dev *dev, uint32_t qpn, uint32_t prio)
{
	struct sched *s = dev->sched;
	uint32_t ready = s->ready & ~BIT(NO_TC);
	unsigned int tc = s->tc_of[prio];

	s->link[qp_index(qpn)].next_unknown = false;
	sched_set_prio(dev, qpn, prio);
	/* No need for another turn if it is this class's anyway, and nobody else waits for that. */
	if (s->turn == NO_TC && !(ready & BIT(tc))) {
		catch_up(s, tc);
		if (first_class(s, ready | BIT(tc)) == tc)
			s->turn = tc;
	}
	return s->turn == tc;
}

/* Take the next QP that may have a turn. False: there is none among the next *@looks. */
static bool next_ready(struct skua_dev *dev, uint32_t *index, unsigned int *looks)
{
	struct sched *s = dev->sched;

	for (; s->ready && !port_tx_busy(dev) && *looks; --*looks) {
		struct link *l;

		s->turn = next_class(s);
		s->no_tc = s->turn == NO_TC;
		*index = s->list[READY + s->turn].head - 1;
		l = &s->link[*index];
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
	return dev->sched->link[index].list >= READY;
}

/* The class that has had the turn pays for it. */
static void charge(struct sched *s, bool parked)
{
	struct tclass *tc = &s->tc[s->turn];

	if (s->turn_bytes) {
		if (tc->cost)
			s->now = tc->time;
		tc->time += tc->cost * s->turn_bytes;
	/* While the wire is full all have such turns: nobody is behind or ahead for that. */
	} else if (!parked) {
		tc->time += tc->cost * TURN_MIN;
	}
}

/* After its turn: what is known of the class of the datagram queue's next one. */
static void know_next(const struct sched *s, struct link *l, bool more)
{
	/* It had other work requests to execute, and goes on in the class of before. */
	if (more && s->turn == NO_TC)
		l->next_unknown = false;
	/* When it has something to send again that may be of any class. */
	if (!more && !l->parked)
		l->next_unknown = true;
}

static bool turn(struct skua_dev *dev, struct qp *qp, uint32_t index)
{
	struct sched *s = dev->sched;
	struct link *l = &s->link[index];
	bool more;

	s->turn_bytes = 0;
	if (qp_type(qp) == SKUA_QP_RAW_ETH)
		more = qp_need_rq(dev, qp) && eth_sq_run(dev, qp, FRAMES);
	else
		more = engine_run(dev, qp);
	charge(s, l->parked);
	if (l->datagram)
		know_next(s, l, more);
	return more;
}

/* The one behind it in its class is most likely the next one. */
static void next_soon(const struct skua_dev *dev)
{
	const struct sched *s = dev->sched;
	uint32_t next = s->list[READY + s->turn].head;

	if (next)
		ctx_prefetch(dev, SKUA_ICM_SQC, next - 1);
}

bool sched_run(struct skua_dev *dev)
{
	unsigned int looks = LOOKS;
	uint32_t index;

	if (!unpark(dev->sched, &looks))
		return true;
	for (unsigned int n = 0; n < ROUND; n++) {
		struct qp qp;

		if ((n && dev_turn_over(dev)) || !next_ready(dev, &index, &looks))
			break;
		next_soon(dev);
		if (qp_get_sq_index(dev, index, &qp))
			continue;
		if (turn(dev, &qp, index))
			sched_kick(dev, qp.qpn);
		else
			hot_turn(dev, &qp);
		qp_put(dev, &qp);
		if (dev->state != DEV_OPERATIONAL)
			return false;
	}
	return dev->sched->ready;
}
