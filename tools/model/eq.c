// SPDX-License-Identifier: GPL-2.0
/*
 * Event queues. They never overflow: if an EQ is full, the event becomes a pending bit in the
 * context of its object, and the object is put into a list of waiting objects. The links of the
 * lists are preallocated arrays, so an event never needs memory.
 *
 * Completion events wait for the EQ of their CQ, page faults for the page fault EQ, command
 * completions for the command EQ, and all others for the EQ that is the one of asynchronous
 * events when there is room.
 *
 * Very many events can wait, and an EQ can get room for all of them at once. Others of the same
 * process have to wait while they are written, so that no more than a batch is written at once.
 * The EQ is then unfinished: it may have room for more, and eq_run() goes on in later turns.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "icm.h"

#define EQS		(1u << MODEL_LOG_EQ)
#define SLOTS		(1u << SKUA_CMDQ_LOG_SIZE_MAX)
/* Maximum number of waiting events of an EQ that are written at once; of such batches in a turn. */
#define BATCH		64
#define BATCHES		8

enum wait_kind {
	WAIT_COMP, WAIT_CQ_ERR, WAIT_QP, WAIT_SRQ, WAIT_FAULT_REQ, WAIT_FAULT_RESP, WAIT_KINDS
};

static const uint8_t log_size[WAIT_KINDS] = {
	MODEL_LOG_CQ, MODEL_LOG_CQ, MODEL_LOG_QP, MODEL_LOG_SRQ, MODEL_LOG_QP, MODEL_LOG_QP,
};

/* A link to a waiting object is kind << 24 | index, plus LINK_FIRST. */
#define LINK_NONE	0	/* not in a list */
#define LINK_END	1
#define LINK_FIRST	2

struct waitlist {
	uint32_t head, tail;	/* LINK_NONE: empty */
};

/* The list that an object is in: contexts may be other ones when they are read again. */
struct link {
	struct waitlist *list;
	uint32_t prev, next;
};

/**
 * struct events - events that wait for room in their EQ
 * @link: next waiting object, by kind and index; LINK_NONE: this one does not wait
 * @comp: list of completion events, by EQ
 * @async: list of CQ errors, QP and SRQ events
 * @fault: list of page faults
 * @port: a port event waits
 * @cmd: by slot, token of a command completion that waits
 * @cmds: number of these
 * @count: events since an EQ's last interrupt, for moderation
 * @unfinished: by EQ: eq_run() is to write more of the events that wait for it
 * @num_unfinished: number of these EQs
 * @next: EQ, modulo EQS, from which on eq_run() looks for one of them
 */
struct events {
	struct link *link[WAIT_KINDS];
	struct waitlist comp[EQS];
	struct waitlist async;
	struct waitlist fault;
	bool port;
	uint32_t cmd[SLOTS];
	unsigned int cmds;
	uint32_t count[EQS];
	bool unfinished[EQS];
	unsigned int num_unfinished;
	unsigned int next;
};

int eq_init(struct skua_dev *dev)
{
	dev->events = calloc(1, sizeof(*dev->events));
	return dev->events ? 0 : -ENOMEM;
}

static void free_links(struct events *ev)
{
	for (unsigned int k = 0; k < WAIT_KINDS; k++)
		free(ev->link[k]);
}

void eq_reset(struct skua_dev *dev)
{
	free_links(dev->events);
	memset(dev->events, 0, sizeof(*dev->events));
}

void eq_exit(struct skua_dev *dev)
{
	if (!dev->events)
		return;
	free_links(dev->events);
	free(dev->events);
}

/* --- lists --- */

static uint32_t link_id(enum wait_kind kind, uint32_t index)
{
	return (kind << 24 | index) + LINK_FIRST;
}

static enum wait_kind link_kind(uint32_t id)
{
	return (id - LINK_FIRST) >> 24;
}

static uint32_t link_index(uint32_t id)
{
	return (id - LINK_FIRST) & 0xffffff;
}

static struct link *link_at(struct events *ev, uint32_t id)
{
	return &ev->link[link_kind(id)][link_index(id)];
}

static bool waits(const struct events *ev, enum wait_kind kind, uint32_t index)
{
	return ev->link[kind] && ev->link[kind][index].next != LINK_NONE;
}

static void wait_add(struct skua_dev *dev, struct waitlist *list, enum wait_kind kind,
		     uint32_t index)
{
	struct events *ev = dev->events;
	uint32_t id = link_id(kind, index);

	if (!ev->link[kind])
		ev->link[kind] = calloc(1u << log_size[kind], sizeof(struct link));
	if (!ev->link[kind]) {
		/* A lost event would let a program hang: make the device FATAL instead. */
		dev_log(dev, 0, "no memory for waiting events");
		dev_fatal(dev, SKUA_FATAL_EQ_DMA);
		return;
	}
	if (waits(ev, kind, index))
		return;
	*link_at(ev, id) = (struct link){
		.list = list,
		.prev = list->tail ? list->tail : LINK_END,
		.next = LINK_END,
	};
	if (list->tail)
		link_at(ev, list->tail)->next = id;
	else
		list->head = id;
	list->tail = id;
}

static void wait_del(struct skua_dev *dev, enum wait_kind kind, uint32_t index)
{
	struct events *ev = dev->events;
	struct waitlist *list;
	struct link *link;

	if (!waits(ev, kind, index))
		return;
	link = &ev->link[kind][index];
	list = link->list;
	if (link->prev == LINK_END)
		list->head = link->next == LINK_END ? LINK_NONE : link->next;
	else
		link_at(ev, link->prev)->next = link->next;
	if (link->next == LINK_END)
		list->tail = link->prev == LINK_END ? LINK_NONE : link->prev;
	else
		link_at(ev, link->next)->prev = link->prev;
	link->next = LINK_NONE;
}

/* --- the queue itself --- */

bool eqc_check(struct skua_dev *dev, uint32_t index, const void *ctx)
{
	const struct skua_eqc *eqc = ctx;
	uint32_t log = le32_get_bits(eqc->flags, SKUA_EQC_LOG_SIZE);

	return le32_to_cpu(eqc->flags) & SKUA_EQC_VALID && le32_to_cpu(eqc->eqn) == index &&
	       log <= MODEL_LOG_EQ_MAX &&
	       le32_get_bits(eqc->flags, SKUA_EQC_VECTOR) < skua_dev_msix_vectors(dev) &&
	       le32_to_cpu(eqc->uar) < dev_uars(dev) &&
	       le32_to_cpu(eqc->pi) - le32_to_cpu(eqc->ci) <= 1u << log;
}

static struct skua_eqc *eq_get(struct skua_dev *dev, uint32_t eqn)
{
	return obj_valid(dev, SKUA_ICM_EQC, eqn) ? ctx_get(dev, SKUA_ICM_EQC, eqn) : NULL;
}

static void interrupt(struct skua_dev *dev, struct skua_eqc *eqc)
{
	uint32_t eqn = le32_to_cpu(eqc->eqn);

	le32p_replace_bits(&eqc->flags, 0, SKUA_EQC_ARMED);
	ctx_dirty(dev, eqc);
	if (dev->events->count[eqn])
		timer_set_eq(dev, eqn, SKUA_TIME_NEVER);
	dev->events->count[eqn] = 0;
	dma_msix(dev, le32_get_bits(eqc->flags, SKUA_EQC_VECTOR));
}

/* An EQE was written: send the interrupt, now or delayed by moderation. */
static void moderate(struct skua_dev *dev, struct skua_eqc *eqc)
{
	uint32_t eqn = le32_to_cpu(eqc->eqn);
	uint32_t usec = le32_get_bits(eqc->moderation, SKUA_MOD_USEC);
	uint32_t most = le32_get_bits(eqc->moderation, SKUA_MOD_COUNT);
	uint32_t *count = &dev->events->count[eqn];

	if (!(le32_to_cpu(eqc->flags) & SKUA_EQC_ARMED))
		return;
	if (!usec || (most && *count + 1 >= most)) {
		interrupt(dev, eqc);
		return;
	}
	if (!(*count)++)
		timer_set_eq(dev, eqn, dev_now(dev) + usec * 1000ull);
}

void eq_timer(struct skua_dev *dev, uint32_t eqn)
{
	struct skua_eqc *eqc = eq_get(dev, eqn);

	if (!eqc)
		return;
	if (le32_to_cpu(eqc->flags) & SKUA_EQC_ARMED && dev->events->count[eqn])
		interrupt(dev, eqc);
	ctx_put(dev, eqc);
}

static bool eqc_full(const struct skua_eqc *eqc)
{
	return le32_to_cpu(eqc->pi) - le32_to_cpu(eqc->ci) >=
	       1u << le32_get_bits(eqc->flags, SKUA_EQC_LOG_SIZE);
}

/* An event has to wait: for room, or only for those that come before it? */
static void count_full(struct skua_dev *dev, uint32_t eqn)
{
	struct skua_eqc *eqc = eq_get(dev, eqn);

	dev->cnt[SKUA_CNT_EQ_FULL] += !eqc || eqc_full(eqc);
	if (eqc)
		ctx_put(dev, eqc);
}

/* Write an EQE. -EAGAIN: the EQ is full; -EIO: there is no such EQ, or the device is FATAL. */
static int eq_post(struct skua_dev *dev, uint32_t eqn, struct skua_eqe *eqe)
{
	struct skua_eqc *eqc = eq_get(dev, eqn);
	uint32_t log, pi;
	int err = 0;

	if (!eqc)
		return -EIO;
	log = le32_get_bits(eqc->flags, SKUA_EQC_LOG_SIZE);
	pi = le32_to_cpu(eqc->pi);
	eqe->own = le32_encode_bits(!(pi >> log & 1), SKUA_EQE_PHASE);
	if (eqc_full(eqc)) {
		eqc->pending |= cpu_to_le32(BIT(le32_get_bits(eqe->what, SKUA_EQE_TYPE)));
		ctx_dirty(dev, eqc);
		err = -EAGAIN;
	} else if (dma_write_elem(dev, TLP_EQE, le64_to_cpu(eqc->base) +
				  (pi & ((1u << log) - 1)) * sizeof(*eqe), eqe, sizeof(*eqe))) {
		dev_fatal(dev, SKUA_FATAL_EQ_DMA);
		err = -EIO;
	} else {
		eqc->pi = cpu_to_le32(pi + 1);
		ctx_dirty(dev, eqc);
		moderate(dev, eqc);
	}
	ctx_put(dev, eqc);
	return err;
}

/* A batch is over, of which @left were not used: if all were there may be more. */
static void batch_end(struct events *ev, uint32_t eqn, unsigned int left)
{
	ev->num_unfinished += !left;
	ev->num_unfinished -= ev->unfinished[eqn];
	ev->unfinished[eqn] = !left;
}

/* Try a list of events that wait for this EQ, unless it is unfinished: then its turn comes. */
static void kick(struct skua_dev *dev, uint32_t eqn,
		 void (*drain)(struct skua_dev *dev, unsigned int *left))
{
	unsigned int left = BATCH;

	if (eqn == SKUA_NO_EQ || dev->events->unfinished[eqn])
		return;
	drain(dev, &left);
	batch_end(dev->events, eqn, left);
}

static struct skua_eqe eqe_make(enum skua_eqe_type type, unsigned int subtype, uint32_t num)
{
	return (struct skua_eqe){
		.num = cpu_to_le32(num),
		.what = le32_encode_bits(type, SKUA_EQE_TYPE) |
			le32_encode_bits(subtype, SKUA_EQE_SUBTYPE),
	};
}

/* --- completion events --- */

static int comp_post(struct skua_dev *dev, struct skua_cqc *cqc)
{
	struct skua_eqe eqe = eqe_make(SKUA_EQE_COMP, 0, le32_to_cpu(cqc->cqn));
	int err;

	eqe.info[0] = cpu_to_le32(le32_get_bits(cqc->arm, SKUA_CQC_ARM_SERIAL));
	err = eq_post(dev, le32_to_cpu(cqc->eqn), &eqe);
	if (!err)
		cq_told(dev, cqc);
	return err;
}

bool comp_event(struct skua_dev *dev, struct skua_cqc *cqc)
{
	uint32_t eqn = le32_to_cpu(cqc->eqn);

	/* Events of CQs that wait already go first. */
	if (!dev->events->comp[eqn].head && comp_post(dev, cqc) != -EAGAIN)
		return true;
	count_full(dev, eqn);
	cqc->pending |= cpu_to_le32(SKUA_CQC_PENDING_COMP);
	ctx_dirty(dev, cqc);
	wait_add(dev, &dev->events->comp[eqn], WAIT_COMP, le32_to_cpu(cqc->cqn));
	return false;
}

/* Here and below, @left: number of events that are still allowed in this batch. */
static void comp_drain(struct skua_dev *dev, uint32_t eqn, unsigned int *left)
{
	struct waitlist *list = &dev->events->comp[eqn];

	for (; list->head && *left; --*left) {
		uint32_t cqn = link_index(list->head);
		struct skua_cqc *cqc = ctx_get(dev, SKUA_ICM_CQC, cqn);
		int err = cqc ? comp_post(dev, cqc) : -EIO;

		if (!err) {
			cqc->pending &= ~cpu_to_le32(SKUA_CQC_PENDING_COMP);
			ctx_dirty(dev, cqc);
			wait_del(dev, WAIT_COMP, cqn);
		}
		if (cqc)
			ctx_put(dev, cqc);
		if (err)
			return;
	}
}

/* --- asynchronous events --- */

/*
 * Contexts of each kind of object; and, of those with asynchronous events, the offset of the
 * pending word.
 */
static const struct {
	enum skua_icm_table table;
	size_t pending;
} source[WAIT_KINDS] = {
	[WAIT_COMP] = { SKUA_ICM_CQC, 0 },
	[WAIT_FAULT_REQ] = { SKUA_ICM_SQC, 0 },
	[WAIT_FAULT_RESP] = { SKUA_ICM_SQC, 0 },
	[WAIT_CQ_ERR] = { SKUA_ICM_CQC, offsetof(struct skua_cqc, pending) },
	[WAIT_QP] = { SKUA_ICM_SQC, offsetof(struct skua_sqc, pending) },
	[WAIT_SRQ] = { SKUA_ICM_SRQC, offsetof(struct skua_srqc, pending) },
};

/* Counts the links of each kind of object of which one has ever waited. */
struct onchip eq_onchip(const struct skua_dev *dev)
{
	const struct events *ev = dev->events;
	struct onchip use = { .bytes = sizeof(*ev) };

	for (unsigned int k = 0; k < WAIT_KINDS; k++)
		use.num += ev->link[k] ? dev->icm->table[source[k].table].objects : 0;
	use.bytes += use.num * sizeof(struct link);
	return use;
}

/* The next event of an object with @bits pending. Returns the bits that this event clears. */
static uint32_t next_event(enum wait_kind kind, const void *ctx, uint32_t bits,
			   struct skua_eqe *eqe)
{
	const struct skua_sqc *sqc = ctx;
	const struct skua_cqc *cqc = ctx;
	const struct skua_srqc *srqc = ctx;

	switch (kind) {
	case WAIT_CQ_ERR:
		bits &= SKUA_CQC_PENDING_ERR | SKUA_CQC_PENDING_ERR_DMA;
		*eqe = eqe_make(SKUA_EQE_CQ_ERR, bits & SKUA_CQC_PENDING_ERR_DMA ?
				SKUA_CQ_ERR_DMA : SKUA_CQ_ERR_OVERRUN, le32_to_cpu(cqc->cqn));
		return bits;
	case WAIT_QP:
		bits &= (1u << SKUA_QP_EV_COUNT) - 1;
		bits &= -bits;
		if (bits)
			*eqe = eqe_make(SKUA_EQE_QP, __builtin_ctz(bits),
					le32_to_cpu(sqc->cfg.qpn));
		return bits;
	case WAIT_SRQ:
		bits &= BIT(SKUA_EQE_SRQ_LIMIT) | BIT(SKUA_EQE_SRQ_ERR);
		bits &= -bits;
		if (bits)
			*eqe = eqe_make(__builtin_ctz(bits), 0, le32_to_cpu(srqc->srqn));
		return bits;
	default:
		return 0;
	}
}

/* Write one event of the object at the head of the list. False: no more can be written now. */
static bool async_one(struct skua_dev *dev)
{
	struct waitlist *list = &dev->events->async;
	enum wait_kind kind = link_kind(list->head);
	uint32_t index = link_index(list->head);
	void *ctx = ctx_get(dev, source[kind].table, index);
	struct skua_eqe eqe;
	__le32 *pending;
	uint32_t bits;
	int err = 0;

	if (!ctx)
		return false;
	pending = (__le32 *)((char *)ctx + source[kind].pending);
	bits = next_event(kind, ctx, le32_to_cpu(*pending), &eqe);
	if (bits)
		err = eq_post(dev, dev->async_eqn, &eqe);
	if (!err) {
		*pending &= ~cpu_to_le32(bits);
		ctx_dirty(dev, ctx);
		if (!next_event(kind, ctx, le32_to_cpu(*pending), &eqe))
			wait_del(dev, kind, index);
	}
	ctx_put(dev, ctx);
	return !err;
}

static void async_drain(struct skua_dev *dev, unsigned int *left)
{
	struct events *ev = dev->events;
	struct skua_eqe eqe = eqe_make(SKUA_EQE_PORT, 0, 0);

	if (ev->port && *left && !eq_post(dev, dev->async_eqn, &eqe)) {
		ev->port = false;
		--*left;
	}
	while (ev->async.head && *left && async_one(dev))
		--*left;
}

/* An event was set in a context's pending word: write it, or put the object into the list. */
static void async_event(struct skua_dev *dev, enum wait_kind kind, uint32_t index)
{
	wait_add(dev, &dev->events->async, kind, index);
	kick(dev, dev->async_eqn, async_drain);
	if (waits(dev->events, kind, index))
		count_full(dev, dev->async_eqn);
}

void qp_event(struct skua_dev *dev, struct skua_sqc *sqc, enum skua_qp_event ev)
{
	if (!ctx_need(dev, sqc))
		return;
	sqc->pending |= cpu_to_le32(BIT(ev));
	ctx_dirty(dev, sqc);
	async_event(dev, WAIT_QP, qp_index(le32_to_cpu(sqc->cfg.qpn)));
}

void srq_event(struct skua_dev *dev, struct skua_srqc *srqc, enum skua_eqe_type type)
{
	srqc->pending |= cpu_to_le32(BIT(type));
	ctx_dirty(dev, srqc);
	async_event(dev, WAIT_SRQ, le32_to_cpu(srqc->srqn));
}

void cq_err_event(struct skua_dev *dev, struct skua_cqc *cqc, enum skua_cq_err err)
{
	cqc->pending |= cpu_to_le32(SKUA_CQC_PENDING_ERR |
				    (err == SKUA_CQ_ERR_DMA ? SKUA_CQC_PENDING_ERR_DMA : 0));
	ctx_dirty(dev, cqc);
	async_event(dev, WAIT_CQ_ERR, le32_to_cpu(cqc->cqn));
}

void port_event(struct skua_dev *dev)
{
	dev->events->port = true;
	kick(dev, dev->async_eqn, async_drain);
	if (dev->events->port)
		count_full(dev, dev->async_eqn);
}

void cq_event_forget(struct skua_dev *dev, uint32_t cqn)
{
	wait_del(dev, WAIT_CQ_ERR, cqn);
	wait_del(dev, WAIT_COMP, cqn);
}

void qp_event_forget(struct skua_dev *dev, uint32_t qpn)
{
	wait_del(dev, WAIT_QP, qp_index(qpn));
	fault_event_forget(dev, qpn, false);
	fault_event_forget(dev, qpn, true);
}

void srq_event_forget(struct skua_dev *dev, uint32_t srqn)
{
	wait_del(dev, WAIT_SRQ, srqn);
}

/* --- page faults --- */

static int fault_post(struct skua_dev *dev, const struct qp *qp, const struct skua_fault *f)
{
	struct skua_eqe eqe = eqe_make(SKUA_EQE_PAGE_FAULT, 0, 0);
	const struct skua_eqe_fault body = {
		.qpn = cpu_to_le32(qp->qpn),
		.key = f->key,
		.va = f->va,
		.len = f->len,
		.token = f->token,
	};

	memcpy(&eqe, &body, sizeof(body));
	return eq_post(dev, dev->fault_eqn, &eqe);
}

/* Write the page fault at the head of the list. False: it has to wait. */
static bool fault_one(struct skua_dev *dev)
{
	struct waitlist *list = &dev->events->fault;
	enum wait_kind kind = link_kind(list->head);
	uint32_t index = link_index(list->head);
	struct skua_fault *f;
	struct qp qp;
	int err = 0;

	if (qp_get_index(dev, index, &qp))
		return false;
	f = kind == WAIT_FAULT_REQ ? &qp.sqc->fault : &qp.rqc->fault;
	if (le32_to_cpu(f->flags) & SKUA_FAULT_PENDING)
		err = fault_post(dev, &qp, f);
	if (!err) {
		f->flags &= ~cpu_to_le32(SKUA_FAULT_PENDING);
		qp_dirty(dev, &qp);
		wait_del(dev, kind, index);
	}
	qp_put(dev, &qp);
	return !err;
}

static void fault_drain(struct skua_dev *dev, unsigned int *left)
{
	/* This may be amid another QP's turn, to which the TLPs are counted. */
	struct tlp_qp *turn = dev->tlp.qp;

	while (dev->events->fault.head && *left && fault_one(dev))
		--*left;
	dev->tlp.qp = turn;
}

static enum wait_kind fault_kind(bool responder)
{
	return responder ? WAIT_FAULT_RESP : WAIT_FAULT_REQ;
}

void fault_event(struct skua_dev *dev, uint32_t qpn, bool responder)
{
	enum wait_kind kind = fault_kind(responder);

	wait_add(dev, &dev->events->fault, kind, qp_index(qpn));
	kick(dev, dev->fault_eqn, fault_drain);
	if (waits(dev->events, kind, qp_index(qpn)))
		count_full(dev, dev->fault_eqn);
}

void fault_event_forget(struct skua_dev *dev, uint32_t qpn, bool responder)
{
	wait_del(dev, fault_kind(responder), qp_index(qpn));
}

/* --- loss reports --- */

int recovery_event(struct skua_dev *dev, const struct skua_eqe_recovery *e)
{
	struct skua_eqe eqe = eqe_make(SKUA_EQE_RECOVERY, 0, 0);
	int err;

	if (dev->recovery_eqn == SKUA_NO_EQ)
		return -EIO;
	memcpy(&eqe, e, sizeof(*e));
	err = eq_post(dev, dev->recovery_eqn, &eqe);
	if (err == -EAGAIN)
		dev->cnt[SKUA_CNT_EQ_FULL]++;
	return err;
}

uint32_t recovery_uar(struct skua_dev *dev)
{
	struct skua_eqc *eqc = dev->recovery_eqn != SKUA_NO_EQ ?
			       eq_get(dev, dev->recovery_eqn) : NULL;
	uint32_t uar = UINT32_MAX;

	if (!eqc)
		return uar;
	uar = le32_to_cpu(eqc->uar);
	ctx_put(dev, eqc);
	return uar;
}

/* The last DMA of a device that becomes FATAL: errors are ignored. */
void eq_fatal(struct skua_dev *dev, enum skua_fatal why)
{
	struct skua_eqe eqe = eqe_make(SKUA_EQE_FATAL, 0, 0);
	struct skua_eqc *eqc;

	if (dev->async_eqn == SKUA_NO_EQ || why == SKUA_FATAL_EQ_DMA)
		return;
	eqe.info[0] = cpu_to_le32(why);
	eqc = eq_get(dev, dev->async_eqn);
	if (!eqc)
		return;
	/* No moderation: its timer would not run any more. */
	eqc->moderation = 0;
	eq_post(dev, dev->async_eqn, &eqe);
	ctx_put(dev, eqc);
}

/* --- command completions --- */

static int cmd_post(struct skua_dev *dev, uint32_t token)
{
	struct skua_eqe eqe = eqe_make(SKUA_EQE_CMD, 0, token);

	return eq_post(dev, dev->cmd_eqn, &eqe);
}

void cmd_event(struct skua_dev *dev, uint32_t token)
{
	struct events *ev = dev->events;
	uint32_t slot = u32_get_bits(token, SKUA_CMD_TOKEN_SLOT) % SLOTS;

	if (!ev->cmds && cmd_post(dev, token) != -EAGAIN)
		return;
	count_full(dev, dev->cmd_eqn);
	ev->cmds += !ev->cmd[slot];
	ev->cmd[slot] = token;
}

static void cmd_drain(struct skua_dev *dev, unsigned int *left)
{
	struct events *ev = dev->events;

	for (unsigned int i = 0; i < SLOTS && ev->cmds && *left; i++) {
		if (!ev->cmd[i])
			continue;
		if (cmd_post(dev, ev->cmd[i]))
			return;
		ev->cmd[i] = 0;
		ev->cmds--;
		--*left;
	}
}

/* --- all of them --- */

void eq_kick(struct skua_dev *dev)
{
	kick(dev, dev->cmd_eqn, cmd_drain);
	kick(dev, dev->async_eqn, async_drain);
	kick(dev, dev->fault_eqn, fault_drain);
}

/* One batch, of all kinds of events that wait for the EQ. */
static void drain(struct skua_dev *dev, uint32_t eqn)
{
	unsigned int left = BATCH;

	if (eqn == dev->cmd_eqn)
		cmd_drain(dev, &left);
	if (eqn == dev->async_eqn)
		async_drain(dev, &left);
	if (eqn == dev->fault_eqn)
		fault_drain(dev, &left);
	comp_drain(dev, eqn, &left);
	batch_end(dev->events, eqn, left);
}

bool eq_run(struct skua_dev *dev)
{
	struct events *ev = dev->events;

	for (unsigned int n = 0; n < BATCHES && ev->num_unfinished; n++) {
		if (n && dev_turn_over(dev))
			break;
		while (!ev->unfinished[ev->next % EQS])
			ev->next++;
		drain(dev, ev->next++ % EQS);
	}
	return ev->num_unfinished;
}

/* --- doorbell --- */

void eq_doorbell(struct skua_dev *dev, uint32_t page, uint32_t lo, uint32_t hi)
{
	uint32_t eqn = u32_get_bits(hi, SKUA_UAR_EQ_EQN);
	struct skua_eqc *eqc;
	uint32_t ci;

	if (hi & ~(SKUA_UAR_EQ_EQN | SKUA_UAR_EQ_ARM)) {
		dev->cnt[SKUA_CNT_BAD_DB]++;
		return;
	}
	eqc = eq_get(dev, eqn);
	if (!eqc) {
		dev->cnt[SKUA_CNT_BAD_DB_QP]++;
		return;
	}
	ci = le32_to_cpu(eqc->ci);
	if (le32_to_cpu(eqc->uar) != page) {
		dev->cnt[SKUA_CNT_BAD_DB_UAR]++;
	} else if (lo - ci > le32_to_cpu(eqc->pi) - ci) {
		dev->cnt[SKUA_CNT_BAD_DB_INDEX]++;
	} else {
		eqc->ci = cpu_to_le32(lo);
		eqc->pending = 0;
		if (hi & SKUA_UAR_EQ_ARM)
			eqc->flags |= cpu_to_le32(SKUA_EQC_ARMED);
		ctx_dirty(dev, eqc);
		if (eqc->pi != eqc->ci && hi & SKUA_UAR_EQ_ARM)
			interrupt(dev, eqc);
		if (lo != ci)
			drain(dev, eqn);
	}
	ctx_put(dev, eqc);
}

/* --- commands --- */

int cmd_create_eq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_eqc *in = &((const struct skua_cmd_create_eq_in *)cmd->in)->eqc;
	uint32_t eqn = le32_to_cpu(in->eqn);
	struct skua_eqc *eqc;
	int err = cmd_vacant(dev, SKUA_ICM_EQC, eqn);

	if (err)
		return err;
	if (le32_to_cpu(in->flags) & ~(SKUA_EQC_LOG_SIZE | SKUA_EQC_VECTOR) || in->pi || in->ci ||
	    in->pending || !all_zero(in->reserved, sizeof(in->reserved)) ||
	    le64_to_cpu(in->base) % 64 ||
	    le32_get_bits(in->flags, SKUA_EQC_LOG_SIZE) > MODEL_LOG_EQ_MAX ||
	    le32_get_bits(in->flags, SKUA_EQC_VECTOR) >= skua_dev_msix_vectors(dev) ||
	    le32_to_cpu(in->uar) >= dev_uars(dev))
		return SKUA_CMD_ST_BAD_PARAM;
	eqc = ctx_new(dev, SKUA_ICM_EQC, eqn);
	if (!eqc)
		return SKUA_CMD_ST_INTERNAL;
	*eqc = *in;
	eqc->flags |= cpu_to_le32(SKUA_EQC_VALID);
	obj_set(dev, SKUA_ICM_EQC, eqn, true);
	ctx_put(dev, eqc);
	return SKUA_CMD_ST_OK;
}

int cmd_destroy_eq(struct skua_dev *dev, struct cmd *cmd)
{
	uint32_t eqn;
	int err = cmd_object(dev, cmd, SKUA_ICM_EQC, &eqn);
	struct skua_eqc *eqc;

	if (err)
		return err;
	if (obj_refs(dev, SKUA_ICM_EQC, eqn))
		return SKUA_CMD_ST_BUSY;
	timer_set_eq(dev, eqn, SKUA_TIME_NEVER);
	dev->events->count[eqn] = 0;
	obj_set(dev, SKUA_ICM_EQC, eqn, false);
	eqc = ctx_new(dev, SKUA_ICM_EQC, eqn);
	if (!eqc)
		return SKUA_CMD_ST_INTERNAL;
	ctx_put(dev, eqc);
	return SKUA_CMD_ST_OK;
}

int cmd_modify_eq(struct skua_dev *dev, struct cmd *cmd)
{
	const struct skua_cmd_modify_mod_in *in = cmd->in;
	uint32_t eqn = le32_to_cpu(in->index);
	struct skua_eqc *eqc = eq_get(dev, eqn);

	if (!eqc)
		return SKUA_CMD_ST_BAD_INDEX;
	eqc->moderation = in->moderation;
	ctx_dirty(dev, eqc);
	/* An interrupt that the old moderation delays is sent now. */
	if (dev->events->count[eqn])
		interrupt(dev, eqc);
	ctx_put(dev, eqc);
	return SKUA_CMD_ST_OK;
}

int cmd_query_eq(struct skua_dev *dev, struct cmd *cmd)
{
	struct skua_cmd_query_eq_out *out = cmd->out;
	uint32_t eqn;
	int err = cmd_object(dev, cmd, SKUA_ICM_EQC, &eqn);

	return err ? err : cmd_query_ctx(dev, SKUA_ICM_EQC, eqn, &out->eqc, sizeof(out->eqc));
}
